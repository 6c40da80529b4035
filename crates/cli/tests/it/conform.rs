//! `fairhead conform` as a user meets it, on a log of four requests.

use std::io::Write as _;
use std::process::{Command, Output};
use tempfile::TempPath;

/// mq-deadline: the lower of two reads first, then what came last.
const LOG: &str = "# scheduler=mq-deadline
 a-7 [000] d..1. 1.000001: 7,0 I R 2000 + 8 [a]
 a-7 [000] d..1. 1.000002: 7,0 I R 1000 + 8 [a]
 a-7 [000] d..1. 1.000003: 7,0 D R 1000 + 8 [a]
 a-7 [000] d..1. 1.000004: 7,0 D R 2000 + 8 [a]
 a-7 [000] d..1. 1.000005: 7,0 C R 1000 + 8 [0]
";

/// A file whose name ends so, removed at the end.
fn temp(name: &str, text: &str) -> TempPath {
    let mut file = tempfile::Builder::new().suffix(name).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.into_temp_path()
}

fn conform(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("conform").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn agreement_is_a_table_and_exit_code_0() {
    let log = temp("same", LOG);
    let out = conform(&[log.to_str().unwrap()]);
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(0), ""));
    let table = text(&out.stdout);
    assert!(table.contains("mq-deadline, 2 requests"), "{table}");
    let row = table.lines().find(|l| l.starts_with("requests")).expect("a row");
    assert_eq!(row.split_whitespace().take(5).collect::<Vec<_>>(), ["requests", "2", "2", "100.0%", "99%"]);
}

#[test]
fn differences_are_shown_and_exit_code_1() {
    let swapped =
        LOG.replace("D R 1000", "D R x").replace("D R 2000", "D R 1000").replace("D R x", "D R 2000");
    let log = temp("swapped", &swapped);
    let out = conform(&[log.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    let line = text(&out.stderr);
    assert!(line.starts_with("fairhead: ") && line.contains("does not agree: requests 0.0 %"), "{line}");
    let found = text(&out.stdout);
    assert!(found.contains(&format!("{}:4: requests\n  kernel  a-7", log.to_str().unwrap())), "{found}");
    let none = text(&conform(&[log.to_str().unwrap(), "--differences", "0"]).stdout);
    assert!(!none.contains("kernel  ") && none.contains("1 more"), "{none}");
}

#[test]
fn json_has_the_same() {
    let log = temp("json", LOG);
    let out = conform(&[log.to_str().unwrap(), "--output-format", "json"]);
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&value["agrees"], &value["scheduler"]), (&true.into(), &"mq-deadline".into()));
    assert_eq!(value["topics"][0]["compared"], 2);
    assert_eq!(value["differences"].as_array().map(Vec::len), Some(0));
}

#[test]
fn misuse_is_one_line_with_the_place_and_exit_code_2() {
    let none = conform(&["/nonexistent/log"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).starts_with("fairhead: /nonexistent/log: cannot be read"));
    for (name, log, message) in [
        ("word", "hello\n", ":1: not a line of the blk tracer"),
        (
            "kyber",
            "# scheduler=kyber\n a-7 [000] d..1. 1.000001: 7,0 I R 0 + 8 [a]\n",
            "only logs of bfq and mq-deadline",
        ),
        ("empty", "", ": there is no event in it"),
    ] {
        let log = temp(name, log);
        let out = conform(&[log.to_str().unwrap()]);
        let line = text(&out.stderr);
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(message), "{line}");
        assert!(out.stdout.is_empty());
    }
}
