//! An allocator that counts, per thread, so that a test can hold the core to "no allocation after `new`".

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // While a thread ends its locals are gone; nothing is measured then.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to `System` unchanged, which keeps `GlobalAlloc`'s contract; counting does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread has allocated, freed or resized memory so far.
pub(crate) fn calls() -> u64 {
    CALLS.with(Cell::get)
}

/// Runs `f`, which must not touch the heap.
#[track_caller]
pub(crate) fn without<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let before = calls();
    let answer = f();
    let used = calls() - before;
    assert!(used == 0, "{what} touched the heap {used} times; only `new` may");
    answer
}
