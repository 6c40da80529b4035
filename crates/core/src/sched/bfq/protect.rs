//! Protection: what to do about a disk that passes over the requests of a raised queue. Ours, not the kernel's.
//!
//! A disk that queues serves what is nearest first. If it does so whatever the age, a request far from the others waits for as
//! long as others are sent, and raising its queue does not help: the elevator gave it the disk long ago. All that is left is to
//! send nothing else. That costs throughput, so it is done only where it is seen to be needed, and how much the disk
//! reorders is found out by counting, with neither clocks nor knowledge of the disk.
//!
//! One read at the device is *watched*: the oldest of raised queues, or, if there is none, any. Each read that was sent later and
//! completes earlier passes it over. A fair disk with n requests does that to nobody for much more than n times, as
//! every round is a new chance to be the nearest. After 8 rounds it is taken for *greedy*, for the next minute:
//!
//! ```text
//!   at the device:  W a b c d e f g      W is watched, n = 8, a..g and those that follow them are near each other
//!   completed:      a c b g d f e        sent earlier, or as many as may be
//!                   h i j k … (64 of them)  sent later: greedy. If W is of a raised queue, nothing is sent ──► W is done
//! ```
//!
//! With a greedy disk
//!
//! - a raised queue's request that was passed over by one round stops everything: nothing is sent until it is done. The device
//!   has only to finish what it has, so the wait is bounded: one round until it is noticed, one to finish;
//! - a raised queue that has nothing to send keeps the disk if *any* other request is at the device (not only if four are, see
//!   [`super::idling`]), also when all busy queues are raised, and always if it is soft real-time;
//! - no others' requests are [injected](super::injection) in its turn but those that it may wait for;
//! - an interactive queue is raised for as long as before the peak rate is known: how fast the disk reads in sequence says little
//!   about how soon it gets through.
//!
//! Between two stops others complete a round of requests, so an endless raised queue starves nobody by this. When nothing is
//! raised, nothing is different.
//!
//! What it does not do: count writes, which a disk's cache accepts at once; look at flash, where reads complete out of order
//! for other reasons than distance; shorten the first wait: until a disk is known, one request waits for 8 rounds; help a queue that
//! is not raised, which such a disk still starves. Off with [`quirks`](super::Config::quirks).

use super::Bfq;
use super::group::Kind;
use super::queue::Rq;
use super::view::QueueId;
use crate::elevator::Cx;
use crate::parts::fifo::Fifo;
use crate::trace::Reason;
use crate::units::{Duration, Instant, Tag};

/// A disk that passes over a request for so many rounds is greedy. If every request were as likely as any other to be the next,
/// one in e^8, about 3000, would be passed over so often. A disk with ageing can seem greedy when all but one are close together:
/// then there it is.
const ROUNDS: u32 = 8;
/// The same for a raised queue's request, at a disk that is known to be greedy.
const ROUNDS_GREEDY: u32 = 1;
/// A round is at least so many: streams are continued from a disk's buffer for some requests.
const ROUND_MIN: u32 = 8;
/// A disk that was not seen to be greedy for so long may not be.
const FORGET: Duration = Duration::from_secs(60);

/// What is known about the disk, and the request that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protection {
    /// Whether there is anything to watch: it is a disk, and not to be compared with the kernel.
    on: bool,
    /// Requests of raised queues at the device but the one that is watched, in the order in which they were sent.
    pub(super) raised: Fifo<Tag>,
    /// How many requests were sent; wraps.
    sent: u32,
    pub(super) watched: Option<Tag>,
    /// How many reads that were sent later are done.
    passed: u32,
    /// The one that is watched is a raised queue's, and was passed over: nothing is sent before it is done.
    pub(super) late: bool,
    greedy: bool,
    /// Taken for greedy until then.
    until: Instant,
}

impl Protection {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            raised: Fifo::default(),
            sent: 0,
            watched: None,
            passed: 0,
            late: false,
            greedy: false,
            until: Instant::EPOCH,
        }
    }

    const fn watch(&mut self, tag: Option<Tag>) {
        self.watched = tag;
        self.passed = 0;
        self.late = false;
    }
}

impl Bfq {
    /// Whether the disk passes over what is far away.
    #[inline]
    pub(super) const fn is_greedy(&self) -> bool {
        self.protection.greedy && self.config.ncq_protection
    }

    /// Whether nothing may be sent now. A completion ends that.
    #[inline]
    pub(super) const fn holds_all(&self) -> bool {
        self.protection.late && self.config.ncq_protection
    }

    /// Whether the disk is to be idled for `q`, which is raised, though everybody busy is and little is at the device.
    //= deviates bfq-protection
    #[inline]
    pub(super) fn needed_at_greedy_disk(&self, q: QueueId) -> bool {
        self.is_greedy() && (self.in_flight > self.queues[q].in_flight || self.is_soft_raised(q))
    }

    /// A request goes to the device; `raised`: of a raised queue.
    #[inline]
    pub(super) fn protect_sent(&mut self, now: Instant, tag: Tag, kind: Kind, raised: bool) {
        if kind == Kind::SyncRead && self.protection.on && self.config.ncq_protection {
            self.watch_sent(now, tag, raised);
        }
    }

    fn watch_sent(&mut self, now: Instant, tag: Tag, raised: bool) {
        let state = &mut self.protection;
        state.sent = state.sent.wrapping_add(1);
        let rq = &mut self.rqs[tag];
        rq.sent = state.sent;
        rq.guarded = raised;
        if state.greedy && now >= state.until {
            state.greedy = false;
        }
        if state.watched.is_none_or(|w| raised && !self.rqs[w].guarded) {
            state.watch(Some(tag));
        } else if raised {
            self.raised_links.push_back(&mut state.raised, tag);
        }
    }

    /// A request completes, and is still counted at the device.
    #[inline]
    pub(super) fn protect_completed(&mut self, cx: &mut Cx<'_>, tag: Tag, kind: Kind) {
        if kind == Kind::SyncRead && self.protection.on {
            self.watch_completed(cx, tag);
        }
    }

    fn watch_completed(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let state = &mut self.protection;
        let watched = match state.watched {
            Some(watched) if watched != tag => watched,
            _ => {
                let next = self.raised_links.pop_front(&mut state.raised);
                return state.watch(next);
            }
        };
        let rq = self.rqs[tag];
        if rq.guarded {
            self.raised_links.remove(&mut state.raised, tag);
        }
        // Less than half of the numbers are in use at a time.
        if rq.sent.wrapping_sub(self.rqs[watched].sent) < u32::MAX / 2 {
            self.passed_over(cx, watched);
        }
    }

    /// One more was done before `tag`, which was sent earlier.
    fn passed_over(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let round = self.in_flight.max(ROUND_MIN);
        let Rq { queue, guarded, .. } = self.rqs[tag];
        let state = &mut self.protection;
        state.passed += 1;
        let rounds = if guarded && state.greedy { ROUNDS_GREEDY } else { ROUNDS };
        if state.late || state.passed < rounds.saturating_mul(round) {
            return;
        }
        state.greedy = true;
        state.until = cx.now + FORGET;
        state.late = guarded;
        if guarded {
            let longer = self.raise_duration();
            let interactive = self.queues[queue].raise.factor == self.interactive_factor();
            let raise = &mut self.queues[queue].raise;
            if interactive && raise.factor > 1 {
                raise.len = raise.len.max(longer);
            }
            cx.note(Reason::Protected, self.queues[queue].task);
        }
    }
}
