//! `cargo xtask kernel debug`: the module on a kernel that looks for faults.
//!
//! 1. Debian's sources of the kernel, and what a kernel is compiled with, come from the machine's own package
//!    sources and are unpacked below `target/kernel/debug`; nothing is installed.
//! 2. The kernel is configured (tinyconfig and `kernel/guest/debug.config`) and compiled: lockdep, KASAN,
//!    kmemleak, UBSAN, checks of objects' lives, and failures on demand.
//! 3. On it run `cargo xtask kernel test` and three rounds of `cargo xtask kernel stress`.
//!
//! It takes 3 GB and an hour or two, and is no part of CI. What it said last is in `kernel/guest/debug.log`.

use crate::kernel_newer::Apt;
use crate::kernel_packages::{Found, SERIES, packages, unpack};
use crate::outcome::{self, Outcome};
use crate::shell::{capture, command, exists, root};
use crate::{kernel, kernel_guest};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's package of the kernel's sources. Its archive and the folder in that have the same name.
const SOURCES: &str = "linux-source-6.12";

/// What a kernel is compiled with, beside a compiler.
const TOOLS: [&str; 9] =
    ["bison", "flex", "m4", "libelf-dev", "libelf1", "zlib1g-dev", "pahole", "libdw1", "libbpf1"];

/// Compiles the kernel, tests and stresses the module on it.
pub(crate) fn run() -> Result<Outcome, String> {
    if let Found::Lacking(why) = packages(SERIES)? {
        return Ok(Outcome::Skipped(why));
    }
    let missing: Vec<&str> = ["bc", "perl", "tar"].into_iter().filter(|tool| !exists(tool)).collect();
    if !missing.is_empty() {
        return Ok(Outcome::Skipped(format!("{} not there", missing.join(", "))));
    }
    let place = kernel::folder().join("debug");
    if let Err(said) = fetch(&place) {
        let said = said.lines().last().unwrap_or_default();
        return Ok(Outcome::Skipped(format!("packages cannot be had ({said})")));
    }
    let built = place.join("build");
    compile(&place, &built)?;
    let built = built.display().to_string();
    outcome::verdict(kernel::test(&built)?)?;
    kernel_guest::stress(&["--rounds", "3", "--kernel", &built])
}

/// Unpacks sources and tools.
fn fetch(place: &Path) -> Result<(), String> {
    let tools = place.join("tools");
    if !tools.join("usr/bin/pahole").exists() {
        unpack(&Apt::default(), &TOOLS.map(str::to_owned), &tools)?;
    }
    // Written when all of it is there.
    let unpacked = place.join("unpacked");
    if !unpacked.exists() {
        unpack(&Apt::default(), &[SOURCES.to_owned()], place)?;
        let archive = place.join(format!("usr/src/{SOURCES}.tar.xz"));
        capture(command("tar", "-xJf").arg(archive).arg("-C").arg(place))?;
        std::fs::write(&unpacked, "").map_err(|e| format!("{}: {e}", unpacked.display()))?;
    }
    Ok(())
}

/// Configures and compiles the kernel, and puts its modules into the folder `modules`.
fn compile(place: &Path, built: &Path) -> Result<(), String> {
    let make = |what: &str| {
        let mut make = with_tools(place, "make");
        make.arg("-C").arg(place.join(SOURCES)).arg(format!("O={}", built.display()));
        make.arg(format!("INSTALL_MOD_PATH={}", built.join("modules").display()))
            .args(what.split_whitespace());
        make
    };
    std::fs::create_dir_all(built).map_err(|e| format!("{}: {e}", built.display()))?;
    capture(&mut make("tinyconfig"))?;
    let fragment = root().join("kernel/guest/debug.config");
    let mut merge = with_tools(place, place.join(SOURCES).join("scripts/kconfig/merge_config.sh"));
    merge.args(["-m", "-Q", "-O"]).arg(built).arg(built.join(".config")).arg(&fragment).current_dir(built);
    capture(&mut merge)?;
    capture(&mut make("olddefconfig"))?;
    refused(&fragment, &built.join(".config"))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    capture(&mut make(&format!("-j{processors} bzImage modules")))?;
    capture(&mut make("modules_install")).map(|_| ())
}

/// An error if the configuration lacks something that the fragment asks for.
fn refused(fragment: &Path, config: &Path) -> Result<(), String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let (fragment, config) = (read(fragment)?, read(config)?);
    let has = |wanted: &str| config.lines().any(|line| line == wanted);
    let lacking = fragment.lines().filter(|line| line.starts_with("CONFIG_") && !has(line));
    let lacking: Vec<&str> = lacking.collect();
    if lacking.is_empty() { Ok(()) } else { Err(format!("the kernel takes no {}", lacking.join(", "))) }
}

/// A command that finds the unpacked tools, their data, headers and libraries.
fn with_tools(place: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let tools = place.join("tools/usr");
    let mut command = command(program, "");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools.join("bin")].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap_or(path);
    let libraries: PathBuf = tools.join("lib/x86_64-linux-gnu");
    command
        .env("PATH", path)
        .env("BISON_PKGDATADIR", tools.join("share/bison"))
        .env("M4", tools.join("bin/m4"));
    command.env("C_INCLUDE_PATH", tools.join("include")).env("LIBRARY_PATH", &libraries);
    command.env("LD_LIBRARY_PATH", libraries);
    command
}
