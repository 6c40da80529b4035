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
use super::step::{Kind, Step};
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

#[cfg(test)]
mod tests {
    use super::super::log::Log;
    use super::super::steps::Steps;
    use super::*;

    fn steps(messages: &[&str]) -> Vec<Step> {
        let line = |m: &&str| format!("  a-5 [0] d..1. 5.000001: 7,0 1,0 m N {m}\n");
        let text: String = messages.iter().map(line).collect();
        let mut steps = Steps::new(Log::open(text.as_bytes(), "x").unwrap(), true);
        std::iter::from_fn(|| steps.next_step().unwrap()).collect()
    }

    #[test]
    fn an_attempt_sends_the_request_that_was_its_queues_next() {
        let steps = steps(&[
            "bfq dispatch requests: 2 busy queues",
            "bfq1S select_queue: returned this queue",
            "bfq1S bfqq_served 8 secs",
            "bfq rq_pos_tree_lookup 96: returning 0",
            "bfq dispatch requests: 2 busy queues",
            "bfq2S select_queue: returned this queue",
            "bfq2S bfqq_served 8 secs",
            "bfq dispatch requests: 1 busy queues",
            "bfq1S expire (2, slow 0, num_disp 1, short_ttime 1)",
            "bfq rq_pos_tree_lookup 104: returning 0",
            "bfq1S select_queue: returned this queue",
            "bfq1S bfqq_served 8 secs",
            "bfq dispatch requests: 1 busy queues",
            "bfq1S select_queue: returned this queue",
            "bfq1S bfqq_served 8 secs",
        ]);
        let mut positions = Positions::default();
        let sent: Vec<_> = steps.iter().map(|step| positions.learn(step)).collect();
        assert_eq!(sent, [None, None, Some(Sector(104)), None], "unknown, another queue's, told, used up");
    }
}
