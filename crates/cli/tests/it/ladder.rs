//! `fairhead ladder` from the outside.

use std::io::Write as _;
use std::process::{Command, Output};
use tempfile::TempPath;

use serde_json::Value;

/// Short, and light enough for a debug build.
const JOB: &str = "[global]\nsize=64m\nruntime=500ms\ntime_based\n\
    [streams]\nrw=read\nbs=64k\nnumjobs=2\n[reader]\nrw=randread\ndirect=1\n";

/// The rungs of a whole ladder: bfq-v0, 13 patches and 7 later features.
const RUNGS: usize = 21;

/// A job file of its own for a test, removed at the end.
fn job() -> TempPath {
    let mut file = tempfile::Builder::new().suffix(".fio").tempfile().unwrap();
    file.write_all(JOB.as_bytes()).unwrap();
    file.into_temp_path()
}

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("ladder").args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let out = fairhead(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let out = fairhead(args);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}");
    String::from_utf8_lossy(&out.stderr).trim_end().to_owned()
}

#[test]
fn a_job_is_run_on_every_rung() {
    let job = job();
    let table = text(&[job.to_str().unwrap(), "--disk", "ide2004", "--seed", "7"]);
    assert!(table.contains(" on ide2004, host of 2004, seed 7\nlatency of reader\n\nbfq "), "{table}");
    let rows: Vec<&str> = table.lines().skip(4).collect();
    assert_eq!(rows.len(), RUNGS, "{table}");
    assert!(rows[0].starts_with("bfq-v0 ") && rows[RUNGS - 1].starts_with("+ "), "{table}");
    assert!(rows[1..].iter().all(|r| r.matches('x').count() >= 2), "each is compared with the one before");

    let csv = text(&[job.to_str().unwrap(), "--disk", "ide2004", "--output-format", "csv"]);
    let columns = |l: &str| l.split(',').count();
    assert_eq!(csv.lines().count(), 1 + RUNGS);
    assert!(csv.lines().all(|l| columns(l) == columns(csv.lines().next().unwrap())), "{csv}");
}

#[test]
fn the_last_rung_is_bfq_as_run_has_it() {
    let job = job();
    let parse = |args: &[&str]| -> Value { serde_json::from_str(&text(args)).unwrap() };
    let ladder = parse(&[job.to_str().unwrap(), "--disk", "ide2004", "--output-format", "json"]);
    let without =
        parse(&[job.to_str().unwrap(), "--disk", "ide2004", "--output-format", "json", "--without-each"]);
    let last = &ladder["rungs"][RUNGS - 1];
    assert_eq!(without["rungs"][0]["lat_p99_ns"], last["lat_p99_ns"]);
    let run = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args([
            "run",
            job.to_str().unwrap(),
            "--disk",
            "ide2004",
            "--sched",
            "bfq",
            "--output-format",
            "json",
        ])
        .args(["repairs", "streams", "ncq_protection"].map(|own| format!("--set=bfq.{own}=1")))
        .output()
        .unwrap();
    let run: Value = serde_json::from_slice(&run.stdout).unwrap();
    let reader = &run["runs"][0]["jobs"][1]["read"];
    assert_eq!(reader["lat_ns"]["max"], last["lat_max_ns"]);
    assert_eq!(reader["bw_bytes"], last["bw_bytes"]);
}

#[test]
fn one_switch_alone() {
    let job = job();
    let table =
        text(&[job.to_str().unwrap(), "--disk", "ide2004", "--only", "bursts", "--foreground", "streams"]);
    let names: Vec<&str> = table.lines().skip(4).map(|l| l.split("  ").next().unwrap()).collect();
    assert_eq!(names, ["bfq-v0", "bfq-v0 + bursts", "all - bursts", "all"]);
    assert!(table.contains("\nlatency of streams\n"), "{table}");
}

#[test]
fn a_scenario_is_judged() {
    let table = text(&["--scenario", "ncq_flash"]);
    assert!(table.lines().any(|l| l.starts_with("ncq_flash") && l.ends_with("as claimed")), "{table}");
    let all: Value =
        serde_json::from_str(&text(&["--scenario", "ncq_flash", "--output-format", "json"])).unwrap();
    let of = |v: &Value| v.as_f64().unwrap();
    let s = &all[0];
    assert_eq!((&s["patch"], &s["holds"]), (&21.into(), &true.into()));
    assert!(of(&s["with"]) >= of(&s["without"]) * of(&s["claimed_factor"]));
}

#[test]
fn mistakes_are_one_line() {
    let job = job();
    assert_eq!(
        refused(&["--scenario", "burst"]),
        "fairhead: bfq has no switch 'burst'; did you mean 'bursts'?"
    );
    assert_eq!(refused(&["--scenario", "wakers"]), "fairhead: there is no scenario for 'wakers' yet");
    assert!(
        refused(&["--only", "x"]).starts_with("fairhead: bfq has no switch 'x'; write one of hierarchy, ")
    );
    assert_eq!(
        refused(&[job.to_str().unwrap(), "--foreground", "redaer"]),
        "fairhead: no job 'redaer'; there are streams, reader"
    );
    assert!(refused(&["--scenario", "all", "--only", "bursts"]).contains("cannot be used with"));
}
