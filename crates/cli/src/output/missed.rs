//! Rates that a job file asks for and a run did not reach: `rate` and `rate_iops`.
//!
//! A cap is also a wish: a film with `rate=3m` needs its 3 MiB/s. It is missed if a job gets less by more
//! than 2 percent and by more than what it may have in flight.

use std::collections::BTreeMap;

use fairhead_sim::job::{Direction, Job};
use fairhead_sim::metrics::{OpStats, rate};
use serde_json::{Value, json};

use super::table::mib;
use super::{Report, Sum};

/// A rate that was missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    /// `read`, `write` or `trim`.
    way: &'static str,
    /// Whether it is in calls a second, and not bytes.
    in_calls: bool,
    /// What all clients of the job may have together, per second.
    wanted: u64,
    /// What they got.
    got: u64,
}

/// Which rates the clients of a job missed.
fn of(job: &Job, sum: &Sum) -> Vec<Missed> {
    if job.program.is_some() || sum.elapsed.is_zero() {
        return Vec::new();
    }
    let (d, r, i) = (job.rw.direction, &job.rate, &job.rate_iops);
    let ways: [(&'static str, bool, &OpStats, _, _, u32); 3] = [
        (
            "read",
            matches!(d, Direction::Read | Direction::Mixed),
            &sum.read,
            r.read,
            i.read,
            job.bs.read.max_bytes(),
        ),
        (
            "write",
            matches!(d, Direction::Write | Direction::Mixed),
            &sum.write,
            r.write,
            i.write,
            job.bs.write.max_bytes(),
        ),
        ("trim", d == Direction::Trim, &sum.trim, r.trim, i.trim, job.bs.trim.max_bytes()),
    ];
    let clients = sum.clients as u64;
    let in_flight = clients * u64::from(job.iodepth);
    let mut missed = Vec::new();
    for (way, _, stats, rate_bytes, rate_calls, block) in ways.into_iter().filter(|w| w.1) {
        let limits = [
            (false, rate_bytes, stats.bytes, in_flight * u64::from(block)),
            (true, rate_calls.map(u64::from), stats.calls, in_flight),
        ];
        for (in_calls, wanted, done, slack) in limits {
            let Some(wanted) = wanted.map(|w| w * clients) else { continue };
            let got = rate(done, sum.elapsed);
            if rate(done + slack, sum.elapsed) < wanted - wanted / 50 {
                missed.push(Missed { way, in_calls, wanted, got });
            }
        }
    }
    missed
}

/// Adds them to a job's figures.
pub(super) fn add(entry: &mut Value, job: &Job, sum: &Sum) {
    let object = |m: &Missed| {
        let option = if m.in_calls { "rate_iops" } else { "rate" };
        json!({ "option": option, "direction": m.way, "wanted_per_s": m.wanted, "got_per_s": m.got })
    };
    entry["missed_rates"] = Value::Array(of(job, sum).iter().map(object).collect());
}

/// A line for each rate that was missed under any scheduler.
pub(super) fn lines(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (i, job) in report.jobs().jobs.iter().enumerate() {
        let mut all: BTreeMap<(&str, bool, u64), Vec<String>> = BTreeMap::new();
        for o in report.outcomes {
            let sum = Sum::of(o.clients.iter().filter(|c| c.job == i));
            for m in of(job, &sum) {
                let got = if m.in_calls { m.got.to_string() } else { mib(m.got) };
                let under = all.entry((m.way, m.in_calls, m.wanted)).or_default();
                under.push(format!("{got} under {}", o.scheduler));
            }
        }
        for ((way, in_calls, wanted), under) in all {
            let (option, wanted) = match in_calls {
                true => ("rate_iops", format!("{wanted} {way}s a second")),
                false => ("rate", format!("to {way} {} MiB/s", mib(wanted))),
            };
            text += &format!("missed {option}: {} wants {wanted} and gets {}\n", job.name, under.join(", "));
        }
    }
    text
}
