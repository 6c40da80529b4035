//! Streams: who reads on and on is not a program that starts. Ours, not the kernel's.
//!
//! A new task is raised as interactive for seconds, for it may be a program that starts. A reader that has just begun looks the
//! same, until it has read 60 MB. A few of them are raised together: the disk is not kept for any of them, seeks between them at
//! every request, and so takes all the longer to find out. A program that starts then is one of many.
//!
//! What tells them apart is the way in which they read. A program reads many pieces here and there; a reader reads on
//! where it stopped. Of xterm's 179 runs (5.9 MiB) the longest has 560 KiB. So:
//!
//! ```text
//!   sectors in one piece   0 ─────────── 1 MiB ──────────────────────────────────► seek
//!   interactive raising    raised        suspended                                 goes on, if less than half of what was
//!                                                                                  read while raised lay beyond such a MiB
//! ```
//!
//! - Raising is *suspended*: a program that reads one large file in its start gets back what is left of its period.
//! - A queue that is raised itself is idled for if that makes for throughput, as any other stream is: each reader that has just begun
//!   gets through its first MiB in a slot.
//! - A stream counts in no [burst](super::rules::burst), for that is about short tasks. If fewer than eight are left, each of these is
//!   raised after all when it reads elsewhere: a program that begins in the same moment as ten readers is found among them.
//! - The first slot of a newcomer that is raised, or in a large burst, is just long enough to find out.
//! - No queue becomes one with a sequential one because both began together ([stable merges](super::queue_merge)).
//!
//! What it does not do: tell apart those that read at random; look at soft real-time, where a film is a slow stream; or at async
//! writes, which are raised by other rules. Off with [`quirks`](super::Config::quirks).

use super::view::{QueueId, since};
use super::weight_raising::is_usual;
use super::{Bfq, Config};
use crate::elevator::Cx;
use crate::request::Request;
use crate::trace::Reason;
use crate::units::{Duration, Instant, Sector};

/// Sectors in one piece that make a run of reads a stream. A program's files are read in smaller runs, as they are mapped or small;
/// and as much is read in the time of one seek or two, so that finding out costs about what reading it elsewhere would.
const STREAM: u64 = 2048;

/// Sectors that a new queue may send in its first slot: a little more than [`STREAM`].
const FIRST: u32 = 2560;

/// In which pieces a queue reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The sector at which the next read continues the present run.
    end: Sector,
    /// How long it is, in sectors.
    run: u64,
    /// How many runs there have been.
    runs: u32,
    /// Sectors of the runs before, since raising began.
    service: u64,
    /// How many of these were further than [`STREAM`] into a run.
    beyond: u64,
    /// What there was of interactive raising: since when, for how long.
    suspended: Option<(Instant, Duration)>,
}

impl Default for Stream {
    fn default() -> Self {
        Self { end: Sector(0), run: 0, runs: 0, service: 0, beyond: 0, suspended: None }
    }
}

impl Stream {
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

    /// Whether the present run is one.
    fn streams(&self) -> bool {
        self.run > STREAM
    }
}

impl Bfq {
    /// Whether streams are looked for, by the tunables.
    pub(super) const fn streams_rule(config: &Config) -> bool {
        //= deviates bfq-streams
        config.streams && config.low_latency && !config.quirks
    }

    /// How much a queue may send in the first slot of its start at most, in sectors: enough to be known as a stream.
    pub(super) fn newcomer_budget(&self) -> u32 {
        if self.knows_streams { FIRST.max(2 * self.bmin()) } else { 2 * self.bmin() }
    }

    /// A request of `q` was sent: is that a stream? Only of queues that are raised, or would be, is that of interest.
    /// Answers whether `q` is raised.
    #[inline]
    pub(super) fn stream_sent(&mut self, cx: &mut Cx<'_>, q: QueueId, rq: &Request) -> bool {
        let queue = &mut self.queues[q];
        let raised = queue.raise.factor > 1;
        let counts = raised || self.rules.bursts.is_member(q);
        let suspended = queue.stream.suspended.is_some();
        if !(counts || suspended) || !self.knows_streams || !rq.sync {
            return raised;
        }
        let jumps = queue.stream.count(rq);
        if counts && queue.stream.streams() {
            self.stream_found(cx, q)
        } else if jumps && suspended {
            self.stream_ended(cx, q)
        } else {
            raised
        }
    }

    #[cold]
    fn stream_found(&mut self, cx: &mut Cx<'_>, q: QueueId) -> bool {
        let raise = self.queues[q].raise;
        if raise.factor > 1 && raise.factor == self.interactive_factor() {
            self.end_raising(cx, q);
            self.queues[q].stream.suspended = Some((raise.start, raise.len));
        }
        if self.rules.bursts.streams(q) {
            while let Some(other) = self.rules.bursts.release() {
                self.raise_after_burst(cx, other);
            }
        }
        self.queues[q].raise.factor > 1
    }

    /// The run is over. Was it a piece of a program's start?
    #[cold]
    fn stream_ended(&mut self, cx: &mut Cx<'_>, q: QueueId) -> bool {
        let stream = &mut self.queues[q].stream;
        let beyond = stream.beyond + stream.run.saturating_sub(STREAM);
        let reads_elsewhere = beyond * 2 <= stream.service + stream.run;
        if reads_elsewhere
            && let Some((start, len)) = stream.suspended.take()
            && self.queues[q].raise.factor == 1
            && self.tick(cx.now) <= start + len
        {
            self.queues[q].raise.start = start;
            self.queues[q].raise.len = len;
            self.change_factor(cx, q, self.interactive_factor(), Reason::RaisedInteractive);
        }
        self.queues[q].raise.factor > 1
    }

    /// Raising begins anew: what was read before says nothing.
    pub(super) fn forget_stream(&mut self, q: QueueId) {
        self.queues[q].stream = Stream { end: self.queues[q].stream.end, ..Stream::default() };
    }

    /// A queue was in a large burst, which is none any more: it is raised as it would have been then, if it has read
    /// in more places than one, or as soon as it does. Those that have not may be streams, too, which have not got far.
    pub(super) fn raise_after_burst(&mut self, cx: &mut Cx<'_>, q: QueueId) {
        let (queue, len) = (&self.queues[q], self.raise_duration());
        let alone = queue.sync && queue.owner.is_some() && !queue.shared && queue.raise.factor == 1;
        let wanted = self.config.interactive && is_usual(queue.prio);
        if !alone || !wanted || since(self.tick(cx.now), Some(queue.created)) > len {
            return;
        }
        let runs = queue.stream.runs;
        self.queues[q].stream.suspended = Some((queue.created, len));
        if runs > 1 {
            self.stream_ended(cx, q);
        }
    }
}
