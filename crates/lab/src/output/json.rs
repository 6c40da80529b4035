//! JSON of our own: one object with a `runs` array, a run per scheduler. It uses fio's names and units where
//! fio has the field: `bw` in KiB/s, `bw_bytes` in bytes/s, `runtime` in ms, everything `_ns` in nanoseconds.
//! What both have is made here; the module `fio` beside this one has fio's own layout.
//
//= fio-3.33 stat.c and json output

use fairhead_core::Duration;
use fairhead_core::config::{Shown, Unit as TunableUnit};
use fairhead_sim::Outcome;
use fairhead_sim::job::{Job, JobFile};
use fairhead_sim::metrics::{ClientStats, DiskOutcome, DiskStats, OpStats, StartUp, Steadiness, rate};
use serde_json::{Map, Value, json};

use super::{Export, Report, Sum, missed};
use crate::Scheduler;

/// The percentiles that fio reports by default.
//= fio-3.33 HOWTO percentile_list
pub(super) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Our own layout.
pub struct Json;

impl Export for Json {
    fn render(&self, report: &Report<'_>) -> String {
        pretty(&Self::value(report))
    }
}

impl Json {
    /// As a value.
    #[must_use]
    pub fn value(report: &Report<'_>) -> Value {
        let plan = report.plan;
        let runs: Vec<Value> =
            plan.schedulers.iter().zip(report.outcomes).map(|(s, o)| run(report, s, o)).collect();
        let runs = super::why::json(report, runs);
        json!({
            "fairhead version": env!("CARGO_PKG_VERSION"),
            "job_file": report.jobs().file_name,
            "disk": plan.disk.0,
            "host": plan.host.0,
            "seed": plan.seed,
            "notes": report.jobs().notes,
            "runs": runs,
        })
    }
}

/// A value as text, with a line break at its end.
#[must_use]
pub fn pretty(value: &Value) -> String {
    // Values made of maps with text keys and finite numbers can always be written.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A scheduler's run.
fn run(report: &Report<'_>, scheduler: &Scheduler, o: &Outcome) -> Value {
    let jobs = report.jobs();
    let per_job: Vec<Value> = jobs
        .jobs
        .iter()
        .enumerate()
        .map(|(i, job)| {
            let sum = Sum::of(o.clients.iter().filter(|c| c.job == i));
            let mut entry = json!({
                "jobname": job.name,
                "groupid": job.group,
                "clients": sum.clients,
                "elapsed_ns": sum.elapsed.as_ns(),
                "client_min_over_max_bw": sum.fairness_permille.map(thousandths),
            });
            let shown = Shows { bins: false, ..Shows::of(job) };
            directions(&mut entry, &sum, &shown);
            syncs(&mut entry, &sum, &shown);
            together(&mut entry, &sum);
            missed::add(&mut entry, job, o.clients.iter().filter(|c| c.job == i));
            programs(&mut entry, &sum);
            entry
        })
        .collect();
    let clients: Vec<Value> = o.clients.iter().map(|c| client(jobs, c)).collect();
    let mut entry = json!({
        "scheduler": o.scheduler,
        "tunables": tunables(scheduler),
        "elapsed_ns": o.elapsed.as_ns(),
        "events": o.events,
        "notes": o.notes.iter().filter(|n| !jobs.notes.contains(n)).collect::<Vec<_>>(),
        "jobs": per_job,
        "clients": clients,
        "cgroups": super::groups::json(o),
        "cgroups_not_kept": o.groups_not_kept,
        "disk": disk(&o.disk, o),
        "cpu": cpu(o),
        "watch": report.plan.watch.map(|interval| super::watch::json(o, interval)),
        "series": series(report, o),
    });
    if !o.disks.is_empty() {
        let models = jobs.model_names(&report.plan.of_run);
        entry["disks"] = o.disks.iter().zip(models).map(|(d, model)| one_disk(d, model, o)).collect();
    }
    entry
}

/// One of several disks.
fn one_disk(d: &DiskOutcome, model: &str, o: &Outcome) -> Value {
    let mut entry = disk(&d.stats, o);
    for (key, value) in [("name", d.label.as_str()), ("model", model), ("scheduler", &d.scheduler)] {
        entry[key] = json!(value);
    }
    entry
}

fn client(jobs: &JobFile, c: &ClientStats) -> Value {
    let mut entry = json!({
        "jobname": c.name,
        "job": c.job,
        "clone": c.clone,
        "groupid": c.group,
        "start_ns": c.started.as_ns(),
        "elapsed_ns": c.elapsed.as_ns(),
    });
    let sum = Sum::of(std::iter::once(c));
    let shown = Shows { bins: false, ..Shows::of(&jobs.jobs[c.job]) };
    directions(&mut entry, &sum, &shown);
    syncs(&mut entry, &sum, &shown);
    together(&mut entry, &sum);
    programs(&mut entry, &sum);
    entry
}

/// Adds fio's `sync`: what fsync and fdatasync took. As with fio, `total_ios` counts fsyncs only, and those
/// of `end_fsync` and `fsync_on_close` are not in it.
//= fio-3.33 json output: with fdatasync=1, total_ios is 0 and N is 15
pub(super) fn syncs(entry: &mut Value, sum: &Sum, shown: &Shows) {
    let percentiles = shown.of_completion || shown.of_all;
    let lat = latency(&sum.sync_of_load, shown, percentiles);
    entry["sync"] = json!({ "total_ios": sum.fsyncs, "lat_ns": lat });
}

/// Adds what was moved while all jobs beside it ran; null if it ran alone.
fn together(entry: &mut Value, sum: &Sum) {
    entry["together"] = sum.together.map_or(
        Value::Null,
        |t| json!({ "span_ns": t.span.as_ns(), "bytes": t.bytes, "bw_bytes": rate(t.bytes, t.span) }),
    );
}

/// Adds what only some jobs have: `steadystate`, and what programs tell of themselves, `startup_time` (the
/// mean, each start-up's, and whether it was given up), `replayed`, and `frames`.
pub(crate) fn programs(entry: &mut Value, sum: &Sum) {
    let Value::Object(map) = entry else { return };
    if let Some(steady) = &sum.steady {
        map.insert("steadystate".to_owned(), steadystate(steady));
    }
    if let Some(mean) = StartUp::mean(sum.startups.iter().copied()) {
        map.insert(
            "startup_time".to_owned(),
            json!({
                "mean_ns": mean.took.as_ns(),
                "ns": sum.startups.iter().map(|s| s.took.as_ns()).collect::<Vec<_>>(),
                "timed_out": sum.startups.iter().map(|s| !s.finished).collect::<Vec<_>>(),
            }),
        );
    }
    if let Some(r) = &sum.replayed {
        map.insert(
            "replayed".to_owned(),
            json!({
                "recorded": r.recorded,
                "made": r.made,
                "late": r.late,
                "late_mean_ns": r.late_mean().as_ns(),
                "late_max_ns": r.late_max.as_ns(),
                "held": r.held,
                "moved": r.moved,
                "cut": r.cut,
            }),
        );
    }
    if let Some(f) = sum.frames {
        map.insert("frames".to_owned(), json!(f.all()));
        map.insert("dropped_frames".to_owned(), json!(f.dropped));
        map.insert("drop_rate_percent".to_owned(), json!(thousandths(f.drop_rate())));
    }
}

/// fio's `steadystate`.
//= fio-3.33 json output, seen
fn steadystate(s: &Steadiness) -> Value {
    let unit = if s.criterion.in_percent { "%" } else { "" };
    let (iops, bw) = s.means();
    let by_slope = s.criterion.by_slope;
    let off = |is_meant: bool| if is_meant { s.off } else { 0.0 };
    json!({
        "ss": format!("{}:{:.6}{unit}", s.criterion.word(), s.criterion.limit),
        "duration": s.criterion.duration.as_ns() / 1_000_000_000,
        "attained": u8::from(s.attained),
        "criterion": format!("{:.6}{unit}", s.figure),
        "max_deviation": off(!by_slope),
        "slope": off(by_slope),
        "data": {
            "bw_mean": bw,
            "iops_mean": iops,
            "iops": s.samples.iter().map(|s| s.0).collect::<Vec<_>>(),
            "bw": s.samples.iter().map(|s| s.1).collect::<Vec<_>>(),
        },
    })
}

/// The tunables under their names with the unit.
fn tunables(s: &Scheduler) -> Value {
    let mut map = Map::new();
    for t in s.config.list() {
        let raw = s.config.get(t.name).unwrap_or(0);
        let (suffix, value) = match t.unit {
            TunableUnit::Time => ("_ns", json!(raw)),
            TunableUnit::KiB => ("_kib", json!(raw)),
            TunableUnit::Sectors => ("_sectors", json!(raw)),
            TunableUnit::Count | TunableUnit::Switch => ("", json!(raw)),
            TunableUnit::Choice(_) => ("", json!(Shown(t.unit, raw).to_string())),
        };
        map.insert(format!("{}{suffix}", t.name), value);
    }
    Value::Object(map)
}

/// What the processors did; `null` on hosts whose lab does not tell.
fn cpu(o: &Outcome) -> Value {
    let (cpu, all) = (&o.cpu, o.elapsed * u64::from(o.cpus));
    if cpu.total().is_zero() {
        return Value::Null;
    }
    json!({
        "cpus": o.cpus,
        "busy_ns": o.cpu_busy.as_ns(),
        "busy_percent": percent(o.cpu_busy, all),
        "user_ns": cpu.user.as_ns(),
        "submit_ns": cpu.submit.as_ns(),
        "complete_ns": cpu.complete.as_ns(),
        "scheduler_ns": cpu.scheduler.as_ns(),
        "lock_wait_ns": cpu.lock_wait.as_ns(),
        "lock_wait_percent": percent(cpu.lock_wait, cpu.total()),
        "lock_held_ns": o.disk.lock_held.as_ns(),
        "lock_held_percent": percent(o.disk.lock_held, o.elapsed),
    })
}

fn disk(d: &DiskStats, o: &Outcome) -> Value {
    let c = &d.counters;
    json!({
        "issued": d.issued,
        "merged": d.merged,
        "busy_ns": d.busy.as_ns(),
        "idled_on_purpose_ns": d.idled.as_ns(),
        "util_percent": percent(d.busy, o.elapsed),
        "reads": c.reads,
        "writes": c.writes,
        "flushes": c.flushes,
        "read_bytes": c.bytes_read,
        "written_bytes": c.bytes_written,
        "hits": c.hits,
        "misses": c.misses,
        "seeks": c.seeks,
        "seek_time_ns": c.seek_time.as_ns(),
        "rotational_wait_ns": c.rotational_wait.as_ns(),
    })
}

/// Per interval, per client; null without `--interval`.
fn series(report: &Report<'_>, o: &Outcome) -> Value {
    let (Some(_), Some(interval)) = (report.plan.interval, o.interval) else { return Value::Null };
    let points: Vec<Vec<Value>> = o
        .series
        .iter()
        .map(|row| {
            let point = |p: &fairhead_sim::metrics::Point| {
                json!({
                    "read_bytes": p.read_bytes,
                    "written_bytes": p.written_bytes,
                    "calls": p.calls,
                    "lat_max_ns": p.latency_max.as_ns(),
                })
            };
            row.iter().map(point).collect()
        })
        .collect();
    let disk = |p: &fairhead_sim::metrics::DiskPoint| json!({ "read_bytes": p.read_bytes, "written_bytes": p.written_bytes, "busy_ns": p.busy.as_ns() });
    let all: Vec<Value> = o.disk_series.iter().map(disk).collect();
    let mut entry = json!({ "interval_ns": interval.as_ns(), "points": points, "disk": all });
    if !o.disks.is_empty() {
        let one = |d: &DiskOutcome| (d.label.clone(), d.series.iter().map(disk).collect());
        entry["disks"] = Value::Object(o.disks.iter().map(one).collect());
    }
    entry
}

/// What is shown of latencies.
pub(super) struct Shows {
    /// Whole histograms, as fio's `json+` has them, with the latencies of submission and completion apart.
    pub(super) bins: bool,
    /// Which percentiles.
    percentiles: Vec<f64>,
    /// Whether completion latencies, and whole latencies, have percentiles.
    of_completion: bool,
    of_all: bool,
}

impl Shows {
    /// What a job asks for, with whole histograms.
    pub(super) fn of(job: &Job) -> Self {
        let asked = &job.percentiles;
        let percentiles = asked.list.clone().unwrap_or_else(|| PERCENTILES.to_vec());
        Self { bins: true, percentiles, of_completion: asked.of_completion, of_all: asked.of_all }
    }
}

/// Adds fio's `read`, `write` and `trim`.
pub(super) fn directions(entry: &mut Value, sum: &Sum, shown: &Shows) {
    let Value::Object(map) = entry else { return };
    let all = [
        ("read", &sum.read, sum.read_rate),
        ("write", &sum.write, sum.write_rate),
        ("trim", &sum.trim, sum.trim_rate),
    ];
    for (name, stats, bytes_per_s) in all {
        map.insert(name.to_owned(), direction(stats, bytes_per_s, sum.elapsed, shown));
    }
}

/// A direction of fio's: what was moved, how fast, and how long calls took.
pub(super) fn direction(stats: &OpStats, bytes_per_s: u64, elapsed: Duration, shown: &Shows) -> Value {
    let mut entry = json!({
        "io_bytes": stats.bytes,
        "io_kbytes": stats.bytes / 1024,
        "bw_bytes": bytes_per_s,
        "bw": bytes_per_s / 1024,
        "iops": thousandths(rate(stats.calls.saturating_mul(1000), elapsed)),
        "runtime": if stats.calls > 0 { elapsed.as_ms() } else { 0 },
        "total_ios": stats.calls,
    });
    let Value::Object(map) = &mut entry else { return entry };
    if shown.bins {
        // A call is one piece from submission to completion here, so there is no submission latency of its
        // own, and the completion latency is all of it. fio's default has percentiles in the latter only.
        map.insert("short_ios".to_owned(), json!(0));
        map.insert("drop_ios".to_owned(), json!(0));
        map.insert("slat_ns".to_owned(), latency(&OpStats::default(), shown, false));
        map.insert("clat_ns".to_owned(), latency(stats, shown, shown.of_completion));
        map.insert("lat_ns".to_owned(), latency(stats, shown, shown.of_all));
    } else {
        map.insert("lat_ns".to_owned(), latency(stats, shown, shown.of_completion || shown.of_all));
    }
    entry
}

/// Latencies, with or without percentiles and, as fio has them, histograms beside those.
fn latency(stats: &OpStats, shown: &Shows, percentiles: bool) -> Value {
    if stats.calls == 0 {
        return json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 });
    }
    let mut entry = json!({
        "min": stats.latency_min.as_ns(),
        "max": stats.latency_max.as_ns(),
        "mean": float(stats.latency_sum.as_ns()) / float(stats.calls),
        "stddev": stats.latency_ns.stdev(),
        "N": stats.calls,
    });
    let Value::Object(map) = &mut entry else { return entry };
    if !percentiles {
        return entry;
    }
    let mut percentile = Map::new();
    for p in &shown.percentiles {
        let value = stats.percentile(*p).unwrap_or_default();
        percentile.insert(format!("{p:.6}"), json!(value.as_ns()));
    }
    map.insert("percentile".to_owned(), Value::Object(percentile));
    if shown.bins {
        let steps = stats.latency_ns.steps();
        let bins: Map<String, Value> = steps.map(|s| (s.highest_ns.to_string(), json!(s.count))).collect();
        map.insert("bins".to_owned(), Value::Object(bins));
    }
    entry
}

/// `n` thousandths as a number.
pub(crate) fn thousandths(n: u64) -> f64 {
    float(n) / 1000.0
}

/// A part of a time in percent; 0 of nothing.
#[must_use]
pub fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { float(part.as_ns()) / float(whole.as_ns()) * 100.0 }
}

/// A number as JSON has it.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "for reports; 53 bits of nanoseconds are 104 days")]
pub fn float(n: u64) -> f64 {
    n as f64
}
