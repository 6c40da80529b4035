//! Streams: a task that reads on and on is not a program that starts. Ours, not the kernel's.
//!
//! A new task is raised as interactive for seconds, for it may be a program that starts. A reader that has
//! just begun looks the same, until it has read 60 MB. A few of them are raised together: the disk is not
//! kept for any of them, seeks between them at every request, and so takes all the longer to find out. A
//! program that starts then is one of many.
//!
//! What tells them apart is the way in which they read. A program reads many pieces here and there; a reader
//! reads on where it stopped. Of xterm's 179 runs (5.9 MiB) the longest has 560 KiB. So:
//!
//! ```text
//!   sectors in one piece   0 ─────────── 1 MiB ──────────────────────────────────► seek
//!   interactive raising    raised        suspended                                 resumes, if less than half of what was
//!                                                                                  read while raised lay beyond such a MiB
//! ```
//!
//! - Raising is *suspended*: a program that reads one large file in its start gets back what is left of its
//!   period.
//! - A queue that is raised itself is idled for if that makes for throughput, as any other stream is: each
//!   reader that has just begun gets through its first MiB in a slot.
//! - A stream counts in no burst, for that is about short tasks. If fewer than eight are left, each of these
//!   is raised after all when it reads elsewhere: a program that begins in the same moment as ten readers is
//!   found among them.
//! - The first slot of a newcomer that is raised, or in a large burst, is just long enough to find out.
//! - No queue becomes one with a sequential one because both began together.
//!
//! What it does not do: tell apart those that read at random; look at soft real-time, where a film is a slow
//! stream; or at async writes, which are raised by other rules. No kernel does this: the switch `streams` is
//! off by default, and on in live engines.

use crate::request::Request;
use crate::sched::bfq::view::{Effect, QueueId};
use crate::table::Table;
use crate::units::{Duration, Instant, Sector};

/// Sectors in one piece that make a run of reads a stream. A program's files are read in smaller runs, as
/// they are mapped or small; and as much is read in the time of one seek or two, so that finding out costs
/// about what reading it elsewhere would.
const STREAM: u64 = 2048;

/// Sectors that a new queue may send in its first slot: a little more than [`STREAM`].
const FIRST: u32 = 2560;

/// In which pieces a queue reads.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The sector at which the next read continues the present run.
    end: Sector,
    /// How long the present run is, in sectors.
    run: u64,
    /// How many runs there have been.
    runs: u32,
    /// Sectors of the runs before, since raising began.
    service: u64,
    /// How many of these were further than [`STREAM`] into a run.
    beyond: u64,
    /// The interactive raising that was suspended: when it began, for how long.
    suspended: Option<(Instant, Duration)>,
}

impl Stream {
    const NONE: Self = Self { end: Sector(0), run: 0, runs: 0, service: 0, beyond: 0, suspended: None };

    /// Counts a request. Answers whether it begins another run.
    fn count(&mut self, rq: &Request) -> bool {
        let jumps = rq.start != self.end;
        if jumps {
            self.service += self.run;
            self.beyond += self.run.saturating_sub(STREAM);
            self.run = 0;
            self.runs = self.runs.saturating_add(1);
        }
        self.run += u64::from(rq.len.0);
        self.end = rq.end();
        jumps
    }

    /// Whether at most half of what was read lay beyond the first MiB of a run.
    const fn reads_elsewhere(&self) -> bool {
        let beyond = self.beyond + self.run.saturating_sub(STREAM);
        beyond * 2 <= self.service + self.run
    }
}

/// How all queues read.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    /// Whether streams are looked for.
    pub(crate) on: bool,
    queues: Table<QueueId, Stream>,
}

impl Streams {
    /// Nothing has been read. Allocates.
    pub(crate) fn new(on: bool, queues: usize) -> Self {
        Self { on, queues: Table::new(queues, Stream::NONE) }
    }

    /// How much a queue may send in the first slot of its start at most, in sectors: enough to be known as a
    /// stream.
    pub(crate) fn first_budget(&self, smallest: u32) -> u32 {
        if self.on { FIRST.max(2 * smallest) } else { 2 * smallest }
    }

    /// A queue is created.
    pub(crate) fn created(&mut self, q: QueueId) {
        self.queues[q] = Stream::NONE;
    }

    /// `rq` of `q` goes to the device; `counts` answers whether the queue is raised, or would be but for its
    /// burst.
    #[inline(always)]
    pub(crate) fn dispatched(&mut self, q: QueueId, rq: &Request, counts: impl FnOnce() -> bool) -> Effect {
        if !self.on || !rq.sync {
            return Effect::None;
        }
        let (counts, stream) = (counts(), &mut self.queues[q]);
        if !counts && stream.suspended.is_none() {
            return Effect::None;
        }
        let jumps = stream.count(rq);
        if counts && stream.run > STREAM {
            Effect::Streams
        } else if jumps && stream.suspended.is_some() {
            Effect::StreamEnded
        } else {
            Effect::None
        }
    }

    /// Interactive raising that began at `start`, for `len`, is suspended while `q` reads on.
    pub(crate) fn suspend(&mut self, q: QueueId, start: Instant, len: Duration) {
        self.queues[q].suspended = Some((start, len));
    }

    /// The run of `q` is over. If that was a piece of a program's start, answers the raising that resumes:
    /// since when, for how long.
    pub(crate) fn resume(&mut self, q: QueueId) -> Option<(Instant, Duration)> {
        let stream = &mut self.queues[q];
        if stream.reads_elsewhere() { stream.suspended.take() } else { None }
    }

    /// Whether `q` has read in more places than one.
    pub(crate) fn has_jumped(&self, q: QueueId) -> bool {
        self.queues[q].runs > 1
    }

    /// Raising begins anew: what `q` read before says nothing.
    pub(crate) fn raised(&mut self, q: QueueId) {
        self.queues[q] = Stream { end: self.queues[q].end, ..Stream::NONE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Id, Sectors, TaskId};

    fn q() -> QueueId {
        QueueId::from_index(2)
    }

    fn read(start: u64, len: u32) -> Request {
        Request::read(TaskId(1), Sector(start), Sectors(len))
    }

    fn new() -> Streams {
        Streams::new(true, 4)
    }

    fn period() -> (Instant, Duration) {
        (Instant::EPOCH + Duration::from_ms(5), Duration::from_secs(9))
    }

    #[test]
    fn more_than_a_mib_in_one_piece_is_a_stream() {
        let mut streams = new();
        assert_eq!(streams.dispatched(q(), &read(5000, 1024), || true), Effect::None);
        assert_eq!(streams.dispatched(q(), &read(6024, 1024), || true), Effect::None);
        assert_eq!(streams.dispatched(q(), &read(7048, 1), || true), Effect::Streams);
        let mut jumps = new();
        for start in [5000, 6025, 5000, 9000] {
            assert_eq!(jumps.dispatched(q(), &read(start, 1024), || true), Effect::None);
        }
    }

    #[test]
    fn only_sync_requests_of_queues_that_count_are_looked_at() {
        let write = Request::write(TaskId(1), Sector(5000), Sectors(4096));
        let long = read(5000, 4096);
        let seen = |on, rq, counts| Streams::new(on, 4).dispatched(q(), rq, || counts);
        assert_eq!(seen(true, &long, true), Effect::Streams);
        assert_eq!(seen(true, &write, true), Effect::None);
        assert_eq!(seen(true, &long, false), Effect::None);
        assert_eq!(seen(false, &long, true), Effect::None);
    }

    #[test]
    fn while_suspended_a_jump_ends_the_stream() {
        let mut streams = new();
        let _ = streams.dispatched(q(), &read(5000, 2049), || true);
        let (start, len) = period();
        streams.suspend(q(), start, len);
        assert_eq!(streams.dispatched(q(), &read(7049, 64), || false), Effect::None, "it reads on");
        assert_eq!(streams.dispatched(q(), &read(9000, 64), || false), Effect::StreamEnded);
    }

    /// What resumes after reading these pieces, which lie apart.
    fn resumes(pieces: &[u32]) -> bool {
        let mut streams = new();
        let (start, len) = period();
        streams.suspend(q(), start, len);
        for (n, &piece) in pieces.iter().enumerate() {
            let _ = streams.dispatched(q(), &read(1_000_000 * (n as u64 + 1), piece), || true);
        }
        let resumed = streams.resume(q());
        assert_eq!(resumed, resumed.and(Some(period())));
        assert_eq!(streams.resume(q()), None, "once");
        resumed.is_some()
    }

    #[test]
    fn raising_resumes_if_at_most_half_lay_beyond_the_first_mib_of_a_run() {
        // Of 4096 in one piece half lies beyond.
        assert!(resumes(&[4096]));
        assert!(!resumes(&[4097]));
        assert!(resumes(&[5000, 904]), "2952 of 5904");
        assert!(!resumes(&[5000, 903]));
        assert!(!resumes(&[5000, 5000]), "each run has its own first MiB: 5904 of 10000");
        assert!(resumes(&[4000, 4000]));
        assert!(resumes(&[2000, 2000, 2000, 8000]), "5952 of 14000: all runs before count");
        assert!(!resumes(&[5000, 5000, 100]), "5904 of 10100");
    }

    #[test]
    fn what_was_read_before_raising_says_nothing() {
        let mut streams = new();
        let _ = streams.dispatched(q(), &read(5000, 2000), || true);
        let _ = streams.dispatched(q(), &read(9000, 2000), || true);
        assert!(streams.has_jumped(q()));
        streams.raised(q());
        assert!(!streams.has_jumped(q()));
        // It reads on: not a jump, and a run of 100.
        assert_eq!(streams.dispatched(q(), &read(11_000, 100), || true), Effect::None);
        assert_eq!((streams.queues[q()].runs, streams.queues[q()].run), (0, 100));
        streams.created(q());
        assert_eq!(streams.queues[q()].end, Sector(0));
    }

    #[test]
    fn the_first_slot_is_long_enough_to_find_out() {
        assert_eq!([1000, 2000].map(|smallest| new().first_budget(smallest)), [2560, 4000]);
        assert_eq!(Streams::new(false, 4).first_budget(1000), 2000);
    }
}
