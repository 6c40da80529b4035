//! Groups of tasks as users see them: a tree with weights, classes, limits and guarantees, and
//! [books](GroupStats) of who got what.
//!
//! One tree for a device, kept by the elevator and read by every scheduler that knows groups through
//! [`Cx::books`](crate::Cx). What a scheduler needs to share the disk (virtual times, active children) is its
//! own; what a user sets, and what a user reads, is here, once.
//!
//! ```text
//!   root ─┬─ vm1   weight 300               vm1 : vm2 = 3 : 1
//!         └─ vm2   weight 100 ─┬─ db        inside vm2: its own tasks (leaf weight 100) : db : log
//!                              └─ log
//! ```
//!
//! **Weights** say how siblings share what their parent gets: 1 to 10000, default 100, as in cgroup v2. The
//! tasks that are directly in a group count as one more child of it, with the *leaf weight*. **Classes** are
//! strict among siblings: RT before BE before IDLE. A **policy** overrides weight and class for this device
//! only; while there is one, changes of weight and class are remembered and do not show. A **limit**
//! ([`Max`]) is kept by the elevator in front of any scheduler; a **reservation** ([`Min`]) is a guarantee
//! that only the controller ([`crate::sched::fair`]) gives.
//!
//! Groups are numbered by the driver: 0 is the root, 1 and up to [`Limits::groups`](crate::Limits) exist from
//! the start as its children. A group that is [removed](Control::GroupExit) takes no new requests: those that
//! name its number belong to the nearest ancestor that is left. The requests that it has already are served
//! as before, with its last weight and its limit. When they are done, [`Control::SetParent`] can give the
//! number to a new group, which starts with defaults and empty books. What the removed group got stays in the
//! sum of the group that it was in.
//!
//! It does not decide anything, and knows no queues. Numbers come from the driver, names are the driver's
//! too.
//!
//= linux-4.20 block/blk-cgroup.c, block/cfq-iosched.c; Documentation/admin-guide/cgroup-v2.rst
//= docs/reference/cfq.md#68-files-of-the-blkio-controller, docs/reference/groups.md#11-later-mechanisms

mod books;
mod control;
mod stats;
#[cfg(test)]
mod tests;

use self::books::{CELLS, Cell, CellId, Turns};
pub use self::control::Control;
pub use self::stats::{GroupStats, Split};
use crate::table::Table;
use crate::units::{Class, Duration, GroupId, Id, Instant, Weight};
use core::fmt;
use core::num::{NonZeroU16, NonZeroU64};

impl Weight {
    /// The largest.
    pub const MAX: u16 = 10_000;
    /// The weight of a group that was not given one: 100.
    //= Documentation/admin-guide/cgroup-v2.rst, io.weight
    pub const DEFAULT: Self = Self(NonZeroU16::new(100).unwrap());

    /// A weight; `None` unless 1 to 10000.
    #[must_use]
    pub const fn new(weight: u16) -> Option<Self> {
        match NonZeroU16::new(weight) {
            Some(w) if weight <= Self::MAX => Some(Self(w)),
            _ => None,
        }
    }

    /// Returns the weight as a number, 1 to 10000.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get() as u32
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Weight and class of a group on this device only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Instead of the group's weight.
    pub weight: Weight,
    /// Instead of the group's class.
    pub class: Class,
}

/// The most that a group and all groups inside it get together. `None`: as much as there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Max {
    /// Bytes a second read.
    pub rbps: Option<NonZeroU64>,
    /// Bytes a second written or discarded.
    pub wbps: Option<NonZeroU64>,
    /// Reads a second, as requests are handed in (before merging).
    pub riops: Option<NonZeroU64>,
    /// Writes and discards a second, as requests are handed in.
    pub wiops: Option<NonZeroU64>,
    /// How much unused time may be made up for: requests for this time at the full rate may come at once.
    /// Default 0, up to an hour.
    pub burst: Duration,
}

impl Max {
    /// The longest `burst`.
    pub const BURST_MAX: Duration = Duration::from_secs(3600);

    /// As many requests a second as are allowed in the direction that is allowed fewer.
    fn iops(&self) -> Option<u64> {
        self.riops.into_iter().chain(self.wiops).min().map(NonZeroU64::get)
    }

    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rbps.is_none() && self.wbps.is_none() && self.riops.is_none() && self.wiops.is_none()
    }
}

/// The least that the tasks of a group get, whatever others want, as long as they ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Min {
    /// Requests a second; 0: no guarantee.
    pub iops: u32,
}

/// Why a change was refused. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no group of that number, or it is gone.
    NoGroup(GroupId),
    /// The root has no weight, class, limit, guarantee or parent, and stays.
    Root,
    /// The group would be inside itself.
    Loop(GroupId),
    /// The group still has requests, or other groups in it.
    Busy(GroupId),
    /// A weight is outside 1 to 10000.
    Weight(Weight),
    /// A limit's burst is longer than an hour.
    Burst(Duration),
    /// The guarantees of all groups would be more than the device can do.
    Infeasible {
        /// What they would add up to, in requests a second.
        sum: u64,
        /// [`Limits::capacity`](crate::Limits), the same.
        capacity: u32,
    },
    /// A group, with those in it, would be guaranteed more than its limit allows in one direction.
    AboveLimit {
        /// What the guarantees add up to, in requests a second.
        iops: u64,
        /// The limit, the same.
        limit: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGroup(g) => write!(f, "there is no group {}", g.0),
            Self::Root => f.write_str("the root group can be neither changed nor removed"),
            Self::Loop(g) => write!(f, "group {} cannot be inside itself", g.0),
            Self::Busy(g) => write!(f, "group {} still has requests or groups in it", g.0),
            Self::Weight(w) => write!(f, "weight {} is out of range: 1 to {}", w.0, Weight::MAX),
            Self::Burst(d) => write!(f, "a burst of {d} is too long: at most {}", Max::BURST_MAX),
            Self::Infeasible { sum, capacity } => {
                write!(
                    f,
                    "reservations would add up to {sum} requests/s, but the disk is good for {capacity}"
                )
            }
            Self::AboveLimit { iops, limit } => {
                write!(f, "reservations of {iops} requests/s are above the group's limit of {limit}")
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// One group.
#[derive(Clone, Copy, Debug)]
struct Group {
    parent: GroupId,
    weight: Weight,
    leaf_weight: Weight,
    class: Class,
    policy: Option<Policy>,
    max: Max,
    min: Min,
    latency: Option<Duration>,
    is_gone: bool,
    /// Groups in it that are not gone.
    children: u32,
    turns: Turns,
    /// What is to be added, modulo 2^64, to the sectors of completed requests and of those at the device, so
    /// that it is what was issued.
    sectors_apart: u64,
    /// Those of its requests that wait, if the scheduler chooses groups: all of [`GroupStats::io_queued`].
    queued: u32,
    /// While it is not served, and was seen: since when it has had requests, or since when it has had none.
    since: Option<Instant>,
}

impl Group {
    const NEW: Self = Self {
        parent: GroupId::ROOT,
        weight: Weight::DEFAULT,
        leaf_weight: Weight::DEFAULT,
        class: Class::BestEffort,
        policy: None,
        max: Max { rbps: None, wbps: None, riops: None, wiops: None, burst: Duration::ZERO },
        min: Min { iops: 0 },
        latency: None,
        is_gone: false,
        children: 0,
        turns: Turns::NONE,
        sectors_apart: 0,
        queued: 0,
        since: None,
    };
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Groups {
    groups: Table<GroupId, Group>,
    /// What completed requests got, [`CELLS`] for each group. Of one group alone no books are kept, and there
    /// are none.
    cells: Table<CellId, Cell>,
    /// By group, what groups got that were in it and are no more.
    gone: Table<GroupId, GroupStats>,
    /// Requests a second that all guarantees together may be; 0: not known.
    capacity: u32,
    /// The group whose turn it is, as the scheduler says, and since when the disk is kept idle for it.
    served: Option<GroupId>,
    idle_since: Option<Instant>,
    /// How long the disk was kept idle in this turn; entered in the group's books when the turn ends.
    idled: Duration,
}

/// What users set.
impl Groups {
    /// The root and `count - 1` groups in it. Allocates.
    #[must_use]
    pub(crate) fn new(count: u32, capacity: u32) -> Self {
        let count = count.max(1) as usize;
        let mut groups = Table::new(count, Group::NEW);
        groups[GroupId::ROOT].children = u32::try_from(count - 1).unwrap_or(u32::MAX);
        let cells = Table::new(if count > 1 { count * CELLS } else { 0 }, Cell::default());
        let gone = Table::new(count, GroupStats::NONE);
        Self { groups, cells, gone, capacity, served: None, idle_since: None, idled: Duration::ZERO }
    }

    /// How many numbers there are, that of the root included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// How many groups exist, from the first on, before the first one that is gone.
    pub(crate) fn count_existing(&self) -> u32 {
        self.groups.iter().find(|(_, g)| g.is_gone).map_or(self.groups.len(), |(g, _)| g.index()) as u32
    }

    /// Whether there is such a group, and it is not gone.
    #[inline]
    #[must_use]
    pub fn exists(&self, group: GroupId) -> bool {
        self.groups.get(group).is_some_and(|g| !g.is_gone)
    }

    /// The group, or if it is gone the nearest one above that is not; the root for numbers that are too
    /// large.
    #[inline]
    #[must_use]
    pub fn home(&self, group: GroupId) -> GroupId {
        let mut at = group;
        loop {
            match self.groups.get(at) {
                None => return GroupId::ROOT,
                Some(g) if !g.is_gone => return at,
                Some(g) => at = g.parent,
            }
        }
    }

    /// The group that it is in; `None` for the root.
    #[inline]
    #[must_use]
    pub fn parent(&self, group: GroupId) -> Option<GroupId> {
        (group != GroupId::ROOT).then(|| self.groups[group].parent)
    }

    /// The weight among its siblings that is in force here.
    #[inline]
    #[must_use]
    pub fn weight(&self, group: GroupId) -> Weight {
        let g = &self.groups[group];
        g.policy.map_or(g.weight, |p| p.weight)
    }

    /// The weight of its own tasks among the groups in it.
    #[inline]
    #[must_use]
    pub fn leaf_weight(&self, group: GroupId) -> Weight {
        self.groups[group].leaf_weight
    }

    /// The class among its siblings that is in force here.
    #[inline]
    #[must_use]
    pub fn class(&self, group: GroupId) -> Class {
        let g = &self.groups[group];
        g.policy.map_or(g.class, |p| p.class)
    }

    /// The limit of the group with all groups in it.
    #[must_use]
    pub fn max(&self, group: GroupId) -> Max {
        self.groups[group].max
    }

    /// The guarantee for the group's own tasks.
    #[inline]
    #[must_use]
    pub fn min(&self, group: GroupId) -> Min {
        self.groups[group].min
    }

    /// The mean latency that its requests, with those of groups in it, should have.
    #[must_use]
    pub fn latency(&self, group: GroupId) -> Option<Duration> {
        self.groups[group].latency
    }

    /// Whether `inner` is `outer`, or somewhere inside it.
    #[must_use]
    pub fn is_inside(&self, inner: GroupId, outer: GroupId) -> bool {
        core::iter::successors(Some(inner), |&g| self.parent(g)).any(|g| g == outer)
    }
}
