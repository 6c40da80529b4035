//! Turns arguments into a plan: reads files, resolves names, checks values.

use std::path::Path;

use fairhead_core::Duration;
use fairhead_core::sched::any::{PRESETS, Preset, preset};
use fairhead_core::sched::catalogue::Named;
use fairhead_device::{DeviceParams, preset_names};
use fairhead_machine::{Machine, Tree, similar_preset};
use fairhead_sim::job::{self, JobFile, Surroundings, nearest, time_value};
use fairhead_sim::replay::Source;
use fairhead_sim::why::{self, When, Window};
use fairhead_sim::{Host, groups_kept};

use crate::args::{Format, ReplayArgs, RunArgs};
use crate::error::CliError;
use crate::files;
use crate::out;
use crate::out::Progress;
use crate::replay;
use crate::schedulers::choose_scheduler;
use crate::tunables::{self, Scheduler};
use crate::workloads::{self, WORKLOADS};

/// A run, with nothing left to look up.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What is done.
    pub(crate) jobs: JobFile,
    /// To which disk, and its name; that of all disks if there are several. The model is for those of which
    /// the jobs do not say it.
    pub(crate) disk: (String, DeviceParams),
    /// What `--disk` names.
    pub(crate) of_run: String,
    /// In which machine, and its name.
    pub(crate) host: (String, Host),
    /// Under which schedulers, in this order.
    pub(crate) schedulers: Vec<Scheduler>,
    /// What all chance follows from.
    pub(crate) seed: u64,
    /// The length of the intervals of the series, if one is wanted.
    pub(crate) interval: Option<Duration>,
    /// How often the disk time of control groups is reported; `None`: not at all.
    pub(crate) watch: Option<Duration>,
    /// The clients whose time is to be explained, if there are any.
    pub(crate) why: Option<Why>,
}

impl Plan {
    /// What the arguments mean.
    pub(crate) fn new(args: &RunArgs) -> Result<Self, CliError> {
        let interval = args.interval.as_deref().map(|t| positive_time("--interval", t)).transpose()?;
        let load = |host: &Host| {
            read_jobs(args.job.as_deref(), Some(host), &args.replay, args.runtime.time.as_deref())
        };
        let ((disk, host), jobs) = choose_load(&args.disk.name, args.host.as_deref(), load)?;
        let mut schedulers = choose_schedulers(&args.sched, &jobs)?;
        args.set.iter().try_for_each(|text| tunables::set(&mut schedulers, text))?;
        let why = args.why.as_deref().map(|text| choose_clients(&jobs, text)).transpose()?;
        if why.is_some() && !matches!(args.output.format, Format::Human | Format::Json) {
            let wrong = "--why needs --output-format human or json";
            return Err(CliError::Misuse(wrong.to_owned()));
        }
        let watch = choose_watch(args, &jobs)?;
        let of_run = choose_disk(&args.disk.name)?.0;
        Ok(Self { jobs, disk, of_run, host, schedulers, seed: args.seed.number, interval, watch, why })
    }
}

/// Looking more often than that tells nothing that a slice of 100 ms would.
const WATCH_MIN: Duration = Duration::from_ms(10);

/// How often to look at control groups.
fn choose_watch(args: &RunArgs, jobs: &JobFile) -> Result<Option<Duration>, CliError> {
    let Some(text) = args.watch.as_deref() else { return Ok(None) };
    let period = positive_time("--watch", text)?;
    let misuse = |message: &str| Err(CliError::Misuse(format!("--watch={text}: {message}")));
    if period < WATCH_MIN {
        return misuse("too short; write at least 10ms");
    }
    if jobs.cgroups.len() < 2 {
        return misuse("there are no control groups to watch; add cgroup=NAME to jobs");
    }
    match args.output.format {
        Format::JsonPlus => misuse("fio's json+ has no place for it; use --output-format human, json or csv"),
        Format::Csv if args.interval.is_some() => misuse("CSV output has one series only; remove --interval"),
        _ => Ok(Some(period)),
    }
}

/// The clients whose time is to be explained, and the part of the run that is to be explained apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    /// What they were called.
    pub(crate) name: String,
    /// Which clients they are.
    pub(crate) clients: Vec<usize>,
    /// Which part.
    pub(crate) when: When,
}

/// The clients of `NAME`, or of `NAME@FROM-TO` in a part of the run.
fn choose_clients(jobs: &JobFile, text: &str) -> Result<Why, CliError> {
    let clients = |name: &str| why::select(jobs, name).map_err(CliError::Misuse);
    // A job may be called so.
    let Some((name, part)) = text.rsplit_once('@').filter(|_| why::select(jobs, text).is_err()) else {
        return Ok(Why { name: text.to_owned(), clients: clients(text)?, when: When::Worst });
    };
    let misuse = |message: &str| CliError::Misuse(format!("--why={text}: {message}, such as {name}@3s-4s"));
    let Some((from, to)) = part.split_once('-') else {
        return Err(misuse("write a part of the run as FROM-TO"));
    };
    let time = |t: &str| time_value("--why", t).map_err(|e| misuse(&format!("{e}; write two times")));
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err(misuse("the part ends before it begins; write the earlier time first"));
    }
    let when = When::Within(Window { from, to });
    Ok(Why { name: name.to_owned(), clients: clients(name)?, when })
}

pub(crate) fn positive_time(flag: &str, text: &str) -> Result<Duration, CliError> {
    match time_value(flag, text).map_err(CliError::Misuse)? {
        Duration::ZERO => {
            Err(CliError::Misuse(format!("'{flag}={text}' is zero; write a time such as {flag}=10s")))
        }
        time => Ok(time),
    }
}

/// Returns the schedulers of these names. If there are none: without groups in the jobs, all presets except
/// those under the controller; with groups, the schedulers that can share by group, with and without that.
pub(crate) fn choose_schedulers(names: &[String], jobs: &JobFile) -> Result<Vec<Scheduler>, CliError> {
    let scheduler = |p: &Preset| Scheduler::from(Named::from(p));
    let all = || PRESETS.iter();
    if names.is_empty() && jobs.cgroups.len() > 1 {
        // Of each scheduler the preset that has its name, not those of other eras.
        let has_groups = |p: &Preset| {
            let knows = !groups_kept(&(p.config)()).is_empty();
            (p.config)().scheduler() == p.name && (knows || preset(&format!("{}+groups", p.name)).is_some())
        };
        return Ok(all().filter(|p| has_groups(p)).map(scheduler).collect());
    }
    if names.is_empty() || names == ["all"] {
        return Ok(all().filter(|p| !p.has_controller()).map(scheduler).collect());
    }
    let mut chosen: Vec<Scheduler> = Vec::new();
    for name in names.iter().map(|n| n.trim()) {
        let named = choose_scheduler(name)?;
        if chosen.iter().any(|s| s.name == named.name) {
            return Err(CliError::Misuse(format!("scheduler '{name}' is named twice")));
        }
        chosen.push(named.into());
    }
    Ok(chosen)
}

/// A disk by its name, and a host by its name.
type Setting = ((String, DeviceParams), (String, Host));

/// A disk, and the machine around it: that of the disk's time if none is named.
pub(crate) fn choose_setting(disk: &str, host: Option<&str>) -> Result<Setting, CliError> {
    let disk = choose_disk(disk)?;
    let host = Host::parse(host.unwrap_or_default(), &disk.0).map_err(CliError::Misuse)?;
    Ok((disk, host))
}

/// A disk, the machine around it, and the jobs, which may name disks of their own.
pub(crate) fn choose_load(
    disk: &str,
    host: Option<&str>,
    read: impl Fn(&Host) -> Result<JobFile, CliError>,
) -> Result<(Setting, JobFile), CliError> {
    let first = choose_setting(disk, host)?;
    let jobs = read(&first.1.1)?;
    let setting = with_disks_of(&jobs, first.clone(), host)?;
    // A job file may ask for its host's figures.
    let is_other = setting.1.0 != first.1.0;
    let jobs = if is_other { read(&setting.1.1)? } else { jobs };
    Ok((setting, jobs))
}

/// The setting for jobs that may name disks of their own: called after all of them, on a host of the time of
/// the newest.
pub(crate) fn with_disks_of(
    jobs: &JobFile,
    (disk, machine): Setting,
    host: Option<&str>,
) -> Result<Setting, CliError> {
    let names = jobs.model_names(&disk.0);
    if names == [disk.0.as_str()] {
        return Ok((disk, machine));
    }
    let newest = names.iter().copied().max_by_key(|name| Host::name_for_disk(name)).unwrap_or(&disk.0);
    let machine = Host::parse(host.unwrap_or_default(), newest).map_err(CliError::Misuse)?;
    Ok(((in_words(jobs, &names), disk.1), machine))
}

/// `4 nvme` for disks of one model; of several models each with the name that the job file gives the disk:
/// `nvme (log), nas2020 (data)`.
fn in_words(jobs: &JobFile, names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [first, rest @ ..] if rest.iter().all(|name| name == first) => format!("{} {first}", names.len()),
        _ => {
            let each = jobs.disks.iter().zip(names).map(|(d, name)| format!("{name} ({})", d.label));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A preset, or a description in a file.
pub(crate) fn choose_disk(name: &str) -> Result<(String, DeviceParams), CliError> {
    if preset_names().contains(&name) {
        let params = DeviceParams::preset(name).map_err(|e| CliError::Failed(e.to_string()))?;
        return Ok((name.to_owned(), params));
    }
    if let Some(device) = name.strip_prefix("/dev/") {
        return like_device(device);
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(CliError::Misuse(match nearest(name, preset_names().iter().copied()) {
            Some(word) => format!("unknown disk '{name}'; did you mean '{word}'?"),
            None => format!(
                "unknown disk '{name}': no preset of that name (fairhead list disks), and no such file"
            ),
        }));
    }
    let text = read_text(path)?;
    let params = if path.extension().is_some_and(|e| e == "diskspecs" || e == "parv") {
        DeviceParams::from_disksim(&text, name, &mut |file| beside(path, file)).map(|(params, notes)| {
            notes.iter().for_each(|n| out::note(n));
            params
        })
    } else {
        DeviceParams::from_toml(&text, name)
    };
    let params = params.map_err(|e| CliError::Misuse(e.to_string()))?;
    Ok((params.name().to_owned(), params))
}

/// The preset most like a disk of this machine.
fn like_device(name: &str) -> Result<(String, DeviceParams), CliError> {
    let machine = Machine::read(&Tree::new("/"));
    let Some(disk) = machine.disk(name) else {
        let names: Vec<String> = machine.disks.iter().map(|d| format!("/dev/{}", d.name)).collect();
        let there = if names.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        return Err(CliError::Misuse(format!("no disk '/dev/{name}' in /sys/block; {there}")));
    };
    let kind = disk.kind.name();
    let Some(preset) = similar_preset(disk) else {
        return Err(CliError::Misuse(format!(
            "/dev/{name} is a {kind}, and what it is made of cannot be seen; measure it (fairhead calibrate /dev/{name} -o disk.toml) or name a preset (fairhead list disks)"
        )));
    };
    out::note(&format!(
        "/dev/{name} is a {kind} ({}): simulated as {preset}; `fairhead calibrate` measures the disk itself",
        disk.model
    ));
    let params = DeviceParams::preset(preset).map_err(|e| CliError::Failed(e.to_string()))?;
    Ok((preset.to_owned(), params))
}

/// A file's text, up to 64 MiB.
pub(crate) fn read_text(path: &Path) -> Result<String, CliError> {
    const MOST: usize = 64 << 20;
    let bytes = read_up_to(path, MOST).map_err(CliError::Misuse)?;
    let misuse = |why: &str| CliError::Misuse(format!("{}: {why}", path.display()));
    if bytes.len() > MOST {
        return Err(misuse("larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| misuse("not a text in UTF-8"))
}

/// The text of a file that another one names, in the same folder and nowhere else.
fn beside(path: &Path, file: &str) -> Result<String, String> {
    if Path::new(file).file_name().is_none_or(|f| f != file) {
        return Err(format!("'{file}' is not the name of a file in the same folder"));
    }
    read_text(&path.with_file_name(file)).map_err(|e| e.to_string())
}

/// A job file, a built-in workload, or a trace; the default workload when none is named. Traces have been
/// read to their ends. `host` is what a job file's keywords are about, if there is one host.
pub(crate) fn read_jobs(
    path: Option<&Path>,
    host: Option<&Host>,
    replay: &ReplayArgs,
    runtime: Option<&str>,
) -> Result<JobFile, CliError> {
    let runtime = runtime.map(|t| positive_time("--runtime", t)).transpose()?;
    let misuse = |e: job::JobError| CliError::Misuse(e.to_string());
    let mut jobs = match path.filter(|p| replay::is_trace(p)) {
        Some(path) => replay::jobs(path, replay),
        None if replay::is_given(replay) => {
            let wrong =
                "the options --replay… need a TRACE; in a job file write read_iolog=FILE and fh_replay=…";
            return Err(CliError::Misuse(wrong.to_owned()));
        }
        None => parse_jobs(path, host)?,
    };
    let sources = jobs.jobs.iter().filter_map(|j| j.replay.as_ref()).map(|r| &r.source);
    sources.for_each(|s| match s {
        Source::File(path) => files::will_read(path),
        Source::Bytes(..) => {}
    });
    jobs.read_disks(|name| choose_disk(name).map(|d| d.1).map_err(|e| e.to_string())).map_err(misuse)?;
    jobs.read_traces(|file| read_up_to(Path::new(file), job::TRACE_BYTES_MAX)).map_err(misuse)?;
    let progress = Progress::timed("reading the trace");
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    // What is wrong with a trace names it.
    let told = |e: job::JobError| if e.line == 0 { CliError::Misuse(e.message) } else { misuse(e) };
    jobs.read_recordings(&|read, size| progress.at(bytes(read), bytes(size))).map_err(told)?;
    if runtime.is_some() {
        jobs.jobs.iter_mut().for_each(|j| j.runtime = runtime);
    }
    Ok(jobs)
}

fn parse_jobs(path: Option<&Path>, host: Option<&Host>) -> Result<JobFile, CliError> {
    let misuse = |e: job::JobError| CliError::Misuse(e.to_string());
    let Some(path) = path else {
        return job::parse(WORKLOADS[0].text, WORKLOADS[0].name).map_err(misuse);
    };
    let name = path.to_string_lossy();
    let bytes = if path.exists() { read(path)? } else { Vec::new() };
    if replay::is_trace_in_a_pipe(path, &bytes) {
        let wrong = "is a trace in a pipe; a trace is read more than once, so write it to a file first";
        return Err(CliError::Misuse(format!("{name}: {wrong}")));
    }
    if !path.exists() {
        if let Some(w) = workloads::find(&name) {
            return job::parse(w.text, w.name).map_err(misuse);
        }
        return Err(CliError::Misuse(match nearest(&name, workloads::all().map(|w| w.name)) {
            Some(word) => format!("no job file '{name}'; did you mean the workload '{word}'?"),
            None => format!("no job file '{name}', and no workload of that name (fairhead list workloads)"),
        }));
    }
    let around = Surroundings { variable: &|name| std::env::var(name).ok(), host };
    job::parse_bytes(&bytes, &name, &around).map_err(misuse)
}

/// The bytes of a file, as many as the largest that any parser takes, and one more for it to refuse.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    read_up_to(path, job::BYTES_MAX).map_err(CliError::Misuse)
}

/// The bytes of a file, `max` and one more at most.
fn read_up_to(path: &Path, max: usize) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    files::will_read(path);
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|f| f.take(max as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| format!("cannot read '{}': {e}", path.display()))?;
    Ok(bytes)
}
