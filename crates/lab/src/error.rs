//! Why there is no answer, in one line.

use std::fmt;

/// Why there is no answer. The text is one line that says what is wrong, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The question does not make sense.
    Misuse(String),
    /// It makes sense, and did not work.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Misuse(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
