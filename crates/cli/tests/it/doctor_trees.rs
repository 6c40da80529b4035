//! `fairhead doctor` on machines whose devices name themselves badly, and on those of other kernels.

use std::path::Path;
use std::process::{Command, Output};

fn doctor(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("doctor").args(args).output().unwrap()
}

/// A machine with one disk.
fn machine(folder: &Path, disk: &str, files: &[(&str, &str)]) -> String {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let place = format!("sys/devices/pci0/ata1/block/{disk}");
    write(&format!("{place}/size"), "3907029168");
    write(&format!("{place}/dev"), "8:0");
    for (file, text) in files {
        match file.strip_prefix('/') {
            Some(path) => write(path, text),
            None => write(&format!("{place}/{file}"), text),
        }
    }
    std::fs::create_dir_all(folder.join("sys/block")).unwrap();
    let link = folder.join("sys/block").join(disk);
    std::os::unix::fs::symlink(format!("../devices/pci0/ata1/block/{disk}"), link).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// A model that writes to the terminal: an escape, a bell, the one-byte form of an escape, and a character
/// that turns the direction of the text.
const BAD: &str = "bad\x1b[31mSSD\x07\u{9b}2J\u{202e}\nx";

/// A device's own strings do not reach the terminal as they are, in the table, in a finding, or in a file's
/// name.
#[test]
fn control_characters_of_a_device_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let rule = "SUBSYSTEM==\"block\", ATTR{queue/scheduler}=\"cfq\"\n";
    let root = machine(
        folder.path(),
        "sda",
        &[
            ("device/model", BAD),
            ("queue/rotational", "1"),
            ("queue/scheduler", "none mq-deadline [bfq]"),
            ("/run/udev/data/b8:0", "E:ID_SERIAL=a\x1b]0;t\x07\n"),
            ("/run/systemd/container", "lxc\x1b[2J"),
            ("/proc/self/mounts", "/dev/sda /mnt/a\\033[5mb;reboot ext4 rw,discard 0 0\n"),
            ("/etc/udev/rules.d/9\x1b[7m.rules", rule),
        ],
    );
    let out = doctor(&["--root", &root, "--quick"]);
    let said = String::from_utf8(out.stdout).unwrap();
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!said.chars().any(obeyed), "{said:?}");
    assert_eq!(out.stderr, b"");
    for part in [
        r"bad\x1b[31mSSD\x07\x9b2J\u{202e}\x0ax",
        r"calls itself 'bad\x1b[31mSSD",
        r"This is a container (lxc\x1b[2J).",
        r"/etc/udev/rules.d/9\x1b[7m.rules:1 sets the scheduler cfq",
        r"mount -o remount,nodiscard $'/mnt/a\U0000001b[5mb;reboot'",
    ] {
        assert!(said.contains(part), "no '{part}' in\n{said}");
    }
}

/// In JSON the strings are whole, and no byte of the text is one that a terminal obeys.
#[test]
fn json_has_the_strings_in_its_own_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("device/model", BAD), ("queue/scheduler", "none [bfq]")];
    let root = machine(folder.path(), "sda", &files);
    let out = doctor(&["--root", &root, "--quick", "--json"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{said:?}");
    let value: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(value["disks"][0]["model"], BAD);
}

#[test]
fn the_command_line_of_an_old_kernel_is_named_as_the_setter() {
    let folder = tempfile::tempdir().unwrap();
    let root = machine(
        folder.path(),
        "sda",
        &[
            ("queue/rotational", "1"),
            ("queue/scheduler", "noop deadline [cfq]"),
            ("/proc/cmdline", "quiet elevator=cfq"),
            ("/proc/sys/kernel/osrelease", "4.4.0-210-generic"),
        ],
    );
    let out = doctor(&["--root", &root, "--quick"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("the kernel's command line, elevator=cfq"), "{said}");
    assert_eq!(out.status.code(), Some(0), "{said}");
}

/// No number of the lab is given for a disk that cannot be seen into, and none for a scheduler that the lab
/// does not have.
#[test]
fn a_scheduler_of_a_patched_kernel_is_no_reason_for_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("queue/rotational", "1"), ("queue/scheduler", "none mq-deadline bfq [adios]")];
    let root = machine(folder.path(), "sda", &files);
    let out = doctor(&["--root", &root]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("the patched kernel, or by hand"), "{said}");
    assert_eq!(out.status.code(), Some(0), "{said}");
}
