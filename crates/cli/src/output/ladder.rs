//! What BFQ's switches buy, for people and for programs.
//!
//! ```text
//! bfq            start-up     p99    max  MiB/s  quicker  disk MiB/s   more
//! bfq-v0            21.3s   1.26s  1.31s   0.18                 152
//! + hierarchy       21.3s   1.26s  1.31s   0.18    1.00x        152  1.00x
//! …
//! ```

use fairhead_papers::ladder;
use fairhead_papers::ladder::{Rung, Scenario, Verdict};
use fairhead_sim::Outcome;
use fairhead_sim::job::JobFile;
use fairhead_sim::metrics::{StartUp, rate};
use serde_json::{Value, json};

use super::Sum;
use super::csv::quoted;
use super::human::{dropped, startup};
use super::json::pretty;
use super::table::{Best, Cell, Table};
use crate::args::TableFormat;

/// A job on every rung.
pub(crate) struct Ladder<'a> {
    pub(crate) title: String,
    pub(crate) jobs: &'a JobFile,
    /// The job whose latency counts: an index into the jobs.
    pub(crate) foreground: usize,
    pub(crate) rungs: &'a [Rung],
    pub(crate) outcomes: &'a [Outcome],
    /// Rows are compared with the first, not with the one before.
    pub(crate) against_first: bool,
    pub(crate) coloured: bool,
}

/// The figures of a rung.
struct Row {
    sum: Sum,
    disk_rate: u64,
}

impl Row {
    /// What is to be short, in nanoseconds: the start-up, or else the 99th percentile.
    fn latency_ns(&self) -> u64 {
        let start = StartUp::mean(self.sum.startups.iter().copied()).map(|s| s.took);
        start.or_else(|| self.sum.all().percentile(99.0)).unwrap_or_default().as_ns()
    }
}

impl Ladder<'_> {
    /// As text, with a line break at its end.
    pub(crate) fn render(&self, format: TableFormat) -> String {
        let rows: Vec<Row> = self.outcomes.iter().map(|o| self.row(o)).collect();
        match format {
            TableFormat::Human => self.human(&rows),
            TableFormat::Json => self.json(&rows),
            TableFormat::Csv => self.csv(&rows),
        }
    }

    fn name(&self) -> &str {
        self.jobs.jobs.get(self.foreground).map_or("", |j| j.name.as_str())
    }

    fn row(&self, o: &Outcome) -> Row {
        let c = &o.disk.counters;
        Row {
            sum: Sum::of(o.clients.iter().filter(|c| c.job == self.foreground)),
            disk_rate: rate(c.bytes_read + c.bytes_written, o.elapsed),
        }
    }

    /// What a row is compared with.
    fn before<'r>(&self, rows: &'r [Row], i: usize) -> Option<&'r Row> {
        let before = i.checked_sub(1)?;
        rows.get(if self.against_first { 0 } else { before })
    }

    fn human(&self, rows: &[Row]) -> String {
        let columns = vec![
            ("bfq", Best::None),
            ("start-up", Best::Least),
            ("dropped frames", Best::Least),
            ("mean", Best::Least),
            ("p99", Best::Least),
            ("max", Best::Least),
            ("MiB/s", Best::Most),
            ("quicker", Best::None),
            ("disk MiB/s", Best::Most),
            ("more", Best::None),
        ];
        let row = |(i, row): (usize, &Row)| {
            let (sum, all) = (&row.sum, row.sum.all());
            let before = self.before(rows, i);
            vec![
                Cell::label(&self.rungs[i].name),
                startup(StartUp::mean(sum.startups.iter().copied())),
                sum.frames.map(dropped).unwrap_or_default(),
                Cell::time(all.latency_mean()),
                Cell::time(all.percentile(99.0)),
                Cell::time((all.calls > 0).then_some(all.latency_max)),
                Cell::rate(sum.read_rate + sum.write_rate + sum.trim_rate),
                Cell::label(before.map_or_else(String::new, |b| times(b.latency_ns(), row.latency_ns()))),
                Cell::rate(row.disk_rate),
                Cell::label(before.map_or_else(String::new, |b| times(row.disk_rate, b.disk_rate))),
            ]
        };
        let blocks = vec![rows.iter().enumerate().map(row).collect()];
        let table = Table { words: 1, columns, blocks }.render(self.coloured);
        format!("{}\nlatency of {}\n\n{table}", self.title, self.name())
    }

    fn json(&self, rows: &[Row]) -> String {
        let row = |(i, row): (usize, &Row)| {
            let (sum, all) = (&row.sum, row.sum.all());
            json!({
                "name": self.rungs[i].name,
                "startup_ns": StartUp::mean(sum.startups.iter().copied()).map(|s| s.took.as_ns()),
                "dropped_frames": sum.frames.map(|f| f.dropped),
                "lat_mean_ns": all.latency_mean().map(|t| t.as_ns()),
                "lat_p99_ns": all.percentile(99.0).map(|t| t.as_ns()),
                "lat_max_ns": all.latency_max.as_ns(),
                "bw_bytes": sum.read_rate + sum.write_rate + sum.trim_rate,
                "disk_bw_bytes": row.disk_rate,
            })
        };
        let rungs: Vec<Value> = rows.iter().enumerate().map(row).collect();
        pretty(&json!({ "title": self.title, "foreground": self.name(), "rungs": rungs }))
    }

    fn csv(&self, rows: &[Row]) -> String {
        let mut text =
            "rung,startup_ns,dropped_frames,lat_mean_ns,lat_p99_ns,lat_max_ns,bw_bytes,disk_bw_bytes\n"
                .to_owned();
        for (i, row) in rows.iter().enumerate() {
            let (sum, all) = (&row.sum, row.sum.all());
            let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
            let cells = [
                quoted(&self.rungs[i].name).to_string(),
                number(StartUp::mean(sum.startups.iter().copied()).map(|s| s.took.as_ns())),
                number(sum.frames.map(|f| f.dropped)),
                number(all.latency_mean().map(|t| t.as_ns())),
                number(all.percentile(99.0).map(|t| t.as_ns())),
                all.latency_max.as_ns().to_string(),
                (sum.read_rate + sum.write_rate + sum.trim_rate).to_string(),
                row.disk_rate.to_string(),
            ];
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }
}

/// How many times `b` goes into `a`, to two digits behind the point.
fn times(a: u64, b: u64) -> String {
    if b == 0 {
        return String::new();
    }
    let hundredths = u128::from(a) * 100 / u128::from(b);
    format!("{}.{:02}x", hundredths / 100, hundredths % 100)
}

/// The scenarios and what came of them.
pub(crate) struct Verdicts<'a> {
    pub(crate) scenarios: &'a [Scenario],
    pub(crate) verdicts: &'a [Verdict],
    pub(crate) seed: u64,
    pub(crate) coloured: bool,
}

impl Verdicts<'_> {
    /// As text, with a line break at its end.
    pub(crate) fn render(&self, format: TableFormat) -> String {
        let pairs = || self.scenarios.iter().zip(self.verdicts);
        match format {
            TableFormat::Human => self.human(),
            TableFormat::Json => pretty(&pairs().map(|(s, v)| object(s, v)).collect::<Value>()),
            TableFormat::Csv => {
                let mut text = "switch,measure,disk,without,with,reference,claimed_factor,holds\n".to_owned();
                for (s, v) in pairs() {
                    text.push_str(&format!(
                        "{},{},{},{},{},{},{},{}\n",
                        s.switch,
                        quoted(&s.measure.title()),
                        s.disk,
                        v.without,
                        v.with,
                        v.reference.map_or_else(String::new, |r| r.to_string()),
                        claimed(s),
                        v.holds()
                    ));
                }
                text
            }
        }
    }

    fn human(&self) -> String {
        let heads =
            ["switch", "figure", "disk", "without", "with", "better", "claimed", "reference", "verdict"];
        let row = |(s, v): (&Scenario, &Verdict)| {
            let (good, bad) =
                if s.measure.more_is_better() { (v.with, v.without) } else { (v.without, v.with) };
            let cells = [
                s.switch.to_owned(),
                s.measure.title(),
                s.disk.to_owned(),
                v.without.to_string(),
                v.with.to_string(),
                times(good, bad.max(1)),
                format!("{}x", claimed(s)),
                v.reference.map_or_else(String::new, |r| r.to_string()),
                if v.holds() { "as claimed" } else { "MISS" }.to_owned(),
            ];
            cells.into_iter().map(Cell::label).collect()
        };
        let rows = self.scenarios.iter().zip(self.verdicts).map(row).collect();
        let table = Table { words: 3, columns: heads.map(|h| (h, Best::None)).to_vec(), blocks: vec![rows] };
        let mut text = format!("what each switch of bfq is for, seed {}\n\n", self.seed);
        for line in table.render(false).lines() {
            let bold = self.coloured && line.ends_with("MISS");
            text.push_str(&if bold { format!("\x1b[1m{line}\x1b[0m\n") } else { format!("{line}\n") });
        }
        text.push('\n');
        for (s, v) in self.scenarios.iter().zip(self.verdicts) {
            let patch = ladder::switch(s.switch).and_then(|s| s.patch);
            let of = patch.map_or_else(|| "later".to_owned(), |n| format!("v8 patch {n}"));
            text.push_str(&format!("{} ({of}): {}\n", s.switch, s.claim));
            if let (false, Some(why)) = (v.holds(), s.miss) {
                text.push_str(&format!("  missed: {why}\n"));
            }
        }
        text
    }
}

/// The claimed factor.
fn claimed(s: &Scenario) -> String {
    format!("{}.{}", s.factor_pct / 100, s.factor_pct % 100 / 10)
}

fn object(s: &Scenario, v: &Verdict) -> Value {
    json!({
        "switch": s.switch,
        "patch": ladder::switch(s.switch).and_then(|s| s.patch),
        "claim": s.claim,
        "disk": s.disk,
        "measure": s.measure.title(),
        "without": v.without,
        "with": v.with,
        "reference": v.reference,
        "claimed_factor": super::json::float(s.factor_pct) / 100.0,
        "holds": v.holds(),
        "missed_because": s.miss,
    })
}
