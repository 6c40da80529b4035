//! What a finding is worth: one load in the lab, with the disk as it is set and as it would be set.
//!
//! The loads are job files that `fairhead run` knows by name, so that anybody can repeat a number. The disk
//! is the built-in one most like the real disk ([`crate::similar_preset`]); a number is about that class of
//! disks, not about the one at hand.

use crate::disks::Disk;
use crate::similar::similar_preset;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::advise::Place;
use fairhead_sim::{Host, Outcome, Scenario, job, simulate};

/// A load with one figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// The time that an application takes to start beside a copy.
    StartUp,
    /// The 99th percentile of the reads of an urgent program beside four of the idle class.
    Urgent,
    /// The shares of two groups with weights.
    Weights,
    /// Requests per second of five deep readers.
    DeepReaders,
    /// MiB per second of two readers of files.
    Streams,
    /// The time that an application takes to start beside ten readers.
    StartUpBesideReaders,
}

/// A load as `fairhead run` and `fairhead list` know it.
#[derive(Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The job file.
    pub text: &'static str,
}

macro_rules! named {
    ($($name:literal: $about:literal,)*) => {
        /// The loads, in the order of [`Load`].
        pub const LOADS: &[Named] = &[$(Named {
            name: concat!("doctor-", $name),
            about: concat!("doctor: ", $about),
            text: include_str!(concat!("../jobs/", $name, ".fio")),
        },)*];
    };
}

named! {
    "start-beside-copy": "an application starts beside a copy",
    "urgent-beside-idle": "a program of best-effort level 0 beside four of the idle class",
    "weights": "two readers in groups of weights 100 and 300",
    "deep-readers": "five processes with 128 random reads in flight each",
    "two-streams": "two programs read a file each",
    "start-beside-readers": "an application starts beside ten readers",
}

/// A setting of a disk that the lab can take.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// The scheduler, by the kernel's name.
    pub scheduler: String,
    /// Tunables of the scheduler: name and raw number.
    pub tunables: Vec<(&'static str, u64)>,
    /// The read-ahead in KiB, if it is not the host's.
    pub read_ahead_kib: Option<u32>,
    /// The weights of the two groups, as they reach the scheduler, if they are not 100 and 300.
    pub weights: Option<(u32, u32)>,
}

impl Setting {
    /// The scheduler with its default tunables.
    #[must_use]
    pub fn of(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), ..Self::default() }
    }
}

/// A load under the present setting and under the one that is recommended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The load.
    pub load: Load,
    /// The preset that stands for the disk.
    pub disk: &'static str,
    /// As it is set.
    pub before: Setting,
    /// As it would be set.
    pub after: Setting,
}

/// How often a figure is measured; the median counts.
const SEEDS: u64 = 3;

impl Comparison {
    /// A load under the present setting and under another, on the disk's likeness if there is one.
    pub(crate) fn on(disk: &Disk, load: Load, before: Setting, after: Setting) -> Option<Self> {
        Some(Self { load, disk: similar_preset(disk)?, before, after })
    }

    /// What the lab says, in one sentence; `None` if it cannot run the setting.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let (before, after) = (self.figures(&self.before)?, self.figures(&self.after)?);
        let said = match self.load {
            Load::StartUp => format!(
                "an application that starts beside a copy takes {} s as it is set, and {} s after the change",
                round(before[0]),
                round(after[0])
            ),
            Load::StartUpBesideReaders => format!(
                "an application that starts beside ten readers takes {} s as it is set, and {} s after the change",
                round(before[0]),
                round(after[0])
            ),
            Load::Urgent => format!(
                "99 of 100 reads of an urgent program beside four of the idle class take up to {} ms as it is set, and {} ms after the change",
                round(before[0] * 1e3),
                round(after[0] * 1e3)
            ),
            Load::Weights => format!(
                "two readers with weights of {} share the disk {} as it is set, and {} after the change",
                wanted(&self.after),
                shares(&before),
                shares(&after)
            ),
            Load::DeepReaders => format!(
                "five deep readers get {} thousand requests per second as it is set, and {} after the change",
                round(before[0] / 1e3),
                round(after[0] / 1e3)
            ),
            Load::Streams => format!(
                "two readers of files get {} MiB/s together as it is set, and {} after the change",
                round(before[0]),
                round(after[0])
            ),
        };
        Some(format!("In the lab (disk {}, load {}), {said}.", self.disk, LOADS[self.load as usize].name))
    }

    /// The figures of the load, each the median over the seeds.
    fn figures(&self, setting: &Setting) -> Option<Vec<f64>> {
        let runs: Vec<Vec<f64>> = (1..=SEEDS).map(|seed| self.run(setting, seed)).collect::<Option<_>>()?;
        let median = |at: usize| {
            let mut values: Vec<f64> = runs.iter().map(|r| r[at]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Some((0..runs[0].len()).map(median).collect())
    }

    fn run(&self, setting: &Setting, seed: u64) -> Option<Vec<f64>> {
        let named = &LOADS[self.load as usize];
        let mut text = named.text.to_owned();
        if let Some((light, heavy)) = setting.weights {
            text = text.replace("weight=100", &format!("weight={light}"));
            text = text.replace("weight=300", &format!("weight={heavy}"));
        }
        let (scheduler, config) = scheduler(setting)?;
        let mut host = Host::for_disk(self.disk);
        if let Some(kib) = setting.read_ahead_kib {
            host.read_ahead = kib * 1024;
        }
        let scenario = Scenario {
            jobs: job::parse(&text, named.name).ok()?,
            disk: DeviceParams::preset(self.disk).ok()?,
            host,
            scheduler,
            config,
            seed,
            interval: None,
            time_max: None,
            watch: None,
        };
        simulate(&scenario).ok().and_then(|outcome| figures(self.load, &outcome))
    }
}

/// The weights that were meant: `100 and 300`.
fn wanted(setting: &Setting) -> String {
    let (light, heavy) = setting.weights.unwrap_or((100, 300));
    format!("{light} and {heavy}")
}

/// The lab's name and tunables of a scheduler that the kernel has.
fn scheduler(setting: &Setting) -> Option<(String, AnyConfig)> {
    let preset = preset(&setting.scheduler)?;
    let mut config = (Place::of(preset) == Place::Kernel).then(preset.config)?;
    for (tunable, value) in &setting.tunables {
        config.set(tunable, *value).ok()?;
    }
    Some((preset.name.to_owned(), config))
}

#[allow(clippy::cast_precision_loss, reason = "figures for people, of a few digits")]
fn figures(load: Load, outcome: &Outcome) -> Option<Vec<f64>> {
    let of = |name: &str| outcome.clients.iter().find(|c| c.name == name);
    let bytes = |name: &str| of(name).map(|c| (c.read.bytes + c.write.bytes) as f64);
    let seconds = |c: &fairhead_sim::metrics::ClientStats| c.elapsed.as_ns() as f64 / 1e9;
    Some(match load {
        Load::StartUp | Load::StartUpBesideReaders => vec![seconds(of("application")?)],
        Load::Urgent => vec![of("urgent")?.read.percentile(99.0)?.as_ns() as f64 / 1e9],
        Load::Weights => vec![bytes("light")?, bytes("heavy")?],
        Load::DeepReaders => vec![outcome.clients.iter().map(|c| c.read.calls as f64 / seconds(c)).sum()],
        Load::Streams => {
            vec![outcome.clients.iter().map(|c| c.read.bytes as f64 / seconds(c)).sum::<f64>() / 1_048_576.0]
        }
    })
}

/// `1 : 2.7`.
fn shares(bytes: &[f64]) -> String {
    format!("1 : {}", round(bytes[1] / bytes[0]))
}

/// Two digits at least, none that mean nothing.
fn round(value: f64) -> String {
    match value.abs() {
        v if v >= 10.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
