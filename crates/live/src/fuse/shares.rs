//! Shares of the engine's thread for the groups of a mount.
//!
//! The kernel has all requests of a mount in one line, and each takes time of the engine's thread before the
//! scheduler knows of it. A group with two hundred callers fills the line again as soon as it is empty, so
//! that each request of another group waits behind two hundred, whatever the weights say. So a request costs
//! its group a known time, and while other groups are active, a group that has had more than its weight's part
//! of the thread waits with its next requests. Its callers wait meanwhile, and leave the line to others.
//!
//! ```text
//!   weights 1 : 1, a request of 4 us      ▓▓│··│▓▓│··│▓▓        8 us from one to the next
//!   nothing of others for THINK           ▓▓│▓▓│▓▓│▓▓│▓▓
//! ```
//!
//! A group may be [`AHEAD`] of its part, so that callers who do little wait for nothing. What a request costs is
//! the mean of what requests took of the thread lately, as that depends on the machine and on how busy it is;
//! and what the operation takes besides, as known numbers.
//!
//! What it does not do: divide the disk, or hold requests; the front does.

use crate::fuse::protocol::Operation;
use fairhead_core::groups::Groups;
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::BTreeMap;

/// A group is active for this time after its last request.
const THINK: Duration = Duration::from_ms(4);

/// How far a group may be ahead of its part.
const AHEAD: Duration = Duration::from_us(200);

/// The time after which it is asked again whether the others have gone.
const AGAIN: Duration = Duration::from_ms(1);

/// What a request costs as long as nothing is known, and what its cost is taken for at least and at most.
const USUAL: Duration = Duration::from_us(4);
const LEAST: Duration = Duration::from_us(1);
const MOST: Duration = Duration::from_us(16);

/// The number of requests over which the mean is taken.
const WINDOW: u64 = 64;

/// What names and attributes take besides, in this thread or in another one.
const NAMES: Duration = Duration::from_us(4);

/// What an operation takes besides what any request does; `None`: nothing waits for it, or it ends what others
/// wait for. Data are copied, eight bytes in a nanosecond.
pub(super) fn extra(operation: &Operation<'_>) -> Option<Duration> {
    let copied = |bytes: u64| Duration::from_ns(bytes / 8);
    Some(match *operation {
        Operation::Init { .. }
        | Operation::Destroy
        | Operation::Interrupt { .. }
        | Operation::Forget { .. }
        | Operation::BatchForget { .. }
        | Operation::Flush { .. }
        | Operation::Release { .. }
        | Operation::ReleaseDir { .. } => return None,
        Operation::Read { size, .. } | Operation::Write { size, .. } => copied(size.into()),
        // Further pieces of a copy do not come through the line.
        Operation::CopyFileRange { len, .. } => copied(2 * len.min(1 << 20)),
        Operation::Fsync { .. } | Operation::Fallocate { .. } => Duration::ZERO,
        _ => NAMES,
    })
}

#[derive(Clone, Copy, Debug)]
struct Share {
    /// When all that it had will be within its part.
    until: Instant,
    last: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Shares {
    groups: BTreeMap<GroupId, Share>,
    mean: Duration,
    /// How many requests were done since `busy` was what the thread had taken.
    count: u64,
    busy: Duration,
}

impl Default for Shares {
    fn default() -> Self {
        Self { groups: BTreeMap::new(), mean: USUAL, count: 0, busy: Duration::ZERO }
    }
}

impl Shares {
    /// The engine's thread was busy for this time until now, in all.
    pub(super) fn learn(&mut self, busy: Duration) {
        if self.count >= WINDOW {
            let each = busy.saturating_sub(self.busy) / self.count;
            self.mean = (self.mean * 7 + each.clamp(LEAST, MOST)) / 8;
            (self.count, self.busy) = (0, busy);
        }
    }

    /// Whether a request of this group, which has come, may be done; if not, when to ask again.
    pub(super) fn may(&mut self, now: Instant, group: GroupId) -> Result<(), Instant> {
        let others = self.groups.iter().any(|(other, share)| *other != group && share.is_active(now));
        let share = self.groups.entry(group).or_insert(Share { until: now, last: now });
        share.last = now;
        if !others || share.until <= now + AHEAD {
            return Ok(());
        }
        Err((share.until - AHEAD).min(now + AGAIN))
    }

    /// It is done, and takes this besides what any request does.
    pub(super) fn charge(&mut self, now: Instant, groups: &Groups, group: GroupId, extra: Duration) {
        self.count += 1;
        if self.groups.len() > 1 {
            self.groups.retain(|_, share| share.is_active(now) || share.until > now);
        }
        let weight = |group: GroupId| u64::from(groups.weight(group).get());
        let active = self.groups.iter().filter(|(other, share)| **other != group && share.is_active(now));
        let others: u64 = active.map(|(other, _)| weight(*other)).sum();
        let own = weight(group).max(1);
        let cost = self.mean + extra;
        let takes = if others == 0 { Duration::ZERO } else { cost * (own + others) / own };
        if let Some(share) = self.groups.get_mut(&group) {
            share.until = share.until.max(now) + takes;
        }
    }
}

impl Share {
    fn is_active(&self, now: Instant) -> bool {
        now.saturating_since(self.last) < THINK
    }
}
