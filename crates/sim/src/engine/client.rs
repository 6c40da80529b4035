//! A client: one clone of a job, and what it does next.
//!
//! A client has `iodepth` *lanes* (calls in flight; one for most). Whenever a lane is free it asks
//! [`Client::next`]: make this call, pause until then, wait for the others, or end. Positions, limits and
//! chance belong to the client and are shared by its lanes; so do its pauses. Think times and rates stop the
//! client, not a lane: it waits for all calls in flight, then pauses.
//!
//! ```text
//!   next ─► a pause? ─► over? then fsyncs at the end ─► a due fsync ─► the pattern: direction, rate, place, length ─► call
//! ```

pub(super) use super::action::{Action, Region, Synced, lanes};
use super::balance::Debt;
pub(super) use super::call::Call;
use super::pattern::{self, Io, Pattern};
use super::per_call::PerCall;
use super::program::{Step, Turn};
use super::readahead::ReadAhead;
use super::reads_again::ReadsAgain;
use super::script::Script;
use super::startup::StartUps;
use super::steer::{Depth, Floor, Share, Verdict};
use crate::host::Host;
use crate::job::{Engine, Job, LatencyTarget, Program};
use crate::metrics::{ClientStats, CpuStats, DEPTHS, OpStats};
use crate::rng::Rng;
use fairhead_core::{Duration, GroupId, Instant, IoPrio, TaskId};

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Make this call.
    Call(Call),
    /// Do nothing until then; then ask again.
    Pause(Instant),
    /// Do nothing until the client's other calls have ended; then ask again.
    Park,
    /// A start-up begins: drop the page cache, watch the time, and ask again.
    StartUp,
    /// Do nothing more.
    End,
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
    pub(super) per_call: PerCall,
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
    /// It has a ramp time.
    ramps: bool,
    /// How long it runs from there, if its time is limited.
    runtime: Option<Duration>,
    /// Its first lane, and how many it has.
    pub(super) first_lane: u32,
    pub(super) all_lanes: u32,
    /// Lanes that have not ended.
    pub(super) lanes: u32,
    /// One of its start-ups has begun.
    pub(super) has_started: bool,
    /// Another job's `exitall` ends it.
    pub(super) stopped: bool,
    pub(super) debt: Debt,
    /// Its next call opens a disk, whose cached pages are written and dropped (`invalidate`).
    pub(super) opens_disk: bool,
    rng: Rng,
    /// Which calls have another priority: chance of its own, so that it moves no place.
    prio_rng: Rng,
    query: Query,
    /// What says which calls it makes. A pattern is taken out for each call.
    pub(super) script: Script,
    region: Region,
    /// Calls that have begun and not ended.
    pub(super) calling: u32,
    /// Calls other than syncs that have ended, and their bytes.
    pub(super) ended_calls: u64,
    pub(super) ended_bytes: u64,
    /// Bytes of calls that ended while all jobs of its wave ran.
    pub(super) together: u64,
    /// Calls of the pattern that have not ended.
    in_flight: u32,
    /// The pause that begins when the calls in flight have ended; no call begins before its end.
    pause_after: Option<Duration>,
    /// No call begins before.
    resumes: Instant,
    /// Calls that had begun when none was in flight last, and calls that had been seen to end at the last
    /// think time.
    quiet_at: u64,
    thought_at: u64,
    /// The pass is over, but for what is synced at its end.
    ending: bool,
    /// Files that were synced at the end of the pass.
    closed: usize,
    /// It has nothing more to do.
    ended: bool,
    /// Writes so far, for fsyncs.
    writes: u64,
    sync_is_due: Option<Synced>,
    /// What it has trimmed and is to write.
    trimmed: Option<Io>,
    /// What it has written and is to read again.
    reads_again: ReadsAgain,
    /// The last call was an fsync.
    was_sync: bool,
    /// CPU time to spin away before the next call.
    spin: Duration,
    /// Its part in a flow, and whether it waits for the others.
    pub(super) share: Option<Share>,
    pub(super) waits_for_flow: bool,
    /// How many of its calls may be in flight, if that is sought.
    depth: Option<Depth>,
    floor: Floor,
    /// It waits for another job to end before it starts.
    pub(super) waits: bool,
    /// Why it has ended early, or what it has found.
    pub(super) note: Option<String>,
}

impl Client {
    /// A client that will use a region of each of its `files`, with the host's read-ahead.
    pub(super) fn new(
        c: &crate::job::Client<'_>,
        files: Vec<u32>,
        region: Region,
        host: &Host,
        seed: u64,
    ) -> Self {
        let (job, index, clone) = (c.job, c.job_index, c.clone);
        let span = region.span / 512;
        // fio without `randrepeat` draws anew in each run; here only the job's own `randseed` is left out.
        let seed = if job.randrepeat { job.randseed.map_or(seed, |s| s ^ seed) } else { seed };
        let mut rng = Rng::new(seed, &format!("client.{index}.{clone}"));
        let script = if job.program.is_none() {
            let pattern = Pattern::new(job, region, files.len(), &mut rng);
            Script::Pattern(Some(Box::new(pattern.inside(region.base, region.file))))
        } else {
            Script::of(job, span, || startups(c, span, seed))
        };
        let lanes = lanes(job);
        Self {
            per_call: PerCall::of(job),
            job: job.clone(),
            task: TaskId(0),
            group: GroupId::ROOT,
            ahead: vec![ReadAhead::of(job, host); files.len()],
            files,
            stats: no_stats(c),
            started: Instant::EPOCH,
            ramped: None,
            ramps: !job.ramp_time.is_zero(),
            runtime: job.runtime,
            first_lane: 0,
            all_lanes: lanes,
            lanes,
            has_started: false,
            stopped: false,
            debt: Debt::NONE,
            opens_disk: job.invalidate && job.is_raw_disk() && job.engine != Engine::Null,
            rng,
            prio_rng: Rng::new(seed, &format!("cmdprio.{index}.{clone}")),
            query: Query::default(),
            script,
            region,
            calling: 0,
            ended_calls: 0,
            ended_bytes: 0,
            together: 0,
            in_flight: 0,
            pause_after: None,
            resumes: Instant::EPOCH,
            quiet_at: 0,
            thought_at: 0,
            ending: false,
            closed: 0,
            ended: false,
            writes: 0,
            sync_is_due: None,
            trimmed: None,
            reads_again: ReadsAgain::default(),
            was_sync: false,
            spin: Duration::ZERO,
            share: None,
            waits_for_flow: false,
            depth: Depth::new(job.latency_target, lanes),
            floor: Floor::default(),
            waits: false,
            note: None,
        }
    }

    /// Its files have regions of their own lengths, in bytes.
    pub(super) fn vary(&mut self, lengths: Vec<u64>) {
        if let Script::Pattern(Some(pattern)) = &mut self.script {
            pattern.vary(&self.job, lengths, &mut self.rng);
        }
    }

    /// What a free lane does next.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if let Some(pattern) = self.script.take_pattern() {
            return self.next_of_pattern(pattern, now);
        }
        if self.region.span == 0 || self.is_over(now) {
            self.script.give_up(now);
            return Next::End;
        }
        match self.script.next(now) {
            Turn::Begin => Next::StartUp,
            Turn::Read(step) => Next::Call(self.call_of(step)),
            Turn::Pause(until) => Next::Pause(self.not_after_end(until)),
            Turn::End => Next::End,
        }
    }

    /// What a lane of a pattern does next. Lanes that have to wait for each other's calls are parked:
    /// [`Client::call_ended`] says when they are to ask again.
    fn next_of_pattern(&mut self, mut pattern: Box<Pattern>, now: Instant) -> Next {
        let next = self.turn_of(&mut pattern, now);
        if let Next::Call(_) = next {
            self.in_flight += 1;
        }
        self.script.put_back(pattern);
        next
    }

    fn turn_of(&mut self, pattern: &mut Pattern, now: Instant) -> Next {
        if self.ended {
            return Next::End;
        }
        let is_full = self.depth.as_ref().is_some_and(|depth| self.in_flight >= depth.now());
        // A pause begins when the calls before it have ended; until then the lanes are parked.
        if self.in_flight > 0 && (self.pause_after.is_some() || is_full) {
            return Next::Park;
        }
        if let Some(pause) = self.pause_after.take() {
            (self.resumes, self.quiet_at) = (now + pause, pattern.calls());
        }
        // Thinking ends with the run time: the client does not sleep beyond it.
        let over = self.is_over(now);
        if self.resumes > now && !over {
            return Next::Pause(self.not_after_end(self.resumes));
        }
        if let Some(io) = self.trimmed.take() {
            self.reads_again.note(&self.job, io);
            return Next::Call(self.call_of_io(io));
        }
        loop {
            let done =
                over || pattern.is_done(&self.job, self.reads_again.between()) || self.region.span == 0;
            if (self.ending || done)
                && let Some(next) = self.end_of_pass(pattern, over, done)
            {
                return next;
            }
            // Before the flow and the rates: a sync belongs to the writes that are done.
            if let Some(kind) = self.sync_is_due.take() {
                self.was_sync = true;
                let file = pattern.file_to_sync(&self.job, &mut self.rng);
                return Next::Call(self.sync_of(file, kind));
            }
            if let Some(io) = self.reads_again.next(&self.job) {
                return Next::Call(self.call_of_io(io));
            }
            if let Some(next) = self.wait_for_flow(now) {
                return next;
            }
            match pattern.draw(&self.job, now, self.started, &mut self.rng) {
                pattern::Turn::Io(io) => {
                    self.share.iter_mut().for_each(Share::count);
                    self.think_after(pattern.calls());
                    if self.job.writes_trimmed {
                        self.trimmed = Some(Io { action: Action::Write, ..io });
                    }
                    self.reads_again.note(&self.job, io);
                    return Next::Call(self.call_of_io(io));
                }
                // With `io_submit_mode=offload` submission does not wait for completions; else fio reaps what
                // is in flight before it sleeps.
                pattern::Turn::Wait(pause) if self.in_flight > 0 && !self.job.offload => {
                    self.pause_after = Some(pause);
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

    /// What is left to do at the end of a pass, or of all. `None`: another pass has begun.
    fn end_of_pass(&mut self, pattern: &mut Pattern, over: bool, done: bool) -> Option<Next> {
        self.ending = true;
        if !self.reads_again.is_ending()
            && let Some(next) = self.end_pass()
        {
            return Some(next);
        }
        if !over && let Some(io) = self.reads_again.next_at_end(&self.job) {
            return Some(Next::Call(self.call_of_io(io)));
        }
        if self.reads_again.is_ending() && self.in_flight > 0 {
            self.pause_after = Some(Duration::ZERO);
            return Some(Next::Park);
        }
        self.reads_again.end();
        if done || !pattern.next_pass(&self.job, self.reads_again.bytes(), &mut self.rng) {
            self.ended = true;
            return Some(Next::End);
        }
        self.ending = false;
        None
    }

    /// A pass ends when its calls have ended and what the job wants synced then is. `None`: it has ended.
    fn end_pass(&mut self) -> Option<Next> {
        if self.in_flight > 0 {
            self.pause_after = Some(Duration::ZERO);
            return Some(Next::Park);
        }
        // fio leaves it out behind another fsync.
        let wanted = self.job.writes()
            && (self.job.end_fsync || self.job.fsync_on_close)
            && (!self.was_sync || self.closed > 0);
        if wanted && self.closed < self.files.len() {
            self.closed += 1;
            return Some(Next::Call(self.sync_of(self.closed - 1, Synced::AtEnd)));
        }
        self.closed = 0;
        None
    }

    /// What a client does that has more calls than its part of a flow. `None`: it has not.
    fn wait_for_flow(&mut self, now: Instant) -> Option<Next> {
        self.waits_for_flow = false;
        let share = self.share.as_ref().filter(|share| share.is_ahead())?;
        let sleep = share.flow().sleep;
        if sleep.is_zero() {
            self.waits_for_flow = true;
            return Some(self.runs_until().map_or(Next::Park, Next::Pause));
        }
        if self.in_flight > 0 {
            self.pause_after = Some(sleep);
            return Some(Next::Park);
        }
        self.resumes = now + sleep;
        Some(Next::Pause(self.not_after_end(self.resumes)))
    }

    /// A call has ended after `latency`. True if lanes that were parked are to ask again.
    #[inline]
    pub(super) fn call_ended(&mut self, action: Action, bytes: u64, latency: Duration, now: Instant) -> bool {
        if !self.script.is_pattern() {
            return false;
        }
        self.in_flight -= 1;
        if self.per_call.has_bounds {
            self.keep_bounds(action, bytes, latency, now);
        }
        if self.depth.is_some() && action != Action::Sync && self.is_measured(now) {
            return self.steer_depth(latency, now);
        }
        self.in_flight == 0
    }

    /// Adjusts the number of calls in flight where the job searches for the largest that keeps its latency
    /// target. Returns whether parked lanes are to ask again.
    #[cold]
    #[inline(never)]
    fn steer_depth(&mut self, latency: Duration, now: Instant) -> bool {
        let Some(depth) = &mut self.depth else { return false };
        let verdict = depth.call_ended(latency, now);
        let found = depth.now();
        match verdict {
            Verdict::GoOn | Verdict::More => {}
            Verdict::Settle => self.pause_after = Some(Duration::ZERO),
            Verdict::MeasureAnew => self.measure_anew(now),
            Verdict::Done => {
                let LatencyTarget { target, percentile, .. } = self.job.latency_target;
                let calls = if found == 1 { "call" } else { "calls" };
                self.give_up(format!("keeps {target} in {percentile} % with {found} {calls} at a time"));
            }
            Verdict::GiveUp => {
                let target = self.job.latency_target.target;
                self.give_up(format!(
                    "ends after {latency} for a call, more than latency_target={target} with one at a time"
                ));
            }
        }
        self.in_flight == 0 || verdict == Verdict::More
    }

    /// Ends the client if a call took too long, or if it is too slow.
    fn keep_bounds(&mut self, action: Action, bytes: u64, latency: Duration, now: Instant) {
        let most = match action {
            Action::Read => self.job.max_latency.read,
            Action::Write => self.job.max_latency.write,
            Action::Trim => self.job.max_latency.trim,
            Action::Sync => None,
        };
        if let Some(most) = most.filter(|most| latency > *most) {
            self.give_up(format!("ends after {latency} for a call, more than max_latency={most}"));
        }
        let slow = self.floor.call_ended(&self.job, action, bytes, (self.started, now));
        if let Some((rate, least)) = slow {
            self.give_up(format!("ends at {rate} a second, less than {least}"));
        }
    }

    fn give_up(&mut self, why: String) {
        self.stopped = true;
        let name = &self.job.name;
        self.note.get_or_insert_with(|| match self.job.numjobs {
            1 => format!("job '{name}' {why}"),
            _ => format!("job '{name}', clone {}: {why}", self.stats.clone),
        });
    }

    /// What was measured so far is left out, as if it had been a ramp; the end of the run time stays.
    fn measure_anew(&mut self, now: Instant) {
        let before = now.saturating_since(self.counts_from());
        self.runtime = self.runtime.map(|r| r.saturating_sub(before));
        (self.ramps, self.ramped) = (true, Some(now));
        let stats = &mut self.stats;
        [stats.read, stats.write, stats.trim, stats.sync, stats.sync_of_load] =
            std::array::from_fn(|_| OpStats::new());
        stats.fsyncs = 0;
    }

    /// Starts the client: its wave has begun, and the jobs that it waits for have ended.
    pub(super) fn start(&mut self, at: Instant) {
        (self.started, self.waits) = (at, false);
        self.stats.started = at.since(Instant::EPOCH);
        let measured = at + self.job.ramp_time;
        self.depth.iter_mut().for_each(|depth| depth.start(measured));
    }

    /// The think time after the call that begins now, the `calls`-th. fio looks for calls that have ended
    /// when it has as many in flight as it may, takes one of them, and then sees whether it is time to pause.
    /// A pause begins when no call is in flight.
    //= fio-3.33 HOWTO "thinktime", "thinktime_blocks"; the order of issue, completion and pause seen in its logs
    fn think_after(&mut self, calls: u64) {
        if !self.per_call.thinks {
            return;
        }
        let seen = self.quiet_at.max((calls + 1).saturating_sub(u64::from(self.all_lanes)));
        if seen.saturating_sub(self.thought_at) >= u64::from(self.job.thinktime_blocks) {
            self.thought_at = seen;
            self.spin += self.job.thinktime_spin;
            self.pause_after = Some(self.job.thinktime.saturating_sub(self.job.thinktime_spin));
        }
    }

    /// A program's read.
    fn call_of(&self, step: Step) -> Call {
        let Step { offset, len, cpu, burst, meta } = step;
        let offset = self.region.base / 512 + offset;
        Call { file: self.files[0], offset, len, cpu, burst, meta, ..Call::NONE }
    }

    /// Whether it has at most one window of read-ahead in flight: it asks for the next when the one before
    /// has arrived.
    //= docs/reference/hosts.md#one-window-per-scan
    pub(super) fn has_one_window(&self) -> bool {
        self.job.program == Some(Program::DbScan)
    }

    /// A call that began at `since` has ended. When what is measured began and what it moved, if that has
    /// ended with it.
    fn end_of_query(&mut self, since: Instant, bytes: u64) -> Option<(Instant, u64)> {
        if self.per_call.is_measured_alone {
            return Some((since, bytes));
        }
        let query = &mut self.query;
        let since = *query.since.get_or_insert(since);
        (query.calls, query.bytes) = (query.calls + 1, query.bytes + bytes);
        (query.calls >= self.job.query_calls || matches!(self.script, Script::Program(_)))
            .then(|| (since, std::mem::take(query).bytes))
    }

    /// The time of the start that is its `iteration`-th is over, unless it has ended. Returns whether it was.
    pub(super) fn startup_times_out(&mut self, now: Instant, iteration: u32) -> bool {
        let Script::StartUps(startups) = &mut self.script else { return false };
        startups.time_out(now, iteration)
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.stopped || self.runs_until().is_some_and(|end| now >= end)
    }

    /// Where in its files it works: the first sector and how many.
    pub(super) const fn region(&self) -> (u64, u64) {
        (self.region.base / 512, self.region.span / 512)
    }

    fn sync_of(&self, slot: usize, synced: Synced) -> Call {
        #[allow(clippy::cast_possible_truncation, reason = "files of a client are counted in 32 bits")]
        Call { action: Action::Sync, synced, slot: slot as u32, file: self.files[slot], ..Call::NONE }
    }

    pub(super) fn runs_until(&self) -> Option<Instant> {
        let counts_from = self.counts_from();
        self.runtime.map(|r| counts_from + r)
    }

    /// When its figures and its run time begin. Never, before it has noticed that its ramp time is over.
    pub(super) fn counts_from(&self) -> Instant {
        let never = Instant::EPOCH + Duration::MAX;
        if !self.ramps { self.started } else { self.ramped.unwrap_or(never) }
    }

    /// A call has ended: fio looks at its ramp time then, and only then. Returns whether the ramp ends with
    /// it.
    //= fio 3.33: with thinktime=700ms ramp_time=1 runtime=2 the run time begins at 1.4 s, with the second call's end
    pub(super) fn notice_ramp(&mut self, now: Instant) -> bool {
        let ends =
            self.ramps && self.ramped.is_none() && now.saturating_since(self.started) >= self.job.ramp_time;
        if ends {
            self.ramped = Some(now);
        }
        ends
    }

    pub(super) fn not_after_end(&self, until: Instant) -> Instant {
        self.runs_until().map_or(until, |end| until.min(end))
    }

    /// A call of the pattern: the sectors that its bytes are in.
    fn call_of_io(&mut self, io: Io) -> Call {
        let at = self.region.base + io.offset;
        let end = at + u64::from(io.len);
        self.was_sync = false;
        if io.action == Action::Write {
            self.writes += 1;
            let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
            // fio counts writes of the job, not bytes, and syncs before the next call.
            self.sync_is_due = match (due(self.job.fsync), due(self.job.fdatasync)) {
                (true, _) => Some(Synced::Fsync),
                (false, true) => Some(Synced::Fdatasync),
                (false, false) => None,
            };
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
            prio: self.call_prio(io.action, io.len),
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

    /// Counts a call that began at `since` and has ended, and measures it if it is measured.
    #[inline]
    pub(super) fn count_call(&mut self, call: &Call, since: Instant, now: Instant, is_measured: bool) {
        let bytes = call.bytes();
        self.calling -= 1;
        if call.action != Action::Sync {
            self.ended_calls += 1;
            self.ended_bytes += bytes;
        }
        let query = self.end_of_query(since, bytes);
        let Some((since, bytes)) = query.filter(|_| is_measured) else { return };
        let stats = match call.action {
            Action::Read => &mut self.stats.read,
            Action::Write => &mut self.stats.write,
            Action::Trim => &mut self.stats.trim,
            Action::Sync => &mut self.stats.sync,
        };
        stats.record(bytes, now.since(since));
        if call.action == Action::Sync && call.synced != Synced::AtEnd {
            self.stats.fsyncs += u64::from(call.synced == Synced::Fsync);
            self.stats.sync_of_load.record(bytes, now.since(since));
        }
    }

    /// The priority of a call that has another one than the job.
    //= fio-3.33 HOWTO "cmdprio_percentage", "cmdprio_bssplit"
    fn call_prio(&mut self, action: Action, len: u32) -> Option<IoPrio> {
        if !self.per_call.has_prios {
            return None;
        }
        let all = match action {
            Action::Read => &self.job.call_prio.read,
            Action::Write => &self.job.call_prio.write,
            Action::Trim | Action::Sync => return None,
        };
        if all.is_empty() {
            return None;
        }
        let mut at = self.prio_rng.below(100);
        let of_size = all.iter().filter(|c| c.bytes.is_none_or(|bytes| bytes == len));
        for c in of_size {
            if at < u64::from(c.percent) {
                return Some(c.prio);
            }
            at -= u64::from(c.percent);
        }
        None
    }

    /// Its figures, at the end of the run.
    pub(super) fn into_stats(self, now: Instant) -> ClientStats {
        let (startups, frames) = self.script.end(now);
        let startups = startups.unwrap_or(self.stats.startups);
        ClientStats { startups, frames, ..self.stats }
    }

    /// Whether a call that completes now is measured.
    pub(super) fn is_measured(&self, now: Instant) -> bool {
        now >= self.counts_from()
    }

    /// The pause of a program after the call just completed, if any: until when. The part to be spun away is
    /// added to the next call.
    pub(super) fn think_pause(&mut self, now: Instant) -> Option<Instant> {
        if !self.per_call.thinks || self.script.is_pattern() {
            return None;
        }
        self.spin += self.job.thinktime_spin;
        let pause = self.job.thinktime.saturating_sub(self.job.thinktime_spin);
        (!pause.is_zero()).then(|| self.not_after_end(now + pause))
    }
}

/// A client's figures before its first call.
fn no_stats(c: &crate::job::Client<'_>) -> ClientStats {
    ClientStats {
        name: c.job.name.clone(),
        job: c.job_index,
        clone: c.clone,
        group: c.job.group,
        started: Duration::ZERO,
        elapsed: Duration::ZERO,
        read: OpStats::new(),
        write: OpStats::new(),
        trim: OpStats::new(),
        sync: OpStats::new(),
        fsyncs: 0,
        sync_of_load: OpStats::new(),
        together: None,
        cpu: CpuStats::default(),
        depths: [0; DEPTHS],
        startups: Vec::new(),
        frames: None,
        replayed: None,
        steady: None,
    }
}

/// The start-ups of a client that starts applications, in a region of `span` sectors.
fn startups(c: &crate::job::Client<'_>, span: u64, seed: u64) -> Option<StartUps> {
    let Some(Program::StartUp(application)) = c.job.program else { return None };
    let mut rng = Rng::new(seed, &format!("startup.{}.{}", c.job_index, c.clone));
    Some(StartUps::new(application, c.job, span, &mut rng))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Class;

    #[test]
    fn some_calls_have_another_priority() {
        let calls = |lines: &str| {
            let text = format!("[j]\nrw=randrw\nsize=256m\nioengine=libaio\niodepth=4\ndirect=1\n{lines}\n");
            let jobs = crate::job::parse(&text, "j").unwrap();
            let region = Region { base: 0, span: 1 << 28, size: 1 << 28, file: 1 << 28, room: 1 << 28 };
            let mut client =
                Client::new(&jobs.clients().next().unwrap(), vec![0], region, &Host::of_2004(), 1);
            let call = |_| match client.next(Instant::EPOCH) {
                Next::Call(call) => {
                    client.call_ended(call.action, 4096, Duration::ZERO, Instant::EPOCH);
                    call
                }
                next => panic!("{next:?}"),
            };
            (0..8000).map(call).collect::<Vec<Call>>()
        };
        let percent = |calls: &[Call], action, sectors, prio| {
            let of: Vec<&Call> = calls.iter().filter(|c| c.action == action && c.len == sectors).collect();
            of.iter().filter(|c| c.prio == prio).count() * 100 / of.len()
        };
        let prio = |class, level| Some(IoPrio::new(class, level));
        let all = calls("cmdprio_percentage=20,60");
        // Of 4 000 calls the deviation is below one percent.
        assert!(percent(&all, Action::Read, 8, prio(Class::RealTime, 0)).abs_diff(20) <= 3);
        assert!(percent(&all, Action::Write, 8, prio(Class::RealTime, 0)).abs_diff(60) <= 3);
        let all = calls(
            "bssplit=4k/50:8k/50\ncmdprio_bssplit=4k/100:8k/25/1/1:8k/50/3/2,4k/0\ncmdprio_class=2\ncmdprio=3",
        );
        assert_eq!(percent(&all, Action::Read, 8, prio(Class::BestEffort, 3)), 100);
        assert_eq!(percent(&all, Action::Write, 8, None), 100);
        for (prio, share) in [(prio(Class::RealTime, 1), 25), (prio(Class::Idle, 2), 50), (None, 25)] {
            assert!(percent(&all, Action::Read, 16, prio).abs_diff(share) <= 4, "{prio:?}");
        }
        // Places do not move.
        let places = |calls: Vec<Call>| calls.iter().map(|c| (c.action, c.offset)).collect::<Vec<_>>();
        assert_eq!(places(calls("cmdprio_percentage=20")), places(calls("")));
    }

    /// How many calls begin between pauses, with `lanes` calls in flight that end in the order in which they
    /// began, once none can begin.
    fn calls_between_pauses(lanes: u32, blocks: u32) -> Vec<u32> {
        let text = format!(
            "[j]\nrw=randread\nsize=256m\nioengine=libaio\niodepth={lanes}\ndirect=1\nthinktime=1ms\nthinktime_blocks={blocks}\n"
        );
        let jobs = crate::job::parse(&text, "j").unwrap();
        let region = Region { base: 0, span: 1 << 28, size: 1 << 28, file: 1 << 28, room: 1 << 28 };
        let mut client = Client::new(&jobs.clients().next().unwrap(), vec![0], region, &Host::of_2004(), 1);
        let (mut now, mut in_flight, mut made, mut all) = (Instant::EPOCH, 0, 0, Vec::new());
        while all.len() < 5 {
            let next = if in_flight < lanes { client.next(now) } else { Next::Park };
            match next {
                Next::Call(_) => (in_flight, made) = (in_flight + 1, made + 1),
                Next::Pause(until) => {
                    assert_eq!((in_flight, until), (0, now + Duration::from_ms(1)));
                    now = until;
                    all.push(std::mem::take(&mut made));
                }
                _ => {
                    client.call_ended(Action::Read, 4096, Duration::ZERO, now);
                    in_flight -= 1;
                }
            }
        }
        all
    }

    /// What fio's logs show: with several calls in flight it counts those that it has seen to end, and it
    /// looks when it has as many in flight as it may.
    //= fio-3.33 HOWTO "thinktime_blocks"
    #[test]
    fn pauses_come_after_thinktime_blocks() {
        assert_eq!(calls_between_pauses(1, 1), [1; 5]);
        assert_eq!(calls_between_pauses(1, 3), [3; 5]);
        assert_eq!(calls_between_pauses(4, 3), [6, 1, 5, 1, 5]);
    }
}
