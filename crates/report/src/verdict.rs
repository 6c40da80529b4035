//! The verdict of a plain run: the three figures that `advise` judges by, each with the best run and the
//! distance of the others.
//!
//! "application suffers most: start-up time 12.6s under none, 711ms under bfq. The start-up time of
//! application is best under bfq: 711ms. The next is cfq-ts1 with 9.11s, worse by a factor of 12.8 …"
//!
//! [`fairhead_sim::advise`] defines the figures, the jobs that wait, the words, and what counts as no
//! difference. A single seed has no confidence interval, so nothing here says how certain it is, and there is
//! no score: use `advise` for that.

use crate::runs::{Runs, Shown};
use crate::words::{mib, real, time};
use fairhead_core::Duration;
use fairhead_sim::advise::{EQUAL, factor};
use fairhead_sim::figures::{self, Figures, Wait, Waiting};
use fairhead_sim::metrics::ClientStats;

/// One figure of all runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// The name of the figure, as the subject of a sentence.
    pub(crate) subject: String,
    /// The stem of its picture.
    pub(crate) stem: &'static str,
    /// Whether less is better, as it is shown.
    pub(crate) less_is_better: bool,
    /// For each run its value; larger is better.
    pub(crate) values: Vec<Option<f64>>,
    wait: Wait,
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes or nanoseconds, positive")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Judged {
    /// Formats a value as the tables do.
    pub(crate) fn shown(&self, value: f64) -> String {
        match self.stem {
            "verdict-wait" if self.wait.is_time() => time(Duration::from_ns(whole(1e9 / value))),
            // Percent of frames, plus one.
            "verdict-wait" => format!("{:.1}%", 1.0 / value - 1.0),
            "verdict-throughput" => format!("{} MiB/s", mib(whole(value))),
            _ if value < 0.1 => format!("{value:.3}"),
            _ => format!("{value:.2}"),
        }
    }

    /// Returns a value in whole nanoseconds, bytes per second or thousandths.
    pub(crate) fn raw(&self, value: f64) -> u64 {
        match self.stem {
            "verdict-wait" if self.wait.is_time() => whole(1e9 / value),
            "verdict-wait" => whole(1000.0 / value),
            "verdict-throughput" => whole(value),
            _ => whole(value * 1000.0),
        }
    }

    /// Returns the length of a value's bar, in the unit that is shown.
    pub(crate) fn length(&self, value: f64) -> f64 {
        if self.less_is_better { 1.0 / value } else { value }
    }

    /// Returns the runs with their values, the best first.
    pub(crate) fn ranked(&self) -> Vec<(usize, f64)> {
        let mut all: Vec<(usize, f64)> =
            self.values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// Whether a value is no different from the best.
    pub(crate) fn is_best(&self, value: f64) -> bool {
        self.ranked().first().is_some_and(|best| best.1 <= value * EQUAL)
    }

    /// Returns the sentence about the figure, if there is one.
    fn sentence(&self, runs: &Runs<'_>) -> Option<String> {
        let ranked = self.ranked();
        let (&(best, top), &(last, low)) = (ranked.first()?, ranked.last()?);
        let name = |run: usize| runs.shown[run].name();
        let subject = &self.subject;
        if ranked.len() == 1 {
            return Some(format!("{subject} is {} under {}.", self.shown(top), name(best)));
        }
        if self.is_best(low) {
            return Some(format!(
                "{subject}: no difference between the schedulers; {} to {}.",
                self.shown(top),
                self.shown(low)
            ));
        }
        let alike: Vec<String> =
            ranked[1..].iter().filter(|r| self.is_best(r.1)).map(|r| name(r.0)).collect();
        let mut said = format!("{subject} is best under {}: {}.", name(best), self.shown(top));
        if !alike.is_empty() {
            said.push_str(&format!(" No difference to: {}.", alike.join("; ")));
        }
        let next = ranked.iter().find(|r| !self.is_best(r.1)).filter(|n| n.0 != last);
        let worse = |run: usize, value: f64| {
            format!("{} with {}, worse by a factor of {}", name(run), self.shown(value), factor(top / value))
        };
        if let Some(&(run, value)) = next {
            said.push_str(&format!(" The next is {}.", worse(run, value)));
        }
        let as_bad = ranked.iter().filter(|r| r.0 != last && r.1 <= low * EQUAL && !self.is_best(r.1));
        let as_bad: Vec<String> = as_bad.map(|r| name(r.0)).collect();
        said.push_str(&format!(" The worst is {}", worse(last, low)));
        said.push_str(&if as_bad.is_empty() {
            ".".to_owned()
        } else {
            format!("; no difference to {}.", as_bad.join("; "))
        });
        Some(said)
    }
}

/// The figures, and the sentences about them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) judged: Vec<Judged>,
    pub(crate) sentences: Vec<String>,
}

/// Returns the verdict on these runs.
pub(crate) fn verdict(runs: &Runs<'_>) -> Verdict {
    let waiting = figures::waiting(runs.jobs);
    let figures: Vec<Figures> =
        runs.shown.iter().map(|s| figures::figures(runs.jobs, &waiting, s.outcome)).collect();
    let subjects = [who_waits(&waiting, runs), "The disk's throughput".to_owned(), fairness()];
    let kinds = [("verdict-wait", true), ("verdict-throughput", false), ("verdict-fairness", false)];
    let judged: Vec<Judged> = subjects
        .into_iter()
        .zip(kinds)
        .enumerate()
        .map(|(i, (subject, (stem, less_is_better)))| Judged {
            subject,
            stem,
            less_is_better,
            values: figures.iter().map(|f| f.list()[i]).collect(),
            wait: waiting.what,
        })
        .filter(|j| j.values.iter().any(Option::is_some))
        .collect();
    let headline = headline(runs, &waiting, &judged);
    let mut sentences: Vec<String> =
        headline.into_iter().chain(judged.iter().filter_map(|j| j.sentence(runs))).collect();
    if waiting.jobs.is_empty() {
        sentences.push(
            "No job waits, judging by the options of the job file, so no latency is judged.".to_owned(),
        );
    }
    if runs.shown.len() > 1 {
        sentences.push("All this is of one seed; fairhead advise tells what holds over many.".to_owned());
    }
    Verdict { judged, sentences }
}

/// Returns the sentence that names the job which suffers most under the worst of several schedulers: the job
/// whose own figure differs most between them. The figure is that of the verdict for the jobs that wait, and
/// for each other job what it moves while all jobs run. `None` for a single run.
fn headline(runs: &Runs<'_>, waiting: &Waiting, judged: &[Judged]) -> Option<String> {
    if runs.shown.len() < 2 {
        return None;
    }
    let mut all: Vec<Suffers> = Vec::new();
    if let Some(j) = judged.iter().find(|j| j.stem == "verdict-wait") {
        let names = waiting.names(runs.jobs).join(", ");
        all.extend(Suffers::of(
            &j.values,
            |v| format!("{} {}", waiting.what.words().trim_end_matches(','), j.shown(v)),
            names,
        ));
    }
    for (job, j) in runs.jobs.jobs.iter().enumerate().filter(|(job, _)| !waiting.jobs.contains(job)) {
        let moved = |s: &Shown<'_>| {
            let clients = s.outcome.clients.iter().filter(|c| c.job == job);
            Some(real(clients.map(ClientStats::speed).sum()))
        };
        let values: Vec<Option<f64>> = runs.shown.iter().map(moved).collect();
        all.extend(Suffers::of(&values, |v| format!("{} MiB/s", mib(whole(v))), j.name.clone()));
    }
    let most = all.into_iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    if most.ratio <= EQUAL {
        return Some(
            "No job suffers: each gets the same under all of these schedulers, within 5 %.".to_owned(),
        );
    }
    let name = |run: usize| runs.shown[run].names[0];
    let (worst, best) = (name(most.worst), name(most.best));
    let Suffers { who, low, high, .. } = most;
    Some(format!("{who} suffers most: {low} under {worst}, {high} under {best}."))
}

/// A job, and its figure under the worst and the best run.
struct Suffers {
    who: String,
    ratio: f64,
    worst: usize,
    best: usize,
    low: String,
    high: String,
}

impl Suffers {
    /// Compares the values of a job, of which larger ones are better; `None` if there are none.
    fn of(values: &[Option<f64>], show: impl Fn(f64) -> String, who: String) -> Option<Self> {
        let known: Vec<(usize, f64)> =
            values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))).collect();
        let (worst, low) = known.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        // The first of equal ones.
        let (best, high) = known.iter().rev().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        // What moves nothing at all suffers as much as one that moves a byte a second.
        let ratio = if high <= 0.0 { 1.0 } else { high / low.max(f64::MIN_POSITIVE) };
        Some(Self { who, ratio, worst, best, low: show(low), high: show(high) })
    }
}

fn who_waits(waiting: &Waiting, runs: &Runs<'_>) -> String {
    format!("The {} of {}", waiting.what.words(), waiting.names(runs.jobs).join(", "))
}

fn fairness() -> String {
    "Fairness, the smallest share over the largest,".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_frames_are_shown_in_percent() {
        let subject = "The share of late frames".to_owned();
        let judged = Judged {
            subject,
            stem: "verdict-wait",
            less_is_better: true,
            values: Vec::new(),
            wait: Wait::Frames,
        };
        // What is judged is the inverse of percent plus one.
        assert_eq!(judged.shown(1.0 / 3.5), "2.5%");
    }
}
