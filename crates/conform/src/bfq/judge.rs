//! Ours beside the kernel's, after a step: what is the same and what is not. Nothing is changed here.

use super::super::message::{Name, Say};
use super::super::report::Topic;
use super::super::step::{Kind, Said, Sent, Step};
use super::ours::{self, Outcome};
use super::theirs::{self, At, Decision, Expiry, Times};
use super::{Replay, label, reason};
use fairhead_core::sched::bfq::conform::{QueueRef, View};
use fairhead_core::{Duration, Instant, Tag};

/// Something compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    pub(super) topic: Topic,
    /// The kernel's message; `None`: there is none, only ours.
    pub(super) at: Option<usize>,
    /// `None`: the same. Else ours.
    pub(super) ours: Option<String>,
}

/// A step with what the kernel decided in it.
pub(super) struct Case<'a> {
    pub(super) step: &'a Step,
    pub(super) decisions: Vec<At<Decision>>,
    pub(super) times: Vec<At<Times>>,
    /// If the disk asked for a request: what it got.
    pub(super) sent: Option<Sent>,
    /// If a request came: ours.
    pub(super) arrived: Option<Tag>,
}

impl<'a> Case<'a> {
    pub(super) fn new(step: &'a Step, sent: Option<Sent>, arrived: Option<Tag>) -> Self {
        Self { step, decisions: theirs::decisions(step), times: theirs::times(step), sent, arrived }
    }

    fn expiries(&self) -> Vec<At<Expiry>> {
        let expiry = |(at, d): &At<Decision>| match d {
            Decision::Expire(expiry) => Some((*at, *expiry)),
            Decision::Select { .. } => None,
        };
        self.decisions.iter().filter_map(expiry).collect()
    }

    fn selections(&self) -> Vec<At<(Name, u32)>> {
        let selection = |(at, d): &At<Decision>| match d {
            Decision::Select { queue, budget } => Some((*at, (*queue, *budget))),
            Decision::Expire(_) => None,
        };
        self.decisions.iter().filter_map(selection).collect()
    }
}

/// Verdicts in the making.
#[derive(Default)]
pub(super) struct Verdicts(pub(super) Vec<Verdict>);

impl Verdicts {
    fn add(&mut self, topic: Topic, at: Option<usize>, same: bool, tell: impl FnOnce() -> String) {
        self.0.push(Verdict { topic, at, ours: (!same).then(tell) });
    }

    /// Whether everything is the same.
    pub(super) fn agree(&self) -> bool {
        self.0.iter().all(|v| v.ours.is_none())
    }

    /// Whether the same was decided, by whatever numbers.
    pub(super) fn agree_on_decisions(&self) -> bool {
        self.0.iter().all(|v| v.ours.is_none() || !v.topic.is_decision())
    }
}

impl Replay {
    /// Ours, run at `now`, beside the kernel's.
    pub(super) fn judge(&self, case: &Case<'_>, ours: &Outcome, now: Instant) -> Verdicts {
        let mut verdicts = Verdicts::default();
        self.judge_expiries(case, ours, &mut verdicts);
        self.judge_selections(case, ours, &mut verdicts);
        if let Some(sent) = case.sent {
            self.judge_sending(case.step, ours, sent, &mut verdicts);
        }
        if let Some(tag) = case.arrived {
            self.judge_home(case.step, tag, &mut verdicts);
        }
        if verdicts.agree_on_decisions() {
            self.judge_numbers(case, ours, now, &mut verdicts);
        }
        verdicts
    }

    fn judge_expiries(&self, case: &Case<'_>, ours: &Outcome, verdicts: &mut Verdicts) {
        let theirs = case.expiries();
        for i in 0..theirs.len().max(ours.expiries.len()) {
            let (their, our) = (theirs.get(i), ours.expiries.get(i));
            let at = their.map(|(at, _)| *at);
            let same = match (their, our) {
                (Some((_, t)), Some(o)) => reason(t.why) == o.why && is_of_task(t.queue, o.task.0),
                _ => false,
            };
            let tell = || our.map_or("none".to_owned(), |o| format!("{:?} of task {}", o.why, o.task.0));
            verdicts.add(Topic::Expiries, at, same, tell);
            if let (true, Some((at, t)), Some(o)) = (same, their, our) {
                judge_charge(*at, t, o, verdicts);
            }
        }
    }

    fn judge_selections(&self, case: &Case<'_>, ours: &Outcome, verdicts: &mut Verdicts) {
        let theirs = case.selections();
        for i in 0..theirs.len().max(ours.selections.len()) {
            let (their, our) = (theirs.get(i), ours.selections.get(i));
            let at = their.map(|(at, _)| *at);
            let same = match (their, our) {
                (Some((at, (name, _))), Some(o)) => match (self.named(case.step, *at), o.queue) {
                    (Some(q), Some(ours)) => q == ours,
                    _ => is_of_task(*name, o.task.0),
                },
                _ => false,
            };
            verdicts.add(Topic::Selections, at, same, || {
                our.map_or("none".to_owned(), |o| match o.queue {
                    Some(q) => label(self.elevator.scheduler(), q),
                    None => format!("task {}'s", o.task.0),
                })
            });
            if let (true, Some((at, (_, budget))), Some(o)) = (same, their, our) {
                verdicts
                    .add(Topic::Budgets, Some(*at), *budget == o.budget, || format!("budget {}", o.budget));
            }
        }
    }

    fn judge_sending(&self, step: &Step, ours: &Outcome, sent: Sent, verdicts: &mut Verdicts) {
        let at = step.says.iter().position(|s| matches!(s.say, Say::Returned | Say::ReturnedNone));
        let sends = sent != Sent::Nothing;
        let same = sends == ours.sent.is_some();
        verdicts.add(Topic::Attempts, at, same, || if sends { "none" } else { "a request" }.to_owned());
        let (Some(tag), Sent::Request(io)) = (ours.sent, sent) else { return };
        verdicts.add(Topic::Requests, at, self.tags.queued(&io) == Some(tag), || {
            let rq = self.elevator.requests()[tag].rq;
            format!("{:?} {} + {} instead of {}", rq.op, rq.start.0, rq.len.0, io.start.0)
        });
    }

    /// Whether the request is in the queue that the kernel put it into. Only where queues are made, merged or
    /// split.
    fn judge_home(&self, step: &Step, tag: Tag, verdicts: &mut Verdicts) {
        let Some(home) = self.heard.home else { return };
        let ours = self.elevator.scheduler().queue_of(tag);
        let is_new = self.names.at(home).is_none() && self.names.address_of(ours).is_none();
        let same = is_new || self.names.at(home) == Some(ours);
        let merges = |s: &Said| matches!(s.say, Say::Merging | Say::Split | Say::Allocated).then_some(());
        if !same || step.find(merges).is_some() || self.merging.contains_key(&step.thread) {
            let at = step.says.iter().position(|s| matches!(s.say, Say::Request { .. }));
            verdicts
                .add(Topic::Merges, at, same, || format!("into {}", label(self.elevator.scheduler(), ours)));
        }
    }

    fn judge_numbers(&self, case: &Case<'_>, ours: &Outcome, now: Instant, verdicts: &mut Verdicts) {
        for (at, expiry) in case.expiries() {
            self.judge_habits(case.step, at, &expiry, verdicts);
        }
        for (at, times) in &case.times {
            self.judge_times(case, *at, times, ours, verdicts);
        }
        for (at, said) in case.step.says.iter().enumerate() {
            match said.say {
                Say::Raising { .. } => self.judge_raising(case.step, at, said, now, verdicts),
                Say::MaxBudget { sectors } => {
                    let ours = self.elevator.scheduler().max_budget();
                    verdicts.add(Topic::Rate, Some(at), ours == sectors, || format!("max_budget = {ours}"));
                }
                _ => {}
            }
        }
    }

    fn judge_habits(&self, step: &Step, at: usize, expiry: &Expiry, verdicts: &mut Verdicts) {
        let Some(q) = self.named(step, at) else { return };
        let (before, after) = (self.before.scheduler().view(q), self.elevator.scheduler().view(q));
        let in_flight =
            if matches!(step.kind, Kind::Dispatch(_)) { before.in_flight } else { after.in_flight };
        let theirs = (expiry.in_flight, expiry.short_think, expiry.seeky.unwrap_or(after.seeky));
        let ours = (in_flight, after.short_think, after.seeky);
        verdicts.add(Topic::Habits, Some(at), theirs == ours, || {
            format!("in flight {}, short think time {}, seeky {}", ours.0, ours.1, ours.2)
        });
    }

    fn judge_times(
        &self,
        case: &Case<'_>,
        at: usize,
        theirs: &Times,
        ours: &Outcome,
        verdicts: &mut Verdicts,
    ) {
        let (step, arrived) = (case.step, case.arrived);
        let Some(q) = self.named_after(step, at, arrived) else { return };
        let v = self.elevator.scheduler().view(q);
        // The weight may change behind them, in the same step.
        let told = ours.times.iter().find(|t| t.task == v.task && (t.start, t.finish) == v.times);
        let weight = told.map_or(v.weight, |t| t.weight);
        let (start, finish) = self.times_as_told(q, &v, theirs);
        let tell = || format!("start {}, finish {}, w {weight}, serv {}", v.times.0, v.times.1, spent(&v));
        let same_service = finish == theirs.finish || spent(&v) == theirs.service;
        let same = (start, weight) == (theirs.start, theirs.weight) && same_service;
        verdicts.add(Topic::Inputs, Some(at), same, tell);
        if same {
            verdicts.add(Topic::Times, Some(at), finish == theirs.finish, tell);
        }
    }

    /// Our queue of the message's name, which may have come with the request.
    pub(super) fn named_after(&self, step: &Step, at: usize, arrived: Option<Tag>) -> Option<QueueRef> {
        let is_new = || self.address_at(step, at) == self.heard.home;
        let newcomer = || arrived.filter(|_| is_new()).map(|tag| self.elevator.scheduler().queue_of(tag));
        self.named(step, at).or_else(newcomer)
    }

    /// What resumes in the past is pulled up, which the kernel's message does not tell yet.
    pub(super) fn times_as_told(&self, q: QueueRef, v: &View, theirs: &Times) -> (u64, u64) {
        let before = self.before.scheduler().view(q);
        let pulled = v.times.0.wrapping_sub(theirs.start);
        let is_pulled = v.times.1.wrapping_sub(theirs.finish) == pulled && pulled < 1 << 62;
        let resumes = before.credit && !before.busy;
        if resumes && is_pulled { (theirs.start, theirs.finish) } else { v.times }
    }

    fn judge_raising(&self, step: &Step, at: usize, said: &Said, now: Instant, verdicts: &mut Verdicts) {
        let Say::Raising { age_ms, of_ms, factor, .. } = said.say else { return };
        let (age_ms, of_ms) = (u64::from(age_ms), u64::from(of_ms));
        let Some(q) = self.named(step, at) else { return };
        let selects = step.says.iter().any(|s| matches!(s.say, Say::Selected { .. }));
        let (before, after) = (self.before.scheduler().view(q), self.elevator.scheduler().view(q));
        let has_ended = after.factor != before.factor;
        let v = if selects && !has_ended { after } else { before };
        let age = now.floor_to(self.tick).saturating_since(v.raise_start).as_ms();
        // Selection may have shifted the start of what has ended since; that it has ended is all that the log
        // shows.
        let same_age = age == age_ms || selects && has_ended && age_ms > of_ms;
        let same = same_age && (v.raise_len.as_ms(), v.factor) == (of_ms, factor);
        verdicts.add(Topic::Raising, Some(at), same, || {
            format!("dur {age}/{} msec, coeff {}", v.raise_len.as_ms(), v.factor)
        });
    }
}

/// The charge for a turn, and whether it was slow.
fn judge_charge(at: usize, theirs: &Expiry, ours: &ours::Expiry, verdicts: &mut Verdicts) {
    let same_charge = theirs.service.is_none_or(|s| s == i64::from(ours.service));
    verdicts.add(Topic::Slow, Some(at), same_charge && theirs.slow == ours.slow, || {
        format!("slow {}, charged {}", ours.slow, ours.service)
    });
}

/// Whether a queue of that name is, or was, a task's.
fn is_of_task(name: Name, task: u32) -> bool {
    name.pid.is_none_or(|pid| pid == task)
}

/// What a queue's finish comes from: its budget while it waits or is served.
fn spent(v: &View) -> u64 {
    u64::from(if v.busy { v.budget } else { v.service })
}

/// By how much the kernel's clocks, read in the middle of a step, may differ from the time of the log's line.
//= deviates conform-clock
pub(super) const CLOCK_ERROR: Duration = Duration::from_us(50);
