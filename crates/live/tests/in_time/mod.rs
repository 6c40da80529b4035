//! Tests that need real time, on a machine that may have none.
//!
//! A test that expects something within some time cannot tell a slow program from a busy machine. So it
//! measures the machine meanwhile: a thread sleeps a millisecond at a time and adds up how late it woke. If
//! what is [timely] has not come in time and that thread was late, too, the test is tried again, and says
//! `skipped: machine too busy` in the end. If the machine was calm, it fails; and so it does if something
//! took longer than [it should](within) by more than that thread was late. What does not depend on time fails
//! at once.

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A calm machine wakes a thread that sleeps within a millisecond or two. A thread that woke so late was kept
/// from a processor.
const BUSY: Duration = Duration::from_millis(20);

/// How often a test is tried on a busy machine.
const TRIES: u32 = 3;

/// What an attempt panics with if it was too late, and how late it was at least.
struct TooLate(String, Duration);

/// Ends the attempt as too late if this is not so.
pub(crate) fn timely(is_so: bool, expected: impl std::fmt::Display) {
    if !is_so {
        resume_unwind(Box::new(TooLate(expected.to_string(), Duration::ZERO)));
    }
}

/// Ends the attempt as too late if something took longer than `most`. The machine explains no more than it
/// was late itself.
pub(crate) fn within(took: Duration, most: Duration, what: &str) {
    if took > most {
        let said = format!("{what} took {took:?}, and {most:?} is the most");
        resume_unwind(Box::new(TooLate(said, took - most)));
    }
}

/// Runs a test that calls [`timely`] or [`within`].
pub(crate) fn in_time(attempt: impl Fn()) {
    in_time_by(|| measured(&attempt));
}

type Attempt = (Result<(), Box<dyn Any + Send>>, Duration);

/// Runs a test by `attempt`, which also measures how late the machine was meanwhile, in all. Returns whether
/// the test could be judged.
pub(crate) fn in_time_by(mut attempt: impl FnMut() -> Attempt) -> bool {
    for _ in 0..TRIES {
        let (outcome, late) = attempt();
        let Err(why) = outcome else { return true };
        let TooLate(expected, miss) = *why.downcast::<TooLate>().unwrap_or_else(|other| resume_unwind(other));
        assert!(late > BUSY.max(miss), "{expected} (the machine was {late:?} late)");
        println!("{expected}, but the machine was {late:?} late");
    }
    println!("skipped: machine too busy");
    false
}

/// Runs an attempt beside the thread that measures the machine.
fn measured(attempt: &impl Fn()) -> Attempt {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut last, mut late) = (Instant::now(), Duration::ZERO);
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                let now = Instant::now();
                let by = (now - last).saturating_sub(Duration::from_millis(1));
                if by > BUSY {
                    late += by;
                }
                last = now;
            }
            late
        });
        let outcome = catch_unwind(AssertUnwindSafe(attempt));
        ends.store(true, Ordering::Relaxed);
        (outcome, watch.join().expect("it only sleeps"))
    })
}

/// An attempt that is too late by so much.
pub(crate) fn too_late(by: Duration) -> Result<(), Box<dyn Any + Send>> {
    Err(Box::new(TooLate("something took long".to_owned(), by)))
}
