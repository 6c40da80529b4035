//! A run as the kernel's block layer would have told it: what `blktrace` records, what `blkparse` prints, or
//! a log that fio replays.
//!
//! | here | there |
//! |---|---|
//! | [`Action::Queue`], `Insert`, `Issue`, `Complete` | `Q`, `I`, `D`, `C`; a flush goes past the scheduler and has no `I` |
//! | [`Action::BackMerge`], `FrontMerge` | `M`, `F` |
//! | [`Action::Join`] | `M` of the request that is no more, as kernels do |
//! | [`Action::Note`], and the reason of each `Issue` | `m`, in words |
//! | a task | a process of that number and name |
//! | a disk, the members of a mirror | `8,0`, `8,16` … |
//!
//! fio's log has requests as they were made, on the device `disk`, without anything of what became of them.

use super::{Action, Event, Kind, Run, Sink};
use crate::why::words;
use fairhead_core::Duration;
use fairhead_core::trace::{Detail, Reason};
use fairhead_device::DeviceOp;
use fairhead_trace::format::{blkparse, blktrace, iolog};
use fairhead_trace::{self as blk, DeviceId, Flags, Names, Op, Record, Target};
use std::io::{self, Write};

enum Writer<W: Write> {
    Blktrace(blktrace::Writer<W>),
    Blkparse(blkparse::Writer<W>),
    Iolog(iolog::Writer<W>),
}

/// Writes what happens in one run.
pub struct Blocks<W: Write> {
    writer: io::Result<Writer<W>>,
    names: Names,
    devices: Vec<DeviceId>,
    tasks: Vec<String>,
}

impl<W: Write> Blocks<W> {
    /// Begins a trace.
    pub fn new(target: Target, out: W) -> Self {
        let writer = match target {
            Target::Blktrace => Ok(Writer::Blktrace(blktrace::Writer::new(out))),
            Target::Blkparse => Ok(Writer::Blkparse(blkparse::Writer::new(out))),
            Target::Iolog => iolog::Writer::new(out).map(Writer::Iolog),
        };
        Self { writer, names: Names::default(), devices: Vec::new(), tasks: Vec::new() }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// If some of it could not be written; what came after that was not tried.
    pub fn finish(self) -> io::Result<()> {
        match self.writer? {
            Writer::Blktrace(w) => w.finish(),
            Writer::Blkparse(w) => w.finish(&self.names),
            Writer::Iolog(w) => w.finish(),
        }
    }

    fn tell(&mut self, e: &Event) -> io::Result<()> {
        let (Ok(writer), names) = (&mut self.writer, &self.names) else { return Ok(()) };
        let device = self.devices[usize::from(e.member)];
        let Some(kind) = e.kind.filter(|_| e.action != Action::Note) else {
            return says(writer, e.at, device, &self.tasks, e, names);
        };
        let (op, flags) = translate(kind);
        let event = |action| blk::Event {
            at: e.at,
            action,
            task: e.task,
            device,
            op,
            flags,
            sector: e.sector.0,
            sectors: e.sectors.0,
        };
        let action = match e.action {
            Action::Queue => blk::Action::Queue,
            Action::Insert => blk::Action::Insert,
            Action::BackMerge | Action::Join => blk::Action::BackMerge,
            Action::FrontMerge => blk::Action::FrontMerge,
            Action::Issue => blk::Action::Issue,
            Action::Complete => blk::Action::Complete,
            Action::Requeue => blk::Action::Requeue,
            Action::Note => return Ok(()),
        };
        match writer {
            Writer::Blktrace(w) => w.write_event(&event(action), names)?,
            Writer::Blkparse(w) => w.write_event(&event(action), names)?,
            Writer::Iolog(w) if e.action == Action::Queue => {
                let mut record = Record::new(e.at, op, e.sector, e.sectors.0);
                (record.task, record.device, record.flags) = (e.task, device, flags);
                return w.write(&record, names);
            }
            Writer::Iolog(_) => return Ok(()),
        }
        if e.action == Action::Issue && e.reason != Reason::None {
            return says(writer, e.at, device, &self.tasks, e, names);
        }
        Ok(())
    }
}

/// A message of the scheduler.
fn says<W: Write>(
    writer: &mut Writer<W>,
    at: Duration,
    device: DeviceId,
    tasks: &[String],
    e: &Event,
    names: &Names,
) -> io::Result<()> {
    let task = tasks.get(e.task.0 as usize).map_or("nobody", String::as_str);
    let text = format!("{task}: {}{}", words(e.reason), numbers(e.detail));
    match writer {
        Writer::Blktrace(w) => w.write_message(at, device, &text, names),
        Writer::Blkparse(w) => w.write_message(at, device, &text, names),
        Writer::Iolog(_) => Ok(()),
    }
}

/// A decision's numbers as `name=value`, each after a blank.
#[must_use]
pub fn numbers(detail: Detail) -> String {
    match detail {
        Detail::None => String::new(),
        Detail::Budget { budget } => format!(" budget={budget}"),
        Detail::Slot { service, budget, slow } => {
            format!(" service={service} budget={budget} slow={}", u8::from(slow))
        }
        Detail::Times { group, start, finish, weight } => {
            let group = group.map_or_else(String::new, |g| format!(" group={}", g.0));
            format!("{group} start={start} finish={finish} weight={weight}")
        }
        Detail::Raised { factor, at_most } => format!(" factor={factor} at_most_ns={}", at_most.as_ns()),
        Detail::Rate { rate } => format!(" rate={rate}"),
    }
}

const fn op(op: DeviceOp) -> Op {
    match op {
        DeviceOp::Read => Op::Read,
        DeviceOp::Write => Op::Write,
        DeviceOp::Discard => Op::Discard,
        DeviceOp::Flush => Op::Flush,
    }
}

/// Reads are not flagged as sync there: they are, unless read ahead.
fn translate(kind: Kind) -> (Op, Flags) {
    let is = |set: bool, flag| if set { flag } else { Flags::NONE };
    let sync = kind.sync && kind.op != DeviceOp::Read;
    let flush = kind.op == DeviceOp::Flush;
    let flags = is(sync, Flags::SYNC) | is(kind.meta, Flags::META) | is(kind.ahead, Flags::AHEAD);
    (op(kind.op), flags | is(flush, Flags::PREFLUSH))
}

impl<W: Write> Sink for Blocks<W> {
    fn begins(&mut self, run: &Run) {
        let device = |i: u32| match &self.writer {
            Ok(Writer::Iolog(_)) if run.members == 1 => "disk".to_owned(),
            Ok(Writer::Iolog(_)) => format!("disk{i}"),
            _ => format!("8,{}", 16 * i),
        };
        let devices: Vec<String> = (0..u32::from(run.members)).map(device).collect();
        // A set has a few members, and names of its own making.
        self.devices = devices.iter().filter_map(|name| self.names.add_device(name).ok()).collect();
        self.tasks = run.tasks.iter().map(|t| t.name.clone()).collect();
        for (i, task) in (0..).zip(&run.tasks) {
            self.names.name_task(fairhead_core::TaskId(i), &task.name);
        }
    }

    fn event(&mut self, event: &Event) {
        if let Err(e) = self.tell(event) {
            self.writer = Err(e);
        }
    }
}
