//! The built-in workloads: the job files of the folder `examples`.

/// A job file with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// What `fairhead run` calls it.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// The job file.
    pub text: &'static str,
}

macro_rules! workloads {
    ($($name:literal: $about:literal,)*) => {
        /// The example job files; the first is what `fairhead run` does without a job file.
        pub const WORKLOADS: &[Workload] = &[$(Workload {
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
    "two-containers": "two containers of weights 200 and 100 want all of the disk",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_valid_job_files() {
        for w in WORKLOADS {
            fairhead_sim::job::parse(w.text, w.name).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
