//! A program without std that drives an elevator: it links only if core needs nothing of std.
//!
//! It brings its own panic handler (with std in the program there would be two, an error) and its own
//! allocator, a pointer that moves through a fixed piece of memory: all that core asks of its surroundings.
#![no_std]
#![no_main]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};
use fairhead_core::sched::any::{AnyScheduler, PRESETS};
use fairhead_core::{Dispatch, Elevator, Instant, Limits, Request, Sector, Sectors, Tag, TaskId};

const ARENA_BYTES: usize = 1 << 24;

struct Arena {
    memory: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: there is one thread, and `used` hands out each byte once.
unsafe impl Sync for Arena {}

// SAFETY: the pieces are disjoint, aligned and inside `memory`; nothing is ever taken back.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().cast::<u8>();
        let used = self.used.load(Ordering::Relaxed);
        let start = (base as usize + used).next_multiple_of(layout.align()) - base as usize;
        if start + layout.size() > ARENA_BYTES {
            return null_mut();
        }
        self.used.store(start + layout.size(), Ordering::Relaxed);
        base.wrapping_add(start)
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena = Arena { memory: UnsafeCell::new([0; ARENA_BYTES]), used: AtomicUsize::new(0) };

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// What the compiled `alloc` names for unwinding, which never happens here.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}

/// One request through each scheduler. Returns 0 if each issued it.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let limits = Limits { tags: 4, tasks: 2, ..Limits::default() };
    let now = Instant::EPOCH;
    for preset in PRESETS {
        let Ok(mut elevator) = Elevator::<AnyScheduler>::new(limits, (preset.config)()) else { return 1 };
        let _ = elevator.insert(now, Tag(0), Request::read(TaskId(1), Sector(0), Sectors(8)));
        if elevator.dispatch(now) != Dispatch::Issue(Tag(0)) || elevator.complete(now, Tag(0)).count() != 1 {
            return 1;
        }
    }
    0
}
