//! The pictures of runs, in sections: what is asked, and a picture for each job or each scheduler.
//!
//! Their names are the same for the same job and schedulers: `latency-JOB`, `throughput-SCHEDULER`, `disk-time-SCHEDULER`, `position-SCHEDULER`,
//! `decisions-SCHEDULER`, `idle`, `verdict-wait`, `verdict-throughput`, `verdict-fairness`.

mod bars;
mod decisions;
mod factors;
mod flow;
mod idle;
mod latency;
mod position;

pub(crate) use decisions::data as decisions_data;
pub use factors::factors;

use crate::runs::Runs;
use crate::svg::{Key, Picture};
use crate::verdict::Verdict;

/// Pictures that answer one question.
#[derive(Clone, Debug)]
pub struct Section {
    /// For links within the page.
    pub id: &'static str,
    /// The question, or what is shown.
    pub title: &'static str,
    /// How to read it, and what it does not tell.
    pub about: String,
    /// Who is who in all of them.
    pub keys: Vec<Key>,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// All pictures of these runs but the verdict's.
#[must_use]
pub fn sections(runs: &Runs<'_>) -> Vec<Section> {
    let all = [
        latency::section(runs),
        flow::throughput(runs),
        flow::disk_time(runs),
        position::section(runs),
        idle::section(runs),
        decisions::section(runs),
    ];
    all.into_iter().filter(|s| has(runs, s.id)).collect()
}

/// Whether there is anything in a section.
pub(crate) fn has(runs: &Runs<'_>, id: &str) -> bool {
    let recordings = || runs.shown.iter().map(|s| s.recording);
    match id {
        "latency" => runs.shown.iter().flat_map(|s| &s.outcome.clients).any(|c| c.bytes() > 0),
        "idle" => recordings().any(|r| !r.idled.is_empty()),
        _ => recordings().any(|r| r.requests > 0),
    }
}

/// The verdict's pictures.
pub(crate) fn verdict(runs: &Runs<'_>, verdict: &Verdict) -> Vec<Picture> {
    verdict.judged.iter().map(|j| bars::judged(runs, j)).collect()
}

/// All pictures of these runs.
#[must_use]
pub fn all(runs: &Runs<'_>) -> Vec<Picture> {
    let first = verdict(runs, &crate::verdict::verdict(runs));
    let rest = sections(runs).into_iter().flat_map(|s| {
        let Section { keys, pictures, .. } = s;
        pictures.into_iter().map(move |p| if p.keys.is_empty() { p.with_keys(keys.clone()) } else { p })
    });
    first.into_iter().chain(rest).collect()
}
