//! The library against real files.

use fairhead_core::sched::any::preset;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_live::control::Change;
use fairhead_live::{Disk, DiskOptions, Errno, recording};
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::NamedTempFile;

/// A file, gone with the test.
fn scratch(len: usize) -> NamedTempFile {
    let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bytes: Vec<u8> = (0..len).map(|i| (i / 512 % 251) as u8).collect();
    file.write_all(&bytes).unwrap();
    file
}

const MIB: u64 = 1 << 20;

#[test]
fn a_group_is_told_all_or_nothing() {
    let scratch = scratch(MIB as usize);
    let disk = Disk::open(DiskOptions::new([scratch.path()]).direct(false)).unwrap();
    let mut change = Change::default();
    change.set("riops", "10").unwrap();
    disk.tell_group("a/b", change).unwrap();
    let mut more = Change::default();
    more.set("weight", "300").unwrap();
    more.set("min_iops", "20").unwrap();
    let why = disk.tell_group("a/b", more).unwrap_err().to_string();
    assert!(why.starts_with("group a/b: "), "{why}");
    more.set("riops", "20").unwrap();
    disk.tell_group("a/b", more).unwrap();
}

#[test]
fn what_is_written_is_read_and_what_is_not_there_is_refused() {
    let scratch = scratch(2 * MIB as usize + 100);
    let disk = Disk::open(DiskOptions::new([scratch.path()]).direct(false)).unwrap();
    let client = disk.client("a/b").unwrap();
    let mut data = disk.buffer(100_000);
    data.fill(222);
    client.write(0, 5000, data).wait().unwrap();
    client.flush(0).wait().unwrap();
    let data = client.read(0, 4096, 200_000).wait().unwrap();
    assert_eq!((data[0], data[903]), (8, 9));
    assert!(data[904..100_904].iter().all(|b| *b == 222));
    assert_eq!(data[100_904], (105_000 / 512) as u8);
    client.zero(0, 8192, 4096, false).wait().unwrap();
    client.zero(0, 16384, 8192, true).wait().unwrap();
    client.discard(0, 40960, 4096).wait().unwrap();
    let data = client.read(0, 8192, 4097).wait().unwrap();
    assert!(data[..4096].iter().all(|b| *b == 0) && data[4096] == 222);
    let data = client.read(0, 16384, 8192).wait().unwrap();
    assert!(data.iter().all(|b| *b == 0));
    assert_eq!(client.read(0, 2 * MIB, 101).wait().unwrap_err(), Errno(libc::EINVAL));
    assert_eq!(client.write(0, 2 * MIB, disk.buffer(101)).wait().unwrap_err(), Errno(libc::ENOSPC));
    assert_eq!(client.read(1, 0, 1).wait().unwrap_err(), Errno(libc::EBADF));
    assert_eq!(client.read(0, 2 * MIB, 100).wait().unwrap().len(), 100);
    drop(disk);
    assert_eq!(client.read(0, 0, 512).wait().unwrap_err(), Errno::SHUTDOWN);
    assert_eq!(fs::read(scratch.path()).unwrap()[5000], 222);
}

#[test]
fn nothing_is_lost_in_a_thousand_switches_and_ten_thousand_changes_of_weights() {
    let scratch = scratch(8 * MIB as usize);
    let disk = Disk::open(DiskOptions::new([scratch.path()]).scheduler("noop").unwrap()).unwrap();
    let (stop, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for t in 0..4_u64 {
            let (disk, stop, bytes) = (&disk, &stop, &bytes);
            scope.spawn(move || {
                let client = disk.client(&format!("group{t}")).unwrap();
                let mut round = 0_u8;
                while !stop.load(Ordering::Relaxed) {
                    round = round.wrapping_add(1);
                    bytes.fetch_add(2 * 16 * (16 << 10), Ordering::Relaxed);
                    let writes: Vec<_> = (0..16)
                        .map(|i| {
                            let mut data = disk.buffer(16 << 10);
                            data.fill(round ^ i as u8);
                            client.write(0, t * 2 * MIB + i * (16 << 10), data)
                        })
                        .collect();
                    writes.into_iter().for_each(|w| w.wait().unwrap());
                    let reads: Vec<_> =
                        (0..16).map(|i| client.read(0, t * 2 * MIB + i * (16 << 10), 16 << 10)).collect();
                    for (i, read) in reads.into_iter().enumerate() {
                        assert!(read.wait().unwrap().iter().all(|b| *b == round ^ i as u8));
                    }
                }
            });
        }
        for round in 0..200 {
            for name in ["bfq", "cfq", "deadline", "kyber", "noop+groups"] {
                disk.switch((preset(name).unwrap().config)().live()).unwrap();
                for i in 0..10 {
                    disk.set_weight(&format!("group{}", i % 4), 1 + round * 5 + i).unwrap();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let groups = disk.groups().unwrap();
    let serviced: u64 = groups.iter().map(|g| g.1.io_service_bytes.total()).sum();
    assert_eq!(serviced, bytes.into_inner(), "the books of a thousand schedulers, added up");
}

/// A flush is done by a worker of the ring, which would keep an emulated disk waiting on a busy machine.
#[test]
fn workers_of_an_emulated_disk_are_as_urgent_as_its_engine() {
    let scratch = scratch(MIB as usize);
    let slow = fairhead_device::DeviceParams::preset("sata2009").unwrap();
    let disk = Disk::open(DiskOptions::new([scratch.path()]).emulate(slow)).unwrap();
    disk.client("").unwrap().flush(0).wait().unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let mut workers = 0;
    for task in tasks {
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        // Of `iou-wrk-ENGINE`; other tests of this binary have engines that are not urgent.
        let Some(engine) = name.trim().strip_prefix("iou-wrk-").and_then(|tid| tid.parse().ok()) else {
            continue;
        };
        let worker = task.file_name().unwrap().to_str().unwrap().parse().unwrap();
        // SAFETY: neither names memory.
        let policies = unsafe { (libc::sched_getscheduler(engine) & 0xff, libc::sched_getscheduler(worker)) };
        // A worker of another test's engine may be gone by now: -1.
        let is_as_urgent = [libc::SCHED_FIFO, -1].contains(&policies.1);
        assert!(policies.0 != libc::SCHED_FIFO || is_as_urgent, "{policies:?}");
        workers += u32::from(policies.0 == libc::SCHED_FIFO);
    }
    if workers == 0 {
        println!("skipped: no real-time priority, or no worker");
    }
}

#[test]
fn who_waits_can_give_up() {
    let scratch = scratch(8 * MIB as usize);
    let slow = fairhead_device::DeviceParams::preset("sata2009").unwrap();
    let disk = Disk::open(DiskOptions::new([scratch.path()]).emulate(slow)).unwrap();
    let client = disk.client("").unwrap();
    let reads: Vec<_> = (0..32).map(|i| client.read(0, i * 37 % 32 * (256 << 10), 4096)).collect();
    reads[20].cancel();
    let outcomes: Vec<_> = reads.into_iter().map(|r| r.wait().err()).collect();
    assert_eq!(outcomes.iter().filter(|o| **o == Some(Errno::INTR)).count(), 1);
    assert_eq!(outcomes[20], Some(Errno::INTR));
    let lateness = disk.lateness().unwrap().expect("it is emulated");
    assert!(lateness.ios >= 1, "{lateness}");
}

#[test]
fn groups_come_and_go_by_name_and_keep_their_books_under_any_scheduler() {
    let scratch = scratch(MIB as usize);
    let disk = Disk::open(DiskOptions::new([scratch.path()]).scheduler("deadline").unwrap()).unwrap();
    let client = disk.client("/vm//web/").unwrap();
    for i in 0..10 {
        client.read(0, i * 8192, 4096).wait().unwrap();
        let config = preset(if i % 2 == 0 { "bfq" } else { "cfq" }).unwrap().config;
        disk.switch(config()).unwrap();
    }
    let groups = disk.groups().unwrap();
    let names: Vec<&str> = groups.iter().map(|g| g.0.as_str()).collect();
    assert_eq!(names, ["", "vm", "vm/web"]);
    assert_eq!(groups[2].1.io_serviced.total(), 10);
    assert_eq!(groups[2].1.io_service_bytes.total(), 10 * 4096);
    let refused = disk.remove_group("vm").unwrap_err().to_string();
    assert!(refused.starts_with("group vm: "), "{refused}");
    disk.remove_group("vm/web").unwrap();
    disk.remove_group("vm").unwrap();
    client.read(0, 0, 4096).wait().unwrap();
    let groups = disk.groups().unwrap();
    assert_eq!((groups.len(), groups[0].1.io_serviced.total()), (1, 1), "its client is in the root now");
    assert!(disk.remove_group("vm").unwrap_err().to_string().contains("there is none"));
    assert!(disk.set_weight("a", 0).unwrap_err().to_string().contains("1 to 10000"));
}

#[test]
fn what_is_recorded_live_is_decided_again() {
    let scratch = scratch(8 * MIB as usize);
    let log = scratch.path().with_extension("log");
    let options = DiskOptions::new([scratch.path()]).rotational(true).depth(2).record(&log);
    let disk = Disk::open(options.scheduler("bfq").unwrap()).unwrap();
    disk.set_weight("a/b", 300).unwrap();
    let clients = ["a/b", "a", "c"].map(|group| disk.client(group).unwrap());
    for round in 0..40_u64 {
        let reads: Vec<_> = (0..24_u64)
            .map(|i| clients[i as usize % 3].read(0, (round * 31 + i * i * 7) % 1024 * 8192, 4096))
            .collect();
        if round == 20 {
            disk.switch((preset("cfq").unwrap().config)()).unwrap();
        }
        reads.into_iter().for_each(|r| assert_eq!(r.wait().unwrap().len(), 4096));
    }
    disk.remove_group("c").unwrap();
    drop(clients);
    drop(disk);
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches(" task_exit ").count(), 3, "a client that goes is a task that ends");
    fs::remove_file(&log).unwrap();
    let replayed = recording::replay(text.as_bytes(), &Catalogue::default()).unwrap();
    assert_eq!((replayed.differs, replayed.schedulers), (None, 2));
    assert!(replayed.decisions >= 960, "{replayed:?}");

    // It can fail: one request of another task, and the story is another.
    let other = text.replacen(" be 4\n", " rt 0\n", 30);
    let differs = recording::replay(other.as_bytes(), &Catalogue::default()).map(|r| r.differs);
    assert!(!matches!(differs, Ok(None)), "{differs:?}");
    let bad = |from: &str, to: &str| {
        recording::replay(text.replacen(from, to, 1).as_bytes(), &Catalogue::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(bad("fairhead live 1", "x"), "line 1: not a recording: \"fairhead live 1\" should be here");
    assert!(bad("tags=1024", "tags=99999999").starts_with("line 2: tags=99999999: "));
    assert!(bad("slice_idle=", "slice_ilde=").contains("slice_ilde"));
    assert!(bad(" R ", " Q ").contains("operation Q: R, W or D"));
    assert!(bad(" dispatch ", " despatch ").contains("despatch: no such event"));
}
