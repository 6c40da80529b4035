//! Unit tests that look inside: sizes, and panics in the middle of calls.

mod need;
mod poison;

use crate::texts::Text;
use fairhead_core::Elevator;
use fairhead_core::sched::any::AnyScheduler;

/// A panic in a call of the elevator to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// How many calls go well before.
    pub(crate) calls: u32,
    /// Whether the call has done its work when it panics.
    pub(crate) after: bool,
}

/// The call, which panics if its turn has come.
pub(crate) fn faulty<R>(
    fault: &mut Option<Fault>,
    ask: impl FnOnce(&mut Elevator<AnyScheduler>) -> R,
) -> impl FnOnce(&mut Elevator<AnyScheduler>) -> R {
    let now = match fault {
        Some(Fault { calls: 0, after }) => Some(*after),
        Some(fault) => {
            fault.calls -= 1;
            None
        }
        None => None,
    };
    move |elevator| {
        assert!(now != Some(false), "drawn: before the work");
        let answer = ask(elevator);
        assert!(now != Some(true), "drawn: after the work");
        answer
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_at_a_character() {
    let long = "ä".repeat(100);
    let text = Text::of(&long);
    assert_eq!(text.as_str(), "ä".repeat(55));
    assert_eq!(text.as_bytes()[111], 0);
}

#[test]
fn reasons_have_their_numbers_and_names() {
    for (number, (reason, name)) in crate::observe::REASONS.iter().enumerate() {
        assert_eq!((*reason as usize, &*format!("{reason:?}")), (number, *name));
    }
}
