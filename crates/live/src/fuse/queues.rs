//! The kernel's queues of FUSE over io_uring: one for each processor, with entries in which requests come.
//!
//! ```text
//!   REGISTER ─► kernel has the entry ─► a request comes: ours ─► reply, COMMIT_AND_FETCH ─► kernel has it …
//! ```
//!
//! A caller's request comes in an entry of the queue of the processor that it runs on. If all entries of
//! that queue are ours, it waits. The one command hands over a reply and the entry, and commands go to the
//! kernel with whatever else is in line in the engine's ring, so that a turn of the engine is one call: it
//! replies, fetches, and starts what is for the disk.
//!
//! **Memory.** A payload is as long as the longest request, of which the kernel needs to know beforehand; but
//! only what was once used of it takes memory. Replies to long writes give it back when much is in use.
//!
//! What it does not do: understand requests. Interrupts and what the kernel forgets still come through the
//! device, and so does everything until each queue has an entry.

use super::entry::{self, HEAD, Request, command};
use super::protocol::{DATA_MAX, Header};
use crate::bio::Errno;
use crate::ring::{Ring, Token};
use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

/// The number of entries of all queues, if there are not too many queues: the most requests that can wait for
/// the disk.
const ENTRIES: usize = 1024;
/// The number of entries that a queue has at least.
const QUEUE_MIN: usize = 8;
/// The distance between two heads.
const STEP: usize = 512;
const PAYLOAD: usize = DATA_MAX as usize;

/// The number of processors in a list of the kernel's, such as `0-3,8`; `None` if it is none.
fn count(list: &str) -> Option<usize> {
    let mut all = 0_usize;
    for range in list.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse::<u16>().ok()?, to.parse::<u16>().ok()?);
        all += usize::from(to.checked_sub(from)?) + 1;
    }
    Some(all)
}

/// The number of processors that there can be, each of which has a queue.
fn processors() -> io::Result<usize> {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    count(&list).ok_or_else(|| io::Error::other(format!("processors {list:?}")))
}

/// Memory of whole pages.
#[derive(Debug)]
struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is memory and nothing else, with one owner.
unsafe impl Send for Region {}

impl Region {
    fn new(len: usize) -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(null_mut(), len, access, kind, -1, 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        Ok(Self { start: start.ok_or_else(io::Error::last_os_error)?, len })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was mapped so. The engine drops the ring first, and with it the kernel's use of it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Addresses for the kernel.
#[derive(Debug)]
struct Vectors(Box<[[libc::iovec; 2]]>);

// SAFETY: the addresses are those of memory that belongs to the same `Queues`.
unsafe impl Send for Vectors {}

#[derive(Clone, Copy, Debug)]
struct Entry {
    queue: u16,
    commit: u64,
    /// Whether it has a request and its memory is for us to use.
    is_ours: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Queues {
    device: Fd,
    entries: Vec<Entry>,
    heads: Region,
    payloads: Region,
    vectors: Vectors,
    /// By thread of the engine: whether its entries are registered, and those with a reply that is not in
    /// line yet.
    hands: Vec<(bool, Vec<usize>)>,
}

impl Queues {
    /// Memory for the entries of a queue for each processor, which `hands` threads serve. The device is open
    /// as long as the queues are there.
    pub(super) fn new(device: &File, hands: usize) -> io::Result<Self> {
        let queues = processors()?;
        let each = (ENTRIES / queues).max(QUEUE_MIN);
        let count = each * queues;
        let (heads, payloads) = (Region::new(count * STEP)?, Region::new(count * PAYLOAD)?);
        let vector = |start: NonNull<u8>, len| libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len };
        let vectors = (0..count).map(|i| {
            // SAFETY: both lie inside their region.
            let (head, payload) = unsafe { (heads.start.add(i * STEP), payloads.start.add(i * PAYLOAD)) };
            [vector(head, HEAD), vector(payload, PAYLOAD)]
        });
        let vectors = Vectors(vectors.collect());
        let entries =
            (0..count).map(|i| Entry { queue: (i / each) as u16, commit: 0, is_ours: false }).collect();
        let hands = vec![(false, Vec::new()); hands];
        Ok(Self { device: Fd(device.as_raw_fd()), entries, heads, payloads, vectors, hands })
    }

    /// The thread that serves an entry.
    fn hand(&self, i: usize) -> usize {
        usize::from(self.entries[i].queue) % self.hands.len()
    }

    /// Hands the entries of the thread with this ring to the kernel. The outcome of entry `i` has the token
    /// `first + i`.
    fn register(&mut self, ring: &mut Ring, first: usize) -> io::Result<()> {
        self.hands[ring.hand()].0 = true;
        for (i, entry) in self.entries.iter().enumerate() {
            if self.hand(i) != ring.hand() {
                continue;
            }
            let vectors = self.vectors.0[i].as_ptr();
            let command = UringCmd80::new(self.device, command::REGISTER)
                .cmd(entry::command_data(entry.queue, 0))
                .addr(Some(vectors as u64))
                .build();
            // SAFETY: vectors and memory stay as long as the queues, which the engine drops after the ring.
            unsafe { ring.push_command(with_len(command, 2), Token::Front(first + i))? };
        }
        Ok(())
    }

    /// Whether there is something to [send](Self::send) by the ring of this thread.
    pub(super) fn has_work_for(&self, hand: usize) -> bool {
        self.hands.get(hand).is_some_and(|(is_registered, replied)| !is_registered || !replied.is_empty())
    }

    fn head(&mut self, i: usize) -> &mut [u8; HEAD] {
        assert!(self.entries[i].is_ours, "the kernel has entry {i}");
        // SAFETY: inside the region, zeroed at first, and ours alone until it is committed.
        unsafe { &mut *self.heads.start.as_ptr().add(i * STEP).cast() }
    }

    /// The payload of an entry that has a request.
    pub(super) fn payload(&mut self, i: usize) -> &mut [u8] {
        assert!(self.entries[i].is_ours, "the kernel has entry {i}");
        // SAFETY: inside the region, zeroed at first, and ours alone until it is committed.
        unsafe { std::slice::from_raw_parts_mut(self.payloads.start.as_ptr().add(i * PAYLOAD), PAYLOAD) }
    }

    /// A request has come in this entry. Returns its header, its operands, and how much payload it has. Bytes
    /// that are none are answered.
    pub(super) fn received(&mut self, i: usize) -> Option<(Header, Vec<u8>, usize)> {
        self.entries[i].is_ours = true;
        let Some(request) = Request::parse(self.head(i), PAYLOAD) else {
            let head = self.head(i);
            let unique = Header::parse(head).map_or(0, |header| header.unique);
            self.reply(i, unique, Err(Errno::IO));
            return None;
        };
        let Request { header, commit, operands, payload } = request;
        let (header, operands) = (Header { entry: Some(i as u32), ..header }, operands.to_vec());
        self.entries[i].commit = commit;
        Some((header, operands, payload))
    }

    /// Replies in an entry, with bytes or an error.
    pub(super) fn reply(&mut self, i: usize, unique: u64, result: Result<&[u8], Errno>) {
        let data = result.unwrap_or_default();
        self.payload(i)[..data.len()].copy_from_slice(data);
        entry::put_reply(self.head(i), unique, result.map(|_| ()), data.len());
        let hand = self.hand(i);
        self.hands[hand].1.push(i);
    }

    /// Puts the replies of the thread with this ring in line; at first, all its entries.
    pub(super) fn send(&mut self, ring: &mut Ring, first: usize) -> io::Result<()> {
        let Some((is_registered, _)) = self.hands.get(ring.hand()) else { return Ok(()) };
        if !is_registered {
            self.register(ring, first)?;
        }
        for i in self.hands[ring.hand()].1.drain(..) {
            let entry = &mut self.entries[i];
            entry.is_ours = false;
            let command = UringCmd80::new(self.device, command::COMMIT_AND_FETCH)
                .cmd(entry::command_data(entry.queue, entry.commit))
                .build();
            // SAFETY: as in `register`.
            unsafe { ring.push_command(command, Token::Front(first + i))? };
        }
        Ok(())
    }
}

/// Sets the length of a command, for which the crate has no name.
fn with_len(mut command: Entry128, len: u32) -> Entry128 {
    //= linux-6.18 include/uapi/linux/io_uring.h struct io_uring_sqe
    const LEN: usize = 24;
    const { assert!(size_of::<Entry128>() == 128) };
    // SAFETY: the entry is the kernel's structure of 128 plain bytes, whose length is a word at that offset.
    unsafe { (&raw mut command).cast::<u8>().add(LEN).cast::<u32>().write(len) };
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        for (list, n) in
            [("0\n", Some(1)), ("0-1", Some(2)), ("0-3,8,10-11\n", Some(7)), ("", None), ("3-1", None)]
        {
            assert_eq!(count(list), n, "{list:?}");
        }
    }
}
