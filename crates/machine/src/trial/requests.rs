//! Requests of programs, from events of the block layer: from the moment when a bio is queued to its
//! completion. This is what the program waits for, whatever the scheduler does between the two.
//!
//! A completion covers one bio, several that were merged, or a part of one that was split. So it takes its
//! sectors off all bios of its operation that it overlaps; a bio is complete when none of its sectors are
//! left.
//!
//! Flushes have no sectors and are left out. Of bios that never complete, the oldest are forgotten when there
//! are too many.

use fairhead_trace::ring::BlockEvent;
use fairhead_trace::{Action, Flags, Op};
use std::collections::BTreeMap;

/// The most bios on their way.
const PENDING_MAX: usize = 1 << 16;

/// A request that is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) at_ns: u64,
    pub(super) latency_ns: u64,
    pub(super) bytes: u64,
    pub(super) is_read: bool,
    /// Whether a program waits for it: a read that is not read-ahead, or a synchronous write.
    pub(super) is_sync: bool,
    pub(super) pid: u32,
    pub(super) comm: String,
}

#[derive(Debug)]
struct Pending {
    event: BlockEvent,
    left: u32,
}

/// The bios on their way.
#[derive(Default, Debug)]
pub struct Requests {
    /// By operation, first sector and number: two bios may have the same sectors.
    open: BTreeMap<(Op, u64, u64), Pending>,
    /// The longest bio so far, in sectors: how far back one that overlaps may begin.
    longest: u64,
    count: u64,
}

impl Requests {
    /// Takes an event; returns the requests that it completes.
    pub(super) fn put(&mut self, event: &BlockEvent) -> Vec<Request> {
        match event.action {
            Action::Queue if event.sectors > 0 => {
                self.queue(event);
                Vec::new()
            }
            Action::Complete => self.complete(event),
            _ => Vec::new(),
        }
    }

    fn queue(&mut self, event: &BlockEvent) {
        if self.open.len() == PENDING_MAX {
            // The one that waits longest.
            let oldest = self.open.iter().min_by_key(|(_, p)| p.event.at_ns).map(|(k, _)| *k);
            oldest.and_then(|key| self.open.remove(&key));
        }
        self.count += 1;
        self.longest = self.longest.max(u64::from(event.sectors));
        let pending = Pending { event: *event, left: event.sectors };
        self.open.insert((event.op, event.sector, self.count), pending);
    }

    fn complete(&mut self, done: &BlockEvent) -> Vec<Request> {
        let end = done.sector + u64::from(done.sectors);
        let first = done.sector.saturating_sub(self.longest);
        let range = (done.op, first, 0)..(done.op, end, 0);
        let mut complete = Vec::new();
        for (key, pending) in self.open.range_mut(range) {
            let bio_end = key.1 + u64::from(pending.event.sectors);
            let overlap = bio_end.min(end).saturating_sub(key.1.max(done.sector));
            pending.left = pending.left.saturating_sub(u32::try_from(overlap).unwrap_or(u32::MAX));
            if overlap > 0 && pending.left == 0 {
                complete.push(*key);
            }
        }
        complete.iter().filter_map(|key| self.open.remove(key)).map(|p| request(&p.event, done)).collect()
    }
}

fn request(queued: &BlockEvent, done: &BlockEvent) -> Request {
    let is_read = queued.op == Op::Read;
    let is_ahead = queued.flags.has(Flags::AHEAD);
    Request {
        at_ns: queued.at_ns,
        latency_ns: done.at_ns.saturating_sub(queued.at_ns),
        bytes: u64::from(queued.sectors) * 512,
        is_read,
        is_sync: if is_read { !is_ahead } else { queued.flags.has(Flags::SYNC) },
        pid: queued.pid,
        comm: queued.comm.text(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use fairhead_trace::ring::Comm;

    /// An event at this microsecond.
    pub(in super::super) fn event(
        at_us: u64,
        action: Action,
        op: Op,
        sector: u64,
        sectors: u32,
        pid: u32,
    ) -> BlockEvent {
        BlockEvent {
            at_ns: at_us * 1000,
            action,
            device: (7, 0),
            op,
            flags: Flags::NONE,
            sector,
            sectors,
            pid,
            comm: Comm::default(),
            prio: None,
            error: 0,
        }
    }

    fn run(events: &[(u64, Action, u64, u32)]) -> Vec<(u64, u64, u64)> {
        let mut requests = Requests::default();
        let mut done = Vec::new();
        for &(at, action, sector, sectors) in events {
            done.extend(requests.put(&event(at, action, Op::Read, sector, sectors, 1)));
        }
        done.iter().map(|r| (r.at_ns / 1000, r.latency_ns / 1000, r.bytes)).collect()
    }

    use Action::{Complete as C, Queue as Q};

    #[test]
    fn merged_bios_complete_together() {
        let done = run(&[(0, Q, 100, 8), (1, Q, 108, 8), (2, Q, 500, 8), (10, C, 100, 16), (20, C, 500, 8)]);
        assert_eq!(done, [(0, 10, 4096), (1, 9, 4096), (2, 18, 4096)]);
    }

    #[test]
    fn a_split_bio_completes_with_its_last_piece() {
        assert_eq!(run(&[(0, Q, 0, 16), (5, C, 8, 8), (9, C, 0, 8)]), [(0, 9, 8192)]);
        assert_eq!(run(&[(0, Q, 0, 16), (5, C, 8, 8)]), []);
    }

    #[test]
    fn what_was_on_its_way_before_is_no_request() {
        assert_eq!(run(&[(5, C, 0, 8), (6, Q, 0, 8), (9, C, 0, 8)]), [(6, 3, 4096)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut requests = Requests::default();
        for n in 0..PENDING_MAX as u64 + 10 {
            requests.put(&event(n, Q, Op::Write, n * 8, 8, 1));
        }
        assert_eq!(requests.open.len(), PENDING_MAX);
        assert!(requests.put(&event(1 << 20, C, Op::Write, 0, 8, 1)).is_empty(), "the oldest is forgotten");
    }
}
