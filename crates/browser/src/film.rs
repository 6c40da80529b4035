//! What the animation of a run is made of: requests, calls, and the times in which the disk idled on purpose,
//! as columns of 32-bit numbers.
//!
//! ```text
//!   counts:   requests, calls, idles, dropped
//!   requests: task | kind | place | sectors | made | inserted | issued | begun | finished | completed | reason | carrier
//!   calls:    task | began | ended
//!   idles:    from | to | task | reason
//! ```
//!
//! Each `|` separates two columns, and a column has all its numbers one after the other. Times are
//! microseconds since the start of the run; what has not happened is [`NEVER`]. A place is a fraction of the
//! disk in 2^-32. A kind is the operation (0 read, 1 write, 2 flush, 3 discard), plus 4 if a program waits
//! for it. A carrier is the index of the request that took this one to the disk, if it was merged.
//!
//! Memory is bounded: the first [`REQUESTS`] requests and [`CALLS`] calls are kept, and the others counted.

use std::collections::BTreeMap;

use fairhead_core::Reason;
use fairhead_core::{Duration, TaskId};
use fairhead_device::DeviceOp;
use fairhead_sim::journal::{Call, Idle, Request, Run, Sink};

/// A time that has not come.
pub const NEVER: u32 = u32::MAX;

/// The most requests that are kept: 10 MB.
pub const REQUESTS: usize = 200_000;

/// The most calls that are kept.
pub const CALLS: usize = 200_000;

/// The most times of idling that are kept.
const IDLES: usize = 100_000;

/// The film of one run, while it is taken and after that.
#[derive(Debug, Default)]
pub struct Film {
    /// What was known before the run.
    pub run: Option<Run>,
    /// The reasons of decisions, by the numbers that the columns have.
    pub reasons: Vec<Reason>,
    requests: Vec<[u32; 12]>,
    /// The index of a request, by its number.
    index: BTreeMap<u64, u32>,
    /// For each merged request, its carrier's number.
    carriers: Vec<(usize, u64)>,
    calls: Vec<[u32; 3]>,
    idles: Vec<[u32; 4]>,
    dropped: u32,
}

fn micros(t: Duration) -> u32 {
    u32::try_from(t.as_ns() / 1000).unwrap_or(NEVER - 1)
}

fn micros_or_never(t: Option<Duration>) -> u32 {
    t.map_or(NEVER, micros)
}

impl Film {
    /// The number of requests that are kept.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// The columns, in the layout of the module, least significant byte first.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut rows = self.requests.clone();
        for &(at, carrier) in &self.carriers {
            rows[at][11] = self.index.get(&carrier).copied().unwrap_or(NEVER);
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(0);
        let head = [count(rows.len()), count(self.calls.len()), count(self.idles.len()), self.dropped];
        let mut bytes = Vec::new();
        head.iter().for_each(|n| bytes.extend(n.to_le_bytes()));
        columns(&mut bytes, &rows);
        columns(&mut bytes, &self.calls);
        columns(&mut bytes, &self.idles);
        bytes
    }

    fn reason(&mut self, reason: Reason) -> u32 {
        let at = self.reasons.iter().position(|r| *r == reason).unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        u32::try_from(at).unwrap_or(0)
    }

    fn place(&self, sector: u64) -> u32 {
        let capacity = self.run.as_ref().map_or(1, |r| r.capacity.max(1));
        let part = (u128::from(sector) << 32) / u128::from(capacity);
        u32::try_from(part).unwrap_or(u32::MAX)
    }
}

/// Appends rows column by column.
fn columns<const N: usize>(bytes: &mut Vec<u8>, rows: &[[u32; N]]) {
    for column in 0..N {
        rows.iter().for_each(|row| bytes.extend(row[column].to_le_bytes()));
    }
}

const fn op(op: DeviceOp) -> u32 {
    match op {
        DeviceOp::Read => 0,
        DeviceOp::Write => 1,
        DeviceOp::Flush => 2,
        DeviceOp::Discard => 3,
    }
}

impl Sink for Film {
    fn begins(&mut self, run: &Run) {
        self.run = Some(run.clone());
    }

    fn request(&mut self, r: &Request) {
        if self.requests.len() == REQUESTS {
            self.dropped += 1;
            return;
        }
        let at = self.requests.len();
        self.index.insert(r.id, u32::try_from(at).unwrap_or(NEVER));
        if let Some(carrier) = r.merged_into {
            self.carriers.push((at, carrier));
        }
        let reason = self.reason(r.chosen);
        self.requests.push([
            r.task.0,
            op(r.kind.op) + 4 * u32::from(r.kind.sync),
            self.place(r.sector.0),
            r.sectors.0,
            micros(r.made),
            micros_or_never(r.inserted),
            micros_or_never(r.issued),
            micros_or_never(r.begun),
            micros_or_never(r.finished),
            micros_or_never(r.completed),
            reason,
            NEVER,
        ]);
    }

    fn call(&mut self, call: &Call) {
        if self.calls.len() == CALLS {
            self.dropped += 1;
            return;
        }
        self.calls.push([call.task.0, micros(call.began), micros_or_never(call.ended)]);
    }

    fn idle(&mut self, idle: &Idle) {
        if self.idles.len() == IDLES {
            self.dropped += 1;
            return;
        }
        let reason = self.reason(idle.reason);
        let task = idle.task.map_or(NEVER, |TaskId(t)| t);
        self.idles.push([micros(idle.from), micros(idle.to), task, reason]);
    }
}
