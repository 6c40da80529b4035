//! A run as a timeline for <https://ui.perfetto.dev>: Perfetto's trace format, which is protobuf.
//!
//! ```text
//! process bfq ─┬─ disk             ██ b read 64 KiB ██ a read 4 KiB ██        what it works on: begun to finished
//!              ├─ disk idles           ▒▒ idles for a ▒▒                      on purpose
//!              ├─ scheduler         ╷ got the disk   ╷ its budget was used up  each decision, with its reason and numbers
//!              ├─ queued, in the device, head     ▁▂▃▂▁                       counters
//!              ├─ a                ███ read 4 KiB ███                         a client's calls, one track for each in flight,
//!              │                    └ queued ┴ behind others ┴ served ┘       with what became of the request that ended last
//!              └─ b, the flusher …
//! ```
//!
//! Each scheduler is a process. An arrow (flow) goes from a call's request to the disk's work on it. Times
//! are nanoseconds since the start of the run; the viewer takes the clock for that since boot. Names are not
//! interned, so that each event can be read alone; a run of a million requests makes some 700 MB.
//!
//! A packet is written when its event is over; readers put packets in order. Memory is bounded: for each call
//! in flight, the request that completed last.
//
//= perfetto protos/perfetto/trace/trace_packet.proto, track_event/{track_event,track_descriptor,counter_descriptor,debug_annotation}.proto (field numbers)

use super::blocks::numbers;
use super::{Action, Call, Event, Head, Idle, Request, Run, Sink, csv};
use crate::why::words;
use fairhead_core::trace::Reason;
use fairhead_core::{Duration, TaskId};
use fairhead_device::DeviceOp;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The kinds of a track event.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The tracks of a process, by number; then come the members' tracks, and then the tasks'.
const PROCESS: u64 = 0;
const SCHEDULER: u64 = 1;
const QUEUED: u64 = 2;
const ISSUED: u64 = 3;
const MEMBERS: u64 = 16;
/// Of a member: what it works on, when it idles, where its head is.
const WORK: u64 = 0;
const IDLE: u64 = 1;
const HEAD: u64 = 2;
const TASKS: u64 = 1 << 12;

/// Writes what happens; give it to one run after the other, and [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    result: io::Result<()>,
    /// How many runs have begun.
    runs: u64,
    run: Option<Run>,
    /// Lanes of clients whose tracks have been described.
    lanes: BTreeMap<(u32, u32), u64>,
    /// For each call in flight, the request that completed last.
    last: BTreeMap<u64, Request>,
    queued: i64,
    issued: i64,
}

impl<W: Write> Timeline<W> {
    /// Begins a timeline.
    pub fn new(out: W) -> Self {
        let (lanes, last) = (BTreeMap::new(), BTreeMap::new());
        Self { out, result: Ok(()), runs: 0, run: None, lanes, last, queued: 0, issued: 0 }
    }

    /// Ends the timeline.
    ///
    /// # Errors
    /// If some of it could not be written; what came after that was not tried.
    pub fn finish(mut self) -> io::Result<()> {
        self.result?;
        self.out.flush()
    }

    const fn track(&self, number: u64) -> u64 {
        self.runs << 32 | number
    }

    fn name(&self, task: TaskId) -> String {
        self.run.as_ref().map_or("nobody", |run| run.name(task)).to_owned()
    }

    fn write(&mut self, packet: &Message) {
        if self.result.is_ok() {
            let mut whole = Message::default();
            whole.message(1, packet);
            self.result = self.out.write_all(&whole.0);
        }
    }

    /// Says what a track is; `more` adds to it.
    fn describe(&mut self, track: u64, name: &str, more: impl FnOnce(&mut Message)) {
        let mut it = Message::default();
        it.number(1, self.track(track));
        it.text(2, name);
        if track != PROCESS {
            it.number(5, self.track(PROCESS));
            it.number(12, track);
        }
        more(&mut it);
        let mut packet = Message::default();
        packet.message(60, &it);
        packet.number(10, 1);
        if (self.runs, track) == (1, PROCESS) {
            // Nothing is known from before.
            packet.number(13, 1);
        }
        self.write(&packet);
    }

    fn counter(&mut self, track: u64, name: &str, unit: &str) {
        let mut counter = Message::default();
        counter.text(6, unit);
        self.describe(track, name, |it| it.message(8, &counter));
    }

    fn event(&mut self, at: Duration, track: u64, kind: u64, more: impl FnOnce(&mut Message)) {
        let mut it = Message::default();
        it.number(9, kind);
        it.number(11, self.track(track));
        more(&mut it);
        let mut packet = Message::default();
        packet.number(8, at.as_ns());
        packet.number(10, 1);
        packet.message(11, &it);
        self.write(&packet);
    }

    fn slice(
        &mut self,
        (from, to): (Duration, Duration),
        track: u64,
        name: &str,
        more: impl FnOnce(&mut Message),
    ) {
        self.event(from, track, BEGIN, |it| {
            it.text(23, name);
            more(it);
        });
        self.event(to, track, END, |_| {});
    }

    fn count(&mut self, at: Duration, track: u64, value: i64) {
        self.event(at, track, COUNTER, |it| it.signed(30, value));
    }

    /// The track of a task's calls.
    fn lane(&mut self, task: TaskId, lane: u32) -> u64 {
        if let Some(track) = self.lanes.get(&(task.0, lane)) {
            return *track;
        }
        let track = TASKS + self.lanes.len() as u64;
        self.lanes.insert((task.0, lane), track);
        let name = self.name(task);
        self.describe(track, &name, |_| {});
        track
    }

    /// What joins a request's slices, in all runs.
    const fn flow(&self, request: u64) -> u64 {
        self.runs << 48 | (request + 1)
    }
}

impl<W: Write> Sink for Timeline<W> {
    fn begins(&mut self, run: &Run) {
        self.runs += 1;
        self.run = Some(run.clone());
        self.lanes.clear();
        self.last.clear();
        (self.queued, self.issued) = (0, 0);
        let mut process = Message::default();
        process.number(1, self.runs);
        process.text(6, &run.scheduler);
        self.describe(PROCESS, &run.scheduler, |it| {
            it.message(3, &process);
            // Tracks are in the order of their ranks.
            it.number(11, 3);
        });
        self.describe(SCHEDULER, "scheduler", |_| {});
        self.counter(QUEUED, "queued", "requests");
        self.counter(ISSUED, "in the device", "requests");
        for member in 0..run.members {
            let number = if run.members == 1 { String::new() } else { format!(" {member}") };
            let first = MEMBERS + 4 * u64::from(member);
            self.describe(first + WORK, &format!("disk{number}"), |_| {});
            self.describe(first + IDLE, &format!("disk{number} idles on purpose"), |_| {});
            self.counter(first + HEAD, &format!("head{number}"), "sector");
        }
    }

    fn call(&mut self, call: &Call) {
        let last = self.last.remove(&call.id);
        let track = self.lane(call.task, call.lane);
        let Some(ended) = call.ended else { return };
        let what = match call.bytes {
            0 => "fsync".to_owned(),
            n => format!("{} {}", format!("{:?}", call.kind).to_lowercase(), bytes(n)),
        };
        self.event(call.began, track, BEGIN, |it| {
            it.text(23, &what);
            it.argument("call", call.id);
            it.argument("file", u64::from(call.file));
            it.argument("offset_bytes", call.offset);
            it.argument("bytes", call.bytes);
            it.argument("requests", u64::from(call.requests));
        });
        let inside = |r: &Request| r.made >= call.began && r.completed.is_some_and(|at| at <= ended);
        if let Some(r) = last.filter(inside)
            && let (Some(issued), Some(begun), Some(finished)) = (r.issued, r.begun, r.finished)
        {
            let flow = self.flow(r.merged_into.unwrap_or(r.id));
            let begins = |it: &mut Message| it.fixed(47, flow);
            self.slice((r.made, issued), track, "queued", begins);
            self.slice((issued, begun), track, "behind others in the device", |_| {});
            self.slice((begun, finished), track, "served", |it| it.argument("sector", r.sector.0));
        }
        self.event(ended, track, END, |_| {});
    }

    fn request(&mut self, r: &Request) {
        if let Some(call) = r.call.filter(|_| !r.kind.ahead && r.completed.is_some()) {
            self.last.insert(call, *r);
        }
        let (None, Some(begun), Some(finished)) = (r.merged_into, r.begun, r.finished) else { return };
        let size = if r.kind.op == DeviceOp::Flush {
            String::new()
        } else {
            format!(" {}", bytes(r.sectors.bytes()))
        };
        let name = format!("{}: {}{size}", self.name(r.task), csv::op(r.kind.op));
        let (track, flow) = (MEMBERS + 4 * u64::from(r.member) + WORK, self.flow(r.id));
        self.slice((begun, finished), track, &name, |it| {
            it.fixed(48, flow);
            it.argument("request", r.id);
            it.argument("sector", r.sector.0);
            it.argument("sectors", u64::from(r.sectors.0));
            it.argument("queued_ns", r.issued.map_or(0, |at| (at - r.made).as_ns()));
            it.words("chosen", words(r.chosen));
            for (flag, name) in [(r.kind.sync, "sync"), (r.kind.meta, "meta"), (r.kind.ahead, "ahead")] {
                if flag {
                    it.argument(name, 1);
                }
            }
        });
    }

    fn event(&mut self, e: &Event) {
        let (queued, issued) = (self.queued, self.issued);
        match e.action {
            Action::Insert => self.queued += 1,
            Action::Join => self.queued -= 1,
            // What goes past the scheduler was never queued.
            Action::Issue if e.kind.is_some_and(|k| k.op == DeviceOp::Flush) => self.issued += 1,
            Action::Issue => (self.queued, self.issued) = (self.queued - 1, self.issued + 1),
            Action::Requeue => (self.queued, self.issued) = (self.queued + 1, self.issued - 1),
            Action::Complete => self.issued -= 1,
            Action::Queue | Action::BackMerge | Action::FrontMerge | Action::Note => {}
        }
        if queued != self.queued {
            self.count(e.at, QUEUED, self.queued);
        }
        if issued != self.issued {
            self.count(e.at, ISSUED, self.issued);
        }
        if matches!(e.action, Action::Note | Action::Issue) && e.reason != Reason::None {
            let (who, numbers) = (self.name(e.task), numbers(e.detail));
            let what = if e.action == Action::Issue { "chosen: " } else { "" };
            self.event(e.at, SCHEDULER, INSTANT, |it| {
                it.text(23, &format!("{who}: {what}{}", words(e.reason)));
                it.words("reason", &format!("{:?}", e.reason));
                if let Some(request) = e.request {
                    it.argument("request", request);
                }
                for (name, value) in numbers.split_whitespace().filter_map(|n| n.split_once('=')) {
                    it.words(name, value);
                }
            });
        }
    }

    fn idle(&mut self, i: &Idle) {
        let name = match i.task {
            Some(task) => format!("idles for {}", self.name(task)),
            None => "idles".to_owned(),
        };
        let track = MEMBERS + 4 * u64::from(i.member) + IDLE;
        self.slice((i.from, i.to), track, &name, |it| {
            it.words("reason", words(i.reason));
            it.words("hold", &format!("{:?}", i.hold));
        });
    }

    fn head(&mut self, h: &Head) {
        let sector = i64::try_from(h.sector.0).unwrap_or(i64::MAX);
        self.count(h.at, MEMBERS + 4 * u64::from(h.member) + HEAD, sector);
    }
}

fn bytes(n: u64) -> String {
    match n {
        n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}

/// A protobuf message that is being written.
//= Protocol Buffers, Encoding: varint, I64, LEN
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn number(&mut self, field: u64, n: u64) {
        self.varint(field << 3);
        self.varint(n);
    }

    fn signed(&mut self, field: u64, n: i64) {
        self.number(field, n.cast_unsigned());
    }

    fn fixed(&mut self, field: u64, n: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A number that the viewer shows with an event.
    fn argument(&mut self, name: &str, n: u64) {
        let mut it = Self::default();
        it.text(10, name);
        it.number(3, n);
        self.message(4, &it);
    }

    /// Words that the viewer shows with an event.
    fn words(&mut self, name: &str, words: &str) {
        let mut it = Self::default();
        it.text(10, name);
        it.text(6, words);
        self.message(4, &it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_the_documentation_has_them() {
        let mut m = Message::default();
        m.number(1, 150);
        m.text(2, "testing");
        assert_eq!(m.0, b"\x08\x96\x01\x12\x07testing");
        let mut m = Message::default();
        m.signed(30, -1);
        m.fixed(47, 1);
        assert_eq!(m.0[..12], [0xf0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(m.0[12..], [0xf9, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
