//! A client's bios that wait for tags: a lane for each task, so that who is turned away keeps nobody else from the disk.
//!
//! The elevator may turn a task away ([`has_room`](fairhead_core::elevator::Elevator::has_room)): BFQ, while somebody starts, lets those who read ahead
//! beside him have one tag each. In one line their next requests would stand in front of his, until the disk is done with something. Beside ten
//! readers a start then took three times as long, as the scheduler took what came late for what was thought about.
//!
//! ```text
//!   ready:  xterm ─ b7                       lanes take turns, each with its oldest bio
//!   away:   dd.1 ─ b2 b5   dd.2 ─ b3 b6      tried again when the disk is done with something, a few at a time
//! ```
//!
//! **A few.** Of a thousand tasks of a group that has used up its limit, all would be turned away each time. [`RETRIES`] are tried, the others the
//! next time. None is forgotten: who is turned away has something at the disk or in the elevator, and when that is done there is a next time;
//! and who is not turned away soon has.
//!
//! What it does not do: decide who is turned away.

use fairhead_core::units::TaskId;
use std::collections::{BTreeMap, VecDeque};

/// So many lanes that were turned away are tried each time. More than programs that a disk can serve at once, and few enough to cost nothing.
const RETRIES: usize = 16;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Each has a bio at least, and is either ready or away.
    lanes: BTreeMap<TaskId, VecDeque<usize>>,
    ready: VecDeque<TaskId>,
    away: VecDeque<TaskId>,
    /// Of a lane that is empty, for the next.
    spare: VecDeque<usize>,
}

impl Lanes {
    pub(crate) fn push(&mut self, task: TaskId, bio: usize) {
        self.lanes
            .entry(task)
            .or_insert_with(|| {
                self.ready.push_back(task);
                std::mem::take(&mut self.spare)
            })
            .push_back(bio);
    }

    /// The lane whose turn it is, and its oldest bio. It is in no place until one of the three below is said of it.
    pub(crate) fn next(&mut self) -> Option<(TaskId, usize)> {
        let task = self.ready.pop_front()?;
        Some((task, self.lanes[&task][0]))
    }

    /// The bio has more to place.
    pub(crate) fn goes_on(&mut self, task: TaskId) {
        self.ready.push_back(task);
    }

    /// The bio has all its tags.
    pub(crate) fn placed(&mut self, task: TaskId) {
        let lane = self.lanes.get_mut(&task).expect("its turn");
        lane.pop_front();
        if lane.is_empty() {
            self.spare = self.lanes.remove(&task).unwrap_or_default();
        } else {
            self.ready.push_back(task);
        }
    }

    /// The elevator has no room for it.
    pub(crate) fn turned_away(&mut self, task: TaskId) {
        self.away.push_back(task);
    }

    /// Those who were turned away may try again, those first who have waited longest for that.
    pub(crate) fn retry(&mut self) {
        let few = self.away.len().min(RETRIES);
        self.ready.extend(self.away.drain(..few));
    }

    /// A bio waits no more.
    pub(crate) fn remove(&mut self, task: TaskId, bio: usize) {
        let Some(lane) = self.lanes.get_mut(&task) else { return };
        lane.retain(|&b| b != bio);
        if lane.is_empty() {
            self.lanes.remove(&task);
            self.ready.retain(|&t| t != task);
            self.away.retain(|&t| t != task);
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
        self.lanes.values().flatten().copied()
    }

    /// Panics if anything is inconsistent.
    pub(crate) fn check(&self) {
        let mut places: Vec<_> = self.ready.iter().chain(&self.away).copied().collect();
        places.sort_unstable();
        assert!(places.iter().eq(self.lanes.keys()), "{self:?}: each lane is ready or away, once");
        assert!(self.lanes.values().all(|l| !l.is_empty()), "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_turned_away_keeps_nobody_else_and_is_tried_again_in_turn() {
        let mut lanes = Lanes::default();
        for reader in 0..2 * RETRIES {
            lanes.push(TaskId(reader as u32), reader);
            let (task, _) = lanes.next().unwrap();
            lanes.turned_away(task);
        }
        lanes.push(TaskId(0), 100);
        lanes.check();
        assert!(!lanes.has_ready(), "behind its own, which was turned away");
        lanes.push(TaskId(99), 7);
        assert_eq!(lanes.next(), Some((TaskId(99), 7)));
        lanes.placed(TaskId(99));
        lanes.check();
        for first in [0, RETRIES, 0] {
            lanes.retry();
            for reader in first..first + RETRIES {
                assert_eq!(lanes.next(), Some((TaskId(reader as u32), reader)));
                lanes.turned_away(TaskId(reader as u32));
            }
            assert_eq!(lanes.next(), None);
            lanes.check();
        }
    }

    #[test]
    fn what_is_taken_back_leaves_no_lane() {
        let mut lanes = Lanes::default();
        lanes.push(TaskId(1), 1);
        lanes.push(TaskId(2), 2);
        lanes.push(TaskId(2), 3);
        lanes.remove(TaskId(1), 1);
        lanes.remove(TaskId(2), 2);
        lanes.check();
        assert_eq!(lanes.bios().collect::<Vec<_>>(), [3]);
        assert_eq!(lanes.next(), Some((TaskId(2), 3)));
        lanes.goes_on(TaskId(2));
        lanes.remove(TaskId(2), 3);
        lanes.check();
        assert!(!lanes.has_ready() && !lanes.has_away());
    }
}
