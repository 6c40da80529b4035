//! The engine of one disk: one thread, or one for each processor that take turns (`hands.rs`). It joins what
//! does no I/O, the [`RequestQueue`], to what does nothing else, the [`Store`].
//!
//! ```text
//!   other threads ──inbox──┐                 ┌──────────── one turn ─────────────┐
//!   front (sockets) ─ring──┼─► hear what came, tell the queue                    │
//!   store ──────────ring───┘   read the clock once; continue who waited (`turns`)│
//!                              while the queue has ios: to the store (and model) │
//!                              answer whom it concerns; fronts send in batches   │
//!                              wait in the ring for an outcome, or until the     │
//!                              next moment of scheduler or model     ────────────┘
//! ```
//!
//! Idling of a scheduler is nothing but that wait: an arrival ends it, and the scheduler decides again. There
//! is one truth about timers, the queue's, and it is asked each turn. With a model the last microseconds
//! before its moment are spun away, since waits end late.
//!
//! What it does not do: policy, protocols.

use crate::bio::{Answer, Bio, BioId, ClientId, Errno, Flush};
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::data::Data;
use crate::emulation::{Emulation, Lateness, Work};
use crate::extents::Extent;
use crate::groups::GroupTable;
use crate::hands::{Hand, Hands, stay_on};
use crate::heap;
use crate::recorder::Recorder;
use crate::request_queue::{IoId, RequestQueue, Start};
use crate::ring::{LARGE, Outcome, Ring, Token};
use crate::store::{Finished, Store};
use crate::turns::{Tenant, Turns, USUAL_WEIGHT};
use fairhead_core::request;
use fairhead_core::units::{Duration, GroupId, Instant};
use fairhead_inbox::{Inbox, Pushed};
use io_uring::opcode::Read;
use io_uring::types::Fd;
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

/// A wait ends about so late; the last of it is spun away when a model's moment is due.
//= docs/reference/live.md#6-timers, measured
const SPIN: Duration = Duration::from_us(30);

/// The bytes that are copied in this thread before replies are sent: at first, in a turn that there was
/// nothing to do before, and otherwise. The first reply goes out alone, so that a client that sleeps wakes up
/// while the others are done. Each further message costs both sides a few microseconds, which a busy engine
/// has not.
const FIRST: u64 = 1;
const BATCH: u64 = 128 << 10;

/// [`BATCH`] for reads whose data only the message copies: until it is sent, nothing has taken any time.
const BATCH_MAPPED: u64 = 512 << 10;

/// An engine that had nothing to do for this time has waited.
const IDLE: Duration = Duration::from_us(5);

/// How often it is measured how long the engine's threads have worked.
const MEASURES: Duration = Duration::from_us(500);

/// Memory that was not needed for this time goes back to the system.
const SETTLES: Duration = Duration::from_secs(2);

/// When this many bytes have gone back, the C library gives back what it has, too.
const MUCH: usize = 1 << 20;

/// How long a stopping engine waits for the store and for clients.
const STOP_MAX: Duration = Duration::from_secs(3);

/// How long the owner of an engine waits for its thread, which may be stuck in the kernel. What is left of
/// five seconds is for the end of the process.
pub(crate) const STOPPED_MAX: std::time::Duration = std::time::Duration::from_secs(4);

/// Cookies of bios that come from other threads have this bit; those of the front do not.
pub(crate) const OUTSIDE: u64 = 1 << 63;

/// Called with the result of a bio.
pub(crate) type Done = Box<dyn FnOnce(Result<(), Errno>, Option<Buffer>) + Send>;

/// What other threads have to say.
pub(crate) enum Message {
    Submit {
        client: ClientId,
        bio: Bio,
        data: Option<Buffer>,
        done: Done,
    },
    Flush {
        client: ClientId,
        flush: Flush,
        done: Done,
    },
    Cancel {
        cookie: u64,
    },
    /// The extents that the store's operation of this number asked for.
    Found {
        number: usize,
        extents: Vec<Extent>,
    },
    /// One of the engine's threads has failed.
    Failed(io::Error),
    /// Anything else, which is rare.
    Call(Box<dyn FnOnce(&mut Context) + Send>),
    Stop,
}

/// What a front and calls from outside work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Instant,
    pub(crate) queue: RequestQueue<Data>,
    pub(crate) groups: GroupTable,
    pub(crate) emulation: Option<Emulation>,
    /// Whether the engine will poll before it sleeps, and ask the front, too.
    pub(crate) polls: bool,
    /// Which tenants may do work that is no I/O, and how much.
    pub(crate) turns: Turns,
    /// The time that this engine's threads have worked until now, if that was measured in this turn.
    pub(crate) busy: Option<Duration>,
}

impl Context {
    /// How long a command takes at least that is no I/O: as long as the limits of its group, and of those
    /// around it, say of a request. Which of both limits it would be is not asked: it is the lower one.
    pub(crate) fn least_time(&self, group: GroupId) -> Duration {
        let groups = self.queue.elevator().groups();
        let all = std::iter::successors(Some(group), |&group| groups.parent(group));
        let limits = all.flat_map(|group| [groups.max(group).riops, groups.max(group).wiops]);
        let lowest = limits.flatten().min();
        lowest.map_or(Duration::ZERO, |rate| Duration::from_ns(1_000_000_000 / rate.get()))
    }

    /// A tenant did this much that is no I/O; see [`Turns::charge`].
    pub(crate) fn charge(&mut self, tenant: &Tenant, cost: Duration, at_least: Duration) {
        self.turns.charge((tenant, self.weight(tenant)), self.now, cost, at_least);
    }

    /// A tenant had this many requests for the disk handed in; see [`Turns::use_up`].
    pub(crate) fn use_up(&mut self, tenant: &Tenant, requests: u64, cost: Duration) {
        self.turns.use_up((tenant, self.weight(tenant)), self.now, requests, cost);
    }

    fn weight(&self, tenant: &Tenant) -> u64 {
        match tenant {
            Tenant::Group(group) => self.queue.elevator().groups().weight(*group).get().into(),
            Tenant::Owner(_) => USUAL_WEIGHT,
        }
    }

    /// How well the model kept time, if there is one.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        self.emulation.as_ref().map(|e| *e.lateness())
    }
}

/// A front: the part that talks to clients, inside the engine's thread.
pub(crate) trait Front: Send {
    /// Whether the rings have to take commands.
    fn sends_commands(&self) -> bool {
        false
    }
    /// The number of threads that the engine is to have, each with a ring, at least one.
    fn hands(&self) -> usize {
        1
    }
    /// What is to be done between two turns of the same thread, without the lock.
    fn apart(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }
    /// Whether [`Self::turn`] is wanted with the ring of this thread.
    fn has_work_for(&self, _: usize) -> bool {
        false
    }
    /// The engine begins.
    fn begin(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()>;
    /// The engine begins another turn: those that had used up their parts of the last one continue.
    fn begin_turn(&mut self, _: &mut Context) {}
    /// One of the front's operations has an outcome.
    fn outcome(
        &mut self,
        context: &mut Context,
        ring: &mut Ring,
        number: usize,
        outcome: Outcome,
    ) -> io::Result<()>;
    /// A bio of the front's has become something.
    fn answer(&mut self, context: &mut Context, answer: Answer<Data>);
    /// All events of this turn have been reported; now is the time to send.
    fn turn(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()>;
    /// Called while the engine polls: receives what has arrived without the ring. Returns whether there was
    /// anything.
    fn poll(&mut self, _: &mut Context) -> bool {
        false
    }
    /// The engine is about to sleep: everything that is to wake it has to be in the ring.
    fn rest(&mut self, _: &mut Context, _: &mut Ring) -> io::Result<()> {
        Ok(())
    }
    /// When [`Self::turn`] is wanted at the latest.
    fn next_timer(&self) -> Option<Instant> {
        None
    }
    /// The engine will stop: the front takes no new clients and no new requests.
    fn stop(&mut self, _: &mut Context) {}
    /// The engine waits no longer: clients that have not taken their answers are hung up on.
    fn hang_up(&mut self) {}
    /// Whether all clients have their answers, and the ring has nothing of the front's memory.
    fn is_quiet(&self) -> bool {
        true
    }
}

/// The front of a disk that only the library uses.
impl Front for () {
    fn begin(&mut self, _: &mut Context, _: &mut Ring) -> io::Result<()> {
        Ok(())
    }
    fn outcome(&mut self, _: &mut Context, _: &mut Ring, _: usize, _: Outcome) -> io::Result<()> {
        Ok(())
    }
    fn answer(&mut self, _: &mut Context, _: Answer<Data>) {}
    fn turn(&mut self, _: &mut Context, _: &mut Ring) -> io::Result<()> {
        Ok(())
    }
}

/// The way to the engine from other threads.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) inbox: Inbox<Message>,
    pub(crate) bell: PipeWriter,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("message")
    }
}

impl Mailbox {
    /// Sends a message to the engine. Returns the message if the engine has stopped.
    pub(crate) fn send(&self, message: Message) -> Result<(), Message> {
        match self.inbox.push(message) {
            Pushed::Done => Ok(()),
            Pushed::Wake => {
                // Without a reader there is no engine either; it has closed the inbox by then, or will.
                let _ = (&self.bell).write_all(&[1]);
                Ok(())
            }
            Pushed::Closed(message) => Err(message),
        }
    }
}

/// How an engine learns of other threads, and of time.
pub(crate) struct Inputs {
    pub(crate) mail: Arc<Mailbox>,
    pub(crate) bell: PipeReader,
    /// Where what comes through the bell is put.
    pub(crate) rung: Buffer,
    pub(crate) clock: Clock,
    pub(crate) recorder: Option<Recorder>,
}

/// A bio or flush from outside, until it is answered.
struct PendingCall {
    bio: Option<BioId>,
    done: Done,
}

/// See the [module](self).
pub(crate) struct Engine<F> {
    context: Context,
    store: Store,
    front: F,
    mail: Arc<Mailbox>,
    bell: PipeReader,
    rung: Buffer,
    pending: BTreeMap<u64, PendingCall>,
    clock: Clock,
    recorder: Option<Recorder>,
    heard: Vec<Message>,
    stops_at: Option<Instant>,
    /// When memory is looked at that is kept for the next requests.
    settles_at: Option<Instant>,
    hands: Hands,
    /// When the turn began that is taken, or was last; and how long all turns took before that.
    turn_began: Instant,
    turns_took: Duration,
    /// When it is measured again how long threads have worked.
    measures_at: Instant,
    /// No thread takes a turn any more.
    is_over: bool,
    /// The bytes that this thread has copied since it last sent: clients take them while it copies the next.
    copied: u64,
    /// Whether there are pages among them.
    has_pages: bool,
    /// The bytes that are copied before they are sent.
    batch: u64,
}

/// An engine that its threads share.
type Shared<F> = Arc<Mutex<Engine<F>>>;

/// How often a thread looks whether the turn of another one is over before it sleeps: for longer than most
/// turns, as to sleep and to be woken takes longer than those.
const LOOKS: u32 = 500;

fn lock<F>(engine: &Shared<F>) -> MutexGuard<'_, Engine<F>> {
    for _ in 0..LOOKS {
        match engine.try_lock() {
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            Ok(engine) => return engine,
            Err(TryLockError::Poisoned(_)) => break,
        }
    }
    engine.lock().expect("a thread of the engine panicked")
}

impl<F: Front + 'static> Engine<F> {
    /// An engine that has not begun.
    pub(crate) fn new(context: Context, store: Store, front: F, inputs: Inputs) -> Self {
        let Inputs { mail, bell, rung, clock, recorder } = inputs;
        Self {
            context,
            store,
            front,
            mail,
            bell,
            rung,
            pending: BTreeMap::new(),
            clock,
            recorder,
            heard: Vec::new(),
            stops_at: None,
            settles_at: None,
            hands: Hands::default(),
            turn_began: Instant::EPOCH,
            turns_took: Duration::ZERO,
            measures_at: Instant::EPOCH,
            is_over: false,
            copied: 0,
            has_pages: false,
            batch: 0,
        }
    }

    /// Works until it is stopped or fails, in the thread that made the ring, and in others if the front wants
    /// them. Then every client that waits gets an error.
    pub(crate) fn run(self, ring: Ring) -> io::Result<()> {
        let hands = self.front.hands();
        let engine = Arc::new(Mutex::new(self));
        // Dropped first, so that it goes before the memory that it may still name; see `stop`.
        let mut hand = Hand::new(ring);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            Self::begin(&engine, &mut hand, hands)?;
            Self::work(&engine, &mut hand)
        }));
        let is_clean = Self::stop(&engine, &mut hand);
        drop(hand);
        if !is_clean {
            // What the store still has keeps its memory for good.
            std::mem::forget(engine);
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn begin(engine: &Shared<F>, hand: &mut Hand, hands: usize) -> io::Result<()> {
        let mut this = lock(engine);
        this.hands.join(&hand.ring);
        this.listen(&mut hand.ring)?;
        let Self { front, context, .. } = &mut *this;
        front.begin(context, &mut hand.ring)?;
        drop(this);
        if hands > 1 {
            stay_on(0);
        }
        for number in 1..hands {
            Self::begin_other(engine, number, hand.ring.threads())?;
        }
        Ok(())
    }

    /// Another thread of the engine.
    fn begin_other(engine: &Shared<F>, number: usize, threads: u32) -> io::Result<()> {
        let engine = Arc::clone(engine);
        let other = move || {
            let mail = Arc::clone(&lock(&engine).mail);
            let work = || {
                stay_on(number);
                let mut ring = Ring::with_commands(number)?;
                ring.set_threads(threads);
                let mut hand = Hand::new(ring);
                let mut this = lock(&engine);
                this.hands.join(&hand.ring);
                let Self { front, context, .. } = &mut *this;
                front.begin(context, &mut hand.ring)?;
                drop(this);
                let outcome = Self::work(&engine, &mut hand);
                lock(&engine).hands.leave(number);
                outcome
            };
            if let Err(e) = work() {
                // An engine that has stopped does not mind.
                let _ = mail.send(Message::Failed(e));
            }
        };
        thread::Builder::new().name("fairhead".to_owned()).spawn(other).map(drop)
    }

    /// A turn, and a wait, and so on, until the engine stops.
    fn work(engine: &Shared<F>, hand: &mut Hand) -> io::Result<()> {
        loop {
            let mut this = lock(engine);
            this.awake(hand);
            if this.is_over {
                return Ok(());
            }
            this.turn(hand)?;
            while let Some(call) = this.front.apart() {
                drop(this);
                call();
                this = lock(engine);
                this.turn(hand)?;
            }
            if hand.is_first() && this.is_at_end() {
                return Ok(());
            }
            let most = this.prepare_to_wait(hand)?;
            drop(this);
            hand.ring.wait(most)?;
        }
    }

    /// All that there is to do.
    fn turn(&mut self, hand: &mut Hand) -> io::Result<()> {
        self.context.now = self.clock.now();
        self.turn_began = self.context.now;
        self.measure();
        self.context.turns.begin(self.context.now, self.context.busy);
        if hand.is_first() {
            self.hear()?;
            self.settle();
        }
        self.front.begin_turn(&mut self.context);
        while let Some(outcome) = hand.ring.next() {
            self.outcome(&mut hand.ring, outcome)?;
        }
        self.model();
        if self.context.queue.next_timer().is_some_and(|at| at <= self.context.now) {
            self.context.queue.timer(self.context.now);
        }
        self.batch = if hand.has_waited { FIRST } else { BATCH };
        self.context.polls = !hand.polling.window.is_zero() && self.context.emulation.is_none();
        // What is sent may make room for more.
        while self.work_once(&mut hand.ring)? {}
        self.record();
        Ok(())
    }

    /// How long the engine has worked. Several threads work outside of their turns, too, and none of them
    /// polls; one thread that polls uses a processor, and works in its turns alone.
    fn measure(&mut self) {
        let now = self.context.now;
        self.context.busy = (now >= self.measures_at).then(|| {
            self.measures_at = now + MEASURES;
            if self.hands.are_many() { self.hands.processor_time() } else { self.turns_took }
        });
    }

    /// Gives memory back that no client needs any more.
    fn settle(&mut self) {
        let now = self.context.now;
        match self.settles_at {
            None if self.store.pool().keeps() => self.settles_at = Some(now + SETTLES),
            Some(at) if at <= now => {
                self.settles_at = None;
                if self.store.pool().settle() >= MUCH {
                    heap::give_back();
                }
            }
            _ => {}
        }
    }

    /// Wakes other threads that sleep while there is something for their rings. The first one sees whether
    /// the engine may stop.
    fn nudge(&mut self, ring: &mut Ring) -> io::Result<()> {
        let Self { front, hands, stops_at, .. } = self;
        hands.nudge(ring, |other| front.has_work_for(other) || other == 0 && stops_at.is_some())
    }

    /// Whether the engine may stop, or waits no longer.
    fn is_at_end(&self) -> bool {
        self.stops_at.is_some_and(|at| self.is_quiet() || at <= self.context.now)
    }

    /// All that can be done now, or as much as is worth sending before the rest. Returns whether there was
    /// anything.
    fn work_once(&mut self, ring: &mut Ring) -> io::Result<bool> {
        let mut any = false;
        let before = self.context.queue.submitted();
        while self.start(ring)? | self.answer() {
            any = true;
            if self.is_worth_sending() {
                break;
            }
        }
        (self.copied, self.has_pages) = (0, false);
        self.batch = BATCH;
        self.front.turn(&mut self.context, ring)?;
        Ok(any || self.context.queue.submitted() != before)
    }

    /// Whether enough has been copied for a message. Pages that are handed over cost the client far more time
    /// than this thread: they go at once.
    const fn is_worth_sending(&self) -> bool {
        self.copied >= self.batch || self.has_pages
    }

    fn record(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.see(self.context.queue.take_events());
        }
    }

    fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.store.under_way() == 0 && self.front.is_quiet()
    }

    fn listen(&mut self, ring: &mut Ring) -> io::Result<()> {
        let (at, len) = (self.rung.as_mut_ptr(), self.rung.len() as u32);
        let read = Read::new(Fd(self.bell.as_raw_fd()), at, len).build();
        // SAFETY: the buffer is the engine's, which is not dropped before the rings are.
        unsafe { ring.push(read, Token::Wake) }
    }

    /// What other threads say.
    fn hear(&mut self) -> io::Result<()> {
        let mut heard = std::mem::take(&mut self.heard);
        self.mail.inbox.take(&mut heard);
        for message in heard.drain(..) {
            match message {
                Message::Submit { done, .. } | Message::Flush { done, .. } if self.stops_at.is_some() => {
                    done(Err(Errno::SHUTDOWN), None);
                }
                Message::Submit { client, bio, data, done } => {
                    // It may be answered at once, and then is not to be found.
                    self.pending.insert(bio.cookie, PendingCall { bio: None, done });
                    let id = self.context.queue.submit(self.context.now, client, bio, data.map(Data::Memory));
                    self.pending.entry(bio.cookie).and_modify(|a| a.bio = Some(id));
                }
                Message::Flush { client, flush, done } => {
                    self.pending.insert(flush.cookie, PendingCall { bio: None, done });
                    self.context.queue.flush(self.context.now, client, flush);
                }
                Message::Cancel { cookie } => {
                    if let Some(bio) = self.pending.get(&cookie).and_then(|a| a.bio) {
                        self.context.queue.cancel(self.context.now, bio);
                    }
                }
                Message::Found { number, extents } => {
                    self.store.found(&mut self.context.queue, number, extents);
                    self.store_finished();
                }
                Message::Failed(e) => return Err(e),
                Message::Call(call) => call(&mut self.context),
                Message::Stop => {
                    self.stops_at = Some(self.context.now + STOP_MAX);
                    self.front.stop(&mut self.context);
                }
            }
        }
        self.heard = heard;
        Ok(())
    }

    fn outcome(&mut self, ring: &mut Ring, outcome: Outcome) -> io::Result<()> {
        match outcome.token {
            Token::Wake => self.listen(ring),
            Token::Front(number) => self.front.outcome(&mut self.context, ring, number, outcome),
            Token::Store(number) => {
                let queue = &mut self.context.queue;
                self.store.completed(ring, queue, number, outcome.result)?;
                self.store_finished();
                Ok(())
            }
        }
    }

    fn store_finished(&mut self) {
        while let Some(finished) = self.store.next_finished() {
            match finished {
                Finished::Io(io, results) => self.stored(Work::Io(io), results),
                Finished::Flush(file, result) => self.stored(Work::Flush(file), vec![result]),
            }
        }
    }

    /// The store has done its part of something.
    fn stored(&mut self, work: Work, results: Vec<Result<(), Errno>>) {
        let results = match &mut self.context.emulation {
            Some(model) => model.stored(self.context.now, work, results),
            None => Some(results),
        };
        if let Some(results) = results {
            self.finished(work, &results);
        }
    }

    fn model(&mut self) {
        while let Some((work, results)) =
            self.context.emulation.as_mut().and_then(|m| m.poll(self.context.now))
        {
            self.finished(work, &results);
        }
    }

    fn finished(&mut self, work: Work, results: &[Result<(), Errno>]) {
        match work {
            Work::Io(io) => self.context.queue.finished(self.context.now, io, results),
            Work::Flush(file) => self.context.queue.flushed(self.context.now, file, results[0]),
        }
    }

    /// Ios go to the disk, until enough have been done here to be sent. Returns whether there were any.
    fn start(&mut self, ring: &mut Ring) -> io::Result<bool> {
        let mut any = false;
        while let Some(start) = self.context.queue.next(self.context.now) {
            any = true;
            let Context { queue, emulation, now, .. } = &mut self.context;
            match start {
                Start::Io(io) => {
                    let is_read = queue.request(io).op == request::Op::Read;
                    if let Some(model) = emulation {
                        let fua = queue.pieces(io).iter().any(|p| p.fua);
                        model.start(*now, io, queue.request(io), fua);
                    }
                    if let Some(bytes) = self.store.start(ring, queue, io)? {
                        self.done_here(io);
                        self.copied += bytes;
                        self.has_pages |= is_read && bytes >= LARGE;
                        self.batch = match self.store.is_mapped() {
                            true => BATCH_MAPPED,
                            false => self.batch.min(BATCH),
                        };
                        if self.is_worth_sending() {
                            return Ok(true);
                        }
                    }
                }
                Start::Flush(file) => {
                    if let Some(model) = emulation {
                        model.flush(*now, file);
                    }
                    self.store.flush(ring, file)?;
                }
            }
        }
        Ok(any)
    }

    /// An io has come to its end in the middle of a turn.
    fn done_here(&mut self, io: IoId) {
        // The scheduler hears how long it took.
        self.context.now = self.clock.now();
        if self.context.emulation.is_some() {
            return self.stored(Work::Io(io), self.store.results().to_vec());
        }
        self.context.queue.finished(self.context.now, io, self.store.results());
    }

    /// Passes the answers of the queue on to the clients. Returns whether there was anything.
    fn answer(&mut self) -> bool {
        let mut any = false;
        while let Some(answer) = self.context.queue.answer() {
            any = true;
            self.context.groups.latencies.see(self.context.now, &answer);
            if answer.cookie & OUTSIDE == 0 {
                self.front.answer(&mut self.context, answer);
            } else if let Some(call) = self.pending.remove(&answer.cookie) {
                (call.done)(answer.result, answer.data.and_then(Data::memory));
            }
        }
        any
    }

    /// How long a thread may wait in its ring; `None`: until something comes.
    fn prepare_to_wait(&mut self, hand: &mut Hand) -> io::Result<Option<Duration>> {
        let now = self.clock.now();
        self.turns_took += now.saturating_since(self.turn_began);
        let timer =
            [self.context.queue.next_timer(), self.front.next_timer(), self.stops_at, self.settles_at]
                .into_iter()
                .flatten()
                .min();
        let moment = self.context.emulation.as_ref().and_then(Emulation::next_event);
        let due = [timer, moment.map(|at| at - SPIN)].into_iter().flatten().min();
        let most = due.map(|at| at.saturating_since(now));
        if most == Some(Duration::ZERO) {
            self.front.rest(&mut self.context, &mut hand.ring)?;
            self.nudge(&mut hand.ring)?;
            return Ok(most);
        }
        let has_news = self.look(hand, now, most)?;
        if !has_news {
            self.front.rest(&mut self.context, &mut hand.ring)?;
        }
        self.nudge(&mut hand.ring)?;
        let sleeps = !has_news && (!hand.is_first() || self.mail.inbox.sleep());
        hand.rests_since = Some(now);
        self.hands.sleeps(hand.ring.hand(), sleeps);
        Ok(if sleeps { most } else { Some(Duration::ZERO) })
    }

    /// The wait of a thread is over.
    fn awake(&mut self, hand: &mut Hand) {
        self.hands.sleeps(hand.ring.hand(), false);
        let Some(since) = hand.rests_since.take() else { return };
        if hand.is_first() {
            self.mail.inbox.wake();
        }
        let idle = self.clock.now().saturating_since(since);
        hand.has_waited = idle >= IDLE;
        hand.polling.learn(idle);
    }

    /// For a little while. Returns whether there is news.
    fn look(&mut self, hand: &mut Hand, now: Instant, most: Option<Duration>) -> io::Result<bool> {
        let window = most.map_or(hand.polling.window, |most| most.min(hand.polling.window));
        // A thread that runs a model keeps its processor; workers need the processor more than it does; and
        // of several, each is where its callers are, which need it, too.
        let has_others = self.hands.are_many();
        if window.is_zero() || has_others || self.context.emulation.is_some() || hand.ring.has_busy_workers()
        {
            return Ok(false);
        }
        // What is in line has to be sent before anything comes of it.
        hand.ring.wait(Some(Duration::ZERO))?;
        let mut last = self.clock.now();
        while last < now + window {
            self.context.now = last;
            if self.front.poll(&mut self.context) || hand.ring.has_news() || self.mail.inbox.has_messages() {
                return Ok(true);
            }
            std::thread::yield_now();
            let back = self.clock.now();
            if !hand.polling.gave_way(back.saturating_since(last)) {
                break;
            }
            last = back;
        }
        Ok(false)
    }

    /// Nothing is heard any more. Returns whether no memory is in use.
    fn stop(engine: &Shared<F>, hand: &mut Hand) -> bool {
        // After a panic in a turn, too.
        let mut this = engine.lock().unwrap_or_else(PoisonError::into_inner);
        this.is_over = true;
        // Their rings go with them. Failing that, they have the memory as long as they want.
        let _ = this.hands.nudge(&mut hand.ring, |_| true);
        let _ = hand.ring.wait(Some(Duration::ZERO));
        this.close();
        this.store.under_way() == 0 && this.front.is_quiet()
    }

    fn close(&mut self) {
        // Workers that send to clients which do not read end with this, and so does the process.
        self.front.hang_up();
        self.record();
        drop(self.recorder.take());
        for message in self.mail.inbox.close() {
            if let Message::Submit { done, .. } | Message::Flush { done, .. } = message {
                done(Err(Errno::SHUTDOWN), None);
            }
        }
        for (_, call) in std::mem::take(&mut self.pending) {
            (call.done)(Err(Errno::SHUTDOWN), None);
        }
    }
}
