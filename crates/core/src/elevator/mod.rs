//! The elevator: what every scheduler shares, written once.
//!
//! It keeps the requests by the driver's tag, merges neighbours, hands the rest to a [`Scheduler`], follows
//! states and conservation, and records what happened. Policy is the scheduler's alone.
//!
//! ```text
//!             insert / complete / requeue / control / timer            (every event carries `now`)
//!   driver  ───────────────────────────────────────────────►  Elevator<S>
//! (sim, live,                                                   │ request table, merging, checks, trace
//!  kernel)  ◄───────────────────────────────────────────────    └─ S: Scheduler
//!             dispatch(now) → Issue(tag) | Hold(why) | Empty
//!             next_timer()  → (when, why)
//! ```
//!
//! What is not here: several requests in one call (`batch.rs`), merging (`merging.rs`), merges that the
//! driver makes (`driver_merges.rs`), the waiting for limits of groups (`waiting.rs`), and calls that replay
//! another implementation's decisions (`replay.rs`).
//!
//! # What it does not do
//!
//! It does not order flushes, retry errors, split what is too large for the device, or plug: those are the
//! driver's.
//!
//= linux-2.6.33 block/elevator.c, block/blk-merge.c, docs/reference/elevators.md#13-merging

mod acts;
mod batch;
mod books;
mod driver_merges;
mod limits;
mod merging;
mod replay;
mod waiting;

pub use self::acts::Act;
use self::acts::{Arrival, ArrivalWithCare, Completion, LonelyArrival, Room};
pub use self::batch::Rest;
pub use self::books::Books;
pub use self::limits::{Actuators, Limits};
use crate::config::ConfigError;
pub use crate::groups::Control;
use crate::groups::{GroupStats, Groups, Refusal};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::merge::{Edges, MergeIndex};
use crate::parts::throttle::Throttle;
use crate::request::{Link, Request, Requests, State};
use crate::sched::Scheduler;
use crate::trace::{Detail, Reason, TraceEvent};
use crate::units::{Duration, GroupId, Id, Instant, Sector, Tag, TaskId};

/// The result of [`Elevator::insert`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// The request waits, in the scheduler or for a limit of its group.
    Queued,
    /// The request is part of another from now on, and completes with it.
    Merged {
        /// Which one.
        into: Tag,
        /// At which end.
        end: End,
    },
}

/// An end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Before its first sector.
    Front,
    /// Behind its last sector.
    Back,
}

/// The answer of [`Elevator::dispatch`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// Send this request to the device: a promise to obey.
    Issue(Tag),
    /// Requests wait, and the disk does not get them yet. A timer or a completion is coming.
    Hold(Hold),
    /// No request waits.
    Empty,
}

/// Why the disk idles, or is not given more, although requests wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// The task that was served last is expected to send a request nearby.
    Anticipate,
    /// The active queue's next request is awaited.
    SliceIdle,
    /// The old batch has to finish first.
    DrainBatch,
    /// The device has as many requests as the scheduler allows.
    Depth,
    /// A higher class has requests at the device.
    HigherClass,
    /// The only requests that wait are of the idle class, and the disk has not been idle for long enough.
    IdleClass,
    /// The only requests that wait do so for limits of their groups.
    Limit,
}

impl Hold {
    /// Whether the scheduler may keep the disk without work meanwhile: a limit is not its doing.
    #[must_use]
    pub const fn is_idling(self) -> bool {
        matches!(self, Self::Anticipate | Self::SliceIdle | Self::IdleClass)
    }
}

/// The reason of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The end of anticipation.
    Anticipate,
    /// The end of idling for a queue.
    SliceIdle,
    /// The idle class may run.
    IdleClass,
    /// The end of a measuring window.
    Window,
    /// A request at the device that was to be quick is late.
    Protect,
    /// A limit lets the next request pass.
    Limit,
}

/// The elevator's state that a scheduler sees and uses in every call.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The time.
    pub now: Instant,
    /// All requests.
    pub requests: &'a mut Requests,
    /// The trace of decisions, the groups and their statistics.
    pub books: &'a mut Books,
    /// Why the request that `dispatch` answers was chosen; set it before returning.
    pub why: Reason,
}

impl Cx<'_> {
    /// Records a change of mind that concerns `task`.
    #[inline]
    pub fn note(&mut self, reason: Reason, task: TaskId) {
        self.note_in_numbers(reason, task, Detail::None);
    }

    /// Notes a decision with the numbers behind it.
    #[inline]
    pub(crate) fn note_in_numbers(&mut self, reason: Reason, task: TaskId, detail: Detail) {
        if self.books.trace.enabled() {
            self.books.push_note(self.now, reason, task, detail);
        }
    }
}

/// One device's queue of requests, ordered by `S`.
#[derive(Clone, Debug)]
pub struct Elevator<S> {
    sched: S,
    common: Common,
}

/// What all schedulers share: everything of an [`Elevator`] but its scheduler, which is an argument here. So
/// the calls that each request makes are compiled for each scheduler, also where it is chosen at run time
/// ([`Act`]).
#[derive(Clone, Debug)]
struct Common {
    limits: Limits,
    requests: Requests,
    books: Books,
    /// Whether nothing is recorded or limited, and requests are merged.
    is_plain: bool,
    /// Requests of groups with a number below this need no attention as they arrive: the group is there,
    /// nothing is limited or traced, and requests are merged.
    direct: u32,
    /// Queued requests by the sector behind their last, and by their first.
    index: MergeIndex,
    /// The request that last grew, or the first one inserted since: tried before the index.
    hint: Link,
    /// Where the hint starts; anywhere when there is none.
    hint_start: Sector,
    requeued: Fifo<Tag>,
    requeued_links: Links<Tag>,
    /// Groups that wait for limits.
    throttle: Throttle,
    /// How many requests were handed back, or wait for limits: while there are none, `dispatch` need not look
    /// further.
    aside: u32,
    now: Instant,
}

/// A borrow of everything but the scheduler, for its calls.
macro_rules! cx {
    ($common:expr) => {
        cx!($common, $common.shown())
    };
    ($common:expr, $now:expr) => {
        &mut $crate::elevator::Cx {
            now: $now,
            requests: &mut $common.requests,
            books: &mut $common.books,
            why: $crate::trace::Reason::None,
        }
    };
}
use cx;

impl<S: Scheduler> Elevator<S> {
    /// An elevator for a device. The only call that allocates.
    ///
    /// # Errors
    /// If a limit or tunable is out of range.
    pub fn new(limits: Limits, config: S::Config) -> Result<Self, ConfigError> {
        limits.validate()?;
        let tags = usize::from(limits.tags);
        let books = Books::new(&limits);
        let mut common = Common {
            limits,
            requests: Requests::new(limits.tags),
            is_plain: limits.merges && !books.is_observed(),
            direct: 0,
            books,
            index: MergeIndex::new(limits.tags),
            hint: Link::NONE,
            hint_start: Sector(0),
            requeued: Fifo::default(),
            requeued_links: Links::new(tags),
            throttle: Throttle::new(limits.groups, limits.tags, limits.requests()),
            aside: 0,
            now: Instant::EPOCH - Duration::MAX,
        };
        common.direct = common.count_direct();
        Ok(Self { sched: S::new(limits, config)?, common })
    }

    /// A request arrives.
    ///
    /// # Panics
    /// If time goes backwards, the tag is in use or out of range, or the request is empty: bugs of the
    /// driver.
    #[inline(never)]
    pub fn insert(&mut self, now: Instant, tag: Tag, rq: Request) -> Insert {
        if self.common.is_plain {
            self.sched.act::<Arrival<'_, true>>(&mut self.common, now, (tag, &rq))
        } else {
            self.insert_observed(now, tag, &rq)
        }
    }

    /// A request arrives that must stay alone: it is not merged into another, and none is merged into it. For
    /// one that takes long, or may fail for a reason that no neighbour should share.
    ///
    /// # Panics
    /// As [`Self::insert`].
    pub fn insert_alone(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.sched.act::<LonelyArrival<'_>>(&mut self.common, now, (tag, &rq));
    }

    /// Whether the scheduler would have the driver give a tag to a request like this one now, rather than
    /// later.
    ///
    /// Some keep a part of the tags free for urgent requests; and of a group whose limit is used up, not all
    /// tags shall wait. A driver that hands out tags asks before it does; nothing here depends on that.
    #[must_use]
    pub fn has_room(&self, rq: &Request) -> bool {
        (self.common.throttle.is_unused() || self.common.throttle_has_room(rq)) && self.sched.has_room(rq)
    }

    /// As [`has_room`](Self::has_room), for a thread that waits and has asked
    /// [how many requests may have tags](crate::sched::Scheduler::depth_for) before.
    #[must_use]
    pub fn has_room_below(&self, rq: &Request, depth: u32) -> bool {
        (self.common.throttle.is_unused() || self.common.throttle_has_room(rq))
            && self.sched.has_room_below(rq, depth)
    }

    /// Whether requests wait, and the next one of the task that sent `done`, which has just completed, would
    /// go before them all if it came at once.
    ///
    /// For drivers that can wait for it instead of giving the device to another at once; nothing here depends
    /// on that.
    #[must_use]
    pub fn prefers(&self, done: &Request) -> bool {
        self.common.requests.queued() > 0 && self.sched.prefers(done)
    }

    /// The device has room: what now?
    ///
    /// # Panics
    /// If time goes backwards.
    #[inline(never)]
    pub fn dispatch(&mut self, now: Instant) -> Dispatch {
        if self.common.is_plain {
            self.sched.act::<Room<true>>(&mut self.common, now, ())
        } else {
            self.dispatch_observed(now)
        }
    }

    // Functions of their own, here and below, so that otherwise nothing is in the way.

    #[inline(never)]
    fn insert_observed(&mut self, now: Instant, tag: Tag, rq: &Request) -> Insert {
        if rq.group.0 < self.common.direct {
            self.sched.act::<Arrival<'_, false>>(&mut self.common, now, (tag, rq))
        } else {
            self.sched.act::<ArrivalWithCare<'_>>(&mut self.common, now, (tag, rq))
        }
    }

    #[inline(never)]
    fn dispatch_observed(&mut self, now: Instant) -> Dispatch {
        self.sched.act::<Room<false>>(&mut self.common, now, ())
    }

    #[inline(never)]
    fn complete_observed(&mut self, now: Instant, tag: Tag) -> Link {
        self.sched.act::<Completion<false>>(&mut self.common, now, tag)
    }

    /// The next request whatever the scheduler would rather wait for, and whatever limits say, until `None`:
    /// to empty the queue before the scheduler is exchanged.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn drain(&mut self, now: Instant) -> Option<Tag> {
        let Self { sched, common } = self;
        common.advance(now);
        if let Some(tag) = common.requeued.first() {
            let _ = common.issue_again(sched, tag);
            return Some(tag);
        }
        while let Some(tag) = common.throttle.take(&common.books.groups, &common.requests) {
            common.hand_over(sched, tag);
        }
        let Some(tag) = sched.drain(cx!(common)) else {
            assert!(common.requests.queued() == 0, "drained, but requests wait");
            return None;
        };
        let _ = common.issue::<S, false>(sched, tag, Reason::Drain);
        Some(tag)
    }

    /// The device finished a request, well or not. Returns the tags that are free now: it and those merged
    /// into it.
    ///
    /// # Panics
    /// If time goes backwards, or the device does not have that request.
    #[inline]
    pub fn complete(&mut self, now: Instant, tag: Tag) -> impl Iterator<Item = Tag> + '_ {
        let carried = if self.common.is_plain {
            self.sched.act::<Completion<true>>(&mut self.common, now, tag)
        } else {
            self.complete_observed(now, tag)
        };
        self.common.requests.freed(tag, carried)
    }

    /// The device could not take a request, or gave it back: it is issued again before anything else.
    ///
    /// # Panics
    /// If time goes backwards, or the device does not have that request.
    pub fn requeue(&mut self, now: Instant, tag: Tag) {
        let Self { sched, common } = self;
        common.advance(now);
        common.requests.requeue(tag);
        sched.requeue(cx!(common), tag);
        common.requeued_links.push_back(&mut common.requeued, tag);
        common.aside += 1;
        common.books.requeued(common.now, tag, &common.requests[tag].rq, sched.chooses_groups());
    }

    /// Something changes from outside.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed. Tasks can always be changed, also those that are not known.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn control(&mut self, now: Instant, change: Control) -> Result<(), Refusal> {
        let Self { sched, common } = self;
        common.advance(now);
        let limited = match change {
            // The second may make a new group, without limits, and a removed one has none.
            Control::SetMax(group, _) | Control::SetParent(group, _) | Control::GroupExit(group)
                if group.index() < common.books.groups.count() =>
            {
                common.let_pass(sched);
                Some((group, common.books.groups.max(group)))
            }
            _ => None,
        };
        common.books.groups.control(&change, &common.requests)?;
        sched.control(cx!(common), &change);
        if let Some((group, old)) = limited {
            common.throttle.change(common.now, &common.books.groups, group, &old);
            common.let_pass(sched);
            common.direct = common.count_direct();
        }
        Ok(())
    }

    /// Whether a change can be made now: what [`Self::control`] would answer. For a driver of several devices
    /// that changes all of them or none.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn may_change(&self, change: &Control) -> Result<(), Refusal> {
        self.common.books.groups.check(change, &self.common.requests)
    }

    /// A group's books begin anew; what waits in it is counted as before. Groups in it keep theirs.
    ///
    /// # Errors
    /// If there is no such group.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn reset_stats(&mut self, now: Instant, group: GroupId) -> Result<(), Refusal> {
        self.common.advance(now);
        self.common.books.groups.reset_stats(now, group, &self.common.requests)
    }

    /// The groups.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.common.books.groups
    }

    /// Returns the statistics of a group. Takes time in proportion to the number of tags: see
    /// [`Self::all_stats`] for those of many groups.
    #[must_use]
    pub fn stats(&self, group: GroupId) -> GroupStats {
        self.common.books.groups.stats(group, &self.common.requests)
    }

    /// Writes the statistics of each group, from group 0 on, into `stats`; groups beyond its end are left
    /// out.
    pub fn all_stats(&self, stats: &mut [GroupStats]) {
        self.common.books.groups.all_stats(stats, &self.common.requests);
    }

    /// Returns the statistics of a group and all groups in it, removed ones included.
    #[must_use]
    pub fn recursive_stats(&self, group: GroupId) -> GroupStats {
        self.common.books.groups.recursive(group, &self.common.requests)
    }

    /// Whether no request of this group waits or is at the device.
    #[must_use]
    pub fn is_group_idle(&self, group: GroupId) -> bool {
        !self.common.requests.has_any(|g| g == group)
    }

    /// The recorded events, oldest first; they are gone afterwards.
    pub fn drain_trace(&mut self) -> impl Iterator<Item = TraceEvent> + '_ {
        core::iter::from_fn(|| self.common.books.trace.pop())
    }

    /// How many events were overwritten before they were read.
    #[must_use]
    pub fn trace_lost(&self) -> u64 {
        self.common.books.trace.lost()
    }

    /// All requests.
    #[must_use]
    pub const fn requests(&self) -> &Requests {
        &self.common.requests
    }

    /// The scheduler, to look at.
    #[must_use]
    pub const fn scheduler(&self) -> &S {
        &self.sched
    }

    /// Gives the scheduler other tunables while it works. Returns whether it took them over; if not, nothing
    /// has changed, and the caller must [drain](Self::drain) this elevator and make another to have them.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing has changed.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn reconfigure(&mut self, now: Instant, config: S::Config) -> Result<bool, ConfigError> {
        self.common.advance(now);
        self.sched.reconfigure(cx!(self.common), config)
    }

    /// The timer that `next_timer` asked for, or any other moment: a spurious call changes nothing.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn timer(&mut self, now: Instant) {
        let Self { sched, common } = self;
        common.advance(now);
        common.let_pass(sched);
        sched.timer(cx!(common));
    }

    /// Returns when to call [`Self::timer`], and the reason; `None` if no timer is needed.
    #[must_use]
    pub fn next_timer(&self) -> Option<(Instant, Timer)> {
        let timer = self.next_sched_timer();
        if self.common.requests.held() == 0 { timer } else { self.common.with_limits(timer) }
    }

    #[inline]
    fn next_sched_timer(&self) -> Option<(Instant, Timer)> {
        let (when, why) = self.sched.next_timer()?;
        let tick = self.common.limits.tick;
        if tick.is_zero() {
            return Some((when, why));
        }
        Some(((when + (tick - Duration::from_ns(1))).floor_to(tick), why))
    }

    /// Whether the scheduler itself asks for a dispatch after the last completion, timer or change.
    ///
    /// Only for drivers that do not dispatch after each of these anyway, as those of Linux's multi-queue
    /// layer do not: with them a request that was held back waits for the next insertion, unless the
    /// scheduler asks, or the device was full.
    #[must_use]
    pub fn wants_run(&self) -> bool {
        self.common.requests.queued() > 0 && self.sched.wants_run()
    }

    /// Walks everything and panics if anything is inconsistent. For tests and the simulator.
    pub fn check(&self) {
        let Self { sched, common } = self;
        common.requests.check();
        sched.check(&common.requests);
        common.throttle.check(&common.books.groups);
        assert_eq!(common.throttle.waiting(), common.requests.held(), "who waits for limits");
        assert_eq!(common.aside, common.requests.held() + common.requeued.len(), "who waits aside");
        for (tag, slot) in common.requests.iter() {
            if slot.state == State::Queued && common.limits.merges && !common.is_requeued(tag) {
                let by_end = common.index.ending_at(slot.rq.end()).any(|t| t == tag);
                let by_start =
                    sched.edges() == Edges::Ends || common.index.starting_at(slot.rq.start).any(|t| t == tag);
                assert!(by_end && by_start, "a queued request is not in the merge index");
            }
            let is_held = slot.state == State::Held;
            assert!(!is_held || common.throttle.holds(tag, &slot.rq), "held, but not by a limit");
        }
        if let Some(hint) = common.hint.tag() {
            assert!(common.requests[hint].state == State::Queued, "the merge hint has left");
            assert!(common.requests[hint].rq.start == common.hint_start, "the merge hint's start is stale");
        }
    }
}

impl Common {
    /// The time that the scheduler sees.
    #[inline(always)]
    fn shown(&self) -> Instant {
        self.now.floor_to(self.limits.tick)
    }

    /// How many groups, from the first on, need no attention: see [`Self::direct`].
    fn count_direct(&self) -> u32 {
        if !self.limits.merges || self.books.trace.enabled() || !self.throttle.is_unused() {
            return 0;
        }
        self.books.groups.count_existing()
    }

    /// A request arrives whose group needs no attention.
    #[inline(always)]
    fn insert<S: Scheduler, const PLAIN: bool>(
        &mut self,
        sched: &mut S,
        now: Instant,
        tag: Tag,
        rq: &Request,
    ) -> Insert {
        self.advance(now);
        self.insert_now::<S, PLAIN>(sched, (now, self.shown()), tag, rq)
    }

    /// Inserts a request at a time that is known, with the one that the scheduler sees.
    #[inline(always)]
    fn insert_now<S: Scheduler, const PLAIN: bool>(
        &mut self,
        sched: &mut S,
        (now, shown): (Instant, Instant),
        tag: Tag,
        rq: &Request,
    ) -> Insert {
        self.requests.claim(tag, rq, now, shown);
        if !PLAIN && sched.chooses_groups() {
            self.books.groups.waits(now, rq.group);
        }
        if !self.is_quiet(sched, rq) {
            return self.insert_touching(sched, tag, rq);
        }
        self.file(sched, tag, rq);
        sched.insert(cx!(self, shown), tag);
        Insert::Queued
    }

    /// Inserts any request, whether or not its group needs attention.
    #[inline(always)]
    fn insert_with_care<S: Scheduler>(
        &mut self,
        sched: &mut S,
        now: Instant,
        tag: Tag,
        rq: &Request,
    ) -> Insert {
        if !self.books.groups.exists(rq.group) {
            return self.insert_into_home(sched, now, tag, rq);
        }
        self.advance(now);
        let shown = self.shown();
        self.requests.claim(tag, rq, now, shown);
        self.books.arrives(now, rq, sched.chooses_groups());
        // Limits come before merging: a held request must not grow one that its group may not send yet.
        if !self.throttle.is_unused() && self.is_held(sched, tag, rq) {
            return Insert::Queued;
        }
        if self.limits.merges {
            if !self.is_quiet(sched, rq) {
                return self.insert_touching(sched, tag, rq);
            }
            self.file(sched, tag, rq);
        }
        self.books.inserted(now, tag, rq);
        sched.insert(cx!(self, shown), tag);
        Insert::Queued
    }

    /// Inserts a request of a group that is removed: it belongs to the nearest one above that is left.
    #[cold]
    #[inline(never)]
    fn insert_into_home<S: Scheduler>(
        &mut self,
        sched: &mut S,
        now: Instant,
        tag: Tag,
        rq: &Request,
    ) -> Insert {
        let group = self.books.groups.home(rq.group);
        self.insert_with_care(sched, now, tag, &Request { group, ..*rq })
    }

    /// A request arrives that may touch another: merges them if they do and may.
    #[inline(never)]
    fn insert_touching<S: Scheduler>(&mut self, sched: &mut S, tag: Tag, rq: &Request) -> Insert {
        if self.touches(sched, rq) {
            sched.prepare_merge(cx!(self), rq);
            if let Some((into, end)) = self.find_merge(sched, rq, self.requests[tag].segments) {
                self.merge(sched, into, end, tag, false);
                return Insert::Merged { into, end };
            }
        }
        // It may touch one and still not fit, or not be allowed: then it is queued by itself, with the edges
        // that others may touch.
        self.file(sched, tag, rq);
        self.enqueue(sched, tag, rq);
        Insert::Queued
    }

    /// Whether surely nothing touches `rq` that it could be merged with.
    #[inline(always)]
    fn is_quiet<S: Scheduler>(&self, sched: &S, rq: &Request) -> bool {
        let edges = sched.edges();
        let is_before_hint = edges == Edges::Ends && self.hint_start == rq.end();
        self.index.is_quiet(edges, rq.start, rq.end()) && !is_before_hint
    }

    /// From now on others may be merged into `tag`.
    #[inline(always)]
    fn file<S: Scheduler>(&mut self, sched: &S, tag: Tag, rq: &Request) {
        self.index.insert(sched.edges(), tag, rq.start, rq.end());
        if self.hint == Link::NONE {
            self.hint = Link::to(tag);
            self.hint_start = rq.start;
        }
    }

    #[inline(never)]
    fn enqueue<S: Scheduler>(&mut self, sched: &mut S, tag: Tag, rq: &Request) {
        self.books.inserted(self.now, tag, rq);
        sched.insert(cx!(self), tag);
    }

    #[inline(always)]
    fn dispatch<S: Scheduler, const PLAIN: bool>(&mut self, sched: &mut S, now: Instant) -> Dispatch {
        self.advance(now);
        self.dispatch_now::<S, PLAIN>(sched)
    }

    /// Issues a request at the present time of the elevator.
    #[inline(always)]
    fn dispatch_now<S: Scheduler, const PLAIN: bool>(&mut self, sched: &mut S) -> Dispatch {
        if self.aside > 0 {
            self.dispatch_from_aside(sched)
        } else {
            self.dispatch_in_order::<S, PLAIN>(sched)
        }
    }

    /// Issues a request if some were handed back, or wait for limits: those that are due go to the scheduler
    /// first, and one that was handed back goes to the device.
    #[cold]
    #[inline(never)]
    fn dispatch_from_aside<S: Scheduler>(&mut self, sched: &mut S) -> Dispatch {
        self.let_pass(sched);
        match self.requeued.first() {
            Some(tag) => self.issue_again(sched, tag),
            None => self.dispatch_in_order::<S, false>(sched),
        }
    }

    /// The scheduler decides.
    #[inline(always)]
    fn dispatch_in_order<S: Scheduler, const PLAIN: bool>(&mut self, sched: &mut S) -> Dispatch {
        let cx = cx!(self);
        let answer = sched.dispatch(cx);
        let why = cx.why;
        match answer {
            Dispatch::Issue(tag) => return self.issue::<S, PLAIN>(sched, tag, why),
            // A scheduler may idle for a task that has nothing queued; for the driver that is empty: the end
            // of the wait could send nothing.
            Dispatch::Hold(_) if self.requests.queued() == 0 => return self.nothing_waits(),
            Dispatch::Hold(_) => debug_assert!(
                self.requests.issued() > 0 || sched.next_timer().is_some(),
                "held, but nothing is coming to end it"
            ),
            Dispatch::Empty => {
                assert!(self.requests.queued() == 0, "empty, but requests wait");
                return self.nothing_waits();
            }
        }
        answer
    }

    /// At the scheduler, that is.
    fn nothing_waits(&self) -> Dispatch {
        if self.requests.held() > 0 { Dispatch::Hold(Hold::Limit) } else { Dispatch::Empty }
    }

    #[cold]
    fn issue_again<S: Scheduler>(&mut self, sched: &mut S, tag: Tag) -> Dispatch {
        self.aside -= 1;
        self.requeued_links.remove(&mut self.requeued, tag);
        self.requests.issue(tag, self.now);
        sched.reissue(cx!(self), tag);
        self.books.issued_again(self.now, tag, &self.requests[tag].rq, sched.chooses_groups());
        Dispatch::Issue(tag)
    }

    #[inline(always)]
    fn complete<S: Scheduler, const PLAIN: bool>(&mut self, sched: &mut S, now: Instant, tag: Tag) -> Link {
        self.advance(now);
        self.requests.assert_issued(tag);
        sched.complete(cx!(self), tag);
        if !PLAIN {
            self.books.completed(now, &self.requests[tag]);
            if self.books.trace.enabled() {
                return self.complete_traced(now, tag);
            }
        }
        self.requests.free(tag)
    }

    /// The rest of a completion that is recorded.
    #[cold]
    #[inline(never)]
    fn complete_traced(&mut self, now: Instant, tag: Tag) -> Link {
        self.books.trace_completed(now, tag, &self.requests[tag].rq);
        self.requests.free(tag)
    }

    fn is_requeued(&self, tag: Tag) -> bool {
        self.requeued_links.iter(&self.requeued).any(|t| t == tag)
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time goes backwards");
        self.now = now;
    }

    #[inline(always)]
    fn issue<S: Scheduler, const PLAIN: bool>(&mut self, sched: &S, tag: Tag, why: Reason) -> Dispatch {
        self.requests.issue(tag, self.now);
        if !PLAIN {
            self.books.issued(self.now, &self.requests[tag].rq, sched.chooses_groups());
            if !self.limits.merges {
                return self.issued(tag, why);
            }
        }
        if self.hint == Link::to(tag) {
            self.hint = Link::NONE;
        }
        // Where nothing is filed, nothing is first.
        let is_first = self.index.remove_first(sched.edges(), tag);
        if PLAIN {
            if !is_first {
                self.unfile(sched, tag);
            }
            return Dispatch::Issue(tag);
        }
        if is_first { self.issued(tag, why) } else { self.unfile_and_issue(sched, tag, why) }
    }

    /// Takes a request out of the merge index if others are filed before it, or nothing is.
    #[inline(never)]
    fn unfile<S: Scheduler>(&mut self, sched: &S, tag: Tag) {
        if self.limits.merges {
            self.index.remove(sched.edges(), tag);
        }
    }

    /// The end of [`Self::issue`], in one function, so that the caller need keep nothing.
    #[inline(never)]
    fn unfile_and_issue<S: Scheduler>(&mut self, sched: &S, tag: Tag, why: Reason) -> Dispatch {
        self.unfile(sched, tag);
        self.issued(tag, why)
    }

    /// Answers a request that goes to the device, and records it.
    #[inline(always)]
    fn issued(&mut self, tag: Tag, why: Reason) -> Dispatch {
        if self.books.trace.enabled() { self.trace_issued(tag, why) } else { Dispatch::Issue(tag) }
    }

    /// Answers the request again, so that the caller need not keep it.
    #[cold]
    #[inline(never)]
    fn trace_issued(&mut self, tag: Tag, why: Reason) -> Dispatch {
        self.books.trace_issued(self.now, why, tag, &self.requests[tag].rq);
        Dispatch::Issue(tag)
    }
}
