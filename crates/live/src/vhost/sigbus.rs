//! Shared memory that its owner may cut off under us.
//!
//! A guest's memory is a file that another process has, too. If that process makes the file shorter, an
//! access behind the new end raises SIGBUS, which ends a program that does nothing about it: one tenant
//! could stop the server for all. So each [`Mapping`] is entered in a table, and a handler of the signal
//! puts memory of our own, all zeros, in the place of a mapping whose file has gone. The access then
//! continues, and [`Mapping::is_lost`] says that nothing in there is to be believed any more.
//!
//! What the kernel does with such memory on our behalf fails with `EFAULT`, and raises nothing.
//!
//! A SIGBUS from anywhere else goes to the handler that there was before.
//!
//! Source: sigaction(2), mmap(2); of what a handler may do, signal-safety(7): `mmap` is a system call and no
//! more.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many mappings there can be in a process.
const SLOTS: usize = 4096;

struct Slot {
    /// 0 if it is free.
    start: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), is_lost: AtomicBool::new(false) }
}; SLOTS];

/// The slots from here on have never been used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A place in the table that belongs to nothing yet.
const CLAIMED: usize = 1;

struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, before the handler is there that reads it.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::uninit()));

/// A shared mapping of a file.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    slot: usize,
}

// SAFETY: memory that other processes change at any time anyway; who uses it copies bytes, or uses atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of a file from `offset` on, to read and write.
    ///
    /// # Errors
    /// What the kernel says; or if there are too many mappings.
    pub(super) fn new(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Self> {
        install()?;
        let slot = claim().ok_or_else(|| io::Error::other("too many regions of memory are mapped"))?;
        let release = |e| {
            TABLE[slot].start.store(0, Ordering::Release);
            Err(e)
        };
        let Ok(offset) = i64::try_from(offset) else {
            return release(io::Error::from_raw_os_error(libc::EOVERFLOW));
        };
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(null_mut(), len, rights, flags, file.as_raw_fd(), offset) };
        if start == libc::MAP_FAILED {
            return release(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return release(io::Error::other("a mapping at address 0"));
        };
        // A child process has no business with it, and a core file is no place for a guest's memory.
        for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
            // SAFETY: the mapping is ours.
            unsafe { libc::madvise(start.as_ptr().cast(), len, advice) };
        }
        TABLE[slot].is_lost.store(false, Ordering::Relaxed);
        TABLE[slot].len.store(len, Ordering::Relaxed);
        TABLE[slot].start.store(start.as_ptr() as usize, Ordering::Release);
        Ok(Self { start, len, slot })
    }

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether the file was cut off, and what is here is memory of our own.
    pub(super) fn is_lost(&self) -> bool {
        TABLE[self.slot].is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        TABLE[self.slot].start.store(CLAIMED, Ordering::Release);
        // SAFETY: it was mapped so, and who uses it holds this.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        TABLE[self.slot].start.store(0, Ordering::Release);
    }
}

fn claim() -> Option<usize> {
    let is_free =
        |slot: &Slot| slot.start.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let slot = TABLE.iter().position(is_free)?;
    USED.fetch_max(slot + 1, Ordering::AcqRel);
    Some(slot)
}

fn install() -> io::Result<()> {
    static ONCE: Once = Once::new();
    static IS_THERE: AtomicBool = AtomicBool::new(false);
    ONCE.call_once(|| {
        // SAFETY: all zeros are a valid value of it: no flags, and no signals blocked.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler is safe in a signal; the place for what was before is written here only.
        let result = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, BEFORE.0.get().cast()) };
        IS_THERE.store(result == 0, Ordering::Release);
    });
    match IS_THERE.load(Ordering::Acquire) {
        true => Ok(()),
        false => Err(io::Error::other("SIGBUS cannot be handled")),
    }
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands in what it knows.
    let at = unsafe { (*info).si_addr() } as usize;
    let used = USED.load(Ordering::Acquire);
    for slot in &TABLE[..used] {
        let (start, len) = (slot.start.load(Ordering::Acquire), slot.len.load(Ordering::Relaxed));
        if start <= CLAIMED || at < start || at - start >= len {
            continue;
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: errno is this thread's own.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: it takes the place of a mapping that is ours; who uses it holds it, as one of them has just
        // come here.
        let result = unsafe { libc::mmap(start as *mut libc::c_void, len, rights, flags, -1, 0) };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        if result != libc::MAP_FAILED {
            slot.is_lost.store(true, Ordering::Relaxed);
            return;
        }
    }
    // Not ours: the next attempt goes to the handler that was there before.
    // SAFETY: it was filled in before this handler was called.
    unsafe { libc::sigaction(signal, BEFORE.0.get().cast(), null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{AsFd, FromRawFd};

    fn memory(len: u64) -> File {
        // SAFETY: the name ends with a zero; the descriptor is new.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), 0)) };
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn memory_that_is_cut_off_reads_as_zeros_and_is_lost() {
        let file = memory(1 << 20);
        let (first, second) =
            (Mapping::new(file.as_fd(), 0, 1 << 19), Mapping::new(file.as_fd(), 1 << 19, 1 << 19));
        let (first, second) = (first.unwrap(), second.unwrap());
        for mapping in [&first, &second] {
            // SAFETY: inside the mapping.
            unsafe { mapping.start().as_ptr().add(4096).write_volatile(7) };
        }
        file.set_len(1 << 19).unwrap();
        // SAFETY: inside the mapping.
        let read = |mapping: &Mapping| unsafe { mapping.start().as_ptr().add(4096).read_volatile() };
        assert_eq!((read(&first), first.is_lost()), (7, false));
        assert_eq!((read(&second), second.is_lost()), (0, true));
        // SAFETY: inside the mapping.
        unsafe { second.start().as_ptr().write_volatile(3) };
        let slot = second.slot;
        drop(second);
        assert_eq!(TABLE[slot].start.load(Ordering::Relaxed), 0, "the place is free again");
    }

    #[test]
    fn what_cannot_be_mapped_takes_no_place() {
        let file = memory(4096);
        assert!(Mapping::new(file.as_fd(), 1, 4096).is_err(), "offsets are whole pages");
        assert!(Mapping::new(file.as_fd(), u64::MAX, 4096).is_err());
        assert!(Mapping::new(file.as_fd(), 0, usize::MAX / 2).is_err());
    }
}
