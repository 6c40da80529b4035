//! The pages of memory that the page cache has in use, and the list of the clean ones, oldest first.
//!
//! ```text
//!   oldest ─► 7 ⇄ 3 ⇄ 4 ⇄ 5 ◄─ newest        pages 3, 4 and 5 are touched: nothing moves
//!             3 ⇄ 4 ⇄ 5 ⇄ 7                  then 7
//!             7 ⇄ 3 ⇄ 4 ⇄ 5                  then 3, 4 and 5: one move, since they are neighbours
//! ```
//!
//! A frame is on the list while it is clean, so the oldest that may be dropped is always the head. Which file
//! a frame is of, and where, is the business of [`Cache`](super::cache::Cache).

use fairhead_core::GroupId;

/// No frame.
pub(super) const NONE: u32 = u32::MAX;

/// The page's contents are those of the disk, or newer.
pub(super) const UPTODATE: u8 = 1;
/// Newer than the disk's.
pub(super) const DIRTY: u8 = 2;
/// On its way to the disk.
pub(super) const WRITEBACK: u8 = 4;
/// On its way from the disk.
pub(super) const READING: u8 = 8;
/// To be read, but not yet handed in.
pub(super) const NEW: u8 = 16;
/// Touching it starts the next window of read-ahead.
pub(super) const MARKER: u8 = 32;

/// A page of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) file: u32,
    pub(super) page: u32,
    older: u32,
    newer: u32,
    pub(super) flags: u8,
    /// The control group that made it dirty first, if that is tracked.
    pub(super) dirtier: Option<GroupId>,
    /// How many pages had become dirty when it did.
    pub(super) stamp: u32,
}

/// Whether a page may be dropped.
const fn is_clean(flags: u8) -> bool {
    flags & (UPTODATE | DIRTY | WRITEBACK | READING) == UPTODATE
}

/// All frames.
#[derive(Debug)]
pub(super) struct Frames {
    all: Vec<Frame>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// How many pages of memory are in use.
    pub(super) const fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// The clean frame that has not been used for longest, if there is a clean one.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    pub(super) fn get(&self, f: u32) -> &Frame {
        &self.all[f as usize]
    }

    pub(super) fn get_mut(&mut self, f: u32) -> &mut Frame {
        &mut self.all[f as usize]
    }

    /// The flags of a frame; none of [`NONE`].
    pub(super) fn flags(&self, f: u32) -> Option<u8> {
        self.all.get(f as usize).map(|frame| frame.flags)
    }

    pub(super) fn is_clean(&self, f: u32) -> bool {
        is_clean(self.all[f as usize].flags)
    }

    /// Takes a page of memory for a page of a file.
    pub(super) fn add(&mut self, file: u32, page: u32, flags: u8) -> u32 {
        let frame = Frame { file, page, older: NONE, newer: NONE, flags, dirtier: None, stamp: 0 };
        let f = if let Some(f) = self.free.pop() {
            self.all[f as usize] = frame;
            f
        } else {
            self.all.push(frame);
            u32::try_from(self.all.len() - 1).expect("fewer than 2^32 pages of memory")
        };
        if is_clean(flags) {
            self.link(f);
        }
        f
    }

    /// Gives a clean frame back.
    pub(super) fn remove(&mut self, f: u32) {
        self.unlink(f, f);
        self.free.push(f);
    }

    /// Changes flags. Returns those before.
    pub(super) fn update(&mut self, f: u32, set: u8, clear: u8) -> u8 {
        let before = self.all[f as usize].flags;
        let after = before & !clear | set;
        self.all[f as usize].flags = after;
        match (is_clean(before), is_clean(after)) {
            (true, false) => self.unlink(f, f),
            (false, true) => self.link(f),
            _ => {}
        }
        before
    }

    /// A frame is used: if it is clean, it is the newest now. Returns its flags.
    pub(super) fn touch(&mut self, f: u32) -> u8 {
        let flags = self.all[f as usize].flags;
        if is_clean(flags) {
            self.make_newest(f, f);
        }
        flags
    }

    /// Touches frames in order, up to one that is none, is not up to date or has a marker. Returns how many
    /// it has touched. Neighbours on the list move together, which makes no difference to its order.
    pub(super) fn touch_known(&mut self, frames: &[u32]) -> usize {
        let mut next = 0;
        while let Some(&first) = frames.get(next) {
            let Some(flags) = self.flags(first).filter(|f| f & (UPTODATE | MARKER) == UPTODATE) else {
                break;
            };
            next += 1;
            if !is_clean(flags) {
                continue;
            }
            let mut last = first;
            while let Some(&f) = frames.get(next) {
                let is_neighbour = f != NONE && self.all[last as usize].newer == f;
                if !is_neighbour || self.all[f as usize].flags & MARKER != 0 {
                    break;
                }
                last = f;
                next += 1;
            }
            self.make_newest(first, last);
        }
        next
    }

    /// Moves neighbours on the list to its end.
    fn make_newest(&mut self, first: u32, last: u32) {
        if self.newest != last {
            self.unlink(first, last);
            let newest = self.newest;
            self.all[first as usize].older = newest;
            self.all[last as usize].newer = NONE;
            self.all[newest as usize].newer = first;
            self.newest = last;
        }
    }

    fn link(&mut self, f: u32) {
        let newest = self.newest;
        let frame = &mut self.all[f as usize];
        (frame.older, frame.newer) = (newest, NONE);
        if newest == NONE {
            self.oldest = f;
        } else {
            self.all[newest as usize].newer = f;
        }
        self.newest = f;
    }

    /// Takes neighbours off the list.
    fn unlink(&mut self, first: u32, last: u32) {
        let (older, newer) = (self.all[first as usize].older, self.all[last as usize].newer);
        if older == NONE {
            self.oldest = newer;
        } else {
            self.all[older as usize].newer = newer;
        }
        if newer == NONE {
            self.newest = older;
        } else {
            self.all[newer as usize].older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Runs of frames are touched at once, and one by one: both lists have the same order, whatever the
    /// flags.
    #[test]
    fn a_run_is_touched_as_its_frames_are_one_by_one() {
        let mut rng = Rng::new(1, "runs of frames");
        let (mut at_once, mut singly) = (Frames::new(), Frames::new());
        for page in 0..64 {
            assert_eq!(at_once.add(0, page, UPTODATE), singly.add(0, page, UPTODATE));
        }
        let mut moved = 0;
        for _ in 0..20_000 {
            let (from, count, change) = (rng.below(64) as u32, rng.below(20) as u32, rng.below(64) as u32);
            let flag = [DIRTY, WRITEBACK, MARKER, READING][rng.below(4) as usize];
            let (set, clear) = if rng.below(4) == 0 { (flag, 0) } else { (0, flag) };
            assert_eq!(at_once.update(change, set, clear), singly.update(change, set, clear));
            let frames: Vec<u32> =
                (from..from + count).map(|f| if f < 64 && rng.below(30) > 0 { f } else { NONE }).collect();
            let is_known = |f: &&u32| singly.flags(**f).is_some_and(|f| f & (UPTODATE | MARKER) == UPTODATE);
            let known: Vec<u32> = frames.iter().take_while(is_known).copied().collect();
            known.iter().for_each(|f| {
                singly.touch(*f);
            });
            assert_eq!(at_once.touch_known(&frames), known.len());
            moved += known.len();
            let order = |frames: &Frames| {
                let mut order = vec![frames.oldest];
                while let Some(frame) = frames.all.get(order[order.len() - 1] as usize) {
                    order.push(frame.newer);
                }
                order
            };
            assert_eq!((order(&at_once), at_once.newest), (order(&singly), singly.newest));
        }
        assert!(moved > 20_000, "{moved}");
    }
}
