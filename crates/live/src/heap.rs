//! The C library's heap: set so that a program which runs for weeks stays as large as what it uses.
//!
//! As it comes, glibc gives each thread an *arena* of its own, up to eight for each processor. What was freed
//! in an arena stays with the process, and only its own threads use it again; each arena is as large as the
//! most that ever was in it, with gaps. Beside that, the first large block that is freed raises the size from
//! which blocks are mapped alone: from then on the tables of a scheduler, which come and go with it, leave
//! gaps in an arena, too. In a mount under changing load the heap's free part grew from 6 to 29 MiB in nine
//! minutes, while 38 MiB were in use all the time.
//!
//! So there are two arenas, and blocks from [`ALONE`] on are always mapped alone, which gives them back when
//! they are freed. The engine takes large buffers from its [`Pool`](crate::Pool), which keeps them.
//!
//! When a thread first gives memory back, glibc reads in a file whether it may (`overcommit_memory` in
//! `/proc/sys/vm`), which a confined server must not open. So a thread gives memory back before the
//! confinement begins ([`settle`]), and glibc knows the answer from then on.
//!
//! What it does not do: anything with other C libraries.

/// The size in bytes from which a block is mapped alone. It is glibc's own default, which no longer changes
/// once it is set.
#[cfg(target_env = "gnu")]
const ALONE: i32 = 128 << 10;
/// One for the thread that starts first, and one for all others. Small blocks are kept by each thread, so
/// that they seldom wait for each other.
#[cfg(target_env = "gnu")]
const ARENAS: i32 = 2;

/// Has the C library give freed memory back, and threads share what is left. It is for programs that run for
/// a long time, at their start: threads that allocated before keep their arenas.
pub fn keep_heap_small() {
    #[cfg(target_env = "gnu")]
    // SAFETY: these are numbers for the allocator, which locks itself. A wrong one would be refused.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, ALONE);
    }
}

/// Has the C library open now what it would open when a thread first gives memory back.
pub(crate) fn settle() {
    #[cfg(target_env = "gnu")]
    let _ = std::thread::spawn(free_much).join();
}

/// Gives pages back that hold nothing any more, also between blocks that are in use, which the C library does
/// by itself only at the end of an arena. It takes milliseconds.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it is about free memory, and the allocator locks itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Frees more at once than a thread's arena keeps, in blocks that are too small to be mapped alone.
#[cfg(target_env = "gnu")]
fn free_much() {
    let block = |_| std::hint::black_box(vec![1_u8; ALONE as usize / 2]);
    drop(std::array::from_fn::<_, 8, _>(block));
}
