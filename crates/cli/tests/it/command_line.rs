//! The binary as a user meets it: exit codes, one-line errors, lists.

use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};
use tempfile::TempPath;

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

/// stdout of a call that must succeed.
fn answer(args: &[&str]) -> String {
    let out = fairhead(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The line on stderr of a call that must fail with `code` and print nothing else.
fn refusal(args: &[&str], code: i32) -> String {
    let out = fairhead(args);
    assert_eq!(out.status.code(), Some(code), "{args:?}");
    assert!(out.stdout.is_empty(), "{args:?}");
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text.trim_end().strip_prefix("fairhead: ").expect("the program names itself").to_owned()
}

/// A file whose name ends so, removed at the end.
fn temp(name: &str, text: &str) -> TempPath {
    let mut file = tempfile::Builder::new().suffix(name).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.into_temp_path()
}

#[test]
fn without_a_command_there_is_a_picture_of_at_most_15_lines() {
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.env_remove("LC_ALL").env_remove("LC_CTYPE").envs(variables.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let text = run(&[("LANG", "C.UTF-8")]);
    assert!(text.lines().count() <= 15, "{text}");
    let bars: Vec<&str> = text.lines().filter(|l| l.contains('█')).collect();
    assert_eq!(bars.len(), 6, "{text}");
    assert!(bars[0].contains("none, deadline, mq-deadline, kyber") && bars[0].contains("20.0s"), "{text}");
    assert!(bars[5].contains("bfq") && bars[5].contains("717ms"), "{text}");
    // A pipe gets no colour; a terminal without Unicode gets plain bars.
    assert!(!text.contains('\x1b'));
    assert!(run(&[("LANG", "C")]).is_ascii());
    assert!(run(&[("LANG", "C.UTF-8"), ("TERM", "dumb")]).is_ascii());
    let all = answer(&["--all"]);
    assert_eq!(all.matches("kyber").count(), 3, "two jobs and the disk: {all}");
    assert!(refusal(&["--all", "run"], 2).contains("--all"));
}

#[test]
fn help_and_version_succeed() {
    assert!(answer(&["--help"]).contains("Usage: fairhead"));
    assert!(answer(&["run", "--help"]).contains("--sched"));
    assert!(answer(&["--version"]).starts_with("fairhead "));
}

#[test]
fn misuse_is_one_line_and_exit_code_2() {
    assert_eq!(refusal(&["rnu"], 2), "unrecognized subcommand 'rnu'; did you mean 'run'?");
    assert_eq!(
        refusal(&["run", "--sched", "dedline"], 2),
        "unknown scheduler 'dedline'; did you mean 'deadline'?"
    );
    assert_eq!(refusal(&["run", "--sched", "noop,noop"], 2), "scheduler 'noop' is named twice");
    assert_eq!(refusal(&["run", "--sched", ""], 2), "unknown scheduler ''; see fairhead list schedulers");
    assert_eq!(
        refusal(&["run", "--interval", "5"], 2),
        "'--interval=5' has no unit; write us, ms or s: --interval=8ms"
    );
    assert_eq!(
        refusal(&["run", "--runtime", "0s"], 2),
        "'--runtime=0s' is zero; write a time such as --runtime=10s"
    );
    assert_eq!(
        refusal(&["run", "--set", "deadline.read_expire=4"], 2),
        "--set deadline.read_expire=4: 'deadline.read_expire=4' has no unit; write us, ms or s: deadline.read_expire=8ms"
    );
    assert_eq!(refusal(&["show", "nop"], 2), "nothing is called 'nop'; did you mean 'noop'?");
    assert!(refusal(&["run", "--output-format", "xml"], 2).contains("human, json, json+, csv"));
}

#[test]
fn a_wrong_job_file_is_named_with_its_line() {
    let job = temp("wrong.fio", "[j]\nsize=1g\niodpeth=3\n");
    let line = refusal(&["run", job.to_str().unwrap()], 2);
    assert_eq!(
        line.rsplit_once("wrong.fio").unwrap().1,
        ":3: unknown option 'iodpeth'; did you mean 'iodepth'?"
    );
    let binary = temp("binary.fio", "");
    std::fs::write(&binary, [b'[', 0xff]).unwrap();
    assert!(refusal(&["run", binary.to_str().unwrap()], 2).ends_with("binary.fio:1: not a text in UTF-8"));
    assert_eq!(
        refusal(&["run", "app-strat"], 2),
        "no job file 'app-strat'; did you mean the workload 'app-start'?"
    );
}

#[test]
fn a_missing_file_is_misuse_in_every_command() {
    let none = "/no/such/file";
    for args in [
        &["run", none][..],
        &["run", "--disk", none],
        &["advise", none],
        &["sweep", none],
        &["ladder", none],
        &["trace", none],
        &["conform", none],
        &["validate", "ide2004", "--trace", none],
        &["calibrate", none],
        &["replay-live", none],
        &["show", none],
        &["emulate", "nvme", none, "/tmp"],
        &["mount", none, "/tmp"],
        &["serve", "--export", "a=/no/such/file", "--socket", "/no/such/folder/s"],
    ] {
        let line = refusal(args, 2);
        assert!(line.contains("/no/such/file"), "{args:?}: {line}");
    }
    // A folder is no file, and what has no name of a job is read as one.
    assert!(refusal(&["run", "/tmp"], 2).contains("/tmp"));
    assert!(refusal(&["run", "app-start", "--disk", "/tmp"], 2).contains("/tmp"));
}

#[test]
fn lists_name_everything_once() {
    let schedulers = answer(&["list", "schedulers"]);
    assert!(
        schedulers.lines().any(|l| l.starts_with("none "))
            && schedulers.lines().any(|l| l.starts_with("deadline "))
    );
    assert!(answer(&["list", "workloads"]).starts_with("app-start "));
    for what in ["schedulers", "disks", "workloads"] {
        let text = answer(&["list", what]);
        let mut names: Vec<&str> = text.lines().filter_map(|l| l.split_ascii_whitespace().next()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{text}");
        for name in names {
            assert!(!answer(&["show", name]).is_empty(), "show {name}");
        }
    }
}

#[test]
fn show_gives_unit_default_range_and_effect() {
    let text = answer(&["show", "deadline"]);
    assert!(
        text.contains("\nread_expire = 500ms    time, at least 0s\n    How long a read may wait"),
        "{text}"
    );
    assert!(text.contains("\nbatch_rule = ascending    choice, ascending | contiguous\n"), "{text}");
    assert!(answer(&["show", "app-start"]).contains("[application]"));
    assert_eq!(answer(&["show", "fsck"]).lines().last(), Some("fh_workload=fsck"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["show", "deadline"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

#[test]
fn validate_prints_the_figure_and_names_what_is_wrong() {
    // The first request goes to the media, the second is read ahead.
    let trace = temp("validate.trace", "R Hit 1000 8 5000 20000\nR Hit 1008 8 80 20000\n");
    let text = answer(&["validate", "ide2004", "--trace", trace.to_str().unwrap()]);
    assert!(text.starts_with("ide2004: 2 requests, demerit figure ") && text.contains("50.0 %"), "{text}");
    let json =
        answer(&["validate", "ide2004", "--trace", trace.to_str().unwrap(), "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("one object");
    let (all, figure) = (&json["figures"][0], json["figures"][0]["demerit_ms"].as_f64().unwrap_or(0.0));
    assert_eq!((&json["disk"], &all["requests"]), (&"ide2004".into(), &2.into()));
    assert!(text.contains(&format!("demerit figure {figure:.3} ms")), "{text}");
    // 8 sectors at 1 MB/s take 4.1 ms, at 85 MB/s 0.05.
    let slow = answer(&["validate", "ide2004", "--trace", trace.to_str().unwrap(), "--bus-rate", "1MB/s"]);
    assert!(slow.contains("    1.0 %      0.080 ms    4.1"), "{slow}");
    let line = refusal(&["validate", "ide2004", "--trace", trace.to_str().unwrap(), "--bus-rate", "10"], 2);
    assert!(line.contains("--bus-rate: 10: needs a unit, such as \"85MB/s\""), "{line}");
    let line = refusal(&["validate", "nvmee", "--trace", trace.to_str().unwrap()], 2);
    assert!(line.contains("did you mean"), "{line}");
    let bad = temp("bad.trace", "R Hit 1000 8 5000 20000\nR Hit 1008\n");
    assert!(refusal(&["validate", "ide2004", "--trace", bad.to_str().unwrap()], 2).contains("bad.trace:2: "));
    // The files that a .diskspecs names are looked for beside it and nowhere else.
    let specs = temp("d.diskspecs", "disksim_disk D { Model = source ../../x.model }\n");
    let line = refusal(&["validate", specs.to_str().unwrap(), "--trace", trace.to_str().unwrap()], 2);
    assert!(line.contains("is not the name of a file in the same folder"), "{line}");
}
