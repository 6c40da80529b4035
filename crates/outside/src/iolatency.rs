//! io.latency: groups whose mean latency must stay below a target, at the cost of their peers.
//!
//! For one group that matters beside others that do not. As long as all keep their targets, nothing is done.
//!
//! # How it works
//!
//! ```text
//!   requests ─► a gate for each group on the way to the root ─► in order of arrival ─► device
//!                 open, or as many as its depth
//! ```
//!
//! A group with a target has the mean of the latencies of its requests, and of those of groups in it, in
//! each *window*. A window is over when `win` has passed and a request completes: without I/O none ends. A
//! group that missed its target makes those of its siblings smaller that have a higher target, or none: the
//! depth of each, which is how many requests it may have on their way to or at the device, with those of
//! groups in it. It is halved, from as many as there are at that moment, at most down to one. When none of
//! those that it could hurt misses its target, or they have no requests, it grows by an eighth of the
//! device's queue in each window, and is unlimited when it has reached all of it.
//!
//! Worked example: groups *a* with a target of 5 ms, *b* of 20 ms and *c* without. If *a* misses its target,
//! *b* and *c* get smaller; if *b* does, *c* only; if *c* is slow, nothing is done. Groups in *c* are not
//! compared with *a*: they have to pass the gate of *c*.
//!
//! A latency begins when the request has passed the gates: what a group waits since others are protected is
//! not the device's doing, and must not hurt those with higher targets.
//!
//! Requests for metadata pass closed gates, as others may wait for them. They count in the groups' depths, so
//! that the next ones wait longer.
//!
//! # How long requests wait
//!
//! A group has a depth of one at least, so each request passes after those before it, one by one. With one
//! group no gate is ever closed: *n* requests wait for *n* services.
//!
//! # What it does not do
//!
//! No sorting, no weights, no classes. It does not delay programs on their way back to user space for the
//! metadata that they caused (`use_delay` in Linux): there is no such way here. All groups with requests at a
//! closed gate are looked at whenever a request completes.
//!
//! # What is not in the sources
//!
//! How fast a depth shrinks and grows, the length of a window, and what a latency begins with. The
//! documentation says "relatively quickly" and that averages decide. It has not been compared with the
//! original, decision by decision.
//!
//= Linux Documentation/admin-guide/cgroup-v2.rst, IO Latency

use crate::lists::{Links, List};
use fairhead_core::config::{ConfigError, Tunables};
use fairhead_core::sched::Scheduler;
use fairhead_core::{
    Control, Cx, Dispatch, Duration, GroupId, Groups, Hold, Instant, Limits, Reason, Requests, State, Tag,
    tunables,
};

tunables! {
    /// The tunables. A group's target is the group's: `latency=` in job files.
    pub struct Config {
        /// The shortest time between two looks at the latencies.
        pub win: Duration = Duration::from_ms(100), 1_000_000, 10_000_000_000;
    }
}

/// By which part of the device's queue a depth grows in a window.
const GROWTH: u32 = 8;

/// What is known of a request, by its tag.
#[derive(Clone, Copy, Debug)]
struct Entry {
    group: u32,
    /// In which order it came.
    number: u64,
    has_passed: bool,
    /// When it passed the gates.
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    parent: u32,
    target: Option<Duration>,
    /// Its own requests before closed gates.
    waiting: List,
    /// How many requests of it and of groups in it have passed, and are not done.
    inside: u32,
    /// How many may; `None`: any number.
    depth: Option<u32>,
    /// The latencies in this window, with those of groups in it.
    latencies: Duration,
    done: u64,
    /// While a window is looked at: the lowest target that a group directly in it has missed.
    missed: Option<Duration>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct IoLatency {
    config: Config,
    limits: Limits,
    links: Links,
    entries: Vec<Entry>,
    groups: Vec<Group>,
    are_groups_known: bool,
    /// The groups with requests of their own before closed gates.
    closed: Vec<u32>,
    passed: List,
    waiting: u32,
    arrived: u64,
    /// When the window may end, once there was a request.
    until: Option<Instant>,
}

impl IoLatency {
    /// Returns how many requests a group may have on their way to or at the device; `None`: any number.
    #[must_use]
    pub fn depth(&self, group: GroupId) -> Option<u32> {
        self.groups[group.0 as usize].depth
    }

    fn entry(&self, tag: Tag) -> &Entry {
        &self.entries[usize::from(tag.0)]
    }

    /// A group and those around it, the root at last.
    fn path(&self, group: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(group), |at| (*at != 0).then(|| self.groups[*at as usize].parent))
    }

    fn each_around(&mut self, group: u32, mut change: impl FnMut(&mut Group)) {
        let mut at = group;
        loop {
            change(&mut self.groups[at as usize]);
            if at == 0 {
                return;
            }
            at = self.groups[at as usize].parent;
        }
    }

    /// Takes parents and targets over.
    fn know(&mut self, groups: &Groups) {
        for (i, group) in (0..).zip(&mut self.groups) {
            let id = GroupId(i);
            (group.parent, group.target) = (groups.parent(id).map_or(0, |p| p.0), groups.latency(id));
        }
        self.are_groups_known = true;
    }

    fn is_open(&self, group: u32) -> bool {
        let is_open = |g: &Group| g.depth.is_none_or(|depth| g.inside < depth);
        self.path(group).all(|at| is_open(&self.groups[at as usize]))
    }

    /// A request is on its way to the device.
    fn pass(&mut self, now: Instant, tag: Tag) {
        let entry = &mut self.entries[usize::from(tag.0)];
        (entry.has_passed, entry.since) = (true, now);
        let group = entry.group;
        self.links.push(&mut self.passed, tag);
        self.each_around(group, |g| g.inside += 1);
    }

    fn wait(&mut self, g: u32, tag: Tag) {
        let group = &mut self.groups[g as usize];
        if group.waiting.is_empty() {
            self.closed.push(g);
        }
        self.links.push(&mut group.waiting, tag);
        self.waiting += 1;
    }

    /// A request that waits does so no more.
    fn wait_no_more(&mut self, g: u32, tag: Tag) {
        let group = &mut self.groups[g as usize];
        self.links.remove(&mut group.waiting, tag);
        if group.waiting.is_empty() {
            self.closed.retain(|at| *at != g);
        }
        self.waiting -= 1;
    }

    /// Lets all pass that gates are open for, in the order in which they came.
    fn settle(&mut self, now: Instant) {
        loop {
            let open = self.closed.iter().copied().filter(|g| self.is_open(*g));
            let heads = open.filter_map(|g| self.groups[g as usize].waiting.first());
            let Some(first) = heads.min_by_key(|tag| self.entry(*tag).number) else { return };
            self.wait_no_more(self.entry(first).group, first);
            self.pass(now, first);
        }
    }

    /// The end of a window.
    fn look(&mut self, now: Instant) {
        self.until = Some(now + self.config.win);
        for group in &mut self.groups {
            group.missed = None;
        }
        for at in 1..self.groups.len() {
            let Group { parent, latencies, done, target, .. } = self.groups[at];
            (self.groups[at].latencies, self.groups[at].done) = (Duration::ZERO, 0);
            if let Some(target) = target.filter(|target| done > 0 && latencies / done > *target) {
                let missed = &mut self.groups[parent as usize].missed;
                *missed = Some(missed.map_or(target, |lowest| lowest.min(target)));
            }
        }
        let growth = (u32::from(self.limits.queue_depth) / GROWTH).max(1);
        for at in 1..self.groups.len() {
            let Group { inside, depth, .. } = self.groups[at];
            self.groups[at].depth = if self.hurts(at) {
                Some(depth.map_or(inside, |depth| depth.min(inside.max(1))).div_ceil(2).max(1))
            } else {
                depth.map(|depth| depth + growth).filter(|depth| *depth < u32::from(self.limits.queue_depth))
            };
        }
    }

    /// Whether a sibling with a lower target has missed it.
    fn hurts(&self, at: usize) -> bool {
        let Group { parent, target, .. } = self.groups[at];
        let missed = self.groups[parent as usize].missed;
        missed.is_some_and(|missed| target.is_none_or(|target| missed < target))
    }
}

impl Scheduler for IoLatency {
    const NAME: &'static str = "iolatency";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let group = Group {
            parent: 0,
            target: None,
            waiting: List::EMPTY,
            inside: 0,
            depth: None,
            latencies: Duration::ZERO,
            done: 0,
            missed: None,
        };
        let entry = Entry { group: 0, number: 0, has_passed: false, since: Instant::EPOCH };
        Ok(Self {
            config,
            limits,
            links: Links::new(limits.tags),
            entries: vec![entry; usize::from(limits.tags)],
            groups: vec![group; limits.groups as usize],
            are_groups_known: false,
            closed: Vec::with_capacity(limits.groups as usize),
            passed: List::EMPTY,
            waiting: 0,
            arrived: 0,
            until: None,
        })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        if !self.are_groups_known {
            self.know(&cx.books.groups);
        }
        self.until.get_or_insert(cx.now + self.config.win);
        let rq = cx.requests[tag].rq;
        let group = rq.group.0;
        self.arrived += 1;
        self.entries[usize::from(tag.0)] =
            Entry { group, number: self.arrived, has_passed: false, since: cx.now };
        let goes = rq.meta || (self.groups[group as usize].waiting.is_empty() && self.is_open(group));
        if goes { self.pass(cx.now, tag) } else { self.wait(group, tag) }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        match self.links.pop(&mut self.passed) {
            Some(tag) => {
                cx.why = Reason::Arrival;
                Dispatch::Issue(tag)
            }
            None if self.waiting > 0 => Dispatch::Hold(Hold::Depth),
            None => Dispatch::Empty,
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        if self.passed.is_empty()
            && let Some(g) = self.closed.first().copied()
        {
            let tag = self.groups[g as usize].waiting.first().expect("it waits");
            self.wait_no_more(g, tag);
            self.pass(cx.now, tag);
        }
        self.links.pop(&mut self.passed)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, _end: fairhead_core::End) {
        let Entry { group, has_passed, .. } = *self.entry(kept);
        if cx.requests[kept].rq.meta && !has_passed {
            self.wait_no_more(group, kept);
            self.pass(cx.now, kept);
        }
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let (k, g) = (*self.entry(kept), *self.entry(gone));
        let is_older = g.number < k.number;
        if g.has_passed && !k.has_passed {
            self.wait_no_more(k.group, kept);
            self.pass(cx.now, kept);
        }
        // At the place of the older one, if both are in one list.
        if is_older && (g.has_passed || (!k.has_passed && k.group == g.group)) {
            let list =
                if g.has_passed { &mut self.passed } else { &mut self.groups[g.group as usize].waiting };
            self.links.remove(list, kept);
            self.links.push_before(list, gone, kept);
            self.entries[usize::from(kept.0)].number = g.number;
        }
        if g.has_passed {
            self.links.remove(&mut self.passed, gone);
            self.each_around(g.group, |group| group.inside -= 1);
        } else {
            self.wait_no_more(g.group, gone);
        }
        self.settle(cx.now);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let Entry { group, since, .. } = *self.entry(tag);
        let latency = cx.now.saturating_since(since);
        self.each_around(group, |g| {
            g.inside -= 1;
            g.latencies += latency;
            g.done += 1;
        });
        if self.until.is_some_and(|until| until <= cx.now) {
            self.look(cx.now);
        }
        self.settle(cx.now);
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        if let Control::SetParent(..) | Control::SetLatency(..) | Control::GroupExit(_) = change {
            self.know(&cx.books.groups);
        }
        // It may be a new group.
        if let Control::SetParent(group, _) = change {
            self.groups[group.0 as usize].depth = None;
        }
        self.settle(cx.now);
    }

    fn reconfigure(&mut self, _cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        config.validate()?;
        self.config = config;
        Ok(true)
    }

    fn check(&self, requests: &Requests) {
        let check = |list: &List, has_passed: bool| {
            for tag in self.links.iter(list) {
                assert!(requests[tag].state == State::Queued, "{tag:?} does not wait");
                assert!(self.entry(tag).has_passed == has_passed, "{tag:?} is in the wrong list");
            }
            list.len()
        };
        check(&self.passed, true);
        let waiting: u32 = self.groups.iter().map(|g| check(&g.waiting, false)).sum();
        assert_eq!(waiting, self.waiting, "how many wait");
        assert!(self.closed.iter().all(|g| !self.is_open(*g)), "a gate is open, and requests wait");
        let inside = requests.queued() + requests.issued() - waiting;
        assert_eq!(self.groups[0].inside, inside, "how many have passed");
    }
}
