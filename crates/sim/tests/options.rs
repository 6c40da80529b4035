//! What options of job files make clients do, seen in their calls.

use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::journal::{Call, Collector, record};
use fairhead_sim::{Host, Outcome, Scenario, job};

/// Simulates a job file: what came out, and its calls.
fn run(text: &str) -> (Outcome, Vec<Call>) {
    let jobs = job::parse(text, "options.fio").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let scenario = Scenario {
        jobs,
        disk: DeviceParams::preset("sata_ssd").unwrap(),
        host: Host::named("2020").unwrap(),
        scheduler: "mq-deadline".to_owned(),
        config: (preset("mq-deadline").unwrap().config)(),
        seed: 1,
        interval: None,
        time_max: None,
        watch: None,
    };
    let mut journal = Collector::default();
    let outcome = record(&scenario, &mut journal).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(journal.dropped.calls, 0);
    (outcome, journal.calls)
}

#[test]
fn null_makes_calls_and_no_requests() {
    for lines in [
        "ioengine=null",
        "filename=/dev/null",
        "ioengine=null\niodepth=8\nrw=randrw\nfsync=4",
        "ioengine=null\nrw=write\npre_read=1",
    ] {
        let (outcome, _) = run(&format!("[j]\nsize=400k\n{lines}\n"));
        let c = &outcome.clients[0];
        assert_eq!(c.read.calls + c.write.calls, 100, "{lines}");
        assert_eq!(
            (outcome.disk.issued, outcome.disk.read_bytes, outcome.disk.written_bytes),
            (0, 0, 0),
            "{lines}"
        );
        assert!(outcome.elapsed.as_us() >= 100, "a call takes CPU time: {lines}");
    }
    // It may be larger than any disk.
    let (outcome, _) = run("[j]\nioengine=null\nsize=100t\nnumber_ios=10\n");
    assert_eq!(outcome.clients[0].read.calls, 10);
}
