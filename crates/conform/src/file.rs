//! A log's file: plain text, or compressed by `xz`, told apart by how it begins.

use lzma_rust2::XzReader;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// How an `xz` file begins.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// What unpacking may take: enough for the strongest of `xz`'s presets.
const XZ_MEMORY_KIB: u32 = 128 * 1024;

/// How far reading has come.
#[derive(Default)]
pub(super) struct Position {
    read: Rc<Cell<u64>>,
    total: Cell<u64>,
}

impl Position {
    /// Bytes of the file that have been read.
    pub(super) fn read(&self) -> u64 {
        self.read.get()
    }

    /// The file's length in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total.get()
    }
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// The file's text from its beginning; `position` is where reading it is from now on.
pub(super) fn open(path: &Path, position: &Position) -> Result<Box<dyn BufRead>, String> {
    let cannot = |e: io::Error| format!("cannot be read: {e}");
    let file = File::open(path).map_err(cannot)?;
    let facts = file.metadata().map_err(cannot)?;
    if facts.is_dir() {
        return Err("is a directory; a log is a file".to_owned());
    }
    position.read.set(0);
    position.total.set(facts.len());
    let mut packed = BufReader::new(Counted { inner: file, read: Rc::clone(&position.read) });
    let is_xz = packed.fill_buf().map_err(cannot)?.starts_with(&XZ_MAGIC);
    if is_xz {
        let text = XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB);
        return Ok(Box::new(BufReader::new(text)));
    }
    Ok(Box::new(packed))
}
