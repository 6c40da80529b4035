//! The queues with their requests: which queue there is for a request, and which of a queue's requests is
//! next.
//!
//! It knows no trees, no slices and no device. What there is of one queue is in [`queue`](super::queue).
//
//= linux-2.6.33 block/cfq-iosched.c cfq_choose_req, cfq_find_next_rq, cfq_check_fifo
//= docs/reference/cfq.md#33-best-request

use super::queue::{Context, Queue, Rq};
use super::view::{QueueId, SHARED};
use crate::elevator::Limits;
use crate::parts::choose::{BackSeek, first_is_nearer};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::sorted::SortedLinks;
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::table::Table;
use crate::units::{Class, Duration, GroupId, Id, Instant, IoPrio, Sector, Tag, TaskId};
use core::ops::{Index, IndexMut};

/// How requests are chosen within a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) back: BackSeek,
    /// After how long async (0) and sync (1) requests are let out of turn.
    pub(super) fifo_expire: [Duration; 2],
    /// Async requests are the root's, whichever group they come from.
    pub(super) async_in_root: bool,
}

/// A queue before a request was put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Its candidate.
    pub(super) next: Option<Tag>,
    pub(super) is_busy: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Queues {
    setting: Setting,
    table: Table<QueueId, Queue>,
    /// How many of them are shared; the others are of the pool.
    shared: usize,
    pool: Fifo<QueueId>,
    pool_links: Links<QueueId>,
    pub(super) rqs: Table<Tag, Rq>,
    pub(super) links: SortedLinks,
    /// All requests that wait.
    pub(super) waiting: u32,
}

impl Queues {
    /// The shared queues of each group, and as many for tasks as there can be. Allocates.
    pub(super) fn new(limits: &Limits, setting: Setting) -> Self {
        let (groups, shared) = (limits.groups, (limits.groups * SHARED) as usize);
        let table = make(groups, Self::own(limits));
        let (mut pool, mut pool_links) = (Fifo::default(), Links::new(table.len()));
        for id in (shared..table.len()).map(QueueId::from_index) {
            pool_links.push_back(&mut pool, id);
        }
        let queue = QueueId::fallback(GroupId::ROOT);
        let context = TaskSlot::from_index(limits.tasks as usize);
        let rq = Rq { queue, context, deadline: Instant::EPOCH, meta: false };
        Self {
            setting,
            table,
            shared,
            pool,
            pool_links,
            rqs: Table::new(usize::from(limits.tags), rq),
            links: SortedLinks::new(limits.tags),
            waiting: 0,
        }
    }

    /// How many queues there are for tasks. A task that goes from group to group can leave many behind.
    fn own(limits: &Limits) -> u32 {
        let spare = if limits.groups > 1 { u32::MAX } else { limits.tasks };
        limits.tasks + spare.min(u32::from(limits.tags))
    }

    /// How many queues there are for these limits.
    pub(super) fn count(limits: &Limits) -> usize {
        (limits.groups * SHARED + Self::own(limits)) as usize
    }

    /// All queues.
    pub(super) fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.table.iter()
    }

    /// Whether a queue is one of the pool, that comes and goes.
    #[inline]
    pub(super) fn is_own(&self, id: QueueId) -> bool {
        id.index() >= self.shared
    }

    /// The shared queue for async requests that come from a group: its own, since 4.3.
    //= linux-4.3 block/cfq-iosched.c cfq_async_queue_prio
    #[inline]
    pub(super) fn async_queue(&self, group: GroupId, prio: IoPrio) -> QueueId {
        QueueId::of_async(if self.setting.async_in_root { GroupId::ROOT } else { group }, prio)
    }

    /// Whether async requests are the root's, whichever group they come from.
    pub(super) const fn async_in_root(&self) -> bool {
        self.setting.async_in_root
    }

    /// Takes a queue from the pool for a task, if one is left.
    pub(super) fn take_own(&mut self, rq: &Request, prio: IoPrio) -> Option<QueueId> {
        let id = self.pool_links.pop_front(&mut self.pool)?;
        let generation = self.table[id].generation;
        self.table[id] = Queue { process_refs: 1, generation, ..Queue::new(true, prio, rq.task, rq.group) };
        Some(id)
    }

    /// Returns a queue to the pool, which has no requests.
    pub(super) fn give_back(&mut self, id: QueueId) {
        let generation = self.table[id].generation.wrapping_add(1);
        let blank = Queue::new(true, IoPrio::new(Class::BestEffort, 4), TaskId(0), GroupId::ROOT);
        self.table[id] = Queue { generation, ..blank };
        self.pool_links.push_back(&mut self.pool, id);
    }

    /// How many queues are in the pool.
    #[cfg(test)]
    pub(super) fn pooled(&self) -> u32 {
        self.pool.len()
    }

    /// The queue that tasks of `id` are to use from now on.
    #[inline]
    pub(super) fn merge_target(&self, id: QueueId) -> Option<QueueId> {
        let (target, generation) = self.table[id].merge_into?;
        (self.table[target].generation == generation).then_some(target)
    }
}

/// Requests of a queue.
impl Queues {
    /// Puts a request into its queue; it is the candidate if there was none. Answers how the queue was.
    #[inline]
    pub(super) fn put(
        &mut self,
        now: Instant,
        tag: Tag,
        id: QueueId,
        context: TaskSlot,
        rq: &Request,
    ) -> Before {
        let deadline = now + self.setting.fifo_expire[usize::from(rq.sync)];
        self.rqs[tag] = Rq { queue: id, context, deadline, meta: rq.meta };
        self.waiting += 1;
        let queue = &mut self.table[id];
        self.links.insert(&mut queue.requests, tag, rq.start);
        queue.meta_pending += u32::from(rq.meta);
        let before = Before { next: queue.next, is_busy: queue.is_busy() };
        if before.next.is_none() {
            queue.next = Some(tag);
        }
        before
    }

    /// Takes a request out that goes to the device, and answers its queue. The next candidate is one of its
    /// neighbours: the head will be there.
    #[inline]
    pub(super) fn take(&mut self, requests: &Requests, id: QueueId, tag: Tag) -> &Queue {
        // The neighbours are looked up while the request is still in the sorted queue.
        let next = if self.table[id].queued() == 1 { None } else { self.neighbour(requests, id, tag) };
        let queue = &mut self.table[id];
        queue.next = next;
        self.links.remove(&mut queue.requests, tag);
        queue.meta_pending -= u32::from(self.rqs[tag].meta);
        self.waiting -= 1;
        queue.dispatched += 1;
        queue.slice_dispatch += 1;
        queue.must_dispatch = false;
        queue
    }

    /// `gone` became part of `kept`, which may take its age.
    pub(super) fn forget(&mut self, requests: &Requests, gone: Tag, kept: Tag) {
        let Rq { queue: id, deadline, .. } = self.rqs[gone];
        let survivor = &mut self.rqs[kept];
        // The two may be of different queues, after a merge of queues; then `kept` stays where it is.
        if survivor.queue == id {
            survivor.deadline = survivor.deadline.min(deadline);
        }
        if self.table[id].next == Some(gone) {
            self.table[id].next = self.neighbour(requests, id, gone);
        }
        let queue = &mut self.table[id];
        if self.rqs[kept].queue == id {
            self.links.join(&mut queue.requests, requests, kept, gone);
        } else {
            self.links.remove(&mut queue.requests, gone);
        }
        queue.meta_pending -= u32::from(self.rqs[gone].meta);
        self.waiting -= 1;
    }

    /// A request begins elsewhere now.
    pub(super) fn reposition(&mut self, id: QueueId, tag: Tag, start: Sector) {
        self.links.reposition(&mut self.table[id].requests, tag, start);
    }

    /// The queue's oldest request, if it has waited for too long.
    #[inline]
    pub(super) fn expired(&self, now: Instant, id: QueueId) -> Option<Tag> {
        self.table[id].requests.oldest().filter(|&tag| now >= self.rqs[tag].deadline)
    }

    /// Makes `tag` its queue's candidate if it is better than the present one, seen from where the head is.
    #[inline]
    pub(super) fn prefer(&mut self, requests: &Requests, id: QueueId, tag: Tag, head: Sector) {
        let best = match self.table[id].next {
            Some(next) => self.better(requests, next, tag, head),
            None => tag,
        };
        self.table[id].next = Some(best);
    }

    /// Metadata before others, then the nearer one.
    #[inline]
    fn better(&self, requests: &Requests, a: Tag, b: Tag, last: Sector) -> Tag {
        let (meta_a, meta_b) = (self.rqs[a].meta, self.rqs[b].meta);
        let first = if meta_a == meta_b {
            first_is_nearer(requests[a].rq.start, requests[b].rq.start, last, self.setting.back)
        } else {
            meta_a
        };
        if first { a } else { b }
    }

    /// The better of the requests before and behind `tag`, wrapping to the first, seen from the start of
    /// `tag`.
    fn neighbour(&self, requests: &Requests, id: QueueId, tag: Tag) -> Option<Tag> {
        let wrapped = || self.links.lowest(&self.table[id].requests).filter(|&first| first != tag);
        let behind = self.links.next(tag).or_else(wrapped);
        match (behind, self.links.prev(tag)) {
            (Some(a), Some(b)) => Some(self.better(requests, a, b, requests[tag].rq.start)),
            (a, b) => a.or(b),
        }
    }

    /// The queue whose requests one of a task may be merged with; `context` is what is known of the task.
    pub(super) fn mergeable(&self, rq: &Request, context: Option<&Context>) -> QueueId {
        if rq.sync {
            return context.and_then(|c| c.sync_queue).unwrap_or(QueueId::fallback(rq.group));
        }
        self.async_queue(rq.group, context.map_or(rq.prio, |c| c.prio(false, rq.prio)))
    }
}

impl Index<QueueId> for Queues {
    type Output = Queue;
    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.table[id]
    }
}

impl IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.table[id]
    }
}

/// The shared queues of each group, and `own` for tasks.
fn make(groups: u32, own: u32) -> Table<QueueId, Queue> {
    let none = TaskId(0);
    let blank = Queue::new(true, IoPrio::default(), none, GroupId::ROOT);
    let mut queues = Table::new((groups * SHARED + own) as usize, blank);
    for group in (0..groups).map(GroupId) {
        queues[QueueId::fallback(group)] = Queue::new(true, IoPrio::default(), none, group);
        for level in 0..8 {
            for class in [Class::RealTime, Class::BestEffort, Class::Idle] {
                let prio = IoPrio::new(class, level);
                queues[QueueId::of_async(group, prio)] = Queue::new(false, prio, none, group);
            }
        }
    }
    queues
}
