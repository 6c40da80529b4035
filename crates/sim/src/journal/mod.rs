//! What happened in a run: request by request, call by call, decision by decision, as a stream into a sink.
//!
//! [`record`] runs a scenario as [`crate::simulate`] does and tells a [`Sink`] what happens. The outcome is the same to the last
//! bit; when nobody records, none of this exists.
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
//! Whatever lasts is told when it is over: a call when it ends, a request when the host has it back. Those that are still under
//! way when the run ends are told then, with their end unknown. So each stream is in order of ends, and [`Sink::event`] in order of time.
//!
//! Example: a reader of 8 KiB past the page cache. Its call 0 makes request 0 of 16 sectors at 98 us, which is inserted and issued at the same time
//! as nothing else is there (`Q`, `I`, `D`); the drive finishes it at 9.1 ms, the interrupt ends it at 9.125 ms (`C`), and the call ends there.
//!
//! * *begun* is when the device is taken to have begun to work on a request: when it was issued, or when the device had finished the one
//!   before, whichever is later. A drive works on one thing at a time, and so is what this says up to its own reading ahead; a flash drive
//!   works on many at once, and there it says what came last. Such times never overlap; where a request that came later is finished first, the time before
//!   that one came is in neither.
//! * A request that was merged has a number of its own and names the request that carried it, as whose part it was issued and completed.
//! * In a mirror each member has its own copy of a write: each is a request.
//! * A flush is a request of no sectors, made for the first who asked.
//! * Tasks are those of [`Run::tasks`]: one for each client, then the host's threads that write dirty pages. A client that is started anew
//!   stays the same task here, though schedulers take it for another.
//!
//! Memory: what is under way (at most as many requests as there are tags, as many calls as lanes), and what the sink keeps.
//! [`Collector`] keeps as much as it is told, and counts the rest.
//!
//! What this does not do: explain (that is [`crate::why`]), or write files.

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
pub use crate::why::Asked;
use crate::why::Report;
use fairhead_core::trace::{self, Detail, Reason};
use fairhead_core::{Duration, GroupId, Hold, Sector, Sectors, TaskId};
use fairhead_device::DeviceOp;

/// Runs a scenario and tells `sink` what happens. The outcome is that of [`crate::simulate`].
///
/// # Errors
/// If the scenario cannot be.
pub fn record(scenario: &Scenario, sink: &mut dyn Sink) -> Result<Outcome> {
    observe(scenario, None, Some(sink)).map(|(outcome, _)| outcome)
}

/// The same, and explains where the time of some clients went, as [`crate::why::explain`] does.
///
/// # Errors
/// If the scenario cannot be.
pub fn record_and_explain(
    scenario: &Scenario,
    clients: &[usize],
    sink: &mut dyn Sink,
) -> Result<(Outcome, Report)> {
    observe(scenario, Some(Books { clients, window: None }), Some(sink))
        .map(|(outcome, report)| (outcome, report.expect("somebody asked")))
}

/// Who hears what happens. Everything not asked for is passed over.
pub trait Sink {
    /// The run is about to begin.
    fn begins(&mut self, _run: &Run) {}

    /// A call has ended, or the run has while it was under way.
    fn call(&mut self, _call: &Call) {}

    /// A request has completed, or the run has ended while it was under way.
    fn request(&mut self, _request: &Request) {}

    /// Something has happened to a request, or the scheduler has changed its mind; in order of time.
    fn event(&mut self, _event: &Event) {}

    /// The disk has idled on purpose.
    fn idle(&mut self, _idle: &Idle) {}

    /// The head is there now. In order of time; told when it has moved.
    fn head(&mut self, _head: &Head) {}

    /// The run is over.
    fn ends(&mut self, _end: &End) {}
}

/// Several who all hear the same, one after the other; or nobody.
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

/// What is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The scheduler's (preset's) name.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
    /// By [`TaskId`]: nobody, the clients in the order of the job file, the threads that write dirty pages.
    pub tasks: Vec<Task>,
    /// By [`GroupId`]: the paths of control groups; `/` is the root.
    pub groups: Vec<String>,
    /// How many disks have a queue of their own.
    pub members: u8,
    /// The size of the disk in sectors.
    pub capacity: u64,
    /// Whether there is a head to move.
    pub rotational: bool,
    /// How many requests the disk takes at a time.
    pub queue_depth: u16,
}

impl Run {
    /// A task's name.
    #[must_use]
    pub fn name(&self, task: TaskId) -> &str {
        self.tasks.get(task.0 as usize).map_or("nobody", |t| t.name.as_str())
    }

    /// A group's path.
    #[must_use]
    pub fn group(&self, group: GroupId) -> &str {
        self.groups.get(group.0 as usize).map_or("/", String::as_str)
    }
}

/// Who makes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The job's name, with the number of the clone if it has several.
    pub name: String,
    /// Which of [`Outcome::clients`], if it is one.
    pub client: Option<usize>,
    /// Its control group.
    pub group: GroupId,
}

/// A call of a client. Times are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number, in the order of beginnings, from 0.
    pub id: u64,
    /// Which of [`Outcome::clients`].
    pub client: usize,
    /// Whose.
    pub task: TaskId,
    /// Which of the client's calls in flight: from 0 to `iodepth` - 1.
    pub lane: u32,
    /// What it asks for.
    pub asked: Asked,
    /// Which file, as all files of the run are numbered.
    pub file: u32,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for an fsync.
    pub bytes: u64,
    /// When it began.
    pub began: Duration,
    /// When it ended; `None`: the run ended before.
    pub ended: Option<Duration>,
    /// Whether the figures of the run count it: it ended after `ramp_time`.
    pub measured: bool,
    /// How many requests it made: none if its data was in memory, or came with another's.
    pub requests: u32,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Read, write, discard or flush.
    pub op: DeviceOp,
    /// Somebody waits for it.
    pub sync: bool,
    /// Of metadata.
    pub meta: bool,
    /// Nobody has asked for what it reads yet.
    pub ahead: bool,
}

/// A request, as it was made, with all that happened to it. Times are since the start of the run, and never less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number, in the order in which requests were made, from 0.
    pub id: u64,
    /// Which disk's: 0, but in a mirror.
    pub member: u8,
    /// Whose.
    pub task: TaskId,
    /// On behalf of which group.
    pub group: GroupId,
    /// The call that made it; `None`: a thread that writes dirty pages, or the run had not begun the call.
    pub call: Option<u64>,
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub sector: Sector,
    /// How much.
    pub sectors: Sectors,
    /// When a thread first asked for it. A request of a direct call may wait for a tag after that; in a mirror, and for what the page cache
    /// hands in, the time is the end of such a wait.
    pub made: Duration,
    /// When the scheduler got it, or the request that carries it; later than `made` for what is plugged, or waits for a tag or a limit.
    pub inserted: Option<Duration>,
    /// When the device got it.
    pub issued: Option<Duration>,
    /// When the device is taken to have begun to work on it.
    pub begun: Option<Duration>,
    /// When the device had done it.
    pub finished: Option<Duration>,
    /// When the host had it back: the interrupt's end.
    pub completed: Option<Duration>,
    /// The request as whose part it was issued, if it was merged.
    pub merged_into: Option<u64>,
    /// Why it, or the request that carried it, was chosen.
    pub chosen: Reason,
}

/// What happened. The letters are blktrace's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `Q`: somebody wants this.
    Queue,
    /// `I`: the scheduler has it.
    Insert,
    /// `M`: it was appended to a queued request.
    BackMerge,
    /// `F`: it was put in front of a queued request.
    FrontMerge,
    /// `J`: two queued requests became one; told of the one that is no more.
    Join,
    /// `D`: the device has it, with all that was merged into it.
    Issue,
    /// `C`: done.
    Complete,
    /// `R`: the device handed it back.
    Requeue,
    /// `m`: the scheduler has changed its mind about something.
    Note,
}

impl Action {
    /// blktrace's letter.
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

/// Something that happened at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, since the start of the run.
    pub at: Duration,
    /// At which disk: 0, but in a mirror.
    pub member: u8,
    /// What.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// To which request, by [`Request::id`]; `None` for most notes.
    pub request: Option<u64>,
    /// Whose request, or whom the scheduler's note is about.
    pub task: TaskId,
    /// On behalf of which group; of a note, the task's.
    pub group: GroupId,
    /// What the request is; `None` if there is none.
    pub kind: Option<Kind>,
    /// Where it starts; at [`Action::Issue`] and [`Action::Complete`], with all that was merged into it.
    pub sector: Sector,
    /// How long it is; likewise.
    pub sectors: Sectors,
    /// The decision in numbers, of a note.
    pub detail: Detail,
}

/// Time during which requests waited and the disk had nothing to do, because the scheduler kept it so. All of them add up to
/// [`DiskStats::idled`](crate::metrics::DiskStats::idled), in a mirror to that times the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Which disk: 0, but in a mirror.
    pub member: u8,
    /// From when.
    pub from: Duration,
    /// Until when.
    pub to: Duration,
    /// What the scheduler said.
    pub hold: Hold,
    /// In a word: [`Reason::SliceIdle`], [`Reason::WorkloadIdle`], [`Reason::GroupIdle`] or [`Reason::Anticipate`]; [`Reason::None`]
    /// for the grace of the idle class.
    pub reason: Reason,
    /// Whose next request it waited for: whose turn the scheduler had noted last. `None` if it notes none, and for the idle class.
    pub task: Option<TaskId>,
}

/// Where a head is, as far as the model of the drive has been asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// When, since the start of the run.
    pub at: Duration,
    /// Which disk's: 0, but in a mirror.
    pub member: u8,
    /// The sector that it is about to reach.
    pub sector: Sector,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When, since its start.
    pub at: Duration,
    /// Events that the scheduler's trace lost. Zero, or else a bug.
    pub lost: u64,
}
