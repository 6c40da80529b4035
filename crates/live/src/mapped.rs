//! Data of small reads that no buffer holds: a file in memory, mapped, and replies that name bytes of it.
//!
//! A read of 4 KiB into a buffer is a call of its own, 0.7 us of the 2 that such a request takes, and a copy;
//! to hand over a page through a pipe costs two more calls. But the message that carries the reply can name
//! the file's bytes themselves. One call then sends many replies, with one copy each.
//!
//! ```text
//!   file's pages ──────────────┐
//!   head, head, head ──────────┴─► sendmsg ─► socket
//! ```
//!
//! As with [`pipes`](crate::pipes), a client gets the bytes that the file has when they go to the socket,
//! which is after the scheduler issued the read, and before its client has the reply.
//!
//! **The program itself never reads these bytes.** Only the kernel does, when it sends: where the file was
//! cut meanwhile, that is an error of the call (`EFAULT`), and no signal. Then a copy takes their place
//! ([`Window::copy`]), in which bytes behind the end are zeros.
//!
//! **Holes.** To read a page of a hole through a mapping takes memory for it, which a usual read does not. So
//! only files without holes are mapped, and not any more after the first discard ([`Map::thin`]).
//!
//! **First use.** A page that was not read before costs a fault of the mapping, a third of a microsecond if
//! many come together. A thread of its own therefore looks at the first GiB once, in the beginning. A discard
//! waits until it has stopped.
//!
//! What it does not do: writes. Those wait for the scheduler with their data, so there is no call to save.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    len: usize,
    file: File,
    /// Which device and inode.
    which: (u64, u64),
    is_dense: AtomicBool,
    /// Held while pages are looked at beforehand.
    looking: Mutex<()>,
}

/// The most bytes that are looked at beforehand, and at a time: half a millisecond, for which a discard may
/// have to wait.
const BEFOREHAND: usize = 1 << 30;
const AT_A_TIME: usize = 4 << 20;

// SAFETY: the address is only handed to the kernel.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// The whole of a file that is in memory, if it has no holes.
    pub(crate) fn new(file: &File) -> Option<Arc<Self>> {
        let meta = file.metadata().ok()?;
        let len = usize::try_from(meta.len()).ok()?;
        if meta.blocks() * 512 < meta.len() {
            return None;
        }
        let file = file.try_clone().ok()?;
        // SAFETY: a new mapping, wherever there is room. One of no bytes is refused.
        let start =
            unsafe { libc::mmap(null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)?;
        let which = (meta.dev(), meta.ino());
        let (is_dense, looking) = (AtomicBool::new(true), Mutex::default());
        let map = Arc::new(Self { start, len, file, which, is_dense, looking });
        let weak = Arc::downgrade(&map);
        // Without it, pages are looked at when they are first read.
        let _ = thread::Builder::new().name("fairhead-map".to_owned()).spawn(move || look(&weak));
        Some(map)
    }

    /// Has the kernel find some pages. Returns whether that is still wanted.
    fn look(&self, at: usize) -> bool {
        let _held = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let len = AT_A_TIME.min(self.len - at);
        // SAFETY: inside the mapping; pages are found, and nothing else changes.
        self.is_dense.load(Ordering::Relaxed)
            && unsafe {
                libc::madvise(self.start.as_ptr().add(at).cast(), len, libc::MADV_POPULATE_READ) == 0
            }
    }

    pub(crate) fn is_of_same_file(&self, other: &Self) -> bool {
        self.which == other.which
    }

    /// The file will have holes: no more windows.
    pub(crate) fn thin(&self) {
        if self.is_dense.swap(false, Ordering::Relaxed) {
            drop(self.looking.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The `len` bytes at `offset`, if they can be sent from the mapping.
    pub(crate) fn window(self: &Arc<Self>, offset: u64, len: u32) -> Option<Window> {
        let at = usize::try_from(offset).ok()?;
        let is_inside = at.checked_add(len as usize).is_some_and(|end| end <= self.len);
        let is_dense = self.is_dense.load(Ordering::Relaxed);
        (is_dense && is_inside).then(|| Window { map: Arc::clone(self), at, len, copy: None })
    }
}

/// Looks at the pages of a mapping, as long as it is there.
fn look(map: &Weak<Map>) {
    let mut at = 0;
    while let Some(map) = map.upgrade()
        && at < map.len.min(BEFOREHAND)
        && map.look(at)
    {
        at += AT_A_TIME;
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and each window holds the map, so none is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Some bytes of a file in memory.
#[derive(Debug)]
pub(crate) struct Window {
    map: Arc<Map>,
    at: usize,
    len: u32,
    copy: Option<Box<[u8]>>,
}

impl Window {
    /// The address and length, for the kernel.
    pub(crate) fn part(&self) -> libc::iovec {
        let start = match &self.copy {
            Some(copy) => copy.as_ptr(),
            // SAFETY: it lies inside the mapping.
            None => unsafe { self.map.start.as_ptr().add(self.at) },
        };
        libc::iovec { iov_base: start.cast_mut().cast(), iov_len: self.len as usize }
    }

    /// Replaces them with a copy. Returns whether they were none before.
    pub(crate) fn copy(&mut self) -> bool {
        let is_new = self.copy.is_none();
        if is_new {
            let mut copy = vec![0; self.len as usize].into_boxed_slice();
            // Bytes that cannot be read any more count as cut off.
            let _ = self.read(&mut copy);
            self.copy = Some(copy);
        }
        is_new
    }

    /// Reads them into memory. Bytes behind the end of the file stay as they are in `into`.
    pub(crate) fn read(&self, mut into: &mut [u8]) -> io::Result<()> {
        let mut from = self.at as u64;
        while !into.is_empty() {
            match self.map.file.read_at(into, from) {
                Ok(0) => break,
                Ok(n) => (into, from) = (&mut into[n..], from + n as u64),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// A file in memory.
    fn memory() -> File {
        // SAFETY: the name ends with a zero; the descriptor is new.
        unsafe { File::from_raw_fd(libc::memfd_create(c"mapped".as_ptr(), 0)) }
    }

    /// The kernel's copy of a window's bytes, as a message has it.
    fn sent(window: &Window) -> io::Result<Vec<u8>> {
        let (mut reader, writer) = io::pipe()?;
        let part = window.part();
        // SAFETY: the kernel reads the bytes during the call, or says that there are none.
        let n = unsafe { libc::writev(writer.as_raw_fd(), &raw const part, 1) };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut bytes = vec![0; n as usize];
        io::Read::read_exact(&mut reader, &mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn what_was_cut_off_is_an_error_and_its_copy_zeros() {
        let file = memory();
        file.write_all_at(&[7; 16384], 0).unwrap();
        let map = Map::new(&file).expect("it has no holes");
        let mut window = map.window(4096, 8192).unwrap();
        assert_eq!(sent(&window).unwrap(), [7; 8192]);
        assert!(map.window(12288, 8192).is_none(), "behind its end");
        file.set_len(4196).unwrap();
        assert!(sent(&window).map_or_else(|e| e.raw_os_error() == Some(libc::EFAULT), |b| b.len() < 8192));
        assert!(window.copy() && !window.copy(), "once");
        let bytes = sent(&window).unwrap();
        assert!(bytes[..100] == [7; 100] && bytes[100..].iter().all(|b| *b == 0));
    }

    #[test]
    fn files_with_holes_are_not_mapped() {
        let file = memory();
        file.set_len(1 << 20).unwrap();
        assert!(Map::new(&file).is_none());
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        let map = Map::new(&file).expect("it has none now");
        assert!(map.window(0, 4096).is_some());
        map.thin();
        assert!(map.window(0, 4096).is_none());
    }
}
