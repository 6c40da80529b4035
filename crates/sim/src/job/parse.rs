//! From text to jobs: lines, sections, inheritance, and the rules between options.
//!
//! ```text
//! line ─► [heading]          the draft so far becomes a job; a copy of the global draft is the next one
//!       ─► key=value | key    the option's setter changes the draft
//!       ─► # … ; … blank      nothing;  #!fh_key=value is an option that fio skips as a comment
//! end of section ─► finish()  what can only be judged together: direct and buffered, size and block, …
//! ```

use fairhead_core::units::{Class, IoPrio};

use super::cmdprio;
use super::disks::Disks;
use super::engines::refusal_of_option;
use super::error::{JobError, clean};
use super::groups::Cgroups;
use super::model::{Direction, Engine, Job, JobFile, PerOp, Program, Size, TraceFile, Zones};
use super::nearest::nearest;
use super::options::{Draft, Effect, all_keys, find};
use super::steady;
use super::steer;
use super::surroundings::Surroundings;
use super::value::{Arg, has_reversed_prefix, in_units};
use super::{BYTES_MAX, CLIENTS_MAX, LINE_BYTES_MAX};
use crate::replay::{Source, TraceJob};

/// Reads a job file. `file_name` is for messages only.
///
/// # Errors
/// The first thing that is wrong, with its line. Any text whatever gives a job file or an error.
///
/// ```
/// use fairhead_sim::job::parse;
/// let file = parse("[global]\nsize=1g\n[readers]\nrw=read\nnumjobs=10\n", "job.fio").unwrap();
/// assert_eq!(file.clients().count(), 10);
/// let error = parse("[reader]\niodpeth=3\n", "job.fio").unwrap_err();
/// assert_eq!(error.to_string(), "job.fio:2: unknown option 'iodpeth'; did you mean 'iodepth'?");
/// ```
pub fn parse(text: &str, file_name: &str) -> Result<JobFile, JobError> {
    parse_in(text, file_name, &Surroundings::NONE)
}

/// Reads a job file as [`parse`] does, with what it takes from around it.
///
/// # Errors
/// As [`parse`], and if the file takes something that is not there.
pub fn parse_in(text: &str, file_name: &str, around: &Surroundings<'_>) -> Result<JobFile, JobError> {
    let fail = |(line, message)| JobError { file: file_name.to_owned(), line, message };
    if text.len() > BYTES_MAX {
        return Err(fail((
            0,
            format!(
                "the file has {} bytes; a job file has at most {}",
                text.len(),
                in_units(BYTES_MAX as u64)
            ),
        )));
    }
    let mut parser = Parser::default();
    for (line, number) in text.lines().zip(1..) {
        parser.line(line, number, around).map_err(fail)?;
    }
    parser.end().map_err(fail)?;
    if parser.jobs.is_empty() {
        return Err(fail((
            0,
            "there is no job in it; add a section such as [reader] with size=1g".to_owned(),
        )));
    }
    parser.check_flows().map_err(fail)?;
    steady::check_groups(&parser.jobs).map_err(fail)?;
    let notes = parser.notes();
    let (cgroups, changes) = parser.cgroups.finish(&parser.jobs).map_err(fail)?;
    let disks = parser.disks.finish().map_err(|message| fail((0, message)))?;
    Ok(JobFile {
        file_name: file_name.to_owned(),
        notes,
        jobs: parser.jobs,
        disks,
        cpus: parser.cpus.map(|c| c.0),
        cgroups,
        changes,
    })
}

/// Reads a job file from bytes that may not be text.
///
/// # Errors
/// As [`parse_in`], and when the bytes are not UTF-8.
pub fn parse_bytes(bytes: &[u8], file_name: &str, around: &Surroundings<'_>) -> Result<JobFile, JobError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let lines = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        let line = u32::try_from(lines + 1).unwrap_or(u32::MAX);
        JobError { file: file_name.to_owned(), line, message: "not a text in UTF-8".to_owned() }
    })?;
    parse_in(text, file_name, around)
}

/// An error's line and message.
type At<T> = Result<T, (u32, String)>;

/// What the lines so far have left.
#[derive(Default)]
struct Parser {
    jobs: Vec<Job>,
    cgroups: Cgroups,
    disks: Disks,
    global: Draft,
    section: Section,
    clients: u32,
    /// `fh_cpus`, and the line that has it.
    cpus: Option<(u32, u32)>,
    ignored: Vec<&'static str>,
    remarks: Vec<String>,
}

/// The section that lines belong to.
#[derive(Default)]
enum Section {
    #[default]
    None,
    Global,
    Job(Box<Draft>),
}

impl Parser {
    fn line(&mut self, raw: &str, number: u32, around: &Surroundings<'_>) -> At<()> {
        if raw.len() > LINE_BYTES_MAX {
            return Err((number, format!("the line has {} bytes; at most {LINE_BYTES_MAX}", raw.len())));
        }
        let line = strip_comment(raw).trim();
        if line.is_empty() {
            return Ok(());
        }
        match line.strip_prefix('[') {
            Some(rest) => self.heading(rest, number),
            None => self.option(line, number, around).map_err(|message| (number, message)),
        }
    }

    fn heading(&mut self, rest: &str, line: u32) -> At<()> {
        let name = match rest.split_once(']') {
            None => return Err((line, format!("section heading '[{}' has no ']'", clean(rest)))),
            Some((_, after)) if !after.trim().is_empty() => {
                return Err((line, format!("text after the section heading: '{}'", clean(after.trim()))));
            }
            Some((name, _)) => name.trim(),
        };
        self.end()?;
        // fio takes every name that starts with "global" for a global section.
        //= fio-3.33 init.c section names
        if name.starts_with("global") {
            if name != "global" {
                self.remark(format!("'[{}]' counts as [global], as it does for fio", clean(name)));
            }
            self.section = Section::Global;
            return Ok(());
        }
        if name.is_empty() {
            return Err((line, "the section heading is empty; write a name such as [reader]".to_owned()));
        }
        let mut draft = self.global.clone();
        name.clone_into(&mut draft.job.name);
        draft.job.line = line;
        self.section = Section::Job(Box::new(draft));
        Ok(())
    }

    fn option(&mut self, text: &str, line: u32, around: &Surroundings<'_>) -> Result<(), String> {
        let (key, value) = text.split_once('=').map_or((text, None), |(k, v)| (k.trim(), Some(v.trim())));
        if key.starts_with("include ") || key == "include" {
            return Err("'include' is not supported; put the options into this file".to_owned());
        }
        let Some((name, effect)) = find(key) else { return Err(unknown_option(key)) };
        let shown = clean(text);
        let expanded = value.map(|value| around.expand(value, &shown)).transpose()?;
        let value = expanded.as_deref();
        let draft = match &mut self.section {
            Section::None => {
                return Err(format!(
                    "'{shown}' is outside a section; put it below [global] or a job's [name]"
                ));
            }
            Section::Global => &mut self.global,
            Section::Job(draft) => draft.as_mut(),
        };
        let arg = Arg { key, value: value.unwrap_or(""), kb_base: draft.kb_base.unwrap_or(1024) };
        let has_value = !arg.value.is_empty();
        match effect {
            Effect::Set(_) | Effect::Groups(_) if !has_value => {
                return Err(format!("option '{key}' has no value; write {key}=…"));
            }
            Effect::Set(set) => set(draft, &arg)?,
            Effect::Name(set) => set(draft, arg.value.to_owned()),
            Effect::Groups(say) => say(&mut self.cgroups, draft, &arg, line)?,
            Effect::Switch(set) if value.is_none() => set(draft, true),
            Effect::Switch(set) => set(draft, arg.flag()?),
            Effect::Refused if !matches!(arg.value, "0" | "none") => {
                return Err(format!("option '{key}' is not simulated, and would change the load; remove it"));
            }
            Effect::Refused | Effect::Ignored => {
                if !self.ignored.contains(&name) {
                    self.ignored.push(name);
                }
                return Ok(());
            }
        }
        draft.given.insert(name, line);
        if arg.kb_base == 1024 && sized(name) && has_reversed_prefix(arg.value) {
            self.remark("KiB, MiB, … are powers of 1024 here; fio reads them as powers of 1000 unless kb_base=1000 (k, m, g are 1024 to both)".to_owned());
        }
        Ok(())
    }

    /// Ends the section: a job's draft becomes a job.
    fn end(&mut self) -> At<()> {
        let Section::Job(draft) = std::mem::take(&mut self.section) else { return Ok(()) };
        let mut remarks = Vec::new();
        let Draft { stonewall, new_group, cgroup_nodelete, .. } = *draft;
        let (disks, at) = (draft.disks.clone(), draft.last_of(&["fh_disk", "filename"]));
        let own = draft.own.clone();
        self.set_cpus(&draft)?;
        let waits = draft.given.get("wait_for").copied();
        let mut job = finish(*draft, &mut remarks)?;
        self.check_size(&job)?;
        self.check_wait(&job, waits.unwrap_or(job.line))?;
        self.cgroups.join(&mut job, &own, cgroup_nodelete)?;
        self.disks.join(&mut job, disks, at).map_err(|message| (at, message))?;
        if let Some(last) = self.jobs.last() {
            job.wave = last.wave + u32::from(stonewall);
            job.group = last.group + u32::from(stonewall || new_group);
        }
        self.clients = self.clients.saturating_add(job.numjobs);
        if self.clients > CLIENTS_MAX {
            return Err((
                job.line,
                format!(
                    "with job '{}' there are {} clients; at most {CLIENTS_MAX}",
                    clean(&job.name),
                    self.clients
                ),
            ));
        }
        self.jobs.push(job);
        remarks.into_iter().for_each(|r| self.remark(r));
        Ok(())
    }

    /// All jobs run on one host.
    fn set_cpus(&mut self, draft: &Draft) -> At<()> {
        let Some(cpus) = draft.cpus else { return Ok(()) };
        let line = draft.line_of("fh_cpus");
        match self.cpus.replace((cpus, line)) {
            Some((before, there)) if before != cpus => Err((
                line,
                format!(
                    "fh_cpus={cpus} contradicts fh_cpus={before} of line {there}: all jobs run on one host"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Files of a job without a size are there already: a job above has made them.
    //= fio-3.33: "you need to specify size=", seen for files that are not there or that a job below makes
    fn check_size(&self, job: &Job) -> At<()> {
        if job.size.is_some() || job.filesize.is_some() || job.program.is_some() || job.is_raw_disk() {
            return Ok(());
        }
        let above = || self.jobs.iter().filter(|j| j.engine != Engine::Null);
        match job.filenames.iter().find(|name| !above().any(|j| j.has_file(name))) {
            Some(name) => Err((
                job.line,
                format!(
                    "job '{}' has no size, and no job above it makes its file '{}'; write one such as size=1g",
                    clean(&job.name),
                    clean(name)
                ),
            )),
            None => Ok(()),
        }
    }

    /// A job waits for one above it, of which there is one.
    //= fio-3.33 HOWTO "wait_for"
    fn check_wait(&self, job: &Job, line: u32) -> At<()> {
        let Some(name) = &job.wait_for else { return Ok(()) };
        let shown = clean(name);
        match self.jobs.iter().filter(|j| j.name == *name).count() {
            1 => Ok(()),
            0 => Err((line, format!("wait_for={shown}: no job above is called so"))),
            n => Err((
                line,
                format!("wait_for={shown}: {n} jobs above are called so; give them names of their own"),
            )),
        }
    }

    /// Jobs of one flow hold each other back, so they have to run at the same time, unless they end by the
    /// clock.
    fn check_flows(&self) -> At<()> {
        for job in self.jobs.iter().filter(|j| j.flow.weight > 0 && j.runtime.is_none()) {
            let others = self.jobs.iter().filter(|j| j.flow.weight > 0 && j.flow.id == job.flow.id);
            let mut late = others.filter(|j| j.wave > job.wave || j.wait_for.is_some());
            if let Some(late) = late.next() {
                let message = format!(
                    "job '{}' would wait for ever for its share of the flow beside '{}', which starts later; add a runtime, or another flow_id",
                    clean(&job.name),
                    clean(&late.name)
                );
                return Err((job.line, message));
            }
        }
        Ok(())
    }

    /// A note, once.
    fn remark(&mut self, note: String) {
        if !self.remarks.contains(&note) && self.remarks.len() < NOTES_MAX {
            self.remarks.push(note);
        }
    }

    fn notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.remarks);
        if !self.ignored.is_empty() {
            notes.push(format!("ignored: {} (no effect in a simulation)", self.ignored.join(", ")));
        }
        notes
    }
}

/// The most notes about a job file. More would not be read.
const NOTES_MAX: usize = 50;

/// The line without its comment. fio ends a line at `#` or `;`, wherever they are. After `#!` at the start of
/// a line an option of ours is an option: fio sees a comment, we see `fh_…`.
fn strip_comment(line: &str) -> &str {
    let line = line.trim_start();
    let line =
        line.strip_prefix("#!").map(str::trim_start).filter(|rest| rest.starts_with("fh")).unwrap_or(line);
    line.find(['#', ';']).map_or(line, |end| &line[..end])
}

fn unknown_option(key: &str) -> String {
    if let Some(why) = refusal_of_option(key) {
        return why;
    }
    let shown = clean(key);
    match nearest(key, all_keys()) {
        Some(word) => format!("unknown option '{shown}'; did you mean '{word}'?"),
        None if key.is_empty() => "there is no option in front of '='".to_owned(),
        None => format!("unknown option '{shown}'"),
    }
}

/// Whether an option's value is in bytes.
fn sized(name: &str) -> bool {
    matches!(
        name,
        "bs" | "bsrange"
            | "bssplit"
            | "size"
            | "filesize"
            | "io_size"
            | "offset"
            | "offset_increment"
            | "rate"
            | "zonesize"
            | "zonerange"
            | "zoneskip"
            | "ba"
            | "rate_min"
    )
}

/// Settles what depends on several options, and refuses what contradicts itself.
fn finish(mut draft: Draft, remarks: &mut Vec<String>) -> At<Job> {
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
    cmdprio::settle(&mut draft)?;
    steer::check(&draft)?;
    steady::check(&draft, remarks);
    check_sizes(&draft)?;
    check_zones(&mut draft)?;
    check_times(&mut draft, remarks)?;
    check_program(&draft, remarks)?;
    Ok(draft.job)
}

impl Draft {
    /// Where the option was given, or else the section's heading.
    pub(super) fn line_of(&self, option: &str) -> u32 {
        self.given.get(option).copied().unwrap_or(self.job.line)
    }

    /// The last of the options, for a message about several.
    pub(super) fn last_of(&self, options: &[&str]) -> u32 {
        options.iter().filter_map(|o| self.given.get(o)).max().copied().unwrap_or(self.job.line)
    }
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
    let name = clean(&job.name);
    if job.program.is_none() && !job.filenames.is_empty() && job.filenames.iter().all(|f| is_no_disk(f)) {
        remarks.push(format!(
            "job '{name}': {} is no disk; its calls are done when they are made",
            job.filenames.join(", ")
        ));
        job.engine = Engine::Null;
    }
    job.pre_read &= job.engine != Engine::Null;
    if job.iodepth > 1 && job.engine == Engine::Sync && !job.offload {
        remarks.push(format!(
            "job '{name}': iodepth={} has no effect with ioengine={}, which makes one call at a time; libaio or io_uring make more",
            job.iodepth, job.ioengine
        ));
        job.iodepth = 1;
    }
    if job.iodepth > 1 && job.ioengine == "libaio" && !job.direct && !job.offload {
        remarks.push(format!(
            "job '{name}': ioengine=libaio makes one call at a time through the page cache; add direct=1 for iodepth={}",
            job.iodepth
        ));
        job.iodepth = 1;
        job.engine = Engine::Sync;
    }
    let line = draft.last_of(&["bs", "bsrange", "bssplit", "direct", "buffered"]);
    let job = &draft.job;
    let odd =
        [&job.bs.read, &job.bs.write, &job.bs.trim].into_iter().find_map(super::model::BlockSize::unaligned);
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
    let name = clean(&draft.job.name);
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
        remarks.push(format!("job '{name}': thinktime_blocks has no effect without thinktime"));
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
            "job '{}': {} decides what is done; not used: {}",
            clean(&draft.job.name),
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
