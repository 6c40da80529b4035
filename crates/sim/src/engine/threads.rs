//! Threads: what wakes them, and in which order.
//!
//! Threads are numbered: first the lanes of all clients, then those of the flusher. A wait ends with a
//! completion, with a request that is free again, or with a time that the thread had set itself:
//!
//! ```text
//!   completion ─► the queue runs ─┬─► owners of what completed ─► resume
//!                                 └─► those that wait for a request: in which order to the owners, the host says
//!   a time ─────► wake ───────────────► resume, or the next step of a lane that paused
//! ```

use super::Machine;
use super::lane::Phase;
use super::owner::Owner;
use super::processors::Work;
use fairhead_core::Tag;

impl Machine<'_> {
    pub(super) fn flusher_id(&self, i: usize) -> u32 {
        u32::try_from(self.lanes.len() + i).expect("threads are counted in 32 bits")
    }

    /// What a thread waited for has come.
    pub(super) fn resume(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        match self.lanes.get_mut(thread as usize) {
            Some(lane) => {
                lane.sleep_until = None;
                let client = lane.client as usize;
                self.clients[client].stats.cpu.switches += 1;
                if self.processors.is_some() {
                    self.add_work(thread, Work::TakeUp(thread));
                } else {
                    self.go_on(thread);
                }
            }
            None => self.resume_flusher(thread as usize - lanes),
        }
    }

    /// A time that a thread had set itself has come; unless something else came first.
    pub(super) fn wake(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        let lane = self.lanes.get(thread as usize);
        let (until, phase) = match lane {
            Some(lane) => (lane.sleep_until, Some(lane.phase)),
            None => (self.flushers.threads[thread as usize - lanes].sleep_until, None),
        };
        if until.is_none_or(|until| until > self.clock.now) {
            return;
        }
        if phase == Some(Phase::Pause) {
            self.lanes[thread as usize].sleep_until = None;
            self.next_step(thread);
        } else {
            self.disks.end_wait_for_congestion(thread);
            self.resume(thread);
        }
    }

    /// The interrupt handler: completes a request, runs the queue if that is its business, and only then
    /// wakes who waited.
    pub(super) fn complete(&mut self, member: usize, tag: Tag) {
        let woken = &mut self.woken;
        self.disks.complete(self.clock.now, member, tag, &mut self.owners, woken);
        // Most requests are of one call, and nothing else waits for them.
        if let [Owner::Lane(lane)] = self.owners[..]
            && woken.is_empty()
        {
            let is_done = self.lanes[lane as usize].piece_done();
            return self.run_after_completion(member, is_done.then_some(lane));
        }
        for owner in &self.owners {
            match *owner {
                Owner::None | Owner::Shared(_) => {}
                Owner::Lane(lane) => {
                    if self.lanes[lane as usize].piece_done() {
                        woken.push_back(lane);
                    }
                }
                Owner::Read { file, first, count } => self.cache.read_done(file, first, count, woken),
                Owner::Write { file, first, count, .. } => {
                    self.cache.stats.pages_written += u64::from(count);
                    self.cache.write_done(file, first, count, woken);
                }
            }
        }
        self.run_after_completion(member, None);
    }

    /// Resumes the lane whose call has ended, and who else waited for that.
    #[inline]
    fn resume_owners(&mut self, lane: Option<u32>) {
        if let Some(lane) = lane {
            self.resume(lane);
        }
        while let Some(thread) = self.woken.pop_front() {
            self.resume(thread);
        }
    }

    /// Runs a queue after a completion, if that is its business. Then the owners of what has completed are
    /// resumed, and threads that wait for requests.
    ///
    /// Where processors are modelled one by one, a thread that waits for a request is woken after the owner
    /// of the completed one, and only then looks whether there is a request: the owner may have taken it for
    /// its next call. Elsewhere it gets the request at once.
    fn run_after_completion(&mut self, member: usize, owner: Option<u32>) {
        self.disks.run_if_wanted(&mut self.clock, member);
        if self.disks.queue(member).waiting() == 0 {
            return self.resume_owners(owner);
        }
        if self.processors.is_some() {
            let can_wake = self.disks.queue(member).can_wake();
            let waiters: Vec<u32> =
                (0..can_wake).map_while(|_| self.disks.queue_mut(member).pop_waiter()).collect();
            let (first, last): (Vec<u32>, Vec<u32>) =
                waiters.into_iter().partition(|&thread| owner.is_some_and(|o| self.runs_before(thread, o)));
            first.into_iter().for_each(|thread| self.retry(thread));
            self.resume_owners(owner);
            last.into_iter().for_each(|thread| self.retry(thread));
            return;
        }
        // Each that waits for a request gets one chance: there may be fewer free ones than it needs.
        for _ in 0..self.disks.queue(member).waiting() {
            let Some(thread) = self.disks.queue_mut(member).pop_waiter() else { break };
            self.grant_batch(thread);
            // The first in line takes what is free before the next one is looked at.
            if (thread as usize) < self.lanes.len() { self.go_on(thread) } else { self.resume(thread) }
        }
        self.resume_owners(owner);
    }

    /// Whether of two threads that are woken at one instant the first comes before the other on a processor.
    fn runs_before(&self, thread: u32, other: u32) -> bool {
        let (Some(a), Some(b)) = (self.lanes.get(thread as usize), self.lanes.get(other as usize)) else {
            return true;
        };
        self.processors.as_ref().is_some_and(|p| p.had(a.client as usize) < p.had(b.client as usize))
    }

    /// A thread that waits for a request is woken, and tries again when it is on a processor.
    fn retry(&mut self, thread: u32) {
        self.grant_batch(thread);
        match self.lanes.get(thread as usize) {
            Some(lane) => {
                self.clients[lane.client as usize].stats.cpu.switches += 1;
                self.add_work(thread, Work::Retry(thread));
            }
            None => self.resume(thread),
        }
    }

    fn grant_batch(&mut self, thread: u32) {
        let lanes = self.lanes.len();
        let batch = match self.lanes.get_mut(thread as usize) {
            Some(lane) => &mut lane.batch,
            None => &mut self.flushers.threads[thread as usize - lanes].batch,
        };
        *batch = batch.granted(self.clock.now);
    }
}
