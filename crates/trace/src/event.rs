//! What the kernel's block layer tells of a request, in whatever form it was recorded.

use crate::record::{DeviceId, Flags, Op, Record};
use crate::reorder::{Reorder, Timed};
use fairhead_core::{Duration, TaskId};

/// What happened. The letters are those of `blkparse`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `Q`: somebody wants this.
    Queue,
    /// `I`: the scheduler has it.
    Insert,
    /// `M`: it was appended to a queued request. Only written: to readers it tells nothing that `Q` has not.
    BackMerge,
    /// `F`: it was put in front of a queued request. Only written, too.
    FrontMerge,
    /// `D`: the device has it.
    Issue,
    /// `C`: done.
    Complete,
    /// `R`: the device gave it back.
    Requeue,
}

impl Action {
    /// From its letter; `None` for those that make no request and end none: `M` and `F` (a bio joins a request; it had its own
    /// `Q`), `G` and `S` (memory for a request), `A` (a bio goes on to another device or is shifted by its partition's start,
    /// and is queued there next), `X` (a bio is cut in pieces), `B`, `P`, `U`, `UT`, `m`.
    pub(crate) fn of_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "Q" => Self::Queue,
            "I" => Self::Insert,
            "D" => Self::Issue,
            "C" => Self::Complete,
            "R" => Self::Requeue,
            _ => return None,
        })
    }

    /// Its letter.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::Insert => 'I',
            Self::BackMerge => 'M',
            Self::FrontMerge => 'F',
            Self::Issue => 'D',
            Self::Complete => 'C',
            Self::Requeue => 'R',
        }
    }
}

/// An event of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, since the trace began.
    pub at: Duration,
    /// What.
    pub action: Action,
    /// Whose: the process's number.
    pub task: TaskId,
    /// Of which device.
    pub device: DeviceId,
    /// Read, write, discard or flush.
    pub op: Op,
    /// Sync, metadata and so on.
    pub flags: Flags,
    /// The first sector.
    pub sector: u64,
    /// How many sectors; 0 for a flush.
    pub sectors: u32,
}

impl Event {
    pub(crate) const fn end(&self) -> u64 {
        self.sector + self.sectors as u64
    }
}

impl Timed for Event {
    fn at(&self) -> Duration {
        self.at
    }
    fn delay_to(&mut self, at: Duration) {
        self.at = at;
    }
}

/// The operation and flags that letters such as `RSM` or `FWFS` tell: a flush that comes first, what is done, how.
///
/// `None` for what neither reads nor writes (`N`: commands that pass through).
pub(crate) fn of_letters(letters: &str) -> Option<(Op, Flags)> {
    let preflush = letters.len() > 1 && letters.starts_with('F');
    let rest = if preflush { &letters[1..] } else { letters };
    let op = match rest.bytes().next()? {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        b'F' => Op::Flush,
        // What flushes and does nothing else is `FF` to the kernel and `FN` to blkparse.
        b'N' if preflush => Op::Flush,
        _ => return None,
    };
    let mut flags = if preflush { Flags::PREFLUSH } else { Flags::NONE };
    for letter in rest.bytes().skip(1) {
        flags = flags
            | match letter {
                b'S' => Flags::SYNC,
                b'M' => Flags::META,
                b'A' => Flags::AHEAD,
                b'F' => Flags::FUA,
                _ => Flags::NONE,
            };
    }
    Some((op, flags))
}

/// The letters of an operation and its flags, as blkparse has them.
pub(crate) fn letters(op: Op, flags: Flags) -> String {
    let mut text = String::new();
    if flags.has(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push(match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
        Op::Flush if flags.has(Flags::PREFLUSH) => 'N',
        Op::Flush => 'F',
    });
    for (flag, letter) in [(Flags::FUA, 'F'), (Flags::AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')] {
        if flags.has(flag) {
            text.push(letter);
        }
    }
    text
}

/// A write without sectors that has something flushed is a flush; nothing else without sectors is a request.
pub(crate) fn kind(op: Op, flags: Flags, sectors: u32) -> Option<Op> {
    match (op, sectors) {
        (Op::Flush, 0) => Some(Op::Flush),
        (Op::Write, 0) if flags.has(Flags::PREFLUSH) => Some(Op::Flush),
        (_, 0) | (Op::Flush, _) => None,
        _ => Some(op),
    }
}

/// Takes requests in order of time and gives their events in order of time, for those who write them. Holds those that are under way.
pub(crate) struct Timeline {
    events: Reorder<Event>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { events: Reorder::new(usize::MAX) }
    }

    /// The next event, if it is at `until` or before.
    pub(crate) fn take(&mut self, until: Duration) -> Option<Event> {
        self.events.take_until(until)
    }

    pub(crate) fn put(&mut self, r: &Record) {
        let moments = [
            (Action::Queue, Some(r.at)),
            (Action::Issue, r.issued.filter(|_| r.sectors > 0)),
            (Action::Complete, r.completed.filter(|_| r.sectors > 0)),
        ];
        for (action, at) in moments {
            let Some(at) = at else { continue };
            let Record { task, device, op, flags, sectors, .. } = *r;
            self.events.put(Event { at, action, task, device, op, flags, sector: r.sector.0, sectors });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_both_ways() {
        for text in ["R", "RA", "RSM", "W", "WS", "WFS", "FWFSM", "D", "FN", "FNS", "F"] {
            let (op, flags) = of_letters(text).unwrap();
            assert_eq!(letters(op, flags), text);
        }
        assert_eq!(of_letters("WFS"), Some((Op::Write, Flags::FUA | Flags::SYNC)));
        assert_eq!(of_letters("FWS"), Some((Op::Write, Flags::PREFLUSH | Flags::SYNC)));
        assert_eq!(of_letters("FF"), of_letters("FN"));
        assert_eq!(of_letters("DE"), Some((Op::Discard, Flags::NONE)));
        for text in ["", "N", "NS", "x"] {
            assert_eq!(of_letters(text), None, "{text}");
        }
    }
}
