//! Data of a bio that stay where another program has them: parts of memory that both share, such as the
//! buffers of a virtual machine. The kernel reads and writes them in place.
//!
//! The parts stay mapped as long as the data live, which is until the disk is done with them. Their owner may
//! change the bytes at any time. So nothing here makes a reference to them: they are copied, or named to the
//! kernel.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// The most parts that one call of the kernel's takes.
pub(crate) const VECTORS_MAX: usize = libc::UIO_MAXIOV as usize;

/// A range of shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: u32,
}

// SAFETY: an address and a length; who uses them keeps the memory mapped.
unsafe impl Send for Part {}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct GuestData {
    parts: Box<[Part]>,
    /// Keeps the parts mapped.
    _memory: Arc<dyn Debug + Send + Sync>,
}

impl GuestData {
    /// # Safety
    /// The parts can be read and written as long as `memory` lives.
    pub(crate) unsafe fn new(parts: Box<[Part]>, memory: Arc<dyn Debug + Send + Sync>) -> Self {
        Self { parts, _memory: memory }
    }

    /// Returns the memory of the bytes from `from` on, up to `to`.
    pub(crate) fn vectors(&self, from: u32, to: u32) -> impl Iterator<Item = libc::iovec> + '_ {
        cut(&self.parts, from, to)
            .map(|p| libc::iovec { iov_base: p.start.as_ptr().cast(), iov_len: p.len as usize })
    }

    /// Writes zeros to the bytes from `from` on, up to `to`.
    pub(crate) fn clear(&mut self, from: u32, to: u32) {
        for part in cut(&self.parts, from, to) {
            // SAFETY: the part is mapped, as was promised when the data were made.
            unsafe { part.start.as_ptr().write_bytes(0, part.len as usize) };
        }
    }

    /// Reads bytes of a file to `from..to`. Returns how many it read.
    pub(crate) fn read_from(&self, file: BorrowedFd<'_>, offset: u64, from: u32, to: u32) -> io::Result<u64> {
        self.each_call(from, to, |vectors, at| {
            // SAFETY: the parts are mapped, as was promised; what is written there has no other reader here.
            unsafe {
                libc::preadv(file.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32, (offset + at) as i64)
            }
        })
    }

    /// Writes `from..to` to a file. Returns how many bytes it wrote.
    pub(crate) fn write_to(&self, file: BorrowedFd<'_>, offset: u64, from: u32, to: u32) -> io::Result<u64> {
        self.each_call(from, to, |vectors, at| {
            // SAFETY: the parts are mapped, as was promised; the kernel reads them.
            unsafe {
                libc::pwritev(file.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32, (offset + at) as i64)
            }
        })
    }

    /// Calls until all is done or a call does nothing.
    fn each_call(&self, from: u32, to: u32, call: impl Fn(&[libc::iovec], u64) -> isize) -> io::Result<u64> {
        let mut done = 0;
        while from + done < to {
            let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 16];
            let mut count = 0;
            for (vector, place) in self.vectors(from + done, to).zip(&mut vectors) {
                *place = vector;
                count += 1;
            }
            match call(&vectors[..count], done.into()) {
                0 => break,
                n if n > 0 => done += n as u32,
                _ => {
                    let e = io::Error::last_os_error();
                    if e.kind() != io::ErrorKind::Interrupted {
                        return Err(e);
                    }
                }
            }
        }
        Ok(done.into())
    }
}

/// The parts of the bytes from `from` on, up to `to`.
fn cut(parts: &[Part], from: u32, to: u32) -> impl Iterator<Item = Part> + '_ {
    let mut at = 0u32;
    parts.iter().filter_map(move |part| {
        let (begin, end) = (at, at + part.len);
        at = end;
        let (first, last) = (from.max(begin), to.min(end));
        (first < last).then(|| Part {
            // SAFETY: `first` lies inside the part.
            start: unsafe { part.start.add((first - begin) as usize) },
            len: last - first,
        })
    })
}

/// Copies bytes to shared memory, as many as there are of both.
///
/// # Safety
/// The parts are mapped and can be written.
pub(crate) unsafe fn scatter(mut from: &[u8], to: &[Part]) {
    for part in to {
        let len = from.len().min(part.len as usize);
        // SAFETY: as the caller says. What another program writes there meanwhile makes no difference: the
        // bytes are not looked at.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), part.start.as_ptr(), len) };
        from = &from[len..];
    }
}

/// Copies bytes from shared memory, as many as there are of both. Returns how many.
///
/// # Safety
/// The parts are mapped and can be read.
pub(crate) unsafe fn gather(from: &[Part], to: &mut [u8]) -> usize {
    let mut done = 0;
    for part in from {
        let len = (to.len() - done).min(part.len as usize);
        // SAFETY: as the caller says.
        unsafe { std::ptr::copy_nonoverlapping(part.start.as_ptr(), to[done..].as_mut_ptr(), len) };
        done += len;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    fn data(memory: &mut [u8], lens: &[usize]) -> GuestData {
        let mut at = 0;
        let parts = lens.iter().map(|&len| {
            let start = NonNull::new(memory[at..].as_mut_ptr()).unwrap();
            at += len + 10;
            Part { start, len: len as u32 }
        });
        // SAFETY: the tests keep the memory.
        unsafe { GuestData::new(parts.collect(), Arc::new(())) }
    }

    #[test]
    fn a_range_takes_its_share_of_each_part() {
        let mut memory = vec![0; 1000];
        let base = memory.as_ptr() as usize;
        let data = data(&mut memory, &[100, 50, 200]);
        let shown = |from, to| -> Vec<(usize, usize)> {
            data.vectors(from, to).map(|v| (v.iov_base as usize - base, v.iov_len)).collect()
        };
        assert_eq!(shown(0, 350), [(0, 100), (110, 50), (170, 200)]);
        assert_eq!(shown(90, 160), [(90, 10), (110, 50), (170, 10)]);
        assert_eq!(shown(100, 150), [(110, 50)]);
        assert_eq!(shown(150, 150), []);
    }

    #[test]
    fn a_file_is_read_and_written_in_place_however_many_parts_there_are() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..4000u32).map(|i| (i * 7 % 251) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let mut memory = vec![0; 40 * 110];
        let mut guest = data(&mut memory, &[100; 40]);
        assert_eq!(guest.read_from(file.as_fd(), 0, 0, 4000).unwrap(), 4000);
        let copy: File = tempfile::tempfile().unwrap();
        assert_eq!(guest.write_to(copy.as_fd(), 512, 100, 3950).unwrap(), 3850);
        let mut back = vec![0; 3850];
        copy.read_exact_at(&mut back, 512).unwrap();
        assert_eq!(back, bytes[100..3950]);
        assert_eq!(guest.read_from(file.as_fd(), 3900, 0, 4000).unwrap(), 100, "the file ends there");
        guest.clear(50, 150);
        drop(guest);
        assert_eq!((&memory[..50], &memory[50..100]), (&bytes[3900..3950], &[0; 50][..]));
        assert_eq!(memory[110..160], [0; 50]);
        assert_eq!(memory[160..210], bytes[150..200]);
    }

    #[test]
    fn bytes_are_scattered_and_gathered() {
        let mut memory = vec![0; 100];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: inside the memory.
        let parts = [Part { start, len: 3 }, Part { start: unsafe { start.add(10) }, len: 5 }];
        let mut back = [0; 10];
        // SAFETY: the parts lie in the memory, which outlives them.
        let n = unsafe {
            scatter(b"abcdef", &parts);
            gather(&parts, &mut back)
        };
        assert_eq!((n, &back), (8, b"abcdef\0\0\0\0"));
    }
}
