//! Control groups: their settings, and what they got.
//!
//! ```text
//! cgroup     scheduler  weight  disk time  share  read MiB/s  …  mean wait
//! tenants    cfq           300      12.0s    60%  …
//! tenants/a  cfq           100      6.01s    30%  …
//! ```
//!
//! A row has a group with everything inside it, and the root's own tasks if there are any; rates are over the
//! time of its clients. JSON has both: a group's own figures under the kernel's names, and those with
//! everything inside it, as the kernel's `…_recursive` files have them.

use super::books::{books, limits};
use super::table::{Best, Cell, Table};
use super::{Report, json::thousandths};
use fairhead_core::{Class, Duration, GroupStats, Split};
use fairhead_sim::Outcome;
use fairhead_sim::idled::IdledForLimit;
use fairhead_sim::job::class_word;
use fairhead_sim::metrics::{ClientStats, GroupOutcome, rate};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What every group got under every scheduler; nothing if the jobs name none.
pub(crate) fn table(report: &Report<'_>) -> Option<Table<'static>> {
    let columns = vec![
        ("cgroup", Best::None),
        ("scheduler", Best::None),
        ("weight", Best::None),
        ("class", Best::None),
        ("disk time", Best::None),
        ("share", Best::None),
        ("read MiB/s", Best::Most),
        ("write MiB/s", Best::Most),
        ("IOPS", Best::Most),
        ("mean wait", Best::Least),
        ("for its limit", Best::None),
        ("dequeued", Best::None),
    ];
    let groups = &report.outcomes.first()?.groups;
    let is_shown = |&i: &usize| i > 0 || report.outcomes.iter().any(|o| requests(&o.groups[0].stats) > 0);
    let block = |i: usize| {
        let row = |(k, o): (usize, &Outcome)| {
            let name = if k == 0 { groups[i].path.clone() } else { String::new() };
            let mut cells = vec![Cell::label(name), Cell::label(&o.scheduler)];
            cells.extend(figures(o, i, time_of(report, o, i)));
            cells
        };
        report.outcomes.iter().enumerate().map(row).collect()
    };
    let blocks: Vec<_> = (0..groups.len()).filter(is_shown).map(block).collect();
    (!blocks.is_empty()).then_some(Table { words: 2, columns, blocks })
}

/// What groups were given and schedulers do not keep, in one line; nothing if all keep all.
pub(crate) fn not_kept(report: &Report<'_>) -> String {
    let words: BTreeSet<&str> = report.outcomes.iter().flat_map(|o| &o.groups_not_kept).copied().collect();
    let under = |word: &str| {
        let names = report.outcomes.iter().filter(|o| o.groups_not_kept.contains(&word));
        names.map(|o| o.scheduler.as_str()).collect::<Vec<_>>().join(", ")
    };
    // Settings that the same schedulers do not keep are listed together.
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for word in words {
        let names = under(word);
        match all.iter_mut().find(|(known, _)| *known == names) {
            Some((_, words)) => words.push(word),
            None => all.push((names, vec![word])),
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let parts: Vec<String> =
        all.iter().map(|(names, words)| format!("{} under {names}", words.join(", "))).collect();
    format!("not kept: {}\n", parts.join("; "))
}

/// A warning for each scheduler that kept the disk idle for groups that waited for their limit.
pub(crate) fn idled(report: &Report<'_>) -> String {
    let warning = |o: &Outcome| {
        let idled = IdledForLimit::of(o)?;
        Some(format!("warning: {}; compare\n", idled.words(&o.scheduler)))
    };
    report.outcomes.iter().filter_map(warning).collect()
}

/// From the first start to the last end of the clients that were in the group at the start; all of the run if
/// there were none.
fn time_of(report: &Report<'_>, o: &Outcome, i: usize) -> Duration {
    let job = |c: &ClientStats| &report.jobs().jobs[c.job];
    let is_in = |group: usize| if i == 0 { group == 0 } else { o.is_inside(group, i) };
    let mine = || o.clients.iter().filter(|c| is_in(report.jobs().cgroup_of(job(c))));
    let start = mine().map(|c| c.started).min();
    let end = mine().map(|c| c.started + job(c).ramp_time + c.elapsed).max();
    start.zip(end).map_or(o.elapsed, |(start, end)| end.saturating_sub(start))
}

/// The columns behind the names. Of the root it is its own tasks.
fn figures(o: &Outcome, i: usize, time: Duration) -> Vec<Cell> {
    let g = &o.groups[i];
    let got = if i == 0 { g.stats } else { o.group_total(i) };
    let per_s = |n: u64| rate(n, time);
    let all_time = o.group_total(0).disk_time;
    let charged = !all_time.is_zero();
    let class = |c| if c == Class::BestEffort { String::new() } else { class_word(c).to_uppercase() };
    vec![
        Cell::label(if i == 0 { g.leaf_weight.get() } else { g.weight.get() }.to_string()),
        Cell::label(class(g.class)),
        match got.disk_time {
            Duration::ZERO if charged => Cell::label("0"),
            time => Cell::time(charged.then_some(time)),
        },
        Cell::label(if charged { super::human::share(got.disk_time, all_time) } else { String::new() }),
        Cell::rate(per_s(got.io_service_bytes.read())),
        Cell::rate(per_s(got.io_service_bytes.write())),
        Cell::count(per_s(requests(&got))),
        Cell::time(mean(&got.io_wait_time, &got)),
        Cell::time(mean(&got.throttled_time, &got).filter(|t| !t.is_zero())),
        Cell::label(if charged { got.disk_dequeue.to_string() } else { String::new() }),
    ]
}

const fn requests(stats: &GroupStats) -> u64 {
    stats.io_serviced.total()
}

/// A time in the mean over requests; nothing if there were none.
fn mean(ns: &Split, stats: &GroupStats) -> Option<Duration> {
    ns.total().checked_div(requests(stats)).map(Duration::from_ns)
}

/// All groups of a run; null if the jobs name none.
pub(crate) fn json(o: &Outcome) -> Value {
    if o.groups.is_empty() {
        return Value::Null;
    }
    o.groups.iter().enumerate().map(|(i, g)| group(o, i, g)).collect()
}

fn group(o: &Outcome, i: usize, g: &GroupOutcome) -> Value {
    let mut entry = json!({
        "cgroup": g.path,
        "weight": (i > 0).then(|| g.weight.get()),
        "leaf_weight": g.leaf_weight.get(),
        "class": (i > 0).then(|| class_word(g.class)),
        "max": limits(&g.max),
        "min_iops": g.min.iops,
    });
    let Value::Object(map) = &mut entry else { return entry };
    map.extend(stats(&g.stats));
    let total = o.group_total(i);
    let all_time = o.group_total(0).disk_time;
    if !all_time.is_zero() {
        map.insert(
            "disk_time_share".to_owned(),
            json!(thousandths(rate(total.disk_time.as_ns() * 1000, all_time) / 1_000_000_000)),
        );
    }
    map.insert("recursive".to_owned(), Value::Object(stats(&total)));
    entry
}

/// The books, and `io.stat`'s names.
fn stats(s: &GroupStats) -> Map<String, Value> {
    let mut map = books(s);
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    let size = (s.queue_size_sum * 1000).checked_div(s.queue_size_samples).unwrap_or(0);
    put("avg_queue_size", json!(thousandths(size)));
    put("rbytes", json!(s.io_service_bytes.read()));
    put("wbytes", json!(s.io_service_bytes.write()));
    put("dbytes", json!(s.io_service_bytes.discard()));
    put("rios", json!(s.io_serviced.read()));
    put("wios", json!(s.io_serviced.write()));
    put("dios", json!(s.io_serviced.discard()));
    map
}
