//! Two fronts of one disk, side by side: NBD for clients of sockets, and vhost-user for virtual machines.
//!
//! Each has its own numbers of operations and cookies of bios, which tell whose an outcome or answer is.

use crate::bio::Answer;
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::ring::{Outcome, Ring};
use crate::vhost::{COOKIE, KIND, VhostFront};
use fairhead_core::units::Instant;
use std::io;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Both<F> {
    pub(crate) sockets: F,
    pub(crate) guests: VhostFront,
}

impl<F: Front> Front for Both<F> {
    fn begin(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        self.sockets.begin(context, ring)?;
        self.guests.begin(context, ring)
    }

    fn begin_turn(&mut self, context: &mut Context) {
        self.guests.begin_turn(context);
        self.sockets.begin_turn(context);
    }

    fn outcome(
        &mut self,
        context: &mut Context,
        ring: &mut Ring,
        number: usize,
        outcome: Outcome,
    ) -> io::Result<()> {
        if number % 4 == KIND {
            self.guests.outcome(context, ring, number, outcome)
        } else {
            self.sockets.outcome(context, ring, number, outcome)
        }
    }

    fn answer(&mut self, context: &mut Context, answer: Answer<Data>) {
        if answer.cookie & COOKIE != 0 {
            self.guests.answer(context, answer);
        } else {
            self.sockets.answer(context, answer);
        }
    }

    fn turn(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        self.guests.turn(context, ring)?;
        self.sockets.turn(context, ring)
    }

    fn poll(&mut self, context: &mut Context) -> bool {
        self.guests.poll(context) || self.sockets.poll(context)
    }

    fn rest(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        self.guests.rest(context, ring)?;
        self.sockets.rest(context, ring)
    }

    fn next_timer(&self) -> Option<Instant> {
        [self.guests.next_timer(), self.sockets.next_timer()].into_iter().flatten().min()
    }

    fn stop(&mut self, context: &mut Context) {
        self.guests.stop(context);
        self.sockets.stop(context);
    }

    fn hang_up(&mut self) {
        self.guests.hang_up();
        self.sockets.hang_up();
    }

    fn is_quiet(&self) -> bool {
        self.guests.is_quiet() && self.sockets.is_quiet()
    }
}
