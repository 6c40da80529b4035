//! Results that are kept in the repository, so that a step is not repeated whose inputs are the same.
//!
//! A step with inputs (paths) has a row in the table *Results* of `docs/testing.md`: date, commit, a hash of
//! what its inputs contained, and what came of it. [`unchanged`] compares that hash with today's. The step
//! runs if there is no row, if the hash differs, or if a file of the inputs differs from the last commit.
//! `cargo xtask record` writes the rows of the steps that ran last and passed.
//!
//! The hash is over names and contents alone, so it holds in a shallow clone and after a rebase. What it does
//! not see: the compiler and the packages of the machine. `--all` and the nightly lane repeat everything.

use super::cost::{self, Row};
use crate::shell::{capture, command, root};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// The page with the table.
const PAGE: &str = "docs/testing.md";

/// The line in front of the table.
const MARK: &str = "<!-- results, by cargo xtask record -->";

/// The most characters of a note in the table.
const NOTE_MAX: usize = 110;

const HEAD: &str = "| step | date | commit | inputs | what came of it |\n|---|---|---|---|---|\n";

/// The last result of a step whose inputs are as they were then.
pub(super) fn unchanged(step: &str, inputs: &[&str]) -> Option<String> {
    if inputs.is_empty() {
        return None;
    }
    let hash = hash(inputs)?;
    let text = fs::read_to_string(root().join(PAGE)).ok()?;
    let (date, commit) = found(table(&text)?, step, &hash)?;
    Some(format!("as on {date} at {commit}: its inputs are the same"))
}

/// Date and commit of a step's row, if it has this hash.
fn found(table: &str, step: &str, hash: &str) -> Option<(String, String)> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = table.lines().map(cells).find(|cells| cells.get(1).is_some_and(|name| name == step))?;
    (row.get(4)? == hash).then(|| (row[2].clone(), row[3].clone()))
}

/// The commit and the hash of inputs, or of everything where there are none; empty if they differ from the
/// commit.
pub(super) fn state(inputs: &[&str]) -> String {
    let commit = git(&["rev-parse", "--short=12", "HEAD"], &[]).unwrap_or_default();
    hash(inputs).map_or(String::new(), |hash| format!("{commit} {hash}"))
}

/// A hash of names and contents; none if a file differs from the last commit, or git cannot tell.
fn hash(inputs: &[&str]) -> Option<String> {
    if !git(&["status", "--porcelain", "--"], inputs)?.is_empty() {
        return None;
    }
    let listing = git(&["ls-files", "-s", "--"], inputs)?;
    hash_of(&listing)
}

/// A hash of a text.
fn hash_of(text: &str) -> Option<String> {
    let mut git = command("git", "hash-object --stdin");
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok()?.get(..12).map(str::to_owned)
}

fn git(args: &[&str], paths: &[&str]) -> Option<String> {
    let output = capture(command("git", "").args(args).args(paths)).ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The table's lines.
fn table(text: &str) -> Option<&str> {
    let start = text.find(MARK)? + MARK.len();
    let rest = text[start..].trim_start_matches('\n');
    Some(&rest[..rest.find("\n\n").map_or(rest.len(), |i| i + 1)])
}

/// Writes the rows of the steps that ran last: those that passed, with inputs or in the nightly lane.
pub(crate) fn record() -> Result<(), String> {
    let page = root().join(PAGE);
    let text = fs::read_to_string(&page).map_err(|e| format!("{PAGE}: {e}"))?;
    let old = table(&text).ok_or_else(|| format!("{PAGE} has no line {MARK}"))?;
    let date = capture(&mut command("date", "-u +%F"))?;
    let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    let rows: Vec<Row> = cost::read_all().into_iter().filter(is_result).collect();
    let mut lines: Vec<String> = old.lines().skip(2).map(str::to_owned).collect();
    for row in &rows {
        let line = line(row, &date);
        match lines.iter_mut().find(|l| l.starts_with(&format!("| {} |", row.name))) {
            Some(old) => *old = line,
            None => lines.push(line),
        }
        println!("{}", row.name);
    }
    lines.sort();
    let new = format!("{HEAD}{}\n", lines.join("\n"));
    fs::write(&page, text.replacen(old, &new, 1)).map_err(|e| format!("{PAGE}: {e}"))
}

/// Whether a row is worth keeping: its step has inputs, nothing of them was changed, and it held.
fn is_result(row: &Row) -> bool {
    !row.state.is_empty() && row.count.failed == 0 && !row.note.starts_with("skipped")
}

fn line(row: &Row, date: &str) -> String {
    let (commit, hash) = row.state.split_once(' ').unwrap_or((&row.state, "-"));
    let mut what: String = row.note.replace('|', "/").chars().take(NOTE_MAX).collect();
    if row.note.chars().count() > NOTE_MAX {
        what.push('…');
    }
    format!("| {} | {date} | {commit} | {hash} | {what} |", row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Testing\n\n<!-- results, by cargo xtask record -->\n\
        | step | date | commit | inputs | what came of it |\n|---|---|---|---|---|\n\
        | the page | 2026-11-28 | 0123abc | deadbeef0123 | works |\n\nMore.\n";

    #[test]
    fn a_result_counts_for_the_inputs_that_it_had() {
        let table = table(TEXT).expect("a table");
        assert!(table.ends_with("works |\n"), "{table}");
        let there = found(table, "the page", "deadbeef0123");
        assert_eq!(there, Some(("2026-11-28".to_owned(), "0123abc".to_owned())));
        assert_eq!(found(table, "the page", "deadbeef0124"), None);
        assert_eq!(found(table, "another", "deadbeef0123"), None);
    }

    #[test]
    fn inputs_have_a_hash_of_their_own() {
        if !crate::shell::exists("git") {
            println!("skipped: no git");
            return;
        }
        let (a, b) = (hash_of("100644 a 0 x"), hash_of("100644 b 0 x"));
        assert!(a.as_ref().is_some_and(|hash| hash.len() == 12) && a != b, "{a:?} {b:?}");
    }

    #[test]
    fn what_failed_or_was_skipped_is_no_result() {
        let row = |failed, note: &str, state: &str| {
            let count = crate::outcome::Count { passed: 1, failed, skipped: 0 };
            Row { name: "a".into(), wall: 1.0, cpu: 1.0, count, note: note.into(), state: state.into() }
        };
        assert!(is_result(&row(0, "fine", "c h")));
        assert!(!is_result(&row(1, "fine", "c h")) && !is_result(&row(0, "skipped: no node", "c h")));
        assert!(!is_result(&row(0, "fine", "")));
        assert_eq!(line(&row(0, "a | b", "c h"), "d"), "| a | d | c | h | a / b |");
    }
}
