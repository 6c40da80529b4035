//! One test for each rule of the table, and what preemption does.

use super::super::rules::preempt::Ground;
use super::super::service_tree::Place;
use super::*;

const FAR: u64 = 1 << 30;

/// Queue `a` of task 1 is active, its slice has begun, it has one request; queue `n` of task 2 has one far
/// away.
struct Arena {
    rig: Bare,
    a: QueueId,
    n: QueueId,
}

impl Arena {
    fn new(config: Config) -> Self {
        let mut rig = Bare::new(config);
        rig.insert(read(1, 8));
        rig.serve(read(1, 0));
        rig.insert(read(2, FAR));
        let (a, n) = (rig.sync_queue_of(1).unwrap(), rig.sync_queue_of(2).unwrap());
        assert_eq!(rig.cfq.turn.active, Some(a));
        Self { rig, a, n }
    }

    /// The active queue has nothing left and idles.
    fn idling(config: Config) -> Self {
        let mut arena = Self::new(config);
        let (tag, task) = arena.rig.issue();
        assert_eq!(task, 1);
        arena.rig.complete(tag);
        assert!(arena.rig.queue(arena.a).wait_request);
        arena
    }

    /// Which rule says whether `rq` of queue `n` preempts.
    fn rule_for(&mut self, rq: Request) -> Ground {
        let (n, a) = (self.n, self.a);
        self.rig.cfq.ground(self.rig.now, n, a, &rq)
    }

    fn rule(&mut self) -> Ground {
        self.rule_for(read(2, FAR))
    }
}

fn arena() -> Arena {
    Arena::new(Config::default())
}

#[test]
fn rule_1_without_an_active_queue_there_is_nothing_to_preempt() {
    let mut rig = Bare::new(Config::default());
    rig.insert(read(1, 0));
    rig.insert(with_prio(read(2, FAR), Class::RealTime, 0));
    assert_eq!((rig.cfq.turn.active, rig.notes().len()), (None, 0));
}

#[test]
fn rule_2_the_idle_class_never_preempts() {
    let mut a = arena();
    let n = a.n;
    a.rig.queue(n).set_prio(IoPrio::new(Class::Idle, 0));
    let active = a.a;
    a.rig.queue(active).set_prio(IoPrio::new(Class::Idle, 0));
    assert_eq!(a.rule(), Ground::IdleClass);
    assert!(!Ground::IdleClass.preempts());
}

#[test]
fn rule_3_the_idle_class_is_always_preempted() {
    let mut a = arena();
    let active = a.a;
    a.rig.queue(active).set_prio(IoPrio::new(Class::Idle, 0));
    assert_eq!(a.rule(), Ground::OverIdleClass);
    assert!(Ground::OverIdleClass.preempts());
}

#[test]
fn rule_4_real_time_is_not_preempted_by_others() {
    let mut a = arena();
    let active = a.a;
    a.rig.queue(active).set_prio(IoPrio::new(Class::RealTime, 7));
    a.rig.queue(active).slice.end = a.rig.now;
    assert_eq!(a.rule(), Ground::UnderRealTime);
    assert!(!Ground::UnderRealTime.preempts());
}

#[test]
fn rule_5_sync_preempts_async() {
    let mut a = arena();
    let active = a.a;
    a.rig.queue(active).sync = false;
    assert_eq!(a.rule(), Ground::SyncOverAsync);
    assert_ne!(a.rule_for(write(2, FAR)), Ground::SyncOverAsync);
    assert!(Ground::SyncOverAsync.preempts());
}

#[test]
fn rule_7_a_slice_that_is_over_is_over() {
    let mut a = arena();
    let (active, now) = (a.a, a.rig.now);
    a.rig.queue(active).slice.end = now;
    assert_eq!(a.rule(), Ground::SliceUsed);
    assert!(Ground::SliceUsed.preempts());
    a.rig.queue(active).slice.is_new = true;
    assert_eq!(a.rule(), Ground::NotWaiting, "a slice that has not begun is not over");
}

#[test]
fn rule_8_what_the_last_seeky_queue_waits_for() {
    let mut a = Arena::idling(Config::linux_2_6_34());
    for id in [a.a, a.n] {
        a.rig.queue(id).window.close();
        a.rig.cx(|cfq, cx| cfq.file(cx, id, Place::Turn));
    }
    assert_eq!(a.rule(), Ground::Far, "streams are being served");
    a.rig.cfq.trees.serving.kind = Kind::SyncNoIdle;
    assert_eq!(a.rule(), Ground::AwaitedWorkload);
    assert!(Ground::AwaitedWorkload.preempts());
    a.rig.cfq.turn.timer = None;
    let mut busy = Arena::new(Config::linux_2_6_34());
    for id in [busy.a, busy.n] {
        busy.rig.queue(id).window.close();
        busy.rig.cx(|cfq, cx| cfq.file(cx, id, Place::Turn));
    }
    busy.rig.cfq.trees.serving.kind = Kind::SyncNoIdle;
    assert_eq!(busy.rule(), Ground::NotWaiting, "the active queue has a request");
}

#[test]
fn rule_9_metadata_preempts_what_is_not() {
    let mut a = arena();
    let meta = Request { meta: true, ..read(2, FAR) };
    assert_eq!(a.rule_for(meta), Ground::Metadata);
    assert!(Ground::Metadata.preempts());
    a.rig.insert(Request { meta: true, ..read(1, 16) });
    assert_eq!(a.rule_for(meta), Ground::NotWaiting, "so has the active queue");
}

#[test]
fn rule_10_real_time_preempts_others() {
    let mut a = arena();
    let n = a.n;
    a.rig.queue(n).set_prio(IoPrio::new(Class::RealTime, 7));
    assert_eq!(a.rule(), Ground::RealTime);
    assert!(Ground::RealTime.preempts());
}

#[test]
fn rule_10a_who_is_not_waited_for_is_preempted_from_3_x_on() {
    let polite = Config { quirk_preempt_empty: false, ..Config::default() };
    for (config, not_waited_for, waited_for_in_vain) in [
        (Config::default(), Ground::NotWorthWaiting, Ground::NotWorthWaiting),
        (polite, Ground::NotWaiting, Ground::NotWorthWaiting),
        (Config::linux_2_6_34(), Ground::NotWaiting, Ground::Far),
    ] {
        let mut a = Arena::new(config);
        let (tag, _) = a.rig.issue();
        let active = a.a;
        a.rig.queue(active).window.close();
        assert_eq!(a.rule(), not_waited_for, "its request is at the device");
        a.rig.complete(tag);
        assert_eq!(a.rule(), not_waited_for);
        let mut a = Arena::idling(config);
        let active = a.a;
        a.rig.queue(active).window.close();
        assert_eq!(a.rule(), waited_for_in_vain);
    }
    assert!(Ground::NotWorthWaiting.preempts());
}

#[test]
fn rule_11_a_queue_that_works_is_left_alone() {
    let mut a = arena();
    assert_eq!(a.rule(), Ground::NotWaiting);
    assert_eq!(a.rule_for(read(2, 8)), Ground::NotWaiting, "however close the request is");
    assert!(!Ground::NotWaiting.preempts());
}

#[test]
fn rules_12_and_13_while_the_disk_idles_what_is_close_goes() {
    let mut a = Arena::idling(Config::default());
    assert_eq!(a.rig.cfq.device.head, Sector(16));
    assert_eq!(a.rule_for(read(2, 16 + 8192)), Ground::Close);
    assert_eq!(a.rule_for(read(2, 16 + 8193)), Ground::Far);
    assert!(Ground::Close.preempts() && !Ground::Far.preempts());
}

#[test]
fn the_preempted_queue_keeps_the_rest_of_its_slice() {
    let mut a = arena();
    let (active, n) = (a.a, a.n);
    // 100 ms less the 40 that pass; the newcomer is of another kind, so the kind may change at once.
    a.rig.pass(ms(40));
    a.rig.cfq.trees.groups[GroupId::ROOT].saved = None;
    let before = a.rig.now;
    let rt = a.rig.insert(with_prio(read(3, FAR), Class::RealTime, 0));
    let notes = a.rig.notes();
    assert_eq!((a.rig.cfq.turn.active, notes.last()), (None, Some(&Reason::Preempted)));
    // Two queues were busy beside it; it is of level 4.
    let turn = before + ms(2 * 80) - ms(60);
    assert_eq!(a.rig.cfq.trees.filed.key(active), turn.as_ns());
    assert_eq!(a.rig.dispatch(), Dispatch::Issue(rt));
    assert!(a.rig.queue(n).slice_resid == 0);
}

#[test]
fn the_newcomer_is_next_in_its_tree() {
    let mut a = Arena::idling(Config::default());
    a.rig.insert(read(3, FAR + 8));
    let close = a.rig.insert(read(4, 24));
    assert_eq!(a.rig.dispatch(), Dispatch::Issue(close));
}

#[test]
fn a_newcomer_of_another_kind_need_not_wait_for_its_kinds_turn_from_3_x_on() {
    for (era, saved) in [(Era::Linux2_6_34, true), (Era::Linux3_10, false)] {
        let mut rig = Bare::new(old(era));
        let w = rig.insert(write(1, 0));
        rig.insert(write(1, 8));
        assert_eq!(rig.dispatch(), Dispatch::Issue(w));
        rig.insert(read(2, FAR));
        assert_eq!((era, rig.cfq.trees.groups[GroupId::ROOT].saved.is_some()), (era, saved));
        rig.complete(w);
        assert_eq!((era, rig.issue().1), (era, if saved { 1 } else { 2 }));
    }
}
