//! One call of a client.

use super::action::{Action, Synced};
use super::cache::PAGE_SECTORS;
use fairhead_core::{Duration, IoPrio};

/// One call of a client. Offset and length in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) action: Action,
    /// Which of the client's files.
    pub(super) slot: u32,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
    /// CPU time that the client spends before it, besides what calls cost.
    pub(super) cpu: Duration,
    /// The number of pages behind it that are requested before it; the client does not wait for them.
    pub(super) burst: u32,
    /// Whether it is flagged as metadata.
    pub(super) meta: bool,
    /// It is done when it has been handed in.
    pub(super) ahead: bool,
    /// Whether a program waited for it, where that is recorded.
    pub(super) sync: Option<bool>,
    /// Its I/O priority, if it is not the client's.
    pub(super) prio: Option<IoPrio>,
    /// What was written before has to be stable first; and it has to be stable when it is done.
    pub(super) preflush: bool,
    pub(super) fua: bool,
    /// What it belongs to, if it is a sync.
    pub(super) synced: Synced,
    /// Bytes of the first and of the last sector that it leaves out.
    pub(super) head: u16,
    pub(super) tail: u16,
}

impl Call {
    /// The first page of the call, and the one behind its last.
    pub(super) fn pages(self) -> (u32, u32) {
        let page = |sector: u64| u32::try_from(sector / u64::from(PAGE_SECTORS)).unwrap_or(u32::MAX - 1);
        let end = self.offset + u64::from(self.len);
        (page(self.offset), page(end + u64::from(PAGE_SECTORS) - 1))
    }

    pub(super) const NONE: Self = Self {
        action: Action::Read,
        slot: 0,
        file: 0,
        offset: 0,
        len: 0,
        cpu: Duration::ZERO,
        burst: 0,
        meta: false,
        ahead: false,
        sync: None,
        prio: None,
        preflush: false,
        fua: false,
        synced: Synced::Fsync,
        head: 0,
        tail: 0,
    };

    /// Where in the file it begins, in bytes.
    pub(super) fn offset_bytes(&self) -> u64 {
        self.offset * 512 + u64::from(self.head)
    }

    /// How much it moves, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.len) * 512 - u64::from(self.head) - u64::from(self.tail)
    }
}
