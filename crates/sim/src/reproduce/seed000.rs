//! Seed 000: "Time sliced CFQ io scheduler", December 2004.
//!
//! Cases 1 to 4 run n clients for 30 s on an IDE disk, each with a file of its own, O_DIRECT, under deadline, AS and
//! the first time-sliced CFQ. The mixed case sets a reader against a writer. The fsck figure and the hosting
//! provider's vmstat run compare the second time-sliced CFQ with others. The device and host are `ide2004` and
//! [`Host::of_2004`]; single-client rows calibrated them.

use super::{Check, Column, Figure, Options, Report, Row, ours, run_plain_rows};
use crate::host::Host;
use crate::metrics::{ClientStats, Result, rate};
use fairhead_core::Duration;

/// A row of cases 1 to 4: scheduler, clients, max_bw, min_bw, agg_bw (KiB/s), max_latency_ms.
type CaseRow = (&'static str, u32, f64, f64, f64, f64);

#[rustfmt::skip]
const CASE_1: [CaseRow; 12] = [
    ("deadline", 1, 19837.0, 19837.0, 19837.0, 22.0),
    ("deadline", 2, 2116.0, 2114.0, 4230.0, 22.0),
    ("deadline", 4, 361.0, 360.0, 1444.0, 41.0),
    ("deadline", 8, 150.0, 149.0, 1201.0, 111.0),
    ("as", 1, 19480.0, 19480.0, 19480.0, 30.0),
    ("as", 2, 9250.0, 9189.0, 18434.0, 261.0),
    ("as", 4, 4513.0, 4469.0, 17970.0, 488.0),
    ("as", 8, 2238.0, 2157.0, 17581.0, 934.0),
    ("cfq", 1, 19433.0, 19433.0, 19433.0, 9.0),
    ("cfq", 2, 8686.0, 8628.0, 17312.0, 90.0),
    ("cfq", 4, 4507.0, 4471.0, 17963.0, 254.0),
    ("cfq", 8, 2181.0, 2104.0, 17134.0, 578.0),
];

#[rustfmt::skip]
const CASE_2: [CaseRow; 12] = [
    ("deadline", 1, 7042.0, 7042.0, 7042.0, 20.0),
    ("deadline", 2, 3052.0, 3051.0, 6103.0, 28.0),
    ("deadline", 4, 1560.0, 1498.0, 6124.0, 101.0),
    ("deadline", 8, 802.0, 581.0, 5487.0, 231.0),
    ("as", 1, 7041.0, 7041.0, 7041.0, 18.0),
    ("as", 2, 4616.0, 2298.0, 6912.0, 270.0),
    ("as", 4, 3190.0, 928.0, 6901.0, 360.0),
    ("as", 8, 1524.0, 645.0, 6765.0, 636.0),
    ("cfq", 1, 7027.0, 7027.0, 7027.0, 19.0),
    ("cfq", 2, 3429.0, 3413.0, 6841.0, 107.0),
    ("cfq", 4, 1718.0, 1700.0, 6844.0, 282.0),
    ("cfq", 8, 875.0, 827.0, 6795.0, 627.0),
];

#[rustfmt::skip]
const CASE_3: [CaseRow; 12] = [
    ("deadline", 1, 13406.0, 13406.0, 13406.0, 21.0),
    ("deadline", 2, 1553.0, 1551.0, 3104.0, 171.0),
    ("deadline", 4, 690.0, 689.0, 2759.0, 116.0),
    ("deadline", 8, 329.0, 318.0, 2604.0, 106.0),
    ("as", 1, 13330.0, 13330.0, 13330.0, 21.0),
    ("as", 2, 2694.0, 2694.0, 5388.0, 77.0),
    ("as", 4, 1754.0, 17.0, 4988.0, 762.0),
    ("as", 8, 638.0, 342.0, 3866.0, 848.0),
    ("cfq", 1, 13267.0, 13267.0, 13267.0, 30.0),
    ("cfq", 2, 6352.0, 6150.0, 12459.0, 239.0),
    ("cfq", 4, 3230.0, 2945.0, 12524.0, 289.0),
    ("cfq", 8, 1640.0, 1640.0, 12564.0, 599.0),
];

#[rustfmt::skip]
const CASE_4: [CaseRow; 12] = [
    ("deadline", 1, 6749.0, 6749.0, 6749.0, 112.0),
    ("deadline", 2, 1299.0, 1277.0, 2574.0, 813.0),
    ("deadline", 4, 432.0, 418.0, 1715.0, 227.0),
    ("deadline", 8, 291.0, 247.0, 2147.0, 1723.0),
    ("as", 1, 4110.0, 4110.0, 4110.0, 114.0),
    ("as", 2, 815.0, 809.0, 1623.0, 631.0),
    ("as", 4, 482.0, 349.0, 1760.0, 606.0),
    ("as", 8, 476.0, 111.0, 2863.0, 752.0),
    ("cfq", 1, 4493.0, 4493.0, 4493.0, 129.0),
    ("cfq", 2, 1710.0, 1513.0, 3216.0, 321.0),
    ("cfq", 4, 521.0, 482.0, 2002.0, 476.0),
    ("cfq", 8, 938.0, 877.0, 7210.0, 927.0),
];

/// Which of cases 1 to 4.
type Case = usize;
const CASES: [(Case, &[CaseRow]); 4] = [(1, &CASE_1), (2, &CASE_2), (3, &CASE_3), (4, &CASE_4)];

pub(super) fn reproduce(options: &Options, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report> {
    let figures = run_plain_rows(&rows(), options, progress)?;
    let checks = if options.only.is_none() { checks(&figures) } else { vec![] };
    Ok(Report {
        source: "000",
        title: "time-sliced CFQ against deadline and AS (J. Axboe, 2004)",
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks,
        tables: vec![],
        notes: vec![],
    })
}

/// What the document calls a scheduler, as one of ours.
fn preset_of(scheduler: &str) -> &'static str {
    match scheduler {
        "deadline" => "deadline-2.6.9",
        "as" => "as-2.6.9",
        _ => "cfq-ts1",
    }
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> =
        CASES.iter().flat_map(|&(case, table)| table.iter().map(move |row| case_row(case, row))).collect();
    rows.extend(mixed_rows());
    rows.push(two_pairs_row());
    rows.extend(FSCK.iter().map(fsck_row));
    rows.push(vmstat_row("R000-V-old", "cfq-2.6.10", VMSTAT_OLD));
    rows.push(vmstat_row("R000-V-new", "cfq-ts2", VMSTAT_NEW));
    rows
}

fn case_row(case: Case, &(scheduler, clients, max, min, agg, latency): &CaseRow) -> Row {
    let one = clients == 1;
    let agg_tolerance = match (case, scheduler) {
        _ if one => None,
        (1 | 2, _) => Some(0.15),
        (3, "cfq") => Some(0.08),
        (3, _) => Some(0.40),
        _ => None,
    };
    // The device specification names these two as not explained. Cold block maps explain the second, and only in kind.
    let unexplained = case == 2 && scheduler == "deadline" && clients >= 4;
    let latency_tolerance = (case <= 2 && !one && !unexplained).then_some(0.25);
    let column = |metric, unit, published, tolerance| Column {
        calibration: unit == "KiB/s" && calibrates(case, scheduler, clients),
        tolerance,
        ..Column::listed(metric, unit, published)
    };
    Row {
        id: format!("R000-C{case}-{scheduler}-{clients}"),
        jobs: case_jobs(case, scheduler, clients),
        preset: preset_of(scheduler),
        disk: "ide2004",
        host: Host::of_2004,
        interval: None,
        columns: vec![
            column("max_bw", "KiB/s", max, None),
            column("min_bw", "KiB/s", min, None),
            column("agg_bw", "KiB/s", agg, agg_tolerance),
            column("max_latency_ms", "ms", latency, latency_tolerance),
        ],
        read_off: |outcome| {
            let bw = || outcome.clients.iter().map(kib_per_s);
            let latency = outcome.clients.iter().map(|c| ms(c.latency_max())).fold(0.0, f64::max);
            vec![bw().fold(0.0, f64::max), bw().fold(f64::INFINITY, f64::min), bw().sum(), latency]
        },
    }
}

/// Which rows had a hand in the model, and so predict nothing. One client: the host's and the drive's times, see
/// [`Host::of_2004`] and the disk preset. Several under deadline in cases 1 and 3: the structure of the drive's caches was
/// chosen with them in view (the device specification says so), and `ra_abort` with all three of case 1. Eight random
/// readers under deadline: that some block maps were not in memory ([`cold_files`]). They keep their tolerance.
fn calibrates(case: Case, scheduler: &str, clients: u32) -> bool {
    match (case, clients) {
        (1, 1) => true,
        (1 | 3, _) | (2, 8) | (_, 1) => scheduler == "deadline",
        _ => false,
    }
}

fn case_jobs(case: Case, scheduler: &str, clients: u32) -> String {
    let (rw, bs) = match case {
        1 => ("read", "4k"),
        2 => ("randread", "64k"),
        3 => ("write", "4k\nfallocate=none\nfh_layout=ext2"),
        _ => ("randwrite", "4k\nfallocate=none\nfh_layout=ext2"),
    };
    let cold = cold_files(case, scheduler, clients);
    let warm = clients - cold;
    let options = format!("rw={rw}\nbs={bs}\ndirect=1\nsize=1g\ntime_based\nruntime=30s\n");
    let mut jobs = format!("[global]\n{options}[client]\nnumjobs={warm}\n");
    if cold > 0 {
        jobs += &format!("[cold]\nnumjobs={cold}\nfh_metadata=cold\n");
    }
    jobs
}

/// How many of the clients read files whose block map is not in memory yet.
///
/// Deadline's runs came first, and with eight clients, and only then, its longest reads take two sweeps of the disk instead
/// of one, in both cases; in the random one the slowest client gets 0.72 of the fastest. A read that needs an
/// indirect block first does that. Half of the files is a guess, and the rows are marked as not predicted.
//= deviates cold-metadata
fn cold_files(case: Case, scheduler: &str, clients: u32) -> u32 {
    if case <= 2 && scheduler == "deadline" && clients == 8 { 4 } else { 0 }
}

/// A reader and a writer of 64 KiB: scheduler, reader's bandwidth (KiB/s) and longest call (ms), writer's.
const MIXED: [(&str, f64, f64, f64, f64); 3] = [
    ("deadline", 2520.0, 45.0, 1258.0, 85.0),
    ("as", 27985.0, 34.0, 64.0, 1042.0),
    ("cfq", 12703.0, 108.0, 9743.0, 89.0),
];

fn mixed_rows() -> Vec<Row> {
    let row = |&(scheduler, reader, reader_ms, writer, writer_ms): &(&'static str, f64, f64, f64, f64)| Row {
        id: format!("R000-M-{scheduler}"),
        jobs: mixed_jobs(1),
        preset: preset_of(scheduler),
        disk: "ide2004",
        host: Host::of_2004,
        interval: None,
        columns: vec![
            // The media rate of the outer zone was read off this one row: there is no single 64 KiB reader.
            Column { calibration: scheduler == "as", ..Column::listed("reader_KiBps", "KiB/s", reader) },
            Column::listed("reader_max_lat_ms", "ms", reader_ms),
            Column::listed("writer_KiBps", "KiB/s", writer),
            Column::listed("writer_max_lat_ms", "ms", writer_ms),
        ],
        read_off: |outcome| {
            outcome.clients.iter().flat_map(|c| [kib_per_s(c), ms(c.latency_max())]).collect()
        },
    };
    MIXED.iter().map(row).collect()
}

/// The files lie 4 GiB apart, as in the device specification's own runs of this case.
//= devices.md 8.2
fn mixed_jobs(pairs: u32) -> String {
    format!(
        "[global]\nbs=64k\ndirect=1\nsize=1g\ntime_based\nruntime=30s\nnumjobs={pairs}\n\
         [reader]\nrw=read\n\
         [writer]\nrw=write\noverwrite=1\nfh_layout=interleaved:32KiB\nfh_start=9000000sectors\n"
    )
}

/// Two readers and two writers under AS: "27MiB/sec aggregate read bandwidth, ~100KiB/sec write".
fn two_pairs_row() -> Row {
    Row {
        id: "R000-M2-as".into(),
        jobs: mixed_jobs(2),
        preset: preset_of("as"),
        disk: "ide2004",
        host: Host::of_2004,
        interval: None,
        columns: vec![Column::listed("read", "MiB/s", 27.0), Column::listed("write", "KiB/s", 100.0)],
        read_off: |outcome| {
            let sum =
                |name: &str| outcome.clients.iter().filter(|c| c.name == name).map(kib_per_s).sum::<f64>();
            vec![sum("reader") / 1024.0, sum("writer")]
        },
    }
}

/// fsck: scheduler (cfq is the second version), real_s, user_s, sys_s.
const FSCK: [(&str, f64, f64, f64); 3] =
    [("as", 30.594, 1.862, 5.214), ("deadline", 30.475, 1.855, 5.280), ("cfq", 27.921, 1.846, 5.648)];

/// CPU time is not a result of a disk model: what the model is given is what was published, and marked so.
fn fsck_row(&(scheduler, real, user, sys): &(&'static str, f64, f64, f64)) -> Row {
    let column =
        |metric, published, calibration| Column { calibration, ..Column::listed(metric, "s", published) };
    Row {
        id: format!("R000-F-{scheduler}"),
        jobs: "[fsck]\nfh_workload=fsck\n".into(),
        preset: if scheduler == "cfq" { "cfq-ts2" } else { preset_of(scheduler) },
        disk: "ide2004",
        host: Host::of_2004,
        interval: None,
        columns: vec![
            column("real_s", real, false),
            column("user_s", user, true),
            column("sys_s", sys, true),
        ],
        read_off: |outcome| {
            // 7.07 s of CPU time in all, of which a user's share of 26 %.
            //= devices.md 4.6, reference-results.md 1.6
            let cpu = 7.07;
            vec![ms(outcome.clients[0].elapsed) / 1000.0, cpu * 0.26, cpu * 0.74]
        },
    }
}

/// vmstat's bi and bo, five samples beside a streaming reader and a streaming writer through the page cache.
const VMSTAT_OLD: &[(&str, f64, f64)] = &[
    ("-1", 15232.0, 7360.0),
    ("-2", 18176.0, 9024.0),
    ("-3", 18816.0, 9524.0),
    ("-4", 13120.0, 6488.0),
    ("-5", 13056.0, 6440.0),
];
const VMSTAT_NEW: &[(&str, f64, f64)] =
    &[("-1", 55360.0, 5576.0), ("-2", 51200.0, 4480.0), ("-3", 55104.0, 4864.0), ("-4", 58240.0, 4992.0)];
/// The samples are taken when the page cache is full of dirty pages and both stream at their own pace.
const VMSTAT_FIRST_SECOND: usize = 40;

fn vmstat_row(id: &str, preset: &'static str, samples: &[(&'static str, f64, f64)]) -> Row {
    let columns = |&(suffix, bi, bo): &(&'static str, f64, f64)| {
        [("bi", bi), ("bo", bo)].map(|(metric, n)| Column { suffix, ..Column::listed(metric, "KiB/s", n) })
    };
    Row {
        id: id.to_owned(),
        jobs: "[global]\nbs=64k\nsize=6g\ntime_based\nruntime=46s\n[reader]\nrw=read\n[writer]\nrw=write\nfallocate=none\n"
            .into(),
        preset,
        // The published rates need a disk that streams twice as fast as the IDE drive.
        disk: "sata2009",
        host: Host::of_2004,
        interval: Some(Duration::from_secs(1)),
        columns: samples.iter().flat_map(columns).collect(),
        read_off: |outcome| {
            let seconds = outcome.disk_series.iter().skip(VMSTAT_FIRST_SECOND).take(5);
            seconds.flat_map(|p| [p.read_bytes, p.written_bytes]).map(|b| b as f64 / 1024.0).collect()
        },
    }
}

#[allow(clippy::cast_precision_loss, reason = "a bandwidth is far below 2^52")]
fn kib_per_s(client: &ClientStats) -> f64 {
    rate(client.bytes() * 10, client.elapsed) as f64 / 10_240.0
}

#[allow(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
fn ms(d: Duration) -> f64 {
    d.as_ns() as f64 / 1e6
}

// ---- properties ------------------------------------------------------------------------------------------------------

fn checks(figures: &[Figure]) -> Vec<Check> {
    let mut checks = vec![aggregate_error(figures)];
    checks.extend(fairness(figures));
    checks.extend(ordering(figures));
    checks.extend(mixed_checks(figures));
    checks
}

fn aggregate_error(figures: &[Figure]) -> Check {
    let errors: Vec<f64> = figures
        .iter()
        .filter(|f| f.metric == "agg_bw" && (f.row.contains("-C1-") || f.row.contains("-C2-")))
        .filter(|f| !f.row.ends_with("-1"))
        .filter_map(|f| f.error().map(|e| e.abs() * 100.0))
        .collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    Check {
        what: "cases 1 and 2, 18 multi-client aggregates: mean error at most 4 %, worst at most 15 %".into(),
        got: format!("mean {mean:.1} %, worst {worst:.1} %"),
        holds: errors.len() == 18 && mean <= 4.0 && worst <= 15.0,
        required: true,
    }
}

fn fairness(figures: &[Figure]) -> Vec<Check> {
    let ratio = |row: &str| ours(figures, row, "min_bw") / ours(figures, row, "max_bw");
    let mut checks = Vec::new();
    for case in 1..=2 {
        for n in [2, 4, 8] {
            let got = ratio(&format!("R000-C{case}-cfq-{n}"));
            checks.push(Check {
                what: format!("case {case}, {n} clients: cfq's slowest client at least 0.93 of its fastest"),
                got: format!("{got:.3}"),
                holds: got >= 0.93,
                required: true,
            });
        }
    }
    for n in [2, 4, 8] {
        let got = ratio(&format!("R000-C2-as-{n}"));
        checks.push(Check {
            what: format!("case 2, {n} clients: as is unfair, slowest at most 0.70 of fastest"),
            got: format!("{got:.3}"),
            holds: got <= 0.70,
            required: true,
        });
    }
    checks
}

/// At every count of clients the schedulers rank as published. Case 4 is listed only: its own single-client rows differ by
/// 64 % between schedulers, which no scheduler explains.
fn ordering(figures: &[Figure]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (case, table) in [(3, &CASE_3), (4, &CASE_4)] {
        for n in [2, 4, 8] {
            let mut published: Vec<_> = table.iter().filter(|r| r.1 == n).map(|r| (r.4, r.0)).collect();
            published.sort_by(|a, b| b.0.total_cmp(&a.0));
            let agg = |s: &str| ours(figures, &format!("R000-C{case}-{s}-{n}"), "agg_bw");
            let names: Vec<&str> = published.iter().map(|p| p.1).collect();
            let values: Vec<f64> = names.iter().map(|s| agg(s)).collect();
            checks.push(Check {
                what: format!("case {case}, {n} clients: {}", names.join(" > ")),
                got: values.iter().map(|v| format!("{v:.0}")).collect::<Vec<_>>().join(", "),
                holds: values.windows(2).all(|w| w[0] > w[1]),
                required: case == 3,
            });
        }
    }
    checks
}

fn mixed_checks(figures: &[Figure]) -> Vec<Check> {
    let reader = |s: &str| ours(figures, &format!("R000-M-{s}"), "reader_KiBps");
    let writer = |s: &str| ours(figures, &format!("R000-M-{s}"), "writer_KiBps");
    let ratio = reader("deadline") / writer("deadline");
    let read_ahead = |which: &str| {
        let bi = || figures.iter().filter(|f| f.row.contains(&format!("-V-{which}-")) && f.metric == "bi");
        bi().map(|f| f.ours).sum::<f64>() / bi().count() as f64
    };
    let share = writer("cfq") / (writer("cfq") + reader("cfq"));
    vec![
        Check {
            what: "reader against writer: deadline gives 2 : 1".into(),
            got: format!("{ratio:.2} : 1"),
            holds: (ratio - 2.0).abs() <= 0.1,
            required: true,
        },
        Check {
            what: "reader against writer: as starves the writer (at most 150 KiB/s)".into(),
            got: format!("{:.0} KiB/s", writer("as")),
            holds: writer("as") <= 150.0,
            required: true,
        },
        Check {
            what:
                "vmstat run: the streaming reader at least 3 times as fast under cfq-ts2 as under cfq-2.6.10"
                    .into(),
            got: format!("{:.2} times", read_ahead("new") / read_ahead("old")),
            holds: read_ahead("new") / read_ahead("old") >= 3.0,
            required: true,
        },
        Check {
            what: "reader against writer: cfq gives the writer at least 35 % of the total".into(),
            got: format!("{:.1} %", share * 100.0),
            holds: share >= 0.35,
            required: true,
        },
    ]
}
