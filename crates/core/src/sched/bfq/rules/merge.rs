//! Which queues become one, and which part again.
//!
//! **Early queue merge.** Tasks that read one stream together (a pool of dump workers, a virtual machine's
//! I/O threads) look random each, and idling waits for the wrong one. One queue for all of them is
//! sequential:
//!
//! ```text
//!   sectors  ──1──2──3──4──5──6──►     task A reads 1, 3, 5, …   task B reads 2, 4, 6, …
//!                      ▲ last dispatched
//! ```
//!
//! It happens early, when a request arrives: if that is within 8192 sectors of where the queue in service was
//! last, or of another queue's next request, the two queues become one. Both must be sync, of one class,
//! group and actuator, not seeky, and at the start of their backlog (100 ms): later, closeness is chance.
//!
//! **Split.** A shared queue that has become seeky when it expires holds tasks that no longer read one
//! stream. Each gets a queue of its own with its next request, and what was remembered of its old one: think
//! time, I/O-boundness, raising. The last one keeps the queue.
//!
//! **Stable merge.** Queues created within 180 ms of each other, in one group and with one priority, are
//! likely threads of one program, that only steal the disk from each other. On flash that queues requests
//! they are merged at creation. Elsewhere the newcomer decides after 600 ms, when it is known what it does:
//! it stays alone if idling for it gains throughput. Tasks merged so are never split, and such a queue may be
//! raised.
//!
//! ```text
//!   t = 0 ms    a is created           last created: a
//!   t = 24      b is created           b's target: a
//!   t = 190     c is created           nothing: too late for a, which stays the last created until t = 600
//!   t = 630     b's next request       b joins a, unless it turned out sequential
//! ```
//!
//! What it does not do: move tasks and requests between queues, which the engine does; merge by position on
//! flash that queues requests, which sorts by itself; follow threads, which are guessed by what they do.
//
//= linux-6.12 block/bfq-iosched.c bfq_setup_cooperator, bfq_do_or_sched_stable_merge
//= docs/reference/bfq.md#32-early-queue-merge, docs/reference/bfq.md#46-stable-merge

use crate::sched::bfq::view::{Created, QueueId, View, since};
use crate::units::{Class, Duration, GroupId, Instant, IoPrio, Sector};
use core::ops::Range;

/// Requests at most this many sectors from each other may belong to one stream.
//= linux-6.12 block/bfq-iosched.c BFQQ_CLOSE_THR, docs/reference/bfq.md#32-early-queue-merge
const CLOSE_SECTORS: u64 = 8 * 1024;

/// A queue that became backlogged may be merged by position for this long from its first service on.
//= linux-6.12 block/bfq-iosched.c bfq_merge_time_limit, docs/reference/bfq.md#32-early-queue-merge
const MERGE_TIME: Duration = Duration::from_ms(100);

/// Queues created at most this long after each other are to be merged for good.
//= linux-6.12 block/bfq-iosched.c bfq_do_or_sched_stable_merge, docs/reference/bfq.md#46-stable-merge
const TOGETHER: Duration = Duration::from_ms(180);

/// For this long newcomers are compared with the queue that was created last.
//= linux-6.12 block/bfq-iosched.c bfq_activation_stable_merging, docs/reference/bfq.md#46-stable-merge
const REMEMBERED: Duration = Duration::from_ms(600);

/// For this long after its creation, or a split, a queue is watched before it is merged for good.
//= linux-6.12 block/bfq-iosched.c bfq_late_stable_merging, docs/reference/bfq.md#46-stable-merge
const WATCHED: Duration = Duration::from_ms(600);

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether queues are merged that read near each other.
    pub(crate) by_position: bool,
    /// Whether queues are merged that were created together.
    pub(crate) for_good: bool,
    /// Whether the device sorts requests by itself, if it queues them.
    pub(crate) sorts: bool,
    /// Whether a sequential queue stays alone, even if others were created with it that are not.
    pub(crate) spares_streams: bool,
    /// As in the kernel: a queue looks for no other while one is busy, even if that is not itself; idling for
    /// a queue continues when its tasks have left it; and while a raised queue is busy no queue counts as
    /// sequential when it is merged for good.
    pub(crate) as_kernel: bool,
}

/// A queue that may be merged by position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Whether it is sync, and not of the idle class.
    pub(crate) usual: bool,
    pub(crate) seeky: bool,
    /// When the first request of its backlog was served, if one was.
    pub(crate) served_since: Option<Instant>,
}

/// What two queues must have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kin {
    pub(crate) class: Class,
    pub(crate) group: GroupId,
    pub(crate) actuator: u8,
}

/// A queue and the sector where its next request starts.
pub(crate) type Place = (u64, QueueId);

/// A queue at its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newborn {
    pub(crate) created: Instant,
    pub(crate) prio: IoPrio,
    pub(crate) actuator: u8,
}

/// A queue that was created together with another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) sync: bool,
    /// Whether this is its first request.
    pub(crate) new: bool,
    pub(crate) created: Instant,
    /// When it was split off another one.
    pub(crate) split: Option<Instant>,
}

/// Whether idling makes for more throughput, for a queue and the one that it may join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pays {
    /// For the queue, now.
    pub(crate) now: bool,
    /// For the queue, if no raised queue is busy.
    pub(crate) ever: bool,
    /// For the other one, if no raised queue is busy.
    pub(crate) for_target: bool,
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge {
    pub(crate) setting: Setting,
    /// Whether the device sorts by itself: no merging by position, stable merges at once.
    at_once: bool,
}

impl Merge {
    /// A device that may queue requests.
    pub(crate) const fn new(setting: Setting) -> Self {
        Self { setting, at_once: setting.sorts }
    }

    /// The device queues requests, as far as is known now, or does not; or the setting is another.
    pub(crate) const fn judge(&mut self, queues: bool) {
        self.at_once = queues && self.setting.sorts;
    }

    /// Whether the device sorts by itself: no merging by position, stable merges at once.
    #[inline]
    pub(crate) const fn at_once(&self) -> bool {
        self.at_once
    }
}

/// By position.
impl Merge {
    /// Whether a queue, which is `busy` or not, may be merged with one that reads near it.
    #[inline(always)]
    pub(crate) fn seeks_company(&self, view: &View, busy: bool, queue: &Candidate) -> bool {
        // The kernel asks whether one queue is busy, and takes it for this one. But this one, whose request
        // is about to come, may be idle, and the busy one just the one whose stream it reads: preempting each
        // other, the two never meet.
        //= deviates bfq-coop-alone
        let alone = view.busy == u32::from(self.setting.as_kernel || busy);
        self.setting.by_position && !alone && Self::may_cooperate(view, queue)
    }

    /// Whether a queue is found by others that read near its next request.
    #[inline(always)]
    pub(crate) fn is_found(&self, view: &View, queue: &Candidate) -> bool {
        self.setting.by_position && !self.at_once && Self::may_cooperate(view, queue)
    }

    /// Whether a queue could be one with another at all. If its backlog began long ago, what it reads near
    /// another queue is chance.
    #[inline(always)]
    fn may_cooperate(view: &View, queue: &Candidate) -> bool {
        let late = || queue.served_since.is_some_and(|since| view.tick() > since + MERGE_TIME);
        queue.usual && !queue.seeky && !late()
    }

    /// Whether a queue may be merged with `other`.
    //= deviates bfq-merge-actuator
    pub(crate) fn fits(view: &View, queue: Kin, kin: Kin, other: &Candidate) -> bool {
        queue == kin && Self::may_cooperate(view, other)
    }

    /// Whether two requests may belong to one stream.
    #[inline]
    pub(crate) const fn is_close(a: Sector, b: Sector) -> bool {
        a.0.abs_diff(b.0) <= CLOSE_SECTORS
    }

    /// The queue that reads close to `position`: the one there or ahead, else the one behind.
    pub(crate) fn closest(position: Sector, behind: Option<Place>, ahead: Option<Place>) -> Option<QueueId> {
        let close = |place: &Place| Self::is_close(Sector(place.0), position);
        ahead.filter(close).or_else(|| behind.filter(close)).map(|(_, q)| q)
    }

    /// The sectors that are close to neither of two neighbours in the order of positions.
    pub(crate) fn gap(behind: Option<Place>, ahead: Option<Place>) -> Range<u64> {
        let from = behind.map_or(0, |(at, _)| at.saturating_add(CLOSE_SECTORS + 1));
        let to = ahead.map_or(u64::MAX, |(at, _)| at.saturating_sub(CLOSE_SECTORS));
        from..to
    }
}

/// For good.
impl Merge {
    /// A queue is created, not by a split; `last` is the one that was created last in its group.
    pub(crate) fn created(&self, new: &Newborn, last: Option<&Newborn>) -> Created {
        if !self.setting.for_good {
            return Created::Alone;
        }
        let after = |last: &Newborn| new.created.saturating_since(last.created);
        let alike = |last: &&Newborn| {
            after(last) <= REMEMBERED && new.prio == last.prio && new.actuator == last.actuator
        };
        match last.filter(alike) {
            None => Created::Last,
            Some(last) if after(last) > TOGETHER => Created::Alone,
            Some(_) if self.at_once => Created::Now,
            Some(_) => Created::Later,
        }
    }

    /// Whether it is known what a queue does that was created together with another one.
    pub(crate) fn is_known(view: &View, queue: &Watched) -> bool {
        let now = view.tick();
        queue.sync
            && !queue.new
            && since(now, queue.split) > WATCHED
            && now.saturating_since(queue.created) > WATCHED
    }

    /// Whether a queue of which that is known joins the other one: not if one of them reads sequentially.
    pub(crate) const fn joins(&self, pays: Pays) -> bool {
        //= deviates bfq-stable-raised
        let sequential = if self.setting.as_kernel { pays.now } else { pays.ever };
        //= deviates bfq-streams
        let disturbs_stream = self.setting.spares_streams && pays.for_target;
        !sequential && !disturbs_stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Id;

    const MS: Duration = Duration::from_ms(1);

    fn rule() -> Merge {
        Merge::new(Setting {
            by_position: true,
            for_good: true,
            sorts: false,
            spares_streams: true,
            as_kernel: false,
        })
    }

    fn with(change: impl FnOnce(&mut Setting)) -> Merge {
        let mut setting = rule().setting;
        change(&mut setting);
        Merge::new(setting)
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + MS * ms
    }

    /// A device beside which two queues are busy.
    fn view(ms: u64) -> View {
        View { busy: 2, ..View::at(at(ms)) }
    }

    /// A sequential queue that has not been served yet.
    const SEQUENTIAL: Candidate = Candidate { usual: true, seeky: false, served_since: None };

    #[test]
    fn a_device_that_queues_and_sorts_leaves_nothing_to_be_merged_by_position() {
        let mut sorts = with(|s| s.sorts = true);
        assert!(sorts.at_once() && !rule().at_once(), "a device queues until it is known better");
        assert!(!sorts.is_found(&view(0), &SEQUENTIAL));
        sorts.judge(false);
        assert!(!sorts.at_once() && sorts.is_found(&view(0), &SEQUENTIAL));
        sorts.judge(true);
        assert!(sorts.at_once());
        let mut disk = rule();
        disk.judge(true);
        assert!(!disk.at_once() && disk.is_found(&view(0), &SEQUENTIAL));
    }

    #[test]
    //= docs/reference/bfq.md#32-early-queue-merge type=test
    fn a_sequential_sync_queue_at_the_start_of_its_backlog_may_be_merged() {
        let served = |ms| Candidate { served_since: Some(at(ms)), ..SEQUENTIAL };
        for (queue, may) in [
            (SEQUENTIAL, true),
            (Candidate { usual: false, ..SEQUENTIAL }, false),
            (Candidate { seeky: true, ..SEQUENTIAL }, false),
            (served(400), true),
            (served(399), false),
        ] {
            let rule = rule();
            assert_eq!(rule.seeks_company(&view(500), true, &queue), may, "{queue:?}");
            assert_eq!(rule.is_found(&view(500), &queue), may, "{queue:?}");
            let kin = Kin { class: Class::BestEffort, group: GroupId(1), actuator: 0 };
            assert_eq!(Merge::fits(&view(500), kin, kin, &queue), may, "{queue:?}");
            for other in [
                Kin { class: Class::RealTime, ..kin },
                Kin { group: GroupId(2), ..kin },
                Kin { actuator: 1, ..kin },
            ] {
                assert!(!Merge::fits(&view(500), kin, other, &queue));
            }
        }
        let off = with(|s| s.by_position = false);
        assert!(!off.seeks_company(&view(0), true, &SEQUENTIAL) && !off.is_found(&view(0), &SEQUENTIAL));
    }

    #[test]
    fn a_queue_looks_for_another_one_if_another_one_is_busy() {
        let looks = |rule: &Merge, others, busy| {
            let view = View { busy: others, ..view(0) };
            rule.seeks_company(&view, busy, &SEQUENTIAL)
        };
        let rule = rule();
        assert!(looks(&rule, 2, true) && looks(&rule, 1, false) && looks(&rule, 2, false));
        assert!(!looks(&rule, 1, true) && !looks(&rule, 0, false));
        let kernel = with(|s| s.as_kernel = true);
        assert!(!looks(&kernel, 1, false) && !looks(&kernel, 1, true) && looks(&kernel, 2, false));
    }

    #[test]
    fn close_is_8192_sectors_away_in_either_direction() {
        let close = |a, b| Merge::is_close(Sector(a), Sector(b));
        assert!(close(10_000, 18_192) && close(18_192, 10_000));
        assert!(!close(10_000, 18_193) && !close(18_193, 10_000));
    }

    #[test]
    fn the_closest_queue_is_that_ahead_or_else_that_behind() {
        let (a, b) = (QueueId::from_index(2), QueueId::from_index(3));
        let closest = |behind: Option<u64>, ahead: Option<u64>| {
            Merge::closest(Sector(50_000), behind.map(|at| (at, a)), ahead.map(|at| (at, b)))
        };
        assert_eq!(closest(Some(49_999), Some(58_192)), Some(b), "ahead, though it is farther");
        assert_eq!(closest(Some(41_808), Some(58_193)), Some(a));
        assert_eq!(closest(Some(41_807), Some(58_193)), None);
        assert_eq!((closest(Some(50_000), None), closest(None, Some(50_000))), (Some(a), Some(b)));
        assert_eq!(closest(None, None), None);
    }

    #[test]
    fn a_gap_has_the_sectors_that_are_close_to_neither_neighbour() {
        let q = QueueId::from_index(2);
        let (behind, ahead) = (Some((50_000, q)), Some((90_000, q)));
        assert_eq!(Merge::gap(behind, ahead), 58_193..81_808);
        assert_eq!((Merge::gap(None, ahead), Merge::gap(behind, None)), (0..81_808, 58_193..u64::MAX));
        for position in [58_192, 58_193, 81_807, 81_808] {
            let close = Merge::closest(Sector(position), behind, ahead).is_some();
            assert_eq!(close, !Merge::gap(behind, ahead).contains(&position), "{position}");
        }
        assert!(Merge::gap(Some((50_000, q)), Some((50_100, q))).is_empty());
    }

    fn newborn(ms: u64) -> Newborn {
        Newborn { created: at(ms), prio: IoPrio::default(), actuator: 0 }
    }

    #[test]
    //= docs/reference/bfq.md#46-stable-merge type=test
    fn queues_created_within_180_ms_are_merged_for_good() {
        let created = |rule: &Merge, ms, last: Newborn| rule.created(&newborn(ms), Some(&last));
        let (disk, flash) = (rule(), with(|s| s.sorts = true));
        let last = newborn(1000);
        assert_eq!((created(&disk, 1180, last), created(&flash, 1180, last)), (Created::Later, Created::Now));
        for rule in [disk, flash] {
            assert_eq!(created(&rule, 1181, last), Created::Alone, "too late, but it is remembered");
            assert_eq!(created(&rule, 1600, last), Created::Alone);
            assert_eq!(created(&rule, 1601, last), Created::Last);
            for unlike in
                [Newborn { prio: IoPrio::new(Class::BestEffort, 3), ..last }, Newborn { actuator: 1, ..last }]
            {
                assert_eq!(created(&rule, 1001, unlike), Created::Last, "{unlike:?}");
            }
            assert_eq!(rule.created(&newborn(5), None), Created::Last, "it is the first");
        }
        assert_eq!(created(&with(|s| s.for_good = false), 1001, last), Created::Alone);
    }

    #[test]
    fn a_queue_is_watched_for_600_ms_after_its_creation_and_after_a_split() {
        let queue = Watched { sync: true, new: false, created: at(100), split: None };
        let known = |ms, queue| Merge::is_known(&view(ms), &queue);
        assert!(known(701, queue) && !known(700, queue));
        let split = Watched { split: Some(at(200)), ..queue };
        assert!(known(801, split) && !known(800, split));
        assert!(!known(801, Watched { sync: false, ..queue }) && !known(801, Watched { new: true, ..queue }));
    }

    #[test]
    fn a_sequential_queue_stays_alone_and_is_left_alone() {
        let joins = |rule: &Merge, now, ever, for_target| rule.joins(Pays { now, ever, for_target });
        let rule = rule();
        assert!(joins(&rule, false, false, false) && joins(&rule, true, false, false));
        assert!(!joins(&rule, false, true, false) && !joins(&rule, false, false, true));
        let kernel = with(|s| (s.as_kernel, s.spares_streams) = (true, false));
        assert!(joins(&kernel, false, true, false) && !joins(&kernel, true, false, false));
        assert!(joins(&kernel, false, false, true));
    }
}
