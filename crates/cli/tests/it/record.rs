//! `fairhead record` on a loop device under fio: every request is there, in order, with its issuer.

use crate::loop_device::LoopDevice;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A loop device on a new file of 32 MiB; `None`, and a line that says why, where there are none.
fn disk(folder: &Path) -> Option<LoopDevice> {
    let image = folder.join("disk.img");
    File::create(&image).unwrap().set_len(32 << 20).unwrap();
    LoopDevice::attach(&image)
}

/// A recording that runs.
struct Recorder {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Recorder {
    /// Begins to record the device, for ten minutes at most, and returns when the kernel records; `None`, and
    /// a line that says why, where only root may.
    fn begin(disk: &LoopDevice, file: &Path, more: &[&str]) -> Option<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.args(["record", &disk.0, "-t", "600s", "-o"]).arg(file).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Ctrl-C ends it earlier") {
            line.clear();
            said.read_line(&mut line).unwrap();
            if line.contains("root") {
                child.wait().unwrap();
                println!("skipped: {line}");
                return None;
            }
            assert!(!line.is_empty(), "it ended before it recorded");
        }
        Some(Self { child, said })
    }

    /// Ends it as Ctrl-C does. Returns its summary.
    fn interrupt(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let out = self.child.wait_with_output().unwrap();
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(out.status.success() && rest.contains("ended after"), "{rest}");
        text(&out.stdout)
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
    let Some(disk) = disk(dir.path()) else { return };
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, log) = (path("a.blktrace"), path("fio.log"));
    let Some(recorder) = Recorder::begin(&disk, file.as_ref(), &["--output-format", "json"]) else { return };
    let fio = Command::new("fio")
        .args(["--name=j", "--rw=randrw", "--bsrange=4k-64k", "--direct=1", "--ioengine=psync", "--prio=3"])
        .args(["--prioclass=2", "--number_ios=400", "--size=32m", "--thread=0", "--randseed=7"])
        .args([&format!("--filename=/dev/{}", disk.0), &format!("--write_iolog={log}")])
        .output();
    let summary = recorder.interrupt();
    let Ok(fio) = fio else { return println!("skipped: there is no fio") };
    assert!(fio.status.success(), "{}", text(&fio.stderr));
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
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
    // The lab takes it, and so does the adviser.
    let run = fairhead(&["run", &file, "--sched", "bfq", "--disk", "nvme"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let advice = fairhead(&["advise", &file, "--disk", "nvme", "--budget", "2s", "--output-format", "json"]);
    assert!(advice.status.success(), "{}", text(&advice.stderr));
    let advice: serde_json::Value = serde_json::from_slice(&advice.stdout).unwrap();
    assert!(advice.is_object(), "{advice}");
    programs_of_blktrace(&file, dir.path(), &pid);
}

/// blkparse and btt find the requests of this process in a recording.
fn programs_of_blktrace(file: &str, folder: &Path, pid: &str) {
    let run = |program: &str, args: &[&str]| {
        // They write beside where they are started.
        let out = Command::new(program).args(args).current_dir(folder).output();
        let Ok(out) = out else {
            println!("skipped: there is no {program}");
            return None;
        };
        Some(text(&[out.stdout, out.stderr].concat()))
    };
    // blkparse adds the number of the processor to the name of a stream.
    fs::copy(file, folder.join("b.blktrace.0")).unwrap();
    let Some(shown) = run("blkparse", &["-i", "b", "-d", "b.dump"]) else { return };
    let count = |letter: &str| {
        let lines = shown.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines.filter(|w| w.len() > 9 && w[5] == letter && (letter != "Q" || w[4] == pid)).count()
    };
    assert_eq!(count("Q"), 400, "{shown}");
    assert!(count("D") >= 400 && count("C") >= 400, "{shown}");
    assert!(shown.contains("[fio]") && shown.contains("priority best-effort 3"), "{shown}");
    let Some(times) = run("btt", &["-i", "b.dump"]) else { return };
    // btt gives the least, the mean and the greatest time in seconds, and the number.
    let q2c = times.lines().find(|l| l.starts_with("Q2C")).unwrap_or_default();
    let words: Vec<f64> = q2c.split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    assert!(words.len() == 4 && words[1] > 0.0 && words[3] >= 400.0, "{times}");
}

#[test]
fn ctrl_c_ends_a_recording_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = disk(dir.path()) else { return };
    let file = dir.path().join("a.blktrace");
    let Some(recorder) = Recorder::begin(&disk, &file, &[]) else { return };
    let dd = ["if=/dev/zero", "bs=64k", "count=20", "oflag=direct", "status=none"];
    assert!(Command::new("dd").args(dd).arg(format!("of=/dev/{}", disk.0)).status().unwrap().success());
    let mine = format!("fairhead-{}-", recorder.child.id());
    let is_mine =
        |e: io::Result<fs::DirEntry>| e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with(&mine));
    let instances = || fs::read_dir("/sys/kernel/tracing/instances").is_ok_and(|mut all| all.any(is_mine));
    assert!(instances() || !Path::new("/sys/kernel/tracing/instances").exists());
    let table = recorder.interrupt();
    let row = table.lines().find(|l| l.starts_with("dd-")).unwrap_or_else(|| panic!("no dd: {table}"));
    assert_eq!(row.split_whitespace().nth(1), Some("20"), "{table}");
    assert!(!instances(), "the trace instance is left");
    assert!(fairhead(&["trace", file.to_str().unwrap()]).status.success());
}

/// `advise --record`: recorded until Ctrl-C, then advised from, with one answer on stdout.
#[test]
fn advice_from_a_recording_of_now() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = disk(dir.path()) else { return };
    let device = format!("/dev/{}", disk.0);
    let advise = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.args([
            "advise",
            &device,
            "--sched",
            "none,mq-deadline,bfq",
            "--rounds",
            "1",
            "--output-format",
        ]);
        command.args(["json", "--record"]).args(more).current_dir(&dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    // What a loop device is made of cannot be seen; that is said before anything is recorded.
    let out = advise(&["600s"]).output().unwrap();
    let message = text(&out.stderr);
    assert!(out.status.code() == Some(2) && message.contains("name a preset"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let mut child = advise(&["600s", "--disk", "nas2020", "--recording", "now.blktrace"]).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C ends it earlier") {
        line.clear();
        said.read_line(&mut line).unwrap();
        if line.contains("root") || line.is_empty() {
            child.wait().unwrap();
            assert!(!line.is_empty(), "it ended before it recorded");
            return println!("skipped: {line}");
        }
    }
    let dd = ["of=/dev/null", "bs=64k", "count=200", "iflag=direct", "status=none"];
    assert!(Command::new("dd").args(dd).arg(format!("if={device}")).status().unwrap().success());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(out.status.success(), "{rest}");
    assert!(rest.contains("ended after") && rest.contains("the recording is in now.blktrace"), "{rest}");
    let advice: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(advice["jobs"][0]["job"], "now.blktrace", "{advice:#}");
    let recorded = text(&fairhead(&["trace", dir.path().join("now.blktrace").to_str().unwrap()]).stdout);
    assert!(recorded.contains("dd-"), "{recorded}");
    // The recording is kept, and asked again it has the same answer.
    let again = fairhead(&[
        "advise",
        dir.path().join("now.blktrace").to_str().unwrap(),
        "--disk",
        "nas2020",
        "--sched",
        "none,mq-deadline,bfq",
        "--rounds",
        "1",
        "--output-format",
        "json",
    ]);
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&again["winner"], &again["candidates"]), (&advice["winner"], &advice["candidates"]));
    // Nothing to advise on.
    let out = advise(&["1s", "--disk", "nas2020"]).output().unwrap();
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.ends_with("no requests were made in this time: nothing to advise on\n"), "{message}");
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
