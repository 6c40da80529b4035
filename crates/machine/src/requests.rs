//! How many requests a scheduler has to choose from, and what too few of them cost.
//!
//! The kernel gives a disk with a scheduler twice as many requests as its driver has tags, and at most 256:
//!
//! ```text
//! usb-storage    1 tag      nr_requests   2      most USB disks, sticks and card readers
//! AHCI          32 tags     nr_requests  64      SATA, with or without command queueing
//! MMC           64 tags     nr_requests 128      SD cards, eMMC
//! ```
//!
//! With 2, the scheduler sees one request beside the one that the disk works on. A program that waits for one
//! of the two is not known to it, so it cannot be preferred, and can starve.
//!
//! What this does not do: know the tags of a driver that the kernel's files do not show (`mq/0/nr_tags`).

use crate::disks::{Disk, Kind};

/// A scheduler with fewer requests has no choice to speak of.
pub(crate) const FEW: i64 = 16;
/// What is set then. On disks of depth 1 every scheduler was at least as good with it as with 2 or 4.
pub(crate) const ENOUGH: i64 = 64;
/// The fewest that can be written to the kernel's file; it makes these of a smaller number.
pub(crate) const WRITABLE_MIN: i64 = 4;

/// The most tags that the kernel's default counts.
const TAGS_COUNTED: i64 = 128;

/// The schedulers of the kernel that choose between requests.
const CHOOSING: [&str; 3] = ["bfq", "mq-deadline", "kyber"];

/// The number of requests that should be set together with a scheduler; `None` if what comes with it will do,
/// or is not known.
pub(crate) fn to_set_with(disk: &Disk, scheduler: &str) -> Option<i64> {
    let few = by_default(disk).is_some_and(|requests| requests < FEW);
    (few && CHOOSING.contains(&scheduler)).then_some(ENOUGH)
}

/// How many requests come with a scheduler that is chosen for the disk.
fn by_default(disk: &Disk) -> Option<i64> {
    if disk.has_old_queue() {
        return None;
    }
    // Without a scheduler, the requests are the tags.
    let without = disk.runs("none").then(|| disk.queue_number("nr_requests")).flatten();
    let tags = disk.tags.map(i64::from).or(without).filter(|&tags| tags > 0)?;
    Some(2 * tags.min(TAGS_COUNTED))
}

/// What the kernel's scheduler did with 2 requests and with 64, in one sentence; empty for one of which
/// nothing was recorded.
///
/// The figures are of Linux 6.12: from `crates/sim/tests/data/depth-1-nr-requests.csv`, on modelled disks of
/// depth 1, and for bfq on flash from the page that the finding names.
pub(crate) fn recorded(disk: &Disk, scheduler: &str) -> &'static str {
    match (disk.kind == Kind::Rotating, scheduler) {
        (false, "bfq") => {
            "Of ten readers of a disk like those on USB, bfq gives one 30.8 MiB/s and the others 3.0 to 3.8 \
             with 2 requests, and each 5.7 to 6.6 with 64"
        }
        (true, "bfq") => {
            "Ten readers of a rotating disk under bfq get 24 MiB/s together with 2 requests, and 60 with 64"
        }
        (false, "mq-deadline") => {
            "Beside two readers and a writer of a microSD card under mq-deadline, a program starts in 835 ms \
             with 2 requests, and in 388 ms with 64"
        }
        (true, "mq-deadline") => {
            "Beside two readers and a writer of a rotating disk under mq-deadline, a program starts in 2057 \
             ms with 2 requests, and in 1432 ms with 64"
        }
        _ => "",
    }
}
