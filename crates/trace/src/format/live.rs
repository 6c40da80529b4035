//! The events of a live scheduler, as `fairhead serve --record` and `mount --record` write them.
//!
//! ```text
//! fairhead live 1
//! limits tags=1024 pool=0 …                      of the queue; not needed here
//! scheduler bfq slice_idle=8000000 …             not needed here
//! 4398046511104 insert 1023 R 0 8 sync 1 0 be 4  ns, tag, operation, sector, sectors, sync or async, task, group, class, level
//! 4398046512345 dispatch 1023                    the request with this tag is issued; or "hold …", or "empty"
//! 4398046823456 complete 1023                    the disk is done with it
//! 4398046823456 done 1022                        and with this one, which was merged into it
//! ```
//!
//! A request is made when it is inserted. It has the times of its own tag; one that was merged into another
//! is issued with that. `done` alone ends a request that was issued before the scheduler was replaced. What
//! waited then is inserted once more under the same tag, and remains one request.
//!
//! Requests come in the order in which they were inserted, so one that has not completed keeps those after it
//! in memory: at most 65,536, beyond which it is returned without its completion.
//!
//! The device is `disk`: a recording is of one. A read that is `async` is read-ahead. Ignored: groups,
//! priorities and the changes of them, timers, the scheduler and its tunables, and why it holds the disk.
//! Names of clients, flushes and data are not recorded.

use crate::error::{TraceError, quote};
use crate::events::Records;
use crate::fields::{in_sectors, number, ticks};
use crate::lines::Lines;
use crate::record::{Flags, Names, Notes, Op, Record};
use fairhead_core::{Duration, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// The most requests that are kept while an earlier one has not completed.
const WINDOW: usize = 1 << 16;

/// Events that make or end no request.
const OTHERS: [&str; 12] = [
    "timer",
    "tunables",
    "weight",
    "leaf_weight",
    "class",
    "policy",
    "max",
    "min",
    "prio",
    "task_exit",
    "parent",
    "group_exit",
];

/// The reader of the format.
pub(crate) struct Live {
    lines: Lines,
    /// The number of lines so far, up to the second.
    begun: u8,
    requests: Requests,
    /// The file has no more, or the rest is damaged.
    ended: Option<Result<(), TraceError>>,
}

impl Live {
    pub(crate) fn new(lines: Lines) -> Self {
        Self { lines, begun: 0, requests: Requests::default(), ended: None }
    }

    /// Reads a line. `false` after the last.
    fn line(&mut self, names: &mut Names) -> Result<bool, TraceError> {
        let Some(line) = self.lines.next()? else { return Ok(false) };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let done = match (self.begun, &words[..]) {
            (_, []) => return Ok(true),
            (0, ["fairhead", "live", "1"]) | (1, ["limits", ..]) => Ok(()),
            (0, _) => Err("expected 'fairhead live 1' first".to_owned()),
            (1, _) => Err("expected 'limits …' in the second line".to_owned()),
            (_, ["scheduler", ..]) => Ok(()),
            (_, [at, event, rest @ ..]) => self.requests.event(at, event, rest, names),
            (_, [word]) => Err(format!("{}: expected a time in ns and an event", quote(word))),
        };
        self.begun = self.begun.saturating_add(1).min(2);
        match done {
            Ok(()) => Ok(true),
            Err(message) => Err(self.lines.error(message)),
        }
    }
}

impl Records for Live {
    fn next(&mut self, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(record) = self.requests.take(self.ended.is_some()) {
                return Ok(Some(record));
            }
            if let Some(ended) = self.ended.take() {
                self.ended = Some(Ok(()));
                return ended.map(|()| None);
            }
            match self.line(names) {
                Ok(true) => {}
                Ok(false) => self.ended = Some(Ok(())),
                // The requests before it come first.
                Err(e) => self.ended = Some(Err(e)),
            }
        }
    }
}

/// Requests between their insertion and their return, in order of insertion.
#[derive(Default)]
struct Requests {
    now: Duration,
    /// The number of the request that has a tag, for those that have not completed.
    tags: BTreeMap<u16, u64>,
    waiting: VecDeque<Record>,
    /// The number of the first that waits.
    first: u64,
    /// When the request that completed last had been issued: those merged into it were, too.
    issued: Option<Duration>,
}

impl Requests {
    /// Returns the first request if it has completed, or if it is not worth waiting for that.
    fn take(&mut self, all: bool) -> Option<Record> {
        let is_ready = self.waiting.front()?.completed.is_some() || all || self.waiting.len() > WINDOW;
        is_ready.then(|| {
            self.first += 1;
            self.waiting.pop_front()
        })?
    }

    fn event(&mut self, at: &str, event: &str, rest: &[&str], names: &mut Names) -> Result<(), String> {
        let at = ticks("time in ns", at, 1)?;
        if at < self.now {
            return Err("the time is before that of the line before".to_owned());
        }
        self.now = at;
        match (event, rest) {
            ("insert", [tag, request @ ..]) => self.insert(number("tag", tag)?, request, names),
            ("dispatch", ["empty"] | ["hold", _]) => Ok(()),
            ("dispatch", [tag]) => {
                if let Some(record) = self.of(number("tag", tag)?)? {
                    record.issued = Some(at);
                }
                Ok(())
            }
            ("complete", [tag]) => self.complete(number("tag", tag)?, None),
            ("done", [tag]) => self.complete(number("tag", tag)?, self.issued),
            ("insert" | "dispatch" | "complete" | "done", _) => {
                Err(format!("{} words after {event}: expected a tag and what belongs to it", rest.len()))
            }
            (event, _) if OTHERS.contains(&event) => Ok(()),
            (event, _) => Err(format!("event {}: expected insert, dispatch, complete or done", quote(event))),
        }
    }

    /// The request that has this tag; `None` if it is no longer kept.
    fn of(&mut self, tag: u16) -> Result<Option<&mut Record>, String> {
        let id = self.tags.get(&tag).ok_or_else(|| format!("no request with tag {tag} was inserted"))?;
        let at = id.checked_sub(self.first).and_then(|i| usize::try_from(i).ok());
        Ok(at.and_then(|i| self.waiting.get_mut(i)))
    }

    fn complete(&mut self, tag: u16, merged: Option<Duration>) -> Result<(), String> {
        let now = self.now;
        if let Some(record) = self.of(tag)? {
            record.completed = Some(now);
            record.issued = record.issued.or(merged.map(|issued| issued.max(record.at)));
            self.issued = record.issued;
        }
        self.tags.remove(&tag);
        Ok(())
    }

    fn insert(&mut self, tag: u16, words: &[&str], names: &mut Names) -> Result<(), String> {
        let record = request(self.now, words, names)?;
        if self.tags.contains_key(&tag) {
            let same = |r: &Record| {
                (r.op, r.sector, r.sectors, r.task) == (record.op, record.sector, record.sectors, record.task)
            };
            // After a change of the scheduler.
            return match self.of(tag)? {
                None => Ok(()),
                Some(before) if same(before) && before.issued.is_none() => Ok(()),
                Some(_) => Err(format!("tag {tag} has a request that has not completed")),
            };
        }
        self.tags.insert(tag, self.first + self.waiting.len() as u64);
        self.waiting.push_back(record);
        Ok(())
    }
}

fn request(at: Duration, words: &[&str], names: &mut Names) -> Result<Record, String> {
    let [op, sector, sectors, sync, task, _group, _class, _level, ref alone @ ..] = *words else {
        let what = "operation, sector, sectors, sync or async, task, group, class, level";
        return Err(format!("{} words after the tag; a request has 8: {what}", words.len()));
    };
    let op = match op {
        "R" => Op::Read,
        "W" => Op::Write,
        "D" => Op::Discard,
        other => return Err(format!("operation {}: expected R, W or D", quote(other))),
    };
    if !matches!(alone, [] | ["alone"]) {
        return Err("after the level there may be 'alone', and no more".to_owned());
    }
    let mut record = in_sectors(at, op, number("sector", sector)?, number("number of sectors", sectors)?)?;
    record.flags = match (sync, op) {
        ("sync", _) => Flags::SYNC,
        ("async", Op::Read) => Flags::AHEAD,
        ("async", _) => Flags::NONE,
        _ => return Err(format!("{}: expected sync or async", quote(sync))),
    };
    record.task = TaskId(number("task", task)?);
    record.device = names.add_device("disk")?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use crate::{Record, read};

    const START: &str = "fairhead live 1\nlimits tags=4\nscheduler noop\n";

    fn records(lines: &str) -> Result<Vec<Record>, String> {
        let trace = read("a.log", std::io::Cursor::new(format!("{START}{lines}"))).unwrap();
        trace.collect::<Result<_, _>>().map_err(|e| e.to_string())
    }

    /// Sector, issue and completion of each.
    fn times(lines: &str) -> Vec<(u64, Option<u64>, Option<u64>)> {
        let ns = |t: fairhead_core::Duration| t.as_ns();
        let of = |r: Record| (r.sector.0, r.issued.map(ns), r.completed.map(ns));
        records(lines).unwrap().into_iter().map(of).collect()
    }

    #[test]
    fn each_tag_has_its_own_times() {
        // Both are of the same sectors: only tags tell them apart.
        let lines = "10 insert 1 R 0 8 sync 5 0 be 4\n11 insert 2 R 0 8 sync 6 0 be 4\n\
                     12 dispatch 2\n13 dispatch 1\n20 complete 2\n30 complete 1\n";
        assert_eq!(times(lines), [(0, Some(3), Some(20)), (0, Some(2), Some(10))]);
    }

    #[test]
    fn what_is_merged_is_issued_with_the_other() {
        let lines = "10 insert 1 W 0 8 async 5 0 be 4\n11 insert 2 W 8 8 async 5 0 be 4\n\
                     12 dispatch 1\n12 dispatch hold SliceIdle\n20 complete 1\n20 done 2\n21 insert 2 D 64 8 sync 1 0 be 4 alone\n";
        assert_eq!(times(lines), [(0, Some(2), Some(10)), (8, Some(2), Some(10)), (64, None, None)]);
    }

    #[test]
    fn a_change_of_scheduler_makes_no_second_request() {
        let lines = "10 insert 1 R 0 8 sync 5 0 be 4\n11 insert 2 R 64 8 sync 5 0 be 4\n12 dispatch 1\n\
                     scheduler bfq\n13 insert 2 R 64 8 sync 5 0 be 4\n14 dispatch 2\n15 done 1\n16 complete 2\n";
        assert_eq!(times(lines), [(0, Some(2), Some(5)), (64, Some(4), Some(6))]);
    }

    #[test]
    fn damage_is_one_line_after_the_requests_before_it() {
        let good = "10 insert 1 R 0 8 sync 5 0 be 4\n";
        for (line, message) in [
            ("9 timer", "the time is before that of the line before"),
            ("x timer", "'x' is not a time in ns: expected a whole number in range"),
            ("12 complete 3", "no request with tag 3 was inserted"),
            ("12 dispatch 65536", "'65536' is not a tag: expected a whole number in range"),
            ("12 insert 1 R 8 8 sync 5 0 be 4", "tag 1 has a request that has not completed"),
            ("12 insert 2 Q 8 8 sync 5 0 be 4", "operation 'Q': expected R, W or D"),
            ("12 insert 2 R 8 8 maybe 5 0 be 4", "'maybe': expected sync or async"),
            ("12 despatch 1", "event 'despatch': expected insert, dispatch, complete or done"),
            ("12", "'12': expected a time in ns and an event"),
        ] {
            let trace = read("a.log", std::io::Cursor::new(format!("{START}{good}{line}\n"))).unwrap();
            let got: Vec<_> = trace.collect();
            assert_eq!(got.len(), 2, "{line}");
            assert!(got[0].is_ok(), "{line}");
            assert_eq!(got[1].as_ref().unwrap_err().to_string(), format!("a.log:5: {message}"));
        }
        let only_the_head = read("a.log", std::io::Cursor::new("fairhead live 1\n3 timer\n")).unwrap();
        let said = only_the_head.last().unwrap().unwrap_err().to_string();
        assert_eq!(said, "a.log:2: expected 'limits …' in the second line");
    }

    #[test]
    fn a_request_that_never_completes_keeps_few_others() {
        use std::fmt::Write as _;
        let mut lines = "1 insert 0 R 0 8 sync 5 0 be 4\n".to_owned();
        let count = super::WINDOW as u64 + 10;
        for i in 2..count {
            let _ = write!(lines, "{i} insert 1 R {i} 8 sync 5 0 be 4\n{i} dispatch 1\n{i} complete 1\n");
        }
        let _ = writeln!(lines, "{count} dispatch 0\n{count} complete 0");
        let got = records(&lines).unwrap();
        assert_eq!(got.len() as u64, count - 1);
        assert_eq!((got[0].completed, got[1].completed.is_some()), (None, true));
    }
}
