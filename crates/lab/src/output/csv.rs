//! CSV: a line per scheduler and job, and of several disks one for each without a job; with `--interval` a
//! line per scheduler, client and interval; with `--watch` one per scheduler, control group and interval.
//! Names are quoted when they need to be (RFC 4180); every column carries its unit.

use super::{Export, Report, Sum};
use fairhead_sim::Outcome;
use fairhead_sim::metrics::{DiskOutcome, rate};

/// Comma-separated values with a heading.
pub struct Csv;

impl Export for Csv {
    fn render(&self, report: &Report<'_>) -> String {
        match (report.plan.watch, report.plan.interval) {
            (Some(interval), _) => super::watch::csv(report, interval),
            (None, Some(_)) => series(report),
            (None, None) => totals(report),
        }
    }
}

const TOTALS: &str = "scheduler,disk,seed,job,clients,elapsed_ns,read_bytes,write_bytes,trim_bytes,read_bytes_per_s,\
    write_bytes_per_s,trim_bytes_per_s,ios,ios_per_s,client_min_over_max_bw_permille,lat_mean_ns,lat_p50_ns,lat_p99_ns,\
    lat_max_ns,disk_busy_ns,disk_idled_on_purpose_ns,disk_seeks,syncs,sync_lat_mean_ns,sync_lat_p99_ns,sync_lat_max_ns,\
    while_all_ran_ns,while_all_ran_bytes_per_s";

fn totals(report: &Report<'_>) -> String {
    let plan = report.plan;
    let mut text = format!("{TOTALS}\n");
    for o in report.outcomes {
        for (i, job) in report.jobs().jobs.iter().enumerate() {
            let sum = Sum::of(o.clients.iter().filter(|c| c.job == i));
            let all = sum.all();
            let time =
                |t: Option<fairhead_core::Duration>| t.map_or_else(String::new, |t| t.as_ns().to_string());
            let fields = [
                quoted(&o.scheduler),
                quoted(&plan.disk.0),
                plan.seed.to_string(),
                quoted(&job.name),
                sum.clients.to_string(),
                sum.elapsed.as_ns().to_string(),
                sum.read.bytes.to_string(),
                sum.write.bytes.to_string(),
                sum.trim.bytes.to_string(),
                sum.read_rate.to_string(),
                sum.write_rate.to_string(),
                sum.trim_rate.to_string(),
                all.calls.to_string(),
                rate(all.calls, sum.elapsed).to_string(),
                sum.fairness_permille.map_or_else(String::new, |f| f.to_string()),
                time(all.latency_mean()),
                time(all.percentile(50.0)),
                time(all.percentile(99.0)),
                time((all.calls > 0).then_some(all.latency_max)),
                o.disk.busy.as_ns().to_string(),
                o.disk.idled.as_ns().to_string(),
                o.disk.counters.seeks.to_string(),
                sum.sync.calls.to_string(),
                time(sum.sync.latency_mean()),
                time(sum.sync.percentile(99.0)),
                time((sum.sync.calls > 0).then_some(sum.sync.latency_max)),
                time(sum.together.map(|t| t.span)),
                sum.together.map_or_else(String::new, |t| rate(t.bytes, t.span).to_string()),
            ];
            text.push_str(&(fields.join(",") + "\n"));
        }
        o.disks.iter().for_each(|d| text.push_str(&disk_line(d, o, plan.seed)));
    }
    text
}

/// The line of one of several disks: its name for the disk's, no job, and of the figures those that are of a
/// disk.
fn disk_line(d: &DiskOutcome, o: &Outcome, seed: u64) -> String {
    let (s, c) = (&d.stats, &d.stats.counters);
    let per_s = |n: u64| rate(n, o.elapsed).to_string();
    let mut fields = vec![String::new(); TOTALS.split(',').count()];
    let figures = [
        ("scheduler", quoted(&o.scheduler)),
        ("disk", quoted(&d.label)),
        ("seed", seed.to_string()),
        ("elapsed_ns", o.elapsed.as_ns().to_string()),
        ("read_bytes", c.bytes_read.to_string()),
        ("write_bytes", c.bytes_written.to_string()),
        ("read_bytes_per_s", per_s(c.bytes_read)),
        ("write_bytes_per_s", per_s(c.bytes_written)),
        ("ios", s.issued.to_string()),
        ("ios_per_s", per_s(s.issued)),
        ("disk_busy_ns", s.busy.as_ns().to_string()),
        ("disk_idled_on_purpose_ns", s.idled.as_ns().to_string()),
        ("disk_seeks", c.seeks.to_string()),
    ];
    for (name, value) in figures {
        if let Some(i) = TOTALS.split(',').position(|column| column == name) {
            fields[i] = value;
        }
    }
    fields.join(",") + "\n"
}

fn series(report: &Report<'_>) -> String {
    let mut text =
        "scheduler,disk,seed,job,clone,start_ns,interval_ns,read_bytes,write_bytes,ios,lat_max_ns\n"
            .to_owned();
    for o in report.outcomes {
        let Some(interval) = o.interval else { continue };
        for (row, n) in o.series.iter().zip(0_u64..) {
            for (point, client) in row.iter().zip(&o.clients) {
                let start = (interval * n).as_ns();
                let names = [&o.scheduler, &report.plan.disk.0].map(|n| quoted(n)).join(",");
                text.push_str(&format!(
                    "{names},{},{},{},{start},{},{},{},{},{}\n",
                    report.plan.seed,
                    quoted(&client.name),
                    client.clone,
                    interval.as_ns(),
                    point.read_bytes,
                    point.written_bytes,
                    point.calls,
                    point.latency_max.as_ns()
                ));
            }
            for (disk, point) in
                o.disks.iter().filter_map(|d| Some((d, d.series.get(usize::try_from(n).ok()?)?)))
            {
                text.push_str(&format!(
                    "{},{},{},,,{},{},{},{},,\n",
                    quoted(&o.scheduler),
                    quoted(&disk.label),
                    report.plan.seed,
                    (interval * n).as_ns(),
                    interval.as_ns(),
                    point.read_bytes,
                    point.written_bytes,
                ));
            }
        }
    }
    text
}

/// A field, quoted if it needs to be (RFC 4180).
#[must_use]
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_what_needs_it() {
        assert_eq!(quoted("plain name"), "plain name");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
