//! Strided zones: some of the file, a gap, some of the file, a gap.
//!
//! ```text
//!   zone 0          gap        zone 1          gap
//!   |▓▓▓▓▓▓......|             |▓▓▓▓▓▓......|              ▓ zonesize: what is moved before the next zone begins
//!   └─ zonerange ┴─ zoneskip ──┘                           . the rest of the zone, left out
//! ```
//!
//! Random calls stay in their zone. With more to move than the zone is long, it is gone over again. Behind
//! the last zone comes the first. Readers whose zones lie between each other's make one sequential stream
//! together.
//
//= fio-3.33 HOWTO "zonemode", "zonesize", "zonerange", "zoneskip"; checked against fio's own logs of offsets

use crate::job::Zones;

/// Bytes of a sector, the unit of zones.
const SECTOR: u64 = 512;

/// Where a client is in a file, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Zone {
    /// Where the current zone starts.
    start: u64,
}

impl Zone {
    /// The zone of the next call, of `len` bytes, in a file of `span`: where it starts, and how far behind
    /// its start the call may begin. Moves the positions of all directions to the start of a new zone, and
    /// that of the call's `direction` along in it. `moved` is how much was moved in a zone, of whichever of
    /// the client's files.
    pub(super) fn enter(
        &mut self,
        zones: &Zones,
        len: u64,
        span: u64,
        positions: &mut [u64; 3],
        direction: usize,
        moved: &mut u64,
    ) -> (u64, u64) {
        let range = zones.range * SECTOR;
        if *moved >= zones.size * SECTOR {
            *moved = 0;
            self.start += range + zones.skip * SECTOR;
            *positions = [self.start; 3];
        }
        if self.start >= span {
            (self.start, *positions) = (0, [0; 3]);
        }
        let position = &mut positions[direction];
        // A call may be longer than its zone, but no call begins outside.
        if *position >= self.start + range {
            *position = self.start;
        }
        let room = range.saturating_sub(len).max(*position - self.start);
        (self.start, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of 4 KiB at which 64 calls of a block begin in a file of 64 blocks. All as fio 3.33 logs
    /// them.
    fn walk(kib: [u64; 3]) -> Vec<u64> {
        let [size, range, skip] = kib.map(|k| k * 2);
        let zones = Zones { size, range, skip };
        let (mut zone, mut positions, mut moved) = (Zone::default(), [0; 3], 0);
        let call = |_| {
            let (start, room) = zone.enter(&zones, 4096, 256 << 10, &mut positions, 0, &mut moved);
            let at = positions[0];
            assert!((start..=start + room).contains(&at));
            positions[0] += 4096;
            moved += 4096;
            at / 4096
        };
        (0..64).map(call).collect()
    }

    #[test]
    fn zones_are_read_one_after_the_other_and_from_the_start_again() {
        let blocks = walk([16, 16, 16]);
        assert_eq!(blocks[..10], [0, 1, 2, 3, 8, 9, 10, 11, 16, 17]);
        assert_eq!(blocks[30..36], [58, 59, 0, 1, 2, 3]);
    }

    #[test]
    fn of_a_large_zone_only_the_beginning_is_read() {
        assert_eq!(walk([8, 16, 16])[..6], [0, 1, 8, 9, 16, 17]);
        assert_eq!(walk([8, 16, 16])[14..18], [56, 57, 0, 1]);
    }

    #[test]
    fn a_small_zone_is_read_again_until_enough_was_moved() {
        assert_eq!(walk([32, 16, 16])[..12], [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]);
    }

    #[test]
    fn a_zone_is_left_after_the_call_that_completes_it() {
        // 6 KiB: two calls of 4; the next zone is 22 KiB on, 5.5 blocks.
        assert_eq!(walk([6, 6, 16])[..6], [0, 1, 5, 6, 11, 12]);
    }

    #[test]
    fn a_call_may_be_longer_than_its_zone() {
        assert_eq!(walk([1, 1, 7])[..5], [0, 2, 4, 6, 8]);
    }
}
