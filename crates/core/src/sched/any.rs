//! Any scheduler, chosen at run time by name, and the presets of the lineage.
//!
//! `Elevator<Deadline>` is monomorphic; a program that reads the name of a scheduler from a user takes
//! `Elevator<AnyScheduler>`. A *preset* is a scheduler with the tunables of an era: `cfq-2.6.33` is `cfq`
//! with the seek rule and depth of that kernel. Schedulers from outside this crate are one more variant: see
//! [`outside`].

use super::fair::{self, Fair};
use super::{Scheduler, anticipatory, bfq, cfq, cfq_early, deadline, kyber, mq_deadline, noop, outside};
use crate::config::{ConfigError, Tunable, Tunables, Unit};
use crate::elevator::{Act, Control, Cx, Dispatch, End, Limits, Timer};
use crate::parts::merge::Edges;
use crate::request::{Request, Requests};
use crate::units::{Instant, Tag};

macro_rules! schedulers {
    ($($(#[$doc:meta])* $variant:ident($scheduler:ty),)*) => {
        /// The tunables of any scheduler.
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[allow(clippy::large_enum_variant, reason = "a box could not be copied, and there is one per run")]
        pub enum AnyConfig {
            $($(#[$doc])* $variant(<$scheduler as Scheduler>::Config),)*
            /// A scheduler from outside this crate.
            Outside(outside::Config),
        }

        /// Any scheduler.
        // Which one is a number of its own, and not to be reckoned from what a scheduler cannot have
        // somewhere.
        #[repr(u8)]
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per elevator; a box would cost every call")]
        pub enum AnyScheduler {
            $($(#[$doc])* $variant($scheduler),)*
            /// A scheduler from outside this crate.
            Outside(outside::Instance),
        }

        impl AnyConfig {
            /// Returns the name of the scheduler that these tunables belong to.
            #[must_use]
            pub fn scheduler(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$scheduler as Scheduler>::NAME,)*
                    Self::Outside(c) => c.factory().name(),
                }
            }

            /// Returns the descriptions of the scheduler's tunables.
            #[must_use]
            pub fn list(&self) -> &'static [Tunable] {
                match self {
                    $(Self::$variant(_) => <$scheduler as Scheduler>::Config::LIST,)*
                    Self::Outside(c) => c.list(),
                }
            }

            /// Returns the raw value of a tunable; `None` if there is no tunable of this name.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<u64> {
                match self { $(Self::$variant(c) => c.get(name),)* Self::Outside(c) => c.get(name) }
            }

            /// Sets a tunable from a raw value.
            ///
            /// # Errors
            /// If there is no tunable of this name, or the value is out of range.
            pub fn set(&mut self, name: &str, raw: u64) -> Result<(), ConfigError> {
                match self { $(Self::$variant(c) => c.set(name, raw),)* Self::Outside(c) => c.set(name, raw) }
            }
        }

        impl AnyConfig {
            /// Returns the tunables with which a live engine starts a scheduler whose defaults these are: BFQ
            /// has `ncq_protection`, `streams` and `repairs` on. Others stay as they are.
            #[must_use]
            pub fn live(self) -> Self {
                match self {
                    Self::Bfq(c) if c == bfq::Config::default() => Self::Bfq(bfq::Config::live()),
                    config => config,
                }
            }

            /// Sets a tunable that takes one of several words.
            ///
            /// # Errors
            /// If there is no tunable of this name, or the word is not one of its values.
            pub fn set_word(&mut self, name: &str, word: &str) -> Result<(), ConfigError> {
                let tunable = self.list().iter().find(|t| t.name == name);
                let words = match tunable.map(|t| t.unit) {
                    Some(Unit::Choice(words)) => words,
                    _ => &[],
                };
                let raw = words.iter().position(|w| *w == word).map_or(u64::MAX, |i| i as u64);
                self.set(name, raw)
            }
        }

        /// Calls the same function of whichever scheduler this is.
        macro_rules! each {
            ($self:expr, $s:ident => $call:expr) => {
                match $self { $(AnyScheduler::$variant($s) => $call,)* AnyScheduler::Outside($s) => $call }
            };
        }

        impl AnyScheduler {
            fn make(limits: Limits, config: AnyConfig) -> Result<Self, ConfigError> {
                Ok(match config {
                    $(AnyConfig::$variant(c) => Self::$variant(<$scheduler>::new(limits, c)?),)*
                    AnyConfig::Outside(c) => Self::Outside(outside::Instance::new(limits, c)?),
                })
            }

            fn retune(&mut self, cx: &mut Cx<'_>, config: AnyConfig) -> Result<bool, ConfigError> {
                match (self, config) {
                    $((Self::$variant(s), AnyConfig::$variant(c)) => s.reconfigure(cx, c),)*
                    (Self::Outside(s), AnyConfig::Outside(c)) => s.reconfigure(cx, c),
                    _ => Ok(false),
                }
            }
        }
    };
}

schedulers! {
    /// Order of arrival.
    Noop(noop::Noop),
    /// Batches in sector order, with deadlines.
    Deadline(deadline::Deadline),
    /// Deadline with priority classes and ageing.
    MqDeadline(mq_deadline::MqDeadline),
    /// Latency targets kept by tokens.
    Kyber(kyber::Kyber),
    /// Timed batches, and waiting for the next request of the reader that was served last.
    Anticipatory(anticipatory::Anticipatory),
    /// Tasks take turns by the request.
    CfqRoundRobin(cfq_early::RoundRobin),
    /// Tasks take turns by slices of one length.
    CfqTs1(cfq_early::CfqTs1),
    /// Tasks take turns by slices, longer ones for sync requests.
    CfqTs2(cfq_early::CfqTs2),
    /// Time slices for each task.
    Cfq(cfq::Cfq),
    /// Budgets for each task, by weight, in groups.
    Bfq(bfq::Bfq),
    /// Order of arrival in each group, under the controller.
    FairNoop(Fair<noop::Noop>),
    /// Deadline in each group, under the controller.
    FairDeadline(Fair<deadline::Deadline>),
    /// AS in each group, under the controller.
    FairAnticipatory(Fair<anticipatory::Anticipatory>),
    /// CFQ in each group, under the controller.
    FairCfq(Fair<cfq::Cfq>),
}

/// A scheduler with the tunables of an era, under a name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// Its tunables.
    pub config: fn() -> AnyConfig,
}

/// All presets, in the order of the lineage.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "noop",
        about: "order of arrival, with merging",
        config: || AnyConfig::Noop(noop::Config::default()),
    },
    Preset {
        name: "deadline-2.6.9",
        about: "deadlines; a batch ends at the first gap, as up to 2.6.23",
        config: || AnyConfig::Deadline(deadline::Config::linux_2_6_9()),
    },
    Preset {
        name: "deadline",
        about: "batches in sector order, with deadlines, as from 2.6.24 on",
        config: || AnyConfig::Deadline(deadline::Config::default()),
    },
    Preset {
        name: "as-2.6.9",
        about: "waits for a reader's next request; narrow closeness, as in 2004",
        config: || AnyConfig::Anticipatory(anticipatory::Config::linux_2_6_9()),
    },
    Preset {
        name: "as",
        about: "waits for a reader's next request; cooperating processes, as in 2.6.32",
        config: || AnyConfig::Anticipatory(anticipatory::Config::default()),
    },
    Preset {
        name: "cfq-2.6.10",
        about: "a queue per task, one request each in turn",
        config: || AnyConfig::CfqRoundRobin(cfq_early::round_robin::Config::of_2_6_10()),
    },
    Preset {
        name: "cfq-ts1",
        about: "slices of 83 ms with 4 ms of idling, the patch of 2 December 2004",
        config: || AnyConfig::CfqTs1(cfq_early::slices::Ts1::of_2004()),
    },
    Preset {
        name: "cfq-ts2",
        about: "sync slices of 100 ms, async ones of 40 ms or 8 requests, 4 December 2004",
        config: || AnyConfig::CfqTs2(cfq_early::slices::Ts2::of_2004()),
    },
    Preset {
        name: "cfq-2.6.33",
        about: "time slices for each task; seeky by mean distance",
        config: || AnyConfig::Cfq(cfq::Config::linux_2_6_33()),
    },
    Preset {
        name: "cfq-2.6.34",
        about: "time slices for each task; seeky by the last 32 distances",
        config: || AnyConfig::Cfq(cfq::Config::linux_2_6_34()),
    },
    Preset {
        name: "cfq",
        about: "time slices for each task, as in the last kernels that had it",
        config: || AnyConfig::Cfq(cfq::Config::default()),
    },
    Preset {
        name: "bfq-v0",
        about: "budgets for each task, by B-WF2Q+; the engine of 2010 without heuristics",
        config: || AnyConfig::Bfq(bfq::Config::v0()),
    },
    Preset {
        name: "bfq-v8",
        about: "budgets for each task and group, raised weights: the series of 2016, without what came later",
        config: || AnyConfig::Bfq(bfq::Config::v8()),
    },
    Preset {
        name: "bfq",
        about: "budgets for each task and group, raised weights: Linux 6.12's",
        config: || AnyConfig::Bfq(bfq::Config::default()),
    },
    Preset {
        name: "mq-deadline",
        about: "deadline with priority classes and ageing",
        config: || AnyConfig::MqDeadline(mq_deadline::Config::default()),
    },
    Preset {
        name: "kyber",
        about: "latency targets kept by tokens, for fast flash",
        config: || AnyConfig::Kyber(kyber::Config::default()),
    },
    Preset {
        name: "noop+groups",
        about: "noop under the controller: groups have their shares of the disk's time",
        config: || AnyConfig::FairNoop(fair::Config::over(noop::Config::default())),
    },
    Preset {
        name: "deadline-2.6.9+groups",
        about: "deadline as up to 2.6.23, under the controller",
        config: || AnyConfig::FairDeadline(fair::Config::over(deadline::Config::linux_2_6_9())),
    },
    Preset {
        name: "deadline+groups",
        about: "deadline under the controller",
        config: || AnyConfig::FairDeadline(fair::Config::over(deadline::Config::default())),
    },
    Preset {
        name: "as-2.6.9+groups",
        about: "as of 2004, under the controller",
        config: || AnyConfig::FairAnticipatory(fair::Config::over(anticipatory::Config::linux_2_6_9())),
    },
    Preset {
        name: "as+groups",
        about: "as under the controller",
        config: || AnyConfig::FairAnticipatory(fair::Config::over(anticipatory::Config::default())),
    },
    Preset {
        name: "cfq-2.6.33+groups",
        about: "cfq as of 2.6.33, which knew no groups, under the controller",
        // One tunable, `group_idle`, is the controller's and CFQ's alike, also where that CFQ did not know it
        // yet.
        config: || {
            let layer = fair::Layer::default();
            let inner = cfq::Config { group_idle: layer.group_idle, ..cfq::Config::linux_2_6_33() };
            AnyConfig::FairCfq(fair::Config { layer, inner })
        },
    },
    Preset {
        name: "cfq+groups",
        about: "cfq under the controller instead of its own group scheduling",
        config: || AnyConfig::FairCfq(fair::Config::over(cfq::Config::default())),
    },
];

impl Preset {
    /// Whether the preset is a scheduler under the group controller (`NAME+groups`). It differs from the
    /// scheduler without the controller only for jobs with groups.
    #[must_use]
    pub fn has_controller(&self) -> bool {
        self.name.ends_with("+groups")
    }
}

/// Returns what replaces a tunable that a scheduler had in earlier versions, in a line; `None` if it had none
/// of that name.
#[must_use]
pub fn replaced(scheduler: &str, tunable: &str) -> Option<&'static str> {
    match (scheduler, tunable) {
        ("bfq", "quirks") => {
            Some("quirks=1 is the default now; write repairs=1, streams=1 and ncq_protection=1 for quirks=0")
        }
        _ => None,
    }
}

/// Returns the preset of this name; `None` if there is none.
///
/// ```
/// use fairhead_core::sched::any::{AnyScheduler, preset};
/// use fairhead_core::{Elevator, Limits};
/// let mut config = (preset("cfq").unwrap().config)();
/// config.set("slice_idle", 4_000_000)?;
/// let elevator = Elevator::<AnyScheduler>::new(Limits::default(), config)?;
/// # let _ = elevator;
/// assert!(preset("cfk").is_none());
/// # Ok::<(), fairhead_core::config::ConfigError>(())
/// ```
///
/// The kernel's word `none` finds what is called `noop` here, with `+groups`, too: see [`shown`].
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name || shown(p.name) == name)
}

/// Returns the name of a scheduler as users of current kernels know it: `none` for `noop`. Other names are
/// returned as they are.
///
/// `noop` was an elevator of kernels up to 4.20, and is the name of ours in code, in the documentation of its
/// lineage and in published tables. What a user reads or types today is `none`.
#[must_use]
pub fn shown(name: &str) -> &str {
    match name {
        "noop" => "none",
        "noop+groups" => "none+groups",
        name => name,
    }
}

impl Default for AnyConfig {
    fn default() -> Self {
        Self::Noop(noop::Config::default())
    }
}

impl Tunables for AnyConfig {
    const LIST: &'static [Tunable] = &[];
    fn get(&self, name: &str) -> Option<u64> {
        Self::get(self, name)
    }
    fn set(&mut self, name: &str, raw: u64) -> Result<(), ConfigError> {
        Self::set(self, name, raw)
    }
}

/// A function for each scheduler: in one for all, the needs of the largest would be paid for by each.
#[inline(never)]
fn apart<A: Act, S: Scheduler>(on: &mut A::On, now: Instant, what: A::What, sched: &mut S) -> A::Answer {
    A::with(on, now, what, sched)
}

impl Scheduler for AnyScheduler {
    const NAME: &'static str = "any";
    type Config = AnyConfig;

    fn new(limits: Limits, config: AnyConfig) -> Result<Self, ConfigError> {
        Self::make(limits, config)
    }
    #[inline(always)]
    fn act<A: Act>(&mut self, on: &mut A::On, now: Instant, what: A::What) -> A::Answer {
        each!(self, s => apart::<A, _>(on, now, what, s))
    }
    #[inline]
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        each!(self, s => s.insert(cx, tag));
    }
    #[inline]
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        each!(self, s => s.dispatch(cx))
    }
    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        each!(self, s => s.drain(cx))
    }
    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        each!(self, s => s.merged(cx, kept, end));
    }
    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        each!(self, s => s.joined(cx, kept, gone));
    }
    #[inline]
    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        each!(self, s => s.complete(cx, tag));
    }
    fn requeue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        each!(self, s => s.requeue(cx, tag));
    }
    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        each!(self, s => s.reissue(cx, tag));
    }
    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        each!(self, s => s.control(cx, change));
    }
    fn reconfigure(&mut self, cx: &mut Cx<'_>, config: AnyConfig) -> Result<bool, ConfigError> {
        self.retune(cx, config)
    }
    fn timer(&mut self, cx: &mut Cx<'_>) {
        each!(self, s => s.timer(cx));
    }
    fn next_timer(&self) -> Option<(Instant, Timer)> {
        each!(self, s => s.next_timer())
    }
    fn prefers(&self, done: &Request) -> bool {
        each!(self, s => s.prefers(done))
    }
    fn wants_run(&self) -> bool {
        each!(self, s => s.wants_run())
    }
    fn prepare_merge(&mut self, cx: &mut Cx<'_>, rq: &Request) {
        each!(self, s => s.prepare_merge(cx, rq));
    }
    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        each!(self, s => s.may_merge(requests, into, rq))
    }
    fn has_room(&self, rq: &Request) -> bool {
        each!(self, s => s.has_room(rq))
    }
    fn depth_for(&self, rq: &Request) -> u32 {
        each!(self, s => s.depth_for(rq))
    }
    fn has_room_below(&self, rq: &Request, depth: u32) -> bool {
        each!(self, s => s.has_room_below(rq, depth))
    }
    fn chooses_groups(&self) -> bool {
        each!(self, s => s.chooses_groups())
    }
    fn front_merges(&self) -> bool {
        each!(self, s => s.front_merges())
    }
    fn edges(&self) -> Edges {
        each!(self, s => s.edges())
    }
    fn neighbour(&self, tag: Tag, end: End) -> Option<Tag> {
        each!(self, s => s.neighbour(tag, end))
    }
    fn check(&self, requests: &Requests) {
        each!(self, s => s.check(requests));
    }
}
