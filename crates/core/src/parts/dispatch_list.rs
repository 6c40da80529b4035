//! The dispatch list: requests that a scheduler has chosen, in the order in which the driver takes them.
//!
//! The elevators of 2.4 and early 2.6 did not answer one request at a time. They moved a handful to a list
//! that the driver emptied from the head, and an insertion into that list sorted a little: it walks from the
//! tail and stops
//!
//! 1. behind the first entry that starts before the new request, or
//! 2. behind the first entry beyond `boundary`, when the new request starts before it: the sweep has passed
//!    there, so the new one belongs to the next.
//!
//! With entries at 100 and 300 and the boundary at 200: 150 goes behind 300 (rule 2), 250 between the two
//! (rule 1). The scheduler chooses the boundary; the end of the new request itself makes rule 2 stop nearly
//! always, and the list then is in order of choice.
//!
//! A request on the list is on its way: it must not grow, or the order would be broken after the fact, so a
//! scheduler refuses merges into it. Taking the head is O(1); an insertion walks past the entries that it
//! does not stop at. Requests that the driver hands back do not return here; the elevator keeps those.
//!
//= linux-2.6.11 drivers/block/cfq-iosched.c cfq_dispatch_sort, docs/reference/cfq.md#32-version-2

use super::fifo::{Fifo, Links};
use crate::request::Requests;
use crate::units::{Sector, Tag};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct DispatchList {
    fifo: Fifo<Tag>,
    links: Links<Tag>,
}

/// Why the walk of an insertion stopped.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placed {
    /// An entry that starts before the new one, or the end of the list.
    InOrder,
    /// An entry beyond the boundary: the new request waits for the next sweep.
    NextSweep,
}

impl DispatchList {
    /// A list for the tags `0..tags`. Allocates.
    #[must_use]
    pub(crate) fn new(tags: u16) -> Self {
        Self { fifo: Fifo::default(), links: Links::new(usize::from(tags)) }
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Puts `tag`, which is not on the list, in its place.
    pub(crate) fn insert(&mut self, requests: &Requests, tag: Tag, boundary: Sector) -> Placed {
        let start = requests[tag].rq.start;
        let mut at = self.fifo.last();
        while let Some(entry) = at {
            let other = requests[entry].rq.start;
            let next_sweep = other > boundary && start < boundary;
            if start > other || next_sweep {
                self.links.insert_after(&mut self.fifo, entry, tag);
                return if start > other { Placed::InOrder } else { Placed::NextSweep };
            }
            at = self.links.prev(entry);
        }
        self.links.push_front(&mut self.fifo, tag);
        Placed::InOrder
    }

    /// Takes the request that the driver is to have next.
    pub(crate) fn pop(&mut self) -> Option<Tag> {
        self.links.pop_front(&mut self.fifo)
    }

    /// From the head to the tail.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.links.iter(&self.fifo)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::request::Request;
    use crate::units::{Instant, Sectors, TaskId};
    use std::vec::Vec;

    fn list_of(starts: &[u64], boundary: u64) -> (Vec<u64>, Vec<Placed>) {
        let mut requests = Requests::new(16);
        let mut list = DispatchList::new(16);
        let mut placed = Vec::new();
        for (i, &start) in starts.iter().enumerate() {
            let tag = Tag(u16::try_from(i).unwrap());
            requests.claim(
                tag,
                &Request::read(TaskId(1), Sector(start), Sectors(8)),
                Instant::EPOCH,
                Instant::EPOCH,
            );
            placed.push(list.insert(&requests, tag, Sector(boundary)));
        }
        assert_eq!(list.fifo.len() as usize, starts.len());
        let order = list.iter().map(|t| requests[t].rq.start.0).collect();
        (order, placed)
    }

    #[test]
    fn sorts_what_lies_ahead_and_leaves_the_rest_to_the_next_sweep() {
        let (order, placed) = list_of(&[300, 250, 150, 100, 400], 200);
        assert_eq!(order, [250, 300, 100, 150, 400], "the first sweep from 200 on, and what comes behind it");
        let [ahead, behind] = [Placed::InOrder, Placed::NextSweep];
        assert_eq!(placed, [ahead, ahead, behind, behind, ahead]);
    }

    #[test]
    fn without_a_boundary_in_the_way_the_list_is_ascending() {
        let (order, placed) = list_of(&[300, 100, 200, 400, 50], 0);
        assert_eq!(order, [50, 100, 200, 300, 400]);
        assert!(placed.iter().all(|&p| p == Placed::InOrder));
    }

    #[test]
    fn the_head_leaves_first() {
        let requests = {
            let mut r = Requests::new(2);
            for (tag, start) in [(Tag(0), 500), (Tag(1), 100)] {
                r.claim(
                    tag,
                    &Request::read(TaskId(1), Sector(start), Sectors(8)),
                    Instant::EPOCH,
                    Instant::EPOCH,
                );
            }
            r
        };
        let mut list = DispatchList::new(2);
        let _ = list.insert(&requests, Tag(0), Sector(0));
        let _ = list.insert(&requests, Tag(1), Sector(0));
        assert_eq!((list.pop(), list.pop(), list.pop()), (Some(Tag(1)), Some(Tag(0)), None));
        assert!(list.is_empty());
    }
}
