//! What a call of a client does, and where; and how many there are at a time.

use crate::job::{Engine, Job, Program};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Trim,
    /// fsync and fdatasync: there is no metadata of a file whose writing would tell them apart.
    Sync,
}

/// What an fsync or fdatasync of a client belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Synced {
    /// `fsync`, and what is recorded in traces.
    #[default]
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `end_fsync` and `fsync_on_close`.
    AtEnd,
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

impl Region {
    /// The empty region of a client that makes no call.
    pub(super) const EMPTY: Self = Self { base: 0, span: 0, size: 0, file: 0, room: 0 };
}

/// How many calls the job really has in flight. A buffered call through libaio blocks its submitter, so only
/// one is.
//= fio-3.33 HOWTO "iodepth"
pub(super) fn lanes(job: &Job) -> u32 {
    if job.offload && job.program.is_none() && job.engine != Engine::Null {
        return job.iodepth;
    }
    let is_async = job.engine == Engine::Async && matches!(job.program, None | Some(Program::Trace));
    if is_async && (job.direct || job.ioengine != "libaio") { job.iodepth } else { 1 }
}
