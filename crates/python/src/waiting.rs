//! Work on other threads, while the calling thread reacts to Ctrl-C and tells how far it is.
//!
//! ```text
//!   calling thread: detached, wakes up every 50 ms ─► signals? ─► an exception: stop
//!                         ▲                       └─► progress(done, count)
//!   workers ──── Done ────┘
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;

/// How long a signal may wait.
const LOOK: Duration = Duration::from_millis(50);

/// Tells Python how far it is, if it wants to know.
pub(crate) fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, count: usize) -> PyResult<()> {
    progress.map(|p| p.call1(py, (done, count))).transpose().map(|_| ())
}

/// Waits until all workers have dropped their ends of the channel. Each message is how much is done. An
/// exception of a signal or of `progress` sets `stop`, and is returned when the workers have ended.
pub(crate) fn wait(
    py: Python<'_>,
    done: Receiver<usize>,
    count: usize,
    progress: Option<&Py<PyAny>>,
    stop: &AtomicBool,
) -> PyResult<()> {
    // A receiver is no reference that may go to another thread; behind a lock it is.
    let done = Mutex::new(done);
    let next = || match done.lock() {
        Ok(done) => done.recv_timeout(LOOK),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let mut result = Ok(());
    loop {
        let told = match py.detach(next) {
            Ok(n) => tell(py, progress, n, count),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return result,
        };
        if let Err(e) = told.and_then(|()| py.check_signals())
            && result.is_ok()
        {
            stop.store(true, Ordering::Relaxed);
            result = Err(e);
        }
    }
}
