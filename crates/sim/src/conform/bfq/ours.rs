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

/// All that was decided.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) expiries: Vec<Expiry>,
    pub(super) selections: Vec<Selection>,
    /// The request that was sent, if the disk was asked for one.
    pub(super) sent: Option<Tag>,
}

impl Outcome {
    /// Empties the trace.
    pub(super) fn of(elevator: &mut Elevator<Bfq>, answer: Option<Dispatch>) -> Self {
        let mut this = Self { expiries: Vec::new(), selections: Vec::new(), sent: None };
        if let Some(Dispatch::Issue(tag)) = answer {
            this.sent = Some(tag);
        }
        for event in elevator.drain_trace().filter(|e| e.action == Action::Note) {
            match (event.reason, event.detail) {
                (Reason::SliceStart, Detail::Budget { budget }) => {
                    this.selections.push(Selection { task: event.task, budget, queue: None });
                }
                (why, Detail::Slot { service, slow, .. }) => {
                    this.expiries.push(Expiry { task: event.task, why, service, slow });
                }
                _ => {}
            }
        }
        if let Some(last) = this.selections.last_mut() {
            last.queue = elevator.scheduler().serving();
        }
        this
    }
}
