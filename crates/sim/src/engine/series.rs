//! The time series of a run: what clients and disks did in each interval.
//!
//! ```text
//!   clients   ─ calls ─► current ──┐ end of an interval
//!   disks     ─ totals, less those before ──┴─► a row of `rows`, a point of `disks` and of each disk's series
//! ```
//!
//! A run with very many points doubles its interval: memory is bounded.

use super::action::Action;
use super::call::Call;
use super::disks::{self, Disks};
use crate::metrics::{DiskPoint, Point};
use fairhead_core::{Duration, Instant};

/// Points of the time series, all clients together: a run that has more has longer intervals, as its memory
/// is bounded.
const POINTS_MAX: usize = 1 << 20;

/// A disk's series, and its totals at the end of the last interval.
type OfDisk = (Vec<DiskPoint>, DiskPoint);

/// The series of a run.
#[derive(Debug)]
pub(super) struct Series {
    /// The length of an interval; none: only what the present interval has is counted, and never kept.
    pub(super) interval: Option<Duration>,
    /// Of all clients, interval by interval.
    rows: Vec<Vec<Point>>,
    /// What clients have done in the interval that has not ended.
    current: Vec<Point>,
    /// Of all disks together, and of each if there are several.
    together: OfDisk,
    each: Vec<OfDisk>,
}

impl Series {
    pub(super) fn new(interval: Option<Duration>, clients: usize, disks: usize) -> Self {
        Self {
            interval,
            rows: Vec::new(),
            current: vec![Point::default(); clients],
            together: OfDisk::default(),
            each: if disks > 1 { vec![OfDisk::default(); disks] } else { Vec::new() },
        }
    }

    /// A client's point of the present interval.
    #[inline]
    pub(super) fn point(&mut self, client: usize) -> &mut Point {
        &mut self.current[client]
    }

    /// A call of a client has ended after `latency`.
    #[inline]
    pub(super) fn count_call(&mut self, client: usize, call: &Call, latency: Duration) {
        let point = self.point(client);
        point.calls += 1;
        point.latency_max = point.latency_max.max(latency);
        let bytes = call.bytes();
        match call.action {
            Action::Read => (point.reads, point.read_bytes) = (point.reads + 1, point.read_bytes + bytes),
            Action::Write => {
                (point.writes, point.written_bytes) = (point.writes + 1, point.written_bytes + bytes);
            }
            Action::Trim | Action::Sync => {}
        }
    }

    /// An interval ends. Returns when the next does.
    pub(super) fn end_interval(&mut self, now: Instant, disks: &Disks<'_>) -> Option<Instant> {
        let clients = self.current.len();
        self.rows.push(std::mem::replace(&mut self.current, vec![Point::default(); clients]));
        let each: Vec<_> = (0..disks.count()).map(|disk| disks.stats(now, disk)).collect();
        let all = disks::together(&each).point();
        add(&mut self.together, all);
        self.each.iter_mut().zip(&each).for_each(|(one, stats)| add(one, stats.point()));
        if self.rows.len() * clients >= POINTS_MAX && self.rows.len().is_multiple_of(2) {
            self.double_interval();
        }
        self.interval.map(|interval| now + interval)
    }

    /// Each two intervals become one.
    fn double_interval(&mut self) {
        self.interval = self.interval.map(|i| i * 2);
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        while let (Some(mut row), Some(next)) = (rows.next(), rows.next()) {
            row.iter_mut().zip(&next).for_each(|(a, b)| a.add(b));
            self.rows.push(row);
        }
        for (series, _) in std::iter::once(&mut self.together).chain(&mut self.each) {
            let all = std::mem::take(series);
            *series = all.chunks(2).map(|two| two[1..].iter().fold(two[0], DiskPoint::plus)).collect();
        }
    }

    /// The rows, the points of all disks together, and those of each disk, if there are several.
    pub(super) fn into_points(self) -> (Vec<Vec<Point>>, Vec<DiskPoint>, Vec<Vec<DiskPoint>>) {
        (self.rows, self.together.0, self.each.into_iter().map(|one| one.0).collect())
    }
}

/// Adds what a disk has done since the interval before.
fn add((series, before): &mut OfDisk, total: DiskPoint) {
    series.push(total.since(before));
    *before = total;
}
