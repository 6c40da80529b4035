//! The share of each group between two looks at a live disk, as a table.
//!
//! ```text
//! bfq, depth 1: 1 at the disk, 30 wait
//! group  weight  share  read MiB/s  write MiB/s  IOPS  p50     p99     waiting  limits
//! gold      300    75%        28.1               450   2.1ms   9.4ms   12
//! tin       100    25%         9.4               150   …
//! ```
//!
//! [`Interval`] says what a row is and what shares are of.

use super::interval::{Interval, Row};
use super::table::{Best, Cell, Table};

/// Returns the table of an interval.
pub(crate) fn top(interval: &Interval, coloured: bool) -> String {
    let row = |r: &Row| {
        vec![
            Cell::label(r.group.as_str()),
            Cell::label(r.class.as_str()),
            Cell::label(r.weight.to_string()),
            Cell::label(r.percent().map_or_else(String::new, |s| format!("{s}%"))),
            Cell::rate(r.read),
            Cell::rate(r.write),
            Cell::count(r.iops),
            Cell::time(r.p50),
            Cell::time(r.p99),
            Cell::count(r.waiting),
            Cell::label(r.limits.as_str()),
        ]
    };
    let rows: Vec<_> = interval.rows.iter().map(row).collect();
    let columns = ["group", "class", "weight", "share", "read MiB/s", "write MiB/s", "IOPS", "p50", "p99"];
    let columns = columns.into_iter().chain(["waiting", "limits"]).map(|c| (c, Best::None)).collect();
    let table = Table { columns, words: 1, blocks: vec![rows] };
    head(interval) + &table.render(coloured)
}

/// What goes for all.
fn head(i: &Interval) -> String {
    let mut line =
        format!("{}, depth {}: {} at the disk, {} waiting", i.scheduler, i.depth, i.at_disk, i.all.waiting);
    match i.given_up {
        0 => {}
        n => line.push_str(&format!(", {n} given up")),
    }
    if let Some(why) = &i.doubt {
        line.push_str(&format!("; NOT to be trusted: {why}"));
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn table(before: &Value, after: &Value) -> String {
        top(&Interval::between(before, after), false)
    }

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
        let text = table(&before, &look(2000, &groups));
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
        let text = table(&look(0, &json!([])), &look(1000, &groups));
        assert!(text.contains("a?[2J") && text.contains("75%") && text.contains("25%"), "{text}");
        assert!(table(&Value::Null, &Value::Null).starts_with('?'));
        let slept = table(&look(5, &groups), &look(5, &groups));
        assert!(!slept.contains('%'), "no time, no shares: {slept}");
    }
}
