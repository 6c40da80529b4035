//! Pools of requests: how many there are, and which threads wait for one.
//!
//! ```text
//!   single-queue layer                          multi-queue layer
//!
//!     sync   128 ── one pool for each kind        hardware queue 0   256 ── sync and async from one
//!     async  128 ── of all processors             hardware queue 1   256    a queue for each processor
//!                                                 …
//! ```
//!
//! In the single-queue layer a pool is *congested* from 7/8 on, until it is below 13/16; a thread that had to
//! wait may overdraw it by half for a moment. The multi-queue layer has neither rule: its pools are tags of
//! the driver, or as many as `nr_requests` says.
//!
//! With two requests, which a driver of one tag gives a scheduler, it matters which of them is free: see
//! [`Places`].
//
//= docs/reference/elevators.md#16-plugging to 1.8, docs/reference/nvme.md#1-the-path-of-a-request

use fairhead_core::{Duration, Instant};
use std::collections::VecDeque;

/// The two pools of the single-queue layer.
const ASYNC: usize = 0;
const SYNC: usize = 1;

/// The leave of a thread that had to wait for a request to overdraw the pool: how many, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) left: u8,
    until: Instant,
    /// The hardware queue of the processor that the thread is on.
    pub(super) queue: u16,
    /// The depth that the scheduler gave the thread's request before the thread had to wait.
    pub(super) depth: Option<u32>,
}

impl Batch {
    pub(super) const NONE: Self = Self { left: 0, until: Instant::EPOCH, queue: 0, depth: None };
    //= linux-2.6.33 block/blk-core.c BLK_BATCH_REQ, BLK_BATCH_TIME
    const REQUESTS: u8 = 32;
    const TIME: Duration = Duration::from_ms(20);

    /// Whether it may overdraw the pool now.
    pub(super) fn is_open(self, now: Instant) -> bool {
        self.left > 0 && now <= self.until
    }

    pub(super) fn granted(self, now: Instant) -> Self {
        Self { left: Self::REQUESTS, until: now + Self::TIME, ..self }
    }
}

/// What a request was taken from: its pool, and its place there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pool: u16,
    place: u8,
}

/// The requests of a small pool of the multi-queue layer, one by one.
///
/// A task may be limited to a *depth*: to a number of places from the first on, whether or not others are
/// free. BFQ limits a task whose queue has its share of the requests to the first one. A place that was given
/// back counts as taken until a search finds no other. So of two places that are free, the one that was free
/// for longer is taken first:
///
/// ```text
///   place 0    place 1
///   taken      free for longer     a call of two requests takes 1, then 0
///   just free  free for longer     … so when its first one ends, a task limited to place 0 is woken for nothing
/// ```
///
/// Found by tracing Linux 6.12 (docs/deviations.md, *two-requests*).
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    taken: u8,
    /// Of those taken, the ones that were given back meanwhile.
    returned: u8,
    /// Where the next search begins.
    first: u8,
}

impl Places {
    /// A pool with more has several words of places, which are not modelled.
    const MOST: u32 = 3;

    fn look(taken: u8, first: u8, depth: u8) -> Option<u8> {
        (first..depth).chain(0..depth.min(first)).find(|&place| taken & (1 << place) == 0)
    }

    /// Whether a task that is limited to a depth can have one.
    fn has(self, depth: u8) -> bool {
        Self::look(self.taken & !self.returned, 0, depth).is_some()
    }

    /// Looks for one, and takes it.
    fn take(&mut self, size: u8, depth: u8) -> Option<u8> {
        let mut found = Self::look(self.taken, self.first, depth);
        if found.is_none() {
            self.taken &= !std::mem::take(&mut self.returned);
            found = Self::look(self.taken, self.first, depth);
        }
        match found {
            None => self.first = 0,
            Some(place) => {
                self.taken |= 1 << place;
                if place == self.first {
                    self.first = if place + 2 >= size { 0 } else { place + 1 };
                }
            }
        }
        found
    }

    fn give_back(&mut self, place: u8) {
        self.returned |= 1 << place;
        self.first = place;
    }
}

#[derive(Debug, Default)]
struct Pool {
    allocated: u32,
    places: Places,
    congested: bool,
    /// Threads that wait for a request, in order.
    waiters: VecDeque<u32>,
}

#[derive(Debug)]
pub(super) struct Pools {
    /// How many requests each has.
    size: u32,
    /// A pool for each hardware queue, rather than for each kind.
    by_queue: bool,
    /// It matters which request of a pool is free.
    has_places: bool,
    all: Vec<Pool>,
    waiting: usize,
}

impl Pools {
    /// Those of the single-queue layer.
    pub(super) fn of_kinds(size: u32) -> Self {
        let all = (0..2).map(|_| Pool::default()).collect();
        Self { size, by_queue: false, has_places: false, all, waiting: 0 }
    }

    /// The pools of the multi-queue layer: `size` requests for each hardware queue.
    pub(super) fn of_queues(size: u32, queues: u32) -> Self {
        let all = (0..queues.max(1)).map(|_| Pool::default()).collect();
        Self { size, by_queue: true, has_places: matches!(size, 2..=Places::MOST), all, waiting: 0 }
    }

    /// How many requests there are in all.
    pub(super) fn requests(&self) -> u32 {
        let pools = if self.by_queue { u32::try_from(self.all.len()).unwrap_or(u32::MAX) } else { 1 };
        self.size.saturating_mul(pools)
    }

    /// The pool that a request is from, of a thread on a processor with that hardware queue.
    pub(super) fn of(&self, sync: bool, queue: u16) -> usize {
        match (self.by_queue, sync) {
            // A remainder takes longer than to look.
            (true, _) if usize::from(queue) < self.all.len() => usize::from(queue),
            (true, _) => usize::from(queue) % self.all.len(),
            (false, true) => SYNC,
            (false, false) => ASYNC,
        }
    }

    /// Whether a thread cannot have a request from a pool, which it may overdraw within its batch.
    pub(super) fn is_full(&self, pool: usize, now: Instant, batch: Batch) -> bool {
        let is_batcher = !self.by_queue && batch.is_open(now);
        let limit = if is_batcher { self.size * 3 / 2 } else { self.size };
        self.all[pool].allocated >= limit
    }

    /// Whether it matters which request of a pool is free.
    #[inline]
    pub(super) const fn has_places(&self) -> bool {
        self.has_places
    }

    /// Whether a task that is limited to the first `depth` requests of a small pool can have one.
    pub(super) fn has_place(&self, pool: usize, depth: u32) -> bool {
        !self.has_places() || self.all[pool].places.has(depth.min(self.size) as u8)
    }

    /// Takes a request out of a pool, which has one for a task that is limited to that depth.
    pub(super) fn take(&mut self, pool: usize, depth: u32) -> Taken {
        let place = if self.has_places { self.take_place(pool, depth) } else { None };
        let p = &mut self.all[pool];
        p.allocated += 1;
        // On at 113 of 128.
        if !self.by_queue && p.allocated > self.size - self.size / 8 {
            p.congested = true;
        }
        Taken { pool: pool as u16, place: place.unwrap_or(0) }
    }

    #[cold]
    fn take_place(&mut self, pool: usize, depth: u32) -> Option<u8> {
        self.all[pool].places.take(self.size as u8, depth.min(self.size) as u8)
    }

    /// A task that is limited to that depth was refused a request; if for want of a place, it has looked for
    /// one.
    pub(super) fn look_in_vain(&mut self, pool: usize, depth: u32) {
        if !self.has_place(pool, depth) {
            self.take_place(pool, depth);
        }
    }

    pub(super) fn give_back(&mut self, taken: Taken) {
        let p = &mut self.all[usize::from(taken.pool)];
        p.allocated -= 1;
        if self.has_places {
            p.places.give_back(taken.place);
        }
        // Off below 103 of 128.
        if p.congested && p.allocated < self.size - self.size / 8 - self.size / 16 - 1 {
            p.congested = false;
        }
    }

    /// Whether requests of this kind are nearly used up.
    pub(super) fn is_congested(&self, sync: bool) -> bool {
        !self.by_queue && self.all[if sync { SYNC } else { ASYNC }].congested
    }

    /// A thread that found no request waits for one of that kind, or of its hardware queue.
    pub(super) fn wait(&mut self, thread: u32, sync: bool, queue: u16) {
        let pool = self.of(sync, queue);
        self.waiting += 1;
        self.all[pool].waiters.push_back(thread);
    }

    /// How many threads wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many of them there are requests for.
    pub(super) fn can_wake(&self) -> usize {
        if self.waiting == 0 {
            return 0;
        }
        let of = |p: &Pool| p.waiters.len().min(self.size.saturating_sub(p.allocated) as usize);
        self.all.iter().map(of).sum()
    }

    /// A thread that waits for a request and can have one now. Of the two kinds sync ones come first.
    pub(super) fn pop_waiter(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let can_be_had = |p: &&mut Pool| p.allocated < self.size && !p.waiters.is_empty();
        let pool = if self.by_queue {
            self.all.iter_mut().find(can_be_had)
        } else {
            self.all.iter_mut().rev().find(can_be_had)
        };
        let thread = pool?.waiters.pop_front();
        self.waiting -= 1;
        thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::EPOCH;

    fn taken(mut pools: Pools, pool: usize, count: u32) -> Pools {
        for _ in 0..count {
            let _ = pools.take(pool, u32::MAX);
        }
        pools
    }

    fn of(pool: usize) -> Taken {
        Taken { pool: pool as u16, place: 0 }
    }

    #[test]
    fn a_pool_is_congested_from_seven_eighths_until_thirteen_sixteenths() {
        let mut pools = taken(Pools::of_kinds(128), SYNC, 112);
        assert!(!pools.is_congested(true));
        let _ = pools.take(SYNC, u32::MAX);
        assert!(pools.is_congested(true) && !pools.is_congested(false));
        (103..113).for_each(|_| pools.give_back(of(SYNC)));
        assert!(pools.is_congested(true), "103 of 128");
        pools.give_back(of(SYNC));
        assert!(!pools.is_congested(true), "102 of 128");
        // It is congested again only at the upper limit.
        let pools = taken(pools, SYNC, 10);
        assert!(!pools.is_congested(true), "112 of 128");
    }

    #[test]
    fn a_thread_that_had_to_wait_overdraws_a_pool_by_half_for_a_moment() {
        let batch = Batch::NONE.granted(NOW);
        let full = |count, batch, now| taken(Pools::of_kinds(128), ASYNC, count).is_full(ASYNC, now, batch);
        assert_eq!((full(127, Batch::NONE, NOW), full(128, Batch::NONE, NOW)), (false, true));
        assert_eq!((full(191, batch, NOW), full(192, batch, NOW)), (false, true));
        let last = NOW + Duration::from_ms(20);
        assert_eq!((full(128, batch, last), full(128, batch, last + Duration::from_ns(1))), (false, true));
        assert!(full(128, Batch { left: 0, ..batch }, NOW), "its 32 requests are used up");
    }

    #[test]
    fn hardware_queues_have_neither_rule_and_a_pool_each() {
        let batch = Batch::NONE.granted(NOW);
        let pools = taken(Pools::of_queues(64, 4), 1, 64);
        assert_eq!((pools.requests(), Pools::of_kinds(64).requests()), (256, 64));
        assert!(pools.is_full(1, NOW, batch) && !pools.is_full(2, NOW, batch));
        assert!(!pools.is_congested(true) && !pools.is_congested(false));
        assert_eq!([pools.of(true, 5), pools.of(false, 5)], [1, 1]);
        assert_eq!([true, false].map(|sync| Pools::of_kinds(64).of(sync, 5)), [SYNC, ASYNC]);
    }

    #[test]
    fn threads_wait_in_order_and_those_with_sync_requests_come_first() {
        let mut pools = taken(taken(Pools::of_kinds(2), SYNC, 2), ASYNC, 2);
        [(1, false), (2, true), (3, true)].iter().for_each(|&(thread, sync)| pools.wait(thread, sync, 0));
        assert_eq!((pools.waiting(), pools.pop_waiter()), (3, None));
        pools.give_back(of(SYNC));
        pools.give_back(of(ASYNC));
        assert_eq!([(); 4].map(|()| pools.pop_waiter()), [Some(2), Some(3), Some(1), None]);
        assert_eq!(pools.waiting(), 0);
        let mut pools = Pools::of_queues(1, 2);
        [(1, 1), (2, 0)].iter().for_each(|&(thread, queue)| pools.wait(thread, false, queue));
        assert_eq!([(); 2].map(|()| pools.pop_waiter()), [Some(2), Some(1)]);
    }

    /// Linux 6.12, traced: a reader of two requests at a time takes the one that was free for longer first,
    /// so who waits for the first place finds it taken whenever the reader's first request has ended.
    #[test]
    fn of_two_free_places_the_one_that_was_free_for_longer_goes_first() {
        let mut pools = Pools::of_queues(2, 1);
        let [first, second] = [(); 2].map(|()| pools.take(0, 2));
        assert_eq!((first.place, second.place), (0, 1));
        pools.give_back(second);
        assert!(!pools.has_place(0, 1) && pools.has_place(0, 2));
        // A search for place 0 fails, which makes place 1 free for the next search.
        pools.look_in_vain(0, 1);
        pools.give_back(first);
        assert_eq!([(); 2].map(|()| pools.take(0, 2).place), [1, 0]);
        assert!(!pools.has_place(0, 1));
        // Of a pool with many any will do.
        assert!(!Pools::of_queues(4, 1).has_places() && Pools::of_queues(4, 1).has_place(0, 1));
    }

    #[test]
    fn no_more_threads_are_woken_than_there_are_requests() {
        let mut pools = taken(Pools::of_queues(2, 2), 0, 2);
        assert_eq!(pools.can_wake(), 0, "none waits");
        [1, 2, 3].iter().for_each(|&thread| pools.wait(thread, true, 0));
        assert_eq!(pools.can_wake(), 0, "none is free in their queue");
        pools.give_back(of(0));
        assert_eq!(pools.can_wake(), 1);
        pools.give_back(of(0));
        assert_eq!(pools.can_wake(), 2);
    }
}
