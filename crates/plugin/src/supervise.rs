//! The parent of the process that loads libraries.
//!
//! [`supervise`] starts the running program once more, with the same arguments, input and output, and a page
//! of shared memory ([`watch`](crate::watch)). The child does all the work; the parent looks at the page ten
//! times a second, and at the end puts into words what happened. So output, colours and exit codes are as
//! ever, and a library that crashes cannot take with it the process that says so.
//!
//! Ctrl-C reaches the child from the terminal; the parent ignores it. SIGTERM is passed on. A child ends
//! when its parent does.

use crate::watch::{Page, SIZE, SLOTS, Shared, VARIABLE};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// How often the parent looks.
const LOOK_MS: libc::c_int = 100;

/// A function that is entered for this many looks has not returned for five seconds.
const LOOKS_MAX: u32 = 50;

/// How long that is, in words.
const LONG: &str = "5 s";

/// The exit code of a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

/// How the child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With this exit code, after it said what there was to say.
    Exit(u8),
    /// By a library, or otherwise not as it should: in one line.
    Broken(String),
}

/// Runs this program once more with `args` (the first is its name) as a child that may load libraries.
///
/// # Errors
/// If the system refuses.
pub fn supervise(args: impl IntoIterator<Item = OsString>) -> io::Result<Verdict> {
    let memory = shared_memory()?;
    let page = Shared::of(memory.as_fd())?.page();
    let mut args = args.into_iter();
    let signals = Signals::hold()?;
    let mut child = Command::new("/proc/self/exe")
        .arg0(args.next().unwrap_or_else(|| "fairhead".into()))
        .args(args)
        .env(VARIABLE, memory.as_raw_fd().to_string())
        .spawn()?;
    let stuck = wait(&child, page, &signals)?;
    let status = child.wait()?;
    Ok(judge(page, status, stuck))
}

/// Memory that a child inherits.
fn shared_memory() -> io::Result<OwnedFd> {
    // SAFETY: a name that ends with a zero. Without the flag to close it, the child has it, too.
    let fd = unsafe { libc::memfd_create(c"fairhead-library-page".as_ptr(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which no one else has.
    let memory = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    memory.set_len(SIZE)?;
    Ok(memory.into())
}

/// Signals that this process receives as data instead.
struct Signals(File);

impl Signals {
    /// Holds SIGINT and SIGTERM. A child inherits that, and [`watch`](crate::watch()) undoes it there.
    fn hold() -> io::Result<Self> {
        // SAFETY: a set of signals, made here; calls that take pointers to it.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which no one else has.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Takes one that has come.
    fn take(&self) -> io::Result<u32> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// Waits for the child's end. Returns the slot of a function that did not return, if that is why it was
/// ended.
fn wait(child: &Child, page: &Page, signals: &Signals) -> io::Result<Option<usize>> {
    let id = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: takes numbers; the child has not been waited for, so the number is its.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: a new descriptor, which no one else has.
    let ended = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut looks = [(0_u64, 0_u32); SLOTS];
    loop {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [poll(ended.as_raw_fd()), poll(signals.0.as_raw_fd())];
        // SAFETY: a list of two, for as long as the call.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, LOOK_MS) };
        if fds[0].revents != 0 {
            return Ok(None);
        }
        if fds[1].revents != 0 {
            // From the terminal, Ctrl-C reaches the child by itself.
            if signals.take()? == libc::SIGTERM.cast_unsigned() {
                // SAFETY: takes numbers; the child has not been waited for.
                unsafe { libc::kill(id, libc::SIGTERM) };
            }
        }
        if ready != 0 {
            continue;
        }
        if let Some(slot) = page.entered().find(|(slot, calls)| stands_still(&mut looks[*slot], *calls)) {
            // SAFETY: as above.
            unsafe { libc::kill(id, libc::SIGKILL) };
            return Ok(Some(slot.0));
        }
    }
}

/// Whether a slot has been in one call for too long.
fn stands_still((last, looks): &mut (u64, u32), calls: u64) -> bool {
    *looks = if *last == calls { *looks + 1 } else { 0 };
    *last = calls;
    *looks >= LOOKS_MAX
}

/// What the end means.
fn judge(page: &Page, status: ExitStatus, stuck: Option<usize>) -> Verdict {
    if let Some(slot) = stuck {
        return Verdict::Broken(format!(
            "{} has not returned for {LONG} (an endless loop?); {}",
            page.function_of(slot),
            page.place_of(slot)
        ));
    }
    let entered = page.at_fault().filter(|_| !page.ends());
    match (status.signal(), status.code()) {
        (Some(signal), _) => Verdict::Broken(match entered {
            Some(slot) => {
                format!("{} crashed ({}); {}", page.function_of(slot), name_of(signal), page.place_of(slot))
            }
            None => {
                format!("the simulation was ended by {}, outside of a library's functions", name_of(signal))
            }
        }),
        (None, Some(code)) => match entered {
            Some(slot) if code != INTERRUPTED => Verdict::Broken(format!(
                "{} ended the process with exit code {code}; {}",
                page.function_of(slot),
                page.place_of(slot)
            )),
            _ => Verdict::Exit(u8::try_from(code).unwrap_or(1)),
        },
        (None, None) => Verdict::Broken("the simulation ended without a code".to_owned()),
    }
}

/// A signal in words.
fn name_of(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV: it used memory that is not there",
        libc::SIGBUS => "SIGBUS: it used memory that is not there",
        libc::SIGFPE => "SIGFPE: a division by zero",
        libc::SIGILL => "SIGILL: an instruction that there is not",
        libc::SIGABRT => "SIGABRT: abort()",
        libc::SIGKILL => "SIGKILL: killed, perhaps for want of memory",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
