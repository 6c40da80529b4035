//! A lane: one call at a time, from the CPU that prepares it to its completion.
//!
//! ```text
//!   Pause ─► Cpu ─► Map ─► Direct ────────────────────┐
//!     ▲        ├──► Read ─────────────────────────────┤
//!     │        ├──► Write ─► Balance ─► Sync ─► Flush ┤
//!     │        └──► Sync ─► Flush ────────────────────┤
//!     └───────────────────────────────────────────────┘ end of the call
//! ```
//!
//! A lane moves on until it has to wait: for a piece, a page, a request, its turn on a CPU, a time. The event
//! that ends the wait calls [`Machine::advance`] again, and the phase finds out for itself what is left to
//! do.

use super::Machine;
use super::client::{Action, Call, Client, Next};
use super::files::File;
use super::flusher::Pass;
use super::owner::Owner;
pub(super) use super::phase::Phase;
use super::phase::{After, Step};
use super::pools::Batch;
use super::processors::Work;
use super::script::Script;
use crate::event::Due;
use crate::ext2;
use crate::job::SyncMode;
use crate::layout::Layout;
use crate::why::{CallKind, Doing, Wait};
use fairhead_core::{Duration, Instant, Op, Request, Sectors, TaskId};

/// A lane of calls.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) client: u32,
    pub(super) call: Call,
    pub(super) phase: Phase,
    /// When the call began.
    since: Instant,
    /// CPU time that is part of the call.
    pub(super) inside: Duration,
    /// CPU time before the call: the program's own, the rest, and the scheduler's part of the rest.
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) scheduler: Duration,
    /// By how much the call of a replayed trace is late: part of its latency.
    pub(super) late: Duration,
    /// CPU time of requests that it has handed in and not paid for.
    pub(super) owed: Duration,
    /// CPU time that it pays for them now, on a CPU or waiting for one; zero: it does not pay.
    pub(super) pays: Duration,
    /// The other thing that it waited for has come while it paid.
    has_come: bool,
    /// Sectors of the call that have been handed in, and pieces that have not completed.
    handed_in: u32,
    pending: u32,
    pub(super) batch: Batch,
    /// The next page of a buffered call, and the one behind its last.
    pub(super) page: u32,
    pub(super) page_end: u32,
    /// Pages whose read is still to be handed in.
    pub(super) fill: (u32, u32),
    /// Pages being written, and whether all of them have been handed in.
    pub(super) pass: Option<Pass>,
    pub(super) all_handed_in: bool,
    /// Pages written on account of the limit.
    pub(super) duty: u32,
    /// A direct write into a hole goes through the page cache.
    pub(super) through_cache: bool,
    /// It sleeps until then, unless woken.
    pub(super) sleep_until: Option<Instant>,
}

impl Lane {
    pub(super) const fn new(client: u32) -> Self {
        Self {
            client,
            call: Call::NONE,
            phase: Phase::Pause,
            since: Instant::EPOCH,
            inside: Duration::ZERO,
            user: Duration::ZERO,
            system: Duration::ZERO,
            scheduler: Duration::ZERO,
            late: Duration::ZERO,
            owed: Duration::ZERO,
            pays: Duration::ZERO,
            has_come: false,
            handed_in: 0,
            pending: 0,
            batch: Batch::NONE,
            page: 0,
            page_end: 0,
            fill: (0, 0),
            pass: None,
            all_handed_in: false,
            duty: 0,
            through_cache: false,
            sleep_until: None,
        }
    }

    /// One of its pieces has completed. True if the call has nothing left to wait for.
    pub(super) const fn piece_done(&mut self) -> bool {
        self.pending -= 1;
        let is_last = match self.phase {
            Phase::Map | Phase::Settle | Phase::Drain => true,
            Phase::Direct => self.handed_in == self.call.len,
            _ => false,
        };
        self.pending == 0 && is_last
    }

    /// Whether some of its pieces have not completed.
    pub(super) const fn has_pending(&self) -> bool {
        self.pending > 0
    }
}

impl Machine<'_> {
    // ---- between calls ------------------------------------------------------------------------------------

    /// A lane is free: what does its client want?
    pub(super) fn next_step(&mut self, lane: u32) {
        let index = self.lanes[lane as usize].client as usize;
        let client = &mut self.clients[index];
        if client.script.is_led() && (self.next_of_replay(lane) || self.next_of_trace(lane)) {
            return;
        }
        let client = &mut self.clients[index];
        let is_in_flow = client.share.is_some();
        match client.next(self.clock.now) {
            Next::Call(call) => {
                self.prepare_call(lane, &call);
                if is_in_flow {
                    self.wake_flow(index);
                }
            }
            Next::Pause(until) => self.pause(lane, until),
            Next::Park => self.wait_for_baton(lane),
            Next::StartUp => self.begin_startup(lane),
            Next::End => self.end_lane(lane),
        }
    }

    /// A call begins with computing.
    pub(super) fn prepare_call(&mut self, lane: u32, call: &Call) {
        let cpu = self.cpu_cost(lane, call);
        let l = &mut self.lanes[lane as usize];
        (l.call, l.phase, l.system) = (*call, Phase::Cpu, cpu - l.user);
        let stats = &mut self.clients[l.client as usize].stats;
        stats.cpu.user += l.user;
        stats.cpu.system += l.system;
        self.why(|why| why.does(lane, Doing::Computing));
        self.take_cpu(lane, cpu);
    }

    /// A lane has nothing to do until it gets the baton of a replay, or its client's other calls have ended.
    pub(super) fn wait_for_baton(&mut self, lane: u32) {
        self.lanes[lane as usize].phase = Phase::Pause;
        self.why(|why| why.does(lane, Doing::Paused));
    }

    /// An application is about to start: from a cold cache, and not for ever.
    fn begin_startup(&mut self, lane: u32) {
        self.cache.invalidate_all();
        let client = self.lanes[lane as usize].client;
        self.new_process(client);
        if let Script::StartUps(startups) = &self.clients[client as usize].script {
            let due = Due::TimeOut(client, startups.iteration());
            self.clock.after(startups.timeout(), due);
        }
        self.next_step(lane);
    }

    /// What a client starts again is another process: schedulers know nothing of it.
    pub(super) fn new_process(&mut self, client: u32) {
        let client = &mut self.clients[client as usize];
        if !std::mem::replace(&mut client.has_started, true) {
            return;
        }
        let before = std::mem::replace(&mut client.task, TaskId(self.next_task));
        self.next_task += 1;
        self.disks.exit_task(self.clock.now, before);
        self.why(|why| why.is_followed(before));
        self.journal(|journal| journal.is_followed(before));
    }

    /// The time of a start-up is over; unless it has ended.
    pub(super) fn time_out(&mut self, client: u32, iteration: u32) {
        let is_over = self.replay_times_out(client, iteration);
        let c = &mut self.clients[client as usize];
        if !is_over && !c.startup_times_out(self.clock.now, iteration) {
            return;
        }
        // Its last read may never end while others run.
        c.stopped = true;
        if self.waves.exit_all {
            self.stop_group(client as usize);
        }
    }

    pub(super) fn pause(&mut self, lane: u32, until: Instant) {
        self.lanes[lane as usize].phase = Phase::Pause;
        self.why(|why| why.does(lane, Doing::Paused));
        self.sleep(lane, until);
    }

    pub(super) fn sleep(&mut self, lane: u32, until: Instant) {
        self.lanes[lane as usize].sleep_until = Some(until);
        self.clock.schedule(until, Due::Wake(lane));
    }

    /// Clients of a flow that were ahead ask again, as another has made a call or has ended.
    pub(super) fn wake_flow(&mut self, of: usize) {
        let Some(share) = &self.clients[of].share else { return };
        let id = share.flow().id;
        for i in 0..self.clients.len() {
            let client = &mut self.clients[i];
            if !client.waits_for_flow
                || client.share.as_ref().is_none_or(|s| s.flow().id != id || s.is_ahead())
            {
                continue;
            }
            client.waits_for_flow = false;
            self.wake_paused(i);
        }
    }

    /// All lanes of a client that make no call ask what to do, now.
    pub(super) fn wake_paused(&mut self, client: usize) {
        let Client { first_lane, all_lanes, .. } = self.clients[client];
        for lane in first_lane..first_lane + all_lanes {
            if self.lanes[lane as usize].phase == Phase::Pause {
                self.sleep(lane, self.clock.now);
            }
        }
    }

    // ---- processors --------------------------------------------------------------------------------------

    /// CPU time before a call: the program's own, system call, copying, scheduler, allocation of new blocks.
    /// That of a buffered call is part of its latency, as its data is copied inside.
    fn cpu_cost(&mut self, lane: u32, call: &Call) -> Duration {
        let l = &mut self.lanes[lane as usize];
        let job = &self.clients[l.client as usize].per_call;
        let blocks = u64::from(call.len.div_ceil(8));
        let is_direct = job.is_direct || call.action == Action::Trim;
        l.user = call.cpu + job.per_4k * blocks;
        let mut cost = l.user;
        if job.is_null {
            return cost + job.think.unwrap_or(self.host.think);
        }
        let owed = std::mem::take(&mut l.owed);
        let mut inside = Duration::ZERO;
        let mut scheduler = self.disks.sched_cost(self.files.disk_of(call.file));
        if is_direct {
            cost += job.think.unwrap_or(self.host.think);
            match &self.host.cores {
                None => cost += scheduler,
                Some(cores) => {
                    let pieces = u64::from(self.disks.pieces(self.files.disk_of(call.file), call.len));
                    let each_call = if job.batch > 1 { Duration::ZERO } else { cores.call };
                    scheduler = scheduler * pieces;
                    inside = each_call + cores.submit * pieces + scheduler;
                    cost += inside;
                }
            }
        } else {
            // What the last call left unpaid, as it did not have to wait, is part of this one.
            inside = self.host.buffered + self.host.copy * blocks + owed;
            cost += job.think.unwrap_or(Duration::ZERO) + inside;
        }
        if call.action == Action::Write {
            let new = self.allocate(lane, *call);
            // What it costs was seen with direct writes; a buffered one has it in the cost of its pages.
            let hole = if self.lanes[lane as usize].through_cache { self.host.hole } else { Duration::ZERO };
            cost += if is_direct { (self.host.allocate + hole) * new } else { Duration::ZERO };
        }
        let l = &mut self.lanes[lane as usize];
        (l.inside, l.scheduler) = (inside, scheduler);
        cost
    }

    //= docs/reference/hosts.md#cpu-of-buffered-calls
    /// A request of a buffered call has been handed in. A direct call that goes through the cache has paid
    /// already.
    pub(super) fn owe_request(&mut self, lane: u32) {
        let disk = self.files.disk_of(self.lanes[lane as usize].call.file);
        let l = &mut self.lanes[lane as usize];
        if !l.through_cache {
            l.owed += self.host.request + self.disks.sched_cost(disk);
        }
    }

    /// A lane that waits pays for its requests meanwhile.
    pub(super) fn pay(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        let owed = std::mem::take(&mut l.owed);
        if !owed.is_zero() {
            l.pays = owed;
            self.clients[l.client as usize].stats.cpu.system += owed;
            if self.processors.is_some() {
                return self.add_work(lane, Work::Pay(lane));
            }
            self.take_cpu(lane, owed);
        }
    }

    /// The event that a lane waited for has come; the lane advances unless it still has to pay CPU time.
    pub(super) fn go_on(&mut self, lane: u32) {
        if !self.lanes[lane as usize].pays.is_zero() {
            self.lanes[lane as usize].has_come = true;
            self.why(|why| why.waits(lane, Wait::Cpu));
        } else {
            self.advance(lane);
        }
    }

    /// A lane's work on a CPU is done: what precedes a call, or what it had to pay.
    pub(super) fn cpu_done(&mut self, lane: u32) {
        if self.processors.is_some() {
            return self.work_done(self.lanes[lane as usize].client as usize);
        }
        self.cpus.release(&mut self.clock);
        self.paid_or_begins(lane);
    }

    pub(super) fn paid_or_begins(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        if std::mem::take(&mut l.pays).is_zero() {
            self.begin_call(lane);
        } else if std::mem::take(&mut l.has_come) {
            self.advance(lane);
        }
    }

    fn take_cpu(&mut self, lane: u32, cost: Duration) {
        if self.processors.is_some() {
            return self.add_work(lane, Work::Prepare(lane));
        }
        self.cpus.take(&mut self.clock, lane, cost);
    }

    // ---- calls -------------------------------------------------------------------------------------------

    pub(super) fn begin_call(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        // A call's latency includes the CPU time before it and, in replays, how late it is.
        l.since = self.clock.now - l.inside - l.late;
        l.handed_in = 0;
        let call = l.call;
        let client = &mut self.clients[l.client as usize];
        if client.opens_disk {
            return self.open_disk(lane);
        }
        client.begins(call.action);
        let is_null = client.per_call.is_null;
        let is_direct = call.action == Action::Trim || client.per_call.is_direct;
        let since = l.since + l.late;
        l.phase = match call.action {
            Action::Sync => Phase::Sync(After::Flush),
            _ if call.preflush => Phase::Preflush,
            _ if is_direct && !l.through_cache => Phase::Map,
            Action::Read => Phase::Read,
            _ => Phase::Write,
        };
        let starts_at_map = matches!(l.phase, Phase::Map | Phase::Preflush);
        // Requests of read-ahead that were not waited for belong to the thread's earlier calls; a call that
        // waits does so for these first.
        if l.pending > 0 && !call.ahead {
            l.phase = Phase::Settle;
        }
        let asked = asked(call.action);
        let bytes = call.bytes();
        self.why(|why| why.begins(lane, since, asked, bytes));
        self.journal(|journal| journal.begins(lane, since, asked, (call.file, call.offset_bytes()), bytes));
        if is_null {
            return self.end_call(lane);
        }
        let l = &mut self.lanes[lane as usize];
        // Of most files all maps are in memory.
        if l.phase == Phase::Map && l.pending == 0 && !self.files.files[call.file as usize].has_unread_maps()
        {
            l.phase = Phase::Direct;
        }
        if !starts_at_map {
            self.begin_pages(lane);
            self.hand_in_burst(lane);
        // A direct call on a file with cached pages writes the dirty ones of its range first, as Linux does.
        } else if self.cache.cached(call.file) > 0 {
            self.begin_pages(lane);
            self.lanes[lane as usize].phase = Phase::Sync(After::Direct);
        }
        self.advance(lane);
    }

    /// A client opens a disk: all of its cached pages are written, as sync requests of the client's, and
    /// dropped. Then its first call begins.
    //= fio-3.33 HOWTO "invalidate"; traced on Linux 6.18: BLKFLSBUF writes and waits
    #[cold]
    fn open_disk(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        let file = l.call.file;
        if !self.cache.is_dirty(file) {
            self.clients[l.client as usize].opens_disk = false;
            self.cache.invalidate_file(file);
            return self.begin_call(lane);
        }
        let now = self.clock.now;
        self.why(|why| why.begins(lane, now, CallKind::Sync, 0));
        self.begin_pages(lane);
        let l = &mut self.lanes[lane as usize];
        (l.page, l.page_end, l.phase) = (0, u32::MAX, Phase::Sync(After::Open));
        self.advance(lane);
    }

    /// The pages of a disk that is opened have been written; others may have been dirtied meanwhile.
    pub(super) fn opened(&mut self, lane: u32) -> Step {
        let l = &mut self.lanes[lane as usize];
        self.clients[l.client as usize].opens_disk = false;
        // The call begins now.
        (l.inside, l.late) = (Duration::ZERO, Duration::ZERO);
        self.cache.invalidate_file(self.lanes[lane as usize].call.file);
        Step::Begin
    }

    /// Moves a lane on until it has to wait, or its call ends.
    pub(super) fn advance(&mut self, lane: u32) {
        self.why(|why| why.waits(lane, Wait::None));
        loop {
            let step = match self.lanes[lane as usize].phase {
                Phase::Settle => self.settle(lane),
                Phase::Drain => self.drain(lane),
                Phase::Preflush if self.flushes(lane) => Step::Go(Phase::Preflushing),
                Phase::Preflush | Phase::Preflushing => Step::Go(Phase::Map),
                Phase::Map => self.read_map(lane),
                Phase::Direct => self.direct(lane),
                Phase::Read => self.read_pages(lane),
                Phase::Write => self.write_pages(lane),
                Phase::Balance => self.balance(lane),
                Phase::Sync(after) => self.sync_pages(lane, after),
                Phase::Flush => Step::Done,
                Phase::Pause | Phase::Cpu | Phase::Ended => return,
            };
            match step {
                Step::Blocked => return self.pay(lane),
                Step::Go(phase @ (Phase::Flush | Phase::Preflushing)) => {
                    self.lanes[lane as usize].phase = phase;
                    let disk = self.files.disk_of(self.lanes[lane as usize].call.file);
                    self.disks.flush(disk, lane);
                    return self.disks.run_touched(&mut self.clock);
                }
                Step::Go(phase) => self.lanes[lane as usize].phase = phase,
                Step::Begin => return self.begin_call(lane),
                Step::Done => return self.end_call(lane),
            }
        }
    }

    /// Reads the indirect block of the call's first block, unless it has been read. The few calls that reach
    /// into the next 4 MiB find that one's read by the call after them.
    fn read_map(&mut self, lane: u32) -> Step {
        self.journal(|journal| journal.makes(lane, false));
        let l = &mut self.lanes[lane as usize];
        if l.pending > 0 && !l.call.ahead {
            return Step::Blocked;
        }
        let file = &mut self.files.files[l.call.file as usize];
        let Some(start) = file.unread_map(l.call.offset) else { return Step::Go(Phase::Direct) };
        let client = &self.clients[l.client as usize];
        let prio = client.per_call.prio;
        let block = Sectors(ext2::BLOCK_SECTORS as u32);
        // Flagged as metadata: CFQ serves such requests before others of the queue.
        let (meta, group) = (true, client.group);
        let rq = Request { meta, prio, group, ..Request::read(client.task, start, block) };
        if self.disks.submit(self.clock.now, file.disk, &rq, Owner::Lane(lane), &mut l.batch).is_err() {
            self.disks.wait(lane, true, l.batch.queue);
            return Step::Blocked;
        }
        file.map_is_read(l.call.offset);
        l.pending += 1;
        self.wait_for_io();
        Step::Blocked
    }

    /// Hands in the pieces of a call, as many as the request pool allows, and waits for them.
    fn direct(&mut self, lane: u32) -> Step {
        let ahead = self.lanes[lane as usize].call.ahead;
        self.journal(|journal| journal.makes(lane, ahead));
        let l = &mut self.lanes[lane as usize];
        let call = &l.call;
        if l.handed_in == call.len && (l.pending == 0 || ahead) {
            return self.end_direct(lane);
        }
        let client = &self.clients[l.client as usize];
        let op = match call.action {
            Action::Read => Op::Read,
            Action::Trim => Op::Discard,
            Action::Write | Action::Sync => Op::Write,
        };
        let sync_write = client.per_call.write_sync.or(call.sync).unwrap_or(self.host.direct_write_sync);
        let sync = op == Op::Read || sync_write;
        let File { layout, disk, .. } = &self.files.files[call.file as usize];
        let most = self.disks.max_request(*disk);
        while l.handed_in < call.len {
            let left = call.len - l.handed_in;
            let (start, len) = layout.piece(call.offset + u64::from(l.handed_in), left.min(most.0));
            if start != Layout::HOLE {
                // Linux flags direct writes as followed by nothing dependent
                // (docs/reference/cfq.md#59-idling).
                let no_idle = sync && op == Op::Write;
                let prio = call.prio.unwrap_or(client.per_call.prio);
                let (group, meta) = (client.group, call.meta);
                let rq = Request {
                    op,
                    sync,
                    no_idle,
                    prio,
                    group,
                    meta,
                    ..Request::read(client.task, start, len)
                };
                if self.disks.submit(self.clock.now, *disk, &rq, Owner::Lane(lane), &mut l.batch).is_err() {
                    // The pool is empty: the pieces so far are on their way, and the rest follows when a
                    // request is free.
                    self.disks.wait(lane, sync, l.batch.queue);
                    break;
                }
                l.pending += 1;
            }
            l.handed_in += len.0;
        }
        let is_in = l.handed_in == call.len;
        // Read-ahead is not waited for, so the plug is not pulled; the batch alone ends.
        if is_in && ahead {
            self.disks.end_batch(self.clock.now);
            self.disks.run_touched(&mut self.clock);
            return self.end_direct(lane);
        }
        if is_in && l.pending == 0 {
            return self.end_direct(lane);
        }
        self.wait_for_io();
        Step::Blocked
    }

    /// Waits for what earlier calls have not waited for.
    fn settle(&self, lane: u32) -> Step {
        if self.lanes[lane as usize].has_pending() { Step::Blocked } else { Step::Go(Phase::Map) }
    }

    fn end_direct(&mut self, lane: u32) -> Step {
        let l = &self.lanes[lane as usize];
        if l.call.action != Action::Write {
            return Step::Done;
        }
        let call = l.call;
        if self.cache.cached(call.file) > 0 {
            let (first, end) = call.pages();
            // Cached pages of a direct write are stale.
            self.cache.invalidate(call.file, first, end - first);
        }
        let is_stable = call.fua || self.clients[l.client as usize].job.sync != SyncMode::None;
        if is_stable && self.flushes(lane) { Step::Go(Phase::Flush) } else { Step::Done }
    }

    /// Whether a sync of the lane's file empties the disk's cache.
    pub(super) fn flushes(&self, lane: u32) -> bool {
        let disk = self.files.disk_of(self.lanes[lane as usize].call.file);
        self.host.fsync_flushes && self.disks.facts(disk).write_cache
    }

    /// A process that waits for I/O pulls the plug.
    pub(super) fn wait_for_io(&mut self) {
        if self.is_submitting {
            return;
        }
        self.disks.unplug(self.clock.now);
        self.disks.run_touched(&mut self.clock);
    }

    /// A call has ended: it is counted, observers hear of it, and its lane begins what comes next.
    fn end_call(&mut self, lane: u32) {
        let now = self.clock.now;
        let l = &mut self.lanes[lane as usize];
        l.through_cache = false;
        let (call, index) = (&l.call, l.client as usize);
        let client = &mut self.clients[index];
        // The call at whose end the ramp is noticed is not counted: fio counts 400 of 4.001 s at 100 a
        // second.
        let is_measured = client.is_measured(now);
        let ramp_ends = client.notice_ramp(now);
        client.count_call(call, l.since, now, is_measured);
        if self.waves.together_from.is_some_and(|from| now > from) {
            client.together += call.bytes();
        }
        self.series.count_call(index, call, now.since(l.since));
        let pause = client.think_pause(now);
        let wakes_parked = client.call_ended(call.action, call.bytes(), now.since(l.since), now);
        if ramp_ends {
            self.look_anew(index);
            self.why(|why| why.counts_from(index, now));
        }
        self.why(|why| why.ends(lane, is_measured));
        self.journal(|journal| journal.ends(lane, is_measured));
        if self.clients[index].script.is_led() {
            return self.end_led_call(lane);
        }
        match pause {
            None => self.next_step(lane),
            Some(until) => self.pause(lane, until),
        }
        if wakes_parked {
            self.wake_parked(index);
        }
    }

    /// A call has ended that a recording asked for.
    fn end_led_call(&mut self, lane: u32) {
        match self.clients[self.lanes[lane as usize].client as usize].script.traced() {
            Some(at) => self.end_of_trace_call(lane, at),
            None => self.pass_baton(lane),
        }
    }

    /// Lanes of a client that waited for its other calls ask again.
    fn wake_parked(&mut self, client: usize) {
        let client = &self.clients[client];
        for lane in client.first_lane..client.first_lane + client.all_lanes {
            let l = &self.lanes[lane as usize];
            if l.phase == Phase::Pause && l.sleep_until.is_none() {
                self.sleep(lane, self.clock.now);
            }
        }
    }
}

const fn asked(action: Action) -> CallKind {
    match action {
        Action::Read => CallKind::Read,
        Action::Write => CallKind::Write,
        Action::Trim => CallKind::Trim,
        Action::Sync => CallKind::Sync,
    }
}
