//! A copy of the last commit, which the changes are written into.
//!
//! `target/mutants/commit` is the commit, `target/mutants/tree` the copy. A file of the copy is written only
//! when it differs, so that cargo builds nothing twice.

use crate::find::{self, Change};
use crate::rewrite::{Rewritten, rewrite};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is changed: a crate's folder, and the beginning of its files' paths.
const PLACES: [(&str, &str); 3] = [
    ("crates/core", "crates/core/src/"),
    ("crates/sim", "crates/sim/src/engine/"),
    ("crates/live", "crates/live/src/request_queue/"),
];

/// The folder with the rules of BFQ.
pub(crate) const RULES: &str = "crates/core/src/sched/bfq/rules/";

/// The crate that says which change is active, and its name in the copy.
const RUNTIME: &str = include_str!("../runtime/lib.rs");
const RUNTIME_FOLDER: &str = "mutant-runtime";
const RUNTIME_MANIFEST: &str =
    "[package]\nname = \"mutant-runtime\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n";

pub(crate) struct Tree {
    /// Where the commit, the copy and what is built of it are.
    pub(crate) folder: PathBuf,
    /// Short hash of the commit.
    pub(crate) commit: String,
    /// The commit's files that are not the same in the copy, by path.
    written: BTreeMap<String, Rewritten>,
    /// Locked for as long as the program runs: another run would change the copy.
    _lock: File,
}

impl Tree {
    /// Fetches the last commit of a repository into a folder.
    pub(crate) fn new(root: &Path, folder: PathBuf) -> Result<Self, String> {
        make(&folder)?;
        let lock = lock(&folder)?;
        let commit = folder.join("commit");
        if !commit.exists() {
            said(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(root).arg(&commit))?;
        }
        let git = |args: &[&str], at: &Path| said(Command::new("git").args(args).current_dir(at));
        let head = git(&["rev-parse", "HEAD"], root)?;
        git(&["fetch", "--quiet", "origin", head.trim()], &commit)?;
        git(&["checkout", "--quiet", "--force", "--detach", head.trim()], &commit)?;
        let short = git(&["rev-parse", "--short", "HEAD"], &commit)?;
        Ok(Self { folder, commit: short.trim().to_owned(), written: BTreeMap::new(), _lock: lock })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// All changes of the commit.
    pub(crate) fn changes(&self) -> Result<Vec<Change>, String> {
        let mut all = Vec::new();
        for (folder, begin) in PLACES {
            self.module(&format!("{folder}/src/lib.rs"), &mut |file, mut changes| {
                if file.starts_with(begin) {
                    all.append(&mut changes);
                }
            })?;
        }
        Ok(all)
    }

    /// Gives `visit` the changes of a file, and those of the modules below it that are not of tests.
    fn module(&self, file: &str, visit: &mut impl FnMut(&str, Vec<Change>)) -> Result<(), String> {
        let found = find::changes(file, &read(&self.folder.join("commit").join(file))?)?;
        visit(file, found.changes);
        let below = match Path::new(file).file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "mod.rs") => Path::new(file).parent().unwrap_or(Path::new("")).to_owned(),
            _ => Path::new(file).with_extension(""),
        };
        for module in found.modules {
            let choices = [below.join(format!("{module}.rs")), below.join(&module).join("mod.rs")];
            let there = choices.iter().find(|path| self.folder.join("commit").join(path).exists());
            let path = there.ok_or_else(|| format!("{file}: module {module} has no file"))?;
            self.module(&path.to_string_lossy(), visit)?;
        }
        Ok(())
    }

    /// Makes the copy the commit with these changes; the number of a change is its index.
    pub(crate) fn write(&mut self, changes: &[&Change]) -> Result<(), String> {
        let mut by_file: BTreeMap<&str, Vec<(u32, &Change)>> = BTreeMap::new();
        for (number, change) in (0..).zip(changes) {
            by_file.entry(&change.file).or_default().push((number, change));
        }
        let commit = self.folder.join("commit");
        self.written.clear();
        for (file, changes) in by_file {
            self.written.insert(file.to_owned(), rewrite(&read(&commit.join(file))?, &changes));
        }
        let files = said(Command::new("git").args(["ls-files", "-z"]).current_dir(&commit))?;
        for file in files.split_terminator('\0') {
            let path = self.path().join(file);
            if let Ok(target) = fs::read_link(commit.join(file)) {
                link(&path, &target)?;
                continue;
            }
            let text = match self.written.get(file) {
                Some(rewritten) => rewritten.text.clone().into_bytes(),
                None => self.unchanged(file)?,
            };
            replace(&path, &text)?;
        }
        replace(&self.path().join(RUNTIME_FOLDER).join("Cargo.toml"), RUNTIME_MANIFEST.as_bytes())?;
        replace(&self.path().join(RUNTIME_FOLDER).join("src/lib.rs"), RUNTIME.as_bytes())
    }

    /// A file as it is in the commit; manifests of changed crates use the crate of the copy.
    fn unchanged(&self, file: &str) -> Result<Vec<u8>, String> {
        let path = self.folder.join("commit").join(file);
        let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if !PLACES.iter().any(|(folder, _)| file == format!("{folder}/Cargo.toml")) {
            return Ok(text);
        }
        let runtime = format!("[dependencies]\nmutant-runtime = {{ path = \"../../{RUNTIME_FOLDER}\" }}\n");
        Ok(String::from_utf8_lossy(&text).replacen("[dependencies]\n", &runtime, 1).into_bytes())
    }

    /// The numbers of the changes that an error in a file of the copy comes from.
    pub(crate) fn to_blame(&self, file: &str, error: &std::ops::Range<usize>) -> Vec<u32> {
        self.written.get(file).map(|rewritten| rewritten.to_blame(error)).unwrap_or_default()
    }
}

/// Writes a file unless it has this content.
fn replace(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|before| before == content) {
        return Ok(());
    }
    make(path.parent().unwrap_or(Path::new("")))?;
    fs::write(path, content).map_err(|e| format!("{}: {e}", path.display()))
}

/// Makes a symbolic link unless it is there.
fn link(path: &Path, target: &Path) -> Result<(), String> {
    if fs::read_link(path).is_ok_and(|before| before == target) {
        return Ok(());
    }
    make(path.parent().unwrap_or(Path::new("")))?;
    std::os::unix::fs::symlink(target, path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Locks a folder for this process.
fn lock(folder: &Path) -> Result<File, String> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    file.try_lock().map_err(|_| format!("{}: another run is using this folder", folder.display()))?;
    Ok(file)
}

pub(crate) fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// What a command prints, if it succeeds.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_tests_have_no_changes_and_a_folder_is_used_once() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree {
            folder: root.path().to_owned(),
            commit: String::new(),
            written: BTreeMap::new(),
            _lock: lock(root.path()).unwrap(),
        };
        assert!(lock(root.path()).unwrap_err().ends_with("another run is using this folder"));
        for (file, text) in [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
            ("a.rs", "mod c;"),
            ("a/c.rs", "fn f() { g(); }"),
            ("b/mod.rs", "mod d;"),
            ("b/d.rs", "fn f() -> bool { g() }"),
            ("tests.rs", "fn f() { g(); }"),
        ] {
            replace(&root.path().join("commit/crates/core/src").join(file), text.as_bytes()).unwrap();
        }
        let mut found = Vec::new();
        let visit = &mut |file: &str, changes: Vec<Change>| found.push((file.to_owned(), changes.len()));
        tree.module("crates/core/src/lib.rs", visit).unwrap();
        let by_name = |name: &str| found.iter().find(|(file, _)| file.ends_with(name)).map(|(_, n)| *n);
        assert_eq!((by_name("a/c.rs"), by_name("b/d.rs"), by_name("tests.rs")), (Some(1), Some(2), None));
    }

    #[test]
    fn a_file_with_the_same_content_is_not_written() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        replace(&path, b"one").unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        replace(&path, b"one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
