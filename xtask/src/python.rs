//! `cargo xtask python`, and a step of the tests: the Python package, as people get it.
//!
//! ```text
//!   target/wheel/tools   an environment with maturin, pytest, pyarrow, polars, pandas, nbclient; made once
//!   target/wheel/dist    the wheel, built in the profile of the tests: all assertions on
//!   target/wheel/bare    a new environment with nothing but the wheel: it needs no other package
//! ```
//!
//! The tests in `crates/python/tests` run in the first environment with the wheel in it. They compare results
//! with those of the program, and execute the examples of `docs/python.md` and the notebook.

use crate::dist;
use crate::outcome::Outcome;
use crate::shell::{capture, command, exists, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What builds and tests the wheel.
const TOOLS: &[&str] = &[
    "maturin>=1.9,<2",
    "pytest",
    "pyarrow",
    "polars",
    "pandas",
    "distributed",
    "nbclient",
    "nbformat",
    "ipykernel",
];

/// The example that a wheel without anything else has to run.
const BARE: &str = "import fairhead; r = fairhead.run('[a]\\nsize=1m\\n', schedulers='bfq'); \
                    assert r.clients['read_bytes'] == [1 << 20], r; print(fairhead.__version__)";

fn folder() -> PathBuf {
    dist::target().join("wheel")
}

/// An environment with [`TOOLS`]; why there is none.
fn tools() -> Result<PathBuf, String> {
    let place = folder().join("tools");
    if place.join("complete").exists() {
        return Ok(place);
    }
    let _ = fs::remove_dir_all(&place);
    capture(command("python3", "-m venv").arg(&place)).map_err(|_| "python3 has no venv".to_owned())?;
    capture(Command::new(place.join("bin/pip")).args(["install", "--quiet", "--no-compile"]).args(TOOLS))
        .map_err(|_| format!("pip cannot install {}", TOOLS.join(", ")))?;
    fs::write(place.join("complete"), "").map_err(|e| e.to_string())?;
    Ok(place)
}

/// Builds the wheel in a profile, into a folder. Returns the file.
fn build(tools: &Path, profile: &str, to: &Path) -> Result<PathBuf, String> {
    let wheels = |folder: &Path| -> Vec<PathBuf> {
        let all = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        all.filter(|path| path.extension().is_some_and(|e| e == "whl")).collect()
    };
    for old in wheels(to) {
        fs::remove_file(&old).map_err(|e| format!("{}: {e}", old.display()))?;
    }
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(["build", "--quiet", "--profile", profile, "--out"]).arg(to);
    capture(maturin.current_dir(root().join("crates/python")).env("CARGO_TARGET_DIR", dist::target()))?;
    wheels(to).pop().ok_or_else(|| format!("maturin left no wheel in {}", to.display()))
}

/// The wheel for other machines.
pub(crate) fn wheel(to: &Path) -> Result<PathBuf, String> {
    build(&tools()?, "dist", to)
}

/// Builds the wheel, and tests it.
pub(crate) fn check() -> Result<Outcome, String> {
    if !exists("python3") {
        return Ok(Outcome::Skipped("no python3".to_owned()));
    }
    let tools = match tools() {
        Ok(tools) => tools,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let wheel = build(&tools, "sim", &folder().join("dist"))?;
    let pip = |python: &Path| {
        let mut pip = Command::new(tools.join("bin/pip"));
        pip.arg("--python").arg(python).args(["install", "--quiet", "--no-index", "--no-deps"]);
        pip.arg("--force-reinstall").arg(&wheel);
        capture(&mut pip)
    };
    let bare = folder().join("bare");
    capture(command("python3", "-m venv --clear --without-pip").arg(&bare))?;
    pip(&bare.join("bin/python"))?;
    capture(Command::new(bare.join("bin/python")).args(["-I", "-c", BARE]))?;
    pip(&tools.join("bin/python"))?;
    let program = dist::tests_program()?;
    let mut tests = Command::new(tools.join("bin/python"));
    tests
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
        .current_dir(root().join("crates/python"));
    tests.env("FAIRHEAD", program).env("PYTHONDONTWRITEBYTECODE", "1");
    let said = capture(&mut tests)?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let skipped = said.lines().filter(|line| line.starts_with("SKIPPED"));
    skipped.for_each(|line| println!("skipped: {line}"));
    Ok(Outcome::Passed(said.trim_end().lines().last().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::cargo;
    use std::collections::BTreeSet;

    /// The crates that an argument of `cargo tree` selects, with their features.
    fn features(which: &str) -> BTreeSet<String> {
        let mut tree = cargo(&format!("tree --locked --prefix none {which} --format"));
        let output = capture(tree.arg("{p} [{f}]")).expect("cargo tree");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    }

    /// A crate with other features is compiled once more, and all that use it: 60 s of processor time for
    /// `libm` alone, which the lab uses.
    #[test]
    fn the_wheel_is_made_of_crates_with_the_features_that_the_tests_have_compiled() {
        let compiled = features("--workspace --edges normal,build,dev");
        let wheel = features("--package fairhead-python --edges normal,build");
        assert!(wheel.len() > 20, "{wheel:?}");
        let others: Vec<_> = wheel.difference(&compiled).collect();
        assert!(others.is_empty(), "crates/python/Cargo.toml: ask for the features of {others:?}");
    }
}
