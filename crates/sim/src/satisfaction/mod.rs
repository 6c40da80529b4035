//! How much of what it would get alone does each job get: the currency in which schedulers are compared.
//!
//! **The satisfaction of a job** is what it got beside the others over what it gets alone on the
//! same disk. What counts depends on what its user feels ([`kind`]):
//!
//! | kind | its figure | 1 is |
//! |---|---|---|
//! | start | 1 / time until it is done | as quick as alone |
//! | paced | part of its rate × part of its calls (or frames) in time | its rate, as far as the disk can |
//! | waiting | 1 / 99th percentile of its calls; of its syncs if it syncs | as quick as alone |
//! | bulk | bytes a second | its share of what it moves alone |
//!
//! A bulk job's *share* is its weight by the weights of all bulk jobs beside it, those of the idle class left
//! out: each of four copies that gets a quarter of what it gets alone is satisfied. A job with clones has the
//! geometric mean over its clones, so a clone that gets nothing shows. A bulk job that gets more than its
//! share is more than satisfied: one process alone may not fill a fast drive, so that five may have more than
//! a fifth each, and a scheduler that takes that away has to show.
//!
//! **The satisfaction of a load** is the weighted geometric mean over its jobs ([`log_of_all`]):
//! twice as good for one job is worth as much as twice as bad for another, which is Nash's solution of the
//! bargaining problem. A job weighs as its control group does; one of the idle class weighs a tenth.
//!
//! **Regret** is the best satisfaction that any scheduler reaches with that load on that disk over this
//! one's: 1 is the best, and with 2 all jobs get half of what they could get.
//!
//! **One span.** A load is judged over a fixed span of virtual time ([`Load::new`]): a scheduler that ends a
//! start sooner is not charged for a shorter run. Jobs do not end each other (`exitall`); who is not done
//! when the span is over is *cut off* ([`Got::is_cut`]): its time is a lower bound.
//!
//! Example: a film and a copy on a disk that copies 100 MiB/s alone. Under A the film gets its rate and the
//! copy 60 MiB/s: 1 and 0.6, together 0.77. Under B the copy gets 90 MiB/s and one film call of five is late:
//! 0.8 and 0.9, together 0.85.
//!
//! What it does not do: know what a user feels beyond the job's options (`fh_kind` says it); count a call
//! that never ended in a 99th percentile.
//
//= J. Nash, "The bargaining problem", Econometrica 18, 1950

mod alone;
mod got;
mod kind;
mod load;

pub use alone::{Alone, Solo};
pub use got::{Got, got};
pub use kind::kind;
pub use load::{Emphasis, Load, Party, log_of_all};

/// A satisfaction below this counts as this: a thousandth of what one would get is nothing.
pub const LEAST: f64 = 0.001;

/// The geometric mean; 1 of none.
fn geometric(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        (sum, count) = (sum + libm::log(value), count + 1.0);
    }
    if count > 0.0 { libm::exp(sum / count) } else { 1.0 }
}

#[cfg(test)]
mod tests;
