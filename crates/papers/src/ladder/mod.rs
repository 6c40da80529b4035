//! What each patch of BFQ buys: its switches turned on one by one, and one scenario for each.
//!
//! BFQ's v8 series of 2016 came as patches, each with a claim. Here every patch is a switch of one scheduler,
//! so a claim is a comparison of two runs that differ in nothing else.
//!
//! ```text
//!   ladder(job)       bfq-v0 ─► + hierarchy ─► + queue_merge ─► … ─► + ncq_random ─► + injection ─► … = all
//!   scenario(switch)  v8 without it | v8, on a load and a disk chosen for its claim
//! ```
//!
//! The [`ladder`](rungs) answers "what do the heuristics do to *my* job": on most jobs most rungs do nothing.
//! A [`Scenario`] answers "does it do what its description says": the load that the patch was written for,
//! one figure, and how much better it must be at the least. Claims were written down from the descriptions
//! before the first run, and are not fitted to it; where one does not hold the scenario says so, and stays.
//!
//! Example: *queue_merge*. Five readers each read 16 KiB and skip 64 KiB, which together is one sequential
//! stream. Claimed: nine tenths of what one sequential reader gets, and half as much again as without it.
//!
//! Scenarios of the v8 series run without the later features (injection, wakers, …), which would mask some of
//! them; those of later features run with everything else on.
//
//= bfq v8 series of 2016, 22 patches
//= docs/reference/bfq.md#3-the-v8-series, docs/reference/bfq.md#4-later-additions

mod scenarios;

pub use scenarios::SCENARIOS;

use fairhead_core::Duration;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::Scenario as Run;
use fairhead_sim::job::{self, Program};
use fairhead_sim::metrics::{ClientStats, Outcome, Result, StartUp, rate};
use fairhead_sim::{Host, simulate, why};

/// A switch of BFQ's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its tunable.
    pub name: &'static str,
    /// The tunable's value when it is on; off is 0.
    pub on: u64,
    /// Which patch of the v8 series it is; none: it came later.
    pub patch: Option<u8>,
    /// The promise of the feature, in a few words.
    pub about: &'static str,
}

const fn v8(patch: u8, name: &'static str, about: &'static str) -> Switch {
    Switch { name, on: 1, patch: Some(patch), about }
}

const fn later(name: &'static str, on: u64, about: &'static str) -> Switch {
    Switch { name, on, patch: None, about }
}

/// All switches, in the order of the patches.
pub const SWITCHES: &[Switch] = &[
    v8(8, "hierarchy", "shares between groups, not only between processes"),
    v8(9, "queue_merge", "processes that read one stream by turns share a queue"),
    v8(10, "asymmetric_idling", "no idling for fairness where all are to get the same"),
    v8(11, "bursts", "many processes that begin at once are not taken for an application"),
    v8(14, "throughput_boost", "budgets that grow by factors; no idling for who thinks for long"),
    v8(15, "rate_estimator", "the peak rate is what was served, not what a queue swallowed"),
    v8(16, "fair_writes", "slow processes pay for time, writes for what they cost others"),
    v8(17, "interactive", "applications start quickly beside heavy I/O"),
    v8(18, "soft_realtime", "films play without a hitch beside heavy I/O"),
    v8(19, "ncq_latency", "the same on drives that queue requests"),
    v8(20, "pool_limits", "writers leave requests for others to have"),
    v8(21, "ncq_flash", "no idling for throughput on flash that queues"),
    v8(22, "ncq_random", "random readers are not idled for on disks that queue"),
    later("wr_max_service", 120_000, "who reads a lot while raised copies a file, and is raised no longer"),
    later("injection", 1, "others are served while the disk idles"),
    later("wakers", 1, "who wakes whom is served in the other's turn"),
    later("stable_merge", 1, "processes of one task share a queue"),
    later("actuators", 1, "every arm of a disk has work"),
    later("ncq_protection", 1, "a drive that passes over a raised request gets no others"),
    later("streams", 1, "who reads on and on is not taken for a program that starts"),
];

/// The switch of that name.
#[must_use]
pub fn switch(name: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|s| s.name == name)
}

/// A step of a ladder.
#[derive(Clone, Debug)]
pub struct Rung {
    /// The name of the step.
    pub name: String,
    /// BFQ as of then.
    pub config: AnyConfig,
}

/// BFQ with these switches on and no others, and with its rules repaired, as `bfq-v0` and `bfq-v8` have them.
fn bfq(on: impl Fn(&Switch) -> bool, low_latency: bool) -> AnyConfig {
    let mut config = (preset("bfq").expect("a built-in scheduler").config)().live();
    for s in SWITCHES {
        config.set(s.name, if on(s) { s.on } else { 0 }).expect("a switch of bfq");
    }
    config.set("low_latency", u64::from(low_latency)).expect("a switch of bfq");
    config
}

/// From `bfq-v0` to all switches on, which is `bfq` in live engines: each rung has one switch more.
#[must_use]
pub fn rungs() -> Vec<Rung> {
    let position = |name| SWITCHES.iter().position(|s| s.name == name).expect("a switch");
    let raising = position("interactive");
    let mut rungs =
        vec![Rung { name: "bfq-v0".to_owned(), config: (preset("bfq-v0").expect("built in").config)() }];
    for (i, s) in SWITCHES.iter().enumerate() {
        let config = bfq(|t| position(t.name) <= i, i >= raising);
        rungs.push(Rung { name: format!("+ {}", s.name), config });
    }
    rungs
}

/// BFQ with all switches on, and without each of them.
#[must_use]
pub fn without_each() -> Vec<Rung> {
    let mut rungs = vec![Rung { name: "all".to_owned(), config: bfq(|_| true, true) }];
    rungs.extend(
        SWITCHES
            .iter()
            .map(|s| Rung { name: format!("- {}", s.name), config: bfq(|t| t.name != s.name, true) }),
    );
    rungs
}

/// One switch, on top of nothing and on top of everything else.
#[must_use]
pub fn only(s: &Switch) -> Vec<Rung> {
    let rung = |name: String, config| Rung { name, config };
    vec![
        rung("bfq-v0".to_owned(), bfq(|_| false, false)),
        rung(format!("bfq-v0 + {}", s.name), bfq(|t| t.name == s.name, true)),
        rung(format!("all - {}", s.name), bfq(|t| t.name != s.name, true)),
        rung("all".to_owned(), bfq(|_| true, true)),
    ]
}

/// The job that waits while the others make throughput: one that starts an application, or plays a film, or
/// else the last of the file. Its index.
#[must_use]
pub fn foreground(jobs: &job::JobFile) -> usize {
    let find = |wanted: fn(Program) -> bool| jobs.jobs.iter().position(|j| j.program.is_some_and(wanted));
    find(|p| matches!(p, Program::StartUp(_)))
        .or_else(|| find(|p| matches!(p, Program::Player { .. })))
        .unwrap_or(jobs.jobs.len().saturating_sub(1))
}

/// One figure of a run, in whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean start-up time of the job's applications, in ms. Less is better.
    StartUpMs(&'static str),
    /// Frames that the job's film dropped. Less is better.
    DroppedFrames(&'static str),
    /// The throughput of the disk, in KiB/s. More is better.
    DiskKiBps,
    /// Calls per second of the job, in thousandths. More is better.
    MilliIops(&'static str),
    /// The job's share of all that clients moved, in thousandths. More is better.
    SharePermille(&'static str),
    /// How far the scheduler's estimate of the peak rate is off the disk rate of the reference run, in
    /// thousandths of that. Less is better.
    RateErrorPermille,
}

impl Measure {
    /// Whether more of it is better.
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::DiskKiBps | Self::MilliIops(_) | Self::SharePermille(_))
    }

    /// Returns the measure with its unit.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::StartUpMs(job) => format!("start-up of {job}, ms"),
            Self::DroppedFrames(job) => format!("dropped frames of {job}"),
            Self::DiskKiBps => "disk throughput, KiB/s".to_owned(),
            Self::MilliIops(job) => format!("calls of {job} per 1000 s"),
            Self::SharePermille(job) => format!("share of {job}, thousandths"),
            Self::RateErrorPermille => "error of the peak rate, thousandths".to_owned(),
        }
    }

    fn of(self, o: &Outcome, peak_rate: Option<u64>, reference: u64) -> u64 {
        let clients = |job: &'static str| o.clients.iter().filter(move |c| c.name == job);
        match self {
            Self::StartUpMs(job) => {
                let all = clients(job).flat_map(|c| c.startups.iter().copied());
                StartUp::mean(all).map_or(u64::MAX, |s| s.took.as_ms())
            }
            Self::DroppedFrames(job) => clients(job).filter_map(|c| c.frames).map(|f| f.dropped).sum(),
            Self::DiskKiBps => {
                let c = &o.disk.counters;
                rate(c.bytes_read + c.bytes_written, o.elapsed) / 1024
            }
            Self::MilliIops(job) => clients(job).map(ClientStats::milli_iops).sum(),
            Self::SharePermille(job) => {
                let all: u64 = o.clients.iter().map(ClientStats::bytes).sum();
                let mine: u64 = clients(job).map(ClientStats::bytes).sum();
                mine * 1000 / all.max(1)
            }
            // From 2^-16 sectors per us to KiB/s; the reference is a disk rate.
            Self::RateErrorPermille => {
                let kib = (peak_rate.unwrap_or(0) * 1_000_000 / 2) >> 16;
                kib.abs_diff(reference) * 1000 / reference.max(1)
            }
        }
    }
}

/// A load on which a switch has to show what it is for.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The switch.
    pub switch: &'static str,
    /// The claim of its description, for this load.
    pub claim: &'static str,
    /// The load, as a job file.
    pub jobs: &'static str,
    /// The disk; the host is that of its time.
    pub disk: &'static str,
    /// Whether weights are raised: off where pure shares or throughput are in question.
    pub low_latency: bool,
    /// The figure in question.
    pub measure: Measure,
    /// With the switch it is better by at least this factor, in percent.
    pub factor_pct: u64,
    /// What the figure is compared with besides: another load under the same scheduler with the switch on,
    /// and how far from that one's figure it may be at the most, in percent of it. For
    /// [`Measure::RateErrorPermille`] the reference is a disk rate, and the bound is one of the error itself.
    pub reference: Option<(&'static str, u64)>,
    /// Why the claim does not hold here, if it does not.
    pub miss: Option<&'static str>,
}

/// The result of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The figure without the switch.
    pub without: u64,
    /// The figure with it.
    pub with: u64,
    /// The figure of the reference, if there is one.
    pub reference: Option<u64>,
    /// Whether it is better by the claimed factor.
    pub is_better: bool,
    /// Whether it is as near to the reference as claimed.
    pub is_near: bool,
}

impl Verdict {
    /// Whether all of the claim holds.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.is_better && self.is_near
    }
}

/// Longer than any scenario takes.
const TIME_MAX: Duration = Duration::from_secs(600);

impl Scenario {
    fn run(&self, jobs: &str, with: bool, seed: u64) -> Result<(Outcome, Option<u64>)> {
        let is_v8 = switch(self.switch).is_some_and(|s| s.patch.is_some());
        let base = |s: &Switch| !is_v8 || s.patch.is_some();
        let config = bfq(|s| base(s) && (with || s.name != self.switch), self.low_latency);
        let run = Run {
            jobs: job::parse(jobs, self.switch).expect("a valid job file"),
            disk: DeviceParams::preset(self.disk)?,
            host: Host::for_disk(self.disk),
            scheduler: "bfq".to_owned(),
            config,
            seed,
            interval: None,
            time_max: Some(TIME_MAX),
            watch: None,
        };
        if self.measure == Measure::RateErrorPermille {
            let (outcome, report) = why::explain(&run, &[0])?;
            return Ok((outcome, report.peak_rate));
        }
        Ok((simulate(&run)?, None))
    }

    /// Runs it with and without the switch, and the reference if there is one.
    ///
    /// # Errors
    /// If a load does not fit its disk.
    pub fn judge(&self, seed: u64) -> Result<Verdict> {
        let absolute = self.measure == Measure::RateErrorPermille;
        let reference = match self.reference {
            None => None,
            Some((jobs, _)) => {
                let (outcome, _) = self.run(jobs, true, seed)?;
                let measure = if absolute { Measure::DiskKiBps } else { self.measure };
                Some(measure.of(&outcome, None, 0))
            }
        };
        let figure = |with| -> Result<u64> {
            let (outcome, rate) = self.run(self.jobs, with, seed)?;
            Ok(self.measure.of(&outcome, rate, reference.unwrap_or(0)))
        };
        let (without, with) = (figure(false)?, figure(true)?);
        let (less, more) = if self.measure.more_is_better() { (without, with) } else { (with, without) };
        // Nothing at all counts as one, so that "none instead of five" is a factor of five.
        let is_better = more.saturating_mul(100) >= less.max(1).saturating_mul(self.factor_pct);
        let is_near = match (self.reference, reference) {
            (Some((_, pct)), Some(_)) if absolute => with <= pct * 10,
            (Some((_, pct)), Some(r)) if self.measure.more_is_better() => with * 100 >= r * pct,
            (Some((_, pct)), Some(r)) => with.saturating_mul(100) <= r * pct,
            _ => true,
        };
        Ok(Verdict { without, with, reference, is_better, is_near })
    }
}
