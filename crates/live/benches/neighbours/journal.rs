//! A program that keeps a journal in a mount, beside a reader of its own weight.
//!
//! The neighbour writes a byte, calls fsync and pauses for 2 ms; the honest tenant reads 4 KiB at random, one
//! request at a time. Each of [`ROUNDS`] rounds measures both settings one after the other: BFQ as it is
//! live, and without idling, which is what the first is compared with; so a machine that is busy is so for
//! both. The best round of each setting counts, as what other programs take is no doing of a scheduler.
//!
//! On the disk that the repository is on, and on emulated ones: the reader keeps nine tenths of what it gets
//! without idling, and waits for [`Disk::most`] at most, or for as long as it does without idling.

use crate::cgroup::Cgroup;
use crate::honest::Kept;
use crate::place::{fill, heard, in_cgroup, ready};
use crate::processes::Player;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const NO_IDLING: &str = "slice_idle=0";

const SETTINGS: [&str; 2] = ["live", NO_IDLING];

const ROUNDS: usize = 3;

const PAUSES: Duration = Duration::from_millis(2);

/// What is mounted: in which folder, on which model, and for how long a read may wait.
struct Disk {
    name: &'static str,
    folder: &'static str,
    most: Duration,
}

const fn emulated(name: &'static str, most_ms: u64) -> Disk {
    Disk { name, folder: "/dev/shm", most: Duration::from_millis(most_ms) }
}

const DISKS: [Disk; 4] = [
    Disk { name: "this disk", folder: env!("CARGO_TARGET_TMPDIR"), most: Duration::from_millis(100) },
    emulated("nas2020", 250),
    emulated("sata_ssd", 100),
    emulated("microsd_a1", 100),
];

/// Writes, calls fsync and pauses, until it is killed.
pub(crate) fn keep(path: &Path) {
    let file = File::options().write(true).create(true).truncate(false).open(path).expect("a file");
    loop {
        file.write_all_at(b"x", 0).expect("space");
        file.sync_all().expect("a disk");
        std::thread::sleep(PAUSES);
    }
}

pub(crate) fn run(time: Duration) -> ExitCode {
    let mut missed = false;
    println!("     reads   p99 us  longest us");
    for disk in DISKS {
        match measure(&disk, time) {
            Ok(best) => missed |= judge(&disk, best),
            Err(why) => println!("skipped: {}: {why}", disk.name),
        }
    }
    ExitCode::from(u8::from(missed))
}

/// The most reads and the shortest of the longest waits, with each setting.
fn measure(disk: &Disk, time: Duration) -> Result<[Kept; 2], String> {
    let mut best: [Option<Kept>; 2] = [None; 2];
    for _ in 0..ROUNDS {
        for (best, setting) in best.iter_mut().zip(SETTINGS) {
            let kept = once(disk, setting, time)?;
            let before = best.unwrap_or(kept);
            *best = Some(Kept {
                reads: kept.reads.max(before.reads),
                p99: kept.p99.min(before.p99),
                longest: kept.longest.min(before.longest),
            });
        }
    }
    Ok(best.map(|best| best.expect("there are rounds")))
}

fn once(disk: &Disk, setting: &str, time: Duration) -> Result<Kept, String> {
    let cgroups = [Cgroup::new("reader"), Cgroup::new("journal")];
    let [Some(reader), Some(journal)] = cgroups else { return Err("no cgroup can be made".to_owned()) };
    let dir = tempfile::tempdir_in(disk.folder).map_err(|e| e.to_string())?;
    for folder in ["source", "mnt"] {
        fs::create_dir(dir.path().join(folder)).map_err(|e| e.to_string())?;
    }
    fill(&dir.path().join("source/good")).map_err(|e| e.to_string())?;
    let at = dir.path().to_str().expect("a plain name");
    let mut server = Player::server(&["beside-journal", at, disk.name, setting]);
    ready(&mut server)?;
    let neighbour = Player::begin(&mut in_cgroup(&journal, &["journal", &format!("{at}/mnt/evil")]));
    std::thread::sleep(Duration::from_millis(400));
    let role = ["honest", &format!("{at}/mnt/good"), &time.as_millis().to_string()];
    let mut player = Player::begin(&mut in_cgroup(&reader, &role));
    let kept = heard(&player.line(), time);
    drop((player, neighbour));
    Ok(kept)
}

/// Prints what was measured. Returns whether it missed.
fn judge(disk: &Disk, [live, none]: [Kept; 2]) -> bool {
    for (setting, kept) in SETTINGS.iter().zip([live, none]) {
        let (p99, longest) = (kept.p99.as_micros(), kept.longest.as_micros());
        println!("{:>10} {p99:>8} {longest:>11}  {}, {setting}", kept.reads, disk.name);
    }
    let misses = live.reads * 10 < none.reads * 9 || live.longest > disk.most.max(none.longest);
    if misses {
        println!("missed: {}", disk.name);
    }
    misses
}
