//! The disk with its request queue: the elevator's driver.
//!
//! It owns the tags, the request pool, the plug and the device, and follows the driver's duties of
//! `fairhead_core`: tell the elevator what happens, dispatch while the device has room, arm one timer.
//!
//! ```text
//!   submit ─► pool (of tags, or by kind) ─► plug ─► elevator ─► device
//!   flush ──────────────────────────────────────────────────────► (past the elevator, one at a time)
//! ```
//!
//! When a pool is nearly empty the queue is *congested*: a hint that background writers and read-ahead obey.
//! When it is empty, threads wait in order; one that is woken may overdraw the pool for a moment, so that it
//! gets something done. A scheduler may keep a part of a pool free for urgent requests
//! ([`Elevator::has_room`]): to all others it is empty then. What a task has collected and not yet handed in
//! escapes that count.
//
//= docs/reference/elevators.md#16-plugging, docs/reference/elevators.md#17-request-pool
//= docs/reference/elevators.md#18-barriers-and-flushes

use super::capacity;
use super::locks::{DiskLock, Visit};
use super::owner::Owner;
use super::pools::{Batch, Pools, Taken};
use super::tap::{Tap, out_of_line};
use super::waiters::Waiters;
use super::wire::{FLUSH_TAG, Wire};
use crate::host::{Host, Lock, MultiQueue, Plug};
use crate::metrics::{DiskStats, Result};
use fairhead_core::sched::Scheduler;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::{
    Dispatch, Duration, Elevator, Hold, Insert, Instant, Limits, Op, Request, Sector, Sectors, State, Tag,
    Timer,
};
use fairhead_device::{Command, DeviceOp, DeviceParams, Driver, Facts};
use std::collections::VecDeque;

/// Tags of the elevator for each request of a pool; and how many there are at least and at most. A piece that
/// is merged keeps its tag, and one that waits for a limit is no request: there has to be room for more
/// pieces than requests; not for many more, as a table that fits the processor's caches is searched faster.
const TAGS_PER_REQUEST: u32 = 16;
const TAGS_MIN: u32 = 2048;
const TAGS_MAX: u32 = 4096;

/// How many of what there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) tasks: u32,
    pub(super) groups: u32,
    /// Whether groups have guarantees, which a disk must be good for.
    pub(super) guarantees: bool,
}

/// The request pool has no room: wait for it.
#[derive(Debug)]
pub(super) struct Full;

#[derive(Debug)]
pub(super) struct DiskQueue<'a> {
    elevator: Elevator<AnyScheduler>,
    /// The device, and the way to it.
    wire: Wire,
    /// By tag: the owner, which its completion wakes, and what it was taken from, if anything.
    owners: Vec<(Owner, Option<Taken>)>,
    free: Vec<u16>,
    depth: u32,
    pools: Pools,
    waiters: Waiters,
    plug: Plug,
    plugged: bool,
    /// How many requests a task collects at most.
    plug_max: usize,
    /// What the current task has collected ([`Plug::Task`]).
    collected: Vec<(Request, Owner, Taken)>,
    /// The scheduler's lock on hosts whose processors wait for it.
    disk_lock: Option<DiskLock>,
    /// What runs the queue; none: whatever happens.
    multi_queue: Option<MultiQueue>,
    /// The device was full when the scheduler was last asked, or would have been, and requests wait.
    was_full: bool,
    /// A dispatch found requests and was given none, and no delayed run has come since.
    was_held: bool,
    /// Since when requests wait while the scheduler keeps the disk idle.
    idle_since: Option<Instant>,
    stats: DiskStats,
    /// The observer of this queue, if there is one.
    pub(super) tap: Option<Box<Tap<'a>>>,
}

/// Chooses the clock that advances in steps of `tick`: the elevator's, so the scheduler's altogether, or only
/// those times of the scheduler's that the kernel kept in ticks.
//= linux-6.12 block/bfq-iosched.c, kyber-iosched.c: blk_time_get_ns, hrtimer
//= docs/reference/bfq.md#0-conventions
fn clock(sched: AnyConfig, tick: Duration) -> (AnyConfig, Duration) {
    match sched {
        AnyConfig::Bfq(mut config) => {
            if config.tick.is_zero() {
                config.tick = tick;
            }
            (AnyConfig::Bfq(config), Duration::ZERO)
        }
        // A scheduler from outside is of today: it counts in ns, as kyber does.
        AnyConfig::Kyber(_) | AnyConfig::Outside(_) => (sched, Duration::ZERO),
        _ => (sched, tick),
    }
}

impl<'a> DiskQueue<'a> {
    pub(super) fn new(
        disk: &DeviceParams,
        host: &Host,
        (sched, layer): (AnyConfig, Option<MultiQueue>),
        sizes: Sizes,
        trace: u32,
    ) -> Result<Self> {
        let wire = Wire::new(disk, host.path)?;
        let capacity = if sizes.guarantees { capacity::measure(disk)? } else { 0 };
        let facts = wire.facts();
        let pools = pools(host, layer, &sched, &facts);
        let (sched, tick) = clock(sched, host.tick);
        let requests = pools.requests();
        let tags = requests.saturating_mul(TAGS_PER_REQUEST).clamp(TAGS_MIN, TAGS_MAX);
        let tags = tags.max(requests + requests / 2);
        let tags = u16::try_from(tags).unwrap_or(u16::MAX - 1);
        let limits = Limits {
            tags,
            pool: u16::try_from(requests).unwrap_or(u16::MAX),
            tasks: sizes.tasks,
            groups: sizes.groups,
            capacity,
            max_sectors: host.max_request.min(facts.max_request),
            rotational: facts.rotational,
            queue_depth: facts.queue_depth,
            actuators: facts.actuators,
            tick,
            trace,
            ..Limits::default()
        };
        Ok(Self {
            elevator: Elevator::new(limits, sched)?,
            wire,
            owners: vec![(Owner::None, None); usize::from(tags)],
            free: (0..tags).rev().collect(),
            // In the multi-queue layer what leaves the scheduler has a tag of the driver.
            depth: u32::from(facts.queue_depth.min(if layer.is_some() { facts.tags() } else { u16::MAX })),
            pools,
            waiters: Waiters::default(),
            plug: host.plug,
            plugged: false,
            plug_max: if layer.is_some() { Plug::QUEUES_REQUESTS } else { Plug::TASK_REQUESTS },
            collected: Vec::with_capacity(Plug::TASK_REQUESTS),
            disk_lock: None,
            multi_queue: layer,
            was_full: false,
            was_held: false,
            idle_since: None,
            stats: DiskStats::default(),
            tap: None,
        })
    }

    /// Adds a lock that is held for `lock` for each request dispatched.
    pub(super) const fn with_lock(mut self, lock: Duration) -> Self {
        self.wire.lock = lock;
        self
    }

    /// Adds a lock that processors wait for.
    pub(super) fn with_disk_lock(mut self, lock: Option<Lock>) -> Self {
        self.disk_lock = lock.map(DiskLock::new);
        self
    }

    /// Whether processors wait for its scheduler's lock.
    pub(super) const fn has_lock(&self) -> bool {
        self.disk_lock.is_some()
    }

    /// What runs the queue; none: whatever happens.
    pub(super) const fn layer(&self) -> Option<MultiQueue> {
        self.multi_queue
    }

    /// A processor takes the scheduler's lock, if there is one, to insert and dispatch `requests` requests.
    pub(super) fn lock_to_submit(&mut self, now: Instant, requests: u32, alone: u32) -> Option<Visit> {
        self.disk_lock.as_mut().map(|lock| lock.submit(now, requests, alone))
    }

    /// A processor takes the scheduler's lock to end a request, if the scheduler has it do so.
    pub(super) fn lock_to_complete(&mut self, now: Instant) -> Option<Visit> {
        self.disk_lock.as_mut()?.complete(now)
    }

    pub(super) fn facts(&self) -> Facts {
        self.wire.facts()
    }

    /// Whether it and its device have nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        let requests = self.elevator.requests();
        requests.queued() + requests.held() + requests.issued() == 0 && self.collected.is_empty()
    }

    /// Whether the pool has a request for this one, from a thread that may overdraw the pool within its
    /// batch.
    pub(super) fn has_request(&self, now: Instant, rq: &Request, batch: Batch) -> bool {
        let pool = self.pools.of(rq.sync, batch.queue);
        let is_full = self.pools.is_full(pool, now, batch) || self.free.len() <= self.collected.len();
        if is_full || self.is_held_up(rq) {
            return false;
        }
        if self.pools.has_places() {
            return self.has_place(rq, batch, pool);
        }
        self.has_room_below(rq, batch.depth)
    }

    /// Whether the scheduler would have a request made now, whose thread was given that depth.
    fn has_room_below(&self, rq: &Request, depth: Option<u32>) -> bool {
        match depth {
            Some(depth) => self.elevator.has_room_below(rq, depth),
            None => self.elevator.has_room(rq),
        }
    }

    /// As [`has_request`](Self::has_request), where it matters which request of a pool is free.
    #[cold]
    #[inline(never)]
    fn has_place(&self, rq: &Request, batch: Batch, pool: usize) -> bool {
        self.has_room_below(rq, self.depth_of(rq, batch))
            && self.pools.has_place(pool, self.place_depth(rq, batch))
    }

    /// The depth that the scheduler gave a request's thread before the thread had to wait. Where it matters
    /// which request is free, a read has one from the start.
    fn depth_of(&self, rq: &Request, batch: Batch) -> Option<u32> {
        let wants_place = self.pools.has_places() && is_sync_read(rq);
        let ask = || self.elevator.scheduler().depth_for(rq);
        batch.depth.or_else(|| wants_place.then(ask))
    }

    /// To how many of the first requests of its pool a read is limited.
    #[cold]
    #[inline(never)]
    fn place_depth(&self, rq: &Request, batch: Batch) -> u32 {
        let depth = if is_sync_read(rq) { self.depth_of(rq, batch) } else { None };
        depth.unwrap_or(u32::MAX)
    }

    /// How many more may wait for limits: half of all tags are for those that need not.
    fn limit_room(&self) -> usize {
        (self.owners.len() / 2).saturating_sub(self.elevator.requests().held() as usize)
    }

    /// Whether it would wait for a limit, and too many do.
    fn is_held_up(&self, rq: &Request) -> bool {
        let groups = self.elevator.groups();
        self.limit_room() == 0
            && std::iter::successors(Some(groups.home(rq.group)), |&g| groups.parent(g))
                .any(|g| !groups.max(g).is_none())
    }

    /// Notes that there is no tag for a request.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, rq: &Request, owner: Owner, batch: &mut Batch) -> Full {
        self.waiters.was_held_up = self.is_held_up(rq);
        // A thread asks once how many may be in use before it gets one, as in Linux. Reads have all, unless
        // it matters which request is free.
        batch.depth = self.depth_of(rq, *batch);
        if !rq.sync && batch.depth.is_none() {
            batch.depth = Some(self.elevator.scheduler().depth_for(rq));
        }
        let pool = self.pools.of(rq.sync, batch.queue);
        self.pools.look_in_vain(pool, self.place_depth(rq, *batch));
        self.tell(|tap| tap.refused(rq, owner));
        Full
    }

    /// Hands in a request, from a thread that may overdraw the pool within its batch.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        rq: &Request,
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        if self.pools.has_places() {
            self.begin_direct(now, rq, owner);
        }
        if !self.has_request(now, rq, *batch) {
            return Err(self.refuse(rq, owner, batch));
        }
        // A request that is long enough goes when the next one comes: till then its task asks for that one's
        // tag.
        if let Some((last, ..)) = self.collected.last()
            && (last.len >= Plug::TASK_SECTORS || self.collected.len() >= self.plug_max)
        {
            self.hand_in_collected(now);
        }
        let pool = self.pools.of(rq.sync, batch.queue);
        let depth = if self.pools.has_places() { self.place_depth(rq, *batch) } else { u32::MAX };
        batch.left = batch.left.saturating_sub(1);
        batch.depth = None;
        match rq.op {
            Op::Read => self.stats.read_bytes += rq.len.bytes(),
            Op::Write => self.stats.written_bytes += rq.len.bytes(),
            Op::Discard => {}
        }
        let taken = self.pools.take(pool, depth);
        self.tell(|tap| tap.made(rq));
        if self.plug == Plug::Device {
            self.plugged |= self.elevator.requests().queued() == 0;
            self.insert(now, *rq, owner, taken);
            return Ok(());
        }
        self.collected.push((*rq, owner, taken));
        Ok(())
    }

    /// A direct call of a device has no plug.
    #[cold]
    #[inline(never)]
    fn begin_direct(&mut self, now: Instant, rq: &Request, owner: Owner) {
        if matches!(owner, Owner::Lane(_)) && is_sync_read(rq) && !self.collected.is_empty() {
            self.hand_in_collected(now);
        }
    }

    fn insert(&mut self, now: Instant, rq: Request, owner: Owner, taken: Taken) {
        let tag = self.free.pop().expect("submit has looked");
        self.tell(|tap| tap.tagged(Tag(tag)));
        let answer = if matches!(owner, Owner::Write { alone: true, .. }) {
            self.elevator.insert_alone(now, Tag(tag), rq);
            Insert::Queued
        } else {
            self.elevator.insert(now, Tag(tag), rq)
        };
        let taken = match answer {
            // As the kernel holds a bio, for which there is no request yet: a bio that waits for a limit
            // takes no request out of the pool.
            Insert::Queued if self.elevator.requests()[Tag(tag)].state == State::Held => {
                self.pools.give_back(taken);
                None
            }
            Insert::Queued => Some(taken),
            Insert::Merged { .. } => {
                self.stats.merged += 1;
                self.pools.give_back(taken);
                None
            }
        };
        self.owners[usize::from(tag)] = (owner, taken);
        if let Some(tap) = &mut self.tap {
            out_of_line(|| tap.inserted(&mut self.elevator, Tag(tag), owner));
        }
    }

    /// A task has collected enough, or is about to wait: its requests go in, in the order of the disk.
    fn hand_in_collected(&mut self, now: Instant) {
        self.tell(Tap::hands_in);
        if let [_] = self.collected[..]
            && let Some((rq, owner, taken)) = self.collected.pop()
        {
            return self.insert(now, rq, owner, taken);
        }
        let mut collected = std::mem::take(&mut self.collected);
        collected.sort_by_key(|(rq, ..)| rq.start);
        for (rq, owner, taken) in collected.drain(..) {
            self.insert(now, rq, owner, taken);
        }
        self.collected = collected;
    }

    /// Whether requests of this kind are nearly used up.
    pub(super) fn is_congested(&self, sync: bool) -> bool {
        self.pools.is_congested(sync)
    }

    /// Whether requests are held back; if so, the caller has to pull the plug after [`Plug::DELAY`].
    pub(super) fn is_plugged(&self) -> bool {
        self.plugged && self.elevator.requests().queued() < Plug::THRESHOLD
    }

    /// Pulls the plug: a process waits for I/O, or the plug has been in for long enough.
    pub(super) fn unplug(&mut self, now: Instant) {
        self.plugged = false;
        self.end_batch(now);
    }

    /// The current task's collection ends.
    pub(super) fn end_batch(&mut self, now: Instant) {
        if !self.collected.is_empty() {
            self.hand_in_collected(now);
        }
    }

    /// Gives the device what it has room for. Returns when to run again, if the lock has to be free for that.
    #[must_use]
    pub(super) fn run(&mut self, now: Instant) -> Option<Instant> {
        let again = self.fill_device(now);
        if self.tap.is_some() {
            self.tell_status();
        }
        again
    }

    /// Whether the queue is to be run after the last completion, timer or change. In the single-queue layer
    /// each runs it.
    pub(super) fn wants_run(&self) -> bool {
        self.multi_queue.is_none() || self.was_full || self.waiters.want_flush() || self.elevator.wants_run()
    }

    /// Whether the queue is to be run again after a while, because nothing may happen before that would run
    /// it.
    pub(super) const fn wants_delayed_run(&self) -> bool {
        self.multi_queue.is_some() && self.was_held
    }

    /// Whether the queue is to be run later, whatever happens until then: see [`Self::wants_delayed_run`] and
    /// [`Self::is_plugged`].
    #[inline]
    pub(super) fn wants_later_run(&self) -> bool {
        self.wants_delayed_run() || self.is_plugged()
    }

    fn fill_device(&mut self, now: Instant) -> Option<Instant> {
        if self.waiters.want_flush() {
            self.begin_flush(now);
        }
        // A flush needs no merging and passes the plug.
        if self.is_plugged() {
            return None;
        }
        self.plugged = false;
        (self.was_full, self.was_held) = (false, false);
        while self.has_room() {
            // The lock is held for the request before.
            if let Some(until) = self.wire.locked_until(now) {
                let waits = self.elevator.requests().queued() > 0;
                return waits.then_some(until);
            }
            let answer = self.elevator.dispatch(now);
            self.account_idling(now, answer);
            self.tell_answer(answer);
            let Dispatch::Issue(tag) = answer else {
                // Requests wait and none was given: blk-mq then runs the queue again after 3 ms
                // (docs/reference/nvme.md#4-after-a-completion).
                self.was_held = self.elevator.requests().queued() > 0;
                return None;
            };
            let rq = self.elevator.requests()[tag].rq;
            let op = match rq.op {
                Op::Read => DeviceOp::Read,
                Op::Write => DeviceOp::Write,
                Op::Discard => DeviceOp::Discard,
            };
            self.stats.issued += 1;
            let command = Command { tag, op, start: rq.start, len: rq.len, fua: false };
            if self.wire.send_locked(now, command) {
                self.tell_head(now, None);
            }
        }
        // In the multi-queue layer a completion runs the queue if the device was full.
        self.was_full = self.elevator.requests().queued() > 0;
        None
    }

    fn has_room(&self) -> bool {
        let flushing = u32::from(!self.waiters.flushing().is_empty());
        self.elevator.requests().issued() + flushing < self.depth && self.wire.device.can_accept()
    }

    /// Begins a flush if none is in flight; threads that ask meanwhile share the next.
    fn begin_flush(&mut self, now: Instant) {
        if self.waiters.flushing().is_empty() && self.has_room() {
            self.waiters.begin_flush();
            let (start, len) = (Sector(0), Sectors(0));
            let op = DeviceOp::Flush;
            if self.wire.send(now, Command { tag: FLUSH_TAG, op, start, len, fua: false }) {
                self.tell_head(now, None);
            }
            if let Some(tap) = &mut self.tap {
                out_of_line(|| tap.flushes(self.waiters.flushing()));
            }
        }
    }

    /// The thread wants everything that has completed to be stable.
    pub(super) fn flush(&mut self, thread: u32) {
        self.waiters.wait_for_flush(thread);
        self.tell(|tap| tap.wants_flush(thread));
    }

    fn account_idling(&mut self, now: Instant, answer: Dispatch) {
        let idles = matches!(answer, Dispatch::Hold(hold) if hold.is_idling())
            && self.elevator.requests().issued() == 0;
        match self.idle_since {
            None if idles => self.idle_since = Some(now),
            Some(since) if !idles => {
                self.stats.idled += now.since(since);
                self.idle_since = None;
            }
            _ => {}
        }
    }

    /// When the device wants to be polled.
    pub(super) fn device_due(&self) -> Option<Instant> {
        self.wire.due()
    }

    /// The next command that the device has finished.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Tag> {
        while self.wire.arrive(now) {
            self.tell_head(now, None);
        }
        let done = self.wire.device.poll(now);
        if done.is_some() {
            self.tell_head(now, done);
        }
        done
    }

    /// The interrupt handler ends a request. Answers through `owners` who handed in its pieces, through
    /// `woken` who waited for a flush, or for writes not to be congested.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        tag: Tag,
        owners: &mut Vec<Owner>,
        woken: &mut VecDeque<u32>,
    ) {
        owners.clear();
        if tag == FLUSH_TAG {
            self.waiters.end_flush(woken);
            return self.tell(Tap::flushed);
        }
        let was_congested = self.pools.is_congested(false);
        let freed = self.free.len();
        for free in self.elevator.complete(now, tag) {
            let (owner, taken) = self.owners[usize::from(free.0)];
            owners.push(owner);
            self.free.push(free.0);
            if let Some(taken) = taken {
                self.pools.give_back(taken);
            }
        }
        if let Some(tap) = &mut self.tap {
            out_of_line(|| tap.completed(&mut self.elevator, tag, &self.free[freed..]));
        }
        // Writers that wait for congestion wake when it ends, not with each request that is freed.
        if was_congested && !self.pools.is_congested(false) {
            self.waiters.wake_congested(woken);
        }
        if self.multi_queue.is_some() {
            self.look_at_idling(now);
        }
    }

    /// The scheduler is not asked after this completion. Its timer says whether it keeps the disk idle from
    /// now on.
    fn look_at_idling(&mut self, now: Instant) {
        let requests = self.elevator.requests();
        let is_idle = requests.issued() == 0 && requests.queued() > 0;
        // Asking would be a dispatch, which may change the scheduler's state; its timer is only read.
        let holds = is_idle && matches!(self.elevator.next_timer(), Some((_, Timer::SliceIdle)));
        let answer = if holds { Dispatch::Hold(Hold::SliceIdle) } else { Dispatch::Empty };
        self.account_idling(now, answer);
        if self.tap.is_some() {
            let idles = self.idle_since.is_some();
            self.tell(|tap| tap.answered(answer, idles));
            self.tell_status();
        }
    }

    /// How many threads wait for requests.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        match self.waiters.held_up() {
            0 => self.pools.waiting(),
            held_up => self.pools.waiting() + held_up.min(self.limit_room()),
        }
    }

    /// How many threads that wait for requests there are requests for.
    pub(super) fn can_wake(&self) -> usize {
        self.pools.can_wake() + self.waiters.held_up().min(self.limit_room())
    }

    /// A thread that waits for a request and can have one now.
    pub(super) fn pop_waiter(&mut self) -> Option<u32> {
        let thread = self.pools.pop_waiter();
        if thread.is_none() && self.limit_room() > 0 { self.waiters.pop_held_up() } else { thread }
    }

    /// Puts a thread at the end of the queue for a request of that kind, from a processor with that hardware
    /// queue.
    pub(super) fn wait(&mut self, thread: u32, sync: bool, queue: u16) {
        if !self.waiters.wait_for_limits(thread) {
            self.pools.wait(thread, sync, queue);
        }
        self.tell(|tap| tap.waits_for_tag(thread));
    }

    /// The thread is woken when writes are no longer congested; it sets itself a limit.
    pub(super) fn wait_for_congestion(&mut self, thread: u32) {
        self.waiters.wait_for_congestion(thread);
        self.tell(|tap| tap.waits_for_congestion(thread));
    }

    /// The thread's limit has passed.
    pub(super) fn end_wait_for_congestion(&mut self, thread: u32) {
        self.waiters.end_wait_for_congestion(thread);
    }

    pub(super) fn timer_due(&self) -> Option<Instant> {
        self.elevator.next_timer().map(|t| t.0)
    }

    /// Returns whether a limit lets requests pass now, which are insertions.
    pub(super) fn timer(&mut self, now: Instant) -> bool {
        let held = self.elevator.requests().held();
        self.elevator.timer(now);
        self.drain_trace();
        self.elevator.requests().held() < held
    }

    /// Whether a change can be made here: what [`Self::control`] would answer.
    pub(super) fn may_change(
        &self,
        change: &fairhead_core::Control,
    ) -> std::result::Result<(), fairhead_core::Refusal> {
        self.elevator.may_change(change)
    }

    /// Makes a change in the scheduler, which may refuse it.
    pub(super) fn control(
        &mut self,
        now: Instant,
        change: fairhead_core::Control,
    ) -> std::result::Result<(), fairhead_core::Refusal> {
        let answer = self.elevator.control(now, change);
        self.drain_trace();
        answer
    }

    pub(super) fn exit_task(&mut self, now: Instant, task: fairhead_core::TaskId) {
        let _ = self.elevator.control(now, fairhead_core::Control::TaskExit(task));
        self.drain_trace();
    }

    // ---- the observer ------------------------------------------------------------------------------------

    /// Sets the observer of everything from now on.
    pub(super) fn listen(&mut self, tap: Tap<'a>) {
        self.tap = Some(Box::new(tap));
    }

    #[inline]
    fn tell(&mut self, tell: impl FnOnce(&mut Tap<'a>)) {
        if let Some(tap) = &mut self.tap {
            out_of_line(|| tell(tap));
        }
    }

    /// Empties the elevator's trace, which holds what one call of it recorded.
    #[inline]
    fn drain_trace(&mut self) {
        if let Some(tap) = &mut self.tap {
            out_of_line(|| tap.drain(&mut self.elevator));
        }
    }

    /// The elevator was asked for a request.
    #[inline]
    fn tell_answer(&mut self, answer: Dispatch) {
        if let Some(tap) = &mut self.tap {
            out_of_line(|| {
                tap.drain(&mut self.elevator);
                tap.answered(answer, self.idle_since.is_some());
            });
        }
    }

    /// The device has finished a command or got one.
    #[inline]
    fn tell_head(&mut self, now: Instant, finished: Option<Tag>) {
        if let Some(tap) = &mut self.tap {
            out_of_line(|| tap.head(self.wire.device.head(now), finished));
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_status(&mut self) {
        let has_work = self.elevator.requests().issued() > 0 || !self.waiters.flushing().is_empty();
        let is_plugged = self.is_plugged();
        self.tell(|tap| tap.status(has_work, is_plugged));
    }

    // ---- figures -----------------------------------------------------------------------------------------

    /// Events that the elevator's trace has lost.
    pub(super) fn trace_lost(&self) -> u64 {
        self.elevator.trace_lost()
    }

    /// A group's books.
    pub(super) fn group_stats(&self, group: fairhead_core::GroupId) -> fairhead_core::GroupStats {
        self.elevator.stats(group)
    }

    /// The disk time that a group was charged.
    pub(super) fn group_disk_time(&self, group: fairhead_core::GroupId) -> Duration {
        self.elevator.groups().disk_time(group)
    }

    /// The disk's figures until `now`.
    pub(super) fn stats(&self, now: Instant) -> DiskStats {
        let (counters, busy) = (*self.wire.device.counters(), self.wire.device.busy_time(now));
        let lock_held = self.disk_lock.as_ref().map_or(Duration::ZERO, |lock| lock.held);
        DiskStats { counters, busy, lock_held, ..self.stats.clone() }
    }

    /// Plays what happens inside the device until `now`, and answers when that was. Nothing of it ends a
    /// request.
    pub(super) fn catch_up(&mut self, now: Instant) -> Option<Instant> {
        self.wire.device.catch_up(now)
    }

    /// How many more events there were than polls.
    pub(super) fn unseen(&self) -> i64 {
        self.wire.device.unseen()
    }

    /// The disk's figures, at the end.
    pub(super) fn finish(mut self, now: Instant) -> DiskStats {
        if let Some(since) = self.idle_since {
            self.stats.idled += now.since(since);
        }
        self.stats(now)
    }
}

fn is_sync_read(rq: &Request) -> bool {
    rq.sync && rq.op == Op::Read
}

/// The requests of a disk under a scheduler. The multi-queue layer gives out the driver's tags, of reads and
/// writes alike, or with a scheduler those of `nr_requests`; an NVMe drive has them for each processor.
//= docs/reference/nvme.md#1-the-path-of-a-request tags
//= deviates two-requests
fn pools(host: &Host, layer: Option<MultiQueue>, sched: &AnyConfig, facts: &Facts) -> Pools {
    if layer.is_none() {
        return Pools::of_kinds(host.requests_of_a_kind());
    }
    let tags = u32::from(facts.tags());
    let size = match (sched, host.nr_requests) {
        (AnyConfig::Noop(_), set) => set.unwrap_or(tags).min(tags),
        (_, Some(set)) => set,
        (_, None) => 2 * tags.min(128),
    };
    let queues = if facts.driver == Driver::Nvme { host.cpus } else { 1 };
    // Which processor a thread is on is known only where processors are modelled one by one.
    if host.cores.is_some() { Pools::of_queues(size, queues) } else { Pools::of_queues(size * queues, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::sched::any::preset;

    /// Without a scheduler, with one; NVMe on a host with ten processors, and on one with four.
    #[test]
    fn requests_are_those_of_sysfs() {
        let facts = |disk: &str| {
            let toml = format!("base = {disk}");
            let disk = DeviceParams::from_toml(&toml, "d.toml").expect("a disk");
            Wire::new(&disk, Duration::ZERO).expect("a disk").facts()
        };
        let ten = Host::of_2020().with_processors_of_2023();
        for (host, disk, none, with) in [
            (&ten, "\"nvme\"", 10 * 1023, 10 * 256),
            (&Host::of_2020(), "\"nvme\"", 4 * 1023, 4 * 256),
            (&ten, "\"sata_ssd\"", 32, 64),
            (&Host::of_2020(), "\"nas2020\"", 32, 64),
            (&Host::of_2020(), "\"sata2009\"", 32, 64),
            (&Host::of_2020(), "\"nas2020\"\ndriver = \"usb\"", 1, 2),
            (&Host::of_2020(), "\"microsd_a1\"", 64, 128),
            (&Host::of_2020(), "\"emmc51\"\nqueue_depth = 16", 16, 32),
            (&Host::of_2020(), "\"nas2020\"\ndriver = \"loop\"", 128, 256),
            (&Host::of_2020(), "\"nas2020\"\ndriver = \"sas\"", 1024, 256),
        ] {
            for name in ["noop", "mq-deadline", "kyber", "bfq"] {
                let config = (preset(name).expect("built in").config)();
                let pools = pools(host, host.multi_queue_for(name, &config), &config, &facts(disk));
                assert_eq!(pools.requests(), if name == "noop" { none } else { with }, "{name}, {disk}");
                assert_eq!(pools.of(true, 0), pools.of(false, 0), "{name}: reads and writes share them");
            }
        }
        // The single-queue layer: `nr_requests` of each kind, whatever the disk.
        let config = (preset("cfq").expect("built in").config)();
        let old = pools(&ten, ten.multi_queue_for("cfq", &config), &config, &facts("\"nas2020\""));
        assert_eq!((old.requests(), old.of(true, 3)), (256, old.of(true, 0)));
    }

    /// Linux 6.18: writing `nr_requests` of a loop device, whose driver has 128 tags.
    #[test]
    fn requests_can_be_set_as_in_sysfs() {
        let facts = Wire::new(
            &DeviceParams::from_toml("base = \"nas2020\"\ndriver = \"loop\"", "d.toml").expect("a disk"),
            Duration::ZERO,
        );
        let facts = facts.expect("a disk").facts();
        for (set, none, with) in [(62, 62, 62), (200, 128, 200), (4, 4, 4)] {
            let host = Host { nr_requests: Some(set), ..Host::of_2020() };
            for (name, wanted) in [("noop", none), ("mq-deadline", with), ("bfq", with)] {
                let config = (preset(name).expect("built in").config)();
                let pools = pools(&host, host.multi_queue, &config, &facts);
                assert_eq!(pools.requests(), wanted, "{name}, {set}");
            }
        }
    }
}
