//! Golden timelines: what a scheduler decides in a short scene, in blktrace's letters.
//!
//! Each file in `golden/` asks one question. Above the line `---` is the scene, below it the timeline,
//! integers only: microseconds, a letter (`Q` handed in, `I` inserted, `M` and `F` merged at the back and
//! front, `J` joined, `D` issued, `C` completed, `R` handed back, `m` a note; `s` shows the notes but for
//! idling), task, operation, first sector and length, and the reason.
//!
//! ```text
//! preset NAME               the scheduler          set TUNABLE RAW          a tunable of it
//! device N                  µs for each request    depth N                  how many it takes at a time (1)
//! tick N                    µs                     show LETTERS             which lines to show
//! at T TASK OP START+LEN [idle|rt|prioN]           a request, handed in at T
//! stream T TASK OP START+LEN xN think P            N in a row, each sent P after the one before completed
//! ```
//!
//! `R` reads, `W` writes async, `S` writes sync. Everything that is handed in at one instant comes before the
//! driver's question what to issue. `FAIRHEAD_BLESS=1` writes the timelines anew; a commit that does so says
//! why the new ones are better. The scenes run under all oracles of the suite.

use crate::support::subject::{Subject, Twin};
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::{
    Action, Class, Detail, Dispatch, Duration, Instant, IoPrio, Limits, Op, Reason, Request, Sector, Sectors,
    Tag, TaskId, TraceEvent,
};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Time 0 of a scene: a multiple of a tick.
const START: Instant = Instant::from_ns(Instant::EPOCH.as_ns().next_multiple_of(1_000_000));

/// Requests that one task sends one after another.
#[derive(Clone, Debug)]
struct Stream {
    next: Request,
    left: u32,
    think: Duration,
    ready: Option<Instant>,
}

struct Scene {
    config: AnyConfig,
    service: Duration,
    limits: Limits,
    show: String,
    streams: Vec<Stream>,
}

/// A parse error names the line: these files are written by hand.
fn parse(text: &str) -> Scene {
    let mut scene = Scene {
        config: AnyConfig::default(),
        service: Duration::from_ms(1),
        limits: Limits { trace: 256, ..Limits::default() },
        show: "QIMFJDCRm".to_owned(),
        streams: Vec::new(),
    };
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words[i].parse::<u64>().unwrap_or_else(|_| panic!("not a number: {line}"));
        match words[0] {
            "preset" => scene.config = (preset(words[1]).unwrap_or_else(|| panic!("{line}")).config)(),
            "set" => scene.config.set(words[1], number(2)).unwrap_or_else(|e| panic!("{line}: {e}")),
            "device" => scene.service = Duration::from_us(number(1)),
            "depth" => scene.limits.queue_depth = u16::try_from(number(1)).unwrap(),
            "tick" => scene.limits.tick = Duration::from_us(number(1)),
            "show" => words[1].clone_into(&mut scene.show),
            "at" | "stream" => scene.streams.push(stream(&words, line)),
            _ => panic!("what is this? {line}"),
        }
    }
    scene
}

fn stream(words: &[&str], line: &str) -> Stream {
    let number =
        |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{word} is not a number: {line}"));
    let (start, len) = words[4].split_once('+').unwrap_or_else(|| panic!("START+LEN: {line}"));
    let task = TaskId(u32::try_from(number(words[2])).unwrap());
    let (start, len) = (Sector(number(start)), Sectors(u32::try_from(number(len)).unwrap()));
    let mut next = match words[3] {
        "R" => Request::read(task, start, len),
        "W" => Request::write(task, start, len),
        "S" => Request { sync: true, ..Request::write(task, start, len) },
        _ => panic!("R, W or S: {line}"),
    };
    let (mut left, mut think) = (1, Duration::ZERO);
    let mut rest = words[5..].iter();
    while let Some(&word) = rest.next() {
        match word {
            "think" => think = Duration::from_us(number(rest.next().expect("a time"))),
            "idle" => next.prio = IoPrio::new(Class::Idle, 4),
            "rt" => next.prio = IoPrio::new(Class::RealTime, 4),
            _ => match (word.strip_prefix('x'), word.strip_prefix("prio")) {
                (Some(n), _) => left = u32::try_from(number(n)).unwrap(),
                (_, Some(n)) => next.prio = IoPrio::new(Class::BestEffort, u8::try_from(number(n)).unwrap()),
                _ => panic!("what is {word}? {line}"),
            },
        }
    }
    Stream { next, left, think, ready: Some(START + Duration::from_us(number(words[1]))) }
}

/// A device that serves one after another, in the same time each.
struct Run {
    scene: Scene,
    subject: Subject,
    now: Instant,
    at_device: VecDeque<Tag>,
    done_at: Option<Instant>,
    /// Which stream a tag belongs to.
    owner: Vec<usize>,
    timeline: String,
}

impl Run {
    fn new(scene: Scene) -> Self {
        let mut subject = Subject::new(scene.limits, scene.config, Twin::SpuriousTimers);
        subject.history = Some(Vec::new());
        Self {
            owner: vec![0; usize::from(scene.limits.tags)],
            subject,
            scene,
            now: START,
            at_device: VecDeque::new(),
            done_at: None,
            timeline: String::new(),
        }
    }

    fn run(mut self) -> String {
        while let Some(next) = self.next_event() {
            self.now = self.now.max(next);
            if self.done_at.is_some_and(|at| at <= self.now) {
                self.complete();
            }
            for i in 0..self.scene.streams.len() {
                self.send(i);
            }
            if self.subject.next_timer().is_some_and(|(at, _)| at <= self.now) {
                self.subject.timer(self.now);
            }
            self.pump();
            self.print();
        }
        assert_eq!(self.subject.ledger.waiting(), 0, "nothing is coming, but requests wait");
        self.timeline
    }

    fn next_event(&self) -> Option<Instant> {
        let arrivals = self.scene.streams.iter().filter_map(|s| s.ready);
        let timer = self.subject.next_timer().map(|(at, _)| at);
        arrivals.chain(timer).chain(self.done_at).min()
    }

    fn send(&mut self, i: usize) {
        let stream = &mut self.scene.streams[i];
        if stream.ready.is_none_or(|at| at > self.now) {
            return;
        }
        let rq = stream.next;
        stream.ready = None;
        stream.left -= 1;
        stream.next.start = rq.end();
        let tag = self.subject.ledger.free_tag().expect("more tags than requests");
        self.owner[usize::from(tag.0)] = i;
        self.print();
        self.line('Q', &rq, Reason::None);
        let _ = self.subject.insert(self.now, tag, rq);
        self.print();
    }

    fn pump(&mut self) {
        while self.at_device.len() < usize::from(self.scene.limits.queue_depth) {
            let Dispatch::Issue(tag) = self.subject.dispatch(self.now) else { return };
            self.at_device.push_back(tag);
            self.start();
        }
    }

    fn start(&mut self) {
        if self.done_at.is_none() && !self.at_device.is_empty() {
            self.done_at = Some(self.now + self.scene.service);
        }
    }

    fn complete(&mut self) {
        let tag = self.at_device.pop_front().expect("it is being served");
        self.done_at = None;
        for done in self.subject.complete(self.now, tag) {
            let stream = &mut self.scene.streams[self.owner[usize::from(done.tag.0)]];
            if stream.left > 0 {
                stream.ready = Some(self.now + stream.think);
            }
        }
        self.start();
        self.print();
    }

    fn print(&mut self) {
        for event in std::mem::take(self.subject.history.as_mut().expect("kept")) {
            self.event(&event);
        }
    }

    fn event(&mut self, event: &TraceEvent) {
        let letter = event.action.letter();
        if event.action == Action::Note {
            let shown = match event.reason {
                // Virtual times would drown the rest.
                Reason::Times => false,
                Reason::SliceIdle => self.scene.show.contains(letter),
                _ => self.scene.show.contains(letter) || self.scene.show.contains('s'),
            };
            if shown {
                let (at, task, detail) = (self.micros(event.at), event.task.0, numbers(&event.detail));
                writeln!(self.timeline, "{at:>8} m {task:>3}             {:?}{detail}", event.reason)
                    .unwrap();
            }
            return;
        }
        let op = self.subject.requests()[event.tag.expect("a request")].rq;
        let rq = Request { task: event.task, start: event.start, len: event.len, ..op };
        self.line(letter, &rq, event.reason);
    }

    fn line(&mut self, letter: char, rq: &Request, reason: Reason) {
        if !self.scene.show.contains(letter) {
            return;
        }
        let op = match (rq.op, rq.sync) {
            (Op::Read, _) => 'R',
            (Op::Write, true) => 'S',
            (Op::Write, false) => 'W',
            (Op::Discard, _) => 'D',
        };
        let place = format!("{}+{}", rq.start.0, rq.len.0);
        let why = if reason == Reason::None { String::new() } else { format!("{reason:?}") };
        let line = format!("{:>8} {letter} {:>3} {op} {place:<10} {why}", self.micros(self.now), rq.task.0);
        writeln!(self.timeline, "{}", line.trim_end()).unwrap();
    }

    fn micros(&self, at: Instant) -> u64 {
        at.since(START).as_us()
    }
}

/// The numbers of a note.
fn numbers(detail: &Detail) -> String {
    match detail {
        Detail::None | Detail::Times { .. } => String::new(),
        Detail::Budget { budget } => format!(" {budget}"),
        Detail::Slot { service, budget, slow } => {
            format!(" charged {service} next {budget}{}", if *slow { " slow" } else { "" })
        }
        Detail::Raised { factor, at_most } => format!(" x{factor} {at_most}"),
        Detail::Rate { rate } => format!(" {rate}"),
    }
}

fn golden(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).with_extension("txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (scene, expected) = text.split_once("---\n").expect("a line `---` between scene and timeline");
    let timeline = Run::new(parse(scene)).run();
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        fs::write(&path, format!("{scene}---\n{timeline}")).unwrap();
        return;
    }
    let first = timeline.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let at = first.unwrap_or_else(|| timeline.lines().count().min(expected.lines().count()));
    let show = |text: &str| text.lines().skip(at.saturating_sub(3)).take(8).collect::<Vec<_>>().join("\n");
    assert!(
        timeline == expected,
        "{name}: line {} of the timeline; now:\n{}\nexpected:\n{}",
        at + 1,
        show(&timeline),
        show(expected)
    );
}

/// One test per file.
macro_rules! golden {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                golden(stringify!($name));
            }
        )*

        const COVERED: &[&str] = &[$(stringify!($name)),*];
    };
}

golden! {
    merges,
    merges_noop,
    deadline_batches,
    deadline_2_6_9_alternates,
    as_two_readers,
    cfq_ts1_two_readers,
    cfq_reader_and_writer,
    cfq_reader_and_writer_3_10,
    cfq_async_quota,
    cfq_classes,
    bfq_two_readers,
    bfq_raised,
    bfq_v0_two_readers,
}

#[test]
fn every_file_has_its_line() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(COVERED.contains(&name.as_str()), "add a line for {name} to `golden!`");
    }
}
