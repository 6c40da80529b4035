//! After an answer: whether, and for how long, the disk is kept for the next bio of the task that got it.
//!
//! The engine learns of a completion before the client does. If it asked the scheduler at once, the scheduler
//! would have to give the disk to another task, although it prefers the client's next request, which arrives
//! a few tens of microseconds later. That is deceptive idleness. A multi-queue kernel has a rule against it
//! by accident: there a completion does not ask the scheduler; the next insertion does, and that is usually
//! the answered client's.
//!
//! ```text
//!   disk      ▓▓ A ▓▓│           │▓▓ A ▓▓            ▓▓ A ▓▓│▓▓▓▓ B ▓▓▓▓│▓▓ A ▓▓
//!   A's side         └ thinks ──┘                           └ thinks ─┘   waits
//!   B's side   waits ············                    waits ··
//!                with this rule                         without
//! ```
//!
//! **When.** Three things have to hold after a completion:
//!
//! - the scheduler says that it would prefer the task's next request to all that wait ([`prefers`]):
//!   mq-deadline for a task whose class is above all that wait, BFQ for the queue that it idles for, of which
//!   it would otherwise use the pause for an injection. Schedulers that prefer no task (noop, deadline,
//!   kyber), or hold the disk by themselves (CFQ, AS), never wait here;
//! - the task's think time is known: at least [`TRUSTED`] times it has been measured from such a completion
//!   to the task's next bio;
//! - its mean is at most half of [`MOST`]. A pause counts as twice [`MOST`] at most, so a task that does not
//!   come back in time once in four times or more is not waited for.
//!
//! **How long.** Mean and four mean deviations, as TCP waits for an acknowledgement, but [`LEAST`] to
//! [`MOST`]. The task's next bio ends the wait at once; so does any change from outside. Nothing is lost when
//! the wait ends in vain but that time.
//!
//! The think times are kept by task in a table of fixed size. Two tasks with the same place in it take it
//! from each other, and while both are active neither is waited for.
//!
//! [`prefers`]: fairhead_core::elevator::Elevator::prefers
//!
//! What it does not do: idle. What is worth milliseconds is the scheduler's to decide.

use fairhead_core::units::{Duration, Instant, TaskId};

/// The longest wait. A client on the same machine needs 10 to 100 us to send its next request; a rotating
/// disk loses a few percent of one random request by it, flash a few requests.
const MOST: Duration = Duration::from_us(400);

/// The shortest wait, however regular the task is: about so late the engine's own timers are.
const LEAST: Duration = Duration::from_us(20);

/// The number of measurements from which on a think time is trusted.
const TRUSTED: u32 = 3;

/// How long a task takes from an answer to its next bio.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    task: Option<TaskId>,
    /// When it was answered, until its next bio comes.
    answered: Option<Instant>,
    /// How often it has been measured, up to [`TRUSTED`].
    count: u32,
    /// Mean, and mean deviation from it, in nanoseconds.
    mean: u64,
    deviation: u64,
}

impl Habit {
    fn learn(&mut self, pause: Duration) {
        let pause = pause.min(MOST * 2).as_ns();
        if self.count == 0 {
            (self.mean, self.deviation) = (pause, pause / 2);
        } else {
            let error = pause.abs_diff(self.mean);
            self.deviation = (self.deviation * 3 + error) / 4;
            self.mean = (self.mean * 7 + pause) / 8;
        }
        self.count = (self.count + 1).min(TRUSTED);
    }

    /// How long it is worth waiting for the task; `None`: not at all.
    fn wait(&self) -> Option<Duration> {
        let is_quick = self.count == TRUSTED && self.mean <= MOST.as_ns() / 2;
        is_quick.then(|| Duration::from_ns(self.mean + 4 * self.deviation).max(LEAST).min(MOST))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Awaiting {
    habits: Vec<Habit>,
    /// How many answers wait for the next bio of their task.
    open: u32,
    /// The task that the disk is kept for, and until when.
    held: Option<(TaskId, Instant)>,
}

impl Awaiting {
    /// Keeps the think times of at most `tasks` tasks.
    pub(crate) fn new(tasks: u32) -> Self {
        Self { habits: vec![Habit::default(); tasks.max(1) as usize], open: 0, held: None }
    }

    fn habit(&mut self, task: TaskId) -> &mut Habit {
        let place = task.0 as usize % self.habits.len();
        &mut self.habits[place]
    }

    /// The task has an answer, and the scheduler would prefer its next request to those that wait.
    pub(crate) fn answered(&mut self, now: Instant, task: TaskId) {
        let habit = self.habit(task);
        if habit.task != Some(task) {
            *habit = Habit { task: Some(task), answered: habit.answered, ..Habit::default() };
        }
        let wait = habit.wait();
        let is_new = habit.answered.replace(now).is_none();
        self.open += u32::from(is_new);
        self.held = wait.map(|wait| (task, now + wait));
    }

    /// The task asks for something.
    pub(crate) fn asked(&mut self, now: Instant, task: TaskId) {
        if self.open == 0 {
            return;
        }
        let habit = self.habit(task);
        if habit.task == Some(task)
            && let Some(answered) = habit.answered.take()
        {
            habit.learn(now.saturating_since(answered));
            self.open -= 1;
        }
        if self.held.is_some_and(|(whom, _)| whom == task) {
            self.held = None;
        }
    }

    /// Whether the disk is kept for a task now.
    pub(crate) fn is_held(&mut self, now: Instant) -> bool {
        self.held = self.held.filter(|&(_, until)| now < until);
        self.held.is_some()
    }

    /// When the wait ends at the latest.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.held.map(|(_, until)| until)
    }

    /// The wait ends: something has changed.
    pub(crate) fn end(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId(7);

    fn us(n: u64) -> Instant {
        Instant::EPOCH + Duration::from_us(n)
    }

    /// Answers the task each millisecond and lets it come back after each of the pauses in turn, in
    /// microseconds. Returns how long the scheduler waits for it in the end.
    fn wait_after(awaiting: &mut Awaiting, from: u64, pauses: &[u64]) -> Option<Duration> {
        for (i, pause) in (from..).zip(pauses) {
            awaiting.answered(us(i * 2000), TASK);
            awaiting.asked(us(i * 2000 + pause), TASK);
            assert_eq!(awaiting.until(), None, "it has come");
        }
        let now = us((from + pauses.len() as u64) * 2000);
        awaiting.answered(now, TASK);
        let wait = awaiting.until().map(|until| until.since(now));
        awaiting.asked(now + Duration::from_us(pauses[0]), TASK);
        wait
    }

    #[test]
    fn a_task_is_waited_for_once_its_think_time_is_known_to_be_short() {
        let mut awaiting = Awaiting::new(16);
        assert_eq!(wait_after(&mut awaiting, 0, &[30]), None, "measured once");
        // The deviation begins with 15 us, loses a quarter each time, and counts four times.
        let wait = wait_after(&mut awaiting, 10, &[30; 2]).expect("measured often enough");
        assert!(wait > Duration::from_us(30) && wait < Duration::from_us(30 + 60), "{wait}");
        let wait = wait_after(&mut awaiting, 20, &[30; 40]).unwrap();
        assert_eq!(wait, Duration::from_us(30), "it never deviates");
        assert_eq!(wait_after(&mut awaiting, 100, &[1; 60]), Some(LEAST));
    }

    #[test]
    fn a_task_that_thinks_is_not_waited_for() {
        let mut awaiting = Awaiting::new(16);
        assert_eq!(wait_after(&mut awaiting, 0, &[300; 10]), None);
        assert_eq!(wait_after(&mut awaiting, 20, &[1_000_000; 10]), None);
        let wait = wait_after(&mut awaiting, 2000, &[20; 40]);
        assert!(wait.is_some_and(|w| w < Duration::from_us(50)), "it has changed its ways: {wait:?}");
        assert_eq!(wait_after(&mut awaiting, 3000, &[20, 1900].repeat(10)), None, "every other time in vain");
    }

    #[test]
    fn the_wait_ends_by_itself_and_by_changes() {
        let mut awaiting = Awaiting::new(16);
        wait_after(&mut awaiting, 0, &[30; 10]);
        awaiting.answered(us(90_000), TASK);
        let until = awaiting.until().unwrap();
        assert!(awaiting.is_held(us(90_001)) && !awaiting.is_held(until));
        assert_eq!(awaiting.until(), None);
        awaiting.asked(us(95_000), TASK);
        awaiting.answered(us(96_000), TASK);
        awaiting.asked(us(96_001), TaskId(8));
        assert!(awaiting.is_held(us(96_002)), "another task's bio");
        awaiting.end();
        assert!(!awaiting.is_held(us(96_002)));
    }

    #[test]
    fn tasks_in_one_place_take_it_from_each_other() {
        let mut awaiting = Awaiting::new(16);
        let other = TaskId(TASK.0 + 16);
        for i in 0..20 {
            awaiting.answered(us(i * 1000), TASK);
            awaiting.answered(us(i * 1000 + 1), other);
            awaiting.asked(us(i * 1000 + 10), TASK);
            awaiting.asked(us(i * 1000 + 11), other);
            assert_eq!((awaiting.until(), awaiting.open), (None, 0));
        }
    }
}
