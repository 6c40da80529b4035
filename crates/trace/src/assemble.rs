//! Assembles requests from the events of a kernel's trace.
//!
//! A bio is queued (`Q`), becomes a request (`G`) or part of one (`M` behind, `F` in front), is inserted
//! (`I`), issued (`D`), and completes (`C`) with all that was merged:
//!
//! ```text
//! Q 100+8   G   Q 108+8   M   I 100+16   D 100+16   C 100+16      two records: 100+8 and 108+8, issued and
//! └ record      └ record                 └ both     └ both        completed at the same instant
//! ```
//!
//! **Which event makes a record.** `Q`, if there is one among the first 4096 events: the bios of programs,
//! before the recorded scheduler merged them. If there is none (a recording of `I`, `D` or `C` only), each
//! request of the recorded machine: `I`, or `D` for a request that bypassed the scheduler. A merge after `I`
//! then shows as a `D` that is longer; the record grows to its length.
//!
//! **How events are matched.** `D` and `C` belong to the records of the same device and operation whose
//! sectors they overlap; of several with the same first sector, to the one that has waited longest. A record
//! is complete when all its sectors are, even in pieces (`X`). A request that is requeued (`R`) and issued
//! again keeps its first time of issue. Requests that were in flight when recording began are left out.
//! Flushes have no sectors; the crate's `flushes` module finds their issues and completions by order. A write
//! that has to be stable may complete twice; the `stable` module explains which of both counts.
//!
//! **Remaps** (`A`) are ignored: by the time a bio of a partition is queued, its sectors are the disk's.
//! Through a stacked device (dm, md) a bio is queued twice, on both devices; a replay has to select one of
//! them.
//!
//! **Memory.** At most [`WINDOW`] records wait, in order, for their completion; one more ends the wait of the
//! first, which is then without a completion.

use crate::event::{Action, Event};
use crate::flushes::Flushes;
use crate::record::{Flags, Op, Record};
use crate::stable::Stable;
use fairhead_core::{Duration, Sector};
use std::collections::{BTreeSet, VecDeque};

/// The number of events that are read to see which kinds there are.
const LOOK: usize = 4096;
/// The most records that wait for completions.
const WINDOW: usize = 1 << 16;

/// A record that waits for its completion.
struct Pending {
    record: Record,
    /// The number of sectors that have not completed; 1 for a flush that has not, and for a write that is not
    /// stable yet.
    left: u32,
}

/// Takes events in order of time and returns records in order of time.
pub(crate) struct Assembler {
    /// The first events, until it is known which kind of event makes a record.
    first: Vec<Event>,
    /// Whether `Q` makes records; `None` until that is known.
    by_queue: Option<bool>,
    waiting: VecDeque<Pending>,
    /// The number of the first record in `waiting`, counted from the beginning of the trace.
    base: u64,
    /// The records in `waiting` with sectors that have not completed: device, first sector and number.
    open: BTreeSet<(u32, u64, u64)>,
    /// The flushes in `waiting` that have not completed.
    flushes: Flushes,
    /// The writes in `waiting` that are written and have to be stable.
    stable: Stable,
    /// The length of the longest record so far, in sectors: how far back an overlap may begin.
    longest: u64,
}

impl Assembler {
    pub(crate) fn new() -> Self {
        Self {
            first: Vec::new(),
            by_queue: None,
            waiting: VecDeque::new(),
            base: 0,
            open: BTreeSet::new(),
            flushes: Flushes::default(),
            stable: Stable::default(),
            longest: 0,
        }
    }

    pub(crate) fn put(&mut self, event: Event) {
        if self.by_queue.is_some() {
            return self.event(&event);
        }
        self.first.push(event);
        if event.action == Action::Queue || self.first.len() == LOOK {
            self.decide();
        }
    }

    /// Marks the end of the events.
    pub(crate) fn end(&mut self) {
        self.decide();
    }

    fn decide(&mut self) {
        let by_queue = self.first.iter().any(|e| e.action == Action::Queue);
        self.by_queue.get_or_insert(by_queue);
        for event in std::mem::take(&mut self.first) {
            self.event(&event);
        }
    }

    /// Returns the next record, once no later event can change it. `ended`: there are no more events.
    pub(crate) fn take(&mut self, ended: bool) -> Option<Record> {
        let first = self.waiting.front()?;
        if first.left > 0 && self.waiting.len() < WINDOW && !ended {
            return None;
        }
        let Pending { record, left } = self.waiting.pop_front()?;
        if left > 0 && record.op == Op::Flush {
            self.flushes.forget(record.device.0, self.base);
        } else if left > 0 {
            self.open.remove(&(record.device.0, record.sector.0, self.base));
            self.stable.forget((record.device.0, record.sector.0), self.base);
        }
        self.base += 1;
        Some(record)
    }

    fn event(&mut self, event: &Event) {
        let by_queue = self.by_queue == Some(true);
        if event.op == Op::Flush {
            return self.flush(event, by_queue);
        }
        if event.sectors == 0 {
            return self.end_write(event);
        }
        match event.action {
            Action::Queue => self.begin(event, None),
            Action::Insert if by_queue => {}
            Action::Insert if self.overlapping(event).is_empty() => self.begin(event, None),
            // It was requeued.
            Action::Insert | Action::Requeue | Action::BackMerge | Action::FrontMerge => {}
            Action::Issue => self.issue(event, by_queue),
            Action::Complete => self.complete(event),
        }
    }

    fn begin(&mut self, event: &Event, issued: Option<Duration>) {
        let record = Record {
            issued,
            task: event.task,
            device: event.device,
            flags: event.flags,
            ..Record::new(event.at, event.op, Sector(event.sector), event.sectors)
        };
        let number = self.base + self.waiting.len() as u64;
        let left = if event.op == Op::Flush {
            self.flushes.add(event.device.0, number);
            1
        } else {
            self.open.insert((event.device.0, event.sector, number));
            self.longest = self.longest.max(u64::from(event.sectors));
            event.sectors
        };
        self.waiting.push_back(Pending { record, left });
    }

    /// Takes an event of a flush. Flushes bypass the scheduler, so that insertions say nothing.
    fn flush(&mut self, event: &Event, by_queue: bool) {
        let (device, at) = (event.device.0, event.at);
        match event.action {
            Action::Queue => self.begin(event, None),
            Action::Issue => {
                if !by_queue && !self.flushes.waits(device) {
                    self.begin(event, None);
                }
                for number in self.flushes.issue(device, at) {
                    self.at(number).record.issued.get_or_insert(at);
                }
            }
            Action::Complete => {
                for number in self.flushes.complete(device, at) {
                    let pending = self.at(number);
                    pending.left = 0;
                    pending.record.completed = Some(at);
                }
            }
            Action::Requeue => self.flushes.requeue(device),
            Action::Insert | Action::BackMerge | Action::FrontMerge => {}
        }
    }

    fn issue(&mut self, event: &Event, by_queue: bool) {
        let found = self.overlapping(event);
        if found.is_empty() {
            if !by_queue {
                self.begin(event, Some(event.at));
            }
            return;
        }
        if let ([only], false) = (&found[..], by_queue) {
            self.grow(*only, event);
        }
        for number in found {
            self.at(number).record.issued.get_or_insert(event.at);
        }
    }

    /// Extends a record by a request that was merged into it after it was inserted.
    fn grow(&mut self, number: u64, event: &Event) {
        let waiting = self.at(number);
        let r = &mut waiting.record;
        let (first, grows) = (r.sector.0, event.sector <= r.sector.0 && event.end() >= r.end());
        if !grows || waiting.left < r.sectors {
            return;
        }
        (r.sector, r.sectors) = (Sector(event.sector), event.sectors);
        waiting.left = event.sectors;
        self.open.remove(&(event.device.0, first, number));
        self.open.insert((event.device.0, event.sector, number));
        self.longest = self.longest.max(u64::from(event.sectors));
    }

    fn complete(&mut self, event: &Event) {
        for number in self.overlapping(event) {
            let waiting = self.at(number);
            let r = &mut waiting.record;
            let covered = r.end().min(event.end()) - r.sector.0.max(event.sector);
            waiting.left = waiting.left.saturating_sub(u32::try_from(covered).unwrap_or(u32::MAX));
            if waiting.left > 0 {
                continue;
            }
            r.completed = Some(event.at);
            let (place, flags) = ((r.device.0, r.sector.0), r.flags);
            self.open.remove(&(place.0, place.1, number));
            if flags.has(Flags::FUA) {
                let (waits, before) = self.stable.write(place, number);
                self.at(number).left = u32::from(waits);
                before.into_iter().for_each(|before| self.at(before).left = 0);
            }
        }
    }

    /// Takes the second completion of a write: it is stable.
    fn end_write(&mut self, event: &Event) {
        if let Some(number) = self.stable.complete((event.device.0, event.sector)) {
            let waiting = self.at(number);
            waiting.left = 0;
            waiting.record.completed = Some(event.at);
        }
    }

    fn at(&mut self, number: u64) -> &mut Pending {
        let index = usize::try_from(number - self.base).expect("an index into what waits");
        &mut self.waiting[index]
    }

    /// Returns the numbers of the records that the event covers, one for each first sector.
    fn overlapping(&self, event: &Event) -> Vec<u64> {
        let mut found: Vec<u64> = Vec::new();
        let device = event.device.0;
        let from = (device, event.sector.saturating_sub(self.longest), 0);
        let mut last = None;
        for (_, sector, number) in self.open.range(from..(device, event.end(), 0)) {
            let index = usize::try_from(number - self.base).expect("an index into what waits");
            let record = &self.waiting[index].record;
            if record.end() > event.sector && record.op == event.op && last != Some(*sector) {
                found.push(*number);
                last = Some(*sector);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DeviceId, Flags};
    use fairhead_core::TaskId;

    fn event(at: u64, letter: &str, sector: u64, sectors: u32) -> Event {
        Event {
            at: Duration::from_ns(at),
            action: Action::of_letter(letter).unwrap(),
            task: TaskId(1),
            device: DeviceId(0),
            op: Op::Read,
            flags: Flags::NONE,
            sector,
            sectors,
        }
    }

    /// Time, issue, completion, sector and sectors of all records.
    type Row = (u64, Option<u64>, Option<u64>, u64, u32);

    fn records(events: &[(u64, &str, u64, u32)]) -> Vec<Row> {
        assembled(events.iter().map(|(at, letter, sector, sectors)| event(*at, letter, *sector, *sectors)))
    }

    fn assembled(events: impl Iterator<Item = Event>) -> Vec<Row> {
        let mut a = Assembler::new();
        events.for_each(|e| a.put(e));
        a.end();
        let ns = |t: Option<Duration>| t.map(Duration::as_ns);
        let row = |r: Record| (r.at.as_ns(), ns(r.issued), ns(r.completed), r.sector.0, r.sectors);
        std::iter::from_fn(|| a.take(true)).map(row).collect()
    }

    #[test]
    fn merged_bios_complete_together() {
        let got = records(&[
            (1, "Q", 100, 8),
            (2, "Q", 108, 8),
            (3, "I", 100, 16),
            (4, "D", 100, 16),
            (9, "C", 100, 16),
        ]);
        assert_eq!(got, [(1, Some(4), Some(9), 100, 8), (2, Some(4), Some(9), 108, 8)]);
    }

    #[test]
    fn a_split_bio_completes_with_its_last_piece() {
        let got = records(&[(1, "Q", 0, 16), (2, "D", 0, 8), (3, "D", 8, 8), (4, "C", 8, 8), (5, "C", 0, 8)]);
        assert_eq!(got, [(1, Some(2), Some(5), 0, 16)]);
    }

    #[test]
    fn of_two_alike_the_older_completes_first() {
        let got = records(&[(1, "Q", 0, 8), (2, "Q", 0, 8), (3, "D", 0, 8), (4, "C", 0, 8), (6, "C", 0, 8)]);
        assert_eq!(got, [(1, Some(3), Some(4), 0, 8), (2, None, Some(6), 0, 8)]);
    }

    #[test]
    fn without_queueing_requests_are_the_records() {
        let got = records(&[
            (1, "I", 100, 8),
            (2, "D", 92, 16),
            (3, "D", 500, 8),
            (4, "R", 92, 16),
            (5, "I", 92, 16),
            (6, "D", 92, 16),
            (7, "C", 92, 16),
            (8, "C", 700, 8),
        ]);
        assert_eq!(got, [(1, Some(2), Some(7), 92, 16), (3, Some(3), None, 500, 8)]);
    }

    #[test]
    fn what_began_before_the_recording_is_left_out() {
        assert_eq!(records(&[(1, "D", 7, 1), (2, "C", 7, 1), (3, "Q", 9, 1)]), [(3, None, None, 9, 1)]);
        assert!(records(&[(1, "C", 7, 1)]).is_empty());
    }

    /// Time, issue and completion of the flushes of these events.
    fn flushes(events: &[(u64, &str)]) -> Vec<(u64, Option<u64>, Option<u64>)> {
        let flush = |(at, letter): &(u64, &str)| Event { op: Op::Flush, ..event(*at, letter, 0, 0) };
        assembled(events.iter().map(flush)).into_iter().map(|(at, d, c, ..)| (at, d, c)).collect()
    }

    #[test]
    fn a_flush_answers_all_that_waited_when_it_was_issued() {
        let got = flushes(&[(1, "Q"), (2, "Q"), (3, "D"), (4, "Q"), (5, "C"), (6, "D"), (7, "C")]);
        assert_eq!(got, [(1, Some(3), Some(5)), (2, Some(3), Some(5)), (4, Some(6), Some(7))]);
        // The flush before and after a write answers no other.
        let got = flushes(&[(1, "D"), (2, "Q"), (3, "C"), (4, "D"), (5, "C"), (6, "D"), (7, "C"), (8, "Q")]);
        assert_eq!(got, [(2, Some(4), Some(5)), (8, None, None)]);
    }

    #[test]
    fn a_write_that_has_to_be_stable_ends_with_the_flush_behind_it() {
        let event = |at, letter, sector, sectors| Event {
            op: Op::Write,
            flags: Flags::FUA,
            ..event(at, letter, sector, sectors)
        };
        let twice = |at: u64, sector| {
            let (q, d, c) =
                (event(at, "Q", sector, 8), event(at + 1, "D", sector, 8), event(at + 2, "C", sector, 8));
            [q, d, c, event(at + 5, "C", sector, 0)]
        };
        let all = [twice(10, 96), twice(20, 96), twice(30, 200)].concat();
        let ends = |events: Vec<Event>| -> Vec<Option<u64>> {
            assembled(events.into_iter()).into_iter().map(|(_, _, c, ..)| c).collect()
        };
        // The first shows what the device does.
        assert_eq!(ends(all.clone()), [Some(12), Some(25), Some(35)]);
        // An end that is missing, and one of no write.
        let lost: Vec<Event> = all.iter().copied().filter(|e| e.at.as_ns() != 25).collect();
        assert_eq!(ends(lost), [Some(12), Some(22), Some(35)]);
        let once: Vec<Event> = all.iter().copied().filter(|e| e.sectors > 0).collect();
        assert_eq!(ends(once), [Some(12), Some(22), Some(32)]);
        assert_eq!(ends(vec![event(1, "C", 96, 0)]), []);
        // Both at one place: the second gives the first up.
        let again = [&all[..4], &all[4..7], &twice(26, 96)].concat();
        assert_eq!(ends(again), [Some(12), Some(22), Some(31)]);
    }

    #[test]
    fn a_flush_that_is_given_back_is_one_flush() {
        let events = [(1, "D"), (2, "R"), (3, "D"), (4, "C"), (5, "D"), (6, "C")];
        assert_eq!(flushes(&events), [(1, Some(1), Some(4)), (5, Some(5), Some(6))]);
        let events = [(1, "Q"), (2, "D"), (3, "R"), (4, "Q"), (5, "D"), (6, "C")];
        assert_eq!(flushes(&events), [(1, Some(2), Some(6)), (4, Some(5), Some(6))]);
    }

    #[test]
    fn without_issues_a_completion_is_the_oldest_flushs() {
        assert_eq!(flushes(&[(1, "Q"), (2, "Q"), (3, "C")]), [(1, None, Some(3)), (2, None, None)]);
    }

    #[test]
    fn a_lost_completion_does_not_shift_all_others() {
        let s = 1_000_000_000;
        let events = [(0, "Q"), (1, "D"), (40 * s, "Q"), (40 * s + 1, "D"), (40 * s + 2, "C")];
        assert_eq!(
            flushes(&events),
            [(0, Some(1), None), (40 * s, Some(40 * s + 1), Some(40 * s + 2))],
            "the first is given up after 30 s"
        );
    }

    #[test]
    fn a_flush_does_not_wait_for_ever() {
        let mut a = Assembler::new();
        let mut out = 0;
        for i in 0..WINDOW as u64 + 10 {
            a.put(Event { op: Op::Flush, ..event(i, "Q", 0, 0) });
            out += u32::from(a.take(false).is_some());
        }
        assert_eq!(out, 11);
        for letter in ["D", "C"] {
            a.put(Event { op: Op::Flush, ..event(70_000, letter, 0, 0) });
        }
        let last = std::iter::from_fn(|| a.take(false)).filter(|r| r.completed.is_some()).count();
        assert_eq!(last, WINDOW - 1);
    }

    #[test]
    fn a_record_does_not_wait_for_ever() {
        let mut a = Assembler::new();
        let mut out = 0;
        for i in 0..WINDOW as u64 + 10 {
            a.put(event(i, "Q", 8 * i, 8));
            out += u32::from(a.take(false).is_some());
        }
        assert_eq!(out, 11);
        assert_eq!(a.open.len(), a.waiting.len());
    }
}
