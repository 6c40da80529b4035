//! Bursts of queue activations: tasks that begin together want throughput, not to be raised.
//!
//! A system that starts, a build, a search through a source tree: many short tasks begin within moments, each
//! looks interactive, and raising them all raises none and costs the disk its order. One program that starts
//! has few helpers. So a task that begins within 180 ms of the one before, under the same group, is in one
//! *burst* with it; the eighth makes the burst *large*, and from then on no queue in it is raised.
//!
//! ```text
//!   new queue   a    b    c     d  e   f     g   h    i            (less than 180 ms between neighbours)
//!   size        1    2    3     4  5   6     7   8
//!   list        a    ab   abc   …             …g  -    -
//!   in a large burst                              a…h  a…i          those of a…g that are raised already lose it
//! ```
//!
//! A new queue counts if there is a burst already or nothing is busy: what begins while others work is a
//! program that its user has just started, not the system. More than 180 ms of quiet or another group end the
//! burst.
//!
//! A queue stays in its burst until it has been idle for 10 s. One that is freed while on the list, because
//! its task has exited, no longer counts: the shell commands in the script that starts a program come and go.
//! Linux meant so, and has counted it all the same since about 6.2; with [`Setting::counts_exited`] this rule
//! does, too.
//!
//! What it does not do: look at what these tasks have in common. Eight programs of one session that start
//! together are a burst too.
//
//= linux-6.12 block/bfq-iosched.c bfq_handle_burst, bfq_add_to_burst, docs/reference/bfq.md#34-bursts

use crate::parts::fifo::{Fifo, Links};
use crate::sched::bfq::view::{QueueId, View, since};
use crate::table::Table;
use crate::units::{Duration, GroupId, Instant};

/// The number of queues that make a burst large.
//= linux-6.12 block/bfq-iosched.c bfq_large_burst_thresh, docs/reference/bfq.md#34-bursts
const LARGE: u32 = 8;

/// A longer quiet ends a burst.
//= linux-6.12 block/bfq-iosched.c bfq_burst_interval, docs/reference/bfq.md#34-bursts
const QUIET: Duration = Duration::from_ms(180);

/// A queue that was split off at most this long ago is not new.
const AFTER_SPLIT: Duration = Duration::from_ms(10);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether bursts are looked for.
    pub(crate) on: bool,
    /// Whether a queue whose task has exited still counts, as in Linux since about 6.2.
    pub(crate) counts_exited: bool,
}

/// A queue's part in bursts.
#[derive(Clone, Copy, Debug)]
struct Member {
    created: Instant,
    /// In a large one. Then it is not in the list.
    in_large: bool,
    /// In the list of a burst that is small so far.
    in_list: bool,
}

/// What a queue was in when its task began to share another one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    pub(crate) in_large: bool,
    pub(crate) in_list: bool,
}

/// A queue that was created just now, with its first request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) q: QueueId,
    pub(crate) group: GroupId,
    /// When it was split off another one.
    pub(crate) split: Option<Instant>,
}

/// The current burst, and all queues' parts in this and earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    pub(crate) setting: Setting,
    members: Table<QueueId, Member>,
    /// The queues that began in the current burst, while it is small.
    list: Fifo<QueueId>,
    links: Links<QueueId>,
    /// How many queues the burst counts: below 8 while it is small.
    size: u32,
    /// Whether the current burst is large.
    large: bool,
    /// When the last queue was counted.
    last_insert: Option<Instant>,
    /// When the burst began.
    began: Instant,
    /// The group of its queues.
    parent: GroupId,
}

impl Bursts {
    /// No burst so far. Allocates.
    pub(crate) fn new(setting: Setting, queues: usize) -> Self {
        let none = Member { created: Instant::EPOCH, in_large: false, in_list: false };
        Self {
            setting,
            members: Table::new(queues, none),
            list: Fifo::default(),
            links: Links::new(queues),
            size: 0,
            large: false,
            last_insert: None,
            began: Instant::EPOCH,
            parent: GroupId::ROOT,
        }
    }

    /// Whether a queue is in a large burst, and so is not to be raised.
    #[inline]
    pub(crate) fn in_large(&self, q: QueueId) -> bool {
        self.members[q].in_large
    }

    /// Whether a queue is in a burst.
    #[inline]
    pub(crate) fn is_member(&self, q: QueueId) -> bool {
        let member = &self.members[q];
        member.in_list || member.in_large
    }

    /// What a queue is in, to be given back with [`Self::split`].
    pub(crate) fn past(&self, q: QueueId) -> Past {
        let Member { in_large, in_list, .. } = self.members[q];
        Past { in_large, in_list }
    }

    /// A queue is created.
    pub(crate) fn created(&mut self, view: &View, q: QueueId) {
        self.members[q] = Member { created: view.tick(), in_large: false, in_list: false };
    }

    /// A request came to a new queue. Reports each queue that is in a large burst from now on to `marked`.
    pub(crate) fn arrived(&mut self, view: &View, new: Newcomer, marked: impl FnMut(QueueId)) {
        let (now, q) = (view.tick(), new.q);
        let counts = self.size > 0 || view.busy == 0;
        if !self.setting.on || !counts || q == QueueId::FALLBACK {
            return;
        }
        if self.is_member(q) || since(now, new.split) <= AFTER_SPLIT {
            return;
        }
        if since(now, self.last_insert) > QUIET || new.group != self.parent {
            self.begin(view, q, new.group);
        } else {
            self.grow(q, marked);
        }
        self.last_insert = Some(now);
    }

    /// The old burst is over. If something is busy, `q` does not begin one.
    fn begin(&mut self, view: &View, q: QueueId, parent: GroupId) {
        self.large = false;
        while self.pop().is_some() {}
        self.size = 0;
        self.parent = parent;
        self.began = self.members[q].created;
        if view.busy == 0 {
            self.size = 1;
            self.list(q);
        }
    }

    fn grow(&mut self, q: QueueId, mut marked: impl FnMut(QueueId)) {
        self.size = self.size.saturating_add(1);
        if !self.large && self.size < LARGE {
            self.list(q);
            return;
        }
        self.large = true;
        while let Some(old) = self.pop() {
            self.members[old].in_large = true;
            marked(old);
        }
        self.members[q].in_large = true;
        marked(q);
    }

    fn pop(&mut self) -> Option<QueueId> {
        let q = self.links.pop_front(&mut self.list)?;
        self.members[q].in_list = false;
        Some(q)
    }

    /// `q` turned out to read one stream, and counts no longer: bursts are about short tasks. Answers whether
    /// the burst, without it, is small again; then [`Self::release`] is due.
    pub(crate) fn streams(&mut self, q: QueueId) -> bool {
        let member = self.members[q];
        let of_this = member.in_large && self.large && member.created >= self.began;
        if of_this || member.in_list {
            self.size = self.size.saturating_sub(1);
        }
        self.leave(q);
        let small = of_this && self.size < LARGE;
        self.large &= !small;
        small
    }

    /// The burst is small again: the next of its queues that was in a large one, and is on the list from now
    /// on.
    pub(crate) fn release(&mut self) -> Option<QueueId> {
        let began = self.began;
        let (q, _) = self.members.iter().find(|(_, member)| member.in_large && member.created >= began)?;
        self.members[q].in_large = false;
        self.list(q);
        Some(q)
    }

    /// Puts a queue on the list, without counting it.
    fn list(&mut self, q: QueueId) {
        if !self.members[q].in_list {
            self.members[q].in_list = true;
            self.links.push_back(&mut self.list, q);
        }
    }

    fn unlist(&mut self, q: QueueId) {
        if core::mem::take(&mut self.members[q].in_list) {
            self.links.remove(&mut self.list, q);
        }
    }

    /// A queue becomes busy after having been idle for long: it is in no burst any more.
    pub(crate) fn leave(&mut self, q: QueueId) {
        self.unlist(q);
        self.members[q].in_large = false;
    }

    /// `q` was split off, for a task whose own queue was in what `past` says.
    pub(crate) fn split(&mut self, q: QueueId, past: Past) {
        if past.in_large || past.in_list && self.large {
            self.members[q].in_large = true;
        } else if past.in_list {
            self.list(q);
        }
    }

    /// A queue is freed; `owned` says whether one task still had it.
    pub(crate) fn freed(&mut self, q: QueueId, owned: bool) {
        //= deviates bfq-burst-exit
        if self.members[q].in_list && owned && !self.setting.counts_exited {
            self.size = self.size.saturating_sub(1);
        }
        self.leave(q);
    }

    /// For comparisons: a queue that began just now is in a large burst, or is not, and the burst that it
    /// began in is what this shows.
    pub(crate) fn adopt(&mut self, q: QueueId, large: bool, marked: impl FnMut(QueueId)) {
        if large {
            self.unlist(q);
            // At least seven began before it.
            (self.large, self.size) = (false, self.size.max(LARGE - 1));
            self.grow(q, marked);
        } else {
            // How many the burst counts does not show: at least this one.
            self.members[q].in_large = false;
            (self.large, self.size) = (false, 1);
            self.list(q);
        }
    }

    /// What must hold between events; `used` answers whether a queue is in use.
    pub(crate) fn check(&self, used: impl Fn(QueueId) -> bool) {
        let listed = self.members.iter().filter(|(_, member)| member.in_list);
        assert_eq!(listed.count(), self.list.len() as usize, "I20: the list of the burst");
        for (q, member) in self.members.iter() {
            assert!(!(member.in_list && member.in_large), "I20: in the list and in a large burst");
            assert!(used(q) || !self.is_member(q), "I20: a free queue in a burst");
        }
        assert!(self.large || self.size < LARGE, "I20: a burst of {} is large", self.size);
    }

    /// How many queues the burst counts, and how many are on its list: for tests.
    #[cfg(test)]
    pub(crate) const fn counts(&self) -> (u32, u32) {
        (self.size, self.list.len())
    }

    /// Whether the current burst is large: for tests.
    #[cfg(test)]
    pub(crate) const fn is_large(&self) -> bool {
        self.large
    }

    /// The group of the current burst: for tests.
    #[cfg(test)]
    pub(crate) const fn parent(&self) -> GroupId {
        self.parent
    }

    /// When the last queue was counted: for tests.
    #[cfg(test)]
    pub(crate) const fn last_insert(&self) -> Option<Instant> {
        self.last_insert
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::units::Id;
    use std::vec::Vec;

    fn q(n: usize) -> QueueId {
        QueueId::from_index(n)
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_ms(ms)
    }

    struct Case {
        bursts: Bursts,
        now: Instant,
        busy: u32,
        group: GroupId,
    }

    impl Case {
        fn new() -> Self {
            let setting = Setting { on: true, counts_exited: false };
            Self { bursts: Bursts::new(setting, 40), now: at(1000), busy: 0, group: GroupId(3) }
        }

        fn view(&self) -> View {
            View { busy: self.busy, ..View::at(self.now) }
        }

        /// Queue `n` is created, `gap_ms` after the one before; answers which are in a large burst for that.
        fn begin(&mut self, n: usize, gap_ms: u64) -> Vec<usize> {
            self.now = self.now + Duration::from_ms(gap_ms);
            self.bursts.created(&self.view(), q(n));
            self.again(n, None)
        }

        fn again(&mut self, n: usize, split: Option<Instant>) -> Vec<usize> {
            let mut marked = Vec::new();
            let new = Newcomer { q: q(n), group: self.group, split };
            self.bursts.arrived(&self.view(), new, |q| marked.push(q.index()));
            self.busy = 1;
            self.bursts.check(|_| true);
            marked
        }
    }

    /// The queues from 2 to `last` began 10 ms after each other.
    fn burst(last: usize) -> Case {
        let mut case = Case::new();
        for n in 2..=last {
            let _ = case.begin(n, 10);
        }
        case
    }

    #[test]
    fn the_eighth_makes_a_burst_large_and_takes_the_others_with_it() {
        assert!(!Case::new().bursts.is_large());
        let mut case = burst(8);
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((7, 7), false));
        assert_eq!(case.begin(9, 180), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((8, 0), true));
        assert_eq!(case.begin(10, 180), [10], "and each that follows");
        assert!((2..11).all(|n| case.bursts.in_large(q(n))) && !case.bursts.in_large(q(11)));
    }

    #[test]
    fn more_than_180_ms_of_quiet_or_another_group_end_a_burst() {
        for (gap, group, goes_on) in [(180, 3, true), (181, 3, false), (10, 4, false)] {
            let mut case = burst(8);
            case.group = GroupId(group);
            assert_eq!(!case.begin(9, gap).is_empty(), goes_on, "{gap} ms, group {group}");
            if !goes_on {
                assert_eq!(case.bursts.counts(), (0, 0), "others are busy");
                case.busy = 0;
                let _ = case.begin(10, 1);
                assert_eq!((case.bursts.counts(), case.bursts.parent), ((1, 1), GroupId(group)));
            }
        }
    }

    #[test]
    fn a_new_burst_begins_while_nothing_is_busy_and_the_large_one_is_over() {
        let mut case = burst(9);
        case.busy = 0;
        assert_eq!(case.begin(10, 500), []);
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((1, 1), false));
        assert_eq!(
            (case.bursts.began, case.bursts.in_large(q(9))),
            (case.now, true),
            "its queues stay in it"
        );
        let mut case = Case { busy: 1, ..Case::new() };
        let _ = case.begin(2, 1);
        assert_eq!((case.bursts.counts(), case.bursts.last_insert()), ((0, 0), None));
    }

    #[test]
    fn a_queue_that_is_in_a_burst_or_was_just_split_off_does_not_count() {
        let mut case = burst(3);
        let split = |ms| Some(case.now - Duration::from_ms(ms));
        let (recent, old) = (split(10), split(11));
        let _ = case.again(3, None);
        let _ = case.again(4, recent);
        assert_eq!(case.bursts.counts(), (2, 2));
        let _ = case.again(4, old);
        assert_eq!(case.bursts.counts(), (3, 3));
        let _ = case.again(QueueId::FALLBACK.index(), None);
        assert_eq!(case.bursts.counts(), (3, 3));
        case.bursts.setting.on = false;
        let _ = case.begin(5, 1);
        assert_eq!(case.bursts.counts(), (3, 3), "switched off");
    }

    #[test]
    fn a_queue_whose_task_exits_counts_no_longer_unless_as_in_linux() {
        for (counts_exited, owned, size) in [(false, true, 4), (false, false, 5), (true, true, 5)] {
            let mut case = burst(6);
            case.bursts.setting.counts_exited = counts_exited;
            case.bursts.freed(q(4), owned);
            assert_eq!(case.bursts.counts(), (size, 4), "{counts_exited} {owned}");
            assert!(!case.bursts.is_member(q(4)));
            case.bursts.freed(q(4), owned);
            assert_eq!(case.bursts.counts().0, size, "once");
        }
    }

    #[test]
    fn a_burst_without_its_streams_is_small_again() {
        let mut case = burst(5);
        case.busy = 0;
        // The first burst has four; the second begins with queue 6 and has nine.
        let _ = case.begin(6, 500);
        for n in 7..=14 {
            let _ = case.begin(n, 10);
        }
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((9, 0), true));
        assert!(!case.bursts.streams(q(8)), "eight are left");
        assert!(!case.bursts.is_member(q(8)) && case.bursts.is_large());
        assert!(case.bursts.streams(q(9)));
        let released: Vec<_> = core::iter::from_fn(|| case.bursts.release()).map(Id::index).collect();
        assert_eq!(released, [6, 7, 10, 11, 12, 13, 14]);
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((7, 7), false));
        case.bursts.check(|_| true);
        assert!(!case.bursts.streams(q(10)), "it was small before");
        assert_eq!(case.bursts.counts(), (6, 6));
        assert!(!case.bursts.streams(q(20)), "of no burst");
        assert_eq!(case.bursts.counts(), (6, 6));
    }

    #[test]
    fn a_stream_of_an_older_burst_says_nothing_about_this_one() {
        let mut case = burst(9);
        case.busy = 0;
        for n in 10..=17 {
            let _ = case.begin(n, if n == 10 { 500 } else { 10 });
        }
        assert!(!case.bursts.streams(q(2)));
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((8, 0), true));
    }

    #[test]
    fn a_task_that_is_split_off_is_in_what_it_was_in() {
        let mut large = burst(9);
        let past = large.bursts.past(q(3));
        assert!(past.in_large && !past.in_list);
        let mut small = burst(4);
        small.bursts.split(q(10), past);
        assert!(small.bursts.in_large(q(10)));
        let listed = small.bursts.past(q(3));
        assert!(!listed.in_large && listed.in_list);
        small.bursts.split(q(11), listed);
        assert_eq!((small.bursts.in_large(q(11)), small.bursts.counts()), (false, (3, 4)));
        large.bursts.split(q(11), listed);
        assert!(large.bursts.in_large(q(11)), "the burst has become large meanwhile");
        small.bursts.split(q(12), Past::default());
        assert!(!small.bursts.is_member(q(12)));
        small.bursts.leave(q(10));
        small.bursts.leave(q(11));
        assert!(!small.bursts.is_member(q(10)) && !small.bursts.is_member(q(11)));
    }

    #[test]
    fn a_burst_becomes_what_a_comparison_shows() {
        let mut case = burst(4);
        let mut marked = Vec::new();
        case.bursts.adopt(q(4), true, |q| marked.push(q.index()));
        assert_eq!((marked, case.bursts.is_large()), ([2, 3, 4].to_vec(), true));
        case.bursts.adopt(q(4), false, |_| panic!("none is marked"));
        assert_eq!((case.bursts.counts(), case.bursts.is_large()), ((1, 1), false));
        assert!(!case.bursts.in_large(q(4)));
    }
}
