//! The oracle of conservation: every request is issued exactly once, alone or merged, and completes exactly
//! once.
//!
//! It believes nothing that it can work out itself. It knows what was handed in, and checks each answer
//! against that: a merge joins neighbours of one direction and group, an issued request covers exactly the
//! sectors of those that it carries, a completion frees exactly those. Only *which* requests an issued one
//! carries, and which wait for limits, is read from the elevator.
//!
//! What groups got is counted here too, with a tree of groups of its own, and must be what their books say.

use super::tally::Tally;
use fairhead_core::sched::any::AnyScheduler;
use fairhead_core::trace::{Action, Reason};
use fairhead_core::{
    Control, Elevator, End, GroupId, Insert, Instant, Limits, Op, Request, Requests, State, Tag, TraceEvent,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In the elevator, alone or carried.
    Waiting,
    /// At the device, with the request that carries it.
    Device,
    /// Handed back by the device.
    Returned,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    rq: Request,
    /// Of the moment when it came.
    group: GroupId,
    /// When it came, or had waited for limits.
    at: Instant,
    place: Place,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) tag: Tag,
    pub(crate) rq: Request,
    pub(crate) inserted: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: Limits,
    entries: BTreeMap<u16, Entry>,
    /// The merged requests, by the request that carries them at the device or was handed back.
    carried: BTreeMap<u16, Vec<Tag>>,
    returned: VecDeque<Tag>,
    /// The requests that wait for limits.
    held: BTreeSet<u16>,
    /// The requests that must stay alone.
    alone: BTreeSet<u16>,
    tally: Tally,
    waiting: usize,
    pub(crate) inserted: u64,
    pub(crate) merged: u64,
}

impl Ledger {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            carried: BTreeMap::new(),
            returned: VecDeque::new(),
            held: BTreeSet::new(),
            alone: BTreeSet::new(),
            tally: Tally::new(limits.groups),
            waiting: 0,
            inserted: 0,
            merged: 0,
        }
    }

    /// How many requests wait to be issued, carried ones included.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many requests the device has, each with those that it carries.
    pub(crate) fn at_device(&self) -> usize {
        self.carried.len() - self.returned.len()
    }

    /// A tag that is not in use.
    pub(crate) fn free_tag(&self) -> Option<Tag> {
        let used = u16::try_from(self.entries.len()).unwrap();
        // Most of the time one of the first is free; look from a place that moves, so that all tags are used.
        let from = u16::try_from(self.inserted % u64::from(self.limits.tags)).unwrap();
        (used < self.limits.tags).then_some(())?;
        (from..self.limits.tags).chain(0..from).find(|t| !self.entries.contains_key(t)).map(Tag)
    }

    pub(crate) fn insert(&mut self, now: Instant, tag: Tag, rq: Request, answer: Insert, table: &Requests) {
        let group = self.tally.home(rq.group);
        let previous = self.entries.insert(tag.0, Entry { rq, group, at: now, place: Place::Waiting });
        assert!(previous.is_none(), "the test inserted tag {tag:?} twice");
        self.inserted += 1;
        self.waiting += 1;
        match answer {
            Insert::Queued if table[tag].state == State::Held => drop(self.held.insert(tag.0)),
            Insert::Queued => assert_eq!(table[tag].state, State::Queued, "{tag:?} was queued"),
            Insert::Merged { into, end } => {
                self.merged += 1;
                self.merged_into(tag, &rq, into, end, table);
            }
        }
    }

    /// The request that has just been inserted must stay alone.
    pub(crate) fn stays_alone(&mut self, tag: Tag) {
        self.alone.insert(tag.0);
    }

    /// After every call, before anything else: some may not have to wait for limits any longer.
    pub(crate) fn let_pass(&mut self, now: Instant, table: &Requests) {
        let passed: Vec<u16> =
            self.held.iter().copied().filter(|&t| table[Tag(t)].state != State::Held).collect();
        for tag in passed {
            self.held.remove(&tag);
            self.entries.get_mut(&tag).expect("held a request that was not inserted").at = now;
        }
    }

    /// A change was made.
    pub(crate) fn control(&mut self, change: &Control) {
        self.tally.control(change);
    }

    /// The books of groups against ours.
    pub(crate) fn check_groups(&self, elevator: &Elevator<AnyScheduler>) {
        let table = elevator.requests();
        let of = |(&t, e): (&u16, &Entry)| {
            (e.group, e.place != Place::Device, table[Tag(t)].state == State::Merged)
        };
        self.tally.check(elevator, self.entries.iter().map(of));
    }

    fn merged_into(&self, tag: Tag, rq: &Request, into: Tag, end: End, table: &Requests) {
        assert!(self.limits.merges, "merged although merging is off");
        let other = self.entries.get(&into.0).expect("merged into a request that was not inserted");
        assert_eq!(other.place, Place::Waiting, "merged into {into:?}, which is not waiting");
        assert_eq!(table[tag].state, State::Merged, "{tag:?} was merged");
        let head = self.head_of(into, table);
        let family: Vec<_> = members(head, table).map(|t| self.entries[&t.0].rq).collect();
        let touches = family.iter().any(|m| match end {
            End::Back => m.end() == rq.start,
            End::Front => m.start == rq.end(),
        });
        assert!(touches, "{tag:?} {rq:?} was merged into {into:?} at its {end:?}, but does not touch it");
        self.check_family(head, table);
    }

    /// The request that stands for `tag`: itself, or the one that carries it.
    fn head_of(&self, tag: Tag, table: &Requests) -> Tag {
        if table[tag].state == State::Queued {
            return tag;
        }
        let heads = table.iter().filter(|(_, slot)| slot.state == State::Queued);
        heads
            .map(|(head, _)| head)
            .find(|&head| table.carried(head).any(|t| t == tag))
            .expect("a merged request is carried by a queued one")
    }

    /// A request must look like the union of those it carries: gapless, without overlap, of one direction, in
    /// limits.
    fn check_family(&self, head: Tag, table: &Requests) {
        let whole = table[head].rq;
        let mut family: Vec<(Tag, Request, Instant)> = members(head, table)
            .map(|t| {
                let entry =
                    self.entries.get(&t.0).unwrap_or_else(|| panic!("{head:?} carries {t:?} from nowhere"));
                (t, entry.rq, entry.at)
            })
            .collect();
        family.sort_by_key(|(_, rq, _)| rq.start);
        assert_eq!(whole.start, family[0].1.start, "{head:?}: first sector");
        let mut at = whole.start;
        let (mut sectors, mut segments) = (0, 0);
        for (tag, rq, _) in &family {
            assert_eq!(rq.start, at, "{head:?}: sectors before {tag:?} are missing or covered twice");
            assert_eq!(rq.op, whole.op, "{head:?}: {tag:?} goes the other way");
            let (ours, theirs) = (self.entries[&tag.0].group, self.entries[&head.0].group);
            assert_eq!((ours, ours), (theirs, whole.group), "{head:?}: {tag:?} is of another group");
            at = rq.end();
            sectors += u64::from(rq.len.0);
            segments += u64::from(rq.len.0).div_ceil(SEGMENT_SECTORS);
        }
        assert_eq!(sectors, u64::from(whole.len.0), "{head:?}: length");
        if family.len() > 1 {
            let alone = family.iter().find(|f| self.alone.contains(&f.0.0));
            assert!(alone.is_none(), "{head:?}: {alone:?} was to stay alone");
            assert!(sectors <= u64::from(self.limits.max_sectors.0), "{head:?}: merged to {sectors} sectors");
            assert!(
                segments <= u64::from(self.limits.max_segments),
                "{head:?}: merged to {segments} segments"
            );
        }
        let oldest = family.iter().map(|f| f.2).min().unwrap().floor_to(self.limits.tick);
        assert_eq!(table[head].since, oldest, "{head:?}: as old as its oldest part");
    }

    pub(crate) fn issue(&mut self, now: Instant, tag: Tag, table: &Requests) {
        let Request { group, len, .. } = table[tag].rq;
        self.tally.issued(now, tag, group, if self.returned.front() == Some(&tag) { 0 } else { len.0 });
        assert_eq!(table[tag].state, State::Issued, "{tag:?} was issued");
        let mut family: Vec<Tag> = members(tag, table).collect();
        family.sort_unstable();
        if let Some(returned) = self.returned.pop_front() {
            assert_eq!(tag, returned, "requests that were handed back go first, in order");
            assert_eq!(Some(&family), self.carried.get(&tag.0), "{tag:?} changed while it was handed back");
        } else {
            self.check_family(tag, table);
        }
        for member in &family {
            let entry = self.entries.get_mut(&member.0).expect("issued a request that was not inserted");
            assert!(entry.place != Place::Device, "{member:?} was issued twice");
            entry.place = Place::Device;
        }
        self.waiting -= family.len();
        self.carried.insert(tag.0, family);
    }

    /// Books the completion of `tag`; the answer is valid until the next call.
    pub(crate) fn complete(&mut self, now: Instant, tag: Tag, freed: &[Tag]) -> Vec<Done> {
        let family = self.carried.remove(&tag.0).expect("the test completed what was not issued");
        let mut freed = freed.to_vec();
        freed.sort_unstable();
        assert_eq!(freed, family, "completing {tag:?} frees it and those it carries, each once");
        let bytes = family.iter().map(|t| self.entries[&t.0].rq.len.bytes()).sum();
        let head = &self.entries[&tag.0];
        let oldest = family.iter().map(|t| self.entries[&t.0].at).min().expect("itself at least");
        self.tally.completed(now, tag, head.group, &head.rq, oldest, (bytes, family.len() as u64 - 1));
        let done = |t: &Tag| {
            self.alone.remove(&t.0);
            let entry = self.entries.remove(&t.0).expect("completed a request that was not inserted");
            assert_eq!(entry.place, Place::Device, "{t:?} completed, but was not at the device");
            Done { tag: *t, rq: entry.rq, inserted: entry.at }
        };
        family.iter().map(done).collect()
    }

    pub(crate) fn requeue(&mut self, tag: Tag) {
        let family = &self.carried[&tag.0];
        for member in family {
            self.entries.get_mut(&member.0).expect("at the device").place = Place::Returned;
        }
        self.waiting += family.len();
        self.returned.push_back(tag);
    }

    /// The elevator's own counts against ours.
    pub(crate) fn check_counts(&self, table: &Requests) {
        let theirs = table.queued() + table.issued() + table.merged() + table.held();
        assert_eq!(theirs as usize, self.entries.len(), "requests in the elevator's books and in ours");
        assert_eq!(table.issued() as usize, self.at_device(), "requests at the device");
        assert_eq!(table.queued() + table.held() == 0, self.waiting == 0, "whether any request waits");
        assert_eq!(table.held() as usize, self.held.len(), "requests that wait for limits");
    }

    /// Whether a request that was inserted last waits for limits.
    pub(crate) fn is_held(&self, tag: Tag) -> bool {
        self.held.contains(&tag.0)
    }

    /// What the elevator recorded for one call: exactly `expected` besides notes, joins, and those that need
    /// not wait for limits any longer, at `now`.
    pub(crate) fn check_trace(now: Instant, events: &[TraceEvent], expected: Option<(Action, Tag)>) {
        let (mut seen, mut has_merged) = (None, false);
        for event in events {
            has_merged |= matches!(event.action, Action::BackMerge | Action::FrontMerge);
            match event.action {
                Action::Note if event.reason != Reason::Limit => {}
                Action::Join => assert!(has_merged, "a join follows a merge"),
                Action::Insert | Action::BackMerge | Action::FrontMerge if event.reason == Reason::Limit => {}
                action => {
                    assert_eq!(event.at, now, "recorded at another time: {event:?}");
                    assert!(seen.is_none(), "recorded twice: {event:?}");
                    seen = event.tag.map(|tag| (action, tag));
                }
            }
        }
        assert_eq!(seen, expected, "recorded event");
    }
}

/// 64 KiB, the largest segment.
//= linux-2.6.33 include/linux/blkdev.h MAX_SEGMENT_SIZE
const SEGMENT_SECTORS: u64 = 65536 / 512;

fn members(head: Tag, table: &Requests) -> impl Iterator<Item = Tag> + '_ {
    std::iter::once(head).chain(table.carried(head))
}

/// All operations.
pub(crate) const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Discard];
