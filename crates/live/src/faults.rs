//! Faults at the backing store, on purpose: tests see whether the right client gets the error, and no other
//! does.
//!
//! ```
//! use fairhead_live::{Disk, DiskOptions, Errno, Fault, FaultOp, Faults, Harm};
//! # let path = std::env::temp_dir().join(format!("fairhead-faults-{}", std::process::id()));
//! # std::fs::write(&path, vec![7; 1 << 20])?;
//!
//! let faults = Faults::default();
//! let disk = Disk::open(DiskOptions::new([&path]).faults(&faults))?;
//! let client = disk.client("")?;
//! faults.add(Fault { op: FaultOp::Read, file: 0, bytes: 8192..12288, times: 1, harm: Harm::Error(Errno::IO) });
//! assert_eq!(client.read(0, 8192, 4096).wait().err(), Some(Errno::IO));
//! assert!(client.read(0, 8192, 4096).wait().is_ok(), "once, it was said");
//! # drop(disk);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An operation that is to fail is never done: the kernel is asked for nothing instead. One that is to be
//! stuck waits in the ring, and is done for real when its time has come, so that what is late is as late as
//! with a disk that hangs.
//!
//! What it does not do: fail by itself, or cost anything where no fault was asked for.

use crate::bio::{Errno, FileId};
use io_uring::opcode::{Nop, Timeout};
use io_uring::squeue::Entry;
use io_uring::types::Timespec;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The operations of the store that a fault applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOp {
    /// Reads.
    Read,
    /// Writes, also those that write zeros.
    Write,
    /// Holes and zeroed space.
    Allocate,
    /// Flushes of a client.
    Flush,
}

/// The effect of a fault on an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// It is not done, and fails so.
    Error(Errno),
    /// A read or write transfers at most this many bytes, and at least one.
    Short(u64),
    /// The operation is done, but later by this time.
    Stuck(Duration),
}

/// A fault to inject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Operations of this kind …
    pub op: FaultOp,
    /// … on this file, which count as for [`Client::read`](crate::Client::read) …
    pub file: u32,
    /// … that touch one of these bytes; a flush touches all.
    pub bytes: Range<u64>,
    /// How many operations it applies to; `u32::MAX` for all.
    pub times: u32,
    /// The effect on these operations.
    pub harm: Harm,
}

impl Fault {
    fn touches(&self, op: FaultOp, file: FileId, bytes: &Range<u64>) -> bool {
        let is_there = op == FaultOp::Flush || self.bytes.start < bytes.end && bytes.start < self.bytes.end;
        self.times > 0 && self.op == op && self.file == file.0 && is_there
    }
}

/// A list of faults, which may grow while the disk works. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Vec<Fault>>>);

impl Faults {
    fn list(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault; it applies from now on.
    pub fn add(&self, fault: Fault) {
        self.list().push(fault);
    }

    /// Removes all faults; an operation that is stuck stays so until its time has come.
    pub fn clear(&self) {
        self.list().clear();
    }

    fn hit(&self, op: FaultOp, file: FileId, bytes: &Range<u64>) -> Option<Harm> {
        let mut list = self.list();
        let fault = list.iter_mut().find(|f| f.touches(op, file, bytes))?;
        if fault.times < u32::MAX {
            fault.times -= 1;
        }
        Some(fault.harm)
    }
}

/// What is in the ring in place of an operation.
#[derive(Debug)]
enum Instead {
    Fails(Errno),
    /// The operation, and the time that the kernel reads.
    Waits(Entry, #[allow(dead_code, reason = "kept for the kernel")] Box<Timespec>),
}

/// What an operation's outcome means.
pub(crate) enum Meaning {
    Outcome(i32),
    /// The operation is to be done now.
    Do(Entry),
}

/// The store's part of it.
#[derive(Debug)]
pub(crate) struct Injector {
    faults: Faults,
    /// By operation.
    instead: HashMap<usize, Instead>,
}

impl Injector {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, instead: HashMap::new() }
    }

    /// Whether an operation like this is to be harmed.
    pub(crate) fn will_hit(&self, op: FaultOp, file: FileId, bytes: &Range<u64>) -> bool {
        self.faults.list().iter().any(|f| f.touches(op, file, bytes))
    }

    /// Returns the effect on an operation, and counts it.
    pub(crate) fn hit(&self, op: FaultOp, file: FileId, bytes: &Range<u64>) -> Option<Harm> {
        self.faults.hit(op, file, bytes)
    }

    /// What goes to the ring under the operation's number.
    pub(crate) fn replace(&mut self, number: usize, operation: Entry, harm: Harm) -> Entry {
        match harm {
            Harm::Short(_) => operation,
            Harm::Error(errno) => {
                self.instead.insert(number, Instead::Fails(errno));
                Nop::new().build()
            }
            Harm::Stuck(time) => {
                let time = Box::new(Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos()));
                let timeout = Timeout::new(&raw const *time).build();
                self.instead.insert(number, Instead::Waits(operation, time));
                timeout
            }
        }
    }

    /// The ring has an outcome for the operation of this number.
    pub(crate) fn meaning(&mut self, number: usize, result: i32) -> Meaning {
        match self.instead.remove(&number) {
            None => Meaning::Outcome(result),
            Some(Instead::Fails(errno)) => Meaning::Outcome(-errno.0),
            Some(Instead::Waits(operation, _)) => Meaning::Do(operation),
        }
    }
}

/// The first bytes of some memory.
pub(crate) fn shorten(vectors: &mut [libc::iovec], most: u64) -> usize {
    let mut left = most.max(1) as usize;
    let mut used = 0;
    for v in vectors.iter_mut() {
        if left == 0 {
            break;
        }
        v.iov_len = v.iov_len.min(left);
        left -= v.iov_len;
        used += 1;
    }
    used
}
