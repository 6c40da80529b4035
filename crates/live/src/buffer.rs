//! Memory for data: aligned for direct I/O, used again, and for the most part known to the kernel beforehand.
//!
//! A [`Pool`] hands out [`Buffer`]s by size classes of powers of two from 4 KiB to 1 MiB, first from an
//! *arena* that the engine registers with its ring, so that the kernel need not look up pages for each
//! transfer; when that is used up, and for larger ones, from the heap, where a few stay for the next. A
//! buffer goes back to where it came from when it is dropped, in whatever thread. What stays and was not
//! needed for a while goes back to the system.
//!
//! Buffers are zeroed when the pool makes them, and hold what they last held after that.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ALIGN: usize = 4096;
const CLASSES: usize = 9;
/// The largest class, and the unit in which the arena is given out.
const CHUNK: usize = ALIGN << (CLASSES - 1);
/// The most bytes of each class that stay allocated on the heap for later buffers.
const KEPT: usize = 4 * CHUNK;
/// The most bytes that stay allocated for buffers that are larger than each class: two of the longest writes
/// of NBD. The kernel finds, clears and takes back the pages of a new one, which takes it longer than to copy
/// the data.
const LARGE_KEPT: usize = 64 << 20;

/// Aligned memory with one owner.
#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is memory and nothing else, with one owner.
unsafe impl Send for Block {}

impl Block {
    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, ALIGN).expect("less than half of all memory")
    }

    /// Memory that is larger than each class is the kernel's own zeros, which it makes page by page when they
    /// are used. The allocator would write them all now, and for 32 MiB the engine would stop for 20 ms.
    fn new(size: usize) -> Self {
        let layout = Self::layout(size);
        if size > CHUNK {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a mapping at an address that the kernel chooses replaces nothing.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
            let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
            let Some(start) = start else { handle_alloc_error(layout) };
            return Self { start, size };
        }
        // SAFETY: the size is not 0: it is a class, or larger.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, size }
    }

    /// # Safety
    /// The block came from [`Self::new`], and nothing uses its memory any more.
    unsafe fn free(self) {
        if self.size > CHUNK {
            // SAFETY: `new` has mapped these bytes, and the caller says that nothing uses them.
            let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
            debug_assert_eq!(result, 0, "it is mapped");
            return;
        }
        // SAFETY: as the caller says.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.size)) }
    }
}

#[derive(Debug, Default)]
struct Free {
    /// By class: in the arena, and on the heap.
    arena: [Vec<Block>; CLASSES],
    heap: [Vec<Block>; CLASSES],
    /// Those that are larger than each class, and their bytes.
    large: Vec<Block>,
    large_bytes: usize,
    /// The fewest blocks of each class on the heap, and of the larger ones, since the pool was settled: so
    /// many were not needed.
    least: [usize; CLASSES],
    least_large: usize,
    /// The bytes of the arena that have been given out.
    used: usize,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Pool {
    arena: Option<Block>,
    free: Mutex<Free>,
    /// Whether any block outside the arena is free.
    keeps: AtomicBool,
}

// SAFETY: the arena's address is only read; what is in it belongs to the buffers.
unsafe impl Sync for Pool {}

impl Pool {
    /// Makes a pool with an arena of `arena` bytes, rounded down to MiB.
    #[must_use]
    pub fn new(arena: usize) -> Arc<Self> {
        let size = arena / CHUNK * CHUNK;
        let arena = (size > 0).then(|| Block::new(size));
        Arc::new(Self { arena, free: Mutex::default(), keeps: AtomicBool::new(false) })
    }

    /// Returns the address and length of the arena, to register it; `None` if there is none.
    #[must_use]
    pub fn arena(&self) -> Option<(NonNull<u8>, usize)> {
        self.arena.as_ref().map(|a| (a.start, a.size))
    }

    fn class(len: usize) -> Option<usize> {
        (0..CLASSES).find(|c| len <= ALIGN << c)
    }

    /// A buffer of `len` bytes.
    #[must_use]
    pub fn buffer(self: &Arc<Self>, len: usize) -> Buffer {
        let (block, is_fixed) = match Self::class(len) {
            Some(class) => self.take(class),
            None => (self.take_large(len), false),
        };
        Buffer { block: Some(block), len, is_fixed, missing: 0, pool: Arc::clone(self) }
    }

    fn take(&self, class: usize) -> (Block, bool) {
        let mut free = self.lock();
        if free.arena[class].is_empty() {
            self.cut_chunk(&mut free, class);
        }
        if let Some(block) = free.arena[class].pop() {
            return (block, true);
        }
        let block = free.heap[class].pop();
        free.least[class] = free.least[class].min(free.heap[class].len());
        (block.unwrap_or_else(|| Block::new(ALIGN << class)), false)
    }

    /// A block that is larger than each class: one that was kept, if it is at most twice as large as needed.
    fn take_large(&self, len: usize) -> Block {
        let mut free = self.lock();
        let fits = |block: &Block| (len..=2 * len).contains(&block.size);
        let Some(i) = free.large.iter().position(fits) else {
            drop(free);
            return Block::new(len.next_multiple_of(ALIGN));
        };
        let block = free.large.swap_remove(i);
        free.large_bytes -= block.size;
        free.least_large = free.least_large.min(free.large.len());
        block
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it keeps blocks that [`Self::settle`] may give back.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps.load(Ordering::Relaxed)
    }

    /// Gives the system those blocks that were free all the time since the last call. Returns how many bytes
    /// that are.
    pub(crate) fn settle(&self) -> usize {
        let mut free = self.lock();
        let mut unused = Vec::new();
        for class in 0..CLASSES {
            let count = free.least[class];
            unused.extend(free.heap[class].drain(..count));
            free.least[class] = free.heap[class].len();
        }
        let count = free.least_large;
        unused.extend(free.large.drain(..count));
        free.least_large = free.large.len();
        let bytes = unused.iter().map(|block| block.size).sum();
        free.large_bytes = free.large.iter().map(|block| block.size).sum();
        self.keeps.store(free.heap.iter().any(|h| !h.is_empty()) || free.least_large > 0, Ordering::Relaxed);
        drop(free);
        for block in unused {
            // SAFETY: it is not in the arena, so it came from `Block::new`, and no buffer has it.
            unsafe { block.free() }
        }
        bytes
    }

    /// Another chunk of the arena is for this class from now on, if there is one.
    fn cut_chunk(&self, free: &mut Free, class: usize) {
        let Some(arena) = self.arena.as_ref().filter(|a| free.used < a.size) else { return };
        let size = ALIGN << class;
        for at in (free.used..free.used + CHUNK).step_by(size) {
            // SAFETY: inside the arena, whose size is a multiple of CHUNK.
            let start = unsafe { arena.start.add(at) };
            free.arena[class].push(Block { start, size });
        }
        free.used += CHUNK;
    }

    fn give_back(&self, block: Block, is_fixed: bool) {
        let mut free = self.lock();
        let class = Self::class(block.size).filter(|c| block.size == ALIGN << c);
        match class {
            Some(class) if is_fixed => free.arena[class].push(block),
            Some(class) if (free.heap[class].len() + 1) * block.size <= KEPT => {
                free.heap[class].push(block);
                self.keeps.store(true, Ordering::Relaxed);
            }
            None if block.size > CHUNK && free.large_bytes + block.size <= LARGE_KEPT => {
                free.large_bytes += block.size;
                free.large.push(block);
                self.keeps.store(true, Ordering::Relaxed);
            }
            _ => {
                drop(free);
                // SAFETY: it is not in the arena, so it came from `Block::new`, and its buffer is gone.
                unsafe { block.free() }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner));
        for block in free.heap.into_iter().flatten().chain(free.large).chain(self.arena.take()) {
            // SAFETY: each came from `Block::new`; each buffer holds the pool, so none is left.
            unsafe { block.free() }
        }
    }
}

/// Some bytes, aligned to 4 KiB.
#[derive(Debug)]
pub struct Buffer {
    block: Option<Block>,
    len: usize,
    is_fixed: bool,
    /// The last bytes, which the file that was read does not have.
    missing: u32,
    pool: Arc<Pool>,
}

impl Buffer {
    fn block(&self) -> &Block {
        self.block.as_ref().expect("there until it is dropped")
    }

    /// The bytes that were read from a file: less than all if the file ended there, and zeros follow.
    pub(crate) const fn end(&self) -> usize {
        self.len - self.missing as usize
    }

    /// The file that is read ends at this byte of the buffer, or before.
    pub(crate) fn ends_at(&mut self, at: usize) {
        let missing = u32::try_from(self.len - at).expect("a bio has less than 4 GiB");
        self.missing = self.missing.max(missing);
    }

    /// Whether it is in the arena.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Returns the address of the memory, which stays the same as long as the buffer lives, wherever the
    /// buffer is moved.
    #[must_use]
    pub fn address(&self) -> NonNull<u8> {
        self.block().start
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the block has at least `len` bytes, zeroed once, and this buffer has it alone.
        unsafe { std::slice::from_raw_parts(self.block().start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.block().start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let block = self.block.take().expect("dropped once");
        self.pool.give_back(block, self.is_fixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_overlap_and_come_back() {
        let pool = Pool::new(2 * CHUNK + 5);
        let sizes = [1, 4096, 4097, 100_000, CHUNK, CHUNK + 1, 3 * CHUNK];
        let mut first = Vec::new();
        for round in 0..3_u8 {
            let mut buffers: Vec<Buffer> = sizes.iter().map(|&len| pool.buffer(len)).collect();
            for (i, b) in buffers.iter_mut().enumerate() {
                assert_eq!(b.address().as_ptr() as usize % ALIGN, 0);
                b.fill(i as u8 + round);
            }
            for (i, b) in buffers.iter().enumerate() {
                assert_eq!(b.len(), sizes[i]);
                assert!(b.iter().all(|x| *x == i as u8 + round), "another buffer's bytes");
            }
            let fixed: Vec<bool> = buffers.iter().map(Buffer::is_fixed).collect();
            assert_eq!(fixed, [true, true, true, false, false, false, false], "the arena has two chunks");
            let places: Vec<usize> = buffers[..3].iter().map(|b| b.address().as_ptr() as usize).collect();
            if round == 0 {
                first = places;
                first.sort_unstable();
            } else {
                let mut places = places;
                places.sort_unstable();
                assert_eq!(places, first, "the same memory is used again");
            }
        }
    }

    #[test]
    fn large_buffers_are_used_again_within_bounds() {
        let pool = Pool::new(0);
        let address = |len: usize| pool.buffer(len).address();
        let first = address(32 << 20);
        assert_eq!(address(32 << 20), first);
        assert_eq!(address(20 << 20), first, "it is not much larger");
        assert_ne!(address(2 << 20), first, "it is much larger");
        let all: Vec<Buffer> = (0..4).map(|_| pool.buffer(32 << 20)).collect();
        drop(all);
        let kept = pool.free.lock().unwrap().large.iter().map(|b| b.size).sum::<usize>();
        assert!(kept <= LARGE_KEPT, "{kept} bytes");
    }

    #[test]
    fn what_was_not_needed_for_a_while_goes_back() {
        let pool = Pool::new(0);
        let sizes = [4096, 100_000, CHUNK, 3 * CHUNK, 20 * CHUNK];
        let many = || -> Vec<Buffer> {
            sizes.iter().flat_map(|&len| (0..3).map(move |_| len)).map(|len| pool.buffer(len)).collect()
        };
        assert!(!pool.keeps());
        drop(many());
        assert!(pool.keeps(), "for the next");
        pool.settle();
        let kept = || pool.free.lock().unwrap().heap.iter().map(Vec::len).sum::<usize>();
        assert_eq!(kept(), 9, "they were needed since the call before");
        // One of each is needed again and again.
        sizes.iter().for_each(|&len| drop(pool.buffer(len)));
        assert!(pool.settle() > 20 * CHUNK);
        assert_eq!((kept(), pool.free.lock().unwrap().large.len()), (3, 1));
        pool.settle();
        assert!(!pool.keeps() && kept() == 0, "nothing is needed any more");
        assert_eq!(pool.free.lock().unwrap().large_bytes, 0);
    }

    /// The engine's thread would stop for 20 ms if it cleared the pages of the longest write at once.
    #[test]
    fn memory_for_a_long_write_is_cleared_as_it_is_filled() {
        const LEN: usize = 32 << 20;
        let mut buffer = Pool::new(0).buffer(LEN);
        let there = |buffer: &Buffer| {
            let mut pages = vec![0_u8; LEN / ALIGN];
            // SAFETY: the buffer has this many pages, and there is a byte for each.
            let result = unsafe { libc::mincore(buffer.address().as_ptr().cast(), LEN, pages.as_mut_ptr()) };
            assert_eq!(result, 0);
            pages.iter().filter(|&page| page & 1 != 0).count()
        };
        assert_eq!(there(&buffer), 0);
        buffer.fill(1);
        assert_eq!(there(&buffer), LEN / ALIGN);
    }

    #[test]
    fn a_buffer_outlives_who_made_the_pool() {
        let pool = Pool::new(CHUNK);
        let mut buffer = pool.buffer(10);
        drop(pool);
        buffer.fill(7);
        assert_eq!(std::thread::spawn(move || buffer[9]).join().unwrap(), 7);
    }
}
