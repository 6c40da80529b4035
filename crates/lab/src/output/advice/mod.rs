//! Advice, for people and for programs: the answer in a dozen lines, its evidence on demand, JSON, a page.
//!
//! ```text
//! desktop on nas2020: use bfq instead of mq-deadline.
//!
//! job     kind   alone       mq-deadline           bfq
//! film    rate   2.00 MiB/s  ████████  2.00 MiB/s  ████████  2.00 MiB/s
//! office  start  2.46s       █         18.6s       ██████▉   2.88s
//! …
//! ```
//!
//! A bar is how much of what it would get alone each job gets. JSON has the same rows, and all candidates.

mod answer;
mod details;
mod json;
mod page;

pub use answer::{Drawn, human, lines};
pub use details::details;
pub use json::{json, value};
pub use page::{Shown, page, shown_runs};

pub(super) use details::place;
pub(super) use json::ratio;

use fairhead_report::words::{amount, fared};
use fairhead_sim::advise::{Advice, Step, factor, statistics::Ratio, steps, steps_to_stay};
use fairhead_sim::job::{Job, Kind, Program};
use fairhead_sim::satisfaction::Emphasis;

/// The names of the disk and the host, and which jobs count more, for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The disk's name.
    pub disk: String,
    /// The host's name, such as "2020".
    pub host: String,
    /// Which jobs count more, in a word or two.
    pub emphasis: String,
}

impl Labels {
    /// Labels of these names.
    #[must_use]
    pub fn new(disk: &str, host: &str, emphasis: &Emphasis) -> Self {
        let emphasis = match emphasis {
            Emphasis::Even => "even".to_owned(),
            Emphasis::Kind(Kind::Start) => "starts".to_owned(),
            Emphasis::Kind(Kind::Paced) => "rates".to_owned(),
            Emphasis::Kind(Kind::Waiting) => "waits".to_owned(),
            Emphasis::Kind(Kind::Bulk) => "bulk".to_owned(),
            Emphasis::Job(name) => format!("for {name}"),
        };
        Self { disk: disk.to_owned(), host: host.to_owned(), emphasis }
    }
}

/// The unit of a job's amount, for programs.
#[must_use]
pub fn unit(job: &Job, kind: Kind) -> &'static str {
    match kind {
        Kind::Start | Kind::Waiting => "s",
        Kind::Paced if matches!(job.program, Some(Program::Player { .. })) => "part of frames in time",
        Kind::Paced | Kind::Bulk => "bytes/s",
    }
}

/// What users call a kind.
#[must_use]
pub const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Start => "start",
        Kind::Paced => "rate",
        Kind::Waiting => "p99",
        Kind::Bulk => "bulk",
    }
}

/// A factor with its interval.
pub(super) fn shown(r: Ratio) -> String {
    if r.is_vague() {
        return format!("not known ({} to {})", factor(r.low), factor(r.high));
    }
    format!("{} ({} to {})", factor(r.ratio), factor(r.low), factor(r.high))
}

/// What to do to use the winner.
fn todo(advice: &Advice) -> Vec<Step> {
    let of = if advice.winner == 0 { steps_to_stay } else { steps };
    let winner = &advice.candidates[advice.winner];
    of(winner, advice.remedy.as_ref(), &advice.facts, &advice.load.jobs)
}

/// The candidates that ran, the winner first, then by how satisfied the load is; those of fresh seeds first.
fn ranked(advice: &Advice) -> Vec<usize> {
    let ran = |c: &usize| !advice.book.standings[*c].race.is_empty();
    let mut all: Vec<usize> = (0..advice.candidates.len()).filter(ran).collect();
    let satisfied = |c: usize| advice.book.against(c, 0).load.ratio;
    all.sort_by(|a, b| satisfied(*b).total_cmp(&satisfied(*a)));
    all.sort_by_key(|&c| (c != advice.winner, advice.book.standings[c].fresh.is_empty()));
    all
}
