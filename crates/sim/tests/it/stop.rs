//! A run that can be stopped from outside is the same run, and ends soon when it is.

use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, Scenario, job, simulate, simulate_unless};
use std::sync::atomic::{AtomicBool, Ordering};

fn scenario(job: &str) -> Scenario {
    Scenario::new(
        job::parse(job, "t").unwrap(),
        DeviceParams::preset("nas2020").unwrap(),
        Host::named("2020").unwrap(),
        "bfq",
        (preset("bfq").unwrap().config)(),
    )
}

#[test]
fn a_run_that_is_not_stopped_is_the_same() {
    let scenario = scenario("[a]\nrw=randread\nsize=1m\ndirect=1\nnumjobs=2\n[b]\nrw=write\nsize=4m\n");
    let outcome = simulate_unless(&scenario, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome, Some(simulate(&scenario).unwrap()));
}

#[test]
fn a_run_ends_when_it_is_stopped() {
    // More events than a test can wait for.
    let scenario = scenario("[a]\nrw=randrw\nsize=1g\ndirect=1\nnumjobs=4\ntime_based\nruntime=100000000s\n");
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| simulate_unless(&scenario, &stop));
        std::thread::sleep(std::time::Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert_eq!(ended, Ok(None));
}
