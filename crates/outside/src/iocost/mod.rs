//! io.cost: weights of groups kept by what requests cost, in front of no scheduler.
//!
//! For many groups on one fast device that queues: shares by weight, although no request is sorted requests
//! and the device has many at a time; work conserving; and, if asked for, latency within a target.
//!
//! # How it works
//!
//! ```text
//!   requests ─► cost model ─► the group's queue ─► released, in order ─► device
//!               ns each       until its budget       until it has room
//!                             covers the cost
//! ```
//!
//! 1. **Cost.** A linear model (`model.rs`) says how much device time a request needs. It is sequential if it
//!    begins within 256 sectors of where the last one of its group ended, else random.
//! 2. **Budget.** The disk's virtual time (`clock.rs`) runs at a rate, `vrate`: at 100 % it gives out a
//!    second of device time each second. Each group has a virtual time, too; what it is behind the disk's is
//!    its budget. A request whose cost, divided by the group's share (`tree.rs`), is within it is released,
//!    and the group's virtual time advances by as much. Others wait until it is. Of a group that pauses, the
//!    budget is at most one period's.
//! 3. **Plan.** At the end of each period, or at the next event if no request waits for a budget: groups
//!    that had none lose their share until they have some. Groups that used less than 7/8 of theirs give the
//!    rest away, down to 5/4 of what they used; one that needs more takes all of it back at once. The rate
//!    changes:
//!
//! | in the period | `vrate` |
//! |---|---|
//! | too many reads took longer than `rlat`, or writes than `wlat` | falls |
//! | for 5 % of the time the device was full, and released requests waited | falls |
//! | neither, and requests waited for a budget | rises |
//! | none of these | stays |
//!
//!    It rises and falls by 1/64, or falls by 1/16 if latencies were missed; after 8, 16 and 24 periods in a
//!    row by two, three and four times as much.
//! 4. **Debt.** Requests for metadata never wait, as others may wait for them. They are charged, as is what
//!    grows by merging after its release; the group's next request waits until that is paid, too.
//!
//! Worked example: on a disk that does 150 random reads a second, one costs 6.67 ms. In groups of weights 200
//! and 100 it is 10 ms and 20 ms of virtual time: 100 and 50 reads a second at a rate of 100 %. If the second
//! group wants 10 only, it keeps 5/4 of the 6.7 % that it uses, and the first one has 92 %: 137 reads.
//!
//! # How long requests wait
//!
//! Until the group's budget covers what is before them and themselves: by weight and rate. But a device that
//! has nothing to do for `stall_max`, although requests wait, gets the next one anyhow. So with one group and
//! *n* requests, at most `n` times that and a service each.
//!
//! # What it does not do
//!
//! No sorting, no classes, no priorities, no tasks. It does not delay programs that cause debt on their way
//! back to user space, as Linux does: there is no such way here. All groups with requests that wait are
//! looked at for each that is released.
//!
//! # What is not in the sources
//!
//! Linux's cgroup documentation has the files and what they mean; the paper the method. Ours are: the length
//! of a period, steps and thresholds above, what a budget may grow to, how far *sequential* reaches, the
//! figures of three classes of devices, `stall_max`, and that a discard costs what a write does, but for its
//! size. It has not been compared with the original, decision by decision.
//!
//= Linux Documentation/admin-guide/cgroup-v2.rst, IO Interface Files: io.cost.qos, io.cost.model, io.weight
//= T. Heo et al., IOCost: Block IO Control for Containers in Datacenters, ASPLOS 2022, section 3

mod clock;
mod model;
mod tree;

use self::clock::Clock;
use self::model::{Figures, Model};
use self::tree::{Tree, WHOLE};
use crate::lists::{Links, List};
use fairhead_core::config::{ConfigError, Tunables, Unit, Value};
use fairhead_core::sched::Scheduler;
use fairhead_core::{
    Control, Cx, Dispatch, Duration, End, Hold, Instant, Limits, Op, Reason, Requests, Sector, State, Tag,
    Timer, tunables,
};

/// A rate: bytes or requests a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub u64);

impl Value for Rate {
    const UNIT: Unit = Unit::Count;
    fn raw(self) -> u64 {
        self.0
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Some(Self(raw))
    }
}

const BPS_MAX: u64 = 1 << 40;
const IOPS_MAX: u64 = 100_000_000;

tunables! {
    /// The tunables: those of `io.cost.model` and `io.cost.qos` under their names, and two of ours.
    pub struct Config {
        /// Bytes a second that the disk reads in large sequential requests. 0: as is usual for such a disk.
        pub rbps: Rate = Rate(0), 0, BPS_MAX;
        /// Sequential reads of 4 KiB a second that the disk is good for. 0: as is usual for such a disk.
        pub rseqiops: Rate = Rate(0), 0, IOPS_MAX;
        /// Random reads of 4 KiB a second that the disk is good for. 0: as is usual for such a disk.
        pub rrandiops: Rate = Rate(0), 0, IOPS_MAX;
        /// Bytes a second that the disk writes in large sequential requests. 0: as is usual for such a disk.
        pub wbps: Rate = Rate(0), 0, BPS_MAX;
        /// Sequential writes of 4 KiB a second that the disk is good for. 0: as is usual for such a disk.
        pub wseqiops: Rate = Rate(0), 0, IOPS_MAX;
        /// Random writes of 4 KiB a second that the disk is good for. 0: as is usual for such a disk.
        pub wrandiops: Rate = Rate(0), 0, IOPS_MAX;
        /// The percentage of reads that must be at the disk for no longer than `rlat`. 0: any may.
        pub rpct: u32 = 0, 0, 100;
        /// How long a read may be at the disk, if `rpct` is above 0.
        pub rlat: Duration = Duration::from_ms(75), 1_000, 10_000_000_000;
        /// The percentage of writes that must be at the disk for no longer than `wlat`. 0: any may.
        pub wpct: u32 = 0, 0, 100;
        /// How long a write may be at the disk, if `wpct` is above 0.
        pub wlat: Duration = Duration::from_ms(150), 1_000, 10_000_000_000;
        /// The lowest rate at which device time is given out, in percent of what the model says.
        pub min: u32 = 1, 1, 10_000;
        /// The highest rate at which device time is given out, in percent of what the model says; `min` if
        /// that is more.
        pub max: u32 = 10_000, 1, 10_000;
        /// How often shares and the rate are planned.
        pub period: Duration = Duration::from_ms(50), 1_000_000, 10_000_000_000;
        /// How long the disk may have nothing to do although requests wait for a budget.
        pub stall_max: Duration = Duration::from_ms(1_000), 1_000_000, 60_000_000_000;
    }
}

impl Config {
    /// The figures that are set, and those of the device's class for the others.
    fn model(&self, limits: &Limits) -> Model {
        let class = Figures::of(limits);
        let or = |set: Rate, usual: u64| if set.0 == 0 { usual } else { set.0 };
        Model::new(&Figures {
            rbps: or(self.rbps, class.rbps),
            rseqiops: or(self.rseqiops, class.rseqiops),
            rrandiops: or(self.rrandiops, class.rrandiops),
            wbps: or(self.wbps, class.wbps),
            wseqiops: or(self.wseqiops, class.wseqiops),
            wrandiops: or(self.wrandiops, class.wrandiops),
        })
    }
}

/// How far from the end of the last one a sequential request may begin, in sectors: 128 KiB.
const NEAR: u64 = 256;

/// For how much of a period released requests wait when the device counts as full, in percent.
const FULL_PERCENT: u64 = 5;

/// After each this many changes of the rate in one direction the next ones are larger, up to this many times
/// as large as the first.
const STREAK: i32 = 8;
const STEP_MAX: i32 = 4;

/// How many times as far the rate falls if latencies are missed: what waits at the device must become less.
const LATE: i32 = 4;

/// A group that used less than this part of its share gives the rest away, and keeps this part of what it
/// used.
const USES: (u64, u64) = (7, 8);
const KEEPS: (u64, u64) = (5, 4);

/// Costs beyond this count as this much: some minutes.
const COST_MAX: u64 = 1 << 38;

/// The longest virtual time that a request costs.
const VIRTUAL_MAX: u64 = 1 << 48;

/// What is known of a request, by its tag.
#[derive(Clone, Copy, Debug)]
struct Entry {
    group: u32,
    /// Its length, and what that costs.
    sectors: u32,
    cost: u64,
    is_released: bool,
    issued: Instant,
}

/// A group's own requests.
#[derive(Clone, Copy, Debug)]
struct Group {
    waiting: List,
    /// The virtual time up to which it has used its share.
    vtime: u64,
    /// Costs of what did not wait for a budget, not yet paid.
    owed: u64,
    /// Costs in this period.
    used: u64,
    /// Whether requests waited for a budget in this period.
    has_waited: bool,
    /// Where its last request ends.
    end: Sector,
}

/// Requests of one direction that were done in this period, and those that were too slow.
#[derive(Clone, Copy, Debug, Default)]
struct Latencies {
    seen: u64,
    late: u64,
}

impl Latencies {
    fn miss(&self, percent: u32) -> bool {
        percent > 0 && self.late * 100 > self.seen * u64::from(100 - percent)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct IoCost {
    config: Config,
    limits: Limits,
    model: Model,
    clock: Clock,
    tree: Tree,
    is_tree_known: bool,
    links: Links,
    entries: Vec<Entry>,
    groups: Vec<Group>,
    /// The groups that have a share now.
    active: Vec<u32>,
    /// Those that need no budget any more.
    released: List,
    /// How many wait for a budget, are at the device, and are here or there at all.
    waiting: u32,
    at_device: u32,
    inside: u32,
    /// Which group's first request is released next, and when; and to which state of the tree that belongs,
    /// 0 if it must be found anew.
    due: Option<(Instant, u32)>,
    due_of: u64,
    /// When this period began and ends.
    since: Instant,
    until: Instant,
    latencies: [Latencies; 2],
    /// Since when released requests wait for room, and for how long they have in this period.
    full_since: Option<Instant>,
    full: Duration,
    /// For how many periods in a row the rate has fallen, or, below 0, risen.
    streak: i32,
    /// Since when the disk has had nothing to do although requests wait.
    stalled_since: Option<Instant>,
}

impl IoCost {
    /// Returns the rate at which device time is given out, in percent of what the model says.
    #[must_use]
    pub const fn vrate(&self) -> u32 {
        self.clock.percent()
    }

    fn entry(&self, tag: Tag) -> &Entry {
        &self.entries[usize::from(tag.0)]
    }

    /// A cost in the group's virtual time.
    fn virtual_cost(&mut self, group: u32, cost: u64) -> u64 {
        (cost.min(COST_MAX) * WHOLE / self.tree.share(group)).min(VIRTUAL_MAX)
    }

    /// The cost that this much of the group's virtual time is.
    fn real_cost(&mut self, group: u32, vtime: u64) -> u64 {
        let cost = u128::from(vtime) * u128::from(self.tree.share(group)) / u128::from(WHOLE);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }

    /// What has happened by itself until now.
    fn advance(&mut self, now: Instant) {
        if self.inside == 0 {
            return;
        }
        self.settle(now);
        if let Some(when) = self.stall_ends().filter(|when| *when <= now)
            && let Some((_, group)) = self.due
        {
            self.release(group, when);
            self.settle(now);
        }
        if self.until <= now {
            self.plan(now);
            self.settle(now);
        }
    }

    fn stall_ends(&self) -> Option<Instant> {
        self.stalled_since.map(|since| since + self.config.stall_max)
    }

    /// After each call: whether the disk has nothing to do although requests wait, or has no room for one.
    fn note(&mut self, now: Instant) {
        let is_stalled = self.at_device == 0 && self.released.is_empty() && self.waiting > 0;
        self.stalled_since = is_stalled.then(|| self.stalled_since.unwrap_or(now));
        if self.is_full() {
            self.full_since.get_or_insert(now);
        } else if let Some(since) = self.full_since.take() {
            self.full += now.saturating_since(since);
        }
    }

    /// The first request after a time without any.
    fn resume(&mut self, now: Instant) {
        if self.until > now {
            return;
        }
        let paid = self.clock.worth(now.saturating_since(self.since));
        while let Some(g) = self.active.pop() {
            self.tree.deactivate(g);
            let group = &mut self.groups[g as usize];
            group.owed = group.owed.saturating_sub(paid);
        }
        self.begin_period(now, 0);
    }

    fn begin_period(&mut self, now: Instant, step: i32) {
        self.clock.adjust(now, step, self.config.min, self.config.max);
        (self.since, self.until) = (now, now + self.config.period);
        (self.latencies, self.full) = ([Latencies::default(); 2], Duration::ZERO);
        for &g in &self.active {
            let group = &mut self.groups[g as usize];
            (group.used, group.has_waited) = (0, !group.waiting.is_empty());
        }
        self.due_of = 0;
    }

    /// A group gets requests and has none that wait: its budget is no more than one period's.
    fn enliven(&mut self, now: Instant, g: u32) {
        if !self.tree.is_active(g) {
            self.tree.activate(g);
            self.active.push(g);
            (self.groups[g as usize].used, self.groups[g as usize].has_waited) = (0, false);
        }
        let oldest = self.clock.at(now).saturating_sub(self.clock.worth(self.config.period));
        let group = &mut self.groups[g as usize];
        group.vtime = group.vtime.max(oldest);
    }

    /// Releases all that groups have a budget for.
    fn settle(&mut self, now: Instant) {
        loop {
            if self.due_of != self.tree.changes() {
                self.due = self.find_due();
                self.due_of = self.tree.changes();
            }
            match self.due {
                Some((when, group)) if when <= now => self.release(group, when),
                _ => return,
            }
        }
    }

    /// The group whose budget is the first to cover its first request, with its debt.
    fn find_due(&mut self) -> Option<(Instant, u32)> {
        let mut first: Option<(u64, u32)> = None;
        for i in 0..self.active.len() {
            let g = self.active[i];
            let Group { waiting, vtime, owed, .. } = self.groups[g as usize];
            let Some(tag) = waiting.first() else { continue };
            let v = vtime + self.virtual_cost(g, owed + self.entry(tag).cost);
            if first.is_none_or(|(least, _)| v < least) {
                first = Some((v, g));
            }
        }
        first.map(|(v, g)| (self.clock.when(v), g))
    }

    /// The group pays for its first request, and its debt. What its budget does not cover it owes.
    fn release(&mut self, g: u32, when: Instant) {
        let Group { vtime, owed, mut waiting, .. } = self.groups[g as usize];
        let tag = self.links.pop(&mut waiting).expect("it has a request that waits");
        let cost = self.entry(tag).cost;
        let vtime = vtime + self.virtual_cost(g, owed + cost);
        let now = self.clock.at(when);
        let missing = vtime.saturating_sub(now).min(VIRTUAL_MAX);
        let owed = self.real_cost(g, missing).min(COST_MAX);
        let group = &mut self.groups[g as usize];
        (group.waiting, group.owed, group.vtime) = (waiting, owed, vtime.min(now));
        group.used += cost;
        self.waiting -= 1;
        self.due_of = 0;
        self.hand_on(tag);
    }

    /// A request needs no budget any more.
    fn hand_on(&mut self, tag: Tag) {
        self.entries[usize::from(tag.0)].is_released = true;
        self.links.push(&mut self.released, tag);
    }

    /// Whether released requests wait for room at the device. One that takes one request at a time has one
    /// more here, so that it need not wait for us.
    fn is_full(&self) -> bool {
        let depth = u32::from(self.limits.queue_depth).min(self.limits.requests());
        self.at_device >= depth && self.released.len() > u32::from(depth < 2)
    }

    /// The group gets this without a budget.
    fn charge(&mut self, g: u32, cost: u64) {
        let group = &mut self.groups[g as usize];
        group.owed = (group.owed + cost).min(COST_MAX);
        group.used += cost;
        self.due_of = 0;
    }

    /// A request that waits is released at once, and charged.
    fn hurry(&mut self, tag: Tag) {
        let Entry { group, cost, .. } = *self.entry(tag);
        self.links.remove(&mut self.groups[group as usize].waiting, tag);
        self.waiting -= 1;
        self.charge(group, cost);
        self.hand_on(tag);
    }

    /// The next request for the device.
    fn issue(&mut self, now: Instant) -> Option<Tag> {
        let tag = self.links.pop(&mut self.released)?;
        self.at_device += 1;
        self.entries[usize::from(tag.0)].issued = now;
        Some(tag)
    }

    /// The end of a period.
    fn plan(&mut self, now: Instant) {
        if let Some(since) = &mut self.full_since {
            self.full += now.saturating_since(std::mem::replace(since, now));
        }
        for i in 0..self.active.len() {
            self.pay(now, self.active[i]);
        }
        let has_waited = self.active.iter().any(|g| self.groups[*g as usize].has_waited);
        self.retire();
        self.donate(now);
        let step = self.step(now, has_waited);
        self.begin_period(now, step);
    }

    /// A group without requests that wait pays its debt, as far as its budget goes.
    fn pay(&mut self, now: Instant, g: u32) {
        let Group { owed, vtime, waiting, .. } = self.groups[g as usize];
        if owed == 0 || !waiting.is_empty() {
            return;
        }
        let budget = self.clock.at(now).saturating_sub(vtime).min(VIRTUAL_MAX);
        let paid = owed.min(self.real_cost(g, budget));
        let spent = self.virtual_cost(g, paid);
        let group = &mut self.groups[g as usize];
        (group.owed, group.vtime) = (owed - paid, vtime + spent);
    }

    /// Groups that had no requests in this period have no share from now on.
    fn retire(&mut self) {
        let (tree, groups) = (&mut self.tree, &self.groups);
        self.active.retain(|g| {
            let Group { used, owed, waiting, .. } = &groups[*g as usize];
            let stays = *used > 0 || *owed > 0 || !waiting.is_empty();
            if !stays {
                tree.deactivate(*g);
            }
            stays
        });
    }

    /// Plans who gives how much of its share to others.
    fn donate(&mut self, now: Instant) {
        let given_out = self.clock.worth(now.saturating_since(self.since)).max(1);
        let groups = &self.groups;
        self.tree.plan(&self.active, |g, share| {
            let Group { used, owed, has_waited, .. } = groups[g as usize];
            let used = used.min(COST_MAX) * WHOLE / given_out;
            let needs = used.min(WHOLE) * KEEPS.0 / KEEPS.1;
            (!has_waited && owed == 0 && used < share * USES.0 / USES.1 && needs < share).then_some(needs)
        });
    }

    /// In which direction the rate goes, and how far.
    fn step(&mut self, now: Instant, has_waited: bool) -> i32 {
        let [reads, writes] = &self.latencies;
        let time = now.saturating_since(self.since).as_ns();
        let is_full = self.full.as_ns() / FULL_PERCENT > time / 100;
        let is_late = reads.miss(self.config.rpct) || writes.miss(self.config.wpct);
        if is_full || is_late {
            self.streak = self.streak.max(0) + 1;
        } else if has_waited {
            self.streak = self.streak.min(0) - 1;
        } else {
            self.streak = 0;
        }
        self.streak = self.streak.clamp(-STREAK * STEP_MAX, STREAK * STEP_MAX);
        let steps = (1 + self.streak.abs() / STREAK).min(STEP_MAX);
        match self.streak {
            1.. if is_late => -steps * LATE,
            1.. => -steps,
            0 => 0,
            ..0 => steps,
        }
    }

    /// Notes how long a request was at the device.
    fn learn(&mut self, op: Op, latency: Duration) {
        let (kind, target) = match op {
            Op::Read => (0, self.config.rlat),
            Op::Write => (1, self.config.wlat),
            Op::Discard => return,
        };
        self.latencies[kind].seen += 1;
        self.latencies[kind].late += u64::from(latency > target);
    }
}

impl Scheduler for IoCost {
    const NAME: &'static str = "iocost";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let group =
            Group { waiting: List::EMPTY, vtime: 0, owed: 0, used: 0, has_waited: false, end: Sector(0) };
        let entry = Entry { group: 0, sectors: 0, cost: 0, is_released: false, issued: Instant::EPOCH };
        let mut clock = Clock::new();
        clock.adjust(Instant::EPOCH, 0, config.min, config.max);
        Ok(Self {
            model: config.model(&limits),
            clock,
            tree: Tree::new(limits.groups),
            is_tree_known: false,
            links: Links::new(limits.tags),
            entries: vec![entry; usize::from(limits.tags)],
            groups: vec![group; limits.groups as usize],
            active: Vec::with_capacity(limits.groups as usize),
            released: List::EMPTY,
            waiting: 0,
            at_device: 0,
            inside: 0,
            due: None,
            due_of: 0,
            since: Instant::EPOCH,
            until: Instant::EPOCH,
            latencies: [Latencies::default(); 2],
            full_since: None,
            full: Duration::ZERO,
            streak: 0,
            stalled_since: None,
            config,
            limits,
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        if !self.is_tree_known {
            self.tree.rebuild(&cx.books.groups);
            self.is_tree_known = true;
        }
        if self.inside == 0 {
            self.resume(cx.now);
        } else {
            self.advance(cx.now);
        }
        self.inside += 1;
        let rq = cx.requests[tag].rq;
        let g = rq.group.0;
        if self.groups[g as usize].waiting.is_empty() {
            self.enliven(cx.now, g);
            self.due_of = 0;
        }
        let group = &mut self.groups[g as usize];
        let is_random = group.end.0.abs_diff(rq.start.0) > NEAR;
        group.end = rq.end();
        self.entries[usize::from(tag.0)] = Entry {
            group: g,
            sectors: rq.len.0,
            cost: self.model.cost(&rq, is_random).min(COST_MAX),
            is_released: false,
            issued: cx.now,
        };
        self.links.push(&mut group.waiting, tag);
        self.waiting += 1;
        if rq.meta {
            self.hurry(tag);
        }
        self.settle(cx.now);
        if !self.entry(tag).is_released {
            if self.tree.gives(g) {
                self.tree.take_back(g);
                self.settle(cx.now);
            }
            self.groups[g as usize].has_waited |= !self.entry(tag).is_released;
        }
        self.note(cx.now);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        self.advance(cx.now);
        let issued = self.issue(cx.now);
        self.note(cx.now);
        match issued {
            Some(tag) => {
                cx.why = Reason::Arrival;
                Dispatch::Issue(tag)
            }
            None if self.waiting > 0 => Dispatch::Hold(Hold::Depth),
            None => Dispatch::Empty,
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        self.advance(cx.now);
        if self.released.is_empty()
            && let Some((_, group)) = self.due
        {
            self.release(group, cx.now);
            self.settle(cx.now);
        }
        let issued = self.issue(cx.now);
        self.note(cx.now);
        issued
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        self.advance(cx.now);
        let rq = cx.requests[kept].rq;
        let Entry { group, sectors, is_released, .. } = *self.entry(kept);
        let more = self.model.size_cost(rq.op, rq.len.0 - sectors).min(COST_MAX);
        let entry = &mut self.entries[usize::from(kept.0)];
        entry.sectors = rq.len.0;
        entry.cost = (entry.cost + more).min(COST_MAX);
        if end == End::Back {
            self.groups[group as usize].end = rq.end();
        }
        if is_released {
            self.charge(group, more);
        } else if rq.meta {
            self.hurry(kept);
        }
        self.due_of = 0;
        self.settle(cx.now);
        self.note(cx.now);
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        self.advance(cx.now);
        let (k, g) = (*self.entry(kept), *self.entry(gone));
        let is_older = cx.requests[gone].since < cx.requests[kept].since;
        if g.is_released {
            self.take_place(kept, gone, !k.is_released || is_older);
        } else {
            let more = self.model.size_cost(cx.requests[gone].rq.op, g.sectors).min(COST_MAX);
            let entry = &mut self.entries[usize::from(kept.0)];
            entry.cost = (entry.cost + more).min(COST_MAX);
            if k.is_released {
                self.charge(k.group, more);
            }
            self.take_place(kept, gone, !k.is_released && is_older && k.group == g.group);
        }
        self.entries[usize::from(kept.0)].sectors = k.sectors + g.sectors;
        self.inside -= 1;
        self.due_of = 0;
        self.settle(cx.now);
        self.note(cx.now);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.advance(cx.now);
        self.at_device -= 1;
        self.inside -= 1;
        self.learn(cx.requests[tag].rq.op, cx.now.saturating_since(self.entry(tag).issued));
        self.note(cx.now);
    }

    fn requeue(&mut self, cx: &mut Cx<'_>, _tag: Tag) {
        self.advance(cx.now);
        self.at_device -= 1;
        self.note(cx.now);
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.advance(cx.now);
        self.at_device += 1;
        self.entries[usize::from(tag.0)].issued = cx.now;
        self.note(cx.now);
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        match change {
            Control::SetPrio(..)
            | Control::TaskExit(_)
            | Control::SetMax(..)
            | Control::SetMin(..)
            | Control::SetLatency(..) => return,
            // It may be a new group.
            Control::SetParent(group, _) => {
                if let Some(i) = self.active.iter().position(|g| *g == group.0) {
                    self.active.remove(i);
                    self.tree.deactivate(group.0);
                }
                self.groups[group.0 as usize].owed = 0;
            }
            _ => {}
        }
        self.advance(cx.now);
        self.tree.rebuild(&cx.books.groups);
        self.is_tree_known = true;
        self.settle(cx.now);
        self.note(cx.now);
    }

    fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        config.validate()?;
        self.advance(cx.now);
        self.model = config.model(&self.limits);
        self.config = config;
        self.clock.adjust(cx.now, 0, config.min, config.max);
        self.due_of = 0;
        self.settle(cx.now);
        self.note(cx.now);
        Ok(true)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        // Without requests that wait none is due.
        if self.waiting > 0 {
            self.advance(cx.now);
            self.note(cx.now);
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        // No request waits for a plan, and the next call makes it.
        if self.waiting == 0 {
            return None;
        }
        let released = self.due.map(|(when, _)| (when, Timer::Limit));
        let stall = self.stall_ends().map(|when| (when, Timer::Limit));
        [released, stall, Some((self.until, Timer::Window))]
            .into_iter()
            .flatten()
            .min_by_key(|(when, _)| *when)
    }

    fn check(&self, requests: &Requests) {
        let count = |list: &List, is_released: bool| {
            for tag in self.links.iter(list) {
                assert!(requests[tag].state == State::Queued, "{tag:?} does not wait");
                assert!(self.entry(tag).is_released == is_released, "{tag:?} is in the wrong list");
                assert!(self.entry(tag).sectors == requests[tag].rq.len.0, "{tag:?} has another length");
            }
            list.len()
        };
        count(&self.released, true);
        let mut waiting = 0;
        for (i, group) in (0..).zip(&self.groups) {
            waiting += count(&group.waiting, false);
            assert!(group.waiting.is_empty() || self.active.contains(&i), "group {i} waits without a share");
        }
        assert_eq!(waiting, self.waiting, "how many wait");
        assert!(self.active.iter().all(|g| self.tree.is_active(*g)), "active groups");
        self.tree.check();
    }
}

impl IoCost {
    /// `gone` leaves its list; `kept` has its place, if `inherits`.
    fn take_place(&mut self, kept: Tag, gone: Tag, inherits: bool) {
        let (k, g) = (*self.entry(kept), *self.entry(gone));
        if inherits {
            let list =
                if k.is_released { &mut self.released } else { &mut self.groups[k.group as usize].waiting };
            self.links.remove(list, kept);
            self.waiting -= u32::from(!k.is_released);
            let list =
                if g.is_released { &mut self.released } else { &mut self.groups[g.group as usize].waiting };
            self.links.push_before(list, gone, kept);
            self.waiting += u32::from(!g.is_released);
            self.entries[usize::from(kept.0)].is_released = g.is_released;
            if !k.is_released && g.is_released {
                self.charge(k.group, k.cost);
            }
        }
        let list =
            if g.is_released { &mut self.released } else { &mut self.groups[g.group as usize].waiting };
        self.links.remove(list, gone);
        self.waiting -= u32::from(!g.is_released);
    }
}
