//! From bytes to records: decompresses, detects the format, parses, sorts by time, and counts time from the
//! first request.

use crate::assemble::Assembler;
use crate::error::{Place, TraceError};
use crate::event::Event;
use crate::events::{Events, Records};
use crate::format::alibaba::Alibaba;
use crate::format::biosnoop;
use crate::format::blkparse::Blkparse;
use crate::format::blktrace::Blktrace;
use crate::format::cloudphysics;
use crate::format::disksim::{DiskSim, Validation};
use crate::format::ftrace::Ftrace;
use crate::format::iolog::Iolog;
use crate::format::iosnoop;
use crate::format::libcachesim;
use crate::format::live::Live;
use crate::format::mqsim::MqSim;
use crate::format::msr::Msr;
use crate::format::snoop::Snoop;
use crate::format::spc::Spc;
use crate::format::startup::StartUp;
use crate::format::tencent::Tencent;
use crate::format::vscsi::Vscsi;
use crate::format::{Format, LineParser};
use crate::lines::Lines;
use crate::pages;
use crate::record::{Names, Notes, Op, Record};
use crate::reorder::{Reorder, Timed};
use crate::unpack::{peek, unpack};
use fairhead_core::Duration;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes that are read to detect the format.
const HEAD_BYTES: u64 = 64 << 10;
/// The number of requests that are held back to put requests in order of time.
const RECORDS_WINDOW: usize = 1 << 12;
/// The number of events that are held back to put events in order of time. It is larger than for requests
/// because a stream of blktrace has whole buffers of each processor in turn.
const EVENTS_WINDOW: usize = 1 << 16;

/// A text and the parser of its lines.
struct Text<P> {
    lines: Lines,
    parser: P,
}

impl<P: LineParser> Text<P> {
    fn item(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<P::Item>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            match self.parser.line(&line, names, notes) {
                Ok(None) => {}
                Ok(item) => return Ok(item),
                Err(message) => return Err(self.lines.error(message)),
            }
        }
    }
}

impl<P: LineParser<Item = Event>> Events for Text<P> {
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, TraceError> {
        self.item(names, notes)
    }
}

impl<P: LineParser<Item = Record>> Records for Text<P> {
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        self.item(names, notes)
    }
}

/// Several files of one recording, merged by time.
struct Merged {
    files: Vec<Box<dyn Events>>,
    /// The next event of each file; `None` before the first call.
    heads: Option<Vec<Option<Event>>>,
}

impl Events for Merged {
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, TraceError> {
        if self.heads.is_none() {
            let heads: Result<Vec<_>, _> = self.files.iter_mut().map(|f| f.next(names, notes)).collect();
            self.heads = Some(heads?);
        }
        let Some(heads) = &mut self.heads else { return Ok(None) };
        let times = heads.iter().enumerate().filter_map(|(i, head)| Some((head.as_ref()?.at, i)));
        let Some((_, first)) = times.min() else { return Ok(None) };
        let event = heads[first].take();
        heads[first] = self.files[first].next(names, notes)?;
        Ok(event)
    }
}

impl Timed for Record {
    fn at(&self) -> Duration {
        self.at
    }
    fn delay_to(&mut self, at: Duration) {
        self.at = at;
    }
}

/// What the records of a trace come from.
enum Source {
    Records(Box<dyn Records>, Reorder<Record>),
    Events(Box<dyn Events>, Reorder<Event>, Box<Assembler>),
    Kept(pages::Records),
}

/// A trace that is being read: an iterator over its requests in order of time.
///
/// It ends after the last request, or after the first error.
///
/// ```
/// let log = "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n17 /dev/sda read 0 4096\n900 /dev/sda write 8192 512\n";
/// let trace = fairhead_trace::read("a.log", log.as_bytes()).unwrap();
/// let records: Result<Vec<_>, _> = trace.collect();
/// let records = records.unwrap();
/// assert_eq!(records[0].sectors, 8);
/// assert_eq!((records[1].sector.0, records[1].at.as_us()), (16, 883));
/// ```
pub struct Trace {
    format: Format,
    source: Source,
    names: Names,
    notes: Notes,
    /// Whether the source has no more.
    ended: bool,
    /// The error that ended the trace, if one did.
    error: Option<TraceError>,
    origin: Option<Duration>,
    /// The number of bytes that have been read of the files, and their total size.
    read: Arc<AtomicU64>,
    size: u64,
}

/// An input that counts the bytes read from it.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Opens a trace by its path. The path of one file of a blktrace set (`sda.blktrace.0`), or its common part
/// (`sda`, as in `blkparse -i sda`), opens the whole set.
///
/// # Errors
/// If the file cannot be opened, or its format is not known.
pub fn open(path: &Path) -> Result<Trace, TraceError> {
    let mut inputs: Vec<(String, Box<dyn Read>)> = Vec::new();
    let (mut size, count) = (0, Arc::new(AtomicU64::new(0)));
    for path in files_of(path) {
        let name = path.display().to_string();
        let cannot = |message: String| TraceError { file: name.clone(), place: Place::File, message };
        let file = File::open(&path).map_err(|e| cannot(format!("cannot be opened: {e}")))?;
        let metadata = file.metadata();
        if metadata.as_ref().is_ok_and(|m| m.is_dir()) {
            return Err(cannot("is a directory; a trace is a file".to_owned()));
        }
        size += metadata.map_or(0, |m| m.len());
        inputs.push((name, Box::new(Counted { input: file, read: Arc::clone(&count) })));
    }
    Ok(Trace { size, read: count, ..read_set(inputs)? })
}

/// Returns the files that [`open`] reads for a path: all files of a blktrace set, in order of processors, or
/// else the path itself.
#[must_use]
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let text = path.display().to_string();
    let stem = match text.rsplit_once(".blktrace.") {
        Some((stem, cpu)) if cpu.bytes().all(|b| b.is_ascii_digit()) && path.exists() => stem,
        _ if path.exists() => return vec![path.to_owned()],
        _ => &text,
    };
    let of = |cpu: u32| PathBuf::from(format!("{stem}.blktrace.{cpu}"));
    // A processor without events may have no file. Linux has at most 8192 processors.
    let set: Vec<PathBuf> = (0..8192).map(of).filter(|p| p.exists()).collect();
    if set.is_empty() { vec![path.to_owned()] } else { set }
}

/// Reads a trace from any source of bytes. `name` appears in error messages.
///
/// # Errors
/// If it cannot be read, or its format is not known.
pub fn read(name: &str, input: impl Read + 'static) -> Result<Trace, TraceError> {
    read_set(vec![(name.to_owned(), Box::new(input))])
}

/// An input that tells its last byte; `u64::MAX` before the first.
struct Ended<R> {
    input: R,
    last: Arc<AtomicU64>,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.input.read(buffer)?;
        if let Some(last) = buffer[..n].last() {
            self.last.store(u64::from(*last), Ordering::Relaxed);
        }
        Ok(n)
    }
}

/// Reads a trace from a pipe, with its progress; and, once it has been read to its end, the last byte of what
/// was unpacked.
pub(crate) fn piped(name: &str, input: impl Read + 'static) -> Result<(Trace, Arc<AtomicU64>), TraceError> {
    let (read_so_far, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
    let input = unpack(Box::new(Counted { input, read: Arc::clone(&read_so_far) }))
        .map_err(|e| cannot_be_read(name, &e))?;
    let trace = read(name, Ended { input, last: Arc::clone(&last) })?;
    Ok((Trace { read: read_so_far, ..trace }, last))
}

fn cannot_be_read(name: &str, e: &std::io::Error) -> TraceError {
    TraceError { file: name.to_owned(), place: Place::File, message: format!("cannot be read: {e}") }
}

/// Reads a trace in the given format, without detecting it. `name` appears in error messages.
///
/// # Errors
/// If it cannot be read.
///
/// ```
/// use fairhead_trace::{Format, read_as};
/// // One line alone could be of several formats with commas.
/// let text = "0,20941264,8192,W,0.551706\n";
/// let mut trace = read_as(Format::Spc, "financial", text.as_bytes()).unwrap();
/// assert_eq!(trace.next().unwrap().unwrap().sectors, 16);
/// ```
pub fn read_as(format: Format, name: &str, input: impl Read + 'static) -> Result<Trace, TraceError> {
    let input = unpack(Box::new(input)).map_err(|e| cannot_be_read(name, &e))?;
    Ok(Trace::new(format, source(format, name, input)))
}

/// Reads a trace from several files, as blktrace writes one for each processor. Names appear in error
/// messages.
///
/// # Errors
/// If a file cannot be read or its format is not known, or if there are several files of a format other than
/// blktrace.
pub fn read_set(inputs: Vec<(String, Box<dyn Read>)>) -> Result<Trace, TraceError> {
    let several = inputs.len() > 1;
    let mut files: Vec<Box<dyn Events>> = Vec::new();
    for (name, input) in inputs {
        let fail = |message| TraceError { file: name.clone(), place: Place::File, message };
        let cannot = |e| fail(format!("cannot be read: {e}"));
        let (head, input) = peek(unpack(input).map_err(cannot)?, HEAD_BYTES).map_err(cannot)?;
        if several && head.is_empty() {
            // A processor without events.
            continue;
        }
        let format = Format::detect(&head).map_err(fail)?;
        if several && format != Format::Blktrace {
            return Err(fail(format!("is {format}; only blktrace has several files for one trace")));
        }
        if !several {
            return Ok(Trace::new(format, source(format, &name, Box::new(input))));
        }
        files.push(Box::new(Blktrace::new(&name, Box::new(input))));
    }
    Ok(Trace::new(Format::Blktrace, by_events(Box::new(Merged { files, heads: None }))))
}

fn by_events(events: Box<dyn Events>) -> Source {
    Source::Events(events, Reorder::new(EVENTS_WINDOW), Box::new(Assembler::new()))
}

fn source(format: Format, name: &str, input: Box<dyn Read>) -> Source {
    let lines = |input| Lines::new(name, input);
    let events: Box<dyn Events> = match format {
        Format::Blktrace => Box::new(Blktrace::new(name, input)),
        Format::Blkparse => Box::new(Text { lines: lines(input), parser: Blkparse::default() }),
        Format::Ftrace => Box::new(Text { lines: lines(input), parser: Ftrace::default() }),
        Format::Vscsi => return by_time(Box::new(Vscsi::new(name, input))),
        _ => return by_records(format, lines(input)),
    };
    by_events(events)
}

fn by_records(format: Format, lines: Lines) -> Source {
    let records: Box<dyn Records> = match format {
        Format::IologV2 => Box::new(Text { lines, parser: Iolog::new(2) }),
        Format::IologV3 => Box::new(Text { lines, parser: Iolog::new(3) }),
        Format::Msr => Box::new(Text { lines, parser: Msr }),
        Format::Alibaba => Box::new(Text { lines, parser: Alibaba }),
        Format::Tencent => Box::new(Text { lines, parser: Tencent }),
        Format::Spc => Box::new(Text { lines, parser: Spc }),
        Format::DiskSim => Box::new(Text { lines, parser: DiskSim }),
        Format::DiskSimValidation => Box::new(Text { lines, parser: Validation::default() }),
        Format::StartUp => Box::new(Text { lines, parser: StartUp }),
        Format::Live => Box::new(Live::new(lines)),
        Format::BioSnoop => Box::new(Text { lines, parser: Snoop::new(&biosnoop::TOOL) }),
        Format::IoSnoop => Box::new(Text { lines, parser: Snoop::new(&iosnoop::TOOL) }),
        Format::CloudPhysics => Box::new(Text { lines, parser: cloudphysics::parser() }),
        Format::LibCacheSim => Box::new(Text { lines, parser: libcachesim::parser() }),
        Format::MqSim => Box::new(Text { lines, parser: MqSim }),
        Format::Blktrace | Format::Blkparse | Format::Ftrace | Format::Vscsi => {
            unreachable!("made of events or binary")
        }
    };
    by_time(records)
}

fn by_time(records: Box<dyn Records>) -> Source {
    Source::Records(records, Reorder::new(RECORDS_WINDOW))
}

impl Trace {
    fn new(format: Format, source: Source) -> Self {
        let (names, notes) = (Names::default(), Notes::default());
        let read = Arc::new(AtomicU64::new(0));
        Self { format, source, names, notes, ended: false, error: None, origin: None, read, size: 0 }
    }

    /// A trace that was read before and kept.
    pub(crate) fn kept(format: Format, records: pages::Records, names: Names, notes: Notes) -> Self {
        Self { names, notes, ..Self::new(format, Source::Kept(records)) }
    }

    /// Returns the format of the trace.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the number of bytes that have been read of the files, as they are on disk, and their total
    /// size, for a progress display. Both are 0 for a trace that was not opened by [`open`].
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.size)
    }

    /// Returns the names of devices and tasks, as far as the trace has been read.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the counts of what was ignored or corrected so far.
    #[must_use]
    pub fn notes(&self) -> Notes {
        let late = match &self.source {
            Source::Records(_, order) => order.late(),
            Source::Events(_, order, _) => order.late(),
            Source::Kept(_) => self.notes.late,
        };
        Notes { late, ..self.notes }
    }

    /// Takes one more record from the source, if it has one.
    fn pull(&mut self) {
        let (names, notes) = (&mut self.names, &mut self.notes);
        let more = match &mut self.source {
            Source::Records(source, order) => source.next(names, notes).map(|r| r.map(|r| order.put(r))),
            Source::Events(source, order, _) => source.next(names, notes).map(|e| e.map(|e| order.put(e))),
            Source::Kept(_) => Ok(None),
        };
        match more {
            Ok(Some(())) => {}
            Ok(None) => self.ended = true,
            Err(e) => (self.ended, self.error) = (true, Some(e)),
        }
    }

    /// Returns the next record, with times on the trace's own clock.
    fn absolute(&mut self) -> Option<Record> {
        loop {
            let ended = self.ended;
            match &mut self.source {
                Source::Records(_, order) if ended || !order.wants() => return order.take(),
                Source::Events(_, order, assembler) => {
                    if let Some(record) = assembler.take(false) {
                        return Some(record);
                    }
                    if ended || !order.wants() {
                        match order.take() {
                            Some(event) => assembler.put(event),
                            None => {
                                assembler.end();
                                return assembler.take(true);
                            }
                        }
                    }
                }
                Source::Records(..) => {}
                Source::Kept(kept) => {
                    return kept.next().unwrap_or_else(|e| {
                        self.error = Some(e);
                        None
                    });
                }
            }
            if !ended {
                self.pull();
            }
        }
    }
}

impl Iterator for Trace {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(mut record) = self.absolute() else { return self.error.take().map(Err) };
            if record.sectors == 0 && record.op != Op::Flush {
                self.notes.empty += 1;
                continue;
            }
            let origin = *self.origin.get_or_insert(record.at);
            // A late request was moved; its later times must not be before it.
            let since = |t: Duration| t.max(record.at).saturating_sub(origin);
            record.issued = record.issued.map(since);
            record.completed = record.completed.map(since);
            record.at = record.at.saturating_sub(origin);
            return Some(Ok(record));
        }
    }
}
