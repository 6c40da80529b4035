//! Groups by name: cgroup paths, exports and what a program calls its clients share one tree.
//!
//! `vm/web` is the group `web` inside `vm`. A group is made when it is first named, with those above it.
//! Their number is that of the queue's [`groups`](fairhead_core::Limits::groups).
//!
//! A group that a user named stays until it is [removed](GroupTable::remove). One that only a caller's cgroup
//! [named](GroupTable::of_caller) goes by itself, since cgroups come and go by the thousand: once no request
//! of its is left and no caller has named it for a while. If all numbers are taken, that while is short; if
//! none can go, the caller's requests count for the closest group around its own that there is.

use crate::error::{Error, ErrorKind};
use crate::latency::Latencies;
use crate::request_queue::RequestQueue;
use crate::warning::warn;
use fairhead_core::Control;
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A caller's group that no caller has named for this time goes. The kernel writes pages back for half a
/// minute after their writer was last seen.
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// [`UNUSED_MAX`] when all numbers are taken. A caller that is at work names its group every second.
const CROWDED_MAX: Duration = Duration::from_secs(2);
/// How often groups are looked at that may go.
const TICK: Duration = Duration::from_secs(1);

/// A group that there is.
#[derive(Clone, Copy, Debug)]
struct Named {
    id: GroupId,
    /// Whether it stays until a user removes it.
    is_kept: bool,
    /// When a caller last named it.
    used: Instant,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct GroupTable {
    names: BTreeMap<String, Named>,
    /// Numbers that no name has; those of removed groups may still have requests.
    free: Vec<GroupId>,
    /// Numbers of groups that went and were not [heard of](Self::take_gone).
    gone: BTreeSet<GroupId>,
    looks_at: Instant,
    /// Grows whenever a group comes or goes.
    version: u64,
    /// Whether it was said that all numbers are taken.
    has_said_full: bool,
    /// How long their clients waited.
    pub(crate) latencies: Latencies,
}

impl GroupTable {
    pub(crate) fn new(groups: u32) -> Self {
        let free = (1..groups).rev().map(GroupId).collect();
        Self {
            names: BTreeMap::new(),
            free,
            gone: BTreeSet::new(),
            looks_at: Instant::EPOCH,
            version: 0,
            has_said_full: false,
            latencies: Latencies::new(groups as usize),
        }
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, GroupId)> {
        self.names.iter().map(|(name, named)| (name.as_str(), named.id))
    }

    /// The group of that name; the root has none.
    pub(crate) fn find(&self, name: &str) -> Option<GroupId> {
        let name = Self::tidy(name);
        if name.is_empty() { Some(GroupId::ROOT) } else { self.names.get(&name).map(|named| named.id) }
    }

    /// Returns the group of that name, or, if there is none, the closest group around it that there is.
    pub(crate) fn closest(&self, name: &str) -> GroupId {
        let name = Self::tidy(name);
        let ends = name.match_indices('/').map(|(i, _)| i).chain([name.len()]);
        let found = ends.rev().find_map(|end| self.names.get(&name[..end]));
        found.map_or(GroupId::ROOT, |named| named.id)
    }

    /// Returns a number that grows whenever a group comes or goes: what is remembered of numbers of groups
    /// holds as long as it stays the same.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// The name of a group; that of the root is empty.
    pub(crate) fn name(&self, group: GroupId) -> &str {
        self.names().find(|(_, id)| *id == group).map_or("", |(name, _)| name)
    }

    /// Without slashes that say nothing.
    pub(crate) fn tidy(name: &str) -> String {
        name.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// Returns the group of that name, made if there is none. It stays until it is removed.
    pub(crate) fn ensure<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        name: &str,
    ) -> Result<GroupId, Error> {
        let (group, missing) = self.walk(now, queue, &Self::tidy(name), true);
        missing.map_or(Ok(group), Err)
    }

    /// Returns the group of a caller's cgroup, made if there is none; if there can be no more, the closest
    /// group around it that there is.
    pub(crate) fn of_caller<D>(&mut self, now: Instant, queue: &mut RequestQueue<D>, name: &str) -> GroupId {
        if now >= self.looks_at {
            self.looks_at = now + TICK;
            self.reap(now, queue, UNUSED_MAX);
        }
        let name = Self::tidy(name);
        let (mut group, mut missing) = self.walk(now, queue, &name, false);
        if missing.is_some() && self.reap(now, queue, CROWDED_MAX) {
            (group, missing) = self.walk(now, queue, &name, false);
        }
        if let Some(why) = missing
            && !std::mem::replace(&mut self.has_said_full, true)
        {
            warn(&format!("fairhead: {why}; cgroups without one share the group around them"));
        }
        group
    }

    /// Goes from the root to the group of that name and makes what is missing on the way. Returns how far it
    /// came, and why no further.
    fn walk<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        name: &str,
        is_kept: bool,
    ) -> (GroupId, Option<Error>) {
        let ends = name.match_indices('/').map(|(i, _)| i).chain([name.len()]);
        let mut parent = GroupId::ROOT;
        for end in ends.filter(|&end| end > 0) {
            let path = &name[..end];
            if let Some(named) = self.names.get_mut(path) {
                named.is_kept |= is_kept;
                named.used = now;
                parent = named.id;
                continue;
            }
            match self.make(now, queue, parent, path) {
                Ok(id) => {
                    self.version += 1;
                    self.names.insert(path.to_owned(), Named { id, is_kept, used: now });
                    parent = id;
                }
                Err(why) => return (parent, Some(why)),
            }
        }
        (parent, None)
    }

    /// Lets the groups go that no caller has named for this time and that have no requests. Returns whether
    /// there were any.
    fn reap<D>(&mut self, now: Instant, queue: &mut RequestQueue<D>, unused: Duration) -> bool {
        let is_old = |named: &Named| !named.is_kept && now.saturating_since(named.used) >= unused;
        if !self.names.values().any(is_old) {
            return false;
        }
        let busy: BTreeSet<GroupId> = queue.busy_groups().collect();
        let old = self.names.iter().filter(|(_, named)| is_old(named) && !busy.contains(&named.id));
        // Groups inside others come first, as a group with groups in it cannot go.
        let old: Vec<String> = old.rev().map(|(name, _)| name.clone()).collect();
        let mut any = false;
        for name in old {
            any |= self.remove(now, queue, &name).is_ok();
        }
        any
    }

    /// Takes the numbers of the groups that went since the last call: what is remembered of them is void, as
    /// the numbers will be other groups'.
    pub(crate) fn take_gone(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.gone)
    }

    /// The group stays until it is removed.
    pub(crate) fn keep(&mut self, group: GroupId) {
        self.names.values_mut().filter(|named| named.id == group).for_each(|named| named.is_kept = true);
    }

    fn make<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        parent: GroupId,
        path: &str,
    ) -> Result<GroupId, Error> {
        let full = || {
            let most = queue.elevator().groups().count() - 1;
            Error::new(
                ErrorKind::Group,
                format!("group {path}: there can be {most} groups, and there are as many"),
            )
        };
        let mut last = full();
        // A removed group's number is free again when its last request is served. The scheduler does not know
        // those that still wait for a place.
        let busy: BTreeSet<GroupId> = queue.busy_groups().collect();
        for i in (0..self.free.len()).rev().filter(|&i| !busy.contains(&self.free[i])) {
            match queue.control(now, Control::SetParent(self.free[i], parent)) {
                Ok(()) => {
                    self.latencies.forget(self.free[i]);
                    return Ok(self.free.remove(i));
                }
                Err(refusal) => last = Error::new(ErrorKind::Group, format!("group {path}: {refusal}")),
            }
        }
        Err(last)
    }

    /// Removes a group; its tasks are its parent's.
    pub(crate) fn remove<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        name: &str,
    ) -> Result<(), Error> {
        let name = Self::tidy(name);
        let Some(&Named { id, .. }) = self.names.get(&name) else {
            return Err(Error::new(ErrorKind::Group, format!("group {name}: there is none")));
        };
        let refused = |refusal| Error::new(ErrorKind::Group, format!("group {name}: {refusal}"));
        queue.control(now, Control::GroupExit(id)).map_err(refused)?;
        self.names.remove(&name);
        self.version += 1;
        self.free.insert(0, id);
        self.gone.insert(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{Bio, FileId, Op};
    use crate::request_queue::Settings;
    use fairhead_core::sched::any::preset;
    use fairhead_core::units::{IoPrio, Sector, TaskId};

    const GROUPS: u32 = 256;

    fn queue() -> (RequestQueue<()>, GroupTable) {
        let config = (preset("bfq").unwrap().config)().live();
        (RequestQueue::new(Settings::default(), config).unwrap(), GroupTable::new(GROUPS))
    }

    fn at(seconds: u64) -> Instant {
        Instant::EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn cgroups_that_come_and_go_have_a_group_each() {
        let (mut queue, mut table) = queue();
        table.ensure(at(0), &mut queue, "user").unwrap();
        let mut gone = 0;
        for i in 0..10_000 {
            let group = table.of_caller(at(i), &mut queue, &format!("/jobs/{i}"));
            assert_ne!(Some(group), table.find("jobs"), "job {i} has no group of its own");
            assert!(table.names().count() < 70, "{} groups", table.names().count());
            gone += table.take_gone().len();
        }
        assert!(table.find("user").is_some(), "a user named it");
        assert_eq!(gone + table.names().count(), 10_000 + 2);
        queue.check();
    }

    #[test]
    fn what_a_user_removes_is_gone_and_numbers_that_are_not_heard_of_are_bounded() {
        let (mut queue, mut table) = queue();
        let group = table.ensure(at(0), &mut queue, "user").unwrap();
        table.remove(at(0), &mut queue, "user").unwrap();
        assert_eq!(table.take_gone(), BTreeSet::from([group]));
        for _ in 0..1000 {
            table.ensure(at(0), &mut queue, "user").unwrap();
            table.remove(at(0), &mut queue, "user").unwrap();
        }
        assert!(table.take_gone().len() < GROUPS as usize);
        assert!(table.take_gone().is_empty());
    }

    #[test]
    fn where_all_groups_are_in_use_the_next_one_shares_by_parent() {
        let (mut queue, mut table) = queue();
        for i in 0..GROUPS - 2 {
            assert_ne!(table.of_caller(at(0), &mut queue, &format!("/jobs/{i}")), GroupId::ROOT);
        }
        let jobs = table.find("jobs").unwrap();
        assert_eq!(table.of_caller(at(1), &mut queue, "/jobs/one/more"), jobs);
        assert_eq!(table.of_caller(at(1), &mut queue, "/system/one"), GroupId::ROOT);
        let why = table.ensure(at(1), &mut queue, "mine").unwrap_err().to_string();
        assert!(why.contains("255 groups"), "{why}");
        assert_ne!(table.of_caller(at(3), &mut queue, "/jobs/one"), jobs, "others have gone by now");
    }

    #[test]
    fn a_group_stays_as_long_as_it_has_requests() {
        let (mut queue, mut table) = queue();
        let busy = table.of_caller(at(0), &mut queue, "/busy");
        table.of_caller(at(0), &mut queue, "/idle");
        let client = queue.join();
        let bio = Bio {
            op: Op::Read,
            file: FileId(0),
            offset: 0,
            len: 4096,
            sector: Sector(0),
            fua: false,
            sync: true,
            task: TaskId(1),
            group: busy,
            prio: IoPrio::default(),
            cookie: 0,
        };
        let id = queue.submit(at(0), client, bio, None);
        table.of_caller(at(100), &mut queue, "/other");
        assert_eq!((table.find("busy"), table.find("idle")), (Some(busy), None));
        queue.cancel(at(100), id);
        assert_eq!(queue.next(at(100)), None, "it was taken back");
        table.of_caller(at(200), &mut queue, "/other");
        assert_eq!(table.find("busy"), None);
    }
}
