//! One client's connection: its socket, what has come in, and what is to go out.
//!
//! Input arrives in a buffer, 64 KiB at a time. A large write changes that: its data go straight to where
//! they belong, and of what follows only a header goes to the input, so that the data of the next write stay
//! in the socket. Those of a write to a file in memory then go from there to a pipe
//! ([`Load`](crate::pipes::Load)), by calls that do not block ([`Came::Now`]); when the socket is empty, the
//! ring reports when there is more.
//!
//! Memory that the kernel has the address of, which is `input`, the data of a write and the `batch`, stays as
//! it is until the operation's outcome has come; so a connection that is dropped remains, dead, until both
//! its operations have ended.

use super::session::{Facts, Head, INPUT_MAX, REQUEST_HEADER, Request, Session, Step};
use super::tls::Tls;
use super::tls::relay::{self, Secured};
use crate::bio::ClientId;
use crate::buffer::Buffer;
use crate::data::Data;
use crate::mapped::Window;
use crate::peer::Peer;
use crate::pipes::Piped;
use crate::ring::{LARGE, Ring, Token};
use crate::turns::Tenant;
use crate::vsock;
use fairhead_core::units::{GroupId, Instant, TaskId};
use io_uring::opcode::{PollAdd, Recv, RecvMsg, SendMsg};
use io_uring::squeue::Entry;
use io_uring::types::Fd;
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The memory that input is read into at a time; and where there are very many connections.
const INPUT: usize = 64 << 10;
const INPUT_SMALL: usize = 4 << 10;
/// During the handshake it is this much, and [`INPUT_MAX`] once an option needs more.
const INPUT_FIRST: usize = 1 << 10;

/// Short replies share memory, up to this much.
const SHARED: usize = 16 << 10;

/// The steps of a new connection that are done even if others on its account have used up more than theirs.
const NEW: u32 = 16;

/// The data of a write of at least this many bytes are received straight into their buffer.
pub(super) const STRAIGHT: usize = 16 << 10;

/// The most data of a write that are received at a time if there are other connections: they wait while the
/// engine's thread copies them.
const FAIR: usize = 128 << 10;

/// The most parts of a message; the kernel takes 1024.
const PARTS_MAX: usize = 256;

/// Bytes that a unix socket takes before the client reads them: a few replies of 64 KiB, so that the next
/// ones are made while the client reads these. The usual 208 KiB are full after three. TCP sockets size their
/// own buffers.
const UNIX_ROOM: libc::c_int = 1 << 20;

/// A socket, of whatever kind.
#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Vsock(OwnedFd),
}

/// See [`Socket`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SocketKind {
    Unix,
    Tcp,
    Vsock,
}

impl Socket {
    pub(super) fn new(fd: OwnedFd, kind: SocketKind) -> Self {
        if kind == SocketKind::Vsock {
            return Self::Vsock(fd);
        }
        if kind == SocketKind::Unix {
            let room = UNIX_ROOM;
            let len = size_of_val(&room) as libc::socklen_t;
            // The system may give less; what does not fit is sent later.
            // SAFETY: the number is read during the call.
            let _ = unsafe {
                let at = (&raw const room).cast();
                libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, at, len)
            };
            return Self::Unix(fd.into());
        }
        let socket = TcpStream::from(fd);
        // Replies are whole: nothing is won by waiting for more of them.
        let _ = socket.set_nodelay(true);
        Self::Tcp(socket)
    }

    pub(super) fn peer(&self) -> Peer {
        match self {
            Self::Unix(s) => Peer::of_unix(s),
            Self::Tcp(s) => Peer::of_tcp(s),
            Self::Vsock(s) => Peer::of_vsock(s),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        // One that is shut down is what was wanted.
        let _ = match self {
            Self::Unix(s) => s.shutdown(how),
            Self::Tcp(s) => s.shutdown(how),
            Self::Vsock(s) => {
                vsock::shutdown(s, how);
                Ok(())
            }
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
            Self::Vsock(s) => s.as_fd(),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Unix(s) => s.as_raw_fd(),
            Self::Tcp(s) => s.as_raw_fd(),
            Self::Vsock(s) => s.as_raw_fd(),
        }
    }
}

/// A part of what goes out.
#[derive(Debug)]
pub(super) enum Out {
    Bytes(Vec<u8>),
    /// A reply, and the data of a read.
    Reply(Head, Option<Buffer>),
    /// The reply to a read, and data that are in a file.
    Mapped(Head, Window),
    /// The reply to a read of this many bytes, with its data.
    Piped(Piped, u64),
}

impl Out {
    /// Of what memory it holds, for the sake of its limit.
    pub(super) fn weight(&self) -> u64 {
        let data = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Reply(..) | Self::Mapped(..) | Self::Piped(..) => return self.data_len() + 64,
        };
        data as u64 + 64
    }

    /// The bytes of a read's data.
    fn data_len(&self) -> u64 {
        match self {
            Self::Bytes(_) => 0,
            Self::Reply(_, data) => data.as_ref().map_or(0, |d| d.len() as u64),
            Self::Mapped(_, window) => window.part().iov_len as u64,
            Self::Piped(_, len) => *len,
        }
    }

    fn parts(&self) -> [libc::iovec; 2] {
        let part =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        match self {
            Self::Bytes(bytes) => [part(bytes), part(&[])],
            Self::Reply(head, data) => [part(head.bytes()), part(data.as_deref().unwrap_or(&[]))],
            Self::Mapped(head, window) => [part(head.bytes()), window.part()],
            Self::Piped(..) => [part(&[]), part(&[])],
        }
    }
}

/// A write whose data are coming.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) request: Request,
    /// In memory, or in a pipe.
    pub(super) data: Data,
    pub(super) filled: usize,
}

impl Writing {
    const fn len(&self) -> usize {
        self.request.len as usize
    }

    /// Memory for the data that are still to come; `None` if they go to a pipe.
    fn rest(&mut self) -> Option<&mut [u8]> {
        match &mut self.data {
            Data::Memory(memory) => Some(&mut memory[self.filled..]),
            _ => None,
        }
    }
}

/// The connection's client, task and group in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) client: ClientId,
    pub(super) task: TaskId,
    pub(super) group: GroupId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Open,
    /// No further request is read; the connection ends when all is answered.
    Finishing,
    /// The connection has ended; its slot waits for the kernel to return its memory.
    Dead,
}

/// What became of a message.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The socket has taken this many bytes of it.
    Now(usize),
    /// The ring will say.
    Later,
    /// The socket is closed: nothing can be sent any more.
    Broken,
}

/// The outcome of [`Connection::receive`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// The ring will say.
    Later,
    /// Something is here.
    Now,
    /// The data that are arriving do not fit the pipe.
    NoRoom,
    /// Nothing will arrive any more.
    Broken,
}

/// Where the next bytes that come are put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// To the input, as much as there is room for.
    Input,
    /// To the data of a large write, and of what follows no more than one header to the input: if that is
    /// another large write's, its data can go straight to where they belong, too.
    Data,
    /// To a pipe, by a call; `is_there`: the ring has reported that there is something.
    Pipe { is_there: bool },
    /// A header that has to come after a large write.
    Header,
}

/// A message that the kernel is sending, or receives.
struct Message {
    parts: Vec<libc::iovec>,
    header: libc::msghdr,
}

// SAFETY: the addresses are those of memory that belongs to the same connection.
unsafe impl Send for Message {}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "message of {} parts", self.parts.len())
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) peer: Peer,
    pub(super) session: Session,
    pub(super) state: State,
    pub(super) identity: Option<Identity>,
    pub(super) began: Instant,
    /// When the client last took something, or nothing was there to take.
    pub(super) progress: Instant,
    /// When something last came from it.
    pub(super) heard: Instant,
    /// A request that has to wait for room.
    pub(super) asked: Option<Request>,
    pub(super) writing: Option<Writing>,
    /// Requests that are not answered, and what memory they and their replies hold.
    pub(super) open: u32,
    pub(super) held: u64,
    pub(super) is_receiving: bool,
    pub(super) is_sending: bool,
    /// It waits for memory, until something of its own is answered or sent, or for its tenant's turn.
    pub(super) is_waiting: bool,
    pub(super) is_held: bool,
    pub(super) is_in_line: bool,
    pub(super) is_dirty: bool,
    /// On whose account it works.
    pub(super) tenant: Tenant,
    /// Steps that are no I/O and are done before the account of its tenant matters.
    pub(super) news: u32,
    /// The version of the exports as of which its session knows what it may choose.
    pub(super) access_seen: Option<u64>,
    /// Whether its input is to be short.
    pub(super) is_small: bool,
    /// TLS begins when all has been sent; and what is known of the client once it has begun.
    pub(super) starts_tls: bool,
    pub(super) secured: Option<Secured>,
    input: Vec<u8>,
    start: usize,
    end: usize,
    target: Target,
    incoming: Box<Message>,
    out: VecDeque<Out>,
    unsent: u64,
    /// As much of that as is no data of reads.
    replies: u64,
    batch: Vec<Out>,
    sent: usize,
    message: Box<Message>,
}

impl Connection {
    pub(super) fn new(socket: Socket, peer: Peer, now: Instant) -> Self {
        // SAFETY: a message without parts and without an address, which is all zeros.
        let header = unsafe { std::mem::zeroed() };
        Self {
            socket,
            tenant: Tenant::Owner(peer.owner.clone()),
            peer,
            session: Session::new(),
            state: State::Open,
            identity: None,
            began: now,
            progress: now,
            heard: now,
            asked: None,
            writing: None,
            open: 0,
            held: 0,
            is_receiving: false,
            is_sending: false,
            is_waiting: false,
            is_held: false,
            is_in_line: false,
            is_dirty: false,
            news: NEW,
            access_seen: None,
            is_small: false,
            starts_tls: false,
            secured: None,
            input: vec![0; INPUT_FIRST],
            start: 0,
            end: 0,
            target: Target::Input,
            incoming: Box::new(Message { parts: Vec::new(), header }),
            out: VecDeque::new(),
            unsent: 0,
            replies: 0,
            batch: Vec::new(),
            sent: 0,
            message: Box::new(Message { parts: Vec::new(), header }),
        }
    }

    /// A thread speaks TLS with the client, and plainly with us.
    pub(super) fn start_tls(&mut self, tls: &Tls) -> io::Result<()> {
        debug_assert!(!self.is_receiving && !self.is_sending, "the kernel has nothing of the old socket");
        let client = self.socket.as_fd().try_clone_to_owned()?;
        let (plain, secured) = relay::start(tls, client)?;
        self.socket = Socket::new(plain.into(), SocketKind::Unix);
        self.secured = Some(secured);
        Ok(())
    }

    /// Handles the next bytes of input, unless they are data of a write. Returns how many that were.
    pub(super) fn step(&mut self, exports: &[Facts], out: &mut Vec<u8>) -> (usize, Step) {
        let (taken, step) = self.session.step(exports, &self.input[self.start..self.end], out);
        if step == Step::Data {
            self.take_data(taken);
        } else {
            self.take(taken);
        }
        (taken, step)
    }

    /// It did something that is no I/O, or is.
    pub(super) fn did(&mut self, is_io: bool) {
        self.news = if is_io { NEW.min(self.news + 1) } else { self.news.saturating_sub(1) };
    }

    /// What has come and was not looked at.
    pub(super) fn input(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    pub(super) fn take(&mut self, len: usize) {
        self.start += len;
        debug_assert!(self.start <= self.end);
    }

    /// Some of the input is data of the write.
    pub(super) fn take_data(&mut self, len: usize) {
        if let Some(w) = &mut self.writing {
            let data = w.rest().expect("a pipe takes data only from the socket");
            data[..len].copy_from_slice(&self.input[self.start..self.start + len]);
            w.filled += len;
        }
        self.take(len);
    }

    /// The write, if all its data are there.
    pub(super) fn written(&mut self) -> Option<Writing> {
        self.writing.take_if(|w| w.filled == w.len())
    }

    /// Asks the kernel for more. A write's data for a pipe are taken at once, as far as the socket has them;
    /// with `at_once`, a header behind a large write is, too. If there are other connections, it is no more
    /// than a [fair](FAIR) part.
    pub(super) fn receive(
        &mut self,
        ring: &mut Ring,
        token: Token,
        at_once: bool,
        has_others: bool,
    ) -> io::Result<Came> {
        self.make_room();
        let before = std::mem::replace(&mut self.target, Target::Input);
        self.target = self.next_target(before);
        let came = match self.target {
            Target::Pipe { .. } => self.receive_pipe(),
            Target::Header if at_once => self.receive_now(REQUEST_HEADER),
            _ => Came::Later,
        };
        if came == Came::Later {
            let entry = self.receive_entry(if has_others { FAIR } else { usize::MAX });
            self.is_receiving = true;
            // SAFETY: no code touches the message, the input, or the write, while `is_receiving`; the
            // connection stays until that ends.
            unsafe { ring.push(entry, token)? }
        }
        Ok(came)
    }

    /// Whether the next bytes go to the input.
    pub(super) fn is_plain(&self) -> bool {
        self.writing.is_none() && self.target == Target::Input && self.session.export().is_some()
    }

    /// Takes what has arrived, if it goes to the [input](Self::is_plain). Returns whether there was anything.
    /// Errors are left to the ring, which reports them, too.
    pub(super) fn receive_some(&mut self) -> bool {
        self.is_plain() && self.make_room() && self.receive_now(self.input.len()) == Came::Now
    }

    /// Makes room behind input that has not been processed. Returns whether there is any.
    fn make_room(&mut self) -> bool {
        let is_full = self.end - self.start == self.input.len();
        let least = match self.session.export() {
            Some(_) if self.is_small => INPUT_SMALL,
            Some(_) => INPUT,
            None if is_full => INPUT_MAX,
            None => 0,
        };
        if self.input.len() < least {
            self.input.resize(least, 0);
        }
        self.input.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.end < self.input.len()
    }

    fn receive_entry(&mut self, most: usize) -> Entry {
        let fd = Fd(self.socket.as_raw_fd());
        let input = match self.target {
            Target::Pipe { .. } => return PollAdd::new(fd, libc::POLLIN as u32).build(),
            Target::Input => &mut self.input[self.end..],
            Target::Data | Target::Header => &mut self.input[self.end..REQUEST_HEADER],
        };
        debug_assert!(!input.is_empty(), "a step needs no more than there is room for");
        let data = self.writing.as_mut().and_then(Writing::rest).filter(|_| self.target == Target::Data);
        let Some(data) = data else { return Recv::new(fd, input.as_mut_ptr(), input.len() as u32).build() };
        if data.len() > most {
            return Recv::new(fd, data.as_mut_ptr(), most as u32).build();
        }
        let Message { parts, header } = &mut *self.incoming;
        let part =
            |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        parts.clear();
        parts.extend([part(data), part(input)]);
        (header.msg_iov, header.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
        RecvMsg::new(fd, &raw mut *header).build()
    }

    fn next_target(&self, before: Target) -> Target {
        let is_behind = matches!(before, Target::Data | Target::Pipe { .. });
        let is_partial = before == Target::Header && self.end > 0;
        match &self.writing {
            Some(Writing { data: Data::Load(_), .. }) => match before {
                Target::Pipe { .. } => before,
                _ => Target::Pipe { is_there: false },
            },
            Some(w) if self.end == 0 && w.len() >= STRAIGHT => Target::Data,
            None if self.end < REQUEST_HEADER && (is_behind || is_partial) => Target::Header,
            _ => Target::Input,
        }
    }

    /// Moves data from the socket to the write's pipe.
    fn receive_pipe(&mut self) -> Came {
        let Some(Writing { data: Data::Load(load), filled, .. }) = &mut self.writing else {
            return Came::NoRoom;
        };
        let moved = match load.receive(self.socket.as_fd()) {
            Ok(moved) => moved,
            Err(_) => return Came::Broken,
        };
        *filled += moved;
        self.session.data_came(moved as u32);
        let was_there = std::mem::replace(&mut self.target, Target::Pipe { is_there: false })
            == Target::Pipe { is_there: true };
        match moved {
            _ if self.session.data_left() == 0 => Came::Now,
            0 if was_there => Came::NoRoom,
            _ => Came::Later,
        }
    }

    /// Puts what has arrived into the input, up to `end`.
    fn receive_now(&mut self, end: usize) -> Came {
        let input = &mut self.input[self.end..end];
        // SAFETY: the kernel writes to the input during the call.
        let n = unsafe {
            let at = input.as_mut_ptr().cast();
            libc::recv(self.socket.as_raw_fd(), at, input.len(), libc::MSG_DONTWAIT)
        };
        // Errors are left to the ring, which reports them, too.
        match usize::try_from(n) {
            Ok(n) if n > 0 => {
                self.end += n;
                Came::Now
            }
            _ => Came::Later,
        }
    }

    /// These bytes have come, as if from the socket.
    #[cfg(test)]
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.make_room();
        self.input.truncate(self.end);
        self.input.extend_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Notes that `len` bytes have arrived; or, if data are to go to a pipe, that there are some.
    pub(super) fn received(&mut self, len: usize) {
        if let Target::Pipe { is_there } = &mut self.target {
            *is_there = true;
            return;
        }
        let mut data = 0;
        if let (Target::Data, Some(w)) = (self.target, &mut self.writing) {
            data = len.min(w.len() - w.filled);
            w.filled += data;
            self.session.data_came(data as u32);
        }
        self.end += len - data;
    }

    /// Something is to be sent.
    pub(super) fn put(&mut self, out: Out) {
        self.unsent += out.weight();
        self.replies += out.weight() - out.data_len();
        self.out.push_back(out);
    }

    /// Short bytes are to be sent; those that follow on each other are put together.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        match self.out.back_mut() {
            Some(Out::Bytes(last)) if last.len() + bytes.len() <= SHARED => {
                last.extend_from_slice(bytes);
                self.unsent += bytes.len() as u64;
                self.replies += bytes.len() as u64;
            }
            _ => self.put(Out::Bytes(bytes.to_vec())),
        }
    }

    /// What memory the client leaves us with because it does not read.
    pub(super) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// As much of that as is no data of reads.
    pub(super) const fn replies(&self) -> u64 {
        self.replies
    }

    /// Whether there is something to send.
    pub(super) fn has_output(&self) -> bool {
        !self.batch.is_empty() || !self.out.is_empty()
    }

    /// The bytes that are sent next: as if the socket took them.
    #[cfg(test)]
    pub(super) fn next_len(&mut self) -> usize {
        if self.batch.is_empty() {
            self.fill_batch();
        }
        self.batch.iter().flat_map(Out::parts).map(|part| part.iov_len).sum()
    }

    /// Sends as much as fits a message: at once what the socket takes, which is answered; else through the
    /// ring. If there are other connections, a worker sends what is long.
    pub(super) fn send(&mut self, ring: &mut Ring, token: Token, has_others: bool) -> io::Result<Sent> {
        if self.batch.is_empty() {
            self.fill_batch();
        }
        if self.is_piping() {
            return self.send_pipe(ring, token);
        }
        let message = &mut *self.message;
        message.parts.clear();
        let mut skip = self.sent;
        for mut part in self.batch.iter().flat_map(Out::parts) {
            let skipped = skip.min(part.iov_len);
            skip -= skipped;
            part.iov_base = part.iov_base.wrapping_byte_add(skipped);
            part.iov_len -= skipped;
            if part.iov_len > 0 {
                message.parts.push(part);
            }
        }
        message.header.msg_iov = message.parts.as_mut_ptr();
        message.header.msg_iovlen = message.parts.len() as _;
        let (fd, header) = (self.socket.as_raw_fd(), &raw const message.header);
        let bytes: u64 = message.parts.iter().map(|part| part.iov_len as u64).sum();
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let send = SendMsg::new(Fd(fd), header).flags(flags).build();
        // Of short replies many fit, and to copy them here costs less than to wake a worker for each few.
        let is_long = bytes >= LARGE * self.batch.len() as u64;
        if has_others && is_long && ring.has_worker(bytes) {
            self.is_sending = true;
            // SAFETY: as below.
            unsafe { ring.push_apart(send, token)? }
            return Ok(Sent::Later);
        }
        // SAFETY: the kernel reads the message, its parts and the batch during the call.
        let sent = unsafe { libc::sendmsg(fd, header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
        if let Ok(sent) = usize::try_from(sent) {
            return Ok(Sent::Now(sent));
        }
        if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) && self.copy_windows() {
            return Ok(Sent::Now(0));
        }
        self.is_sending = true;
        // SAFETY: the message is in a box of its own, and neither it nor the batch is touched while
        // `is_sending`; the connection stays until that ends.
        unsafe { ring.push(send, token)? }
        Ok(Sent::Later)
    }

    /// Replaces bytes of a file that was cut with copies. Returns whether there were any.
    pub(super) fn copy_windows(&mut self) -> bool {
        let mut any = false;
        for out in &mut self.batch {
            if let Out::Mapped(_, window) = out {
                any |= window.copy();
            }
        }
        any
    }

    /// The next message: parts in memory, or one in pipes.
    fn fill_batch(&mut self) {
        let most = self.out.iter().take(PARTS_MAX / 2);
        let in_memory = most.take_while(|out| !matches!(out, Out::Piped(..))).count();
        self.batch.extend(self.out.drain(..in_memory.max(1)));
        self.sent = 0;
    }

    /// Whether what is sent now is in pipes.
    pub(super) fn is_piping(&self) -> bool {
        matches!(self.batch.first(), Some(Out::Piped(..)))
    }

    /// Sends from pipes what the socket takes. If it is full, the ring says when it has room.
    fn send_pipe(&mut self, ring: &mut Ring, token: Token) -> io::Result<Sent> {
        let Some(Out::Piped(piped, _)) = self.batch.first_mut() else { return Ok(Sent::Now(0)) };
        match piped.send(self.socket.as_fd()) {
            Ok(true) => return Ok(Sent::Now(0)),
            Ok(false) => {}
            Err(_) => return Ok(Sent::Broken),
        }
        self.is_sending = true;
        let poll = PollAdd::new(Fd(self.socket.as_raw_fd()), libc::POLLOUT as u32).build();
        // SAFETY: it names no memory.
        unsafe { ring.push(poll, token)? }
        Ok(Sent::Later)
    }

    /// Notes that `len` bytes have been sent. Returns how much memory is free again.
    pub(super) fn sent(&mut self, len: usize) -> u64 {
        self.sent += len;
        let all: usize = self.batch.iter().flat_map(Out::parts).map(|part| part.iov_len).sum();
        let is_over = match self.batch.first() {
            Some(Out::Piped(piped, _)) => piped.is_gone(),
            _ => self.sent >= all,
        };
        if !is_over {
            return 0;
        }
        let freed: u64 = self.batch.iter().map(Out::weight).sum();
        let data = self.batch.drain(..).map(|out| out.data_len()).sum();
        self.unsent -= freed;
        self.replies -= freed - data;
        data
    }
}
