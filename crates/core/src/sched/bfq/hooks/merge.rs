//! Where the engine asks which queues are to be [one](crate::sched::bfq::rules::merge).

use crate::elevator::Cx;
use crate::sched::bfq::Bfq;
use crate::sched::bfq::engine::queue::{LinkId, Queue, Saved};
use crate::sched::bfq::rules::merge::{Candidate, Kin, Merge, Newborn, Pays, Place, Watched};
use crate::sched::bfq::view::{Created, QueueId};
use crate::units::{Class, Instant, Sector};
use core::ops::Range;

/// By position.
impl Bfq {
    /// A queue that may be merged by position.
    #[inline(always)]
    fn mergeable(&self, queue: &Queue) -> Candidate {
        Candidate {
            usual: queue.sync && queue.class != Class::Idle,
            seeky: self.rules.history.is_seeky(&queue.past),
            served_since: (queue.since_backlog > 0).then_some(queue.first_io),
        }
    }

    /// Whether `q`, to which a request comes, may be merged with a queue that reads near it.
    #[inline(always)]
    pub(crate) fn seeks_company(&self, now: Instant, q: QueueId) -> bool {
        let queue = &self.queues[q];
        self.rules.merge.seeks_company(&self.seen(now), queue.busy, &self.mergeable(queue))
    }

    /// Whether `q` is found by others that read near its next request.
    #[inline]
    pub(crate) fn is_found(&self, now: Instant, q: QueueId) -> bool {
        self.rules.merge.is_found(&self.seen(now), &self.mergeable(&self.queues[q]))
    }

    /// Whether the device sorts by itself: no merging by position, stable merges at once.
    #[inline]
    pub(crate) fn merges_at_once(&self) -> bool {
        self.rules.merge.at_once()
    }

    /// Whether `q` may be merged with `other`, near which it reads.
    pub(crate) fn may_join(&self, now: Instant, q: QueueId, other: QueueId) -> bool {
        let kin = |q: QueueId| Kin {
            class: self.class(q),
            group: self.group_of(q),
            actuator: self.queues[q].actuator,
        };
        let candidate = self.mergeable(&self.queues[other]);
        q != other && Merge::fits(&self.seen(now), kin(q), kin(other), &candidate)
    }

    /// Whether two requests may belong to one stream.
    pub(crate) fn are_close(a: Sector, b: Sector) -> bool {
        Merge::is_close(a, b)
    }

    /// The queue that reads close to `position`, among its neighbours in the order of positions.
    pub(crate) fn closest(position: Sector, behind: Option<Place>, ahead: Option<Place>) -> Option<QueueId> {
        Merge::closest(position, behind, ahead)
    }

    /// The sectors that are close to neither of two neighbours in the order of positions.
    pub(crate) fn gap_between(behind: Option<Place>, ahead: Option<Place>) -> Range<u64> {
        Merge::gap(behind, ahead)
    }
}

/// For good.
impl Bfq {
    /// What becomes of `q`, which is created; `last` is the queue that was created last in its group.
    pub(crate) fn becomes(&self, q: QueueId, last: Option<QueueId>) -> Created {
        let newborn = |q: QueueId| {
            let queue = &self.queues[q];
            Newborn { created: queue.created, prio: queue.prio, actuator: queue.actuator }
        };
        self.rules.merge.created(&newborn(q), last.map(newborn).as_ref())
    }

    /// Whether it is known what `q` does, which was created together with another queue.
    pub(crate) fn is_known(&self, now: Instant, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let watched = Watched {
            sync: queue.sync,
            new: queue.just_created,
            created: queue.created,
            split: queue.split_time,
        };
        Merge::is_known(&self.seen(now), &watched)
    }

    /// Whether `q`, of which that is known, joins `target`.
    pub(crate) fn joins(&self, q: QueueId, target: QueueId) -> bool {
        let pays =
            Pays { now: self.boosts(q), ever: self.would_boost(q), for_target: self.would_boost(target) };
        self.rules.merge.joins(pays)
    }

    /// Whether idling for a queue ends when its tasks have left it by a merge.
    //= deviates bfq-merge-idle
    pub(crate) const fn stops_idling_in_vain(&self) -> bool {
        !self.rules.merge.setting.as_kernel
    }
}

/// Tasks that share a queue.
impl Bfq {
    /// The tasks of `q` go over to `x`.
    pub(crate) fn rules_merged(&mut self, cx: &mut Cx<'_>, q: QueueId, x: QueueId) {
        let (left, joined) = self.queues[q].past.merged(self.queues[x].past);
        self.queues[q].past = left;
        self.queues[x].past = joined;
        self.rules.wakers.merged(q, x);
        self.raise_merged(cx, q, x);
    }

    /// Remembers what a queue was like while one task had it alone.
    pub(crate) fn save(&mut self, now: Instant, q: QueueId) {
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

    /// The queue that wakes `q`.
    pub(crate) fn waker(&self, q: QueueId) -> Option<QueueId> {
        self.rules.wakers.waker(q)
    }

    /// The task of `link` is to leave `q`, which it shares: if that is in a large burst, so is its next one.
    pub(crate) fn rules_leave(&mut self, q: QueueId, link: LinkId) {
        if self.rules.bursts.in_large(q)
            && let Some(saved) = &mut self.links[link].saved
        {
            saved.burst.in_large = true;
        }
    }

    /// `own` is the queue of a task that was split off a queue with this waker.
    pub(crate) fn rules_split(
        &mut self,
        cx: &mut Cx<'_>,
        own: QueueId,
        link: LinkId,
        waker: Option<QueueId>,
    ) {
        if let Some(saved) = &self.links[link].saved {
            self.rules.bursts.split(own, saved.burst);
        }
        self.resume(cx, own, link);
        self.rules.wakers.set(own, waker.filter(|&w| w != own));
    }

    /// Gives a queue back what was remembered of its task's.
    pub(crate) fn resume(&mut self, cx: &mut Cx<'_>, q: QueueId, link: LinkId) {
        let Some(saved) = self.links[link].saved.take() else { return };
        let queue = &mut self.queues[q];
        queue.past.split(saved.past);
        self.rules.inject.split(q, saved.inject);
        self.raise_split(cx, q, &saved.raise);
    }
}
