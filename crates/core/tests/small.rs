//! Every order of up to five requests, under every scheduler and all oracles.
//!
//! A *scene* is a handful of requests and a device. The exhaustive part takes every order of insertion and
//! every interleaving with what the device and the clock may do:
//!
//! - with up to three requests (five with `FAIRHEAD_SMALL=5`, as in CI): after each event, any of: insert the
//!   next, complete any request at the device (or hand one back, once), let time pass up to the next timer.
//!   The driver asks for work after each event, as it must;
//! - with five, unless `FAIRHEAD_SMALL` is less than 4: every order of insertion, and after each insertion
//!   none or all of the waiting work is done.
//!
//! Random operations reach deep states, but not evenly; this reaches every shallow one.

mod support;

use fairhead_core::sched::any::{PRESETS, Preset};
use fairhead_core::{
    Class, Dispatch, Duration, Instant, IoPrio, Limits, Op, Request, Sector, Sectors, Tag, TaskId,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use support::exhaust::Exhaust;
use support::subject::{Subject, Twin};

#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    requests: &'static [Small],
    depth: u16,
}

/// task, first sector, sectors, kind
type Small = (u32, u64, u32, Kind);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Read,
    Write,
    SyncWrite,
    Discard,
    IdleRead,
    UrgentRead,
}
use Kind::{Discard, IdleRead, Read, SyncWrite, UrgentRead, Write};

const SCENES: &[Scene] = &[
    Scene {
        name: "neighbours of two tasks",
        requests: &[(1, 0, 8, Read), (1, 8, 8, Read), (2, 16, 8, Read), (2, 900, 8, Read), (1, 24, 8, Read)],
        depth: 1,
    },
    Scene {
        name: "readers and a writer",
        requests: &[
            (1, 0, 8, Read),
            (2, 5000, 8, Write),
            (3, 90, 8, SyncWrite),
            (2, 5008, 8, Write),
            (1, 8, 8, Read),
        ],
        depth: 1,
    },
    Scene {
        name: "the same sector again",
        requests: &[
            (1, 64, 8, Read),
            (2, 64, 8, Read),
            (1, 64, 16, Write),
            (2, 68, 8, Read),
            (3, 56, 8, Discard),
        ],
        depth: 2,
    },
    Scene {
        name: "three classes",
        requests: &[
            (1, 700, 8, IdleRead),
            (2, 10, 8, Read),
            (3, 300, 8, UrgentRead),
            (1, 708, 8, IdleRead),
            (4, 18, 8, Write),
        ],
        depth: 2,
    },
];

fn request(&(task, start, len, kind): &Small) -> Request {
    let (task, start, len) = (TaskId(task), Sector(start), Sectors(len));
    let read = Request::read(task, start, len);
    let write = Request::write(task, start, len);
    match kind {
        Read => read,
        Write => write,
        SyncWrite => Request { sync: true, ..write },
        Discard => Request { op: Op::Discard, ..write },
        IdleRead => Request { prio: IoPrio::new(Class::Idle, 4), ..read },
        UrgentRead => Request { prio: IoPrio::new(Class::RealTime, 0), ..read },
    }
}

/// One run through a scene.
struct Run {
    subject: Subject,
    now: Instant,
    depth: usize,
    at_device: Vec<Tag>,
    may_requeue: bool,
}

impl Run {
    fn new(preset: &Preset, scene: &Scene) -> Self {
        // Fewer slots than tasks: some share the fallback.
        let limits = Limits { tags: 6, tasks: 2, queue_depth: scene.depth, ..Limits::default() };
        Self {
            subject: Subject::new(limits, (preset.config)(), Twin::None),
            now: Instant::EPOCH,
            depth: usize::from(scene.depth),
            at_device: Vec::new(),
            may_requeue: true,
        }
    }

    fn insert(&mut self, scene: &Scene, which: usize) {
        let tag = Tag(u16::try_from(which).expect("few"));
        let _ = self.subject.insert(self.now, tag, request(&scene.requests[which]));
        self.pump();
    }

    fn pump(&mut self) {
        while self.at_device.len() < self.depth {
            let Dispatch::Issue(tag) = self.subject.dispatch(self.now) else { return };
            self.at_device.push(tag);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn complete(&mut self, i: usize) {
        let tag = self.at_device.remove(i);
        self.pass(Duration::from_ms(3));
        drop(self.subject.complete(self.now, tag));
        self.pump();
    }

    fn requeue(&mut self) {
        self.may_requeue = false;
        let tag = self.at_device.remove(0);
        self.subject.requeue(self.now, tag);
        self.pump();
    }

    fn timer(&mut self) {
        if let Some((when, _)) = self.subject.next_timer() {
            self.now = self.now.max(when);
            self.subject.timer(self.now);
            self.pump();
        }
    }

    /// Sets whether the elevator checks itself after each event: it need not where the run before was in
    /// the same state.
    fn check_unless(&mut self, repeats: bool) {
        self.subject.check_every = if repeats { u32::MAX } else { 1 };
    }

    /// Nothing new comes: everything completes.
    fn finish(&mut self) {
        self.check_unless(false);
        while self.subject.ledger.waiting() + self.at_device.len() > 0 {
            if self.at_device.is_empty() {
                assert!(
                    self.subject.next_timer().is_some(),
                    "requests wait, and nothing is coming to change that"
                );
                self.timer();
            } else {
                self.complete(0);
            }
        }
        // What is left to happen must end too.
        for _ in 0..16 {
            self.timer();
        }
        assert!(self.subject.next_timer().is_none(), "an idle elevator keeps asking for timers");
    }
}

/// Takes one of `left`, by choice.
fn take(choices: &mut Exhaust, left: &mut Vec<usize>) -> usize {
    left.remove(choices.choose(left.len()))
}

/// Any event after any other, for the first requests of a scene.
fn interleave(choices: &mut Exhaust, run: &mut Run, scene: &Scene, requests: usize) {
    let mut left: Vec<usize> = (0..requests).collect();
    while !left.is_empty() {
        let device = run.at_device.len();
        let timer = usize::from(run.subject.next_timer().is_some());
        let requeue = usize::from(run.may_requeue && device > 0);
        let choice = choices.choose(1 + device + timer + requeue);
        let next = (choice == 0).then(|| take(choices, &mut left));
        run.check_unless(choices.repeats());
        if let Some(next) = next {
            run.insert(scene, next);
        } else if choice <= device {
            run.complete(choice - 1);
        } else if choice <= device + timer {
            run.timer();
        } else {
            run.requeue();
        }
    }
}

/// Every order of five requests, in bursts.
fn bursts(choices: &mut Exhaust, run: &mut Run, scene: &Scene) {
    let mut left: Vec<usize> = (0..scene.requests.len()).collect();
    while !left.is_empty() {
        let next = take(choices, &mut left);
        run.check_unless(choices.repeats());
        run.insert(scene, next);
        let all = choices.choose(2) == 1;
        run.check_unless(choices.repeats());
        if all {
            while !run.at_device.is_empty() {
                run.complete(0);
            }
        }
        run.pass(Duration::from_ms(1));
    }
}

fn every(preset: &Preset, scene: &Scene, what: &str, body: impl Fn(&mut Exhaust, &mut Run)) -> u64 {
    let (mut choices, mut runs) = (Exhaust::default(), 0);
    while choices.next_run() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut run = Run::new(preset, scene);
            body(&mut choices, &mut run);
            run.finish();
        }));
        if let Err(panic) = outcome {
            eprintln!("{}: {}, {what}: choices {:?}", preset.name, scene.name, choices.path());
            resume_unwind(panic);
        }
        runs += 1;
    }
    runs
}

fn run(preset: &str) {
    let preset = PRESETS.iter().find(|p| p.name == preset).expect("a preset of that name");
    let largest = std::env::var("FAIRHEAD_SMALL").map_or(3, |n| n.parse().expect("FAIRHEAD_SMALL is 1 to 5"));
    for scene in SCENES {
        for requests in 1..=largest {
            let body = |choices: &mut Exhaust, run: &mut Run| interleave(choices, run, scene, requests);
            let runs = every(preset, scene, "interleaved", body);
            assert!(
                runs >= [1, 2, 6, 24, 120][requests - 1],
                "{runs} runs are not even every order of {requests}"
            );
        }
        if largest > 3 {
            let runs = every(preset, scene, "in bursts", |choices, run| bursts(choices, run, scene));
            assert_eq!(runs, 120 * 32, "every order of five, and every division into bursts");
        }
    }
}

macro_rules! small {
    ($($test:ident: $preset:literal,)*) => {
        $(
            #[test]
            fn $test() {
                run($preset);
            }
        )*

        const COVERED: &[&str] = &[$($preset),*];
    };
}

small! {
    noop: "noop",
    deadline: "deadline",
    deadline_2_6_9: "deadline-2.6.9",
    mq_deadline: "mq-deadline",
    kyber: "kyber",
    anticipatory: "as",
    anticipatory_2_6_9: "as-2.6.9",
    cfq_2_6_10: "cfq-2.6.10",
    cfq_ts1: "cfq-ts1",
    cfq_ts2: "cfq-ts2",
    cfq: "cfq",
    cfq_2_6_33: "cfq-2.6.33",
    cfq_2_6_34: "cfq-2.6.34",
    bfq: "bfq",
    bfq_v0: "bfq-v0",
    bfq_v8: "bfq-v8",
    noop_groups: "noop+groups",
    deadline_groups: "deadline+groups",
    deadline_2_6_9_groups: "deadline-2.6.9+groups",
    anticipatory_groups: "as+groups",
    anticipatory_2_6_9_groups: "as-2.6.9+groups",
    cfq_groups: "cfq+groups",
    cfq_2_6_33_groups: "cfq-2.6.33+groups",
}

#[test]
fn every_preset_has_its_line() {
    let mut names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
    names.sort_unstable();
    let mut covered = COVERED.to_vec();
    covered.sort_unstable();
    assert_eq!(names, covered, "add or remove lines in `small!`");
}

#[test]
fn exhaust_makes_every_choice_once() {
    let (mut choices, mut seen) = (Exhaust::default(), Vec::new());
    while choices.next_run() {
        let a = choices.choose(3);
        let after_one = choices.repeats();
        seen.push((a, if a == 1 { choices.choose(2) } else { 0 }, after_one, choices.repeats()));
    }
    // Only the third run begins as the run before it.
    assert_eq!(seen, [(0, 0, false, false), (1, 0, false, false), (1, 1, true, false), (2, 0, false, false)]);
}
