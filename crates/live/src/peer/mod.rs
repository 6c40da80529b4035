//! The other end of a socket: whose it is, what it may open, and who gives way when all places are taken.
//! Exports and devices of virtual machines ask the same.
//!
//! The kernel says who made a unix socket: its user, groups and process. A client over TCP is known by its
//! address alone, so it opens no export that is for some users. A client with TLS whose certificate was
//! verified is known by the names in that.

mod certificate;

pub(crate) use certificate::Certificate;

use crate::vsock;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// On whose account connections are counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Owner {
    User(u32),
    Address(IpAddr),
    Certificate(Certificate),
    /// A virtual machine, by its CID.
    Machine(u32),
    Unknown,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "uid {user}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Machine(cid) => write!(f, "cid {cid}"),
            Self::Certificate(certificate) => write!(f, "certificate {certificate}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    pub(crate) owner: Owner,
    /// The process; 0 if it is not known, as over TCP.
    pub(crate) process: i32,
    user: Option<u32>,
    groups: Vec<u32>,
    certificate: Option<Certificate>,
}

impl Peer {
    pub(crate) fn of_unix(socket: &UnixStream) -> Self {
        //= man7 unix.7 SO_PEERCRED
        let [process, user, group] = option(socket, libc::SO_PEERCRED, 3)[..] else { return Self::UNKNOWN };
        // A user of more than 256 other groups counts as in the first one alone.
        let mut groups = option(socket, libc::SO_PEERGROUPS, 256);
        groups.push(group);
        // A process of another namespace has the number 0.
        Self {
            owner: Owner::User(user),
            process: process as i32,
            user: Some(user),
            groups,
            certificate: None,
        }
    }

    pub(crate) fn of_tcp(socket: &TcpStream) -> Self {
        let owner = socket.peer_addr().map_or(Owner::Unknown, |at| Owner::Address(at.ip()));
        Self { owner, ..Self::UNKNOWN }
    }

    pub(crate) fn of_vsock(socket: &OwnedFd) -> Self {
        let owner = vsock::peer(socket).map_or(Owner::Unknown, Owner::Machine);
        Self { owner, ..Self::UNKNOWN }
    }

    /// The client has proved who it is.
    pub(crate) fn proves(&mut self, certificate: Certificate) {
        self.owner = Owner::Certificate(certificate.clone());
        self.certificate = Some(certificate);
    }

    const UNKNOWN: Self =
        Self { owner: Owner::Unknown, process: 0, user: None, groups: Vec::new(), certificate: None };
}

/// The numbers that an option of a socket consists of, if they are at most `most`; else none.
fn option(socket: &UnixStream, name: libc::c_int, most: usize) -> Vec<u32> {
    let mut numbers = vec![0_u32; most];
    let mut len = size_of_val(&numbers[..]) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to the numbers, and their size to `len`, during the call.
    let result = unsafe {
        let at = numbers.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, at, &raw mut len)
    };
    numbers.truncate(if result == 0 { len as usize / size_of::<u32>() } else { 0 });
    numbers
}

/// The clients that may open an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Allowed {
    /// Every client of the socket.
    All,
    /// Clients over a unix socket of one of these users, or in one of these groups; and those with TLS whose
    /// certificate has one of these names.
    Some { users: Vec<u32>, groups: Vec<u32>, names: Vec<String> },
}

impl Allowed {
    pub(crate) fn allows(&self, peer: &Peer) -> bool {
        match self {
            Self::All => true,
            Self::Some { users, groups, names } => {
                peer.user.is_some_and(|user| users.contains(&user))
                    || peer.groups.iter().any(|g| groups.contains(g))
                    || peer.certificate.as_ref().is_some_and(|c| names.iter().any(|name| c.is(name)))
            }
        }
    }
}

/// A connection that has chosen its export.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) slot: usize,
    pub(crate) peer: &'a Peer,
    /// Whether it waits for nothing.
    pub(crate) is_idle: bool,
    /// How long it has said nothing, in ns.
    pub(crate) silent: u64,
}

/// The connection that gives way to a newcomer when all places are taken: one of the owner that has the most,
/// if that is more than the newcomer's owner would have, and of its process that has the most. Within one
/// owner, a process that has more than the newcomer's would have gives way. An idle connection goes before a
/// busy one, and of those the one that has been silent longest.
pub(crate) fn gives_way(holders: &[Holder<'_>], newcomer: &Peer) -> Option<usize> {
    let (mut owners, mut processes) = (BTreeMap::new(), BTreeMap::new());
    for h in holders {
        *owners.entry(&h.peer.owner).or_insert(0) += 1;
        *processes.entry((&h.peer.owner, h.peer.process)).or_insert(0) += 1;
    }
    let count = |peer: &Peer| {
        let of_owner = owners.get(&peer.owner).copied().unwrap_or(0);
        (of_owner, processes.get(&(&peer.owner, peer.process)).copied().unwrap_or(0))
    };
    let (owner, process): (usize, usize) = count(newcomer);
    let has_more = |h: &&Holder<'_>| {
        let (of_owner, of_process) = count(h.peer);
        of_owner > owner + 1 || (h.peer.owner == newcomer.owner && of_process > process + 1)
    };
    let found = holders.iter().filter(has_more).max_by_key(|h| (count(h.peer), h.is_idle, h.silent));
    found.map(|h| h.slot)
}

#[cfg(test)]
mod tests {
    use super::certificate::tests::certificate;
    use super::*;

    fn peer(user: u32, process: i32) -> Peer {
        Peer { owner: Owner::User(user), process, user: Some(user), groups: vec![user], ..Peer::UNKNOWN }
    }

    fn holders(peers: &[Peer]) -> Vec<Holder<'_>> {
        let silent = |slot: usize| slot as u64;
        peers
            .iter()
            .enumerate()
            .map(|(slot, peer)| Holder { slot, peer, is_idle: true, silent: silent(slot) })
            .collect()
    }

    #[test]
    fn the_owner_with_the_most_connections_gives_way() {
        let mut peers = vec![peer(1, 10); 5];
        peers.extend([peer(2, 20), peer(2, 21), peer(3, 30)]);
        let mut all = holders(&peers);
        assert_eq!(gives_way(&all, &peer(3, 31)), Some(4), "the one that was silent longest");
        all[4].is_idle = false;
        assert_eq!(gives_way(&all, &peer(3, 31)), Some(3), "an idle one");
        assert_eq!(gives_way(&all, &peer(1, 11)), Some(3), "a process with few of an owner with many");
        assert_eq!(gives_way(&all, &peer(1, 10)), None, "it has the most itself");
    }

    #[test]
    fn where_all_have_the_same_no_connection_gives_way() {
        let peers: Vec<Peer> = (0..8).map(|i| peer(i, 100)).collect();
        assert_eq!(gives_way(&holders(&peers), &peer(9, 1)), None);
        let of_one: Vec<Peer> = (0..8).map(|i| peer(1, i)).collect();
        assert_eq!(gives_way(&holders(&of_one), &peer(1, 9)), None, "one connection each");
        assert_eq!(gives_way(&holders(&of_one), &peer(2, 9)), Some(7));
    }

    #[test]
    fn an_export_for_some_is_for_no_other() {
        let only = Allowed::Some { users: vec![7], groups: vec![3, 4], names: vec!["alice".to_owned()] };
        assert!(only.allows(&peer(7, 1)) && only.allows(&peer(4, 1)) && !only.allows(&peer(8, 1)));
        let remote = Peer { owner: Owner::Address(IpAddr::from([127, 0, 0, 1])), ..Peer::UNKNOWN };
        let mut alice = remote.clone();
        alice.proves(Certificate::parse(&certificate("alice", &[])));
        let mut bob = remote.clone();
        bob.proves(Certificate::parse(&certificate("bob", &[])));
        assert!(only.allows(&alice) && !only.allows(&bob));
        assert!(!only.allows(&remote) && Allowed::All.allows(&remote) && !only.allows(&Peer::UNKNOWN));
    }

    #[test]
    fn the_kernel_says_whose_a_socket_is() {
        let (ours, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of_unix(&ours);
        let me = rustix::process::getuid().as_raw();
        assert_eq!((peer.owner, peer.process), (Owner::User(me), std::process::id() as i32));
        assert!(peer.groups.contains(&rustix::process::getgid().as_raw()));
    }
}
