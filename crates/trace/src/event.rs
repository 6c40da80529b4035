//! Events of requests, as the kernel's block layer reports them, in any recorded format.

use crate::record::{DeviceId, Flags, Op, Record};
use crate::reorder::{Reorder, Timed};
use fairhead_core::{Duration, TaskId};

/// The kind of an event. Letters are those of `blkparse`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `Q`: a bio entered the block layer.
    Queue,
    /// `I`: the request was inserted into the scheduler.
    Insert,
    /// `M`: a bio was appended to a queued request (back merge). Writers only; readers ignore it, because its
    /// `Q` has the same information.
    BackMerge,
    /// `F`: a bio was put in front of a queued request (front merge). Writers only.
    FrontMerge,
    /// `D`: the request was issued to the device.
    Issue,
    /// `C`: the request completed.
    Complete,
    /// `R`: the device gave the request back (requeue).
    Requeue,
}

impl Action {
    /// Returns the action of a letter. `None` for letters that neither make nor end a request: `M` and `F` (a
    /// bio joins a request; it had its own `Q`), `G` and `S` (memory for a request), `A` (a bio is remapped
    /// to another device or by its partition's start, and is queued there next), `X` (a bio is split), `B`,
    /// `P`, `U`, `UT`, `m`.
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

    /// Returns the letter that `blkparse` prints for the action.
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

/// One event of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time since the trace began.
    pub at: Duration,
    /// The kind of event.
    pub action: Action,
    /// The process that caused it.
    pub task: TaskId,
    /// The device of the request.
    pub device: DeviceId,
    /// The operation of the request.
    pub op: Op,
    /// Further properties: sync, metadata and so on.
    pub flags: Flags,
    /// The first sector.
    pub sector: u64,
    /// The number of sectors; 0 for a flush, and for the second completion of a write that had to be stable.
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

/// Returns the operation and flags of letters such as `RSM` or `FWFS`: first a preceding flush, then the
/// operation, then its properties.
///
/// `None` for commands that neither read nor write (`N`: commands that pass through).
pub(crate) fn of_letters(letters: &str) -> Option<(Op, Flags)> {
    let preflush = letters.len() > 1 && letters.starts_with('F');
    let rest = if preflush { &letters[1..] } else { letters };
    let op = match rest.bytes().next()? {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        b'F' => Op::Flush,
        // A flush alone is `FF` to the kernel and `FN` to blkparse.
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

/// Returns the letters of an operation and its flags, as blkparse prints them.
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

/// Returns the operation of a request. A write without sectors that asks for a flush is a flush; anything
/// else without sectors is no request (`None`).
pub(crate) fn kind(op: Op, flags: Flags, sectors: u32) -> Option<Op> {
    match (op, sectors) {
        (Op::Flush, 0) => Some(Op::Flush),
        (Op::Write, 0) if flags.has(Flags::PREFLUSH) => Some(Op::Flush),
        (_, 0) | (Op::Flush, _) => None,
        _ => Some(op),
    }
}

/// Whether an event without sectors is the second completion of a write, behind which the kernel flushed. (At
/// sector 0 it is that of a flush.)
pub(crate) fn ends_write(action: Action, op: Op, sector: u64, sectors: u32) -> bool {
    action == Action::Complete && op == Op::Write && sectors == 0 && sector != 0 && sector != u64::MAX
}

/// Splits requests into events: takes requests in order of time and returns their events in order of time,
/// for writers. It holds requests in flight in memory.
pub(crate) struct Timeline {
    events: Reorder<Event>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { events: Reorder::new(usize::MAX) }
    }

    /// Returns the next event if its time is at most `until`.
    pub(crate) fn take(&mut self, until: Duration) -> Option<Event> {
        self.events.take_until(until)
    }

    pub(crate) fn put(&mut self, r: &Record) {
        let moments =
            [(Action::Queue, Some(r.at)), (Action::Issue, r.issued), (Action::Complete, r.completed)];
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
