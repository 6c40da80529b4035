//! Every command in the docs is run, and every tunable is in them.
//!
//! In the README and in `docs/`, a block fenced as `sh` is a list of commands, one per line. Lines that start
//! with `fairhead` or `cargo run --release` run the binary under test, in the root of the repository, and
//! must succeed; `printf`, which makes a file for them, runs as it is, and so does `gzip` before a pipe.
//! Those whose output the documents show are run by `cargo xtask figures --check`. Other lines must be known
//! here, so that no command goes stale unseen.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("docs can be listed");
        for path in entries.map(|e| e.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of the `sh` blocks of a document, with their line numbers.
fn commands(text: &str) -> Vec<(usize, &str)> {
    let (mut inside, mut found) = (false, Vec::new());
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = line.trim() == "```sh";
        } else if inside && !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            found.push((i + 1, line.trim()));
        }
    }
    found
}

/// What is run by other means: the test command runs this test; the long ones have steps of their own there.
const RUN_ELSEWHERE: &[&str] = &["cargo xtask ", "cargo build", "bash .ci/run"];

/// The arguments of commands whose output or figures the documents show: `cargo xtask figures --check`, a
/// step of the test command, runs those.
fn shown(text: &str) -> impl Iterator<Item = &str> {
    let above = std::iter::once("").chain(text.lines());
    above.zip(text.lines()).filter_map(|(above, line)| {
        let comment = || ["<!-- shows: ", "<!-- figures: "].iter().find_map(|p| line.strip_prefix(p));
        let first = || line.strip_prefix("$ ").filter(|_| above.trim() == "```text");
        comment().or_else(first).and_then(|c| arguments(c.strip_suffix(" -->").unwrap_or(c)))
    })
}

/// The arguments that a command gives to the program; none if it runs another one.
fn arguments(words: &str) -> Option<&str> {
    let rest = words.strip_prefix("cargo run --release");
    let rest = rest.map(|rest| rest.trim_start().strip_prefix("--").unwrap_or(rest));
    rest.or_else(|| words.strip_prefix("fairhead")).map(str::trim)
}

/// A command without its comment.
fn words(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

fn run(place: &str, line: &str) {
    let words = words(line);
    let script = match arguments(words) {
        Some(arguments) => format!("exec {} {arguments}", env!("CARGO_BIN_EXE_fairhead")),
        None if words.starts_with("printf ") => words.to_owned(),
        None if words.starts_with("gzip -c ") => {
            words.replace("| fairhead ", &format!("| exec {} ", env!("CARGO_BIN_EXE_fairhead")))
        }
        None => panic!("{place}: no test runs '{line}'"),
    };
    // The documents put what they make where cargo does. What another build has kept there cannot be resumed.
    std::fs::create_dir_all(root().join("target")).expect("a folder for outputs");
    if let Some(kept) = words.split_once("--resume ").and_then(|(_, rest)| rest.split(' ').next()) {
        let _ = std::fs::remove_file(root().join(kept));
    }
    let result = Command::new("sh").args(["-c", &script]).current_dir(root()).output().expect("sh runs");
    assert!(
        result.status.success(),
        "{place}: '{line}' ended with {}: {}",
        result.status,
        String::from_utf8_lossy(&result.stderr)
    );
}

#[test]
fn every_command_in_the_docs_runs() {
    let mut count = 0;
    let read = |document: PathBuf| {
        let name = document.strip_prefix(root()).expect("inside the root").display().to_string();
        (name, std::fs::read_to_string(&document).expect("a document"))
    };
    let documents: Vec<(String, String)> = documents().into_iter().map(read).collect();
    let shown: HashSet<&str> = documents.iter().flat_map(|(_, text)| shown(text)).collect();
    for (name, text) in &documents {
        for (number, line) in commands(text) {
            let is_shown = arguments(words(line)).is_some_and(|given| shown.contains(given));
            if !is_shown && !RUN_ELSEWHERE.iter().any(|known| line.starts_with(known)) {
                run(&format!("{name}:{number}"), line);
                count += 1;
            }
        }
    }
    assert!(count >= 8, "only {count} commands found: has the fence changed?");
}

/// The files below a folder with one of these endings.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_deviation_that_the_code_marks_is_explained() {
    let page = std::fs::read_to_string(root().join("docs/deviations.md")).expect("the page");
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut marks = 0;
    for file in files.iter().filter(|f| !f.ends_with("cli/tests/it/docs.rs")) {
        let text = std::fs::read_to_string(file).expect("a source file");
        for id in text.lines().filter_map(|l| l.trim().strip_prefix("//= deviates ")) {
            let known = page.contains(&format!("**{id}**")) || page.contains(&format!("`{id}`"));
            assert!(known, "{}: '{id}' is not in docs/deviations.md", file.display());
            marks += 1;
        }
    }
    assert!(marks > 0, "no marks found: has their form changed?");
}

/// The pages of tunables, and the scheduler that each measures, as in `xtask/src/docs.rs`.
const PAGES: [(&str, &str); 9] = [
    ("deadline", "deadline"),
    ("mq-deadline", "mq-deadline"),
    ("kyber", "kyber"),
    ("as", "as"),
    ("cfq-early", "cfq-ts2"),
    ("cfq", "cfq"),
    ("bfq", "bfq"),
    ("groups", "noop+groups"),
    ("adios", "adios"),
];

#[test]
fn every_tunable_is_on_its_page_with_the_text_that_show_prints() {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut wrong = Vec::new();
    for (page, preset) in PAGES {
        let name = format!("docs/schedulers/tunables/{page}.md");
        let text = std::fs::read_to_string(root().join(&name)).expect("a page");
        let named = fairhead_lab::schedulers::choose_scheduler(preset).expect("a scheduler");
        for t in named.config.list() {
            let part = text.split_once(&format!("\n## {}\n", t.name)).map(|(_, rest)| one_line(rest));
            if !part.is_some_and(|part| part.starts_with(&one_line(t.effect))) {
                wrong.push(format!("{name} has no '## {}' with the text '{}'", t.name, one_line(t.effect)));
            }
        }
    }
    let help = "`cargo xtask docs` writes these pages; a changed text may be changed in them by hand";
    assert!(wrong.is_empty(), "{}\n{help}", wrong.join("\n"));
}
