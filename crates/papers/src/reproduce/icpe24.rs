//! The study of I/O schedulers on NVMe drives of ICPE 2024: random reads of 4 KiB on a drive that is faster
//! than a processor.
//!
//! Three tables of its public artefact: one process on one core with more and more calls in flight, more and
//! more processes with one call each on ten cores, and the share of CPU time that goes into waiting for a
//! scheduler's lock. What limits them is in turn the drive's latency, one processor, the drive's dies, and
//! the lock.
//!
//! Calibrated with: depth 1 and 256, 1 and 256 processes (all schedulers), and the lock's shares at 2, 5 and
//! 10 processes, as no other row shows how a hand-over grows; see [`Host::with_processors_of_2023`] and the
//! preset `980pro`. All else is predicted.
//
//= docs/reference/nvme.md#2-published-figures

use super::{Bound, Column, Figure, Misses, Options, Published, Report, Row, Standing, Table, causes};
use fairhead_core::Duration;
use fairhead_sim::Host;
use fairhead_sim::metrics::{OpStats, Outcome, rate};

/// Thousand calls a second, mean latency and its 99th percentile in us: without a scheduler, bfq, kyber,
/// mq-deadline.
type Cells = [(f64, f64, f64); 4];

const SCHEDULERS: [&str; 4] = ["none", "bfq", "kyber", "mq-deadline"];

/// Calls in flight of one process on one core.
#[rustfmt::skip]
const DEPTHS: [(u32, Cells); 6] = [
    (1, [(14.4, 68.4, 77.0), (13.7, 71.9, 79.0), (14.0, 70.3, 78.0), (14.1, 70.1, 78.0)]),
    (8, [(112.4, 70.7, 117.0), (109.1, 72.8, 118.0), (111.0, 71.5, 117.0), (111.2, 71.4, 117.0)]),
    (16, [(211.3, 75.2, 136.0), (198.6, 80.0, 136.0), (206.1, 77.1, 136.0), (207.3, 76.6, 136.0)]),
    (32, [(343.2, 92.7, 183.0), (229.7, 138.7, 200.0), (275.7, 115.5, 189.0), (293.6, 108.4, 185.0)]),
    (128, [(354.1, 360.9, 457.0), (236.1, 541.6, 602.0), (286.6, 446.0, 522.0), (293.7, 435.2, 514.0)]),
    (256, [(357.9, 714.6, 807.0), (235.0, 1089.0, 1155.0), (274.8, 930.8, 1004.0), (295.3, 866.3, 946.0)]),
];

/// Processes with one call in flight on ten cores.
#[rustfmt::skip]
const PROCESSES: [(u32, Cells); 5] = [
    (1, [(18.1, 54.3, 78.0), (16.3, 60.4, 87.0), (17.3, 56.7, 80.0), (17.3, 56.7, 80.0)]),
    (16, [(216.0, 73.3, 134.0), (203.4, 77.7, 131.0), (213.6, 74.0, 132.0), (212.5, 74.4, 132.0)]),
    (32, [(375.7, 84.2, 179.0), (270.5, 117.5, 185.0), (371.9, 85.0, 177.0), (368.2, 85.9, 177.0)]),
    (64, [(559.2, 113.1, 281.0), (281.0, 226.5, 387.0), (553.9, 114.0, 276.0), (415.8, 152.9, 276.0)]),
    (256, [(772.8, 329.5, 1090.0), (281.5, 907.5, 1810.0), (772.6, 329.6, 1073.0), (425.3, 600.7, 1155.0)]),
];

/// Processes with 128 calls in flight on ten cores: percent of CPU time in the contended lock, bfq and
/// mq-deadline.
const LOCKS: [(u32, f64, f64); 6] =
    [(1, 0.0, 0.0), (2, 8.0, 5.5), (3, 26.0, 18.0), (4, 41.0, 37.5), (5, 50.0, 48.5), (10, 74.5, 73.0)];

/// What is known to miss.
const MISSES: Misses = &[
    (causes::RUN_QUEUE, &[("N256-mq-deadline", "p99", 0.256)]),
    (
        causes::ONE_PROCESS,
        &[
            ("N1-none", "iops", -0.194),
            ("N1-none", "mean", 0.260),
            ("N1-bfq", "iops", -0.133),
            ("N1-bfq", "mean", 0.173),
            ("N1-kyber", "iops", -0.169),
            ("N1-kyber", "mean", 0.221),
            ("N1-mq-deadline", "iops", -0.169),
            ("N1-mq-deadline", "mean", 0.223),
        ],
    ),
];

pub(super) fn report(figures: Vec<Figure>, options: &Options) -> Report {
    Report {
        source: "icpe24",
        title: "I/O schedulers on NVMe drives (ICPE 2024)".into(),
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks: vec![],
        tables: vec![
            Table { rows: "D", title: "one process on one core, by calls in flight" },
            Table { rows: "N", title: "processes with one call in flight on ten cores" },
            Table { rows: "L", title: "CPU time in the contended lock, by processes of depth 128" },
        ],
        notes: vec![
            "rows of depth 1 and 256, of 1 and 256 processes, and the locks of 2, 5 and 10 calibrate the drive and the host",
        ],
        is_part: options.only.is_some(),
        unknown: vec![],
        runs: None,
    }
    .with_known(MISSES)
}

pub(super) fn rows() -> Vec<Row> {
    let of = |table: &'static [(u32, Cells)], id: char, lines: fn(u32) -> String| {
        table.iter().flat_map(move |&(n, cells)| {
            SCHEDULERS.iter().zip(cells).map(move |(scheduler, cell)| Row {
                columns: columns(matches!(n, 1 | 256), cell),
                ..row(format!("{id}{n}-{scheduler}"), scheduler, &lines(n), read_off)
            })
        })
    };
    let lock = |scheduler, n: u32, percent| Row {
        columns: vec![Column::new(
            "lock",
            "%",
            Published::Number(percent),
            standing(matches!(n, 2 | 5 | 10), Bound::Absolute(10.0)),
        )],
        ..row(format!("L{n}-{scheduler}"), scheduler, &format!("iodepth=128\nnumjobs={n}\n"), |o| {
            vec![o.cpu.lock_permille() as f64 / 10.0]
        })
    };
    let locks = LOCKS.iter().flat_map(|&(n, bfq, mq)| [lock("bfq", n, bfq), lock("mq-deadline", n, mq)]);
    // Its locks are as many as there are processors and queues: ours has none.
    let locks = locks.chain([Row {
        columns: vec![Column::new(
            "lock",
            "%",
            Published::Number(6.0),
            Standing::Judged(Bound::Absolute(10.0)),
        )],
        ..lock("kyber", 10, 6.0)
    }]);
    let depths = of(&DEPTHS, 'D', |n| format!("iodepth={n}\ncpus_allowed=0\n"));
    let processes = of(&PROCESSES, 'N', |n| format!("numjobs={n}\n"));
    depths.chain(processes).chain(locks).collect()
}

fn row(id: String, scheduler: &str, lines: &str, read_off: fn(&Outcome) -> Vec<f64>) -> Row {
    Row {
        id,
        jobs: format!(
            "[r]\nfilename=/dev/nvme0n1\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nnorandommap\n\
             time_based\nramp_time=100ms\nruntime=300ms\n{lines}"
        ),
        preset: if scheduler == "none" { "noop" } else { preset_of(scheduler) },
        disk: "980pro",
        host: || Host::of_2020().with_processors_of_2023(),
        interval: None,
        columns: vec![],
        read_off,
    }
}

fn preset_of(scheduler: &str) -> &'static str {
    SCHEDULERS.into_iter().find(|s| *s == scheduler).expect("one of the study's")
}

fn columns(calibrates: bool, (iops, mean, p99): (f64, f64, f64)) -> Vec<Column> {
    let column = |metric, unit, published, bound| {
        let bound = Bound::Relative(bound);
        let standing = if calibrates { Standing::Calibrates(Some(bound)) } else { Standing::Judged(bound) };
        Column::new(metric, unit, Published::Number(published), standing)
    };
    vec![column("iops", "k", iops, 0.10), column("mean", "us", mean, 0.10), column("p99", "us", p99, 0.25)]
}

const fn standing(calibrates: bool, bound: Bound) -> Standing {
    if calibrates { Standing::Calibrates(Some(bound)) } else { Standing::Judged(bound) }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn read_off(outcome: &Outcome) -> Vec<f64> {
    let mut all = OpStats::default();
    let mut iops = 0;
    for client in &outcome.clients {
        all.add(&client.read);
        iops += rate(client.read.calls * 1000, client.elapsed);
    }
    let us = |d: Option<Duration>| d.unwrap_or_default().as_ns() as f64 / 1e3;
    vec![iops as f64 / 1e6, us(all.latency_mean()), us(all.percentile(99.0))]
}
