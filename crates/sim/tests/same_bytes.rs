//! One scenario gives one result, byte for byte: in debug and in release, on one thread or two, today and
//! next year.
//!
//! Every scheduler runs a few short loads on a few disks; all figures, in whole numbers, must equal those in
//! `golden/outcomes.txt`, which was written once and is compared in every profile that the suite runs in. A
//! change that moves them says why in its commit and in the CHANGELOG's *Scheduling behaviour*, and rewrites
//! the file with `FAIRHEAD_BLESS=1`.

use fairhead_core::sched::any::PRESETS;
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, Outcome, Scenario, job, parallel, simulate};
use std::fmt::Write as _;

const LOADS: &[(&str, &str, &str)] = &[
    (
        "readers",
        "ide2004",
        "[r]\nrw=read\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\nnumjobs=3\n[w]\nrw=randwrite\nbs=16k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\n",
    ),
    (
        "mixed",
        "nas2020",
        "[a]\nrw=randrw\nbssplit=4k/50:64k/50\ndirect=1\nioengine=libaio\niodepth=8\nsize=1g\ntime_based\nruntime=2s\n[b]\nrw=read\nbs=128k\ndirect=1\nsize=1g\ntime_based\nruntime=2s\nprio=2\n[c]\nrw=read\nbs=4k\nsize=32m\n[d]\nrw=write\nbs=4k\nsize=32m\nend_fsync=1\n",
    ),
    (
        "card",
        "flashcard2010",
        "[s]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\nnumjobs=2\n[l]\nrw=randwrite\nbs=64k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\nthinktime=5ms\n",
    ),
    (
        "cached",
        "ide2004",
        "[global]\nsize=32m\ntime_based\nruntime=2s\n[z]\nrw=randread\nrandom_distribution=zipf:1.2\n[p]\nrw=randrw\nbs=8k\nrandom_distribution=pareto:0.2\nfsync=20\n[n]\nrw=randwrite\nrandom_distribution=normal:15\nsync=dsync\n[g]\nrw=write\nbs=16k\nfh_layout=ext2\nnumjobs=2\ndirect=1\n[h]\nrw=randwrite\nfh_layout=ext2\ndirect=1\n[d]\nfh_workload=dbscan\n",
    ),
    (
        "startup",
        "sata2009",
        "[r]\nrw=read\nbs=64k\nsize=1g\ntime_based\nruntime=20s\nnumjobs=2\n[b]\nstartdelay=1s\nfh_workload=startup:bash\nfh_iterations=2\nfh_pause=500ms\nexitall\n",
    ),
    (
        "player",
        "sata2009",
        "[z]\nfilename=/dev/sda\nrw=read\nbs=16k\ndirect=1\noffset=1g\noffset_increment=16k\nzonemode=strided\nzonesize=16k\nzoneskip=32k\ntime_based\nruntime=2s\nnumjobs=3\n[f]\nfh_workload=player\nruntime=2s\n",
    ),
    (
        "mirror",
        "raid1_2009",
        "[global]\nsize=64m\ntime_based\nruntime=2s\n[r]\nrw=read\nbs=64k\nnumjobs=2\n[x]\nrw=randrw\nbs=8k\ndirect=1\nioengine=libaio\niodepth=8\n[s]\nrw=randwrite\nbs=16k\nfsync=8\n",
    ),
    (
        "ssd",
        "nvme",
        "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nsize=1g\ntime_based\nruntime=50ms\n[w]\nrw=randwrite\nbs=16k\ndirect=1\nsize=1g\nfsync=50\ntime_based\nruntime=50ms\n[s]\nrw=read\nbs=128k\ndirect=1\nsize=1g\ntime_based\nruntime=50ms\n",
    ),
    (
        "embedded",
        "microsd_a1",
        "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=1s\n[w]\nrw=randwrite\nbs=16k\ndirect=1\nsize=64m\nfsync=20\ntime_based\nruntime=1s\n",
    ),
    (
        "replay",
        "nas2020",
        "[r]\nrw=read\nbs=64k\nsize=64m\ndirect=1\ntime_based\nruntime=2s\n[t]\nfh_startup_trace=TRACE\nfh_iterations=2\nfh_pause=100ms\n",
    ),
];

/// What the load `replay` replays: 20 bursts of read-ahead by one process and reads by two.
fn trace() -> Vec<u8> {
    let line = |i: u32| {
        let (process, kind, flags) = match i % 12 {
            0 => ("a", "Rand", "RA"),
            1..8 => ("a", "Seq", "RA"),
            8 => ("b", "Rand", "RM"),
            9 => ("a", "Seq", "R"),
            _ => ("b", "Seq", "R"),
        };
        format!("{process} .001 {} 0 {kind} 0 0 {flags} 1.0 C\n", 8 << (i % 3))
    };
    (0..240).map(line).collect::<String>().into_bytes()
}

fn outcome(index: usize) -> Outcome {
    let (_, disk, text) = LOADS[index / PRESETS.len()];
    let preset = &PRESETS[index % PRESETS.len()];
    let mut jobs = job::parse(text, "same_bytes.fio").expect("a valid job file");
    jobs.read_traces(|_| Ok(trace())).expect("a valid trace");
    let scenario = Scenario {
        seed: 7,
        ..Scenario::new(
            jobs,
            DeviceParams::preset(disk).expect("a built-in disk"),
            Host::for_disk(disk),
            preset.name,
            (preset.config)(),
        )
    };
    simulate(&scenario).expect("a valid scenario")
}

fn table(threads: usize) -> String {
    let outcomes = parallel::map(LOADS.len() * PRESETS.len(), threads, &|_| {}, outcome);
    let mut table =
        String::from("# load scheduler client calls bytes latency_max_ns latency_sum_ns elapsed_ns\n");
    for (i, o) in outcomes.iter().enumerate() {
        for c in &o.clients {
            for (dir, s) in [("r", &c.read), ("w", &c.write), ("s", &c.sync)] {
                if s.calls > 0 {
                    writeln!(
                        table,
                        "{} {} {}.{}{dir} {} {} {} {} {}",
                        LOADS[i / PRESETS.len()].0,
                        o.scheduler,
                        c.name,
                        c.clone,
                        s.calls,
                        s.bytes,
                        s.latency_max.as_ns(),
                        s.latency_sum.as_ns(),
                        c.elapsed.as_ns()
                    )
                    .expect("writing to a string");
                }
            }
        }
        let d = &o.disk;
        writeln!(
            table,
            "{} {} disk issued {} merged {} busy_ns {} idled_ns {} seeks {} events {}",
            LOADS[i / PRESETS.len()].0,
            o.scheduler,
            d.issued,
            d.merged,
            d.busy.as_ns(),
            d.idled.as_ns(),
            d.counters.seeks,
            o.events
        )
        .expect("writing to a string");
    }
    table
}

#[test]
fn one_thread_or_two_and_any_profile_give_the_same_bytes() {
    let (one, two) = (table(1), table(2));
    assert!(one == two, "threads change the result");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/outcomes.txt");
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        std::fs::write(path, &one).expect("the golden file is writable");
    }
    let golden = std::fs::read_to_string(path).expect("the golden file");
    let differs = one.lines().zip(golden.lines()).find(|(a, b)| a != b);
    assert!(one == golden, "ours and the golden file differ, first here: {differs:?}");
}
