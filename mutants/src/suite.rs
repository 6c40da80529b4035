//! Test programs: once as they are, then with one change active.

use crate::build::Program;
use crate::tree::{make, read};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Variables for tests with drawn cases, unless they are set: fewer cases than CI has. Some tests draw one
/// case for 20 plans.
const FEW: [(&str, &str); 4] =
    [("FAIRHEAD_SEEDS", "8"), ("FAIRHEAD_PLANS", "20"), ("FAIRHEAD_SMALL", "3"), ("PROPTEST_CASES", "64")];

/// The longest that a program may take that has no change.
const LONGEST: Duration = Duration::from_secs(1200);

/// Address space of a program in KiB: a change may make a loop that allocates without an end.
const MEMORY_KIB: u32 = 8 << 20;

/// More tests than this in one call are run as the whole program.
const TESTS_MAX: usize = 500;

/// A program that has passed, with what its tests reach.
pub(crate) struct Suite {
    pub(crate) program: Program,
    /// How long the whole of it takes.
    time: Duration,
    /// The tests that reach each change; none if a thread without a test's name does.
    reaching: BTreeMap<u32, Option<BTreeSet<String>>>,
}

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Passed,
    /// With the name of a test, or how the program ended.
    Failed(String),
    TookTooLong,
}

/// Runs the programs as they are. The quickest comes first.
pub(crate) fn unchanged(programs: Vec<Program>, folder: &Path, filter: &str) -> Result<Vec<Suite>, String> {
    make(folder)?;
    let mut suites = Vec::new();
    for program in programs {
        let record = folder.join(format!("{}.txt", program.name.replace('/', "-")));
        fs::write(&record, "").map_err(|e| format!("{}: {e}", record.display()))?;
        let mut command = command(&program);
        only(&mut command, &program.tests);
        command.arg(filter).env("FAIRHEAD_MUTANT_RECORD", &record);
        let mut passed = BTreeSet::new();
        let start = now();
        let ended = run(command, LONGEST, |test| _ = passed.insert(test.to_owned()))?;
        if ended != Ended::Passed {
            return Err(format!("{}: the tests fail without a change: {ended:?}", program.name));
        }
        let reaching = reaching(&read(&record)?, &passed);
        println!(
            "{:>7.1} s  {:>4} changes reached  {}",
            start.elapsed().as_secs_f32(),
            reaching.len(),
            program.name
        );
        suites.push(Suite { program, time: start.elapsed(), reaching });
    }
    suites.sort_by_key(|suite| suite.time);
    Ok(suites)
}

/// The tests that reach each change, from lines of numbers and threads. All do if a thread is no test.
fn reaching(record: &str, tests: &BTreeSet<String>) -> BTreeMap<u32, Option<BTreeSet<String>>> {
    let mut all: BTreeMap<u32, Option<BTreeSet<String>>> = BTreeMap::new();
    for (number, thread) in record.lines().filter_map(|line| line.split_once('\t')) {
        let Ok(number) = number.parse() else { continue };
        let of = all.entry(number).or_insert_with(|| Some(BTreeSet::new()));
        match of {
            Some(some) if tests.contains(thread) => _ = some.insert(thread.to_owned()),
            _ => *of = None,
        }
    }
    all
}

impl Suite {
    /// The tests to run for a change: none if no test reaches it, and no names for all.
    pub(crate) fn tests(&self, number: u32, within: &str) -> Option<Vec<&str>> {
        let tests = match self.reaching.get(&number)? {
            Some(tests) => tests.iter().map(String::as_str).filter(|test| test.starts_with(within)).collect(),
            None => return Some(Vec::new()),
        };
        (!Vec::is_empty(&tests)).then_some(if tests.len() > TESTS_MAX { Vec::new() } else { tests })
    }

    /// Runs these tests, or all if there are no names, with a change active.
    pub(crate) fn run(&self, number: u32, tests: &[&str]) -> Result<Ended, String> {
        let mut command = command(&self.program);
        command.env("FAIRHEAD_MUTANT", number.to_string());
        if tests.is_empty() {
            only(&mut command, &self.program.tests);
        } else {
            command.arg("--exact").args(tests);
        }
        run(command, Duration::from_secs(15) + 3 * self.time, |_| {})
    }
}

/// Has a program run these tests alone; all if there are none.
fn only(command: &mut Command, tests: &[String]) {
    if !tests.is_empty() {
        command.arg("--exact").args(tests);
    }
}

/// A program in its folder, with limited memory.
fn command(program: &Program) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_KIB} && exec \"$0\" \"$@\"")]).arg(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.env("RUST_BACKTRACE", "0");
    command.envs(FEW.iter().filter(|(name, _)| std::env::var_os(name).is_none()).copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Runs a program of tests until it ends, or one fails, or the time is over. `passed` gets each test that
/// passes.
fn run(mut command: Command, limit: Duration, mut passed: impl FnMut(&str)) -> Result<Ended, String> {
    let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let end = now() + limit;
    let lines = lines(child.stdout.take().expect("it is piped"));
    loop {
        match lines.recv_timeout(end.saturating_duration_since(now())) {
            Ok(line) => match verdict(&line) {
                Some((test, false)) => {
                    stop(&mut child)?;
                    return Ok(Ended::Failed(test.to_owned()));
                }
                Some((test, true)) => passed(test),
                None => {}
            },
            Err(RecvTimeoutError::Timeout) => {
                stop(&mut child)?;
                return Ok(Ended::TookTooLong);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().map_err(|e| e.to_string())?;
                return Ok(if status.success() { Ended::Passed } else { Ended::Failed(status.to_string()) });
            }
        }
    }
}

/// The lines of a program as they come.
fn lines(output: ChildStdout) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        // Tests may print bytes that are no text.
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receive
}

fn stop(child: &mut Child) -> Result<(), String> {
    child.kill().and_then(|()| child.wait()).map(drop).map_err(|e| e.to_string())
}

/// The test that a line is about, and whether it passed.
fn verdict(line: &str) -> Option<(&str, bool)> {
    let (test, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match verdict.trim_end() {
        "ok" => Some((test, true)),
        "FAILED" => Some((test, false)),
        _ => None,
    }
}

#[allow(clippy::disallowed_methods, reason = "this is about how long programs take")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    #[test]
    fn lines_of_tests_are_read() {
        assert_eq!(verdict("test a::b ... ok"), Some(("a::b", true)));
        assert_eq!(verdict("test a::b - should panic ... FAILED"), Some(("a::b", false)));
        assert_eq!(verdict("test a::b ... ignored"), None);
        assert_eq!(verdict("test result: ok. 3 passed"), None);
    }

    #[test]
    fn a_failed_test_ends_a_program_at_once() {
        let mut passed = Vec::new();
        let script = "echo 'test a ... ok'; echo 'test b ... FAILED'; exec sleep 600";
        let ended = run(shell(script), LONGEST, |test| passed.push(test.to_owned())).unwrap();
        assert_eq!((ended, passed), (Ended::Failed("b".to_owned()), vec!["a".to_owned()]));
    }

    #[test]
    fn a_program_that_takes_too_long_is_stopped() {
        let ended = run(shell("exec sleep 600"), Duration::from_millis(20), |_| {});
        assert_eq!(ended, Ok(Ended::TookTooLong));
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        assert!(
            matches!(run(shell("kill -9 $$"), LONGEST, |_| {}), Ok(Ended::Failed(how)) if how.contains('9'))
        );
        assert_eq!(run(shell("exit 0"), LONGEST, |_| {}), Ok(Ended::Passed));
    }

    #[test]
    fn a_thread_that_is_no_test_makes_the_whole_program_run() {
        let tests = ["a::x", "b::y"].map(str::to_owned).into();
        let reaching = reaching("0\ta::x\n0\tb::y\n1\ta::x\n2\ta::x\n2\tworker\n", &tests);
        let program = Program { name: String::new(), path: "p".into(), folder: "f".into(), tests: vec![] };
        let suite = Suite { program, time: Duration::ZERO, reaching };
        assert_eq!(suite.tests(0, ""), Some(vec!["a::x", "b::y"]));
        assert_eq!(suite.tests(0, "b::"), Some(vec!["b::y"]));
        assert_eq!(suite.tests(1, "b::"), None);
        assert_eq!(suite.tests(2, ""), Some(Vec::new()));
        assert_eq!(suite.tests(3, ""), None);
    }
}
