//! A job file does here what fio does with it: drawn job files, run by real fio on a small file in memory and
//! in the lab, side by side.
//!
//! ```text
//!   seed ─► draw ─► job file ─┬─► fio: JSON, log of offsets, log of latencies ─┐
//!                             └─► lab: a fast disk, several seeds ─────────────┴─► compare
//! ```
//!
//! Compared are: whether the file is accepted; the entries of the report; calls and bytes by direction; the
//! order of what is not random; that what is random visits the same blocks; which job waited for which; how
//! long think times, rates and delays take, within 10 %. Chance (mixes, drawn lengths) is compared with what
//! the lab does with many seeds.
//!
//! `FAIRHEAD_FIO_CASES` says how many files are drawn, `FAIRHEAD_SEED` (a number or any text) what from. A
//! file that differs is printed with its seed, both results, and the command that repeats it.
//! `FAIRHEAD_FIO_JOB=FILE` compares that file instead. Times are measured on a real machine: a case whose
//! times differ is run again, and if the machine was late each time the test says
//! `skipped: machine too busy`. Without fio it says `skipped: no fio`.

mod compare;
mod draw;
mod fio;
mod fixed;
mod lab;
mod lateness;

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

/// What happened when a job file was run.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// One for each entry of fio's report.
    entries: Vec<Entry>,
    /// In the order of the job file, clone by clone.
    clients: Vec<Client>,
    /// One of them has no room for a call.
    idle: bool,
}

/// An entry of the report.
#[derive(Clone, Debug, Default, PartialEq)]
struct Entry {
    name: String,
    group: u64,
    /// Of reads, of writes.
    calls: [u64; 2],
    bytes: [u64; 2],
}

/// A client's calls.
#[derive(Clone, Debug, Default)]
struct Client {
    /// In the order in which they were made, where that is known.
    calls: Vec<Call>,
    /// When those that were measured ended, in milliseconds from any one time.
    ends_ms: Vec<f64>,
}

/// A call: a read (`r`), a write (`w`), an fsync (`s`) or fdatasync (`d`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    kind: char,
    /// Which of the client's files; `None` if that is not known.
    file: Option<usize>,
    offset: u64,
    len: u64,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(file) = self.file.filter(|file| *file > 0) {
            write!(f, "{file}:")?;
        }
        if matches!(self.kind, 'r' | 'w') { write!(f, "{}+{}", self.offset, self.len) } else { Ok(()) }
    }
}

impl Client {
    /// From the first measured call's end to the last one's, in milliseconds.
    fn took_ms(&self) -> f64 {
        match (self.ends_ms.first(), self.ends_ms.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0.0,
        }
    }
}

/// What came of a case.
#[derive(Debug)]
enum Verdict {
    Same,
    /// Not compared: times differ and the machine was late each time, or fio hangs.
    Skipped(String),
    Differs(String),
}

/// How often a file is run by fio before its times are believed to differ.
const TRIES: u32 = 4;

/// Other seeds with which fio runs a file that differs by chance, and how many of those have to differ. A
/// misreading shows with most seeds, a draw that is rare with hardly any.
const OTHER_SEEDS: u32 = 4;
const OTHERS_THAT_DIFFER: u32 = 2;

/// Runs a job file here and there, again if only times differ.
fn judge(text: &str) -> Verdict {
    // A file is run again alone: fio spins at the end of its pauses.
    static ALONE: RwLock<()> = RwLock::new(());
    let (mut busy, mut last) = (true, String::new());
    let lab = lab::Lab::new(text);
    for attempt in 0..TRIES {
        let beside = (attempt == 0).then(|| ALONE.read());
        let alone = (attempt > 0).then(|| ALONE.write());
        let watch = lateness::Watch::start();
        let real = fio::run(text, None);
        let late = watch.stop();
        match compare::compare(&real, &lab, late) {
            Ok(()) => return Verdict::Same,
            Err(compare::Difference::Certain(why)) => return Verdict::Differs(why),
            Err(compare::Difference::OfChance(why)) => {
                return if is_rare(text, &lab) { Verdict::Same } else { Verdict::Differs(why) };
            }
            Err(compare::Difference::OfTime(why)) => {
                busy &= late.is_busy();
                last = format!("machine too busy: {why}\n(the machine was late: {late:?})");
            }
            Err(compare::Difference::Hung) => "fio does not end, or ends itself".clone_into(&mut last),
        }
        drop((beside, alone));
    }
    if busy { Verdict::Skipped(last) } else { Verdict::Differs(last) }
}

/// Whether fio does with most other seeds what the lab does.
fn is_rare(text: &str, lab: &lab::Lab) -> bool {
    let differ = (1..=OTHER_SEEDS).filter(|seed| {
        let watch = lateness::Watch::start();
        let real = fio::run(text, Some(*seed));
        matches!(
            compare::compare(&real, lab, watch.stop()),
            Err(compare::Difference::Certain(_) | compare::Difference::OfChance(_))
        )
    });
    differ.count() < OTHERS_THAT_DIFFER as usize
}

/// Whether there is fio 3.
fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").stderr(Stdio::null()).output();
    let has = found.is_ok_and(|out| out.stdout.starts_with(b"fio-3"));
    if !has {
        println!("skipped: no fio");
    }
    has
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed to draw from: a number, decimal or hexadecimal, or any text.
fn base_seed() -> u64 {
    let Ok(text) = std::env::var("FAIRHEAD_SEED") else { return 1 };
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|_| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
    })
}

/// Judges `cases` at a time on a few threads, as most wait for sleeping programs. Returns what differed.
fn judge_all(cases: usize, threads: usize, case: impl Fn(usize) -> (String, String) + Sync) -> Vec<String> {
    let next = AtomicU64::new(0);
    let (wrong, skipped) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases) {
            scope.spawn(|| {
                loop {
                    let i = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    if i >= cases {
                        return;
                    }
                    let (name, text) = case(i);
                    match judge(&text) {
                        Verdict::Same => {}
                        Verdict::Skipped(why) => skipped.lock().unwrap().push(format!("{name}: {why}")),
                        Verdict::Differs(why) => {
                            let said = format!("{name} differs: {why}\n--- the job file ---\n{text}---");
                            eprintln!("{said}");
                            wrong.lock().unwrap().push(said);
                        }
                    }
                }
            });
        }
    });
    for why in skipped.into_inner().unwrap() {
        println!("skipped: {why}");
    }
    wrong.into_inner().unwrap()
}

#[test]
fn fixed_files_do_here_what_they_do_in_fio() {
    if !has_fio() {
        return;
    }
    let all = fixed::CASES;
    let wrong = judge_all(all.len(), 3, |i| (all[i].0.to_owned(), all[i].1.to_owned()));
    assert!(wrong.is_empty(), "{} of {} fixed files differ", wrong.len(), all.len());
}

#[test]
fn drawn_files_do_here_what_they_do_in_fio() {
    if !has_fio() {
        return;
    }
    if let Ok(path) = std::env::var("FAIRHEAD_FIO_JOB") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let wrong = judge_all(1, 1, |_| (path.clone(), text.clone()));
        assert!(wrong.is_empty(), "{path} differs");
        return;
    }
    let (cases, base) = (number("FAIRHEAD_FIO_CASES").unwrap_or(12), base_seed());
    let threads = usize::try_from(number("FAIRHEAD_FIO_THREADS").unwrap_or(3)).unwrap_or(1);
    let wrong = judge_all(usize::try_from(cases).unwrap_or(0), threads, |i| {
        let seed = base.wrapping_add(i as u64);
        let again = format!(
            "seed {seed:#x} (FAIRHEAD_SEED={seed:#x} FAIRHEAD_FIO_CASES=1 cargo test -p fairhead --test clock fio_differential::drawn)"
        );
        (again, draw::job_file(seed))
    });
    println!("{cases} files drawn from {base:#x}");
    assert!(wrong.is_empty(), "{} of {cases} drawn files differ", wrong.len());
}
