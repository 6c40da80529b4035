//! `cfq-2.6.10`: request round robin, the second version of CFQ, as in Linux 2.6.10 and 2.6.11.
//!
//! Every queue gives one request per round, those first that have used the disk least. Among tasks that send
//! what the disk can serve equally fast it is fair; but two sequential readers make the head travel for each
//! request, and one that waits for its data before it asks for more gets one request per round, however many
//! a writer has queued.
//!
//! # A round
//!
//! When the dispatch list is empty, each busy queue moves a request to it: in the first round only queues
//! that have nothing in flight, in further ones all, until at least `quantum` requests were moved. A round is
//! always completed, so with 20 queues and a quantum of 4 the first refill moves 20.
//!
//! # The queue that has used the disk least
//!
//! A queue's *service* is the time for which the device had its requests. Once the device has had four
//! requests at a time it evidently queues commands, times overlap, and service counts requests instead, each
//! as a millisecond (a tick of the kernels that this is taken from, where ticks and requests share one
//! counter). Once a second what a queue has used is divided by 8 (by 10 when counting requests), so that the
//! past fades. Equal services are ordered by fewest requests in flight.
//!
//! # How long a request can wait
//!
//! It never holds: the device is given what waits. Each refill serves every queue with nothing in flight, so
//! a queue of `n` waits for at most the `n - 1` requests of the others and what is in flight of its own, per
//! request that it gives. Within a queue the nearest request goes first, but every `fifo_batch_expire` the
//! oldest one of an expired fifo does; a task that keeps both fifos expired delays only its own requests.
//!
//! Cost: O(log tasks + log requests) per request; the visits of a round are shared by the requests that it
//! moves.
//!
//= linux-2.6.11 drivers/block/cfq-iosched.c, docs/reference/cfq.md#32-version-2

use super::queues::{Queue, Queues};
use crate::config::{ConfigError, KiB, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Limits};
use crate::parts::tasks::TaskSlot;
use crate::request::{Request, Requests};
use crate::sched::Scheduler;
use crate::table::Table;
use crate::units::{Duration, Instant, Tag};

super::early_tunables! {
    /// The tunables of `cfq-2.6.10`.
    pub struct Config {}
}

impl Config {
    /// Returns the tunables of the released kernel, quirks included.
    #[must_use]
    pub(crate) fn of_2_6_10() -> Self {
        Self { swap_fifo_limits: true, ..Self::default() }
    }
}

/// The time after which what a queue has used fades.
//= linux-2.6.11 drivers/block/cfq-iosched.c CFQ_SERVICE_AVG (HZ)
const FADE_AFTER: Duration = Duration::from_secs(1);
/// What fades: an eighth is left of times, a tenth of request counts.
const FADE_TIME: u64 = 8;
const FADE_COUNT: u64 = 10;
/// The number of requests at the device at a time which shows that it queues commands.
//= linux-2.6.11 drivers/block/cfq-iosched.c cfq_account_dispatch, tag detection
const QUEUES_COMMANDS: u32 = 4;
/// What a request counts once times do not: a tick of HZ = 1000.
const PER_REQUEST: Duration = Duration::from_ms(1);

/// What a queue has used.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    /// Since when it is summed up; `None` before the first time.
    start: Option<Instant>,
    used: Duration,
}

impl Service {
    fn is_old(&self, now: Instant) -> bool {
        self.start.is_none_or(|start| now > start + FADE_AFTER)
    }
}

/// A request's time at the device.
#[derive(Clone, Copy, Debug)]
struct Activation {
    at: Instant,
    /// Whether it was counted as a request.
    counted: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct RoundRobin {
    quantum: u32,
    tick: Duration,
    queues: Queues<Service>,
    activations: Table<Tag, Activation>,
    /// Whether the device queues commands.
    tagged: bool,
}

impl RoundRobin {
    /// Fills the dispatch list with at least a round.
    // Apart, so that the many calls that find the list filled do not save registers for it.
    #[inline(never)]
    fn refill(&mut self, cx: &mut Cx<'_>) {
        let (mut moved, mut is_first) = (0, true);
        loop {
            let mut more = false;
            let mut at = self.queues.first_busy();
            while let Some(queue) = at {
                // It may not be busy afterwards.
                at = self.queues.next_busy(queue);
                if is_first && self.queues[queue].in_flight() > 0 {
                    continue;
                }
                let _ = self.queues.move_next(cx, queue);
                moved += 1;
                more |= self.queues[queue].is_busy();
            }
            if moved >= self.quantum || !(more || is_first) {
                return;
            }
            is_first = false;
        }
    }

    /// The device gets a request of `queue`.
    #[inline]
    fn activate(&mut self, now: Instant, tag: Tag, queue: TaskSlot) {
        self.tagged |= self.queues.in_driver() >= QUEUES_COMMANDS;
        self.activations[tag] = Activation { at: now, counted: self.tagged };
        if self.tagged {
            self.count(now, queue);
        }
    }

    /// The device gets a request of `queue`, and queues commands.
    fn count(&mut self, now: Instant, queue: TaskSlot) {
        self.fade(now, queue, FADE_COUNT);
        self.queues[queue].service.used += PER_REQUEST;
        self.refile(queue);
    }

    /// Divides what `queue` has used, if it is time to.
    fn fade(&mut self, now: Instant, queue: TaskSlot, divisor: u64) {
        let tick = self.tick;
        let service = &mut self.queues[queue].service;
        if service.is_old(now) {
            service.start = Some(now);
            service.used = faded(service.used, divisor, tick);
        }
    }

    fn refile(&mut self, queue: TaskSlot) {
        if self.queues[queue].is_busy() {
            self.queues.refile(queue, key(&self.queues[queue]));
        }
    }
}

/// Least used first, then fewest in flight.
fn key(queue: &Queue<Service>) -> u64 {
    // 2^48 ns are three days of service, of which at most a few seconds per command at a time survive fading.
    const USED_MAX: u64 = (1 << 48) - 1;
    queue.service.used.as_ns().min(USED_MAX) << 16 | u64::from(queue.in_flight()).min(0xffff)
}

/// `used / divisor`, in whole ticks where time comes in ticks.
#[cold]
fn faded(used: Duration, divisor: u64, tick: Duration) -> Duration {
    let rest = used / divisor;
    if tick.is_zero() { rest } else { tick * (rest / tick) }
}

impl Scheduler for RoundRobin {
    const NAME: &'static str = "cfq-2.6.10";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let activation = Activation { at: Instant::EPOCH, counted: false };
        Ok(Self {
            quantum: config.quantum,
            tick: limits.tick,
            queues: Queues::new(&limits, config.pick_rules()),
            activations: Table::new(usize::from(limits.tags), activation),
            tagged: false,
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let inserted = self.queues.insert(cx, tag, None);
        if inserted.became_busy {
            let queue = &mut self.queues[inserted.queue];
            if queue.service.is_old(cx.now) {
                // The sum continues; only a completion or an activation starts a new second.
                queue.service.used = faded(queue.service.used, FADE_TIME, self.tick);
            }
            let key = key(queue);
            self.queues.file(inserted.queue, key);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.queues.list_is_empty() {
            self.refill(cx);
        }
        let Some((tag, queue)) = self.queues.issue(cx) else { return Dispatch::Empty };
        self.activate(cx.now, tag, queue);
        Dispatch::Issue(tag)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let (tag, queue) = self.queues.drain(cx)?;
        self.activate(cx.now, tag, queue);
        Some(tag)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        self.queues.merged(cx, kept, end);
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let queue = self.queues.joined(cx, kept, gone);
        self.queues.release_if_done(queue);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let queue = self.queues.complete(cx.now, tag);
        if !self.tagged {
            self.queues[queue].service.used += cx.now.since(self.activations[tag].at);
            self.fade(cx.now, queue, FADE_TIME);
            self.refile(queue);
        }
        self.queues.release_if_done(queue);
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        let queue = self.queues.requeue(tag);
        if self.activations[tag].counted {
            let service = &mut self.queues[queue].service;
            service.used = service.used.saturating_sub(PER_REQUEST);
            self.refile(queue);
        }
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let queue = self.queues.reissue(tag);
        self.activate(cx.now, tag, queue);
    }

    fn control(&mut self, _cx: &mut Cx<'_>, change: &Control) {
        if let Control::TaskExit(task) = change
            && let Some(queue) = self.queues.exit(*task)
        {
            self.queues.release_if_done(queue);
        }
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        self.queues.may_merge(requests, into, rq)
    }

    fn check(&self, requests: &Requests) {
        self.queues.check(requests);
    }
}
