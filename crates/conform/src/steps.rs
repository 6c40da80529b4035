//! From lines to steps: what happened to the scheduler at once, under its lock, and what it said meanwhile.
//!
//! ```text
//! fio-7   Q, G                        told without the lock
//! fio-7   allocated, get_request ┐
//! fio-7   I  RS 96 + 32          │    one step: Insert
//! fio-7   add_request, …, expire ┘
//! fio-7   dispatch requests: 2 busy ┐
//! fio-7   set_in_service …, served  ┘  one step: Dispatch. It sent what the same thread's next D says
//! irq-3   C  RS 8 + 32            ┐
//! irq-3   put_queue               ┘    one step: Complete
//! <idle>  expire (0, …            ]    one step: Timer
//! ```
//!
//! Threads of several processors interleave in a log. But messages are said under one lock (but for a few,
//! which are passed over), so a message of another thread ends the step. What a dispatch attempt sent is
//! known only when its `D` comes, a few lines below: steps are held back until then.

use super::line::{Context, Io, Line, Thread, What};
use super::log::{Log, LogError};
use super::message::{Message, Name, Say};
use super::plugs::Plugs;
use super::positions::Positions;
use super::step::{Kind, Said, Sent, Served, Step};
use fairhead_core::{Duration, Instant, Op, Sector};
use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;

/// What a thread did last, outside the lock.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It has a bio, and no request for it yet.
    Bio(Io),
    /// It finishes a request; when and where the log says so.
    Completes(Io, Instant, u32),
}

/// A step that waits for its `D`.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Counted from the log's beginning.
    step: u64,
    thread: Thread,
    served: Served,
    /// The thread does something else now: the device took no more, and the request waits outside the
    /// scheduler.
    parked: bool,
}

/// Messages under one lock follow each other faster.
const STEP_MAX: Duration = Duration::from_us(500);

/// If a `D` does not come within that many steps it will not be recognised: memory is bounded.
const AHEAD_MAX: usize = 4096;

/// The steps of a log.
pub(super) struct Steps<R> {
    log: Log<R>,
    /// The disk that is looked at: the first one that is seen with an event of interest.
    disk: Option<(u32, u32)>,
    /// When the open step's latest message was said.
    heard: Instant,
    /// Whether there are messages to go by.
    speaks: bool,
    open: Option<Step>,
    phases: BTreeMap<Thread, Phase>,
    ready: VecDeque<Step>,
    /// How many steps have been handed out.
    out: u64,
    waiting: VecDeque<Waiting>,
    /// The queue that each request went to, by direction and first sector.
    homes: BTreeMap<(bool, Sector), Name>,
    positions: Positions,
    plugs: Plugs,
    ended: bool,
}

impl<R: BufRead> Steps<R> {
    /// The steps of a log; `speaks`: of a scheduler whose messages are in it.
    pub(super) fn new(log: Log<R>, speaks: bool) -> Self {
        Self {
            log,
            disk: None,
            heard: Instant::EPOCH,
            speaks,
            open: None,
            phases: BTreeMap::new(),
            ready: VecDeque::new(),
            out: 0,
            waiting: VecDeque::new(),
            homes: BTreeMap::new(),
            positions: Positions::default(),
            plugs: Plugs::default(),
            ended: false,
        }
    }

    pub(super) fn log(&mut self) -> &mut Log<R> {
        &mut self.log
    }

    /// The next step; `None` at the end.
    pub(super) fn next_step(&mut self) -> Result<Option<Step>, LogError> {
        loop {
            let is_decided = self.waiting.front().is_none_or(|w| w.step > self.out);
            if !self.ready.is_empty() && (is_decided || self.ended || self.ready.len() > AHEAD_MAX) {
                if !is_decided {
                    self.waiting.pop_front();
                }
                self.out += 1;
                return Ok(self.ready.pop_front());
            }
            if self.ended {
                return Ok(None);
            }
            match self.log.next_event()? {
                Some(line) => self.take(&line),
                None => self.end(),
            }
        }
    }

    fn end(&mut self) {
        self.close();
        let phases = std::mem::take(&mut self.phases);
        phases.into_iter().for_each(|(thread, phase)| self.complete_silently(thread, phase));
        self.ended = true;
    }

    fn take(&mut self, line: &Line) {
        let is_event = !matches!(line.what, What::Other);
        if is_event && *self.disk.get_or_insert(line.disk) != line.disk {
            return;
        }
        match line.what {
            What::Message(Message { say: Say::Limit, .. }) => {}
            What::Message(message) if self.speaks => self.hear(line, message),
            What::Message(_) => {}
            _ => self.event(line),
        }
    }

    /// Handles an event other than a message: it ends the thread's step, or comes in the middle of it.
    fn event(&mut self, line: &Line) {
        let is_mine = self.open.as_ref().is_some_and(|s| s.thread == line.thread);
        match line.what {
            What::Inserted(io) => self.plugs.inserted(line.thread, &io),
            // The lock was not taken for it: whatever step another thread is in continues.
            What::Merged(io, _) if self.plugs.merged(line.thread, &io) => {
                self.phases.remove(&line.thread);
                return;
            }
            _ => {}
        }
        match line.what {
            What::Inserted(io) if is_mine && matches!(self.opened(), Some(Kind::Bio(_) | Kind::Other)) => {
                return self.become_kind(Kind::Insert(io));
            }
            What::Merged(io, _) if is_mine && matches!(self.opened(), Some(Kind::Bio(_) | Kind::Other)) => {
                return self.become_kind(Kind::Merge(io));
            }
            _ => {}
        }
        if is_mine {
            self.close();
        }
        if !matches!(line.what, What::Issued(_)) && self.disk == Some(line.disk) {
            let mine = self.waiting.iter_mut().filter(|w| w.thread == line.thread);
            mine.for_each(|w| w.parked = true);
        }
        if let Some(phase) = self.phases.remove(&line.thread) {
            self.complete_silently(line.thread, phase);
        }
        match line.what {
            What::Queued(io) => drop(self.phases.insert(line.thread, Phase::Bio(io))),
            What::Got(io) => self.plugs.got(line.thread, line.at, io),
            What::Completed(io) if self.speaks => {
                let phase = Phase::Completes(io, line.at, self.log.number());
                self.phases.insert(line.thread, phase);
            }
            What::Inserted(io) => self.begin(line, Kind::Insert(io)),
            What::Merged(io, _) => self.begin(line, Kind::Merge(io)),
            What::Completed(io) => self.begin(line, Kind::Complete(io)),
            What::Requeued(io) => self.begin(line, Kind::Requeue(io)),
            What::Issued(io) if self.speaks => self.sent(line.thread, io),
            What::Issued(io) => self.begin(line, Kind::Issue(io)),
            What::Message(_) | What::Other => {}
        }
    }

    fn opened(&self) -> Option<Kind> {
        self.open.as_ref().map(|s| s.kind)
    }

    fn become_kind(&mut self, kind: Kind) {
        if let Some(step) = &mut self.open {
            step.kind = kind;
        }
    }

    /// A completion about which nothing was said.
    fn complete_silently(&mut self, thread: Thread, phase: Phase) {
        if let Phase::Completes(io, at, line) = phase {
            let text = format!("C {} + {}", io.start.0, io.len).into();
            let (kind, says) = (Kind::Complete(io), Vec::new());
            self.ready.push_back(Step { line, at, thread, kind, plugged: None, text, says });
        }
    }

    fn hear(&mut self, line: &Line, message: Message) {
        let phase = self.phases.get(&line.thread).copied();
        let is_mine = self.open.as_ref().is_some_and(|s| s.thread == line.thread);
        if let Some(Phase::Completes(io, ..)) = phase {
            self.phases.remove(&line.thread);
            self.begin(line, Kind::Complete(io));
        } else if let Say::Attempt { .. } = message.say {
            self.begin(line, Kind::Dispatch(Sent::Nothing));
        } else if !is_mine || self.starts_anew(&message.say, line.at) {
            let kind = match phase {
                Some(Phase::Bio(io)) => Kind::Bio(io),
                _ if line.thread.context == Context::Hard => Kind::Timer,
                _ => Kind::Other,
            };
            self.begin(line, kind);
        }
        let said = Said {
            line: self.log.number(),
            queue: message.queue,
            say: message.say,
            text: self.log.text().into(),
        };
        self.heard = line.at;
        if let Some(step) = &mut self.open {
            step.says.push(said);
        }
    }

    /// Whether the same thread, without anything else between, begins with another request.
    fn starts_anew(&self, say: &Say, at: Instant) -> bool {
        let of_arrival = matches!(say, Say::Priority { .. } | Say::Allocated | Say::Request { .. });
        let of_timer = matches!(say, Say::Slow(_) | Say::Expired { .. });
        match self.opened() {
            Some(Kind::Insert(_) | Kind::Dispatch(_)) => of_arrival,
            // A timer of the same thread is later than anything under the lock takes.
            Some(Kind::Complete(_)) => of_arrival || of_timer && at > self.heard + STEP_MAX,
            _ => false,
        }
    }

    fn begin(&mut self, line: &Line, kind: Kind) {
        self.close();
        self.open = Some(Step {
            line: self.log.number(),
            at: line.at,
            thread: line.thread,
            kind,
            plugged: self.plugs.since(line.thread),
            text: self.log.text().into(),
            says: Vec::new(),
        });
    }

    fn close(&mut self) {
        let Some(mut step) = self.open.take() else { return };
        self.note_home(&step);
        let at = self.positions.learn(&step);
        match step.kind {
            Kind::Dispatch(Sent::Nothing) => {
                if let Some(served) = step.served() {
                    let served = Served { at, ..served };
                    step.kind = Kind::Dispatch(Sent::Unknown);
                    let number = self.out + self.ready.len() as u64;
                    self.waiting.push_back(Waiting {
                        step: number,
                        thread: step.thread,
                        served,
                        parked: false,
                    });
                }
            }
            Kind::Other if step.find(|s| matches!(s.say, Say::Exit { .. }).then_some(())).is_some() => {
                step.kind = Kind::Exit;
            }
            _ => {}
        }
        self.ready.push_back(step);
    }

    /// A `D`: of the same thread's oldest attempt, as a thread sends what it has just been handed out; else
    /// of the oldest request that waits outside the scheduler, which goes before any other; else of the
    /// oldest attempt that it fits. The attempt after which the log shows that it sent this one comes before
    /// all others, and then those of the queue that the request went to. The thread of an attempt may not
    /// have said anything since, so that its step is still open.
    fn sent(&mut self, thread: Thread, io: Io) {
        let home = self.homes.remove(&(io.op != Op::Read, io.start));
        let known = self.waiting.iter().position(|w| w.served.fits(&io) && w.served.at == Some(io.start));
        let known = known.or_else(|| self.attempt_of(thread, &io, home));
        let Some(at) = known.or_else(|| self.attempt_of(thread, &io, None)) else {
            if let Some(step) = self.open.as_mut().filter(|s| s.served().is_some_and(|s| s.fits(&io))) {
                step.kind = Kind::Dispatch(Sent::Request(io));
            }
            return;
        };
        let Some(waiting) = self.waiting.remove(at) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "at most AHEAD_MAX")]
        let index = waiting.step.saturating_sub(self.out) as usize;
        if let Some(step) = self.ready.get_mut(index) {
            step.kind = Kind::Dispatch(Sent::Request(io));
        }
    }

    /// The attempt that sent a request, if one waits for it; `home`: of that queue.
    fn attempt_of(&self, thread: Thread, io: &Io, home: Option<Name>) -> Option<usize> {
        let fits = |w: &Waiting| w.served.fits(io) && (home.is_none() || w.served.queue == home);
        let oldest =
            |is_one: &dyn Fn(&Waiting) -> bool| self.waiting.iter().position(|w| fits(w) && is_one(w));
        let own = oldest(&|w| w.thread == thread && !w.parked);
        own.or_else(|| oldest(&|w| w.parked)).or_else(|| oldest(&|_| true))
    }

    /// Notes which queue the request of an arrival went to.
    fn note_home(&mut self, step: &Step) {
        let Kind::Insert(io) = step.kind else { return };
        let home = step.find(|s| match s.say {
            Say::Request { .. } => s.queue,
            _ => None,
        });
        if let Some(home) = home.filter(|_| self.homes.len() < AHEAD_MAX) {
            self.homes.insert((io.op != Op::Read, io.start), home);
        }
    }
}
