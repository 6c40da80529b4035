//! What the kernel's BFQ decided in a step, put together from its messages.

use super::super::message::{Name, Say, Why};
use super::super::step::{Said, Step};

/// A turn that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expiry {
    pub(super) queue: Name,
    pub(super) why: Why,
    pub(super) slow: bool,
    pub(super) in_flight: u32,
    pub(super) short_think: bool,
    /// Sectors, charges for time included.
    pub(super) service: Option<i64>,
    /// Its next budget as it was before, in sectors.
    pub(super) next_before: Option<u32>,
    pub(super) seeky: Option<bool>,
    /// The budget that it has from now on, if it has a request: at least its next budget.
    pub(super) refilled: Option<u32>,
}

/// A decision, in the order in which they were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    Expire(Expiry),
    Select { queue: Name, budget: u32 },
}

/// A queue's virtual times, and what they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    pub(super) queue: Name,
    pub(super) service: u64,
    pub(super) weight: u32,
    pub(super) start: u64,
    pub(super) finish: u64,
}

/// With the message that told it: an index into the step's.
pub(super) type At<T> = (usize, T);

/// The decisions of a step.
pub(super) fn decisions(step: &Step) -> Vec<At<Decision>> {
    let mut found: Vec<At<Decision>> = Vec::new();
    for (at, said) in step.says.iter().enumerate() {
        let Some(queue) = said.queue else { continue };
        match said.say {
            Say::Expired { why, slow, in_flight, short_think } => {
                let expiry = Expiry {
                    queue,
                    why,
                    slow,
                    in_flight,
                    short_think,
                    service: None,
                    next_before: None,
                    seeky: None,
                    refilled: None,
                };
                found.push((at, Decision::Expire(expiry)));
            }
            Say::Selected { budget } => found.push((at, Decision::Select { queue, budget })),
            say => {
                if let Some((_, Decision::Expire(expiry))) = found.last_mut() {
                    detail(expiry, queue, say);
                }
            }
        }
    }
    found
}

/// What is said of a turn behind its end.
fn detail(expiry: &mut Expiry, queue: Name, say: Say) {
    if expiry.queue != queue {
        return;
    }
    match say {
        Say::Spent { budget, left } => expiry.service = Some(i64::from(budget) - left),
        Say::Bounds { next, .. } => expiry.next_before = Some(next),
        Say::Kind { seeky, .. } => expiry.seeky = Some(seeky),
        Say::Refilled { head, budget } if head > 0 => expiry.refilled = Some(budget),
        _ => {}
    }
}

/// The last virtual times of each queue in the step.
pub(super) fn times(step: &Step) -> Vec<At<Times>> {
    let mut from = None;
    let mut found: Vec<At<Times>> = Vec::new();
    for (at, Said { queue, say, .. }) in step.says.iter().enumerate() {
        let Some(queue) = *queue else { continue };
        match *say {
            Say::TimesFrom { service, weight } => from = Some((queue, service, weight)),
            Say::Times { start, finish } => {
                if let Some((_, service, weight)) = from.take().filter(|(q, ..)| *q == queue) {
                    found.retain(|(_, t)| t.queue != queue);
                    found.push((at, Times { queue, service, weight, start, finish }));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::log::Log;
    use super::super::super::steps::Steps;
    use super::*;

    fn step(messages: &[&str]) -> Step {
        let lines: String =
            messages.iter().map(|m| format!("  a-5 [0] d..1. 5.000001: 7,0 1,0 m N {m}\n")).collect();
        let log = Log::open(lines.as_bytes(), "x").unwrap();
        Steps::new(log, true).next_step().unwrap().unwrap()
    }

    #[test]
    fn an_expiry_has_all_that_is_said_of_it() {
        let step = step(&[
            "bfq dispatch requests: 1 busy queues",
            "bfq1S expire (4, slow 1, num_disp 2, short_ttime 0)",
            "bfq1S recalc_budg: last budg 1024, budg left 960",
            "bfq1S recalc_budg: last max_budg 512, min budg 16",
            "bfq1S recalc_budg: sync 1, seeky 1",
            "bfq1S head sect: 8, new budget 700",
            "bfq2S set_in_service_queue, cur-budget = 5",
        ]);
        let got = decisions(&step);
        assert_eq!(got.len(), 2);
        let (1, Decision::Expire(expiry)) = got[0] else { panic!("{got:?}") };
        assert_eq!(
            (expiry.why, expiry.slow, expiry.in_flight, expiry.short_think),
            (Why::Preempted, true, 2, false)
        );
        assert_eq!((expiry.service, expiry.next_before, expiry.refilled), (Some(64), Some(512), Some(700)));
        assert_eq!(expiry.seeky, Some(true));
        assert!(matches!(got[1], (6, Decision::Select { budget: 5, .. })));
    }

    #[test]
    fn the_last_times_count() {
        let step = step(&[
            "bfq1S calc_finish: serv 64, w 1200",
            "bfq1S calc_finish: start 1, finish 2, delta 1",
            "bfq2S calc_finish: serv 8, w 40",
            "bfq2S calc_finish: start 3, finish 4, delta 1",
            "bfq1S calc_finish: serv 65, w 40",
            "bfq1S calc_finish: start 5, finish 6, delta 1",
        ]);
        let got: Vec<_> =
            times(&step).iter().map(|(_, t)| (t.service, t.weight, t.start, t.finish)).collect();
        assert_eq!(got, [(8, 40, 3, 4), (65, 40, 5, 6)]);
    }
}
