//! The words of a ring entry: a request and its reply, as the kernel lays them out in FUSE over io_uring.
//!
//! An entry has two parts of memory, which both sides use in turn: a head of 288 bytes and a payload.
//!
//! ```text
//!   head     0  header of the request; of the reply, when it is done      128 bytes
//!          128  the operation's own header, such as offset and size       128
//!          256  flags, number to commit by, length of the payload          32
//!   payload     what else the operation has: names, data                  1 MiB
//! ```
//!
//! Behind the header of the reply there is nothing: what it has is in the payload, too.
//!
//! What it does not do: memory and commands (`queues.rs`).
//!
//! Source: the kernel's header `linux/fuse.h` (`struct fuse_uring_req_header`, `struct fuse_uring_cmd_req`),
//! and its page on FUSE over io_uring.

use super::protocol::{self, HEADER, Header};
use crate::bio::Errno;

/// The length of an entry's head.
//= linux-6.18 include/uapi/linux/fuse.h struct fuse_uring_req_header
pub(super) const HEAD: usize = 288;
const OPERANDS: usize = 128;
const OPERANDS_MAX: usize = 128;
const COMMIT: usize = 264;
const PAYLOAD: usize = 272;

/// Commands for the device.
//= linux-6.18 include/uapi/linux/fuse.h enum fuse_uring_cmd
pub(super) mod command {
    /// Hands over the memory of an entry, and waits for the first request.
    pub(crate) const REGISTER: u32 = 1;
    /// Hands over a reply, and waits for the next request.
    pub(crate) const COMMIT_AND_FETCH: u32 = 2;
}

/// A request that has come in an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) header: Header,
    /// The number to commit the reply by.
    pub(super) commit: u64,
    /// The operation's own header.
    pub(super) operands: &'a [u8],
    /// The number of bytes of the payload that belong to the request.
    pub(super) payload: usize,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

impl<'a> Request<'a> {
    /// The request in a head; `None` if its lengths contradict each other. A payload has at most `most`
    /// bytes.
    pub(super) fn parse(head: &'a [u8; HEAD], most: usize) -> Option<Self> {
        let header = Header::parse(head)?;
        let payload = word(head, PAYLOAD) as u32 as usize;
        let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let operands = len.checked_sub(HEADER)?.checked_sub(payload)?;
        if payload > most || operands > OPERANDS_MAX {
            return None;
        }
        let operands = &head[OPERANDS..OPERANDS + operands];
        Some(Self { header, commit: word(head, COMMIT), operands, payload })
    }
}

/// Puts the header of a reply into a head: `len` bytes of the payload belong to it.
pub(super) fn put_reply(head: &mut [u8; HEAD], unique: u64, result: Result<(), Errno>, len: usize) {
    let header = protocol::reply_header(unique, result, len);
    head[..header.len()].copy_from_slice(&header);
    head[PAYLOAD..PAYLOAD + 4].copy_from_slice(&(len as u32).to_ne_bytes());
}

/// The data of a command: which queue's entry it is about, and by what number a reply is committed.
//= linux-6.18 include/uapi/linux/fuse.h struct fuse_uring_cmd_req
pub(super) fn command_data(queue: u16, commit: u64) -> [u8; 80] {
    let mut data = [0; 80];
    data[8..16].copy_from_slice(&commit.to_ne_bytes());
    data[16..18].copy_from_slice(&queue.to_ne_bytes());
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::protocol::opcode;

    /// A request with these lengths.
    fn head(len: u32, payload: u32) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&len.to_ne_bytes());
        head[4..8].copy_from_slice(&opcode::WRITE.to_ne_bytes());
        head[8..16].copy_from_slice(&7_u64.to_ne_bytes());
        head[OPERANDS..OPERANDS_MAX + OPERANDS].copy_from_slice(&[9; OPERANDS_MAX]);
        head[COMMIT..COMMIT + 8].copy_from_slice(&8_u64.to_ne_bytes());
        head[PAYLOAD..PAYLOAD + 4].copy_from_slice(&payload.to_ne_bytes());
        head
    }

    #[test]
    fn a_request_is_where_the_kernel_puts_it() {
        let head = head(40 + 40 + 4096, 4096);
        let request = Request::parse(&head, 1 << 20).unwrap();
        assert_eq!((request.header.unique, request.commit, request.payload), (7, 8, 4096));
        assert_eq!(request.operands, [9; 40]);
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        for (len, payload) in [(0, 0), (39, 0), (40, 1), (40 + 129, 0), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
            assert!(Request::parse(&head(len, payload), 1 << 20).is_none(), "{len}, {payload}");
        }
        assert!(Request::parse(&head(40 + 4097, 4097), 4096).is_none(), "longer than the payload");
        assert!(Request::parse(&head(40 + 128, 0), 0).is_some());
    }

    #[test]
    fn a_reply_says_how_much_of_the_payload_is_its_own() {
        let mut head = head(4136, 4096);
        put_reply(&mut head, 7, Ok(()), 100);
        assert_eq!(head[..16], protocol::reply_header(7, Ok(()), 100));
        assert_eq!(head[PAYLOAD..PAYLOAD + 4], 100_u32.to_ne_bytes());
        assert_eq!(word(&head, COMMIT), 8, "as it was");
        let data = command_data(3, 8);
        assert_eq!((word(&data, 0), word(&data, 8), word(&data, 16)), (0, 8, 3));
    }
}
