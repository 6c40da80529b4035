//! Requests that are too long to be done at once: copies from file to file, and allocation of space.
//!
//! Each is done piece by piece, one at a time, on the account of its caller. So a copy of a GiB is no more to
//! the others than reads and writes of a MiB, a limit of its group holds, and its caller can be killed.
//!
//! ```text
//!   copy 2.5 MiB      read 1 ─► write 1 ─► read 1 ─► write 1 ─► read 0.5 ─► write 0.5 ─► 2.5 MiB
//!   allocate 100 MiB  64, the size of the file stays ─► 36 less 4 KiB, likewise ─► 4 KiB, and the size
//! ```
//!
//! What it does not do: ask the disk (`front.rs`).

use super::protocol::{DATA_MAX, Reply, put32};
use super::range::Range;
use crate::bio::{Errno, Op};

/// The longest piece of an allocation. The request queue cuts it further.
const ALLOCATE_MAX: u64 = 64 << 20;
/// The piece of an allocation that may set the size of the file.
const LAST: u64 = 4096;
/// The most bytes of a copy: the answer has 32 bits.
const COPY_MAX: u64 = 1 << 30;

/// A place in an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) node: u64,
    pub(super) handle: u64,
    pub(super) offset: u64,
}

impl Spot {
    const fn range(&self, op: Op, len: u32, sheds: bool) -> Range {
        let Self { node, handle, offset } = *self;
        Range { op, node, handle, offset, len, fua: false, sheds }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Copy {
        from: Spot,
        /// The bytes that have been read and not been written.
        read: u32,
    },
    Allocate {
        mode: u8,
    },
}

/// A long request, and how far it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LongRequest {
    kind: Kind,
    to: Spot,
    done: u64,
    left: u64,
    /// Whether it clears set-user-ID and set-group-ID.
    sheds: bool,
}

impl LongRequest {
    pub(super) fn copy(from: Spot, to: Spot, len: u64, sheds: bool) -> Self {
        Self { kind: Kind::Copy { from, read: 0 }, to, done: 0, left: len.min(COPY_MAX), sheds }
    }

    pub(super) const fn allocate(to: Spot, len: u64, mode: u8, sheds: bool) -> Self {
        Self { kind: Kind::Allocate { mode }, to, done: 0, left: len, sheds }
    }

    /// The next piece; `None` if all are done.
    pub(super) fn next(&self) -> Option<Range> {
        if self.left == 0 {
            return None;
        }
        Some(match self.kind {
            Kind::Copy { from, read: 0 } => {
                from.range(Op::Read, self.left.min(DATA_MAX.into()) as u32, false)
            }
            Kind::Copy { read, .. } => self.to.range(Op::Write, read, self.sheds),
            Kind::Allocate { mode } => {
                // The size changes when the space is there.
                let keeps_size = self.left > LAST;
                let len = if keeps_size { (self.left - LAST).min(ALLOCATE_MAX) } else { self.left };
                let keep = if keeps_size { libc::FALLOC_FL_KEEP_SIZE as u8 } else { 0 };
                self.to.range(Op::Allocate { mode: mode | keep }, len as u32, self.sheds)
            }
        })
    }

    /// The last piece is done: `len` bytes.
    pub(super) fn did(&mut self, len: u32) {
        if let Kind::Copy { from, read } = &mut self.kind {
            if *read == 0 {
                *read = len;
                from.offset += u64::from(len);
                return;
            }
            *read = 0;
        }
        self.to.offset += u64::from(len);
        self.done += u64::from(len);
        self.left -= u64::from(len);
    }

    /// The answer. A copy that fails, or is interrupted, has done what it has done.
    pub(super) fn reply(&self, result: Result<(), Errno>) -> Reply {
        match self.kind {
            Kind::Copy { .. } => {
                if self.done == 0 {
                    result?;
                }
                let mut out = Vec::with_capacity(8);
                put32(&mut out, self.done as u32);
                put32(&mut out, 0);
                Ok(out)
            }
            Kind::Allocate { .. } => result.map(|()| Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;
    const FROM: Spot = Spot { node: 2, handle: 7, offset: 100 };
    const TO: Spot = Spot { node: 3, handle: 8, offset: 5000 };

    /// The pieces of a request, each done in full.
    fn pieces(mut request: LongRequest) -> (Vec<(Op, u64, u64, u32)>, LongRequest) {
        let mut pieces = Vec::new();
        while let Some(Range { op, handle, offset, len, .. }) = request.next() {
            pieces.push((op, handle, offset, len));
            request.did(len);
        }
        (pieces, request)
    }

    #[test]
    fn a_copy_reads_and_writes_in_turns() {
        let len = u64::from(MIB) + 10;
        let (copy, end) = pieces(LongRequest::copy(FROM, TO, len, false));
        let mib = u64::from(MIB);
        let expected = [
            (Op::Read, 7, 100, MIB),
            (Op::Write, 8, 5000, MIB),
            (Op::Read, 7, 100 + mib, 10),
            (Op::Write, 8, 5000 + mib, 10),
        ];
        assert_eq!(copy, expected);
        assert_eq!(end.reply(Ok(())).unwrap()[..4], (MIB + 10).to_ne_bytes());
    }

    #[test]
    fn a_copy_that_is_cut_short_says_what_it_did() {
        let mut copy = LongRequest::copy(FROM, TO, 1 << 40, false);
        assert_eq!(copy.reply(Err(Errno::INTR)), Err(Errno::INTR));
        copy.did(MIB);
        assert_eq!(copy.reply(Err(Errno::INTR)), Err(Errno::INTR), "read and not written");
        copy.did(MIB);
        assert_eq!(copy.reply(Err(Errno::IO)).unwrap()[..4], MIB.to_ne_bytes());
    }

    #[test]
    fn the_size_of_a_file_changes_when_the_space_is_there() {
        const KEEP: u8 = libc::FALLOC_FL_KEEP_SIZE as u8;
        let (allocate, end) = pieces(LongRequest::allocate(TO, 100 << 20, 0, false));
        let modes = allocate.iter().map(|piece| (piece.0, piece.3)).collect::<Vec<_>>();
        let op = |mode| Op::Allocate { mode };
        assert_eq!(modes, [(op(KEEP), 64 * MIB), (op(KEEP), 36 * MIB - 4096), (op(0), 4096)]);
        assert_eq!(allocate[2].2, 5000 + (100 << 20) - 4096);
        assert_eq!(end.reply(Ok(())), Ok(Vec::new()));
        let (punch, _) = pieces(LongRequest::allocate(TO, 10, KEEP | 2, false));
        assert_eq!(punch, [(op(KEEP | 2), 8, 5000, 10)]);
    }
}
