//! The runs of an answer, those of its races and all others: each is counted, kept, and not begun after an
//! interruption.

use super::Stopped;
use crate::error::SimError;
use crate::metrics::Result;
use crate::resumable::{self, Keep, Line};
use fairhead_core::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

/// How runs are made: on how many threads, where results are kept, and the work so far.
pub(super) struct Runs<'a> {
    pub(super) threads: usize,
    keep: &'a dyn Keep,
    /// What tells runs of a load that was cut from others of the same.
    length: String,
    spent: AtomicU64,
}

impl<'a> Runs<'a> {
    pub(super) fn new(threads: usize, keep: &'a dyn Keep) -> Self {
        Self { threads, keep, length: String::new(), spent: AtomicU64::new(0) }
    }

    /// The load is cut: its runs have names of their own.
    pub(super) fn cut(&mut self, length: String) {
        self.length = length;
    }

    /// The work of all runs so far, those included whose results were kept.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_ns(self.spent.load(Ordering::Relaxed))
    }

    /// Whether no run may begin.
    pub(super) fn is_over(&self) -> bool {
        self.keep.is_over()
    }

    pub(super) fn count(&self, work: Duration) {
        self.spent.fetch_add(work.as_ns(), Ordering::Relaxed);
    }

    /// Makes `count` runs, each with a name and its work, and calls `done` with the number of finished ones.
    /// Returns the results in order, `None` for those that were not begun.
    pub(super) fn begun<T: Line>(
        &self,
        count: usize,
        done: &(dyn Fn(usize) + Sync),
        name: impl Fn(usize) -> String + Sync,
        run: impl Fn(usize) -> Result<(T, Duration)> + Sync,
    ) -> Vec<Option<Result<T>>> {
        let name = |i: usize| format!("{} {}", self.length, name(i)).trim_start().to_owned();
        let runs = resumable::map(count, self.threads, self.keep, done, name, |i| {
            let (of, work) = run(i)?;
            // Counted here, so that the progress shows it at once.
            self.count(work);
            Ok::<_, SimError>(Worked { of, work, is_counted: true })
        });
        let counted = |run: Worked<T>| {
            if !run.is_counted {
                self.count(run.work);
            }
            run.of
        };
        runs.into_iter().map(|run| run.map(|run| run.map(counted))).collect()
    }

    /// Makes `count` runs as [`Runs::begun`] does, all of which are needed.
    pub(super) fn each<T: Line>(
        &self,
        count: usize,
        name: impl Fn(usize) -> String + Sync,
        run: impl Fn(usize) -> Result<(T, Duration)> + Sync,
    ) -> std::result::Result<Vec<T>, Stopped> {
        let runs = self.begun(count, &|_| {}, name, run);
        runs.into_iter().map(|run| run.ok_or(Stopped::Over)?.map_err(Stopped::Failed)).collect()
    }
}

/// A result, and the work that it took.
struct Worked<T> {
    of: T,
    work: Duration,
    /// Whether the work has been added up: not of a result that was kept.
    is_counted: bool,
}

impl<T: Line> Line for Worked<T> {
    fn write(&self) -> String {
        format!("{} {}", self.work.as_ns(), self.of.write())
    }

    fn read(text: &str) -> Option<Self> {
        let (work, of) = text.split_once(' ')?;
        let work = Duration::from_ns(work.parse().ok()?);
        Some(Self { of: T::read(of)?, work, is_counted: false })
    }
}

/// A time.
impl Line for Duration {
    fn write(&self) -> String {
        self.as_ns().to_string()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::question;
    use super::super::{Advice, answer};
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Memory {
        known: BTreeMap<String, String>,
        new: Mutex<BTreeMap<String, String>>,
    }

    impl Keep for Memory {
        fn known(&self, run: &str) -> Option<&str> {
            self.known.get(run).map(String::as_str)
        }
        fn keep(&self, run: &str, result: &str) {
            let before = self.new.lock().unwrap().insert(run.to_owned(), result.to_owned());
            assert_eq!(before, None, "{run} was run twice");
        }
    }

    fn asked(jobs: &str, disk: &str, memory: &Memory) -> Advice {
        answer(&question(jobs, disk), 2, memory, &|_| {}).unwrap().whole().unwrap().1
    }

    /// Runs of the span, of jobs alone, of limits and costs: none is made again, and the work is as much.
    #[test]
    fn what_was_kept_is_not_run_again() {
        let ends = "[reader]\nrw=read\nbs=64k\nsize=1g\n[go]\nstartdelay=10ms\nrw=randread\nbs=4k\nsize=64m\n\
                    number_ios=200\nexitall\n";
        let flash = "[global]\nruntime=50ms\ntime_based\n[bulk]\nrw=read\nbs=256k\nsize=1g\ndirect=1\n\
                     iodepth=32\nioengine=libaio\n[service]\nrw=randread\nbs=16k\nsize=256m\ndirect=1\n\
                     thinktime=1ms\n";
        for (jobs, disk, kinds) in [
            (ends, "nas2020", &["span of", "alone under", "at once"][..]),
            (flash, "nvme", &["whole", "alone under", "limited to", "cost of"]),
        ] {
            let first = Memory::default();
            let a = asked(jobs, disk, &first);
            let known = first.new.into_inner().unwrap();
            for kind in kinds {
                assert!(known.keys().any(|run| run.contains(kind)), "{kind}: {:?}", known.keys());
            }
            let second = Memory { known, ..Memory::default() };
            let b = asked(jobs, disk, &second);
            assert!(second.new.lock().unwrap().is_empty());
            assert_eq!((&a.races, &a.book, &a.alone, &a.costs), (&b.races, &b.book, &b.alone, &b.costs));
            assert_eq!((a.work(), a.at_once, a.remedy), (b.work(), b.at_once, b.remedy));
        }
    }
}
