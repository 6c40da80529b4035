//! A buffered writer beside others, client by client, as Linux 6.18 has them.
//!
//! `tests/data/write-back.csv` was measured on a loop device over an emulated `nas2020`, with 31 commands at a
//! time and 62 requests under a scheduler, dirty limits of 102 and 205 MiB, and a read-ahead of 2560 KiB. A
//! figure is right within 15 % or 1 MiB/s. Those that are not are in [`MISSES`] with the reason.

use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, Scenario, job, parallel, simulate};

const MEASURED: &str = include_str!("../data/write-back.csv");
const HOST: &str = "2023,dirty_background_bytes=102m,dirty_bytes=205m,read_ahead_kb=2560";
const STORE: &str = "[global]\nfilename=/dev/sdb\nruntime=10\ntime_based\nioengine=psync\n\
    [store]\nrw=write\nbs=1m\noffset=20g\nsize=4g\noverwrite=1\n";
const LOADS: [(&str, &str); 8] = [
    ("alone", ""),
    ("direct-reader", "[r]\nrw=read\nbs=256k\ndirect=1\noffset=40g\nsize=8g\n"),
    ("idle-reader", "[r]\nrw=read\nbs=512k\ndirect=1\noffset=40g\nsize=8g\nprioclass=3\n"),
    ("buffered-reader", "[r]\nrw=read\nbs=256k\noffset=40g\nsize=8g\n"),
    ("browse", "[r]\nrw=randread\nbs=16k\noffset=30g\nsize=4g\nthinktime=20ms\n"),
    ("film", "[r]\nrw=read\nbs=256k\noffset=30g\nsize=4g\nrate=2m\n"),
    ("random4", "[r]\nrw=randread\nbs=4k\ndirect=1\noffset=30g\nsize=8g\nnumjobs=4\n"),
    ("fsync-log", "[r]\nrw=write\nbs=4k\nfsync=1\noffset=50g\nsize=64m\nthinktime=10ms\n"),
];
const MIB: f64 = 1_048_576.0;

/// A figure of the table: load, scheduler, `store`, `r` or `written`; and MiB/s.
struct Figure {
    name: String,
    kernel: f64,
    lab: f64,
}

impl Figure {
    fn is_right(&self) -> bool {
        (self.lab - self.kernel).abs() <= (0.15 * self.kernel).max(1.0)
    }
}

fn config(scheduler: &str) -> AnyConfig {
    let mut config = (preset(scheduler).expect("built in").config)();
    if scheduler == "bfq" {
        config.set("quirks", 1).expect("a tunable of bfq");
    }
    config
}

/// `store`, `r` and `written` of a load in the lab.
fn run(load: &str, scheduler: &str) -> [f64; 3] {
    let others = LOADS.iter().find(|l| l.0 == load).expect("a load of the table").1;
    let scheduler = if scheduler == "none" { "noop" } else { scheduler };
    let outcome = simulate(&Scenario {
        jobs: job::parse(&format!("{STORE}{others}"), load).expect("a valid job file"),
        disk: DeviceParams::preset("nas2020").expect("built in"),
        host: Host::parse(HOST, "nas2020").expect("a host").1,
        scheduler: scheduler.to_owned(),
        config: config(scheduler),
        seed: 1,
        interval: Some(fairhead_core::Duration::from_secs(2)),
        time_max: None,
        watch: None,
    })
    .expect("a load that fits");
    let of = |name: &str| {
        let clients = outcome.clients.iter().filter(|c| c.name == name);
        #[allow(clippy::cast_precision_loss, reason = "a figure of four digits")]
        clients.map(|c| (c.read.bytes + c.write.bytes) as f64 / MIB / 10.0).sum()
    };
    let written: u64 = outcome.disk_series.iter().skip(1).map(|p| p.written_bytes).sum();
    [of("store"), of("r"), written as f64 / MIB / 8.0]
}

#[test]
fn show() {
    let rows: Vec<Vec<&str>> = MEASURED
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("load") && !l.contains("nowbt"))
        .map(|l| l.split(',').collect())
        .collect();
    let ran = parallel::map(rows.len(), 2, &|_| {}, |i| run(rows[i][0], rows[i][1]));
    for (row, lab) in rows.iter().zip(ran) {
        println!("{:>16} {:>12}: kernel {:>8} {:>8} {:>8}  lab {:>8.2} {:>8.2} {:>8.1}", row[0], row[1], row[2], row[3], row[4], lab[0], lab[1], lab[2]);
    }
}
