//! Which seeds to run, and what to say when one fails.
//!
//! `FAIRHEAD_SEEDS` is how many cases each scheduler gets (default 8, many more where a case is small),
//! `FAIRHEAD_SEED` what they are drawn from: a number such as `0x1f`, or any text, for example a commit hash.
//! A failing case prints its own number; run with that number and one case to see it again. `FAIRHEAD_LOG=1`
//! prints every operation. Of a failing storm a short case is printed as well (`shrink.rs`).

use super::chance::{GOLDEN, mix};
use std::cell::Cell;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub(crate) const CASES: u64 = 8;

/// The seed that a text stands for: `0x…` is that number, anything else is hashed.
//= G. Fowler, L. Noll, K. Vo, FNV-1a, 64 bits
pub(crate) fn parse(text: &str) -> u64 {
    if let Some(Ok(n)) = text.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16)) {
        return n;
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

thread_local! {
    static ABOUT: Cell<&'static str> = const { Cell::new("") };
    static LOGS_ALL: Cell<bool> = const { Cell::new(false) };
}

/// Says which scheduler is being driven, for the message when something fails.
pub(crate) fn about(scheduler: &'static str) {
    ABOUT.set(scheduler);
}

/// Whether to print every operation.
pub(crate) fn verbose() -> bool {
    LOGS_ALL.get() || env::var_os("FAIRHEAD_LOG").is_some()
}

/// From now on, this thread prints every operation, or only if `FAIRHEAD_LOG` says so.
pub(crate) fn log_all(on: bool) {
    LOGS_ALL.set(on);
}

/// Runs `case` with each seed; the first case gets the base seed itself.
pub(crate) fn each(test: &str, case: impl FnMut(u64)) {
    each_of(test, CASES, case);
}

/// Runs a small case with `cases` seeds unless `FAIRHEAD_SEEDS` says otherwise.
pub(crate) fn each_of(test: &str, cases: u64, case: impl FnMut(u64)) {
    run(test, number("FAIRHEAD_SEEDS").unwrap_or(cases), case);
}

/// Runs a long case with one seed for each eight plans of `FAIRHEAD_PLANS` (default 40).
pub(crate) fn each_long(test: &str, case: impl FnMut(u64)) {
    let cases = number("FAIRHEAD_PLANS").unwrap_or(40).div_ceil(8);
    run(test, number("FAIRHEAD_SEEDS").map_or(cases, |n| n.min(cases)), case);
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn run(test: &str, cases: u64, mut case: impl FnMut(u64)) {
    let base = env::var("FAIRHEAD_SEED").map_or(1, |text| parse(&text));
    for i in 0..cases {
        let seed = if i == 0 { base } else { mix(base.wrapping_add(i.wrapping_mul(GOLDEN))) };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(seed))) {
            let about = ABOUT.get();
            eprintln!("{test}: seed {seed:#x} fails in {about} (case {i} of {cases}); to see it again:");
            let binary = match env!("CARGO_CRATE_NAME") {
                // In a test of another crate, whose name is not known here.
                "fairhead_suite" => String::new(),
                "fairhead_core" => format!(" --profile sim -p fairhead-core --lib -- {test}"),
                // Its thread has the test's whole name, but for a run with one thread.
                program => {
                    let thread = std::thread::current();
                    let name = thread.name().filter(|name| name.ends_with(test)).unwrap_or(test);
                    format!(" --profile sim -p fairhead-core --test {program} -- {name}")
                }
            };
            eprintln!("  FAIRHEAD_SEED={seed:#x} FAIRHEAD_SEEDS=1 FAIRHEAD_LOG=1 cargo test{binary}");
            resume_unwind(panic);
        }
    }
}
