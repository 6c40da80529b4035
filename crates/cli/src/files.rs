//! What a command reads and what it writes, so that no result overwrites an input or another result.
//!
//! Inputs are noted where they are opened ([`will_read`]); a command names its outputs before it does
//! anything long ([`Outputs::check`]). Two names are one file if they have the same canonical path. A file
//! that is being written is `NAME.part` until it is complete, which counts as written, too.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::CliError;
use crate::out::{is_special, part_of};

/// The files that this command reads.
static INPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a file that is about to be read; for a set of blktrace all its files.
pub(crate) fn will_read(path: &Path) {
    let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    inputs.extend(fairhead_trace::files_of(path).iter().map(|p| place(p)));
}

/// Options whose file is written in its place if it is there, not made anew beside it.
const IN_PLACE: [&str; 2] = ["--record", "--resume"];

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

    /// Refuses what would overwrite an input that is known by now, or another output; and what cannot be
    /// written, because its folder is missing or cannot be written to.
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
        if let Some(input) = inputs.iter().find(|input| self.is_a_picture(input)) {
            return Err(CliError::Misuse(format!(
                "--pictures: this command reads '{}' there; name another folder",
                input.display()
            )));
        }
        self.can_be_written()
    }

    /// Refuses a file in a folder that is missing or cannot be written to.
    fn can_be_written(&self) -> Result<(), CliError> {
        for (option, file) in self.files.iter().filter(|(_, f)| f.as_os_str() != "-") {
            if is_special(file) || (IN_PLACE.contains(option) && file.exists()) {
                continue;
            }
            may_create_in(parent(&place(file)))
                .map_err(|why| CliError::Failed(format!("cannot write '{}': {why}", file.display())))?;
        }
        let Some(folder) = self.folder else { return Ok(()) };
        // It is made if it is missing, with those above it.
        let there = folder.ancestors().find(|f| f.exists()).filter(|f| !f.as_os_str().is_empty());
        may_create_in(there.unwrap_or(Path::new("."))).map_err(|why| {
            CliError::Failed(format!("--pictures: cannot make the folder '{}': {why}", folder.display()))
        })
    }

    /// Whether `--pictures` may write a file of this name.
    fn is_a_picture(&self, file: &Path) -> bool {
        let is_svg = file.extension().is_some_and(|e| e == "svg");
        is_svg && self.folder.is_some_and(|folder| file.parent() == Some(place(folder).as_path()))
    }
}

/// The folder of a file.
fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a file in the folder and removes it.
///
/// # Errors
/// Why that cannot be, in words.
fn may_create_in(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    match folder.metadata() {
        Ok(m) if !m.is_dir() => return Err(format!("'{shown}' is a file, not a folder")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(format!("there is no folder '{shown}'; make it first: mkdir -p {shown}"));
        }
        Err(e) => return Err(format!("'{shown}': {e}")),
        Ok(_) => {}
    }
    let probe = folder.join(format!(".fairhead-{}.part", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    made.map_err(|e| format!("in the folder '{shown}': {e}"))?;
    std::fs::remove_file(&probe).map_err(|e| format!("in the folder '{shown}': {e}"))
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
    let whole = place(file);
    let part = (!is_special(file)).then(|| part_of(&whole));
    std::iter::once(whole).chain(part).collect()
}

/// The canonical path; of a file that is not there yet, below the canonical path of its folder.
fn place(file: &Path) -> PathBuf {
    if let Ok(path) = file.canonicalize() {
        return path;
    }
    match (parent(file).canonicalize(), file.file_name()) {
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
    fn a_folder_that_is_missing_is_named_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        let said =
            |file: &Path| Outputs::default().file("--report", Some(file)).check().unwrap_err().to_string();
        let missing = said(&at("no/x.html"));
        assert!(missing.contains("there is no folder '") && missing.contains("mkdir -p "), "{missing}");
        assert!(said(&at("file/x.html")).contains("is a file, not a folder"), "{}", said(&at("file/x.html")));
        let pictures = |folder: &Path| Outputs::default().pictures(Some(folder)).check().is_ok();
        assert!(pictures(&at("new/pictures")) && pictures(dir.path()) && !pictures(&at("file/pictures")));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert_eq!(left, ["file"], "nothing is left of the trial");
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
