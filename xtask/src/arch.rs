//! The arrows between the crates go one way: `core ← device ← sim ← {report, machine} ← cli`,
//! `{outside, report} ← lab ← {browser, papers, cli}`, `papers ← {python, cli}`,
//! `{device, inbox} ← live ← cli`, `core ← core-ffi`, `core ← {outside, plugin} ← cli`,
//! `core ← trace ← {sim, papers, machine, cli}`, `core ← conform ← cli`.
//!
//! A change in a front-end then cannot alter a decision, and a simulated result is about exactly the code
//! that runs anywhere else. `bench`, `fuzz`, `mutants` and `xtask` may use any crate, and no crate uses them.
//!
//! Inside BFQ a rule imports its view and no other rule, and files do not import each other in circles: a
//! reader of one file then knows what it may touch.

use crate::shell::{capture, cargo, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The workspace's crates that `package` links, through any number of steps, itself included.
fn links(package: &str, edges: &str) -> (Vec<String>, Vec<String>) {
    let mut tree = cargo("tree --locked --target all --prefix none --format {p}");
    let output = capture(tree.args(["--package", package, "--edges", edges])).expect("cargo tree");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let names =
        text.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| !name.starts_with('['));
    let mut all: Vec<String> = names.map(str::to_owned).collect();
    all.sort();
    all.dedup();
    let ours = |name: &String| name.starts_with("fairhead") || name == "xtask";
    let (ours, others) = all.into_iter().partition(ours);
    (ours, others)
}

/// The crates, each with those that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("fairhead-core", &["fairhead-core"]),
    ("fairhead-core-ffi", &["fairhead-core", "fairhead-core-ffi"]),
    ("fairhead-device", &["fairhead-core", "fairhead-device"]),
    ("fairhead-sim", &["fairhead-core", "fairhead-device", "fairhead-sim", "fairhead-trace"]),
    ("fairhead-conform", &["fairhead-conform", "fairhead-core"]),
    (
        "fairhead-papers",
        &[
            "fairhead-core",
            "fairhead-device",
            "fairhead-lab",
            "fairhead-outside",
            "fairhead-papers",
            "fairhead-report",
            "fairhead-sim",
            "fairhead-trace",
        ],
    ),
    ("fairhead-inbox", &["fairhead-inbox"]),
    ("fairhead-live", &["fairhead-core", "fairhead-device", "fairhead-inbox", "fairhead-live"]),
    (
        "fairhead-machine",
        &["fairhead-core", "fairhead-device", "fairhead-machine", "fairhead-sim", "fairhead-trace"],
    ),
    ("fairhead-outside", &["fairhead-core", "fairhead-outside", "fairhead-suite"]),
    (
        "fairhead-plugin",
        &[
            "fairhead-core",
            "fairhead-device",
            "fairhead-outside",
            "fairhead-plugin",
            "fairhead-sim",
            "fairhead-suite",
            "fairhead-trace",
        ],
    ),
    ("fairhead-suite", &["fairhead-core", "fairhead-suite"]),
    ("fairhead-trace", &["fairhead-core", "fairhead-trace"]),
    (
        "fairhead-report",
        &["fairhead-core", "fairhead-device", "fairhead-report", "fairhead-sim", "fairhead-trace"],
    ),
    (
        "fairhead-lab",
        &[
            "fairhead-core",
            "fairhead-device",
            "fairhead-lab",
            "fairhead-outside",
            "fairhead-report",
            "fairhead-sim",
            "fairhead-suite",
            "fairhead-trace",
        ],
    ),
    (
        "fairhead-browser",
        &[
            "fairhead-browser",
            "fairhead-core",
            "fairhead-device",
            "fairhead-lab",
            "fairhead-outside",
            "fairhead-report",
            "fairhead-sim",
            "fairhead-suite",
            "fairhead-trace",
        ],
    ),
    (
        "fairhead-python",
        &[
            "fairhead-core",
            "fairhead-device",
            "fairhead-lab",
            "fairhead-outside",
            "fairhead-papers",
            "fairhead-python",
            "fairhead-report",
            "fairhead-sim",
            "fairhead-trace",
        ],
    ),
    (
        "fairhead",
        &[
            "fairhead",
            "fairhead-conform",
            "fairhead-core",
            "fairhead-device",
            "fairhead-inbox",
            "fairhead-lab",
            "fairhead-live",
            "fairhead-machine",
            "fairhead-outside",
            "fairhead-papers",
            "fairhead-plugin",
            "fairhead-report",
            "fairhead-sim",
            "fairhead-trace",
        ],
    ),
];

#[test]
fn arrows_between_crates_go_one_way() {
    for (package, allowed) in ARROWS {
        let (ours, _) = links(package, "normal,build,dev");
        assert!(ours.contains(&(*package).to_owned()), "cargo tree says nothing about {package}: {ours:?}");
        for linked in ours {
            assert!(allowed.contains(&linked.as_str()), "{package} must not use {linked}");
        }
    }
}

#[test]
fn core_has_no_dependencies_not_even_for_its_tests() {
    let (ours, others) = links("fairhead-core", "normal,build,dev");
    assert_eq!((ours, others), (vec!["fairhead-core".to_owned()], Vec::new()));
}

/// The files of BFQ that still import each other in a circle. A file may leave this list, and none may come.
const BFQ_CIRCLE: [&str; 0] = [];

/// The folder of BFQ, and the path of its module.
const BFQ: &str = "crates/core/src/sched/bfq";
const BFQ_MODULE: &str = "crate::sched::bfq";

/// By file of a folder (a module's path inside it, "" is the folder's own `mod.rs`), the files that it
/// imports. Unit tests do not count, and neither do declarations of modules.
fn imports(folder: &Path, module: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut sources = BTreeMap::new();
    collect(folder, "", &mut sources);
    let files: BTreeSet<String> = sources.keys().cloned().collect();
    let imports = sources.iter().map(|(file, source)| {
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect();
        let mut targets: BTreeSet<String> =
            paths(&code, file, module).filter_map(|path| owner(&files, &path)).collect();
        targets.remove(file);
        (file.clone(), targets)
    });
    imports.collect()
}

/// Reads the files below `folder`, but those of tests.
fn collect(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let name = match (prefix, stem.as_str()) {
            (_, "mod") => prefix.to_owned(),
            ("", _) => stem.clone(),
            _ => format!("{prefix}::{stem}"),
        };
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, &name, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(name, fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The paths in `code` that lead into the folder, from its own module: "queue::Queue".
fn paths<'a>(code: &'a str, file: &'a str, module: &'a str) -> impl Iterator<Item = String> + 'a {
    let here: Vec<&str> = file.split("::").filter(|part| !part.is_empty()).collect();
    let starts = [module, "super", "self"].into_iter();
    starts.flat_map(move |start| {
        let here = here.clone();
        let start_with = format!("{start}::");
        let places: Vec<usize> = code.match_indices(&start_with).map(|(at, _)| at).collect();
        places.into_iter().flat_map(move |at| {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                return Vec::new();
            }
            let (mut base, mut rest) = (here.clone(), &code[at..]);
            if start == module {
                (base, rest) = (Vec::new(), &rest[start_with.len()..]);
            }
            rest = rest.strip_prefix("self::").unwrap_or(rest);
            while let Some(above) = rest.strip_prefix("super::") {
                if base.pop().is_none() {
                    return Vec::new();
                }
                rest = above;
            }
            let base = base.join("::");
            let full = |item: &str| if base.is_empty() { item.to_owned() } else { format!("{base}::{item}") };
            items(rest).iter().map(|item| full(item)).collect()
        })
    })
}

/// The paths that one import names: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn items(path: &str) -> Vec<String> {
    let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(path.len());
    let (head, rest) = path.split_at(end);
    if !rest.starts_with('{') {
        return vec![head.to_owned()];
    }
    let (mut depth, mut start, mut all) = (0, 1, Vec::new());
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            all.extend(items(rest[start..at].trim()).iter().map(|item| format!("{head}{item}")));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    all
}

/// The file that a path leads to: the deepest module on its way.
fn owner(files: &BTreeSet<String>, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    while !parts.is_empty() && !files.contains(&parts.join("::")) {
        parts.pop();
    }
    let found = parts.join("::");
    files.contains(&found).then_some(found)
}

/// The files that lead back to themselves.
fn in_circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reaches = |file: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![file.clone()]);
        while let Some(at) = todo.pop() {
            for next in imports.get(&at).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    todo.push(next.clone());
                }
            }
        }
        seen
    };
    imports.keys().filter(|&file| reaches(file).contains(file)).cloned().collect()
}

#[test]
fn files_of_bfq_import_each_other_in_no_new_circle() {
    let imports = imports(&root().join(BFQ), BFQ_MODULE);
    assert!(imports.len() > 15 && imports["hooks"].contains("view"), "nothing was read: {imports:?}");
    let circles = in_circles(&imports);
    let known: BTreeSet<String> = BFQ_CIRCLE.map(str::to_owned).into();
    let new: Vec<_> = circles.difference(&known).collect();
    assert!(new.is_empty(), "import each other in a circle: {new:?}, by {imports:#?}");
    let gone: Vec<_> = known.difference(&circles).collect();
    assert!(gone.is_empty(), "are in no circle any more, so take them off the list: {gone:?}");
}

#[test]
fn a_rule_of_bfq_imports_its_view_and_no_other_rule() {
    let imports = imports(&root().join(BFQ), BFQ_MODULE);
    let rules = || imports.iter().filter(|(file, _)| file.starts_with("rules::"));
    assert!(rules().count() >= 9, "rules are missing: {imports:?}");
    for (rule, targets) in rules() {
        let other: Vec<_> = targets.iter().filter(|target| *target != "view").collect();
        assert!(other.is_empty(), "{rule} reaches for more than its view: {other:?}");
    }
}

#[test]
fn imports_are_found_in_all_their_forms() {
    let folder = std::env::temp_dir().join(format!("fairhead-arch-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("mod.rs", "mod a;\nmod rules;\nuse self::a::A;\npub fn here() {}\n");
    write(
        "a.rs",
        "use super::{rules::{self, x::X}, here};\n// use super::b::B;\n#[cfg(test)]\nmod tests {\nuse super::super::b;\n}\n",
    );
    write("b.rs", "fn f() -> u32 { crate::top::a::N }\n");
    write("rules/mod.rs", "pub use self::x::X;\n");
    write(
        "rules/x.rs",
        "use super::super::b::B;\nuse crate::top::a::A;\nuse super::super::super::elsewhere::E;\n",
    );
    let imports = imports(&folder, "crate::top");
    fs::remove_dir_all(&folder).expect("the folder goes");
    let of = |file: &str| imports[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of(""), ["a"]);
    assert_eq!(of("a"), ["", "rules", "rules::x"]);
    assert_eq!(of("b"), ["a"]);
    assert_eq!(of("rules"), ["rules::x"]);
    assert_eq!(of("rules::x"), ["a", "b"]);
    let circles = in_circles(&imports);
    assert_eq!(circles.iter().map(String::as_str).collect::<Vec<_>>(), ["", "a", "b", "rules", "rules::x"]);
}

/// So that the step that packages each crate, and builds it from its package alone, has built all that there
/// is to choose. A crate that gets features needs a step that builds it with each of them alone.
#[test]
fn no_crate_has_features_to_choose_from() {
    for entry in std::fs::read_dir(crate::shell::root().join("crates")).expect("a folder").flatten() {
        let text = std::fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
        assert!(text.contains("\n[dependencies]"), "{}", entry.path().display());
        // A kernel links the C library without std; `cargo xtask ffi` builds it both ways.
        if entry.file_name() == "core-ffi" {
            assert!(text.contains("\n[features]\ndefault = [\"std\"]\n"));
            continue;
        }
        let choice =
            text.lines().find(|line| line.trim() == "[features]" || line.contains("optional = true"));
        assert_eq!(choice, None, "{}", entry.path().display());
    }
}

/// Programs that tests run, such as fio, write files where they are; a test gives them a folder of its own.
#[test]
fn the_crates_have_sources_and_no_leftovers_of_tests() {
    let output = capture(&mut crate::shell::command("git", "ls-files crates"));
    let Ok(output) = output else { return println!("skipped: not a git repository") };
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for path in text.lines() {
        let (folder, name) = path.rsplit_once('/').expect("in a folder");
        // Beside a manifest there are few files, all known.
        let is_beside_manifest = folder.matches('/').count() == 1;
        let is_known = matches!(name, "Cargo.toml" | "README.md" | "jobs" | "public-api.txt");
        let others = ["crates/core-ffi/build.rs", "crates/python/pyproject.toml"];
        let is_known = is_known || others.contains(&path);
        assert!(!is_beside_manifest || is_known, "{path}: a leftover of a test?");
    }
}
