//! Request descriptors: how many requests a group may have.
//!
//! If all groups took from one pool, one that floods would have all of it, and another, whatever its weight, would wait for a
//! request before it could even be queued. So a group has at most `group_requests` of a kind (sync, async). That alone does
//! not keep a pool of 128 from being one group's; so the last eighth of it goes only to groups that have less than an equal part. And
//! however crowded it is, a group that has none may have one.
//!
//! ```text
//!   pool of 128:   A floods: 112        B comes: A 112, B 16        as A's complete: A 64, B 64
//! ```
//!
//! Who waits for a request, and who is told when there is one, is the business of whoever keeps the pool.
//!
//= spec: groups.md 8
//= deviates fair-pool

use super::{Divisible, Fair};
use crate::request::Request;
use crate::units::GroupId;

/// This part of the pool is for groups that have little.
const RESERVED: u32 = 8;

impl<S: Divisible> Fair<S> {
    /// Whether the group of a request like this one may have another. Of a group that is gone, it says what it would.
    pub(super) fn has_request(&self, rq: &Request) -> bool {
        let kind = usize::from(rq.sync);
        let held = self.members.get(rq.group).map_or(0, |m| m.held[kind]);
        let all = self.held[kind];
        let is_crowded =
            all >= self.pool - self.pool / RESERVED && held >= self.pool / (self.holders[kind] + 1);
        held == 0 || !(held >= self.config.layer.group_requests || all >= self.pool || is_crowded)
    }

    /// The group has one more.
    #[inline]
    pub(super) fn take(&mut self, group: GroupId, sync: bool) {
        let (kind, held) = (usize::from(sync), &mut self.members[group].held);
        self.holders[kind] += u32::from(held[kind] == 0);
        held[kind] += 1;
        self.held[kind] += 1;
    }

    /// It has one less.
    #[inline]
    pub(super) fn give_back(&mut self, group: GroupId, sync: bool) {
        let (kind, held) = (usize::from(sync), &mut self.members[group].held);
        held[kind] -= 1;
        self.holders[kind] -= u32::from(held[kind] == 0);
        self.held[kind] -= 1;
    }
}
