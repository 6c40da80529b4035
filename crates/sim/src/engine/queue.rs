//! The disk with its request queue: the elevator's driver.
//!
//! It owns the tags, the request pool, the plug and the device, and follows the driver's duties of `fairhead_core`:
//! tell the elevator what happens, dispatch while the device has room, arm one timer.

use super::Owner;
use crate::host::{Host, Plug};
use crate::metrics::{DiskStats, Result};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::{Dispatch, Duration, Elevator, Insert, Instant, Limits, Op, Request, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};
use std::collections::VecDeque;

/// The two kinds of requests that have a pool each.
const ASYNC: usize = 0;
const SYNC: usize = 1;

/// How many requests a process that had to wait may allocate at once when it is woken, and for how long.
//= linux-2.6.33 block/blk-core.c BLK_BATCH_REQ, BLK_BATCH_TIME
pub(super) const BATCH_REQUESTS: u8 = 32;
pub(super) const BATCH_TIME: Duration = Duration::from_ms(20);

/// The request pool has no room: wait for it.
#[derive(Debug)]
pub(super) struct Full;

#[derive(Debug)]
pub(super) struct DiskQueue {
    elevator: Elevator<AnyScheduler>,
    device: Device,
    /// By tag: who gets to hear of its completion, and which pool it was taken from, if any.
    owners: Vec<(Owner, Option<usize>)>,
    free: Vec<u16>,
    depth: u32,
    nr_requests: u32,
    allocated: [u32; 2],
    /// Threads that wait for a request, in order.
    pub(super) waiters: [VecDeque<u32>; 2],
    plug: Plug,
    plugged: bool,
    /// Since when requests wait while the scheduler keeps the disk idle.
    idle_since: Option<Instant>,
    stats: DiskStats,
}

impl DiskQueue {
    pub(super) fn new(
        disk: &DeviceParams,
        host: &Host,
        sched: AnyConfig,
        tasks: u32,
        trace: u32,
    ) -> Result<Self> {
        let device = Device::new(disk)?;
        let facts = device.facts();
        // A piece that is merged keeps its tag: room for many more pieces than requests.
        let tags = 16_384;
        let limits = Limits {
            tags,
            tasks,
            groups: 1,
            max_sectors: host.max_request.min(facts.max_request),
            rotational: facts.rotational,
            queue_depth: facts.queue_depth,
            tick: host.tick,
            trace,
            ..Limits::default()
        };
        Ok(Self {
            elevator: Elevator::new(limits, sched)?,
            device,
            owners: vec![(Owner::Nobody, None); usize::from(tags)],
            free: (0..tags).rev().collect(),
            depth: u32::from(facts.queue_depth),
            nr_requests: host.nr_requests,
            allocated: [0; 2],
            waiters: [VecDeque::new(), VecDeque::new()],
            plug: host.plug,
            plugged: false,
            idle_since: None,
            stats: DiskStats::default(),
        })
    }

    pub(super) const fn device(&self) -> &Device {
        &self.device
    }

    /// Hands in a request, from a process that may overdraw the pool if it is a batcher.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        rq: Request,
        owner: Owner,
        batcher: bool,
    ) -> std::result::Result<(), Full> {
        let kind = if rq.sync { SYNC } else { ASYNC };
        let limit = if batcher { self.nr_requests * 3 / 2 } else { self.nr_requests };
        if self.allocated[kind] >= limit {
            return Err(Full);
        }
        let tag = self.free.pop().ok_or(Full)?;
        let was_empty = self.elevator.requests().queued() == 0;
        let pool = match self.elevator.insert(now, Tag(tag), rq) {
            Insert::Queued => {
                self.allocated[kind] += 1;
                if was_empty && self.plug == Plug::Device {
                    self.plugged = true;
                }
                Some(kind)
            }
            Insert::Merged { .. } => {
                self.stats.merged += 1;
                None
            }
        };
        self.owners[usize::from(tag)] = (owner, pool);
        Ok(())
    }

    /// Whether requests are held back; if so, somebody has to pull the plug after [`Plug::DELAY`].
    pub(super) fn is_plugged(&self) -> bool {
        self.plugged && self.elevator.requests().queued() < Plug::THRESHOLD
    }

    /// Somebody waits for I/O, or the plug has been in for long enough.
    pub(super) const fn unplug(&mut self) {
        self.plugged = false;
    }

    /// Gives the device what it has room for.
    pub(super) fn run(&mut self, now: Instant) {
        if self.is_plugged() {
            return;
        }
        self.plugged = false;
        while self.elevator.requests().issued() < self.depth && self.device.can_accept() {
            let answer = self.elevator.dispatch(now);
            self.account_idling(now, answer);
            let Dispatch::Issue(tag) = answer else { break };
            let rq = self.elevator.requests()[tag].rq;
            let op = match rq.op {
                Op::Read => DeviceOp::Read,
                Op::Write => DeviceOp::Write,
                Op::Discard => DeviceOp::Discard,
            };
            self.stats.issued += 1;
            self.device.submit(now, Command { tag, op, start: rq.start, len: rq.len, fua: false });
        }
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
        self.device.next_event()
    }

    /// The next command that the device has finished.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Tag> {
        self.device.poll(now)
    }

    /// The interrupt handler ends a request. Answers through `owners` who handed in its pieces.
    pub(super) fn complete(&mut self, now: Instant, tag: Tag, owners: &mut Vec<Owner>) {
        owners.clear();
        for free in self.elevator.complete(now, tag) {
            let (owner, pool) = self.owners[usize::from(free.0)];
            owners.push(owner);
            if let Some(kind) = pool {
                self.allocated[kind] -= 1;
            }
            self.free.push(free.0);
        }
    }

    /// A thread that waits for a request and can have one now.
    pub(super) fn pop_waiter(&mut self) -> Option<u32> {
        let kind = [SYNC, ASYNC]
            .into_iter()
            .find(|&k| self.allocated[k] < self.nr_requests && !self.waiters[k].is_empty())?;
        self.waiters[kind].pop_front()
    }

    /// Puts a thread at the end of the queue for a request of `rq`'s kind.
    pub(super) fn wait(&mut self, thread: u32, sync: bool) {
        self.waiters[if sync { SYNC } else { ASYNC }].push_back(thread);
    }

    pub(super) fn timer_due(&self) -> Option<Instant> {
        self.elevator.next_timer().map(|t| t.0)
    }

    pub(super) fn timer(&mut self, now: Instant) {
        self.elevator.timer(now);
    }

    pub(super) fn exit_task(&mut self, now: Instant, task: fairhead_core::TaskId) {
        self.elevator.control(now, fairhead_core::Control::TaskExit(task));
    }

    /// The disk's figures, at the end.
    pub(super) fn finish(mut self, now: Instant) -> DiskStats {
        if let Some(since) = self.idle_since {
            self.stats.idled += now.since(since);
        }
        self.stats.counters = *self.device.counters();
        self.stats.busy = self.stats.counters.busy_time;
        self.stats
    }
}
