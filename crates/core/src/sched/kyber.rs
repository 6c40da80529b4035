//! kyber: latency targets kept by tokens.
//!
//! For fast flash with deep queues, where sorting buys nothing and the wait inside the device is what hurts:
//! it lets no more requests of a kind into the device than keep reads and writes within their latency
//! targets.
//!
//! # How it works
//!
//! Requests belong to *domains*: reads, writes, discards (and others, of which there are none here). Each
//! domain has a fifo and a number of tokens; each request at the device holds one. The domains take turns,
//! each for a batch, and one that is out of requests or tokens is passed over.
//!
//! The number of tokens follows latency. Each completion is sorted into a histogram of eight buckets, each a
//! quarter of the domain's target wide; the first four are *good*. Once per 100 ms:
//!
//! 1. The device is *congested* if in any domain the 90th percentile of the time in the device is not good.
//! 2. Each domain whose 99th percentile of the whole time, waiting included, is not good gets
//!    `tokens × (bucket + 1) / 4`: more, so that it waits less. When the device is congested, all domains are
//!    rescaled so: those that keep their target by far shrink, and make room for the others.
//!
//! Worked example: writes have 128 tokens, the device is congested, the writes' 99th percentile is in bucket
//! 1 (at most half of the target): 128 × 2 / 4 = 64. In bucket 5: 128 × 6 / 4 = 192, capped at 128.
//!
//! A percentile needs 500 samples, or the samples of one second. If there are too few in a congested window,
//! the last one computed is used, once.
//!
//! # How long requests wait
//!
//! A request behind *n* others of its domain, and behind whatever holds the domain's tokens, is issued once
//! those have completed and the other domains have had their batches in between: at most `(n + 1) × 25`
//! requests (16 + 8 + 1), as long as requests at the device complete. A domain has at least one token.
//!
//! # What it does not do
//!
//! No sorting, no tasks, no priorities. On a device of depth 1 (a disk) it has no effect but the turns. Async
//! requests should use at most 75 % of the driver's requests: [`crate::Elevator::has_room`] tells.
//!
//! # Differences from the kernel
//!
//! There is one queue per domain instead of one per CPU, and a request that the device hands back keeps its
//! token, so that it can be issued again at once. The device and total histograms of a domain fill
//! independently.
//!
//= linux-6.18 block/kyber-iosched.c, docs/reference/elevators.md#6-kyber

use super::Scheduler;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Cx, Dispatch, Hold, Limits, Timer};
use crate::parts::fifo::{Fifo, Links};
use crate::request::{Op, Request, Requests, State};
use crate::table::Table;
use crate::trace::Reason;
use crate::tunables;
use crate::units::{Duration, Instant, Tag};

tunables! {
    /// kyber's tunables, under their sysfs names.
    //= linux-6.18 block/kyber-iosched.c kyber_latency_targets
    pub struct Config {
        /// The latency that 99 % of the reads should keep. Default 2 ms.
        pub read_lat_nsec: Duration = Duration::from_ms(2), 4, u64::MAX;
        /// The latency that 99 % of the writes should keep. Default 10 ms.
        pub write_lat_nsec: Duration = Duration::from_ms(10), 4, u64::MAX;
    }
}

/// What a request competes for tokens with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Domain {
    Read,
    Write,
    Discard,
}

impl Domain {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Discard];

    const fn of(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Discard => Self::Discard,
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Discard,
            Self::Discard => Self::Read,
        }
    }

    /// The tokens at first and at most.
    //= linux-6.18 block/kyber-iosched.c kyber_depth
    const fn depth_max(self) -> u32 {
        match self {
            Self::Read => 256,
            Self::Write => 128,
            Self::Discard => 64,
        }
    }

    /// How many requests its turn lasts.
    //= linux-6.18 block/kyber-iosched.c kyber_batch_size
    const fn batch_size(self) -> u32 {
        match self {
            Self::Read => 16,
            Self::Write => 8,
            Self::Discard => 1,
        }
    }

    const fn target(self, config: &Config) -> Duration {
        match self {
            Self::Read => config.read_lat_nsec,
            Self::Write => config.write_lat_nsec,
            Self::Discard => DISCARD_TARGET,
        }
    }
}

//= linux-6.18 block/kyber-iosched.c kyber_latency_targets
const DISCARD_TARGET: Duration = Duration::from_secs(5);
/// How long after a completion the latencies are looked at.
//= linux-6.18 block/kyber-iosched.c kyber_completed_request
const WINDOW: Duration = Duration::from_ms(100);
/// The number of samples that make a percentile, or the time of which all samples make one.
//= linux-6.18 block/kyber-iosched.c calculate_percentile
const SAMPLES_MIN: u32 = 500;
const SAMPLES_TIME: Duration = Duration::from_secs(1);
/// How many buckets a target is divided into: those are good.
//= linux-6.18 block/kyber-iosched.c KYBER_LATENCY_SHIFT, KYBER_GOOD_BUCKETS
const GOOD_BUCKETS: u32 = 4;
const BUCKETS: usize = 8;
/// The share of the tags that async requests may use, in percent.
//= linux-6.18 block/kyber-iosched.c KYBER_ASYNC_PERCENT
const ASYNC_PERCENT: u32 = 75;

/// Latencies in quarters of a target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    buckets: [u32; BUCKETS],
    samples: u32,
    /// When the samples suffice even if they are few: set when a window first finds some.
    due: Option<Instant>,
}

impl Histogram {
    fn add(&mut self, latency: Duration, target: Duration) {
        let width = target / u64::from(GOOD_BUCKETS);
        let bucket = latency.saturating_sub(Duration::from_ns(1)) / width;
        let bucket = usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.samples = self.samples.saturating_add(1);
    }

    /// The bucket that `percent` of the samples do not exceed; starts anew then. `None` while there are too
    /// few.
    fn percentile(&mut self, now: Instant, percent: u32) -> Option<u32> {
        if self.samples == 0 {
            return None;
        }
        let due = *self.due.get_or_insert(now + SAMPLES_TIME);
        // Few samples say little, but a second of them has to do (docs/reference/elevators.md#6-kyber).
        if self.samples < SAMPLES_MIN && now < due {
            return None;
        }
        let mut left = (u64::from(self.samples) * u64::from(percent)).div_ceil(100);
        let mut bucket = 0;
        for &count in &self.buckets[..BUCKETS - 1] {
            if u64::from(count) >= left {
                break;
            }
            left -= u64::from(count);
            bucket += 1;
        }
        *self = Self::default();
        Some(bucket)
    }
}

/// One domain.
#[derive(Clone, Copy, Debug)]
struct Lane {
    fifo: Fifo<Tag>,
    /// How many tokens there are, and how many are taken.
    depth: u32,
    taken: u32,
    /// Latencies from insertion to completion, and in the device.
    total: Histogram,
    device: Histogram,
    /// The last 99th percentile, for a window that has too few samples.
    remembered: Option<u32>,
}

impl Lane {
    fn new(domain: Domain) -> Self {
        Self {
            fifo: Fifo::default(),
            depth: domain.depth_max(),
            taken: 0,
            total: Histogram::default(),
            device: Histogram::default(),
            remembered: None,
        }
    }

    /// Changes the number of tokens after a window.
    fn resize(&mut self, domain: Domain, now: Instant, congested: bool) {
        let p99 = match self.total.percentile(now, 99) {
            // Too few samples for a percentile. In a bad window the last known one counts, once: older
            // figures say nothing about the device now.
            None if congested => self.remembered.take(),
            fresh => {
                if congested {
                    self.remembered = None;
                } else if fresh.is_some() {
                    self.remembered = fresh;
                }
                fresh
            }
        };
        let Some(p99) = p99 else { return };
        if congested || p99 >= GOOD_BUCKETS {
            // Buckets are quarters of the target: with p99 in bucket b the depth becomes (b + 1) / 4 of what
            // it was, more than before only where the total latency is bad.
            self.depth = (self.depth * (p99 + 1) / GOOD_BUCKETS).clamp(1, domain.depth_max());
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Kyber {
    config: Config,
    links: Links<Tag>,
    /// By domain.
    lanes: [Lane; 3],
    /// The domain whose turn it is, and the number of requests that it has had.
    turn: Domain,
    batching: u32,
    /// When each request went to the device.
    issued: Table<Tag, Instant>,
    /// The end of the running window.
    window: Option<Instant>,
    /// How many async requests wait or are at the device, and how many may.
    asyncs: u32,
    asyncs_max: u32,
}

impl Scheduler for Kyber {
    const NAME: &'static str = "kyber";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let tags = usize::from(limits.tags);
        Ok(Self {
            config,
            links: Links::new(tags),
            lanes: Domain::ALL.map(Lane::new),
            turn: Domain::Read,
            batching: 0,
            issued: Table::new(tags, Instant::EPOCH),
            window: None,
            asyncs: 0,
            asyncs_max: (limits.requests() * ASYNC_PERCENT / 100).max(1),
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = &cx.requests[tag].rq;
        self.asyncs += u32::from(!rq.sync);
        self.links.push_back(&mut self.lanes[Domain::of(rq.op) as usize].fifo, tag);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        if self.batching < self.turn.batch_size()
            && let Some(tag) = self.take(cx, self.turn)
        {
            self.batching += 1;
            cx.why = Reason::Batch;
            return Dispatch::Issue(tag);
        }
        // Round robin, back to the domain itself: it may have requests but no batch left.
        for _ in Domain::ALL {
            self.turn = self.turn.next();
            self.batching = 0;
            if let Some(tag) = self.take(cx, self.turn) {
                self.batching = 1;
                cx.why = Reason::NewBatch;
                return Dispatch::Issue(tag);
            }
        }
        if self.lanes.iter().all(|lane| lane.fifo.is_empty()) {
            Dispatch::Empty
        } else {
            Dispatch::Hold(Hold::Depth)
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let domain = Domain::ALL.into_iter().find(|&d| !self.lanes[d as usize].fifo.is_empty())?;
        self.give(cx, domain)
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let (rq, fifo) =
            (&cx.requests[gone].rq, &mut self.lanes[Domain::of(cx.requests[gone].rq.op) as usize].fifo);
        self.asyncs -= u32::from(!rq.sync);
        // The merged request is as old as the older part, and waits at its place.
        if cx.requests[gone].since < cx.requests[kept].since {
            self.links.remove(fifo, kept);
            self.links.insert_before(fifo, gone, kept);
        }
        self.links.remove(fifo, gone);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let slot = &cx.requests[tag];
        self.asyncs -= u32::from(!slot.rq.sync);
        let domain = Domain::of(slot.rq.op);
        let target = domain.target(&self.config);
        let lane = &mut self.lanes[domain as usize];
        lane.taken -= 1;
        // Total latency sizes this domain's depth; device latency decides whether the device is overloaded at
        // all.
        lane.total.add(cx.now.saturating_since(slot.since), target);
        lane.device.add(cx.now.saturating_since(self.issued[tag]), target);
        // Without completions there is nothing to learn, so no timer runs on an idle disk.
        self.window.get_or_insert(cx.now + WINDOW);
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.issued[tag] = cx.now;
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.window.is_some_and(|end| end <= cx.now) {
            self.window = None;
            self.end_window(cx.now);
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        Some((self.window?, Timer::Window))
    }

    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool {
        // Sync and async are counted apart.
        requests[into].rq.sync == rq.sync
    }

    fn has_room(&self, rq: &Request) -> bool {
        rq.sync || self.asyncs < self.asyncs_max
    }

    fn check(&self, requests: &Requests) {
        let (mut waiting, mut taken) = (0, 0);
        for (lane, domain) in self.lanes.iter().zip(Domain::ALL) {
            for tag in self.links.iter(&lane.fifo) {
                let slot = &requests[tag];
                assert!(
                    slot.state == State::Queued && Domain::of(slot.rq.op) == domain,
                    "in the wrong domain"
                );
            }
            assert!((1..=domain.depth_max()).contains(&lane.depth), "tokens out of range");
            waiting += lane.fifo.len();
            taken += lane.taken;
        }
        // A request that was requeued is queued again, but keeps its token.
        assert_eq!(
            waiting + taken,
            requests.queued() + requests.issued(),
            "a token for each that does not wait"
        );
        assert!(taken >= requests.issued(), "at the device without a token");
    }
}

impl Kyber {
    /// The oldest request of `domain`, if there is one and a token for it.
    fn take(&mut self, cx: &Cx<'_>, domain: Domain) -> Option<Tag> {
        let lane = &self.lanes[domain as usize];
        if lane.taken >= lane.depth { None } else { self.give(cx, domain) }
    }

    /// The oldest request of `domain`, with a token.
    fn give(&mut self, cx: &Cx<'_>, domain: Domain) -> Option<Tag> {
        let lane = &mut self.lanes[domain as usize];
        let tag = self.links.pop_front(&mut lane.fifo)?;
        lane.taken += 1;
        self.issued[tag] = cx.now;
        Some(tag)
    }

    fn end_window(&mut self, now: Instant) {
        let mut congested = false;
        for lane in &mut self.lanes {
            congested |= lane.device.percentile(now, 90).is_some_and(|p90| p90 >= GOOD_BUCKETS);
        }
        for (lane, domain) in self.lanes.iter_mut().zip(Domain::ALL) {
            lane.resize(domain, now, congested);
        }
    }
}

#[cfg(test)]
mod tests;
