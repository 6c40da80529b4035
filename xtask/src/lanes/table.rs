//! `cargo xtask lanes`: what the steps of the last run took, as a table in Markdown, and the critical path.
//!
//! Seconds of wall time and of processors, what of these was compiling, and how many crates were compiled in
//! which profiles. Steps that run beside each other overlap in wall time, not in processor time.

use super::cost::{self, Call, Row};
use super::list::{ALONE, BESIDE, BUILD, FETCH, GUEST, NIGHTLY, Step, TESTS};
use std::collections::BTreeMap;

/// The parts of a lane, with what they are called in the table.
const PARTS: [(&str, &[Step]); 7] = [
    ("compiling", BUILD),
    ("fetching, meanwhile", FETCH),
    ("one after another", TESTS),
    ("in a guest", GUEST),
    ("beside", BESIDE),
    ("alone", ALONE),
    ("at night", NIGHTLY),
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
        wall_of.insert(part, rows.iter().map(|row| row.wall).sum::<f64>());
    }
    if wall_of.is_empty() {
        return Err("no run is recorded in target/lanes; `cargo xtask test` leaves one".to_owned());
    }
    let wall = |part: &str| wall_of.get(part).copied().unwrap_or(0.0);
    let longest = |parts: &[&'static str]| {
        *parts.iter().max_by(|a, b| wall(a).total_cmp(&wall(b))).expect("there are parts")
    };
    let path = [
        longest(&["compiling", "fetching, meanwhile"]),
        longest(&["one after another", "in a guest", "beside"]),
        "alone",
    ];
    let sum: f64 = path.iter().map(|part| wall(part)).sum();
    let names: Vec<String> = path.iter().map(|part| format!("{part} {:.0}", wall(part))).collect();
    println!(
        "\nCritical path: {}, together {sum:.0} s. Processors: {cpu:.0} s, {compiling:.0} s of them compiling.",
        names.join(", ")
    );
    Ok(())
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
    fn crates_are_counted_by_profile() {
        let call =
            |krate: &str, profile: &str| Call { krate: krate.into(), profile: profile.into(), cpu: 1.0 };
        let calls = [call("a", "sim"), call("b", "sim"), call("a", "debug")];
        assert_eq!(by_profile(&calls), "1 × debug, 2 × sim");
    }
}
