//! Shares of the engine's thread for the groups of a mount.
//!
//! The kernel has all requests of a mount in one line, and each takes time of the engine's thread before the
//! scheduler knows of it. A group with two hundred callers fills the line again as soon as it is empty, so
//! that each request of another group waits behind two hundred, whatever the weights say. So a request costs
//! its group some time, and while other groups are active, a group that has had more than its weight's part
//! of the thread waits with its next requests. Its callers wait meanwhile, and leave the line to others.
//!
//! ```text
//!   weights 1 : 1, a request of 4 us      ▓▓│··│▓▓│··│▓▓        8 us from one to the next
//!   nothing of others for THINK           ▓▓│▓▓│▓▓│▓▓│▓▓
//! ```
//!
//! What waits in the kernel's line is not seen. So a group leaves a part of the thread free ([`FREE`]) for a
//! longer time after others were seen last, in which the line becomes empty.
//!
//! A group may be [`AHEAD`] of its part, so that callers who do little wait for nothing. What a request costs
//! is the mean of what requests took of the engine's threads lately, since that depends on the machine. Names
//! and attributes cost the processor time of their threads besides.
//!
//! **One caller that waits for each answer** crowds out no group: others are served between two of its
//! requests. So it is never held back, and keeps what others leave of the thread.
//!
//! While others are active, names and attributes have one part in [`NAMES`] of that: the disk's clients have
//! nothing of such work, and it is no request for the weights of the disk.
//!
//! What it does not do: divide the disk, or hold requests; the front does.

use crate::fuse::protocol::Operation;
use crate::turns::Mean;
use fairhead_core::groups::Groups;
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::BTreeMap;

/// A group is active for this time after its last request.
const THINK: Duration = Duration::from_ms(4);

/// After this time nothing is kept free for a group that was active.
const GONE: Duration = Duration::from_ms(100);

/// One part in this many of the thread's time stays free.
const FREE: u64 = 8;

/// Names and attributes have one part in this many of their group's: beside one other group of the same
/// weight a sixteenth of the thread, as control has.
const NAMES: u64 = 8;

/// How far a group may be ahead of its part: one or two requests.
const AHEAD: Duration = Duration::from_us(50);

/// The time after which it is asked again whether the others have gone.
const AGAIN: Duration = Duration::from_ms(1);

/// What an operation takes besides what any request does; `None`: nothing waits for it, or it ends what
/// others wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extra {
    /// Copying so much data, eight bytes in a nanosecond.
    Data(u64),
    /// Names or attributes.
    Names,
}

/// See [`Extra`].
pub(super) const fn extra(operation: &Operation<'_>) -> Option<Extra> {
    Some(match *operation {
        Operation::Init { .. }
        | Operation::Destroy
        | Operation::Interrupt { .. }
        | Operation::Forget { .. }
        | Operation::BatchForget { .. }
        | Operation::Flush { .. }
        | Operation::Release { .. }
        | Operation::ReleaseDir { .. } => return None,
        Operation::Read { size, .. } | Operation::Write { size, .. } => Extra::Data(size as u64),
        // Further pieces of a copy do not come through the line.
        Operation::CopyFileRange { len, .. } => Extra::Data(if len > PIECE { 2 * PIECE } else { 2 * len }),
        Operation::Fsync { .. } | Operation::Fallocate { .. } => Extra::Data(0),
        _ => Extra::Names,
    })
}

/// The first piece of a copy.
const PIECE: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Share {
    /// When all that it had will be within its part.
    until: Instant,
    last: Instant,
    /// The thread of its last request, and the number of that.
    asked: (u32, u64),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Shares {
    groups: BTreeMap<GroupId, Share>,
    requests: Mean,
    names: Mean,
}

impl Shares {
    /// The engine's threads have worked for this time until now, and those for names for that.
    pub(super) fn learn(&mut self, busy: Option<Duration>, names: Option<Duration>) {
        self.requests.learn(busy);
        self.names.learn(names);
    }

    /// A request of a thread in this group has come. Returns the thread and the number of the one before.
    pub(super) fn asks(&mut self, now: Instant, group: GroupId, asked: (u32, u64)) -> Option<(u32, u64)> {
        let before = self.groups.get(&group).map(|share| share.asked);
        let share = self.groups.entry(group).or_insert(Share { until: now, last: now, asked });
        (share.last, share.asked) = (now, asked);
        before
    }

    /// Whether a request of this group, which has come, may be done; if not, when to ask again.
    pub(super) fn may(&mut self, now: Instant, group: GroupId) -> Result<(), Instant> {
        let others = self.groups.iter().any(|(other, share)| *other != group && share.is_active(now, GONE));
        let Some(share) = self.groups.get_mut(&group) else { return Ok(()) };
        share.last = now;
        if !others || share.until <= now + AHEAD {
            return Ok(());
        }
        Err((share.until - AHEAD).min(now + AGAIN))
    }

    /// It is done, and takes this besides what any request does.
    pub(super) fn charge(&mut self, now: Instant, groups: &Groups, group: GroupId, extra: Extra) {
        self.requests.count(1);
        self.names.count(u64::from(extra == Extra::Names));
        if self.groups.len() > 1 {
            self.groups.retain(|_, share| share.is_active(now, GONE) || share.until > now);
        }
        let weight = |group: GroupId| u64::from(groups.weight(group).get());
        let others = |most| {
            let all = self.groups.iter();
            let active = all.filter(move |(other, share)| **other != group && share.is_active(now, most));
            active.map(|(other, _)| weight(*other)).sum::<u64>()
        };
        let each = self.requests.each();
        let cost = match extra {
            Extra::Data(bytes) => each + Duration::from_ns(bytes / 8),
            Extra::Names => (each + self.names.each()) * NAMES,
        };
        let own = weight(group).max(1);
        let takes = match (others(THINK), others(GONE)) {
            (0, 0) => Duration::ZERO,
            (0, _) => cost * FREE / (FREE - 1),
            (active, _) => cost * (own + active) / own,
        };
        if let Some(share) = self.groups.get_mut(&group) {
            share.until = share.until.max(now) + takes;
        }
    }
}

impl Share {
    fn is_active(&self, now: Instant, most: Duration) -> bool {
        now.saturating_since(self.last) < most
    }
}
