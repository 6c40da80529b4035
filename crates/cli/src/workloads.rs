//! The built-in workloads: the example job files, the loads behind the numbers of `doctor`, those of the
//! arena, and the programs that jobs can name.

use fairhead_lab::arena;
use fairhead_lab::workloads::{WORKLOADS, Workload};
use fairhead_machine::lab::LOADS;

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

/// All workloads: the examples, the loads behind the numbers of `doctor`, those of the arena.
pub(crate) fn all() -> impl Iterator<Item = Workload> {
    let of_doctor = LOADS.iter().map(|l| Workload { name: l.name, about: l.about, text: l.text });
    WORKLOADS.iter().copied().chain(of_doctor).chain(arena::loads())
}

/// The workload of that name.
pub(crate) fn find(name: &str) -> Option<Workload> {
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
