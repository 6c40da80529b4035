//! The suite catches schedulers with a fault: each here is order of arrival with one thing wrong.

use fairhead_core::config::ConfigError;
use fairhead_core::sched::Scheduler;
use fairhead_core::sched::outside::{Factory, Of};
use fairhead_core::{Cx, Dispatch, Hold, Limits, Tag, tunables};
use fairhead_suite::{SERVICE_MAX, Suite};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

tunables! {
    /// None.
    pub struct Config {}
}

const NONE: u8 = 0;
const LOSES: u8 = 1;
const ISSUES_TWICE: u8 = 2;
const HOLDS_FOR_EVER: u8 = 3;
const ALLOCATES: u8 = 4;
const STARVES: u8 = 5;
const FORGETS_TO_FORGET: u8 = 6;

/// Order of arrival, with a fault.
struct Faulty<const FAULT: u8> {
    fifo: VecDeque<Tag>,
    count: u32,
    last: Option<Tag>,
}

impl<const FAULT: u8> Scheduler for Faulty<FAULT> {
    const NAME: &'static str = "faulty";
    type Config = Config;

    fn new(limits: Limits, _: Config) -> Result<Self, ConfigError> {
        let fifo = VecDeque::with_capacity(usize::from(limits.tags));
        Ok(Self { fifo, count: 0, last: None })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.count += 1;
        if FAULT == LOSES && self.count.is_multiple_of(3) {
            return;
        }
        if FAULT == ALLOCATES && self.count.is_multiple_of(3) {
            drop(std::hint::black_box(Box::new(self.count)));
        }
        // The task of the first request goes before all others, for ever.
        if FAULT == STARVES && cx.requests[tag].rq.task.0 == 0 {
            self.fifo.push_front(tag);
        } else {
            self.fifo.push_back(tag);
        }
    }

    fn dispatch(&mut self, _cx: &mut Cx<'_>) -> Dispatch {
        self.count += 1;
        if let (ISSUES_TWICE, Some(tag), true) = (FAULT, self.last, self.count.is_multiple_of(3)) {
            return Dispatch::Issue(tag);
        }
        if FAULT == HOLDS_FOR_EVER && self.fifo.len() == 1 {
            return Dispatch::Hold(Hold::SliceIdle);
        }
        self.last = self.fifo.pop_front();
        self.last.map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, _cx: &mut Cx<'_>) -> Option<Tag> {
        self.fifo.pop_front()
    }

    fn joined(&mut self, _cx: &mut Cx<'_>, _kept: Tag, gone: Tag) {
        if FAULT != FORGETS_TO_FORGET {
            self.fifo.retain(|t| *t != gone);
        }
    }
}

/// What the suite says: of random cases, and of small ones.
fn verdicts(factory: &'static dyn Factory) -> [Result<(), String>; 2] {
    let suite = Suite::of(factory).bounded(|_, load, _| Some(SERVICE_MAX * load.requests));
    let caught = |check: &dyn Fn()| {
        catch_unwind(AssertUnwindSafe(check)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
        })
    };
    [caught(&|| suite.storms("faulty")), caught(&|| suite.small_cases())]
}

/// A factory with this fault, and what the suite says to it.
macro_rules! with_fault {
    ($fault:ident) => {{
        static FAULTY: Of<Faulty<$fault>> = Of::new("order of arrival, with a fault");
        verdicts(&FAULTY)
    }};
}

/// Whether both parts of the suite name one of these faults.
fn names(verdicts: [Result<(), String>; 2], faults: &[&str]) {
    for (part, verdict) in ["storms", "small cases"].iter().zip(verdicts) {
        let said = verdict.expect_err(part);
        assert!(faults.iter().any(|fault| said.contains(fault)), "{part}: {said}");
    }
}

#[test]
fn order_of_arrival_passes() {
    assert_eq!(with_fault!(NONE), [Ok(()), Ok(())]);
}

#[test]
fn a_lost_request_is_found() {
    names(with_fault!(LOSES), &["requests wait", "nothing is coming"]);
}

#[test]
fn a_request_that_is_issued_twice_is_found() {
    names(with_fault!(ISSUES_TWICE), &["issue", "queued", "twice"]);
}

#[test]
fn a_hold_that_nothing_ends_is_found() {
    names(with_fault!(HOLDS_FOR_EVER), &["nothing is coming to end it"]);
}

#[test]
fn an_allocation_after_new_is_found() {
    // Whichever of the two ways in a storm takes first.
    names(with_fault!(ALLOCATES), &["insert touched the heap", "insert_alone touched the heap"]);
}

#[test]
fn a_request_that_is_kept_after_it_was_joined_is_found() {
    let [storms, _] = with_fault!(FORGETS_TO_FORGET);
    assert!(storms.is_err());
}

/// Only the closed world has time enough to see it.
#[test]
fn a_task_that_starves_others_is_found() {
    let [storms, small] = with_fault!(STARVES);
    let said = storms.expect_err("storms");
    assert!(said.contains("the bound is"), "{said}");
    assert_eq!(small, Ok(()));
}
