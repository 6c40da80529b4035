//! A guest without a virtual machine: memory, rings and a driver of virtio-blk, for tests and for load.
//!
//! Each queue has slots for requests. A slot has three descriptors, one after the other, and 64 KiB of memory
//! for data.

#![allow(clippy::disallowed_methods, reason = "a guest waits in real time")]
#![allow(dead_code, unreachable_pub, reason = "each user of this module uses a part of it")]
#![allow(missing_docs, clippy::missing_panics_doc, reason = "for tests")]

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

pub const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const FLUSH: u32 = 4;
pub const ID: u32 = 8;
pub const DISCARD: u32 = 11;
pub const ZERO: u32 = 13;

pub const FEATURE_FLUSH: u64 = 1 << 9;
pub const FEATURE_EVENT_INDEX: u64 = 1 << 29;
pub const PROTOCOL: u64 = 1 << 30;

/// Descriptors of a queue.
pub const QUEUE: u16 = 256;
/// Requests at a time in a queue.
pub const SLOTS: u16 = 64;
pub const DATA: usize = 64 << 10;
const SLOT: usize = DATA + 8192;
const RINGS: usize = 64 << 10;
const QUEUE_BYTES: usize = RINGS + SLOT * SLOTS as usize;
/// Where the guest's memory begins, for the guest.
pub const GUEST: u64 = 0x1_0000_0000;

/// Memory that is shared with the server.
pub struct Memory {
    pub file: File,
    start: NonNull<u8>,
    pub len: usize,
}

// SAFETY: memory that two programs use anyway.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(queues: usize) -> Arc<Self> {
        let len = queues * QUEUE_BYTES;
        // SAFETY: the name ends with a zero; the descriptor is new.
        let file =
            unsafe { File::from_raw_fd(libc::memfd_create(c"test-guest".as_ptr(), libc::MFD_CLOEXEC)) };
        file.set_len(len as u64).unwrap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever there is room.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(start, libc::MAP_FAILED);
        Arc::new(Self { file, start: NonNull::new(start.cast()).unwrap(), len })
    }

    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len);
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.len);
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(at).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    }

    pub fn number(&self, at: usize) -> &AtomicU16 {
        assert!(at + 2 <= self.len && at.is_multiple_of(2));
        // SAFETY: inside the mapping, which is there as long as this.
        unsafe { AtomicU16::from_ptr(self.start.as_ptr().add(at).cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped so.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// What the driver has of a queue. It outlives connections.
pub struct Queue {
    base: usize,
    pub available: u16,
    used: u16,
    pub free: Vec<u16>,
    kicked: u16,
    pub kick: EventFd,
    pub call: EventFd,
    has_event_index: bool,
}

/// An answer: the slot, the status, and how many bytes were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    pub slot: u16,
    pub status: u8,
    pub len: u32,
}

impl Queue {
    fn new(number: usize, has_event_index: bool) -> Self {
        let event = || EventFd::new(EFD_NONBLOCK).unwrap();
        Self {
            base: number * QUEUE_BYTES,
            available: 0,
            used: 0,
            free: (0..SLOTS).rev().collect(),
            kicked: 0,
            kick: event(),
            call: event(),
            has_event_index,
        }
    }

    fn slot(&self, slot: u16) -> usize {
        self.base + RINGS + SLOT * usize::from(slot)
    }

    pub fn data(&self, slot: u16) -> usize {
        self.slot(slot) + 4096
    }

    pub fn describe(&self, m: &Memory, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        let mut raw = address.to_le_bytes().to_vec();
        raw.extend(len.to_le_bytes());
        raw.extend(flags.to_le_bytes());
        raw.extend(next.to_le_bytes());
        m.write(self.base + 16 * usize::from(index), &raw);
    }

    /// Hands over a request, if there is a slot. `len` bytes of data are read or written.
    pub fn submit(&mut self, m: &Memory, kind: u32, prio: u32, sector: u64, len: u32) -> Option<u16> {
        let slot = self.free.pop()?;
        let at = self.slot(slot);
        let header = [&kind.to_le_bytes()[..], &prio.to_le_bytes(), &sector.to_le_bytes()].concat();
        m.write(at, &header);
        m.write(at + 16, &[0xff]);
        let head = 3 * slot;
        let guest = |at: usize| GUEST + at as u64;
        let for_device = if matches!(kind, READ | ID) { 2 } else { 0 };
        if len > 0 {
            self.describe(m, head, guest(at), 16, 1, head + 1);
            self.describe(m, head + 1, guest(self.data(slot)), len, 1 | for_device, head + 2);
        } else {
            self.describe(m, head, guest(at), 16, 1, head + 2);
        }
        self.describe(m, head + 2, guest(at + 16), 1, 2, 0);
        self.offer(m, head);
        Some(slot)
    }

    pub fn offer(&mut self, m: &Memory, head: u16) {
        m.write(self.base + 4096 + 4 + 2 * usize::from(self.available % QUEUE), &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        m.number(self.base + 4096 + 2).store(self.available, Ordering::Release);
    }

    /// Tells the server, if it wants to hear of it.
    pub fn kick(&mut self, m: &Memory) {
        fence(Ordering::SeqCst);
        let before = std::mem::replace(&mut self.kicked, self.available);
        let wants = if self.has_event_index {
            let event = m.number(self.base + 8192 + 4 + 8 * usize::from(QUEUE)).load(Ordering::Relaxed);
            self.available.wrapping_sub(event).wrapping_sub(1) < self.available.wrapping_sub(before)
        } else {
            m.number(self.base + 8192).load(Ordering::Relaxed) & 1 == 0
        };
        if wants {
            self.kick.write(1).unwrap();
        }
    }

    /// Takes an answer, if there is one.
    pub fn take(&mut self, m: &Memory) -> Option<Done> {
        let index = m.number(self.base + 8192 + 2).load(Ordering::Acquire);
        if index == self.used {
            return None;
        }
        let mut raw = [0; 8];
        m.read(self.base + 8192 + 4 + 8 * usize::from(self.used % QUEUE), &mut raw);
        self.used = self.used.wrapping_add(1);
        let head = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        let slot = (head / 3) as u16;
        assert!(
            head.is_multiple_of(3) && slot < SLOTS && !self.free.contains(&slot),
            "{head} is given back twice"
        );
        let mut status = [0];
        m.read(self.slot(slot) + 16, &mut status);
        self.free.push(slot);
        let len = u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]);
        Some(Done { slot, status: status[0], len })
    }

    /// Asks for a signal with the next answer. Returns whether there is one already.
    fn ask_for_signal(&self, m: &Memory) -> bool {
        if self.has_event_index {
            m.number(self.base + 4096 + 4 + 2 * usize::from(QUEUE)).store(self.used, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        m.number(self.base + 8192 + 2).load(Ordering::Acquire) != self.used
    }

    /// Waits for an answer; `None` if none comes in time.
    pub fn wait(&mut self, m: &Memory, most: Duration) -> Option<Done> {
        let end = Instant::now() + most;
        loop {
            if let Some(done) = self.take(m) {
                return Some(done);
            }
            if self.ask_for_signal(m) {
                continue;
            }
            let left = end.checked_duration_since(Instant::now())?;
            let mut fd = libc::pollfd { fd: self.call.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&raw mut fd, 1, left.as_millis() as i32 + 1) };
            let _ = self.call.read();
        }
    }

    pub fn in_flight(&self) -> usize {
        usize::from(SLOTS) - self.free.len()
    }
}

/// What a guest asks of the server.
#[derive(Clone, Copy)]
pub struct Wishes {
    pub queues: usize,
    /// Features that are not wanted.
    pub without: u64,
    pub inflight: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { queues: 1, without: 0, inflight: true }
    }
}

/// See the module.
pub struct Guest {
    pub frontend: Option<Frontend>,
    pub memory: Arc<Memory>,
    pub queues: Vec<Queue>,
    pub features: u64,
    wishes: Wishes,
    inflight: Option<(VhostUserInflight, File)>,
}

impl Guest {
    pub fn connect(path: &Path, wishes: Wishes) -> Self {
        let memory = Memory::new(wishes.queues);
        let (queues, inflight) = (Vec::new(), None);
        let mut guest = Self { frontend: None, memory, queues, features: 0, wishes, inflight };
        guest.reconnect(path).unwrap();
        guest
    }

    /// Connects once more, as a virtual machine does after its server has gone.
    pub fn reconnect(&mut self, path: &Path) -> Result<(), vhost::Error> {
        self.frontend = None;
        let end = Instant::now() + Duration::from_secs(10);
        let socket = loop {
            match std::os::unix::net::UnixStream::connect(path) {
                Ok(socket) => break socket,
                Err(e) if Instant::now() > end => panic!("{}: {e}", path.display()),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut frontend = Frontend::from_stream(socket, self.wishes.queues as u64);
        frontend.set_owner()?;
        self.features = frontend.get_features()? & !self.wishes.without;
        let protocol = frontend.get_protocol_features()?;
        let mut wanted = VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::CONFIG;
        wanted |= VhostUserProtocolFeatures::INFLIGHT_SHMFD | VhostUserProtocolFeatures::REPLY_ACK;
        wanted |= VhostUserProtocolFeatures::BACKEND_REQ;
        frontend.set_protocol_features(protocol & wanted)?;
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        frontend.set_features(self.features)?;
        if self.wishes.inflight {
            if self.inflight.is_none() {
                let wanted = VhostUserInflight::new(0, 0, self.wishes.queues as u16, QUEUE);
                self.inflight = Some(frontend.get_inflight_fd(&wanted)?);
            }
            let (facts, file) = self.inflight.as_ref().unwrap();
            frontend.set_inflight_fd(facts, file.as_raw_fd())?;
        }
        frontend.set_mem_table(&[self.region()])?;
        let has_event_index = self.features & FEATURE_EVENT_INDEX != 0;
        while self.queues.len() < self.wishes.queues {
            self.queues.push(Queue::new(self.queues.len(), has_event_index));
        }
        for number in 0..self.queues.len() {
            self.start(&mut frontend, number)?;
        }
        self.frontend = Some(frontend);
        Ok(())
    }

    pub fn region(&self) -> VhostUserMemoryRegionInfo {
        VhostUserMemoryRegionInfo {
            guest_phys_addr: GUEST,
            memory_size: self.memory.len as u64,
            userspace_addr: self.memory.address(),
            mmap_offset: 0,
            mmap_handle: self.memory.file.as_raw_fd(),
        }
    }

    fn start(&self, frontend: &mut Frontend, number: usize) -> Result<(), vhost::Error> {
        let queue = &self.queues[number];
        frontend.set_vring_num(number, QUEUE)?;
        // As QEMU does after its server has gone.
        let used = self.memory.number(queue.base + 8192 + 2).load(Ordering::Acquire);
        frontend.set_vring_base(number, used)?;
        let base = self.memory.address() + queue.base as u64;
        let config = VringConfigData {
            queue_max_size: QUEUE,
            queue_size: QUEUE,
            flags: 0,
            desc_table_addr: base,
            used_ring_addr: base + 8192,
            avail_ring_addr: base + 4096,
            log_addr: None,
        };
        frontend.set_vring_addr(number, &config)?;
        frontend.set_vring_call(number, &queue.call)?;
        frontend.set_vring_kick(number, &queue.kick)?;
        frontend.set_vring_enable(number, true)
    }

    pub fn frontend(&mut self) -> &mut Frontend {
        self.frontend.as_mut().unwrap()
    }

    pub fn config(&mut self) -> Vec<u8> {
        let flags = VhostUserConfigFlags::empty();
        self.frontend().get_config(0, 60, flags, &[0; 60]).unwrap().1
    }

    /// Sends one request by the first queue and waits for it.
    pub fn ask(&mut self, kind: u32, sector: u64, data: &[u8], room: u32) -> (u8, Vec<u8>) {
        let (queue, m) = (&mut self.queues[0], &*self.memory);
        let slot = *queue.free.last().expect("a slot");
        m.write(queue.data(slot), data);
        let len = if data.is_empty() { room } else { data.len() as u32 };
        assert_eq!(queue.submit(m, kind, 0, sector, len), Some(slot));
        queue.kick(m);
        let done = queue.wait(m, Duration::from_secs(30)).expect("an answer");
        assert_eq!(done.slot, slot);
        let mut back = vec![0; room as usize];
        m.read(queue.data(slot), &mut back);
        (done.status, back)
    }

    pub fn read(&mut self, sector: u64, len: u32) -> Vec<u8> {
        let (status, data) = self.ask(READ, sector, &[], len);
        assert_eq!(status, 0);
        data
    }

    pub fn write(&mut self, sector: u64, data: &[u8]) {
        assert_eq!(self.ask(WRITE, sector, data, 0).0, 0);
    }
}

/// A range for a discard or zeroing.
pub fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
}
