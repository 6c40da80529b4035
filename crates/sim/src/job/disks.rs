//! The disks of a run: which there are, and on which of them a job's files lie.
//!
//! ```text
//! filename=/dev/nvme0n1:/dev/nvme1n1      the disks nvme0n1 and nvme1n1, one file on each
//! fh_disk=data                            this job's files lie on the disk `data`
//! fh_disk=d0,d1,d2,d3                     its clones' files by turns on four disks
//! fh_disk=log:nas2020:mq-deadline         …on `log`, which is a nas2020 under mq-deadline
//! ```
//!
//! A file of no disk lies on the *first* disk: the first that a `filename` names; without any, one of its
//! own, called `disk`. A disk whose model is not said is the run's
//! ([`Scenario::disk`](crate::Scenario::disk)), and so is its scheduler. A partition is its drive.
//!
//! What it does not do: read descriptions from files, which is the caller's business
//! ([`JobFile::read_disks`](super::JobFile::read_disks)).

use fairhead_core::sched::any::{PRESETS, preset};
use fairhead_device::{DeviceParams, preset_names};

use super::error::clean;
use super::load::Engine;
use super::nearest::nearest;
use super::value::Arg;

/// The most disks of a run.
pub const DISKS_MAX: usize = 64;
/// The longest name of a disk, in bytes.
const LABEL_MAX: usize = 64;
/// What files of no disk lie on, if no file name names one.
const OWN: &str = "disk";
/// The file name of a replay without one of its own. It names no disk: the replay is on the first.
pub(super) const WHOLE_DISK: &str = "/dev/disk";

/// A disk of a run: its place in [`JobFile::disks`](super::JobFile::disks), 0 if there is one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskId(pub u8);

impl DiskId {
    /// The place in [`JobFile::disks`](super::JobFile::disks).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A disk that a job file names.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// The name in the job file.
    pub label: String,
    /// The model of the disk. `None`: the run's disk.
    pub model: Option<Model>,
    /// The preset of its scheduler. `None`: the run's.
    pub scheduler: Option<&'static str>,
}

/// The model of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name as written: a preset, or a file with a description.
    pub name: String,
    /// The line that names it.
    pub line: u32,
    /// The description, once it is read; presets always have it.
    pub params: Option<Box<DeviceParams>>,
}

/// The value of `fh_disk`: disks, with commas between them.
pub(super) fn value(arg: &Arg<'_>) -> Result<Vec<Disk>, String> {
    arg.value.split(',').map(|text| disk(arg.value, text.trim())).collect()
}

fn disk(all: &str, text: &str) -> Result<Disk, String> {
    let wrong = |what: String| format!("'fh_disk={}': {what}", clean(all));
    let mut parts = text.split(':').map(str::trim);
    let label = parts.next().unwrap_or_default();
    let (model, scheduler) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if parts.next().is_some() {
        return Err(wrong("write NAME, NAME:MODEL or NAME:MODEL:SCHEDULER".to_owned()));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let label = device(label).unwrap_or(label);
    if label.is_empty() || label.len() > LABEL_MAX || !label.chars().all(is_plain) {
        return Err(wrong(format!(
            "'{}' is no name of a disk; letters, digits and -_./ are, {LABEL_MAX} at most",
            clean(label)
        )));
    }
    let scheduler = match preset(scheduler) {
        None if !scheduler.is_empty() => {
            return Err(wrong(match nearest(scheduler, PRESETS.iter().map(|p| p.name)) {
                Some(word) => format!("unknown scheduler '{}'; did you mean '{word}'?", clean(scheduler)),
                None => format!("unknown scheduler '{}'; see fairhead list schedulers", clean(scheduler)),
            }));
        }
        p => p.map(|p| p.name),
    };
    let params = match preset_names().contains(&model) {
        true => Some(Box::new(DeviceParams::preset(model).map_err(|e| wrong(e.to_string()))?)),
        false => None,
    };
    let model = (!model.is_empty()).then(|| Model { name: model.to_owned(), line: 0, params });
    Ok(Disk { label: label.to_owned(), model, scheduler })
}

/// The drive that a path names: what is behind `/dev/`, without the number of a partition.
//= linux Documentation/admin-guide/devices.txt: disks end in a letter or a number, partitions in a number or in p and a number
fn device(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/dev/").filter(|name| !name.is_empty())?;
    let without = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if without.len() == name.len() || without.is_empty() {
        return Some(name);
    }
    // nvme0n1p2, mmcblk0p1, md0p1, loop0p1; and by-id/…-part1.
    if let Some(drive) = without.strip_suffix("-part") {
        return Some(drive);
    }
    if let Some(drive) = without.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit())) {
        return Some(drive);
    }
    let is_lettered = ["sd", "hd", "vd", "xvd"].into_iter().any(|kind| {
        without.strip_prefix(kind).is_some_and(|l| !l.is_empty() && l.bytes().all(|b| b.is_ascii_lowercase()))
    });
    Some(if is_lettered { without } else { name })
}

/// The drive that the file name of a job with this engine names.
pub(super) fn drive(engine: Engine, name: &str) -> Option<&str> {
    device(name).filter(|_| engine != Engine::Null && name != WHOLE_DISK)
}

/// The disks that the sections so far have named.
#[derive(Debug, Default)]
pub(super) struct Disks {
    /// Those that `fh_disk` names, and whether a `filename` names them, too.
    named: Vec<(Disk, bool)>,
    /// A job has files of no disk.
    has_plain: bool,
}

impl Disks {
    /// Adds the disks of a job: those of its `fh_disk`, which is in that line, and those of its file names.
    /// Returns the names of the former.
    pub(super) fn join(
        &mut self,
        job: &str,
        (engine, filenames): (Engine, &[String]),
        disks: Vec<Disk>,
        line: u32,
    ) -> Result<Vec<String>, String> {
        let labels: Vec<String> = disks.iter().map(|d| d.label.clone()).collect();
        for mut disk in disks {
            if let Some(model) = &mut disk.model {
                model.line = line;
            }
            self.add(disk)?;
        }
        let drives: Vec<&str> = filenames.iter().filter_map(|f| drive(engine, f)).collect();
        for &label in &drives {
            if !labels.is_empty() && !labels.iter().any(|d| d == label) {
                return Err(format!(
                    "job '{}': filename=/dev/{} names a disk that fh_disk={} does not; leave one of them out, or name it in both",
                    clean(job),
                    clean(label),
                    clean(&labels.join(","))
                ));
            }
            self.add(Disk { label: label.to_owned(), model: None, scheduler: None })?;
            self.named.iter_mut().filter(|d| d.0.label == label).for_each(|d| d.1 = true);
        }
        let moves_data = engine != Engine::Null;
        self.has_plain |= moves_data && labels.is_empty() && drives.len() < filenames.len().max(1);
        Ok(labels)
    }

    fn add(&mut self, disk: Disk) -> Result<(), String> {
        let Some((known, _)) = self.named.iter_mut().find(|d| d.0.label == disk.label) else {
            self.named.push((disk, false));
            return Ok(());
        };
        let differ = |was: &str, is: &str| {
            Err(format!("fh_disk: '{}' is a {} here, and was a {}", disk.label, clean(is), clean(was)))
        };
        match (&known.model, &disk.model) {
            (Some(was), Some(is)) if was.name != is.name => return differ(&was.name, &is.name),
            (None, Some(_)) => known.model.clone_from(&disk.model),
            _ => {}
        }
        match (known.scheduler, disk.scheduler) {
            (Some(was), Some(is)) if was != is => {
                return Err(format!("fh_disk: '{}' is under {is} here, and was under {was}", disk.label));
            }
            (None, is) => known.scheduler = is,
            _ => {}
        }
        Ok(())
    }

    /// All disks, the first of them that of files of no disk. Empty if none is named.
    pub(super) fn finish(self) -> Result<Vec<Disk>, String> {
        let mut all = self.named;
        if self.has_plain && !all.is_empty() {
            let own = || Disk { label: OWN.to_owned(), model: None, scheduler: None };
            let at = all.iter().position(|d| d.1).or_else(|| all.iter().position(|d| d.0.label == OWN));
            let first = at.map_or_else(|| (own(), false), |at| all.remove(at));
            all.insert(0, first);
        }
        if all.len() > DISKS_MAX {
            return Err(format!("there are {} disks; at most {DISKS_MAX}", all.len()));
        }
        Ok(all.into_iter().map(|d| d.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobFile, parse};

    fn labels(file: &JobFile) -> Vec<&str> {
        file.disks.iter().map(|d| d.label.as_str()).collect()
    }

    #[test]
    fn a_partition_is_its_drive() {
        for (path, drive) in [
            ("/dev/sda", "sda"),
            ("/dev/sdb3", "sdb"),
            ("/dev/vdaa12", "vdaa"),
            ("/dev/nvme0n1", "nvme0n1"),
            ("/dev/nvme0n1p2", "nvme0n1"),
            ("/dev/mmcblk0p1", "mmcblk0"),
            ("/dev/md0", "md0"),
            ("/dev/md127p1", "md127"),
            ("/dev/mapper/vg-data2", "mapper/vg-data2"),
            ("/dev/disk/by-id/ata-X5-part3", "disk/by-id/ata-X5"),
            ("/dev/dm-0", "dm-0"),
        ] {
            assert_eq!(device(path), Some(drive), "{path}");
        }
        assert_eq!((device("a.img"), device("/dev/")), (None, None));
    }

    #[test]
    fn one_device_or_none_is_one_disk() {
        let none = parse("[a]\nsize=1m\n", "t").unwrap();
        assert!(none.disks.is_empty());
        let one = parse("[a]\nfilename=/dev/sda1\n[b]\nsize=1m\n[c]\nfilename=/dev/sda2\n", "t").unwrap();
        assert_eq!(labels(&one), ["sda"]);
        assert!(one.jobs.iter().all(|j| one.disk_of(j, 0, 0) == DiskId(0)));
        let no_disk = parse("[a]\nfilename=/dev/null\nsize=1m\n[b]\nfilename=/dev/sda\n", "t").unwrap();
        assert_eq!(labels(&no_disk), ["sda"]);
    }

    #[test]
    fn files_of_no_disk_lie_on_the_first() {
        let text = "[plain]\nsize=1m\n[a]\nfilename=/dev/sda:/dev/sdb\n[c]\nsize=1m\nfh_disk=x\n";
        let file = parse(text, "t").unwrap();
        assert_eq!(labels(&file), ["sda", "sdb", "x"]);
        let of = |job: usize, n: usize| file.disk_of(&file.jobs[job], 0, n).0;
        assert_eq!((of(0, 0), of(1, 0), of(1, 1), of(2, 0)), (0, 0, 1, 2));
        let own = parse("[a]\nsize=1m\nfh_disk=x:nas2020\n[plain]\nsize=1m\n", "t").unwrap();
        assert_eq!(labels(&own), ["disk", "x"]);
        assert_eq!(own.disk_of(&own.jobs[0], 0, 0), DiskId(1));
        let all = parse("[global]\n#!fh_disk=x\n[a]\nsize=1m\n[b]\nsize=1m\n", "t").unwrap();
        assert_eq!(labels(&all), ["x"]);
    }

    #[test]
    fn files_go_to_several_disks_by_turns() {
        let file = parse("[a]\nsize=1m\nnumjobs=8\nfh_disk=d0,d1,d2,d3\n", "t").unwrap();
        let of: Vec<u8> = (0..8).map(|c| file.disk_of(&file.jobs[0], c, 0).0).collect();
        assert_eq!(of, [0, 1, 2, 3, 0, 1, 2, 3]);
        let file = parse("[a]\nsize=1m\nnumjobs=2\nnrfiles=3\nfh_disk=d0,d1\n", "t").unwrap();
        let of: Vec<u8> = (0..6).map(|i| file.disk_of(&file.jobs[0], i / 3, i as usize % 3).0).collect();
        assert_eq!(of, [0, 1, 0, 1, 0, 1]);
        let shared = parse("[a]\nsize=1m\nnumjobs=2\nfilename=p:q\nfh_disk=d0,d1\n", "t").unwrap();
        let of: Vec<u8> = (0..4).map(|i| shared.disk_of(&shared.jobs[0], i / 2, i as usize % 2).0).collect();
        assert_eq!(of, [0, 1, 0, 1], "a file that clones share is on one disk");
    }

    #[test]
    fn a_disk_has_a_model_and_a_scheduler_of_its_own() {
        let file =
            parse("[a]\nsize=1m\nfh_disk=x:nvme:kyber,y\n[b]\nsize=1m\nfh_disk=y::bfq\n", "t").unwrap();
        let x = &file.disks[0];
        let model = x.model.as_ref().unwrap();
        assert_eq!((model.name.as_str(), model.line, x.scheduler), ("nvme", 3, Some("kyber")));
        assert_eq!(model.params.as_deref(), Some(&DeviceParams::preset("nvme").unwrap()));
        assert_eq!((&file.disks[1].model, file.disks[1].scheduler), (&None, Some("bfq")));
        let mut mine = parse("[a]\nsize=1m\nfh_disk=x:mine.toml\n", "t").unwrap();
        let failed = mine.clone().read_disks(|name| Err(format!("no file '{name}'"))).unwrap_err();
        assert_eq!(failed.to_string(), "t:3: no file 'mine.toml'");
        mine.read_disks(|_| Ok(DeviceParams::preset("ide2004").unwrap())).unwrap();
        assert!(mine.disks[0].model.as_ref().unwrap().params.is_some());
    }

    #[test]
    fn what_is_wrong_with_a_disk_is_named() {
        for (text, wrong) in [
            ("fh_disk=a b", "'a b' is no name of a disk"),
            ("fh_disk=a,", "'' is no name of a disk"),
            ("fh_disk=a:nvme:bqf", "unknown scheduler 'bqf'; did you mean 'bfq'?"),
            ("fh_disk=a:nvme:bfq:x", "write NAME, NAME:MODEL or NAME:MODEL:SCHEDULER"),
            ("fh_disk=a:nvme,a:nas2020", "'a' is a nas2020 here, and was a nvme"),
            ("fh_disk=a::bfq,a::noop", "'a' is under noop here, and was under bfq"),
            ("filename=/dev/sdb\nfh_disk=a", "filename=/dev/sdb names a disk that fh_disk=a does not"),
        ] {
            let error = parse(&format!("[job]\nsize=1m\n{text}\n"), "t").unwrap_err().to_string();
            assert!(error.contains(wrong) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
