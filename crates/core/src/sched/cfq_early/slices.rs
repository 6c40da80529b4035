//! `cfq-ts1` and `cfq-ts2`: the time-sliced CFQ of 2 and 4 December 2004.
//!
//! One queue at a time, the *active* one, has the disk, for a slice of time. When it runs empty with time
//! left, the disk idles for a moment: a task that reads a file sends its next request a fraction of a
//! millisecond after it got the last, and serving it costs no seek. When the slice is over, the queue whose
//! last slice ended longest ago is next; queues that never had one go first, in order of becoming busy.
//!
//! With `n` equal sequential readers each waits for `(n - 1)` slices now and then, and the disk seeks once
//! per slice instead of once per request: 8 readers at 83 ms have 12 seeks a second, and a worst latency of
//! about 580 ms.
//!
//! # When a slice ends
//!
//! | | `cfq-ts1` | `cfq-ts2` |
//! |---|---|---|
//! | starts | when the queue becomes active | with its first requests moved to the dispatch list |
//! | lasts | `slice` | `slice_sync` if one of those was sync, else `slice_async` |
//! | ends early | | after `slice_async_rq` requests, if the last ones moved were all async |
//! | idles | up to `idle`, if that much is left | up to `slice_idle`, if that much is left |
//!
//! The active queue moves up to `quantum` requests to the dispatch list whenever that is empty, and the
//! driver has at most `max_depth`. A slice does not wait for the previous queue's requests to complete.
//!
//! # How long a request can wait
//!
//! For at most one slice of each other task (with its overrun: what was on its way, and one idle period),
//! plus one of each task that comes new meanwhile, per slice that its own task needs to get to it. Within a
//! queue the nearest request goes first, but every `fifo_batch_expire` the oldest one of an expired fifo
//! does. [`Hold::SliceIdle`] ends by a timer (or, without the quirk `idle_in_flight`, by the completion of
//! the active queue's own requests), [`Hold::Depth`] by a completion.
//!
//! Cost: O(log tasks + log requests) per request.
//!
//! # What it does not do
//!
//! The host's plug: these versions ran the queue at once when an awaited request came (#1 without
//! unplugging), and so does a driver that asks after each insertion.
//!
//= lkml 2004-12-02 J. Axboe, "Time sliced CFQ io scheduler", docs/reference/cfq.md#41-version-1
//= lkml 2004-12-04 J. Axboe, "Time sliced CFQ #2", docs/reference/cfq.md#42-version-2

use super::PickRules;
use super::queues::Queues;
use crate::config::{ConfigError, KiB, Tunable, Tunables, Unit};
use crate::elevator::{Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::sched::Scheduler;
use crate::trace::Reason;
use crate::units::{Duration, Instant, Tag};
use core::marker::PhantomData;

super::early_tunables! {
    /// The tunables of `cfq-ts1`.
    pub struct Ts1 {
        /// How long a queue has the disk. Default 83 ms (HZ/12).
        pub slice: Duration = Duration::from_ms(83), 1_000_000, u64::MAX;
        /// How long the disk waits for the active queue's next request; 0 turns that off. At most half of
        /// `slice`. Default 4 ms (HZ/249).
        pub idle: Duration = Duration::from_ms(4), 0, u64::MAX;
        /// How many requests the driver may have. Default 4.
        pub max_depth: u32 = 4, 2, u32::MAX as u64;
        /// Quirk of the first two versions: the idle period may start while requests of the queue are at the
        /// device. Default off; on in the preset.
        pub idle_in_flight: bool = false, 0, 1;
        /// Of the third version: do not wait for a task that is gone. Default off.
        pub exit_ends_idle: bool = false, 0, 1;
    }
}

super::early_tunables! {
    /// The tunables of `cfq-ts2`.
    pub struct Ts2 {
        /// How long a queue with sync requests has the disk. Default 100 ms (HZ/10).
        pub slice_sync: Duration = Duration::from_ms(100), 1_000_000, u64::MAX;
        /// How long a queue with only async requests has the disk. Default 40 ms (HZ/25).
        pub slice_async: Duration = Duration::from_ms(40), 1_000_000, u64::MAX;
        /// After how many async requests a queue's turn ends at the latest. Default 8; the third version had
        /// 128, or 16.
        pub slice_async_rq: u32 = 8, 1, u32::MAX as u64;
        /// How long the disk waits for the active queue's next request; 0 turns that off. Default 4 ms
        /// (HZ/249).
        pub slice_idle: Duration = Duration::from_ms(4), 0, u64::MAX;
        /// How many requests the driver may have. Default 4.
        pub max_depth: u32 = 4, 2, u32::MAX as u64;
        /// Quirk of the first two versions: the idle period may start while requests of the queue are at the
        /// device. Default off; on in the preset.
        pub idle_in_flight: bool = false, 0, 1;
        /// Of the third version: do not wait for a task that is gone. Default off.
        pub exit_ends_idle: bool = false, 0, 1;
    }
}

impl Ts1 {
    /// Returns the tunables of the patch as it was posted, quirks included.
    #[must_use]
    pub(crate) fn of_2004() -> Self {
        Self { swap_fifo_limits: true, idle_in_flight: true, ..Self::default() }
    }
}

impl Ts2 {
    /// Returns the tunables of the patch as it was posted, quirks included.
    #[must_use]
    pub(crate) fn of_2004() -> Self {
        Self { swap_fifo_limits: true, idle_in_flight: true, ..Self::default() }
    }
}

/// When a slice ends.
#[derive(Clone, Copy, Debug)]
enum SliceRule {
    /// The slice ends this long after the queue became active.
    FromStart(Duration),
    /// A fixed time after its first requests were moved, or after a number of async requests.
    ByKind { sync: Duration, async_: Duration, async_rq: u32 },
}

/// The tunables that both versions have.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    quantum: u32,
    max_depth: u32,
    idle: Duration,
    slice: SliceRule,
    idle_in_flight: bool,
    exit_ends_idle: bool,
    pick: PickRules,
}

/// One of the two versions: its name, and its tunables as rules.
pub trait Version: Tunables + Copy {
    /// The scheduler's name.
    const NAME: &'static str;

    /// The rules.
    ///
    /// # Errors
    /// If a tunable is out of range.
    fn rules(&self) -> Result<Rules, ConfigError>;
}

/// For the error about an idle period that is longer than half a slice.
static IDLE_PERCENT: Tunable = Tunable {
    name: "idle, in percent of slice,",
    unit: Unit::Count,
    min: 0,
    max: 50,
    effect: "an idle period is at most half of a slice",
};

impl Version for Ts1 {
    const NAME: &'static str = "cfq-ts1";

    fn rules(&self) -> Result<Rules, ConfigError> {
        self.validate()?;
        if self.idle > self.slice / 2 {
            let value = self.idle.as_ns().saturating_mul(100).div_ceil(self.slice.as_ns());
            return Err(ConfigError { field: IDLE_PERCENT.name, value, tunable: Some(&IDLE_PERCENT) });
        }
        Ok(Rules {
            quantum: self.quantum,
            max_depth: self.max_depth,
            idle: self.idle,
            slice: SliceRule::FromStart(self.slice),
            idle_in_flight: self.idle_in_flight,
            exit_ends_idle: self.exit_ends_idle,
            pick: self.pick_rules(),
        })
    }
}

impl Version for Ts2 {
    const NAME: &'static str = "cfq-ts2";

    fn rules(&self) -> Result<Rules, ConfigError> {
        self.validate()?;
        let (sync, async_, async_rq) = (self.slice_sync, self.slice_async, self.slice_async_rq);
        Ok(Rules {
            quantum: self.quantum,
            max_depth: self.max_depth,
            idle: self.slice_idle,
            slice: SliceRule::ByKind { sync, async_, async_rq },
            idle_in_flight: self.idle_in_flight,
            exit_ends_idle: self.exit_ends_idle,
            pick: self.pick_rules(),
        })
    }
}

/// The queue that has the disk.
#[derive(Clone, Copy, Debug)]
struct Active {
    queue: TaskSlot,
    /// When its slice is over; `None` before that is known.
    ends: Option<Instant>,
    /// How many requests it has moved to the dispatch list.
    moved: u32,
    /// Its next request is awaited.
    waiting: bool,
    /// It may move requests once more, even if its time is up: an awaited request came.
    must_dispatch: bool,
}

impl Active {
    fn left(&self, now: Instant) -> Duration {
        self.ends.map_or(Duration::ZERO, |ends| ends.saturating_since(now))
    }
}

/// When a queue's last slice ended; `None` if it never had one.
#[derive(Clone, Copy, Debug, Default)]
struct Served(Option<Instant>);

impl Served {
    fn key(self) -> u64 {
        self.0.map_or(0, Instant::as_ns)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct TimeSliced<V> {
    rules: Rules,
    queues: Queues<Served>,
    active: Option<Active>,
    /// The end of the idle period; set only while the active queue is `waiting`.
    timer: Option<Instant>,
    version: PhantomData<V>,
}

/// The version of 2 December 2004.
pub type CfqTs1 = TimeSliced<Ts1>;
/// The version of 4 December 2004.
pub type CfqTs2 = TimeSliced<Ts2>;

impl<V> TimeSliced<V> {
    /// The queue that may move requests now, if any; none while the active one's next request is awaited.
    fn select(&mut self, cx: &mut Cx<'_>) -> Option<TaskSlot> {
        let Some(active) = self.active else {
            return self.activate_next(cx);
        };
        if !active.must_dispatch && self.is_over(cx.now, &active) {
            return self.expire_and_next(cx, Reason::SliceUsed);
        }
        if self.queues[active.queue].is_busy() {
            return Some(active.queue);
        }
        if self.wait_for_more(cx.now, active) {
            return None;
        }
        self.expire_and_next(cx, Reason::SliceEmpty)
    }

    fn is_over(&self, now: Instant, active: &Active) -> bool {
        active.ends.is_some_and(|ends| match self.rules.slice {
            SliceRule::FromStart(_) => now >= ends,
            SliceRule::ByKind { .. } => now > ends,
        })
    }

    /// The active queue is empty: whether the disk is to be kept for its next request.
    fn wait_for_more(&mut self, now: Instant, active: Active) -> bool {
        if active.ends.is_none() || active.left(now) < self.rules.idle {
            return false;
        }
        if !self.rules.idle_in_flight
            && !self.rules.idle.is_zero()
            && self.queues[active.queue].in_flight() > 0
        {
            // Its own completion comes first, and starts the idle period.
            return true;
        }
        self.arm_idle(now)
    }

    /// Starts the idle period, unless it runs already. Whether there is one.
    fn arm_idle(&mut self, now: Instant) -> bool {
        let Some(active) = &mut self.active else { return false };
        active.waiting = true;
        if self.rules.idle.is_zero() {
            return false;
        }
        let left = active.left(now);
        self.timer.get_or_insert(now + self.rules.idle.min(left));
        true
    }

    /// Ends the active queue's turn and starts that of the next.
    fn expire_and_next(&mut self, cx: &mut Cx<'_>, why: Reason) -> Option<TaskSlot> {
        if let Some(Active { queue, .. }) = self.active.take() {
            self.timer = None;
            let served = Served(Some(cx.now));
            self.queues[queue].service = served;
            if self.queues[queue].is_busy() {
                self.queues.refile(queue, served.key());
            }
            cx.note(why, self.queues.task(queue));
            self.queues.release_if_done(queue);
        }
        self.activate_next(cx)
    }

    fn activate_next(&mut self, cx: &mut Cx<'_>) -> Option<TaskSlot> {
        let queue = self.queues.first_busy()?;
        let ends = match self.rules.slice {
            SliceRule::FromStart(slice) => Some(cx.now + slice),
            SliceRule::ByKind { .. } => None,
        };
        self.active = Some(Active { queue, ends, moved: 0, waiting: false, must_dispatch: false });
        cx.note(Reason::SliceStart, self.queues.task(queue));
        Some(queue)
    }

    /// Fills the dispatch list from the queue whose turn it is.
    fn refill(&mut self, cx: &mut Cx<'_>) {
        let Some(queue) = self.select(cx) else { return };
        self.timer = None;
        let (mut moved, mut any_sync) = (0, false);
        while moved < self.rules.quantum && self.queues[queue].is_busy() {
            let tag = self.queues.move_next(cx, queue);
            any_sync |= cx.requests[tag].rq.sync;
            moved += 1;
        }
        let Some(active) = &mut self.active else { return };
        (active.waiting, active.must_dispatch) = (false, false);
        active.moved = active.moved.saturating_add(moved);
        if let SliceRule::ByKind { sync, async_, async_rq } = self.rules.slice {
            let slice = if any_sync { sync } else { async_ };
            // The kind of the first round decides the length of the slice
            // (docs/reference/cfq.md#4-time-slices).
            active.ends.get_or_insert(cx.now + slice);
            if !any_sync && active.moved >= async_rq {
                let _ = self.expire_and_next(cx, Reason::AsyncQuota);
            }
        }
    }

    fn is_active(&self, queue: TaskSlot) -> bool {
        self.active.is_some_and(|a| a.queue == queue)
    }

    fn release_if_done(&mut self, queue: TaskSlot) {
        if !self.is_active(queue) {
            self.queues.release_if_done(queue);
        }
    }

    fn task_exits(&mut self, cx: &mut Cx<'_>, queue: TaskSlot) {
        let q = &self.queues[queue];
        let is_idle = !q.is_busy() && q.in_flight() == 0;
        if self.rules.exit_ends_idle && is_idle && self.is_active(queue) {
            let _ = self.expire_and_next(cx, Reason::TaskExit);
        }
        self.release_if_done(queue);
    }
}

impl<V: Version> Scheduler for TimeSliced<V> {
    const NAME: &'static str = V::NAME;
    type Config = V;

    fn new(limits: Limits, config: V) -> Result<Self, ConfigError> {
        let rules = config.rules()?;
        let queues = Queues::new(&limits, rules.pick);
        Ok(Self { rules, queues, active: None, timer: None, version: PhantomData })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let active = self.active.map(|active| active.queue);
        let inserted = self.queues.insert(cx, tag, active);
        if inserted.became_busy {
            let key = self.queues[inserted.queue].service.key();
            self.queues.file(inserted.queue, key);
        }
        if let Some(active) = &mut self.active
            && active.queue == inserted.queue
            && active.waiting
        {
            active.must_dispatch = true;
            self.timer = None;
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.queues.in_driver() >= self.rules.max_depth {
            return Dispatch::Hold(Hold::Depth);
        }
        if self.queues.list_is_empty() {
            self.refill(cx);
        }
        match self.queues.issue(cx) {
            Some((tag, _)) => Dispatch::Issue(tag),
            None if self.active.is_some() => Dispatch::Hold(Hold::SliceIdle),
            None => Dispatch::Empty,
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        self.queues.drain(cx).map(|(tag, _)| tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        self.queues.merged(cx, kept, end);
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let queue = self.queues.joined(cx, kept, gone);
        self.release_if_done(queue);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let queue = self.queues.complete(cx.now, tag);
        if let Some(active) = self.active
            && active.queue == queue
        {
            let q = &self.queues[queue];
            let may_idle = self.rules.idle_in_flight || q.in_flight() == 0;
            if !q.is_busy() && cx.requests[tag].rq.sync && may_idle && !active.left(cx.now).is_zero() {
                let _ = self.arm_idle(cx.now);
            }
        }
        self.release_if_done(queue);
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        let _ = self.queues.requeue(tag);
    }

    fn reissue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        let _ = self.queues.reissue(tag);
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        if let Control::TaskExit(task) = change
            && let Some(queue) = self.queues.exit(*task)
        {
            self.task_exits(cx, queue);
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.timer.is_none_or(|at| cx.now < at) {
            return;
        }
        self.timer = None;
        let Some(active) = &mut self.active else { return };
        let is_over = active.ends.is_some_and(|ends| cx.now > ends);
        if !is_over && self.queues[active.queue].is_busy() {
            active.must_dispatch = true;
            return;
        }
        let _ = self.expire_and_next(cx, if is_over { Reason::SliceUsed } else { Reason::IdleTimeout });
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.timer.map(|at| (at, Timer::SliceIdle))
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        self.queues.may_merge(requests, into, rq)
    }

    fn check(&self, requests: &Requests) {
        self.queues.check(requests);
        assert!(
            self.timer.is_none() || self.active.is_some_and(|a| a.waiting),
            "a timer runs, but nothing is awaited"
        );
    }
}
