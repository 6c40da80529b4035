//! What a virtio-blk device says of itself: its features and its configuration.
//!
//! Source: Virtual I/O Device (VIRTIO) 1.2, sections 5.2.3, 5.2.4 and 6; for the features of vhost-user,
//! QEMU's documentation, *Vhost-user Protocol*.

use super::request::{BYTES_MAX, RANGES_MAX, SECTOR};

/// Bits of features.
pub(super) const SIZE_MAX: u64 = 1 << 1;
pub(super) const SEG_MAX: u64 = 1 << 2;
pub(super) const READ_ONLY: u64 = 1 << 5;
pub(super) const BLK_SIZE: u64 = 1 << 6;
pub(super) const FLUSH: u64 = 1 << 9;
pub(super) const TOPOLOGY: u64 = 1 << 10;
pub(super) const CONFIG_WCE: u64 = 1 << 11;
pub(super) const QUEUES: u64 = 1 << 12;
pub(super) const DISCARD: u64 = 1 << 13;
pub(super) const WRITE_ZEROES: u64 = 1 << 14;
pub(super) const INDIRECT: u64 = 1 << 28;
pub(super) const EVENT_INDEX: u64 = 1 << 29;
pub(super) const PROTOCOL_FEATURES: u64 = 1 << 30;
pub(super) const VERSION_1: u64 = 1 << 32;

/// The most parts of the data of a request: what fits a ring of 128 descriptors, with header and status.
const PARTS_MAX: u32 = 126;

/// The most bytes of each part, so that all of them are not more than a request may have.
const PART_MAX: u32 = 256 << 10;

/// The most of the configuration that can be asked for. Behind its 60 bytes are zeros.
pub(super) const CONFIG_ASKED_MAX: usize = 256;

/// The place of the byte that says whether writes are cached. The guest may write it.
pub(super) const CACHE_AT: u32 = 32;

/// Facts of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// The bytes of the image.
    pub(super) size: u64,
    pub(super) is_read_only: bool,
    /// What its accesses should be multiples of, in bytes.
    pub(super) block: u32,
    pub(super) queues: u16,
    /// Whether writes are cached until they are flushed.
    pub(super) is_cached: bool,
}

impl Facts {
    /// The features that are offered.
    pub(super) const fn features(&self) -> u64 {
        let all = SIZE_MAX | SEG_MAX | BLK_SIZE | FLUSH | TOPOLOGY | CONFIG_WCE | QUEUES;
        let all = all | INDIRECT | EVENT_INDEX | PROTOCOL_FEATURES | VERSION_1;
        all | if self.is_read_only { READ_ONLY } else { DISCARD | WRITE_ZEROES }
    }

    /// Bytes of the configuration.
    pub(super) fn config(&self) -> [u8; CONFIG_ASKED_MAX] {
        let mut out = [0; CONFIG_ASKED_MAX];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let block = self.block.max(SECTOR as u32);
        let per_block = block / SECTOR as u32;
        put(0, &(self.size / SECTOR).to_le_bytes());
        put(8, &PART_MAX.to_le_bytes());
        put(12, &PARTS_MAX.to_le_bytes());
        put(20, &(SECTOR as u32).to_le_bytes());
        put(24, &[per_block.ilog2() as u8]);
        put(26, &(per_block as u16).to_le_bytes());
        put(CACHE_AT as usize, &[u8::from(self.is_cached)]);
        put(34, &self.queues.to_le_bytes());
        let sectors = (BYTES_MAX / SECTOR) as u32;
        for (at, value) in
            [(36, sectors), (40, RANGES_MAX as u32), (44, per_block), (48, sectors), (52, RANGES_MAX as u32)]
        {
            put(at, &value.to_le_bytes());
        }
        put(56, &[1]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_each_number_at_its_place() {
        let facts =
            Facts { size: (1 << 30) + 700, is_read_only: false, block: 4096, queues: 5, is_cached: true };
        let config = facts.config();
        let u32_at = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
        assert_eq!(u64::from_le_bytes(config[..8].try_into().unwrap()), (1 << 21) + 1, "whole sectors");
        assert_eq!((u32_at(8), u32_at(12), u32_at(20)), (256 << 10, 126, 512));
        assert!(u64::from(u32_at(8)) * u64::from(u32_at(12)) <= BYTES_MAX);
        assert_eq!(config[24..28], [3, 0, 8, 0]);
        assert_eq!((config[32], config[34]), (1, 5));
        assert_eq!((u32_at(36), u32_at(40), u32_at(44)), (65536, 16, 8));
        assert_eq!((u32_at(48), u32_at(52), config[56]), (65536, 16, 1));
        assert!(config[60..].iter().all(|b| *b == 0));
        let read_only = Facts { is_read_only: true, block: 1, ..facts };
        assert_eq!(read_only.features() & (READ_ONLY | DISCARD | WRITE_ZEROES), READ_ONLY);
        assert_eq!(read_only.config()[24..28], [0, 0, 1, 0]);
    }
}
