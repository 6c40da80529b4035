//! Why the winner wins, in sentences, from the books of [`crate::why`].
//!
//! Two runs of one seed differ in the scheduler only. Each book says where every nanosecond of those who wait
//! went, of all their time, or where a tail is judged, of the call at that percentile: the explanation is
//! about the figure of the verdict. Of several jobs it is about the one whose percentile changed most. What
//! shrank most is why they wait less, what grew most is the price. Then come the scheduler's own reasons for
//! choosing their requests, and what it noted of them. A sentence is made for what is at least a twentieth of
//! the time; the rest is noise.
//!
//! Example: of 20.2 s under `mq-deadline`, 18.9 s queued while the disk served `streams`; of 0.7 s under
//! `bfq`, 0.03 s. The first sentence says so, and the second that `bfq` had raised the client's weight for
//! 0.6 s of it.
//!
//! What it does not do: guess. A reason that the scheduler did not record is not told.

use crate::why::{Account, Blame, Report, time, words};
use fairhead_core::{Duration, Reason};

/// Where the time went under two schedulers, and what that says.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The candidate that is compared with the default.
    pub candidate: usize,
    /// Under the default.
    pub before: Report,
    /// Under the candidate.
    pub after: Report,
    /// The explanation, in sentences.
    pub sentences: Vec<String>,
}

/// What is less than this part of the longer time is not told.
const WORTH_TELLING: u64 = 20;

/// The part of a time, how much it is, and what it is called.
type Part = (&'static str, fn(&Account) -> Duration);

const PARTS: [Part; 9] = [
    ("queued while the disk served others", |a| others(a, |b| b.queued)),
    ("queued while the disk was kept idle for one of them", Account::idled),
    ("in the device behind others", |a| others(a, |b| b.device)),
    ("waiting for a free request of the pool", |a| a.tag),
    ("held back because too much was dirty", |a| a.throttled),
    ("queued while nothing happened (plug, lock)", |a| a.held),
    ("being served", |a| a.served),
    ("computing", |a| a.computing),
    ("paused by its own will", |a| a.paused),
];

fn others(a: &Account, part: fn(&Blame) -> Duration) -> Duration {
    a.blame.iter().fold(Duration::ZERO, |sum, b| sum + part(b))
}

/// Makes sentences of two books: of the default, `names[0]`, and of another candidate. `tails` are the 99th
/// percentiles, where those are judged; the slowest call of each book is then the one at that percentile.
#[must_use]
pub fn explain(
    names: &[String; 2],
    candidate: usize,
    tails: [Option<Duration>; 2],
    before: Report,
    after: Report,
) -> Told {
    let whom = whom(&after);
    let slowest = (before.slowest.first(), after.slowest.first());
    let (subject, took, a, b) = match (tails, slowest) {
        ([Some(x), Some(y)], (Some(a), Some(b))) => {
            (format!("The 99th percentile of {whom} is"), [x, y], &a.account, &b.account)
        }
        _ => {
            let (a, b) = (&before.total, &after.total);
            (format!("{whom} spent"), [a.total(), b.total()], a, b)
        }
    };
    let [x, y] = took.map(time);
    let mut sentences = vec![format!("{subject} {x} under {} and {y} under {}.", names[0], names[1])];
    sentences.extend(changes(a, b));
    sentences.extend(to_blame(&before, a, &names[0]));
    sentences.extend(own_reasons(&after.total, &names[1]));
    Told { candidate, before, after, sentences }
}

/// How many of the parts that changed are listed.
const CHANGES: usize = 3;

/// What changed most from `a` to `b`, the most first.
fn changes(a: &Account, b: &Account) -> Vec<String> {
    let least = a.total().max(b.total()) / WORTH_TELLING;
    let mut changed: Vec<(Duration, &Part)> = PARTS
        .iter()
        .map(|part| {
            let (was, is) = ((part.1)(a), (part.1)(b));
            (was.max(is).saturating_sub(was.min(is)), part)
        })
        .filter(|c| c.0 >= least && !c.0.is_zero())
        .collect();
    changed.sort_by_key(|c| std::cmp::Reverse(c.0));
    if changed.is_empty() {
        return vec!["No part of it differs by a twentieth.".to_owned()];
    }
    let sentence = |(by, part): (Duration, &Part)| {
        let (was, is) = ((part.1)(a), (part.1)(b));
        let word = if is < was { "less" } else { "more" };
        format!("{} {word} of it {}: {} instead of {}.", time(by), part.0, time(is), time(was))
    };
    changed.into_iter().take(CHANGES).map(sentence).collect()
}

fn whom(report: &Report) -> String {
    match report.clients.as_slice() {
        [one] => one.name.clone(),
        [first, rest @ ..] => {
            let last = rest.last().map_or("", |c| c.name.as_str());
            format!("{} to {last} ({} clients)", first.name, report.clients.len())
        }
        [] => "no client".to_owned(),
    }
}

/// Names the task that the client waited for most under the default.
fn to_blame(report: &Report, account: &Account, name: &str) -> Option<String> {
    let worst = account.blame.iter().max_by_key(|b| b.total())?;
    let several = account.blame.iter().filter(|b| b.total() > Duration::ZERO).count();
    if worst.total() < account.total() / WORTH_TELLING {
        return None;
    }
    Some(format!(
        "Under {name} it was behind {several} {}, most of all {}: {}.",
        if several == 1 { "client" } else { "clients" },
        report.name(worst.task),
        time(worst.total())
    ))
}

/// What the scheduler itself recorded of those who wait.
fn own_reasons(a: &Account, name: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let least = a.total() / WORTH_TELLING;
    for (span, what) in [
        (a.raised_interactive, "raised its weight as interactive"),
        (a.raised_soft_real_time, "raised its weight as soft real-time"),
        (a.idled_for_it, "kept the disk idle for its next request while others waited"),
    ] {
        if span > least {
            sentences.push(format!("{name} {what} for {}.", time(span)));
        }
    }
    let all: u64 = a.chosen.iter().map(|c| c.1).sum();
    let most = a.chosen.iter().filter(|c| c.0 != Reason::None).max_by_key(|c| c.1);
    if let Some(&(reason, n)) = most {
        sentences.push(format!("{name} chose {n} of its {all} requests for this: {}.", words(reason)));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_most_comes_first_and_small_change_is_not_told() {
        let ms = Duration::from_ms;
        let before = Account { tag: ms(100), served: ms(50), held: ms(5), ..Account::default() };
        let after = Account { tag: ms(20), served: ms(80), held: ms(1), ..Account::default() };
        assert_eq!(
            changes(&before, &after),
            [
                "80.0 ms less of it waiting for a free request of the pool: 20.0 ms instead of 100 ms.",
                "30.0 ms more of it being served: 80.0 ms instead of 50.0 ms.",
            ]
        );
        assert_eq!(changes(&before, &before), ["No part of it differs by a twentieth."]);
    }
}
