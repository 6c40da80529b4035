//! A client's bios that wait for tags: a lane for each task and kind, so that a task that is turned away does
//! not keep the client's other tasks from the disk.
//!
//! The elevator may turn a task away ([`has_room`](fairhead_core::elevator::Elevator::has_room)): while a
//! program starts, BFQ lets each task that reads ahead beside it have one tag. In a single line their next
//! requests would stand in front of the program's, until the disk is done with something. Beside ten readers
//! a start then took three times as long, as the scheduler counted that delay as think time. And limits are
//! for reads or for writes: a guest whose group has used up its limit of writes continues to read.
//!
//! ```text
//!   ready:  xterm, reads ─ b7                              lanes take turns, each with its oldest bio
//!   away:   dd.1, reads ─ b2 b5   dd.2, writes ─ b3 b6     each with its ticket: `causes.rs` has the lines in which they wait
//! ```
//!
//! What it does not do: decide who is turned away, and when to ask again.

use crate::causes::Ticket;
use crate::lane_id::LaneId;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Lane {
    bios: VecDeque<usize>,
    /// Of one that was turned away, until its oldest bio is placed; whether it waits there.
    ticket: Option<Ticket>,
    is_away: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Each has a bio at least, and is either ready or away.
    lanes: BTreeMap<LaneId, Lane>,
    ready: VecDeque<LaneId>,
    away: usize,
    /// Of a lane that is empty, for the next.
    spare: VecDeque<usize>,
}

impl Lanes {
    fn at(&mut self, id: LaneId) -> &mut Lane {
        self.lanes.get_mut(&id).expect("a lane stays as long as it has a bio")
    }

    pub(crate) fn push(&mut self, id: LaneId, bio: usize) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            return lane.bios.push_back(bio);
        }
        let mut bios = std::mem::take(&mut self.spare);
        bios.push_back(bio);
        self.lanes.insert(id, Lane { bios, ticket: None, is_away: false });
        self.ready.push_back(id);
    }

    fn close(&mut self, id: LaneId) -> Lane {
        self.lanes.remove(&id).expect("a lane stays as long as it has a bio")
    }

    /// The lane whose turn it is, its oldest bio, and the number that it had where it was turned away before.
    /// It is in no place until one of the three below is said of it.
    pub(crate) fn next(&mut self) -> Option<(LaneId, usize, Option<u64>)> {
        let id = self.ready.pop_front()?;
        let lane = self.at(id);
        Some((id, lane.bios[0], lane.ticket.map(|t| t.number)))
    }

    /// The bio has more to place.
    pub(crate) fn goes_on(&mut self, id: LaneId) {
        self.at(id).ticket = None;
        self.ready.push_back(id);
    }

    /// The bio has all its tags.
    pub(crate) fn placed(&mut self, id: LaneId) {
        let lane = self.at(id);
        lane.ticket = None;
        lane.bios.pop_front();
        if lane.bios.is_empty() {
            self.spare = self.close(id).bios;
        } else {
            self.ready.push_back(id);
        }
    }

    /// There is no room for it: it waits there.
    pub(crate) fn turned_away(&mut self, id: LaneId, ticket: Ticket) {
        let lane = self.at(id);
        lane.ticket = Some(ticket);
        let is_new = !std::mem::replace(&mut lane.is_away, true);
        self.away += usize::from(is_new);
    }

    /// A lane that was turned away may try again, before the others of its client.
    pub(crate) fn retry(&mut self, id: LaneId) {
        let was_away = std::mem::replace(&mut self.at(id).is_away, false);
        assert!(was_away, "{id:?} was not turned away");
        self.away -= 1;
        self.ready.push_front(id);
    }

    /// The oldest bio of a lane.
    pub(crate) fn oldest(&self, id: LaneId) -> Option<usize> {
        self.lanes.get(&id).map(|lane| lane.bios[0])
    }

    /// A bio waits no more. Returns where its lane waited, if there is no other in it.
    pub(crate) fn remove(&mut self, id: LaneId, bio: usize) -> Option<Ticket> {
        let lane = self.lanes.get_mut(&id)?;
        lane.bios.retain(|&b| b != bio);
        if !lane.bios.is_empty() {
            return None;
        }
        let lane = self.close(id);
        if lane.is_away {
            self.away -= 1;
            return lane.ticket;
        }
        self.ready.retain(|&l| l != id);
        None
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The lanes that were turned away, and where they wait.
    pub(crate) fn away(&self) -> impl Iterator<Item = (Ticket, LaneId)> + '_ {
        let away = self.lanes.iter().filter(|(_, lane)| lane.is_away);
        away.map(|(&id, lane)| (lane.ticket.expect("it waits"), id))
    }

    /// All bios that wait.
    pub(crate) fn bios(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes.values().flat_map(|lane| &lane.bios).copied()
    }

    /// Panics if anything is inconsistent.
    pub(crate) fn check(&self) {
        let away = self.away().map(|(_, id)| id);
        let mut places: Vec<_> = self.ready.iter().copied().chain(away).collect();
        places.sort_unstable();
        assert!(places.iter().eq(self.lanes.keys()), "{self:?}: each lane is ready or away, once");
        assert_eq!(self.away().count(), self.away);
        assert!(self.lanes.values().all(|l| !l.bios.is_empty()), "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Cause;
    use crate::lane_id::Kind;
    use fairhead_core::units::TaskId;

    fn reads(task: usize) -> LaneId {
        LaneId(TaskId(task as u32), Kind::Read)
    }

    fn ticket(number: u64) -> Ticket {
        Ticket { cause: Cause::Behind(0), number }
    }

    #[test]
    fn who_is_turned_away_keeps_nobody_else_and_is_the_first_to_try_again() {
        let mut lanes = Lanes::default();
        for reader in 0..20 {
            lanes.push(reads(reader), reader);
            let (lane, _, number) = lanes.next().unwrap();
            assert_eq!(number, None);
            lanes.turned_away(lane, ticket(reader as u64));
        }
        lanes.push(reads(0), 100);
        lanes.check();
        assert!(!lanes.has_ready(), "behind its own, which was turned away");
        for free in [reads(99), LaneId(TaskId(0), Kind::SyncWrite)] {
            lanes.push(free, 7);
            assert_eq!(lanes.next(), Some((free, 7, None)));
            lanes.placed(free);
            lanes.check();
        }
        lanes.push(reads(50), 50);
        lanes.retry(reads(7));
        lanes.check();
        assert_eq!(lanes.next(), Some((reads(7), 7, Some(7))), "with its number");
        lanes.turned_away(reads(7), ticket(7));
        lanes.retry(reads(0));
        assert_eq!(lanes.next(), Some((reads(0), 0, Some(0))));
        lanes.placed(reads(0));
        assert_eq!(lanes.next(), Some((reads(50), 50, None)));
        lanes.placed(reads(50));
        assert_eq!(lanes.next(), Some((reads(0), 100, None)), "the next bio comes anew");
        lanes.placed(reads(0));
        lanes.check();
        assert_eq!(lanes.away().count(), 19);
    }

    #[test]
    fn what_is_taken_back_leaves_no_lane() {
        let mut lanes = Lanes::default();
        lanes.push(reads(1), 1);
        lanes.push(reads(2), 2);
        lanes.push(reads(2), 3);
        assert_eq!(lanes.next(), Some((reads(1), 1, None)));
        lanes.turned_away(reads(1), ticket(9));
        assert_eq!(lanes.remove(reads(1), 1), Some(ticket(9)));
        assert_eq!(lanes.remove(reads(2), 2), None);
        lanes.check();
        assert_eq!(lanes.bios().collect::<Vec<_>>(), [3]);
        assert_eq!(lanes.next(), Some((reads(2), 3, None)));
        lanes.goes_on(reads(2));
        assert_eq!(lanes.remove(reads(2), 3), None);
        lanes.check();
        assert!(!lanes.has_ready() && lanes.away().count() == 0);
    }
}
