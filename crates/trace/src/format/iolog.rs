//! fio's iolog, versions 2 and 3, which `write_iolog` writes and `read_iolog` replays.
//!
//! ```text
//! fio version 2 iolog             fio version 3 iolog
//! /dev/sda add                    0 /dev/sda add
//! /dev/sda open                   0 /dev/sda open
//! /dev/sda read 0 4096            17 /dev/sda read 0 4096
//! /dev/sda wait 1500              1517 /dev/sda write 8192 4096
//! /dev/sda write 8192 4096        2100 /dev/sda sync 0 0
//! ```
//!
//! Units: offset and length in bytes. Version 3 has the time of each action in microseconds since the run
//! began. (fio's documentation does not name the unit; fio 3.33 writes microseconds: with `thinktime=2000`
//! lines are about 2300 apart.) Version 2 has no times except for `wait`, whose microseconds are added up
//! here. Without `wait` all requests come at 0, and fio replays them like this: each as soon as the one
//! before is done.
//!
//! A device is a file. `sync`, `datasync` and `sync_file_range` become flushes, `trim` becomes a discard.
//! `add`, `open` and `close` are ignored. Version 1 (without a header line) is not read. Tasks and
//! completions are not recorded. When written, flags, tasks and completions are lost, and times are rounded
//! down to microseconds.
//
//= fio HOWTO "Trace file format v2", "Trace file format v3"

use super::LineParser;
use crate::error::quote;
use crate::fields::{after, in_bytes, number, ticks};
use crate::record::{Names, Notes, Op, Record};
use fairhead_core::Duration;
use std::io::{self, Write};

/// The parser of the format.
pub(crate) struct Iolog {
    version: u8,
    begun: bool,
    /// The sum of the waits of version 2.
    waited: Duration,
}

impl Iolog {
    pub(crate) fn new(version: u8) -> Self {
        Self { version, begun: false, waited: Duration::ZERO }
    }

    fn action(&mut self, at: Duration, rest: &[&str], names: &mut Names) -> Result<Option<Record>, String> {
        let (file, action, numbers) = match *rest {
            [file, action, ref numbers @ ..] if numbers.len() <= 2 => (file, action, numbers),
            _ => return Err(format!("{} words: expected FILE ACTION [OFFSET LENGTH]", rest.len())),
        };
        let op = match (action, numbers) {
            ("add" | "open" | "close", []) => return Ok(None),
            ("wait", [us] | [us, _]) if self.version == 2 => {
                self.waited = after(self.waited, ticks("wait", us, 1000)?)?;
                return Ok(None);
            }
            ("wait", _) => {
                return Err("wait is of version 2, with one number; here each line has a time".to_owned());
            }
            ("read", [_, _]) => Op::Read,
            ("write", [_, _]) => Op::Write,
            ("trim", [_, _]) => Op::Discard,
            ("sync" | "datasync" | "sync_file_range", _) => Op::Flush,
            ("read" | "write" | "trim", _) => return Err(format!("{action} needs an offset and a length")),
            _ => {
                let known = "add, open, close, wait, read, write, trim, sync, datasync";
                return Err(format!("action {}: expected one of {known}", quote(action)));
            }
        };
        let mut record = match numbers {
            [offset, length] if op != Op::Flush => {
                in_bytes(at, op, number("offset", offset)?, number("length", length)?)?
            }
            _ => in_bytes(at, op, 0, 0)?,
        };
        record.device = names.add_device(file)?;
        Ok(Some(record))
    }
}

impl LineParser for Iolog {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [] => Ok(None),
            _ if !self.begun => {
                self.begun = true;
                match words[..] {
                    ["fio", "version", "2" | "3", "iolog"] => Ok(None),
                    _ => Err("expected 'fio version 2 iolog' or 'fio version 3 iolog' first".to_owned()),
                }
            }
            [time, ref rest @ ..] if self.version == 3 => {
                let at = ticks("time", time, 1000)?;
                self.action(at, rest, names)
            }
            _ => self.action(self.waited, &words, names),
        }
    }
}

/// Writes version 3.
///
/// ```
/// use fairhead_core::{Duration, Sector};
/// use fairhead_trace::{Names, Op, Record, format::iolog::Writer};
/// let mut names = Names::default();
/// names.add_device("/dev/sda").unwrap();
/// let mut text = Vec::new();
/// let mut writer = Writer::new(&mut text).unwrap();
/// writer.write(&Record::new(Duration::from_us(17), Op::Write, Sector(8), 8), &names).unwrap();
/// writer.finish().unwrap();
/// assert!(String::from_utf8(text).unwrap().contains("17 /dev/sda write 4096 4096"));
/// ```
pub struct Writer<W> {
    out: W,
    /// The number of devices that have been added.
    added: usize,
}

impl<W: Write> Writer<W> {
    /// Starts a log.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"fio version 3 iolog\n")?;
        Ok(Self { out, added: 0 })
    }

    /// Writes one request. `names` are those of its trace. Blanks in a device's name become `_`, because fio
    /// cannot read them.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, record: &Record, names: &Names) -> io::Result<()> {
        let us = record.at.as_us();
        while self.added <= record.device.0 as usize {
            let id = crate::DeviceId(u32::try_from(self.added).map_err(io::Error::other)?);
            let file = file_name(names.device(id));
            writeln!(self.out, "{us} {file} add\n{us} {file} open")?;
            self.added += 1;
        }
        let file = file_name(names.device(record.device));
        let action = match record.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => "sync",
        };
        let (offset, bytes) = (u128::from(record.sector.0) * 512, u64::from(record.sectors) * 512);
        writeln!(self.out, "{us} {file} {action} {offset} {bytes}")
    }

    /// Ends the log.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn file_name(name: &str) -> String {
    if name.is_empty() { "disk".to_owned() } else { name.replace(|c: char| c.is_whitespace(), "_") }
}
