//! VSCSI: the binary traces of virtual disks that cloudPhysics recorded, and libCacheSim reads.
//!
//! Each request is a record of 32 or 40 bytes, little-endian. The upper byte of `version` is 1 or 2:
//!
//! ```text
//! version 1   0 number  4 bytes    8 pieces  12 command  14 version  16 sector  24 time
//! version 2   0 command 2 version  4 number  8 bytes     12 pieces   16 sector  24 time  32 response time
//! ```
//!
//! Units: times in microseconds, sectors of 512 bytes. `command` is that of SCSI; those that neither read,
//! write nor flush are ignored, and so are numbers and pieces (of memory). The response time gives the
//! completion; 0 is none. There is one disk in a file, device `0`. Tasks are not recorded. A file has no
//! mark, so that it is recognised by the fields of its first records.
//
//= 1a1a11a/libCacheSim libCacheSim/traceReader/include/vscsi.h

use super::scsi;
use crate::error::{Place, TraceError};
use crate::events::Records;
use crate::fields::{after, in_bytes, in_sectors, ticks};
use crate::record::{Names, Notes, Op, Record};
use crate::unpack::fill;
use std::io::{BufReader, Read};

/// The number of records whose fields are looked at.
const LOOK: usize = 16;
/// The unit of time, in nanoseconds.
const TICK_NS: u64 = 1000;

/// The two layouts of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

impl Version {
    const fn bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }

    /// Whether a record has the version, and a command of one byte.
    fn is_of(self, record: &[u8]) -> bool {
        match self {
            Self::One => record[15] == 1 && record[13] == 0,
            Self::Two => record[3] == 2 && record[1] == 0,
        }
    }
}

/// Returns the layout of a file that begins with these bytes.
fn version(head: &[u8]) -> Option<Version> {
    [Version::One, Version::Two].into_iter().find(|version| {
        let mut records = head.chunks_exact(version.bytes()).take(LOOK);
        records.len() > 0 && records.all(|record| version.is_of(record))
    })
}

/// Whether a file that begins with these bytes has this format.
pub(super) fn has_shape(head: &[u8]) -> bool {
    version(head).is_some()
}

/// The parser of a file.
pub(crate) struct Vscsi {
    file: String,
    input: BufReader<Box<dyn Read>>,
    /// The number of bytes read.
    offset: u64,
    /// The layout, once the first record is read.
    version: Option<Version>,
}

impl Vscsi {
    pub(crate) fn new(file: &str, input: Box<dyn Read>) -> Self {
        Self { file: file.to_owned(), input: BufReader::new(input), offset: 0, version: None }
    }

    fn error(&self, message: String) -> TraceError {
        TraceError { file: self.file.clone(), place: Place::Byte(self.offset), message }
    }

    /// Reads the next record into `bytes`. Returns its layout, or `None` after the last.
    fn raw(&mut self, bytes: &mut [u8; 40]) -> Result<Option<Version>, TraceError> {
        let cannot = |e: std::io::Error| format!("cannot be read any further: {e}");
        let least = self.version.unwrap_or(Version::One).bytes();
        let mut n = fill(&mut self.input, &mut bytes[..least]).map_err(|e| self.error(cannot(e)))?;
        if n == 0 {
            return Ok(None);
        }
        let layouts = match self.version {
            Some(version) => vec![version],
            None => vec![Version::One, Version::Two],
        };
        let found = layouts.into_iter().find(|v| n == least && v.is_of(&bytes[..]));
        let Some(version) = found else {
            let message = if n < least {
                format!("the file ends in a record: {n} bytes of {least}")
            } else {
                "no record begins here: expected version 1 or 2 and a command of one byte".to_owned()
            };
            return Err(self.error(message));
        };
        if n < version.bytes() {
            n += fill(&mut self.input, &mut bytes[n..]).map_err(|e| self.error(cannot(e)))?;
        }
        if n < version.bytes() {
            return Err(self.error(format!("the file ends in a record: {n} bytes of {}", version.bytes())));
        }
        self.version = Some(version);
        Ok(Some(version))
    }
}

/// Makes a request of a record. `None` for a command that is no request.
fn record(version: Version, bytes: &[u8; 40]) -> Result<Option<Record>, String> {
    let number =
        |at: usize, n: usize| bytes[at..at + n].iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
    let (command, length) = match version {
        Version::One => (bytes[12], number(4, 4)),
        Version::Two => (bytes[0], number(8, 4)),
    };
    let Some(op) = scsi::operation(command) else { return Ok(None) };
    let at = ticks("time", &number(24, 8).to_string(), TICK_NS)?;
    let sectors = if op == Op::Flush { 0 } else { in_bytes(at, op, 0, length)?.sectors };
    let sector = if op == Op::Flush { 0 } else { number(16, 8) };
    let mut record = in_sectors(at, op, sector, u64::from(sectors))?;
    let response = if version == Version::Two { number(32, 8) } else { 0 };
    if response > 0 {
        record.completed = Some(after(at, ticks("response time", &response.to_string(), TICK_NS)?)?);
    }
    Ok(Some(record))
}

impl Records for Vscsi {
    fn next(&mut self, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, TraceError> {
        let mut bytes = [0; 40];
        loop {
            let Some(version) = self.raw(&mut bytes)? else { return Ok(None) };
            let record = record(version, &bytes).map_err(|message| self.error(message))?;
            self.offset += version.bytes() as u64;
            if let Some(mut record) = record {
                record.device = names.add_device("0").map_err(|message| self.error(message))?;
                return Ok(Some(record));
            }
        }
    }
}
