//! How much memory a run takes, before it starts.
//!
//! What grows with a job file is counted: clients, calls in flight, files, and tables of where files' blocks
//! are. Each is as many as the job file says times what one was measured to take, so that a file of five
//! words that asks for sixteen million calls in flight is known for what it is.
//!
//! ```text
//!   numjobs=4096 iodepth=4096 ─► 4096 clients of 16 KB, 16 777 216 calls in flight of 276 bytes ─► 4.4 GiB
//! ```
//!
//! It does not know how many latencies or pages a run will see: both are bounded, and in the figure for a
//! client and for the host.

use super::client::lanes;
use super::lane::Lane;
use crate::host::Host;
use crate::job::{BlockSize, Engine, Job, JobFile, Layout, Metadata, Size};

/// Bytes of a client with its job and its latencies, and what schedulers keep of its task (7 to 13 KB were
/// counted, `client_memory.rs`).
const CLIENT: u64 = 16_000;
/// Bytes of a file beside what tells where its blocks are: names, page table, read-ahead, position (420 were
/// counted).
const FILE: u64 = 600;
/// Bytes of a call in flight beside its lane: events, and what waits for it.
const CALL: u64 = 100;
/// Bytes of a page in the page cache, with its place in a file's table.
const PAGE: u64 = 40;
/// Bytes of what tells where a piece of a scattered file is, how long the piece is; and those of a block that
/// ext2 allocated.
const PIECE: u64 = 16;
const PIECE_BYTES: u64 = 128 << 10;
const BLOCK: u64 = 9;
const BLOCK_BYTES: u64 = 4096;
/// Bytes for the 64 blocks of a word of the map of visited blocks.
const WORD: u64 = 24;
/// Files have indirect blocks for 4 MiB each, with a byte for whether it was read.
const REGION_BYTES: u64 = 4 << 20;
/// What a run takes whatever it does: programs, tables of the disk and the scheduler.
const BASE: u64 = 64 << 20;

/// How much memory a run takes, about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it, in bytes.
    pub bytes: u64,
    /// The largest part, and its size in bytes.
    pub most: (String, u64),
}

/// Returns the memory that a run of a job file takes on a host, with a disk of `disk_bytes` bytes.
#[must_use]
pub fn memory(jobs: &JobFile, host: &Host, disk_bytes: u64) -> Memory {
    let sum = |of: &dyn Fn(&Job) -> u64| {
        jobs.jobs
            .iter()
            .fold(0_u64, |sum, job| sum.saturating_add(of(job).saturating_mul(job.numjobs.into())))
    };
    let clients = sum(&|_| 1);
    let calls = sum(&|job| lanes(job).into());
    let files = sum(&|job| job.file_count());
    let tables = sum(&|job| tables(job, disk_bytes));
    let lane = size_of::<Lane>() as u64;
    let cached = sum(&|job| if job.direct || job.engine == Engine::Null { 0 } else { data(job, disk_bytes) });
    let parts = [
        (format!("{clients} clients"), clients.saturating_mul(CLIENT)),
        (format!("{calls} calls in flight (numjobs * iodepth)"), calls.saturating_mul(lane + CALL)),
        (format!("{files} files"), files.saturating_mul(FILE)),
        ("the tables of where files' blocks are".to_owned(), tables),
        ("the page cache".to_owned(), cached.min(host.memory) / BLOCK_BYTES * PAGE),
    ];
    let bytes = parts.iter().fold(BASE, |sum, part| sum.saturating_add(part.1));
    let most = parts.into_iter().max_by_key(|part| part.1).unwrap_or_default();
    Memory { bytes, most }
}

/// The bytes of a job's data for each clone.
fn data(job: &Job, disk: u64) -> u64 {
    let files = job.file_count();
    match (job.filesize, job.size) {
        (Some(Size::Bytes(file)), _) => file.saturating_mul(files),
        (_, Some(size)) => size.bytes_of(disk),
        _ => disk,
    }
}

/// What tells where the blocks of a clone's files are, and which of them it has visited.
fn tables(job: &Job, disk: u64) -> u64 {
    if job.program.is_some() || job.engine == Engine::Null {
        return 0;
    }
    let data = data(job, disk);
    let layout = match job.layout {
        _ if job.is_raw_disk() => 0,
        Layout::Scattered => data / PIECE_BYTES * PIECE,
        Layout::Ext2 => data / BLOCK_BYTES * BLOCK,
        Layout::Contiguous | Layout::Interleaved { .. } => 0,
    };
    let cold = if job.metadata == Metadata::Cold { data / REGION_BYTES } else { 0 };
    let one_size = |bs: &BlockSize| matches!(bs, BlockSize::Fixed(_));
    let is_marked = job.rw.random && !job.norandommap && !(one_size(&job.bs.read) && one_size(&job.bs.write));
    // No more blocks are visited than calls are made.
    let blocks = (data / u64::from(job.smallest_block().max(1))).min(job.number_ios.unwrap_or(u64::MAX));
    let marks = if is_marked { blocks / 64 * WORD } else { 0 };
    layout + cold + marks
}
