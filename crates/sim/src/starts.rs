//! Whether a result hangs on the order in which processes start.
//!
//! A scheduler may remember for ever who came first. BFQ, without low latency, gives a sequential and a
//! random reader of a queued disk 162 and 0.04 MiB/s if the random one comes first, and 6 and 0.2 if it comes
//! second: it takes a queue that was created soon after another for part of the same program, and merges it
//! 600 ms later, unless it is sequential. One millisecond decides, and fio leaves it to chance.

use crate::engine::{Scenario, simulate};
use crate::metrics::{Outcome, Result};

/// A job's rate may differ by this much (percent) before the difference is reported.
const TOLD_PCT: u64 = 10;

/// Runs a scenario with the processes of each job file started in the reverse order. Returns a sentence for
/// each job whose rate differs from that in `outcome` by more than a tenth.
///
/// # Errors
/// As [`simulate`].
pub fn hang_on_starts(scenario: &Scenario, outcome: &Outcome) -> Result<Vec<String>> {
    let mut other = scenario.clone();
    other.host.starts_reversed ^= true;
    let other = simulate(&other)?;
    let mut notes = Vec::new();
    for (i, job) in scenario.jobs.jobs.iter().enumerate() {
        let (ours, theirs) = (kib_per_s(outcome, i), kib_per_s(&other, i));
        if ours.abs_diff(theirs) * 100 > ours.max(theirs) * TOLD_PCT {
            notes.push(format!(
                "{}: {} gets {} KiB/s, and {} if the jobs start in the reverse order",
                scenario.scheduler, job.name, ours, theirs
            ));
        }
    }
    Ok(notes)
}

/// What all clients of a job moved, in KiB a second.
fn kib_per_s(outcome: &Outcome, job: usize) -> u64 {
    let of_job = outcome.clients.iter().filter(|c| c.job == job);
    of_job.map(|c| c.bytes() * 1_000_000_000 / 1024 / c.elapsed.as_ns().max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, job};
    use fairhead_core::sched::any::preset;
    use fairhead_device::DeviceParams;

    fn notes(text: &str) -> Vec<String> {
        let mut config = (preset("bfq").unwrap().config)();
        config.set("low_latency", 0).unwrap();
        let scenario = Scenario {
            jobs: job::parse(text, "starts").unwrap(),
            disk: DeviceParams::preset("nas2020").unwrap(),
            host: Host::of_2020(),
            scheduler: "bfq".to_owned(),
            config,
            seed: 1,
            interval: None,
            time_max: None,
            watch: None,
        };
        let outcome = simulate(&scenario).unwrap();
        hang_on_starts(&scenario, &outcome).unwrap()
    }

    const GLOBAL: &str = "[global]\nfilename=/dev/sdx\ndirect=1\ntime_based\nruntime=4s\n";

    #[test]
    fn a_random_and_a_sequential_reader_hang_on_who_is_first() {
        let seq = "[seq]\nrw=read\nbs=128k\nsize=4g\n[rand]\nrw=randread\nnorandommap\nbs=4k\noffset=2000g\nsize=20g\n";
        let notes = notes(&format!("{GLOBAL}{seq}"));
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("bfq: seq gets "), "{notes:?}");
    }

    #[test]
    fn two_equal_readers_do_not() {
        let two = "[a]\nrw=read\nbs=64k\nsize=4g\n[b]\nrw=read\nbs=64k\noffset=2000g\nsize=4g\n";
        assert_eq!(notes(&format!("{GLOBAL}{two}")), Vec::<String>::new());
    }
}
