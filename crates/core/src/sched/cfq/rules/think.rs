//! Think times: those of tasks and, from 3.x on, those of trees of queues and of groups.
//!
//! A task's think time says whether its queue is worth idling for; that of a tree, whether the last queue of
//! a kind is; that of a group, whether the group is. Each is a [`ThinkTime`] that is kept with its owner. How
//! long something may think is cut at twice the time for which it would be waited for.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_update_io_thinktime
//= linux-3.10 block/cfq-iosched.c cfq_update_io_thinktime, docs/reference/cfq.md#57-statistics

use crate::parts::think_time::ThinkTime;
use crate::units::{Duration, Instant};

/// The rule's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thinking {
    /// How long a task, or the tasks of a tree, and those of a group, are taken to think at most.
    longest: Duration,
    longest_of_group: Duration,
    /// A task's async requests count as well.
    counts_async: bool,
    /// Trees and groups have think times: from 3.x on.
    pub(crate) of_groups: bool,
}

impl Thinking {
    /// A queue's next request is waited for `slice_idle`, a group's `group_idle`.
    pub(crate) fn new(
        slice_idle: Duration,
        group_idle: Duration,
        counts_async: bool,
        of_groups: bool,
    ) -> Self {
        Self { longest: slice_idle * 2, longest_of_group: group_idle * 2, counts_async, of_groups }
    }

    /// A request of a task comes to a queue.
    #[inline(always)]
    pub(crate) fn arrived(&self, now: Instant, sync: bool, task: &mut ThinkTime) {
        if sync || self.counts_async {
            task.arrived_within(now, self.longest);
        }
    }

    /// A request comes to a queue of a group, and of a tree if the queue is in one.
    #[inline(always)]
    pub(crate) fn arrived_in_group(
        &self,
        now: Instant,
        sync: bool,
        tree: Option<&mut ThinkTime>,
        group: &mut ThinkTime,
    ) {
        if let Some(tree) = tree.filter(|_| sync) {
            tree.arrived_within(now, self.longest);
        }
        group.arrived_within(now, self.longest_of_group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    fn rule() -> Thinking {
        Thinking::new(ms(8), ms(2), true, true)
    }

    /// When a request comes `pause` after the last one completed.
    fn after(pause: Duration) -> Instant {
        Instant::EPOCH + pause
    }

    /// What is known of a completion at the beginning.
    fn known() -> ThinkTime {
        ThinkTime::since(Instant::EPOCH)
    }

    #[test]
    fn async_requests_count_for_a_task_only_if_they_are_to() {
        for (counts_async, sync, counts) in
            [(true, true, true), (true, false, true), (false, true, true), (false, false, false)]
        {
            let (rule, mut task) = (Thinking { counts_async, ..rule() }, known());
            (0..3).for_each(|_| rule.arrived(after(ms(5)), sync, &mut task));
            assert_eq!(task.is_valid(), counts, "{counts_async} {sync}");
        }
    }

    #[test]
    //= docs/reference/cfq.md#9-test-vectors vector 6 type=test
    fn a_long_think_counts_as_twice_what_would_be_waited_for() {
        let rule = rule();
        let (mut task, mut tree, mut group) = (known(), known(), known());
        for _ in 0..100 {
            rule.arrived(after(ms(500)), true, &mut task);
            rule.arrived_in_group(after(ms(500)), true, Some(&mut tree), &mut group);
        }
        // A mean settles at 256 / 249 of its samples.
        for (think, longest) in [(task, 16), (tree, 16), (group, 4)] {
            assert!(think.exceeds(ms(longest)) && !think.exceeds(ms(longest * 257 / 249 + 1)), "{think:?}");
        }
    }

    #[test]
    fn async_requests_count_for_groups_but_not_for_trees() {
        let (rule, mut tree, mut group) = (rule(), known(), known());
        (0..3).for_each(|_| rule.arrived_in_group(after(ms(1)), false, Some(&mut tree), &mut group));
        assert_eq!((tree.is_valid(), group.is_valid()), (false, true));
        let mut group = known();
        (0..3).for_each(|_| rule.arrived_in_group(after(ms(1)), true, None, &mut group));
        assert!(group.is_valid(), "a queue that is in no tree");
    }
}
