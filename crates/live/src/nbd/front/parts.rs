//! How much of a request is done at a time, what the scheduler charges for that, and what memory it takes.

use crate::nbd::session::{Command, Request};

/// The cost of a question about block status, in bytes that are read: a block of the file system's metadata.
const STATUS_COST: u32 = 4096;

/// The most bytes of a discard, of zeroing or of a question that are done at a time. What is longer is done
/// part by part, so that a client has no more in the queue than with short headers.
const PART_MAX: u64 = 1 << 30;

/// The bytes that are done next of a request of which `done` are done. The client asks for the rest of a
/// question again.
pub(super) fn part_len(request: &Request, done: u64) -> u32 {
    (request.len - done).min(PART_MAX) as u32
}

/// The bytes of the next part of a request that the scheduler charges.
pub(super) fn bio_len(request: &Request, done: u64) -> u32 {
    match request.command {
        Command::Status { .. } => part_len(request, done).min(STATUS_COST),
        _ => part_len(request, done),
    }
}

/// What memory that is aligned for direct I/O takes besides what is in it, at most: the allocator leaves a
/// gap. A block of [`ALONE`] bytes or more is mapped alone, without one.
const GAP: u64 = 4096;
const ALONE: u64 = 128 << 10;

/// How much memory the data of a request take.
pub(super) fn data_len(request: &Request) -> u64 {
    match request.command {
        Command::Write if request.len < ALONE => request.len + GAP,
        Command::Read | Command::Write => request.len,
        _ => 0,
    }
}
