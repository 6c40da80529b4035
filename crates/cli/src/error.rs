//! How things end badly: one line, and the exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use fairhead_live::ErrorKind;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CliError {
    /// A request that does not make sense, or a file that it names is missing or malformed: exit code 2.
    Misuse(String),
    /// It makes sense, and did not work; or a result cannot be written: exit code 1.
    Failed(String),
    /// The result says that something is wrong: exit code 1, and nothing more is printed.
    Found,
    /// The reader of the output closed it: not an error, and nothing is printed.
    Closed,
}

impl From<&fairhead_live::Error> for CliError {
    fn from(e: &fairhead_live::Error) -> Self {
        match e.kind() {
            ErrorKind::File | ErrorKind::Setting | ErrorKind::Group => Self::Misuse(e.to_string()),
            _ => Self::Failed(e.to_string()),
        }
    }
}

impl From<fairhead_lab::Error> for CliError {
    fn from(e: fairhead_lab::Error) -> Self {
        match e {
            fairhead_lab::Error::Misuse(message) => Self::Misuse(message),
            fairhead_lab::Error::Failed(message) => Self::Failed(message),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(m) | Self::Failed(m) => f.write_str(m),
            Self::Found => f.write_str("something was found"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// Prints the error, if it is one, and gives the exit code.
pub(crate) fn fail(error: &CliError) -> ExitCode {
    let code = match error {
        CliError::Closed => return ExitCode::SUCCESS,
        CliError::Found => return ExitCode::FAILURE,
        CliError::Failed(_) => 1,
        CliError::Misuse(_) => 2,
    };
    let _ = writeln!(io::stderr(), "fairhead: {}", one_line(&error.to_string()));
    ExitCode::from(code)
}

/// Returns a message without line breaks, and with other control characters as text: a name must not reach
/// the terminal as a command.
pub(crate) fn one_line(message: &str) -> String {
    let lines = message.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty());
    fairhead_machine::text::printable(&lines.collect::<Vec<_>>().join("; ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line() {
        assert_eq!(one_line("a\n  b\r\n\nc\n"), "a; b; c");
        assert_eq!(one_line("no job '\x1b[31m–x'"), "no job '\\x1b[31m–x'");
    }
}
