//! Reads a text line by line, in bounded memory.

use crate::error::{Place, TraceError};
use std::io::{BufRead, BufReader, Read};

/// The longest line, in bytes: far longer than in any of the formats.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The byte-order mark, which some programs write at the start of a text.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

/// A text that is read line by line.
pub(crate) struct Lines {
    file: String,
    input: BufReader<Box<dyn Read>>,
    bytes: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(crate) fn new(file: &str, input: Box<dyn Read>) -> Self {
        Self { file: file.to_owned(), input: BufReader::new(input), bytes: Vec::new(), number: 0 }
    }

    /// Returns the next line without its end, or `None` after the last. Bytes that are not UTF-8 become
    /// `\u{fffd}`; a byte-order mark at the start is left out.
    pub(crate) fn next(&mut self) -> Result<Option<std::borrow::Cow<'_, str>>, TraceError> {
        self.bytes.clear();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.bytes);
        if let Err(e) = read {
            return Err(self.error(format!("cannot be read any further: {e}")));
        }
        if self.bytes.is_empty() {
            return Ok(None);
        }
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
            if self.bytes.last() == Some(&b'\r') {
                self.bytes.pop();
            }
        } else if self.bytes.len() as u64 > LINE_BYTES_MAX {
            return Err(self.error(format!("a line of more than {LINE_BYTES_MAX} bytes; this is no trace")));
        }
        let text = self.bytes.strip_prefix(MARK).filter(|_| self.number == 1).unwrap_or(&self.bytes);
        Ok(Some(String::from_utf8_lossy(text)))
    }

    /// Makes an error about the last line.
    pub(crate) fn error(&self, message: String) -> TraceError {
        TraceError { file: self.file.clone(), place: Place::Line(self.number), message }
    }
}
