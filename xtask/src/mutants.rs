//! How many small changes of the code the tests notice.
//!
//! `cargo mutants` lists small changes (mutants): a comparison turned round, a function that returns a
//! constant, a branch left out. A number of them is drawn with a seed from `core`, from the engine of `sim`
//! and from the request queue of `live`. Each is applied by itself to a copy of the last commit and goes
//! through the [stages] of its package, cheapest first: all of them are tests that CI runs too, on fewer
//! seeds. The first stage that fails, or takes too long, has caught it. A change that does not compile does
//! not count.
//!
//! The results are lines in `target/mutants/COMMIT-SEED.tsv`: verdict, stage, change. A run that was
//! interrupted continues there; the first N of a seed are always the same ones.
//!
//! It does not run the whole of CI for each change, so a survivor may still be caught by the tests of the
//! program or by more seeds. It does not know which survivors behave as the original does.

use crate::json::Json;
use crate::shell::{capture, cargo, command, exists, root};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is changed: a package, and the part of its files.
const PLACES: &[(&str, &str)] = &[
    ("fairhead-core", "crates/core/src/**"),
    ("fairhead-sim", "crates/sim/src/engine/**"),
    ("fairhead-live", "crates/live/src/request_queue.rs"),
];

/// Seconds that a stage may take to build, and to run. The longest takes a fifth of that without neighbours.
const LIMITS: (u32, u32) = (600, 400);

/// Seeds for each scheduler in stages with drawn cases; CI has 450, and 240 plans.
const FEW: [(&str, &str); 4] =
    [("FAIRHEAD_SEEDS", "8"), ("FAIRHEAD_PLANS", "16"), ("FAIRHEAD_SMALL", "3"), ("PROPTEST_CASES", "64")];

/// The tests that a change of a package goes through, cheapest first, as arguments of `cargo test`.
fn stages(package: &str) -> &'static [&'static str] {
    match package {
        "fairhead-core" => &[
            "--package fairhead-core --lib",
            "--package fairhead-sim --test same_bytes",
            "--package fairhead-core --profile sim --tests",
            "--package fairhead-sim --package fairhead-conform --package fairhead-papers --profile sim --tests",
        ],
        "fairhead-sim" => &[
            "--package fairhead-sim --test same_bytes",
            "--package fairhead-sim --lib",
            "--package fairhead-sim --package fairhead-papers --profile sim --tests",
        ],
        _ => &["--package fairhead-live --lib", "--package fairhead-live --profile sim --tests"],
    }
}

/// A change of one place in a file.
struct Mutant {
    package: String,
    file: String,
    name: String,
    replacement: String,
    /// Lines and columns, from 1; the end is behind the last character.
    span: [(usize, usize); 2],
}

impl Mutant {
    /// One of the list of `cargo mutants --list --json`.
    fn read(json: &Json) -> Option<Self> {
        let text = |name| json.get(name).and_then(Json::text).map(str::to_owned);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lines and columns")]
        let place = |end| {
            let place = json.get("span")?.get(end)?;
            let number = |name| place.get(name).and_then(Json::number).map(|n| n as usize);
            Some((number("line")?, number("column")?))
        };
        Some(Self {
            package: text("package")?,
            file: text("file")?,
            name: text("name")?,
            replacement: text("replacement")?,
            span: [place("start")?, place("end")?],
        })
    }

    /// The file's text with the change in it.
    fn apply(&self, text: &str) -> Option<String> {
        let at = |(line, column): (usize, usize)| {
            let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
            let (offset, _) = text[start..].char_indices().nth(column - 1)?;
            Some(start + offset)
        };
        let (start, end) = (at(self.span[0])?, at(self.span[1])?);
        Some([&text[..start], &self.replacement, &text[end..]].concat())
    }
}

/// What became of a change.
enum Verdict {
    Caught(&'static str),
    Survived,
    DoesNotCompile,
}

/// Draws `count` changes with `seed` and tries each; the sum is the last line.
pub(crate) fn run(count: usize, seed: u64) -> Result<(), String> {
    if !exists("cargo-mutants") {
        return Err(
            "there is no cargo-mutants here; `cargo install --locked cargo-mutants` makes it".to_owned()
        );
    }
    let tree = copy()?;
    let commit = said(command("git", "rev-parse --short HEAD").current_dir(&tree))?;
    let path = root().join(format!("target/mutants/{}-{seed}.tsv", commit.trim()));
    let mut lines = fs::read_to_string(&path).unwrap_or_default();
    for mutant in drawn(list(&tree)?, seed).iter().take(count) {
        if lines.lines().any(|line| line.ends_with(&format!("\t{}", mutant.name))) {
            continue;
        }
        let line = match attempt(&tree, mutant)? {
            Verdict::Caught(stage) => format!("caught\t{stage}\t{}", mutant.name),
            Verdict::Survived => format!("SURVIVED\t\t{}", mutant.name),
            Verdict::DoesNotCompile => format!("does not compile\t\t{}", mutant.name),
        };
        println!("{line}");
        let _ = writeln!(lines, "{line}");
        fs::write(&path, &lines).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let of = |verdict: &str| lines.lines().filter(|l| l.starts_with(verdict)).count();
    let (caught, survived) = (of("caught"), of("SURVIVED"));
    println!("{caught} of {} caught ({})", caught + survived, path.display());
    Ok(())
}

/// A copy of the last commit in `target/mutants/tree`, without changes.
fn copy() -> Result<PathBuf, String> {
    let tree = root().join("target/mutants/tree");
    if !tree.exists() {
        fs::create_dir_all(root().join("target/mutants")).map_err(|e| e.to_string())?;
        capture(command("git", "clone --quiet --shared .").arg(&tree))?;
    }
    let head = said(&mut command("git", "rev-parse HEAD"))?;
    capture(command("git", "fetch --quiet origin HEAD").current_dir(&tree))?;
    capture(command("git", "checkout --quiet --force --detach").arg(head.trim()).current_dir(&tree))?;
    Ok(tree)
}

fn said(command: &mut Command) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&capture(command)?.stdout).into_owned())
}

/// All changes there are, of all [places](PLACES).
fn list(tree: &Path) -> Result<Vec<Mutant>, String> {
    let mut all = Vec::new();
    for (package, files) in PLACES {
        let mut cargo = cargo("mutants --list --json --no-config --package");
        let text = said(cargo.arg(package).args(["--file", files]).current_dir(tree))?;
        let json = Json::read(&text).map_err(|e| format!("cargo mutants --list --json: {e}"))?;
        all.extend(json.list().iter().filter_map(Mutant::read));
    }
    if all.is_empty() { Err("cargo mutants lists nothing".to_owned()) } else { Ok(all) }
}

/// The list in an order that follows from the seed.
//= G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64)
fn drawn(mut all: Vec<Mutant>, mut state: u64) -> Vec<Mutant> {
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for i in (1..all.len()).rev() {
        #[allow(clippy::cast_possible_truncation, reason = "below the length")]
        all.swap(i, (next() % (i as u64 + 1)) as usize);
    }
    all
}

/// Applies a change, runs the stages of its package, and takes it back.
fn attempt(tree: &Path, mutant: &Mutant) -> Result<Verdict, String> {
    let path = tree.join(&mutant.file);
    let original = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let changed = mutant.apply(&original).ok_or_else(|| format!("{}: no such place", mutant.name))?;
    let write = |text: &str| fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
    write(&changed)?;
    let verdict = stages(&mutant.package).iter().enumerate().find_map(|(i, stage)| {
        match (test(tree, &format!("{stage} --no-run"), LIMITS.0), i) {
            (false, 0) => Some(Verdict::DoesNotCompile),
            // The rest of the workspace uses what the change took away.
            (false, _) => Some(Verdict::Caught(stage)),
            (true, _) => (!test(tree, stage, LIMITS.1)).then_some(Verdict::Caught(stage)),
        }
    });
    write(&original)?;
    Ok(verdict.unwrap_or(Verdict::Survived))
}

/// Whether `cargo test` with these arguments succeeds in time.
fn test(tree: &Path, args: &str, seconds: u32) -> bool {
    let mut test = command("timeout", &format!("--kill-after=5 {seconds} cargo test --quiet {args}"));
    test.arg("--target-dir").arg(root().join("target/mutants/build")).current_dir(tree).envs(FEW);
    test.env("CARGO_INCREMENTAL", "1").env("RUSTFLAGS", "--cap-lints=allow");
    test.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"[{"diff": "a\n\tb", "file": "src/a.rs", "package": "p", "name": "src/a.rs:2:9: replace > with <",
        "replacement": "<", "span": {"start": {"line": 2, "column": 9}, "end": {"line": 2, "column": 10}}}]"#;

    #[test]
    fn a_change_is_read_and_applied_where_it_says() {
        let json = Json::read(LIST).unwrap();
        let mutant = Mutant::read(&json.list()[0]).unwrap();
        assert_eq!(mutant.apply("Ω ≥ 1\néé if a > b\nrest\n").unwrap(), "Ω ≥ 1\néé if a < b\nrest\n");
        assert!(mutant.apply("one line\n").is_none());
    }

    #[test]
    fn a_seed_draws_the_same_order_and_another_seed_another() {
        let some = || {
            let json = Json::read(LIST).unwrap();
            let one = |i: usize| Mutant { name: i.to_string(), ..Mutant::read(&json.list()[0]).unwrap() };
            (0..50).map(one).collect::<Vec<_>>()
        };
        let names = |seed| drawn(some(), seed).into_iter().map(|m| m.name).collect::<Vec<_>>();
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        let mut all = names(3);
        all.sort_by_key(|n| n.parse::<usize>().unwrap());
        assert_eq!(all, (0..50).map(|i| i.to_string()).collect::<Vec<_>>());
    }
}
