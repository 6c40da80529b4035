//! Threads that wait for a disk's queue: until limits or congestion let them in, and for flushes.
//!
//! Threads that wait for a request of a pool are in the pool's own list ([`super::pools`]).
//!
//! ```text
//!   flush ─► waiters ─► (no flush in flight, the device has room) ─► flushing ─► woken
//!                ▲ threads that ask meanwhile share the next
//! ```

use std::collections::VecDeque;

/// Lists of threads, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Threads that wait until fewer requests wait for limits; and whether the last that found no request is
    /// one.
    limits: VecDeque<u32>,
    pub(super) was_held_up: bool,
    /// Threads that wait until writes are not congested.
    congestion: Vec<u32>,
    /// Threads that wait for the flush in flight, and for the next.
    flushing: Vec<u32>,
    next_flush: Vec<u32>,
}

impl Waiters {
    // ---- limits ------------------------------------------------------------------------------------------

    /// Adds a thread, which has just found no request, if it was held up by a limit. Returns whether it was.
    pub(super) fn wait_for_limits(&mut self, thread: u32) -> bool {
        let is_one = std::mem::take(&mut self.was_held_up);
        if is_one {
            self.limits.push_back(thread);
        }
        is_one
    }

    /// How many threads wait for limits.
    #[inline]
    pub(super) fn held_up(&self) -> usize {
        self.limits.len()
    }

    /// Takes the thread that has waited for limits for longest.
    pub(super) fn pop_held_up(&mut self) -> Option<u32> {
        self.limits.pop_front()
    }

    // ---- congestion --------------------------------------------------------------------------------------

    pub(super) fn wait_for_congestion(&mut self, thread: u32) {
        self.congestion.push(thread);
    }

    /// The thread has waited for long enough.
    pub(super) fn end_wait_for_congestion(&mut self, thread: u32) {
        self.congestion.retain(|&t| t != thread);
    }

    /// Writes are not congested any more.
    pub(super) fn wake_congested(&mut self, woken: &mut VecDeque<u32>) {
        woken.extend(self.congestion.drain(..));
    }

    // ---- flushes -----------------------------------------------------------------------------------------

    pub(super) fn wait_for_flush(&mut self, thread: u32) {
        self.next_flush.push(thread);
    }

    /// Whether a flush is wanted that is not in flight.
    #[inline]
    pub(super) fn want_flush(&self) -> bool {
        !self.next_flush.is_empty()
    }

    /// The threads of the flush in flight; none: none is.
    #[inline]
    pub(super) fn flushing(&self) -> &[u32] {
        &self.flushing
    }

    /// Begins a flush for all threads that want one.
    pub(super) const fn begin_flush(&mut self) {
        std::mem::swap(&mut self.flushing, &mut self.next_flush);
    }

    /// The flush has ended.
    pub(super) fn end_flush(&mut self, woken: &mut VecDeque<u32>) {
        woken.extend(self.flushing.drain(..));
    }
}
