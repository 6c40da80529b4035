//! What no scheduler can help: a drive that reorders greedily in its own queue (`greedy_ncq`).
//!
//! A reader of single random blocks, each read begun when the one before is done (an application that starts), on the far
//! side of the disk. Against others that keep the drive's queue full it waits for as long as they go on. CFQ gives deep
//! streams slices of their own and lets the drive drain in between; many shallow readers share a slice, and then it is as
//! helpless as the rest.

use crate::plan::Plan;
use fairhead_core::Duration;

/// Four streams of 16 calls at a time.
const DEEP: &str = "rw=read\nbs=64k\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n";
/// Four readers all over their files, 16 calls at a time.
const DEEP_RANDOM: &str = "rw=randread\nbs=64k\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n";
/// Forty readers of one file, one block at a time.
const MANY: &str = "rw=randread\nbs=4k\nsize=100m\nfilename=hot\nnumjobs=40\n";

/// The dependent reads that got through in 10 s, and the longest.
fn starting(disk: &str, scheduler: &str, others: &str) -> (u64, Duration) {
    let plan = Plan::on(disk)
        .scheduler(scheduler)
        .load(
            "dependent reads beside others",
            &format!(
                "[global]\ntime_based\nruntime=10s\ndirect=1\n[others]\nfh_start=10%\n{others}\n[start]\nrw=randread\nbs=4k\nsize=4g\nfh_start=80%\n"
            ),
        )
        .run()
        .check("everybody's last call ends", |o| o.clients.iter().all(|c| c.elapsed < Duration::from_secs(12)));
    let start = plan.outcome().clients.last().expect("the last job").read.clone();
    (start.calls, start.latency_max)
}

#[test]
fn a_greedy_drive_starves_dependent_reads_whatever_the_scheduler() {
    for (scheduler, others) in [
        ("noop", DEEP),
        ("noop", DEEP_RANDOM),
        ("deadline", DEEP),
        ("deadline", DEEP_RANDOM),
        ("mq-deadline", DEEP),
        ("kyber", DEEP),
    ] {
        let (calls, longest) = starting("greedy_ncq", scheduler, others);
        assert!(calls <= 1 && longest > Duration::from_secs(9), "{scheduler}: {calls} reads, {longest}");
    }
    let (calls, longest) = starting("greedy_ncq", "cfq", MANY);
    assert!(calls < 20 && longest > Duration::from_secs(4), "cfq: {calls} reads, {longest}");
}

#[test]
fn a_drive_with_ageing_serves_them_slowly() {
    for (scheduler, others) in [("noop", DEEP), ("deadline", DEEP), ("cfq", MANY)] {
        let (calls, longest) = starting("nas2020", scheduler, others);
        assert!(calls >= 10 && longest < Duration::from_secs(4), "{scheduler}: {calls} reads, {longest}");
    }
}

#[test]
fn exclusive_slices_protect_against_deep_streams() {
    let (calls, longest) = starting("greedy_ncq", "cfq", DEEP);
    assert!(calls > 200 && longest < Duration::from_secs(1), "{calls} reads, {longest}");
}
