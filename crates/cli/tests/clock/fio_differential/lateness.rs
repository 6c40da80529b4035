//! How late the machine is while a real program runs: a thread that sleeps a millisecond at a time, and looks
//! how long that took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long each sleep is.
const NAP: Duration = Duration::from_millis(1);
/// A sleep on an idle machine is late by less than this.
const USUAL: Duration = Duration::from_micros(300);
/// A machine that was late for more than this at once, or for more than a fiftieth of the time, is busy.
const LATE_MAX: Duration = Duration::from_millis(4);

/// A machine on which some program waited for a processor for more than a twentieth of the time is busy: fio
/// spins at the end of its pauses.
const PRESSURE_MAX: u32 = 20;

/// What a watch saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    /// For how long some program waited for a processor, as the kernel says it.
    pub(super) pressed: Duration,
    /// All lateness beyond the usual.
    pub(super) sum: Duration,
    /// The latest sleep's.
    pub(super) max: Duration,
    /// How long it looked.
    pub(super) watched: Duration,
}

impl Late {
    pub(super) fn is_busy(&self) -> bool {
        self.max > LATE_MAX || self.sum * 50 > self.watched || self.pressed * PRESSURE_MAX > self.watched
    }
}

/// A thread that looks.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Late>,
}

impl Watch {
    #[allow(clippy::disallowed_methods, reason = "this measures the real machine")]
    pub(super) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (start, mut late) = (Instant::now(), Late::default());
            let pressed = pressure();
            while !stopped.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(NAP);
                let by = before.elapsed().saturating_sub(NAP + USUAL);
                (late.sum, late.max) = (late.sum + by, late.max.max(by));
            }
            late.watched = start.elapsed();
            late.pressed = pressure().saturating_sub(pressed);
            late
        });
        Self { stop, thread }
    }

    pub(super) fn stop(self) -> Late {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it cannot panic")
    }
}

/// How long some program has waited for a processor since the machine started; nothing where the kernel does
/// not say.
fn pressure() -> Duration {
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find(|l| l.starts_with("some"));
    let total = some.and_then(|l| l.rsplit_once("total=")?.1.trim().parse().ok());
    Duration::from_micros(total.unwrap_or(0))
}
