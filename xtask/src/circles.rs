//! Files of one folder do not import each other in circles.
//!
//! ```text
//!   crates/*/src/**.rs ─► paths that begin with `crate` or `super` ─► who names whom in each folder ─► circles
//! ```
//!
//! A folder counts as one file in the folder that it is in. `mod.rs`, `lib.rs` and `main.rs`, which declare
//! the others, and tests are left out. [`ALLOWED`] has the circles that are left, each with its reason. It
//! may only shrink: a circle that is not in it is a fault, and so is an entry that is larger than its
//! circle.

use crate::shell::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Circles that may be: the folder, its files, and why.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "lab/src/output",
        &["csv", "groups", "human", "json", "watch"],
        "one front: a format prints a report, and a report prints itself in each format",
    ),
    (
        "core/src",
        &["elevator", "sched"],
        "an elevator drives a scheduler, and hands it a context with its requests and books",
    ),
    (
        "sim/src",
        &["engine", "host", "job", "journal", "metrics", "why"],
        "the engine writes a journal, from which `why` explains the engine's clients",
    ),
];

/// A folder's files, with those that each names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate: their paths, and the paths that their code names.
#[derive(Default)]
struct Modules {
    paths: BTreeSet<Vec<String>>,
    named: Vec<(Vec<String>, Vec<String>)>,
}

impl Modules {
    fn read(src: &Path) -> Self {
        let mut modules = Self::default();
        modules.folder(src, &[]);
        modules
    }

    fn folder(&mut self, folder: &Path, module: &[String]) {
        let mut entries: Vec<_> =
            fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
        entries.sort();
        let texts = entries.iter().filter(|p| p.extension().is_some_and(|e| e == "rs"));
        let for_tests: BTreeSet<String> =
            texts.flat_map(|p| test_modules(&fs::read_to_string(p).expect("UTF-8"))).collect();
        for path in entries {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let of = |name: &str| [module, &[name.to_owned()]].concat();
            if name == "tests" || for_tests.contains(&name) {
                continue;
            }
            if path.is_dir() {
                self.folder(&path, &of(&name));
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let own = if matches!(&*name, "lib" | "main" | "mod") { module.to_vec() } else { of(&name) };
                self.file(own, &text);
            }
        }
    }

    fn file(&mut self, own: Vec<String>, text: &str) {
        for path in paths(&tokens(text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text))) {
            let ups = path.iter().take_while(|word| *word == "super").count();
            let absolute = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                _ if ups <= own.len() => [&own[..own.len() - ups], &path[ups..]].concat(),
                _ => continue,
            };
            self.named.push((own.clone(), absolute));
        }
        self.paths.insert(own);
    }

    /// The graph of each folder.
    fn graphs(&self) -> BTreeMap<Vec<String>, Graph> {
        let mut graphs: BTreeMap<Vec<String>, Graph> = BTreeMap::new();
        for (own, named) in &self.named {
            let depth = own.iter().zip(named).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (own.get(depth), named.get(depth)) else { continue };
            if self.paths.iter().any(|path| path.starts_with(&named[..=depth])) {
                let graph = graphs.entry(own[..depth].to_vec()).or_default();
                graph.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        graphs
    }
}

/// The modules that a file declares for tests only.
fn test_modules(text: &str) -> Vec<String> {
    let parts = text.split("#[cfg(test)]\n").skip(1);
    let declared = parts.filter_map(|part| {
        let line = part.lines().find(|line| !line.trim_start().starts_with("#["))?;
        line.trim_start().strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
    });
    declared.collect()
}

/// Words, `::` and other characters, without comments and texts.
fn tokens(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut tokens: Vec<String> = Vec::new();
    let mut is_text = false;
    let mut before = ' ';
    for c in code.chars() {
        if c == '"' && before != '\\' && before != '\'' {
            is_text = !is_text;
        } else if !is_text && (c.is_alphanumeric() || c == '_') {
            match tokens.last_mut() {
                Some(word) if before.is_alphanumeric() || before == '_' => word.push(c),
                _ => tokens.push(c.to_string()),
            }
        } else if !is_text && c == ':' && before == ':' && tokens.last().is_some_and(|t| t == ":") {
            *tokens.last_mut().expect("just seen") = "::".to_owned();
        } else if !is_text && !c.is_whitespace() {
            tokens.push(c.to_string());
        }
        before = c;
    }
    tokens
}

/// The paths that begin with `crate` or `super`; those of a list in braces one by one.
fn paths(tokens: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if matches!(&*tokens[i], "crate" | "super") && (i == 0 || tokens[i - 1] != "::") {
            i = path(tokens, i, &[], &mut found);
        } else {
            i += 1;
        }
    }
    found
}

/// Reads a path or a list of paths; answers what is behind it.
fn path(tokens: &[String], start: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let (mut i, mut path_) = (start, before.to_vec());
    loop {
        match tokens.get(i).map(String::as_str) {
            Some("{") => {
                i += 1;
                while tokens.get(i).is_some_and(|t| t != "}") {
                    let next = path(tokens, i, &path_, found);
                    i = next.max(i + 1);
                }
                return i + 1;
            }
            Some(word) if word.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                path_.push(word.to_owned());
                i += 1;
            }
            _ => return i,
        }
        if tokens.get(i).is_none_or(|t| t != "::") {
            found.push(path_);
            return i;
        }
        i += 1;
    }
}

/// Sets of two and more files that reach each other.
fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(node) = open.pop() {
            for next in graph.get(&node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|n| (n, reach(n))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (node, all) in &reached {
        let same: BTreeSet<String> =
            all.iter().filter(|n| reached.get(n).is_some_and(|r| r.contains(*node))).cloned().collect();
        if same.len() > 1 && !found.contains(&same) {
            found.push(same);
        }
    }
    found
}

/// All circles of the crates: the folder, and its files.
fn all() -> Vec<(String, BTreeSet<String>)> {
    let mut found = Vec::new();
    let crates = root().join("crates");
    let mut names: Vec<_> = fs::read_dir(&crates).expect("a folder").flatten().map(|e| e.path()).collect();
    names.sort();
    for path in names {
        for (folder, graph) in Modules::read(&path.join("src")).graphs() {
            let name = path.file_name().expect("a name").to_string_lossy();
            let folder = [&[name.into_owned(), "src".to_owned()], &folder[..]].concat().join("/");
            found.extend(circles(&graph).into_iter().map(|circle| (folder.clone(), circle)));
        }
    }
    found
}

/// The folder of BFQ, whose files have a test of their own (`arch.rs`).
const ELSEWHERE: &str = "core/src/sched/bfq";

#[test]
fn files_of_a_folder_import_each_other_in_no_circles_but_those_that_are_allowed() {
    let found: Vec<_> = all().into_iter().filter(|(folder, _)| folder != ELSEWHERE).collect();
    let is = |(folder, circle): &(String, BTreeSet<String>), allowed: &(&str, &[&str], &str)| {
        folder == allowed.0 && circle.iter().eq(allowed.1.iter())
    };
    let new: Vec<_> = found.iter().filter(|c| !ALLOWED.iter().any(|a| is(c, a))).collect();
    let gone: Vec<_> = ALLOWED.iter().filter(|a| !found.iter().any(|c| is(c, a))).collect();
    assert!(new.is_empty(), "circles that are not in the list: {new:#?}");
    assert!(gone.is_empty(), "these are not circles, or not all of these files are in them: {gone:#?}");
}

#[test]
fn lists_in_braces_and_paths_without_use_are_read() {
    let text = "use crate::a::{b::{self, C}, d};\nuse super::e;\n// use crate::f;\nfn g() -> super::super::h::I { \"crate::j\" }\nuse std::k;";
    let found: Vec<String> = paths(&tokens(text)).iter().map(|p| p.join("::")).collect();
    assert_eq!(
        found,
        ["crate::a::b::self", "crate::a::b::C", "crate::a::d", "super::e", "super::super::h::I"]
    );
}

#[test]
fn a_circle_of_three_is_found_and_a_chain_is_not() {
    let mut modules = Modules::default();
    modules.file(vec!["x".into(), "a".into()], "use super::b::B;");
    modules.file(
        vec!["x".into(), "b".into()],
        "use crate::x::c;\n#[cfg(test)]\nmod tests { use super::super::d; }",
    );
    modules.file(vec!["x".into(), "c".into(), "inner".into()], "use super::super::a::A;");
    modules.file(vec!["x".into(), "d".into()], "use super::a::A;");
    let graphs = modules.graphs();
    let found = circles(&graphs[&vec!["x".to_owned()]]);
    assert_eq!(found, [BTreeSet::from(["a", "b", "c"].map(str::to_owned))]);
}
