//! Machines of other people, as small text trees: what doctor finds on each, who it says has set a scheduler,
//! and that it finds nothing else.
//!
//! ```text
//! === NAME                          a machine; all that follows is about it
//! expect CHECK DISK                 a finding (DISK is `machine` for one that is about no disk)
//! do COMMAND                        the command of the finding before
//! says WORDS                        what the finding before says somewhere
//! setter DISK WHO                   kernel, unknown, patched, elevator=…, tuned PROFILE, tlp FILE, udev FILE:LINE
//! kind DISK WORDS                   the kind, in doctor's words
//! disks NAME NAME                   all disks that are looked at
//! PATH = TEXT                       a file, from the root; \n and \x1b are characters
//! PATH -> TARGET                    a link, from the root
//! file PATH                         a file, with the lines after it that begin with `|`
//! disk NAME 8:0 PATH                a disk below /sys/devices/PATH, with the settings that most have
//! hdd NAME 8:0 SCHEDULER            a rotating disk on SATA under a scheduler of Linux 5.0 and later
//! ssd NAME 8:0 SCHEDULER            an SSD on SATA
//! nvme NAME 259:0 SCHEDULER         an SSD on NVMe with four queues
//!   mq 4                            its hardware queues
//!   FILE = TEXT                     a file in its folder
//!   FILE -> TARGET                  a link in its folder
//!   without FILE                    it has no such file
//! source ADDRESS                    of the museum: where the complaint is (museum.rs says what the others are)
//! title, complaint, files, answer, pays, unanswered TEXT
//! + TEXT                            continues the text before
//! ```

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fairhead_machine::{Machine, Setter, Subject, Tree, checks};

/// Files that each machine has unless its text says otherwise.
const MACHINE: [(&str, &str); 5] = [
    ("proc/cmdline", "root=/dev/sda1 quiet"),
    ("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0"),
    ("proc/sys/kernel/osrelease", "6.12.0-1-amd64"),
    ("sys/fs/cgroup/cgroup.controllers", "cpu io memory"),
    ("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory"),
];

/// Files that each disk has.
const DISK: [(&str, &str); 10] = [
    ("size", "3907029168"),
    ("ro", "0"),
    ("removable", "0"),
    ("queue/add_random", "0"),
    ("queue/iostats", "1"),
    ("queue/nomerges", "0"),
    ("queue/nr_requests", "256"),
    ("queue/read_ahead_kb", "128"),
    ("queue/write_cache", "write back"),
    ("queue/zoned", "none"),
];

/// What a text says of its machine.
#[derive(Default)]
pub(crate) struct Expected {
    /// Check and subject of each finding, its command if that is given, and words in it.
    pub(crate) findings: Vec<(String, Option<String>, Vec<String>)>,
    /// What the museum has about the machine: field and text.
    pub(crate) story: Vec<(String, String)>,
    setters: Vec<(String, String)>,
    kinds: Vec<(String, String)>,
    disks: Option<String>,
}

/// A folder that is being filled.
pub(crate) struct Root {
    pub(crate) folder: tempfile::TempDir,
    /// The folder of the disk that lines with a space in front are about.
    disk: String,
    /// The file that lines with a bar are for.
    file: String,
}

impl Root {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Self { folder, disk: String::new(), file: String::new() };
        MACHINE.iter().for_each(|(path, text)| root.write(path, text));
        root
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.place(path), unescaped(text)).unwrap();
    }

    fn add_disk(&mut self, words: &str) {
        let [name, device, path] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("disk {words}") };
        self.disk = format!("sys/devices/{path}/block/{name}");
        DISK.iter().for_each(|(file, text)| self.write(&format!("{}/{file}", self.disk), text));
        self.write(&format!("{}/dev", self.disk), device);
        self.write(&format!("run/udev/data/b{device}"), &format!("E:ID_SERIAL=Ser_{name}"));
        let target = format!("../{}", self.disk.trim_start_matches("sys/"));
        symlink(target, self.place(&format!("sys/block/{name}"))).unwrap();
    }

    /// A disk as most are, of this kind.
    fn add_usual(&mut self, kind: &str, words: &str) {
        let [name, device, scheduler] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("{words}") };
        let n = device.split(':').nth(1).unwrap().parse::<u32>().unwrap() / 16 + 1;
        let path = match kind {
            "nvme" => format!("pci0000:00/0000:0{n}:00.0/nvme/nvme0"),
            _ => format!("pci0000:00/0000:00:17.0/ata{n}/host{n}/target{n}:0:0/{n}:0:0:0"),
        };
        self.add_disk(&format!("{name} {device} {path}"));
        let offered = "none mq-deadline kyber bfq";
        let chosen = offered.replace(scheduler, &format!("[{scheduler}]"));
        let (model, rotational, wbt) = match kind {
            "hdd" => ("WDC WD4003", "1", if scheduler == "bfq" { "0" } else { "75000" }),
            "ssd" => ("Samsung SSD 870", "0", if scheduler == "bfq" { "0" } else { "2000" }),
            _ => ("Samsung SSD 980", "0", if scheduler == "bfq" { "0" } else { "2000" }),
        };
        for (file, text) in [
            ("device/model", model),
            ("queue/rotational", rotational),
            ("queue/wbt_lat_usec", wbt),
            ("queue/scheduler", &chosen),
        ] {
            self.about_disk(&format!("{file} = {text}"));
        }
        self.about_disk(if kind == "nvme" { "mq 4" } else { "mq 1" });
        if kind != "nvme" {
            self.about_disk("device/queue_depth = 32");
        }
        if scheduler == "bfq" {
            self.about_disk("queue/iosched/low_latency = 1");
            self.about_disk("queue/iosched/slice_idle = 8");
        }
    }

    /// A line about the present disk.
    fn about_disk(&self, line: &str) {
        if let Some(count) = line.strip_prefix("mq ") {
            let queues: usize = count.parse().unwrap();
            (0..queues).for_each(|q| self.write(&format!("{}/mq/{q}/cpu_list", self.disk), "0"));
        } else if let Some(file) = line.strip_prefix("without ") {
            std::fs::remove_file(self.place(&format!("{}/{file}", self.disk))).unwrap();
        } else if let Some((file, target)) = line.split_once(" -> ") {
            symlink(target, self.place(&format!("{}/{file}", self.disk))).unwrap();
        } else {
            let (file, text) = line.split_once('=').unwrap_or_else(|| panic!("'{line}'"));
            self.write(&format!("{}/{}", self.disk, file.trim_end()), text.trim_start());
        }
    }

    fn line(&mut self, line: &str, expected: &mut Expected) {
        if let Some(line) = line.strip_prefix("  ") {
            return self.about_disk(line);
        }
        if let Some(text) = line.strip_prefix('|') {
            let place = self.place(&self.file);
            let before = std::fs::read_to_string(&place).unwrap();
            let text = text.strip_prefix(' ').unwrap_or(text);
            return std::fs::write(place, format!("{before}{text}\n")).unwrap();
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let two = || rest.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        match word {
            "expect" => expected.findings.push((rest.to_owned(), None, Vec::new())),
            "do" => expected.findings.last_mut().unwrap().1 = Some(rest.to_owned()),
            "says" => expected.findings.last_mut().unwrap().2.push(rest.to_owned()),
            "setter" => expected.setters.push(two()),
            "kind" => expected.kinds.push(two()),
            "disks" => expected.disks = Some(rest.to_owned()),
            "source" | "title" | "complaint" | "files" | "answer" | "pays" | "unanswered" => {
                expected.story.push((word.to_owned(), rest.to_owned()));
            }
            "+" => {
                let text = &mut expected.story.last_mut().unwrap().1;
                text.push(' ');
                text.push_str(rest);
            }
            "disk" => self.add_disk(rest),
            "hdd" | "ssd" | "nvme" => self.add_usual(word, rest),
            "file" => {
                rest.clone_into(&mut self.file);
                self.write(rest, "");
            }
            path => match rest.strip_prefix("-> ") {
                Some(target) => {
                    let place = self.place(path);
                    // A machine has some files before its text.
                    let _ = std::fs::remove_file(&place);
                    symlink(target, place).unwrap();
                }
                None => self.write(path, rest.strip_prefix("= ").unwrap_or_default()),
            },
        }
    }
}

/// The text with `\n`, `\\` and `\x1b` as characters.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (c, length) = match after.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'x') => (char::from(u8::from_str_radix(&after[1..3], 16).unwrap()), 3),
            _ => ('\\', 1),
        };
        out.push(c);
        rest = &after[length..];
    }
    out + rest
}

fn setter(machine: &Machine, disk: &str) -> String {
    let Some(disk) = machine.disk(disk) else { return format!("no disk {disk}") };
    match machine.setter(disk) {
        Some(Setter::Udev(file, line)) => format!("udev {file}:{line}"),
        Some(Setter::Tuned(profile)) => format!("tuned {profile}"),
        Some(Setter::Tlp(file)) => format!("tlp {file}"),
        Some(Setter::CommandLine(word)) => word,
        Some(Setter::Kernel) => "kernel".to_owned(),
        Some(Setter::Patched) => "patched".to_owned(),
        Some(Setter::Unknown) => "unknown".to_owned(),
        None => "none".to_owned(),
    }
}

/// What is other than the text says.
pub(crate) fn differences(root: &Path, expected: &Expected) -> Vec<String> {
    let machine = Machine::read(&Tree::new(root));
    let mut wrong = Vec::new();
    let mut left = checks::run(&machine);
    for (what, command, words) in &expected.findings {
        let is = |f: &fairhead_machine::Finding| match &f.subject {
            Subject::Machine => format!("{} machine", f.check) == *what,
            Subject::Disk(disk) => format!("{} {disk}", f.check) == *what,
        };
        let Some(at) = left.iter().position(is) else {
            wrong.push(format!("does not find {what}"));
            continue;
        };
        let found = left.remove(at);
        if command.as_ref().is_some_and(|c| *c != found.mend) {
            wrong.push(format!("says to do '{}'", found.mend));
        }
        let said = format!("{} {} {} {}", found.what, found.why, found.mend, found.undo);
        wrong.extend(words.iter().filter(|w| !said.contains(*w)).map(|w| format!("no '{w}' in '{said}'")));
    }
    wrong.extend(left.iter().map(|f| format!("finds {} too: {}", f.check, f.what)));
    for (disk, who) in &expected.setters {
        let said = setter(&machine, disk);
        if said != *who {
            wrong.push(format!("{disk} is set by {said}, not by {who}"));
        }
    }
    for (disk, kind) in &expected.kinds {
        let said = machine.disk(disk).map_or("none", |d| d.kind.name());
        if said != kind {
            wrong.push(format!("{disk} is a {said}"));
        }
    }
    let names: Vec<&str> = machine.disks.iter().map(|d| d.name.as_str()).collect();
    if expected.disks.as_ref().is_some_and(|d| *d != names.join(" ")) {
        wrong.push(format!("looks at {}", names.join(" ")));
    }
    wrong
}

/// The machines of a text.
pub(crate) fn machines(text: &str) -> Vec<(&str, Root, Expected)> {
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut machines: Vec<(&str, Root, Expected)> = Vec::new();
    for line in lines {
        if let Some(name) = line.strip_prefix("=== ") {
            machines.push((name, Root::new(), Expected::default()));
        } else {
            let (_, root, expected) = machines.last_mut().expect("a line before the first machine");
            root.line(line, expected);
        }
    }
    machines
}

/// Tries each machine of the text. Returns how many there are.
fn try_all(text: &str) -> usize {
    let machines = machines(text);
    let wrong: Vec<String> = machines
        .iter()
        .flat_map(|(name, root, expected)| {
            differences(root.folder.path(), expected).into_iter().map(move |w| format!("{name}: {w}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    machines.len()
}

#[test]
fn the_given_trees() {
    assert_eq!(try_all(include_str!("../trees/given.tree")), 14);
}

/// Kinds of disks, and disks made of others, as the kernel's documentation of sysfs has them.
#[test]
fn trees_of_disks() {
    assert!(try_all(include_str!("../trees/disks.tree")) >= 30);
}

/// What other versions of the kernel do, and patched ones.
#[test]
fn trees_of_kernels() {
    assert!(try_all(include_str!("../trees/kernels.tree")) >= 18);
}

/// Rules as udev(7) has them.
#[test]
fn trees_of_udev() {
    assert!(try_all(include_str!("../trees/udev.tree")) >= 18);
}

/// Profiles as tuned.conf(5) has them, and TLP's settings.
#[test]
fn trees_of_tuned_and_tlp() {
    assert!(try_all(include_str!("../trees/daemons.tree")) >= 22);
}

/// Files of administrators that are cut off, or hold other things, are no reason to fail.
#[test]
fn rubbish_in_files_of_settings_is_no_panic() {
    let rubbish: [&[u8]; 8] = [
        b"",
        b"\xff\xfe\x00",
        b"[disk",
        b"[disk]\nelevator",
        b"A{=\"",
        b"KEY==\"\\\"",
        b"=\n+=\n[]\n]",
        b"E:\nS:",
    ];
    for text in [include_str!("../trees/daemons.tree"), include_str!("../trees/udev.tree")] {
        for (_, root, _) in machines(text) {
            let tree = root.folder.path();
            let files = text_files(tree, "etc").into_iter().chain(text_files(tree, "usr"));
            for file in files.chain(text_files(tree, "run")) {
                let before = std::fs::read(&file).unwrap();
                for text in rubbish.iter().copied().chain([&before[..before.len() / 2]]) {
                    std::fs::write(&file, text).unwrap();
                    let _ = checks::run(&Machine::read(&Tree::new(tree)));
                }
                std::fs::write(&file, before).unwrap();
            }
        }
    }
}

fn text_files(root: &Path, folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.map(Result::unwrap) {
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files.extend(text_files(root, &name)),
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}
