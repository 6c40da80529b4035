//! Rates that a job file asks for, and whether a run reached them: `rate` and `rate_iops`.
//!
//! A cap is also a wish: a film with `rate=3m` needs its 3 MiB/s. It is *missed* if the clients of the job
//! together get less by more than 2 percent and by more than what they may have in flight. Example: six films
//! of 3 MiB/s that get 14 of their 18 MiB/s have 0.78 of it, however short each call was.
//!
//! What it does not do: judge programs (`fh_workload`), which have rates of their own.

use crate::job::{Direction, Job};
use crate::metrics::{ClientStats, OpStats, rate};
use fairhead_core::Duration;

/// A rate that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// `read`, `write` or `trim`.
    pub way: &'static str,
    /// Whether it is in calls per second, not in bytes.
    pub in_calls: bool,
    /// What all clients of the job may have together, per second.
    pub wanted: u64,
    /// What they got.
    pub got: u64,
    /// Whether it was missed.
    pub is_missed: bool,
}

impl Rate {
    /// The share of the wanted rate that the job got, from 0 to 1; 1 if it was not missed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "bytes per second: 53 bits are 9 PB")]
    pub fn kept(&self) -> f64 {
        if self.is_missed { self.got as f64 / self.wanted as f64 } else { 1.0 }
    }
}

/// Returns the rates that a job asks for, with what its clients got; empty for a job without rates.
pub fn of<'c>(job: &Job, clients: impl Iterator<Item = &'c ClientStats>) -> Vec<Rate> {
    let (mut read, mut write, mut trim) = (OpStats::default(), OpStats::default(), OpStats::default());
    let (mut count, mut elapsed) = (0_u64, Duration::ZERO);
    for c in clients {
        read.add(&c.read);
        write.add(&c.write);
        trim.add(&c.trim);
        count += 1;
        elapsed = elapsed.max(c.elapsed);
    }
    if job.program.is_some() || elapsed.is_zero() {
        return Vec::new();
    }
    let (d, r, i) = (job.rw.direction, &job.rate, &job.rate_iops);
    let reads = matches!(d, Direction::Read | Direction::Mixed);
    let writes = matches!(d, Direction::Write | Direction::Mixed);
    let ways = [
        ("read", reads, &read, r.read, i.read, job.bs.read.max_bytes()),
        ("write", writes, &write, r.write, i.write, job.bs.write.max_bytes()),
        ("trim", d == Direction::Trim, &trim, r.trim, i.trim, job.bs.trim.max_bytes()),
    ];
    let in_flight = count * u64::from(job.iodepth);
    let mut all = Vec::new();
    for (way, _, stats, rate_bytes, rate_calls, block) in ways.into_iter().filter(|w| w.1) {
        let limits = [
            (false, rate_bytes, stats.bytes, in_flight * u64::from(block)),
            (true, rate_calls.map(u64::from), stats.calls, in_flight),
        ];
        for (in_calls, wanted, done, slack) in limits {
            let Some(wanted) = wanted.map(|w| w * count) else { continue };
            let got = rate(done, elapsed);
            let is_missed = rate(done + slack, elapsed) < wanted - wanted / 50;
            all.push(Rate { way, in_calls, wanted, got, is_missed });
        }
    }
    all
}
