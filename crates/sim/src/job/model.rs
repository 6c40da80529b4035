//! The typed job: what a job file says, in units, with every rule of fio's about defaults already applied.
//!
//! A [`JobFile`] is a list of [`Job`]s in file order. A job stands for `numjobs` *clients*, each with its own
//! cursor, random stream and (unless `filename` names them) its own files. [`JobFile::clients`] walks them in
//! the order in which fio numbers its threads.
//!
//! ```text
//! [global]      ─┐ inherited by every job below it
//! size=1g        │
//! [readers]     ─┴► Job { wave: 0, group: 0, numjobs: 10, .. }  ─► clients (readers,0) … (readers,9)
//! [late]
//! stonewall     ──► Job { wave: 1, group: 1, .. }               ─► client  (late,0), starts when wave 0 has ended
//! ```
//!
//! What it does not do: it knows no disk, so percentages and "the rest of the disk" stay what they are
//! ([`Size`]); and it places no file, which is the host model's business ([`Layout`], [`Placement`] are the
//! wishes).

use std::collections::BTreeMap;
use std::sync::Arc;

use fairhead_core::units::{Duration, IoPrio};
use fairhead_device::DeviceParams;

use super::CLIENTS_MAX;
use super::cmdprio::CallPrio;
use super::disks::{Disk, DiskId, WHOLE_DISK, drive};
use super::error::{JobError, clean};
use super::groups::{Cgroup, Change};
use super::load::{
    BlockSize, Direction, Distribution, Engine, FileService, Kind, Layout, Metadata, Pattern, PerOp,
    Percentiles, Placement, Program, Sequencer, Size, SyncMode, Unified, Verify, Zones,
};
use super::steady::SteadyState;
use super::steer::{ExitWhat, Flow, LatencyTarget, RateMin};
use super::trace::{StartUpTrace, TraceFile};
use crate::journal::fio_log::Logs;
use crate::replay::{Options, Part, Recording, Source, TraceJob};

/// The most requests in flight of all clients of a replay together. They take 60 MB of memory.
const LANES_MAX: u64 = 1 << 18;

/// A job file, parsed and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The name of the file, for messages.
    pub file_name: String,
    /// The jobs in file order; at least one.
    pub jobs: Vec<Job>,
    /// The disks that the jobs name, the first that of files of no disk. Empty: there is one, without a name.
    pub disks: Vec<Disk>,
    /// The control groups: the root, then in file order, each after the one around it.
    pub cgroups: Vec<Cgroup>,
    /// `fh_cpus`: how many processors the host has. `None`: as many as it has by itself.
    pub cpus: Option<u32>,
    /// The changes while the jobs run, in the order of time.
    pub changes: Vec<Change>,
    /// Lines for the user about options that were accepted and change nothing, or mean less than they seem
    /// to. Each is one line without a final stop. To be shown once, before the results.
    pub notes: Vec<String>,
    /// The options as they are written, for reports.
    pub written: Written,
}

/// The options of fio and of Fairhead as a job file has them: main name and value, in the order of the file,
/// without those that have no value. An option that is given twice is there once, with its last value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The options of `[global]`.
    pub global: Vec<(&'static str, String)>,
    /// The options of each job's section, by the [line](Job::line) of its heading.
    pub jobs: BTreeMap<u32, Vec<(&'static str, String)>>,
}

/// One client: a clone of a job.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// The job.
    pub job: &'a Job,
    /// The job's index in [`JobFile::jobs`].
    pub job_index: usize,
    /// Which clone of it: 0 to `numjobs - 1`.
    pub clone: u32,
}

impl JobFile {
    /// All clients, job by job in file order, clone by clone. fio's thread numbers are the positions in this
    /// walk, from 1.
    pub fn clients(&self) -> impl Iterator<Item = Client<'_>> {
        self.jobs
            .iter()
            .enumerate()
            .flat_map(|(job_index, job)| (0..job.numjobs).map(move |clone| Client { job, job_index, clone }))
    }

    /// The job's group: an index in [`JobFile::cgroups`].
    #[must_use]
    pub fn cgroup_of(&self, job: &Job) -> usize {
        let path = job.cgroup.as_deref().unwrap_or(Cgroup::ROOT);
        self.cgroups.iter().position(|g| g.path == path).unwrap_or(0)
    }

    /// How many clients there are.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.jobs.iter().map(|j| j.numjobs as usize).sum()
    }

    /// Reads the traces that jobs name, by means of `read`, which answers a file's bytes or what is wrong
    /// with it. Each such job has as many clients as its trace has processes then.
    ///
    /// # Errors
    /// If a trace cannot be read or is damaged, or there are more than [`CLIENTS_MAX`] clients.
    pub fn read_traces(
        &mut self,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), JobError> {
        let file_name = self.file_name.clone();
        for job in &mut self.jobs {
            let Some(file) = job.startup_trace.as_mut().filter(|f| f.trace.is_none()) else { continue };
            let line = file.line;
            let bytes =
                read(&file.path).map_err(|message| JobError { file: file_name.clone(), line, message })?;
            let trace = StartUpTrace::parse(&bytes, &file.path)?;
            job.numjobs = u32::try_from(trace.processes.len()).unwrap_or(u32::MAX);
            file.trace = Some(Arc::new(trace));
        }
        if self.client_count() > CLIENTS_MAX as usize {
            let message = format!(
                "with the processes of '{}' there are {} clients; at most {CLIENTS_MAX}",
                clean(
                    &self
                        .jobs
                        .iter()
                        .filter_map(|j| j.startup_trace.as_ref())
                        .map(|t| t.path.as_str())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                self.client_count()
            );
            return Err(JobError { file: file_name, line: 0, message });
        }
        Ok(())
    }

    /// A job file of one replay: of all clients of a trace. `name` is for reports.
    #[must_use]
    pub fn of_trace(name: &str, source: Source, options: Options) -> Self {
        let replay = Some(TraceJob { source, line: 0, options, part: None });
        let job = Job { name: name.to_owned(), replay, ..Job::of_trace() };
        Self {
            file_name: name.to_owned(),
            jobs: vec![job],
            disks: Vec::new(),
            cgroups: vec![Cgroup::root()],
            cpus: None,
            changes: Vec::new(),
            notes: Vec::new(),
            written: Written::default(),
        }
    }

    /// Reads the traces of jobs with `read_iolog` to their ends. In the place of each such job there are then
    /// as many as the trace has clients, each called `JOB:TASK`, or `TASK` if the job has the trace's own
    /// name. `progress` hears now and then how many bytes of how many have been read.
    ///
    /// # Errors
    /// If a trace cannot be read or replayed so, or there are more than [`CLIENTS_MAX`] clients.
    pub fn read_recordings(&mut self, progress: &dyn Fn(u64, u64)) -> Result<(), JobError> {
        let mut jobs = Vec::new();
        for job in std::mem::take(&mut self.jobs) {
            let Some(replay) = job.replay.as_ref().filter(|r| r.part.is_none()) else {
                jobs.push(job);
                continue;
            };
            let fail = |message| JobError { file: self.file_name.clone(), line: replay.line, message };
            let (source, options) = (replay.source.clone(), replay.options.clone());
            let recording = Arc::new(Recording::of(source, options, progress).map_err(fail)?);
            let clients = recording.tasks.len() as u64;
            if clients * u64::from(job.iodepth) > LANES_MAX {
                return Err(fail(format!(
                    "{clients} clients with {} requests in flight each are more than {LANES_MAX}; use a smaller depth or fewer clients",
                    job.iodepth
                )));
            }
            self.notes.extend(recording.notes());
            let parts: Vec<Job> =
                (0..recording.tasks.len()).map(|task| job.of_task(&recording, task)).collect();
            let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            self.changes = std::mem::take(&mut self.changes)
                .into_iter()
                .flat_map(|change| change.for_each_part(&job.name, &names))
                .collect();
            jobs.extend(parts);
        }
        self.jobs = jobs;
        if self.client_count() > CLIENTS_MAX as usize {
            let message = format!(
                "with the tasks of its traces there are {} clients; at most {CLIENTS_MAX}",
                self.client_count()
            );
            return Err(JobError { file: self.file_name.clone(), line: 0, message });
        }
        Ok(())
    }

    /// How many requests of its traces all runs together have read so far, and how many each run reads.
    /// `None`: there is no trace.
    #[must_use]
    pub fn replay_progress(&self) -> Option<(u64, u64)> {
        let mut sum = None;
        for part in self.jobs.iter().filter_map(|j| j.replay.as_ref()?.part.as_ref()).filter(|p| p.task == 0)
        {
            let (read, all) = sum.unwrap_or((0, 0));
            sum = Some((read + part.recording.requests_read(), all + part.recording.requests));
        }
        sum
    }

    /// How many waves there are: one more than the stone walls that have something before them.
    #[must_use]
    pub fn wave_count(&self) -> u32 {
        self.jobs.last().map_or(0, |j| j.wave + 1)
    }

    /// The disk that a file of a job's clone lies on: the `file`-th of its [`file_names`](Job::file_names).
    #[must_use]
    pub fn disk_of(&self, job: &Job, clone: u32, file: usize) -> DiskId {
        if self.disks.len() < 2 {
            return DiskId(0);
        }
        let named = job.filenames.get(file).and_then(|name| drive(job.engine, name));
        // Files that clones share are spread by their place in the list, others over all clones.
        let turn = if job.filenames.is_empty() { clone as usize * job.nrfiles as usize + file } else { file };
        let label = named.or_else(|| match job.disks.len() {
            0 => None,
            n => Some(job.disks[turn % n].as_str()),
        });
        let index = label.and_then(|label| self.disks.iter().position(|d| d.label == label)).unwrap_or(0);
        DiskId(u8::try_from(index).unwrap_or(0))
    }

    /// The models of all disks, where that of a disk is `of_run` unless the jobs say it.
    #[must_use]
    pub fn models<'m>(&'m self, of_run: &'m DeviceParams) -> Vec<&'m DeviceParams> {
        let said = |d: &'m Disk| d.model.as_ref().and_then(|m| m.params.as_deref()).unwrap_or(of_run);
        if self.disks.is_empty() { vec![of_run] } else { self.disks.iter().map(said).collect() }
    }

    /// The names of the models of all disks, where that of a disk is `of_run` unless the jobs say it.
    #[must_use]
    pub fn model_names<'m>(&'m self, of_run: &'m str) -> Vec<&'m str> {
        let said = |d: &'m Disk| d.model.as_ref().map_or(of_run, |m| m.name.as_str());
        if self.disks.is_empty() { vec![of_run] } else { self.disks.iter().map(said).collect() }
    }

    /// Reads the models of disks that are no presets, by means of `read`, which answers a description or what
    /// is wrong with it.
    ///
    /// # Errors
    /// What is wrong with a model, and the line that names it.
    pub fn read_disks(
        &mut self,
        mut read: impl FnMut(&str) -> Result<DeviceParams, String>,
    ) -> Result<(), JobError> {
        let models = self.disks.iter_mut().filter_map(|d| d.model.as_mut()).filter(|m| m.params.is_none());
        for model in models {
            let fail = |message| JobError { file: self.file_name.clone(), line: model.line, message };
            model.params = Some(Box::new(read(&model.name).map_err(fail)?));
        }
        Ok(())
    }
}

/// One job section.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// `name`, or else the section's. Several jobs may have the same one.
    pub name: String,
    /// `description`, for reports.
    pub description: Option<String>,
    /// The line of the section's heading, from 1.
    pub line: u32,
    /// How many stone walls precede this job: the clients of wave `n + 1` start when all of wave `n` have
    /// ended.
    pub wave: u32,
    /// The reporting group: a number that `new_group` and `stonewall` raise.
    pub group: u32,
    /// `group_reporting`: report the jobs of [`Job::group`] as one.
    pub group_reporting: bool,
    /// `numjobs`: how many clones run. At least 1.
    pub numjobs: u32,

    /// `fh_workload`: a built-in program instead of the pattern of `rw`.
    pub program: Option<Program>,
    /// `fh_startup_trace`: the recorded start-up of [`Program::Replay`].
    pub startup_trace: Option<TraceFile>,
    /// `read_iolog`: the trace that [`Program::Trace`] replays, and whose part of it.
    pub replay: Option<TraceJob>,
    /// `fh_iterations`: how often the application of [`Program::StartUp`] is started, from a cold cache each
    /// time. Default 1.
    pub iterations: u32,
    /// `fh_pause`: how long between two start-ups. Default 4 s.
    pub iteration_pause: Duration,
    /// `fh_timeout`: when a start-up is given up. Default 60 s.
    pub timeout: Duration,
    /// `rw`: what is done, and in what order. Default sequential reads.
    pub rw: Pattern,
    /// `rw=trimwrite`: what is trimmed is written then. Default false.
    pub writes_trimmed: bool,
    /// `bs`, `bsrange`, `bssplit`: how large a call is, by direction. Default 4 KiB.
    pub bs: PerOp<BlockSize>,
    /// `rwmixread`, or 100 - `rwmixwrite`: percent of reads when [`Direction::Mixed`]. Default 50.
    pub rwmix_read_pct: u8,
    /// `rw=read:8k`, `rw=write:-4k`: by how many bytes a sequential position moves on, or back, between two
    /// calls. Default 0.
    pub hop: i64,
    /// `rw=randread:8`: how many calls a random place is for. Default 1.
    pub run_calls: u32,
    /// `rw_sequencer`: where the other calls of [`Job::run_calls`] go.
    pub sequencer: Sequencer,
    /// `blockalign`: what random places are multiples of, in bytes. `None`: the smallest block.
    pub align: PerOp<Option<u32>>,
    /// `percentage_random`: percent of calls that jump, by direction. 0 for sequential patterns, 100 for
    /// random ones, unless given.
    pub random_pct: PerOp<u8>,
    /// `random_distribution`: where jumps land.
    pub distribution: Distribution,
    /// The most popular place of [`Job::distribution`], as a part of the range; `None`: any.
    pub random_center: Option<f64>,
    /// `bs_is_seq_rand`: the block sizes of reads are those of sequential calls, those of writes of random
    /// ones. Default false.
    pub bs_by_order: bool,
    /// `norandommap`: random offsets may repeat before the file is covered. Without it fio visits every block
    /// once per pass.
    pub norandommap: bool,

    /// `filename` (a colon-separated list): the files or the disk, shared by all clones and by every job that
    /// names them. Empty: each clone has its own, see [`Job::file_names`].
    pub filenames: Vec<String>,
    /// `fh_disk`: the names of the disks that its files lie on, by turns. Empty: see [`JobFile::disk_of`].
    pub disks: Vec<String>,
    /// `filename_format`: what files are called instead of `NAME.CLONE.N`.
    pub filename_format: Option<String>,
    /// `nrfiles`: how many files each client has, when [`Job::filenames`] is empty. Default 1.
    pub nrfiles: u32,
    /// `file_service_type`: which of several files the next call goes to.
    pub file_service: FileService,
    /// How many calls in a row go to a file, unless they take it to its end. At least 1, the default.
    pub file_run: u32,
    /// `openfiles`: how many files are in use at a time; 0: all.
    pub open_files: u32,
    /// `size`: the data set, all files together. `None`: the rest of the target, which is the disk
    /// or files of jobs above (or a program decides).
    pub size: Option<Size>,
    /// `filesize`: each file's size, where it differs from `size / nrfiles`.
    pub filesize: Option<Size>,
    /// The most of a `filesize` that is a range, of which [`Job::filesize`] is the least: each file's size is
    /// drawn, a multiple of the smallest block. `None`: all files have one size.
    pub filesize_max: Option<u64>,
    /// `io_size`: stop after that much was read and written; more than `size` wraps around. `None`:
    /// [`Job::size`], once.
    pub io_size: Option<Size>,
    /// `number_ios`: stop after that many calls.
    pub number_ios: Option<u64>,
    /// `offset`: where in the target the data set starts. Default 0.
    pub offset: Size,
    /// `offset_align`: an [`Job::offset`] that is a share is rounded up to a multiple of this, in bytes.
    /// 0, the default: of the smallest block.
    pub offset_align: u64,
    /// `offset_increment`: the clone `k` starts at `offset + k · offset_increment`. Default 0.
    pub offset_increment: Size,
    /// `zonemode=strided` with its `zonesize`, `zonerange` and `zoneskip`. `None`: no zones.
    pub zones: Option<Zones>,
    /// `loops`: how often the whole job is done. Default 1.
    pub loops: u32,
    /// `file_append`: writes start at the end of the file, so that every block is a new one.
    pub append: bool,
    /// `overwrite`: a job that writes does so into files laid out before it starts. False: its blocks are
    /// allocated as it writes.
    pub overwrite: bool,
    /// `fallocate` other than `none`: space is allocated before the first write.
    pub fallocate: bool,
    /// `invalidate`: drop the files' page cache first. Default true.
    pub invalidate: bool,
    /// `pre_read`: read the files into the page cache first. Default false.
    pub pre_read: bool,

    /// `direct` (or not `buffered`): bypass the page cache. Default false.
    pub direct: bool,
    /// `sync`: what a write waits for.
    pub sync: SyncMode,
    /// `ioengine`, as far as a simulation can tell engines apart. Default [`Engine::Sync`] (`psync`).
    pub engine: Engine,
    /// `ioengine` as written, for reports.
    pub ioengine: String,
    /// `iodepth`: calls in flight. Always 1 with [`Engine::Sync`].
    pub iodepth: u32,
    /// `io_submit_mode=offload`: each of `iodepth` calls in flight is made by a thread of its own, whatever
    /// the engine.
    pub offload: bool,
    /// `fsync`: an fsync after that many writes; 0 never.
    pub fsync: u32,
    /// `fdatasync`: an fdatasync after that many writes; 0 never.
    pub fdatasync: u32,
    /// `end_fsync`: an fsync when the writing is done.
    pub end_fsync: bool,
    /// `fsync_on_close`: an fsync as each file is closed.
    pub fsync_on_close: bool,

    /// `runtime`: end at that age, the time before `startdelay` not counted. `None`: when the work is done.
    pub runtime: Option<Duration>,
    /// `time_based`: start again when the work is done, until [`Job::runtime`], which is then given.
    pub time_based: bool,
    /// `startdelay`: start that long after the run at the earliest; the wave has to have begun, too.
    pub startdelay: Duration,
    /// `fh_startdelay`: start that long after the wave.
    pub wave_delay: Duration,
    /// `ramp_time`: run that long before measuring. Not part of [`Job::runtime`].
    pub ramp_time: Duration,
    /// `thinktime`: pause after each [`Job::thinktime_blocks`] calls.
    pub thinktime: Duration,
    /// `thinktime_spin`: that part of the pause is spent on the CPU. At most `thinktime`.
    pub thinktime_spin: Duration,
    /// `thinktime_blocks`: see [`Job::thinktime`]. At least 1, the default.
    pub thinktime_blocks: u32,
    /// `rate`: a cap in bytes a second per client, by direction.
    pub rate: PerOp<Option<u64>>,
    /// `rate_iops`: a cap in calls a second per client, by direction.
    pub rate_iops: PerOp<Option<u32>>,
    /// `rate_process=poisson`: calls come at random times, as many as the rate says in the mean.
    pub poisson: bool,
    /// `rate_min`, `rate_iops_min`, `rate_cycle`: the job ends if it is slower.
    pub rate_min: RateMin,
    /// `max_latency`: the job ends after a call that takes longer, by direction.
    pub max_latency: PerOp<Option<Duration>>,
    /// `latency_target` and what belongs to it.
    pub latency_target: LatencyTarget,
    /// `steadystate` and what belongs to it.
    pub steady: SteadyState,
    /// `flow` and what belongs to it.
    pub flow: Flow,
    /// `wait_for`: the job above that has to have ended, with all of its clones, before this one starts.
    pub wait_for: Option<String>,
    /// `exit_what`: which jobs [`Job::exitall`] ends when this one is the first to end.
    pub exit_what: ExitWhat,
    /// `exitall`: in any job, the first client to end ends all others of its [reporting group](Job::group).
    pub exitall: bool,

    /// `prio` and `prioclass`: the clients' I/O priority. `None` when neither is given; a class without a
    /// level is at level 0, as with fio.
    pub prio: Option<IoPrio>,
    /// `cmdprio_percentage` and so on: calls with another priority, by direction. Of calls past the page
    /// cache only.
    pub call_prio: PerOp<Vec<CallPrio>>,
    /// `cgroup`: the path of the group that the clients join, one of [`JobFile::cgroups`]. `None`: the root.
    pub cgroup: Option<String>,

    /// `randseed`: the seed of the job's random stream. `None`: the run's seed decides.
    pub randseed: Option<u64>,
    /// `randrepeat`: the same stream in every run. False asks for one that the run's seed changes even where
    /// `randseed` is given. Default true.
    pub randrepeat: bool,

    /// `verify` and what belongs to it. `None`: nothing is read again.
    pub verify: Option<Verify>,

    /// Which percentiles a report shows.
    pub percentiles: Percentiles,
    /// `unified_rw_reporting`.
    pub unified: Unified,
    /// `write_bw_log`, `write_lat_log`, `write_iops_log`: what `run` writes to files of each call.
    pub logs: Logs,

    /// `iodepth_batch`: the most calls that are submitted at a time. Default 1.
    pub iodepth_batch: u32,
    /// `iodepth_batch_complete_max`: the most completions that are handled before new calls replace them.
    /// Default 1.
    pub iodepth_batch_complete: u32,
    /// `iodepth_batch_complete_min`: the number of completions, or all that are in flight if these are
    /// fewer, that are waited for before any is handled. Default 1.
    pub iodepth_batch_complete_min: u32,
    /// `hipri`: the program polls for completions and does not sleep. Default false.
    pub hipri: bool,
    /// `cpus_allowed`: the processors that the clients may use. Empty: all.
    pub cpus_allowed: Vec<u32>,
    /// `cpus_allowed_policy=split`: each clone has one of [`Job::cpus_allowed`] to itself, in turn. Default
    /// false.
    pub cpus_split: bool,
    /// `fh_think`: CPU time before each call, in the client. `None`: the host's own figure.
    pub think: Option<Duration>,
    /// `fh_cpu`: CPU time for each 4 KiB moved (copying, allocating). Default none.
    pub cpu_per_4k: Duration,
    /// `fadvise_hint`: whether the job announces to the kernel that its reads are sequential or random.
    /// Default true.
    pub fadvise: bool,
    /// `fh_query`: how many calls in a row are measured as one, from the beginning of the first to the end of
    /// the last. Default 1.
    pub query_calls: u32,
    /// `fh_layout`: how the job's files lie on the disk.
    pub layout: Layout,
    /// `fh_start`: where on the disk the job's first file is put. `None`: after the files before it.
    pub placement: Option<Placement>,
    /// `fh_metadata`: what of the files' block map is in memory when the run starts. Default all of it.
    pub metadata: Metadata,
    /// `fh_cgroup_writeback`: whether pages that the job dirties belong to its group when they are written
    /// later. `None`: as the host's era did.
    pub cgroup_writeback: Option<bool>,
    /// `fh_direct_write_sync`: whether the scheduler sees direct writes as sync. `None`: as the scheduler's
    /// era did.
    pub direct_write_sync: Option<bool>,
    /// `fh_kind`: what of the job its user feels. `None`: its other options say it
    /// ([`satisfaction::kind`](crate::satisfaction::kind)).
    pub kind: Option<Kind>,
}

impl Job {
    /// The pause between two start-ups unless `fh_pause` says otherwise.
    //= docs/reference/benchmarks.md#3-start-up-latency: sleep 3 s, then 1 s
    pub const ITERATION_PAUSE: Duration = Duration::from_secs(4);
    /// The time after which a start-up is given up unless `fh_timeout` says otherwise.
    //= docs/reference/benchmarks.md#3-start-up-latency: time-out, main run
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// What all replays of traces have in common: direct calls to the disk itself, many at a time.
    #[must_use]
    pub(crate) fn of_trace() -> Self {
        Self {
            program: Some(Program::Trace),
            direct: true,
            engine: Engine::Async,
            ioengine: "libaio".to_owned(),
            iodepth: Options::DEPTH,
            filenames: vec![WHOLE_DISK.to_owned()],
            ..Self::default()
        }
    }

    /// The job for one of a trace's tasks. One that is alone keeps the job's name.
    fn of_task(&self, recording: &Arc<Recording>, task: usize) -> Self {
        let mut job = self.clone();
        let who = &recording.tasks[task].name;
        if recording.tasks.len() > 1 {
            job.name = if self.line == 0 { who.clone() } else { format!("{}:{who}", self.name) };
        }
        if let Some(replay) = &mut job.replay {
            replay.part = Some(Part { recording: Arc::clone(recording), task });
        }
        job
    }

    /// The files that the clone uses: those of `filename`, or else `NAME.CLONE.N`, as fio calls them. Two
    /// clients with the same file name use the same file.
    #[must_use]
    pub fn file_names(&self, clone: u32) -> Vec<String> {
        if !self.filenames.is_empty() {
            return self.filenames.clone();
        }
        let Some(format) = &self.filename_format else {
            return (0..self.nrfiles).map(|i| format!("{}.{clone}.{i}", self.name)).collect();
        };
        let of_clone = format.replace("$jobname", &self.name).replace("$jobnum", &clone.to_string());
        // A machine that fio runs on for another one has a number; there is none.
        let of_clone = of_clone.replace("$clientuid", "");
        let name = |i: u32| of_clone.replace("$filenum", &i.to_string());
        (0..self.nrfiles).map(name).collect()
    }

    /// Whether one of its clones uses that file.
    pub(super) fn has_file(&self, name: &str) -> bool {
        if !self.filenames.is_empty() {
            return self.filenames.iter().any(|f| f == name);
        }
        if self.filename_format.is_some() {
            // Of very many names it is taken to be one.
            let names = u64::from(self.numjobs) * u64::from(self.nrfiles);
            return names > super::NAMES_LOOKED_AT
                || (0..self.numjobs).any(|clone| self.file_names(clone).iter().any(|f| f == name));
        }
        let numbers = name.strip_prefix(&self.name).and_then(|n| n.strip_prefix('.')?.split_once('.'));
        let below = |text: &str, end: u32| text.parse::<u32>().is_ok_and(|n| n < end);
        numbers.is_some_and(|(clone, file)| below(clone, self.numjobs) && below(file, self.nrfiles))
    }

    /// How many files each clone uses.
    #[must_use]
    pub fn file_count(&self) -> u64 {
        if self.filenames.is_empty() { u64::from(self.nrfiles) } else { self.filenames.len() as u64 }
    }

    /// Whether the target is the disk itself (`filename=/dev/…`) and not files on it.
    #[must_use]
    pub fn is_raw_disk(&self) -> bool {
        self.filenames.iter().any(|f| f.starts_with("/dev/"))
    }

    /// The largest call that the job can make, in bytes.
    #[must_use]
    pub fn largest_block(&self) -> u32 {
        let (read, write) = (self.bs.read.max_bytes(), self.bs.write.max_bytes());
        match self.rw.direction {
            Direction::Read | Direction::Write if self.bs_by_order => read.max(write),
            Direction::Read => read,
            Direction::Write => write,
            Direction::Mixed => read.max(write),
            Direction::Trim => self.bs.trim.max_bytes(),
        }
    }

    /// The smallest call that the job can make, in bytes.
    #[must_use]
    pub fn smallest_block(&self) -> u32 {
        let (read, write) = (self.bs.read.min_bytes(), self.bs.write.min_bytes());
        match self.rw.direction {
            Direction::Read => read,
            Direction::Write => write,
            Direction::Mixed => read.min(write),
            Direction::Trim => self.bs.trim.min_bytes(),
        }
    }

    /// Whether the job writes (a program does not).
    #[must_use]
    pub fn writes(&self) -> bool {
        let writes = self.writes_trimmed || matches!(self.rw.direction, Direction::Write | Direction::Mixed);
        self.program.is_none() && writes
    }
}

impl Default for Job {
    /// fio's defaults: one client that reads its own file once, 4 KiB at a time, through the page cache.
    /// Without a name or a size.
    #[allow(clippy::too_many_lines, reason = "a list of fields, one in a line")]
    fn default() -> Self {
        Self {
            name: String::new(),
            description: None,
            line: 0,
            wave: 0,
            group: 0,
            group_reporting: false,
            numjobs: 1,
            program: None,
            startup_trace: None,
            replay: None,
            iterations: 1,
            iteration_pause: Self::ITERATION_PAUSE,
            timeout: Self::TIMEOUT,
            rw: Pattern::default(),
            writes_trimmed: false,
            bs: PerOp::default(),
            rwmix_read_pct: 50,
            hop: 0,
            run_calls: 1,
            sequencer: Sequencer::default(),
            align: PerOp::default(),
            random_pct: PerOp::default(),
            distribution: Distribution::default(),
            random_center: None,
            bs_by_order: false,
            norandommap: false,
            filenames: Vec::new(),
            disks: Vec::new(),
            nrfiles: 1,
            filename_format: None,
            file_service: FileService::default(),
            file_run: 1,
            open_files: 0,
            size: None,
            filesize: None,
            filesize_max: None,
            io_size: None,
            number_ios: None,
            offset: Size::default(),
            offset_align: 0,
            offset_increment: Size::default(),
            zones: None,
            loops: 1,
            append: false,
            overwrite: false,
            fallocate: true,
            invalidate: true,
            pre_read: false,
            direct: false,
            sync: SyncMode::default(),
            engine: Engine::default(),
            ioengine: "psync".to_owned(),
            iodepth: 1,
            offload: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            runtime: None,
            time_based: false,
            startdelay: Duration::ZERO,
            wave_delay: Duration::ZERO,
            ramp_time: Duration::ZERO,
            thinktime: Duration::ZERO,
            thinktime_spin: Duration::ZERO,
            thinktime_blocks: 1,
            verify: None,
            percentiles: Percentiles::default(),
            unified: Unified::default(),
            logs: Logs::default(),
            rate: PerOp::default(),
            rate_iops: PerOp::default(),
            poisson: false,
            rate_min: RateMin::default(),
            max_latency: PerOp::default(),
            latency_target: LatencyTarget::default(),
            steady: SteadyState::default(),
            flow: Flow::default(),
            wait_for: None,
            exit_what: ExitWhat::default(),
            exitall: false,
            prio: None,
            call_prio: PerOp::default(),
            cgroup: None,
            randseed: None,
            randrepeat: true,
            think: None,
            iodepth_batch: 1,
            iodepth_batch_complete: 1,
            iodepth_batch_complete_min: 1,
            hipri: false,
            cpus_allowed: Vec::new(),
            cpus_split: false,
            cpu_per_4k: Duration::ZERO,
            fadvise: true,
            query_calls: 1,
            layout: Layout::default(),
            placement: None,
            metadata: Metadata::default(),
            direct_write_sync: None,
            kind: None,
            cgroup_writeback: None,
        }
    }
}
