//! `io-controller-v9-2009`: "IO scheduler based IO controller V9", September 2009.
//!
//! Two databases, each in a group of its own, are asked at once to count the rows of a table of 880 MB: two
//! scans of a disk, and how long each takes. The disk is not stated; it is `sata2009` here, and the host
//! [`Host::of_2010`], whose kernel is two versions younger than the source's. CFQ without the controller is
//! that of 2.6.33, the nearest there is; under the controller it is `cfq+groups`.
//!
//! What calibrated these, and so predicts nothing: where on the disk the tables lie, on the 22.5 s of a scan
//! alone; and that a scan has one window of read-ahead in flight, on noop's and deadline's rows without the
//! controller (docs/reference/hosts.md#one-window-per-scan).
//!
//! Two alternating scans lock to the platter: a row is a matter of whole revolutions, and moves with the
//! angle between the two tables. It is drawn anew in each layout.
//!
//! # The question at the end
//!
//! The source ends with a question: how long do small random queries of one group take while four or five
//! `dd` read in another? It has no answer. Ours was set up as follows before any of it ran.
//!
//! ```text
//!   group queries   8k ► 8k ► 8k ► 8k ► 8k ► think 100 ms ► 8k ► …       one client, anywhere in the table of 880 MB
//!   group readers   ══════ dd bs=1M ══════                               four or five, each a file of 1 GiB
//!                   0 s   5 s: queries begin           125 s: end
//! ```
//!
//! - A query is an index scan: five pages of 8 KiB, each of which tells where the next one is. Two are of the
//!   index, whose upper levels are in memory, three of the table. One read would be about the disk; many
//!   would be a scan.
//! - Between two queries its client thinks for 100 ms: its group runs empty for longer than any scheduler
//!   idles, as that of a user at a terminal does. What it then gets shows how the scheduler treats a group
//!   that comes back.
//! - The readers have 128 KiB of read-ahead, as `dd` gives the kernel no advice, and calls of 1 MiB. They are
//!   in their stride after 5 s. 120 s are a few hundred queries; the table and the files lie in one zone, so
//!   seeks are as short as the source's.
//! - Both groups have the same weight and class. What is without the controller has no groups at all.
//
//= docs/reference/published-results.md#4-io-controller-v9-2009, docs/reference/devices.md#32-sata2009
//= docs/reference/hosts.md#workloads, docs/reference/devices.md#32-sata2009
//= docs/reference/groups.md#6-schedulers-in-the-layer, docs/reference/groups.md#10-expected-results

use super::Misses;
use super::causes;
use super::{Bound, Check, Column, Figure, Options, Published, Report, Row, Standing, Table, Weight, ours};
use fairhead_core::Duration;
use fairhead_sim::Host;
use fairhead_sim::metrics::{ClientStats, OpStats, Outcome};

/// Where the first table lies: in the zone of 39.1 MB/s.
//= docs/reference/devices.md#32-sata2009
const FIRST_TABLE: u64 = 445_000_000;
/// From the first table to the second: 1.0 GiB.
//= docs/reference/devices.md#32-sata2009
const APART: u64 = 1 << 21;

/// What counts as reproduced: of two scans with equal weights, and with other weights or classes.
//= the project's bars for these rows
const EQUAL_BOUND: Bound = Bound::Relative(0.08);
const BOUND: Bound = Bound::Relative(0.05);
/// How much longer noop and deadline take without the controller, at least.
const GAIN: f64 = 2.5;
/// How long a scan alone takes, "about".
const ALONE_S: f64 = 22.5;

/// The columns of a run with the controller: version 8's two scans and version 9's, which are one simulation
/// here.
type Versions = [f64; 4];

/// What the document calls a scheduler, ours without the controller and with it, the seconds without it and
/// with it.
//= docs/reference/published-results.md#41-equal-weights
const EQUAL: [(&str, &str, &str, [f64; 2], Versions); 4] = [
    ("cfq", "cfq-2.6.33", "cfq+groups", [48.4, 48.4], [48.2, 48.2, 48.1, 48.5]),
    ("noop", "noop", "noop+groups", [138.0, 138.0], [48.3, 48.4, 48.5, 48.8]),
    ("as", "as", "as+groups", [46.3, 47.0], [48.5, 48.7, 48.3, 48.5]),
    ("deadline", "deadline", "deadline+groups", [137.1, 137.1], [48.2, 48.3, 48.3, 48.5]),
];

/// Weights and the seconds, under CFQ.
//= docs/reference/published-results.md#42-different-weights
const WEIGHTS: [([u32; 2], Versions); 2] =
    [([1000, 500], [35.6, 46.7, 35.6, 46.7]), ([1000, 250], [29.2, 45.8, 29.2, 45.6])];

/// Classes and the seconds, under CFQ.
//= docs/reference/published-results.md#43-different-policies
const CLASSES: [([&str; 2], Versions); 2] =
    [(["rt", "be"], [22.5, 45.3, 22.4, 45.0]), (["be", "idle"], [22.6, 44.8, 22.4, 45.0])];

/// The scheduler of all but the equal weights; and ours that has groups of its own, without a published row.
const CFQ: &str = "cfq+groups";
const NATIVE: &str = "cfq";

/// Disk time in ms in each 2 s, of weights 1000 and 500.
//= docs/reference/published-results.md#44-disk-time-every-2-s
#[rustfmt::skip]
const WATCH: [[f64; 2]; 25] = [
    [805.0, 301.0], [1209.0, 714.0], [1306.0, 503.0], [1210.0, 604.0], [1207.0, 605.0],
    [1209.0, 605.0], [1206.0, 606.0], [1109.0, 607.0], [1213.0, 603.0], [1214.0, 608.0],
    [1211.0, 603.0], [1110.0, 603.0], [1210.0, 605.0], [1211.0, 601.0], [1210.0, 607.0],
    [1204.0, 604.0], [1207.0, 605.0], [1089.0, 708.0], [0.0, 2124.0], [0.0, 1915.0],
    [0.0, 1919.0], [0.0, 2023.0], [0.0, 1925.0], [0.0, 705.0], [0.0, 0.0],
];
const WATCH_ID: &str = "R003-watch";
const PERIOD: Duration = Duration::from_secs(2);
/// When the scans begin after the first look. The source's began somewhere in the first period, too; its
/// first and last common sample count for nothing.
const WATCH_START: &str = "800ms";
/// What the ratio over the overlap may be.
const RATIO: std::ops::RangeInclusive<f64> = 1.9..=2.1;
/// Of the samples of the overlap, in percent, how many are whole numbers of slices, at least; and what is
/// whole.
const WHOLE_PCT: f64 = 90.0;
const WHOLE: f64 = 0.1;

/// Schedulers of the question, and whether they have groups.
const QUESTION: [(&str, &str, bool); 11] = [
    ("noop", "noop", false),
    ("noop+groups", "noop+groups", true),
    ("deadline", "deadline", false),
    ("deadline+groups", "deadline+groups", true),
    ("as", "as", false),
    ("as+groups", "as+groups", true),
    ("cfq", "cfq", false),
    ("cfq+groups", "cfq+groups", true),
    ("cfq-native", "cfq", true),
    ("bfq", "bfq", false),
    ("bfq-native", "bfq", true),
];
const READERS: [u32; 2] = [4, 5];

pub(super) fn report(figures: Vec<Figure>, options: &Options) -> Report {
    let checks = if options.only.is_none() { checks(&figures) } else { vec![] };
    Report {
        source: "io-controller-v9-2009",
        title: "an IO controller over four schedulers (J. Marchand and V. Goyal, 2009)".into(),
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks,
        tables: vec![
            Table { rows: "R003-watch-", title: "disk time in each 2 s, weights 1000 and 500" },
            Table {
                rows: "R003-Q",
                title: "queries of five random reads beside four and five dd (ours, new: no published figures)",
            },
        ],
        notes: vec![
            "two scans that alternate lock to the platter: the rows without the controller move by whole revolutions with the layout",
            "rows that end in 'native' are schedulers that have groups of their own",
            "versions 8 and 9 of the controller are one simulation: it is held against both, and counts once",
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
    (causes::SAMPLES, &[
        ("R003-watch-03", "test2", 0.201),
        ("R003-watch-08", "test1", 0.136),
        ("R003-watch-12", "test1", 0.117),
        ("R003-watch-19", "test2", -0.073),
    ]),
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![alone()];
    for (name, without, with, published, versions) in EQUAL {
        rows.push(without_controller(name, without, published));
        rows.push(row(
            format!("R003-E-{name}"),
            with,
            weights([1000, 1000]),
            controlled(versions, EQUAL_BOUND),
        ));
    }
    rows.push(native("R003-E-native", weights([1000, 1000])));
    for (w, versions) in WEIGHTS {
        let id = format!("R003-W-{}-{}", w[0], w[1]);
        rows.push(native(&format!("{id}-native"), weights(w)));
        rows.insert(rows.len() - 1, row(id, CFQ, weights(w), controlled(versions, BOUND)));
    }
    for (c, versions) in CLASSES {
        let id = format!("R003-P-{}-{}", c[0], c[1]).to_uppercase();
        rows.push(row(id, CFQ, classes(c), controlled(versions, BOUND)));
    }
    rows.push(watched());
    rows.push(question("alone", "noop", false, 0));
    for n in READERS {
        rows.extend(QUESTION.map(|(name, preset, groups)| question(name, preset, groups, n)));
    }
    rows
}

/// A scan's seconds.
fn seconds(metric: &'static str, published: f64, standing: Standing) -> Column {
    Column::new(metric, "s", Published::Number(published), standing)
}

fn row(id: String, preset: &'static str, jobs: String, columns: Vec<Column>) -> Row {
    Row { id, jobs, preset, disk: "sata2009", host: Host::of_2010, interval: None, columns, read_off: times }
}

fn alone() -> Row {
    let column = seconds("took", ALONE_S, Standing::Calibrates(Some(Bound::Relative(0.02))));
    row("R003-alone".to_owned(), "cfq-2.6.33", scan("first", FIRST_TABLE, ""), vec![column])
}

fn without_controller(name: &str, preset: &'static str, published: [f64; 2]) -> Row {
    let standing = match name {
        "noop" | "deadline" => Standing::Calibrates(Some(EQUAL_BOUND)),
        _ => Standing::Judged(EQUAL_BOUND),
    };
    let columns = vec![
        seconds("without_first", published[0], standing),
        seconds("without_second", published[1], standing),
    ];
    row(format!("R003-E-{name}"), preset, two_scans(["", ""]), columns)
}

/// Both versions' numbers: ours is one simulation, and counts once.
fn controlled([v8_first, v8_second, v9_first, v9_second]: Versions, bound: Bound) -> Vec<Column> {
    let column = |metric, v8, v9| Column::new(metric, "s", Published::Twice(v8, v9), Standing::Judged(bound));
    vec![column("first", v8_first, v9_first), column("second", v8_second, v9_second)]
}

fn native(id: &str, jobs: String) -> Row {
    row(id.to_owned(), NATIVE, jobs, vec![Column::ours("first", "s"), Column::ours("second", "s")])
}

fn scan(name: &str, at: u64, options: &str) -> String {
    format!("[{name}]\nfh_workload=dbscan\nfh_start={at}sectors\n{options}")
}

fn two_scans(options: [&str; 2]) -> String {
    scan("first", FIRST_TABLE, options[0]) + &scan("second", FIRST_TABLE + APART, options[1])
}

fn weights([first, second]: [u32; 2]) -> String {
    let options = |name, weight| format!("cgroup={name}\ncgroup_weight={weight}\n");
    two_scans([&options("test1", first), &options("test2", second)])
}

fn classes([first, second]: [&str; 2]) -> String {
    let options = |name, class| format!("cgroup={name}\n#!fh_cgroup=class={class}\n");
    two_scans([&options("test1", first), &options("test2", second)])
}

/// How long each client took.
fn times(outcome: &Outcome) -> Vec<f64> {
    outcome.clients.iter().map(|c| s(c.elapsed)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52 ns")]
fn s(time: Duration) -> f64 {
    time.as_ns() as f64 / 1e9
}

fn ms(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, |t| s(t) * 1e3)
}

// ---- disk time, watched ----------------------------------------------------------------------------------

fn watched() -> Row {
    //= docs/reference/published-results.md#44-disk-time-every-2-s (derived)
    //= docs/reference/published-results.md#7-properties P13
    let mut columns = vec![
        Column::judged("ratio", "", 1.988, Bound::Relative(0.03)),
        Column::judged("slice", "ms", 100.7, Bound::Relative(0.02)),
        Column::ours("whole_slices", "%"),
    ];
    for (i, times) in WATCH.into_iter().enumerate() {
        columns.extend(sample(i, times));
    }
    Row {
        interval: Some(PERIOD),
        read_off: disk_times,
        ..row(
            WATCH_ID.to_owned(),
            CFQ,
            format!("[global]\nstartdelay={WATCH_START}\n{}", weights([1000, 500])),
            columns,
        )
    }
}

/// A sample's columns: both disk times, and their quotient where the source has one.
fn sample(i: usize, [first, second]: [f64; 2]) -> [Column; 3] {
    let standing = match i {
        0 => Standing::Listed("the source's scans began at an unknown moment of this sample"),
        17 => Standing::Listed("the source's first scan ended at an unknown moment of this sample"),
        23 => Standing::Listed("the source's second scan ended at an unknown moment of this sample"),
        // A slice counts where it ends.
        _ => Standing::Judged(Bound::Absolute(SLICE_MS)),
    };
    let time = |metric, published| Column::new(metric, "ms", Published::Number(published), standing);
    let ratio = if first > 0.0 {
        Column::listed("ratio", "", first / second, "the quotient of the two times beside it")
    } else {
        Column::ours("ratio", "")
    };
    [time("test1", first), time("test2", second), ratio].map(|c| Column { suffix: SUFFIX[i], ..c })
}

/// How long a slice is, by the source's samples.
//= docs/reference/published-results.md#44-disk-time-every-2-s (derived)
const SLICE_MS: f64 = 100.7;

/// Sample by sample.
const SUFFIX: [&str; WATCH.len()] = [
    "-01", "-02", "-03", "-04", "-05", "-06", "-07", "-08", "-09", "-10", "-11", "-12", "-13", "-14", "-15",
    "-16", "-17", "-18", "-19", "-20", "-21", "-22", "-23", "-24", "-25",
];

/// The ratio in the overlap, the slice, how many of the overlap's samples are whole slices, and all samples.
fn disk_times(outcome: &Outcome) -> Vec<f64> {
    let of = |path: &str| outcome.groups.iter().position(|g| g.path == path);
    let (Some(first), Some(second)) = (of("test1"), of("test2")) else {
        return vec![f64::NAN; 3 + 3 * WATCH.len()];
    };
    let samples: Vec<[f64; 2]> =
        outcome.watch.iter().map(|w| [ms(Some(w[first])), ms(Some(w[second]))]).collect();
    let both = samples.iter().filter(|[a, b]| *a > 0.0 && *b > 0.0).count();
    // Not the first and the last in which both run: they run in a part of these only.
    let overlap = samples.get(1..both.saturating_sub(1).max(1)).unwrap_or_default();
    let sum = |i: usize| overlap.iter().map(|s| s[i]).sum::<f64>();
    let times: Vec<f64> = overlap.iter().flatten().copied().collect();
    let (slice, whole) = slices(&times);
    let mut values = vec![sum(0) / sum(1), slice, whole];
    for i in 0..WATCH.len() {
        let [a, b] = samples.get(i).copied().unwrap_or_default();
        values.extend([a, b, a / b]);
    }
    values
}

/// The slice between 95 and 110 ms of which most of the times are whole numbers, and how many of them are, in
/// percent.
fn slices(times: &[f64]) -> (f64, f64) {
    let whole =
        |slice: f64| times.iter().filter(|&&t| (t / slice - (t / slice).round()).abs() <= WHOLE).count();
    let off = |slice: f64| times.iter().map(|t| (t / slice - (t / slice).round()).abs()).sum::<f64>();
    let candidates = (950..=1100).map(|tenths| f64::from(tenths) / 10.0);
    let best = candidates.min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(100.0);
    #[allow(clippy::cast_precision_loss, reason = "a few dozen")]
    (best, whole(best) as f64 * 100.0 / times.len().max(1) as f64)
}

// ---- the question ----------------------------------------------------------------------------------------

fn question(name: &str, preset: &'static str, groups: bool, readers: u32) -> Row {
    let group = |name| if groups { format!("cgroup={name}\n") } else { String::new() };
    let mut jobs = format!(
        "[queries]\nfh_start={FIRST_TABLE}sectors\nrw=randread\nnorandommap\nbs=8k\nsize=880000000\nfadvise_hint=0\n\
         fh_cpu=9us\nfh_query=5\nthinktime=100ms\nthinktime_blocks=5\nstartdelay=5s\ntime_based\nruntime=120s\n{}",
        group("queries")
    );
    if readers > 0 {
        jobs += &format!(
            "[readers]\nrw=read\nbs=1m\nsize=1g\nfadvise_hint=0\nnumjobs={readers}\nramp_time=5s\ntime_based\nruntime=120s\n{}",
            group("readers")
        );
    }
    let time = |metric| Column::ours(metric, "ms");
    let mut columns = vec![time("mean"), time("median"), time("p99"), time("max")];
    columns.push(Column::ours("readers", "MB/s"));
    Row { read_off: latencies, ..row(format!("R003-Q{readers}-{name}"), preset, jobs, columns) }
}

/// The queries' latencies and the readers' throughput.
fn latencies(outcome: &Outcome) -> Vec<f64> {
    let (queries, readers): (Vec<&ClientStats>, Vec<&ClientStats>) =
        outcome.clients.iter().partition(|c| c.name == "queries");
    let reads = queries.first().map(|c| &c.read).filter(|reads| reads.calls > 0);
    let percentile = |percent| ms(reads.and_then(|reads| reads.percentile(percent)));
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let throughput = readers.iter().map(|c| c.bandwidth()).sum::<u64>() as f64 / 1e6;
    let (mean, longest) = (reads.and_then(OpStats::latency_mean), reads.map(|reads| reads.latency_max));
    vec![ms(mean), percentile(50.0), percentile(99.0), ms(longest), throughput]
}

// ---- properties ------------------------------------------------------------------------------------------

fn checks(figures: &[Figure]) -> Vec<Check> {
    let mut checks: Vec<Check> = ["noop", "deadline"].map(|name| gain(figures, name)).into();
    let ratio = ours(figures, WATCH_ID, "ratio");
    checks.push(Check {
        what: "weights 1000 and 500: disk times in the overlap are 1.9 to 2.1 to one".to_owned(),
        got: format!("{ratio:.3}"),
        holds: RATIO.contains(&ratio),
        weight: Weight::Required,
    });
    let (slice, whole) = (ours(figures, WATCH_ID, "slice"), ours(figures, WATCH_ID, "whole_slices"));
    checks.push(Check {
        what: format!("at least {WHOLE_PCT} % of its samples are whole slices of about 100.7 ms"),
        got: format!("{whole:.0} % of {slice:.1} ms"),
        holds: whole >= WHOLE_PCT,
        weight: Weight::Required,
    });
    for n in READERS {
        checks.extend(QUESTION.iter().filter(|q| q.2).map(|&(name, ..)| answer(figures, name, n)));
    }
    checks
}

fn gain(figures: &[Figure], name: &str) -> Check {
    let row = format!("R003-E-{name}");
    let times = ours(figures, &row, "without_second") / ours(figures, &row, "second");
    Check {
        what: format!("{name}: two scans take at least {GAIN} times as long without the controller"),
        got: format!("{times:.2} times"),
        holds: times >= GAIN,
        weight: Weight::Required,
    }
}

/// Whether groups make queries quicker.
fn answer(figures: &[Figure], name: &str, readers: u32) -> Check {
    let mean = |name: &str| ours(figures, &format!("R003-Q{readers}-{name}"), "mean");
    let without = name.split(['+', '-']).next().unwrap_or(name);
    let (before, after) = (mean(without), mean(name));
    Check {
        what: format!("beside {readers} dd a query is quicker with groups under {name}"),
        got: format!("{after:.0} ms, without {before:.0} ms"),
        holds: after < before,
        weight: Weight::Listed("the source has the question and no answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_sim::job;

    #[test]
    fn the_samples_add_up_as_the_source_has_them() {
        // Totals, and the ratio while both run.
        //= docs/reference/published-results.md#44-disk-time-every-2-s (derived)
        let sum = |range: std::ops::Range<usize>, i: usize| WATCH[range].iter().map(|s| s[i]).sum::<f64>();
        assert_eq!((sum(0..25, 0), sum(0..25, 1)), (21_140.0, 21_303.0));
        assert!((sum(0..18, 0) / sum(0..18, 1) - 1.977).abs() < 5e-4);
        assert!((sum(1..17, 0) / sum(1..17, 1) - 1.988).abs() < 5e-4);
    }

    #[test]
    fn whole_slices_are_told_from_any_times() {
        // The source's own samples of the overlap, without the first and the last.
        let theirs: Vec<f64> = WATCH[1..17].iter().flatten().copied().collect();
        let (slice, whole) = slices(&theirs);
        assert!((100.2..101.2).contains(&slice) && whole >= WHOLE_PCT, "{slice} {whole}");
        // What a fluid would have got.
        let fluid: Vec<f64> =
            (0..32).map(|i| if i % 2 == 0 { 1205.0 } else { 602.0 } + f64::from(i * 17 % 90)).collect();
        assert!(slices(&fluid).1 < 60.0, "{:?}", slices(&fluid));
        assert_eq!(slices(&[]).1, 0.0);
    }

    #[test]
    fn every_row_is_a_job_file_and_has_an_id_of_its_own() {
        let rows = rows();
        for (i, row) in rows.iter().enumerate() {
            let jobs = job::parse(&row.jobs, &row.id).unwrap();
            assert!(jobs.notes.is_empty(), "{}: {:?}", row.id, jobs.notes);
            let same = |r: &&Row| r.id == row.id && r.preset == row.preset;
            assert_eq!(rows[..i].iter().find(same).map(|r| &r.id), None);
        }
    }
}
