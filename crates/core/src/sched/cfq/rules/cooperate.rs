//! Which queues read one stream: those of a pool of dump workers, or of a threaded copier.
//!
//! ```text
//!   sectors  ──1──2──3──4──5──6──►     task A reads 1, 3, 5, …   task B reads 2, 4, 6, …
//!                   ▲ head
//! ```
//!
//! When A's queue is empty and B's next request is within 8192 sectors of the head, waiting for A would be
//! silly: B is served at once, as A's *cooperator*, and the two queues are to become one: the next request of
//! a task of the smaller side goes to the other's queue. When that queue starts to seek, the tasks have
//! parted, and each gets its own queue again. How queues become one, and come apart, is the engine's business
//! (`queues.rs`).
//!
//! To find cooperators, busy queues of each priority level are kept in a tree by the position of their
//! candidate. Those that cannot cooperate (async, seeky, of the idle class) are left out, where the kernel
//! would find them and give up; so is the active queue, for which others are looked for. Where the kernel
//! takes the one of two neighbours of the head at which its tree search happens to end, this takes the one
//! ahead.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_close_cooperator, cfq_setup_merge, split_cfqq
//= docs/reference/cfq.md#511-cooperating-queues

use crate::parts::tree::{Forest, Tree};
use crate::sched::cfq::view::{CLOSE_SECTORS, LEVELS, QueueId};
use crate::units::{GroupId, Sector};
use core::ops::Range;

/// No position.
const NOWHERE: Range<u64> = 0..0;

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Nothing cooperates with a queue of the idle class: from 2.6.34 on.
    pub(crate) spares_idle_class: bool,
    /// A queue may be merged with one that no task uses any more.
    pub(crate) merges_unused: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Cooperation {
    setting: Setting,
    /// Queues by the position of their candidate, for each level.
    levels: [Tree; LEVELS],
    by_position: Forest<QueueId>,
    /// Where the head may be without a cooperator of the active queue being near.
    no_neighbour: Range<u64>,
}

/// In which tree a queue is filed, if it is: kept with the queue, and changed here only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Position(Option<u8>);

impl Position {
    /// Whether the queue is filed.
    pub(crate) const fn is_filed(self) -> bool {
        self.0.is_some()
    }
}

/// A queue's next request, and what of the queue matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) start: Sector,
    pub(crate) level: u8,
    pub(crate) sync: bool,
    pub(crate) is_idle_class: bool,
}

/// The active queue, which is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) level: u8,
    pub(crate) sync: bool,
    pub(crate) is_idle_class: bool,
    /// No other queue of its group is busy.
    pub(crate) alone: bool,
}

/// One of two queues that may cooperate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fellow {
    pub(crate) sync: bool,
    pub(crate) is_rt: bool,
    /// The group in whose trees it is filed, and that of its requests.
    pub(crate) group: GroupId,
    pub(crate) home: GroupId,
}

/// Which of two queues is given up when they become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Own,
    Other,
}

impl Cooperation {
    /// No queue of `queues` has requests. Allocates.
    pub(crate) fn new(setting: Setting, queues: usize) -> Self {
        Self {
            setting,
            levels: [Tree::default(); LEVELS],
            by_position: Forest::new(queues),
            no_neighbour: NOWHERE,
        }
    }

    /// Files a queue by its candidate, unless it has none or cannot cooperate, or another queue's candidate
    /// is in the same place. `seeks` answers whether the queue does.
    pub(crate) fn refresh(
        &mut self,
        q: QueueId,
        position: &mut Position,
        candidate: Option<Candidate>,
        seeks: impl FnOnce() -> bool,
    ) {
        self.leave(q, position);
        self.no_neighbour = NOWHERE;
        let Some(Candidate { start, level, sync, is_idle_class }) = candidate else { return };
        if !sync || is_idle_class || seeks() {
            return;
        }
        let at = start.0;
        self.by_position.insert(&mut self.levels[usize::from(level)], q, at);
        *position = Position(Some(level));
        // Two candidates at one place cannot both be filed; the older stays
        // (docs/reference/cfq.md#53-position-in-the-service-tree).
        let is_taken = self.by_position.prev(q).is_some_and(|other| self.by_position.key(other) == at);
        if is_taken {
            self.leave(q, position);
        }
    }

    /// A queue has no requests, or is active: it is not to be found as a cooperator.
    #[inline]
    pub(crate) fn leave(&mut self, q: QueueId, position: &mut Position) {
        if let Some(level) = position.0.take() {
            self.no_neighbour = NOWHERE;
            self.by_position.remove(&mut self.levels[usize::from(level)], q);
        }
    }

    /// Another queue is active, or a queue has another level.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.no_neighbour = NOWHERE;
    }

    /// Whether it is known that the active queue has no cooperator while the head is here.
    #[inline]
    pub(crate) fn knows_none(&self, head: Sector) -> bool {
        self.no_neighbour.contains(&head.0)
    }

    /// There is no cooperator while the head is in `range`.
    pub(crate) fn learn(&mut self, range: Range<u64>) {
        self.no_neighbour = range;
    }

    /// The queue whose next request is so close to the head that it should be served in place of the active
    /// one, which is empty; and the positions of the head at which there would be none. These answer, if
    /// need be: `seeks`, whether the active queue does; `close_sectors`, how close is close; `fits`, whether
    /// a queue is alike.
    pub(crate) fn find(
        &self,
        head: Sector,
        of: &Reader,
        seeks: impl FnOnce() -> bool,
        close_sectors: impl FnOnce() -> u64,
        fits: impl FnOnce(QueueId) -> bool,
    ) -> (Option<QueueId>, Range<u64>) {
        let is_spared = self.setting.spares_idle_class && of.is_idle_class;
        if !of.sync || is_spared || of.alone || seeks() {
            return (None, NOWHERE);
        }
        let tree = &self.levels[usize::from(of.level)];
        let (head, close) = (head.0, close_sectors());
        let ahead = self.by_position.lower_bound(tree, head);
        let behind = ahead.map_or_else(|| self.by_position.last(tree), |q| self.by_position.prev(q));
        let at = |q: Option<QueueId>| q.map(|q| self.by_position.key(q));
        let found = match (at(ahead), at(behind)) {
            (Some(key), _) if key - head <= close => ahead,
            (_, Some(key)) if head - key <= close => behind,
            (next, last) => {
                // The threshold may change with the next request, but not beyond its maximum.
                let from = last.map_or(0, |key| key.saturating_add(CLOSE_SECTORS + 1));
                return (None, from..next.map_or(u64::MAX, |key| key.saturating_sub(CLOSE_SECTORS)));
            }
        };
        (found.filter(|&q| fits(q)), NOWHERE)
    }

    /// Whether two queues may read one stream: `other_seeks` answers whether the other one seeks.
    pub(crate) fn fit(own: &Fellow, other: &Fellow, other_seeks: impl FnOnce() -> bool) -> bool {
        let alike = other.sync && other.is_rt == own.is_rt;
        // Filed together, in the root, are also queues of different groups.
        //= deviates cfq-coop-home
        let related = other.group == own.group && other.home == own.home;
        alike && related && !other_seeks()
    }

    /// Whether another queue may be merged with a queue that `tasks` tasks use.
    pub(crate) const fn may_join(&self, tasks: u32) -> bool {
        tasks > 0 || self.setting.merges_unused
    }

    /// Which queue is given up when two become one: that with fewer tasks
    /// (docs/reference/cfq.md#511-cooperating-queues).
    pub(crate) const fn given_up(&self, own_tasks: u32, other_tasks: u32) -> Option<Side> {
        if own_tasks == 0 || !self.may_join(other_tasks) {
            None
        } else if other_tasks >= own_tasks {
            Some(Side::Own)
        } else {
            Some(Side::Other)
        }
    }

    /// Where a queue is filed; for checks.
    pub(crate) fn place(&self, q: QueueId) -> Option<Sector> {
        self.by_position.contains(q).then(|| Sector(self.by_position.key(q)))
    }

    /// What must hold between events.
    pub(crate) fn check(&self) {
        self.levels.iter().for_each(|tree| self.by_position.check(tree));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting { spares_idle_class: true, merges_unused: false };
    const READER: Reader = Reader { level: 4, sync: true, is_idle_class: false, alone: false };
    const FELLOW: Fellow = Fellow { sync: true, is_rt: false, group: GroupId(1), home: GroupId(1) };

    const fn at(start: u64) -> Candidate {
        Candidate { start: Sector(start), level: 4, sync: true, is_idle_class: false }
    }

    /// A rule with queues 0, 1, … that have these candidates.
    fn filed(candidates: &[Candidate]) -> (Cooperation, [Position; 8]) {
        let (mut rule, mut positions) = (Cooperation::new(SETTING, 8), [Position::default(); 8]);
        for (i, &candidate) in candidates.iter().enumerate() {
            let q = QueueId(u32::try_from(i).expect("few"));
            rule.refresh(q, &mut positions[i], Some(candidate), || false);
        }
        rule.check();
        (rule, positions)
    }

    /// Looks with the head at `head`, when so far is close.
    fn find(rule: &Cooperation, head: u64, close: u64) -> (Option<QueueId>, Range<u64>) {
        rule.find(Sector(head), &READER, || false, || close, |_| true)
    }

    #[test]
    fn a_request_within_the_threshold_of_the_head_is_close() {
        let (rule, _) = filed(&[at(100_000)]);
        for (head, found) in
            [(91_808, true), (91_807, false), (100_000, true), (108_192, true), (108_193, false)]
        {
            assert_eq!(find(&rule, head, 8192).0.is_some(), found, "from {head}");
        }
        assert!(find(&rule, 99_900, 100).0.is_some() && find(&rule, 99_900, 99).0.is_none());
        assert!(find(&rule, 100_100, 100).0.is_some() && find(&rule, 100_100, 99).0.is_none());
    }

    #[test]
    fn the_request_ahead_of_the_head_is_taken_before_the_one_behind() {
        let (rule, _) = filed(&[at(5000), at(5100)]);
        assert_eq!(find(&rule, 5001, 8192).0, Some(QueueId(1)));
        assert_eq!(find(&rule, 5000, 8192).0, Some(QueueId(0)), "right at the head");
        assert_eq!(find(&rule, 5001, 50).0, Some(QueueId(0)), "if that is close");
        assert_eq!(find(&rule, 5101, 8192).0, Some(QueueId(1)), "none is ahead");
    }

    #[test]
    fn where_no_cooperator_can_be_is_known_for_any_threshold() {
        let (rule, _) = filed(&[at(100_000), at(200_000)]);
        assert_eq!(find(&rule, 150_000, 10), (None, 108_193..191_808));
        assert_eq!(find(&rule, 100_011, 10), (None, 108_193..191_808), "it may be close by the next one");
        assert_eq!(find(&rule, 5000, 10), (None, 0..91_808));
        assert_eq!(find(&rule, 300_000, 10), (None, 208_193..u64::MAX));
        assert_eq!(find(&rule, 100_000, 10).1, NOWHERE);
        let (rule, _) = filed(&[]);
        assert_eq!(find(&rule, 5, 10), (None, 0..u64::MAX));
        let (rule, _) = filed(&[at(10), at(u64::MAX - 10)]);
        assert_eq!(find(&rule, 1 << 40, 10), (None, 8203..u64::MAX - 10 - 8192));
        assert_eq!(find(&filed(&[at(10)]).0, 0, 5), (None, 0..0), "ends of all sectors do not wrap");
        let end = find(&filed(&[at(u64::MAX - 10)]).0, u64::MAX, 5);
        assert_eq!(end, (None, u64::MAX..u64::MAX));
    }

    #[test]
    fn what_is_known_holds_until_a_queue_is_filed_or_leaves_or_is_forgotten() {
        let (mut rule, mut positions) = filed(&[at(100_000)]);
        let learnt = |rule: &mut Cooperation| {
            rule.learn(5..10);
            assert_eq!([4, 5, 9, 10].map(|s| rule.knows_none(Sector(s))), [false, true, true, false]);
        };
        learnt(&mut rule);
        rule.leave(QueueId(1), &mut positions[1]);
        assert!(rule.knows_none(Sector(5)), "it was not filed");
        rule.leave(QueueId(0), &mut positions[0]);
        assert!(!rule.knows_none(Sector(5)));
        learnt(&mut rule);
        rule.refresh(QueueId(0), &mut positions[0], None, || false);
        assert!(!rule.knows_none(Sector(5)));
        learnt(&mut rule);
        rule.forget();
        assert!(!rule.knows_none(Sector(5)));
    }

    #[test]
    fn a_queue_that_cannot_cooperate_is_not_filed() {
        let fit = at(50);
        for (candidate, seeks, filed) in [
            (Some(fit), false, true),
            (Some(fit), true, false),
            (None, false, false),
            (Some(Candidate { sync: false, ..fit }), false, false),
            (Some(Candidate { is_idle_class: true, ..fit }), false, false),
        ] {
            let (mut rule, mut position) = (Cooperation::new(SETTING, 1), Position::default());
            rule.refresh(QueueId(0), &mut position, candidate, || seeks);
            assert_eq!((position.is_filed(), rule.place(QueueId(0)).is_some()), (filed, filed));
            // It is filed anew each time.
            rule.refresh(QueueId(0), &mut position, Some(at(70)), || false);
            assert_eq!(rule.place(QueueId(0)), Some(Sector(70)));
            rule.refresh(QueueId(0), &mut position, candidate, || seeks);
            assert_eq!(rule.place(QueueId(0)), filed.then_some(Sector(50)));
            rule.leave(QueueId(0), &mut position);
            assert_eq!((position.is_filed(), rule.place(QueueId(0))), (false, None));
            rule.check();
        }
    }

    #[test]
    fn of_two_candidates_in_one_place_the_older_is_filed() {
        let (mut rule, mut positions) = filed(&[at(50), at(50), at(51)]);
        assert_eq!([0, 1, 2].map(|i| positions[i].is_filed()), [true, false, true]);
        rule.leave(QueueId(0), &mut positions[0]);
        rule.refresh(QueueId(1), &mut positions[1], Some(at(50)), || false);
        assert!(positions[1].is_filed());
        // Another level is another tree.
        rule.refresh(QueueId(0), &mut positions[0], Some(Candidate { level: 5, ..at(50) }), || false);
        assert!(positions[0].is_filed());
    }

    #[test]
    fn only_queues_of_one_level_are_looked_at() {
        let (rule, _) = filed(&[Candidate { level: 5, ..at(100) }]);
        assert_eq!(find(&rule, 100, 8192).0, None);
        let other = Reader { level: 5, ..READER };
        assert!(rule.find(Sector(100), &other, || false, || 8192, |_| true).0.is_some());
    }

    #[test]
    fn an_active_queue_that_is_async_alone_or_seeks_has_no_cooperator() {
        let (mut rule, _) = filed(&[at(100)]);
        let found = |rule: &Cooperation, of: Reader, seeks| {
            rule.find(Sector(100), &of, || seeks, || 8192, |_| true).0.is_some()
        };
        assert!(found(&rule, READER, false) && !found(&rule, READER, true));
        let asyn = Reader { sync: false, ..READER };
        for of in [asyn, Reader { is_idle_class: true, ..asyn }, Reader { alone: true, ..READER }] {
            assert!(!found(&rule, of, false));
            assert_eq!(rule.find(Sector(9999), &of, || false, || 8192, |_| true), (None, NOWHERE));
        }
        let idle = Reader { is_idle_class: true, ..READER };
        assert!(!found(&rule, idle, false));
        rule.setting.spares_idle_class = false;
        assert!(found(&rule, idle, false), "in 2.6.33");
    }

    #[test]
    fn the_nearest_queue_is_taken_or_none() {
        let (rule, _) = filed(&[at(100), at(110)]);
        let find = |fits: fn(QueueId) -> bool| rule.find(Sector(100), &READER, || false, || 50, fits);
        assert_eq!(find(|q| q == QueueId(1)), (None, NOWHERE), "the next one is not asked");
        assert_eq!(find(|q| q == QueueId(0)), (Some(QueueId(0)), NOWHERE));
    }

    #[test]
    fn queues_cooperate_if_they_are_sync_of_one_class_and_group_and_do_not_seek() {
        let fit = |other: Fellow, seeks| Cooperation::fit(&FELLOW, &other, || seeks);
        assert!(fit(FELLOW, false) && !fit(FELLOW, true));
        for other in [
            Fellow { sync: false, ..FELLOW },
            Fellow { is_rt: true, ..FELLOW },
            Fellow { group: GroupId(2), ..FELLOW },
            Fellow { home: GroupId(2), ..FELLOW },
        ] {
            assert!(!fit(other, false), "{other:?}");
        }
        let rt = Fellow { is_rt: true, ..FELLOW };
        assert!(Cooperation::fit(&rt, &rt, || false));
    }

    #[test]
    fn the_queue_with_fewer_tasks_is_given_up() {
        let rule = Cooperation::new(SETTING, 0);
        let unused = Cooperation::new(Setting { merges_unused: true, ..SETTING }, 0);
        for (own, other, given_up, with_quirk) in [
            (1, 1, Some(Side::Own), Some(Side::Own)),
            (1, 2, Some(Side::Own), Some(Side::Own)),
            (2, 1, Some(Side::Other), Some(Side::Other)),
            (0, 1, None, None),
            (1, 0, None, Some(Side::Other)),
            (0, 0, None, None),
        ] {
            assert_eq!(rule.given_up(own, other), given_up, "{own} {other}");
            assert_eq!(unused.given_up(own, other), with_quirk, "{own} {other}");
        }
        assert_eq!([0, 1].map(|n| rule.may_join(n)), [false, true]);
        assert_eq!([0, 1].map(|n| unused.may_join(n)), [true, true]);
    }
}
