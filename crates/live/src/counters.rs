//! What an export, or a device of a virtual machine, has done: counted by the engine and read by others.

use fairhead_core::units::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The counters of a server's exports by name, for any thread, also when the server is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books(Arc<Mutex<Vec<Named>>>);

/// The counters of an export, and its name.
type Named = (String, Arc<Counters>);

impl Books {
    fn lock(&self) -> MutexGuard<'_, Vec<Named>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, name: &str, counters: &Arc<Counters>) {
        self.lock().push((name.to_owned(), Arc::clone(counters)));
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().retain(|(other, _)| other != name);
    }

    pub(crate) fn look(&self) -> Vec<(String, ExportStats)> {
        self.lock().iter().map(|(name, counters)| (name.clone(), counters.look())).collect()
    }
}

/// The kind of a request, for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    Read,
    /// A write, discard or zeroing.
    Write,
    Flush,
    /// Nothing that the disk does.
    Question,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
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
    pub(crate) fn connection(&self) {
        add(&self.connections, 1);
    }

    pub(crate) fn violation(&self) {
        add(&self.violations, 1);
    }

    /// Counts a request of `bytes` bytes that is answered.
    pub(crate) fn count(&self, what: Counted, bytes: u64, is_ok: bool, took: Duration) {
        match what {
            _ if !is_ok => add(&self.errors, 1),
            Counted::Read => {
                add(&self.reads, 1);
                add(&self.read_bytes, bytes);
                add(&self.read_ns, took.as_ns());
            }
            Counted::Write => {
                add(&self.writes, 1);
                add(&self.write_bytes, bytes);
                add(&self.write_ns, took.as_ns());
            }
            Counted::Flush => add(&self.flushes, 1),
            Counted::Question => {}
        }
    }

    pub(crate) fn look(&self) -> ExportStats {
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
