//! `fairhead try`: a scheduler and its rival in turns on a real disk, measured, and put back by a watchdog.

mod jobs;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairhead_machine::tracefs::{BlockEvents, Options};
use fairhead_machine::trial::{self, Figures, Side};
use fairhead_machine::watchdog::{Ending, Watchdog, watch};
use fairhead_machine::{Disk, Machine, Queue, Settings, Tree, wanted};

use crate::apply::{load_module, not_taken, ready, refused};
use crate::args::{PutBackArgs, ReportFormat, TryArgs};
use crate::error::CliError;
use crate::files::Outputs;
use crate::out::{self, Progress};
use crate::output::trial::{Trial, render};
use crate::plan::positive_time;
use jobs::Jobs;

/// The part of a turn that is not counted.
const SETTLE: Duration = Duration::from_secs(1);
const TURN_MIN: Duration = Duration::from_secs(2);
/// How often it is looked whether events have come, and whether the trial shall end.
const STEP: Duration = Duration::from_millis(50);

static RUNS: AtomicBool = AtomicBool::new(false);
static END: AtomicBool = AtomicBool::new(false);

/// Asks a trial that runs to end; false if there is none, or if it has been asked before.
pub(crate) fn end() -> bool {
    RUNS.load(Ordering::SeqCst) && !END.swap(true, Ordering::SeqCst)
}

/// The watchdog's process.
pub(crate) fn put_back(args: &PutBackArgs) -> Result<(), CliError> {
    let failed = |e: std::io::Error| CliError::Misuse(format!("only fairhead try starts this: {e}"));
    let (ending, unheard) = watch(args.handle, &args.disk).map_err(failed)?;
    // The trial was killed: only this process is left to tell the user.
    if unheard {
        out::note(&told(&args.disk, &ending));
    }
    Ok(())
}

fn told(disk: &str, ending: &Ending) -> String {
    match ending {
        Ending::Back => format!("{disk} is set as before"),
        Ending::Left(scheduler) => {
            format!("{disk} is left under {scheduler}: another program chose that while the trial ran")
        }
        Ending::Gone => format!("{disk} is gone; nothing to put back"),
        Ending::Failed(why) => format!("{disk} could not be put back: {why}"),
    }
}

/// The two settings, and the turns.
struct Plan {
    sides: [Settings; 2],
    schedulers: [String; 2],
    /// As the report has them.
    names: [String; 2],
    turn: Duration,
    turns: usize,
}

/// Compares two settings of a disk.
pub(crate) fn try_disk(args: &TryArgs) -> Result<(), CliError> {
    let file = args.output.file.as_deref();
    Outputs::default().file("-o", file).check()?;
    let tree = Tree::new("/");
    let machine = Machine::read(&tree);
    let disk = machine.find(&tree, &args.disk).map_err(CliError::Misuse)?;
    let wanted_b = wanted(disk, &args.settings).map_err(CliError::Misuse)?;
    let (turn, turns) = turns(args)?;
    let jobs = args.job.as_deref().map(Jobs::read).transpose()?;
    let queue = ready(&machine, &disk.name)?;
    let more = wanted_b.values.keys().map(String::as_str);
    let before = queue.settings(more).map_err(|e| refused(&machine, &e))?;
    let sides = sides(args, disk, &before, wanted_b)?;
    let schedulers = [scheduler(disk, &sides[0]), scheduler(disk, &sides[1])];
    let names = [schedulers[0].clone(), name(&schedulers[1], &sides[1])];
    let plan = Plan { sides, schedulers, names, turn, turns };
    let events = BlockEvents::open(&options(&tree, disk)).map_err(|e| CliError::Failed(e.to_string()))?;
    let mut program = Command::new("/proc/self/exe");
    let watchdog = Watchdog::start(program.arg("put-back"), &queue, &before)
        .map_err(|e| CliError::Failed(format!("cannot start a watchdog, so nothing is changed: {e}")))?;
    RUNS.store(true, Ordering::SeqCst);
    let mut running = Running {
        machine: &machine,
        queue: &queue,
        plan: &plan,
        watchdog,
        events,
        jobs,
        figures: Figures::default(),
    };
    let stop = running.measure();
    let Running { watchdog, events, mut figures, mut jobs, .. } = running;
    if let Some(jobs) = &mut jobs {
        jobs.end();
    }
    end_watch(&queue, &before, watchdog, matches!(stop, Stop::Overruled(_)))?;
    let lost = finish(events, &mut figures, jobs.as_ref())?;
    RUNS.store(false, Ordering::SeqCst);
    let verdict = trial::verdict(&figures, &|name| jobs.as_ref().and_then(|jobs| jobs.kind(name)));
    report(args, &Trial { disk, names: &plan.names, verdict: &verdict, lost }, stop)
}

fn report(args: &TryArgs, trial: &Trial<'_>, stop: Stop) -> Result<(), CliError> {
    let disk = &trial.disk.name;
    let file = args.output.file.as_deref();
    let format = if args.json { ReportFormat::Json } else { args.output.format };
    let why = match stop {
        Stop::Done => None,
        Stop::Interrupted => Some("interrupted".to_owned()),
        Stop::Overruled(scheduler) => Some(format!(
            "another program has chosen {scheduler} for {disk}; the trial has ended, and leaves that"
        )),
        Stop::Gone => Some(format!("{disk} is gone; the trial has ended")),
        Stop::Failed(e) => return Err(e),
    };
    if trial.verdict.pairs > 0 {
        out::results(file, &render(trial, format, out::coloured(file)))?;
    }
    match why {
        None => Ok(()),
        Some(why) if why == "interrupted" => {
            out::note("interrupted; everything is as before");
            out::exit_without_parts(crate::EXIT_INTERRUPTED)
        }
        Some(why) => Err(CliError::Failed(why)),
    }
}

/// The settings of both sides.
fn sides(args: &TryArgs, disk: &Disk, before: &Settings, b: Settings) -> Result<[Settings; 2], CliError> {
    let mut a = before.clone();
    if let Some(name) = &args.against {
        a = wanted(disk, std::slice::from_ref(name)).map_err(CliError::Misuse)?;
        // What only one side sets goes back to what it was on the other. The number of requests comes with a
        // scheduler: that of another one has no meaning.
        let is_other = a.scheduler != before.scheduler;
        let is_reset = |n: &str| n.starts_with("iosched/") || is_other && n == "nr_requests";
        let more = b.values.keys().filter(|n| !is_reset(n));
        a.values.extend(more.filter_map(|n| Some((n.clone(), before.values.get(n)?.clone()))));
    }
    for scheduler in [&a.scheduler, &b.scheduler].into_iter().flatten() {
        load_module(disk, scheduler)?;
    }
    let same = |name: &String, value: &String| a.values.get(name) == Some(value);
    if b.scheduler.as_ref().is_none_or(|s| a.scheduler.as_ref() == Some(s))
        && b.values.iter().all(|(n, v)| same(n, v))
    {
        return Err(CliError::Misuse(format!("nothing to compare: both sides are {}", scheduler(disk, &a))));
    }
    Ok([a, b])
}

/// The scheduler of a side.
fn scheduler(disk: &Disk, side: &Settings) -> String {
    side.scheduler.as_deref().or(disk.scheduler.as_deref()).unwrap_or_default().to_owned()
}

/// What was asked for, in words.
fn name(scheduler: &str, side: &Settings) -> String {
    let values = side.values.iter().map(|(n, v)| format!(" {}={v}", n.trim_start_matches("iosched/")));
    scheduler.to_owned() + &values.collect::<String>()
}

fn turns(args: &TryArgs) -> Result<(Duration, usize), CliError> {
    let time = Duration::from_nanos(positive_time("-t", &args.time)?.as_ns());
    let turn = Duration::from_nanos(positive_time("--turn", &args.turn)?.as_ns());
    if turn < TURN_MIN {
        return Err(CliError::Misuse(
            "--turn is too short: its first second is not counted, so 2s at least".to_owned(),
        ));
    }
    // Whole groups of four, A B B A.
    let turns = usize::try_from(time.as_nanos() / turn.as_nanos() / 4 * 4).unwrap_or(usize::MAX);
    if turns < 4 {
        let least = turn * 4;
        return Err(CliError::Misuse(format!("-t is too short: four turns take {} s", least.as_secs_f32())));
    }
    if turns > 10_000 {
        return Err(CliError::Misuse("-t is too long: at most 10,000 turns".to_owned()));
    }
    Ok((turn, turns))
}

/// The disk and its partitions.
fn options(tree: &Tree, disk: &Disk) -> Options {
    Options { devices: tree.devices(&disk.name), ..Options::default() }
}

/// Takes the last events, of which some are of the last turn. Returns how many were lost.
fn finish(mut events: BlockEvents, figures: &mut Figures, jobs: Option<&Jobs>) -> Result<u64, CliError> {
    let mut last = Vec::new();
    events.finish(&mut last).map_err(|e| CliError::Failed(e.to_string()))?;
    figures.put(&last, |pid, comm| row(jobs, pid, comm));
    figures.settle();
    Ok(events.lost())
}

/// Has everything put back.
fn end_watch(queue: &Queue, before: &Settings, watchdog: Watchdog, leave: bool) -> Result<(), CliError> {
    let ending = watchdog.finish(leave).or_else(|e| {
        // The watchdog was killed: this process has to put it back.
        let back = queue.set(before).map(|_| Ending::Back);
        back.map_err(|failed| CliError::Failed(format!("{failed} ({e})")))
    })?;
    match ending {
        Ending::Failed(_) => Err(CliError::Failed(told(queue.name(), &ending))),
        _ => Ok(()),
    }
}

/// The row of a thread: the job that it works for, else its own name.
fn row(jobs: Option<&Jobs>, thread: u32, comm: &str) -> String {
    jobs.and_then(|j| j.name(thread)).unwrap_or_else(|| plain_name(comm))
}

/// Threads of the kernel that do the same have one name.
fn plain_name(comm: &str) -> String {
    let plain = if comm.starts_with("kworker/") { "kworker (the kernel writes back)" } else { comm };
    plain.to_owned()
}

/// Why the turns ended.
enum Stop {
    Done,
    Interrupted,
    Overruled(String),
    Gone,
    Failed(CliError),
}

struct Running<'a> {
    machine: &'a Machine,
    queue: &'a Queue,
    plan: &'a Plan,
    watchdog: Watchdog,
    events: BlockEvents,
    jobs: Option<Jobs>,
    figures: Figures,
}

impl Running<'_> {
    /// Goes through the turns.
    fn measure(&mut self) -> Stop {
        let progress = Progress::timed("trying");
        for turn in 0..self.plan.turns {
            if let Err(stop) = self.turn(turn, &progress) {
                return stop;
            }
        }
        Stop::Done
    }

    fn turn(&mut self, turn: usize, progress: &Progress) -> Result<(), Stop> {
        let which = usize::from(trial::side(turn) == Side::B);
        let name = &self.plan.names[which];
        progress.say(format!("turn {} of {}, {name}", turn + 1, self.plan.turns));
        if turn > 0 {
            self.check(usize::from(trial::side(turn - 1) == Side::B))?;
        }
        self.watchdog.announce(&self.plan.schedulers[which]).map_err(|e| {
            Stop::Failed(CliError::Failed(format!(
                "the watchdog is not there any more, so the trial has ended: {e}"
            )))
        })?;
        if let Some(jobs) = &mut self.jobs {
            jobs.end();
        }
        self.set(which)?;
        self.until(SETTLE, turn, progress)?;
        let from = now_ns();
        self.until(self.plan.turn - SETTLE, turn, progress)?;
        let to = now_ns();
        self.check(which)?;
        self.figures.turn(from, to);
        Ok(())
    }

    fn set(&self, which: usize) -> Result<(), Stop> {
        let changed = self
            .queue
            .set(&self.plan.sides[which])
            .map_err(|e| if e.is_gone { Stop::Gone } else { Stop::Failed(refused(self.machine, &e)) })?;
        // What the first side has was read from the kernel.
        match changed.iter().find(|c| which == 1 && !c.is_rounded()) {
            Some(wrong) => Err(Stop::Failed(CliError::Failed(not_taken(wrong)))),
            None => Ok(()),
        }
    }

    /// Whether the scheduler is still the one that this side set.
    fn check(&self, which: usize) -> Result<(), Stop> {
        match self.queue.scheduler() {
            _ if self.queue.is_empty() => Err(Stop::Gone),
            Ok(now) if now == self.plan.schedulers[which] => Ok(()),
            Ok(now) => Err(Stop::Overruled(now)),
            Err(_) => Err(Stop::Gone),
        }
    }

    /// Takes events for as long.
    fn until(&mut self, time: Duration, turn: usize, progress: &Progress) -> Result<(), Stop> {
        let failed = |e: &dyn std::fmt::Display| Stop::Failed(CliError::Failed(e.to_string()));
        let start = instant();
        let mut events = Vec::new();
        while start.elapsed() < time {
            if END.load(Ordering::SeqCst) {
                return Err(Stop::Interrupted);
            }
            if let Some(jobs) = &mut self.jobs {
                jobs.tend().map_err(Stop::Failed)?;
            }
            self.events.wait(STEP.min(time)).map_err(|e| failed(&e))?;
            self.events.read(&mut events).map_err(|e| failed(&e))?;
            let jobs = self.jobs.as_ref();
            self.figures.put(&events, |pid, comm| row(jobs, pid, comm));
            events.clear();
            let done = turn as u32 * self.plan.turn + start.elapsed();
            progress.at(
                done.as_millis() as usize,
                (self.plan.turn * self.plan.turns as u32).as_millis() as usize,
            );
        }
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "turns are of real time")]
fn instant() -> Instant {
    Instant::now()
}

/// The time on the clock of the events.
fn now_ns() -> u64 {
    fairhead_machine::monotonic_ns()
}
