//! What a calibration asks of a drive, and two things every step needs: answers in nanoseconds, and fresh
//! places.

use super::Refusal;
use crate::demerit::Recorded;
use fairhead_core::units::{Duration, Instant};

/// A drive that can be asked, in whatever time: real (`live`) or virtual ([`super::Modelled`]).
///
/// Only [`Drive::write`] writes, and a calibration calls it only if its options allow that.
pub trait Drive {
    /// What can be known without asking.
    fn bounds(&self) -> Bounds;

    /// The time on the drive's clock. Never goes back.
    fn now(&self) -> Instant;

    /// Reads `sectors` from `start` on, alone: nothing else is in flight.
    ///
    /// # Errors
    /// Why no more can be asked: the drive failed, or the user has had enough.
    fn read(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal>;

    /// Reads all of these, at most `depth` in flight, the next as soon as one is answered. Answers in the
    /// order of the list.
    ///
    /// # Errors
    /// As [`Drive::read`].
    fn read_many(&mut self, list: &[(u64, u32)], depth: usize) -> Result<Vec<Answer>, Refusal>;

    /// Writes zeros: what was there is lost.
    ///
    /// # Errors
    /// As [`Drive::read`].
    fn write(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal>;

    /// Does nothing until then; nothing at all if it is past. As punctual as it can be.
    ///
    /// # Errors
    /// The user has had enough.
    fn wait_until(&mut self, at: Instant) -> Result<(), Refusal>;

    /// Reports progress: what is being measured, and how much of the expected time is over.
    fn progress(&mut self, what: &'static str, done: Duration, total: Duration) {
        let _ = (what, done, total);
    }
}

/// The size of a drive, and what requests it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Requests start and end at multiples of this number of sectors, the logical block.
    pub granule: u32,
    /// The largest request, sectors.
    pub most: u32,
}

/// When a request was sent, and when it was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Sent.
    pub sent: Instant,
    /// Answered.
    pub done: Instant,
}

impl Answer {
    /// The time between.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.done.saturating_since(self.sent)
    }
}

/// An answer in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ns {
    pub(super) sent: f64,
    pub(super) done: f64,
}

impl Ns {
    pub(super) fn took(&self) -> f64 {
        self.done - self.sent
    }
}

/// Chance that is the same every time.
//= G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64)
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed ^ 0x5eed_0f0c_a11b_0000)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Below `n`, which is at least 1.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n.max(1))) >> 64) as u64
    }

    /// From 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A drive on the bench: what the steps of a calibration use.
pub(super) struct Bench<'a> {
    drive: &'a mut dyn Drive,
    pub(super) chance: Chance,
    /// In sectors; the size is cut to whole granules.
    pub(super) sectors: u64,
    pub(super) granule: u64,
    pub(super) most: u64,
    pub(super) reads: u64,
    /// What was read last, and how often it was read again since it should be answered at once; and how often
    /// it was not.
    last: (u64, u32),
    pub(super) again: u32,
    pub(super) held_up: u32,
    started: Instant,
    expected: Duration,
    what: &'static str,
}

impl<'a> Bench<'a> {
    pub(super) fn new(drive: &'a mut dyn Drive, seed: u64) -> Self {
        let b = drive.bounds();
        let granule = u64::from(b.granule.max(1));
        let started = drive.now();
        Self {
            drive,
            chance: Chance::new(seed),
            sectors: b.sectors / granule * granule,
            granule,
            // More than 128 KiB at once tells nothing more, and is split by many a host.
            most: (u64::from(b.most).min(256) / granule * granule).max(granule),
            reads: 0,
            last: (0, 1),
            again: 0,
            held_up: 0,
            started,
            expected: Duration::ZERO,
            what: "",
        }
    }

    /// A new step.
    pub(super) fn step(&mut self, what: &'static str) {
        self.what = what;
        self.tell();
    }

    /// Sets the time that all of it is expected to take.
    pub(super) fn expect(&mut self, total: Duration) {
        self.expected = total;
        self.tell();
    }

    fn tell(&mut self) {
        let done = self.elapsed();
        let total = self.expected.max(done);
        self.drive.progress(self.what, done, total);
    }

    /// Since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.drive.now().saturating_since(self.started)
    }

    pub(super) fn now(&self) -> f64 {
        self.drive.now().as_ns() as f64
    }

    fn clip(&self, start: u64, sectors: u64) -> (u64, u32) {
        let n = sectors.clamp(1, self.most).next_multiple_of(self.granule).min(self.sectors);
        let start = (start / self.granule * self.granule).min(self.sectors - n);
        (start, n as u32)
    }

    /// Reads at a multiple of the granule.
    pub(super) fn read(&mut self, start: u64, sectors: u64) -> Result<Ns, Refusal> {
        let (start, n) = self.clip(start, sectors);
        self.reads += 1;
        if self.reads.is_multiple_of(64) {
            self.tell();
        }
        let a = self.drive.read(start, n)?;
        self.last = (start, n);
        Ok(Ns { sent: a.sent.as_ns() as f64, done: a.done.as_ns() as f64 })
    }

    /// Reads the last sectors again. If that takes longer than `most`, another program used the disk in
    /// between.
    pub(super) fn look_around(&mut self, most: f64) -> Result<(), Refusal> {
        let (start, n) = self.last;
        let took = self.read(start, n.into())?.took();
        self.again += 1;
        self.held_up += u32::from(took > most);
        Ok(())
    }

    /// One granule.
    pub(super) fn touch(&mut self, start: u64) -> Result<Ns, Refusal> {
        self.read(start, self.granule)
    }

    pub(super) fn write(&mut self, start: u64, sectors: u64) -> Result<Ns, Refusal> {
        let (start, n) = self.clip(start, sectors);
        let a = self.drive.write(start, n)?;
        Ok(Ns { sent: a.sent.as_ns() as f64, done: a.done.as_ns() as f64 })
    }

    /// Reads random granules with `depth` in flight and returns the requests per second.
    pub(super) fn rate_at(&mut self, depth: usize, n: usize, sectors: u64) -> Result<f64, Refusal> {
        let list: Vec<(u64, u32)> = (0..n)
            .map(|_| {
                let at = self.fresh();
                self.clip(at, sectors)
            })
            .collect();
        self.reads += n as u64;
        let answers = self.drive.read_many(&list, depth)?;
        self.tell();
        let first = answers.iter().map(|a| a.sent.as_ns()).min().unwrap_or(0);
        let last = answers.iter().map(|a| a.done.as_ns()).max().unwrap_or(0);
        Ok(n as f64 * 1e9 / (last.saturating_sub(first)).max(1) as f64)
    }

    pub(super) fn wait_until(&mut self, ns: f64) -> Result<(), Refusal> {
        self.drive.wait_until(Instant::from_ns(ns.max(1.0) as u64))
    }

    pub(super) fn rest(&mut self, ns: f64) -> Result<(), Refusal> {
        let until = self.now() + ns;
        self.wait_until(until)
    }

    /// Returns a place that has most likely not been read before, and is not at the very end.
    pub(super) fn fresh(&mut self) -> u64 {
        let room = (self.sectors - self.sectors / 64) / self.granule;
        self.chance.below(room) * self.granule
    }

    /// A request as a recording has it, sent at once.
    pub(super) fn record(
        &mut self,
        start: u64,
        sectors: u64,
    ) -> Result<(Recorded, Instant, Instant), Refusal> {
        let (start, n) = self.clip(start, sectors);
        let a = self.drive.read(start, n)?;
        self.reads += 1;
        let r = Recorded { write: false, start, sectors: n, response: a.latency(), think: Duration::ZERO };
        Ok((r, a.sent, a.done))
    }
}

/// The middle of some values; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    quantile_of(values, 0.5)
}

/// The value that this share of them does not exceed; 0 of none.
pub(super) fn quantile_of(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let i = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(i).copied().unwrap_or(0.0)
}

/// The median distance from the median, as a standard deviation of a normal distribution would be.
pub(super) fn spread(values: &[f64]) -> f64 {
    let m = median(values);
    1.4826 * median(&values.iter().map(|v| (v - m).abs()).collect::<Vec<_>>())
}
