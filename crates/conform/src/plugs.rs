//! The requests that a task has made and keeps to itself, until it hands them to the scheduler together.
//!
//! A page of write-back becomes part of such a request without the scheduler's lock. The log shows that as it
//! shows a merge in the scheduler (`M`), and other threads' steps under the lock continue meanwhile:
//!
//! ```text
//! fio-7   G  W 96 + 8              a request of its own
//! fio-8   dispatch requests: …  ┐
//! fio-7   M  W 104 + 8          │  fio-7's own; fio-8's step continues
//! fio-8   set_in_service …      ┘
//! fio-7   I  W 96 + 16             from here on others can merge with it
//! ```
//!
//! Linux reads the clock once for all of them (since 6.9): what the scheduler reads at `I` may be the time of
//! `G`, before a slot that has begun since.

use super::line::{Io, Thread};
use fairhead_core::Instant;
use std::collections::BTreeMap;

/// A task keeps fewer requests to itself: the kernel hands them over from 32 on. Those of a log that begins
/// or ends in the middle are forgotten.
const KEPT_MAX: usize = 64;

/// Where a log has more threads, those that keep nothing are forgotten.
const THREADS_MAX: usize = 1024;

/// What a thread keeps.
struct Plug {
    /// When the first of them was made.
    since: Instant,
    /// In the order in which they were made.
    kept: Vec<Io>,
}

/// The requests that the scheduler does not have yet, by thread.
#[derive(Default)]
pub(super) struct Plugs(BTreeMap<Thread, Plug>);

impl Plugs {
    /// A thread has made a request. A flush alone has no sectors, and nothing merges with it.
    pub(super) fn got(&mut self, thread: Thread, at: Instant, io: Io) {
        if io.len == 0 {
            return;
        }
        if self.0.len() >= THREADS_MAX {
            self.0.retain(|_, plug| !plug.kept.is_empty());
        }
        let plug = self.0.entry(thread).or_insert_with(|| Plug { since: at, kept: Vec::new() });
        match plug.kept.len() {
            0 => plug.since = at,
            KEPT_MAX => drop(plug.kept.remove(0)),
            _ => {}
        }
        plug.kept.push(io);
    }

    /// Whether what was merged has become part of a request that the thread keeps.
    pub(super) fn merged(&mut self, thread: Thread, io: &Io) -> bool {
        let kept = self.0.get_mut(&thread).map(|plug| &mut plug.kept).into_iter().flatten();
        for into in kept.rev().filter(|k| (k.op, k.sync) == (io.op, io.sync)) {
            if into.end() == io.start || io.end() == into.start {
                into.start = into.start.min(io.start);
                into.len = into.len.saturating_add(io.len);
                return true;
            }
        }
        false
    }

    /// The scheduler gets a request of the thread.
    pub(super) fn inserted(&mut self, thread: Thread, io: &Io) {
        if let Some(plug) = self.0.get_mut(&thread) {
            plug.kept.retain(|k| k.op != io.op || k.start != io.start);
        }
    }

    /// When the thread made the first of the requests that it keeps, or handed over last.
    pub(super) fn since(&self, thread: Thread) -> Option<Instant> {
        self.0.get(&thread).map(|plug| plug.since)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Context;
    use super::*;
    use fairhead_core::{Duration, Op, Sector};

    fn write(start: u64, len: u32) -> Io {
        Io { op: Op::Write, sync: false, meta: false, start: Sector(start), len }
    }

    fn at(us: u64) -> Instant {
        Instant::EPOCH + Duration::from_us(us)
    }

    #[test]
    fn what_touches_a_kept_request_becomes_part_of_it_until_the_scheduler_has_it() {
        let thread = |pid| Thread { pid, cpu: 0, context: Context::Task };
        let mut plugs = Plugs::default();
        plugs.got(thread(7), at(5), write(96, 8));
        assert!(!plugs.merged(thread(8), &write(104, 8)), "another's");
        assert!(plugs.merged(thread(7), &write(104, 8)) && plugs.merged(thread(7), &write(112, 8)));
        assert!(plugs.merged(thread(7), &write(88, 8)), "in front");
        assert!(!plugs.merged(thread(7), &write(128, 8)), "a gap");
        assert!(!plugs.merged(thread(7), &Io { op: Op::Read, sync: true, ..write(120, 8) }));
        plugs.got(thread(7), at(9), write(500, 8));
        plugs.inserted(thread(7), &write(88, 32));
        assert!(!plugs.merged(thread(7), &write(120, 8)), "it is in the scheduler");
        plugs.inserted(thread(7), &write(500, 8));
        assert_eq!(plugs.since(thread(7)), Some(at(5)), "the clock was read once for both");
        plugs.got(thread(7), at(20), write(120, 8));
        assert_eq!(plugs.since(thread(7)), Some(at(20)));
        plugs.got(thread(9), at(30), write(0, 0));
        assert!(!plugs.merged(thread(9), &write(0, 8)), "a flush");
    }

    #[test]
    fn memory_is_bounded() {
        let mut plugs = Plugs::default();
        for pid in 0..5000 {
            let thread = Thread { pid, cpu: 0, context: Context::Task };
            plugs.got(thread, at(1), write(96, 8));
            plugs.inserted(thread, &write(96, 8));
        }
        assert!(plugs.0.len() <= THREADS_MAX);
        let thread = Thread { pid: 1, cpu: 0, context: Context::Task };
        (0..1000).for_each(|i| plugs.got(thread, at(1), write(100 * i, 8)));
        assert_eq!(plugs.0[&thread].kept.len(), KEPT_MAX);
    }
}
