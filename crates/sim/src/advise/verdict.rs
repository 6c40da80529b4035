//! The verdict in sentences: what to use, what that buys and costs, and what is as good.
//!
//! "Use bfq instead of mq-deadline. The time until application is done is better by a factor of 28.1 (27.0 to
//! 29.3). …"
//!
//! Factors have three digits, their intervals are of 95 %. *No difference*, *nothing was found* and *worse*
//! are said as plainly as *better*; the words come from [`Finding`] and from nowhere else.

use super::race::NEAR;
use super::statistics::{Finding, Ratio};
use super::{Advice, Comparison, Cost, EQUAL, End, Figures, Limit, Question};
use crate::job::Program;
use crate::why::time;

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
            "{of}: no difference was found; it is between {} and {} of what it was.",
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
            (0, 0) => said.push(format!("Nothing else scored better by more than a factor of {NEAR}.")),
            (0, leader) => {
                said.push(format!("{}, the best of the others:", names(leader)));
                said.extend(self.compared(question, leader));
            }
            (winner, _) => said.extend(self.compared(question, winner)),
        }
        said.extend(self.paid());
        said.extend(self.priced());
        said.extend(self.leader_elsewhere());
        said.extend(self.as_good());
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

    /// The processor time of a request under the default, and under the candidate that is compared with it;
    /// and the resource that limits the load.
    fn priced(&self) -> Vec<String> {
        let of = |c: usize| {
            let is_it = |cost: &&Cost| self.candidates[cost.candidate].preset == self.candidates[c].preset;
            self.costs.iter().find(is_it)
        };
        let Some(before) = of(0) else { return Vec::new() };
        let name = |cost: &Cost| self.candidates[cost.candidate].preset;
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
        (!equal.is_empty()).then(|| format!("No difference in the score to: {}.", equal.join("; ")))
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

    /// The means of a candidate's figures over all its seeds of one kind: fresh ones if it has any. Latency
    /// as it is, not one over it.
    #[must_use]
    pub fn means(&self, candidate: usize) -> [Option<f64>; Figures::COUNT] {
        let s = &self.race.standings[candidate];
        let runs = if s.fresh.is_empty() { &s.race } else { &s.fresh };
        std::array::from_fn(|i| {
            let logs: Vec<f64> = runs.iter().filter_map(|r| r.figures.list()[i]).map(libm::log).collect();
            let mean = (!logs.is_empty()).then(|| libm::exp(super::statistics::Mean::of(&logs).mean));
            if i == 0 { mean.map(|m| 1.0 / m) } else { mean }
        })
    }
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
        assert_eq!(of(0.25, 0.5, 0.8), "It is worse by a factor of 2.00 (1.25 to 4.00).");
        assert_eq!(of(0.96, 1.0, 1.04), "It: no difference.");
        assert_eq!(
            of(0.5, 1.0, 2.0),
            "It: no difference was found; it is between 0.50 and 2.00 of what it was."
        );
        assert_eq!(
            of(0.0, 2.0, f64::INFINITY),
            "It: no difference was found; it is between 0.00 and any of what it was."
        );
        assert_eq!([123.4, 12.34, 1.234, 9.999].map(factor), ["123", "12.3", "1.23", "10.0"]);
    }
}
