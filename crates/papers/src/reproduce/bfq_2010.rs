//! `bfq-2010`: the announcement of BFQ, August 2010. It has claims and no table; the table is ours.
//!
//! A command starts from a cold cache on a 7200 rpm disk, three times, while ten processes read and write
//! files of 500 MB: how long it takes, and how much the disk moves: in a time that is the same for all
//! schedulers, and while the command starts three times. The second is how the S suite measures, but it
//! compares different loads: a scheduler that starts a program ten times as fast has it running ten times as
//! large a part of the time. The announcement compared BFQ with the CFQ of Linux 2.6.32 and 2.6.35; ours are
//! those of 2.6.33 and 2.6.34 (the second differs from 2.6.35's in nothing that is known here).
//!
//! BFQ is `bfq-v8`, with the heuristics for latency and without what came after 2016; the engine without
//! heuristics, `bfq-v0`, and today's `bfq` stand beside it. The disk of the announcement is not known:
//! `sata2009`, of the year before.
//
//= docs/reference/published-results.md#3-bfq-2010, docs/reference/benchmarks.md#1-common-ground
//= docs/reference/benchmarks.md#3-start-up-latency

use super::causes;
use super::{Bound, Column, Figure, Misses, Options, Published, Report, Row, Standing, ours, quotient};
use fairhead_core::Duration;
use fairhead_sim::Host;
use fairhead_sim::metrics::{ClientStats, Outcome};

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

pub(super) fn report(mut figures: Vec<Figure>, options: &Options) -> Report {
    let claimed: Vec<Figure> = claims().iter().filter_map(|c| c.figure(&figures)).collect();
    figures.extend(claimed);
    Report {
        source: "bfq-2010",
        title: "the announcement of BFQ (P. Valente, 2010)".into(),
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks: vec![],
        tables: vec![],
        notes: vec![
            "the source has claims, not numbers: each is held against every cell that it speaks of, rounded as it was stated",
        ],
        is_part: options.only.is_some(),
        unknown: vec![],
        runs: None,
    }
    .with_known(MISSES)
}

/// Known misses: row, metric, relative error at 16 layouts from seed 1.
#[rustfmt::skip]
const MISSES: Misses = &[
    (causes::CFQ_STARTS, &[
        ("R002-10r-seq-bash-cfq-2.6.33", "faster", 0.654),
        ("R002-10r-seq-xterm-cfq-2.6.33", "faster", 0.643),
        ("R002-10r-seq-xterm-cfq-2.6.34", "faster", 0.039),
        ("R002-10r-seq-konsole-cfq-2.6.33", "faster", 0.600),
        ("R002-10r-rand-bash-cfq-2.6.33", "faster", 0.299),
        ("R002-10r-rand-xterm-cfq-2.6.33", "faster", 0.189),
        ("R002-10r-rand-konsole-cfq-2.6.33", "faster", 0.252),
    ]),
    (causes::ALIKE, &[
        ("R002-10r-seq-none-cfq-2.6.33", "throughput_gain", -0.049),
        ("R002-10r-seq-none-cfq-2.6.34", "throughput_gain", -0.049),
        ("R002-10r-rand-none-cfq-2.6.33", "throughput_gain", -0.084),
        ("R002-10r-rand-none-cfq-2.6.34", "throughput_gain", -0.081),
        ("R002-5r5w-seq-none-cfq-2.6.33", "throughput_gain", -0.185),
        ("R002-5r5w-seq-none-cfq-2.6.34", "throughput_gain", -0.185),
        ("R002-5r5w-rand-none-cfq-2.6.33", "throughput_gain", -0.066),
        ("R002-5r5w-rand-none-cfq-2.6.34", "throughput_gain", -0.063),
    ]),
    (causes::MEANWHILE, &[
        ("R002-10r-seq-konsole-cfq-2.6.33", "meanwhile_gain", -0.388),
        ("R002-10r-seq-konsole-cfq-2.6.34", "meanwhile_gain", -0.388),
        ("R002-10r-rand-xterm-cfq-2.6.33", "meanwhile_gain", 0.054),
        ("R002-10r-rand-xterm-cfq-2.6.34", "meanwhile_gain", 0.054),
        ("R002-5r5w-seq-konsole-cfq-2.6.33", "meanwhile_gain", -0.450),
        ("R002-5r5w-seq-konsole-cfq-2.6.34", "meanwhile_gain", -0.450),
    ]),
];

fn id(background: &str, command: &str, scheduler: &str) -> String {
    format!("R002-{background}-{command}-{scheduler}")
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for background in BACKGROUNDS {
        for command in COMMANDS.into_iter().chain([NONE]) {
            rows.extend(SCHEDULERS.map(|scheduler| row(background, command, scheduler)));
        }
    }
    rows
}

/// No command: the background alone, for its throughput.
const NONE: &str = "none";

/// Seconds until the background runs at its own pace.
//= docs/reference/benchmarks.md#3-start-up-latency
const TRANSITORY: usize = 7;
/// Before each start-up.
//= docs/reference/benchmarks.md#3-start-up-latency
const PAUSE_MS: usize = 4200;

/// Over how many seconds throughput is compared: more than three start-ups and pauses take under either CFQ.
fn window(command: &str) -> usize {
    match command {
        "bash" | NONE => 30,
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
    let throughput = Column::ours("throughput", "MB/s");
    let mut columns = vec![throughput];
    if command != NONE {
        jobs += &format!(
            "[command]\nstartdelay={start}ms\nfh_workload=startup:{command}\nfh_iterations=3\n\
             fh_pause={PAUSE_MS}ms\nfh_timeout=1000s\n"
        );
        columns.extend([Column::ours("throughput_meanwhile", "MB/s"), Column::ours("startup", "s")]);
    }
    Row {
        id: id(name, command, scheduler),
        jobs,
        preset: scheduler,
        disk: "sata2009",
        host: Host::of_2010,
        interval: Some(Duration::from_secs(1)),
        columns,
        read_off,
    }
}

/// All writers together write 4000 kB/s, a sixtieth of that at random.
//= docs/reference/benchmarks.md#1-common-ground write cap
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
        mb_per_s(outcome, usize::MAX),
        mb_per_s(outcome, usize::try_from(end).unwrap_or(usize::MAX)),
        startup.map_or(f64::NAN, |s| s.took.as_ns() as f64 / 1e9),
    ]
}

/// What the disk moved, from the end of the transitory on, until that second at most.
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mb_per_s(outcome: &Outcome, until: usize) -> f64 {
    let seconds = outcome.disk_series.iter().take(until).skip(TRANSITORY);
    let count = seconds.clone().count().max(1);
    seconds.map(|s| s.read_bytes + s.written_bytes).sum::<u64>() as f64 / 1e6 / count as f64
}

/// A claim about one cell: a metric under BFQ against the same under one CFQ.
struct Claim {
    background: &'static str,
    command: &'static str,
    cfq: &'static str,
    /// Of what.
    metric: &'static str,
    /// What its quotient is called.
    name: &'static str,
    claimed: Published,
    standing: Standing,
}

impl Claim {
    fn figure(&self, figures: &[Figure]) -> Option<Figure> {
        let of = |scheduler| ours(figures, &id(self.background, self.command, scheduler), self.metric);
        // The start-up time is better if smaller, the throughput if larger.
        let values = if self.metric == "startup" { [self.cfq, BFQ] } else { [BFQ, self.cfq] }.map(of);
        let column = Column::new(self.name, "times", self.claimed, self.standing);
        quotient(&id(self.background, self.command, self.cfq), column, values)
    }
}

/// What is claimed of which cells.
///
/// Starts: five to nine times as fast as under 2.6.32, six to fourteen under 2.6.35, by background.
/// Throughput: 15 to 30 % more where there is nothing but throughput; at most 20 % less in all (konsole
/// beside sequential requests); up to 30 % more with shorter commands. The last two are measured while
/// commands start, each scheduler in its own time, which compares different loads; so the same time for both
/// is judged as well.
//= docs/reference/published-results.md#3-bfq-2010: R002-1 to R002-5
fn claims() -> Vec<Claim> {
    let range = |least, most, step| Published::Range { least, most, step };
    let standing = Standing::Judged(Bound::Claim);
    let mut claims = Vec::new();
    for (background, ..) in BACKGROUNDS {
        for (cfq, faster) in CFQ.into_iter().zip([range(5.0, 9.0, 1.0), range(6.0, 14.0, 1.0)]) {
            let mut claim = |command, metric, name, claimed| {
                claims.push(Claim { background, command, cfq, metric, name, claimed, standing });
            };
            claim(NONE, "throughput", "throughput_gain", range(1.15, 1.30, 0.01));
            for command in COMMANDS {
                claim(command, "startup", "faster", faster);
                let most = if command == "konsole" { f64::INFINITY } else { 1.30 };
                let gain = range(0.80, most, 0.01);
                claim(command, "throughput", "throughput_gain", gain);
                claim(command, "throughput_meanwhile", "meanwhile_gain", gain);
            }
        }
    }
    claims
}
