//! What ours decided in a step, from its trace.

use fairhead_core::sched::bfq::Bfq;
use fairhead_core::sched::bfq::conform::QueueRef;
use fairhead_core::{Action, Detail, Dispatch, Elevator, Reason, Tag, TaskId};

/// A turn that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) task: TaskId,
    pub(super) why: Reason,
    pub(super) service: u32,
    pub(super) slow: bool,
}

/// A queue that got the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    pub(super) task: TaskId,
    pub(super) budget: u32,
    /// If it has it still.
    pub(super) queue: Option<QueueRef>,
}

/// New virtual times of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) task: TaskId,
    pub(super) start: u64,
    pub(super) finish: u64,
    pub(super) weight: u32,
}

/// All that was decided.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) expiries: Vec<Expiry>,
    pub(super) selections: Vec<Selection>,
    /// The latest first.
    pub(super) times: Vec<Times>,
    /// The request that was sent, if the disk was asked for one.
    pub(super) sent: Option<Tag>,
}

impl Outcome {
    /// Empties the trace.
    pub(super) fn of(elevator: &mut Elevator<Bfq>, answer: Option<Dispatch>) -> Self {
        let mut this = Self { expiries: Vec::new(), selections: Vec::new(), times: Vec::new(), sent: None };
        if let Some(Dispatch::Issue(tag)) = answer {
            this.sent = Some(tag);
        }
        for event in elevator.drain_trace().filter(|e| e.action == Action::Note) {
            match (event.reason, event.detail) {
                (Reason::SliceStart, Detail::Budget { budget }) => {
                    this.selections.push(Selection { task: event.task, budget, queue: None });
                }
                (_, Detail::Times { group: None, start, finish, weight }) => {
                    this.times.push(Times { task: event.task, start, finish, weight });
                }
                (why, Detail::Slot { service, slow, .. }) => {
                    this.expiries.push(Expiry { task: event.task, why, service, slow });
                }
                _ => {}
            }
        }
        this.times.reverse();
        if let Some(last) = this.selections.last_mut() {
            last.queue = elevator.scheduler().serving();
        }
        this
    }
}
