//! Calibration: from the times that a drive takes, and nothing else, to a disk file.
//!
//! The calibrator asks a [`Drive`] to read, or to do nothing until some moment, and looks at the latencies.
//! It does not know whether the time is real or a model's, so the same code that measures a drive through the
//! kernel is tested against the models in virtual time.
//!
//! ```text
//!   what is it?      random places read twice: rotation (or none), a page cache, another program's load
//!    ├─ disk         1 hits: overhead, bus     2 rotation     3 zones     4 skew     5 seeks     6 read buffer     8 queue
//!    └─ flash        9 latency by size, rate by depth
//!   is it right?     fresh random requests to the drive and to the model that was fitted: the demerit figure
//! ```
//!
//! The order is that of the steps' dependence: mechanics first, then the cache, then the queue. Worked
//! number: the drive of the 2004 comparison takes about 5000 reads, 65 s.
//!
//! What a host adds to each request cannot be distinguished from the drive's own overheads: `ov_hit` and the
//! others contain it. What reads do not show at all (write cache, firmware's ageing of queued commands,
//! number of surfaces for the most part) takes a default and says so.
//!
//! What this does not do: recover from a drive that changes while it is measured; look at what the data are;
//! sets and drives with several actuators.
//!
//! ```
//! use fairhead_device::DeviceParams;
//! use fairhead_device::calibrate::{Modelled, Noise, Options, calibrate};
//!
//! let params = DeviceParams::preset("flashcard2010")?;
//! let mut drive = Modelled::new(&params, Noise::default(), 1)?;
//! let found = calibrate(&mut drive, &Options::default()).map_err(|e| e.to_string())?;
//! let DeviceParams::Card(card) = found.params else { unreachable!() };
//! assert_eq!(card.read_latency.as_us(), 1103);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//= docs/reference/devices.md#5-measuring-a-real-drive

mod cache;
mod disk;
mod drive;
mod file;
mod fit;
mod flash;
mod identify;
mod modelled;
mod rotation;
mod seeks;
#[cfg(test)]
mod tests;
mod writes;
mod zones;

pub use drive::{Answer, Bounds, Drive};
pub use modelled::{Modelled, Noise};

use crate::demerit::{Demerit, Recorded, demerit, replay, sorted_ms};
use crate::params::DeviceParams;
use drive::Bench;
use fairhead_core::units::Duration;
use identify::Kind;
use std::fmt;

/// Options of a calibration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The name of the fitted disk. Default `calibrated`.
    pub name: String,
    /// Where to look is chosen by this. Default 1.
    pub seed: u64,
    /// Finish in about this time, with fewer samples if need be. Default: as long as it takes, a minute or
    /// two.
    pub budget: Option<Duration>,
    /// Also measure a disk's writes. That destroys the data on the drive. Default no.
    pub write: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "calibrated".to_owned(), seed: 1, budget: None, write: false }
    }
}

/// Why there is no calibration: one line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The user has had enough.
    Interrupted,
    /// A request failed: which, and how.
    Failed(String),
    /// The measurements cannot all be true of one drive by itself: which, and what it may be instead.
    Inconsistent(String),
    /// The drive or the time is too short: what is needed.
    TooShort(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed(why) | Self::Inconsistent(why) | Self::TooShort(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Refusal {}

/// How much a value is worth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Reads do not show it: a default.
    Assumed,
    /// Something near it was measured, or more than one value would explain what was.
    Low,
    /// Measured, or following from what was, within a few percent as a rule.
    Fair,
    /// Measured by itself, several times, with one result.
    High,
}

impl Confidence {
    /// One word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::Low => "low",
            Self::Fair => "fair",
            Self::High => "high",
        }
    }
}

/// One parameter of the disk file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The key in the file.
    pub key: &'static str,
    /// The value as in the file.
    pub value: String,
    /// How much it is worth.
    pub confidence: Confidence,
    /// The measurements behind the value.
    pub why: String,
}

/// The result of a calibration.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// The drive.
    pub params: DeviceParams,
    /// Parameter by parameter, in the order of the file.
    pub findings: Vec<Finding>,
    /// The model against the drive, on fresh requests.
    pub demerit: Demerit,
    /// The number of requests that compared the model with the drive.
    pub validated: usize,
    /// All requests.
    pub reads: u64,
    /// On the drive's clock.
    pub took: Duration,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Calibration {
    /// The disk file: what every command that takes a disk reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        file::toml(self)
    }
}

/// Above this the model is not the drive.
// Well under 10 % for models with seek curve, rotation and cache; 100 % for constant times.
//= docs/reference/devices.md#52-metrics
const DEMERIT_REFUSED: f64 = 50.0;
/// Above this it says so.
const DEMERIT_DOUBTFUL: f64 = 15.0;
/// Fewer sectors have no room for the questions: 64 MiB.
const SECTORS_LEAST: u64 = 1 << 17;

/// Measures a drive.
///
/// # Errors
/// When the drive fails, the user has had enough, or what was measured is not a drive by itself.
pub fn calibrate(drive: &mut dyn Drive, options: &Options) -> Result<Calibration, Refusal> {
    let mut bench = Bench::new(drive, options.seed);
    if bench.sectors < SECTORS_LEAST {
        return Err(Refusal::TooShort(format!(
            "{} sectors are too few to calibrate; at least {SECTORS_LEAST} (64 MiB) are needed",
            bench.sectors
        )));
    }
    let (kind, basics) = identify::identify(&mut bench)?;
    let mut fitted = match kind {
        Kind::Disk(turn) => disk::disk(&mut bench, options, &basics, &turn)?,
        Kind::Flash => flash::flash(&mut bench, options, &basics)?,
    };
    if let (Kind::Disk(turn), true) = (kind, options.write) {
        fitted = writes::writes(&mut bench, options, fitted, turn.ns)?;
    }
    bench.step("validation");
    let (demerit, validated) = validate(&mut bench, &fitted.params, options)?;
    if demerit.percent > DEMERIT_REFUSED {
        return Err(Refusal::Inconsistent(format!(
            "the fitted model is {:.0} % off the drive on fresh requests: what was measured does not add up to {}; another program may \
             be using it, or it is not one device",
            demerit.percent,
            if matches!(kind, Kind::Flash) { "flash" } else { "a disk" }
        )));
    }
    if demerit.percent > DEMERIT_DOUBTFUL {
        fitted.notes.push(format!(
            "the model is {:.0} % off on fresh requests; a good one is within 10 %",
            demerit.percent
        ));
    }
    Ok(Calibration {
        params: fitted.params,
        findings: fitted.findings,
        demerit,
        validated,
        reads: bench.reads,
        took: bench.elapsed(),
        notes: fitted.notes,
    })
}

/// What a kind's own steps come to.
struct Fitted {
    params: DeviceParams,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

/// Requests of the validation run.
const VALIDATION: usize = 400;

/// Requests that nothing was fitted to, to the drive and to the model: mostly at random, some in sequence,
/// some near, some again.
fn validate(
    b: &mut Bench<'_>,
    params: &DeviceParams,
    options: &Options,
) -> Result<(Demerit, usize), Refusal> {
    let capacity =
        crate::Device::new(params).map_err(|e| Refusal::Inconsistent(e.to_string()))?.facts().capacity;
    let room = capacity.min(b.sectors) - b.most;
    let mut chance = drive::Chance::new(options.seed ^ 0x0c0f_fee0);
    let (mut last, mut at) = (None, 0);
    let mut recorded: Vec<Recorded> = Vec::with_capacity(VALIDATION);
    for _ in 0..VALIDATION {
        let sectors = b.granule.max(8 << chance.below(5)).min(b.most);
        at = match chance.below(10) {
            0 | 1 => at + recorded.last().map_or(0, |r| u64::from(r.sectors)),
            2 => (at + chance.below(200_000)).saturating_sub(100_000),
            3 => recorded.get(recorded.len().saturating_sub(2)).map_or(0, |r| r.start),
            _ => chance.below(room),
        };
        at = at.min(room) / b.granule * b.granule;
        let (r, sent, done) = b.record(at, sectors)?;
        if let (Some(before), Some(r)) = (last, recorded.last_mut()) {
            r.think = sent.saturating_since(before);
        }
        last = Some(done);
        recorded.push(r);
    }
    let model = replay(params, &recorded).map_err(Refusal::Inconsistent)?;
    let drive: Vec<Duration> = recorded.iter().map(|r| r.response).collect();
    Ok((demerit(&sorted_ms(&drive), &sorted_ms(&model)), recorded.len()))
}
