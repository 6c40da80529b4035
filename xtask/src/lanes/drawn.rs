//! Tests that cargo runs: which, in what profile, with how many drawn cases, and what came of them.
//!
//! All run in the profile `sim`, which has every assertion on, so that one build serves them all. What they
//! draw follows from the commit: another commit tries other cases, and the same commit the same ones.

use crate::outcome::{Count, Outcome};
use crate::shell::{capture, cargo, command};
use std::process::Command;

/// How many cases tests draw, by the variable of the environment that says it. A variable that is set wins.
pub(super) struct Drawn {
    /// Cases for each scheduler in the suite, `FAIRHEAD_SEEDS`.
    pub(super) seeds: u32,
    /// Plans that are simulated, `FAIRHEAD_PLANS`. One takes as long as many cases of the suite.
    pub(super) plans: u32,
    /// Requests of the exhaustive cases, `FAIRHEAD_SMALL`. Five take 400 s of processor time.
    pub(super) small: u32,
    /// Job files that fio and the lab run, `FAIRHEAD_FIO_CASES`.
    pub(super) fio_cases: u32,
    /// How often servers, mounts and their clients are killed, `FAIRHEAD_KILLS`.
    pub(super) kills: u32,
}

/// What `cargo xtask test` draws.
pub(super) const FEW: Drawn = Drawn { seeds: 200, plans: 120, small: 4, fio_cases: 60, kills: 50 };

/// What `cargo xtask test --quick` draws.
pub(super) const FEWEST: Drawn = Drawn { seeds: 20, plans: 20, small: 3, fio_cases: 5, kills: 4 };

/// What `cargo xtask test --nightly` draws.
pub(super) const MANY: Drawn = Drawn { seeds: 2000, plans: 1500, small: 5, fio_cases: 500, kills: 10_000 };

/// The variables that say how many cases tests draw, and from which seed.
pub(super) fn environment(drawn: &Drawn) -> Vec<(&'static str, String)> {
    let head = capture(&mut command("git", "rev-parse HEAD"));
    let commit = head.map_or("1".to_owned(), |head| String::from_utf8_lossy(&head.stdout).trim().to_owned());
    let variables = [
        ("FAIRHEAD_SEED", commit),
        ("FAIRHEAD_SEEDS", drawn.seeds.to_string()),
        ("FAIRHEAD_PLANS", drawn.plans.to_string()),
        ("FAIRHEAD_SMALL", drawn.small.to_string()),
        ("FAIRHEAD_FIO_CASES", drawn.fio_cases.to_string()),
        ("FAIRHEAD_KILLS", drawn.kills.to_string()),
    ];
    variables.map(|(name, value)| (name, std::env::var(name).unwrap_or(value))).into()
}

/// cargo, with the profile of the tests. `which`: packages and targets, as it takes them.
pub(super) fn cargo_test(which: &str) -> Command {
    cargo(&format!("test --profile sim --no-fail-fast {which}"))
}

/// Tests in the profile of the tests, with drawn cases, one program after another.
pub(super) fn tests(which: &str, drawn: &Drawn) -> Command {
    let mut test = cargo_test(which);
    test.args(["--", "--show-output"]).envs(environment(drawn));
    test
}

/// Tests that ask for real time, one at a time. Those that fail run once more, and are named.
pub(super) fn of_clocks(which: &str, drawn_cases: &Drawn) -> Result<Outcome, String> {
    let mut first = tests(which, drawn_cases);
    first.arg("--test-threads=1");
    let (text, said, is_success) = output(&mut first)?;
    let failed = names_of_failed(&text);
    // A program that crashed, or a test that is not named, cannot be tried again by its name.
    let has_crashed = said.contains("(signal:");
    if is_success || has_crashed || failed.len() != count(&text).failed {
        let outcome = judged(&text, &said, is_success)?;
        return if has_crashed { Err(said) } else { Ok(outcome) };
    }
    println!("        once more: {}", failed.join(", "));
    let mut again = tests(which, drawn_cases);
    again.args(["--test-threads=1", "--exact"]).args(&failed);
    let (text_again, said, is_success) = output(&mut again)?;
    let outcome = judged(&text_again, &said, is_success)?;
    let Outcome::Tests(second) = outcome else { return Ok(outcome) };
    let mut all = count(&text);
    // Those that have passed now count as passed.
    all.failed = second.failed;
    all.passed += second.passed;
    all.skipped += second.skipped;
    Ok(Outcome::Tests(all))
}

/// Runs tests and counts them. What failed, and why others were skipped, is printed.
pub(super) fn run(command: &mut Command) -> Result<Outcome, String> {
    let (text, said, is_success) = output(command)?;
    judged(&text, &said, is_success).map_err(|said| format!("{said}\n{command:?} failed"))
}

/// What tests wrote to the two outputs, and whether all passed.
pub(super) fn output(command: &mut Command) -> Result<(String, String, bool), String> {
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr), output.status.success()))
}

/// Counts the tests of an output, and prints what failed and why others were skipped.
pub(super) fn judged(text: &str, said: &str, is_success: bool) -> Result<Outcome, String> {
    let count = count(text);
    text.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("        {line}"));
    if !is_success {
        eprintln!("{}", failures(text));
        if count.failed == 0 {
            return Err(said.to_owned());
        }
    }
    Ok(Outcome::Tests(count))
}

/// The names of the tests that failed.
fn names_of_failed(text: &str) -> Vec<String> {
    let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    text.lines().filter_map(name).collect()
}

/// The parts of the harness's output that are about tests that failed.
fn failures(text: &str) -> String {
    let mut about_failures = false;
    let keep = |line: &&str| {
        // After the tests' names come the outputs of those that passed, then those of the others, then the
        // names of those.
        match *line {
            "failures:" => about_failures = true,
            "successes:" => about_failures = false,
            _ => {}
        }
        let keep = about_failures;
        about_failures &= !line.starts_with("test result: ");
        keep
    };
    text.lines().filter(keep).collect::<Vec<_>>().join("\n")
}

/// Sums up what cargo's test harness said.
pub(super) fn count(text: &str) -> Count {
    let mut sum = Count::default();
    for line in text.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
            // `ok. 3 passed; 0 failed; 1 ignored; …`
            let number = |word: &str| {
                let before = result.split(word).next().unwrap_or("");
                before.split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
            };
            sum.passed += number(" passed");
            sum.failed += number(" failed");
            sum.skipped += number(" ignored");
        }
    }
    // Tests that said so have passed in the harness's view.
    let said = text.lines().filter(|line| line.starts_with("skipped: ")).count();
    sum.passed = sum.passed.saturating_sub(said);
    sum.skipped += said;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_have_the_numbers_of_the_lanes() {
        let page = std::fs::read_to_string(crate::shell::root().join("docs/testing.md")).expect("a page");
        let of =
            |each: fn(&Drawn) -> u32| [&FEWEST, &FEW, &MANY].map(|drawn| each(drawn).to_string()).join(" | ");
        for (name, numbers) in [
            ("FAIRHEAD_SEEDS", of(|d| d.seeds)),
            ("FAIRHEAD_PLANS", of(|d| d.plans)),
            ("FAIRHEAD_SMALL", of(|d| d.small)),
            ("FAIRHEAD_FIO_CASES", of(|d| d.fio_cases)),
            ("FAIRHEAD_KILLS", of(|d| d.kills)),
        ] {
            assert!(
                page.contains(&format!("`{name}` | {numbers} |")),
                "docs/testing.md: {name} is {numbers}"
            );
        }
    }

    #[test]
    fn tests_that_failed_are_named() {
        let text =
            "test mount::a ... ok\ntest mount::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n";
        assert_eq!(names_of_failed(text), ["mount::b"]);
    }

    #[test]
    fn sums_over_binaries_and_counts_what_was_skipped() {
        let text = "running 3 tests\ntest a ... ok\n\n---- a stdout ----\nskipped: no fio\n\n\
                    test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out\n";
        assert_eq!(count(text), Count { passed: 3, failed: 2, skipped: 2 });
    }

    #[test]
    fn shows_only_what_failed() {
        let text = "running 2 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nfine\n\nfailures:\n\n\
                    ---- b stdout ----\nseed 0x1 fails\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\
                    running 0 tests\n";
        let shown = failures(text);
        assert!(shown.contains("seed 0x1 fails") && shown.ends_with("1 failed"), "{shown}");
        assert!(!shown.contains("fine") && !shown.contains("running"), "{shown}");
    }
}
