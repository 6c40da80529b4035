//! The processes that wait for a processor: the one that has had the least CPU time runs first, and the one
//! that came first is stolen first.
//!
//! ```text
//!   by time      (2 ms, 7: D)  (3 ms, 5: B)  (9 ms, 4: A)          a heap of what each has had, its ticket and who it is
//!   by arrival   4: A   5: B   ·6·   7: D                           tickets in order; 6 was called meanwhile, and is passed over
//! ```
//!
//! To be called and to be taken away cost no more than the depth of the heap, however many wait. What has
//! left one way stays in the other list until it comes to its front, or there is more of that than of those
//! that wait.

use fairhead_core::Duration;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The ticket of a process that does not wait.
const NONE: u64 = 0;
/// How many more entries than processes a list may have, beside as many again.
const SLACK: usize = 16;

/// The tickets of all processes, of which each waits in one line at most.
#[derive(Debug)]
pub(super) struct Tickets {
    of: Vec<u64>,
    last: u64,
}

impl Tickets {
    pub(super) fn new(processes: usize) -> Self {
        Self { of: vec![NONE; processes], last: NONE }
    }

    fn draw(&mut self, process: u32) -> u64 {
        self.last += 1;
        self.of[process as usize] = self.last;
        self.last
    }

    fn is_valid(&self, process: u32, ticket: u64) -> bool {
        self.of[process as usize] == ticket
    }
}

/// Those who wait for one processor.
#[derive(Debug, Default)]
pub(super) struct Line {
    by_time: BinaryHeap<Reverse<(Duration, u64, u32)>>,
    by_arrival: VecDeque<(u64, u32)>,
    len: usize,
}

impl Line {
    /// How many wait.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// A process, which has had that much CPU time, comes.
    pub(super) fn push(&mut self, tickets: &mut Tickets, process: u32, had: Duration) {
        let ticket = tickets.draw(process);
        self.by_time.push(Reverse((had, ticket, process)));
        self.by_arrival.push_back((ticket, process));
        self.len += 1;
        let most = 2 * self.len + SLACK;
        if self.by_time.len() > most {
            self.by_time.retain(|Reverse((_, ticket, process))| tickets.is_valid(*process, *ticket));
        }
        if self.by_arrival.len() > most {
            self.by_arrival.retain(|(ticket, process)| tickets.is_valid(*process, *ticket));
        }
    }

    /// The least CPU time that any of them has had.
    pub(super) fn least(&mut self, tickets: &Tickets) -> Option<Duration> {
        while let Some(&Reverse((had, ticket, process))) = self.by_time.peek() {
            if tickets.is_valid(process, ticket) {
                return Some(had);
            }
            self.by_time.pop();
        }
        None
    }

    /// Takes out the process that has had the least; of equal ones the one that came first.
    pub(super) fn call(&mut self, tickets: &mut Tickets) -> Option<u32> {
        self.least(tickets)?;
        let Reverse((_, _, process)) = self.by_time.pop()?;
        self.leave(tickets, process);
        Some(process)
    }

    /// Returns the process that came first, of those that `may_have` allows.
    pub(super) fn oldest(&mut self, tickets: &Tickets, may_have: impl Fn(u32) -> bool) -> Option<u32> {
        while self.by_arrival.front().is_some_and(|(ticket, process)| !tickets.is_valid(*process, *ticket)) {
            self.by_arrival.pop_front();
        }
        let waits =
            |&&(ticket, process): &&(u64, u32)| tickets.is_valid(process, ticket) && may_have(process);
        self.by_arrival.iter().find(waits).map(|w| w.1)
    }

    /// A process that waits here leaves.
    pub(super) fn leave(&mut self, tickets: &mut Tickets, process: u32) {
        tickets.of[process as usize] = NONE;
        self.len -= 1;
    }

    /// The processes that wait, in order of arrival.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn iter(&self, tickets: &Tickets) -> impl Iterator<Item = u32> {
        let valid = self.by_arrival.iter().filter(|(ticket, process)| tickets.is_valid(*process, *ticket));
        valid.map(|w| w.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Beside a list that is searched: 40 processes, of which those with odd numbers may be taken away.
    #[test]
    fn a_line_is_a_list() {
        let (mut rng, mut line, mut tickets) = (Rng::new(1, "test"), Line::default(), Tickets::new(40));
        let mut list: Vec<(u32, Duration)> = Vec::new();
        for i in 0..20_000 {
            match rng.below(if i / 1000 % 2 == 0 { 3 } else { 4 }) {
                0 => {
                    let process = u32::try_from(rng.below(40)).unwrap();
                    if list.iter().all(|l| l.0 != process) {
                        let had = Duration::from_ns(rng.below(20));
                        line.push(&mut tickets, process, had);
                        list.push((process, had));
                    }
                }
                1 if rng.below(8) == 0 => {
                    let at = list.iter().position(|l| l.0 % 2 == 1);
                    let oldest = line.oldest(&tickets, |p| p % 2 == 1);
                    assert_eq!(oldest, at.map(|at| list.remove(at).0));
                    oldest.iter().for_each(|&p| line.leave(&mut tickets, p));
                }
                1 => assert_eq!(line.least(&tickets), list.iter().map(|l| l.1).min()),
                _ => {
                    let first = list.iter().enumerate().min_by_key(|(_, l)| l.1).map(|(at, _)| at);
                    assert_eq!(line.call(&mut tickets), first.map(|at| list.remove(at).0));
                }
            }
            assert_eq!(line.len(), list.len());
            assert!(line.iter(&tickets).eq(list.iter().map(|l| l.0)));
            let most = 2 * 40 + SLACK + 1;
            assert!(line.by_time.len() <= most && line.by_arrival.len() <= most, "what has left is dropped");
        }
    }
}
