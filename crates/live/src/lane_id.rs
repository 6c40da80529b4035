//! The names of the lanes in which bios of a client wait: a task, and a kind of request.

use crate::bio::{Bio, Op};
use fairhead_core::units::TaskId;

/// The kinds of requests that schedulers and limits turn away separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Read,
    SyncWrite,
    AsyncWrite,
}

/// Which lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaneId(pub(crate) TaskId, pub(crate) Kind);

impl LaneId {
    /// That of a bio.
    pub(crate) const fn of(bio: &Bio) -> Self {
        let kind = match (bio.op, bio.sync) {
            (Op::Read | Op::Extents, _) => Kind::Read,
            (_, true) => Kind::SyncWrite,
            (_, false) => Kind::AsyncWrite,
        };
        Self(bio.task, kind)
    }
}
