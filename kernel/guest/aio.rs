// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux's asynchronous I/O, by system calls. Source: linux/aio_abi.h, io_submit(2), io_getevents(2).

use std::ffi::c_long;
use std::io;

// The system's own function, of the C library that the standard library is linked with.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}
const IO_SETUP: c_long = 206;
const IO_GETEVENTS: c_long = 208;
const IO_SUBMIT: c_long = 209;

/// Linux's control block of a call: `op` is 0 for a read, 1 for a write.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Iocb {
    pub(crate) data: u64,
    pub(crate) key: u32,
    pub(crate) flags: u32,
    pub(crate) op: u16,
    pub(crate) prio: u16,
    pub(crate) fd: u32,
    pub(crate) buffer: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) reserved: [u64; 2],
}

/// What became of a call: the `data` of its control block, and bytes or an error below 0.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Event {
    pub(crate) data: u64,
    pub(crate) iocb: u64,
    pub(crate) result: i64,
    pub(crate) result2: i64,
}

/// A context, for some calls at a time.
pub(crate) struct Aio(u64);

impl Aio {
    /// For `depth` calls at a time.
    pub(crate) fn new(depth: usize) -> io::Result<Self> {
        let mut context = 0_u64;
        // SAFETY: it writes the context's name.
        match unsafe { syscall(IO_SETUP, depth, &raw mut context) } {
            0 => Ok(Self(context)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Hands in calls, all at once.
    ///
    /// # Safety
    /// The control blocks, and the buffers that they name, stay until the calls have ended.
    pub(crate) unsafe fn submit(&self, calls: &[*mut Iocb]) -> io::Result<()> {
        // SAFETY: the caller's promise.
        match unsafe { syscall(IO_SUBMIT, self.0, calls.len(), calls.as_ptr()) } {
            n if usize::try_from(n) == Ok(calls.len()) => Ok(()),
            n if n >= 0 => Err(io::Error::other("not all calls were taken")),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until `least` calls have ended. Returns what became of these, and of as many more as there is
    /// room for.
    pub(crate) fn wait<'a>(&self, least: usize, events: &'a mut [Event]) -> io::Result<&'a [Event]> {
        // SAFETY: there is room for that many events.
        let got = unsafe { syscall(IO_GETEVENTS, self.0, least, events.len(), events.as_mut_ptr(), 0_u64) };
        match usize::try_from(got) {
            Ok(got) if got > 0 => Ok(&events[..got]),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
