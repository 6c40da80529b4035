//! Reports of a [`Snapshot`]: as JSON, under the kernel's names with their units, and as text for Prometheus.

use super::books;
use super::change::CLASSES;
use super::value::name_of;
use super::work::{Group, Snapshot};
use crate::confine;
use crate::latency::Latency;
use crate::nbd::ExportStats;
use fairhead_core::config::Shown;
use fairhead_core::groups::{GroupStats, Split};
use fairhead_core::units::{Class, Duration, Instant};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Everything.
pub(super) fn json(s: &Snapshot) -> Value {
    let tunables: Map<String, Value> = (s.config.list().iter())
        .map(|t| {
            let raw = s.config.get(t.name).unwrap_or_default();
            (t.name.to_owned(), json!(Shown(t.unit, raw).to_string()))
        })
        .collect();
    let lateness = s.lateness.as_ref().map(|l| {
        json!({
            "moments": l.events,
            "p99_ns": l.p99().as_ns(),
            "max_ns": l.max.as_ns(),
            "ios": l.ios,
            "slow_store": l.slow_store,
            "verdict": l.verdict(),
        })
    });
    json!({
        "now_ns": s.now.saturating_since(Instant::EPOCH).as_ns(),
        "scheduler": name_of(&s.config),
        "tunables": tunables,
        "depth": s.depth.0,
        "depth_adapts": s.depth.1,
        "rotational": s.limits.rotational,
        "in_flight": s.in_flight.0,
        "given_up": s.in_flight.1,
        "lateness": lateness,
        "confinement": confine::status().map(confinement),
        "groups": s.groups.iter().map(group).collect::<Vec<_>>(),
    })
}

/// What the process has given up, and how often it was held to that.
fn confinement(s: &confine::Status) -> Value {
    json!({
        "seccomp": true,
        "landlock": s.landlock,
        "guards_files": s.guards_files,
        "capabilities": s.capabilities,
        "refused_calls": confine::refused_calls(),
    })
}

/// What the exports of a server have done.
pub(super) fn exports(all: &[(String, ExportStats)]) -> Value {
    let export = |(name, s): &(String, ExportStats)| {
        json!({
            "export": name,
            "connections": s.connections,
            "reads": s.reads,
            "read_bytes": s.read_bytes,
            "read_time_ns": s.read_ns,
            "writes": s.writes,
            "write_bytes": s.write_bytes,
            "write_time_ns": s.write_ns,
            "flushes": s.flushes,
            "errors": s.errors,
            "violations": s.violations,
        })
    };
    all.iter().map(export).collect()
}

fn class(class: Class) -> &'static str {
    CLASSES.iter().find(|c| c.1 == class).map_or("be", |c| c.0)
}

fn group(g: &Group) -> Value {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("group", json!(g.name));
    if !g.name.is_empty() {
        put("weight", json!(g.settings.weight.get()));
        put("class", json!(class(g.settings.class)));
        put("max", books::limits(&g.settings.max));
        put("min_iops", json!(g.settings.min.iops));
        put("latency_target_ns", json!(g.settings.latency.map(Duration::as_ns)));
    }
    put("leaf_weight", json!(g.settings.leaf_weight.get()));
    put("read_latency", latency(g.latency.as_ref().map(|l| &l[0])));
    put("write_latency", latency(g.latency.as_ref().map(|l| &l[1])));
    map.extend(books::books(&g.stats));
    Value::Object(map)
}

/// From when it was handed in until it was answered; null if nothing was.
fn latency(latency: Option<&Latency>) -> Value {
    let Some(l) = latency.filter(|l| l.count() > 0) else { return Value::Null };
    json!({
        "count": l.count(),
        "errors": l.errors(),
        "sum_ns": l.sum_ns(),
        "p50_ns": l.quantile_ns(0.5),
        "p90_ns": l.quantile_ns(0.9),
        "p99_ns": l.quantile_ns(0.99),
        "p999_ns": l.quantile_ns(0.999),
        "max_ns": l.max_ns(),
        "steps_ns": l.steps_ns().map(|(to, n)| json!([to, n])).collect::<Vec<_>>(),
    })
}

/// The ends of Prometheus' steps, in powers of two of nanoseconds: 16 us to 34 s.
const STEPS: std::ops::RangeInclusive<u32> = 14..=35;

/// A count for each direction.
type ByKind = fn(&GroupStats) -> &Split;
/// One number of a group.
type Number = fn(&Group) -> f64;

/// Counted for each direction: name, what it is, how many of it are one.
const SPLITS: [(&str, &str, f64, ByKind); 5] = [
    ("service_bytes_total", "Bytes of completed requests.", 1.0, |s| &s.io_service_bytes),
    ("serviced_total", "Completed requests after merging.", 1.0, |s| &s.io_serviced),
    ("service_seconds_total", "From issue to completion, added up over requests.", 1e-9, |s| {
        &s.io_service_time
    }),
    ("wait_seconds_total", "From insertion to issue, added up over requests.", 1e-9, |s| &s.io_wait_time),
    ("throttled_seconds_total", "Waiting for limits, added up over requests.", 1e-9, |s| &s.throttled_time),
];

/// One number for each group: name, kind, what it is.
const NUMBERS: [(&str, &str, &str, Number); 6] = [
    ("disk_seconds_total", "counter", "Disk time charged, by schedulers that charge time.", |g| {
        g.stats.disk_time.as_ns() as f64 * 1e-9
    }),
    ("group_wait_seconds_total", "counter", "Having requests while another group is served.", |g| {
        g.stats.group_wait_time.as_ns() as f64 * 1e-9
    }),
    ("idle_seconds_total", "counter", "The disk kept idle for the group.", |g| {
        g.stats.idle_time.as_ns() as f64 * 1e-9
    }),
    ("queued", "gauge", "Requests that wait.", |g| g.stats.io_queued.total() as f64),
    ("weight", "gauge", "Share among siblings.", |g| f64::from(g.settings.weight.get())),
    ("errors_total", "counter", "Requests that failed.", |g| {
        g.latency.as_ref().map_or(0.0, |l| (l[0].errors() + l[1].errors()) as f64)
    }),
];

/// The text format, version 0.0.4.
//= Prometheus docs, Exposition formats, Text-based format
pub(super) fn prometheus(s: &Snapshot) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, about: &str| {
        let _ = writeln!(text, "# HELP fairhead_{name} {about}\n# TYPE fairhead_{name} {kind}");
    };
    head(&mut text, "scheduler", "gauge", "The scheduler; 1.");
    let _ = writeln!(text, "fairhead_scheduler{{scheduler=\"{}\"}} 1", name_of(&s.config));
    for (name, about, n) in [
        ("depth", "Requests that the disk has at a time, at most.", u32::from(s.depth.0)),
        ("in_flight", "Requests that the disk has.", u32::from(s.in_flight.0)),
        ("given_up", "Requests that the disk has had for too long.", s.in_flight.1),
    ] {
        head(&mut text, name, "gauge", about);
        let _ = writeln!(text, "fairhead_{name} {n}");
    }
    if confine::status().is_some() {
        head(&mut text, "refused_calls_total", "counter", "System calls that confinement refused.");
        let _ = writeln!(text, "fairhead_refused_calls_total {}", confine::refused_calls());
    }
    if let Some(l) = &s.lateness {
        head(
            &mut text,
            "late_p99_seconds",
            "gauge",
            "The model's moments were looked at so late, 99 % of them.",
        );
        let _ = writeln!(text, "fairhead_late_p99_seconds {}", l.p99().as_ns() as f64 * 1e-9);
    }
    for (name, about, one, get) in SPLITS {
        let name = format!("group_{name}");
        head(&mut text, &name, "counter", about);
        for g in &s.groups {
            let (split, group) = (get(&g.stats), label(g));
            for (op, n) in [("read", split.read()), ("write", split.write()), ("discard", split.discard())] {
                let _ = writeln!(text, "fairhead_{name}{{group=\"{group}\",op=\"{op}\"}} {}", n as f64 * one);
            }
        }
    }
    for (name, kind, about, get) in NUMBERS {
        head(&mut text, &format!("group_{name}"), kind, about);
        for g in &s.groups {
            let _ = writeln!(text, "fairhead_group_{name}{{group=\"{}\"}} {}", label(g), get(g));
        }
    }
    let about = "From when a request was handed in until it was answered; write is all but reads.";
    head(&mut text, "group_latency_seconds", "histogram", about);
    for g in &s.groups {
        for (op, latency) in ["read", "write"].into_iter().zip(g.latency.iter().flat_map(|l| l.iter())) {
            histogram(&mut text, &format!("group=\"{}\",op=\"{op}\"", label(g)), latency);
        }
    }
    text
}

fn histogram(text: &mut String, labels: &str, latency: &Latency) {
    let mut steps = latency.steps_ns().peekable();
    let mut sum = 0;
    for end in STEPS.map(|n| 1_u64 << n) {
        while let Some((_, n)) = steps.next_if(|&(to, _)| to <= end) {
            sum += n;
        }
        let le = end as f64 * 1e-9;
        let _ = writeln!(text, "fairhead_group_latency_seconds_bucket{{{labels},le=\"{le}\"}} {sum}");
    }
    let (count, sum) = (latency.count(), latency.sum_ns() as f64 * 1e-9);
    let _ = writeln!(text, "fairhead_group_latency_seconds_bucket{{{labels},le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "fairhead_group_latency_seconds_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "fairhead_group_latency_seconds_count{{{labels}}} {count}");
}

/// A group's name as a label's value; the root's is a slash.
fn label(g: &Group) -> String {
    match g.name.as_str() {
        "" => "/".to_owned(),
        name => name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
    }
}

/// A line that says why something is refused.
pub(super) fn refusal(why: &str) -> String {
    json!({ "error": why }).to_string() + "\n"
}
