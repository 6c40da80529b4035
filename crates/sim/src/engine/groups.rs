//! Control groups: from the paths of a job file to the numbers that a scheduler knows, and what becomes of
//! them in a run.
//!
//! ```text
//!   /                                     GroupId(0)
//!   tenants    weight=300                 GroupId(1)   SetWeight(1, 300)
//!   tenants/a  (job a)                    GroupId(2)   SetParent(2, 1)
//! ```
//!
//! A group is removed when the last of its clients, and of those in groups inside it, has ended, as fio
//! removes what it made; not if a job of its says `cgroup_nodelete`, if no job ever was in it, or while a
//! change to come names it. A change during the run that cannot be made becomes a note, and nothing else
//! happens. A client that moves to another group takes its future requests there; those that it has submitted
//! stay.
//!
//! Schedulers that know no groups take no notice; limits hold under all of them, as the elevator keeps them.
//
//= linux-4.20 Documentation/cgroup-v1/blkio-controller.txt
//= docs/reference/cfq.md#68-files-of-the-blkio-controller

use std::collections::BTreeSet;

use super::Machine;
use crate::job::{Cgroup, Change, ChangeTo, Job, JobFile, Setting};
use crate::metrics::{GroupOutcome, Result};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::cfq::Era;
use fairhead_core::{Class, Control, Duration, GroupId, GroupStats, Instant, Max, Min, Refusal, Weight};

/// The settings of a group in force.
#[derive(Clone, Copy, Debug)]
struct Given {
    weight: Weight,
    leaf_weight: Weight,
    class: Class,
    max: Max,
    min: Min,
    /// Clients in it and in groups inside it that have not ended, and changes to come that speak of it.
    users: u32,
    /// A client has been in it.
    was_used: bool,
    is_gone: bool,
}

impl Given {
    fn new() -> Self {
        Self {
            weight: Weight::DEFAULT,
            leaf_weight: Weight::DEFAULT,
            class: Class::BestEffort,
            max: Max::default(),
            min: Min::default(),
            users: 0,
            was_used: false,
            is_gone: false,
        }
    }

    /// Enters what the group was given.
    fn accept(&mut self, change: &Control) {
        match *change {
            Control::SetWeight(_, weight) => self.weight = weight,
            Control::SetLeafWeight(_, weight) => self.leaf_weight = weight,
            Control::SetClass(_, class) => self.class = class,
            Control::SetMax(_, max) => self.max = max,
            Control::SetMin(_, min) => self.min = min,
            Control::GroupExit(_) => self.is_gone = true,
            _ => {}
        }
    }
}

/// The groups of a run; a group's number is its index in the job file.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    jobs: &'a JobFile,
    given: Vec<Given>,
    /// Changes that could not be, for the user.
    pub(super) notes: Vec<String>,
}

impl<'a> Groups<'a> {
    pub(super) fn of(jobs: &'a JobFile) -> Self {
        let mut groups = Self { jobs, given: vec![Given::new(); jobs.cgroups.len()], notes: Vec::new() };
        for client in jobs.clients() {
            let group = groups.id(client.job);
            groups.enter(group);
        }
        for change in &jobs.changes {
            groups.each_around(number(spoken_of(change)), |g| g.users += 1);
        }
        groups
    }

    /// How many there are, the root included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.given.len()).expect("job files are limited to a few thousand groups")
    }

    /// Everything that groups are given, at the start or later.
    fn all_settings(&self) -> impl Iterator<Item = &'a Setting> {
        let later = self.jobs.changes.iter().filter_map(|c| match &c.what {
            ChangeTo::Set(_, settings) => Some(settings),
            _ => None,
        });
        self.jobs.cgroups.iter().map(|g| &g.settings).chain(later).flatten()
    }

    /// Whether a group has a guarantee, at the start or later.
    pub(super) fn has_guarantees(&self) -> bool {
        self.all_settings().any(|s| s.guarantee().is_some_and(|min| min.iops > 0))
    }

    /// What groups are given and a scheduler does not keep, in the words of job files. Limits are kept under
    /// all.
    pub(super) fn not_kept(&self, kept: &[&str]) -> Vec<&'static str> {
        let matters = |s: &&Setting| match **s {
            Setting::Weight(w) | Setting::LeafWeight(w) => w != Weight::DEFAULT,
            Setting::Class(c) => c != Class::BestEffort,
            Setting::MinIops(iops) => iops > 0,
            Setting::Latency(target) => target.is_some(),
            _ => false,
        };
        let words = self.all_settings().filter(matters).map(Setting::word);
        let missing: BTreeSet<&'static str> = words.filter(|w| !kept.contains(w)).collect();
        missing.into_iter().collect()
    }

    /// The job's group at the start.
    pub(super) fn id(&self, job: &Job) -> GroupId {
        number(self.jobs.cgroup_of(job))
    }

    /// The group around it.
    fn around(&self, group: GroupId) -> GroupId {
        number(self.jobs.cgroups[group.0 as usize].parent)
    }

    fn path(&self, group: GroupId) -> &str {
        &self.jobs.cgroups[group.0 as usize].path
    }

    /// The group and all those around it, but the root.
    fn each_around(&mut self, group: GroupId, mut change: impl FnMut(&mut Given)) {
        let mut at = group;
        while at != GroupId::ROOT {
            change(&mut self.given[at.0 as usize]);
            at = self.around(at);
        }
    }

    fn enter(&mut self, group: GroupId) {
        self.each_around(group, |g| {
            g.users += 1;
            g.was_used = true;
        });
    }

    /// Counts one user fewer. Returns the groups that are not needed any more, each before the one around it.
    fn leave(&mut self, group: GroupId) -> Vec<GroupId> {
        self.each_around(group, |g| g.users -= 1);
        let ways_up = std::iter::successors(Some(group), |&g| (g != GroupId::ROOT).then(|| self.around(g)));
        let all = ways_up.take_while(|&g| g != GroupId::ROOT);
        let is_done = |g: &GroupId| {
            let (spec, given) = (&self.jobs.cgroups[g.0 as usize], &self.given[g.0 as usize]);
            given.users == 0 && given.was_used && !spec.stays
        };
        all.take_while(is_done).filter(|g| !self.given[g.0 as usize].is_gone).collect()
    }

    /// The group, or the nearest one around it that is not gone.
    fn home(&self, group: GroupId) -> GroupId {
        let mut at = group;
        while self.given[at.0 as usize].is_gone {
            at = self.around(at);
        }
        at
    }

    /// The settings that the elevator gets before the first request.
    pub(super) fn controls(&mut self) -> Vec<Control> {
        let mut all = Vec::new();
        for (i, cgroup) in self.jobs.cgroups.iter().enumerate() {
            if cgroup.parent != 0 {
                all.push(Control::SetParent(number(i), number(cgroup.parent)));
            }
            all.extend(self.to_give(number(i), &cgroup.settings));
        }
        for change in &all {
            self.accept(change);
        }
        all
    }

    /// The changes that give a group these settings.
    fn to_give(&self, group: GroupId, settings: &[Setting]) -> Vec<Control> {
        let mut max = self.given[group.0 as usize].max;
        let is_limited = settings.iter().filter(|s| s.limit(&mut max)).count() > 0;
        let limit = is_limited.then_some(Control::SetMax(group, max));
        let others = settings.iter().filter_map(|s| match *s {
            Setting::Weight(w) => Some(Control::SetWeight(group, w)),
            Setting::LeafWeight(w) => Some(Control::SetLeafWeight(group, w)),
            Setting::Class(c) => Some(Control::SetClass(group, c)),
            Setting::Latency(target) => Some(Control::SetLatency(group, target)),
            s => s.guarantee().map(|min| Control::SetMin(group, min)),
        });
        // A limit first: a guarantee must not be above it.
        limit.into_iter().chain(others).collect()
    }

    fn accept(&mut self, change: &Control) {
        let (Control::SetWeight(group, _)
        | Control::SetLeafWeight(group, _)
        | Control::SetClass(group, _)
        | Control::SetMax(group, _)
        | Control::SetMin(group, _)
        | Control::GroupExit(group)) = *change
        else {
            return;
        };
        self.given[group.0 as usize].accept(change);
    }

    /// A refusal, with paths instead of numbers.
    fn say(&self, refusal: Refusal) -> String {
        match refusal {
            Refusal::NoGroup(g) => format!("cgroup '{}' is gone", self.path(g)),
            Refusal::Busy(g) => format!("cgroup '{}' still has requests or groups in it", self.path(g)),
            Refusal::Loop(g) => format!("cgroup '{}' cannot be inside itself", self.path(g)),
            other => other.to_string(),
        }
    }

    /// The message about a refused change of a group at the start.
    pub(super) fn refused(&self, change: &Control, refusal: Refusal) -> String {
        match *change {
            Control::SetMin(group, _) | Control::SetMax(group, _) => {
                format!("cgroup '{}': {}", self.path(group), self.say(refusal))
            }
            _ => self.say(refusal),
        }
    }

    /// What each group got; nothing if there is the root only.
    pub(super) fn outcomes(&self, stats: impl Fn(GroupId) -> GroupStats) -> Vec<GroupOutcome> {
        let one = |(i, (spec, given)): (usize, (&Cgroup, &Given))| GroupOutcome {
            path: spec.path.clone(),
            parent: spec.parent,
            weight: given.weight,
            leaf_weight: given.leaf_weight,
            class: given.class,
            max: given.max,
            min: given.min,
            stats: stats(number(i)),
        };
        if self.given.len() < 2 {
            return Vec::new();
        }
        self.jobs.cgroups.iter().zip(&self.given).enumerate().map(one).collect()
    }
}

/// Returns the settings of control groups that a scheduler keeps, in the words of job files. All keep limits.
#[must_use]
pub fn groups_kept(config: &AnyConfig) -> &'static [&'static str] {
    match config {
        AnyConfig::Bfq(c) if c.hierarchy => &["weight"],
        // Groups were flat before.
        AnyConfig::Cfq(c) if matches!(c.era, Era::Linux2_6_33 | Era::Linux2_6_34) => &["weight"],
        AnyConfig::Cfq(_) => &["weight", "leaf_weight"],
        AnyConfig::Outside(c) => c.factory().groups(),
        c if c.scheduler().ends_with("+groups") => &["weight", "leaf_weight", "class", "min_iops"],
        _ => &[],
    }
}

fn number(index: usize) -> GroupId {
    GroupId(u32::try_from(index).expect("job files are limited to a few thousand groups"))
}

/// The group that a change is about.
const fn spoken_of(change: &Change) -> usize {
    match change.what {
        ChangeTo::Set(group, _) | ChangeTo::Move(_, group) | ChangeTo::Remove(group) => group,
    }
}

impl Machine<'_> {
    /// A client has ended.
    pub(super) fn leave_group(&mut self, group: GroupId) {
        for gone in self.groups.leave(group) {
            // It may have groups in it that stay.
            if self.tell(Control::GroupExit(gone)).is_err() {
                break;
            }
        }
    }

    /// Makes a change in the elevator, and remembers it.
    fn tell(&mut self, change: Control) -> std::result::Result<(), Refusal> {
        self.disks.control(self.clock.now, change)?;
        self.groups.accept(&change);
        Ok(())
    }

    /// The time of a change has come.
    pub(super) fn change_groups(&mut self, index: u32) {
        let jobs = self.groups.jobs;
        let change = &jobs.changes[index as usize];
        let group = number(spoken_of(change));
        let done = match &change.what {
            ChangeTo::Set(_, settings) => {
                self.groups.to_give(group, settings).into_iter().try_for_each(|c| self.tell(c))
            }
            ChangeTo::Move(job, _) if self.groups.home(group) == group => {
                self.move_clients(group, |_, c| c.job.name == *job);
                Ok(())
            }
            ChangeTo::Move(..) => Err(Refusal::NoGroup(group)),
            ChangeTo::Remove(_) => self.remove_group(group),
        };
        if let Err(refusal) = done {
            let at = self.clock.now.since(Instant::EPOCH);
            let why = self.groups.say(refusal);
            self.groups.notes.push(format!("at {at}: '{}' was not done: {why}", change.text));
        }
        // The change was one of the group's users: after the last one the group is removed.
        self.leave_group(group);
        self.disks.run_touched(&mut self.clock);
    }

    /// Its clients go on in the group around it, as libcgroup's `cgdelete` has it.
    fn remove_group(&mut self, group: GroupId) -> std::result::Result<(), Refusal> {
        self.tell(Control::GroupExit(group))?;
        let around = self.groups.home(group);
        self.move_clients(around, |from, _| from == group);
        Ok(())
    }

    /// These clients' requests to come are of another group.
    fn move_clients(&mut self, to: GroupId, is_one: impl Fn(GroupId, &super::client::Client) -> bool) {
        for i in 0..self.clients.len() {
            let client = &mut self.clients[i];
            let from = client.group;
            if client.lanes == 0 || from == to || !is_one(from, client) {
                continue;
            }
            client.group = to;
            self.groups.enter(to);
            self.leave_group(from);
        }
    }

    /// Takes samples of the groups' disk time up to now, if the scenario asks for them. Nothing has happened
    /// since the last event, so a sample taken late is as good as one in time, and no event is needed that
    /// could change the order of others.
    pub(super) fn sample(&mut self, now: Instant) {
        let Some(period) = self.watch.period else { return };
        while self.watch.next <= now {
            self.watch.next = self.watch.next + period;
            self.take_sample();
        }
    }

    /// What each group was charged since the last sample.
    fn take_sample(&mut self) {
        let disks = &self.disks;
        let charged = self.watch.before.iter_mut().zip(0..).map(|(before, i)| {
            let now = disks.group_disk_time(GroupId(i));
            now.saturating_sub(std::mem::replace(before, now))
        });
        self.watch.rows.push(charged.collect());
    }

    /// The samples, with one of what came after the last full interval. What is charged at the very end of
    /// one belongs to it.
    pub(super) fn take_samples(&mut self) -> Vec<Vec<Duration>> {
        let Some(period) = self.watch.period else { return Vec::new() };
        self.take_sample();
        let mut rows = std::mem::take(&mut self.watch.rows);
        let is_whole = self.clock.now.since(Instant::EPOCH).as_ns().is_multiple_of(period.as_ns());
        if is_whole
            && rows.len() > 1
            && let (Some(end), Some(last)) = (rows.pop(), rows.last_mut())
        {
            last.iter_mut().zip(end).for_each(|(sum, more)| *sum += more);
        }
        rows
    }
}

/// Samples of the groups' disk time.
#[derive(Debug)]
pub(super) struct Watch {
    period: Option<Duration>,
    next: Instant,
    before: Vec<Duration>,
    rows: Vec<Vec<Duration>>,
}

impl Watch {
    pub(super) fn new(period: Option<Duration>, groups: u32) -> Self {
        Self {
            period,
            next: Instant::EPOCH + period.unwrap_or_default(),
            before: vec![Duration::ZERO; groups as usize],
            rows: Vec::new(),
        }
    }
}

/// Gives the elevator the settings of the groups at the start.
pub(super) fn give(groups: &mut Groups<'_>, disks: &mut super::disks::Disks<'_>) -> Result<()> {
    for change in groups.controls() {
        disks
            .control(Instant::EPOCH, change)
            .map_err(|refusal| crate::error::SimError::Group(groups.refused(&change, refusal)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::parse;

    #[test]
    fn groups_are_numbered_in_file_order_and_shared_by_path() {
        let text = "[global]\nsize=1m\n[a]\ncgroup=gold\n[b]\n[c]\ncgroup=tin\ncgroup_weight=100\n[d]\ncgroup=/gold/\ncgroup_weight=300\n[e]\ncgroup=/\n[f]\ncgroup=tin//foil\n";
        let jobs = parse(text, "x").unwrap();
        let mut groups = Groups::of(&jobs);
        let ids: Vec<u32> = jobs.jobs.iter().map(|j| groups.id(j).0).collect();
        assert_eq!((ids, groups.count()), (vec![1, 0, 2, 1, 0, 3], 4));
        let weight = |w| Weight::new(w).unwrap();
        assert_eq!(
            groups.controls(),
            [
                Control::SetWeight(GroupId(1), weight(300)),
                Control::SetWeight(GroupId(2), weight(100)),
                Control::SetParent(GroupId(3), GroupId(2)),
            ]
        );
    }

    #[test]
    fn a_group_goes_with_the_last_who_needs_it_and_takes_those_around_along() {
        let text = "[global]\nsize=1m\n[a]\ncgroup=t/a\n[b]\ncgroup=t/b\n[c]\ncgroup=s/c\ncgroup_nodelete=1\n#!fh_at=9s set t/b weight=200\n";
        let jobs = parse(text, "x").unwrap();
        let mut groups = Groups::of(&jobs);
        let [a, b, c] = [0, 1, 2].map(|i| groups.id(&jobs.jobs[i]));
        assert_eq!(groups.leave(a), [a], "t has another group in it");
        assert_eq!(groups.leave(b), [], "a change is to come");
        assert_eq!(groups.leave(b), [b, GroupId(1)], "it has come; t has no other user");
        assert_eq!(groups.leave(c), [], "it is to stay");
    }
}
