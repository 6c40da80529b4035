//! What BFQ is for, as its authors' benchmarks ask for it: bandwidth beside greedy neighbours, films, readers that start together.
//
//= benchmarks.md 5 to 8 (the project's specification of benchmarks)

use crate::plan::{MIB, Plan};
use fairhead_core::Duration;

/// What the interfered client of weight 300 gets in bytes per second, for 1 s, beside four of weight 100, on a drive of 2012.
fn interfered(reads: &str, others: &str) -> u64 {
    let mut text = format!(
        "[global]\nsize=1g\nbs=4k\nruntime=1s\nramp_time=1s\ntime_based\n[interfered]\nrw={reads}\ncgroup=i\ncgroup_weight=300\n"
    );
    for i in 1..=4 {
        text += &format!("[other-{i}]\nrw={others}\ncgroup=o{i}\ncgroup_weight=100\n");
    }
    let plan = Plan::on("plextor_m5s").scheduler("bfq").set("low_latency", 0).load(others, &text).run();
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

/// A film beside these jobs, and a `dd` of 15 MB every 4 s.
fn film(others: &str) -> String {
    let mut text = format!("{others}\n[film]\nsize=10m\nstartdelay=2s\nfh_workload=player:4m\nexitall\n");
    for second in [6, 10, 14, 18] {
        text += &format!("[dd-{second}]\nrw=read\nbs=1m\nsize=15m\nstartdelay={second}s\n");
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

#[test]
fn sequential_readers_that_start_together_stay_apart() {
    Plan::on("nas2020")
        .scheduler("bfq")
        .load(
            "three direct readers that are not raised any more",
            "[r]\nrw=read\nbs=64k\ndirect=1\nsize=4g\nnumjobs=3\nramp_time=15s\nruntime=5s\ntime_based\n",
        )
        .run()
        .check("get most of the disk's 199 MiB/s", |o| {
            o.clients.iter().map(|c| c.read.bytes).sum::<u64>() > 5 * 150 * MIB
        })
        .check("and nobody is put off", |o| {
            o.clients.iter().all(|c| c.latency_max() < Duration::from_secs(1))
        });
}
