//! `cargo xtask dist --c-api [PREFIX]`: the C library, as packages have it, and its test.
//!
//! ```text
//!     include/fairhead.h
//!     lib/libfairhead.a
//!     lib/libfairhead.so.1            its soname; the number is FH_ABI_VERSION
//!     lib/libfairhead.so              a link to it, for linkers
//!     lib/pkgconfig/fairhead.pc       finds all of it wherever the folder is moved
//!     share/doc/fairhead/embed.md, examples/c/two_tenants.c
//! ```
//!
//! `check` installs into a scratch prefix, builds the example against it with what `pkg-config` says, shared
//! and static, and runs both.

use crate::dist::{self, copy, write};
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, exists, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a static library needs beside itself: `rustc --print native-static-libs`.
const PRIVATE: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl";

/// Installs the library below `prefix`. Returns it.
pub(crate) fn install(prefix: &Path) -> Result<PathBuf, String> {
    capture(&mut cargo("build --quiet --profile dist --package fairhead-core-ffi"))?;
    let built = dist::target().join("dist");
    let crate_folder = root().join("crates/core-ffi");
    let header = fs::read_to_string(crate_folder.join("include/fairhead.h")).map_err(|e| e.to_string())?;
    let abi = header.split("#define FH_ABI_VERSION ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let abi = abi.ok_or("fairhead.h defines no FH_ABI_VERSION")?;
    write(&prefix.join("include/fairhead.h"), header.as_bytes())?;
    let lib = prefix.join("lib");
    copy(&built.join("libfairhead.a"), &lib.join("libfairhead.a"))?;
    let shared = lib.join(format!("libfairhead.so.{abi}"));
    copy(&built.join("libfairhead.so"), &shared)?;
    if exists("strip") {
        capture(Command::new("strip").arg("--strip-debug").arg(lib.join("libfairhead.a")))?;
        capture(Command::new("strip").arg("--strip-unneeded").arg(&shared))?;
    }
    let link = lib.join("libfairhead.so");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(format!("libfairhead.so.{abi}"), &link)
        .map_err(|e| format!("{}: {e}", link.display()))?;
    let version = env!("CARGO_PKG_VERSION");
    let pc = format!(
        "prefix=${{pcfiledir}}/../..\nName: fairhead\nDescription: Disk schedulers as a library that does no I/O\n\
         Version: {version}\nCflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/lib -lfairhead\n\
         Libs.private: {PRIVATE}\n"
    );
    write(&lib.join("pkgconfig/fairhead.pc"), pc.as_bytes())?;
    let docs = prefix.join("share/doc/fairhead");
    copy(&root().join("docs/embed.md"), &docs.join("embed.md"))?;
    copy(&root().join("examples/c/two_tenants.c"), &docs.join("examples/c/two_tenants.c"))?;
    Ok(prefix.to_owned())
}

/// Installs into a scratch prefix, and builds and runs the example with what is there.
pub(crate) fn check() -> Result<Outcome, String> {
    for tool in ["cc", "pkg-config", "readelf"] {
        if !exists(tool) {
            return Ok(Outcome::Skipped(format!("{tool} is not there")));
        }
    }
    let prefix = dist::target().join("tmp/c-api");
    let _ = fs::remove_dir_all(&prefix);
    install(&prefix)?;
    let lib = prefix.join("lib");
    let source = prefix.join("share/doc/fairhead/examples/c/two_tenants.c");
    let data = prefix.join("data");
    fs::write(&data, vec![7_u8; 1 << 20]).map_err(|e| e.to_string())?;
    for (name, is_static) in [("shared", false), ("static", true)] {
        let program = prefix.join(name);
        let mut build = Command::new("cc");
        build.args(["-O2", "-Wall", "-Werror", "-o"]).arg(&program).arg(&source);
        build.args(flags(&lib, is_static)?).arg("-lpthread");
        capture(&mut build)?;
        let needed = capture(Command::new("readelf").arg("-d").arg(&program))?;
        let needed = String::from_utf8_lossy(&needed.stdout).contains("[libfairhead.so.1]");
        if needed == is_static {
            return Err(format!("{}: the {name} program is not linked that way", program.display()));
        }
        let said = capture(
            Command::new(&program).arg(&data).arg("0.2").env("LD_LIBRARY_PATH", &lib).env_remove("CC"),
        )?;
        let said = String::from_utf8_lossy(&said.stdout);
        if !said.ends_with("\n0 reads were wrong\n") {
            return Err(format!("the {name} example said:\n{said}"));
        }
    }
    Ok(Outcome::Passed("installed; the example built by pkg-config and run, shared and static".to_owned()))
}

/// What `pkg-config` says; for a static program with the archive in place of the shared library.
fn flags(lib: &Path, is_static: bool) -> Result<Vec<String>, String> {
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).args(["--cflags", "--libs", "fairhead"]);
    if is_static {
        ask.arg("--static");
    }
    let said = capture(&mut ask)?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let archive =
        |flag: &str| if is_static && flag == "-lfairhead" { "-l:libfairhead.a".into() } else { flag.into() };
    Ok(said.split_whitespace().map(archive).collect())
}
