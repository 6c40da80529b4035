//! The eventfds through which a guest and the server wake each other.
//!
//! They belong to the virtual machine's process as well, so nothing that it does with them may stop the
//! thread that serves everybody. To write to an eventfd whose counter is full waits until it is read,
//! unless the descriptor does not block; and whether it blocks, the other process can change. So a signal is
//! sent in another way: the kernel itself signals an eventfd when a ring has an outcome, and that never
//! waits. Each [`Caller`] has a small ring with the guest's eventfd, and an operation that does nothing is
//! all that goes through it. The same registration proves that the file is an eventfd at all.
//!
//! To read one, [`drain`] asks the kernel not to wait.

use io_uring::opcode::Nop;
use io_uring::{IoUring, squeue};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Wakes a guest.
pub(super) struct Caller {
    ring: IoUring,
    /// Registered: closed with the ring.
    _file: File,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caller")
    }
}

impl Caller {
    /// # Errors
    /// If it is no eventfd, or there can be no ring.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(1)?;
        ring.submitter().register_eventfd(file.as_raw_fd())?;
        Ok(Self { ring, _file: file })
    }

    /// Signals once. Does not wait, whatever the counter.
    pub(super) fn call(&mut self) {
        let entry = Nop::new().build().flags(squeue::Flags::empty());
        self.ring.completion().for_each(drop);
        // SAFETY: it names no memory. There is room: each was submitted before the next one came.
        let _ = unsafe { self.ring.submission().push(&entry) };
        // It is not known to fail; then the guest notices with the next signal.
        let _ = self.ring.submit();
    }
}

/// Refuses a file that is no eventfd.
pub(super) fn check(file: &File) -> io::Result<()> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let is_event = link.as_os_str() == "anon_inode:[eventfd]";
    if is_event { Ok(()) } else { Err(io::Error::other("a file that is no eventfd")) }
}

/// Sets the counter of an eventfd back to zero. Does not wait.
pub(super) fn drain(file: &File) {
    let mut count = [0u8; 8];
    let vector = libc::iovec { iov_base: count.as_mut_ptr().cast(), iov_len: count.len() };
    // SAFETY: eight bytes, which outlive the call. There is nothing to do if it is zero already.
    unsafe { libc::preadv2(file.as_raw_fd(), &raw const vector, 1, -1, libc::RWF_NOWAIT) };
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::FromRawFd;

    pub(in crate::vhost) fn event(flags: i32) -> File {
        // SAFETY: the descriptor is new.
        unsafe { File::from_raw_fd(libc::eventfd(0, flags)) }
    }

    fn count(mut file: &File) -> u64 {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn each_call_counts_and_a_full_counter_stops_nobody() {
        let file = event(0);
        let mut caller = match Caller::new(file.try_clone().unwrap()) {
            Ok(caller) => caller,
            Err(e) => return println!("skipped: io_uring: {e}"),
        };
        for n in [1, 5, 3000] {
            (0..n).for_each(|_| caller.call());
            assert_eq!(count(&file), n);
        }
        (&file).write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        caller.call();
        caller.call();
        assert_eq!(count(&file), u64::MAX, "as much as there can be");
        caller.call();
        assert_eq!(count(&file), 1);
    }

    #[test]
    fn what_is_no_eventfd_is_refused() {
        let null = File::open("/dev/null").unwrap();
        assert!(check(&null).is_err() && check(&event(0)).is_ok());
        assert!(Caller::new(null).is_err());
    }

    #[test]
    fn to_drain_an_empty_one_does_not_wait() {
        let file = event(0);
        drain(&file);
        (&file).write_all(&3u64.to_ne_bytes()).unwrap();
        drain(&file);
        drain(&file);
        (&file).write_all(&1u64.to_ne_bytes()).unwrap();
        assert_eq!(count(&file), 1);
    }
}
