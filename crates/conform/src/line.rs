//! One line of a log: who, when, which disk, what.
//!
//! ```text
//!              fio-20428   [000] d..1.  5388.471304:   7,0    Q  RS 0 + 32 [fio]
//!     ksoftirqd/1-22       [001] d.s1.  5388.471850:   7,0   1,0  m   N bfq20428S put_queue: 000000009f402df1 4
//!     └── who ran it       CPU   context  seconds      disk  cgroup (messages)
//! ```
//!
//! The text is ftrace's `blk` tracer in its default form. What is not understood is [`What::Other`]: a log
//! may hold lines that newer kernels, other tracers or other disks wrote. Only a line that has not even this
//! shape is an error.
//!
//! `fairhead-trace` reads this text too, and tells requests; it passes over what decides here: messages,
//! merges, processors, what was interrupted.

use super::message::Message;
use super::words::Words;
use fairhead_core::{Duration, Instant, Op, Request, Sector, Sectors, TaskId};

/// What executes: a task or what interrupted it. Lines of one such thread are in the order of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct Thread {
    /// The task's number.
    pub(super) pid: u32,
    /// The processor; 0 for tasks, which may move.
    pub(super) cpu: u32,
    /// Whether an interrupt, soft or hard, has the processor.
    pub(super) context: Context,
}

/// What has the processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) enum Context {
    Task,
    Soft,
    Hard,
}

/// A request or bio, as far as a line shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Io {
    pub(super) op: Op,
    /// Reads, and writes that are flagged so.
    pub(super) sync: bool,
    pub(super) meta: bool,
    pub(super) start: Sector,
    /// May be 0: a flush.
    pub(super) len: u32,
}

impl Io {
    /// The sector behind the last.
    pub(super) fn end(&self) -> Sector {
        self.start + Sectors(self.len)
    }

    /// As a request of that task, in the root group.
    pub(super) fn request(&self, task: TaskId) -> Request {
        let read = Request::read(task, self.start, Sectors(self.len));
        Request { op: self.op, sync: self.sync, meta: self.meta, ..read }
    }
}

/// What a line tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// `Q`: a bio enters the block layer.
    Queued(Io),
    /// `G`: it gets a request of its own, which its task may keep for a while.
    Got(Io),
    /// `I`: the scheduler has it.
    Inserted(Io),
    /// `M`, `F`: became part of another; whether in front of it.
    Merged(Io, bool),
    /// `D`: the device has it.
    Issued(Io),
    /// `C`: done.
    Completed(Io),
    /// `R`: the device gave it back.
    Requeued(Io),
    /// `m`: the scheduler speaks.
    Message(Message),
    /// A line that does not matter here.
    Other,
}

/// A line, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) thread: Thread,
    pub(super) at: Instant,
    /// Major and minor number.
    pub(super) disk: (u32, u32),
    pub(super) what: What,
}

/// The line, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Line, &'static str> {
    let (who, rest) = split_who(text).ok_or("not a line of the blk tracer: NAME-PID [CPU] … is missing")?;
    let pid = who.trim().rsplit_once('-').and_then(|(_, pid)| pid.parse().ok());
    let pid = pid.ok_or("not a line of the blk tracer: no task number before [CPU]")?;
    let (cpu, rest) = rest.split_once(']').ok_or("no ']' behind the CPU")?;
    let cpu = cpu.trim().parse().map_err(|_| "the CPU is not a number")?;
    let mut words = Words::new(rest);
    let flags = words.next().ok_or("the line ends behind the CPU")?;
    let stamp =
        words.next().and_then(|w| w.strip_suffix(':')).ok_or("no time stamp (SECONDS.MICROSECONDS:)")?;
    let at = time(stamp).ok_or("the time stamp is not SECONDS.MICROSECONDS")?;
    let Some(disk) = words.next().and_then(pair) else {
        // A line of another tracer.
        return Ok(Line { thread: thread(pid, cpu, flags), at, disk: (0, 0), what: What::Other });
    };
    Ok(Line { thread: thread(pid, cpu, flags), at, disk, what: what(&mut words) })
}

/// Splits at the `[` of the CPU: the last one that is followed by digits and `]`, as a task's name may hold
/// anything.
fn split_who(text: &str) -> Option<(&str, &str)> {
    text.match_indices('[').find_map(|(at, _)| {
        let (who, rest) = (&text[..at], &text[at + 1..]);
        let digits = rest.split_once(']')?.0;
        let is_cpu = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let is_task = who.ends_with(' ') && who.trim().rsplit_once('-').is_some_and(|(_, p)| is_number(p));
        (is_cpu && is_task).then_some((who, rest))
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The third flag is the context: `.` task, `s` soft and `h`, `H` hard interrupt, `z`, `Z` an NMI.
fn thread(pid: u32, cpu: u32, flags: &str) -> Thread {
    let context = match flags.as_bytes().get(2) {
        Some(b'h' | b'H' | b'z' | b'Z') => Context::Hard,
        Some(b's') => Context::Soft,
        _ => Context::Task,
    };
    let moves = context == Context::Task && pid != 0;
    Thread { pid, cpu: if moves { 0 } else { cpu }, context }
}

/// `5388.471304`.
fn time(stamp: &str) -> Option<Instant> {
    let (seconds, micros) = stamp.split_once('.')?;
    if micros.len() != 6 || !is_number(micros) {
        return None;
    }
    let us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    // Room is kept above, so that deadlines can be computed.
    let ns = us.checked_mul(1000).filter(|ns| *ns < u64::MAX / 4)?;
    Some(Instant::EPOCH + Duration::from_ns(ns))
}

/// `7,0`.
fn pair(text: &str) -> Option<(u32, u32)> {
    let (a, b) = text.split_once(',')?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

fn what(words: &mut Words<'_>) -> What {
    let mut action = words.next().unwrap_or_default();
    if pair(action).is_some() {
        // The cgroup, which messages carry.
        action = words.next().unwrap_or_default();
    }
    let of: fn(Io) -> What = match action {
        "Q" => What::Queued,
        "G" => What::Got,
        "I" => What::Inserted,
        "M" => |io| What::Merged(io, false),
        "F" => |io| What::Merged(io, true),
        "D" => What::Issued,
        "C" => What::Completed,
        "R" => What::Requeued,
        "m" => {
            // The message's own flags: N.
            words.next();
            return What::Message(Message::parse(words.rest()));
        }
        _ => return What::Other,
    };
    io(words).map_or(What::Other, of)
}

/// `RS 0 + 32 [fio]`.
fn io(words: &mut Words<'_>) -> Option<Io> {
    let flags = words.next()?;
    let start = words.next()?.parse().ok()?;
    if words.next()? != "+" {
        return None;
    }
    let len = words.next()?.parse().ok()?;
    // A preflush comes first; the operation follows.
    let flags = flags.strip_prefix('F').filter(|rest| !rest.is_empty()).unwrap_or(flags);
    let op = match flags.as_bytes().first()? {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        // A flush: no sectors, and no business of the scheduler.
        b'F' => return Some(Io { op: Op::Write, sync: true, meta: false, start: Sector(0), len: 0 }),
        _ => return None,
    };
    let sync = op == Op::Read || flags[1..].contains(['S', 'F']);
    // So that nothing overflows where ends are computed.
    (start < u64::MAX / 4).then_some(Io { op, sync, meta: flags.contains('M'), start: Sector(start), len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(start: u64, len: u32) -> Io {
        Io { op: Op::Read, sync: true, meta: false, start: Sector(start), len }
    }

    #[test]
    fn an_event_of_a_task() {
        let line =
            parse("             fio-20428   [000] d..1.  5388.471304:   7,0    Q  RS 96 + 32 [fio]").unwrap();
        assert_eq!(line.thread, Thread { pid: 20428, cpu: 0, context: Context::Task });
        assert_eq!(line.at.as_ns() - Instant::EPOCH.as_ns(), 5_388_471_304_000);
        assert_eq!((line.disk, line.what), ((7, 0), What::Queued(read(96, 32))));
    }

    #[test]
    fn names_may_hold_anything() {
        for (text, pid, cpu) in [
            ("     ksoftirqd/1-22      [001] d.s1.  5.000001:   7,0    C  RS 0 + 32 [0]", 22, 1),
            ("  kworker/0:2H-19581   [000] d..1.  5.000001:   7,0    C  RS 0 + 32 [0]", 19581, 0),
            ("   a [3] b-c-17   [012] d..1.  5.000001:   7,0    C  RS 0 + 32 [0]", 17, 0),
            ("          <idle>-0       [001] d.h2.  5.000001:   7,0    C  RS 0 + 32 [0]", 0, 1),
        ] {
            let line = parse(text).unwrap();
            assert_eq!(
                (line.thread.pid, line.thread.cpu, line.what),
                (pid, cpu, What::Completed(read(0, 32)))
            );
        }
    }

    #[test]
    fn contexts_are_threads_of_their_own() {
        let at = |flags: &str| {
            let text = format!("  fio-5   [003] {flags}  5.000001:   7,0    C  RS 0 + 32 [0]");
            parse(&text).unwrap().thread
        };
        assert_eq!(at("d..1."), Thread { pid: 5, cpu: 0, context: Context::Task });
        assert_eq!(at("d.s1."), Thread { pid: 5, cpu: 3, context: Context::Soft });
        assert_eq!(at("d.h2."), at("d.H2."));
    }

    #[test]
    fn flags_tell_the_kind() {
        let io = |flags: &str| match parse(&format!("  a-5 [0] d..1. 5.000001: 7,0 I {flags} 8 + 8 [a]"))
            .unwrap()
            .what
        {
            What::Inserted(io) => Some((io.op, io.sync, io.meta)),
            _ => None,
        };
        assert_eq!(io("R"), Some((Op::Read, true, false)));
        assert_eq!(io("RA"), Some((Op::Read, true, false)));
        assert_eq!(io("RSM"), Some((Op::Read, true, true)));
        assert_eq!(io("W"), Some((Op::Write, false, false)));
        assert_eq!(io("WS"), Some((Op::Write, true, false)));
        assert_eq!(io("WFS"), Some((Op::Write, true, false)));
        assert_eq!(io("FWS"), Some((Op::Write, true, false)));
        assert_eq!(io("WM"), Some((Op::Write, false, true)));
        assert_eq!(io("D"), Some((Op::Discard, false, false)));
        assert_eq!(io("N"), None);
    }

    #[test]
    fn what_is_unknown_is_passed_over() {
        for text in [
            "  fio-5   [003] d..1.  5.000001:   7,0    P   N [fio]",
            "  fio-5   [003] d..1.  5.000001:   7,0    U   N [fio] 1",
            "  fio-5   [003] d..1.  5.000001:   7,0    X  RS 0 / 8 [fio]",
            "  fio-5   [003] d..1.  5.000001: sched_switch: something else",
            "  fio-5   [003] d..1.  5.000001:",
        ] {
            assert_eq!(parse(text).unwrap().what, What::Other, "{text}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in [
            "hello",
            "fio-x [000] d..1. 5.000001: 7,0 Q RS 0 + 8",
            "  fio-5 [000]",
            "  fio-5 [000] d..1.",
            "  fio-5 [000] d..1. 5.1: 7,0 Q RS 0 + 8",
            "  fio-5 [000] d..1. 99999999999999999999.000000: 7,0 Q RS 0 + 8",
            "  fio-99999999999999999999 [000] d..1. 5.000001: 7,0 Q RS 0 + 8",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
