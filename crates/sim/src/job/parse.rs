//! From text to jobs: lines, sections, inheritance, and the rules between options.
//!
//! ```text
//! line ─► [heading]          the draft so far becomes a job; a copy of the global draft is the next one
//!       ─► key=value | key    the option's setter changes the draft
//!       ─► # … ; … blank      nothing;  #!fh_key=value is an option that fio skips as a comment
//!       ─► include FILE    the lines of another file, which begins no section
//! end of section ─► finish.rs what can only be judged together: direct and buffered, size and block, …
//! ```

use super::disks::Disks;
use super::draft::Draft;
use super::engines::refusal_of_option;
use super::error::{JobError, clean};
use super::finish::{At, finish};
use super::groups::Cgroups;
use super::load::{Engine, Size};
use super::model::{Job, JobFile, Written};
use super::nearest::nearest;
use super::options::{Effect, all_keys, find};
use super::surroundings::Surroundings;
use super::value::{Arg, has_reversed_prefix, in_units};
use super::{BYTES_MAX, CLIENTS_MAX, LINE_BYTES_MAX, NAMES_LOOKED_AT};

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
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    for (line, number) in text.lines().zip(1..) {
        parser.line(line, number, around).map_err(fail)?;
    }
    parser.finish(file_name).map_err(|(line, message)| match (line, message.is_empty()) {
        (_, true) => fail((0, no_job(text))),
        _ => fail((line, message)),
    })
}

/// The mark that some editors put in front of a text in UTF-8. fio takes it for a part of the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the text of a job file that another file or a command line names: at most [`BYTES_MAX`] bytes of
/// UTF-8, without a byte-order mark.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > BYTES_MAX {
        return Err(format!(
            "the file has more than {}; a job file has at most that",
            in_units(BYTES_MAX as u64)
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| not_utf8(bytes).to_owned())?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// What is said of a file without a job.
pub(super) fn no_job(text: &str) -> String {
    let is_global = text.lines().any(|line| line.trim_start().starts_with("[global"));
    if is_global {
        return "there is no job in it, only [global], and fio would run nothing either; add a section such as \
                [reader] with size=1g"
            .to_owned();
    }
    "there is no job in it; add a section such as [reader] with size=1g".to_owned()
}

/// Reads a job file from bytes that may not be text.
///
/// # Errors
/// As [`parse_in`], and when the bytes are not UTF-8.
pub fn parse_bytes(bytes: &[u8], file_name: &str, around: &Surroundings<'_>) -> Result<JobFile, JobError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let message = not_utf8(bytes).to_owned();
        let lines = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        let line = u32::try_from(lines + 1).unwrap_or(u32::MAX);
        JobError { file: file_name.to_owned(), line, message }
    })?;
    parse_in(text, file_name, around)
}

/// What is wrong with bytes that are no text in UTF-8: an editor's mark tells the texts of 16 bits.
#[must_use]
pub fn not_utf8(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "a text in UTF-16; save it as UTF-8",
        _ => "not a text in UTF-8",
    }
}

/// What the lines so far have left.
#[derive(Default)]
pub(super) struct Parser {
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
    /// Remarks about jobs, each with the names of the jobs that it is about.
    of_jobs: Vec<(String, Vec<String>)>,
    written: Written,
    /// How many files around the line include it, and how many were included so far.
    included: (u32, u32),
    /// The sections of files that are read; empty: all.
    only: Vec<String>,
    is_in_file: bool,
}

/// The section that lines belong to.
#[derive(Default)]
enum Section {
    #[default]
    None,
    Global,
    /// One that was not chosen.
    Skipped,
    Job(Box<Draft>),
}

impl Parser {
    /// The job file. An empty message: there is no job.
    pub(super) fn finish(mut self, file_name: &str) -> At<JobFile> {
        self.end()?;
        if self.jobs.is_empty() {
            return Err((0, String::new()));
        }
        self.check_flows()?;
        self.check_steady_states()?;
        let notes = self.notes();
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        let (cgroups, changes) = self.cgroups.finish(&names)?;
        let disks = self.disks.finish().map_err(|message| (0, message))?;
        Ok(JobFile {
            file_name: file_name.to_owned(),
            notes,
            jobs: self.jobs,
            disks,
            cpus: self.cpus.map(|c| c.0),
            cgroups,
            changes,
            written: self.written,
        })
    }

    /// An option that changes nothing.
    pub(super) fn ignore(&mut self, name: &'static str) {
        if !self.ignored.contains(&name) {
            self.ignored.push(name);
        }
    }

    /// Of the sections of job files, those with such names are read.
    pub(super) fn choose(&mut self, name: &str) {
        self.only.push(name.to_owned());
    }

    /// Another file begins, outside a section.
    pub(super) fn close(&mut self) -> At<()> {
        self.end()?;
        self.section = Section::None;
        self.is_in_file = true;
        Ok(())
    }

    /// Reads a line of a job file.
    pub(super) fn line(&mut self, raw: &str, number: u32, around: &Surroundings<'_>) -> At<()> {
        if raw.len() > LINE_BYTES_MAX {
            return Err((number, format!("the line has {} bytes; at most {LINE_BYTES_MAX}", raw.len())));
        }
        let line = strip_comment(raw).trim();
        if line.is_empty() {
            return Ok(());
        }
        match line.strip_prefix('[') {
            Some(_) if self.included.0 > 0 => {
                Err((number, "an included file begins no section; put its options there alone".to_owned()))
            }
            Some(rest) => self.heading(rest, number),
            None => match included(line) {
                Some(path) => self.include(path, number, around).map_err(|message| (number, message)),
                None => self.option(line, number, around).map_err(|message| (number, message)),
            },
        }
    }

    /// `include FILE`: the options of another file, as if they stood here.
    //= fio-3.33: "No new sections in included files", "outside of [] job section", seen
    fn include(&mut self, path: &str, line: u32, around: &Surroundings<'_>) -> Result<(), String> {
        if matches!(self.section, Section::Skipped) {
            return Ok(());
        }
        let shown = clean(path);
        if matches!(self.section, Section::None) {
            return Err(format!(
                "'include {shown}' is outside a section; put it below [global] or a job's [name]"
            ));
        }
        let (depth, count) = self.included;
        if depth >= INCLUDE_DEPTH_MAX || count >= INCLUDES_MAX {
            return Err(format!("'include {shown}': files include each other without an end"));
        }
        let Some(read) = around.include else {
            return Err(format!(
                "'include {shown}': other files cannot be read here; put the options into this file"
            ));
        };
        let bytes = read(path)?;
        let text = text_of(&bytes).map_err(|why| format!("'{shown}': {why}"))?;
        self.included = (depth + 1, count + 1);
        for (text, inside) in text.lines().zip(1_u32..) {
            // Options of an included file count as given in the line that includes it.
            let wrong = |message| format!("in the included '{shown}', line {inside}: {message}");
            self.line(text, line, around).map_err(|(_, message)| wrong(message))?;
        }
        self.included.0 = depth;
        Ok(())
    }

    fn heading(&mut self, rest: &str, line: u32) -> At<()> {
        let name = match rest.split_once(']') {
            None => return Err((line, format!("section heading '[{}' has no ']'", clean(rest)))),
            Some((_, after)) if !after.trim().is_empty() => {
                return Err((line, format!("text after the section heading: '{}'", clean(after.trim()))));
            }
            Some((name, _)) => name.trim(),
        };
        self.begin(name, line)
    }

    /// A section of that name begins.
    pub(super) fn begin(&mut self, name: &str, line: u32) -> At<()> {
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
        if self.is_in_file && !self.only.is_empty() && !self.only.iter().any(|only| only == name) {
            self.section = Section::Skipped;
            return Ok(());
        }
        let mut draft = self.global.clone();
        name.clone_into(&mut draft.job.name);
        draft.job.line = line;
        self.section = Section::Job(Box::new(draft));
        Ok(())
    }

    /// An option of the section: `key=value`, or the key alone.
    pub(super) fn option(&mut self, text: &str, line: u32, around: &Surroundings<'_>) -> Result<(), String> {
        if matches!(self.section, Section::Skipped) {
            return Ok(());
        }
        let (key, value) = text.split_once('=').map_or((text, None), |(k, v)| (k.trim(), Some(v.trim())));
        let Some((name, effect)) = find(key) else { return Err(unknown_option(key)) };
        let shown = clean(text);
        let expanded = value.map(|value| around.expand(value, &shown)).transpose()?;
        let value = expanded.as_deref();
        if matches!(self.section, Section::None) {
            return Err(format!("'{shown}' is outside a section; put it below [global] or a job's [name]"));
        }
        let written = match &self.section {
            Section::Job(draft) => self.written.jobs.entry(draft.job.line).or_default(),
            _ => &mut self.written.global,
        };
        if let Some(value) = value {
            written.retain(|(option, _)| *option != name);
            written.push((name, value.to_owned()));
        }
        let draft = match &mut self.section {
            Section::Job(draft) => draft.as_mut(),
            _ => &mut self.global,
        };
        let kb_base = draft.kb_base.unwrap_or(1024);
        let decimals = key.starts_with("fh_");
        let arg = Arg { key, value: value.unwrap_or(""), kb_base, decimals };
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
            Effect::Refused if !matches!(arg.value, "0" | "none") => return Err(refused(name, key)),
            Effect::Refused | Effect::Ignored => {
                self.ignore(name);
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
        let group = job.cgroup.as_deref();
        job.cgroup = self.cgroups.join((&job.name, job.line), group, &own, cgroup_nodelete)?;
        let files = (job.engine, &*job.filenames);
        job.disks = self.disks.join(&job.name, files, disks, at).map_err(|message| (at, message))?;
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
        remarks.into_iter().for_each(|r| self.remark_of_job(&job.name, r));
        self.jobs.push(job);
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
        let makes_files = job.filesize.is_some() || job.size.is_some_and(|s| matches!(s, Size::Bytes(_)));
        if makes_files || job.program.is_some() || job.is_raw_disk() || job.engine == Engine::Null {
            return Ok(());
        }
        let makes = |j: &&Job| j.engine != Engine::Null && (j.filesize.is_some() || j.size.is_some());
        let above = || self.jobs.iter().filter(makes);
        let names = (0..job.numjobs).flat_map(|clone| job.file_names(clone));
        let mut names = names.take(usize::try_from(NAMES_LOOKED_AT).unwrap_or(1));
        let (name, shown) = match names.find(|name| !above().any(|j| j.has_file(name))) {
            Some(file) => (clean(&job.name), clean(&file)),
            None => return Ok(()),
        };
        Err((
            job.line,
            match job.size {
                Some(Size::Percent(p)) => format!(
                    "job '{name}': size={p}% is a share of its file, and no job above it makes its file \
                     '{shown}'; write a size such as size=1g, or filesize= beside it"
                ),
                _ => format!(
                    "job '{name}' has no size, and no job above it makes its file '{shown}'; write one such as size=1g"
                ),
            },
        ))
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

    /// The jobs of a reporting group look for one steady state, or none of them does.
    //= fio-3.33: "job rejected: steadystate options must be consistent within reporting groups"
    fn check_steady_states(&self) -> At<()> {
        let odd = |job: &&Job| {
            self.jobs.iter().any(|j| j.group == job.group && j.steady != job.steady && j.line < job.line)
        };
        match self.jobs.iter().find(odd) {
            Some(job) => Err((
                job.line,
                format!(
                    "job '{}' has another steadystate than a job of its reporting group; say the same, below [global], or add new_group",
                    clean(&job.name)
                ),
            )),
            None => Ok(()),
        }
    }

    /// A note about a job: one for all jobs that it is about.
    fn remark_of_job(&mut self, job: &str, remark: String) {
        let shown = clean(job);
        match self.of_jobs.iter_mut().find(|(text, _)| *text == remark) {
            Some((_, jobs)) if jobs.contains(&shown) => {}
            Some((_, jobs)) => jobs.push(shown),
            None => self.of_jobs.push((remark, vec![shown])),
        }
    }

    /// A note, once.
    fn remark(&mut self, note: String) {
        if !self.remarks.contains(&note) && self.remarks.len() < NOTES_MAX {
            self.remarks.push(note);
        }
    }

    fn notes(&mut self) -> Vec<String> {
        for (text, jobs) in std::mem::take(&mut self.of_jobs) {
            self.remark(format!("{}: {text}", some_jobs(&jobs)));
        }
        let mut notes = std::mem::take(&mut self.remarks);
        if !self.ignored.is_empty() {
            notes.push(format!("ignored: {} (no effect in a simulation)", self.ignored.join(", ")));
        }
        notes
    }
}

/// Names of jobs for a note: all of a few.
fn some_jobs(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let quoted: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    match names.len() {
        1 => format!("job {}", quoted[0]),
        n if n > SHOWN => format!("jobs {} and {} more", quoted.join(", "), n - SHOWN),
        _ => format!("jobs {}", quoted.join(", ")),
    }
}

/// The most notes about a job file. More would not be read.
const NOTES_MAX: usize = 50;
/// How deep files may include each other, and how many may be included.
const INCLUDE_DEPTH_MAX: u32 = 16;
const INCLUDES_MAX: u32 = 256;

/// The file that a line includes: `include FILE`, or `include=FILE`.
fn included(line: &str) -> Option<&str> {
    let path = line.strip_prefix("include")?;
    let path = path.strip_prefix([' ', '\t', '='])?.trim();
    (!path.is_empty()).then_some(path)
}

/// Why an option of fio's is refused.
fn refused(name: &str, key: &str) -> String {
    let why = match name {
        "zone_reset_frequency"
        | "zone_reset_threshold"
        | "zonecapacity"
        | "max_open_zones"
        | "job_max_open_zones"
        | "ignore_zone_limits"
        | "read_beyond_wp" => "is about zoned disks, and none of the disk models has zones; remove it",
        "trim_percentage" | "trim_backlog" | "trim_backlog_batch" | "trim_verify_zero" => {
            "trims what was written and verified, which is not simulated; remove it, or use rw=trim in a job of its own"
        }
        "verify_only" => "reads what an earlier run has written, which is not simulated; use rw=read",
        _ => "is not simulated, and would change the load; remove it",
    };
    format!("option '{key}' {why}")
}

/// The line without its comment. fio ends a line at `#` or `;`, wherever they are. After `#!` at the start of
/// a line an option of ours is an option: fio sees a comment, we see `fh_…`.
fn strip_comment(line: &str) -> &str {
    let line = line.trim_start();
    let line =
        line.strip_prefix("#!").map(str::trim_start).filter(|rest| rest.starts_with("fh")).unwrap_or(line);
    line.find(['#', ';']).map_or(line, |end| &line[..end])
}

pub(super) fn unknown_option(key: &str) -> String {
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
