//! Reading a log: decompressed, line by line, with the number of each.
//!
//! Memory is bounded whatever the file holds: lines beyond [`LINE_BYTES_MAX`] are refused, and only what the
//! next few decisions need is kept.

use super::header::Header;
use super::line::{self, Line};
use std::fmt;
use std::io::{self, BufRead};

/// Longer lines are no log's.
const LINE_BYTES_MAX: usize = 4096;

/// An error in a log, with its place. One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogError {
    /// The log's name.
    pub log: String,
    /// Which line; 0: the log as a whole.
    pub line: u32,
    /// The error, and what would be right.
    pub message: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.log, self.message),
            line => write!(f, "{}:{line}: {}", self.log, self.message),
        }
    }
}

impl std::error::Error for LogError {}

/// A message fit for one line, whatever words of the log it quotes: control characters are escaped, and the
/// middle of a long one is left out.
fn one_line(message: &str) -> String {
    const HALF: usize = 400;
    let mut line = Vec::new();
    for c in message.chars() {
        if c.is_control() { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    if line.len() <= 2 * HALF {
        return line.into_iter().collect();
    }
    let (begin, end) = (&line[..HALF], &line[line.len() - HALF..]);
    begin.iter().chain(&[' ', '…', ' ']).chain(end).collect()
}

/// A log that is being read.
pub(super) struct Log<R> {
    source: R,
    name: String,
    /// The line that was read last.
    number: u32,
    text: Vec<u8>,
    /// How many bytes have been read.
    bytes: u64,
    header: Header,
    /// The first event, read together with the header.
    first: Option<Line>,
    /// How many events the recording says it lost.
    lost: u64,
    latest: Option<fairhead_core::Instant>,
}

impl<R: BufRead> Log<R> {
    /// Reads the header, and the first event.
    pub(super) fn open(source: R, name: &str) -> Result<Self, LogError> {
        let mut log = Self {
            source,
            name: name.to_owned(),
            number: 0,
            text: Vec::new(),
            bytes: 0,
            header: Header::default(),
            first: None,
            lost: 0,
            latest: None,
        };
        log.first = log.read_event()?;
        log.header.finish().map_err(|(line, message)| log.error_at(line, &message))?;
        match log.first {
            Some(_) => Ok(log),
            None => {
                Err(log.error_at(0, "there is no event in it; see docs/conformance.md for how to record one"))
            }
        }
    }

    pub(super) fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// The number of the line that was read last.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Its text.
    pub(super) fn text(&self) -> &str {
        // Checked when it was read.
        std::str::from_utf8(&self.text).unwrap_or_default().trim()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn error_at(&self, line: u32, message: &str) -> LogError {
        LogError { log: self.name.clone(), line, message: one_line(message) }
    }

    /// The next event; `None` at the end.
    pub(super) fn next_event(&mut self) -> Result<Option<Line>, LogError> {
        match self.first.take() {
            Some(line) => Ok(Some(line)),
            None => self.read_event(),
        }
    }

    fn read_event(&mut self) -> Result<Option<Line>, LogError> {
        while self.read_line()? {
            let text = std::str::from_utf8(&self.text);
            let text = text.map_err(|_| self.error_at(self.number, "not a text in UTF-8"))?;
            let trimmed = text.trim();
            if trimmed.is_empty() {
                continue;
            }
            if trimmed.starts_with('#') {
                let header = self.header.line(self.number, trimmed);
                header.map_err(|message| self.error_at(self.number, &message))?;
                continue;
            }
            if let Some(lost) = lost_events(trimmed) {
                self.lost = self.lost.saturating_add(lost);
                continue;
            }
            let line = line::parse(text).map_err(|message| self.error_at(self.number, message))?;
            // Buffers of several processors are merged by time; what is out of order by a little is put
            // right.
            let at = self.latest.map_or(line.at, |latest| latest.max(line.at));
            self.latest = Some(at);
            return Ok(Some(Line { at, ..line }));
        }
        Ok(None)
    }

    /// Reads one line into `text`; false at the end.
    fn read_line(&mut self) -> Result<bool, LogError> {
        self.text.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = io::Read::take(&mut self.source, limit).read_until(b'\n', &mut self.text);
        let read = read.map_err(|e| self.error_at(self.number + 1, &format!("cannot be read: {e}")))?;
        self.bytes += read as u64;
        if read == 0 {
            return Ok(false);
        }
        self.number = self.number.saturating_add(1);
        if self.text.len() > LINE_BYTES_MAX {
            return Err(self.error_at(self.number, "the line is too long: not a log of the blk tracer"));
        }
        Ok(true)
    }
}

/// `CPU:1 [LOST 17 EVENTS]`.
fn lost_events(text: &str) -> Option<u64> {
    let (_, rest) = text.strip_prefix("CPU:")?.split_once("[LOST ")?;
    rest.strip_suffix(" EVENTS]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Instant;

    #[test]
    fn whatever_a_message_quotes_it_is_one_short_line() {
        let long = "x".repeat(5000);
        for word in ["d\0", "a\nb\u{85}", &long] {
            let message = one_line(&format!("the level '{word}'; right is a number from 0 to 7"));
            assert!(message.starts_with("the level '") && message.ends_with("right is a number from 0 to 7"));
            assert!(!message.chars().any(char::is_control) && message.len() < 1000, "{message:?}");
        }
        assert_eq!(one_line("job 'a': 1 … 2"), "job 'a': 1 … 2");
    }

    fn events(text: &str) -> Result<Vec<Line>, LogError> {
        let mut log = Log::open(text.as_bytes(), "x.txt")?;
        let mut all = Vec::new();
        while let Some(line) = log.next_event()? {
            all.push(line);
        }
        Ok(all)
    }

    const EVENT: &str = "  fio-5 [000] d..1. 5.000002: 7,0 Q RS 0 + 8 [fio]\n";

    #[test]
    fn header_then_events() {
        let text = format!("# scheduler=bfq\n\n{EVENT}CPU:1 [LOST 17 EVENTS]\n{EVENT}");
        let mut log = Log::open(text.as_bytes(), "x.txt").unwrap();
        assert_eq!(log.header().scheduler(), Ok(super::super::header::Scheduler::Bfq));
        assert_eq!((log.next_event().unwrap().is_some(), log.number()), (true, 3));
        assert_eq!((log.next_event().unwrap().is_some(), log.number(), log.lost()), (true, 5, 17));
        assert_eq!(log.next_event(), Ok(None));
        assert_eq!(log.bytes(), text.len() as u64);
    }

    #[test]
    fn time_does_not_go_back() {
        let earlier = EVENT.replace("5.000002", "5.000001");
        let all = events(&format!("{EVENT}{earlier}")).unwrap();
        assert_eq!(all[0].at, all[1].at);
        assert!(all[0].at > Instant::EPOCH);
    }

    #[test]
    fn errors_are_one_line_with_the_place() {
        let error = |text: &str| events(text).unwrap_err().to_string();
        assert!(error("").starts_with("x.txt: there is no event in it"));
        assert!(error("# only a header\n").starts_with("x.txt: there is no event"));
        assert!(error(&format!("{EVENT}hello\n")).starts_with("x.txt:2: not a line of the blk tracer"));
        assert!(error("# task x\n").starts_with("x.txt:1: a task without a number"));
        assert!(error(&"x".repeat(10_000)).starts_with("x.txt:1: the line is too long"));
        let bytes: &[u8] = b"\xff\xfe\n";
        assert_eq!(Log::open(bytes, "x.txt").err().unwrap().to_string(), "x.txt:1: not a text in UTF-8");
    }
}
