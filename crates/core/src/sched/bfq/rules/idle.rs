//! When the disk idles for a queue that has nothing to send, and for how long.
//!
//! It idles for two reasons. *Throughput*: the next request of a sequential reader is worth waiting for, as
//! it needs no seek. *Guarantees*: if another queue were served in the gap, the device would be busy with
//! that when the next request comes, and the weights would say little about which queue gets how much. If all
//! queues are to get the same and the device queues, its own order gives it to them, and there is nothing to
//! wait for.
//!
//! Throughput asks for idling in these cases, unless a raised queue is busy:
//!
//! | device | random, or not I/O-bound, or thinking | sequential |
//! |---|---|---|
//! | with a head, does not queue | idle | idle |
//! | with a head, queues | | idle |
//! | no head, does not queue | | idle |
//! | no head, queues | | |
//!
//! Guarantees ask for it, whatever the device is, if the queue is raised and others are not, if it is raised
//! and the device has many requests of others, if the shares differ, or if the queue is alone.
//!
//! The disk idles for at most `slice_idle` (8 ms), for 2 ms if the queue seeks and all shares are equal, and
//! for at least 20 ms if it is raised.
//!
//! By the rules of 2010 the disk idled for every queue with an *idle window*: one whose think time is not
//! longer than `slice_idle`, and that does not seek if the device queues; and only while the device had
//! nothing to do.
//!
//! What it does not do: set the timer, or choose which queue is served meanwhile. The engine does the first,
//! and [`inject`](super::inject) says on which terms the second is done.
//
//= linux-6.12 block/bfq-iosched.c bfq_better_to_idle, idling_boosts_thr_without_issues
//= linux-6.12 block/bfq-iosched.c idling_needed_for_service_guarantees, bfq_arm_slice_timer
//= docs/reference/bfq.md#41-when-to-idle

use crate::units::{Duration, Sectors};

/// The longest idle period for a seeky queue among equals.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT, docs/reference/bfq.md#26-idling
const IDLE_SEEKY: Duration = Duration::from_ms(2);
/// The shortest idle period for a raised queue.
//= linux-6.12 block/bfq-iosched.c bfq_arm_slice_timer, docs/reference/bfq.md#26-idling
const IDLE_RAISED: Duration = Duration::from_ms(20);
/// This many requests of others at the device delay a raised queue.
//= linux-6.12 block/bfq-iosched.c idling_needed_for_service_guarantees, docs/reference/bfq.md#41-when-to-idle
const CROWD: u32 = 4;
/// A request of fewer sectors than this may still grow.
//= linux-6.12 block/bfq-iosched.c bfq_rq_enqueued, docs/reference/bfq.md#71-insert
const SMALL: Sectors = Sectors(32);

/// For which queues idling makes for more throughput, on one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Boost {
    /// For every queue.
    All,
    /// For queues that read in sequence, without long pauses.
    Sequential,
    /// For none.
    None,
    /// By the rules of 2010.
    Early,
}

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The longest idle period; zero: none.
    pub(crate) slice_idle: Duration,
    /// Whether the disk idles for each queue that a task uses, whatever else holds.
    pub(crate) always: bool,
    /// For which queues idling pays if the device takes one request at a time.
    pub(crate) unqueued: Boost,
    /// For which queues idling pays if the device queues requests.
    pub(crate) queued: Boost,
    /// Whether a raised queue is idled for so that others do not delay it.
    pub(crate) for_raised: bool,
    /// Whether guarantees ask for idling only where shares differ; if not, an idle window is enough.
    pub(crate) by_shares: bool,
    /// Whether idling for throughput ends while a raised queue is busy.
    pub(crate) raised_first: bool,
    /// Whether a raised queue may be idled for because that makes for throughput.
    pub(crate) raised_stream: bool,
}

/// What the device and all queues have to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The number of requests at the device.
    pub(crate) in_flight: u32,
    /// The number of queues that have requests or the disk.
    pub(crate) busy: u32,
    /// The number of these that are raised.
    pub(crate) raised: u32,
}

/// A queue that may be idled for. Each fact is looked up only where it decides.
pub(crate) trait Candidate {
    /// Whether a task uses it.
    fn has_task(&self) -> bool;
    /// Whether it is sync, and not of the idle class.
    fn is_usual(&self) -> bool;
    /// Whether its weight is raised.
    fn is_raised(&self) -> bool;
    /// Whether its weight is raised as soft real-time.
    fn is_soft(&self) -> bool;
    /// Whether the disk passes over requests that are far away.
    fn is_at_greedy_disk(&self) -> bool;
    /// The number of its requests at the device.
    fn in_flight(&self) -> u32;
    /// Whether it is I/O-bound, and its next request is expected soon.
    fn keeps_on(&self) -> bool;
    /// Whether its requests jump about.
    fn is_seeky(&self) -> bool;
    /// Whether its think time is known, and longer than `slice_idle`: for the rules of 2010.
    fn thinks_long(&self) -> bool;
    /// Whether its share would not come out right by itself: weights, classes or groups differ.
    fn is_asymmetric(&self) -> bool;
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) setting: Setting,
    /// Whether the device queues requests, as far as is known.
    queues: bool,
    /// For which queues idling pays on this device.
    boost: Boost,
}

impl Idle {
    /// A device that may queue requests.
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, queues: true, boost: setting.queued }
    }

    /// The device queues requests, as far as is known now, or does not; or the setting is another.
    pub(crate) const fn judge(&mut self, queues: bool) {
        self.queues = queues;
        self.boost = if queues { self.setting.queued } else { self.setting.unqueued };
    }

    /// Whether a raised queue is busy, which counts for more than throughput.
    #[inline(always)]
    const fn raised_wait(&self, load: &Load) -> bool {
        self.setting.raised_first && load.raised > 0
    }

    /// Whether idling for a queue makes for more throughput, if no raised queue is busy.
    #[inline(always)]
    pub(crate) fn would_boost(&self, queue: &impl Candidate) -> bool {
        queue.has_task()
            && match self.boost {
                Boost::All => true,
                Boost::Sequential => queue.keeps_on() && !queue.is_seeky(),
                Boost::None => false,
                Boost::Early => self.has_window(queue),
            }
    }

    /// Whether idling for a queue makes for more throughput.
    #[inline(always)]
    pub(crate) fn boosts(&self, load: &Load, queue: &impl Candidate) -> bool {
        let counts = !self.raised_wait(load) || self.setting.raised_stream && queue.is_raised();
        counts && self.would_boost(queue)
    }

    /// Whether the disk idled for such a queue in 2010.
    fn has_window(&self, queue: &impl Candidate) -> bool {
        !(queue.thinks_long() || self.queues && queue.is_seeky())
    }

    /// Whether a queue is raised, and others that are busy are not.
    #[inline(always)]
    fn is_raised_among_others(&self, load: &Load, queue: &impl Candidate) -> bool {
        queue.is_raised() && self.setting.for_raised && load.raised < load.busy
    }

    /// Whether a queue is raised, and others' requests at the device delay it: from 4 on; one is enough at
    /// a greedy disk. A soft real-time queue is not to lose such a disk at
    /// all.
    //= deviates bfq-protection
    #[inline(always)]
    fn is_delayed(&self, load: &Load, queue: &impl Candidate) -> bool {
        let many = load.in_flight >= queue.in_flight() + CROWD;
        let any = load.in_flight > queue.in_flight();
        queue.is_raised()
            && self.setting.for_raised
            && (many || queue.is_at_greedy_disk() && (any || queue.is_soft()))
    }

    /// Whether idling for a queue is needed for its share.
    #[inline(always)]
    pub(crate) fn needed(&self, load: &Load, queue: &impl Candidate) -> bool {
        if !queue.has_task() {
            return false;
        }
        if self.is_raised_among_others(load, queue) || self.is_delayed(load, queue) {
            return true;
        }
        if !self.setting.by_shares {
            return self.has_window(queue);
        }
        load.busy == 1 || queue.is_asymmetric()
    }

    /// Whether the disk idles for a queue when it has nothing to send.
    #[inline(always)]
    pub(crate) fn better_to_idle(&self, load: &Load, queue: &impl Candidate) -> bool {
        if !queue.has_task() {
            return false;
        }
        if self.setting.always {
            return true;
        }
        if self.setting.slice_idle.is_zero() || !queue.is_usual() {
            return false;
        }
        // What is found out soonest comes first.
        self.is_raised_among_others(load, queue) || self.boosts(load, queue) || self.needed(load, queue)
    }

    /// For how long the disk idles for a queue that has nothing to send and nothing at the device, at most;
    /// `None`: not at all.
    #[inline(always)]
    pub(crate) fn period(&self, load: &Load, queue: &impl Candidate) -> Option<Duration> {
        let idle = self.setting.slice_idle;
        if self.boost == Boost::Early {
            return (load.in_flight == 0).then_some(if queue.is_raised() {
                idle.max(IDLE_RAISED)
            } else {
                idle
            });
        }
        Some(if queue.is_raised() {
            idle.max(IDLE_RAISED)
        } else if queue.is_seeky() && !queue.is_asymmetric() {
            idle.min(IDLE_SEEKY)
        } else {
            idle
        })
    }

    /// Whether idling for a queue continues, though a request of length `len` came, the only one that waits:
    /// it may grow by merging, and then makes for more throughput.
    #[inline]
    pub(crate) fn awaits_more(&self, load: &Load, queue: &impl Candidate, len: Sectors) -> bool {
        len < SMALL && !self.raised_wait(load) && self.would_boost(queue)
    }
}

/// What tests of the engine need.
#[cfg(test)]
impl Idle {
    /// For which queues idling pays on this device.
    pub(crate) const fn boost(&self) -> Boost {
        self.boost
    }

    /// Idling pays for these queues.
    pub(crate) const fn has_boost(&mut self, boost: Boost) {
        self.boost = boost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_ms(1);

    fn rule() -> Idle {
        Idle::new(Setting {
            slice_idle: MS * 8,
            always: false,
            unqueued: Boost::All,
            queued: Boost::None,
            for_raised: true,
            by_shares: true,
            raised_first: true,
            raised_stream: false,
        })
    }

    fn with(boost: Boost) -> Idle {
        let mut rule = rule();
        rule.has_boost(boost);
        rule
    }

    /// Two busy queues, none of them raised, and nothing at the device.
    fn two() -> Load {
        Load { busy: 2, in_flight: 0, raised: 0 }
    }

    /// Facts about a queue.
    #[derive(Clone, Copy, Debug)]
    struct Facts {
        has_task: bool,
        usual: bool,
        raised: bool,
        soft: bool,
        greedy: bool,
        in_flight: u32,
        keeps_on: bool,
        seeky: bool,
        thinks_long: bool,
        asymmetric: bool,
    }

    impl Candidate for Facts {
        fn has_task(&self) -> bool {
            self.has_task
        }
        fn is_usual(&self) -> bool {
            self.usual
        }
        fn is_raised(&self) -> bool {
            self.raised
        }
        fn is_soft(&self) -> bool {
            self.soft
        }
        fn is_at_greedy_disk(&self) -> bool {
            self.greedy
        }
        fn in_flight(&self) -> u32 {
            self.in_flight
        }
        fn keeps_on(&self) -> bool {
            self.keeps_on
        }
        fn is_seeky(&self) -> bool {
            self.seeky
        }
        fn thinks_long(&self) -> bool {
            self.thinks_long
        }
        fn is_asymmetric(&self) -> bool {
            self.asymmetric
        }
    }

    /// A queue that seeks, and is not I/O-bound.
    const RANDOM: Facts = Facts {
        has_task: true,
        usual: true,
        raised: false,
        soft: false,
        greedy: false,
        in_flight: 0,
        keeps_on: false,
        seeky: true,
        thinks_long: false,
        asymmetric: false,
    };
    const SEQUENTIAL: Facts = Facts { keeps_on: true, seeky: false, ..RANDOM };
    const RAISED: Facts = Facts { raised: true, ..RANDOM };

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle type=test
    fn throughput_asks_for_idling_by_the_device_and_by_how_the_queue_reads() {
        let thinks = Facts { keeps_on: false, ..SEQUENTIAL };
        let seeks = Facts { seeky: true, ..SEQUENTIAL };
        for (boost, for_random, for_sequential) in
            [(Boost::All, true, true), (Boost::Sequential, false, true), (Boost::None, false, false)]
        {
            let rule = with(boost);
            for (queue, expected) in [
                (RANDOM, for_random),
                (thinks, for_random),
                (seeks, for_random),
                (SEQUENTIAL, for_sequential),
                (Facts { has_task: false, ..SEQUENTIAL }, false),
            ] {
                assert_eq!(rule.would_boost(&queue), expected, "{boost:?} {queue:?}");
                assert_eq!(rule.boosts(&two(), &queue), expected, "{boost:?} {queue:?}");
                assert_eq!(rule.better_to_idle(&two(), &queue), expected, "{boost:?} {queue:?}");
            }
        }
    }

    #[test]
    fn what_the_device_is_found_to_do_decides_for_which_queues_idling_pays() {
        let mut rule = rule();
        assert_eq!((rule.boost(), rule.queues), (Boost::None, true), "until it is known better");
        rule.judge(false);
        assert_eq!((rule.boost(), rule.queues), (Boost::All, false));
        rule.judge(true);
        assert_eq!((rule.boost(), rule.queues), (Boost::None, true));
    }

    #[test]
    fn while_a_raised_queue_is_busy_throughput_does_not_count() {
        let load = Load { raised: 1, ..two() };
        let mut rule = with(Boost::All);
        assert!(rule.boosts(&two(), &SEQUENTIAL) && !rule.boosts(&load, &SEQUENTIAL));
        assert!(!rule.boosts(&load, &RAISED), "not for the raised one either");
        rule.setting.raised_stream = true;
        assert!(rule.boosts(&load, &RAISED) && !rule.boosts(&load, &SEQUENTIAL));
        assert!(rule.would_boost(&SEQUENTIAL), "but for the raised queue it would");
        rule.setting.raised_first = false;
        assert!(rule.boosts(&load, &SEQUENTIAL));
    }

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle type=test
    fn some_queues_are_never_idled_for_and_a_setting_can_ask_for_all() {
        let mut rule = with(Boost::All);
        let unused = Facts { has_task: false, ..SEQUENTIAL };
        let unusual = Facts { usual: false, ..SEQUENTIAL };
        let wanted = |rule: &Idle, queue| rule.better_to_idle(&two(), &Facts { asymmetric: true, ..queue });
        assert!(wanted(&rule, SEQUENTIAL) && !wanted(&rule, unused) && !wanted(&rule, unusual));
        rule.setting.slice_idle = Duration::ZERO;
        assert!(!wanted(&rule, SEQUENTIAL));
        rule.setting.always = true;
        assert!(wanted(&rule, SEQUENTIAL) && wanted(&rule, unusual) && !wanted(&rule, unused));
    }

    #[test]
    fn guarantees_ask_for_idling_where_shares_differ_or_a_queue_is_alone() {
        let rule = with(Boost::None);
        let needed = |busy, asymmetric| {
            let (load, queue) = (Load { busy, ..two() }, Facts { asymmetric, ..SEQUENTIAL });
            let needed = rule.needed(&load, &queue);
            assert_eq!(rule.better_to_idle(&load, &queue), needed);
            needed
        };
        assert!(needed(2, true) && needed(1, false) && !needed(2, false));
        let unused = Facts { has_task: false, ..SEQUENTIAL };
        assert!(!rule.needed(&two(), &Facts { asymmetric: true, ..unused }));
    }

    #[test]
    //= docs/reference/bfq.md#41-when-to-idle needed type=test
    fn a_raised_queue_is_idled_for_if_others_would_delay_it() {
        let mut rule = with(Boost::None);
        let needed = |rule: &Idle, raised, in_flight, queue: Facts, greedy| {
            let (load, queue) = (Load { raised, in_flight, ..two() }, Facts { greedy, ..queue });
            let needed = rule.needed(&load, &queue);
            assert_eq!(rule.better_to_idle(&load, &queue), needed);
            needed
        };
        assert!(needed(&rule, 1, 0, RAISED, false), "the other queue is not raised");
        assert!(!needed(&rule, 1, 0, RANDOM, false), "this one is not");
        assert!(!needed(&rule, 2, 0, RAISED, false), "both are");
        // Both are raised: what the device has decides.
        let with_own = Facts { in_flight: 3, ..RAISED };
        for (in_flight, queue, delayed) in [
            (3, RAISED, false),
            (4, RAISED, true),
            (6, with_own, false),
            (7, with_own, true),
            (9, RANDOM, false),
        ] {
            assert_eq!(needed(&rule, 2, in_flight, queue, false), delayed, "{in_flight} {queue:?}");
        }
        let soft = Facts { soft: true, ..RAISED };
        for (in_flight, queue, delayed) in [
            (0, RAISED, false),
            (1, RAISED, true),
            (3, with_own, false),
            (4, with_own, true),
            (0, soft, true),
        ] {
            assert_eq!(
                needed(&rule, 2, in_flight, queue, true),
                delayed,
                "a greedy disk: {in_flight} {queue:?}"
            );
        }
        assert!(!needed(&rule, 2, 0, soft, false), "a disk that is not greedy");
        rule.setting.for_raised = false;
        assert!(!needed(&rule, 1, 9, RAISED, true));
    }

    #[test]
    fn by_the_rules_of_2010_a_queue_with_an_idle_window_is_idled_for() {
        let mut rule = with(Boost::Early);
        rule.setting.by_shares = false;
        let slow = Facts { thinks_long: true, ..SEQUENTIAL };
        for (queues, queue, window) in [
            (true, SEQUENTIAL, true),
            (true, RANDOM, false),
            (false, RANDOM, true),
            (true, slow, false),
            (false, slow, false),
        ] {
            rule.queues = queues;
            assert_eq!(rule.would_boost(&queue), window, "{queues} {queue:?}");
            assert_eq!(
                rule.needed(&two(), &Facts { asymmetric: true, ..queue }),
                window,
                "{queues} {queue:?}"
            );
        }
        rule.boost = Boost::None;
        let alone = Load { busy: 1, ..two() };
        assert!(
            !rule.needed(&alone, &Facts { asymmetric: true, ..slow }),
            "that it is alone is not looked at"
        );
        assert!(rule.needed(&Load { raised: 1, ..two() }, &Facts { raised: true, ..slow }));
    }

    #[test]
    //= docs/reference/bfq.md#26-idling type=test
    fn the_period_is_short_for_seeky_queues_among_equals_and_long_for_raised_ones() {
        let period = |rule: &Idle, queue, asymmetric| rule.period(&two(), &Facts { asymmetric, ..queue });
        let mut rule = rule();
        assert_eq!(period(&rule, SEQUENTIAL, false), Some(MS * 8));
        assert_eq!(period(&rule, RANDOM, false), Some(MS * 2));
        assert_eq!(period(&rule, RANDOM, true), Some(MS * 8));
        assert_eq!(period(&rule, RAISED, false), Some(MS * 20));
        rule.setting.slice_idle = MS;
        assert_eq!(period(&rule, RANDOM, false), Some(MS), "no longer than the setting");
        rule.setting.slice_idle = MS * 50;
        assert_eq!(period(&rule, RAISED, false), Some(MS * 50), "no shorter than the setting");
    }

    #[test]
    fn in_2010_the_disk_idled_only_while_the_device_had_nothing_to_do() {
        let busy = Load { in_flight: 1, ..two() };
        let early = with(Boost::Early);
        assert_eq!(early.period(&busy, &RANDOM), None);
        assert_eq!(early.period(&two(), &RANDOM), Some(MS * 8), "whether it seeks or not");
        assert_eq!(early.period(&two(), &RAISED), Some(MS * 20));
        assert_eq!(rule().period(&busy, &SEQUENTIAL), Some(MS * 8));
    }

    #[test]
    fn a_small_request_that_may_grow_does_not_end_the_idling() {
        let rule = with(Boost::Sequential);
        assert!(rule.awaits_more(&two(), &SEQUENTIAL, Sectors(31)));
        assert!(!rule.awaits_more(&two(), &SEQUENTIAL, Sectors(32)));
        assert!(!rule.awaits_more(&two(), &RANDOM, Sectors(8)), "idling does not pay");
        assert!(!rule.awaits_more(&Load { raised: 1, ..two() }, &SEQUENTIAL, Sectors(8)));
    }
}
