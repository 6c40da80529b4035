//! Wakers: who wakes whom by completing a request.
//!
//! A journal writes what a database waits for, and the database then reads what the journal waits for. Idling for the one
//! would keep the very request away that lets it go on. So the two are to be served in each other's turn.
//!
//! Nobody says who waits for whom; it shows in when requests come. `q`, a queue with long pauses, gets a request within
//! 4 ms of the completion of one of another queue's, three times in a row from the same other: that is its *waker*.
//!
//! ```text
//!   journal   ─────C            ─────C            ─────C                       C: a request completes
//!   database        R─────            R─────            R─────                 R: a request arrives
//!   count            1                  2                 3: found
//! ```
//!
//! If some other queue's completion comes in between, or three do not come within 128 times `slice_idle` (about 1 s),
//! counting begins anew. A queue has one waker, and may wake many: those are in its *woken* list, who became busy last first.
//!
//! References: a queue that is freed leaves its waker's list, and those it woke have no waker from then on. The candidate is
//! remembered with the instant of its creation, so that a newcomer with the same number is not taken for it.
//!
//! What it does not do: choose whom to serve, which is [`super::injection`]'s; or know anything: two tasks that happen to
//! alternate are waker and woken too.
//!
//= linux-6.12 block/bfq-iosched.c bfq_check_waker, docs/reference/bfq.md#43a-wakers

use super::Bfq;
use super::view::{QueueId, since};
use crate::elevator::Cx;
use crate::parts::fifo::Fifo;
use crate::trace::Reason;
use crate::units::{Duration, Instant};

/// A request that comes so long after a completion was not waiting for it.
const CLOSE: Duration = Duration::from_ms(4);

/// So many times make a waker.
const OFTEN: u32 = 3;

/// In units of `slice_idle`: counting takes at most so long.
//= linux-6.12 block/bfq-iosched.c bfq_check_waker, docs/reference/bfq.md#43a-wakers
const WITHIN: u64 = 128;

/// A queue's relations. The woken list's nodes are `Bfq::woken_links`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waker {
    /// Whose completions wake this one.
    pub(super) waker: Option<QueueId>,
    /// Who may turn out to, and when it was created.
    pub(super) candidate: Option<(QueueId, Instant)>,
    /// How often it seemed so.
    pub(super) count: u32,
    /// Since when it has been counted.
    pub(super) since: Option<Instant>,
    /// Whom this one wakes, who became busy last first.
    pub(super) woken: Fifo<QueueId>,
}

impl Bfq {
    /// The only request of its task came to `q`, a sync queue: who may have waited for what?
    pub(super) fn check_waker(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let queue = &self.queues[q];
        if !self.config.wakers || queue.short_think || q == QueueId::FALLBACK {
            return;
        }
        let Some(other) = self.last_completed_queue else { return };
        if other == q || other == QueueId::FALLBACK || since(cx.now, self.last_completion) >= CLOSE {
            return;
        }
        let candidate = Some((other, self.queues[other].created));
        let late = since(cx.now, queue.waker.since) > self.slice_idle * WITHIN;
        let relations = &mut self.queues[q].waker;
        if relations.candidate != candidate || late {
            relations.candidate = candidate;
            relations.count = 1;
            relations.since = Some(cx.now);
        } else {
            relations.count += 1;
        }
        if relations.count == OFTEN {
            relations.candidate = None;
            self.set_waker(q, Some(other));
            cx.note(Reason::WakerFound, self.queues[q].task);
        }
    }

    /// A queue becomes busy: to the head of its waker's woken list.
    #[inline]
    pub(super) fn waker_busy(&mut self, q: QueueId) {
        if let Some(waker) = self.queues[q].waker.waker {
            self.set_waker(q, Some(waker));
        }
    }

    /// A queue is freed.
    pub(super) fn waker_queue_freed(&mut self, q: QueueId) {
        self.set_waker(q, None);
        while let Some(woken) = self.woken_links.pop_front(&mut self.queues[q].waker.woken) {
            self.queues[woken].waker.waker = None;
        }
        self.queues[q].waker = Waker::default();
        if self.last_completed_queue == Some(q) {
            self.last_completed_queue = None;
        }
    }

    /// `q` has this waker from now on, and is the first that it wakes.
    pub(super) fn set_waker(&mut self, q: QueueId, waker: Option<QueueId>) {
        if let Some(old) = self.queues[q].waker.waker {
            self.woken_links.remove(&mut self.queues[old].waker.woken, q);
        }
        self.queues[q].waker.waker = waker;
        if let Some(new) = waker {
            self.woken_links.push_front(&mut self.queues[new].waker.woken, q);
        }
    }
}
