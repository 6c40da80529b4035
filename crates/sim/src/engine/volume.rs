//! What the clients see as the disk: one queue, or the queues of a mirror's members.
//!
//! ```text
//!   one disk, one queue (a controller's set, too)          RAID 1 as Linux md does it
//!
//!     submit ─► DiskQueue ─► device                          submit ─┬─ read ──► the member that ReadBalance names
//!                                                                    └─ write ─► all members; done when the last is
//!                                                            each member: DiskQueue (pool, plug, elevator) ─► device
//! ```
//!
//! md has no scheduler of its own: each member has one, with the same tunables, and each sees its share of the load only. A
//! write is handed in whole or not at all: if one member has no request left, the writer waits for that member's. A flush
//! goes to all members, and who asked for it is woken by the last.
//!
//! With one member everything here is a plain call of that member. What this does not do: stripes, members that fail, or the
//! books of [`why`] for more than one queue.
//
//= devices.md 2.5

use super::Owner;
use super::queue::{Batch, DiskQueue, FLUSH_TAG, Full, Journal, Sizes, Tap};
use crate::error::SimError;
use crate::host::Host;
use crate::metrics::{DiskStats, Result};
use crate::why;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{Control, Duration, GroupId, GroupStats, Instant, Op, Refusal, Request, Tag, TaskId};
use fairhead_device::{Counters, DeviceParams, Facts, ReadBalance};
use std::collections::VecDeque;

/// A disk, or several that mirror each other.
#[derive(Debug)]
pub(super) struct Volume<'a> {
    members: Vec<DiskQueue<'a>>,
    facts: Facts,
    balance: ReadBalance,
    /// The member that had no request for the last submission that failed.
    full: usize,
    /// Requests that all members have: who handed one in, and how many members are not done. Free entries are listed.
    shared: Vec<(Owner, usize)>,
    free: Vec<u32>,
    /// Threads that wait for a flush, and for how many members.
    flushing: Vec<(u32, usize)>,
}

impl<'a> Volume<'a> {
    /// `scheduler` is the name that the scheduler has in the host's costs.
    pub(super) fn new(
        disk: &DeviceParams,
        host: &Host,
        (scheduler, sched): (&str, AnyConfig),
        sizes: Sizes,
        trace: u32,
    ) -> Result<Self> {
        let disks = disk.members().unwrap_or(std::slice::from_ref(disk));
        let lock = if host.sched_serial { host.sched_cost(scheduler) } else { Duration::ZERO };
        let layer = host.multi_queue_for(scheduler, &sched);
        let queue = |d| Ok(DiskQueue::new(d, host, sched, sizes, trace)?.with_lock(lock).of_layer(layer));
        let members = disks.iter().map(queue).collect::<Result<Vec<_>>>()?;
        let facts = match &members[..] {
            [one] => one.facts(),
            all => Facts::mirrored(all.iter().map(DiskQueue::facts)),
        };
        Ok(Self {
            balance: ReadBalance::new(members.len()),
            members,
            facts,
            full: 0,
            shared: Vec::new(),
            free: Vec::new(),
            flushing: Vec::new(),
        })
    }

    pub(super) const fn facts(&self) -> Facts {
        self.facts
    }

    // ---- requests in ---------------------------------------------------------------------------------------------

    /// Hands in a request, from a thread that may overdraw the pools within its batch.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        rq: Request,
        owner: Owner,
        batch: &mut Batch,
    ) -> std::result::Result<(), Full> {
        if self.members.len() == 1 {
            return self.members[0].submit(now, rq, owner, batch);
        }
        if rq.op == Op::Read {
            let m = self.balance.choose(rq.start, |m| self.members[m].is_idle());
            self.full = m;
            self.members[m].submit(now, rq, owner, batch)?;
            self.balance.read(m, rq.end());
            return Ok(());
        }
        if let Some(full) = self.members.iter().position(|m| !m.has_request(now, &rq, *batch)) {
            self.full = full;
            return Err(Full);
        }
        let share = self.share(owner);
        let before = *batch;
        for member in &mut self.members {
            *batch = before;
            member.submit(now, rq, share, batch)?;
        }
        self.balance.write(rq.end());
        Ok(())
    }

    /// What stands for an owner in all members' queues.
    fn share(&mut self, owner: Owner) -> Owner {
        let entry = (owner, self.members.len());
        let index = self.free.pop().unwrap_or_else(|| {
            self.shared.push(entry);
            u32::try_from(self.shared.len() - 1).expect("no more than tags")
        });
        self.shared[index as usize] = entry;
        Owner::Shared(index)
    }

    /// The owner of a request that one more member is done with; nobody if others are not.
    fn unshare(&mut self, owner: Owner) -> Owner {
        let Owner::Shared(index) = owner else { return owner };
        let (owner, left) = &mut self.shared[index as usize];
        *left -= 1;
        if *left > 0 {
            return Owner::Nobody;
        }
        self.free.push(index);
        *owner
    }

    pub(super) fn unplug(&mut self, now: Instant) {
        self.members.iter_mut().for_each(|m| m.unplug(now));
    }

    pub(super) fn end_batch(&mut self, now: Instant) {
        self.members.iter_mut().for_each(|m| m.end_batch(now));
    }

    pub(super) fn is_plugged(&self) -> bool {
        self.members.iter().any(DiskQueue::is_plugged)
    }

    /// Gives the devices what they have room for. Answers when to run again, if a lock has to be free for that.
    #[must_use]
    pub(super) fn run(&mut self, now: Instant) -> Option<Instant> {
        if let [one] = &mut self.members[..] {
            return one.run(now);
        }
        self.members.iter_mut().filter_map(|m| m.run(now)).min()
    }

    /// Whether a member's queue is to be run after what it has just been told of.
    pub(super) fn wants_run(&self) -> bool {
        self.members.iter().any(DiskQueue::wants_run)
    }

    /// Whether a member's queue is to be run again after a while.
    pub(super) fn wants_delayed_run(&self) -> bool {
        self.members.iter().any(DiskQueue::wants_delayed_run)
    }

    /// The thread wants everything that has completed to be stable.
    pub(super) fn flush(&mut self, thread: u32) {
        if self.members.len() > 1 {
            self.flushing.push((thread, self.members.len()));
        }
        self.members.iter_mut().for_each(|m| m.flush(thread));
    }

    // ---- completions and timers ----------------------------------------------------------------------------------

    pub(super) fn device_due(&self) -> Option<Instant> {
        self.earliest(DiskQueue::device_due)
    }

    /// The next command that a device has finished, and which member's it is.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(u8, Tag)> {
        (0..).zip(&mut self.members).find_map(|(i, m)| Some((i, m.poll(now)?)))
    }

    /// The interrupt handler ends a request of a member. Answers through `owners` who handed in its pieces, nobody for those that
    /// other members still have; through `woken` who waited for a flush, or for writes not to be congested.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        member: u8,
        tag: Tag,
        owners: &mut Vec<Owner>,
        woken: &mut VecDeque<u32>,
    ) {
        let before = woken.len();
        self.members[usize::from(member)].complete(now, tag, owners, woken);
        for owner in owners.iter_mut() {
            *owner = self.unshare(*owner);
        }
        if tag == FLUSH_TAG && self.members.len() > 1 {
            for thread in woken.split_off(before) {
                let i = self.flushing.iter().position(|f| f.0 == thread).expect("a thread that asked");
                self.flushing[i].1 -= 1;
                if self.flushing[i].1 == 0 {
                    self.flushing.remove(i);
                    woken.push_back(thread);
                }
            }
        }
    }

    pub(super) fn timer_due(&self) -> Option<Instant> {
        self.earliest(DiskQueue::timer_due)
    }

    /// The earliest of what the members answer. Asked before each event, and one member is the usual case.
    #[inline]
    fn earliest(&self, due: impl Fn(&DiskQueue<'a>) -> Option<Instant>) -> Option<Instant> {
        match &self.members[..] {
            [one] => due(one),
            all => all.iter().filter_map(due).min(),
        }
    }

    /// Answers whether limits let requests pass now.
    pub(super) fn timer(&mut self, now: Instant) -> bool {
        let is_due = |m: &&mut DiskQueue| m.timer_due().is_some_and(|at| at <= now);
        self.members.iter_mut().filter(is_due).fold(false, |pass, m| m.timer(now) | pass)
    }

    pub(super) fn control(&mut self, now: Instant, change: Control) -> std::result::Result<(), Refusal> {
        self.members.iter_mut().try_for_each(|m| m.control(now, change))
    }

    pub(super) fn exit_task(&mut self, now: Instant, task: TaskId) {
        self.members.iter_mut().for_each(|m| m.exit_task(now, task));
    }

    // ---- pools ---------------------------------------------------------------------------------------------------

    pub(super) fn is_congested(&self, sync: bool) -> bool {
        self.members.iter().any(|m| m.is_congested(sync))
    }

    pub(super) fn waiting(&self) -> usize {
        self.members.iter().map(DiskQueue::waiting).sum()
    }

    pub(super) fn pop_waiter(&mut self) -> Option<u32> {
        self.members.iter_mut().find_map(DiskQueue::pop_waiter)
    }

    /// Puts a thread, whose submission has just failed, at the end of the queue for a request of that kind.
    pub(super) fn wait(&mut self, thread: u32, sync: bool) {
        self.members[self.full].wait(thread, sync);
    }

    /// The thread is woken when writes are no longer congested; it sets itself a limit.
    pub(super) fn wait_for_congestion(&mut self, thread: u32) {
        let congested = self.members.iter().position(|m| m.is_congested(false));
        self.members[congested.unwrap_or(0)].wait_for_congestion(thread);
    }

    pub(super) fn end_wait_for_congestion(&mut self, thread: u32) {
        self.members.iter_mut().for_each(|m| m.end_wait_for_congestion(thread));
    }

    // ---- figures -------------------------------------------------------------------------------------------------

    /// How many disks have a queue of their own.
    pub(super) fn members(&self) -> u8 {
        u8::try_from(self.members.len()).expect("sets are small")
    }

    /// From now on these hear of everything.
    ///
    /// # Errors
    /// If there is more than one queue, and books are to be kept.
    pub(super) fn listen(
        &mut self,
        mut why: Option<why::Recorder>,
        journal: Option<Journal<'a>>,
    ) -> Result<()> {
        if why.is_some() && self.members.len() > 1 {
            return Err(SimError::ManyQueues);
        }
        for (i, member) in (0..).zip(&mut self.members) {
            member.listen(Tap::new(i, why.take(), journal.clone()));
        }
        Ok(())
    }

    pub(super) fn why(&mut self) -> Option<&mut why::Recorder> {
        self.members[0].tap.as_deref_mut()?.why.as_mut()
    }

    /// What the books say, if any were kept.
    pub(super) fn take_report(&mut self) -> Option<why::Report> {
        let why = self.members[0].tap.as_deref_mut()?.why.take()?;
        Some(why.report(self.trace_lost()))
    }

    /// Events that the elevators' traces have lost.
    pub(super) fn trace_lost(&self) -> u64 {
        self.members.iter().map(DiskQueue::trace_lost).sum()
    }

    /// A group's books: those of all members, added up.
    pub(super) fn group_stats(&self, group: GroupId) -> GroupStats {
        let mut sum = GroupStats::default();
        self.members.iter().for_each(|m| sum.add(m.group_stats(group)));
        sum
    }

    /// The figures until `now`: requests and work of all members, times as their mean, bytes as the clients asked for them.
    pub(super) fn stats(&self, now: Instant) -> DiskStats {
        self.combine(self.members.iter().map(|m| m.stats(now)).collect())
    }

    /// The figures at the end.
    pub(super) fn finish(mut self, now: Instant) -> DiskStats {
        let all = std::mem::take(&mut self.members).into_iter().map(|m| m.finish(now)).collect();
        self.combine(all)
    }

    fn combine(&self, mut all: Vec<DiskStats>) -> DiskStats {
        if all.len() == 1 {
            return all.remove(0);
        }
        let n = all.len() as u64;
        let mean = |of: fn(&DiskStats) -> Duration| all.iter().map(of).fold(Duration::ZERO, |a, b| a + b) / n;
        let sum = |of: fn(&DiskStats) -> u64| all.iter().map(of).sum();
        DiskStats {
            counters: Counters::sum(all.iter().map(|s| &s.counters)),
            busy: mean(|s| s.busy),
            idled: mean(|s| s.idled),
            issued: sum(|s| s.issued),
            merged: sum(|s| s.merged),
            read_bytes: sum(|s| s.read_bytes),
            // Every member has all of them.
            written_bytes: all[0].written_bytes,
        }
    }
}
