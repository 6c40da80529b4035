//! `verify`: what was written is read again, as a disk sees it. No data are compared: nothing is wrong here.
//!
//! ```text
//!   w w w w … w │ r r r r … r │ next loop      each block once: in the order of the writes, or, where blocks
//!                                              were written more than once, by file and offset
//!   w w w w r r r r w w w w r r r r …          verify_backlog=4
//! ```
//!
//! What it does not do: read what a run before has written (`verify_only`), or wait, after some writes, until
//! they are done.
//
//= fio-3.33 HOWTO "verify", "verify_backlog", "verify_backlog_batch"; the order of reads seen in its logs

use super::action::Action;
use super::pattern::Io;
use crate::job::{Job, Verify};
use std::collections::VecDeque;

/// What a client has written and has not read again.
#[derive(Debug, Default)]
pub(super) struct ReadsAgain {
    written: VecDeque<Io>,
    /// Reads of this batch that are left.
    batch: u32,
    /// The last call was a write, after which it may be time for a batch.
    is_new: bool,
    /// All is written: the rest is being read.
    is_ending: bool,
}

impl ReadsAgain {
    /// The client makes this call.
    pub(super) fn note(&mut self, job: &Job, io: Io) {
        if job.verify.is_some() && io.action == Action::Write {
            self.written.push_back(io);
            self.is_new = true;
        }
    }

    /// The next read between writes, if it is time for one.
    #[inline]
    pub(super) fn next(&mut self, job: &Job) -> Option<Io> {
        let Verify { backlog, batch } = job.verify?;
        let waiting = u32::try_from(self.written.len()).unwrap_or(u32::MAX);
        if std::mem::take(&mut self.is_new) && self.batch == 0 && backlog.is_some_and(|most| waiting >= most)
        {
            self.batch = batch;
        }
        self.batch = self.batch.min(waiting).checked_sub(1)?;
        self.read_first()
    }

    /// The next read when all is written.
    pub(super) fn next_at_end(&mut self, job: &Job) -> Option<Io> {
        job.verify?;
        if !std::mem::replace(&mut self.is_ending, true) {
            self.batch = 0;
            self.put_in_order();
        }
        self.read_first()
    }

    /// Whether the rest is being read.
    pub(super) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// The pass is over.
    pub(super) const fn end(&mut self) {
        self.is_ending = false;
    }

    fn read_first(&mut self) -> Option<Io> {
        self.written.pop_front().map(|io| Io { action: Action::Read, ..io })
    }

    /// Blocks that were written more than once are read once, and all by their places.
    fn put_in_order(&mut self) {
        let mut sorted: Vec<Io> = self.written.iter().copied().collect();
        sorted.sort_by_key(|io| (io.file, io.offset));
        let all = sorted.len();
        sorted.dedup_by_key(|io| (io.file, io.offset));
        let has_files = sorted.iter().any(|io| io.file != sorted[0].file);
        if sorted.len() < all || has_files {
            self.written = sorted.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64) -> Io {
        Io { action: Action::Write, file: 0, offset, len: 4096 }
    }

    fn job(lines: &str) -> Job {
        crate::job::parse(&format!("[j]\nsize=1m\nrw=write\nverify=crc32c\n{lines}\n"), "j")
            .unwrap()
            .jobs
            .remove(0)
    }

    /// Writes to these places, and what is read after each and at the end.
    fn reads(lines: &str, places: &[u64]) -> Vec<Vec<u64>> {
        let (job, mut state) = (job(lines), ReadsAgain::default());
        let mut all = Vec::new();
        for &place in places {
            state.note(&job, write(place));
            all.push(std::iter::from_fn(|| state.next(&job)).map(|io| io.offset).collect());
        }
        all.push(std::iter::from_fn(|| state.next_at_end(&job)).map(|io| io.offset).collect());
        all
    }

    #[test]
    fn what_was_written_is_read_at_the_end() {
        assert_eq!(reads("", &[7, 3, 5]), [vec![], vec![], vec![], vec![7, 3, 5]]);
        assert_eq!(reads("", &[7, 3, 7]), [vec![], vec![], vec![], vec![3, 7]], "twice written, once read");
        assert_eq!(reads("do_verify=0", &[7]), [vec![], vec![]]);
    }

    #[test]
    fn a_backlog_is_read_between_writes() {
        assert_eq!(reads("verify_backlog=2", &[1, 2, 3]), [vec![], vec![1, 2], vec![], vec![3]]);
        let batches = reads("verify_backlog=3\nverify_backlog_batch=1", &[1, 2, 3, 4]);
        assert_eq!(batches, [vec![], vec![], vec![1], vec![2], vec![3, 4]]);
    }
}
