//! The programs of the tests, as many at a time as there are processors.
//!
//! ```text
//!   cargo test --no-run --message-format=json ─► programs, the longest first ─┬─► one after another
//!                                                                             └─► one after another
//! ```
//!
//! cargo runs one program after another, so that a processor waits at the end of each one for its last test,
//! and while tests wait for servers, guests and browsers. Here cargo compiles and names the programs, and
//! each runs in the folder of its package, as with cargo.
//!
//! What this does not do: the variables that cargo sets for a program as it runs it. Tests take what they
//! know of their crate when they are compiled.

use super::cost;
use super::drawn::{self, Drawn};
use crate::json::Json;
use crate::outcome::Outcome;
use crate::shell::{capture, for_all};
use std::path::PathBuf;
use std::process::Command;

/// Packages whose programs take longest; they begin first.
const FIRST: [&str; 4] = ["cli", "live", "sim", "core"];

/// Tests of one program that run at a time. Most of those that take long wait for processes of their own.
const THREADS: &str = "--test-threads=3";

/// One program of tests.
#[derive(Clone, Debug, PartialEq)]
struct Program {
    file: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
    target: String,
}

impl Program {
    /// The program of tests that a line of cargo's is about. A line that cannot be read is an error: its
    /// tests would be left out.
    fn parse(line: &str) -> Result<Option<Self>, String> {
        if !line.contains("\"reason\":\"compiler-artifact\"") {
            return Ok(None);
        }
        let artifact = Json::read(line).map_err(|e| format!("cargo's list of programs: {e}: {line}"))?;
        Ok(Self::of(&artifact))
    }

    fn of(artifact: &Json) -> Option<Self> {
        if artifact.get("profile")?.get("test")? != &Json::Flag(true) {
            return None;
        }
        let file = artifact.get("executable")?.text()?.into();
        let folder = PathBuf::from(artifact.get("manifest_path")?.text()?).parent()?.to_owned();
        let target = artifact.get("target")?.get("name")?.text()?.to_owned();
        Some(Self { file, folder, target })
    }

    fn name(&self) -> String {
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder} {}", self.target)
    }

    /// The place among those that begin first; integration tests before the others of their package.
    fn place(&self) -> (usize, bool) {
        let at = FIRST.iter().position(|first| self.folder.ends_with(first)).unwrap_or(FIRST.len());
        (at, self.target != "it")
    }
}

/// What became of a program.
struct Run {
    name: String,
    seconds: f64,
    text: String,
    /// What it said, if it failed and no test did.
    crashed: String,
    is_success: bool,
}

/// Runs the programs that `cargo test` with `which` would run.
pub(super) fn run(which: &str, cases: &Drawn) -> Result<Outcome, String> {
    let mut list = drawn::cargo_test(which);
    let listed = capture(list.args(["--no-run", "--quiet", "--message-format=json"]))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut programs: Vec<Program> =
        listed.lines().filter_map(|line| Program::parse(line).transpose()).collect::<Result<_, _>>()?;
    if programs.is_empty() {
        return Err(format!("cargo names no program of tests for {which}"));
    }
    programs.sort_by_key(Program::place);
    let environment = drawn::environment(cases);
    let mut runs = for_all(&programs, |program| one(program, &environment))?;
    let joined = |each: fn(&Run) -> &str| runs.iter().map(each).collect::<Vec<_>>().join("\n");
    let (text, crashed) = (joined(|run| &run.text), joined(|run| &run.crashed));
    let is_success = runs.iter().all(|run| run.is_success);
    let outcome = drawn::judged(&text, &crashed, is_success)?;
    if !crashed.trim().is_empty() {
        return Err(crashed);
    }
    runs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let longest: Vec<String> =
        runs.iter().take(6).map(|run| format!("{} {:.0} s", run.name, run.seconds)).collect();
    println!("        longest: {}", longest.join(", "));
    Ok(outcome)
}

fn one(program: &Program, environment: &[(&str, String)]) -> Result<Run, String> {
    let start = cost::now();
    let mut command = Command::new(&program.file);
    command.args(["--show-output", THREADS]).current_dir(&program.folder);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let (text, said, is_success) = drawn::output(&mut command)?;
    let (name, seconds) = (program.name(), start.elapsed().as_secs_f64());
    let has_crashed = !is_success && drawn::count(&text).failed == 0;
    let crashed = if has_crashed { format!("{name}:\n{said}") } else { String::new() };
    Ok(Run { name, seconds, text, crashed, is_success })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"reason":"compiler-artifact","package_id":"p","manifest_path":"/r/crates/live/Cargo.toml","target":{"kind":["test"],"name":"it"},"profile":{"opt_level":"1","test":true},"executable":"/r/target/sim/deps/it-1","fresh":true}"#;

    #[test]
    fn a_program_of_tests_is_found_and_nothing_else() {
        let program = Program::parse(LINE).expect("a line that can be read").expect("a program");
        let (file, folder) = ("/r/target/sim/deps/it-1".into(), "/r/crates/live".into());
        assert_eq!(program, Program { file, folder, target: "it".into() });
        assert_eq!((program.name().as_str(), program.place()), ("live it", (1, false)));
        assert_eq!(Program::parse(&LINE.replace("\"test\":true", "\"test\":false")), Ok(None));
        assert_eq!(Program::parse(&LINE.replace("\"/r/target/sim/deps/it-1\"", "null")), Ok(None));
        assert_eq!(Program::parse(&LINE.replace("artifact", "message")), Ok(None));
        assert!(Program::parse(&LINE.replace("\"test\":true", "\"test\":tru")).is_err(), "not left out");
    }
}
