//! `cargo xtask dist`: what a package has, where packages have it, below `target/dist`; and a package.
//!
//! ```text
//!     tree/bin/fairhead
//!     tree/share/man/man1/fairhead.1, fairhead-run.1, …
//!     tree/share/bash-completion/completions/fairhead
//!     tree/share/zsh/vendor-completions/_fairhead
//!     tree/share/fish/vendor_completions.d/fairhead.fish
//!     tree/share/doc/fairhead/…, with the pages of `docs` and the job files of `examples`
//!     fairhead_0.2.0_amd64.deb      with --deb, for Debian and Ubuntu: `deb.rs`
//!     static/fairhead               with --static: needs no library, runs on any Linux
//!     c-api/…                       with --c-api: the C library (`c_api.rs`); or below a prefix that is given
//!     fairhead-0.2.0-….whl          with --wheel: the Python package, by maturin, which pip gets (`python.rs`)
//! ```
//!
//! The program makes its own pages and scripts; nothing of them is in the repository. The static program is
//! for containers and old systems: musl's memory allocation makes the lab a third slower. What this does not
//! do: sign, upload.

use crate::shell::{capture, cargo, command, root};
use crate::{c_api, deb, python};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The target of the static program, installed by `rustup target add`.
const STATIC: &str = "x86_64-unknown-linux-musl";

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let place = folder();
    let made = match args {
        [] => tree(&place.join("tree"), &program()?)?,
        ["--deb"] => {
            let tree = tree(&place.join("tree"), &program()?)?;
            deb::build(&tree, &place)?
        }
        ["--static"] => static_program(&place.join("static/fairhead"))?,
        ["--c-api"] => c_api::install(&place.join("c-api"))?,
        ["--c-api", prefix] => c_api::install(&env::current_dir().unwrap_or_default().join(prefix))?,
        ["--wheel"] => python::wheel(&place)?,
        [other, ..] => {
            let takes = "--deb, --static, --c-api [PREFIX] or --wheel";
            return Err(format!("dist takes {takes}, not '{other}'"));
        }
    };
    println!("{}", made.display());
    Ok(())
}

/// Where everything is put.
pub(crate) fn folder() -> PathBuf {
    root().join("target/dist")
}

/// Builds the program as people get it.
fn program() -> Result<PathBuf, String> {
    capture(&mut cargo("build --quiet --profile dist --package fairhead"))?;
    Ok(target().join("dist/fairhead"))
}

/// The variable that names a program in the profile of the tests that is there already.
pub(crate) const PROGRAM: &str = "FAIRHEAD";

/// The program in the profile of the tests, with `fairhead-bench` beside it: the one that [`PROGRAM`] names,
/// or one that is built now. All crates are named, so that what they depend on has the features that it has
/// in the tests, and is not built once more.
pub(crate) fn tests_program() -> Result<PathBuf, String> {
    if let Some(program) = env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    capture(&mut cargo("build --quiet --workspace --bin fairhead --bin fairhead-bench --profile sim"))?;
    Ok(target().join("sim/fairhead"))
}

/// Lays out what a package of this program has. Returns `place`.
pub(crate) fn tree(place: &Path, program: &Path) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(place);
    copy(program, &place.join("bin/fairhead"))?;
    capture(Command::new(program).arg("man").arg(place.join("share/man/man1")))?;
    for (shell, to) in [
        ("bash", "bash-completion/completions/fairhead"),
        ("zsh", "zsh/vendor-completions/_fairhead"),
        ("fish", "fish/vendor_completions.d/fairhead.fish"),
    ] {
        let script = capture(Command::new(program).args(["completions", shell]))?;
        write(&place.join("share").join(to), &script.stdout)?;
    }
    let docs = place.join("share/doc/fairhead");
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(name), &docs.join(name))?;
    }
    // Side by side, as in the repository: the pages and the README link to each other.
    for folder in ["docs", "examples"] {
        capture(command("cp", "-rL --preserve=mode").arg(folder).arg(docs.join(folder)))?;
    }
    Ok(place.to_owned())
}

/// Builds the program that needs no library.
fn static_program(to: &Path) -> Result<PathBuf, String> {
    capture(&mut cargo(&format!("build --quiet --profile dist --package fairhead --target {STATIC}")))
        .map_err(|said| {
            format!("{said}\n`rustup target add {STATIC}` and the package musl-tools are needed for it")
        })?;
    copy(&target().join(STATIC).join("dist/fairhead"), to)?;
    capture(Command::new("strip").arg(to))?;
    Ok(to.to_owned())
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The folder of what is checked and documented without being made into programs, apart from [`target`]:
/// cargo locks a folder for one build at a time.
pub(crate) fn linted() -> PathBuf {
    target().join("lint")
}

/// Writes a file and the folders above it.
pub(crate) fn write(to: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = to.parent().expect("a file in a folder");
    let done = fs::create_dir_all(folder).and_then(|()| fs::write(to, bytes));
    done.map_err(|e| format!("{}: {e}", to.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    write(to, b"")?;
    fs::copy(from, to).map(|_| ()).map_err(|e| format!("{}: {e}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that makes pages and scripts stands for the real one.
    #[test]
    fn a_package_has_the_pages_that_help_names() {
        let place = env::temp_dir().join(format!("fairhead-dist-{}", std::process::id()));
        let program = place.join("program");
        write(&program, b"#!/bin/sh\n[ \"$1\" = completions ] || mkdir -p \"$2\"\necho page\n").unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let tree = tree(&place.join("tree"), &program).unwrap();
        let docs = tree.join("share/doc/fairhead");
        let mut named = 0;
        for file in fs::read_dir(root().join("crates/cli/src/args")).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for rest in text.split("docs/").skip(1) {
                let Some((page, _)) = rest.split_once(".md") else { continue };
                if page.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c)) {
                    let page = docs.join("docs").join(page).with_extension("md");
                    assert!(page.is_file(), "help names {}", page.display());
                    named += 1;
                }
            }
        }
        assert!(named >= 5, "only {named} pages found: has their form changed?");
        for file in
            ["docs/pictures/start.svg", "examples/vm-host.fio", "README.md", "docs/questions/vm-host.md"]
        {
            assert!(docs.join(file).is_file(), "{file}");
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
