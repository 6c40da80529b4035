//! Every order of up to five requests, under a scheduler and all oracles.
//!
//! A *scene* is a handful of requests and a device. The exhaustive part takes every order of insertion and
//! every interleaving with what the device and the clock may do:
//!
//! - with up to three requests (more with `FAIRHEAD_SMALL`: four in CI): after each event, any of: insert the
//!   next, complete any request at the device (or hand one back, once), let time pass up to the next timer.
//!   The driver asks for work after each event, as it must;
//! - with five, unless `FAIRHEAD_SMALL` is less than 4: every order of insertion, and after each insertion
//!   none or all of the waiting work is done.
//!
//! Random operations reach deep states, but not evenly; this reaches every shallow one.

use super::bounds::Tested;
use super::exhaust::Exhaust;
use super::subject::{Subject, Twin};
use fairhead_core::{
    Class, Dispatch, Duration, Instant, IoPrio, Limits, Op, Request, Sector, Sectors, Tag, TaskId,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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
    fn new(tested: &Tested, scene: &Scene) -> Self {
        // Fewer slots than tasks: some share the fallback.
        let limits = Limits { tags: 6, tasks: 2, queue_depth: scene.depth, ..Limits::default() };
        Self {
            subject: Subject::new(limits, tested.config, Twin::None),
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

fn every(tested: &Tested, scene: &Scene, what: &str, body: impl Fn(&mut Exhaust, &mut Run)) -> u64 {
    let (mut choices, mut runs) = (Exhaust::default(), 0);
    while choices.next_run() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut run = Run::new(tested, scene);
            body(&mut choices, &mut run);
            run.finish();
        }));
        if let Err(panic) = outcome {
            eprintln!("{}: {}, {what}: choices {:?}", tested.name, scene.name, choices.path());
            resume_unwind(panic);
        }
        runs += 1;
    }
    runs
}

/// Runs a scheduler through every scene.
pub(crate) fn run(tested: &Tested) {
    let largest = std::env::var("FAIRHEAD_SMALL").map_or(3, |n| n.parse().expect("FAIRHEAD_SMALL is 1 to 5"));
    for scene in SCENES {
        for requests in 1..=largest {
            let body = |choices: &mut Exhaust, run: &mut Run| interleave(choices, run, scene, requests);
            let runs = every(tested, scene, "interleaved", body);
            assert!(
                runs >= [1, 2, 6, 24, 120][requests - 1],
                "{runs} runs are not even every order of {requests}"
            );
        }
        if largest > 3 {
            let runs = every(tested, scene, "in bursts", |choices, run| bursts(choices, run, scene));
            assert_eq!(runs, 120 * 32, "every order of five, and every division into bursts");
        }
    }
}
