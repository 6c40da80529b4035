//! `fairhead run` from the outside: every output format, the same bytes from the same seed, fio's own tools.

use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

use serde_json::Value;

/// Two jobs, short, and light enough for a debug build.
const JOB: &str = "[global]\nsize=64m\ndirect=1\nruntime=500ms\ntime_based\n\
    [readers]\nrw=read\nbs=64k\nnumjobs=2\n[mixed]\nrw=randrw\nbs=4k\nioengine=libaio\niodepth=4\n";

/// A directory of its own for a test, removed at the end.
struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job.fio"), JOB).unwrap();
        Self(dir)
    }

    fn fairhead(&self, args: &[&str]) -> Output {
        let disk: &[&str] = if args.contains(&"--disk") { &[] } else { &["--disk", "ide2004"] };
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.current_dir(&self.0).args(["run", "job.fio"]).args(disk).args(args).output().unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let out = self.fairhead(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(
            String::from_utf8_lossy(&out.stderr),
            "",
            "nothing to note, and no progress bar in a pipe"
        );
        String::from_utf8(out.stdout).unwrap()
    }

    /// What is in it, by name.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|n| n.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).unwrap()
    }
}

#[test]
fn the_table_has_a_row_for_each_job_and_scheduler_and_the_seed() {
    let text = Dir::new().text(&["--sched", "noop,deadline", "--seed", "7"]);
    assert!(text.starts_with("job.fio on ide2004, host of 2004, seed 7\n"), "{text}");
    for start in [
        "readers (2 clients)  none ",
        "                     deadline ",
        "mixed                none ",
        "ide2004  none ",
    ] {
        assert!(text.lines().any(|l| l.starts_with(start)), "{start:?} in {text}");
    }
    assert!(!text.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn json_fields_carry_their_unit_and_add_up() {
    let all =
        Dir::new().json(&["--sched", "noop,deadline", "--output-format", "json", "--interval", "100ms"]);
    assert_eq!((&all["seed"], &all["disk"]), (&1.into(), &"ide2004".into()));
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let bytes = |list: &str| -> u64 {
            run[list].as_array().unwrap().iter().map(|j| j["read"]["io_bytes"].as_u64().unwrap()).sum()
        };
        assert!(bytes("jobs") > 0);
        assert_eq!(bytes("jobs"), bytes("clients"));
        assert_eq!(run["clients"].as_array().unwrap().len(), 3);
        let latency = &run["jobs"][0]["read"]["lat_ns"];
        let of = |v: &Value| v.as_u64().unwrap();
        assert!(of(&latency["min"]) <= of(&latency["percentile"]["50.000000"]));
        assert!(of(&latency["percentile"]["99.000000"]) <= of(&latency["max"]));
        assert_eq!(run["series"]["interval_ns"], 100_000_000);
        let points = run["series"]["points"].as_array().unwrap();
        assert!(points.len() >= 4 && points[0].as_array().unwrap().len() == 3, "{points:?}");
    }
    assert_eq!(runs[1]["tunables"]["read_expire_ns"], 500_000_000);
}

#[test]
fn why_tells_where_the_time_went_and_the_parts_add_up() {
    let dir = Dir::new();
    let text = dir.text(&["--sched", "noop,cfq", "--why", "readers"]);
    let chapter = text.split("where the time of readers (2 clients) went\n").nth(1).expect("a chapter");
    for line in ["none: of ", "cfq: of ", "  slowest calls:", "  its requests were chosen: "] {
        assert!(chapter.lines().any(|l| l.starts_with(line)), "{line:?} in {chapter}");
    }
    assert!(text.starts_with(dir.text(&["--sched", "noop,cfq"]).as_str()), "the rest is as ever");

    let all = dir.json(&["--sched", "noop,cfq", "--why", "readers.1", "--output-format", "json"]);
    for run in all["runs"].as_array().unwrap() {
        let (why, of) = (&run["why"], |v: &Value| v.as_u64().unwrap());
        assert_eq!(why["client"], "readers.1");
        let client = &run["clients"][1];
        assert_eq!((&client["jobname"], &client["clone"]), (&"readers".into(), &1.into()));
        assert_eq!(why["account"]["total_ns"], client["elapsed_ns"]);
        for account in
            why["slowest"].as_array().unwrap().iter().map(|s| &s["account"]).chain([&why["account"]])
        {
            let own = ["paused", "computing", "for_a_tag", "throttled", "held", "served"];
            let own: u64 = own.iter().map(|p| of(&account[format!("{p}_ns")])).sum();
            let behind = account["behind"].as_array().unwrap().iter();
            let behind: u64 =
                behind.map(|b| of(&b["queued_ns"]) + of(&b["disk_idled_ns"]) + of(&b["in_device_ns"])).sum();
            assert_eq!(own + behind, of(&account["total_ns"]), "{account}");
        }
        let slowest = &why["slowest"][0];
        assert_eq!(slowest["took_ns"], client["read"]["lat_ns"]["max"]);
        assert!(slowest["story"].as_str().unwrap().contains("(read of 64 KiB, ended at "), "{slowest}");
    }
    let plain = dir.json(&["--sched", "noop", "--output-format", "json"]);
    assert!(plain["runs"][0]["why"].is_null(), "not asked for");
}

#[test]
fn why_of_nobody_names_who_is_there() {
    let dir = Dir::new();
    let refused = |args: &[&str]| {
        let out = dir.fairhead(args);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert_eq!(
        refused(&["--sched", "noop", "--why", "raeders"]),
        "fairhead: no client 'raeders'; there are readers (readers.0 to readers.1), mixed; did you mean 'readers'?\n"
    );
    assert!(
        refused(&["--sched", "noop", "--why", "readers.2"]).starts_with("fairhead: no client 'readers.2'; ")
    );
    assert_eq!(
        refused(&["--why", "mixed", "--output-format", "csv"]),
        "fairhead: --why needs --output-format human or json\n"
    );
}

#[test]
fn tunables_that_are_set_are_used_and_reported() {
    let dir = Dir::new();
    let all = dir.json(&[
        "--sched",
        "deadline",
        "--set",
        "deadline.read_expire=1ms",
        "--set",
        "deadline.fifo_batch=1",
        "--output-format",
        "json",
    ]);
    assert_eq!(all["runs"][0]["tunables"]["read_expire_ns"], 1_000_000);
    let plain = dir.json(&["--sched", "deadline", "--output-format", "json"]);
    let same = all["runs"][0]["jobs"] == plain["runs"][0]["jobs"];
    assert!(!same, "with deadlines this short, age decides and not position");
}

#[test]
fn runtime_overrides_the_file() {
    let all = Dir::new().json(&["--sched", "noop", "--runtime", "200ms", "--output-format", "json"]);
    let elapsed = all["runs"][0]["elapsed_ns"].as_u64().unwrap();
    assert!((200_000_000..400_000_000).contains(&elapsed), "{elapsed}");
}

#[test]
fn csv_has_a_line_for_each_job_and_scheduler_or_interval() {
    let dir = Dir::new();
    let text = dir.text(&["--sched", "noop,deadline", "--output-format", "csv"]);
    assert_eq!(text.lines().count(), 1 + 2 * 2);
    let columns = |l: &str| l.split(',').count();
    assert!(text.lines().all(|l| columns(l) == columns(text.lines().next().unwrap())), "{text}");
    let text = dir.text(&["--sched", "noop", "--output-format", "csv", "--interval", "100ms"]);
    assert!(text.starts_with("scheduler,disk,seed,job,clone,start_ns,"), "{text}");
    assert!(text.lines().count() > 1 + 3 * 4);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let dir = Dir::new();
    let run = |args: &[&str]| dir.text(&[&["--output-format", "json+"], args].concat());
    let one = run(&["--threads", "1"]);
    assert_eq!(one, run(&["--threads", "2"]));
    assert_ne!(one, run(&["--seed", "2"]));
}

#[test]
fn a_file_appears_complete() {
    let dir = Dir::new();
    let out = dir.fairhead(&["--sched", "noop", "-o", "result.txt", "--requests", "requests.csv"]);
    assert!(out.status.success() && out.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&out.stderr), "fairhead: seed 1\n");
    assert_eq!(
        std::fs::read_to_string(dir.0.path().join("result.txt")).unwrap(),
        dir.text(&["--sched", "noop"])
    );
    assert!(!dir.0.path().join("result.txt.part").exists());
    let out = dir.fairhead(&["--sched", "noop", "-o", "missing/result.txt"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&out.stderr).starts_with("fairhead: cannot write 'missing/result.txt': ")
    );
}

#[test]
fn a_disk_may_be_a_file() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("mine.toml"), "base = \"ide2004\"\nname = \"mine\"\nrpm = 5400\n")
        .unwrap();
    let text = dir.text(&["--sched", "noop", "--disk", "mine.toml"]);
    assert!(text.starts_with("job.fio on mine, host of 2020, seed 1\n"), "{text}");
    let text = dir.text(&["--sched", "noop", "--disk", "mine.toml", "--host", "2004"]);
    assert!(text.starts_with("job.fio on mine, host of 2004, seed 1\n"), "{text}");
    let out = dir.fairhead(&["--host", "2011"]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(said, "fairhead: unknown host '2011'; write one of 2004, 2010, 2016, 2020\n");
    std::fs::write(dir.0.path().join("wrong.toml"), "base = \"ide2004\"\nrmp = 5400\n").unwrap();
    let out = dir.fairhead(&["--disk", "wrong.toml"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("wrong.toml") && line.contains("rpm"), "{line}");
    let out = dir.fairhead(&["--disk", "ide204"]);
    assert_eq!(
        String::from_utf8_lossy(&out.stderr),
        "fairhead: unknown disk 'ide204'; did you mean 'ide2004'?\n"
    );
}

#[test]
fn several_disks_have_a_row_each_in_every_format() {
    let dir = Dir::new();
    let disks = "[mixed]\nfh_disk=log:mine.toml:deadline\n";
    let job = JOB.replace("[global]", "[global]\nfh_disk=a,b").replace("[mixed]", disks.trim_end());
    std::fs::write(dir.0.path().join("job.fio"), job).unwrap();
    std::fs::write(dir.0.path().join("mine.toml"), "base = \"sata2009\"\n").unwrap();
    let text = dir.text(&["--sched", "noop", "--interval", "250ms"]);
    assert!(text.starts_with("job.fio on ide2004 (a), ide2004 (b), mine.toml (log), host of 2020"), "{text}");
    for row in ["\na ", "\nb ", "\nlog "] {
        assert_eq!(text.matches(row).count(), 2, "{row:?} in the table of disks and in the series: {text}");
    }
    assert!(text.contains("none (deadline)"), "{text}");
    let json = dir.json(&["--sched", "noop", "--output-format", "json", "--interval", "250ms"]);
    let run = &json["runs"][0];
    let all = run["disks"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "log"]);
    assert_eq!((&all[2]["model"], &all[2]["scheduler"]), (&"mine.toml".into(), &"deadline".into()));
    let sum = |key: &str| all.iter().map(|d| d[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(run["disk"]["read_bytes"].as_u64(), Some(sum("read_bytes")));
    assert!(run["series"]["disks"]["log"].as_array().unwrap().len() > 1);
    let fio = dir.json(&["--sched", "noop", "--output-format", "json+"]);
    let utils = fio["disk_util"].as_array().unwrap();
    assert_eq!(utils.iter().map(|u| u["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    let csv = dir.text(&["--sched", "noop", "--output-format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 + 3);
    let columns = |l: &str| l.replace("ide2004 (a), ide2004 (b), mine.toml (log)", "").split(',').count();
    assert!(csv.lines().all(|l| columns(l) == columns(csv.lines().next().unwrap())), "{csv}");
    let refused = |args: &[&str]| String::from_utf8_lossy(&dir.fairhead(args).stderr).into_owned();
    let why = dir.json(&["--sched", "noop", "--why", "mixed", "--output-format", "json"]);
    let disks = why["runs"][0]["why"]["disks"].as_array().unwrap();
    assert_eq!(disks.iter().map(|d| d["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    let table = dir.text(&["--sched", "noop", "--why", "mixed"]);
    let rows =
        |label: &str| table.lines().filter(|l| l.split_whitespace().take(2).eq(["none", label])).count();
    assert_eq!((rows("all"), rows("b")), (1, 1), "{table}");
    std::fs::remove_file(dir.0.path().join("mine.toml")).unwrap();
    let told = refused(&["--sched", "noop"]);
    assert!(told.starts_with("fairhead: job.fio:12: unknown disk 'mine.toml'"), "{told}");
}

/// Keys of fio's that ours leaves out: no time of day is in a result, and a modelled disk has no kernel's
/// books.
const LEFT_OUT: [&str; 8] = [
    "timestamp",
    "timestamp_ms",
    "time",
    "read_merges",
    "write_merges",
    "read_ticks",
    "write_ticks",
    "in_queue",
];

/// The paths of all keys, but for options and what is counted: bins and classes that have a sample.
fn paths(value: &Value, at: &str, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(format!("{at}/{key}"));
                if !["bins", "job options", "global options"].contains(&key.as_str()) {
                    paths(value, &format!("{at}/{key}"), found);
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|v| paths(v, at, found)),
        _ => {}
    }
}

/// Both ways: what fio has and what we have, for an engine with one call in flight and one with several.
#[test]
fn json_plus_has_the_keys_of_fios() {
    let dir = Dir::new();
    for engine in ["psync", "libaio\niodepth=4\ndirect=1"] {
        let job = format!("[j]\nsize=1m\nrw=randrw\nbs=4k\nfsync=4\nfilename=x\nioengine={engine}\n");
        std::fs::write(dir.0.path().join("job.fio"), job).unwrap();
        let fio = Command::new("fio").current_dir(&dir.0).args(["--output-format=json+", "job.fio"]).output();
        let Ok(fio) = fio else {
            println!("skipped: no fio");
            return;
        };
        let said = String::from_utf8_lossy(&fio.stdout).into_owned();
        let Some(start) = said.find('{').filter(|_| fio.status.success()) else {
            println!("skipped: fio does not run {engine} here: {}", String::from_utf8_lossy(&fio.stderr));
            continue;
        };
        let fios: Value = serde_json::from_str(&said[start..]).unwrap();
        let ours = dir.json(&["--sched", "noop", "--output-format", "json+"]);
        let [mut have, mut want] = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
        paths(&ours, "", &mut have);
        paths(&fios, "", &mut want);
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let missing: Vec<&String> =
            want.difference(&have).filter(|p| !LEFT_OUT.contains(&name(p).as_str())).collect();
        assert!(missing.is_empty(), "{engine}: fio has {missing:?}");
        // Of files on some file systems fio has no figures of a disk; options in a section are none for all
        // jobs.
        let more: Vec<&String> = (have.difference(&want))
            .filter(|p| !p.starts_with("/disk_util") && !p.starts_with("/global options"))
            .collect();
        assert!(more.is_empty(), "{engine}: fio has no {more:?}");
        let options = &ours["jobs"][0]["job options"];
        for key in ["rw", "bs", "size", "filename"] {
            let fios = &fios["jobs"][0]["job options"][key];
            assert!(key == "filename" || options[key] == *fios, "{key}: {} and {fios}", options[key]);
        }
        let job = &ours["jobs"][0];
        let sum = |keys: &[&str]| -> f64 {
            keys.iter().flat_map(|k| job[*k].as_object().unwrap().values()).filter_map(Value::as_f64).sum()
        };
        let latencies = sum(&["latency_ns", "latency_us", "latency_ms"]);
        assert!((latencies - 100.0).abs() < 1e-6, "each call is in one class: {latencies}");
        assert!((sum(&["iodepth_level"]) - 100.0).abs() < 1e-6, "{}", job["iodepth_level"]);
        assert!(job["sync"]["lat_ns"]["N"].as_u64() >= job["sync"]["total_ios"].as_u64());
    }
}

/// fio runs for two seconds: it takes a sample in each.
#[test]
fn steadystate_is_told_as_fio_tells_it() {
    let dir = Dir::new();
    let job = "[j]\nioengine=null\nsize=1m\nbs=4k\nrate_iops=100\ntime_based\nruntime=9\nss=iops_slope:50%\nss_dur=2\n";
    std::fs::write(dir.0.path().join("job.fio"), job).unwrap();
    let out = dir.fairhead(&["--sched", "noop", "--output-format", "json+"]);
    let ours: Value = serde_json::from_slice(&out.stdout).unwrap();
    let ours = &ours["jobs"][0]["steadystate"];
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        said.contains("job 'j': steadystate attained=yes, bw=400KiB/s, iops=100, iops slope=0.000%"),
        "{said}"
    );
    assert_eq!(
        *ours,
        serde_json::json!({
            "ss": "iops_slope:50.000000%", "duration": 2, "attained": 1, "criterion": "0.000000%", "max_deviation": 0.0, "slope": 0.0,
            "data": { "bw_mean": 409_600, "iops_mean": 100, "iops": [100, 100], "bw": [409_600, 409_600] },
        })
    );
    let fio = Command::new("fio").current_dir(&dir.0).args(["--output-format=json", "job.fio"]).output();
    let Ok(fio) = fio else {
        println!("skipped: no fio");
        return;
    };
    let said = String::from_utf8_lossy(&fio.stdout).into_owned();
    let fios: Value = serde_json::from_str(&said[said.find('{').expect("JSON")..]).unwrap();
    let fios = &fios["jobs"][0]["steadystate"];
    let keys = |v: &Value| {
        let mut found = std::collections::BTreeSet::new();
        paths(v, "", &mut found);
        found
    };
    assert_eq!(keys(ours), keys(fios));
    for key in ["ss", "duration", "attained"] {
        assert_eq!(ours[key], fios[key], "{key}");
    }
}

/// Two jobs, of which one ends first and one has a rate that no such disk reaches.
#[test]
fn what_is_not_comparable_or_missed_is_said() {
    let dir = Dir::new();
    let job = "[global]\nsize=64m\ndirect=1\nbs=64k\n[short]\nio_size=8m\n[film]\nrate=200m\nruntime=3s\ntime_based\n\
        [log]\nrw=write\nbs=4k\nsize=1m\nfsync=1\nruntime=3s\ntime_based\n";
    std::fs::write(dir.0.path().join("job.fio"), job).unwrap();
    let text = dir.text(&["--sched", "noop", "--interval", "1s"]);
    assert!(text.contains("MiB/s while all ran") && text.contains("sync p99"), "{text}");
    assert!(text.contains("missed rate: film wants to read 200 MiB/s and gets "), "{text}");
    assert!(
        text.lines().last().unwrap().starts_with("ide2004  none "),
        "the disk beside the clients: {text}"
    );
    let json = dir.json(&["--sched", "noop", "--output-format", "json", "--interval", "1s"]);
    let run = &json["runs"][0];
    let number = |v: &Value| v.as_u64().unwrap();
    let (short, film, log) = (&run["jobs"][0], &run["jobs"][1], &run["jobs"][2]);
    assert_eq!(short["together"]["span_ns"], film["together"]["span_ns"]);
    assert_eq!(number(&short["together"]["span_ns"]), number(&short["elapsed_ns"]), "the first to end");
    assert_eq!(number(&short["together"]["bytes"]), 8 << 20);
    assert!(number(&film["together"]["bytes"]) < number(&film["read"]["io_bytes"]));
    assert_eq!(film["missed_rates"][0]["wanted_per_s"], 200 << 20);
    assert!(log["missed_rates"].as_array().unwrap().is_empty());
    assert!(
        number(&log["sync"]["total_ios"]) > 10 && log["sync"]["lat_ns"]["percentile"]["99.000000"].is_u64()
    );
    let unsynced = number(&log["write"]["total_ios"]) - number(&log["sync"]["total_ios"]);
    assert!(unsynced <= 1, "an fsync for each write, but for one at the end: {unsynced}");
    let disk = run["series"]["disk"].as_array().unwrap();
    assert!(disk.len() == 3 || disk.len() == 2, "{disk:?}");
}

/// A job with logs.
fn logged(depth: u32, more: &str) -> String {
    let name = format!("randread-iodepth-{depth}-numjobs-1");
    format!(
        "[j]\nrw=randread\nbs=16k\nsize=2m\nfilename=data\nioengine=libaio\niodepth={depth}\ndirect=1\n\
        write_bw_log={name}\nwrite_lat_log={name}\nwrite_iops_log={name}\n{more}"
    )
}

/// The logs in a folder: their names, and how many columns the lines of each have.
fn columns_of_logs(dir: &Dir) -> Vec<(String, Vec<usize>)> {
    let logs = dir.files().into_iter().filter(|f| f.ends_with(".log"));
    logs.map(|name| {
        let text = std::fs::read_to_string(dir.0.path().join(&name)).unwrap();
        let mut columns: Vec<usize> = text.lines().map(|l| l.split(", ").count()).collect();
        columns.dedup();
        (name, columns)
    })
    .collect()
}

#[test]
fn logs_are_those_of_fio() {
    let (ours, fios) = (Dir::new(), Dir::new());
    for dir in [&ours, &fios] {
        std::fs::write(dir.0.path().join("job.fio"), logged(4, "numjobs=2\nlog_offset=1\n")).unwrap();
    }
    let fio = Command::new("fio").current_dir(&fios.0).arg("job.fio").output();
    if !fio.is_ok_and(|f| f.status.success()) {
        println!("skipped: no fio that does libaio here");
        return;
    }
    ours.text(&["--sched", "noop"]);
    let (mut have, want) = (columns_of_logs(&ours), columns_of_logs(&fios));
    assert_eq!(want.len(), 10, "{want:?}");
    for ((_, columns), (name, theirs)) in have.iter_mut().zip(&want) {
        if name.contains("_slat.") {
            assert!(columns.is_empty(), "a call is one piece from submission to completion");
            columns.clone_from(theirs);
        }
    }
    assert_eq!(have, want);
    // Each scheduler has files of its own, and the job is no file to write to.
    ours.text(&["--sched", "noop,cfq"]);
    assert!(
        ours.files().iter().any(|f| f == "randread-iodepth-4-numjobs-1-cfq_lat.2.log"),
        "{:?}",
        ours.files()
    );
    let clash = ours.fairhead(&["--sched", "noop", "-o", "randread-iodepth-4-numjobs-1_bw.1.log"]);
    assert_eq!(clash.status.code(), Some(2));
}

/// A program of target/python, where `cargo xtask test` installs it, or on the path.
fn of_python(name: &str) -> Option<std::path::PathBuf> {
    let installed =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin").join(name);
    if installed.exists() {
        return Some(installed);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(name)).find(|p| p.exists())
}

#[test]
fn fio_plot_draws_our_results() {
    let Some(fio_plot) = of_python("fio-plot") else {
        println!("skipped: no fio-plot");
        return;
    };
    let dir = Dir::new();
    for depth in [1, 4, 16] {
        let more = "log_avg_msec=500\ntime_based\nruntime=2s\n";
        std::fs::write(dir.0.path().join("job.fio"), logged(depth, more)).unwrap();
        let json = format!("{depth}.json");
        assert!(dir.fairhead(&["--sched", "noop", "--output-format", "json+", "-o", &json]).status.success());
    }
    for how in [
        &["-l"][..],
        &["-L", "-t", "iops"],
        &["-N", "-d", "4"],
        &["-H", "-d", "4", "-n", "1"],
        &["-g", "-t", "bw", "iops", "lat", "-d", "1", "4", "16", "-n", "1"],
    ] {
        let picture = dir.0.path().join("out.png");
        let args = ["-i", ".", "-T", "t", "-r", "randread", "-o", "out.png"];
        let said = Command::new(&fio_plot).current_dir(&dir.0).args(args).args(how).output().unwrap();
        let head = std::fs::read(&picture).unwrap_or_default();
        assert!(
            said.status.success() && head.starts_with(b"\x89PNG"),
            "{how:?}: {}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
        std::fs::remove_file(picture).unwrap();
    }
    let Some(gnuplot) = of_python("fio2gnuplot") else {
        println!("skipped: no fio2gnuplot");
        return;
    };
    let said = Command::new(gnuplot).current_dir(&dir.0).arg("-b").output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("randread-iodepth-16-numjobs-1_bw.1.log"), "{said}");
    let mean = std::fs::read_to_string(dir.0.path().join("result.average")).unwrap_or_default();
    assert!(mean.lines().count() >= 3, "a line for each log: {mean}");
}

/// Rates over different spans are not added: what a job's clients moved is over the longest client's time, as
/// fio has it.
#[test]
fn a_jobs_rate_is_its_bytes_over_its_time() {
    let json = Dir::new().json(&["--sched", "noop", "--output-format", "json+"]);
    for job in json["jobs"].as_array().unwrap() {
        let read = &job["read"];
        let (bytes, ms) = (read["io_bytes"].as_f64().unwrap(), read["runtime"].as_f64().unwrap());
        let rate = read["bw_bytes"].as_f64().unwrap();
        assert!((rate * ms / 1000.0 / bytes - 1.0).abs() < 0.003, "{read}");
    }
}

#[test]
fn fios_own_tool_reads_json_plus() {
    let dir = Dir::new();
    std::fs::write(
        dir.0.path().join("run.json"),
        dir.text(&["--sched", "noop,deadline", "--output-format", "json+"]),
    )
    .unwrap();
    // Convert, then let the tool compare what it wrote with what it read.
    for step in [&["run.json", "run.csv"][..], &["--validate", "run.json", "run.csv"]] {
        let tool = Command::new("fio_jsonplus_clat2csv")
            .current_dir(&dir.0)
            .args(step)
            .stdout(Stdio::null())
            .output();
        let Ok(tool) = tool else {
            println!("skipped: no fio_jsonplus_clat2csv");
            return;
        };
        assert!(tool.status.success(), "{step:?}: {}", String::from_utf8_lossy(&tool.stderr));
    }
    // Two schedulers with two readers and a mixed job each.
    for i in 0..6 {
        let csv = std::fs::read_to_string(dir.0.path().join(format!("run_job{i}.csv"))).unwrap();
        assert!(csv.lines().count() > 2, "job {i} has latencies: {csv}");
    }
}

#[test]
fn a_job_that_does_not_fit_the_disk_is_misuse() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("job.fio"), "[big]\nsize=100t\ndirect=1\n").unwrap();
    let out = dir.fairhead(&["--sched", "noop"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.starts_with("fairhead: job 'big': "), "{line}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_long_run_with_one_line_and_no_file() {
    use std::io::{BufRead as _, BufReader};

    let dir = Dir::new();
    // Three hundred days of a disk; the option without effect makes a note, which says that the run is about
    // to begin.
    let long = "[j]\nsize=1g\ndirect=1\ntime_based\nruntime=300d\nthread\n";
    std::fs::write(dir.0.path().join("job.fio"), long).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .current_dir(&dir.0)
        .args(["run", "job.fio", "--sched", "noop", "-o", "result.txt"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let note = lines.next().unwrap().unwrap();
    assert_eq!(note, "fairhead: ignored: thread (no effect in a simulation)");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !kill.is_ok_and(|s| s.success()) {
        child.kill().unwrap();
        child.wait().unwrap();
        println!("skipped: no kill");
        return;
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(lines.map(Result::unwrap).collect::<Vec<_>>(), ["fairhead: interrupted"]);
    assert_eq!(dir.files(), ["job.fio"], "neither a result nor a part of one");
}

/// All outputs against each other and against the job, by whatever name.
#[test]
fn no_output_overwrites_an_input_or_another_output() {
    let dir = Dir::new();
    let job = "[j]\nsize=1m\ndirect=1\n";
    std::fs::write(dir.0.path().join("job.fio"), job).unwrap();
    let disk =
        Command::new(env!("CARGO_BIN_EXE_fairhead")).args(["show", "ide2004"]).output().unwrap().stdout;
    std::fs::write(dir.0.path().join("disk.toml"), disk).unwrap();
    std::fs::create_dir(dir.0.path().join("d")).unwrap();
    for (args, says) in [
        (&["-o", "job.fio"][..], "-o job.fio: this command reads '"),
        (&["--requests", "d/../job.fio"], "--requests d/../job.fio: this command reads '"),
        (&["--disk", "disk.toml", "--report", "disk.toml"], "--report disk.toml: this command reads '"),
        (
            &["--requests", "x", "--report", "./x"],
            "--requests and --report: two things cannot be written to './x'",
        ),
        (&["-o", "x", "--timeline", "x"], "-o and --timeline: two things cannot be written to 'x'"),
        (&["-o", "x", "--requests", "x.part"], "-o and --requests: two things"),
        (&["-o", "d/x.svg", "--pictures", "d"], "-o d/x.svg: --pictures writes there"),
        (&["-o", "d"], "-o d: it is a folder; name a file"),
    ] {
        let out = dir.fairhead(&[&["--sched", "noop"], args].concat());
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    assert_eq!(dir.files(), ["d", "disk.toml", "job.fio"]);
    assert_eq!(std::fs::read_to_string(dir.0.path().join("job.fio")).unwrap(), job);
    assert!(
        dir.fairhead(&["--sched", "noop", "-o", "/dev/null", "--requests", "/dev/null"]).status.success()
    );
}

#[test]
fn a_series_may_be_longer_than_a_format_is_wide() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("job.fio"), "[j]\nsize=64m\nrw=randread\ntime_based\nruntime=20s\n")
        .unwrap();
    let text = dir.text(&["--sched", "noop", "--interval", "1ms"]);
    let series = text.lines().rfind(|l| l.starts_with("j        none       ")).unwrap();
    assert!(series.len() > 65_535, "{} characters", series.len());
}

/// An application, a player and a replay beside each other.
const PROGRAMS: &str = "[bash]\n#!fh_workload=startup:bash\n#!fh_iterations=2\n#!fh_pause=100ms\n\
    [film]\n#!fh_workload=player\nruntime=1s\n[trace]\n#!fh_startup_trace=a.trace\n";
const TRACE: &str =
    "sh-1 0 8 100 Rand 0 0 RA 1.0 START\nX-2 .1 16 100 Rand 0 0 RM 1.1 C\nsh-1 .2 8 108 Seq 0 0 R 1.2 C\n";

#[test]
fn programs_tell_how_they_fared() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("job.fio"), PROGRAMS).unwrap();
    std::fs::write(dir.0.path().join("a.trace"), TRACE).unwrap();
    let table = dir.text(&["--sched", "cfq"]);
    assert!(table.contains("start-up") && table.contains("dropped frames"), "{table}");
    assert!(table.contains("trace (2 clients)"), "{table}");
    let json = dir.json(&["--sched", "cfq", "--output-format", "json"]);
    let job = |i: usize| &json["runs"][0]["jobs"][i];
    let times = job(0)["startup_time"]["ns"].as_array().unwrap();
    let sum: u64 = times.iter().map(|t| t.as_u64().unwrap()).sum();
    assert_eq!((times.len(), job(0)["startup_time"]["mean_ns"].as_u64()), (2, Some(sum / 2)));
    assert_eq!(job(0)["startup_time"]["timed_out"], serde_json::json!([false, false]));
    let dropped = job(1)["dropped_frames"].as_u64().unwrap();
    assert!(job(1)["frames"] == 24 && table.contains(&format!("{dropped} of 24 (")), "{table}");
    let percent = job(1)["drop_rate_percent"].as_f64().unwrap();
    assert!((percent * 0.24 - dropped as f64).abs() < 0.01, "{percent} % are {dropped} of 24");
    assert!(job(0)["frames"].is_null() && job(1)["startup_time"].is_null());
    assert_eq!(job(2)["startup_time"]["ns"].as_array().unwrap().len(), 1);
    // A client for each process of the trace.
    assert_eq!(json["runs"][0]["clients"].as_array().unwrap().len(), 4);
    let why = dir.text(&["--sched", "cfq", "--why", "trace"]);
    assert!(why.contains("where the time of trace"), "{why}");
}

#[test]
fn a_trace_that_is_not_there_or_damaged_is_one_line() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("job.fio"), PROGRAMS).unwrap();
    let complaint = || {
        let out = dir.fairhead(&["--sched", "noop"]);
        assert_eq!(out.status.code(), Some(2));
        String::from_utf8(out.stderr).unwrap()
    };
    let missing = complaint();
    assert!(missing.starts_with("fairhead: job.fio:9: cannot read 'a.trace': "), "{missing}");
    std::fs::write(dir.0.path().join("a.trace"), TRACE.replace("Seq", "Sqe")).unwrap();
    assert_eq!(complaint(), "fairhead: a.trace:3: 'Sqe' is neither Seq nor Rand\n");
}
