//! Whether a request that arrives takes the disk from the active queue.
//!
//! The first [`Ground`] that applies decides. A preempted queue keeps what is left of its slice: it will be
//! filed that much earlier.
//
//= linux-2.6.33 block/cfq-iosched.c cfq_should_preempt, cfq_preempt_queue
//= docs/reference/cfq.md#510-insert-and-preemption

use crate::sched::cfq::view::Kind;
use crate::units::{Class, GroupId};

/// What this rule is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preemption {
    /// Groups are chosen by the controller: no queue takes the disk from one of another group.
    pub(crate) is_confined: bool,
    /// A queue that is not worth waiting for loses the disk when it is empty, and a newcomer of another kind
    /// need not wait for its kind's turn: from 3.x on.
    pub(crate) since_3: bool,
    /// Such a queue loses the disk even while its only request is at the device.
    //= deviates cfq-bound
    pub(crate) preempts_empty: bool,
}

/// What decided, in the order in which it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ground {
    /// No: the newcomer is of the idle class.
    IdleClass,
    /// Yes: the active queue is of the idle class.
    OverIdleClass,
    /// No: the active queue is real-time, the newcomer is not.
    UnderRealTime,
    /// Yes: a program waits for the newcomer, and none for the active queue.
    SyncOverAsync,
    /// No: the active queue is of another group. Under the controller this goes before all others.
    OtherGroup,
    /// Yes: the active queue's time is up anyway.
    SliceUsed,
    /// Yes: the newcomer was what the last of the seeky queues, which has nothing to send, was waiting for.
    AwaitedWorkload,
    /// Yes: the request is for metadata, and the active queue has none such.
    Metadata,
    /// Yes: the newcomer is real-time, the active queue is not.
    RealTime,
    /// Yes: the active queue has nothing to send, and idling for it is not worth it; without
    /// `quirk_preempt_empty` only if the disk waits for it all the same. From 3.x on.
    NotWorthWaiting,
    /// No: the disk is not being kept idle.
    NotWaiting,
    /// Yes: the disk idles, and the request is right where the head is.
    Close,
    /// No: the disk idles, but the request is far away.
    Far,
}

/// A queue that a request comes to, and the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) group: GroupId,
    pub(crate) class: Class,
    pub(crate) kind: Kind,
    /// Whether the request is sync, and for metadata.
    pub(crate) sync: bool,
    pub(crate) meta: bool,
}

/// The active queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) group: GroupId,
    pub(crate) class: Class,
    pub(crate) sync: bool,
    /// The kind of queues that is being served.
    pub(crate) serving: Kind,
    /// None of its requests waits.
    pub(crate) is_empty: bool,
    /// A request for metadata is among those that wait.
    pub(crate) has_meta: bool,
    /// The time of its slice is up.
    pub(crate) slice_used: bool,
    /// The disk waits for its next request.
    pub(crate) is_awaited: bool,
    /// A task has sent a request in this slice, and has not gone.
    pub(crate) has_task: bool,
}

impl Ground {
    /// Whether the newcomer takes the disk.
    #[inline]
    pub(crate) const fn preempts(self) -> bool {
        matches!(
            self,
            Self::OverIdleClass
                | Self::SyncOverAsync
                | Self::SliceUsed
                | Self::AwaitedWorkload
                | Self::Metadata
                | Self::RealTime
                | Self::NotWorthWaiting
                | Self::Close
        )
    }
}

impl Preemption {
    /// What says whether `new` takes the disk from `active`. These answer, if need be: `two_left`, whether
    /// two queues are in the newcomer's tree; `pays`, whether idling for the active queue does; `close`,
    /// whether the request is close to the head.
    #[inline(always)]
    pub(crate) fn ground(
        &self,
        new: &Newcomer,
        active: &Active,
        two_left: impl FnOnce() -> bool,
        pays: impl FnOnce() -> bool,
        close: impl FnOnce() -> bool,
    ) -> Ground {
        let other_group = new.group != active.group;
        // Under the controller the disk belongs to one group at a time, and only the controller takes it
        // away.
        if self.is_confined && other_group {
            Ground::OtherGroup
        } else if new.class == Class::Idle {
            Ground::IdleClass
        } else if active.class == Class::Idle {
            Ground::OverIdleClass
        } else if active.class == Class::RealTime && new.class != Class::RealTime {
            Ground::UnderRealTime
        } else if new.sync && !active.sync {
            // This ground and those of classes cross groups; all after it do not
            // (docs/reference/cfq.md#67-isolation).
            Ground::SyncOverAsync
        } else if other_group {
            Ground::OtherGroup
        } else if active.slice_used {
            Ground::SliceUsed
        } else if active.serving == Kind::SyncNoIdle
            && new.kind == Kind::SyncNoIdle
            && active.is_empty
            // The newcomer and the active one, which stays in the tree until its slice ends.
            && two_left()
        {
            Ground::AwaitedWorkload
        } else if new.meta && !active.has_meta {
            Ground::Metadata
        } else if new.class == Class::RealTime && active.class != Class::RealTime {
            Ground::RealTime
        } else if self.since_3 && active.is_empty && (self.preempts_empty || active.is_awaited) && !pays() {
            Ground::NotWorthWaiting
        } else if !active.has_task || !active.is_awaited {
            Ground::NotWaiting
        } else if close() {
            Ground::Close
        } else {
            Ground::Far
        }
    }

    /// Whether the preempted queue's kind loses the rest of its time. Otherwise a newcomer of another kind,
    /// though first in its tree, would have to wait for its kind's turn.
    pub(crate) fn ends_workload(&self, new: Kind, active: Kind) -> bool {
        self.since_3 && new != active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Preemption = Preemption { is_confined: false, since_3: true, preempts_empty: true };

    /// A sync queue beside which nothing is special.
    const NEW: Newcomer =
        Newcomer { group: GroupId(1), class: Class::BestEffort, kind: Kind::Sync, sync: true, meta: false };

    /// A queue that works.
    const ACTIVE: Active = Active {
        group: GroupId(1),
        class: Class::BestEffort,
        sync: true,
        serving: Kind::Sync,
        is_empty: false,
        has_meta: false,
        slice_used: false,
        is_awaited: false,
        has_task: true,
    };

    /// The disk waits for this one.
    const AWAITED: Active = Active { is_empty: true, is_awaited: true, ..ACTIVE };

    /// Two queues are in the newcomer's tree; idling pays; the request is close.
    #[derive(Clone, Copy)]
    struct Facts(bool, bool, bool);

    const NONE: Facts = Facts(false, true, false);

    fn ground_by(rule: Preemption, new: Newcomer, active: Active, facts: Facts) -> Ground {
        let Facts(two_left, pays, close) = facts;
        rule.ground(&new, &active, || two_left, || pays, || close)
    }

    fn ground(new: Newcomer, active: Active) -> Ground {
        ground_by(RULE, new, active, NONE)
    }

    fn of(class: Class) -> (Newcomer, Active) {
        (Newcomer { class, ..NEW }, Active { class, ..ACTIVE })
    }

    #[test]
    fn the_grounds_that_preempt() {
        use Ground::*;
        let yes = [
            OverIdleClass,
            SyncOverAsync,
            SliceUsed,
            AwaitedWorkload,
            Metadata,
            RealTime,
            NotWorthWaiting,
            Close,
        ];
        let no = [IdleClass, UnderRealTime, OtherGroup, NotWaiting, Far];
        assert!(yes.iter().all(|g| g.preempts()) && !no.iter().any(|g| g.preempts()));
    }

    #[test]
    fn classes_go_before_everything_else() {
        let [(new_rt, rt), (new_be, be), (new_idle, idle)] =
            [Class::RealTime, Class::BestEffort, Class::Idle].map(of);
        let over = |active| Active { slice_used: true, ..active };
        for (new, active, want) in [
            (new_idle, over(idle), Ground::IdleClass),
            (new_idle, over(be), Ground::IdleClass),
            (new_be, over(idle), Ground::OverIdleClass),
            (new_rt, over(idle), Ground::OverIdleClass),
            (new_be, over(rt), Ground::UnderRealTime),
            (new_rt, over(rt), Ground::SliceUsed),
            (new_rt, rt, Ground::NotWaiting),
            (new_rt, be, Ground::RealTime),
            (new_be, be, Ground::NotWaiting),
        ] {
            assert_eq!(ground(new, active), want, "{:?} over {:?}", new.class, active.class);
        }
    }

    #[test]
    fn sync_requests_preempt_async_queues_of_any_group() {
        for group in [1, 2] {
            let active = Active { sync: false, group: GroupId(group), ..ACTIVE };
            assert_eq!(ground(NEW, active), Ground::SyncOverAsync);
            let asynchronous = Newcomer { sync: false, kind: Kind::Async, ..NEW };
            assert_ne!(ground(asynchronous, active), Ground::SyncOverAsync);
            let rt = Active { class: Class::RealTime, ..active };
            assert_eq!(ground(NEW, rt), Ground::UnderRealTime, "classes first");
        }
    }

    #[test]
    fn nothing_after_sync_over_async_crosses_groups_and_under_the_controller_nothing_does() {
        let elsewhere = Active { group: GroupId(2), slice_used: true, ..ACTIVE };
        assert_eq!(ground(NEW, elsewhere), Ground::OtherGroup);
        let (_, idle) = of(Class::Idle);
        let idle = Active { group: GroupId(2), ..idle };
        assert_eq!(ground(NEW, idle), Ground::OverIdleClass);
        let confined = Preemption { is_confined: true, ..RULE };
        assert_eq!(ground_by(confined, NEW, idle, NONE), Ground::OtherGroup);
        let used = Active { slice_used: true, ..ACTIVE };
        assert_eq!(ground_by(confined, NEW, used, NONE), Ground::SliceUsed, "of the same group");
    }

    #[test]
    fn the_last_seeky_queue_waits_for_any_other() {
        let new = Newcomer { kind: Kind::SyncNoIdle, ..NEW };
        let last = Active { serving: Kind::SyncNoIdle, ..AWAITED };
        let two = Facts(true, true, false);
        assert_eq!(ground_by(RULE, new, last, two), Ground::AwaitedWorkload);
        for (new, active, facts) in [
            (NEW, last, two),
            (new, Active { serving: Kind::Sync, ..last }, two),
            (new, Active { is_empty: false, ..last }, two),
            (new, last, NONE),
        ] {
            assert_eq!(ground_by(RULE, new, active, facts), Ground::Far);
        }
    }

    #[test]
    fn metadata_preempts_a_queue_that_has_none() {
        let meta = Newcomer { meta: true, ..NEW };
        assert_eq!(ground(meta, ACTIVE), Ground::Metadata);
        assert_eq!(ground(meta, Active { has_meta: true, ..ACTIVE }), Ground::NotWaiting);
    }

    #[test]
    fn a_queue_that_is_not_worth_waiting_for_is_preempted_when_empty_from_3_x_on() {
        let at_device = Active { is_empty: true, ..ACTIVE };
        let in_vain = Facts(false, false, false);
        let polite = Preemption { preempts_empty: false, ..RULE };
        let early = Preemption { since_3: false, ..RULE };
        for (rule, active, facts, want) in [
            (RULE, at_device, in_vain, Ground::NotWorthWaiting),
            (RULE, AWAITED, in_vain, Ground::NotWorthWaiting),
            (RULE, AWAITED, NONE, Ground::Far),
            (RULE, at_device, NONE, Ground::NotWaiting),
            (RULE, Active { is_awaited: true, ..ACTIVE }, in_vain, Ground::Far),
            (polite, at_device, in_vain, Ground::NotWaiting),
            (polite, AWAITED, in_vain, Ground::NotWorthWaiting),
            (early, at_device, in_vain, Ground::NotWaiting),
            (early, AWAITED, in_vain, Ground::Far),
        ] {
            assert_eq!(ground_by(rule, NEW, active, facts), want, "{rule:?} {active:?}");
        }
    }

    #[test]
    fn while_the_disk_idles_what_is_close_goes() {
        let close = Facts(false, true, true);
        assert_eq!(ground_by(RULE, NEW, AWAITED, close), Ground::Close);
        assert_eq!(ground_by(RULE, NEW, AWAITED, NONE), Ground::Far);
        assert_eq!(ground_by(RULE, NEW, ACTIVE, close), Ground::NotWaiting, "however close");
        let gone = Active { has_task: false, ..AWAITED };
        assert_eq!(ground_by(RULE, NEW, gone, close), Ground::NotWaiting);
    }

    #[test]
    fn a_newcomer_of_another_kind_need_not_wait_for_its_kinds_turn_from_3_x_on() {
        let early = Preemption { since_3: false, ..RULE };
        for (rule, new, active, ends) in [
            (RULE, Kind::Sync, Kind::Async, true),
            (RULE, Kind::Sync, Kind::Sync, false),
            (early, Kind::Sync, Kind::Async, false),
        ] {
            assert_eq!(rule.ends_workload(new, active), ends);
        }
    }
}
