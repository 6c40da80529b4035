//! A client: one clone of a job, and what it does next.
//!
//! A client has `iodepth` *lanes* (calls in flight; one for most). Whenever a lane is free it asks [`Client::next`]:
//! make this call, pause until then, wait for the others, or end. Positions, limits and chance belong to the client and are shared by
//! its lanes; so do its pauses. Think times and rates stop the client, not a lane: it waits for all calls in flight, then pauses.
//!
//! ```text
//!   next ─► a pause? ─► over? then fsyncs at the end ─► a due fsync ─► the pattern: direction, rate, place, length ─► call
//! ```

use super::pattern::{self, Pattern};
use super::player::{self, Player};
use super::program::{Running, Step};
use super::readahead::ReadAhead;
use super::startup::{StartUps, Turn};
use crate::job::{Engine, Job, Program};
use crate::metrics::{ClientStats, CpuStats, DEPTHS, OpStats};
use crate::rng::Rng;
use fairhead_core::{Duration, GroupId, Instant, TaskId};

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This call.
    Call(Call),
    /// Nothing until then; then ask again.
    Pause(Instant),
    /// Nothing until the client's other calls have ended; then ask again.
    Park,
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
    /// Bytes of the first and of the last sector that it leaves out.
    pub(super) head: u16,
    pub(super) tail: u16,
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
        head: 0,
        tail: 0,
    };

    /// Where in the file it begins, in bytes.
    pub(super) fn offset_bytes(&self) -> u64 {
        self.offset * 512 + u64::from(self.head)
    }

    /// How much it moves, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.len) * 512 - u64::from(self.head) - u64::from(self.tail)
    }
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
    /// When it noticed that its ramp time was over: at the end of a call. Its run time begins then.
    pub(super) ramped: Option<Instant>,
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
    query: Query,
    program: Option<Running>,
    pub(super) startups: Option<StartUps>,
    player: Option<Player>,
    /// Which replayed trace it is of, and which of its tasks it is.
    pub(super) traced: Option<(usize, usize)>,
    region: Region,
    /// What `rw` says; programs do without.
    pattern: Option<Pattern>,
    /// Calls that have begun and not ended.
    pub(super) calling: u32,
    /// Bytes of calls that ended while all jobs of its wave ran.
    pub(super) together: u64,
    /// Calls of the pattern that have not ended.
    in_flight: u32,
    /// No call begins before those in flight have ended, and not for that long after.
    hold: Option<Duration>,
    /// No call begins before.
    resumes: Instant,
    /// Calls that had begun when none was in flight last, and calls that had been seen to end at the last think time.
    quiet_at: u64,
    thought_at: u64,
    /// The pass is over, but for what is synced at its end.
    ending: bool,
    /// Files that were synced at the end of the pass.
    closed: usize,
    /// It has nothing more to do.
    ended: bool,
    last_slot: usize,
    /// Writes so far, for fsyncs.
    writes: u64,
    sync_is_due: bool,
    /// CPU time to spin away before the next call.
    spin: Duration,
}

/// Which part of each of its files a client uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) base: u64,
    pub(super) span: u64,
    /// The data set, all files together: what the job moves unless `io_size` says otherwise.
    pub(super) size: u64,
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
        let span = region.span / 512;
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
            together: None,
            cpu: CpuStats::default(),
            depths: [0; DEPTHS],
            startups: Vec::new(),
            frames: None,
            replayed: None,
        };
        let seed = if job.randrepeat { job.randseed.map_or(seed, |s| s ^ seed) } else { seed };
        let mut rng = Rng::new(seed, &format!("client.{index}.{clone}"));
        let pattern =
            job.program.is_none().then(|| Pattern::new(job, region.span, region.size, files.len(), &mut rng));
        let lanes = lanes(job);
        let player = match job.program {
            Some(Program::Player { bits_per_s }) => Some(Player::new(bits_per_s, span)),
            _ => None,
        };
        Self {
            job: job.clone(),
            task: TaskId(0),
            group: GroupId::ROOT,
            ahead: vec![ReadAhead::new(advice(job, read_ahead)); files.len()],
            files,
            stats,
            started: Instant::EPOCH,
            ramped: None,
            first_lane: 0,
            all_lanes: lanes,
            lanes,
            has_started: false,
            stopped: false,
            dirtied: 0,
            rng,
            query: Query::default(),
            program: job.program.and_then(|p| Running::new(p, span)),
            startups: startups(c, span, seed),
            player,
            traced: None,
            region,
            pattern,
            calling: 0,
            together: 0,
            in_flight: 0,
            hold: None,
            resumes: Instant::EPOCH,
            quiet_at: 0,
            thought_at: 0,
            ending: false,
            closed: 0,
            ended: false,
            last_slot: 0,
            writes: 0,
            sync_is_due: false,
            spin: Duration::ZERO,
        }
    }

    /// What a free lane does next.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if let Some(pattern) = self.pattern.take() {
            return self.next_of_pattern(pattern, now);
        }
        if self.region.span == 0 || self.is_over(now) {
            if let Some(startups) = &mut self.startups {
                startups.give_up(now);
            }
            if let Some(player) = &mut self.player {
                player.give_up(now);
            }
            return Next::End;
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
        Next::End
    }

    /// The same of a pattern. Lanes that have to wait for each other's calls are parked: [`Client::call_ended`] says when they are to ask again.
    fn next_of_pattern(&mut self, mut pattern: Pattern, now: Instant) -> Next {
        let next = self.turn_of(&mut pattern, now);
        if let Next::Call(_) = next {
            self.in_flight += 1;
        }
        self.pattern = Some(pattern);
        next
    }

    fn turn_of(&mut self, pattern: &mut Pattern, now: Instant) -> Next {
        if self.ended {
            return Next::End;
        }
        if self.hold.is_some() && self.in_flight > 0 {
            return Next::Park;
        }
        if let Some(pause) = self.hold.take() {
            (self.resumes, self.quiet_at) = (now + pause, pattern.calls());
        }
        let over = self.is_over(now);
        if self.resumes > now && !over {
            return Next::Pause(self.not_after_end(self.resumes));
        }
        loop {
            let done = over || pattern.is_done(&self.job) || self.region.span == 0;
            if self.ending || done {
                self.ending = true;
                if let Some(next) = self.end_pass() {
                    return next;
                }
                if done || !pattern.next_pass(&self.job, &mut self.rng) {
                    self.ended = true;
                    return Next::End;
                }
                self.ending = false;
            }
            if std::mem::take(&mut self.sync_is_due) {
                return Next::Call(self.sync_of(self.last_slot));
            }
            match pattern.draw(&self.job, now, self.started, &mut self.rng) {
                pattern::Turn::Io(io) => {
                    self.think_after(pattern.calls());
                    return Next::Call(self.call_of_io(io));
                }
                pattern::Turn::Wait(pause) if self.in_flight > 0 => {
                    self.hold = Some(pause);
                    return Next::Park;
                }
                pattern::Turn::Wait(pause) => {
                    self.resumes = now + pause;
                    return Next::Pause(self.not_after_end(self.resumes));
                }
                pattern::Turn::Exhausted => self.ending = true,
            }
        }
    }

    /// A pass ends when its calls have ended and what the job wants synced then is. `None`: it has ended.
    fn end_pass(&mut self) -> Option<Next> {
        if self.in_flight > 0 {
            self.hold = Some(Duration::ZERO);
            return Some(Next::Park);
        }
        let wanted = self.job.writes() && (self.job.end_fsync || self.job.fsync_on_close);
        if wanted && self.closed < self.files.len() {
            self.closed += 1;
            return Some(Next::Call(self.sync_of(self.closed - 1)));
        }
        self.closed = 0;
        None
    }

    /// A call of a pattern has ended. True if lanes that were parked are to ask again.
    pub(super) fn call_ended(&mut self) -> bool {
        if self.pattern.is_none() {
            return false;
        }
        self.in_flight -= 1;
        self.in_flight == 0
    }

    /// The think time after the call that begins now, the `calls`-th. fio looks for calls that have ended when it has as many in flight as it may, takes
    /// one of them, and then sees whether it is time to pause. A pause begins when no call is in flight.
    //= fio-3.33 HOWTO "thinktime", "thinktime_blocks"; the order of issue, completion and pause seen in its logs
    fn think_after(&mut self, calls: u64) {
        if self.job.thinktime.is_zero() {
            return;
        }
        let seen = self.quiet_at.max((calls + 1).saturating_sub(u64::from(self.all_lanes)));
        if seen.saturating_sub(self.thought_at) >= u64::from(self.job.thinktime_blocks) {
            self.thought_at = seen;
            self.spin += self.job.thinktime_spin;
            self.hold = Some(self.job.thinktime.saturating_sub(self.job.thinktime_spin));
        }
    }

    /// A program's read.
    fn call_of(&self, step: Step) -> Call {
        let Step { offset, len, cpu, burst, meta } = step;
        let offset = self.region.base / 512 + offset;
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
        (self.region.base / 512, self.region.span / 512)
    }

    fn sync_of(&self, slot: usize) -> Call {
        #[allow(clippy::cast_possible_truncation, reason = "files of a client are counted in 32 bits")]
        Call { action: Action::Sync, slot: slot as u32, file: self.files[slot], ..Call::NONE }
    }

    pub(super) fn runs_until(&self) -> Option<Instant> {
        let counts_from = self.counts_from();
        self.job.runtime.map(|r| counts_from + r)
    }

    /// When its figures and its run time begin. Never, before it has noticed that its ramp time is over.
    pub(super) fn counts_from(&self) -> Instant {
        let never = Instant::EPOCH + Duration::MAX;
        if self.job.ramp_time.is_zero() { self.started } else { self.ramped.unwrap_or(never) }
    }

    /// A call has ended: fio looks at its ramp time then, and only then. Answers whether the ramp ends with it.
    //= fio 3.33: with thinktime=700ms ramp_time=1 runtime=2 the run time begins at 1.4 s, with the second call's end
    pub(super) fn notice_ramp(&mut self, now: Instant) -> bool {
        let ends = self.ramped.is_none()
            && !self.job.ramp_time.is_zero()
            && now.saturating_since(self.started) >= self.job.ramp_time;
        if ends {
            self.ramped = Some(now);
        }
        ends
    }

    pub(super) fn not_after_end(&self, until: Instant) -> Instant {
        self.runs_until().map_or(until, |end| until.min(end))
    }

    /// A call of the pattern: the sectors that its bytes are in.
    fn call_of_io(&mut self, io: pattern::Io) -> Call {
        let at = self.region.base + io.offset;
        let end = at + u64::from(io.len);
        self.last_slot = io.file;
        if io.action == Action::Write {
            self.writes += 1;
            let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
            self.sync_is_due = due(self.job.fsync) || due(self.job.fdatasync);
        }
        #[allow(clippy::cast_possible_truncation, reason = "a block size is below 4 GiB, a rest below 512")]
        Call {
            action: io.action,
            slot: io.file as u32,
            file: self.files[io.file],
            offset: at / 512,
            len: (end.div_ceil(512) - at / 512) as u32,
            head: (at % 512) as u16,
            tail: (end.div_ceil(512) * 512 - end) as u16,
            cpu: std::mem::take(&mut self.spin),
            ..Call::NONE
        }
    }

    /// A call begins, beside those that have not ended.
    pub(super) fn begins(&mut self, action: Action) {
        self.calling += 1;
        if action != Action::Sync {
            let class = self.calling.ilog2() as usize;
            self.stats.depths[class.min(DEPTHS - 1)] += 1;
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
        now >= self.counts_from()
    }

    /// The pause of a program after the call just completed, if any: until when. The part to be spun away is added to the next call.
    pub(super) fn think_pause(&mut self, now: Instant) -> Option<Instant> {
        if self.job.thinktime.is_zero() || self.pattern.is_some() {
            return None;
        }
        self.spin += self.job.thinktime_spin;
        let pause = self.job.thinktime.saturating_sub(self.job.thinktime_spin);
        (!pause.is_zero()).then(|| self.not_after_end(now + pause))
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
