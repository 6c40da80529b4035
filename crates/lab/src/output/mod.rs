//! Answers, written: a table, JSON, fio's json+ or CSV behind one trait, and the page.
//!
//! All of them are functions of the [`Report`], which holds no time of day and no name of a machine: the same
//! run gives the same bytes.

pub mod advice;
pub mod arena;
pub mod books;
pub mod columns;
pub mod csv;
mod fio;
mod groups;
pub mod human;
pub mod json;
mod missed;
pub mod page;
pub mod so_far;
pub mod table;
pub mod text;
mod watch;
mod why;

pub use csv::Csv;
pub use fio::{JsonPlus, SAMPLE};
pub use human::Human;
pub use json::Json;
pub use table::{mib, time};

use fairhead_core::Duration;
use fairhead_sim::Outcome;
use fairhead_sim::job::{Job, JobFile};
use fairhead_sim::metrics::{
    ClientStats, CpuStats, DEPTHS, Frames, OpStats, Replayed, StartUp, Steadiness, Together, rate,
};

use crate::Plan;

/// A finished run: what was asked, and what came out, scheduler by scheduler.
pub struct Report<'a> {
    /// What was asked.
    pub plan: &'a Plan,
    /// One outcome for each of the plan's schedulers, in order.
    pub outcomes: &'a [Outcome],
    /// The account of the plan's clients, for each outcome; empty without `--why`.
    pub why: &'a [fairhead_sim::why::Report],
}

/// A way to write a report.
pub trait Export {
    /// The report as text, with a line break at its end.
    fn render(&self, report: &Report<'_>) -> String;
}

impl Report<'_> {
    fn jobs(&self) -> &JobFile {
        &self.plan.jobs
    }

    /// How many disks have figures of their own: none if there is one.
    fn disks(&self) -> usize {
        self.outcomes.first().map_or(0, |o| o.disks.len())
    }
}

/// Several clients' figures as one.
pub struct Sum {
    /// How many clients there are.
    pub clients: usize,
    /// Their reads.
    pub read: OpStats,
    /// Their writes.
    pub write: OpStats,
    /// Their trims.
    pub trim: OpStats,
    /// Their fsyncs and fdatasyncs.
    pub sync: OpStats,
    /// Their fsyncs and fdatasyncs without those of `end_fsync` and `fsync_on_close`, as fio measures them.
    pub sync_of_load: OpStats,
    /// The number of fsyncs in `sync_of_load`, without fdatasyncs.
    pub fsyncs: u64,
    /// Their start-ups, one by one.
    pub startups: Vec<StartUp>,
    /// What players among them showed.
    pub frames: Option<Frames>,
    /// How the tasks of traces among them were replayed.
    pub replayed: Option<Replayed>,
    /// What they moved together while all jobs ran; nothing if one of them did not, or there was no such
    /// time.
    pub together: Option<Together>,
    /// What came of the `steadystate` of the first that has one.
    pub steady: Option<Steadiness>,
    /// The processor time that they used.
    pub cpu: CpuStats,
    /// How many calls began at which depth.
    pub depths: [u64; DEPTHS],
    /// What they moved over the longest client's time, in bytes per second, by direction: rates over
    /// different spans are not added.
    //= fio-3.33 group_reporting, seen
    pub read_rate: u64,
    /// As `read_rate`, of writes.
    pub write_rate: u64,
    /// As `read_rate`, of trims.
    pub trim_rate: u64,
    /// The longest client's.
    pub elapsed: Duration,
    /// The slowest client's rate over the fastest's, in thousandths; with two clients or more.
    pub fairness_permille: Option<u64>,
}

impl Sum {
    /// Adds up these clients.
    pub fn of<'c>(clients: impl Iterator<Item = &'c ClientStats>) -> Self {
        let mut sum = Self {
            clients: 0,
            read: OpStats::default(),
            write: OpStats::default(),
            trim: OpStats::default(),
            sync: OpStats::default(),
            sync_of_load: OpStats::default(),
            fsyncs: 0,
            startups: Vec::new(),
            frames: None,
            replayed: None,
            together: None,
            steady: None,
            cpu: CpuStats::default(),
            depths: [0; DEPTHS],
            read_rate: 0,
            write_rate: 0,
            trim_rate: 0,
            elapsed: Duration::ZERO,
            fairness_permille: None,
        };
        let (mut min, mut max) = (u64::MAX, 0);
        for c in clients {
            sum.clients += 1;
            sum.read.add(&c.read);
            sum.write.add(&c.write);
            sum.trim.add(&c.trim);
            sum.sync.add(&c.sync);
            sum.sync_of_load.add(&c.sync_of_load);
            sum.fsyncs += c.fsyncs;
            sum.startups.extend(&c.startups);
            if let Some(f) = c.frames {
                let before = sum.frames.unwrap_or(Frames { shown: 0, dropped: 0 });
                sum.frames =
                    Some(Frames { shown: before.shown + f.shown, dropped: before.dropped + f.dropped });
            }
            if let Some(r) = &c.replayed {
                sum.replayed.get_or_insert_default().add(r);
            }
            sum.together = match (sum.together, c.together) {
                (Some(a), Some(b)) if a.span == b.span => {
                    Some(Together { span: a.span, bytes: a.bytes + b.bytes })
                }
                (None, first) if sum.clients == 1 => first,
                _ => None,
            };
            if sum.steady.is_none() {
                sum.steady.clone_from(&c.steady);
            }
            sum.cpu.user += c.cpu.user;
            sum.cpu.system += c.cpu.system;
            sum.cpu.switches += c.cpu.switches;
            sum.depths.iter_mut().zip(c.depths).for_each(|(sum, n)| *sum += n);
            sum.elapsed = sum.elapsed.max(c.elapsed);
            min = min.min(c.bandwidth());
            max = max.max(c.bandwidth());
        }
        sum.read_rate = rate(sum.read.bytes, sum.elapsed);
        sum.write_rate = rate(sum.write.bytes, sum.elapsed);
        sum.trim_rate = rate(sum.trim.bytes, sum.elapsed);
        if sum.clients > 1 && max > 0 {
            sum.fairness_permille = Some(min.saturating_mul(1000) / max);
        }
        sum
    }

    /// Reads, writes and trims together.
    pub fn all(&self) -> OpStats {
        let mut all = self.read.clone();
        all.add(&self.write);
        all.add(&self.trim);
        all
    }
}

/// The clients that fio would report as one: a client, or a group under `group_reporting`.
pub struct Unit<'a> {
    /// The job of the first of them.
    pub job: &'a Job,
    /// Indices into [`Outcome::clients`].
    pub clients: Vec<usize>,
}

/// fio's rule: consecutive clients with `group_reporting` in the same group are one entry, under the name of
/// the first.
//= fio-3.33 stat.c grouping of thread statistics
pub fn units(jobs: &JobFile) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    let mut last_group = None;
    for (i, client) in jobs.clients().enumerate() {
        let joins = client.job.group_reporting && last_group == Some(client.job.group);
        last_group = Some(client.job.group);
        match units.last_mut() {
            Some(unit) if joins => unit.clients.push(i),
            _ => units.push(Unit { job: client.job, clients: vec![i] }),
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_sim::job::parse;

    #[test]
    fn clients_are_reported_as_fio_does() {
        let text = "[a]\nsize=1g\nnumjobs=2\n[b]\nsize=1g\nnumjobs=3\ngroup_reporting\nnew_group\n[c]\nsize=1g\nstonewall\n";
        let file = parse(text, "x").unwrap();
        let got: Vec<_> = units(&file).iter().map(|u| (u.job.name.clone(), u.clients.clone())).collect();
        let want = [("a", vec![0]), ("a", vec![1]), ("b", vec![2, 3, 4]), ("c", vec![5])];
        assert_eq!(got, want.map(|(n, c)| (n.to_owned(), c)));
    }
}
