//! The thread of a connection with TLS: what the client sends is decrypted for the front, and what the front
//! sends is encrypted for the client.
//!
//! ```text
//!   client ══TLS══► read_tls ─► rustls ─► to_front ──► front
//!          ◄══════ write_tls ◄─ rustls ◄── from_front ◄──
//! ```
//!
//! Buffers are bounded: it takes nothing from one side while the other has not taken what there is. So a
//! client that does not read stops its own front's end, and the front ends it as any other that does not
//! read. When the front hangs up, what it sent before goes to the client, for [`LINGER`] at most.
//!
//! A client that ends TLS properly has said all, and may still read. One that just closes its socket is gone.

use super::Tls;
use crate::peer::Certificate;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::ServerConnection;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes that are taken from the front at a time, and from the client.
const CHUNK: usize = 128 << 10;

/// The stack of a thread. The deepest calls are those of the handshake.
const STACK: usize = 512 << 10;

/// How many times in a row it receives from one side before it looks at the other.
const ROUNDS: usize = 8;

/// How long a client may take for what the front sent before it hung up.
const LINGER: Duration = Duration::from_secs(3);

/// The threads that there are; for the end of a server, which waits for them.
#[derive(Debug, Default)]
pub(in crate::nbd) struct Threads {
    count: Mutex<usize>,
    ended: Condvar,
}

impl Threads {
    /// Waits until there is none any more, or for this long.
    pub(in crate::nbd) fn wait(&self, most: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.ended.wait_timeout_while(count, most, |count| *count > 0));
    }

    fn add(&self, one: isize) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_add_signed(one);
        self.ended.notify_all();
    }
}

/// Counts as a thread as long as it lives.
struct Counted(Arc<Threads>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

/// What the front learns of a client: empty until its handshake is done; then its certificate, if it has one.
pub(in crate::nbd) type Secured = Arc<OnceLock<Option<Certificate>>>;

/// Has a thread speak TLS with the client of this socket. Returns the end of the front, which is plain, and
/// where the client's names will be.
///
/// # Errors
/// If there can be no more sockets or threads.
pub(in crate::nbd) fn start(tls: &Tls, client: OwnedFd) -> io::Result<(UnixStream, Secured)> {
    let (front, ours) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    rustix::io::ioctl_fionbio(&client, true)?;
    let mut session = ServerConnection::new(Arc::clone(&tls.config)).map_err(io::Error::other)?;
    // What is taken is bounded here.
    session.set_buffer_limit(None);
    let secured = Secured::default();
    let relay = Relay {
        session,
        client: Client::new(client),
        front: ours,
        secured: Arc::clone(&secured),
        to_front: Vec::new(),
        taken: 0,
        buffer: vec![0; CHUNK],
        hears_client: true,
        hears_front: true,
        ends: None,
    };
    tls.threads.add(1);
    let counted = Counted(Arc::clone(&tls.threads));
    let work = move || {
        let _counted = counted;
        relay.work();
    };
    thread::Builder::new().name("fairhead-tls".to_owned()).stack_size(STACK).spawn(work)?;
    Ok((front, secured))
}

/// The client's socket. What comes is read in large parts, as rustls asks for 4 KiB at a time.
struct Client {
    socket: OwnedFd,
    input: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Client {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, input: vec![0; CHUNK / 2].into(), start: 0, end: 0 }
    }

    const fn has_input(&self) -> bool {
        self.start < self.end
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.has_input() {
            (self.start, self.end) = (0, 0);
            self.end = rustix::io::read(&self.socket, &mut self.input[..])?;
        }
        let len = buffer.len().min(self.end - self.start);
        buffer[..len].copy_from_slice(&self.input[self.start..self.start + len]);
        self.start += len;
        Ok(len)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(&self.socket, parts, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// See the [module](self).
struct Relay {
    session: ServerConnection,
    client: Client,
    front: UnixStream,
    secured: Secured,
    /// What the front has not taken yet; of it, this much has been.
    to_front: Vec<u8>,
    taken: usize,
    buffer: Vec<u8>,
    /// Whether more may come.
    hears_client: bool,
    hears_front: bool,
    /// When it ends, if the front has hung up.
    ends: Option<Instant>,
}

/// What a step was about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    /// The socket has nothing, or no room.
    NotNow,
}

fn step(result: io::Result<usize>) -> io::Result<Step> {
    match result {
        Ok(_) => Ok(Step::Done),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Step::NotNow),
        Err(e) => Err(e),
    }
}

impl Relay {
    /// Works until one side is gone. Then both sockets are closed.
    #[allow(clippy::disallowed_methods, reason = "the client's patience is real time")]
    fn work(mut self) {
        loop {
            match self.pass() {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    // The front hears it first: a client that tries again at once finds its place free.
                    let _ = self.front.shutdown(Shutdown::Both);
                    // What the client did wrong is said to it, if there is room.
                    let _ = self.session.write_tls(&mut self.client);
                    break;
                }
            }
            let left = self.ends.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || self.sleep(left).is_err() {
                break;
            }
        }
        // The front hears the end at once, also if it holds its own end open.
        let _ = self.front.shutdown(Shutdown::Both);
    }

    /// Whether the handshake is done, and the client has shown its certificate if it has to.
    fn is_open(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// Passes on what can be passed on now. Returns whether there may be more.
    fn pass(&mut self) -> io::Result<bool> {
        self.send()?;
        self.give()?;
        for _ in 0..ROUNDS {
            if !self.wants_client() || step(self.receive())? == Step::NotNow {
                break;
            }
            self.give()?;
        }
        for _ in 0..ROUNDS {
            if !self.wants_front() || step(self.take())? == Step::NotNow {
                break;
            }
            self.send()?;
        }
        self.send()?;
        Ok(self.hears_front || self.session.wants_write())
    }

    const fn has_to_give(&self) -> bool {
        self.taken < self.to_front.len()
    }

    fn wants_client(&self) -> bool {
        self.hears_client && !self.has_to_give()
    }

    fn wants_front(&self) -> bool {
        self.hears_front && self.is_open() && !self.session.wants_write()
    }

    /// Receives from the client, and decrypts.
    fn receive(&mut self) -> io::Result<usize> {
        let len = self.session.read_tls(&mut self.client)?;
        let state = self.session.process_new_packets().map_err(io::Error::other)?;
        if self.is_open() && self.secured.get().is_none() {
            let first = self.session.peer_certificates().and_then(<[_]>::first);
            let _ = self.secured.set(first.map(|certificate| Certificate::parse(certificate)));
        }
        let waiting = state.plaintext_bytes_to_read();
        if waiting > 0 {
            self.taken = 0;
            self.to_front.resize(waiting, 0);
            self.session.reader().read_exact(&mut self.to_front)?;
        }
        if state.peer_has_closed() {
            self.hears_client = false;
        } else if len == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.send()?;
        Ok(len)
    }

    /// Gives the front what it has room for.
    fn give(&mut self) -> io::Result<()> {
        while self.has_to_give() {
            match (&self.front).write(&self.to_front[self.taken..]) {
                Ok(len) => self.taken += len,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // It takes nothing any more, and may still have something to say.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                    (self.hears_client, self.taken) = (false, self.to_front.len());
                }
                Err(e) => return Err(e),
            }
        }
        if !self.hears_client {
            let _ = self.front.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    /// Takes from the front, and encrypts.
    #[allow(clippy::disallowed_methods, reason = "the client's patience is real time")]
    fn take(&mut self) -> io::Result<usize> {
        let len = (&self.front).read(&mut self.buffer)?;
        if len == 0 {
            (self.hears_front, self.hears_client, self.taken) = (false, false, self.to_front.len());
            self.ends = Some(Instant::now() + LINGER);
            self.session.send_close_notify();
            return Ok(0);
        }
        self.session.writer().write_all(&self.buffer[..len])?;
        Ok(len)
    }

    /// Sends the client what its socket has room for.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if step(self.session.write_tls(&mut self.client))? == Step::NotNow {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Until one of the sockets is ready for what is to be done.
    fn sleep(&self, most: Option<Duration>) -> io::Result<()> {
        let mut client = PollFlags::empty();
        client.set(PollFlags::IN, self.wants_client());
        client.set(PollFlags::OUT, self.session.wants_write());
        let mut front = PollFlags::empty();
        front.set(PollFlags::IN, self.wants_front());
        front.set(PollFlags::OUT, self.has_to_give());
        // One that is gone, and of which nothing is wanted, would wake the thread again and again. The front
        // may hang up at any time.
        let mut all = Vec::with_capacity(2);
        if !client.is_empty() {
            all.push(PollFd::new(&self.client.socket, client));
        }
        let is_over = self.ends.is_some();
        if !is_over {
            all.push(PollFd::new(&self.front, front));
        }
        let has_more = self.wants_client() && self.client.has_input();
        let most = if has_more { Some(Duration::ZERO) } else { most };
        let most = most
            .map(|most| Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) });
        match poll(&mut all, most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let hung_up = all.last().is_some_and(|fd| fd.revents().contains(PollFlags::HUP));
        if hung_up && !is_over && front.is_empty() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}
