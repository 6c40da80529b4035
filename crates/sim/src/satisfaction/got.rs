//! What a job got in a run.

use super::Load;
use crate::job::{Job, Kind};
use crate::metrics::{ClientStats, OpStats, Outcome};
use crate::rates;
use crate::resumable::Line;
use fairhead_core::Duration;

/// What a job got in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    /// What users read: seconds of a start, bytes a second of bulk and of a rate, seconds of a 99th
    /// percentile, the part of a film's frames that came in time.
    pub amount: f64,
    /// The figure of each clone; larger is better.
    pub figures: Vec<f64>,
    /// Whether it was not done when the span was over, or no call of it had ended.
    pub is_cut: bool,
}

/// The numbers as the bits of floating-point numbers: the amount, whether it is cut, the figures.
impl Line for Got {
    fn write(&self) -> String {
        let figures = self.figures.iter().map(|f| format!(" {:016x}", f.to_bits())).collect::<String>();
        format!("{:016x} {}{figures}", self.amount.to_bits(), u8::from(self.is_cut))
    }

    fn read(text: &str) -> Option<Self> {
        let number = |bits: &str| u64::from_str_radix(bits, 16).ok().map(f64::from_bits);
        let mut words = text.split(' ');
        let amount = number(words.next()?)?;
        let is_cut = words.next()? == "1";
        Some(Self { amount, is_cut, figures: words.map(number).collect::<Option<_>>()? })
    }
}

/// What a job of a load got.
#[must_use]
pub fn got(load: &Load, job: usize, outcome: &Outcome) -> Got {
    of_clients(load, job, outcome, &outcome.clients.iter().filter(|c| c.job == job).collect::<Vec<_>>())
}

/// What a job of a load got whose clients these are.
pub(super) fn of_clients(load: &Load, job: usize, outcome: &Outcome, clients: &[&ClientStats]) -> Got {
    let of = &load.jobs.jobs[job];
    match load.parties[job].kind {
        Kind::Start => start(load.span, outcome, clients),
        Kind::Paced => paced(of, clients),
        Kind::Waiting => waiting(load.span, clients),
        Kind::Bulk => {
            let figures: Vec<f64> = clients.iter().map(|c| real(c.bandwidth())).collect();
            Got { amount: figures.iter().sum(), figures, is_cut: false }
        }
    }
}

/// The time until it was done, or of its start-ups in the mean.
fn start(span: Duration, outcome: &Outcome, clients: &[&ClientStats]) -> Got {
    let (mut times, mut is_cut) = (Vec::new(), false);
    for c in clients {
        let has_ended = outcome.elapsed < span || c.started + c.elapsed < outcome.elapsed;
        let took = match c.startup_time() {
            Some(s) => {
                is_cut |= !s.finished;
                s.took
            }
            None => {
                is_cut |= !has_ended;
                if c.elapsed.is_zero() { span } else { c.elapsed }
            }
        };
        times.push(seconds(took));
    }
    let figures = times.iter().map(|t| 1.0 / t).collect();
    Got { amount: mean(&times), figures, is_cut }
}

/// The rate that it got, and how much of it in time.
//= deviates rates-alone
fn paced(job: &Job, clients: &[&ClientStats]) -> Got {
    let mut moved = 0.0;
    let mut figures = Vec::new();
    let mut in_time = Vec::new();
    for c in clients {
        if let Some(frames) = c.frames {
            in_time.push(1.0 - real(frames.drop_rate()) / 100_000.0);
            figures.push(1.0 - real(frames.drop_rate()) / 100_000.0);
            continue;
        }
        moved += real(c.bandwidth());
        let wanted = rates::of(job, std::iter::once(*c));
        let kept = wanted.iter().map(rates::Rate::kept).fold(1.0, f64::min);
        figures.push(kept * part_in_time(job, c));
    }
    let amount = if in_time.is_empty() { moved } else { mean(&in_time) };
    Got { amount, figures, is_cut: false }
}

/// The part of its calls that took no longer than the rate leaves for as many as may be in flight.
fn part_in_time(job: &Job, c: &ClientStats) -> f64 {
    let ways = [
        (&c.read, job.rate.read, job.rate_iops.read, job.bs.read.max_bytes()),
        (&c.write, job.rate.write, job.rate_iops.write, job.bs.write.max_bytes()),
        (&c.trim, job.rate.trim, job.rate_iops.trim, job.bs.trim.max_bytes()),
    ];
    let mut part = 1.0;
    for (stats, bytes, calls, block) in ways {
        let of_bytes = bytes.map(|b| real(u64::from(block)) / real(b.max(1)));
        let of_calls = calls.map(|c| 1.0 / f64::from(c.max(1)));
        let Some(period) = of_bytes.into_iter().chain(of_calls).reduce(f64::max) else { continue };
        let due = period * f64::from(job.iodepth.max(1)) * 1e9;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, in nanoseconds")]
        let due = due.min(9e18) as u64;
        part = f64::min(part, stats.latency_ns.part_within(due));
    }
    part
}

/// The 99th percentile of its syncs, or of all calls if it makes none.
fn waiting(span: Duration, clients: &[&ClientStats]) -> Got {
    let tail = |stats: &OpStats| stats.percentile(99.0);
    let calls = |c: &ClientStats| {
        if c.sync.calls > 0 {
            return c.sync.clone();
        }
        let mut all = OpStats::default();
        [&c.read, &c.write, &c.trim].iter().for_each(|s| all.add(s));
        all
    };
    let mut all = OpStats::default();
    let mut figures = Vec::new();
    for c in clients {
        let of = calls(c);
        figures.push(1.0 / seconds(tail(&of).unwrap_or(span)));
        all.add(&of);
    }
    let is_cut = all.calls == 0;
    Got { amount: seconds(tail(&all).unwrap_or(span)), figures, is_cut }
}

/// At least a nanosecond.
fn seconds(t: Duration) -> f64 {
    real(t.as_ns().max(1)) / 1e9
}

fn mean(values: &[f64]) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "clones of a job")]
    let count = values.len().max(1) as f64;
    values.iter().sum::<f64>() / count
}

#[allow(clippy::cast_precision_loss, reason = "bytes and nanoseconds: 53 bits are 9 PB and 104 days")]
fn real(n: u64) -> f64 {
    n as f64
}
