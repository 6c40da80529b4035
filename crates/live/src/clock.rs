//! Real time, as the core counts it.

use fairhead_core::units::{Duration, Instant};

/// A clock that never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the one place where real time comes in")]
    pub(crate) fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        let ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::EPOCH + Duration::from_ns(ns)
    }
}

/// Waits of the calling thread end when they should, and with `at_once` as soon as there is a processor at
/// all, before any other program's turn. What is not permitted is left out: [`Lateness`](crate::Lateness)
/// tells.
pub(crate) fn be_punctual(at_once: bool) {
    // SAFETY: it is about the calling thread, and names no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
    if at_once {
        // The ring's workers inherit it: the kernel forks them from this thread, which makes no others.
        let _ = be_urgent(0);
    }
}

/// A thread of this process, 0 for the calling one, gets a processor before any other program's turn, unless
/// it does so already.
///
/// # Errors
/// If that is not permitted.
pub(crate) fn be_urgent(tid: libc::pid_t) -> std::io::Result<()> {
    // musl's own functions of these names refuse: they would have to ask about each thread.
    let lowest: libc::c_int = 1;
    // SAFETY: it names no memory.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) };
    if [libc::SCHED_FIFO, libc::SCHED_RR].map(libc::c_long::from).contains(&policy) {
        return Ok(());
    }
    // SAFETY: the kernel reads the parameters, one number, during the call.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, libc::SCHED_FIFO, &raw const lowest) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
