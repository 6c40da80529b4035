//! How many ios a disk has at a time: by its kind, and by how long it takes for them.
//!
//! **A disk with a head** has as many as its own queue takes, up to 32, as under a kernel; one whose queue is
//! unknown has one. A scheduler decides about what is not at the disk yet, so one at a time would be best for
//! its decisions; but a drive that sees several random requests serves them in the order of its arm and
//! rotation. On the model of a 7200 rpm drive, 29 random readers of 4 KiB get 2.7 MiB/s with 31 and 1.0 with
//! one (docs/live-fairness.md). Schedulers that need the disk for a single reader (BFQ, CFQ, AS) keep the
//! others' requests back themselves.
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
//! What it does not do: see to the disk's own cache, or find out that a device without a head says that it
//! has one, as some virtual disks do; such a one wants `--depth`.

use fairhead_core::units::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

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
        if is_rotational { queue.map_or(1, |queue| queue.clamp(1, MOST)) } else { MOST }
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
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's queue is its disk's.
    let disk = if device.join("queue").exists() { device } else { device.join("..") };
    let is_rotational =
        fs::read_to_string(disk.join("queue/rotational")).is_ok_and(|text| text.trim() == "1");
    Some(Facts { is_rotational, queue: queue(&disk) })
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
        assert_eq!(with_head, [1, 1, 1, 4, 31, MOST]);
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
        assert_eq!(busy(&mut head, 1, 10_000, 1000), 1);
        head.set(Some(2));
        head.set(None);
        assert_eq!(head.now(), 1);
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
