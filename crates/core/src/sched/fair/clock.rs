//! The clock of a group with a guarantee, which says when its next request is due.
//!
//! The groups that have one wait in [`Reserve`](super::reserve::Reserve).

use crate::units::{Duration, Instant};

/// Of the clock's step: 15/16.
const PACE: (u64, u64) = (15, 16);

/// A group's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Between two requests; zero: there is no guarantee.
    pub(super) step: Duration,
    pub(super) due: Option<Instant>,
}

impl Clock {
    /// Sets the guarantee, in requests a second.
    pub(super) fn set(&mut self, iops: u32) {
        let second = Duration::from_secs(1).as_ns();
        self.step = match u64::from(iops) {
            0 => Duration::ZERO,
            iops => Duration::from_ns((second * PACE.0 / PACE.1 / iops).max(1)),
        };
    }

    pub(super) const fn is_set(&self) -> bool {
        !self.step.is_zero()
    }
}
