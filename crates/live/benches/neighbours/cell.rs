//! One cell of the matrix: how it is measured, and what misses.

use crate::TIME;
use crate::honest::Kept;
use crate::messages::Work;
use crate::place::{Front, Place};
use crate::processes::Player;
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

/// What a flood may take before it is measured: connections are made, and the first burst is over.
const BEGINS: Duration = Duration::from_millis(400);

/// The time in which memory has gone back.
const GOES_BACK: Duration = Duration::from_secs(5);

/// The most resident memory of a server, in MiB.
const MEMORY_MOST: f64 = 512.0;

/// See the [module](self).
pub(crate) struct Cell {
    pub(crate) front: Front,
    pub(crate) message: String,
    pub(crate) work: Work,
    pub(crate) connections: usize,
    pub(crate) reads: bool,
    pub(crate) image: &'static str,
    pub(crate) limited: bool,
}

/// What came of a cell.
pub(crate) struct Found {
    name: String,
    /// Beside the flood, and beside a program that burns as much processor time.
    beside: Kept,
    control: Kept,
    /// The part of a processor that the flood used.
    burnt: f64,
    memory: f64,
    pub(crate) misses: Vec<String>,
}

pub(crate) const HEAD: &str = "     reads   beside hog    kept  p99 us   of hog  burnt  MiB  cell";

impl Cell {
    /// Whether its name has all of these words.
    pub(crate) fn has(&self, words: &[String]) -> bool {
        let name = self.name();
        words.iter().all(|word| name.contains(word.as_str()))
    }

    fn name(&self) -> String {
        let Self { message, connections, image, .. } = self;
        let reads = if self.reads { "" } else { " that never read" };
        let limits = if self.limited { "weight=1 riops=10" } else { "no limits" };
        format!("{:?}: {message}, x {connections}{reads}, {limits}, {image}", self.front)
    }

    /// What the honest tenant keeps at least. A neighbour of equal weight that wants the disk has half of it.
    fn least(&self) -> f64 {
        if self.work != Work::None && !self.limited { 0.45 } else { 0.90 }
    }

    pub(crate) fn measure(&self, place: &mut Place) -> Found {
        let before = place.server.mib("RssAnon");
        let flood = place.flood(self);
        std::thread::sleep(BEGINS);
        let (cpu, began) = (flood.processor_time(), Instant::now());
        let beside = place.honest(TIME);
        let burnt = (flood.processor_time() - cpu) / began.elapsed().as_secs_f64();
        drop(flood);
        let is_back = wait_until(GOES_BACK, || place.server.mib("RssAnon") <= before * 1.1 + 1.0);
        let after = place.server.mib("RssAnon");
        let hog = Player::start(&["hog", &format!("{burnt:.3}")]);
        std::thread::sleep(BEGINS / 4);
        let control = place.honest(TIME);
        drop(hog);
        let memory = place.server.mib("VmHWM");
        let mut misses = self.misses(beside, control, place.flush_time);
        if memory > MEMORY_MOST {
            misses.push(format!("{memory:.0} MiB"));
        }
        if !is_back {
            misses.push(format!("{after:.0} MiB stay, of {before:.0} before"));
        }
        Found { name: self.name(), beside, control, burnt, memory, misses }
    }

    /// What of the honest tenant's is not as promised.
    fn misses(&self, beside: Kept, control: Kept, flush: Duration) -> Vec<String> {
        let mut misses = Vec::new();
        let kept = beside.reads as f64 / control.reads.max(1) as f64;
        if kept < self.least() {
            misses.push(format!("keeps {kept:.2} of {:.2}", self.least()));
        }
        let flush = if self.work == Work::Flush { flush } else { Duration::ZERO };
        let most = control.p99 * 2 + Duration::from_millis(1) + flush;
        if beside.p99 > most {
            misses.push(format!("p99 {:?} of {most:?}", beside.p99));
        }
        misses
    }
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, beside, control, burnt, memory, misses } = self;
        let kept = beside.reads as f64 / control.reads.max(1) as f64;
        let (p99, of_hog) = (beside.p99.as_micros(), control.p99.as_micros());
        write!(
            f,
            "{:>10} {:>12} {kept:>7.2} {p99:>7} {of_hog:>8} {burnt:>6.2} {memory:>4.0}  {name}",
            beside.reads, control.reads
        )?;
        if misses.is_empty() { Ok(()) } else { write!(f, " — {}", misses.join(", ")) }
    }
}

/// Waits until this is so, or for this time. Returns whether it was.
fn wait_until(most: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + most;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    is_so()
}
