//! The `#` lines of a log: how the disk and the scheduler were set, and who ran.
//!
//! ```text
//! # scenario bfq-rw scheduler=bfq rotational=1 device_depth=1
//! # low_latency=1
//! # nr_requests=256 kernel=6.18.44 hz=250
//! # group a weight=300                      a/b is inside a
//! # task 4711 group=a class=rt level=2
//! # run: fio --name=A --prioclass=1 --offset=500m …
//! ```
//!
//! Words with `=` are settings, wherever they stand. What a log does not show of a task, its group and its
//! class, comes from `task` lines or, without them, from the load's commands: see [`super::load`].

use super::load::{Load, Owner};
use super::words::Words;
use fairhead_core::{Class, Duration, Sector};
use std::collections::BTreeMap;

/// Which scheduler a log is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// BFQ.
    Bfq,
    /// mq-deadline.
    MqDeadline,
}

/// A line that tells a task.
const RIGHT: &str = "right is: # task PID group=NAME class=rt|be|idle level=0..7";

/// What the `#` lines say.
#[derive(Clone, Default, Debug)]
pub(super) struct Header {
    settings: BTreeMap<String, u64>,
    scheduler: Option<String>,
    load: Load,
    tasks: BTreeMap<u32, Owner>,
    /// The load's commands, and in which line of the log each stands.
    run: Vec<(u32, String)>,
}

impl Header {
    /// Reads one line, which begins with `#` and is line `number` of the log.
    pub(super) fn line(&mut self, number: u32, text: &str) -> Result<(), String> {
        let mut words = Words::new(text.trim_start_matches('#'));
        if words.pass("run:").is_some() {
            self.run.push((number, words.rest().to_owned()));
            return Ok(());
        }
        match words.clone().next() {
            Some("group") => return self.group(words),
            Some("task") => return self.task(words),
            _ => {}
        }
        for (name, value) in words.filter_map(|w| w.split_once('=')) {
            if name == "scheduler" {
                self.scheduler = Some(value.to_owned());
            } else if let Ok(value) = value.parse() {
                self.settings.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// All lines are read: looks into the load's commands. An error has the line of the log. Where the header
    /// names tasks itself, commands that are not understood do not matter.
    pub(super) fn finish(&mut self) -> Result<(), (u32, String)> {
        let (lines, commands): (Vec<_>, Vec<_>) = std::mem::take(&mut self.run).into_iter().unzip();
        let read = self.load.read(&commands.join("\n"));
        if !self.tasks.is_empty() {
            return Ok(());
        }
        read.map_err(|refusal| {
            let line = lines.get(refusal.line).or(lines.last()).copied().unwrap_or(0);
            (line, format!("the load has {}: which task is of which group and class? {RIGHT}", refusal.what))
        })
    }

    fn group(&mut self, mut words: Words<'_>) -> Result<(), String> {
        words.next();
        let name = words.next().ok_or("a group without a name; right is: # group NAME weight=100")?;
        let weight = words.next().and_then(|w| w.strip_prefix("weight=")?.parse().ok());
        let weight = weight.filter(|w| (1..=1000).contains(w));
        let weight = weight.ok_or("a group's weight is a number from 1 to 1000: # group NAME weight=100")?;
        self.load.groups.set_weight(name, weight);
        Ok(())
    }

    fn task(&mut self, mut words: Words<'_>) -> Result<(), String> {
        words.next();
        let pid =
            words.next().and_then(|w| w.parse().ok()).ok_or(format!("a task without a number; {RIGHT}"))?;
        let mut owner = Owner::default();
        for (name, value) in words.map(|w| w.split_once('=').unwrap_or((w, ""))) {
            let understood = match name {
                "group" => {
                    owner.group = self.load.groups.find_or_add(value);
                    true
                }
                "class" => {
                    owner.class = match value {
                        "rt" => Some(Class::RealTime),
                        "be" => Some(Class::BestEffort),
                        "idle" => Some(Class::Idle),
                        _ => None,
                    };
                    owner.class.is_some()
                }
                "level" => {
                    owner.level = value.parse().ok().filter(|l| *l < 8);
                    owner.level.is_some()
                }
                _ => false,
            };
            if !understood {
                let (name, value) = (readable(name), readable(value));
                return Err(format!("'{name}={value}' of a task is unknown; {RIGHT}"));
            }
        }
        self.tasks.insert(pid, owner);
        Ok(())
    }

    /// A setting by its name in sysfs, or in the recording.
    pub(super) fn setting(&self, name: &str) -> Option<u64> {
        self.settings.get(name).copied()
    }

    /// A setting that is a time in units of `unit`.
    pub(super) fn time(&self, name: &str, unit: Duration) -> Option<Duration> {
        self.setting(name).map(|value| unit * value)
    }

    /// The scheduler: as stated, or as its tunables tell.
    pub(super) fn scheduler(&self) -> Result<Scheduler, String> {
        match self.scheduler.as_deref() {
            Some("bfq") => Ok(Scheduler::Bfq),
            Some("mq-deadline") => Ok(Scheduler::MqDeadline),
            Some(other) => {
                let other = readable(other);
                Err(format!("scheduler={other}: only logs of bfq and mq-deadline can be compared"))
            }
            None if self.setting("writes_starved").is_some() => Ok(Scheduler::MqDeadline),
            None => Ok(Scheduler::Bfq),
        }
    }

    /// Finds the job of a task when its first request comes: from sector `first` on, at this priority level.
    pub(super) fn owner(&mut self, pid: u32, first: Sector, level: Option<u8>) -> Result<Owner, String> {
        if let Some(owner) = self.tasks.get(&pid) {
            return Ok(*owner);
        }
        self.load.owner(first, level).map_err(|jobs| {
            let first = first.0;
            format!("task {pid} begins at sector {first}, where {jobs} may be at work; {RIGHT} (here: # task {pid} …)")
        })
    }

    /// The groups and their weights.
    pub(super) fn groups(&self) -> &super::load::Groups {
        &self.load.groups
    }
}

/// A word of a log for a message: nothing but printable characters, and not many.
fn readable(word: &str) -> String {
    word.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(lines: &[&str]) -> Header {
        let mut header = Header::default();
        (1..).zip(lines).for_each(|(number, line)| header.line(number, line).unwrap());
        header.finish().unwrap();
        header
    }

    #[test]
    fn settings_stand_anywhere() {
        let h = header(&[
            "# scenario bfq-rw scheduler=bfq rotational=1 device_depth=4 bandwidth_MBps=50",
            "# low_latency=1",
            "# nr_requests=256 kernel=6.18.44 hz=250",
            "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
            "# tracer: blk",
            "#",
        ]);
        assert_eq!(h.scheduler(), Ok(Scheduler::Bfq));
        assert_eq!(h.setting("rotational"), Some(1));
        assert_eq!((h.setting("hz"), h.setting("low_latency")), (Some(250), Some(1)));
        assert_eq!((h.setting("kernel"), h.setting("slice_idle")), (None, None));
    }

    #[test]
    fn the_scheduler_shows_in_its_tunables() {
        assert_eq!(header(&["# writes_starved=2"]).scheduler(), Ok(Scheduler::MqDeadline));
        assert_eq!(header(&["# slice_idle=8"]).scheduler(), Ok(Scheduler::Bfq));
        assert!(header(&["# scheduler=kyber"]).scheduler().unwrap_err().contains("kyber"));
    }

    #[test]
    fn tasks_and_groups_can_be_stated() {
        let mut h =
            header(&["# group a weight=300", "# group a/b weight=50", "# task 7 group=a/b class=rt level=2"]);
        let owner = h.owner(7, Sector(0), None).unwrap();
        assert_eq!((owner.class, owner.level), (Some(Class::RealTime), Some(2)));
        let groups: Vec<_> = h.groups().iter().collect();
        assert_eq!(groups.len(), 2);
        assert_eq!(owner.group, groups[1].id);
        assert_eq!((groups[0].weight, groups[1].weight, groups[1].parent), (300, 50, Some(groups[0].id)));
        assert_eq!(h.owner(8, Sector(0), None), Ok(Owner::default()));
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (line, part) in [
            ("# group", "NAME"),
            ("# group a weight=0", "1 to 1000"),
            ("# task x", "PID"),
            ("# task 5 class=high", "class=high"),
            ("# task 5 level=9", "level"),
        ] {
            let error = Header::default().line(1, line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    /// The second line is the one that is not understood.
    #[test]
    fn a_load_that_is_not_understood_is_refused_with_its_line() {
        let lines = ["# scheduler=bfq", "# run: sleep 1", "# run: while :; do fio --name=a; done"];
        let mut header = Header::default();
        (1..).zip(lines).for_each(|(number, line)| header.line(number, line).unwrap());
        let (line, message) = header.clone().finish().unwrap_err();
        assert_eq!(line, 3);
        assert!(message.contains("`while`") && message.contains("# task PID"), "{message}");
        header.line(4, "# task 7 class=idle").unwrap();
        assert_eq!(header.finish(), Ok(()), "the tasks are named");
    }
}
