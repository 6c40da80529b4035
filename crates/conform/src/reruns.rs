//! When the kernel asks mq-deadline again that has held requests back, and what its clock shows then: it
//! counts ticks.

use super::first_reads::FirstReads;
use super::line::What;
use super::log::{Log, LogError};
use fairhead_core::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// When the kernel asks a scheduler again that held requests back: at the next tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reruns {
    tick: u64,
    /// How long after a whole multiple of a tick, as the log counts time.
    offset: u64,
}

impl Reruns {
    /// How finely the log is searched for the time of the ticks, in ns.
    const STEP: u64 = 50_000;

    /// Looks for the ticks in a log: most requests that a thread sends that inserts none come right behind
    /// one. And for where each task reads first.
    pub(super) fn of<R: BufRead>(mut log: Log<R>) -> Result<(Self, FirstReads), LogError> {
        let hz = log.header().setting("hz").unwrap_or(250).clamp(1, 10_000);
        let tick = 1_000_000_000 / hz;
        let (mut inserting, mut sent) = (BTreeSet::new(), BTreeMap::<(u32, u64), u64>::new());
        let mut reads = FirstReads::default();
        while let Some(line) = log.next_event()? {
            reads.look(&line);
            match line.what {
                What::Inserted(_) if inserting.len() < THREADS_MAX => drop(inserting.insert(line.thread.pid)),
                What::Issued(_) if sent.len() < THREADS_MAX => {
                    let step = ns(line.at) % tick / Self::STEP;
                    *sent.entry((line.thread.pid, step)).or_default() += 1;
                }
                _ => {}
            }
        }
        let mut steps = BTreeMap::<u64, u64>::new();
        for ((pid, step), number) in sent {
            if !inserting.contains(&pid) {
                *steps.entry(step).or_default() += number;
            }
        }
        let best = steps.into_iter().max_by_key(|(step, number)| (*number, std::cmp::Reverse(*step)));
        Ok((Self { tick, offset: best.map_or(0, |(step, _)| step * Self::STEP) }, reads))
    }

    /// The kernel's clock, which counts ticks: the latest tick at an instant.
    pub(super) fn clock(&self, at: Instant) -> Instant {
        let since = (ns(at) + self.tick - self.offset) % self.tick;
        Instant::EPOCH + Duration::from_ns(ns(at).saturating_sub(since))
    }

    /// The first tick after an instant.
    pub(super) fn after(&self, at: Instant) -> Instant {
        let since = (ns(at) + self.tick - self.offset) % self.tick;
        at + Duration::from_ns(self.tick - since)
    }
}

/// Since the log's zero.
fn ns(at: Instant) -> u64 {
    at.as_ns() - Instant::EPOCH.as_ns()
}

/// More threads and times than any log has.
const THREADS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_where_a_thread_sends_that_inserts_nothing() {
        let mut text = "# hz=250\n".to_owned();
        for n in 1..9 {
            text += &format!(" fio-7 [000] d..1. 10.{n}00300: 7,0 I RS 16 + 8 [fio]\n");
            text += &format!(" fio-7 [000] d..1. 10.{n}00301: 7,0 D RS 16 + 8 [fio]\n");
            text += &format!(" kworker-3 [000] d..1. 10.{n}02{}: 7,0 D RS 16 + 8 [kworker]\n", 811 + n);
        }
        let reruns = Reruns::of(Log::open(text.as_bytes(), "x").unwrap()).unwrap().0;
        let at = |us| Instant::EPOCH + Duration::from_us(us);
        assert_eq!(reruns.after(at(10_000_000)), at(10_002_800));
        assert_eq!(reruns.after(at(10_002_800)), at(10_006_800));
        assert_eq!(reruns.clock(at(10_006_799)), at(10_002_800));
        assert_eq!(reruns.clock(at(10_006_800)), at(10_006_800));
        assert_eq!(reruns.clock(at(1)), Instant::EPOCH, "before the first tick");
    }
}
