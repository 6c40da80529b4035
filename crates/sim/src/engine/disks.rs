//! The disks of a run, as the clients see them: each is one queue, or the queues of a set's members
//! ([`super::set`]).
//!
//! ```text
//!   a job's file ─► its disk ─► set: which members ─► a DiskQueue each (pool, plug, elevator) ─► device
//! ```
//!
//! Each queue has a number of its own over all disks: 0 to `members() - 1`. Queues have their own scheduler,
//! pool, plug and lock, and share the host's processors only. What happens to one makes none of the others
//! run. What is about one queue callers ask [`Disks::queue`].
//!
//! md has no scheduler of its own: each member has one, with the same tunables, and each sees its share of
//! the load only. What goes to several members is handed in whole or not at all: if one has no request left,
//! the thread waits for that member's. A flush goes to all members, and who asked for it is woken by the
//! last.
//!
//! [`Earliest`] knows which device and which timer is next, and sets of bits which queues have been handed
//! something and are to be run, or may have others. With one queue much here is a plain call of that queue.
//! What this does not do: members that fail.

use super::earliest::Earliest;
use super::locks::Visit;
use super::owner::Owner;
use super::pools::Batch;
use super::queue::{DiskQueue, Full, Sizes};
use super::set::{Flushing, Part, Shared, Spread};
use super::tap::{Books, Journal, Tap};
use super::wire::FLUSH_TAG;
use crate::error::SimError;
use crate::host::Host;
use crate::job;
use crate::metrics::{DiskStats, Result};
use crate::why;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{
    Control, Duration, GroupId, GroupStats, Instant, Refusal, Request, Sectors, Tag, TaskId,
};
use fairhead_device::{Counters, DeviceParams, Facts};
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::ops::{Add, Range};
use std::rc::Rc;

/// What a disk of the run is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'s> {
    /// What the job file calls it.
    pub(super) label: &'s str,
    pub(super) model: &'s DeviceParams,
    /// The name that its scheduler has in the host's costs.
    pub(super) scheduler: &'s str,
    pub(super) config: AnyConfig,
}

/// A disk of the run.
#[derive(Debug)]
struct Disk {
    label: String,
    scheduler: String,
    /// Its queues.
    members: Range<usize>,
    /// What it is like, as this host uses it: `max_request` is that of the two together.
    facts: Facts,
    spread: Spread,
    /// What its scheduler costs for each request, outside the lock that processors wait for.
    sched_cost: Duration,
}

/// What one disk did.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) label: String,
    pub(super) scheduler: String,
    pub(super) stats: DiskStats,
}

/// Which runs of a queue are coming: events that [`super::runs`] has armed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coming {
    pub(super) unplug: bool,
    pub(super) run: bool,
    pub(super) worker: bool,
    pub(super) delayed: bool,
}

/// All disks.
#[derive(Debug)]
pub(super) struct Disks<'a> {
    disks: Vec<Disk>,
    members: Vec<DiskQueue<'a>>,
    /// When devices and elevators' timers are due. The timers of the queues in `stale` may have changed.
    devices: Earliest,
    timers: Earliest,
    stale: u64,
    /// Whether a queue's scheduler has a lock that processors wait for.
    has_locks: bool,
    /// Queues that have been handed something, and are to be run; and those that may hold back what tasks
    /// have handed in. One bit each.
    touched: u64,
    plugged: u64,
    /// Which runs are coming, by queue.
    pub(super) coming: Vec<Coming>,
    /// The queue that had no request for the last submission that failed.
    full: usize,
    /// Requests and flushes that several members have.
    shared: Shared,
    flushing: Flushing,
    /// Books of where time goes, if any are kept.
    books: Option<Books>,
    /// Scratch space.
    parts: Vec<Part>,
}

/// The numbers of the bits that are set, from the lowest.
pub(super) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then_some(set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

impl<'a> Disks<'a> {
    /// The most queues of all disks together.
    const MEMBERS_MAX: usize = 64;

    pub(super) fn new(wanted: &[Wanted<'_>], host: &Host, sizes: Sizes, trace: u32) -> Result<Self> {
        let (mut disks, mut members) = (Vec::new(), Vec::new());
        for w in wanted {
            let models = w.model.members().unwrap_or(std::slice::from_ref(w.model));
            let first = members.len();
            // On hosts without modelled processors the lock is a fixed time for each dispatch; on the others
            // processors wait for it.
            let lock = if host.sched_serial { host.sched_cost(w.scheduler) } else { Duration::ZERO };
            let layer = host.multi_queue_for(w.scheduler, &w.config);
            let costs = host.cores.as_ref().map(|c| c.scheduler(w.scheduler));
            for model in models {
                let queue = DiskQueue::new(model, host, (w.config, layer), sizes, trace)?;
                members.push(queue.with_lock(lock).with_disk_lock(costs.and_then(|c| c.lock)));
            }
            let each: Vec<Facts> = members[first..].iter().map(DiskQueue::facts).collect();
            let (facts, spread) = Spread::over(&each, w.model.stripe_chunk());
            disks.push(Disk {
                label: w.label.to_owned(),
                scheduler: w.scheduler.to_owned(),
                members: first..members.len(),
                facts: Facts { max_request: facts.max_request.min(host.max_request), ..facts },
                spread,
                sched_cost: costs.map_or_else(|| host.sched_cost(w.scheduler), |c| c.work),
            });
        }
        if members.len() > Self::MEMBERS_MAX {
            return Err(SimError::ManyDisks { queues: members.len(), most: Self::MEMBERS_MAX });
        }
        Ok(Self {
            disks,
            devices: Earliest::new(members.len()),
            timers: Earliest::new(members.len()),
            stale: 0,
            has_locks: members.iter().any(DiskQueue::has_lock),
            coming: vec![Coming::default(); members.len()],
            touched: 0,
            plugged: 0,
            full: 0,
            shared: Shared::default(),
            flushing: Flushing::default(),
            books: None,
            parts: Vec::new(),
            members,
        })
    }

    pub(super) fn facts(&self, disk: job::DiskId) -> Facts {
        self.disks[disk.index()].facts
    }

    /// The largest request that the host sends to a disk.
    #[inline]
    pub(super) fn max_request(&self, disk: job::DiskId) -> Sectors {
        self.disks[disk.index()].facts.max_request
    }

    /// The number of requests that a direct call of `sectors` sectors on a disk is.
    #[inline]
    pub(super) fn pieces(&self, disk: job::DiskId, sectors: u32) -> u32 {
        let most = self.max_request(disk).0;
        // Most are one, and to divide takes longer than to look.
        if sectors <= most { u32::from(sectors > 0) } else { sectors.div_ceil(most) }
    }

    /// The facts of all disks, in order.
    pub(super) fn all_facts(&self) -> impl Iterator<Item = Facts> + '_ {
        self.disks.iter().map(|d| d.facts)
    }

    /// What the disk's scheduler costs for each request, outside the lock that processors wait for.
    pub(super) fn sched_cost(&self, disk: job::DiskId) -> Duration {
        self.disks[disk.index()].sched_cost
    }

    /// Returns a queue.
    #[inline]
    pub(super) fn queue(&self, member: usize) -> &DiskQueue<'a> {
        &self.members[member]
    }

    /// Returns a queue whose elevator is about to change, so that its timer is looked at again.
    #[inline]
    pub(super) fn queue_mut(&mut self, member: usize) -> &mut DiskQueue<'a> {
        self.stale |= 1 << member;
        &mut self.members[member]
    }

    /// Returns the queue, about to change, if there is only one: what most runs have.
    #[inline]
    fn only(&mut self) -> Option<&mut DiskQueue<'a>> {
        let [one] = &mut self.members[..] else { return None };
        self.stale = 1;
        Some(one)
    }

    // ---- locks -------------------------------------------------------------------------------------------

    /// Whether a scheduler has a lock that processors wait for.
    pub(super) const fn has_locks(&self) -> bool {
        self.has_locks
    }

    /// A processor takes the lock of a disk's scheduler, if there is one, to insert and dispatch `requests`
    /// requests; `alone` of them are the only ones of their processes. Of a set's members the first stands
    /// for all.
    pub(super) fn lock_to_submit(
        &mut self,
        now: Instant,
        disk: job::DiskId,
        requests: u32,
        alone: u32,
    ) -> Option<Visit> {
        self.members[self.disks[disk.index()].members.start].lock_to_submit(now, requests, alone)
    }

    /// A processor takes a disk's scheduler's lock to end a request, if the scheduler has it do so.
    pub(super) fn lock_to_complete(&mut self, now: Instant, disk: job::DiskId) -> Option<Visit> {
        self.members[self.disks[disk.index()].members.start].lock_to_complete(now)
    }

    // ---- requests in -------------------------------------------------------------------------------------

    /// Hands in a request to a disk, from a thread that may overdraw the pools within its batch.
    #[inline]
    pub(super) fn submit(
        &mut self,
        now: Instant,
        disk: job::DiskId,
        rq: &Request,
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        if let Some(one) = self.only() {
            return one.submit(now, rq, owner, batch);
        }
        self.submit_to_one(now, disk, rq, owner, batch)
    }

    /// Hands in a request where there are several queues.
    fn submit_to_one(
        &mut self,
        now: Instant,
        disk: job::DiskId,
        rq: &Request,
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        let Disk { members, spread, .. } = &self.disks[disk.index()];
        let first = members.start;
        if matches!(spread, Spread::One) {
            return self.hand_to(now, first, rq, owner, batch);
        }
        let mut parts = std::mem::take(&mut self.parts);
        spread.cut(rq, members.len(), |m| self.members[first + m].is_idle(), &mut parts);
        let is_in = self.hand_parts(now, first, &parts, owner, batch);
        if is_in.is_ok() {
            self.disks[disk.index()].spread.handed_in(rq, parts[0].0);
        }
        parts.clear();
        self.parts = parts;
        is_in
    }

    /// Hands in the parts of a request to the queues of a set, of which the first is `first`: all, or none
    /// if one of those has no request left.
    fn hand_parts(
        &mut self,
        now: Instant,
        first: usize,
        parts: &[Part],
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        if let [(m, rq)] = parts {
            return self.hand_to(now, first + m, rq, owner, batch);
        }
        // A part that one member has no request for must not be on the others already.
        let full = parts.iter().find(|(m, rq)| !self.members[first + m].has_request(now, rq, *batch));
        if let Some((full, _)) = full {
            self.full = first + full;
            return Err(Full);
        }
        let share = self.share(owner, parts.len());
        let before = *batch;
        for (m, rq) in parts {
            // The call takes one request from the thread's batch, however many members carry it.
            *batch = before;
            self.hand_to(now, first + m, rq, share, batch)?;
        }
        Ok(())
    }

    /// Hands in a request to a queue.
    fn hand_to(
        &mut self,
        now: Instant,
        member: usize,
        rq: &Request,
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        self.full = member;
        self.touched |= 1 << member;
        self.plugged |= 1 << member;
        self.queue_mut(member).submit(now, rq, owner, batch)
    }

    /// Returns what stands for an owner in the queues of `members` members. The last of them to complete
    /// wakes the owner.
    fn share(&mut self, owner: Owner, members: usize) -> Owner {
        let index = self.shared.share(owner, members);
        if let Some(books) = &self.books {
            books.borrow_mut().shares(index, owner);
        }
        Owner::Shared(index)
    }

    /// The current task waits for I/O: what it has handed in is held back no longer.
    pub(super) fn unplug(&mut self, now: Instant) {
        if let Some(one) = self.only() {
            return one.unplug(now);
        }
        self.touched |= self.plugged;
        for m in bits(std::mem::take(&mut self.plugged)) {
            self.queue_mut(m).unplug(now);
        }
    }

    pub(super) fn end_batch(&mut self, now: Instant) {
        if let Some(one) = self.only() {
            return one.end_batch(now);
        }
        self.touched |= self.plugged;
        for m in bits(self.plugged) {
            self.queue_mut(m).end_batch(now);
        }
    }

    /// Returns the queues that have got requests and have not been run since. With one queue: that one, as
    /// the caller wants it to be run.
    #[inline]
    pub(super) fn take_touched(&mut self) -> u64 {
        let touched = std::mem::take(&mut self.touched);
        if self.members.len() == 1 { 1 } else { touched }
    }

    /// Gives a device what it has room for. Returns when to run its queue again, if a lock has to be free for
    /// that.
    #[must_use]
    pub(super) fn run(&mut self, now: Instant, member: usize) -> Option<Instant> {
        let queue = self.queue_mut(member);
        let again = queue.run(now);
        let due = queue.device_due();
        self.devices.set(member, due);
        again
    }

    /// The thread wants everything that has completed on a disk to be stable.
    pub(super) fn flush(&mut self, disk: job::DiskId, thread: u32) {
        let members = self.disks[disk.index()].members.clone();
        if members.len() > 1 {
            self.flushing.wait(thread, members.len());
        }
        for m in members {
            self.touched |= 1 << m;
            self.queue_mut(m).flush(thread);
        }
    }

    // ---- completions and timers --------------------------------------------------------------------------

    /// When the first device wants to be polled, and when the first elevator's timer is due;
    /// [`Earliest::NEVER`] if none is. Asked before each event.
    #[inline]
    pub(super) fn due(&mut self) -> (Instant, Instant) {
        if self.stale != 0 {
            self.refresh();
        }
        (self.devices.next(), self.timers.next())
    }

    #[inline(never)]
    fn refresh(&mut self) {
        while self.stale != 0 {
            let m = self.stale.trailing_zeros() as usize;
            self.stale &= self.stale - 1;
            self.timers.set(m, self.members[m].timer_due());
        }
    }

    /// The next command that a device has finished, and which queue's it is.
    #[inline]
    pub(super) fn poll(&mut self, now: Instant) -> Option<(u8, Tag)> {
        loop {
            let m = self.devices.due(now)?;
            // Queues may have been handed something for an earlier completion of this instant; they come
            // next.
            let done = self.members[m].poll(now);
            self.devices.set(m, self.members[m].device_due());
            if let Some(tag) = done {
                #[allow(clippy::cast_possible_truncation, reason = "64 at most")]
                return Some((m as u8, tag));
            }
        }
    }

    /// The interrupt handler ends a request of a queue. `owners` gets the owners of its pieces,
    /// [`Owner::None`] for those that other members still have; `woken` gets the threads that waited for a
    /// flush, or for writes not to be congested.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        member: usize,
        tag: Tag,
        owners: &mut Vec<Owner>,
        woken: &mut VecDeque<u32>,
    ) {
        if let Some(one) = self.only() {
            return one.complete(now, tag, owners, woken);
        }
        let before = woken.len();
        self.queue_mut(member).complete(now, tag, owners, woken);
        for owner in owners.iter_mut() {
            *owner = self.shared.completed(*owner);
        }
        if tag == FLUSH_TAG && !self.flushing.is_empty() {
            self.flushing.flushed(woken, before);
        }
    }

    /// A queue whose elevator's timer is due.
    pub(super) fn due_timer(&mut self, now: Instant) -> Option<usize> {
        self.refresh();
        self.timers.due(now)
    }

    /// Makes a change in the schedulers of all queues, or in none if one of them refuses it.
    pub(super) fn control(&mut self, now: Instant, change: Control) -> std::result::Result<(), Refusal> {
        self.members.iter().try_for_each(|queue| queue.may_change(&change))?;
        (0..self.members.len()).try_for_each(|m| self.queue_mut(m).control(now, change))
    }

    pub(super) fn exit_task(&mut self, now: Instant, task: TaskId) {
        (0..self.members.len()).for_each(|m| self.queue_mut(m).exit_task(now, task));
    }

    // ---- pools -------------------------------------------------------------------------------------------

    pub(super) fn is_congested(&self, disk: job::DiskId, sync: bool) -> bool {
        self.members[self.disks[disk.index()].members.clone()].iter().any(|m| m.is_congested(sync))
    }

    /// Puts a thread, whose submission has just failed, at the end of the queue for a request of that kind.
    pub(super) fn wait(&mut self, thread: u32, sync: bool, queue: u16) {
        self.members[self.full].wait(thread, sync, queue);
    }

    /// The thread is woken when writes are no longer congested; it sets itself a limit.
    pub(super) fn wait_for_congestion(&mut self, thread: u32) {
        let congested = self.members.iter().position(|m| m.is_congested(false));
        self.members[congested.unwrap_or(0)].wait_for_congestion(thread);
    }

    pub(super) fn end_wait_for_congestion(&mut self, thread: u32) {
        self.members.iter_mut().for_each(|m| m.end_wait_for_congestion(thread));
    }

    // ---- figures -----------------------------------------------------------------------------------------

    /// How many queues there are.
    pub(super) fn members(&self) -> u8 {
        u8::try_from(self.members.len()).expect("64 at most")
    }

    /// How many disks there are.
    pub(super) fn count(&self) -> usize {
        self.disks.len()
    }

    /// Sets the observers of everything from now on.
    pub(super) fn listen(&mut self, why: Option<why::Recorder>, journal: Option<Journal<'a>>) {
        self.books = why.map(|why| Rc::new(RefCell::new(why)));
        for (i, member) in (0..).zip(&mut self.members) {
            member.listen(Tap::new(i, self.books.clone(), journal.clone()));
        }
    }

    /// Which disk each queue is of.
    pub(super) fn disk_of_members(&self) -> impl Iterator<Item = usize> + '_ {
        self.disks.iter().enumerate().flat_map(|(i, disk)| disk.members.clone().map(move |_| i))
    }

    /// The names of the disks.
    pub(super) fn labels(&self) -> Vec<String> {
        self.disks.iter().map(|disk| disk.label.clone()).collect()
    }

    pub(super) fn why(&self) -> Option<RefMut<'_, why::Recorder>> {
        self.books.as_ref().map(|books| books.borrow_mut())
    }

    /// What the books say, if any were kept. Observers are detached.
    pub(super) fn take_report(&mut self) -> Option<why::Report> {
        let lost = self.trace_lost();
        self.members.iter_mut().for_each(|m| m.tap = None);
        let books = Rc::try_unwrap(self.books.take()?).expect("all who heard of it are gone");
        Some(books.into_inner().report(lost))
    }

    /// Events that the elevators' traces have lost.
    pub(super) fn trace_lost(&self) -> u64 {
        self.members.iter().map(DiskQueue::trace_lost).sum()
    }

    /// A group's books: those of all queues, added up.
    pub(super) fn group_stats(&self, group: GroupId) -> GroupStats {
        let mut sum = GroupStats::default();
        self.members.iter().for_each(|m| sum.add(&m.group_stats(group)));
        sum
    }

    /// Plays what happens inside the devices until `now`, and answers when that was last. Nothing of it ends
    /// a request.
    pub(super) fn catch_up(&mut self, now: Instant) -> Option<Instant> {
        self.members.iter_mut().filter_map(|m| m.catch_up(now)).max()
    }

    /// How many more events there were than polls.
    pub(super) fn unseen(&self) -> i64 {
        self.members.iter().map(DiskQueue::unseen).sum()
    }

    /// The time of all disks that a group was charged.
    pub(super) fn group_disk_time(&self, group: GroupId) -> Duration {
        self.members.iter().map(|m| m.group_disk_time(group)).fold(Duration::ZERO, Add::add)
    }

    /// The figures of a disk until `now`.
    pub(super) fn stats(&self, now: Instant, disk: usize) -> DiskStats {
        let disk = &self.disks[disk];
        disk.combine(self.members[disk.members.clone()].iter().map(|m| m.stats(now)).collect())
    }

    /// The figures at the end, disk by disk.
    pub(super) fn finish(self, now: Instant) -> Vec<Done> {
        let mut members = self.members.into_iter().map(|m| m.finish(now));
        let done = |disk: Disk| {
            let stats = disk.combine(members.by_ref().take(disk.members.len()).collect());
            Done { label: disk.label, scheduler: disk.scheduler, stats }
        };
        self.disks.into_iter().map(done).collect()
    }
}

impl Disk {
    /// What its queues did together: requests and work of all, times as their mean, bytes as the clients
    /// asked for them.
    fn combine(&self, mut all: Vec<DiskStats>) -> DiskStats {
        if all.len() == 1 {
            return all.remove(0);
        }
        let once = all[0].written_bytes;
        let sum = together(&all);
        match self.spread {
            // Every member has all of them.
            Spread::Mirror(_) => DiskStats { written_bytes: once, ..sum },
            Spread::One | Spread::Stripe(_) => sum,
        }
    }
}

/// What several did together: requests, bytes and work added up, times as their mean.
pub(super) fn together(all: &[DiskStats]) -> DiskStats {
    let n = all.len().max(1) as u64;
    let mean = |of: fn(&DiskStats) -> Duration| all.iter().map(of).fold(Duration::ZERO, |a, b| a + b) / n;
    let sum = |of: fn(&DiskStats) -> u64| all.iter().map(of).sum();
    DiskStats {
        counters: Counters::sum(all.iter().map(|s| &s.counters)),
        busy: mean(|s| s.busy),
        idled: mean(|s| s.idled),
        lock_held: mean(|s| s.lock_held),
        issued: sum(|s| s.issued),
        merged: sum(|s| s.merged),
        read_bytes: sum(|s| s.read_bytes),
        written_bytes: sum(|s| s.written_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::sched::any::preset;
    use fairhead_core::{Min, TaskId};

    /// Two disks, of which the first does many more requests a second, and two groups.
    fn fast_and_slow() -> Disks<'static> {
        let models = ["sata_ssd", "nas2020"]
            .map(|base| DeviceParams::from_toml(&format!("base = \"{base}\""), "d.toml").expect("a disk"));
        let config = (preset("bfq").expect("built in").config)();
        let wanted = |model| Wanted { label: "d", model, scheduler: "bfq", config };
        let sizes = Sizes { tasks: 4, groups: 3, guarantees: true };
        Disks::new(&models.each_ref().map(wanted), &Host::of_2020(), sizes, 0).expect("disks")
    }

    /// A guarantee that only the second disk is too slow for. Had the first one kept it, it would have
    /// nothing left for another group.
    #[test]
    fn a_guarantee_that_one_disk_refuses_is_given_on_none() {
        let mut disks = fast_and_slow();
        let (most, now) = (|group, iops| Control::SetMin(GroupId(group), Min { iops }), Instant::EPOCH);
        let refused = disks.queue(0).may_change(&most(1, u32::MAX));
        let Err(Refusal::Infeasible { capacity, .. }) = refused else { panic!("{refused:?}") };
        let refused = disks.control(now, most(1, capacity));
        assert!(matches!(refused, Err(Refusal::Infeasible { capacity: slow, .. }) if slow < capacity));
        assert_eq!(disks.queue(0).may_change(&most(2, capacity)), Ok(()));
    }

    /// A group with a request on the second disk stays where it is on both.
    #[test]
    fn a_group_that_is_busy_on_one_disk_is_moved_on_none() {
        let (mut disks, now) = (fast_and_slow(), Instant::EPOCH);
        let rq =
            Request { group: GroupId(1), ..Request::read(TaskId(1), fairhead_core::Sector(0), Sectors(8)) };
        let mut batch = Batch::NONE;
        disks.queue_mut(1).submit(now, &rq, Owner::None, &mut batch).expect("room");
        disks.queue_mut(1).unplug(now);
        let refused = disks.control(now, Control::SetParent(GroupId(1), GroupId(2)));
        assert_eq!(refused, Err(Refusal::Busy(GroupId(1))));
        // On the first disk group 2 is not around group 1 and may go.
        assert_eq!(disks.queue(0).may_change(&Control::GroupExit(GroupId(2))), Ok(()));
    }
}
