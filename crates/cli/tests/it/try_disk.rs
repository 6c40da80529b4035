//! `fairhead try` on loop devices: it always goes back, and says what it found.

#![allow(clippy::disallowed_methods, reason = "turns and kills are of real time")]

use crate::process::{Process, fairhead};
use crate::trial::{disk, said, try_on, wait_for};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Numbers that look random: a generator of Marsaglia's.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// How often it is killed; `FAIRHEAD_KILLS` overrides.
fn kills() -> u64 {
    std::env::var("FAIRHEAD_KILLS").map_or(20, |n| n.parse().unwrap())
}

/// Killed at a moment drawn from its whole start and first turns: with SIGKILL, or with what ends programs.
#[test]
fn it_goes_back_whenever_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let before = disk.all();
    let (mut random, mut changed) = (Xorshift(0x9e37_79b9_7f4a_7c15), 0);
    for kill in 0..kills() {
        let signal = ["KILL", "KILL", "KILL", "TERM", "INT", "HUP"][random.below(6) as usize];
        // Few are so late that a turn has changed twice: each takes as long as it lives.
        let late = if random.below(20) == 0 { 3000 } else { 400 };
        let after = Duration::from_micros(random.below(late * 1000));
        let mut child = fairhead()
            .args([
                "try",
                &disk.0,
                "bfq",
                "slice_idle=3",
                "read_ahead_kb=64",
                "--against",
                "none",
                "-t",
                "60s",
                "--turn",
                "2s",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if kill == 0 {
            // However late the machine is, one kill meets a change.
            wait_for(&disk, "bfq");
        } else {
            std::thread::sleep(after);
        }
        changed += u64::from(disk.all() != before);
        let pid = child.id().to_string();
        let _ = Command::new("kill").args(["-s", signal, &pid]).status();
        // The watchdog has the other end, too: the pipe ends when both have ended.
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        let now = disk.all();
        let wrong: Vec<_> = now.iter().filter(|(k, v)| before.get(*k) != Some(v)).collect();
        assert!(now == before, "kill {kill}, {signal} after {after:?}: {wrong:?}\n{text}");
    }
    assert!(changed > 0, "no kill met a change");
    println!("{} kills, {changed} of them while the settings were others", kills());
}

/// The whole of it without a load: it takes its time, finds nothing, and everything is as before.
#[test]
fn without_requests_nothing_is_said_and_everything_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let before = disk.all();
    let out = try_on(&disk, &["bfq", "-t", "8s", "--turn", "2s"]);
    assert!(out.status.success(), "{}", said(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("nothing to compare"), "{text}");
    assert_eq!(disk.all(), before);
}

/// A loop device has 128 tags: under none it takes no more requests than that, under a scheduler it does.
#[test]
fn requests_of_one_scheduler_are_not_set_under_another() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    disk.write("nr_requests", "200");
    let before = disk.all();
    let out = try_on(&disk, &["bfq", "nr_requests=64", "--against", "none", "-t", "8s", "--turn", "2s"]);
    assert!(!said(&out).contains("nr_requests"), "{}", said(&out));
    assert_eq!(disk.all(), before);
}

#[test]
fn two_at_once_are_refused_and_apply_beside_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let before = disk.all();
    let mut child = Process(
        fairhead().args(["try", &disk.0, "bfq", "--turn", "2s"]).stderr(Stdio::piped()).spawn().unwrap(),
    );
    wait_for(&disk, "bfq");
    let line = format!(
        "fairhead: another fairhead try or apply is at work on {}; wait until it has ended\n",
        disk.0
    );
    let second = try_on(&disk, &["kyber"]);
    assert_eq!((second.status.code(), said(&second)), (Some(1), line.clone()));
    let apply = fairhead().args(["apply", &disk.0, "kyber", "--yes"]).output().unwrap();
    assert_eq!((apply.status.code(), said(&apply)), (Some(1), line));
    // Ctrl-C ends it well.
    Command::new("kill").args(["-s", "INT", &child.0.id().to_string()]).status().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    assert_eq!(disk.all(), before);
}

#[test]
fn somebody_elses_choice_is_told_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let child =
        fairhead().args(["try", &disk.0, "bfq", "--turn", "2s"]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&disk, "bfq");
    disk.write("scheduler", "none");
    let out = child.wait_with_output().unwrap();
    let line = format!(
        "fairhead: another program has chosen none for {}; the trial has ended, and leaves that\n",
        disk.0
    );
    assert_eq!((out.status.code(), said(&out)), (Some(1), line));
    assert!(disk.read("scheduler").contains("[none]"));
}

/// SIGKILL of the watchdog: the trial itself puts back.
#[test]
fn a_trial_without_its_watchdog_ends_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let before = disk.all();
    let child =
        fairhead().args(["try", &disk.0, "bfq", "--turn", "2s"]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&disk, "bfq");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let watchdog = children.split_whitespace().next().expect("a watchdog");
    Command::new("kill").args(["-s", "KILL", watchdog]).status().unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(said(&out).contains("the watchdog is not there any more"), "{}", said(&out));
    assert_eq!(disk.all(), before);
}

#[test]
fn each_mistake_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let before = disk.all();
    for (args, line) in [
        (
            vec!["bqf"],
            "no scheduler 'bqf' in the kernel; there are none, mq-deadline, bfq, kyber; did you mean 'bfq'?",
        ),
        (vec!["mq-deadline"], "nothing to compare: both sides are mq-deadline"),
        (vec!["bfq", "--turn", "1s"], "--turn is too short: its first second is not counted, so 2s at least"),
        (vec!["bfq", "-t", "10s"], "-t is too short: four turns take 20 s"),
        (vec!["bfq", "--job", "/no/such.fio"], "'/no/such.fio': No such file or directory (os error 2)"),
        (
            vec!["bfq", "back_seek_penalty=-1"],
            "back_seek_penalty=-1: out of range; the kernel takes 1 to 2147483647",
        ),
    ] {
        let out = try_on(&disk, &args);
        assert_eq!((out.status.code(), said(&out)), (Some(2), format!("fairhead: {line}\n")), "{args:?}");
    }
    // A value that the kernel alone refuses, as it is less than a page, ends the first turn of it.
    let out = try_on(&disk, &["bfq", "max_sectors_kb=1", "-t", "8s", "--turn", "2s"]);
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(said(&out).contains("max_sectors_kb: Invalid argument"), "{}", said(&out));
    assert_eq!(disk.all(), before);
}
