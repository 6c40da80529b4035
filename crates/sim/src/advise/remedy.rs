//! Limits instead of a scheduler: what those who do not wait are held to, so that those who wait need not.
//!
//! Where no scheduler is the answer (the drive is best without one, or nothing beats the default), the jobs
//! that wait can still fare better: bulk jobs get an upper bound that keeps the drive below its
//! saturation. Limits work under any scheduler and under none, and cost no lock.
//!
//! ```text
//!   what the others moved, read and written, in a run without limit ─► four fifths, half, a quarter of that ─► each on the confirmation's seeds
//!       ─► the most satisfied load against the same scheduler without limit, if it is surely better
//! ```
//!
//! Example: a backup reads 3 GB/s beside a service that waits 350 us. Held to 2.4 GB/s, it leaves the drive
//! idle for a fifth of the time, and the service waits 90 us: a gain of 3.9 for a loss of 1.25.
//!
//! What it does not do: search for the best limit, which three levels bracket; or simulate `io.cost`, which
//! the advice names beside it.

use super::book::{Comparison, EQUAL};
use super::statistics::Finding;
use super::{Asked, Stopped, judged};
use crate::job::{Cgroup, JobFile, Kind, Setting};
use crate::metrics::{Outcome, rate};
use crate::satisfaction::Load;
use crate::{Scenario, simulate};
use std::num::NonZeroU64;

/// What the others may do, of what they did, in thousandths. Four fifths keep a queue short that saturation
/// makes long; half and a quarter are for drives whose writes disturb their reads even so.
const LEVELS: [u64; 3] = [800, 500, 250];

/// As many seeds as the shortest confirmation.
const SEEDS: usize = 6;

/// The runs that it takes.
pub(super) const RUNS: u64 = (LEVELS.len() * SEEDS) as u64;

/// The group that a limited run puts the others into.
const GROUP: &str = "fairhead-limited";

/// A limit, and what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// The candidate under which it was tried.
    pub candidate: usize,
    /// The jobs that are limited: indices into the file's jobs.
    pub jobs: Vec<usize>,
    /// The limit, in thousandths of what they moved without it.
    pub permille: u64,
    /// Bytes a second that they may read; none: they read nothing.
    pub rbps: Option<NonZeroU64>,
    /// Bytes a second that they may write; none: they write nothing.
    pub wbps: Option<NonZeroU64>,
    /// Against the same scheduler without the limit.
    pub against: Comparison,
}

impl Remedy {
    /// The names of the jobs that are limited, each once.
    #[must_use]
    pub fn names<'j>(&self, jobs: &'j JobFile) -> Vec<&'j str> {
        let mut names: Vec<&str> = self.jobs.iter().map(|&j| jobs.jobs[j].name.as_str()).collect();
        names.dedup();
        names
    }

    /// The limit in words: `2400 MB/s read, 2380 MB/s written`.
    #[must_use]
    pub fn words(&self) -> String {
        let part =
            |(bps, verb): (Option<NonZeroU64>, &str)| Some(format!("{} {verb}", megabytes(bps?.get())));
        let parts = [(self.rbps, "read"), (self.wbps, "written")].into_iter().filter_map(part);
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Bytes a second with three digits.
fn megabytes(bps: u64) -> String {
    match bps {
        ..10_000_000 => format!("{}.{:02} MB/s", bps / 1_000_000, bps / 10_000 % 100),
        10_000_000..100_000_000 => format!("{}.{} MB/s", bps / 1_000_000, bps / 100_000 % 10),
        _ => format!("{} MB/s", bps / 1_000_000),
    }
}

/// A limit that is tried.
#[derive(Clone, Debug)]
struct Limit {
    permille: u64,
    rbps: Option<NonZeroU64>,
    wbps: Option<NonZeroU64>,
}

impl Limit {
    /// The load with the limit.
    fn apply(&self, jobs: &JobFile, limited: &[usize]) -> JobFile {
        let mut jobs = jobs.clone();
        let settings = vec![Setting::Rbps(self.rbps), Setting::Wbps(self.wbps)];
        jobs.cgroups.push(Cgroup { path: GROUP.to_owned(), parent: 0, settings, stays: true });
        for &job in limited {
            jobs.jobs[job].cgroup = Some(GROUP.to_owned());
        }
        jobs
    }
}

/// The jobs that are limited: bulk jobs, if others are not, and the job file has no groups of its own.
fn limited(load: &Load) -> Vec<usize> {
    let is_bulk = |&j: &usize| load.parties[j].kind == Kind::Bulk;
    let bulk: Vec<usize> = (0..load.parties.len()).filter(is_bulk).collect();
    let applies = bulk.len() < load.parties.len() && load.jobs.cgroups.len() == 1;
    if applies { bulk } else { Vec::new() }
}

/// The limit under which the load is most satisfied, if it is surely more so than without one.
pub(super) fn find(asked: &Asked<'_>, candidate: usize, seeds: &[u64]) -> Result<Option<Remedy>, Stopped> {
    let (load, of) = (&asked.load, &asked.chosen.all[candidate]);
    let without = &asked.book.standings[candidate].fresh;
    let count = seeds.len().min(without.len()).min(SEEDS);
    let others = limited(load);
    if others.is_empty() || count == 0 {
        return Ok(None);
    }
    let limits = limits(&others, &asked.run(candidate, seeds[0])?);
    let name = |i: usize| {
        let (limit, seed) = (&limits[i / count], seeds[i % count]);
        format!("{}, limited to {} {seed}", of.name(), limit.permille)
    };
    let runs = asked.runs.each(limits.len() * count, name, |i| {
        let (limit, seed) = (&limits[i / count], seeds[i % count]);
        let jobs = limit.apply(&load.jobs, &others);
        let scenario = Scenario { jobs, ..asked.question.scenario(load, of, seed) };
        let run = judged(load, &asked.alone, &simulate(&scenario)?);
        let work = run.work;
        Ok((run, work))
    })?;
    let tried = limits.iter().zip(runs.chunks(count)).map(|(limit, runs)| Remedy {
        candidate,
        jobs: others.clone(),
        permille: limit.permille,
        rbps: limit.rbps,
        wbps: limit.wbps,
        against: asked.book.compare(runs, &without[..count]),
    });
    let helps = |r: &Remedy| r.against.load.finding(EQUAL) == Finding::Better;
    Ok(tried.filter(helps).max_by(|a, b| a.against.load.ratio.total_cmp(&b.against.load.ratio)))
}

/// The levels of what these jobs did.
fn limits(others: &[usize], free: &Outcome) -> Vec<Limit> {
    let clients = || free.clients.iter().filter(|c| others.contains(&c.job));
    let (read, written): (u64, u64) =
        clients().fold((0, 0), |(r, w), c| (r + c.read.bytes, w + c.write.bytes));
    let moved = [read, written].map(|bytes| rate(bytes, free.elapsed));
    let of = |permille: u64| {
        let [rbps, wbps] = moved.map(|bps| NonZeroU64::new(bps.saturating_mul(permille) / 1000));
        Limit { permille, rbps, wbps }
    };
    LEVELS.map(of).into_iter().filter(|l| l.rbps.is_some() || l.wbps.is_some()).collect()
}
