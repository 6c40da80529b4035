//! Programs that no pattern describes: a file system check and a table scan.
//!
//! *fsck* reads the metadata of an ext2 file system on the whole disk, in the order of e2fsck: the inode
//! tables of all groups (pass 1: 510 blocks each, every 128 KiB followed by 1.93 ms of checking), then all
//! bitmaps (pass 5: two blocks of each group). The directories in between are taken as cached. It reads the
//! disk through the page cache with ordinary read-ahead.
//!
//! ```text
//!   group 0              group 1                    230 groups, 126 MiB apart
//!   |bb|iiiiiiiiiii…     |bb|iiiiiiiiii…            pass 1: i i i …   pass 5: bb bb bb …
//! ```
//!
//! *dbscan* reads a table of 880 MB from its first to its last page, 8 KiB at a time, with 0.3 ms of CPU for
//! each 128 KiB. It has one window of read-ahead in flight, not two as other readers: the next one is sent
//! for when the first page of the one before is used.
//!
//! An application's start-up is in `startup`, a media player in `player`.
//!
//! Both run once and end, whatever `size` says of other jobs; a `size` given to dbscan is the table's.
//
//= docs/reference/hosts.md#workloads
//= docs/reference/published-results.md#8-what-the-rows-say-about-the-machines
//= docs/reference/hosts.md#workloads

use crate::job::Program;
use fairhead_core::{Duration, Instant};

/// One read: offset and length in sectors, and the CPU time that the program spends on its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) cpu: Duration,
    /// The number of blocks of 4 KiB behind it that are requested, and not waited for.
    pub(super) burst: u32,
    /// Whether it is flagged as metadata.
    pub(super) meta: bool,
}

/// What a client with a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A start-up begins: the page cache is to be dropped. Then ask again.
    Begin,
    /// Make this read.
    Read(Step),
    /// Do nothing until then.
    Pause(Instant),
    /// Do nothing more.
    End,
}

/// Bytes of the table that `dbscan` reads, unless `size` says otherwise.
//= docs/reference/hosts.md#workloads: 6.0 M rows; 13 428 requests of 128 KiB for two scans
pub(super) const TABLE_BYTES: u64 = 880_000_000;

/// Bytes of the file of each process that replays a recorded start-up, unless `size` says otherwise.
pub(super) const REPLAY_BYTES: u64 = 20 << 20;

const GROUPS: u64 = 230;
/// 126 MiB in sectors.
const GROUP_SECTORS: u64 = 126 * 2048;
const BLOCK_SECTORS: u64 = 8;
const BITMAP_SECTORS: u64 = 2 * BLOCK_SECTORS;
const INODE_SECTORS: u64 = 510 * BLOCK_SECTORS;
/// e2fsck reads inode tables 8 blocks at a time.
//= e2fsprogs-1.34 lib/ext2fs/inode.c, inode_buffer_blocks
const FSCK_READ_SECTORS: u64 = 8 * BLOCK_SECTORS;
/// 128 KiB, to which the CPU times refer.
const UNIT_SECTORS: u64 = 256;
const FSCK_CPU: Duration = Duration::from_us(1_930);
const SCAN_CPU: Duration = Duration::from_us(300);
const SCAN_READ_SECTORS: u64 = 16;

/// A running program.
#[derive(Clone, Debug)]
pub(super) enum Running {
    /// The pass, the group, and sectors of the group's part that have been read.
    Fsck { stride: u64, pass_bitmaps: bool, group: u64, done: u64 },
    /// Sectors read, of how many.
    Scan { done: u64, size: u64 },
}

impl Running {
    /// Starts the program on a file (or disk) of this many sectors. `None`: it has an engine of its own.
    pub(super) fn new(program: Program, sectors: u64) -> Option<Self> {
        Some(match program {
            // On a smaller disk the groups move together, on a larger one the file system covers its
            // beginning.
            Program::Fsck => {
                let stride = GROUP_SECTORS.min(sectors / GROUPS / BLOCK_SECTORS * BLOCK_SECTORS);
                Self::Fsck { stride, pass_bitmaps: false, group: 0, done: 0 }
            }
            Program::DbScan => Self::Scan { done: 0, size: sectors },
            Program::StartUp(_) | Program::Player { .. } | Program::Replay | Program::Trace => return None,
        })
    }

    /// The next read, until the program ends.
    pub(super) fn next(&mut self) -> Option<Step> {
        match self {
            Self::Scan { done, size } => {
                let len = SCAN_READ_SECTORS.min(*size - *done);
                let step = step(*done, len, SCAN_CPU);
                *done += len;
                (len > 0).then_some(step)
            }
            Self::Fsck { stride, pass_bitmaps, group, done } => {
                if *group == GROUPS && !*pass_bitmaps {
                    (*pass_bitmaps, *group) = (true, 0);
                }
                if *group == GROUPS {
                    return None;
                }
                let (from, all) =
                    if *pass_bitmaps { (0, BITMAP_SECTORS) } else { (BITMAP_SECTORS, INODE_SECTORS) };
                // A tiny disk has room for the beginning of the tables only.
                let all = all.min(stride.saturating_sub(from));
                let len = FSCK_READ_SECTORS.min(all - *done);
                let cpu = if *pass_bitmaps { Duration::ZERO } else { FSCK_CPU };
                let step = step(*group * *stride + from + *done, len, cpu);
                *done += len;
                if *done == all {
                    (*group, *done) = (*group + 1, 0);
                }
                (len > 0).then_some(step)
            }
        }
    }
}

fn step(offset: u64, len: u64, cpu: Duration) -> Step {
    #[allow(clippy::cast_possible_truncation, reason = "at most 64 sectors")]
    Step { offset, len: len as u32, cpu: cpu * len / UNIT_SECTORS, burst: 0, meta: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut program: Running) -> Vec<Step> {
        std::iter::from_fn(|| program.next()).collect()
    }

    #[test]
    fn fsck_reads_all_inodes_then_all_bitmaps() {
        let steps = all(Running::new(Program::Fsck, 60_000_000).unwrap());
        // 510 blocks are 63 reads of 8 and one of 6.
        assert_eq!(steps.len(), 230 * 64 + 230);
        let sectors: u64 = steps.iter().map(|s| u64::from(s.len)).sum();
        assert_eq!(sectors, 230 * 512 * 8);
        let cpu: u64 = steps.iter().map(|s| s.cpu.as_us()).sum();
        // 230 groups of 15.94 units of 1.93 ms.
        assert!(cpu.abs_diff(7_074_900) < 20_000, "{cpu} us");
        assert_eq!(steps[64].offset, 126 * 2048 + 16, "the second group's inodes");
        assert_eq!(steps.last().unwrap().offset, 229 * 126 * 2048, "the last group's bitmaps");
    }

    #[test]
    fn on_a_small_disk_the_groups_move_together() {
        for sectors in [20_000_000, 1_000_000, 100_000, 2000] {
            let steps = all(Running::new(Program::Fsck, sectors).unwrap());
            assert!(steps.iter().all(|s| s.offset + u64::from(s.len) <= sectors), "{sectors}");
        }
    }

    #[test]
    fn a_scan_reads_the_table_once_from_end_to_end() {
        let steps = all(Running::new(Program::DbScan, TABLE_BYTES.div_ceil(512)).unwrap());
        let mut at = 0;
        for s in &steps {
            assert_eq!(s.offset, at);
            at += u64::from(s.len);
        }
        assert_eq!(at, 1_718_750);
        let cpu: u64 = steps.iter().map(|s| s.cpu.as_ns()).sum();
        assert!(cpu.abs_diff(6_714 * 300_000) < 300_000, "{cpu} ns");
    }
}
