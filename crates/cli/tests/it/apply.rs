//! `fairhead apply` on a machine made of files, on a loop device, and under the real udev.

use crate::loop_device::LoopDevice;
use crate::process::fairhead;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A machine with one disk that has a serial number, a partition of it, and one without anything.
struct Machine(tempfile::TempDir);

const RULE: &str = "etc/udev/rules.d/90-fairhead-WDC_WD20_1234.rules";

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (name, dev, database) in
            [("sda", "8:0", "E:ID_SERIAL=WDC_WD20_1234\n"), ("vdb", "254:16", "E:X=1\n")]
        {
            machine.write(&format!("sys/block/{name}/size"), "3907029168");
            machine.write(&format!("sys/block/{name}/dev"), dev);
            machine.write(&format!("sys/block/{name}/queue/scheduler"), "none [mq-deadline] bfq");
            machine.write(&format!("sys/block/{name}/queue/nr_requests"), "256");
            machine.write(&format!("sys/block/{name}/queue/read_ahead_kb"), "128");
            machine.write(&format!("sys/block/{name}/queue/iosched/read_expire"), "500");
            machine.write(&format!("run/udev/data/b{dev}"), database);
        }
        machine.write("sys/block/sda/device/model", "WDC WD20");
        machine.write("sys/block/sda/sda1/partition", "1");
        machine
    }

    fn place(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.place(path).parent().unwrap()).unwrap();
        fs::write(self.place(path), text).unwrap();
    }

    fn apply(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let out = self.run(words);
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = fairhead();
        command.arg("apply").args(words).arg("--root").arg(self.0.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn rule(&self) -> String {
        fs::read_to_string(self.place(RULE)).unwrap()
    }
}

const BFQ: &str = "# Written by fairhead apply for sda (WDC WD20), which the rule knows by its serial number.\n\
    # fairhead apply sda --undo removes this file and puts back what was before:\n\
    # before: scheduler=mq-deadline iosched/read_expire=500 nr_requests=256\n\
    ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ENV{ID_SERIAL}==\"WDC_WD20_1234\", \
    ATTR{queue/scheduler}=\"bfq\", ATTR{queue/iosched/slice_idle}=\"0\"\n";

#[test]
fn one_rule_for_one_disk_and_away_again() {
    let machine = Machine::new();
    let (code, out, err) = machine.apply(&["sda", "bfq", "slice_idle=0", "--dry-run"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let added: String = BFQ.lines().map(|l| format!("+{l}\n")).collect();
    assert!(out.starts_with(&format!("/{RULE}\n{added}nothing is set at once: ")), "{out}");
    assert!(!machine.place("etc").exists(), "--dry-run changes nothing");
    assert_eq!(machine.apply(&["/dev/sda", "bfq", "slice_idle=0", "--yes"]).0, Some(0));
    assert_eq!(machine.rule(), BFQ);
    // The second change remembers what was before the first, and what it newly sets.
    let (code, out, _) = machine.apply(&["sda", "kyber", "read_ahead_kb=512", "--yes"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("\n-ACTION") && out.contains("\n+ACTION"), "{out}");
    assert!(
        machine.rule().contains(
            "# before: scheduler=mq-deadline iosched/read_expire=500 nr_requests=256 read_ahead_kb=128\n"
        ),
        "{}",
        machine.rule()
    );
    assert_eq!(machine.apply(&["sda", "--undo", "--yes"]).0, Some(0));
    assert!(fs::read_dir(machine.place("etc/udev/rules.d")).unwrap().next().is_none());
    let (code, _, err) = machine.apply(&["sda", "--undo", "--yes"]);
    assert_eq!((code, err.as_str()), (Some(2), "fairhead: nothing to undo: no rule of fairhead's for sda\n"));
}

#[test]
fn each_mistake_is_one_line() {
    let machine = Machine::new();
    for (words, line) in [
        (vec!["sda1", "bfq"], "sda1 is a partition of sda; a scheduler is a disk's: write sda"),
        (vec!["sdb", "bfq"], "no disk 'sdb'; there are sda, vdb; did you mean 'sda'?"),
        (
            vec!["sda", "bqf"],
            "no scheduler 'bqf' in the kernel; there are none, mq-deadline, bfq, kyber; did you mean 'bfq'?",
        ),
        (
            vec!["sda", "bfq", "low_latncy=0"],
            "no setting 'low_latncy' under bfq; did you mean 'low_latency'?",
        ),
        (
            vec!["vdb", "bfq", "--yes"],
            "vdb has nothing by which a udev rule could know it alone: no serial number, name or place",
        ),
        (vec!["sda", "bfq"], "there is no terminal to ask on: --yes applies it without asking"),
    ] {
        let (code, _, err) = machine.apply(&words);
        assert_eq!((code, err.as_str()), (Some(2), format!("fairhead: {line}\n").as_str()), "{words:?}");
    }
    assert!(!machine.place("etc").exists());
}

#[test]
fn a_file_edited_by_hand_is_left() {
    let machine = Machine::new();
    assert_eq!(machine.apply(&["sda", "bfq", "slice_idle=0", "--yes"]).0, Some(0));
    let edited =
        BFQ.replace("slice_idle}=\"0\"", "slice_idle}=\"1\", ATTR{queue/rotational}=\"1\"") + "# mine\n";
    machine.write(RULE, &edited);
    let line = format!(
        "fairhead: /{RULE} was edited by hand, so it stays as it is; remove it yourself to go on: rm /{RULE}\n"
    );
    for words in [vec!["sda", "kyber", "--yes"], vec!["sda", "--undo", "--yes"]] {
        assert_eq!(machine.apply(&words), (Some(2), String::new(), line.clone()));
    }
    assert_eq!(machine.rule(), edited);
}

#[test]
fn doctor_knows_the_rule_and_a_later_one_is_told() {
    let machine = Machine::new();
    assert_eq!(machine.apply(&["sda", "bfq", "--yes"]).0, Some(0));
    // As after the next start.
    machine.write("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]");
    let doctor = || {
        let out =
            fairhead().args(["doctor", "sda", "--quick", "--root"]).arg(machine.0.path()).output().unwrap();
        text(&out.stdout)
    };
    let said = doctor();
    assert!(said.contains(&format!("bfq        /{RULE}:4")), "{said}");
    machine.write("etc/udev/rules.d/99-mine.rules", "KERNEL==\"sd*\", ATTR{queue/scheduler}=\"none\"\n");
    assert_eq!(machine.apply(&["sda", "--undo", "--yes"]).0, Some(0));
    let (_, _, err) = machine.apply(&["sda", "mq-deadline", "--yes"]);
    assert!(
        err.contains("/etc/udev/rules.d/99-mine.rules:1 comes later and sets scheduler to none"),
        "{err}"
    );
}

/// A disk of the same serial number is another disk's twin: a worse key is taken, and said.
#[test]
fn a_serial_number_of_two_is_none() {
    let machine = Machine::new();
    machine.write("run/udev/data/b254:16", "E:ID_SERIAL=WDC_WD20_1234\nE:ID_PATH=pci-0000:00:05.0\n");
    let (code, out, _) = machine.apply(&["vdb", "bfq", "--yes"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("by the place where it is attached: another disk there gets the same."), "{out}");
    assert!(out.contains("ENV{ID_PATH}==\"pci-0000:00:05.0\""), "{out}");
}

/// The answer on the terminal; `script` makes one.
#[test]
fn on_a_terminal_it_asks() {
    let machine = Machine::new();
    for (answer, exists) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let command =
            format!("{} apply sda bfq --root {}", env!("CARGO_BIN_EXE_fairhead"), machine.0.path().display());
        let child = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return eprintln!("skipped: no script") };
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let said = text(&child.wait_with_output().unwrap().stdout);
        assert!(said.contains("Do this? [y/N]"), "{said}");
        assert_eq!(machine.place(RULE).exists(), exists, "{answer:?}: {said}");
    }
}

/// In a mount namespace, so that this machine's /etc and /run stay as they are.
fn apart(script: &str) -> Option<Output> {
    let mounts =
        "mkdir -p /etc/udev/rules.d && mount -t tmpfs none /etc/udev/rules.d && mount -t tmpfs none /run";
    let script = format!("{mounts} && {script}");
    let out = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    match out {
        Ok(out) => Some(out),
        Err(e) => {
            eprintln!("skipped: unshare: {e}");
            None
        }
    }
}

/// A loop device on a new file of 8 MiB; `None`, and a line that says why, without loop devices or bfq.
fn loop_device_with_bfq(image: &Path) -> Option<LoopDevice> {
    fs::File::create(image).unwrap().set_len(8 << 20).unwrap();
    LoopDevice::attach(image).filter(|disk| disk.has("bfq"))
}

/// A loop device is known by its file. The kernel's values change at once, udev's own program agrees with the
/// rule, and the undoing puts all values back.
#[test]
fn a_loop_device_under_the_real_udev() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let Some(disk) = loop_device_with_bfq(&image) else { return };
    disk.write("scheduler", "none");
    disk.write("nr_requests", "60");
    let before = disk.all();
    let (program, name) = (env!("CARGO_BIN_EXE_fairhead"), disk.0.as_str());
    let script = format!(
        "{program} apply {name} bfq slice_idle=3 --yes && cat /sys/block/{name}/queue/iosched/slice_idle && \
         {program} apply {name} bfq --yes && cat /sys/block/{name}/queue/iosched/slice_idle && \
         {program} apply {name} bfq slice_idle=3 --yes && \
         echo none > /sys/block/{name}/queue/scheduler && \
         (! command -v udevadm || udevadm test -a add /sys/block/{name} 2>&1) && \
         {program} doctor {name} --quick; \
         {program} apply {name} --undo --yes"
    );
    let Some(out) = apart(&script) else { return };
    let (said, err) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{said}{err}");
    assert!(said.contains("at once: scheduler becomes bfq, now none\n"), "{said}");
    assert!(
        said.contains("\n3\n") && said.contains("\n8\n"),
        "the second change resets what it does not set: {said}"
    );
    assert_eq!(disk.all(), before, "{said}");
    if said.contains("Reading rules file") || said.contains("90-fairhead") {
        let rule = format!("ATTR{{loop/backing_file}}==\"{}\"", image.display());
        assert!(said.contains(&rule), "{said}");
    }
    println!("{said}{err}");
}

/// A value that the kernel refuses: no rule is written, and all values are as before.
#[test]
fn a_value_that_the_kernel_refuses_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let Some(disk) = loop_device_with_bfq(&image) else { return };
    let before = disk.all();
    let program = env!("CARGO_BIN_EXE_fairhead");
    let script = format!("{program} apply {} bfq nr_requests=100000000 --yes; ls /etc/udev/rules.d", disk.0);
    let Some(out) = apart(&script) else { return };
    assert!(text(&out.stderr).contains("nr_requests: Invalid argument"), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("at once: nr_requests becomes 100000000, now "),
        "{}",
        text(&out.stdout)
    );
    assert_eq!(disk.all(), before);
    // Read-only /etc: values go back, too.
    let script = format!("mount -o remount,ro /etc/udev/rules.d; {program} apply {} bfq --yes", disk.0);
    let Some(out) = apart(&script) else { return };
    assert!(text(&out.stderr).contains("it is on a read-only file system"), "{}", text(&out.stderr));
    assert_eq!(disk.all(), before);
    read_only_sysfs(&disk.0);
}

fn read_only_sysfs(disk: &str) {
    let program = env!("CARGO_BIN_EXE_fairhead");
    let script = format!("mount -o remount,bind,ro /sys && {program} apply {disk} bfq --yes");
    let Some(out) = apart(&script) else { return };
    let err = text(&out.stderr);
    assert!(
        err.starts_with("fairhead: cannot write to /sys/block/") && err.contains("Read-only file system"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn without_root_one_line_says_so() {
    let Some(name) = some_disk() else { return eprintln!("skipped: no disk with a scheduler") };
    let program = Path::new(env!("CARGO_BIN_EXE_fairhead"));
    let out = Command::new("setpriv")
        .args(["--reuid", "65534", "--clear-groups"])
        .arg(program)
        .args(["try", &name, "bfq", "--against", "none"])
        .output();
    let Ok(out) = out else { return eprintln!("skipped: no setpriv") };
    let err = text(&out.stderr);
    if err.contains("setpriv") {
        return eprintln!("skipped: {err}");
    }
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.ends_with("; only root may change a disk: use sudo\n"), "{err}");
}

/// A disk of this machine with a scheduler that can be chosen.
fn some_disk() -> Option<String> {
    let names = fs::read_dir("/sys/block").ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let fits = |name: &String| {
        let read = |file: &str| fs::read_to_string(format!("/sys/block/{name}/{file}")).unwrap_or_default();
        !name.starts_with("loop") && read("size").trim() != "0" && read("queue/scheduler").contains('[')
    };
    names.into_iter().find(fits)
}
