//! What each group of a live disk got between two looks at its statistics.
//!
//! ```text
//! look, look ─► Interval ─┬► output::top  a table
//!                         └► top          a screen
//! ```
//!
//! A row is a group with everything inside it, and the root's own clients if there are any. Shares are of the
//! disk's time, where the scheduler charges time, and else of the bytes. A look is the answer to `stats`
//! (docs/control.md); what is missing in it counts as zero.

use fairhead_core::Duration;
use fairhead_sim::metrics::rate;
use serde_json::Value;
use std::collections::BTreeMap;

use super::time;

/// What happened between two looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    /// The name of the scheduler, at the end.
    pub(crate) scheduler: String,
    /// How many requests the disk has at a time, at most.
    pub(crate) depth: u64,
    /// How many requests the disk has.
    pub(crate) at_disk: u64,
    /// How many requests the disk has had for too long.
    pub(crate) given_up: u64,
    /// Why figures of an emulated disk are not to be trusted.
    pub(crate) doubt: Option<String>,
    /// How long the disk has been served.
    pub(crate) up: Duration,
    /// The groups, in the order of the server.
    pub(crate) rows: Vec<Row>,
    /// All groups together.
    pub(crate) all: Row,
}

/// What a group got, with everything inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name; a slash for the root.
    pub(crate) group: String,
    /// Its class, unless that is best effort.
    pub(crate) class: String,
    /// Its share among its siblings.
    pub(crate) weight: u64,
    /// Its part of the disk's time, or of the bytes: this, of that.
    pub(crate) part: (u64, u64),
    /// Bytes per second read.
    pub(crate) read: u64,
    /// Bytes per second written.
    pub(crate) write: u64,
    /// Requests per second.
    pub(crate) iops: u64,
    /// The latency that half of the requests do not exceed.
    pub(crate) p50: Option<Duration>,
    /// The latency that 99 % of the requests do not exceed.
    pub(crate) p99: Option<Duration>,
    /// How many requests wait.
    pub(crate) waiting: u64,
    /// Its limits and its guarantee.
    pub(crate) limits: String,
}

impl Row {
    /// Returns the share in percent, rounded; none if nothing was done for anybody.
    pub(crate) fn percent(&self) -> Option<u64> {
        self.share(100)
    }

    /// Returns the share in parts of `whole`, rounded.
    pub(crate) fn share(&self, whole: u64) -> Option<u64> {
        let (part, all) = (u128::from(self.part.0), u128::from(self.part.1));
        let share = (part * u128::from(whole) + all / 2).checked_div(all)?;
        u64::try_from(share).ok()
    }

    /// Returns the bytes per second, in both directions.
    pub(crate) fn bandwidth(&self) -> u64 {
        self.read.saturating_add(self.write)
    }
}

impl Interval {
    /// Compares two looks.
    pub(crate) fn between(before: &Value, after: &Value) -> Self {
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
        let rated = |sum: &Got| Row {
            part: (part(sum), part(&all)),
            read: rate(sum.read, time),
            write: rate(sum.write, time),
            iops: rate(sum.requests, time),
            p50: sum.percentile(50),
            p99: sum.percentile(99),
            waiting: sum.waiting,
            ..Row::default()
        };
        let row = |(g, (path, mine)): (&Value, &(String, Got))| {
            let mut sum = mine.clone();
            let inside = format!("{path}/");
            let is_inside = |other: &str| !path.is_empty() && other.starts_with(&inside);
            own.iter().filter(|(other, _)| is_inside(other)).for_each(|(_, got)| sum.add(got));
            if path.is_empty() && sum.requests == 0 && sum.waiting == 0 {
                return None;
            }
            let weight = if path.is_empty() { &g["leaf_weight"] } else { &g["weight"] };
            Some(Row {
                group: if path.is_empty() { "/".to_owned() } else { path.clone() },
                class: clean(g["class"].as_str().filter(|c| *c != "be").unwrap_or_default()),
                weight: number(weight),
                limits: limits(g),
                ..rated(&sum)
            })
        };
        Self {
            scheduler: clean(after["scheduler"].as_str().unwrap_or("?")),
            depth: number(&after["depth"]),
            at_disk: number(&after["in_flight"]),
            given_up: number(&after["given_up"]),
            doubt: after["lateness"]["verdict"].as_str().map(clean),
            up: Duration::from_ns(number(&after["now_ns"])),
            rows: new.iter().zip(&own).filter_map(row).collect(),
            all: rated(&all),
        }
    }
}

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

/// The limits, the guarantee and the target of a group.
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
    if let Some(ns) = group["latency_target_ns"].as_u64() {
        words.push(format!("latency={}", time(Duration::from_ns(ns))));
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
