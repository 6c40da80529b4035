//! Data that are not copied to memory on their way: pages go from a file to a socket, or from a socket to a
//! file, through a pipe.
//!
//! A read of a file that lives in memory is two copies in the server: from the file's pages to a buffer, and
//! from there to the socket. The kernel can hand over the pages themselves (`splice`). Then the only copy is
//! the client's. A MiB takes the server 70 us instead of 210.
//!
//! ```text
//!   file ── fill: references to its pages ──► pipe ── send ──► socket
//!                       reply's head ──────────┘
//! ```
//!
//! The scheduler sees no difference: [`Piped::fill`] is the read, and happens when the scheduler has issued
//! it. The client gets the pages as they are when it takes them from its socket. They may include a write
//! that another client was answered before that, which is right: the read does not end before its client has
//! the data, so the two are in flight together.
//!
//! **Writes** take the other direction. A client's data are in pages already when they lie in a unix socket.
//! From there they go to a pipe ([`Load::receive`]), wait in it for the scheduler, and are copied to the file
//! when it has issued them ([`Load::store`]): one copy instead of two. 64 KiB take the server 20 us instead
//! of 37.
//!
//! ```text
//!   socket ── receive: references to its pages ──► pipe ── store ──► file
//! ```
//!
//! **Bounded.** There are at most [`PIPES_MAX`] pipes. If none is free, or the file ends within the read, the
//! read is done with memory. [`Piped::unload`] then saves what other pieces of it have. A client that sends
//! few bytes at a time fills a pipe with nearly empty pages: then there is no room for the rest, and the
//! write is done with memory, too.
//!
//! What it does not do: wait. A socket that has no room leaves the rest in the pipe. If the client is gone,
//! the kernel raises SIGPIPE, which programs in Rust ignore from the start.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most pipes that are open: half of the pages that the kernel lets a user have in pipes.
//= man7 pipe.7 /proc/sys/fs/pipe-user-pages-soft
const PIPES_MAX: usize = 32;

/// The bytes that a pipe takes. The largest piece of a read is half of it; a pipe counts pages, of which the
/// first and the last may be used in part.
const ROOM: libc::c_int = 1 << 20;

/// The two ends of a pipe.
#[derive(Debug)]
struct Ends {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Ends {
    /// Makes a pipe; `None` if the system refuses it, or its size.
    fn new() -> Option<Self> {
        let (reader, writer) = io::pipe().ok()?;
        // SAFETY: it names no memory.
        let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, ROOM) };
        (room >= ROOM).then_some(Self { reader, writer })
    }
}

#[derive(Debug, Default)]
struct Free {
    /// Pipes with nothing in them.
    empty: Vec<Ends>,
    /// The number of pipes that are open.
    open: usize,
}

/// Empty pipes, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    free: Mutex<Free>,
}

impl Pipes {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reply that begins with `head`, without data yet.
    pub(crate) fn reply(self: &Arc<Self>, head: &[u8]) -> Piped {
        Piped { pipes: Arc::clone(self), head: head.into(), parts: Vec::new() }
    }

    /// The data of a write of `len` bytes, of which none has arrived; `None` if no pipe is free.
    pub(crate) fn load(self: &Arc<Self>, len: u32) -> Option<Load> {
        Some(Load { pipes: Arc::clone(self), ends: Some(self.take()?), len: len as usize, inside: 0 })
    }

    fn take(&self) -> Option<Ends> {
        let mut free = self.free();
        if let Some(ends) = free.empty.pop() {
            return Some(ends);
        }
        let ends = (free.open < PIPES_MAX).then(Ends::new)??;
        free.open += 1;
        Some(ends)
    }

    /// A pipe is not needed any more. One that has something in it is closed.
    fn give_back(&self, ends: Ends, is_empty: bool) {
        let mut free = self.free();
        if is_empty {
            free.empty.push(ends);
        } else {
            free.open -= 1;
        }
    }
}

/// A piece of a read, in a pipe of its own.
#[derive(Debug)]
struct Part {
    /// Where in the read's data it begins.
    at: u32,
    /// The bytes in the pipe; in front of the first piece is the head.
    left: usize,
    ends: Ends,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Piped {
    pipes: Arc<Pipes>,
    head: Box<[u8]>,
    /// In the order of the data.
    parts: Vec<Part>,
}

impl Piped {
    /// Reads `len` bytes of a file, which are those from `at` on of the data. Returns whether it could; if
    /// not, nothing has changed.
    pub(crate) fn fill(&mut self, file: BorrowedFd<'_>, offset: u64, at: u32, len: u32) -> bool {
        let Some(ends) = self.pipes.take() else { return false };
        let mut part = Part { at, left: 0, ends };
        let is_filled = self.fill_part(&mut part, file, offset, len).is_some();
        if is_filled {
            let place = self.parts.partition_point(|p| p.at < at);
            self.parts.insert(place, part);
        } else {
            self.pipes.give_back(part.ends, false);
        }
        is_filled
    }

    fn fill_part(&self, part: &mut Part, file: BorrowedFd<'_>, offset: u64, len: u32) -> Option<()> {
        if part.at == 0 {
            (&part.ends.writer).write_all(&self.head).ok()?;
            part.left = self.head.len();
        }
        let mut from = i64::try_from(offset).ok()?;
        let end = from.checked_add(i64::from(len))?;
        while from < end {
            let (into, most) = (part.ends.writer.as_raw_fd(), (end - from) as usize);
            // SAFETY: the kernel writes to `from` during the call.
            let moved = unsafe {
                libc::splice(file.as_raw_fd(), &raw mut from, into, null_mut(), most, libc::SPLICE_F_NONBLOCK)
            };
            match usize::try_from(moved) {
                Ok(0) => return None,
                Ok(moved) => part.left += moved,
                Err(_) if io::Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Copies the pieces that are there to where they belong in `data`.
    pub(crate) fn unload(mut self, data: &mut [u8]) -> io::Result<()> {
        for part in std::mem::take(&mut self.parts) {
            let mut left = part.left;
            if part.at == 0 {
                let mut head = vec![0; self.head.len()];
                (&part.ends.reader).read_exact(&mut head)?;
                left -= head.len();
            }
            (&part.ends.reader).read_exact(&mut data[part.at as usize..][..left])?;
            self.pipes.give_back(part.ends, true);
        }
        Ok(())
    }

    /// Whether everything has been sent.
    pub(crate) const fn is_gone(&self) -> bool {
        self.parts.is_empty()
    }

    /// Sends what the socket takes at once. Returns whether that was all.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let _unwaiting = Unwaiting::new(socket)?;
        let mut done = 0;
        let outcome = loop {
            let Some(part) = self.parts.get_mut(done) else { break Ok(true) };
            let (from, to) = (part.ends.reader.as_raw_fd(), socket.as_raw_fd());
            // SAFETY: it names no memory.
            let moved =
                unsafe { libc::splice(from, null_mut(), to, null_mut(), part.left, libc::SPLICE_F_NONBLOCK) };
            match usize::try_from(moved) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(moved) => part.left -= moved,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == ErrorKind::WouldBlock => break Ok(false),
                    e if e.kind() == ErrorKind::Interrupted => {}
                    e => break Err(e),
                },
            }
            done += usize::from(part.left == 0);
        };
        for part in self.parts.drain(..done) {
            self.pipes.give_back(part.ends, true);
        }
        outcome
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        for part in self.parts.drain(..) {
            self.pipes.give_back(part.ends, part.left == 0);
        }
    }
}

/// Data of a write, in a pipe. See the [module](self).
#[derive(Debug)]
pub(crate) struct Load {
    pipes: Arc<Pipes>,
    /// Until the data are in the file.
    ends: Option<Ends>,
    /// The bytes that are still to come, and those in the pipe.
    len: usize,
    inside: usize,
}

impl Load {
    /// Takes what a socket has. Returns how many bytes that was: 0 if nothing is there, or the pipe is full.
    ///
    /// # Errors
    /// Also if nothing will arrive any more.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let mut moved = 0;
        while self.len > 0 {
            let (from, to) = (socket.as_raw_fd(), ends.writer.as_raw_fd());
            // SAFETY: it names no memory.
            let n =
                unsafe { libc::splice(from, null_mut(), to, null_mut(), self.len, libc::SPLICE_F_NONBLOCK) };
            match usize::try_from(n) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.len -= n;
                    self.inside += n;
                    moved += n;
                }
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == ErrorKind::WouldBlock => break,
                    e if e.kind() == ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        Ok(moved)
    }

    /// Writes all to a file.
    pub(crate) fn store(&mut self, file: BorrowedFd<'_>, offset: u64) -> io::Result<()> {
        let Some(ends) = &self.ends else { return Ok(()) };
        let mut at = i64::try_from(offset).map_err(|_| ErrorKind::InvalidInput)?;
        while self.inside > 0 {
            let (from, to) = (ends.reader.as_raw_fd(), file.as_raw_fd());
            // SAFETY: the kernel writes to `at` during the call.
            let n = unsafe { libc::splice(from, null_mut(), to, &raw mut at, self.inside, 0) };
            match usize::try_from(n) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => self.inside -= n,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        self.give_back();
        Ok(())
    }

    /// Copies what has arrived to the first bytes of `data`.
    pub(crate) fn unload(mut self, data: &mut [u8]) -> io::Result<()> {
        if let Some(ends) = &self.ends {
            (&ends.reader).read_exact(&mut data[..self.inside])?;
            self.inside = 0;
        }
        Ok(())
    }

    fn give_back(&mut self) {
        if let Some(ends) = self.ends.take() {
            self.pipes.give_back(ends, self.inside == 0);
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A socket whose calls never block, as long as this lives. Only then does `splice` not wait for room in it.
/// At other times it blocks as usual: the ring does not wait for data of a socket that never blocks.
struct Unwaiting<'a>(BorrowedFd<'a>);

impl<'a> Unwaiting<'a> {
    fn new(socket: BorrowedFd<'a>) -> io::Result<Self> {
        Self::set(socket, 1)?;
        Ok(Self(socket))
    }

    fn set(socket: BorrowedFd<'_>, is_on: libc::c_int) -> io::Result<()> {
        // SAFETY: the kernel reads the number during the call.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONBIO, &raw const is_on) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Unwaiting<'_> {
    fn drop(&mut self) {
        // What could be switched on can be switched off.
        let _ = Self::set(self.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{AsFd, FromRawFd};
    use std::os::unix::net::UnixStream;

    /// A file in memory whose bytes tell where they are.
    fn file(len: usize) -> File {
        // SAFETY: the name ends with a zero; the descriptor is new.
        let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"pages".as_ptr(), 0)) };
        file.write_all(&bytes(0, len)).unwrap();
        file
    }

    fn bytes(from: usize, len: usize) -> Vec<u8> {
        (from..from + len).map(|i| (i / 512) as u8 ^ i as u8).collect()
    }

    #[test]
    fn pieces_go_out_in_order_and_a_full_socket_leaves_the_rest() {
        let (file, pipes) = (file(1 << 20), Arc::<Pipes>::default());
        let (socket, mut client) = UnixStream::pair().unwrap();
        let mut reply = pipes.reply(b"head");
        assert!(reply.fill(file.as_fd(), 400_100, 300_000, 200_000));
        assert!(reply.fill(file.as_fd(), 100_100, 0, 300_000));
        let mut got = Vec::new();
        let mut stops = 0;
        while !reply.send(socket.as_fd()).unwrap() {
            stops += 1;
            let mut some = vec![0; 1 << 20];
            let n = client.read(&mut some).unwrap();
            got.extend_from_slice(&some[..n]);
        }
        assert!(stops > 0, "208 KiB fit the socket");
        drop(socket);
        client.read_to_end(&mut got).unwrap();
        assert_eq!(got.len(), 500_004);
        assert_eq!((&got[..4], &got[4..]), (&b"head"[..], &bytes(100_100, 500_000)[..]));
        drop(reply);
        let free = pipes.free();
        assert_eq!((free.open, free.empty.len()), (2, 2), "both pipes can be used again");
    }

    #[test]
    fn a_socket_waits_as_before_after_a_reply() {
        let (file, pipes) = (file(1 << 16), Arc::<Pipes>::default());
        let (socket, _client) = UnixStream::pair().unwrap();
        let mut reply = pipes.reply(b"");
        assert!(reply.fill(file.as_fd(), 0, 0, 1 << 16));
        assert!(reply.send(socket.as_fd()).unwrap());
        // SAFETY: it names no memory.
        let flags = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_NONBLOCK, 0);
    }

    #[test]
    fn what_a_socket_has_goes_to_the_file_and_what_does_not_fit_the_pipe_to_memory() {
        let (file, pipes) = (file(1 << 20), Arc::<Pipes>::default());
        let (socket, mut client) = UnixStream::pair().unwrap();
        let mut load = pipes.load(100_000).unwrap();
        assert_eq!(load.receive(socket.as_fd()).unwrap(), 0, "nothing is there");
        let sender = std::thread::spawn(move || {
            client.write_all(&[&bytes(7, 100_000)[..], b"next"].concat()).unwrap();
            client
        });
        let mut came = 0;
        while came < 100_000 {
            came += load.receive(socket.as_fd()).unwrap();
        }
        let mut client = sender.join().unwrap();
        load.store(file.as_fd(), 4097).unwrap();
        let mut stored = vec![0; 100_000];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut stored, 4097).unwrap();
        assert!(stored == bytes(7, 100_000));
        let mut next = [0; 4];
        (&socket).read_exact(&mut next).unwrap();
        assert_eq!(&next, b"next", "no more than its own was taken");

        // The socket takes a little more than the pipe: no more than what both do.
        let (mut load, mut came) = (pipes.load(1000).unwrap(), 0);
        for byte in 0..400_u32 {
            client.write_all(&[byte as u8]).unwrap();
            came += load.receive(socket.as_fd()).unwrap();
        }
        assert!((200..400).contains(&came), "a page for each byte: {came}");
        let mut data = vec![0; 1000];
        load.unload(&mut data).unwrap();
        assert!(data[..came].iter().zip(0_u32..).all(|(b, i)| *b == i as u8));
        let mut load = pipes.load(100_000).unwrap();
        drop(client);
        while load.receive(socket.as_fd()).is_ok() {}
        drop(load);
        let free = pipes.free();
        assert_eq!((free.open, free.empty.len()), (0, 0), "the only one was closed with something in it");
    }

    #[test]
    fn a_file_that_takes_no_more_says_so() {
        let pipes = Arc::<Pipes>::default();
        // SAFETY: the name ends with a zero; the descriptor is new.
        let file =
            unsafe { File::from_raw_fd(libc::memfd_create(c"sealed".as_ptr(), libc::MFD_ALLOW_SEALING)) };
        file.set_len(8192).unwrap();
        // SAFETY: it names no memory.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) }, 0);
        let (socket, mut client) = UnixStream::pair().unwrap();
        client.write_all(&[7; 8192]).unwrap();
        let mut load = pipes.load(8192).unwrap();
        assert_eq!(load.receive(socket.as_fd()).unwrap(), 8192);
        assert_eq!(load.store(file.as_fd(), 4096).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn where_the_file_ends_or_pipes_are_used_up_memory_has_what_was_there() {
        let (file, pipes) = (file(100_000), Arc::<Pipes>::default());
        let mut reply = pipes.reply(b"head");
        assert!(reply.fill(file.as_fd(), 0, 0, 50_000));
        assert!(!reply.fill(file.as_fd(), 50_000, 50_000, 60_000), "10,000 bytes are missing");
        let others: Vec<Piped> = (1..PIPES_MAX)
            .map(|_| {
                let mut other = pipes.reply(b"");
                assert!(other.fill(file.as_fd(), 0, 0, 4096));
                other
            })
            .collect();
        assert!(!reply.fill(file.as_fd(), 50_000, 50_000, 10_000), "no pipe is left");
        let mut data = vec![9; 110_000];
        reply.unload(&mut data).unwrap();
        assert_eq!((&data[..50_000], &data[50_000..]), (&bytes(0, 50_000)[..], &vec![9; 60_000][..]));
        drop(others);
        let free = pipes.free();
        assert_eq!((free.open, free.empty.len()), (1, 1), "pipes with something in them are closed");
    }
}
