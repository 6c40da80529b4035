//! RAID 1: the same sectors on several devices; reads go to one of them, writes to all.
//!
//! [`ReadBalance`] says where a read goes: to the member whose last read it continues, so that a stream stays
//! in one place; else to one with nothing to do; else to the one whose head is nearest; member 0 of equals.
//! Two streams thus settle on a member each, and run at nearly twice the speed of one disk.
//!
//! Worked number (`raid1_2009`, queues = "one"): of two sequential readers the first goes to member 0 and the
//! second, as member 0 is busy, to member 1; 72 MB/s each. Reads of one stream never alternate, so one reader
//! gets 72 MB/s.
//= docs/reference/devices.md#25-compositions

use crate::{Driver, Facts};
use alloc::boxed::Box;
use alloc::vec;
use fairhead_core::elevator::Actuators;
use fairhead_core::units::Sector;

/// Where the reads of a mirror go.
#[derive(Clone, Debug)]
pub struct ReadBalance {
    /// By member: behind its last read, and behind its last read or write.
    reads: Box<[Sector]>,
    heads: Box<[Sector]>,
}

impl ReadBalance {
    /// Makes a mirror of `members` members, at least one.
    #[must_use]
    pub fn new(members: usize) -> Self {
        let at = vec![Sector(0); members].into_boxed_slice();
        Self { reads: at.clone(), heads: at }
    }

    /// The member for a read that begins at `start`. `is_idle` says which have nothing to do.
    pub fn choose(&self, start: Sector, is_idle: impl Fn(usize) -> bool) -> usize {
        let continues = self.reads.iter().position(|&end| end == start);
        continues.or_else(|| (0..self.heads.len()).find(|&m| is_idle(m))).unwrap_or_else(|| {
            let distance = |&m: &usize| self.heads[m].0.abs_diff(start.0);
            // The first of equals.
            (0..self.heads.len()).min_by_key(distance).unwrap_or(0)
        })
    }

    /// A read that ends at `end` goes to a member.
    pub fn read(&mut self, member: usize, end: Sector) {
        (self.reads[member], self.heads[member]) = (end, end);
    }

    /// A write that ends at `end` goes to all.
    pub fn write(&mut self, end: Sector) {
        self.heads.fill(end);
    }
}

impl Facts {
    /// Returns the facts of a mirror of such members.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn mirrored(members: impl Iterator<Item = Self>) -> Self {
        let both = |a: Self, b: Self| Self {
            capacity: a.capacity.min(b.capacity),
            rotational: a.rotational || b.rotational,
            queue_depth: a.queue_depth.saturating_add(b.queue_depth),
            // Where the host has one queue for them, a controller hides its members.
            driver: Driver::Sas,
            max_request: a.max_request.min(b.max_request),
            write_cache: a.write_cache || b.write_cache,
            fua: a.fua && b.fua,
            actuators: Actuators::default(),
        };
        members.reduce(both).expect("a set has members")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_stays_where_it_is_then_the_idle_then_the_nearest() {
        let mut b = ReadBalance::new(2);
        let (idle, busy) = (|_: usize| true, |_: usize| false);
        assert_eq!(b.choose(Sector(500), idle), 0, "the first of equals");
        b.read(0, Sector(508));
        assert_eq!(b.choose(Sector(9000), |m| m == 1), 1, "the idle one");
        b.read(1, Sector(9008));
        assert_eq!(b.choose(Sector(9008), |m| m == 0), 1, "it continues, although the other is idle");
        assert_eq!((b.choose(Sector(600), busy), b.choose(Sector(8000), busy)), (0, 1), "the nearest");
        b.write(Sector(7000));
        assert_eq!(b.choose(Sector(8000), busy), 0, "a write moved both to one place");
        assert_eq!(b.choose(Sector(9008), busy), 1, "but the stream is still member 1's");
    }
}
