//! What the way to an emulated disk and back takes: reads that the disk's buffer answers, timed by the
//! caller, less the model's time.
//!
//! ```text
//!   caller ─► kernel ─► /dev/fuse ─► engine ─► model ─► engine ─► kernel ─► caller
//!   └───────────────── measured, 100 us ──────┤ 15 us ├──────────────────────┘       way: 85 us
//! ```
//!
//! Through a loop device the way is longer: a device of its own is put on the file for a moment, if that is
//! permitted.
//!
//! What this does not do: measure while others use the disk. It is done once, before other processes can use
//! the disk, and leaves no trace in the model.

use crate::emulation::Lateness;
use fairhead_core::units::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// How many reads are timed, and how long each is.
const READS: u32 = 400;
pub(super) const LEN: usize = 4096;
/// More of them than this, in percent, may not be late.
const LATE_PERCENT_MAX: usize = 10;

/// The time to an emulated disk and back, both directions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The mean.
    pub mean: Duration,
    /// How much it varies: the mean of an exponential distribution whose 99 % lie as far beyond the mean as
    /// those of the reads.
    pub jitter: Duration,
}

impl Way {
    /// From the times of all reads, and what the model took for each.
    fn of(mut times: Vec<Duration>, model: Duration) -> Result<Self, String> {
        times.sort_unstable();
        let all = times.len();
        let median = *times.get(all / 2).ok_or("no read was timed")?;
        // What takes twice as long has met something else that the machine did.
        times.retain(|t| *t <= median * 2);
        let (late, count) = (all - times.len(), times.len() as u64);
        if late * 100 > all * LATE_PERCENT_MAX {
            return Err(format!(
                "the machine is too busy: {late} of {all} reads took more than twice the median of {median}"
            ));
        }
        let mean = times.iter().fold(Duration::ZERO, |sum, t| sum + *t) / count;
        let most = times[times.len() - 1 - times.len() / 100];
        // The 99th percentile of an exponential distribution lies 3.6 times its mean beyond its mean.
        let jitter = most.saturating_sub(mean) * 10 / 36;
        let mean = mean.saturating_sub(model);
        Ok(Self { mean, jitter: jitter.min(mean / 2) })
    }
}

/// The way of a program that reads the file, and the way through a loop device on it.
type Ways = (io::Result<Way>, io::Result<Way>);

/// Measures both ways. Then `renew` has the model forget the reads, also those of a measurement that failed.
/// `kept` returns how the model has kept time up to now.
pub(super) fn measure_both(
    file: &File,
    buffer: &mut [u8],
    kept: impl Fn() -> io::Result<Lateness>,
    renew: impl FnOnce() -> io::Result<()>,
) -> io::Result<Ways> {
    let near = measure(file, buffer, &kept);
    let far = loop_device(file).and_then(|device| measure(&device, buffer, &kept));
    renew()?;
    Ok((near, far))
}

/// Times reads of a file.
fn measure(file: &File, buffer: &mut [u8], kept: impl Fn() -> io::Result<Lateness>) -> io::Result<Way> {
    // From the medium, and from now on from the buffer.
    file.read_exact_at(buffer, 0)?;
    let before = kept()?;
    let mut times = Vec::with_capacity(READS as usize);
    let clock = crate::clock::Clock::start();
    for _ in 0..READS {
        let began = clock.now();
        file.read_exact_at(buffer, 0)?;
        times.push(clock.now().since(began));
    }
    let after = kept()?;
    let model = after.took.saturating_sub(before.took) / after.ios.saturating_sub(before.ios).max(1);
    Way::of(times, model).map_err(io::Error::other)
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

//= linux-6.12 include/uapi/linux/loop.h LOOP_CTL_GET_FREE, LOOP_CONFIGURE, LO_FLAGS_*, struct loop_config
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const READ_ONLY: u32 = 1;
const AUTOCLEAR: u32 = 4;
const DIRECT_IO: u32 = 16;

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    /// Of `struct loop_info64`: numbers before the flags, which are all 0.
    numbers: [u64; 6],
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
    reserved: [u64; 8],
}

/// A loop device on the file, for as long as it is open.
fn loop_device(file: &File) -> io::Result<File> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let config = LoopConfig {
        fd: file.as_raw_fd().cast_unsigned(),
        block_size: 0,
        numbers: [0; 6],
        encrypt_key_size: 0,
        flags: READ_ONLY | AUTOCLEAR | DIRECT_IO,
        names: [0; 160],
        init: [0; 2],
        reserved: [0; 8],
    };
    // SAFETY: it names no memory.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    let device = open(Path::new(&format!("/dev/loop{number}")))?;
    // SAFETY: the structure is the one that the kernel reads, during the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(device) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_us(n)
    }

    #[test]
    fn a_way_is_what_reads_take_beyond_the_model() {
        // 396 of 400 reads count: 388 of 80 us and 8 of 116; the mean is 80.7 us.
        let mut times = vec![us(80); 388];
        times.extend([us(116); 8]);
        times.extend([Duration::from_ms(50); 4]);
        let way = Way::of(times, us(20)).unwrap();
        assert_eq!((way.mean.as_ns(), way.jitter.as_ns()), (60_727, 9_798));
    }

    #[test]
    fn a_way_is_never_less_than_nothing() {
        assert_eq!(Way::of(vec![us(10); 9], us(20)), Ok(Way { mean: us(0), jitter: us(0) }));
        assert!(Way::of(Vec::new(), us(20)).is_err());
    }

    #[test]
    fn a_busy_machine_is_told() {
        let times = |late| [vec![us(80); 400 - late], vec![us(300); late]].concat();
        assert!(Way::of(times(40), us(20)).is_ok());
        let why = Way::of(times(41), us(20)).unwrap_err();
        assert!(why.contains("too busy: 41 of 400 reads"), "{why}");
    }

    /// Reads of a measurement that fails are no reads of the disk's users: the model is renewed after them.
    #[test]
    fn the_model_forgets_reads_of_a_measurement_that_failed() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LEN as u64).unwrap();
        let mut renewed = false;
        let kept = || Err(io::Error::other("the engine has stopped"));
        let renew = || {
            renewed = true;
            Ok(())
        };
        let (near, _) = measure_both(&file, &mut [0; LEN], kept, renew).unwrap();
        assert_eq!(near.unwrap_err().to_string(), "the engine has stopped");
        assert!(renewed);
    }

    #[test]
    fn the_kernels_structure_has_the_kernels_size() {
        assert_eq!(size_of::<LoopConfig>(), 304);
        assert_eq!(std::mem::offset_of!(LoopConfig, flags), 8 + 52);
    }
}
