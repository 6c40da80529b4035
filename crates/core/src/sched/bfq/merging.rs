//! Queues that become one, and part again.
//!
//! **Early queue merge.** Tasks that read one stream together (a pool of dump workers, a virtual machine's I/O threads)
//! look random each, and idling waits for the wrong one. One queue for all of them is sequential:
//!
//! ```text
//!   sectors  ──1──2──3──4──5──6──►     task A reads 1, 3, 5, …   task B reads 2, 4, 6, …
//!                      ▲ last dispatched
//! ```
//!
//! It happens early, when a request arrives: if that is within 8192 sectors of where the queue in service was last, or of
//! another queue's next request, the two queues are *linked*: from now on the arriving task, and each other that uses its
//! queue, goes over to the other's with its next request. Requests that are queued stay where they are. Both must be sync,
//! of one class and group, not seeky, and at the start of their backlog (100 ms): later, closeness is chance.
//!
//! **Split.** A shared queue that has become seeky when it expires holds tasks that no longer read one stream. Each gets a
//! queue of its own with its next request, and what was remembered of its old one: think time, I/O-boundness, raising.
//! The last one keeps the queue.
//!
//! **Stable merge.** Queues created within 180 ms of each other, in one group and with one priority, are likely threads of one
//! program, that only steal the disk from each other. On flash that queues requests they are merged at creation. Elsewhere
//! the newcomer decides after 600 ms, when it is known what it does: it stays alone if idling for it gains
//! throughput. Tasks merged so are never split, and such a queue may be raised.
//!
//! ```text
//!   t = 0 ms    a is created           last created: a
//!   t = 24      b is created           b's target: a
//!   t = 190     c is created           nothing: too late for a, which stays the last created until t = 600
//!   t = 630     b's next request       b joins a, unless it turned out sequential
//! ```
//!
//! **References.** `process_refs` of a queue counts the links that point to it, and those that will once they have
//! followed the merges under way: linking adds the source's references to the target, a task that follows leaves the
//! source only, one that exits or is split off leaves the whole chain. A queue without references redirects nobody, so a
//! chain never leads to a queue that is free. Targets of stable merges are no references: they are cleared when the
//! queue goes.
//!
//! What it does not do: merge on flash that queues requests by position, which sorts by itself; nor follow threads: they are
//! guessed by what they do.
//!
//= linux-6.12 block/bfq-iosched.c bfq_setup_cooperator, bfq_merge_bfqqs, bfq_do_or_sched_stable_merge
//= docs/reference/bfq.md#32-early-queue-merge

use super::Bfq;
use super::queue::{LinkId, Queue, Saved};
use super::view::{QueueId, since};
use crate::elevator::Cx;
use crate::parts::tasks::TaskSlot;
use crate::trace::Reason;
use crate::units::{Class, Duration, Instant, Sector};

/// Requests so near to each other may belong to one stream.
//= linux-6.12 block/bfq-iosched.c BFQQ_CLOSE_THR, docs/reference/bfq.md#32-early-queue-merge
const CLOSE_SECTORS: u64 = 8 * 1024;

/// For so long from its first service on may a queue that became backlogged be merged by position.
//= linux-6.12 block/bfq-iosched.c bfq_merge_time_limit, docs/reference/bfq.md#32-early-queue-merge
const MERGE_TIME: Duration = Duration::from_ms(100);

/// Created so shortly after each other, queues are to be merged for good.
//= linux-6.12 block/bfq-iosched.c bfq_do_or_sched_stable_merge, docs/reference/bfq.md#46-stable-merge
const TOGETHER: Duration = Duration::from_ms(180);

/// So long the last created queue is what newcomers are compared with.
//= linux-6.12 block/bfq-iosched.c bfq_activation_stable_merging, docs/reference/bfq.md#46-stable-merge
const REMEMBERED: Duration = Duration::from_ms(600);

/// So long a queue is watched before it is merged for good, or after a split.
//= linux-6.12 block/bfq-iosched.c bfq_late_stable_merging, docs/reference/bfq.md#46-stable-merge
const WATCHED: Duration = Duration::from_ms(600);

impl Bfq {
    /// The queue that `q` shall become one with, now that a request of `link` comes to it at `position`; links them. Not yet
    /// merged: see [`Self::follow_merges`].
    #[inline(always)]
    pub(super) fn find_cooperator(
        &mut self,
        cx: &Cx<'_>,
        q: QueueId,
        position: Sector,
        link: LinkId,
    ) -> Option<QueueId> {
        if self.queues[q].merge_to.is_some() {
            return Some(self.chain_end(q));
        }
        if self.merges_at_once() {
            return None;
        }
        if let Some(target) = self.links[link].stable_target
            && self.was_watched(cx.now, q)
        {
            return self.decide_stable_merge(q, link, target);
        }
        let queue = &self.queues[q];
        if !self.config.queue_merge || self.is_alone(queue) || !self.may_cooperate(cx.now, queue) {
            return None;
        }
        let lonely = self.in_service == Some(q) && self.lonely.contains(&position.0);
        if lonely { None } else { self.find_close(cx, q, position) }
    }

    /// The same, among those that read near `position`.
    #[inline(never)]
    fn find_close(&mut self, cx: &Cx<'_>, q: QueueId, position: Sector) -> Option<QueueId> {
        if let Some(s) = self.in_service
            && position.distance(self.in_service_last_pos) <= CLOSE_SECTORS
            && self.are_compatible(cx.now, q, s)
            && let Some(target) = self.link_to(q, s)
        {
            return Some(target);
        }
        let near = self.nearest(cx, q, position).filter(|&x| self.are_compatible(cx.now, q, x))?;
        self.link_to(q, near)
    }

    /// Whether there is no other queue that `q` could be one with.
    ///
    /// The kernel asks whether one queue is busy, and takes it for `q`. But `q`, whose request is about to come, may be idle, and the
    /// busy one just the one whose stream it reads: preempting each other, the two never meet.
    //= deviates bfq-coop-alone
    #[inline]
    fn is_alone(&self, queue: &Queue) -> bool {
        self.tot_busy() == u32::from(self.config.quirks || queue.busy)
    }

    /// Whether the device sorts by itself: no merging by position, stable merges at once.
    #[inline]
    fn merges_at_once(&self) -> bool {
        !self.limits.rotational && self.rules.depth.may_queue() && self.config.ncq_flash
    }

    fn was_watched(&self, now: Instant, q: QueueId) -> bool {
        let (now, queue) = (self.tick(now), &self.queues[q]);
        queue.sync
            && !queue.just_created
            && since(now, queue.split_time) > WATCHED
            && now.saturating_since(queue.created) > WATCHED
    }

    /// Whether a queue could be one with another at all.
    #[inline]
    fn may_cooperate(&self, now: Instant, queue: &Queue) -> bool {
        queue.sync
            && queue.class != Class::Idle
            && !self.rules.history.is_seeky(&queue.past)
            && !self.is_too_late(now, queue)
    }

    /// Whether its backlog began so long ago that what it reads near another queue is chance.
    #[inline]
    fn is_too_late(&self, now: Instant, queue: &Queue) -> bool {
        queue.since_backlog > 0 && self.tick(now) > queue.first_io + MERGE_TIME
    }

    fn are_compatible(&self, now: Instant, q: QueueId, other: QueueId) -> bool {
        q != other
            && self.may_cooperate(now, &self.queues[other])
            && self.class(q) == self.class(other)
            //= deviates bfq-merge-actuator
            && self.queues[q].actuator == self.queues[other].actuator
            && self.group_of(q) == self.group_of(other)
    }

    /// The queue whose next request is close to `position`: the one there or ahead, else the one behind.
    fn nearest(&mut self, cx: &Cx<'_>, q: QueueId, position: Sector) -> Option<QueueId> {
        let group = self.group_of(q);
        let tree = &self.groups[group].positions;
        let filed = |x: QueueId| (self.by_position.key(x), x);
        //= deviates bfq-coop-neighbour
        let ahead = self.by_position.lower_bound(tree, position.0);
        let behind = ahead.map_or_else(|| self.by_position.last(tree), |x| self.by_position.prev(x));
        let (mut ahead, mut behind) = (ahead.map(filed), behind.map(filed));
        if self.in_service == Some(q) && self.is_empty(q) {
            let from = behind.map_or(0, |(key, _)| key.saturating_add(CLOSE_SECTORS + 1));
            let to = ahead.map_or(u64::MAX, |(key, _)| key.saturating_sub(CLOSE_SECTORS));
            self.lonely = from..to;
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
        let is_close = |x: &(u64, QueueId)| x.0.abs_diff(position.0) <= CLOSE_SECTORS;
        ahead.filter(is_close).or_else(|| behind.filter(is_close)).map(|(_, x)| x)
    }

    /// What holds of [`Bfq::lonely`](super::Bfq): for tests.
    pub(super) fn check_lonely(&self) {
        let Some(s) = self.in_service.filter(|_| !self.lonely.is_empty()) else { return };
        for q in self.by_position.iter(&self.groups[self.group_of(s)].positions) {
            let key = self.by_position.key(q);
            let before = key.saturating_add(CLOSE_SECTORS) < self.lonely.start;
            assert!(before || key.saturating_sub(CLOSE_SECTORS) >= self.lonely.end, "{q:?} was overlooked");
        }
    }

    fn chain_end(&self, q: QueueId) -> QueueId {
        let mut end = q;
        while let Some(next) = self.queues[end].merge_to {
            end = next;
        }
        end
    }

    /// Decides that `q` and what `x` is becoming shall be one, if both have a task and they are not becoming one already.
    fn link_to(&mut self, q: QueueId, x: QueueId) -> Option<QueueId> {
        let end = self.chain_end(x);
        let (mine, others) = (self.queues[q].process_refs, self.queues[end].process_refs);
        let alive = mine > 0 && others > 0 && self.queues[x].process_refs > 0;
        if end == q || !alive || self.group_of(q) != self.group_of(end) {
            return None;
        }
        self.queues[q].merge_to = Some(end);
        self.queues[end].process_refs += mine;
        Some(end)
    }

    /// The task of `link` goes over from `q` to `x`, whatever speaks against it: see [`super::conform`].
    pub(super) fn force_merge(&mut self, cx: &mut Cx<'_>, link: LinkId, q: QueueId, x: QueueId) {
        if self.queues[q].merge_to.is_some() {
            for _ in 0..self.queues[q].process_refs {
                self.drop_redirections(cx, q);
            }
            self.queues[q].merge_to = None;
        }
        if self.link_to(q, x).is_some() {
            self.follow_merges(cx, link);
        }
    }

    /// Makes a task follow the merges that its queue is in, and answers the queue that it has then.
    pub(super) fn follow_merges(&mut self, cx: &mut Cx<'_>, link: LinkId) -> QueueId {
        let Some(mut q) = self.links[link].sync else { return QueueId::FALLBACK };
        while let Some(x) = self.queues[q].merge_to {
            self.merge(cx, link, q, x);
            q = x;
        }
        q
    }

    /// The task of `link` goes over from `q` to `x`.
    fn merge(&mut self, cx: &mut Cx<'_>, link: LinkId, q: QueueId, x: QueueId) {
        self.save(cx.now, q);
        self.save(cx.now, x);
        let (left, joined) = self.queues[q].past.merged(self.queues[x].past);
        self.queues[q].past = left;
        self.queues[x].past = joined;
        self.rules.wakers.merged(q, x);
        self.raise_merged(cx, q, x);
        self.links[link].sync = Some(x);
        self.queues[x].shared = true;
        self.queues[x].owner = None;
        self.queues[q].owner = None;
        let group = self.group_of(q);
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = Some(x);
        }
        let task = self.processes[self.process_of(link)].task;
        cx.note(Reason::QueueMerge, task);
        self.leave_queue(cx, q);
        //= deviates bfq-merge-idle
        let in_vain = self.queues[q].process_refs == 0 && self.queues[q].waiting;
        if in_vain && self.in_service == Some(q) && !self.config.quirks {
            self.stop_idling(q);
        }
    }

    /// Remembers what a queue was like while one task had it alone.
    fn save(&mut self, now: Instant, q: QueueId) {
        let queue = &self.queues[q];
        let Some(link) = queue.owner else { return };
        let burst = self.rules.bursts.past(q);
        let raise = self.raise_remembered(now, q, queue.just_created && !burst.in_large);
        self.links[link].saved = Some(Saved {
            past: queue.past.remembered(),
            burst,
            raise,
            inject: self.rules.inject.measured(q),
        });
    }

    /// The queue of a task for its next sync request, after the split that may be due.
    #[inline]
    pub(super) fn split_if_wanted(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId) -> QueueId {
        let Some(q) = self.links[link].sync else { return QueueId::FALLBACK };
        let queue = &self.queues[q];
        if queue.split_wanted && queue.shared && !self.links[link].stably_merged {
            return self.split(cx, slot, link, q);
        }
        q
    }

    fn split(&mut self, cx: &mut Cx<'_>, slot: TaskSlot, link: LinkId, q: QueueId) -> QueueId {
        if self.rules.bursts.in_large(q)
            && let Some(saved) = &mut self.links[link].saved
        {
            saved.burst.in_large = true;
        }
        cx.note(Reason::QueueSplit, self.processes[slot].task);
        let queue = &mut self.queues[q];
        if queue.process_refs == 1 && queue.merge_to.is_none() {
            queue.shared = false;
            queue.split_wanted = false;
            queue.task = self.processes[slot].task;
            queue.owner = Some(link);
            //= deviates bfq-split-prio
            self.set_prio(q, self.processes[slot].prio[1]);
            self.resume(cx, q, link);
            return q;
        }
        self.drop_redirections(cx, q);
        let waker = self.rules.wakers.waker(q);
        self.links[link].sync = None;
        self.leave_queue(cx, q);
        let own = self.new_sync_queue(cx, slot, link, true);
        if own == QueueId::FALLBACK {
            return own;
        }
        self.queues[own].split_time = Some(self.tick(cx.now));
        if let Some(saved) = &self.links[link].saved {
            self.rules.bursts.split(own, saved.burst);
        }
        self.resume(cx, own, link);
        self.rules.wakers.set(own, waker.filter(|&w| w != own));
        own
    }

    /// Gives a queue back what was remembered of its task's.
    fn resume(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId) {
        let Some(saved) = self.links[link].saved.take() else { return };
        let queue = &mut self.queues[q];
        queue.past.split(saved.past);
        self.rules.inject.split(q, saved.inject);
        self.raise_split(cx, q, &saved.raise);
    }

    /// At expiry: a shared queue that seeks is to be split.
    #[inline]
    pub(super) fn note_seeky_shared(&mut self, q: QueueId) {
        if self.queues[q].shared && self.is_seeky(q) {
            self.queues[q].split_wanted = true;
        }
    }

    /// A sync queue was created for `link`, not by a split: may it be one with the last that was created? Answers which one
    /// to use.
    pub(super) fn consider_stable_merge(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId) -> QueueId {
        if !self.config.stable_merge || q == QueueId::FALLBACK {
            return q;
        }
        let group = self.group_of(q);
        let last = self.groups[group].last_created;
        let Some(last) = last.filter(|&last| self.is_like(q, last)) else {
            self.groups[group].last_created = Some(q);
            return q;
        };
        if self.queues[q].created.saturating_since(self.queues[last].created) > TOGETHER {
            return q;
        }
        if !self.merges_at_once() {
            self.forget_stable_target(link);
            self.links[link].stable_target = Some(last);
            self.queues[last].stable_refs += 1;
            return q;
        }
        self.queues[q].owner = Some(link);
        self.link_for_good(q, link, last);
        self.follow_merges(cx, link)
    }

    /// Whether the new queue `q` is like the one created before.
    fn is_like(&self, q: QueueId, last: QueueId) -> bool {
        let (new, old) = (&self.queues[q], &self.queues[last]);
        new.created.saturating_since(old.created) <= REMEMBERED
            && new.prio == old.prio
            && new.actuator == old.actuator
    }

    fn link_for_good(&mut self, q: QueueId, link: LinkId, target: QueueId) -> Option<QueueId> {
        let end = self.link_to(q, target)?;
        self.links[link].stably_merged = true;
        if let Some(other) = self.queues[end].owner {
            self.links[other].stably_merged = true;
        }
        Some(end)
    }

    /// What `q` does is known by now: it becomes one with a queue that was created with it, unless one of them reads
    /// sequentially.
    fn decide_stable_merge(&mut self, q: QueueId, link: LinkId, target: QueueId) -> Option<QueueId> {
        self.forget_stable_target(link);
        //= deviates bfq-stable-raised
        let sequential = if self.config.quirks { self.boosts(q) } else { self.would_boost(q) };
        //= deviates bfq-streams
        let joins_stream = self.rules.streams.on && self.would_boost(target);
        if sequential || joins_stream { None } else { self.link_for_good(q, link, target) }
    }

    /// A task will not merge with the queue that was created before its own.
    pub(super) fn forget_stable_target(&mut self, link: LinkId) {
        if let Some(target) = self.links[link].stable_target.take() {
            self.queues[target].stable_refs -= 1;
        }
    }

    /// Files a queue by the position of its next request, or takes it out: after that or its standing has changed. The queue
    /// in service is not filed: its next request changes with each dispatch.
    pub(super) fn reposition(&mut self, cx: &Cx<'_>, q: QueueId) {
        let key = if self.in_service == Some(q) { None } else { self.position(cx, q) };
        if self.queues[q].positioned && key == Some(self.by_position.key(q)) {
            return;
        }
        self.unposition(q);
        let Some(key) = key else { return };
        let group = self.group_of(q);
        let tree = &mut self.groups[group].positions;
        self.by_position.insert_maybe_first(tree, q, key);
        self.lonely = 0..0;
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
        let fits =
            self.config.queue_merge && !self.merges_at_once() && self.may_cooperate(cx.now, &self.queues[q]);
        //= deviates bfq-coop-eligible
        fits.then(|| cx.requests[next].rq.start.0)
    }

    /// Takes a queue out of its group's order of positions: before it moves to another group, or is freed.
    #[inline]
    pub(super) fn unposition(&mut self, q: QueueId) {
        if self.queues[q].positioned {
            self.queues[q].positioned = false;
            let group = self.group_of(q);
            self.by_position.remove(&mut self.groups[group].positions, q);
        }
    }

    /// A task is about to leave `q`, and will not follow the merges that are pending.
    pub(super) fn drop_redirections(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let mut at = self.queues[q].merge_to;
        if self.queues[q].process_refs == 1 {
            self.queues[q].merge_to = None;
        }
        while let Some(x) = at {
            at = self.queues[x].merge_to;
            if self.queues[x].process_refs == 1 {
                self.leave_queue(cx, x);
            } else {
                self.put_queue_ref(x);
            }
        }
    }

    /// A queue leaves its group, or a task leaves it: newcomers are not compared with it.
    pub(super) fn clear_last_created(&mut self, q: QueueId) {
        let group = self.group_of(q);
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = None;
        }
    }

    /// A queue is freed: nobody will merge with it.
    pub(super) fn merge_queue_freed(&mut self, q: QueueId) {
        self.unposition(q);
        self.clear_last_created(q);
        if self.queues[q].stable_refs > 0 {
            for (_, link) in self.links.iter_mut() {
                link.stable_target = link.stable_target.filter(|&target| target != q);
            }
            self.queues[q].stable_refs = 0;
        }
    }
}
