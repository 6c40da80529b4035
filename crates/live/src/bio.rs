//! What clients ask for, and what they are answered.
//!
//! A [`Bio`] names a file and a byte range in it, and where on the disk that is for the scheduler's purposes.
//! Its data are whatever the driver of the queue uses for memory; a test needs none.

use core::fmt;
use fairhead_core::units::{GroupId, Instant, IoPrio, Sector, TaskId};

/// A file of the disk, as the driver numbers them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// A client, which submits bios and gets the answers: a connection, a mount or a handle of the library.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId {
    pub(crate) slot: usize,
    /// Slots are reused; the serial number tells the clients of a slot apart.
    pub(crate) serial: u64,
}

/// A bio that was handed in, to take it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BioId {
    pub(crate) slot: usize,
    pub(crate) serial: u64,
}

/// The operation on a byte range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Read from the file to memory. Bytes behind the end of the file read as zeros.
    Read,
    /// Write from memory to the file.
    Write,
    /// The contents are no longer needed; afterwards they read as zeros if the file system can do that, or as
    /// before.
    Discard,
    /// The range reads as zeros afterwards. The space may be given back only if `may_discard`.
    Zero {
        /// Whether a hole will do.
        may_discard: bool,
    },
    /// Report where the file has data and holes, from the first byte of the range on. The range is what the
    /// question costs, not what it is about.
    Extents,
    /// What `fallocate(2)` does with this mode. It fails where the file system cannot do that. Its limits are
    /// those of writes.
    Allocate {
        /// The mode of `fallocate(2)`, all of whose flags are below 256.
        mode: u8,
    },
    /// A flush while it waits for limits, for which it is a write of one sector. Ask for one with
    /// [`RequestQueue::flush`](crate::RequestQueue::flush).
    Flush,
}

impl Op {
    /// Whether it takes or gives back space, and moves no data.
    pub(crate) const fn is_about_space(self) -> bool {
        matches!(self, Self::Discard | Self::Zero { .. } | Self::Allocate { .. })
    }

    /// Whether bytes of the file may differ afterwards.
    pub(crate) const fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Extents | Self::Flush)
    }
}

/// One operation that a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// The operation.
    pub op: Op,
    /// The file.
    pub file: FileId,
    /// The first byte in the file.
    pub offset: u64,
    /// How many bytes; at least one.
    pub len: u32,
    /// The sector of the first byte on the disk: for the scheduler, which knows neither files nor bytes.
    pub sector: Sector,
    /// Whether a write, discard or zeroing is answered only when it is stable.
    pub fua: bool,
    /// Whether a program waits for it (see *sync* in the glossary). Reads are always sync.
    pub sync: bool,
    /// The task whose queue it goes to.
    pub task: TaskId,
    /// The group that is charged.
    pub group: GroupId,
    /// The I/O priority of its task.
    pub prio: IoPrio,
    /// Comes back with the answer.
    pub cookie: u64,
}

/// A flush that a client asks for: what was answered before is to be stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flush {
    /// The file.
    pub file: FileId,
    /// The task that waits for it.
    pub task: TaskId,
    /// The group that is charged.
    pub group: GroupId,
    /// The I/O priority of its task.
    pub prio: IoPrio,
    /// Comes back with the answer.
    pub cookie: u64,
}

/// The origin of a bio that is answered, for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The group that was charged.
    pub group: GroupId,
    /// The operation.
    pub op: Op,
    /// When it was submitted.
    pub came: Instant,
}

/// The result of a bio or flush.
#[derive(Debug)]
pub struct Answer<D> {
    /// The client that submitted it.
    pub client: ClientId,
    /// The cookie of the client's bio or flush.
    pub cookie: u64,
    /// Well or not.
    pub result: Result<(), Errno>,
    /// The origin of the bio; `None` for a flush.
    pub origin: Option<Origin>,
    /// The bio's data; of one that was answered before the disk was done with them there are none.
    pub data: Option<D>,
}

/// An error number of the kernel's, such as `EIO`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Errno(pub i32);

impl Errno {
    /// Something on the way to the disk failed.
    pub const IO: Self = Self(libc::EIO);
    /// Taken back by the client.
    pub const INTR: Self = Self(libc::EINTR);
    /// The disk did not answer in time.
    pub const TIMEDOUT: Self = Self(libc::ETIMEDOUT);
    /// The engine is shutting down.
    pub const SHUTDOWN: Self = Self(libc::ESHUTDOWN);

    /// Whether it says that a file system, or a quota, has no space left.
    #[must_use]
    pub const fn is_no_space(self) -> bool {
        matches!(self.0, libc::ENOSPC | libc::EDQUOT)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}

impl From<std::io::Error> for Errno {
    fn from(e: std::io::Error) -> Self {
        Self(e.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(e: rustix::io::Errno) -> Self {
        Self(e.raw_os_error())
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}
