//! `fairhead calibrate` as a user meets it: on models, and on what is no disk. What it finds is tested in the
//! device crate.

use std::path::Path;
use std::process::{Command, Output};

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

/// The one line that it fails with, and the exit code.
fn refusal(args: &[&str]) -> (String, i32) {
    let out = fairhead(args);
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.stdout.is_empty() && text.lines().count() == 1, "{text}");
    (text.trim().to_owned(), out.status.code().unwrap())
}

#[test]
fn a_model_becomes_a_disk_file_that_runs() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("mine.toml");
    let file = file.to_str().unwrap();
    let out = fairhead(&["calibrate", "--model", "sata2009", "-o", file]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report = String::from_utf8(out.stdout).unwrap();
    for part in ["rpm", "7200", "20 zones", "demerit figure", "reads do not show it", "244.8 GB disk"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(std::fs::read_to_string(file).unwrap().contains("write_settle = \"0.5ms\""));
    for command in [&["run", "--disk", file, "--sched", "noop", "--runtime", "1s"][..], &["show", file]] {
        let out = fairhead(command);
        assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    // What was calibrated can be calibrated.
    let again = fairhead(&["calibrate", "--model", file, "--output-format", "json", "--seed", "2"]);
    let json: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&json["device"], &json["seed"]), (&"mine".into(), &2.into()));
    let rpm = json["parameters"].as_array().unwrap().iter().find(|p| p["key"] == "rpm").unwrap();
    assert_eq!((&rpm["value"], &rpm["confidence"]), (&"7200".into(), &"high".into()));
    assert!(json["validation"]["demerit_percent"].as_f64().unwrap() < 10.0, "{json:#}");
    assert!(json["disk_file"].as_str().unwrap().contains("kind = \"disk\""));
}

#[test]
fn the_same_question_has_the_same_answer() {
    let answer = |seed: &str| fairhead(&["calibrate", "--model", "emmc51", "--seed", seed]).stdout;
    assert_eq!(answer("1"), answer("1"));
    assert_ne!(answer("1"), answer("2"));
}

#[test]
fn what_cannot_be_calibrated_is_named_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    let small = place.path().join("small");
    std::fs::write(&small, vec![0; 1 << 20]).unwrap();
    let small = small.to_str().unwrap();
    for (args, said, code) in [
        (&["calibrate", folder][..], "it is a folder", 2),
        (&["calibrate", "/dev/null"], "neither a block device nor a file", 2),
        (&["calibrate", "/nowhere"], "No such file", 2),
        (&["calibrate", "--model", "ide204"], "did you mean 'ide2004'?", 2),
        (&["calibrate", "--model", "raid1_2009"], "calibrate a member", 2),
        (&["calibrate", "--model", "ide2004", "--time", "5s"], "the least that is needed", 2),
        (&["calibrate", "--model", "ide2004", "--time", "0s"], "is zero", 2),
        (&["calibrate", "--model", "dual_actuator"], "is not calibrated", 1),
    ] {
        let (text, exit) = refusal(args);
        assert!(text.contains(said) && exit == code, "{args:?}: {text}, exit {exit}");
    }
    let (text, _) = refusal(&["calibrate", small]);
    // Some file systems have no direct I/O.
    assert!(text.contains("at least 131072 (64 MiB)") || text.contains("no direct I/O"), "{text}");
    let out = fairhead(&["calibrate"]);
    assert_eq!(out.status.code(), Some(2));
}

/// A file in memory, or on this machine's own disk, has no arm; whatever it is said to be, nothing is written
/// to it.
#[test]
fn a_file_is_read_and_nothing_else() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("file");
    let bytes: Vec<u8> = (0..65 << 20).map(|i: u32| (i / 4096) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let before = modified(&path);
    let out = fairhead(&["calibrate", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 1)), "{said}");
    assert!(
        out.status.success() || said.contains("is not calibrated") || said.contains("direct I/O"),
        "{said}"
    );
    assert_eq!(modified(&path), before);
    assert!(std::fs::read(&path).unwrap() == bytes);
}

fn modified(path: &Path) -> std::time::SystemTime {
    path.metadata().unwrap().modified().unwrap()
}
