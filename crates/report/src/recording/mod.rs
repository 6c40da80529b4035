//! Records what the pictures over time need of a run, during the run, in bounded memory.
//!
//! A run of a million requests needs about as much memory as one of a thousand. There are four records:
//!
//! * [`Flow`]: bytes, and time in the device, of each client per interval. The length of intervals doubles
//!   when there are too many.
//! * [`Cells`]: where on the disk requests were. A cell is an interval of time times a range of sectors. It
//!   is kept once for each client with a request in it; cells double in time or in space when there are too
//!   many.
//! * [`Turns`]: which client was served, request after request, and why. Turns of one client join when the
//!   gaps between them are shorter than a grain, which doubles when there are too many.
//! * Idling on purpose, the sum for each reason.
//!
//! Example: of 20 s with 40,000 requests all over a disk, cells are 33 ms times 7 GB, and turns have a grain
//! of 4 ms. The page shows these sizes.

mod cells;
mod flow;
mod turns;

pub(crate) use cells::Cells;
pub(crate) use flow::Flow;
pub(crate) use turns::{Turn, Turns};

use crate::participants::Participants;
use fairhead_core::{Duration, Hold, Reason};
use fairhead_sim::journal::{End, Idle, Request, Run, Sink, Task};

/// A reason to idle, and how often and how long it applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idled {
    pub(crate) hold: Hold,
    pub(crate) reason: Reason,
    pub(crate) time: Duration,
    pub(crate) times: u64,
}

/// The events of a run that pictures are made of.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) participants: Participants,
    pub(crate) flow: Flow,
    pub(crate) cells: Cells,
    pub(crate) turns: Turns,
    pub(crate) idled: Vec<Idled>,
    /// The number of requests that the device has completed.
    pub(crate) requests: u64,
    pub(crate) members: u64,
    pub(crate) is_rotational: bool,
    pub(crate) elapsed: Duration,
}

/// Records a run, as a sink of its journal.
///
/// ```
/// use fairhead_core::sched::any::preset;
/// use fairhead_device::DeviceParams;
/// use fairhead_report::{Participants, Recorder, Run, Runs, pictures};
/// use fairhead_sim::{Host, Scenario, job, journal};
///
/// let jobs = job::parse("[a]\nrw=randread\nsize=64k\n", "a.fio").unwrap();
/// let mut recorder = Recorder::new(Participants::new(&jobs));
/// let scenario = Scenario {
///     jobs,
///     disk: DeviceParams::preset("nas2020").unwrap(),
///     host: Host::named("2020").unwrap(),
///     scheduler: "cfq".to_owned(),
///     config: (preset("cfq").unwrap().config)(),
///     seed: 1,
///     interval: None,
///     time_max: None,
///     watch: None,
/// };
/// let outcome = journal::record(&scenario, &mut recorder).unwrap();
/// let recording = recorder.finish();
/// let run = Run { name: "cfq", outcome: &outcome, recording: &recording };
/// let all = pictures::all(&Runs::each(&scenario.jobs, &[run]));
/// assert!(all.iter().any(|picture| picture.name == "throughput-cfq"));
/// ```
#[derive(Debug)]
pub struct Recorder {
    tasks: Vec<Task>,
    kept: Recording,
}

impl Recorder {
    /// Makes empty records for these participants.
    #[must_use]
    pub fn new(participants: Participants) -> Self {
        let count = participants.count();
        let kept = Recording {
            participants,
            flow: Flow::new(count),
            cells: Cells::default(),
            turns: Turns::default(),
            idled: Vec::new(),
            requests: 0,
            members: 1,
            is_rotational: true,
            elapsed: Duration::ZERO,
        };
        Self { tasks: Vec::new(), kept }
    }

    /// Ends the recording.
    #[must_use]
    pub fn finish(mut self) -> Recording {
        self.kept.cells.finish();
        self.kept.turns.finish();
        self.kept
    }
}

/// The size of a sector, in bytes.
pub(crate) const SECTOR: u64 = 512;

impl Sink for Recorder {
    fn begins(&mut self, run: &Run) {
        self.tasks.clone_from(&run.tasks);
        self.kept.members = u64::from(run.members.max(1));
        self.kept.is_rotational = run.rotational;
    }

    fn request(&mut self, r: &Request) {
        let Some(task) = self.tasks.get(r.task.0 as usize) else { return };
        let (Some(begun), Some(finished)) = (r.begun, r.finished) else { return };
        let k = &mut self.kept;
        let who = k.participants.of(task);
        k.requests += 1;
        k.flow.moved(who, finished, u64::from(r.sectors.0) * SECTOR);
        if r.sectors.0 > 0 {
            k.cells.mark(who, begun, r.sector.0);
        }
        if r.merged_into.is_none() {
            k.flow.busy(who, begun, finished);
            k.turns.add(k.participants.lane(task), begun, finished, r.chosen);
        }
    }

    fn idle(&mut self, idle: &Idle) {
        let (k, time) = (&mut self.kept, idle.to - idle.from);
        if !idle.hold.is_idling() {
            return;
        }
        k.flow.idled(idle.from, idle.to);
        match k.idled.iter_mut().find(|i| (i.hold, i.reason) == (idle.hold, idle.reason)) {
            Some(known) => (known.time, known.times) = (known.time + time, known.times + 1),
            None => k.idled.push(Idled { hold: idle.hold, reason: idle.reason, time, times: 1 }),
        }
        let task = idle.task.and_then(|t| self.tasks.get(t.0 as usize));
        if let Some(task) = task {
            k.turns.idle(k.participants.lane(task), idle.from, idle.to, idle.reason);
        }
    }

    fn ends(&mut self, end: &End) {
        self.kept.elapsed = end.at;
    }
}
