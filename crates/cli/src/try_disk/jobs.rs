//! A job file under fio while a trial runs: a process for each section, so that requests have the section of
//! their process.
//!
//! All processes of fio have one name. So each section gets a fio of its own, and requests are those of the
//! section whose fio the thread descends from. A section that ends before the trial does is started again,
//! and all are with each change of scheduler: the kernel's BFQ may take programs that all had their first
//! request under it at once for one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fairhead_machine::ends_with_parent;
use fairhead_sim::job::{self, Kind};
use fairhead_sim::satisfaction::kind;

use crate::error::CliError;

/// The sections, and their processes.
pub(super) struct Jobs {
    file: PathBuf,
    sections: Vec<Section>,
    /// What each section is; none of a file with options that the lab does not know.
    kinds: BTreeMap<String, Kind>,
    /// Threads of all processes, by number, with the index of their section. Old ones stay: a number that is
    /// used again soon is unlikely.
    threads: BTreeMap<u32, usize>,
    looks: u32,
}

struct Section {
    name: String,
    fio: Option<Child>,
}

/// How often threads are looked for: each fourth step of a trial.
const LOOK: u32 = 4;

impl Jobs {
    /// Reads the names of the sections.
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let misuse = |e: &dyn std::fmt::Display| CliError::Misuse(format!("'{}': {e}", file.display()));
        let text = fs::read_to_string(file).map_err(|e| misuse(&e))?;
        let names = text.lines().filter_map(|l| l.trim().strip_prefix('[')?.strip_suffix(']'));
        let section = |name: &str| Section { name: name.to_owned(), fio: None };
        let sections: Vec<Section> = names.filter(|n| *n != "global").map(section).collect();
        if sections.is_empty() {
            return Err(misuse(&"no job in it: a job begins with a line [NAME]"));
        }
        Command::new("fio").arg("--version").stdout(Stdio::null()).status().map_err(|e| {
            CliError::Failed(format!("--job needs the program fio, which cannot be run: {e}"))
        })?;
        let kinds = kinds(&text);
        let file = file.canonicalize().map_err(|e| misuse(&e))?;
        Ok(Self { file, sections, kinds, threads: BTreeMap::new(), looks: 0 })
    }

    /// Starts what does not run, and looks for new threads.
    pub(super) fn tend(&mut self) -> Result<(), CliError> {
        for at in 0..self.sections.len() {
            self.restart(at)?;
        }
        if self.looks.is_multiple_of(LOOK) {
            for (at, section) in self.sections.iter().enumerate() {
                section.fio.iter().for_each(|fio| descend(fio.id(), at, &mut self.threads));
            }
        }
        self.looks += 1;
        Ok(())
    }

    fn restart(&mut self, at: usize) -> Result<(), CliError> {
        let section = &mut self.sections[at];
        let failed = |e: std::io::Error| CliError::Failed(format!("cannot run fio: {e}"));
        if let Some(fio) = &mut section.fio {
            let Some(status) = fio.try_wait().map_err(failed)? else { return Ok(()) };
            if !status.success() {
                let hint = format!("fio --section={} {} shows why", section.name, self.file.display());
                return Err(CliError::Failed(format!(
                    "fio ended with {status} in job {}; {hint}",
                    section.name
                )));
            }
        }
        let mut command = Command::new("fio");
        command.arg(format!("--section={}", section.name)).arg(&self.file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        section.fio = Some(ends_with_parent(&mut command).spawn().map_err(failed)?);
        Ok(())
    }

    /// What the section of this name is.
    pub(super) fn kind(&self, section: &str) -> Option<Kind> {
        self.kinds.get(section).copied()
    }

    /// The name of the section that the thread works for.
    pub(super) fn name(&self, thread: u32) -> Option<String> {
        self.threads.get(&thread).map(|at| self.sections[*at].name.clone())
    }
}

fn kinds(text: &str) -> BTreeMap<String, Kind> {
    let Ok(jobs) = job::parse(text, "job") else { return BTreeMap::new() };
    jobs.jobs.iter().map(|job| (job.name.clone(), kind(&jobs, job))).collect()
}

/// Notes the threads of a process and of all that it has started.
fn descend(pid: u32, at: usize, threads: &mut BTreeMap<u32, usize>) {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        threads.insert(thread, at);
        let children = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|c| c.parse().ok()).for_each(|c| descend(c, at, threads));
    }
}

impl Jobs {
    /// Ends all processes; the next [`Self::tend`] starts them again.
    pub(super) fn end(&mut self) {
        for fio in self.sections.iter_mut().filter_map(|s| s.fio.as_mut()) {
            // fio ends its jobs on SIGTERM; on SIGKILL it could not.
            let _ = Command::new("kill").arg(fio.id().to_string()).stderr(Stdio::null()).status();
            let _ = fio.wait();
        }
        self.sections.iter_mut().for_each(|s| s.fio = None);
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end();
    }
}
