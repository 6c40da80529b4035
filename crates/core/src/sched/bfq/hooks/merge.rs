//! Where the engine asks which queues are to be [one](crate::sched::bfq::rules::merge).

use crate::sched::bfq::Bfq;
use crate::sched::bfq::engine::queue::Queue;
use crate::sched::bfq::rules::merge::{Candidate, Created, Kin, Merge, Newborn, Pays, Place, Watched};
use crate::sched::bfq::view::QueueId;
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
