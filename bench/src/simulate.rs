//! How many requests the lab simulates per second of CPU time: on a disk, and on several fast drives.
//!
//! *On a disk*: four clients on the disk model `ide2004`, direct I/O: two read sequentially, one reads at
//! random, one writes sequentially, 4 KiB each, for as much virtual time as makes a few hundred thousand
//! requests.
//!
//! *On drives*: eight processes on four PCIe drives, two for each; every process keeps 128 random reads of
//! 4 KiB in flight (`examples/four-drives.fio`), on the host of 2023.
//!
//! CPU time is what the kernel charges to this process (`/proc/self/schedstat`), so neighbours on the
//! machine count little; it includes making the scenario. A request is one that a device got or that was
//! merged into one.

use fairhead_core::sched::any::Preset;
use fairhead_device::DeviceParams;
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::{Host, Scenario, simulate};
use std::fs;

const JOB: &str = "[global]
direct=1
bs=4k
size=1g
time_based
[sequential]
rw=read
numjobs=2
[random]
rw=randread
[writer]
rw=write
overwrite=1
";

const DRIVES: &str = include_str!("../../examples/four-drives.fio");

/// Nanoseconds that this process has been on a CPU; 0 where the kernel does not report it.
pub(crate) fn cpu_ns() -> u64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// A run with a scheduler as it is.
pub(crate) fn scenario(jobs: JobFile, disk: DeviceParams, host: Host, preset: &Preset) -> Scenario {
    Scenario {
        jobs,
        disk,
        host,
        scheduler: preset.name.to_owned(),
        config: (preset.config)(),
        seed: 1,
        interval: None,
        time_max: None,
        watch: None,
    }
}

/// Requests simulated, and nanoseconds of CPU time that they took.
pub(crate) fn run(preset: &Preset, seconds: u64) -> (u64, u64) {
    let text = JOB.replace("time_based", &format!("time_based\nruntime={seconds}s"));
    let jobs = job::parse(&text, "bench").expect("a valid job file");
    measured(jobs, "ide2004", preset).expect("a valid scenario")
}

/// Processes, and calls of each in flight, of the example.
pub(crate) const DRIVES_LOAD: (u32, u32) = (8, 128);

/// Requests simulated on several drives, and nanoseconds of CPU time that they took.
///
/// The run lasts `ms` of virtual time; each process keeps `depth` calls in flight.
///
/// # Errors
/// If the example cannot be run for that time or with that load; the text is one line.
pub(crate) fn run_drives(
    preset: &Preset,
    ms: u32,
    (processes, depth): (u32, u32),
) -> Result<(u64, u64), String> {
    let text = DRIVES
        .replace("numjobs=8", &format!("numjobs={processes}"))
        .replace("iodepth=128", &format!("iodepth={depth}"))
        .replace("runtime=1s", &format!("runtime={ms}ms"));
    let jobs = job::parse(&text, "four-drives.fio").map_err(|e| e.to_string())?;
    measured(jobs, "nvme", preset)
}

fn measured(jobs: JobFile, disk: &str, preset: &Preset) -> Result<(u64, u64), String> {
    let params = DeviceParams::preset(disk).expect("a built-in disk");
    let scenario = scenario(jobs, params, Host::for_disk(disk), preset);
    let before = cpu_ns();
    let outcome = simulate(&scenario).map_err(|e| e.to_string())?;
    Ok((outcome.disk.issued + outcome.disk.merged, cpu_ns() - before))
}
