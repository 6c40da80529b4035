//! What a step costs: wall time, processor time, and how much of that is compiling.
//!
//! ```text
//!   cargo xtask step NAME      a process of its own, so that /proc/self/stat has its processor time alone
//!     └─ cargo ─ RUSTC_WRAPPER=xtask ─ xtask rustc …    a line for each call of the compiler
//! ```
//!
//! A step leaves one line in `target/lanes/steps/NAME.tsv`, and one for each call of the compiler in
//! `target/lanes/compiled/NAME.tsv`. Processor time is that of processes that have ended: what outlives its
//! step is not counted. A wrapper that the environment names already stays, and then nothing is known of
//! compiling.

use crate::outcome::Count;
use crate::shell::root;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime};

/// The variable that names the file for the compiler's calls.
const CALLS: &str = "FAIRHEAD_COMPILED";

/// Ticks a second in `/proc/PID/stat`, on every Linux (`USER_HZ`).
const TICKS: f64 = 100.0;

/// What a step took, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Seconds.
    pub(super) wall: f64,
    /// Seconds of processors.
    pub(super) cpu: f64,
    pub(super) count: Count,
    /// What the step said, in one line.
    pub(super) note: String,
    /// The commit that it ran on, a space, and the hash of its inputs; empty if files differ from the commit.
    pub(super) state: String,
}

impl Row {
    fn line(&self) -> String {
        let Count { passed, failed, skipped } = self.count;
        let note = self.note.replace(['\t', '\n'], " ");
        let Self { name, wall, cpu, state, .. } = self;
        format!("{name}\t{wall:.1}\t{cpu:.1}\t{passed}\t{failed}\t{skipped}\t{note}\t{state}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, wall, cpu, passed, failed, skipped, note, state] = fields[..] else { return None };
        let count = Count {
            passed: passed.parse().ok()?,
            failed: failed.parse().ok()?,
            skipped: skipped.parse().ok()?,
        };
        let (name, note, state) = (name.to_owned(), note.to_owned(), state.to_owned());
        Some(Self { name, wall: wall.parse().ok()?, cpu: cpu.parse().ok()?, count, note, state })
    }
}

/// One call of the compiler.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) krate: String,
    /// The folder of what was made: the profile, behind a target if there is one.
    pub(super) profile: String,
    /// Seconds of processors.
    pub(super) cpu: f64,
}

impl Call {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [krate, profile, cpu] = fields[..] else { return None };
        Some(Self { krate: krate.to_owned(), profile: profile.to_owned(), cpu: cpu.parse().ok()? })
    }
}

fn folder() -> PathBuf {
    root().join("target/lanes")
}

fn file(kind: &str, step: &str) -> PathBuf {
    folder().join(kind).join(format!("{}.tsv", step.replace(['/', ' '], "-")))
}

/// Removes what earlier runs left.
pub(super) fn forget() {
    let _ = fs::remove_dir_all(folder());
}

/// From here on this process's children say what they compile.
pub(super) fn watch_compilers(step: &str, command: &mut Command) {
    let calls = file("compiled", step);
    let _ = fs::create_dir_all(calls.parent().expect("a folder"));
    let _ = fs::remove_file(&calls);
    // A step that is killed leaves no row. The row of an earlier run must not stand for it.
    let _ = fs::remove_file(file("steps", step));
    command.env(CALLS, calls);
    if std::env::var_os("RUSTC_WRAPPER").is_none()
        && let Ok(this) = std::env::current_exe()
    {
        command.env("RUSTC_WRAPPER", this);
    }
}

/// Writes what this process's step took.
pub(super) fn write(step: &str, wall: Duration, count: Count, note: &str, state: &str) -> Result<(), String> {
    let (name, note, state) = (step.to_owned(), note.to_owned(), state.to_owned());
    let row = Row { name, wall: wall.as_secs_f64(), cpu: processor_time(), count, note, state };
    let to = file("steps", step);
    let done = fs::create_dir_all(to.parent().expect("a folder")).and_then(|()| fs::write(&to, row.line()));
    done.map_err(|e| format!("{}: {e}", to.display()))
}

/// What all steps left behind.
pub(super) fn read_all() -> Vec<Row> {
    let files = fs::read_dir(folder().join("steps")).into_iter().flatten().flatten();
    let texts = files.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| Row::parse(text.trim_end_matches('\n'))).collect()
}

/// What a step left behind, if it came to its end.
pub(super) fn read(step: &str) -> Option<Row> {
    Row::parse(fs::read_to_string(file("steps", step)).ok()?.trim_end_matches('\n'))
}

/// When a step began and ended, in seconds from any one time.
pub(super) fn span(row: &Row) -> Option<(f64, f64)> {
    let ended = fs::metadata(file("steps", &row.name)).and_then(|file| file.modified()).ok()?;
    let ended = ended.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64();
    Some((ended - row.wall, ended))
}

/// The calls of the compiler in a step.
pub(super) fn calls(step: &str) -> Vec<Call> {
    let text = fs::read_to_string(file("compiled", step)).unwrap_or_default();
    text.lines().filter_map(Call::parse).collect()
}

/// Seconds of processors that this process and its ended children have taken.
pub(super) fn processor_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have spaces: the state is the third field, utime to cstime are 14 to 17.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(11).take(4).filter_map(|f| f.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// Runs as `RUSTC_WRAPPER` if cargo called this program so: with the compiler as the first argument.
pub(crate) fn as_wrapper(args: &[std::ffi::OsString]) -> Option<ExitCode> {
    let calls = std::env::var_os(CALLS)?;
    let (compiler, rest) = args.split_first()?;
    let name = Path::new(compiler).file_name()?.to_str()?;
    if !matches!(name, "rustc" | "clippy-driver") {
        return None;
    }
    let status = Command::new(compiler).args(rest).status();
    if let Some((krate, profile)) = made(rest) {
        let line = format!("{krate}\t{profile}\t{:.2}\n", processor_time());
        let file = fs::OpenOptions::new().create(true).append(true).open(calls);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    match status {
        Ok(status) if status.success() => Some(ExitCode::SUCCESS),
        Ok(status) => Some(ExitCode::from(u8::try_from(status.code().unwrap_or(101)).unwrap_or(101))),
        Err(e) => {
            eprintln!("{}: {e}", Path::new(compiler).display());
            Some(ExitCode::FAILURE)
        }
    }
}

/// The crate that a call of the compiler makes, and the profile's folder; none for questions about it.
fn made(args: &[std::ffi::OsString]) -> Option<(String, String)> {
    let args: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let behind = |name: &str| args.iter().position(|a| *a == name).and_then(|i| args.get(i + 1));
    let krate = behind("--crate-name")?;
    let out = behind("--out-dir")?;
    let parts: Vec<&str> = out.split('/').collect();
    let end = parts.iter().position(|p| matches!(*p, "deps" | "build" | "examples")).unwrap_or(parts.len());
    let start = parts.iter().rposition(|p| *p == "target").map_or(0, |i| i + 1);
    let of_tests = if args.contains(&"--test") { " (tests)" } else { "" };
    Some((format!("{krate}{of_tests}"), parts.get(start..end)?.join("/")))
}

/// The time that people wait.
pub(super) fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "this is about the time that people wait")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let count = Count { passed: 3, failed: 1, skipped: 2 };
        let row = Row {
            name: "a step".into(),
            wall: 1.5,
            cpu: 2.5,
            count,
            note: "fine".into(),
            state: "abc 123".into(),
        };
        assert_eq!(Row::parse(row.line().trim_end_matches('\n')), Some(row));
    }

    #[test]
    fn a_call_of_the_compiler_names_crate_and_profile() {
        let args = |text: &str| text.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
        let call = args("--crate-name fairhead_core --test --out-dir /a/target/sim/deps");
        assert_eq!(made(&call), Some(("fairhead_core (tests)".into(), "sim".into())));
        let call = args("--crate-name core --out-dir /a/target/loom/debug/deps");
        assert_eq!(made(&call), Some(("core".into(), "loom/debug".into())));
        assert_eq!(made(&args("-vV")), None);
    }
}
