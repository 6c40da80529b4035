//! A tree with one file, `disk`: what a loop device, or a program, takes for a slow disk.
//!
//! What is aligned is read and written past the page cache, of the mount and of the file behind it: to fill
//! that would take the time of the engine's thread. The disk is used by as many callers at a time as there
//! are. Like a disk it has the size that it has: it is not cut by `O_TRUNC`, and behind its end there is no
//! space.

use super::front::{Place, Tree};
use super::protocol::{
    self, Attr, DATA_MAX, Entries, Header, Operation, ROOT, Reply, Terms, flag, opened, put32, put64,
};
use super::range::Range;
use crate::bio::{Errno, FileId, Op};
use crate::opening::open_blocks;
use crate::store::FileTable;
use fairhead_core::units::Sector;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// By number in the engine: past the page cache, and through it.
const DIRECT: FileId = FileId(0);
const BUFFERED: FileId = FileId(1);
/// What direct I/O needs.
const ALIGN: u64 = 4096;
const DISK: u64 = 2;
pub(super) const NAME: &str = "disk";
/// What does not change may be remembered for as long as this.
const VALID_S: u64 = 3600;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct OneFile {
    size: u64,
    times: [(i64, i64); 3],
    uid: u32,
    gid: u32,
}

impl OneFile {
    /// As large and old as the file behind it, and the property of the same user.
    pub(crate) fn new(size: u64, meta: &std::fs::Metadata) -> Self {
        let Attr { times, uid, gid, .. } = Attr::of(meta);
        Self { size, times, uid, gid }
    }

    /// The file twice, in the order of [`DIRECT`] and [`BUFFERED`].
    pub(crate) fn table(file: &Path) -> io::Result<FileTable> {
        let open = |flags| open_blocks(file, true, flags);
        let table = FileTable::default();
        table.add(open(libc::O_DIRECT).or_else(|_| open(0))?);
        table.add(open(0)?);
        Ok(table)
    }

    fn attr(&self, node: u64) -> Result<Attr, Errno> {
        let (size, mode, links) = match node {
            ROOT => (0, libc::S_IFDIR | 0o755, 2),
            DISK => (self.size, libc::S_IFREG | 0o600, 1),
            _ => return Err(Errno(libc::ENOENT)),
        };
        let (times, uid, gid) = (self.times, self.uid, self.gid);
        Ok(Attr { inode: node, size, blocks: size.div_ceil(512), times, mode, links, uid, gid, rdev: 0 })
    }

    fn entries(&self, offset: u64, size: u32) -> Vec<u8> {
        let mut entries = Entries::new(size);
        let all = [(".", ROOT, libc::DT_DIR), ("..", ROOT, libc::DT_DIR), (NAME, DISK, libc::DT_REG)];
        for (i, (name, inode, kind)) in all.into_iter().enumerate().skip(offset as usize) {
            if entries.has_room(name.as_bytes(), false) {
                entries.push(name.as_bytes(), inode, i as u64 + 1, kind.into(), None);
            }
        }
        entries.finish()
    }

    //= linux-6.12 include/uapi/linux/fuse.h struct fuse_kstatfs
    fn statfs(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(80);
        [self.size.div_ceil(4096), 0, 0, 1, 0].into_iter().for_each(|n| put64(&mut out, n));
        [4096, 255, 4096, 0].into_iter().for_each(|n| put32(&mut out, n));
        out.resize(80, 0);
        out
    }
}

impl Tree for OneFile {
    fn terms(&self) -> Terms {
        Terms {
            background_max: 256,
            data_max: DATA_MAX,
            flags: flag::ASYNC_READ
                | flag::ASYNC_DIO
                | flag::BIG_WRITES
                | flag::MAX_PAGES
                | flag::PARALLEL_DIROPS,
        }
    }

    fn place(&self, _: &Header, range: &Range) -> Result<Option<Place>, Errno> {
        let whole = self.file(range.node, range.handle)?;
        let left = self.size.saturating_sub(range.offset);
        let len = u64::from(range.len).min(left) as u32;
        match range.op {
            Op::Write if len == 0 && range.len > 0 => Err(Errno(libc::ENOSPC)),
            _ if len == 0 => Ok(None),
            _ => {
                let is_aligned = (range.offset | u64::from(len)).is_multiple_of(ALIGN);
                let file = if is_aligned { whole } else { BUFFERED };
                Ok(Some(Place {
                    file,
                    sector: Sector(range.offset / 512),
                    len,
                    answered: len,
                    fua: range.fua,
                    has_shed: false,
                }))
            }
        }
    }

    fn file(&self, node: u64, _: u64) -> Result<FileId, Errno> {
        if node == DISK { Ok(DIRECT) } else { Err(Errno(libc::EBADF)) }
    }

    fn answer(&self, header: &Header, _: &str, operation: &Operation<'_>) -> Option<Reply> {
        let node = header.node;
        Some(match *operation {
            Operation::Forget { .. } | Operation::BatchForget { .. } => return None,
            Operation::Lookup { name } if node == ROOT && name == OsStr::new(NAME) => {
                self.attr(DISK).map(|attr| {
                    let mut out = Vec::with_capacity(128);
                    attr.entry(&mut out, DISK, VALID_S);
                    out
                })
            }
            Operation::Lookup { .. } => Err(Errno(libc::ENOENT)),
            Operation::GetAttr => self.attr(node).map(|a| a.reply(VALID_S)),
            // Opening with O_TRUNC, and touching, change nothing, as with a disk.
            Operation::SetAttr(set) if set.mode.or(set.uid).or(set.gid).is_none() => {
                self.attr(node).map(|a| a.reply(VALID_S))
            }
            Operation::Open { .. } => {
                Ok(protocol::opened_reply(0, opened::DIRECT_IO | opened::PARALLEL_DIRECT_WRITES))
            }
            Operation::OpenDir => Ok(protocol::opened_reply(0, 0)),
            Operation::ReadDir { offset, size, plus: false, .. } => Ok(self.entries(offset, size)),
            Operation::StatFs => Ok(self.statfs()),
            Operation::Flush { .. }
            | Operation::Release { .. }
            | Operation::ReleaseDir { .. }
            | Operation::FsyncDir { .. }
            | Operation::Destroy => Ok(Vec::new()),
            Operation::SetAttr(_)
            | Operation::Create { .. }
            | Operation::MkNod { .. }
            | Operation::MkDir { .. }
            | Operation::SymLink { .. }
            | Operation::Unlink { .. }
            | Operation::RmDir { .. }
            | Operation::Rename { .. }
            | Operation::Link { .. } => Err(Errno(libc::EPERM)),
            _ => Err(Errno(libc::ENOSYS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_behind_the_end_of_a_disk() {
        let meta = std::fs::metadata(".").unwrap();
        let tree = OneFile::new(10_000, &meta);
        let place = |op, offset, len| {
            let range = Range { op, node: DISK, handle: 0, offset, len, fua: false, sheds: false };
            tree.place(&Header::default(), &range)
        };
        assert_eq!(
            place(Op::Read, 9_000, 4_096).unwrap().map(|p| (p.sector, p.len)),
            Some((Sector(17), 1_000))
        );
        assert!(place(Op::Read, 10_000, 1).unwrap().is_none());
        assert!(place(Op::Read, u64::MAX, u32::MAX).unwrap().is_none());
        assert_eq!(place(Op::Write, 9_999, 2).unwrap().map(|p| p.answered), Some(1));
        assert_eq!(place(Op::Write, 10_000, 1).unwrap_err(), Errno(libc::ENOSPC));
        let folder =
            Range { op: Op::Read, node: ROOT, handle: 0, offset: 0, len: 1, fua: false, sheds: false };
        assert!(tree.place(&Header::default(), &folder).is_err());
    }
}
