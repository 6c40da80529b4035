//! How many small changes of the code the tests notice.
//!
//! ```text
//! fairhead-mutants [COUNT [SEED]] [--rules] [--within PATH] [--again FILE]
//! ```
//!
//! 1. [`find`] lists small changes of `core`, of the engine of `sim` and of the request queue of `live`, in a
//!    copy of the last commit ([`tree`]). A seed [draws](draw) COUNT of them.
//! 2. [`rewrite`] writes them all into the copy, each behind a condition, so that one [`build`] is enough.
//!    Those that do not compile are left out and others drawn in their place.
//! 3. The [test programs](suite) run once without a change, which shows how long they take and which test
//!    reaches which change. Then they run with one change at a time, only the tests that reach it, the
//!    quickest program first, until a test fails. This is done in stages: the slower tests are built when the
//!    others are through, and run with the changes that are left.
//!
//! The [verdicts] are lines in `target/mutants/COMMIT-SEED.tsv`: verdict, test, change. A run that was
//! interrupted continues there; the first N of a seed are always the same ones. `--within PATH` draws from
//! the files whose path begins so. `--again FILE` tries only those that survived according to FILE, for
//! example with tests that came since.
//!
//! `--rules` draws from the rules of BFQ, and runs the unit tests of the rule that is changed and no others.
//! It has a copy and verdicts of its own in `target/mutants/rules`.
//!
//! The tests are those that CI runs, with fewer drawn cases (`FAIRHEAD_SEEDS` and others in the environment
//! raise them). The tests of the program and of fronts are not among them, so a survivor may still be caught
//! there. A value that the compiler computes has no change in it. It does not know which survivors behave as
//! the original does.

mod build;
mod draw;
mod find;
mod rewrite;
mod suite;
mod tree;
mod verdicts;

use find::Change;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use suite::{Ended, Suite};
use tree::Tree;
use verdicts::{Verdict, Verdicts};

/// The runtime has bits for this many changes.
const COUNT_MAX: usize = 4096;

const USAGE: &str = "usage: fairhead-mutants [COUNT [SEED]] [--rules] [--within PATH] [--again FILE]";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    count: usize,
    seed: u64,
    rules: bool,
    within: String,
    again: Option<PathBuf>,
}

fn options(args: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let (mut numbers, mut rules, mut within, mut again) = (Vec::new(), false, String::new(), None);
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rules" => rules = true,
            "--within" => within = args.next().ok_or("--within: the beginning of a path is missing")?,
            "--again" => again = Some(args.next().ok_or("--again: a file of verdicts is missing")?.into()),
            _ => numbers.push(arg.parse().map_err(|_| format!("{arg}: expected a whole number\n{USAGE}"))?),
        }
    }
    let (count, seed) = match numbers[..] {
        [] => (if rules { 20 } else { 300 }, 1),
        [count] => (count, 1),
        [count, seed] => (count, seed),
        _ => return Err(USAGE.to_owned()),
    };
    let count = usize::try_from(count).ok().filter(|count| (1..=COUNT_MAX).contains(count));
    let count = count.ok_or_else(|| format!("a count is a number from 1 to {COUNT_MAX}"))?;
    Ok(Options { count, seed, rules, within, again })
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies in the root");
    let folder = root.join(if options.rules { "target/mutants/rules" } else { "target/mutants" });
    let mut tree = Tree::new(root, folder)?;
    let path = tree.folder.join(format!("{}-{}.tsv", tree.commit, options.seed));
    let mut verdicts = Verdicts::open(&path)?;
    let mut all = tree.changes()?;
    all.retain(|change| change.file.starts_with(&options.within));
    all.retain(|change| !options.rules || change.file.starts_with(tree::RULES));
    println!("{} changes of commit {}, seed {}", all.len(), tree.commit, options.seed);
    let mut order = draw::shuffled(all, options.seed);
    if let Some(file) = &options.again {
        let before = verdicts::read(&tree::read(file)?);
        order.retain(|change| before.get(&change.name) == Some(&Verdict::Survived));
    }
    let drawn = viable(&mut tree, &order, options.count, &mut verdicts)?;
    go_through(&tree, &drawn, options.rules, &mut verdicts)?;
    // With those that do not compile, up to the last one that was drawn.
    let seen = order.iter().position(|change| Some(change) == drawn.last()).map_or(0, |last| last + 1);
    let named = order[..seen].iter().map(|change| change.name.as_str());
    let all: Vec<(&str, Verdict)> = named.filter_map(|name| Some((name, verdicts.of(name)?))).collect();
    print!("\n{}{}\n", verdicts::table(&all), path.display());
    Ok(())
}

/// The first `count` changes that compile, written into the tree; the others are noted.
fn viable(
    tree: &mut Tree,
    order: &[Change],
    count: usize,
    verdicts: &mut Verdicts,
) -> Result<Vec<Change>, String> {
    let is_viable =
        |verdicts: &Verdicts, change: &Change| verdicts.of(&change.name) != Some(Verdict::DoesNotCompile);
    let is_new = order.iter().all(|change| is_viable(verdicts, change));
    // About one in ten does not compile. The compiler stops at its first kind of error: a round costs time.
    let surplus = if is_new { (count / 8 + 10).min(COUNT_MAX - count) } else { 0 };
    for count in [count + surplus, count] {
        loop {
            let viable = order.iter().filter(|change| is_viable(verdicts, change));
            let some: Vec<&Change> = viable.take(count).collect();
            tree.write(&some)?;
            let crates = some.iter().filter_map(|change| change.file.split('/').nth(1)).collect();
            let faults = build::check(&tree.path(), &tree.folder.join("build"), &crates)?;
            if faults.is_empty() {
                break;
            }
            let mut to_blame: BTreeMap<u32, ()> = BTreeMap::new();
            for fault in &faults {
                let of_place = |fault: &build::Fault| tree.to_blame(&fault.file, &fault.bytes());
                let first = fault.iter().map(of_place).find(|numbers| !numbers.is_empty());
                to_blame.extend(first.unwrap_or_default().into_iter().map(|number| (number, ())));
            }
            if to_blame.is_empty() {
                return Err(format!("the copy does not compile, through no change: {:?}", faults[0]));
            }
            println!("{} of {} changes do not compile", to_blame.len(), some.len());
            for (number, ()) in to_blame {
                verdicts.note(&some[number as usize].name, Verdict::DoesNotCompile, "")?;
            }
        }
    }
    let viable = order.iter().filter(|change| is_viable(verdicts, change));
    Ok(viable.take(count).cloned().collect())
}

/// Runs the stages one after the other, each with the changes that no test has noticed before.
fn go_through(tree: &Tree, drawn: &[Change], rules: bool, verdicts: &mut Verdicts) -> Result<(), String> {
    let filter = if rules { "sched::bfq::rules::" } else { "" };
    let mut left: Vec<(u32, &Change)> = (0..).zip(drawn).collect();
    left.retain(|(_, change)| verdicts.of(&change.name).is_none());
    let mut reaching: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for stage in if rules { &[build::RULES_STAGE][..] } else { &build::STAGES[..] } {
        if left.is_empty() {
            break;
        }
        let programs = build::programs(&tree.path(), &tree.folder.join("build"), stage)?;
        let suites = suite::unchanged(programs, &tree.folder.join("reached"), filter)?;
        let (mut survivors, of) = (Vec::new(), left.len());
        for (done, (number, change)) in left.into_iter().enumerate() {
            progress(stage, done, of);
            let within = if rules { module(&change.file) } else { String::new() };
            match attempt(&suites, number, &within, reaching.entry(number).or_default())? {
                Some((verdict, how)) => note(verdicts, change, verdict, &how)?,
                None => survivors.push((number, change)),
            }
        }
        left = survivors;
    }
    for (number, change) in left {
        let programs = reaching.remove(&number).unwrap_or_default().join(" ");
        let how = if programs.is_empty() { "no test reaches it" } else { &programs };
        note(verdicts, change, Verdict::Survived, how)?;
    }
    Ok(())
}

fn note(verdicts: &mut Verdicts, change: &Change, verdict: Verdict, how: &str) -> Result<(), String> {
    println!("{}", verdicts::line(&change.name, verdict, how));
    verdicts.note(&change.name, verdict, how)
}

/// Runs the tests that reach a change until one notices it; `within` is the beginning of their names. The
/// programs that pass are added to `reaching`.
fn attempt(
    suites: &[Suite],
    number: u32,
    within: &str,
    reaching: &mut Vec<String>,
) -> Result<Option<(Verdict, String)>, String> {
    for suite in suites {
        let Some(tests) = suite.tests(number, within) else { continue };
        let name = &suite.program.name;
        match suite.run(number, &tests)? {
            Ended::Passed => reaching.push(name.clone()),
            Ended::Failed(test) => return Ok(Some((Verdict::Caught, format!("{name} {test}")))),
            Ended::TookTooLong => return Ok(Some((Verdict::TimedOut, name.clone()))),
        }
    }
    Ok(None)
}

/// The beginning of the names of a file's unit tests.
fn module(file: &str) -> String {
    let path = file.split_once("/src/").map_or(file, |(_, path)| path);
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    format!("{path}::")
}

fn progress(stage: &str, done: usize, of: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{done} of {of}: {stage} ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Options, String> {
        options(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn count_and_seed_have_defaults() {
        let some =
            |count, seed, rules| Ok(Options { count, seed, rules, within: String::new(), again: None });
        assert_eq!(of(&[]), some(300, 1, false));
        assert_eq!(of(&["--rules"]), some(20, 1, true));
        assert_eq!(of(&["7", "2"]), some(7, 2, false));
        let some = of(&["7", "--again", "a.tsv", "--within", "crates/sim"]).unwrap();
        assert_eq!((some.again, some.within.as_str()), (Some(PathBuf::from("a.tsv")), "crates/sim"));
    }

    #[test]
    fn a_bad_argument_is_named() {
        assert!(of(&["some"]).unwrap_err().starts_with("some: expected a whole number"));
        assert!(of(&["0"]).unwrap_err().contains("from 1 to 4096"));
        assert!(of(&["--again"]).unwrap_err().contains("is missing"));
        assert_eq!(of(&["1", "2", "3"]), Err(USAGE.to_owned()));
    }

    #[test]
    fn tests_of_a_rule_are_named_after_its_file() {
        assert_eq!(module("crates/core/src/sched/bfq/rules/burst.rs"), "sched::bfq::rules::burst::");
        assert_eq!(module("crates/core/src/sched/bfq/rules/mod.rs"), "sched::bfq::rules::");
    }
}
