//! The events of a real kernel: a loop device, read and written, under an instance of tracefs.

use fairhead_machine::tracefs::{BlockEvents, Options};
use fairhead_trace::ring::BlockEvent;
use fairhead_trace::{Action, Op};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A loop device over a file, which is let go at the end.
struct Loop {
    device: String,
    _dir: tempfile::TempDir,
}

impl Loop {
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        let file = dir.path().join("disk.img");
        File::create(&file).ok()?.set_len(16 << 20).ok()?;
        let out = Command::new("losetup").args(["-f", "--show"]).arg(&file).output().ok()?;
        let device = String::from_utf8(out.stdout).ok()?.trim().to_owned();
        out.status.success().then_some(Self { device, _dir: dir })
    }

    /// Its major and minor number.
    fn number(&self) -> (u32, u32) {
        let name = self.device.trim_start_matches("/dev/");
        let text = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        let (major, minor) = text.trim().split_once(':').unwrap();
        (major.parse().unwrap(), minor.parse().unwrap())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

/// One test at a time: the events of one would be those of another disk to the others.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tap on a loop device, or why there is none.
fn tap(buffer_bytes: u64) -> Option<(Loop, BlockEvents)> {
    let Some(disk) = Loop::new() else {
        println!("skipped: no loop device can be made here (that needs root)");
        return None;
    };
    // The kernel drops what is not of this disk, so that the counts of events are exact.
    let options = Options { devices: vec![disk.number()], buffer_bytes, others_max: 0, ..Options::default() };
    match BlockEvents::open(&options) {
        Ok(tap) => Some((disk, tap)),
        Err(e) => {
            // Another error than these is one of this program.
            let excuses = ["needs root", "no tracefs", "no block events", "cannot be mounted", "locked down"];
            assert!(excuses.iter().any(|words| e.to_string().contains(words)), "{e}");
            println!("skipped: {e}");
            None
        }
    }
}

/// Reads `count` blocks of 4 KiB past the page cache, from the end to the beginning.
fn read_backwards(device: &str, count: u64) {
    let disk = File::options().read(true).custom_flags(libc::O_DIRECT).open(device).unwrap();
    let mut memory = vec![0u8; 8192];
    let at = memory.as_ptr().align_offset(4096);
    for block in (0..count).rev() {
        disk.read_exact_at(&mut memory[at..at + 4096], block * 4096).unwrap();
    }
}

fn instances() -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten();
    entries.filter_map(|e| Some(e.ok()?.path())).collect()
}

#[test]
fn every_request_of_a_program_is_there() {
    let _guard = alone();
    let Some((disk, mut tap)) = tap(8 << 20) else { return };
    read_backwards(&disk.device, 500);
    let mut events: Vec<BlockEvent> = Vec::new();
    tap.read(&mut events).unwrap();
    tap.finish(&mut events).unwrap();
    assert_eq!(tap.lost(), 0);
    assert!(events.is_sorted_by_key(|e| e.at_ns));
    // Another program may look at a new disk, too (udev): ours are those of this thread.
    // SAFETY: the call takes nothing and only returns a number.
    let me = u32::try_from(unsafe { libc::gettid() }).unwrap();
    let queued: Vec<_> =
        events.iter().filter(|e| e.action == Action::Queue && e.pid == me && e.op == Op::Read).collect();
    let wanted: Vec<u64> = (0..500).rev().map(|block| block * 8).collect();
    assert_eq!(queued.iter().map(|e| e.sector).collect::<Vec<_>>(), wanted);
    assert!(queued.iter().all(|e| e.sectors == 8 && e.device == disk.number()));
    // The thread has the name of its test.
    assert!(
        queued.iter().all(|e| "tracefs::every_request_of_a_program_is_there".starts_with(&e.comm.text()))
    );
    for action in [Action::Issue, Action::Complete] {
        let sectors: Vec<u64> =
            events.iter().filter(|e| e.action == action && e.sectors == 8).map(|e| e.sector).collect();
        assert!(wanted.iter().all(|s| sectors.contains(s)), "{action:?}");
    }
}

#[test]
fn what_nobody_read_in_time_is_counted() {
    let _guard = alone();
    let Some((disk, mut tap)) = tap(0) else { return };
    // 64 KiB hold some 350 requests with three events each.
    read_backwards(&disk.device, 4000);
    let mut events = Vec::new();
    tap.wait(Duration::from_secs(1)).unwrap();
    tap.finish(&mut events).unwrap();
    let all = tap.lost() + events.len() as u64;
    assert!(tap.lost() > 5000, "{} lost", tap.lost());
    assert!((12000..12600).contains(&all), "{} lost, {} read", tap.lost(), events.len());
}

#[test]
fn a_busy_neighbour_is_filtered() {
    let _guard = alone();
    let (Some((disk, tap)), Some(neighbour)) = (tap(1 << 20), Loop::new()) else { return };
    drop(tap);
    let options = Options { devices: vec![disk.number()], others_max: 300, ..Options::default() };
    let mut tap = BlockEvents::open(&options).unwrap();
    let filter = || {
        let of = |p: PathBuf| fs::read_to_string(p.join("events/block/block_rq_issue/filter"));
        let mine = |p: &PathBuf| p.to_string_lossy().contains(&format!("/fairhead-{}-", std::process::id()));
        let (major, minor) = disk.number();
        let wanted = format!("dev == {}", major << 20 | minor);
        instances().into_iter().filter(mine).filter_map(|p| of(p).ok()).any(|text| text.trim() == wanted)
    };
    let mut events = Vec::new();
    tap.read(&mut events).unwrap();
    assert!(!filter(), "at the start there is none");
    // Three events each; until the filter is there the neighbour's are dropped here.
    read_backwards(&neighbour.device, 200);
    tap.read(&mut events).unwrap();
    assert!(filter() || !Path::new("/sys/kernel/tracing/instances").exists());
    read_backwards(&neighbour.device, 200);
    read_backwards(&disk.device, 50);
    tap.finish(&mut events).unwrap();
    assert!(events.iter().all(|e| e.device == disk.number()));
    assert!(events.iter().filter(|e| e.action == Action::Queue && e.sectors == 8).count() >= 50);
}

#[test]
fn an_instance_goes_with_its_owner() {
    let _guard = alone();
    let Some((disk, tap)) = tap(1 << 20) else { return };
    // Other tests of this process have instances, too: this one has the filter of its own disk.
    let (major, minor) = disk.number();
    let filter = format!("dev == {}", major << 20 | minor);
    let mine = |p: &PathBuf| {
        let ours = p.to_string_lossy().contains(&format!("/fairhead-{}-", std::process::id()));
        let text = fs::read_to_string(p.join("events/block/block_rq_issue/filter")).unwrap_or_default();
        ours && text.trim() == filter
    };
    let own: Vec<PathBuf> = instances().into_iter().filter(mine).collect();
    if own.is_empty() && !Path::new("/sys/kernel/tracing/instances").exists() {
        return println!("skipped: tracefs is mounted elsewhere");
    }
    assert_eq!(own.len(), 1, "{own:?}");
    drop(tap);
    assert!(!own[0].exists(), "{own:?} is left");
    // One of a process that is gone.
    let stale = Path::new("/sys/kernel/tracing/instances/fairhead-8388607-1-0");
    if fs::create_dir(stale).is_err() {
        return println!("skipped: tracefs is mounted elsewhere");
    }
    // Another program's recorder may be the one that removes it.
    let _tap = BlockEvents::open(&Options::default()).unwrap();
    assert!(!stale.exists());
}
