//! The race: rounds of seeds, after each of which those are let go that cannot win, and a confirmation on
//! fresh seeds.
//!
//! ```text
//!   round 1   3 seeds   a b c d e f g h     d, g: surely worse than the leader; e, h: in the worse half
//!   round 2  +3         a b c   . f         …
//!   round 3  +6         a b                 b is equal to a: settled, or the events are used up
//!   confirmation        a and the default, as many fresh seeds as a has run; if that leaves the answer open,
//!                       twice as many, up to 24
//! ```
//!
//! The first candidate is the default: it runs every seed, since everything is compared with it in pairs. No
//! clock and no chance are in here but those of the seeds; what a run gives is the caller's business, so that
//! tests make it up.

use super::figures::Figures;
use super::statistics::{Finding, Mean, Ratio};
use crate::resumable::Line;
use crate::rng::Rng;
use fairhead_core::Duration;

/// Seeds of the first round, and of the second; then the number of all seeds doubles. Three is the least of
/// which a deviation means anything, and the most that all candidates can have.
pub const FIRST_SEEDS: u32 = 3;
/// The most rounds: 48 seeds, with which an interval is a seventh as wide as a deviation on either side.
pub const ROUNDS_MAX: u32 = 5;
/// The least fresh seeds of a confirmation: a t of 2.57, where three have one of 4.30.
const CONFIRM_MIN: u32 = 6;
/// The most, which is also where a confirmation ends that leaves the answer open: from 24 on, t hardly
/// changes.
const CONFIRM_MAX: u32 = 24;
/// How sure one has to be to let a candidate go. Twenty candidates with as many chances to be let go wrongly:
/// 99 %.
const SURE: f64 = 0.99;
/// If no more than this many are left, only evidence removes one.
const KEPT: usize = 4;
/// The probability of the reported intervals.
pub const INTERVAL: f64 = 0.95;
/// A factor that is not worth mentioning, either way. Our choice: what the models are sure of is less.
pub const EQUAL: f64 = 1.05;
/// Of candidates whose scores differ by less than this factor, the plainest is chosen, not the best. It is
/// half of [`EQUAL`], so that the chosen one is within that of the best even if the runs have erred by the
/// other half.
//= docs/reference/choices.md#advise-near
pub const NEAR: f64 = 1.025;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Its figures.
    pub figures: Figures,
    /// The cost of the run, as [`work`](super::work) reckons.
    pub work: Duration,
}

/// Its figures as the bits of floating-point numbers, `-` for none, and its work.
impl Line for Run {
    fn write(&self) -> String {
        let figure = |f: Option<f64>| f.map_or_else(|| "-".to_owned(), |f| format!("{:016x}", f.to_bits()));
        let [a, b, c] = self.figures.list().map(figure);
        let [processors, kept] = [self.figures.processors, self.figures.kept].map(figure);
        format!("{a} {b} {c} {processors} {kept} {}", self.work.as_ns())
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut figure = || match words.next()? {
            "-" => Some(None),
            bits => u64::from_str_radix(bits, 16).ok().map(f64::from_bits).map(Some),
        };
        let (latency, throughput, fairness) = (figure()?, figure()?, figure()?);
        let figures = Figures { latency, throughput, fairness, processors: figure()?, kept: figure()? };
        let work = Duration::from_ns(words.next()?.parse().ok()?);
        words.next().is_none().then_some(Self { figures, work })
    }
}

/// Why a candidate runs no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetGo {
    /// Misses rates that the default keeps, by the mean after that round.
    Rate(u32),
    /// Surely worse than the leader after that round.
    Worse(u32),
    /// Not in the better half after that round.
    Half(u32),
}

/// A candidate in a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// Preferred to those that are not, if it is as good: it is in a kernel.
    pub is_choice: bool,
    /// The index of the entrant without its tunables: its own, if it has none.
    pub plain: usize,
}

/// The figures of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its runs in the race, seed by seed.
    pub race: Vec<Run>,
    /// Its runs in the confirmation; of finalists only.
    pub fresh: Vec<Run>,
    /// Why it was let go; none: it stayed to the end.
    pub let_go: Option<LetGo>,
}

/// Why the race ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All that are left are equal to the leader, or the leader is alone.
    Settled,
    /// The budget allows no further round.
    Budget,
    /// The asked number of rounds is done, or [`ROUNDS_MAX`].
    Rounds,
}

/// The rules of a race: how many rounds, and from which seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The weight of each figure in the score.
    pub weights: [f64; Figures::COUNT],
    /// The most work.
    pub work: Duration,
    /// The number of rounds, unless it is settled before. `None`: the budget decides.
    pub rounds: Option<u32>,
    /// The seed that the seeds of the runs are drawn from.
    pub seed: u64,
}

/// The state and result of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The figures of each candidate; the default is the first.
    pub standings: Vec<Standing>,
    /// The entrant with the best score in the end.
    pub best: usize,
    /// The entrant that led in the end: the first of the candidates that are as good as the best.
    pub leader: usize,
    /// The best of those that are preferred.
    pub choice: usize,
    /// How many rounds were run.
    pub rounds: u32,
    /// Why no more.
    pub end: End,
    /// The cost of all runs.
    pub work: Duration,
    weights: [f64; Figures::COUNT],
    entrants: Vec<Entrant>,
}

/// Seeds of the race, or of the confirmation. They have 53 bits, which JSON readers keep.
#[must_use]
pub fn seeds(seed: u64, name: &str, count: u32) -> Vec<u64> {
    let mut rng = Rng::new(seed, name);
    (0..count).map(|_| rng.next_u64() >> 11).collect()
}

/// The number of seeds after `round` rounds.
fn seeds_after(round: u32) -> u32 {
    FIRST_SEEDS << (round.clamp(1, ROUNDS_MAX) - 1)
}

/// The number of fresh seeds that confirm a race of `rounds` rounds.
#[must_use]
pub fn confirming(rounds: u32) -> u32 {
    seeds_after(rounds).clamp(CONFIRM_MIN, CONFIRM_MAX)
}

/// Runs candidates with seeds: takes a candidate and a seed for each run, and returns the results in order.
pub type Runner<'r, E> = dyn FnMut(u32, &[(usize, u64)]) -> Result<Vec<Run>, E> + 'r;

/// Races the candidates.
///
/// # Errors
/// The first of a run.
///
/// # Panics
/// If there is no candidate.
pub fn race<E>(entrants: &[Entrant], rules: &Rules, run: &mut Runner<'_, E>) -> Result<Race, E> {
    assert!(!entrants.is_empty(), "a race needs entrants");
    let none = Standing { race: Vec::new(), fresh: Vec::new(), let_go: None };
    let mut race = Race {
        standings: vec![none; entrants.len()],
        best: 0,
        leader: 0,
        choice: 0,
        rounds: 0,
        end: End::Rounds,
        work: Duration::ZERO,
        weights: rules.weights,
        entrants: entrants.to_vec(),
    };
    let all = seeds(rules.seed, "advise.race", seeds_after(ROUNDS_MAX));
    let rounds_max = rules.rounds.unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
    loop {
        race.round(&all, run)?;
        race.let_go();
        race.choice = race.best_choice();
        if race.is_settled() {
            race.end = End::Settled;
            break;
        }
        if race.rounds == rounds_max {
            break;
        }
        if rules.rounds.is_none() && race.next_costs() > rules.work {
            race.end = End::Budget;
            break;
        }
    }
    let fresh = seeds(rules.seed, "advise.confirm", CONFIRM_MAX);
    let mut count = confirming(race.rounds);
    race.confirm(&fresh[..count as usize], run)?;
    while race.is_open() && count < CONFIRM_MAX {
        let more = (2 * count).min(CONFIRM_MAX);
        race.confirm(&fresh[count as usize..more as usize], run)?;
        count = more;
    }
    Ok(race)
}

impl Race {
    /// The entrants that still contend.
    #[must_use]
    pub fn contenders(&self) -> Vec<usize> {
        (0..self.standings.len()).filter(|&c| self.standings[c].let_go.is_none()).collect()
    }

    /// The entrants that run: those that contend, and the default.
    fn running(&self) -> Vec<usize> {
        (0..self.standings.len()).filter(|&c| c == 0 || self.standings[c].let_go.is_none()).collect()
    }

    fn round<E>(&mut self, all: &[u64], run: &mut Runner<'_, E>) -> Result<(), E> {
        self.rounds += 1;
        let new = &all[self.standings[0].race.len()..seeds_after(self.rounds) as usize];
        let running = self.running();
        let work: Vec<(usize, u64)> =
            new.iter().flat_map(|&s| running.iter().map(move |&c| (c, s))).collect();
        for ((c, _), got) in work.iter().zip(run(self.rounds, &work)?) {
            self.standings[*c].race.push(got);
            self.work += got.work;
        }
        Ok(())
    }

    fn confirm<E>(&mut self, fresh: &[u64], run: &mut Runner<'_, E>) -> Result<(), E> {
        let finalists = self.finalists();
        let work: Vec<(usize, u64)> =
            fresh.iter().flat_map(|&s| finalists.iter().map(move |&c| (c, s))).collect();
        for ((c, _), got) in work.iter().zip(run(self.rounds + 1, &work)?) {
            self.standings[*c].fresh.push(got);
            self.work += got.work;
        }
        Ok(())
    }

    /// The entrants that are confirmed: the default, the best, the leader, the best that can be chosen, these
    /// two without their tunables, and all plain ones that can be chosen and still contend.
    #[must_use]
    pub fn finalists(&self) -> Vec<usize> {
        let plain = |c: usize| self.entrants[c].plain;
        let mut all = vec![0, self.best, self.leader, self.choice, plain(self.leader), plain(self.choice)];
        all.extend(self.contenders().into_iter().filter(|&c| plain(c) == c && self.is_choice(c)));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The logarithm of a candidate's score on the race's seed of that number.
    fn score(&self, candidate: usize, seed: usize) -> f64 {
        score(&self.weights, &self.standings[candidate].race[seed], &self.standings[0].race[seed])
    }

    /// Whether the candidate misses rates that the default keeps: of what the default keeps it keeps less
    /// than one part in [`EQUAL`], by the mean over all seeds that it ran. A job that does not get its rate
    /// has failed, whatever the others gain.
    #[must_use]
    pub fn misses(&self, candidate: usize) -> bool {
        let (c, default) = (&self.standings[candidate], &self.standings[0]);
        let pairs = c.race.iter().zip(&default.race).chain(c.fresh.iter().zip(&default.fresh));
        let logs = pairs.map(|(c, d)| kept(c, d)).collect::<Vec<_>>();
        Mean::of(&logs).mean < -libm::log(EQUAL)
    }

    fn mean_score(&self, candidate: usize) -> f64 {
        let n = self.standings[candidate].race.len();
        Mean::of(&(0..n).map(|s| self.score(candidate, s)).collect::<Vec<_>>()).mean
    }

    /// How much better the leader's score is, as a logarithm: its lower and upper bound, on the seeds that
    /// both ran.
    fn behind(&self, candidate: usize) -> (f64, f64) {
        let n = self.standings[candidate].race.len().min(self.standings[self.leader].race.len());
        let gaps: Vec<f64> = (0..n).map(|s| self.score(self.leader, s) - self.score(candidate, s)).collect();
        let mean = Mean::of(&gaps);
        let half = mean.half_width(SURE).unwrap_or(f64::INFINITY);
        (mean.mean - half, mean.mean + half)
    }

    fn is_equal(&self, candidate: usize) -> bool {
        let (low, high) = self.behind(candidate);
        let equal = libm::log(EQUAL);
        -equal <= low && high <= equal
    }

    /// After a round: finds the leader, and lets go who cannot win.
    fn let_go(&mut self) {
        let round = self.rounds;
        for c in self.contenders().into_iter().filter(|&c| self.misses(c)).collect::<Vec<_>>() {
            self.standings[c].let_go = Some(LetGo::Rate(round));
        }
        // The default never misses what it keeps; but once let go it leads no more.
        let mut ranked = self.contenders();
        if ranked.is_empty() {
            ranked.push(0);
        }
        let scores: Vec<f64> = (0..self.standings.len()).map(|c| self.mean_score(c)).collect();
        // Stable: of equal ones the earlier candidate is the better.
        ranked.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let best = ranked[0];
        (self.best, self.leader) = (best, best);
        // What differs by hardly anything is decided by the order of the candidates: the default, then plain
        // schedulers, then tunables.
        let is_within = |c: usize, factor: f64| scores[best] - scores[c] <= libm::log(factor);
        let is_as_good = |c: usize| is_within(c, NEAR) || self.is_equal(c);
        self.leader = ranked.iter().copied().filter(|c| is_as_good(*c)).min().unwrap_or(best);
        let half = ranked.len().div_ceil(2).max(KEPT);
        for (rank, &c) in ranked.iter().enumerate().filter(|r| *r.1 != self.leader) {
            let surely = self.behind(c).0 > 0.0 && !is_within(c, NEAR);
            // One that is hardly worse may be the best, or the plainest of the best: only evidence removes
            // it.
            let by_rank = rank >= half && !is_within(c, EQUAL);
            if !self.is_equal(c) && (surely || by_rank) {
                self.standings[c].let_go =
                    Some(if surely { LetGo::Worse(round) } else { LetGo::Half(round) });
            }
        }
    }

    /// Whether more runs would change nothing: all that are left are equal to the leader, and it is certain
    /// whether the leader is worth a change.
    fn is_settled(&self) -> bool {
        let others_are_equal = self.contenders().iter().all(|&c| c == self.leader || self.is_equal(c));
        let (low, high) = self.behind(0);
        let is_sure = low > libm::log(NEAR) || high < libm::log(NEAR);
        others_are_equal && (self.leader == 0 || is_sure)
    }

    /// The leader if it can be chosen; else the one that stayed longest of those that can be, and of these
    /// the best.
    fn best_choice(&self) -> usize {
        let is_choice = |c: usize| self.is_choice(c);
        if is_choice(self.leader) {
            return self.leader;
        }
        // The default runs all seeds even if it was let go: it did not stay longer for that.
        let stayed = |c: usize| match self.standings[c].let_go {
            None => u32::MAX,
            Some(LetGo::Rate(round) | LetGo::Worse(round) | LetGo::Half(round)) => round,
        };
        let is_better = |a: usize, b: usize| {
            stayed(a) > stayed(b) || (stayed(a) == stayed(b) && self.mean_score(a) > self.mean_score(b))
        };
        let all = (0..self.entrants.len()).filter(|&c| is_choice(c) && !self.misses(c));
        all.reduce(|best, c| if is_better(c, best) { c } else { best }).unwrap_or(0)
    }

    /// Returns the work after one more round and the longest confirmation, estimated from the runs so far.
    fn next_costs(&self) -> Duration {
        let per_run = |&c: &usize| {
            let runs = &self.standings[c].race;
            runs.iter().fold(Duration::ZERO, |sum, r| sum + r.work) / (runs.len() as u64).max(1)
        };
        let sum = |all: Vec<usize>| all.iter().map(per_run).fold(Duration::ZERO, |sum, w| sum + w);
        let more = u64::from(seeds_after(self.rounds + 1) - seeds_after(self.rounds));
        self.work + sum(self.running()) * more + sum(self.finalists()) * u64::from(CONFIRM_MAX)
    }

    /// A candidate's figures against another's, each where both have it, then the score; from the
    /// confirmation where both were in it, else from the race.
    #[must_use]
    pub fn against(&self, candidate: usize, other: usize) -> Comparison {
        let (a, b) = (&self.standings[candidate], &self.standings[other]);
        let confirmed = !a.fresh.is_empty() && !b.fresh.is_empty();
        let (a, b) = if confirmed { (&a.fresh, &b.fresh) } else { (&a.race, &b.race) };
        Comparison { confirmed, ..compare(&self.weights, a, b) }
    }

    /// The runs that a candidate's figures come from: the fresh ones if it has any, else those of the race.
    #[must_use]
    pub fn told(&self, candidate: usize) -> &[Run] {
        let s = &self.standings[candidate];
        if s.fresh.is_empty() { &s.race } else { &s.fresh }
    }

    /// The candidate's runs in the race.
    #[must_use]
    pub fn raced(&self, candidate: usize) -> &[Run] {
        &self.standings[candidate].race
    }

    /// Whether a kernel has it.
    #[must_use]
    pub fn is_choice(&self, candidate: usize) -> bool {
        self.entrants[candidate].is_choice
    }

    /// The mean of the logarithms of a finalist's scores, over all seeds that it ran.
    fn final_score(&self, candidate: usize) -> f64 {
        let (c, default) = (&self.standings[candidate], &self.standings[0]);
        let both = |c: &[Run], default: &[Run]| -> Vec<f64> {
            c.iter().zip(default).map(|(c, d)| score(&self.weights, c, d)).collect()
        };
        Mean::of(&[both(&c.race, &default.race), both(&c.fresh, &default.fresh)].concat()).mean
    }

    /// The entrant to advise. Of the finalists those count that are surely better than the default with the
    /// fresh seeds; without any, the default stays. The best of them is the one with the best score over all
    /// seeds. What is as good as that, the default included, is equal: of these the plainest is advised, and
    /// one that a kernel has before one that it has not.
    #[must_use]
    pub fn winner(&self) -> usize {
        let proven = self.proven();
        let Some(best) = self.best_of(&proven) else { return 0 };
        let is_as_good = |c: usize| match c {
            0 => self.final_score(best) <= libm::log(NEAR),
            c => self.is_as_good(c, best),
        };
        let as_good = proven.into_iter().chain([0]).filter(|&c| is_as_good(c));
        as_good.min_by_key(|&c| (c != 0, !self.is_choice(c), c)).unwrap_or(best)
    }

    /// The finalists that are surely better than the default, by more than is worth mentioning, and under
    /// which no job misses a rate.
    fn proven(&self) -> Vec<usize> {
        let is_better = |s: Ratio| s.low > 1.0 && s.finding(EQUAL) != Finding::NoDifference;
        let is_proven =
            |&c: &usize| c != 0 && !self.misses(c) && self.against(c, 0).score.is_some_and(is_better);
        self.finalists().into_iter().filter(is_proven).collect()
    }

    /// The one with the best score over all its seeds.
    fn best_of(&self, all: &[usize]) -> Option<usize> {
        all.iter().copied().max_by(|a, b| self.final_score(*a).total_cmp(&self.final_score(*b)))
    }

    /// Whether a finalist is as good as another: within [`NEAR`] over all seeds, or not surely worse with the
    /// fresh ones.
    fn is_as_good(&self, candidate: usize, best: usize) -> bool {
        let is_near = self.final_score(best) - self.final_score(candidate) <= libm::log(NEAR);
        is_near || self.against(candidate, best).score.is_none_or(|s| s.high >= 1.0)
    }

    /// Whether more fresh seeds might change the answer: one looks better than the default and is not proven,
    /// or hardly is; or one is equal to the best only because its interval is wide.
    fn is_open(&self) -> bool {
        let proven = self.proven();
        let Some(best) = self.best_of(&proven) else {
            let looks_better = |s: Ratio| s.ratio > NEAR && s.high > EQUAL && s.low <= 1.0;
            return self
                .finalists()
                .into_iter()
                .any(|c| c != 0 && !self.misses(c) && self.against(c, 0).score.is_some_and(looks_better));
        };
        let is_hardly_proven = self.against(best, 0).score.is_some_and(|s| s.low < NEAR);
        let is_wide = |s: Ratio| s.high >= 1.0 && s.low < 1.0 / EQUAL;
        let is_unclear = |&c: &usize| c != best && self.against(c, best).score.is_some_and(is_wide);
        is_hardly_proven || proven.iter().any(is_unclear)
    }

    /// Those that nothing beats: no other is better by [`EQUAL`] in one figure and not worse by as much in
    /// any, and no plainer one is there already from which it differs by less in all. By the means over the
    /// seeds that all ran, those of the first round.
    #[must_use]
    pub fn front(&self) -> Vec<usize> {
        let first = FIRST_SEEDS as usize;
        let means = |c: usize| -> Vec<f64> {
            let of = |i: usize| {
                let all = self.standings[c].race.iter().take(first).filter_map(move |r| r.figures.list()[i]);
                Mean::of(&all.map(libm::log).collect::<Vec<_>>()).mean
            };
            (0..Figures::COUNT).map(of).collect()
        };
        let all: Vec<Vec<f64>> = (0..self.standings.len()).map(means).collect();
        let equal = libm::log(EQUAL);
        let beats = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).all(|(a, b)| *a >= b - equal) && a.iter().zip(b).any(|(a, b)| *a > b + equal)
        };
        let is_same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= equal);
        let mut front: Vec<usize> = Vec::new();
        for c in 0..all.len() {
            let is_beaten = all.iter().any(|o| beats(o, &all[c]));
            if !is_beaten && !front.iter().any(|&o| is_same(&all[o], &all[c])) {
                front.push(c);
            }
        }
        front
    }
}

/// One candidate against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio to the default, by figure: above 1 is better.
    pub figures: [Option<Ratio>; Figures::COUNT],
    /// The score.
    pub score: Option<Ratio>,
    /// Whether the figures are from fresh seeds, not from those of the race.
    pub confirmed: bool,
}

/// Runs against others on the same seeds, in pairs.
pub(super) fn compare(weights: &[f64; Figures::COUNT], a: &[Run], b: &[Run]) -> Comparison {
    let of = |value: &dyn Fn(&Run, &Run) -> Option<f64>| -> Option<Ratio> {
        let logs: Vec<f64> = a.iter().zip(b).filter_map(|(a, b)| value(a, b)).collect();
        (!logs.is_empty()).then(|| Ratio::of(&logs, INTERVAL))
    };
    let figure = |i: usize| of(&|a, b| Some(libm::log(a.figures.list()[i]? / b.figures.list()[i]?)));
    let score = of(&|a, b| Some(score(weights, a, b)));
    Comparison { figures: std::array::from_fn(figure), score, confirmed: true }
}

/// The logarithm of the share of their rates that jobs get, over `base`'s share.
fn kept(run: &Run, base: &Run) -> f64 {
    match (run.figures.kept, base.figures.kept) {
        (Some(a), Some(b)) => libm::log(a / b),
        _ => 0.0,
    }
}

/// The logarithm of the weighted geometric mean of `run`'s figures over `base`'s, of those that both have.
/// What the throughput costs the processors counts with it; what is missed of rates counts in full.
fn score(weights: &[f64; Figures::COUNT], run: &Run, base: &Run) -> f64 {
    let (mut sum, mut all) = (weights[1] * libm::log(run.figures.price(&base.figures)), 0.0);
    for ((w, a), b) in weights.iter().zip(run.figures.list()).zip(base.figures.list()) {
        if let (Some(a), Some(b)) = (a, b) {
            sum += w * libm::log(a / b);
            all += w;
        }
    }
    kept(run, base) + if all > 0.0 { sum / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Finding;
    use super::*;

    const RULES: Rules =
        Rules { weights: [1.0, 0.0, 0.0], work: Duration::from_ns(1_000_000), rounds: None, seed: 1 };

    /// Candidates whose latency figure is `exp(mean)`, times `exp(noise)` that all share on a seed, times
    /// noise of their own.
    fn made_up(
        means: &[f64],
        own: f64,
        shared: f64,
    ) -> impl FnMut(u32, &[(usize, u64)]) -> Result<Vec<Run>, ()> {
        let means = means.to_vec();
        let unit = |rng: &mut Rng| rng.below(2001) as f64 / 1000.0 - 1.0;
        move |_, work| {
            let one = |&(c, s): &(usize, u64)| {
                let both = unit(&mut Rng::new(s, "both")) * shared;
                let alone = unit(&mut Rng::new(s, &format!("own.{c}"))) * own;
                let latency = Some(libm::exp(means[c] + both + alone));
                Run {
                    figures: Figures {
                        latency,
                        throughput: Some(1.0),
                        fairness: None,
                        processors: None,
                        kept: None,
                    },
                    work: Duration::from_ns(10),
                }
            };
            Ok(work.iter().map(one).collect())
        }
    }

    /// Entrants without tunables.
    fn entrants(choices: &[bool]) -> Vec<Entrant> {
        choices.iter().enumerate().map(|(plain, &is_choice)| Entrant { is_choice, plain }).collect()
    }

    fn run(means: &[f64], own: f64, rules: &Rules) -> Race {
        race(&entrants(&vec![true; means.len()]), rules, &mut made_up(means, own, 2.0)).unwrap()
    }

    #[test]
    fn common_seeds_find_a_small_gain_under_a_large_common_noise() {
        let r = run(&[0.0, 0.2, 0.1, -0.1], 0.02, &RULES);
        assert_eq!((r.leader, r.winner(), r.end), (1, 1, End::Settled));
        let score = r.against(1, 0).score.unwrap();
        assert!(score.low > 1.15 && score.high < 1.30, "{score:?}");
        assert!(r.against(1, 0).confirmed && !r.against(2, 0).confirmed);
    }

    #[test]
    fn the_default_stays_if_nothing_is_better() {
        let r = run(&[0.0, 0.01, 0.0, -0.5], 0.001, &RULES);
        assert_eq!(r.winner(), 0);
        assert_eq!(r.against(r.leader, 0).score.unwrap().finding(EQUAL), Finding::NoDifference);
        // Noise larger than the gain: nothing is found, and nothing recommended.
        assert_eq!(run(&[0.0, 0.02, 0.01], 0.5, &RULES).winner(), 0);
    }

    #[test]
    fn the_plainer_of_two_equals_leads() {
        let r = run(&[0.0, 0.5, 0.505, 0.1], 0.001, &RULES);
        assert_eq!((r.leader, r.winner(), r.standings[2].let_go), (1, 1, None));
        // But not if it is surely worse by more than is worth mentioning.
        assert_eq!(run(&[0.0, 0.5, 0.6, 0.1], 0.001, &RULES).winner(), 2);
    }

    /// Five that differ by less than the noise: whichever is best by chance, the plainest is named.
    #[test]
    fn among_near_equals_the_plainest_is_named_whatever_the_seed() {
        let named =
            |seed: u64| run(&[0.0, 0.5, 0.51, 0.505, 0.495, 0.508], 0.03, &Rules { seed, ..RULES }).winner();
        let others = (0..100).filter(|&seed| named(seed) != 1).count();
        assert!(others <= 5, "{others} of 100");
    }

    #[test]
    fn tunables_have_to_earn_their_place() {
        let with_tunables = |means: &[f64]| {
            let mut all = entrants(&[true, true, true]);
            all[2].plain = 1;
            race(&all, &RULES, &mut made_up(means, 0.002, 1.0)).unwrap()
        };
        // Better by 2 %, and found to be: it is the best, and is not taken.
        let r = with_tunables(&[0.0, 0.5, 0.52]);
        assert_eq!((r.best, r.leader, r.winner()), (2, 1, 1));
        assert_eq!(with_tunables(&[0.0, 0.5, 0.54]).winner(), 2);
        // Without its tunables it is no better than the default: that does not stand in its way.
        assert_eq!(with_tunables(&[0.0, 0.02, 0.05]).winner(), 2);
        assert_eq!(with_tunables(&[0.0, 0.0, 0.6]).winner(), 2);
    }

    /// Whatever the candidates are and however noisy: the named one is within 5 % of the best, twice the
    /// factor by which a plainer one is preferred, unless the best was not surely better than the default.
    #[test]
    fn who_is_named_is_within_5_percent_of_the_best() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, "means");
            let mut means: Vec<f64> = (0..8).map(|_| rng.below(100) as f64 / 1000.0).collect();
            means[0] = 0.0;
            let best = means.iter().copied().fold(0.0, f64::max);
            let named = run(&means, 0.02, &Rules { seed, ..RULES }).winner();
            assert!(best - means[named] <= libm::log(EQUAL), "seed {seed}: {named} of {means:?}");
        }
    }

    #[test]
    fn a_weak_win_is_none() {
        // By how much it is better, and the noise: perhaps much, perhaps nothing.
        assert_eq!(run(&[0.0, 0.3, 0.0], 1.5, &Rules { rounds: Some(1), ..RULES }).winner(), 0);
        assert_eq!(run(&[0.0, 0.3, 0.0], 0.05, &Rules { rounds: Some(1), ..RULES }).winner(), 1);
        // Sure, and not worth it.
        assert_eq!(run(&[0.0, 0.02, 0.0], 0.001, &RULES).winner(), 0);
    }

    /// One is better by a quarter under noise that three seeds do not see through: it is named with nearly
    /// all seeds, as the confirmation lasts until it is clear.
    #[test]
    fn an_open_answer_gets_more_fresh_seeds() {
        let races: Vec<Race> = (0..100)
            .map(|seed| run(&[0.0, 0.25, 0.0, 0.0], 0.25, &Rules { seed, rounds: Some(1), ..RULES }))
            .collect();
        let named = races.iter().filter(|r| r.winner() == 1).count();
        assert!(named >= 95, "{named} of 100");
        assert!(races.iter().any(|r| r.standings[0].fresh.len() > CONFIRM_MIN as usize));
        assert!(races.iter().all(|r| r.standings[0].fresh.len() <= CONFIRM_MAX as usize));
        // What is clear is not asked again.
        let clear = run(&[0.0, 0.5, 0.0], 0.001, &Rules { rounds: Some(1), ..RULES });
        assert_eq!(clear.standings[0].fresh.len(), CONFIRM_MIN as usize);
    }

    /// Tunables that look better by less than their interval, with fresh seeds, are not named.
    #[test]
    fn of_those_that_are_equal_within_their_intervals_the_plainest_is_named() {
        let mut all = entrants(&[true; 3]);
        all[2].plain = 1;
        let tuned = (0..100)
            .filter(|&seed| {
                let rules = Rules { seed, rounds: Some(1), ..RULES };
                race(&all, &rules, &mut made_up(&[0.0, 1.0, 1.0], 0.3, 1.0)).unwrap().winner() == 2
            })
            .count();
        assert!(tuned <= 5, "{tuned} of 100");
    }

    #[test]
    fn what_can_be_chosen_is_preferred_if_it_is_as_good() {
        let choices = entrants(&[true, false, true]);
        let r = race(&choices, &RULES, &mut made_up(&[0.0, 0.51, 0.5], 0.002, 1.0)).unwrap();
        assert_eq!((r.leader, r.choice, r.winner()), (1, 2, 2));
        let r = race(&choices, &RULES, &mut made_up(&[0.0, 0.9, 0.5], 0.002, 1.0)).unwrap();
        assert_eq!((r.leader, r.choice, r.winner()), (1, 2, 1));
    }

    #[test]
    fn the_budget_ends_it_and_the_number_of_rounds_repeats_it() {
        let means = [0.0, 0.1, 0.11, 0.12, 0.09];
        // Room for two rounds of five with six seeds, and 24 fresh ones of each.
        let budget = Duration::from_ns(10 * 5 * (6 + 24));
        let by_budget = run(&means, 0.3, &Rules { work: budget, ..RULES });
        assert!(by_budget.end == End::Budget && by_budget.rounds >= 2, "{}", by_budget.rounds);
        assert!(by_budget.work <= budget, "{}", by_budget.work.as_ns());
        let by_rounds = run(&means, 0.3, &Rules { rounds: Some(by_budget.rounds), ..RULES });
        assert_eq!(by_rounds.standings, by_budget.standings);
        assert!(run(&means, 0.3, &Rules { work: budget * 3, ..RULES }).rounds > by_budget.rounds);
        // The first round is run whatever it costs.
        assert_eq!(run(&means, 0.3, &Rules { work: Duration::ZERO, ..RULES }).rounds, 1);
    }

    #[test]
    fn a_candidate_is_seldom_let_go_that_is_the_best() {
        let wrong = (0..200_u64)
            .filter(|&seed| run(&[0.0, 0.3, 0.1, 0.1, 0.0, -0.2], 0.1, &Rules { seed, ..RULES }).leader != 1)
            .count();
        assert!(wrong <= 4, "{wrong} of 200");
    }

    #[test]
    fn fresh_seeds_are_not_those_of_the_race() {
        let (a, b) = (seeds(1, "advise.race", 48), seeds(1, "advise.confirm", 24));
        assert!(a.iter().all(|s| !b.contains(s)));
        assert!(a.iter().chain(&b).all(|s| *s < 1 << 53));
    }

    #[test]
    fn intervals_of_equal_candidates_hold_one_as_often_as_they_say() {
        let holds = (0..400_u64)
            .filter(|&seed| {
                let r = run(&[0.0, 0.0], 0.3, &Rules { seed, rounds: Some(2), ..RULES });
                let s = r.against(1, 0).score.unwrap();
                r.standings[1].fresh.is_empty() || (s.low <= 1.0 && 1.0 <= s.high)
            })
            .count();
        // 95 % of 400 is 380, with a deviation of 4.4.
        assert!(holds >= 366, "{holds} of 400");
    }

    /// Half of the throughput's weight of three, and a load that takes 60 % of the processors where the base
    /// takes 40 %.
    #[test]
    fn processor_time_is_a_price_of_the_throughput() {
        let run = |throughput: f64, busy: f64| Run {
            figures: Figures {
                latency: Some(1.0),
                throughput: Some(throughput),
                fairness: None,
                processors: Some(busy / throughput),
                kept: None,
            },
            work: Duration::ZERO,
        };
        let weights = [0.5, 0.5, 0.0];
        let of = |a: &Run, b: &Run| libm::exp(score(&weights, a, b));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(of(&run(100.0, 0.6), &run(100.0, 0.4)), libm::sqrt(1.4 / 1.6)));
        // At half of the work the same share of the processors is twice the cost: what the base did would
        // take 80 %.
        assert!(near(of(&run(50.0, 0.4), &run(100.0, 0.4)), libm::sqrt(0.5 * 1.4 / 1.8)));
        let free =
            Run { figures: Figures { processors: None, ..run(100.0, 0.0).figures }, work: Duration::ZERO };
        assert!(near(of(&free, &run(100.0, 0.4)), 1.0), "not told of both: no price");
        assert_eq!(Run::read(&run(100.0, 0.6).write()), Some(run(100.0, 0.6)));
    }

    /// One that halves a wait threefold, and under which a job gets 78 % of its rate, is not advised.
    #[test]
    fn a_missed_rate_is_a_failure_whatever_the_others_gain() {
        let answer = |kept: f64| {
            let mut fixed = |_: u32, work: &[(usize, u64)]| -> Result<Vec<Run>, ()> {
                let one = |&(c, _): &(usize, u64)| Run {
                    figures: Figures {
                        latency: Some(if c == 1 { 8.0 } else { 1.0 }),
                        throughput: Some(1.0),
                        fairness: None,
                        processors: None,
                        kept: Some(if c == 1 { kept } else { 1.0 }),
                    },
                    work: Duration::from_ns(1),
                };
                Ok(work.iter().map(one).collect())
            };
            let r = race(&entrants(&[true, true]), &RULES, &mut fixed).unwrap();
            (r.winner(), r.standings[1].let_go)
        };
        assert_eq!(answer(1.0), (1, None));
        assert_eq!(answer(14.0 / 18.0), (0, Some(LetGo::Rate(1))));
    }

    /// The front of candidates that have this latency and throughput with every seed.
    fn front(figures: &[(f64, f64)]) -> Vec<usize> {
        let mut fixed = |_: u32, work: &[(usize, u64)]| -> Result<Vec<Run>, ()> {
            let one = |&(c, _): &(usize, u64)| Run {
                figures: Figures {
                    latency: Some(figures[c].0),
                    throughput: Some(figures[c].1),
                    fairness: None,
                    processors: None,
                    kept: None,
                },
                work: Duration::from_ns(1),
            };
            Ok(work.iter().map(one).collect())
        };
        let entrants = entrants(&vec![true; figures.len()]);
        race(&entrants, &Rules { weights: [0.5, 0.5, 0.0], ..RULES }, &mut fixed).unwrap().front()
    }

    #[test]
    fn the_front_has_who_is_best_in_anything() {
        let figures = [(1.0, 1.0), (2.0, 0.5), (0.5, 2.0), (0.9, 0.9), (2.0, 0.4)];
        assert_eq!(front(&figures), [0, 1, 2]);
    }

    #[test]
    fn the_front_has_no_one_twice_and_nobody_for_a_trifle() {
        // 1 is as 0, 2 gains a trifle and loses much, 3 gains much.
        let figures = [(1.0, 1.0), (1.01, 0.99), (1.03, 0.5), (2.0, 0.96)];
        assert_eq!(front(&figures), [3]);
    }
}
