//! Whether the crates can be published: each is packaged, and compiled from its package.
//!
//! `cargo publish --dry-run` says the same and takes twice as long, as it generates code that is never run,
//! for dependencies that are compiled already. So packages are made without that, unpacked beside each other
//! in `target/package/unpacked`, and told to use one another instead of what a registry has. Each is then
//! checked by itself: with the features that it asks for, not with those that another crate asks for.
//!
//! What it does not do: ask a registry whether a version is free, or whether the descriptions are as it wants
//! them. `cargo publish` does that on the day.

use crate::dist;
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, root};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Packages all crates, and compiles those that can be published.
pub(crate) fn check() -> Result<Outcome, String> {
    let packages = dist::target().join("package");
    let unpacked = packages.join("unpacked");
    let _ = fs::remove_dir_all(&packages);
    fs::create_dir_all(&unpacked).map_err(|e| format!("{}: {e}", unpacked.display()))?;
    capture(&mut cargo("package --workspace --no-verify --locked --allow-dirty --quiet"))?;
    for package in files(&packages, "crate")? {
        capture(command("tar", "xzf").arg(&package).arg("-C").arg(&unpacked))?;
    }
    let names = published(&unpacked)?;
    let mut manifest = format!(
        "[workspace]\nmembers = [\"*\"]\nresolver = \"3\"\n\n{}\n[patch.crates-io]\n",
        profiles(&root().join("Cargo.toml"))?
    );
    for (name, folder) in &names {
        let _ = writeln!(manifest, "{name} = {{ path = \"{folder}\" }}");
    }
    dist::write(&unpacked.join("Cargo.toml"), manifest.as_bytes())?;
    dist::copy(&root().join("Cargo.lock"), &unpacked.join("Cargo.lock"))?;
    for (name, _) in &names {
        let mut check = cargo("check --quiet --offline --profile sim --package");
        capture(check.arg(name).current_dir(&unpacked).env("CARGO_TARGET_DIR", dist::linted()))?;
    }
    Ok(Outcome::Passed(format!("{} crates can be published", names.len())))
}

/// The profiles of a manifest, but not what they say of single packages: with the profile of the tests, what
/// is checked for clippy is there.
fn profiles(manifest: &Path) -> Result<String, String> {
    let text = fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let (mut is_kept, mut kept) = (false, String::new());
    for line in text.lines() {
        if line.starts_with('[') {
            is_kept = line.starts_with("[profile.") && !line.contains(".package.");
        }
        if is_kept {
            let _ = writeln!(kept, "{line}");
        }
    }
    Ok(kept)
}

/// The files of a folder with this ending.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect())
}

/// The names and folders of the unpacked crates that may be published. The others are removed.
fn published(unpacked: &Path) -> Result<Vec<(String, String)>, String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(unpacked).map_err(|e| format!("{}: {e}", unpacked.display()))?.flatten() {
        let folder = entry.file_name().to_string_lossy().into_owned();
        let manifest =
            fs::read_to_string(entry.path().join("Cargo.toml")).map_err(|e| format!("{folder}: {e}"))?;
        if manifest.lines().any(|line| line == "publish = false") {
            fs::remove_dir_all(entry.path()).map_err(|e| format!("{folder}: {e}"))?;
            continue;
        }
        let (name, _) = folder.rsplit_once('-').ok_or_else(|| format!("{folder}: no version in the name"))?;
        names.push((name.to_owned(), folder));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a package that is not among them cargo would warn, and other lines of the manifest name folders
    /// that are not there.
    #[test]
    fn the_packages_have_the_profiles_of_the_workspace_and_nothing_else_of_it() {
        let kept = profiles(&root().join("Cargo.toml")).expect("a manifest");
        let tables: Vec<&str> = kept.lines().filter(|line| line.starts_with('[')).collect();
        assert!(tables.contains(&"[profile.sim]") && tables.contains(&"[profile.release]"), "{tables:?}");
        assert!(tables.iter().all(|t| t.starts_with("[profile.") && !t.contains(".package.")), "{tables:?}");
    }
}
