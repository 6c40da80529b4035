//! What a queue's past says: think time, seekiness, whether it is I/O-bound.
//!
//! - **Think time**: how long after the last completion the next request comes, as a mean that forgets. Only what comes
//!   to a queue that has nothing to do counts. From the third sample on it is trusted.
//! - **Seekiness**: of the last 32 requests, how many started far from where the one before ended. *Far* is more than 800
//!   sectors, and on a disk without a head only for requests of less than 64. More than 19 make a queue seeky, 32
//!   totally seeky.
//! - **I/O-bound**: whether the queue has nothing to do for at most a fifth of the time. What passed more than 200 ms
//!   ago counts half.
//!
//! Example: a reader sends each request 1 ms after the last one completed, which took 3 ms: think time 1 ms, and idle for a
//! quarter of the time, so not I/O-bound. If it read ahead by one request it would always have something to do.
//!
//! In the engine of 2010 a queue was seeky when its mean distance was above 8192 sectors.
//
//= linux-6.12 block/bfq-iosched.c bfq_update_io_thinktime, bfq_update_io_seektime, bfq_update_io_intensity
//= docs/reference/bfq.md#28-think-time

use super::Bfq;
use super::queue::Queue;
use super::view::QueueId;
use crate::elevator::Cx;
use crate::parts::decay::Decayed;
use crate::request::Request;
use crate::units::{Class, Duration, Instant, Sector, Sectors};

/// For so long from its first service on may a queue that became backlogged be merged by position.
//= linux-6.12 block/bfq-iosched.c bfq_merge_time_limit, docs/reference/bfq.md#32-early-queue-merge
const MERGE_TIME: Duration = Duration::from_ms(100);
/// A request this far from the last one, or farther, is a seek.
//= linux-6.12 block/bfq-iosched.c BFQQ_SEEK_THR, docs/reference/bfq.md#27-seekiness
const FAR_SECTORS: u64 = 8 * 100;
/// Without a head, distance counts only for requests shorter than this.
//= linux-6.12 block/bfq-iosched.c BFQQ_SECT_THR_NONROT, docs/reference/bfq.md#27-seekiness
const SMALL_SECTORS: u32 = 2 * 32;
/// More seeks than this among the last 32 requests make a queue seeky.
//= linux-6.12 block/bfq-iosched.c BFQQ_SEEKY, docs/reference/bfq.md#27-seekiness
const SEEKY_MARKS: u32 = 19;
/// The mean distance above which a queue was seeky in 2010.
//= bfq-2010 BFQQ_SEEK_THR, docs/reference/bfq.md#c-open-points
const SEEKY_MEAN_SECTORS: u64 = 8 * 1024;
/// The window in which idleness is looked at.
//= linux-6.12 block/bfq-iosched.c bfq_update_io_intensity, docs/reference/bfq.md#33-asymmetric-scenarios
const ACTIVITY_WINDOW: Duration = Duration::from_ms(200);
/// For so long after a split the think time says nothing.
//= linux-6.12 block/bfq-iosched.c bfq_update_has_short_ttime, bfq_wr_min_idle_time
//= docs/reference/bfq.md#28-think-time
const QUIET_AFTER_SPLIT: Duration = Duration::from_secs(2);

/// The time between a completion and the next request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    pub(super) last_end: Instant,
    times: Decayed,
}

impl ThinkTime {
    /// Of a queue that is new, whose first request must not look late.
    pub(super) fn since(now: Instant) -> Self {
        Self { last_end: now, times: Decayed::default() }
    }

    /// A request came to a queue with nothing to do; longer than twice `idle` is as good as for ever. `first`: of all.
    fn arrived(&mut self, now: Instant, idle: Duration, first: bool) {
        let ever = idle * 2;
        let sample = if first { ever } else { now.saturating_since(self.last_end).min(ever) };
        self.times.push(sample.as_ns());
    }

    /// Whether enough is known to say so, and it is longer than `limit`.
    pub(super) fn exceeds(&self, limit: Duration) -> bool {
        self.times.is_valid() && self.times.mean() > limit.as_ns()
    }
}

/// How much of the time a queue is idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub(super) io_bound: bool,
    pub(super) io_start: Instant,
    pub(super) idle_total: Duration,
}

impl Activity {
    /// Of a queue that is new: it has the benefit of the doubt.
    pub(super) const fn since(now: Instant) -> Self {
        Self { io_bound: true, io_start: now, idle_total: Duration::ZERO }
    }

    /// A request came; `idle` is for how long there had been none, neither queued nor at the device. A queue that is
    /// just `created` is not judged. Wraps around where the kernel's does.
    fn arrived(&mut self, now: Instant, idle: Duration, created: bool) {
        self.idle_total = Duration::from_ns(self.idle_total.as_ns().wrapping_add(idle.as_ns()));
        if created {
            return;
        }
        let window = now.saturating_since(self.io_start);
        self.io_bound = self.idle_total.as_ns().wrapping_mul(5) <= window.as_ns();
        if window > ACTIVITY_WINDOW {
            self.io_start = now - window / 2;
            self.idle_total = self.idle_total / 2;
        }
    }
}

/// The last 32 requests: which were far from the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeekHistory {
    bits: u32,
    /// How many bits are set.
    marks: u32,
}

impl SeekHistory {
    /// Of a queue that is new.
    pub(super) const NEW: Self = Self::new(1);

    /// One whose last requests were far where a bit is set, the latest the lowest.
    pub(super) const fn new(bits: u32) -> Self {
        Self { bits, marks: bits.count_ones() }
    }

    #[inline]
    fn push(&mut self, far: bool) {
        self.marks = self.marks + u32::from(far) - (self.bits >> 31);
        self.bits = (self.bits << 1) | u32::from(far);
    }
}

/// Whether a request of `len` at `start` is far from `last`, where 0 says that there was none.
#[inline]
pub(super) const fn is_far(rotational: bool, last: Sector, start: Sector, len: Sectors) -> bool {
    last.0 != 0 && last.distance(start) > FAR_SECTORS && (rotational || len.0 < SMALL_SECTORS)
}

impl Queue {
    /// Whether its task sends soon enough. For a while after a split nothing is concluded.
    #[inline]
    fn judge_thinking(&mut self, now: Instant, limit: Duration) {
        if self.split_time.is_none_or(|t| now >= t + QUIET_AFTER_SPLIT) {
            self.short_think = !self.think.exceeds(limit);
        }
    }

    /// Takes note of whether it had something to do all the time, when a request comes to it.
    #[inline]
    fn watch_activity(&mut self, now: Instant, wraps: bool) {
        let unused = self.in_flight == 0 && self.next_rq.is_none();
        let idle = if unused { now.saturating_since(self.think.last_end) } else { Duration::ZERO };
        let idle = if wraps { Duration::MAX } else { idle };
        self.activity.arrived(now, idle, self.just_created);
    }
}

impl Bfq {
    /// Takes note of when and where `rq` comes to `q`, before it is put in.
    #[inline]
    pub(super) fn learn(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) {
        let (now, idle, clock) = (cx.now, self.slice_idle, self.tick(cx.now));
        let boost = self.config.throughput_boost;
        let queue = &mut self.queues[q];
        let was_short = queue.short_think;
        // The kernel's queues begin a nanosecond late, and the time until their first request wraps around.
        //= deviates bfq-first-sample
        let wraps = self.config.quirks && queue.has_just_begun(cx.now);
        if queue.in_flight == 0 && !queue.busy {
            queue.think.arrived(now, idle, wraps);
        }
        if queue.sync {
            if queue.class != Class::Idle && !idle.is_zero() {
                queue.judge_thinking(clock, if boost { idle / 2 } else { idle });
            }
            queue.watch_activity(now, wraps);
        }
        let last = core::mem::replace(&mut queue.last_rq_pos, rq.end());
        let mut seeks = false;
        if boost {
            queue.seeks.push(is_far(self.limits.rotational, last, rq.start, rq.len));
            seeks = queue.seeks.marks == u32::BITS;
        } else {
            queue.seek_mean.push_seek(if last.0 == 0 { 0 } else { last.distance(rq.start) });
        }
        if was_short != queue.short_think {
            self.rules_think_changed(now, q);
        }
        if seeks && self.is_soft_raised(q) {
            self.end_soft_rt(cx, q);
        }
    }

    /// Whether its requests jump about.
    #[inline]
    pub(super) fn is_seeky(&self, q: QueueId) -> bool {
        self.seeks(&self.queues[q])
    }

    #[inline]
    pub(super) fn seeks(&self, queue: &Queue) -> bool {
        if self.config.throughput_boost {
            queue.seeks.marks > SEEKY_MARKS
        } else {
            queue.seek_mean.is_valid() && queue.seek_mean.mean() > SEEKY_MEAN_SECTORS
        }
    }

    /// Whether none of its last 32 requests was near the one before.
    pub(super) fn is_totally_seeky(&self, q: QueueId) -> bool {
        self.queues[q].seeks.marks == u32::BITS
    }

    /// Whether its backlog began so long ago that what it reads near another queue is chance.
    #[inline]
    pub(super) fn is_too_late(&self, now: Instant, queue: &Queue) -> bool {
        queue.since_backlog > 0 && self.tick(now) > queue.first_io + MERGE_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= docs/reference/bfq.md#86-test-vectors think time type=test
    fn the_third_think_time_is_trusted() {
        let (idle, mut think, mut now) =
            (Duration::from_ms(8), ThinkTime::since(Instant::EPOCH), Instant::EPOCH);
        for (ms, mean_us, long) in [(1, 1000, false), (3, 2066, false), (9, 4720, true), (16, 8180, true)] {
            now = now + Duration::from_ms(ms);
            think.arrived(now, idle, false);
            think.last_end = now;
            assert_eq!((think.times.mean() / 1000, think.exceeds(idle / 2)), (mean_us, long), "{ms} ms");
        }
        for _ in 0..100 {
            now = now + Duration::from_secs(9);
            think.arrived(now, idle, false);
        }
        // Integers settle at 256 / 249 of what goes in.
        assert!(!think.exceeds(Duration::from_us(16_500)), "capped at twice 8 ms");
    }

    #[test]
    fn twenty_seeks_among_thirty_two_requests_are_seeky_and_forgotten() {
        let mut seeks = SeekHistory::NEW;
        for far in 0..32 {
            seeks.push(far < 20);
        }
        assert_eq!(seeks.marks, 20);
        seeks.push(false);
        assert_eq!((seeks.marks, seeks.bits.count_ones()), (19, 19), "the first is forgotten");
        for _ in 0..32 {
            seeks.push(true);
        }
        assert_eq!((seeks.marks, seeks.bits), (32, u32::MAX));
    }

    #[test]
    fn far_is_more_than_800_sectors_and_without_a_head_small() {
        let far =
            |rotational, last, start, len| is_far(rotational, Sector(last), Sector(start), Sectors(len));
        assert!(far(true, 1000, 1801, 8) && far(true, 1801, 1000, 1024) && far(false, 1000, 9000, 63));
        assert!(!far(true, 1000, 1800, 8) && !far(false, 1000, 9000, 64));
        assert!(!far(true, 0, 1 << 40, 8), "0 says that there was none");
    }

    #[test]
    fn who_is_idle_for_more_than_a_fifth_of_the_time_is_not_io_bound() {
        let (ms, start) = (Duration::from_ms, Instant::EPOCH);
        let mut activity = Activity::since(start);
        activity.arrived(start + ms(10), ms(10), true);
        assert!(activity.io_bound, "who was just created is not judged");
        activity.arrived(start + ms(50), ms(0), false);
        assert!(activity.io_bound);
        activity.arrived(start + ms(54), ms(1), false);
        assert!(!activity.io_bound);
        // What passed more than 200 ms ago counts half.
        activity.arrived(start + ms(300), ms(39), false);
        assert!(activity.io_bound);
        assert_eq!((activity.io_start, activity.idle_total), (start + ms(150), ms(25)));
    }
}
