//! Queues in order of arrival, as links in a fixed table.
//!
//! [`Links`] owns one pair of links per id, a [`Fifo`] is a head and a tail in it; as with [`super::tree`], any number
//! of queues share one table because an id waits in at most one. All operations are O(1) except iteration.

use crate::table::Table;
use crate::units::Id;

/// One pair of links for each id.
#[derive(Debug)]
pub struct Links<I> {
    links: Table<I, (Option<I>, Option<I>)>,
}

/// A queue in order of arrival.
#[derive(Clone, Copy, Debug)]
pub struct Fifo<I> {
    head: Option<I>,
    tail: Option<I>,
    len: u32,
}

impl<I> Default for Fifo<I> {
    fn default() -> Self {
        Self { head: None, tail: None, len: 0 }
    }
}

impl<I: Id> Fifo<I> {
    /// The oldest.
    #[must_use]
    pub const fn first(&self) -> Option<I> {
        self.head
    }

    /// The newest.
    #[must_use]
    pub const fn last(&self) -> Option<I> {
        self.tail
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<I: Id> Links<I> {
    /// Links for the ids `0..len`. Allocates.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { links: Table::new(len, (None, None)) }
    }

    /// Appends `id`.
    pub fn push_back(&mut self, fifo: &mut Fifo<I>, id: I) {
        self.insert_between(fifo, fifo.tail, id, None);
    }

    /// Puts `id` first.
    pub fn push_front(&mut self, fifo: &mut Fifo<I>, id: I) {
        self.insert_between(fifo, None, id, fifo.head);
    }

    /// Puts `id` right before `at`, which is in `fifo`.
    pub fn insert_before(&mut self, fifo: &mut Fifo<I>, at: I, id: I) {
        self.insert_between(fifo, self.links[at].0, id, Some(at));
    }

    /// Puts `id` right behind `at`, which is in `fifo`.
    pub fn insert_after(&mut self, fifo: &mut Fifo<I>, at: I, id: I) {
        self.insert_between(fifo, Some(at), id, self.links[at].1);
    }

    /// Takes `id`, which is in `fifo`, out of it.
    pub fn remove(&mut self, fifo: &mut Fifo<I>, id: I) {
        let (prev, next) = self.links[id];
        match prev {
            Some(p) => self.links[p].1 = next,
            None => {
                debug_assert!(fifo.head == Some(id), "not in this queue");
                fifo.head = next;
            }
        }
        match next {
            Some(n) => self.links[n].0 = prev,
            None => {
                debug_assert!(fifo.tail == Some(id), "not in this queue");
                fifo.tail = prev;
            }
        }
        fifo.len -= 1;
    }

    /// Takes the oldest.
    pub fn pop_front(&mut self, fifo: &mut Fifo<I>) -> Option<I> {
        let id = fifo.head?;
        self.remove(fifo, id);
        Some(id)
    }

    /// The one behind `id` in its queue.
    #[must_use]
    pub fn next(&self, id: I) -> Option<I> {
        self.links[id].1
    }

    /// The one before `id` in its queue.
    #[must_use]
    pub fn prev(&self, id: I) -> Option<I> {
        self.links[id].0
    }

    /// From the oldest to the newest.
    pub fn iter(&self, fifo: &Fifo<I>) -> impl Iterator<Item = I> + '_ {
        core::iter::successors(fifo.head, |&id| self.links[id].1)
    }

    fn insert_between(&mut self, fifo: &mut Fifo<I>, prev: Option<I>, id: I, next: Option<I>) {
        self.links[id] = (prev, next);
        match prev {
            Some(p) => self.links[p].1 = Some(id),
            None => fifo.head = Some(id),
        }
        match next {
            Some(n) => self.links[n].0 = Some(id),
            None => fifo.tail = Some(id),
        }
        fifo.len += 1;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::units::Tag;
    use std::vec::Vec;

    #[test]
    fn keeps_order_through_insertions_and_removals_anywhere() {
        let mut links = Links::<Tag>::new(8);
        let mut fifo = Fifo::default();
        for i in [1, 2, 4] {
            links.push_back(&mut fifo, Tag(i));
        }
        links.insert_after(&mut fifo, Tag(2), Tag(3));
        links.push_front(&mut fifo, Tag(0));
        links.insert_before(&mut fifo, Tag(0), Tag(7));
        links.remove(&mut fifo, Tag(2));
        links.remove(&mut fifo, Tag(7));
        links.remove(&mut fifo, Tag(4));
        assert_eq!(links.iter(&fifo).map(|t| t.0).collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!((fifo.len(), fifo.last()), (3, Some(Tag(3))));
        assert_eq!(links.pop_front(&mut fifo), Some(Tag(0)));
    }
}
