//! Where each queue's next request is, as far as the log tells: which request an attempt sent.
//!
//! A queue is filed by the position of its next request whenever that changes:
//!
//! ```text
//! dispatch requests …          an attempt
//! bfq7S bfqq_served 128        it sent the request that was the next one of task 7's
//! rq_pos_tree_lookup 4096      now that is the one at sector 4096
//! ```

use super::message::{Name, Say};
use super::steps::{Kind, Step};
use fairhead_core::Sector;
use std::collections::BTreeMap;

/// Where there are more queues, those that are new are not looked after.
const QUEUES_MAX: usize = 4096;

/// The sector of each queue's next request.
#[derive(Default)]
pub(super) struct Positions(BTreeMap<Name, Sector>);

impl Positions {
    /// Learns from a step. Returns where the request was that it sent.
    pub(super) fn learn(&mut self, step: &Step) -> Option<Sector> {
        let (mut of, mut sent, mut returned) = (None, None, false);
        let home = step.find(|s| match s.say {
            Say::Request { .. } => s.queue,
            _ => None,
        });
        for said in &step.says {
            match (step.kind, said.say) {
                (Kind::Insert(_), Say::Added) => of = home,
                (Kind::Dispatch(_), Say::Expired { .. }) => of = said.queue,
                (Kind::Dispatch(_), Say::Returned) => returned = true,
                (Kind::Dispatch(_), Say::Served { .. }) if returned => {
                    sent = said.queue.and_then(|queue| self.0.remove(&queue));
                    (of, returned) = (said.queue, false);
                }
                (_, Say::Lookup { sector }) => self.note(of, sector),
                _ => {}
            }
        }
        sent
    }

    fn note(&mut self, queue: Option<Name>, sector: u64) {
        if let Some(queue) = queue.filter(|q| self.0.contains_key(q) || self.0.len() < QUEUES_MAX) {
            self.0.insert(queue, Sector(sector));
        }
    }
}
