//! What is in a trace: a few lines and a table, or one JSON object.
//!
//! ```text
//! bfq-rw.txt.xz: ftrace text, 599 requests in 5.02s
//!
//! op     requests  percent  MiB   MiB/s  sync  sequential
//! read        390    65.1%  24.3   4.86  100%         99%
//!
//! sizes    64KiB 65%, 16KiB 34%
//! tasks    fio-20245 390, fio-20246 209
//! devices  7,0 599 (up to 781MiB)
//! latency  mean 8.37ms, longest 131ms, of 599 requests
//! ```

use fairhead_core::Duration;
use fairhead_trace::{Names, Notes, Op, OpSummary, Summary, Trace};
use serde_json::{Value, json};

use super::table::{Best, Cell, Table, mib, time};
use crate::args::ReportFormat;

/// How many sizes, tasks and devices are named.
const NAMED: usize = 5;
const OPS: [(Op, &str); 4] =
    [(Op::Read, "read"), (Op::Write, "write"), (Op::Discard, "discard"), (Op::Flush, "flush")];

/// A trace that was read to its end.
pub(crate) struct Read<'a> {
    /// As it was given.
    pub(crate) file: &'a str,
    pub(crate) trace: &'a Trace,
    pub(crate) summary: &'a Summary,
}

/// The summary as text, with a line break at its end.
pub(crate) fn render(read: &Read<'_>, format: ReportFormat, coloured: bool) -> String {
    match format {
        ReportFormat::Human => human(read, coloured),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&object(read)).expect("a JSON value can be written") + "\n"
        }
    }
}

fn human(read: &Read<'_>, coloured: bool) -> String {
    let (s, names) = (read.summary, read.trace.names());
    let n = s.requests();
    let mut text = format!("{}: {}, {n} requests in {}\n", read.file, read.trace.format(), time(s.span));
    if n == 0 {
        return text;
    }
    let present = OPS.iter().filter(|(op, _)| s.of(*op).requests > 0);
    let columns = ["op", "requests", "percent", "MiB", "MiB/s", "sync", "sequential"];
    let table = Table {
        words: 1,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![present.map(|(op, name)| row(name, s.of(*op), n, s.span)).collect()],
    };
    text.push('\n');
    text.push_str(&table.render(coloured));
    let sizes = s.sizes(NAMED);
    let sizes =
        sizes.iter().map(|c| format!("{} {}", bytes(u64::from(c.sectors) * 512), percent(c.requests, n)));
    let tasks = s.tasks(NAMED);
    let tasks = tasks.iter().map(|(id, n)| format!("{} {n}", task(names, id.0)));
    // Tasks are listed only if the trace distinguishes them.
    let has_tasks = s.task_kinds() > 1 || s.tasks(1).iter().any(|(id, _)| id.0 != 0);
    let devices = s.devices(NAMED);
    let devices =
        devices.iter().map(|(id, n, end)| format!("{} {n} (up to {})", names.device(*id), bytes(end * 512)));
    text.push_str(&list("\nsizes  ", sizes.collect(), s.size_kinds()));
    if has_tasks {
        text.push_str(&list("tasks  ", tasks.collect(), s.task_kinds()));
    }
    text.push_str(&list("devices", devices.collect(), s.device_kinds()));
    if let Some(mean) = s.latency.as_ns().checked_div(s.completed) {
        let (mean, longest) = (time(Duration::from_ns(mean)), time(s.latency_max));
        text.push_str(&format!("latency  mean {mean}, longest {longest}, of {} requests\n", s.completed));
    }
    text + &notes(read.trace.notes())
}

fn row(name: &str, op: &OpSummary, all: u64, span: Duration) -> Vec<Cell> {
    let bytes = op.sectors * 512;
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(span.as_ns().max(1));
    let has_rate = !span.is_zero() && bytes > 0;
    let cells = [
        name.to_owned(),
        op.requests.to_string(),
        percent(op.requests, all),
        if bytes > 0 { mib(bytes) } else { String::new() },
        if has_rate { mib(u64::try_from(rate).unwrap_or(u64::MAX)) } else { String::new() },
        percent(op.sync, op.requests),
        if bytes > 0 { percent(op.sequential, op.requests) } else { String::new() },
    ];
    cells.into_iter().map(Cell::label).collect()
}

fn list(name: &str, named: Vec<String>, kinds: usize) -> String {
    if named.is_empty() {
        return String::new();
    }
    let more = kinds - named.len();
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("{name}  {}{more}\n", named.join(", "))
}

fn notes(notes: Notes) -> String {
    let mut text = String::new();
    for (n, what) in [
        (notes.late, "came too late to be put in order: they were given the time of the one before"),
        (notes.empty, "have no sectors and are left out"),
        (notes.lost, "were lost by the recording; record with a larger buffer"),
    ] {
        if n > 0 {
            text.push_str(&format!("note: {n} {what}\n"));
        }
    }
    text
}

fn task(names: &Names, id: u32) -> String {
    let name = names.task(fairhead_core::TaskId(id));
    name.map_or_else(|| id.to_string(), |name| format!("{name}-{id}"))
}

/// Rounded down: 99.9 is not all.
fn percent(part: u64, all: u64) -> String {
    let tenths = (u128::from(part) * 1000).checked_div(u128::from(all)).unwrap_or(0);
    if tenths.is_multiple_of(10) {
        format!("{}%", tenths / 10)
    } else {
        format!("{}.{}%", tenths / 10, tenths % 10)
    }
}

fn bytes(n: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| n >> shift > 0) {
        Some((shift, unit)) if n.is_multiple_of(1 << shift) => format!("{}{unit}", n >> shift),
        Some((shift, unit)) => format!("{}.{}{unit}", n >> shift, ((n >> (shift - 10)) & 1023) * 10 / 1024),
        None => format!("{n}B"),
    }
}

fn object(read: &Read<'_>) -> Value {
    let (s, names) = (read.summary, read.trace.names());
    let op = |o: &OpSummary| {
        json!({
            "requests": o.requests,
            "bytes": o.sectors * 512,
            "sync": o.sync,
            "sequential": o.sequential,
        })
    };
    let ops: serde_json::Map<String, Value> =
        OPS.iter().map(|(o, name)| ((*name).to_owned(), op(s.of(*o)))).collect();
    let sizes = s.sizes(usize::MAX);
    let sizes = sizes.iter().map(|c| json!({"bytes": u64::from(c.sectors) * 512, "requests": c.requests}));
    let tasks = s.tasks(usize::MAX);
    let tasks = tasks.iter().map(|(id, n)| json!({"task": id.0, "name": names.task(*id), "requests": n}));
    let devices = s.devices(usize::MAX);
    let devices = devices
        .iter()
        .map(|(id, n, end)| json!({"device": names.device(*id), "requests": n, "end_bytes": end * 512}));
    let notes = read.trace.notes();
    json!({
        "trace": read.file,
        "format": read.trace.format().name(),
        "requests": s.requests(),
        "span_ns": s.span.as_ns(),
        "ops": ops,
        "sizes": sizes.collect::<Vec<_>>(),
        "tasks": tasks.collect::<Vec<_>>(),
        "devices": devices.collect::<Vec<_>>(),
        "completed": s.completed,
        "latency_total_ns": s.latency.as_ns(),
        "latency_max_ns": s.latency_max.as_ns(),
        "late": notes.late,
        "empty": notes.empty,
        "events_lost": notes.lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([512, 4096, 1536, 5 << 30].map(bytes), ["512B", "4KiB", "1.5KiB", "5GiB"]);
        assert_eq!([percent(1, 3), percent(3, 3), percent(0, 0)], ["33.3%", "100%", "0%"]);
    }
}
