//! Numbers of the protocol, and how they lie on the wire: everything is big-endian.
//!
//! Those of extended headers are newer than many copies of the document. They were compared one by one with
//! the patches that brought them to QEMU's `include/block/nbd.h` and libnbd's `lib/nbd-protocol.h`: both
//! magic numbers, the option (11), the error that asks for extended headers (10), the flag for the length of
//! a payload (1 << 5), and the chunk about block status (6).
//!
//= nbd doc/proto.md

use crate::numbers::table;

pub(super) const GREETING: u64 = 0x4e42_444d_4147_4943;
pub(super) const OPTION: u64 = 0x4948_4156_454f_5054;
pub(super) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(super) const REQUEST: u32 = 0x2560_9513;
/// With extended headers.
pub(super) const EXTENDED_REQUEST: u32 = 0x21e4_1c71;
pub(super) const EXTENDED_REPLY: u32 = 0x6e8a_278c;
pub(super) const SIMPLE_REPLY: u32 = 0x6744_6698;
pub(super) const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Flags of the handshake, the server's and the client's.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
pub(super) const NO_ZEROES: u16 = 2;

table! {
    /// What a client may ask for before it chooses an export.
    pub(super) mod option: u32 {
        EXPORT_NAME = 1,
        ABORT = 2,
        LIST = 3,
        STARTTLS = 5,
        INFO = 6,
        GO = 7,
        STRUCTURED_REPLY = 8,
        LIST_META_CONTEXT = 9,
        SET_META_CONTEXT = 10,
        EXTENDED_HEADERS = 11,
    }
}

/// Answers to options.
pub(super) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const UNSUPPORTED: u32 = 1 << 31 | 1;
    pub(crate) const POLICY: u32 = 1 << 31 | 2;
    pub(crate) const INVALID: u32 = 1 << 31 | 3;
    pub(crate) const TLS_NEEDED: u32 = 1 << 31 | 5;
    pub(crate) const UNKNOWN: u32 = 1 << 31 | 6;
    pub(crate) const TOO_BIG: u32 = 1 << 31 | 9;
    pub(crate) const EXT_HEADER_REQD: u32 = 1 << 31 | 10;
}

/// Facts about an export.
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// What an export can.
pub(super) mod can {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DF: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    pub(crate) const FAST_ZERO: u16 = 1 << 11;
}

table! {
    /// Commands.
    pub(super) mod command: u16 {
        READ = 0,
        WRITE = 1,
        DISC = 2,
        FLUSH = 3,
        TRIM = 4,
        WRITE_ZEROES = 6,
        BLOCK_STATUS = 7,
    }
}

/// Flags of commands.
pub(super) mod flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
    pub(crate) const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of structured replies, and their flag.
pub(super) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXTENDED: u16 = 6;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
}

/// The first bytes of a buffer, one number after the other; `None` when they are used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take<'a>(pub(super) &'a [u8]);

impl<'a> Take<'a> {
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A length, and as many bytes of text.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }
}

/// Puts numbers at the end.
pub(super) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn u16(&mut self, n: u16) {
        self.put(&n.to_be_bytes());
    }

    fn u32(&mut self, n: u32) {
        self.put(&n.to_be_bytes());
    }

    fn u64(&mut self, n: u64) {
        self.put(&n.to_be_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
