//! `fairhead record` on a loop device under fio: every request is there, in order, with its issuer.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

/// A loop device over a file, which is let go at the end.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        File::create(file).unwrap().set_len(32 << 20).unwrap();
        let out = Command::new("losetup").args(["-f", "--show"]).arg(file).output().ok()?;
        out.status.success().then(|| Self(String::from_utf8_lossy(&out.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_request_of_fio_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::new(&dir.path().join("disk.img")) else {
        return println!("skipped: no loop device can be made here (that needs root)");
    };
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, log) = (path("a.blktrace"), path("fio.log"));
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    let recorder = recorder.args(["record", &disk.0, "-t", "4s", "-o", &file, "--output-format", "json"]);
    let recorder =
        recorder.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let fio = Command::new("fio")
        .args(["--name=j", "--rw=randrw", "--bsrange=4k-64k", "--direct=1", "--ioengine=psync", "--prio=3"])
        .args(["--prioclass=2", "--number_ios=400", "--size=32m", "--thread=0", "--randseed=7"])
        .args([&format!("--filename={}", disk.0), &format!("--write_iolog={log}")])
        .output();
    let out = recorder.wait_with_output().unwrap();
    let Ok(fio) = fio else { return println!("skipped: there is no fio") };
    assert!(fio.status.success(), "{}", text(&fio.stderr));
    if !out.status.success() && text(&out.stderr).contains("root") {
        return println!("skipped: {}", text(&out.stderr));
    }
    assert!(out.status.success(), "{}", text(&out.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(summary["events_lost"], 0);
    let processes = summary["processes"].as_array().unwrap();
    let job = processes.iter().find(|p| p["name"] == "fio" && p["requests"] == 400);
    let job = job.unwrap_or_else(|| panic!("no fio with 400 requests: {processes:?}"));
    assert!(job["latency_p99_ns"].as_u64().unwrap() > 0);

    // fio's log has `TIME FILE read|write OFFSET LENGTH`.
    let wanted: Vec<(String, u64, u64)> = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|w| matches!(*w, "read" | "write"))?;
            let number = |i: usize| words.get(i)?.parse().ok();
            Some((words[at][..1].to_uppercase(), number(at + 1)?, number(at + 2)?))
        })
        .collect();
    assert_eq!(wanted.len(), 400);
    let shown = text(&fairhead(&["trace", &file, "--to", "blkparse"]).stdout);
    let pid = job["process"].to_string();
    let queued: Vec<(String, u64, u64)> = shown
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .filter(|w| w.len() > 9 && w[4] == pid && w[5] == "Q")
        .map(|w| {
            let number = |s: &str| s.parse::<u64>().unwrap() * 512;
            (w[6][..1].to_owned(), number(w[7]), number(w[9]))
        })
        .collect();
    assert_eq!(queued, wanted, "in order, with their sizes");
    // The lab takes it.
    let run = fairhead(&["run", &file, "--sched", "bfq", "--disk", "nvme"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
}

#[test]
fn what_cannot_be_recorded_is_one_line() {
    for (disk, words) in [("no-such-disk", "no disk of this machine"), ("/etc/passwd", "a file, not a disk")]
    {
        let out = fairhead(&["record", disk, "-t", "1s", "-o", "/dev/null"]);
        assert_eq!(out.status.code(), Some(2));
        let message = text(&out.stderr);
        assert!(message.contains(words) && message.lines().count() == 1, "{message}");
    }
}
