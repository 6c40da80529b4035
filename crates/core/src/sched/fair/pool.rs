//! Request descriptors: how many requests a group may have.
//!
//! If all groups took from one pool, one that floods would have all of it, and another, whatever its weight,
//! would wait for a request before it could even be queued. So a group has at most `group_requests` of a kind
//! (sync, async). That alone does not keep a pool of 128 from being one group's; so the last eighth of it
//! goes only to groups that have less than an equal part. And however crowded it is, a group that has none
//! may have one.
//!
//! ```text
//!   pool of 128:   A floods: 112        B comes: A 112, B 16        as A's complete: A 64, B 64
//! ```
//!
//! The owner of the pool decides which waiting task gets a request that becomes free.
//!
//= docs/reference/groups.md#8-request-descriptors-per-group
//= deviates fair-pool

use super::{Divisible, Fair};
use crate::request::Request;

/// This part of the pool is for groups that have little.
const RESERVED: u32 = 8;

/// Requests of all groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// How many of a kind there may be.
    size: u32,
    /// Those that wait or are at the device: async, sync.
    pub(super) held: [u32; 2],
    /// How many groups have any of these.
    pub(super) holders: [u32; 2],
}

impl Pool {
    pub(super) const fn new(size: u32) -> Self {
        Self { size, held: [0; 2], holders: [0; 2] }
    }

    /// Counts one more request of a group, which has `of_group` of each kind.
    #[inline]
    pub(super) fn take(&mut self, of_group: &mut [u32; 2], sync: bool) {
        let kind = usize::from(sync);
        self.holders[kind] += u32::from(of_group[kind] == 0);
        of_group[kind] += 1;
        self.held[kind] += 1;
    }

    /// It has one less.
    #[inline]
    pub(super) fn give_back(&mut self, of_group: &mut [u32; 2], sync: bool) {
        let kind = usize::from(sync);
        of_group[kind] -= 1;
        self.holders[kind] -= u32::from(of_group[kind] == 0);
        self.held[kind] -= 1;
    }
}

impl<S: Divisible> Fair<S> {
    /// Whether the group of a request like this one may have another. Of a group that is gone, it says what
    /// it would.
    pub(super) fn has_request(&self, rq: &Request) -> bool {
        let (kind, Pool { size, held: all, holders }) = (usize::from(rq.sync), self.pool);
        let held = self.members.get(rq.group).map_or(0, |m| m.held[kind]);
        let is_crowded = all[kind] >= size - size / RESERVED && held >= size / (holders[kind] + 1);
        held == 0 || !(held >= self.config.layer.group_requests || all[kind] >= size || is_crowded)
    }
}
