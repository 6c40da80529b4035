//! What is asked of a replay: fio's options where it has them.

use fairhead_trace::{Op, Record};

/// When requests are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// At their recorded times, whatever the disk does: fio's way.
    #[default]
    Open,
    /// Each request is made as long after the completion that it followed as in the recording; those that
    /// overlapped may overlap again.
    Closed,
    /// Each request is made as soon as fewer than `iodepth` are in flight: fio's `replay_no_stall`.
    NoStall,
    /// Closed if at least nine in ten requests of the trace have a completion; else open.
    Auto,
}

impl Mode {
    /// Its word in job files and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::NoStall => "no-stall",
            Self::Auto => "auto",
        }
    }
}

/// How a trace of a larger disk gets onto a smaller one. One that fits stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fit {
    /// Scale all places down, in pieces of up to 16 MiB that stay whole: distances keep their proportions,
    /// and sequential requests stay sequential within a piece.
    #[default]
    Scale,
    /// Wrap places beyond the end to the start: distances stay, but places that were far apart may coincide.
    Wrap,
}

/// `replay_skip`: kinds of requests that are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skip {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Discards.
    pub trims: bool,
    /// Flushes.
    pub syncs: bool,
}

/// How a trace is replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// `fh_replay`, `replay_no_stall`: when requests are made.
    pub mode: Mode,
    /// `replay_time_scale`: the speed of time in percent; at 200 all gaps are half as long. At least 1, the
    /// default is 100.
    pub speed_pct: u32,
    /// `replay_scale`: places are divided by that. At least 1, the default.
    pub scale: u32,
    /// `replay_align`: places are rounded down to multiples of this number of sectors. At least 1, the
    /// default.
    pub align: u64,
    /// `fh_replay_fit`: how a trace that is larger than the disk is mapped to it.
    pub fit: Fit,
    /// `replay_skip`: what is left out.
    pub skip: Skip,
    /// `replay_redirect`: all devices are one, each request at its own sector of it. Else they lie one after
    /// the other.
    pub redirect: bool,
    /// `fh_replay_devices`: the devices that are replayed; none: all.
    pub devices: Vec<String>,
    /// `fh_replay_clients`: how many tasks have a client of their own. At least 1.
    pub clients_max: u32,
}

impl Options {
    /// How many tasks have a client of their own unless `fh_replay_clients` says otherwise: more than a table
    /// should have.
    pub const CLIENTS: u32 = 16;
    /// The most requests of a client in flight, unless `iodepth` sets it: two of the request pools of Linux.
    pub const DEPTH: u32 = 256;

    /// Whether the request is of a kind that is replayed.
    #[must_use]
    pub const fn takes(&self, record: &Record) -> bool {
        !match record.op {
            Op::Read => self.skip.reads,
            Op::Write => self.skip.writes,
            Op::Discard => self.skip.trims,
            Op::Flush => self.skip.syncs,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            speed_pct: 100,
            scale: 1,
            align: 1,
            fit: Fit::default(),
            skip: Skip::default(),
            redirect: false,
            devices: Vec::new(),
            clients_max: Self::CLIENTS,
        }
    }
}
