//! The arrows between the crates go one way: `core ← device ← sim ← report ← cli`, `device ← live ← cli`,
//! `core ← trace ← {sim, cli}`.
//!
//! A change in a front-end then cannot alter a decision, and a simulated result is about exactly the code
//! that runs anywhere else. `bench`, `fuzz` and `xtask` may use any crate, and no crate uses them.

use crate::shell::{capture, cargo};

/// The workspace's crates that `package` links, through any number of steps, itself included.
fn links(package: &str, edges: &str) -> (Vec<String>, Vec<String>) {
    let mut tree = cargo("tree --locked --target all --prefix none --format {p}");
    let output = capture(tree.args(["--package", package, "--edges", edges])).expect("cargo tree");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let names =
        text.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| !name.starts_with('['));
    let mut all: Vec<String> = names.map(str::to_owned).collect();
    all.sort();
    all.dedup();
    let ours = |name: &String| name.starts_with("fairhead") || name == "xtask";
    let (ours, others) = all.into_iter().partition(ours);
    (ours, others)
}

#[test]
fn arrows_between_crates_go_one_way() {
    for (package, allowed) in [
        ("fairhead-core", &["fairhead-core"][..]),
        ("fairhead-device", &["fairhead-core", "fairhead-device"]),
        ("fairhead-sim", &["fairhead-core", "fairhead-device", "fairhead-sim", "fairhead-trace"]),
        ("fairhead-live", &["fairhead-core", "fairhead-device", "fairhead-live"]),
        ("fairhead-trace", &["fairhead-core", "fairhead-trace"]),
        (
            "fairhead-report",
            &["fairhead-core", "fairhead-device", "fairhead-report", "fairhead-sim", "fairhead-trace"],
        ),
        (
            "fairhead",
            &[
                "fairhead",
                "fairhead-core",
                "fairhead-device",
                "fairhead-live",
                "fairhead-report",
                "fairhead-sim",
                "fairhead-trace",
            ],
        ),
    ] {
        let (ours, _) = links(package, "normal,build,dev");
        assert!(ours.contains(&package.to_owned()), "cargo tree says nothing about {package}: {ours:?}");
        for linked in ours {
            assert!(allowed.contains(&linked.as_str()), "{package} must not use {linked}");
        }
    }
}

#[test]
fn core_has_no_dependencies_not_even_for_its_tests() {
    let (ours, others) = links("fairhead-core", "normal,build,dev");
    assert_eq!((ours, others), (vec!["fairhead-core".to_owned()], Vec::new()));
}
