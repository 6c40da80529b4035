//! What can go wrong outside of I/O: a kind to act on, and one line for people.

use std::fmt;

/// The kind of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be opened, or is nothing that can be scheduled.
    File,
    /// Another program uses a file, and has locked it.
    Locked,
    /// A folder cannot be mounted on.
    Mount,
    /// A recording cannot be written.
    Recording,
    /// The kernel has no io_uring for us, or not enough of it.
    Ring,
    /// A setting is out of range.
    Setting,
    /// A group cannot be had, or not so.
    Group,
    /// A socket cannot be had.
    Socket,
    /// The process cannot be confined.
    Confinement,
    /// The engine has stopped.
    Stopped,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
