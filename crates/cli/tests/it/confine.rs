//! The live commands confined, as they are by default: they work as without, nothing that they do is refused,
//! and the kernel says that they are confined. `live/tests/it/confine.rs` tries from inside what they may not
//! do.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::may_mount::may_mount;
use crate::process::{Process, fairhead, start};
use std::fs;
use std::io::{BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// A folder with an image and a tree in it, which anybody may change.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("disk.img"), vec![7; 8 << 20]).unwrap();
        for folder in ["tree", "mnt"] {
            fs::create_dir(place.at(folder)).unwrap();
        }
        fs::write(place.at("tree/file"), vec![9; 1 << 20]).unwrap();
        for name in ["", "disk.img", "tree", "mnt", "tree/file"] {
            let mode = if name.ends_with("g") || name.ends_with("e/file") { 0o666 } else { 0o777 };
            fs::set_permissions(place.at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        if is_root() {
            chown(place.at("mnt"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.at("mnt")).stderr(Stdio::null()).status();
    }
}

/// A command that runs, and the rest of what it says.
struct Running {
    process: Process,
    said: BufReader<ChildStderr>,
}

impl Running {
    fn begin(command: &mut Command, first: &str) -> Self {
        let (process, line, said) = start(command.stdout(Stdio::piped()));
        assert!(line.contains(first), "{line}");
        Self { process, said }
    }

    /// A line of the status of each thread, each once.
    fn status(&self, name: &str) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.0.id())).unwrap();
        let line = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("status")).unwrap();
            text.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim_start_matches(':').trim().to_owned()
        };
        let mut lines: Vec<String> = tasks.map(|task| line(task.unwrap())).collect();
        lines.sort();
        lines.dedup();
        lines
    }

    fn is_confined(&self) {
        // The first threads do not have to wait for the confinement to say that they listen.
        let start = Instant::now();
        while self.status("Seccomp") != ["2"] && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!((self.status("Seccomp"), self.status("NoNewPrivs")), (vec!["2".into()], vec!["1".into()]));
    }

    /// Ends it. Nothing of what it did was refused.
    fn end(mut self) -> String {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let status = self.process.0.wait().unwrap();
        let (mut said, mut out) = (String::new(), String::new());
        self.said.read_to_string(&mut said).unwrap();
        self.process.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(status.success(), "{status}: {said}");
        assert!(!said.contains("refused the system call"), "{said}");
        out
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// Whether a program is here; says so if it is not.
fn has(program: &str) -> bool {
    let is = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if is.is_err() {
        println!("skipped: there is no {program}");
    }
    is.is_ok()
}

fn sh(script: &str, place: &Path) {
    let out = Command::new("sh").args(["-ec", script]).current_dir(place).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{script}: {text}");
}

/// What clients do to a server: sizes, maps, copies both ways, all operations of fio's, and control.
const CLIENTS: &str = "
    nbdinfo --size nbd+unix:///vm?socket=s
    nbdinfo --map nbd+unix:///vm?socket=s
    nbdcopy nbd+unix:///vm?socket=s copy.img
    cmp copy.img disk.img
    nbdcopy copy.img nbd+unix:///vm?socket=s
    rm copy.img
";

const FIO: &str = "
    fio --name=a --ioengine=nbd --uri=nbd+unix:///vm?socket=s --rw=randrw --bsrange=512-300k --fsync=9 --iodepth=8 \
        --size=8M --io_size=8M --minimal
    fio --name=a --ioengine=nbd --uri=nbd+unix:///vm?socket=s --rw=randtrim --bs=4k --size=8M --io_size=1M --minimal
";

fn server(place: &Place) -> Command {
    let mut command = fairhead();
    let export = format!("vm={}", place.at("disk.img").display());
    command.args(["serve", "--export", &export, "--listen", "0", "--metrics", "0"]);
    command.arg("--socket").arg(place.at("s")).arg("--control").arg(place.at("c"));
    command.arg("--record").arg(place.at("log"));
    command
}

/// What `fairhead ctl` says about the confinement, after it has changed something.
fn control(place: &Place) -> serde_json::Value {
    for words in [&["make", "other", "weight=300"][..], &["sched", "cfq"], &["depth", "4"]] {
        assert!(fairhead().arg("ctl").arg(place.at("c")).args(words).status().unwrap().success());
    }
    let out = fairhead().arg("ctl").arg(place.at("c")).output().unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    stats["confinement"].clone()
}

#[test]
fn a_server_works_confined() {
    let place = Place::new();
    for scenario in ["direct", "cached"] {
        let mut command = server(&place);
        if scenario == "cached" {
            command.arg("--cached");
        }
        let running = Running::begin(&mut command, "metrics at");
        running.is_confined();
        if has("nbdcopy") {
            sh(CLIENTS, place.0.path());
        }
        if has("fio") {
            sh(FIO, place.0.path());
        }
        let told = control(&place);
        // It says which calls were refused.
        let table = running.end();
        assert_eq!((&told["seccomp"], &told["refused_calls"]), (&true.into(), &0.into()), "{told}");
        if told["landlock"].is_null() {
            println!("skipped: this kernel has no landlock");
        } else {
            assert_eq!(told["guards_files"], true);
        }
        if is_root() {
            assert!(!told["capabilities"].as_array().unwrap().contains(&"CAP_SYS_ADMIN".into()), "{told}");
        }
        assert!(table.contains("\nvm "), "{table}");
        assert!(!place.at("s").exists() && !place.at("c").exists(), "sockets are removed");
    }
}

#[test]
fn exports_are_added_from_the_named_folder_only() {
    let place = Place::new();
    fs::create_dir(place.at("images")).unwrap();
    fs::write(place.at("images/more.img"), vec![1; 1 << 20]).unwrap();
    let add = |name: &str, file: &str| {
        let wanted = format!("{name}={}", place.at(file).display());
        let out = fairhead().arg("ctl").arg(place.at("c")).args(["export", "add", &wanted]).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let running = Running::begin(&mut server(&place), "metrics at");
    running.is_confined();
    let (done, said) = add("more", "images/more.img");
    assert!(!done && said.contains("--export-dir DIR"), "{said}");
    running.end();
    let mut command = server(&place);
    let running = Running::begin(command.arg("--export-dir").arg(place.at("images")), "metrics at");
    running.is_confined();
    assert_eq!(add("more", "images/more.img"), (true, String::new()));
    // Not in the folder of `--record`, whose files the server may open.
    let elsewhere = Place::new();
    let (done, said) = add("outside", elsewhere.at("disk.img").to_str().unwrap());
    // Without landlock the folder bounds nothing, which the server has said.
    assert!(done == control(&place)["landlock"].is_null(), "{said}");
    let table = running.end();
    assert!(table.contains("\nmore "), "{table}");
}

#[test]
fn the_command_of_a_server_is_not_confined() {
    let place = Place::new();
    let script = "grep -q 'Seccomp:.0' /proc/self/status && ls /etc/passwd && ls -l \"$socket\"";
    let out = server(&place).args(["--run", script]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_server_runs_without_confinement_if_it_is_told_to() {
    let place = Place::new();
    let running = Running::begin(server(&place).arg("--no-confinement"), "metrics at");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        (running.status("Seccomp"), running.status("NoNewPrivs")),
        (vec!["0".into()], vec!["0".into()])
    );
    assert!(control(&place).is_null());
    running.end();
}

/// What programs do to a folder.
const TREE: &str = "
    cp -a file copy && cmp file copy && mkdir -p a/b && mv copy a/b/ && ln a/b/copy link && ln -s link soft
    mkfifo fifo && touch -d 2001-01-01 link && chmod 600 link && truncate -s 5 link && cat soft >/dev/null
    fallocate -l 64k hole && fallocate -p -o 4096 -l 8192 hole && dd if=file of=direct bs=64k oflag=direct conv=fsync
    dd if=direct of=/dev/null bs=64k iflag=direct && df . && sync -f . && find . | xargs stat >/dev/null && rm -r a link
";

#[test]
fn a_folder_is_mounted_confined() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let mut command = fairhead();
    command.arg("mount").arg(place.at("tree")).arg(place.at("mnt")).arg("--control").arg(place.at("c"));
    let running = Running::begin(&mut command, "Ctrl-C ends it");
    running.is_confined();
    sh(TREE, &place.at("mnt"));
    if has("fio") {
        sh("fio --name=a --directory=. --rw=randrw --bs=4k --direct=1 --size=1M --minimal", &place.at("mnt"));
    }
    let told = control(&place);
    assert_eq!((&told["seccomp"], &told["refused_calls"]), (&true.into(), &0.into()), "{told}");
    assert!(told["capabilities"].as_array().unwrap().contains(&"CAP_DAC_READ_SEARCH".into()), "{told}");
    running.end();
    assert!(!place.at("mnt/file").exists(), "it is unmounted");
}

/// A thread that begins after the confinement needs no call that is refused then.
#[test]
fn a_folder_is_mounted_confined_by_threads_that_begin_late() {
    if !may_mount() || !has("strace") {
        return;
    }
    let place = Place::new();
    let mut strace = Command::new("strace");
    // It is the first call that these threads make for themselves.
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=unshare:delay_enter=300000"]);
    strace.arg(env!("CARGO_BIN_EXE_fairhead")).arg("mount").arg(place.at("tree")).arg(place.at("mnt"));
    let (mut process, line, mut said) = start(&mut strace);
    if !line.contains("Ctrl-C ends it") {
        return println!("skipped: strace: {line}");
    }
    sh("touch made", &place.at("mnt"));
    sh("umount mnt", place.0.path());
    process.0.wait().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("refused the system call"), "{rest}");
}

#[test]
fn a_disk_is_emulated_confined() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let mut command = fairhead();
    command.args(["emulate", "plextor_m5s"]).arg(place.at("disk.img")).arg(place.at("mnt"));
    let running = Running::begin(&mut command, "Ctrl-C ends it");
    running.is_confined();
    sh(
        "dd if=/dev/zero of=disk bs=64k count=16 oflag=direct conv=notrunc,fsync && cat disk >/dev/null",
        &place.at("mnt"),
    );
    let report = running.end();
    assert!(report.contains(" ios; ") && report.contains("waits for a processor"), "{report}");
}

/// A server of an ordinary user has no capabilities to give up, and the rest is the same.
#[test]
fn ordinary_users_are_served_confined() {
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let place = Place::new();
    let running = Running::begin(server(&place).uid(NOBODY).gid(NOBODY), "metrics at");
    running.is_confined();
    assert_eq!(running.status("CapEff"), ["0000000000000000"]);
    if has("nbdcopy") {
        sh(CLIENTS, place.0.path());
    }
    let told = control(&place);
    assert_eq!((&told["refused_calls"], told["capabilities"].as_array().map(Vec::len)), (&0.into(), Some(0)));
    running.end();
}

/// An ordinary user mounts by `fusermount3`, and so a process outside unmounts: at the end, and after the
/// server was killed.
#[test]
fn ordinary_users_mount_confined() {
    if !may_mount() || !has("fusermount3") {
        return;
    }
    if fs::metadata("/dev/fuse").unwrap().permissions().mode() & 0o006 != 0o006 {
        println!("skipped: /dev/fuse is not for ordinary users");
        return;
    }
    for killed in [false, true] {
        let place = Place::new();
        let mut command = fairhead();
        command.arg("mount").arg(place.at("tree")).arg(place.at("mnt")).uid(NOBODY).gid(NOBODY);
        let mut running = Running::begin(&mut command, "Ctrl-C ends it");
        running.is_confined();
        let script = "cp file copy && cmp file copy && find . | xargs stat >/dev/null && rm copy";
        let mut shell = Command::new("sh");
        shell
            .args(["-ec", "cd \"$0\"; eval \"$1\""])
            .arg(place.at("mnt"))
            .arg(script)
            .uid(NOBODY)
            .gid(NOBODY);
        assert!(shell.status().unwrap().success());
        if killed {
            running.process.kill();
        } else {
            running.end();
        }
        let mounts = || fs::read_to_string("/proc/mounts").unwrap();
        let at = place.at("mnt").display().to_string();
        let start = Instant::now();
        while mounts().contains(&at) && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!mounts().contains(&at), "it is unmounted");
    }
}
