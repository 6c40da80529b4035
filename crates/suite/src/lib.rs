//! What every scheduler must pass, for schedulers outside of `fairhead-core`.
//!
//! [`Suite::storms`] drives a scheduler with random operations and faults and then lets everything drain, and
//! in a closed world holds it to the longest wait that it promises. [`Suite::small_cases`] takes it through
//! every order of a few requests. In both, these hold after every call:
//!
//! - each request that is inserted or handed back is issued exactly once, alone or merged, and completes
//!   exactly once;
//! - merged requests cover exactly the union of their sectors, in one direction, within the limits;
//! - a [`Hold`](fairhead_core::Dispatch::Hold) has a timer or a completion coming to end it;
//!   [`Empty`](fairhead_core::Dispatch::Empty) means that nothing waits;
//! - an expired timer is gone once it has been called, and spurious timer calls change nothing;
//! - the same events give the same decisions, one by one and in batches;
//! - `check` of the scheduler passes, and nothing touches the heap after `new`.
//!
//! A case that breaks one of these panics, with the operations of a short case that fails, and with the seed
//! to see it again. `FAIRHEAD_SEEDS` is the number of cases (default 64; try 1000 before you publish),
//! `FAIRHEAD_SEED` the seed of the first, and `FAIRHEAD_SMALL` the number of requests in small cases (default
//! 3, at most 5).
//!
//! The tests of the built-in schedulers compile the same files.
//!
//! # What it does not do
//!
//! It does not judge how good a schedule is: `fairhead run` shows that. It counts heap use with a global
//! allocator of its own, so a test that links this crate cannot have another.
//!
//! ```
//! use fairhead_core::sched::noop::Noop as Mine;
//! use fairhead_core::sched::outside::Of;
//! use fairhead_suite::{SERVICE_MAX, Suite};
//!
//! static MINE: Of<Mine> = Of::named("mine", "order of arrival");
//!
//! // Those that are here already go first, each for one service.
//! let suite = Suite::of(&MINE).bounded(|_, load, _| Some(SERVICE_MAX * load.requests));
//! suite.storms("storms");
//! suite.small_cases();
//! ```

mod support;

pub use fairhead_core::Duration;
pub use support::bounds::{Bound, Load, SERVICE_MAX};

use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::outside::{Config, Factory};
use support::bounds::Tested;
use support::calm::Calm;
use support::shrink;
use support::storm::Storm;

/// How many requests the closed world serves in each case.
const CALM_REQUESTS: u64 = 400;

/// How many random cases there are: some faults show in one of fifty, such as a request that is kept after it
/// was joined to another.
const CASES: u64 = 64;

/// The suite for one scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Suite(Tested);

impl Suite {
    /// The suite for a scheduler that promises no longest wait.
    ///
    /// # Panics
    /// If the scheduler's name or tunables cannot be.
    #[must_use]
    pub fn of(factory: &'static dyn Factory) -> Self {
        let config = Config::of(factory).unwrap_or_else(|unfit| panic!("{unfit}"));
        Self(Tested { name: factory.name(), config: AnyConfig::Outside(config), bound: |_, _, _| None })
    }

    /// Holds the scheduler to a longest wait. `bound` returns the longest time from insertion to completion
    /// of a request in a closed world, by the tunables, the [`Load`] and the request; `None` for a request
    /// that may wait for ever. The device serves one request after another, in at most [`SERVICE_MAX`] each.
    #[must_use]
    pub const fn bounded(self, bound: Bound) -> Self {
        Self(Tested { bound, ..self.0 })
    }

    /// Runs random cases. `test` is the name of the test, for messages.
    ///
    /// # Panics
    /// If the scheduler fails one.
    pub fn storms(&self, test: &str) {
        shrink::each_of(test, CASES, |chance| {
            Storm::draw(chance, self.0).run();
            Calm::draw(chance, self.0).run(CALM_REQUESTS);
        });
    }

    /// Runs every order of a few requests, and every interleaving with what the device and the clock may do.
    ///
    /// # Panics
    /// If the scheduler fails one.
    pub fn small_cases(&self) {
        support::small::run(&self.0);
    }
}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
