//! The figures of the prototype that the model was specified with, reproduced with a small closed-loop host:
//! `n` clients, one request each, served in turn. Everything is deterministic, so a figure moves only when
//! the model does.
//!
//! Strictly alternating requests lock to the platter, so rows with several streams move by 10 to 25 % with
//! the angle between the files. They are means over eight offsets here, as published where a spread is given.
//= docs/reference/devices.md#35-nas2020 type=test
//= docs/reference/published-results.md#8-what-the-rows-say-about-the-machines type=test
//= docs/reference/devices.md#8-evidence-for-the-structure type=test

use crate::host::{Host, Load, disk};
use fairhead_core::units::{Duration, Sectors};
use fairhead_device::{DiskParams, Zone};

/// Mean KiB/s over eight angles between the files.
fn mean(p: &DiskParams, load: impl Fn() -> Load) -> u64 {
    let one = |i: u64| {
        let mut load = load();
        // A track has 533 sectors: an eighth of it each time.
        load.file += i * 67;
        Host::new(p).run(&load, 10).kib_per_s
    };
    (0..8).map(one).sum::<u64>() / 8
}

/// The prototype read ahead until the seek; the preset has since been calibrated to stop earlier.
fn prototype() -> DiskParams {
    DiskParams { ra_abort: None, ..disk("ide2004") }
}

/// `n` sequential readers of 4 KiB on files of 1 GiB.
fn readers(p: &DiskParams, n: u64) -> u64 {
    mean(p, || Load::sequential_reads(n))
}

#[track_caller]
fn within(what: &str, ours: u64, prototype: u64, percent: u64) {
    let off = 100 * ours.abs_diff(prototype) / prototype;
    println!("{what}: {ours} KiB/s, prototype {prototype}, off by {off} %");
    assert!(off <= percent, "{what}: {ours}, prototype {prototype}, off by {off} %");
}

#[test]
fn alternating_sequential_readers() {
    let p = prototype();
    within("1 reader", readers(&p, 1), 19_838, 1);
    within("2 readers", readers(&p, 2), 4887, 10);
    within("4 readers", readers(&p, 4), 1399, 10);
    within("8 readers", readers(&p, 8), 1323, 10);
}

#[test]
fn any_foreign_hit_stopping_look_ahead_ruins_two_readers() {
    let p = DiskParams { ra_keep: 1, ..prototype() };
    within("2 readers", readers(&p, 2), 1492, 10);
    within("4 readers", readers(&p, 4), 1405, 10);
    within("8 readers", readers(&p, 8), 1255, 10);
}

#[test]
fn no_hit_stopping_look_ahead_helps_many_readers() {
    let p = DiskParams { ra_keep: 16, ..prototype() };
    within("2 readers", readers(&p, 2), 4839, 10);
    within("4 readers", readers(&p, 4), 4058, 15);
    within("8 readers", readers(&p, 8), 3621, 15);
}

/// The drive of these rows, whose files lie exactly 1 GiB apart on one zone: such rows lock to the platter.
fn one_zone() -> DiskParams {
    DiskParams { zones: vec![Zone { tracks: 140_000, spt: 533 }], ..prototype() }
}

#[test]
fn without_prefetch_every_block_costs_a_revolution() {
    for (what, p) in [
        ("ra_abort = 0", DiskParams { ra_abort: Some(Duration::ZERO), ..one_zone() }),
        ("no look-ahead", DiskParams { ra_max: Sectors(0), ..one_zone() }),
    ] {
        for (n, prototype) in [(2, 476), (4, 382), (8, 348)] {
            let ours = Host::new(&p).run(&Load::sequential_reads(n), 10).kib_per_s;
            within(&format!("{what}, {n} readers"), ours, prototype, 12);
        }
    }
}

#[test]
fn too_few_segments_are_as_bad_as_no_look_ahead() {
    let p = DiskParams { nseg: 3, ..one_zone() };
    let readers = |n| Host::new(&p).run(&Load::sequential_reads(n), 10).kib_per_s;
    within("2 readers", readers(2), 4839, 10);
    within("4 readers", readers(4), 382, 5);
}

#[test]
fn a_single_reader_loses_no_revolution() {
    for name in ["ide2004", "sata2009", "nas2020"] {
        let mut host = Host::new(&disk(name));
        let figures = host.run(&Load::sequential_reads(1), 10);
        let c = host.dev.counters();
        assert_eq!((c.misses, c.lost_revolutions), (1, 0), "{name}: only the first read misses");
        assert!(c.look_ahead_full > 0, "{name}: look-ahead is faster than this reader");
        assert_eq!(c.hits + c.streaming_hits + 1, c.reads);
        assert!(figures.completed > 40_000);
    }
}

/// Writers of new files, which the file system of the time began 8 MiB apart. The published rows are 13,406,
/// 3104, 2759 and 2604; the prototype had 13,352, 4542, 2717 and 1803.
#[test]
fn writers_flatten_out() {
    let p = prototype();
    let writers = |n| mean(&p, || Load { file: 16_384, ..Load::sequential_writes(n) });
    within("1 writer", writers(1), 13_352, 1);
    within("2 writers", writers(2), 4542, 20);
    within("4 writers", writers(4), 2717, 20);
    within("8 writers", writers(8), 1803, 20);
}

/// A random reader with several commands at once: the gain of rotational ordering.
#[test]
fn depth_pays_as_it_should() {
    for (name, targets) in
        [("ide2004", [80, 110, 174]), ("sata2009", [82, 114, 190]), ("nas2020", [90, 127, 230])]
    {
        for (depth, target) in [1, 4, 32].into_iter().zip(targets) {
            let p = DiskParams { queue_depth: depth, ..disk(name) };
            let iops = Host::new(&p).run(&Load::random_reads(u64::from(depth)), 20).iops;
            println!("{name} at depth {depth}: {iops} IOPS, target {target}");
            assert!(
                iops.abs_diff(target) * 100 <= 9 * target,
                "{name} at depth {depth}: {iops}, target {target}"
            );
        }
    }
}
