//! Turns arguments into a plan: reads files, resolves names, checks values.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fairhead_core::Duration;
use fairhead_device::{DeviceParams, preset_names};
use fairhead_lab::plan::{Setting, choose_clients, choose_preset, with_host};
use fairhead_lab::workloads::WORKLOADS;
use fairhead_lab::{Plan, Scheduler, tunables};
use fairhead_machine::text::printable;
use fairhead_machine::{Machine, Tree, similar_preset};
use fairhead_sim::Host;
use fairhead_sim::job::{self, JobFile, Surroundings, nearest};
use fairhead_sim::replay::Source;

use crate::args::{Format, ReplayArgs, RunArgs};
use crate::error::CliError;
use crate::files;
use crate::out;
use crate::out::Progress;
use crate::pipe::{self, Piped};
use crate::replay;
use crate::schedulers::choose_scheduler;
use crate::workloads;

/// What the arguments mean.
pub(crate) fn of(args: &RunArgs) -> Result<Plan, CliError> {
    let interval = args.interval.as_deref().map(|t| positive_time("--interval", t)).transpose()?;
    let load = |host: &Host| read_load(args, Some(host), &args.replay, args.runtime.time.as_deref());
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
    Ok(Plan { jobs, disk, of_run, host, schedulers, seed: args.seed.number, interval, watch, why })
}

/// How often to look at control groups.
fn choose_watch(args: &RunArgs, jobs: &JobFile) -> Result<Option<Duration>, CliError> {
    let Some(text) = args.watch.as_deref() else { return Ok(None) };
    let period = fairhead_lab::plan::choose_watch(text, jobs)?;
    let misuse = |message: &str| Err(CliError::Misuse(format!("--watch={text}: {message}")));
    match args.output.format {
        Format::JsonPlus => misuse("fio's json+ has no place for it; use --output-format human, json or csv"),
        Format::Csv if args.interval.is_some() => misuse("CSV output has one series only; remove --interval"),
        _ => Ok(Some(period)),
    }
}

/// A time above zero, as the option `flag` has it.
pub(crate) fn positive_time(flag: &str, text: &str) -> Result<Duration, CliError> {
    Ok(fairhead_lab::plan::positive_time(flag, text)?)
}

/// Returns the schedulers of these names; those of `run` if there are none.
pub(crate) fn choose_schedulers(names: &[String], jobs: &JobFile) -> Result<Vec<Scheduler>, CliError> {
    fairhead_lab::plan::choose_schedulers(names, jobs, choose_scheduler)
}

/// A disk, and the machine around it: that of the disk's time if none is named.
pub(crate) fn choose_setting(disk: &str, host: Option<&str>) -> Result<Setting, CliError> {
    say_host_is_replaced(host);
    Ok(with_host(choose_disk(disk)?, host)?)
}

/// Says once how a host that was written as in former versions is written now.
fn say_host_is_replaced(host: Option<&str>) {
    static SAID: std::sync::Once = std::sync::Once::new();
    if let Some(line) = host.and_then(Host::replaced) {
        SAID.call_once(|| crate::out::note(&line));
    }
}

/// A disk, the machine around it, and the jobs, which may name disks of their own.
pub(crate) fn choose_load(
    disk: &str,
    host: Option<&str>,
    read: impl Fn(&Host) -> Result<JobFile, CliError>,
) -> Result<(Setting, JobFile), CliError> {
    say_host_is_replaced(host);
    fairhead_lab::plan::choose_load(choose_disk(disk)?, host, read)
}

/// A preset, or a description in a file.
pub(crate) fn choose_disk(name: &str) -> Result<(String, DeviceParams), CliError> {
    let path = Path::new(name);
    let is_device = name.starts_with("/dev/");
    if preset_names().contains(&name) || (!is_device && !path.exists()) {
        return Ok(choose_preset(name)?);
    }
    if let Some(device) = name.strip_prefix("/dev/") {
        return like_device(device);
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
        printable(&disk.model)
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
    match std::str::from_utf8(without_mark(&bytes)) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(misuse(job::not_utf8(&bytes))),
    }
}

/// Bytes without the mark that some editors put before a text in UTF-8.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// The text of a file that another one names, in the same folder and nowhere else.
fn beside(path: &Path, file: &str) -> Result<String, String> {
    if Path::new(file).file_name().is_none_or(|f| f != file) {
        return Err(format!("'{file}' is not the name of a file in the same folder"));
    }
    read_text(&path.with_file_name(file)).map_err(|e| e.to_string())
}

/// The load of `run`: jobs of fio's command line, or what [`read_jobs`] reads.
fn read_load(
    args: &RunArgs,
    host: Option<&Host>,
    replay: &ReplayArgs,
    runtime: Option<&str>,
) -> Result<JobFile, CliError> {
    if args.words.is_empty() {
        return read_jobs(args.job.as_deref(), host, replay, runtime);
    }
    if replay::is_given(replay) {
        let wrong = "the options --replay… need a TRACE, and these are jobs of fio's command line";
        return Err(CliError::Misuse(wrong.to_owned()));
    }
    // A file in front of `--` is one of the line's.
    let file = args.job.iter().map(|path| path.to_string_lossy().into_owned());
    let words: Vec<String> = args.words.iter().cloned().chain(file).collect();
    let read_file = |name: &str| read(Path::new(name)).map_err(|e| e.to_string());
    let include = |name: &str| included(args.job.as_deref().unwrap_or(Path::new("")), name);
    let around = Surroundings { variable: &|name| std::env::var(name).ok(), include: Some(&include), host };
    let jobs = job::parse_command_line(&words, &read_file, &around);
    with_their_files(jobs.map_err(|e| CliError::Misuse(e.to_string()))?, runtime)
}

/// A job file, a built-in workload, or a trace; the default workload when none is named. Traces have been
/// read to their ends. `host` is what a job file's keywords are about, if there is one host.
pub(crate) fn read_jobs(
    path: Option<&Path>,
    host: Option<&Host>,
    replay: &ReplayArgs,
    runtime: Option<&str>,
) -> Result<JobFile, CliError> {
    let jobs = match path.map(trace_at).transpose()?.flatten() {
        Some(source) => replay::jobs(source, replay),
        None if replay::is_given(replay) => {
            let wrong =
                "the options --replay… need a TRACE; in a job file write read_iolog=FILE and fh_replay=…";
            return Err(CliError::Misuse(wrong.to_owned()));
        }
        None => parse_jobs(path, host)?,
    };
    with_their_files(jobs, runtime)
}

/// The trace that is at a path, if it is one: in a file, or in a pipe.
fn trace_at(path: &Path) -> Result<Option<Source>, CliError> {
    if !pipe::is_pipe(path) {
        return Ok(replay::is_trace(path).then(|| Source::File(path.to_owned())));
    }
    Ok(match pipe::read(path)? {
        Piped::Trace(kept) => Some(Source::Kept(kept)),
        Piped::Text(_) => None,
    })
}

/// Jobs with the disks and traces that they name, which have been read to their ends.
fn with_their_files(mut jobs: JobFile, runtime: Option<&str>) -> Result<JobFile, CliError> {
    let runtime = runtime.map(|t| positive_time("--runtime", t)).transpose()?;
    let misuse = |e: job::JobError| CliError::Misuse(e.to_string());
    for replay in jobs.jobs.iter_mut().filter_map(|j| j.replay.as_mut()) {
        let Source::File(path) = &replay.source else { continue };
        if pipe::is_pipe(path) {
            replay.source = Source::Kept(pipe::trace(path)?);
        } else {
            files::will_read(path);
        }
    }
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
    if path == Path::new(pipe::STDIN) {
        let include = |name: &str| included(Path::new(""), name);
        let around =
            Surroundings { variable: &|name| std::env::var(name).ok(), include: Some(&include), host };
        return job::parse_bytes(&pipe::text(path)?, pipe::STDIN_SHOWN, &around).map_err(misuse);
    }
    let name = path.to_string_lossy();
    let is_device = path.metadata().is_ok_and(|m| m.file_type().is_block_device());
    let bytes = if path.exists() && !is_device { read(path)? } else { Vec::new() };
    if let Some(disk) = disk_of_this_machine(path) {
        return Err(CliError::Misuse(format!(
            "'{name}' is a disk, not a job; fairhead advise --record 60s /dev/{disk} records what it does"
        )));
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
    let include = |name: &str| included(path, name);
    let around = Surroundings { variable: &|name| std::env::var(name).ok(), include: Some(&include), host };
    job::parse_bytes(&bytes, &name, &around).map_err(misuse)
}

/// The name of the disk or partition that stands where a job file is expected: a block device, or the name of
/// a disk of this machine where there is no such file.
fn disk_of_this_machine(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let is_device = path.metadata().is_ok_and(|m| m.file_type().is_block_device());
    let is_name = !path.exists() && path == Path::new(name) && Path::new("/sys/block").join(name).exists();
    (is_device || is_name).then_some(name)
}

/// A file that a job file includes: from the current folder, or else from that of the job file.
//= fio-3.33: both, in this order, seen
fn included(job_file: &Path, name: &str) -> Result<Vec<u8>, String> {
    let here = Path::new(name);
    let beside = job_file.with_file_name(name);
    let path = if here.exists() || !beside.exists() { here } else { &beside };
    read_up_to(path, job::BYTES_MAX)
}

/// The bytes of a file, as many as the largest that any parser takes, and one more for it to refuse.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    if pipe::is_pipe(path) {
        return pipe::text(path);
    }
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
