//! A program starts at any time after any number of readers: under BFQ it takes at most one and a half times
//! as long as on an idle disk in the mean, and twice at worst, and the readers lose nothing by that.

use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::metrics::rate;
use fairhead_sim::{Host, Scenario, job, parallel, simulate};

const DISK: &str = "nas2020";
const READERS: [u32; 7] = [1, 2, 3, 5, 6, 7, 10];
const LATER_MS: [u32; 7] = [0, 100, 500, 1000, 3000, 4000, 20_000];
/// Block size, and whether past the page cache.
const KINDS: [(&str, u32); 3] = [("128k", 1), ("1m", 1), ("4k", 0)];
const SEEDS: u64 = 2;

fn bfq(streams: bool) -> AnyConfig {
    let mut config = (preset("bfq").expect("built in").config)().live();
    config.set("streams", u64::from(streams)).expect("a tunable of bfq");
    config
}

/// How long the start takes in ms, and what the disk moves in KiB/s.
fn run(text: &str, streams: bool, seed: u64) -> (u64, u64) {
    let outcome = simulate(&Scenario {
        seed,
        ..Scenario::new(
            job::parse(text, "fresh readers").expect("a valid job file"),
            DeviceParams::preset(DISK).expect("built in"),
            Host::for_disk(DISK),
            "bfq",
            bfq(streams),
        )
    })
    .expect("a load that fits");
    let starts: Vec<_> = outcome.clients.iter().flat_map(|c| &c.startups).collect();
    let [start] = starts[..] else { panic!("{} starts", starts.len()) };
    let c = &outcome.disk.counters;
    (start.took.as_ms(), rate(c.bytes_read + c.bytes_written, outcome.elapsed) / 1024)
}

fn start_after(ms: u32) -> String {
    format!("[application]\nstartdelay={ms}ms\nfh_workload=startup:xterm\nfh_timeout=60s\nexitall\n")
}

fn load(readers: u32, later: u32, (bs, direct): (&str, u32)) -> String {
    format!(
        "[readers]\nrw=read\nbs={bs}\ndirect={direct}\nsize=4g\nnumjobs={readers}\nruntime=100s\ntime_based\n{}",
        start_after(later)
    )
}

#[test]
fn a_program_starts_quickly_however_many_readers_began_just_before() {
    let idle: u64 = (1..=SEEDS).map(|seed| run(&start_after(1000), true, seed).0).sum::<u64>() / SEEDS;
    let cells: Vec<_> = KINDS
        .iter()
        .flat_map(|kind| READERS.map(|readers| (*kind, readers)))
        .flat_map(|(kind, readers)| LATER_MS.map(|later| (kind, readers, later)))
        .flat_map(|(kind, readers, later)| (1..=SEEDS).map(move |seed| (kind, readers, later, seed)))
        .collect();
    let all = parallel::map(cells.len(), parallel::available(), &|_| {}, |i| {
        let (kind, readers, later, seed) = cells[i];
        run(&load(readers, later, kind), true, seed).0
    });
    let (at, worst) = all.iter().enumerate().max_by_key(|(_, ms)| **ms).expect("cells");
    let mean = all.iter().sum::<u64>() / all.len() as u64;
    println!("idle {idle} ms, mean {mean} ms, worst {worst} ms: {:?}", cells[at]);
    assert!(mean * 2 <= idle * 3, "mean {mean} ms, idle {idle} ms");
    assert!(*worst <= idle * 2, "{worst} ms, idle {idle} ms: {:?}", cells[at]);
}

/// The disk is kept for readers that have just begun as it is for others.
#[test]
fn readers_that_have_just_begun_lose_nothing() {
    for readers in [2, 3, 6] {
        for kind in KINDS {
            let text = load(readers, 4000, kind);
            let (with, without) = (run(&text, true, 1).1, run(&text, false, 1).1);
            println!("{readers} readers of {kind:?}: {with} KiB/s, without {without}");
            assert!(
                with * 20 >= without * 19,
                "{readers} readers of {kind:?}: {with} KiB/s, {without} before"
            );
        }
    }
}
