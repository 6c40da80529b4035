//! `fairhead help COMMAND`, and where the pages are that help names.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// `help` and `help COMMAND` are `--help` and `COMMAND --help`.
pub(super) fn as_option(mut argv: Vec<OsString>) -> Vec<OsString> {
    if argv.get(1).is_some_and(|word| word == "help") {
        argv.remove(1);
        argv.retain(|word| word != "help");
        argv.push("--help".into());
    }
    argv
}

/// Prints a help text, and where its pages are if it names any. A closed pipe is not an error.
pub(super) fn print(e: &clap::Error) {
    let _ = e.print();
    if e.to_string().contains("docs/") {
        let _ = writeln!(io::stdout(), "\n{}", place_of_pages(std::env::current_exe().ok().as_deref()));
    }
}

/// Where the pages are that help names: those of the package, or of the clone that the program was built in.
fn place_of_pages(program: Option<&Path>) -> String {
    let of_package = |p: &Path| Some(p.parent()?.parent()?.join("share/doc/fairhead/docs"));
    let of_clone = |p: &Path| {
        let mut folders = p.ancestors().skip(1).map(|f| f.join("docs"));
        folders.find(|docs| docs.join("architecture.md").is_file())
    };
    let found =
        |p: &Path| -> Option<PathBuf> { of_package(p).filter(|docs| docs.is_dir()).or_else(|| of_clone(p)) };
    match program.and_then(found) {
        Some(docs) => format!("The pages docs/… are in {}.", docs.display()),
        None => {
            "The pages docs/… are in Fairhead's repository, and in /usr/share/doc/fairhead of its package."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_an_option_too() {
        let line = |words: &[&str]| {
            let argv = as_option(words.iter().map(OsString::from).collect());
            argv.into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line(&["fairhead", "help"]), "fairhead --help");
        assert_eq!(line(&["fairhead", "help", "run"]), "fairhead run --help");
        assert_eq!(line(&["fairhead", "help", "help"]), "fairhead --help");
        assert_eq!(line(&["fairhead", "run", "help"]), "fairhead run help");
        assert_eq!(line(&["fairhead"]), "fairhead");
    }

    #[test]
    fn pages_are_found_beside_the_program() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let said = |program: &str| place_of_pages(Some(&at(program)));
        assert!(
            said("usr/bin/fairhead").contains("in Fairhead's repository"),
            "{}",
            said("usr/bin/fairhead")
        );
        std::fs::create_dir_all(at("usr/share/doc/fairhead/docs")).unwrap();
        let docs = at("usr/share/doc/fairhead/docs");
        assert_eq!(said("usr/bin/fairhead"), format!("The pages docs/… are in {}.", docs.display()));
        std::fs::create_dir_all(at("clone/docs")).unwrap();
        std::fs::write(at("clone/docs/architecture.md"), "").unwrap();
        let docs = at("clone/docs");
        assert_eq!(said("clone/target/sim/fairhead"), format!("The pages docs/… are in {}.", docs.display()));
    }
}
