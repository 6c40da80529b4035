//! `cargo xtask dist`: what a package has, where packages have it, below `target/dist`.
//!
//! ```text
//!     bin/fairhead
//!     share/man/man1/fairhead.1, fairhead-run.1, …
//!     share/bash-completion/completions/fairhead
//!     share/zsh/site-functions/_fairhead
//!     share/fish/vendor_completions.d/fairhead.fish
//!     share/doc/fairhead/…
//! ```
//!
//! The program makes its own pages and scripts; nothing of them is in the repository. What this does not do:
//! strip, sign, make an archive.

use crate::shell::{capture, cargo, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub(crate) fn run() -> Result<(), String> {
    capture(&mut cargo("build --quiet --release --package fairhead"))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let (program, place) = (target.join("release/fairhead"), root().join("target/dist"));
    let _ = fs::remove_dir_all(&place);
    copy(&program, &place.join("bin/fairhead"))?;
    capture(Command::new(&program).arg("man").arg(place.join("share/man/man1")))?;
    for (shell, to) in [
        ("bash", "bash-completion/completions/fairhead"),
        ("zsh", "zsh/site-functions/_fairhead"),
        ("fish", "fish/vendor_completions.d/fairhead.fish"),
    ] {
        let script = capture(Command::new(&program).args(["completions", shell]))?;
        write(&place.join("share").join(to), &script.stdout)?;
    }
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(name), &place.join("share/doc/fairhead").join(name))?;
    }
    println!("{}", place.display());
    Ok(())
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = to.parent().expect("a file in a folder");
    let done = fs::create_dir_all(folder).and_then(|()| fs::write(to, bytes));
    done.map_err(|e| format!("{}: {e}", to.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    write(to, b"")?;
    fs::copy(from, to).map(|_| ()).map_err(|e| format!("{}: {e}", from.display()))
}
