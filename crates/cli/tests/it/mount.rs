//! `fairhead mount` as a program: how many descriptors it has, and how its mounts look from outside.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::may_mount;
use crate::process::{Process, start};
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The most descriptors of the program in these tests.
const DESCRIPTORS: usize = 1024;
/// Files that are walked over. `FAIRHEAD_FILES` says how many.
const FILES: usize = 4_000;
/// A user and group without any right.
const NOBODY: u32 = 65534;

/// The way in which a mount opens its files again.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ways {
    Handles,
    /// The program may not use file handles.
    Names,
}

/// A folder, and a mount of it by the program under a limit of descriptors. Both are gone with the test.
struct Mounted {
    process: Option<Process>,
    folder: TempDir,
}

impl Mounted {
    /// `None` where nothing can be mounted, or a program for it is not there.
    fn new(ways: Ways, fill: impl FnOnce(&Path)) -> Option<Self> {
        if !may_mount::may_mount() {
            return None;
        }
        let all = Permissions::from_mode(0o755);
        let folder =
            tempfile::Builder::new().permissions(all).tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        ["source", "mnt"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        fill(&folder.path().join("source"));
        let mut mounted = Self { process: None, folder };
        mounted.process = Some(mounted.start(ways)?);
        Some(mounted)
    }

    fn start(&self, ways: Ways) -> Option<Process> {
        let without = match ways {
            Ways::Handles => "",
            Ways::Names => "setpriv --bounding-set=-dac_read_search",
        };
        if ways == Ways::Names && Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("skipped: setpriv is not installed");
            return None;
        }
        // The soft limit is lower: the program raises it.
        let script = format!(
            "ulimit -Sn 256 && ulimit -Hn {DESCRIPTORS} && exec {without} {} mount source mnt --sched noop",
            env!("CARGO_BIN_EXE_fairhead")
        );
        let (process, line, _) =
            start(Command::new("sh").args(["-c", &script]).current_dir(self.folder.path()));
        assert!(line.contains("Ctrl-C ends it"), "{line}");
        Some(process)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("mnt").join(name)
    }

    fn below(&self, name: &str) -> PathBuf {
        self.folder.path().join("source").join(name)
    }

    fn id(&self) -> u32 {
        self.process.as_ref().expect("there until it is dropped").0.id()
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap().count()
    }

    /// The most memory that it has ever had, in KiB.
    fn memory_max(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.process.take());
        // Without its server nothing is left of it but the name.
        let _ = Command::new("umount").arg("--lazy").arg(self.at("")).status();
    }
}

/// A line of a program that another user runs.
fn said_to_nobody(program: &str, arguments: &[&Path]) -> Result<String, String> {
    let out = Command::new(program).args(arguments).uid(NOBODY).gid(NOBODY).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
}

/// Makes files, 1,000 in a folder, and one more.
fn fill(source: &Path, files: usize) {
    for i in 0..files {
        let folder = source.join(format!("{}", i / 1000));
        if i % 1000 == 0 {
            fs::create_dir(&folder).unwrap();
        }
        File::create(folder.join(format!("{i}"))).unwrap();
    }
    fs::write(source.join("one"), b"one").unwrap();
}

/// Looks at all files in a folder and below.
fn walk(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        count += if meta.is_dir() { walk(&path) } else { 1 };
    }
    count
}

#[test]
fn many_more_files_than_descriptors_are_walked_over() {
    let files = std::env::var("FAIRHEAD_FILES").map_or(FILES, |n| n.parse().expect("a number of files"));
    for ways in [Ways::Handles, Ways::Names] {
        let Some(mounted) = Mounted::new(ways, |source| fill(source, files)) else { return };
        assert_eq!(walk(&mounted.at("")), files + 1, "{ways:?}");
        assert_eq!(said_to_nobody("cat", &[&mounted.at("one")]), Ok("one".to_owned()), "{ways:?}");
        // Those seen first have no descriptor any more, and the kernel knows their nodes.
        for i in 0..files.min(1000) {
            let path = mounted.at(&format!("0/{i}"));
            let opened = File::open(&path).unwrap_or_else(|e| panic!("{ways:?}, {}: {e}", path.display()));
            drop(opened);
        }
        assert!(mounted.descriptors() <= DESCRIPTORS);
        println!(
            "{ways:?}: {files} files, {} descriptors, {} MiB",
            mounted.descriptors(),
            mounted.memory_max() >> 10
        );
    }
}

/// A node without a descriptor is found whatever has happened to its name in the mount; one that was removed
/// is served as long as a program has it open, or is in it.
#[test]
fn files_are_found_again_after_they_were_renamed_and_removed() {
    for ways in [Ways::Handles, Ways::Names] {
        let Some(mounted) = Mounted::new(ways, |source| fill(source, 2000)) else { return };
        let forget_descriptors = || walk(&mounted.at("1"));
        fs::create_dir_all(mounted.at("a/b")).unwrap();
        for name in ["a/b/moved", "a/b/removed", "a/b/replaced", "a/b/linked"] {
            fs::write(mounted.at(name), name).unwrap();
        }
        fs::hard_link(mounted.at("a/b/linked"), mounted.at("other-name")).unwrap();
        let open = |name: &str| File::options().read(true).write(true).open(mounted.at(name)).unwrap();
        let (removed, replaced) = (open("a/b/removed"), open("a/b/replaced"));
        let mut shell = Command::new("sh")
            .args(["-c", "read x && stat --format %F . && rmdir ../empty2 && echo done"])
            .current_dir({
                fs::create_dir_all(mounted.at("empty")).unwrap();
                fs::create_dir_all(mounted.at("empty2")).unwrap();
                mounted.at("empty")
            })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        fs::rename(mounted.at("a"), mounted.at("c")).unwrap();
        fs::rename(mounted.at("c/b/moved"), mounted.at("c/b/replaced")).unwrap();
        fs::remove_file(mounted.at("c/b/removed")).unwrap();
        fs::remove_file(mounted.at("c/b/linked")).unwrap();
        fs::remove_dir(mounted.at("empty")).unwrap();
        forget_descriptors();
        assert_eq!(fs::read(mounted.at("c/b/replaced")).unwrap(), b"a/b/moved", "{ways:?}");
        assert_eq!(fs::read(mounted.at("other-name")).unwrap(), b"a/b/linked", "{ways:?}");
        for (file, text) in [(&removed, "a/b/removed"), (&replaced, "a/b/replaced")] {
            let mut read = vec![0; text.len()];
            file.read_exact_at(&mut read, 0).unwrap();
            assert_eq!(read, text.as_bytes(), "{ways:?}");
            file.set_permissions(Permissions::from_mode(0o600)).unwrap();
            file.set_len(5).unwrap();
            let meta = file.metadata().unwrap();
            assert_eq!((meta.len(), meta.nlink(), meta.mode() & 0o777), (5, 0, 0o600), "{ways:?}");
        }
        shell.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let mut said = String::new();
        shell.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        shell.wait().unwrap();
        assert!(said.starts_with("directory\n"), "{ways:?}: {said}");
    }
}

/// A file that was exchanged below the mount for another one with its name is stale, and not the other one.
#[test]
fn a_file_that_was_exchanged_below_is_another_file() {
    for ways in [Ways::Handles, Ways::Names] {
        let Some(mounted) = Mounted::new(ways, |source| fill(source, 2000)) else { return };
        let inode = fs::metadata(mounted.at("one")).unwrap().ino();
        let folder = File::open(mounted.at("")).unwrap();
        fs::write(mounted.below("new"), b"another").unwrap();
        fs::rename(mounted.below("new"), mounted.below("one")).unwrap();
        walk(&mounted.at("1"));
        // The kernel asks again after a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(fs::read(mounted.at("one")).unwrap(), b"another", "{ways:?}");
        assert_ne!(fs::metadata(mounted.at("one")).unwrap().ino(), inode, "{ways:?}");
        drop(folder);
    }
}

/// A program that opens as many files as it can gets `ENFILE`; all other users have theirs.
#[test]
fn a_client_that_opens_too_many_files_gets_an_error_and_the_others_do_not() {
    let Some(mounted) = Mounted::new(Ways::Handles, |source| fill(source, 2000)) else { return };
    let mut hoard = Vec::new();
    let refused = (0..2000)
        .find_map(|i| match File::open(mounted.at(&format!("{}/{i}", i / 1000))) {
            Ok(file) => {
                hoard.push(file);
                None
            }
            Err(e) => Some(e),
        })
        .expect("there are not descriptors for all");
    //= linux-6.12 include/uapi/asm-generic/errno-base.h ENFILE
    assert_eq!(refused.raw_os_error(), Some(23), "after {} files", hoard.len());
    assert!((100..DESCRIPTORS / 2).contains(&hoard.len()), "{} files", hoard.len());
    // It may still do everything else.
    assert_eq!(walk(&mounted.at("")), 2001);
    assert_eq!(said_to_nobody("cat", &[&mounted.at("one"), &mounted.at("0/1")]), Ok("one".to_owned()));
    assert!(mounted.descriptors() <= DESCRIPTORS);
    hoard.truncate(10);
    let again = (0..50).all(|_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        File::open(mounted.at("one")).is_ok()
    });
    assert!(again, "those that are closed can be had again");
}

/// What `/proc/mounts` says of a mount: source and type.
fn listed(at: &Path) -> Option<(String, String)> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (source, place, kind) = (words.next()?, words.next()?, words.next()?);
        (Path::new(place) == at).then(|| (source.to_owned(), kind.to_owned()))
    })
}

#[test]
fn mounts_are_told_apart_by_their_sources() {
    let Some(mounted) = Mounted::new(Ways::Handles, |_| {}) else { return };
    let point = mounted.folder.path().canonicalize().unwrap().join("mnt");
    let source = point.with_file_name("source").display().to_string();
    assert_eq!(listed(&point), Some((source, "fuse.fairhead".to_owned())));
}

#[test]
fn a_mount_whose_server_was_killed_is_named_with_the_way_to_remove_it() {
    let Some(mut mounted) = Mounted::new(Ways::Handles, |_| {}) else { return };
    mounted.process.as_mut().expect("just started").kill();
    let again = || {
        let out = Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args(["mount", "source", "mnt", "--sched", "noop"])
            .current_dir(mounted.folder.path())
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = again();
    let point = mounted.folder.path().join("mnt");
    let command = format!("umount --lazy {}", point.display());
    let why =
        format!("fairhead: mnt: a mount is still there whose server has ended; remove it with: {command}\n");
    assert_eq!((code, said), (Some(1), why));
    let ran = Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(ran.success());
    assert!(fs::read_dir(point).is_ok());
}

/// A read costs no call beside those of the ring but the one that answers it, and none for attributes.
#[test]
fn a_read_is_few_system_calls() {
    const READS: usize = 2000;
    let text = vec![7_u8; 1 << 20];
    if !may_mount::may_mount() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    ["source", "mnt"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
    fs::write(folder.path().join("source/file"), text).unwrap();
    let strace = Command::new("strace")
        .args(["-f", "-c", "-U", "calls,name", "-o", "calls", env!("CARGO_BIN_EXE_fairhead")])
        .args(["mount", "source", "mnt", "--sched", "noop", "--fuse-transport", "dev"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn();
    let mut strace = match strace {
        Err(e) => return println!("skipped: strace: {e}"),
        Ok(strace) => strace,
    };
    let mut line = String::new();
    BufReader::new(strace.stderr.take().unwrap()).read_line(&mut line).unwrap();
    if !line.contains("Ctrl-C ends it") {
        strace.wait().unwrap();
        return println!("skipped: strace: {line}");
    }
    let dd = |count: usize| {
        let out = Command::new("dd")
            .args(["if=mnt/file", "of=/dev/null", "bs=4k", "iflag=direct", &format!("count={count}")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    (0..READS / 250).for_each(|_| dd(250));
    assert!(Command::new("umount").arg(folder.path().join("mnt")).status().unwrap().success());
    strace.wait().unwrap();
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let count = |names: &[&str]| -> usize {
        let lines = calls.lines().filter_map(|line| line.trim().split_once(' '));
        lines
            .filter(|(_, name)| names.contains(&name.trim()))
            .map(|(n, _)| n.parse::<usize>().unwrap_or_default())
            .sum()
    };
    println!("{calls}");
    // Programs that start cost some, too.
    let most = READS / 4;
    assert!(count(&["writev"]) >= READS, "strace has seen the replies: {calls}");
    assert!(count(&["readv", "poll", "ppoll"]) <= most, "requests: {calls}");
    assert!(count(&["statx", "fstat", "newfstatat"]) <= most, "attributes: {calls}");
    assert!(count(&["fcntl"]) <= most, "flags of the file: {calls}");
    assert!(count(&["writev"]) <= READS + most, "replies: {calls}");
}

/// What is printed when the table of groups is full has no reader, and the files are there all the same.
#[test]
fn a_warning_that_nobody_reads_ends_nothing() {
    if !may_mount::may_mount() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    ["source", "mnt"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
    fs::write(folder.path().join("source/file"), b"one").unwrap();
    let (process, line, said) = start(
        Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args(["mount", "source", "mnt", "--control", "c"])
            .current_dir(folder.path()),
    );
    assert!(line.contains("Ctrl-C ends it"), "{line}");
    let mounted = Mounted { process: Some(process), folder };
    drop(said);
    let mut control = UnixStream::connect(mounted.folder.path().join("c")).unwrap();
    let mut answers = BufReader::new(control.try_clone().unwrap());
    for i in 0..255 {
        writeln!(control, r#"{{"do":"make","group":"g{i}"}}"#).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains("true"), "{answer}");
    }
    let name = format!("fairhead-test-unread-{}", std::process::id());
    let made = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"].map(|root| Path::new(root).join(&name));
    let Some(cgroup) = made.into_iter().find(|path| fs::create_dir(path).is_ok()) else {
        return println!("skipped: no cgroup can be made");
    };
    let script =
        format!("echo $$ > {}/cgroup.procs && exec cat {}", cgroup.display(), mounted.at("file").display());
    let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
    while fs::remove_dir(&cgroup).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((ran.stdout, fs::read(mounted.at("file")).unwrap()), (b"one".to_vec(), b"one".to_vec()));
}

/// Requests of a mount that the kernel's own tracing counts, in an instance of its own.
struct Traced(PathBuf);

impl Traced {
    /// Begins; says so if this process may not, or the kernel does not count such requests.
    fn begin() -> Option<Self> {
        let instances = Path::new("/sys/kernel/tracing/instances");
        let traced = Self(instances.join(format!("fairhead-test-{}", std::process::id())));
        let begun = fs::create_dir(&traced.0)
            .and_then(|()| fs::write(traced.0.join("events/fuse/fuse_request_send/enable"), "1"));
        if let Err(e) = begun {
            println!("skipped: the kernel does not count the requests of a mount: {e}");
            return None;
        }
        Some(traced)
    }

    /// How many requests of this kind a mount got while `what` ran.
    fn count(&self, mount: &Path, kind: &str, what: impl FnOnce()) -> usize {
        let connection = format!("connection {} ", fs::metadata(mount).unwrap().dev());
        fs::write(self.0.join("trace"), "\n").unwrap();
        what();
        let trace = fs::read_to_string(self.0.join("trace")).unwrap();
        let is_one = |line: &&str| line.contains(&connection) && line.contains(kind);
        trace.lines().filter(is_one).count()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/fuse/fuse_request_send/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// The kernel checks rights by a folder's attributes, and forgets them with each file that comes or goes.
#[test]
fn a_folder_is_asked_for_its_attributes_after_each_file_that_came_or_went() {
    const FILES: usize = 50;
    let Some(mounted) = Mounted::new(Ways::Handles, |source| fs::create_dir(source.join("d")).unwrap())
    else {
        return;
    };
    let Some(traced) = Traced::begin() else { return };
    let of = |i: usize| mounted.at(&format!("d/{i}"));
    let (all, folder) = ("(FUSE_GETATTR)", mounted.at(""));
    let made = traced.count(&folder, all, || (0..FILES).for_each(|i| drop(File::create(of(i)).unwrap())));
    let looked = traced.count(&folder, all, || {
        (0..FILES).for_each(|i| _ = fs::metadata(of(i)).unwrap());
    });
    let removed = traced.count(&folder, all, || (0..FILES).for_each(|i| fs::remove_file(of(i)).unwrap()));
    println!(
        "attributes asked for: {made} times for {FILES} files made, {looked} looked at, {removed} removed"
    );
    // The first one needs no question: the attributes are known from before. What is known is valid for a
    // second, so a busy machine asks more often.
    for asked in [made, removed] {
        assert!(asked >= FILES - 1, "{asked} for {FILES}");
    }
    assert!(looked < FILES / 2, "{looked}: a look changes nothing");
}
