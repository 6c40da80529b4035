//! A part of a file that a request is about.

use crate::bio::Op;

/// What a request for data is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) op: Op,
    pub(crate) node: u64,
    pub(crate) handle: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Whether the write is answered when it is stable. Unless the file is open for direct I/O, the kernel
    /// sends a flush instead.
    pub(crate) fua: bool,
    /// Whether the write clears set-user-ID and set-group-ID.
    pub(crate) sheds: bool,
}
