//! The phases of a call, which a lane goes through.

/// Where a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between calls.
    Pause,
    /// Before a call: on a CPU, or waiting for one.
    Cpu,
    /// Reading the indirect block that tells where the data are, if it is not in memory.
    Map,
    /// Waiting for requests of earlier calls that were not waited for.
    Settle,
    /// Waiting for these at the end of a replay.
    Drain,
    /// Before a write that what was written before has to be stable for; and while that is done.
    Preflush,
    Preflushing,
    /// Past the page cache.
    Direct,
    /// From the page cache.
    Read,
    /// To the page cache.
    Write,
    /// Looking at the limits on dirty pages.
    Balance,
    /// Writing dirty pages of a range and waiting for them; then what?
    Sync(After),
    /// Waiting for the disk's own cache to be emptied.
    Flush,
    /// Never again.
    Ended,
}

/// What follows when a range has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The disk's cache, too.
    Flush,
    /// The call is done.
    Done,
    /// The call continues past the page cache.
    Direct,
    /// The call begins: all pages of a disk that is opened have been written.
    Open,
}

/// How a phase ends, for now.
pub(super) enum Step {
    /// The lane waits for an event that wakes it.
    Blocked,
    /// On to another phase.
    Go(Phase),
    /// The call begins.
    Begin,
    /// The call is done.
    Done,
}
