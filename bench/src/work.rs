//! How long the example jobs take to simulate, beside what they are reckoned to take
//! (`fairhead_sim::advise::work`).
//!
//! A line for each job, disk and scheduler: CPU nanoseconds, what is counted, and what that is reckoned to
//! cost.

use crate::simulate::{cpu_ns, scenario};
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, advise, job, simulate};
use std::path::Path;

const DISKS: [&str; 4] = ["nas2020", "ide2004", "sata_ssd", "nvme"];
const SCHEDULERS: [&str; 6] = ["noop", "mq-deadline", "bfq", "cfq", "as", "cfq+groups"];

/// Prints the table for all job files of a folder.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn run(folder: &Path) -> std::io::Result<()> {
    let mut files: Vec<_> = folder.read_dir()?.collect::<std::io::Result<Vec<_>>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    println!("job disk scheduler cpu_ns events requests pages touched destages clients reckoned_ns");
    for file in
        files.iter().map(std::fs::DirEntry::path).filter(|f| f.extension().is_some_and(|e| e == "fio"))
    {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(jobs) = job::parse(&std::fs::read_to_string(&file)?, &name) else { continue };
        for (disk, scheduler) in DISKS.iter().flat_map(|d| SCHEDULERS.map(|s| (*d, s))) {
            one(&jobs, disk, scheduler);
        }
    }
    Ok(())
}

fn one(jobs: &job::JobFile, disk: &str, scheduler: &str) {
    let (Some(preset), Ok(params)) = (preset(scheduler), DeviceParams::preset(disk)) else { return };
    let scenario = scenario(jobs.clone(), params, Host::for_disk(disk), preset);
    let before = cpu_ns();
    let Ok(o) = simulate(&scenario) else { return };
    let ns = cpu_ns() - before;
    println!(
        "{} {disk} {scheduler} {ns} {} {} {} {} {} {} {}",
        jobs.file_name,
        o.events,
        o.disk.issued + o.disk.merged,
        o.cache.pages_read + o.cache.pages_written,
        o.cache.touched,
        o.disk.counters.destages,
        o.clients.len(),
        advise::work(&o).as_ns()
    );
}
