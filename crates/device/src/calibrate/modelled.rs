//! A device model as a drive to calibrate, in virtual time: no disk is needed, and every run is the same.
//!
//! Noise can be added to try what a calibration bears: each answer is heard late by a random time, some by
//! much more, and requests can be held up on their way or get company from another program.

use super::Refusal;
use super::drive::{Answer, Bounds, Chance, Drive};
use crate::{Command, Device, DeviceOp, DeviceParams, ParamError};
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};

/// Disturbances of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Noise {
    /// The time that each request takes to reach the drive.
    pub path: Duration,
    /// The upper bound of the random delay of every request, and again of every answer.
    pub jitter: Duration,
    /// The number of requests in a thousand that [`Self::spike`] delays: half of them on the way, half when
    /// answered.
    pub spikes_permille: u32,
    /// The delay of such a request.
    pub spike: Duration,
    /// The time by which a sleeping program sees an answer late. It sleeps after a millisecond without an
    /// answer. The next answer right after that is late by half of this, and so on, until the program is
    /// awake.
    pub sleep: Duration,
    /// The number of requests in a thousand before which another program reads elsewhere.
    pub others_permille: u32,
}

/// The time after which a waiting program sleeps.
const NAP: Duration = Duration::from_ms(1);

/// A model on a virtual clock.
#[derive(Debug)]
pub struct Modelled {
    device: Device,
    bounds: Bounds,
    now: Instant,
    noise: Noise,
    /// By how much the next answer is heard late, if it comes at once.
    drowsy: Duration,
    /// When the last answer was heard.
    heard: Instant,
    chance: Chance,
    /// Reads from there on fail, if there is such a place.
    bad: Option<u64>,
    left: u64,
    /// A cache before the drive that holds everything.
    page_cache: Option<std::collections::BTreeSet<u64>>,
}

impl Modelled {
    /// A drive at rest, with sectors as its logical blocks.
    ///
    /// # Errors
    /// When the parameters are impossible.
    pub fn new(params: &DeviceParams, noise: Noise, seed: u64) -> Result<Self, ParamError> {
        let device = Device::new(params)?;
        let facts = device.facts();
        Ok(Self {
            bounds: Bounds { sectors: facts.capacity, granule: 8, most: facts.max_request.0 },
            device,
            now: Instant::EPOCH + Duration::from_ms(1),
            noise,
            drowsy: Duration::ZERO,
            heard: Instant::EPOCH,
            chance: Chance::new(seed),
            bad: None,
            left: u64::MAX,
            page_cache: None,
        })
    }

    /// Reads of sectors from this one on fail.
    #[must_use]
    pub fn with_bad_sectors(mut self, from: u64) -> Self {
        self.bad = Some(from);
        self
    }

    /// Makes the user interrupt the calibration after this many requests.
    #[must_use]
    pub fn interrupted_after(mut self, requests: u64) -> Self {
        self.left = requests;
        self
    }

    /// Puts a page cache in front: a block that was read once comes from memory.
    #[must_use]
    pub fn behind_a_page_cache(mut self) -> Self {
        self.page_cache = Some(std::collections::BTreeSet::new());
        self
    }

    fn late(&mut self, half: u32) -> Duration {
        let jitter = Duration::from_ns(self.chance.below(self.noise.jitter.as_ns() + 1));
        let is_spike = self.chance.below(2000) < u64::from(self.noise.spikes_permille) && half < 2;
        jitter + if is_spike { self.noise.spike } else { Duration::ZERO }
    }

    fn check(&mut self, start: u64, sectors: u32) -> Result<(), Refusal> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Err(Refusal::Interrupted);
        }
        if self.bad.is_some_and(|bad| start + u64::from(sectors) > bad) {
            return Err(Refusal::Failed(format!("reading {sectors} sectors at {start}: input/output error")));
        }
        Ok(())
    }

    /// When the device next answers.
    fn next(&mut self) -> (Instant, Tag) {
        while let Some(at) = self.device.next_event() {
            if let Some(tag) = self.device.poll(at) {
                return (at, tag);
            }
        }
        unreachable!("a device with a command in flight has an event")
    }

    fn submit(&mut self, at: Instant, tag: u16, op: DeviceOp, start: u64, sectors: u32) {
        let (start, len) = (Sector(start), Sectors(sectors));
        self.device.submit(at, Command { tag: Tag(tag), op, start, len, fua: false });
    }

    fn one(&mut self, op: DeviceOp, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.check(start, sectors)?;
        if self.chance.below(1000) < u64::from(self.noise.others_permille) {
            let elsewhere = self.chance.below(self.bounds.sectors - 8);
            self.submit(self.now, 0, DeviceOp::Read, elsewhere, 8);
            // It is in the way of ours, which was meant to be sent now.
            let sent = self.now;
            self.now = self.next().0;
            let mut ours = self.one_alone(op, start, sectors);
            ours.sent = sent;
            return Ok(ours);
        }
        Ok(self.one_alone(op, start, sectors))
    }

    fn one_alone(&mut self, op: DeviceOp, start: u64, sectors: u32) -> Answer {
        let sent = self.now;
        if let Some(cache) = &mut self.page_cache {
            let blocks = start / 8..(start + u64::from(sectors)).div_ceil(8);
            let known = blocks.clone().all(|b| cache.contains(&b));
            cache.extend(blocks);
            if known {
                self.now = self.now + Duration::from_us(3);
                return Answer { sent, done: self.now };
            }
        }
        let arrives = sent + self.noise.path + self.late(0);
        self.submit(arrives, 0, op, start, sectors);
        let answered = self.next().0;
        let sleeps = answered.since(self.heard) > NAP;
        let asleep = if sleeps { self.noise.sleep } else { self.drowsy };
        self.drowsy = asleep / 2;
        let done = answered + self.late(1) + asleep;
        (self.now, self.heard) = (done, done);
        Answer { sent, done }
    }
}

impl Drive for Modelled {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn read(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.one(DeviceOp::Read, start, sectors)
    }

    fn write(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.one(DeviceOp::Write, start, sectors)
    }

    fn read_many(&mut self, list: &[(u64, u32)], depth: usize) -> Result<Vec<Answer>, Refusal> {
        let mut answers = vec![Answer { sent: self.now, done: self.now }; list.len()];
        let (mut sent, mut done) = (0, 0);
        // The device's queue may be shorter than ours: the rest waits before it.
        let mut line = std::collections::VecDeque::new();
        let mut slots: Vec<Option<usize>> = vec![None; depth.max(1)];
        while done < list.len() {
            while sent < list.len() && sent - done < depth.max(1) {
                self.check(list[sent].0, list[sent].1)?;
                answers[sent].sent = self.now;
                line.push_back(sent);
                sent += 1;
            }
            while self.device.can_accept() && !line.is_empty() {
                let Some(slot) = slots.iter().position(Option::is_none) else { break };
                let Some(i) = line.pop_front() else { break };
                slots[slot] = Some(i);
                self.submit(self.now, slot as u16, DeviceOp::Read, list[i].0, list[i].1);
            }
            let (at, tag) = self.next();
            self.now = self.now.max(at);
            if let Some(i) = slots[usize::from(tag.0)].take() {
                answers[i].done = self.now;
                done += 1;
            }
        }
        Ok(answers)
    }

    fn wait_until(&mut self, at: Instant) -> Result<(), Refusal> {
        self.now = self.now.max(at);
        Ok(())
    }
}
