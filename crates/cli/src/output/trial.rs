//! What a trial found, in the words of advice: what to use, what each job gets under both, who pays; or one
//! JSON object.

use fairhead_core::Duration;
use fairhead_lab::output::advice::word;
use fairhead_lab::output::text;
use fairhead_machine::Disk;
use fairhead_machine::trial::{Job, Outcome, Row, Verdict, Way};
use fairhead_sim::advise::factor as times;
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::job::Kind;
use serde_json::{Value, json};

use super::table::{Best, Cell, Table};
use super::{mib, time};
use crate::args::ReportFormat;

/// The width of the text.
const COLUMNS: usize = 80;

/// A trial that has ended.
pub(crate) struct Trial<'a> {
    /// The disk.
    pub(crate) disk: &'a Disk,
    /// The names of the two sides.
    pub(crate) names: &'a [String; 2],
    /// What was found.
    pub(crate) verdict: &'a Verdict,
    /// How many events were lost.
    pub(crate) lost: u64,
}

/// The trial as text, with a line break at its end.
pub(crate) fn render(t: &Trial<'_>, format: ReportFormat, coloured: bool) -> String {
    match format {
        ReportFormat::Human => human(t, coloured),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&object(t)).expect("a JSON value can be written") + "\n"
        }
    }
}

/// What to use, as advice says it.
fn headline(t: &Trial<'_>) -> String {
    let [a, b] = t.names;
    match t.verdict.outcome {
        Outcome::Better => format!("{}: use {b} instead of {a}.", t.disk.name),
        Outcome::Nothing => {
            format!("{}: nothing to compare; use the disk meanwhile, or give a load with --job.", t.disk.name)
        }
        _ => format!("{}: stay with {a}.", t.disk.name),
    }
}

fn human(t: &Trial<'_>, coloured: bool) -> String {
    let [a, b] = t.names;
    let mut text = headline(t) + "\n";
    if !t.verdict.jobs.is_empty() {
        let heads = ["job", "", a.as_str(), b.as_str(), "times as good"];
        let table = Table {
            words: 2,
            columns: heads.map(|head| (head, Best::None)).to_vec(),
            blocks: vec![t.verdict.jobs.iter().map(row).collect()],
        };
        text.push_str(&format!("\n{}\n", table.render(coloured)));
    }
    for sentence in sentences(t) {
        for (i, line) in text::wrapped(&sentence, COLUMNS - 2).into_iter().enumerate() {
            text.push_str(&format!("{}{line}\n", if i == 0 { "" } else { "  " }));
        }
    }
    text
}

/// How all jobs together fare, who pays, and what to type.
fn sentences(t: &Trial<'_>) -> Vec<String> {
    let [a, b] = t.names;
    let mut all = Vec::new();
    let payers: Vec<String> = t.verdict.jobs.iter().filter(|job| job.pays()).map(paid).collect();
    let verb = if t.verdict.outcome == Outcome::Better { "pays" } else { "would pay" };
    match (payers.is_empty(), t.verdict.jobs.is_empty()) {
        (_, true) => {}
        (true, _) => all.push(format!("Under {b} no job surely gets less.")),
        (false, _) => all.push(format!("Under {b} {verb}: {}.", payers.join("; "))),
    }
    let pairs = if t.verdict.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", t.verdict.pairs) };
    if let Some(of) = &t.verdict.all {
        all.push(match t.verdict.outcome {
            Outcome::Nothing => {
                "All jobs together: one pair of turns says nothing; -t takes more.".to_owned()
            }
            Outcome::Equal => {
                format!("All jobs together: no difference between {a} and {b} ({pairs} of turns).")
            }
            Outcome::Unclear => format!(
                "All jobs together: too close to call, {} to {} times under {b} ({pairs} of turns); -t takes \
                 more.",
                times(of.low),
                times(of.high)
            ),
            _ => format!("All jobs together: {} under {b} ({pairs} of turns).", interval(of)),
        });
    }
    if let Some((job, floor)) = &t.verdict.barred {
        all.push(format!("Not {b}: {job} {} there.", floor.words()));
    }
    match t.verdict.few {
        0 => {}
        1 => all.push("1 process made too few requests to count.".to_owned()),
        n => all.push(format!("{n} processes made too few requests to count.")),
    }
    if t.lost > 0 {
        all.push(format!("{} events were lost: the figures miss some requests.", t.lost));
    }
    if t.verdict.outcome == Outcome::Better {
        let disk = &t.disk.name;
        all.push(format!("sudo fairhead apply {disk} {b} (back: sudo fairhead apply {disk} --undo)"));
    }
    all
}

fn interval(of: &Ratio) -> String {
    format!("{} times ({} to {})", times(of.ratio), times(of.low), times(of.high))
}

/// What a job gets under a side.
fn gets(job: &Job, side: usize) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes or nanoseconds")]
    let whole = |value: f64| value as u64;
    match (job.amounts[side], job.kind) {
        (None, _) => "-".to_owned(),
        (Some(seconds), Kind::Waiting) => time(Duration::from_ns(whole(seconds * 1e9))),
        (Some(bytes), _) => format!("{} MiB/s", mib(whole(bytes))),
    }
}

fn paid(job: &Job) -> String {
    format!("{} ({} instead of {})", job.name, gets(job, 1), gets(job, 0))
}

fn row(job: &Job) -> Vec<Cell> {
    let of = &job.change;
    let change = format!("{} ({} to {})", times(of.ratio), times(of.low), times(of.high));
    let words = [job.name.clone(), word(job.kind).to_owned(), gets(job, 0), gets(job, 1), change];
    words.into_iter().map(Cell::label).collect()
}

fn object(t: &Trial<'_>) -> Value {
    let way = |row: &Row| if row.way == Way::Read { "reads" } else { "writes" };
    let rows = t.verdict.rows.iter().map(|r| {
        json!({
            "name": r.name,
            "way": way(r),
            "mib_per_s": r.rate,
            "p50_ms": r.p50_ms,
            "p99_ms": r.p99_ms,
            "p50": r.p50.as_ref().map(factor),
            "p99": r.p99.as_ref().map(factor),
            "bytes": r.bytes.as_ref().map(factor),
        })
    });
    let jobs = t.verdict.jobs.iter().map(|job| {
        json!({
            "job": job.name,
            "kind": job.kind.word(),
            "unit": if job.kind == Kind::Waiting { "s" } else { "bytes/s" },
            "a": job.amounts[0],
            "b": job.amounts[1],
            "change": factor(&job.change),
            "gains": job.gains(),
            "pays": job.pays(),
        })
    });
    json!({
        "disk": t.disk.name,
        "a": t.names[0],
        "b": t.names[1],
        "answer": std::iter::once(headline(t)).chain(sentences(t)).collect::<Vec<_>>(),
        "outcome": format!("{:?}", t.verdict.outcome).to_lowercase(),
        "change": t.verdict.all.as_ref().map(factor),
        "jobs": jobs.collect::<Vec<_>>(),
        "pairs": t.verdict.pairs,
        "lost_events": t.lost,
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// A factor above 1 is better under B.
fn factor(r: &Ratio) -> Value {
    // JSON has no infinity.
    let finite = |x: f64| x.is_finite().then_some(x);
    json!({ "factor": finite(r.ratio), "low": finite(r.low), "high": finite(r.high) })
}
