//! A client's bios that wait for tags: a lane for each task and kind, so that who is turned away keeps nobody else from the disk.
//!
//! The elevator may turn a task away ([`has_room`](fairhead_core::elevator::Elevator::has_room)): BFQ, while somebody starts, lets those who read ahead
//! beside him have one tag each. In one line their next requests would stand in front of his, until the disk is done with something. Beside ten
//! readers a start then took three times as long, as the scheduler took what came late for what was thought about. And limits are for reads or for
//! writes: a guest whose group has used up what it may write goes on reading.
//!
//! ```text
//!   ready:  xterm, reads ─ b7                              lanes take turns, each with its oldest bio
//!   away:   dd.1, reads ─ b2 b5   dd.2, writes ─ b3 b6     tried again when the disk is done with something, a few at a time
//! ```
//!
//! **A few.** Of a thousand tasks of a group that has used up its limit, all would be turned away each time. [`RETRIES`] are tried, the others the
//! next time. That there is one is the queue's business: of [more](Lanes::has_more) than are tried at once, those in front may wait for something that
//! takes long, and the others for nothing any more.
//!
//! What it does not do: decide who is turned away.

use crate::bio::{Bio, Op};
use fairhead_core::units::TaskId;
use std::collections::VecDeque;

/// So many lanes that were turned away are tried each time. More than programs that a disk can serve at once, and few enough to cost nothing.
const RETRIES: usize = 16;

/// What schedulers and limits tell apart when they turn somebody away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Read,
    SyncWrite,
    AsyncWrite,
}

/// Which lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaneId(TaskId, Kind);

impl LaneId {
    /// That of a bio.
    pub(crate) const fn of(bio: &Bio) -> Self {
        let kind = match (bio.op, bio.sync) {
            (Op::Read, _) => Kind::Read,
            (_, true) => Kind::SyncWrite,
            (_, false) => Kind::AsyncWrite,
        };
        Self(bio.task, kind)
    }
}

#[derive(Debug)]
struct Lane {
    id: LaneId,
    bios: VecDeque<usize>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// In order. Each has a bio at least, and is either ready or away.
    lanes: Vec<Lane>,
    ready: VecDeque<LaneId>,
    away: VecDeque<LaneId>,
    /// Of a lane that is empty, for the next.
    spare: VecDeque<usize>,
}

impl Lanes {
    fn find(&self, id: LaneId) -> Result<usize, usize> {
        self.lanes.binary_search_by_key(&id, |lane| lane.id)
    }

    pub(crate) fn push(&mut self, id: LaneId, bio: usize) {
        match self.find(id) {
            Ok(at) => self.lanes[at].bios.push_back(bio),
            Err(at) => {
                let mut bios = std::mem::take(&mut self.spare);
                bios.push_back(bio);
                self.lanes.insert(at, Lane { id, bios });
                self.ready.push_back(id);
            }
        }
    }

    /// The lane whose turn it is, and its oldest bio. It is in no place until one of the three below is said of it.
    pub(crate) fn next(&mut self) -> Option<(LaneId, usize)> {
        let id = self.ready.pop_front()?;
        let at = self.find(id).expect("it is ready");
        Some((id, self.lanes[at].bios[0]))
    }

    /// The bio has more to place.
    pub(crate) fn goes_on(&mut self, id: LaneId) {
        self.ready.push_back(id);
    }

    /// The bio has all its tags.
    pub(crate) fn placed(&mut self, id: LaneId) {
        let at = self.find(id).expect("its turn");
        self.lanes[at].bios.pop_front();
        if self.lanes[at].bios.is_empty() {
            self.spare = self.lanes.remove(at).bios;
        } else {
            self.ready.push_back(id);
        }
    }

    /// The elevator has no room for it.
    pub(crate) fn turned_away(&mut self, id: LaneId) {
        self.away.push_back(id);
    }

    /// Those who were turned away may try again, those first who have waited longest for that.
    pub(crate) fn retry(&mut self) {
        let few = self.away.len().min(RETRIES);
        self.ready.extend(self.away.drain(..few));
    }

    /// Whether more have been turned away than try again at once.
    pub(crate) fn has_more(&self) -> bool {
        self.away.len() > RETRIES
    }

    /// A bio waits no more.
    pub(crate) fn remove(&mut self, id: LaneId, bio: usize) {
        let Ok(at) = self.find(id) else { return };
        self.lanes[at].bios.retain(|&b| b != bio);
        if self.lanes[at].bios.is_empty() {
            self.lanes.remove(at);
            self.ready.retain(|&l| l != id);
            self.away.retain(|&l| l != id);
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn has_away(&self) -> bool {
        !self.away.is_empty()
    }

    /// All bios that wait.
    pub(crate) fn bios(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes.iter().flat_map(|lane| &lane.bios).copied()
    }

    /// Panics if anything is inconsistent.
    pub(crate) fn check(&self) {
        let mut places: Vec<_> = self.ready.iter().chain(&self.away).copied().collect();
        places.sort_unstable();
        assert!(
            places.iter().eq(self.lanes.iter().map(|l| &l.id)),
            "{self:?}: each lane is ready or away, once"
        );
        assert!(self.lanes.iter().all(|l| !l.bios.is_empty()), "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(task: usize) -> LaneId {
        LaneId(TaskId(task as u32), Kind::Read)
    }

    #[test]
    fn who_is_turned_away_keeps_nobody_else_and_is_tried_again_in_turn() {
        let mut lanes = Lanes::default();
        for reader in 0..2 * RETRIES {
            lanes.push(reads(reader), reader);
            let (lane, _) = lanes.next().unwrap();
            lanes.turned_away(lane);
        }
        lanes.push(reads(0), 100);
        lanes.check();
        assert!(!lanes.has_ready(), "behind its own, which was turned away");
        for free in [reads(99), LaneId(TaskId(0), Kind::SyncWrite)] {
            lanes.push(free, 7);
            assert_eq!(lanes.next(), Some((free, 7)));
            lanes.placed(free);
            lanes.check();
        }
        for first in [0, RETRIES, 0] {
            assert!(lanes.has_more());
            lanes.retry();
            assert!(!lanes.has_more());
            for reader in first..first + RETRIES {
                assert_eq!(lanes.next(), Some((reads(reader), reader)));
                lanes.turned_away(reads(reader));
            }
            assert_eq!(lanes.next(), None);
            lanes.check();
        }
    }

    #[test]
    fn what_is_taken_back_leaves_no_lane() {
        let mut lanes = Lanes::default();
        lanes.push(reads(1), 1);
        lanes.push(reads(2), 2);
        lanes.push(reads(2), 3);
        lanes.remove(reads(1), 1);
        lanes.remove(reads(2), 2);
        lanes.check();
        assert_eq!(lanes.bios().collect::<Vec<_>>(), [3]);
        assert_eq!(lanes.next(), Some((reads(2), 3)));
        lanes.goes_on(reads(2));
        lanes.remove(reads(2), 3);
        lanes.check();
        assert!(!lanes.has_ready() && !lanes.has_away());
    }
}
