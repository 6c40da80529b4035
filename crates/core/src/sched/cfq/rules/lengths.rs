//! How long slices are, of queues and of kinds, and how many requests an async queue may send in one.
//!
//! With `low_latency` slices shrink when many queues are busy, so that each has its turn within
//! `target_latency`: 300 ms.
//!
//! | busy sync queues (BE/4) | 1-3 | 4 | 6 | 8 | 10 | 20 |
//! |---|---:|---:|---:|---:|---:|---:|
//! | slice, ms | 100 | 75 | 50 | 37 | 30 | 16 |
//!
//! The floor is twice `slice_idle`, scaled by priority. With 3 sync and 1 seeky queue the sync kind is served
//! for 225 ms, then the seeky one for 75 ms.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_set_prio_slice, cfq_prio_to_maxrq, choose_service_tree
//= docs/reference/cfq.md#52-slice-length

use crate::parts::wide;
use crate::sched::cfq::view::{Kind, LEVELS, Ticks};
use crate::units::{Class, Duration, IoPrio};

/// A slice of level 4 is the base; each level up or down adds or takes a fifth of it.
//= linux-2.6.33 block/cfq-iosched.c CFQ_SLICE_SCALE
const SLICE_SCALE: u64 = 5;
/// A workload slice has at least this many ticks.
//= linux-2.6.33 block/cfq-iosched.c CFQ_MIN_TT
const MIN_TICKS: u64 = 2;
/// The old average's weight in the average of busy queues, plus one.
//= linux-2.6.33 block/cfq-iosched.c cfq_hist_divisor
const HISTORY: u32 = 4;

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The slices of queues of level 4.
    pub(crate) slice_sync: Duration,
    pub(crate) slice_async: Duration,
    /// Half of what an async queue may send in a slice, for each level below 8.
    pub(crate) slice_async_rq: u32,
    /// How long a queue's next request is waited for: a slice that is shorter than two waits is of no use.
    pub(crate) slice_idle: Duration,
    /// Slices shrink when many queues are busy.
    pub(crate) low_latency: bool,
    /// The time in which every busy queue should have its turn.
    pub(crate) target_latency: Duration,
    pub(crate) ticks: Ticks,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    setting: Setting,
    /// Full slices of async (0) and sync (1) queues by level.
    full: [[Duration; LEVELS]; 2],
}

/// How many RT and BE queues of a group were busy: kept with the group, and looked at here only. IDLE counts
/// as BE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BusyAverage([u32; 2]);

/// Busy queues of a group, when a kind of a class is to be served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// Of the class and the kind.
    pub(crate) of_kind: u32,
    /// Of the class.
    pub(crate) of_class: u32,
    /// Async ones, of RT and BE.
    pub(crate) asynchronous: u32,
    /// Those of all groups.
    pub(crate) all: u32,
}

impl BusyAverage {
    const fn index(class: Class) -> usize {
        !matches!(class, Class::RealTime) as usize
    }

    /// Brings the average of a class up to date, of which `busy` queues are busy, and answers it: it grows
    /// fast and decays slowly.
    //= linux-2.6.33 block/cfq-iosched.c cfq_group_get_avg_queues
    pub(crate) fn update(&mut self, class: Class, busy: u32) -> u32 {
        let average = &mut self.0[Self::index(class)];
        *average = ((HISTORY - 1) * busy.max(*average) + busy.min(*average) + HISTORY / 2) / HISTORY;
        *average
    }

    fn of(self, class: Class) -> u32 {
        self.0[Self::index(class)]
    }
}

impl Lengths {
    /// Full slices are `base + base / 5 x (4 - level)`.
    pub(crate) fn new(setting: Setting) -> Self {
        let full = [setting.slice_async, setting.slice_sync].map(|base| {
            let step = setting.ticks.whole(base / SLICE_SCALE);
            core::array::from_fn(|level| {
                let level = level as u64;
                if level <= 4 { base + step * (4 - level) } else { base - step * (level - 4) }
            })
        });
        Self { setting, full }
    }

    /// The slice by kind and priority alone.
    #[inline]
    pub(crate) fn full(&self, sync: bool, prio: IoPrio) -> Duration {
        self.full[usize::from(sync)][usize::from(prio.level)]
    }

    /// The time in which every busy queue should have its turn.
    pub(crate) const fn target(&self) -> Duration {
        self.setting.target_latency
    }

    /// The slice with regard to how many others wait for theirs: `busy` queues are busy on average, and
    /// `part` of the target is their group's.
    pub(crate) fn scaled(&self, sync: bool, prio: IoPrio, busy: u32, part: Duration) -> Duration {
        let Setting { slice_sync, slice_idle, ticks, .. } = self.setting;
        let slice = self.full(sync, prio);
        let expected = slice_sync * u64::from(busy);
        if expected <= part {
            return slice;
        }
        // A slice shorter than two waits would be spent on idling.
        let floor = slice.min(mul_div(slice_idle * 2, slice, slice_sync));
        ticks.whole(mul_div(slice, part, expected).max(floor))
    }

    /// Whether slices are scaled.
    #[inline]
    pub(crate) const fn scales(&self) -> bool {
        self.setting.low_latency
    }

    /// By how much a queue's turn is put off, in ns: by how much shorter its slices are than the longest, for
    /// each of `others` queues. A queue that was not busy is not counted yet, so `others` may be -1.
    //= linux-2.6.33 block/cfq-iosched.c cfq_slice_offset
    #[inline]
    pub(crate) fn offset(&self, sync: bool, prio: IoPrio, others: i64) -> i64 {
        let shorter = self.full[1][0].as_ns().cast_signed() - self.full(sync, prio).as_ns().cast_signed();
        others.saturating_mul(shorter)
    }

    /// How many requests an async queue may send in a slice.
    //= linux-2.6.33 block/cfq-iosched.c cfq_prio_to_maxrq
    #[inline]
    pub(crate) fn async_quota(&self, prio: IoPrio) -> u64 {
        2 * u64::from(self.setting.slice_async_rq) * (LEVELS as u64 - u64::from(prio.level))
    }

    /// How long a kind is served: its queues' part of the group's `part` of the target.
    pub(crate) fn workload(
        &self,
        class: Class,
        kind: Kind,
        crowd: &Crowd,
        average: BusyAverage,
        part: Duration,
    ) -> Duration {
        let Setting { slice_sync, slice_async, slice_idle, target_latency, ticks, .. } = self.setting;
        let busy = average.of(class).max(crowd.of_class);
        let part = part * u64::from(crowd.of_kind) / u64::from(busy);
        let slice = if kind == Kind::Async {
            // Async queues get no more than their part of the latency target among all busy queues, whichever
            // groups these are in; then as much less as an async slice is shorter than a sync one.
            let fair = target_latency * u64::from(crowd.asynchronous) / u64::from(crowd.all);
            mul_div(part.min(fair), slice_async, slice_sync)
        } else {
            part.max(slice_idle * 2)
        };
        ticks.whole(slice).max(ticks.one * MIN_TICKS)
    }

    /// How long the idle class is served.
    pub(crate) const fn idle_workload(&self) -> Duration {
        self.setting.ticks.one
    }
}

/// `a x b / c` for `c` that is not zero.
fn mul_div(a: Duration, b: Duration, c: Duration) -> Duration {
    Duration::from_ns(wide::mul_div(a.as_ns(), b.as_ns(), c.as_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    fn be(level: u8) -> IoPrio {
        IoPrio::new(Class::BestEffort, level)
    }

    fn setting(step: Duration) -> Setting {
        Setting {
            slice_sync: ms(100),
            slice_async: ms(40),
            slice_async_rq: 2,
            slice_idle: ms(8),
            low_latency: true,
            target_latency: ms(300),
            ticks: Ticks::new(step),
        }
    }

    fn coarse() -> Lengths {
        Lengths::new(setting(ms(1)))
    }

    fn exact() -> Lengths {
        Lengths::new(setting(Duration::ZERO))
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 2 type=test
    fn slices_shrink_as_more_queues_are_busy() {
        let expected = [(1, 100), (2, 100), (3, 100), (4, 75), (6, 50), (8, 37), (10, 30), (20, 16)];
        for (busy, want) in expected {
            assert_eq!((busy, coarse().scaled(true, be(4), busy, ms(300))), (busy, ms(want)));
        }
        let scaled = |level, busy| coarse().scaled(true, be(level), busy, ms(300));
        assert_eq!((scaled(0, 8), scaled(7, 20)), (ms(67), ms(6)));
        // Without ticks nothing is rounded.
        assert_eq!(exact().scaled(true, be(4), 8, ms(300)), Duration::from_us(37_500));
        // A group that has less of the target has shorter slices.
        assert_eq!(coarse().scaled(true, be(4), 2, ms(100)), ms(50));
        assert_eq!(coarse().scaled(false, be(4), 6, ms(300)), ms(20), "async ones shrink, too");
    }

    #[test]
    fn a_slice_is_never_shorter_than_two_waits_nor_longer_than_the_full_one() {
        let long_idle = Lengths::new(Setting { slice_idle: ms(80), ..setting(ms(1)) });
        assert_eq!(long_idle.scaled(true, be(4), 20, ms(300)), ms(100));
        let idle_less = Lengths::new(Setting { slice_idle: Duration::ZERO, ..setting(ms(1)) });
        assert_eq!(idle_less.scaled(true, be(4), 60, ms(300)), ms(5));
    }

    #[test]
    //= docs/reference/cfq.md#23-slices-and-quotas-by-priority type=test
    fn full_slices_and_quotas_follow_the_level() {
        let full = |sync| [0, 1, 2, 3, 4, 5, 6, 7].map(|level| exact().full(sync, be(level)).as_ms());
        assert_eq!(full(true), [180, 160, 140, 120, 100, 80, 60, 40]);
        assert_eq!(full(false), [72, 64, 56, 48, 40, 32, 24, 16]);
        let quota = |level| exact().async_quota(be(level));
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(quota), [32, 28, 24, 20, 16, 12, 8, 4]);
        // A fifth in whole ticks: 8 ms of 40 ms with ticks of 4 ms, 20 of 100.
        let ticks = Lengths::new(setting(ms(3)));
        assert_eq!([3, 5].map(|level| ticks.full(true, be(level))), [ms(118), ms(82)]);
    }

    #[test]
    fn a_turn_is_put_off_by_the_difference_to_the_longest_slice_for_each_other_queue() {
        let offset = |sync, level, others| exact().offset(sync, be(level), others);
        let ns = |n: i64| n * 1_000_000;
        assert_eq!(
            [(4, 1), (4, 3), (0, 3), (7, 2)].map(|(l, n)| offset(true, l, n)),
            [ns(80), ns(240), 0, ns(280)]
        );
        assert_eq!((offset(false, 4, 1), offset(true, 4, -1)), (ns(140), ns(-80)));
        assert_eq!(offset(true, 4, i64::MAX), i64::MAX);
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 3 type=test
    fn the_average_of_busy_queues_grows_fast_and_stops_falling_at_three() {
        let mut average = BusyAverage::default();
        let mut seen = |class, busy| [(); 3].map(|()| average.update(class, busy));
        assert_eq!(seen(Class::BestEffort, 4), [3, 4, 4]);
        assert_eq!(seen(Class::BestEffort, 1), [3, 3, 3]);
        assert_eq!(seen(Class::RealTime, 1), [1, 1, 1], "each class has its own");
        assert_eq!(seen(Class::Idle, 1), [3, 3, 3], "idle counts as best effort");
        assert_eq!(average.of(Class::RealTime), 1);
        assert_eq!([Class::BestEffort, Class::Idle].map(|class| average.of(class)), [3, 3]);
    }

    /// The time for a kind with `of_kind` of `of_class` queues busy, all of the class in one group.
    fn workload(lengths: Lengths, kind: Kind, of_kind: u32, of_class: u32) -> Duration {
        let asynchronous = if kind == Kind::Async { of_kind } else { 0 };
        let crowd = Crowd { of_kind, of_class, asynchronous, all: of_class };
        lengths.workload(Class::BestEffort, kind, &crowd, BusyAverage::default(), ms(300))
    }

    #[test]
    //= docs/reference/cfq.md#54-choosing-group-class-and-type type=test
    fn kinds_share_the_time_by_their_queues() {
        assert_eq!(workload(exact(), Kind::Sync, 3, 4), ms(225));
        assert_eq!(workload(exact(), Kind::SyncNoIdle, 1, 4), ms(75));
        assert_eq!(workload(exact(), Kind::Async, 1, 2), ms(60), "40 % of 150");
        assert_eq!(workload(exact(), Kind::Sync, 1, 100), ms(16), "two waits at least");
        assert_eq!(workload(exact(), Kind::Async, 1, 300), ms(2), "two ticks at least");
        assert_eq!(workload(Lengths::new(setting(ms(7))), Kind::Sync, 3, 4), ms(224), "whole ticks");
    }

    #[test]
    fn a_high_average_of_busy_queues_makes_turns_of_kinds_shorter() {
        let mut average = BusyAverage::default();
        (0..9).for_each(|_| {
            average.update(Class::BestEffort, 6);
        });
        let crowd = Crowd { of_kind: 1, of_class: 2, asynchronous: 0, all: 2 };
        let of = |class| exact().workload(class, Kind::Sync, &crowd, average, ms(300));
        assert_eq!([Class::BestEffort, Class::RealTime].map(of), [ms(50), ms(150)]);
    }

    #[test]
    fn async_queues_get_their_part_among_the_queues_of_all_groups() {
        let crowd = Crowd { of_kind: 1, of_class: 1, asynchronous: 2, all: 10 };
        let of =
            |part| exact().workload(Class::BestEffort, Kind::Async, &crowd, BusyAverage::default(), ms(part));
        // 2 of 10 queues: 60 ms of 300. A group that has less of the target gets that.
        assert_eq!([300, 60, 30].map(of), [ms(24), ms(24), ms(12)]);
    }

    #[test]
    fn the_idle_class_is_served_for_a_tick() {
        assert_eq!((exact().idle_workload(), Lengths::new(setting(ms(4))).idle_workload()), (ms(1), ms(4)));
        assert!(exact().scales() && exact().target() == ms(300));
        assert!(!Lengths::new(Setting { low_latency: false, ..setting(ms(1)) }).scales());
    }

    #[test]
    fn products_of_long_times_do_not_overflow() {
        let day = Duration::from_secs(86_400);
        assert_eq!(mul_div(day, day, day), day);
        assert_eq!(mul_div(day, day, Duration::from_ns(1)), Duration::from_ns(u64::MAX));
        assert_eq!(mul_div(ms(3), ms(5), ms(2)), Duration::from_us(7500));
    }
}
