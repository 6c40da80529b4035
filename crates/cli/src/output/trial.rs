//! What a trial found: one sentence, and a table of who gains and who pays; or one JSON object.

use fairhead_machine::Disk;
use fairhead_machine::trial::{Outcome, Payer, Row, Verdict, Way};
use fairhead_sim::advise::statistics::Ratio;
use serde_json::{Value, json};

use super::table::{Best, Cell, Table};
use crate::args::ReportFormat;

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

fn sentence(t: &Trial<'_>) -> String {
    t.verdict.sentence.replace("{A}", &t.names[0]).replace("{B}", &t.names[1])
}

fn human(t: &Trial<'_>, coloured: bool) -> String {
    let [a, b] = t.names;
    let columns = [
        "who".to_owned(),
        "what".to_owned(),
        format!("MiB/s {a}"),
        b.clone(),
        format!("p50 ms {a}"),
        b.clone(),
        format!("p99 ms {a}"),
        b.clone(),
        String::new(),
    ];
    let table = Table {
        words: 2,
        columns: columns.iter().map(|c| (c.as_str(), Best::None)).collect(),
        blocks: vec![t.verdict.rows.iter().map(row).collect()],
    };
    let mut text =
        format!("{}\n\nWho pays, on {}, {} pairs of turns:\n\n", sentence(t), t.disk.name, t.verdict.pairs);
    text.push_str(&table.render(coloured));
    if t.lost > 0 {
        text.push_str(&format!("\n{} events were lost: the figures miss some requests.\n", t.lost));
    }
    if t.verdict.outcome == Outcome::Better {
        text.push_str(&format!("\nTo keep it: fairhead apply {} {b}\n", t.disk.name));
    }
    text
}

fn way(row: &Row) -> &'static str {
    match row.way {
        Way::Read => "reads",
        Way::Write => "writes",
    }
}

fn payer(row: &Row) -> &'static str {
    match row.payer() {
        Payer::Gains => "gains",
        Payer::Pays => "pays",
        Payer::Both => "gains and pays",
        Payer::Neither => "",
    }
}

fn row(row: &Row) -> Vec<Cell> {
    let number = |x: f64| if x >= 100.0 { format!("{x:.0}") } else { format!("{x:.2}") };
    let ms = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), number);
    let words = [
        row.name.clone().unwrap_or_else(|| "all".to_owned()),
        way(row).to_owned(),
        number(row.rate[0]),
        number(row.rate[1]),
        ms(row.p50_ms[0]),
        ms(row.p50_ms[1]),
        ms(row.p99_ms[0]),
        ms(row.p99_ms[1]),
        payer(row).to_owned(),
    ];
    words.into_iter().map(Cell::label).collect()
}

fn object(t: &Trial<'_>) -> Value {
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
            "payer": payer(r),
        })
    });
    json!({
        "disk": t.disk.name,
        "a": t.names[0],
        "b": t.names[1],
        "verdict": sentence(t),
        "outcome": format!("{:?}", t.verdict.outcome).to_lowercase(),
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
