//! The end of a section: a draft becomes a job.
//!
//! What depends on several options is settled here, and what contradicts itself is refused. A message names
//! the line of the last option that takes part.

use fairhead_core::units::{Class, IoPrio};

use super::draft::Draft;
use super::error::clean;
use super::load::{BlockSize, Direction, Distribution, Engine, Layout, PerOp, Program, Size, Verify, Zones};
use super::model::Job;
use super::trace::TraceFile;
use super::value::in_units;
use crate::replay::{Source, TraceJob};

/// How much of a disk the files of `fill_device=1` have, in percent: a file system keeps a little for itself.
const FULL_DISK: u8 = 99;

/// A result, or an error's line and message.
pub(super) type At<T> = Result<T, (u32, String)>;

/// Settles what depends on several options, and refuses what contradicts itself.
pub(super) fn finish(mut draft: Draft, remarks: &mut Vec<String>) -> At<Job> {
    let random = u8::from(draft.job.rw.random) * 100;
    draft.job.random_pct = draft.random_pct.unwrap_or(PerOp::all(random));
    draft.job.prio = match (draft.prio_class, draft.prio_level) {
        (None, None) => None,
        (class, level) => {
            // A class alone is at its most urgent level, a level alone is best effort: seen with `ionice -p`
            // on fio 3.33.
            Some(IoPrio::new(class.unwrap_or(Class::BestEffort), level.unwrap_or(0)))
        }
    };
    settle_trace(&mut draft)?;
    settle_replay(&mut draft)?;
    check_access(&mut draft, remarks)?;
    settle_call_prio(&mut draft)?;
    settle_verify(&mut draft);
    settle_files(&mut draft)?;
    check_steering(&draft)?;
    check_steady(&draft, remarks);
    check_sizes(&draft)?;
    check_zones(&mut draft)?;
    check_times(&mut draft, remarks)?;
    check_program(&draft, remarks)?;
    Ok(draft.job)
}

/// `fh_startup_trace` is a program of its own, past the page cache, with a client for each process.
fn settle_trace(draft: &mut Draft) -> At<()> {
    let Some(path) = draft.startup_trace.take() else { return Ok(()) };
    let line = draft.line_of("fh_startup_trace");
    for (option, why) in [
        ("fh_workload", "there is one program for a job"),
        ("numjobs", "a replay has a client for each process of the trace"),
        ("filename", "each process has a file of its own"),
        ("nrfiles", "each process has a file of its own"),
    ] {
        if draft.given.contains_key(option) {
            return Err((
                draft.last_of(&[option, "fh_startup_trace"]),
                format!("{option} contradicts fh_startup_trace: {why}"),
            ));
        }
    }
    if draft.direct == Some(false) || draft.buffered == Some(true) {
        let line = draft.last_of(&["direct", "buffered"]);
        return Err((line, "a trace is replayed past the page cache; remove direct or buffered".to_owned()));
    }
    (draft.direct, draft.buffered) = (Some(true), None);
    draft.job.program = Some(Program::Replay);
    draft.job.startup_trace = Some(TraceFile { path, line, trace: None });
    Ok(())
}

/// `read_iolog` is a program of its own, past the page cache of the disk itself, with a client for each task
/// of the trace.
fn settle_replay(draft: &mut Draft) -> At<()> {
    let Some(path) = draft.iolog.take() else {
        let only = ["fh_replay", "fh_replay_fit", "fh_replay_devices", "fh_replay_clients"];
        return match only.into_iter().find(|o| draft.given.contains_key(o)) {
            Some(option) => Err((
                draft.line_of(option),
                format!("{option} has no trace to replay; add one such as read_iolog=FILE"),
            )),
            None => Ok(()),
        };
    };
    let line = draft.line_of("read_iolog");
    for (option, why) in [
        ("fh_workload", "there is one program for a job"),
        ("fh_startup_trace", "there is one program for a job"),
        ("numjobs", "a replay has a client for each task of the trace"),
        ("nrfiles", "a replay is of the disk itself"),
        ("loops", "a trace is replayed once"),
        ("time_based", "a trace is replayed once; runtime= ends it early"),
    ] {
        if draft.given.contains_key(option) {
            let line = draft.last_of(&[option, "read_iolog"]);
            return Err((line, format!("{option} contradicts read_iolog: {why}")));
        }
    }
    if !draft.job.filenames.is_empty() && !draft.job.is_raw_disk() {
        let line = draft.line_of("filename");
        return Err((
            line,
            "a trace is replayed on the disk itself; write filename=/dev/… or none".to_owned(),
        ));
    }
    if draft.direct == Some(false) || draft.buffered == Some(true) {
        let line = draft.last_of(&["direct", "buffered"]);
        return Err((line, "a trace is replayed past the page cache; remove direct or buffered".to_owned()));
    }
    if draft.job.iodepth > 1 && draft.given.contains_key("ioengine") && draft.job.engine == Engine::Sync {
        draft.job.iodepth = 1;
    }
    (draft.direct, draft.buffered) = (Some(true), None);
    let of_trace = Job::of_trace();
    let job = &mut draft.job;
    job.program = of_trace.program;
    if job.filenames.is_empty() {
        job.filenames = of_trace.filenames;
    }
    if !draft.given.contains_key("iodepth") {
        job.iodepth = of_trace.iodepth;
    }
    (job.engine, job.ioengine) = (of_trace.engine, of_trace.ioengine);
    let options = std::mem::take(&mut draft.replay);
    job.replay = Some(TraceJob { source: Source::File(path.into()), line, options, part: None });
    Ok(())
}

/// `direct`, `buffered`, `ioengine`, `iodepth`, `bs`.
fn check_access(draft: &mut Draft, remarks: &mut Vec<String>) -> At<()> {
    let line = draft.last_of(&["direct", "buffered"]);
    draft.job.direct = match (draft.direct, draft.buffered) {
        (Some(direct), Some(buffered)) if direct == buffered => {
            let v = u8::from(direct);
            return Err((line, format!("direct={v} contradicts buffered={v}; keep one of them")));
        }
        (Some(direct), _) => direct,
        (None, Some(buffered)) => !buffered,
        (None, None) => false,
    };
    let job = &mut draft.job;
    if job.program.is_none() && !job.filenames.is_empty() && job.filenames.iter().all(|f| is_no_disk(f)) {
        remarks
            .push(format!("{} is no disk; its calls are done when they are made", job.filenames.join(", ")));
        job.engine = Engine::Null;
    }
    job.pre_read &= job.engine != Engine::Null;
    if job.iodepth > 1 && job.engine == Engine::Sync && !job.offload {
        remarks.push(format!(
            "iodepth={} has no effect with ioengine={}, which makes one call at a time; libaio or io_uring make more",
            job.iodepth, job.ioengine
        ));
        job.iodepth = 1;
    }
    if job.iodepth > 1 && job.ioengine == "libaio" && !job.direct && !job.offload {
        remarks.push(format!(
            "ioengine=libaio makes one call at a time through the page cache; add direct=1 for iodepth={}",
            job.iodepth
        ));
        job.iodepth = 1;
        job.engine = Engine::Sync;
    }
    let line = draft.last_of(&["bs", "bsrange", "bssplit", "direct", "buffered"]);
    let job = &draft.job;
    if job.writes_trimmed && job.bs.write != job.bs.trim {
        return Err((line, "with rw=trimwrite, trims and writes have one block size; write one".to_owned()));
    }
    let odd = [&job.bs.read, &job.bs.write, &job.bs.trim].into_iter().find_map(BlockSize::unaligned);
    match odd {
        Some(bytes) if job.direct => {
            Err((line, format!("a block of {bytes} bytes is not a multiple of 512, which direct=1 needs")))
        }
        _ => Ok(()),
    }
}

/// Whether a device is one that moves no data anywhere.
fn is_no_disk(name: &str) -> bool {
    matches!(name, "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/random" | "/dev/urandom")
}

/// The priorities of a job's calls. They are options of `libaio` and `io_uring`, whose calls carry a priority
/// each.
fn settle_call_prio(draft: &mut Draft) -> At<()> {
    const OPTIONS: [&str; 4] = ["cmdprio_percentage", "cmdprio_bssplit", "cmdprio_class", "cmdprio"];
    let Some(option) = OPTIONS.into_iter().find(|o| draft.given.contains_key(o)) else { return Ok(()) };
    let line = draft.last_of(&OPTIONS);
    if !matches!(draft.job.ioengine.as_str(), "libaio" | "io_uring") {
        let message = format!(
            "{option} is an option of ioengine=libaio and io_uring, and this is ioengine={}",
            draft.job.ioengine
        );
        return Err((line, message));
    }
    let [read, write] = std::mem::take(&mut draft.cmdprio).settle().map_err(|message| (line, message))?;
    let calls = &mut draft.job.call_prio;
    (calls.read, calls.write) = (read, write);
    Ok(())
}

/// `verify`: a job that writes reads what it has written, after some writes or at the end of each loop.
//= fio-3.33 HOWTO "verify", "do_verify", "verify_backlog", "verify_backlog_batch"
fn settle_verify(draft: &mut Draft) {
    let is_on = (draft.verify || draft.verify_pattern) && !draft.no_verify;
    if !is_on || !draft.job.writes() {
        return;
    }
    let backlog = draft.verify_backlog;
    let batch = if draft.verify_batch == 0 { backlog } else { draft.verify_batch }.max(1);
    draft.job.verify = Some(Verify { backlog: (backlog > 0).then_some(backlog), batch });
}

/// `fill_device`, `create_only`, `serialize_overlap`.
fn settle_files(draft: &mut Draft) -> At<()> {
    let job = &mut draft.job;
    if draft.fills && job.size.is_none() && job.filesize.is_none() && !job.is_raw_disk() {
        let files = job.file_count().saturating_mul(job.numjobs.into());
        let each = u64::from(FULL_DISK) / files.max(1);
        job.filesize = Some(Size::Percent(u8::try_from(each).unwrap_or(FULL_DISK).max(1)));
    }
    if job.filesize_max.is_some() && matches!(job.layout, Layout::Interleaved { .. }) {
        let message = "files that lie interleaved have one size; write one, such as filesize=64m".to_owned();
        return Err((draft.line_of("filesize"), message));
    }
    if draft.creates_only {
        (job.number_ios, job.time_based) = (Some(0), false);
        (job.end_fsync, job.fsync_on_close) = (false, false);
    }
    // Calls of a job that visits each block once are never to the same place.
    let repeats = job.norandommap || job.distribution != Distribution::Uniform || job.time_based;
    if draft.serializes && repeats && job.rw.random && job.iodepth > 1 {
        let message = "serialize_overlap holds calls back that are to the same place, which is not simulated; \
                       remove it, or norandommap, random_distribution and time_based";
        return Err((draft.line_of("serialize_overlap"), message.to_owned()));
    }
    Ok(())
}

/// `rate_min` and `rate`, `latency_target`, `flow`: what contradicts itself, and what has nothing to act on.
//= fio-3.33 HOWTO "rate_min", "latency_target", "flow"
fn check_steering(draft: &Draft) -> At<()> {
    let job = &draft.job;
    let (min, max) = (&job.rate_min, &job.rate);
    let exceeds = |min: Option<u64>, max: Option<u64>| matches!((min, max), (Some(a), Some(b)) if a > b);
    let wide = |calls: Option<u32>| calls.map(u64::from);
    let pairs = [
        ("rate_min", min.bytes.read, max.read),
        ("rate_min", min.bytes.write, max.write),
        ("rate_iops_min", wide(min.calls.read), wide(job.rate_iops.read)),
        ("rate_iops_min", wide(min.calls.write), wide(job.rate_iops.write)),
    ];
    if let Some((option, least, most)) = pairs.into_iter().find(|p| exceeds(p.1, p.2)) {
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        let message =
            format!("{option}={least} is more than the cap of {most}, so the job would end at once");
        return Err((draft.line_of(option), message));
    }
    let only = ["latency_window", "latency_percentile", "latency_run"];
    if job.latency_target.target.is_zero()
        && let Some(option) = only.into_iter().find(|o| draft.given.contains_key(o))
    {
        return Err((
            draft.line_of(option),
            format!("{option} has no target; add one such as latency_target=5ms"),
        ));
    }
    if job.flow.weight == 0
        && let Some(option) = ["flow_id", "flow_sleep"].into_iter().find(|o| draft.given.contains_key(o))
    {
        return Err((draft.line_of(option), format!("{option} has no flow; add one such as flow=1")));
    }
    Ok(())
}

/// `steadystate` over a window that is too short has no effect, which is worth a note.
fn check_steady(draft: &Draft, remarks: &mut Vec<String>) {
    let options = ["steadystate", "steadystate_duration", "steadystate_ramp_time"];
    if !draft.job.steady.is_on() && options.iter().any(|o| draft.given.contains_key(o)) {
        remarks.push(
            "steadystate has no effect without ss_dur, the time of at least 1s over which figures have to be steady"
                .to_owned(),
        );
    }
}

/// `size` and what must fit into it.
fn check_sizes(draft: &Draft) -> At<()> {
    let job = &draft.job;
    let name = clean(&job.name);
    if job.program.is_some() {
        return Ok(());
    }
    let has_names = !job.filenames.is_empty() && job.engine != Engine::Null;
    if job.size.is_none() && job.filesize.is_none() && !has_names {
        return Err((job.line, format!("job '{name}' has no size; write one such as size=1g")));
    }
    for (option, size) in [("size", job.size), ("filesize", job.filesize), ("io_size", job.io_size)] {
        if size == Some(Size::Bytes(0)) {
            return Err((
                draft.line_of(option),
                format!("'{option}=0' leaves nothing to do; write a size such as {option}=1g"),
            ));
        }
    }
    let files = job.file_count();
    let block = job.smallest_block();
    if let Some(Size::Bytes(size)) = job.size
        && size / files < u64::from(block)
    {
        let line = draft.last_of(&["size", "bs", "bsrange", "bssplit", "nrfiles", "filename"]);
        let each = if files > 1 { format!(" for each of {files} files") } else { String::new() };
        return Err((
            line,
            format!(
                "size={}{each} is less than one block of {}",
                in_units(size / files),
                in_units(block.into())
            ),
        ));
    }
    let odd_align =
        [job.align.read, job.align.write, job.align.trim].into_iter().flatten().find(|b| b % 512 != 0);
    if let Some(bytes) = odd_align.filter(|_| job.direct) {
        let message = format!("ba={bytes} is not a multiple of 512, which direct=1 needs");
        return Err((draft.line_of("ba"), message));
    }
    if job.direct && job.hop % 512 != 0 {
        let message = format!("the hop of {} bytes is not a multiple of 512, which direct=1 needs", job.hop);
        return Err((draft.line_of("rw"), message));
    }
    if job.direct
        && let Some((option, bytes)) = [("offset", job.offset), ("offset_increment", job.offset_increment)]
            .into_iter()
            .find_map(|(o, s)| matches!(s, Size::Bytes(b) if b % 512 != 0).then_some((o, s)))
    {
        return Err((
            draft.line_of(option),
            format!("{option}={} is not a multiple of 512, which direct=1 needs", bytes.bytes_of(0)),
        ));
    }
    Ok(())
}

/// `zonemode` and what belongs to it.
fn check_zones(draft: &mut Draft) -> At<()> {
    if !draft.strided {
        let all =
            [("zonesize", draft.zone_size), ("zonerange", draft.zone_range), ("zoneskip", draft.zone_skip)];
        return match all.into_iter().find(|(_, bytes)| *bytes > 0) {
            Some((option, _)) => {
                Err((draft.line_of(option), format!("{option} has no zones to act on; add zonemode=strided")))
            }
            None => Ok(()),
        };
    }
    if draft.zone_size == 0 {
        let line = draft.line_of("zonemode");
        return Err((line, "zonemode=strided needs a zonesize; add one such as zonesize=16k".to_owned()));
    }
    let range = if draft.zone_range == 0 { draft.zone_size } else { draft.zone_range };
    let sectors = |bytes: u64| bytes / 512;
    draft.job.zones =
        Some(Zones { size: sectors(draft.zone_size), range: sectors(range), skip: sectors(draft.zone_skip) });
    Ok(())
}

/// `runtime`, `time_based`, `thinktime`.
fn check_times(draft: &mut Draft, remarks: &mut Vec<String>) -> At<()> {
    if draft.job.time_based && draft.job.runtime.is_none() {
        return Err((
            draft.line_of("time_based"),
            "time_based needs a runtime; add one such as runtime=30s".to_owned(),
        ));
    }
    let (rate, iops) = (&draft.job.rate, &draft.job.rate_iops);
    if (rate.read.is_some() && iops.read.is_some()) || (rate.write.is_some() && iops.write.is_some()) {
        let line = draft.last_of(&["rate", "rate_iops"]);
        return Err((line, "rate contradicts rate_iops; keep one of them".to_owned()));
    }
    check_query(&draft.job).map_err(|message| (draft.line_of("fh_query"), message.to_owned()))?;
    if draft.job.thinktime_spin > draft.job.thinktime {
        return Err((
            draft.line_of("thinktime_spin"),
            format!(
                "thinktime_spin={} is longer than thinktime={}, of which it is a part",
                draft.job.thinktime_spin, draft.job.thinktime
            ),
        ));
    }
    if draft.given.contains_key("thinktime_blocks") && draft.job.thinktime.is_zero() {
        remarks.push("thinktime_blocks has no effect without thinktime".to_owned());
    }
    Ok(())
}

/// A query is reads, each of which waits for the one before.
fn check_query(job: &Job) -> Result<(), &'static str> {
    if job.query_calls == 1 || job.program.is_some() {
        return Ok(());
    }
    if job.rw.direction != Direction::Read {
        return Err("fh_query is about reads; it needs rw=read or rw=randread");
    }
    if job.iodepth > 1 && job.engine == Engine::Async {
        return Err("fh_query is about reads one after the other; it needs iodepth=1");
    }
    Ok(())
}

/// A program does what it does, whatever `rw` says.
fn check_program(draft: &Draft, remarks: &mut Vec<String>) -> At<()> {
    let is_start_up = matches!(draft.job.program, Some(Program::StartUp(_)));
    let can_repeat = is_start_up || draft.job.program == Some(Program::Replay);
    if let Some(option) =
        ["fh_iterations", "fh_pause", "fh_timeout"].into_iter().find(|o| draft.given.contains_key(o))
        && !can_repeat
    {
        return Err((
            draft.line_of(option),
            format!("{option} is about start-ups; add one such as fh_workload=startup:xterm"),
        ));
    }
    if (is_start_up || matches!(draft.job.program, Some(Program::Player { .. }))) && draft.job.direct {
        return Err((
            draft.last_of(&["direct", "buffered"]),
            "fh_workload=startup and player read through the page cache; remove direct=1".to_owned(),
        ));
    }
    if draft.job.program.is_none() {
        return Ok(());
    }
    let is_trace = draft.job.replay.is_some();
    let depth: &[&str] =
        if is_trace { &["thinktime", "rate", "rate_iops", "fh_think"] } else { &["iodepth"] };
    let unused: Vec<&str> = ["rw", "bs", "bsrange", "bssplit", "ioengine", "fh_query"]
        .into_iter()
        .chain(depth.iter().copied())
        .filter(|o| draft.given.contains_key(o))
        .collect();
    if !unused.is_empty() {
        remarks.push(format!(
            "{} decides what is done; not used: {}",
            match &draft.job {
                job if job.startup_trace.is_some() => "fh_startup_trace",
                _ if is_trace => "read_iolog",
                _ => "fh_workload",
            },
            unused.join(", ")
        ));
    }
    Ok(())
}
