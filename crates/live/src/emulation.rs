//! A disk model in real time: an io is done when the backing store has done it *and* the model says so.
//!
//! The engine's loop asks for the model's next moment and comes back then: it waits in the ring until shortly
//! before, and spins the rest, because a wait ends some microseconds late. How late the model was asked after
//! all is kept, and with it whether the figures of a run are to be trusted: [`Lateness::verdict`].
//!
//! ```text
//!   io ─┬─► store: reads or writes the file    ─┬─► finished
//!       └─► model: busy until 8.3 ms from now  ─┘
//! ```
//!
//! The model sees the sectors that the scheduler sees. A sector beyond its last one wraps around, so a model
//! may be smaller than the files. A request larger than the model takes becomes several commands.
//!
//! What it does not do: make anything faster. If the store is slower than the model, ios take as long as the
//! store does; these are counted too.

use crate::bio::{Errno, FileId};
use crate::request_queue::IoId;
use fairhead_core::request::{Op, Request};
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, Facts, ParamError};
use std::collections::{HashMap, VecDeque};
use std::fmt;

/// What the store and the model have to say about one io, or one flush.
#[derive(Debug)]
struct Halves {
    began: Instant,
    /// Commands that the model has not done.
    commands: u32,
    /// When it had done them all.
    done: Option<Instant>,
    results: Option<Vec<Result<(), Errno>>>,
}

/// What is done by both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Work {
    Io(IoId),
    Flush(FileId),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Emulation {
    device: Device,
    facts: Facts,
    halves: HashMap<Work, Halves>,
    /// Commands that wait for room; by tag, whose they are; tags that are free.
    line: VecDeque<(Work, Command)>,
    works: Vec<Option<Work>>,
    free: Vec<Tag>,
    lateness: Lateness,
}

/// How late a model's answers were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    /// Moments of the model.
    pub events: u64,
    /// How many of these were looked at late, by the binary logarithm of the delay in microseconds: `[0]`
    /// below 1 us, `[1]` below 2, `[2]` below 4, ….
    pub late: [u64; 24],
    /// The longest.
    pub max: Duration,
    /// Ios for which the backing store took longer than the model, by more than a moment may be late.
    pub slow_store: u64,
    /// All ios.
    pub ios: u64,
    /// The time that the model took for them, from beginning to end, added up.
    pub took: Duration,
}

impl Lateness {
    /// A hundredth may be later than this.
    pub const P99_MAX: Duration = Duration::from_us(256);

    fn see(&mut self, late: Duration) {
        self.events += 1;
        let class = (64 - late.as_us().leading_zeros()) as usize;
        self.late[class.min(self.late.len() - 1)] += 1;
        self.max = self.max.max(late);
    }

    /// No more than a hundredth of all moments was later than this; a power of two.
    #[must_use]
    pub fn p99(&self) -> Duration {
        let most = self.events - self.events / 100;
        let mut sum = 0;
        let class = self.late.iter().position(|n| {
            sum += n;
            sum >= most
        });
        class.filter(|_| self.events > 0).map_or(Duration::ZERO, |c| Duration::from_us(1 << c))
    }

    /// Why the figures of this run are not to be trusted, if they are not.
    #[must_use]
    pub fn verdict(&self) -> Option<String> {
        if self.p99() > Self::P99_MAX {
            return Some(format!(
                "one moment in a hundred was more than {} late: this machine is too busy to keep the model's time",
                self.p99()
            ));
        }
        (self.slow_store * 100 > self.ios).then(|| {
            format!("the backing store was slower than the model for {} of {} ios", self.slow_store, self.ios)
        })
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} moments, 99 % less than {} late, at most {}", self.events, self.p99(), self.max)
    }
}

impl Emulation {
    /// # Errors
    /// If the parameters are impossible.
    pub(crate) fn new(params: &DeviceParams) -> Result<Self, ParamError> {
        let device = Device::new(params)?;
        let facts = device.facts();
        let tags = facts.queue_depth;
        Ok(Self {
            device,
            facts,
            halves: HashMap::new(),
            line: VecDeque::new(),
            works: vec![None; usize::from(tags)],
            free: (0..tags).map(Tag).collect(),
            lateness: Lateness::default(),
        })
    }

    /// The disk is as if nothing had happened to it, unless it is at work.
    pub(crate) fn renew(&mut self, params: &DeviceParams) {
        if self.halves.is_empty()
            && let Ok(new) = Self::new(params)
        {
            *self = new;
        }
    }

    pub(crate) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) const fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// An io begins.
    pub(crate) fn start(&mut self, now: Instant, io: IoId, rq: &Request, fua: bool) {
        let op = match rq.op {
            Op::Read => DeviceOp::Read,
            Op::Write => DeviceOp::Write,
            Op::Discard => DeviceOp::Discard,
        };
        let (mut at, mut left) = (rq.start.0, u64::from(rq.len.0));
        let mut commands = 0;
        while left > 0 {
            let start = at % self.facts.capacity;
            let len = left.min(u64::from(self.facts.max_request.0)).min(self.facts.capacity - start);
            let fua = fua && op == DeviceOp::Write && self.facts.fua;
            let command = Command { tag: Tag(0), op, start: Sector(start), len: Sectors(len as u32), fua };
            self.line.push_back((Work::Io(io), command));
            (at, left, commands) = (at + len, left - len, commands + 1);
        }
        self.halves.insert(Work::Io(io), Halves { began: now, commands, done: None, results: None });
        self.feed(now);
    }

    /// A flush begins.
    pub(crate) fn flush(&mut self, now: Instant, file: FileId) {
        let flush =
            Command { tag: Tag(0), op: DeviceOp::Flush, start: Sector(0), len: Sectors(0), fua: false };
        self.halves.insert(Work::Flush(file), Halves { began: now, commands: 1, done: None, results: None });
        self.line.push_back((Work::Flush(file), flush));
        self.feed(now);
    }

    /// The model gets what it has room for.
    fn feed(&mut self, now: Instant) {
        while self.device.can_accept() && !self.line.is_empty() {
            let Some(tag) = self.free.pop() else { return };
            let (work, command) = self.line.pop_front().expect("just seen");
            self.works[usize::from(tag.0)] = Some(work);
            self.device.submit(now, Command { tag, ..command });
        }
    }

    /// The store has done its part. Returns the results if the model has done its own.
    pub(crate) fn stored(
        &mut self,
        now: Instant,
        work: Work,
        results: Vec<Result<(), Errno>>,
    ) -> Option<Vec<Result<(), Errno>>> {
        let halves = self.halves.get_mut(&work).expect("began");
        let Some(done) = halves.done else {
            halves.results = Some(results);
            return None;
        };
        self.halves.remove(&work);
        //= docs/reference/choices.md#live-slow-store
        self.lateness.slow_store += u64::from(now.since(done) > Lateness::P99_MAX);
        Some(results)
    }

    /// When to look at the model.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }

    /// What model and store have both done by now, one at a time.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Work, Vec<Result<(), Errno>>)> {
        while let Some(at) = self.device.next_event().filter(|&at| at <= now) {
            self.lateness.see(now.since(at));
            while let Some(tag) = self.device.poll(at) {
                self.free.push(tag);
                let work = self.works[usize::from(tag.0)].take().expect("the model had it");
                self.feed(now);
                let halves = self.halves.get_mut(&work).expect("began");
                halves.commands -= 1;
                if halves.commands == 0 {
                    halves.done = Some(at);
                    self.lateness.ios += 1;
                    self.lateness.took += at.since(halves.began);
                }
                if halves.commands == 0 && halves.results.is_some() {
                    let results = self.halves.remove(&work).and_then(|h| h.results).expect("just seen");
                    return Some((work, results));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::units::{Sectors, TaskId};

    fn ms(n: u64) -> Instant {
        Instant::EPOCH + Duration::from_ms(n)
    }

    #[test]
    fn an_io_is_done_when_both_have_done_it() {
        let mut e = Emulation::new(&DeviceParams::preset("sata2009").unwrap()).unwrap();
        let rq = |sector| Request::read(TaskId(1), Sector(sector), Sectors(8));
        e.start(ms(0), IoId(0), &rq(1_000_000), false);
        e.start(ms(0), IoId(1), &rq(500_000_000), false);
        assert!(e.stored(ms(0), Work::Io(IoId(0)), vec![Ok(())]).is_none(), "the model has only begun");
        let mut done = Vec::new();
        while let Some(at) = e.next_event() {
            while let Some((work, _)) = e.poll(at) {
                done.push(work);
            }
        }
        assert_eq!(done, [Work::Io(IoId(0))], "the store has not done the other");
        assert_eq!(e.stored(ms(500), Work::Io(IoId(1)), vec![Err(Errno::IO)]), Some(vec![Err(Errno::IO)]));
        assert_eq!((e.lateness().ios, e.lateness().slow_store), (2, 1));
        assert_eq!(e.lateness().max, Duration::ZERO);
    }

    #[test]
    fn requests_larger_or_farther_than_the_model_takes_are_several_commands() {
        let mut e = Emulation::new(&DeviceParams::preset("sata2009").unwrap()).unwrap();
        let facts = *e.facts();
        let rq = Request::read(TaskId(1), Sector(facts.capacity - 8), facts.max_request + Sectors(16));
        e.start(ms(0), IoId(0), &rq, false);
        assert!(e.stored(ms(0), Work::Io(IoId(0)), vec![Ok(())]).is_none());
        let mut done = 0;
        while let Some(at) = e.next_event() {
            while e.poll(at).is_some() {
                done += 1;
            }
        }
        assert_eq!((done, e.halves.len()), (1, 0));
    }

    #[test]
    fn late_moments_are_counted_and_judged() {
        let mut l = Lateness::default();
        (0..990).for_each(|_| l.see(Duration::from_us(1)));
        (0..10).for_each(|_| l.see(Duration::from_ms(5)));
        assert_eq!((l.p99(), l.max), (Duration::from_us(2), Duration::from_ms(5)));
        assert_eq!(l.verdict(), None);
        (0..10).for_each(|_| l.see(Duration::from_ms(5)));
        assert!(l.verdict().unwrap().contains("too busy"));
    }
}
