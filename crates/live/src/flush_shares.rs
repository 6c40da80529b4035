//! Shares of the disk's time for flushes: the flushes of a group take no more of it than the group's weight
//! allows, as long as others want the disk.
//!
//! A flush takes the device for longer than most requests, no scheduler can cut it into pieces, and between
//! two requests of a program the scheduler sees a disk that is free. So a scheduler alone lets a group that
//! flushes again and again have most of the time, whatever its weight. Here, a flush that took some time is
//! paid for by a pause before the group's next one, in proportion to the weights of those that are active:
//!
//! ```text
//!   weights 1 : 3       ▓▓ flush ▓▓│········ pause: 3 times as long ········│▓▓ flush ▓▓
//!   equal weights       ▓▓ flush ▓▓│··········│▓▓ flush ▓▓
//! ```
//!
//! - **Time** of a flush is split between the files that are flushed at the same time, and between the groups
//!   whose clients it is for.
//! - **Active** is a group with bios or flushes in the queue, or that had some [`THINK`] ago. One that waits
//!   for nothing but its flushes keeps none of the same or more weight waiting: what runs side by side in the
//!   device is mostly done by one commit.
//! - Without others that are active there is no pause, and the pause ends when they are no longer. It is at
//!   most [`MOST`].
//! - Beside others, a group has at most [`SIDE_BY_SIDE`] flushes at the device, and hands over at most as
//!   many requests at a time that take or give back space: trims, zeroes and allocations. What these take of
//!   a device is not seen from their length, and a device that does one after the other has those before the
//!   request of another group.
//!
//! Weights count level by level from the root, as in the schedulers; a group of a higher class counts as one
//! of [`HIGHER`] times its weight, and one of a lower class not at all.
//!
//! What it does not do: know files, or limits.

use fairhead_core::groups::Groups;
use fairhead_core::units::{Class, Duration, GroupId, Id, Instant};
use std::collections::BTreeMap;

/// A group is active for this time after its last bio: a program that thinks for longer is not at the disk.
/// It is longer than a busy engine takes to hear of the next bio, which counts as thinking here.
const THINK: Duration = Duration::from_ms(4);

/// The time after which it is asked again whether the others have gone.
const AGAIN: Duration = Duration::from_ms(1);

/// The longest pause: no request is to wait for a second because of others.
const MOST: Duration = Duration::from_ms(800);

/// How many flushes a group has at the device at a time, beside others; and how many requests about space it
/// has handed over.
const SIDE_BY_SIDE: u32 = 4;

const HIGHER: u64 = 100;

/// The unit of ratios.
const ONE: u64 = 1000;

#[derive(Clone, Copy, Debug)]
struct Group {
    /// Its bios that are here, flushes apart, and when the last one left.
    bios: u32,
    left: Instant,
    /// Its requests about space that have a tag.
    spaces: u32,
    /// Flushes that it waits for, and when the last one was answered.
    asked: u32,
    answered: Instant,
    /// Those of its flushes that are at the device, when the first of these began, and the pause that is due
    /// when all have ended.
    running: u32,
    began: Instant,
    due: Duration,
    /// When the next one may begin.
    opens: Instant,
    is_listed: bool,
}

/// A flush at the device.
#[derive(Debug)]
pub(crate) struct Running {
    groups: Vec<GroupId>,
    /// The time that was split until it began.
    began: Duration,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FlushShares {
    groups: Vec<Group>,
    /// Those that may be active.
    listed: Vec<GroupId>,
    now: Instant,
    /// How many flushes are at the device, and how much time each of them has had since the first one.
    running: u32,
    split: Duration,
    pauses: u64,
}

impl FlushShares {
    pub(crate) fn new(groups: u32) -> Self {
        let never = Instant::from_ns(1);
        let group = Group {
            bios: 0,
            left: never,
            spaces: 0,
            asked: 0,
            answered: never,
            running: 0,
            began: never,
            due: Duration::ZERO,
            opens: never,
            is_listed: false,
        };
        Self {
            groups: vec![group; groups as usize],
            listed: Vec::new(),
            now: never,
            running: 0,
            split: Duration::ZERO,
            pauses: 0,
        }
    }

    /// It is that time.
    pub(crate) fn see(&mut self, now: Instant) {
        if self.running > 0 {
            let more = now.saturating_since(self.now) / u64::from(self.running);
            self.split += more;
        }
        self.now = self.now.max(now);
    }

    /// How often a group had to pause.
    pub(crate) const fn pauses(&self) -> u64 {
        self.pauses
    }

    fn list(&mut self, group: GroupId) -> &mut Group {
        let g = &mut self.groups[group.index()];
        if !std::mem::replace(&mut g.is_listed, true) {
            self.listed.push(group);
        }
        g
    }

    /// A bio comes that is no flush.
    pub(crate) fn came(&mut self, group: GroupId) {
        self.list(group).bios += 1;
    }

    /// It is done.
    pub(crate) fn went(&mut self, group: GroupId) {
        let g = &mut self.groups[group.index()];
        (g.bios, g.left) = (g.bios - 1, self.now);
    }

    /// Whether a group may hand over a request about space; if not, when to ask again at the latest.
    pub(crate) fn may_change_space(&mut self, groups: &Groups, group: GroupId) -> Result<(), Instant> {
        if self.groups[group.index()].spaces < SIDE_BY_SIDE || self.others(groups, group) == 0 {
            return Ok(());
        }
        // The others may have gone by then.
        Err(self.now + AGAIN)
    }

    /// A request about space is handed over.
    pub(crate) fn changes_space(&mut self, group: GroupId) {
        self.groups[group.index()].spaces += 1;
    }

    /// It has its tag no more.
    pub(crate) fn changed_space(&mut self, group: GroupId) {
        self.groups[group.index()].spaces -= 1;
    }

    /// A group waits for a flush.
    pub(crate) fn asks(&mut self, group: GroupId) {
        self.list(group).asked += 1;
    }

    /// It waits no more.
    pub(crate) fn is_answered(&mut self, group: GroupId) {
        let g = &mut self.groups[group.index()];
        (g.asked, g.answered) = (g.asked - 1, self.now);
    }

    /// Another group has this number now.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.groups[group.index()].opens = self.now;
    }

    /// Whether a flush of this group may begin; if not, when to ask again.
    pub(crate) fn may_begin(&mut self, groups: &Groups, group: GroupId) -> Result<(), Instant> {
        let g = self.groups[group.index()];
        // What it has at the device is paid for when all of it has ended.
        let is_open = match g.running {
            0 => g.opens <= self.now,
            1..SIDE_BY_SIDE => g.began == self.now,
            _ => false,
        };
        if is_open || self.others(groups, group) == 0 {
            return Ok(());
        }
        // The others may have gone by then.
        let soon = self.now + AGAIN;
        Err(if g.opens > self.now { g.opens.min(soon) } else { soon })
    }

    /// A flush begins, for these groups.
    pub(crate) fn begins(&mut self, mut groups: Vec<GroupId>) -> Running {
        groups.sort_unstable();
        groups.dedup();
        for group in &groups {
            let g = &mut self.groups[group.index()];
            if g.running == 0 {
                g.began = self.now;
            }
            g.running += 1;
        }
        self.running += 1;
        Running { groups, began: self.split }
    }

    /// It has ended.
    pub(crate) fn ended(&mut self, groups: &Groups, flush: &Running) {
        self.running -= 1;
        let took = self.split.saturating_sub(flush.began) / flush.groups.len().max(1) as u64;
        for &group in &flush.groups {
            let others = self.others(groups, group);
            let pause = u128::from(took.as_ns()) * u128::from(others) / u128::from(ONE);
            let pause = Duration::from_ns(u64::try_from(pause).unwrap_or(u64::MAX)).min(MOST);
            let now = self.now;
            let g = &mut self.groups[group.index()];
            g.running -= 1;
            g.due = (g.due + pause).min(MOST);
            if g.running == 0 {
                g.opens = now + std::mem::take(&mut g.due);
            }
            self.pauses += u64::from(others > 0);
        }
    }

    /// How much time is due to the others that are active, in thousandths of what this group takes.
    fn others(&mut self, groups: &Groups, group: GroupId) -> u64 {
        self.unlist();
        let path: Vec<GroupId> = up(groups, groups.home(group)).collect();
        // By the number of the group above and the group in it, or its own tasks.
        let mut rivals = BTreeMap::new();
        for &other in self.listed.iter().filter(|g| **g != group) {
            let (level, rival) = meeting(groups, &path, other);
            if level == 0 && rival.is_none() {
                continue;
            }
            let (own, own_class) = standing(groups, path[level], level.checked_sub(1).map(|l| path[l]));
            let (weight, class) = standing(groups, path[level], rival);
            let weight = match rank(class).cmp(&rank(own_class)) {
                std::cmp::Ordering::Less => weight * HIGHER,
                std::cmp::Ordering::Equal => weight,
                std::cmp::Ordering::Greater => continue,
            };
            let o = &self.groups[other.index()];
            let wants = o.bios > 0 || o.asked == 0 && self.is_recent(o.left) || weight > own;
            if wants {
                rivals.insert((level, rival), (weight, own));
            }
        }
        let mut all = ONE;
        for level in 0..path.len() {
            let here = || rivals.range((level, None)..=(level, Some(GroupId(u32::MAX)))).map(|(_, r)| *r);
            let Some((_, own)) = here().next() else { continue };
            let sum: u64 = here().map(|(weight, _)| weight).sum();
            all = all.saturating_mul(own + sum) / own;
        }
        all - ONE
    }

    const fn is_recent(&self, at: Instant) -> bool {
        self.now.saturating_since(at).as_ns() < THINK.as_ns()
    }

    /// Groups that are no longer active leave the list.
    fn unlist(&mut self) {
        let Self { groups, listed, now, .. } = self;
        listed.retain(|g| {
            let g = &mut groups[g.index()];
            let last = g.left.max(g.answered);
            g.is_listed = g.bios > 0 || g.asked > 0 || now.saturating_since(last) < THINK;
            g.is_listed
        });
    }
}

fn up(groups: &Groups, from: GroupId) -> impl Iterator<Item = GroupId> + '_ {
    std::iter::successors(Some(from), |&g| groups.parent(g))
}

/// Where on the path a group competes, and as what: a group in the one there, or its own tasks.
fn meeting(groups: &Groups, path: &[GroupId], other: GroupId) -> (usize, Option<GroupId>) {
    let mut below = None;
    for at in up(groups, groups.home(other)) {
        if let Some(level) = path.iter().position(|g| *g == at) {
            return (level, below);
        }
        below = Some(at);
    }
    (path.len() - 1, below)
}

/// Weight and class of a group in another, or of that one's own tasks.
fn standing(groups: &Groups, parent: GroupId, child: Option<GroupId>) -> (u64, Class) {
    match child {
        Some(child) => (u64::from(groups.weight(child).get()), groups.class(child)),
        None => (u64::from(groups.leaf_weight(parent).get()), Class::BestEffort),
    }
}

/// The lower one is served before the others.
const fn rank(class: Class) -> u8 {
    match class {
        Class::RealTime => 0,
        Class::BestEffort => 1,
        Class::Idle => 2,
    }
}
