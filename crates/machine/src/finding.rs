//! What a check reports.

use crate::disks::Disk;
use crate::lab::Comparison;
use crate::machine::Machine;
use crate::requests;
use crate::text::shell_word;

/// What a finding is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The machine, or several disks.
    Machine,
    /// The disk of this name in `/sys/block`.
    Disk(String),
}

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Data may be lost, or a setting in a file has no effect.
    Fault,
    /// A better setting is known.
    Advice,
}

/// Something that is wrong, with the way out.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The name of the check, such as `scheduler-unfit`.
    pub check: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen: one sentence.
    pub what: String,
    /// Why it matters: one or two sentences.
    pub why: String,
    /// Loads that show the difference, one for each side that a change has; the lab gives the numbers.
    pub lab: Vec<Comparison>,
    /// The command that mends it, for a shell of root. Lines that are not commands begin with `#`.
    pub mend: String,
    /// The command that puts the old setting back.
    pub undo: String,
}

impl Finding {
    /// A finding without commands, the name of its check and a number.
    fn new(subject: Subject, severity: Severity, what: String, why: &str) -> Self {
        let (mend, undo) = (String::new(), String::new());
        Self { check: "", subject, severity, what, why: why.to_owned(), lab: Vec::new(), mend, undo }
    }

    /// A finding about a disk. [`crate::checks::run`] adds the name of the check.
    pub(crate) fn about(disk: &Disk, severity: Severity, what: String, why: &str) -> Self {
        Self::new(Subject::Disk(disk.name.clone()), severity, what, why)
    }

    /// A finding about the machine.
    pub(crate) fn about_machine(severity: Severity, what: String, why: &str) -> Self {
        Self::new(Subject::Machine, severity, what, why)
    }

    /// Adds what the lab can say about the change; nothing for a disk that it has no likeness of.
    pub(crate) fn compared(mut self, comparison: Option<Comparison>) -> Self {
        self.lab.extend(comparison);
        self
    }

    /// Adds commands, or comments in their place.
    pub(crate) fn by(mut self, mend: impl Into<String>, undo: impl Into<String>) -> Self {
        (self.mend, self.undo) = (mend.into(), undo.into());
        self
    }

    /// Adds the command that writes `new` to a file of the disk's `queue/`, and the one that writes `old`.
    pub(crate) fn set(mut self, disk: &Disk, file: &str, old: &str, new: &str) -> Self {
        let place = format!("/sys/block/{}/queue/{file}", disk.name);
        let command = |value: &str| format!("echo {value} > {}", shell_word(&place));
        (self.mend, self.undo) = (command(new), command(old));
        self
    }

    /// Adds the commands that choose another scheduler, or says that only another kernel would have it.
    pub(crate) fn choose_if(self, machine: &Machine, disk: &Disk, scheduler: &str) -> Self {
        if machine.can_have(disk, scheduler) {
            return self.choose(disk, scheduler);
        }
        let need = format!("# it needs {scheduler}, which this kernel cannot give {}", disk.name);
        self.by(need, "# nothing was changed")
    }

    /// Adds the commands that choose another scheduler, with enough requests for it, and go back.
    pub(crate) fn choose(self, disk: &Disk, scheduler: &str) -> Self {
        let old = disk.scheduler.clone().unwrap_or_default();
        let mut finding = self.set(disk, "scheduler", &old, scheduler);
        if !disk.offered.iter().any(|s| s == scheduler) {
            finding.mend = format!("modprobe {scheduler} && {}", finding.mend);
        }
        if let Some(requests) = requests::to_set_with(disk, scheduler) {
            let place = shell_word(&format!("/sys/block/{}/queue/nr_requests", disk.name)).into_owned();
            finding.mend = format!("{} && echo {requests} > {place}", finding.mend);
        }
        finding
    }
}
