//! `verify`: what was written is read again, as a disk sees it. No data are compared: nothing is wrong here.
//!
//! ```text
//!   w w w w … w │ r r r r … r │ next loop      each block once: in the order of the writes, if they are random
//!                                              and none repeats; else by file and offset
//!   w w w w r r r r w w w w r r r r …          verify_backlog=4
//! ```
//!
//! What it does not do: read what a run before has written (`verify_only`), or wait, after some writes, until
//! they are done.
//
//= fio-3.33 HOWTO "verify", "verify_backlog", "verify_backlog_batch"; the order of reads seen in its logs

use super::action::Action;
use super::pattern::Io;
use crate::job::{Distribution, Job, Verify};
use std::collections::{BTreeMap, VecDeque};

/// What a client has written and has not read again.
#[derive(Debug, Default)]
pub(super) struct ReadsAgain {
    /// In the order of the writes.
    written: VecDeque<Io>,
    /// By file and offset.
    sorted: BTreeMap<(usize, u64), Io>,
    /// Reads of this batch that are left.
    batch: u32,
    /// The last call was a write, after which it may be time for a batch.
    is_new: bool,
    /// All is written: the rest is being read.
    is_ending: bool,
    /// What was read again, in bytes.
    bytes: u64,
    /// Reads between writes.
    between: u64,
}

impl ReadsAgain {
    /// The client makes this call.
    pub(super) fn note(&mut self, job: &Job, io: Io) {
        // A time-based job ends by its time, and reads nothing then.
        let is_read = job.verify.is_some_and(|v| v.backlog.is_some() || !job.time_based);
        if is_read && io.action == Action::Write {
            let visits_once = job.rw.random && !job.norandommap && job.distribution == Distribution::Uniform;
            if visits_once {
                self.written.push_back(io);
            } else {
                self.sorted.insert((io.file, io.offset), io);
            }
            self.is_new = true;
        }
    }

    /// The next read between writes, if it is time for one.
    #[inline]
    pub(super) fn next(&mut self, job: &Job) -> Option<Io> {
        let Verify { backlog, batch } = job.verify?;
        let waiting = u32::try_from(self.written.len() + self.sorted.len()).unwrap_or(u32::MAX);
        if std::mem::take(&mut self.is_new) && self.batch == 0 && backlog.is_some_and(|most| waiting >= most)
        {
            self.batch = batch;
        }
        self.batch = self.batch.min(waiting).checked_sub(1)?;
        self.between += 1;
        self.read_first()
    }

    /// The next read when all is written.
    pub(super) fn next_at_end(&mut self, job: &Job) -> Option<Io> {
        job.verify?;
        if !std::mem::replace(&mut self.is_ending, true) {
            self.batch = 0;
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

    /// What was read again so far, in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many reads there were between writes.
    pub(super) const fn between(&self) -> u64 {
        self.between
    }

    fn read_first(&mut self) -> Option<Io> {
        let sorted = || self.sorted.pop_first().map(|(_, io)| io);
        let io = self.written.pop_front().or_else(sorted)?;
        self.bytes += u64::from(io.len);
        Some(Io { action: Action::Read, ..io })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64) -> Io {
        Io { action: Action::Write, file: 0, offset, len: 4096 }
    }

    fn job(lines: &str) -> Job {
        let text = format!("[j]\nsize=1m\nrw=randwrite\nverify=crc32c\n{lines}\n");
        crate::job::parse(&text, "j").unwrap().jobs.remove(0)
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
        let twice = reads("norandommap", &[7, 3, 7]);
        assert_eq!(twice, [vec![], vec![], vec![], vec![3, 7]], "twice written, once read");
        assert_eq!(reads("rw=write", &[7, 3]), [vec![], vec![], vec![3, 7]]);
        assert_eq!(reads("do_verify=0", &[7]), [vec![], vec![]]);
    }

    #[test]
    fn a_backlog_is_read_between_writes() {
        assert_eq!(reads("verify_backlog=2", &[2, 1, 3]), [vec![], vec![2, 1], vec![], vec![3]]);
        let batches = reads("verify_backlog=3\nverify_backlog_batch=1", &[1, 2, 3, 4]);
        assert_eq!(batches, [vec![], vec![], vec![1], vec![2], vec![3, 4]]);
        // A block that is written again is one of the backlog.
        let sorted = reads("verify_backlog=2\nnorandommap", &[9, 9, 1]);
        assert_eq!(sorted, [vec![], vec![], vec![1, 9], vec![]]);
    }
}
