//! What the jobs of a sweep's points got, as named columns: for CSV, Parquet and Python alike.
//!
//! First `satisfaction`, of all jobs together. Then for each job `JOB_satisfaction`; what it got, as
//! `JOB_ns`, `JOB_bytes_per_s` or, of films, `JOB_frames_in_time_per_100000`; and `JOB_is_cut_off`, 1 if it
//! was not done when the span was over, so that a time is a lower bound.

use fairhead_sim::satisfaction::Load;
use fairhead_sim::sweep::{Base, Row};

use super::advice::unit;
use super::arena::digits;

/// A column about the jobs of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Of {
    All,
    Satisfaction(usize),
    /// What a job got, times this.
    Amount(usize, f64),
    IsCut(usize),
}

/// The value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A satisfaction, with six digits.
    Real(f64),
    /// A number of nanoseconds, bytes per second or frames; 0 or 1.
    Whole(u64),
}

impl Column {
    /// Whether its values are [`Value::Real`].
    #[must_use]
    pub const fn is_real(&self) -> bool {
        matches!(self.of, Of::All | Of::Satisfaction(_))
    }

    /// The value in a row of a disk with this base.
    #[must_use]
    pub fn value(&self, base: &Base, row: &Row) -> Value {
        let jobs = &row.run().jobs;
        match self.of {
            Of::All => Value::Real(digits(row.satisfaction(base))),
            Of::Satisfaction(job) => Value::Real(digits(jobs[job].satisfaction)),
            Of::Amount(job, times) => Value::Whole(whole(jobs[job].amount * times)),
            Of::IsCut(job) => Value::Whole(jobs[job].is_cut.into()),
        }
    }
}

impl Value {
    /// As text with a point, or whole.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Real(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
        }
    }
}

/// The columns of a load.
#[must_use]
pub fn of(load: &Load) -> Vec<Column> {
    let mut all = vec![Column { name: "satisfaction".to_owned(), of: Of::All }];
    let mut names: Vec<String> = Vec::new();
    for (j, (job, party)) in load.jobs.jobs.iter().zip(&load.parties).enumerate() {
        let mut name = job.name.replace('\0', "");
        if names.contains(&name) {
            name = format!("{name}_{}", j + 1);
        }
        names.push(name.clone());
        let (suffix, times) = match unit(job, party.kind) {
            "s" => ("ns", 1e9),
            "bytes/s" => ("bytes_per_s", 1.0),
            _ => ("frames_in_time_per_100000", 1e5),
        };
        let mut add = |what: &str, of| all.push(Column { name: format!("{name}_{what}"), of });
        add("satisfaction", Of::Satisfaction(j));
        add(suffix, Of::Amount(j, times));
        add("is_cut_off", Of::IsCut(j));
    }
    all
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds, bytes, frames")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Duration;
    use fairhead_sim::job::parse;
    use fairhead_sim::satisfaction::Emphasis;

    #[test]
    fn each_job_has_three_columns_with_its_unit() {
        let text = "[film]\nfh_workload=player\nsize=10m\n[log]\nrw=write\nsize=1m\nfdatasync=1\n[copy]\nrw=read\nsize=1m\n";
        let jobs = parse(text, "t").unwrap();
        let load = Load::new(&jobs, Duration::from_secs(1), &Emphasis::Even);
        let columns = of(&load);
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "satisfaction",
                "film_satisfaction",
                "film_frames_in_time_per_100000",
                "film_is_cut_off",
                "log_satisfaction",
                "log_ns",
                "log_is_cut_off",
                "copy_satisfaction",
                "copy_bytes_per_s",
                "copy_is_cut_off",
            ]
        );
        assert_eq!(columns.iter().filter(|c| c.is_real()).count(), 4);
    }
}
