//! Sockets between a machine and its virtual machines (vsock), which need no network in either.
//!
//! An address is the number of a machine, its CID, and a port. The hypervisor vouches for the number, so a
//! client is known by it.
//!
//= man7 vsock.7

use rustix::net::sockopt::set_socket_reuseaddr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const LEN: libc::socklen_t = size_of::<libc::sockaddr_vm>() as libc::socklen_t;

fn address(cid: u32, port: u32) -> libc::sockaddr_vm {
    // SAFETY: numbers only, for which zeros are valid.
    let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    #[allow(clippy::cast_possible_truncation, reason = "the constant fits")]
    let family = libc::AF_VSOCK as libc::sa_family_t;
    (address.svm_family, address.svm_cid, address.svm_port) = (family, cid, port);
    address
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Listens on this port, for all machines that can reach it.
pub(crate) fn listen(port: u32) -> io::Result<OwnedFd> {
    // SAFETY: it names no memory.
    let fd = checked(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just made it for us.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // Not every kernel has it for such sockets.
    let _ = set_socket_reuseaddr(&socket, true);
    let address = address(libc::VMADDR_CID_ANY, port);
    // SAFETY: the kernel reads the address during the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), LEN) })?;
    // SAFETY: it names no memory.
    checked(unsafe { libc::listen(socket.as_raw_fd(), libc::SOMAXCONN) })?;
    Ok(socket)
}

/// Returns the machine at the other end.
pub(crate) fn peer(socket: &OwnedFd) -> Option<u32> {
    let (mut address, mut len) = (address(0, 0), LEN);
    // SAFETY: the kernel writes at most `len` bytes to the address, and their number to `len`, during the
    // call.
    let named = unsafe { libc::getpeername(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) };
    (named == 0 && i32::from(address.svm_family) == libc::AF_VSOCK).then_some(address.svm_cid)
}

/// Ends one or both directions.
pub(crate) fn shutdown(socket: &OwnedFd, how: std::net::Shutdown) {
    let how = match how {
        std::net::Shutdown::Read => libc::SHUT_RD,
        std::net::Shutdown::Write => libc::SHUT_WR,
        std::net::Shutdown::Both => libc::SHUT_RDWR,
    };
    // SAFETY: it names no memory. One that is shut down is what was wanted.
    unsafe { libc::shutdown(socket.as_raw_fd(), how) };
}
