//! What becomes of a step: it holds, it could not be tried here, or tests were run and counted.

use std::fmt;

/// What became of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step holds, with a note.
    Passed(String),
    /// The step could not be tried here, with the reason.
    Skipped(String),
    /// Tests were run.
    Tests(Count),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(note) => f.write_str(note),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Tests(count) => count.fmt(f),
        }
    }
}

/// Numbers of tests.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Count {
    /// Adds one test that passed.
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    /// Adds one test that failed.
    pub(crate) fn fail(&mut self) {
        self.failed += 1;
    }

    /// Adds the numbers of another count.
    pub(crate) fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Prints the outcome of what was asked for by itself; an error if tests failed.
pub(crate) fn verdict(outcome: Outcome) -> Result<(), String> {
    println!("{outcome}");
    match outcome {
        Outcome::Tests(Count { failed: 1.., .. }) => Err("tests failed".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_lane_has_the_form_that_is_counted() {
        let count = Count { passed: 12, failed: 0, skipped: 3 };
        assert_eq!(count.to_string(), "12 passed, 0 failed, 3 skipped");
    }
}
