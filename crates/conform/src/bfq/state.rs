//! State that shows in a step's messages: what it was before, compared; and what it is after, adopted where
//! it differs.

use super::super::message::Say;
use super::super::report::Topic;
use super::super::step::{Kind, Step};
use super::judge::{CLOCK_ERROR, Case, Verdict};
use super::theirs::{Decision, Times};
use super::{Replay, label};
use fairhead_core::sched::bfq::Bfq;
use fairhead_core::sched::bfq::conform::QueueRef;
use fairhead_core::{Duration, Instant};

/// Counting.
impl Replay {
    /// Counts verdicts.
    pub(super) fn count(&mut self, step: &Step, verdicts: Vec<Verdict>) {
        for Verdict { topic, at, ours } in verdicts {
            match ours {
                None => self.tally.agree(topic),
                Some(ours) => self.differ(topic, step, at, ours),
            }
        }
    }

    /// Counts a difference about the message at `at`, or about the step.
    pub(super) fn differ(&mut self, topic: Topic, step: &Step, at: Option<usize>, ours: String) {
        let said = at.and_then(|at| step.says.get(at));
        let (line, text) = said.map_or((step.line, &*step.text), |s| (s.line, &*s.text));
        let (before, shift) = (self.before.scheduler(), self.shift);
        self.tally.differ(topic, line, text, || {
            let state = describe(before, shift);
            (ours, if topic == Topic::Selections { state + &candidates(before) } else { state })
        });
    }
}

/// The queues that wait for the disk, with start and finish relative to virtual time.
fn candidates(bfq: &Bfq) -> String {
    let mut text = String::new();
    for q in bfq.busy().take(20) {
        let v = bfq.view(q);
        let from_now = |t: u64| t.wrapping_sub(v.vtime).cast_signed();
        let (start, finish) = (from_now(v.times.0), from_now(v.times.1));
        text += &format!("; {} V{start:+} to V{finish:+} ({:?} {})", label(bfq, q), v.class, v.weight);
    }
    text
}

/// The state that decisions come from, in a line.
fn describe(bfq: &Bfq, shift: Duration) -> String {
    let Some(q) = bfq.serving() else { return format!("no queue in service, {} busy", bfq.busy_queues()) };
    let v = bfq.view(q);
    let deadline = v.deadline.saturating_since(Instant::EPOCH + shift).as_us();
    format!(
        "{} in service, {} busy; budget {} of which {} used, next {}; {} queued, {} in flight; slot until {}.{:06}{}; \
         weight {} = {} * {}; {:?}",
        label(bfq, q),
        bfq.busy_queues(),
        v.budget,
        v.service,
        v.next_budget,
        v.queued,
        v.in_flight,
        deadline / 1_000_000,
        deadline % 1_000_000,
        if v.waiting { ", waiting" } else { "" },
        v.weight,
        v.base_weight,
        v.factor,
        bfq.explain(q)
    )
}

/// Before the step runs.
impl Replay {
    /// Compares the state that the step finds with ours, and adopts it.
    pub(super) fn look_before(&mut self, step: &Step) {
        self.before.clone_from(&self.elevator);
        for (at, said) in step.says.iter().enumerate() {
            match said.say {
                Say::Attempt { busy } => self.busy(step, at, busy),
                Say::MayTimeOut { waiting, has_left, timed_out } => {
                    self.waiting(step, at, (waiting, has_left, timed_out));
                }
                Say::Bounds { next, .. } => self.next_budget(step, at, next),
                _ => {}
            }
        }
    }

    fn busy(&mut self, step: &Step, at: usize, busy: u32) {
        let ours = self.elevator.scheduler().busy_queues();
        let ours = (ours != busy).then(|| format!("{ours} busy queues"));
        self.count(step, vec![Verdict { topic: Topic::Habits, at: Some(at), ours }]);
    }

    /// Of the queue in service.
    fn waiting(&mut self, step: &Step, at: usize, theirs: (bool, bool, bool)) {
        let bfq = self.elevator.scheduler();
        let Some(q) = bfq.serving() else { return };
        let v = bfq.view(q);
        let left = i64::from(v.budget) - i64::from(v.service);
        let now = self.now(step);
        let surely = (now + CLOCK_ERROR >= v.deadline) == (now >= v.deadline + CLOCK_ERROR);
        let timed_out = if surely { now >= v.deadline } else { theirs.2 };
        let ours = (v.waiting, left >= i64::from(v.budget / 3), timed_out);
        let tell = || {
            let [waiting, left, timed_out] = [ours.0, ours.1, ours.2].map(u32::from);
            format!("wait_request {waiting} left {left} timeout {timed_out}")
        };
        let verdict = Verdict { topic: Topic::Waiting, at: Some(at), ours: (ours != theirs).then(tell) };
        self.count(step, vec![verdict]);
        if ours.0 != theirs.0 {
            self.latest = now;
            self.elevator.override_state(now, |bfq, cx| bfq.force_waiting(cx, theirs.0));
        }
    }

    fn next_budget(&mut self, step: &Step, at: usize, next: u32) {
        let Some(q) = self.named(step, at) else { return };
        let v = self.elevator.scheduler().view(q);
        // For a raised queue the log has another number, which does not count.
        if v.factor > 1 {
            return;
        }
        let ours = (v.next_budget != next).then(|| format!("next budget {}", v.next_budget));
        let differs = ours.is_some();
        self.count(step, vec![Verdict { topic: Topic::Feedback, at: Some(at), ours }]);
        if differs {
            self.latest = self.now(step);
            self.elevator.override_state(self.latest, |bfq, _| bfq.adopt_next_budget(q, next));
        }
    }

    /// Our queue that a message is about.
    pub(super) fn named(&self, step: &Step, at: usize) -> Option<QueueRef> {
        self.names.at(self.address_at(step, at)?)
    }

    /// The address of the queue that a message is about. Where several have its name: at an arrival the
    /// request's queue until one expires; then, and elsewhere, the one in service, until another is selected,
    /// which is the request's that is sent.
    pub(super) fn address_at(&self, step: &Step, at: usize) -> Option<u64> {
        if let Some(address) = self.heard.addresses.get(at).copied().flatten() {
            return Some(address);
        }
        let has = |what: fn(&Say) -> bool| step.says[..=at].iter().any(|s| what(&s.say));
        match step.kind {
            Kind::Insert(_) if !has(|s| matches!(s, Say::Slow(_) | Say::Expired { .. })) => self.heard.home,
            Kind::Dispatch(sent) if has(|s| matches!(s, Say::Selected { .. })) => self.home_of(Some(sent)),
            _ => self.before.scheduler().serving().and_then(|q| self.names.address_of(q)),
        }
    }
}

/// After it has run.
impl Replay {
    /// Compares the state that the step leaves with ours, and adopts it.
    pub(super) fn adopt(&mut self, case: &Case<'_>, now: Instant) {
        let step = case.step;
        for (at, decision) in &case.decisions {
            let Some(q) = self.named(step, *at) else { continue };
            match *decision {
                Decision::Expire(expiry) => {
                    self.elevator.override_state(now, |bfq, _| bfq.adopt_short_think(q, expiry.short_think));
                }
                Decision::Select { budget, .. } if self.elevator.scheduler().serving() == Some(q) => {
                    self.elevator.override_state(now, |bfq, _| bfq.adopt_budget(q, budget));
                }
                Decision::Select { .. } => {}
            }
        }
        for (at, times) in &case.times {
            let Some(q) = self.named_after(step, *at, case.arrived) else { continue };
            if case.arrived.is_some() {
                self.adopt_weight(step, q, times, now);
            }
            let v = self.elevator.scheduler().view(q);
            if self.times_as_told(q, &v, times) != (times.start, times.finish) {
                self.elevator
                    .override_state(now, |bfq, _| bfq.adopt_times(now, q, times.start, times.finish));
            }
        }
        for (at, said) in step.says.iter().enumerate() {
            match said.say {
                Say::Raising { .. } => self.adopt_raising(step, at, now),
                Say::MaxBudget { sectors } => {
                    self.elevator.override_state(now, |bfq, _| bfq.adopt_max_budget(sectors));
                }
                _ => {}
            }
        }
    }

    /// What a queue weighs that gets a request tells whether it is raised, which its budget depends on, too.
    fn adopt_weight(&mut self, step: &Step, q: QueueRef, times: &Times, now: Instant) {
        let v = self.elevator.scheduler().view(q);
        let (base, weight) = (v.base_weight.max(1), times.weight);
        let factor = weight / base;
        // A factor that ours has changed, too, counts from its next activation on.
        let differs = weight != v.weight && factor != v.factor;
        if !differs || !weight.is_multiple_of(base) || factor == 0 {
            return;
        }
        let began = step.says.iter().any(|s| s.say == Say::Allocated);
        self.elevator.override_state(now, |bfq, cx| {
            bfq.adopt_factor(cx, q, factor, began);
            if let (true, Ok(budget)) = (v.busy, u32::try_from(times.service)) {
                bfq.adopt_budget(q, budget);
            }
        });
    }

    /// What is said before the end of raising is looked for; it may have ended.
    fn adopt_raising(&mut self, step: &Step, at: usize, now: Instant) {
        let Say::Raising { age_ms, of_ms, factor, .. } = step.says[at].say else { return };
        let (age_ms, of_ms, factor) = (u64::from(age_ms), u64::from(of_ms), factor.max(1));
        let Some(q) = self.named(step, at).filter(|_| age_ms <= of_ms) else { return };
        let start = now.floor_to(self.tick) - Duration::from_ms(age_ms);
        let len = Duration::from_ms(of_ms);
        let (v, before) = (self.elevator.scheduler().view(q), self.before.scheduler().view(q));
        let has_ended = v.factor != factor && before.factor == factor;
        // A tick that came late is no state.
        let near = v.raise_start.max(start).since(v.raise_start.min(start)) <= self.tick;
        if !has_ended && ((v.factor, v.raise_len) != (factor, len) || !near) {
            self.elevator.override_state(now, |bfq, _| bfq.adopt_raise(q, factor, start, len));
        }
    }
}
