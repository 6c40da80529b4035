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
