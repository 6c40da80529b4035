//! Devices and their sockets: who connects, one at a time, and for how long.
//!
//! Each device has a thread, which waits at its socket, takes messages and hands them to its [`Session`]. It
//! does nothing for requests, so it sleeps most of the time. A connection that ends is followed by the next
//! one, for ever. A virtual machine that stops in the middle of a message is hung up on.
//!
//! Once a second the thread looks at the size of the image. If it has changed, the device has another size,
//! and the virtual machine gets a message.
//!
//! The crate `vhost` has no way to tell it that: of the socket for messages to the virtual machine, it gives
//! out a wrapper that can send other things only. So the message that brings this socket is received here.
//!
//! Source: QEMU's documentation, *Vhost-user Protocol*, "Back-end communication".

use super::command::{Command, What};
use super::session::{Engine, Session};
use super::shared::Shared;
use crate::disk;
use crate::peer::{Allowed, Peer};
use crate::socket::ForWhom;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use std::fs::File;
use std::io::{self, IoSliceMut, PipeReader, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use vhost::vhost_user::BackendReqHandler;

/// A file that a virtual machine may use as a disk.
#[derive(Clone, Debug)]
pub struct Device {
    /// The socket that the virtual machine connects to.
    pub socket: PathBuf,
    /// The file or block device.
    pub file: PathBuf,
    /// The name, for statistics.
    pub name: String,
    /// The group on whose account it is used.
    pub group: String,
    /// Whether writes are refused.
    pub read_only: bool,
    /// The name that the guest sees, of which 20 bytes are used.
    pub serial: String,
    /// How many queues there may be, 1 to 64.
    pub queues: u16,
    /// The users whose virtual machines may have it. Default: none is named, here and in `allow_gids`; then
    /// only the owner of the server and root can open the socket.
    pub allow_uids: Vec<u32>,
    /// The groups whose users' virtual machines may have it, too.
    pub allow_gids: Vec<u32>,
}

/// The most queues of a device.
pub const QUEUES_MAX: u16 = 64;

impl Device {
    /// A device in a group of its own, which has its name, as the serial number has.
    #[must_use]
    pub fn new(name: impl Into<String>, socket: impl Into<PathBuf>, file: impl Into<PathBuf>) -> Self {
        let name = name.into();
        Self {
            socket: socket.into(),
            file: file.into(),
            group: name.clone(),
            serial: name.clone(),
            name,
            read_only: false,
            queues: QUEUES_MAX,
            allow_uids: Vec::new(),
            allow_gids: Vec::new(),
        }
    }

    /// Returns the users that can open the socket, and those of them that are served.
    pub(super) fn allowed(&self) -> (ForWhom, Allowed) {
        if self.allow_uids.is_empty() && self.allow_gids.is_empty() {
            return (ForWhom::Owner, Allowed::All);
        }
        let own = [0, rustix::process::geteuid().as_raw()];
        let users = self.allow_uids.iter().copied().chain(own).collect();
        (ForWhom::All, Allowed::Some { users, groups: self.allow_gids.clone(), names: Vec::new() })
    }
}

/// How often the size of the image is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long the rest of a message may take.
const MESSAGE_MAX: Duration = Duration::from_secs(10);

/// The bytes in front of each message, and the numbers of two of them.
const HEADER: usize = 12;
const SET_BACKEND_REQ_FD: u32 = 21;
const CONFIG_CHANGE_MSG: u32 = 2;

/// Flags of a message: the version, "this is a reply", and "say when it is done".
const VERSION: u32 = 1;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;

/// The way to the engine's thread.
#[derive(Clone, Debug)]
pub(super) struct ToEngine {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) disk: Arc<disk::Shared>,
}

impl Engine for ToEngine {
    fn tell(&self, command: Command) -> bool {
        self.commands.send(command).is_ok() && self.disk.wake()
    }
}

/// A device's thread.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) device: usize,
    pub(super) listener: UnixListener,
    pub(super) image: Arc<File>,
    pub(super) shared: Arc<Shared>,
    pub(super) engine: ToEngine,
    pub(super) allowed: Allowed,
    /// Has an end when the server stops.
    pub(super) stop: PipeReader,
}

/// What came of waiting for a message.
enum Came {
    Message { code: u32, flags: u32 },
    Nothing,
    Gone,
}

impl Door {
    /// Starts the thread.
    pub(super) fn start(self) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        thread::Builder::new().name("fairhead-vhost".to_owned()).spawn(move || self.serve()).map(|_| ())
    }

    fn serve(self) {
        for session in 1.. {
            let Some(stream) = self.accept() else { return };
            if !self.converse(stream, session) {
                return;
            }
        }
    }

    /// Waits for the next connection; `None` if the server stops.
    fn accept(&self) -> Option<UnixStream> {
        loop {
            match self.wait(&self.listener, LOOK) {
                Ok(true) => {
                    if let Ok((stream, _)) = self.listener.accept()
                        && self.allowed.allows(&Peer::of_unix(&stream))
                    {
                        return Some(stream);
                    }
                    // It may not, has gone again, or the process has no room for another file.
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(false) => _ = self.look_at_size(),
                Err(()) => return None,
            }
        }
    }

    /// Waits until there is something to read. Returns whether there is; an error if the server stops.
    fn wait(&self, from: &impl std::os::fd::AsFd, most: Duration) -> Result<bool, ()> {
        let mut all = [PollFd::new(from, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        let most =
            rustix::event::Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut all, Some(&most)) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(_) => Err(()),
            Ok(_) if !all[1].revents().is_empty() => Err(()),
            Ok(_) => Ok(!all[0].revents().is_empty()),
        }
    }

    /// Has a conversation. Returns whether the server still runs.
    fn converse(&self, stream: UnixStream, id: u64) -> bool {
        let limits =
            stream.set_read_timeout(Some(MESSAGE_MAX)).and(stream.set_write_timeout(Some(MESSAGE_MAX)));
        let (Ok(()), Ok(own)) = (limits, stream.try_clone()) else { return true };
        let session = Session::new(self.engine.clone(), self.device, id, Arc::clone(&self.shared));
        let session = Arc::new(Mutex::new(session));
        let mut handler = BackendReqHandler::from_stream(own, Arc::clone(&session));
        let mut back = None;
        let goes_on = loop {
            match self.next(&stream) {
                Err(()) => break false,
                Ok(Came::Gone) => break true,
                Ok(Came::Nothing) => {
                    let hears = || session.lock().unwrap_or_else(PoisonError::into_inner).hears_changes();
                    if self.look_at_size()
                        && hears()
                        && let Some(socket) = &back
                    {
                        tell_of_change(socket);
                    }
                }
                Ok(Came::Message { code: SET_BACKEND_REQ_FD, flags }) => match take_socket(&stream, flags) {
                    Some(socket) => back = Some(socket),
                    None => break true,
                },
                Ok(Came::Message { .. }) => {
                    if handler.handle_request().is_err() {
                        break true;
                    }
                }
            }
        };
        self.engine.tell(Command { device: self.device, session: id, what: What::End });
        let _ = stream.shutdown(std::net::Shutdown::Both);
        goes_on
    }

    /// Waits for the next message, and looks at its head.
    fn next(&self, stream: &UnixStream) -> Result<Came, ()> {
        if !self.wait(stream, LOOK)? {
            return Ok(Came::Nothing);
        }
        for _ in 0..MESSAGE_MAX.as_millis() / 10 {
            let mut head = [0u8; HEADER];
            match recv(stream, &mut head, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((HEADER, _)) => {
                    let number =
                        |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
                    return Ok(Came::Message { code: number(0), flags: number(4) });
                }
                Ok((0, _)) => return Ok(Came::Gone),
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(_) => return Ok(Came::Gone),
            }
            if self.wait(&self.stop, Duration::from_millis(10)).is_err() {
                return Err(());
            }
        }
        Ok(Came::Gone)
    }

    /// Returns whether the image has another size than before.
    fn look_at_size(&self) -> bool {
        let Ok(size) = (&*self.image).seek(SeekFrom::End(0)) else { return false };
        self.shared.set_size(size) / 512 != size / 512
    }
}

/// Receives the message with the socket for messages to the virtual machine.
fn take_socket(stream: &UnixStream, flags: u32) -> Option<OwnedFd> {
    let mut head = [0u8; HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut head)];
    let received = recvmsg(stream, parts, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let socket = files.flatten().last().filter(|_| received.bytes == HEADER && head[8..] == [0; 4])?;
    if flags & NEED_REPLY != 0 {
        let numbers = [SET_BACKEND_REQ_FD, VERSION | REPLY, 8, 0, 0];
        let reply: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        send(stream, &reply, SendFlags::NOSIGNAL).ok()?;
    }
    Some(socket)
}

/// Says that the configuration has changed. A virtual machine that does not read that is not waited for.
fn tell_of_change(socket: &OwnedFd) {
    let message: Vec<u8> = [CONFIG_CHANGE_MSG, VERSION, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let _ = send(socket, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
