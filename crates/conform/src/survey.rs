//! A first look at a log, for what must be known before the replay begins.

use super::first_reads::FirstReads;
use super::line::What;
use super::log::{Log, LogError};
use super::ticks::Phase;
use fairhead_core::{Duration, Instant};
use std::collections::BTreeSet;
use std::io::BufRead;

/// What was found.
pub(super) struct Survey {
    phase: Phase,
    timeout: Duration,
    tasks: BTreeSet<u32>,
    reads: FirstReads,
}

/// More tasks share the scheduler's fallback.
const TASKS_MAX: usize = 4096;
/// The kernel's HZ where nothing in a log shows it.
const HZ: u64 = 250;
/// A turn lasts HZ / 8 ticks; in ms by HZ, as sysfs shows it.
const HZ_BY_TIMEOUT: [(u64, u64); 4] = [(120, 100), (124, 250), (123, 300), (125, 1000)];

impl Survey {
    /// Reads a log to its end.
    pub(super) fn of<R: BufRead>(mut log: Log<R>) -> Result<Self, LogError> {
        let timeout_ms = log.header().setting("timeout_sync");
        let by_timeout = HZ_BY_TIMEOUT.iter().find(|(ms, _)| Some(*ms) == timeout_ms).map(|(_, hz)| *hz);
        let hz = log.header().setting("hz").or(by_timeout).unwrap_or(HZ).clamp(1, 100_000);
        let tick = Duration::from_ns(1_000_000_000 / hz);
        // In ticks, which sysfs rounds down to ms.
        let ticks = match timeout_ms {
            Some(ms) => ms.min(u64::from(u32::MAX)).saturating_mul(hz).div_ceil(1000),
            None => hz / 8,
        };
        let timeout = tick * ticks.max(1);
        let phase = Phase::new(tick, timeout);
        let mut this = Self { phase, timeout, tasks: BTreeSet::new(), reads: FirstReads::default() };
        while let Some(line) = log.next_event()? {
            this.phase.look(&line);
            this.reads.look(&line);
            if let What::Inserted(_) = line.what
                && this.tasks.len() < TASKS_MAX
            {
                this.tasks.insert(line.thread.pid);
            }
        }
        Ok(this)
    }

    /// Where each task reads first.
    pub(super) fn reads(&self) -> &FirstReads {
        &self.reads
    }

    /// How many tasks send requests.
    pub(super) fn tasks(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(1)
    }

    /// The kernel's tick.
    pub(super) fn tick(&self) -> Duration {
        self.phase.tick()
    }

    /// How long a turn may last, in whole ticks.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What is to be added to the log's times, so that ticks fall on whole multiples of their length.
    pub(super) fn shift(&self) -> Duration {
        let tick = self.tick().as_ns().max(1);
        let first = (Instant::EPOCH + self.phase.best()).as_ns() % tick;
        // And a tick more, so that nothing happens at the very beginning of time.
        Duration::from_ns(tick - first)
    }
}
