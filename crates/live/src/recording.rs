//! The events of a live elevator and its answers, as lines of text; and a replay of these events to another
//! one, which must answer alike.
//!
//! That is the proof that the engine drives the same machine as the lab: `fairhead replay-live` makes an
//! elevator from the recording's first lines, repeats every event at its recorded time, and compares each
//! decision. A scheduler from outside is found by its name in the [`Catalogue`] that the caller gives.
//!
//! ```text
//! fairhead live 1
//! limits tags=1024 pool=0 tasks=1024 … rotational=1 queue_depth=1 …
//! scheduler bfq slice_idle=8000000 …             a new elevator; another one: the scheduler was changed
//! 4398046511104 insert 1023 R 0 8 sync 1 0 be 4  at, tag, op, start, sectors, whether sync, task, group, class, level,
//!                                                and "alone" if it must not be merged
//! 4398046512345 dispatch 1023                    a tag: issue it; or "hold SliceIdle"; or "empty"
//! 4398046823456 complete 1023
//! 4398046823456 done 1022                        this one, too: it was merged into 1023
//! 4398046831456 timer
//! 4398047000000 weight 3 200                     and the other changes
//! ```
//!
//! The recording has no data, files or clients. Of an elevator that has been replaced only `done` is
//! recorded, for each request that it had issued: it decides nothing any more. `done` tells the elevator
//! nothing; it is for readers who want the times of each request (`fairhead_trace`'s format `live`).

use fairhead_core::elevator::{Actuators, Control, Dispatch, Elevator, Insert, Limits};
use fairhead_core::groups::{Max, Min, Policy, Refusal};
use fairhead_core::request::{Op, Request};
use fairhead_core::sched::any::{AnyConfig, AnyScheduler, PRESETS, Preset, replaced};
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, Sectors, Tag, TaskId, Weight};
use std::fmt::{self, Display};
use std::io::{BufRead, Read};
use std::num::NonZeroU64;

const HEAD: &str = "fairhead live 1";

/// The longest line that is read, in bytes. The longest that is written, a scheduler with all its tunables,
/// has some 2000.
const LINE_MAX: usize = 64 << 10;

/// An event of an elevator, with its decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// There is a new one, with this scheduler.
    Scheduler(AnyConfig),
    /// The scheduler took over other tunables.
    Tunables(Instant, AnyConfig),
    /// A request came.
    Insert(Instant, Tag, Request),
    /// A request came that must not be merged.
    InsertAlone(Instant, Tag, Request),
    /// It was asked what to do, and said this.
    Dispatch(Instant, Dispatch),
    /// The disk was done with a request.
    Complete(Instant, Tag),
    /// A request is done that was merged into the one that completed, or that a former elevator had issued.
    Done(Instant, Tag),
    /// Time came.
    Timer(Instant),
    /// Something was to change; it may have been refused, and will be again.
    Control(Instant, Control),
}

/// An elevator that can record its events.
#[derive(Debug)]
pub(crate) struct Recorded {
    elevator: Elevator<AnyScheduler>,
    events: Option<Vec<Event>>,
}

impl Recorded {
    pub(crate) fn new(elevator: Elevator<AnyScheduler>) -> Self {
        Self { elevator, events: None }
    }

    fn note(&mut self, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.events {
            events.push(event());
        }
    }
}

/// The elevator's calls, recorded since [`Recorded::keep`].
impl Recorded {
    /// Records events from now on. The recording is complete only if the elevator has had none before.
    pub(crate) fn keep(&mut self, config: AnyConfig) {
        self.events = Some(vec![Event::Scheduler(config)]);
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts another elevator in place of this one and continues the recording with it. Returns this one.
    pub(crate) fn replace(
        &mut self,
        new: Elevator<AnyScheduler>,
        config: AnyConfig,
    ) -> Elevator<AnyScheduler> {
        self.note(|| Event::Scheduler(config));
        std::mem::replace(&mut self.elevator, new)
    }

    pub(crate) const fn elevator(&self) -> &Elevator<AnyScheduler> {
        &self.elevator
    }

    pub(crate) fn insert(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.note(|| Event::Insert(now, tag, rq));
        // Merged or not, it comes back with a completion.
        let (Insert::Queued | Insert::Merged { .. }) = self.elevator.insert(now, tag, rq);
    }

    pub(crate) fn insert_alone(&mut self, now: Instant, tag: Tag, rq: Request) {
        self.note(|| Event::InsertAlone(now, tag, rq));
        self.elevator.insert_alone(now, tag, rq);
    }

    pub(crate) fn dispatch(&mut self, now: Instant) -> Dispatch {
        let answer = self.elevator.dispatch(now);
        self.note(|| Event::Dispatch(now, answer));
        answer
    }

    pub(crate) fn complete(&mut self, now: Instant, tag: Tag) -> impl Iterator<Item = Tag> + '_ {
        self.note(|| Event::Complete(now, tag));
        let Self { elevator, events } = self;
        elevator.complete(now, tag).inspect(move |done| {
            if let Some(events) = events.as_mut().filter(|_| *done != tag) {
                events.push(Event::Done(now, *done));
            }
        })
    }

    /// Records that requests are done that a former elevator had issued: first the one that was issued, then
    /// those that were merged into it.
    pub(crate) fn done(&mut self, now: Instant, issued: Tag, all: &[Tag]) {
        self.note(|| Event::Done(now, issued));
        all.iter().filter(|tag| **tag != issued).for_each(|tag| self.note(|| Event::Done(now, *tag)));
    }

    pub(crate) fn timer(&mut self, now: Instant) {
        self.note(|| Event::Timer(now));
        self.elevator.timer(now);
    }

    pub(crate) fn control(&mut self, now: Instant, change: Control) -> Result<(), Refusal> {
        // Refused or not: time has come to it.
        self.note(|| Event::Control(now, change));
        self.elevator.control(now, change)
    }

    pub(crate) fn reconfigure(
        &mut self,
        now: Instant,
        config: AnyConfig,
    ) -> Result<bool, fairhead_core::config::ConfigError> {
        let is_taken = self.elevator.reconfigure(now, config)?;
        if is_taken {
            self.note(|| Event::Tunables(now, config));
        }
        Ok(is_taken)
    }
}

/// The first lines of a recording, as text.
pub struct Head<'a>(pub &'a Limits);

impl Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l = self.0;
        writeln!(f, "{HEAD}")?;
        write!(
            f,
            "limits tags={} pool={} tasks={} groups={} capacity={} max_sectors={} max_segments={} merges={} \
             rotational={} queue_depth={} tick={} actuators=",
            l.tags,
            l.pool,
            l.tasks,
            l.groups,
            l.capacity,
            l.max_sectors.0,
            l.max_segments,
            u8::from(l.merges),
            u8::from(l.rotational),
            l.queue_depth,
            l.tick.as_ns(),
        )?;
        let starts: Vec<String> = l.actuators.starts().map(|s| s.0.to_string()).collect();
        write!(f, "{}", if starts.is_empty() { "-".to_owned() } else { starts.join(",") })?;
        write!(f, "{}", if l.idle_for_quick_only { " quick_idling=1" } else { "" })?;
        write!(f, "{}", if l.one_youth { " one_youth=1" } else { "" })?;
        write!(f, "{}", if l.spares_groups { " spares_groups=1" } else { "" })?;
        match l.turns_within.as_ns() {
            0 => writeln!(f),
            ns => writeln!(f, " turns_within={ns}"),
        }
    }
}

const fn class_word(class: Class) -> &'static str {
    match class {
        Class::RealTime => "rt",
        Class::BestEffort => "be",
        Class::Idle => "idle",
    }
}

/// The preset that becomes this with its tunables set: not all that presets differ in has a name.
fn write_config(f: &mut fmt::Formatter<'_>, config: &AnyConfig) -> fmt::Result {
    let values = || config.list().iter().map(|t| (t.name, config.get(t.name).expect("listed")));
    let becomes = |preset: &&Preset| {
        let mut from = (preset.config)();
        from.scheduler() == config.scheduler()
            && values().all(|(name, value)| from.set(name, value).is_ok())
            && from == *config
    };
    f.write_str(PRESETS.iter().find(becomes).map_or(config.scheduler(), |p| p.name))?;
    values().try_for_each(|(name, value)| write!(f, " {name}={value}"))
}

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduler(config) => {
                f.write_str("scheduler ")?;
                write_config(f, config)
            }
            Self::Tunables(at, config) => {
                write!(f, "{} tunables ", at.as_ns())?;
                write_config(f, config)
            }
            Self::Insert(at, tag, rq) => write_insert(f, *at, *tag, rq),
            Self::InsertAlone(at, tag, rq) => {
                write_insert(f, *at, *tag, rq)?;
                f.write_str(" alone")
            }
            Self::Dispatch(at, Dispatch::Issue(tag)) => write!(f, "{} dispatch {}", at.as_ns(), tag.0),
            Self::Dispatch(at, Dispatch::Hold(why)) => write!(f, "{} dispatch hold {why:?}", at.as_ns()),
            Self::Dispatch(at, Dispatch::Empty) => write!(f, "{} dispatch empty", at.as_ns()),
            Self::Complete(at, tag) => write!(f, "{} complete {}", at.as_ns(), tag.0),
            Self::Done(at, tag) => write!(f, "{} done {}", at.as_ns(), tag.0),
            Self::Timer(at) => write!(f, "{} timer", at.as_ns()),
            Self::Control(at, change) => {
                write!(f, "{} ", at.as_ns())?;
                write_control(f, change)
            }
        }
    }
}

fn write_insert(f: &mut fmt::Formatter<'_>, at: Instant, tag: Tag, rq: &Request) -> fmt::Result {
    let op = match rq.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
    };
    write!(f, "{} insert {} {op} {} {}", at.as_ns(), tag.0, rq.start.0, rq.len.0)?;
    write!(f, " {} {} {}", if rq.sync { "sync" } else { "async" }, rq.task.0, rq.group.0)?;
    write!(f, " {} {}", class_word(rq.prio.class), rq.prio.level)
}

fn write_control(f: &mut fmt::Formatter<'_>, change: &Control) -> fmt::Result {
    let rate = |r: Option<NonZeroU64>| r.map_or(0, NonZeroU64::get);
    match *change {
        Control::SetWeight(g, w) => write!(f, "weight {} {}", g.0, w.get()),
        Control::SetLeafWeight(g, w) => write!(f, "leaf_weight {} {}", g.0, w.get()),
        Control::SetClass(g, class) => write!(f, "class {} {}", g.0, class_word(class)),
        Control::SetPolicy(g, None) => write!(f, "policy {} -", g.0),
        Control::SetPolicy(g, Some(p)) => {
            write!(f, "policy {} {} {}", g.0, p.weight.get(), class_word(p.class))
        }
        Control::SetMax(g, m) => {
            let [a, b, c, d] = [m.rbps, m.wbps, m.riops, m.wiops].map(rate);
            write!(f, "max {} {a} {b} {c} {d} {}", g.0, m.burst.as_ns())
        }
        Control::SetMin(g, m) => write!(f, "min {} {}", g.0, m.iops),
        Control::SetLatency(g, target) => write!(f, "latency {} {}", g.0, target.map_or(0, Duration::as_ns)),
        Control::SetPrio(task, prio) => {
            write!(f, "prio {} {} {}", task.0, class_word(prio.class), prio.level)
        }
        Control::TaskExit(task) => write!(f, "task_exit {}", task.0),
        Control::SetParent(g, parent) => write!(f, "parent {} {}", g.0, parent.0),
        Control::GroupExit(g) => write!(f, "group_exit {}", g.0),
    }
}

/// An error in a line of a recording.
#[derive(Debug)]
pub struct BadLine {
    /// Counted from 1.
    pub line: u64,
    /// What, and what would be right.
    pub message: String,
}

impl Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for BadLine {}

/// The words of a line, each of which is there and is what it should be, or there is one clear error.
struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.0.next().ok_or_else(|| format!("the {what} is missing"))
    }

    fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, String> {
        let word = self.word(what)?;
        number(word).ok_or_else(|| format!("{word}: not a number that can be a {what}"))
    }

    fn class(&mut self) -> Result<Class, String> {
        let word = self.word("class")?;
        let all = [Class::RealTime, Class::BestEffort, Class::Idle];
        all.into_iter()
            .find(|&c| class_word(c) == word)
            .ok_or_else(|| format!("class {word}: rt, be or idle"))
    }

    fn weight(&mut self) -> Result<Weight, String> {
        self.word("weight").and_then(weight)
    }

    fn prio(&mut self) -> Result<IoPrio, String> {
        let (class, level) = (self.class()?, self.number("level")?);
        if level > 7 {
            return Err(format!("level {level}: 0 to 7"));
        }
        Ok(IoPrio { class, level })
    }

    fn group(&mut self) -> Result<GroupId, String> {
        self.number("group").map(GroupId)
    }

    fn end(mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |word| Err(format!("{word}: too much")))
    }
}

fn number<T: TryFrom<u64>>(word: &str) -> Option<T> {
    word.parse().ok().and_then(|n: u64| T::try_from(n).ok())
}

fn weight(word: &str) -> Result<Weight, String> {
    number(word).and_then(Weight::new).ok_or_else(|| format!("weight {word}: 1 to 10000"))
}

/// The value of a `name=value`.
fn value_of<'a>(word: &'a str, name: &str) -> Result<&'a str, String> {
    word.split_once('=')
        .filter(|(n, _)| *n == name)
        .map(|(_, v)| v)
        .ok_or_else(|| format!("{word}: {name}=… should be here"))
}

fn read_limits(words: &mut Words<'_>) -> Result<Limits, String> {
    fn field<T: TryFrom<u64>>(words: &mut Words<'_>, name: &str) -> Result<T, String> {
        let word = words.word(name)?;
        number(value_of(word, name)?).ok_or_else(|| format!("{word}: not a number that this can be"))
    }
    let limits = Limits {
        tags: field(words, "tags")?,
        pool: field(words, "pool")?,
        tasks: field(words, "tasks")?,
        groups: field(words, "groups")?,
        capacity: field(words, "capacity")?,
        max_sectors: Sectors(field(words, "max_sectors")?),
        max_segments: field(words, "max_segments")?,
        merges: field::<u8>(words, "merges")? == 1,
        rotational: field::<u8>(words, "rotational")? == 1,
        queue_depth: field(words, "queue_depth")?,
        tick: Duration::from_ns(field(words, "tick")?),
        trace: 0,
        ..Limits::default()
    };
    let starts = value_of(words.word("actuators")?, "actuators")?;
    let mut limits = limits;
    // A recording of before they were there, or without them, has none of these.
    for word in words.0.by_ref() {
        let wrong = || {
            format!("limits: {word}: one of quick_idling=1, one_youth=1, spares_groups=1 and turns_within=NS")
        };
        match word.split_once('=').ok_or_else(wrong)? {
            ("quick_idling", "1") => limits.idle_for_quick_only = true,
            ("one_youth", "1") => limits.one_youth = true,
            ("spares_groups", "1") => limits.spares_groups = true,
            ("turns_within", ns) => limits.turns_within = Duration::from_ns(number(ns).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    if starts == "-" {
        return Ok(limits);
    }
    let starts: Option<Vec<Sector>> = starts.split(',').map(|s| number(s).map(Sector)).collect();
    let is_right = |s: &Vec<Sector>| s.len() < Actuators::MAX && s[0].0 > 0 && s.is_sorted_by(|a, b| a < b);
    let starts =
        starts.filter(is_right).ok_or("actuators: up to 7 sectors, ascending, with commas between")?;
    Ok(Limits { actuators: Actuators::at(&starts), ..limits })
}

fn read_config(words: &mut Words<'_>, catalogue: &Catalogue) -> Result<AnyConfig, String> {
    let name = words.word("scheduler")?;
    let named = catalogue.find(name);
    let mut config = named.ok_or_else(|| format!("scheduler {name}: there is none of that name"))?.config;
    for word in words.0.by_ref() {
        let (tunable, value) = word.split_once('=').ok_or_else(|| format!("{word}: write tunable=value"))?;
        let value = number(value).ok_or_else(|| format!("{word}: not a number"))?;
        if config.get(tunable).is_none() {
            return Err(match replaced(config.scheduler(), tunable) {
                Some(instead) => format!("{tunable}: {name} has no such tunable any more: {instead}"),
                None => format!("{tunable}: {name} has no such tunable"),
            });
        }
        config.set(tunable, value).map_err(|e| e.to_string())?;
    }
    Ok(config)
}

fn read_event(line: &str, catalogue: &Catalogue) -> Result<Event, String> {
    let mut words = Words(line.split_ascii_whitespace());
    let first = words.word("time")?;
    if first == "scheduler" {
        return read_config(&mut words, catalogue).map(Event::Scheduler);
    }
    let at = number(first).filter(|&ns: &u64| ns > 0).map(Instant::from_ns);
    let at = at.ok_or_else(|| format!("{first}: a line begins with a time in ns, or \"scheduler\""))?;
    let event = match words.word("event")? {
        "insert" => {
            let (tag, rq) = (Tag(words.number("tag")?), read_request(&mut words)?);
            match words.0.next() {
                None => Event::Insert(at, tag, rq),
                Some("alone") => Event::InsertAlone(at, tag, rq),
                Some(other) => return Err(format!("{other}: nothing or \"alone\" follows the level")),
            }
        }
        "dispatch" => Event::Dispatch(at, read_dispatch(&mut words)?),
        "complete" => Event::Complete(at, Tag(words.number("tag")?)),
        "done" => Event::Done(at, Tag(words.number("tag")?)),
        "timer" => Event::Timer(at),
        "tunables" => Event::Tunables(at, read_config(&mut words, catalogue)?),
        other => Event::Control(at, read_control(other, &mut words)?),
    };
    words.end().map(|()| event)
}

fn read_request(words: &mut Words<'_>) -> Result<Request, String> {
    let op = match words.word("operation")? {
        "R" => Op::Read,
        "W" => Op::Write,
        "D" => Op::Discard,
        other => return Err(format!("operation {other}: R, W or D")),
    };
    let (start, len) = (Sector(words.number("sector")?), Sectors(words.number("length")?));
    let sync = match words.word("\"sync\" or \"async\"")? {
        "sync" => true,
        "async" => false,
        other => return Err(format!("{other}: sync or async")),
    };
    if len.0 == 0 || start.0.checked_add(u64::from(len.0)).is_none() {
        return Err("a request has at least one sector, and ends at a sector".to_owned());
    }
    let (task, group, prio) = (TaskId(words.number("task")?), words.group()?, words.prio()?);
    Ok(Request { start, len, op, sync, group, prio, ..Request::read(task, start, len) })
}

fn read_dispatch(words: &mut Words<'_>) -> Result<Dispatch, String> {
    use fairhead_core::elevator::Hold;
    let word = words.word("decision")?;
    if word == "empty" {
        return Ok(Dispatch::Empty);
    }
    if word != "hold" {
        let tag = number(word).ok_or_else(|| format!("{word}: a tag, hold, or empty"))?;
        return Ok(Dispatch::Issue(Tag(tag)));
    }
    let why = words.word("reason")?;
    let all = [
        Hold::Anticipate,
        Hold::SliceIdle,
        Hold::DrainBatch,
        Hold::Depth,
        Hold::HigherClass,
        Hold::IdleClass,
        Hold::Limit,
    ];
    let hold = all.into_iter().find(|h| format!("{h:?}") == why);
    hold.map(Dispatch::Hold).ok_or_else(|| format!("hold {why}: one of {all:?}"))
}

fn read_control(word: &str, words: &mut Words<'_>) -> Result<Control, String> {
    Ok(match word {
        "weight" => Control::SetWeight(words.group()?, words.weight()?),
        "leaf_weight" => Control::SetLeafWeight(words.group()?, words.weight()?),
        "class" => Control::SetClass(words.group()?, words.class()?),
        "policy" => {
            let (group, word) = (words.group()?, words.word("weight")?);
            let policy = match word {
                "-" => None,
                word => Some(Policy { weight: weight(word)?, class: words.class()? }),
            };
            Control::SetPolicy(group, policy)
        }
        "max" => {
            let group = words.group()?;
            let mut rate = |what: &str| words.number(what).map(NonZeroU64::new);
            let (rbps, wbps) = (rate("rbps")?, rate("wbps")?);
            let (riops, wiops) = (rate("riops")?, rate("wiops")?);
            let burst = Duration::from_ns(words.number("burst")?);
            Control::SetMax(group, Max { rbps, wbps, riops, wiops, burst })
        }
        "min" => Control::SetMin(words.group()?, Min { iops: words.number("iops")? }),
        "latency" => {
            let (group, ns) = (words.group()?, words.number("latency")?);
            Control::SetLatency(group, (ns > 0).then(|| Duration::from_ns(ns)))
        }
        "prio" => Control::SetPrio(TaskId(words.number("task")?), words.prio()?),
        "task_exit" => Control::TaskExit(TaskId(words.number("task")?)),
        "parent" => Control::SetParent(words.group()?, words.group()?),
        "group_exit" => Control::GroupExit(words.group()?),
        other => return Err(format!("{other}: no such event")),
    })
}

/// The result of comparing a recording with the decisions of another elevator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Lines after the first two.
    pub events: u64,
    /// The number of decisions among these.
    pub decisions: u64,
    /// How often there was a new elevator, the first included.
    pub schedulers: u64,
    /// The first decision that differs, if one does. The replay stops there.
    pub differs: Option<Differs>,
}

/// A decision that is another than it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Differs {
    /// The line of the recording, from 1.
    pub line: u64,
    /// The live decision.
    pub was: Dispatch,
    /// The decision of the replay.
    pub is: Dispatch,
}

impl Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?} was decided, now it is {:?}", self.line, self.was, self.is)
    }
}

/// Tells a recording to another elevator; `catalogue` has the schedulers that it may name.
///
/// # Errors
/// If a line is not one of a recording, or contradicts the lines before it.
pub fn replay(mut recording: impl BufRead, catalogue: &Catalogue) -> Result<Replayed, BadLine> {
    let mut line = 0;
    let mut next = move || -> Result<Option<(u64, String)>, BadLine> {
        line += 1;
        let text = read_line(&mut recording).map_err(|message| BadLine { line, message })?;
        Ok(text.map(|text| (line, text)))
    };
    let head = next()?.map(|h| h.1).unwrap_or_default();
    if head != HEAD {
        return Err(BadLine { line: 1, message: format!("not a recording: \"{HEAD}\" should be here") });
    }
    let (line, text) = next()?.unwrap_or((2, String::new()));
    let limits = text.strip_prefix("limits ").ok_or("\"limits …\" should be here".to_owned());
    let limits = limits.and_then(|text| {
        let mut words = Words(text.split_ascii_whitespace());
        read_limits(&mut words).and_then(|l| words.end().map(|()| l))
    });
    let limits = limits.map_err(|message| BadLine { line, message })?;
    let mut outcome = Replayed::default();
    let mut player = Player { limits, elevator: None, now: None };
    while let Some((line, text)) = next()? {
        let event = read_event(&text, catalogue).map_err(|message| BadLine { line, message })?;
        outcome.events += 1;
        outcome.decisions += u64::from(matches!(event, Event::Dispatch(..)));
        outcome.schedulers += u64::from(matches!(event, Event::Scheduler(..)));
        let is = player.tell(&event).map_err(|message| BadLine { line, message })?;
        if let (Event::Dispatch(_, was), Some(is)) = (event, is)
            && was != is
        {
            outcome.differs = Some(Differs { line, was, is });
            return Ok(outcome);
        }
    }
    Ok(outcome)
}

/// The next line, without its end; `None` at the end of the file.
fn read_line(from: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    // One more than there may be, to see that there is more.
    let read = from.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut bytes);
    if read.map_err(|e| e.to_string())? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.len() > LINE_MAX {
        return Err(format!("the line is longer than {LINE_MAX} bytes: no recording has such a line"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "the line is not text".to_owned())
}

struct Player {
    limits: Limits,
    elevator: Option<Elevator<AnyScheduler>>,
    now: Option<Instant>,
}

impl Player {
    /// Returns what it decides, if it is asked. What the elevator takes for a driver's bug is an error of the
    /// recording here.
    fn tell(&mut self, event: &Event) -> Result<Option<Dispatch>, String> {
        use fairhead_core::request::State;
        let now = match *event {
            Event::Scheduler(config) => {
                self.elevator = Some(Elevator::new(self.limits, config).map_err(|e| e.to_string())?);
                return Ok(None);
            }
            Event::Insert(at, ..)
            | Event::InsertAlone(at, ..)
            | Event::Dispatch(at, _)
            | Event::Complete(at, _)
            | Event::Done(at, _)
            | Event::Timer(at)
            | Event::Tunables(at, _)
            | Event::Control(at, _) => at,
        };
        if self.now.is_some_and(|before| before > now) {
            return Err("time goes back".to_owned());
        }
        self.now = Some(now);
        let elevator = self.elevator.as_mut().ok_or("\"scheduler …\" should be here")?;
        let state = |e: &Elevator<AnyScheduler>, tag: Tag| {
            e.requests().iter().nth(usize::from(tag.0)).map(|(_, slot)| slot.state)
        };
        match *event {
            Event::Insert(_, tag, _) | Event::InsertAlone(_, tag, _)
                if state(elevator, tag) != Some(State::Free) =>
            {
                return Err(format!("tag {} is in use, or too large", tag.0));
            }
            Event::InsertAlone(_, tag, rq) => elevator.insert_alone(now, tag, rq),
            Event::Insert(_, tag, rq) => {
                let (Insert::Queued | Insert::Merged { .. }) = elevator.insert(now, tag, rq);
            }
            Event::Dispatch(..) => return Ok(Some(elevator.dispatch(now))),
            Event::Complete(_, tag) => {
                if state(elevator, tag) != Some(State::Issued) {
                    return Err(format!("tag {} is not at the disk", tag.0));
                }
                elevator.complete(now, tag).for_each(drop);
            }
            Event::Timer(_) => elevator.timer(now),
            Event::Tunables(_, config) => {
                elevator.reconfigure(now, config).map_err(|e| e.to_string())?;
            }
            // What was refused then is refused now.
            Event::Control(_, change) => drop(elevator.control(now, change)),
            Event::Scheduler(_) | Event::Done(..) => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::sched::deadline::Deadline;
    use fairhead_core::sched::outside::{Factory, Of};

    /// The presets, and one scheduler more.
    fn catalogue() -> Catalogue {
        static MINE: Of<Deadline> = Of::named("mine", "deadline again");
        static OUTSIDE: [&dyn Factory; 1] = [&MINE];
        Catalogue::new(&OUTSIDE).unwrap()
    }

    #[test]
    fn every_preset_is_read_as_it_was_written() {
        for preset in PRESETS {
            let config = (preset.config)().live();
            let written = Event::Scheduler(config).to_string();
            assert_eq!(read_event(&written, &catalogue()), Ok(Event::Scheduler(config)), "{}", preset.name);
            let event = Event::Tunables(Instant::EPOCH, config);
            assert_eq!(read_event(&event.to_string(), &catalogue()), Ok(event));
        }
    }

    #[test]
    fn what_live_engines_change_in_the_limits_is_read_as_it_was_written() {
        let turns_within = Duration::from_ms(200);
        for limits in [
            Limits::default(),
            Limits { spares_groups: true, ..Limits::default() },
            Limits { turns_within, ..Limits::default() },
            Limits { idle_for_quick_only: true, one_youth: true, turns_within, ..Limits::default() },
        ] {
            let written = Head(&limits).to_string();
            assert_eq!(limits_of(&written), Ok(limits), "{written}");
        }
        let wrong = Head(&Limits::default()).to_string().trim_end().to_owned() + " turns_within=x";
        assert!(limits_of(&wrong).is_err_and(|said| said.contains("turns_within=NS")));
    }

    /// The limits in the second line of a recording.
    fn limits_of(head: &str) -> Result<Limits, String> {
        let line = head.lines().nth(1).and_then(|line| line.strip_prefix("limits "));
        read_limits(&mut Words(line.expect("the limits").split_ascii_whitespace()))
    }

    #[test]
    fn a_scheduler_from_outside_is_found_by_its_name() {
        let mut config = catalogue().find("mine").unwrap().config;
        config.set("read_expire", 7_000_000).unwrap();
        let written = Event::Scheduler(config).to_string();
        assert!(written.starts_with("scheduler mine read_expire=7000000 "), "{written}");
        assert_eq!(read_event(&written, &catalogue()), Ok(Event::Scheduler(config)));
        let unknown = read_event(&written, &Catalogue::default());
        assert_eq!(unknown.unwrap_err(), "scheduler mine: there is none of that name");
    }

    /// A file without an end. The test fails if more than this is read.
    struct Endless(usize);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(into.len()).expect("far more than a line has been read");
            into.fill(b'7');
            Ok(into.len())
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_at_once() {
        let limits = format!("{HEAD}\nlimits ");
        for (start, at) in [("", 1), (limits.as_str(), 2)] {
            let file = start.as_bytes().chain(Endless(1 << 20));
            let bad = replay(std::io::BufReader::new(file), &catalogue()).unwrap_err();
            assert_eq!(bad.line, at);
            assert!(bad.message.contains("longer than 65536 bytes"), "{}", bad.message);
        }
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let bad = replay(&b"fairhead live 1\nlimits tags=1"[..], &catalogue()).unwrap_err();
        assert_eq!(bad.line, 2);
        assert_eq!(replay(&b""[..], &catalogue()).unwrap_err().line, 1);
        let mut text = &b"a\n\nlast"[..];
        let lines = std::iter::from_fn(|| read_line(&mut text).unwrap());
        assert_eq!(lines.collect::<Vec<_>>(), ["a", "", "last"]);
    }

    #[test]
    fn every_change_is_read_as_it_was_written() {
        let (group, task) = (GroupId(3), TaskId(70));
        let weight = Weight::new(250).unwrap();
        let max = Max { rbps: NonZeroU64::new(5), burst: Duration::from_ms(7), ..Max::default() };
        for change in [
            Control::SetWeight(group, weight),
            Control::SetLeafWeight(group, weight),
            Control::SetClass(group, Class::Idle),
            Control::SetPolicy(group, Some(Policy { weight, class: Class::RealTime })),
            Control::SetPolicy(group, None),
            Control::SetMax(group, max),
            Control::SetMin(group, Min { iops: 40 }),
            Control::SetLatency(group, Some(Duration::from_ms(5))),
            Control::SetLatency(group, None),
            Control::SetPrio(task, IoPrio { class: Class::BestEffort, level: 6 }),
            Control::TaskExit(task),
            Control::SetParent(group, GroupId(1)),
            Control::GroupExit(group),
        ] {
            let event = Event::Control(Instant::EPOCH, change);
            assert_eq!(read_event(&event.to_string(), &catalogue()), Ok(event));
        }
    }
}
