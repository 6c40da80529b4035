//! A client: one clone of a job, and what it does next.
//!
//! A client has `iodepth` *threads* (lanes of calls in flight; one for most). Whenever a lane is free it asks
//! [`Client::next`]: make this call, pause until then, or end. Positions, limits and chance belong to the client and
//! are shared by its lanes.

use crate::job::{Direction, FileService, Job};
use crate::metrics::{ClientStats, OpStats};
use crate::rng::Rng;
use fairhead_core::{Duration, Instant, Op, TaskId};

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This call.
    Call(Call),
    /// Nothing until then; then ask again.
    Pause(Instant),
    /// Nothing more.
    End,
}

/// One call of a client. Offset and length in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) op: Op,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) job: Job,
    pub(super) task: TaskId,
    pub(super) files: Vec<u32>,
    pub(super) stats: ClientStats,
    /// When its wave and `startdelay` let it begin.
    pub(super) started: Instant,
    /// Lanes that have not ended.
    pub(super) lanes: u32,
    rng: Rng,
    /// In sectors: where the data set starts in each file, and how much of each file it covers.
    base: u64,
    span: u64,
    /// In sectors: the next sequential position in each file.
    position: Vec<u64>,
    /// Which file the next call goes to, when they take turns.
    turn: usize,
    /// Sectors asked for so far, and the most that may be.
    issued: u64,
    limit: u64,
    calls: u64,
    calls_max: u64,
    /// Sectors of direction 0 (read) and 1 (write) asked for, for rates.
    moved: [u64; 2],
    calls_by_direction: [u64; 2],
}

impl Client {
    /// A client that will use the first `span` sectors from `base` of each of its `files`.
    pub(super) fn new(
        job: &Job,
        index: usize,
        clone: u32,
        files: Vec<u32>,
        region: (u64, u64),
        seed: u64,
    ) -> Self {
        let (base, span) = region;
        let set = span * files.len() as u64;
        let limit = match job.io_size {
            _ if job.time_based => u64::MAX,
            Some(s) => s.bytes_of(set * 512) / 512 * u64::from(job.loops),
            None => set * u64::from(job.loops),
        };
        let stats = ClientStats {
            name: job.name.clone(),
            job: index,
            clone,
            group: job.group,
            started: Duration::ZERO,
            elapsed: Duration::ZERO,
            read: OpStats::new(),
            write: OpStats::new(),
            trim: OpStats::new(),
            sync: OpStats::new(),
        };
        let seed = if job.randrepeat { job.randseed.map_or(seed, |s| s ^ seed) } else { seed };
        Self {
            job: job.clone(),
            task: TaskId(0),
            position: vec![0; files.len()],
            files,
            stats,
            started: Instant::EPOCH,
            lanes: job.iodepth,
            rng: Rng::new(seed, &format!("client.{index}.{clone}")),
            base,
            span,
            turn: 0,
            issued: 0,
            limit,
            calls: 0,
            calls_max: job.number_ios.unwrap_or(u64::MAX),
            moved: [0; 2],
            calls_by_direction: [0; 2],
        }
    }

    /// What a free lane does next.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        let age = now.saturating_since(self.started);
        let over = self.job.runtime.is_some_and(|r| age >= r + self.job.ramp_time);
        if over || self.issued >= self.limit || self.calls >= self.calls_max || self.span == 0 {
            return Next::End;
        }
        let op = self.draw_op();
        if let Some(until) = self.rate_allows(op).filter(|&t| t > now) {
            return Next::Pause(until);
        }
        Next::Call(self.draw_call(op))
    }

    fn draw_op(&mut self) -> Op {
        match self.job.rw.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Discard,
            Direction::Mixed if self.rng.percent(self.job.rwmix_read_pct) => Op::Read,
            Direction::Mixed => Op::Write,
        }
    }

    /// When the caps on bytes and calls per second let the next call of this direction go.
    fn rate_allows(&self, op: Op) -> Option<Instant> {
        let i = usize::from(op != Op::Read);
        let (rate, iops) = match op {
            Op::Read => (self.job.rate.read, self.job.rate_iops.read),
            Op::Write => (self.job.rate.write, self.job.rate_iops.write),
            Op::Discard => (self.job.rate.trim, self.job.rate_iops.trim),
        };
        let at = |done: u64, per_second: u64| {
            let ns = u128::from(done) * 1_000_000_000 / u128::from(per_second.max(1));
            self.started + Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let by_bytes = rate.map(|r| at(self.moved[i] * 512, r));
        let by_calls = iops.map(|r| at(self.calls_by_direction[i], u64::from(r)));
        by_bytes.max(by_calls)
    }

    fn draw_call(&mut self, op: Op) -> Call {
        let (bs, random_pct) = match op {
            Op::Read => (&self.job.bs.read, self.job.random_pct.read),
            Op::Write => (&self.job.bs.write, self.job.random_pct.write),
            Op::Discard => (&self.job.bs.trim, self.job.random_pct.trim),
        };
        let align = u64::from(bs.min_bytes().div_ceil(512));
        let len = u64::from(super::draw_size(bs, &mut self.rng).div_ceil(512)).min(self.span);
        let which = self.draw_file();
        let jump = random_pct == 100 || (random_pct > 0 && self.rng.percent(random_pct));
        let room = self.span - len;
        let offset = if jump {
            self.rng.below(room / align + 1) * align
        } else if self.position[which] > room {
            0
        } else {
            self.position[which]
        };
        self.position[which] = offset + len;
        self.issued += len;
        self.calls += 1;
        self.moved[usize::from(op != Op::Read)] += len;
        self.calls_by_direction[usize::from(op != Op::Read)] += 1;
        #[allow(clippy::cast_possible_truncation, reason = "a block size is below 4 GiB")]
        Call { op, file: self.files[which], offset: self.base + offset, len: len as u32 }
    }

    fn draw_file(&mut self) -> usize {
        let files = self.files.len();
        if files == 1 {
            return 0;
        }
        match self.job.file_service {
            FileService::RoundRobin => {
                self.turn = (self.turn + 1) % files;
                self.turn
            }
            FileService::Random => self.rng.below(files as u64) as usize,
            FileService::Sequential => {
                if self.position[self.turn] >= self.span {
                    self.position[self.turn] = 0;
                    self.turn = (self.turn + 1) % files;
                }
                self.turn
            }
        }
    }

    /// Whether a call that starts now is measured.
    pub(super) fn is_measured(&self, now: Instant) -> bool {
        now.saturating_since(self.started) >= self.job.ramp_time
    }

    /// The pause after the call just completed, if any.
    pub(super) fn think_pause(&self) -> Duration {
        if self.job.thinktime.is_zero() || !self.calls.is_multiple_of(u64::from(self.job.thinktime_blocks)) {
            return Duration::ZERO;
        }
        self.job.thinktime.saturating_sub(self.job.thinktime_spin)
    }
}
