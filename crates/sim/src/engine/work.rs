//! What processes do on the processors of the multi-queue era, and what it costs
//! ([`Cores`](crate::host::Cores)).
//!
//! ```text
//!   a piece completes ─► TakeUp: complete, end the call, ask for the next ─► Prepare: think, submit ─► all prepared, or a batch
//!                                                                                                    │
//!                        the drive has it  ◄── insert, dispatch ◄── Submit: wait for the lock ◄──────┘
//! ```

use super::Machine;
use super::lane::Phase;
use super::processors::{Allowed, Habits, Processors, Work};
use crate::error::SimError;
use crate::event::Due;
use crate::host::{Cores, Host};
use crate::job::{Client, Job, JobFile};
use crate::metrics::{CpuBooks, Result};
use crate::rng::Rng;
use crate::why::Wait;

/// The processors of a host of the multi-queue era, with the clients of a job file on them.
pub(super) fn processors(jobs: &JobFile, host: &Host, seed: u64) -> Result<Option<Processors>> {
    if host.cores.is_none() {
        return Ok(None);
    }
    let cpus = jobs.cpus.unwrap_or(host.cpus);
    let of = |c: Client<'_>| Ok(Habits { allowed: allowed(c.job, c.clone, cpus)?, reaps: reaps(c.job) });
    let processes = jobs.clients().map(of).collect::<Result<_>>()?;
    Ok(Some(Processors::new(cpus, processes, Rng::new(seed, "host.work"))))
}

/// How many completions a job takes up at a time, at least and at most. Unless it says so, no more than it
/// waits for. The page cache has its own times.
//= fio-3.33 HOWTO "I/O depth", iodepth_batch_complete_min and iodepth_batch_complete_max
fn reaps(job: &Job) -> (u32, u32) {
    let least = if job.direct { job.iodepth_batch_complete_min.min(job.iodepth) } else { 1 };
    (least, job.iodepth_batch_complete.max(least))
}

/// The processors that a clone may use, one bit each; `None`: all.
fn allowed(job: &Job, clone: u32, cpus: u32) -> Result<Allowed> {
    let list = &job.cpus_allowed;
    if list.is_empty() {
        return Ok(None);
    }
    if let Some(cpu) = list.iter().find(|cpu| **cpu >= cpus) {
        let message = format!(
            "cpus_allowed names processor {cpu}, and the host has {cpus}, numbered from 0; raise fh_cpus=, or name others"
        );
        return Err(SimError::Job { job: job.name.clone(), message });
    }
    let mut set = vec![0; cpus.div_ceil(64) as usize];
    let mut add = |cpu: u32| set[cpu as usize / 64] |= 1_u64 << (cpu % 64);
    if job.cpus_split {
        add(list[clone as usize % list.len()]);
    } else {
        list.iter().copied().for_each(add);
    }
    Ok(Some(set.into_boxed_slice()))
}

impl Machine<'_> {
    const fn cores(&self) -> Option<&Cores> {
        self.host.cores.as_ref()
    }

    /// A lane's process has something more to do.
    #[inline]
    pub(super) fn add_work(&mut self, lane: u32, work: Work) {
        let process = self.lanes[lane as usize].client as usize;
        if matches!(work, Work::TakeUp(_) | Work::Retry(_)) {
            // What it needed is there; from now on it waits for its turn on the processor.
            self.why(|why| why.waits(lane, Wait::Cpu));
        }
        let Some(processors) = &mut self.processors else { return };
        if processors.add(process, work, self.clients[process].calling) {
            self.start_work(process);
        }
    }

    /// A process, which is on a processor, begins with the next thing that it has to do.
    fn start_work(&mut self, process: usize) {
        let Some((work, wakes)) = self.processors.as_mut().and_then(|p| p.next(process)) else { return };
        let mut spent = CpuBooks::default();
        let lane = work.lane();
        if wakes
            && let Some(cores) = self.cores()
            && !self.clients[process].per_call.polls
        {
            spent.complete = cores.wake;
        }
        match work {
            Work::Prepare(_) => {
                let l = &self.lanes[lane as usize];
                (spent.user, spent.scheduler) = (l.user, l.scheduler);
                spent.submit = l.system.saturating_sub(l.scheduler);
            }
            Work::TakeUp(_) => self.cost_of_completion(process, lane, &mut spent),
            Work::Pay(_) => spent.submit = self.lanes[lane as usize].pays,
            Work::Retry(_) | Work::Submit(_) => {}
        }
        if let (Some(cores), Some(processors)) = (&self.host.cores, &mut self.processors) {
            processors.spread(cores.spread_pct, &mut spent);
        }
        if matches!(work, Work::Prepare(_)) {
            // A call does not begin before the work that prepares it.
            let l = &mut self.lanes[lane as usize];
            l.inside = l.inside.min(spent.total());
        }
        self.begin_work(process, lane, spent);
    }

    #[inline]
    fn begin_work(&mut self, process: usize, lane: u32, spent: CpuBooks) {
        let Some(processors) = &mut self.processors else { return };
        let takes = processors.begin(process, spent);
        self.clock.after(takes, Due::CpuDone(lane));
    }

    /// What it costs to take note that a lane's requests have completed.
    fn cost_of_completion(&mut self, process: usize, lane: u32, spent: &mut CpuBooks) {
        let l = &self.lanes[lane as usize];
        let Some(cores) = self.host.cores.as_ref().filter(|_| matches!(l.phase, Phase::Direct | Phase::Map))
        else {
            return;
        };
        let disk = self.files.disk_of(l.call.file);
        let pieces = u64::from(self.disks.pieces(disk, l.call.len).max(1));
        let each = if self.clients[process].per_call.polls { cores.poll } else { cores.complete };
        spent.complete += each * pieces;
        if let Some(visit) = self.disks.lock_to_complete(self.clock.now, disk) {
            spent.lock_wait += visit.waits;
            spent.scheduler += visit.end.since(self.clock.now).saturating_sub(visit.waits);
        }
    }

    /// A process has done what it was at.
    pub(super) fn work_done(&mut self, process: usize) {
        let Some(processors) = &mut self.processors else { return };
        let (Some(work), spent) = processors.done(process) else { return };
        match work {
            Work::Prepare(lane) if self.is_direct(lane) => {
                if self.stage(process, lane) {
                    return;
                }
            }
            Work::Prepare(lane) | Work::Pay(lane) => self.paid_or_begins(lane),
            Work::TakeUp(lane) | Work::Retry(lane) => self.go_on(lane),
            Work::Submit(_) => self.begin_staged(process, spent),
        }
        self.next_turn(process);
    }

    fn next_turn(&mut self, process: usize) {
        let Some(processors) = &mut self.processors else { return };
        if let Some(next) = processors.turn(process, self.clients[process].calling) {
            self.start_work(next);
        }
        #[cfg(debug_assertions)]
        if let Some(processors) = &self.processors {
            processors.check();
        }
    }

    /// Whether a lane's call hands in requests of its own.
    fn is_direct(&self, lane: u32) -> bool {
        let l = &self.lanes[lane as usize];
        let job = &self.clients[l.client as usize].per_call;
        !job.is_null && !l.inside.is_zero() && job.is_direct && !l.through_cache
    }

    /// A call is prepared. Returns whether the process continues by submitting it, with others.
    fn stage(&mut self, process: usize, lane: u32) -> bool {
        let batch = self.clients[process].per_call.batch;
        let Some(processors) = &mut self.processors else { return false };
        if !processors.stage(process, lane, batch) {
            return false;
        }
        let mut spent = CpuBooks::default();
        // With `iodepth_batch` one system call submits several calls; each of them has paid for its
        // preparation only.
        if batch > 1
            && let Some(cores) = &self.host.cores
        {
            spent.submit = cores.call;
        }
        self.take_locks(process, &mut spent);
        if spent.total().is_zero() {
            self.begin_staged(process, spent);
            return false;
        }
        if let Some(processors) = &mut self.processors {
            processors.does(process, Work::Submit(lane));
        }
        self.begin_work(process, lane, spent);
        true
    }

    /// The process takes the lock of each disk that it has prepared calls for, one after the other.
    fn take_locks(&mut self, process: usize, spent: &mut CpuBooks) {
        if !self.disks.has_locks() {
            return;
        }
        let Some(processors) = &self.processors else { return };
        // A process with nothing else in flight submits a single request, which has a cost of its own under
        // the lock.
        let mut alone = u32::from(self.clients[process].calling == 0);
        let (lanes, files) = (&self.lanes, &self.files);
        let disk_of = |lane: &u32| files.disk_of(lanes[*lane as usize].call.file);
        let mut left = processors.staged(process);
        while let Some(disk) = left.first().map(disk_of) {
            let of_disk = left.iter().take_while(|lane| disk_of(lane) == disk);
            let pieces = |lane: &u32| self.disks.pieces(disk, lanes[*lane as usize].call.len);
            let (calls, requests) =
                of_disk.fold((0, 0), |(calls, sum), lane| (calls + 1, sum + pieces(lane)));
            left = &left[calls..];
            let at = self.clock.now + spent.lock_wait + spent.scheduler;
            if let Some(visit) = self.disks.lock_to_submit(at, disk, requests, alone) {
                spent.lock_wait += visit.waits;
                spent.scheduler += visit.end.since(at).saturating_sub(visit.waits);
            }
            alone = 0;
        }
    }

    /// The calls that a process has prepared begin, and their requests are handed in as one plug.
    fn begin_staged(&mut self, process: usize, spent: CpuBooks) {
        let Some(processors) = &mut self.processors else { return };
        let queue = processors.cpu_of(process);
        if let Some(lane) = processors.take_single(process) {
            return self.begin_prepared(lane, queue, spent);
        }
        let mut lanes = processors.take_staged(process);
        self.is_submitting = true;
        for &lane in &lanes {
            self.begin_prepared(lane, queue, spent);
        }
        self.is_submitting = false;
        self.wait_for_io();
        if let Some(processors) = &mut self.processors {
            lanes.clear();
            processors.return_staged(process, lanes);
        }
    }

    /// A call that was prepared begins, from a processor with that hardware queue.
    fn begin_prepared(&mut self, lane: u32, queue: u16, spent: CpuBooks) {
        let l = &mut self.lanes[lane as usize];
        l.inside += spent.total();
        l.batch.queue = queue;
        self.begin_call(lane);
    }
}
