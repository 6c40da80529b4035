//! The elevator: what every scheduler shares, written once.
//!
//! It keeps the requests by the driver's tag, merges neighbours, hands the rest to a [`Scheduler`], follows states and
//! conservation, and records what happened. Policy is the scheduler's alone.
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
//! # Merging
//!
//! A new request that starts where a queued one ends is appended to it (*back merge*); one that ends where a queued one
//! starts is put in front (*front merge*, where the scheduler wants those). Both must go in one direction and be of one group, the
//! scheduler may object, and the sum must respect the limits; a request that once hit a limit is left alone from then
//! on. After a merge the grown request may touch its neighbour; then the two are *joined*.
//!
//! Example: `[100,8)` and `[200,8)` are queued (start, sectors). `[108,92)` comes: back merge into the first, which
//! is now `[100,100)` and touches the second: joined into `[100,108)`. One request goes to the disk, three complete.
//!
//! # Limits
//!
//! A request of a group whose limit is used up waits in front of all this ([`Throttle`]): the scheduler does not know of it,
//! and nothing is merged with it. When it is due, it goes on as if it had come then; if it is merged into another, the driver learns that from the
//! completion.
//!
//! # What it does not do
//!
//! It does not order flushes, retry errors, split what is too large for the device, or plug: those are the driver's.
//!
//= linux-2.6.33 block/elevator.c, block/blk-merge.c (as restated in the project's specification)

use crate::config::ConfigError;
use crate::groups::{Groups, Max, Min, Policy, Refusal};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::merge::{Edges, MergeIndex};
use crate::parts::throttle::Throttle;
use crate::request::{Link, Request, Requests, State};
use crate::sched::Scheduler;
use crate::trace::{Action, Detail, Reason, TraceEvent, TraceRing};
use crate::units::{Class, Duration, GroupId, Id, Instant, IoPrio, Sector, Sectors, Tag, TaskId, Weight};
use crate::{config::Tunable, config::Unit};

/// Sizes and facts that an elevator is made for. Everything is allocated from these, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tags are `0..tags`. Default 256.
    pub tags: u16,
    /// How many requests the driver has for these tags: what is merged into another keeps its tag, but is no request. Shares of
    /// the pool ([`Elevator::has_room`]) are shares of this. Default 0: as many as tags.
    pub pool: u16,
    /// How many tasks get state of their own; further ones share one fallback. Default 64.
    pub tasks: u32,
    /// How many groups there may be, the root included. Default 1.
    pub groups: u32,
    /// How many requests a second the device is good for, at worst: what [guarantees](Control::SetMin) may add up to. Default
    /// 0: not known, and not checked.
    pub capacity: u32,
    /// The largest request that merging may make. Default 1024 sectors (512 KiB).
    //= linux-2.6.33 block/blk-settings.c BLK_DEF_MAX_SECTORS
    pub max_sectors: Sectors,
    /// How many segments a request may have: each request handed in counts as one for each 64 KiB of its length, its
    /// memory being taken as contiguous. Default 128.
    //= linux-2.6.33 include/linux/blkdev.h MAX_PHYS_SEGMENTS, MAX_SEGMENT_SIZE
    pub max_segments: u16,
    /// Whether to merge at all (sysfs `nomerges` = 0). Default true.
    pub merges: bool,
    /// Whether the disk has a head to move. Default true.
    pub rotational: bool,
    /// How many requests the device takes at a time. Default 1.
    pub queue_depth: u16,
    /// If not zero, the scheduler sees a clock that advances in these steps, as kernels did whose timers counted ticks
    /// of 1/HZ: `now` is rounded down, timers are rounded up. Default zero.
    pub tick: Duration,
    /// How many events the trace keeps. Default 0.
    pub trace: u32,
    /// Which parts of the disk have an arm of their own. Default: there is one for all.
    pub actuators: Actuators,
}

/// The parts of a disk with several actuators: each serves a range of sectors of its own.
///
/// Example: a disk of 2000 sectors whose second arm serves the upper half is `Actuators::at(&[Sector(1000)])`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Actuators {
    /// Where the second, third, … begins, ascending; unused ones are 0.
    starts: [u64; Self::MAX - 1],
}

impl Actuators {
    /// The most that there may be.
    //= linux-6.12 block/bfq-iosched.h BFQ_MAX_ACTUATORS (as restated in the project's specification)
    pub const MAX: usize = 8;

    /// One actuator for the sectors below the first of `starts`, and one from each of these on.
    ///
    /// # Panics
    /// If these are more than 7, not ascending, or 0.
    #[must_use]
    pub fn at(starts: &[Sector]) -> Self {
        assert!(starts.len() < Self::MAX, "at most 8 actuators");
        let mut actuators = Self::default();
        let mut last = 0;
        for (to, start) in actuators.starts.iter_mut().zip(starts) {
            assert!(start.0 > last, "actuators begin in ascending order");
            (*to, last) = (start.0, start.0);
        }
        actuators
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.starts.iter().take_while(|s| **s > 0).count()
    }

    /// Which one serves `sector`: 0 is the first.
    #[inline]
    #[must_use]
    pub fn of(&self, sector: Sector) -> usize {
        self.starts.iter().take_while(|s| **s > 0 && **s <= sector.0).count()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tags: 256,
            pool: 0,
            tasks: 64,
            groups: 1,
            capacity: 0,
            max_sectors: Sectors(1024),
            max_segments: 128,
            merges: true,
            rotational: true,
            queue_depth: 1,
            tick: Duration::ZERO,
            trace: 0,
            actuators: Actuators::default(),
        }
    }
}

const fn at_least_one(name: &'static str, max: u64) -> Tunable {
    Tunable { name, unit: Unit::Count, min: 1, max, effect: "a size that an elevator is made for" }
}
static TAGS: Tunable = at_least_one("tags", 65535);
static TASKS: Tunable = at_least_one("tasks", 1 << 24);
static GROUPS: Tunable = at_least_one("groups", 1 << 24);
static MAX_SECTORS: Tunable = at_least_one("max_sectors", 1 << 31);
static MAX_SEGMENTS: Tunable = at_least_one("max_segments", 65535);
static QUEUE_DEPTH: Tunable = at_least_one("queue_depth", 65535);

impl Limits {
    /// How many requests the driver has.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        if self.pool == 0 { self.tags as u32 } else { self.pool as u32 }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let fields = [
            (&TAGS, u64::from(self.tags)),
            (&TASKS, u64::from(self.tasks)),
            (&GROUPS, u64::from(self.groups)),
            (&MAX_SECTORS, u64::from(self.max_sectors.0)),
            (&MAX_SEGMENTS, u64::from(self.max_segments)),
            (&QUEUE_DEPTH, u64::from(self.queue_depth)),
        ];
        match fields.into_iter().find(|&(t, value)| value < t.min || value > t.max) {
            Some((t, value)) => Err(ConfigError { field: t.name, value, tunable: Some(t) }),
            None => Ok(()),
        }
    }
}

/// What became of a request that was handed in.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// It waits, in the scheduler or for a limit of its group.
    Queued,
    /// It travels with another from now on, and completes with it.
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

/// What to do now.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// Send this request to the device: a promise to obey.
    Issue(Tag),
    /// Requests wait, but the disk shall not have them yet. A timer or a completion is coming.
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
    /// As many requests as allowed are at the device.
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

/// What a timer is for.
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

/// A change from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// A group's weight among its siblings.
    SetWeight(GroupId, Weight),
    /// The weight of a group's own tasks among the groups in it.
    SetLeafWeight(GroupId, Weight),
    /// A group's class among its siblings.
    SetClass(GroupId, Class),
    /// Weight and class of a group on this device only, or no more.
    SetPolicy(GroupId, Option<Policy>),
    /// The most that a group gets.
    SetMax(GroupId, Max),
    /// What a group is guaranteed.
    SetMin(GroupId, Min),
    /// A task's priority, for its requests to come.
    SetPrio(TaskId, IoPrio),
    /// A task is gone; requests of its that wait are still served.
    TaskExit(TaskId),
    /// A group is inside another (second), not in the root, while neither it nor any group in it has requests. Makes a new group of
    /// one that is gone.
    SetParent(GroupId, GroupId),
    /// A group without groups in it is gone, and its limits with it; requests of its that wait are still served.
    GroupExit(GroupId),
}

impl Control {
    /// The group whose weight, leaf weight or class may be another now.
    #[must_use]
    pub const fn reweighed(&self) -> Option<GroupId> {
        match *self {
            Self::SetWeight(g, _)
            | Self::SetLeafWeight(g, _)
            | Self::SetClass(g, _)
            | Self::SetPolicy(g, _) => Some(g),
            _ => None,
        }
    }
}

/// What is recorded of an elevator's work, and the groups that it is recorded of.
#[derive(Clone, Debug)]
pub struct Books {
    /// Decisions.
    pub trace: TraceRing,
    /// The groups.
    pub groups: Groups,
    /// Whether events are recorded at all: in a trace, or as of several groups.
    is_observed: bool,
}

impl Books {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            trace: TraceRing::new(limits.trace),
            groups: Groups::new(limits.groups, limits.tags, limits.capacity),
            is_observed: limits.trace > 0 || limits.groups > 1,
        }
    }

    /// Whether anything is recorded at all.
    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.is_observed
    }
}

/// What a scheduler gets to see and use in every call.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The time.
    pub now: Instant,
    /// All requests.
    pub requests: &'a mut Requests,
    /// Where decisions and what groups got are recorded; and what is known of groups.
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

    /// The same, with the numbers behind it.
    #[inline]
    pub fn note_in_numbers(&mut self, reason: Reason, task: TaskId, detail: Detail) {
        if self.books.trace.enabled() {
            self.push_note(reason, task, detail);
        }
    }

    #[cold]
    fn push_note(&mut self, reason: Reason, task: TaskId, detail: Detail) {
        self.books.trace.push(TraceEvent {
            at: self.now,
            action: Action::Note,
            reason,
            tag: None,
            task,
            start: Sector(0),
            len: Sectors(0),
            detail,
        });
    }
}

/// One device's queue of requests, ordered by `S`.
#[derive(Clone, Debug)]
pub struct Elevator<S> {
    sched: S,
    limits: Limits,
    requests: Requests,
    books: Books,
    /// Whether requests are merged, and nothing is recorded.
    is_plain: bool,
    /// Queued requests by the sector behind their last, and by their first.
    index: MergeIndex,
    /// The request that last grew, or the first one inserted since: tried before the index.
    hint: Link,
    /// Where the hint starts; anywhere when there is none.
    hint_start: Sector,
    requeued: Fifo<Tag>,
    requeued_links: Links<Tag>,
    /// Who waits for limits.
    throttle: Throttle,
    /// How many requests were handed back, or wait for limits: while there are none, `dispatch` need not look further.
    aside: u32,
    now: Instant,
}

/// A borrow of everything but the scheduler, for its calls.
macro_rules! cx {
    ($self:ident) => {
        cx!($self, $self.now.floor_to($self.limits.tick))
    };
    ($self:ident, $now:expr) => {
        &mut Cx { now: $now, requests: &mut $self.requests, books: &mut $self.books, why: Reason::None }
    };
}

impl<S: Scheduler> Elevator<S> {
    /// An elevator for a device. The only call that allocates.
    ///
    /// # Errors
    /// If a limit or tunable is out of range.
    pub fn new(limits: Limits, config: S::Config) -> Result<Self, ConfigError> {
        limits.validate()?;
        let tags = usize::from(limits.tags);
        let books = Books::new(&limits);
        Ok(Self {
            sched: S::new(limits, config)?,
            limits,
            requests: Requests::new(limits.tags),
            is_plain: limits.merges && !books.is_observed,
            books,
            index: MergeIndex::new(limits.tags),
            hint: Link::NONE,
            hint_start: Sector(0),
            requeued: Fifo::default(),
            requeued_links: Links::new(tags),
            throttle: Throttle::new(limits.groups, limits.tags, limits.requests()),
            aside: 0,
            now: Instant::EPOCH - Duration::MAX,
        })
    }

    /// A request arrives.
    ///
    /// # Panics
    /// If time goes backwards, the tag is in use or out of range, or the request is empty: bugs of the driver.
    pub fn insert(&mut self, now: Instant, tag: Tag, rq: Request) -> Insert {
        self.advance(now);
        let shown = self.now.floor_to(self.limits.tick);
        self.requests.claim(tag, rq, shown);
        if !self.is_plain {
            return self.insert_otherwise(tag, &rq);
        }
        if !self.is_quiet(&rq) {
            return self.insert_in_company(tag, &rq);
        }
        self.file(tag, &rq);
        self.sched.insert(cx!(self, shown), tag);
        Insert::Queued
    }

    /// The same where books are kept, or nothing is merged. That is a function of its own, here and below, so that otherwise nothing is
    /// in the way.
    #[inline(never)]
    fn insert_otherwise(&mut self, tag: Tag, rq: &Request) -> Insert {
        let rq = Request { group: self.books.groups.home(rq.group), ..*rq };
        self.requests.put_into_group(tag, rq.group);
        if !self.throttle.is_unused() && self.is_held(tag, &rq) {
            return Insert::Queued;
        }
        if self.limits.merges {
            if !self.is_quiet(&rq) {
                return self.insert_in_company(tag, &rq);
            }
            self.file(tag, &rq);
        }
        self.enqueue(tag, Reason::None);
        Insert::Queued
    }

    /// A request arrives that may touch another: merges them if they do and may.
    #[inline(never)]
    fn insert_in_company(&mut self, tag: Tag, rq: &Request) -> Insert {
        self.sched.prepare_merge(cx!(self), rq);
        if let Some((into, end)) = self.find_merge(rq, self.requests[tag].segments) {
            self.merge(into, end, tag, Reason::None);
            return Insert::Merged { into, end };
        }
        self.file(tag, rq);
        self.enqueue(tag, Reason::None);
        Insert::Queued
    }

    /// Whether a request that arrives has to wait for a limit.
    #[inline(never)]
    fn is_held(&mut self, tag: Tag, rq: &Request) -> bool {
        self.let_pass();
        if self.throttle.admit(self.now, &self.books.groups, tag, rq) {
            return false;
        }
        self.requests.hold(tag);
        self.aside += 1;
        self.record(Action::Note, Reason::Limit, tag);
        true
    }

    /// Those that limits let pass by now go to the scheduler.
    #[inline(never)]
    fn let_pass(&mut self) {
        while self.requests.held() > 0
            && let Some(tag) = self.throttle.pass(self.now, &self.books.groups, &self.requests)
        {
            self.hand_over(tag);
        }
    }

    /// A request need not wait for limits any longer: as [`Self::insert`], but that nobody is told if it is merged.
    fn hand_over(&mut self, tag: Tag) {
        self.aside -= 1;
        self.requests.let_go(tag, self.now.floor_to(self.limits.tick));
        let rq = self.requests[tag].rq;
        if self.limits.merges {
            if !self.is_quiet(&rq) {
                self.sched.prepare_merge(cx!(self), &rq);
                if let Some((into, end)) = self.find_merge(&rq, self.requests[tag].segments) {
                    return self.merge(into, end, tag, Reason::Limit);
                }
            }
            self.file(tag, &rq);
        }
        self.enqueue(tag, Reason::Limit);
    }

    /// Whether surely nothing touches `rq` that it could be merged with.
    #[inline(always)]
    fn is_quiet(&self, rq: &Request) -> bool {
        let edges = self.sched.edges();
        let is_before_hint = edges == Edges::Ends && self.hint_start == rq.end();
        self.index.is_quiet(edges, rq.start, rq.end()) && !is_before_hint
    }

    /// From now on others may be merged into `tag`.
    #[inline(always)]
    fn file(&mut self, tag: Tag, rq: &Request) {
        self.index.insert(self.sched.edges(), tag, rq.start, rq.end());
        if self.hint == Link::NONE {
            self.hint = Link::to(tag);
            self.hint_start = rq.start;
        }
    }

    #[inline(never)]
    fn enqueue(&mut self, tag: Tag, reason: Reason) {
        self.record(Action::Insert, reason, tag);
        self.sched.insert(cx!(self), tag);
    }

    /// Whether the scheduler would have the driver give a tag to a request like this one now, rather than later.
    ///
    /// Some keep a part of the tags free for urgent requests; and of a group whose limit is used up, not all tags shall wait. A driver
    /// that hands out tags asks before it does; nothing here depends on that.
    #[must_use]
    pub fn has_room(&self, rq: &Request) -> bool {
        (self.throttle.is_unused() || self.throttle_has_room(rq)) && self.sched.has_room(rq)
    }

    #[inline(never)]
    fn throttle_has_room(&self, rq: &Request) -> bool {
        let group = self.books.groups.home(rq.group);
        self.throttle.has_room(&self.books.groups, &Request { group, ..*rq })
    }

    /// The device has room: what now?
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn dispatch(&mut self, now: Instant) -> Dispatch {
        self.advance(now);
        if self.aside > 0
            && let Some(tag) = self.look_aside()
        {
            return self.issue_again(tag);
        }
        let cx = cx!(self);
        let answer = self.sched.dispatch(cx);
        let why = cx.why;
        match answer {
            Dispatch::Issue(tag) => return Dispatch::Issue(self.issue(tag, why)),
            Dispatch::Hold(_) if self.requests.queued() == 0 => return self.nothing_waits(),
            Dispatch::Hold(_) => debug_assert!(
                self.requests.issued() > 0 || self.sched.next_timer().is_some(),
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

    /// Who is due goes to the scheduler. Answers a request that was handed back, if there is one.
    #[cold]
    fn look_aside(&mut self) -> Option<Tag> {
        self.let_pass();
        self.requeued.first()
    }

    #[cold]
    fn issue_again(&mut self, tag: Tag) -> Dispatch {
        self.aside -= 1;
        self.requeued_links.remove(&mut self.requeued, tag);
        self.requests.issue(tag);
        self.sched.reissue(cx!(self), tag);
        self.record(Action::Issue, Reason::Requeued, tag);
        Dispatch::Issue(tag)
    }

    /// The next request whatever the scheduler would rather wait for, and whatever limits say, until `None`: to empty the queue before
    /// the scheduler is exchanged.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn drain(&mut self, now: Instant) -> Option<Tag> {
        self.advance(now);
        if let Some(tag) = self.requeued.first() {
            let _ = self.issue_again(tag);
            return Some(tag);
        }
        while let Some(tag) = self.throttle.take(&self.books.groups, &self.requests) {
            self.hand_over(tag);
        }
        let Some(tag) = self.sched.drain(cx!(self)) else {
            assert!(self.requests.queued() == 0, "drained, but requests wait");
            return None;
        };
        Some(self.issue(tag, Reason::Drain))
    }

    /// The device finished a request, well or not. Answers the tags that are free now: it and those merged into it.
    ///
    /// # Panics
    /// If time goes backwards, or the device does not have that request.
    #[inline]
    pub fn complete(&mut self, now: Instant, tag: Tag) -> impl Iterator<Item = Tag> + '_ {
        self.advance(now);
        self.requests.assert_issued(tag);
        self.sched.complete(cx!(self), tag);
        let carried = self.requests.free(tag);
        self.record(Action::Complete, Reason::None, tag);
        self.requests.freed(tag, carried)
    }

    /// The device could not take a request, or gave it back: it is issued again before anything else.
    ///
    /// # Panics
    /// If time goes backwards, or the device does not have that request.
    pub fn requeue(&mut self, now: Instant, tag: Tag) {
        self.advance(now);
        self.requests.requeue(tag);
        self.sched.requeue(cx!(self), tag);
        self.requeued_links.push_back(&mut self.requeued, tag);
        self.aside += 1;
        self.record(Action::Requeue, Reason::None, tag);
    }

    /// Something changes from outside.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed. Tasks can always be changed, also those that are not known.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn control(&mut self, now: Instant, change: Control) -> Result<(), Refusal> {
        self.advance(now);
        let limited = match change {
            // The second may make a new group, without limits, and who is gone has none.
            Control::SetMax(group, _) | Control::SetParent(group, _) | Control::GroupExit(group)
                if group.index() < self.books.groups.count() =>
            {
                self.let_pass();
                Some((group, self.books.groups.max(group)))
            }
            _ => None,
        };
        self.books.groups.control(&change)?;
        self.sched.control(cx!(self), &change);
        if let Some((group, old)) = limited {
            self.throttle.change(self.now, &self.books.groups, group, &old);
            self.let_pass();
        }
        Ok(())
    }

    /// A group's books begin anew; what waits in it is counted as before. Groups in it keep theirs.
    ///
    /// # Errors
    /// If there is no such group.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn reset_stats(&mut self, now: Instant, group: GroupId) -> Result<(), Refusal> {
        self.advance(now);
        self.books.groups.reset_stats(now, group)
    }

    /// The groups, and what each got.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.books.groups
    }

    /// Gives the scheduler other tunables while it works. Answers whether it took them over; if not, nothing has changed,
    /// and who wants them must [drain](Self::drain) this elevator and make another.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing has changed.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn reconfigure(&mut self, now: Instant, config: S::Config) -> Result<bool, ConfigError> {
        self.advance(now);
        self.sched.reconfigure(cx!(self), config)
    }

    /// The timer that `next_timer` asked for, or any other moment: a spurious call changes nothing.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn timer(&mut self, now: Instant) {
        self.advance(now);
        self.let_pass();
        self.sched.timer(cx!(self));
    }

    /// When to call [`Self::timer`], and what for.
    #[must_use]
    pub fn next_timer(&self) -> Option<(Instant, Timer)> {
        let timer = self.next_sched_timer();
        if self.requests.held() == 0 { timer } else { self.with_limits(timer) }
    }

    /// Ticks are the scheduler's business, not that of limits.
    #[cold]
    fn with_limits(&self, timer: Option<(Instant, Timer)>) -> Option<(Instant, Timer)> {
        let due = self.throttle.next_due().map(|when| (when, Timer::Limit));
        timer.into_iter().chain(due).min_by_key(|&(when, _)| when)
    }

    #[inline]
    fn next_sched_timer(&self) -> Option<(Instant, Timer)> {
        let (when, why) = self.sched.next_timer()?;
        let tick = self.limits.tick;
        if tick.is_zero() {
            return Some((when, why));
        }
        Some(((when + (tick - Duration::from_ns(1))).floor_to(tick), why))
    }

    /// The recorded events, oldest first; they are gone afterwards.
    pub fn drain_trace(&mut self) -> impl Iterator<Item = TraceEvent> + '_ {
        core::iter::from_fn(|| self.books.trace.pop())
    }

    /// How many events were overwritten before they were read.
    #[must_use]
    pub fn trace_lost(&self) -> u64 {
        self.books.trace.lost()
    }

    /// All requests.
    #[must_use]
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The scheduler, to look at.
    #[must_use]
    pub const fn scheduler(&self) -> &S {
        &self.sched
    }

    /// As [`Self::insert`], but never merged with another: for comparisons with an implementation that did not.
    ///
    /// # Panics
    /// As [`Self::insert`].
    pub fn insert_apart(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.advance(now);
        self.requests.claim(tag, rq, self.now.floor_to(self.limits.tick));
        if self.limits.merges {
            self.sched.prepare_merge(cx!(self), &rq);
            self.file(tag, &rq);
        }
        self.enqueue(tag, Reason::None);
    }

    /// As [`Self::insert`], but merged with `into` whatever the scheduler says: for comparisons with an implementation that
    /// merged them.
    ///
    /// # Panics
    /// As [`Self::insert`], and if `into` does not wait.
    pub fn insert_into(&mut self, now: Instant, tag: Tag, rq: Request, into: Tag, end: End) {
        self.advance(now);
        assert!(self.requests[into].state == State::Queued, "merged with a request that does not wait");
        self.requests.claim(tag, rq, self.now.floor_to(self.limits.tick));
        self.merge(into, end, tag, Reason::None);
    }

    /// As [`Self::dispatch`], with an answer from elsewhere: for comparisons with an implementation that gave it.
    ///
    /// # Panics
    /// If time goes backwards, or the answer is a request that does not wait.
    pub fn issue_by(
        &mut self,
        now: Instant,
        choose: impl FnOnce(&mut S, &mut Cx<'_>) -> Dispatch,
    ) -> Dispatch {
        self.advance(now);
        let cx = cx!(self);
        let answer = choose(&mut self.sched, cx);
        let why = cx.why;
        if let Dispatch::Issue(tag) = answer {
            self.issue(tag, why);
        }
        answer
    }

    /// Puts the scheduler into a state that it has not come to by itself: for comparisons with an implementation that has.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn meddle<R>(&mut self, now: Instant, change: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        self.advance(now);
        change(&mut self.sched, cx!(self))
    }

    /// Walks everything and panics if anything is inconsistent. For tests and the simulator.
    pub fn check(&self) {
        self.requests.check();
        self.sched.check(&self.requests);
        self.throttle.check(&self.books.groups);
        assert_eq!(self.throttle.waiting(), self.requests.held(), "who waits for limits");
        assert_eq!(self.aside, self.requests.held() + self.requeued.len(), "who waits aside");
        for (tag, slot) in self.requests.iter() {
            if slot.state == State::Queued && self.limits.merges && !self.is_requeued(tag) {
                let by_end = self.index.ending_at(slot.rq.end()).any(|t| t == tag);
                let by_start = self.sched.edges() == Edges::Ends
                    || self.index.starting_at(slot.rq.start).any(|t| t == tag);
                assert!(by_end && by_start, "a queued request is not in the merge index");
            }
            let is_held = slot.state == State::Held;
            assert!(!is_held || self.throttle.holds(tag, &slot.rq), "held, but not by a limit");
        }
        if let Some(hint) = self.hint.tag() {
            assert!(self.requests[hint].state == State::Queued, "the merge hint has left");
            assert!(self.requests[hint].rq.start == self.hint_start, "the merge hint's start is stale");
        }
    }

    fn is_requeued(&self, tag: Tag) -> bool {
        self.requeued_links.iter(&self.requeued).any(|t| t == tag)
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time goes backwards");
        self.now = now;
    }

    /// Answers the tag again, here and below, so that the caller need not keep it.
    #[inline(always)]
    fn issue(&mut self, tag: Tag, why: Reason) -> Tag {
        self.requests.issue(tag);
        if self.hint == Link::to(tag) {
            self.hint = Link::NONE;
        }
        if self.is_plain && self.index.remove_first(self.sched.edges(), tag) {
            return tag;
        }
        self.issue_rest(tag, why)
    }

    /// What is left to do at times.
    #[inline(never)]
    fn issue_rest(&mut self, tag: Tag, why: Reason) -> Tag {
        if self.limits.merges {
            self.index.remove(self.sched.edges(), tag);
        }
        self.record(Action::Issue, why, tag);
        tag
    }

    /// A queued request that `rq` can be merged into, and at which end.
    fn find_merge(&mut self, rq: &Request, segments: u32) -> Option<(Tag, End)> {
        let (into, end) = self.find_neighbour(rq)?;
        if self.fits(into, rq.len, segments) {
            return Some((into, end));
        }
        self.requests.forbid_merging(into);
        if self.hint == Link::to(into) {
            self.hint = Link::NONE;
        }
        None
    }

    fn find_neighbour(&self, rq: &Request) -> Option<(Tag, End)> {
        let (start, end) = (rq.start, rq.end());
        if let Some(hint) = self.hint.tag() {
            let hinted = &self.requests[hint].rq;
            let touches = match (hinted.end() == start, hinted.start == end) {
                (true, _) => Some(End::Back),
                (_, true) => Some(End::Front),
                _ => None,
            };
            if let Some(at) = touches
                && self.compatible(hint, rq)
            {
                return Some((hint, at));
            }
        }
        if let Some(tag) = self.index.ending_at(start).find(|&t| self.compatible(t, rq)) {
            return Some((tag, End::Back));
        }
        if !self.sched.front_merges() {
            return None;
        }
        let tag = self.index.starting_at(end).find(|&t| self.compatible(t, rq))?;
        Some((tag, End::Front))
    }

    fn compatible(&self, into: Tag, rq: &Request) -> bool {
        let slot = &self.requests[into];
        !slot.no_merge
            && slot.rq.op == rq.op
            && slot.rq.group == rq.group
            && self.sched.may_merge(&self.requests, into, rq)
    }

    fn fits(&self, into: Tag, len: Sectors, segments: u32) -> bool {
        let slot = &self.requests[into];
        u64::from(slot.rq.len.0) + u64::from(len.0) <= u64::from(self.limits.max_sectors.0)
            && slot.segments + segments <= u32::from(self.limits.max_segments)
    }

    fn merge(&mut self, into: Tag, end: End, tag: Tag, reason: Reason) {
        let action = if end == End::Back { Action::BackMerge } else { Action::FrontMerge };
        self.record(action, reason, tag);
        self.requests.merge(into, tag);
        // A merge at one end leaves the other where it was.
        let rq = self.requests[into].rq;
        match end {
            End::Back => self.index.move_end(into, rq.end()),
            End::Front => self.index.move_start(self.sched.edges(), into, rq.start),
        }
        self.sched.merged(cx!(self), into, end);
        self.hint = Link::to(into);
        self.hint_start = rq.start;
        self.join_neighbour(into, end);
    }

    /// After `tag` grew at `end`: if it touches another request there, makes the two one.
    fn join_neighbour(&mut self, tag: Tag, end: End) {
        let rq = self.requests[tag].rq;
        let joins = |&t: &Tag| t != tag && self.compatible(t, &rq);
        let other = match (self.sched.edges(), end) {
            (Edges::Both, End::Back) => self.index.starting_at(rq.end()).find(joins),
            (Edges::Both, End::Front) => self.index.ending_at(rq.start).find(joins),
            (Edges::Ends, _) => self.sched.neighbour(tag, end).filter(|&t| {
                let neighbour = &self.requests[t].rq;
                let touches =
                    if end == End::Back { neighbour.start == rq.end() } else { neighbour.end() == rq.start };
                touches && joins(&t)
            }),
        };
        let Some(other) = other else { return };
        // The one in front survives, as it does when the core joins a request with its neighbour.
        let (kept, gone) = if end == End::Back { (tag, other) } else { (other, tag) };
        let slot = self.requests[gone];
        if self.requests[kept].no_merge || !self.fits(kept, slot.rq.len, slot.segments) {
            return;
        }
        self.sched.joined(cx!(self), kept, gone);
        self.record(Action::Join, Reason::None, gone);
        self.books.groups.joined(kept, gone);
        self.index.remove(self.sched.edges(), gone);
        self.requests.merge(kept, gone);
        self.index.move_end(kept, slot.rq.end());
        self.hint = Link::to(kept);
        self.hint_start = self.requests[kept].rq.start;
    }

    #[inline]
    fn record(&mut self, action: Action, reason: Reason, tag: Tag) {
        if self.books.is_observed {
            self.observe(action, reason, tag);
        }
    }

    #[inline(never)]
    fn observe(&mut self, action: Action, reason: Reason, tag: Tag) {
        let slot = &self.requests[tag];
        self.books.groups.observe(self.now, action, reason, tag, slot);
        if self.books.trace.enabled() {
            self.books.trace.push(TraceEvent {
                at: self.now,
                action,
                reason,
                tag: Some(tag),
                task: slot.rq.task,
                start: slot.rq.start,
                len: slot.rq.len,
                detail: Detail::None,
            });
        }
    }
}
