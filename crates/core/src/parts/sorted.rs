//! The requests of one queue, in sector order and in order of arrival at once.
//!
//! Every scheduler that sorts needs both orders: sectors say what is cheap, arrival says who has waited
//! longest. A [`SortedQueue`] is one such queue (a direction, a task); [`SortedLinks`] owns the nodes, one
//! per tag, and any number of queues share it, because a request waits in at most one.
//!
//! ```text
//!   inserted:  [400] [100] [300]           at_or_after(150) = [300]    next([300]) = [400]
//!   sectors:   [100] [300] [400]           at_or_after(401) = None     lowest      = [100]
//!   arrival:   [400] [100] [300]           oldest           = [400]
//! ```
//!
//! Inserting, removing and `at_or_after` are O(log n); the neighbours, `lowest` and `oldest` are O(1).
//! Requests with one start sector may wait together: they keep their order of insertion. (Kernels before 3.x
//! pushed the older one out to the device.)
//!
//! It does not choose: which candidate is better is [`super::choose`]'s or the scheduler's business.

use super::fifo::{Fifo, Links};
use super::tree::{Forest, Tree};
use crate::request::{Requests, State};
use crate::units::{Sector, Tag};

/// One queue. Its nodes are in a [`SortedLinks`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortedQueue {
    tree: Tree,
    fifo: Fifo<Tag>,
}

impl SortedQueue {
    /// How many requests wait.
    #[must_use]
    pub(crate) const fn len(&self) -> u32 {
        self.fifo.len()
    }

    /// Whether none waits.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// The request that is first in order of arrival.
    #[inline]
    #[must_use]
    pub(crate) fn oldest(&self) -> Option<Tag> {
        self.fifo.first()
    }
}

/// The nodes of all queues: one per tag.
#[derive(Clone, Debug)]
pub(crate) struct SortedLinks {
    forest: Forest<Tag>,
    links: Links<Tag>,
}

impl SortedLinks {
    /// Nodes for the tags `0..tags`. Allocates.
    #[must_use]
    pub(crate) fn new(tags: u16) -> Self {
        Self { forest: Forest::new(usize::from(tags)), links: Links::new(usize::from(tags)) }
    }

    /// Adds `tag`, which starts at `start`, as the youngest.
    ///
    /// # Panics
    /// If it already waits in a queue.
    #[inline]
    pub(crate) fn insert(&mut self, queue: &mut SortedQueue, tag: Tag, start: Sector) {
        self.forest.insert(&mut queue.tree, tag, start.0);
        self.links.push_back(&mut queue.fifo, tag);
    }

    /// Inserts a request, with a short path for an empty queue, such as that of a task that waits for each
    /// request.
    ///
    /// # Panics
    /// If it already waits in a queue.
    #[inline]
    pub(crate) fn insert_maybe_first(&mut self, queue: &mut SortedQueue, tag: Tag, start: Sector) {
        if !queue.fifo.is_empty() {
            return self.insert(queue, tag, start);
        }
        self.forest.insert_first(&mut queue.tree, tag, start.0);
        self.links.push_only(&mut queue.fifo, tag);
    }

    /// Takes out `tag`, which waits in `queue`.
    ///
    /// # Panics
    /// If it waits nowhere.
    #[inline]
    pub(crate) fn remove(&mut self, queue: &mut SortedQueue, tag: Tag) {
        self.forest.remove(&mut queue.tree, tag);
        self.links.remove(&mut queue.fifo, tag);
    }

    /// Removes a request, with a short path for a queue that has no other.
    ///
    /// # Panics
    /// If it waits nowhere.
    #[inline(always)]
    pub(crate) fn remove_maybe_last(&mut self, queue: &mut SortedQueue, tag: Tag) {
        if queue.fifo.len() != 1 {
            return self.remove(queue, tag);
        }
        self.forest.remove_last(&mut queue.tree, tag);
        queue.fifo = Fifo::default();
    }

    /// `tag`, which waits in `queue`, now starts at `start`: a front merge. It keeps its age.
    pub(crate) fn reposition(&mut self, queue: &mut SortedQueue, tag: Tag, start: Sector) {
        self.forest.set_key(&mut queue.tree, tag, start.0);
    }

    /// `kept` takes the place of `gone` in order of arrival if `gone` arrived earlier; then `gone` is taken
    /// out. Both wait in `queue`, and `requests` still has them as they were.
    pub(crate) fn join(&mut self, queue: &mut SortedQueue, requests: &Requests, kept: Tag, gone: Tag) {
        if requests[gone].since < requests[kept].since {
            self.links.remove(&mut queue.fifo, kept);
            self.links.insert_before(&mut queue.fifo, gone, kept);
        }
        self.remove(queue, gone);
    }

    /// Whether `tag` waits in some queue.
    #[must_use]
    pub(crate) fn contains(&self, tag: Tag) -> bool {
        self.forest.contains(tag)
    }

    /// The request with the lowest start.
    #[inline]
    #[must_use]
    pub(crate) fn lowest(&self, queue: &SortedQueue) -> Option<Tag> {
        self.forest.first(&queue.tree)
    }

    /// The request with the lowest start that is not below `position`.
    #[must_use]
    pub(crate) fn at_or_after(&self, queue: &SortedQueue, position: Sector) -> Option<Tag> {
        self.forest.lower_bound(&queue.tree, position.0)
    }

    /// The neighbour of `tag` towards higher sectors.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self, tag: Tag) -> Option<Tag> {
        self.forest.next(tag)
    }

    /// The neighbour of `tag` towards lower sectors.
    #[inline]
    #[must_use]
    pub(crate) fn prev(&self, tag: Tag) -> Option<Tag> {
        self.forest.prev(tag)
    }

    /// The requests in sector order.
    pub(crate) fn iter(&self, queue: &SortedQueue) -> impl Iterator<Item = Tag> + '_ {
        self.forest.iter(&queue.tree)
    }

    /// The requests in order of arrival.
    pub(crate) fn arrivals(&self, queue: &SortedQueue) -> impl Iterator<Item = Tag> + '_ {
        self.links.iter(&queue.fifo)
    }

    /// Walks `queue` and panics unless both orders hold the same requests, which wait, in the right order.
    pub(crate) fn check(&self, queue: &SortedQueue, requests: &Requests) {
        self.forest.check(&queue.tree);
        assert_eq!(queue.tree.len(), queue.fifo.len(), "the two orders differ in length");
        let mut since = None;
        for tag in self.arrivals(queue) {
            let slot = &requests[tag];
            assert!(slot.state == State::Queued, "a request waits here, but is not queued");
            assert!(self.forest.contains(tag), "in order of arrival, but not in sector order");
            assert_eq!(self.forest.key(tag), slot.rq.start.0, "filed under a stale sector");
            assert!(since <= Some(slot.since), "older requests behind younger ones");
            since = Some(slot.since);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::units::Id;
    use std::vec::Vec;

    fn filled(starts: &[u64]) -> (SortedLinks, SortedQueue) {
        let (mut links, mut queue) = (SortedLinks::new(8), SortedQueue::default());
        for (i, &start) in starts.iter().enumerate() {
            links.insert(&mut queue, Tag::from_index(i), Sector(start));
        }
        (links, queue)
    }

    #[test]
    fn the_example_in_the_module_doc_holds() {
        let (links, queue) = filled(&[400, 100, 300]);
        assert_eq!(links.iter(&queue).map(|t| t.0).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(links.arrivals(&queue).map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(links.at_or_after(&queue, Sector(150)), Some(Tag(2)));
        assert_eq!(links.at_or_after(&queue, Sector(300)), Some(Tag(2)));
        assert_eq!(links.at_or_after(&queue, Sector(401)), None);
        assert_eq!((links.next(Tag(2)), links.prev(Tag(1))), (Some(Tag(0)), None));
        assert_eq!((links.lowest(&queue), queue.oldest()), (Some(Tag(1)), Some(Tag(0))));
    }

    #[test]
    fn a_front_merge_changes_the_sector_order_only() {
        let (mut links, mut queue) = filled(&[400, 100, 300]);
        links.reposition(&mut queue, Tag(0), Sector(50));
        assert_eq!(links.iter(&queue).map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2]);
        links.reposition(&mut queue, Tag(2), Sector(290));
        assert_eq!(links.iter(&queue).map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(links.at_or_after(&queue, Sector(290)), Some(Tag(2)));
        assert_eq!(links.arrivals(&queue).map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2]);
        links.remove(&mut queue, Tag(1));
        assert!(!links.contains(Tag(1)) && queue.len() == 2);
    }
}
