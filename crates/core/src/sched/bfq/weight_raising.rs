//! Weight raising: who waits in front of the screen gets the disk before the others, for a while.
//!
//! A program that starts reads a little, computes, reads again, and its user waits for the sum. A player reads a little every so
//! often, and drops a frame when that is late. Beside ten tasks that copy files, a fair share is too little for either. So
//! their queues' weights are raised by a factor, for as long as they look like one of the two:
//!
//! | | looks like it when its queue becomes busy | factor | for |
//! |---|---|---:|---|
//! | interactive | nothing sent for 2 s, or new | 30 | as long as a large program takes to start here |
//! | soft real-time | not before its last batch, spread out at 7000 sectors/s, would be over | 3000 | 300 ms, again each time |
//!
//! **Interactive.** A large program takes 7 s to start on a disk of 14000 (in 2^-16 sectors per microsecond, 104 MiB/s).
//! At the first guess of the rate, two thirds of that, it may be raised for 14000 * 7 s / 9333 = 10.5 s; flash, at
//! two thirds of its 33000, for 33000 * 2.5 s / 22000 = 3.75 s. Not less than 3 s, not more than 25 s. Whoever has read
//! 120000 sectors (59 MiB) meanwhile is copying something, and is raised no longer. Who ends so may be soft real-time from
//! then on.
//!
//! **Soft real-time.** Let a queue become busy at 0, send 700 sectors and be empty. At 7000 sectors/s these last 100 ms: if
//! its next request comes after that, the task paces itself, and is raised. A greedy task's next request comes at once, and
//! also not later than `slice_idle` and four ticks after the last completion, which is the other lower bound. The instant
//! never moves back: once it has been greedy, a task has to make up for it. The 300 ms are those in which it is served: time spent
//! waiting for the disk is added. An interactive period that was under way goes on afterwards.
//!
//! **Async.** A busy async queue that nobody has heard of for 500 ms is raised as interactive: a daemon that seldom writes.
//!
//! Not raised are queues of a [large burst](super::rules::burst), shared ones (but for the [stably merged](super::queue_merge)),
//! and those with another weight than 40: whoever set that wants to decide alone. For 2 s after a split nothing changes.
//!
//! What it does not do: protect a raised queue's requests once the device has them; that is for [`super::rules::idle`] and
//! [`super::rules::protect`]. The factor in force is the [hierarchy](crate::parts::hierarchy)'s: it learns of a change at
//! the queue's next insertion, or right after a dispatch if the queue is in service.
//!
//= linux-6.12 block/bfq-iosched.c bfq_update_bfqq_wr_on_rq_arrival, bfq_update_wr_data
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_softrt_next_start
//= docs/reference/bfq.md#38-interactive-queues, docs/reference/bfq.md#39-soft-real-time

use super::Bfq;
use super::view::{QueueId, since};
use crate::elevator::Cx;
use crate::trace::{Detail, Reason};
use crate::units::{Class, Duration, Instant, IoPrio};

/// A disk on which the start of a large program was timed.
struct Reference {
    /// In 2^-16 sectors per microsecond.
    rate: u64,
    start_up: Duration,
}

//= linux-6.12 block/bfq-iosched.c ref_rate, ref_wr_duration, docs/reference/bfq.md#38-interactive-queues
const DISK: Reference = Reference { rate: 14000, start_up: Duration::from_ms(7000) };
const FLASH: Reference = Reference { rate: 33000, start_up: Duration::from_ms(2500) };

/// Bounds of the duration of interactive raising.
//= linux-6.12 block/bfq-iosched.c bfq_wr_duration, docs/reference/bfq.md#38-interactive-queues
const SHORTEST: Duration = Duration::from_ms(3000);
const LONGEST: Duration = Duration::from_ms(25000);

/// By how much more a soft real-time queue is raised than an interactive one.
//= linux-6.12 block/bfq-iosched.h BFQ_SOFTRT_WEIGHT_FACTOR, docs/reference/bfq.md#39-soft-real-time
const SOFT_RT_TIMES: u32 = 100;

/// So long after a split a queue's raising stays as it is.
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_handle_idle_busy_switch
//= docs/reference/bfq.md#73-from-idle-to-busy
const QUIET_AFTER_SPLIT: Duration = Duration::from_ms(2000);

/// The tick of a kernel with 250 per second, where a rule counts ticks and clocks are exact.
const USUAL_TICK: Duration = Duration::from_ms(4);

/// What a queue looks like when it becomes busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wakeup {
    /// How it was raised so far.
    pub(super) old_factor: u32,
    /// It was idle for long.
    pub(super) interactive: bool,
    /// It paces itself.
    pub(super) soft_rt: bool,
    /// It is in a large burst.
    pub(super) burst: bool,
    /// It is raised, or is to be.
    pub(super) deserves: bool,
}

impl Bfq {
    /// By how much interactive queues are raised.
    #[inline]
    pub(super) fn interactive_factor(&self) -> u32 {
        self.config.wr_coeff
    }

    /// By how much soft real-time queues are raised.
    #[inline]
    pub(super) fn soft_factor(&self) -> u32 {
        self.config.wr_coeff * SOFT_RT_TIMES
    }

    /// Whether a queue is raised as soft real-time.
    #[inline]
    pub(super) fn is_soft_raised(&self, q: QueueId) -> bool {
        let factor = self.queues[q].raise.factor;
        factor > 1 && factor == self.soft_factor()
    }

    /// For how long an interactive queue is raised.
    pub(super) fn raise_duration(&self) -> Duration {
        if !self.config.wr_max_time.is_zero() {
            return self.config.wr_max_time;
        }
        let disk = if self.limits.rotational { DISK } else { FLASH };
        let tick = self.config.tick.as_ns().max(1);
        //= deviates bfq-protection
        let peak = if self.rules.protect.is_greedy() {
            self.rules.rate.peak().min(disk.rate * 2 / 3)
        } else {
            self.rules.rate.peak()
        };
        let ticks = disk.rate * (disk.start_up.as_ns() / tick) / peak.max(1);
        Duration::from_ns(ticks * tick).clamp(SHORTEST, LONGEST)
    }

    /// What a queue looks like that becomes busy: to be asked before anything is done about it.
    pub(super) fn look_at_wakeup(&self, now: Instant, q: QueueId, stably_merged: bool) -> Wakeup {
        let (now, queue) = (self.tick(now), &self.queues[q]);
        let burst = self.in_large_burst(q);
        let eligible = !burst && queue.in_flight == 0 && is_usual(queue.prio);
        let interactive = self.config.interactive
            && eligible
            && since(now, queue.drained_at) > self.config.wr_min_idle_time;
        let soft_rt = self.config.soft_realtime
            && self.config.wr_max_softrt_rate > 0
            && eligible
            && now > queue.raise.soft_rt_next
            && !self.queues[q].past.is_totally_seeky();
        let known = queue.sync && (queue.owner.is_some() || stably_merged);
        let old_factor = queue.raise.factor;
        let deserves = self.config.low_latency && (old_factor > 1 || known && (interactive || soft_rt));
        Wakeup { old_factor, interactive, soft_rt, burst, deserves }
    }

    /// Starts, changes or ends raising when a queue becomes busy.
    pub(super) fn raise_on_wakeup(&mut self, cx: &mut Cx<'_>, q: QueueId, wakeup: &Wakeup) {
        let quiet = since(self.tick(cx.now), self.queues[q].split_time) <= QUIET_AFTER_SPLIT;
        if !self.config.low_latency || quiet {
            return;
        }
        if wakeup.old_factor == 1 {
            if wakeup.deserves {
                self.start_raising(cx, q, wakeup.interactive);
            }
        } else if wakeup.interactive {
            if !self.config.quirks {
                //= deviates bfq-raised-again
                self.queues[q].raise.service = 0;
                self.rules.streams.raised(q);
            }
            self.raise_interactive(cx, q, Reason::RaisedInteractive);
        } else if wakeup.burst {
            self.queues[q].raise.len = Duration::ZERO;
            self.change_factor(cx, q, 1, Reason::RaiseEnd);
        } else if wakeup.soft_rt {
            if !self.is_soft_raised(q) {
                let raise = &mut self.queues[q].raise;
                raise.inter_start = Some(raise.start);
                self.raise_soft(cx, q);
            }
            self.queues[q].raise.start = self.tick(cx.now);
        }
    }

    fn start_raising(&mut self, cx: &mut Cx<'_>, q: QueueId, interactive: bool) {
        self.rules.streams.raised(q);
        if interactive {
            self.queues[q].raise.service = 0;
            self.raise_interactive(cx, q, Reason::RaisedInteractive);
        } else {
            self.queues[q].raise.inter_start = None;
            self.raise_soft(cx, q);
        }
        let small = self.newcomer_budget();
        if self.hierarchy.budget(q) > small {
            self.hierarchy.set_budget(q, small);
        }
    }

    /// An async request came to a busy queue, whose factor was `old_factor` before it.
    pub(super) fn raise_async(&mut self, cx: &mut Cx<'_>, q: QueueId, old_factor: u32) {
        let quiet = since(self.tick(cx.now), Some(self.queues[q].raise.start));
        let rare = quiet > self.config.wr_min_inter_arr_async;
        if self.config.low_latency && self.config.interactive && old_factor == 1 && rare {
            if !self.config.quirks {
                //= deviates bfq-async-service
                self.queues[q].raise.service = 0;
            }
            self.raise_interactive(cx, q, Reason::RaisedAsync);
        }
    }

    /// After each dispatch from the queue in service: is its time over? And gives it the weight that it should have.
    #[inline(always)]
    pub(super) fn check_raise_end(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let queue = &self.queues[q];
        let raised = queue.raise.factor > 1;
        if raised && self.may_be_over(cx.now, q) {
            self.look_at_raise(cx, q);
        }
        let queue = &self.queues[q];
        if queue.weighs_more != (queue.raise.factor > 1) {
            self.apply_weight(cx, q);
        }
    }

    /// Whether there may be a reason to end the raising of a queue.
    #[inline(always)]
    fn may_be_over(&self, now: Instant, q: QueueId) -> bool {
        let raise = &self.queues[q].raise;
        raise.service > u64::from(self.config.wr_max_service.0)
            || self.in_large_burst(q)
            || self.tick(now) > raise.start + raise.len
    }

    #[cold]
    fn look_at_raise(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.in_large_burst(q) {
            self.end_raising(cx, q);
            return;
        }
        let raise = &self.queues[q].raise;
        if self.tick(cx.now) > raise.start + raise.len {
            self.end_period(cx, q);
        }
        let (raise, most) = (&self.queues[q].raise, u64::from(self.config.wr_max_service.0));
        let interactive = raise.factor == self.interactive_factor() && raise.factor > 1;
        if interactive && most > 0 && raise.service > most {
            self.end_raising(cx, q);
        }
    }

    /// A period of raising is over: the interactive one that it interrupted may go on.
    fn end_period(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let interrupted = self.queues[q].raise.inter_start.filter(|_| self.is_soft_raised(q));
        match self.still_interactive(cx.now, interrupted) {
            Some(start) => self.resume_interactive(cx, q, start),
            None => self.end_raising(cx, q),
        }
    }

    /// `start`, if an interactive period that began then is not yet over.
    pub(super) fn still_interactive(&self, now: Instant, start: Option<Instant>) -> Option<Instant> {
        start.filter(|&start| self.tick(now) <= start + self.raise_duration())
    }

    /// Goes on with the interactive raising that began at `start`.
    pub(super) fn resume_interactive(&mut self, cx: &mut Cx<'_>, q: QueueId, start: Instant) {
        self.queues[q].raise.start = start;
        self.raise_interactive(cx, q, Reason::RaisedInteractive);
    }

    /// Ends raising, whatever its kind.
    pub(super) fn end_raising(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (now, soft) = (self.tick(cx.now), self.is_soft_raised(q));
        let raise = &mut self.queues[q].raise;
        raise.start = now;
        raise.len = Duration::ZERO;
        if !soft {
            raise.soft_rt_next = now;
        }
        self.change_factor(cx, q, 1, Reason::RaiseEnd);
    }

    /// When the next batch of a queue that has drained may come, for the queue to be soft real-time.
    pub(super) fn plan_soft_rt(&mut self, now: Instant, q: QueueId) {
        let rate = u64::from(self.config.wr_max_softrt_rate);
        if rate == 0 || !self.config.soft_realtime {
            return;
        }
        let tick = self.config.tick.as_ns().max(1);
        //= deviates bfq-soft-ticks
        let margin = if self.config.tick.is_zero() { USUAL_TICK } else { self.config.tick } * 4;
        let idle = self.slice_idle.as_ns() / tick * tick;
        let greedy = self.tick(now) + Duration::from_ns(idle) + margin;
        let queue = &mut self.queues[q];
        let ticks = queue.since_backlog.saturating_mul(1_000_000_000 / tick) / rate;
        let spread = queue.last_backlog_start + Duration::from_ns(tick) * ticks;
        queue.raise.soft_rt_next = queue.raise.soft_rt_next.max(spread).max(greedy);
    }

    /// At selection: the time for which a soft real-time queue waited to be served is not counted.
    pub(super) fn shift_soft_rt(&mut self, now: Instant, q: QueueId) {
        let now = self.tick(now);
        if !self.is_soft_raised(q) {
            return;
        }
        let queue = &mut self.queues[q];
        //= docs/reference/bfq.md#39-soft-real-time
        let (waits_since, start) = (queue.waits_since, queue.raise.start);
        if start < now && waits_since < now {
            let waited = now.since(waits_since);
            queue.raise.start = if waits_since > start { start + waited } else { now };
        }
    }

    /// A queue turned totally seeky: no player reads so.
    pub(super) fn end_soft_rt(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        if self.is_soft_raised(q) {
            self.end_period(cx, q);
        }
    }

    fn raise_interactive(&mut self, cx: &mut Cx<'_>, q: QueueId, why: Reason) {
        self.queues[q].raise.len = self.raise_duration();
        self.change_factor(cx, q, self.interactive_factor(), why);
    }

    fn raise_soft(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.queues[q].raise.len = self.config.wr_rt_max_time;
        self.change_factor(cx, q, self.soft_factor(), Reason::RaisedSoftRealTime);
    }

    /// What a queue with this factor is raised as.
    pub(super) fn raised_as(&self, factor: u32) -> Reason {
        match factor {
            1 => Reason::RaiseEnd,
            factor if factor == self.soft_factor() => Reason::RaisedSoftRealTime,
            _ => Reason::RaisedInteractive,
        }
    }

    /// Gives a queue another factor, and says so if it is one.
    pub(super) fn change_factor(&mut self, cx: &mut Cx<'_>, q: QueueId, factor: u32, why: Reason) {
        if self.queues[q].raise.factor == factor {
            return;
        }
        self.set_factor(q, factor);
        let queue = &self.queues[q];
        cx.note_in_numbers(why, queue.task, Detail::Raised { factor, at_most: queue.raise.len });
    }
}

/// Whether nobody asked for another weight than everyone has.
//= deviates bfq-usual-weight
pub(super) fn is_usual(prio: IoPrio) -> bool {
    prio.level == IoPrio::default().level && prio.class != Class::Idle
}
