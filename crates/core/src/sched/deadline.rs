//! deadline: batches in sector order, and a soft deadline for each request.
//!
//! For databases, command-queueing disks and flash: throughput from sorting, without letting any request wait
//! much longer than a time that depends on the direction alone. It knows neither tasks nor priorities and
//! never idles the disk.
//!
//! # How it works
//!
//! Reads and writes have a `SortedQueue` each: sector order for cheap service, order of arrival for
//! deadlines. A *batch* runs through one direction in ascending sectors, at most `fifo_batch` requests long.
//! When it ends, the next direction is chosen: reads, unless writes were passed over `writes_starved` times.
//! The new batch starts at the oldest request of that direction if its deadline has passed, and otherwise
//! continues where the last one of that direction stood, if it was the last to run.
//!
//! With `fifo_batch` 2, `writes_starved` 2, reads at 10, 20, … and writes at 15, 25, … all waiting:
//!
//! ```text
//!   R10 R20 | R30 R40 | W15 W25 | R50 R60 | R70 R80 | W35 W45 | …
//!   starved: 1         2         0         1         2         0
//! ```
//!
//! (After a write batch the reads start at their oldest request again: here 50.) Discards are queued as
//! writes: no program waits for them, and they must not overtake a read. Sync and async are alike.
//!
//! The kernels up to about 2.6.23 ended a batch at the first request that was not contiguous with the one
//! before; see [`BatchRule::Contiguous`].
//!
//! # How long requests wait
//!
//! Deadlines are soft: they are looked at only when a batch of that direction starts. Let *n* be the requests
//! of the same direction that are older. Once its deadline has passed, a read is issued within `(n + 1) × 2`
//! batches and the rest of the running one; a write within `(n + 1) × (writes_starved + 1)` batches and the
//! rest of the running one. A batch is at most `max(fifo_batch, 1)` requests. The exception is for the user
//! to avoid: with `writes_starved` 0, writes always go first, and reads wait for as long as any write does.
//!
//! # What it does not do
//!
//! No classes ([`super::mq_deadline`] has them), no fairness between tasks.
//!
//= linux-4.20 block/deadline-iosched.c
//= docs/reference/elevators.md#31-tunables, docs/reference/elevators.md#34-direct-clients

use super::Scheduler;
use super::fair::Divisible;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Cx, Dispatch, End, Limits};
use crate::parts::sorted::{SortedLinks, SortedQueue};
use crate::request::{Op, Requests};
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Sector, Tag};
use crate::{choice, tunables};

choice! {
    /// The rule for the end of a batch.
    pub enum BatchRule {
        /// Requests in ascending sectors, however far apart: the rule since about 2.6.24.
        //= linux-2.6.33 block/deadline-iosched.c deadline_dispatch_requests
        Ascending = "ascending";
        /// Requests of which each starts where the one before ends: the rule of 2.6.0 to about 2.6.23. Any
        /// gap ends the batch, so scattered requests have their direction chosen anew for each. A new batch
        /// without a position to continue from starts at the lowest sector, and one that continues from a
        /// position does not count from 0 (a quirk of these kernels: after a gap the batch stays over until
        /// an expired deadline or the end of the sector order starts a fresh one).
        //= linux-2.6.9 drivers/block/deadline-iosched.c deadline_dispatch_requests
        Contiguous = "contiguous";
    }
}

tunables! {
    /// deadline's tunables, under their sysfs names, and the era's batch rule.
    //= linux-4.20 Documentation/block/deadline-iosched.txt
    pub struct Config {
        /// How long a read may wait before a new batch of reads starts with it. Default 500 ms.
        pub read_expire: Duration = Duration::from_ms(500), 0, u64::MAX;
        /// How long a write or discard may wait before a new batch of writes starts with it. Default 5 s.
        pub write_expire: Duration = Duration::from_secs(5), 0, u64::MAX;
        /// How many batches of reads may pass waiting writes. Default 2; 0 starves reads instead.
        pub writes_starved: u32 = 2, 0, 0x7fff_ffff;
        /// How many requests a batch has at most. Default 16; 0 counts as 1.
        pub fifo_batch: u32 = 16, 0, 0x7fff_ffff;
        /// Whether to look for requests that a new one can be put in front of. Default 1.
        pub front_merges: bool = true, 0, 1;
        /// What ends a batch: its length only (ascending, the default) or also the first gap (contiguous, as
        /// up to 2.6.23).
        pub batch_rule: BatchRule = BatchRule::Ascending, 0, 1;
    }
}

impl Config {
    /// The scheduler of 2.6.0 to about 2.6.23.
    #[must_use]
    pub(crate) fn linux_2_6_9() -> Self {
        Self { batch_rule: BatchRule::Contiguous, ..Self::default() }
    }
}

/// A direction of transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dir {
    Read,
    /// Writes and discards.
    Write,
}

impl Dir {
    const fn of(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write | Op::Discard => Self::Write,
        }
    }
}

/// The waiting requests and the state of the batch: one for each group, under the controller.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    reads: SortedQueue,
    writes: SortedQueue,
    /// The direction of the last request that was issued, and the one that follows it in sector order.
    dir: Dir,
    next: Option<Tag>,
    /// The sector behind the last request that was issued.
    last_sector: Sector,
    /// How many requests the running batch has had.
    batching: u64,
    /// How many batches of reads have passed waiting writes.
    starved: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            reads: SortedQueue::default(),
            writes: SortedQueue::default(),
            dir: Dir::Read,
            next: None,
            last_sector: Sector(0),
            batching: 0,
            starved: 0,
        }
    }
}

impl Context {
    fn queue(&self, dir: Dir) -> &SortedQueue {
        match dir {
            Dir::Read => &self.reads,
            Dir::Write => &self.writes,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Deadline {
    config: Config,
    links: SortedLinks,
    own: Context,
}

impl Scheduler for Deadline {
    const NAME: &'static str = "deadline";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { config, links: SortedLinks::new(limits.tags), own: Context::default() })
    }

    #[inline]
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        let (links, queue) = self.queue_mut(Dir::of(rq.op));
        links.insert(queue, tag, rq.start);
    }

    #[inline(always)]
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let tag = match self.batch_continues(cx) {
            Some(tag) => {
                cx.why = Reason::Batch;
                tag
            }
            None => match self.start_batch(cx) {
                Some(tag) => tag,
                None => return Dispatch::Empty,
            },
        };
        self.own.batching += 1;
        self.take(cx, tag);
        Dispatch::Issue(tag)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let tag = self.links.lowest(&self.own.reads).or_else(|| self.links.lowest(&self.own.writes))?;
        self.take(cx, tag);
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Front {
            let rq = &cx.requests[kept].rq;
            let (links, queue) = self.queue_mut(Dir::of(rq.op));
            links.reposition(queue, kept, rq.start);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        if self.own.next == Some(gone) {
            self.own.next = self.links.next(gone);
        }
        let (links, queue) = self.queue_mut(Dir::of(cx.requests[gone].rq.op));
        links.join(queue, cx.requests, kept, gone);
    }

    fn front_merges(&self) -> bool {
        self.config.front_merges
    }

    fn check(&self, requests: &Requests) {
        self.check_each(core::iter::empty(), requests);
    }
}

impl Divisible for Deadline {
    const DIVIDED: &'static str = "deadline+groups";
    type Context = Context;

    fn context(&self) -> Context {
        Context::default()
    }

    fn swap(&mut self, _group: GroupId, context: &mut Context) {
        core::mem::swap(&mut self.own, context);
    }

    fn check_each<'a>(&'a self, others: impl Iterator<Item = &'a Context>, requests: &Requests) {
        for own in core::iter::once(&self.own).chain(others) {
            for dir in [Dir::Read, Dir::Write] {
                let queue = own.queue(dir);
                self.links.check(queue, requests);
                for tag in self.links.iter(queue) {
                    assert!(Dir::of(requests[tag].rq.op) == dir, "a request waits in the wrong direction");
                }
            }
            if let Some(next) = own.next {
                assert!(self.links.contains(next), "the next request does not wait");
                let dir = Dir::of(requests[next].rq.op);
                assert!(dir == own.dir, "the next request goes in another direction");
            }
        }
    }
}

impl Deadline {
    fn queue_mut(&mut self, dir: Dir) -> (&mut SortedLinks, &mut SortedQueue) {
        match dir {
            Dir::Read => (&mut self.links, &mut self.own.reads),
            Dir::Write => (&mut self.links, &mut self.own.writes),
        }
    }

    /// The next request of the running batch, unless that is over.
    fn batch_continues(&mut self, cx: &Cx<'_>) -> Option<Tag> {
        let next = self.own.next?;
        if self.config.batch_rule == BatchRule::Contiguous
            && cx.requests[next].rq.start != self.own.last_sector
        {
            self.own.batching += u64::from(self.config.fifo_batch);
        }
        (self.own.batching < u64::from(self.config.fifo_batch)).then_some(next)
    }

    /// Which way the next batch goes; nothing if no request waits.
    fn choose_direction(&mut self) -> Option<(Dir, Reason)> {
        let (reads, writes) = (!self.own.reads.is_empty(), !self.own.writes.is_empty());
        if !reads && !writes {
            return None;
        }
        if reads && writes {
            let passed_over = self.own.starved;
            // Counted after the comparison, whichever way it goes: with 2, two batches of reads pass, then
            // one of writes (docs/reference/elevators.md#32-variant-b).
            self.own.starved += 1;
            if passed_over >= u64::from(self.config.writes_starved) {
                self.own.starved = 0;
                return Some((Dir::Write, Reason::WritesStarved));
            }
        }
        if reads {
            return Some((Dir::Read, Reason::NewBatch));
        }
        self.own.starved = 0;
        Some((Dir::Write, Reason::NewBatch))
    }

    /// The first request of a new batch; nothing if none waits.
    #[inline(never)]
    fn start_batch(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let (dir, why) = self.choose_direction()?;
        cx.why = why;
        let oldest = self.own.queue(dir).oldest()?;
        let expire = match dir {
            Dir::Read => self.config.read_expire,
            Dir::Write => self.config.write_expire,
        };
        // Looked at only between batches: deadlines are soft.
        if cx.requests[oldest].since + expire < cx.now {
            cx.why = Reason::FifoExpired;
            self.own.batching = 0;
            return Some(oldest);
        }
        let next = self.own.next.filter(|_| self.own.dir == dir);
        match (self.config.batch_rule, next) {
            (BatchRule::Ascending, _) => {
                self.own.batching = 0;
                next.or(Some(oldest))
            }
            // Variant A does not reset the count here: until it does, each further gap asks for the direction
            // again (docs/reference/elevators.md#33-variant-a, quirk).
            (BatchRule::Contiguous, Some(_)) => next,
            (BatchRule::Contiguous, None) => {
                self.own.batching = 0;
                self.links.lowest(self.own.queue(dir))
            }
        }
    }

    /// Takes out the request that is issued, and remembers where it leads.
    #[inline(always)]
    fn take(&mut self, cx: &Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        self.own.dir = Dir::of(rq.op);
        self.own.last_sector = rq.end();
        let (links, queue) = self.queue_mut(Dir::of(rq.op));
        let next = links.next(tag);
        links.remove(queue, tag);
        self.own.next = next;
    }
}

#[cfg(test)]
mod tests;
