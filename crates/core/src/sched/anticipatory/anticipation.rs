//! Whether to wait for the task that was served last, and for how long.
//!
//! ```text
//!          dispatch: worth waiting               awaited task's request completes
//!   Off ──────────────────────────► Request ─────────────────────────────────────► Next, timer armed
//!    ▲  └──────────────────────────────── it has completed already ──────────────►  │
//!    │                                 │ a request breaks it                        │ a request breaks it, or
//!    │         a request is issued     ▼                                            ▼ the timer
//!    └──────────────────────────────── Finished ◄───────────────────────────────────┘
//! ```
//!
//! Waiting is a bet. [`Rules::tests`] is the list of reasons not to make it, in order; the same list, asked
//! about a new request, ends it. The lists of the two variants differ in order and in three tests.
//!
//! *Close* means: near enough to where the head is that serving it costs next to nothing. What is near grows
//! with each ms waited in vain: 64 sectors, doubling from the second ms on (2.6.9, so 256 sectors after 3
//! ms), or 8192 sectors, doubling from the first (2.6.32, so 65536 after 3 ms).
//!
//= linux-2.6.32 block/as-iosched.c as_can_break_anticipation, as_close_req

use super::statistics::{CERTAIN, Tasks};
use super::{Anticipatory, Kind, Variant};
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::request::Request;
use crate::trace::Reason;
use crate::units::{Duration, Instant, Tag};

/// What differs between the variants.
#[derive(Debug)]
pub(super) struct Rules {
    /// The reasons not to wait, in order.
    tests: &'static [Test],
    /// Whether closeness starts at 4 MiB, not 32 KiB, and counts the awaited task's own mean seek.
    wide: bool,
    /// Whether others that take an exited task's place are kept count of.
    watches_cooperators: bool,
    /// Whether a batch that had to wait for the device to finish the last one gets its full time.
    pub(super) times_deferred_batches: bool,
    pub(super) async_batches_begin_at_oldest: bool,
}

/// A reason not to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    /// The request is the awaited task's.
    IsAwaited,
    /// The wait has lasted long enough.
    LastedEnough,
    /// The awaited task has exited.
    Exited,
    /// It has exited, and so far no task took an exited task's place.
    ExitedAlone,
    /// The awaited task has other requests waiting.
    HasQueued,
    /// The device handed requests of its back.
    HasHandedBack,
    /// The request is close.
    IsClose,
    /// The task is new, and new ones think for longer than the wait may last.
    NewcomersThinkLong,
    /// The task is new, and new ones tend to exit after one request.
    NewcomersExit,
    /// The task thinks for longer than the wait may last.
    ThinksLong,
    /// The request is nearer than the task's next is likely to be.
    IsNearerThanUsual,
}

impl Test {
    /// What a wait that it ends, ended for.
    const fn reason(self) -> Reason {
        match self {
            Self::IsAwaited => Reason::AnticipationHit,
            Self::IsClose | Self::IsNearerThanUsual => Reason::AnticipationClose,
            Self::LastedEnough => Reason::AnticipationTimeout,
            _ => Reason::AnticipationUseless,
        }
    }
}

static RULES_EARLY: Rules = Rules {
    tests: &[
        Test::IsAwaited,
        Test::LastedEnough,
        Test::Exited,
        Test::HasQueued,
        Test::HasHandedBack,
        Test::IsClose,
        Test::NewcomersThinkLong,
        Test::NewcomersExit,
        Test::ThinksLong,
        Test::IsNearerThanUsual,
    ],
    wide: false,
    watches_cooperators: false,
    times_deferred_batches: false,
    async_batches_begin_at_oldest: false,
};

static RULES_LATE: Rules = Rules {
    tests: &[
        Test::IsAwaited,
        Test::LastedEnough,
        Test::HasQueued,
        Test::HasHandedBack,
        Test::IsClose,
        Test::ExitedAlone,
        Test::NewcomersThinkLong,
        Test::NewcomersExit,
        Test::ThinksLong,
    ],
    wide: true,
    watches_cooperators: true,
    times_deferred_batches: true,
    async_batches_begin_at_oldest: true,
};

impl Rules {
    pub(super) const fn of(variant: Variant) -> &'static Self {
        match variant {
            Variant::Early => &RULES_EARLY,
            Variant::Late => &RULES_LATE,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Off,
    /// Waiting; the awaited task's request is still at the device, and its completion starts the timer.
    Request,
    /// Waiting for the awaited task's next request, until then.
    Next(Instant),
    /// The wait is over; until the next issue there is no other.
    Finished,
}

/// The state of waiting.
#[derive(Debug)]
pub(super) struct Anticipation {
    phase: Phase,
    /// The task whose request was issued last, if it was sync.
    who: Option<TaskSlot>,
    /// When a request of that task last completed, since that issue.
    since: Option<Instant>,
    expire: Duration,
    /// `expire` in ticks.
    ticks: u64,
    tick: Duration,
}

impl Anticipation {
    pub(super) fn new(expire: Duration, tick: Duration) -> Self {
        Self { phase: Phase::Off, who: None, since: None, expire, ticks: expire / tick, tick }
    }

    pub(super) const fn is_on(&self) -> bool {
        matches!(self.phase, Phase::Request | Phase::Next(_))
    }

    pub(super) const fn awaited(&self) -> Option<TaskSlot> {
        self.who
    }

    pub(super) const fn until(&self) -> Option<Instant> {
        match self.phase {
            Phase::Next(until) => Some(until),
            _ => None,
        }
    }

    pub(super) fn is_up(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| now >= until)
    }

    /// Notes that a request is issued: a sync one of `who`, or an async one. Returns the task that was
    /// awaited until now.
    pub(super) const fn restart(&mut self, who: Option<TaskSlot>) -> Option<TaskSlot> {
        self.phase = Phase::Off;
        self.since = None;
        core::mem::replace(&mut self.who, who)
    }

    /// A request of `owner` completes. A running timer keeps its end.
    pub(super) fn completed(&mut self, owner: TaskSlot, now: Instant) {
        if self.who == Some(owner) {
            self.since = Some(now);
            if self.phase == Phase::Request {
                self.phase = Phase::Next(now + self.expire);
            }
        }
    }

    pub(super) fn check(&self, tasks: &Tasks) {
        match self.phase {
            Phase::Off | Phase::Finished => {}
            Phase::Request => {
                let who = self.who.expect("no task is awaited");
                assert!(self.since.is_none(), "completed, but still awaited at the device");
                assert!(tasks[who].in_flight() > 0, "nothing is coming to end the wait");
            }
            Phase::Next(_) => assert!(self.since.is_some(), "a wait that is timed from nothing"),
        }
    }

    /// How far a request may be to count as close, in sectors; `None`: anywhere.
    fn close_within(&self, wide: bool, now: Instant) -> Option<u64> {
        let waited = if self.phase == Phase::Off { None } else { self.since }
            .map_or(Duration::ZERO, |since| now.saturating_since(since));
        let delay = if wide { waited / self.tick } else { waited.as_ms() };
        // Beyond 20 ms any place is close.
        let doublings = (delay <= 20 && delay <= self.ticks).then_some(delay);
        match (wide, delay) {
            (true, 0) => Some(8192),
            (true, _) => doublings.map(|n| 8192 << n),
            (false, 0 | 1) => Some(64),
            (false, _) => doublings.map(|n| 64 << (n - 1)),
        }
    }
}

impl Anticipatory {
    //= linux-2.6.32 block/as-iosched.c as_can_anticipate
    pub(super) fn should_wait(&mut self, cx: &Cx<'_>, next: Option<Tag>) -> bool {
        self.wait.who.is_some() && self.wait.phase != Phase::Finished && self.why_not_wait(cx, next).is_none()
    }

    pub(super) fn start_waiting(&mut self, cx: &mut Cx<'_>) {
        self.wait.phase = match self.wait.since {
            Some(since) => Phase::Next(since + self.wait.expire),
            None => Phase::Request,
        };
        self.note(cx, Reason::Anticipate);
    }

    pub(super) fn stop_waiting(&mut self, cx: &mut Cx<'_>, why: Reason) {
        self.wait.phase = Phase::Finished;
        self.note(cx, why);
    }

    /// The wait was in vain.
    //= linux-2.6.32 block/as-iosched.c as_antic_timeout
    pub(super) fn time_out(&mut self, cx: &mut Cx<'_>) {
        self.stop_waiting(cx, Reason::AnticipationTimeout);
        if let Some(who) = self.wait.who {
            self.tasks.expect_exit_if_new(who);
            if self.rules.watches_cooperators && !self.tasks[who].alive {
                self.tasks.newcomers.exits_alone.hit();
            }
        }
    }

    /// The first reason not to wait, or not to wait any longer, given that `rq` could be served now.
    pub(super) fn why_not_wait(&mut self, cx: &Cx<'_>, rq: Option<Tag>) -> Option<Reason> {
        let who = self.wait.who?;
        let rules = self.rules;
        let test = rules.tests.iter().find(|&&test| self.is_met(test, cx, who, rq))?;
        Some(test.reason())
    }

    fn is_met(&mut self, test: Test, cx: &Cx<'_>, who: TaskSlot, tag: Option<Tag>) -> bool {
        let task = &self.tasks[who];
        match test {
            Test::IsAwaited => tag.is_some_and(|tag| self.owner[tag] == who),
            Test::LastedEnough => {
                self.wait.since.is_some_and(|since| cx.now.saturating_since(since) >= self.wait.expire)
            }
            Test::Exited => {
                // An exit also tells what to expect of new tasks, of which nothing is known.
                let gone = !task.alive;
                if gone {
                    self.tasks.expect_exit_if_new(who);
                }
                gone
            }
            Test::ExitedAlone => {
                let gone = !task.alive;
                if gone {
                    self.tasks.expect_exit_if_new(who);
                }
                // The later rules wait on for a cooperator of the exited task, unless it has turned out that
                // such seldom come (docs/reference/elevators.md#55-anticipation, test 7 of B).
                gone && self.tasks.newcomers.exits_alone.get() > CERTAIN / 2
            }
            Test::HasQueued => task.queued > 0,
            Test::HasHandedBack => task.handed_back > 0,
            Test::IsClose => tag.is_some_and(|tag| self.is_met_by_close(cx, who, &cx.requests[tag].rq)),
            Test::NewcomersThinkLong => {
                // A task without samples is judged by the mean of all first samples.
                task.think.is_empty() && self.tasks.newcomers.think_mean() > self.wait.ticks
            }
            Test::NewcomersExit => task.think.is_empty() && self.newcomers_exit(),
            Test::ThinksLong => !task.think.is_empty() && task.think.mean() > self.wait.ticks,
            // The awaited task usually seeks farther than that, so serving this one first costs it nothing.
            // It makes random readers unequal (docs/reference/elevators.md#55-anticipation).
            Test::IsNearerThanUsual => tag.is_some_and(|tag| {
                cx.requests[tag].rq.start.distance(self.own.queues[Kind::Sync as usize].last_sector)
                    < self.tasks.usual_seek(who)
            }),
        }
    }

    /// Whether `rq` is close, and what that says about the awaited task. Apart, or its numbers would be
    /// computed for all tests.
    #[inline(never)]
    fn is_met_by_close(&mut self, cx: &Cx<'_>, who: TaskSlot, rq: &Request) -> bool {
        if !rq.sync || !self.is_close(cx, who, rq) {
            return false;
        }
        if self.rules.watches_cooperators {
            if !self.tasks[who].alive {
                self.tasks.expect_exit_if_new(who);
                self.tasks.newcomers.exits_alone.miss();
            }
            self.tasks.book_for(who, rq, cx.now);
        } else {
            self.tasks[who].last_end = cx.now;
        }
        true
    }

    fn is_close(&self, cx: &Cx<'_>, who: TaskSlot, rq: &Request) -> bool {
        let last = self.own.queues[self.own.batch.kind() as usize].last_sector.0;
        let start = rq.start.0;
        let Some(within) = self.wait.close_within(self.rules.wide, cx.now) else { return true };
        let near = last <= start.saturating_add(within / 2) && start <= last.saturating_add(within);
        near || (self.rules.wide && start.abs_diff(last) < self.tasks.usual_seek(who))
    }

    fn newcomers_exit(&self) -> bool {
        let exits = self.tasks.newcomers.exits.get();
        if self.rules.watches_cooperators {
            exits * self.tasks.newcomers.exits_alone.get() > CERTAIN / 2 * CERTAIN
        } else {
            exits > CERTAIN / 2
        }
    }

    fn note(&self, cx: &mut Cx<'_>, reason: Reason) {
        if let Some(task) = self.wait.who.and_then(|who| self.tasks.number(who)) {
            cx.note(reason, task);
        }
    }
}
