//! The examples with real programs, at a small size.
//!
//! A script prints `skipped: <why>` where there is no root, FUSE or program, or if the machine could not keep
//! the disk's time; its own verdict needs longer runs than these, so what is asked of the rows here is
//! coarse.

use crate::in_time::{in_time, timely};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A script's own verdict.
const NOT_AS_EXPECTED: i32 = 3;

/// What a script says, if it could be run; one at a time, since all are about real time.
fn run(script: &str, args: &[&str]) -> Option<String> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Command::new("bash")
        .arg(root.join("examples").join(script))
        .args(args)
        .env("FAIRHEAD", env!("CARGO_BIN_EXE_fairhead"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    println!("{said}");
    assert!(matches!(out.status.code(), Some(0 | NOT_AS_EXPECTED)), "{said}{errors}");
    (!said.lines().any(|line| line.starts_with("skipped: "))).then(|| said.into_owned())
}

/// A cell of the row that begins with these words.
fn cell(said: &str, row: &[&str], column: usize) -> f64 {
    let mut rows = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = rows.find(|cells| cells.starts_with(row)).unwrap_or_else(|| panic!("no row {row:?}: {said}"));
    found[column].trim_end_matches('%').parse().unwrap()
}

#[test]
fn two_servers_share_the_disk_by_weight() {
    in_time(|| {
        let Some(said) = run("postgres/run.sh", &["--size", "256", "--sched", "cfq"]) else { return };
        for (weights, theory) in [("1:1", 1.0), ("2:1", 4.0 / 3.0), ("4:1", 1.6)] {
            let ratio = cell(&said, &["cfq", weights], 5);
            timely((theory * 0.8..theory * 1.2).contains(&ratio), format_args!("{weights}: {said}"));
        }
    });
}

#[test]
fn two_readers_share_the_disk_by_weight() {
    in_time(|| {
        for front in ["mount", "serve"] {
            let Some(said) =
                run("two-readers/run.sh", &["--seconds", "3", "--front", front, "--sched", "cfq"])
            else {
                continue;
            };
            let through = if front == "mount" { "mounted" } else { "served" };
            let equal = [5, 6].map(|column| cell(&said, &[through, "cfq", "equal"], column));
            timely(equal.iter().all(|share| *share > 25.0), &said);
            let ratio = cell(&said, &[through, "cfq", "100:300"], 7);
            timely((1.5..6.0).contains(&ratio), &said);
        }
    });
}

#[test]
fn a_program_starts_beside_readers() {
    in_time(|| {
        let few = ["--sched", "bfq", "--readers", "4", "--runs", "1", "--settle", "2"];
        let Some(said) = run("start-up/run.sh", &few) else { return };
        let idle = cell(&said, &["bfq"], 1);
        assert!(idle > 0.05, "{said}");
        timely(cell(&said, &["bfq"], 2) < idle * 10.0, &said);
    });
}

/// BFQ raises readers that have just begun as it does a program that starts; the program is not to wait for
/// them all.
#[test]
fn a_program_starts_beside_readers_that_have_just_begun() {
    in_time(|| {
        for readers in ["4", "6"] {
            let fresh = ["--sched", "bfq", "--readers", readers, "--runs", "2", "--settle", "4"];
            let Some(said) = run("start-up/run.sh", &fresh) else { return };
            let [idle, mean, most] = [1, 2, 3].map(|column| cell(&said, &["bfq"], column));
            timely(mean <= idle * 1.5 && most <= idle * 2.0, &said);
        }
    });
}
