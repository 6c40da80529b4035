//! cargo, and what it says.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tests that changes go through, as arguments of `cargo test`, those first that are built and run
/// soonest: all tests of `core`, `device` and `sim`; of `live` those in virtual time and on plain files.
pub(crate) const STAGES: [&str; 6] = [
    RULES_STAGE,
    "--package fairhead-core --test *",
    "--package fairhead-live --lib --test it",
    "--package fairhead-sim --lib",
    "--package fairhead-sim --test *",
    "--package fairhead-device --lib --test *",
];

/// The integration tests of `live` in virtual time and on plain files.
const OF_LIVE: [&str; 3] = ["live/disk", "live/next_request", "live/request_queue"];

/// The stage with the unit tests of BFQ's rules.
pub(crate) const RULES_STAGE: &str = "--package fairhead-core --lib";

/// A program with tests, or a module of the integration tests, which are one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// `core`, or `core/suite` for the tests of `core/tests/it/suite.rs`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The package's folder, where its tests run.
    pub(crate) folder: PathBuf,
    /// The names of the module's tests; none if it is a whole program.
    pub(crate) tests: Vec<String>,
}

/// A place in a file that does not compile, in bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    pub(crate) file: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Fault {
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Where crates, named by their folders, do not compile; each list is the places of one error, the main ones
/// first.
pub(crate) fn check(tree: &Path, target: &Path, crates: &BTreeSet<&str>) -> Result<Vec<Vec<Fault>>, String> {
    let packages: String = crates.iter().map(|name| format!("--package fairhead-{name} ")).collect();
    let (succeeded, messages) = cargo(tree, target, "check", &format!("{packages}--lib --keep-going"))?;
    let faults: Vec<Vec<Fault>> = messages.iter().filter_map(|message| faults(message, tree)).collect();
    if succeeded || !faults.is_empty() {
        return Ok(faults);
    }
    Err(format!("cargo check {packages}: failed without an error in a file\n{}", rendered(&messages)))
}

/// Builds the test programs of a stage.
pub(crate) fn programs(tree: &Path, target: &Path, stage: &str) -> Result<Vec<Program>, String> {
    let (succeeded, messages) = cargo(tree, target, "test", &format!("--no-run {stage}"))?;
    if !succeeded {
        return Err(format!("cargo test --no-run {stage}: failed\n{}", rendered(&messages)));
    }
    let mut all = Vec::new();
    for program in messages.iter().filter_map(program) {
        match program.name.strip_suffix("/it") {
            Some(package) => all.extend(modules(&program, package, &listed(&program)?)),
            None => all.push(program),
        }
    }
    all.retain(|program| !program.name.starts_with("live/") || OF_LIVE.contains(&program.name.as_str()));
    Ok(all)
}

/// What a program says of its tests, a line for each.
fn listed(program: &Program) -> Result<String, String> {
    let mut list = Command::new(&program.path);
    let output = list.arg("--list").output().map_err(|e| format!("{}: {e}", program.path.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The modules of a program of integration tests.
fn modules(program: &Program, package: &str, listed: &str) -> Vec<Program> {
    let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in listed.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split_once("::").map_or("it", |(module, _)| module);
        modules.entry(module).or_default().push(test.to_owned());
    }
    let part = |(module, tests)| Program { name: format!("{package}/{module}"), tests, ..program.clone() };
    modules.into_iter().map(part).collect()
}

/// Runs a command of cargo; whether it succeeded, and its messages.
fn cargo(tree: &Path, target: &Path, command: &str, args: &str) -> Result<(bool, Vec<Value>), String> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.arg(command).args(["--profile", "sim", "--message-format", "json"]).args(args.split(' '));
    cargo.arg("--target-dir").arg(target).current_dir(tree).stdin(Stdio::null()).stderr(Stdio::inherit());
    // The runtime reads in a const fn which change is active, with a feature that is not stable.
    cargo.env("RUSTC_BOOTSTRAP", "mutant_runtime");
    for (key, _) in
        std::env::vars().filter(|(key, _)| key.starts_with("CARGO_PKG_") || key == "CARGO_MANIFEST_DIR")
    {
        cargo.env_remove(key);
    }
    let output = cargo.output().map_err(|e| format!("cargo {command}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((output.status.success(), messages))
}

/// The places of a message that is an error.
fn faults(message: &Value, tree: &Path) -> Option<Vec<Fault>> {
    let message = message.get("message").filter(|message| message["level"] == "error")?;
    let mut spans: Vec<&Value> = message["spans"].as_array()?.iter().collect();
    spans.sort_by_key(|span| span["is_primary"] != true);
    let fault = |span: &&Value| {
        let file = Path::new(span["file_name"].as_str()?);
        let offset = |name: &str| span[name].as_u64().and_then(|n| usize::try_from(n).ok());
        let file = file.strip_prefix(tree).unwrap_or(file).to_string_lossy().into_owned();
        Some(Fault { file, start: offset("byte_start")?, end: offset("byte_end")? })
    };
    let faults: Vec<Fault> = spans.iter().filter_map(fault).collect();
    (!faults.is_empty()).then_some(faults)
}

/// A program that a message says was built.
fn program(message: &Value) -> Option<Program> {
    let path = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_string_lossy();
    let is_test = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = match message["target"]["name"].as_str() {
        Some(test) if is_test => format!("{package}/{test}"),
        _ => package.into_owned(),
    };
    Some(Program { name, path: path.into(), folder: folder.to_owned(), tests: Vec::new() })
}

fn rendered(messages: &[Value]) -> String {
    let texts = messages.iter().filter(|message| message["message"]["level"] == "error");
    let texts: BTreeSet<&str> = texts.filter_map(|message| message["message"]["rendered"].as_str()).collect();
    texts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_main_place_of_an_error_comes_first_and_warnings_are_none() {
        let span = |file: &str, start: u32, main: bool| {
            let end = start + 2;
            json!({"file_name": file, "byte_start": start, "byte_end": end, "is_primary": main})
        };
        let of = |level: &str| {
            let spans = [span("src/a.rs", 1, false), span("/t/src/b.rs", 5, true)];
            json!({"reason": "compiler-message", "message": {"level": level, "spans": spans}})
        };
        let fault = |file: &str, start| Fault { file: file.to_owned(), start, end: start + 2 };
        let all = faults(&of("error"), Path::new("/t"));
        assert_eq!(all, Some(vec![fault("src/b.rs", 5), fault("src/a.rs", 1)]));
        assert_eq!(faults(&of("warning"), Path::new("/t")), None);
        assert_eq!(faults(&json!({"reason": "build-finished"}), Path::new("/t")), None);
    }

    #[test]
    fn a_program_is_named_after_its_package_and_file() {
        let message = |kind: &str, test: bool| json!({"executable": "/b/suite-1", "manifest_path": "/t/crates/core/Cargo.toml", "profile": {"test": test}, "target": {"name": "suite", "kind": [kind]}});
        let built = program(&message("test", true)).unwrap();
        assert_eq!((built.name.as_str(), built.folder), ("core/suite", PathBuf::from("/t/crates/core")));
        assert_eq!(program(&message("lib", true)).unwrap().name, "core");
        assert_eq!(program(&message("bin", false)), None);
    }

    #[test]
    fn integration_tests_are_run_by_module() {
        let whole =
            Program { name: "core/it".into(), path: "/b/it-1".into(), folder: "/t".into(), tests: vec![] };
        let parts =
            modules(&whole, "core", "suite::noop: test\ngolden::a: test\nsuite::bfq: test\n\n3 tests\n");
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["core/golden", "core/suite"]);
        assert_eq!(
            (parts[1].tests.join(" "), &parts[1].path),
            ("suite::noop suite::bfq".into(), &whole.path)
        );
    }
}
