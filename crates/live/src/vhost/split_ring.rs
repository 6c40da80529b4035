//! One virtqueue: the rings through which a guest hands over chains of descriptors and gets them back.
//!
//! ```text
//!   guest: descriptors ◄── available ring: heads, index          next_available: how far it was read here
//!   here:                  used ring: heads, lengths, index      next_used: how far it was written here
//! ```
//!
//! All of it is in the guest's memory, which the guest changes while it is read here. So each value is read
//! once, with an atomic access or a copy, and checked after that. What the rings cannot be is an error
//! ([`Broken`]), after which nothing is read from them any more. Addresses are looked up once, when the rings
//! begin. The number of descriptors in a chain is bounded, so a loop ends.
//!
//! **Notifications.** Each side says when it wants to hear from the other: with the feature *event index* by
//! the index that it waits for, else with a flag.
//!
//! What it does not do: packed rings. Requests: `request.rs`.
//!
//! Why not the crate `virtio-queue`: it looks up an address in the table of regions at each access, ends a
//! chain that is broken as if it were complete, and does not know the guest's flag against signals.
//!
//! Source: Virtual I/O Device (VIRTIO) 1.2, section 2.7.

use super::memory::GuestMemory;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

/// The most descriptors of a ring.
pub(super) const SIZE_MAX: u16 = 1024;

/// The most descriptors of a chain, in a table of its own or not.
pub(super) const CHAIN_MAX: usize = 1024;

/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// The bytes of a descriptor.
const DESCRIPTOR: usize = 16;

/// Rings that are not as they have to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken(pub(super) &'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A piece of a guest's memory that a chain names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    /// Whether it is for us to write.
    pub(super) is_for_device: bool,
}

/// The places of the rings, as addresses of the virtual machine's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    pub(super) descriptors: u64,
    pub(super) available: u64,
    pub(super) used: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct SplitRing {
    memory: Arc<GuestMemory>,
    size: u16,
    descriptors: NonNull<u8>,
    available: NonNull<u8>,
    used: NonNull<u8>,
    next_available: u16,
    next_used: u16,
    /// `next_used` when it was last asked whether to signal.
    signalled: u16,
    has_event_index: bool,
}

// SAFETY: addresses in memory that the ring keeps mapped; one thread uses them.
unsafe impl Send for SplitRing {}

impl SplitRing {
    /// Rings of `size` descriptors, of which the guest's were read up to `next_available`.
    ///
    /// # Errors
    /// If the size is not a power of two, 1 to 1024, or the rings are not in the memory.
    pub(super) fn new(
        memory: Arc<GuestMemory>,
        size: u16,
        at: Addresses,
        next_available: u16,
        has_event_index: bool,
    ) -> Result<Self, Broken> {
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(Broken("a ring's size is a power of two, 1 to 1024"));
        }
        let n = u64::from(size);
        let place = |address: u64, len: u64, align: usize| {
            let place = memory.place_of_user(address, len);
            place
                .filter(|p| (p.as_ptr() as usize).is_multiple_of(align))
                .ok_or(Broken("a ring is not in memory"))
        };
        let descriptors = place(at.descriptors, n * DESCRIPTOR as u64, 8)?;
        let available = place(at.available, 6 + 2 * n, 2)?;
        let used = place(at.used, 6 + 8 * n, 4)?;
        let mut ring = Self {
            memory: Arc::clone(&memory),
            size,
            descriptors,
            available,
            used,
            next_available,
            next_used: 0,
            signalled: 0,
            has_event_index,
        };
        ring.next_used = ring.cell(ring.used, 2).load(Ordering::Relaxed);
        ring.signalled = ring.next_used;
        Ok(ring)
    }

    /// A number in a ring.
    fn cell(&self, ring: NonNull<u8>, at: usize) -> &AtomicU16 {
        // SAFETY: inside the ring, whose length was checked, at an even place; the memory is kept mapped.
        unsafe { AtomicU16::from_ptr(ring.as_ptr().add(at).cast()) }
    }

    pub(super) const fn memory(&self) -> &Arc<GuestMemory> {
        &self.memory
    }

    pub(super) const fn next_available(&self) -> u16 {
        self.next_available
    }

    pub(super) const fn set_next_available(&mut self, index: u16) {
        self.next_available = index;
    }

    pub(super) const fn next_used(&self) -> u16 {
        self.next_used
    }

    /// Whether the guest has handed over something that was not taken. More than fits the ring is an error.
    pub(super) fn has_more(&self) -> Result<bool, Broken> {
        let index = self.cell(self.available, 2).load(Ordering::Acquire);
        match index.wrapping_sub(self.next_available) {
            0 => Ok(false),
            n if n <= self.size => Ok(true),
            _ => Err(Broken("more is available than the ring has room for")),
        }
    }

    /// Returns the head of the next chain, and leaves it there.
    pub(super) fn peek(&self) -> Result<Option<u16>, Broken> {
        if !self.has_more()? {
            return Ok(None);
        }
        let at = 4 + 2 * usize::from(self.next_available % self.size);
        let head = self.cell(self.available, at).load(Ordering::Relaxed);
        if head < self.size { Ok(Some(head)) } else { Err(Broken("a head that is no descriptor")) }
    }

    /// Takes what was [looked at](Self::peek).
    pub(super) const fn take(&mut self) {
        self.next_available = self.next_available.wrapping_add(1);
    }

    /// Reads the descriptors of a chain.
    pub(super) fn chain(&self, head: u16, into: &mut Vec<Descriptor>) -> Result<(), Broken> {
        into.clear();
        let (mut table, mut count, mut index) = (self.descriptors, self.size, head);
        let mut is_indirect = false;
        loop {
            if index >= count {
                return Err(Broken("a chain whose next descriptor does not exist"));
            }
            if into.len() == CHAIN_MAX {
                return Err(Broken("a chain of more than 1024 descriptors"));
            }
            // SAFETY: inside the table, whose length was checked; the guest may change it meanwhile, which a
            // copy of bytes does not mind.
            let raw: [u8; DESCRIPTOR] = unsafe {
                table.as_ptr().add(usize::from(index) * DESCRIPTOR).cast::<[u8; DESCRIPTOR]>().read_volatile()
            };
            let (address, len, flags, next) = decode(raw);
            if flags & INDIRECT != 0 {
                if is_indirect || flags & NEXT != 0 || len == 0 || !(len as usize).is_multiple_of(DESCRIPTOR)
                {
                    return Err(Broken("a table of descriptors that cannot be one"));
                }
                let all = len as usize / DESCRIPTOR;
                count = u16::try_from(all).map_err(|_| Broken("a table of more than 65535 descriptors"))?;
                table =
                    self.memory.place(address, len.into()).ok_or(Broken("a table that is not in memory"))?;
                (index, is_indirect) = (0, true);
                continue;
            }
            into.push(Descriptor { address, len, is_for_device: flags & WRITE != 0 });
            if flags & NEXT == 0 {
                return Ok(());
            }
            index = next;
        }
    }

    /// Gives a chain back, of which `len` bytes were written.
    pub(super) fn give_back(&mut self, head: u16, len: u32) {
        let at = 4 + 8 * usize::from(self.next_used % self.size);
        // SAFETY: inside the used ring, at a multiple of 4.
        let element = |at: usize| unsafe { AtomicU32::from_ptr(self.used.as_ptr().add(at).cast()) };
        element(at).store(head.into(), Ordering::Relaxed);
        element(at + 4).store(len, Ordering::Relaxed);
        self.next_used = self.next_used.wrapping_add(1);
        self.cell(self.used, 2).store(self.next_used, Ordering::Release);
    }

    /// Whether the guest wants to hear of what was given back since this was last asked.
    pub(super) fn wants_signal(&mut self) -> bool {
        let before = std::mem::replace(&mut self.signalled, self.next_used);
        if before == self.next_used {
            return false;
        }
        // The guest asks for the signal, then looks at the index again; the index was written before this
        // looks whether it asked. So one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.has_event_index {
            let event = self.cell(self.available, 4 + 2 * usize::from(self.size)).load(Ordering::Relaxed);
            let (since, new) = (self.next_used.wrapping_sub(event), self.next_used.wrapping_sub(before));
            return since.wrapping_sub(1) < new;
        }
        self.cell(self.available, 0).load(Ordering::Relaxed) & 1 == 0
    }

    /// The guest need not say when there is more.
    pub(super) fn be_quiet(&self) {
        // With the event index, the guest says so once, when it passes the index: nothing has to be done.
        if !self.has_event_index {
            self.cell(self.used, 0).store(1, Ordering::Relaxed);
        }
    }

    /// The guest is to say when there is more. Returns whether there is already.
    pub(super) fn ask_for_kick(&self) -> Result<bool, Broken> {
        if self.has_event_index {
            let event = self.cell(self.used, 4 + 8 * usize::from(self.size));
            event.store(self.next_available, Ordering::Relaxed);
        } else {
            self.cell(self.used, 0).store(0, Ordering::Relaxed);
        }
        // As in `wants_signal`, the other way round.
        fence(Ordering::SeqCst);
        self.has_more()
    }
}

fn decode(raw: [u8; DESCRIPTOR]) -> (u64, u32, u16, u16) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = raw;
    let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let len = u32::from_le_bytes([i, j, k, l]);
    (address, len, u16::from_le_bytes([m, n]), u16::from_le_bytes([o, p]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::memory::tests::memory;
    use super::*;

    pub(in crate::vhost) const BASE: u64 = 0x10000;
    const SIZE: u16 = 8;
    const USER: u64 = 1 << 40;

    /// A guest with one ring of 8 descriptors, as its driver sees it.
    pub(in crate::vhost) struct Driver {
        pub(in crate::vhost) memory: Arc<GuestMemory>,
        pub(in crate::vhost) at: Addresses,
        index: u16,
        size: u16,
    }

    impl Driver {
        pub(in crate::vhost) fn new() -> Self {
            Self::sized(SIZE)
        }

        /// A ring of this many descriptors, 256 at most.
        pub(in crate::vhost) fn sized(size: u16) -> Self {
            let memory = Arc::new(memory(&[(BASE, 0x10000)]));
            let user = USER + BASE;
            let at = Addresses { descriptors: user, available: user + 0x1000, used: user + 0x2000 };
            Self { memory, at, index: 0, size }
        }

        pub(in crate::vhost) fn ring(&self, has_event_index: bool) -> SplitRing {
            SplitRing::new(Arc::clone(&self.memory), self.size, self.at, 0, has_event_index).unwrap()
        }

        pub(in crate::vhost) fn write(&self, address: u64, bytes: &[u8]) {
            let place = self.memory.place(address, bytes.len() as u64).unwrap();
            // SAFETY: there are as many bytes.
            unsafe { place.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }

        pub(in crate::vhost) fn read<const N: usize>(&self, address: u64) -> [u8; N] {
            let place = self.memory.place(address, N as u64).unwrap();
            // SAFETY: there are as many bytes.
            unsafe { place.as_ptr().cast::<[u8; N]>().read_unaligned() }
        }

        pub(in crate::vhost) fn describe(
            &self,
            table: u64,
            i: u16,
            (address, len, flags, next): (u64, u32, u16, u16),
        ) {
            let mut raw = address.to_le_bytes().to_vec();
            raw.extend(len.to_le_bytes());
            raw.extend(flags.to_le_bytes());
            raw.extend(next.to_le_bytes());
            self.write(table + 16 * u64::from(i), &raw);
        }

        /// How many chains were offered so far.
        pub(in crate::vhost) const fn offered(&self) -> u16 {
            self.index
        }

        pub(in crate::vhost) fn offer(&mut self, head: u16) {
            self.write(BASE + 0x1004 + 2 * u64::from(self.index % self.size), &head.to_le_bytes());
            self.index = self.index.wrapping_add(1);
            self.write(BASE + 0x1002, &self.index.to_le_bytes());
        }
    }

    fn chain(ring: &SplitRing, head: u16) -> Result<Vec<Descriptor>, Broken> {
        let mut into = Vec::new();
        ring.chain(head, &mut into).map(|()| into)
    }

    #[test]
    fn chains_are_taken_and_given_back_in_any_order() {
        let mut driver = Driver::new();
        let mut ring = driver.ring(false);
        assert_eq!(ring.peek(), Ok(None));
        driver.describe(BASE, 3, (0x5000, 16, NEXT, 5));
        driver.describe(BASE, 5, (0x6000, 512, NEXT | WRITE, 1));
        driver.describe(BASE, 1, (0x7000, 1, WRITE, 0));
        driver.offer(3);
        driver.offer(1);
        assert_eq!(ring.peek(), Ok(Some(3)));
        let all = chain(&ring, 3).unwrap();
        let shown: Vec<_> = all.iter().map(|d| (d.address, d.len, d.is_for_device)).collect();
        assert_eq!(shown, [(0x5000, 16, false), (0x6000, 512, true), (0x7000, 1, true)]);
        ring.take();
        assert_eq!(ring.peek(), Ok(Some(1)));
        ring.take();
        assert_eq!(ring.peek(), Ok(None));
        ring.give_back(1, 1);
        ring.give_back(3, 513);
        assert_eq!(driver.read::<2>(BASE + 0x2002), 2u16.to_le_bytes());
        assert_eq!(driver.read::<8>(BASE + 0x2004 + 8), [3, 0, 0, 0, 1, 2, 0, 0]);
    }

    #[test]
    fn a_table_of_its_own_holds_the_chain() {
        let driver = Driver::new();
        let ring = driver.ring(false);
        let table = BASE + 0x4000;
        driver.describe(BASE, 0, (table, 48, INDIRECT, 0));
        driver.describe(table, 0, (1, 2, NEXT, 2));
        driver.describe(table, 2, (3, 4, WRITE, 0));
        assert_eq!(chain(&ring, 0).unwrap().iter().map(|d| d.address).collect::<Vec<_>>(), [1, 3]);
        for (len, flags) in [
            (0, INDIRECT),
            (47, INDIRECT),
            (48, INDIRECT | NEXT),
            (0x10_0000, INDIRECT),
            (16 << 16, INDIRECT),
        ] {
            driver.describe(BASE, 0, (table, len, flags, 0));
            assert!(chain(&ring, 0).is_err(), "{len} {flags}");
        }
        driver.describe(BASE, 0, (table, 48, INDIRECT, 0));
        driver.describe(table, 0, (table, 48, INDIRECT, 0));
        assert!(chain(&ring, 0).is_err(), "a table in a table");
    }

    #[test]
    fn loops_and_bad_indices_end() {
        let mut driver = Driver::new();
        let ring = driver.ring(false);
        driver.describe(BASE, 0, (1, 2, NEXT, 1));
        driver.describe(BASE, 1, (1, 2, NEXT, 0));
        assert!(chain(&ring, 0).is_err(), "a loop");
        driver.describe(BASE, 1, (1, 2, NEXT, SIZE));
        assert!(chain(&ring, 0).is_err(), "no descriptor");
        driver.offer(SIZE);
        assert!(ring.peek().is_err(), "no head");
        (0..SIZE).for_each(|_| driver.offer(0));
        assert!(ring.has_more().is_err(), "too many");
    }

    #[test]
    fn rings_that_are_not_there_are_refused() {
        let driver = Driver::new();
        let new = |size, at| SplitRing::new(Arc::clone(&driver.memory), size, at, 0, false);
        let at = driver.at;
        assert!(new(8, at).is_ok());
        for size in [0, 3, 2048] {
            assert!(new(size, at).is_err(), "{size}");
        }
        let end = USER + BASE + 0x10000;
        for wrong in [
            Addresses { descriptors: end - 127, ..at },
            Addresses { descriptors: at.descriptors + 1, ..at },
            Addresses { available: end - 20, ..at },
            Addresses { available: at.available + 1, ..at },
            Addresses { used: end - 68, ..at },
            Addresses { used: at.used + 2, ..at },
            Addresses { used: 0, ..at },
        ] {
            assert!(new(8, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn signals_are_sent_when_the_guest_wants_them() {
        let driver = Driver::new();
        let mut ring = driver.ring(true);
        assert!(!ring.wants_signal(), "nothing is new");
        ring.give_back(0, 0);
        assert!(ring.wants_signal(), "it waits for the first one");
        ring.give_back(0, 0);
        assert!(!ring.wants_signal(), "it has not asked again");
        driver.write(BASE + 0x1004 + 16, &4u16.to_le_bytes());
        ring.give_back(0, 0);
        ring.give_back(0, 0);
        assert!(!ring.wants_signal(), "it waits for the fifth one");
        ring.give_back(0, 0);
        ring.give_back(0, 0);
        assert!(ring.wants_signal());
        let mut ring = driver.ring(false);
        ring.give_back(0, 0);
        assert!(ring.wants_signal());
        driver.write(BASE + 0x1000, &1u16.to_le_bytes());
        ring.give_back(0, 0);
        assert!(!ring.wants_signal(), "the guest's flag");
    }

    #[test]
    fn who_asks_for_a_kick_hears_of_what_is_there() {
        let mut driver = Driver::new();
        for has_event_index in [true, false] {
            let mut ring = driver.ring(has_event_index);
            ring.set_next_available(driver.index);
            ring.be_quiet();
            assert_eq!(ring.ask_for_kick(), Ok(false));
            driver.offer(0);
            assert_eq!(ring.ask_for_kick(), Ok(true));
            if has_event_index {
                assert_eq!(driver.read::<2>(BASE + 0x2004 + 64), [0, 0]);
            } else {
                ring.be_quiet();
                assert_eq!(driver.read::<2>(BASE + 0x2000), [1, 0]);
            }
        }
    }
}
