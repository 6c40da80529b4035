//! Which rules a scheduler has, and how its engine keeps groups: chosen from the tunables once, when it is
//! made.
//!
//! [`Config`] is looked at here and nowhere else. What it says is a setting of the rule, or of the part of
//! the engine, that it concerns.

use super::config::{Config, Era, Seek};
use super::rules::Rules;
use super::rules::charge::{self, Charging};
use super::rules::cooperate::{self, Cooperation};
use super::rules::depth::{self, Depth};
use super::rules::idling::{self, Idling};
use super::rules::lengths::{self, Lengths};
use super::rules::ncq::Ncq;
use super::rules::preempt::Preemption;
use super::rules::seek::{Method, Seeks};
use super::rules::think::Thinking;
use super::view::Ticks;
use crate::elevator::Limits;
use crate::parts::choose::BackSeek;

/// How the engine keeps groups and kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// There are several groups, among which CFQ chooses.
    pub(super) divides: bool,
    /// The controller chooses the group (divided.rs).
    pub(super) is_confined: bool,
    /// All groups are on one level.
    pub(super) is_flat: bool,
    /// A queue that seeks is filed in the root.
    pub(super) moves_seeky: bool,
    /// Async requests are the root's, whichever group they come from.
    pub(super) async_in_root: bool,
    /// The kind that is being served continues when the class changes.
    pub(super) keeps_kind: bool,
}

impl Layout {
    /// CFQ by itself.
    pub(super) const fn new(config: &Config, limits: &Limits) -> Self {
        let (era, divides) = (config.era, limits.groups > 1);
        Self {
            divides,
            is_confined: false,
            is_flat: !era.since_3(),
            moves_seeky: divides && !era.since_3() && !config.group_isolation,
            async_in_root: !era.since_4_3(),
            keeps_kind: !era.since_3(),
        }
    }

    /// Under the controller: requests are all their own group's.
    pub(super) const fn confined(config: &Config, limits: &Limits) -> Self {
        let alone = Self::new(config, limits);
        Self { is_confined: true, divides: false, moves_seeky: false, async_in_root: false, ..alone }
    }
}

impl Rules {
    /// The rules for a device of which nothing is known yet, and as many queues.
    pub(super) fn new(config: &Config, limits: &Limits, layout: &Layout, queues: usize) -> Self {
        let ticks = Ticks::new(limits.tick);
        let since_3 = config.era.since_3();
        Self {
            charging: Charging::new(charge::Setting {
                since_3,
                idles: !config.slice_idle.is_zero(),
                tick: ticks.one,
            }),
            cooperation: Cooperation::new(cooperation(config), queues),
            depth: Depth::new(depth(config)),
            idling: Idling::new(idling::Setting {
                slice_idle: config.slice_idle,
                group_idle: config.group_idle,
                since_3,
                tick: ticks.one,
            }),
            lengths: Lengths::new(lengths(config, ticks)),
            ncq: Ncq::new(limits.rotational),
            preemption: Preemption {
                is_confined: layout.is_confined,
                since_3,
                preempts_empty: config.quirk_preempt_empty,
            },
            seeks: Seeks {
                method: seek_method(config.seek, limits.rotational),
                trusts_early: config.quirk_seeky_early,
            },
            thinking: Thinking::new(config.slice_idle, config.group_idle, config.quirk_async_think, since_3),
        }
    }
}

const fn cooperation(config: &Config) -> cooperate::Setting {
    cooperate::Setting {
        spares_idle_class: config.era.since_2_6_34(),
        merges_unused: config.quirk_merge_unchecked,
    }
}

const fn depth(config: &Config) -> depth::Setting {
    depth::Setting {
        quantum: config.quantum,
        halves: config.era.since_2_6_34(),
        alone_among_sync: config.era.since_3(),
        low_latency: config.low_latency,
        late: config.fifo_expire_sync,
        step: config.slice_sync,
        each: config.slice_idle,
    }
}

const fn lengths(config: &Config, ticks: Ticks) -> lengths::Setting {
    lengths::Setting {
        slice_sync: config.slice_sync,
        slice_async: config.slice_async,
        slice_async_rq: config.slice_async_rq,
        slice_idle: config.slice_idle,
        low_latency: config.low_latency,
        target_latency: config.target_latency,
        ticks,
    }
}

const fn seek_method(seek: Seek, rotational: bool) -> Method {
    match seek {
        Seek::Mean => Method::MeanDistance,
        Seek::Distance => Method::Distance,
        Seek::Size => Method::Size,
        Seek::Auto if rotational => Method::Distance,
        Seek::Auto => Method::Size,
    }
}

/// What a seek back costs.
pub(super) fn back_seek(config: &Config) -> BackSeek {
    BackSeek { max: 2 * u64::from(config.back_seek_max.0), penalty: u64::from(config.back_seek_penalty) }
}

impl Era {
    const fn since_2_6_34(self) -> bool {
        !matches!(self, Self::Linux2_6_33)
    }

    pub(super) const fn since_3(self) -> bool {
        self as u8 >= Self::Linux3_10 as u8
    }

    const fn since_4_3(self) -> bool {
        matches!(self, Self::Linux4_3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Tunables;
    use crate::elevator::Limits;
    use crate::units::Duration;
    use std::format;

    /// Everything that a scheduler with these tunables has of them.
    fn chosen(config: &Config) -> std::string::String {
        let limits = Limits { groups: 2, rotational: true, tick: Duration::ZERO, ..Limits::default() };
        let layout = Layout::new(config, &limits);
        let rules = Rules::new(config, &limits, &layout, 1);
        let fifo = [config.fifo_expire_async, config.fifo_expire_sync];
        format!("{rules:?} {layout:?} {:?} {fifo:?}", back_seek(config))
    }

    #[test]
    fn each_tunable_reaches_a_rule_or_the_engine() {
        for t in Config::LIST {
            // The group's isolation is one of early eras; a disk with a head is judged by distance anyway.
            let base = Config { era: Era::Linux2_6_34, seek: Seek::Mean, ..Config::default() };
            let with = |raw| {
                let mut config = base;
                config.set(t.name, raw).expect("in range");
                chosen(&config)
            };
            assert_ne!(with(t.min), with(t.max), "{} changes nothing", t.name);
        }
    }

    #[test]
    fn eras_differ_where_their_kernels_did() {
        let eras = [Era::Linux2_6_33, Era::Linux2_6_34, Era::Linux3_10, Era::Linux4_3];
        let limits = Limits { groups: 2, ..Limits::default() };
        let of = |f: fn(&Layout) -> bool| {
            eras.map(|era| f(&Layout::new(&Config { era, ..Config::default() }, &limits)))
        };
        assert_eq!(of(|l| l.is_flat), [true, true, false, false]);
        assert_eq!(of(|l| l.moves_seeky), [true, true, false, false]);
        assert_eq!(of(|l| l.keeps_kind), [true, true, false, false]);
        assert_eq!(of(|l| l.async_in_root), [true, true, true, false]);
        assert_eq!(of(|l| l.divides && !l.is_confined), [true; 4]);
        let isolated = Config { group_isolation: true, ..Config::linux_2_6_33() };
        assert!(!Layout::new(&isolated, &limits).moves_seeky);
        let one = Limits { groups: 1, ..limits };
        let alone = Layout::new(&Config::linux_2_6_33(), &one);
        assert!(!alone.divides && !alone.moves_seeky);
        let confined = Layout::confined(&Config::linux_2_6_33(), &limits);
        assert!(confined.is_confined && confined.is_flat && confined.keeps_kind);
        assert!(!confined.divides && !confined.moves_seeky && !confined.async_in_root);
    }

    #[test]
    fn auto_judges_by_distance_on_a_disk_with_a_head_and_by_size_on_others() {
        assert_eq!([true, false].map(|head| seek_method(Seek::Auto, head)), [Method::Distance, Method::Size]);
        for (seek, method) in [
            (Seek::Mean, Method::MeanDistance),
            (Seek::Distance, Method::Distance),
            (Seek::Size, Method::Size),
        ] {
            assert_eq!([true, false].map(|head| seek_method(seek, head)), [method; 2]);
        }
    }
}
