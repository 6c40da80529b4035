//! Rates that a job file asks for and a run did not reach: `rate` and `rate_iops`.
//!
//! [`rates`] says what counts as missed.

use std::collections::BTreeMap;

use fairhead_sim::job::Job;
use fairhead_sim::metrics::ClientStats;
use fairhead_sim::rates::{self, Rate};
use serde_json::{Value, json};

use super::Report;
use super::table::mib;

/// The rates that the clients of a job missed.
fn of<'c>(job: &Job, clients: impl Iterator<Item = &'c ClientStats>) -> Vec<Rate> {
    rates::of(job, clients).into_iter().filter(|r| r.is_missed).collect()
}

/// Adds them to a job's figures.
pub(crate) fn add<'c>(entry: &mut Value, job: &Job, clients: impl Iterator<Item = &'c ClientStats>) {
    let object = |m: &Rate| {
        let option = if m.in_calls { "rate_iops" } else { "rate" };
        json!({ "option": option, "direction": m.way, "wanted_per_s": m.wanted, "got_per_s": m.got })
    };
    entry["missed_rates"] = Value::Array(of(job, clients).iter().map(object).collect());
}

/// A line for each rate that was missed under any scheduler.
pub(crate) fn lines(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (i, job) in report.jobs().jobs.iter().enumerate() {
        let mut all: BTreeMap<(&str, bool, u64), Vec<String>> = BTreeMap::new();
        for o in report.outcomes {
            for m in of(job, o.clients.iter().filter(|c| c.job == i)) {
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
