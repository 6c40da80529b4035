//! An elevator under observation: every call is checked by the [`Ledger`], followed by `check()`, watched for
//! heap use, and repeated on a twin.
//!
//! The twin is a second elevator that gets the same calls and, if asked for, spurious timer calls in between.
//! Its answers must be the same: the same events give the same decisions, and spurious timers change nothing.
//! Or the twin gets calls that follow each other at one time as batches, and must give the same answers in
//! the same order.

use super::alloc::without;
use super::ledger::{Done, Ledger};
use super::seeds;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::trace::Action;
use fairhead_core::{
    Control, Dispatch, Elevator, End, GroupStats, Hold, Insert, Instant, Limits, Request, Requests, Rest,
    Tag, Timer, TraceEvent,
};
use std::cell::Cell;

type Any = Elevator<AnyScheduler>;

/// Which twin to run beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Twin {
    /// None.
    None,
    /// All calls are repeated.
    Replay,
    /// All calls, with a spurious timer before and after each.
    SpuriousTimers,
    /// All calls, in batches.
    Batches,
}

thread_local! {
    static LARGEST: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

/// How many requests the largest batches of this thread had since the last call of this function: of
/// insertions, and of dispatches.
pub(crate) fn take_largest_batches() -> [usize; 2] {
    LARGEST.take()
}

/// Calls of one kind at one time, which the twin has not had yet.
#[derive(Default)]
struct Batch {
    now: Option<Instant>,
    inserted: Vec<(Tag, Request)>,
    answers: Vec<Insert>,
    issued: Vec<Tag>,
    /// What was answered instead of another request.
    rest: Option<Rest>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.now.is_none()
    }

    /// Whether another insertion, or another dispatch, can belong to it.
    fn takes(&self, now: Instant, is_insert: bool) -> bool {
        self.is_empty() || self.now == Some(now) && self.rest.is_none() && is_insert == self.issued.is_empty()
    }

    /// The twin gets it.
    fn end(&mut self, twin: &mut Any) {
        let Some(now) = self.now.take() else { return };
        if !self.inserted.is_empty() {
            let mut expected = self.inserted.iter().zip(&self.answers);
            without("insert_batch", || {
                twin.insert_batch(now, &self.inserted, |tag, answer| {
                    let ((own, _), said) = expected.next().expect("an answer for each");
                    assert_eq!((tag, answer), (*own, *said), "the batched twin decides otherwise: insert");
                });
            });
            assert!(expected.next().is_none(), "an answer is missing");
        } else {
            let (mut expected, room) = (self.issued.iter(), self.issued.len() + self.rest.iter().len());
            let rest = without("dispatch_batch", || {
                twin.dispatch_batch(now, room, |tag| {
                    assert_eq!(Some(&tag), expected.next(), "the batched twin decides otherwise: dispatch");
                })
            });
            assert_eq!(rest, self.rest.unwrap_or(Rest::Full), "the batched twin ends otherwise");
            assert!(expected.next().is_none(), "the batched twin issues fewer");
        }
        let [inserted, issued] = LARGEST.get();
        LARGEST.set([inserted.max(self.inserted.len()), issued.max(self.issued.len())]);
        self.inserted.clear();
        self.answers.clear();
        self.issued.clear();
        self.rest = None;
    }
}

/// See the [module](self).
pub(crate) struct Subject {
    elevator: Any,
    twin: Option<Any>,
    spurious: bool,
    /// What the twin gets next, if it gets batches.
    batch: Option<Batch>,
    pub(crate) ledger: Ledger,
    /// Call `check()` each time this many events have happened.
    pub(crate) check_every: u32,
    events: u32,
    freed: Vec<Tag>,
    trace: Vec<TraceEvent>,
    twin_trace: Vec<TraceEvent>,
    /// What the twin will have recorded at the end of its batch.
    owed_trace: Vec<TraceEvent>,
    /// Everything recorded so far, if asked for.
    pub(crate) history: Option<Vec<TraceEvent>>,
    log: bool,
    tracing: bool,
}

/// The longest trace of one call that is looked at.
const TRACE_ROOM: usize = 4096;

impl Subject {
    pub(crate) fn new(limits: Limits, config: AnyConfig, twin: Twin) -> Self {
        let make = || Any::new(limits, config).unwrap_or_else(|e| panic!("{limits:?} {config:?}: {e}"));
        let room = usize::from(limits.tags);
        Self {
            elevator: make(),
            twin: (twin != Twin::None).then(make),
            spurious: twin == Twin::SpuriousTimers,
            batch: (twin == Twin::Batches).then(Batch::default),
            ledger: Ledger::new(limits),
            check_every: 1,
            events: 0,
            freed: Vec::with_capacity(room),
            trace: Vec::with_capacity(TRACE_ROOM),
            twin_trace: Vec::with_capacity(TRACE_ROOM),
            owed_trace: Vec::with_capacity(TRACE_ROOM),
            history: None,
            log: seeds::verbose(),
            tracing: limits.trace > 0,
        }
    }

    pub(crate) fn requests(&self) -> &Requests {
        self.elevator.requests()
    }

    pub(crate) fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.elevator.next_timer()
    }

    /// Whether the scheduler would have this request now.
    pub(crate) fn has_room(&self, rq: &Request) -> bool {
        let room = without("has_room", || self.elevator.has_room(rq));
        let is_idle = self.ledger.waiting() + self.ledger.at_device() == 0;
        assert!(room || !is_idle, "no room for {rq:?} in an empty elevator: a driver would wait for ever");
        // The one that had a spurious timer may have let requests pass their limits that the other will when
        // it is called next.
        let held = self.requests().held();
        let owes = self.batch.as_ref().is_some_and(|b| !b.is_empty());
        if let Some(twin) = self.twin.as_ref().filter(|t| !owes && t.requests().held() == held) {
            assert_eq!(twin.has_room(rq), room, "the twin decides otherwise: has_room");
        }
        room
    }

    pub(crate) fn insert(&mut self, now: Instant, tag: Tag, rq: Request) -> Insert {
        self.disturb(now);
        self.end_batch_unless(|batch| batch.takes(now, true));
        self.say(now, || format!("insert {tag:?} {rq:?}"));
        let answer = without("insert", || self.elevator.insert(now, tag, rq));
        if let Some(batch) = &mut self.batch {
            batch.now = Some(now);
            batch.inserted.push((tag, rq));
            batch.answers.push(answer);
        } else if let Some(twin) = &mut self.twin {
            assert_eq!(twin.insert(now, tag, rq), answer, "the twin decides otherwise: insert {tag:?}");
        }
        self.say(now, || format!("  -> {answer:?}"));
        self.ledger.let_pass(now, self.elevator.requests());
        self.ledger.insert(now, tag, rq, answer, self.elevator.requests());
        let action = match answer {
            Insert::Queued if self.ledger.is_held(tag) => Action::Note,
            Insert::Queued => Action::Insert,
            Insert::Merged { end: End::Back, .. } => Action::BackMerge,
            Insert::Merged { end: End::Front, .. } => Action::FrontMerge,
        };
        self.after(now, Some((action, tag)));
        answer
    }

    /// Inserts a request that must stay alone. It is in no batch.
    pub(crate) fn insert_alone(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("insert alone {tag:?} {rq:?}"));
        without("insert_alone", || self.elevator.insert_alone(now, tag, rq));
        if let Some(twin) = &mut self.twin {
            twin.insert_alone(now, tag, rq);
        }
        self.ledger.let_pass(now, self.elevator.requests());
        self.ledger.insert(now, tag, rq, Insert::Queued, self.elevator.requests());
        self.ledger.stays_alone(tag);
        let action = if self.ledger.is_held(tag) { Action::Note } else { Action::Insert };
        self.after(now, Some((action, tag)));
    }

    pub(crate) fn dispatch(&mut self, now: Instant) -> Dispatch {
        self.disturb(now);
        self.end_batch_unless(|batch| batch.takes(now, false));
        let answer = without("dispatch", || self.elevator.dispatch(now));
        if let Some(batch) = &mut self.batch {
            batch.now = Some(now);
            match answer {
                Dispatch::Issue(tag) => batch.issued.push(tag),
                Dispatch::Hold(why) => batch.rest = Some(Rest::Hold(why)),
                Dispatch::Empty => batch.rest = Some(Rest::Empty),
            }
        } else if let Some(twin) = &mut self.twin {
            assert_eq!(twin.dispatch(now), answer, "the twin decides otherwise: dispatch");
        }
        self.say(now, || format!("dispatch -> {answer:?}"));
        self.ledger.let_pass(now, self.elevator.requests());
        match answer {
            Dispatch::Issue(tag) => {
                self.ledger.issue(now, tag, self.elevator.requests());
                self.after(now, Some((Action::Issue, tag)));
            }
            Dispatch::Hold(why) => {
                self.check_hold(why);
                self.after(now, None);
            }
            Dispatch::Empty => {
                assert_eq!(self.ledger.waiting(), 0, "said Empty, but requests wait");
                self.after(now, None);
            }
        }
        answer
    }

    fn check_hold(&self, why: Hold) {
        assert!(self.ledger.waiting() > 0, "Hold({why:?}), but nothing waits: that is Empty");
        let queued = self.elevator.requests().queued();
        assert_eq!(
            why == Hold::Limit,
            queued == 0,
            "Hold({why:?}), and {queued} requests are in the scheduler"
        );
        assert!(
            self.ledger.at_device() > 0 || self.elevator.next_timer().is_some(),
            "Hold({why:?}), but neither a timer nor a completion is coming to end it"
        );
    }

    pub(crate) fn drain(&mut self, now: Instant) -> Option<Tag> {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        let answer = without("drain", || self.elevator.drain(now));
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.drain(now), answer, "the twin decides otherwise: drain");
        }
        self.say(now, || format!("drain -> {answer:?}"));
        self.ledger.let_pass(now, self.elevator.requests());
        match answer {
            Some(tag) => self.ledger.issue(now, tag, self.elevator.requests()),
            None => assert_eq!(self.ledger.waiting(), 0, "drained, but requests wait"),
        }
        self.after(now, answer.map(|tag| (Action::Issue, tag)));
        answer
    }

    pub(crate) fn complete(&mut self, now: Instant, tag: Tag) -> Vec<Done> {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("complete {tag:?}"));
        let (elevator, freed) = (&mut self.elevator, &mut self.freed);
        freed.clear();
        // The room was made in `new`.
        without("complete", || freed.extend(elevator.complete(now, tag)));
        if let Some(twin) = &mut self.twin {
            assert!(
                twin.complete(now, tag).eq(freed.iter().copied()),
                "the twin decides otherwise: complete {tag:?}"
            );
        }
        let done = self.ledger.complete(now, tag, &self.freed);
        self.after(now, Some((Action::Complete, tag)));
        done
    }

    pub(crate) fn requeue(&mut self, now: Instant, tag: Tag) {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("requeue {tag:?}"));
        without("requeue", || self.elevator.requeue(now, tag));
        if let Some(twin) = &mut self.twin {
            twin.requeue(now, tag);
        }
        self.ledger.requeue(tag);
        self.after(now, Some((Action::Requeue, tag)));
    }

    pub(crate) fn control(&mut self, now: Instant, change: Control) {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("control {change:?}"));
        let made = without("control", || self.elevator.control(now, change));
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.control(now, change), made, "the twin answers otherwise");
        }
        if made.is_ok() {
            self.ledger.control(&change);
        }
        self.after(now, None);
    }

    /// Other tunables, if the scheduler can take them over.
    pub(crate) fn reconfigure(&mut self, now: Instant, config: AnyConfig) -> bool {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("reconfigure {config:?}"));
        let elevator = &mut self.elevator;
        let done =
            without("reconfigure", || elevator.reconfigure(now, config)).expect("drawn from the ranges");
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.reconfigure(now, config), Ok(done), "the twin decides otherwise: reconfigure");
        }
        self.after(now, None);
        done
    }

    /// A timer call, due or not.
    pub(crate) fn timer(&mut self, now: Instant) {
        self.disturb(now);
        self.end_batch_unless(|_| false);
        self.say(now, || format!("timer (due {:?})", self.elevator.next_timer()));
        without("timer", || self.elevator.timer(now));
        if let Some(twin) = &mut self.twin {
            twin.timer(now);
        }
        if let Some((when, why)) = self.elevator.next_timer() {
            assert!(when > now, "{why:?} is due at {when:?} even after the timer call: a driver would spin");
        }
        self.after(now, None);
    }

    /// The twin gets the batch, unless what comes next belongs to it.
    fn end_batch_unless(&mut self, goes_on: impl FnOnce(&Batch) -> bool) {
        if let (Some(twin), Some(batch)) = (&mut self.twin, &mut self.batch)
            && !goes_on(batch)
        {
            batch.end(twin);
            self.twin_trace.extend(twin.drain_trace());
            assert_eq!(self.twin_trace, self.owed_trace, "the batched twin recorded something else");
            self.twin_trace.clear();
            self.owed_trace.clear();
            if self.events.is_multiple_of(self.check_every) {
                twin.check();
                let stats = [&self.elevator, &*twin].map(|e| {
                    let mut stats = vec![GroupStats::default(); e.groups().count()];
                    e.all_stats(&mut stats);
                    stats
                });
                assert_eq!(stats[1], stats[0], "the batched twin's books");
            }
        }
    }

    /// A timer call on the twin alone, if it is spurious.
    fn disturb(&mut self, now: Instant) {
        if !self.spurious {
            return;
        }
        let Some(twin) = &mut self.twin else { return };
        if twin.next_timer().is_none_or(|(when, _)| when > now) {
            twin.timer(now);
        }
    }

    fn after(&mut self, now: Instant, expected: Option<(Action, Tag)>) {
        self.events += 1;
        self.ledger.let_pass(now, self.elevator.requests());
        self.ledger.check_counts(self.elevator.requests());
        self.trace.clear();
        self.trace.extend(self.elevator.drain_trace());
        if self.tracing {
            Ledger::check_trace(now, &self.trace, expected);
            if let Some(history) = &mut self.history {
                history.extend_from_slice(&self.trace);
            }
        }
        self.disturb(now);
        let owes = self.batch.as_ref().is_some_and(|b| !b.is_empty());
        if owes {
            self.owed_trace.extend_from_slice(&self.trace);
        } else if let Some(twin) = &mut self.twin {
            self.twin_trace.clear();
            self.twin_trace.extend(twin.drain_trace());
            assert_eq!(self.twin_trace, self.trace, "the twin recorded something else");
            assert_eq!(twin.next_timer(), self.elevator.next_timer(), "the twin wants another timer");
            self.twin_trace.clear();
        }
        if self.events.is_multiple_of(self.check_every) {
            self.elevator.check();
            self.ledger.check_groups(&self.elevator);
        }
    }

    fn say(&self, now: Instant, what: impl FnOnce() -> String) {
        if self.log {
            eprintln!("{now:?} {}", what());
        }
    }
}
