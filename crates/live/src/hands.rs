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
//! A hand that has something for the ring of another one, which sleeps, [nudges](Hands::nudge) it: a message
//! from ring to ring. A timer needs no nudge: the hand whose turn set it sleeps no longer than until then.
//!
//! What it does not do: know what is done in a turn (`engine.rs`). Messages of other threads, timers of
//! control and the end are for the first hand, the engine's own thread.

use crate::polling::Polling;
use crate::ring::Ring;
use fairhead_core::units::Instant;
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

/// All hands, by number: the ring of each, and whether it sleeps and was not nudged since.
#[derive(Debug, Default)]
pub(crate) struct Hands(Vec<Option<(RawFd, bool)>>);

impl Hands {
    /// A hand begins.
    pub(crate) fn join(&mut self, ring: &Ring) {
        let number = ring.hand();
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some((ring.fd(), false));
    }

    /// A hand sleeps from now on, or is awake.
    pub(crate) fn sleeps(&mut self, hand: usize, sleeps: bool) {
        if let Some(Some((_, is_asleep))) = self.0.get_mut(hand) {
            *is_asleep = sleeps;
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
            let Some((fd, is_asleep)) = hand else { continue };
            if number != ring.hand() && *is_asleep && wanted(number) {
                *is_asleep = false;
                ring.nudge(*fd)?;
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
