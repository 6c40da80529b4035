//! `fairhead sweep` from the outside.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const JOB: &str = "[streams]\nrw=read\nbs=64k\nsize=64m\nnumjobs=2\nruntime=300ms\ntime_based\n\
    [reader]\nrw=randread\nbs=4k\nsize=64m\nthinktime=2ms\nruntime=300ms\ntime_based\n";
const GRID: [&str; 8] =
    ["--sched", "noop,cfq", "--set", "cfq.slice_idle=0,8ms", "--seeds", "3", "--disk", "nas2020,sata_ssd"];
const POINTS: usize = 2 * 3 * 3;

fn job(place: &Path) -> String {
    let file = place.join("job.fio");
    std::fs::write(&file, JOB).unwrap();
    file.to_str().unwrap().to_owned()
}

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let out = fairhead(args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn sweep(job: &str, more: &[&str]) -> String {
    text(&[&["sweep", job][..], &GRID, more].concat())
}

#[test]
fn csv_json_and_the_table_have_the_same_figures() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let csv = sweep(&job, &["--output-format", "csv"]);
    let mut lines = csv.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let heads = lines.next().unwrap();
    let json: Value = serde_json::from_str(&sweep(&job, &["--output-format", "json"])).unwrap();
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), POINTS);
    let mut count = 0;
    for (line, point) in lines.zip(points) {
        count += 1;
        for (head, cell) in heads.iter().zip(&line).filter(|(h, _)| **h != "set") {
            let value = match &point[*head] {
                Value::Null => String::new(),
                Value::String(s) => s.clone(),
                n => n.to_string(),
            };
            assert_eq!(*cell, value, "{head}");
        }
        let set: String = point["set"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap()))
            .collect();
        assert_eq!(line[2], set);
    }
    assert_eq!(count, POINTS);
    // The table's figures are the means of the three seeds': of rates, and geometric of satisfactions.
    let of = |name: &str| points[..3].iter().map(|p| p[name].as_f64().unwrap()).collect::<Vec<_>>();
    let human = sweep(&job, &[]);
    let row = human.lines().find(|l| l.split_whitespace().take(2).eq(["nas2020", "none"])).unwrap();
    let mib = of("streams_bytes_per_s").iter().sum::<f64>() / 3.0 / 1_048_576.0;
    let digits = 2 - mib.log10().floor().max(0.0) as usize;
    let floor = (mib * 10_f64.powi(digits as i32)).floor() / 10_f64.powi(digits as i32);
    assert!(row.contains(&format!(" {floor:.digits$} MiB/s ±")), "{mib} in {row}");
    let satisfied = of("satisfaction").iter().product::<f64>().cbrt();
    assert!(row.contains(&format!(" {satisfied:.2} ±")), "{satisfied} in {row}");
    assert!(human.lines().all(|l| l.chars().count() <= 80), "{human}");
}

#[test]
fn a_point_is_what_run_gives_for_it() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    // Jobs that end by themselves before the span is over.
    let work = JOB.replace("time_based\n", "").replace("size=64m", "size=2m").replace("300ms", "30s");
    std::fs::write(&job, work).unwrap();
    let run = text(&[
        "run",
        &job,
        "--sched",
        "cfq",
        "--set",
        "cfq.slice_idle=0",
        "--seed",
        "3",
        "--output-format",
        "json",
    ]);
    let run: Value = serde_json::from_str(&run).unwrap();
    let json: Value = serde_json::from_str(&sweep(&job, &["--output-format", "json"])).unwrap();
    let point = json["points"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["disk"] == "nas2020" && p["set"]["slice_idle"] == "0" && p["seed"] == 3)
        .unwrap();
    let disk = &run["runs"][0]["disk"];
    for (ours, theirs) in [("disk_busy_ns", "busy_ns"), ("disk_idled_on_purpose_ns", "idled_on_purpose_ns")] {
        assert!(point[ours].is_u64() && point[ours] == disk[theirs], "{ours}: {} and {disk}", point[ours]);
    }
}

#[test]
fn who_was_interrupted_goes_on_with_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let (file, part) = (place.path().join("runs"), place.path().join("part"));
    let csv = ["--output-format", "csv"];
    let whole = sweep(&job, &csv);
    let resumed = |path: &Path, more: &[&str]| {
        sweep(&job, &[&csv, &["--resume", path.to_str().unwrap()][..], more].concat())
    };
    assert_eq!(resumed(&file, &["--threads", "1"]), whole);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept.lines().count(), 1 + POINTS);
    // As after a power failure: some lines, and half of one.
    std::fs::write(&part, &kept[..kept.len() * 2 / 3]).unwrap();
    assert_eq!(resumed(&part, &["--threads", "3"]), whole);
    let mut lines: Vec<String> = std::fs::read_to_string(&part).unwrap().lines().map(str::to_owned).collect();
    let mut all: Vec<String> = kept.lines().map(str::to_owned).collect();
    lines.sort();
    all.sort();
    assert_eq!(lines, all);
    // What is kept is believed, so it is not run again.
    std::fs::write(&part, kept.replacen("\n0\t", "\n0\t1", 1)).unwrap();
    assert_ne!(resumed(&part, &[]), whole);
    let other = fairhead(&["sweep", &job, "--sched", "noop", "--resume", file.to_str().unwrap()]);
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(other.status.code() == Some(2) && said.contains("name another file"), "{said}");
}

#[test]
fn parts_of_several_machines_join_to_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let csv = ["--output-format", "csv"];
    let whole = sweep(&job, &csv);
    let files: Vec<String> =
        (1..=4).map(|k| place.path().join(format!("part{k}")).display().to_string()).collect();
    let parts: Vec<String> = (1..=4)
        .map(|k| {
            sweep(&job, &[&csv, &["--resume", &files[k - 1], "--shard", &format!("{k}/4")][..]].concat())
        })
        .collect();
    let mut rows: Vec<&str> = parts.iter().flat_map(|p| p.lines().skip(1)).collect();
    let mut all: Vec<&str> = whole.lines().skip(1).collect();
    rows.sort_unstable();
    all.sort_unstable();
    assert_eq!(rows, all, "each point is in one part");

    // A machine was killed at its second point: what it has is taken, what it lacks is run.
    let kept = std::fs::read_to_string(&files[2]).unwrap();
    let end: usize = kept.split_inclusive('\n').take(2).map(str::len).sum();
    std::fs::write(&files[2], &kept[..end + 3]).unwrap();
    let joined = place.path().join("all").display().to_string();
    let merge: Vec<&str> = ["--merge"].into_iter().chain(files.iter().map(String::as_str)).collect();
    assert_eq!(sweep(&job, &[&csv, &merge[..]].concat()), whole);
    assert_eq!(sweep(&job, &[&csv, &["--resume", &joined][..], &merge].concat()), whole);
    assert_eq!(std::fs::read_to_string(&joined).unwrap().lines().count(), 1 + POINTS);

    let refused = |args: &[&str], why: &str| {
        let out = fairhead(&[&["sweep", &job][..], &GRID, args].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(!out.status.success() && said.contains(why) && said.lines().count() <= 6, "{args:?}: {said}");
    };
    std::fs::write(&files[2], kept.replacen('\t', "\t9", 1)).unwrap();
    refused(&["--merge", &joined, &files[2]], "is not that of the files before it");
    refused(&["--merge", "no such file"], "cannot read 'no such file'");
    refused(&["--merge", &files[0], "-o", &files[0]], "name another file");
    refused(&["--merge", &job], "has no results of this question");
    for bad in ["0/4", "5/4", "1/0", "2", "a/b", "-1/4"] {
        refused(&["--resume", &joined, &format!("--shard={bad}")], "part K of N");
    }
    refused(&["--shard", "1/4"], "--resume");
}

#[test]
fn another_build_does_not_go_on_with_what_this_one_kept() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let file = place.path().join("runs");
    let args = ["sweep", &job, "--sched", "noop", "--resume", file.to_str().unwrap()];
    assert!(fairhead(&args).status.success());
    // One byte behind the end of a program changes nothing but its digest.
    let other = place.path().join("fairhead");
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_fairhead")).unwrap();
    program.push(0);
    std::fs::copy(env!("CARGO_BIN_EXE_fairhead"), &other).unwrap();
    std::fs::write(&other, program).unwrap();
    let out = Command::new(&other).args(args).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && said.contains("this build of fairhead"), "{said}");
    assert!(fairhead(&args).status.success(), "and the file is left as it was");
}

#[test]
fn ctrl_c_writes_what_is_done() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let file = place.path().join("runs");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["sweep", &job, "--sched", "noop", "--seeds", "100000", "--output-format", "csv", "--resume"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    while lines() < 5 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let (rows, said) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(1));
    let done = rows.lines().count() - 1;
    assert!(done >= 4 && done == lines() - 1, "{done} rows, {} kept", lines() - 1);
    assert!(
        said.contains(&format!("interrupted: {done} of 100000 points are done; the same command resumes")),
        "{said}"
    );
}

#[test]
fn mistakes_are_one_line() {
    for (args, message) in [
        (&["tenants", "--set", "cfq.slice_idle=0,2"][..], "has no unit"),
        (&["tenants", "--sched", "noop", "--set", "cfq.slice_idle=0"], "'cfq' is not in this run"),
        (&["tenants", "--disk", "nas2020,nas202"], "did you mean 'nas2020'?"),
        (&["tenants", "--seeds", "0"], "--seeds"),
        (&["tenants", "--sched", "noop", "--seeds", "2000000"], "more than 1000000"),
    ] {
        let out = fairhead(&[&["sweep"], args].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(message) && said.lines().count() == 1, "{said}");
    }
}

/// The page of a sweep of this grid, and what it has for programs.
fn page(job: &str, more: &[&str], place: &Path) -> (String, Value) {
    let file = place.join("page.html");
    sweep(job, &[&["--report", file.to_str().unwrap()], more].concat());
    let page = std::fs::read_to_string(&file).unwrap();
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let figures = serde_json::from_str::<Value>(data).unwrap()["figures"].clone();
    (page, figures)
}

#[test]
fn a_page_has_the_figures_a_column_for_each_tunable_and_the_front() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let (first, figures) = page(&job, &[], place.path());
    let json: Value = serde_json::from_str(&sweep(&job, &["--output-format", "json"])).unwrap();
    assert_eq!(figures, json);
    assert!(first.contains(">slice_idle</th>"), "no column");
    for picture in
        ["best-nas2020", "best-sata-ssd", "of-all-jobs-slice-idle-nas2020", "of-reader-slice-idle-sata-ssd"]
    {
        assert!(first.contains(&format!("data-name=\"{picture}\"")), "no {picture}");
    }
    // Two tunables: a map of four cells for all jobs and each of two, and a column for each.
    let (second, _) = page(&job, &["--set", "cfq.low_latency=0,1"], place.path());
    assert!(second.contains(">slice_idle</th>") && second.contains(">low_latency</th>"), "no columns");
    assert_eq!(second.matches("class=\"f0 q ").count(), 4 * 3 * 2);
}

#[test]
fn a_page_of_a_resumed_sweep_is_that_of_an_uninterrupted_one() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let body = |page: &str| page.split_once("<dt>command").unwrap().0.to_owned();
    let (whole, _) = page(&job, &[], place.path());
    let kept = place.path().join("kept");
    let resume = ["--resume", kept.to_str().unwrap()];
    sweep(&job, &resume);
    // Only some of the points are known to the second run.
    let text = std::fs::read_to_string(&kept).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > POINTS, "{text}");
    std::fs::write(&kept, lines[..lines.len() - 5].join("\n") + "\n").unwrap();
    let (resumed, _) = page(&job, &resume, place.path());
    assert_eq!(body(&whole), body(&resumed));
}

#[test]
fn a_page_that_cannot_be_is_one_line() {
    let place = tempfile::tempdir().unwrap();
    let job = job(place.path());
    let file = place.path().join("x");
    let file = file.to_str().unwrap();
    for (more, named) in [
        (&["--report", file, "-o", file][..], "-o"),
        (&["--report", file, "--resume", file], "--resume"),
        (&["--report", "/no/such/folder/x.html"], "/no/such/folder"),
        (&["--report", file, "--set", "cfq.slice_idle=much"], "slice_idle"),
        (&["--report", file, "--set", "cfq.no_such=1"], "no_such"),
    ] {
        let out = fairhead(&[&["sweep", &job, "--sched", "cfq"], more].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(
            !out.status.success() && said.lines().count() == 1 && said.contains(named),
            "{more:?}: {said}"
        );
    }
}
