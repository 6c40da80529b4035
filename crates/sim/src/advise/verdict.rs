//! The verdict in sentences: what to use, what that buys and costs, and what is as good.
//!
//! "Use bfq instead of mq-deadline. The time until application is done is better by a factor of 28.1 (27.0 to
//! 29.3). …"
//!
//! Factors have three digits, their intervals are of 95 %. *No difference*, *nothing was found* and *worse*
//! are said as plainly as *better*; the words come from [`Finding`] and from nowhere else.

use super::race::{NEAR, Run};
use super::statistics::{Finding, Ratio};
use super::{Advice, Comparison, Cost, EQUAL, End, Figures, Limit, Payer, Payers, Question};
use crate::job::Program;
use crate::why::time;
use fairhead_core::sched::any::shown;

/// A wait that is shorter by more than this factor is explained, or doubted.
const LARGE: f64 = 10.0;

/// A factor with three digits.
#[must_use]
pub fn factor(f: f64) -> String {
    match f {
        f if !f.is_finite() => "any".to_owned(),
        f if f >= 99.95 => format!("{f:.0}"),
        f if f >= 9.995 => format!("{f:.1}"),
        f => format!("{f:.2}"),
    }
}

/// MiB per second with three digits.
#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn digits(bytes_per_s: u64) -> String {
    let mib = bytes_per_s as f64 / 1_048_576.0;
    match mib {
        m if m >= 99.95 => format!("{m:.0}"),
        m if m >= 9.995 => format!("{m:.1}"),
        m => format!("{m:.2}"),
    }
}

/// What is said of a figure, in a sentence.
fn sentence(of: &str, r: &Ratio) -> String {
    match r.finding(EQUAL) {
        Finding::Better | Finding::Worse if r.is_vague() => format!(
            "{of} is {}, by an unknown factor: between {} and {}; more seeds (a larger --budget or --rounds) narrow that.",
            if r.ratio > 1.0 { "better" } else { "worse" },
            factor(if r.ratio > 1.0 { r.low } else { 1.0 / r.high }),
            factor(if r.ratio > 1.0 { r.high } else { 1.0 / r.low })
        ),
        Finding::Better => {
            format!(
                "{of} is better by a factor of {} ({} to {}).",
                factor(r.ratio),
                factor(r.low),
                factor(r.high)
            )
        }
        Finding::Worse => format!(
            "{of} is worse by a factor of {} ({} to {}).",
            factor(1.0 / r.ratio),
            factor(1.0 / r.high),
            factor(1.0 / r.low)
        ),
        Finding::NoDifference => format!("{of}: no difference."),
        Finding::NothingFound => format!(
            "{of}: not known, between {} and {} times as good; more seeds (a larger --budget or --rounds) narrow that.",
            factor(r.low),
            factor(r.high)
        ),
    }
}

impl Advice {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self, question: &Question) -> Vec<String> {
        let (winner, names) = (self.race.winner(), |c: usize| self.candidates[c].name());
        let mut said = if winner == 0 {
            vec![format!("Stay with {}.", names(0))]
        } else {
            vec![format!("Use {} instead of {}.", names(winner), names(0))]
        };
        match (winner, self.race.leader) {
            (0, 0) => said.push(format!(
                "No other scheduler scored better by more than a factor of {NEAR}, so a change is not worth it."
            )),
            (0, leader) => {
                said.push(format!("A change is not worth it. {}, the best of the others:", names(leader)));
                said.extend(self.compared(question, leader));
            }
            (winner, _) => said.extend(self.compared(question, winner)),
        }
        let compared = if winner == 0 { self.race.leader } else { winner };
        said.extend(self.large(question, compared));
        said.extend(self.paid());
        said.extend(self.idled_for_limit());
        let misses: Vec<String> = (1..self.candidates.len())
            .filter(|&c| self.race.misses(c))
            .map(|c| self.candidates[c].name())
            .collect();
        if !misses.is_empty() {
            let base = names(0);
            said.push(format!(
                "Not advised, as a job misses a rate that it gets under {base}: {}.",
                misses.join("; ")
            ));
        }
        said.extend(self.priced());
        said.extend(self.leader_elsewhere());
        said.extend(self.as_good());
        said.extend(self.not_told_apart());
        said.extend(self.remedied(question));
        if question.jobs.jobs.iter().any(|j| j.program == Some(Program::Trace)) {
            said.push(
                "A trace is one sample: seeds change hardly anything in it, so the intervals say nothing of another day."
                    .to_owned(),
            );
        }
        said.push(self.ended());
        said
    }

    /// Returns the answer in one sentence with the job that suffers from it: of those that get less than
    /// before, the one that loses most.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        let payers = self.payers.as_ref()?;
        let (winner, base) = (self.race.winner(), self.candidates[0].name());
        let left = |p: &Payer| (p.after.bytes_per_s, p.before.bytes_per_s.max(1));
        // The smallest part of what it had: fractions are compared as products.
        let most = payers.jobs.iter().filter(|p| p.pays()).min_by(|a, b| {
            let ((a, of_a), (b, of_b)) = (left(a), left(b));
            (u128::from(a) * u128::from(of_b)).cmp(&(u128::from(b) * u128::from(of_a)))
        });
        let compared = self.candidates[payers.candidate].name();
        let paid = |p: &Payer| {
            let [after, before] = [p.after.bytes_per_s, p.before.bytes_per_s].map(digits);
            format!("{after} MiB/s instead of {before}")
        };
        Some(match (winner, most) {
            (0, Some(p)) => format!("Stay with {base}: under {compared}, {} would get {}.", p.name, paid(p)),
            (0, None) => format!("Stay with {base}."),
            (_, Some(p)) => {
                let verb = if p.starves() { "starves" } else { "pays" };
                format!("Use {compared} instead of {base}; {} {verb}: {}.", p.name, paid(p))
            }
            (_, None) => format!("Use {compared} instead of {base}; no job pays."),
        })
    }

    /// A warning if a limit makes the disk idle under what is advised.
    fn idled_for_limit(&self) -> Option<String> {
        let idled = self.idled.as_ref()?;
        let name = self.candidates[self.race.winner()].name();
        Some(format!("Warning: {}; compare with a job file without it.", idled.words(&name)))
    }

    /// What all jobs move together, and the jobs that get less than before.
    fn paid(&self) -> Vec<String> {
        let Some(payers) = &self.payers else { return Vec::new() };
        let mib = |bytes: u64| format!("{} MiB/s", digits(bytes));
        let (before, after) = payers.totals();
        let name = self.candidates[payers.candidate].name();
        let mut said = vec![format!(
            "All jobs together move {} under {name}, and {} under {}.",
            mib(after),
            mib(before),
            self.candidates[0].name()
        )];
        said.extend(self.missed(payers));
        for p in payers.jobs.iter().filter(|p| p.pays()) {
            let verb = if p.starves() { "starves" } else { "pays" };
            said.push(format!(
                "{} {verb}: {} instead of {}.",
                p.name,
                mib(p.after.bytes_per_s),
                mib(p.before.bytes_per_s)
            ));
        }
        said
    }

    /// The rates that jobs asked for and did not get.
    fn missed(&self, payers: &Payers) -> Vec<String> {
        let mut said = Vec::new();
        for p in &payers.jobs {
            for (candidate, got) in [(payers.candidate, &p.after), (0, &p.before)] {
                let Some(r) = got.missed() else { continue };
                let [got, wanted] = [r.got, r.wanted].map(|n| match r.in_calls {
                    true => format!("{n} calls/s"),
                    false => format!("{} MiB/s", digits(n)),
                });
                let name = self.candidates[candidate].name();
                said.push(format!("{} misses its rate under {name}: {got} of {wanted}.", p.name));
            }
        }
        said
    }

    /// A gain of more than [`LARGE`] is mostly another job's loss under one of the two: says whose, or that
    /// it is to be doubted.
    fn large(&self, question: &Question, candidate: usize) -> Option<String> {
        let gain = self.race.against(candidate, 0).figures[0].filter(|r| r.low > LARGE)?;
        let who = self.waiting.names(&question.jobs);
        let base = self.candidates[0].name();
        let starved = self.payers.as_ref().filter(|p| p.candidate == candidate)?;
        let waited = starved.jobs.iter().any(|p| {
            who.contains(&p.name.as_str()) && p.before.bytes_per_s.saturating_mul(4) < p.after.bytes_per_s
        });
        let paid: Vec<&str> = starved.jobs.iter().filter(|p| p.starves()).map(|p| p.name.as_str()).collect();
        let reason = match (waited, paid.as_slice()) {
            (true, _) => {
                format!("{} starves under {base}: it gets less than a quarter there", who.join(", "))
            }
            (false, []) => "no job starves under either, so doubt it and measure".to_owned(),
            (false, paid) => format!("it is bought by starving {}", paid.join(", ")),
        };
        Some(format!("Why a factor of {}: {reason}.", factor(gain.ratio)))
    }

    /// The processor time of a request under the default, and under the candidate that is compared with it;
    /// and the resource that limits the load.
    fn priced(&self) -> Vec<String> {
        let of = |c: usize| {
            let is_it = |cost: &&Cost| self.candidates[cost.candidate].preset == self.candidates[c].preset;
            self.costs.iter().find(is_it)
        };
        let Some(before) = of(0) else { return Vec::new() };
        let name = |cost: &Cost| shown(self.candidates[cost.candidate].preset);
        let limited = |cost: &Cost| match cost.limit {
            Limit::Nothing => format!("nothing holds the load back under {}", name(cost)),
            limit => format!("the {} holds the load back under {}", limit.words(), name(cost)),
        };
        let winner = if self.race.winner() == 0 { self.race.leader } else { self.race.winner() };
        let after = of(winner).filter(|after| after.candidate != before.candidate);
        let sentence = match after {
            None => format!(
                "A request takes {} of processor time under {}; {}.",
                time(before.per_request),
                name(before),
                limited(before)
            ),
            Some(after) => format!(
                "A request takes {} of processor time under {}, and {} under {}; {}, and {}.",
                time(after.per_request),
                name(after),
                time(before.per_request),
                name(before),
                limited(after),
                limited(before)
            ),
        };
        vec![sentence]
    }

    /// What a limit does, where no scheduler is the answer.
    fn remedied(&self, question: &Question) -> Vec<String> {
        let Some(r) = &self.remedy else { return Vec::new() };
        let mut said = vec![format!(
            "What helps is a limit: under {}, hold {} to {} % of what they move without it ({}).",
            self.candidates[r.candidate].name(),
            r.names(&question.jobs).join(", "),
            r.permille / 10,
            r.words()
        )];
        said.extend(self.sentences(question, &r.against));
        said
    }

    /// A sentence for each figure and for the score, against the default.
    fn compared(&self, question: &Question, candidate: usize) -> Vec<String> {
        self.sentences(question, &self.race.against(candidate, 0))
    }

    /// A sentence for each figure and for the score.
    fn sentences(&self, question: &Question, c: &Comparison) -> Vec<String> {
        let who = self.waiting.names(&question.jobs).join(", ");
        let subjects = [
            format!("The {} of {who}", self.waiting.what.words()),
            "Throughput".to_owned(),
            "Fairness".to_owned(),
        ];
        let figures = subjects.iter().zip(c.figures).filter_map(|(s, r)| Some(sentence(s, &r?)));
        let score = c.score.iter().map(|r| sentence("The score", r));
        figures.chain(score).collect()
    }

    /// Returns the winner, if a kernel has it, or else the best of those that one has.
    #[must_use]
    pub fn best_in_kernel(&self) -> usize {
        let winner = self.race.winner();
        if self.race.is_choice(winner) { winner } else { self.race.choice }
    }

    /// The leader, if it is Fairhead's only and not the winner, or the best of the kernel's, if the winner is
    /// Fairhead's only.
    fn leader_elsewhere(&self) -> Option<String> {
        let (winner, leader, choice) = (self.race.winner(), self.race.leader, self.race.choice);
        let name = |c: usize| self.candidates[c].name();
        if !self.race.is_choice(winner) {
            let score = self.race.against(winner, choice).score?;
            return Some(format!(
                "{} is in Fairhead only; the best that a kernel has is {}, whose score is lower by a factor of {} ({} to {}).",
                name(winner),
                name(choice),
                factor(score.ratio),
                factor(score.low),
                factor(score.high)
            ));
        }
        let led = winner != leader && winner != 0;
        led.then(|| format!("{} led the race, but not with fresh seeds.", name(leader)))
    }

    /// The candidates that are as good as the winner.
    fn as_good(&self) -> Option<String> {
        let winner = self.race.winner();
        let equal: Vec<String> = (0..self.candidates.len())
            .filter(|&c| c != winner)
            .filter(|&c| {
                let score = self.race.against(c, winner).score;
                score.is_some_and(|s| s.finding(EQUAL) == Finding::NoDifference)
            })
            .map(|c| self.candidates[c].name())
            .collect();
        let rest = if winner == 0 { "" } else { " Of equals the plainest is advised." };
        (!equal.is_empty()).then(|| format!("No difference in the score to: {}.{rest}", equal.join("; ")))
    }

    /// The finalists whose scores are not told apart from the winner's, which is advised as the plainest of
    /// them.
    fn not_told_apart(&self) -> Option<String> {
        let winner = self.race.winner();
        let is_open = |c: usize| {
            let score = self.race.against(c, winner).score;
            score.is_some_and(|s| s.finding(EQUAL) == Finding::NothingFound)
        };
        let finalists = self.race.finalists().into_iter();
        let open: Vec<String> = finalists
            .filter(|&c| winner != 0 && c != 0 && c != winner && is_open(c))
            .map(|c| self.candidates[c].name())
            .collect();
        let seeds = self.race.standings[winner].fresh.len();
        (!open.is_empty()).then(|| {
            format!(
                "Equal within their intervals, with {seeds} seeds, and not as plain: {}.",
                open.join("; ")
            )
        })
    }

    /// Why there were no more rounds, and how to have the same again.
    fn ended(&self) -> String {
        let rounds = self.race.rounds;
        let why = match self.race.end {
            End::Settled => "no other candidate could win",
            End::Budget => "the budget had no room for another",
            End::Rounds => "that is the most",
        };
        format!(
            "Stopped after {rounds} {} because {why}; --rounds {rounds} repeats it.",
            if rounds == 1 { "round" } else { "rounds" }
        )
    }
}

/// Returns the means of the figures of some runs. Latency as it is, not one over it.
#[must_use]
pub fn means(runs: &[Run]) -> [Option<f64>; Figures::COUNT] {
    std::array::from_fn(|i| {
        let logs: Vec<f64> = runs.iter().filter_map(|r| r.figures.list()[i]).map(libm::log).collect();
        let mean = (!logs.is_empty()).then(|| libm::exp(super::statistics::Mean::of(&logs).mean));
        if i == 0 { mean.map(|m| 1.0 / m) } else { mean }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(low: f64, ratio: f64, high: f64) -> String {
        sentence("It", &Ratio { count: 6, ratio, low, high })
    }

    #[test]
    fn sentences_say_what_was_found_and_no_more() {
        assert_eq!(of(1.2, 2.0, 3.0), "It is better by a factor of 2.00 (1.20 to 3.00).");
        assert_eq!(
            of(1.2, 9.0, 60.0),
            "It is better, by an unknown factor: between 1.20 and 60.0; more seeds (a larger --budget or --rounds) narrow that."
        );
        assert_eq!(of(0.25, 0.5, 0.8), "It is worse by a factor of 2.00 (1.25 to 4.00).");
        assert_eq!(of(0.96, 1.0, 1.04), "It: no difference.");
        assert_eq!(
            of(0.5, 1.0, 2.0),
            "It: not known, between 0.50 and 2.00 times as good; more seeds (a larger --budget or --rounds) narrow that."
        );
        assert_eq!(
            of(0.0, 2.0, f64::INFINITY),
            "It: not known, between 0.00 and any times as good; more seeds (a larger --budget or --rounds) narrow that."
        );
        assert_eq!([123.4, 12.34, 1.234, 9.999].map(factor), ["123", "12.3", "1.23", "10.0"]);
    }
}
