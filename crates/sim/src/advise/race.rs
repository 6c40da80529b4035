//! A race: rounds of seeds, after each of which those are let go that cannot win, and a confirmation on
//! fresh seeds.
//!
//! ```text
//!   round 1   3 seeds   a b c d e f g h     d, g: surely worse than the leader; e, h: in the worse half
//!   round 2  +3         a b c   . f         …
//!   round 3  +6         a b                 b is equal to a: settled, or the events are used up
//!   confirmation        a and the base, as many fresh seeds as a has run; those that leave the answer open
//!                       twice as many, up to 24, or to 96 within the budget
//! ```
//!
//! The first entrant is the *base*: it runs every seed, since everything is compared with it in pairs. No
//! clock and no chance are in here but those of the seeds; what a run gives is the caller's business, so that
//! tests make it up. Runs that the book has already are not run again, so a candidate may enter several
//! races.

use super::book::{Book, EQUAL, Floor, NEAR, Run, SURE};
use super::statistics::{Mean, Ratio};
use crate::rng::Rng;
use fairhead_core::Duration;

/// Seeds of the first round, and of the second; then the number of all seeds doubles. Three is the least of
/// which a deviation means anything, and the most that all candidates can have.
pub const FIRST_SEEDS: u32 = 3;
/// The most rounds: 48 seeds, with which an interval is a seventh as wide as a deviation on either side.
pub const ROUNDS_MAX: u32 = 5;
/// The least fresh seeds of a confirmation: a t of 2.57, where three have one of 4.30.
const CONFIRM_MIN: u32 = 6;
/// As many as a confirmation that leaves the answer open has, whatever they take.
const CONFIRM_OPEN: u32 = 24;
/// The most, if the budget allows them: intervals are half as wide.
pub const CONFIRM_MAX: u32 = 96;
/// If no more than this many are left, only evidence removes one.
const KEPT: usize = 4;

/// Why a candidate runs no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetGo {
    /// A floor bars it, after that round.
    Barred(usize, Floor, u32),
    /// Surely worse than the leader after that round.
    Worse(u32),
    /// Not in the better half after that round.
    Half(u32),
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
    /// The most work.
    pub work: Duration,
    /// The number of rounds, unless it is settled before. `None`: the budget decides.
    pub rounds: Option<u32>,
    /// The most fresh seeds of the confirmation.
    pub fresh: u32,
    /// The most work of the race and its confirmation, up to 24 fresh seeds; with more it is `work`.
    pub confirming: Duration,
    /// The seed that the seeds of the runs are drawn from.
    pub seed: u64,
}

/// The state and result of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The candidates that run, as numbers in the book; the base is the first.
    pub entrants: Vec<usize>,
    /// Why each was let go; none: it stayed to the end.
    pub let_go: Vec<Option<LetGo>>,
    /// The entrant that led in the end: the first of those that are as good as the best.
    pub leader: usize,
    /// The entrant with the best satisfaction in the end.
    pub best: usize,
    /// The candidate to advise, as a number in the book.
    pub winner: usize,
    /// How many rounds were run.
    pub rounds: u32,
    /// Why no more.
    pub end: End,
    /// The cost of the runs that were made for it.
    pub work: Duration,
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
    seeds_after(rounds).clamp(CONFIRM_MIN, CONFIRM_OPEN)
}

/// Runs candidates with seeds: takes a candidate and a seed for each run, and returns the results in order.
pub type Runner<'r, E> = dyn FnMut(u32, &[(usize, u64)]) -> Result<Vec<Run>, E> + 'r;

/// Which runs of the book.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Race,
    Fresh,
}

/// A race that runs.
struct Running<'b> {
    book: &'b mut Book,
    race: Race,
    race_seeds: Vec<u64>,
    fresh_seeds: Vec<u64>,
}

/// Races candidates of the book, the base first.
///
/// # Errors
/// The first of a run.
///
/// # Panics
/// If there is no candidate.
pub fn race<E>(
    book: &mut Book,
    entrants: &[usize],
    rules: &Rules,
    run: &mut Runner<'_, E>,
) -> Result<Race, E> {
    assert!(!entrants.is_empty(), "a race needs entrants");
    let race = Race {
        entrants: entrants.to_vec(),
        let_go: vec![None; entrants.len()],
        leader: 0,
        best: 0,
        winner: entrants[0],
        rounds: 0,
        end: End::Rounds,
        work: Duration::ZERO,
    };
    let race_seeds = seeds(rules.seed, "advise.race", seeds_after(ROUNDS_MAX));
    let fresh_seeds = seeds(rules.seed, "advise.confirm", CONFIRM_MAX);
    let mut running = Running { book, race, race_seeds, fresh_seeds };
    loop {
        running.rounds(rules, run)?;
        running.confirm(rules, run)?;
        if !running.bar_finalists() {
            break;
        }
    }
    let winner = running.winner();
    running.race.winner = running.candidate(winner);
    Ok(running.race)
}

impl Running<'_> {
    fn rounds<E>(&mut self, rules: &Rules, run: &mut Runner<'_, E>) -> Result<(), E> {
        let most = rules.rounds.unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
        loop {
            self.race.rounds += 1;
            let running = self.running();
            self.bring_to(Part::Race, &running, seeds_after(self.race.rounds), run)?;
            self.let_go();
            if self.is_settled() {
                self.race.end = End::Settled;
                return Ok(());
            }
            if self.race.rounds == most {
                return Ok(());
            }
            if rules.rounds.is_none() && self.next_costs(rules.fresh.min(CONFIRM_OPEN)) > rules.work {
                self.race.end = End::Budget;
                return Ok(());
            }
        }
    }

    /// Runs the finalists with fresh seeds, then those that leave the answer open with more, until it is
    /// clear.
    fn confirm<E>(&mut self, rules: &Rules, run: &mut Runner<'_, E>) -> Result<(), E> {
        let most = rules.fresh.clamp(CONFIRM_MIN, CONFIRM_MAX);
        let mut count = confirming(self.race.rounds).min(most);
        self.bring_to(Part::Fresh, &self.finalists(), count, run)?;
        loop {
            let open = self.open();
            if open.is_empty() || count >= most {
                return Ok(());
            }
            let more = (2 * count).min(most) - count;
            let bound = if count + more > CONFIRM_OPEN { rules.work } else { rules.confirming };
            if self.race.work + self.costs(&open) * u64::from(more) > bound {
                return Ok(());
            }
            count += more;
            self.bring_to(Part::Fresh, &open, count, run)?;
        }
    }

    /// Lets the finalists go that a floor bars by all seeds. Those that were let go since one of them was
    /// better contend again. Returns whether there is one: the race is then run once more, from its last
    /// round.
    fn bar_finalists(&mut self) -> bool {
        let round = self.race.rounds;
        let barred: Vec<(usize, (usize, Floor))> = self
            .finalists()
            .into_iter()
            .filter(|&e| e != 0 && self.race.let_go[e].is_none())
            .filter_map(|e| Some((e, self.floor(e)?)))
            .collect();
        if barred.is_empty() {
            return false;
        }
        let is_worse = |l: &Option<LetGo>| matches!(l, Some(LetGo::Worse(_) | LetGo::Half(_)));
        self.race.let_go.iter_mut().filter(|l| is_worse(l)).for_each(|l| *l = None);
        for (e, (job, floor)) in barred {
            self.race.let_go[e] = Some(LetGo::Barred(job, floor, round));
        }
        self.race.rounds = round - 1;
        true
    }

    fn candidate(&self, entrant: usize) -> usize {
        self.race.entrants[entrant]
    }

    /// The entrants that still contend.
    fn contenders(&self) -> Vec<usize> {
        (0..self.race.entrants.len()).filter(|&e| self.race.let_go[e].is_none()).collect()
    }

    /// The entrants that run: those that contend, and the base.
    fn running(&self) -> Vec<usize> {
        (0..self.race.entrants.len()).filter(|&e| e == 0 || self.race.let_go[e].is_none()).collect()
    }

    /// Runs what these entrants lack of the first `count` seeds.
    fn bring_to<E>(
        &mut self,
        part: Part,
        entrants: &[usize],
        count: u32,
        run: &mut Runner<'_, E>,
    ) -> Result<(), E> {
        let round = self.race.rounds + u32::from(part == Part::Fresh);
        let seeds = if part == Part::Race { &self.race_seeds } else { &self.fresh_seeds };
        let mut todo = Vec::new();
        for (i, &seed) in seeds.iter().enumerate().take(count as usize) {
            for &e in entrants {
                let s = &self.book.standings[self.race.entrants[e]];
                let has = if part == Part::Race { s.race.len() } else { s.fresh.len() };
                todo.extend((i >= has).then_some((self.race.entrants[e], seed)));
            }
        }
        if todo.is_empty() {
            return Ok(());
        }
        for ((candidate, _), got) in todo.iter().zip(run(round, &todo)?) {
            self.race.work += got.work;
            let s = &mut self.book.standings[*candidate];
            if part == Part::Race { s.race.push(got) } else { s.fresh.push(got) }
        }
        Ok(())
    }

    /// The entrants that are confirmed: the base, the best, the leader, and the first four that contend.
    /// Where none is ahead of the base by half of what is worth a change, nothing is to be confirmed.
    fn finalists(&self) -> Vec<usize> {
        let mean = |e: usize| Mean::of(&self.logs(e)).mean;
        let is_ahead = self.contenders().into_iter().any(|e| mean(e) - mean(0) > libm::log(NEAR));
        let mut all = vec![0];
        if is_ahead {
            all.extend([self.race.best, self.race.leader]);
            all.extend(self.contenders().into_iter().take(KEPT));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The logarithm of how satisfied the load is under an entrant, on each seed of the race.
    fn logs(&self, entrant: usize) -> Vec<f64> {
        self.book.logs(&self.book.standings[self.candidate(entrant)].race)
    }

    /// How much better the leader is, as a logarithm: its lower and upper bound, on the seeds that both ran.
    fn behind(&self, entrant: usize) -> (f64, f64) {
        let (leader, other) = (self.logs(self.race.leader), self.logs(entrant));
        let gaps: Vec<f64> = leader.iter().zip(other).map(|(a, b)| a - b).collect();
        let mean = Mean::of(&gaps);
        let half = mean.half_width(SURE).unwrap_or(f64::INFINITY);
        (mean.mean - half, mean.mean + half)
    }

    fn is_equal(&self, entrant: usize) -> bool {
        let (low, high) = self.behind(entrant);
        let equal = libm::log(EQUAL);
        -equal <= low && high <= equal
    }

    fn floor(&self, entrant: usize) -> Option<(usize, Floor)> {
        self.book.floor(self.candidate(entrant), self.candidate(0))
    }

    /// After a round: finds the leader, and lets go who cannot win.
    fn let_go(&mut self) {
        let round = self.race.rounds;
        for e in self.contenders() {
            let barred = self.book.surely_barred(self.candidate(e), self.candidate(0));
            self.race.let_go[e] = barred.map(|(job, floor)| LetGo::Barred(job, floor, round));
        }
        // The base is never barred; but once let go it leads no more. What a floor bars so far does not lead.
        let mut ranked = self.contenders();
        ranked.retain(|&e| self.floor(e).is_none());
        if ranked.is_empty() {
            ranked.push(0);
        }
        let means: Vec<f64> = (0..self.race.entrants.len()).map(|e| Mean::of(&self.logs(e)).mean).collect();
        // Stable: of equal ones the earlier candidate is the better.
        ranked.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
        let best = ranked[0];
        (self.race.best, self.race.leader) = (best, best);
        // What differs by hardly anything is decided by the order of the candidates: the base, then plain
        // schedulers, then tunables.
        let is_within = |e: usize, factor: f64| means[best] - means[e] <= libm::log(factor);
        let is_as_good = |e: usize| is_within(e, NEAR) || self.is_equal(e);
        self.race.leader = ranked.iter().copied().filter(|e| is_as_good(*e)).min().unwrap_or(best);
        let half = ranked.len().div_ceil(2).max(KEPT);
        for (rank, &e) in ranked.iter().enumerate().filter(|r| *r.1 != self.race.leader) {
            let surely = self.behind(e).0 > 0.0 && !is_within(e, NEAR);
            // One that is hardly worse may be the best, or the plainest of the best: only evidence removes
            // it.
            let by_rank = rank >= half && !is_within(e, EQUAL);
            if !self.is_equal(e) && (surely || by_rank) {
                self.race.let_go[e] = Some(if surely { LetGo::Worse(round) } else { LetGo::Half(round) });
            }
        }
    }

    /// Whether more runs would change nothing: it is certain whether the leader is worth a change, no other
    /// is better than the leader by what is worth one, and none that is plainer may be as good.
    fn is_settled(&self) -> bool {
        let (equal, leader) = (libm::log(EQUAL), self.race.leader);
        let is_out = |&e: &usize| {
            let (low, _) = self.behind(e);
            e == leader || self.is_equal(e) || -low < equal && (e > leader || low > 0.0)
        };
        let (low, high) = self.behind(0);
        let is_sure = leader == 0 || low > equal || high < equal;
        is_sure && self.contenders().iter().filter(|&&e| e != 0).all(is_out)
    }

    /// Returns the work of one more run of each of these, estimated from their runs so far.
    fn costs(&self, entrants: &[usize]) -> Duration {
        let per_run = |&e: &usize| {
            let runs = &self.book.standings[self.candidate(e)].race;
            runs.iter().fold(Duration::ZERO, |sum, r| sum + r.work) / (runs.len() as u64).max(1)
        };
        entrants.iter().map(per_run).fold(Duration::ZERO, |sum, w| sum + w)
    }

    /// Returns the work after one more round and the longest confirmation, estimated from the runs so far.
    fn next_costs(&self, fresh: u32) -> Duration {
        let more = u64::from(seeds_after(self.race.rounds + 1) - seeds_after(self.race.rounds));
        self.race.work + self.costs(&self.running()) * more + self.costs(&self.finalists()) * u64::from(fresh)
    }

    /// How much more satisfied the load is under a finalist than under another, as a logarithm: the mean over
    /// all seeds that both ran.
    fn lead(&self, entrant: usize, other: usize) -> f64 {
        let [a, b] = [entrant, other].map(|e| &self.book.standings[self.candidate(e)]);
        let gaps = |a: &[Run], b: &[Run]| -> Vec<f64> {
            self.book.logs(a).iter().zip(self.book.logs(b)).map(|(a, b)| a - b).collect()
        };
        Mean::of(&[gaps(&a.race, &b.race), gaps(&a.fresh, &b.fresh)].concat()).mean
    }

    /// How much more satisfied the load is under a finalist than under the base, as a logarithm.
    fn final_mean(&self, entrant: usize) -> f64 {
        self.lead(entrant, 0)
    }

    fn against(&self, entrant: usize, other: usize) -> Ratio {
        self.book.against(self.candidate(entrant), self.candidate(other)).load
    }

    /// The entrant to advise. Of the finalists those count that are surely better than the base with the
    /// fresh seeds; without any, the base stays. The best of them has the best mean over all seeds. What is
    /// as good as that, the base included, is equal: of these the plainest is advised.
    fn winner(&self) -> usize {
        let proven = self.proven();
        let Some(best) = self.best_of(&proven) else { return 0 };
        let is_as_good = |e: usize| match e {
            0 => self.final_mean(best) <= libm::log(NEAR),
            e => self.is_as_good(e, best),
        };
        proven.into_iter().chain([0]).filter(|&e| is_as_good(e)).min().unwrap_or(best)
    }

    /// The finalists that are surely better than the base by more than the models may err, and that no floor
    /// bars.
    fn proven(&self) -> Vec<usize> {
        let is_proven = |&e: &usize| e != 0 && self.floor(e).is_none() && self.against(e, 0).low > EQUAL;
        self.finalists().into_iter().filter(is_proven).collect()
    }

    /// The one with the best mean over all its seeds.
    fn best_of(&self, all: &[usize]) -> Option<usize> {
        all.iter().copied().max_by(|a, b| self.final_mean(*a).total_cmp(&self.final_mean(*b)))
    }

    /// Whether a finalist is as good as another: within [`NEAR`] over all seeds, or not surely worse with the
    /// fresh ones.
    fn is_as_good(&self, entrant: usize, best: usize) -> bool {
        self.lead(best, entrant) <= libm::log(NEAR) || self.against(entrant, best).high >= 1.0
    }

    /// The finalists whose fresh seeds decide while the answer is open, the base among them; none if it is
    /// clear. An entrant leaves it open that looks better than the base and is not proven; that looks better
    /// than all others and is barred, and not surely; or that is equal to the best only since its interval is
    /// wide. What the others have is enough to say that they do not win.
    fn open(&self) -> Vec<usize> {
        let proven = self.proven();
        let best = self.best_of(&proven);
        let is_ahead = |e: usize| self.final_mean(e) - self.final_mean(best.unwrap_or(0)) > libm::log(EQUAL);
        let floors =
            |e: usize| (self.floor(e), self.book.surely_barred(self.candidate(e), self.candidate(0)));
        let is_near_a_floor = |e: usize| is_ahead(e) && matches!(floors(e), (Some(_), None));
        let is_unclear = |e: usize| match best {
            None => {
                let s = self.against(e, 0);
                self.floor(e).is_none() && s.ratio > NEAR && s.high > EQUAL && s.low <= EQUAL
            }
            Some(best) => {
                let s = self.against(e, best);
                e < best && proven.contains(&e) && s.high >= 1.0 && s.low < 1.0 / EQUAL
            }
        };
        let decides = |&e: &usize| e != 0 && (is_near_a_floor(e) || is_unclear(e));
        let mut open: Vec<usize> = self.finalists().into_iter().filter(decides).collect();
        if !open.is_empty() {
            open.extend(best.into_iter().chain([0]));
            open.sort_unstable();
            open.dedup();
        }
        open
    }
}

#[cfg(test)]
mod tests;
