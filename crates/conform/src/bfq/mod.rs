//! BFQ beside the kernel's: step by step, each decision compared, and after a difference put right.
//!
//! ```text
//! what the step shows of the state before it   compared, adopted
//! a copy of ours is kept
//! ours runs: arrival, attempt, completion, …   its expiries, selections and request, from its trace
//! the same as the kernel's?   yes ─►           counted
//!                             no  ─►           counted; back to the copy; the kernel's decisions are forced
//! what the step shows of the state after it    compared, adopted
//! ```
//!
//! So each decision is made from the kernel's own state, and a difference is counted where it arises, once.

mod judge;
mod names;
mod ours;
mod state;
mod theirs;

use super::first_reads::FirstReads;
use super::header::Header;
use super::line::{Io, Thread};
use super::log::LogError;
use super::message::{Name, Say, Why};
use super::report::{Tally, Topic};
use super::step::{Kind, Sent, Step};
use super::steps::Steps;
use super::survey::Survey;
use super::tags::Tags;
use fairhead_core::sched::bfq::conform::QueueRef;
use fairhead_core::sched::bfq::{Bfq, Config};
use fairhead_core::{
    Control, Dispatch, Duration, Elevator, Insert, Instant, IoPrio, Limits, Reason, Request, Sectors, Tag,
    TaskId,
};
use judge::{CLOCK_ERROR, Case, Verdicts};
use names::{Heard, Names};
use ours::Outcome;
use std::collections::BTreeMap;
use std::io::BufRead;
use theirs::Decision;

/// The replay of one log.
struct Replay {
    elevator: Elevator<Bfq>,
    tick: Duration,
    /// As it was before the step ran.
    before: Elevator<Bfq>,
    header: Header,
    reads: FirstReads,
    tags: Tags,
    /// The kernel's address of the queue that each request went to.
    homes: BTreeMap<Tag, u64>,
    names: Names,
    /// The tasks and queues that the messages of the present step name.
    heard: Heard,
    tally: Tally,
    /// What is known of each task.
    tasks: BTreeMap<u32, Task>,
    /// The threads whose bio has made the kernel merge queues, so that their next request is in another.
    merging: BTreeMap<Thread, ()>,
    /// The time that ours has come to.
    latest: Instant,
    /// What is added to the log's times, so that ticks fall on whole multiples.
    shift: Duration,
}

/// A time for ours, and a shift of the slot's beginning, later or earlier.
type Clock = (Instant, Option<(Duration, bool)>);

/// An event, told to ours at a time.
type Run<'a> = &'a dyn Fn(&mut Elevator<Bfq>, Instant) -> Option<Dispatch>;

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct Task {
    owner: super::load::Owner,
    level: u8,
}

/// Replays the log.
pub(super) fn compare<R: BufRead>(
    mut steps: Steps<R>,
    survey: &Survey,
    progress: &mut dyn FnMut(u64),
) -> Result<(Tally, u64), LogError> {
    let header = steps.log().header().clone();
    let mut replay = Replay::new(header, survey).map_err(|e| steps.log().error_at(0, &e))?;
    while let Some(step) = steps.next_step()? {
        replay.step(&step).map_err(|message| steps.log().error_at(step.line, &message))?;
        progress(steps.log().bytes());
    }
    Ok((replay.tally, steps.log().lost()))
}

impl Replay {
    fn new(header: Header, survey: &Survey) -> Result<Self, String> {
        let groups = header.groups().iter().count();
        let depth = header.setting("nr_requests").unwrap_or(256).clamp(1, 4096);
        let depth = u16::try_from(depth).unwrap_or(256);
        let limits = Limits {
            tags: 2 * depth,
            tasks: survey.tasks().max(1),
            groups: u32::try_from(groups).unwrap_or(0) + 1,
            rotational: header.setting("rotational") != Some(0),
            queue_depth: depth,
            trace: 256,
            ..Limits::default()
        };
        let config = config(&header, survey);
        let elevator = Elevator::<Bfq>::new(limits, config).map_err(|e| e.to_string())?;
        let mut this = Self {
            before: elevator.clone(),
            elevator,
            tags: Tags::new(limits.tags),
            header,
            reads: survey.reads().clone(),
            homes: BTreeMap::new(),
            names: Names::default(),
            heard: Heard::default(),
            tally: Tally::default(),
            tasks: BTreeMap::new(),
            merging: BTreeMap::new(),
            latest: Instant::EPOCH,
            shift: survey.shift(),
            tick: survey.tick(),
        };
        this.make_groups();
        Ok(this)
    }

    fn make_groups(&mut self) {
        let groups: Vec<_> = self.header.groups().iter().collect();
        for group in groups {
            if let Some(parent) = group.parent {
                let made = self.elevator.control(Instant::EPOCH, Control::SetParent(group.id, parent));
                debug_assert_eq!(made, Ok(()));
            }
            if let Some(weight) = std::num::NonZeroU16::new(group.weight) {
                let weight = fairhead_core::Weight(weight);
                let made = self.elevator.control(Instant::EPOCH, Control::SetWeight(group.id, weight));
                debug_assert_eq!(made, Ok(()));
            }
        }
    }

    fn now(&self, step: &Step) -> Instant {
        (step.at + self.shift).max(self.latest)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.heard = self.names.hear_all(step);
        self.look_before(step);
        match step.kind {
            Kind::Insert(io) if io.len > 0 => self.arrival(step, &io)?,
            Kind::Merge(io) if io.len > 0 => self.merge(step, &io)?,
            Kind::Dispatch(sent) => self.attempt(step, sent),
            Kind::Complete(io) => self.completion(step, &io),
            Kind::Timer => self.timer(step),
            Kind::Exit => self.exit(step),
            Kind::Bio(_) => self.bio(step),
            _ => return Ok(()),
        }
        self.names.forget(step);
        Ok(())
    }

    /// Runs ours; if it decides otherwise than the kernel, runs it again as the kernel decided. Everything is
    /// counted.
    fn decide(&mut self, case: &Case<'_>, run: Run<'_>) -> Option<Dispatch> {
        let step = case.step;
        self.before.clone_from(&self.elevator);
        let now = self.now(step);
        let (mut answer, verdicts) = self.attempt_at(case, run, now);
        let mut at = now;
        if !verdicts.agree() {
            let found = self.clocks(step, now).into_iter().flatten().find_map(|(now, slot)| {
                self.elevator.clone_from(&self.before);
                if let Some((by, later)) = slot {
                    self.elevator.override_state(now, |bfq, _| bfq.adopt_clock(by, later));
                }
                let (answer, other) = self.attempt_at(case, run, now);
                other.agree().then_some((now, answer, other))
            });
            if let Some((now, answer, verdicts)) = found {
                self.latest = now;
                self.count(step, verdicts.0);
                return answer;
            }
            self.elevator.clone_from(&self.before);
            if verdicts.agree_on_decisions() {
                answer = self.attempt_at(case, run, now).0;
            } else {
                let is_elsewhere = verdicts.0.iter().any(|v| v.topic == Topic::Merges && v.ours.is_some());
                answer = self.rerun(case, run, now, is_elsewhere);
            }
            at = now;
        }
        self.latest = at;
        self.count(step, verdicts.0);
        self.adopt(case, at);
        answer
    }

    /// What the kernel may have read on its clocks: now, and by how much the slot began later or earlier than
    /// we noted. A clock that a thread read before the slot began puts its beginning behind now.
    fn clocks(&self, step: &Step, now: Instant) -> [Option<Clock>; 5] {
        let (later, earlier) = (now + CLOCK_ERROR, self.latest.max(now - CLOCK_ERROR));
        let plugged = step.plugged.map(|at| now.saturating_since(at + self.shift));
        [
            Some((later, None)),
            Some((earlier, None)),
            Some((now, Some((CLOCK_ERROR, true)))),
            Some((now, Some((CLOCK_ERROR, false)))),
            plugged.map(|by| (now, Some((by, true)))),
        ]
    }

    /// Runs ours at `now`.
    fn attempt_at(&mut self, case: &Case<'_>, run: Run<'_>, now: Instant) -> (Option<Dispatch>, Verdicts) {
        let answer = run(&mut self.elevator, now);
        let ours = Outcome::of(&mut self.elevator, answer);
        (answer, self.judge(case, &ours, now))
    }

    /// Runs ours as the kernel decided; `is_elsewhere`: the request went to another queue than the kernel's.
    fn rerun(&mut self, case: &Case<'_>, run: Run<'_>, now: Instant, is_elsewhere: bool) -> Option<Dispatch> {
        let step = case.step;
        let idled = step.kind == Kind::Timer;
        if idled {
            self.elevator.override_state(now, |bfq, cx| bfq.force_waiting(cx, false));
        } else if case.sent.is_none() {
            if is_elsewhere {
                self.put_task_into(step, now);
            }
            self.elevator.override_state(now, |bfq, _| bfq.mute(true));
            run(&mut self.elevator, now);
            self.elevator.override_state(now, |bfq, _| bfq.mute(false));
        }
        for (at, decision) in &case.decisions {
            self.force(step, *at, decision, now);
        }
        let answer = self.force_outcome(case, now);
        self.elevator.drain_trace().for_each(drop);
        answer
    }

    fn force(&mut self, step: &Step, at: usize, decision: &Decision, now: Instant) {
        let idled = step.kind == Kind::Timer;
        match *decision {
            Decision::Expire(expiry) => {
                self.put_in_service(step, at, now);
                let why = reason(expiry.why);
                self.elevator.override_state(now, |bfq, cx| bfq.force_expire(cx, why, idled));
            }
            Decision::Select { .. } => {
                let Some(q) = self.named(step, at) else { return };
                self.elevator.override_state(now, |bfq, cx| bfq.force_expire(cx, Reason::Preempted, false));
                self.elevator.override_state(now, |bfq, cx| bfq.force_select(cx, q));
            }
        }
    }

    /// The kernel has that queue in service; ours as well from now on, if it can be.
    fn put_in_service(&mut self, step: &Step, at: usize, now: Instant) {
        let serving = self.elevator.scheduler().serving();
        let Some(q) = self.named(step, at) else { return };
        if serving == Some(q) {
            return;
        }
        self.elevator.override_state(now, |bfq, cx| {
            bfq.force_expire(cx, Reason::Preempted, false);
            bfq.force_select(cx, q)
        });
    }

    /// The kernel's address of the queue whose request was sent.
    fn home_of(&self, sent: Option<Sent>) -> Option<u64> {
        match sent {
            Some(Sent::Request(io)) => self.homes.get(&self.tags.queued(&io)?).copied(),
            _ => None,
        }
    }

    fn force_outcome(&mut self, case: &Case<'_>, now: Instant) -> Option<Dispatch> {
        match case.sent {
            Some(Sent::Request(io)) => {
                let tag = self.tags.queued(&io)?;
                Some(self.elevator.issue_by(now, |bfq, cx| bfq.force_issue(cx, tag)))
            }
            Some(_) => None,
            None => {
                if case.decisions.is_empty() && matches!(case.step.kind, Kind::Complete(_)) {
                    self.idle_if_empty(now);
                }
                None
            }
        }
    }

    /// The queue in service was not taken away after a completion: if it has nothing, it is idled for.
    fn idle_if_empty(&mut self, now: Instant) {
        let bfq = self.elevator.scheduler();
        let Some(view) = bfq.serving().map(|q| bfq.view(q)) else { return };
        if view.queued == 0 && view.in_flight == 0 {
            self.elevator.override_state(now, |bfq, cx| bfq.force_waiting(cx, true));
        }
    }
}

/// The events.
impl Replay {
    fn arrival(&mut self, step: &Step, io: &Io) -> Result<(), String> {
        let tag = self.tags.claim().ok_or("more requests at a time than the disk has tags (nr_requests)")?;
        let rq = self.request(step, io)?;
        let case = Case::new(step, None, Some(tag));
        self.decide(&case, &|elevator, now| {
            elevator.insert_apart(now, tag, rq);
            None
        });
        self.merging.remove(&step.thread);
        self.tags.inserted(tag, rq, Insert::Queued, self.elevator.requests());
        if let Some(home) = self.heard.home {
            self.homes.insert(tag, home);
            if self.names.at(home).is_none() {
                self.names.pair(home, self.elevator.scheduler().queue_of(tag));
            }
        }
        Ok(())
    }

    /// Before a request comes again: its task uses the queue that the kernel's does, or a new one if that is
    /// new.
    fn put_task_into(&mut self, step: &Step, now: Instant) {
        let task = TaskId(step.thread.pid);
        let to = self.heard.home.and_then(|home| self.names.at(home));
        self.elevator.override_state(now, |bfq, cx| bfq.force_queue(cx, task, to));
    }

    fn merge(&mut self, step: &Step, io: &Io) -> Result<(), String> {
        // Without a neighbour it became part of one that is not in the scheduler yet.
        let Some((into, end)) = self.tags.neighbour(io) else { return Ok(()) };
        let tag = self.tags.claim().ok_or("more requests at a time than the disk has tags (nr_requests)")?;
        let rq = self.request(step, io)?;
        self.latest = self.now(step);
        self.before.clone_from(&self.elevator);
        let mut inserted = self.elevator.insert(self.latest, tag, rq);
        if matches!(inserted, Insert::Merged { .. }) {
            self.tally.agree(Topic::Merges);
        } else {
            self.differ(Topic::Merges, step, None, "queued apart".to_owned());
            self.elevator.clone_from(&self.before);
            self.elevator.insert_into(self.latest, tag, rq, into, end);
            inserted = Insert::Merged { into, end };
        }
        self.elevator.drain_trace().for_each(drop);
        self.tags.inserted(tag, rq, inserted, self.elevator.requests());
        Ok(())
    }

    /// The request, with what is known of its task.
    fn request(&mut self, step: &Step, io: &Io) -> Result<Request, String> {
        let pid = step.thread.pid;
        let told = step.find(|s| match s.say {
            Say::Priority { level, .. } => Some(level),
            _ => None,
        });
        let task = match self.tasks.get_mut(&pid) {
            Some(task) => task,
            None => {
                let owner = self.header.owner(pid, self.reads.place(pid, io.start), told)?;
                let level = told.or(owner.level).unwrap_or(4);
                self.tasks.entry(pid).or_insert(Task { owner, level })
            }
        };
        task.level = told.unwrap_or(task.level);
        let class = task.owner.class.unwrap_or(fairhead_core::Class::BestEffort);
        let rq = io.request(TaskId(pid));
        Ok(Request { prio: IoPrio::new(class, task.level), group: task.owner.group, ..rq })
    }

    fn attempt(&mut self, step: &Step, sent: Sent) {
        let case = Case::new(step, Some(sent), None);
        let answer = self.decide(&case, &|elevator, now| Some(elevator.dispatch(now)));
        if let Some(Dispatch::Issue(tag)) = answer {
            self.tally.requests += 1;
            self.tags.issued(tag);
            self.homes.remove(&tag);
        }
    }

    fn completion(&mut self, step: &Step, io: &Io) {
        let Some(tag) = self.tags.completed(io) else { return };
        let freed: Vec<Tag> = self.elevator.requests().carried(tag).chain([tag]).collect();
        self.decide(&Case::new(step, None, None), &|elevator, now| {
            elevator.complete(now, tag).for_each(drop);
            None
        });
        self.tags.free(&freed);
    }

    fn timer(&mut self, step: &Step) {
        self.decide(&Case::new(step, None, None), &|elevator, now| {
            elevator.timer(now);
            None
        });
    }

    /// Ours looks for a queue to merge with when the request comes.
    fn bio(&mut self, step: &Step) {
        if step.find(|s| (s.say == Say::Merging).then_some(())).is_some() {
            self.merging.insert(step.thread, ());
        }
    }

    fn exit(&mut self, step: &Step) {
        let now = self.now(step);
        self.latest = now;
        let _ = self.elevator.control(now, Control::TaskExit(TaskId(step.thread.pid)));
        self.elevator.drain_trace().for_each(drop);
    }
}

/// The kernel's tunables, where the log tells them.
fn config(header: &Header, survey: &Survey) -> Config {
    let default = Config::default();
    let ms = |name, default| header.time(name, Duration::from_ms(1)).unwrap_or(default);
    let flag = |name, default| header.setting(name).map_or(default, |v| v != 0);
    let sectors = |v: u64| Sectors(u32::try_from(v).unwrap_or(u32::MAX));
    let slice_idle = ms("slice_idle", default.slice_idle);
    Config {
        fifo_expire_sync: ms("fifo_expire_sync", default.fifo_expire_sync),
        fifo_expire_async: ms("fifo_expire_async", default.fifo_expire_async),
        slice_idle: header.time("slice_idle_us", Duration::from_us(1)).unwrap_or(slice_idle),
        max_budget: header.setting("max_budget").map_or(default.max_budget, sectors),
        timeout_sync: survey.timeout(),
        strict_guarantees: flag("strict_guarantees", default.strict_guarantees),
        low_latency: flag("low_latency", default.low_latency),
        tick: survey.tick(),
        ..default
    }
}

/// The kernel's reasons in our words.
const fn reason(why: Why) -> Reason {
    match why {
        Why::TooIdle => Reason::IdleTimeout,
        Why::BudgetTimeout => Reason::BudgetTimeout,
        Why::BudgetExhausted => Reason::BudgetExhausted,
        Why::NoMoreRequests => Reason::SliceEmpty,
        Why::Preempted => Reason::Preempted,
    }
}

/// The queue's name in a report.
fn label(bfq: &Bfq, queue: QueueRef) -> String {
    let view = bfq.view(queue);
    let pid = (!view.shared).then_some(view.task.0);
    Name { pid, sync: view.sync }.to_string()
}
