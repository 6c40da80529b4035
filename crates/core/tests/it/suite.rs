//! What holds for every scheduler, tried with random operations: one macro line per preset.
//!
//! Each case is a storm (random operations with faults, then everything drains; see `support/storm.rs`) and a
//! calm (a closed world in which no request waits beyond the documented bound; see `support/calm.rs`), under
//! the oracles of `support/ledger.rs` and `support/subject.rs`:
//!
//! - each insert or requeue is issued exactly once, alone or merged, and completes exactly once;
//! - merged requests cover exactly the union of their sectors, in one direction, within the limits;
//! - a `Hold` has a timer or a completion coming to end it; `Empty` means that nothing waits;
//! - an expired timer is gone once it has been called; spurious timer calls change nothing;
//! - the same events give the same decisions, and the same trace, with a call for each request and in
//!   batches;
//! - `check()` passes after every event; nothing touches the heap after `new`.
//!
//! How to choose seeds and repeat a failing one: `support/seeds.rs`.

use crate::support::bounds;
use crate::support::calm::Calm;
use crate::support::chance::{Chance, Draw};
use crate::support::seeds;
use crate::support::shrink;
use crate::support::storm::Storm;
use crate::support::subject::take_largest_batches;
use fairhead_core::sched::any::{AnyConfig, PRESETS, Preset};

/// How many requests a calm case serves.
const CALM_REQUESTS: u64 = 400;

fn run(test: &str, preset: &str) {
    run_preset(test, PRESETS.iter().find(|p| p.name == preset).expect("a preset of that name"));
}

fn run_preset(test: &str, preset: &'static Preset) {
    shrink::each(test, |chance| {
        Storm::draw(chance, preset).run();
        Calm::draw(chance, preset).run(CALM_REQUESTS);
    });
}

/// One test per preset, and the list of those that have one.
macro_rules! suite {
    ($($test:ident: $preset:literal,)*) => {
        $(
            #[test]
            fn $test() {
                run(stringify!($test), $preset);
            }
        )*

        const COVERED: &[&str] = &[$($preset),*];
    };
}

suite! {
    noop: "noop",
    deadline: "deadline",
    deadline_2_6_9: "deadline-2.6.9",
    mq_deadline: "mq-deadline",
    kyber: "kyber",
    anticipatory: "as",
    anticipatory_2_6_9: "as-2.6.9",
    cfq_2_6_10: "cfq-2.6.10",
    cfq_ts1: "cfq-ts1",
    cfq_ts2: "cfq-ts2",
    cfq: "cfq",
    cfq_2_6_33: "cfq-2.6.33",
    cfq_2_6_34: "cfq-2.6.34",
    bfq: "bfq",
    bfq_v0: "bfq-v0",
    bfq_v8: "bfq-v8",
    noop_groups: "noop+groups",
    deadline_groups: "deadline+groups",
    deadline_2_6_9_groups: "deadline-2.6.9+groups",
    anticipatory_groups: "as+groups",
    anticipatory_2_6_9_groups: "as-2.6.9+groups",
    cfq_groups: "cfq+groups",
    cfq_2_6_33_groups: "cfq-2.6.33+groups",
}

/// BFQ as live engines run it.
#[test]
fn bfq_live() {
    const LIVE: &Preset = &Preset {
        name: "bfq",
        about: "with what is our own",
        config: || AnyConfig::Bfq(fairhead_core::sched::bfq::Config::default()).live(),
    };
    run_preset("bfq_live", LIVE);
}

/// The twin of a calm gets what it gets in batches.
#[test]
fn every_scheduler_goes_through_batches_of_several() {
    for preset in PRESETS {
        let _ = take_largest_batches();
        let mut largest = [0, 0];
        for seed in 0..40 {
            Calm::draw(&mut Chance::Seed(seed), preset).run(100);
            let these = take_largest_batches();
            largest = [0, 1].map(|i| these[i].max(largest[i]));
            if largest.iter().all(|n| *n > 2) {
                break;
            }
        }
        assert!(largest.iter().all(|n| *n > 2), "{}: the largest batches have {largest:?}", preset.name);
    }
}

#[test]
fn every_preset_has_its_line() {
    let mut names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
    names.sort_unstable();
    let mut covered = COVERED.to_vec();
    covered.sort_unstable();
    assert_eq!(names, covered, "add or remove lines in `suite!`");
    let mut bounded: Vec<_> = bounds::covered().collect();
    bounded.sort_unstable();
    assert_eq!(names, bounded, "how long may a request wait? add or remove lines in support/bounds.rs");
}

#[test]
fn a_hexadecimal_seed_is_that_number_and_any_other_text_a_seed_too() {
    assert_eq!(seeds::parse("0x1f"), 0x1f);
    assert_ne!(seeds::parse("9cc4580"), seeds::parse("9cc4581"));
}

/// The draws that a case does not need in order to fail are taken away, and its draws as bytes are the same.
#[test]
fn a_failing_case_is_made_short() {
    let case = |chance: &mut Chance| {
        let mut high = Vec::new();
        for _ in 0..1000 {
            if chance.exhausted() {
                return;
            }
            let _ = chance.below(70_000);
            high.extend(Some(chance.below(1000)).filter(|&n| n > 900));
            assert!(high.len() < 3, "{high:?}");
        }
    };
    let (result, draws) = shrink::record(7, &case);
    assert!(result.is_err() && draws.len() > 20, "{} draws", draws.len());
    let short = shrink::shortest(draws.clone(), &case);
    assert_eq!(short.len(), 3 * 2, "three draws of each kind");
    let message = |draws: &[Draw]| {
        let case = std::panic::AssertUnwindSafe(|| case(&mut Chance::of(draws)));
        std::panic::catch_unwind(case).unwrap_err().downcast_ref::<String>().cloned()
    };
    assert_eq!(message(&draws), result.unwrap_err().downcast_ref::<String>().cloned());
    assert!(message(&short).is_some());
}
