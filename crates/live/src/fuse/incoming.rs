//! Requests on their way from the kernel: where they are read to, and when.
//!
//! The ring waits until there is a request and then reads it, so that one costs no call of its own. After it,
//! more are read at once, as long as there are any. If there was none after it, that is not tried for a
//! while: for longer each time, so that a caller that is alone costs no calls in vain.
//!
//! The first bytes go to a place of their own and the rest to an aligned buffer, so that the data of a large
//! write are where direct I/O needs them.

use super::protocol::{DATA_MAX, WRITE_HEADER};
use crate::buffer::{Buffer, Pool};
use crate::ring::{Ring, Token};
use io_uring::opcode::{PollAdd, Readv};
use io_uring::types::Fd;
use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Smaller writes are copied, so that the large buffer stays.
const COPIED_MAX: usize = 64 << 10;

/// After reads in vain, at most this many requests come by the ring before another one is tried.
const PAUSE_MAX: u32 = 63;

/// Addresses for the kernel.
#[derive(Debug)]
struct Vectors(Box<[libc::iovec; 2]>);

// SAFETY: the addresses are those of memory that belongs to the same `Incoming`.
unsafe impl Send for Vectors {}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Incoming {
    head: Box<[u8; WRITE_HEADER]>,
    body: Option<Buffer>,
    vectors: Vectors,
    pool: Arc<Pool>,
    /// Whether the ring has the memory.
    is_armed: bool,
    /// The requests that come by the ring before more are read at once, now and after the next read in vain.
    pause: u32,
    next_pause: u32,
}

impl Incoming {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let nowhere = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            head: Box::new([0; WRITE_HEADER]),
            body: None,
            vectors: Vectors(Box::new([nowhere; 2])),
            pool,
            is_armed: false,
            pause: 0,
            next_pause: 1,
        }
    }

    /// Where memory comes from.
    pub(super) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The ring reads the next request, unless it is about to already.
    pub(super) fn arm(&mut self, device: &File, ring: &mut Ring) -> io::Result<()> {
        if self.is_armed {
            return Ok(());
        }
        let body = self.body.get_or_insert_with(|| self.pool.buffer(DATA_MAX as usize));
        let vector =
            |part: &mut [u8]| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
        *self.vectors.0 = [vector(&mut self.head[..]), vector(body)];
        let fd = Fd(device.as_raw_fd());
        let poll = PollAdd::new(fd, libc::POLLIN as u32).build();
        let read = Readv::new(fd, self.vectors.0.as_ptr(), 2).build();
        self.is_armed = true;
        // SAFETY: head, body and vectors stay where they are as long as `is_armed`, and the engine drops the
        // ring before the front.
        unsafe { ring.push_linked([poll, read], Token::Front(0)) }
    }

    /// The ring is done with its read: the length of the request, or what went wrong.
    pub(super) const fn armed_read(&mut self, result: i32) -> Result<usize, i32> {
        self.is_armed = false;
        if result < 0 { Err(-result) } else { Ok(result as usize) }
    }

    /// Whether to read more requests at once, after one that the ring has read.
    pub(super) const fn is_worth_a_try(&mut self) -> bool {
        let is_worth_it = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        is_worth_it
    }

    /// This many requests were read at once.
    pub(super) const fn tried(&mut self, found: usize) {
        if found > 0 {
            self.next_pause = 1;
        } else {
            self.pause = self.next_pause;
            self.next_pause = if self.pause < PAUSE_MAX { self.pause * 2 + 1 } else { PAUSE_MAX };
        }
    }

    /// Reads the next request at once, if there is one: how long it is. The ring must have no read.
    pub(super) fn read(&mut self, mut device: &File) -> io::Result<usize> {
        assert!(!self.is_armed, "the ring has the memory");
        let body = self.body.get_or_insert_with(|| self.pool.buffer(DATA_MAX as usize));
        device.read_vectored(&mut [IoSliceMut::new(&mut self.head[..]), IoSliceMut::new(body)])
    }

    /// The bytes of the request that was read in front of a write's data.
    pub(super) fn head(&self) -> [u8; WRITE_HEADER] {
        *self.head
    }

    /// The `len` bytes behind the head.
    pub(super) fn body(&self, len: usize) -> &[u8] {
        &self.body.as_deref().unwrap_or_default()[..len]
    }

    /// The data of a write, `len` bytes.
    pub(super) fn payload(&mut self, len: usize) -> Buffer {
        let mut body = self.body.take().expect("just read into");
        if len > COPIED_MAX {
            return body;
        }
        let mut copy = self.pool.buffer(len);
        copy.copy_from_slice(&body[..len]);
        self.body = Some(std::mem::replace(&mut body, copy));
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_vain_become_rare_and_those_that_find_something_go_on() {
        let mut incoming = Incoming::new(Pool::new(0));
        let mut tries = 0;
        for _ in 0..1000 {
            if incoming.is_worth_a_try() {
                incoming.tried(0);
                tries += 1;
            }
        }
        assert!((15..25).contains(&tries), "{tries} of 1000");
        while !incoming.is_worth_a_try() {}
        for _ in 0..10 {
            incoming.tried(3);
            assert!(incoming.is_worth_a_try());
        }
        incoming.tried(0);
        assert!(!incoming.is_worth_a_try() && incoming.is_worth_a_try(), "a short pause at first");
    }
}
