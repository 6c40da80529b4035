//! What says which calls a client makes: one of several kinds, which never change.
//!
//! A pattern needs its client's chance, limits and calls in flight, and is asked by [`super::client`]. A
//! client that replays a recording is led by it: [`super::traced`] and [`super::replay`] say what its lanes
//! do. All others only know the time, and answer with a [`Turn`].

use super::pattern::Pattern;
use super::player::Player;
use super::program::{Running, Turn};
use super::startup::StartUps;
use crate::job::{Job, Program};
use crate::metrics::{Frames, StartUp};
use fairhead_core::Instant;

/// What says which calls a client makes. Those that are large are in boxes, as it is moved for each call.
#[derive(Debug)]
pub(super) enum Script {
    /// What `rw` says; taken out while it is asked.
    Pattern(Option<Box<Pattern>>),
    /// A program that reads until it has all.
    Program(Box<Running>),
    /// Starts of an application.
    StartUps(Box<StartUps>),
    /// A player of a film.
    Player(Box<Player>),
    /// A replayed trace: which, and which of its tasks.
    Traced(usize, usize),
    /// A recorded start-up that several clients replay.
    Replay,
    /// Nothing.
    None,
}

impl Script {
    /// Returns the script of a job with a program, in a region of `span` sectors; `startups` makes those of
    /// an application. Recordings are added when they have been read.
    pub(super) fn of(job: &Job, span: u64, startups: impl FnOnce() -> Option<StartUps>) -> Self {
        match job.program {
            Some(Program::Player { bits_per_s }) => Self::Player(Box::new(Player::new(bits_per_s, span))),
            Some(Program::StartUp(_)) => startups().map_or(Self::None, |s| Self::StartUps(Box::new(s))),
            Some(program) => Running::new(program, span).map_or(Self::None, |p| Self::Program(Box::new(p))),
            None => Self::None,
        }
    }

    /// Returns what a lane does next, unless a pattern or a recording says so.
    pub(super) fn next(&mut self, now: Instant) -> Turn {
        match self {
            Self::Program(program) => program.next().map_or(Turn::End, Turn::Read),
            Self::StartUps(startups) => startups.next(now),
            Self::Player(player) => player.next(now),
            Self::Pattern(_) | Self::Traced(..) | Self::Replay | Self::None => Turn::End,
        }
    }

    /// The client's time is over.
    pub(super) fn give_up(&mut self, now: Instant) {
        match self {
            Self::StartUps(startups) => startups.give_up(now),
            Self::Player(player) => player.give_up(now),
            _ => {}
        }
    }

    /// The client's run ends. Returns its starts and its frames, where it has such.
    pub(super) fn end(mut self, now: Instant) -> (Option<Vec<StartUp>>, Option<Frames>) {
        self.give_up(now);
        match self {
            Self::StartUps(startups) => (Some(startups.into_times()), None),
            Self::Player(player) => (None, Some(player.frames())),
            _ => (None, None),
        }
    }

    /// Whether a recording says what the client does.
    #[inline]
    pub(super) const fn is_led(&self) -> bool {
        matches!(self, Self::Traced(..) | Self::Replay)
    }

    /// Returns which trace it replays, and which of its tasks.
    #[inline]
    pub(super) const fn traced(&self) -> Option<(usize, usize)> {
        match *self {
            Self::Traced(trace, task) => Some((trace, task)),
            _ => None,
        }
    }

    /// Returns the pattern that says what the client does, to be put back when it has been asked.
    #[inline]
    pub(super) fn take_pattern(&mut self) -> Option<Box<Pattern>> {
        if let Self::Pattern(pattern) = self { pattern.take() } else { None }
    }

    #[inline]
    pub(super) fn put_back(&mut self, pattern: Box<Pattern>) {
        if let Self::Pattern(place) = self {
            *place = Some(pattern);
        }
    }

    /// Whether a pattern says what the client does.
    #[inline]
    pub(super) const fn is_pattern(&self) -> bool {
        matches!(self, Self::Pattern(_))
    }
}
