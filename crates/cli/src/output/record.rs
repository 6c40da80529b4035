//! What a recording has in it, process by process: a table, or one JSON object.
//!
//! ```text
//! recorded.blktrace: 1204 requests of sda (bfq) in 60s
//!
//! process      requests  read MiB  written MiB   p50    p99  random  priority  cgroup
//! fio-4711         1200      4.69            0  84us  1.2ms   99.9%  idle/7    /backup.slice
//!
//! next: fairhead run recorded.blktrace --sched bfq,mq-deadline
//! ```

use fairhead_machine::record::{Outcome, ProcessFacts, Target, class};
use fairhead_trace::{Names, Summary, TaskSummary, Tasks};
use serde_json::{Value, json};

use super::table::{Best, Cell, Table, mib, time};
use crate::args::ReportFormat;

/// How many processes the table has.
const NAMED: usize = 15;

/// A recording and what was read of it.
pub(crate) struct Recorded<'a> {
    pub(crate) file: &'a str,
    pub(crate) targets: &'a [Target],
    pub(crate) outcome: &'a Outcome,
    pub(crate) names: &'a Names,
    pub(crate) summary: &'a Summary,
    pub(crate) tasks: &'a Tasks,
}

/// The summary as text, with a line break at its end.
pub(crate) fn render(recorded: &Recorded<'_>, format: ReportFormat, coloured: bool) -> String {
    match format {
        ReportFormat::Human => human(recorded, coloured),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&object(recorded)).expect("a JSON value can be written") + "\n"
        }
    }
}

fn human(r: &Recorded<'_>, coloured: bool) -> String {
    let disk = |t: &Target| match &t.scheduler {
        Some(scheduler) => format!("{} ({scheduler})", t.name),
        None => t.name.clone(),
    };
    let disks: Vec<String> = r.targets.iter().map(disk).collect();
    let (n, seconds) = (r.summary.requests(), r.outcome.time.as_secs_f64());
    let mut text = format!("{}: {n} requests of {} in {seconds:.1}s\n", r.file, disks.join(", "));
    if n == 0 {
        return text;
    }
    let columns =
        ["process", "requests", "read MiB", "written MiB", "p50", "p99", "random", "priority", "cgroup"];
    let rows = r.tasks.busiest(NAMED).into_iter().map(|(id, task)| row(r, id.0, task)).collect();
    let table = Table { words: 1, columns: columns.map(|c| (c, Best::None)).to_vec(), blocks: vec![rows] };
    text.push('\n');
    text.push_str(&table.render(coloured));
    let more = r.tasks.count().saturating_sub(NAMED);
    if more > 0 {
        text.push_str(&format!("and {more} more processes: fairhead trace {}\n", r.file));
    }
    text + &format!("\nnext: fairhead advise {}\n", r.file)
}

fn row(r: &Recorded<'_>, id: u32, task: &TaskSummary) -> Vec<Cell> {
    let facts = r.outcome.facts.get(&id);
    let latency = |thousandths| task.latency(thousandths).map(time).unwrap_or_default();
    let random = (task.with_sectors - task.sequential) * 1000 / task.with_sectors.max(1);
    let cells = [
        r.names.task(fairhead_core::TaskId(id)).map_or_else(|| id.to_string(), |name| format!("{name}-{id}")),
        task.requests.to_string(),
        mib(task.read_sectors * 512),
        mib(task.written_sectors * 512),
        latency(500),
        latency(990),
        format!("{}.{}%", random / 10, random % 10),
        priority(facts),
        facts.map(|f| f.cgroup.clone()).unwrap_or_default(),
    ];
    cells.into_iter().map(Cell::label).collect()
}

fn priority(facts: Option<&ProcessFacts>) -> String {
    let prio = facts.and_then(|f| f.prio);
    prio.map(|p| format!("{}/{}", class(p.class), p.level)).unwrap_or_default()
}

fn object(r: &Recorded<'_>) -> Value {
    let disks = r.targets.iter().map(|t| {
        json!({"name": t.name, "disk": t.disk, "device": format!("{},{}", t.number.0, t.number.1), "scheduler": t.scheduler})
    });
    let processes = r.tasks.busiest(usize::MAX).into_iter().map(|(id, task)| {
        let facts = r.outcome.facts.get(&id.0);
        json!({
            "process": id.0,
            "name": r.names.task(id),
            "requests": task.requests,
            "read_bytes": task.read_sectors * 512,
            "written_bytes": task.written_sectors * 512,
            "latency_p50_ns": task.latency(500).map(|t| t.as_ns()),
            "latency_p99_ns": task.latency(990).map(|t| t.as_ns()),
            "random": task.with_sectors - task.sequential,
            "priority": priority(facts),
            "cgroup": facts.map(|f| f.cgroup.as_str()),
        })
    });
    json!({
        "file": r.file,
        "disks": disks.collect::<Vec<_>>(),
        "time_ns": u64::try_from(r.outcome.time.as_nanos()).unwrap_or(u64::MAX),
        "requests": r.summary.requests(),
        "events_lost": r.outcome.lost,
        "own_requests": r.outcome.own,
        "processes": processes.collect::<Vec<_>>(),
    })
}
