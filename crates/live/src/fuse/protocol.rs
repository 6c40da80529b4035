//! The words that are spoken on `/dev/fuse`: requests taken apart, replies put together. No I/O.
//!
//! A request is a header, then what its operation needs, in the machine's byte order; names end with a zero.
//! A reply is a header of 16 bytes with the request's number and an errno, then the answer. The kernel is
//! trusted; all the same nothing that it could send makes this panic.
//!
//! ```text
//!   len opcode unique node uid gid pid …  │ offset size …    ─►  Header, Operation::Read { offset, size, … }
//!   len -errno unique                     │ bytes            ◄─  reply_header(unique, Err(EINTR), 0)
//! ```
//!
//! It speaks version 7.31 and what came later as far as a flag of [`flag`] was agreed upon.
//!
//! Source: the kernel's header `linux/fuse.h`, which is the interface's definition.

use crate::bio::Errno;
use crate::numbers::table;
use crate::rights::Caller;
use rustix::fs::Statx;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

pub(crate) const HEADER: usize = 40;
/// Header and operands of a write: its data come behind that.
pub(crate) const WRITE_HEADER: usize = HEADER + 40;
pub(crate) const REPLY_HEADER: usize = 16;
/// The kernel's node for the root of the mount.
pub(crate) const ROOT: u64 = 1;
pub(crate) const MAJOR: u32 = 7;
const MINOR: u32 = 38;
/// What we need: the flags of [`flag`] below 32, and pages of a request.
const MINOR_MIN: u32 = 31;

/// The largest read or write: what a kernel's request holds.
//= linux-6.12 fs/fuse/fuse_i.h FUSE_MAX_MAX_PAGES
pub(crate) const DATA_MAX: u32 = 1 << 20;

//= linux-6.12 include/uapi/linux/fuse.h enum fuse_opcode
table! {
    /// Operations that are understood.
    pub(crate) mod opcode: u32 {
        LOOKUP = 1,
        FORGET = 2,
        GETATTR = 3,
        SETATTR = 4,
        READLINK = 5,
        SYMLINK = 6,
        MKNOD = 8,
        MKDIR = 9,
        UNLINK = 10,
        RMDIR = 11,
        RENAME = 12,
        LINK = 13,
        OPEN = 14,
        READ = 15,
        WRITE = 16,
        STATFS = 17,
        RELEASE = 18,
        FSYNC = 20,
        SETXATTR = 21,
        GETXATTR = 22,
        LISTXATTR = 23,
        REMOVEXATTR = 24,
        FLUSH = 25,
        INIT = 26,
        OPENDIR = 27,
        READDIR = 28,
        RELEASEDIR = 29,
        FSYNCDIR = 30,
        ACCESS = 34,
        CREATE = 35,
        INTERRUPT = 36,
        DESTROY = 38,
        IOCTL = 39,
        BATCH_FORGET = 42,
        FALLOCATE = 43,
        READDIRPLUS = 44,
        RENAME2 = 45,
        LSEEK = 46,
        COPY_FILE_RANGE = 47,
        SYNCFS = 50,
        TMPFILE = 51,
        STATX = 52,
    }
}

/// What is agreed upon when the conversation begins.
//= linux-6.12 include/uapi/linux/fuse.h FUSE_ASYNC_READ and the following
pub(crate) mod flag {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    /// Modes come as the caller gives them, with the caller's mask beside them.
    pub(crate) const DONT_MASK: u64 = 1 << 6;
    pub(crate) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    /// Access control lists count.
    pub(crate) const POSIX_ACL: u64 = 1 << 20;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    /// A write says whether it clears the bits that lend rights; without this flag the kernel asks for an
    /// attribute before each write.
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    /// An access control list that is set says whether set-group-ID goes with it.
    pub(crate) const SETXATTR_EXT: u64 = 1 << 29;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    /// Requests come through the kernel's queues, once these have entries.
    //= linux-6.18 include/uapi/linux/fuse.h FUSE_OVER_IO_URING
    pub(crate) const OVER_IO_URING: u64 = 1 << 41;
}

/// Flags about an open file, for the kernel.
pub(crate) mod opened {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// A write that clears the bits which lend rights.
//= linux-6.12 include/uapi/linux/fuse.h FUSE_WRITE_KILL_SUIDGID
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;

/// Setting an access control list clears set-group-ID.
//= linux-6.12 include/uapi/linux/fuse.h FUSE_SETXATTR_ACL_KILL_SGID
const SETXATTR_ACL_KILL_SGID: u32 = 1 << 0;

/// Commands of [`Operation::Ioctl`] that are understood.
//= linux-6.12 include/uapi/linux/fs.h FS_IOC_GETFLAGS and the following
pub(crate) mod command {
    pub(crate) const GET_FLAGS: u32 = 0x8008_6601;
    pub(crate) const SET_FLAGS: u32 = 0x4008_6602;
    pub(crate) const GET_XATTR: u32 = 0x801c_581f;
    pub(crate) const SET_XATTR: u32 = 0x401c_5820;
}

/// The header of a request: its number, its operation, and the thread, user and node that it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    pub(crate) opcode: u32,
    /// The request's number, for the reply and to interrupt it.
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The thread, or 0 if the kernel asks for itself.
    pub(crate) pid: u32,
    /// The entry of the kernel's queues that the request came in; `None` if it was read from the device.
    pub(crate) entry: Option<u32>,
}

impl Header {
    /// The caller on whose rights space is taken; `None` if the kernel asks for itself, as it does for pages
    /// that it writes back.
    pub(crate) fn caller(&self) -> Option<Caller> {
        let Self { uid, gid, pid, .. } = *self;
        (uid != u32::MAX && (pid != 0 || uid != 0)).then_some(Caller { uid, gid })
    }
}

/// Bytes that are taken off the front.
#[derive(Clone, Copy, Debug)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// The name of a file in a folder, which leads nowhere else.
    fn file(&mut self) -> Option<&'a OsStr> {
        let name = self.name()?;
        let bytes = name.as_bytes();
        (!matches!(bytes, b"" | b"." | b"..") && !bytes.contains(&b'/')).then_some(name)
    }

    /// Up to the next zero.
    fn name(&mut self) -> Option<&'a OsStr> {
        let len = self.0.iter().position(|b| *b == 0)?;
        let name = self.take(len)?;
        self.take(1)?;
        Some(OsStr::from_bytes(name))
    }
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut w = Words(bytes);
        let len = w.u32()?;
        let header = Self {
            opcode: w.u32()?,
            unique: w.u64()?,
            node: w.u64()?,
            uid: w.u32()?,
            gid: w.u32()?,
            pid: w.u32()?,
            entry: None,
        };
        (len as usize >= HEADER).then_some(header)
    }
}

/// What of a file's attributes is to change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SetAttr {
    pub(crate) handle: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// Seconds and nanoseconds; or that of now.
    pub(crate) atime: Option<Time>,
    pub(crate) mtime: Option<Time>,
    /// The bits that lend rights are cleared, too.
    pub(crate) sheds: bool,
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    Now,
    At(i64, u32),
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation<'a> {
    Init {
        minor: u32,
        readahead: u32,
        flags: u64,
    },
    Destroy,
    Interrupt {
        unique: u64,
    },
    Lookup {
        name: &'a OsStr,
    },
    Forget {
        lookups: u64,
    },
    /// Pairs of node and lookups; see [`forgotten`].
    BatchForget {
        pairs: &'a [u8],
    },
    GetAttr,
    SetAttr(SetAttr),
    ReadLink,
    SymLink {
        name: &'a OsStr,
        target: &'a OsStr,
    },
    MkNod {
        name: &'a OsStr,
        mode: u32,
        rdev: u32,
        umask: u32,
    },
    MkDir {
        name: &'a OsStr,
        mode: u32,
        umask: u32,
    },
    Unlink {
        name: &'a OsStr,
    },
    RmDir {
        name: &'a OsStr,
    },
    Rename {
        name: &'a OsStr,
        to: u64,
        new_name: &'a OsStr,
        flags: u32,
    },
    Link {
        node: u64,
        name: &'a OsStr,
    },
    Open {
        flags: u32,
    },
    Create {
        name: &'a OsStr,
        flags: u32,
        mode: u32,
        umask: u32,
    },
    Read {
        handle: u64,
        offset: u64,
        size: u32,
    },
    /// The data are `size` bytes behind [`WRITE_HEADER`].
    Write {
        handle: u64,
        offset: u64,
        size: u32,
        flags: u32,
        open_flags: u32,
    },
    Flush {
        handle: u64,
    },
    Release {
        handle: u64,
    },
    Fsync {
        handle: u64,
        /// Times and the like may be lost.
        data_only: bool,
    },
    StatFs,
    SetXattr {
        name: &'a OsStr,
        value: &'a [u8],
        flags: u32,
        /// Set-group-ID is cleared, too.
        clears_sgid: bool,
    },
    GetXattr {
        name: &'a OsStr,
        size: u32,
    },
    ListXattr {
        size: u32,
    },
    RemoveXattr {
        name: &'a OsStr,
    },
    OpenDir,
    ReadDir {
        handle: u64,
        offset: u64,
        size: u32,
        plus: bool,
    },
    ReleaseDir {
        handle: u64,
    },
    FsyncDir {
        handle: u64,
    },
    Access {
        mask: u32,
    },
    Fallocate {
        handle: u64,
        offset: u64,
        len: u64,
        mode: u32,
    },
    LSeek {
        handle: u64,
        offset: u64,
        whence: u32,
    },
    /// From a handle and an offset, to a node, a handle and an offset.
    CopyFileRange {
        from: (u64, u64),
        to: (u64, u64, u64),
        len: u64,
        flags: u64,
    },
    SyncFs,
    /// A file without a name.
    TmpFile {
        flags: u32,
        mode: u32,
        umask: u32,
    },
    StatX {
        mask: u32,
    },
    Ioctl {
        command: u32,
        data: &'a [u8],
    },
    Unknown,
}

impl<'a> Operation<'a> {
    /// What is asked with these bytes behind the header; `None` if they are not what the operation needs.
    pub(crate) fn parse(opcode: u32, bytes: &'a [u8]) -> Option<Self> {
        let mut w = Words(bytes);
        Self::parse_data(opcode, &mut w).or_else(|| Self::parse_names(opcode, Words(bytes)))
    }

    /// Whether this changes attributes of which the kernel does not know that it does.
    pub(crate) const fn changes_unseen(&self) -> bool {
        matches!(self, Self::Ioctl { command: command::SET_FLAGS | command::SET_XATTR, .. })
    }

    /// Whether this may take space of the file system, beside reads and writes: for names, attributes or
    /// inodes, or on the account of another user.
    pub(crate) const fn takes_space(&self) -> bool {
        match self {
            Self::SetAttr(set) => set.size.is_some() || set.uid.is_some() || set.gid.is_some(),
            Self::Create { .. }
            | Self::TmpFile { .. }
            | Self::MkNod { .. }
            | Self::MkDir { .. }
            | Self::SymLink { .. }
            | Self::Link { .. }
            | Self::Rename { .. }
            | Self::SetXattr { .. } => true,
            _ => self.changes_unseen(),
        }
    }

    /// Operations on open files, and those of the conversation.
    fn parse_data(opcode: u32, w: &mut Words<'a>) -> Option<Self> {
        Some(match opcode {
            opcode::INIT => {
                let (_, minor, readahead, low) = (w.u32()?, w.u32()?, w.u32()?, w.u32()?);
                let high = if u64::from(low) & flag::INIT_EXT != 0 { w.u32()? } else { 0 };
                Self::Init { minor, readahead, flags: u64::from(high) << 32 | u64::from(low) }
            }
            opcode::DESTROY => Self::Destroy,
            opcode::INTERRUPT => Self::Interrupt { unique: w.u64()? },
            opcode::FORGET => Self::Forget { lookups: w.u64()? },
            opcode::BATCH_FORGET => {
                let count = w.u64()? as u32 as usize;
                Self::BatchForget { pairs: w.take(count.checked_mul(16)?)? }
            }
            opcode::GETATTR => Self::GetAttr,
            opcode::OPEN => Self::Open { flags: w.u32()? },
            opcode::READ | opcode::READDIR | opcode::READDIRPLUS => {
                let (handle, offset, size) = (w.u64()?, w.u64()?, w.u32()?);
                match opcode {
                    opcode::READ => Self::Read { handle, offset, size },
                    _ => Self::ReadDir { handle, offset, size, plus: opcode == opcode::READDIRPLUS },
                }
            }
            opcode::WRITE => {
                let (handle, offset, size, flags) = (w.u64()?, w.u64()?, w.u32()?, w.u32()?);
                w.u64()?;
                Self::Write { handle, offset, size, flags, open_flags: w.u32()? }
            }
            opcode::FLUSH => Self::Flush { handle: w.u64()? },
            opcode::RELEASE => Self::Release { handle: w.u64()? },
            opcode::FSYNC => Self::Fsync { handle: w.u64()?, data_only: w.u32()? & 1 != 0 },
            opcode::STATFS => Self::StatFs,
            opcode::OPENDIR => Self::OpenDir,
            opcode::RELEASEDIR => Self::ReleaseDir { handle: w.u64()? },
            opcode::FSYNCDIR => Self::FsyncDir { handle: w.u64()? },
            opcode::ACCESS => Self::Access { mask: w.u32()? },
            opcode::FALLOCATE => {
                Self::Fallocate { handle: w.u64()?, offset: w.u64()?, len: w.u64()?, mode: w.u32()? }
            }
            opcode::LSEEK => Self::LSeek { handle: w.u64()?, offset: w.u64()?, whence: w.u32()? },
            opcode::COPY_FILE_RANGE => {
                let (handle, offset) = (w.u64()?, w.u64()?);
                let to = (w.u64()?, w.u64()?, w.u64()?);
                Self::CopyFileRange { from: (handle, offset), to, len: w.u64()?, flags: w.u64()? }
            }
            opcode::SYNCFS => Self::SyncFs,
            opcode::TMPFILE => {
                let (flags, mode, umask) = (w.u32()?, w.u32()?, w.u32()?);
                Self::TmpFile { flags, mode, umask }
            }
            opcode::STATX => {
                let _ = (w.u64()?, w.u64()?, w.u32()?);
                Self::StatX { mask: w.u32()? }
            }
            opcode::IOCTL => {
                let _ = (w.u64()?, w.u32()?);
                let (command, _, size) = (w.u32()?, w.u64()?, w.u32()?);
                w.u32()?;
                Self::Ioctl { command, data: w.take(size as usize)? }
            }
            _ => return None,
        })
    }

    /// Operations on names and attributes.
    fn parse_names(opcode: u32, mut w: Words<'a>) -> Option<Self> {
        let w = &mut w;
        Some(match opcode {
            opcode::LOOKUP => Self::Lookup { name: w.file()? },
            opcode::SETATTR => Self::SetAttr(Self::parse_setattr(w)?),
            opcode::READLINK => Self::ReadLink,
            opcode::SYMLINK => Self::SymLink { name: w.file()?, target: w.name()? },
            opcode::MKNOD => {
                let (mode, rdev, umask) = (w.u32()?, w.u32()?, w.u32()?);
                w.u32()?;
                Self::MkNod { name: w.file()?, mode, rdev, umask }
            }
            opcode::MKDIR => {
                let (mode, umask) = (w.u32()?, w.u32()?);
                Self::MkDir { name: w.file()?, mode, umask }
            }
            opcode::UNLINK => Self::Unlink { name: w.file()? },
            opcode::RMDIR => Self::RmDir { name: w.file()? },
            opcode::RENAME | opcode::RENAME2 => {
                let to = w.u64()?;
                let flags = if opcode == opcode::RENAME2 { w.u64()? as u32 } else { 0 };
                Self::Rename { name: w.file()?, to, new_name: w.file()?, flags }
            }
            opcode::LINK => Self::Link { node: w.u64()?, name: w.file()? },
            opcode::CREATE => {
                let (flags, mode, umask) = (w.u32()?, w.u32()?, w.u32()?);
                w.u32()?;
                Self::Create { name: w.file()?, flags, mode, umask }
            }
            opcode::SETXATTR => {
                let (size, flags) = (w.u32()?, w.u32()?);
                // Without SETXATTR_EXT, name and value follow at once, and nothing else does.
                let end = w.0.iter().position(|b| *b == 0).and_then(|n| (n + 1).checked_add(size as usize));
                let more = if end == Some(w.0.len()) { 0 } else { w.u64()? as u32 };
                let clears_sgid = more & SETXATTR_ACL_KILL_SGID != 0;
                Self::SetXattr { name: w.name()?, value: w.take(size as usize)?, flags, clears_sgid }
            }
            opcode::GETXATTR => {
                let size = w.u64()? as u32;
                Self::GetXattr { name: w.name()?, size }
            }
            opcode::LISTXATTR => Self::ListXattr { size: w.u32()? },
            opcode::REMOVEXATTR => Self::RemoveXattr { name: w.name()? },
            // Bytes that do not fit are a mistake.
            _ if opcode::ALL.iter().any(|(_, known)| *known == opcode) => return None,
            _ => Self::Unknown,
        })
    }

    //= linux-6.12 include/uapi/linux/fuse.h struct fuse_setattr_in, FATTR_MODE and the following
    fn parse_setattr(w: &mut Words<'_>) -> Option<SetAttr> {
        let valid = w.u64()? as u32;
        let (handle, size, _owner) = (w.u64()?, w.u64()?, w.u64()?);
        let (atime, mtime, _ctime) = (w.u64()? as i64, w.u64()? as i64, w.u64()?);
        let (atime_ns, mtime_ns, _ctime_ns) = (w.u32()?, w.u32()?, w.u32()?);
        let (mode, _, uid, gid) = (w.u32()?, w.u32()?, w.u32()?, w.u32()?);
        let has = |bit: u32| valid & 1 << bit != 0;
        let time =
            |set, now, at: i64, ns| has(set).then_some(if has(now) { Time::Now } else { Time::At(at, ns) });
        Some(SetAttr {
            mode: has(0).then_some(mode),
            uid: has(1).then_some(uid),
            gid: has(2).then_some(gid),
            size: has(3).then_some(size),
            atime: time(4, 7, atime, atime_ns),
            mtime: time(5, 8, mtime, mtime_ns),
            handle: has(6).then_some(handle),
            sheds: has(11),
        })
    }
}

/// What [`Operation::BatchForget`] names: nodes, and how often each was looked up.
pub(crate) fn forgotten(pairs: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    pairs.chunks_exact(16).filter_map(|pair| {
        let mut w = Words(pair);
        Some((w.u64()?, w.u64()?))
    })
}

/// The answer to a request: an errno, or what comes behind the header.
pub(crate) type Reply = Result<Vec<u8>, Errno>;

pub(crate) fn reply_header(unique: u64, result: Result<(), Errno>, len: usize) -> [u8; REPLY_HEADER] {
    let mut header = [0; REPLY_HEADER];
    let error = result.map_or_else(|e| -e.0, |()| 0);
    header[..4].copy_from_slice(&((REPLY_HEADER + len) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// A notice to the kernel, which is no reply: it forgets the attributes of a node, and keeps its data.
//= linux-6.12 include/uapi/linux/fuse.h FUSE_NOTIFY_INVAL_INODE, struct fuse_notify_inval_inode_out
pub(crate) fn stale_notice(node: u64) -> [u8; REPLY_HEADER + 24] {
    const INVAL_INODE: i32 = 2;
    let mut notice = [0; REPLY_HEADER + 24];
    notice[..REPLY_HEADER].copy_from_slice(&reply_header(0, Err(Errno(-INVAL_INODE)), 24));
    notice[16..24].copy_from_slice(&node.to_ne_bytes());
    // Behind no offset there are no data.
    notice[24..32].copy_from_slice(&(-1_i64).to_ne_bytes());
    notice
}

/// What the two sides agree upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    /// Requests for which no caller waits: direct I/O that is not synchronous, reading ahead, write-back.
    pub(crate) background_max: u16,
    /// The largest read or write, in bytes.
    pub(crate) data_max: u32,
    pub(crate) flags: u64,
}

/// The answer to [`Operation::Init`], and the flags that both want.
pub(crate) fn agree(
    terms: &Terms,
    minor: u32,
    readahead: u32,
    offered: u64,
) -> Result<(Vec<u8>, u64), Errno> {
    if minor < MINOR_MIN {
        return Err(Errno(libc::EPROTO));
    }
    let flags = terms.flags & offered;
    let mut out = Vec::with_capacity(64);
    for word in [MAJOR, MINOR, readahead, flags as u32] {
        put32(&mut out, word);
    }
    out.extend_from_slice(&terms.background_max.to_ne_bytes());
    out.extend_from_slice(&(terms.background_max / 4 * 3).to_ne_bytes());
    put32(&mut out, terms.data_max);
    put32(&mut out, 1); // times are kept to the nanosecond
    out.extend_from_slice(&((terms.data_max / 4096) as u16).to_ne_bytes());
    out.extend_from_slice(&[0; 2]);
    put32(&mut out, (flags >> 32) as u32);
    out.resize(64, 0);
    Ok((out, flags))
}

/// The flags in an answer to [`Operation::Init`].
pub(crate) fn agreed_flags(answer: &[u8]) -> u64 {
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u64::from(u32::from_ne_bytes(bytes.unwrap_or_default()))
    };
    word(32) << 32 | word(12)
}

pub(crate) fn put32(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_ne_bytes());
}

pub(crate) fn put64(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_ne_bytes());
}

/// What the kernel shows of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attr {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) times: [(i64, i64); 3],
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
}

impl Attr {
    pub(crate) fn of(meta: &std::fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.size(),
            blocks: meta.blocks(),
            times: [
                (meta.atime(), meta.atime_nsec()),
                (meta.mtime(), meta.mtime_nsec()),
                (meta.ctime(), meta.ctime_nsec()),
            ],
            mode: meta.mode(),
            links: meta.nlink() as u32,
            uid: meta.uid(),
            gid: meta.gid(),
            rdev: meta.rdev() as u32,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        [self.inode, self.size, self.blocks].into_iter().for_each(|n| put64(out, n));
        self.times.iter().for_each(|t| put64(out, t.0 as u64));
        self.times.iter().for_each(|t| put32(out, t.1 as u32));
        for word in [self.mode, self.links, self.uid, self.gid, self.rdev, 4096, 0] {
            put32(out, word);
        }
    }

    /// The answer to a question for attributes, true for `valid_s` seconds.
    pub(crate) fn reply(&self, valid_s: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(104);
        put64(&mut out, valid_s);
        put64(&mut out, 0);
        self.put(&mut out);
        out
    }

    /// The answer to a lookup, under this node, true for `valid_s` seconds.
    pub(crate) fn entry(&self, out: &mut Vec<u8>, node: u64, valid_s: u64) {
        put64(out, node);
        put64(out, 0);
        put64(out, valid_s);
        put64(out, valid_s);
        put64(out, 0);
        self.put(out);
    }
}

/// The answer to a question for attributes and the time of birth, true for `valid_s` seconds.
//= linux-6.12 include/uapi/linux/fuse.h struct fuse_statx_out
pub(crate) fn statx_reply(stat: &Statx, valid_s: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(288);
    [valid_s, 0, 0, 0].into_iter().for_each(|n| put64(&mut out, n));
    put32(&mut out, stat.stx_mask);
    put32(&mut out, stat.stx_blksize);
    put64(&mut out, stat.stx_attributes.bits());
    [stat.stx_nlink, stat.stx_uid, stat.stx_gid, stat.stx_mode.into()]
        .into_iter()
        .for_each(|n| put32(&mut out, n));
    for n in [stat.stx_ino, stat.stx_size, stat.stx_blocks, stat.stx_attributes_mask.bits()] {
        put64(&mut out, n);
    }
    for time in [stat.stx_atime, stat.stx_btime, stat.stx_ctime, stat.stx_mtime] {
        put64(&mut out, time.tv_sec as u64);
        put32(&mut out, time.tv_nsec);
        put32(&mut out, 0);
    }
    for n in [stat.stx_rdev_major, stat.stx_rdev_minor, stat.stx_dev_major, stat.stx_dev_minor] {
        put32(&mut out, n);
    }
    out.resize(288, 0);
    out
}

/// The answer to opening a file or directory.
pub(crate) fn opened_reply(handle: u64, flags: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    put64(&mut out, handle);
    put32(&mut out, flags);
    put32(&mut out, 0);
    out
}

/// A directory's entries, as many as the kernel has room for.
#[derive(Debug)]
pub(crate) struct Entries {
    out: Vec<u8>,
    most: usize,
}

impl Entries {
    pub(crate) fn new(most: u32) -> Self {
        let most = most as usize;
        Self { out: Vec::with_capacity(most.min(1 << 16)), most }
    }

    /// Whether an entry with this name still fits; `plus`: with attributes.
    pub(crate) fn has_room(&self, name: &[u8], plus: bool) -> bool {
        let len = (24 + name.len()).next_multiple_of(8) + if plus { 128 } else { 0 };
        self.out.len() + len <= self.most
    }

    /// An entry; the one behind it is at `next`. With `plus`, its node and attributes.
    pub(crate) fn push(
        &mut self,
        name: &[u8],
        inode: u64,
        next: u64,
        kind: u32,
        plus: Option<(u64, Attr, u64)>,
    ) {
        if let Some((node, attr, valid_s)) = plus {
            attr.entry(&mut self.out, node, valid_s);
        }
        put64(&mut self.out, inode);
        put64(&mut self.out, next);
        put32(&mut self.out, name.len() as u32);
        put32(&mut self.out, kind);
        self.out.extend_from_slice(name);
        self.out.resize(self.out.len().next_multiple_of(8), 0);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, CWD, StatxFlags};

    #[test]
    fn requests_that_are_cut_short_are_refused_and_none_panics() {
        let whole = [1_u8; 200];
        for opcode in opcode::ALL.iter().map(|(_, number)| *number) {
            let mut seen = false;
            for len in 0..whole.len() {
                let parsed = Operation::parse(opcode, &whole[..len]);
                assert_ne!(parsed, Some(Operation::Unknown), "opcode {opcode}");
                assert!(
                    parsed.is_some() || !seen,
                    "opcode {opcode}: {len} bytes are too few, one less was enough"
                );
                seen |= parsed.is_some();
            }
        }
        assert_eq!(Operation::parse(9999, &[]), Some(Operation::Unknown));
        assert_eq!(Header::parse(&[0; HEADER]), None, "shorter than a header");
        assert_eq!(Header::parse(&[1; 35]), None);
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        for (name, is_one) in
            [("a", true), ("...", true), ("", false), (".", false), ("..", false), ("a/b", false)]
        {
            let bytes = [name.as_bytes(), b"\0"].concat();
            assert_eq!(Operation::parse(opcode::UNLINK, &bytes).is_some(), is_one, "{name:?}");
            let rename = [&9_u64.to_ne_bytes()[..], b"x\0", &bytes].concat();
            assert_eq!(Operation::parse(opcode::RENAME, &rename).is_some(), is_one, "to {name:?}");
        }
    }

    #[test]
    fn operands_are_where_the_kernel_puts_them() {
        let mut w = Vec::new();
        [7, 4096, 512 << 32 | 65536].into_iter().for_each(|n: u64| put64(&mut w, n));
        assert_eq!(
            Operation::parse(opcode::READ, &w),
            Some(Operation::Read { handle: 7, offset: 4096, size: 65536 })
        );
        [0, 3].into_iter().for_each(|n| put64(&mut w, n));
        assert_eq!(
            Operation::parse(opcode::WRITE, &w),
            Some(Operation::Write { handle: 7, offset: 4096, size: 65536, flags: 512, open_flags: 3 })
        );
        let rename = [&9_u64.to_ne_bytes()[..], &1_u64.to_ne_bytes(), b"a\0bc\0"].concat();
        let (name, new_name) = (OsStr::new("a"), OsStr::new("bc"));
        assert_eq!(
            Operation::parse(opcode::RENAME2, &rename),
            Some(Operation::Rename { name, to: 9, new_name, flags: 1 })
        );
        let forget = [&2_u64.to_ne_bytes()[..], &[3; 16], &[4; 16]].concat();
        let Some(Operation::BatchForget { pairs }) = Operation::parse(opcode::BATCH_FORGET, &forget) else {
            panic!("two pairs");
        };
        assert_eq!(forgotten(pairs).map(|p| p.0 & 0xff).collect::<Vec<_>>(), [3, 4]);
        let command = 0x4008_6602;
        let mut ioctl = Vec::new();
        [7, u64::from(command) << 32, 0, 4].into_iter().for_each(|n| put64(&mut ioctl, n));
        assert_eq!(Operation::parse(opcode::IOCTL, &ioctl), None, "its data are missing");
        put32(&mut ioctl, 16);
        assert_eq!(
            Operation::parse(opcode::IOCTL, &ioctl),
            Some(Operation::Ioctl { command, data: &[16, 0, 0, 0] })
        );
        let set = |fields: &[u32]| {
            let fields: Vec<u8> = fields.iter().flat_map(|n| n.to_ne_bytes()).collect();
            [&fields[..], b"user.k\0value"].concat()
        };
        for (bytes, clears_sgid) in
            [(set(&[5, 2]), false), (set(&[5, 2, 0, 0]), false), (set(&[5, 2, 1, 0]), true)]
        {
            let (name, value) = (OsStr::new("user.k"), &b"value"[..]);
            assert_eq!(
                Operation::parse(opcode::SETXATTR, &bytes),
                Some(Operation::SetXattr { name, value, flags: 2, clears_sgid })
            );
        }
        let statx = [&[0; 20][..], &0x800_u32.to_ne_bytes()].concat();
        assert_eq!(Operation::parse(opcode::STATX, &statx), Some(Operation::StatX { mask: 0x800 }));
    }

    #[test]
    fn replies_have_the_sizes_that_the_kernel_expects() {
        assert_eq!(Attr::default().reply(1).len(), 104);
        let stat = rustix::fs::statx(CWD, ".", AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        assert_eq!(statx_reply(&stat, 1).len(), 288);
        let mut entry = Vec::new();
        Attr::default().entry(&mut entry, 1, 1);
        assert_eq!(entry.len(), 128);
        let terms =
            Terms { background_max: 64, data_max: 1 << 20, flags: flag::ASYNC_READ | flag::MAX_PAGES };
        let (init, flags) = agree(&terms, 38, 1 << 17, flag::ASYNC_READ).unwrap();
        assert_eq!((init.len(), flags), (64, flag::ASYNC_READ));
        assert!(agree(&terms, 12, 0, 0).is_err());
        let mut entries = Entries::new(64);
        assert!(entries.has_room(b"12345678", false));
        entries.push(b"12345678", 1, 1, 0, None);
        entries.push(b"x", 1, 2, 0, None);
        assert!(!entries.has_room(b"", false));
        assert_eq!(entries.finish().len(), 64);
        assert_eq!(reply_header(5, Err(Errno::INTR), 0)[4..8], (-libc::EINTR).to_ne_bytes());
        let notice = stale_notice(7);
        assert_eq!((notice[0], notice[4], notice[16]), (40, 2, 7), "a code instead of an errno");
    }
}
