//! The pictures of runs, in sections: a question, and a picture for each job or each scheduler that answers
//! it.
//!
//! The names of pictures depend on the job and the schedulers only: `latency-JOB`, `throughput-SCHEDULER`,
//! `disk-time-SCHEDULER`, `position-SCHEDULER`, `decisions-SCHEDULER`, `idle`; those of the verdict are
//! `together` and `satisfied`.

pub(crate) mod bars;
mod decisions;
mod flow;
mod idle;
mod latency;
mod position;
pub(crate) mod satisfied;

pub(crate) use decisions::data as decisions_data;
pub use satisfied::before_and_after;

use crate::runs::Runs;
use crate::svg::{Key, Picture};

/// Pictures that answer one question.
#[derive(Clone, Debug)]
pub struct Section {
    /// The id of the section, for links within the page.
    pub id: &'static str,
    /// The question, or the subject.
    pub title: &'static str,
    /// How to read the pictures, and what they do not show.
    pub about: String,
    /// The key of all pictures in the section.
    pub keys: Vec<Key>,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// Returns all pictures of these runs, except those of the verdict, in sections.
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

/// Whether a section has any picture.
pub(crate) fn has(runs: &Runs<'_>, id: &str) -> bool {
    let recordings = || runs.shown.iter().map(|s| s.recording);
    match id {
        "latency" => runs.shown.iter().flat_map(|s| &s.outcome.clients).any(|c| c.bytes() > 0),
        "idle" => recordings().any(|r| !r.idled.is_empty()),
        _ => recordings().any(|r| r.requests > 0),
    }
}

/// Returns all pictures of these runs, except those of the verdict.
#[must_use]
pub fn all(runs: &Runs<'_>) -> Vec<Picture> {
    let of_section = |s: Section| {
        let Section { keys, pictures, .. } = s;
        pictures.into_iter().map(move |p| if p.keys.is_empty() { p.with_keys(keys.clone()) } else { p })
    };
    sections(runs).into_iter().flat_map(of_section).collect()
}
