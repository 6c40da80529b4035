//! Queues in order of arrival, as links in a fixed table.
//!
//! [`Links`] owns one pair of links per id, a [`Fifo`] is a head and a tail in it; as with [`super::tree`],
//! any number of queues share one table because an id waits in at most one. All operations are O(1) except
//! iteration.

use crate::table::{NIL, Place, Table};
use crate::units::Id;
use core::marker::PhantomData;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: Place,
    next: Place,
}

/// One pair of links for each id.
#[derive(Clone, Debug)]
pub(crate) struct Links<I> {
    links: Table<Place, Link>,
    id: PhantomData<I>,
}

/// A queue in order of arrival.
#[derive(Clone, Copy, Debug)]
pub struct Fifo<I> {
    head: Place,
    tail: Place,
    len: u32,
    id: PhantomData<I>,
}

impl<I> Default for Fifo<I> {
    fn default() -> Self {
        Self { head: Place(NIL), tail: Place(NIL), len: 0, id: PhantomData }
    }
}

impl<I: Id> Fifo<I> {
    /// The oldest.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<I> {
        self.head.id()
    }

    /// The newest.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<I> {
        self.tail.id()
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether no request waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<I: Id> Links<I> {
    /// Links for the ids `0..len`. Allocates.
    #[must_use]
    pub(crate) fn new(len: usize) -> Self {
        let nowhere = Link { prev: Place(NIL), next: Place(NIL) };
        Self { links: Table::new(len, nowhere), id: PhantomData }
    }

    /// Appends `id`.
    #[inline]
    pub(crate) fn push_back(&mut self, fifo: &mut Fifo<I>, id: I) {
        let at = Place::of(id);
        self.links[at] = Link { prev: fifo.tail, next: Place(NIL) };
        match self.links.get_mut(fifo.tail) {
            Some(link) => link.next = at,
            None => fifo.head = at,
        }
        fifo.tail = at;
        fifo.len += 1;
    }

    /// Makes `id` the first of a queue that is empty.
    #[inline]
    pub(crate) fn push_only(&mut self, fifo: &mut Fifo<I>, id: I) {
        debug_assert!(fifo.is_empty(), "there are others");
        let at = Place::of(id);
        self.links[at] = Link { prev: Place(NIL), next: Place(NIL) };
        *fifo = Fifo { head: at, tail: at, len: 1, ..Fifo::default() };
    }

    /// Puts `id` first.
    pub(crate) fn push_front(&mut self, fifo: &mut Fifo<I>, id: I) {
        self.insert_between(fifo, Place(NIL), id, fifo.head);
    }

    /// Puts `id` right before `at`, which is in `fifo`.
    pub(crate) fn insert_before(&mut self, fifo: &mut Fifo<I>, at: I, id: I) {
        let next = Place::of(at);
        self.insert_between(fifo, self.links[next].prev, id, next);
    }

    /// Puts `id` right behind `at`, which is in `fifo`.
    pub(crate) fn insert_after(&mut self, fifo: &mut Fifo<I>, at: I, id: I) {
        let prev = Place::of(at);
        self.insert_between(fifo, prev, id, self.links[prev].next);
    }

    /// Takes `id`, which is in `fifo`, out of it.
    #[inline]
    pub(crate) fn remove(&mut self, fifo: &mut Fifo<I>, id: I) {
        let Link { prev, next } = self.links[Place::of(id)];
        debug_assert!(prev.0 != NIL || fifo.head == Place::of(id), "not in this queue");
        debug_assert!(next.0 != NIL || fifo.tail == Place::of(id), "not in this queue");
        match self.links.get_mut(prev) {
            Some(link) => link.next = next,
            None => fifo.head = next,
        }
        match self.links.get_mut(next) {
            Some(link) => link.prev = prev,
            None => fifo.tail = prev,
        }
        fifo.len -= 1;
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop_front(&mut self, fifo: &mut Fifo<I>) -> Option<I> {
        let first = fifo.head;
        let next = self.links.get(first)?.next;
        match self.links.get_mut(next) {
            Some(link) => link.prev = Place(NIL),
            None => fifo.tail = Place(NIL),
        }
        fifo.head = next;
        fifo.len -= 1;
        Some(I::from_index(first.index()))
    }

    /// The one behind `id` in its queue.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self, id: I) -> Option<I> {
        self.links[Place::of(id)].next.id()
    }

    /// The one before `id` in its queue.
    #[inline]
    #[must_use]
    pub(crate) fn prev(&self, id: I) -> Option<I> {
        self.links[Place::of(id)].prev.id()
    }

    /// From the oldest to the newest.
    pub(crate) fn iter(&self, fifo: &Fifo<I>) -> impl Iterator<Item = I> + '_ {
        core::iter::successors(fifo.first(), |&id| self.next(id))
    }

    fn insert_between(&mut self, fifo: &mut Fifo<I>, prev: Place, id: I, next: Place) {
        let at = Place::of(id);
        self.links[at] = Link { prev, next };
        match self.links.get_mut(prev) {
            Some(link) => link.next = at,
            None => fifo.head = at,
        }
        match self.links.get_mut(next) {
            Some(link) => link.prev = at,
            None => fifo.tail = at,
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
