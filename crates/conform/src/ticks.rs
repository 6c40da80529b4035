//! Where the recording kernel's ticks fell.
//!
//! BFQ reads some clocks in ticks of 1/HZ: whether a turn is over, how long a weight has been raised. A log
//! shows times in microseconds, but not where between two of them the tick counter moved. What was said
//! tells: a raised queue's age grows by one tick's worth only when a tick fell between two messages, and a
//! turn of 31 ticks that is over at one look and was not at the one before puts its last tick between them.
//! Each such pair of lines excludes some phases; the middle of what is left (to the microsecond) is taken.
//!
//! Example at HZ=250: ages of 40 and 44 ms at 5.000100 and 5.000900 s: a tick fell in the 800 us between.

use super::line::{Line, What};
use super::message::{Message, Name, Say};
use fairhead_core::{Duration, Instant};
use std::collections::BTreeMap;

/// Votes against phases, from the lines of a log.
pub(super) struct Phase {
    tick: Duration,
    /// The length of a tick in whole microseconds, rounded up: the number of phases that can be
    /// distinguished.
    tick_us: u64,
    /// By how many the votes against each phase, in microseconds, exceed those against the one before.
    steps: Vec<i64>,
    /// Of each queue: when a message told its age, and the age.
    ages: BTreeMap<Name, (u64, u64, u64)>,
    /// Of each queue: its weight less raising, and with it.
    weights: BTreeMap<Name, (u32, u32)>,
    /// Since when the queue in service has been.
    selected: Option<(Name, u64)>,
    timeout_ticks: u64,
}

/// More queues than that are not followed at once.
const QUEUES_MAX: usize = 1000;

impl Phase {
    /// For a kernel of that tick, whose turns last `timeout`.
    pub(super) fn new(tick: Duration, timeout: Duration) -> Self {
        let tick = tick.max(Duration::from_us(1));
        let tick_us = tick.as_ns().div_ceil(1000);
        let slots = usize::try_from(tick_us).unwrap_or(1) + 1;
        Self {
            tick,
            tick_us,
            steps: vec![0; slots],
            ages: BTreeMap::new(),
            weights: BTreeMap::new(),
            selected: None,
            timeout_ticks: timeout / tick,
        }
    }

    /// The length of a tick.
    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    /// Looks at a line.
    pub(super) fn look(&mut self, line: &Line) {
        let What::Message(Message { queue: Some(queue), say }) = line.what else { return };
        let at = us(line.at);
        if self.ages.len() > QUEUES_MAX || self.weights.len() > QUEUES_MAX {
            self.ages.clear();
            self.weights.clear();
        }
        match say {
            Say::Raising { age_ms, of_ms, weight, base, .. } => {
                let (age_ms, of_ms) = (u64::from(age_ms), u64::from(of_ms));
                self.weights.insert(queue, (base, weight));
                if let Some((then, age, of)) = self.ages.insert(queue, (at, age_ms, of_ms))
                    && of == of_ms
                    && age_ms >= age
                {
                    self.count(then, at, (age_ms - age) * 1_000_000 / self.tick.as_ns());
                }
            }
            Say::TimesFrom { weight, .. } => {
                let entry = self.weights.entry(queue).or_insert((weight, weight));
                *entry = (entry.0.min(weight), weight);
            }
            Say::Selected { .. } => self.selected = Some((queue, at)),
            Say::MayTimeOut { timed_out, .. } => self.looked_at_turn(queue, at, timed_out),
            // What is said of it before and after is not of one period.
            Say::Busy | Say::Merging => drop(self.ages.remove(&queue)),
            _ => {}
        }
    }

    /// A turn is over from the tick on that is `timeout_ticks` after the one that it began in.
    fn looked_at_turn(&mut self, queue: Name, at: u64, timed_out: bool) {
        let raised = self.weights.get(&queue).is_none_or(|(base, weight)| base != weight);
        let Some((_, since)) = self.selected.filter(|(q, _)| *q == queue && !raised) else { return };
        if self.surely(since, at) + 1 == self.timeout_ticks {
            self.exclude(since, at, !timed_out);
        }
    }

    /// Counts `ticks` ticks that fell after `from` and until `to`.
    fn count(&mut self, from: u64, to: u64, ticks: u64) {
        let surely = self.surely(from, to);
        // Anything else is no matter of phase, but of another raising.
        if ticks == surely || ticks == surely + 1 {
            self.exclude(from, to, ticks == surely);
        }
    }

    /// How many ticks fall after `from` and until `to` whatever the phase; there may be one more.
    fn surely(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from) * 1000 / self.tick.as_ns()
    }

    /// Where in its tick a time is, in microseconds.
    fn within(&self, at: u64) -> u64 {
        at * 1000 % self.tick.as_ns() / 1000
    }

    /// Votes against the phases by which, of the ticks after `from` and until `to`, there is one more than
    /// always; or against all the others.
    fn exclude(&mut self, from: u64, to: u64, those: bool) {
        let first = (self.within(from) + 1) % self.tick_us;
        let end = (self.within(to) + 1) % self.tick_us;
        if first == end {
            return;
        }
        if those {
            self.vote(first, end);
        } else {
            self.vote(end, first);
        }
    }

    /// A vote against the phases from `first` up to, and without, `end`; all if they are equal. May go around
    /// the end.
    fn vote(&mut self, first: u64, end: u64) {
        let index = |phase: u64| usize::try_from(phase).unwrap_or(0);
        self.steps[index(first)] += 1;
        if first < end {
            self.steps[index(end)] -= 1;
        } else {
            self.steps[index(self.tick_us)] -= 1;
            self.steps[0] += 1;
            self.steps[index(end)] -= 1;
        }
    }

    /// The votes against each phase.
    fn against(&self) -> Vec<i64> {
        let (_, steps) = self.steps.split_last().unwrap_or((&0, &[]));
        let mut sum = 0;
        steps
            .iter()
            .map(|step| {
                sum += step;
                sum
            })
            .collect()
    }

    /// The phase with the fewest votes against it, in the middle of its like: a tick falls at that time and
    /// at every whole number of ticks from there.
    pub(super) fn best(&self) -> Duration {
        let against = self.against();
        let least = against.iter().min().copied().unwrap_or(0);
        // The like may go around the end.
        let len = against.len();
        let at = |i: usize| against[i % len] == least;
        let Some(edge) = (0..len).find(|i| !at(*i)) else { return Duration::ZERO };
        let (mut best, mut run) = ((0, 0), 0);
        for i in edge..=edge + len {
            if at(i) {
                run += 1;
            } else {
                best = best.max((run, i - run));
                run = 0;
            }
        }
        let (run, first) = best;
        Duration::from_us(((first + run / 2) % len) as u64)
    }
}

fn us(at: Instant) -> u64 {
    at.saturating_since(Instant::EPOCH).as_us()
}

#[cfg(test)]
mod tests {
    use super::super::line;
    use super::*;

    fn look(phase: &mut Phase, us: u64, message: &str) {
        let text = format!("  a-5 [0] d..1. {}.{:06}: 7,0 1,0 m N {message}", us / 1_000_000, us % 1_000_000);
        phase.look(&line::parse(&text).unwrap());
    }

    /// Where ticks fall is found from ages as a kernel would tell them.
    #[test]
    fn ages_tell_the_phase() {
        const TRUTH: u64 = 1234;
        let mut phase = Phase::new(Duration::from_ms(4), Duration::from_ms(124));
        let tick = |us: u64| (us + 4000 - TRUTH) / 4000;
        for n in 0..2000 {
            let us = 7_000_000 + n * 777;
            let age = (tick(us) - tick(7_000_000)) * 4;
            look(
                &mut phase,
                us,
                &format!("bfq1S raising period dur {age}/10500 msec, old coeff 30, w 1200(40)"),
            );
        }
        assert!(phase.best().as_us().abs_diff(TRUTH) < 10, "{:?}", phase.best());
        assert_eq!(phase.against()[1234], 0);
    }

    /// Turns of 31 ticks show it, too; the phase may be next to zero.
    #[test]
    fn turns_tell_the_phase() {
        const TRUTH: u64 = 3999;
        let mut phase = Phase::new(Duration::from_ms(4), Duration::from_ms(124));
        let tick = |us: u64| (us + 4000 - TRUTH) / 4000;
        for n in 0..40 {
            let since = 7_000_000 + n * 150_077;
            look(&mut phase, since, "bfq1S calc_finish: serv 3435, w 40");
            look(&mut phase, since, "bfq1S set_in_service_queue, cur-budget = 10922");
            for us in (since + 118_000..since + 126_000).step_by(503) {
                let over = u32::from(tick(us) - tick(since) >= 31);
                look(
                    &mut phase,
                    us,
                    &format!("bfq1S may_budget_timeout: wait_request 0 left 1 timeout {over}"),
                );
            }
        }
        let off = (phase.best().as_us() + 4000 - TRUTH) % 4000;
        assert!(off.min(4000 - off) < 100, "{:?}", phase.best());
    }

    #[test]
    fn without_evidence_any_phase_will_do() {
        assert_eq!(Phase::new(Duration::from_ms(4), Duration::from_ms(124)).best(), Duration::ZERO);
        assert_eq!(Phase::new(Duration::ZERO, Duration::ZERO).best(), Duration::ZERO);
    }
}
