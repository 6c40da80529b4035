//! The tasks that are known, by slot.

use super::queue::Context;
use super::view::QueueId;
use crate::parts::tasks::{TaskMap, TaskSlot};
use crate::parts::think_time::ThinkTime;
use crate::table::Table;
use crate::units::{Instant, TaskId};
use core::ops::{Index, IndexMut};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Tasks {
    map: TaskMap,
    contexts: Table<TaskSlot, Context>,
}

impl Tasks {
    /// None is known; `tasks` can be. Allocates.
    pub(super) fn new(tasks: u32) -> Self {
        let map = TaskMap::new(tasks);
        Self { contexts: Table::new(map.table_len(), Context::new(ThinkTime::default())), map }
    }

    /// What is known of a task; made if need be, and anew if it had gone.
    #[inline]
    pub(super) fn claim(&mut self, now: Instant, task: TaskId) -> TaskSlot {
        let (slot, new) = self.map.claim(task);
        let context = &mut self.contexts[slot];
        if new || context.exited {
            let outstanding = context.outstanding;
            *context = Context::new(ThinkTime::since(now));
            context.outstanding = outstanding;
        }
        slot
    }

    /// The slot of a task that has been idle for long, to be another's. `has_turn` says whether the disk may
    /// be kept for the task of a slot and its queue.
    pub(super) fn eldest(
        &mut self,
        now: Instant,
        has_turn: impl Fn(TaskSlot, Option<QueueId>) -> bool,
    ) -> Option<TaskSlot> {
        let contexts = &self.contexts;
        self.map.eldest(now, |slot| {
            let context = &contexts[slot];
            let stays = context.is_needed() || has_turn(slot, context.sync_queue);
            (!stays).then(|| context.think.last_end().unwrap_or(Instant::EPOCH))
        })
    }

    /// The task's slot, if it has one.
    pub(super) fn find(&self, task: TaskId) -> Option<TaskSlot> {
        self.map.find(task)
    }

    /// The slot that tasks share for which there is none.
    #[inline]
    pub(super) const fn fallback(&self) -> TaskSlot {
        self.map.fallback()
    }

    /// Gives a slot back, for another task.
    pub(super) fn release(&mut self, slot: TaskSlot) {
        self.map.release(slot);
    }

    /// All contexts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskSlot, &Context)> {
        self.contexts.iter()
    }
}

impl Index<TaskSlot> for Tasks {
    type Output = Context;
    #[inline]
    fn index(&self, slot: TaskSlot) -> &Context {
        &self.contexts[slot]
    }
}

impl IndexMut<TaskSlot> for Tasks {
    #[inline]
    fn index_mut(&mut self, slot: TaskSlot) -> &mut Context {
        &mut self.contexts[slot]
    }
}
