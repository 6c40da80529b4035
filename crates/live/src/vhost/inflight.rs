//! Memory that survives the server: which requests it has taken and not given back.
//!
//! A server that is killed leaves requests behind that the guest waits for and will not hand over again. So
//! the virtual machine keeps a small file in memory, which the server maps: for each descriptor, whether the
//! chain that begins there is in flight, and a number that tells the order. The next server gets the file
//! back and does these requests again, in that order.
//!
//! ```text
//!   taken:       counter, in flight := 1
//!   given back:  last head := it; used ring; in flight := 0; used index := that of the used ring
//! ```
//!
//! If a server dies in the middle of giving back, the used indices differ: the last head is done, though its
//! mark says that it is in flight.
//!
//! To do a request again changes nothing: a read, a write or a discard may be done twice, as long as nothing
//! that depends on it has begun, and the guest has no answer yet.
//!
//! Source: QEMU's documentation, *Vhost-user Protocol*, section "Inflight I/O tracking", split virtqueue.

use super::memory::check_is_memory;
use super::sigbus::Mapping;
use super::split_ring::SIZE_MAX;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering, fence};

/// The bytes in front of the descriptors' marks, and of each mark.
const HEAD: usize = 16;
const MARK: usize = 16;

/// Places in the head.
const VERSION: usize = 8;
const COUNT: usize = 10;
const LAST_HEAD: usize = 12;
const USED: usize = 14;

/// Places in a mark.
const IN_FLIGHT: usize = 0;
const COUNTER: usize = 8;

/// The version of the layout; 0 means that nothing has been written yet.
const LAYOUT: u16 = 1;

/// The bytes for each ring.
fn stride(size: u16) -> usize {
    (HEAD + MARK * usize::from(size)).next_multiple_of(64)
}

/// The bytes that these rings need.
pub(super) fn needed(rings: u16, size: u16) -> u64 {
    stride(size) as u64 * u64::from(rings)
}

/// Makes the file, of zeros. Its size cannot be changed.
pub(super) fn create(rings: u16, size: u16) -> io::Result<File> {
    // SAFETY: the name ends with a zero.
    let fd = unsafe {
        libc::memfd_create(c"fairhead-inflight".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is new, and nothing else knows its number.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(needed(rings, size))?;
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: it names no memory.
    if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// The marks of all rings of a device.
#[derive(Clone, Debug)]
pub(super) struct Inflight {
    mapping: Arc<Mapping>,
    skipped: usize,
    rings: u16,
    size: u16,
}

impl Inflight {
    /// Maps the file that a virtual machine brings.
    ///
    /// # Errors
    /// If it is no memory, or too short.
    pub(super) fn open(file: &File, offset: u64, len: u64, rings: u16, size: u16) -> io::Result<Self> {
        check_is_memory(file)?;
        let end = offset.checked_add(len).filter(|end| file.metadata().is_ok_and(|m| *end <= m.len()));
        if size == 0
            || size > SIZE_MAX
            || rings == 0
            || len < needed(rings, size)
            || end.is_none()
            || !offset.is_multiple_of(8)
        {
            return Err(io::Error::other(
                "a region for requests in flight that is too small or has no such rings",
            ));
        }
        let begin = offset / 4096 * 4096;
        let skipped = (offset - begin) as usize;
        let mapped = skipped + needed(rings, size) as usize;
        let mapping = Arc::new(Mapping::new(file.as_fd(), begin, mapped.next_multiple_of(4096))?);
        Ok(Self { mapping, skipped, rings, size })
    }

    /// The marks of a ring of `size` descriptors; `None` if there are none for it.
    pub(super) fn of_ring(&self, ring: usize, size: u16) -> Option<RingMarks> {
        let is_there = ring < usize::from(self.rings) && size <= self.size;
        is_there.then(|| RingMarks {
            mapping: Arc::clone(&self.mapping),
            base: self.skipped + ring * stride(self.size),
            size,
            counter: 0,
        })
    }
}

/// The marks of a ring.
#[derive(Debug)]
pub(super) struct RingMarks {
    mapping: Arc<Mapping>,
    base: usize,
    size: u16,
    counter: u64,
}

impl RingMarks {
    fn at(&self, at: usize) -> *mut u8 {
        // SAFETY: each place that is asked for is inside what `needed` says, which is mapped.
        unsafe { self.mapping.start().as_ptr().add(self.base + at) }
    }

    fn number(&self, at: usize) -> &AtomicU16 {
        // SAFETY: an even place in the mapping, which this holds.
        unsafe { AtomicU16::from_ptr(self.at(at).cast()) }
    }

    fn mark(&self, head: u16) -> &AtomicU8 {
        // SAFETY: a place in the mapping, which this holds.
        unsafe { AtomicU8::from_ptr(self.at(HEAD + MARK * usize::from(head) + IN_FLIGHT)) }
    }

    fn counter(&self, head: u16) -> &AtomicU64 {
        // SAFETY: a multiple of 8 in the mapping, which this holds.
        unsafe { AtomicU64::from_ptr(self.at(HEAD + MARK * usize::from(head) + COUNTER).cast()) }
    }

    /// A server begins with the ring, whose used index is `used`. Returns the heads of the requests that are
    /// to be done again, in order.
    pub(super) fn begin(&mut self, used: u16) -> Vec<u16> {
        if self.number(VERSION).load(Ordering::Relaxed) == 0 {
            self.number(VERSION).store(LAYOUT, Ordering::Relaxed);
            self.number(COUNT).store(self.size, Ordering::Relaxed);
            self.number(USED).store(used, Ordering::Relaxed);
        }
        let last = self.number(LAST_HEAD).load(Ordering::Relaxed);
        if self.number(USED).load(Ordering::Relaxed) != used && last < self.size {
            self.mark(last).store(0, Ordering::Relaxed);
        }
        self.number(USED).store(used, Ordering::Relaxed);
        let is_in_flight = |head: &u16| self.mark(*head).load(Ordering::Relaxed) == 1;
        let mut heads: Vec<u16> = (0..self.size).filter(is_in_flight).collect();
        heads.sort_by_key(|head| self.counter(*head).load(Ordering::Relaxed));
        let last = heads.last().map_or(0, |head| self.counter(*head).load(Ordering::Relaxed));
        self.counter = last.wrapping_add(1);
        heads
    }

    /// A request is taken.
    pub(super) fn taken(&mut self, head: u16) {
        self.counter(head).store(self.counter, Ordering::Relaxed);
        self.counter = self.counter.wrapping_add(1);
        // The order of writes is what the next server relies on; they are read only after this one is dead.
        fence(Ordering::Release);
        self.mark(head).store(1, Ordering::Release);
    }

    /// A request is about to be given back.
    pub(super) fn gives_back(&self, head: u16) {
        self.number(LAST_HEAD).store(head, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// It is given back, and `used` is the ring's index now.
    pub(super) fn gave_back(&self, head: u16, used: u16) {
        fence(Ordering::SeqCst);
        self.mark(head).store(0, Ordering::Release);
        fence(Ordering::Release);
        self.number(USED).store(used, Ordering::Release);
    }

    /// Whether the file was cut off.
    pub(super) fn is_lost(&self) -> bool {
        self.mapping.is_lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(file: &File, ring: usize) -> RingMarks {
        Inflight::open(file, 0, needed(2, 8), 2, 8).unwrap().of_ring(ring, 8).unwrap()
    }

    #[test]
    fn the_next_server_does_again_what_was_in_flight() {
        let file = create(2, 8).unwrap();
        let mut first = marks(&file, 1);
        assert_eq!(first.begin(0), [0u16; 0]);
        [5, 2, 7].into_iter().for_each(|head| first.taken(head));
        first.gives_back(2);
        first.gave_back(2, 1);
        first.taken(2);
        assert_eq!(marks(&file, 1).begin(1), [5, 7, 2]);
        assert_eq!(marks(&file, 0).begin(0), [0u16; 0], "rings do not share marks");
    }

    #[test]
    fn what_the_used_ring_has_is_done() {
        let file = create(2, 8).unwrap();
        let mut first = marks(&file, 0);
        first.begin(100);
        first.taken(3);
        first.taken(4);
        first.gives_back(3);
        // The ring has it, and the server dies.
        let mut second = marks(&file, 0);
        assert_eq!(second.begin(101), [4]);
        second.gives_back(4);
        assert_eq!(marks(&file, 0).begin(101), [4], "the ring has it not");
    }

    #[test]
    fn files_are_checked() {
        let file = create(2, 8).unwrap();
        assert!(file.set_len(10).is_err(), "sealed");
        let len = needed(2, 8);
        for (offset, len, rings, size) in [
            (0, len, 3, 8),
            (0, len, 2, 64),
            (8, len, 2, 8),
            (0, len, 0, 8),
            (0, len, 2, 0),
            (u64::MAX, len, 2, 8),
            (0, len - 1, 2, 8),
        ] {
            assert!(
                Inflight::open(&file, offset, len, rings, size).is_err(),
                "{offset} {len} {rings} {size}"
            );
        }
        let all = Inflight::open(&file, 0, len, 2, 8).unwrap();
        assert!(all.of_ring(2, 8).is_none() && all.of_ring(0, 16).is_none());
    }
}
