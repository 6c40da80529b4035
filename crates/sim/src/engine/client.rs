//! A client: one clone of a job, and what it does next.
//!
//! A client has `iodepth` *lanes* (calls in flight; one for most). Whenever a lane is free it asks [`Client::next`]:
//! make this call, pause until then, or end. Positions, limits and chance belong to the client and are shared by its
//! lanes.
//!
//! ```text
//!   next ─► a due fsync ─► over? then fsyncs at the end ─► read or write? ─► its rate allows it? ─► where, how long ─► call
//! ```

use super::access::Picker;
use super::player::{self, Player};
use super::program::{Running, Step};
use super::readahead::ReadAhead;
use super::startup::{StartUps, Turn};
use super::zones::Zone;
use crate::job::{BlockSize, Direction, Engine, FileService, Job, Program};
use crate::metrics::{ClientStats, OpStats};
use crate::rng::Rng;
use fairhead_core::{Duration, GroupId, Instant, TaskId};

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This call.
    Call(Call),
    /// Nothing until then; then ask again.
    Pause(Instant),
    /// A start-up begins: drop the page cache, watch the time, and ask again.
    StartUp,
    /// Nothing more.
    End,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Trim,
    /// fsync and fdatasync: there is no metadata of a file whose writing would tell them apart.
    Sync,
}

/// One call of a client. Offset and length in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) action: Action,
    /// Which of the client's files.
    pub(super) slot: u32,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
    /// CPU time that the client spends before it, besides what calls cost.
    pub(super) cpu: Duration,
    /// So many pages behind it are sent for before it, and not waited for.
    pub(super) burst: u32,
    /// Whether it is flagged as metadata.
    pub(super) meta: bool,
    /// It is done when it has been handed in.
    pub(super) ahead: bool,
    /// Whether somebody waits for it, where that is recorded.
    pub(super) sync: Option<bool>,
    /// What was written before has to be stable first; and it has to be stable when it is done.
    pub(super) preflush: bool,
    pub(super) fua: bool,
}

impl Call {
    pub(super) const NONE: Self = Self {
        action: Action::Read,
        slot: 0,
        file: 0,
        offset: 0,
        len: 0,
        cpu: Duration::ZERO,
        burst: 0,
        meta: false,
        ahead: false,
        sync: None,
        preflush: false,
        fua: false,
    };
}

/// Calls that are measured as one: how many have ended, when the first began, what all moved.
#[derive(Clone, Copy, Debug, Default)]
struct Query {
    calls: u32,
    since: Option<Instant>,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) job: Job,
    pub(super) task: TaskId,
    pub(super) group: GroupId,
    pub(super) files: Vec<u32>,
    /// Read-ahead state, by file.
    pub(super) ahead: Vec<ReadAhead>,
    pub(super) stats: ClientStats,
    /// When its wave and `startdelay` let it begin.
    pub(super) started: Instant,
    /// Its first lane, and how many it has.
    pub(super) first_lane: u32,
    pub(super) all_lanes: u32,
    /// Lanes that have not ended.
    pub(super) lanes: u32,
    /// One of its start-ups has begun.
    pub(super) has_started: bool,
    /// Another job's `exitall` ends it.
    pub(super) stopped: bool,
    /// Pages dirtied since it last looked at the limits.
    pub(super) dirtied: u32,
    rng: Rng,
    picker: Picker,
    query: Query,
    program: Option<Running>,
    pub(super) startups: Option<StartUps>,
    player: Option<Player>,
    /// Which replayed trace it is of, and which of its tasks it is.
    pub(super) traced: Option<(usize, usize)>,
    /// In sectors: where the data set starts in each file, and how much of each file it covers.
    base: u64,
    span: u64,
    /// In sectors: the next sequential position in each file.
    position: Vec<u64>,
    /// Where it is in each file, when it reads in zones.
    zones: Vec<Zone>,
    /// Which file the next call goes to, when they take turns.
    turn: usize,
    last_slot: usize,
    /// Sectors asked for so far, and the most that may be.
    issued: u64,
    limit: u64,
    calls: u64,
    calls_max: u64,
    /// Sectors and calls asked for, by direction, for rates.
    moved: [u64; 3],
    calls_by_direction: [u64; 3],
    /// A direction that was drawn, but had to wait for its rate.
    drawn: Option<Action>,
    sync_is_due: bool,
    /// Files that were synced at the end.
    closed: usize,
    /// CPU time to spin away before the next call.
    spin: Duration,
}

/// Which part of each of its files a client uses, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) base: u64,
    pub(super) span: u64,
}

impl Client {
    /// A client that will use a region of each of its `files`, with read-ahead windows of that many pages.
    pub(super) fn new(
        c: &crate::job::Client<'_>,
        files: Vec<u32>,
        region: Region,
        read_ahead: u32,
        seed: u64,
    ) -> Self {
        let (job, index, clone) = (c.job, c.job_index, c.clone);
        let Region { base, span } = region;
        let set = span * files.len() as u64;
        let limit = match job.io_size {
            _ if job.time_based || job.program.is_some() => u64::MAX,
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
            startups: Vec::new(),
            frames: None,
            replayed: None,
        };
        let seed = if job.randrepeat { job.randseed.map_or(seed, |s| s ^ seed) } else { seed };
        let mut rng = Rng::new(seed, &format!("client.{index}.{clone}"));
        let picker = picker(job, span, files.len(), &mut rng);
        let lanes = lanes(job);
        let startups = startups(c, span, seed);
        let player = match job.program {
            Some(Program::Player { bits_per_s }) => Some(Player::new(bits_per_s, span)),
            _ => None,
        };
        Self {
            job: job.clone(),
            task: TaskId(0),
            group: GroupId::ROOT,
            ahead: vec![ReadAhead::new(advice(job, read_ahead)); files.len()],
            position: vec![0; files.len()],
            zones: vec![Zone::default(); files.len()],
            files,
            stats,
            started: Instant::EPOCH,
            first_lane: 0,
            all_lanes: lanes,
            lanes,
            has_started: false,
            stopped: false,
            dirtied: 0,
            rng,
            picker,
            query: Query::default(),
            program: job.program.and_then(|p| Running::new(p, span)),
            startups,
            player,
            traced: None,
            base,
            span,
            turn: 0,
            last_slot: 0,
            issued: 0,
            limit,
            calls: 0,
            calls_max: job.number_ios.unwrap_or(u64::MAX),
            moved: [0; 3],
            calls_by_direction: [0; 3],
            drawn: None,
            sync_is_due: false,
            closed: 0,
            spin: Duration::ZERO,
        }
    }

    /// What a free lane does next.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if std::mem::take(&mut self.sync_is_due) {
            return Next::Call(self.sync_of(self.last_slot));
        }
        let done = self.issued >= self.limit || self.calls >= self.calls_max || self.span == 0;
        if done || self.is_over(now) {
            if let Some(startups) = &mut self.startups {
                startups.give_up(now);
            }
            if let Some(player) = &mut self.player {
                player.give_up(now);
            }
            return self.close();
        }
        if let Some(startups) = &mut self.startups {
            return match startups.next(now) {
                Turn::Begin => Next::StartUp,
                Turn::Read(step) => Next::Call(self.call_of(step)),
                Turn::Pause(until) => Next::Pause(self.not_after_end(until)),
                Turn::End => Next::End,
            };
        }
        if let Some(player) = &mut self.player {
            return match player.next(now) {
                player::Turn::Read(step) => Next::Call(self.call_of(step)),
                player::Turn::Pause(until) => Next::Pause(self.not_after_end(until)),
                player::Turn::End => Next::End,
            };
        }
        if let Some(program) = &mut self.program {
            let Some(step) = program.next() else { return Next::End };
            return Next::Call(self.call_of(step));
        }
        let action = self.drawn.take().unwrap_or_else(|| self.draw_action());
        if let Some(until) = self.rate_allows(action).filter(|&t| t > now) {
            self.drawn = Some(action);
            return Next::Pause(self.not_after_end(until));
        }
        Next::Call(self.draw_call(action))
    }

    /// A program's read.
    fn call_of(&self, step: Step) -> Call {
        let Step { offset, len, cpu, burst, meta } = step;
        let offset = self.base + offset;
        Call { file: self.files[0], offset, len, cpu, burst, meta, ..Call::NONE }
    }

    /// Whether it has one window of read-ahead under way at most: the next is sent for when the one before has come.
    //= deviates scan-one-window
    pub(super) fn has_one_window(&self) -> bool {
        self.job.program == Some(Program::DbScan)
    }

    /// A call that began at `since` has ended. When what is measured began and what it moved, if that has ended with it.
    pub(super) fn end_of_query(&mut self, since: Instant, bytes: u64) -> Option<(Instant, u64)> {
        let query = &mut self.query;
        let since = *query.since.get_or_insert(since);
        (query.calls, query.bytes) = (query.calls + 1, query.bytes + bytes);
        (query.calls >= self.job.query_calls || self.program.is_some())
            .then(|| (since, std::mem::take(query).bytes))
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.stopped || self.runs_until().is_some_and(|end| now >= end)
    }

    /// Where in its files it works: the first sector and how many.
    pub(super) const fn region(&self) -> (u64, u64) {
        (self.base, self.span)
    }

    /// The last lane syncs what the job wants synced at its end.
    fn close(&mut self) -> Next {
        let wanted = self.job.writes() && (self.job.end_fsync || self.job.fsync_on_close);
        if !wanted || self.lanes > 1 || self.closed == self.files.len() {
            return Next::End;
        }
        self.closed += 1;
        Next::Call(self.sync_of(self.closed - 1))
    }

    fn sync_of(&self, slot: usize) -> Call {
        #[allow(clippy::cast_possible_truncation, reason = "files of a client are counted in 32 bits")]
        Call { action: Action::Sync, slot: slot as u32, file: self.files[slot], ..Call::NONE }
    }

    pub(super) fn runs_until(&self) -> Option<Instant> {
        self.job.runtime.map(|r| self.started + self.job.ramp_time + r)
    }

    pub(super) fn not_after_end(&self, until: Instant) -> Instant {
        self.runs_until().map_or(until, |end| until.min(end))
    }

    fn draw_action(&mut self) -> Action {
        match self.job.rw.direction {
            Direction::Read => Action::Read,
            Direction::Write => Action::Write,
            Direction::Trim => Action::Trim,
            Direction::Mixed if self.rng.percent(self.job.rwmix_read_pct) => Action::Read,
            Direction::Mixed => Action::Write,
        }
    }

    /// When the caps on bytes and calls per second let the next call of this direction go.
    fn rate_allows(&self, action: Action) -> Option<Instant> {
        let (rate, iops) = match action {
            Action::Read => (self.job.rate.read, self.job.rate_iops.read),
            Action::Write => (self.job.rate.write, self.job.rate_iops.write),
            Action::Trim | Action::Sync => (self.job.rate.trim, self.job.rate_iops.trim),
        };
        if rate.is_none() && iops.is_none() {
            return None;
        }
        let at = |done: u64, per_second: u64| {
            let ns = u128::from(done) * 1_000_000_000 / u128::from(per_second.max(1));
            self.started + Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 2))
        };
        let i = direction_index(action);
        let by_bytes = rate.map(|r| at(self.moved[i] * 512, r));
        let by_calls = iops.map(|r| at(self.calls_by_direction[i], u64::from(r)));
        by_bytes.max(by_calls)
    }

    fn draw_call(&mut self, action: Action) -> Call {
        let (bs, random_pct) = match action {
            Action::Read => (&self.job.bs.read, self.job.random_pct.read),
            Action::Write => (&self.job.bs.write, self.job.random_pct.write),
            Action::Trim | Action::Sync => (&self.job.bs.trim, self.job.random_pct.trim),
        };
        let align = u64::from(bs.min_bytes().div_ceil(512));
        let len = u64::from(draw_size(bs, &mut self.rng).div_ceil(512)).min(self.span);
        let which = self.draw_file();
        let jump = random_pct == 100 || (random_pct > 0 && self.rng.percent(random_pct));
        let (start, room) = match self.job.zones {
            Some(zones) => self.zones[which].enter(&zones, len, self.span, &mut self.position[which]),
            None => (0, self.span - len),
        };
        let offset = if jump {
            start + self.picker.draw(which, room / align + 1, &mut self.rng) * align
        } else if self.position[which] > start + room {
            start
        } else {
            self.position[which]
        };
        self.position[which] = offset + len;
        self.last_slot = which;
        self.issued += len;
        self.calls += 1;
        let i = direction_index(action);
        self.moved[i] += len;
        self.calls_by_direction[i] += 1;
        let due = |every: u32| every > 0 && self.calls_by_direction[i].is_multiple_of(u64::from(every));
        self.sync_is_due = action == Action::Write && (due(self.job.fsync) || due(self.job.fdatasync));
        let cpu = std::mem::take(&mut self.spin);
        #[allow(clippy::cast_possible_truncation, reason = "a block size is below 4 GiB")]
        let (slot, len) = (which as u32, len as u32);
        Call { action, slot, file: self.files[which], offset: self.base + offset, len, cpu, ..Call::NONE }
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
            FileService::Random => usize::try_from(self.rng.below(files as u64)).unwrap_or(0),
            FileService::Sequential => {
                if self.position[self.turn] >= self.span {
                    self.position[self.turn] = 0;
                    self.turn = (self.turn + 1) % files;
                }
                self.turn
            }
        }
    }

    /// Its figures, at the end of the run.
    pub(super) fn into_stats(self, now: Instant) -> ClientStats {
        let times = |mut s: StartUps| {
            s.give_up(now);
            s.into_times()
        };
        let frames = self.player.map(|mut p| {
            p.give_up(now);
            p.frames()
        });
        let startups = self.startups.map_or(self.stats.startups, times);
        ClientStats { startups, frames, ..self.stats }
    }

    /// Whether a call that completes now is measured.
    pub(super) fn is_measured(&self, now: Instant) -> bool {
        self.job.ramp_time.is_zero() || now.saturating_since(self.started) >= self.job.ramp_time
    }

    /// The pause after the call just completed, if any: until when. The part to be spun away is added to the next call.
    pub(super) fn think_pause(&mut self, now: Instant) -> Option<Instant> {
        if self.job.thinktime.is_zero() || !self.calls.is_multiple_of(u64::from(self.job.thinktime_blocks)) {
            return None;
        }
        self.spin += self.job.thinktime_spin;
        let pause = self.job.thinktime.saturating_sub(self.job.thinktime_spin);
        (!pause.is_zero()).then(|| self.not_after_end(now + pause))
    }
}

const fn direction_index(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write => 1,
        Action::Trim | Action::Sync => 2,
    }
}

/// How many calls the job really has in flight. A buffered call through libaio blocks its submitter, so only one is.
//= fio-3.33 HOWTO "iodepth"
fn lanes(job: &Job) -> u32 {
    let is_async = job.engine == Engine::Async && matches!(job.program, None | Some(Program::Trace));
    if is_async && (job.direct || job.ioengine != "libaio") { job.iodepth } else { 1 }
}

/// The start-ups of a client that starts applications, in a region of so many sectors.
fn startups(c: &crate::job::Client<'_>, span: u64, seed: u64) -> Option<StartUps> {
    let Some(Program::StartUp(application)) = c.job.program else { return None };
    let mut rng = Rng::new(seed, &format!("startup.{}.{}", c.job_index, c.clone));
    Some(StartUps::new(application, c.job, span, &mut rng))
}

/// The largest window of read-ahead after what fio tells the kernel about the file.
//= devices.md 4.3
fn advice(job: &Job, pages: u32) -> u32 {
    match (job.program, job.rw.random) {
        // Its reads are those that reached the disk: read-ahead was had.
        (Some(Program::StartUp(_)), _) => 0,
        (Some(_), _) => pages,
        (None, _) if !job.fadvise => pages,
        (None, true) => 0,
        (None, false) => pages * 2,
    }
}

/// Every block once per pass if all calls are of one size; else, as blocks would overlap anyway, by lot.
fn picker(job: &Job, span: u64, files: usize, rng: &mut Rng) -> Picker {
    let sizes = match job.rw.direction {
        Direction::Read => [&job.bs.read; 2],
        Direction::Write => [&job.bs.write; 2],
        Direction::Trim => [&job.bs.trim; 2],
        Direction::Mixed => [&job.bs.read, &job.bs.write],
    };
    let is_one_size = sizes[0] == sizes[1] && matches!(sizes[0], BlockSize::Fixed(_));
    let smallest = sizes.iter().map(|s| s.min_bytes()).min().unwrap_or(4096);
    let repeats = job.norandommap || !is_one_size;
    let span = job.zones.map_or(span, |z| span.min(z.range));
    Picker::new(job.distribution, repeats, span / u64::from(smallest.div_ceil(512)).max(1), files, rng)
}

/// A block size from its distribution, in bytes.
fn draw_size(bs: &BlockSize, rng: &mut Rng) -> u32 {
    match bs {
        BlockSize::Fixed(bytes) => *bytes,
        #[allow(clippy::cast_possible_truncation, reason = "below the larger of two u32")]
        BlockSize::Range { min, max } => min * (1 + rng.below(u64::from(max / min)) as u32),
        BlockSize::Split(parts) => {
            let mut at = rng.below(100);
            for &(bytes, percent) in parts {
                if at < u64::from(percent) {
                    return bytes;
                }
                at -= u64::from(percent);
            }
            parts[0].0
        }
    }
}
