//! `--control`, `ctl` and `top` as a user meets them.

use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with a disk in it, removed again.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::File::create(place.0.path().join("disk.img")).unwrap().set_len(4 << 20).unwrap();
        place
    }
    /// What a shell script says to a served disk; `$f` is the program.
    fn run(&self, more: &[&str], script: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fairhead"))
            .args([
                "serve",
                "--export",
                "vm1=disk.img,weight=300",
                "--export",
                "vm2=disk.img,readonly",
                "--socket",
                "s",
                "--control",
                "c",
            ])
            .args(more)
            .args(["--run", script])
            .env("f", env!("CARGO_BIN_EXE_fairhead"))
            .current_dir(&self.0)
            .output()
            .unwrap()
    }
    fn says(&self, more: &[&str], script: &str) -> String {
        let out = self.run(more, script);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{script}: {said}");
        String::from_utf8(out.stdout).unwrap()
    }
}

fn fairhead(args: &[&str]) -> (i32, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// One guarantee in a job file, on the command lines of `serve` and `mount`, and at the control socket:
/// nas2020 is good for some 90 requests a second.
#[test]
fn a_guarantee_that_a_job_file_may_not_promise_is_refused_everywhere() {
    let place = Place::new();
    let job = "[a]\nrw=read\nsize=1m\ncgroup=/t\n#!fh_cgroup=min_iops=4000\n";
    std::fs::write(place.0.path().join("job.fio"), job).unwrap();
    let text = |name: &str| place.0.path().join(name).to_str().unwrap().to_owned();
    let (job, file, at) = (text("job.fio"), text("disk.img"), text("mnt"));
    let refused = "would add up to 4000 requests/s, but the disk is good for ";
    let (code, said) = fairhead(&["run", &job, "--disk", "nas2020", "--sched", "deadline+groups"]);
    assert!(code != 0 && said.contains(refused), "{code}: {said}");
    let export = format!("a={file},min_iops=4000");
    let socket = text("s");
    let (code, said) = fairhead(&[
        "serve",
        "--export",
        &export,
        "--socket",
        &socket,
        "--emulate",
        "nas2020",
        "--run",
        "true",
    ]);
    assert!(code != 0 && said.contains(refused), "{code}: {said}");
    let emulate = ["--emulate", "nas2020", "--sched", "deadline+groups"];
    let out =
        place.run(&emulate, "$f ctl $control set vm1 min_iops=60; $f ctl $control set vm1 min_iops=4000");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains(refused) && said.matches("add up").count() == 1, "{said}");
    std::fs::create_dir(&at).unwrap();
    if (std::fs::File::options().write(true).open("/dev/fuse")).is_err() {
        println!("skipped: there is no FUSE");
        return;
    }
    let source = text("source");
    std::fs::create_dir(&source).unwrap();
    let (code, said) =
        fairhead(&["mount", &source, &at, "--emulate", "nas2020", "--group", "a,min_iops=4000"]);
    assert!(code != 0 && said.contains(refused), "{code}: {said}");
}

#[test]
fn a_disk_is_changed_while_it_is_served() {
    let place = Place::new();
    let text = place.says(
        &["--sched", "cfq", "--set", "quantum=4"],
        "set -e; $f ctl $control set vm1 weight=400 rbps=50m; $f ctl $control make vms/a; \
         $f ctl $control sched bfq low_latency=0; $f ctl $control; $f ctl $control metrics",
    );
    let end = text.find("\n}\n").unwrap() + 3;
    let stats: serde_json::Value = serde_json::from_str(&text[..end]).unwrap();
    assert_eq!((&stats["scheduler"], &stats["tunables"]["low_latency"]), (&"bfq".into(), &"0".into()));
    let names: Vec<_> = stats["groups"].as_array().unwrap().iter().map(|g| g["group"].clone()).collect();
    assert_eq!(names, ["", "vm1", "vm2", "vms", "vms/a"], "those of exports are there before a client comes");
    assert_eq!(stats["groups"][1]["weight"], 400);
    let exports = stats["exports"].as_array().unwrap();
    assert_eq!((&exports[0]["export"], &exports[1]["reads"]), (&"vm1".into(), &0.into()));
    assert!(text[end..].contains("fairhead_group_weight{group=\"vm1\"} 400\n"));
    assert!(!place.0.path().join("c").exists(), "the socket is gone");
}

/// Schedulers from outside the lineage follow each other while clients read, and a recording of that knows
/// them.
#[test]
fn a_scheduler_from_outside_takes_over_while_a_disk_is_served() {
    let place = Place::new();
    let reads = Command::new("nbdcopy").arg("--version").output().is_ok();
    if !reads {
        println!("skipped: nbdcopy is not installed, so the schedulers change without clients");
    }
    let copy = if reads { "nbdcopy --requests=8 \"nbd+unix:///vm1?socket=s\" null:; " } else { "" };
    let changes: String = ["iocost period=20ms", "iolatency", "bfq", "adios batch_size_limit_read=4"]
        .map(|name| format!("{copy}$f ctl $control sched {name}; "))
        .concat();
    let script = format!("set -e; {changes}{copy}$f ctl $control");
    let text = place.says(&["--sched", "adios", "--record", "log"], &script);
    let stats: serde_json::Value = serde_json::from_str(&text[..text.find("\n}\n").unwrap() + 3]).unwrap();
    let limit = &stats["tunables"]["batch_size_limit_read"];
    assert_eq!((&stats["scheduler"], limit), (&"adios".into(), &"4".into()));
    assert_eq!(stats["groups"][1]["weight"], 300, "groups stay");
    let log = place.0.path().join("log").to_str().unwrap().to_owned();
    let out = Command::new(env!("CARGO_BIN_EXE_fairhead")).args(["replay-live", &log]).output().unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(told.contains("5 schedulers one after the other: all ") && out.status.success(), "{out:?}");
}

/// A latency target of a served disk, under the scheduler that keeps it: a word of an export, and of `ctl`.
#[test]
fn a_group_has_a_latency_target() {
    let place = Place::new();
    let text = place.says(
        &["--sched", "iolatency", "--set", "win=20ms", "--export", "vm3=disk.img,readonly,latency=3ms"],
        "set -e; $f ctl $control set vm1 latency=5ms; $f ctl $control; $f top $control --interval 50ms --count 1",
    );
    let end = text.find("\n}\n").unwrap() + 3;
    let stats: serde_json::Value = serde_json::from_str(&text[..end]).unwrap();
    assert_eq!((&stats["scheduler"], &stats["tunables"]["win"]), (&"iolatency".into(), &"20ms".into()));
    let targets: Vec<_> = [1, 2, 3].map(|i| stats["groups"][i]["latency_target_ns"].as_u64()).to_vec();
    assert_eq!(targets, [Some(5_000_000), None, Some(3_000_000)]);
    assert!(text[end..].contains("latency=5.00ms"), "{text}");
}

#[test]
fn top_prints_a_table_for_each_interval() {
    let place = Place::new();
    let text = place.says(&[], "$f top $control --interval 50ms --count 2");
    let (tables, _) = text.split_once("export clients").expect("what the server tells at its end");
    let tables: Vec<&str> = tables.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{text}");
    for table in tables {
        let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!((lines[0][0], lines[0][1]), ("bfq,", "depth"));
        assert_eq!(lines[1], ["group", "weight", "IOPS", "waiting"], "nothing in the other columns: {table}");
        assert_eq!(lines[2..], [["vm1", "300", "0", "0"], ["vm2", "100", "0", "0"]]);
    }
    assert!(!text.contains('\x1b'), "a pipe is no terminal");
}

#[test]
fn metrics_over_http_are_for_this_machine() {
    let place = Place::new();
    let out = place.run(&["--metrics", "0"], "true");
    assert!(String::from_utf8_lossy(&out.stderr).contains("metrics at http://127.0.0.1:"));
    let out = place.run(&["--metrics", "0.0.0.0:0"], "true");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.ends_with("--insecure-remote allows it\n") && out.status.code() == Some(1), "{said}");
    let out = place.run(&["--metrics", "here"], "true");
    assert_eq!(
        String::from_utf8(out.stderr).unwrap(),
        "fairhead: --metrics here: neither a port nor ADDRESS:PORT, such as 127.0.0.1:10809\n"
    );
}

#[test]
fn mistakes_are_one_line_each() {
    let place = Place::new();
    for (words, why) in [
        ("set mv1 weight=3", "unknown group 'mv1'; did you mean 'vm1'?"),
        ("set vm1 wieght=3", "set: unknown word 'wieght'; did you mean 'weight'?"),
        ("sched cqf", "unknown scheduler 'cqf'; did you mean 'cfq'?"),
        ("tune low_latnecy=1", "bfq: unknown tunable 'low_latnecy'; did you mean 'low_latency'?"),
    ] {
        let out = place.run(&[], &format!("$f ctl $control {words}; test $? = 2"));
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{said}");
        assert!(said.lines().any(|l| l == format!("fairhead: {why}")), "{words}: {said}");
    }
    let missing = place.0.path().join("missing");
    let missing = missing.to_str().unwrap();
    let (code, said) = fairhead(&["ctl", missing]);
    assert!(code == 1 && said.starts_with(&format!("fairhead: {missing}: No such file")), "{said}");
    let (code, said) = fairhead(&["top", missing, "--interval", "1"]);
    assert!(code == 2 && said.contains("has no unit"), "{said}");
    let (code, said) = fairhead(&["ctl", missing, "stast"]);
    assert!(code == 2 && said == "fairhead: unknown command 'stast'; did you mean 'stats'?\n", "{said}");
}

/// A file that takes long to open, here on a mount whose server is stopped, keeps no other request waiting.
#[test]
fn a_file_that_does_not_open_stops_neither_control_nor_metrics() {
    crate::mount_source::run(
        r#"
mkdir -p src mp; truncate -s 1M src/img a.img
mkfifo src/fifo
show src mp; m=$p
"$FAIRHEAD" serve --export a=a.img --socket s --control c --metrics 0 --export-dir "$PWD/mp" >out 2>&1 & p=$!
for i in $(seq 400); do [ ! -S c ] || break; sleep 0.05; done
ctl() { timeout -s KILL 20 "$FAIRHEAD" ctl c "$@"; }
ctl export add f=mp/fifo,readonly 2>why && fail "a FIFO is no image"
grep -q "not a file or block device" why || fail "$(cat why out)"
kill -STOP $m
ctl export add b=mp/img,readonly >added 2>&1 & adds=$!
sleep 0.2
ctl stats >/dev/null || fail "statistics wait for the file"
ctl exports >list || fail "the list of exports waits for the file"
grep -q '"b"' list && fail "it is served before it is open"
ctl metrics >/dev/null || fail "metrics wait for the file"
kill -CONT $m
wait $adds || fail "it is not added: $(cat added out)"
ctl exports | grep -q '"b"' || fail "it is not served: $(cat added out)"
ctl export remove b
kill -TERM $p; wait $p || fail "the server fails"
p=$m; end
"#,
    );
}
