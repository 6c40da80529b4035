//! ftrace's text: the kernel's `trace` and `trace_pipe` files, the output of `trace-cmd report`, and the
//! similar output of `perf script`.
//!
//! There are two notations, which may be mixed:
//!
//! ```text
//! the blk tracer (`current_tracer` is `blk`)
//!           fio-20569   [001] d..1.  5423.202123:   7,0    Q   R 111168 + 32 [fio]
//! the events block/*
//!           fio-20569   [001] d..1.  5423.202123: block_bio_queue: 7,0 R 111168 + 32 [fio]
//!           fio-20569   [001] d..1.  5423.202140: block_rq_issue: 7,0 R 16384 () 111168 + 32 be,0,4 [fio]
//!        <idle>-0       [001] d.h1.  5423.203140: block_rq_complete: 7,0 R () 111168 + 32 be,0,4 [0]
//!           └── who ran it CPU  context  seconds                 device
//! ```
//!
//! `perf script` writes `NAME PID [CPU] SECONDS: block:EVENT: …`, or `NAME PID/TID` if it is asked for both
//! (`-F +pid`); the thread counts. Stacks between the events, as `perf record -g` and ftrace's `stacktrace`
//! make them, are passed over.
//!
//! Units: time in seconds since the machine started, with up to nine decimals; sectors of 512 bytes. A device
//! is `MAJOR,MINOR`; the task is the one that ran. The events that count are `block_bio_queue` (`Q`),
//! `block_rq_insert` (`I`), `block_rq_issue` (`D`), `block_rq_complete` (`C`), `block_rq_requeue` (`R`), and
//! `block_bio_complete` (`C`), which devices without requests have instead (dm, md); the crate's `assemble`
//! module explains which of them make a request. If only `block_rq_issue` was recorded, the task is often a
//! kernel thread that ran the queue.
//!
//! Ignored are lines that begin with `#`, other events, and messages of schedulers. Lost events (`[LOST 25
//! EVENTS]`) are counted.
//
//= linux Documentation/trace/ftrace.rst "Output format"; Documentation/trace/events.rst

use super::LineParser;
use super::blkparse::{io, pair};
use crate::event::{Action, Event};
use crate::fields::{decimal, number};
use crate::record::{Names, Notes};
use fairhead_core::TaskId;

/// The parser of the format.
#[derive(Default)]
pub(crate) struct Ftrace {
    /// Whether the last line was a call of a stack.
    in_stack: bool,
}

/// Whether a line begins like one of this format.
pub(super) fn has_shape(line: &str) -> bool {
    is_note(line) || split_who(line).is_some_and(|(_, _, rest)| rest.contains(':'))
}

/// Whether a line is a comment, or one of those that `trace-cmd report` begins with.
fn is_heading(line: &str) -> bool {
    let is_empty = line.starts_with("CPU ") && line.trim_end().ends_with(" is empty");
    is_empty || ["#", "cpus=", "version = ", "trace-cmd version"].iter().any(|p| line.starts_with(p))
}

/// Whether a line reports lost events: `CPU:1 [LOST 25 EVENTS]`, `CPU:1 [25 EVENTS DROPPED]`.
pub(super) fn is_note(line: &str) -> bool {
    lost(line).is_some()
}

/// Returns how many events a line reports as lost.
pub(super) fn lost(line: &str) -> Option<u64> {
    let (_, text) = line.trim().strip_prefix("CPU:")?.split_once('[')?;
    let words: Vec<&str> = text.trim_end_matches(']').split_ascii_whitespace().collect();
    match words[..] {
        ["LOST", n, "EVENTS"] | [n, "EVENTS", "DROPPED"] => number("", n).ok(),
        // The line has no number.
        ["LOST", "EVENTS"] | ["EVENTS", "DROPPED"] => Some(1),
        _ => None,
    }
}

/// Whether a line is a call of a stack: `ffffffff8142 blk_mq_start_request+0x0 ([kernel.kallsyms])`, the
/// address alone, or ftrace's ` => blk_mq_start_request`.
fn is_call(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_address = |s: &str| {
        let digits = s.strip_prefix("0x").unwrap_or(s);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let is_indented = line.starts_with([' ', '\t']);
    match words[..] {
        ["=>", ..] => true,
        [address] => is_indented && is_address(address),
        [address, .., last] => is_indented && is_address(address) && last.ends_with(')'),
        [] => false,
    }
}

/// Whether a line is a place in a source file: `  blk-mq.c:1340`.
fn is_source(line: &str) -> bool {
    let number = |word: &str| word.rsplit_once(':').is_some_and(|(_, n)| number::<u32>("", n).is_ok());
    line.starts_with([' ', '\t']) && line.split_ascii_whitespace().next().is_some_and(number)
}

/// Returns the task's name, its number, and the text after the CPU, of `NAME-PID [CPU] …`, `NAME-PID (TGID)
/// [CPU] …`, `NAME PID [CPU] …` or `NAME PID/TID [CPU] …`. A name may contain any characters.
fn split_who(line: &str) -> Option<(&str, u32, &str)> {
    line.match_indices('[').find_map(|(at, _)| {
        let (cpu, rest) = line[at + 1..].split_once(']')?;
        number::<u32>("CPU", cpu.trim()).ok()?;
        let mut who = line[..at].strip_suffix([' ', '\t'])?.trim();
        if let Some(group) = who.strip_suffix(')') {
            who = group.rsplit_once('(')?.0.trim_end();
        }
        let (name, pid) = who.rsplit_once(['-', ' '])?;
        let tid = match pid.split_once('/') {
            Some((process, thread)) => number::<u32>("", process).ok().map(|_| thread)?,
            None => pid,
        };
        Some((name.trim(), number("process's number", tid).ok()?, rest))
    })
}

impl LineParser for Ftrace {
    type Item = Event;

    fn line(&mut self, line: &str, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, String> {
        if line.trim().is_empty() || is_heading(line) {
            self.in_stack = false;
            return Ok(None);
        }
        if let Some(n) = lost(line) {
            notes.lost = notes.lost.saturating_add(n);
            return Ok(None);
        }
        let Some((name, pid, rest)) = split_who(line) else {
            // Behind a call, perf may print its line in the source.
            self.in_stack = is_call(line) || (self.in_stack && is_source(line));
            let wrong = "no line of ftrace: expected NAME-PID [CPU] FLAGS SECONDS: …".to_owned();
            return if self.in_stack { Ok(None) } else { Err(wrong) };
        };
        self.in_stack = false;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        // trace-cmd omits the flags.
        let (time, words) = match words[..] {
            [time, ref rest @ ..] if time.ends_with(':') => (time, rest),
            [_, time, ref rest @ ..] if time.ends_with(':') => (time, rest),
            _ => return Err("no time: expected SECONDS: behind the CPU and the flags".to_owned()),
        };
        let at = decimal("time", time.trim_end_matches(':'), 1_000_000_000)?;
        let Some((action, device, io_words)) = what(words) else { return Ok(None) };
        let Some((op, flags, sector, sectors)) = io(action, io_words)? else { return Ok(None) };
        let (device, task) = (names.add_device(device)?, TaskId(pid));
        if !matches!(action, Action::Complete | Action::Requeue) {
            names.name_task(task, name);
        }
        Ok(Some(Event { at, action, task, device, op, flags, sector, sectors }))
    }
}

/// Returns the action, the device, and the words from the flags on.
fn what<'a, 'w>(words: &'w [&'a str]) -> Option<(Action, &'a str, &'w [&'a str])> {
    // perf may print the number of samples first.
    let words = match words {
        [n, rest @ ..] if n.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => words,
    };
    let (first, rest) = words.split_first()?;
    if pair(first).is_some() {
        let (second, others) = rest.split_first()?;
        // The cgroup, as numbers or as a path.
        let is_group = second.contains(',') || second.starts_with('/');
        let (letter, io) = if is_group { others.split_first()? } else { (second, others) };
        return Some((Action::of_letter(letter)?, first, io));
    }
    let name = first.strip_suffix(':')?;
    let action = match name.strip_prefix("block:").unwrap_or(name) {
        "block_bio_queue" => Action::Queue,
        "block_rq_insert" => Action::Insert,
        "block_rq_issue" => Action::Issue,
        "block_rq_complete" | "block_bio_complete" => Action::Complete,
        "block_rq_requeue" => Action::Requeue,
        _ => return None,
    };
    let (device, io) = rest.split_first()?;
    pair(device).is_some().then_some((action, *device, io))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Result<Option<Event>, String> {
        Ftrace::default().line(line, &mut Names::default(), &mut Notes::default())
    }

    #[test]
    fn names_may_hold_anything() {
        for (text, name, pid) in [
            ("     ksoftirqd/1-22      [001] d.s1.  5.000001: x", "ksoftirqd/1", 22),
            ("   a [3] b-c-17   [012] d..1.  5.000001: x", "a [3] b-c", 17),
            ("          <idle>-0       [001] d.h2.  5.000001: x", "<idle>", 0),
            ("        app-20   (   20) [001] .... 1.220000: x", "app", 20),
            ("       main-20   (-----) [001] .... 1.220000: x", "main", 20),
            ("  fio  1234 [000]  5423.202123: block:block_rq_issue: 8,0 R", "fio", 1234),
            ("fio 1234/1239 [000]  5423.202123: block:block_rq_issue: 8,0 R", "fio", 1239),
            ("  jbd2/sda1-8   412/412   [000]  5.000001: x", "jbd2/sda1-8", 412),
            (" Web Content 77/80 [000]  5.000001: x", "Web Content", 80),
            (" kworker/0:1H-88 [000] .... 5.000001: x", "kworker/0:1H", 88),
        ] {
            assert_eq!(split_who(text).map(|(n, p, _)| (n, p)), Some((name, pid)), "{text}");
        }
    }

    #[test]
    fn all_ways_of_telling_an_issue() {
        for line in [
            "fio-5 [001] d..1.  5.000001:   7,0    D  RS 96 + 32 [fio]",
            "fio-5 [001] d..1.  5.000001:   7,0   1,0  D  RS 96 + 32 [fio]",
            "fio-5 [001] d..1.  5.000001: block_rq_issue: 7,0 RS 16384 () 96 + 32 [fio]",
            "fio-5 [001] d..1.  5.000001: block_rq_issue: 7,0 RS 16384 () 96 + 32 be,0,4 [fio]",
            "fio-5 [001]     5.000001: block_rq_issue: 7,0 RS 16384 () 96 + 32 [fio]",
            "fio 5 [001]     5.000001: block:block_rq_issue: 7,0 RS 16384 () 96 + 32 [fio]",
            "fio 5/6 [001]   5.000001: block:block_rq_issue: 7,0 RS 16384 () 96 + 32 be,0,4 [fio]",
            "fio 5 [001]     5.000001000:          1 block:block_rq_issue: 7,0 RS 16384 () 96 + 32 [fio]",
        ] {
            let e = event(line).unwrap().unwrap();
            assert_eq!((e.at.as_ns(), e.action, e.sector, e.sectors), (5_000_001_000, Action::Issue, 96, 32));
        }
    }

    #[test]
    fn what_is_of_no_interest_is_passed_over() {
        for line in [
            "# tracer: blk",
            "version = 7",
            "cpus=8",
            "CPU 3 is empty",
            "  fio-5   [003] d..1.  5.000001:   7,0    P   N [fio]",
            "  fio-5   [003] d..1.  5.000001:   7,0   1,0  m   N bfq5S put_queue",
            "  fio-5   [003] d..1.  5.000001:   7,0    A   R 8 + 8 <- (7,1) 0",
            "  fio-5   [003] d..1.  5.000001: sched_switch: something else",
            "  fio-5   [003] d..1.  5.000001: block_rq_issue: 8,0 N 0 () 0 + 0 [k]",
            "  rep-5   [003] ..s. 5.9: block_rq_complete: 8,0 WS () 18446744073709551615 + 0 [0]",
        ] {
            assert_eq!(event(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn stacks_are_passed_over() {
        let mut parser = Ftrace::default();
        let mut read = |line: &str| parser.line(line, &mut Names::default(), &mut Notes::default());
        for line in [
            "\tffffffff81442 blk_mq_start_request+0x0 ([kernel.kallsyms])",
            "\t    7f0c1d2e3f40 [unknown] (/usr/lib/libc.so.6)",
            "\t            55d0 main+0x10 (inlined)",
            "  main.c:17",
            "\t        55d0aabb",
            " => blk_mq_start_request",
            " => 0xffffffff81442",
            "=> submit_bio (ffffffff81442)",
            "",
        ] {
            assert_eq!(read(line), Ok(None), "{line}");
        }
        assert!(read("  main.c:17").is_err(), "behind no call");
        assert!(read("ffffffff81442 blk_mq_start_request+0x0 (x)").is_err(), "calls are indented");
        assert!(read("  x-5 [003] d..1.  5.000001: <stack trace>").is_ok());
        let line = " cafe 5 [001]  5.000001: block:block_rq_issue: 7,0 R 4096 () 96 + 8 [cafe]";
        assert!(read(line).unwrap().is_some(), "a name that looks like an address");
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in [
            "hello",
            "fio-x [000] d..1. 5.000001: 7,0 Q RS 0 + 8",
            "  fio-5 [000]",
            "  fio-5 [000] d..1.",
            "  fio-5 [000] d..1. 99999999999999999999.000000: 7,0 Q RS 0 + 8",
            "  fio-99999999999999999999 [000] d..1. 5.000001: 7,0 Q RS 0 + 8",
            "  fio-5 [000] d..1. 5.000001: 7,0 Q RS 99999999999999999999 + 8",
            "  fio-5 [000] d..1. 5.000001: 7,0 Q RS 5 +",
        ] {
            assert!(event(line).is_err(), "{line}");
        }
    }
}
