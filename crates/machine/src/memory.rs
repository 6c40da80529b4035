//! How much unwritten data the kernel lets pile up in memory, for all disks together and for one.
//!
//! ```text
//! vm.dirty_ratio 20 of 64 GB     12.8 GB may wait for a stick that writes 10 MB/s: 21 minutes
//! bdi/strict_limit 1, max_bytes  the bound of one disk, since Linux 6.2
//! ```
//!
//! What this does not do: know how much of the memory can hold file data. The kernel takes the share of that
//! part, so a figure here is an upper bound.
//
//= linux Documentation/admin-guide/sysctl/vm.rst, Documentation/ABI/testing/sysfs-class-bdi

use crate::tree::Tree;

/// The memory of a machine, as far as it concerns write-back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// All memory, in bytes; `None` if it is not known.
    pub total: Option<u64>,
    /// The percentage of memory that may be unwritten before writers have to wait; 0 where a number of bytes
    /// is set instead.
    pub dirty_percent: u64,
    /// The number of bytes that may be unwritten; 0 where a percentage is set instead.
    pub dirty_bytes: u64,
}

impl Memory {
    /// Reads the settings.
    pub(crate) fn read(tree: &Tree) -> Self {
        let info = tree.text("proc/meminfo").unwrap_or_default();
        let total = info.lines().find_map(|l| l.strip_prefix("MemTotal:")?.split_whitespace().next());
        Self {
            total: total.and_then(|kib| kib.parse::<u64>().ok()?.checked_mul(1024)),
            dirty_percent: tree.number("proc/sys/vm/dirty_ratio").unwrap_or(0),
            dirty_bytes: tree.number("proc/sys/vm/dirty_bytes").unwrap_or(0),
        }
    }

    /// How many bytes may be unwritten at most; `None` if that is not known.
    #[must_use]
    pub fn dirty_max(&self) -> Option<u64> {
        if self.dirty_bytes > 0 {
            return Some(self.dirty_bytes);
        }
        let total = self.total.filter(|_| (1..=100).contains(&self.dirty_percent))?;
        Some(total / 100 * self.dirty_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_or_a_number_of_bytes() {
        let memory = |dirty_percent, dirty_bytes| Memory { total: Some(1 << 30), dirty_percent, dirty_bytes };
        assert_eq!(memory(50, 0).dirty_max(), Some((1 << 30) / 100 * 50));
        assert_eq!(memory(0, 4096).dirty_max(), Some(4096));
        assert_eq!(memory(0, 0).dirty_max(), None);
        assert_eq!(memory(1 << 60, 0).dirty_max(), None);
    }
}
