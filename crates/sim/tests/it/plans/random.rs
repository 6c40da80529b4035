//! Jobs drawn at random: whatever a job file can say must run, end, and add up.
//!
//! A seed draws the disk, the scheduler, the memory and up to four jobs, option by option, some of them off
//! entirely. More seeds: `FAIRHEAD_PLANS=1000`. A seed that fails becomes a test of its own below.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;
use fairhead_core::sched::any::PRESETS;
use fairhead_sim::host::{Flusher, Plug, Throttle};
use fairhead_sim::rng::Rng;
use std::fmt::Write as _;

fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[usize::try_from(rng.below(words.len() as u64)).unwrap()]
}

/// A line `key=one of the values`, or, in half of the cases, nothing.
fn maybe(rng: &mut Rng, text: &mut String, key: &str, values: &[&str]) {
    if rng.percent(50) {
        writeln!(text, "{key}={}", pick(rng, values)).unwrap();
    }
}

fn job(rng: &mut Rng, index: u64) -> String {
    let mut text = format!("[job{index}]\nsize={}\nruntime=3s\n", pick(rng, &["256k", "3m", "20m"]));
    if rng.percent(10) {
        writeln!(text, "fh_workload={}", pick(rng, &["fsck", "dbscan"])).unwrap();
        return text;
    }
    let rw = pick(rng, &["read", "write", "randread", "randwrite", "rw", "randrw", "trim"]);
    writeln!(text, "rw={rw}").unwrap();
    if rw != "trim" {
        maybe(rng, &mut text, "direct", &["0", "1"]);
    } else {
        text.push_str("direct=1\n");
    }
    let sizes =
        pick(rng, &["bs=4k", "bs=64k", "bs=512", "bsrange=4k-32k", "bssplit=4k/50:64k/50", "bs=12k,20k"]);
    writeln!(text, "{sizes}").unwrap();
    maybe(rng, &mut text, "numjobs", &["2", "3"]);
    maybe(rng, &mut text, "nrfiles", &["2", "3"]);
    maybe(rng, &mut text, "filename", &["shared", "other", "/dev/sda"]);
    maybe(rng, &mut text, "offset", &["64k", "10%"]);
    maybe(rng, &mut text, "ioengine", &["libaio\niodepth=4", "io_uring\niodepth=7", "psync"]);
    maybe(rng, &mut text, "fh_layout", &["ext2", "ext2", "scattered", "interleaved:32KiB", "contiguous"]);
    maybe(rng, &mut text, "fallocate", &["none"]);
    maybe(rng, &mut text, "overwrite", &["1"]);
    maybe(rng, &mut text, "sync", &["none", "dsync", "sync"]);
    maybe(rng, &mut text, "fsync", &["1", "10"]);
    maybe(rng, &mut text, "end_fsync", &["1"]);
    maybe(rng, &mut text, "invalidate", &["0"]);
    maybe(rng, &mut text, "pre_read", &["1"]);
    maybe(rng, &mut text, "thinktime", &["1ms", "500ms", "1ms\nthinktime_spin=1ms"]);
    maybe(rng, &mut text, "rate_iops", &["10", "1000"]);
    maybe(rng, &mut text, "random_distribution", &["zipf:1.1", "pareto:0.2", "normal:20"]);
    maybe(rng, &mut text, "norandommap", &["1"]);
    maybe(rng, &mut text, "startdelay", &["1s"]);
    maybe(rng, &mut text, "ramp_time", &["1s"]);
    maybe(rng, &mut text, "loops", &["2"]);
    if rng.percent(50) {
        text.push_str("time_based\n");
    }
    if rng.percent(20) {
        text.push_str(pick(rng, &["stonewall\n", "exitall\n"]));
    }
    text
}

/// Disks with one queue, and a mirror of two that have one each.
pub(crate) const DISKS: &[&str] = &[
    "ide2004",
    "sata2009",
    "nas2020",
    "greedy_ncq",
    "dual_actuator",
    "flashcard2010",
    "emmc51",
    "raid1_2009",
];

/// A plan on one of these disks.
pub(crate) fn plan(seed: u64, disks: &[&'static str]) -> Plan {
    let mut rng = Rng::new(seed, "random plan");
    let disk = pick(&mut rng, disks);
    let preset = PRESETS[usize::try_from(rng.below(PRESETS.len() as u64)).unwrap()].name;
    let memory = [1, 4, 64][usize::try_from(rng.below(3)).unwrap()] * MIB;
    let (task, sleep, pdflush) = (rng.percent(50), rng.percent(50), rng.percent(50));
    let requests = [4, 16, 128][usize::try_from(rng.below(3)).unwrap()];
    let jobs = 1 + rng.below(4);
    let text: String = (0..jobs).map(|i| job(&mut rng, i)).collect();
    Plan::on(disk)
        .seed(seed)
        .scheduler(preset)
        .host("any host", |h| {
            h.memory = memory;
            h.nr_requests = Some(requests);
            h.plug = if task { Plug::Task } else { Plug::Device };
            h.throttle = if sleep { Throttle::Sleep } else { Throttle::WriteBack };
            h.flusher = if pdflush { Flusher::Pdflush } else { Flusher::PerDevice };
        })
        .load(&format!("seed {seed}:\n{text}"), &text)
}

fn check(seed: u64) {
    let plan = plan(seed, DISKS);
    if let Some(message) = plan.error() {
        // Some draws cannot be: an offset behind the end, more than the disk holds.
        assert!(message.contains("nothing left to do") || message.contains("do not fit"), "{message}");
        return;
    }
    let plan = plan
        .run()
        .check("it ends of its own: 3 s per wave, a second each before and after", |o| {
            o.elapsed < Duration::from_secs(400)
        })
        .check("the disk did what it was asked for", |o| {
            let c = &o.disk.counters;
            // All clients have ended; only read-ahead and the flusher's writes may be in flight.
            let read = o.disk.read_bytes - c.bytes_read;
            // Each member of a mirror gets all of it.
            let members = if c.bytes_written > o.disk.written_bytes { 2 } else { 1 };
            let written = members * o.disk.written_bytes - c.bytes_written;
            read <= 32 * MIB && written / 4096 <= members * o.cache.dirty_at_end
        });
    if seed.is_multiple_of(8) {
        assert!(*self::plan(seed, DISKS).run().outcome() == *plan.outcome(), "seed {seed}: two outcomes");
    }
}

#[test]
fn whatever_is_drawn_runs_and_ends() {
    let plans = std::env::var("FAIRHEAD_PLANS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    (0..plans).for_each(check);
}
