//! The bound of one disk's unwritten data: doctor's own commands, carried out on the running kernel.
//!
//! A loop device stands for the stick. Its unwritten data are counted in debugfs while it is written through
//! the page cache: without the bound, with it, and after it was undone.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use fairhead_machine::{Finding, Machine, Tree, checks};

/// How much is written, in MiB: three times the bound.
const WRITTEN: usize = 192;

fn run(command: &str) -> Option<String> {
    let out = Command::new("sh").args(["-c", command]).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// A loop device over a file in a folder of its own, and debugfs beside it. Both end with it.
struct Stick {
    folder: tempfile::TempDir,
    device: String,
}

impl Stick {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (image, debug) = (folder.path().join("image"), folder.path().join("debug"));
        std::fs::File::create(&image).unwrap().set_len(WRITTEN as u64 * 1_048_576).unwrap();
        std::fs::create_dir(&debug).unwrap();
        let device = run(&format!("losetup --find --show {}", image.display()))?;
        let stick = Self { folder, device };
        run(&format!("mount -t debugfs none {}", debug.display()))?;
        stick.stats().exists().then_some(stick)
    }

    fn number(&self) -> String {
        let name = self.device.trim_start_matches("/dev/");
        std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_owned()
    }

    fn stats(&self) -> PathBuf {
        self.folder.path().join("debug/bdi").join(self.number()).join("stats")
    }

    /// The kB of the device that are not written yet.
    fn unwritten(&self) -> u64 {
        let text = std::fs::read_to_string(self.stats()).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().find_map(|w| w.parse::<u64>().ok()).unwrap_or(0)
        };
        of("BdiWriteback:") + of("BdiReclaimable:")
    }

    /// Writes the device and returns the most kB that were unwritten at a time.
    fn most_unwritten(&self) -> u64 {
        let is_done = AtomicBool::new(false);
        let mut most = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = std::fs::File::options().write(true).open(&self.device).unwrap();
                let block = vec![7; 1 << 20];
                (0..WRITTEN).for_each(|_| file.write_all(&block).unwrap());
                is_done.store(true, Ordering::Release);
                file.sync_all().unwrap();
            });
            while !is_done.load(Ordering::Acquire) {
                most = most.max(self.unwritten());
            }
            most = most.max(self.unwritten());
        });
        most
    }
}

impl Drop for Stick {
    fn drop(&mut self) {
        let debug = self.folder.path().join("debug");
        let _ = run(&format!("umount {}; losetup --detach {}", debug.display(), self.device));
    }
}

/// What doctor says of a stick with this device number, beside much memory.
fn finding(number: &str) -> Finding {
    let root = tempfile::tempdir().unwrap();
    let disk = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/block/sdb";
    for (file, text) in [
        ("proc/meminfo".to_owned(), "MemTotal: 65765332 kB"),
        ("proc/sys/vm/dirty_ratio".to_owned(), "20"),
        (format!("sys/class/bdi/{number}/strict_limit"), "0"),
        (format!("{disk}/size"), "62333952"),
        (format!("{disk}/dev"), number),
        (format!("{disk}/removable"), "1"),
        (format!("{disk}/queue/rotational"), "1"),
    ] {
        let place = root.path().join(file);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    std::fs::create_dir_all(root.path().join("sys/block")).unwrap();
    let target = Path::new("..").join(disk.trim_start_matches("sys/"));
    std::os::unix::fs::symlink(target, root.path().join("sys/block/sdb")).unwrap();
    let findings = checks::run(&Machine::read(&Tree::new(root.path())));
    findings.into_iter().find(|f| f.check == "unwritten-much").expect("it is found")
}

#[test]
fn the_bound_of_one_disk_holds_and_is_undone() {
    let Some(stick) = Stick::new() else { return println!("skipped: no loop device, or no debugfs") };
    let number = stick.number();
    let finding = finding(&number);
    if !Path::new(&format!("/sys/class/bdi/{number}/strict_limit")).exists() {
        return println!("skipped: the kernel has no strict_limit");
    }
    // An earlier owner of the loop device may have left a bound.
    run(&finding.undo).expect("the bound can be undone");
    let before = stick.most_unwritten();
    run(&finding.mend).expect("the bound can be set");
    let bounded = stick.most_unwritten();
    run(&finding.undo).expect("the bound can be undone");
    let after = stick.most_unwritten();
    println!("unwritten at most: {before} kB, bounded {bounded} kB, undone {after} kB");
    if before < 2 * 65_536 {
        return println!("skipped: too little memory for unwritten data");
    }
    // The kernel counts in batches for each processor.
    assert!(bounded <= 65_536 * 5 / 4, "{bounded} kB, and 65536 are the bound");
    assert!(after > bounded * 3 / 2, "{after} kB after {bounded}");
}
