//! The verdict: what to use, what each job gets before and after, who pays, and what was ruled out.
//!
//! It is data; what prints it chooses the words. Example: under `mq-deadline` a start takes 18.6 s where it
//! takes 2.5 s alone, a satisfaction of 0.13; under `bfq` 2.9 s, or 0.85. The copy beside it falls from 0.97
//! to 0.81: it pays.

use super::book::{EQUAL, Fared, Floor};
use super::statistics::{Finding, Ratio};
use super::{Advice, Place};

/// What a job gets before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The job: an index in the load's jobs.
    pub job: usize,
    /// What one clone gets alone; see [`Got::amount`](crate::satisfaction::Got).
    pub alone: f64,
    /// Under what is in use now.
    pub now: Fared,
    /// Under the candidate that is compared with it.
    pub then: Fared,
    /// How many times as satisfied.
    pub change: Ratio,
}

impl Row {
    /// Whether the job is surely less satisfied, by more than is worth mentioning.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.change.finding(EQUAL) == Finding::Worse && self.change.ratio < 1.0 / EQUAL
    }
}

/// The verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The candidate to use; 0: what is in use now.
    pub winner: usize,
    /// The candidate that is compared with what is in use now: the winner, or the best of the others.
    pub compared: usize,
    /// The jobs, in the order of the file.
    pub rows: Vec<Row>,
    /// How many times as satisfied the load is under the compared candidate.
    pub load: Ratio,
    /// The number of seeds of both: fresh ones if the compared candidate was confirmed.
    pub seeds: usize,
    /// The candidates that a floor bars, with the job and the floor.
    pub barred: Vec<(usize, usize, Floor)>,
    /// The candidates as good as the winner, though not as plain.
    pub as_good: Vec<usize>,
    /// The best of Fairhead's own, if it is surely better than the winner, and by what factor.
    pub better_own: Option<(usize, Ratio)>,
}

impl Verdict {
    /// The rows of those who pay.
    pub fn payers(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.pays())
    }
}

impl Advice {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let compared = self.compared();
        let against = self.book.against(compared, 0);
        let row = |job: usize| Row {
            job,
            alone: self.alone.got(job).amount,
            now: self.book.fared(0, job),
            then: self.book.fared(compared, job),
            change: against.jobs[job],
        };
        let others = || (1..self.candidates.len()).filter(|&c| !self.book.standings[c].race.is_empty());
        let barred = |c: usize| self.book.floor(c, 0).map(|(job, floor)| (c, job, floor));
        let is_as_good = |&c: &usize| {
            let load = self.book.against(c, self.winner).load;
            c != self.winner
                && self.candidates[c].place == Place::Kernel
                && self.book.floor(c, 0).is_none()
                && load.finding(EQUAL) == Finding::NoDifference
        };
        Verdict {
            winner: self.winner,
            compared,
            rows: (0..self.load.parties.len()).map(row).collect(),
            load: against.load,
            seeds: self.book.told(compared).len(),
            barred: others().filter_map(barred).collect(),
            as_good: std::iter::once(0).chain(others()).filter(is_as_good).collect(),
            better_own: self.better_own.map(|own| (own, self.book.against(own, self.winner).load)),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn factors_have_three_digits() {
        assert_eq!([123.4, 12.34, 1.234, 9.999].map(factor), ["123", "12.3", "1.23", "10.0"]);
    }
}
