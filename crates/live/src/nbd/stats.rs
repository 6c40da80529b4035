//! What an export has done, counted by the engine and read by others.

use super::session::{Command, Errno, Request};
use fairhead_core::units::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The statistics of an export since the server began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExportStats {
    /// Connections that chose it.
    pub connections: u64,
    /// Reads that went well.
    pub reads: u64,
    /// And their bytes.
    pub read_bytes: u64,
    /// Writes, discards and zeroings that went well.
    pub writes: u64,
    /// And their bytes.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Connections that were dropped because they broke the protocol.
    pub violations: u64,
    /// Nanoseconds from request to reply of all reads, added up; and of all writes.
    pub read_ns: u64,
    /// See `read_ns`.
    pub write_ns: u64,
}

/// To look at what a server's exports have done, from any thread, also when the server is gone.
#[derive(Clone, Debug)]
pub struct Exports(pub(super) Vec<(String, Arc<Counters>)>);

impl Exports {
    /// Returns the name and the statistics of each export, in order.
    #[must_use]
    pub fn look(&self) -> Vec<(String, ExportStats)> {
        self.0.iter().map(|(name, counters)| (name.clone(), counters.look())).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
    flushes: AtomicU64,
    errors: AtomicU64,
    violations: AtomicU64,
    read_ns: AtomicU64,
    write_ns: AtomicU64,
}

/// One thread writes: no read-modify-write is needed.
fn add(to: &AtomicU64, n: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Counters {
    pub(super) fn connection(&self) {
        add(&self.connections, 1);
    }

    pub(super) fn violation(&self) {
        add(&self.violations, 1);
    }

    pub(super) fn done(&self, request: &Request, result: Result<(), Errno>, took: Duration) {
        let len = u64::from(request.len);
        match request.command {
            _ if result.is_err() => add(&self.errors, 1),
            Command::Read => {
                add(&self.reads, 1);
                add(&self.read_bytes, len);
                add(&self.read_ns, took.as_ns());
            }
            Command::Write | Command::Trim | Command::Zero { .. } => {
                add(&self.writes, 1);
                add(&self.write_bytes, len);
                add(&self.write_ns, took.as_ns());
            }
            Command::Flush => add(&self.flushes, 1),
            Command::Status { .. } => {}
        }
    }

    pub(super) fn look(&self) -> ExportStats {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        ExportStats {
            connections: get(&self.connections),
            reads: get(&self.reads),
            read_bytes: get(&self.read_bytes),
            writes: get(&self.writes),
            write_bytes: get(&self.write_bytes),
            flushes: get(&self.flushes),
            errors: get(&self.errors),
            violations: get(&self.violations),
            read_ns: get(&self.read_ns),
            write_ns: get(&self.write_ns),
        }
    }
}
