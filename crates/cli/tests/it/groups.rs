//! Control groups from the outside: their settings in a job file, their figures, and what is refused.

use std::process::{Command, Output};
use tempfile::TempDir;

use serde_json::Value;

/// Two tenants of one customer, and one that pays nothing.
const JOB: &str = "[global]\nsize=64m\nbs=64k\nrw=read\ndirect=1\ntime_based\nruntime=500ms\n#!fh_cgroup=t weight=300\n\
    [a]\ncgroup=t/a\n[b]\ncgroup=t/b\n#!fh_cgroup=class=idle\n[free]\n";

/// A directory of its own for a test, removed at the end.
struct Dir(TempDir);

impl Dir {
    fn new(job: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job.fio"), job).unwrap();
        Self(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command
            .current_dir(&self.0)
            .args(["run", "job.fio", "--disk", "sata2009"])
            .args(args)
            .output()
            .unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--output-format", "json"]].concat())).unwrap()
    }

    /// The exit code and the line of a run that fails.
    fn refused(&self, args: &[&str]) -> (i32, String) {
        let out = self.run(args);
        let line = String::from_utf8(out.stderr).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(out.stdout.is_empty(), "no results beside an error");
        (out.status.code().unwrap(), line.trim_end().trim_start_matches("fairhead: ").to_owned())
    }
}

/// A group that waits for its limit, under a scheduler that keeps the disk idle for it, and under one that
/// does not; the same without a limit.
#[test]
fn who_is_limited_and_keeps_the_disk_idle_is_warned_about() {
    let job = "[global]\nsize=256m\nbs=64k\nrw=read\ndirect=1\ntime_based\nruntime=1s\n\
        [gold]\ncgroup=gold\n#!fh_cgroup=weight=300 rbps=4m\n[tin]\ncgroup=tin\n";
    let of = |json: &Value, name: &str| {
        let jobs = json["runs"][0]["jobs"].as_array().unwrap().clone();
        jobs.iter().find(|j| j["jobname"] == name).unwrap()["read"]["bw_bytes"].as_u64().unwrap()
    };
    let free = Dir::new(&job.replace("rbps=4m", "rbps=max"));
    let limited = Dir::new(job);
    let text = limited.text(&["--sched", "bfq,mq-deadline"]);
    let warnings: Vec<&str> = text.lines().filter(|l| l.starts_with("warning: ")).collect();
    assert!(warnings.len() == 1 && warnings[0].starts_with("warning: bfq kept the disk idle for "), "{text}");
    assert!(warnings[0].contains("gold waited for a limit"), "{text}");
    assert!(!free.text(&["--sched", "bfq"]).contains("warning: "));
    // The adviser says so of what it advises.
    let advise = |d: &Dir, sched: &str| {
        let args = [
            "advise",
            "job.fio",
            "--disk",
            "sata2009",
            "--rounds",
            "1",
            "--goal",
            "bulk",
            "--against",
            sched,
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        let out = command.current_dir(&d.0).args(args).args(["--sched", "bfq,mq-deadline"]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let is_warned = |text: &str| {
        let answer = text.lines().next().unwrap();
        (
            answer.contains(": use bfq") || answer.contains("with bfq"),
            text.replace("\n  ", " ").contains("Warning: bfq kept the disk idle for "),
        )
    };
    let text = advise(&limited, "bfq");
    let (is_bfq, warned) = is_warned(&text);
    assert_eq!(is_bfq, warned, "{text}");
    assert!(is_bfq, "the job is not one for bfq any more: {text}");
    assert!(!advise(&free, "bfq").contains("Warning: "));
    // What the limit leaves of the disk is lost: the other group gets next to none of it.
    let [with, without] = [&limited, &free].map(|d| d.json(&["--sched", "bfq"]));
    let left = of(&without, "gold") - of(&with, "gold");
    let gained = of(&with, "tin").saturating_sub(of(&without, "tin"));
    assert!(gained * 4 < left, "{gained} of {left} bytes a second");
}

#[test]
fn groups_have_a_table_with_what_is_inside_them() {
    let text = Dir::new(JOB).text(&["--sched", "bfq"]);
    let at = text.lines().position(|l| l.starts_with("cgroup  scheduler  weight  class")).expect("a table");
    let rows: Vec<Vec<&str>> =
        text.lines().skip(at + 1).take(4).map(|l| l.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows.iter().map(|r| r[0]).collect();
    assert_eq!(names, ["/", "t", "t/a", "t/b"], "{text}");
    assert_eq!((rows[1][2], rows[3][3]), ("300", "IDLE"), "{text}");
    // Cells end where their heading does.
    let heading =
        text.lines().nth(at).and_then(|l| l.find("read MiB/s")).expect("a column") + "read MiB/s".len();
    let rate = |i: usize| -> f64 {
        let upto = &text.lines().nth(at + 1 + i).unwrap()[..heading];
        upto.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert!((rate(1) - rate(2) - rate(3)).abs() < 0.5, "{text}");
}

#[test]
fn json_has_the_kernels_names_for_a_group_and_for_all_inside_it() {
    let all = Dir::new(JOB).json(&["--sched", "bfq"]);
    let groups = all["runs"][0]["cgroups"].as_array().unwrap();
    let [root, t, a, b] = [0, 1, 2, 3].map(|i| &groups[i]);
    assert_eq!((&a["cgroup"], &t["weight"], &b["class"]), (&"t/a".into(), &300.into(), &"idle".into()));
    let of = |g: &Value, name: &str| g[name].as_u64().unwrap();
    assert_eq!((of(t, "rbytes"), of(t, "disk_sectors")), (0, 0), "it has no clients of its own");
    assert_eq!(of(&t["recursive"], "rbytes"), of(a, "rbytes") + of(b, "rbytes"));
    assert_eq!(of(&root["recursive"], "rios"), of(a, "rios") + of(b, "rios") + of(root, "rios"));
    assert_eq!(a["io_service_bytes"]["Read"], a["rbytes"]);
    assert_eq!(a["io_serviced"]["Sync"], a["rios"]);
    assert!(of(&a["io_service_time_ns"], "Total") > 0 && a["max"].is_null());
    assert!(root["weight"].is_null() && root["leaf_weight"] == 100);
}

#[test]
fn without_groups_nothing_is_told_of_them() {
    let dir = Dir::new("[j]\nsize=1m\ndirect=1\n");
    assert!(!dir.text(&["--sched", "bfq"]).contains("cgroup"));
    assert!(dir.json(&["--sched", "bfq"])["runs"][0]["cgroups"].is_null());
    assert_eq!(
        dir.refused(&["--sched", "bfq", "--watch", "1s"]),
        (2, "--watch=1s: there are no control groups to watch; add cgroup=NAME to jobs".into())
    );
}

#[test]
fn a_time_to_watch_by_makes_sense_or_is_refused() {
    let dir = Dir::new(JOB);
    for (time, line) in [
        ("2", "'--watch=2' has no unit; write us, ms or s: --watch=8ms"),
        ("0s", "'--watch=0s' is zero; write a time such as --watch=10s"),
        ("1ms", "--watch=1ms: too short; write at least 10ms"),
        ("1m", "--watch=60.0s is longer than the run, which ended after 5"),
    ] {
        let (code, told) = dir.refused(&["--sched", "noop", "--watch", time]);
        assert!(code == 2 && told.starts_with(line), "{told}");
    }
    let (_, told) = dir.refused(&["--watch", "1s", "--output-format", "json+"]);
    assert_eq!(told, "--watch=1s: fio's json+ has no place for it; use --output-format human, json or csv");
}

#[test]
fn who_charges_no_disk_time_says_so_in_one_line() {
    let dir = Dir::new(JOB);
    let text = dir.text(&["--sched", "kyber", "--watch", "100ms"]);
    let chapter = text.split("disk time of control groups per 100ms").nth(1).expect("a chapter");
    assert_eq!(chapter.lines().skip(2).collect::<Vec<_>>(), ["kyber charges no disk time"], "{text}");
    assert!(text.starts_with(&dir.text(&["--sched", "kyber"])), "the rest is as ever");
}

#[test]
fn what_is_not_kept_is_told_in_one_line_and_comparing_goes_on() {
    let dir = Dir::new(&format!("{JOB}cgroup=u\n#!fh_cgroup=wbps=5m min_iops=1\n"));
    let text = dir.text(&["--sched", "kyber,noop,bfq"]);
    let line = text.lines().find(|l| l.starts_with("not kept")).expect("a line");
    assert_eq!(line, "not kept: class, min_iops under kyber, none, bfq; weight under kyber, none");
    let all = dir.json(&["--sched", "bfq"]);
    assert_eq!(all["runs"][0]["cgroups_not_kept"], serde_json::json!(["class", "min_iops"]));
    assert_eq!(all["runs"][0]["cgroups"][4]["max"]["wbps"], 5 << 20);
    assert_eq!(all["runs"][0]["cgroups"][4]["max"]["rbps"], "max");
}

#[test]
fn a_guarantee_that_cannot_be_ends_with_code_1_and_both_numbers() {
    let dir = Dir::new("[a]\nsize=1m\ncgroup=a\n#!fh_cgroup=min_iops=5000\n");
    let (code, line) = dir.refused(&["--sched", "noop"]);
    let start = "cgroup 'a': reservations would add up to 5000 requests/s, but the disk is good for ";
    assert!(code == 1 && line.starts_with(start), "{line}");
}

#[test]
fn a_change_that_cannot_be_is_a_note_and_the_run_goes_on() {
    let dir = Dir::new(&format!(
        "{JOB}#!fh_at=100ms remove t\n#!fh_at=200ms remove t/b\n#!fh_at=300ms move a t/b\n"
    ));
    let out = dir.run(&["--sched", "bfq", "--output-format", "json"]);
    assert!(out.status.success());
    let notes = [
        "at 100ms: 'remove t' was not done: cgroup 't' still has requests or groups in it",
        "at 300ms: 'move a t/b' was not done: cgroup 't/b' is gone",
    ];
    let told = String::from_utf8(out.stderr).unwrap();
    assert_eq!(told.lines().map(|l| l.trim_start_matches("fairhead: ")).collect::<Vec<_>>(), notes);
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(all["runs"][0]["notes"], serde_json::json!(notes));
    let bytes = |i: usize| all["runs"][0]["cgroups"][i]["rbytes"].as_u64().unwrap();
    assert!(bytes(3) > 0 && bytes(1) > 0, "b's requests continued in t: {}", bytes(1));
}

#[test]
fn a_job_with_groups_is_compared_under_those_that_know_them() {
    let text = Dir::new(JOB).text(&["--runtime", "50ms"]);
    let named = |name: &str| text.lines().any(|l| l.split_whitespace().any(|w| w == name));
    for name in
        ["none", "deadline", "cfq", "bfq", "none+groups", "deadline+groups", "as+groups", "cfq+groups"]
    {
        assert!(named(name), "{name} in {text}");
    }
    for name in ["kyber", "cfq-ts1", "deadline-2.6.9", "deadline-2.6.9+groups", "bfq-v0"] {
        assert!(!named(name), "{name} in {text}");
    }
}

#[test]
fn the_first_group_is_watched_beside_the_others() {
    let dir = Dir::new(&JOB.replace("500ms", "2s"));
    let all = dir.json(&["--sched", "deadline+groups", "--watch", "1s"]);
    let run = &all["runs"][0];
    let watch = &run["watch"];
    assert_eq!(watch["cgroups"], serde_json::json!(["t", "t/a", "t/b", "/"]));
    let of = |v: &Value| v.as_u64().unwrap();
    let points = watch["points"].as_array().unwrap();
    let sum = |i: usize| -> u64 { points.iter().map(|p| of(&p["disk_time_ns"][i])).sum() };
    assert_eq!(sum(1), of(&run["cgroups"][2]["disk_time_ns"]), "all of it is in one interval");
    assert_eq!(sum(0), sum(1) + sum(2), "t has what its tenants have");
    assert!(sum(2) < 50_000_000, "b is of the idle class, and served when the others have ended: {}", sum(2));
    let ratio = points[1]["first_over_this"][3].as_f64().unwrap();
    assert!((2.3..4.0).contains(&ratio), "3 to 1, by slices of 100 ms: {ratio}");
    let csv = dir.text(&["--sched", "deadline+groups", "--watch", "1s", "--output-format", "csv"]);
    assert!(csv.starts_with("scheduler,disk,seed,cgroup,start_ns,interval_ns,disk_time_ns\n"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 4 * points.len(), "{csv}");
}
