//! A storm: random operations with faults, then calm, in which everything must drain.
//!
//! Everything is drawn from one [`Chance`]: limits, preset, tunables, the mix of requests, which faults occur
//! at all. Faults are requests that are slow, stuck, completed out of order or handed back; timers that are
//! late, coarse or spurious; tasks that exit in the middle of their slice (and may come back under the same
//! number); priorities and tunables that change in flight; groups of tasks, and of groups their weights,
//! classes, limits, guarantees and parents, and groups that go and come back; and the scheduler being
//! exchanged under load. A failed request looks like a finished one to a scheduler (the driver retries or
//! not), so it has no operation of its own.

use super::bounds::{self, Tested};
use super::chance::Chance;
use super::draw::{self, Mix, Task, narrow};
use super::subject::{Subject, Twin};
use fairhead_core::sched::any::{AnyConfig, PRESETS};
use fairhead_core::{Control, Dispatch, Duration, GroupId, Instant, Limits, Max, Tag, TaskId};

/// A request at the device.
#[derive(Clone, Copy, Debug)]
struct Flight {
    tag: Tag,
    due: Instant,
}

/// A request that a task will send when it has thought about the last one.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    task: usize,
    at: Instant,
}

/// How the driver keeps its timers.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Timers fire this much too late at most.
    late: Duration,
    /// Timers fire at multiples of this.
    coarse: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Insert,
    Progress,
    CompleteAny,
    Requeue,
    SpuriousTimer,
    Poll,
    Jump,
    Exit,
    SetPrio,
    Groups,
    Retune,
    Swap,
}

const STEPS: [Step; 12] = [
    Step::Insert,
    Step::Progress,
    Step::CompleteAny,
    Step::Requeue,
    Step::SpuriousTimer,
    Step::Poll,
    Step::Jump,
    Step::Exit,
    Step::SetPrio,
    Step::Groups,
    Step::Retune,
    Step::Swap,
];

/// What a case has switched on.
#[derive(Debug)]
struct Knobs {
    weights: [u64; STEPS.len()],
    clock: Clock,
    /// Percentage of requests that get stuck.
    stuck: u64,
    /// How long others take at most.
    service_us_max: u64,
    burst: u64,
    /// Percentage of completions upon which the task sends its next request.
    respond: u64,
    /// How long it thinks before at most.
    think_us_max: u64,
    /// Whether requests for which the scheduler has no room are not sent.
    polite: bool,
    /// Percentage of insertions by the task that also made the last one.
    again: u64,
    /// Percentage of events after which the driver asks for work.
    eager: u64,
    steps: u64,
}

impl Knobs {
    fn draw(chance: &mut Chance) -> Self {
        let mut weights = [0; STEPS.len()];
        for w in &mut weights {
            *w = *chance.pick(&[0, 0, 1, 2, 8]);
        }
        weights[0] += *chance.pick(&[1, 10, 10]);
        weights[1] += *chance.pick(&[10, 30, 100]);
        // Exchanging the scheduler drains it: not too often.
        let swaps = &mut weights[STEPS.len() - 1];
        *swaps = u64::from(*swaps > 0 && chance.percent(50));
        Self {
            weights,
            clock: Clock {
                late: Duration::from_us(*chance.pick(&[0, 0, 100, 50_000])),
                coarse: Duration::from_ms(*chance.pick(&[0, 0, 1, 4, 10])),
            },
            stuck: *chance.pick(&[0, 0, 2, 20]),
            service_us_max: *chance.pick(&[1, 200, 20_000, 20_000, 500_000]),
            burst: chance.scaled(1, 31),
            respond: *chance.pick(&[0, 50, 95, 100]),
            think_us_max: *chance.pick(&[0, 100, 2_000, 20_000]),
            polite: chance.percent(50),
            again: *chance.pick(&[0, 50, 95]),
            eager: *chance.pick(&[100, 100, 60, 10]),
            steps: *chance.pick(&[30, 300, 1000, 4000]),
        }
    }
}

/// See the [module](self).
pub(crate) struct Storm<'a> {
    chance: &'a mut Chance,
    knobs: Knobs,
    limits: Limits,
    config: AnyConfig,
    mix: Mix,
    tasks: Vec<Task>,
    subject: Subject,
    now: Instant,
    flights: Vec<Flight>,
    arrivals: Vec<Arrival>,
    last_task: usize,
    twin: Twin,
}

/// A stuck request takes this long at most.
const STUCK_MAX: Duration = Duration::from_secs(60);

impl<'a> Storm<'a> {
    /// Draws a case for a scheduler.
    pub(crate) fn draw(chance: &'a mut Chance, tested: impl Into<Tested>) -> Self {
        let tested = tested.into();
        super::seeds::about(tested.name);
        let limits = draw::limits(chance);
        let mut config = tested.config;
        draw::tune(chance, &mut config);
        let mix = Mix::draw(chance, &limits);
        // More tasks than get state of their own are allowed.
        let count = *chance.pick(&[1, 2, 3, 5, 12, 40, 200]);
        let tasks = (0..count).map(|_| narrow(chance.below(1 << 32))).map(TaskId);
        let tasks = tasks.collect::<Vec<_>>();
        let tasks = tasks.into_iter().map(|id| Task::draw(chance, &mix, id)).collect();
        let twin = *chance.pick(&[Twin::None, Twin::Batches, Twin::Replay, Twin::SpuriousTimers]);
        let knobs = Knobs::draw(chance);
        let now = match chance.percent(95) {
            true => Instant::EPOCH + Duration::from_us(chance.scaled(0, 1 << 40)),
            // Where a signed difference would overflow.
            false => Instant::from_ns((1 << 63) - chance.scaled(1, Duration::from_secs(10).as_ns())),
        };
        let mut subject = Subject::new(limits, config, twin);
        if super::seeds::verbose() {
            eprintln!(
                "{limits:?}\n{config:?}\n{mix:?}\n{knobs:?}\n{} tasks, twin {twin:?}",
                Vec::len(&tasks)
            );
        }
        subject.check_every = 1;
        let (flights, arrivals) = (Vec::new(), Vec::new());
        Self {
            chance,
            knobs,
            limits,
            config,
            mix,
            tasks,
            subject,
            now,
            flights,
            arrivals,
            last_task: 0,
            twin,
        }
    }

    /// Faults, then calm. Returns the instant at which all was done.
    pub(crate) fn run(mut self) -> Instant {
        self.nest_groups();
        for _ in 0..self.knobs.steps {
            if self.chance.exhausted() {
                break;
            }
            self.step();
            if self.chance.percent(self.knobs.eager) {
                self.pump();
            }
        }
        self.settle();
        self.now
    }

    fn step(&mut self) {
        match STEPS[self.chance.weighted(&self.knobs.weights)] {
            Step::Insert => self.insert_burst(),
            Step::Progress => self.progress(),
            Step::CompleteAny => self.complete_any(),
            Step::Requeue => self.requeue_any(),
            Step::SpuriousTimer => self.subject.timer(self.now),
            Step::Poll => self.pump(),
            Step::Jump => self.jump(),
            Step::Exit => self.exit(),
            Step::SetPrio => {
                let task = self.chance.index(self.tasks.len());
                let prio = self.tasks[task].reprioritise(self.chance, &self.mix);
                self.subject.control(self.now, Control::SetPrio(self.tasks[task].id, prio));
            }
            Step::Groups => self.change_group(),
            Step::Retune => self.retune(),
            Step::Swap => self.swap(),
        }
    }

    fn insert_burst(&mut self) {
        if !self.chance.percent(self.knobs.again) {
            self.last_task = self.chance.index(self.tasks.len());
        }
        for _ in 0..self.chance.range(1, self.knobs.burst) {
            self.insert(self.last_task);
        }
    }

    fn insert(&mut self, task: usize) {
        let Some(tag) = self.subject.ledger.free_tag() else { return };
        let rq = self.tasks[task].request(self.chance, &self.mix);
        if !self.subject.has_room(&rq) && self.knobs.polite {
            return;
        }
        if self.chance.percent(self.mix.alone) {
            return self.subject.insert_alone(self.now, tag, rq);
        }
        let _ = self.subject.insert(self.now, tag, rq);
    }

    /// Time passes up to the next completion, arrival or timer, which happens, more or less punctually.
    fn progress(&mut self) {
        let completion = self.flights.iter().map(|f| f.due).min();
        let timer = self.subject.next_timer().map(|(when, _)| self.fires(when));
        let arrival = self.arrivals.iter().map(|a| a.at).min();
        let Some(next) = completion.into_iter().chain(arrival).chain(timer).min() else {
            self.now = self.now + Duration::from_us(self.chance.below(1000));
            return;
        };
        self.now = self.now.max(next);
        if let Some(i) = self.flights.iter().position(|f| f.due <= self.now) {
            self.complete(i);
        } else if let Some(i) = self.arrivals.iter().position(|a| a.at <= self.now) {
            let task = self.arrivals.swap_remove(i).task;
            self.insert(task);
        } else if self.subject.next_timer().is_some_and(|(when, _)| when <= self.now) {
            self.subject.timer(self.now);
        }
    }

    /// When a timer for `when` fires.
    fn fires(&mut self, when: Instant) -> Instant {
        let Clock { late, coarse } = self.knobs.clock;
        let at = when + Duration::from_ns(self.chance.range(0, late.as_ns()));
        if coarse.is_zero() { at } else { (at + (coarse - Duration::from_ns(1))).floor_to(coarse) }
    }

    fn complete(&mut self, flight: usize) {
        let tag = self.flights.swap_remove(flight).tag;
        for done in self.subject.complete(self.now, tag) {
            if self.chance.percent(self.knobs.respond)
                && let Some(task) = self.tasks.iter().position(|t| t.id == done.rq.task)
            {
                let at = self.now + Duration::from_us(self.chance.range(0, self.knobs.think_us_max));
                self.arrivals.push(Arrival { task, at });
            }
        }
    }

    fn complete_any(&mut self) {
        if !self.flights.is_empty() {
            let i = self.chance.index(self.flights.len());
            self.complete(i);
        }
    }

    fn requeue_any(&mut self) {
        if !self.flights.is_empty() {
            let i = self.chance.index(self.flights.len());
            let tag = self.flights.swap_remove(i).tag;
            self.subject.requeue(self.now, tag);
        }
    }

    fn jump(&mut self) {
        let ns = self.chance.scaled(1, Duration::from_secs(3600).as_ns());
        self.now = self.now + Duration::from_ns(ns);
    }

    /// A task ends; another takes its place, now and then under the same number.
    fn exit(&mut self) {
        let i = self.chance.index(self.tasks.len());
        self.subject.control(self.now, Control::TaskExit(self.tasks[i].id));
        let id = if self.chance.percent(30) {
            self.tasks[i].id
        } else {
            TaskId(narrow(self.chance.below(1 << 32)))
        };
        self.tasks[i] = Task::draw(self.chance, &self.mix, id);
    }

    /// Before any request comes: some groups are inside others.
    fn nest_groups(&mut self) {
        for group in 2..self.limits.groups {
            if self.chance.percent(50) {
                let parent = GroupId(narrow(self.chance.below(u64::from(group))));
                self.subject.control(self.now, Control::SetParent(GroupId(group), parent));
            }
        }
    }

    fn change_group(&mut self) {
        if self.chance.percent(40) {
            let task = self.chance.index(self.tasks.len());
            self.tasks[task].regroup(self.chance, &self.mix);
            return;
        }
        let change = draw::group_change(self.chance, self.limits.groups);
        self.subject.control(self.now, change);
    }

    /// At the end some cases have no limits any more; others go on under them.
    fn lift_limits(&mut self) -> bool {
        let lifts = self.chance.percent(50);
        for group in (0..self.limits.groups).filter(|_| lifts) {
            self.subject.control(self.now, Control::SetMax(GroupId(group), Max::default()));
        }
        lifts
    }

    /// Other tunables, under load.
    fn retune(&mut self) {
        let mut config = self.config;
        draw::tune(self.chance, &mut config);
        if self.subject.reconfigure(self.now, config) {
            self.config = config;
        }
    }

    /// Another scheduler takes over: the old one is drained, the device finishes, the new one starts.
    fn swap(&mut self) {
        while self.subject.ledger.waiting() > 0 {
            let Some(tag) = self.subject.drain(self.now) else { panic!("requests wait, but drain has none") };
            self.flights.push(Flight { tag, due: self.now });
            // The device may still refuse some, though not for ever.
            if !self.chance.exhausted() && self.chance.percent(self.knobs.stuck) {
                self.requeue_any();
            }
        }
        assert_eq!(self.subject.drain(self.now), None, "drained twice");
        while !self.flights.is_empty() {
            self.now = self.now + Duration::from_us(self.chance.below(5000));
            self.complete_any();
        }
        let preset = self.chance.pick(PRESETS);
        super::seeds::about(preset.name);
        self.config = (preset.config)();
        draw::tune(self.chance, &mut self.config);
        let check_every = self.subject.check_every;
        self.subject = Subject::new(self.limits, self.config, self.twin);
        self.subject.check_every = check_every;
        self.nest_groups();
    }

    /// The driver's loop: while the device has room, ask.
    fn pump(&mut self) {
        while self.flights.len() < usize::from(self.limits.queue_depth) {
            let Dispatch::Issue(tag) = self.subject.dispatch(self.now) else { return };
            let service = if self.chance.percent(self.knobs.stuck) {
                Duration::from_ns(self.chance.range(0, STUCK_MAX.as_ns()))
            } else {
                Duration::from_us(self.chance.range(0, self.knobs.service_us_max))
            };
            self.flights.push(Flight { tag, due: self.now + service });
        }
    }

    /// Faults stop, nothing new comes: everything drains, in bounded time.
    fn settle(&mut self) {
        let start = self.now;
        let requests = self.subject.ledger.waiting() + self.flights.len();
        let mut limit = start + bounds::drain(&self.config, &self.limits, requests);
        if !self.lift_limits() && self.limits.groups > 1 {
            // Each that waits may wait for the limits of its group and of all above.
            limit = limit + draw::LIMIT_MAX * ((requests as u64 + 1) * u64::from(self.limits.groups));
        }
        for flight in &mut self.flights {
            flight.due = flight.due.min(start + bounds::SERVICE_MAX);
        }
        self.arrivals.clear();
        self.knobs.respond = 0;
        self.knobs.stuck = 0;
        self.knobs.service_us_max = bounds::SERVICE_MAX.as_us();
        self.knobs.clock = Clock { late: Duration::ZERO, coarse: Duration::ZERO };
        loop {
            self.pump();
            let waiting = self.subject.ledger.waiting();
            if waiting == 0 && self.flights.is_empty() {
                return;
            }
            assert!(
                self.now <= limit,
                "{waiting} of {requests} requests still wait {:?} after the faults stopped",
                { self.now.since(start) }
            );
            let coming = !self.flights.is_empty() || self.subject.next_timer().is_some();
            assert!(coming, "{waiting} requests wait, and nothing is coming that could change that");
            self.progress();
        }
    }
}
