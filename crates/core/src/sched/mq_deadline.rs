//! mq-deadline: deadline with I/O priority classes and ageing.
//!
//! For disks and single-queue flash under a present-day kernel, where it is the default; and for those who
//! want `ionice -c1` and `-c3` to mean something without per-task fairness.
//!
//! # How it works
//!
//! Each class (real-time, best-effort, idle) has deadline's two sorted queues and its own positions; the
//! running batch and the count of how often writes were passed over are common to all. `dispatch` asks the
//! classes in order of urgency, and the first that has a request wins. A class whose requests are all at the
//! device keeps the lower ones waiting until they complete ([`Hold::HigherClass`]): otherwise the lower class
//! would fill the device queue in front of the next urgent request.
//!
//! *Ageing* keeps the lower classes alive. While two classes or more have work, requests that have waited for
//! `prio_aging_expire` go before everyone else, whatever their class: the rest of the running batch, then the
//! oldest of all.
//!
//! ```text
//!   queued: RT 100, RT 200, BE 50, IDLE 10          at 0 s:   RT 100 │ RT 200 │ hold │ … complete … │ BE 50 │ …
//!   ten seconds of real-time requests later:        at 10 s:  BE 50 │ IDLE 10 │ RT …
//! ```
//!
//! Within a class a batch continues from the *position* of its last request, so a request that arrives just
//! ahead of it is taken along (deadline instead remembers which request comes next). Deadlines pass *at*
//! their instant.
//!
//! Requests of different classes are not merged.
//!
//! # How long requests wait
//!
//! While one class is alone: as in deadline, see [`super::deadline`]. While several have work: a request that
//! has waited for `prio_aging_expire`, and is older than all but *n* others of any class, is issued within
//! `(n + 1)` batches and the rest of the running one, a batch being at most `max(fifo_batch, 1)` requests.
//!
//! # What it does not do
//!
//! The levels within a class are ignored, as is the task. Requests for which the kernel bypasses the order
//! ("at head") are the driver's. `async_depth` limits how many tags the driver should give to requests that
//! are not sync reads: the kernel enforces it when a tag is allocated, long before the scheduler sees the
//! request, and so must a driver here, by asking [`crate::Elevator::has_room`].
//!
//! # Differences from the kernel
//!
//! The kernel ages only best-effort before idle, and tries the class's usual choice for age: under a constant
//! load that choice can be young for ever while an old write waits. Here the oldest of all starts the next
//! batch, whatever its class (also real-time), so that the bound above holds. A choice that is rejected for
//! its age leaves no trace here; in the kernel it does. [`MqDeadline::age_as_the_kernel`] brings the kernel's
//! rule back, for comparisons with it.
//!
//= linux-6.18 block/mq-deadline.c, docs/reference/elevators.md#4-mq-deadline
//= deviates mqd-ageing

use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Cx, Dispatch, End, Hold, Limits};
use crate::parts::sorted::{SortedLinks, SortedQueue};
use crate::request::{Op, Request, Requests};
use crate::trace::Reason;
use crate::tunables;
use crate::units::{Class, Duration, Instant, Sector, Tag};

tunables! {
    /// mq-deadline's tunables, under their sysfs names.
    //= linux-6.18 block/mq-deadline.c dd_init_sched
    pub struct Config {
        /// How long a read may wait before a new batch of reads of its class starts with it. Default 500 ms.
        pub read_expire: Duration = Duration::from_ms(500), 0, u64::MAX;
        /// How long a write or discard may wait before a new batch of writes of its class starts with it.
        /// Default 5 s.
        pub write_expire: Duration = Duration::from_secs(5), 0, u64::MAX;
        /// How many batches of reads may pass waiting writes. Default 2; 0 starves reads instead.
        pub writes_starved: u32 = 2, 0, 0x7fff_ffff;
        /// How many requests a batch has at most. Default 16; 0 counts as 1.
        pub fifo_batch: u32 = 16, 0, 0x7fff_ffff;
        /// Whether to look for requests that a new one can be put in front of. Default 1.
        pub front_merges: bool = true, 0, 1;
        /// How long a request may wait for those of higher classes. Default 10 s.
        pub prio_aging_expire: Duration = Duration::from_secs(10), 0, u64::MAX;
        /// How many requests that are not sync reads may be queued or issued at a time, if the driver asks.
        /// Default 0: no limit.
        pub async_depth: u32 = 0, 0, 65535;
    }
}

const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

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

/// One class.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// By direction.
    queues: [SortedQueue; 2],
    /// Where the last request that was issued in each direction started.
    positions: [Sector; 2],
    /// How many requests it has, waiting or at the device.
    pending: u32,
}

impl Level {
    fn queue(&self, dir: Dir) -> &SortedQueue {
        &self.queues[dir as usize]
    }

    fn waits(&self, dir: Dir) -> bool {
        !self.queue(dir).is_empty()
    }

    fn is_idle(&self) -> bool {
        !self.waits(Dir::Read) && !self.waits(Dir::Write)
    }
}

/// A choice, not yet made.
#[derive(Clone, Copy, Debug)]
struct Pick {
    tag: Tag,
    dir: Dir,
    why: Reason,
    /// It starts a batch.
    fresh: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct MqDeadline {
    config: Config,
    /// Whether ageing is the kernel's; see [`MqDeadline::age_as_the_kernel`].
    kernel_ageing: bool,
    links: SortedLinks,
    /// By class.
    levels: [Level; 3],
    last_dir: Dir,
    /// How many requests the running batch has had.
    batching: u32,
    /// How many batches of reads have passed waiting writes.
    starved: u32,
    /// How many requests wait or are at the device that are not sync reads.
    asyncs: u32,
}

impl Scheduler for MqDeadline {
    const NAME: &'static str = "mq-deadline";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            kernel_ageing: false,
            links: SortedLinks::new(limits.tags),
            levels: [Level::default(); 3],
            last_dir: Dir::Read,
            batching: 0,
            starved: 0,
            asyncs: 0,
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        let level = &mut self.levels[rq.prio.class as usize];
        level.pending += 1;
        self.asyncs += u32::from(is_async(rq));
        self.links.insert(&mut level.queues[Dir::of(rq.op) as usize], tag, rq.start);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        match self.choose(cx.requests, cx.now) {
            Ok((class, pick)) => self.issue(cx, class, pick),
            Err(why) => why,
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        for class in CLASSES {
            for dir in [Dir::Read, Dir::Write] {
                if let Some(tag) = self.links.lowest(self.levels[class as usize].queue(dir)) {
                    self.take(cx.requests, tag);
                    return Some(tag);
                }
            }
        }
        None
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Front {
            let rq = &cx.requests[kept].rq;
            let queue = &mut self.levels[rq.prio.class as usize].queues[Dir::of(rq.op) as usize];
            self.links.reposition(queue, kept, rq.start);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let rq = &cx.requests[gone].rq;
        let level = &mut self.levels[rq.prio.class as usize];
        level.pending -= 1;
        self.asyncs -= u32::from(is_async(rq));
        self.links.join(&mut level.queues[Dir::of(rq.op) as usize], cx.requests, kept, gone);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        self.levels[rq.prio.class as usize].pending -= 1;
        self.asyncs -= u32::from(is_async(rq));
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        let there = &requests[into].rq;
        // Sync and async are counted apart, and classes wait apart.
        there.prio.class == rq.prio.class && there.sync == rq.sync
    }

    fn front_merges(&self) -> bool {
        self.config.front_merges
    }

    fn has_room(&self, rq: &Request) -> bool {
        self.config.async_depth == 0 || !is_async(rq) || self.asyncs < self.config.async_depth
    }

    /// Only requests of lower classes wait.
    fn prefers(&self, done: &Request) -> bool {
        self.levels[..=done.prio.class as usize].iter().all(Level::is_idle)
    }

    /// It has no way to: what it holds back for a higher class waits for the next insertion.
    fn wants_run(&self) -> bool {
        false
    }

    fn check(&self, requests: &Requests) {
        let mut pending = 0;
        for (level, class) in self.levels.iter().zip(CLASSES) {
            for dir in [Dir::Read, Dir::Write] {
                self.links.check(level.queue(dir), requests);
                for tag in self.links.iter(level.queue(dir)) {
                    let rq = &requests[tag].rq;
                    assert!(
                        Dir::of(rq.op) == dir && rq.prio.class == class,
                        "a request waits in the wrong queue"
                    );
                }
            }
            let waiting = level.queues.iter().map(SortedQueue::len).sum::<u32>();
            assert!(level.pending >= waiting, "more wait than there are");
            pending += level.pending;
        }
        assert_eq!(pending, requests.queued() + requests.issued(), "requests of all classes");
    }
}

/// Whether `async_depth` applies to it.
fn is_async(rq: &Request) -> bool {
    !(rq.op == Op::Read && rq.sync)
}

impl MqDeadline {
    /// From now on ageing is the kernel's: best effort, then idle, tries its usual choice for age, and what a
    /// choice does to batch, direction and count stays when the choice is too young. For comparisons with a
    /// kernel.
    pub fn age_as_the_kernel(&mut self) {
        self.kernel_ageing = true;
    }

    /// The driver asks. If that gives no request although some wait: what it changes, and true. Otherwise
    /// nothing changes.
    pub fn asked_in_vain(&mut self, requests: &Requests, now: Instant) -> bool {
        if self.levels.iter().all(Level::is_idle) {
            return false;
        }
        let before = (self.batching, self.last_dir, self.starved);
        let is_vain = self.choose(requests, now).is_err();
        if !is_vain {
            (self.batching, self.last_dir, self.starved) = before;
        }
        is_vain
    }

    /// Which class's which request is next; or why there is none.
    fn choose(&mut self, requests: &Requests, now: Instant) -> Result<(Class, Pick), Dispatch> {
        let aged =
            if self.kernel_ageing { self.usual_if_aged(requests, now) } else { self.aged(requests, now) };
        if let Some(aged) = aged {
            return Ok(aged);
        }
        for class in CLASSES {
            if let Some(pick) = self.pick(requests, now, class) {
                return Ok((class, pick));
            }
            // A lower class waits even while the higher one only has requests in the device
            // (docs/reference/elevators.md#4-mq-deadline).
            if self.levels[class as usize].pending > 0 {
                let lower_waits = self.levels[class as usize + 1..].iter().any(|l| !l.is_idle());
                return Err(if lower_waits { Dispatch::Hold(Hold::HigherClass) } else { Dispatch::Empty });
            }
        }
        Err(Dispatch::Empty)
    }

    /// Makes the choice.
    fn issue(&mut self, cx: &mut Cx<'_>, class: Class, pick: Pick) -> Dispatch {
        self.begin(class, &pick);
        self.batching = self.batching.saturating_add(1);
        cx.why = pick.why;
        self.take(cx.requests, pick.tag);
        Dispatch::Issue(pick.tag)
    }

    /// If the choice starts a batch: starts it.
    fn begin(&mut self, class: Class, pick: &Pick) {
        if !pick.fresh {
            return;
        }
        self.batching = 0;
        self.last_dir = pick.dir;
        match pick.dir {
            Dir::Write => self.starved = 0,
            Dir::Read if self.levels[class as usize].waits(Dir::Write) => {
                self.starved = self.starved.saturating_add(1);
            }
            Dir::Read => {}
        }
    }

    fn take(&mut self, requests: &Requests, tag: Tag) {
        let rq = &requests[tag].rq;
        let (level, dir) = (&mut self.levels[rq.prio.class as usize], Dir::of(rq.op) as usize);
        level.positions[dir] = rq.start;
        self.links.remove(&mut level.queues[dir], tag);
    }

    /// What deadline would issue if there were only this class.
    fn pick(&self, requests: &Requests, now: Instant, class: Class) -> Option<Pick> {
        let level = &self.levels[class as usize];
        if let Some(tag) = self.batch_continues(level) {
            return Some(Pick { tag, dir: self.last_dir, why: Reason::Batch, fresh: false });
        }
        let (reads, writes) = (level.waits(Dir::Read), level.waits(Dir::Write));
        let starved = reads && writes && self.starved >= self.config.writes_starved;
        let (dir, why) = match (reads, writes) {
            (false, false) => return None,
            (true, _) if !starved => (Dir::Read, Reason::NewBatch),
            _ if starved => (Dir::Write, Reason::WritesStarved),
            _ => (Dir::Write, Reason::NewBatch),
        };
        let oldest = level.queue(dir).oldest()?;
        let expire = match dir {
            Dir::Read => self.config.read_expire,
            Dir::Write => self.config.write_expire,
        };
        // Looked at only when a batch begins, and only for the chosen direction: deadlines are soft.
        if requests[oldest].since + expire <= now {
            return Some(Pick { tag: oldest, dir, why: Reason::FifoExpired, fresh: true });
        }
        // At the end of the disk the elevator turns to the oldest, not to the lowest sector.
        let tag = self.next(level, dir).unwrap_or(oldest);
        Some(Pick { tag, dir, why, fresh: true })
    }

    /// The class and request that have waited too long for others: the next of the running batch if it has,
    /// else the oldest of all.
    ///
    /// A batch is not broken for an older request: if it were, one class could keep starting batches beside
    /// another whose oldest request is never where the batch is.
    fn aged(&self, requests: &Requests, now: Instant) -> Option<(Class, Pick)> {
        if self.levels.iter().filter(|level| level.pending > 0).count() < 2 {
            return None;
        }
        let since = |pick: &(Class, Pick)| requests[pick.1.tag].since;
        let is_aged = |pick: &(Class, Pick)| since(pick) + self.config.prio_aging_expire <= now;
        let goes_on = CLASSES.into_iter().filter_map(|class| {
            let tag = self.batch_continues(&self.levels[class as usize])?;
            Some((class, Pick { tag, dir: self.last_dir, why: Reason::Batch, fresh: false }))
        });
        if let Some(pick) = goes_on.filter(is_aged).min_by_key(since) {
            return Some(pick);
        }
        let heads = CLASSES.into_iter().flat_map(|class| [(class, Dir::Read), (class, Dir::Write)]);
        let oldest = heads.filter_map(|(class, dir)| {
            let tag = self.levels[class as usize].queue(dir).oldest()?;
            Some((class, Pick { tag, dir, why: Reason::Aged, fresh: true }))
        });
        oldest.min_by_key(since).filter(is_aged)
    }

    /// The kernel's ageing: the usual choice of a lower class, if it has waited too long.
    fn usual_if_aged(&mut self, requests: &Requests, now: Instant) -> Option<(Class, Pick)> {
        if self.levels.iter().filter(|level| level.pending > 0).count() < 2 {
            return None;
        }
        for class in [Class::BestEffort, Class::Idle] {
            let Some(pick) = self.pick(requests, now, class) else { continue };
            if requests[pick.tag].since + self.config.prio_aging_expire <= now {
                return Some((class, pick));
            }
            // The kernel's pick changes batch and direction before the age is looked at, and a refused pick
            // stays changed.
            self.begin(class, &pick);
        }
        None
    }

    /// The next request of the running batch in this class, unless the batch is over.
    fn batch_continues(&self, level: &Level) -> Option<Tag> {
        if self.batching >= self.config.fifo_batch {
            return None;
        }
        self.next(level, self.last_dir)
    }

    /// The request at or after the class's position.
    fn next(&self, level: &Level, dir: Dir) -> Option<Tag> {
        self.links.at_or_after(level.queue(dir), level.positions[dir as usize])
    }
}

#[cfg(test)]
mod tests;
