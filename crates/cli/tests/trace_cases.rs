//! Traces as others recorded them, as a user hands them in: each is described and replayed, and the note
//! about the replay is true.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

fn case(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests").join(file)
}

/// What a replay notes on standard error.
fn replayed(file: &Path) -> String {
    let out = fairhead(&["run", file.to_str().unwrap(), "--disk", "nvme", "--sched", "none"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{}: {said}", file.display());
    said
}

/// Each file: its format and number of requests, and what its replay notes.
const CASES: [(&str, &str, &str); 12] = [
    ("cases/fsync-loop.ftrace", "ftrace text, 159 requests", "replayed closed"),
    ("cases/perf-flush-answered.txt", "ftrace text, 3 requests", "replayed closed"),
    ("cases/perf-pid-tid.txt", "ftrace text, 1 requests", "replayed closed"),
    ("cases/perf-with-stacks.txt", "ftrace text, 1 requests", "replayed closed"),
    ("cases/biosnoop.txt", "biosnoop table, 3 requests", "replayed closed"),
    ("cases/iosnoop.txt", "iosnoop table, 2 requests", "replayed closed"),
    (
        "cases/cloudphys.csv",
        "cloudPhysics CSV, 3 requests",
        "3 of 3 requests have no completion, because cloudPhysics CSV has no completion times",
    ),
    (
        "golden/libcachesim.csv",
        "libCacheSim CSV, 3 requests",
        "3 of 3 requests have no completion, because libCacheSim CSV has no completion times",
    ),
    (
        "golden/mqsim.txt",
        "MQSim ASCII, 3 requests",
        "3 of 3 requests have no completion, because MQSim ASCII has no completion times",
    ),
    (
        "golden/one.vscsi",
        "VSCSI binary, 3 requests",
        "3 of 3 requests have no completion, because none was recorded",
    ),
    (
        "golden/two.vscsi",
        "VSCSI binary, 3 requests",
        "1 of 3 requests have no completion, because 1 had not completed when the recording ended",
    ),
    (
        "golden/ftrace-blk.txt",
        "ftrace text, 2 requests",
        "1 of 2 requests have no completion, because the recording lost 25 events",
    ),
];

#[test]
fn each_is_described_and_replayed_with_a_true_note() {
    for (name, what, note) in CASES {
        let file = case(name);
        let out = fairhead(&["trace", file.to_str().unwrap()]);
        let said = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && said.contains(what), "{name}: {said}");
        let said = replayed(&file);
        assert!(said.contains(note), "{name}: {said}");
        // An open replay says why; a closed one has nothing to excuse.
        assert_eq!(note == "replayed closed", !said.contains("have no completion"), "{name}: {said}");
    }
}

#[test]
fn what_a_closed_replay_lacks_is_counted() {
    let file = case("golden/mqsim.txt");
    let out = fairhead(&["run", file.to_str().unwrap(), "--replay", "closed"]);
    let said = String::from_utf8(out.stderr).unwrap();
    let lacks = "3 of 3 requests have no completion, because MQSim ASCII has no completion times; a closed replay \
                 needs them: replay it open";
    assert!(!out.status.success() && said.contains(lacks), "{said}");
}

#[test]
fn the_given_inputs_are_among_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/traces");
    let Ok(files) = std::fs::read_dir(folder) else {
        println!("skipped: no ../shared");
        return;
    };
    for file in files.map(|f| f.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let ours = case(&format!("cases/{name}"));
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(ours).unwrap(), "{name}");
        assert!(CASES.iter().any(|(case, ..)| *case == format!("cases/{name}")), "{name}");
    }
}
