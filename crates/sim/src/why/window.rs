//! Why a client was slow for a while: its time in a window against its own time outside.
//!
//! ```text
//!   first run: calls ─► how long the call under way took, looked at any time ─► the window where that was most
//!   second run: books inside and outside ─┐
//!               decisions inside ─────────┴► what grew most ─► the cause, in a sentence
//! ```
//!
//! Without a window the run is made twice: which window is the worst is known when all calls have ended, and
//! the second run is the first one again, bit by bit. The worst is where the mean over its time of *how long
//! the call in flight took in all* is largest: a call of a second counts throughout its second, and a
//! thousand short ones count little.
//!
//! What is to blame is what took more time than it does for as many of the client's other calls; and if
//! nothing did, what took most. Example: in the window a reader ends 5 calls and spends 0.7 s of it queued
//! behind `backup`; its 100 other calls were queued behind that for 4 s in all, so that 5 of them make 0.2 s.
//! The 0.5 s more are what made it slow, if no other part grew as much.
//!
//! What it does not do: prove. A part that grew may have grown for another's sake; the decisions with their
//! times, and the stories of its slowest calls, are there to judge by.

use super::{Account, Blame, Report, Story, count, words};
use crate::engine::{Books, Scenario, observe};
use crate::journal::{self, Action, Call, End, Event, Idle, Sink};
use crate::metrics::{Outcome, Result};
use fairhead_core::trace::{Detail, Reason};
use fairhead_core::{Duration, GroupId, Instant, TaskId};

/// A part of a run, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From when.
    pub from: Duration,
    /// Until when; later than `from`.
    pub to: Duration,
}

impl Window {
    /// How long it is.
    #[must_use]
    pub fn len(&self) -> Duration {
        self.to - self.from
    }

    pub(super) fn holds(&self, at: Duration) -> bool {
        self.from <= at && at < self.to
    }

    /// Whether some of that time is in it.
    pub(super) fn overlaps(&self, from: Instant, to: Instant) -> bool {
        from < Instant::EPOCH + self.to && Instant::EPOCH + self.from < to
    }
}

/// Which part of the run is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// No part of it.
    Throughout,
    /// The given part.
    Within(Window),
    /// Its worst part.
    Worst,
}

/// How many of a kind of things in the window are kept; others are counted.
pub const KEPT: usize = 2000;

/// The report about a window. Accounts are of all clients in question together.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// Which.
    pub window: Window,
    /// Whether it was found to be the worst, and not asked for.
    pub picked: bool,
    /// The clients' time in it.
    pub inside: Account,
    /// The account of the clients' time outside the window.
    pub outside: Account,
    /// The calls that ended in the window.
    pub calls: Calls,
    /// The calls that ended outside the window.
    pub calls_outside: Calls,
    /// Why the clients were slow; `None` if they did nothing then.
    pub cause: Option<Cause>,
    /// Why requests were chosen in it, and how often.
    pub chosen: Vec<(TaskId, Reason, u64)>,
    /// When the disk idled in it on purpose, as far as it is in it; at most [`KEPT`].
    pub idles: Vec<Idle>,
    /// The decisions that the scheduler noted in it, but for bookkeeping (virtual times, rates); at most
    /// [`KEPT`].
    pub decisions: Vec<Decision>,
    /// How many idles and decisions were not kept.
    pub dropped: u64,
    /// The slowest of the clients' calls that were in flight in it, the slowest first; at most
    /// [`super::SLOWEST`].
    pub slowest: Vec<Story>,
}

/// Calls in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Calls {
    /// How many ended.
    pub ended: u64,
    /// The bytes that these calls moved.
    pub bytes: u64,
    /// How long they took, added up.
    pub took: Duration,
}

impl Calls {
    /// How long one took in the mean; nothing of none.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.ended > 0).then(|| self.took / self.ended)
    }
}

/// A decision that the scheduler noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Duration,
    /// Why, or what.
    pub reason: Reason,
    /// The task that it is about.
    pub task: TaskId,
    /// The group that the decision is about.
    pub group: GroupId,
    /// In numbers.
    pub detail: Detail,
}

/// A kind of what takes a client's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queued while the device worked for others.
    Queued,
    /// Queued while the disk idled for others.
    Idled,
    /// In the device behind others.
    Behind,
    /// The device worked on its own requests.
    Served,
    /// Queued, and nothing happened.
    Held,
    /// All requests of the pool were taken.
    Tag,
    /// Too much was dirty.
    Throttled,
    /// On a CPU, or in line for one.
    Computing,
}

/// Why the clients were slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What.
    pub kind: Kind,
    /// The job that the clients waited for, if the [`Kind`] has one.
    pub job: Option<String>,
    /// Its tasks.
    pub tasks: Vec<TaskId>,
    /// How much of the window's time it took, of all clients together.
    pub time: Duration,
    /// How much of it as many other calls took; `None` if there were none.
    pub usual: Option<Duration>,
}

/// Runs a scenario, and says where some clients' time went, in all and in a window. `sink` hears what
/// happens, too.
///
/// # Errors
/// If the scenario cannot be.
pub fn answer(
    scenario: &Scenario,
    clients: &[usize],
    when: When,
    sink: &mut dyn Sink,
) -> Result<(Outcome, Report)> {
    let window = match when {
        When::Throughout => None,
        When::Within(window) => Some(window),
        When::Worst => worst(scenario, clients)?,
    };
    let Some(window) = window else { return journal::record_and_explain(scenario, clients, sink) };
    let mut watcher = Watcher::new(window);
    let mut both = journal::Sinks(vec![&mut watcher, sink]);
    let books = Books { clients, window: Some(window), ceiling: None };
    let (outcome, report) = observe(scenario, Some(books), Some(&mut both))?;
    let mut report = report.expect("clients were given");
    if let Some(told) = &mut report.window {
        told.picked = when == When::Worst;
        (told.chosen, told.idles) = (watcher.chosen, watcher.idles);
        (told.decisions, told.dropped) = (watcher.decisions, watcher.dropped);
    }
    report.find_cause();
    Ok((outcome, report))
}

// ---- the worst window
// ------------------------------------------------------------------------------------------------

/// The window in which these clients were slowest; `None` if they made no call.
fn worst(scenario: &Scenario, clients: &[usize]) -> Result<Option<Window>> {
    let mut slowness = Slowness::new(clients);
    journal::record(scenario, &mut slowness)?;
    Ok(slowness.worst())
}

/// For each piece of the run, the sum over the calls in flight of the time that the call took in all, times
/// the time for which it was in flight in the piece.
struct Slowness<'c> {
    clients: &'c [usize],
    /// Calls that never ended.
    open: Vec<Call>,
    /// How long a piece is; doubled when there would be too many.
    piece: Duration,
    pieces: Vec<u128>,
    longest: Duration,
    end: Duration,
}

/// Pieces at most, and how long they are at first.
const PIECES: usize = 4096;
const PIECE: Duration = Duration::from_ms(1);
/// A window is a tenth of the run, but not less than that nor more than that, or else as long as the longest
/// call.
const PART: u64 = 10;
const SHORTEST: Duration = Duration::from_ms(100);
const LONGEST: Duration = Duration::from_secs(1);

impl<'c> Slowness<'c> {
    fn new(clients: &'c [usize]) -> Self {
        let (piece, pieces, zero) = (PIECE, Vec::new(), Duration::ZERO);
        Self { clients, open: Vec::new(), piece, pieces, longest: zero, end: zero }
    }

    fn add(&mut self, from: Duration, to: Duration) {
        let took = to.saturating_sub(from);
        self.longest = self.longest.max(took);
        while to.as_ns() / self.piece.as_ns() >= PIECES as u64 {
            self.piece = self.piece * 2;
            let halves = self.pieces.chunks(2).map(|c| c.iter().sum()).collect();
            self.pieces = halves;
        }
        let (piece, mut at) = (self.piece.as_ns(), from.as_ns());
        while at < to.as_ns() {
            let index = at / piece;
            let next = ((index + 1) * piece).min(to.as_ns());
            #[allow(clippy::cast_possible_truncation, reason = "below the number of pieces")]
            let index = index as usize;
            if self.pieces.len() <= index {
                self.pieces.resize(index + 1, 0);
            }
            self.pieces[index] += u128::from(next - at) * u128::from(took.as_ns());
            at = next;
        }
    }

    /// The first of the windows in which most was added.
    fn worst(&self) -> Option<Window> {
        let usual = (self.end / PART).max(SHORTEST).min(LONGEST).max(self.longest);
        let len = usual.min(self.end);
        let n = usize::try_from(len.as_ns().div_ceil(self.piece.as_ns())).unwrap_or(usize::MAX).max(1);
        let n = n.min(self.pieces.len());
        if self.pieces.iter().all(|p| *p == 0) {
            return None;
        }
        let mut sum: u128 = self.pieces[..n].iter().sum();
        let (mut most, mut first) = (sum, 0);
        for i in n..self.pieces.len() {
            sum = sum + self.pieces[i] - self.pieces[i - n];
            if sum > most {
                (most, first) = (sum, i + 1 - n);
            }
        }
        let from = self.piece * first as u64;
        let to = (from + self.piece * n as u64).min(self.end);
        (from < to).then_some(Window { from, to })
    }
}

impl Sink for Slowness<'_> {
    fn call(&mut self, call: &Call) {
        if !self.clients.contains(&call.client) {
            return;
        }
        match call.ended {
            Some(ended) => self.add(call.began, ended),
            None => self.open.push(*call),
        }
    }

    fn ends(&mut self, end: &End) {
        self.end = end.at;
        for call in std::mem::take(&mut self.open) {
            self.add(call.began, end.at);
        }
    }
}

// ---- what happened in it
// ---------------------------------------------------------------------------------------------

/// Keeps what was decided in a window.
struct Watcher {
    window: Window,
    chosen: Vec<(TaskId, Reason, u64)>,
    idles: Vec<Idle>,
    decisions: Vec<Decision>,
    dropped: u64,
}

impl Watcher {
    const fn new(window: Window) -> Self {
        Self { window, chosen: Vec::new(), idles: Vec::new(), decisions: Vec::new(), dropped: 0 }
    }
}

impl Sink for Watcher {
    fn event(&mut self, e: &Event) {
        if !self.window.holds(e.at) || matches!(e.reason, Reason::Times | Reason::RateUpdate) {
            return;
        }
        match e.action {
            // A flush goes past the scheduler.
            Action::Issue if e.reason == Reason::None => {}
            Action::Issue => match self.chosen.iter_mut().find(|c| (c.0, c.1) == (e.task, e.reason)) {
                Some(entry) => entry.2 += 1,
                None => self.chosen.push((e.task, e.reason, 1)),
            },
            Action::Note if self.decisions.len() < KEPT => {
                let Event { at, reason, task, group, detail, .. } = *e;
                self.decisions.push(Decision { at, reason, task, group, detail });
            }
            Action::Note => self.dropped += 1,
            _ => {}
        }
    }

    fn idle(&mut self, i: &Idle) {
        let (from, to) = (i.from.max(self.window.from), i.to.min(self.window.to));
        match from < to {
            true if self.idles.len() < KEPT => self.idles.push(Idle { from, to, ..*i }),
            true => self.dropped += 1,
            false => {}
        }
    }
}

// ---- the cause
// -------------------------------------------------------------------------------------------------------

/// A part of some books.
type Of<T> = fn(&T) -> Duration;

/// A possible cause: its kind, the job and tasks behind it, and the time inside and outside the window.
type Suspect = (Kind, Option<(String, Vec<TaskId>)>, Duration, Duration);

/// A part of the time that grew by less than this share of the window made no client slow.
const WORTH_TELLING: u64 = 20;

impl Report {
    /// The job of a task: its name without the number of the clone.
    #[must_use]
    pub fn job(&self, task: TaskId) -> &str {
        let name = self.name(task);
        let is_clone = |n: &str| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit());
        name.rsplit_once('.').filter(|(_, n)| is_clone(n)).map_or(name, |(job, _)| job)
    }

    fn find_cause(&mut self) {
        let Some(told) = &self.window else { return };
        let (inside, calls) = (told.inside.total(), (told.calls.ended, told.calls_outside.ended));
        let usual = |time: Duration| {
            let ns = (u128::from(time.as_ns()) * u128::from(calls.0)).checked_div(u128::from(calls.1))?;
            Some(Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX)))
        };
        let excess = |s: &Suspect| s.2.saturating_sub(usual(s.3).unwrap_or_default());
        let suspects = self.suspects(&told.inside, &told.outside);
        let worst = suspects.iter().max_by_key(|s| excess(s));
        let grew = worst.filter(|s| excess(s) >= inside / WORTH_TELLING && !excess(s).is_zero());
        let found = grew.or_else(|| suspects.iter().max_by_key(|s| s.2).filter(|s| !s.2.is_zero()));
        let cause = found.map(|(kind, who, time, other)| {
            let (job, tasks) = who.clone().unzip();
            Cause { kind: *kind, job, tasks: tasks.unwrap_or_default(), time: *time, usual: usual(*other) }
        });
        if let Some(told) = &mut self.window {
            told.cause = cause;
        }
    }

    /// All possible causes. Of equals the first is.
    fn suspects(&self, inside: &Account, outside: &Account) -> Vec<Suspect> {
        let own: [(Kind, Of<Account>); 5] = [
            (Kind::Served, |a| a.served),
            (Kind::Held, |a| a.held),
            (Kind::Tag, |a| a.tag),
            (Kind::Throttled, |a| a.throttled),
            (Kind::Computing, |a| a.computing),
        ];
        let mut suspects: Vec<Suspect> =
            own.iter().map(|(kind, of)| (*kind, None, of(inside), of(outside))).collect();
        let mut jobs: Vec<(String, Vec<TaskId>)> = Vec::new();
        for blame in &inside.blame {
            let job = self.job(blame.task);
            match jobs.iter_mut().find(|j| j.0 == job) {
                Some(entry) => entry.1.push(blame.task),
                None => jobs.push((job.to_owned(), vec![blame.task])),
            }
        }
        let shared: [(Kind, Of<Blame>); 3] =
            [(Kind::Queued, |b| b.queued), (Kind::Idled, |b| b.idled), (Kind::Behind, |b| b.device)];
        for (job, tasks) in jobs {
            for (kind, of) in shared {
                let all = |a: &Account| {
                    let theirs = a.blame.iter().filter(|b| self.job(b.task) == job);
                    theirs.fold(Duration::ZERO, |sum, b| sum + of(b))
                };
                suspects.push((kind, Some((job.clone(), tasks.clone())), all(inside), all(outside)));
            }
        }
        suspects.reverse();
        suspects
    }

    /// Why the clients were slow in the window, in sentences, the cause first; nothing without a window.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Some(told) = &self.window else { return Vec::new() };
        let Window { from, to } = told.window;
        let whom = match self.clients.as_slice() {
            [one] => one.name.clone(),
            [first, ..] => self.job(TaskId(u32::try_from(first.client + 1).unwrap_or(0))).to_owned(),
            [] => "no client".to_owned(),
        };
        let slowest = if told.picked { "when it was slowest, " } else { "" };
        let (when, span) = (format!("{slowest}from {} to {}", time(from), time(to)), told.inside.total());
        let Some(cause) = &told.cause else {
            return vec![format!("{whom} did nothing {when}.")];
        };
        let grew = cause.usual.map_or(Duration::ZERO, |usual| cause.time.saturating_sub(usual));
        let of = format!("{} of {}", time(cause.time), time(span));
        let what = cause.what();
        let mut all = vec![match cause.usual {
            Some(usual) if grew >= span / WORTH_TELLING => {
                format!(
                    "{whom} was slow {when}, because {what}: {of}, where {} are usual for as many calls.",
                    time(usual)
                )
            }
            Some(_) => {
                format!("{whom} was no slower {when} than otherwise; for most of the time {what}: {of}.")
            }
            None => format!("{whom}, {when}: for most of the time {what}: {of}."),
        }];
        if let (Some(mean), Some(usual)) = (told.calls.mean(), told.calls_outside.mean()) {
            all.push(format!(
                "{} calls ended then, after {} each in the mean; the other {} took {}.",
                told.calls.ended,
                time(mean),
                told.calls_outside.ended,
                time(usual)
            ));
        } else if told.calls.ended == 0 {
            all.push("No call ended then.".to_owned());
        }
        all.extend(self.reasons(cause));
        all
    }

    /// The scheduler's notes about the tasks that caused the delay.
    fn reasons(&self, cause: &Cause) -> Vec<String> {
        let Some(told) = &self.window else { return Vec::new() };
        let mut sentences = Vec::new();
        let Some(job) = &cause.job else { return self.own_reasons(told) };
        let mut list: Vec<(Reason, u64)> = Vec::new();
        let theirs = told.chosen.iter().filter(|c| cause.tasks.contains(&c.0) && c.1 != Reason::None);
        theirs.for_each(|c| count(&mut list, c.1, c.2));
        if !list.is_empty() && cause.kind != Kind::Idled {
            sentences.push(format!("Requests of {job} were chosen then because: {}.", most(list)));
        }
        let (mut idled, mut longest) = (Vec::new(), None::<&Idle>);
        for idle in told.idles.iter().filter(|i| i.task.is_some_and(|t| cause.tasks.contains(&t))) {
            count(&mut idled, idle.reason, 1);
            longest = longest.filter(|l| l.to - l.from >= idle.to - idle.from).or(Some(idle));
        }
        if let Some(idle) = longest.filter(|_| cause.kind == Kind::Idled) {
            sentences.push(format!(
                "For {job} it did so {} times: {}; for longest at {}, for {}.",
                idled.iter().map(|i| i.1).sum::<u64>(),
                most(idled),
                time(idle.from),
                time(idle.to - idle.from)
            ));
        }
        let mut noted: Vec<(Reason, u64)> = Vec::new();
        let theirs = told.decisions.iter().filter(|d| cause.tasks.contains(&d.task));
        theirs.for_each(|d| count(&mut noted, d.reason, 1));
        if !noted.is_empty() {
            sentences.push(format!("The scheduler noted of {job}: {}.", most(noted)));
        }
        sentences.extend(self.own_reasons(told));
        sentences
    }

    /// What the scheduler said of the clients themselves.
    fn own_reasons(&self, told: &WindowReport) -> Vec<String> {
        let mut sentences = Vec::new();
        if told.inside.noted.iter().any(|n| n.0 == Reason::Limit) {
            sentences
                .push("The limit of its group was used up then, and requests waited for that.".to_owned());
        }
        if !told.inside.noted.is_empty() {
            sentences.push(format!("Of itself: {}.", most(told.inside.noted.clone())));
        }
        sentences
    }
}

impl Cause {
    /// It, as the rest of a sentence.
    #[must_use]
    pub fn what(&self) -> String {
        let job = self.job.as_deref().unwrap_or("others");
        let who = match self.tasks.len() {
            0 | 1 => job.to_owned(),
            n => format!("{job} ({n} clients)"),
        };
        match self.kind {
            Kind::Queued => format!("its requests were queued while the disk worked for {who}"),
            Kind::Idled => format!("its requests were queued while the disk idled on purpose for {who}"),
            Kind::Behind => format!("its requests were in the device behind those of {who}"),
            Kind::Served => "the disk took long over its own requests".to_owned(),
            Kind::Held => {
                "its requests were held while the disk had nothing to do (plug, lock, limit, idle class)"
                    .to_owned()
            }
            Kind::Tag => "all requests of the pool were taken".to_owned(),
            Kind::Throttled => "it was held back, too much being dirty".to_owned(),
            Kind::Computing => "it was on a CPU, or in line for one".to_owned(),
        }
    }
}

/// The most frequent reasons.
fn most(mut list: Vec<(Reason, u64)>) -> String {
    const TOLD: usize = 3;
    list.sort_by_key(|e| std::cmp::Reverse(e.1));
    let more = list.len().saturating_sub(TOLD);
    let mut each: Vec<String> =
        list.iter().take(TOLD).map(|(reason, n)| format!("{} ({n}x)", words(*reason))).collect();
    if more > 0 {
        each.push(format!("{more} more"));
    }
    each.join(", ")
}

/// With three digits or so.
pub(crate) fn time(t: Duration) -> String {
    let (ns, unit, name) = match t.as_ns() {
        ns @ 1_000_000_000.. => (ns, 1_000_000_000, "s"),
        ns @ 1_000_000.. => (ns, 1_000_000, "ms"),
        ns => (ns, 1_000, "us"),
    };
    match ns / unit {
        whole @ 100.. => format!("{whole} {name}"),
        whole @ 10.. => format!("{whole}.{} {name}", ns % unit * 10 / unit),
        whole => format!("{whole}.{:02} {name}", ns % unit * 100 / unit),
    }
}
