//! Replay of recorded traces: one stream of requests over all clients, each request at its time.
//!
//! ```text
//!   trace ─► window ─┬► task 0's requests ─► head ─► a free lane sleeps until it is due, and makes it
//!                    └► task 1's requests ─► head ─► …
//! ```
//!
//! A client has as many lanes as its task may have requests in flight. One of the free ones, the *head*, has
//! the task's next request; the others are *parked*. When the head has made its request, a parked lane
//! becomes the head; if there is none, the next request is late until a call ends.
//!
//! **Closed loop.** Of each call that has ended the recorded time of its completion is kept, until no later
//! request can follow it. A request made at `a` waits until all of the task's calls have ended that had in
//! the recording by then, and is due `a - c` after the end of the one with the last recorded completion `c`;
//! not before its predecessor. So a task's order is kept, and its think times are, and what overlapped may
//! overlap.
//!
//! **Bounded.** At most [`WINDOW`] requests are in memory, of all tasks together. A task may not get farther
//! ahead of the others than that; where it would, it waits for them. In an open loop, where only a disk that
//! cannot keep up makes it so, that counts as being late.
//!
//! Requests of one task keep their order, those of several at the very same nanosecond need not.
//!
//! A call costs no CPU time: what the recorded programs and their kernel computed is in the recorded times
//! already.

use super::Machine;
use super::client::{Action, Call, Client};
use super::lane::Phase;
use super::script::Script;
use crate::error::SimError;
use crate::metrics::{Replayed, Result};
use crate::replay::{Mode, Part, Place, Records};
use fairhead_core::{Duration, Instant};
use fairhead_trace::{Flags, Op, Record};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// How many requests are read ahead of those who make them, of all tasks together.
const WINDOW: usize = 1 << 16;
/// How many ended calls are kept that a later request may follow: as many as requests can overlap in a
/// recording.
const ENDED_MAX: usize = 1 << 16;
/// Times beyond are of no run: 100 years.
const NS_MAX: u64 = 100 * 365 * 24 * 3600 * 1_000_000_000;

/// A trace that is being replayed.
#[derive(Debug)]
pub(super) struct Traced {
    records: Records,
    part: Part,
    /// Requests that have been read and not been made.
    queued: usize,
    /// By the recording's task.
    tasks: Vec<Task>,
    /// A read for tasks that starve is running already.
    feeding: bool,
}

/// One recorded task.
#[derive(Debug)]
struct Task {
    /// Its client; none if the jobs have none for it, or it has ended.
    client: Option<u32>,
    place: Place,
    queue: VecDeque<Record>,
    /// How many of its requests have not been made.
    left: u64,
    /// Lanes that have nothing to do, and the one that has the next request.
    parked: Vec<u32>,
    head: Option<u32>,
    /// When the head's request is due, if that is known and has not come.
    due: Option<Instant>,
    /// The window is full of others' requests.
    starves: bool,
    /// That was so for its next request.
    starved: bool,
    pumping: bool,
    /// Calls in flight, by lane, and when they completed in the recording.
    under_way: Vec<(u32, Duration)>,
    /// Ended calls that completed in the recording after everything asked so far: the recorded and the real
    /// end.
    ended: BinaryHeap<Reverse<(Duration, Instant)>>,
    /// The one with the last recorded completion before, and when the last of all these really ended.
    last: Option<(Duration, Instant)>,
    all_ended: Instant,
    /// When the request before was due: none is due earlier.
    due_before: Instant,
    figures: Replayed,
}

/// What a head does.
enum Turn {
    /// Makes the request, that late.
    Make(Record, Duration),
    /// Waits until then.
    Until(Instant),
    /// Waits for a completion, or for others.
    Wait,
    /// There is nothing more.
    End,
}

/// The traces that the clients replay; tells these which is theirs.
pub(super) fn traces(clients: &mut [Client]) -> Result<Vec<Traced>> {
    let mut all: Vec<Traced> = Vec::new();
    for (i, client) in (0..).zip(clients.iter_mut()) {
        let Some(replay) = &client.job.replay else { continue };
        let fail = |message: String| SimError::Job { job: client.job.name.clone(), message };
        let part = replay.part.as_ref().ok_or_else(|| fail("its trace has not been read".to_owned()))?;
        let same = |t: &Traced| {
            Arc::ptr_eq(&t.part.recording, &part.recording) && t.tasks[part.task].client.is_none()
        };
        let trace = match all.iter().position(same) {
            Some(index) => index,
            None => {
                all.push(Traced::new(part).map_err(fail)?);
                all.len() - 1
            }
        };
        let room = client.region().1;
        let task = &mut all[trace].tasks[part.task];
        task.client = Some(i);
        task.place = Place::new(part.recording.ends(), part.recording.options(), room).map_err(fail)?;
        client.script = Script::Traced(trace, part.task);
    }
    Ok(all)
}

impl Traced {
    fn new(part: &Part) -> std::result::Result<Self, String> {
        let recording = &part.recording;
        let task = |t: &crate::replay::Task| {
            Ok(Task {
                client: None,
                place: Place::new(recording.ends(), recording.options(), 1)?,
                queue: VecDeque::new(),
                left: t.requests,
                parked: Vec::new(),
                head: None,
                due: None,
                starves: false,
                starved: false,
                pumping: false,
                under_way: Vec::new(),
                ended: BinaryHeap::new(),
                last: None,
                all_ended: Instant::EPOCH,
                due_before: Instant::EPOCH,
                figures: Replayed { recorded: t.requests, ..Replayed::default() },
            })
        };
        Ok(Self {
            records: Records::new(recording)?,
            part: part.clone(),
            queued: 0,
            tasks: recording.tasks.iter().map(task).collect::<std::result::Result<_, String>>()?,
            feeding: false,
        })
    }

    /// Reads one more request. Returns the index of its task, if that task has a client; `None` behind the
    /// last request.
    fn read(&mut self) -> std::result::Result<Option<usize>, String> {
        while let Some((index, record)) = self.records.next()? {
            let task = &mut self.tasks[index];
            if task.client.is_some() {
                if task.queue.len() as u64 == task.left {
                    return Err(self.records.changed());
                }
                task.queue.push_back(record);
                self.queued += 1;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Whether the task's next request is there. If not, it was the last, or the window is full.
    fn has_next(&mut self, task: usize) -> std::result::Result<bool, String> {
        while self.tasks[task].queue.is_empty() && self.queued < WINDOW && self.tasks[task].left > 0 {
            match self.read()? {
                Some(owner) if owner != task => {}
                Some(_) => break,
                None => return Err(self.records.changed()),
            }
        }
        Ok(!self.tasks[task].queue.is_empty())
    }

    /// A span of recorded time, as long as it is in the replay.
    fn span(&self, recorded: Duration) -> Duration {
        let speed = u128::from(self.part.recording.options().speed_pct.max(1));
        let ns = u128::from(recorded.as_ns()) * 100 / speed;
        Duration::from_ns(u64::try_from(ns).unwrap_or(NS_MAX).min(NS_MAX))
    }

    /// When the task's next request is due, made at `at` in the recording; nothing while it has to wait for
    /// calls to end.
    fn due(&mut self, task: usize, at: Duration, started: Instant, now: Instant) -> Option<Instant> {
        let mode = self.part.recording.options().mode;
        let t = &mut self.tasks[task];
        match mode {
            Mode::Open | Mode::Auto => return Some(started + self.span(at)),
            Mode::NoStall => return Some(now),
            Mode::Closed => {}
        }
        if t.under_way.iter().any(|(_, completed)| *completed <= at) {
            return None;
        }
        while let Some(Reverse(first)) = t.ended.peek().filter(|e| e.0.0 <= at) {
            t.last = Some(*first);
            t.all_ended = t.all_ended.max(first.1);
            t.ended.pop();
        }
        let (from, since) = t.last.unwrap_or((Duration::ZERO, started));
        let earliest = t.all_ended.max(t.due_before);
        Some(earliest.max(since + self.span(at.saturating_sub(from))))
    }

    fn turn(&mut self, task: usize, started: Instant, now: Instant) -> std::result::Result<Turn, String> {
        if self.tasks[task].left == 0 {
            return Ok(Turn::End);
        }
        if !self.has_next(task)? {
            let t = &mut self.tasks[task];
            (t.starves, t.starved) = (true, true);
            return Ok(Turn::Wait);
        }
        let record = self.tasks[task].queue[0];
        let Some(due) = self.due(task, record.at, started, now) else { return Ok(Turn::Wait) };
        if due > now {
            return Ok(Turn::Until(due));
        }
        let t = &mut self.tasks[task];
        t.queue.pop_front();
        t.left -= 1;
        self.queued -= 1;
        // In a closed loop nothing is due while the task waits for others.
        let is_held = std::mem::take(&mut t.starved) && self.part.recording.options().mode == Mode::Closed;
        t.figures.held += u64::from(is_held && now > due);
        t.due_before = if is_held { now } else { due };
        Ok(Turn::Make(record, now.since(t.due_before)))
    }

    /// A lane makes the request.
    fn made(&mut self, task: usize, lane: u32, r: &Record, late: Duration) -> Call {
        let recording = &self.part.recording;
        let is_closed = recording.options().mode == Mode::Closed;
        let t = &mut self.tasks[task];
        // Only a closed replay times requests by the completions of others.
        if let Some(completed) = r.completed.filter(|_| is_closed) {
            t.under_way.push((lane, completed));
        }
        let placed = t.place.of(r);
        let f = &mut t.figures;
        f.made += 1;
        f.late += u64::from(!late.is_zero());
        f.late_max = f.late_max.max(late);
        f.late_sum += late;
        f.moved += u64::from(placed.moved && r.op != Op::Flush);
        f.cut += u64::from(placed.sectors < r.sectors);
        let action = match r.op {
            Op::Read => Action::Read,
            Op::Write => Action::Write,
            Op::Discard => Action::Trim,
            Op::Flush => Action::Sync,
        };
        let writes = r.op == Op::Write;
        Call {
            action,
            offset: placed.start.0,
            len: placed.sectors,
            meta: r.flags.has(Flags::META),
            sync: recording.tells_sync().then(|| r.flags.has(Flags::SYNC) || r.flags.has(Flags::FUA)),
            preflush: writes && r.flags.has(Flags::PREFLUSH),
            fua: writes && r.flags.has(Flags::FUA),
            ..Call::NONE
        }
    }

    /// A call has ended.
    fn call_ended(&mut self, task: usize, lane: u32, now: Instant) {
        let t = &mut self.tasks[task];
        if let Some(i) = t.under_way.iter().position(|(l, _)| *l == lane) {
            let (_, completed) = t.under_way.swap_remove(i);
            t.ended.push(Reverse((completed, now)));
            // Bounded memory: only the latest recorded completions can decide when the next request is due.
            if t.ended.len() > ENDED_MAX {
                t.last = t.ended.pop().map(|Reverse(first)| first);
            }
        }
    }
}

impl Machine<'_> {
    /// A lane is free; whether its client replays a trace.
    pub(super) fn next_of_trace(&mut self, lane: u32) -> bool {
        let index = self.lanes[lane as usize].client;
        let client = &self.clients[index as usize];
        let Some(at) = client.script.traced() else { return false };
        if client.is_over(self.clock.now) {
            self.end_of_task(at, Some(lane));
            return true;
        }
        let task = &mut self.traces[at.0].tasks[at.1];
        if task.head != Some(lane) {
            task.parked.push(lane);
            self.wait_for_baton(lane);
        }
        self.pump(at);
        true
    }

    /// A call of a trace has ended: its lane is free.
    pub(super) fn end_of_trace_call(&mut self, lane: u32, at: (usize, usize)) {
        self.traces[at.0].call_ended(at.1, lane, self.clock.now);
        self.next_of_trace(lane);
    }

    /// Makes the task's requests as long as one is due and a lane is free for it.
    fn pump(&mut self, at: (usize, usize)) {
        let task = &mut self.traces[at.0].tasks[at.1];
        // A request may end at once and call this again; the loop below sees to it.
        if std::mem::replace(&mut task.pumping, true) {
            return;
        }
        while self.failed.is_none() && self.make_next(at) {}
        self.traces[at.0].tasks[at.1].pumping = false;
        self.feed(at.0);
    }

    /// The head's turn; whether another may follow.
    fn make_next(&mut self, at: (usize, usize)) -> bool {
        let (now, trace) = (self.clock.now, &mut self.traces[at.0]);
        let task = &mut trace.tasks[at.1];
        let Some(client) = task.client else { return false };
        if task.due.is_some_and(|due| due > now) {
            return false;
        }
        task.due = None;
        let Some(lane) = task.head.or_else(|| task.parked.pop()) else { return false };
        task.head = Some(lane);
        let started = self.clients[client as usize].started;
        match trace.turn(at.1, started, now) {
            Ok(Turn::Make(record, late)) => {
                self.make(at, lane, &record, late);
                return true;
            }
            Ok(Turn::Until(due)) => {
                trace.tasks[at.1].due = Some(due);
                // The client still ends at its run time if the request is due later.
                let due = self.clients[client as usize].not_after_end(due);
                self.pause(lane, due);
            }
            Ok(Turn::Wait) => self.wait_untimed(client, lane),
            Ok(Turn::End) => self.end_of_task(at, None),
            Err(message) => {
                let job = self.clients[client as usize].job.name.clone();
                self.fail(SimError::Job { job, message });
            }
        }
        false
    }

    /// Waits for an unknown time; the client ends when its run time is over.
    fn wait_untimed(&mut self, client: u32, lane: u32) {
        self.wait_for_baton(lane);
        let end = self.clients[client as usize].runs_until();
        if let Some(end) = end.filter(|_| self.lanes[lane as usize].sleep_until != end) {
            self.sleep(lane, end);
        }
    }

    fn make(&mut self, at: (usize, usize), lane: u32, record: &Record, late: Duration) {
        let trace = &mut self.traces[at.0];
        let mut call = trace.made(at.1, lane, record, late);
        trace.tasks[at.1].head = None;
        let l = &mut self.lanes[lane as usize];
        let client = &self.clients[l.client as usize];
        call.offset += client.region().0;
        call.file = client.files[0];
        (l.call, l.late, l.sleep_until) = (call, late, None);
        self.begin_call(lane);
    }

    /// There is room in the window: reads on for those who starve.
    fn feed(&mut self, trace: usize) {
        if std::mem::replace(&mut self.traces[trace].feeding, true) {
            return;
        }
        while self.failed.is_none() {
            let t = &mut self.traces[trace];
            let (clients, now) = (&self.clients, self.clock.now);
            let hungers =
                |task: &Task| task.starves && task.client.is_some_and(|c| !clients[c as usize].is_over(now));
            if t.queued >= WINDOW || !t.tasks.iter().any(hungers) {
                break;
            }
            match t.read() {
                Ok(Some(owner)) => {
                    if std::mem::take(&mut t.tasks[owner].starves) {
                        self.pump((trace, owner));
                    }
                }
                // Tasks that starve have requests left; `turn` returns the error.
                Ok(None) => {
                    let starving = t.tasks.iter().position(|task| task.starves);
                    let Some(owner) = starving else { break };
                    t.tasks[owner].starves = false;
                    self.pump((trace, owner));
                }
                Err(message) => {
                    let job = t.part.recording.tasks[0].name.clone();
                    self.fail(SimError::Job { job, message });
                }
            }
        }
        self.traces[trace].feeding = false;
    }

    /// A task has nothing more to do: its free lanes end, and this one; those in a call when that ends.
    fn end_of_task(&mut self, at: (usize, usize), lane: Option<u32>) {
        let trace = &mut self.traces[at.0];
        let task = &mut trace.tasks[at.1];
        let mut free = std::mem::take(&mut task.parked);
        free.extend(task.head.take());
        free.extend(lane.filter(|l| !free.contains(l)));
        (task.due, task.starves) = (None, false);
        let over = task.left > 0;
        if over {
            // What is left will not be made.
            trace.queued -= task.queue.len();
            task.queue.clear();
            task.client = None;
        }
        for lane in free {
            if self.lanes[lane as usize].phase != Phase::Ended {
                self.end_lane(lane);
            }
        }
        if over {
            self.feed(at.0);
        }
    }

    /// Whether each trace that was replayed to its end was what it was when it was read first.
    pub(super) fn check_traces(&mut self) {
        for trace in &mut self.traces {
            if trace.tasks.iter().any(|task| task.left > 0) {
                continue;
            }
            let message = match trace.records.next() {
                Ok(None) => continue,
                Ok(Some(_)) => trace.records.changed(),
                Err(message) => message,
            };
            let job = trace.part.recording.tasks[0].name.clone();
            self.failed = Some(SimError::Job { job, message });
        }
    }

    /// Gives the clients their figures, and says what the user should know.
    pub(super) fn end_traces(&mut self, scheduler: &str, notes: &mut Vec<String>) {
        for client in &mut self.clients {
            if let Some((trace, task)) = client.script.traced() {
                client.stats.replayed = Some(self.traces[trace].tasks[task].figures);
            }
        }
        for trace in &self.traces {
            notes.extend(trace.notes(scheduler));
        }
    }
}

/// A delay below this gets no note.
const LATE_NOTED: Duration = Duration::from_ms(1);

impl Traced {
    fn notes(&self, scheduler: &str) -> Vec<String> {
        let mut sum = Replayed::default();
        for task in &self.tasks {
            sum.add(&task.figures);
        }
        let (name, mut notes) = (self.part.recording.name(), Vec::new());
        if sum.moved > 0 {
            let mib = |sectors: u64| sectors / 2048;
            let place = &self.tasks[0].place;
            notes.push(format!(
                "{name}: {} of {} requests were moved, as it spans {} MiB and the disk has room for {}",
                sum.moved,
                sum.made,
                mib(place.extent()),
                mib(place.room())
            ));
        }
        if sum.cut > 0 {
            notes.push(format!("{name}: {} requests were longer than the disk, and were cut", sum.cut));
        }
        if sum.held > 0 {
            notes.push(format!(
                "{name}: under {scheduler} {} requests waited for other tasks, as none may be more than {WINDOW} requests ahead of them",
                sum.held
            ));
        }
        if sum.late_max > LATE_NOTED {
            notes.push(format!(
                "{name}: under {scheduler} the replay fell behind: {} of {} requests were late, by {} ms at most and {} ms in the mean",
                sum.late,
                sum.made,
                sum.late_max.as_ms(),
                sum.late_mean().as_ms()
            ));
        }
        notes
    }
}
