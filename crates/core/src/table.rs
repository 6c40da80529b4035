//! Fixed arrays with typed indices: the only place in this crate that knows where memory comes from.
//!
//! A kernel has no growing vectors and inserts under a spinlock, so every array here gets its length in `new` and keeps
//! it. A scheduler joins its own state to a request by the request's tag: `Table<Tag, Slot>`.

extern crate alloc;

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use crate::units::Id;

/// An array of `V`, indexed by `I`, of a length that never changes.
#[derive(Debug, Clone)]
pub struct Table<I, V> {
    items: Box<[V]>,
    index: PhantomData<I>,
}

impl<I: Id, V: Clone> Table<I, V> {
    /// A table of `len` copies of `value`. Allocates; nothing else here does.
    pub fn new(len: usize, value: V) -> Self {
        Self { items: alloc::vec![value; len].into_boxed_slice(), index: PhantomData }
    }
}

impl<I: Id, V> Table<I, V> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All entries with their indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (I::from_index(i), v))
    }

    /// All entries with their indices, in order, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut V)> {
        self.items.iter_mut().enumerate().map(|(i, v)| (I::from_index(i), v))
    }
}

impl<I: Id, V> Index<I> for Table<I, V> {
    type Output = V;
    fn index(&self, i: I) -> &V {
        &self.items[i.index()]
    }
}

impl<I: Id, V> IndexMut<I> for Table<I, V> {
    fn index_mut(&mut self, i: I) -> &mut V {
        &mut self.items[i.index()]
    }
}
