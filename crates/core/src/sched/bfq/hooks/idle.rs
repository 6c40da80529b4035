//! Where the engine asks whether to [idle](crate::sched::bfq::rules::idle), and for how long.

use crate::sched::bfq::Bfq;
use crate::sched::bfq::engine::queue::Queue;
use crate::sched::bfq::rules::idle::{Candidate, Load};
use crate::sched::bfq::view::QueueId;
use crate::units::{Class, Duration, Sectors};

/// A task whose mean think time is known, and at most this, is idled for even where the disk
/// [idles for no other](crate::Limits::idle_for_quick_only); for twice as long at most. Where it
/// [spares other groups](crate::Limits::spares_groups) it is a quarter of `slice_idle`.
const QUICK: Duration = Duration::from_us(200);

/// After this time, the think time of an I/O-bound task that sends one request after the other is known.
const KNOWN_AFTER: Duration = Duration::from_ms(200);

/// A queue, as the rule looks at it.
#[derive(Clone, Copy)]
struct Looked<'a> {
    bfq: &'a Bfq,
    q: QueueId,
}

impl Looked<'_> {
    #[inline(always)]
    fn queue(&self) -> &Queue {
        &self.bfq.queues[self.q]
    }
}

impl Candidate for Looked<'_> {
    #[inline(always)]
    fn has_task(&self) -> bool {
        self.queue().process_refs > 0
    }

    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.queue().sync && self.queue().class != Class::Idle
    }

    #[inline(always)]
    fn is_raised(&self) -> bool {
        self.queue().raise.is_raised()
    }

    #[inline(always)]
    fn is_soft(&self) -> bool {
        self.bfq.is_soft_raised(self.q)
    }

    #[inline(always)]
    fn is_at_greedy_disk(&self) -> bool {
        self.bfq.rules.protect.is_greedy()
    }

    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.queue().in_flight
    }

    #[inline(always)]
    fn keeps_on(&self) -> bool {
        self.queue().past.is_io_bound() && self.queue().past.thinks_shortly()
    }

    #[inline(always)]
    fn is_seeky(&self) -> bool {
        self.bfq.is_seeky(self.q)
    }

    #[inline]
    fn thinks_long(&self) -> bool {
        self.queue().past.thinks_longer_than(self.bfq.rules.idle.setting.slice_idle)
    }

    #[inline]
    fn is_asymmetric(&self) -> bool {
        self.bfq.asymmetric(self.q)
    }
}

impl Bfq {
    /// What the device and all queues have to do.
    #[inline(always)]
    fn load(&self) -> Load {
        Load { in_flight: self.in_flight, busy: self.tot_busy(), raised: self.wr_busy }
    }

    #[inline(always)]
    const fn candidate(&self, q: QueueId) -> Looked<'_> {
        Looked { bfq: self, q }
    }

    /// Whether the disk idles for `q` when that has nothing to send.
    #[inline]
    pub(crate) fn better_to_idle(&self, q: QueueId) -> bool {
        self.rules.idle.better_to_idle(&self.load(), &self.candidate(q))
    }

    /// Whether `q` has nothing to send and is to be idled for.
    #[inline]
    pub(crate) fn must_idle(&self, q: QueueId) -> bool {
        self.is_empty(q) && self.better_to_idle(q)
    }

    /// Whether idling for `q` is needed for its share.
    pub(crate) fn needed(&self, q: QueueId) -> bool {
        self.rules.idle.needed(&self.load(), &self.candidate(q))
    }

    /// Whether idling for `q` makes for more throughput.
    #[inline]
    pub(crate) fn boosts(&self, q: QueueId) -> bool {
        self.rules.idle.boosts(&self.load(), &self.candidate(q))
    }

    /// Whether idling for `q` makes for more throughput, if no raised queue is busy.
    #[inline]
    pub(crate) fn would_boost(&self, q: QueueId) -> bool {
        self.rules.idle.would_boost(&self.candidate(q))
    }

    /// Whether idling for `q` continues, though a request of length `len` came, the only one that waits.
    #[inline]
    pub(crate) fn awaits_more(&self, q: QueueId, len: Sectors) -> bool {
        self.rules.idle.awaits_more(&self.load(), &self.candidate(q), len)
    }

    /// For how long the disk idles for `q`, which has nothing to send and nothing at the device.
    #[inline(always)]
    pub(crate) fn idle_period(&self, q: QueueId) -> Option<Duration> {
        self.rules.idle.period(&self.load(), &self.candidate(q))
    }

    /// For how long it may idle for `q`, if it would for `wanted`; `None`: not at all.
    #[inline(always)]
    pub(crate) fn idle_allowed(&self, q: QueueId, wanted: Duration) -> Option<Duration> {
        if self.idles_less { self.idle_if_earned(q, wanted) } else { Some(wanted) }
    }

    /// To wait for a task that sends its next request at once costs a small part of a request, and keeps the
    /// weights and the order of streams. With a head, a request takes longer, and so may a task's thought.
    #[cold]
    #[inline(never)]
    fn idle_if_earned(&self, q: QueueId, wanted: Duration) -> Option<Duration> {
        let spares = self.spares_groups();
        if self.setting.strict || !self.limits.idle_for_quick_only && !spares {
            return Some(wanted);
        }
        let longest = if spares { QUICK.max(self.setting.slice_idle / 4) } else { QUICK };
        let Queue { past, in_flight, created, .. } = &self.queues[q];
        // The think time of a task that always has something to do is never measured.
        let several = *in_flight > 1 || *in_flight > 0 && *created + KNOWN_AFTER < self.slot_start;
        let greedy = spares && several && past.is_io_bound() && !past.thinks_longer_than(longest);
        (greedy || past.thinks_within(longest)).then_some(wanted.min(longest * 2))
    }

    /// Whether `q` reads a stream, without pauses that are worth mention.
    pub(crate) fn is_stream(&self, q: QueueId) -> bool {
        let past = &self.queues[q].past;
        let goes_on = past.thinks_within(QUICK) || past.is_io_bound() && !past.thinks_longer_than(QUICK);
        goes_on && !self.is_seeky(q) && !self.queues[q].raise.is_raised()
    }

    /// Whether the disk idles only for tasks that make up for it, as several groups have requests.
    pub(crate) fn spares_groups(&self) -> bool {
        self.idles_less && self.limits.spares_groups && self.groups_pending > 1
    }

    /// Whether the disk is to idle for `q`, which has nothing to send, now or when its requests at the device
    /// are done, and may. If it may not, it is not kept from others before either.
    #[inline(always)]
    pub(crate) fn will_idle(&self, q: QueueId) -> bool {
        self.better_to_idle(q) && (!self.idles_less || self.may_idle(q))
    }

    #[cold]
    #[inline(never)]
    fn may_idle(&self, q: QueueId) -> bool {
        self.idle_period(q).is_none_or(|wanted| self.idle_allowed(q, wanted).is_some())
    }

    /// Whether the requests of `q` jump about.
    #[inline]
    pub(crate) fn is_seeky(&self, q: QueueId) -> bool {
        self.rules.history.is_seeky(&self.queues[q].past)
    }
}
