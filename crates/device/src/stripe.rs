//! RAID 0: the sectors of several devices by turns, a chunk from each.
//!
//! ```text
//!   chunk = 8 sectors, members of 24, 16 and 32 sectors
//!
//!     member 0    member 1    member 2
//!      0 …  7      8 … 15     16 … 23    ─┐ all three, until member 1 is used up
//!     24 … 31     32 … 39     40 … 47    ─┘
//!     48 … 55                 56 … 63    ── the two that have more
//!                             64 … 71    ── the one that has most
//! ```
//!
//! A member's size is rounded down to whole chunks. Members of different sizes are used up as Linux md does
//! it: once the smallest is full, the others go on without it. LVM stripes in the same way, over parts of one
//! size.
//!
//! A request that crosses a chunk's border is split. All of it that lies on one member lies there in one
//! piece, as a run of sectors takes the member's chunks in order: so there is one part for each member at
//! most. In the picture, sectors 12 to 50 are sectors 8 to 18 of member 0 (24 … 31 and 48 … 50), 4 to 15 of
//! member 1 and 0 to 15 of member 2.
//!
//! What this does not do: read a disk's metadata, or the other order of chunks that Linux had for different
//! sizes before 3.14.
//= md(4) "RAID0"; lvmraid(7), lvcreate(8) "--stripes", "--stripesize"

use crate::Facts;
use alloc::boxed::Box;
use alloc::vec::Vec;
use fairhead_core::units::{Sector, Sectors};

/// The map from the sectors of a stripe to members and their sectors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeMap {
    /// In sectors.
    chunk: u64,
    members: usize,
    zones: Box<[Zone]>,
    capacity: u64,
}

/// Rows of chunks over the same members.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Zone {
    /// Its first sector, and where it begins on its members.
    start: u64,
    row: u64,
    /// The members, in order.
    members: Box<[usize]>,
}

impl StripeMap {
    /// Makes a stripe over members of these sizes, in sectors. A member that is shorter than a chunk is not
    /// used.
    ///
    /// # Panics
    /// If a chunk has no sectors.
    #[must_use]
    pub fn new(chunk: Sectors, capacities: &[u64]) -> Self {
        let chunk = u64::from(chunk.0);
        assert!(chunk > 0, "a chunk has a sector at least");
        let whole: Vec<u64> = capacities.iter().map(|c| c / chunk * chunk).collect();
        let (mut zones, mut start, mut row) = (Vec::new(), 0, 0);
        loop {
            let members: Box<[usize]> = (0..whole.len()).filter(|&m| whole[m] > row).collect();
            let Some(end) = members.iter().map(|&m| whole[m]).min() else { break };
            let length = (end - row) * members.len() as u64;
            zones.push(Zone { start, row, members });
            (start, row) = (start + length, end);
        }
        Self { chunk, members: capacities.len(), zones: zones.into(), capacity: start }
    }

    /// How many sectors there are.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The member of a sector, and which of its sectors it is.
    ///
    /// ```
    /// use fairhead_device::StripeMap;
    /// use fairhead_core::units::{Sector, Sectors};
    /// let map = StripeMap::new(Sectors(8), &[24, 16, 32]);
    /// assert_eq!(map.locate(Sector(50)), (0, Sector(18)));
    /// ```
    ///
    /// # Panics
    /// If there is no such sector.
    #[must_use]
    pub fn locate(&self, sector: Sector) -> (usize, Sector) {
        assert!(sector.0 < self.capacity, "sector {} of a stripe of {}", sector.0, self.capacity);
        let zone = self.zone_of(sector.0);
        let (chunk, within) = ((sector.0 - zone.start) / self.chunk, (sector.0 - zone.start) % self.chunk);
        let n = zone.members.len() as u64;
        #[allow(clippy::cast_possible_truncation, reason = "below the number of members")]
        let member = zone.members[(chunk % n) as usize];
        (member, Sector(zone.row + chunk / n * self.chunk + within))
    }

    /// Returns the sector of the stripe that a member's sector is; `None` if it is behind the member's last
    /// whole chunk.
    #[must_use]
    pub fn sector(&self, member: usize, at: Sector) -> Option<Sector> {
        let zone = self.zones.iter().rev().find(|z| z.row <= at.0)?;
        let place = zone.members.iter().position(|&m| m == member)? as u64;
        let (row, within) = ((at.0 - zone.row) / self.chunk, (at.0 - zone.row) % self.chunk);
        let sector = zone.start + (row * zone.members.len() as u64 + place) * self.chunk + within;
        (sector < self.capacity).then_some(Sector(sector))
    }

    /// The parts of a request: each one's member, where it begins there, and its length; one for each member
    /// at most.
    pub fn parts(&self, start: Sector, len: Sectors) -> impl Iterator<Item = (usize, Sector, Sectors)> + '_ {
        let end = start.0 + u64::from(len.0);
        let is_one = len.0 > 0 && self.room_in_chunk(start.0) >= u64::from(len.0);
        // A request within a chunk is the usual case.
        let one = is_one.then(|| {
            let (member, at) = self.locate(start);
            (member, at, len)
        });
        let many = if is_one { 0 } else { self.members };
        one.into_iter().chain((0..many).filter_map(move |member| {
            let (from, to) = (self.before(member, start.0), self.before(member, end));
            #[allow(clippy::cast_possible_truncation, reason = "at most the request's")]
            (to > from).then(|| (member, Sector(from), Sectors((to - from) as u32)))
        }))
    }

    /// How many sectors there are from this one to the end of its chunk.
    fn room_in_chunk(&self, sector: u64) -> u64 {
        self.chunk - (sector - self.zone_of(sector).start) % self.chunk
    }

    /// How many of a member's sectors lie before a sector of the stripe.
    fn before(&self, member: usize, sector: u64) -> u64 {
        let zone = self.zone_of(sector);
        let Some(place) = zone.members.iter().position(|&m| m == member) else {
            // It was used up before: all of it, which is where the first zone without it begins.
            return self.zones.iter().find(|z| !z.members.contains(&member)).map_or(0, |z| z.row);
        };
        let width = self.chunk * zone.members.len() as u64;
        let (row, rest) = ((sector - zone.start) / width, (sector - zone.start) % width);
        zone.row + row * self.chunk + rest.saturating_sub(place as u64 * self.chunk).min(self.chunk)
    }

    fn zone_of(&self, sector: u64) -> &Zone {
        let i = self.zones.partition_point(|z| z.start <= sector);
        &self.zones[i.saturating_sub(1)]
    }
}

impl Facts {
    /// Returns what a driver can know of a stripe of these members with this number of sectors.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn striped(members: impl Iterator<Item = Self>, capacity: u64) -> Self {
        Self { capacity, ..Self::mirrored(members) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(map: &StripeMap, start: u64, len: u32) -> Vec<(usize, u64, u32)> {
        map.parts(Sector(start), Sectors(len)).map(|(m, at, len)| (m, at.0, len.0)).collect()
    }

    /// Two members of 64 sectors, chunks of 8: computed by hand.
    #[test]
    fn chunks_go_to_the_members_by_turns() {
        let map = StripeMap::new(Sectors(8), &[64, 64]);
        assert_eq!(map.capacity(), 128);
        for (sector, member, at) in
            [(0, 0, 0), (7, 0, 7), (8, 1, 0), (15, 1, 7), (16, 0, 8), (31, 1, 15), (127, 1, 63)]
        {
            assert_eq!(map.locate(Sector(sector)), (member, Sector(at)), "{sector}");
        }
        assert_eq!(parts(&map, 0, 8), [(0, 0, 8)], "a whole chunk is one request");
        assert_eq!(parts(&map, 6, 4), [(0, 6, 2), (1, 0, 2)], "what crosses a border is split");
        assert_eq!(parts(&map, 8, 16), [(0, 8, 8), (1, 0, 8)]);
        assert_eq!(parts(&map, 4, 24), [(0, 4, 12), (1, 0, 12)], "two chunks of a member are one piece");
        assert_eq!(parts(&map, 0, 128), [(0, 0, 64), (1, 0, 64)]);
    }

    /// The picture of the module's text.
    #[test]
    fn a_smaller_member_is_left_out_when_it_is_used_up() {
        let map = StripeMap::new(Sectors(8), &[24 + 7, 16 + 1, 32]);
        assert_eq!(map.capacity(), 72, "rounded down to whole chunks");
        for (sector, member, at) in
            [(40, 2, 8), (47, 2, 15), (48, 0, 16), (56, 2, 16), (64, 2, 24), (71, 2, 31)]
        {
            assert_eq!(map.locate(Sector(sector)), (member, Sector(at)), "{sector}");
        }
        assert_eq!(parts(&map, 12, 39), [(0, 8, 11), (1, 4, 12), (2, 0, 16)]);
        assert_eq!(parts(&map, 60, 12), [(2, 20, 12)]);
        assert_eq!(map.sector(1, Sector(16)), None, "behind its last whole chunk");
    }

    /// Every sector is one sector of one member, and back; the parts of requests are their sectors, whatever
    /// the sizes.
    #[test]
    fn every_sector_is_one_of_one_member() {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let chunk = 1 + below(20);
            let capacities: Vec<u64> = (0..1 + below(6)).map(|_| below(300)).collect();
            let map = StripeMap::new(Sectors(chunk as u32), &capacities);
            let told = format!("chunk {chunk}, {capacities:?}");
            assert_eq!(map.capacity(), capacities.iter().map(|c| c / chunk * chunk).sum::<u64>(), "{told}");
            let mut seen: Vec<Vec<bool>> = capacities.iter().map(|&c| vec![false; c as usize]).collect();
            for s in 0..map.capacity() {
                let (member, at) = map.locate(Sector(s));
                assert!(!std::mem::replace(&mut seen[member][at.0 as usize], true), "{told}: {s} is taken");
                assert_eq!(map.sector(member, at), Some(Sector(s)), "{told}");
            }
            for (member, (seen, capacity)) in seen.iter().zip(&capacities).enumerate() {
                for (at, seen) in seen.iter().enumerate() {
                    let is_whole = (at as u64) < capacity / chunk * chunk;
                    assert_eq!(*seen, is_whole, "{told}: sector {at} of {member}");
                    assert_eq!(map.sector(member, Sector(at as u64)).is_some(), is_whole, "{told}");
                }
            }
            for _ in 0..if map.capacity() > 0 { 50 } else { 0 } {
                let start = below(map.capacity());
                let len = 1 + below((map.capacity() - start).min(120));
                let mut one_by_one: Vec<(usize, u64)> =
                    (start..start + len).map(|s| map.locate(Sector(s))).map(|(m, at)| (m, at.0)).collect();
                one_by_one.sort_unstable();
                let all = parts(&map, start, len as u32);
                let in_parts: Vec<(usize, u64)> = all
                    .iter()
                    .flat_map(|&(m, at, len)| (at..at + u64::from(len)).map(move |a| (m, a)))
                    .collect();
                assert_eq!(in_parts, one_by_one, "{told}: {start}, {len}");
            }
        }
    }
}
