//! Disks with several arms, and several disks.

use crate::plan::Plan;

/// MB/s of two sequential readers of 128 KiB that start at these places, together.
fn two_readers(disk: &str, scheduler: &str, first: &str, second: &str) -> u64 {
    let job = |name: &str, place: &str| format!("[{name}]\nfh_start={place}\n");
    let text = format!(
        "[global]\nrw=read\nbs=128k\ndirect=1\nsize=2g\ntime_based\nruntime=5s\n{}{}",
        job("a", first),
        job("b", second)
    );
    let plan = Plan::on(disk).scheduler(scheduler).load("two readers", &text).run();
    plan.outcome().bandwidth() / 1_000_000
}

/// The same of one.
fn one_reader(disk: &str, scheduler: &str) -> u64 {
    let text = "[a]\nrw=read\nbs=128k\ndirect=1\nsize=2g\ntime_based\nruntime=5s\n";
    Plan::on(disk).scheduler(scheduler).load("one reader", text).run().outcome().bandwidth() / 1_000_000
}

#[test]
fn two_actuators_stream_twice_as_much_in_two_halves_and_not_in_one() {
    for scheduler in ["noop", "mq-deadline"] {
        let one = one_reader("dual_actuator", scheduler);
        // 3600 sectors in 8.83 ms.
        assert!((195..=210).contains(&one), "{scheduler}: one stream: {one} MB/s");
        let apart = two_readers("dual_actuator", scheduler, "0%", "50%");
        assert!(apart * 100 > one * 190, "{scheduler}: in two halves {apart} MB/s, alone {one}");
        let together = two_readers("dual_actuator", scheduler, "0%", "20%");
        assert!(together <= one, "{scheduler}: in one half {together} MB/s, alone {one}");
        let ordinary = two_readers("nas2020", scheduler, "0%", "50%");
        assert!(ordinary <= one, "{scheduler}: with one actuator {ordinary} MB/s");
    }
}
