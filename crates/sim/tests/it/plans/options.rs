//! Options of job files, by what they do to a run.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;

/// Runs a direct reader with these options on the disk of 2004.
fn reader(options: &str) -> Plan {
    let text = format!("[r]\nrw=read\nbs=4k\ndirect=1\nsize=16m\n{options}\n");
    Plan::on("ide2004").load(options, &text).run()
}

#[test]
fn rates_are_kept_to_the_call() {
    reader("rate=1m\ntime_based\nruntime=10s")
        .check("10 MiB in 10 s, and the call that began at the start", |o| {
            o.clients[0].read.bytes.abs_diff(10 * MIB) <= 4096
        });
    reader("rate_iops=50\ntime_based\nruntime=10s")
        .check("500 calls in 10 s", |o| o.clients[0].read.calls.abs_diff(500) <= 1);
}

#[test]
fn each_direction_has_its_rate() {
    Plan::on("ide2004")
        .load(
            "a mix",
            "[m]\nrw=randrw\nbs=4k\ndirect=1\nsize=16m\nrate_iops=20,10\ntime_based\nruntime=10s\n",
        )
        .run()
        // A client with one call at a time waits for the direction it drew, so the slower one decides.
        .check("neither is exceeded", |o| o.clients[0].read.calls <= 201 && o.clients[0].write.calls <= 101)
        .check("one is reached", |o| o.clients[0].write.calls >= 80);
}

#[test]
fn the_ramp_is_run_but_not_measured() {
    reader("ramp_time=5s\ntime_based\nruntime=5s\nrate_iops=100")
        .check("5 s of calls count", |o| o.clients[0].read.calls.abs_diff(500) <= 1)
        .check("the rate is over them", |o| o.clients[0].milli_iops().abs_diff(100_000) < 1_000)
        .check("10 s have passed", |o| o.elapsed >= Duration::from_ms(9_900));
}

#[test]
fn loops_repeat_the_whole_job() {
    reader("loops=3").check("48 MiB", |o| o.clients[0].read.bytes == 48 * MIB);
}

#[test]
fn a_random_pass_visits_every_block_once() {
    // Every page of a buffered random pass misses once; a second pass finds all of them.
    Plan::on("ide2004")
        .load("two passes", "[r]\nrw=randread\nbs=4k\nsize=2m\nloops=2\n")
        .run()
        .check("512 misses in 1024 calls", |o| (o.cache.misses, o.clients[0].read.calls) == (512, 1024));
    Plan::on("ide2004")
        .load("with repeats", "[r]\nrw=randread\nbs=4k\nsize=2m\nnorandommap\n")
        .run()
        // 1 - 1/e of the blocks are seen in one pass.
        .check("324 of 512 blocks, give or take", |o| (290..360).contains(&o.cache.misses));
}

#[test]
fn a_part_of_a_sequential_job_can_jump() {
    let misses = |percent: u32| {
        let text = format!(
            "[r]\nrw=randread\npercentage_random={percent}\nbs=4k\nsize=64m\nnumber_ios=1000\ndirect=1\n"
        );
        Plan::on("ide2004").load("", &text).run().outcome().disk.counters.misses
    };
    let (few, many) = (misses(10), misses(90));
    assert!((60..160).contains(&few) && many > 700, "{few} {many}");
}

#[test]
fn exitall_ends_the_others_at_once() {
    Plan::on("ide2004")
        .load(
            "one job ends after a second; another sleeps most of the time, a third would go on for ever",
            "[global]\ndirect=1\nsize=16m\nbs=4k\nrw=read\ntime_based\n[a]\nruntime=1s\nexitall\n[b]\nruntime=1h\nthinktime=10m\n[c]\nruntime=1h\n[later]\nstonewall\nruntime=1s\n",
        )
        .run()
        .check("all of the first wave end", |o| o.clients[..3].iter().all(|c| c.elapsed < Duration::from_ms(1_100)))
        .check("the next wave runs", |o| o.clients[3].read.calls > 100 && o.elapsed < Duration::from_ms(2_200));
}

#[test]
fn spinning_takes_the_processor_from_others() {
    let other = |spin: &str| {
        let text = format!(
            "[global]\ndirect=1\nsize=16m\nbs=4k\nrw=read\ntime_based\nruntime=2s\n[spinner]\nthinktime=2ms\n{spin}\n[other]\n"
        );
        Plan::on("ide2004").load(spin, &text).run().outcome().clients[1].read.calls
    };
    let (asleep, spinning) = (other(""), other("thinktime_spin=2ms"));
    assert!(spinning * 4 < asleep * 3, "{spinning} calls beside a spinner, {asleep} beside a sleeper");
}

#[test]
fn a_call_that_ends_after_the_run_is_followed_by_no_pause() {
    // Found by seed 0 of the random plans: the pause would have ended before it began, and never did.
    Plan::on("flashcard2010")
        .load(
            "synced writes of 0.1 s each, with pauses",
            "[w]\nrw=write\nbs=1m\nsize=4m\ndirect=1\nsync=sync\nruntime=1s\ntime_based\nthinktime=1ms\n",
        )
        .run()
        .check("it ends with the call", |o| o.elapsed < Duration::from_ms(1_500));
}

#[test]
fn discards_reach_the_disk() {
    Plan::on("flashcard2010")
        .load("a trim of a file", "[t]\nrw=trim\nbs=64k\nsize=1m\ndirect=1\n")
        .run()
        .check("16 discards", |o| o.disk.counters.discards == 16 && o.clients[0].trim.calls == 16);
}

#[test]
fn calls_in_flight_fill_the_queue() {
    let bandwidth = |depth: u32| {
        let text = format!(
            "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth={depth}\nsize=1g\ntime_based\nruntime=5s\n"
        );
        Plan::on("nas2020").load("", &text).run().outcome().clients[0].bandwidth()
    };
    let (one, many) = (bandwidth(1), bandwidth(16));
    assert!(many > one * 3 / 2, "{many} at depth 16, {one} at depth 1");
}

#[test]
fn a_buffered_call_through_libaio_blocks_its_submitter() {
    let bandwidth = |depth: u32| {
        let text = format!(
            "[r]\nrw=randread\nbs=4k\nioengine=libaio\niodepth={depth}\nsize=1g\ntime_based\nruntime=5s\n"
        );
        Plan::on("nas2020").load("", &text).run().outcome().clients[0].bandwidth()
    };
    assert_eq!(bandwidth(1), bandwidth(16));
}

#[test]
fn a_skewed_distribution_hits_the_cache() {
    let misses = |distribution: &str| {
        let text = format!("[r]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=5000\n{distribution}\n");
        Plan::on("nas2020").load(distribution, &text).run().outcome().cache.misses
    };
    let uniform = misses("norandommap");
    for skewed in
        ["random_distribution=zipf:1.2", "random_distribution=pareto:0.1", "random_distribution=normal:5"]
    {
        let skewed_misses = misses(skewed);
        assert!(skewed_misses * 5 < uniform * 4, "{skewed}: {skewed_misses} misses, {uniform} without");
    }
}

#[test]
fn interleaved_zones_are_one_stream_together() {
    let text = |options: &str| {
        format!(
            "[z]\nfilename=/dev/sdx\nrw=read\nbs=16k\ndirect=1\nruntime=5s\ntime_based\noffset=10g\n{options}\n"
        )
    };
    let load = |what: &str, options: &str| Plan::on("nas2020").load(what, &text(options)).run();
    let one = load("one reader", "bs=128k");
    let five = load(
        "five readers, each with every fifth piece of 16 KiB",
        "numjobs=5\noffset_increment=16k\nzonemode=strided\nzonesize=16k\nzoneskip=64k",
    );
    let rates = (one.outcome().bandwidth(), five.outcome().bandwidth());
    assert!(rates.1 * 100 > rates.0 * 95, "{rates:?}");
    five.check("without seeking", |o| o.disk.counters.seeks < 50)
        .check("in equal parts", |o| o.fairness_permille() > Some(980));
}

#[test]
fn of_each_zone_its_size_is_moved() {
    let read = |options: &str, distinct_kib: u64| {
        let text = format!("[r]\nrw=read\nbs=4k\nsize=1m\nzonemode=strided\n{options}\n");
        Plan::on("ide2004")
            .load(options, &text)
            .host("without read-ahead", |h| h.read_ahead = 0)
            .run()
            .check("a mebibyte is asked for", |o| o.clients[0].read.bytes == MIB)
            .check("what is skipped is never read", |o| o.disk.read_bytes == distinct_kib * 1024);
    };
    read("zonesize=64k\nzoneskip=64k", 512);
    read("zonesize=32k\nzonerange=64k\nzoneskip=64k", 256);
    read("zonesize=128k\nzonerange=64k\nzoneskip=192k", 256);
    read("zonesize=64k\nzoneskip=64k\nrw=randread", 512);
}

#[test]
fn raw_readers_share_the_disk_and_not_their_places() {
    let text = |rw: &str| {
        format!(
            "[raw]\nfilename=/dev/sdx\nrw={rw}\nbs=4k\nnumjobs=10\nsize=64m\noffset_increment=64m\nruntime=3s\n"
        )
    };
    Plan::on("nas2020")
        .load("ten sequential readers of the disk, 64 MiB apart", &text("read"))
        .run()
        .check("each has its own 64 MiB", |o| o.clients.iter().all(|c| c.read.bytes <= 64 * MIB))
        .check("no page is read twice, and hardly any in vain", |o| {
            let asked: u64 = o.clients.iter().map(|c| c.read.bytes).sum();
            o.disk.read_bytes >= asked && o.disk.read_bytes <= asked + 10 * 2 * 256 * 1024
        });
    Plan::on("nas2020")
        .load("ten random readers", &text("randread"))
        .run()
        .check("a page a call", |o| o.cache.misses == o.disk.read_bytes / 4096);
}

#[test]
fn groups_share_by_weight_under_a_scheduler_that_knows_them() {
    let text = |weights: &str| {
        format!(
            "[global]\nrw=read\nbs=128k\ndirect=1\nsize=4g\nruntime=15s\ntime_based\n\
             [a]\ncgroup=a\n[b]\ncgroup=b\n{weights}[c]\ncgroup=b\n"
        )
    };
    let shares = |scheduler: &str, what: &str, weights: &str| {
        let plan = Plan::on("nas2020").scheduler(scheduler);
        // Shares are of those whose weight nothing raises.
        let plan = if scheduler == "bfq" { plan.set("low_latency", 0) } else { plan };
        let plan = plan.load(what, &text(weights)).run();
        let rate = |i: usize| plan.outcome().clients[i].bandwidth();
        // Thousandths that group b has of both.
        (rate(1) + rate(2)) * 1000 / (rate(0) + rate(1) + rate(2))
    };
    let equal = shares("bfq", "one reader in group a, two in b", "");
    assert!((450..550).contains(&equal), "two groups of equal weight: {equal}");
    let heavy = shares("bfq", "the same, b of weight 300", "cgroup_weight=300\n");
    assert!((700..800).contains(&heavy), "300 against 100: {heavy}");
    let unaware = shares("cfq-ts2", "the same under a scheduler without groups", "cgroup_weight=300\n");
    assert!((620..720).contains(&unaware), "three tasks: {unaware}");
}
