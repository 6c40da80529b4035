//! ADIOS, the Adaptive Deadline I/O Scheduler for flash: a request's deadline is its target latency plus the
//! time that the disk is expected to take for it.
//!
//! # How it works
//!
//! ```text
//!   insert ─► sync requests by deadline  ─┐  refill, within the latency window   ┌─► dispatch
//!             async requests by deadline ─┴──► back batch ──(swapped)── front batch
//!   complete ─► latency model of reads, writes, discards: a base, and a slope by size
//! ```
//!
//! - *Model.* From issue to completion each request is a sample of (size, latency) of its kind. A line is
//!   laid through the samples by least squares. Every [`SAMPLES_MAX`] samples the sums are halved, so that
//!   old ones count for less.
//! - *Deadline.* Arrival, plus `lat_target_*` of its kind, plus the predicted latency.
//! - *Batches.* When the predicted latencies of what is batched and at the disk sum up to no more than
//!   `bq_refill_below_ratio` percent of `global_latency_window`, the back batch is filled: sync requests by
//!   deadline, then async ones, and first those whose deadline has passed, until the sum reaches the window
//!   or a kind reaches its `batch_size_limit_*`. The front batch is issued meanwhile; when it is empty the
//!   two are swapped.
//!
//! A request that waits beyond its deadline is in the next batch but for those with earlier deadlines, so
//! each request is served in the end.
//!
//! # What it does not do
//!
//! It knows no tasks, groups, priorities or heads. It does not exclude outliers among the samples other than
//! by [`LATENCY_MAX`]. Its README names no defaults but that of `bq_refill_below_ratio`: the other defaults
//! are ours, and so are the fit by least squares and the order within a batch. An insertion moves up to as
//! many entries as there are requests.
//!
//= github.com/firelzrd/adios README.md; its source was not read

use fairhead_core::config::{ConfigError, Tunables};
use fairhead_core::sched::Scheduler;
use fairhead_core::{
    Cx, Dispatch, Duration, Hold, Instant, Limits, Op, Reason, Requests, State, Tag, tunables,
};
use std::collections::VecDeque;

tunables! {
    /// The tunables, named as in sysfs.
    pub struct Config {
        /// How much predicted latency may be batched and at the disk at a time. Less: lower latency; more:
        /// throughput.
        pub global_latency_window: Duration = Duration::from_ms(16), 1_000, 10_000_000_000;
        /// Below which percentage of the window the next batch is filled.
        pub bq_refill_below_ratio: u32 = 15, 0, 100;
        /// The most reads in a batch.
        pub batch_size_limit_read: u32 = 32, 1, 65_536;
        /// The most writes in a batch.
        pub batch_size_limit_write: u32 = 64, 1, 65_536;
        /// The most discards in a batch.
        pub batch_size_limit_discard: u32 = 8, 1, 65_536;
        /// The latency that reads should have, on top of what is predicted.
        pub lat_target_read: Duration = Duration::from_ms(2), 0, 10_000_000_000;
        /// The latency that writes should have, on top of what is predicted.
        pub lat_target_write: Duration = Duration::from_ms(2_000), 0, 60_000_000_000;
        /// The latency that discards should have, on top of what is predicted.
        pub lat_target_discard: Duration = Duration::from_ms(8_000), 0, 60_000_000_000;
    }
}

impl Config {
    const fn target(&self, op: Op) -> Duration {
        match op {
            Op::Read => self.lat_target_read,
            Op::Write => self.lat_target_write,
            Op::Discard => self.lat_target_discard,
        }
    }

    const fn batch(&self, op: Op) -> u32 {
        match op {
            Op::Read => self.batch_size_limit_read,
            Op::Write => self.batch_size_limit_write,
            Op::Discard => self.batch_size_limit_discard,
        }
    }
}

/// After this many samples of a kind the sums are halved.
pub const SAMPLES_MAX: i128 = 1024;

/// A longer latency counts as this much, and no prediction is longer.
pub const LATENCY_MAX: Duration = Duration::from_secs(1);

/// Larger requests count as this large, in sectors.
const SIZE_MAX: u32 = 1 << 16;

/// The latency of one kind of requests by size: a line, by least squares.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    count: i128,
    sizes: i128,
    latencies: i128,
    squares: i128,
    products: i128,
}

impl Model {
    fn learn(&mut self, sectors: u32, latency: Duration) {
        let (x, y) = (i128::from(sectors.min(SIZE_MAX)), i128::from(latency.min(LATENCY_MAX).as_ns()));
        self.count += 1;
        self.sizes += x;
        self.latencies += y;
        self.squares += x * x;
        self.products += x * y;
        if self.count == SAMPLES_MAX {
            let sums = [
                &mut self.sizes,
                &mut self.latencies,
                &mut self.squares,
                &mut self.products,
                &mut self.count,
            ];
            sums.into_iter().for_each(|sum| *sum /= 2);
        }
    }

    /// Zero as long as nothing is known.
    fn predict(&self, sectors: u32) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        let x = i128::from(sectors.min(SIZE_MAX));
        let spread = self.count * self.squares - self.sizes * self.sizes;
        let rise = self.count * self.products - self.sizes * self.latencies;
        // Of one size only, or larger ones are not slower: the mean.
        let ns = if spread <= 0 || rise <= 0 {
            self.latencies / self.count
        } else {
            let base = (self.latencies * spread - rise * self.sizes) / (self.count * spread);
            base.max(0) + rise * x / spread
        };
        Duration::from_ns(u64::try_from(ns).unwrap_or(0)).min(LATENCY_MAX)
    }
}

/// What is known of a request, by its tag.
#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: Instant,
    predicted: Duration,
    issued: Instant,
    is_sync: bool,
    is_batched: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Adios {
    config: Config,
    entries: Vec<Entry>,
    /// Those that wait outside of batches, by deadline: sync and async ones.
    waiting: [VecDeque<Tag>; 2],
    /// What is issued, and what is issued when that is empty.
    front: VecDeque<Tag>,
    back: VecDeque<Tag>,
    /// The predicted latencies of what is batched or at the disk, summed up.
    ahead: Duration,
    models: [Model; 3],
}

impl Adios {
    fn entry(&self, tag: Tag) -> &Entry {
        &self.entries[usize::from(tag.0)]
    }

    /// Files a request that waits: behind all with its deadline or an earlier one.
    fn file(&mut self, tag: Tag) {
        let Entry { deadline, is_sync, .. } = *self.entry(tag);
        let entries = &self.entries;
        let queue = &mut self.waiting[usize::from(!is_sync)];
        let at = queue.partition_point(|t| entries[usize::from(t.0)].deadline <= deadline);
        queue.insert(at, tag);
    }

    /// Takes a request out, wherever it is.
    fn forget(&mut self, tag: Tag) {
        let Entry { is_sync, is_batched, predicted, .. } = *self.entry(tag);
        if is_batched {
            self.front.retain(|t| *t != tag);
            self.back.retain(|t| *t != tag);
            self.ahead = self.ahead.saturating_sub(predicted);
        } else {
            self.waiting[usize::from(!is_sync)].retain(|t| *t != tag);
        }
    }

    /// The next request for a batch: whose deadline has passed, then sync, then async.
    fn next(&self, now: Instant) -> Option<Tag> {
        let [sync, not] = [0, 1].map(|i| self.waiting[i].front().copied());
        let (Some(sync), Some(not)) = (sync, not) else { return sync.or(not) };
        let (of_sync, of_not) = (self.entry(sync).deadline, self.entry(not).deadline);
        Some(if of_not <= now && of_not < of_sync { not } else { sync })
    }

    /// Fills the back batch within the window. The first request always has room.
    fn refill(&mut self, now: Instant, requests: &Requests) {
        let mut counts = [0_u32; 3];
        while let Some(tag) = self.next(now) {
            let op = requests[tag].rq.op;
            let count = &mut counts[op as usize];
            let is_over = self.ahead + self.entry(tag).predicted > self.config.global_latency_window;
            if *count >= self.config.batch(op) || (is_over && !self.back.is_empty()) {
                return;
            }
            *count += 1;
            self.forget(tag);
            self.entries[usize::from(tag.0)].is_batched = true;
            self.ahead += self.entry(tag).predicted;
            self.back.push_back(tag);
        }
    }

    /// The request is at the disk.
    fn issue(&mut self, now: Instant, tag: Tag) {
        let entry = &mut self.entries[usize::from(tag.0)];
        entry.issued = now;
        entry.is_batched = false;
    }
}

impl Scheduler for Adios {
    const NAME: &'static str = "adios";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let tags = usize::from(limits.tags);
        let queue = || VecDeque::with_capacity(tags);
        let entry = Entry {
            deadline: Instant::EPOCH,
            predicted: Duration::ZERO,
            issued: Instant::EPOCH,
            is_sync: false,
            is_batched: false,
        };
        Ok(Self {
            config,
            entries: vec![entry; tags],
            waiting: [queue(), queue()],
            front: queue(),
            back: queue(),
            ahead: Duration::ZERO,
            models: [Model::default(); 3],
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let rq = cx.requests[tag].rq;
        let predicted = self.models[rq.op as usize].predict(rq.len.0);
        self.entries[usize::from(tag.0)] = Entry {
            deadline: cx.now + self.config.target(rq.op) + predicted,
            predicted,
            issued: cx.now,
            is_sync: rq.sync,
            is_batched: false,
        };
        self.file(tag);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let window = self.config.global_latency_window.as_ns();
        let below = Duration::from_ns(window * u64::from(self.config.bq_refill_below_ratio) / 100);
        if self.back.is_empty() && self.ahead <= below {
            self.refill(cx.now, cx.requests);
        }
        if self.front.is_empty() {
            std::mem::swap(&mut self.front, &mut self.back);
        }
        let Some(tag) = self.front.pop_front() else {
            let is_empty = self.waiting.iter().all(VecDeque::is_empty);
            return if is_empty { Dispatch::Empty } else { Dispatch::Hold(Hold::Depth) };
        };
        cx.why = if self.entry(tag).deadline <= cx.now { Reason::FifoExpired } else { Reason::Batch };
        self.issue(cx.now, tag);
        Dispatch::Issue(tag)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let batched = self.front.pop_front().or_else(|| self.back.pop_front());
        let tag = batched.or_else(|| {
            let tag = self.next(cx.now)?;
            self.forget(tag);
            self.ahead += self.entry(tag).predicted;
            Some(tag)
        })?;
        self.issue(cx.now, tag);
        Some(tag)
    }

    fn joined(&mut self, _cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let deadline = self.entry(gone).deadline;
        self.forget(gone);
        if deadline < self.entry(kept).deadline {
            let is_batched = self.entry(kept).is_batched;
            if !is_batched {
                self.forget(kept);
            }
            self.entries[usize::from(kept.0)].deadline = deadline;
            if !is_batched {
                self.file(kept);
            }
        }
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let Entry { issued, predicted, .. } = *self.entry(tag);
        let rq = cx.requests[tag].rq;
        self.ahead = self.ahead.saturating_sub(predicted);
        self.models[rq.op as usize].learn(rq.len.0, cx.now.since(issued));
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        self.ahead = self.ahead.saturating_sub(self.entry(tag).predicted);
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.ahead += self.entry(tag).predicted;
        self.issue(cx.now, tag);
    }

    fn reconfigure(&mut self, _cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        config.validate()?;
        self.config = config;
        Ok(true)
    }

    fn check(&self, requests: &Requests) {
        let all = self.waiting.iter().chain([&self.front, &self.back]).flatten();
        for tag in all {
            assert!(requests[*tag].state == State::Queued, "{tag:?} does not wait");
        }
        for queue in &self.waiting {
            assert!(queue.iter().is_sorted_by_key(|t| self.entry(*t).deadline), "not by deadline");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::{Elevator, Insert, Request, Sector, Sectors, TaskId};

    #[test]
    fn the_model_finds_base_and_slope_and_forgets() {
        let mut model = Model::default();
        assert_eq!(model.predict(8), Duration::ZERO);
        let truth = |sectors: u32| Duration::from_us(100 + 2 * u64::from(sectors));
        for sectors in [8, 16, 64, 256, 8, 512] {
            model.learn(sectors, truth(sectors));
        }
        assert_eq!([8, 128, 1024].map(|n| model.predict(n)), [8, 128, 1024].map(truth));
        for _ in 0..10 * SAMPLES_MAX {
            model.learn(8, Duration::from_us(50));
        }
        assert!(model.predict(8) < Duration::from_us(52), "{}", model.predict(8));
    }

    fn elevator(config: Config) -> Elevator<Adios> {
        Elevator::new(Limits { queue_depth: 32, ..Limits::default() }, config).unwrap()
    }

    fn at(us: u64) -> Instant {
        Instant::EPOCH + Duration::from_us(us)
    }

    fn read(i: u64) -> Request {
        Request::read(TaskId(1), Sector(i * 1000), Sectors(8))
    }

    fn write(i: u64) -> Request {
        Request::write(TaskId(2), Sector(i * 1000), Sectors(8))
    }

    fn insert(e: &mut Elevator<Adios>, us: u64, tag: u16, rq: Request) {
        assert_eq!(e.insert(at(us), Tag(tag), rq), Insert::Queued);
    }

    #[test]
    fn reads_go_first_until_a_write_is_late() {
        let (one, late) = (1, Duration::from_ms(1));
        let reads = Duration::from_ms(10);
        let mut e = elevator(Config {
            batch_size_limit_read: one,
            lat_target_read: reads,
            lat_target_write: late,
            ..Config::default()
        });
        insert(&mut e, 0, 0, write(1));
        insert(&mut e, 0, 1, read(2));
        insert(&mut e, 0, 2, read(3));
        // The write has the earlier deadline, but it is async and not late.
        assert_eq!(e.dispatch(at(20)), Dispatch::Issue(Tag(1)));
        assert_eq!(e.dispatch(at(5_000)), Dispatch::Issue(Tag(0)));
        assert_eq!(e.dispatch(at(5_000)), Dispatch::Issue(Tag(2)));
    }

    #[test]
    fn what_is_at_the_disk_stays_within_the_window() {
        let mut e = elevator(Config { bq_refill_below_ratio: 0, ..Config::default() });
        // The disk takes 5 ms: three fit into 16 ms.
        for i in 0..4 {
            insert(&mut e, i * 10_000, 0, read(i));
            assert_eq!(e.dispatch(at(i * 10_000)), Dispatch::Issue(Tag(0)));
            e.complete(at(i * 10_000 + 5_000), Tag(0)).for_each(drop);
        }
        for i in 0..10 {
            insert(&mut e, 50_000, i, read(10 + u64::from(i)));
        }
        let issued = (0..10).take_while(|_| matches!(e.dispatch(at(50_000)), Dispatch::Issue(_))).count();
        assert_eq!(issued, 3);
        assert_eq!(e.dispatch(at(50_000)), Dispatch::Hold(Hold::Depth));
        e.check();
    }
}
