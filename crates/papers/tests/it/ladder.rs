//! Every switch of BFQ does what its description says, on the load that it was written for.
//!
//! All figures, in whole numbers, must equal those in `golden/ladder.txt`; a change that moves them says why
//! in its commit and in the CHANGELOG's *Scheduling behaviour*, and rewrites the file with
//! `FAIRHEAD_BLESS=1`. The claims are judged besides, whatever the file says.

use fairhead_core::sched::any::preset;
use fairhead_papers::ladder::{SCENARIOS, SWITCHES, Verdict, rungs, without_each};
use fairhead_sim::{job, parallel};
use std::fmt::Write as _;

fn verdicts() -> Vec<Verdict> {
    let judge = |i: usize| SCENARIOS[i].judge(1).expect("a valid scenario");
    parallel::map(SCENARIOS.len(), parallel::available(), &|_| {}, judge)
}

#[test]
fn every_switch_makes_the_difference_that_it_claims() {
    let verdicts = verdicts();
    let mut table = String::from("# switch | figure | without | with | reference\n");
    for (s, v) in SCENARIOS.iter().zip(&verdicts) {
        let reference = v.reference.map_or("-".to_owned(), |r| r.to_string());
        writeln!(table, "{} | {} | {} | {} | {reference}", s.switch, s.measure.title(), v.without, v.with)
            .expect("writing to a string");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ladder.txt");
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        std::fs::write(path, &table).expect("a writable source tree");
    }
    let wrong: Vec<_> = SCENARIOS
        .iter()
        .zip(&verdicts)
        .filter(|(s, v)| v.holds() != s.miss.is_none())
        .map(|(s, v)| {
            let what = if v.holds() { "holds, but is listed as missed" } else { "does not hold" };
            format!("{}: {} {what}: {v:?}", s.switch, s.claim)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let golden = std::fs::read_to_string(path).expect("the golden table");
    assert!(golden == table, "figures have moved; see the head of this file\n{table}");
}

#[test]
fn every_switch_of_the_series_has_a_scenario() {
    for s in SWITCHES.iter().filter(|s| s.patch.is_some()) {
        assert_eq!(SCENARIOS.iter().filter(|x| x.switch == s.name).count(), 1, "{}", s.name);
    }
    for s in SCENARIOS {
        assert!(SWITCHES.iter().any(|x| x.name == s.switch), "{} is no switch", s.switch);
        assert!(s.factor_pct >= 120, "{}: a fifth is the least that counts", s.switch);
        for text in [Some(s.jobs), s.reference.map(|r| r.0)].into_iter().flatten() {
            let jobs = job::parse(text, s.switch).unwrap_or_else(|e| panic!("{e}"));
            assert!(jobs.notes.is_empty(), "{}: {:?}", s.switch, jobs.notes);
        }
    }
}

#[test]
fn a_ladder_leads_from_v0_to_all_on_one_switch_at_a_time() {
    let config = |name| (preset(name).expect("built in").config)();
    let rungs = rungs();
    assert_eq!(rungs.len(), 1 + SWITCHES.len());
    assert_eq!(rungs[0].config, config("bfq-v0"));
    assert_eq!(rungs[SWITCHES.len()].config, config("bfq").live());
    let of_2016 = SWITCHES.iter().filter(|s| s.patch.is_some()).count();
    assert_eq!(rungs[of_2016].config, config("bfq-v8"));
    let value = |i: usize, name: &str| rungs[i].config.get(name);
    for (i, s) in SWITCHES.iter().enumerate() {
        for t in rungs[i].config.list() {
            let may_change = t.name == s.name || (t.name == "low_latency" && s.name == "interactive");
            assert_eq!(value(i, t.name) != value(i + 1, t.name), may_change, "{}: {}", s.name, t.name);
        }
    }
    let without = without_each();
    assert_eq!(without[0].config, config("bfq").live());
    for (rung, s) in without[1..].iter().zip(SWITCHES) {
        assert_eq!((rung.config.get(s.name), rung.config.get("slice_idle")), (Some(0), Some(8_000_000)));
    }
}
