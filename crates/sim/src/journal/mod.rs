//! Records what happens in a run, request by request, call by call and decision by decision, as a stream into
//! a sink.
//!
//! [`record`] runs a scenario as [`crate::simulate`] does and passes every event to a [`Sink`]. The outcome
//! is exactly the same; without a sink none of this code runs.
//!
//! ```text
//!   client ── call begins ─────────────────────────────────────────────────────────── call ends ──► Sink::call
//!              └─ request: made ─ inserted ─ issued ─ begun ──────── finished ─ completed ────────► Sink::request
//!                           Q        I or M     D        └─ the device works on it ─┘      C ──────► Sink::event, as it happens
//!   scheduler ─ m: a slice begins, a budget is used up … ─────────────────────────────────────────► Sink::event
//!   disk ────── idles on purpose, from … to …, for whom ───────────────────────────────────────────► Sink::idle
//!          └─── where the head is, at each issue and each completion ──────────────────────────────► Sink::head
//! ```
//!
//! Anything that lasts is reported when it is over: a call when it ends, a request when the host has
//! completed it. Calls and requests that are in flight when the run ends are reported then, with their end
//! unknown. So each stream is in order of ends, and [`Sink::event`] in order of time.
//!
//! Example: a reader of 8 KiB with direct I/O. Its call 0 makes request 0 of 16 sectors at 98 us, which is
//! inserted and issued at the same time, because nothing else is queued (`Q`, `I`, `D`). The drive finishes
//! it at 9.1 ms, the interrupt completes it at 9.125 ms (`C`), and the call ends there.
//!
//! * *begun* is when the device is assumed to have begun to work on a request: when it was issued, or when
//!   the device had finished the previous request, whichever is later. For a hard disk, which works on one
//!   thing at a time, this is right except for its read-ahead; a flash drive works on many requests at once,
//!   and for it *begun* only says which request finished last. These times never overlap. If a later request
//!   is finished first, the time before its arrival counts for neither.
//! * A merged request has a number of its own and names the request that carried it to the device.
//! * In a mirror each member has its own copy of a write, and each copy is a request.
//! * A flush is a request of no sectors, made for the first caller.
//! * Tasks are those of [`Run::tasks`]: one for each client, then the host's threads that write dirty pages.
//!   A client that is started again is the same task here, although schedulers see a new one.
//!
//! Memory: calls and requests in flight (at most as many requests as there are tags, and as many calls as
//! lanes), and what the sink keeps. [`Collector`] has a limit, and counts what is beyond it.
//!
//! The module does not explain (see [`crate::why`]), and does not write files.

pub mod blocks;
mod collector;
pub mod csv;
pub mod fio_log;
mod recorder;
pub mod timeline;

pub use collector::{Caps, Collector, Dropped};
pub(crate) use recorder::Recorder;

use crate::engine::{Books, Scenario, observe};
use crate::metrics::{Outcome, Result};
pub use crate::why::CallKind;
use crate::why::Report;
use fairhead_core::trace::{self, Detail, Reason};
use fairhead_core::{Duration, GroupId, Hold, Sector, Sectors, TaskId};
use fairhead_device::DeviceOp;

/// Runs a scenario and passes every event to `sink`. The outcome is that of [`crate::simulate`].
///
/// # Errors
/// If the scenario is impossible: see [`crate::SimError`].
pub fn record(scenario: &Scenario, sink: &mut dyn Sink) -> Result<Outcome> {
    observe(scenario, None, Some(sink)).map(|(outcome, _)| outcome)
}

/// Runs a scenario as [`record`] does, and explains where the time of some clients went, as
/// [`crate::why::explain`] does.
///
/// # Errors
/// If the scenario is impossible: see [`crate::SimError`].
pub fn record_and_explain(
    scenario: &Scenario,
    clients: &[usize],
    sink: &mut dyn Sink,
) -> Result<(Outcome, Report)> {
    observe(scenario, Some(Books { clients, window: None, ceiling: None }), Some(sink))
        .map(|(outcome, report)| (outcome, report.expect("clients were given")))
}

/// A receiver of the events of a run. Methods that are not implemented ignore their events.
pub trait Sink {
    /// The run is about to begin.
    fn begins(&mut self, _run: &Run) {}

    /// A call has ended, or it was in flight when the run ended.
    fn call(&mut self, _call: &Call) {}

    /// A request has completed, or it was in flight when the run ended.
    fn request(&mut self, _request: &Request) {}

    /// An event of a request, or a note of the scheduler; in order of time.
    fn event(&mut self, _event: &Event) {}

    /// The disk has idled on purpose.
    fn idle(&mut self, _idle: &Idle) {}

    /// The position of the head; in order of time, whenever it has moved.
    fn head(&mut self, _head: &Head) {}

    /// The run is over.
    fn ends(&mut self, _end: &End) {}
}

/// Several sinks, each of which gets every event, in this order.
#[derive(Default)]
pub struct Sinks<'a>(pub Vec<&'a mut dyn Sink>);

impl Sink for Sinks<'_> {
    fn begins(&mut self, run: &Run) {
        self.0.iter_mut().for_each(|s| s.begins(run));
    }

    fn call(&mut self, call: &Call) {
        self.0.iter_mut().for_each(|s| s.call(call));
    }

    fn request(&mut self, request: &Request) {
        self.0.iter_mut().for_each(|s| s.request(request));
    }

    fn event(&mut self, event: &Event) {
        self.0.iter_mut().for_each(|s| s.event(event));
    }

    fn idle(&mut self, idle: &Idle) {
        self.0.iter_mut().for_each(|s| s.idle(idle));
    }

    fn head(&mut self, head: &Head) {
        self.0.iter_mut().for_each(|s| s.head(head));
    }

    fn ends(&mut self, end: &End) {
        self.0.iter_mut().for_each(|s| s.ends(end));
    }
}

/// The properties of a run that are known before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of the scheduler's preset.
    pub scheduler: String,
    /// The random seed.
    pub seed: u64,
    /// The tasks, by [`TaskId`]: an unused entry, the clients in the order of the job file, the threads that
    /// write dirty pages.
    pub tasks: Vec<Task>,
    /// The paths of control groups, by [`GroupId`]; `/` is the root.
    pub groups: Vec<String>,
    /// The number of disks that have a queue of their own.
    pub members: u8,
    /// The size of the disk, in sectors.
    pub capacity: u64,
    /// Whether the disk has a head that moves.
    pub rotational: bool,
    /// The most requests that the disk takes at a time.
    pub queue_depth: u16,
}

impl Run {
    /// Returns a task's name.
    #[must_use]
    pub fn name(&self, task: TaskId) -> &str {
        self.tasks.get(task.0 as usize).map_or("nobody", |t| t.name.as_str())
    }

    /// Returns a group's path.
    #[must_use]
    pub fn group(&self, group: GroupId) -> &str {
        self.groups.get(group.0 as usize).map_or("/", String::as_str)
    }
}

/// A task: a client, or a thread of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name of the job, with the number of the clone if it has several.
    pub name: String,
    /// The index into [`Outcome::clients`], if it is a client.
    pub client: Option<usize>,
    /// Its control group.
    pub group: GroupId,
}

/// A call of a client. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call, in the order of beginnings, from 0.
    pub id: u64,
    /// The client: an index into [`Outcome::clients`].
    pub client: usize,
    /// The task that made it.
    pub task: TaskId,
    /// The lane of the client's calls in flight, from 0 to `iodepth` - 1.
    pub lane: u32,
    /// The kind of call.
    pub kind: CallKind,
    /// The file, by its number among all files of the run.
    pub file: u32,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The length, in bytes; 0 for an fsync.
    pub bytes: u64,
    /// When it began.
    pub began: Duration,
    /// When it ended; `None` if the run ended before.
    pub ended: Option<Duration>,
    /// Whether the figures of the run include it: it ended after `ramp_time`.
    pub measured: bool,
    /// The number of requests that it made: 0 if its data were in memory, or came with another call's
    /// request.
    pub requests: u32,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The operation.
    pub op: DeviceOp,
    /// Whether a program waits for it.
    pub sync: bool,
    /// Whether it is of metadata.
    pub meta: bool,
    /// Whether it is read-ahead.
    pub ahead: bool,
}

/// A request and everything that happened to it. Times are since the start of the run, and in ascending order
/// of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the request, in the order in which requests were made, from 0.
    pub id: u64,
    /// The disk, by its number; 0 except in a mirror.
    pub member: u8,
    /// The task that made it.
    pub task: TaskId,
    /// The group that it is charged to.
    pub group: GroupId,
    /// The call that made it; `None` for a thread that writes dirty pages, or if the call began before the
    /// recording.
    pub call: Option<u64>,
    /// The kind of request.
    pub kind: Kind,
    /// The first sector.
    pub sector: Sector,
    /// The number of sectors.
    pub sectors: Sectors,
    /// When a thread first asked for it. A request of a direct call may wait for a tag after that; in a
    /// mirror, and for requests of the page cache, the time is the end of such a wait.
    pub made: Duration,
    /// When it, or the request that carries it, was inserted into the scheduler; later than `made` if it was
    /// plugged, or waited for a tag or a limit.
    pub inserted: Option<Duration>,
    /// When it was issued to the device.
    pub issued: Option<Duration>,
    /// When the device is assumed to have begun to work on it.
    pub begun: Option<Duration>,
    /// When the device had finished it.
    pub finished: Option<Duration>,
    /// When the host had completed it: the end of the interrupt.
    pub completed: Option<Duration>,
    /// The request that carried it to the device, if it was merged.
    pub merged_into: Option<u64>,
    /// Why it, or the request that carried it, was chosen.
    pub chosen: Reason,
}

/// The kind of an event. Letters are blktrace's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `Q`: the request was made.
    Queue,
    /// `I`: it was inserted into the scheduler.
    Insert,
    /// `M`: it was appended to a queued request.
    BackMerge,
    /// `F`: it was put in front of a queued request.
    FrontMerge,
    /// `J`: two queued requests became one; the event is of the one that is gone.
    Join,
    /// `D`: it was issued to the device, with everything merged into it.
    Issue,
    /// `C`: it completed.
    Complete,
    /// `R`: the device gave it back.
    Requeue,
    /// `m`: a note of the scheduler about a decision.
    Note,
}

impl Action {
    /// Returns blktrace's letter.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::Insert => 'I',
            Self::BackMerge => 'M',
            Self::FrontMerge => 'F',
            Self::Join => 'J',
            Self::Issue => 'D',
            Self::Complete => 'C',
            Self::Requeue => 'R',
            Self::Note => 'm',
        }
    }
}

impl From<trace::Action> for Action {
    fn from(action: trace::Action) -> Self {
        match action {
            trace::Action::Insert => Self::Insert,
            trace::Action::BackMerge => Self::BackMerge,
            trace::Action::FrontMerge => Self::FrontMerge,
            trace::Action::Join => Self::Join,
            trace::Action::Issue => Self::Issue,
            trace::Action::Complete => Self::Complete,
            trace::Action::Requeue => Self::Requeue,
            trace::Action::Note => Self::Note,
        }
    }
}

/// An event at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time since the start of the run.
    pub at: Duration,
    /// The disk, by its number; 0 except in a mirror.
    pub member: u8,
    /// The kind of event.
    pub action: Action,
    /// The reason of a decision.
    pub reason: Reason,
    /// The request, by [`Request::id`]; `None` for most notes.
    pub request: Option<u64>,
    /// The task of the request, or the task that the scheduler's note is about.
    pub task: TaskId,
    /// The group that the request is charged to; for a note, the group of the task.
    pub group: GroupId,
    /// The kind of the request; `None` if there is none.
    pub kind: Option<Kind>,
    /// The first sector. At [`Action::Issue`] and [`Action::Complete`] everything merged into the request is
    /// included.
    pub sector: Sector,
    /// The number of sectors, likewise.
    pub sectors: Sectors,
    /// The numbers of a note.
    pub detail: Detail,
}

/// A time in which requests waited and the disk had nothing to do, because the scheduler kept it idle. All of
/// them add up to [`DiskStats::idled`](crate::metrics::DiskStats::idled); in a mirror, to that times the
/// number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The disk, by its number; 0 except in a mirror.
    pub member: u8,
    /// The beginning.
    pub from: Duration,
    /// The end.
    pub to: Duration,
    /// The scheduler's answer.
    pub hold: Hold,
    /// The reason in a word: [`Reason::SliceIdle`], [`Reason::WorkloadIdle`], [`Reason::GroupIdle`] or
    /// [`Reason::Anticipate`]; [`Reason::None`] for the grace period of the idle class.
    pub reason: Reason,
    /// The task whose next request it waited for: the one whose turn the scheduler noted last. `None` if the
    /// scheduler has no such notes, and for the idle class.
    pub task: Option<TaskId>,
}

/// The position of a head, as far as the drive's model has been asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The time since the start of the run.
    pub at: Duration,
    /// The disk, by its number; 0 except in a mirror.
    pub member: u8,
    /// The sector that it is about to reach.
    pub sector: Sector,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The time since its start.
    pub at: Duration,
    /// The number of events that the scheduler's trace lost. Anything but 0 is a bug.
    pub lost: u64,
}
