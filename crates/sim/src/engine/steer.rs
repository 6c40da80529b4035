//! What steers a client besides its pattern: shares of a flow, a latency to be kept, and bounds at which it
//! gives up.
//!
//! **Flow.** All clients with one `flow_id` have a common count of calls. A client that has more of them than
//! its weight's part waits.
//!
//! ```text
//!   flow=1 beside flow=8:  held back while  own calls / all calls > 1/9
//! ```
//!
//! **Latency target.** The client makes `depth` calls at a time, 1 at first. After each window: if enough
//! calls kept the target, twice as many, or halfway up to the fewest that did not keep it; if not, halfway
//! down to the most that did. When that changes nothing any more, one more window is measured alone, and the
//! job ends.
//!
//! **Bounds.** A call longer than `max_latency`, or less than `rate_min` over a `rate_cycle`, ends the
//! client; the first two seconds do not count for rates.
//
//= fio-3.33 HOWTO "flow", "latency_target", "latency_run", "max_latency", "rate_min", "rate_cycle"; ratios, ends and times seen in runs of fio

use super::action::Action;
use super::pattern::index;
use crate::job::{Flow, Job, LatencyTarget};
use fairhead_core::{Duration, Instant};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the clients of a flow have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    calls: Cell<u64>,
    weight: Cell<u64>,
}

/// A client's part in a flow.
#[derive(Debug)]
pub(super) struct Share {
    shared: Rc<Shared>,
    flow: Flow,
    calls: u64,
}

/// The flows of a run, by id.
#[derive(Debug, Default)]
pub(super) struct Flows(BTreeMap<u32, Rc<Shared>>);

impl Flows {
    /// A client joins its job's flow, if the job has one.
    pub(super) fn join(&mut self, flow: Flow) -> Option<Share> {
        if flow.weight == 0 {
            return None;
        }
        let shared = self.0.entry(flow.id).or_default();
        shared.weight.set(shared.weight.get() + u64::from(flow.weight));
        Some(Share { shared: Rc::clone(shared), flow, calls: 0 })
    }
}

impl Share {
    /// Whether the client has more than its part.
    pub(super) fn is_ahead(&self) -> bool {
        let all = u128::from(self.shared.calls.get().max(1));
        u128::from(self.calls) * u128::from(self.shared.weight.get()) > u128::from(self.flow.weight) * all
    }

    /// A call begins.
    pub(super) fn count(&mut self) {
        self.calls += 1;
        self.shared.calls.set(self.shared.calls.get() + 1);
    }

    /// The client has ended: the others share without it.
    pub(super) fn leave(&mut self) {
        self.shared.calls.set(self.shared.calls.get() - std::mem::take(&mut self.calls));
        let left = self.shared.weight.get() - u64::from(std::mem::take(&mut self.flow.weight));
        self.shared.weight.set(left);
    }

    /// `flow_id` and `flow_sleep`.
    pub(super) const fn flow(&self) -> Flow {
        self.flow
    }
}

/// What is to be done after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Continue as before.
    GoOn,
    /// More calls may be in flight.
    More,
    /// No call begins before all in flight have ended.
    Settle,
    /// Drop the measurements so far.
    MeasureAnew,
    /// The job has found what it looked for.
    Done,
    /// Even one call at a time takes too long.
    GiveUp,
}

/// How many calls at a time keep a latency.
#[derive(Debug)]
pub(super) struct Depth {
    target: LatencyTarget,
    max: u32,
    now: u32,
    /// The most that kept it, and the fewest that did not.
    low: u32,
    high: u32,
    since: Instant,
    calls: u64,
    failed: u64,
    /// Windows in a row that nearly reached `high`.
    stable: u32,
    is_last: bool,
}

impl Depth {
    pub(super) fn new(target: LatencyTarget, max: u32) -> Option<Self> {
        (!target.target.is_zero()).then_some(Self {
            target,
            max,
            now: 1,
            low: 1,
            high: max,
            since: Instant::EPOCH,
            calls: 0,
            failed: 0,
            stable: 0,
            is_last: false,
        })
    }

    /// How many calls may be in flight.
    pub(super) const fn now(&self) -> u32 {
        self.now
    }

    /// The client starts.
    pub(super) const fn start(&mut self, now: Instant) {
        self.since = now;
    }

    /// A call has ended after `latency`.
    pub(super) fn call_ended(&mut self, latency: Duration, now: Instant) -> Verdict {
        self.calls += 1;
        if latency > self.target.target {
            self.failed += 1;
            // If all have to keep it, one is enough.
            if self.target.percentile >= 100.0 {
                return if self.now == 1 { Verdict::GiveUp } else { self.fewer(now) };
            }
        }
        if now.saturating_since(self.since) < self.target.window {
            return Verdict::GoOn;
        }
        #[allow(clippy::cast_precision_loss, reason = "calls of one window")]
        let kept = (self.calls - self.failed) as f64 * 100.0 / self.calls as f64;
        if kept >= self.target.percentile {
            return self.more(now);
        }
        if self.now == 1 { Verdict::GoOn } else { self.fewer(now) }
    }

    fn fewer(&mut self, now: Instant) -> Verdict {
        self.high = self.now;
        if self.now == self.low {
            self.low -= 1;
        }
        self.now = self.now.midpoint(self.low).max(1);
        self.stable = 0;
        self.next_window(now);
        Verdict::Settle
    }

    fn more(&mut self, now: Instant) -> Verdict {
        let before = self.now;
        self.low = before;
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                (self.high, self.stable) = (self.high + 1, 0);
            }
        }
        let next = if self.high == self.max { before * 2 } else { before.midpoint(self.high) };
        self.now = next.min(self.max);
        self.next_window(now);
        if self.now != before {
            return Verdict::More;
        }
        if self.target.run {
            return Verdict::GoOn;
        }
        if std::mem::replace(&mut self.is_last, true) { Verdict::Done } else { Verdict::MeasureAnew }
    }

    const fn next_window(&mut self, now: Instant) {
        (self.since, self.calls, self.failed) = (now, 0, 0);
    }
}

/// What a client has moved, for `rate_min`.
#[derive(Debug, Default)]
pub(super) struct Floor {
    /// Bytes and calls by direction, and how many there were when they were looked at.
    sum: [(u64, u64); 3],
    before: [Option<(Instant, u64, u64)>; 3],
}

/// Rates are not looked at before.
const SETTLE: Duration = Duration::from_secs(2);

impl Floor {
    /// A call has ended. The rate in bytes or calls a second, if it was too low, and what was asked for.
    pub(super) fn call_ended(
        &mut self,
        job: &Job,
        action: Action,
        bytes: u64,
        times: (Instant, Instant),
    ) -> Option<(u64, String)> {
        let min = &job.rate_min;
        let (bytes_min, calls_min) = match action {
            Action::Read => (min.bytes.read, min.calls.read),
            Action::Write => (min.bytes.write, min.calls.write),
            Action::Trim => (min.bytes.trim, min.calls.trim),
            Action::Sync => return None,
        };
        if bytes_min.is_none() && calls_min.is_none() {
            return None;
        }
        let (started, now) = times;
        let i = index(action);
        let sum = &mut self.sum[i];
        *sum = (sum.0 + bytes, sum.1 + 1);
        // fio gives a job two seconds before it judges the rate (docs/job-files.md, `rate_min`).
        if now.saturating_since(started) < SETTLE {
            return None;
        }
        let Some((since, bytes_before, calls_before)) = self.before[i] else {
            self.before[i] = Some((now, sum.0, sum.1));
            return None;
        };
        let spent = now.saturating_since(since);
        if spent < min.cycle {
            return None;
        }
        let bytes = crate::metrics::rate(sum.0 - bytes_before, spent);
        let calls = crate::metrics::rate(sum.1 - calls_before, spent);
        self.before[i] = Some((now, sum.0, sum.1));
        match (bytes_min, calls_min) {
            (Some(least), _) if bytes < least => Some((bytes, format!("rate_min={least}"))),
            (_, Some(least)) if calls < u64::from(least) => Some((calls, format!("rate_iops_min={least}"))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_flow_are_shared_by_weight() {
        let mut flows = Flows::default();
        let mut all = [1, 8].map(|weight| flows.join(Flow { weight, ..Flow::default() }).unwrap());
        let mut made = [0_u32; 2];
        for i in 0..9_000 {
            let turn = (0..2).map(|k| (i + k) % 2).find(|&k| !all[k].is_ahead()).expect("one is not ahead");
            all[turn].count();
            made[turn] += 1;
        }
        assert!(made[0].abs_diff(1_000) <= 2, "{made:?}");
        // Alone, it makes one call and waits for the other, as fio's does.
        let mut flows = Flows::default();
        let mut a = flows.join(Flow { weight: 1, id: 3, ..Flow::default() }).unwrap();
        let mut b = flows.join(Flow { weight: 8, id: 3, ..Flow::default() }).unwrap();
        a.count();
        assert!(a.is_ahead());
        b.leave();
        assert!(!a.is_ahead());
        assert!(flows.join(Flow::default()).is_none());
    }

    /// The depth that is found where a call takes 1 ms for each that is in flight, with the target in
    /// milliseconds; and how many windows it took.
    fn found(target: u64, max: u32) -> (u32, u32) {
        let target = LatencyTarget {
            target: Duration::from_ms(target),
            window: Duration::from_ms(100),
            percentile: 99.0,
            run: false,
        };
        let mut depth = Depth::new(target, max).unwrap();
        let mut now = Instant::EPOCH;
        for windows in 1..100 {
            loop {
                now = now + Duration::from_ms(1);
                let latency = Duration::from_ms(u64::from(depth.now()));
                match depth.call_ended(latency, now) {
                    Verdict::GoOn => {}
                    Verdict::Done => return (depth.now(), windows),
                    Verdict::GiveUp => panic!("it gives up"),
                    _ => break,
                }
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn the_most_calls_that_keep_a_latency_are_found() {
        for target in [1, 2, 5, 13, 31] {
            let (depth, windows) = found(target, 64);
            assert_eq!(u64::from(depth), target, "in {windows} windows");
        }
        assert_eq!(found(1000, 64).0, 64);
    }

    /// How many calls are tried in the windows after the first, of one call each, which takes 1 ms for each
    /// that is in flight. The target is in milliseconds.
    fn tried<const WINDOWS: usize>(target: u64) -> [u32; WINDOWS] {
        let (target, window) = (Duration::from_ms(target), Duration::from_ms(1));
        let target = LatencyTarget { target, window, percentile: 99.0, run: true };
        let mut depth = Depth::new(target, 64).unwrap();
        let mut now = Instant::EPOCH;
        [(); WINDOWS].map(|()| {
            now = now + window;
            let _ = depth.call_ended(Duration::from_ms(u64::from(depth.now())), now);
            depth.now()
        })
    }

    #[test]
    fn the_number_of_calls_doubles_until_it_is_too_many() {
        assert_eq!(tried(1000), [2, 4, 8, 16, 32, 64, 64]);
        assert_eq!(tried(5), [2, 4, 8, 6, 5]);
    }

    #[test]
    fn one_call_more_is_tried_again_after_three_windows() {
        assert_eq!(tried(5), [2, 4, 8, 6, 5, 5, 5, 6, 5, 5, 5, 6, 5]);
    }

    #[test]
    fn a_latency_that_one_call_exceeds_is_given_up() {
        let target = LatencyTarget { target: Duration::from_ms(1), ..LatencyTarget::default() };
        let mut depth = Depth::new(target, 8).unwrap();
        assert_eq!(depth.call_ended(Duration::from_ms(2), Instant::EPOCH), Verdict::GiveUp);
        assert!(Depth::new(LatencyTarget::default(), 8).is_none());
    }
}
