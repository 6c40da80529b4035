//! What a command reads and what it writes, so that no result overwrites an input or another result.
//!
//! Inputs are noted where they are opened ([`will_read`]); a command names its outputs before it does
//! anything long ([`Outputs::check`]). Two names are one file if they have the same canonical path. A file
//! that is being written is `NAME.part` until it is complete, which counts as written, too.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::CliError;
use crate::out::part_of;

/// The files that this command reads.
static INPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a file that is about to be read; for a set of blktrace all its files.
pub(crate) fn will_read(path: &Path) {
    let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    inputs.extend(fairhead_trace::files_of(path).iter().map(|p| place(p)));
}

/// The files that a command will write, each with the option that names it.
#[derive(Default)]
pub(crate) struct Outputs<'a> {
    files: Vec<(&'static str, &'a Path)>,
    folder: Option<&'a Path>,
}

impl<'a> Outputs<'a> {
    /// Adds the file of an option, if it was given.
    pub(crate) fn file(mut self, option: &'static str, file: Option<&'a Path>) -> Self {
        self.files.extend(file.map(|f| (option, f)));
        self
    }

    /// Adds the folder of `--pictures`, if it was given.
    pub(crate) fn pictures(mut self, folder: Option<&'a Path>) -> Self {
        self.folder = folder;
        self
    }

    /// Refuses what would overwrite an input that is known by now, or another output.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<(&str, PathBuf)> = Vec::new();
        for &(option, file) in self.files.iter().filter(|(_, f)| !is_a_sink(f)) {
            let shown = file.display();
            if file.as_os_str() != "-" && file.is_dir() {
                return Err(CliError::Misuse(format!("{option} {shown}: it is a folder; name a file")));
            }
            for place in places(file) {
                if inputs.contains(&place) {
                    return Err(CliError::Misuse(format!(
                        "{option} {shown}: this command reads '{}'; name another file",
                        place.display()
                    )));
                }
                if let Some((other, _)) = taken.iter().find(|(_, t)| *t == place) {
                    return Err(CliError::Misuse(format!(
                        "{other} and {option}: two things cannot be written to '{shown}'"
                    )));
                }
                if self.is_a_picture(&place) {
                    return Err(CliError::Misuse(format!(
                        "{option} {shown}: --pictures writes there; name another file"
                    )));
                }
            }
            taken.extend(places(file).into_iter().map(|p| (option, p)));
        }
        match inputs.iter().find(|input| self.is_a_picture(input)) {
            Some(input) => Err(CliError::Misuse(format!(
                "--pictures: this command reads '{}' there; name another folder",
                input.display()
            ))),
            None => Ok(()),
        }
    }

    /// Whether `--pictures` may write a file of this name.
    fn is_a_picture(&self, file: &Path) -> bool {
        let is_svg = file.extension().is_some_and(|e| e == "svg");
        is_svg && self.folder.is_some_and(|folder| file.parent() == Some(place(folder).as_path()))
    }
}

/// Whether everything that is written there is gone, so that any number of things may be.
fn is_a_sink(file: &Path) -> bool {
    place(file) == Path::new("/dev/null")
}

/// What is written for this file: the file, and its name while it is not complete.
fn places(file: &Path) -> Vec<PathBuf> {
    if file.as_os_str() == "-" {
        return vec![file.to_owned()];
    }
    let special = file.metadata().is_ok_and(|m| !m.is_file());
    let part = (!special).then(|| place(&part_of(file)));
    std::iter::once(place(file)).chain(part).collect()
}

/// The canonical path; of a file that is not there yet, below the canonical path of its folder.
fn place(file: &Path) -> PathBuf {
    if let Ok(path) = file.canonicalize() {
        return path;
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), file.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_are_one_place() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("a"), "").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let refused = |one: &str, other: &str| {
            let (one, other) = (at(one), at(other));
            Outputs::default().file("-o", Some(&one)).file("--report", Some(&other)).check().is_err()
        };
        assert!(refused("a", "a") && refused("a", "d/../a") && refused("a", "link"));
        assert!(refused("new", "d/../new") && refused("new.part", "new"), "files that are not there yet");
        assert!(refused("d", "other"), "a folder");
        assert!(!refused("a", "b") && !refused("new", "d/new"));
        let null = Path::new("/dev/null");
        assert!(Outputs::default().file("-o", Some(null)).file("--report", Some(null)).check().is_ok());
        will_read(&at("a"));
        assert!(refused("b", "link") && !refused("b", "c"));
    }

    #[test]
    fn pictures_take_the_svg_files_of_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str| {
            let file = dir.path().join(name);
            Outputs::default().file("-o", Some(&file)).pictures(Some(dir.path())).check().is_err()
        };
        assert!(refused("x.svg") && !refused("x.html"));
    }
}
