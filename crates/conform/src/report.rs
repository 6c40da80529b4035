//! What a comparison found: per topic how often both sides agree, and the first differences.

use super::header::Scheduler;

/// A kind of decision, or of state that shows in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Topic {
    /// Which queue gets the disk.
    Selections,
    /// Which queue loses it, when and why.
    Expiries,
    /// Whether an attempt sends a request.
    Attempts,
    /// Which request it sends.
    Requests,
    /// How much a selected queue may send.
    Budgets,
    /// How much it may send the next time.
    Feedback,
    /// Whether it was slow, and what it is charged.
    Slow,
    /// Virtual start and finish times, from equal service and weight.
    Times,
    /// Service and weight that these come from.
    Inputs,
    /// Raised or not, how much, since when and for how long.
    Raising,
    /// Which queues become one, and part.
    Merges,
    /// The estimate of the device's rate.
    Rate,
    /// Whether the disk waits for a queue, and whether its time is up.
    Waiting,
    /// Seeky or not, think time, requests in flight.
    Habits,
}

impl Topic {
    /// All, in the order of a table.
    pub const ALL: [Self; 14] = [
        Self::Selections,
        Self::Expiries,
        Self::Attempts,
        Self::Requests,
        Self::Budgets,
        Self::Feedback,
        Self::Slow,
        Self::Times,
        Self::Inputs,
        Self::Raising,
        Self::Merges,
        Self::Rate,
        Self::Waiting,
        Self::Habits,
    ];

    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Selections => "selections",
            Self::Expiries => "expiries",
            Self::Attempts => "attempts",
            Self::Requests => "requests",
            Self::Budgets => "budgets",
            Self::Feedback => "feedback",
            Self::Slow => "slow",
            Self::Times => "times",
            Self::Inputs => "inputs",
            Self::Raising => "raising",
            Self::Merges => "merges",
            Self::Rate => "rate",
            Self::Waiting => "waiting",
            Self::Habits => "habits",
        }
    }

    /// Returns the question that is compared, in words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Selections => "which queue gets the disk",
            Self::Expiries => "which queue loses it, when and why",
            Self::Attempts => "whether an attempt sends a request",
            Self::Requests => "which request it sends",
            Self::Budgets => "how much a selected queue may send",
            Self::Feedback => "how much it may send the next time",
            Self::Slow => "whether it was slow, and what it is charged",
            Self::Times => "virtual start and finish times",
            Self::Inputs => "the service and weight that these come from",
            Self::Raising => "raised weights: factor, age and length",
            Self::Merges => "queues that become one, or part",
            Self::Rate => "the device's estimated rate",
            Self::Waiting => "whether the disk waits, whether time is up",
            Self::Habits => "seeky, think time, requests in flight",
        }
    }

    /// Whether it is about what is decided, rather than about a number.
    pub(super) const fn is_decision(self) -> bool {
        matches!(self, Self::Selections | Self::Expiries | Self::Attempts | Self::Requests | Self::Merges)
    }

    /// The least percentage with which a log counts as agreed.
    #[must_use]
    pub const fn required(self) -> Option<u32> {
        match self {
            Self::Selections | Self::Requests | Self::Expiries => Some(99),
            _ => None,
        }
    }
}

/// How often both sides agree on a topic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Agreement {
    /// How many were compared.
    pub compared: u64,
    /// How many of them are equal.
    pub agreed: u64,
}

impl Agreement {
    /// Returns the share that agrees, in percent; `None` when there is nothing to compare.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a percentage")]
    pub fn percent(self) -> Option<f64> {
        (self.compared > 0).then(|| self.agreed as f64 * 100.0 / self.compared as f64)
    }

    /// Whether at least `percent` per cent agree; nothing to compare is agreement.
    #[must_use]
    pub const fn reaches(self, percent: u32) -> bool {
        self.agreed as u128 * 100 >= self.compared as u128 * percent as u128
    }
}

/// A difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// About what.
    pub topic: Topic,
    /// The kernel's line.
    pub line: u32,
    /// Its text.
    pub kernel: String,
    /// Our decision.
    pub ours: String,
    /// The state behind our decision.
    pub state: String,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Report {
    /// The log's name.
    pub log: String,
    /// Which scheduler it is of.
    pub scheduler: Scheduler,
    /// How many requests were sent.
    pub requests: u64,
    /// How many events the recording lost; then differences need not mean anything.
    pub lost: u64,
    /// The agreement by topic, in the order of [`Topic::ALL`].
    pub agreements: Vec<(Topic, Agreement)>,
    /// The first differences of each topic, in the order of the log.
    pub differences: Vec<Difference>,
}

impl Report {
    /// Whether every topic that has a bound reaches it.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.agreements.iter().all(|(topic, a)| topic.required().is_none_or(|percent| a.reaches(percent)))
    }

    /// How often both sides agree on a topic.
    #[must_use]
    pub fn agreement(&self, topic: Topic) -> Agreement {
        self.agreements.iter().find(|(t, _)| *t == topic).map(|(_, a)| *a).unwrap_or_default()
    }
}

/// How many differences of a topic are kept.
const KEPT: u64 = 20;

/// A comparison in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    agreements: [Agreement; Topic::ALL.len()],
    differences: Vec<Difference>,
    pub(super) requests: u64,
}

impl Tally {
    fn of(&mut self, topic: Topic) -> &mut Agreement {
        &mut self.agreements[topic as usize]
    }

    pub(super) fn agree(&mut self, topic: Topic) {
        let a = self.of(topic);
        a.compared += 1;
        a.agreed += 1;
    }

    /// Counts a difference; `tell` says what ours is and why, if it is kept.
    pub(super) fn differ(
        &mut self,
        topic: Topic,
        line: u32,
        kernel: &str,
        tell: impl FnOnce() -> (String, String),
    ) {
        let a = self.of(topic);
        a.compared += 1;
        if a.compared - a.agreed <= KEPT {
            let (ours, state) = tell();
            self.differences.push(Difference { topic, line, kernel: kernel.to_owned(), ours, state });
        }
    }

    pub(super) fn report(self, log: &str, scheduler: Scheduler, lost: u64) -> Report {
        Report {
            log: log.to_owned(),
            scheduler,
            requests: self.requests,
            lost,
            agreements: Topic::ALL.into_iter().zip(self.agreements).filter(|(_, a)| a.compared > 0).collect(),
            differences: self.differences,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_in_order() {
        for (place, topic) in Topic::ALL.into_iter().enumerate() {
            assert_eq!(topic as usize, place, "{}", topic.name());
        }
    }

    #[test]
    fn the_bound_is_exact() {
        assert!(Agreement { compared: 100, agreed: 95 }.reaches(95));
        assert!(!Agreement { compared: 1000, agreed: 949 }.reaches(95));
        assert!(Agreement::default().reaches(100));
        assert_eq!(Agreement::default().percent(), None);
    }

    #[test]
    fn one_weak_topic_is_enough_to_disagree() {
        let mut tally = Tally::default();
        (0..98).for_each(|_| tally.agree(Topic::Selections));
        (0..2).for_each(|_| tally.differ(Topic::Selections, 7, "k", || ("o".to_owned(), "s".to_owned())));
        (0..100).for_each(|_| tally.agree(Topic::Expiries));
        let report = tally.report("x", Scheduler::Bfq, 0);
        assert!(!report.agrees());
        assert_eq!(report.agreement(Topic::Selections), Agreement { compared: 100, agreed: 98 });
        assert_eq!(report.differences.len(), 2);
        assert_eq!(report.agreements.len(), 2);
    }

    #[test]
    fn only_the_first_differences_are_kept() {
        let mut tally = Tally::default();
        (0..100).for_each(|line| tally.differ(Topic::Times, line, "k", || (String::new(), String::new())));
        tally.differ(Topic::Rate, 5, "k", || (String::new(), String::new()));
        let report = tally.report("x", Scheduler::Bfq, 0);
        assert_eq!(report.differences.len(), 21);
    }
}
