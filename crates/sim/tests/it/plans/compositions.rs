//! Disks with several arms, and several disks.

use super::plan::{MIB, Plan};
use fairhead_core::sched::any::PRESETS;
use fairhead_device::DeviceParams;
use fairhead_sim::Host;

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

/// The throughput of one reader, in MB/s.
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

/// Two disks of 2009 mirrored by md, and by a controller.
fn mirror(queues: &str) -> DeviceParams {
    let text = format!("base = \"raid1_2009\"\nqueues = \"{queues}\"\n");
    DeviceParams::from_toml(&text, "a mirror").expect("a valid disk")
}

#[test]
fn a_mirror_reads_two_streams_nearly_twice_as_fast_and_one_as_fast() {
    for (queues, scheduler) in [("per-member", "noop"), ("per-member", "cfq"), ("one", "noop")] {
        let load = |plan: Plan, text: &str| {
            let plan = plan.scheduler(scheduler).load("readers", text).run();
            plan.outcome().bandwidth() / 1_000_000
        };
        let one = "[global]\nrw=read\nbs=128k\ndirect=1\nsize=2g\ntime_based\nruntime=5s\n[a]\n";
        let two = format!("{one}[b]\nfh_start=10%\n");
        let mirrored = || Plan::on("raid1_2009").disk(queues, |d| *d = mirror(queues));
        let alone = load(mirrored(), one);
        // 1312 sectors in 9.33 ms.
        assert!((65..=72).contains(&alone), "{queues}, {scheduler}: {alone} MB/s");
        let both = load(mirrored(), &two);
        assert!(both * 100 >= 185 * alone, "{queues}, {scheduler}: {both} MB/s, one stream {alone}");
        let single = load(Plan::on("sata2009"), &two);
        assert!(single <= alone, "{scheduler}: one disk {single} MB/s");
    }
}

#[test]
fn random_reads_are_balanced() {
    for queues in ["per-member", "one"] {
        let load = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4g\nnumjobs=8\ntime_based\nruntime=5s\n";
        let iops = |disk: &str, change: &dyn Fn(&mut DeviceParams)| {
            let plan = Plan::on(disk)
                .disk(queues, change)
                .scheduler("noop")
                .load("eight random readers", load)
                .run();
            plan.outcome().clients.iter().map(|c| c.milli_iops()).sum::<u64>() / 1000
        };
        let (two, one) = (iops("raid1_2009", &|d| *d = mirror(queues)), iops("sata2009", &|_| {}));
        assert!(two * 10 >= one * 18, "{queues}: {two} reads a second, one disk {one}");
    }
}

#[test]
fn writes_and_flushes_go_to_both_members_and_wait_for_both() {
    for scheduler in ["noop", "deadline", "cfq"] {
        Plan::on("raid1_2009")
            .scheduler(scheduler)
            .load(
                "8 MiB synced every 16 calls, and 8 MiB direct",
                "[global]\nsize=8m\nbs=64k\nrw=write\n[s]\nfsync=16\nend_fsync=1\n[d]\ndirect=1\n",
            )
            .run()
            .check("the clients wrote 16 MiB", |o| o.disk.written_bytes == 16 * MIB)
            .check("the members each", |o| o.disk.counters.bytes_written == 32 * MIB)
            .check("8 flushes, on each member", |o| o.disk.counters.flushes == 2 * 8)
            .check("and all of it is stable in the books", |o| {
                (o.cache.pages_written, o.cache.dirty_at_end) == (2048, 0)
            });
    }
}

#[test]
fn nothing_is_lost_with_two_queues_whatever_the_scheduler() {
    let load = "[global]\nsize=16m\nio_size=4m\n[a]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\n[b]\nrw=randrw\nbs=8k\nfsync=10\n[c]\nrw=write\nbs=64k\nend_fsync=1\n[d]\nrw=read\nbs=16k\n[e]\nrw=randtrim\nbs=64k\ndirect=1\n[f]\nrw=randread\nbs=4k\ndirect=1\nnumjobs=3\n";
    for preset in PRESETS {
        for nr_requests in [128, 4] {
            Plan::on("raid1_2009")
                .scheduler(preset.name)
                .host("with many requests, or few", |h| h.nr_requests = Some(nr_requests))
                .load("readers, writers, syncs and trims, until all have done 4 MiB", load)
                .run()
                .check("every client did all of its work", |o| {
                    o.clients.iter().all(|c| c.bytes() == 4 * MIB)
                });
        }
    }
}

#[test]
fn a_write_takes_as_long_as_on_the_slower_member() {
    let load = "[w]\nrw=randwrite\nbs=64k\ndirect=1\nsize=1g\ntime_based\nruntime=5s\n";
    let mixed = "base = \"raid1_2009\"\nmembers = [\"sata2009\", \"ide2004\"]\n";
    let speed = |disk: &str, text: &str| {
        let change =
            |d: &mut DeviceParams| *d = DeviceParams::from_toml(text, "a disk").expect("a valid disk");
        let plan = Plan::on(disk).host("of 2010", |h| *h = Host::of_2010());
        let plan = plan.disk(text, change).scheduler("noop").load("a random writer", load).run();
        plan.outcome().bandwidth() / 1000
    };
    let (quick, slow) = (speed("sata2009", "base = \"sata2009\""), speed("ide2004", "base = \"ide2004\""));
    let both = speed("raid1_2009", mixed);
    assert!(quick * 10 > slow * 12, "they differ: {quick} and {slow} kB/s");
    assert!(both * 100 <= slow * 103, "together {both} kB/s, the slower alone {slow}");
}
