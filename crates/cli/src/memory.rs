//! Whether there is enough memory for runs, before the first one starts.

use std::fs;

use fairhead_device::{Device, DeviceParams};
use fairhead_sim::job::JobFile;
use fairhead_sim::{Host, memory};

use crate::error::CliError;

/// What is taken to be free where the system does not say.
const UNKNOWN: u64 = 4 << 30;

/// How many runs of these jobs fit into memory at a time, at most `threads`.
///
/// # Errors
/// If there is no room for one.
pub(crate) fn at_a_time(
    jobs: &JobFile,
    setting: (&DeviceParams, &Host),
    threads: usize,
) -> Result<usize, CliError> {
    fit(jobs, setting, threads, free())
}

fn fit(
    jobs: &JobFile,
    (disk, host): (&DeviceParams, &Host),
    threads: usize,
    free: u64,
) -> Result<usize, CliError> {
    let bytes = |model: &DeviceParams| Device::new(model).map_or(0, |d| d.facts().capacity * 512);
    let capacity = jobs.models(disk).into_iter().map(bytes).max().unwrap_or(0);
    let needed = memory(jobs, host, capacity);
    if needed.bytes > free {
        let gib = |bytes: u64| format!("{}.{} GiB", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30);
        return Err(CliError::Misuse(format!(
            "{}: a run needs about {} of memory, {} of it for {}, and {} are free; use fewer of them",
            jobs.file_name,
            gib(needed.bytes),
            gib(needed.most.1),
            needed.most.0,
            gib(free)
        )));
    }
    let room = usize::try_from(free / needed.bytes.max(1)).unwrap_or(usize::MAX);
    Ok(threads.min(room).max(1))
}

/// Memory that may be used without others losing theirs, in bytes.
fn free() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available(&text).unwrap_or(UNKNOWN)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_sim::job::parse;

    #[test]
    fn a_job_that_needs_more_than_there_is_is_refused_with_the_figure() {
        let (disk, host) = (DeviceParams::preset("sata_ssd").unwrap(), Host::named("2020").unwrap());
        let fits = |text: &str, free| fit(&parse(text, "m.fio").unwrap(), (&disk, &host), 8, free);
        let large = "[a]\nsize=1m\nnumjobs=4096\niodepth=4096\nioengine=io_uring\n";
        let Err(CliError::Misuse(error)) = fits(large, 3 << 30) else { panic!("it fits") };
        assert!(
            error.starts_with("m.fio: a run needs about ") && error.contains(" for 16777216 calls in flight"),
            "{error}"
        );
        assert!(error.ends_with("and 3.0 GiB are free; use fewer of them"), "{error}");
        let small = "[a]\nsize=1m\n";
        assert_eq!(fits(small, 64 << 30).unwrap(), 8);
        // As many at a time as there is room for.
        assert_eq!(fits(small, 200 << 20).unwrap(), 3);
    }

    #[test]
    fn what_is_free_is_read_from_the_system() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert!(free() > 1 << 20);
    }
}
