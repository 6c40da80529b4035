//! `cargo xtask lanes`: what the steps of the last run took, as a table in Markdown, and the critical path.
//!
//! Seconds of wall time and of processors, what of these was compiling, and how many crates were compiled in
//! which profiles. Steps that run beside each other overlap in wall time, not in processor time.

use super::cost::{self, Call, Row};
use super::list::{BESIDE, BUILD, CLOCKS, EARLY, FETCH, GUEST, LINT, NIGHTLY, Step, TESTS};
use std::collections::BTreeMap;

/// The parts of a lane, with what they are called in the table.
const PARTS: [(&str, &[Step]); 9] = [
    ("compiling", BUILD),
    ("fetching", FETCH),
    ("tests", TESTS),
    ("clocks", CLOCKS),
    ("in a guest", GUEST),
    ("early", EARLY),
    ("linting", LINT),
    ("beside", BESIDE),
    ("at night", NIGHTLY),
];

/// The parts that wait for one another.
const LINES: [&[&str]; 4] = [
    &["compiling", "tests", "clocks"],
    &["compiling", "tests", "linting"],
    &["fetching", "early", "beside"],
    &["fetching", "in a guest"],
];

/// Prints the table.
pub(crate) fn print() -> Result<(), String> {
    println!("| step | wall | processors | of it compiling | crates compiled |\n|---|---:|---:|---:|---|");
    let (mut wall_of, mut cpu, mut compiling) = (BTreeMap::new(), 0.0, 0.0);
    for (part, steps) in PARTS {
        let rows: Vec<Row> = steps.iter().filter_map(|step| cost::read(step.name)).collect();
        if rows.is_empty() {
            continue;
        }
        println!("| *{part}* | | | | |");
        for row in &rows {
            let calls = cost::calls(&row.name);
            // The sum of nothing is -0.
            let compiled: f64 = calls.iter().map(|call| call.cpu).sum::<f64>() + 0.0;
            let Row { name, wall, cpu: of_row, .. } = row;
            println!("| {name} | {wall:.0} | {of_row:.0} | {compiled:.0} | {} |", by_profile(&calls));
            cpu += of_row;
            compiling += compiled;
        }
        let spans: Vec<_> = rows.iter().filter_map(cost::span).collect();
        wall_of.insert(part, span(&spans));
    }
    if wall_of.is_empty() {
        return Err("no run is recorded in target/lanes; `cargo xtask test` leaves one".to_owned());
    }
    let wall = |part: &str| wall_of.get(part).copied().unwrap_or(0.0);
    let length = |line: &[&str]| line.iter().map(|part| wall(part)).sum::<f64>();
    let path = LINES.into_iter().max_by(|a, b| length(a).total_cmp(&length(b))).expect("there are lines");
    let sum = length(path);
    let names: Vec<String> = path.iter().map(|part| format!("{part} {:.0}", wall(part))).collect();
    println!(
        "\nCritical path: {}, together {sum:.0} s. Processors: {cpu:.0} s, {compiling:.0} s of them compiling.",
        names.join(", ")
    );
    Ok(())
}

/// From the beginning of the first step to the end of the last one. Steps that were run again by themselves,
/// later, do not make it longer than they took.
fn span(spans: &[(f64, f64)]) -> f64 {
    let first = spans.iter().map(|(began, _)| *began).fold(f64::INFINITY, f64::min);
    let last = spans.iter().map(|(_, ended)| *ended).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = spans.iter().map(|(began, ended)| ended - began).sum();
    (last - first).min(sum).max(0.0)
}

/// How many crates were compiled for each profile's folder.
fn by_profile(calls: &[Call]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        *counts.entry(&call.profile).or_default() += 1;
    }
    counts.iter().map(|(profile, n)| format!("{n} × {profile}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_beside_something_else_makes_a_part_no_longer() {
        assert!((span(&[(10.0, 20.0), (12.0, 30.0)]) - 20.0).abs() < 1e-9);
        assert!((span(&[(10.0, 20.0), (5000.0, 5010.0)]) - 20.0).abs() < 1e-9, "run again, later");
        assert!(span(&[]).abs() < 1e-9);
    }

    #[test]
    fn crates_are_counted_by_profile() {
        let call =
            |krate: &str, profile: &str| Call { krate: krate.into(), profile: profile.into(), cpu: 1.0 };
        let calls = [call("a", "sim"), call("b", "sim"), call("a", "debug")];
        assert_eq!(by_profile(&calls), "1 × debug, 2 × sim");
    }
}
