//! What is wrong with a job file, where, and what would be right: always one line.

use std::fmt;

/// Why a job file was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// The file, as it was named to the parser.
    pub file: String,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: u32,
    /// The error and what would be right: one line without a final stop.
    pub message: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", clean(&self.file), self.message),
            line => write!(f, "{}:{line}: {}", clean(&self.file), self.message),
        }
    }
}

impl std::error::Error for JobError {}

/// How much of a text from the user a message repeats.
const QUOTED_CHARS_MAX: usize = 60;

/// `text` for a message: on one line, without control characters, and not too long.
pub(super) fn clean(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_the_user_wrote() {
        let e = JobError { file: "a\nb".into(), line: 3, message: "x".into() };
        assert_eq!(e.to_string(), "a\u{fffd}b:3: x");
        assert_eq!(clean(&"y".repeat(100)).chars().count(), QUOTED_CHARS_MAX + 1);
    }
}
