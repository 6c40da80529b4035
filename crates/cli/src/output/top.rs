//! The share of each group between two snapshots of a live disk.
//!
//! ```text
//! bfq, depth 1: 1 at the disk, 30 wait
//! group  weight  share  read MiB/s  write MiB/s  IOPS  p50     p99     waiting  limits
//! gold      300    75%        28.1               450   2.1ms   9.4ms   12
//! tin       100    25%         9.4               150   …
//! ```
//!
//! A row has a group with everything inside it, and the root's own tasks if there are any. Shares are of the
//! disk's time, where the scheduler charges time, and else of the bytes.

use super::table::{Best, Cell, Table};
use fairhead_core::Duration;
use fairhead_sim::metrics::rate;
use serde_json::Value;
use std::collections::BTreeMap;

/// What one group got meanwhile.
#[derive(Clone, Debug, Default)]
struct Got {
    time_ns: u64,
    read: u64,
    write: u64,
    requests: u64,
    waiting: u64,
    /// Latencies: up to how many nanoseconds, and how many took that.
    steps: BTreeMap<u64, u64>,
}

impl Got {
    fn add(&mut self, other: &Self) {
        self.time_ns += other.time_ns;
        self.read += other.read;
        self.write += other.write;
        self.requests += other.requests;
        self.waiting += other.waiting;
        for (to, n) in &other.steps {
            *self.steps.entry(*to).or_default() += n;
        }
    }

    /// Returns the latency that `hundredths` percent of the requests do not exceed.
    fn percentile(&self, hundredths: u64) -> Option<Duration> {
        let all: u64 = self.steps.values().sum();
        let rank = (all * hundredths).div_ceil(100).max(1);
        let mut sum = 0;
        let found = self.steps.iter().find(|(_, n)| {
            sum += **n;
            sum >= rank
        });
        found.map(|(to, _)| Duration::from_ns(*to))
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// What a group got from one look to the next. One that is new, or has another's number, had nothing before.
fn got(before: &Value, after: &Value) -> Got {
    let since = |get: &dyn Fn(&Value) -> &Value| number(get(after)).saturating_sub(number(get(before)));
    let kind = |name: &'static str, kind: &'static str| since(&|g| &g[name][kind]);
    let steps = |of: &Value| -> BTreeMap<u64, u64> {
        let kinds = ["read_latency", "write_latency"].into_iter();
        let all = kinds.filter_map(|kind| of[kind]["steps_ns"].as_array()).flatten();
        all.fold(BTreeMap::new(), |mut sum, step| {
            *sum.entry(number(&step[0])).or_default() += number(&step[1]);
            sum
        })
    };
    let mut latencies = steps(after);
    for (to, n) in steps(before) {
        latencies.entry(to).and_modify(|now| *now = now.saturating_sub(n));
    }
    Got {
        time_ns: since(&|g| &g["disk_time_ns"]),
        read: kind("io_service_bytes", "Read"),
        write: kind("io_service_bytes", "Write"),
        requests: kind("io_serviced", "Total"),
        waiting: number(&after["io_queued"]["Total"]),
        steps: latencies,
    }
}

/// The limits and the guarantee of a group.
fn limits(group: &Value) -> String {
    let max = &group["max"];
    let mut words: Vec<String> = ["rbps", "wbps"]
        .into_iter()
        .filter_map(|w| max[w].as_u64().map(|n| format!("{w}={}", size(n))))
        .chain(["riops", "wiops"].into_iter().filter_map(|w| max[w].as_u64().map(|n| format!("{w}={n}"))))
        .collect();
    if let Some(n) = group["min_iops"].as_u64().filter(|&n| n > 0) {
        words.push(format!("min_iops={n}"));
    }
    words.join(" ")
}

fn size(bytes: u64) -> String {
    match bytes {
        n if n > 0 && n.is_multiple_of(1 << 20) => format!("{}m", n >> 20),
        n if n > 0 && n.is_multiple_of(1 << 10) => format!("{}k", n >> 10),
        n => format!("{n}b"),
    }
}

/// Removes what a terminal would obey: names of groups come from other users.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Returns the table of what happened between two snapshots.
pub(crate) fn top(before: &Value, after: &Value, coloured: bool) -> String {
    let none = Vec::new();
    let groups = |look: &'_ Value| look["groups"].as_array().cloned().unwrap_or_default();
    let (old, new) = (groups(before), after["groups"].as_array().unwrap_or(&none));
    let time = Duration::from_ns(number(&after["now_ns"]).saturating_sub(number(&before["now_ns"])));
    let name = |g: &Value| clean(g["group"].as_str().unwrap_or_default());
    let own: Vec<(String, Got)> = (new.iter())
        .map(|g| {
            let was = old.iter().find(|o| o["group"] == g["group"]).unwrap_or(&Value::Null);
            (name(g), got(was, g))
        })
        .collect();
    let mut all = Got::default();
    own.iter().for_each(|(_, got)| all.add(got));
    let part = |got: &Got| if all.time_ns > 0 { got.time_ns } else { got.read + got.write };
    let row = |(g, (path, mine)): (&Value, &(String, Got))| {
        let mut sum = mine.clone();
        let inside = format!("{path}/");
        let is_inside = |other: &str| !path.is_empty() && other.starts_with(&inside);
        own.iter().filter(|(other, _)| is_inside(other)).for_each(|(_, got)| sum.add(got));
        if path.is_empty() && sum.requests == 0 && sum.waiting == 0 {
            return None;
        }
        let share = (part(&sum) * 100 + part(&all) / 2).checked_div(part(&all));
        let weight = if path.is_empty() { &g["leaf_weight"] } else { &g["weight"] };
        let class = g["class"].as_str().filter(|c| *c != "be").unwrap_or_default();
        Some(vec![
            Cell::label(if path.is_empty() { "/" } else { path }),
            Cell::label(class),
            Cell::label(number(weight).to_string()),
            Cell::label(share.map_or_else(String::new, |s| format!("{s}%"))),
            Cell::rate(rate(sum.read, time)),
            Cell::rate(rate(sum.write, time)),
            Cell::count(rate(sum.requests, time)),
            Cell::time(sum.percentile(50)),
            Cell::time(sum.percentile(99)),
            Cell::count(sum.waiting),
            Cell::label(limits(g)),
        ])
    };
    let rows: Vec<_> = new.iter().zip(&own).filter_map(row).collect();
    let columns = ["group", "class", "weight", "share", "read MiB/s", "write MiB/s", "IOPS", "p50", "p99"];
    let columns = columns.into_iter().chain(["waiting", "limits"]).map(|c| (c, Best::None)).collect();
    let table = Table { columns, words: 1, blocks: vec![rows] };
    head(after, all.waiting) + &table.render(coloured)
}

/// What goes for all.
fn head(look: &Value, waiting: u64) -> String {
    let scheduler = look["scheduler"].as_str().unwrap_or("?");
    let (depth, at_disk) = (number(&look["depth"]), number(&look["in_flight"]));
    let mut line = format!("{scheduler}, depth {depth}: {at_disk} at the disk, {waiting} waiting");
    match number(&look["given_up"]) {
        0 => {}
        n => line.push_str(&format!(", {n} given up")),
    }
    if let Some(why) = look["lateness"]["verdict"].as_str() {
        line.push_str(&format!("; NOT to be trusted: {why}"));
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(now_ms: u64, groups: &Value) -> Value {
        json!({"now_ns": now_ms * 1_000_000, "scheduler": "bfq", "depth": 1, "in_flight": 1, "given_up": 0,
            "lateness": null, "groups": groups})
    }

    fn group(name: &str, time_ms: u64, mib: u64, n: u64) -> Value {
        json!({"group": name, "weight": 300, "class": "be", "leaf_weight": 100, "min_iops": 0, "max": null,
            "disk_time_ns": time_ms * 1_000_000, "io_service_bytes": {"Read": mib << 20, "Write": 0},
            "io_serviced": {"Total": n}, "io_queued": {"Total": 3},
            "read_latency": {"steps_ns": [[2_000_000, n]]}, "write_latency": null})
    }

    #[test]
    fn rows_are_what_went_on_meanwhile_with_everything_inside() {
        let before = look(0, &json!([group("", 0, 0, 0), group("a", 1000, 10, 100), group("b", 0, 0, 0)]));
        let mut inner = group("a/x", 250, 5, 50);
        inner["max"] = json!({"rbps": 50 << 20, "wbps": 1000, "riops": "max", "wiops": 7});
        let mut idle = group("b", 1000, 20, 100);
        idle["class"] = json!("idle");
        let groups = json!([group("", 0, 0, 0), group("a", 1250, 15, 150), inner, idle]);
        let text = top(&before, &look(2000, &groups), false);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(text.lines().next(), Some("bfq, depth 1: 1 at the disk, 12 waiting"));
        assert_eq!(lines[2], ["/", "100", "0%", "0", "3"], "nothing, and yet it waits: {text}");
        assert_eq!(lines[3], ["a", "300", "33%", "5.00", "50", "2.00ms", "2.00ms", "6"]);
        let inner =
            ["a/x", "300", "17%", "2.50", "25", "2.00ms", "2.00ms", "3", "rbps=50m", "wbps=1000b", "wiops=7"];
        assert_eq!(lines[4], inner);
        assert_eq!(lines[5], ["b", "idle", "300", "67%", "10.0", "50", "2.00ms", "2.00ms", "3"]);
    }

    #[test]
    fn shares_are_of_bytes_where_nobody_charges_time_and_nonsense_is_no_trouble() {
        let groups = json!([group("a\u{1b}[2J", 0, 30, 1), group("b", 0, 10, 1)]);
        let text = top(&look(0, &json!([])), &look(1000, &groups), false);
        assert!(text.contains("a?[2J") && text.contains("75%") && text.contains("25%"), "{text}");
        assert!(top(&Value::Null, &Value::Null, false).starts_with('?'));
        let slept = top(&look(5, &groups), &look(5, &groups), false);
        assert!(!slept.contains('%'), "no time, no shares: {slept}");
    }
}
