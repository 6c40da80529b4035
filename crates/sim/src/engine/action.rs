//! What a call of a client does, and where.

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Trim,
    /// fsync and fdatasync: there is no metadata of a file whose writing would tell them apart.
    Sync,
}

/// Which part of each of its files a client uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) base: u64,
    pub(super) span: u64,
    /// The data set, all files together: what the job moves unless `io_size` says otherwise.
    pub(super) size: u64,
    /// The shortest of the files.
    pub(super) file: u64,
    /// From the base to the end of the file, as far as it was known when the job began.
    pub(super) room: u64,
}
