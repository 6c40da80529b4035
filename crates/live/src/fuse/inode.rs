//! The inode numbers that a mount shows.
//!
//! All files of a mount have one device number, the mount's. Below it there may be several file systems,
//! whose inode numbers mean something with their device numbers only: every ext4 has its root at 2. A program
//! that saw these numbers would take two files for hard links of one. So the device is folded in:
//!
//! ```text
//!   device of SOURCE, inode 77       ─► 77
//!   another device 0:49, inode 77    ─► mix(mix(77) ^ mix(0:49 ^ APART))
//! ```
//!
//! `mix` takes different numbers to different ones, so two files of one device never get one number. Files of
//! different devices get one with a chance of 2^-64 for each pair: 3 in a million for ten million files. A
//! number depends on its file alone, so it is the same after a remount.
//!
//! What it does not do: tell devices apart that change their numbers, as a tmpfs does when it is mounted
//! again.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Keeps devices apart from inodes, both of which are small: without it, inode 50 of device 49 had the number
/// of inode 49 of device 50.
const APART: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Inodes {
    /// The device of SOURCE, whose files keep their numbers.
    device: u64,
}

impl Inodes {
    pub(super) const fn new(device: u64) -> Self {
        Self { device }
    }

    /// The number of a file that has this one on this device.
    pub(super) const fn number(self, device: u64, inode: u64) -> u64 {
        if device == self.device {
            return inode;
        }
        let number = mix(mix(inode) ^ mix(device ^ APART));
        // Lists of names take 0 for a name that is gone.
        if number == 0 { 1 } else { number }
    }

    pub(super) fn of(self, meta: &Metadata) -> u64 {
        self.number(meta.dev(), meta.ino())
    }
}

/// Takes different numbers to different ones that have nothing in common: each step can be undone.
//= S. Vigna, "Further scramblings of Marsaglia's xorshift generators", the finalizer of splitmix64
const fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn files_of_the_source_keep_their_numbers() {
        let inodes = Inodes::new(0x801);
        for inode in [1, 2, 77, u64::MAX] {
            assert_eq!(inodes.number(0x801, inode), inode);
        }
    }

    /// Small numbers, and numbers with the high bits that overlay file systems set.
    #[test]
    fn no_two_files_have_one_number() {
        let inodes = Inodes::new(0x801);
        let mut seen = HashSet::new();
        for device in [0x801, 0x802, 0x2f, 0x30, 0x31, 1 << 40, 0] {
            for inode in (0..20_000).flat_map(|n| [n, n | 1 << 63, n << 32]).collect::<BTreeSet<u64>>() {
                assert!(seen.insert(inodes.number(device, inode)), "device {device:#x}, inode {inode:#x}");
            }
        }
    }

    /// A backup that knows files by their numbers finds them again after a remount.
    #[test]
    fn numbers_stay_as_they_are() {
        assert_eq!(Inodes::new(0x801).number(0x31, 77), Inodes::new(0x802).number(0x31, 77));
    }
}
