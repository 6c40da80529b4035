//! How many requests a second a disk is good for at least: what guarantees may add up to.
//!
//! Reads of 4 KiB all over a new device: one at a time where there are platters, as a guarantee must not
//! depend on a full queue there; as many as it takes at a time where there are none. What is measured is the
//! model, by the same draws each time, so a job is feasible on a disk or is not, whatever the run's seed.
//!
//! ```text
//! 7200 rpm:  a seek of 8 ms and half a turn of 4.2 ms          ─► some 80 requests/s
//! SSD:       32 at a time, each 130 us                         ─► some 80 000
//! ```
//!
//! What it does not know: larger requests, writes that wait for garbage collection, and the host's
//! processors.

use crate::metrics::{Result, rate};
use crate::rng::Rng;
use fairhead_core::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};

/// Requests that are enough for a mean within a percent or two.
const ROTATIONAL: u32 = 2_000;
const FLASH: u32 = 50_000;
const BLOCK: Sectors = Sectors(8);

/// How many requests a second a disk is good for, at least 1: what the guarantees of all groups may add up
/// to.
///
/// # Errors
/// If the disk's parameters are impossible.
pub fn measure(disk: &DeviceParams) -> Result<u32> {
    let mut device = Device::new(disk)?;
    let facts = device.facts();
    // A disk with a head sorts a full queue and gets faster by it; the guarantee must hold without that.
    let (count, depth) = if facts.rotational { (ROTATIONAL, 1) } else { (FLASH, facts.queue_depth) };
    let mut rng = Rng::new(0, "capacity");
    let blocks = (facts.capacity / u64::from(BLOCK.0)).max(1);
    let mut free: Vec<u16> = (0..depth).collect();
    let (mut now, mut left, mut done) = (Instant::EPOCH, count, 0);
    while done < count {
        while left > 0
            && device.can_accept()
            && let Some(tag) = free.pop()
        {
            let start = Sector(rng.below(blocks) * u64::from(BLOCK.0));
            let op = DeviceOp::Read;
            device.submit(now, Command { tag: Tag(tag), op, start, len: BLOCK, fua: false });
            left -= 1;
        }
        let Some(at) = device.next_event() else { break };
        now = now.max(at);
        while let Some(tag) = device.poll(now) {
            free.push(tag.0);
            done += 1;
        }
    }
    let took = now.since(Instant::EPOCH).max(Duration::from_ns(1));
    Ok(u32::try_from(rate(u64::from(done), took)).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_good_for_what_its_mechanics_allow() {
        // A mean seek and half a turn each: 12.8 ms and 8.9 + 4.17 ms, say the data sheets; a drive's own
        // time comes on top.
        for (disk, least, most) in [("ide2004", 50, 80), ("sata2009", 65, 90), ("nas2020", 65, 100)] {
            let got = measure(&DeviceParams::preset(disk).unwrap()).unwrap();
            assert!((least..=most).contains(&got), "{disk}: {got}");
        }
    }

    #[test]
    fn flash_is_asked_for_as_much_as_it_takes_at_a_time() {
        let ssd = measure(&DeviceParams::preset("sata_ssd").unwrap()).unwrap();
        let card = measure(&DeviceParams::preset("flashcard2010").unwrap()).unwrap();
        assert!(ssd > 50_000 && (500..1_000).contains(&card), "{ssd} and {card}");
    }
}
