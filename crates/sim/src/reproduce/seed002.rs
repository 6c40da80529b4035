//! Seed 002: the announcement of BFQ, August 2010. It has claims and no table; the table is ours.
//!
//! A command starts from a cold cache on a 7200 rpm disk, three times, while ten processes read and write files of 500 MB: how long
//! it takes, and how much the disk moves: in a time that is the same for all schedulers, and while the command starts three times.
//! The second is how the S suite measures, but it compares different loads: who starts a program ten times as fast has it running
//! ten times as large a part of the time. The announcement compared BFQ with the CFQ of Linux 2.6.32 and 2.6.35;
//! ours are those of 2.6.33 and 2.6.34 (the second differs from 2.6.35's in nothing that the specification knows of).
//!
//! BFQ is `bfq-v8`, with the heuristics for latency and without what came after 2016; the engine without heuristics, `bfq-v0`, and
//! today's `bfq` stand beside it. The disk of the announcement is
//! not known: `sata2009`, of the year before.
//
//= reference-results.md 3 (the project's transcription); benchmarks.md 1, 3

use super::{Check, Column, Figure, Options, Report, Row, ours, run_plain_rows};
use crate::host::Host;
use crate::metrics::{ClientStats, Outcome, Result};
use fairhead_core::Duration;

const COMMANDS: [&str; 3] = ["bash", "xterm", "konsole"];
const CFQ: [&str; 2] = ["cfq-2.6.33", "cfq-2.6.34"];
const SCHEDULERS: [&str; 5] = ["bfq-v8", "bfq-v0", "bfq", "cfq-2.6.33", "cfq-2.6.34"];
/// The one that is judged: with the heuristics of the announcement, without those that came later.
const BFQ: &str = "bfq-v8";

/// Name, readers, writers, and what they do.
const BACKGROUNDS: [(&str, u32, u32, &str); 4] = [
    ("10r-seq", 10, 0, ""),
    ("10r-rand", 10, 0, "rand"),
    ("5r5w-seq", 5, 5, ""),
    ("5r5w-rand", 5, 5, "rand"),
];

pub(super) fn reproduce(options: &Options, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report> {
    let figures = run_plain_rows(&rows(), options, progress)?;
    let checks = if options.only.is_none() { checks(&figures) } else { vec![] };
    Ok(Report {
        source: "002",
        title: "the announcement of BFQ (P. Valente, 2010)",
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks,
        tables: vec![],
        notes: vec!["the source has claims, not numbers: they are the properties"],
    })
}

fn id(background: &str, command: &str, scheduler: &str) -> String {
    format!("R002-{background}-{command}-{scheduler}")
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for background in BACKGROUNDS {
        for command in COMMANDS {
            rows.extend(SCHEDULERS.map(|scheduler| row(background, command, scheduler)));
        }
    }
    rows
}

/// Seconds until the background runs at its own pace.
//= benchmarks.md 3
const TRANSITORY: usize = 7;
/// Before each start-up.
//= benchmarks.md 3
const PAUSE_MS: usize = 4200;

/// Over how many seconds throughput is compared: more than three start-ups and pauses take under either CFQ.
fn window(command: &str) -> usize {
    match command {
        "bash" => 30,
        "xterm" => 60,
        _ => 500,
    }
}

fn row(
    (name, readers, writers, rand): (&str, u32, u32, &str),
    command: &str,
    scheduler: &'static str,
) -> Row {
    let (runtime, start) = (TRANSITORY + window(command), TRANSITORY * 1000 + PAUSE_MS);
    let mut jobs = format!(
        "[global]\nbs=4k\nsize=500m\ntime_based\nruntime={runtime}s\n\
         [readers]\nrw={rand}read\nnumjobs={readers}\n"
    );
    if writers > 0 {
        jobs += &format!("[writers]\nrw={rand}write\nnumjobs={writers}\n{}", write_cap(writers, rand));
    }
    jobs += &format!(
        "[command]\nstartdelay={start}ms\nfh_workload=startup:{command}\nfh_iterations=3\n\
         fh_pause={PAUSE_MS}ms\nfh_timeout=1000s\n"
    );
    Row {
        id: id(name, command, scheduler),
        jobs,
        preset: scheduler,
        disk: "sata2009",
        host: Host::of_2010,
        interval: Some(Duration::from_secs(1)),
        columns: vec![
            Column::ours("startup", "s"),
            Column::ours("throughput", "MB/s"),
            Column::ours("throughput_meanwhile", "MB/s"),
        ],
        read_off,
    }
}

/// All writers together write 4000 kB/s, a sixtieth of that at random.
//= benchmarks.md 1, write cap
fn write_cap(writers: u32, rand: &str) -> String {
    let total = if rand.is_empty() { 4_000_000 } else { 4_000_000 / 60 };
    format!("rate=,{}\n", total / writers)
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn read_off(outcome: &Outcome) -> Vec<f64> {
    let started = outcome.clients.iter().find(|c| !c.startups.is_empty());
    let startup = started.and_then(ClientStats::startup_time);
    let end = started.map_or(0, |c| (c.started + c.elapsed).as_ns() / 1_000_000_000);
    vec![
        startup.map_or(f64::NAN, |s| s.took.as_ns() as f64 / 1e9),
        mb_per_s(outcome, usize::MAX),
        mb_per_s(outcome, usize::try_from(end).unwrap_or(usize::MAX)),
    ]
}

/// What the disk moved, from the end of the transitory on, until that second at most.
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mb_per_s(outcome: &Outcome, until: usize) -> f64 {
    let seconds = outcome.disk_series.iter().take(until).skip(TRANSITORY);
    let count = seconds.clone().count().max(1);
    seconds.map(|s| s.read_bytes + s.written_bytes).sum::<u64>() as f64 / 1e6 / count as f64
}

fn checks(figures: &[Figure]) -> Vec<Check> {
    let mut checks: Vec<Check> = COMMANDS.iter().map(|command| faster(figures, command)).collect();
    checks.push(throughput(figures, "throughput", "in the same time", true));
    checks.push(throughput(
        figures,
        "throughput_meanwhile",
        "while the commands start, each in its own time",
        false,
    ));
    checks
}

/// How many times slower than under BFQ a command starts under CFQ: the worst case of each CFQ.
//= R002-1, R002-2: five to nine times, six to fourteen times
fn faster(figures: &[Figure], command: &str) -> Check {
    let start_up = |b: &str, s: &str| ours(figures, &id(b, command, s), "startup");
    let mut got = Vec::new();
    let mut best: f64 = 0.0;
    for cfq in CFQ {
        let ratios = BACKGROUNDS.map(|b| start_up(b.0, cfq) / start_up(b.0, BFQ));
        best = best.max(ratios.into_iter().fold(0.0, f64::max));
        let ratios = BACKGROUNDS.iter().zip(ratios).map(|(b, r)| format!("{} {r:.1}", b.0));
        got.push(format!("{cfq}: {}", ratios.collect::<Vec<_>>().join(", ")));
    }
    Check {
        what: format!("{command}: bfq starts it at least 5 times as fast as cfq beside some background"),
        got: got.join("; "),
        holds: best >= 5.0,
        required: true,
    }
}

//= R002-3 to R002-5: at most 20 % lower, up to 30 % higher
fn throughput(figures: &[Figure], metric: &str, when: &str, required: bool) -> Check {
    let rate = |b: &str, c: &str, s: &str| ours(figures, &id(b, c, s), metric);
    let (mut worst, mut best) = (f64::INFINITY, 0.0_f64);
    for (background, command) in BACKGROUNDS.iter().flat_map(|b| COMMANDS.map(|c| (b.0, c))) {
        for cfq in CFQ {
            let ratio = rate(background, command, BFQ) / rate(background, command, cfq);
            (worst, best) = (worst.min(ratio), best.max(ratio));
        }
    }
    Check {
        what: format!("bfq's aggregate throughput {when} is at least 0.80 of cfq's in all of these"),
        got: format!("{worst:.2} at worst, {best:.2} at best"),
        holds: worst >= 0.80,
        required,
    }
}
