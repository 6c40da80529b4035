//! An instance of a library's scheduler, driven by the program's elevator, with each answer checked.
//!
//! What is held here beside the library's memory is which tags wait, and how many requests are at the device.
//! An answer that cannot be true ends the run with a line ([`fault`]): a request that does not wait;
//! `FH_EMPTY` while requests wait; `FH_HOLD` with nothing coming that would end it, or again and again while
//! the device idles; a timer that has passed.

use crate::abi::{
    FH_EMPTY, FH_HOLD, FH_ISSUE, FH_NO_TAG, FhRequest, FhSchedulerAnswer, FhSchedulerControl,
    FhSchedulerLimits, FhSchedulerOps,
};
use crate::watch::{Function, Watched, fail, fault};
use crate::words;
use fairhead_core::config::{ConfigError, Tunable};
use fairhead_core::sched::outside::DynScheduler;
use fairhead_core::{
    Control, Cx, Dispatch, Edges, End, Hold, Instant, Limits, Request, Requests, Tag, Timer,
};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;

/// The alignment of an instance that the header promises.
const ALIGNMENT: usize = 64;

/// The most memory that an instance may ask for.
const MEMORY_MAX: usize = 4 << 30;

/// After this many timers, and answers to hold while the device idles, without an arrival, dispatch or
/// completion between them, the run ends: a scheduler that idles does so a few times.
const IDLE_MAX: u32 = 100_000;

/// The memory of an instance.
struct Memory {
    at: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size.max(1), ALIGNMENT).expect("below 4 GiB");
        // SAFETY: the size is not 0.
        let at = unsafe { alloc_zeroed(layout) };
        let Some(at) = NonNull::new(at) else { handle_alloc_error(layout) };
        Self { at, layout }
    }

    const fn this(&self) -> *mut c_void {
        self.at.as_ptr().cast()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.at.as_ptr(), self.layout) }
    }
}

// SAFETY: the header says that an instance may move to another thread, between calls.
unsafe impl Send for Memory {}

/// A library that is loaded and checked: what an instance needs of it.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) ops: &'static FhSchedulerOps,
    /// The file, as it was named.
    pub(crate) path: String,
    /// Its number in the page that the parent reads.
    pub(crate) number: u32,
    pub(crate) tunables: &'static [Tunable],
}

/// See the [module](self).
pub(crate) struct Hosted {
    ops: &'static FhSchedulerOps,
    path: String,
    watched: Watched,
    memory: Memory,
    /// Which tags wait in the scheduler.
    waits: Vec<bool>,
    waiting: u32,
    at_device: u32,
    /// How many timers, and answers to hold while the device had nothing, there were since a request moved.
    idle_calls: u32,
    /// Asked once, at creation: it is wanted for each request, several times.
    edges: Edges,
}

/// Calls a function of the table that may be missing.
macro_rules! call {
    ($self:ident, $function:ident, $field:ident($($arg:expr),*)) => {
        $self.ops.$field.map(|f| {
            $self.watched.enter(Function::$function);
            // SAFETY: the instance is made and not ended, calls come one after another, and the pointers are
            // to what the header says, for as long as the call.
            let answer = unsafe { f($self.memory.this() $(, $arg)*) };
            $self.watched.leave();
            answer
        })
    };
}

impl Hosted {
    pub(crate) fn new(library: &Library, limits: Limits, values: &[u64]) -> Result<Self, ConfigError> {
        let ops = library.ops;
        let watched = Watched::new(library.number);
        watched.is_here();
        watched.at(0);
        let sizes = FhSchedulerLimits::of(&limits, fail);
        let of = |what: &str| format!("scheduler library '{}': {what}", library.path);
        let (Some(memory), Some(create)) = (ops.memory, ops.create) else {
            fault(&of("its table has changed"))
        };
        watched.enter(Function::Memory);
        // SAFETY: limits for as long as the call.
        let size = unsafe { memory(&raw const sizes) };
        watched.leave();
        if size > MEMORY_MAX {
            fault(&of(&format!("memory asked for {size} bytes, more than {MEMORY_MAX}")));
        }
        let memory = Memory::new(size);
        watched.enter(Function::Create);
        // SAFETY: zeroed memory of the size that was asked for, aligned to 64, limits, and a value for each
        // tunable.
        let wrong = unsafe { create(memory.this(), &raw const sizes, values.as_ptr()) };
        watched.leave();
        if wrong != 0 {
            let index = usize::try_from(wrong).ok().and_then(|i| i.checked_sub(1));
            let Some((i, tunable)) = index.and_then(|i| library.tunables.get(i).map(|t| (i, t))) else {
                fault(&of(&format!("create returned {wrong}: 0 or the number of a tunable was expected")));
            };
            return Err(ConfigError { field: tunable.name, value: values[i], tunable: Some(tunable) });
        }
        let waits = vec![false; usize::from(limits.tags)];
        let (path, edges) = (library.path.clone(), Edges::Both);
        let mut hosted =
            Self { ops, path, watched, memory, waits, waiting: 0, at_device: 0, idle_calls: 0, edges };
        if call!(hosted, MergeRules, ends_only()).unwrap_or(0) != 0 {
            hosted.edges = Edges::Ends;
        }
        Ok(hosted)
    }

    /// Ends the run: the library answered what cannot be.
    #[cold]
    fn broke(&self, function: Function, what: &str) -> ! {
        let last = self.watched.last_request();
        fault(&format!("scheduler library '{}', {}: {what}; {last}", self.path, function.name()))
    }

    /// Notes time and returns it for C.
    #[inline]
    fn at(&self, now: Instant) -> u64 {
        let now = words::ns(now);
        self.watched.at(now);
        now
    }

    /// A request that is passed, for C.
    #[inline]
    fn pass(&self, tag: Tag, rq: &Request) -> FhRequest {
        let rq = FhRequest::from(rq);
        self.watched.passes(tag.0, &rq);
        rq
    }

    /// A request is not with the scheduler any longer.
    fn takes(&mut self, tag: Tag) {
        self.waits[usize::from(tag.0)] = false;
        self.waiting -= 1;
    }

    /// Checks an answer to `dispatch` or `drain`.
    fn judge(&mut self, cx: &mut Cx<'_>, by: Function, answer: i32, rest: FhSchedulerAnswer) -> Dispatch {
        match answer {
            FH_ISSUE => {
                let FhSchedulerAnswer { tag, why, .. } = rest;
                if !self.waits.get(usize::from(tag)).is_some_and(|waits| *waits) {
                    self.broke(
                        by,
                        &format!("answered tag {tag}, which does not wait; {}", waits(self.waiting)),
                    );
                }
                let Some(why) = words::reason(why) else {
                    self.broke(by, &format!("answered {why} as FH_WHY_..., which there is not"));
                };
                self.takes(Tag(tag));
                (self.at_device, self.idle_calls, cx.why) = (self.at_device + 1, 0, why);
                Dispatch::Issue(Tag(tag))
            }
            FH_EMPTY if self.waiting > 0 => {
                let lost = self.waits.iter().position(|w| *w).unwrap_or(0);
                let wait = waits(self.waiting);
                let what = format!("answered FH_EMPTY although {wait}: tag {lost} is lost");
                self.broke(by, &what)
            }
            FH_EMPTY => Dispatch::Empty,
            FH_HOLD => self.judge_hold(by, rest.hold),
            other => self.broke(by, &format!("answered {other}, not FH_EMPTY, FH_ISSUE or FH_HOLD")),
        }
    }

    fn judge_hold(&mut self, by: Function, hold: u8) -> Dispatch {
        let Some(why) = words::hold(hold) else {
            self.broke(by, &format!("answered FH_HOLD with {hold}, which is no FH_HOLD_..."));
        };
        // Requests that were given back are at the device as far as the scheduler knows.
        if self.at_device == 0 && self.waiting > 0 {
            let wait = waits(self.waiting);
            if self.timer_wanted().is_none() {
                let what = format!("answered FH_HOLD although {wait} and no timer or completion is coming");
                self.broke(by, &what);
            }
            self.idles(by);
        }
        Dispatch::Hold(why)
    }

    /// A call that moved no request.
    fn idles(&mut self, by: Function) {
        self.idle_calls += 1;
        if self.idle_calls > IDLE_MAX {
            let wait = waits(self.waiting);
            self.broke(by, &format!("{wait}, and after {IDLE_MAX} timers and answers nothing has changed"));
        }
    }

    fn timer_wanted(&self) -> Option<(Instant, Timer)> {
        let (mut when, mut why) = (0, 0);
        if call!(self, NextTimer, next_timer(&raw mut when, &raw mut why)).unwrap_or(0) == 0 {
            return None;
        }
        let Some(timer) = words::timer(why) else {
            self.broke(Function::NextTimer, &format!("wrote {why}, which is no FH_TIMER_..."));
        };
        Some((words::instant(when), timer))
    }
}

fn waits(count: u32) -> String {
    if count == 1 { "1 request waits".to_owned() } else { format!("{count} requests wait") }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // After a panic the library may be in the middle of anything.
        if !std::thread::panicking() {
            call!(self, Destroy, destroy());
        }
    }
}

impl DynScheduler for Hosted {
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let now = self.at(cx.now);
        let rq = self.pass(tag, &cx.requests[tag].rq);
        self.waits[usize::from(tag.0)] = true;
        (self.waiting, self.idle_calls) = (self.waiting + 1, 0);
        call!(self, Insert, insert(now, tag.0, &raw const rq));
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let (now, mut rest) = (self.at(cx.now), FhSchedulerAnswer::default());
        let answer = call!(self, Dispatch, dispatch(now, &raw mut rest)).unwrap_or(FH_EMPTY);
        self.judge(cx, Function::Dispatch, answer, rest)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let (now, mut rest) = (self.at(cx.now), FhSchedulerAnswer::default());
        let (by, answer) = match call!(self, Drain, drain(now, &raw mut rest)) {
            Some(answer) => (Function::Drain, answer),
            None => {
                let answer = call!(self, Dispatch, dispatch(now, &raw mut rest)).unwrap_or(FH_EMPTY);
                (Function::Dispatch, answer)
            }
        };
        match self.judge(cx, by, answer, rest) {
            Dispatch::Issue(tag) => Some(tag),
            Dispatch::Empty => None,
            Dispatch::Hold(_) if self.waiting == 0 => None,
            Dispatch::Hold(_) => self
                .broke(by, "answered FH_HOLD to a driver that empties it; `drain` must not, and is missing"),
        }
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End) {
        let now = self.at(cx.now);
        // The newest part is the last that is carried.
        let Some(added) = cx.requests.carried(kept).last() else { return };
        let part = FhRequest::from(&cx.requests[added].rq);
        let whole = self.pass(kept, &cx.requests[kept].rq);
        let end = words::end_number(end);
        call!(self, Grown, grown(now, kept.0, end, added.0, &raw const part, &raw const whole));
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let now = self.at(cx.now);
        let (first, part) = (cx.requests[kept].rq, cx.requests[gone].rq);
        let whole = Request {
            len: first.len + part.len,
            prio: first.prio.min(part.prio),
            meta: first.meta | part.meta,
            no_idle: first.no_idle & part.no_idle,
            ..first
        };
        let (whole, part) = (self.pass(kept, &whole), FhRequest::from(&part));
        self.takes(gone);
        if call!(self, Joined, joined(now, kept.0, gone.0, &raw const whole)).is_none() {
            call!(self, Remove, remove(now, gone.0));
            let back = words::end_number(End::Back);
            call!(self, Grown, grown(now, kept.0, back, FH_NO_TAG, &raw const part, &raw const whole));
        }
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let now = self.at(cx.now);
        let rq = self.pass(tag, &cx.requests[tag].rq);
        (self.at_device, self.idle_calls) = (self.at_device - 1, 0);
        call!(self, Complete, complete(now, tag.0, &raw const rq));
    }

    fn requeue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let now = self.at(cx.now);
        self.pass(tag, &cx.requests[tag].rq);
        call!(self, Requeue, requeue(now, tag.0));
    }

    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        let now = self.at(cx.now);
        self.pass(tag, &cx.requests[tag].rq);
        call!(self, Reissue, reissue(now, tag.0));
    }

    fn control(&mut self, cx: &mut Cx<'_>, change: &Control) {
        let now = self.at(cx.now);
        if let Some(change) = FhSchedulerControl::of(change) {
            call!(self, Control, control(now, &raw const change));
        }
    }

    fn retune(&mut self, cx: &mut Cx<'_>, values: &[u64]) -> Result<bool, ConfigError> {
        let now = self.at(cx.now);
        Ok(call!(self, Retune, retune(now, values.as_ptr())).unwrap_or(0) == 1)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        let now = self.at(cx.now);
        call!(self, Timer, timer(now));
        self.idles(Function::Timer);
        if let Some((when, _)) = self.timer_wanted()
            && when <= cx.now
        {
            let late = (cx.now.since(when)).to_string();
            self.broke(Function::NextTimer, &format!("still wants the timer of {late} ago after timer()"));
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.timer_wanted()
    }

    fn wants_run(&self) -> bool {
        call!(self, WantsRun, wants_run()).unwrap_or(1) != 0
    }

    fn prepare_merge(&mut self, cx: &mut Cx<'_>, rq: &Request) {
        let now = self.at(cx.now);
        let rq = FhRequest::from(rq);
        call!(self, PrepareMerge, prepare_merge(now, &raw const rq));
    }

    fn may_merge(&self, _requests: &Requests, into: Tag, rq: &Request) -> bool {
        let rq = FhRequest::from(rq);
        call!(self, MayMerge, may_merge(into.0, &raw const rq)).unwrap_or(1) != 0
    }

    fn has_room(&self, rq: &Request) -> bool {
        let rq = FhRequest::from(rq);
        call!(self, HasRoom, has_room(&raw const rq)).unwrap_or(1) != 0
    }

    fn prefers(&self, done: &Request) -> bool {
        let done = FhRequest::from(done);
        call!(self, Prefers, prefers(&raw const done)).unwrap_or(0) != 0
    }

    fn chooses_groups(&self) -> bool {
        false
    }

    fn front_merges(&self) -> bool {
        call!(self, MergeRules, front_merges()).unwrap_or(1) != 0
    }

    fn edges(&self) -> Edges {
        self.edges
    }

    fn neighbour(&self, tag: Tag, end: End) -> Option<Tag> {
        let next = call!(self, MergeRules, neighbour(tag.0, words::end_number(end)))?;
        if next == FH_NO_TAG {
            return None;
        }
        if !self.waits.get(usize::from(next)).is_some_and(|waits| *waits) {
            self.broke(Function::MergeRules, &format!("neighbour answered tag {next}, which does not wait"));
        }
        Some(Tag(next))
    }

    fn check(&self, _requests: &Requests) {
        let said = call!(self, Check, check()).unwrap_or(0);
        if said != 0 {
            self.broke(Function::Check, &format!("found an inconsistency ({said})"));
        }
    }
}

/// So that the compiler says when the elevator has a reason to hold that no scheduler may answer.
const _: fn(Hold) -> bool = |hold| match hold {
    Hold::Limit => true,
    Hold::Anticipate
    | Hold::SliceIdle
    | Hold::DrainBatch
    | Hold::Depth
    | Hold::HigherClass
    | Hold::IdleClass => false,
};
