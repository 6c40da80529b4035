//! What the engine is set to: [`era`](crate::sched::bfq::era) fills it from the tunables.

use crate::parts::choose::BackSeek;
use crate::units::Duration;

/// How budgets follow from how slots end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Budgets {
    /// They grow and shrink by factors, and start at two thirds of B.
    Factors,
    /// They grow and shrink by steps, and start at three quarters of B: the rule of 2010.
    Steps,
}

impl Budgets {
    /// B, if the device does this many sectors in a slot at its peak rate.
    pub(crate) const fn largest(self, sectors: u64) -> u64 {
        match self {
            Self::Factors => sectors,
            Self::Steps => sectors * 3 / 4,
        }
    }

    /// The smallest budget.
    #[inline]
    pub(crate) const fn smallest(self, largest: u32) -> u32 {
        match self {
            Self::Factors => largest / 32,
            Self::Steps => largest / 2,
        }
    }

    /// What a new queue may send in its first slot.
    pub(crate) const fn first(self, largest: u32) -> u32 {
        match self {
            Self::Factors => 2 * largest / 3,
            Self::Steps => largest / 4 * 3,
        }
    }
}

/// What the engine is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// How far back a seek may go, and what it costs.
    pub(crate) back: BackSeek,
    /// How long a request waits in its queue until it is the next: async, sync.
    pub(crate) fifo_expire: [Duration; 2],
    /// How long the disk idles for a queue.
    pub(crate) slice_idle: Duration,
    /// How long a slot may last, in whole ticks.
    pub(crate) timeout: Duration,
    /// Whether the clock of a slot runs from its start; if not, from its first completion.
    pub(crate) clock_runs_at_once: bool,
    /// The step of coarse clocks; zero: they are exact.
    pub(crate) tick: Duration,
    /// Whether groups are scheduled; if not, all tasks compete in the root.
    pub(crate) groups: bool,
    /// Whether the device has one request at a time.
    pub(crate) strict: bool,
    /// Whether a part of the tags is kept free for sync reads.
    pub(crate) limits_tags: bool,
    /// Whether a queue may take the disk away from another.
    pub(crate) preempts: bool,
    pub(crate) budgets: Budgets,
    /// B, in sectors, if the user has set it.
    pub(crate) max_budget: Option<u32>,
    /// What an async request costs, in units of its length.
    pub(crate) async_cost: u32,
    /// What a slot counts as that is too short to say how fast its queue is.
    pub(crate) brief_counts_as: Duration,
    /// The time for which B sectors are charged.
    pub(crate) charged_time: Duration,
    /// Whether arrivals and completions may end a slot or begin an idle period. Off while the decisions of
    /// another implementation are put in place of our own.
    pub(crate) decides: bool,
    /// As in the kernel: a budget may be too small for the next request of its queue, a request that is
    /// overdue may be passed over, and a queue that is freed keeps its weight.
    pub(crate) as_kernel: bool,
}
