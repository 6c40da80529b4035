//! How an io's pieces become operations on files, and what their outcomes mean: the part of doing I/O that
//! does none.
//!
//! Pieces that continue each other are done in one operation, a *run*. An operation may do less than it was
//! asked for: the run continues behind that. What is behind the end of a file reads as zeros. If a run of
//! several pieces fails, each is done by itself, so that only the clients whose bytes fail get the error, not
//! the neighbours that they were merged with.
//!
//! ```text
//!   pieces   a b c   d   e            runs   [a b c] [d] [e]      (d is in another file, e leaves a gap)
//!   [a b c]: 6 KiB of 12  →  go on at 6 KiB  →  EIO  →  [b] from its middle, [c]   (a is done)
//! ```
//!
//! What it does not do: memory, and the operation itself; it says which bytes of which pieces are next.

use crate::bio::{Errno, Op};
use crate::request_queue::Piece;
use std::ops::Range;

/// Some pieces in a row, and how far they are done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The pieces, by index.
    pub pieces: Range<usize>,
    /// The bytes of these that are done.
    pub done: u64,
}

/// The next step of a run, or that it is done.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Then {
    /// Operations for these, as far as they are not done; those of which nothing is left become stable.
    Do(Vec<Run>),
    /// The file ends here: of these, what is not done reads as zeros, and they are done.
    ZeroFill(Run),
    /// These pieces are done, with success or not.
    Done,
}

/// An io in progress.
#[derive(Debug)]
pub struct Transfer {
    pieces: Vec<Piece>,
    results: Vec<Result<(), Errno>>,
    open: usize,
}

impl Transfer {
    /// An io that begins, with what is to be done first.
    #[must_use]
    pub fn new(pieces: &[Piece]) -> (Self, Vec<Run>) {
        let mut runs: Vec<Run> = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if pieces[i - 1].is_followed_by(piece) => run.pieces.end = i + 1,
                _ => runs.push(Run { pieces: i..i + 1, done: 0 }),
            }
        }
        let transfer =
            Self { pieces: pieces.to_vec(), results: vec![Ok(()); pieces.len()], open: runs.len() };
        (transfer, runs)
    }

    /// All pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The bytes of a run that are not done: for each piece, which of its bytes.
    pub fn rest<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = (&'a Piece, Range<u32>)> {
        let mut skip = run.done;
        self.pieces[run.pieces.clone()].iter().filter_map(move |piece| {
            let from = skip.min(u64::from(piece.len)) as u32;
            skip -= u64::from(from);
            (from < piece.len).then_some((piece, from..piece.len))
        })
    }

    fn bytes(&self, run: &Run) -> u64 {
        self.pieces[run.pieces.clone()].iter().map(|p| u64::from(p.len)).sum()
    }

    /// An operation on a run came back, with how many bytes it did.
    pub fn step(&mut self, mut run: Run, outcome: Result<u64, Errno>) -> Then {
        let op = self.pieces[run.pieces.start].op;
        match outcome {
            Ok(0) if op == Op::Read => {
                self.open -= 1;
                Then::ZeroFill(run)
            }
            // Nothing was written, and there is no error: to try again might never end.
            Ok(0) if run.done < self.bytes(&run) => self.fail(run, Errno::IO),
            Ok(done) => {
                run.done += done;
                if run.done < self.bytes(&run) {
                    return Then::Do(vec![run]);
                }
                self.open -= 1;
                Then::Done
            }
            Err(errno) => self.fail(run, errno),
        }
    }

    fn fail(&mut self, run: Run, errno: Errno) -> Then {
        self.open -= 1;
        if run.pieces.len() == 1 {
            self.results[run.pieces.start] = Err(errno);
            return Then::Done;
        }
        let mut skip = run.done;
        let mut runs = Vec::new();
        for i in run.pieces {
            let len = u64::from(self.pieces[i].len);
            let done = skip.min(len);
            skip -= done;
            // What is written has to become stable, too, whatever becomes of the others.
            if done < len || self.pieces[i].fua {
                runs.push(Run { pieces: i..i + 1, done });
            }
        }
        self.open += runs.len();
        Then::Do(runs)
    }

    /// A run is done: what it wrote has become stable, too, or what it asked for is known.
    pub const fn settle(&mut self) {
        self.open -= 1;
    }

    /// Fails a whole run whose writes could not be made stable: to try again would succeed, and mean nothing.
    pub fn lose(&mut self, run: &Run, errno: Errno) {
        self.open -= 1;
        self.results[run.pieces.clone()].fill(Err(errno));
    }

    /// The results by piece, once nothing is in flight.
    #[must_use]
    pub fn results(&self) -> Option<&[Result<(), Errno>]> {
        (self.open == 0).then_some(&self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{BioId, FileId};
    use fairhead_core::units::Tag;

    fn piece(op: Op, file: u32, offset: u64, len: u32) -> Piece {
        let bio = BioId { slot: 0, serial: 0 };
        Piece { bio, op, file: FileId(file), offset, at: 0, len, fua: false, tag: Tag(0) }
    }

    /// What is left of a run, as (offset in the file, bytes).
    fn rest(t: &Transfer, run: &Run) -> Vec<(u64, u32)> {
        t.rest(run).map(|(p, r)| (p.offset + u64::from(r.start), r.end - r.start)).collect()
    }

    #[test]
    fn pieces_in_a_row_are_one_run() {
        let w = |offset| piece(Op::Write, 0, offset, 4096);
        let fua = Piece { fua: true, ..w(12288) };
        let other_file = piece(Op::Write, 1, 16384, 4096);
        let (t, runs) = Transfer::new(&[w(0), w(4096), w(8192), fua, other_file, w(20480)]);
        let ranges: Vec<_> = runs.iter().map(|r| r.pieces.clone()).collect();
        assert_eq!(ranges, [0..3, 3..4, 4..5, 5..6]);
        assert_eq!(rest(&t, &runs[0]), [(0, 4096), (4096, 4096), (8192, 4096)]);
        assert_eq!(t.results(), None);
    }

    #[test]
    fn a_short_transfer_goes_on_where_it_ended() {
        let (mut t, mut runs) = Transfer::new(&[piece(Op::Read, 0, 0, 4096), piece(Op::Read, 0, 4096, 4096)]);
        let Then::Do(again) = t.step(runs.pop().unwrap(), Ok(5000)) else { panic!("3192 bytes are missing") };
        assert_eq!(rest(&t, &again[0]), [(5000, 3192)]);
        let Then::Do(again) = t.step(again[0].clone(), Ok(3191)) else { panic!("one byte is missing") };
        assert_eq!(t.step(again[0].clone(), Ok(1)), Then::Done);
        assert_eq!(t.results(), Some(&[Ok(()), Ok(())][..]));
    }

    #[test]
    fn behind_the_end_of_the_file_there_are_zeros_and_nothing_can_be_written_there() {
        let (mut t, mut runs) = Transfer::new(&[piece(Op::Read, 0, 0, 4096)]);
        let Then::Do(again) = t.step(runs.pop().unwrap(), Ok(100)) else { panic!("short") };
        let Then::ZeroFill(zeros) = t.step(again[0].clone(), Ok(0)) else { panic!("the end") };
        assert_eq!(rest(&t, &zeros), [(100, 3996)]);
        assert_eq!(t.results(), Some(&[Ok(())][..]));
        let (mut t, mut runs) = Transfer::new(&[piece(Op::Write, 0, 0, 4096)]);
        assert_eq!(t.step(runs.pop().unwrap(), Ok(0)), Then::Done);
        assert_eq!(t.results(), Some(&[Err(Errno::IO)][..]));
    }

    #[test]
    fn an_error_goes_to_whose_bytes_are_to_blame() {
        let pieces: Vec<Piece> = (0..4).map(|i| piece(Op::Read, 0, i * 4096, 4096)).collect();
        let (mut t, mut runs) = Transfer::new(&pieces);
        let Then::Do(again) = t.step(runs.pop().unwrap(), Ok(5000)) else { panic!("short") };
        let Then::Do(alone) = t.step(again[0].clone(), Err(Errno::IO)) else { panic!("each by itself") };
        let left: Vec<_> = alone.iter().flat_map(|r| rest(&t, r)).collect();
        assert_eq!(left, [(5000, 3192), (8192, 4096), (12288, 4096)], "the first is done");
        assert_eq!(t.step(alone[0].clone(), Ok(3192)), Then::Done);
        assert_eq!(t.step(alone[1].clone(), Err(Errno::IO)), Then::Done);
        assert_eq!(t.results(), None);
        assert_eq!(t.step(alone[2].clone(), Ok(4096)), Then::Done);
        assert_eq!(t.results(), Some(&[Ok(()), Ok(()), Err(Errno::IO), Ok(())][..]));
    }

    #[test]
    fn what_is_written_still_has_to_become_stable_if_its_neighbour_fails() {
        let fua = |offset| Piece { fua: true, ..piece(Op::Write, 0, offset, 4096) };
        let (mut t, mut runs) = Transfer::new(&[fua(0), fua(4096)]);
        let Then::Do(again) = t.step(runs.pop().unwrap(), Ok(4096)) else { panic!("short") };
        let Then::Do(alone) = t.step(again[0].clone(), Err(Errno::IO)) else { panic!("each by itself") };
        assert_eq!(alone, [Run { pieces: 0..1, done: 4096 }, Run { pieces: 1..2, done: 0 }]);
        assert_eq!(rest(&t, &alone[0]), [], "nothing is left but the sync");
        assert_eq!(t.step(alone[1].clone(), Err(Errno::IO)), Then::Done);
        assert_eq!(t.results(), None);
        t.settle();
        assert_eq!(t.results(), Some(&[Ok(()), Err(Errno::IO)][..]));
    }
}
