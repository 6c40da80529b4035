//! Which of our queues is which of the kernel's.
//!
//! The kernel names queues by their task, and those of several tasks all alike; addresses, told when a
//! request gets its queue, tell them apart. A queue of ours is paired with the address that the first request
//! in it went to.

use super::super::message::{Name, Say};
use super::super::step::{Said, Step};
use fairhead_core::sched::bfq::conform::QueueRef;
use std::collections::BTreeMap;

/// The tasks and queues that the messages of a step name.
#[derive(Clone, Default, Debug)]
pub(super) struct Heard {
    /// The address of the queue that the request went to.
    pub(super) home: Option<u64>,
    /// For each message, as far as the name alone tells.
    pub(super) addresses: Vec<Option<u64>>,
}

/// The pairs so far.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    /// What each address was called last.
    called: BTreeMap<u64, Name>,
    pairs: BTreeMap<u64, QueueRef>,
}

impl Names {
    /// Learns the addresses in a step's messages, and returns the tasks and queues that these are about.
    pub(super) fn hear_all(&mut self, step: &Step) -> Heard {
        let mut heard = Heard::default();
        for said in &step.says {
            let address = said.queue.and_then(|name| self.address(name));
            let home = &mut heard.home;
            match said.say {
                Say::Request { queue } => *home = Some(queue),
                // The request continues from there.
                Say::MergedInto if home.is_some() => {
                    let other = || self.other_address(said.queue?, (*home)?);
                    *home = address.or_else(other);
                }
                _ => {}
            }
            heard.addresses.push(address);
            self.hear(said);
        }
        heard
    }

    /// Learns the addresses in a message.
    fn hear(&mut self, said: &Said) {
        if let Some(name) = said.queue {
            match said.say {
                Say::Request { queue } | Say::Exit { queue } | Say::Address { queue, last: false } => {
                    self.called.insert(queue, name);
                }
                Say::MergedInto => {
                    if let Some(address) = self.address(name) {
                        self.called.insert(address, Name { pid: None, ..name });
                    }
                }
                Say::Allocated => {
                    // The queue that had that name before is not meant any more.
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

    /// Ours at that address.
    pub(super) fn at(&self, address: u64) -> Option<QueueRef> {
        self.pairs.get(&address).copied()
    }

    /// The only address of that name but for one; `None` if there are several, or none.
    fn other_address(&self, name: Name, but: u64) -> Option<u64> {
        let mut found = self.called.iter().filter(|(a, n)| **n == name && **a != but).map(|(a, _)| *a);
        let first = found.next()?;
        found.next().is_none().then_some(first)
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
