//! Floods: one message again and again, by many connections, as quickly as they are taken.

use crate::calls::{Home, call_of};
use crate::messages::{Message, of_control, of_guests, of_nbd};
use crate::vhost_guest::{Guest, Queue, Wishes};
use fairhead_live::control::words;
use fairhead_live::nbd::{COMMANDS, OPTIONS};
use fairhead_live::vhost::REQUESTS;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The bytes of messages that a connection sends over and over.
const COPIES: usize = 32 << 10;

/// The messages of NBD, as they are sent.
pub(crate) fn nbd() -> Vec<Message> {
    of_nbd(OPTIONS, COMMANDS, "evil")
}

/// The lines of control.
pub(crate) fn control() -> Vec<(String, String)> {
    of_control(&words().collect::<Vec<_>>())
}

struct Connection {
    socket: UnixStream,
    /// What comes first, and then what is repeated; how much of these was sent.
    before: Vec<u8>,
    sent: usize,
}

/// Sends `before` and then `bytes` without end by `count` connections; one that ends is made anew.
fn by_sockets(path: &Path, count: usize, reads: bool, before: &[u8], bytes: &[u8]) -> ! {
    let copies = bytes.repeat((COPIES / bytes.len()).max(1));
    let mut connections: Vec<Option<Connection>> = Vec::new();
    connections.resize_with(count, || None);
    let mut heard = vec![0; 1 << 20];
    loop {
        for place in connections.iter_mut().filter(|c| c.is_none()) {
            *place = UnixStream::connect(path)
                .ok()
                .filter(|s| s.set_nonblocking(true).is_ok())
                .map(|socket| Connection { socket, before: before.to_vec(), sent: 0 });
        }
        let mut polled: Vec<libc::pollfd> = connections
            .iter()
            .map(|c| {
                let fd = c.as_ref().map_or(-1, |c| c.socket.as_raw_fd());
                let events = libc::POLLOUT | if reads { libc::POLLIN } else { 0 };
                libc::pollfd { fd, events, revents: 0 }
            })
            .collect();
        // SAFETY: as many entries as it says.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 20) };
        for (place, polled) in connections.iter_mut().zip(&polled) {
            let Some(c) = place.as_mut().filter(|_| polled.revents != 0) else { continue };
            if exchange(c, polled.revents, &copies, &mut heard).is_err() {
                *place = None;
            }
        }
    }
}

fn exchange(c: &mut Connection, events: i16, copies: &[u8], heard: &mut [u8]) -> io::Result<()> {
    let later = |e: io::Error| if e.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(e) };
    if events & (libc::POLLHUP | libc::POLLERR) != 0 {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    if events & libc::POLLIN != 0 && c.socket.read(heard).or_else(later)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if events & libc::POLLOUT != 0 {
        let is_first = c.sent < c.before.len();
        let at = if is_first { c.sent } else { (c.sent - c.before.len()) % copies.len() };
        let from = if is_first { &c.before[at..] } else { &copies[at..] };
        c.sent += c.socket.write(from).or_else(later)?;
    }
    Ok(())
}

/// The message of this name, to `DIR/socket`.
pub(crate) fn flood_nbd(dir: &Path, name: &str, count: usize, reads: bool) -> ! {
    let message = nbd().into_iter().find(|m| m.name == name).expect("a message of this name");
    let before = [&3_u32.to_be_bytes()[..], &message.before].concat();
    by_sockets(&dir.join("socket"), count, reads, &before, &message.bytes)
}

/// The line of this name, to `DIR/control`.
pub(crate) fn flood_control(dir: &Path, name: &str, count: usize, reads: bool) -> ! {
    let (_, line) = control().into_iter().find(|(n, _)| n == name).expect("a line of this name");
    by_sockets(&dir.join("control"), count, reads, &[], line.as_bytes())
}

/// The request of this name, in all slots of `count` queues of the guest at `DIR/guest`.
pub(crate) fn flood_guest(dir: &Path, name: &str, count: usize) -> ! {
    let request = of_guests(REQUESTS).into_iter().find(|r| r.name == name).expect("a request of this name");
    let wishes = Wishes { queues: count, ..Wishes::default() };
    let mut guest = Guest::connect(&dir.join("guest"), wishes);
    let memory = guest.memory.clone();
    let len = request.data.len().max(request.room as usize) as u32;
    let fill = |queue: &mut Queue| {
        while let Some(&slot) = queue.free.last() {
            memory.write(queue.data(slot), &request.data);
            queue.submit(&memory, request.kind, 0, request.sector, len);
        }
        queue.kick(&memory);
    };
    loop {
        let mut any = false;
        for queue in &mut guest.queues {
            fill(queue);
            while queue.take(&memory).is_some() {
                any = true;
            }
        }
        if !any {
            let _ = guest.queues[0].wait(&memory, Duration::from_millis(1));
        }
    }
}

/// The call that has the kernel ask for this operation, by `count` threads, each in a folder of its own in
/// `DIR/mnt/evil`.
pub(crate) fn flood_calls(dir: &Path, operation: &str, count: usize) {
    let (call, _) = call_of(operation).expect("an operation with a call");
    std::thread::scope(|scope| {
        for i in 0..count {
            let at = dir.join("mnt/evil").join(i.to_string());
            scope.spawn(move || {
                if let Ok(home) = Home::new(&at) {
                    loop {
                        call(&home);
                    }
                }
            });
        }
    });
}
