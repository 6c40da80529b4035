//! The schedulers of a grid of runs ([`Sweep`](fairhead_sim::sweep::Sweep)): tunables with several values.

use fairhead_sim::sweep::Tuned;

use crate::Error;
use crate::tunables::{self, Scheduler};

/// Returns every scheduler with every combination of the values that are set for it: `SCHED.TUNABLE=VALUE,…`.
///
/// # Errors
/// If one of `sets` is not of that form, or cannot be: see [`tunables::set`].
pub fn tuned(schedulers: &[Scheduler], sets: &[String]) -> Result<Vec<Tuned>, Error> {
    let of_preset = |s: &Scheduler| Tuned { scheduler: s.name, set: String::new(), config: s.config };
    let mut all: Vec<Tuned> = schedulers.iter().map(of_preset).collect();
    for text in sets {
        let (path, values) = text.split_once('=').unwrap_or((text, ""));
        let (sched, tunable) = path.rsplit_once('.').unwrap_or(("", path));
        // Says what is wrong with it, if anything is.
        let first = values.split(',').next().filter(|_| text.contains('=')).map(|v| format!("{path}={v}"));
        tunables::set(&mut schedulers.to_vec(), first.as_ref().unwrap_or(text))?;
        let mut next = Vec::new();
        for t in all {
            if !tunables::is_meant(schedulers, t.scheduler, sched) {
                next.push(t);
                continue;
            }
            for value in values.split(',').map(str::trim) {
                let mut one = [Scheduler { name: t.scheduler, config: t.config }];
                tunables::set(&mut one, &format!("{}.{tunable}={value}", t.scheduler))?;
                let blank = if t.set.is_empty() { "" } else { " " };
                let set = format!("{}{blank}{tunable}={value}", t.set);
                next.push(Tuned { scheduler: t.scheduler, set, config: one[0].config });
            }
        }
        all = next;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedulers::choose_scheduler;

    fn of(names: &[&str], sets: &[&str]) -> Result<Vec<String>, Error> {
        let scheduler = |n: &&str| choose_scheduler(n).map(Scheduler::from);
        let schedulers = names.iter().map(scheduler).collect::<Result<Vec<_>, _>>()?;
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        Ok(tuned(&schedulers, &sets)?.into_iter().map(|t| format!("{} {}", t.scheduler, t.set)).collect())
    }

    #[test]
    fn values_multiply_for_the_scheduler_that_they_are_for() {
        let sets = ["cfq.slice_idle=0,2ms", "cfq.low_latency=0,1", "bfq.low_latency=0"];
        assert_eq!(
            of(&["noop", "cfq", "bfq"], &sets).unwrap(),
            [
                "noop ",
                "cfq slice_idle=0 low_latency=0",
                "cfq slice_idle=0 low_latency=1",
                "cfq slice_idle=2ms low_latency=0",
                "cfq slice_idle=2ms low_latency=1",
                "bfq low_latency=0",
            ]
        );
        assert_eq!(of(&["cfq-2.6.34"], &["cfq.slice_idle=1ms,2ms"]).unwrap().len(), 2);
    }

    #[test]
    fn mistakes_are_those_of_set() {
        let said = |set: &str| of(&["noop", "cfq"], &[set]).unwrap_err().to_string();
        assert!(said("cfq.slice_idle=0,2").contains("has no unit"), "{}", said("cfq.slice_idle=0,2"));
        assert!(said("bfq.low_latency=0").contains("is not in this run"));
        assert!(said("cfq.slice_idl=0").contains("did you mean 'slice_idle'?"));
        assert!(said("cfq").contains("no '='"));
        assert!(said("cfq.slice_idle=").contains("no value") || said("cfq.slice_idle=").contains("no unit"));
        assert!(said("slice_idle=0").contains("no '.'"));
    }
}
