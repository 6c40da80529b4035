//! The requests of a trace in a file without a name, to be read as often as they are needed.
//!
//! ```text
//! Writer ─► pages of 64 KiB in a file (the last page stays in memory) ─┬► Records
//!                                                                      └► Records …
//! ```
//!
//! A request takes 8 to 20 bytes in most traces: a byte that says which fields follow, one with the flags,
//! and the fields as numbers of 7 bits a byte, as differences from the request before where these are small.
//! No request crosses a page; a page ends at a byte 0, or is full. Each page can be read by itself: the
//! differences begin anew with it.
//!
//! The file is in the folder that `TMPDIR` names, else in `/var/tmp` (as `/tmp` is memory on many machines),
//! and has no name from the moment on when it is there: it vanishes with the process, however that ends.
//!
//! It is no format for others: it is never read by another process.

use crate::error::{Place, TraceError};
use crate::record::{DeviceId, Flags, Op, Record};
use fairhead_core::{Duration, Sector, TaskId};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of a page.
const PAGE: usize = 64 << 10;
/// The most bytes of a request: two bytes, four numbers of up to 64 bits and three of up to 32.
const REQUEST_BYTES_MAX: usize = 2 + 4 * 10 + 3 * 5;

/// The first byte of a request: what it is (two bits), and which fields follow.
const IS_REQUEST: u8 = 0x80;
const HAS_ISSUED: u8 = 0x40;
const HAS_COMPLETED: u8 = 0x20;
const IS_OTHER_TASK: u8 = 0x10;
const IS_OTHER_DEVICE: u8 = 0x08;
const OP: u8 = 0x03;

/// The request before the first one of a page.
const START: Record = Record::new(Duration::ZERO, Op::Read, Sector(0), 0);

/// All pages.
pub(crate) struct Pages {
    /// How many are in the file, and the file.
    count: u64,
    file: Option<Mutex<File>>,
    /// The page after those.
    last: Vec<u8>,
}

impl Pages {
    /// Reads a page into `buffer`. Whether there is one.
    fn read(&self, page: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        if page == self.count {
            buffer.extend_from_slice(&self.last);
        }
        let Some(file) = self.file.as_ref().filter(|_| page < self.count) else {
            return Ok(!buffer.is_empty());
        };
        buffer.resize(PAGE, 0);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(page * PAGE as u64))?;
        file.read_exact(buffer)?;
        Ok(true)
    }
}

/// Pages that are being filled.
#[derive(Default)]
pub(crate) struct Writer {
    file: Option<File>,
    count: u64,
    page: Vec<u8>,
    before: Option<Record>,
}

impl Writer {
    /// Adds a request.
    pub(crate) fn put(&mut self, r: &Record) -> Result<(), String> {
        if self.page.len() + REQUEST_BYTES_MAX > PAGE {
            self.turn()?;
        }
        let before = self.before.replace(*r).unwrap_or(START);
        write(&mut self.page, r, &before);
        Ok(())
    }

    pub(crate) fn finish(self) -> Pages {
        Pages { count: self.count, file: self.file.map(Mutex::new), last: self.page }
    }

    /// Writes the page to the file and begins the next.
    fn turn(&mut self) -> Result<(), String> {
        let folder = folder();
        let cannot = |e: io::Error| {
            format!(
                "its requests cannot be kept in '{}': {e}; name a folder with room in TMPDIR, or write the trace to a file first",
                folder.display()
            )
        };
        self.page.resize(PAGE, 0);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless(&folder).map_err(cannot)?),
        };
        file.write_all(&self.page).map_err(cannot)?;
        self.page.clear();
        (self.count, self.before) = (self.count + 1, None);
        Ok(())
    }
}

fn folder() -> PathBuf {
    let lasting = PathBuf::from("/var/tmp");
    match std::env::var_os("TMPDIR") {
        None if lasting.is_dir() => lasting,
        _ => std::env::temp_dir(),
    }
}

/// A file that vanishes when it is closed, which only this user could have opened.
fn nameless(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".fairhead-{}-{number}.kept", std::process::id()));
        match options.open(&path) {
            // One that a process of this number left in the moment before it would have removed it.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
        }
    }
}

/// Writes a request, as what differs from the one before.
fn write(page: &mut Vec<u8>, r: &Record, before: &Record) {
    let op = match r.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    };
    let flag = |has: bool, flag: u8| if has { flag } else { 0 };
    page.push(
        IS_REQUEST
            | flag(r.issued.is_some(), HAS_ISSUED)
            | flag(r.completed.is_some(), HAS_COMPLETED)
            | flag(r.task != before.task, IS_OTHER_TASK)
            | flag(r.device != before.device, IS_OTHER_DEVICE)
            | op,
    );
    page.push(r.flags.bits());
    number(page, r.at.as_ns() - before.at.as_ns());
    // Near sectors on both sides are small numbers: the sign is the lowest bit.
    let away = r.sector.0.wrapping_sub(before.sector.0.wrapping_add(u64::from(before.sectors)));
    number(page, away << 1 ^ (away.cast_signed() >> 63).cast_unsigned());
    number(page, u64::from(r.sectors));
    for time in [r.issued, r.completed].into_iter().flatten() {
        number(page, time.as_ns() - r.at.as_ns());
    }
    if r.task != before.task {
        number(page, u64::from(r.task.0));
    }
    if r.device != before.device {
        number(page, u64::from(r.device.0));
    }
}

/// Writes a number, seven bits a byte, the lowest first; the last byte has no upper bit.
fn number(page: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        page.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    page.push(n.to_le_bytes()[0]);
}

/// The requests of a kept trace, as one reader reads them.
pub(crate) struct Records {
    pages: Arc<Pages>,
    /// The name of the trace, for messages.
    name: String,
    page: Vec<u8>,
    at: usize,
    /// The page after this one.
    next: u64,
    before: Record,
}

impl Records {
    pub(crate) const fn new(name: String, pages: Arc<Pages>) -> Self {
        Self { pages, name, page: Vec::new(), at: 0, next: 0, before: START }
    }

    /// The next request, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.page.get(self.at).is_none_or(|byte| *byte == 0) {
            let there = self.pages.read(self.next, &mut self.page).map_err(|e| self.error(&e))?;
            (self.at, self.next, self.before) = (0, self.next + 1, START);
            if !there {
                return Ok(None);
            }
        }
        let record = self.request().ok_or_else(|| self.error(&"they have changed"))?;
        self.before = record;
        Ok(Some(record))
    }

    fn error(&self, why: &dyn fmt::Display) -> TraceError {
        let message = format!("its requests, which were kept when it was read, cannot be read: {why}");
        TraceError { file: self.name.clone(), place: Place::File, message }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.page.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn number(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn request(&mut self) -> Option<Record> {
        let before = self.before;
        let head = self.byte()?;
        let flags = Flags::of_bits(self.byte()?);
        let op = match head & OP {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Discard,
            _ => Op::Flush,
        };
        let at = before.at + Duration::from_ns(self.number()?);
        let away = self.number()?;
        let away = (away >> 1) ^ (away & 1).wrapping_neg();
        let sector = before.sector.0.wrapping_add(u64::from(before.sectors)).wrapping_add(away);
        let sectors = u32::try_from(self.number()?).ok()?;
        let mut time = |flag| {
            if head & flag == 0 { Some(None) } else { Some(Some(at + Duration::from_ns(self.number()?))) }
        };
        let (issued, completed) = (time(HAS_ISSUED)?, time(HAS_COMPLETED)?);
        let mut id =
            |flag, old| if head & flag == 0 { Some(old) } else { u32::try_from(self.number()?).ok() };
        let task = TaskId(id(IS_OTHER_TASK, before.task.0)?);
        let device = DeviceId(id(IS_OTHER_DEVICE, before.device.0)?);
        Some(Record { at, issued, completed, task, device, op, flags, sector: Sector(sector), sectors })
    }
}
