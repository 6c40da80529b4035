//! `fairhead advise` from the outside.

use std::process::{Command, Output};

use serde_json::Value;

/// Light enough for a debug build.
const SHORT: [&str; 5] = ["tenants", "--runtime", "1s", "--rounds", "1"];

/// A program starts beside two that stream from another file each: something is better for it than what a
/// kernel does by itself.
const JOB: &str = "[streams]\nrw=read\nbs=128k\nsize=1g\nnumjobs=2\nruntime=6s\ntime_based\n\
    [program]\nstartdelay=3s\nsize=1g\n#!fh_workload=startup:xterm\n";

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("advise").args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let out = fairhead(args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let out = fairhead(args);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0));
    String::from_utf8(out.stderr).unwrap()
}

/// A job file in a folder that lasts as long as the test.
fn job(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.fio");
    std::fs::write(&file, text).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&text(&[args, &["--output-format", "json"]].concat())).unwrap()
}

#[test]
fn json_says_what_is_shown() {
    let (_folder, file) = job(JOB);
    let args = [&*file, "--goal", "starts", "--rounds", "1"];
    let details = text(&[&args[..], &["--details"]].concat());
    let json = json(&args);
    assert_ne!(json["winner"], json["default"]);
    for line in json["answer"].as_array().unwrap().iter().chain(json["why"].as_array().unwrap()) {
        let line = line.as_str().unwrap().trim_end();
        // Bars are drawn in block characters there.
        let is_there = details.lines().any(|l| l == line);
        assert!(is_there || line.contains('#') || line.starts_with("job  "), "{line}");
    }
    for step in json["to_do"].as_array().unwrap() {
        for line in step["lines"].as_array().unwrap() {
            assert!(details.lines().any(|l| l.trim_start() == line.as_str().unwrap()), "{line}");
        }
    }
    let winner = json["winner"].as_str().unwrap();
    assert_eq!(json["candidates"][0]["name"], winner);
    for c in json["candidates"].as_array().unwrap() {
        let name = c["name"].as_str().unwrap();
        let row =
            details.lines().find(|l| l.starts_with(&format!("{name}  "))).unwrap_or_else(|| panic!("{name}"));
        let of_alone = format!("{:.2}", c["satisfaction"].as_f64().unwrap());
        assert!(row.contains(&of_alone), "{row}: {of_alone}");
        let [f, low, high] = ["factor", "low", "high"].map(|k| c["change"][k].as_f64().unwrap());
        assert!(low <= f && f <= high, "{row}");
    }
    let program = &json["jobs"][1];
    assert_eq!((&program["kind"], &program["unit"]), (&Value::from("start"), &Value::from("s")));
    let of = |side: &str| program[side]["satisfaction"].as_f64().unwrap();
    assert!(of("compared") > of("default") && of("compared") <= 1.0, "{program}");
}

/// The answer fits a terminal of 80 columns and 24 lines, without details, and names the command.
#[test]
fn the_answer_is_short() {
    let (_folder, file) = job(JOB);
    for args in [&[&*file, "--rounds", "1"][..], &SHORT] {
        let said = text(args);
        assert!(said.lines().count() <= 15, "{said}");
        assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
    }
    let said = text(&[&file, "--goal", "starts", "--rounds", "1"]);
    assert!(said.contains("sudo fairhead apply DISK bfq"), "{said}");
}

/// The options that the details print repeat an answer, whatever ended its races; the seed and the budget are
/// not the defaults here.
#[test]
fn the_printed_options_repeat_the_answer() {
    let (_folder, file) = job(JOB);
    for how in [&["--budget", "700ms", "--seed", "3"][..], &["--budget", "1s", "--rounds", "2"]] {
        let asked = [&[&*file], how].concat();
        let (details, first) = (text(&[&asked[..], &["--details"]].concat()), json(&asked));
        let options = details.lines().find_map(|l| l.strip_prefix("The same command with "));
        let options = options.and_then(|l| l.strip_suffix(" repeats it.")).expect("options");
        assert_eq!(first["repeated_by"], options);
        let again: Vec<&str> = std::iter::once(&*file).chain(options.split(' ')).collect();
        assert_eq!(json(&again), first, "{options}");
    }
}

/// A start that no scheduler brings to its end in time gives a bound, and no verdict.
#[test]
fn what_is_cut_off_is_not_taken_for_measured() {
    let args = ["backup", "--disk", "sata2009", "--runtime", "2500ms", "--rounds", "1"];
    let json = json(&args);
    let start = json["jobs"].as_array().unwrap().iter().find(|j| j["kind"] == "start").unwrap();
    assert_eq!(start["default"]["is_cut_off"], true, "{start}");
    let said = text(&args);
    assert!(said.lines().any(|l| l.starts_with("office") && l.contains("> ")), "{said}");
}

#[test]
fn threads_change_no_byte_and_the_seed_does() {
    let one = text(&[&SHORT[..], &["--threads", "1"]].concat());
    assert_eq!(one, text(&[&SHORT[..], &["--threads", "4"]].concat()));
    assert_ne!(one, text(&[&SHORT[..], &["--seed", "2"]].concat()));
}

#[test]
fn who_was_interrupted_goes_on_with_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("runs");
    let args = [&SHORT[..], &["--resume", file.to_str().unwrap()]].concat();
    let whole = text(&SHORT);
    assert_eq!(text(&args), whole);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("alone under noop"), "runs of jobs alone are kept, too");
    let first: Vec<&str> = kept.lines().take(20).collect();
    std::fs::write(&file, first.join("\n")).unwrap();
    assert_eq!(text(&args), whole);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), kept.lines().count());
    // Another goal weighs the same runs; another load has others.
    text(&[&args[..], &["--goal", "bulk"]].concat());
    assert!(refused(&[&args[..], &["--disk", "sata_ssd"]].concat()).contains("name another file"));
}

#[test]
fn a_trace_is_a_job() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("two.blkparse");
    // Two tasks: one reads in order, one at random, every 10 ms.
    let mut trace = String::new();
    for i in 0..100_u64 {
        let (at, from) = (i * 10_000_000, (i * 7919) % 1000 * 4096);
        let stamp = format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
        trace.push_str(&format!(
            "  8,0    0  {:7}  {stamp}  100  Q   R {} + 256 [reader]\n",
            2 * i + 1,
            i * 256
        ));
        trace.push_str(&format!("  8,0    0  {:7}  {stamp}  200  Q   R {from} + 8 [seeker]\n", 2 * i + 2));
    }
    std::fs::write(&file, trace).unwrap();
    let json = json(&[file.to_str().unwrap(), "--rounds", "1"]);
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_eq!(job["kind"], "waiting");
        // The reader's requests are of 64 KiB and the seeker's come between: alone each is as quick or
        // quicker.
        let (alone, here) = (job["alone"].as_f64().unwrap(), job["default"]["amount"].as_f64().unwrap());
        assert!(alone > 0.0 && alone <= here * 1.05, "{job}");
    }
}

#[test]
fn mistakes_are_one_line() {
    for (args, message) in [
        (&["tenants", "--for", "servce"][..], "no job 'servce'; there are service, nightly, scrub"),
        (&["tenants", "--against", "mq-deadlin"], "did you mean 'mq-deadline'?"),
        (&["tenants", "--budget", "0s"], "'--budget=0s' is zero"),
        (&["tenants", "--goal", "latency"], "it is now starts or waits"),
        (&["tenants", "--goal", "speed"], "there are even, starts, rates, waits and bulk"),
        (&["tenant"], "did you mean the workload 'tenants'?"),
    ] {
        let said = refused(args);
        assert!(said.contains(message) && said.lines().count() == 1, "{said}");
    }
}

/// Loads beside the six that docs/answers.md has on all disks, with a disk and the kernel's schedulers that
/// its sources name for them. Tunables are free.
const EXPERTS: [(&str, &str, &[&str]); 4] = [
    ("vm-host", "nvme", &["none"]),
    ("app-start", "nas2020", &["bfq"]),
    ("start-beside-copy", "nas2020", &["bfq"]),
    ("random-readers", "nvme", &["none"]),
];

fn example(load: &str) -> String {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut files = [format!("{examples}/{load}.fio"), format!("{examples}/everyday/{load}.fio")].into_iter();
    files.find(|f| std::path::Path::new(f).is_file()).unwrap_or_else(|| panic!("no example {load}"))
}

/// Pairs on which experts agree, with three base seeds each: the same scheduler, and theirs. All four take
/// minutes, so that a plain run has the first with one round; `FAIRHEAD_ADVICE=1` runs them all.
#[test]
fn what_experts_agree_on_comes_out_whatever_the_seed() {
    let all = std::env::var_os("FAIRHEAD_ADVICE").is_some();
    let pairs = if all { &EXPERTS[..] } else { &EXPERTS[..1] };
    let mut wrong = Vec::new();
    for (load, disk, wanted) in pairs {
        let file = example(load);
        for seed in ["1", "2", "3"] {
            let mut args = vec![&*file, "--disk", disk, "--seed", seed, "--output-format", "json"];
            let short = ["--runtime", "200ms", "--rounds", "1", "--sched", "none,mq-deadline,kyber,bfq"];
            args.extend(if all { &["--budget", "8s"][..] } else { &short[..] });
            let json: Value = serde_json::from_str(&text(&args)).unwrap();
            let best = json["winner"].as_str().unwrap();
            let scheduler = best.split(',').next().unwrap();
            println!("{load} on {disk}, seed {seed}: {best}");
            if !wanted.contains(&scheduler) {
                wrong.push(format!("{load} on {disk}, seed {seed}: {best}, not {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A value of a header line of a load of the museum (docs/museum.md).
fn header<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("# {name}: ")));
    line.unwrap_or_else(|| panic!("no '{name}' in {text}"))
}

/// Complaints of people whose disk did what they did not want: the answer is one of those that their load
/// says. All take minutes, so that a plain run has the cheapest; `FAIRHEAD_ADVICE=1` runs them all.
#[test]
fn complaints_of_the_museum_are_answered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/tests/museum/loads");
    let all = std::env::var_os("FAIRHEAD_ADVICE").is_some();
    let is_cheap = |path: &std::path::Path| {
        path.file_stem().is_some_and(|name| name == "flushes-of-etcd" || name == "download-of-a-game")
    };
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !all && !is_cheap(&path) {
            continue;
        }
        let load = std::fs::read_to_string(&path).unwrap();
        let args = [
            path.to_str().unwrap(),
            "--disk",
            header(&load, "disk"),
            "--against",
            header(&load, "had"),
            "--rounds",
            "1",
        ];
        let answer = json(&args);
        let winner = answer["winner"].as_str().unwrap();
        println!("{}: {winner}", path.display());
        if !header(&load, "answers").split(' ').any(|a| winner.split(',').next() == Some(a)) {
            wrong.push(format!("{}: {winner}: {:#}", path.display(), answer["answer"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Built-in loads beside the six of docs/answers.md, each asked about on a disk with heads and on flash.
const LOADS: [&str; 4] = ["video", "app-start", "tenants", "file-copy"];

/// The answer depends on the load and the disk, not on what chance draws: three base seeds name the same
/// winner, tunables included. All loads take an hour, so that a plain run has a short job;
/// `FAIRHEAD_ADVICE=1` runs all, and says all that differ.
#[test]
fn three_base_seeds_have_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.fio");
    std::fs::write(&file, JOB).unwrap();
    let all = std::env::var_os("FAIRHEAD_ADVICE").is_some();
    let loads: Vec<String> =
        if all { LOADS.map(example).to_vec() } else { vec![file.to_str().unwrap().to_owned()] };
    let how = if all { ["--budget", "8s"] } else { ["--rounds", "1"] };
    let winner = |load: &str, disk: &str, seed: &str| {
        let args = [&[load, "--disk", disk, "--seed", seed, "--output-format", "json"], &how[..]].concat();
        let json: Value = serde_json::from_str(&text(&args)).unwrap();
        json["winner"].as_str().unwrap().to_owned()
    };
    let mut differ = Vec::new();
    for load in &loads {
        for disk in ["nas2020", "sata_ssd"] {
            let winners = ["1", "2", "3"].map(|seed| winner(load, disk, seed));
            if winners.iter().any(|w| *w != winners[0]) {
                differ.push(format!("{load} on {disk}: {}", winners.join("; ")));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
