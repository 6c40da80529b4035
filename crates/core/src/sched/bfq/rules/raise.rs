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

impl Wakeup {
    /// Its group is not young, and its tasks share one youth: that the queue is new, or was idle, does not
    /// count.
    pub(crate) const fn is_not_young(&mut self) {
        self.interactive = false;
        self.deserves &= self.soft;
    }
}

/// The youth that the tasks of a group share: it lasts as long as an interactive queue is raised, from when
/// one of them became busy after none had been for long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Youth {
    began: Option<Instant>,
    heard: Option<Instant>,
}

impl Youth {
    /// A request of the group completed.
    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard = Some(now);
    }
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

    /// A queue of a group whose tasks share one youth becomes busy: whether the group is young.
    pub(crate) fn woke_in(&self, view: &View, youth: &mut Youth, speed: Speed) -> bool {
        let now = view.tick();
        if since(now, youth.heard) > self.setting.idle_min {
            youth.began = Some(now);
        }
        youth.heard = Some(now);
        self.is_young(view, youth, speed)
    }

    /// Whether a group is young.
    pub(crate) fn is_young(&self, view: &View, youth: &Youth, speed: Speed) -> bool {
        self.unfinished(view, youth.began, speed).is_some()
    }

    /// The period of an interactive queue began with the youth of its group.
    pub(crate) fn shared(&self, raising: &mut Raising, youth: &Youth) {
        if let Some(began) = youth.began.filter(|_| self.is_interactive(raising)) {
            raising.start = raising.start.min(began);
        }
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
mod tests;
