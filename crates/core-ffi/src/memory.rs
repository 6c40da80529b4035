//! Where memory comes from: one block for each instance, given out while that instance is made.
//!
//! Core allocates through Rust's global allocator, which is [`Memory`] here. [`within`] lends it a block for
//! the time of a call on this thread: allocations then take the next bytes of the block, and nothing of the
//! block is ever given back piece by piece. Other threads, and other times, are not affected.
//!
//! A panic while an instance is made allocates its message, and the standard library may keep what it
//! allocates then; so while a thread panics it gets memory from the system. Which memory a freed address
//! belongs to is seen from the address.
//!
//! Without std there is one block at a time for all processors, and no memory outside of it: creations are
//! serialised by a flag, and the second of two at one time is refused.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr;

/// A block of memory of which parts are given out, from the lowest address on.
#[derive(Debug)]
pub(crate) struct Block {
    start: usize,
    end: usize,
    at: Cell<usize>,
}

impl Block {
    /// The block of `size` bytes at `start`.
    pub(crate) fn new(start: *mut u8, size: usize) -> Self {
        Self { start: start as usize, end: start as usize + size, at: Cell::new(start as usize) }
    }

    /// How many bytes were given out, with the gaps between them.
    pub(crate) fn used(&self) -> usize {
        self.at.get() - self.start
    }

    /// The next bytes; null if there are too few.
    fn take(&self, layout: Layout) -> *mut u8 {
        let at = self.at.get().next_multiple_of(layout.align());
        match at.checked_add(layout.size()) {
            Some(end) if end <= self.end => {
                self.at.set(end);
                ptr::with_exposed_provenance_mut(at)
            }
            _ => ptr::null_mut(),
        }
    }

    fn contains(&self, at: *mut u8) -> bool {
        (self.start..self.end).contains(&(at as usize))
    }
}

#[cfg(feature = "std")]
mod lent {
    use super::Block;
    use core::cell::Cell;
    use core::ptr;

    std::thread_local! {
        static LENT: Cell<*const Block> = const { Cell::new(ptr::null()) };
    }

    /// Lends a block to this thread, or takes it back (null).
    pub(super) fn set(block: *const Block) -> bool {
        LENT.with(|lent| lent.set(block));
        true
    }

    /// Calls `f` with the block that this thread has.
    pub(super) fn get<R>(f: impl FnOnce(&Block) -> R) -> Option<R> {
        // While a thread ends its locals are gone; it makes no instance then.
        let block = LENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: `within` sets it to a block that outlives the call, and to null at its end.
        unsafe { block.as_ref() }.map(f)
    }
}

#[cfg(not(feature = "std"))]
mod lent {
    use super::Block;
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, Ordering};

    static LENT: AtomicPtr<Block> = AtomicPtr::new(ptr::null_mut());

    /// Lends a block, or takes it back (null). Returns whether no other one is lent.
    pub(super) fn set(block: *const Block) -> bool {
        if block.is_null() {
            LENT.store(ptr::null_mut(), Ordering::Release);
            return true;
        }
        LENT.compare_exchange(ptr::null_mut(), block.cast_mut(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Calls `f` with the block that is lent.
    pub(super) fn get<R>(f: impl FnOnce(&Block) -> R) -> Option<R> {
        // SAFETY: `within` sets it to a block that outlives the call, and to null at its end; only the caller
        // of `within` allocates.
        unsafe { LENT.load(Ordering::Acquire).as_ref() }.map(f)
    }
}

/// Runs `f`, whose allocations are parts of `block`. `None` if another instance is being made where that
/// matters (without std).
pub(crate) fn within<R>(block: &Block, f: impl FnOnce() -> R) -> Option<R> {
    /// Takes the block back also when `f` panics.
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            lent::set(ptr::null());
        }
    }
    if !lent::set(block) {
        return None;
    }
    let _back = Back;
    Some(f())
}

/// Whether memory is needed for a panic.
fn panicking() -> bool {
    #[cfg(feature = "std")]
    return std::thread::panicking();
    #[cfg(not(feature = "std"))]
    return false;
}

/// The global allocator: the block that is lent, or the system.
#[derive(Debug)]
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: parts of a block do not overlap, are aligned, and live as long as the instance; other calls go to
// `System` unchanged, and each address is given back to where it is from.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !panicking()
            && let Some(at) = lent::get(|block| block.take(layout))
        {
            return at;
        }
        #[cfg(feature = "std")]
        // SAFETY: the caller's promises are passed on.
        return unsafe { std::alloc::System.alloc(layout) };
        #[cfg(not(feature = "std"))]
        return ptr::null_mut();
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if lent::get(|block| block.contains(at)) == Some(true) {
            return;
        }
        #[cfg(feature = "std")]
        // SAFETY: not of a block, so it is from `System`; the caller's promises are passed on.
        unsafe {
            std::alloc::System.dealloc(at, layout);
        }
        #[cfg(not(feature = "std"))]
        let _ = layout;
    }

    #[cfg(feature = "std")]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if lent::get(|_| ()).is_none() {
            // SAFETY: the caller's promises are passed on.
            return unsafe { std::alloc::System.realloc(at, layout, size) };
        }
        let Ok(wider) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        // SAFETY: `GlobalAlloc`'s own way: a new place, the bytes copied, the old place given back. Both
        // places are at least as long as what is copied, and do not overlap.
        unsafe {
            let to = self.alloc(wider);
            if !to.is_null() {
                ptr::copy_nonoverlapping(at, to, size.min(layout.size()));
                self.dealloc(at, layout);
            }
            to
        }
    }
}

/// The block that a creation was lent which was left in its middle is lent no longer.
#[cfg(not(feature = "std"))]
pub(crate) fn abandon() {
    lent::set(ptr::null());
}
