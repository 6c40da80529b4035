//! A machine that is right, made of files, and the same machine with one fault after another.

use fairhead_machine::checks::{self, CHECKS};
use fairhead_machine::{Finding, Kind, Machine, Setter, Subject, Tree};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The root folder of a machine made of files.
struct Root(TempDir);

impl Root {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.0.path().join(path)).unwrap();
    }

    fn findings(&self) -> Vec<Finding> {
        checks::run(&Machine::read(&Tree::new(self.0.path())))
    }
}

/// A disk as `/sys` has it.
struct Given<'a> {
    name: &'a str,
    path: &'a str,
    model: &'a str,
    rotational: u8,
    schedulers: &'a str,
    queues: usize,
}

fn disk(root: &Root, d: &Given<'_>) {
    let folder = format!("sys/devices/{}/block/{}", d.path, d.name);
    let write = |file: &str, text: &str| root.write(&format!("{folder}/{file}"), text);
    write("size", "3907029168\n");
    write("dev", &format!("8:{}\n", d.name.bytes().map(u32::from).sum::<u32>()));
    write("device/model", d.model);
    write("queue/rotational", &d.rotational.to_string());
    write("queue/scheduler", d.schedulers);
    for (file, text) in [
        ("nr_requests", "256"),
        ("read_ahead_kb", "128"),
        ("nomerges", "0"),
        ("iostats", "1"),
        ("add_random", "0"),
        ("write_cache", "write back"),
        ("wbt_lat_usec", "0"),
    ] {
        write(&format!("queue/{file}"), text);
    }
    for queue in 0..d.queues {
        write(&format!("mq/{queue}/cpu_list"), "0");
    }
    let link = root.0.path().join("sys/block");
    std::fs::create_dir_all(&link).unwrap();
    std::os::unix::fs::symlink(format!("../devices/{}/block/{}", d.path, d.name), link.join(d.name)).unwrap();
}

/// An NVMe SSD under none; a rotating disk, a SATA SSD and a stick under bfq; weights and priorities that
/// arrive; a rule that is in force.
fn healthy() -> Root {
    let root = Root::new();
    let ata = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0";
    disk(
        &root,
        &Given {
            name: "nvme0n1",
            path: "pci0000:00/nvme/nvme0",
            model: "Samsung SSD 980",
            rotational: 0,
            schedulers: "[none] mq-deadline kyber bfq",
            queues: 8,
        },
    );
    for (name, model, rotational) in [("sda", "WDC WD4003", 1), ("sdb", "Samsung SSD 870", 0)] {
        disk(
            &root,
            &Given {
                name,
                path: ata,
                model,
                rotational,
                schedulers: "none mq-deadline kyber [bfq]",
                queues: 1,
            },
        );
    }
    disk(
        &root,
        &Given {
            name: "sdc",
            path: "pci0000:00/usb1/1-2",
            model: "Ultra Fit",
            rotational: 1,
            schedulers: "none mq-deadline [bfq]",
            queues: 1,
        },
    );
    for name in ["sda", "sdb", "sdc"] {
        let folder = format!("sys/block/{name}");
        for (file, text) in [("low_latency", "1"), ("slice_idle", "8")] {
            root.write(&format!("{folder}/queue/iosched/{file}"), text);
        }
    }
    for name in ["sda", "sdb"] {
        root.write(&format!("sys/block/{name}/device/queue_depth"), "32");
        root.write(&format!("sys/block/{name}/device/scsi_disk/0:0:0:0/cache_type"), "write back");
        root.write(&format!("sys/block/{name}/{name}1/size"), "1000");
    }
    let rule = "ACTION!=\"remove\", SUBSYSTEM==\"block\", KERNEL==\"sd*[!0-9]|sr*\", ENV{DEVTYPE}==\"disk\", \\\n  ATTR{queue/scheduler}=\"bfq\"\n";
    root.write("usr/lib/udev/rules.d/60-block-scheduler.rules", rule);
    for name in ["nvme0n1", "sda", "sdb", "sdc"] {
        let device = std::fs::read_to_string(root.0.path().join(format!("sys/block/{name}/dev"))).unwrap();
        root.write(&format!("run/udev/data/b{}", device.trim()), &format!("E:ID_SERIAL=Serial_{name}\n"));
    }
    root.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory");
    root.write("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory");
    root.write("proc/cmdline", "root=/dev/sda1 quiet");
    root.write("proc/self/mounts", "/dev/sda1 / ext4 rw,relatime 0 0\n/dev/sdb1 /home ext4 rw 0 0\n");
    root
}

/// A fault: the check that finds it, the disk that the finding is about (empty: the machine), what is set,
/// and what does that.
type Fault = (&'static str, &'static str, &'static str, fn(&Root));

const ON: &str = "none mq-deadline kyber bfq";

fn chosen(root: &Root, disk: &str, scheduler: &str) {
    // No rule says otherwise.
    let rules = "usr/lib/udev/rules.d/60-block-scheduler.rules";
    if root.0.path().join(rules).exists() {
        root.remove(rules);
    }
    root.write(
        &format!("sys/block/{disk}/queue/scheduler"),
        &ON.replace(scheduler, &format!("[{scheduler}]")),
    );
}

const WEIGHT: &str = "[Service]\nIOWeight=50\n";

const FAULTS: &[Fault] = &[
    (
        "flushes-dropped",
        "sda",
        "`queue/write_cache` is `write through`, and the drive has a volatile cache",
        |r| r.write("sys/block/sda/queue/write_cache", "write through"),
    ),
    ("scheduler-unfit-rotating", "sda", "a SATA disk with a head is under `none`", |r| {
        chosen(r, "sda", "none");
        r.write("sys/block/sda/queue/wbt_lat_usec", "75000");
    }),
    ("scheduler-slow-start", "sda", "the same disk is under `mq-deadline`", |r| {
        chosen(r, "sda", "mq-deadline");
        r.write("sys/block/sda/queue/wbt_lat_usec", "75000");
    }),
    ("scheduler-unfit-card", "sdc", "a USB stick is under `mq-deadline`", |r| {
        chosen(r, "sdc", "mq-deadline")
    }),
    ("scheduler-unfit-nvme", "nvme0n1", "an NVMe SSD is under `bfq`", |r| chosen(r, "nvme0n1", "bfq")),
    ("bfq-early", "sda", "the kernel is 4.15, and the disks are under `bfq`", |r| {
        r.write("proc/sys/kernel/osrelease", "4.15.3");
    }),
    (
        "scheduler-unfit-zoned",
        "sda",
        "`queue/zoned` is `host-managed`, the kernel is 6.1, and the disk is under `none`",
        |r| {
            chosen(r, "sda", "none");
            r.write("sys/block/sda/queue/zoned", "host-managed");
            r.write("proc/sys/kernel/osrelease", "6.1.0-50-amd64");
            r.write("sys/block/sda/queue/wbt_lat_usec", "75000");
        },
    ),
    ("low-latency-off", "sdb", "`iosched/low_latency` of a SATA SSD is 0", |r| {
        r.write("sys/block/sdb/queue/iosched/low_latency", "0")
    }),
    ("slice-idle-off", "sda", "`iosched/slice_idle` of the disk with a head is 0", |r| {
        r.write("sys/block/sda/queue/iosched/slice_idle", "0")
    }),
    (
        "priority-ignored",
        "nvme0n1",
        "a unit has `IOSchedulingClass=idle`, and the NVMe SSD is under `none`",
        |r| {
            r.write("etc/systemd/system/scrub.service", "[Service]\nIOSchedulingClass=idle\n");
        },
    ),
    (
        "priority-level-ignored",
        "nvme0n1",
        "a unit has `IOSchedulingPriority=7`, and the NVMe SSD is under `mq-deadline`",
        |r| {
            chosen(r, "nvme0n1", "mq-deadline");
            r.write("etc/systemd/system/night.service.d/io.conf", "[Service]\nIOSchedulingPriority=7\n");
        },
    ),
    ("weight-ignored", "nvme0n1", "a unit has `IOWeight=50`, and the NVMe SSD is under `none`", |r| {
        r.write("etc/systemd/system/batch.service.d/50-w.conf", WEIGHT)
    }),
    ("weight-squeezed", "", "two units have `IOWeight=300` and `200`, and all disks are under `bfq`", |r| {
        std::fs::remove_file(r.0.path().join("sys/block/nvme0n1")).unwrap();
        r.write("etc/systemd/system/gold.service", "[Service]\nIOWeight=300\n");
        r.write("etc/systemd/system/silver.service", "[Service]\nIOWeight=200\n");
    }),
    ("device-weight-ignored", "sda", "a unit has `IODeviceWeight=/dev/sda 80`", |r| {
        r.write("etc/systemd/system/gold.service", "[Service]\nIODeviceWeight=/dev/sda 80\n");
    }),
    ("controller-off", "", "a unit has `IOWeight=50`, and `cgroup.subtree_control` lacks `io`", |r| {
        std::fs::remove_file(r.0.path().join("sys/block/nvme0n1")).unwrap();
        r.write("etc/systemd/system/batch.service", WEIGHT);
        r.write("sys/fs/cgroup/cgroup.subtree_control", "cpu memory");
    }),
    ("controller-v1", "", "a unit has `IOWeight=50`, and control groups are those of version 1", |r| {
        std::fs::remove_file(r.0.path().join("sys/block/nvme0n1")).unwrap();
        r.write("etc/systemd/system/batch.service", WEIGHT);
        r.remove("sys/fs/cgroup/cgroup.controllers");
        r.write("sys/fs/cgroup/blkio/tasks", "");
    }),
    (
        "controller-not-delegated",
        "",
        "a unit of users has `IOWeight=50`, and `user@1000.service` lacks `io`",
        |r| {
            r.write("etc/systemd/user/web.service", WEIGHT);
            let group = "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service";
            r.write(&format!("{group}/cgroup.controllers"), "cpu memory pids");
        },
    ),
    ("limit-buffered", "", "a group of version 1 has `blkio.throttle.write_bps_device`", |r| {
        r.remove("sys/fs/cgroup/cgroup.controllers");
        r.write("sys/fs/cgroup/blkio/batch/blkio.throttle.write_bps_device", "8:0 1048576\n");
    }),
    ("command-queueing-off", "sdb", "`device/queue_depth` of the SATA SSD is 1", |r| {
        r.write("sys/block/sdb/device/queue_depth", "1")
    }),
    ("requests-few", "sda", "`nr_requests` is 4, and the disk takes 32", |r| {
        r.write("sys/block/sda/queue/nr_requests", "4")
    }),
    ("requests-few", "sdc", "`nr_requests` of the USB stick is 2, as its driver has one tag", |r| {
        r.write("sys/block/sdc/queue/nr_requests", "2");
        r.write("sys/block/sdc/mq/0/nr_tags", "1");
    }),
    ("merges-off", "sda", "`nomerges` is 2", |r| r.write("sys/block/sda/queue/nomerges", "2")),
    ("statistics-off", "nvme0n1", "`iostats` is 0", |r| r.write("sys/block/nvme0n1/queue/iostats", "0")),
    ("read-ahead-off", "sda", "`read_ahead_kb` is 0", |r| r.write("sys/block/sda/queue/read_ahead_kb", "0")),
    (
        "read-ahead-by-guess",
        "vda",
        "the kernel is 6.17, and `read_ahead_kb` of a virtual disk is 4096",
        |r| {
            disk(
                r,
                &Given {
                    name: "vda",
                    path: "pci0000:00/virtio1",
                    model: "",
                    rotational: 1,
                    schedulers: "[none] mq-deadline",
                    queues: 4,
                },
            );
            r.write("sys/block/vda/queue/read_ahead_kb", "4096");
            r.write("proc/sys/kernel/osrelease", "6.17.0-1008-azure");
        },
    ),
    ("entropy-from-ssd", "sdb", "`add_random` of the SATA SSD is 1", |r| {
        r.write("sys/block/sdb/queue/add_random", "1")
    }),
    ("throttled-twice", "sda", "`wbt_lat_usec` is 75000 under `bfq`", |r| {
        r.write("sys/block/sda/queue/wbt_lat_usec", "75000")
    }),
    ("writeback-unthrottled", "sda", "`wbt_lat_usec` is 0 under `mq-deadline`", |r| {
        chosen(r, "sda", "mq-deadline")
    }),
    ("unwritten-much", "sdc", "20 % of 32 GB of memory may be unwritten, for a USB stick", |r| {
        r.write("proc/meminfo", "MemTotal:       32765332 kB\n");
        r.write("proc/sys/vm/dirty_ratio", "20");
    }),
    ("rotational-wrong", "sdb", "`rotational` of the SATA SSD is 1", |r| {
        r.write("sys/block/sdb/queue/rotational", "1")
    }),
    ("loop-buffered", "loop0", "a loop device has `loop/dio` 0", |r| {
        disk(
            r,
            &Given {
                name: "loop0",
                path: "virtual",
                model: "",
                rotational: 0,
                schedulers: "[none] mq-deadline",
                queues: 1,
            },
        );
        r.write("sys/block/loop0/loop/backing_file", "/srv/image");
        r.write("sys/block/loop0/loop/dio", "0");
    }),
    ("scheduled-twice", "dm-0", "a dm device over the disk is under `bfq`", |r| {
        disk(
            r,
            &Given {
                name: "dm-0",
                path: "virtual",
                model: "",
                rotational: 1,
                schedulers: "none [bfq]",
                queues: 1,
            },
        );
        r.write("sys/block/dm-0/slaves/sda/dev", "8:0");
    }),
    ("btrfs-quotas", "", "a btrfs file system has `qgroups/enabled` 1", |r| {
        r.write("sys/fs/btrfs/0a1b2c3d-0000-4000-8000-000000000001/qgroups/enabled", "1");
    }),
    ("discard-at-once", "sdb", "a file system on the SATA SSD has the option `discard`", |r| {
        r.write("proc/self/mounts", "/dev/sdb1 /home ext4 rw,discard 0 0\n");
    }),
    ("rule-without-scheduler", "", "a rule sets `cfq`", |r| {
        r.write("etc/udev/rules.d/10-old.rules", "KERNEL==\"sd?\", ATTR{queue/scheduler}=\"cfq\"\n");
    }),
    ("rule-not-in-force", "nvme0n1", "a rule sets `kyber` for the NVMe SSD, which is under `none`", |r| {
        r.write("etc/udev/rules.d/61-nvme.rules", "KERNEL==\"nvme?n*\", ATTR{queue/scheduler}=\"kyber\"\n");
    }),
    ("rule-not-in-force", "sda", "a rule sets `read_ahead_kb` 1024 for the disk, which has 128", |r| {
        let rule = "KERNEL==\"sda\", ATTR{bdi/read_ahead_kb}=\"1024\"\n";
        r.write("etc/udev/rules.d/61-read-ahead.rules", rule);
    }),
    ("rule-for-other-scheduler", "sda", "a rule sets `iosched/fifo_batch` of the disk under `bfq`", |r| {
        let rule = "KERNEL==\"sda\", ATTR{queue/iosched/fifo_batch}=\"8\"\n";
        r.write("etc/udev/rules.d/61-batch.rules", rule);
    }),
    ("rule-for-no-disk", "", "a rule is for an `ID_SERIAL` that no disk has", |r| {
        let rule = "ENV{ID_SERIAL}==\"Gone_1\", ATTR{queue/scheduler}=\"bfq\"\n";
        r.write("etc/udev/rules.d/62-gone.rules", rule);
    }),
    ("elevator-ignored", "", "the kernel's command line has `elevator=deadline`", |r| {
        r.write("proc/cmdline", "quiet elevator=deadline")
    }),
    ("setters-disagree", "sda", "TLP sets `mq-deadline`, and a rule `bfq`", |r| {
        r.write("etc/tlp.conf", "DISK_DEVICES=\"sda\"\nDISK_IOSCHED=\"mq-deadline\"\n")
    }),
    ("setter-without-scheduler", "sda", "TLP sets `cfq`", |r| {
        r.write("etc/tlp.conf", "DISK_DEVICES=\"sda\"\nDISK_IOSCHED=\"cfq\"\n")
    }),
];

#[test]
fn a_machine_that_is_right_has_no_finding() {
    let root = healthy();
    assert_eq!(root.findings(), []);
    let machine = Machine::read(&Tree::new(root.0.path()));
    let kinds: Vec<Kind> = machine.disks.iter().map(|d| d.kind).collect();
    assert_eq!(kinds, [Kind::Nvme, Kind::Rotating, Kind::Ssd, Kind::Card]);
    assert_eq!(machine.setter(&machine.disks[0]), Some(Setter::Kernel));
    let rule = "/usr/lib/udev/rules.d/60-block-scheduler.rules".to_owned();
    assert_eq!(machine.setter(&machine.disks[1]), Some(Setter::Udev(rule, 1)));
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    for (check, about, _, make) in FAULTS {
        let root = healthy();
        make(&root);
        let findings = root.findings();
        let names: Vec<&str> = findings.iter().map(|f| f.check).collect();
        assert!(names.contains(check), "{check}: {findings:#?}");
        let subject = match *about {
            "" => Subject::Machine,
            disk => Subject::Disk(disk.to_owned()),
        };
        assert!(findings.iter().any(|f| f.check == *check && f.subject == subject), "{check}: {findings:#?}");
        // A second fault comes only with the first: a rule or a weight that is in vain in two ways.
        let others: Vec<_> = findings.iter().filter(|f| f.check != *check).collect();
        let allowed = matches!(*check, "rule-without-scheduler" | "setters-disagree" | "device-weight-ignored")
                // A rotating disk under another scheduler is a fault by itself.
                || *check == "writeback-unthrottled";
        assert!(others.is_empty() || allowed, "{check}: {others:#?}");
        for f in &findings {
            assert!(
                !f.mend.is_empty() && !f.undo.is_empty() && f.what.ends_with('.') && !f.why.is_empty(),
                "{f:#?}"
            );
        }
    }
}

/// Where the finding's figures were recorded: disk, job, scheduler, client, start, elapsed ns, bytes, …
const RECORDED: &str = include_str!("../../../sim/tests/data/depth-1-nr-requests.csv");

/// MiB/s of the clients of a recorded cell, and how many ms `app` took there.
fn recorded(disk: &str, job: &str, scheduler: &str) -> (Vec<f64>, f64) {
    let rows = RECORDED.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let (mut rates, mut start) = (Vec::new(), 0.0);
    for row in rows.filter(|r| r[..3] == [disk, job, scheduler]) {
        let (ns, bytes): (f64, f64) = (row[5].parse().unwrap(), row[6].parse().unwrap());
        rates.push(bytes / ns * 1e9 / 1_048_576.0);
        if row[3] == "app" {
            start = ns / 1e6;
        }
    }
    (rates, start)
}

/// With 2 requests: what the finding says of each kind of disk and scheduler is what was recorded.
#[test]
fn two_requests_are_found_with_both_figures() {
    let why = |name: &str, scheduler: &str| {
        let root = healthy();
        chosen(&root, name, scheduler);
        root.write(&format!("sys/block/{name}/queue/nr_requests"), "2");
        // A drive without command queueing.
        root.write(&format!("sys/block/{name}/device/queue_depth"), "1");
        let findings = root.findings();
        let found = findings.iter().find(|f| f.check == "requests-few").expect("it is found").clone();
        let place = format!("/sys/block/{name}/queue");
        assert_eq!(
            found.what,
            format!("{name} has 2 requests in its queue, from which {scheduler} chooses.")
        );
        assert_eq!(found.mend, format!("echo 64 > {place}/nr_requests"));
        // The kernel makes 4 of a 2 that is written.
        assert_eq!(
            found.undo,
            format!("echo none > {place}/scheduler && echo {scheduler} > {place}/scheduler")
        );
        found.why
    };
    let has = |why: &str, figures: &[String]| {
        assert!(why.contains("(Linux 6.12, docs/reports/bfq-nr-requests-2.md)"), "{why}");
        figures.iter().for_each(|f| assert!(why.contains(f.as_str()), "{f}: {why}"));
    };
    // Of the page's row: least and most, in KiB/s.
    let page = include_str!("../../../../docs/reports/bfq-nr-requests-2.md");
    for (row, most_at_least) in [("| 6.12.117, SCSI | bfq | 2 |", 2.9), ("| | | 64 |", 1.0)] {
        let at = page.find("| 6.12.117, SCSI |").expect("the page has SCSI");
        let line = page[at..].lines().find(|l| l.starts_with(row)).expect("a row");
        let rates: Vec<f64> = line
            .split('|')
            .filter_map(|w| w.trim_matches([' ', '*']).replace(',', "").parse().ok())
            .collect();
        let [.., least, most] = rates[..] else { panic!("{line}") };
        assert!(most / least > most_at_least, "{line}");
        has(&why("sdc", "bfq"), &[format!("{:.1}", least / 1024.0), format!("{:.1}", most / 1024.0)]);
    }
    let total = |scheduler| recorded("sata2009", "seq10", scheduler).0.iter().sum::<f64>();
    has(&why("sda", "bfq"), &["bfq", "bfq@64"].map(|s| format!("{:.0}", total(s))));
    for (disk, name) in [("microsd_a1", "sdc"), ("sata2009", "sda")] {
        let start = |scheduler| recorded(disk, "start", scheduler).1;
        has(
            &why(name, "mq-deadline"),
            &["mq-deadline", "mq-deadline@64"].map(|s| format!("{:.0} ms", start(s))),
        );
    }
    // Nothing was recorded of kyber, so no figure is given.
    assert!(!why("sdc", "kyber").contains("MiB/s"));
}

/// From 16 requests on a scheduler has a choice; without one there is nothing to choose.
#[test]
fn enough_requests_and_none_have_no_finding() {
    let is_found = |scheduler: &str, requests: &str| {
        let root = healthy();
        chosen(&root, "sdc", scheduler);
        root.write("sys/block/sdc/queue/nr_requests", requests);
        root.findings().iter().any(|f| f.check == "requests-few")
    };
    assert!(is_found("bfq", "15") && is_found("kyber", "4"));
    assert!(!is_found("bfq", "16") && !is_found("bfq", "64") && !is_found("none", "1"));
}

/// A scheduler that doctor would choose comes with enough requests.
#[test]
fn a_scheduler_is_advised_with_its_requests() {
    let mend = |tags: &str| {
        let root = healthy();
        chosen(&root, "sdc", "mq-deadline");
        root.write("sys/block/sdc/mq/0/nr_tags", tags);
        let findings = root.findings();
        findings.iter().find(|f| f.check == "scheduler-unfit-card").expect("it is found").mend.clone()
    };
    let queue = "/sys/block/sdc/queue";
    assert_eq!(mend("1"), format!("echo bfq > {queue}/scheduler && echo 64 > {queue}/nr_requests"));
    assert_eq!(mend("64"), format!("echo bfq > {queue}/scheduler"));
}

#[test]
fn every_check_has_a_fault() {
    for check in CHECKS {
        assert!(FAULTS.iter().any(|(name, ..)| *name == check.name), "{} has no fault here", check.name);
    }
}

/// How many of the faults are found, in the words of the page.
#[test]
fn the_page_lists_the_faults_and_how_many_are_found() {
    let (mut table, mut found) = (String::new(), 0);
    for (check, about, set, make) in FAULTS {
        let root = healthy();
        make(&root);
        let finding = root.findings().into_iter().find(|f| f.check == *check);
        found += usize::from(finding.is_some());
        let about = if about.is_empty() { "the machine" } else { about };
        let answer = if finding.is_some() { "found" } else { "**missed**" };
        table.push_str(&format!("| {set} | {about} | `{check}` | {answer} |\n"));
    }
    let right = healthy().findings().len();
    println!("{table}{found} of {} found; {right} findings without a fault", FAULTS.len());
    assert_eq!((found, right), (FAULTS.len(), 0));
    assert!(found >= 20);
    let page = include_str!("../../../../docs/doctor.md");
    let rows: String = page.lines().filter(|l| l.ends_with(" found |")).map(|l| format!("{l}\n")).collect();
    assert_eq!(rows, table, "docs/doctor.md has another list");
    assert!(
        page.contains(&format!("{found} of {found} are found, and nothing on the machine without a fault"))
    );
}

/// Before Linux 6.2 the kernel shows the default of wbt also under bfq, with which it switches that off.
#[test]
fn an_old_kernel_that_shows_a_default_is_not_blamed() {
    let found = |release: &str, us: &str| {
        let root = healthy();
        root.write("proc/sys/kernel/osrelease", release);
        root.write("sys/block/sda/queue/wbt_lat_usec", us);
        root.findings().iter().any(|f| f.check == "throttled-twice")
    };
    assert!(!found("6.1.0-50-cloud-amd64", "75000") && !found("5.10.0-30-amd64", "75000"));
    assert!(found("6.1.0-50-cloud-amd64", "50000"), "set by hand");
    assert!(found("6.12.9", "75000") && found("6.2.0", "75000"));
}

/// No advice to switch on what the disk or its controller cannot do.
#[test]
fn a_disk_that_cannot_queue_commands_is_not_told_to() {
    let port = "sys/devices/pci0000:00/0000:00:17.0/ata1";
    let one_command = || {
        let root = healthy();
        root.write("sys/block/sda/device/queue_depth", "1");
        root
    };
    let is_found = |root: &Root| root.findings().iter().any(|f| f.check == "command-queueing-off");
    let words = |word: &str| {
        let all: Vec<&str> = (0..256).map(|i| if i == 76 { word } else { "0000" }).collect();
        all.chunks(8).map(|line| line.join(" ") + "\n").collect::<String>()
    };
    let id = format!("{port}/link1/dev1.0/ata_device/dev1.0/id");
    let root = one_command();
    assert!(is_found(&root), "nothing is known of it");
    root.write(&id, &words("850e"));
    assert!(is_found(&root), "bit 8 is set");
    root.write(&id, &words("8406"));
    assert!(!is_found(&root), "the disk cannot");
    let root = one_command();
    root.write(&id, &words("850e"));
    root.write(&format!("{port}/host0/scsi_host/host0/can_queue"), "1\n");
    assert!(!is_found(&root), "the controller cannot");
}

#[test]
fn the_page_lists_the_checks() {
    let page = include_str!("../../../../docs/doctor.md");
    let from = page.find("| check | finds |").unwrap();
    let rows: Vec<&str> = page[from..].lines().skip(2).take_while(|l| l.starts_with('|')).collect();
    let checks: Vec<String> = CHECKS.iter().map(|c| format!("| `{}` | {} |", c.name, c.about)).collect();
    assert_eq!(rows, checks);
}

#[test]
fn commands_do_what_they_say() {
    // The commands of files of `queue/` are run on the made machine, with its root put before the paths.
    for (check, _, _, make) in FAULTS {
        let root = healthy();
        make(&root);
        for f in root.findings().iter().filter(|f| f.check == *check && f.mend.starts_with("echo ")) {
            if f.mend.contains("/scheduler") || f.mend.contains("modules-load") {
                continue; // The kernel puts the brackets.
            }
            let run = |command: &str| {
                let command = command.replace("/sys/", &format!("{}/sys/", root.0.path().display()));
                assert!(std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success());
            };
            if f.mend.contains("subtree_control") {
                continue; // The kernel adds to a list.
            }
            run(&f.mend);
            assert!(root.findings().iter().all(|g| g.check != *check), "{check} after {}", f.mend);
            if f.undo.contains("/scheduler") {
                continue; // The kernel gives the old number with the scheduler.
            }
            run(&f.undo);
            assert!(root.findings().iter().any(|g| g.check == *check), "{check} after {}", f.undo);
        }
    }
}

#[test]
fn an_empty_machine_and_rubbish_are_no_panic() {
    let root = Root::new();
    assert_eq!(root.findings(), []);
    let root = healthy();
    for path in all_files(root.0.path()) {
        let before = std::fs::read(&path).unwrap();
        for rubbish in [&b""[..], b"\xff\xfe", b"9999999999999999999999", b"=", b"[", b"\"", b"-1"] {
            std::fs::write(&path, rubbish).unwrap();
            let _ = root.findings();
        }
        std::fs::write(&path, before).unwrap();
    }
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            t if t.is_dir() => files.extend(all_files(&entry.path())),
            t if t.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

/// On NVMe both figures are shown: a program starts sooner under bfq, and deep readers get more without.
#[test]
fn nvme_under_bfq_has_both_sides() {
    let root = healthy();
    chosen(&root, "nvme0n1", "bfq");
    let findings = root.findings();
    let found = findings.iter().find(|f| f.check == "scheduler-unfit-nvme").expect("it is found");
    let place = "/sys/block/nvme0n1/queue/scheduler";
    assert_eq!(found.mend, format!("# if deep readers count more than starts: echo none > {place}"));
    let figures: Vec<(String, Vec<f64>)> =
        found.lab.iter().filter_map(|c| c.sentence()).map(numbers).collect();
    let [(readers, carried), (start, took)] = &figures[..] else { panic!("{figures:?}") };
    assert!(
        readers.contains("load doctor-deep-readers") && start.contains("load doctor-start-beside-readers")
    );
    assert!(carried[0] * 1.2 < carried[1], "{readers}");
    assert!(took[0] * 1.5 < took[1], "{start}");
}

/// A sentence of the lab, and the figures before and after in it.
fn numbers(sentence: String) -> (String, Vec<f64>) {
    let figures = sentence.split(' ').filter_map(|w| w.parse().ok()).collect();
    (sentence, figures)
}

#[test]
fn the_lab_has_a_number_for_what_it_can_run() {
    let root = healthy();
    chosen(&root, "sda", "mq-deadline");
    let findings = root.findings();
    let lab = findings
        .iter()
        .find(|f| f.check == "scheduler-slow-start" && f.subject == Subject::Disk("sda".into()));
    let sentence = lab.unwrap().lab[0].sentence().unwrap();
    assert!(
        sentence.starts_with("In the lab (disk nas2020, load doctor-start-beside-copy), an application"),
        "{sentence}"
    );
    let seconds: Vec<f64> = sentence.split(' ').filter_map(|w| w.parse().ok()).collect();
    assert!(seconds[0] > 2.0 * seconds[1], "{sentence}");
}
