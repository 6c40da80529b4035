//! What fuzzers call: bytes as a guest's memory, and bytes as a virtual machine's messages. Not for others.

#![allow(clippy::missing_panics_doc, reason = "a panic is a finding")]

use super::command::{Command, What};
use super::config_space::PROTOCOL_FEATURES;
use super::device::QUEUES_MAX;
use super::memory::{GuestMemory, Region, RegionFacts};
use super::request::{Kind, Limits, Request};
use super::session::{Engine, Session};
use super::shared::Shared;
use super::split_ring::{Addresses, SplitRing};
use crate::guest_data::Part;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::cell::RefCell;
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use vhost::vhost_user::BackendReqHandler;

const LEN: u64 = 64 << 10;
const GUEST: u64 = 0x10000;
const SIZE: u16 = 8;
const LIMITS: Limits = Limits { size: 1 << 30, is_read_only: false };
const AT: Addresses = Addresses { descriptors: 0, available: 128, used: 256 };

fn memory_file() -> File {
    let file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory"));
    file.set_len(LEN).expect("memory");
    file
}

fn memory() -> Arc<GuestMemory> {
    let facts = RegionFacts { guest: GUEST, user: 0, len: LEN, offset: 0 };
    let region = Region::new(facts, &memory_file()).expect("a region");
    Arc::new(GuestMemory::new(vec![Arc::new(region)]).expect("memory"))
}

thread_local! {
    static MEMORY: RefCell<Option<Arc<GuestMemory>>> = const { RefCell::new(None) };
}

/// The bytes are the first of a guest's memory, and its rings are there: whatever they say, what is read from
/// them is inside the memory and the disk, and comes to an end.
pub fn chains(data: &[u8]) {
    let memory = MEMORY.with_borrow_mut(|kept| Arc::clone(kept.get_or_insert_with(memory)));
    let start = memory.place(GUEST, LEN).expect("it is there");
    let len = data.len().min(LEN as usize);
    // SAFETY: as many bytes as there are, and nothing else knows them.
    unsafe {
        start.as_ptr().write_bytes(0, LEN as usize);
        start.as_ptr().copy_from_nonoverlapping(data.as_ptr(), len);
    }
    let mut ring = SplitRing::new(Arc::clone(&memory), SIZE, AT, 0, true).expect("rings");
    read_all(&mut ring, start.as_ptr() as usize);
}

/// Reads all that a ring has, and gives it back.
fn read_all(ring: &mut SplitRing, start: usize) {
    let (mut chain, mut readable, mut writable) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SIZE {
        let Ok(Some(head)) = ring.peek() else { break };
        ring.take();
        if ring.chain(head, &mut chain).is_err() {
            break;
        }
        readable.clear();
        writable.clear();
        let is_there = chain.iter().all(|part| {
            let into = if part.is_for_device { &mut writable } else { &mut readable };
            ring.memory().parts(part.address, part.len, into)
        });
        // SAFETY: the parts were just looked up.
        let Some(Ok(request)) = is_there.then(|| unsafe { Request::parse(&readable, &writable, LIMITS) })
        else {
            break;
        };
        check(&request, start);
        ring.give_back(head, 1);
        ring.wants_signal();
    }
    let _ = ring.ask_for_kick();
}

fn check(request: &Request, start: usize) {
    let inside = |p: &Part| {
        let at = p.start.as_ptr() as usize;
        at >= start && at + p.len as usize <= start + LEN as usize
    };
    assert!(inside(&request.status) && request.status.len == 1);
    assert!(request.data.iter().all(|p| p.len > 0 && inside(p)), "{request:?}");
    assert!(request.ranges.iter().all(|r| r.offset + u64::from(r.len) <= LIMITS.size && r.len > 0));
    if let Ok(Kind::Read | Kind::Write) = request.asks {
        assert_eq!(request.bytes(), request.data.iter().map(|p| u64::from(p.len)).sum::<u64>());
    }
}

/// An engine that reads what it is given, and answers.
struct Reader(Mutex<Vec<(usize, SplitRing)>>);

impl Engine for &Reader {
    fn tell(&self, command: Command) -> bool {
        let mut rings = self.0.lock().expect("one thread");
        match command.what {
            What::Start(index, setup) => {
                let mut ring = setup.split;
                if let Some(mut marks) = setup.marks {
                    marks.begin(ring.next_used());
                    marks.taken(0);
                    marks.gives_back(0);
                    marks.gave_back(0, 1);
                }
                if let Ok(Some(head)) = ring.peek() {
                    ring.take();
                    let _ = ring.chain(head, &mut Vec::new());
                }
                rings.retain(|(other, _)| *other != index);
                rings.push((index, ring));
            }
            What::Stop(index, reply) => {
                let at =
                    rings.iter().position(|(other, _)| *other == index).expect("a ring that was started");
                let _ = reply.send(rings.remove(at).1.next_available());
            }
            What::Begin | What::Call(..) | What::End => {}
        }
        true
    }
}

/// The bytes are messages: each is a code, flags, what file comes with it, the length that it claims, and as
/// many bytes. Whatever they say, the conversation continues or ends.
pub fn conversation(data: &[u8]) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let memory = memory_file();
    // SAFETY: the descriptor is new.
    let event = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
    let null = File::open("/dev/null").expect("a file");
    // What comes first in any conversation.
    send(&theirs, 2, 1, &(PROTOCOL_FEATURES | 0x1_3000_0000).to_le_bytes(), &[]);
    send(&theirs, 16, 1, &0xffff_u64.to_le_bytes(), &[]);
    let mut rest = data;
    for _ in 0..64 {
        let [code, flags, file, len, left @ ..] = rest else { break };
        let (payload, left) = left.split_at(left.len().min(usize::from(*len)));
        rest = left;
        let files: &[BorrowedFd<'_>] = match file % 5 {
            0 => &[],
            1 => &[memory.as_fd()],
            2 => &[event.as_fd()],
            3 => &[null.as_fd()],
            _ => &[memory.as_fd(), memory.as_fd()],
        };
        // A message of more or less than it says is a message of another kind in disguise.
        let claimed = if flags & 0x80 != 0 { u32::from(*len) } else { payload.len() as u32 };
        send_as(&theirs, u32::from(*code), u32::from(flags & 0xf), claimed, payload, files);
    }
    theirs.shutdown(Shutdown::Write).expect("a socket");
    let shared = Arc::new(Shared::new("fuzz", false, QUEUES_MAX, (1 << 30, 512)));
    let reader = Reader(Mutex::default());
    let session = Arc::new(Mutex::new(Session::new(&reader, 0, 1, shared)));
    let mut handler = BackendReqHandler::from_stream(ours, session);
    while handler.handle_request().is_ok() {}
}

fn send(to: &UnixStream, code: u32, flags: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
    send_as(to, code, flags, payload.len() as u32, payload, files);
}

fn send_as(to: &UnixStream, code: u32, flags: u32, len: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
    let head: Vec<u8> = [code, flags, len].iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let parts = [IoSlice::new(&head), IoSlice::new(payload)];
    // The other side may have ended it.
    let _ = sendmsg(to, &parts, &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
