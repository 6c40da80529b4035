//! `fairhead new-scheduler`: a folder with a scheduler of your own.
//!
//! The folder is one of `templates`, with the name in place of `upwards`. The scheduler there is the same in
//! Rust and in C, and a test holds them to the same decisions.

use std::fs;
use std::path::{Path, PathBuf};

use fairhead_core::sched::any::{PRESETS, shown};
use fairhead_core::sched::outside::MAX_NAME;

use crate::args::{Language, NewSchedulerArgs};
use crate::error::CliError;
use crate::out;
use fairhead_lab::schedulers::catalogue;

/// The name in the templates.
const PLACEHOLDER: &str = "upwards";

/// A file: its path in the folder, and its text.
type File = (&'static str, &'static str);

macro_rules! template {
    ($($path:literal from $source:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../templates/", $source)))),*]
    };
}

const RUST: &[File] = template! {
    "Cargo.toml" from "rust/Cargo.toml.in",
    "src/lib.rs" from "rust/src/lib.rs",
    "tests/suite.rs" from "rust/tests/suite.rs",
    "README.md" from "rust/README.md",
    ".gitignore" from "rust/gitignore",
};

const C: &[File] = template! {
    "upwards.c" from "c/upwards.c",
    "Makefile" from "c/Makefile",
    "suite/Cargo.toml" from "c/suite/Cargo.toml.in",
    "suite/suite.rs" from "c/suite/suite.rs",
    "README.md" from "c/README.md",
    ".gitignore" from "c/gitignore",
};

/// Writes the folder, and says what to do next.
pub(crate) fn new_scheduler(args: &NewSchedulerArgs) -> Result<(), CliError> {
    let folder = &args.folder;
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    check(name).map_err(|what| CliError::Misuse(format!("'{name}': {what}")))?;
    if folder.symlink_metadata().is_ok() {
        let wrong = format!("'{}' is there already; choose another name, or remove it", folder.display());
        return Err(CliError::Misuse(wrong));
    }
    let source = source(args)?;
    let files = if args.lang == Language::Rust { RUST } else { C };
    let write = |path: &str, text: &str| {
        let file = folder.join(path);
        let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text));
        made.map_err(|e| CliError::Failed(format!("cannot write '{}': {e}", file.display())))
    };
    for (path, text) in files {
        write(&path.replace(PLACEHOLDER, name), &fill(text, name, source.as_deref()))?;
    }
    if args.lang == Language::C {
        write("fairhead-scheduler.h", fairhead_plugin::HEADER)?;
    }
    let (build, library) = match args.lang {
        Language::Rust => {
            ("cargo build --release", format!("target/release/lib{}.so", name.replace('-', "_")))
        }
        Language::C => ("make", format!("./lib{name}.so")),
    };
    let test = if args.lang == Language::Rust { "cargo test --release" } else { "make test" };
    out::print(&format!(
        "cd {}\n{build}\n{test}\nfairhead run --sched {library},bfq,mq-deadline\n",
        folder.display()
    ))
}

/// A text of a template for this scheduler.
fn fill(text: &str, name: &str, source: Option<&Path>) -> String {
    let mut text = text.to_owned();
    for krate in ["core", "plugin", "suite"] {
        let dependency = match source {
            Some(root) => {
                // Links are resolved, so that cargo knows the crate again in whatever folder uses it.
                let path = root.join("crates").join(krate);
                let path = path.canonicalize().unwrap_or(path);
                format!("{{ path = {:?} }}", path.display().to_string())
            }
            None => format!("{:?}", env!("CARGO_PKG_VERSION")),
        };
        text = text.replace(&format!("DEPENDENCY({krate})"), &dependency);
    }
    // In Rust a crate's name has no -, and a library's file neither; a type begins with a capital letter.
    let ident = name.replace('-', "_");
    text = text.replace("use upwards::", &format!("use {ident}::"));
    text = text.replace("release/libupwards", &format!("release/lib{ident}"));
    text = text.replace("struct upwards", &format!("struct {ident}"));
    text = text.replace("Upwards", &camel(name)).replace("UPWARDS", &ident.to_uppercase());
    // What it does stays what it does.
    let about = "\u{1}and around, with patience";
    text = text.replace("upwards and around, with patience", about);
    text = text.replace("sectors, upwards and around", "sectors, \u{1}and around");
    text.replace(PLACEHOLDER, name).replace('\u{1}', "upwards ")
}

/// The name of a type.
fn camel(name: &str) -> String {
    let parts = name.split(['-', '_']).map(|part| {
        let mut letters = part.chars();
        letters.next().map(|c| c.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    });
    parts.collect()
}

/// Words that no crate can have as a name: Rust's, and those of crates that every crate sees.
const WORDS: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "config",
    "suite",
    "entry",
    "ops",
    "memory",
    "create",
    "insert",
    "grown",
    "joined",
    "dispatch",
    "tunables",
    "all",
];

/// Whether a scheduler may have this name.
fn check(name: &str) -> Result<(), String> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(plain);
    if !is_name || name.len() > MAX_NAME || name.ends_with(['-', '_']) {
        return Err(format!(
            "a name is 1 to {MAX_NAME} small letters, digits, - and _, begins with a letter and ends with no - or _, such as my-first"
        ));
    }
    let known =
        PRESETS.iter().any(|p| p.name == name || shown(p.name) == name || (p.config)().scheduler() == name);
    if known || catalogue().find(name).is_some() {
        return Err("a built-in scheduler has this name; choose another".to_owned());
    }
    if WORDS.contains(&name) || name.starts_with("fairhead") {
        return Err("this word means something in Rust, C or Fairhead; choose another".to_owned());
    }
    Ok(())
}

/// The clone of the repository that the new folder uses: the one that is named, or that it is in.
fn source(args: &NewSchedulerArgs) -> Result<Option<PathBuf>, CliError> {
    let is_clone = |folder: &Path| folder.join("crates/plugin/include/fairhead-scheduler.h").is_file();
    if let Some(named) = &args.fairhead {
        let folder = named.canonicalize().ok().filter(|f| is_clone(f));
        let wrong =
            || CliError::Misuse(format!("'{}' is no clone of Fairhead's repository", named.display()));
        return folder.map(Some).ok_or_else(wrong);
    }
    let above = args.folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = above.canonicalize().or_else(|_| std::env::current_dir());
    let above = above.map_err(|e| CliError::Failed(format!("cannot find the present folder: {e}")))?;
    Ok(above.ancestors().find(|f| is_clone(f)).map(Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_refused_with_a_reason() {
        for name in ["mine", "my-first", "a2", "x_y"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("", "1 to 32"),
            ("Mine", "small letters"),
            ("2mine", "begins with a letter"),
            ("mine-", "ends with"),
            ("a b", "small letters"),
            ("bfq", "built-in"),
            ("none", "built-in"),
            ("adios", "built-in"),
            ("match", "means something"),
            ("fairhead-x", "means something"),
        ] {
            assert!(check(name).unwrap_err().contains(why), "{name}: {:?}", check(name));
        }
        assert!(check(&"a".repeat(33)).is_err());
    }

    #[test]
    fn a_name_with_a_dash_is_a_word_in_code() {
        let text = fill(RUST[1].1, "my-first", None);
        assert!(
            text.contains("pub struct MyFirst {")
                && text.contains(r#"const NAME: &'static str = "my-first";"#)
        );
        assert!(text.contains(r#"export!(MyFirst, "my-first", "upwards and around"#), "{text}");
        let c = fill(C[0].1, "my-first", None);
        assert!(c.contains("struct my_first *u = self;") && c.contains(r#".name = "my-first""#), "{c}");
        assert!(
            fill(RUST[0].1, "x", Some(Path::new("/f")))
                .contains(r#"fairhead-core = { path = "/f/crates/core" }"#)
        );
        assert!(!fill(RUST[0].1, "x", None).contains("DEPENDENCY"));
    }

    #[test]
    fn crates_behind_links_are_named_by_the_place_where_they_are() {
        let place = tempfile::tempdir().expect("a folder");
        let real = place.path().join("real/core");
        std::fs::create_dir_all(&real).expect("a folder");
        std::os::unix::fs::symlink(place.path().join("real"), place.path().join("crates")).expect("a link");
        let text = fill(RUST[0].1, "x", Some(place.path()));
        let core = real.canonicalize().expect("a path").display().to_string();
        assert!(text.contains(&format!("fairhead-core = {{ path = {core:?} }}")), "{text}");
    }
}
