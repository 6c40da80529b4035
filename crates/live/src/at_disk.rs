//! The ios that the disk has: in the order in which they began, which is that in which they are given up.
//!
//! All have the same time. So the first one's end is the next of all, and finding it takes no walk; an io
//! that is done leaves the row, wherever it stands in it. One that was given up is in no row any more, but
//! here, until the disk is done with it all the same.
//!
//! ```text
//!   first ─► 7 ⇄ 2 ⇄ 9 ◄─ last         by slot; 3 was given up
//! ```
//!
//! What it does not do: say what becomes of bios, tags or the scheduler when an io is given up.

use crate::bio::{Bio, BioId, FileId, Op};
use fairhead_core::request::Request;
use fairhead_core::units::{Duration, Instant, Tag};
use slab::Slab;
use std::ops::{Index, IndexMut};

/// A part of a bio, as long as the device takes it: the unit that is merged, done, and fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The bio, whose data are [`RequestQueue::data`](crate::RequestQueue::data).
    pub bio: BioId,
    /// The operation.
    pub op: Op,
    /// The file.
    pub file: FileId,
    /// The first byte in the file.
    pub offset: u64,
    /// The offset of that byte in the bio's data.
    pub at: u32,
    /// How many bytes.
    pub len: u32,
    /// Done when it is stable.
    pub fua: bool,
    pub(crate) tag: Tag,
}

impl Piece {
    /// Whether `next` continues this one, so that one transfer does for both.
    #[must_use]
    pub fn is_followed_by(&self, next: &Self) -> bool {
        // A question is about what is behind its own bytes, too.
        self.op != Op::Extents
            && (self.op, self.file, self.fua, self.offset + u64::from(self.len))
                == (next.op, next.file, next.fua, next.offset)
    }
}

/// An io's number, until it is [finished](crate::RequestQueue::finished).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoId(pub usize);

#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) tag: Tag,
    /// Which scheduler issued it, counted from the first.
    pub(crate) era: u64,
    pub(crate) request: Request,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) began: Instant,
    pub(crate) is_given_up: bool,
}

#[derive(Debug)]
struct Place {
    io: Io,
    before: Option<usize>,
    after: Option<usize>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct AtDisk {
    ios: Slab<Place>,
    timeout: Option<Duration>,
    first: Option<usize>,
    last: Option<usize>,
    in_flight: u16,
    given_up: u32,
}

impl AtDisk {
    /// The disk has nothing. What it takes longer than `timeout` for is late; without one, nothing is.
    pub(crate) const fn new(timeout: Option<Duration>) -> Self {
        Self { ios: Slab::new(), timeout, first: None, last: None, in_flight: 0, given_up: 0 }
    }

    /// An io begins, not before any other did.
    pub(crate) fn begins(&mut self, io: Io) -> IoId {
        debug_assert!(self.last.is_none_or(|l| self.ios[l].io.began <= io.began), "time went back");
        let slot = self.ios.insert(Place { io, before: self.last, after: None });
        match self.last.replace(slot) {
            Some(last) => self.ios[last].after = Some(slot),
            None => self.first = Some(slot),
        }
        self.in_flight += 1;
        IoId(slot)
    }

    /// The disk is done with it.
    pub(crate) fn ends(&mut self, id: IoId) -> Io {
        if self[id].is_given_up {
            self.given_up -= 1;
        } else {
            self.leaves_row(id);
        }
        self.ios.remove(id.0).io
    }

    /// Marks an io as given up: no client waits for its result any more, but the kernel may still use its
    /// memory.
    pub(crate) fn gives_up(&mut self, id: IoId) {
        self.leaves_row(id);
        self[id].is_given_up = true;
        self.given_up += 1;
    }

    fn leaves_row(&mut self, id: IoId) {
        let Place { before, after, .. } = self.ios[id.0];
        match before {
            Some(before) => self.ios[before].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.ios[after].before = before,
            None => self.last = before,
        }
        self.in_flight -= 1;
    }

    /// An io that is to be given up by now.
    pub(crate) fn late(&self, now: Instant) -> Option<IoId> {
        self.first.map(IoId).filter(|_| self.next_timer().is_some_and(|at| at <= now))
    }

    /// When the next one is.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let (first, timeout) = (self.first?, self.timeout?);
        Some(self.ios[first].io.began + timeout)
    }

    /// How many there are that have not been given up, and how many that have.
    pub(crate) const fn count(&self) -> (u16, u32) {
        (self.in_flight, self.given_up)
    }

    /// Whether a write that was given up may still change what this is about.
    pub(crate) fn may_change(&self, bio: &Bio) -> bool {
        let given_up = self.ios.iter().filter(|(_, p)| p.io.is_given_up);
        self.given_up > 0
            && bio.op != Op::Flush
            && given_up.flat_map(|(_, p)| &p.io.pieces).any(|p| {
                p.op.changes() && p.file == bio.file && overlap((p.offset, p.len), (bio.offset, bio.len))
            })
    }

    /// Whether one of the pieces that the disk has is about the same, and `is_one` of those that matter.
    pub(crate) fn has(&self, piece: &Piece, is_one: impl Fn(&Piece) -> bool) -> bool {
        self.ios.iter().flat_map(|(_, p)| &p.io.pieces).any(|p| {
            piece.op != Op::Flush
                && is_one(p)
                && p.file == piece.file
                && overlap((p.offset, p.len), (piece.offset, piece.len))
        })
    }

    /// Panics if anything is inconsistent.
    pub(crate) fn check(&self) {
        let row: Vec<usize> = std::iter::successors(self.first, |&s| self.ios[s].after).collect();
        let back: Vec<usize> = std::iter::successors(self.last, |&s| self.ios[s].before).collect();
        assert!(row.iter().rev().eq(&back), "{row:?} forwards, {back:?} backwards");
        assert!(row.is_sorted_by_key(|&s| self.ios[s].io.began), "in the order in which they began");
        assert!(row.iter().all(|&s| !self.ios[s].io.is_given_up));
        assert_eq!((row.len(), self.ios.len() - row.len()), (self.in_flight.into(), self.given_up as usize));
    }
}

fn overlap(a: (u64, u32), b: (u64, u32)) -> bool {
    a.0 < b.0 + u64::from(b.1) && b.0 < a.0 + u64::from(a.1)
}

impl Index<IoId> for AtDisk {
    type Output = Io;
    fn index(&self, id: IoId) -> &Io {
        &self.ios[id.0].io
    }
}

impl IndexMut<IoId> for AtDisk {
    fn index_mut(&mut self, id: IoId) -> &mut Io {
        &mut self.ios[id.0].io
    }
}
