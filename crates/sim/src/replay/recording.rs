//! What is in a trace, as far as a replay has to know it beforehand: found by reading it once to its end.

use super::options::{Mode, Options};
use super::unanswered::Unanswered;
use fairhead_core::Duration;
use fairhead_trace::{DeviceId, Format, Kept, NAMES_MAX, Names, Record, Trace, TraceError};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a trace is read from, as often as it is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A file; of blktrace's set any of them, or the stem. Its content must not change while it is replayed.
    File(PathBuf),
    /// Bytes, and what to call them.
    Bytes(String, Arc<[u8]>),
    /// What came out of a pipe.
    Kept(Arc<Kept>),
}

impl Source {
    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Bytes(name, _) => name.clone(),
            Self::Kept(kept) => kept.name().to_owned(),
        }
    }

    fn open(&self) -> Result<Trace, TraceError> {
        match self {
            Self::File(path) => fairhead_trace::open(path),
            Self::Bytes(name, bytes) => fairhead_trace::read(name, Cursor::new(Arc::clone(bytes))),
            Self::Kept(kept) => Ok(kept.open()),
        }
    }

    /// A pipe gives its bytes once; a trace is read at least twice.
    fn can_be_read_again(&self) -> Result<(), String> {
        match self {
            Self::File(path) if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) => Err(format!(
                "{}: is a pipe or a device; a trace is read more than once, so write it to a file first",
                path.display()
            )),
            _ => Ok(()),
        }
    }
}

/// A client of a replay: whose requests it makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The name: `NAME-NUMBER` of a process, a device's name, or that it is all the others.
    pub name: String,
    /// How many requests it makes.
    pub requests: u64,
}

/// The task of a request, or its device if the trace has no tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Who {
    /// By process: the client of each that has one. The rest belong to the last client.
    Task(BTreeMap<u32, usize>),
    /// By device.
    Device(BTreeMap<u32, usize>),
}

/// A trace that has been read to its end.
#[derive(Debug)]
pub struct Recording {
    source: Source,
    options: Options,
    /// Whether the trace settled [`Mode::Auto`].
    by_itself: bool,
    /// The form that it has.
    pub format: Format,
    /// The clients, the busiest first; the last one may stand for many. At least one.
    pub tasks: Vec<Task>,
    /// How many tasks (or devices) were recorded; a lower bound beyond [`NAMES_MAX`].
    pub recorded_tasks: usize,
    who: Who,
    /// How many requests are replayed.
    pub requests: u64,
    /// The time of the last of them, as recorded.
    pub duration: Duration,
    /// How many of them were answered, as far as the trace tells.
    pub answered: u64,
    /// A phrase for notes: how many requests have no completion, of how many, and why.
    unanswered: String,
    /// Of each device, how many sectors are touched, after `replay_scale`.
    ends: Vec<u64>,
    /// Differs for traces that differ.
    pub fingerprint: u64,
    /// How many requests all runs together have read so far: to show progress.
    read: AtomicU64,
}

/// Two recordings are equal if they are of the same file, with the same contents, and replayed in the same
/// way.
impl PartialEq for Recording {
    fn eq(&self, other: &Self) -> bool {
        (&self.source, &self.options, self.fingerprint) == (&other.source, &other.options, other.fingerprint)
    }
}

/// A job's place in a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The recording that all of its clients replay.
    pub recording: Arc<Recording>,
    /// The task whose requests this job makes: an index into [`Recording::tasks`].
    pub task: usize,
}

/// `read_iolog`: a job that replays a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceJob {
    /// The trace.
    pub source: Source,
    /// The job file's line that names it; 0 if none does.
    pub line: u32,
    /// How.
    pub options: Options,
    /// The part of the recording, once it has been read: see
    /// [`JobFile::read_recordings`](crate::job::JobFile::read_recordings).
    pub part: Option<Part>,
}

/// The fingerprint with one more request in it.
fn stirred(fingerprint: u64, r: &Record) -> u64 {
    let completed = r.completed.map_or(0, Duration::as_ns);
    let op = (r.op as u64) << 40 | u64::from(r.device.0);
    let words = [r.at.as_ns(), r.sector.0, u64::from(r.sectors), u64::from(r.task.0), op, completed];
    // FNV's step, a word at a time, stirred.
    words.iter().fold(fingerprint, |f, word| (f ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29))
}

/// What has been counted so far.
#[derive(Default)]
struct Census {
    tasks: BTreeMap<u32, u64>,
    /// Requests of tasks beyond those that can be counted one by one.
    other_tasks: u64,
    devices: Vec<u64>,
    ends: Vec<u64>,
    requests: u64,
    unanswered: Unanswered,
    last: Duration,
    fingerprint: u64,
}

impl Census {
    fn add(&mut self, r: &Record, scale: u32) {
        self.requests += 1;
        self.unanswered.add(r);
        self.last = r.at;
        let has_room = self.tasks.len() < NAMES_MAX;
        match self.tasks.get_mut(&r.task.0) {
            Some(count) => *count += 1,
            None if has_room => drop(self.tasks.insert(r.task.0, 1)),
            None => self.other_tasks += 1,
        }
        let device = r.device.0 as usize;
        if self.devices.len() <= device {
            self.devices.resize(device + 1, 0);
            self.ends.resize(device + 1, 0);
        }
        self.devices[device] += 1;
        let end = r.sector.0 / u64::from(scale.max(1)) + u64::from(r.sectors);
        self.ends[device] = self.ends[device].max(end);
        self.fingerprint = stirred(self.fingerprint, r);
    }

    /// The clients, whose requests each makes, and how many tasks there were.
    fn clients(&self, names: &Names, most: u32) -> (Vec<Task>, Who, usize) {
        let by_device = self.tasks.len() == 1 && self.devices.iter().filter(|n| **n > 0).count() > 1;
        let mut all: Vec<(u64, u32)> = if by_device {
            (0..).zip(&self.devices).filter(|(_, n)| **n > 0).map(|(id, n)| (*n, id)).collect()
        } else {
            self.tasks.iter().map(|(id, n)| (*n, *id)).collect()
        };
        let count = all.len() + usize::from(self.other_tasks > 0);
        all.sort_by_key(|(n, id)| (std::cmp::Reverse(*n), *id));
        let name = |id: u32| match names.task(fairhead_core::TaskId(id)) {
            _ if by_device => names.device(DeviceId(id)).to_owned(),
            Some(name) => format!("{name}-{id}"),
            None => format!("task-{id}"),
        };
        let own = most.max(1) as usize;
        // One that would be alone among the others is as good as one of them.
        let own = if count == own + 1 && self.other_tasks == 0 { own + 1 } else { own };
        let mut tasks: Vec<Task> =
            all.iter().take(own).map(|&(requests, id)| Task { name: name(id), requests }).collect();
        let who: BTreeMap<u32, usize> = all.iter().take(own).zip(0..).map(|((_, id), i)| (*id, i)).collect();
        let rest: u64 = all.iter().skip(own).map(|(n, _)| n).sum::<u64>() + self.other_tasks;
        if rest > 0 {
            tasks.push(Task { name: format!("{} others", count - own), requests: rest });
        }
        (tasks, if by_device { Who::Device(who) } else { Who::Task(who) }, count)
    }
}

impl Recording {
    /// Reads a trace to its end. `progress` hears now and then how many bytes of how many have been read.
    ///
    /// # Errors
    /// If it cannot be read, or not to its end; if nothing in it is to be replayed; if it cannot be replayed
    /// that way.
    pub fn of(source: Source, mut options: Options, progress: &dyn Fn(u64, u64)) -> Result<Self, String> {
        source.can_be_read_again()?;
        let mut trace = source.open().map_err(|e| e.to_string())?;
        let (mut census, mut chosen) = (Census::default(), Chosen::default());
        let mut seen = 0_u64;
        while let Some(record) = trace.next() {
            let record = record.map_err(|e| e.to_string())?;
            if seen.is_multiple_of(1 << 14) {
                let (read, size) = trace.progress();
                progress(read, size);
            }
            seen += 1;
            if options.takes(&record) && chosen.takes(&record, trace.names(), &options) {
                census.add(&record, options.scale);
            }
        }
        let wrong = |what: String| format!("{}: {what}", source.name());
        if let Some(name) = options.devices.iter().find(|d| !chosen.found.contains_key(*d)) {
            let all: Vec<&str> = (0..trace.names().devices().min(10))
                .map(|i| trace.names().device(DeviceId(i as u32)))
                .collect();
            return Err(wrong(format!("it has no device '{name}'; it has {}", all.join(", "))));
        }
        if census.requests == 0 {
            return Err(wrong("it has no request to replay".to_owned()));
        }
        let answered = census.unanswered.answered();
        let unanswered = census.unanswered.describe(trace.format(), trace.names(), trace.notes().lost);
        if options.mode == Mode::Closed && answered == 0 {
            return Err(wrong(format!("{unanswered}; a closed replay needs them: replay it open")));
        }
        let by_itself = options.mode == Mode::Auto;
        if by_itself {
            let is_told = answered >= census.requests - census.requests / 10;
            options.mode = if is_told { Mode::Closed } else { Mode::Open };
        }
        let (tasks, who, recorded_tasks) = census.clients(trace.names(), options.clients_max);
        Ok(Self {
            format: trace.format(),
            tasks,
            recorded_tasks,
            who,
            requests: census.requests,
            duration: census.last,
            answered,
            unanswered,
            ends: census.ends,
            fingerprint: census.fingerprint,
            source,
            options,
            by_itself,
            read: AtomicU64::new(0),
        })
    }

    /// Returns the name of the recording.
    #[must_use]
    pub fn name(&self) -> String {
        self.source.name()
    }

    /// How it is replayed; never [`Mode::Auto`].
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Returns how many sectors of each device, in order of appearance, are touched after `replay_scale`.
    #[must_use]
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Returns notes for the user about the replay, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let name = self.source.name();
        let (tasks, count) = (&self.tasks, self.recorded_tasks);
        match self.options.mode {
            Mode::Closed if self.by_itself => notes.push(format!(
                "{name}: replayed closed: each request as long after the completion before it as in the recording"
            )),
            Mode::Open if self.by_itself => notes.push(format!(
                "{name}: replayed open, at the recorded times: {}; a closed replay needs nine of ten",
                self.unanswered
            )),
            _ => {}
        }
        if let Some(rest) = tasks.last().filter(|_| tasks.len() < count) {
            let own = tasks.len() - 1;
            notes.push(format!(
                "{name}: {own} of {count} tasks have a client of their own; the {} requests of the others are made by one",
                rest.requests
            ));
        }
        if self.options.mode == Mode::Closed && self.answered < self.requests {
            notes.push(format!("{name}: {}; no other request waits for those", self.unanswered));
        }
        notes
    }

    /// Whether the trace records which writes are sync.
    #[must_use]
    pub const fn tells_sync(&self) -> bool {
        matches!(self.format, Format::Blktrace | Format::Blkparse | Format::Ftrace | Format::IoSnoop)
    }

    /// How many requests all runs of it together have read so far. Changes no result; for those who show
    /// progress.
    #[must_use]
    pub fn requests_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Returns the task of a request: an index into [`Self::tasks`]. `None` if it was not there when the
    /// trace was first read.
    fn client(&self, record: &Record) -> Option<usize> {
        let (map, id) = match &self.who {
            Who::Task(map) => (map, record.task.0),
            Who::Device(map) => (map, record.device.0),
        };
        let rest = (map.len() < self.tasks.len()).then_some(map.len());
        map.get(&id).copied().or(rest)
    }
}

/// Which devices are replayed, as they appear.
#[derive(Default)]
struct Chosen {
    /// By device.
    known: Vec<bool>,
    found: BTreeMap<String, ()>,
}

impl Chosen {
    fn takes(&mut self, record: &Record, names: &Names, options: &Options) -> bool {
        if options.devices.is_empty() {
            return true;
        }
        while self.known.len() < names.devices() {
            let name = names.device(DeviceId(u32::try_from(self.known.len()).unwrap_or(u32::MAX)));
            let is_wanted = options.devices.iter().any(|d| d == name);
            if is_wanted {
                self.found.insert(name.to_owned(), ());
            }
            self.known.push(is_wanted);
        }
        self.known.get(record.device.0 as usize).copied().unwrap_or(false)
    }
}

/// How many requests are read before they are added to what all runs have read.
const PROGRESS_STEP: u64 = 1 << 12;

/// The requests of a recording, as one run reads them.
pub(crate) struct Records {
    trace: Trace,
    recording: Arc<Recording>,
    chosen: Chosen,
    count: u64,
    fingerprint: u64,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Records {
    pub(crate) fn new(recording: &Arc<Recording>) -> Result<Self, String> {
        let trace = recording.source.open().map_err(|e| e.to_string())?;
        Ok(Self {
            trace,
            recording: Arc::clone(recording),
            chosen: Chosen::default(),
            count: 0,
            fingerprint: 0,
        })
    }

    /// The next request and whose it is; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Record)>, String> {
        while let Some(record) = self.trace.next() {
            let record = record.map_err(|e| e.to_string())?;
            let options = &self.recording.options;
            if !options.takes(&record) || !self.chosen.takes(&record, self.trace.names(), options) {
                continue;
            }
            self.count += 1;
            self.fingerprint = stirred(self.fingerprint, &record);
            if self.count.is_multiple_of(PROGRESS_STEP) {
                self.recording.read.fetch_add(PROGRESS_STEP, Ordering::Relaxed);
            }
            let task = self.recording.client(&record).ok_or_else(|| self.changed())?;
            return Ok(Some((task, record)));
        }
        let is_same = (self.count, self.fingerprint) == (self.recording.requests, self.recording.fingerprint);
        if is_same { Ok(None) } else { Err(self.changed()) }
    }

    /// What there is to say when it is not what it was.
    pub(crate) fn changed(&self) -> String {
        format!("{}: changed while it was replayed", self.recording.source.name())
    }
}
