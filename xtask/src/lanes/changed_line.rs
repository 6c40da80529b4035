//! What a contributor waits for who changes a line of core and runs one unit test: `cargo test -p
//! fairhead-core --lib NAME`, in the profile `dev`.
//!
//! A copy of the crate is compiled in `target/changed-line`. Then a line is added at the top of the elevator,
//! so that all places in that file are others, and what it takes to run a test is measured.

use super::cost;
use crate::dist;
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, root};
use std::fs;
use std::path::Path;

/// The most seconds of processors.
const MOST: f64 = 15.0;

/// The file that is changed, and the test that is run.
const FILE: &str = "crates/core/src/elevator/mod.rs";
const TEST: &str = "units::";

/// Measures it.
pub(super) fn check() -> Result<Outcome, String> {
    let place = root().join(dist::target()).join("changed-line");
    let _ = fs::remove_dir_all(&place);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|e| format!("Cargo.toml: {e}"))?;
    dist::write(&place.join("Cargo.toml"), alone(&manifest).as_bytes())?;
    dist::write(&place.join("crates/core/README.md"), b"")?;
    for name in ["Cargo.toml", "src", "tests"] {
        let to = place.join("crates/core").join(name);
        capture(command("cp", "-rL").arg(format!("crates/core/{name}")).arg(to))?;
    }
    let first = test(&place)?;
    let file = place.join(FILE);
    let text = fs::read_to_string(&file).map_err(|e| format!("{FILE}: {e}"))?;
    dist::write(&file, format!("//! A changed line.\n//!\n{text}").as_bytes())?;
    let again = test(&place)?;
    let said = format!("{again:.1} s of processors after a changed line, {first:.1} s the first time");
    if again > MOST { Err(format!("{said}; {MOST} s is the most")) } else { Ok(Outcome::Passed(said)) }
}

/// Runs the test. Returns the seconds of processors that it took to compile and run it.
fn test(place: &Path) -> Result<f64, String> {
    let before = cost::processor_time();
    let mut test = cargo(&format!("test --offline --package fairhead-core --lib {TEST}"));
    let output = capture(test.current_dir(place).env("CARGO_TARGET_DIR", place.join("target")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("running 0 tests") {
        Err(format!("no test {TEST}"))
    } else {
        Ok(cost::processor_time() - before)
    }
}

/// The workspace's manifest with core as its only member.
fn alone(manifest: &str) -> String {
    let (mut is_kept, mut kept) = (true, String::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_kept = line != "[workspace.dependencies]" && !line.contains(".package.");
        }
        let line = if line.starts_with("members = ") { "members = [\"crates/core\"]" } else { line };
        if is_kept && !line.starts_with("default-members") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_alone_has_the_profiles_that_it_has_here() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
        let alone = alone(&manifest);
        for line in ["members = [\"crates/core\"]", "[workspace.lints.rust]", "[profile.dev]"] {
            assert!(alone.lines().any(|l| l == line), "no {line} in {alone}");
        }
        assert!(!alone.contains("path = ") && !alone.contains("default-members"), "{alone}");
        assert!(root().join(FILE).is_file());
    }
}
