//! The end of a run: what all parts of the machine have counted becomes the outcome.

use super::disks::{self, Disks};
use super::processors::Processors;
use super::{Machine, Scenario, files, groups_kept};
use crate::metrics::{DiskOutcome, DiskPoint, DiskStats, Outcome, Result};
use crate::why;
use fairhead_core::Instant;

impl Machine<'_> {
    /// The run is over: its figures, and what the books say if any were kept.
    pub(super) fn finish(mut self, scenario: &Scenario) -> Result<(Outcome, Option<why::Report>)> {
        let (now, lost) = (self.clock.now, self.disks.trace_lost());
        self.journal(|journal| journal.finish(now, lost));
        let report = self.disks.take_report();
        if let Some(client) = self.disk_full {
            let (job, capacity) =
                (&self.clients[client as usize].job, self.files.disk_bytes(client as usize) / 512);
            return Err(files::no_space(job, capacity, capacity));
        }
        if self.failed.is_none() {
            self.check_traces();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        for client in self.clients.iter_mut().filter(|c| c.lanes > 0 && c.job.wave <= self.waves.number) {
            client.stats.elapsed = self.clock.now.saturating_since(client.counts_from());
        }
        for replay in std::mem::take(&mut self.replays).into_iter().flatten() {
            let (client, times) = replay.into_times(self.clock.now);
            self.clients[client].stats.startups = times;
        }
        self.cache.stats.dirty_at_end = u64::from(self.cache.dirty + self.cache.writeback);
        let watch = self.take_samples();
        let mut notes = scenario.jobs.notes.clone();
        notes.append(&mut self.groups.notes);
        notes.extend(self.clients.iter_mut().filter_map(|c| c.note.take()));
        self.end_of_looking(&mut notes);
        self.end_traces(&scenario.scheduler, &mut notes);
        let groups = self.groups.outcomes(|g| self.disks.group_stats(g));
        let unseen = self.disks.unseen();
        let interval = self.series.interval;
        let (series, disk_series, each) = self.series.into_points();
        let (disk, disks) = disk_figures(self.disks, self.clock.now, each);
        let cpus = scenario.jobs.cpus.unwrap_or(self.host.cpus);
        let books = self.processors.as_ref().map(Processors::books);
        let outcome = Outcome {
            groups_not_kept: self.groups.not_kept(groups_kept(&scenario.config)),
            groups,
            watch,
            scheduler: scenario.scheduler.clone(),
            seed: scenario.seed,
            elapsed: self.clock.now.since(Instant::EPOCH),
            disk,
            disks,
            clients: self.clients.into_iter().map(|c| c.into_stats(self.clock.now)).collect(),
            interval,
            series,
            disk_series,
            cache: self.cache.stats,
            cpu_busy: books.map_or_else(|| self.cpus.count(self.clock.now), |books| books.total()),
            cpu: books.unwrap_or_default(),
            cpus,
            events: self.clock.handled.saturating_add_signed(unseen),
            notes,
        };
        Ok((outcome, report))
    }
}

/// What the disks did: all together, and one by one if there are several.
fn disk_figures(
    disks: Disks<'_>,
    now: Instant,
    series: Vec<Vec<DiskPoint>>,
) -> (DiskStats, Vec<DiskOutcome>) {
    let done = disks.finish(now);
    let stats: Vec<DiskStats> = done.iter().map(|d| d.stats.clone()).collect();
    let mut series = series.into_iter();
    let one = |disks::Done { label, scheduler, stats }| DiskOutcome {
        label,
        scheduler,
        stats,
        series: series.next().unwrap_or_default(),
    };
    let several = if done.len() > 1 { done.into_iter().map(one).collect() } else { Vec::new() };
    (disks::together(&stats), several)
}
