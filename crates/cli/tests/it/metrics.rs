//! The metrics of a served disk: their format, and the dashboard that draws them.

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// What `ctl metrics` prints for an emulated disk, of which something has been read where qemu-io is there.
fn metrics() -> String {
    let place = tempfile::tempdir().unwrap();
    std::fs::File::create(place.path().join("disk.img")).unwrap().set_len(4 << 20).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["serve", "--export", "vm1=disk.img,weight=300", "--socket", "s", "--control", "c"])
        .args(["--emulate", "nas2020", "--run"])
        .arg(
            "! command -v qemu-io > qemu || \
             qemu-io -f raw -c 'read 0 64k' \"nbd+unix:///vm1?socket=s\" > qemu; \
             \"$f\" ctl \"$control\" metrics",
        )
        .env("f", env!("CARGO_BIN_EXE_fairhead"))
        .current_dir(&place)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    // The server's own summary follows.
    let metric = |l: &&str| l.starts_with("# ") || l.starts_with("fairhead_");
    text.lines().filter(metric).flat_map(|l| [l, "\n"]).collect()
}

/// The names that an expression or the text of metrics has.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with("fairhead_")).map(str::to_owned).collect()
}

#[test]
fn the_dashboard_draws_metrics_that_exist_and_all_of_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grafana/fairhead.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = metrics();
    let samples: String = text.lines().filter(|l| !l.starts_with('#')).flat_map(|l| [l, "\n"]).collect();
    let mut there = names(&samples);
    // Only a confined server has it; whether this one is follows from the kernel.
    there.insert("fairhead_refused_calls_total".to_owned());
    let mut drawn = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let named = names(target["expr"].as_str().unwrap());
            assert!(!named.is_empty() && named.is_subset(&there), "{}: {named:?}", panel["title"]);
            drawn.extend(named);
        }
    }
    assert_eq!(drawn, there, "what there is, is on a panel");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["query"]["query"].as_str().unwrap_or_default();
        assert!(names(query).is_subset(&there), "{query}");
    }
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let promtool = |args: &[&str], input: &str| -> Option<(bool, String)> {
        let mut child = Command::new("promtool")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        Some((out.status.success(), String::from_utf8_lossy(&said).into_owned()))
    };
    let Some((is_good, said)) = promtool(&["check", "metrics"], &metrics()) else {
        println!("skipped: there is no promtool");
        return;
    };
    assert!(is_good && said.is_empty(), "{said}");
    let (is_good, said) = promtool(&["check", "metrics"], "fairhead_reads 1\n").unwrap();
    assert!(!is_good || !said.is_empty(), "it would find something: a metric without help");
}
