//! Rights to space: what this process does for a caller, it does with those of the caller.
//!
//! A file system keeps blocks back for some users (ext4 for root), and no quota holds for a process with
//! `CAP_SYS_RESOURCE`. A server that root started has both rights and would lend them to all of its callers.
//! So a thread that takes space for a caller acts as the caller's user and group, for files only
//! (`setfsuid(2)`), and without that capability:
//!
//! ```text
//!   names:  Caller::act() ─► mkdir, create, … ─► the guard is dropped
//!   data:   Ring::personality(caller), made once by act() ─► write, fallocate as operations of the ring
//! ```
//!
//! The other capabilities stay, as the kernel has checked everything else before it asked. Between
//! two callers, a thread has the user of the process and not that capability ([`settle`]).
//!
//! Limits: a request of FUSE names one group, so a reserve for a group is found by that one alone, not by the
//! supplementary groups of the caller. User 0 counts as a caller with `CAP_SYS_RESOURCE`, all others as
//! callers without. A process of an ordinary user has no rights to lend, and nothing changes for it.

use crate::confine::privileges;
use rustix::process::{getegid, geteuid};
use std::io;
use std::sync::OnceLock;

/// The user and the group that a caller has for files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The bits of capabilities.
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const SYS_RESOURCE: u64 = 1 << 24;

/// What the process may do.
#[derive(Clone, Copy, Debug)]
struct Own {
    caller: Caller,
    capabilities: u64,
}

/// Looks up what the process may do. A mount calls this before it starts a thread: threads may be
/// [confined](crate::confine) as soon as they run, and the kernel refuses them the look.
///
/// # Errors
/// If the kernel does not tell.
pub(crate) fn look_up() -> io::Result<()> {
    Own::get().map(drop)
}

impl Own {
    /// As it was when this was asked first.
    fn get() -> io::Result<Self> {
        static OWN: OnceLock<Own> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(*own);
        }
        let caller = Caller { uid: geteuid().as_raw(), gid: getegid().as_raw() };
        let capabilities = privileges::permitted()?;
        Ok(*OWN.get_or_init(|| Self { caller, capabilities }))
    }

    const fn lends(&self) -> bool {
        self.capabilities & (SYS_RESOURCE | SETUID) != 0
    }

    const fn can_act(&self) -> bool {
        self.capabilities & SETUID != 0 && self.capabilities & SETGID != 0
    }

    /// What a thread that acts for no caller has.
    const fn usual(&self) -> u64 {
        self.capabilities & !SYS_RESOURCE
    }
}

/// From here on this thread has no right to space that is kept back, unless it [acts](Caller::act) for a
/// caller with that right.
///
/// # Errors
/// If what the process may do was not [looked up](look_up), and the kernel does not tell now.
pub(crate) fn settle() -> io::Result<()> {
    let own = Own::get()?;
    if own.capabilities & SYS_RESOURCE != 0 {
        // To give a capability up cannot be refused.
        let _ = privileges::set_effective(own.usual(), own.capabilities);
    }
    Ok(())
}

/// A thread that acts for a caller, until this is dropped.
#[derive(Debug)]
#[must_use = "the thread acts for the caller only while this is there"]
pub(crate) struct Acting(Option<Own>);

impl Caller {
    /// A caller that the kernel has no number for.
    pub(crate) const UNKNOWN: Self = Self { uid: 65_534, gid: 65_534 };

    /// Has this thread, which has [settled](settle), act for the caller.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn act(self) -> io::Result<Acting> {
        let own = Own::get()?;
        if !own.lends() {
            return Ok(Acting(None));
        }
        let acting = Acting(Some(own));
        let is_root = self.uid == 0;
        if own.can_act() && self != own.caller {
            // The group first. The capabilities for files go when the user is no longer root.
            set_ids(self);
        }
        let wanted = if is_root { own.capabilities } else { own.usual() };
        privileges::set_effective(wanted, own.capabilities)?;
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        let Some(own) = self.0 else { return };
        if own.can_act() {
            set_ids(own.caller);
        }
        // These are a part of those that are permitted.
        let _ = privileges::set_effective(own.usual(), own.capabilities);
    }
}

/// Sets the user and the group that this thread has for files.
fn set_ids(caller: Caller) {
    // SAFETY: these calls take numbers, and change this thread alone. The right to them was looked up.
    unsafe {
        libc::setfsgid(caller.gid);
        libc::setfsuid(caller.uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    /// The effective capabilities of this thread.
    fn effective() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_acts_for_a_caller_and_is_itself_again() {
        let own = Own::get().unwrap();
        if !own.can_act() || own.capabilities & SYS_RESOURCE == 0 {
            return println!("skipped: this process has no rights to lend");
        }
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str| File::create(folder.path().join(name)).unwrap().metadata().unwrap();
        let test = || {
            settle().unwrap();
            let usual = effective();
            assert_eq!(usual & SYS_RESOURCE, 0, "of its own it has no right to what is kept back");
            let acting = Caller { uid: 4001, gid: 4002 }.act().unwrap();
            let meta = made("a");
            assert_eq!((meta.uid(), meta.gid(), effective()), (4001, 4002, usual));
            drop(acting);
            assert_eq!((made("b").uid(), made("b").gid(), effective()), (0, 0, usual));
            let acting = Caller { uid: 0, gid: 0 }.act().unwrap();
            assert_eq!(effective(), usual | SYS_RESOURCE, "root has it");
            drop(acting);
            assert_eq!(effective(), usual);
        };
        thread::scope(|scope| scope.spawn(test).join().unwrap());
    }
}
