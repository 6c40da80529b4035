//! Wakers: which queue's completed requests wake which other queue.
//!
//! A journal writes what a database waits for, and the database then reads what the journal waits for. Idling
//! for the one would keep the very request away that lets it go on. So the two are to be served in each
//! other's turn.
//!
//! No task says what it waits for; it shows in when requests come. `q`, a queue with long pauses, gets a
//! request within 4 ms of the completion of one of another queue's, three times in a row from the same other:
//! that is its *waker*.
//!
//! ```text
//!   journal   ─────C            ─────C            ─────C                       C: a request completes
//!   database        R─────            R─────            R─────                 R: a request arrives
//!   count            1                  2                 3: found
//! ```
//!
//! If some other queue's completion comes in between, or three do not come within 128 times `slice_idle`
//! (about 1 s), counting begins anew. A queue has one waker, and may wake many: those are its *woken* list,
//! the one that became busy last first.
//!
//! A queue that is freed leaves its waker's list, and those it woke have no waker from then on. The candidate
//! is remembered with the instant of its creation, so that a newcomer with the same number is not taken for
//! it.
//!
//! What it does not do: choose which queue to serve, which is injection's; or know anything: two tasks that
//! happen to alternate are waker and woken too.
//
//= linux-6.12 block/bfq-iosched.c bfq_check_waker, docs/reference/bfq.md#43a-wakers

use crate::parts::fifo::{Fifo, Links};
use crate::sched::bfq::view::{Effect, QueueId, View, since};
use crate::table::Table;
use crate::trace::Reason;
use crate::units::{Duration, Instant};

/// A request that comes this long after a completion, or longer, was not waiting for it.
const CLOSE: Duration = Duration::from_ms(4);

/// How many times in a row make a waker.
const OFTEN: u32 = 3;

/// How long counting may take, in units of `slice_idle`.
//= linux-6.12 block/bfq-iosched.c bfq_check_waker, docs/reference/bfq.md#43a-wakers
const WITHIN: u64 = 128;

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether wakers are looked for.
    pub(crate) on: bool,
    /// How long the disk idles for a queue.
    pub(crate) slice_idle: Duration,
}

/// A queue's relations.
#[derive(Clone, Copy, Debug)]
struct Relations {
    /// When the queue was created.
    created: Instant,
    /// The queue whose completions wake this one.
    waker: Option<QueueId>,
    /// The queue that may turn out to be, and when it was created.
    candidate: Option<(QueueId, Instant)>,
    /// How often it seemed so.
    count: u32,
    /// When counting began.
    since: Option<Instant>,
    /// The queues that this one wakes, the one that became busy last first.
    woken: Fifo<QueueId>,
}

impl Relations {
    fn new(created: Instant) -> Self {
        Self { created, waker: None, candidate: None, count: 0, since: None, woken: Fifo::default() }
    }
}

/// All queues' relations.
#[derive(Clone, Debug)]
pub(crate) struct Wakers {
    pub(crate) setting: Setting,
    queues: Table<QueueId, Relations>,
    links: Links<QueueId>,
    /// The queue of the last completion, if one task has it alone.
    last: Option<QueueId>,
}

impl Wakers {
    /// No queue wakes another. Allocates.
    pub(crate) fn new(setting: Setting, queues: usize) -> Self {
        let none = Relations::new(Instant::EPOCH);
        Self { setting, queues: Table::new(queues, none), links: Links::new(queues), last: None }
    }

    /// The waker of `q`.
    #[inline]
    pub(crate) fn waker(&self, q: QueueId) -> Option<QueueId> {
        self.queues[q].waker
    }

    /// Of the queues that `q` wakes, the one that became busy last.
    #[inline]
    pub(crate) fn first_woken(&self, q: QueueId) -> Option<QueueId> {
        self.queues[q].woken.first()
    }

    /// A queue is created.
    pub(crate) fn created(&mut self, view: &View, q: QueueId) {
        self.queues[q] = Relations::new(view.tick());
    }

    /// A request of `q` completed, and of no other queue since; `alone` says whether one task has the queue.
    #[inline]
    pub(crate) const fn completed(&mut self, q: QueueId, alone: bool) {
        self.last = if alone { Some(q) } else { None };
    }

    /// The only request of its task comes to `q`, a sync queue; `short_think` says whether that was expected
    /// soon.
    #[inline]
    pub(crate) fn arrived(&mut self, view: &View, q: QueueId, short_think: bool) -> Effect {
        if !self.setting.on || short_think || q == QueueId::FALLBACK {
            return Effect::None;
        }
        self.suspect(view.now, view.last_completion, q)
    }

    /// `q` may have waited for what completed last.
    fn suspect(&mut self, now: Instant, completed: Option<Instant>, q: QueueId) -> Effect {
        let Some(other) = self.last else { return Effect::None };
        if other == q || other == QueueId::FALLBACK || since(now, completed) >= CLOSE {
            return Effect::None;
        }
        let candidate = Some((other, self.queues[other].created));
        let relations = &mut self.queues[q];
        let late = since(now, relations.since) > self.setting.slice_idle * WITHIN;
        if relations.candidate != candidate || late {
            relations.candidate = candidate;
            relations.count = 1;
            relations.since = Some(now);
        } else {
            relations.count += 1;
        }
        if relations.count < OFTEN {
            return Effect::None;
        }
        relations.candidate = None;
        self.set(q, Some(other));
        Effect::Note(Reason::WakerFound)
    }

    /// A queue becomes busy: it is the first among those that its waker wakes.
    #[inline]
    pub(crate) fn woke(&mut self, q: QueueId) {
        if let Some(waker) = self.queues[q].waker {
            self.set(q, Some(waker));
        }
    }

    /// The task of `q` goes over to `x`, and takes its waker along if `x` has none.
    pub(crate) fn merged(&mut self, q: QueueId, x: QueueId) {
        if self.queues[x].waker.is_none() {
            self.set(x, self.queues[q].waker.filter(|&w| w != x));
        }
    }

    /// A queue is freed.
    pub(crate) fn freed(&mut self, q: QueueId) {
        self.set(q, None);
        while let Some(woken) = self.links.pop_front(&mut self.queues[q].woken) {
            self.queues[woken].waker = None;
        }
        if self.last == Some(q) {
            self.last = None;
        }
    }

    /// `q` has this waker from now on, and is the first that it wakes.
    pub(crate) fn set(&mut self, q: QueueId, waker: Option<QueueId>) {
        if let Some(old) = self.queues[q].waker {
            self.links.remove(&mut self.queues[old].woken, q);
        }
        self.queues[q].waker = waker;
        if let Some(new) = waker {
            self.links.push_front(&mut self.queues[new].woken, q);
        }
    }

    /// What must hold between events; `used` answers whether a queue is in use.
    pub(crate) fn check(&self, used: impl Fn(QueueId) -> bool) {
        // Each queue in a list names its waker. As there are as many in lists as have wakers, none is left
        // out.
        let (mut listed, mut woken) = (0, 0);
        // There is no queue 0.
        for (q, relations) in self.queues.iter().skip(1) {
            for woken in self.links.iter(&relations.woken) {
                assert_eq!(self.queues[woken].waker, Some(q), "woken by another queue");
            }
            listed += relations.woken.len();
            woken += u32::from(relations.waker.is_some());
            let none = relations.waker.is_none() && relations.woken.is_empty();
            assert!(used(q) || none, "a free queue has relations");
        }
        assert_eq!(listed, woken, "queues that are woken, by lists and by queue");
        assert!(self.last.is_none_or(used), "the last queue to complete is gone");
    }

    /// The queues that `q` wakes: for tests.
    #[cfg(test)]
    pub(crate) fn woken(&self, q: QueueId) -> impl Iterator<Item = QueueId> + '_ {
        self.links.iter(&self.queues[q].woken)
    }

    /// The queue of the last completion: for tests.
    #[cfg(test)]
    pub(crate) const fn last_completed(&self) -> Option<QueueId> {
        self.last
    }

    /// How often it seemed that the candidate of `q` wakes it: for tests.
    #[cfg(test)]
    pub(crate) fn count(&self, q: QueueId) -> u32 {
        self.queues[q].count
    }

    /// Counting began now: for tests.
    #[cfg(test)]
    pub(crate) fn counts_since(&mut self, q: QueueId, now: Instant) {
        self.queues[q].since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::units::Id;
    use std::vec::Vec;

    const MS: Duration = Duration::from_ms(1);

    fn q(n: usize) -> QueueId {
        QueueId::from_index(n)
    }

    fn new() -> Wakers {
        Wakers::new(Setting { on: true, slice_idle: MS * 8 }, 9)
    }

    /// A request of `other` completed at `at`, and one comes to queue 2 `gap` later.
    fn answer(wakers: &mut Wakers, other: usize, at: Instant, gap: Duration) -> Effect {
        wakers.completed(q(other), true);
        let view = View { last_completion: Some(at), ..View::at(at + gap) };
        wakers.arrived(&view, q(2), false)
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + MS * ms
    }

    #[test]
    fn three_times_make_a_waker() {
        let mut wakers = new();
        for n in 0..3 {
            assert_eq!((wakers.waker(q(2)), wakers.count(q(2))), (None, n));
            let effect = answer(&mut wakers, 3, at(100 * u64::from(n)), MS);
            assert_eq!(effect, if n == 2 { Effect::Note(Reason::WakerFound) } else { Effect::None });
        }
        assert_eq!((wakers.waker(q(2)), wakers.first_woken(q(3))), (Some(q(3)), Some(q(2))));
        // The next time begins anew, and a candidate does not take the waker's place before it is one itself.
        for n in 0..2 {
            assert_eq!(answer(&mut wakers, 4, at(500 + n), MS), Effect::None);
        }
        assert_eq!(wakers.waker(q(2)), Some(q(3)));
        assert_ne!(answer(&mut wakers, 4, at(503), MS), Effect::None);
        assert_eq!((wakers.waker(q(2)), wakers.first_woken(q(3))), (Some(q(4)), None));
    }

    #[test]
    fn an_answer_is_less_than_4_ms_late() {
        for (gap, counts) in [(MS * 4 - Duration::from_ns(1), 1), (MS * 4, 0)] {
            let mut wakers = new();
            assert_eq!(answer(&mut wakers, 3, at(0), gap), Effect::None);
            assert_eq!(wakers.count(q(2)), counts, "{gap:?}");
        }
    }

    #[test]
    fn another_candidate_or_too_much_time_begin_anew() {
        let mut wakers = new();
        let mut count = |other, at_ns: u64| {
            let _ = answer(&mut wakers, other, Instant::EPOCH + Duration::from_ns(at_ns), MS);
            wakers.count(q(2))
        };
        let late = (MS * 8 * 128).as_ns();
        assert_eq!([count(3, 0), count(3, 1)], [1, 2]);
        assert_eq!(count(4, 2), 1, "another one came in between");
        assert_eq!([count(4, 2 + late), count(3, 9), count(3, 10 + late)], [2, 1, 1], "1024 ms at most");
    }

    #[test]
    fn a_newcomer_with_the_number_of_a_candidate_is_not_taken_for_it() {
        let mut wakers = new();
        assert_eq!(answer(&mut wakers, 3, at(0), MS), Effect::None);
        assert_eq!(answer(&mut wakers, 3, at(1), MS), Effect::None);
        wakers.freed(q(3));
        wakers.created(&View::at(at(2)), q(3));
        assert_eq!(answer(&mut wakers, 3, at(3), MS), Effect::None);
        assert_eq!(wakers.count(q(2)), 1);
    }

    #[test]
    fn what_says_nothing() {
        let view = View { last_completion: Some(at(0)), ..View::at(at(1)) };
        let count = |on, completed, alone, to, short_think| {
            let mut wakers = Wakers::new(Setting { on, slice_idle: MS * 8 }, 9);
            wakers.completed(completed, alone);
            let _ = wakers.arrived(&view, to, short_think);
            wakers.count(to)
        };
        assert_eq!(count(true, q(3), true, q(2), false), 1);
        assert_eq!(count(false, q(3), true, q(2), false), 0, "switched off");
        assert_eq!(count(true, q(3), false, q(2), false), 0, "a shared queue wakes none");
        assert_eq!(count(true, q(2), true, q(2), false), 0, "nor does a queue wake itself");
        assert_eq!(count(true, QueueId::FALLBACK, true, q(2), false), 0);
        assert_eq!(count(true, q(3), true, QueueId::FALLBACK, false), 0);
        assert_eq!(count(true, q(3), true, q(2), true), 0, "its request was expected soon anyway");
    }

    #[test]
    fn the_one_that_became_busy_last_is_first_among_the_woken() {
        let mut wakers = new();
        wakers.set(q(2), Some(q(1)));
        wakers.set(q(3), Some(q(1)));
        wakers.woke(q(4));
        assert_eq!(wakers.woken(q(1)).collect::<Vec<_>>(), [q(3), q(2)]);
        wakers.woke(q(2));
        assert_eq!(wakers.woken(q(1)).collect::<Vec<_>>(), [q(2), q(3)]);
        wakers.check(|_| true);
    }

    #[test]
    fn a_queue_that_is_freed_has_no_relations() {
        let mut wakers = new();
        wakers.set(q(2), Some(q(3)));
        wakers.set(q(3), Some(q(4)));
        wakers.completed(q(3), true);
        wakers.freed(q(3));
        assert_eq!((wakers.waker(q(2)), wakers.first_woken(q(4)), wakers.last), (None, None, None));
        wakers.check(|x| x != q(3));
    }

    #[test]
    fn a_merge_takes_the_waker_along_unless_there_is_one() {
        let mut wakers = new();
        wakers.set(q(2), Some(q(5)));
        wakers.merged(q(2), q(3));
        assert_eq!(wakers.waker(q(3)), Some(q(5)));
        wakers.set(q(2), Some(q(6)));
        wakers.merged(q(2), q(3));
        assert_eq!(wakers.waker(q(3)), Some(q(5)), "it has one");
        wakers.merged(q(2), q(6));
        assert_eq!(wakers.waker(q(6)), None, "no queue is its own waker");
    }
}
