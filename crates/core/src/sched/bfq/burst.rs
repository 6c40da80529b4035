//! Bursts of queue activations: tasks that begin together want throughput, not to be raised.
//!
//! A system that starts, a build, a search through a source tree: many short tasks begin within moments, each looks
//! [interactive](super::weight_raising), and raising them all raises none and costs the disk its order. One program that
//! starts has few helpers. So who begins within 180 ms of the one before, under the same group, is in one *burst* with it;
//! the eighth makes the burst *large*, and from then on nobody in it is raised.
//!
//! ```text
//!   new queue   a    b    c     d  e   f     g   h    i            (less than 180 ms between neighbours)
//!   size        1    2    3     4  5   6     7   8
//!   list        a    ab   abc   …             …g  -    -
//!   in a large burst                              a…h  a…i          those of a…g that are raised already lose it
//! ```
//!
//! A new queue counts if a burst is under way or nothing is busy: what begins while others work is a program that its user has
//! just started, not the system. More than 180 ms of quiet or another group end the burst.
//!
//! A queue stays in its burst until it has been idle for 10 s. One that is freed while on the list, because its task has
//! exited, no longer counts: the shell commands in the script that starts a program come and go. Linux meant so, and has
//! counted it all the same since about 6.2; with [`quirks`](super::Config::quirks) it counts here, too.
//!
//! What it does not do: look at what these tasks have in common. Eight programs of one session that start together are a
//! burst too.
//!
//= linux-6.12 block/bfq-iosched.c bfq_handle_burst, bfq_add_to_burst, docs/reference/bfq.md#34-bursts

use super::Bfq;
use super::queue::Queue;
use super::view::{QueueId, since};
use crate::elevator::Cx;
use crate::parts::fifo::Fifo;
use crate::trace::Reason;
use crate::units::{Duration, GroupId, Instant};

/// So many queues make a burst large.
//= linux-6.12 block/bfq-iosched.c bfq_large_burst_thresh, docs/reference/bfq.md#34-bursts
const LARGE: u32 = 8;

/// A longer quiet ends a burst.
//= linux-6.12 block/bfq-iosched.c bfq_burst_interval, docs/reference/bfq.md#34-bursts
const QUIET: Duration = Duration::from_ms(180);

/// A queue that was split off so recently is not new.
const AFTER_SPLIT: Duration = Duration::from_ms(10);

/// A queue's part in bursts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// In a large one. Then it is not in the list.
    pub(super) in_large: bool,
    /// In the list of a burst that is small so far.
    pub(super) in_list: bool,
}

/// The device's view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    /// Those that began in the current burst, while it is small. Nodes: `Bfq::burst_links`.
    pub(super) list: Fifo<QueueId>,
    /// How many queues the burst counts: below 8 while it is small.
    pub(super) size: u32,
    /// The current burst is large.
    pub(super) large: bool,
    /// When the last queue was counted.
    pub(super) last_insert: Option<Instant>,
    /// When the burst began.
    pub(super) began: Instant,
    /// Whose queues these are.
    pub(super) parent: GroupId,
}

impl Default for Bursts {
    fn default() -> Self {
        Self {
            list: Fifo::default(),
            size: 0,
            large: false,
            last_insert: None,
            began: Instant::EPOCH,
            parent: GroupId::ROOT,
        }
    }
}

impl Bfq {
    /// A request came to `q`, which was created just now.
    pub(super) fn note_activation(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let counts = self.bursts.size > 0 || self.tot_busy() == 0;
        if !self.config.bursts || !counts || q == QueueId::FALLBACK {
            return;
        }
        let (now, queue) = (self.tick(cx.now), &self.queues[q]);
        if queue.burst.in_list || queue.burst.in_large || since(now, queue.split_time) <= AFTER_SPLIT {
            return;
        }
        let parent = self.group_of(q);
        if since(now, self.bursts.last_insert) > QUIET || parent != self.bursts.parent {
            self.begin_burst(q, parent);
        } else if self.bursts.large {
            self.bursts.size = self.bursts.size.saturating_add(1);
            self.mark_large(cx, q);
        } else {
            self.grow_burst(cx, q);
        }
        self.bursts.last_insert = Some(now);
    }

    /// The old burst is over. If something is busy, `q` does not begin one.
    fn begin_burst(&mut self, q: QueueId, parent: GroupId) {
        self.bursts.large = false;
        while let Some(old) = self.burst_links.pop_front(&mut self.bursts.list) {
            self.queues[old].burst.in_list = false;
        }
        self.bursts.size = 0;
        self.bursts.parent = parent;
        self.bursts.began = self.queues[q].created;
        if self.tot_busy() == 0 {
            self.bursts.size = 1;
            self.list_in_burst(q);
        }
    }

    fn grow_burst(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        self.bursts.size += 1;
        if self.bursts.size < LARGE {
            self.list_in_burst(q);
            return;
        }
        self.bursts.large = true;
        while let Some(old) = self.burst_links.pop_front(&mut self.bursts.list) {
            self.queues[old].burst.in_list = false;
            self.mark_large(cx, old);
        }
        self.mark_large(cx, q);
    }

    fn mark_large(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let queue = &mut self.queues[q];
        queue.burst.in_large = true;
        cx.note(Reason::LargeBurst, queue.task);
    }

    /// `q` turned out to be a [stream](super::stream), and counts no longer. A burst that is not large without its streams
    /// is small again.
    pub(super) fn stream_leaves_burst(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let was_large = self.queues[q].burst.in_large;
        let of_this = was_large && self.bursts.large && self.queues[q].created >= self.bursts.began;
        if of_this || self.queues[q].burst.in_list {
            self.bursts.size = self.bursts.size.saturating_sub(1);
        }
        self.leave_burst(q);
        if !of_this || self.bursts.size >= LARGE {
            return;
        }
        self.bursts.large = false;
        let began = self.bursts.began;
        let is_marked = |queue: &Queue| queue.in_use && queue.burst.in_large && queue.created >= began;
        let next = |this: &Self| this.queues.iter().find(|(_, queue)| is_marked(queue)).map(|(q, _)| q);
        while let Some(other) = next(self) {
            self.queues[other].burst.in_large = false;
            self.list_in_burst(other);
            self.raise_after_burst(cx, other);
        }
    }

    /// Puts a queue on the list, without counting it.
    pub(super) fn list_in_burst(&mut self, q: QueueId) {
        if !self.queues[q].burst.in_list {
            self.queues[q].burst.in_list = true;
            self.burst_links.push_back(&mut self.bursts.list, q);
        }
    }

    /// A queue becomes busy after having been idle for long: it is in no burst any more.
    pub(super) fn leave_burst(&mut self, q: QueueId) {
        self.unlist_from_burst(q);
        self.queues[q].burst.in_large = false;
    }

    /// A queue is freed; it still has its owner, if it had one.
    pub(super) fn burst_queue_freed(&mut self, q: QueueId) {
        //= deviates bfq-burst-exit
        let counted = self.queues[q].burst.in_list && self.queues[q].owner.is_some();
        if counted && !self.config.quirks {
            self.bursts.size = self.bursts.size.saturating_sub(1);
        }
        self.leave_burst(q);
    }

    /// For comparisons: a queue that began just now is in a large burst, or is not, and the burst that it began in is
    /// what this shows.
    pub(super) fn adopt_large_burst(&mut self, cx: &mut Cx<'_>, q: QueueId, large: bool) {
        if large {
            self.unlist_from_burst(q);
            self.bursts.size = LARGE.saturating_sub(1).max(self.bursts.size);
            self.grow_burst(cx, q);
        } else {
            // How many the burst counts does not show: at least this one.
            self.queues[q].burst.in_large = false;
            (self.bursts.large, self.bursts.size) = (false, 1);
            self.list_in_burst(q);
        }
    }

    fn unlist_from_burst(&mut self, q: QueueId) {
        if self.queues[q].burst.in_list {
            self.queues[q].burst.in_list = false;
            self.burst_links.remove(&mut self.bursts.list, q);
        }
    }

    /// Whether a queue is in a large burst, and so is not to be raised.
    #[inline]
    pub(super) fn in_large_burst(&self, q: QueueId) -> bool {
        self.queues[q].burst.in_large
    }
}
