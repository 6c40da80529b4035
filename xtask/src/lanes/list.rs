//! The steps, and the inputs that decide what comes of them.
//!
//! A step with inputs has a result that follows from them alone; `records` keeps the last one. In doubt a
//! path belongs to the inputs: a step that runs too often costs minutes, one that is left out wrongly costs a
//! fault. By decision, packages are checked when a manifest changes, and the page when its own crates do; the
//! night repeats them with all the rest.

use super::changed_line;
use super::drawn::{self, Drawn, FEW};
use super::prepare;
use super::programs;
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, exists, root};
use crate::{
    api, bench, c_api, crate_packages, deb, dist, docs, ffi, figures, fuzz, kernel, links, page, python, tidy,
};
use std::fs;
use std::process::{Command, Stdio};

/// What is tried, and what decides how it ends.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) run: fn() -> Result<Outcome, String>,
    /// Paths, as git takes them; none: the step always runs.
    pub(super) inputs: &'static [&'static str],
}

const fn always(name: &'static str, run: fn() -> Result<Outcome, String>) -> Step {
    Step { name, run, inputs: &[] }
}

const fn of(
    name: &'static str,
    inputs: &'static [&'static str],
    run: fn() -> Result<Outcome, String>,
) -> Step {
    Step { name, run, inputs }
}

/// What says how crates are compiled.
macro_rules! manifests {
    ($($more:literal),*) => {
        &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates/*/Cargo.toml", $($more),*]
    };
}

/// What the program's output in documents comes from: all crates that it is made of, and the documents.
macro_rules! lab {
    ($($more:literal),*) => {
        manifests!(
            "crates/core/src", "crates/device", "crates/sim/src", "crates/trace/src", "crates/lab/src",
            "crates/outside/src", "crates/report/src", "crates/machine/src", "crates/papers/src",
            "crates/plugin/src", "crates/cli/src", "crates/cli/templates", "examples", $($more),*
        )
    };
}

const MODULE: &[&str] =
    &["kernel", "crates/core/src", "crates/core-ffi", "crates/device/src", "xtask/src/kernel*"];
const BENCH: &[&str] = manifests!(
    "bench",
    "crates/core/src",
    "crates/device",
    "crates/sim/src",
    "crates/trace/src",
    "crates/live/src",
    "crates/inbox",
    "xtask/src/bench.rs",
    "xtask/src/callgrind.rs"
);
const FIGURES: &[&str] = lab!("README.md", "docs", ":(exclude)docs/testing.md", "xtask/src/figures.rs");
const MEASURED: &[&str] = lab!(
    "README.md",
    "docs",
    ":(exclude)docs/testing.md",
    "bench/guest",
    "xtask/src/docs.rs",
    "xtask/src/defaults.rs",
    "xtask/src/hero.rs",
    "xtask/src/grid.rs",
    "xtask/src/revived.rs",
    "xtask/src/svg.rs"
);
const WHEEL: &[&str] = lab!("crates/python", "docs/python.md", "xtask/src/python.rs");
const PAGE: &[&str] =
    manifests!("crates/browser", "crates/report/src", "crates/lab/src", "xtask/src/page.rs");
const DEB: &[&str] = manifests!(
    "crates/cli/src/packaging.rs",
    "crates/cli/packaging",
    "xtask/src/deb.rs",
    "xtask/src/dist.rs"
);
const PACKAGES: &[&str] = manifests!("xtask/src/crate_packages.rs");
const C_LIBRARY: &[&str] =
    manifests!("crates/core/src", "crates/core-ffi", "examples/c", "xtask/src/ffi.rs", "xtask/src/c_api.rs");
const BARE: &[&str] = manifests!("crates/core/src", "xtask/bare");
const API: &[&str] = &["crates/core/src", "crates/core/public-api.txt", "xtask/src/api.rs"];
const INBOX: &[&str] = manifests!("crates/inbox");

/// What is seen at once, and all that the tests run, compiled once, before anything waits for it.
pub(super) const BUILD: &[Step] = &[
    always("format", || plain(&mut cargo("fmt --all --check"))),
    always("links and citations", links::check),
    always("plain English", tidy::check),
    always("compiling the tests", compile),
];

/// Beside [`CLOCKS`], one after another: what reads the crates without making programs of them, in a folder
/// of its own ([`dist::linted`]), as cargo locks a folder for one build at a time; then the examples, when
/// the tests of clocks have long been started.
pub(super) const LINT: &[Step] = &[
    always("clippy", || plain(&mut clippy("--workspace"))),
    always("docs", || {
        let mut docs = cargo("doc --workspace --no-deps --profile sim --quiet --target-dir");
        plain(docs.arg(dist::linted()).env("RUSTDOCFLAGS", "-D warnings"))
    }),
    of("packages of the crates", PACKAGES, crate_packages::check),
    always("examples in the docs", || {
        drawn::run(&mut cargo("test --workspace --profile sim --doc --no-fail-fast"))
    }),
];

/// What the tests need to be there, fetched while they are compiled.
pub(super) const FETCH: &[Step] = &[
    always("system packages", prepare::packages),
    always("a guest", prepare::guest),
    always("Python tools", prepare::python_tools),
    always("suites of others", prepare::suites),
];

/// The tests of all crates.
pub(super) const TESTS: &[Step] = &[always("tests", || programs::run("--workspace --tests", &drawn_here()))];

/// Beside all others, like [`EARLY`]: a virtual machine, which uses half a processor.
pub(super) const GUEST: &[Step] =
    &[of("the module for Linux", MODULE, || kernel::test(crate::kernel_packages::SERIES))];

/// Beside all others from the time when [`FETCH`] has ended: what has folders of its own to build in, and no
/// clock has a part in.
pub(super) const EARLY: &[Step] = &[
    of("inbox, all interleavings", INBOX, || drawn::run(&mut loom())),
    of("core without std", BARE, bare_metal),
    of("the C library", C_LIBRARY, ffi::check),
    of("the C library, installed", C_LIBRARY, c_api::check),
    of("same bytes as shipped", BENCH_AND_SIM, || drawn::run(&mut same_bytes("dist"))),
    of("public items of core", API, api::check),
    always("dependencies", dependencies),
];

/// Beside [`CLOCKS`], two at a time: what takes a program of the tests, or its crates. The wheel comes first,
/// as it compiles a few crates in their profile.
pub(super) const BESIDE: &[Step] = &[
    of("the Python package", WHEEL, python::check),
    of("instructions per request", BENCH, bench::check),
    of("figures in the docs", FIGURES, || figures::run(true)),
    of("measured docs, a part", MEASURED, || docs::run(docs::Part::Check)),
    of("the page", PAGE, page::check),
    of("the Debian package", DEB, deb::check),
];

const BENCH_AND_SIM: &[&str] =
    manifests!("crates/core/src", "crates/device", "crates/sim", "crates/outside/src", "crates/trace/src");

/// Tests that need real time, one at a time, after [`TESTS`]. What runs beside them has idle priority.
pub(super) const CLOCKS: &[Step] = &[
    always("tests of clocks", || drawn::of_clocks("--workspace --test clock", &drawn_here())),
    always("FUSE over io_uring", over_uring),
];

/// Steps that run at night, or when they are named.
pub(super) const NIGHTLY: &[Step] = &[
    always("a changed line in core", changed_line::check),
    always("same bytes in debug", || drawn::run(&mut same_bytes("dev"))),
    always("fuzzing", || fuzz::each(fuzz::NIGHTLY)),
    always("mutants", || crate::mutants::run(&[]).map(|()| passed("see target/mutants"))),
    always("BFQ's rules, mutants", || {
        crate::mutants::run(&["--rules"]).map(|()| passed("see target/mutants"))
    }),
    always("the package in Debian", package_in_debian),
    always("the module on a newer kernel", || kernel::test("7.3")),
    always("the module under lockdep and KASAN", crate::kernel_debug::run),
    always("the module under stress, 24 h", || crate::kernel_guest::stress(&["--hours", "24"])),
    always("neighbours", || neighbours("")),
    always("neighbours, a soak", || neighbours("soak 2100")),
    always("all measured docs", || docs::run(docs::Part::All)),
];

/// Whether the step runs at night alone.
pub(super) fn is_nightly(step: &Step) -> bool {
    NIGHTLY.iter().any(|other| other.name == step.name)
}

/// The step with this name.
pub(super) fn find(name: &str) -> Option<&'static Step> {
    [BUILD, FETCH, TESTS, GUEST, EARLY, LINT, BESIDE, CLOCKS, NIGHTLY]
        .into_iter()
        .flatten()
        .find(|step| step.name == name)
}

/// How many cases this lane's tests draw.
fn drawn_here() -> Drawn {
    match std::env::var_os(super::NIGHTLY) {
        Some(_) => drawn::MANY,
        None => FEW,
    }
}

fn passed(note: &str) -> Outcome {
    Outcome::Passed(note.to_owned())
}

fn plain(command: &mut Command) -> Result<Outcome, String> {
    capture(command).map(|_| passed(""))
}

/// Every lint for all targets of these packages, warnings as errors.
pub(super) fn clippy(packages: &str) -> Command {
    let mut clippy = cargo(&format!("clippy {packages} --all-targets --profile sim --quiet --target-dir"));
    clippy.arg(dist::linted()).args(["--", "-D", "warnings"]);
    clippy
}

/// Compiles what tests run, and the libraries and programs that they use.
fn compile() -> Result<Outcome, String> {
    for args in [
        "test --quiet --no-run --tests",
        "test --quiet --no-run --test clock",
        "build --quiet --example adios --example lineage",
    ] {
        capture(&mut cargo(&format!("{args} --workspace --profile sim")))?;
    }
    Ok(passed(""))
}

/// What one tenant can do to the others, in time. As root, mounts and cgroups are among it.
fn neighbours(what: &str) -> Result<Outcome, String> {
    let bench = "bench --profile release --package fairhead-live --bench neighbours --";
    let output = cargo(&format!("{bench} {what}")).output().map_err(|e| format!("cargo: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        print!("{said}");
        return Ok(passed(said.lines().last().unwrap_or_default()));
    }
    Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Licences, advisories and sources of dependencies, as `deny.toml` has them.
fn dependencies() -> Result<Outcome, String> {
    if !exists("cargo-deny") {
        return Ok(Outcome::Skipped("no cargo-deny".to_owned()));
    }
    // Without the network there are no advisories to compare with.
    plain(&mut cargo("deny --all-features check licenses bans sources"))?;
    Ok(match capture(&mut cargo("deny --all-features check advisories")) {
        Ok(_) => passed(""),
        Err(said) if said.contains("failed to fetch") => {
            passed("without advisories, which could not be fetched")
        }
        Err(said) => return Err(said),
    })
}

/// The tests of mounts (in `fairhead-live` and `fairhead`) once more, with requests that come by FUSE over
/// io_uring: the other way is the kernel's default, so the other tests take that.
fn over_uring() -> Result<Outcome, String> {
    const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
    let Ok(before) = fs::read_to_string(SWITCH) else {
        return Ok(Outcome::Skipped(format!("this kernel has no {SWITCH}")));
    };
    if fs::write(SWITCH, "Y").is_err() {
        return Ok(Outcome::Skipped("only root may switch FUSE over io_uring on".to_owned()));
    }
    let mut test = cargo(
        "test --workspace --profile sim --no-fail-fast --test it --test clock \
         -- --show-output mount:: mount_suites:: mount_source:: signals:: power_cut:: --skip kill_mount::",
    );
    let outcome = drawn::run(test.env("FUSE_TRANSPORT", "uring"));
    // As it was.
    let _ = fs::write(SWITCH, before.trim());
    outcome
}

/// The golden outcomes, which the tests compare in `sim`, in another profile.
fn same_bytes(profile: &str) -> Command {
    cargo(&format!("test --package fairhead-sim --test same_bytes --profile {profile} -- --show-output"))
}

/// What passes between threads, under a scheduler of threads that tries all interleavings (with up to three
/// preemptions each).
fn loom() -> Command {
    let mut test = cargo("test --package fairhead-inbox --lib --target-dir target/loom");
    test.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "3");
    test
}

/// Builds core for a machine without std; where that target cannot be had, links it into a program without
/// std.
fn bare_metal() -> Result<Outcome, String> {
    let target = ffi::BARE_METAL;
    let add = command("rustup", &format!("target add {target}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if add {
        plain(&mut cargo(&format!("build --quiet --package fairhead-core --target {target}")))?;
        return Ok(Outcome::Passed(format!("for {target}")));
    }
    let folder = root().join("target");
    plain(cargo("build --quiet --manifest-path xtask/bare/Cargo.toml --target-dir").arg(folder))?;
    Ok(Outcome::Passed(format!("linked without std (no target {target} here)")))
}

/// `cargo xtask debian`: builds the package and tries it in a clean Debian, in QEMU's software emulation.
pub(crate) fn package_in_debian() -> Result<Outcome, String> {
    if let skipped @ Outcome::Skipped(_) = prepare::debian()? {
        return Ok(skipped);
    }
    dist::run(&["--deb"])?;
    let mut test = cargo("test --package fairhead --profile sim --test clean_debian -- --show-output");
    drawn::run(test.env("FAIRHEAD_PACKAGE", deb::file(&dist::folder())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_steps_are_unique_and_the_schedule_has_no_other() {
        let lists = [BUILD, FETCH, TESTS, GUEST, EARLY, LINT, BESIDE, CLOCKS, NIGHTLY];
        let names: Vec<&str> = lists.iter().copied().flatten().map(|step| step.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let schedule = fs::read_to_string(root().join(".github/workflows/nightly.yml")).expect("a schedule");
        for name in schedule.lines().filter_map(|line| line.strip_prefix("          - ")) {
            assert!(find(name).is_some(), "nightly.yml: no step '{name}'");
        }
    }
}
