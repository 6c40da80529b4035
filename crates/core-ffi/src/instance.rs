//! An instance: the elevator, the ledger beside it, and who may enter.
//!
//! [`enter`] checks a pointer that came from C and marks the instance as entered until the call ends.
//! [`Instance::healthy`] asks the elevator and catches its panic; after one the instance is poisoned, and the
//! elevator is not asked again.

use crate::ledger::{Ledger, Place};
use crate::panics;
use crate::texts::Text;
use crate::types::{FH_E_BUSY, FH_E_INSTANCE, FH_E_NULL, FH_E_TIME, FhAllocator, Status, instant};
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::{Elevator, Instant, Limits, Tag};

/// What an instance begins with; another number is not one.
pub(crate) const MARK: u64 = u64::from_le_bytes(*b"fairhead");

/// One elevator for C: `struct fh_elevator`. The head of a block of memory whose rest it uses.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Instance {
    mark: u64,
    /// Whether a call has not returned.
    entered: AtomicBool,
    is_poisoned: bool,
    /// What the panic said.
    said: Text,
    /// The time of the last call.
    pub(crate) now: u64,
    pub(crate) limits: Limits,
    pub(crate) config: AnyConfig,
    pub(crate) ledger: ManuallyDrop<Ledger>,
    elevator: ManuallyDrop<Elevator<AnyScheduler>>,
    /// Where the block goes in the end, and how large it is.
    pub(crate) allocator: Option<FhAllocator>,
    pub(crate) size: usize,
    /// The calls until one panics, before or after its work: for tests.
    #[cfg(test)]
    pub(crate) fault: Option<crate::tests::Fault>,
}

impl Instance {
    /// An instance of these parts; its memory is never freed piece by piece.
    pub(crate) fn new(
        limits: Limits,
        config: AnyConfig,
        elevator: Elevator<AnyScheduler>,
        ledger: Ledger,
    ) -> Self {
        Self {
            mark: MARK,
            entered: AtomicBool::new(false),
            is_poisoned: false,
            said: Text::default(),
            now: 0,
            limits,
            config,
            ledger: ManuallyDrop::new(ledger),
            elevator: ManuallyDrop::new(elevator),
            allocator: None,
            size: 0,
            #[cfg(test)]
            fault: None,
        }
    }

    /// Whether the ledger answers.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    /// What the panic said that poisoned it.
    pub(crate) fn said(&self) -> &Text {
        &self.said
    }

    /// Asks the elevator. `None` if the instance is poisoned, or has just become so.
    pub(crate) fn healthy<R>(&mut self, ask: impl FnOnce(&mut Elevator<AnyScheduler>) -> R) -> Option<R> {
        if self.is_poisoned {
            return None;
        }
        #[cfg(test)]
        let ask = crate::tests::faulty(&mut self.fault, ask);
        match panics::caught(|| ask(&mut self.elevator)) {
            Ok(answer) => Some(answer),
            Err(said) => {
                self.poison(said);
                None
            }
        }
    }

    /// From now on the ledger answers.
    #[cold]
    pub(crate) fn poison(&mut self, said: Text) {
        self.is_poisoned = true;
        self.said = said;
    }

    /// Without std a call may have been left in its middle, after a panic: see `panics.rs`.
    #[cold]
    #[inline(never)]
    fn was_left(&mut self) {
        self.poison(Text::of("a call did not return"));
    }

    /// The elevator, to look at what cannot panic.
    pub(crate) fn elevator(&self) -> &Elevator<AnyScheduler> {
        &self.elevator
    }

    /// Notes in the ledger that a request goes to the device, with those that the elevator merged into it.
    /// Returns false, and has changed nothing, if one of them did not wait: then the elevator is poisoned.
    #[inline(always)]
    pub(crate) fn note_issue(&mut self, tag: Tag) -> bool {
        // Where the driver merges, the elevator does not.
        !self.limits.merges && self.ledger.issue_alone(tag.0) || self.note_issue_with_parts(tag)
    }

    #[inline(never)]
    fn note_issue_with_parts(&mut self, tag: Tag) -> bool {
        let Self { ledger, elevator, .. } = self;
        // A look first: a panic or an endless list must not leave the ledger half changed.
        let carried = || elevator.requests().carried(tag).map(|part| part.0);
        let look = || ledger.place(tag.0) == Some(Place::Waits) && ledger.can_carry(carried());
        if panics::caught(look).unwrap_or(false) {
            ledger.issue(tag.0, carried());
            return true;
        }
        self.poison(Text::of("a request was issued that did not wait"));
        false
    }

    /// Takes the time of a call. An error if it is before that of the last one.
    pub(crate) fn advance(&mut self, now: u64) -> Result<Instant, Status> {
        if now < self.now {
            return Err(FH_E_TIME);
        }
        self.now = now;
        Ok(instant(now))
    }

    /// It is not an instance any longer.
    pub(crate) fn unmark(&mut self) {
        self.mark = 0;
    }
}

/// An instance that a call has entered, until the call ends.
#[derive(Debug)]
pub(crate) struct Entered<'a>(&'a mut Instance);

impl Deref for Entered<'_> {
    type Target = Instance;
    fn deref(&self) -> &Instance {
        self.0
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut Instance {
        self.0
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.entered.store(false, Ordering::Release);
    }
}

/// Enters the instance that C points to.
///
/// # Safety
/// `at` is null, or points to a block that [`crate::create`] made an instance of, also if that was destroyed
/// and the memory is still there.
pub(crate) unsafe fn enter<'a>(at: *mut Instance) -> Result<Entered<'a>, Status> {
    if at.is_null() {
        return Err(FH_E_NULL);
    }
    // SAFETY: the caller says that the memory is there; a mark of another kind is another number.
    if !at.is_aligned() || unsafe { (&raw const (*at).mark).read() } != MARK {
        return Err(FH_E_INSTANCE);
    }
    // SAFETY: it is an instance. The flag is the only part that calls which overlap may touch.
    let was_entered = unsafe { (*at).entered.swap(true, Ordering::Acquire) };
    if was_entered && cfg!(feature = "std") {
        return Err(FH_E_BUSY);
    }
    // SAFETY: it is an instance, and no other call is in it: the flag says so.
    let mut entered = Entered(unsafe { &mut *at });
    if was_entered {
        entered.was_left();
    }
    Ok(entered)
}

/// Runs `f` in the instance; the error of either as a status.
///
/// # Safety
/// As [`enter`].
pub(crate) unsafe fn with(
    at: *mut Instance,
    f: impl FnOnce(&mut Instance) -> Result<Status, Status>,
) -> Status {
    // SAFETY: the caller's promise.
    match unsafe { enter(at) } {
        Ok(mut entered) => f(&mut entered).unwrap_or_else(|error| error),
        Err(error) => error,
    }
}

/// Writes `value` where C wants it, if it wants it.
///
/// # Safety
/// `at` is null or valid for a write.
pub(crate) unsafe fn put<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write(value) };
    }
}

/// What C points to.
///
/// # Safety
/// `at` is null or valid for a read.
pub(crate) unsafe fn take<T: Copy>(at: *const T) -> Result<T, Status> {
    if at.is_null() {
        return Err(FH_E_NULL);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { at.read() })
}
