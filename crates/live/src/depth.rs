//! How many ios a disk has at a time: by its kind, and by how long it takes for them.
//!
//! **A disk with a head** has as many as its own queue takes, up to 32, as under a kernel; one whose queue is
//! unknown begins with 32 and adapts, as one without a head does. A scheduler decides about what is not at
//! the disk yet, so one at a time would be best for its decisions; but a drive that sees several random
//! requests serves them in the order of its arm and rotation. On the model of a 7200 rpm drive, 29 random
//! readers of 4 KiB get 2.7 MiB/s with 31 and 1.0 with one (docs/live-fairness.md). Schedulers that need the
//! disk for a single reader (BFQ, CFQ, AS) keep the others' requests back themselves.
//!
//! **A disk without a head** does several at once; how many do it good is seen from how long it takes for
//! them. It begins with 32. Of each 64 ios in a row that the disk is done with, the mean time that it had one
//! is taken: above 2 ms the depth is halved, but not below 8, and what the disk has then does not count any
//! more; at 1 ms or less it is one more, up to 32, if all of it was used meanwhile. A disk that does eight at
//! a time, each in 1 ms, takes 4 ms for one of 32, and 2 ms for one of 16: there it stays.
//!
//! ```text
//!   mean   0 ......... 1 ms ......... 2 ms .........
//!          one more      stays         half of it
//! ```
//!
//! `--depth`, or `depth` at the control socket, sets it for good; `depth auto` lets it go again. An emulated
//! disk has what its model says.
//!
//! [`Facts::of`] tells kind and queue, as the kernel knows them: of the device that a file is on, of a
//! partition's disk, and of what is behind an overlay or a file system that makes up its device's number. A
//! device that is made of others (LVM, RAID) has the shortest of their queues. What is in memory has no head.
//!
//! **A virtual disk** (virtio, Xen, NBD, a loop device, or one that is made of such) says that it has a
//! head, as the kernel takes that for granted. So its random reads are measured, once for each device: a few
//! dozen of 4 KiB, past the page cache, for at most 200 ms. If they take 1 ms or less, half of them, it has
//! none. One that cannot be measured (there are no data, or no right to read them) counts as one without a
//! head: BFQ would keep it idle for tenants that think, which made others wait for 196 ms.
//!
//! What it does not do: see to the disk's own cache.

use crate::buffer::Pool;
use crate::clock::Clock;
use fairhead_core::units::Duration;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The smallest depth of a disk without a head, unless a depth is set.
//= docs/reference/live.md#8-rules-of-the-engine, "8 to 32 on an SSD"
const LEAST: u16 = 8;
const MOST: u16 = 32;

/// The largest depth that can be set.
pub(crate) const AT_DISK_MAX: u16 = 1024;

/// The number of ios over which the mean is taken.
const WINDOW: u32 = 64;

/// Above this mean time it is too much; at half of it or less there may be more.
const TARGET: Duration = Duration::from_ms(2);

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    now: u16,
    /// The depth if none is set, and whether it adapts then.
    usual: u16,
    can_adapt: bool,
    is_set: bool,
    count: u32,
    sum: Duration,
    was_full: bool,
    /// The number of completions that do not count yet: those ios were at the disk when the depth was larger.
    stale: u16,
}

impl Depth {
    /// Begins with `usual`; if `can_adapt`, the depth then stays between [`LEAST`] and that.
    pub(crate) const fn new(usual: u16, can_adapt: bool) -> Self {
        let sum = Duration::ZERO;
        Self { now: usual, usual, can_adapt, is_set: false, count: 0, sum, was_full: false, stale: 0 }
    }

    /// What a disk begins with by default; `queue` is what its own queue takes, if that is known.
    pub(crate) fn usual(is_rotational: bool, queue: Option<u16>) -> u16 {
        queue.filter(|_| is_rotational).map_or(MOST, |queue| queue.clamp(1, MOST))
    }

    /// How many ios the disk may have.
    pub(crate) const fn now(&self) -> u16 {
        self.now
    }

    /// Whether it adapts.
    pub(crate) const fn is_adaptive(&self) -> bool {
        self.can_adapt && !self.is_set
    }

    /// Sets the depth; `None` goes back to the usual one.
    pub(crate) fn set(&mut self, depth: Option<u16>) {
        let new = Self::new(self.usual, self.can_adapt);
        *self = Self { now: depth.unwrap_or(self.usual), is_set: depth.is_some(), ..new };
    }

    /// The disk has `in_flight` ios now.
    pub(crate) const fn issued(&mut self, in_flight: u16) {
        self.was_full |= in_flight >= self.now;
    }

    /// The disk has completed an io after `time`, and has `left` more.
    pub(crate) fn took(&mut self, time: Duration, left: u16) {
        if !self.is_adaptive() || self.stale > 0 {
            self.stale = self.stale.saturating_sub(1).min(left);
            return;
        }
        self.count += 1;
        self.sum += time;
        if self.count < WINDOW {
            return;
        }
        let mean = self.sum.as_ns() / u64::from(WINDOW);
        if mean > TARGET.as_ns() {
            self.now = (self.now / 2).max(LEAST.min(self.usual));
            self.stale = left;
        } else if self.was_full && mean <= TARGET.as_ns() / 2 {
            self.now = (self.now + 1).min(self.usual);
        }
        (self.count, self.sum, self.was_full) = (0, Duration::ZERO, false);
    }
}

/// What the kernel says about the device that a file is on, or is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    /// Whether it has a head.
    pub(crate) is_rotational: bool,
    /// How many requests its own queue takes.
    pub(crate) queue: Option<u16>,
    /// How that is known.
    pub(crate) source: Source,
}

/// How it is known whether a disk has a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Source {
    /// The kernel knows its device, or it is in memory.
    #[default]
    Kernel,
    /// It is a virtual disk, and half of its random reads took at most this.
    Measured(Duration),
    /// It is a virtual disk, and there was nothing to read.
    Unmeasured,
    Model,
    Caller,
}

impl Facts {
    /// Whether the depth follows how long the disk takes, unless it is set or there is a model.
    pub(crate) const fn can_adapt(&self) -> bool {
        !matches!(self.source, Source::Model) && (!self.is_rotational || self.queue.is_none())
    }
}

impl Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_rotational { "a disk with a head" } else { "a disk without a head" };
        match self.source {
            Source::Kernel => write!(f, "{what}, as the kernel says"),
            Source::Measured(time) => {
                write!(f, "{what}: a virtual one, whose random reads take {} us", time.as_us())
            }
            Source::Unmeasured => write!(f, "{what}, as virtual ones mostly are; it could not be measured"),
            Source::Model => write!(f, "{what}, as its model says"),
            Source::Caller => write!(f, "{what}, as set"),
        }
    }
}

impl Facts {
    /// Those of a file's device; a file that is not there is on a device without a head.
    pub(crate) fn of(path: &Path) -> Self {
        find(path).unwrap_or_default()
    }
}

fn find(path: &Path) -> Option<Facts> {
    let meta = path.metadata().ok()?;
    let device = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    let (major, minor) = (libc::major(device), libc::minor(device));
    if major == 0 {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let behind = behind(&mounts, &format!("{major}:{minor}"));
        return find(&behind.filter(|behind| behind != path)?);
    }
    let number = device;
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's queue is its disk's.
    let disk = if device.join("queue").exists() { device } else { device.join("..") };
    let is_rotational =
        fs::read_to_string(disk.join("queue/rotational")).is_ok_and(|text| text.trim() == "1");
    let facts = Facts { is_rotational, queue: queue(&disk), source: Source::Kernel };
    Some(if is_rotational && is_virtual(&disk) { judged(facts, number, path, &disk) } else { facts })
}

/// Whether a disk, given its folder in sysfs, is virtual, or made of such: what it says of its head is what
/// its driver takes for granted.
fn is_virtual(disk: &Path) -> bool {
    let name = disk.canonicalize().ok().and_then(|disk| Some(disk.file_name()?.to_str()?.to_owned()));
    let is_named = name.is_some_and(|name| {
        ["vd", "xvd", "loop", "nbd", "rbd", "ublk"].iter().any(|prefix| name.starts_with(prefix))
    });
    let vendor = fs::read_to_string(disk.join("device/vendor")).unwrap_or_default();
    let is_made = ["QEMU", "VMware", "Msft", "Google"].contains(&vendor.trim());
    let mut parts = fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    is_named || is_made || parts.any(|part| is_virtual(&part.path()) || is_virtual(&part.path().join("..")))
}

/// What was found out of a virtual disk, by the number of its device.
static MEASURED: Mutex<BTreeMap<u64, Source>> = Mutex::new(BTreeMap::new());

/// The facts of a virtual disk, measured if they were not yet. `path` is on it, or is it.
fn judged(facts: Facts, device: u64, path: &Path, disk: &Path) -> Facts {
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = measured.get(&device).copied().filter(|source| *source != Source::Unmeasured);
    let source = known.unwrap_or_else(|| {
        let name = disk.canonicalize().ok().and_then(|disk| Some(Path::new("/dev").join(disk.file_name()?)));
        let of_device = name.and_then(|name| random_read(&name));
        let time = of_device.or_else(|| random_read(path)).or_else(|| beside(device, path));
        time.map_or(Source::Unmeasured, Source::Measured)
    });
    measured.insert(device, source);
    match source {
        Source::Measured(time) => Facts { is_rotational: time > HEAD_LEAST, source, ..facts },
        _ => Facts { is_rotational: false, source, ..facts },
    }
}

/// The number of files beside one that has no data that are looked at.
const BESIDE: usize = 200;

/// [`random_read`] of another file on a device: this program, or one in the folder of `path`.
fn beside(device: u64, path: &Path) -> Option<Duration> {
    let folder = if path.is_dir() { path } else { path.parent()? };
    let files = fs::read_dir(folder).into_iter().flatten().flatten().take(BESIDE).map(|entry| entry.path());
    let is_there =
        |file: &PathBuf| file.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.dev() == device);
    std::env::current_exe().into_iter().chain(files).filter(is_there).find_map(|file| random_read(&file))
}

/// A random read that takes longer has to wait for a head.
const HEAD_LEAST: Duration = Duration::from_ms(1);
const READS: u64 = 32;
const READ: u64 = 4096;
/// The longest time for all of them.
const READS_MAX: Duration = Duration::from_ms(200);

/// How long half of the random reads of a device or file take at most; `None` if it cannot be read past the
/// page cache, or its disk would not be asked.
fn random_read(path: &Path) -> Option<Duration> {
    let flags = libc::O_DIRECT | libc::O_NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let (from, to) = readable(&mut file)?;
    let (pool, clock) = (Pool::new(0), Clock::start());
    let mut buffer = pool.buffer(READ as usize);
    let mut times = Vec::new();
    let (begin, mut chance) = (clock.now(), 0x9E37_79B9_7F4A_7C15_u64);
    while (times.len() as u64) < READS && clock.now().saturating_since(begin) < READS_MAX {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let at = from + chance % ((to - from) / READ) * READ;
        let sent = clock.now();
        file.read_exact_at(&mut buffer[..READ as usize], at).ok()?;
        times.push(clock.now().saturating_since(sent));
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// The part of a file or device that has data: holes are not read from a disk.
fn readable(file: &mut File) -> Option<(u64, u64)> {
    let meta = file.metadata().ok()?;
    let end = file.seek(SeekFrom::End(0)).ok()?;
    let (from, to) = if meta.file_type().is_block_device() {
        (0, end)
    } else if meta.is_file() && meta.blocks() > 0 {
        let from = rustix::fs::seek(&*file, rustix::fs::SeekFrom::Data(0)).ok()?;
        (from.next_multiple_of(READ), rustix::fs::seek(&*file, rustix::fs::SeekFrom::Hole(from)).ok()?)
    } else {
        return None;
    };
    // A smaller part may be in the disk's own memory, all of it.
    (to >= from + (1 << 20)).then_some((from, to / READ * READ))
}

/// How many requests the queue of a disk takes, given its folder in sysfs; the shortest queue of those that
/// it is made of.
fn queue(disk: &Path) -> Option<u16> {
    if let Ok(text) = fs::read_to_string(disk.join("device/queue_depth")) {
        return text.trim().parse().ok();
    }
    let parts = fs::read_dir(disk.join("slaves")).ok()?;
    // A part may be a partition, whose disk is the folder around it.
    let of_part = |part: PathBuf| queue(&part).or_else(|| queue(&part.canonicalize().ok()?.join("..")));
    parts.filter_map(|part| of_part(part.ok()?.path())).min()
}

/// What is behind a file system whose device is none: the folder that an overlay writes to, or the device
/// that was mounted.
fn behind(mounts: &str, device: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let mut rest = line.split_once(" - ")?.1.split(' ');
    let (kind, source, options) = (rest.next()?, rest.next()?, rest.next()?);
    let options: BTreeMap<&str, &str> = options.split(',').filter_map(|o| o.split_once('=')).collect();
    let place = if kind == "overlay" { options.get("upperdir").copied()? } else { source };
    place.starts_with('/').then(|| PathBuf::from(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes `ios` ios of a disk that works on `lanes` at a time, `us` microseconds each, with as many in
    /// flight as the depth allows. Returns the depth at the end.
    fn busy(depth: &mut Depth, lanes: u64, us: u64, ios: u32) -> u16 {
        for _ in 0..ios {
            depth.issued(depth.now());
            let waves = u64::from(depth.now()).div_ceil(lanes);
            depth.took(Duration::from_us(us * waves), 0);
        }
        depth.now()
    }

    #[test]
    fn it_goes_down_until_the_disk_answers_in_time() {
        let mut depth = Depth::new(Depth::usual(false, None), true);
        assert_eq!(busy(&mut depth, 32, 100, 100 * WINDOW), 32, "a fast disk keeps all");
        assert_eq!(busy(&mut depth, 8, 1000, 100 * WINDOW), 16, "4 ms each with 32, 2 ms with 16");
        assert_eq!(busy(&mut depth, 1, 1000, 100 * WINDOW), LEAST, "and no further");
        assert_eq!(busy(&mut depth, 32, 100, WINDOW - 1), LEAST, "one step a window");
        assert_eq!(busy(&mut depth, 32, 100, 1), LEAST + 1);
        assert_eq!(busy(&mut depth, 32, 100, 10_000), MOST);
    }

    #[test]
    fn a_disk_with_a_head_has_what_its_queue_takes() {
        let with_head = [None, Some(0), Some(1), Some(4), Some(31), Some(254)].map(|q| Depth::usual(true, q));
        assert_eq!(with_head, [MOST, 1, 1, 4, 31, MOST], "an unknown queue is no queue of one");
        assert_eq!(Depth::usual(false, Some(1)), MOST, "it adapts from there");
    }

    #[test]
    fn a_disk_that_is_made_of_others_has_the_shortest_queue() {
        let sys = tempfile::tempdir().unwrap();
        let make = |path: &str, text: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        make("sda/device/queue_depth", "32\n");
        make("sdb/device/queue_depth", "4\n");
        make("sdb/sdb1/partition", "1\n");
        make("dm-0/slaves/none", "");
        fs::remove_file(sys.path().join("dm-0/slaves/none")).unwrap();
        assert_eq!(queue(&sys.path().join("dm-0")), None);
        for part in ["sda", "sdb/sdb1"] {
            let link = sys.path().join("dm-0/slaves").join(part.replace('/', "-"));
            std::os::unix::fs::symlink(sys.path().join(part), link).unwrap();
        }
        assert_eq!(queue(&sys.path().join("sda")), Some(32));
        assert_eq!(queue(&sys.path().join("dm-0")), Some(4), "through a partition");
        assert_eq!(queue(&sys.path().join("nowhere")), None);
    }

    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut depth = Depth::new(MOST, true);
        busy(&mut depth, 1, 1000, 1000);
        for _ in 0..1000 {
            depth.issued(1);
            depth.took(Duration::from_us(10), 0);
        }
        assert_eq!(depth.now(), LEAST);
    }

    #[test]
    fn one_that_is_set_stays_until_it_is_let_go() {
        let mut depth = Depth::new(MOST, true);
        depth.set(Some(3));
        assert_eq!((busy(&mut depth, 1, 1000, 1000), depth.is_adaptive()), (3, false));
        depth.set(None);
        assert_eq!((depth.now(), depth.is_adaptive()), (MOST, true));
        assert_eq!(busy(&mut depth, 1, 1000, 1000), LEAST);
        let mut head = Depth::new(Depth::usual(true, None), false);
        assert_eq!(busy(&mut head, 1, 10_000, 1000), MOST, "it was not to adapt");
        head.set(Some(2));
        head.set(None);
        assert_eq!(head.now(), MOST);
    }

    #[test]
    fn what_is_behind_made_up_devices_is_found() {
        let mounts = "\
            21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            30 21 0:45 / /merged rw - overlay overlay rw,lowerdir=/lower,upperdir=/data/upper,workdir=/data/work\n\
            31 21 0:46 /sub /pool rw shared:3 master:1 - btrfs /dev/sdb1 rw,subvol=/sub\n\
            32 21 0:47 / /dev/shm rw - tmpfs tmpfs rw\n";
        let path = |device| behind(mounts, device).map(|p| p.to_str().unwrap().to_owned());
        assert_eq!(path("0:45").as_deref(), Some("/data/upper"));
        assert_eq!(path("0:46").as_deref(), Some("/dev/sdb1"));
        assert_eq!((path("0:47"), path("0:99")), (None, None), "in memory, and nowhere");
        assert_eq!(behind("nonsense\n0 0 0:45 - overlay", "0:45"), None);
    }

    #[test]
    fn memory_has_no_head() {
        assert_eq!(Facts::of(Path::new("/proc/self/mountinfo")), Facts::default());
        assert_eq!(Facts::of(Path::new("/nowhere")), Facts::default());
    }
}
