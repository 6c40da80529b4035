//! The threads of an engine: one, or one for each processor, with a ring each, that take turns.
//!
//! ```text
//!   hand 0   wait ─► turn ─► wait ───────────► turn ─► …        each waits in its own ring;
//!   hand 1   wait ─────────────► turn ─► wait ─► …              turns exclude each other
//! ```
//!
//! All decisions are made in turns, which one lock keeps apart: there is one scheduler and one order of
//! events, as with one thread. But each hand waits for what comes in its ring, and what it has in line goes
//! to the kernel outside of its turn: data are copied, callers are woken, and that on the processor of this
//! hand. To wake a caller on another processor takes a few microseconds in a virtual machine, as much as all
//! the rest of a small read.
//!
//! So what a hand does is more than its turns, and is measured as the [processor time](Hands::processor_time)
//! that it uses.
//!
//! A hand that has something for the ring of another one, which sleeps, [nudges](Hands::nudge) it: a message
//! from ring to ring. A timer needs no nudge: the hand whose turn set it sleeps no longer than until then.
//!
//! What it does not do: know what is done in a turn (`engine.rs`). Messages of other threads, timers of
//! control and the end are for the first hand, the engine's own thread.

use crate::polling::Polling;
use crate::ring::Ring;
use fairhead_core::units::{Duration, Instant};
use std::io;
use std::os::fd::RawFd;

/// What a thread has to itself.
pub(crate) struct Hand {
    pub(crate) ring: Ring,
    pub(crate) polling: Polling,
    /// Whether there was nothing to do before this turn.
    pub(crate) has_waited: bool,
    /// When it began to wait.
    pub(crate) rests_since: Option<Instant>,
}

impl Hand {
    pub(crate) fn new(ring: Ring) -> Self {
        Self { ring, polling: Polling::default(), has_waited: false, rests_since: None }
    }

    /// Whether it is the engine's own thread.
    pub(crate) const fn is_first(&self) -> bool {
        self.ring.hand() == 0
    }
}

/// What the others know of a hand.
#[derive(Clone, Copy, Debug)]
struct Known {
    ring: RawFd,
    /// Whether it sleeps and was not nudged since.
    is_asleep: bool,
    /// The clock of its processor time; `None` where there is none.
    clock: Option<libc::clockid_t>,
}

/// All hands, by number.
#[derive(Debug, Default)]
pub(crate) struct Hands(Vec<Option<Known>>);

impl Hands {
    /// The calling thread begins, with this ring.
    pub(crate) fn join(&mut self, ring: &Ring) {
        let number = ring.hand();
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some(Known { ring: ring.fd(), is_asleep: false, clock: own_clock() });
    }

    /// The processor time that all hands have used until now, in their turns and outside of them.
    pub(crate) fn processor_time(&self) -> Duration {
        let clocks = self.0.iter().flatten().filter_map(|hand| hand.clock);
        clocks.map(time_of).fold(Duration::ZERO, |sum, time| sum + time)
    }

    /// A hand sleeps from now on, or is awake.
    pub(crate) fn sleeps(&mut self, hand: usize, sleeps: bool) {
        if let Some(Some(hand)) = self.0.get_mut(hand) {
            hand.is_asleep = sleeps;
        }
    }

    /// Whether there is more than one.
    pub(crate) fn are_many(&self) -> bool {
        self.0.len() > 1
    }

    /// Removes a hand. It gets no more nudges.
    pub(crate) fn leave(&mut self, hand: usize) {
        self.0[hand] = None;
    }

    /// Wakes those hands that sleep and for which `wanted` holds, with messages from this ring.
    pub(crate) fn nudge(&mut self, ring: &mut Ring, wanted: impl Fn(usize) -> bool) -> io::Result<()> {
        for (number, hand) in self.0.iter_mut().enumerate() {
            let Some(hand) = hand else { continue };
            if number != ring.hand() && hand.is_asleep && wanted(number) {
                hand.is_asleep = false;
                ring.nudge(hand.ring)?;
            }
        }
        Ok(())
    }
}

/// The calling thread runs on this processor alone from now on, if that is permitted.
pub(crate) fn stay_on(processor: usize) {
    // SAFETY: a set is plain bits, and the kernel reads it during the call; a number that the set has no
    // room for is not set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor % (8 * size_of::<libc::cpu_set_t>()), &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// The clock of the calling thread's processor time, for all threads of the process.
fn own_clock() -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: it writes the number, during the call.
    let result = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    (result == 0).then_some(clock)
}

/// What such a clock says; zero once its thread has ended.
fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time, during the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let (secs, ns) = (time.tv_sec as u64, time.tv_nsec as u64);
    if result == 0 { Duration::from_secs(secs) + Duration::from_ns(ns) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies and wake-ups are made outside of turns: a measure of turns alone took them for nothing, and
    /// callers who made them for free.
    #[test]
    fn what_a_hand_does_outside_of_its_turns_counts() {
        const BUSY: Duration = Duration::from_ms(5);
        let (told, heard) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let hand = std::thread::spawn(move || {
            let Ok(ring) = Ring::new() else { return };
            let mut hands = Hands::default();
            hands.join(&ring);
            let clock = own_clock().expect("a clock");
            let before = time_of(clock);
            while time_of(clock).saturating_sub(before) < BUSY {
                std::hint::spin_loop();
            }
            let _ = told.send(hands);
            let _ = ended.recv();
        });
        let Ok(hands) = heard.recv() else { return println!("skipped: no io_uring") };
        let used = hands.processor_time();
        assert!(used >= BUSY, "{used}, as another thread sees it");
        drop(end);
        hand.join().expect("it ends");
        assert_eq!(hands.processor_time(), Duration::ZERO, "a hand that has gone has no time");
    }
}
