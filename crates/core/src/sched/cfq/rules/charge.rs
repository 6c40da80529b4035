//! What a slice costs its group.
//!
//! A group is charged for the time of the slice; but in *IOPS mode* for its requests, a tick each, and for a
//! whole slice if it has none but async queues, whose requests are still to be carried out. The kernel
//! charges those nothing if none was carried out yet; this charges them the time.
//!
//! ```text
//!   gets the disk      first completion          the slice's end        ends
//!        │◄── unaccounted ──►│◄──────── used ────────►│◄─ unaccounted ──►│
//! ```
//
//= deviates cfq-async-charge
//= linux-3.10 block/cfq-iosched.c cfq_cfqq_slice_usage, cfq_group_served, iops_mode
//= docs/reference/cfq.md#63-charging

use crate::sched::cfq::view::Slice;
use crate::units::{Duration, Instant};

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The rules of 3.x: IOPS mode, whole slices for async requests, and the time until the first completion
    /// is noted.
    pub(crate) since_3: bool,
    /// Queues are waited for.
    pub(crate) idles: bool,
    /// The cost of a request in IOPS mode, and the least of a slice in which none completed.
    pub(crate) tick: Duration,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charging {
    setting: Setting,
    /// When the active queue got the disk.
    selected: Instant,
    /// How long its slice is; zero while its clock has not started.
    slice: Duration,
}

/// A slice that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) slice: Slice,
    /// Whether its queue is sync.
    pub(crate) sync: bool,
    /// The requests that were issued in it.
    pub(crate) requests: u32,
}

/// What a group pays for a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Charge {
    /// What its virtual time grows by, before it is scaled.
    pub(crate) amount: Duration,
    /// The time of the slice, for statistics.
    pub(crate) used: Duration,
    /// What is not charged: what was overrun and, since 3.x, the time until the first completion.
    pub(crate) unaccounted: Duration,
}

impl Charging {
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, selected: Instant::EPOCH, slice: Duration::ZERO }
    }

    /// A queue gets the disk.
    #[inline]
    pub(crate) const fn selected(&mut self, now: Instant) {
        self.selected = now;
        self.slice = Duration::ZERO;
    }

    /// The first request of the slice completed: it lasts for `slice` from now on.
    #[inline]
    pub(crate) const fn clock_started(&mut self, slice: Duration) {
        self.slice = slice;
    }

    /// What a slice costs that is over. These answer: `queues`, whether the device queues requests itself;
    /// `has_sync`, whether the group has busy sync queues.
    pub(crate) fn expired(
        &self,
        now: Instant,
        spent: &Spent,
        queues: impl FnOnce() -> bool,
        has_sync: impl FnOnce() -> bool,
    ) -> Charge {
        let Setting { since_3, idles, tick } = self.setting;
        let (used, unaccounted) = self.usage(now, &spent.slice);
        // When nothing is waited for, and the device queues, time says nothing.
        let amount = if since_3 && !idles && queues() {
            tick * u64::from(spent.requests)
        } else if since_3 && !spent.sync && !has_sync() {
            // What a disk's cache has taken is still to be written when the next group has the disk.
            used.max(self.slice)
        } else {
            used
        };
        Charge { amount, used, unaccounted }
    }

    /// The time of a slice, and what is not charged.
    fn usage(&self, now: Instant, slice: &Slice) -> (Duration, Duration) {
        // Nothing completed, or in this very instant: the time since the queue got the disk counts, at least
        // a tick, or single requests would be free.
        if slice.is_new || slice.start == now {
            return (now.saturating_since(self.selected).max(self.setting.tick), Duration::ZERO);
        }
        let all = now.saturating_since(slice.start);
        let used = all.min(self.slice);
        let before = slice.start.saturating_since(self.selected);
        let unaccounted = Duration::from_ns(all.as_ns() - used.as_ns());
        (used, if self.setting.since_3 { unaccounted + before } else { unaccounted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    fn at(n: u64) -> Instant {
        Instant::EPOCH + ms(n)
    }

    fn setting(since_3: bool) -> Setting {
        Setting { since_3, idles: true, tick: ms(1) }
    }

    /// A queue had the disk from 10 ms on, its first request completed at 15 ms, its slice is 40 ms.
    fn started(setting: Setting) -> Charging {
        let mut rule = Charging::new(setting);
        rule.selected(at(10));
        rule.clock_started(ms(40));
        rule
    }

    fn spent(sync: bool) -> Spent {
        Spent { slice: Slice { start: at(15), end: at(55), is_new: false }, sync, requests: 7 }
    }

    /// Amount, used and unaccounted, in ms.
    fn charge(rule: Charging, now: u64, spent: Spent, queues: bool, has_sync: bool) -> [u64; 3] {
        let Charge { amount, used, unaccounted } = rule.expired(at(now), &spent, || queues, || has_sync);
        [amount, used, unaccounted].map(Duration::as_ms)
    }

    #[test]
    fn the_time_from_the_first_completion_to_the_slices_end_is_charged() {
        for (now, since_3, want) in [
            (35, true, [20, 20, 5]),
            (55, true, [40, 40, 5]),
            (65, true, [40, 40, 15]),
            (35, false, [20, 20, 0]),
            (65, false, [40, 40, 10]),
        ] {
            let got = charge(started(setting(since_3)), now, spent(true), true, true);
            assert_eq!(got, want, "at {now} ms, {since_3}");
        }
    }

    #[test]
    fn a_slice_in_which_nothing_completed_costs_the_time_since_the_disk_was_given_and_at_least_a_tick() {
        let new =
            |start| Spent { slice: Slice { start: at(start), end: at(start), is_new: true }, ..spent(true) };
        let mut rule = started(setting(true));
        rule.selected(at(10));
        assert_eq!(charge(rule, 30, new(10), true, true), [20, 20, 0]);
        assert_eq!(charge(rule, 10, new(10), true, true), [1, 1, 0]);
        // The first completion in this very instant.
        assert_eq!(charge(started(setting(true)), 15, spent(true), true, true), [5, 5, 0]);
    }

    #[test]
    fn without_idling_on_a_device_that_queues_requests_are_charged() {
        let iops = |since_3| Setting { idles: false, ..setting(since_3) };
        assert_eq!(charge(started(iops(true)), 35, spent(true), true, true), [7, 20, 5]);
        assert_eq!(charge(started(iops(true)), 35, spent(true), false, true), [20, 20, 5]);
        assert_eq!(charge(started(iops(false)), 35, spent(true), true, true), [20, 20, 0]);
        assert_eq!(charge(started(setting(true)), 35, spent(true), true, true), [20, 20, 5]);
        let long = Setting { tick: ms(4), ..iops(true) };
        assert_eq!(charge(started(long), 35, spent(true), true, true), [28, 20, 5]);
    }

    #[test]
    fn async_requests_alone_cost_a_whole_slice_from_3_x_on() {
        for (since_3, sync, has_sync, amount) in [
            (true, false, false, 40),
            (true, false, true, 20),
            (true, true, false, 20),
            (false, false, false, 20),
        ] {
            let got = charge(started(setting(since_3)), 35, spent(sync), true, has_sync);
            assert_eq!((got[0], got[1]), (amount, 20), "{since_3} {sync} {has_sync}");
        }
        // Nothing completed for longer than a slice, whose length is not known.
        let mut rule = started(setting(true));
        rule.selected(at(10));
        let new = Spent { slice: Slice { is_new: true, ..spent(false).slice }, ..spent(false) };
        assert_eq!(charge(rule, 80, new, true, false), [70, 70, 0]);
    }
}
