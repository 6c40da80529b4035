//! How long the threads on the way to an emulated disk wait for a processor: the engine, its ring's workers,
//! and the kernel's workers of kblockd and of the loop devices on the disk. What they wait comes on top of
//! the model's time.
//!
//! ```text
//!   caller ─► kblockd ─► loop0's worker ─► FUSE ─► engine ─► ring's worker ─► file
//!             └ kworker/1:1H-kblockd       kworker/u8:2-loop0        └ iou-wrk-…
//! ```
//!
//! A thread reads the kernel's counters, `/proc/TID/schedstat`, twice a second. A kernel worker's name says
//! whose work it did last; one that was seen at work of ours counts from the look before that. An io-wq
//! thread that is not as urgent as the engine is made so.
//!
//! What this does not do: make the kernel's workers more urgent, or tell one loop device's share of kblockd
//! from another disk's.

use crate::clock;
use crate::emulation::Lateness;
use fairhead_core::units::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

/// How often it looks.
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);

/// How long threads have waited for a processor, and what could not be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The engine and its ring's workers.
    pub own: Duration,
    /// Workers of kblockd and of loop devices on the disk.
    pub kernel: Duration,
    /// One line for each thing that could not be seen or done.
    pub missing: BTreeSet<String>,
}

impl Waits {
    /// Answers may be later by this share of the model's time, in percent.
    pub const PERCENT_MAX: u64 = 3;

    /// In hundredths of a percent of the time that the model took for all ios.
    fn share(&self, lateness: &Lateness) -> u64 {
        let waited = u128::from((self.own + self.kernel).as_ns());
        u64::try_from(waited * 10_000 / u128::from(lateness.took.as_ns().max(1))).unwrap_or(u64::MAX)
    }

    /// Returns how much later answers were, and why, in words.
    #[must_use]
    pub fn told(&self, lateness: &Lateness) -> String {
        let (mean, share) = ((self.own + self.kernel) / lateness.ios.max(1), self.share(lateness));
        format!(
            "waits for a processor: {} of the emulation, {} of kblockd and loop; so answers were {} later in the mean, {}.{:02} % of the model's time",
            micros(self.own),
            micros(self.kernel),
            micros(mean),
            share / 100,
            share % 100
        )
    }

    /// Why the figures of this run are not to be trusted, if they are not.
    #[must_use]
    pub fn verdict(&self, lateness: &Lateness) -> Option<String> {
        let share = self.share(lateness);
        let whose = if self.kernel > self.own {
            "the kernel's workers of kblockd and loop"
        } else {
            "its own threads"
        };
        (lateness.ios > 0 && share > Self::PERCENT_MAX * 100).then(|| {
            format!(
                "answers were {}.{:02} % later, most of it because {whose} waited for a processor",
                share / 100,
                share % 100
            )
        })
    }
}

fn micros(d: Duration) -> String {
    let ns = d.as_ns();
    format!("{}.{} us", ns / 1000, ns % 1000 / 100)
}

/// The kind of work that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkOf {
    Own,
    Kernel,
    Other,
}

/// The work that a kernel thread of this name did last; `loops` are the loop devices on the disk. `None` if
/// it is no worker.
fn work_of(comm: &str, loops: &[String]) -> Option<WorkOf> {
    let worker = comm.strip_prefix("kworker/")?;
    let work = worker.rsplit_once(['-', '+']).map_or("", |w| w.1);
    let is_ours = !loops.is_empty() && (work == "kblockd" || loops.iter().any(|l| l == work));
    Some(if is_ours { WorkOf::Kernel } else { WorkOf::Other })
}

/// The second number of schedstat: for how many nanoseconds the thread could run and did not.
fn delay(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_ns)
}

/// What was seen of each thread, by its number.
#[derive(Debug, Default)]
struct Books {
    threads: BTreeMap<i32, (Duration, WorkOf)>,
    has_begun: bool,
    waits: Waits,
}

impl Books {
    fn see(&mut self, tid: i32, whose: WorkOf, delay: Duration) {
        // What is there at the first look has waited for others before.
        let unseen = (if self.has_begun { Duration::ZERO } else { delay }, whose);
        let (before, known) = self.threads.get(&tid).copied().unwrap_or(unseen);
        // A worker seen once at our work may be seen at others' work between two pieces of ours.
        let whose = if known == WorkOf::Kernel { known } else { whose };
        let waited = delay.saturating_sub(before);
        match whose {
            WorkOf::Own => self.waits.own += waited,
            WorkOf::Kernel => self.waits.kernel += waited,
            WorkOf::Other => {}
        }
        self.threads.insert(tid, (delay, whose));
    }

    fn look(&mut self, disk: &Path) {
        self.look_at_own();
        let loops = loops_on(disk);
        let mut workers = 0;
        for (tid, folder) in numbered("/proc") {
            let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            if let Some(whose) = work_of(comm.trim_end(), &loops) {
                workers += 1;
                self.read(tid, whose, &folder);
            }
        }
        if workers == 0 && !loops.is_empty() {
            let text = "no kernel worker is to be seen in /proc: how long kblockd and loop wait is not known";
            self.waits.missing.insert(text.to_owned());
        }
        self.has_begun = true;
    }

    fn look_at_own(&mut self) {
        let process = std::process::id();
        for (tid, folder) in numbered("/proc/self/task") {
            let comm = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            let is_worker = comm.starts_with("iou-wrk");
            // The process's first thread has the engine's name, too, and only waits.
            if is_worker || comm.trim_end() == "fairhead" && tid.cast_unsigned() != process {
                self.read(tid, WorkOf::Own, &folder);
                if let Err(e) = clock::be_urgent(tid) {
                    let who = if is_worker { "the ring's workers" } else { "the engine" };
                    self.waits.missing.insert(format!(
                        "{who} cannot have a real-time priority ({e}): other programs delay the disk; start it as root, or with LimitRTPRIO=1"
                    ));
                }
            }
        }
    }

    fn read(&mut self, tid: i32, whose: WorkOf, folder: &Path) {
        let path = folder.join("schedstat");
        match fs::read_to_string(&path) {
            Ok(text) => match delay(&text) {
                Some(delay) => self.see(tid, whose, delay),
                None => drop(
                    self.waits
                        .missing
                        .insert(format!("/proc/…/schedstat has no waits: '{}'", text.trim_end())),
                ),
            },
            // A thread may have ended since it was listed.
            Err(_) if !folder.exists() => {}
            Err(e) if whose != WorkOf::Other => {
                self.waits.missing.insert(format!(
                    "how long threads wait for a processor is not known: /proc/…/schedstat: {e}"
                ));
            }
            Err(_) => {}
        }
    }
}

/// The folders in it whose names are numbers.
fn numbered(folder: &str) -> impl Iterator<Item = (i32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
}

/// The loop devices that are on that file, such as `loop0`.
fn loops_on(file: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_on = |device: &Path| {
        fs::read_to_string(device.join("loop/backing_file"))
            .is_ok_and(|f| Path::new(f.trim_end_matches('\n')) == file)
    };
    devices.filter(|d| is_on(&d.path())).filter_map(|d| d.file_name().into_string().ok()).collect()
}

/// Looks until it is ended.
#[derive(Debug)]
pub struct Watch {
    end: mpsc::Sender<()>,
    thread: JoinHandle<Waits>,
}

impl Watch {
    /// Begins to look at the threads that serve the disk at this path. Also returns what cannot be seen or
    /// done from the beginning.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn begin(disk: &Path) -> std::io::Result<(Self, BTreeSet<String>)> {
        let (end, ended) = mpsc::channel();
        let (mut books, disk) = (Books::default(), disk.to_owned());
        books.look(&disk);
        let missing = books.waits.missing.clone();
        let thread = thread::Builder::new().name("fairhead-waits".to_owned()).spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                books.look(&disk);
            }
            books.look(&disk);
            books.waits
        })?;
        Ok((Self { end, thread }, missing))
    }

    /// Ends the watch and returns its findings.
    #[must_use]
    pub fn end(self) -> Waits {
        drop(self.end);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_us(n)
    }

    #[test]
    fn a_workers_name_says_whose_work_it_did() {
        let loops = ["loop0".to_owned()];
        for (comm, whose) in [
            ("kworker/1:1H-kblockd", Some(WorkOf::Kernel)),
            ("kworker/R-kblockd", Some(WorkOf::Kernel)),
            ("kworker/u8:2+loop0", Some(WorkOf::Kernel)),
            ("kworker/u8:2-loop01", Some(WorkOf::Other)),
            ("kworker/u8:2-loop7", Some(WorkOf::Other)),
            ("kworker/1:0-dio/vda", Some(WorkOf::Other)),
            ("kworker/u9:0", Some(WorkOf::Other)),
            ("fio", None),
        ] {
            assert_eq!(work_of(comm, &loops), whose, "{comm}");
        }
        assert_eq!(
            work_of("kworker/1:1H-kblockd", &[]),
            Some(WorkOf::Other),
            "no loop device, no way through it"
        );
    }

    #[test]
    fn the_kernels_counters_are_read() {
        assert_eq!(delay("186503438 24974924 669\n"), Some(Duration::from_ns(24_974_924)));
        assert_eq!((delay(""), delay("5"), delay("5 x 1")), (None, None, None));
    }

    #[test]
    fn waits_count_from_the_first_look_and_new_threads_from_their_beginning() {
        let mut books = Books::default();
        books.see(1, WorkOf::Own, us(1000));
        books.see(2, WorkOf::Kernel, us(9000));
        books.see(3, WorkOf::Other, us(500));
        assert_eq!(books.waits, Waits::default());
        books.has_begun = true;
        books.see(1, WorkOf::Own, us(1010));
        books.see(2, WorkOf::Other, us(9005));
        books.see(3, WorkOf::Kernel, us(507));
        books.see(4, WorkOf::Own, us(30));
        books.see(5, WorkOf::Other, us(40));
        assert_eq!((books.waits.own, books.waits.kernel), (us(40), us(12)));
        // The number of one that has ended is another's now.
        books.see(2, WorkOf::Kernel, us(3));
        assert_eq!(books.waits.kernel, us(12));
    }

    #[test]
    fn late_answers_are_told_and_judged() {
        let lateness = Lateness { ios: 1000, took: us(1_000_000), ..Lateness::default() };
        let waits = |own, kernel| Waits { own: us(own), kernel: us(kernel), ..Waits::default() };
        let told = waits(4_000, 8_500).told(&lateness);
        assert!(
            told.contains("answers were 12.5 us later in the mean, 1.25 % of the model's time"),
            "{told}"
        );
        assert_eq!(waits(10_000, 20_000).verdict(&lateness), None);
        let verdict = waits(10_000, 20_100).verdict(&lateness).unwrap();
        assert!(verdict.contains("3.01 % later") && verdict.contains("kblockd and loop waited"), "{verdict}");
        assert!(waits(40_000, 0).verdict(&lateness).unwrap().contains("its own threads waited"));
        assert_eq!(waits(40_000, 0).verdict(&Lateness::default()), None, "there were no answers");
    }
}
