//! Weight raising: a queue whose user waits gets the disk before the others, for a while.
//!
//! A program that starts reads a little, computes, reads again, and its user waits for the sum. A player
//! reads a little every so often, and drops a frame when that is late. Beside ten tasks that copy files, a
//! fair share is too little for either. So the weights of their queues are raised by a factor, for as long as
//! they look like one of the two:
//!
//! | | looks like it when its queue becomes busy | factor | for |
//! |---|---|---:|---|
//! | interactive | nothing sent for 2 s, or new | 30 | as long as a large program takes to start here |
//! | soft real-time | not before its last batch, spread out at 7000 sectors/s, would be over | 3000 | 300 ms, again each time |
//!
//! **Interactive.** A large program takes 7 s to start on a disk of 14000 (in 2^-16 sectors per microsecond,
//! 104 MiB/s). At the first guess of the rate, two thirds of that, it may be raised for 14000 * 7 s / 9333 =
//! 10.5 s; on flash, at two thirds of its 33000, for 33000 * 2.5 s / 22000 = 3.75 s. The period is at least 3
//! s and at most 25 s. A queue that has read 120000 sectors (59 MiB) meanwhile copies something, and is
//! raised no longer. From the end of the period on it may be soft real-time.
//!
//! **Soft real-time.** Let a queue become busy at 0, send 700 sectors and be empty. At 7000 sectors/s these
//! last 100 ms: if its next request comes after that, the task paces itself, and is raised. The next request
//! of a greedy task comes at once, and so not later than `slice_idle` and four ticks after the last
//! completion, which is the other lower bound. The instant never moves back: a task that has been greedy has
//! to make up for it. The 300 ms are those in which the queue is served: time spent waiting for the disk is
//! added. An interactive period that a soft real-time one interrupts continues afterwards.
//!
//! **Async.** A busy async queue to which no request has come for 500 ms is raised as interactive: it is that
//! of a daemon that seldom writes.
//!
//! Not raised are queues of a [large burst](super::burst), queues that several tasks share (unless they were
//! merged for good), and those with another weight than 40: a user who set that wants to decide alone. For 2
//! s after a split nothing changes.
//!
//! What it does not do: protect a raised queue's requests once the device has them ([`idle`](super::idle) and
//! [`protect`](super::protect) do); put a weight in force. It answers with a [`Change`] of the factor, which
//! the hierarchy applies at the queue's next insertion, or right after a dispatch if the queue is in service.
//!
//! A queue's [`Raising`] is looked at with each request, so it is kept with the queue. Its fields are this
//! file's alone.
//
//= linux-6.12 block/bfq-iosched.c bfq_update_bfqq_wr_on_rq_arrival, bfq_update_wr_data
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_softrt_next_start
//= docs/reference/bfq.md#38-interactive-queues, docs/reference/bfq.md#39-soft-real-time

use crate::sched::bfq::view::{View, since};
use crate::trace::Reason;
use crate::units::{Duration, Instant};

/// A disk on which the start of a large program was timed.
struct Reference {
    /// Its peak rate, in 2^-16 sectors per microsecond.
    rate: u64,
    start_up: Duration,
}

//= linux-6.12 block/bfq-iosched.c ref_rate, ref_wr_duration, docs/reference/bfq.md#38-interactive-queues
const DISK: Reference = Reference { rate: 14000, start_up: Duration::from_ms(7000) };
const FLASH: Reference = Reference { rate: 33000, start_up: Duration::from_ms(2500) };

/// The shortest period of interactive raising that is not set by the user.
//= linux-6.12 block/bfq-iosched.c bfq_wr_duration, docs/reference/bfq.md#38-interactive-queues
const SHORTEST: Duration = Duration::from_ms(3000);
/// The longest period of interactive raising that is not set by the user.
const LONGEST: Duration = Duration::from_ms(25000);

/// By how much more a soft real-time queue is raised than an interactive one.
//= linux-6.12 block/bfq-iosched.h BFQ_SOFTRT_WEIGHT_FACTOR, docs/reference/bfq.md#39-soft-real-time
const SOFT_RT_TIMES: u32 = 100;

/// For this long after a split a queue's raising stays as it is.
//= linux-6.12 block/bfq-iosched.c bfq_bfqq_handle_idle_busy_switch
//= docs/reference/bfq.md#73-from-idle-to-busy
const QUIET_AFTER_SPLIT: Duration = Duration::from_ms(2000);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether queues are raised at all.
    pub(crate) on: bool,
    /// Whether interactive queues are.
    pub(crate) interactive: bool,
    /// Whether soft real-time queues are.
    pub(crate) soft: bool,
    /// By how much an interactive queue is raised.
    pub(crate) factor: u32,
    /// For how long an interactive queue is raised; zero: for as long as a large program takes to start.
    pub(crate) len: Duration,
    /// For how long a soft real-time queue is raised each time.
    pub(crate) soft_len: Duration,
    /// An interactive queue that was served more sectors than this is raised no longer.
    pub(crate) service_max: u64,
    /// A queue that was idle for longer than this is interactive.
    pub(crate) idle_min: Duration,
    /// A busy async queue to which no request came for longer than this is interactive.
    pub(crate) async_quiet: Duration,
    /// The most sectors per second that a soft real-time task asks for; zero: no task is taken for one.
    pub(crate) soft_rate: u32,
    /// How long after its last completion the next request of a greedy task may come.
    pub(crate) greedy_within: Duration,
    /// The step of coarse clocks, and at least a nanosecond.
    pub(crate) tick: Duration,
    /// Whether the device has a head.
    pub(crate) rotational: bool,
    /// As in the kernel, a period of raising that begins while another lasts counts the service of both, that
    /// of an async queue counts all service before, and the pace of a queue that others' turns have emptied
    /// is not looked at.
    pub(crate) as_kernel: bool,
}

/// How one queue is raised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raising {
    /// By how much the weight is multiplied. 1: not raised; 30: interactive; 3000: soft real-time.
    factor: u32,
    /// When the period began; when a request last came, if the queue is not raised.
    start: Instant,
    /// How long the period lasts; zero if the queue is not raised.
    len: Duration,
    /// When the interactive period began that soft real-time raising interrupted.
    interrupted: Option<Instant>,
    /// Sectors served while raised.
    service: u64,
    /// A queue that becomes busy after this may be soft real-time.
    soft_from: Instant,
    /// Whether `soft_from` is to be found out when the last request completes.
    soft_pending: bool,
}

impl Raising {
    /// Of a queue that is created now: not raised.
    pub(crate) const fn new(created: Instant) -> Self {
        Self {
            factor: 1,
            start: created,
            len: Duration::ZERO,
            interrupted: None,
            service: 0,
            soft_from: created,
            soft_pending: false,
        }
    }

    /// By how much the weight is multiplied; 1: not raised.
    #[inline]
    pub(crate) const fn factor(&self) -> u32 {
        self.factor
    }

    #[inline]
    pub(crate) const fn is_raised(&self) -> bool {
        self.factor > 1
    }

    /// When the period began, and how long it lasts.
    pub(crate) const fn period(&self) -> (Instant, Duration) {
        (self.start, self.len)
    }

    /// Whether the last completion is to show when the queue may be soft real-time.
    #[inline]
    pub(crate) const fn awaits_completion(&self) -> bool {
        self.soft_pending
    }

    /// The queue is served, or charged for, this many sectors.
    #[inline(always)]
    pub(crate) fn served(&mut self, sectors: u32) {
        if self.factor > 1 {
            self.service += u64::from(sectors);
        }
    }

    /// Queues are not raised any more, and neither is one that was remembered.
    pub(crate) const fn forget(&mut self) {
        self.factor = 1;
    }

    /// For comparisons: the period is another.
    pub(crate) const fn adopt(&mut self, start: Instant, len: Duration) {
        (self.start, self.len) = (start, len);
    }

    /// Gives the queue another factor.
    pub(crate) const fn change(&mut self, factor: u32, why: Reason) -> Option<Change> {
        let before = self.factor;
        self.factor = factor;
        if before == factor { None } else { Some(Change { before, factor, why, at_most: self.len }) }
    }
}

/// A queue's weight is to be raised by another factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Change {
    pub(crate) before: u32,
    pub(crate) factor: u32,
    /// What the trace says of it.
    pub(crate) why: Reason,
    /// For how long at most.
    pub(crate) at_most: Duration,
}

/// What is known of the device's speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    /// Its peak rate, in 2^-16 sectors per microsecond.
    pub(crate) peak: u64,
    /// Whether it passes over requests that are far away.
    pub(crate) greedy: bool,
}

/// A queue that becomes busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waking {
    /// Whether it is in a large burst.
    pub(crate) burst: bool,
    /// Whether it has requests at the device.
    pub(crate) in_flight: bool,
    /// Whether it has the weight that every queue has.
    pub(crate) usual: bool,
    /// When its last request completed; `None` if none did.
    pub(crate) drained_at: Option<Instant>,
    /// Whether none of its last requests was near the one before.
    pub(crate) all_far: bool,
    /// Whether it is sync, and one task's or merged for good.
    pub(crate) known: bool,
}

/// What a queue looks like when it becomes busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wakeup {
    /// It was idle for long.
    pub(crate) interactive: bool,
    /// It paces itself.
    pub(crate) soft: bool,
    /// It is in a large burst.
    pub(crate) burst: bool,
    /// It is to be raised for one of the first two.
    pub(crate) deserves: bool,
}

/// What follows when a queue becomes busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Woken {
    pub(crate) change: Option<Change>,
    /// A period of raising begins, for which service is counted anew.
    pub(crate) anew: bool,
    /// The queue was not raised before.
    pub(crate) first: bool,
}

/// What a queue has done since it became busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) began: Instant,
    pub(crate) sectors: u64,
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raise {
    pub(crate) setting: Setting,
}

/// Factors and periods.
impl Raise {
    /// By how much soft real-time queues are raised.
    #[inline]
    const fn soft_factor(&self) -> u32 {
        self.setting.factor * SOFT_RT_TIMES
    }

    /// Whether a queue is raised as interactive.
    #[inline]
    pub(crate) const fn is_interactive(&self, raising: &Raising) -> bool {
        raising.factor > 1 && raising.factor == self.setting.factor
    }

    /// Whether a queue is raised as soft real-time.
    #[inline]
    pub(crate) const fn is_soft(&self, raising: &Raising) -> bool {
        raising.factor > 1 && raising.factor == self.soft_factor()
    }

    /// For how long an interactive queue is raised.
    pub(crate) fn len(&self, speed: Speed) -> Duration {
        if !self.setting.len.is_zero() {
            return self.setting.len;
        }
        let disk = if self.setting.rotational { DISK } else { FLASH };
        let tick = self.setting.tick.as_ns();
        // How fast a greedy disk reads in sequence says little about how soon a program's reads get through.
        //= deviates bfq-protection
        let peak = if speed.greedy { speed.peak.min(disk.rate * 2 / 3) } else { speed.peak };
        let ticks = disk.rate * (disk.start_up.as_ns() / tick) / peak.max(1);
        Duration::from_ns(ticks * tick).clamp(SHORTEST, LONGEST)
    }

    /// For how long a queue with this factor is raised.
    pub(crate) fn len_of(&self, factor: u32, speed: Speed) -> Duration {
        match factor {
            1 => Duration::ZERO,
            factor if factor == self.soft_factor() => self.setting.soft_len,
            _ => self.len(speed),
        }
    }

    /// What a queue with this factor is raised as.
    const fn raised_as(&self, factor: u32) -> Reason {
        if factor == 1 {
            Reason::RaiseEnd
        } else if factor == self.soft_factor() {
            Reason::RaisedSoftRealTime
        } else {
            Reason::RaisedInteractive
        }
    }

    fn begin_interactive(&self, raising: &mut Raising, speed: Speed, why: Reason) -> Option<Change> {
        raising.len = self.len(speed);
        raising.change(self.setting.factor, why)
    }

    fn begin_soft(&self, raising: &mut Raising) -> Option<Change> {
        raising.len = self.setting.soft_len;
        raising.change(self.soft_factor(), Reason::RaisedSoftRealTime)
    }

    /// Ends raising, whatever its kind.
    pub(crate) fn end(&self, view: &View, raising: &mut Raising) -> Option<Change> {
        let now = view.tick();
        raising.start = now;
        raising.len = Duration::ZERO;
        if !self.is_soft(raising) {
            raising.soft_from = now;
        }
        raising.change(1, Reason::RaiseEnd)
    }

    /// A period of raising is over: the interactive one that it interrupted may continue.
    fn end_period(&self, view: &View, raising: &mut Raising, speed: Speed) -> Option<Change> {
        let interrupted = raising.interrupted.filter(|_| self.is_soft(raising));
        match self.unfinished(view, interrupted, speed) {
            Some(start) => self.continue_interactive(raising, start, speed),
            None => self.end(view, raising),
        }
    }

    /// `start`, if an interactive period that began then is not yet over.
    fn unfinished(&self, view: &View, start: Option<Instant>, speed: Speed) -> Option<Instant> {
        start.filter(|&start| view.tick() <= start + self.len(speed))
    }

    /// Continues the interactive period that began at `start`.
    fn continue_interactive(&self, raising: &mut Raising, start: Instant, speed: Speed) -> Option<Change> {
        raising.start = start;
        self.begin_interactive(raising, speed, Reason::RaisedInteractive)
    }
}

/// A queue becomes busy, or is busy and gets a request.
impl Raise {
    /// What a queue looks like that becomes busy: to be asked before anything is done about it.
    pub(crate) fn look(&self, view: &View, raising: &Raising, waking: Waking) -> Wakeup {
        let (setting, now) = (&self.setting, view.tick());
        let eligible = !waking.burst && !waking.in_flight && waking.usual;
        let interactive = setting.interactive && eligible && since(now, waking.drained_at) > setting.idle_min;
        let soft =
            setting.soft && setting.soft_rate > 0 && eligible && now > raising.soft_from && !waking.all_far;
        let deserves = waking.known && (interactive || soft);
        Wakeup { interactive, soft, burst: waking.burst, deserves }
    }

    /// Starts, changes or ends raising when a queue becomes busy that looked like `wakeup`. `split`: when it
    /// was split off another one.
    pub(crate) fn woke(
        &self,
        view: &View,
        raising: &mut Raising,
        wakeup: Wakeup,
        split: Option<Instant>,
        speed: Speed,
    ) -> Woken {
        raising.soft_pending = false;
        let now = view.tick();
        if !self.setting.on || since(now, split) <= QUIET_AFTER_SPLIT {
            return Woken { change: None, anew: false, first: false };
        }
        if raising.factor == 1 {
            let first = wakeup.deserves;
            let change = if first { self.begin(raising, wakeup.interactive, speed) } else { None };
            return Woken { change, anew: first, first };
        }
        //= deviates bfq-raised-again
        let anew = wakeup.interactive && !self.setting.as_kernel;
        let change = if wakeup.interactive {
            if anew {
                raising.service = 0;
            }
            self.begin_interactive(raising, speed, Reason::RaisedInteractive)
        } else if wakeup.burst {
            raising.len = Duration::ZERO;
            raising.change(1, Reason::RaiseEnd)
        } else if wakeup.soft {
            self.prolong_soft(now, raising)
        } else {
            None
        };
        Woken { change, anew, first: false }
    }

    /// A queue that was not raised is, from now on.
    fn begin(&self, raising: &mut Raising, interactive: bool, speed: Speed) -> Option<Change> {
        if interactive {
            raising.service = 0;
            self.begin_interactive(raising, speed, Reason::RaisedInteractive)
        } else {
            raising.interrupted = None;
            self.begin_soft(raising)
        }
    }

    /// A raised queue is soft real-time: from now on, or for another period.
    fn prolong_soft(&self, now: Instant, raising: &mut Raising) -> Option<Change> {
        let change = if self.is_soft(raising) {
            None
        } else {
            raising.interrupted = Some(raising.start);
            self.begin_soft(raising)
        };
        raising.start = now;
        change
    }

    /// An async request came to a busy queue.
    pub(crate) fn arrived_async(&self, view: &View, raising: &mut Raising, speed: Speed) -> Option<Change> {
        let quiet = since(view.tick(), Some(raising.start));
        let wanted = self.setting.on && self.setting.interactive && raising.factor == 1;
        if !wanted || quiet <= self.setting.async_quiet {
            return None;
        }
        //= deviates bfq-async-service
        if !self.setting.as_kernel {
            raising.service = 0;
        }
        self.begin_interactive(raising, speed, Reason::RaisedAsync)
    }

    /// A request came to a queue, whose factor was `before` until then; `interactive` says whether the queue
    /// became busy with it, and was idle for long. If it is not raised, or now for the first time, its period
    /// begins.
    #[inline(always)]
    pub(crate) fn arrived(&self, view: &View, raising: &mut Raising, before: u32, interactive: bool) {
        if self.setting.on && (before == 1 || raising.factor == 1 || interactive) {
            raising.start = view.tick();
        }
    }

    /// None of the last requests of a queue was near the one before: no player reads so.
    pub(crate) fn turned_far(&self, view: &View, raising: &mut Raising, speed: Speed) -> Option<Change> {
        if self.is_soft(raising) { self.end_period(view, raising, speed) } else { None }
    }
}

/// A queue is served.
impl Raise {
    /// A queue gets the disk, for which it has waited since `waits_since` if that is in the past: this time
    /// does not count for a soft real-time queue.
    //= docs/reference/bfq.md#39-soft-real-time
    pub(crate) fn selected(&self, view: &View, raising: &mut Raising, waits_since: Instant) {
        let (now, start) = (view.tick(), raising.start);
        if self.is_soft(raising) && start < now && waits_since < now {
            raising.start = if waits_since > start { start + now.since(waits_since) } else { now };
        }
    }

    /// Whether the queue in service, which sent a request, may have been raised for long enough; `burst`
    /// answers whether it is in a large burst. Then [`Self::review`] is due.
    #[inline(always)]
    pub(crate) fn may_be_over(&self, view: &View, raising: &Raising, burst: impl FnOnce() -> bool) -> bool {
        raising.factor > 1
            && (raising.service > self.setting.service_max
                || burst()
                || view.tick() > raising.start + raising.len)
    }

    /// Ends raising that is over: a period at a time, so it is to be asked until nothing changes.
    pub(crate) fn review(
        &self,
        view: &View,
        raising: &mut Raising,
        burst: bool,
        speed: Speed,
    ) -> Option<Change> {
        if raising.factor == 1 {
            return None;
        }
        if burst {
            return self.end(view, raising);
        }
        if view.tick() > raising.start + raising.len {
            return self.end_period(view, raising, speed);
        }
        let much = raising.service > self.setting.service_max;
        if much && self.is_interactive(raising) { self.end(view, raising) } else { None }
    }

    /// The slot of a queue ends. If that left it `empty`, how it paces itself shows now, or with its last
    /// completion if it has requests at the device.
    pub(crate) fn expired(
        &self,
        view: &View,
        raising: &mut Raising,
        empty: bool,
        in_flight: bool,
        batch: Batch,
    ) {
        if !self.setting.on {
            return;
        }
        if raising.factor == 1 {
            raising.start = view.tick();
        }
        if !self.setting.soft || self.setting.soft_rate == 0 || !empty {
            return;
        }
        if in_flight {
            raising.soft_pending = true;
        } else {
            self.plan_soft(view, raising, batch);
        }
    }

    /// Others' turns have emptied a queue. No expiry looks at its pace, so its last completion does.
    //= deviates bfq-soft-injected
    #[inline]
    pub(crate) const fn emptied(&self, raising: &mut Raising) {
        if self.setting.on && self.setting.soft && !self.setting.as_kernel {
            raising.soft_pending = true;
        }
    }

    /// The last request of an empty queue that [awaits](Raising::awaits_completion) it completed.
    pub(crate) fn completed(&self, view: &View, raising: &mut Raising, batch: Batch) {
        if raising.factor != self.setting.factor {
            self.plan_soft(view, raising, batch);
        }
    }

    /// When the next batch of a queue that has drained may come, for the queue to be soft real-time.
    fn plan_soft(&self, view: &View, raising: &mut Raising, batch: Batch) {
        let (rate, tick) = (u64::from(self.setting.soft_rate), self.setting.tick);
        if rate == 0 || !self.setting.soft {
            return;
        }
        let greedy = view.tick() + self.setting.greedy_within;
        let ticks = batch.sectors.saturating_mul(1_000_000_000 / tick.as_ns()) / rate;
        raising.soft_from = raising.soft_from.max(batch.began + tick * ticks).max(greedy);
    }
}

/// What other rules find out.
impl Raise {
    /// A greedy disk passes over a request of the queue: if that is interactive, it is raised for as long as
    /// the start of a program takes on such a disk.
    pub(crate) fn protected(&self, raising: &mut Raising, speed: Speed) {
        if self.is_interactive(raising) {
            raising.len = raising.len.max(self.len(speed));
        }
    }

    /// The queue reads a stream. If it is raised as interactive, that ends, and the answer has the period
    /// that may [resume](Self::resume): when it began, and for how long.
    pub(crate) fn suspend(&self, view: &View, raising: &mut Raising) -> Option<(Change, Instant, Duration)> {
        let (start, len) = raising.period();
        if !self.is_interactive(raising) {
            return None;
        }
        self.end(view, raising).map(|change| (change, start, len))
    }

    /// The stream is over: the interactive period that began at `start` resumes, if it is not over too.
    pub(crate) fn resume(
        &self,
        view: &View,
        raising: &mut Raising,
        start: Instant,
        len: Duration,
    ) -> Option<Change> {
        if raising.factor != 1 || view.tick() > start + len {
            return None;
        }
        (raising.start, raising.len) = (start, len);
        raising.change(self.setting.factor, Reason::RaisedInteractive)
    }

    /// For how long a queue would be raised that was `created` then, and was not because it was in a large
    /// burst; `None` if that is over.
    pub(crate) fn missed(
        &self,
        view: &View,
        raising: &Raising,
        created: Instant,
        speed: Speed,
    ) -> Option<Duration> {
        let len = self.len(speed);
        let wanted = self.setting.interactive && raising.factor == 1;
        (wanted && since(view.tick(), Some(created)) <= len).then_some(len)
    }
}

/// Tasks that share a queue.
impl Raise {
    /// The tasks of a queue go over to another: if only the queue that they leave is raised, the other is
    /// from now on. Answers the change of the other queue, then that of the one that they leave.
    pub(crate) fn merged(&self, left: &mut Raising, joined: &mut Raising) -> [Option<Change>; 2] {
        if left.factor == 1 {
            return [None, None];
        }
        let taken = if joined.factor == 1 {
            (joined.len, joined.start, joined.interrupted) = (left.len, left.start, left.interrupted);
            joined.change(left.factor, self.raised_as(left.factor))
        } else {
            None
        };
        left.len = Duration::ZERO;
        [taken, left.change(1, Reason::RaiseEnd)]
    }

    /// What is remembered of a queue while its task shares another; a `new` one would have been raised but
    /// for the merge.
    pub(crate) fn remembered(&self, view: &View, raising: &Raising, new: bool, speed: Speed) -> Raising {
        if !new || !self.setting.on || !self.setting.interactive {
            return *raising;
        }
        let (factor, len) = (self.setting.factor, self.len(speed));
        Raising { factor, len, start: view.tick(), interrupted: None, ..*raising }
    }

    /// The queue is of a task that had another before, which was raised as `was` says; `burst` says whether
    /// the queue is in a large burst.
    pub(crate) fn split(
        &self,
        view: &View,
        raising: &mut Raising,
        was: &Raising,
        burst: bool,
        speed: Speed,
    ) -> Option<Change> {
        *raising = Raising {
            factor: raising.factor,
            soft_from: raising.soft_from,
            soft_pending: raising.soft_pending,
            ..*was
        };
        if was.factor == 1 || !burst && view.tick() <= was.start + was.len {
            return raising.change(was.factor, self.raised_as(was.factor));
        }
        let interrupted = was.interrupted.filter(|_| self.is_soft(was) && !burst);
        if let Some(start) = self.unfinished(view, interrupted, speed) {
            return self.continue_interactive(raising, start, speed);
        }
        raising.len = Duration::ZERO;
        raising.change(1, Reason::RaiseEnd)
    }
}

impl Raise {
    /// What must hold between events.
    pub(crate) fn check(&self, raising: &Raising) {
        let factor = raising.factor;
        assert!([1, self.setting.factor, self.soft_factor()].contains(&factor), "raised by {factor}");
        assert!(self.setting.on || factor == 1, "S9: raised, without low_latency");
    }
}

/// What tests of the engine set and look at.
#[cfg(test)]
impl Raising {
    pub(crate) const fn has_factor(&mut self, factor: u32) {
        self.factor = factor;
    }

    pub(crate) const fn has_service(&mut self, sectors: u64) {
        self.service = sectors;
    }

    pub(crate) const fn has_interrupted(&mut self, start: Option<Instant>) {
        self.interrupted = start;
    }

    pub(crate) const fn is_soft_from(&mut self, soft_from: Instant) {
        self.soft_from = soft_from;
    }

    pub(crate) const fn service(&self) -> u64 {
        self.service
    }

    pub(crate) const fn interrupted(&self) -> Option<Instant> {
        self.interrupted
    }

    pub(crate) const fn soft_from(&self) -> Instant {
        self.soft_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_ms(1);
    const NS: Duration = Duration::from_ns(1);
    const NONE: Duration = Duration::ZERO;

    /// A disk of the first guess of the rate: interactive raising lasts for 10.5 s.
    const SPEED: Speed = Speed { peak: 9333, greedy: false };

    fn rule() -> Raise {
        Raise {
            setting: Setting {
                on: true,
                interactive: true,
                soft: true,
                factor: 30,
                len: NONE,
                soft_len: MS * 300,
                service_max: 120_000,
                idle_min: MS * 2000,
                async_quiet: MS * 500,
                soft_rate: 7000,
                greedy_within: MS * 24,
                tick: NS,
                rotational: true,
                as_kernel: false,
            },
        }
    }

    fn with(change: impl FnOnce(&mut Setting)) -> Raise {
        let mut rule = rule();
        change(&mut rule.setting);
        rule
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + MS * ms
    }

    fn view(ms: u64) -> View {
        View::at(at(ms))
    }

    /// A queue that was created at 0, and is not raised.
    fn plain() -> Raising {
        Raising::new(at(0))
    }

    /// A queue that is raised as interactive since `start`, for 10 s.
    fn interactive(start: u64) -> Raising {
        Raising { factor: 30, start: at(start), len: MS * 10_000, ..plain() }
    }

    /// A queue that is raised as soft real-time since `start`.
    fn soft(start: u64) -> Raising {
        Raising { factor: 3000, start: at(start), len: MS * 300, ..plain() }
    }

    fn change(before: u32, factor: u32, why: Reason, at_most: Duration) -> Option<Change> {
        Some(Change { before, factor, why, at_most })
    }

    /// The end of raising by `before`.
    fn ended(before: u32) -> Option<Change> {
        change(before, 1, Reason::RaiseEnd, NONE)
    }

    fn len() -> Duration {
        rule().len(SPEED)
    }

    /// A sync queue of one task, of which nothing else is known.
    const WAKING: Waking =
        Waking { burst: false, in_flight: false, usual: true, drained_at: None, all_far: false, known: true };

    #[test]
    //= docs/reference/bfq.md#38-interactive-queues type=test
    fn interactive_raising_lasts_as_long_as_a_large_program_takes_to_start() {
        let len = |rotational, peak, greedy| with(|s| s.rotational = rotational).len(Speed { peak, greedy });
        assert_eq!(len(true, 9333, false), Duration::from_ns(14000 * 7_000_000_000 / 9333));
        assert_eq!(len(true, 14_000, false), MS * 7000);
        assert_eq!(len(false, 22_000, false), MS * 3750);
        assert_eq!((len(false, 60_000, false), len(true, 100, false)), (MS * 3000, MS * 25_000), "bounds");
        assert_eq!(len(true, 0, false), MS * 25_000, "an unknown rate");
        assert_eq!(len(true, 14_000, true), len(true, 9333, false), "greedy: as if the rate were not known");
        assert_eq!(len(true, 9000, true), len(true, 9000, false), "it may be slower");
        assert_eq!(with(|s| s.len = MS * 700).len(SPEED), MS * 700, "as set");
        let ticks = |rotational, peak| {
            let rule = with(|s| (s.tick, s.rotational) = (MS * 4, rotational));
            rule.len(Speed { peak, greedy: false })
        };
        assert_eq!((ticks(true, 9333), ticks(false, 22_000)), (MS * 10_500, MS * 3748), "in whole ticks");
    }

    #[test]
    fn a_factor_says_what_a_queue_is_raised_as() {
        let rule = rule();
        let kinds =
            |raising: Raising| (raising.is_raised(), rule.is_interactive(&raising), rule.is_soft(&raising));
        assert_eq!(kinds(plain()), (false, false, false));
        assert_eq!(kinds(interactive(0)), (true, true, false));
        assert_eq!(kinds(soft(0)), (true, false, true));
        assert_eq!([1, 30, 3000].map(|factor| rule.len_of(factor, SPEED)), [NONE, len(), MS * 300]);
        let twice = Raising { factor: 2, ..plain() };
        assert!(twice.is_raised() && with(|s| s.factor = 2).is_interactive(&twice));
        // With a factor of 1 no queue is raised as interactive.
        let rule = with(|s| s.factor = 1);
        assert!(!rule.is_interactive(&plain()) && !rule.is_soft(&plain()));
    }

    #[test]
    fn a_change_says_what_was_and_for_how_long_what_is_lasts() {
        let mut raising = interactive(0);
        let end = raising.change(1, Reason::RaiseEnd);
        assert_eq!(end, change(30, 1, Reason::RaiseEnd, MS * 10_000));
        assert_eq!(raising.change(1, Reason::RaiseEnd), None, "nothing changes");
        assert_eq!(raising.factor(), 1);
    }

    #[test]
    fn only_what_a_raised_queue_is_served_counts() {
        let (mut raised, mut not) = (interactive(0), plain());
        raised.served(8);
        raised.served(16);
        not.served(8);
        assert_eq!((raised.service, not.service), (24, 0));
    }

    #[test]
    fn a_queue_that_was_idle_for_more_than_two_seconds_is_interactive() {
        let drained = |ms| Waking { drained_at: Some(at(ms)), ..WAKING };
        let looks = |rule: &Raise, waking| {
            let wakeup = rule.look(&view(5000), &Raising { soft_from: at(9000), ..plain() }, waking);
            assert_eq!(wakeup.deserves, waking.known && wakeup.interactive, "{waking:?}");
            wakeup.interactive
        };
        let rule = rule();
        assert!(looks(&rule, WAKING) && looks(&rule, drained(2999)) && !looks(&rule, drained(3000)));
        for waking in [
            Waking { burst: true, ..WAKING },
            Waking { in_flight: true, ..WAKING },
            Waking { usual: false, ..WAKING },
        ] {
            assert!(!looks(&rule, waking), "{waking:?}");
            assert_eq!(rule.look(&view(5000), &plain(), waking).burst, waking.burst);
        }
        assert!(looks(&rule, Waking { known: false, all_far: true, ..WAKING }), "but it is not raised");
        assert!(!looks(&with(|s| s.interactive = false), WAKING));
    }

    #[test]
    fn a_queue_that_becomes_busy_late_enough_is_soft_real_time() {
        let busy = Waking { drained_at: Some(at(99)), ..WAKING };
        let looks = |rule: &Raise, ms, waking: Waking| {
            let wakeup = rule.look(&view(ms), &Raising { soft_from: at(100), ..plain() }, waking);
            assert_eq!(wakeup.deserves, waking.known && wakeup.soft, "{ms} {waking:?}");
            wakeup.soft
        };
        let rule = rule();
        assert!(!looks(&rule, 100, busy) && looks(&rule, 101, busy));
        for waking in [
            Waking { burst: true, ..busy },
            Waking { in_flight: true, ..busy },
            Waking { usual: false, ..busy },
            Waking { all_far: true, ..busy },
        ] {
            assert!(!looks(&rule, 101, waking), "{waking:?}");
        }
        assert!(looks(&rule, 101, Waking { known: false, ..busy }));
        assert!(!looks(&with(|s| s.soft = false), 101, busy));
        assert!(!looks(&with(|s| s.soft_rate = 0), 101, busy));
        assert!(looks(&with(|s| s.soft_rate = 1), 101, busy));
    }

    /// Looks of queues that become busy.
    const NO: Wakeup = Wakeup { interactive: false, soft: false, burst: false, deserves: false };
    const INTERACTIVE: Wakeup = Wakeup { interactive: true, deserves: true, ..NO };
    const SOFT: Wakeup = Wakeup { soft: true, deserves: true, ..NO };
    const BURST: Wakeup = Wakeup { burst: true, ..NO };

    /// At 1000 ms, without a split.
    fn wakes(rule: &Raise, raising: &mut Raising, wakeup: Wakeup) -> Woken {
        rule.woke(&view(1000), raising, wakeup, None, SPEED)
    }

    #[test]
    fn a_queue_that_is_not_raised_is_if_it_deserves_it() {
        let before = Raising { service: 7, interrupted: Some(at(3)), soft_pending: true, ..plain() };
        let mut raising = before;
        let woken = wakes(&rule(), &mut raising, Wakeup { interactive: true, ..NO });
        assert_eq!(woken, Woken { change: None, anew: false, first: false });
        assert_eq!((raising.soft_pending, raising.service), (false, 7), "the pace of the last batch is over");

        let mut raising = before;
        let woken = wakes(&rule(), &mut raising, INTERACTIVE);
        let begin = change(1, 30, Reason::RaisedInteractive, len());
        assert_eq!(woken, Woken { change: begin, anew: true, first: true });
        assert_eq!((raising.service, raising.len, raising.factor), (0, len(), 30));

        let mut raising = before;
        let woken = wakes(&rule(), &mut raising, SOFT);
        let begin = change(1, 3000, Reason::RaisedSoftRealTime, MS * 300);
        assert_eq!(woken, Woken { change: begin, anew: true, first: true });
        assert_eq!((raising.service, raising.interrupted), (7, None));
    }

    #[test]
    fn a_raised_queue_that_was_idle_for_long_begins_another_period() {
        let before = Raising { service: 7, len: MS, ..interactive(0) };
        let mut raising = before;
        let woken = wakes(&rule(), &mut raising, INTERACTIVE);
        assert_eq!(woken, Woken { change: None, anew: true, first: false });
        assert_eq!((raising.service, raising.len), (0, len()));
        let mut raising = before;
        let woken = wakes(&with(|s| s.as_kernel = true), &mut raising, INTERACTIVE);
        assert_eq!(woken, Woken { change: None, anew: false, first: false });
        assert_eq!((raising.service, raising.len), (7, len()), "as in the kernel");
        let again = change(3000, 30, Reason::RaisedInteractive, len());
        assert_eq!(wakes(&rule(), &mut soft(0), INTERACTIVE).change, again);
    }

    #[test]
    fn a_raised_queue_of_a_large_burst_is_raised_no_longer() {
        let mut raising = interactive(0);
        let woken = wakes(&rule(), &mut raising, Wakeup { soft: true, ..BURST });
        assert_eq!(woken, Woken { change: ended(30), anew: false, first: false });
        assert_eq!((raising.factor, raising.period()), (1, (at(0), NONE)));
        assert_eq!(wakes(&rule(), &mut plain(), BURST).change, None);
    }

    #[test]
    fn soft_real_time_interrupts_an_interactive_period_and_is_prolonged() {
        let mut raising = interactive(500);
        let woken = wakes(&rule(), &mut raising, SOFT);
        let begin = change(30, 3000, Reason::RaisedSoftRealTime, MS * 300);
        assert_eq!(woken, Woken { change: begin, anew: false, first: false });
        assert_eq!((raising.interrupted, raising.start), (Some(at(500)), at(1000)));
        let woken = rule().woke(&view(1200), &mut raising, SOFT, None, SPEED);
        assert_eq!(woken.change, None);
        assert_eq!((raising.interrupted, raising.start), (Some(at(500)), at(1200)), "again 300 ms");
        let woken = rule().woke(&view(1300), &mut raising, NO, None, SPEED);
        assert_eq!((woken.change, raising.start), (None, at(1200)), "neither of the two");
    }

    #[test]
    fn nothing_changes_for_two_seconds_after_a_split_or_while_the_rule_is_off() {
        let split = |ms| {
            let woken = rule().woke(&view(ms), &mut plain(), INTERACTIVE, Some(at(100)), SPEED);
            woken.change.is_some()
        };
        assert!(!split(2100) && split(2101));
        let mut raising = Raising { soft_pending: true, ..plain() };
        assert_eq!(wakes(&with(|s| s.on = false), &mut raising, INTERACTIVE).change, None);
        assert!(!raising.soft_pending);
    }

    #[test]
    fn an_async_queue_without_requests_for_more_than_500_ms_is_interactive() {
        let before = Raising { start: at(1000), service: 7, ..plain() };
        let came = |rule: &Raise, ms, raising: &mut Raising| rule.arrived_async(&view(ms), raising, SPEED);
        assert_eq!(came(&rule(), 1500, &mut { before }), None);
        let mut raising = before;
        let begin = change(1, 30, Reason::RaisedAsync, len());
        assert_eq!((came(&rule(), 1501, &mut raising), raising.service), (begin, 0));
        assert_eq!(came(&rule(), 9000, &mut raising), None, "it is raised");
        let mut raising = before;
        let kernel = with(|s| s.as_kernel = true);
        assert_eq!((came(&kernel, 1501, &mut raising), raising.service), (begin, 7));
        for off in [with(|s| s.on = false), with(|s| s.interactive = false)] {
            assert_eq!(came(&off, 9000, &mut { before }), None);
        }
    }

    #[test]
    fn a_period_begins_with_the_request_that_raises_the_queue() {
        let start = |rule: &Raise, factor, before, interactive| {
            let mut raising = Raising { factor, ..plain() };
            rule.arrived(&view(9), &mut raising, before, interactive);
            raising.start == at(9)
        };
        let rule = rule();
        assert!(start(&rule, 30, 1, false), "raised now");
        assert!(start(&rule, 1, 30, false), "raised no longer");
        assert!(start(&rule, 30, 30, true), "another period");
        assert!(!start(&rule, 30, 30, false));
        assert!(!start(&with(|s| s.on = false), 1, 1, true));
    }

    #[test]
    fn the_time_for_which_a_soft_real_time_queue_waits_is_added() {
        let selected = |mut raising: Raising, ms, waits_since| {
            rule().selected(&view(ms), &mut raising, at(waits_since));
            raising.start
        };
        // It waits since the period began or before: the period begins now.
        assert_eq!((selected(soft(100), 150, 40), selected(soft(100), 150, 100)), (at(150), at(150)));
        assert_eq!(selected(soft(100), 200, 170), at(130), "it waited for 30 ms of it");
        assert_eq!(selected(soft(100), 200, 200), at(100), "it does not wait yet");
        assert_eq!(selected(soft(100), 200, 500), at(100));
        assert_eq!(selected(soft(200), 200, 100), at(200));
        assert_eq!(selected(interactive(100), 200, 170), at(100), "not if it is interactive");
    }

    /// Asks until nothing changes; answers the factors.
    fn reviewed(rule: &Raise, ms: u64, raising: &mut Raising, burst: bool) -> (bool, [Option<u32>; 3]) {
        let may = rule.may_be_over(&view(ms), raising, || burst);
        let factors = [(); 3].map(|()| rule.review(&view(ms), raising, burst, SPEED).map(|c| c.factor));
        (may, factors)
    }

    const NOTHING: [Option<u32>; 3] = [None; 3];
    const END: [Option<u32>; 3] = [Some(1), None, None];

    #[test]
    fn interactive_raising_ends_after_its_time_or_service_or_in_a_large_burst() {
        let served = |service| Raising { service, ..interactive(1000) };
        let rule = rule();
        for (ms, service, burst, over) in [
            (11_000, 0, false, false),
            (11_001, 0, false, true),
            (2000, 120_000, false, false),
            (2000, 120_001, false, true),
            (2000, 0, true, true),
        ] {
            let mut raising = served(service);
            let expected = if over { END } else { NOTHING };
            assert_eq!(reviewed(&rule, ms, &mut raising, burst), (over, expected), "{ms} {service} {burst}");
            let (start, soft_from) = if over { (ms, ms) } else { (1000, 0) };
            assert_eq!((raising.start, raising.soft_from), (at(start), at(soft_from)));
            assert_eq!(raising.len, if over { NONE } else { MS * 10_000 });
        }
        let (may, changes) = reviewed(&rule, 99_000, &mut plain(), true);
        assert_eq!((may, changes), (false, NOTHING), "it is not raised");
    }

    #[test]
    fn a_soft_real_time_period_ends_after_its_time_whatever_it_was_served() {
        let mut raising = Raising { service: 999_999, ..soft(1000) };
        assert_eq!(reviewed(&rule(), 1300, &mut raising, false), (true, NOTHING));
        let before = raising.soft_from;
        assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, END));
        assert_eq!(raising.soft_from, before, "a soft real-time queue may be so again");
    }

    #[test]
    fn an_interactive_period_continues_after_the_soft_real_time_one_that_interrupted_it() {
        let interrupted = |service| Raising { interrupted: Some(at(100)), service, ..soft(1000) };
        let mut raising = interrupted(0);
        assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, [Some(30), None, None]));
        assert_eq!(raising.period(), (at(100), len()));
        let mut raising = interrupted(120_001);
        assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, [Some(30), Some(1), None]));
        let mut raising = interrupted(0);
        assert_eq!(reviewed(&rule(), 1301, &mut raising, true), (true, END), "not in a large burst");
        // It lasts for 10.5 s and a bit, until 10,600 ms: then it is over too.
        for (ms, expected) in [(10_600, [Some(30), None, None]), (10_601, END)] {
            assert_eq!(reviewed(&rule(), ms, &mut interrupted(0), false), (true, expected), "at {ms}");
        }
        // An interactive period does not continue an older one.
        let mut raising = Raising { interrupted: Some(at(100)), len: MS, ..interactive(1000) };
        assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, END));
    }

    #[test]
    fn a_soft_real_time_queue_that_seeks_everywhere_is_raised_no_longer() {
        let rule = rule();
        assert_eq!(rule.turned_far(&view(1010), &mut soft(1000), SPEED), ended(3000));
        assert_eq!(rule.turned_far(&view(1010), &mut interactive(1000), SPEED), None);
        let mut raising = Raising { interrupted: Some(at(100)), ..soft(1000) };
        let continued = change(3000, 30, Reason::RaisedInteractive, len());
        assert_eq!(rule.turned_far(&view(1010), &mut raising, SPEED), continued);
    }

    /// 700 sectors from 0 on: at 7000 per second these last until 100 ms.
    const BATCH: Batch = Batch { began: Instant::EPOCH, sectors: 700 };

    #[test]
    //= docs/reference/bfq.md#39-soft-real-time type=test
    fn the_next_batch_of_a_player_comes_when_the_last_would_have_been_played() {
        let expired = |rule: &Raise, ms, soft_from| {
            let mut raising = Raising { soft_from: at(soft_from), ..plain() };
            rule.expired(&view(ms), &mut raising, true, false, BATCH);
            raising.soft_from
        };
        assert_eq!(expired(&rule(), 50, 0), at(100));
        assert_eq!(expired(&rule(), 80, 0), at(104), "24 ms later than a greedy task could come");
        assert_eq!(expired(&rule(), 50, 5000), at(5000), "it never moves back");
        assert_eq!(expired(&with(|s| s.tick = MS * 4), 50, 0), at(100));
        assert_eq!(expired(&with(|s| s.tick = MS * 300), 50, 0), at(74), "in whole ticks: 3 a second");
        for off in [with(|s| s.on = false), with(|s| s.soft = false), with(|s| s.soft_rate = 0)] {
            assert_eq!(expired(&off, 50, 0), at(0));
        }
    }

    #[test]
    fn how_a_queue_paces_itself_shows_when_it_has_nothing_left() {
        let expired = |empty, in_flight| {
            let mut raising = plain();
            rule().expired(&view(50), &mut raising, empty, in_flight, BATCH);
            (raising.soft_from, raising.awaits_completion())
        };
        assert_eq!(expired(true, false), (at(100), false));
        assert_eq!(expired(true, true), (at(0), true), "the last completion will show it");
        assert_eq!([true, false].map(|in_flight| expired(false, in_flight)), [(at(0), false); 2]);
        for (mut raising, expected) in [(plain(), 100), (soft(0), 100), (interactive(0), 0)] {
            rule().completed(&view(50), &mut raising, BATCH);
            assert_eq!(raising.soft_from, at(expected), "{raising:?}");
        }
        for off in [with(|s| s.soft = false), with(|s| s.soft_rate = 0)] {
            let mut raising = plain();
            off.completed(&view(50), &mut raising, BATCH);
            assert_eq!(raising.soft_from, at(0));
        }
        let mut raising = plain();
        with(|s| s.soft_rate = 1).completed(&view(50), &mut raising, BATCH);
        assert_eq!(raising.soft_from, at(700_000), "a sector a second");
    }

    #[test]
    fn the_expiry_of_a_queue_that_is_not_raised_is_when_it_was_last_heard_of() {
        let start = |rule: &Raise, mut raising: Raising| {
            rule.expired(&view(50), &mut raising, false, false, BATCH);
            raising.start
        };
        assert_eq!((start(&rule(), plain()), start(&rule(), interactive(7))), (at(50), at(7)));
        assert_eq!(start(&with(|s| s.on = false), plain()), at(0));
    }

    #[test]
    fn the_last_completion_of_a_queue_that_others_emptied_shows_its_pace() {
        let pending = |rule: &Raise| {
            let mut raising = plain();
            rule.emptied(&mut raising);
            raising.awaits_completion()
        };
        assert!(pending(&rule()));
        for off in [with(|s| s.on = false), with(|s| s.soft = false), with(|s| s.as_kernel = true)] {
            assert!(!pending(&off));
        }
    }

    #[test]
    fn a_greedy_disk_prolongs_interactive_raising() {
        for (mut raising, expected) in [
            (interactive(0), len()),
            (Raising { len: MS * 20_000, ..interactive(0) }, MS * 20_000),
            (soft(0), MS * 300),
            (plain(), NONE),
        ] {
            rule().protected(&mut raising, SPEED);
            assert_eq!(raising.len, expected, "{raising:?}");
        }
    }

    #[test]
    fn a_stream_suspends_interactive_raising_and_its_end_resumes_it() {
        let mut raising = interactive(100);
        let (end, start, len) = rule().suspend(&view(900), &mut raising).expect("it was raised");
        assert_eq!((Some(end), start, len), (ended(30), at(100), MS * 10_000));
        assert_eq!(raising.factor, 1);
        for mut other in [soft(100), plain()] {
            assert_eq!(rule().suspend(&view(900), &mut other), None);
        }
        for (ms, resumes) in [(10_100, true), (10_101, false)] {
            let mut again = raising;
            let answer = rule().resume(&view(ms), &mut again, start, len);
            let expected = change(1, 30, Reason::RaisedInteractive, MS * 10_000).filter(|_| resumes);
            assert_eq!((answer, again.period() == (start, len)), (expected, resumes), "at {ms}");
        }
        assert_eq!(rule().resume(&view(900), &mut soft(100), start, len), None, "it is raised already");
    }

    #[test]
    fn a_queue_whose_burst_is_small_again_has_what_is_left_of_its_period() {
        let missed = |rule: &Raise, ms, raising: &Raising| rule.missed(&view(ms), raising, at(100), SPEED);
        // 10.5 s and a bit.
        assert_eq!(
            (missed(&rule(), 10_600, &plain()), missed(&rule(), 10_601, &plain())),
            (Some(len()), None)
        );
        assert_eq!(missed(&rule(), 900, &interactive(100)), None);
        assert_eq!(missed(&with(|s| s.interactive = false), 900, &plain()), None);
    }

    #[test]
    fn a_merge_hands_raising_over_to_a_queue_that_is_not_raised() {
        let before = Raising { interrupted: Some(at(3)), ..soft(100) };
        let (mut left, mut joined) = (before, plain());
        let changes = rule().merged(&mut left, &mut joined);
        assert_eq!(changes, [change(1, 3000, Reason::RaisedSoftRealTime, MS * 300), ended(3000)]);
        assert_eq!((joined.period(), joined.interrupted), ((at(100), MS * 300), Some(at(3))));
        assert_eq!((left.factor, left.len), (1, NONE));
        let (mut left, mut joined) = (interactive(100), soft(700));
        assert_eq!(rule().merged(&mut left, &mut joined), [None, ended(30)]);
        assert_eq!((joined.factor, joined.period()), (3000, (at(700), MS * 300)), "it is raised already");
        let (mut left, mut joined) = (plain(), interactive(700));
        assert_eq!(rule().merged(&mut left, &mut joined), [None, None]);
        assert_eq!(joined.period(), (at(700), MS * 10_000));
        let (mut left, mut joined) = (interactive(100), plain());
        let [taken, _] = rule().merged(&mut left, &mut joined);
        assert_eq!(taken, change(1, 30, Reason::RaisedInteractive, MS * 10_000));
    }

    #[test]
    fn a_new_queue_that_is_merged_is_remembered_as_raised() {
        let before = Raising { service: 7, interrupted: Some(at(3)), ..plain() };
        let remembered = |rule: &Raise, new| rule.remembered(&view(50), &before, new, SPEED);
        let new = remembered(&rule(), true);
        assert_eq!((new.factor, new.period(), new.interrupted), (30, (at(50), len()), None));
        assert_eq!(new.service, 7);
        let off =
            [with(|s| s.on = false), with(|s| s.interactive = false)].map(|rule| remembered(&rule, true));
        for same in [remembered(&rule(), false), off[0], off[1]] {
            assert_eq!((same.factor, same.period(), same.interrupted), (1, (at(0), NONE), Some(at(3))));
        }
    }

    #[test]
    fn a_split_gives_raising_back_that_is_not_over() {
        // A queue that is not raised is split off at 1000 ms, for a task that was raised as `was` says.
        let split = |was: Raising, burst| {
            let mut raising = Raising { soft_from: at(7), soft_pending: true, ..plain() };
            let change = rule().split(&view(1000), &mut raising, &was, burst, SPEED);
            assert_eq!((raising.soft_from, raising.soft_pending), (at(7), true), "those are its own");
            assert_eq!((raising.factor, raising.service), (change.map_or(1, |c| c.factor), was.service));
            (change.map(|c| (c.factor, c.why)), raising.period())
        };
        let resumed = |factor, why, start, len| (Some((factor, why)), (at(start), len));
        let was = Raising { service: 9, ..interactive(100) };
        let again = resumed(30, Reason::RaisedInteractive, 100, MS * 10_000);
        assert_eq!(split(was, false), again);
        let soft_again = resumed(3000, Reason::RaisedSoftRealTime, 700, MS * 300);
        assert_eq!((split(soft(700), false), split(soft(699), false)), (soft_again, (None, (at(699), NONE))));
        assert_eq!(split(was, true), (None, (at(100), NONE)), "in a large burst");
        assert_eq!(split(plain(), false), (None, (at(0), NONE)));
        let interrupted = Raising { interrupted: Some(at(50)), ..soft(100) };
        let continued = resumed(30, Reason::RaisedInteractive, 50, len());
        assert_eq!(split(interrupted, false), continued);
        assert_eq!(split(interrupted, true), (None, (at(100), NONE)));
        let not_soft = Raising { interrupted: Some(at(50)), len: MS, ..interactive(100) };
        assert_eq!(split(not_soft, false), (None, (at(100), NONE)), "interactive periods interrupt none");
        // What the queue itself was raised by, it is no longer.
        let mut raised = interactive(900);
        let change = rule().split(&view(1000), &mut raised, &plain(), false, SPEED);
        assert_eq!(change, ended(30));
        let mut raised = interactive(900);
        assert_eq!(rule().split(&view(1000), &mut raised, &soft(100), false, SPEED), ended(30));
    }

    #[test]
    fn all_is_as_it_may_be() {
        for factor in [1, 30, 3000] {
            rule().check(&Raising { factor, ..plain() });
        }
        let mut raising = interactive(0);
        raising.forget();
        with(|s| s.on = false).check(&raising);
        raising.adopt(at(4), MS);
        assert_eq!(raising.period(), (at(4), MS));
    }

    #[test]
    #[should_panic(expected = "raised by 31")]
    fn another_factor_is_found() {
        rule().check(&Raising { factor: 31, ..plain() });
    }

    #[test]
    #[should_panic(expected = "S9")]
    fn raising_while_the_rule_is_off_is_found() {
        with(|s| s.on = false).check(&interactive(0));
    }
}
