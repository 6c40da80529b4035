//! Every order of up to five requests, under every built-in scheduler and all oracles: `support/small.rs`.

use crate::support::exhaust::Exhaust;
use crate::support::small;
use fairhead_core::sched::any::PRESETS;

macro_rules! small {
    ($($test:ident: $preset:literal,)*) => {
        $(
            #[test]
            fn $test() {
                let preset = PRESETS.iter().find(|p| p.name == $preset).expect("a preset of that name");
                small::run(&preset.into());
            }
        )*

        const COVERED: &[&str] = &[$($preset),*];
    };
}

small! {
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

#[test]
fn every_preset_has_its_line() {
    let mut names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
    names.sort_unstable();
    let mut covered = COVERED.to_vec();
    covered.sort_unstable();
    assert_eq!(names, covered, "add or remove lines in `small!`");
}

#[test]
fn exhaust_makes_every_choice_once() {
    let (mut choices, mut seen) = (Exhaust::default(), Vec::new());
    while choices.next_run() {
        let a = choices.choose(3);
        let after_one = choices.repeats();
        seen.push((a, if a == 1 { choices.choose(2) } else { 0 }, after_one, choices.repeats()));
    }
    // Only the third run begins as the run before it.
    assert_eq!(seen, [(0, 0, false, false), (1, 0, false, false), (1, 1, true, false), (2, 0, false, false)]);
}
