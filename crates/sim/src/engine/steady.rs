//! Jobs that end when their figures have become steady.
//!
//! Each second what every client has done since the second before is added to a window. When the window is
//! full, its figure is looked at each second:
//!
//! ```text
//!   samples of a window of 4 s:   100  104  101   99     mean 101
//!   iops:       the largest distance from the mean, 3, or 2.97 %
//!   iops_slope: the slope of the line of least squares, -0.6 a second, or 0.59 % of the mean; its sign does not count
//! ```
//!
//! Below the limit, the clients end. With `group_reporting` the clients of a reporting group are one: their
//! samples are added up, and all of the group end. A client's first sample begins when `ss_ramp` is over,
//! counted from its start or from the end of its `ramp_time`.
//!
//! What this does not do: fio takes seconds without any call for steady, as 0/0 is not above the limit, and
//! does not look at a group any more when its last client has ended.
//
//= fio-3.33 HOWTO "steadystate"; when jobs end was seen in runs of fio

use super::Machine;
use super::client::Client;
use crate::event::Due;
use crate::job::{JobFile, SteadyFigure, SteadyState};
use crate::metrics::Steadiness;
use fairhead_core::{Duration, Instant};
use std::collections::VecDeque;

/// How often samples are taken.
const INTERVAL: Duration = Duration::from_secs(1);

/// Clients whose figures are looked at together.
#[derive(Debug)]
pub(super) struct Watch {
    criterion: SteadyState,
    /// The clients whose calls count, and what was seen of each last: when, calls, bytes.
    members: Vec<(usize, Seen)>,
    /// The reporting group that ends; `None`: the only member.
    group: Option<u32>,
    /// Calls and bytes a second.
    window: VecDeque<(u64, u64)>,
    attained: bool,
    figure: Figure,
}

/// What is known of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Figure {
    /// The largest distance from the mean, or the slope with its sign; in calls or bytes a second.
    off: f64,
    /// The distance, or the slope without its sign, in the unit of the limit. The job is steady if it is
    /// below the limit.
    judged: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: Option<Instant>,
    calls: u64,
    bytes: u64,
}

/// What is watched in a run, and when it is looked at next.
#[derive(Debug)]
pub(super) struct Watches {
    all: Vec<Watch>,
    looks_at: Instant,
}

impl Watches {
    pub(super) fn new(jobs: &JobFile) -> Self {
        Self { all: watches(jobs), looks_at: Instant::EPOCH }
    }
}

/// What jobs want watched: one for each client, or for each reporting group with `group_reporting`.
fn watches(jobs: &JobFile) -> Vec<Watch> {
    let mut all: Vec<Watch> = Vec::new();
    for (i, c) in jobs.clients().enumerate().filter(|(_, c)| c.job.steady.is_on()) {
        let group = c.job.group_reporting.then_some(c.job.group);
        let member = (i, Seen::default());
        match all.iter_mut().find(|w| w.group.is_some() && w.group == group) {
            Some(watch) => {
                watch.members.push(member);
            }
            None => all.push(Watch {
                criterion: c.job.steady,
                members: vec![member],
                group,
                window: VecDeque::new(),
                attained: false,
                figure: Figure::default(),
            }),
        }
    }
    all
}

impl Watch {
    /// A second is over. True if the figures have become steady with it.
    fn look(&mut self, now: Instant, wave: u32, clients: &[Client]) -> bool {
        let (mut calls, mut bytes, mut counts) = (0, 0, false);
        for (i, seen) in &mut self.members {
            let client = &clients[*i];
            let runs = client.job.wave == wave && client.lanes > 0 && !client.waits && client.started < now;
            if !runs {
                continue;
            }
            // Before the ramp is over nothing counts, and then all begins anew.
            let begins = client.counts_from();
            let since = seen.at.unwrap_or(begins);
            if since < begins || now <= since {
                continue;
            }
            let span_ms = now.since(since).as_ms().max(1);
            let ramp = client.job.steady.ramp;
            if ramp.is_zero() || since > begins + ramp {
                calls += (client.ended_calls - seen.calls) * 1000 / span_ms;
                bytes += (client.ended_bytes - seen.bytes) * 1000 / span_ms;
                counts = true;
            }
            *seen = Seen { at: Some(now), calls: client.ended_calls, bytes: client.ended_bytes };
        }
        if !counts || self.attained {
            return false;
        }
        let length = usize::try_from(self.criterion.duration.as_ns() / INTERVAL.as_ns()).unwrap_or(1).max(1);
        self.window.push_back((calls, bytes));
        if self.window.len() > length {
            self.window.pop_front();
        }
        if self.window.len() < length {
            return false;
        }
        let values: Vec<f64> = self.window.iter().map(|s| self.value(s)).collect();
        self.figure = figure(&values, &self.criterion);
        self.attained = self.figure.judged.abs() < self.criterion.limit;
        self.attained
    }

    #[allow(clippy::cast_precision_loss, reason = "rates of one second")]
    const fn value(&self, sample: &(u64, u64)) -> f64 {
        match self.criterion.of {
            SteadyFigure::Calls => sample.0 as f64,
            SteadyFigure::Bytes => sample.1 as f64,
        }
    }

    fn into_steadiness(self) -> Steadiness {
        Steadiness {
            criterion: self.criterion,
            attained: self.attained,
            off: self.figure.off,
            figure: self.figure.judged,
            samples: self.window.into(),
        }
    }
}

/// What is compared with the limit. `values` has at least one.
#[allow(clippy::cast_precision_loss, reason = "seconds of a window")]
fn figure(values: &[f64], criterion: &SteadyState) -> Figure {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let off = if criterion.by_slope {
        let middle = (n - 1.0) / 2.0;
        let (mut both, mut square) = (0.0, 0.0);
        for (i, v) in values.iter().enumerate() {
            let x = i as f64 - middle;
            both += x * (v - mean);
            square += x * x;
        }
        // One second alone has no slope.
        if square > 0.0 { both / square } else { 0.0 }
    } else {
        values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max)
    };
    let judged = match (criterion.in_percent, mean > 0.0) {
        (false, _) => off,
        (true, true) => off * 100.0 / mean,
        // No share of nothing is small.
        (true, false) => f64::INFINITY,
    };
    Figure { off, judged }
}

impl Machine<'_> {
    /// The next look is a second from now.
    fn look_later(&mut self) {
        self.steady.looks_at = self.clock.now + INTERVAL;
        self.clock.schedule(self.steady.looks_at, Due::Steady);
    }

    /// Looks for the first time after the first second.
    pub(super) fn begin_to_look(&mut self) {
        if !self.steady.all.is_empty() {
            self.look_later();
        }
    }

    /// A client's ramp is over: its seconds begin now, and so do those of all.
    //= fio-3.33: with ramp_time=2500ms, ss_dur=3 and 100 calls a second, 301 calls are counted
    pub(super) fn look_anew(&mut self, client: usize) {
        let Client { ended_calls: calls, ended_bytes: bytes, .. } = self.clients[client];
        for (_, seen) in self.steady.all.iter_mut().flat_map(|w| &mut w.members).filter(|m| m.0 == client) {
            *seen = Seen { at: Some(self.clock.now), calls, bytes };
        }
        self.begin_to_look();
    }

    /// A second is over: clients end whose figures are steady.
    pub(super) fn look_for_steadiness(&mut self) {
        // A ramp that ended since has moved the seconds; this event is of the old ones.
        if self.steady.looks_at != self.clock.now {
            return;
        }
        for w in 0..self.steady.all.len() {
            if !self.steady.all[w].look(self.clock.now, self.waves.number, &self.clients) {
                continue;
            }
            let watch = &self.steady.all[w];
            let (first, group) = (watch.members[0].0, watch.group);
            for i in 0..self.clients.len() {
                if group.map_or(i == first, |g| self.clients[i].job.group == g) {
                    self.stop_client(i);
                }
            }
            if self.waves.exit_all {
                self.stop_group(first);
            }
        }
        if self.steady.all.iter().any(|w| !w.attained) {
            self.look_later();
        }
    }

    /// What was found, for the figures of the last client of each watch, and a line for the user.
    pub(super) fn end_of_looking(&mut self, notes: &mut Vec<String>) {
        for watch in std::mem::take(&mut self.steady.all) {
            let Some(&(last, _)) = watch.members.last() else { continue };
            let steadiness = watch.into_steadiness();
            notes.push(format!("job '{}': {steadiness}", self.clients[last].job.name));
            self.clients[last].stats.steady = Some(steadiness);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_line_and_of_the_farthest() {
        let values = [100.0, 104.0, 101.0, 99.0];
        let of = |by_slope, in_percent| {
            figure(&values, &SteadyState { by_slope, in_percent, ..SteadyState::default() }).judged
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and {b}");
        near(of(false, false), 3.0);
        near(of(false, true), 3.0 / 1.01);
        // Around the middle: -1.5 * -1 + -0.5 * 3 + 0.5 * 0 + 1.5 * -2 = -3, over 2 * (2.25 + 0.25) = 5.
        near(of(true, false), -0.6);
        near(of(true, true), -0.6 / 1.01);
        assert!(figure(&[0.0, 0.0], &SteadyState::default()).judged.is_infinite());
    }
}
