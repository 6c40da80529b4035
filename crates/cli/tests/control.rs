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
    let missing = place.0.path().join("nobody");
    let missing = missing.to_str().unwrap();
    let (code, said) = fairhead(&["ctl", missing]);
    assert!(code == 1 && said.starts_with(&format!("fairhead: {missing}: No such file")), "{said}");
    let (code, said) = fairhead(&["top", missing, "--interval", "1"]);
    assert!(code == 2 && said.contains("has no unit"), "{said}");
    let (code, said) = fairhead(&["ctl", missing, "stast"]);
    assert!(code == 2 && said == "fairhead: unknown command 'stast'; did you mean 'stats'?\n", "{said}");
}
