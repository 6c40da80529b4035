//! One file that is as slow as a disk, through the kernel.

use crate::may_mount;
use fairhead_device::DeviceParams;
use fairhead_live::Mount;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tempfile::TempDir;

/// A file and a folder to mount on, which go with it.
struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// `None` where nothing can be mounted.
    fn new(len: usize) -> Option<Self> {
        if !may_mount::may_mount() {
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        let bytes: Vec<u8> = (0..len).map(|i| (i / 512 % 251) as u8).collect();
        fs::write(dir.path().join("image"), bytes).unwrap();
        Some(Self { dir })
    }

    fn mount(&self, preset: &str) -> Mount {
        Mount::emulate(
            DeviceParams::preset(preset).unwrap(),
            &self.dir.path().join("image"),
            &self.dir.path().join("mnt"),
        )
        .unwrap()
    }

    fn disk(&self) -> PathBuf {
        self.dir.path().join("mnt/disk")
    }
}

const MIB: usize = 1 << 20;

#[test]
fn what_is_written_is_read_and_the_size_stays() {
    let Some(scratch) = Scratch::new(4 * MIB + 100) else { return };
    let mount = scratch.mount("nvme");
    let entries: Vec<_> =
        fs::read_dir(scratch.dir.path().join("mnt")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(entries, ["disk"]);
    let disk = OpenOptions::new().read(true).write(true).truncate(true).open(scratch.disk()).unwrap();
    assert_eq!(disk.metadata().unwrap().len(), (4 * MIB + 100) as u64);
    let mut data = vec![0; 3 * MIB];
    disk.read_exact_at(&mut data, 1000).unwrap();
    assert!((0..3 * MIB).all(|i| data[i] == ((i + 1000) / 512 % 251) as u8));
    // Larger than what is copied, smaller, and at no sector's start.
    for (at, len) in [(0, 2 * MIB), (3 * MIB - 7, 300), (4 * MIB + 90, 10)] {
        disk.write_all_at(&vec![at as u8 | 1; len], at as u64).unwrap();
        let mut back = vec![0; len];
        disk.read_exact_at(&mut back, at as u64).unwrap();
        assert!(back.iter().all(|b| *b == at as u8 | 1), "{len} at {at}");
    }
    assert_eq!(disk.read_at(&mut data, (4 * MIB + 96) as u64).unwrap(), 4);
    assert_eq!(disk.read_at(&mut data, (4 * MIB + 100) as u64).unwrap(), 0);
    let full = disk.write_at(&[1], (4 * MIB + 100) as u64).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    disk.sync_data().unwrap();
    assert!(File::create(scratch.dir.path().join("mnt/other")).is_err());
    assert!(fs::remove_file(scratch.disk()).is_err());
    drop(disk);
    assert!(mount.lateness().unwrap().unwrap().ios >= 7);
    mount.unmounter().unmount().unwrap();
    mount.wait();
    drop(mount);
    assert!(!scratch.disk().exists());
    assert_eq!(fs::read(scratch.dir.path().join("image")).unwrap()[0], 1);
}

/// `dd` that reads one sector, as soon as it waits in the kernel for its data; `None` if it has them before
/// that is seen.
fn waiting_reader(disk: &Path) -> Option<Child> {
    let mut child = Command::new("dd")
        .args(["bs=512", "count=1", "of=/dev/null"])
        .arg(format!("if={}", disk.display()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stack = format!("/proc/{}/wchan", child.id());
    while child.try_wait().unwrap().is_none() {
        if fs::read_to_string(&stack).unwrap_or_default().contains("request_wait_answer") {
            return Some(child);
        }
        std::thread::yield_now();
    }
    None
}

/// 300 readers far apart on a disk with an arm read again and again, and one more behind them all is killed:
/// it is gone long before its turn.
#[test]
fn a_caller_that_is_killed_does_not_wait_for_the_disk() {
    const READERS: u64 = 300;
    let Some(scratch) = Scratch::new(64 * MIB) else { return };
    let mount = scratch.mount("nas2020");
    let disk = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(scratch.disk()).unwrap();
    let (done, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let read = |mut sector: u64| {
        while !is_over.load(Ordering::SeqCst) {
            disk.read_exact_at(&mut [0; 512], sector % 131_072 * 512).unwrap();
            done.fetch_add(1, Ordering::SeqCst);
            sector += READERS * 7919;
        }
    };
    let served = std::thread::scope(|scope| {
        let read = &read;
        (0..READERS).for_each(|i| drop(scope.spawn(move || read(i * 7919))));
        while done.load(Ordering::SeqCst) < 2 * READERS as u32 {
            std::thread::yield_now();
        }
        let served = (0..10).find_map(|_| {
            let mut child = waiting_reader(&scratch.disk())?;
            let before = done.load(Ordering::SeqCst);
            child.kill().unwrap();
            let was_killed = !child.wait().unwrap().success();
            was_killed.then(|| done.load(Ordering::SeqCst) - before)
        });
        is_over.store(true, Ordering::SeqCst);
        served
    });
    drop(disk);
    drop(mount);
    let Some(served) = served else { return println!("skipped: machine too busy") };
    // The disk holds 32; the others are served in the order in which they came.
    assert!(served < 200, "it was let go when {served} others had been served");
}

#[test]
fn many_callers_at_a_time_get_their_own_bytes() {
    let Some(scratch) = Scratch::new(8 * MIB) else { return };
    let mount = scratch.mount("nvme");
    let disk = OpenOptions::new().read(true).write(true).open(scratch.disk()).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8_u8 {
            let disk = &disk;
            scope.spawn(move || {
                for round in 0..40_u32 {
                    let len = 1 + (round * 4099 + u32::from(t)) as usize % 150_000;
                    let at = u64::from(t) * MIB as u64 + u64::from(round % 7) * 512;
                    disk.write_all_at(&vec![t ^ round as u8; len], at).unwrap();
                    let mut back = vec![0; len];
                    disk.read_exact_at(&mut back, at).unwrap();
                    assert!(back.iter().all(|b| *b == t ^ round as u8), "thread {t}, round {round}");
                }
            });
        }
    });
    drop(disk);
    drop(mount);
}

#[test]
fn what_cannot_be_mounted_is_told_in_one_line() {
    let Some(scratch) = Scratch::new(0) else { return };
    let params = || DeviceParams::preset("nvme").unwrap();
    let (image, mnt) = (scratch.dir.path().join("image"), scratch.dir.path().join("mnt"));
    let said = |file: &PathBuf, at: &PathBuf| Mount::emulate(params(), file, at).unwrap_err().to_string();
    assert!(said(&image, &mnt).contains("empty"));
    assert!(said(&scratch.dir.path().join("none"), &mnt).contains("No such file"));
    fs::write(&image, [0; 4096]).unwrap();
    assert!(said(&image, &image).contains("not a directory"));
}
