//! Settings of a host's page cache, and the limits on dirty pages that follow from them.
//!
//! ```text
//!   0 ─────────── background ─────────── free run ─────────── set point ─────────── hard
//!     nothing is    │  the flusher          │  writers pause,      (free run + hard) / 2   nothing more
//!     written yet   │  writes               │  longer the nearer   they are to the limit   is dirtied
//! ```

use super::Host;
use crate::job::size_value;

/// The settings that [`Host::set_memory`] knows, by their names under `/proc/sys/vm` and in `queue/` of a
/// disk.
pub(super) const SETTINGS: [&str; 3] = ["dirty_bytes", "dirty_background_bytes", "read_ahead_kb"];

/// Bytes of a page.
const PAGE: u64 = 4096;
/// The least that the limits may be, in pages.
//= Documentation/admin-guide/sysctl/vm.rst "dirty_bytes": two pages
const DIRTY_MIN: u64 = 2;

impl Host {
    /// Returns how many pages may be dirty before the flusher writes, and at most. The first is less than the
    /// second: half of it if it is set to as much or more.
    //= Documentation/admin-guide/sysctl/vm.rst "dirty_bytes", "dirty_background_ratio"
    pub(crate) fn dirty_limits(&self) -> (u32, u32) {
        let pages = (self.memory / PAGE).min(u64::from(u32::MAX - 1)).max(1);
        let limit = |bytes: u64, percent: u8| match bytes {
            0 => pages * u64::from(percent) / 100,
            bytes => bytes.div_ceil(PAGE),
        };
        let hard = limit(self.dirty_bytes, self.dirty_pct);
        let background = limit(self.dirty_background_bytes, self.dirty_background_pct);
        let background = if background >= hard { hard / 2 } else { background };
        let in_pages = |pages: u64| u32::try_from(pages).unwrap_or(u32::MAX);
        (in_pages(background), in_pages(hard))
    }

    /// How many pages a window of read-ahead may have that is as long as its call, where the call is longer
    /// than the largest window: as many as a request has, on hosts of the multi-queue layer; 0 on others.
    ///
    /// Traced on Linux 6.18: calls of 1 MiB are read in requests of 1 MiB where `read_ahead_kb` is 128.
    //= docs/reference/hosts.md#page-cache-and-readahead
    pub(crate) const fn read_with_call(&self) -> u32 {
        if self.multi_queue.is_some() { self.max_request.0 / 8 } else { 0 }
    }

    /// Changes a setting of [`SETTINGS`].
    pub(super) fn set_memory(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name == "read_ahead_kb" {
            let kib: Option<u32> = value.parse().ok().filter(|kib| *kib <= 1 << 20);
            let right = "write a number of KiB up to 1048576, such as 128";
            self.read_ahead = kib.ok_or(right)? / 4;
            return Ok(());
        }
        let bytes = size_value(name, value)?;
        if bytes < DIRTY_MIN * PAGE {
            return Err("write a size of at least 8k, such as 200m".to_owned());
        }
        match name {
            "dirty_bytes" => self.dirty_bytes = bytes,
            _ => self.dirty_background_bytes = bytes,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> (u32, u32) {
        Host::parse(text, "nas2020").expect("a valid host").1.dirty_limits()
    }

    #[test]
    fn limits_in_bytes_take_the_place_of_shares() {
        // 10 and 20 % of 1 GiB.
        assert_eq!(limits("2023"), (26_214, 52_428));
        assert_eq!(limits("2023,dirty_background_bytes=100m,dirty_bytes=200m"), (25_600, 51_200));
        // The background limit is less than the hard one.
        assert_eq!(limits("2023,dirty_bytes=50m"), (6400, 12_800));
        assert_eq!(Host::parse("2023,read_ahead_kb=2560", "nas2020").unwrap().1.read_ahead, 640);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, right) in [("dirty_bytes=4k", "at least 8k"), ("read_ahead_kb=2m", "a number of KiB")] {
            let message = Host::parse(text, "nas2020").unwrap_err();
            assert!(message.contains(right) && message.contains(text), "{message}");
        }
    }
}
