//! The anticipatory scheduler (AS): after a read, wait a moment for the next one from the same place.
//!
//! A process that reads a file sends its next request right *after* the last one was answered. A scheduler
//! that never idles has then already sent the head to another process, and pays two seeks for each request of
//! two such readers. AS keeps the disk idle for up to `antic_expire` (6 ms, less than a seek and a rotation)
//! if the process that was served last is likely to continue nearby:
//!
//! ```text
//!   time  0 ms    5      5.1         5.2     10.2               reader 1 at sectors 0, 8, 16, …; reader 2 far away
//!   disk  [1: 0]  idle               [1: 8]  idle …
//!                 1 done  2 asks: wait  1 asks: hit
//! ```
//!
//! After 125 ms (`read_expire`) reader 2's request has expired; it is served, and now the disk waits for
//! reader 2. So readers take turns of about `read_expire` each, and n of them wait 117 to 130 ms times n at
//! worst, because expiry is itself looked at only once in `read_expire`.
//!
//! # How it decides
//!
//! Requests come in two kinds: *sync* (reads, and writes that a program waits for) and *async*. The kinds
//! take turns in *batches*: 500 ms of sync, then as many async requests as took 125 ms last time; a batch of
//! the other kind begins when the device has finished the old one. Within a batch the next request is the
//! nearest one forward, or a little backward (`choose`), unless the oldest has
//! expired. In sync batches only, the disk waits. `Scheduler::dispatch` below is the whole policy; `batch`
//! times and sizes batches, `anticipation` decides whether waiting is worth it, `statistics` knows how long
//! tasks think, how far they seek and whether they vanish.
//!
//! # Bounds
//!
//! Waiting ends with the first of: a request that breaks it, `antic_expire` after the completion that it is
//! timed from. While the awaited task's own request is still at the device there is no timer: its completion
//! starts it. At most one wait precedes an issue; a task that exits, requests that are merged or handed back,
//! and other completions of the awaited task change nothing about that.
//!
//! Each look for expired requests serves the oldest. Let *decision* be the time to the next decision: one
//! wait, and what the device has in hand. Looks at sync requests are at most `read_expire` and a decision
//! apart, so a sync request with `n` older ones waits about `(n + 2) * (read_expire + decision)` while
//! nothing async waits. With async requests about, that holds within each sync batch, if `read_batch_expire`
//! has room for a look; a pair of batches lasts `read_batch_expire + write_batch_expire` and some decisions.
//!
//! An async request with `n` older ones waits for at most `n + 1` pairs of batches and looks if the device
//! takes one request at a time. If it takes more, a batch may have to wait for it, and then begins neither at
//! the oldest request nor with a look: a request far from all others may wait for as long as nearer ones keep
//! coming. With `variant=2.6.9` async requests may then starve altogether (see [`Variant::Early`]). That is
//! how AS was.
//!
//! # How this maps to the kernel's structure
//!
//! The kernel's AS moves a request to a list from which the driver takes it; ours hands it to the device at
//! once. So the kernel's "dispatched" (in the list or at the device) is our *in flight*, and its per-process
//! "dispatched" (in the list) is left with requests that the device handed back. Two requests with one start
//! sector may wait together; the kernel had to push the older one out. With a device that takes one request
//! at a time, as in 2004, both are exact.
//!
//! Times are compared on the clock that the elevator shows. Where the kernel counted timer ticks (think
//! times, `/ 10` for the size of write batches), a tick is [`Limits::tick`], or 1 ms (HZ = 1000) if that is
//! zero.
//!
//! # What it does not do
//!
//! No priorities, no groups, and fairness only by accident: of random readers, those with the larger mean
//! seek distance lose the disk to any task nearby. It knows nothing of a device's own queue. Statistics of a
//! process are kept per elevator; the kernel shared them among all disks. The right of the awaited process to
//! a request beyond the pool's limit (`may_queue`) belongs to the owner of the pool.
//!
//= linux-2.6.9 drivers/block/as-iosched.c
//= linux-2.6.32 block/as-iosched.c, Documentation/block/as-iosched.txt, docs/reference/elevators.md#5-as
//= paper: S. Iyer, P. Druschel, "Anticipatory scheduling", SOSP 2001

use super::Scheduler;
use super::fair::Divisible;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Hold, Limits, Timer};
use crate::parts::choose::{BackSeek, first_is_nearer};
use crate::parts::sorted::{SortedLinks, SortedQueue};
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Instant, Sector, Tag};
use crate::{choice, tunables};

mod anticipation;
mod batch;
mod statistics;
#[cfg(test)]
mod tests;

use anticipation::{Anticipation, Rules};
use batch::Batch;
#[cfg(test)]
pub(crate) use statistics::EstTime;
use statistics::Tasks;

choice! {
    /// The kernel version whose rules to follow.
    pub enum Variant {
        /// Linux 2.6.0 to about 2.6.17: narrow closeness (64 sectors, doubling with each ms of waiting), no
        /// statistics about cooperating processes, async batches begin at the nearest request, and a defect:
        /// an async batch that had to wait for sync requests at the device is not given its time, so it ends
        /// before it began. Where some sync request is always at the device (queue depth 2 and more), async
        /// requests then starve.
        Early = "2.6.9";
        /// Linux 2.6.32, the last release with AS: wide closeness (4 MiB, or the process's mean seek
        /// distance), cooperating processes, async batches begin at the oldest request.
        Late = "2.6.32";
    }
}

tunables! {
    /// The tunables of AS.
    pub struct Config {
        /// When a sync request expires, and how often to look for expired ones. Default 125 ms.
        //= linux-2.6.32 block/as-iosched.c default_read_expire
        pub read_expire: Duration = Duration::from_ms(125), 0, u64::MAX;
        /// When an async request expires, and how often to look for expired ones. Default 250 ms.
        //= linux-2.6.32 block/as-iosched.c default_write_expire
        pub write_expire: Duration = Duration::from_ms(250), 0, u64::MAX;
        /// How long a batch of sync requests lasts while async ones wait. Default 500 ms.
        //= linux-2.6.32 block/as-iosched.c default_read_batch_expire
        pub read_batch_expire: Duration = Duration::from_ms(500), 0, u64::MAX;
        /// How long a batch of async requests should last; its size adapts to that. Default 125 ms.
        //= linux-2.6.32 block/as-iosched.c default_write_batch_expire
        pub write_batch_expire: Duration = Duration::from_ms(125), 0, u64::MAX;
        /// How long to wait for the next request of the task that was served last; 0: not at all. Default 6
        /// ms (HZ/150 at HZ = 1000).
        //= linux-2.6.32 block/as-iosched.c default_antic_expire
        pub antic_expire: Duration = Duration::from_ms(6), 0, u64::MAX;
        /// The kernel version whose rules to follow. Default 2.6.32.
        pub variant: Variant = Variant::Late, 0, 1;
    }
}

impl Config {
    /// Returns the tunables of Linux 2.6.0 to about 2.6.17.
    #[must_use]
    pub(crate) fn linux_2_6_9() -> Self {
        Self { variant: Variant::Early, ..Self::default() }
    }
}

/// Seeks back by up to 512 MiB count, at twice the price.
//= linux-2.6.32 block/as-iosched.c MAXBACK, BACK_PENALTY
const BACK_SEEK: BackSeek = BackSeek { max: 1024 * 1024, penalty: 2 };

/// What the kernel calls sync and async, or (in 2004) read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Sync,
    Async,
}

impl Kind {
    const fn of(rq: &Request) -> Self {
        if rq.sync { Self::Sync } else { Self::Async }
    }
}

/// The waiting requests of one kind.
#[derive(Clone, Copy, Debug)]
struct Queue {
    requests: SortedQueue,
    /// The cheapest to reach from `last_sector`, more or less; always one while any waits.
    next: Option<Tag>,
    /// Behind the last issued request.
    last_sector: Sector,
    /// When the oldest request was last examined for expiry.
    last_check: Option<Instant>,
    expire: Duration,
}

/// The waiting requests and the state of the batch: one for each group, under the controller.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    queues: [Queue; 2],
    batch: Batch,
    /// At the device, or handed back by it.
    in_flight: u32,
}

impl Context {
    fn new(config: &Config, tick: Duration) -> Self {
        let queue = |expire| Queue {
            requests: SortedQueue::default(),
            next: None,
            last_sector: Sector(0),
            last_check: None,
            expire,
        };
        Self {
            queues: [queue(config.read_expire), queue(config.write_expire)],
            batch: Batch::new(config, tick),
            in_flight: 0,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Anticipatory {
    config: Config,
    rules: &'static Rules,
    tick: Duration,
    links: SortedLinks,
    own: Context,
    /// The task of each request.
    owner: Table<Tag, TaskSlot>,
    tasks: Tasks,
    wait: Anticipation,
    /// The group whose context `own` is, and the group that has the disk and is waited for.
    group: GroupId,
    holder: GroupId,
}

impl Scheduler for Anticipatory {
    const NAME: &'static str = "as";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let tick = if limits.tick.is_zero() { Duration::from_ms(1) } else { limits.tick };
        Ok(Self {
            config,
            rules: Rules::of(config.variant),
            tick,
            links: SortedLinks::new(limits.tags),
            own: Context::new(&config, tick),
            owner: Table::new(usize::from(limits.tags), TaskSlot(0)),
            tasks: Tasks::new(limits.tasks, tick),
            wait: Anticipation::new(config.antic_expire, tick),
            group: GroupId::ROOT,
            holder: GroupId::ROOT,
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        self.owner[tag] = self.tasks.arrive(rq, cx.now, self.wait.awaited());
        let queue = &mut self.own.queues[Kind::of(rq) as usize];
        //= deviates as-aliases
        self.links.insert(&mut queue.requests, tag, rq.start);
        queue.next = nearer(cx.requests, queue.last_sector, Some(tag), queue.next);
        // Each arrival may end the wait: it is the awaited one, it is close, or it changes what is known.
        if self.wait.is_on()
            && self.group == self.holder
            && let Some(why) = self.why_not_wait(cx, Some(tag))
        {
            self.stop_waiting(cx, why);
        }
    }

    //= linux-2.6.32 block/as-iosched.c as_dispatch_request
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let (any_sync, any_async) = (self.has(Kind::Sync), self.has(Kind::Async));
        if !any_sync {
            self.own.batch.note_idleness(any_async);
        }
        if !any_sync && !any_async {
            return Dispatch::Empty;
        }
        if self.wait.is_on() {
            return Dispatch::Hold(Hold::Anticipate);
        }
        // The device finishes the old batch first; otherwise the time of the new one would be spent on
        // requests of the old.
        if self.own.batch.is_changing() {
            return Dispatch::Hold(Hold::DrainBatch);
        }
        let mut next = None;
        if !(any_sync && any_async && self.own.batch.is_over(cx.now)) {
            next = self.own.queues[self.own.batch.kind() as usize].next;
            if self.own.batch.kind() == Kind::Sync && !self.config.antic_expire.is_zero() {
                // An expired request goes before any wait; the wait is for throughput.
                if let Some(expired) = self.expired(cx, Kind::Sync) {
                    return self.commit(cx, expired, Reason::FifoExpired);
                }
                if self.should_wait(cx, next) {
                    self.start_waiting(cx);
                    return Dispatch::Hold(Hold::Anticipate);
                }
            }
            if next.is_some() && !any_async {
                // No writes wait, so the batch of reads takes no time from any.
                self.own.batch.extend(cx.now, &self.config);
            }
        }
        // The batch is over, or has nothing more in its direction.
        let (tag, why) = match next {
            Some(tag) => (tag, Reason::Nearest),
            None => (self.change_batch(cx, any_sync, any_async), Reason::NewBatch),
        };
        match self.expired(cx, self.own.batch.kind()) {
            Some(expired) => self.commit(cx, expired, Reason::FifoExpired),
            None => self.commit(cx, tag, why),
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        self.own.batch.abandon();
        let [sync, r#async] = &self.own.queues;
        let tag = sync.next.or(r#async.next)?;
        self.take(cx, tag);
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        if end == End::Front {
            let rq = &cx.requests[kept].rq;
            let queue = &mut self.own.queues[Kind::of(rq) as usize];
            self.links.reposition(&mut queue.requests, kept, rq.start);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let kind = Kind::of(&cx.requests[gone].rq);
        if self.own.queues[kind as usize].next == Some(gone) {
            self.pass_over(cx.requests, kind, gone);
        }
        self.links.join(&mut self.own.queues[kind as usize].requests, cx.requests, kept, gone);
        let owner = self.owner[gone];
        self.tasks[owner].queued -= 1;
        self.tasks.forget_if_gone(owner, self.wait.awaited());
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let (owner, kind) = (self.owner[tag], Kind::of(&cx.requests[tag].rq));
        self.own.batch.completed(
            cx.now,
            kind,
            self.own.in_flight,
            self.rules.times_deferred_batches,
            &self.config,
        );
        self.own.in_flight -= 1;
        // The wait is timed from here: the task can think only now.
        self.wait.completed(owner, cx.now);
        let task = &mut self.tasks[owner];
        task.at_device -= 1;
        if kind == Kind::Sync {
            task.running = true;
            task.last_end = cx.now;
        }
        self.tasks.forget_if_gone(owner, self.wait.awaited());
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        let task = &mut self.tasks[self.owner[tag]];
        task.at_device -= 1;
        task.handed_back += 1;
    }

    fn reissue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        let task = &mut self.tasks[self.owner[tag]];
        task.handed_back -= 1;
        task.at_device += 1;
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        if let Control::TaskExit(task) = *change
            && self.tasks.exit(task, self.wait.awaited())
        {
            cx.note(Reason::TaskExit, task);
        }
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.wait.is_up(cx.now) {
            self.time_out(cx);
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        Some((self.wait.until()?, Timer::Anticipate))
    }

    // A request that a program waits for must not wait together with one that no program waits for.
    //= deviates as-merge-kind
    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        requests[into].rq.sync == rq.sync
    }

    fn check(&self, requests: &Requests) {
        self.check_each(core::iter::empty(), requests);
    }
}

impl Divisible for Anticipatory {
    const DIVIDED: &'static str = "as+groups";
    type Context = Context;

    fn context(&self) -> Context {
        Context::new(&self.config, self.tick)
    }

    fn swap(&mut self, group: GroupId, context: &mut Context) {
        self.group = group;
        core::mem::swap(&mut self.own, context);
    }

    fn enter(&mut self, cx: &mut Cx<'_>) {
        self.holder = self.group;
        self.own.batch.resume(cx.now);
    }

    fn may_leave(&self) -> bool {
        !self.wait.is_on() && !self.own.batch.is_changing()
    }

    //= docs/reference/groups.md#6-schedulers-in-the-layer
    //= deviates fair-as-writes
    fn leave(&mut self, cx: &mut Cx<'_>) {
        if self.wait.is_on() {
            self.stop_waiting(cx, Reason::Preempted);
        }
        if let Some(last) = self.wait.restart(None) {
            self.tasks.forget_if_gone(last, None);
        }
        self.own.batch.pause(cx.now);
    }

    fn check_each<'a>(&'a self, others: impl Iterator<Item = &'a Context>, requests: &Requests) {
        let (mut waiting, mut in_flight) = (0, 0);
        for own in core::iter::once(&self.own).chain(others) {
            for queue in &own.queues {
                self.links.check(&queue.requests, requests);
                assert_eq!(queue.next.is_some(), !queue.requests.is_empty(), "no candidate, or a stale one");
                assert!(queue.next.is_none_or(|t| self.links.contains(t)), "the candidate has left");
                waiting += queue.requests.len();
            }
            assert!(!own.batch.is_changing() || own.in_flight > 0, "nothing is coming to end a batch change");
            in_flight += own.in_flight;
        }
        self.tasks.check(waiting, requests.issued(), in_flight);
        self.wait.check(&self.tasks);
    }
}

impl Anticipatory {
    /// Returns the expectations of a new process, which the kernel showed as `est_time`.
    #[cfg(test)]
    pub(crate) fn est_time(&self) -> EstTime {
        self.tasks.est_time()
    }

    fn has(&self, kind: Kind) -> bool {
        !self.own.queues[kind as usize].requests.is_empty()
    }

    /// The other kind's turn, or the only kind's that waits. Returns its first request.
    fn change_batch(&mut self, cx: &mut Cx<'_>, any_sync: bool, any_async: bool) -> Tag {
        let kind = if any_sync && !(any_async && self.own.batch.kind() == Kind::Sync) {
            Kind::Sync
        } else {
            Kind::Async
        };
        self.own.batch.change_to(kind);
        let queue = &mut self.own.queues[kind as usize];
        let from_oldest = kind == Kind::Sync || self.rules.async_batches_begin_at_oldest;
        if from_oldest {
            queue.last_check = Some(cx.now);
        }
        let first = if from_oldest { queue.requests.oldest() } else { queue.next };
        first.expect("a batch of a kind that waits")
    }

    /// The oldest request, if it has expired, and if that has not been looked at within the last `expire`.
    fn expired(&mut self, cx: &Cx<'_>, kind: Kind) -> Option<Tag> {
        let queue = &mut self.own.queues[kind as usize];
        if queue.last_check.is_some_and(|last| cx.now.saturating_since(last) < queue.expire) {
            return None;
        }
        queue.last_check = Some(cx.now);
        queue.requests.oldest().filter(|&t| cx.now > cx.requests[t].since + queue.expire)
    }

    /// Issues `tag`, unless a new batch begins and the old one is not done; then the choice is made afresh
    /// later.
    fn commit(&mut self, cx: &mut Cx<'_>, tag: Tag, why: Reason) -> Dispatch {
        if self.own.batch.is_changing() {
            if self.own.in_flight > 0 {
                return Dispatch::Hold(Hold::DrainBatch);
            }
            self.own.batch.begin(cx.now, &self.config);
            cx.note(Reason::BatchChange, cx.requests[tag].rq.task);
        }
        self.take(cx, tag);
        cx.why = why;
        Dispatch::Issue(tag)
    }

    /// Hands `tag` over.
    fn take(&mut self, cx: &Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        let kind = Kind::of(rq);
        self.own.queues[kind as usize].last_sector = rq.end();
        self.pass_over(cx.requests, kind, tag);
        self.links.remove(&mut self.own.queues[kind as usize].requests, tag);

        let owner = self.owner[tag];
        let task = &mut self.tasks[owner];
        task.queued -= 1;
        task.at_device += 1;
        self.own.in_flight += 1;
        let last = self.wait.restart((kind == Kind::Sync).then_some(owner));
        if let Some(last) = last {
            self.tasks.forget_if_gone(last, self.wait.awaited());
        }
        if kind == Kind::Async {
            self.own.batch.count_write();
        }
    }

    /// `tag` is about to leave: the better of its neighbours becomes the candidate.
    fn pass_over(&mut self, requests: &Requests, kind: Kind, tag: Tag) {
        let queue = &mut self.own.queues[kind as usize];
        let lowest = || self.links.lowest(&queue.requests).filter(|&t| t != tag);
        let after = self.links.next(tag).or_else(lowest);
        queue.next = nearer(requests, queue.last_sector, after, self.links.prev(tag));
    }
}

/// The better of two candidates with the head at `last`.
fn nearer(requests: &Requests, last: Sector, first: Option<Tag>, second: Option<Tag>) -> Option<Tag> {
    let (Some(a), Some(b)) = (first, second) else { return first.or(second) };
    let wins = first_is_nearer(requests[a].rq.start, requests[b].rq.start, last, BACK_SEEK);
    Some(if wins { a } else { b })
}
