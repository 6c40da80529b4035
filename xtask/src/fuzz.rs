//! Fuzzing without anything to install: libFuzzer through the stable compiler.
//!
//! `cargo fuzz` passes these flags too; doing it here spares a nightly toolchain and an installation, and
//! leaves `fuzz/` as `cargo fuzz` expects it. There is no address sanitizer: there is no unsafe code to
//! sanitize.

use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, exists, for_all, root};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

const TARGETS: [&str; 30] = [
    "job_file",
    "disk_preset",
    "disksim_drive",
    "elevator",
    "kernel_log",
    "fuse",
    "nbd",
    "vhost_chains",
    "vhost_messages",
    "control",
    "trace_blktrace",
    "trace_blkparse",
    "trace_ftrace",
    "trace_iolog",
    "trace_msr",
    "trace_alibaba",
    "trace_tencent",
    "trace_spc",
    "trace_disksim",
    "trace_disksim_validation",
    "trace_startup",
    "trace_live",
    "trace_biosnoop",
    "trace_iosnoop",
    "trace_cloudphysics",
    "trace_vscsi",
    "trace_mqsim",
    "trace_libcachesim",
    "trace_ring",
    "trace_any",
];

/// What makes the compiler count edges and comparisons for libFuzzer.
//= cargo-fuzz src/project.rs
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// How long each target runs at night.
pub(crate) const NIGHTLY: Duration = Duration::from_secs(300);

/// One input may take this long: they take microseconds.
const INPUT_SECONDS: u32 = 20;

/// Inputs are at most this long: users' files are, and operations beyond add nothing.
const INPUT_BYTES: u32 = 4096;

/// Each target for a while, as many at a time as there are processors: libFuzzer runs the committed corpus
/// first. Needs a C++ compiler.
pub(crate) fn each(time: Duration) -> Result<Outcome, String> {
    if !exists("c++") {
        return Ok(Outcome::Skipped("no C++ compiler".to_owned()));
    }
    let programs = build()?;
    for_all(&TARGETS, |target| fuzz(&programs, target, time))?;
    Ok(Outcome::Passed(format!("{} s each: {}", time.as_secs(), TARGETS.join(", "))))
}

/// `[--minutes N] [TARGET…]`
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let (minutes, targets) = match args {
        ["--minutes", n, rest @ ..] => {
            let minutes = n.parse().ok().filter(|&n| n > 0);
            (minutes.ok_or_else(|| format!("--minutes {n}: expected a whole number, at least 1"))?, rest)
        }
        rest => (10, rest),
    };
    if let Some(unknown) = targets.iter().find(|t| !TARGETS.contains(t)) {
        return Err(format!("no fuzz target '{unknown}'; there are {}", TARGETS.join(", ")));
    }
    let programs = build()?;
    for target in if targets.is_empty() { &TARGETS[..] } else { targets } {
        fuzz(&programs, target, Duration::from_secs(60 * minutes))?;
        println!("{target}: {minutes} min without a finding");
    }
    Ok(())
}

fn build() -> Result<PathBuf, String> {
    let host = host()?;
    let target_dir = root().join("target").join("fuzz");
    let mut build =
        cargo(&format!("build --quiet --profile sim --features libfuzzer -p fairhead-fuzz --target {host}"));
    build.env("RUSTFLAGS", FLAGS).env("CARGO_PROFILE_SIM_OPT_LEVEL", "3");
    capture(build.arg("--target-dir").arg(&target_dir))?;
    Ok(target_dir.join(host).join("sim"))
}

fn host() -> Result<String, String> {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = capture(&mut command(rustc, "-vV"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn fuzz(programs: &Path, target: &str, time: Duration) -> Result<(), String> {
    // New inputs go beside the build; the committed corpus is only read.
    let found = root().join("target").join("fuzz-corpus").join(target);
    let artifacts = root().join("fuzz").join("artifacts").join(target);
    for directory in [&found, &artifacts] {
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    let mut program = command(programs.join(target), "-close_fd_mask=1");
    program.arg(&found).arg(root().join("fuzz").join("corpus").join(target));
    program.arg(format!("-max_total_time={}", time.as_secs()));
    program.arg(format!("-timeout={INPUT_SECONDS}")).arg(format!("-max_len={INPUT_BYTES}"));
    program.arg(format!("-artifact_prefix={}/", artifacts.display()));
    capture(&mut program).map(drop).map_err(|said| {
        // The last lines name the panic and the file that holds the input.
        let lines: Vec<&str> = said.lines().collect();
        format!("{target}:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_fuzz_target_is_in_every_list() {
        let fuzz = root().join("fuzz");
        let read = |file: &str| fs::read_to_string(fuzz.join(file)).expect("a file that can be read");
        let (manifest, library, replay) = (read("Cargo.toml"), read("src/lib.rs"), read("tests/replay.rs"));
        let files = fs::read_dir(fuzz.join("fuzz_targets")).expect("the folder of targets");
        let stem = |entry: fs::DirEntry| entry.path().file_stem().map(|s| s.to_string_lossy().into_owned());
        let mut targets: BTreeSet<String> =
            files.filter_map(|entry| stem(entry.expect("an entry"))).collect();
        targets.extend(TARGETS.map(str::to_owned));
        let mut missing = Vec::new();
        for target in &targets {
            for (is_there, what) in [
                (TARGETS.contains(&target.as_str()), "its name in TARGETS of xtask/src/fuzz.rs"),
                (fuzz.join(format!("fuzz_targets/{target}.rs")).exists(), "a file in fuzz/fuzz_targets"),
                (manifest.contains(&format!("name = \"{target}\"")), "a [[bin]] in fuzz/Cargo.toml"),
                (library.contains(&format!("pub fn {target}(")), "a function in fuzz/src/lib.rs"),
                (replay.contains(&format!("\"{target}\"")), "a line in fuzz/tests/replay.rs"),
                (fuzz.join("corpus").join(target).exists(), "a folder of inputs in fuzz/corpus"),
            ] {
                if !is_there {
                    missing.push(format!("fuzz target {target} lacks {what}"));
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }
}
