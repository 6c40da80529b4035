//! Sectors that say who wrote them, and what a block can hold after all that was asked and acknowledged.

#![allow(dead_code, reason = "no test binary needs all of it")]

const SECTOR: usize = 512;
pub(crate) const BLOCK: usize = 4096;

pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }
}

/// What the write of this serial number puts into a sector; that of number 0 is what was there at first.
fn sector(block: u64, serial: u64, index: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if serial > 0 {
        let mut x = Chance(block << 40 ^ index << 32 ^ serial);
        for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
            let value = match i {
                0 => block,
                1 => serial,
                _ => x.below(u64::MAX),
            };
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

pub(crate) fn stamped(block: u64, serial: u64) -> impl Iterator<Item = u8> {
    (0..(BLOCK / SECTOR) as u64).flat_map(move |i| sector(block, serial, i))
}

/// Writes of a block: the last of each kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known {
    /// Acknowledged before a flush that was, too.
    pub(crate) stable: u64,
    pub(crate) acknowledged: u64,
    pub(crate) sent: u64,
    /// All of the block was this or later when it was looked at.
    seen: u64,
}

impl Known {
    /// Whether what a block holds can be. Returns which write each sector is from.
    pub(crate) fn check(&mut self, block: u64, bytes: &[u8]) -> [u64; BLOCK / SECTOR] {
        let serials = serials(block, bytes);
        self.check_serials(block, serials);
        serials
    }

    /// Checks what another reader has found.
    pub(crate) fn check_serials(&mut self, block: u64, serials: [u64; BLOCK / SECTOR]) {
        let Self { stable, acknowledged, sent, seen, .. } = *self;
        for (i, serial) in serials.into_iter().enumerate() {
            let place = format!("sector {i} of block {block} has write {serial};");
            assert!(serial >= stable, "{place} {stable} was acknowledged before a flush was");
            assert!(serial >= acknowledged, "{place} {acknowledged} was acknowledged");
            assert!(serial >= seen, "{place} {seen} was seen there before");
            assert!(serial <= sent, "{place} {sent} was the last");
        }
        self.seen = serials.into_iter().fold(u64::MAX, u64::min);
    }
}

/// Which writes the sectors of a block are from.
pub(crate) fn serials(block: u64, bytes: &[u8]) -> [u64; BLOCK / SECTOR] {
    std::array::from_fn(|i| {
        let found = &bytes[i * SECTOR..][..SECTOR];
        let serial = u64::from_le_bytes(found[8..16].try_into().unwrap());
        assert!(
            *found == sector(block, serial, i as u64),
            "sector {i} of block {block} holds data that no client wrote"
        );
        serial
    })
}
