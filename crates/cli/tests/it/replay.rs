//! A trace where a job file is expected, as a user meets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/golden").join(file)
}

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

/// The table, and what is said beside it.
fn answer(args: &[&str]) -> (String, String) {
    let out = fairhead(args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (table, said) = (text(out.stdout), text(out.stderr));
    assert!(out.status.success(), "{args:?}: {said}");
    (table, said)
}

/// The one line with which it is refused.
fn refusal(args: &[&str]) -> String {
    let out = fairhead(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
    assert!(out.stdout.is_empty());
    said
}

#[test]
fn a_trace_of_any_format_is_run() {
    for file in ["blkparse.txt", "set", "packed/spc.csv.zst", "msr.csv", "iolog-v3.txt", "startup.txt"] {
        let file = golden(file);
        let (table, said) = answer(&["run", path(&file), "--sched", "bfq,noop"]);
        assert!(table.contains("bfq") && table.contains("none"), "{table}");
        assert!(said.contains("replayed open") || said.contains("replayed closed"), "{said}");
    }
}

#[test]
fn flags_say_how() {
    let file = golden("blkparse.txt");
    let json = |args: &[&str]| {
        let all = [&["run", path(&file), "--sched", "noop", "--output-format", "json"], args].concat();
        let (text, said) = answer(&all);
        (serde_json::from_str::<serde_json::Value>(&text).unwrap(), said)
    };
    let made = |json: &serde_json::Value| {
        let jobs = json["runs"][0]["jobs"].as_array().unwrap();
        (jobs.len(), jobs.iter().map(|j| j["replayed"]["made"].as_u64().unwrap()).sum::<u64>())
    };
    let (all, said) = json(&["--replay", "open"]);
    assert_eq!((made(&all), said.contains("replayed")), ((3, 6), false), "{all}");
    assert_eq!(made(&json(&["--replay-clients", "1"]).0), (2, 6));
    assert_eq!(made(&json(&["--replay-device", "8,16", "--replay", "open"]).0), (1, 1));
    let elapsed = |json: &serde_json::Value| json["runs"][0]["elapsed_ns"].as_u64().unwrap();
    let slow = json(&["--replay", "open", "--replay-time-scale", "10"]).0;
    assert!(elapsed(&slow) >= 199_000_000, "19.9 ms, ten times slower: {slow}");
    json(&["--replay", "no-stall", "--replay-depth", "2", "--replay-fit", "wrap", "--replay-redirect"]);
    let wrong = refusal(&["run", path(&file), "--replay-device", "9,9"]);
    assert!(wrong.contains("it has no device '9,9'; it has 8,0, 8,16"), "{wrong}");
}

#[test]
fn what_is_no_trace_and_no_job_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let job = file("job.fio", b"; a job\n[a]\nsize=1m\n");
    answer(&["run", path(&job), "--sched", "noop"]);
    let wrong = refusal(&["run", path(&job), "--replay", "open"]);
    assert!(wrong.contains("in a job file write read_iolog=FILE"), "{wrong}");
    let text = file("neither", b"hello\nworld\n");
    assert!(refusal(&["run", path(&text)]).contains("neither:1: "), "a text is taken for a job file");
    let wide = file("wide", &[0xff, 0xfe, b'[', 0, b'a', 0, b']', 0]);
    assert!(refusal(&["run", path(&wide)]).contains("a text in UTF-16; save it as UTF-8"));
    let binary = file("binary", &[0xff, 0xfd, 0, 1, 2]);
    let wrong = refusal(&["run", path(&binary)]);
    assert!(wrong.contains("is no trace of a known format"), "{wrong}");
    // Damage in the middle: nothing is run, and nothing is written.
    let mut damaged = std::fs::read(golden("msr.csv")).unwrap();
    damaged.extend_from_slice(b"128166372003061629,src1,0,Reed,1,2,3\n");
    let damaged = file("damaged", &damaged);
    let result = folder.path().join("result");
    let wrong = refusal(&["run", path(&damaged), "-o", path(&result)]);
    assert!(
        wrong.starts_with(&format!("fairhead: {}:5: ", damaged.display())) && !result.exists(),
        "{wrong}"
    );
    let wrong = refusal(&["run", path(&golden("alibaba.csv")), "--replay", "closed"]);
    assert!(wrong.contains("has no completion times"), "{wrong}");
}

#[test]
fn advise_takes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.csv");
    let row = |i: u64| {
        format!(
            "{},{},{},4096,{}\n",
            i % 2,
            if i.is_multiple_of(5) { "W" } else { "R" },
            i * 1_234_567_168,
            i * 900
        )
    };
    std::fs::write(&file, (0..400).map(row).collect::<String>()).unwrap();
    let (text, said) = answer(&["advise", path(&file), "--disk", "nas2020", "--rounds", "1"]);
    assert!(text.contains("mq-deadline"), "{text}");
    assert!(said.contains("replayed open"), "{said}");
}

/// Ctrl-C in the middle leaves nothing behind.
#[test]
fn a_replay_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (file, result) = (folder.path().join("long.csv"), folder.path().join("result"));
    let row = |i: u64| format!("0,R,{},4096,{}\n", i * 7_654_400 % 1_000_000_000_000, i * 20_000);
    std::fs::write(&file, (0..400_000).map(row).collect::<String>()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["run", path(&file), "-o", path(&result)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success(), "it had ended already");
    let status = child.wait().unwrap();
    assert!(!status.success());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["long.csv"]);
}
