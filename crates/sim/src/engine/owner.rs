//! The owner of a piece of I/O, which waits for it.

/// The owner of a piece: what its completion wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No lane waits for it.
    None,
    /// A lane's call.
    Lane(u32),
    /// Pages on their way into memory.
    Read {
        /// Their file.
        file: u32,
        /// The first page.
        first: u32,
        /// How many.
        count: u32,
    },
    /// The entry of a request that all members of a set have.
    Shared(u32),
    /// Pages on their way to the disk.
    Write {
        /// Their file.
        file: u32,
        /// The first page.
        first: u32,
        /// How many.
        count: u32,
        /// The request is as long as it may be, and is not merged.
        alone: bool,
    },
}
