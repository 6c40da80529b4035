//! When clients start and end: waves behind stone walls, jobs that wait for others, `exitall`.
//!
//! ```text
//!   wave 0: [a] [b]  ── stonewall ──  wave 1: [c] [d, wait_for=c]
//!
//!   a ─────────┐                        c ──────┐
//!   b ──────┐  └─ all have ended: wave 1        └─ d
//! ```
//
//= fio-3.33 HOWTO "stonewall", "wait_for", "exitall", "exit_what", "startdelay"

use super::Machine;
use super::client::Client;
use super::phase::Phase;
use super::steer::Share;
use crate::event::Due;
use crate::job::{ExitWhat, Job, JobFile};
use crate::metrics::Together;
use crate::rng::Rng;
use crate::why::Doing;
use fairhead_core::{Duration, Instant};

/// The wave that runs.
#[derive(Debug)]
pub(super) struct Waves {
    /// How many waves were before it.
    pub(super) number: u32,
    /// Its clients that have not ended, and how many of them wait for a job to end before they start.
    clients: u32,
    waiting: u32,
    /// Its clients that have not ended, by job.
    jobs_left: Vec<u32>,
    /// When all of its jobs have started, as long as none has ended; none if there is one job only.
    pub(super) together_from: Option<Instant>,
    /// A job has `exitall`: the first client to end ends all of its reporting group.
    pub(super) exit_all: bool,
    /// No `exit_what=all` has ended all waves.
    has_more: bool,
    /// The time between two starts.
    gaps: Rng,
}

impl Waves {
    /// Before the first wave.
    pub(super) fn new(jobs: &JobFile, seed: u64) -> Self {
        Self {
            number: 0,
            clients: 0,
            waiting: 0,
            jobs_left: vec![0; jobs.jobs.len()],
            together_from: None,
            exit_all: jobs.jobs.iter().any(|j| j.exitall),
            has_more: true,
            gaps: Rng::new(seed, "host.starts"),
        }
    }
}

impl Machine<'_> {
    /// Starts the clients of the current wave, one after the other; skips waves without any.
    pub(super) fn start_wave(&mut self) {
        if let (Some(interval), true) = (self.series.interval, self.waves.number == 0) {
            self.clock.after(interval, Due::Interval);
        }
        let mut order: Vec<usize> =
            (0..self.clients.len()).filter(|&i| self.clients[i].job.wave == self.waves.number).collect();
        if self.host.starts_reversed {
            order.reverse();
        }
        let mut gap = Duration::ZERO;
        for i in order {
            if !self.waves.has_more {
                continue;
            }
            let client = &mut self.clients[i];
            self.waves.clients += 1;
            self.waves.jobs_left[client.stats.job] += 1;
            client.waits = client.job.wait_for.is_some();
            self.waves.waiting += u32::from(client.waits);
            if !client.waits {
                self.start_client(i, &mut gap);
            }
        }
        self.start_waiting();
        self.ended |= self.waves.clients == 0;
        let mine = || self.clients.iter().filter(|c| c.job.wave == self.waves.number);
        // "Together" is what clients move while all of the wave run; with one job, or jobs that wait for
        // others, there is no such time.
        let is_alone =
            self.waves.jobs_left.iter().filter(|left| **left > 0).count() < 2 || mine().any(|c| c.waits);
        self.waves.together_from = mine().map(|c| c.started + c.job.ramp_time).max().filter(|_| !is_alone);
    }

    /// Starts the clients that wait for a job of which all clients have ended.
    fn start_waiting(&mut self) {
        if self.waves.waiting == 0 {
            return;
        }
        let mut gap = Duration::ZERO;
        for i in 0..self.clients.len() {
            if !self.clients[i].waits {
                continue;
            }
            let name = self.clients[i].job.wait_for.as_ref();
            let runs = |c: &Client| c.lanes > 0 && Some(&c.job.name) == name;
            if !self.clients[..i].iter().any(runs) {
                self.start_client(i, &mut gap);
            }
        }
    }

    /// Starts a client, `gap` after those before it, and lengthens the gap for the next.
    fn start_client(&mut self, i: usize, gap: &mut Duration) {
        let client = &mut self.clients[i];
        self.waves.waiting -= u32::from(client.waits);
        // fio counts startdelay from its own start, also behind a stone wall.
        let delayed = Instant::EPOCH + client.job.startdelay;
        client.start(delayed.max(self.clock.now + client.job.wave_delay) + *gap);
        //= docs/reference/hosts.md#start-gap
        if client.script.traced().is_none() {
            *gap += self.host.start_gap / 2 + self.waves.gaps.exponential(self.host.start_gap / 2);
        }
        let (started, first, count) = (client.started, client.first_lane, client.all_lanes);
        let counts_from = client.counts_from();
        self.why(|why| why.counts_from(i, counts_from));
        (first..first + count).for_each(|lane| self.pause(lane, started));
        self.prepare_cache(i);
    }

    /// The first job of a wave has ended: what was moved while all ran is known.
    fn end_together(&mut self) {
        let Some(from) = self.waves.together_from.take().filter(|from| self.clock.now > *from) else {
            return;
        };
        let span = self.clock.now.since(from);
        for client in self.clients.iter_mut().filter(|c| c.job.wave == self.waves.number) {
            client.stats.together = Some(Together { span, bytes: client.together });
        }
    }

    /// A lane has nothing more to do. The last of a client ends it, and the last client of a wave begins the
    /// next.
    pub(super) fn end_lane(&mut self, lane: u32) {
        self.lanes[lane as usize].phase = Phase::Ended;
        self.why(|why| why.does(lane, Doing::Ended));
        let index = self.lanes[lane as usize].client as usize;
        let client = &mut self.clients[index];
        client.lanes -= 1;
        if client.lanes > 0 {
            return;
        }
        client.stats.elapsed = self.clock.now.saturating_since(client.counts_from());
        client.share.iter_mut().for_each(Share::leave);
        let (group, job, task) = (client.group, client.stats.job, client.task);
        self.waves.jobs_left[job] -= 1;
        if self.waves.jobs_left[job] == 0 {
            self.end_together();
        }
        // After the figures: what the scheduler does about the exit is not the client's time any more.
        self.disks.exit_task(self.clock.now, task);
        self.leave_group(group);
        self.wake_flow(index);
        self.start_waiting();
        self.waves.clients -= 1;
        if self.waves.clients == 0 {
            if self.waves.exit_all && self.clients[index].job.exit_what == ExitWhat::All {
                self.waves.has_more = false;
            }
            if self.waves.has_more {
                self.waves.number += 1;
                self.start_wave();
            } else {
                self.ended = true;
            }
        // A client that was stopped by another's end must not stop others in turn.
        } else if self.waves.exit_all && !self.clients[index].stopped {
            self.stop_group(index);
        }
        self.disks.run_all_if_wanted(&mut self.clock);
    }

    /// Ends all clients that `exit_what` means, those of a client's reporting group if it says nothing: at
    /// once those that sleep, after their call those that do not.
    //= fio-3.33 HOWTO "exitall", "exit_what"; which jobs end was seen
    pub(super) fn stop_group(&mut self, of: usize) {
        let Job { group, exit_what, .. } = self.clients[of].job;
        self.waves.has_more &= exit_what != ExitWhat::All;
        for i in 0..self.clients.len() {
            if self.clients[i].job.group == group || exit_what != ExitWhat::Group {
                self.stop_client(i);
            }
        }
    }

    /// Ends a client: at once if it sleeps, after its call if not. One of another wave, or that has ended,
    /// stays as it is.
    pub(super) fn stop_client(&mut self, i: usize) {
        let client = &mut self.clients[i];
        if client.job.wave != self.waves.number || client.lanes == 0 {
            return;
        }
        client.stopped = true;
        if client.waits {
            self.waves.waiting -= 1;
            client.start(self.clock.now);
        }
        client.started = client.started.min(self.clock.now);
        let counts_from = client.counts_from();
        self.why(|why| why.counts_from(i, counts_from));
        self.wake_paused(i);
    }
}
