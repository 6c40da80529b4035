//! The error of a trace: one line that says where and what is wrong, and what would be right.

use std::fmt;

/// A place in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

/// Why a trace cannot be read, or not to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The name of the file, as it was given.
    pub file: String,
    /// The place in the file, after decompression.
    pub place: Place,
    /// The error, and what would be right.
    pub message: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File => write!(f, "{}: {}", self.file, self.message),
            Place::Line(n) => write!(f, "{}:{n}: {}", self.file, self.message),
            Place::Byte(n) => write!(f, "{}: byte {n}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for TraceError {}

/// The length, in characters, to which a message shortens a text that it quotes.
const QUOTE_MAX: usize = 40;

/// Returns a text from a trace in a form that a message may quote: short, and without control characters.
pub(crate) fn quote(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(QUOTE_MAX).map(clean).collect();
    if text.chars().nth(QUOTE_MAX).is_some() {
        short.push('…');
    }
    format!("'{short}'")
}
