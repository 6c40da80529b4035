//! A file on a disk that can lose power: what was written and not synced is gone then.
//!
//! It is a FUSE file system with one file, served by a thread of the test, so the kernel's own rules decide
//! which writes and syncs reach it. The messages are put together by hand, after the kernel's header.
//!
//! ```text
//!   write ─► volatile        fsync: stable := volatile        cut: no more of either, and every call fails
//! ```
//!
//! It can also be slow to look up data and holes, as a file system may be.

#![allow(clippy::disallowed_methods, reason = "a disk takes real time")]
#![allow(dead_code, reason = "no test binary needs all of it")]

use crate::may_mount::may_mount;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROOT: u64 = 1;
const DISK: u64 = 2;
const NAME: &[u8] = b"disk\0";
const WRITE_MAX: usize = 1 << 20;

#[derive(Debug)]
struct State {
    volatile: Vec<u8>,
    stable: Vec<u8>,
    is_cut: bool,
    syncs: u64,
    /// The number of syncs to come that fail.
    bad_syncs: u64,
    /// How long it takes to find data and holes, and to sync.
    seek: Duration,
    sync: Duration,
}

/// See the [module](self).
pub(crate) struct FlakyDisk {
    dir: TempDir,
    state: Arc<Mutex<State>>,
    /// The connection with the kernel; when it is closed, the file system is gone.
    thread: Option<JoinHandle<()>>,
}

impl FlakyDisk {
    /// A disk of `size` zeros; `None` where nothing can be mounted.
    pub(crate) fn new(size: usize) -> Option<Self> {
        if !may_mount() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
        let (at, options) = (c_string(dir.path()), std::ffi::CString::new(options).unwrap());
        // SAFETY: the strings end with zeros and outlive the call.
        let result = unsafe {
            libc::mount(c"flaky".as_ptr(), at.as_ptr(), c"fuse".as_ptr(), 0, options.as_ptr().cast())
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        let state = State {
            volatile: vec![0; size],
            stable: vec![0; size],
            is_cut: false,
            syncs: 0,
            bad_syncs: 0,
            seek: Duration::ZERO,
            sync: Duration::ZERO,
        };
        let state = Arc::new(Mutex::new(state));
        let mut served = Served { fuse, state: Arc::clone(&state) };
        let thread = std::thread::spawn(move || while served.serve_one() {});
        Some(Self { dir, state, thread: Some(thread) })
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// From now on, each search for data or holes takes this long.
    pub(crate) fn set_seek(&self, time: Duration) {
        self.state().seek = time;
    }

    /// From now on, each sync takes this long.
    pub(crate) fn set_sync(&self, time: Duration) {
        self.state().sync = time;
    }

    /// The next sync fails.
    pub(crate) fn fail_sync(&self) {
        self.state().bad_syncs += 1;
    }

    /// How many times it has been synced.
    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Cuts the power: nothing changes any more, and every call fails.
    pub(crate) fn cut(&self) {
        self.state().is_cut = true;
    }

    /// The bytes that are there after the power came back.
    pub(crate) fn stable(&self) -> Vec<u8> {
        self.state().stable.clone()
    }
}

impl Drop for FlakyDisk {
    fn drop(&mut self) {
        let at = c_string(self.dir.path());
        // By force: a server that was left alone may still have the file open.
        // SAFETY: the string ends with a zero and outlives the call.
        unsafe { libc::umount2(at.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn c_string(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.to_str().unwrap()).unwrap()
}

/// What the thread has.
struct Served {
    fuse: File,
    state: Arc<Mutex<State>>,
}

/// A request of the kernel's.
struct Asked<'a> {
    kind: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

impl Asked<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.body[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.body[at..at + 8].try_into().unwrap())
    }
}

type Answer = Result<Vec<u8>, i32>;

impl Served {
    /// Answers a request. Returns whether there may be more.
    fn serve_one(&mut self) -> bool {
        let mut bytes = vec![0; WRITE_MAX + 4096];
        let len = match self.fuse.read(&mut bytes) {
            Ok(len) => len,
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ENOENT)) => {
                return true;
            }
            // It was unmounted.
            Err(_) => return false,
        };
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let wide = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let asked = Asked { kind: number(4), unique: wide(8), node: wide(16), body: &bytes[40..len] };
        // FORGET, INTERRUPT and BATCH_FORGET have no answer.
        if matches!(asked.kind, 2 | 36 | 42) {
            return true;
        }
        let answer = self.answer(&asked);
        let (error, data) = answer.map_or_else(|errno| (-errno, Vec::new()), |data| (0, data));
        let mut out = ((16 + data.len()) as u32).to_ne_bytes().to_vec();
        out.extend(error.to_ne_bytes());
        out.extend(asked.unique.to_ne_bytes());
        out.extend(data);
        // A caller that is gone has no use for its answer.
        let _ = self.fuse.write(&out);
        true
    }

    //= linux-6.12 include/uapi/linux/fuse.h enum fuse_opcode
    fn answer(&self, asked: &Asked<'_>) -> Answer {
        let mut state = self.state.lock().unwrap();
        match asked.kind {
            1 if asked.body == NAME => Ok([&entry_head()[..], &attr(DISK, state.volatile.len())].concat()),
            1 => Err(libc::ENOENT),
            // GETATTR and SETATTR; the times are good for nothing, so they are not kept.
            3 | 4 => Ok([&[0; 16][..], &attr(asked.node, state.volatile.len())].concat()),
            // OPEN and OPENDIR, RELEASE and RELEASEDIR, FLUSH, DESTROY.
            14 | 27 => Ok(vec![0; 16]),
            18 | 25 | 29 | 38 => Ok(Vec::new()),
            15 => read(&state, asked),
            16 => write(&mut state, asked),
            17 => Ok(vec![0; 80]),
            20 if state.is_cut => Err(libc::EIO),
            20 if state.bad_syncs > 0 => {
                state.bad_syncs -= 1;
                Err(libc::EIO)
            }
            20 => {
                state.syncs += 1;
                std::thread::sleep(state.sync);
                let State { volatile, stable, .. } = &mut *state;
                stable.clone_from(volatile);
                Ok(Vec::new())
            }
            26 => Ok(init(asked)),
            46 => {
                let began = Instant::now();
                // It ends sooner if the time is set to less meanwhile.
                while began.elapsed() < state.seek {
                    drop(state);
                    std::thread::sleep(Duration::from_millis(10));
                    state = self.state.lock().unwrap();
                }
                lseek(asked, state.volatile.len())
            }
            _ => Err(libc::ENOSYS),
        }
    }
}

fn read(state: &State, asked: &Asked<'_>) -> Answer {
    let (from, len) = (asked.u64(8) as usize, asked.u32(16) as usize);
    let end = (from + len).min(state.volatile.len());
    if state.is_cut { Err(libc::EIO) } else { Ok(state.volatile[from.min(end)..end].to_vec()) }
}

fn write(state: &mut State, asked: &Asked<'_>) -> Answer {
    let (from, len) = (asked.u64(8) as usize, asked.u32(16) as usize);
    let is_inside = from + len <= state.volatile.len();
    if state.is_cut || !is_inside {
        return Err(if state.is_cut { libc::EIO } else { libc::ENOSPC });
    }
    state.volatile[from..from + len].copy_from_slice(&asked.body[40..40 + len]);
    Ok([(len as u32).to_ne_bytes(), [0; 4]].concat())
}

/// All of it is data.
fn lseek(asked: &Asked<'_>, size: usize) -> Answer {
    let (from, whence) = (asked.u64(8), asked.u32(16));
    let at = if whence == libc::SEEK_DATA as u32 { from } else { size as u64 };
    if from < size as u64 { Ok(at.to_ne_bytes().to_vec()) } else { Err(libc::ENXIO) }
}

/// What is agreed: the kernel's version, ASYNC_READ, BIG_WRITES, ASYNC_DIO and MAX_PAGES.
fn init(asked: &Asked<'_>) -> Vec<u8> {
    let mut out = vec![0; 64];
    let mut put = |at: usize, n: u32| out[at..at + 4].copy_from_slice(&n.to_ne_bytes());
    put(0, 7);
    put(4, asked.u32(4).min(31));
    put(8, asked.u32(8));
    put(12, asked.u32(12) & (1 | 1 << 5 | 1 << 15 | 1 << 22));
    put(16, 64 | 48 << 16);
    put(20, WRITE_MAX as u32);
    put(24, 1);
    put(28, 256);
    out
}

/// The number of the file, which is valid for a second.
fn entry_head() -> Vec<u8> {
    [DISK, 0, 1, 1, 0].iter().flat_map(|n: &u64| n.to_ne_bytes()).collect()
}

/// A file that is not full, as far as its number of blocks says.
fn attr(node: u64, size: usize) -> Vec<u8> {
    let is_disk = node == DISK;
    let size = if is_disk { size as u64 } else { 0 };
    let mut out: Vec<u8> =
        [node, size, size / 1024, 0, 0, 0].iter().flat_map(|n: &u64| n.to_ne_bytes()).collect();
    let mode = if is_disk { libc::S_IFREG | 0o600 } else { libc::S_IFDIR | 0o755 };
    let links = if node == ROOT { 2 } else { 1 };
    out.extend([0, 0, 0, mode, links, 0, 0, 0, 4096, 0].iter().flat_map(|n: &u32| n.to_ne_bytes()));
    out
}
