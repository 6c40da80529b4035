//! A limit that slows others: while a group waits for its limit, a scheduler that waits for the next request
//! of that group keeps the disk idle, although others want it.
//!
//! `run` and `advise` warn about it by this one rule. What it does not do: say how much the others lose; the
//! same run without the limit tells.

use crate::metrics::Outcome;
use fairhead_core::Duration;

/// A disk that is idle on purpose for less than this part of a run (a fifth) is not warned about: it hardly
/// slows other groups.
const IDLE_PART: u64 = 5;

/// That it happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdledForLimit {
    /// How long the scheduler kept the disk idle on purpose.
    pub idled: Duration,
    /// How long the run took.
    pub elapsed: Duration,
    /// The groups that waited for a limit, by path; not empty.
    pub groups: Vec<String>,
}

impl IdledForLimit {
    /// Returns what happened in the run; `None` if no group waited for a limit, or the disk was hardly idle.
    #[must_use]
    pub fn of(o: &Outcome) -> Option<Self> {
        if o.disk.idled.as_ns().saturating_mul(IDLE_PART) < o.elapsed.as_ns() {
            return None;
        }
        let limited = o.groups.iter().filter(|g| g.stats.throttled_time.total() > 0);
        let groups: Vec<String> = limited.map(|g| g.path.clone()).collect();
        (!groups.is_empty()).then_some(Self { idled: o.disk.idled, elapsed: o.elapsed, groups })
    }

    /// The warning in words, without a stop at its end.
    #[must_use]
    pub fn words(&self, scheduler: &str) -> String {
        let percent = self.idled.as_ns().saturating_mul(100) / self.elapsed.as_ns().max(1);
        format!(
            "{scheduler} kept the disk idle for {percent} % of the time, and {} waited for a limit: others may get \
             less than without the limit",
            self.groups.join(", ")
        )
    }
}
