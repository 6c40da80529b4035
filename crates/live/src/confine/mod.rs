//! Confinement: a server gives up what it does not need, so that a client who takes it over gains little.
//!
//! A server parses what strangers send. If one of them finds a hole, the process does what that one wants,
//! with all rights of its user. So the process gives up rights before it listens to anybody:
//!
//! ```text
//!   arguments ─► begin() ─────────► files, sockets, threads ─► finish() ───────────► clients
//!                in this thread,                               in all threads:
//!                which all others come from:                   - seccomp: the calls of calls.rs and no others
//!                - no_new_privs
//!                - capabilities: those of the role
//!                - landlock: files, TCP ports, signals
//! ```
//!
//! **What is allowed** depends on the [`Role`]. One table has all system calls (`calls.rs`): to allow another
//! one, add a line there. Files are named by the caller ([`Confinement::file`] and its neighbours).
//!
//! - *Serve* opens nothing after `finish`, and before that only what the arguments name. Landlock holds even
//!   for what passes by seccomp: the operations of io_uring.
//! - *Mount* opens any file of its folder at any time, by name and by handle. Landlock refuses files that
//!   were opened by handle (kernels before 6.19, as the way up to the folder may be unknown) and every
//!   `umount(2)`, so it guards no files here; TCP ports, signals and abstract sockets it does. What stays
//!   out of reach: new programs, new processes, sockets, `ptrace`, `mount(2)`, kernel modules, namespaces.
//! - *Emulate* opens files for reading only, to see how long threads wait for a processor. It unmounts, too,
//!   so landlock guards no files.
//!
//! **A call that is not allowed** fails with `EPERM`, and the process continues: a call that no test has seen
//! must not end a server with many clients. The first one of each kind leaves one line on the standard
//! error output, and all are counted ([`refused_calls`]; `refused_calls` of `fairhead ctl`). Nothing in a
//! healthy server makes such a call, so an alarm on that number is an alarm on an intruder or on a bug here.
//! A call by a thread that has blocked signals ends the process by SIGSYS, since no handler can run: the C
//! library blocks them while it starts a process, so an attempt to start a program is mostly the end.
//! A file that landlock refuses is an `EACCES` for the thread that opens it, and an audit record since Linux
//! 6.15.
//!
//! **What it does not do.**
//! - Seccomp does not see what io_uring executes. A ring can open files, connect sockets and more. Landlock
//!   applies to those where it guards; elsewhere they have the rights of the user and of the capabilities.
//! - Capabilities are those of a thread. Those that a role keeps, it keeps to the end.
//! - The memory of the process is one: who takes over a server reads and writes all of its exports.
//! - It is for the whole process, and for good. A program that uses this library decides for itself; nothing
//!   here happens unasked.
//! - Landlock applies to a thread and to those that it starts later. Threads that were there before `begin`
//!   are confined by seccomp only.
//!
//! A kernel without landlock, or with an older one, enforces what it knows: [`status`] tells what is on.
//!
//= kernel.org Documentation/userspace-api/landlock.rst, Documentation/userspace-api/seccomp_filter.rst

mod calls;
mod files;
pub(crate) mod privileges;
mod refused;

use crate::error::{Error, ErrorKind};
use files::Rule;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use privileges::may_mount;
pub use refused::refused_calls;

/// The work of a process, which decides what it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A server of block devices.
    Serve,
    /// A folder that is passed through.
    Mount,
    /// An emulated disk as a file of a mount.
    Emulate,
}

/// What the process will need, named before it begins.
#[derive(Debug)]
#[must_use = "nothing is confined before `begin`"]
pub struct Confinement {
    role: Role,
    rules: Vec<Rule>,
    ports: Vec<u16>,
    opens_later: bool,
    is_late: bool,
}

/// A confinement that has begun. [`Begun::finish`] ends the start-up.
#[derive(Debug)]
#[must_use = "system calls are not confined before `finish`"]
pub struct Begun {
    role: Role,
    opens_later: bool,
    is_late: bool,
    status: Status,
}

/// What is on in this process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The version of the kernel's landlock that is in force, if one is.
    pub landlock: Option<u32>,
    /// Whether landlock guards files, too.
    pub guards_files: bool,
    /// Whether files can be opened while the process runs.
    pub opens_files: bool,
    /// The capabilities that are left.
    pub capabilities: Vec<&'static str>,
}

static STATUS: OnceLock<Status> = OnceLock::new();

/// Returns what is on; `None`: the process is not confined.
#[must_use]
pub fn status() -> Option<&'static Status> {
    STATUS.get()
}

impl Confinement {
    /// A process of this role, which needs no file so far.
    pub const fn new(role: Role) -> Self {
        Self { role, rules: Vec::new(), ports: Vec::new(), opens_later: false, is_late: false }
    }

    /// It reads and writes this file or block device, or reads it only.
    pub fn file(mut self, path: &Path, read_only: bool) -> Self {
        self.rules.push(if read_only { Rule::reads(path) } else { Rule::writes(path) });
        self
    }

    /// It creates this file, or empties and writes it.
    pub fn creates(mut self, path: &Path) -> Self {
        self.rules.push(Rule::creates(&folder_of(path)));
        self
    }

    /// It makes this unix socket, and removes it in the end.
    pub fn socket(mut self, path: &Path) -> Self {
        self.rules.push(Rule::sockets(&folder_of(path)));
        self
    }

    /// It listens on this address.
    pub fn listens(mut self, at: SocketAddr) -> Self {
        self.ports.push(at.port());
        self
    }

    /// It opens files of this folder while it runs, at any depth. Without such a folder, a server opens no
    /// file after [`Begun::finish`].
    pub fn opens_in(mut self, folder: &Path) -> Self {
        self.rules.push(Rule::writes(folder));
        self.opens_later = true;
        self
    }

    /// Its threads have been started, so landlock would miss them: only system calls are confined, by
    /// [`Begun::finish`]. For an ordinary user's mount: `fusermount3`, which makes it, gets its privileges
    /// only from a process that may get new ones.
    pub const fn late(mut self) -> Self {
        self.is_late = true;
        self
    }

    /// Gives up what the role does not need, in this thread and those that it starts from now on. Call it
    /// before the first one, and before files are opened.
    ///
    /// # Errors
    /// If the kernel refuses. A kernel without landlock is no error, and neither is a path that does not
    /// exist: it cannot be opened later, either.
    pub fn begin(self) -> Result<Begun, Error> {
        if self.is_late {
            let (role, opens_later, status) = (self.role, self.opens_later, Status::default());
            return Ok(Begun { role, opens_later, is_late: true, status });
        }
        crate::heap::settle();
        let capabilities = privileges::drop_others(self.role).map_err(|e| failed("capabilities", &e))?;
        privileges::forbid_new().map_err(|e| failed("no_new_privs", &e))?;
        let guards_files = self.role == Role::Serve;
        let rules = guards_files.then_some(self.rules.as_slice());
        let landlock = files::restrict(rules, &self.ports)?;
        let guards_files = guards_files && landlock.is_some();
        let opens_files = self.opens_later || self.role != Role::Serve;
        let status = Status { landlock, guards_files, opens_files, capabilities };
        Ok(Begun { role: self.role, opens_later: self.opens_later, is_late: false, status })
    }
}

impl Begun {
    /// What is on.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Whether landlock is missing that should be there.
    #[must_use]
    pub const fn lacks_landlock(&self) -> bool {
        !self.is_late && self.status.landlock.is_none()
    }

    /// From now on, all threads make only the system calls of the role.
    ///
    /// # Errors
    /// If the kernel refuses: it has no seccomp, or a thread has another filter.
    pub fn finish(self) -> Result<(), Error> {
        refused::listen().map_err(|e| failed("SIGSYS", &e))?;
        calls::restrict(self.role, self.opens_later).map_err(|e| failed("seccomp", &e))?;
        // The status is that of the first one; a second one confines no less.
        let _ = STATUS.set(self.status);
        Ok(())
    }
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

fn failed(what: &str, e: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Confinement, format!("cannot confine the process: {what}: {e}"))
}
