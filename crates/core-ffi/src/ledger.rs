//! The ledger: which tags wait and which are at the device, from the caller's calls and the answers alone.
//!
//! It is kept beside the elevator for two ends. Misuse is found here before core's assertions would panic.
//! And when the instance is poisoned, it answers instead: what waits goes out in order of arrival, what was
//! handed back first, each tag by itself. What a request carries is fixed when it is issued: tags that were
//! merged into one that still waits are handed out one by one.
//!
//! Nothing here depends on the elevator's state, and nothing allocates but [`Ledger::new`].

use alloc::boxed::Box;
use alloc::vec::Vec;

/// No tag: tags are below 65535.
const NONE: u16 = u16::MAX;

/// Where a tag is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Not in use.
    Free,
    /// It waits, maybe as a part of another one that waits.
    Waits,
    /// At the device.
    Issued,
    /// At the device as a part of another, or a part of one that was handed back.
    Carried,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    place: Place,
    /// The caller does not want it any longer.
    is_removed: bool,
    /// The neighbours among those that wait.
    prev: u16,
    next: u16,
    /// The next one that is carried by the same.
    chain: u16,
}

/// All tags.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Box<[Entry]>,
    first: u16,
    last: u16,
    /// How many removed ones have not been answered yet.
    removed: u32,
}

impl Ledger {
    /// A ledger for this number of tags; `None` if there is no memory.
    pub(crate) fn new(tags: u16) -> Option<Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(tags.into()).ok()?;
        let free = Entry { place: Place::Free, is_removed: false, prev: NONE, next: NONE, chain: NONE };
        entries.resize(tags.into(), free);
        Some(Self { entries: entries.into_boxed_slice(), first: NONE, last: NONE, removed: 0 })
    }

    /// Where a tag is; `None` if there is no such tag.
    pub(crate) fn place(&self, tag: u16) -> Option<Place> {
        self.entries.get(usize::from(tag)).map(|entry| entry.place)
    }

    /// Whether a tag waits by itself.
    pub(crate) fn has_waiting(&self) -> bool {
        self.first != NONE
    }

    /// Whether some that were removed have not been answered yet.
    pub(crate) fn has_removed(&self) -> bool {
        self.removed > 0
    }

    /// Whether a tag that waits was removed.
    pub(crate) fn is_removed(&self, tag: u16) -> bool {
        self[tag].is_removed
    }

    /// A free tag waits, behind all others.
    pub(crate) fn insert(&mut self, tag: u16) {
        let last = self.last;
        self[tag] = Entry { place: Place::Waits, is_removed: false, prev: last, next: NONE, chain: NONE };
        match last {
            NONE => self.first = tag,
            last => self[last].next = tag,
        }
        self.last = tag;
    }

    /// A tag that waits is not wanted any longer.
    pub(crate) fn remove(&mut self, tag: u16) {
        if !self[tag].is_removed {
            self[tag].is_removed = true;
            self.removed += 1;
        }
    }

    /// Whether these tags can be carried by one that is issued: all of them wait, or are carried already.
    pub(crate) fn can_carry(&self, carried: impl Iterator<Item = u16>) -> bool {
        let mut left = self.entries.len();
        for part in carried {
            let waits = matches!(self.place(part), Some(Place::Waits | Place::Carried));
            if !waits || left == 0 {
                return false;
            }
            left -= 1;
        }
        true
    }

    /// A tag that waits goes to the device, with those that it carries.
    pub(crate) fn issue(&mut self, tag: u16, carried: impl Iterator<Item = u16>) {
        self.unlink(tag);
        self[tag].place = Place::Issued;
        let mut last = tag;
        while self[last].chain != NONE {
            // Handed back: what it carries is on its list already.
            last = self[last].chain;
        }
        for part in carried {
            if self[part].place == Place::Waits {
                self.unlink(part);
                self[part].place = Place::Carried;
                self[last].chain = part;
                last = part;
            }
        }
    }

    /// A tag goes to the device, if it waits and carries nothing from before it was handed back. Returns
    /// whether it does.
    #[inline(always)]
    pub(crate) fn issue_alone(&mut self, tag: u16) -> bool {
        let Some(&Entry { place, prev, next, chain, .. }) = self.entries.get(usize::from(tag)) else {
            return false;
        };
        if place != Place::Waits || chain != NONE {
            return false;
        }
        self.join_neighbours(prev, next);
        let entry = &mut self[tag];
        (entry.place, entry.prev, entry.next) = (Place::Issued, NONE, NONE);
        true
    }

    /// The first that waits goes to the device by itself. `None` if none waits.
    pub(crate) fn issue_first(&mut self) -> Option<u16> {
        let tag = self.first;
        if tag == NONE {
            return None;
        }
        self.unlink(tag);
        self[tag].place = Place::Issued;
        Some(tag)
    }

    /// What a tag at the device, or one that was handed back, carries.
    pub(crate) fn carried(&self, tag: u16) -> impl Iterator<Item = u16> + '_ {
        let next = |&tag: &u16| Some(self[tag].chain).filter(|&chain| chain != NONE);
        core::iter::successors(Some(tag), next).skip(1)
    }

    /// The device has finished a tag: it is free, and those that it carries are.
    pub(crate) fn complete(&mut self, tag: u16) {
        let mut at = tag;
        while at != NONE {
            let next = self[at].chain;
            self.forget(at);
            at = next;
        }
    }

    /// The device handed a tag back: it goes first.
    pub(crate) fn requeue(&mut self, tag: u16) {
        let first = self.first;
        (self[tag].place, self[tag].prev, self[tag].next) = (Place::Waits, NONE, first);
        match first {
            NONE => self.last = tag,
            first => self[first].prev = tag,
        }
        self.first = tag;
    }

    /// A tag that waits became a part of another by the driver's doing, and is free.
    pub(crate) fn join(&mut self, kept: u16, gone: u16) {
        self.unlink(gone);
        // As a rule none of them carries anything, as the elevator does not merge then.
        let parts = self[gone].chain;
        let mut last = kept;
        while self[last].chain != NONE {
            last = self[last].chain;
        }
        self[last].chain = parts;
        self.forget(gone);
    }

    fn forget(&mut self, tag: u16) {
        self.removed -= u32::from(self[tag].is_removed);
        let free = Entry { place: Place::Free, is_removed: false, prev: NONE, next: NONE, chain: NONE };
        self[tag] = free;
    }

    fn unlink(&mut self, tag: u16) {
        let Entry { prev, next, .. } = self[tag];
        self.join_neighbours(prev, next);
        (self[tag].prev, self[tag].next) = (NONE, NONE);
    }

    /// Nothing is between these two any longer.
    #[inline(always)]
    fn join_neighbours(&mut self, prev: u16, next: u16) {
        match prev {
            NONE => self.first = next,
            prev => self[prev].next = next,
        }
        match next {
            NONE => self.last = prev,
            next => self[next].prev = prev,
        }
    }

    /// How many tags wait, are at the device, and are carried there.
    pub(crate) fn counts(&self) -> [u32; 3] {
        let mut counts = [0; 3];
        for entry in &self.entries {
            match entry.place {
                Place::Free => (),
                Place::Waits => counts[0] += 1,
                Place::Issued => counts[1] += 1,
                Place::Carried => counts[2] += 1,
            }
        }
        counts
    }
}

impl core::ops::Index<u16> for Ledger {
    type Output = Entry;
    fn index(&self, tag: u16) -> &Entry {
        &self.entries[usize::from(tag)]
    }
}

impl core::ops::IndexMut<u16> for Ledger {
    fn index_mut(&mut self, tag: u16) -> &mut Entry {
        &mut self.entries[usize::from(tag)]
    }
}
