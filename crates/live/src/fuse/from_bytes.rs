//! Requests out of any bytes, on a folder, without a kernel: for fuzzing.
//!
//! Each request is two bytes of length and that many bytes, which are taken as if they were read from the
//! device; and as if they had come in an entry of the kernel's queues.
//!
//! What it does not do: data, which need an engine; and what could have an effect outside of the folder, or
//! block: device files, pipes, `ioctl`.

use super::directory::Directory;
use super::entry::{HEAD, Request};
use super::front::{AtOnce, Tree};
use super::protocol::{self, DATA_MAX, HEADER, Header, Operation, flag};
use super::source::Source;
use std::io;
use std::path::Path;

/// Does what the requests in these bytes ask of the files in a folder. What they are is checked, and how long
/// the answers are.
///
/// # Errors
/// If the folder cannot be opened.
///
/// # Panics
/// If something is wrong with this program.
pub fn serve_bytes(folder: &Path, mut bytes: &[u8]) -> io::Result<()> {
    let tree = Directory::new(Source::open(folder)?)?;
    while let Some((len, rest)) = bytes.split_at_checked(2) {
        let len = usize::from(u16::from_le_bytes([len[0], len[1]])).min(rest.len());
        let (request, rest) = rest.split_at(len);
        bytes = rest;
        if let Some(header) = Header::parse(request).filter(|_| len >= HEADER) {
            serve(&tree, &header, &request[HEADER..]);
        }
        let mut head = [0; HEAD];
        head[..len.min(HEAD)].copy_from_slice(&request[..len.min(HEAD)]);
        if let Some(Request { header, operands, payload, .. }) = Request::parse(&head, DATA_MAX as usize) {
            let payload = &request[len.min(HEAD)..][..payload.min(len.saturating_sub(HEAD))];
            serve(&tree, &header, &[operands, payload].concat());
        }
    }
    Ok(())
}

/// Does what one request asks, if it may.
fn serve(tree: &Directory, header: &Header, bytes: &[u8]) {
    let Some(operation) = Operation::parse(header.opcode, bytes) else { return };
    let most = match operation {
        Operation::MkNod { mode, .. } if mode & libc::S_IFMT != libc::S_IFREG => return,
        Operation::Ioctl { .. } => return,
        Operation::Init { minor, readahead, flags } => {
            let agreed = protocol::agree(&tree.terms(), minor, readahead, flags | flag::INIT_EXT);
            assert!(agreed.is_err() || agreed.is_ok_and(|(reply, _)| reply.len() == 64), "an agreement");
            return;
        }
        Operation::ReadDir { size, .. } => size as usize,
        Operation::GetXattr { size, .. } | Operation::ListXattr { size } => {
            if size > DATA_MAX {
                return;
            }
            size.max(8) as usize
        }
        Operation::Release { handle } => {
            tree.release(handle).into_iter().for_each(|file| tree.close(file));
            return;
        }
        _ => DATA_MAX as usize,
    };
    let reply = match tree.answer_at_once(header, "", &operation) {
        AtOnce::Done(reply) => reply,
        AtOnce::MayBlock => tree.answer(header, "", &operation),
    };
    if let Some(Ok(reply)) = reply {
        assert!(reply.len() <= most, "{operation:?}: {} bytes", reply.len());
    }
}
