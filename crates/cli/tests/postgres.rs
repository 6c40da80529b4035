//! The PostgreSQL example at a small size.

use std::path::Path;
use std::process::{Command, Stdio};

/// Its table is `skipped: <why>` where there is no root, FUSE or PostgreSQL, or the machine could not keep the disk's time.
#[test]
fn two_servers_share_the_disk_by_weight() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Command::new("bash")
        .arg(root.join("examples/postgres/run.sh"))
        .args(["--size", "256", "--sched", "cfq"])
        .env("FAIRHEAD", env!("CARGO_BIN_EXE_fairhead"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    println!("{said}");
    assert!(out.status.success(), "{said}{errors}");
    if said.starts_with("skipped: ") {
        return;
    }
    for weights in ["1:1", "2:1", "4:1"] {
        let is_row = |line: &&str| line.split_whitespace().take(2).eq(["cfq", weights]);
        assert_eq!(said.lines().filter(is_row).count(), 1, "{weights}: {said}");
    }
}
