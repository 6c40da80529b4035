//! fio's own layout of results, `json+`, so that fio's tools and those of others read it: fio-plot, for one.
//!
//! With several schedulers `jobs` are named `SCHEDULER:JOB`, and `job options` has fio's `ioscheduler`. All
//! keys are there that fio 3.33 writes, and integers where fio has integers. What differs in meaning:
//!
//! - `timestamp`, `timestamp_ms` and `time` are those of the simulated clock when the last run ends, which
//!   begins at 1970-01-01 00:00:00 UTC: the same input gives the same bytes;
//! - `global options` has all that `[global]` says, and the run's seed as `randseed`; `job options` has what
//!   the section says, and the defaults that tools ask for;
//! - of `disk_util`, `read_ticks` and `write_ticks` are the sums of latencies of all clients' calls on the
//!   run's disks, in ms, and `in_queue` is the sum of both; `write_merges` has the merges of all directions;
//! - the samples of `bw_min` to `iops_samples` are of whole intervals of 500 ms from the start of the run,
//!   and of all clients of an entry added up; fio takes them from each client's start, and those of trims,
//!   too;
//! - `sys_cpu` has the time of the host's model for system calls, copying and the block layer, `usr_cpu` the
//!   program's own; `ctx` is how often a client waited and was woken; `majf` and `minf` are 0: nothing here
//!   has pages of its own;
//! - there is no submission latency: it is part of the completion latency, which is the whole.
//
//= fio-3.33 stat.c and json output, seen

use fairhead_core::Duration;
use fairhead_sim::Outcome;
use fairhead_sim::job::{BlockSize, Direction, Job, PerOp, Size, Unified};
use fairhead_sim::metrics::{DiskStats, OpStats, Point, rate};
use serde_json::{Map, Value, json};

use super::json::{Shows, direction, directions, float, percent, pretty, programs, syncs};
use super::{Export, Report, Sum, Unit, units};

/// fio's.
pub struct JsonPlus;

/// How often fio takes a sample of bandwidth and calls per second.
//= fio-3.33 HOWTO bwavgtime, iopsavgtime
pub const SAMPLE: Duration = Duration::from_ms(500);

impl Export for JsonPlus {
    fn render(&self, report: &Report<'_>) -> String {
        let plan = report.plan;
        let several = plan.schedulers.len() > 1;
        let mut jobs = Vec::new();
        let mut utils = Vec::new();
        for (s, outcome) in plan.schedulers.iter().zip(report.outcomes) {
            let prefix = if several { format!("{}:", s.name) } else { String::new() };
            let units = units(report.jobs());
            for unit in &units {
                let mut entry = job(unit, outcome, &prefix);
                options(&mut entry["job options"], unit.job, s.name);
                written(&mut entry["job options"], report.jobs().written.jobs.get(&unit.job.line));
                // Of the run, whatever is written.
                entry["job options"]["ioscheduler"] = json!(s.name);
                samples(&mut entry, unit, &units, outcome);
                jobs.push(entry);
            }
            match &outcome.disks[..] {
                [] | [_] => utils.push(util(&format!("{prefix}{}", plan.disk.0), &outcome.disk, outcome)),
                several => utils
                    .extend(several.iter().map(|d| util(&format!("{prefix}{}", d.label), &d.stats, outcome))),
            }
        }
        let mut global = json!({});
        written(&mut global, Some(&report.jobs().written.global));
        global["randseed"] = json!(plan.seed.to_string());
        let ended = report.outcomes.iter().map(|o| o.elapsed).max().unwrap_or_default();
        pretty(&json!({
            "fio version": concat!("fairhead-", env!("CARGO_PKG_VERSION")),
            "timestamp": ended.as_ns() / 1_000_000_000,
            "timestamp_ms": ended.as_ms(),
            "time": calendar(ended),
            "global options": global,
            "jobs": jobs,
            "disk_util": utils,
        }))
    }
}

/// A disk of fio's `disk_util`.
//= fio-3.33 json output, seen
fn util(name: &str, disk: &DiskStats, o: &Outcome) -> Value {
    // Clients' calls are of all disks; a disk has its part by requests.
    let share = |latencies: Duration, mine: u64, all: u64| {
        let part = u128::from(latencies.as_ms()) * u128::from(mine) / u128::from(all.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    let all = Sum::of(o.clients.iter());
    let (reads, writes) = (disk.counters.reads, disk.counters.writes);
    let read_ticks = share(all.read.latency_sum, reads, o.disk.counters.reads);
    let write_ticks = share(all.write.latency_sum, writes, o.disk.counters.writes);
    json!({
        "name": name,
        "read_ios": reads,
        "write_ios": writes,
        "read_merges": 0,
        "write_merges": disk.merged,
        "read_ticks": read_ticks,
        "write_ticks": write_ticks,
        "in_queue": read_ticks + write_ticks,
        "util": percent(disk.busy, o.elapsed),
    })
}

/// Adds options as they are written.
fn written(entry: &mut Value, options: Option<&Vec<(&'static str, String)>>) {
    for (key, value) in options.into_iter().flatten() {
        entry[key] = json!(value);
    }
}

/// `Thu Jan  1 00:00:03 1970`: a time of the simulated clock, which begins at 1970, in the words of C's
/// `ctime` and in UTC.
fn calendar(since: Duration) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let seconds = since.as_ns() / 1_000_000_000;
    let days = seconds / 86_400;
    let weekday = WEEKDAYS[usize::try_from(days % 7).unwrap_or(0)];
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = "Dec";
    for (name, days) in MONTHS {
        let days = days + u64::from(name == "Feb" && is_leap(year));
        if left < days {
            month = name;
            break;
        }
        left -= days;
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{weekday} {month} {:2} {hour:02}:{minute:02}:{second:02} {year}", left + 1)
}

/// An entry of fio's `jobs`, without options and samples.
fn job(unit: &Unit<'_>, o: &Outcome, prefix: &str) -> Value {
    let sum = Sum::of(unit.clients.iter().filter_map(|&i| o.clients.get(i)));
    let job = unit.job;
    let mut entry = json!({
        "jobname": format!("{prefix}{}", job.name),
        "groupid": job.group,
        "error": 0,
        "eta": 0,
        "elapsed": sum.elapsed.as_ns().div_ceil(1_000_000_000),
        "job options": {},
    });
    let shown = Shows::of(job);
    directions(&mut entry, &sum, &shown);
    syncs(&mut entry, &sum, &shown);
    unify(&mut entry, job.unified, &sum, &shown);
    let all_time = sum.elapsed * sum.clients as u64;
    entry["job_runtime"] = json!(all_time.as_ms());
    entry["usr_cpu"] = json!(percent(sum.cpu.user, all_time));
    entry["sys_cpu"] = json!(percent(sum.cpu.system, all_time));
    entry["ctx"] = json!(sum.cpu.switches);
    entry["majf"] = json!(0);
    entry["minf"] = json!(0);
    depths(&mut entry, &sum);
    latencies(&mut entry, &sum.all());
    for (key, value) in [("depth", json!(job.iodepth)), ("target", json!(0)), ("window", json!(0))] {
        entry[format!("latency_{key}")] = value;
    }
    entry["latency_percentile"] = json!(100.0);
    programs(&mut entry, &sum);
    entry
}

/// `unified_rw_reporting`: all directions as one, `mixed`, instead of each of them and syncs, or beside them.
//= fio-3.33 json output with unified_rw_reporting, seen
fn unify(entry: &mut Value, unified: Unified, sum: &Sum, shown: &Shows) {
    if unified == Unified::Apart {
        return;
    }
    let all = sum.all();
    entry["mixed"] = direction(&all, rate(all.bytes, sum.elapsed), sum.elapsed, shown);
    if unified == Unified::Mixed
        && let Value::Object(map) = entry
    {
        ["read", "write", "trim", "sync"].iter().for_each(|key| drop(map.remove(*key)));
    }
}

/// The shares of calls by how many were in flight, and by how many were handed over at once: one.
fn depths(entry: &mut Value, sum: &Sum) {
    const CLASSES: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const AT_ONCE: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    let all: u64 = sum.depths.iter().sum();
    let share = |n: u64| if all == 0 { 0.0 } else { float(n) / float(all) * 100.0 };
    let level: Map<String, Value> =
        CLASSES.iter().zip(sum.depths).map(|(c, n)| ((*c).to_owned(), json!(share(n)))).collect();
    entry["iodepth_level"] = Value::Object(level);
    let one = |class: &&str| json!(if *class == "4" { share(all) } else { 0.0 });
    let at_once: Map<String, Value> = AT_ONCE.iter().map(|c| ((*c).to_owned(), one(c))).collect();
    entry["iodepth_submit"] = Value::Object(at_once.clone());
    entry["iodepth_complete"] = Value::Object(at_once);
}

/// Writes the shares of calls by latency: for each bound in ns, us and ms the calls below it and not below
/// the previous bound.
fn latencies(entry: &mut Value, all: &OpStats) {
    const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    for (unit, ns, bounds) in
        [("ns", 1, &BOUNDS[..]), ("us", 1000, &BOUNDS), ("ms", 1_000_000, &[&BOUNDS[..], &[2000]].concat())]
    {
        let from = |i: usize| if i == 0 { if ns == 1 { 0 } else { ns } } else { bounds[i - 1] * ns };
        let share = |from: u64, to: u64| {
            let within = all.latency_ns.steps().map(|s| (s.highest_ns, s.count));
            let count: u64 = within.filter(|(v, _)| (from..to).contains(v)).map(|(_, n)| n).sum();
            if all.calls == 0 { 0.0 } else { float(count) / float(all.calls) * 100.0 }
        };
        let mut map: Map<String, Value> = (0..bounds.len())
            .map(|i| (bounds[i].to_string(), json!(share(from(i), bounds[i] * ns))))
            .collect();
        if unit == "ms" {
            map.insert(">=2000".to_owned(), json!(share(2_000_000_000, u64::MAX)));
        }
        entry[format!("latency_{unit}")] = Value::Object(map);
    }
}

/// What the job file says, in its words, as far as tools ask for it.
fn options(entry: &mut Value, job: &Job, scheduler: &str) {
    let direction = |random: bool, d: Direction| match (random, d) {
        (false, Direction::Read) => "read",
        (false, Direction::Write) => "write",
        (false, Direction::Mixed) => "rw",
        (false, Direction::Trim) => "trim",
        (true, Direction::Read) => "randread",
        (true, Direction::Write) => "randwrite",
        (true, Direction::Mixed) => "randrw",
        (true, Direction::Trim) => "randtrim",
    };
    let mut set = |key: &str, value: String| entry[key] = json!(value);
    set("name", job.name.clone());
    let behind = if job.writes_trimmed { "write" } else { "" };
    set("rw", format!("{}{behind}", direction(job.rw.random, job.rw.direction)));
    set("bs", block_sizes(&job.bs));
    if let Some(size) = &job.size {
        set(
            "size",
            match size {
                Size::Bytes(n) => bytes(*n),
                Size::Percent(p) => format!("{p}%"),
            },
        );
    }
    if job.rw.direction == Direction::Mixed {
        set("rwmixread", job.rwmix_read_pct.to_string());
    }
    set("direct", u8::from(job.direct).to_string());
    set("ioengine", job.ioengine.clone());
    set("iodepth", job.iodepth.to_string());
    set("numjobs", job.numjobs.to_string());
    if let Some(runtime) = job.runtime {
        set("runtime", format!("{}us", runtime.as_us()));
    }
    set("ioscheduler", scheduler.to_owned());
}

/// `4k`, or `4k,64k,4k` where directions differ.
fn block_sizes(bs: &PerOp<BlockSize>) -> String {
    let one = |bs: &BlockSize| match bs {
        BlockSize::Fixed(n) => bytes(u64::from(*n)),
        BlockSize::Range { min, max } => format!("{}-{}", bytes(u64::from(*min)), bytes(u64::from(*max))),
        BlockSize::Split(parts) => {
            let part = |(n, percent): &(u32, u8)| format!("{}/{percent}", bytes(u64::from(*n)));
            parts.iter().map(part).collect::<Vec<_>>().join(":")
        }
    };
    let all = [one(&bs.read), one(&bs.write), one(&bs.trim)];
    if all.iter().all(|o| *o == all[0]) { all[0].clone() } else { all.join(",") }
}

/// In fio's units of 1024.
fn bytes(n: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let whole = units.into_iter().find(|(shift, _)| n > 0 && n.is_multiple_of(1 << shift));
    whole.map_or_else(|| n.to_string(), |(shift, unit)| format!("{}{unit}", n >> shift))
}

/// Adds the figures of samples to `read`, `write` and `trim`.
fn samples(entry: &mut Value, unit: &Unit<'_>, units: &[Unit<'_>], o: &Outcome) {
    let of = |bytes: fn(&Point) -> u64, calls: fn(&Point) -> u64| (bytes, calls);
    let ways = [
        ("read", of(|p| p.read_bytes, |p| p.reads)),
        ("write", of(|p| p.written_bytes, |p| p.writes)),
        ("trim", of(|_| 0, |_| 0)),
        ("mixed", of(|p| p.read_bytes + p.written_bytes, |p| p.reads + p.writes)),
    ];
    let is_there = |way: &str| entry.get(way).is_some();
    let ways: Vec<_> = ways.into_iter().filter(|(way, _)| is_there(way)).collect();
    let group = units.iter().filter(|u| u.job.group == unit.job.group).flat_map(|u| &u.clients);
    let group = Sum::of(group.filter_map(|&i| o.clients.get(i)));
    for (way, (bytes, calls)) in ways {
        let agg = match way {
            "read" => group.read_rate,
            "mixed" => group.read_rate + group.write_rate,
            _ => group.write_rate,
        };
        let interval = o.interval.unwrap_or(SAMPLE);
        let kib = series(unit, o, bytes).map(|n| float(rate(n, interval)) / 1024.0);
        let bw = Figures::of(kib);
        let iops = Figures::of(series(unit, o, calls).map(|n| float(n) * 1e9 / float(interval.as_ns())));
        let share = if agg == 0 { 0.0 } else { (bw.mean * 1024.0 / float(agg) * 100.0).min(100.0) };
        let entry = &mut entry[way];
        for (key, value) in [
            ("bw_min", json!(whole(bw.min))),
            ("bw_max", json!(whole(bw.max))),
            ("bw_agg", json!(share)),
            ("bw_mean", json!(bw.mean)),
            ("bw_dev", json!(bw.deviation)),
            ("bw_samples", json!(bw.count)),
            ("iops_min", json!(whole(iops.min))),
            ("iops_max", json!(whole(iops.max))),
            ("iops_mean", json!(iops.mean)),
            ("iops_stddev", json!(iops.deviation)),
            ("iops_samples", json!(iops.count)),
        ] {
            entry[key] = value;
        }
    }
}

/// The nearest integer: fio has integers there, and readers with typed fields take nothing else.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
fn whole(x: f64) -> u64 {
    x.round() as u64
}

/// One figure of all clients of an entry, for each whole interval in which all of them ran; none if it is
/// zero throughout.
fn series<'a>(unit: &'a Unit<'_>, o: &'a Outcome, of: fn(&Point) -> u64) -> impl Iterator<Item = u64> + 'a {
    let interval = o.interval.unwrap_or(SAMPLE);
    let mine = || unit.clients.iter().filter_map(|&i| o.clients.get(i));
    let ramp = unit.job.ramp_time;
    let from = mine().map(|c| c.started + ramp).max().unwrap_or_default();
    let to = mine().map(|c| c.started + ramp + c.elapsed).min().unwrap_or_default();
    let rows = o.series.iter().zip(0_u64..);
    let inside = rows.filter(move |(_, n)| interval * *n >= from && interval * (n + 1) <= to);
    let sums = inside.map(move |(row, _)| unit.clients.iter().filter_map(|&i| row.get(i)).map(of).sum());
    let sums: Vec<u64> = sums.collect();
    let any = sums.iter().any(|n| *n > 0);
    sums.into_iter().filter(move |_| any)
}

/// Least, most, mean and standard deviation of samples; zeros of none.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    count: u64,
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
}

impl Figures {
    fn of(samples: impl Iterator<Item = f64>) -> Self {
        let all: Vec<f64> = samples.collect();
        if all.is_empty() {
            return Self::default();
        }
        let count = all.len() as u64;
        let mean = all.iter().sum::<f64>() / float(count);
        let squares: f64 = all.iter().map(|v| (v - mean) * (v - mean)).sum();
        Self {
            count,
            min: all.iter().copied().fold(f64::INFINITY, f64::min),
            max: all.iter().copied().fold(0.0, f64::max),
            mean,
            // Of a sample, as fio has it: over one less than their number.
            deviation: if count > 1 { (squares / float(count - 1)).sqrt() } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_deviation_of_a_sample() {
        let f = Figures::of([2.0, 4.0, 6.0].into_iter());
        assert_eq!(f, Figures { count: 3, min: 2.0, max: 6.0, mean: 4.0, deviation: 2.0 });
        assert_eq!(Figures::of(std::iter::empty()), Figures::default());
    }

    #[test]
    fn the_simulated_clock_begins_in_1970() {
        let at = |seconds| calendar(Duration::from_secs(seconds));
        assert_eq!(at(3), "Thu Jan  1 00:00:03 1970");
        // `date -ud @951782400` and so on.
        assert_eq!(at(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(at(1_795_912_676), "Sun Nov 29 00:37:56 2026");
    }

    #[test]
    fn sizes_are_in_the_words_of_job_files() {
        assert_eq!([1000, 4096, 64 << 10, 3 << 20, 2 << 30].map(bytes), ["1000", "4k", "64k", "3m", "2g"]);
    }
}
