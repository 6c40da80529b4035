//! What each process got in each turn: latencies and bytes.

use fairhead_trace::ring::BlockEvent;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

use super::requests::{Request, Requests};

/// The most processes that have a row of their own; later ones share one name.
const PROCESSES_MAX: usize = 64;
const OTHERS: &str = "(others)";

/// The direction of requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Reads.
    Read,
    /// Writes and discards.
    Write,
}

/// Requests of one process and direction in one turn.
#[derive(Clone, Debug)]
pub struct Told {
    /// Latencies in nanoseconds, of requests that a program waits for.
    pub latency: Histogram<u64>,
    /// Bytes that were completed.
    pub bytes: u64,
}

impl Default for Told {
    fn default() -> Self {
        // Two digits: within 1 %.
        let latency = Histogram::new(2).expect("two digits are allowed");
        Self { latency, bytes: 0 }
    }
}

impl Told {
    /// The latency in milliseconds below which this part of the requests is; `None` without requests.
    #[must_use]
    pub fn quantile_ms(&self, part: f64) -> Option<f64> {
        (!self.latency.is_empty()).then(|| self.latency.value_at_quantile(part) as f64 / 1e6)
    }

    /// Adds the other's requests.
    pub(super) fn add(&mut self, other: &Self) {
        // Both have two digits and grow.
        let _ = self.latency.add(&other.latency);
        self.bytes += other.bytes;
    }
}

/// The part of a turn that counts, in nanoseconds of the events' clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    from: u64,
    to: u64,
}

/// The figures of all turns.
#[derive(Default, Debug)]
pub struct Figures {
    turns: Vec<Turn>,
    told: BTreeMap<(String, Way), Vec<Told>>,
    requests: Requests,
    /// Requests that came too late for what is known of turns: of the current one.
    waiting: Vec<(Request, u64)>,
}

impl Figures {
    /// Takes the next events. `name` gives the name of a process by the number of a thread and its `comm`.
    pub fn put(&mut self, events: &[BlockEvent], mut name: impl FnMut(u32, &str) -> String) {
        for event in events {
            for mut request in self.requests.put(event) {
                request.comm = name(request.pid, &request.comm);
                self.waiting.push((request, event.at_ns));
            }
        }
    }

    /// A turn is over, of which this part counts. Turns come in order.
    pub fn turn(&mut self, from_ns: u64, to_ns: u64) {
        self.turns.push(Turn { from: from_ns, to: to_ns });
        self.settle();
    }

    /// Counts the requests of turns that are known. Call it once all events are there.
    pub fn settle(&mut self) {
        let known = self.turns.last().map_or(0, |t| t.to);
        for (request, done) in std::mem::take(&mut self.waiting) {
            let made = self.turns.iter().position(|t| (t.from..t.to).contains(&request.at_ns));
            let ended = self.turns.iter().position(|t| (t.from..t.to).contains(&done));
            if request.at_ns >= known && made.is_none() {
                self.waiting.push((request, done));
                continue;
            }
            let way = if request.is_read { Way::Read } else { Way::Write };
            if let Some(turn) = made.filter(|_| request.is_sync) {
                let told = self.told(&request.comm, way, turn);
                // It grows as needed; a longer latency than 2^63 ns is not.
                let _ = told.latency.record(request.latency_ns.max(1));
            }
            if let Some(turn) = ended {
                self.told(&request.comm, way, turn).bytes += request.bytes;
            }
        }
    }

    fn told(&mut self, name: &str, way: Way, turn: usize) -> &mut Told {
        let is_new = !self.told.keys().any(|(n, _)| n == name);
        let name = if is_new && self.names().len() >= PROCESSES_MAX { OTHERS } else { name };
        let turns = self.told.entry((name.to_owned(), way)).or_default();
        if turns.len() <= turn {
            turns.resize_with(turn + 1, Told::default);
        }
        &mut turns[turn]
    }

    /// The number of turns.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// How long the part of the turn that counts is, in seconds.
    #[must_use]
    pub fn seconds(&self, turn: usize) -> f64 {
        self.turns.get(turn).map_or(0.0, |t| t.to.saturating_sub(t.from) as f64 / 1e9)
    }

    /// The names of the processes, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.told.keys().map(|(n, _)| n.as_str()).collect();
        names.dedup();
        names
    }

    /// What a process got in a turn; nothing is known if it made no requests. `None` as name: all processes.
    #[must_use]
    pub fn of(&self, name: Option<&str>, way: Way, turn: usize) -> Told {
        let mut sum = Told::default();
        for ((process, w), turns) in &self.told {
            if *w == way
                && name.is_none_or(|n| n == process)
                && let Some(told) = turns.get(turn)
            {
                sum.add(told);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::event;
    use super::*;
    use fairhead_trace::{Action, Op};

    #[test]
    fn a_request_counts_in_the_turn_in_which_it_was_made() {
        let mut figures = Figures::default();
        let name = |pid: u32, _: &str| format!("p{pid}");
        figures.put(&[event(100, Action::Queue, Op::Read, 0, 8, 1)], name);
        figures.turn(0, 200_000);
        // It completes in the next turn, before that is known.
        figures.put(&[event(5100, Action::Complete, Op::Read, 0, 8, 0)], name);
        figures.turn(1_000_000, 10_000_000);
        figures.settle();
        let (first, second) = (figures.of(None, Way::Read, 0), figures.of(Some("p1"), Way::Read, 1));
        assert_eq!((first.latency.len(), first.bytes), (1, 0));
        assert!((4_950_000..5_050_000).contains(&first.latency.max()));
        assert_eq!((second.latency.len(), second.bytes), (0, 4096));
        assert_eq!(figures.names(), ["p1"]);
    }

    #[test]
    fn processes_are_bounded() {
        let mut figures = Figures::default();
        for pid in 0..200 {
            let at = u64::from(pid);
            let events = [
                event(at, Action::Queue, Op::Write, at * 8, 8, pid),
                event(at, Action::Complete, Op::Write, at * 8, 8, 0),
            ];
            figures.put(&events, |pid, _| format!("p{pid}"));
        }
        figures.turn(0, 1_000_000);
        assert_eq!(figures.names().len(), PROCESSES_MAX + 1);
        let sum = figures.of(None, Way::Write, 0).bytes;
        assert_eq!(sum, 200 * 4096);
    }
}
