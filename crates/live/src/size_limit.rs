//! The largest file that this process may write: a limit of its own, which is none of its callers'.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises this process's limit of the size of files (`ulimit -f`) as far as it may, and ignores the signal
/// that ends a process at the limit: a write behind it fails with `EFBIG`. The kernel has checked the limit
/// of a caller in a mount. It is for programs that write for others, at their start.
///
/// # Errors
/// If the limit may not be changed.
pub fn raise_size_limit() -> io::Result<()> {
    // SAFETY: the signal gets no handler, so no code of ours runs in one.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let none = Rlimit { current: None, maximum: None };
    if setrlimit(Resource::Fsize, none).is_err() {
        let limit = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, ..limit })?;
    }
    Ok(())
}
