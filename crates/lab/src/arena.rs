//! The arena: the loads, disks and schedulers that `fairhead arena` compares unless others are named.
//!
//! Each load is a job file of `examples/arena`. Its first comment says who has this load and what they want,
//! and a line `Kinds:` what each job is; the options, with `fh_kind` where they do not say it, agree.

use crate::workloads::Workload;

macro_rules! loads {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../jobs/arena/", $name, ".fio"))),)*];
    };
}

loads! {
    "start-1-aged",
    "start-10-aged",
    "start-6-fresh",
    "start-10-together",
    "start-copy-film",
    "start-database",
    "start-update",
    "start-build",
    "start-four",
    "start-writers",
    "film-copy",
    "films-upload",
    "films-idle-backup",
    "download-film",
    "cameras",
    "log-stream",
    "log-dump",
    "log-random-writers",
    "log-deep",
    "fsync-storm",
    "mail-server",
    "query-streams",
    "query-random",
    "rt-beside-be",
    "scrub-idle",
    "streams-2",
    "streams-8",
    "levels",
    "random-16",
    "random-deep",
    "mixed-blocks",
    "seq-and-random",
    "reader-writer",
    "build",
    "small-files",
    "groups-streams",
    "groups-noisy",
    "groups-vms",
    "groups-limit",
    "groups-start",
}

/// The disks: drives that turn, cards, SATA drives of flash, NVMe drives.
pub const DISKS: [&str; 12] = [
    "sata2009",
    "nas2020",
    "greedy_ncq",
    "dual_actuator",
    "raid1_2009",
    "microsd_a1",
    "emmc51",
    "plextor_m5s",
    "sata_ssd",
    "dramless",
    "nvme",
    "980pro",
];

/// The schedulers: those of a kernel of today, and the last CFQ.
pub const SCHEDULERS: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];

/// The loads, each with the first sentence of its comment.
pub fn loads() -> impl Iterator<Item = Workload> {
    FILES.iter().map(|&(name, text)| Workload { name, about: first_sentence(text), text })
}

/// The first comment up to its first full stop.
fn first_sentence(text: &'static str) -> &'static str {
    let comment = text.strip_prefix("# ").unwrap_or(text);
    comment.split(['.', '\n']).next().unwrap_or(comment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Duration;
    use fairhead_core::sched::any::preset;
    use fairhead_device::DeviceParams;
    use fairhead_sim::arena::SPAN;
    use fairhead_sim::job::{JobFile, parse};
    use fairhead_sim::satisfaction::{Load, kind};
    use fairhead_sim::{Host, Scenario, simulate};
    use std::collections::BTreeSet;

    fn parsed() -> impl Iterator<Item = (Workload, JobFile)> {
        loads().map(|w| (w, parse(w.text, w.name).unwrap_or_else(|e| panic!("{e}"))))
    }

    #[test]
    fn there_are_forty_loads_with_names_of_their_own() {
        let names: BTreeSet<&str> = loads().map(|w| w.name).collect();
        assert_eq!((names.len(), FILES.len()), (40, 40));
        for w in crate::workloads::WORKLOADS {
            assert!(!names.contains(w.name), "{} is another workload, too", w.name);
        }
        for w in loads() {
            assert!(
                w.about.len() > 20 && w.text.contains(&format!("# {}.", w.about)),
                "{}: {}",
                w.name,
                w.about
            );
        }
    }

    #[test]
    fn each_load_is_over_one_span_and_says_nothing_that_is_ignored() {
        for (w, jobs) in parsed() {
            assert_eq!(Load::span_of(&jobs), Some(SPAN), "{}", w.name);
            assert_eq!(jobs.notes, Vec::<String>::new(), "{}", w.name);
        }
    }

    #[test]
    fn jobs_are_of_the_kinds_that_the_comment_says() {
        for (w, jobs) in parsed() {
            let line = w.text.lines().find_map(|l| l.strip_prefix("# Kinds: ")).expect(w.name);
            let is = |job: usize| format!("{} {}", jobs.jobs[job].name, kind(&jobs, &jobs.jobs[job]).word());
            let all: Vec<String> = (0..jobs.jobs.len()).map(is).collect();
            assert_eq!(line, format!("{}.", all.join(", ")), "{}", w.name);
        }
    }

    #[test]
    fn each_load_fits_each_disk() {
        for disk in DISKS {
            for (w, jobs) in parsed() {
                let scenario = Scenario {
                    jobs,
                    disk: DeviceParams::preset(disk).unwrap(),
                    host: Host::for_disk(disk),
                    scheduler: "noop".to_owned(),
                    config: (preset("noop").unwrap().config)(),
                    seed: 1,
                    interval: None,
                    time_max: Some(Duration::from_us(1)),
                    watch: None,
                };
                simulate(&scenario).unwrap_or_else(|e| panic!("{} on {disk}: {e}", w.name));
            }
        }
    }
}
