//! Fixed arrays with typed indices: the only place in this crate that knows where memory comes from.
//!
//! A kernel has no growing vectors and inserts under a spinlock, so every array here gets its length in `new`
//! and keeps it. A scheduler joins its own state to a request by the request's tag: `Table<Tag, Slot>`.

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use crate::units::Id;

/// No place: what a link says that leads nowhere. Beyond the end of every table, so that [`Table::get`]
/// answers `None`.
pub(crate) const NIL: u32 = u32::MAX;

/// An index as structures of links store it: a number, or [`NIL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    /// Where `id` is in a table with one entry per id.
    #[inline]
    pub(crate) fn of<I: Id>(id: I) -> Self {
        Self::from_index(id.index())
    }

    /// The id whose entry is here; `None` for [`NIL`].
    #[inline]
    pub(crate) fn id<I: Id>(self) -> Option<I> {
        (self.0 != NIL).then(|| I::from_index(self.0 as usize))
    }
}

impl Id for Place {
    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "tables here have fewer than 2^32 - 1 entries")]
    fn from_index(i: usize) -> Self {
        Self(i as u32)
    }
}

/// An array of `V`, indexed by `I`, of a length that never changes.
#[derive(Debug, Clone)]
pub(crate) struct Table<I, V> {
    items: Box<[V]>,
    index: PhantomData<I>,
}

impl<I: Id, V: Clone> Table<I, V> {
    /// A table of `len` copies of `value`. Allocates; nothing else here does.
    ///
    /// # Panics
    /// If there is not enough memory.
    pub(crate) fn new(len: usize, value: V) -> Self {
        let mut items = Vec::new();
        // A driver that catches panics can then say that there is not enough memory, where the usual way ends
        // the process.
        assert!(items.try_reserve_exact(len).is_ok(), "not enough memory for a table");
        items.resize(len, value);
        Self { items: items.into_boxed_slice(), index: PhantomData }
    }
}

impl<I: Id, V> Table<I, V> {
    /// How many entries there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The entry at `i`, if there is one.
    #[inline]
    pub(crate) fn get(&self, i: I) -> Option<&V> {
        self.items.get(i.index())
    }

    /// The entry at `i`, if there is one, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: I) -> Option<&mut V> {
        self.items.get_mut(i.index())
    }

    /// All entries with their indices, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (I::from_index(i), v))
    }

    /// All entries with their indices, in order, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut V)> {
        self.items.iter_mut().enumerate().map(|(i, v)| (I::from_index(i), v))
    }
}

impl<I: Id, V> Index<I> for Table<I, V> {
    type Output = V;
    #[inline]
    fn index(&self, i: I) -> &V {
        &self.items[i.index()]
    }
}

impl<I: Id, V> IndexMut<I> for Table<I, V> {
    #[inline]
    fn index_mut(&mut self, i: I) -> &mut V {
        &mut self.items[i.index()]
    }
}
