//! The elevator of a disk, and those that it had before: one takes the place of another while requests wait
//! and the disk is busy.
//!
//! ```text
//!   era 0   bfq ──switch──► retired, while the disk has what it issued ──► only what it had counted for each group is kept
//!   era 1                   deadline: what waited comes to it anew
//! ```
//!
//! An io keeps the number of the era in which it was issued, and is completed where it came from. The groups
//! of the new elevator are those of the old one, with their weights and limits. The caller, which knows the
//! waiting requests, hands them over in the order in which they came.
//!
//! What it does not do: know bios, files or the disk.

use crate::recording::{Event, Recorded};
use fairhead_core::config::ConfigError;
use fairhead_core::elevator::{Control, Dispatch, Elevator, Limits};
use fairhead_core::groups::{GroupStats, Refusal};
use fairhead_core::request::{Request, State};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler};
use fairhead_core::units::{GroupId, Id, Instant, Tag};

#[derive(Debug)]
struct Retired {
    elevator: Elevator<AnyScheduler>,
    era: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct SchedulerSwitch {
    limits: Limits,
    now: Recorded,
    config: AnyConfig,
    era: u64,
    retired: Vec<Retired>,
    /// What groups got under those that are no more, by group.
    before: Vec<GroupStats>,
}

impl SchedulerSwitch {
    /// The first one.
    pub(crate) fn new(limits: Limits, config: AnyConfig) -> Result<Self, ConfigError> {
        let now = Recorded::new(Elevator::new(limits, config)?);
        let before = vec![GroupStats::default(); limits.groups as usize];
        Ok(Self { limits, now, config, era: 0, retired: Vec::new(), before })
    }

    /// The elevator of now, to look at.
    pub(crate) const fn elevator(&self) -> &Elevator<AnyScheduler> {
        self.now.elevator()
    }

    pub(crate) const fn config(&self) -> &AnyConfig {
        &self.config
    }

    /// The number of the elevator of now.
    pub(crate) const fn era(&self) -> u64 {
        self.era
    }

    /// A request arrives; `alone`: it must not be merged.
    pub(crate) fn insert(&mut self, now: Instant, tag: Tag, request: Request, alone: bool) {
        if alone {
            self.now.insert_alone(now, tag, request);
        } else {
            self.now.insert(now, tag, request);
        }
    }

    pub(crate) fn dispatch(&mut self, now: Instant) -> Dispatch {
        self.now.dispatch(now)
    }

    /// The disk is done with what was issued in that era; `free` are the tags that it had.
    pub(crate) fn complete(&mut self, now: Instant, era: u64, tag: Tag, free: &mut Vec<Tag>) {
        if era == self.era {
            return free.extend(self.now.complete(now, tag));
        }
        let i = self.retired.iter().position(|r| r.era == era).expect("it stays for what it issued");
        let from = free.len();
        free.extend(self.retired[i].elevator.complete(now, tag));
        self.now.done(now, tag, &free[from..]);
        if self.retired[i].elevator.requests().issued() == 0 {
            let old = self.retired.swap_remove(i);
            self.keep_books(&old.elevator);
        }
    }

    pub(crate) fn timer(&mut self, now: Instant) {
        // Its clock advances even if no timer of its own is due: whether a limit has room depends on that
        // clock.
        self.now.timer(now);
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.elevator().next_timer().map(|t| t.0)
    }

    pub(crate) fn control(&mut self, now: Instant, change: Control) -> Result<(), Refusal> {
        let groups = self.elevator().groups();
        let is_new = matches!(change, Control::SetParent(g, _) if !groups.exists(g));
        self.now.control(now, change)?;
        if let Control::SetParent(group, _) = change
            && is_new
        {
            // What had its number before got that.
            self.before[group.index()] = GroupStats::default();
        }
        Ok(())
    }

    /// Another scheduler, or other tunables. Returns what waits, in no order: it is to be inserted anew.
    pub(crate) fn switch(&mut self, now: Instant, config: AnyConfig) -> Result<Vec<Tag>, ConfigError> {
        if self.config.scheduler() == config.scheduler() && self.now.reconfigure(now, config)? {
            self.config = config;
            return Ok(Vec::new());
        }
        let new = Elevator::new(self.limits, config)?;
        let old = self.now.replace(new, config);
        self.config = config;
        self.take_over_groups(now, &old);
        let requests = old.requests();
        let waiting = requests.iter().filter(|(_, slot)| matches!(slot.state, State::Queued | State::Held));
        let waiting = waiting.flat_map(|(tag, _)| requests.carried(tag).chain([tag])).collect();
        if requests.issued() > 0 {
            self.retired.push(Retired { elevator: old, era: self.era });
        } else {
            self.keep_books(&old);
        }
        self.era += 1;
        Ok(waiting)
    }

    /// The new scheduler's groups are as they were under the old one.
    fn take_over_groups(&mut self, now: Instant, old: &Elevator<AnyScheduler>) {
        let (groups, new) = (old.groups(), self.elevator().groups());
        let mut all: Vec<GroupId> = (1..groups.count()).map(GroupId::from_index).collect();
        let depth = |g: GroupId| std::iter::successors(groups.parent(g), |&p| groups.parent(p)).count();
        all.sort_by_key(|&g| (!groups.exists(g), depth(g)));
        let mut changes = vec![Control::SetLeafWeight(GroupId::ROOT, groups.leaf_weight(GroupId::ROOT))];
        for g in all {
            let Some(parent) = groups.parent(g) else { continue };
            if !groups.exists(g) {
                changes.extend([Control::SetParent(g, groups.home(g)), Control::GroupExit(g)]);
                continue;
            }
            // Most are as they are made, and each change takes the longer the more groups there are.
            let differs = [
                (new.parent(g) != Some(parent)).then_some(Control::SetParent(g, parent)),
                (new.weight(g) != groups.weight(g)).then(|| Control::SetWeight(g, groups.weight(g))),
                (new.leaf_weight(g) != groups.leaf_weight(g))
                    .then(|| Control::SetLeafWeight(g, groups.leaf_weight(g))),
                (new.class(g) != groups.class(g)).then(|| Control::SetClass(g, groups.class(g))),
                (new.max(g) != groups.max(g)).then(|| Control::SetMax(g, groups.max(g))),
                (new.min(g) != groups.min(g)).then(|| Control::SetMin(g, groups.min(g))),
                (new.latency(g) != groups.latency(g)).then(|| Control::SetLatency(g, groups.latency(g))),
            ];
            changes.extend(differs.into_iter().flatten());
        }
        for change in changes {
            self.now.control(now, change).expect("as it was");
        }
    }

    fn keep_books(&mut self, old: &Elevator<AnyScheduler>) {
        Self::add_old(&mut self.before, old);
    }

    /// Adds what each group got in an elevator that has been replaced. What waited there was handed over, and
    /// is counted there.
    fn add_old(sums: &mut [GroupStats], old: &Elevator<AnyScheduler>) {
        let mut stats = vec![GroupStats::default(); sums.len()];
        old.all_stats(&mut stats);
        for (sum, stats) in sums.iter_mut().zip(stats) {
            sum.add(&GroupStats { io_queued: Default::default(), ..stats });
        }
    }

    /// What each group got since the first elevator was made, by number.
    pub(crate) fn all_stats(&self) -> Vec<GroupStats> {
        let mut sums = vec![GroupStats::default(); self.before.len()];
        self.elevator().all_stats(&mut sums);
        sums.iter_mut().zip(&self.before).for_each(|(sum, before)| sum.add(before));
        self.retired.iter().for_each(|old| Self::add_old(&mut sums, &old.elevator));
        sums
    }

    /// Records the events and decisions of the elevators.
    pub(crate) fn record(&mut self) {
        self.now.keep(self.config);
    }

    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        self.now.take()
    }
}
