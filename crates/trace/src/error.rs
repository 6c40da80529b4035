//! What can be wrong with a trace: one line that says where, what, and what would be right.

use std::fmt;

/// Where in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere in particular.
    File,
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
}

/// Why a trace cannot be read, or not any further.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The file's name, as it was given.
    pub file: String,
    /// Where in it, after unpacking.
    pub place: Place,
    /// What is wrong, and what would be right.
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

/// The most of a damaged text that a message quotes, in characters.
const QUOTE_MAX: usize = 40;

/// A text from a trace as a message may quote it: short, and without control characters.
pub(crate) fn quote(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(QUOTE_MAX).map(clean).collect();
    if text.chars().nth(QUOTE_MAX).is_some() {
        short.push('…');
    }
    format!("'{short}'")
}
