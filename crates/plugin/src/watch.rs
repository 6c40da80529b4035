//! What libraries are doing, in memory that the process that loads them shares with its parent.
//!
//! An instance of a scheduler has a *slot*. Before it calls a function of the library it writes there which
//! one, and for a request its tag and place; after the call it clears the function. That is a few stores, and
//! no system call. If the process ends in the middle, the page says where; if the number of calls of a slot
//! stands still within a function, that function does not return.
//!
//! When a signal kills a process, any of its threads may have caused it. A handler therefore writes the
//! number of the thread to the page first, and then lets the signal do what it does.
//!
//! A process that is not watched (a test that loads a library) has a page of its own that is never read.

use std::cell::Cell;
use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// The variable with the number of the descriptor of the shared memory: a process that has it is a child.
pub(crate) const VARIABLE: &str = "FAIRHEAD_LIBRARY_PAGE";

/// How many instances are watched at a time; further ones share the last slot.
pub(crate) const SLOTS: usize = 1000;

/// How many libraries have their names in the page.
const LIBRARIES: usize = 16;

/// The longest name, in bytes; a longer one loses its beginning.
const NAME: usize = 255;

/// The functions of a library, by number from 1 on.
const FUNCTIONS: [&str; 25] = [
    "loading",
    "fairhead_scheduler",
    "memory",
    "create",
    "destroy",
    "insert",
    "grown",
    "remove",
    "joined",
    "dispatch",
    "drain",
    "complete",
    "requeue",
    "reissue",
    "control",
    "retune",
    "timer",
    "next_timer",
    "wants_run",
    "prepare_merge",
    "may_merge",
    "has_room",
    "prefers",
    "merge rules",
    "check",
];

/// A function of a library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Function {
    Loading = 1,
    Table,
    Memory,
    Create,
    Destroy,
    Insert,
    Grown,
    Remove,
    Joined,
    Dispatch,
    Drain,
    Complete,
    Requeue,
    Reissue,
    Control,
    Retune,
    Timer,
    NextTimer,
    WantsRun,
    PrepareMerge,
    MayMerge,
    HasRoom,
    Prefers,
    MergeRules,
    Check,
}

impl Function {
    /// Its name in the header.
    pub(crate) const fn name(self) -> &'static str {
        FUNCTIONS[self as usize - 1]
    }
}

/// One instance. Every field may be 0.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Slot {
    taken: AtomicU32,
    thread: AtomicU32,
    library: AtomicU32,
    function: AtomicU32,
    calls: AtomicU64,
    now: AtomicU64,
    /// The last request that was passed: its tag plus 1, or 0.
    tag: AtomicU32,
    op: AtomicU32,
    sector: AtomicU64,
    sectors: AtomicU32,
    task: AtomicU32,
}

/// The shared memory. Zeros are a page on which nothing is written.
#[repr(C)]
pub(crate) struct Page {
    /// Whether the process ends on purpose, whatever its slots say.
    ends: AtomicU32,
    /// The thread that received a signal which ends the process.
    crashed: AtomicU32,
    libraries: AtomicU32,
    _space: u32,
    names: [[AtomicU8; NAME + 1]; LIBRARIES],
    slots: [Slot; SLOTS],
}

/// The page of this process.
fn page() -> &'static Page {
    PAGE.get_or_init(|| Shared::anonymous().expect("memory for a page").page())
}

static PAGE: OnceLock<&'static Page> = OnceLock::new();

/// What ends this process with a line.
static ON_FAULT: OnceLock<fn(&str) -> !> = OnceLock::new();

thread_local! {
    /// The slot that this thread has used last.
    static LAST: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

/// A mapping of a page.
pub(crate) struct Shared(ptr::NonNull<Page>);

impl Shared {
    fn map(flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which changes no other memory.
        let at = unsafe { libc::mmap(ptr::null_mut(), size_of::<Page>(), protection, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        ptr::NonNull::new(at.cast()).map(Self).ok_or_else(|| io::Error::other("mapped at 0"))
    }

    /// Memory of this process alone.
    fn anonymous() -> io::Result<Self> {
        Self::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// Maps a file, which is made as large as a page.
    pub(crate) fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        Self::map(libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The page, which stays mapped until the process ends.
    pub(crate) const fn page(self) -> &'static Page {
        // SAFETY: mapped with this size, at the beginning of a page of memory, all zero at first, never
        // unmapped, and all fields are atomic.
        unsafe { self.0.as_ref() }
    }
}

/// How large a page is, in bytes.
pub(crate) const SIZE: u64 = size_of::<Page>() as u64;

/// Whether this process is the child that may load libraries.
#[must_use]
pub fn is_watched() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Takes the page that the parent shares, ends this process when the parent ends, and notes which thread a
/// signal hits. For a child of [`supervise`](crate::supervise()), before it loads a library.
///
/// # Errors
/// If there is no such page, or the system refuses.
pub fn watch() -> io::Result<()> {
    let number = std::env::var(VARIABLE).ok().and_then(|n| n.parse::<u32>().ok());
    let number = number.ok_or_else(|| io::Error::other("not started by a parent that watches"))?;
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/self/fd/{number}"))?;
    if file.metadata()?.len() != SIZE {
        return Err(io::Error::other("the parent is another version of this program"));
    }
    let page = Shared::of(std::os::fd::AsFd::as_fd(&file))?.page();
    if PAGE.set(page).is_err() {
        return Err(io::Error::other("a library was loaded before"));
    }
    // SAFETY: a setting of this process, without pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    // SAFETY: a set of signals, made here. The parent holds signals; its child, which inherits that, must
    // not.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    for signal in SIGNALS {
        // SAFETY: a struct of numbers and a null pointer.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note_thread as *const () as usize;
        // The handler is gone once it has run: then the signal ends the process. The alternate stack, which
        // the standard library gives each thread, is for stacks that are full.
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: a valid action; the handler calls nothing but `gettid` and stores a number.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    Ok(())
}

/// Signals of a crash.
const SIGNALS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Notes the thread. The instruction that was at fault is executed again after this, and ends the process.
extern "C" fn note_thread(_signal: libc::c_int) {
    if let Some(page) = PAGE.get() {
        page.crashed.store(thread(), Ordering::Relaxed);
    }
}

/// The kernel's number of this thread.
fn thread() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Says what to do with the line about a library that breaks the rules, in a process that has no other use.
/// Without it such a library is a panic.
pub fn on_fault(end: fn(&str) -> !) {
    let _ = ON_FAULT.set(end);
}

/// Ends the run: a library has broken a rule.
pub(crate) fn fault(line: &str) -> ! {
    // The first one ends the process; others wait for that.
    static FIRST: AtomicBool = AtomicBool::new(false);
    let Some(end) = ON_FAULT.get() else { panic!("{line}") };
    while FIRST.swap(true, Ordering::Relaxed) {
        std::thread::park();
    }
    page().ends.store(1, Ordering::Relaxed);
    end(line)
}

/// The function by which a library ends the run: `fh_scheduler_limits.fail`.
pub(crate) unsafe extern "C" fn fail(why: *const libc::c_char) {
    let said = if why.is_null() {
        "it gave no reason".into()
    } else {
        // SAFETY: the header asks for a text that ends with a zero.
        unsafe { CStr::from_ptr(why) }.to_string_lossy()
    };
    let line = match LAST.get() {
        Some(slot) => format!("{} failed: {said}; {}", page().describe(slot), slot.last_request()),
        None => format!("a scheduler library failed: {said}"),
    };
    if ON_FAULT.get().is_none() {
        // A panic must not unwind through the library's frames.
        eprintln!("{line}");
        std::process::abort();
    }
    fault(&line)
}

/// Notes the name of a library. Returns its number.
pub(crate) fn register(name: &str) -> u32 {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let page = page();
    let number = page.libraries.load(Ordering::Relaxed).min(LIBRARIES as u32 - 1);
    let bytes = name.as_bytes();
    let bytes = &bytes[bytes.len().saturating_sub(NAME)..];
    let to = &page.names[number as usize];
    for (i, cell) in to.iter().enumerate() {
        cell.store(bytes.get(i).copied().unwrap_or(0), Ordering::Relaxed);
    }
    page.libraries.store(number + 1, Ordering::Relaxed);
    number
}

/// A slot that is an instance's; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Watched(&'static Slot);

impl Watched {
    /// Takes a slot for a library.
    pub(crate) fn new(library: u32) -> Self {
        let slots = &page().slots;
        let free =
            |slot: &&Slot| slot.taken.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let slot = slots.iter().find(free).unwrap_or(&slots[SLOTS - 1]);
        slot.library.store(library, Ordering::Relaxed);
        slot.tag.store(0, Ordering::Relaxed);
        slot.thread.store(thread(), Ordering::Relaxed);
        Self(slot)
    }

    /// A function of the library is entered.
    #[inline]
    pub(crate) fn enter(&self, function: Function) {
        let slot = self.0;
        slot.calls.store(slot.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        slot.function.store(function as u32, Ordering::Relaxed);
    }

    /// The function has returned.
    #[inline]
    pub(crate) fn leave(&self) {
        self.0.function.store(0, Ordering::Relaxed);
    }

    /// Notes the thread that uses the instance, for `fail`.
    pub(crate) fn is_here(&self) {
        self.0.thread.store(thread(), Ordering::Relaxed);
        LAST.set(Some(self.0));
    }

    /// Time of the next call.
    #[inline]
    pub(crate) fn at(&self, now: u64) {
        self.0.now.store(now, Ordering::Relaxed);
    }

    /// A request is passed.
    #[inline]
    pub(crate) fn passes(&self, tag: u16, rq: &crate::abi::FhRequest) {
        let slot = self.0;
        slot.tag.store(u32::from(tag) + 1, Ordering::Relaxed);
        slot.op.store(rq.op.into(), Ordering::Relaxed);
        slot.sector.store(rq.sector, Ordering::Relaxed);
        slot.sectors.store(rq.sectors, Ordering::Relaxed);
        slot.task.store(rq.task, Ordering::Relaxed);
    }

    /// What was passed last, in words.
    pub(crate) fn last_request(&self) -> String {
        self.0.last_request()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.taken.store(0, Ordering::Relaxed);
    }
}

impl Slot {
    fn last_request(&self) -> String {
        let tag = self.tag.load(Ordering::Relaxed);
        if tag == 0 {
            return "no request yet".to_owned();
        }
        let get = |n: &AtomicU32| n.load(Ordering::Relaxed);
        let op = ["read", "write", "discard"].get(get(&self.op) as usize).copied().unwrap_or("request");
        format!(
            "last request: tag {}, a {op} of {} sectors at {} by task {}",
            tag - 1,
            get(&self.sectors),
            self.sector.load(Ordering::Relaxed),
            get(&self.task)
        )
    }
}

impl Page {
    /// Whether the child has ended on purpose.
    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed) != 0
    }

    /// The slots of functions that are entered, with their numbers and how many calls they have seen.
    pub(crate) fn entered(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let entered = |slot: &Slot| slot.function.load(Ordering::Relaxed) != 0;
        let slots = self.slots.iter().enumerate().filter(move |(_, slot)| entered(slot));
        slots.map(|(i, slot)| (i, slot.calls.load(Ordering::Relaxed)))
    }

    /// The slot of the thread that received a signal, if it was in a function; without such a thread, any
    /// slot that is.
    pub(crate) fn at_fault(&self) -> Option<usize> {
        let crashed = self.crashed.load(Ordering::Relaxed);
        let of_thread = |i: &usize| self.slots[*i].thread.load(Ordering::Relaxed) == crashed;
        let mut entered = self.entered().map(|(i, _)| i);
        if crashed == 0 { entered.next() } else { entered.find(of_thread) }
    }

    /// A slot's library and function.
    pub(crate) fn function_of(&self, slot: usize) -> String {
        self.describe(&self.slots[slot])
    }

    /// Where a slot is: the time of its run, the calls before, the last request.
    pub(crate) fn place_of(&self, slot: usize) -> String {
        let slot = &self.slots[slot];
        let us = slot.now.load(Ordering::Relaxed) / 1000;
        let calls = slot.calls.load(Ordering::Relaxed);
        format!("call {calls}, at {}.{:03} ms of the run; {}", us / 1000, us % 1000, slot.last_request())
    }

    fn describe(&self, slot: &Slot) -> String {
        let library = slot.library.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> = self.names[library.min(LIBRARIES - 1)]
            .iter()
            .map(|b| b.load(Ordering::Relaxed))
            .take_while(|b| *b != 0)
            .collect();
        let function = slot.function.load(Ordering::Relaxed) as usize;
        let name = String::from_utf8_lossy(&bytes);
        match function.checked_sub(1).and_then(|i| FUNCTIONS.get(i)) {
            Some(function) => format!("scheduler library '{name}', {function}:"),
            None => format!("scheduler library '{name}':"),
        }
    }
}
