//! Makes a failing case short.
//!
//! A case draws all that happens in it from one [`Chance`], and bytes of a fuzzer are one kind of that. So
//! the draws of a failing seed are written down as bytes, and as many of them are taken away as can be while
//! the case still fails: first from the end, for a case ends early without bytes, then in pieces of half of
//! the rest, of a quarter, and so on. What remains is run once more with its operations printed.
//!
//! The generator stays one for seeds, for fuzzers and for this. A library that draws values of its own kind
//! (proptest) would need a second one, for the operations depend on what has happened: what is at the device,
//! when the next timer fires, which tags are free.
//
//= paper: A. Zeller, R. Hildebrandt 2002, "Simplifying and isolating failure-inducing input" (delta debugging)
//= paper: D. MacIver, A. Donaldson 2020, "Test-case reduction via test-case generation" (on the draws)

use super::chance::{self, Chance, Draw};
use super::seeds;
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

/// At most this many shorter cases are tried: a minute for the longest.
const TRIES_MAX: u32 = 2_000;

/// Pieces of up to this many draws are tried in all sizes.
const SMALL: usize = 12;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `case` with each seed. Before a failure is passed on, a shorter case that fails is printed, operation
/// by operation.
pub(crate) fn each(test: &str, case: impl Fn(&mut Chance)) {
    each_of(test, seeds::CASES, case);
}

/// Runs a case with `cases` seeds unless `FAIRHEAD_SEEDS` says otherwise.
pub(crate) fn each_of(test: &str, cases: u64, case: impl Fn(&mut Chance)) {
    seeds::each_of(test, cases, |seed| {
        let (result, draws) = record(seed, &case);
        let Err(panic) = result else { return };
        let all = draws.len();
        let short = shortest(draws, &case);
        eprintln!("{test}: a case of {} draws instead of {all} fails, too:", short.len());
        seeds::log_all(true);
        let _ = catch_unwind(AssertUnwindSafe(|| case(&mut Chance::of(&short))));
        seeds::log_all(false);
        resume_unwind(panic);
    });
}

/// Runs a case with a seed: whether it fails, and its draws.
pub(crate) fn record(seed: u64, case: &impl Fn(&mut Chance)) -> (Result<(), Box<dyn Any + Send>>, Vec<Draw>) {
    chance::start_tape();
    let result = catch_unwind(AssertUnwindSafe(|| case(&mut Chance::Seed(seed))));
    (result, chance::take_tape())
}

/// The draws of a failing case, without those that it fails without.
pub(crate) fn shortest(mut draws: Vec<Draw>, case: &impl Fn(&mut Chance)) -> Vec<Draw> {
    let mut tries = 0;
    let mut fails = |draws: &[Draw]| {
        tries += 1;
        tries <= TRIES_MAX && fails_quietly(draws, case)
    };
    // The shortest beginning that fails, if all longer ones fail: mostly they do.
    let (mut passing, mut failing) = (0, draws.len());
    while passing + 1 < failing {
        let middle = usize::midpoint(passing, failing);
        *(if fails(&draws[..middle]) { &mut failing } else { &mut passing }) = middle;
    }
    draws.truncate(failing);
    let mut piece = draws.len() / 2;
    while piece > 0 {
        let (before, mut at) = (draws.len(), 0);
        while at < draws.len() {
            let end = draws.len().min(at + piece);
            let shorter = [&draws[..at], &draws[end..]].concat();
            if fails(&shorter) { draws = shorter } else { at = end }
        }
        // Once more with the same size while that helps: what was needed may be so no longer.
        if draws.len() == before {
            // An operation is a few draws: all small sizes are tried, so that one of them fits.
            piece = if piece > SMALL { piece / 2 } else { piece - 1 };
        }
    }
    draws
}

/// Whether a case fails, without the message.
fn fails_quietly(draws: &[Draw], case: &impl Fn(&mut Chance)) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| case(&mut Chance::of(draws))));
    IS_QUIET.set(false);
    result.is_err()
}
