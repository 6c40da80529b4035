//! The built-in workloads: the example job files, and the programs that jobs can name.

use fairhead_machine::lab::{LOADS, Named as Workload};

macro_rules! workloads {
    ($($name:literal: $about:literal,)*) => {
        /// The example job files; the first is what `run` does without a job file.
        pub(crate) const WORKLOADS: &[Workload] = &[$(Workload {
            name: $name,
            about: $about,
            text: include_str!(concat!("../jobs/", $name, ".fio")),
        },)*];
    };
}

workloads! {
    "app-start": "an application starts while ten readers stream (the default)",
    "readers-and-writers": "four streaming readers, alone and beside four writers",
    "random-readers": "eight processes read 64 KiB at random past the page cache",
    "database": "pages at random, a log synced at each commit, a backup",
    "backup": "a backup runs, customers ask, and an office program starts (docs/tutorial.md)",
    "desktop": "a film plays and an office program starts beside a copy",
    "postgres": "a database: pages at random, a log synced at each commit, a dump",
    "nas": "network storage: films, a store, a user who browses, a scrub",
    "vm-host": "three virtual machines in groups: customers, a batch job, an update",
    "build-server": "four compilers beside an archive that is unpacked",
    "camera-recorder": "eight cameras store at a fixed rate while two searches read",
    "tenants": "a service, a nightly job and a scrub, by I/O priority",
    "small-queries": "queries of five dependent reads in one group while four dd stream in another",
    "four-drives": "eight processes read from four NVMe drives under one host",
    "cgroups": "customers and tenants in nested control groups, with a limit, a guarantee and a change during the run",
    "throughput-sync": "S suite: one reader, ten, ten at random",
    "throughput-sync-writers": "S suite: five readers and five writers, sequential, then random",
    "throughput-raw": "S suite: one, ten and ten random readers of the disk itself",
    "startup-idle": "S suite: three applications start on an idle disk",
    "startup-10r-seq": "S suite: the same while ten readers stream",
    "startup-10r-rand": "S suite: beside ten random readers",
    "startup-5r5w-seq": "S suite: beside five readers and five writers",
    "startup-5r5w-rand": "S suite: the same, all at random",
    "video": "S suite: a film plays while ten readers stream",
    "video-writers": "S suite: the same beside five readers and five writers",
    "fairness": "S suite: two readers in groups of weights 100:100, 100:200, 100:1000",
    "bandwidth-latency": "S suite: a random reader of weight 300 beside four streaming groups",
    "bandwidth-latency-cases": "S suite: the other cases of the same",
    "bandwidth-latency-equal": "S suite: eight groups of equal weight",
    "latency": "S suite: a real-time reader beside fifteen others",
    "interleaved": "S suite: readers whose requests make one stream together",
    "kernel-make": "S suite: five compilers while ten readers stream",
    "git-grep": "S suite: a search through a source tree while ten readers stream",
    "file-copy": "S suite: five file copies at the same time",
}

/// The programs of `fh_workload`.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("fsck", "a file system check: bitmaps and inode tables over the whole disk (fh_workload=fsck)"),
    ("dbscan", "a table scan of 8 KiB reads through the page cache (fh_workload=dbscan)"),
    (
        "player",
        "a media player: 24 frames a second of a film of 4 Mbit/s (fh_workload=player:8m for another), each with a deadline",
    ),
    ("startup:xterm", "a start of xterm: 164 cold reads that depend on each other, 0.175 s of CPU"),
    ("startup:gnome-terminal", "the same for gnome-terminal: 789 reads"),
    ("startup:lowriter", "for LibreOffice Writer: 606 reads, 45 MB"),
    ("startup:oowriter", "for OpenOffice Writer: 900 reads"),
    ("startup:konsole", "for konsole: 2500 reads"),
    ("startup:bash", "for a shell that exits at once: 41 reads, an assumption"),
];

/// All workloads: the examples, and the loads behind the numbers of `doctor`.
pub(crate) fn all() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().chain(LOADS)
}

/// The workload of that name.
pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    all().find(|w| w.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_valid_job_files() {
        for w in all() {
            fairhead_sim::job::parse(w.text, w.name).unwrap_or_else(|e| panic!("{e}"));
        }
        for (name, _) in PROGRAMS {
            fairhead_sim::job::parse(&format!("[j]\nfh_workload={name}\n"), name)
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
