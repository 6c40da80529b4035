//! Which of our queues is which of the kernel's.
//!
//! The kernel names queues by their task, and those of several tasks all alike; addresses, told when a request gets its
//! queue, tell them apart. A queue of ours is paired with the address that the first request in it went to.

use super::super::message::{Name, Say};
use super::super::steps::Step;
use fairhead_core::sched::bfq::conform::QueueRef;
use std::collections::BTreeMap;

/// The pairs so far.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    /// What each address was called last.
    called: BTreeMap<u64, Name>,
    pairs: BTreeMap<u64, QueueRef>,
}

impl Names {
    /// Learns the addresses that a step tells.
    pub(super) fn learn(&mut self, step: &Step) {
        for said in &step.says {
            let Some(name) = said.queue else { continue };
            match said.say {
                Say::Request { queue } | Say::Exit { queue } | Say::Address { queue, last: false } => {
                    self.called.insert(queue, name);
                }
                Say::Allocated => {
                    // Whoever had that name before is not meant any more.
                    self.called.retain(|_, n| *n != name);
                }
                _ => {}
            }
        }
    }

    /// Forgets what the step says goodbye to.
    pub(super) fn forget(&mut self, step: &Step) {
        for said in &step.says {
            if let Say::Address { queue, last: true } = said.say {
                self.called.remove(&queue);
                self.pairs.remove(&queue);
            }
        }
    }

    /// The only address of that name; `None` if there are several, or none.
    pub(super) fn address(&self, name: Name) -> Option<u64> {
        let mut found = self.called.iter().filter(|(_, n)| **n == name).map(|(address, _)| *address);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Ours, of that name; with several of that name, the one at `hint`.
    pub(super) fn ours(&self, name: Name, hint: Option<u64>) -> Option<QueueRef> {
        let hinted = hint.filter(|a| self.called.get(a) == Some(&name));
        let address = hinted.or_else(|| self.address(name))?;
        self.pairs.get(&address).copied()
    }

    /// Ours at that address.
    pub(super) fn at(&self, address: u64) -> Option<QueueRef> {
        self.pairs.get(&address).copied()
    }

    /// The address of ours.
    pub(super) fn address_of(&self, queue: QueueRef) -> Option<u64> {
        self.pairs.iter().find(|(_, q)| **q == queue).map(|(address, _)| *address)
    }

    /// From now on these are one.
    pub(super) fn pair(&mut self, address: u64, queue: QueueRef) {
        self.pairs.retain(|_, q| *q != queue);
        self.pairs.insert(address, queue);
    }
}
