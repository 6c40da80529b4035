//! Queues in the order of the positions of their next requests, in each group: where to find one that reads
//! near a position.
//
//= linux-6.12 block/bfq-iosched.c bfq_pos_tree_add_move, bfqq_find_close
//= docs/reference/bfq.md#32-early-queue-merge

use crate::elevator::Cx;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::view::QueueId;
use crate::units::Sector;

impl Bfq {
    /// The queue whose next request is close to `position`: the one there or ahead, else the one behind.
    pub(crate) fn nearest(&mut self, cx: &Cx<'_>, q: QueueId, position: Sector) -> Option<QueueId> {
        let group = self.group_of(q);
        let tree = &self.groups[group].positions;
        let filed = |x: QueueId| (self.by_position.key(x), x);
        //= deviates bfq-coop-neighbour
        let ahead = self.by_position.lower_bound(tree, position.0);
        let behind = ahead.map_or_else(|| self.by_position.last(tree), |x| self.by_position.prev(x));
        let (mut ahead, mut behind) = (ahead.map(filed), behind.map(filed));
        if self.in_service == Some(q) && self.is_empty(q) {
            self.gap = Self::gap_between(behind, ahead);
        } else if let Some(s) = self.in_service.filter(|&s| self.group_of(s) == group)
            && let Some(at) = self.position(cx, s)
        {
            // The queue in service is not filed.
            if at >= position.0 {
                ahead = ahead.filter(|&(key, _)| key < at).or(Some((at, s)));
            } else {
                behind = behind.filter(|&(key, _)| key > at).or(Some((at, s)));
            }
        }
        Self::closest(position, behind, ahead)
    }

    /// What holds of [`Bfq::gap`](crate::sched::bfq::Bfq): for tests.
    pub(crate) fn check_gap(&self) {
        let Some(s) = self.in_service.filter(|_| !self.gap.is_empty()) else { return };
        for q in self.by_position.iter(&self.groups[self.group_of(s)].positions) {
            let place = Some((self.by_position.key(q), q));
            let before = Self::gap_between(place, None).start <= self.gap.start;
            assert!(before || Self::gap_between(None, place).end >= self.gap.end, "{q:?} was overlooked");
        }
    }

    /// Files a queue by the position of its next request, or takes it out: after that or its standing has
    /// changed. The queue in service is not filed: its next request changes with each dispatch.
    pub(crate) fn reposition(&mut self, cx: &Cx<'_>, q: QueueId) {
        let key = if self.in_service == Some(q) { None } else { self.position(cx, q) };
        if self.queues[q].positioned && key == Some(self.by_position.key(q)) {
            return;
        }
        self.unposition(q);
        let Some(key) = key else { return };
        let group = self.group_of(q);
        let tree = &mut self.groups[group].positions;
        self.by_position.insert_maybe_first(tree, q, key);
        self.gap = 0..0;
        let taken = self.by_position.prev(q).is_some_and(|x| self.by_position.key(x) == key);
        if taken {
            self.by_position.remove(tree, q);
        }
        self.queues[q].positioned = !taken;
    }

    /// Where a queue is to be found: nowhere if it cannot be merged with.
    #[inline]
    fn position(&self, cx: &Cx<'_>, q: QueueId) -> Option<u64> {
        let next = self.queues[q].next_rq?;
        //= deviates bfq-coop-eligible
        self.is_found(cx.now, q).then(|| cx.requests[next].rq.start.0)
    }

    /// Takes a queue out of its group's order of positions: before it moves to another group, or is freed.
    #[inline]
    pub(crate) fn unposition(&mut self, q: QueueId) {
        if self.queues[q].positioned {
            self.queues[q].positioned = false;
            let group = self.group_of(q);
            self.by_position.remove(&mut self.groups[group].positions, q);
        }
    }
}
