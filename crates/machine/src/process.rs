//! What a trial needs of the operating system: its clock, its user, and programs that end with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The time of the monotonic clock, in nanoseconds: the clock of the events of [`crate::tracefs`].
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Whether this process has root's user id.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: it takes nothing and always succeeds.
    unsafe { libc::geteuid() == 0 }
}

/// Has the program end with SIGTERM when the thread that starts it ends, also if that is killed. It is in a
/// process group of its own, so that Ctrl-C on a terminal reaches the caller alone.
pub fn ends_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: both calls are allowed between fork and exec, and touch no memory.
        let (asked, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM), libc::getppid()) };
        if asked == -1 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have ended before.
        if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes two system calls, and allocates nothing.
    unsafe { command.process_group(0).pre_exec(ask) }
}
