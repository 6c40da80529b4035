//! A socket that is listened on.

use crate::nbd::connection::SocketKind;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

/// A socket that is listened on.
#[derive(Debug)]
pub(in crate::nbd) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
    Vsock(OwnedFd),
}

impl Listener {
    pub(super) fn fd(&self) -> RawFd {
        match self {
            Self::Unix(l) => l.as_raw_fd(),
            Self::Tcp(l) => l.as_raw_fd(),
            Self::Vsock(l) => l.as_raw_fd(),
        }
    }

    pub(super) const fn kind(&self) -> SocketKind {
        match self {
            Self::Unix(_) => SocketKind::Unix,
            Self::Tcp(_) => SocketKind::Tcp,
            Self::Vsock(_) => SocketKind::Vsock,
        }
    }
}
