//! What a queue's past says: think time, seekiness, whether it is I/O-bound.
//!
//! - **Think time**: how long after the last completion the next request comes, as a mean that forgets. Only
//!   what comes to a queue that has nothing to do counts. From the third sample on it is trusted.
//! - **Seekiness**: of the last 32 requests, how many started far from where the one before ended. *Far* is
//!   more than 800 sectors, and on a disk without a head only for requests of less than 64. More than 19 make
//!   a queue seeky, 32 totally seeky.
//! - **I/O-bound**: whether the queue has nothing to do for at most a fifth of the time. What passed more
//!   than 200 ms ago counts half.
//!
//! Example: a reader sends each request 1 ms after the last one completed, which took 3 ms: think time 1 ms,
//! and idle for a quarter of the time, so not I/O-bound. If it read ahead by one request it would always have
//! something to do.
//!
//! In the engine of 2010 a queue was seeky when its mean distance was above 8192 sectors, and a think time
//! was short up to the whole of `slice_idle` instead of half of it.
//!
//! A queue's [`Past`] is looked at with each request, so it is kept with the queue. Its fields are this
//! file's alone.
//
//= linux-6.12 block/bfq-iosched.c bfq_update_io_thinktime, bfq_update_io_seektime, bfq_update_io_intensity
//= docs/reference/bfq.md#28-think-time

use crate::parts::decay::Decayed;
use crate::request::Request;
use crate::sched::bfq::view::View;
use crate::units::{Duration, Instant, Sector, Sectors};

/// A request that is farther than this from the last one is a seek.
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

/// What seeks are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// Which of the last 32 requests were far from the one before.
    Marks,
    /// The mean distance: the rule of 2010.
    MeanDistance,
}

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seeks: Method,
    /// The longest think time that counts; zero: think times are not judged.
    pub(crate) ever: Duration,
    /// The longest think time that is short.
    pub(crate) short: Duration,
    /// Whether the device has a head.
    pub(crate) rotational: bool,
    /// As in the kernel, the time until a new queue's first request wraps around, and a queue of the idle
    /// class begins with a short think time.
    pub(crate) wraps: bool,
}

/// The time between a completion and the next request.
#[derive(Clone, Copy, Debug)]
struct ThinkTime {
    /// When a request last completed; when the queue was made, if none has.
    last_end: Instant,
    times: Decayed,
}

impl ThinkTime {
    /// Of a queue that is new, whose first request must not look late.
    fn since(now: Instant) -> Self {
        Self { last_end: now, times: Decayed::default() }
    }

    /// A request came to a queue with nothing to do; longer than `ever` is as good as for ever, and so is a
    /// `first` request by the kernel's arithmetic.
    fn arrived(&mut self, now: Instant, ever: Duration, first: bool) {
        let sample = if first { ever } else { now.saturating_since(self.last_end).min(ever) };
        self.times.push(sample.as_ns());
    }

    /// Whether enough is known to say so, and it is not longer than `limit`.
    fn is_within(&self, limit: Duration) -> bool {
        self.times.is_valid() && self.times.mean() <= limit.as_ns()
    }

    /// Whether enough is known to say so, and it is longer than `limit`.
    fn exceeds(&self, limit: Duration) -> bool {
        self.times.is_valid() && self.times.mean() > limit.as_ns()
    }
}

/// How much of the time a queue is idle.
#[derive(Clone, Copy, Debug)]
struct Activity {
    io_bound: bool,
    io_start: Instant,
    idle_total: Duration,
}

impl Activity {
    /// Of a queue that is new: it has the benefit of the doubt.
    const fn since(now: Instant) -> Self {
        Self { io_bound: true, io_start: now, idle_total: Duration::ZERO }
    }

    /// A request came; `idle` is for how long there had been none, neither queued nor at the device. A queue
    /// that is just `created` is not judged. Wraps around where the kernel's does.
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
struct SeekHistory {
    bits: u32,
    /// How many bits are set.
    marks: u32,
}

impl SeekHistory {
    /// Of a queue that is new.
    const NEW: Self = Self::new(1);

    /// One whose last requests were far where a bit is set, the latest the lowest.
    const fn new(bits: u32) -> Self {
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
pub(crate) const fn is_far(rotational: bool, last: Sector, start: Sector, len: Sectors) -> bool {
    // One comparison for both directions: near is from `FAR_SECTORS` before `last` to as many behind it.
    let moved = start.0.wrapping_sub(last.0).wrapping_add(FAR_SECTORS);
    last.0 != 0 && moved > 2 * FAR_SECTORS && (rotational || len.0 < SMALL_SECTORS)
}

/// What is known of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    think: ThinkTime,
    short_think: bool,
    activity: Activity,
    seeks: SeekHistory,
    /// Instead of `seeks`, by the rules of 2010.
    seek_mean: Decayed,
    /// The end of the last request that arrived; 0 if none did.
    last_end: Sector,
}

/// What a task takes along when it shares a queue, and gets back when it has its own again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remembered {
    think: ThinkTime,
    short_think: bool,
    activity: Activity,
}

impl Past {
    /// Whether the next request of the queue's task is expected soon.
    #[inline]
    pub(crate) const fn thinks_shortly(&self) -> bool {
        self.short_think
    }

    /// Whether the queue's think time is known, and not longer than `limit`.
    pub(crate) fn thinks_within(&self, limit: Duration) -> bool {
        self.think.is_within(limit)
    }

    /// Whether the queue's think time is known, and longer than `limit`.
    pub(crate) fn thinks_longer_than(&self, limit: Duration) -> bool {
        self.think.exceeds(limit)
    }

    /// Whether the queue has nothing to do for at most a fifth of the time.
    #[inline]
    pub(crate) const fn is_io_bound(&self) -> bool {
        self.activity.io_bound
    }

    /// When a request of the queue last completed; when the queue was made, if none has.
    #[inline]
    pub(crate) const fn last_completion(&self) -> Instant {
        self.think.last_end
    }

    /// Whether none of the queue's last 32 requests was near the one before.
    pub(crate) const fn is_totally_seeky(&self) -> bool {
        self.seeks.marks == u32::BITS
    }

    /// A request of the queue completed.
    #[inline]
    pub(crate) const fn completed(&mut self, now: Instant) {
        self.think.last_end = now;
    }

    /// What the queue's task takes along.
    pub(crate) const fn remembered(&self) -> Remembered {
        Remembered { think: self.think, short_think: self.short_think, activity: self.activity }
    }

    /// The queue is of a task that had one before: this was known of that.
    pub(crate) const fn split(&mut self, was: Remembered) {
        (self.think, self.short_think, self.activity) = (was.think, was.short_think, was.activity);
    }

    /// The tasks of this queue go over to the queue of `other`: if this one is I/O-bound, that one is.
    pub(crate) const fn merged(mut self, mut other: Self) -> (Self, Self) {
        if self.activity.io_bound {
            self.activity.io_bound = false;
            other.activity.io_bound = true;
        }
        (self, other)
    }

    /// For comparisons: the think time is short, or is not.
    pub(crate) const fn adopt_short_think(&mut self, short: bool) {
        self.short_think = short;
    }
}

/// A request that comes, as far as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Whether the queue is sync, and whether it is judged by its think time: not in the idle class.
    pub(crate) sync: bool,
    pub(crate) judged: bool,
    /// Whether the queue is among those that want the disk, or has it.
    pub(crate) busy: bool,
    /// Whether it has requests that wait, and at the device.
    pub(crate) waiting: bool,
    pub(crate) in_flight: bool,
    /// Whether the queue was made for this request.
    pub(crate) created: bool,
    /// When it was split off, if it was.
    pub(crate) split: Option<Instant>,
}

/// What is new about a queue, now that a request came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Learned {
    /// Its think time turned short, or long.
    pub(crate) think_changed: bool,
    /// None of its last 32 requests was near the one before.
    pub(crate) all_far: bool,
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    pub(crate) setting: Setting,
}

impl History {
    /// What is known of a queue that is made now: nothing. `expects` says whether it is one that is idled
    /// for.
    pub(crate) fn created(&self, now: Instant, sync: bool, expects: bool) -> Past {
        Past {
            think: ThinkTime::since(now),
            // In the kernel a queue has no class yet when that is looked at, and it is not looked at again.
            //= deviates bfq-idle-think
            short_think: sync && (expects || self.setting.wraps),
            activity: Activity::since(now),
            seeks: SeekHistory::NEW,
            seek_mean: Decayed::default(),
            last_end: Sector(0),
        }
    }

    /// `rq` comes to the queue of `past`.
    #[inline(always)]
    pub(crate) fn arrived(&self, view: &View, past: &mut Past, to: &Arrival, rq: &Request) -> Learned {
        let was_short = past.short_think;
        // The kernel's queues begin a nanosecond late, and the time until their first request wraps around.
        //= deviates bfq-first-sample
        let wraps = self.setting.wraps && to.created && past.think.last_end >= view.now;
        if !to.in_flight && !to.busy {
            past.think.arrived(view.now, self.setting.ever, wraps);
        }
        if to.sync {
            let settled = || to.split.is_none_or(|t| view.tick() >= t + QUIET_AFTER_SPLIT);
            if to.judged && !self.setting.ever.is_zero() && settled() {
                past.short_think = !past.think.exceeds(self.setting.short);
            }
            let unused = !to.in_flight && !to.waiting;
            let idle = if unused { view.now.saturating_since(past.think.last_end) } else { Duration::ZERO };
            let idle = if wraps { Duration::MAX } else { idle };
            past.activity.arrived(view.now, idle, to.created);
        }
        let last = core::mem::replace(&mut past.last_end, rq.end());
        let all_far = match self.setting.seeks {
            Method::Marks => {
                past.seeks.push(self.is_far(last, rq));
                past.is_totally_seeky()
            }
            Method::MeanDistance => {
                past.seek_mean.push_seek(if last.0 == 0 { 0 } else { last.distance(rq.start) });
                false
            }
        };
        Learned { think_changed: was_short != past.short_think, all_far }
    }

    /// Whether the requests of a queue jump about.
    #[inline]
    pub(crate) fn is_seeky(&self, past: &Past) -> bool {
        match self.setting.seeks {
            Method::Marks => past.seeks.marks > SEEKY_MARKS,
            Method::MeanDistance => past.seek_mean.is_valid() && past.seek_mean.mean() > SEEKY_MEAN_SECTORS,
        }
    }

    /// Whether a request is far from where the device was last.
    #[inline]
    pub(crate) const fn is_far(&self, last: Sector, rq: &Request) -> bool {
        is_far(self.setting.rotational, last, rq.start, rq.len)
    }
}

/// Pasts that tests need.
#[cfg(test)]
impl Past {
    /// The last 32 requests were far where a bit is set, the latest the lowest.
    pub(crate) const fn has_seeks(&mut self, bits: u32) {
        self.seeks = SeekHistory::new(bits);
    }

    pub(crate) const fn has_io_bound(&mut self, io_bound: bool) {
        self.activity.io_bound = io_bound;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::TaskId;

    #[test]
    //= docs/reference/bfq.md#86-test-vectors think time type=test
    fn the_third_think_time_is_trusted() {
        let (idle, mut think, mut now) =
            (Duration::from_ms(8), ThinkTime::since(Instant::EPOCH), Instant::EPOCH);
        for (ms, mean_us, long) in [(1, 1000, false), (3, 2066, false), (9, 4720, true), (16, 8180, true)] {
            now = now + Duration::from_ms(ms);
            think.arrived(now, idle * 2, false);
            think.last_end = now;
            assert_eq!((think.times.mean() / 1000, think.exceeds(idle / 2)), (mean_us, long), "{ms} ms");
        }
        for _ in 0..100 {
            now = now + Duration::from_secs(9);
            think.arrived(now, idle * 2, false);
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
        let mut new = SeekHistory::NEW;
        let marks = [(); 32].map(|()| {
            new.push(false);
            new.marks
        });
        assert_eq!((marks[30], marks[31]), (1, 0), "a new queue counts as one seek for 32 requests");
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
    fn a_queue_that_is_idle_for_more_than_a_fifth_of_the_time_is_not_io_bound() {
        let (ms, start) = (Duration::from_ms, Instant::EPOCH);
        let mut activity = Activity::since(start);
        activity.arrived(start + ms(10), ms(10), true);
        assert!(activity.io_bound, "a queue that was just created is not judged");
        activity.arrived(start + ms(50), ms(0), false);
        assert!(activity.io_bound);
        activity.arrived(start + ms(54), ms(1), false);
        assert!(!activity.io_bound);
        // What passed more than 200 ms ago counts half.
        activity.arrived(start + ms(300), ms(39), false);
        assert!(activity.io_bound);
        assert_eq!((activity.io_start, activity.idle_total), (start + ms(150), ms(25)));
        activity.arrived(start + ms(350), ms(0), false);
        assert_eq!((activity.io_start, activity.idle_total), (start + ms(150), ms(25)), "just not more");
    }

    const IDLE: Duration = Duration::from_ms(8);

    fn rule() -> History {
        let setting =
            Setting { seeks: Method::Marks, ever: IDLE * 2, short: IDLE / 2, rotational: true, wraps: false };
        History { setting }
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_ms(ms)
    }

    fn read(start: u64) -> Request {
        Request::read(TaskId(1), Sector(start), Sectors(8))
    }

    /// Comes to a sync queue that has nothing to do.
    const IDLE_QUEUE: Arrival = Arrival {
        sync: true,
        judged: true,
        busy: false,
        waiting: false,
        in_flight: false,
        created: false,
        split: None,
    };

    /// What is known of a queue whose requests came 5 ms after the last completion, often enough to be sure.
    fn slow(rule: &History, to: &Arrival) -> (Past, Learned) {
        let mut past = rule.created(at(0), true, true);
        let mut learned = Learned { think_changed: false, all_far: false };
        for n in 1..4 {
            learned = rule.arrived(&View::at(at(5 * n)), &mut past, to, &read(5000));
            past.completed(at(5 * n));
        }
        (past, learned)
    }

    #[test]
    fn a_think_time_of_more_than_half_of_slice_idle_is_long_from_the_third_request_on() {
        let (past, learned) = slow(&rule(), &IDLE_QUEUE);
        assert_eq!((past.thinks_shortly(), learned.think_changed), (false, true));
        assert!(past.thinks_longer_than(Duration::from_ms(5)) && !past.thinks_longer_than(IDLE));
        let mut past = past;
        let again = rule().arrived(&View::at(at(20)), &mut past, &IDLE_QUEUE, &read(5000));
        assert!(!again.think_changed, "it was long before");
        let mut early = rule();
        early.setting.short = IDLE;
        assert!(slow(&early, &IDLE_QUEUE).0.thinks_shortly(), "in 2010, all of it");
    }

    #[test]
    fn think_time_is_taken_from_queues_that_have_nothing_to_do() {
        for to in [Arrival { busy: true, ..IDLE_QUEUE }, Arrival { in_flight: true, ..IDLE_QUEUE }] {
            let (past, _) = slow(&rule(), &to);
            assert!(past.thinks_shortly() && !past.thinks_longer_than(Duration::ZERO), "{to:?}");
        }
    }

    #[test]
    fn think_time_is_not_judged_of_some_queues() {
        for to in [
            Arrival { sync: false, ..IDLE_QUEUE },
            Arrival { judged: false, ..IDLE_QUEUE },
            Arrival { split: Some(at(0)), ..IDLE_QUEUE },
        ] {
            assert!(slow(&rule(), &to).0.thinks_shortly(), "{to:?}");
        }
        let mut off = rule();
        off.setting.ever = Duration::ZERO;
        off.setting.short = Duration::ZERO;
        assert!(slow(&off, &IDLE_QUEUE).0.thinks_shortly());
    }

    #[test]
    fn for_two_seconds_after_a_split_the_think_time_says_nothing() {
        let split = Arrival { split: Some(at(100)), ..IDLE_QUEUE };
        for (ms, short) in [(2099, true), (2100, false)] {
            let (mut past, _) = slow(&rule(), &split);
            let _ = rule().arrived(&View::at(at(ms)), &mut past, &split, &read(5000));
            assert_eq!(past.thinks_shortly(), short, "at {ms} ms");
        }
    }

    #[test]
    fn what_is_waited_for_at_the_device_is_no_idleness() {
        let mut past = rule().created(at(0), true, true);
        for to in [Arrival { in_flight: true, ..IDLE_QUEUE }, Arrival { waiting: true, ..IDLE_QUEUE }] {
            let _ = rule().arrived(&View::at(at(100)), &mut past, &to, &read(5000));
            assert!(past.is_io_bound(), "{to:?}");
        }
        let _ = rule().arrived(&View::at(at(101)), &mut past, &IDLE_QUEUE, &read(5000));
        assert!(!past.is_io_bound());
    }

    #[test]
    fn twenty_of_the_last_32_requests_far_from_the_one_before_are_seeky() {
        let mut past = rule().created(at(0), true, true);
        for n in 1..32 {
            assert_eq!(rule().is_seeky(&past), n > 20, "after {n}: a new queue counts as one seek");
            let learned = rule().arrived(&View::at(at(0)), &mut past, &IDLE_QUEUE, &read(2000 * n));
            assert!(!learned.all_far);
        }
        // The first request was far from none, and leaves with the 33rd.
        for n in 32..35 {
            let learned = rule().arrived(&View::at(at(0)), &mut past, &IDLE_QUEUE, &read(2000 * n));
            assert_eq!((learned.all_far, past.is_totally_seeky()), (n > 32, n > 32), "{n}");
        }
        let _ = rule().arrived(&View::at(at(0)), &mut past, &IDLE_QUEUE, &read(2000 * 34 + 8));
        assert!(!past.is_totally_seeky() && rule().is_seeky(&past));
    }

    // A mean settles at 256 / 249 of what goes in, and a distance is 8 less than a step.
    #[test]
    fn in_2010_a_mean_distance_of_more_than_8192_sectors_was_seeky() {
        for (step, seeky) in [(7960, false), (7990, true)] {
            let mut early = rule();
            early.setting.seeks = Method::MeanDistance;
            let mut past = early.created(at(0), true, true);
            for n in 1..200 {
                let learned = early.arrived(&View::at(at(0)), &mut past, &IDLE_QUEUE, &read(step * n));
                assert!(!learned.all_far);
            }
            assert_eq!(early.is_seeky(&past), seeky, "every {step} sectors");
        }
    }

    #[test]
    fn a_new_queue_has_the_benefit_of_the_doubt() {
        let known = |sync, expects, wraps| {
            let mut rule = rule();
            rule.setting.wraps = wraps;
            let past = rule.created(at(7), sync, expects);
            assert!(past.is_io_bound() && !rule.is_seeky(&past) && past.last_completion() == at(7));
            past.thinks_shortly()
        };
        assert!(known(true, true, false) && known(true, false, true));
        assert!(!known(true, false, false) && !known(false, true, true));
    }

    #[test]
    fn as_in_the_kernel_the_first_request_can_look_as_if_it_came_late() {
        let mut rule = rule();
        let first = Arrival { created: true, ..IDLE_QUEUE };
        for (wraps, created_ms, mean) in [(false, 9, 0), (true, 9, 16), (true, 5, 4)] {
            rule.setting.wraps = wraps;
            let mut past = rule.created(at(created_ms), true, true);
            let _ = rule.arrived(&View::at(at(9)), &mut past, &first, &read(5000));
            assert_eq!(past.think.times.mean() / 1_000_000, mean, "{wraps} {created_ms}");
            assert_eq!(past.activity.idle_total > Duration::from_secs(9), mean == 16);
        }
    }

    #[test]
    fn tasks_that_meet_and_part_take_along_what_is_known_of_them() {
        let (slow, _) = slow(&rule(), &IDLE_QUEUE);
        let mut own = rule().created(at(90), true, true);
        own.split(slow.remembered());
        assert_eq!((own.thinks_shortly(), own.is_io_bound(), own.last_completion()), (false, false, at(15)));
        assert_eq!(own.seeks.bits, SeekHistory::NEW.bits, "where it reads is not among that");
        let bound = rule().created(at(0), true, true);
        let (left, joined) = bound.merged(slow);
        assert_eq!((left.is_io_bound(), joined.is_io_bound()), (false, true));
        let (left, joined) = slow.merged(bound);
        assert_eq!((left.is_io_bound(), joined.is_io_bound()), (false, true));
    }
}
