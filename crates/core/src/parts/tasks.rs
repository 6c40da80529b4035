//! From a task's number to its slot.
//!
//! Tasks are numbered by the driver (process ids, say); a scheduler wants dense slots for its tables. A
//! [`TaskMap`] gives a slot to each newcomer; when all are taken, newcomers share the last one, the
//! *fallback*, as CFQ's newcomers share one queue when memory is short. A slot is given back with
//! [`TaskMap::release`].

use super::fifo::{Fifo, Links};
use super::hash::Hash;
use crate::table::Table;
use crate::units::{TaskId, id};

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
}
