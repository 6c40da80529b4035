//! Privileges: the capabilities of a role, and no way to new ones.
//!
//! Root's process has all capabilities; an ordinary user's has none, and nothing changes for that one. The
//! capabilities that a role does not keep leave the permitted set, so no thread gets them back.

use super::Role;
use std::io;

/// A capability: its bit, its name, and the roles that keep it.
struct Capability {
    bit: u32,
    name: &'static str,
    roles: &'static [Role],
}

const ALL: &[Role] = &[Role::Serve, Role::Mount, Role::Emulate];
const MOUNTS: &[Role] = &[Role::Mount, Role::Emulate];
const TREE: &[Role] = &[Role::Mount];

const fn keep(bit: u32, name: &'static str, roles: &'static [Role]) -> Capability {
    Capability { bit, name, roles }
}

/// Every capability that some role keeps. Those of a mount are a file server's: the kernel checks the rights
/// of callers, and the server then does what they may.
//= man7 capabilities.7
const KEPT: &[Capability] = &[
    // Owners and modes of files, as callers set them.
    keep(0, "CAP_CHOWN", TREE),
    // Files of other users: images, which are opened at the start; and those of a tree.
    keep(1, "CAP_DAC_OVERRIDE", ALL),
    // … and files by their handles.
    keep(2, "CAP_DAC_READ_SEARCH", ALL),
    keep(3, "CAP_FOWNER", TREE),
    keep(4, "CAP_FSETID", TREE),
    // To act as the caller who takes space.
    keep(6, "CAP_SETGID", TREE),
    keep(7, "CAP_SETUID", TREE),
    // The flags of `chattr +i` and `+a`.
    keep(9, "CAP_LINUX_IMMUTABLE", TREE),
    // Ports below 1024, at the start.
    keep(10, "CAP_NET_BIND_SERVICE", ALL),
    // Memory that rings and the kernel share, beyond the limit of users.
    keep(14, "CAP_IPC_LOCK", ALL),
    // To mount and to unmount; extended attributes named `trusted.`.
    keep(21, "CAP_SYS_ADMIN", MOUNTS),
    // Real-time priority: of an emulated disk's thread, and of requests.
    keep(23, "CAP_SYS_NICE", ALL),
    // Pipes beyond the limit of users; in a mount, space that is kept back for root, for root's requests.
    keep(24, "CAP_SYS_RESOURCE", ALL),
    // Device nodes in a tree.
    keep(27, "CAP_MKNOD", TREE),
    // Capabilities of programs in a tree, as `cp -a` sets them.
    keep(31, "CAP_SETFCAP", TREE),
];

/// Whether this thread may call `mount(2)`, and not only `fusermount3` for it.
#[must_use]
pub fn may_mount() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    get().is_ok_and(|set| set & SYS_ADMIN != 0)
}

/// Gives up all capabilities but those of the role. Returns the names of those that are left.
pub(super) fn drop_others(role: Role) -> io::Result<Vec<&'static str>> {
    let kept = KEPT.iter().filter(|c| c.roles.contains(&role)).fold(0_u64, |set, c| set | 1 << c.bit);
    let now = get()?;
    let left = now & kept;
    set(left, left)?;
    Ok(KEPT.iter().filter(|c| left & (1 << c.bit) != 0).map(|c| c.name).collect())
}

/// Returns the capabilities that this thread may use.
pub(crate) fn permitted() -> io::Result<u64> {
    get()
}

/// Uses these of the capabilities that this thread has, and no others, until the next call.
///
/// # Errors
/// If it does not have all of them.
pub(crate) fn set_effective(effective: u64, permitted: u64) -> io::Result<()> {
    set(effective, permitted)
}

/// The process and those that it starts get no new privileges from programs.
pub(super) fn forbid_new() -> io::Result<()> {
    // SAFETY: it takes numbers only.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The third version of the call, which has 64 bits in two parts.
//= linux include/uapi/linux/capability.h _LINUX_CAPABILITY_VERSION_3
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Part {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn get() -> io::Result<u64> {
    let (mut header, mut parts) = (Header { version: VERSION, pid: 0 }, [Part::default(); 2]);
    // SAFETY: the kernel writes two parts for this version, and the header if the version is wrong.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut parts) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from(parts[0].permitted) | u64::from(parts[1].permitted) << 32)
}

fn set(effective: u64, permitted: u64) -> io::Result<()> {
    let part = |shift: u32| Part {
        effective: (effective >> shift) as u32,
        permitted: (permitted >> shift) as u32,
        inheritable: 0,
    };
    let (header, parts) = (Header { version: VERSION, pid: 0 }, [part(0), part(32)]);
    // SAFETY: the kernel reads the header and two parts for this version.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const parts) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
