//! Requests, and the table that holds them by the driver's tag.
//!
//! A request goes `Free → Queued → Issued → Free`, or first `Held` while its group's limit is used up. One
//! that was merged into another goes `Free → Merged → Free`: it leaves together with the request that carries
//! it. Only the elevator changes states; a scheduler reads slots and joins its own `Table<Tag, _>` by tag.

use crate::table::Table;
use crate::units::{Duration, GroupId, Instant, IoPrio, Sector, Sectors, Tag, TaskId};
use core::ops::Index;

/// The operation of a request. The driver orders flushes itself, so schedulers never see them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Op {
    /// A read, from disk to memory.
    Read,
    /// A write, from memory to disk.
    Write,
    /// A discard (trim): the contents are no longer needed.
    Discard,
}

/// One contiguous piece of I/O, as the driver inserts it.
///
/// ```
/// use fairhead_core::{Op, Request, Sector, Sectors, TaskId};
/// let write = Request { sync: true, ..Request::write(TaskId(7), Sector(100), Sectors(8)) };
/// assert_eq!((write.op, write.end()), (Op::Write, Sector(108)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The first sector.
    pub start: Sector,
    /// The number of sectors, at least one.
    pub len: Sectors,
    /// The operation: read, write or discard.
    pub op: Op,
    /// Whether a program waits for it: every read, and writes that are flagged as sync.
    pub sync: bool,
    /// Whether it reads or writes metadata (or is otherwise flagged urgent); some schedulers prefer it.
    pub meta: bool,
    /// Whether the submitter knows that no dependent request follows, so that idling for one is useless.
    pub no_idle: bool,
    /// The task that the request belongs to.
    pub task: TaskId,
    /// The group that it is charged to.
    pub group: GroupId,
    /// The I/O priority.
    pub prio: IoPrio,
}

impl Request {
    /// Makes a sync read by `task`, with default priority, in the root group.
    #[must_use]
    pub fn read(task: TaskId, start: Sector, len: Sectors) -> Self {
        Self {
            start,
            len,
            op: Op::Read,
            sync: true,
            meta: false,
            no_idle: false,
            task,
            group: GroupId::ROOT,
            prio: IoPrio::default(),
        }
    }

    /// Makes an async write by `task`, with default priority, in the root group.
    #[must_use]
    pub fn write(task: TaskId, start: Sector, len: Sectors) -> Self {
        Self { op: Op::Write, sync: false, ..Self::read(task, start, len) }
    }

    /// Returns the sector after the last one.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.start + self.len
    }
}

/// The state of a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not in use.
    Free,
    /// The request waits in the scheduler, or was handed back by the driver and waits to be issued again.
    Queued,
    /// The device has the request.
    Issued,
    /// Carried by another request.
    Merged,
    /// Waiting for a limit of its group, or of one above, before it goes to the scheduler.
    Held,
}

/// A tag's entry.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The request, with everything that was merged into it: start and length cover the whole.
    pub rq: Request,
    /// When the request was inserted, or came here after waiting for a limit; the earliest time of those
    /// merged into it.
    pub since: Instant,
    /// The state of the request.
    pub state: State,
    /// `since`, but never rounded down to a tick; while it waits for a limit, when it came.
    pub(crate) inserted: Instant,
    /// When the device last got it.
    pub(crate) issued: Instant,
    /// Never merge it, from the beginning or since a size limit was hit.
    pub(crate) no_merge: bool,
    pub(crate) segments: u32,
    /// Those merged into it, as a chain through `next`.
    first: Link,
    last: Link,
    next: Link,
}

impl Slot {
    /// Whether a request is here that waits or is at the device, and is not carried by another.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, State::Free | State::Merged)
    }
}

/// The largest segment: 64 KiB.
//= linux-2.6.33 include/linux/blkdev.h MAX_SEGMENT_SIZE
const SECTORS_PER_SEGMENT: u32 = 128;

/// A tag or none, in two bytes: tags are below 65535.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link(u16);

impl Link {
    pub(crate) const NONE: Self = Self(u16::MAX);

    pub(crate) const fn to(tag: Tag) -> Self {
        Self(tag.0)
    }

    #[inline]
    pub(crate) fn tag(self) -> Option<Tag> {
        (self != Self::NONE).then_some(Tag(self.0))
    }
}

/// The tags that a completion freed: the request's, and those that it carried.
#[derive(Debug)]
pub(crate) struct Freed<'a> {
    slots: &'a Table<Tag, Slot>,
    next: Link,
    /// The one behind `next`: so that a request which carries none needs no second look.
    after: Link,
}

impl Iterator for Freed<'_> {
    type Item = Tag;

    #[inline]
    fn next(&mut self) -> Option<Tag> {
        let tag = self.next.tag()?;
        self.next = self.after;
        if let Some(carried) = self.next.tag() {
            self.after = self.slots[carried].next;
        }
        Some(tag)
    }
}

/// All requests by tag, with counts by state.
#[derive(Clone, Debug)]
pub struct Requests {
    slots: Table<Tag, Slot>,
    queued: u32,
    issued: u32,
    merged: u32,
    held: u32,
}

impl Index<Tag> for Requests {
    type Output = Slot;
    #[inline]
    fn index(&self, tag: Tag) -> &Slot {
        &self.slots[tag]
    }
}

impl Requests {
    pub(crate) fn new(tags: u16) -> Self {
        let slot = Slot {
            rq: Request::read(TaskId(0), Sector(0), Sectors(1)),
            since: Instant::EPOCH,
            state: State::Free,
            inserted: Instant::EPOCH,
            issued: Instant::EPOCH,
            no_merge: false,
            segments: 0,
            first: Link::NONE,
            last: Link::NONE,
            next: Link::NONE,
        };
        Self { slots: Table::new(usize::from(tags), slot), queued: 0, issued: 0, merged: 0, held: 0 }
    }

    /// How many tags there are.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many requests wait in the scheduler, or have been handed back; merged ones do not count.
    #[must_use]
    pub const fn queued(&self) -> u32 {
        self.queued
    }

    /// How many requests the device has.
    #[must_use]
    pub const fn issued(&self) -> u32 {
        self.issued
    }

    /// How many requests are carried by others.
    #[must_use]
    pub const fn merged(&self) -> u32 {
        self.merged
    }

    /// How many requests wait for limits of groups, and are not in the scheduler yet.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn claim(&mut self, tag: Tag, rq: &Request, now: Instant, shown: Instant) {
        let slot = self.slots.get_mut(tag).expect("unknown tag");
        assert!(slot.state == State::Free, "tag already in use");
        assert!(rq.len.0 > 0, "empty request");
        assert!(rq.start.0.checked_add(u64::from(rq.len.0)).is_some(), "request past the last sector number");
        slot.rq = *rq;
        (slot.since, slot.inserted, slot.state, slot.no_merge) = (shown, now, State::Queued, false);
        slot.segments = (rq.len.0 - 1) / SECTORS_PER_SEGMENT + 1;
        (slot.first, slot.last, slot.next) = (Link::NONE, Link::NONE, Link::NONE);
        self.queued += 1;
    }

    /// It has to wait for a limit.
    pub(crate) fn hold(&mut self, tag: Tag) {
        self.slots[tag].state = State::Held;
        self.queued -= 1;
        self.held += 1;
    }

    /// It need not wait for a limit any longer. Returns how long it has.
    pub(crate) fn let_go(&mut self, tag: Tag, now: Instant, shown: Instant) -> Duration {
        let slot = &mut self.slots[tag];
        let waited = now.saturating_since(slot.inserted);
        (slot.state, slot.since, slot.inserted) = (State::Queued, shown, now);
        self.held -= 1;
        self.queued += 1;
        waited
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn issue(&mut self, tag: Tag, now: Instant) {
        let slot = &mut self.slots[tag];
        assert!(slot.state == State::Queued, "issued, but not queued");
        (slot.state, slot.issued) = (State::Issued, now);
        self.queued -= 1;
        self.issued += 1;
    }

    #[track_caller]
    pub(crate) fn requeue(&mut self, tag: Tag) {
        let slot = self.slots.get_mut(tag).expect("unknown tag");
        assert!(slot.state == State::Issued, "requeued, but not issued");
        slot.state = State::Queued;
        slot.no_merge = true;
        self.queued += 1;
        self.issued -= 1;
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn assert_issued(&self, tag: Tag) {
        let slot = self.slots.get(tag).expect("unknown tag");
        assert!(slot.state == State::Issued, "completed, but not issued");
    }

    /// Frees `tag` and those that it carries, and answers the first of the latter, for [`Self::freed`].
    #[inline(always)]
    pub(crate) fn free(&mut self, tag: Tag) -> Link {
        self.issued -= 1;
        let slot = &mut self.slots[tag];
        slot.state = State::Free;
        let carried = slot.first;
        if carried == Link::NONE { carried } else { self.free_carried(carried) }
    }

    #[inline]
    pub(crate) fn freed(&self, tag: Tag, carried: Link) -> Freed<'_> {
        Freed { slots: &self.slots, next: Link::to(tag), after: carried }
    }

    /// Answers the first again, so that the caller need not keep it.
    #[inline(never)]
    fn free_carried(&mut self, first: Link) -> Link {
        let mut at = first;
        while let Some(carried) = at.tag() {
            self.slots[carried].state = State::Free;
            self.merged -= 1;
            at = self.slots[carried].next;
        }
        first
    }

    pub(crate) fn forbid_merging(&mut self, tag: Tag) {
        self.slots[tag].no_merge = true;
    }

    /// Makes `kept` carry `gone` with all that it carries, and cover both.
    pub(crate) fn merge(&mut self, kept: Tag, gone: Tag) {
        let g = self.slots[gone];
        self.slots[gone].state = State::Merged;
        self.queued -= 1;
        self.merged += 1;
        let k = &mut self.slots[kept];
        let last = k.last;
        k.rq.start = k.rq.start.min(g.rq.start);
        k.rq.len = k.rq.len + g.rq.len;
        // The merged request is as urgent as the most urgent part, as old as the oldest, and idled for unless
        // all parts say not to.
        k.rq.prio = k.rq.prio.min(g.rq.prio);
        k.rq.meta |= g.rq.meta;
        k.rq.no_idle &= g.rq.no_idle;
        k.since = k.since.min(g.since);
        k.inserted = k.inserted.min(g.inserted);
        k.segments = k.segments.saturating_add(g.segments);
        k.last = Link::to(g.last.tag().unwrap_or(gone));
        match last.tag() {
            Some(l) => self.slots[l].next = Link::to(gone),
            None => k.first = Link::to(gone),
        }
        self.slots[gone].next = g.first;
    }

    /// Makes `tag` cover `added`, which touches it at one end.
    pub(crate) fn grow(&mut self, tag: Tag, added: &Request) {
        let slot = self.slots.get_mut(tag).expect("unknown tag");
        assert!(slot.state == State::Queued && !slot.no_merge, "grown, but not with the scheduler");
        let len = slot.rq.len.0.checked_add(added.len.0).expect("a request of 2 TiB or more");
        slot.rq.start = slot.rq.start.min(added.start);
        assert!(slot.rq.start.0.checked_add(u64::from(len)).is_some(), "request past the last sector number");
        slot.rq.len = Sectors(len);
    }

    /// Checks that `gone` can become a part of `kept`.
    pub(crate) fn assert_joins(&self, kept: Tag, gone: Tag) {
        let [k, g] = [kept, gone].map(|tag| self.slots.get(tag).expect("unknown tag"));
        let both = [k, g].iter().all(|slot| slot.state == State::Queued && !slot.no_merge);
        assert!(kept != gone && both, "joined, but not with the scheduler");
        assert!(k.rq.end() == g.rq.start, "joined, but they do not touch");
        assert!(k.rq.len.0.checked_add(g.rq.len.0).is_some(), "a request of 2 TiB or more");
    }

    /// Makes `kept` cover `gone` and carry what that carried; the tag `gone` is free.
    pub(crate) fn absorb(&mut self, kept: Tag, gone: Tag) {
        self.merge(kept, gone);
        // `gone` is the first behind those that `kept` carried before.
        let next = self.slots[gone].next;
        let before = self.carried(kept).take_while(|&t| t != gone).last();
        match before {
            Some(before) => self.slots[before].next = next,
            None => self.slots[kept].first = next,
        }
        if self.slots[kept].last == Link::to(gone) {
            self.slots[kept].last = before.map_or(Link::NONE, Link::to);
        }
        self.slots[gone].state = State::Free;
        self.merged -= 1;
    }

    /// The entry of `tag`; `None` if there is no such tag.
    pub(crate) fn get(&self, tag: Tag) -> Option<&Slot> {
        self.slots.get(tag)
    }

    /// The requests that `tag` carries.
    pub fn carried(&self, tag: Tag) -> impl Iterator<Item = Tag> + '_ {
        core::iter::successors(self.slots[tag].first.tag(), |&t| self.slots[t].next.tag())
    }

    /// Whether a request that waits or is at the device is of a group of which `of` says so.
    pub(crate) fn has_any(&self, of: impl Fn(GroupId) -> bool) -> bool {
        self.iter().any(|(_, slot)| slot.is_alive() && of(slot.rq.group))
    }

    /// All tags with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Tag, &Slot)> {
        self.slots.iter()
    }

    pub(crate) fn check(&self) {
        let (mut counts, mut carried) = ([0; 5], 0);
        for (tag, slot) in self.slots.iter() {
            counts[slot.state as usize] += 1;
            if matches!(slot.state, State::Queued | State::Issued) {
                for t in self.carried(tag) {
                    assert!(self.slots[t].state == State::Merged, "carries a request that is not merged");
                    carried += 1;
                }
            }
        }
        let ours = [self.queued, self.issued, self.merged, self.held];
        assert_eq!(&counts[1..], ours, "counts by state");
        assert_eq!(carried, self.merged, "a merged request is carried by exactly one other");
    }
}
