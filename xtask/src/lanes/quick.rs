//! The lane for the time of working: what a change can break, by the graph of the crates.
//!
//! ```text
//!   files that differ from the last commit ─► crates ─► their own tests, few drawn cases
//!                                                └────► crates that hang from them ─► the tests of WATCHERS
//! ```
//!
//! With names (`fairhead-sim` or `sim`) it is about those crates. If nothing differs, it is about the last
//! commit. What this does not do: compile what hangs from a crate but has no watcher, lint that, or try
//! anything that asks for real time or is [long](LONG).

use super::cost;
use super::drawn::{self, FEWEST};
use super::list;
use crate::outcome::{Count, Outcome};
use crate::shell::{capture, cargo, command, root};
use crate::{links, tidy};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

/// Tests that notice if a crate below theirs decides otherwise: the crate's folder,
/// and the arguments that choose them.
const WATCHERS: [(&str, &str); 5] = [
    ("sim", "--test same_bytes"),
    ("conform", "--test it kernel_logs::"),
    ("core-ffi", "--test it same_decisions::"),
    ("plugin", "--test same_bytes"),
    ("papers", "--test it ladder::"),
];

/// The beginnings of tests that wait for virtual machines, or for turns of seconds.
const LONG: [&str; 3] = ["guest::a_linux_guest", "guest_vhost::two_guests", "try_disk::"];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Runs the lane. `named`: crates; none: those that changed.
pub(super) fn run(named: &[&str]) -> ExitCode {
    let start = cost::now();
    let result = crates(named).and_then(|crates| of(&crates));
    match result {
        Ok(total) => {
            println!("{total} in {:.0} s", start.elapsed().as_secs_f64());
            if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(said) => {
            eprintln!("{said}");
            ExitCode::FAILURE
        }
    }
}

/// The folders of the crates that this is about.
fn crates(named: &[&str]) -> Result<BTreeSet<String>, String> {
    let graph = graph()?;
    if named.is_empty() {
        let crates: BTreeSet<String> = changed()?.iter().filter_map(|path| crate_of(path)).collect();
        return Ok(crates.into_iter().filter(|name| graph.contains_key(name)).collect());
    }
    let folder = |name: &&str| {
        let short = name.strip_prefix("fairhead-").unwrap_or(if *name == "fairhead" { "cli" } else { name });
        let known = graph.contains_key(short).then(|| short.to_owned());
        let names = || graph.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        known.ok_or_else(|| format!("no crate '{name}'; there are {}", names()))
    };
    named.iter().map(folder).collect()
}

/// Checks these crates, and what watches them.
fn of(crates: &BTreeSet<String>) -> Result<Count, String> {
    let mut total = Count::default();
    let mut step = |name: &str, outcome: Result<Outcome, String>| match outcome {
        Ok(Outcome::Tests(count)) => {
            println!("{name}: {count}");
            total.add(count);
        }
        Ok(_) => println!("{name}: ok"),
        Err(said) => {
            println!("{name}: FAILED");
            eprintln!("{said}");
            total.fail();
        }
    };
    let plain = |args: &str| capture(&mut cargo(args)).map(|_| Outcome::Passed(String::new()));
    step("format", plain("fmt --all --check"));
    step("links and citations", links::check());
    step("plain English", tidy::check());
    if crates.is_empty() {
        println!("no crate has changed");
        return Ok(total);
    }
    let packages: Vec<String> = crates.iter().map(|name| format!("-p {}", package(name))).collect();
    let packages = packages.join(" ");
    step("clippy", capture(&mut list::clippy(&packages)).map(|_| Outcome::Passed(String::new())));
    let mut tests = drawn::tests(&format!("{packages} --tests"), &FEWEST);
    step("tests", drawn::run(tests.args(LONG.iter().flat_map(|name| ["--skip", *name]))));
    let above = above(&graph()?, crates);
    for (name, tests) in WATCHERS.iter().filter(|(name, _)| above.contains(*name) && !crates.contains(*name))
    {
        let mut watch = drawn::tests(&format!("-p {} {tests}", package(name)), &FEWEST);
        step(&format!("{name} {tests}"), drawn::run(&mut watch));
    }
    Ok(total)
}

/// The package in a crate's folder.
fn package(folder: &str) -> String {
    match folder {
        "cli" => "fairhead".to_owned(),
        "xtask" => folder.to_owned(),
        _ => format!("fairhead-{folder}"),
    }
}

/// Files that differ from the last commit; if there are none, those of the last commit.
fn changed() -> Result<Vec<String>, String> {
    let git = |args: &str| {
        capture(&mut command("git", args)).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut text = git("diff --name-only HEAD")? + &git("ls-files --others --exclude-standard")?;
    if text.is_empty() {
        text = git("diff --name-only HEAD~1 HEAD")?;
    }
    Ok(text.lines().map(str::to_owned).collect())
}

/// The crate that a file is in.
fn crate_of(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    match parts.next()? {
        "crates" => parts.next().map(str::to_owned),
        "xtask" => Some("xtask".to_owned()),
        _ => None,
    }
}

/// The crates that each crate uses, tests included, as the manifests say.
fn graph() -> Result<Graph, String> {
    let mut graph = Graph::from([("xtask".to_owned(), BTreeSet::new())]);
    for entry in fs::read_dir(root().join("crates")).map_err(|e| format!("crates: {e}"))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        let used = manifest.lines().filter_map(|line| {
            let rest = line.strip_prefix("fairhead-")?;
            Some(rest[..rest.find(['.', ' ', '='])?].to_owned())
        });
        graph.insert(name, used.collect());
    }
    Ok(graph)
}

/// These crates, and those that use them, also through others.
fn above(graph: &Graph, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let mut all = crates.clone();
    loop {
        let more: Vec<_> =
            graph.iter().filter(|(n, used)| !all.contains(*n) && !used.is_disjoint(&all)).collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more.into_iter().map(|(name, _)| name.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_from_core_is_all_that_decides_with_it() {
        let graph = graph().expect("manifests");
        let above = above(&graph, &BTreeSet::from(["core".to_owned()]));
        for (name, _) in WATCHERS {
            assert!(above.contains(name), "{name} is not above core: {above:?}");
        }
        assert!(!above.contains("xtask"));
    }

    #[test]
    fn files_belong_to_crates() {
        assert_eq!(crate_of("crates/sim/src/lib.rs").as_deref(), Some("sim"));
        assert_eq!(crate_of("xtask/src/main.rs").as_deref(), Some("xtask"));
        assert_eq!(crate_of("docs/testing.md"), None);
    }

    #[test]
    fn a_crate_that_does_not_exist_is_named() {
        let said = crates(&["simm"]).expect_err("no such crate");
        assert!(said.starts_with("no crate 'simm'; there are ") && said.contains("sim, "), "{said}");
        assert!(crates(&["fairhead-sim", "fairhead"]).is_ok());
    }
}
