//! What the request round robin and the time slices share: a queue per task, the choice of a request within a
//! queue, and the dispatch list.
//!
//! ```text
//!              a queue per task                         rr: who is next
//!   insert ──► sorted tree │ best candidate │ fifos  ◄── (ordered by the policy's key)
//!                                │ move_next
//!                                ▼
//!                          dispatch list ──► issue ──► device
//!                 in flight: ├───────────────────────────────┤
//!                 in driver:                         ├───────┤
//! ```
//!
//! Which queue may move requests, and how many, is the policy's: this module has no notion of a slice or of
//! service. `S` is what the policy remembers about each queue.
//!
//= linux-2.6.11 drivers/block/cfq-iosched.c
//= docs/reference/cfq.md#32-version-2, docs/reference/cfq.md#33-best-request

use super::PickRules;
use crate::elevator::{Cx, End, Limits};
use crate::parts::choose::{BackSeek, first_is_nearer};
use crate::parts::dispatch_list::{DispatchList, Placed};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::tasks::{TaskMap, TaskSlot};
use crate::parts::tree::{Forest, Tree};
use crate::request::{Request, Requests, State};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Instant, Sector, Tag, TaskId};

/// The task of notes about the queue that tasks share when there are too many.
const FALLBACK_TASK: TaskId = TaskId(u32::MAX);

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Not here.
    None,
    /// In its task's queue.
    Pending,
    /// On the dispatch list.
    Listed,
    /// At the device.
    Device,
    /// Handed back by the device; the elevator has it.
    HandedBack,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    queue: TaskSlot,
    place: Place,
    /// Why it was moved to the dispatch list.
    why: Reason,
}

/// One task's requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue<S> {
    sorted: Tree,
    /// The one that is cheapest to reach.
    next: Option<Tag>,
    /// In order of arrival: async ones, sync ones.
    fifo: [Fifo<Tag>; 2],
    last_fifo_expire: Option<Instant>,
    /// How many have been moved to the dispatch list and are not complete.
    in_flight: u32,
    /// When its last request was complete.
    last: Option<Instant>,
    exited: bool,
    /// The policy's own.
    pub(super) service: S,
}

impl<S> Queue<S> {
    /// Whether requests wait in it.
    pub(super) const fn is_busy(&self) -> bool {
        !self.sorted.is_empty()
    }

    /// How many have been moved to the dispatch list and are not complete.
    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

/// What an insertion did.
pub(super) struct Inserted {
    /// Into which queue.
    pub(super) queue: TaskSlot,
    /// Whether that queue had no requests before, so that it must be filed.
    pub(super) became_busy: bool,
}

/// Which of two is cheaper to reach with the head at `last`.
fn nearer(requests: &Requests, a: Option<Tag>, b: Option<Tag>, last: Sector, back: BackSeek) -> Option<Tag> {
    let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
    let keep = first_is_nearer(requests[first].rq.start, requests[second].rq.start, last, back);
    Some(if keep { first } else { second })
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Queues<S> {
    rules: PickRules,
    tasks: TaskMap,
    queues: Table<TaskSlot, Queue<S>>,
    entries: Table<Tag, Entry>,
    sorted: Forest<Tag>,
    fifos: Links<Tag>,
    /// The busy queues, in the policy's order.
    rr: Tree,
    order: Forest<TaskSlot>,
    list: DispatchList,
    /// Where the head will be after what was moved last.
    last_sector: Sector,
    in_driver: u32,
}

impl<S> core::ops::Index<TaskSlot> for Queues<S> {
    type Output = Queue<S>;
    fn index(&self, queue: TaskSlot) -> &Queue<S> {
        &self.queues[queue]
    }
}

impl<S> core::ops::IndexMut<TaskSlot> for Queues<S> {
    fn index_mut(&mut self, queue: TaskSlot) -> &mut Queue<S> {
        &mut self.queues[queue]
    }
}

impl<S: Copy + Default> Queues<S> {
    /// Allocates.
    pub(super) fn new(limits: &Limits, rules: PickRules) -> Self {
        let tags = usize::from(limits.tags);
        let tasks = TaskMap::new(limits.tasks);
        let slots = tasks.table_len();
        let entry = Entry { queue: tasks.fallback(), place: Place::None, why: Reason::None };
        Self {
            rules,
            tasks,
            queues: Table::new(slots, Queue::default()),
            entries: Table::new(tags, entry),
            sorted: Forest::new(tags),
            fifos: Links::new(tags),
            rr: Tree::default(),
            order: Forest::new(slots),
            list: DispatchList::new(limits.tags),
            last_sector: Sector::default(),
            in_driver: 0,
        }
    }

    /// A request arrives. The policy files the queue if it became busy. `active` is the queue whose turn it
    /// is.
    pub(super) fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag, active: Option<TaskSlot>) -> Inserted {
        let &Request { start, sync, task, .. } = &cx.requests[tag].rq;
        let (mut slot, mut is_new) = self.tasks.claim(task);
        if slot == self.tasks.fallback() && self.make_room(cx.now, active) {
            (slot, is_new) = self.tasks.claim(task);
        }
        if is_new {
            self.queues[slot] = Queue::default();
        }
        let queue = &mut self.queues[slot];
        let became_busy = queue.sorted.is_empty();
        self.sorted.insert(&mut queue.sorted, tag, start.0);
        self.fifos.push_back(&mut queue.fifo[usize::from(sync)], tag);
        self.entries[tag] = Entry { queue: slot, place: Place::Pending, why: Reason::None };
        if became_busy {
            queue.next = Some(tag);
        } else {
            self.offer_next(cx.requests, tag);
            // The tree of that time could not hold two requests that start alike: the older one goes.
            let alias = self.sorted.prev(tag).filter(|&t| self.sorted.key(t) == start.0);
            if let Some(alias) = alias {
                self.push_out(cx.requests, slot, alias);
            }
        }
        Inserted { queue: slot, became_busy }
    }

    /// Forgets a task that has been idle for long, so that another can have its queue. Returns whether there
    /// was one.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: Instant, active: Option<TaskSlot>) -> bool {
        let Self { tasks, queues, .. } = self;
        let eldest = tasks.eldest(now, |slot| {
            let queue = &queues[slot];
            let stays = queue.is_busy() || queue.in_flight > 0 || queue.exited || active == Some(slot);
            (!stays).then(|| queue.last.unwrap_or(Instant::EPOCH))
        });
        if let Some(slot) = eldest {
            self.tasks.release(slot);
        }
        eldest.is_some()
    }

    /// Files a queue that became busy, under the policy's key.
    pub(super) fn file(&mut self, queue: TaskSlot, key: u64) {
        self.order.insert(&mut self.rr, queue, key);
    }

    /// Files a busy queue under another key.
    pub(super) fn refile(&mut self, queue: TaskSlot, key: u64) {
        if self.order.key(queue) != key {
            self.order.set_key(&mut self.rr, queue, key);
        }
    }

    /// The busy queue with the smallest key.
    pub(super) fn first_busy(&self) -> Option<TaskSlot> {
        self.order.first(&self.rr)
    }

    /// The busy queue behind a busy one.
    pub(super) fn next_busy(&self, queue: TaskSlot) -> Option<TaskSlot> {
        self.order.next(queue)
    }

    /// Moves the busy queue's best request to the dispatch list and returns it.
    pub(super) fn move_next(&mut self, cx: &mut Cx<'_>, queue: TaskSlot) -> Tag {
        let (tag, why) = self.pick(cx, queue);
        self.last_sector = cx.requests[tag].rq.end();
        self.move_to_list(cx.requests, queue, tag, why);
        tag
    }

    /// Whether the driver has taken all that was chosen.
    pub(super) const fn list_is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The head of the dispatch list goes to the device.
    pub(super) fn issue(&mut self, cx: &mut Cx<'_>) -> Option<(Tag, TaskSlot)> {
        let tag = self.list.pop()?;
        let entry = &mut self.entries[tag];
        entry.place = Place::Device;
        cx.why = entry.why;
        self.in_driver += 1;
        Some((tag, entry.queue))
    }

    /// Any request goes to the device.
    pub(super) fn drain(&mut self, cx: &mut Cx<'_>) -> Option<(Tag, TaskSlot)> {
        if self.list.is_empty() {
            let queue = self.first_busy()?;
            let _ = self.move_next(cx, queue);
        }
        self.issue(cx)
    }

    /// How many requests the device has.
    pub(super) const fn in_driver(&self) -> u32 {
        self.in_driver
    }

    /// The device finished a request. Returns its queue.
    pub(super) fn complete(&mut self, now: Instant, tag: Tag) -> TaskSlot {
        self.in_driver -= 1;
        let entry = &mut self.entries[tag];
        entry.place = Place::None;
        let queue = &mut self.queues[entry.queue];
        queue.in_flight -= 1;
        queue.last = Some(now);
        entry.queue
    }

    /// The device handed a request back: it is still in flight, but not in the driver. Returns its queue.
    pub(super) fn requeue(&mut self, tag: Tag) -> TaskSlot {
        self.in_driver -= 1;
        self.entries[tag].place = Place::HandedBack;
        self.entries[tag].queue
    }

    /// The device gets a request again that it had handed back. Returns its queue.
    pub(super) fn reissue(&mut self, tag: Tag) -> TaskSlot {
        self.in_driver += 1;
        self.entries[tag].place = Place::Device;
        self.entries[tag].queue
    }

    /// Whether `rq` may be appended to, or put in front of, `into`.
    ///
    /// Into nothing that is on the dispatch list. A back merge may cross queues, because the index of ends is
    /// the device's; a front merge may not, because it was looked up in the submitter's own tree.
    pub(super) fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        let entry = &self.entries[into];
        if entry.place != Place::Pending {
            return false;
        }
        let is_front = rq.end() == requests[into].rq.start;
        !is_front || self.tasks.find(rq.task).unwrap_or(self.tasks.fallback()) == entry.queue
    }

    /// `kept` has grown.
    pub(super) fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Front {
            let queue = &mut self.queues[self.entries[kept].queue];
            self.sorted.set_key(&mut queue.sorted, kept, cx.requests[kept].rq.start.0);
            self.offer_next(cx.requests, kept);
        }
    }

    /// `gone` becomes part of `kept`; both wait in queues, possibly in two. Returns the queue of `gone`.
    pub(super) fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) -> TaskSlot {
        let (k, g) = (&cx.requests[kept], &cx.requests[gone]);
        let queue = self.entries[kept].queue;
        if g.since < k.since && g.rq.sync == k.rq.sync && self.entries[gone].queue == queue {
            let fifo = &mut self.queues[queue].fifo[usize::from(k.rq.sync)];
            self.fifos.remove(fifo, kept);
            self.fifos.insert_before(fifo, gone, kept);
        }
        let entry = &mut self.entries[gone];
        entry.place = Place::None;
        let queue = entry.queue;
        self.take(cx.requests, queue, gone, cx.requests[gone].rq.sync);
        queue
    }

    /// A task has exited. Returns its queue, if it has one of its own; [`Self::release_if_done`] gives that
    /// back.
    pub(super) fn exit(&mut self, task: TaskId) -> Option<TaskSlot> {
        let queue = self.tasks.find(task)?;
        self.queues[queue].exited = true;
        Some(queue)
    }

    /// Gives the queue of a task that is gone back, once nothing of it is left.
    pub(super) fn release_if_done(&mut self, queue: TaskSlot) {
        let q = &self.queues[queue];
        if q.exited && !q.is_busy() && q.in_flight == 0 {
            self.tasks.release(queue);
        }
    }

    /// Returns the task of a queue, for notes.
    pub(super) fn task(&self, queue: TaskSlot) -> TaskId {
        self.tasks.task(queue).unwrap_or(FALLBACK_TASK)
    }

    /// The request that a busy queue is to give, and why.
    fn pick(&mut self, cx: &Cx<'_>, queue: TaskSlot) -> (Tag, Reason) {
        let queue = &mut self.queues[queue];
        if queue.last_fifo_expire.is_none_or(|at| cx.now >= at + self.rules.fifo_batch_expire) {
            for (kind, limit) in self.rules.fifo_limits {
                if let Some(tag) = queue.fifo[usize::from(kind)].first()
                    && cx.now > cx.requests[tag].since + limit
                {
                    queue.last_fifo_expire = Some(cx.now);
                    return (tag, Reason::FifoExpired);
                }
            }
        }
        let best = if self.rules.find_best { queue.next } else { None };
        let tag = best.or_else(|| self.sorted.first(&queue.sorted)).expect("a busy queue has a request");
        (tag, Reason::Nearest)
    }

    /// Makes `tag` its queue's best candidate if it is cheaper to reach than the present one.
    fn offer_next(&mut self, requests: &Requests, tag: Tag) {
        let queue = &mut self.queues[self.entries[tag].queue];
        queue.next = nearer(requests, queue.next, Some(tag), self.last_sector, self.rules.back);
    }

    /// Takes a request out of `slot`, its queue, which may be idle then.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once per request; with the next, saves 50 instructions of 580")]
    fn take(&mut self, requests: &Requests, slot: TaskSlot, tag: Tag, sync: bool) {
        let queue = &mut self.queues[slot];
        if queue.sorted.len() == 1 {
            queue.next = None;
            self.order.remove(&mut self.rr, slot);
        } else if queue.next == Some(tag) {
            let lowest = || self.sorted.first(&queue.sorted).filter(|&t| t != tag);
            let after = self.sorted.next(tag).or_else(lowest);
            let before = self.sorted.prev(tag);
            queue.next = nearer(requests, after, before, self.last_sector, self.rules.back);
        }
        self.sorted.remove(&mut queue.sorted, tag);
        self.fifos.remove(&mut queue.fifo[usize::from(sync)], tag);
    }

    /// Moves a request out of turn.
    #[cold]
    fn push_out(&mut self, requests: &Requests, queue: TaskSlot, tag: Tag) {
        self.move_to_list(requests, queue, tag, Reason::Arrival);
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn move_to_list(&mut self, requests: &Requests, queue: TaskSlot, tag: Tag, why: Reason) {
        let rq = &requests[tag].rq;
        self.take(requests, queue, tag, rq.sync);
        if self.list.insert(requests, tag, self.last_sector) == Placed::NextSweep {
            self.last_sector = rq.start;
        }
        self.entries[tag] = Entry { queue, place: Place::Listed, why };
        self.queues[queue].in_flight += 1;
    }

    /// Panics if anything is inconsistent.
    pub(super) fn check(&self, requests: &Requests) {
        self.order.check(&self.rr);
        for (slot, queue) in self.queues.iter() {
            self.sorted.check(&queue.sorted);
            assert_eq!(queue.is_busy(), self.order.contains(slot), "filed if and only if busy");
            assert_eq!(queue.is_busy(), queue.next.is_some(), "a busy queue has a candidate");
            assert!(queue.next.is_none_or(|t| self.entries[t].queue == slot), "someone else's candidate");
            let waiting = queue.fifo[0].len() + queue.fifo[1].len();
            assert_eq!(queue.sorted.len(), waiting, "tree and fifos disagree");
            let of_queue = |t: Tag| self.entries[t].queue == slot && self.entries[t].place == Place::Pending;
            assert!(self.sorted.iter(&queue.sorted).all(of_queue), "in a queue that is not its own");
        }
        for (tag, slot) in requests.iter() {
            let expected = match self.entries[tag].place {
                Place::None => matches!(slot.state, State::Free | State::Merged | State::Held),
                Place::Pending | Place::Listed | Place::HandedBack => slot.state == State::Queued,
                Place::Device => slot.state == State::Issued,
            };
            assert!(expected, "a request's place and state disagree");
        }
        let count = |wanted: fn(Place) -> bool| self.entries.iter().filter(|(_, e)| wanted(e.place)).count();
        assert_eq!(count(|p| p == Place::Device), self.in_driver as usize, "in driver");
        assert_eq!(count(|p| p == Place::Listed), self.list.iter().count(), "on the list");
        let in_flight: u32 = self.queues.iter().map(|(_, q)| q.in_flight).sum();
        assert_eq!(count(|p| !matches!(p, Place::None | Place::Pending)), in_flight as usize, "in flight");
    }
}
