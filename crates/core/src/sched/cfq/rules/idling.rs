//! When the disk waits for a queue that has nothing to send right now.
//!
//! A sync queue whose task sends its next request soon after the last one completed, near to it, is worth
//! waiting for (`slice_idle`): otherwise the head would go to another queue and back for every request.
//! Queues that seek or think are served without waiting, one after the other; only the last of them waits,
//! for the sake of all.
//!
//! The [`Window`] of a queue says which of the two it is. It is closed when the queue seeks (unless it has
//! had four requests waiting: *deep*) or its task thinks for longer than `slice_idle` on average.
//!
//! ```text
//!   window   open         closed, others of its kind   closed, last of its kind   else, its group's only one
//!   waits    slice_idle   not                          slice_idle                 group_idle (from 3.x on)
//! ```
//!
//! Nothing waits on a device without a head that queues requests, which is kept busy otherwise.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_should_idle, cfq_arm_slice_timer, cfq_update_idle_window
//= docs/reference/cfq.md#59-idling

use crate::parts::think_time::ThinkTime;
use crate::sched::cfq::view::{Kind, Slice};
use crate::trace::Reason;
use crate::units::{Duration, Instant, Sectors};

/// The number of waiting requests from which a queue is deep.
//= linux-2.6.33 block/cfq-iosched.c cfq_update_idle_window
const DEEP: u32 = 4;
/// A request of at most this size may be the first of several that will be merged.
//= linux-2.6.33 block/cfq-iosched.c cfq_rq_enqueued
const PAGE: Sectors = Sectors(8);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// How long a queue's next request is waited for.
    pub(crate) slice_idle: Duration,
    /// How long a group's next request is waited for.
    pub(crate) group_idle: Duration,
    /// The rules of 3.x: think times of trees and groups count, groups are waited for, and there is less
    /// waiting for queues that are not worth it.
    pub(crate) since_3: bool,
    /// What the kernel calls a tick.
    pub(crate) tick: Duration,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idling {
    setting: Setting,
    /// Of the queues without idling that are being served, one has sent a request that may be followed by a
    /// dependent one.
    noidle_requires_idle: bool,
}

/// Whether a queue is worth waiting for: kept with it, and changed here only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    is_open: bool,
    /// It has had four requests waiting, so that seeks are no reason not to idle.
    deep: bool,
}

/// A group, as far as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    /// Its busy queues.
    pub(crate) queues: u32,
    /// Its requests that were issued and are not complete.
    pub(crate) dispatched: u32,
    pub(crate) think: &'a ThinkTime,
}

/// The active queue, which has no request that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Empty {
    pub(crate) window: Window,
    /// Its requests at the device.
    pub(crate) dispatched: u32,
    pub(crate) slice: Slice,
    /// The device has no head, and queues requests as far as is known.
    pub(crate) is_fast: bool,
}

/// The disk waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    /// For how long at most.
    pub(crate) lasts: Duration,
    /// What the trace says of it.
    pub(crate) why: Reason,
}

impl Window {
    /// That of a new queue: sync ones are worth waiting for until they are known not to be.
    pub(crate) const fn new(sync: bool) -> Self {
        Self { is_open: sync, deep: false }
    }

    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        self.is_open
    }

    /// The queue is of the idle class now, which is never waited for.
    pub(crate) const fn close(&mut self) {
        self.is_open = false;
    }

    /// The queue was waited for in vain.
    pub(crate) const fn disappointed(&mut self) {
        self.deep = false;
    }

    /// Whether the queue has had four requests waiting.
    #[cfg(test)]
    pub(crate) const fn is_deep(self) -> bool {
        self.deep
    }
}

impl Idling {
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, noidle_requires_idle: false }
    }

    /// A sync request was put in a queue, which is not of the idle class, and of which `waiting` requests
    /// wait now; its task thinks like `think`. Is the queue still worth waiting for? `seeks` answers whether
    /// it is known to seek, `ends_here` whether its candidate promises that nothing will follow.
    #[inline(always)]
    pub(crate) fn arrived(
        &self,
        window: &mut Window,
        waiting: u32,
        think: &ThinkTime,
        seeks: impl FnOnce() -> bool,
        ends_here: impl FnOnce() -> bool,
    ) {
        let idle = self.setting.slice_idle;
        window.deep |= waiting >= DEEP;
        if (self.setting.since_3 && ends_here()) || idle.is_zero() || (!window.deep && seeks()) {
            window.is_open = false;
        } else if think.is_valid() {
            window.is_open = !think.exceeds(idle);
        }
    }

    /// Whether the awaited request, of `len`, while `busy` queues want the disk or have it, ends the wait at
    /// once. A single page may be the first of several that will be merged; it waits for the driver if that
    /// delays no other queue.
    pub(crate) fn ends_at_once(len: Sectors, busy: u32) -> bool {
        len > PAGE || busy > 1
    }

    /// A kind of queue was chosen anew.
    pub(crate) const fn kind_chosen(&mut self) {
        self.noidle_requires_idle = false;
    }

    /// Whether waiting for a queue pays for its own sake. (The window is never open with `slice_idle` zero,
    /// nor that of the idle class.)
    #[inline(always)]
    pub(crate) const fn pays(window: Window, is_fast: bool) -> bool {
        window.is_open && !is_fast
    }

    /// Whether waiting for a queue pays for the sake of all of its kind, as it is the last of these: `left`
    /// are in its tree, and think like `think`.
    pub(crate) fn pays_for_kind(&self, left: u32, think: &ThinkTime) -> bool {
        let Setting { slice_idle, since_3, .. } = self.setting;
        left == 1 && !(since_3 && (slice_idle.is_zero() || think.exceeds(slice_idle)))
    }

    /// A request of the active queue completed, which has nothing more to send. Whether waiting is to be
    /// considered. `no_idle` says whether the request promises that no dependent one follows; `alone` answers
    /// whether no other queue of the group is busy.
    ///
    /// Queues of the tree without idling are served without waits between them. 2.6.33 waits for the last of
    /// them only if a request of this turn may be followed by a dependent one.
    #[inline(always)]
    pub(crate) fn considers(&mut self, no_idle: bool, serving: Kind, alone: impl FnOnce() -> bool) -> bool {
        self.noidle_requires_idle |= !no_idle;
        self.setting.since_3 || serving == Kind::Sync || self.noidle_requires_idle || alone()
    }

    /// Whether the disk waits for the active queue's next request. These answer, if need be: `pays`, whether
    /// waiting for the queue does; `alone`, whether no other queue of the group is busy; `task`, what is
    /// known of the task whose request was the first in this slice, unless that has gone.
    #[inline(always)]
    pub(crate) fn waits<'a>(
        &self,
        now: Instant,
        of: &Empty,
        pays: impl FnOnce() -> bool,
        alone: impl FnOnce() -> bool,
        task: impl FnOnce() -> Option<&'a ThinkTime>,
    ) -> Option<Wait> {
        if of.is_fast || of.dispatched > 0 {
            return None;
        }
        let wait = if !self.setting.slice_idle.is_zero() && pays() {
            let why = if of.window.is_open { Reason::SliceIdle } else { Reason::WorkloadIdle };
            Wait { lasts: self.setting.slice_idle, why }
        } else if self.waits_for_groups() && alone() {
            Wait { lasts: self.setting.group_idle, why: Reason::GroupIdle }
        } else {
            return None;
        };
        // A task that has gone sends nothing; one that is known to think for longer than the slice lasts, too
        // late.
        task().filter(|think| !think.exceeds(of.slice.left(now))).map(|_| wait)
    }

    /// Whether a group would lose its place if the active queue, its only one, lost the disk now, while
    /// requests are at the device.
    #[inline(always)]
    pub(crate) fn waits_for(&self, group: &Members<'_>) -> bool {
        self.waits_for_groups()
            && group.queues == 1
            && group.dispatched > 0
            && !group.think.exceeds(self.setting.group_idle)
    }

    const fn waits_for_groups(&self) -> bool {
        self.setting.since_3 && !self.setting.group_idle.is_zero()
    }

    /// For how long to stretch a slice until the next request comes, so that the group is not without work
    /// when the slice ends, and keeps its place. `thinks_longer` answers whether the task whose request was
    /// the first in this slice is known to think for longer than a time.
    //= linux-2.6.33 block/cfq-iosched.c cfq_should_wait_busy
    #[inline(always)]
    pub(crate) fn stretches(
        &self,
        now: Instant,
        slice: &Slice,
        is_empty: bool,
        group: &Members<'_>,
        thinks_longer: impl FnOnce(Duration) -> bool,
    ) -> Option<Duration> {
        let Setting { slice_idle, group_idle, since_3, tick } = self.setting;
        if group.queues > 1 || (since_3 && (!is_empty || group.think.exceeds(group_idle))) {
            return None;
        }
        let left = slice.left(now);
        let is_over = slice.is_used(now) || left <= tick || thinks_longer(left);
        is_over.then_some(if slice_idle.is_zero() { group_idle } else { slice_idle })
    }

    /// The active queue is empty, and seeks if `seeky`. A deep queue that seeks, and is served faster than it
    /// sends, is not waited for any more: that only wastes time.
    //= linux-3.10 block/cfq-iosched.c cfq_select_queue
    pub(crate) fn ran_empty(&self, now: Instant, window: &mut Window, slice: &Slice, seeky: bool) {
        let early = slice.is_new || slice.left(now) > now.saturating_since(slice.start);
        if self.setting.since_3 && seeky && window.is_open && early {
            *window = Window { is_open: false, deep: false };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: Duration = Duration::from_ns(1);
    const OPEN: Window = Window::new(true);
    const CLOSED: Window = Window::new(false);

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    fn at(n: u64) -> Instant {
        Instant::EPOCH + ms(n)
    }

    fn setting(since_3: bool) -> Setting {
        Setting { slice_idle: ms(8), group_idle: ms(2), since_3, tick: ms(1) }
    }

    fn new(since_3: bool) -> Idling {
        Idling::new(setting(since_3))
    }

    /// The think time of one that is known to think for about `n` ms (256 / 249 of it).
    fn thinks(n: u64) -> ThinkTime {
        let mut think = ThinkTime::since(at(0));
        (0..200).for_each(|_| think.arrived_within(at(n), ms(1000)));
        think
    }

    /// The think time of one of which nothing is known.
    fn unknown() -> ThinkTime {
        ThinkTime::since(at(0))
    }

    fn slice(start: u64, end: u64) -> Slice {
        Slice { start: at(start), end: at(end), is_new: false }
    }

    /// The window after a request, of which `waiting` wait.
    fn after(rule: Idling, mut window: Window, waiting: u32, think: &ThinkTime, seeks: bool) -> Window {
        rule.arrived(&mut window, waiting, think, || seeks, || false);
        window
    }

    #[test]
    fn a_queue_that_seeks_is_not_waited_for_unless_it_is_deep() {
        for (waiting, open) in [(1, false), (3, false), (4, true), (5, true)] {
            let window = after(new(true), OPEN, waiting, &unknown(), true);
            assert_eq!((window.is_open(), window.is_deep()), (open, open), "{waiting} wait");
        }
        let window = after(new(true), after(new(true), OPEN, 4, &unknown(), true), 1, &unknown(), true);
        assert!(window.is_open() && window.is_deep(), "deep for good");
        assert!(after(new(true), OPEN, 1, &unknown(), false).is_open());
    }

    #[test]
    fn a_queue_whose_task_thinks_for_longer_than_one_would_wait_is_not_waited_for() {
        for (think, open) in [(7, true), (9, false)] {
            for before in [OPEN, CLOSED] {
                let window = after(new(true), before, 1, &thinks(think), false);
                assert_eq!(window.is_open(), open, "{think} ms");
            }
        }
        assert!(!after(new(true), CLOSED, 1, &unknown(), false).is_open(), "nothing is known: as it was");
        assert!(!after(new(true), OPEN, 4, &thinks(9), true).is_open(), "deep queues think, too");
    }

    #[test]
    fn without_slice_idle_no_window_opens() {
        let rule = Idling::new(Setting { slice_idle: Duration::ZERO, ..setting(true) });
        assert!(!after(rule, OPEN, 1, &unknown(), false).is_open());
        assert!(!after(rule, OPEN, 4, &thinks(0), false).is_open());
    }

    #[test]
    fn a_candidate_that_promises_that_nothing_follows_closes_the_window_from_3_x_on() {
        for (since_3, ends_here, open) in
            [(true, true, false), (true, false, true), (false, true, true), (false, false, true)]
        {
            let mut window = OPEN;
            new(since_3).arrived(&mut window, 1, &thinks(1), || false, || ends_here);
            assert_eq!(window.is_open(), open, "{since_3} {ends_here}");
        }
    }

    #[test]
    fn a_window_is_that_of_a_sync_queue_until_it_is_closed() {
        assert!(Window::new(true).is_open() && !Window::new(false).is_open());
        let mut window = OPEN;
        window.close();
        assert!(!window.is_open());
        let mut window = after(new(true), OPEN, 4, &unknown(), false);
        window.disappointed();
        assert!(window.is_open() && !window.is_deep());
    }

    #[test]
    fn a_page_waits_for_the_driver_if_no_other_queue_waits() {
        for (sectors, busy, at_once) in [(8, 1, false), (9, 1, true), (8, 2, true), (1, 1, false)] {
            assert_eq!(Idling::ends_at_once(Sectors(sectors), busy), at_once, "{sectors} {busy}");
        }
    }

    #[test]
    fn idling_pays_for_an_open_window_but_on_a_fast_device() {
        let pays = [(OPEN, false), (OPEN, true), (CLOSED, false)].map(|(w, fast)| Idling::pays(w, fast));
        assert_eq!(pays, [true, false, false]);
    }

    #[test]
    fn the_last_of_a_kind_is_waited_for_and_from_3_x_on_not_if_all_of_them_think_for_long() {
        for (since_3, left, think, pays) in [
            (true, 1, unknown(), true),
            (true, 2, unknown(), false),
            (true, 0, unknown(), false),
            (true, 1, thinks(7), true),
            (true, 1, thinks(9), false),
            (false, 1, thinks(9), true),
        ] {
            assert_eq!(new(since_3).pays_for_kind(left, &think), pays, "{since_3} {left}");
        }
        for (since_3, pays) in [(true, false), (false, true)] {
            let rule = Idling::new(Setting { slice_idle: Duration::ZERO, ..setting(since_3) });
            assert_eq!(rule.pays_for_kind(1, &unknown()), pays);
        }
    }

    #[test]
    fn queues_without_idling_are_waited_for_from_3_x_on_or_after_a_request_that_may_be_followed() {
        let considers = |rule: &mut Idling, no_idle| rule.considers(no_idle, Kind::SyncNoIdle, || false);
        let mut rule = new(false);
        assert!(!considers(&mut rule, true));
        assert!(considers(&mut rule, false));
        assert!(considers(&mut rule, true), "one is enough for all that follow");
        rule.kind_chosen();
        assert!(!considers(&mut rule, true), "until a kind is chosen anew");
        assert!(
            rule.considers(true, Kind::Sync, || false) && rule.considers(true, Kind::SyncNoIdle, || true)
        );
        assert!(considers(&mut new(true), true));
    }

    /// How long the disk waits at 50 ms for a queue whose slice ends at 100 ms.
    fn wait(rule: Idling, of: Empty, queues: u32, pays: bool, task: Option<&ThinkTime>) -> Option<Wait> {
        rule.waits(at(50), &of, || pays, || queues == 1, || task)
    }

    fn empty(window: Window) -> Empty {
        Empty { window, dispatched: 0, slice: slice(0, 100), is_fast: false }
    }

    #[test]
    fn the_disk_waits_for_a_queue_that_pays_or_for_its_group() {
        let for_queue = Some(Wait { lasts: ms(8), why: Reason::SliceIdle });
        let for_kind = Some(Wait { lasts: ms(8), why: Reason::WorkloadIdle });
        let for_group = Some(Wait { lasts: ms(2), why: Reason::GroupIdle });
        let no_slice_idle = |since_3| Setting { slice_idle: Duration::ZERO, ..setting(since_3) };
        let no_group_idle = Setting { group_idle: Duration::ZERO, ..setting(true) };
        for (setting, window, queues, pays, want) in [
            (setting(true), OPEN, 2, true, for_queue),
            (setting(true), CLOSED, 2, true, for_kind),
            (setting(true), CLOSED, 1, true, for_kind),
            (setting(true), OPEN, 1, false, for_group),
            (setting(true), OPEN, 2, false, None),
            (setting(false), OPEN, 1, false, None),
            (no_slice_idle(true), OPEN, 1, true, for_group),
            (no_slice_idle(false), OPEN, 1, true, None),
            (no_group_idle, OPEN, 1, false, None),
            (no_group_idle, OPEN, 1, true, for_queue),
        ] {
            let got = wait(Idling::new(setting), empty(window), queues, pays, Some(&unknown()));
            assert_eq!(got, want, "{setting:?} {window:?} {queues} {pays}");
        }
    }

    #[test]
    fn the_disk_does_not_wait_in_vain() {
        let waits = |of: Empty, task| wait(new(true), of, 1, true, task).is_some();
        let quick = unknown();
        assert!(waits(empty(OPEN), Some(&quick)));
        assert!(!waits(empty(OPEN), None), "the task has gone");
        assert!(!waits(Empty { dispatched: 1, ..empty(OPEN) }, Some(&quick)), "more is at the device");
        assert!(!waits(Empty { is_fast: true, ..empty(OPEN) }, Some(&quick)));
        // 50 ms are left.
        let (quicker, slower) = (thinks(48), thinks(50));
        assert!(waits(empty(OPEN), Some(&quicker)) && !waits(empty(OPEN), Some(&slower)));
    }

    #[test]
    fn a_group_is_waited_for_while_its_only_queue_has_a_request_at_the_device() {
        let waits = |rule: Idling, queues, dispatched, think: &ThinkTime| {
            rule.waits_for(&Members { queues, dispatched, think })
        };
        let (rule, quick) = (new(true), unknown());
        assert!(waits(rule, 1, 1, &quick) && waits(rule, 1, 2, &quick));
        assert!(!waits(rule, 2, 1, &quick) && !waits(rule, 1, 0, &quick));
        assert!(waits(rule, 1, 1, &thinks(1)) && !waits(rule, 1, 1, &thinks(3)));
        assert!(!waits(new(false), 1, 1, &quick));
        assert!(!waits(Idling::new(Setting { group_idle: Duration::ZERO, ..setting(true) }), 1, 1, &quick));
    }

    /// For how long a slice that ends at 100 ms is stretched, with `left` of it to come.
    fn stretch(rule: Idling, left: Duration, is_empty: bool, queues: u32, thought: u64) -> Option<Duration> {
        let think = thinks(thought);
        let group = Members { queues, dispatched: 0, think: &think };
        rule.stretches(at(100) - left, &slice(0, 100), is_empty, &group, |left| thinks(5).exceeds(left))
    }

    #[test]
    //= linux-2.6.33 block/cfq-iosched.c cfq_should_wait_busy, type=test
    fn a_slice_is_stretched_if_the_next_request_would_come_behind_its_end() {
        let rule = new(true);
        for (left, want) in [(Duration::ZERO, Some(ms(8))), (ms(4), Some(ms(8))), (ms(6), None)] {
            assert_eq!(stretch(rule, left, true, 1, 0), want, "{left:?} are left");
        }
        assert_eq!(stretch(rule, ms(4), true, 2, 0), None, "the group has another queue");
        let think = unknown();
        let group = Members { queues: 1, dispatched: 0, think: &think };
        let quick = |left| rule.stretches(at(100) - left, &slice(0, 100), true, &group, |_| false);
        assert_eq!([ms(1) + NS, ms(1)].map(quick), [None, Some(ms(8))], "within a tick of the end");
        let new = Slice { is_new: true, ..slice(0, 100) };
        assert_eq!(rule.stretches(at(50), &new, true, &group, |_| false), None);
    }

    #[test]
    fn without_slice_idle_a_slice_is_stretched_by_group_idle() {
        let rule = Idling::new(Setting { slice_idle: Duration::ZERO, ..setting(true) });
        assert_eq!(stretch(rule, Duration::ZERO, true, 1, 0), Some(ms(2)));
    }

    #[test]
    fn from_3_x_on_no_slice_is_stretched_for_a_queue_with_requests_or_a_group_that_thinks_for_long() {
        for (since_3, is_empty, thought, stretches) in [
            (false, false, 0, true),
            (true, false, 0, false),
            (true, true, 0, true),
            (false, true, 3, true),
            (true, true, 3, false),
            (true, true, 1, true),
        ] {
            let got = stretch(new(since_3), Duration::ZERO, is_empty, 1, thought);
            assert_eq!(got.is_some(), stretches, "{since_3} {is_empty} {thought} ms");
        }
    }

    #[test]
    //= linux-3.10 block/cfq-iosched.c cfq_select_queue, type=test
    fn a_deep_queue_that_seeks_and_is_outrun_in_the_first_half_of_its_slice_is_not_waited_for() {
        let deep = Window { is_open: true, deep: true };
        for (since_3, window, slice, seeky, stops) in [
            (true, deep, Slice { is_new: true, ..slice(0, 0) }, true, true),
            (true, deep, slice(10, 91), true, true),
            (true, deep, slice(10, 90), true, false),
            (true, deep, slice(10, 91), false, false),
            (false, deep, slice(10, 91), true, false),
            (true, Window { is_open: false, deep: true }, slice(10, 91), true, false),
        ] {
            let mut after = window;
            new(since_3).ran_empty(at(50), &mut after, &slice, seeky);
            let want = if stops { CLOSED } else { window };
            assert_eq!(after, want, "{since_3} {window:?} {slice:?} {seeky}");
        }
    }
}
