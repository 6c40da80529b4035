//! What an elevator is made for: how many of everything there may be, and what the disk is like.

use crate::config::{ConfigError, Tunable, Unit};
use crate::units::{Duration, Sector, Sectors};

/// Sizes and facts that an elevator is made for. Everything is allocated from these, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tags are `0..tags`. Default 256.
    pub tags: u16,
    /// How many requests the driver has for these tags: what is merged into another keeps its tag, but is no
    /// request. Shares of the pool ([`Elevator::has_room`](super::Elevator::has_room)) are shares of this.
    /// Default 0: as many as tags.
    pub pool: u16,
    /// How many tasks have state of their own at a time. When all places are taken, a further one
    /// takes the place of a task that has been idle for at least 20 ms: the eldest of the eight that are
    /// looked at. If none of these is idle, it shares a fallback. A task whose place was taken is a new one
    /// when it sends its next request. In BFQ and CFQ, a task whose priority was set by
    /// [`Control::SetPrio`](super::Control::SetPrio), and not by its requests, keeps its place until it
    /// exits. Default 64.
    pub tasks: u32,
    /// How many groups there may be, the root included. Default 1.
    pub groups: u32,
    /// How many requests a second the device is good for, at worst: what [guarantees](super::Control::SetMin)
    /// may add up to. Default 0: not known, and not checked.
    pub capacity: u32,
    /// The largest request that merging may make. Default 1024 sectors (512 KiB).
    //= linux-2.6.33 block/blk-settings.c BLK_DEF_MAX_SECTORS
    pub max_sectors: Sectors,
    /// How many segments a request may have: each request handed in counts as one for each 64 KiB of its
    /// length, its memory being taken as contiguous. Default 128.
    //= linux-2.6.33 include/linux/blkdev.h MAX_PHYS_SEGMENTS, MAX_SEGMENT_SIZE
    pub max_segments: u16,
    /// Whether to merge at all (sysfs `nomerges` = 0). Default true.
    pub merges: bool,
    /// Whether the disk has a head to move. Default true.
    pub rotational: bool,
    /// How many requests the device takes at a time. Default 1.
    pub queue_depth: u16,
    /// If not zero, the scheduler sees a clock that advances in these steps, as kernels did whose timers
    /// counted ticks of 1/HZ: `now` is rounded down, timers are rounded up. Default zero.
    pub tick: Duration,
    /// How many events the trace keeps. Default 0.
    pub trace: u32,
    /// Which parts of the disk have an arm of their own. Default: there is one for all.
    pub actuators: Actuators,
    /// Whether the disk idles on purpose for no task but those whose mean think time is known and at most
    /// 0.2 ms, under a scheduler that looks at this (BFQ). A change of `slice_idle` switches it off. A task
    /// that is not idled for keeps its share in another way: its request takes the disk from a task that had
    /// more, and costs its length and no time. Default false: the disk idles for all tasks for which the
    /// scheduler wants it to.
    pub idle_for_quick_only: bool,
    /// Whether the disk, while requests of several groups are here, idles on purpose for no task but those
    /// whose mean think time is known and at most a quarter of `slice_idle`, under a scheduler that looks at
    /// this (BFQ). A change of `slice_idle` switches it off. A task that is not idled for takes the disk from
    /// a task that had more. Default false.
    pub spares_groups: bool,
    /// If not zero: while requests of several groups are here, all that want the disk have turns within about
    /// this time under BFQ. A slot lasts for its group's part of it by weight: at least 25 ms for a queue
    /// that reads in order, and 6 ms (2 ms without a head) for each request of a queue that seeks; one that
    /// seeks with more than four requests has as long as any other. While only streams wanted the disk for
    /// the last second, this time is two and a half times as long. What a queue's weight is raised by makes
    /// its slot no longer, its budget is no larger than such a slot, and one that sends one request at a time
    /// pays for its slot within 700 ms. Default zero: a slot lasts as long as the scheduler's tunables say.
    pub turns_within: Duration,
    /// Whether the tasks of a group other than the root are taken for one program: BFQ raises the weight of a
    /// new task only while the group is new itself, or was idle for long before. Default false.
    pub one_youth: bool,
}

/// The parts of a disk with several actuators: each serves a range of sectors of its own.
///
/// Example: a disk of 2000 sectors whose second arm serves the upper half is
/// `Actuators::at(&[Sector(1000)])`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Actuators {
    /// Where the second, third, … begins, ascending; unused ones are 0.
    starts: [u64; Self::MAX - 1],
}

impl Actuators {
    /// The most that there may be.
    //= linux-6.12 block/bfq-iosched.h BFQ_MAX_ACTUATORS, docs/reference/bfq.md#45-actuators
    pub const MAX: usize = 8;

    /// One actuator for the sectors below the first of `starts`, and one from each of these on.
    ///
    /// # Panics
    /// If these are more than 7, not ascending, or 0.
    #[must_use]
    pub fn at(starts: &[Sector]) -> Self {
        assert!(starts.len() < Self::MAX, "at most 8 actuators");
        let mut actuators = Self::default();
        let mut last = 0;
        for (to, start) in actuators.starts.iter_mut().zip(starts) {
            assert!(start.0 > last, "actuators begin in ascending order");
            (*to, last) = (start.0, start.0);
        }
        actuators
    }

    /// Returns where the second actuator, the third and so on begin.
    pub fn starts(&self) -> impl Iterator<Item = Sector> + '_ {
        self.starts.iter().take_while(|s| **s > 0).map(|s| Sector(*s))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.starts().count()
    }

    /// Returns the number of the actuator that serves `sector`: 0 is the first.
    #[inline]
    #[must_use]
    pub fn of(&self, sector: Sector) -> usize {
        self.starts.iter().take_while(|s| **s > 0 && **s <= sector.0).count()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tags: 256,
            pool: 0,
            tasks: 64,
            groups: 1,
            capacity: 0,
            max_sectors: Sectors(1024),
            max_segments: 128,
            merges: true,
            rotational: true,
            queue_depth: 1,
            tick: Duration::ZERO,
            trace: 0,
            actuators: Actuators::default(),
            idle_for_quick_only: false,
            spares_groups: false,
            turns_within: Duration::ZERO,
            one_youth: false,
        }
    }
}

const fn at_least_one(name: &'static str, max: u64) -> Tunable {
    Tunable { name, unit: Unit::Count, min: 1, max, effect: "a size that an elevator is made for" }
}
static TAGS: Tunable = at_least_one("tags", 65535);
static TASKS: Tunable = at_least_one("tasks", 1 << 24);
static GROUPS: Tunable = at_least_one("groups", 1 << 24);
static MAX_SECTORS: Tunable = at_least_one("max_sectors", 1 << 31);
static MAX_SEGMENTS: Tunable = at_least_one("max_segments", 65535);
static QUEUE_DEPTH: Tunable = at_least_one("queue_depth", 65535);

impl Limits {
    /// How many requests the driver has.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        if self.pool == 0 { self.tags as u32 } else { self.pool as u32 }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let fields = [
            (&TAGS, u64::from(self.tags)),
            (&TASKS, u64::from(self.tasks)),
            (&GROUPS, u64::from(self.groups)),
            (&MAX_SECTORS, u64::from(self.max_sectors.0)),
            (&MAX_SEGMENTS, u64::from(self.max_segments)),
            (&QUEUE_DEPTH, u64::from(self.queue_depth)),
        ];
        match fields.into_iter().find(|&(t, value)| value < t.min || value > t.max) {
            Some((t, value)) => Err(ConfigError { field: t.name, value, tunable: Some(t) }),
            None => Ok(()),
        }
    }
}
