//! What a replay found: a table of topics and the first differences, or one JSON object.
//!
//! ```text
//! topic       compared  agreed  percent  needed  what
//! selections       124     123    99.2%     99%  which queue gets the disk
//!
//! bfq-rw.txt:2069: selections
//!   kernel  bfq20245S set_in_service_queue, cur-budget = 768
//!   ours    bfq20246S
//!   state   …
//! ```

use fairhead_conform::{Agreement, Difference, Report, Scheduler, Topic};
use serde_json::{Value, json};

use super::table::{Best, Cell, Table};
use crate::args::ReportFormat;

/// The report as text, with a line break at its end; at most `most` differences.
pub(crate) fn render(report: &Report, format: ReportFormat, most: usize, coloured: bool) -> String {
    match format {
        ReportFormat::Human => human(report, most, coloured),
        ReportFormat::Json => {
            let object = object(report, most);
            serde_json::to_string_pretty(&object).expect("a JSON value can be written") + "\n"
        }
    }
}

fn scheduler(report: &Report) -> &'static str {
    match report.scheduler {
        Scheduler::Bfq => "bfq",
        Scheduler::MqDeadline => "mq-deadline",
    }
}

fn human(report: &Report, most: usize, coloured: bool) -> String {
    let mut text = format!("{}: {}, {} requests\n\n", report.log, scheduler(report), report.requests);
    let columns = ["topic", "compared", "agreed", "percent", "needed", "what"];
    let table = Table {
        words: 1,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![report.agreements.iter().map(|(topic, a)| row(*topic, *a)).collect()],
    };
    text.push_str(&table.render(coloured));
    if report.lost > 0 {
        text.push_str(&format!(
            "\nnote: the recording lost {} events; record with a larger buffer\n",
            report.lost
        ));
    }
    for d in report.differences.iter().take(most) {
        text.push_str(&difference(report, d));
    }
    let more = report.differences.len().saturating_sub(most);
    if more > 0 {
        text.push_str(&format!("\n{more} more of the differences that were kept; see --differences\n"));
    }
    text
}

fn row(topic: Topic, a: Agreement) -> Vec<Cell> {
    let percent = a.percent().map_or_else(String::new, |p| format!("{p:.1}%"));
    let needed = topic.required().map_or_else(String::new, |p| format!("{p}%"));
    let cells = [
        topic.name().to_owned(),
        a.compared.to_string(),
        a.agreed.to_string(),
        percent,
        needed,
        format!(" {}", topic.about()),
    ];
    cells.into_iter().map(Cell::label).collect()
}

fn difference(report: &Report, d: &Difference) -> String {
    format!(
        "\n{}:{}: {}\n  kernel  {}\n  ours    {}\n  state   {}\n",
        report.log,
        d.line,
        d.topic.name(),
        d.kernel,
        d.ours,
        d.state
    )
}

fn object(report: &Report, most: usize) -> Value {
    let topics: Vec<Value> = report
        .agreements
        .iter()
        .map(|(topic, a)| {
            json!({
                "topic": topic.name(),
                "compared": a.compared,
                "agreed": a.agreed,
                "percent": a.percent(),
                "percent_needed": topic.required(),
            })
        })
        .collect();
    let differences: Vec<Value> = report
        .differences
        .iter()
        .take(most)
        .map(|d| {
            json!({
                "topic": d.topic.name(),
                "line": d.line,
                "kernel": d.kernel,
                "ours": d.ours,
                "state": d.state,
            })
        })
        .collect();
    json!({
        "log": report.log,
        "scheduler": scheduler(report),
        "agrees": report.agrees(),
        "requests": report.requests,
        "events_lost": report.lost,
        "topics": topics,
        "differences": differences,
    })
}
