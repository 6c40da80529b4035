//! From a task's number to its slot.
//!
//! Tasks are numbered by the driver (process ids, say); a scheduler wants dense slots for its tables. A
//! [`TaskMap`] gives a slot to each newcomer. When all are taken, [`TaskMap::eldest`] finds a task that has
//! been idle for long: the scheduler ends what it has of that task and gives its slot back with
//! [`TaskMap::release`]. If none of those that are looked at is idle, newcomers share the last slot, the
//! *fallback*, as CFQ's newcomers share one queue when memory is short.
//!
//! ```text
//!   slots:   3 busy │ 4 idle 80 ms │ 5 idle 2 s │ 6 busy │ 7 idle 5 ms …      eldest ─► 5
//! ```
//!
//! A search looks at eight slots, and the next one at the eight behind them, so its cost does not depend on
//! the number of slots.

use super::fifo::{Fifo, Links};
use super::hash::Hash;
use crate::table::Table;
use crate::units::{Duration, Instant, TaskId, id};

/// The number of slots that one search looks at.
const LOOKED_AT: u32 = 8;

/// A task that has been idle for less than this keeps its slot. By default no scheduler keeps the
/// disk for a task that long (callers leave out the task that has the disk), and a task that thinks for less
/// is in the middle of its work.
const IDLE_MIN: Duration = Duration::from_ms(20);

id! {
    /// A task's slot: `0..tasks`, and `tasks` for the fallback.
    pub(crate) TaskSlot(u32)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct TaskMap {
    by_number: Hash<TaskSlot>,
    numbers: Table<TaskSlot, Option<TaskId>>,
    free: Fifo<TaskSlot>,
    links: Links<TaskSlot>,
    fallback: TaskSlot,
    /// The last that was asked for, if it has a slot of its own: it often comes again.
    last: Option<(TaskId, TaskSlot)>,
    /// The slot that the last search looked at last.
    hand: u32,
}

impl TaskMap {
    /// A map with `tasks` slots and the fallback. Allocates.
    #[must_use]
    pub(crate) fn new(tasks: u32) -> Self {
        let len = tasks as usize;
        let (mut free, mut links) = (Fifo::default(), Links::new(len));
        for slot in 0..tasks {
            links.push_back(&mut free, TaskSlot(slot));
        }
        Self {
            by_number: Hash::new(len),
            numbers: Table::new(len, None),
            free,
            links,
            fallback: TaskSlot(tasks),
            last: None,
            hand: 0,
        }
    }

    /// How long a table by slot must be, the fallback included.
    #[must_use]
    pub(crate) fn table_len(&self) -> usize {
        self.numbers.len() + 1
    }

    /// The slot that tasks share for which there is none.
    #[must_use]
    pub(crate) const fn fallback(&self) -> TaskSlot {
        self.fallback
    }

    /// The task's own slot, if it has one.
    #[must_use]
    pub(crate) fn find(&self, task: TaskId) -> Option<TaskSlot> {
        self.by_number.find(u64::from(task.0)).next()
    }

    /// The task's slot, and whether it was given just now; the fallback when none is left.
    #[inline]
    pub(crate) fn claim(&mut self, task: TaskId) -> (TaskSlot, bool) {
        match self.last {
            Some((last, slot)) if last == task => (slot, false),
            _ => self.claim_another(task),
        }
    }

    fn claim_another(&mut self, task: TaskId) -> (TaskSlot, bool) {
        if let Some(slot) = self.find(task) {
            self.last = Some((task, slot));
            return (slot, false);
        }
        let Some(slot) = self.links.pop_front(&mut self.free) else { return (self.fallback, false) };
        self.by_number.insert(slot, u64::from(task.0));
        self.numbers[slot] = Some(task);
        self.last = Some((task, slot));
        (slot, true)
    }

    /// The slot of the task that has been idle longest, of the next few. `idle_since` says since when the
    /// task of a slot has been idle; `None`: it is not, or it must stay.
    pub(crate) fn eldest(
        &mut self,
        now: Instant,
        idle_since: impl Fn(TaskSlot) -> Option<Instant>,
    ) -> Option<TaskSlot> {
        let slots = self.fallback.0;
        let mut eldest: Option<(TaskSlot, Instant)> = None;
        for _ in 0..LOOKED_AT.min(slots) {
            self.hand = if self.hand + 1 < slots { self.hand + 1 } else { 0 };
            let slot = TaskSlot(self.hand);
            if let Some(since) = idle_since(slot)
                && now.saturating_since(since) >= IDLE_MIN
                && eldest.is_none_or(|(_, other)| since < other)
            {
                eldest = Some((slot, since));
            }
        }
        eldest.map(|(slot, _)| slot)
    }

    /// Gives a slot back, for another task. Of the fallback: nothing.
    pub(crate) fn release(&mut self, slot: TaskSlot) {
        self.last = None;
        if slot != self.fallback && self.numbers[slot].take().is_some() {
            self.by_number.remove(slot);
            self.links.push_back(&mut self.free, slot);
        }
    }

    /// Returns the task that has this slot.
    #[must_use]
    pub(crate) fn task(&self, slot: TaskSlot) -> Option<TaskId> {
        if slot == self.fallback { None } else { self.numbers[slot] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_share_the_fallback_when_slots_run_out() {
        let mut map = TaskMap::new(2);
        assert_eq!(map.claim(TaskId(900)), (TaskSlot(0), true));
        assert_eq!(map.claim(TaskId(7)), (TaskSlot(1), true));
        assert_eq!(map.claim(TaskId(900)), (TaskSlot(0), false));
        assert_eq!(map.claim(TaskId(8)), (map.fallback(), false));
        map.release(TaskSlot(0));
        map.release(map.fallback());
        assert_eq!((map.find(TaskId(900)), map.task(TaskSlot(1))), (None, Some(TaskId(7))));
        assert_eq!(map.claim(TaskId(8)), (TaskSlot(0), true));
    }

    #[test]
    fn the_eldest_of_the_next_few_makes_room() {
        let mut map = TaskMap::new(20);
        let now = Instant::EPOCH + Duration::from_ms(1000);
        // Slot 13 has been idle for longest, slot 3 for longest of the first eight behind slot 0.
        let since = |slot: TaskSlot| {
            let ms = match slot.0 {
                13 => 1,
                3 => 2,
                busy if busy % 2 == 0 => return None,
                _ => 500,
            };
            Some(Instant::EPOCH + Duration::from_ms(ms))
        };
        assert_eq!(map.eldest(now, since), Some(TaskSlot(3)));
        assert_eq!(map.eldest(now, since), Some(TaskSlot(13)));
        let calls = core::cell::Cell::new(0);
        let count = |_: TaskSlot| {
            calls.set(calls.get() + 1);
            Some(now)
        };
        assert_eq!((map.eldest(now, count), calls.get()), (None, LOOKED_AT), "idle for too short a time");
        assert_eq!(TaskMap::new(0).eldest(now, since), None);
    }
}
