//! A set of drives as one disk: which members a request goes to, and when it is done.
//!
//! ```text
//!   a disk ─┬─ one drive, a controller's set ──► one queue
//!           ├─ RAID 1 as Linux md does it: reads to the member that ReadBalance names, writes to all
//!           └─ RAID 0 as Linux md and LVM do it: to the members that have a part of it by StripeMap
//! ```
//!
//! What several members have is done when the last of them is: [`Shared`] counts requests, [`Flushing`]
//! flushes. What this does not do: hand anything in. Queues are those of [`super::disks`].
//
//= docs/reference/devices.md#25-compositions

use super::owner::Owner;
use fairhead_core::{Op, Request, Sectors};
use fairhead_device::{Facts, ReadBalance, StripeMap};
use std::collections::VecDeque;

/// A part of a request, and the member of the set that it is for.
pub(super) type Part = (usize, Request);

/// How a disk's requests get to its queues.
#[derive(Debug)]
pub(super) enum Spread {
    /// To the one queue.
    One,
    /// Reads to one of them, the rest to all.
    Mirror(ReadBalance),
    /// To those that have a part of it.
    Stripe(StripeMap),
}

impl Spread {
    /// Returns what a disk of these queues is like, and how its requests get to them: over chunks of that
    /// length, or to all.
    pub(super) fn over(queues: &[Facts], chunk: Option<Sectors>) -> (Facts, Self) {
        match (queues, chunk) {
            ([one], _) => (*one, Self::One),
            (all, Some(chunk)) => {
                let capacities: Vec<u64> = all.iter().map(|facts| facts.capacity).collect();
                let map = StripeMap::new(chunk, &capacities);
                (Facts::striped(all.iter().copied(), map.capacity()), Self::Stripe(map))
            }
            (all, None) => (Facts::mirrored(all.iter().copied()), Self::Mirror(ReadBalance::new(all.len()))),
        }
    }

    /// Adds to `parts` what the members of the set are to have of a request. Several are handed in whole or
    /// not at all.
    pub(super) fn cut(
        &self,
        rq: &Request,
        members: usize,
        idle: impl Fn(usize) -> bool,
        parts: &mut Vec<Part>,
    ) {
        match self {
            Self::One => parts.push((0, *rq)),
            // md's read balancing by position and idleness.
            Self::Mirror(balance) if rq.op == Op::Read => parts.push((balance.choose(rq.start, idle), *rq)),
            Self::Mirror(_) => parts.extend((0..members).map(|m| (m, *rq))),
            Self::Stripe(map) => {
                let part = |(m, start, len)| (m, Request { start, len, ..*rq });
                parts.extend(map.parts(rq.start, rq.len).map(part));
            }
        }
    }

    /// Notes that a request has been handed in to the member `first`, and, if it is for several, to those
    /// after it.
    pub(super) fn handed_in(&mut self, rq: &Request, first: usize) {
        match self {
            Self::Mirror(balance) if rq.op == Op::Read => balance.read(first, rq.end()),
            Self::Mirror(balance) => balance.write(rq.end()),
            Self::One | Self::Stripe(_) => {}
        }
    }
}

/// Requests that several members have: who handed one in, and how many members are not done. Free entries
/// are listed.
#[derive(Debug, Default)]
pub(super) struct Shared {
    entries: Vec<(Owner, usize)>,
    free: Vec<u32>,
}

impl Shared {
    /// Makes an entry for a request that `members` members get. Returns its number.
    pub(super) fn share(&mut self, owner: Owner, members: usize) -> u32 {
        let entry = (owner, members);
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("no more than tags")
        });
        self.entries[index as usize] = entry;
        index
    }

    /// Returns the owner of a request that one more member has completed; [`Owner::None`] if other members
    /// have not.
    pub(super) fn completed(&mut self, owner: Owner) -> Owner {
        let Owner::Shared(index) = owner else { return owner };
        let (owner, left) = &mut self.entries[index as usize];
        *left -= 1;
        if *left > 0 {
            return Owner::None;
        }
        self.free.push(index);
        *owner
    }
}

/// Threads that wait for a flush of several members, and for how many.
#[derive(Debug, Default)]
pub(super) struct Flushing(Vec<(u32, usize)>);

impl Flushing {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A thread waits for the flushes of `members` members.
    pub(super) fn wait(&mut self, thread: u32, members: usize) {
        self.0.push((thread, members));
    }

    /// One member has flushed for the threads that `woken` has from `first` on. Those whose other members
    /// have not are taken out.
    pub(super) fn flushed(&mut self, woken: &mut VecDeque<u32>, first: usize) {
        for thread in woken.split_off(first) {
            // Only those that wait for several members are listed.
            let Some(i) = self.0.iter().position(|f| f.0 == thread) else {
                woken.push_back(thread);
                continue;
            };
            self.0[i].1 -= 1;
            if self.0[i].1 == 0 {
                self.0.remove(i);
                woken.push_back(thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_members_have_is_done_with_the_last() {
        let mut shared = Shared::default();
        let (a, b) = (shared.share(Owner::Lane(7), 2), shared.share(Owner::Lane(8), 3));
        let done = [a, b, b, a, b].map(|index| shared.completed(Owner::Shared(index)));
        assert_eq!(done, [Owner::None, Owner::None, Owner::None, Owner::Lane(7), Owner::Lane(8)]);
        assert_eq!(shared.completed(Owner::Lane(9)), Owner::Lane(9), "it is of one queue");
        assert_eq!(
            (shared.share(Owner::None, 2), shared.share(Owner::None, 2)),
            (b, a),
            "free entries first"
        );
    }

    #[test]
    fn a_flush_of_several_members_wakes_with_the_last() {
        let mut flushing = Flushing::default();
        flushing.wait(1, 2);
        flushing.wait(2, 2);
        // Thread 3 waits for one member; thread 9 was woken by something else before.
        let mut woken: VecDeque<u32> = [9, 1, 3].into();
        flushing.flushed(&mut woken, 1);
        assert_eq!(woken, [9, 3]);
        woken = [2, 1].into();
        flushing.flushed(&mut woken, 0);
        assert_eq!(woken, [1]);
        woken = [2].into();
        flushing.flushed(&mut woken, 0);
        assert_eq!(woken, [2]);
        assert!(flushing.is_empty());
    }
}
