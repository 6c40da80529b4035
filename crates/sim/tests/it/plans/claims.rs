//! What BFQ is for, as its authors' benchmarks ask for it: bandwidth beside greedy neighbours, films, readers
//! that start together. What the kernel's rules keep from being so is tried with `repairs`, as live engines
//! have it.
//
//= docs/reference/benchmarks.md#5-video to 8

use super::plan::{MIB, Plan};
use fairhead_core::Duration;
use fairhead_sim::metrics::Outcome;

/// What the interfered client of weight 300 gets in bytes per second, for 1 s, beside four of weight 100, on
/// a drive of 2012.
fn interfered(reads: &str, others: &str) -> u64 {
    let mut text = format!(
        "[global]\nsize=1g\nbs=4k\nruntime=1s\nramp_time=1s\ntime_based\n[interfered]\nrw={reads}\ncgroup=i\ncgroup_weight=300\n"
    );
    for i in 1..=4 {
        text += &format!("[other-{i}]\nrw={others}\ncgroup=o{i}\ncgroup_weight=100\n");
    }
    let plan = Plan::on("plextor_m5s").scheduler("bfq").set("repairs", 1).set("low_latency", 0);
    let plan = plan.load(others, &text).run();
    let client = &plan.outcome().clients[0];
    client.read.bytes * 1_000_000 / client.elapsed.as_us()
}

#[test]
fn an_interfered_client_gets_its_ten_megabytes_a_second() {
    for reads in ["randread", "read"] {
        for others in ["read", "randread", "write", "randwrite"] {
            let rate = interfered(reads, others);
            assert!(rate >= 10_000_000, "{reads} x {others}: {rate} bytes/s");
        }
    }
}

/// A film beside these jobs, and a `dd` of 15 MB every 4 s, each in a group of its own: the end of one does
/// not end the film.
fn film(others: &str) -> String {
    let mut text = format!("{others}\n[film]\nsize=10m\nstartdelay=2s\nfh_workload=player:4m\nexitall\n");
    for second in [6, 10, 14, 18] {
        text += &format!("[dd-{second}]\nnew_group\nrw=read\nbs=1m\nsize=15m\nstartdelay={second}s\n");
    }
    text
}

#[test]
fn a_film_plays_without_a_hitch() {
    let readers = |n: u32| format!("[r]\nbs=64k\nrw=read\nsize=1200m\nnumjobs={n}\nruntime=1h\ntime_based\n");
    let writers = "[w]\nbs=4k\nrw=write\nsize=1200m\nnumjobs=5\nrate=800k\nruntime=1h\ntime_based\n";
    for (what, others) in [
        ("alone", String::new()),
        ("10 readers", readers(10)),
        ("5 readers and 5 writers", readers(5) + writers),
    ] {
        for disk in ["nas2020", "sata2009"] {
            Plan::on(disk).scheduler("bfq").load(what, &film(&others)).run().check(
                "all 480 frames are shown",
                |o| {
                    let film = o.clients.iter().find_map(|c| c.frames);
                    film.is_some_and(|f| (f.shown, f.dropped) == (480, 0))
                },
            );
        }
    }
}

const THREE_READERS: &str =
    "[r]\nrw=read\nbs=64k\ndirect=1\nsize=4g\nnumjobs=3\nramp_time=15s\nruntime=5s\ntime_based\n";

/// MiB/s of all clients.
fn mib(o: &Outcome) -> u64 {
    o.clients.iter().map(|c| c.read.bytes).sum::<u64>() / 5 / MIB
}

#[test]
fn sequential_readers_that_start_together_are_one_queue_for_good_in_the_kernel() {
    Plan::on("nas2020")
        .scheduler("bfq")
        .load("three direct readers that are not raised any more", THREE_READERS)
        .run()
        .check("the disk seeks between them at each request", |o| mib(o) < 20);
}

#[test]
fn sequential_readers_that_start_together_stay_apart() {
    Plan::on("nas2020")
        .scheduler("bfq")
        .set("repairs", 1)
        .set("streams", 1)
        .load("three direct readers that are not raised any more", THREE_READERS)
        .run()
        .check("get most of the disk's 199 MiB/s", |o| mib(o) > 150)
        .check("and no client is put off", |o| {
            o.clients.iter().all(|c| c.latency_max() < Duration::from_secs(1))
        });
}

/// The rate of `n` readers for 3 s, each of which reads 16 KiB and skips what the others read: together one
/// stream.
fn interleaved(n: u32) -> u64 {
    let skip = 16 * (n - 1);
    let text = format!(
        "[r]\nfilename=/dev/sdx\noffset=1g\nrw=read\nbs=16k\ndirect=1\nruntime=3s\ntime_based\nnumjobs={n}\noffset_increment=16k\nzonemode=strided\nzonesize=16k\nzoneskip={skip}k\n"
    );
    let plan = Plan::on("nas2020").scheduler("bfq").load("interleaved readers", &text).run();
    plan.outcome().clients.iter().map(|c| c.read.bytes).sum::<u64>() / 3
}

#[test]
fn interleaved_readers_are_one_stream() {
    let alone = interleaved(1);
    for n in [3, 5, 6, 7, 9] {
        let rate = interleaved(n);
        assert!(rate * 10 >= alone * 9, "{n} readers: {rate} bytes/s, one alone {alone}");
    }
}

/// How far the heavier of two clients, each in a group of its own, is from its share after 10 s, in
/// thousandths of the lighter one's rate times the ratio of their weights. The mean of some seeds: random
/// reads differ in cost.
fn off_by(disk: &str, set: &[(&str, u64)], job: &str, sizes: [&str; 2], heavy: u64, seeds: u64) -> u64 {
    let text = format!(
        "[global]\n{job}\ndirect=1\nsize=2g\nruntime=10s\ntime_based\n[light]\nbs={}\ncgroup=l\ncgroup_weight=100\n[heavy]\nbs={}\ncgroup=h\ncgroup_weight={heavy}\n",
        sizes[0], sizes[1]
    );
    let mut bytes = [0; 2];
    for seed in 1..=seeds {
        let mut plan = Plan::on(disk).scheduler("bfq").set("low_latency", 0).set("repairs", 1).seed(seed);
        for (name, value) in set {
            plan = plan.set(name, *value);
        }
        let plan = plan.load(job, &text).run();
        for (sum, client) in bytes.iter_mut().zip(&plan.outcome().clients) {
            *sum += client.read.bytes;
        }
    }
    (bytes[1] * 100).abs_diff(bytes[0] * heavy) * 1000 / (bytes[0] * heavy)
}

/// A slot is less than 2 % of what the lighter one gets in 10 s, by `max_budget`: 4 MiB, and 1 MiB for 1:10,
/// which gets 62 MiB of a slow disk. By default it has seven or eight slots of 125 ms there, and one more or
/// less is 14 %.
#[test]
fn groups_get_their_shares_within_two_percent() {
    let deep = "rw=read\nioengine=libaio\niodepth=8";
    let deep_random = "rw=randread\nioengine=libaio\niodepth=8";
    for (heavy, budget) in [(100, 8192), (200, 8192), (1000, 2048)] {
        for sizes in [["64k", "64k"], ["32k", "256k"]] {
            for disk in ["nas2020", "sata2009", "plextor_m5s"] {
                let off = off_by(disk, &[("max_budget", budget)], deep, sizes, heavy, 1);
                assert!(off <= 20, "{disk}, 100:{heavy}, sequential, {sizes:?}: off by {off} thousandths");
            }
            let off = off_by("plextor_m5s", &[("max_budget", budget)], deep_random, sizes, heavy, 1);
            assert!(off <= 20, "plextor_m5s, 100:{heavy}, random, {sizes:?}: off by {off} thousandths");
        }
    }
}

/// One read at a time is charged by time. What is injected takes time from the slot's owner and is charged as
/// sectors, so it is off; slots are of 10 ms for the same reason as above. The lighter of 1:10 makes 56 reads
/// in 10 s on the slower disk: one is 1.8 %.
#[test]
fn random_readers_get_their_shares_on_a_disk() {
    for disk in ["nas2020", "sata2009"] {
        for heavy in [100, 200, 1000] {
            let set = [("injection", 0), ("timeout_sync", 10_000_000)];
            let off = off_by(disk, &set, "rw=randread", ["4k", "4k"], heavy, 4);
            let most = if heavy == 1000 { 36 } else { 20 };
            assert!(off <= most, "{disk}, 100:{heavy}: off by {off} thousandths");
        }
    }
}

/// As `examples/fairness.fio` has it, with budgets of 2 MiB: at most a tenth of what the lightest reads.
/// Calls are shorter than the windows of read-ahead: with calls of 1 MiB, whose windows are as long, the
/// reader of 20 MiB ends 13 % before the other.
#[test]
fn who_reads_as_much_as_its_weight_says_ends_with_the_others() {
    for (light, heavy) in [(200, 100), (100, 200), (20, 1000)] {
        let text = format!(
            "[global]\nrw=read\nbs=128k\n[light]\nsize={light}m\ncgroup=l\ncgroup_weight=100\n[heavy]\nsize=200m\ncgroup=h\ncgroup_weight={heavy}\n"
        );
        for disk in ["nas2020", "sata2009", "plextor_m5s"] {
            Plan::on(disk)
                .scheduler("bfq")
                .set("repairs", 1)
                .set("low_latency", 0)
                .set("max_budget", 4096)
                .load(&format!("100:{heavy}"), &text)
                .run()
                .check("both end within 5 %", |o| {
                    let [a, b] = [o.clients[0].elapsed, o.clients[1].elapsed];
                    a.max(b).as_us() * 95 <= a.min(b).as_us() * 100
                });
        }
    }
}
