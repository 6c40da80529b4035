//! One voice: what doctor recommends for a kind of disk is what the lab advises for such disks.
//!
//! ```text
//!   a disk of each kind under each of the kernel's schedulers ─► doctor: use another
//!   presets of that kind × a desktop and a server, over seeds ─► satisfaction and floors, as advice has them
//! ```
//!
//! On a desktop doctor's scheduler is never one that a floor of advice bars, nor surely worse than what is in
//! use, unless the finding says for which load it is meant. On a server it may be, and then the finding says
//! that it is not meant for that load.

use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_machine::{Machine, Tree, checks};
use fairhead_sim::advise::{Book, EQUAL, statistics::Finding};
use fairhead_sim::sweep::{Part, Setting, Sweep, Tuned};
use fairhead_sim::{Host, job};

use crate::trees::machines;

const KERNEL: [&str; 3] = ["none", "mq-deadline", "bfq"];

/// A kind of disk as a text tree, without its scheduler, and presets of that kind.
const KINDS: [(&str, &[&str]); 5] = [
    ("hdd sda 8:0 SCHEDULER", &["nas2020", "sata2009", "greedy_ncq"]),
    ("ssd sda 8:0 SCHEDULER", &["sata_ssd", "plextor_m5s"]),
    ("nvme nvme0n1 259:0 SCHEDULER", &["nvme"]),
    (MMC_CARD, &["microsd_a1"]),
    (MMC_CHIP, &["emmc51"]),
];
const MMC_CARD: &str = "disk mmcblk0 179:0 platform/mmc_host/mmc0/mmc0:aaaa\n  device/type = SD\n  \
                        queue/rotational = 0\n  queue/scheduler = OFFERED\n  mq 1";
const MMC_CHIP: &str = "disk mmcblk0 179:0 platform/mmc_host/mmc0/mmc0:0001\n  device/type = MMC\n  \
                        queue/rotational = 0\n  queue/scheduler = OFFERED\n  mq 1";

/// What doctor recommends for a disk under a scheduler, and what it says of it.
fn recommended(kind: &str, now: &str) -> Option<(String, String)> {
    let offered = KERNEL.join(" ").replace(now, &format!("[{now}]"));
    let text = format!("=== it\n{}", kind.replace("SCHEDULER", now).replace("OFFERED", &offered));
    let (_, root, _) = machines(&text).pop().unwrap();
    let machine = Machine::read(&Tree::new(root.folder.path()));
    let findings = checks::run(&machine);
    let found = findings.into_iter().find(|f| f.check.starts_with("scheduler-"))?;
    let better = KERNEL.into_iter().find(|s| found.mend.contains(&format!("echo {s} ")))?;
    Some((better.to_owned(), format!("{} {}", found.why, found.mend)))
}

/// The runs of a load on a disk under the kernel's schedulers.
fn book(text: &str, disk: &str) -> Book {
    let mut jobs = job::parse(text, "load").unwrap();
    jobs.jobs.iter_mut().filter_map(|job| job.runtime.as_mut()).for_each(|time| *time = *time / 3);
    let tuned = |name: &str| {
        let scheduler = if name == "none" { "noop" } else { preset(name).unwrap().name };
        Tuned { scheduler, set: String::new(), config: (preset(scheduler).unwrap().config)() }
    };
    let disk_model = DeviceParams::preset(disk).unwrap();
    let setting = Setting { name: disk.to_owned(), disk: disk_model, host: Host::for_disk(disk) };
    let sweep = Sweep { jobs, settings: vec![setting], tuned: KERNEL.map(tuned).to_vec(), seed: 1, seeds: 3 };
    let swept = sweep.run(Part::WHOLE, 2, &(), &|_| {}).unwrap();
    let mut book = Book::new(&swept.bases[0].load.parties, None, KERNEL.len());
    for (i, standing) in book.standings.iter_mut().enumerate() {
        standing.race = swept.seeds(&sweep, 0, i).iter().map(|row| row.run().clone()).collect();
    }
    book
}

#[test]
fn doctor_recommends_what_the_lab_advises() {
    let at = |name: &str| KERNEL.iter().position(|s| *s == name).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (kind, presets) in KINDS {
        let all: Vec<_> = KERNEL.iter().filter_map(|now| Some((*now, recommended(kind, now)?))).collect();
        for disk in presets {
            for (load, text, exception) in [
                ("desktop", include_str!("../../../../examples/desktop.fio"), "deep readers"),
                ("postgres", include_str!("../../../../examples/postgres.fio"), "server"),
            ] {
                let book = book(text, disk);
                for (now, (better, said)) in &all {
                    let (a, b) = (at(better), at(now));
                    let worse = book.against(a, b).load.finding(EQUAL) == Finding::Worse;
                    let barred = book.floor(a, b);
                    count += 1;
                    println!("{load} on {disk}: {now} -> {better}: {:?} {barred:?}", book.against(a, b).load);
                    let is_excepted = said.contains(exception) || said.contains("deep readers");
                    if (worse || barred.is_some()) && !is_excepted {
                        wrong.push(format!(
                            "{load} on {disk}, {now} to {better}: {barred:?}; it says: {said}"
                        ));
                    }
                }
            }
        }
    }
    assert!(count >= 16, "{count} recommendations");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
