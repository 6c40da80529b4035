//! A real file or block device as a drive to calibrate: direct reads on a monotonic clock.
//!
//! Reads go past the page cache (`O_DIRECT`), one at a time or a few in the ring; each is timed from just
//! before it is handed to the kernel until just after it came back. Waiting ends by spinning, because a sleep
//! ends some tens of microseconds late. Meanwhile processors are kept from sleeping deeply, as the kernel
//! lets root ask for, because the answering side wakes up late as well: on an idle virtual machine hits took
//! 79 us instead of 27 without that, and the first one after a pause that much longer than the others that
//! the cache seemed to have nothing.
//!
//! Without direct I/O there is no measurement: a file system that has none is refused, and so is a folder, or
//! anything else that is no disk. Writing needs its own consent: [`Probe::destructive`] opens a block device
//! exclusively, which the kernel refuses if it is mounted or otherwise in use.
//!
//! What it does not do: keep other programs off the disk; find out what is below a file system's file.

use crate::buffer::{Buffer, Pool};
use crate::clock::{Clock, be_punctual};
use crate::error::{Error, ErrorKind};
use crate::ring::{Ring, Token};
use fairhead_core::units::{Duration, Instant};
use fairhead_device::calibrate::{Answer, Bounds, Drive, Refusal};
use io_uring::opcode::Read;
use io_uring::types::Fd;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Told what is being measured, how much of the expected time is over, and how much that is.
type Watcher = Box<dyn FnMut(&'static str, Duration, Duration)>;

/// A real file or block device, timed as the drive of a calibration.
pub struct Probe {
    file: File,
    name: String,
    clock: Clock,
    bounds: Bounds,
    buffer: Buffer,
    pool: Arc<Pool>,
    watch: Option<Watcher>,
    awake: io::Result<File>,
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe")
            .field("name", &self.name)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// As long as this is open, no processor sleeps so deeply that it takes long to wake up.
//= kernel documentation, "PM Quality Of Service Interface"
fn keep_awake() -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

/// The largest request, bytes.
const MOST: usize = 128 << 10;
/// How long the end of a wait is spun.
const SPIN: Duration = Duration::from_us(200);
const SECTOR: u64 = 512;

impl Probe {
    /// A drive that is only read.
    ///
    /// # Errors
    /// When it cannot be opened for direct reads, or is nothing that could be a disk.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::with(path, false)
    }

    /// A drive that may be written to, and whose contents are lost.
    ///
    /// # Errors
    /// As [`Self::open`], and when a block device is mounted or otherwise in use.
    pub fn destructive(path: &Path) -> Result<Self, Error> {
        Self::with(path, true)
    }

    fn with(path: &Path, write: bool) -> Result<Self, Error> {
        let name = path.display().to_string();
        let refuse = |why: &str| Error::new(ErrorKind::File, format!("cannot calibrate '{name}': {why}"));
        let kind = std::fs::metadata(path).map_err(|e| refuse(&e.to_string()))?.file_type();
        if kind.is_dir() {
            return Err(refuse("it is a folder; a block device or a file is needed"));
        }
        if !kind.is_file() && !kind.is_block_device() {
            return Err(refuse("it is neither a block device nor a file"));
        }
        let exclusive = if write && kind.is_block_device() { libc::O_EXCL } else { 0 };
        let open = |flags: i32| {
            OpenOptions::new().read(true).write(write).custom_flags(flags | exclusive).open(path)
        };
        let mut file = open(libc::O_DIRECT | libc::O_SYNC).map_err(|e| {
            refuse(&match e.raw_os_error() {
                Some(libc::EINVAL) => {
                    "its file system has no direct I/O, so memory would answer for the disk".to_owned()
                }
                Some(libc::EBUSY) => "it is mounted or otherwise in use".to_owned(),
                Some(errno @ (libc::EACCES | libc::EPERM)) => {
                    // SAFETY: it takes nothing and always succeeds.
                    format!("{e}; {}", why_forbidden(errno, unsafe { libc::geteuid() } == 0))
                }
                _ => e.to_string(),
            })
        })?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(|e| refuse(&e.to_string()))?;
        let block = if kind.is_block_device() { logical_block(&file) } else { 4096 };
        let granule = (block / SECTOR) as u32;
        let bounds = Bounds { sectors: bytes / SECTOR, granule, most: (MOST as u64 / SECTOR) as u32 };
        let pool = Pool::new(0);
        let buffer = pool.buffer(MOST);
        be_punctual(true);
        let awake = keep_awake();
        Ok(Self { file, name, clock: Clock::start(), bounds, buffer, pool, watch: None, awake })
    }

    /// Why processors may fall asleep between requests, if they may: short times are less certain then.
    #[must_use]
    pub fn may_sleep(&self) -> Option<String> {
        self.awake.as_ref().err().map(|e| format!("/dev/cpu_dma_latency: {e}"))
    }

    /// Calls `watcher` with the progress: what is being measured, the time that is over, and the time that it
    /// is expected to take.
    pub fn watch(&mut self, watcher: impl FnMut(&'static str, Duration, Duration) + 'static) {
        self.watch = Some(Box::new(watcher));
    }

    fn failed(&self, doing: &str, start: u64, sectors: u32, why: &dyn std::fmt::Display) -> Refusal {
        Refusal::Failed(format!("{}: {doing} {sectors} sectors at sector {start}: {why}", self.name))
    }

    /// Does one thing at a time, and again if a signal came in between.
    fn one(
        &mut self,
        doing: &str,
        (start, sectors): (u64, u32),
        mut io: impl FnMut(&File, &mut [u8], u64) -> io::Result<usize>,
    ) -> Result<Answer, Refusal> {
        let len = sectors as usize * SECTOR as usize;
        loop {
            let sent = self.clock.now();
            let result = io(&self.file, &mut self.buffer[..len], start * SECTOR);
            let done = self.clock.now();
            match result {
                Ok(n) if n == len => return Ok(Answer { sent, done }),
                Ok(n) => {
                    let why = format!("only {n} of {len} bytes; is it getting shorter?");
                    return Err(self.failed(doing, start, sectors, &why));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(doing, start, sectors, &e)),
            }
        }
    }
}

/// Why a file may not be opened, as far as the error and the user tell, and what would help.
///
/// Permission bits are answered with EACCES, and bind anybody but root. EPERM comes from elsewhere: the list
/// of devices of a control group, a security module, a locked-down kernel.
//= open(2), ERRORS; kernel documentation, "Device Whitelist Controller"
fn why_forbidden(errno: i32, is_root: bool) -> &'static str {
    match (errno, is_root) {
        (libc::EACCES, false) => "try as root, or as a member of the group that owns it",
        (libc::EACCES, true) => {
            "this is root, whom the permission bits do not bind: a security module forbids it, or root has \
             lost its capabilities in a container"
        }
        _ => {
            "the permission bits are not the reason: a container that does not list this device (docker run \
             --device), or a security module, forbids it; try on the host"
        }
    }
}

/// The block in which a device is addressed, bytes; 4 KiB if it does not say.
fn logical_block(file: &File) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: BLKSSZGET writes one int, which is here.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET as _, &raw mut bytes) };
    match u64::try_from(bytes) {
        Ok(n) if result == 0 && n >= SECTOR && n.is_power_of_two() => n,
        _ => 4096,
    }
}

impl Drive for Probe {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn read(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.one("reading", (start, sectors), |file, buffer, at| file.read_at(buffer, at))
    }

    fn write(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.buffer.fill(0);
        self.one("writing", (start, sectors), |file, buffer, at| file.write_at(buffer, at))
    }

    fn read_many(&mut self, list: &[(u64, u32)], depth: usize) -> Result<Vec<Answer>, Refusal> {
        let ring =
            |e: io::Error| Refusal::Failed(format!("cannot have several reads at a time: io_uring: {e}"));
        let depth = depth.clamp(1, 64);
        // Before the ring: the kernel is done with them when it is closed.
        let mut buffers: Vec<Buffer> = (0..depth).map(|_| self.pool.buffer(MOST)).collect();
        let mut in_slot: Vec<Option<usize>> = vec![None; depth];
        let mut uring = Ring::new().map_err(ring)?;
        let fd = Fd(self.file.as_raw_fd());
        let nothing = self.clock.now();
        let mut answers = vec![Answer { sent: nothing, done: nothing }; list.len()];
        let (mut sent, mut done) = (0, 0);
        let mut failure = None;
        while done < sent || (sent < list.len() && failure.is_none()) {
            while sent < list.len() && failure.is_none() {
                let Some(slot) = in_slot.iter().position(Option::is_none) else { break };
                let (start, sectors) = list[sent];
                let memory = buffers[slot].as_mut_ptr();
                let read = Read::new(fd, memory, sectors * SECTOR as u32).offset(start * SECTOR).build();
                answers[sent].sent = self.clock.now();
                // SAFETY: the buffer stays until all outcomes have come; no other code uses it meanwhile.
                unsafe { uring.push(read, Token::Store(slot)) }.map_err(ring)?;
                in_slot[slot] = Some(sent);
                sent += 1;
            }
            uring.wait(None).map_err(ring)?;
            while let Some(outcome) = uring.next() {
                let Token::Store(slot) = outcome.token else { continue };
                let Some(i) = in_slot[slot].take() else { continue };
                answers[i].done = self.clock.now();
                done += 1;
                let (start, sectors) = list[i];
                if outcome.result < 0 {
                    let e = io::Error::from_raw_os_error(-outcome.result);
                    failure.get_or_insert(self.failed("reading", start, sectors, &e));
                }
            }
        }
        failure.map_or(Ok(answers), Err)
    }

    fn wait_until(&mut self, at: Instant) -> Result<(), Refusal> {
        let left = at.saturating_since(self.clock.now());
        if left > SPIN {
            std::thread::sleep(std::time::Duration::from_nanos(left.saturating_sub(SPIN).as_ns()));
        }
        while self.clock.now() < at {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn progress(&mut self, what: &'static str, done: Duration, total: Duration) {
        if let Some(watch) = &mut self.watch {
            watch(what, done, total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, bytes: usize) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("fairhead-probe-{}-{name}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        path
    }

    #[test]
    fn what_is_no_disk_is_refused_in_one_line() {
        for (path, what) in [
            ("/", "it is a folder"),
            ("/dev/null", "neither a block device nor a file"),
            ("/nowhere/at/all", "No such file"),
        ] {
            let e = Probe::open(Path::new(path)).unwrap_err().to_string();
            assert!(e.contains(what) && e.contains(path) && !e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn root_is_not_told_to_be_root() {
        assert!(why_forbidden(libc::EACCES, false).starts_with("try as root"));
        for (errno, is_root) in [(libc::EACCES, true), (libc::EPERM, true), (libc::EPERM, false)] {
            let why = why_forbidden(errno, is_root);
            assert!(!why.contains("try as root") && why.contains("permission bits"), "{why}");
        }
    }

    #[test]
    fn reads_are_timed_and_the_end_is_told() {
        let path = scratch("reads", 1 << 20);
        let mut probe = match Probe::open(&path) {
            Ok(probe) => probe,
            Err(e) => return println!("skipped: {e}"),
        };
        assert_eq!((probe.bounds().sectors, probe.bounds().granule), (2048, 8));
        let a = probe.read(8, 16).unwrap();
        assert!(a.done > a.sent);
        let until = probe.now() + Duration::from_ms(2);
        probe.wait_until(until).unwrap();
        assert!(probe.now() >= until);
        let e = probe.read(2040, 16).unwrap_err();
        assert!(e.to_string().contains("reading 16 sectors at sector 2040: only 4096 of 8192"), "{e}");
        match probe.read_many(&[(0, 8), (512, 8), (1024, 256)], 2) {
            Ok(answers) => assert!(answers.iter().all(|a| a.done > a.sent), "{answers:?}"),
            Err(e) => println!("skipped: {e}"),
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn who_was_not_allowed_to_write_does_not() {
        let path = scratch("writes", 1 << 20);
        if let Ok(mut probe) = Probe::open(&path) {
            assert!(probe.write(0, 8).is_err());
        }
        if let Ok(mut probe) = Probe::destructive(&path) {
            probe.write(0, 8).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes[5000], bytes[5000 - 4096] == 0 || bytes[904] == 7), (7, true));
        std::fs::remove_file(path).unwrap();
    }
}
