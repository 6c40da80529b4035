//! A process that puts a disk's settings back when the one that changes them ends, however that ends.
//!
//! ```text
//! trial ──"before …", "now bfq", "now none" …──► pipe ──► watchdog, in a session of its own
//!   ends, is killed, or panics: the pipe closes            └► writes what was before, and ends
//! ```
//!
//! The pipe closes when the last thread of the trial has ended, so no write of the trial can follow. This is
//! the only way back in all cases: a trial that ends well closes the pipe, too, and waits for the watchdog's
//! word. The watchdog ignores the signals of a terminal and of a shutdown, and is in no process group of the
//! trial. It inherits the handle of the queue: its lock lasts until the settings are back.
//!
//! If the scheduler in force at the end is none that the trial announced, another program has chosen it: the
//! watchdog says so and leaves it.
//!
//! What this does not do: survive SIGKILL itself, as when a whole control group is killed. Then the trial
//! puts back, if it lives; if neither does, the settings last until the next start of the machine.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::queue::{Queue, QueueError, Settings};

/// How often a refused write is tried again: the kernel refuses while it changes the number of queues.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What became of the settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// They are as they were before.
    Back,
    /// Another program has chosen this scheduler, and it was left.
    Left(String),
    /// The disk is gone.
    Gone,
    /// They could not be put back: the reason.
    Failed(String),
}

impl Ending {
    fn line(&self) -> String {
        match self {
            Self::Back => "back".to_owned(),
            Self::Left(scheduler) => format!("left {scheduler}"),
            Self::Gone => "gone".to_owned(),
            Self::Failed(why) => format!("failed {why}"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("back", "") => Some(Self::Back),
            ("gone", "") => Some(Self::Gone),
            ("left", scheduler) => Some(Self::Left(scheduler.to_owned())),
            ("failed", why) => Some(Self::Failed(why.to_owned())),
            _ => None,
        }
    }
}

/// The trial's side: dropped, the settings are put back.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
    pipe: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Watchdog {
    /// Starts a watchdog for the queue, which must be locked, and waits until it is ready. `program` gets two
    /// more arguments, a number and the disk's name, and calls [`watch`] with them.
    ///
    /// # Errors
    ///
    /// It could not be started, or did not become ready.
    pub fn start(program: &mut Command, queue: &Queue, before: &Settings) -> io::Result<Self> {
        let handle = queue.handle();
        program.arg(handle.to_string()).arg(queue.name());
        program.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let separate = move || {
            // SAFETY: both calls are allowed between fork and exec, and touch no memory.
            let results = unsafe { [libc::setsid(), libc::fcntl(handle, libc::F_SETFD, 0)] };
            if results.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: the closure makes two system calls, and allocates nothing.
        unsafe { program.pre_exec(separate) };
        let mut child = program.spawn()?;
        let none = || io::Error::other("no pipe");
        let (pipe, answers) = (child.stdin.take().ok_or_else(none)?, child.stdout.take().ok_or_else(none)?);
        let mut watchdog = Self { child, pipe, answers: BufReader::new(answers) };
        writeln!(watchdog.pipe, "before {before}")?;
        match watchdog.answer()?.as_str() {
            "ready" => Ok(watchdog),
            other => Err(io::Error::other(format!("the watchdog says '{other}'"))),
        }
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.answers).take(4096).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Announces that this scheduler is chosen next. Call it before the change.
    ///
    /// # Errors
    ///
    /// The watchdog is not there any more: change nothing.
    pub fn announce(&mut self, scheduler: &str) -> io::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            return Err(io::Error::other(format!("it ended: {status}")));
        }
        writeln!(self.pipe, "now {scheduler}")
    }

    /// The number of the watchdog's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has the settings put back, and waits for that. `leave`: another program has changed the scheduler, and
    /// that stays.
    ///
    /// # Errors
    ///
    /// The watchdog ended without a word: the settings may not be back.
    pub fn finish(mut self, leave: bool) -> io::Result<Ending> {
        if leave {
            writeln!(self.pipe, "leave")?;
        }
        let Self { mut child, pipe, mut answers } = self;
        drop(pipe);
        let mut line = String::new();
        (&mut answers).take(4096).read_line(&mut line)?;
        child.wait()?;
        Ending::parse(line.trim()).ok_or_else(|| io::Error::other("the watchdog ended without a word"))
    }
}

/// The watchdog's side: the process's standard input is the pipe, its output the answers, `handle` the number
/// of the inherited queue. Returns when the settings are back, and whether there was no process to take the
/// answer.
///
/// # Errors
///
/// The process was not started by [`Watchdog::start`].
pub fn watch(handle: i32, disk: &str) -> io::Result<(Ending, bool)> {
    ignore_signals();
    let queue = Queue::at(disk, format!("/proc/self/fd/{handle}").as_ref()).map_err(io::Error::other)?;
    let mut lines = io::stdin().lock().lines();
    let first = lines.next().transpose()?;
    let before = first.as_deref().and_then(|l| l.strip_prefix("before ")).and_then(Settings::parse);
    let before = before.ok_or_else(|| io::Error::other("nothing to watch over"))?;
    // A trial that is gone by now has changed nothing.
    let _ = tell("ready");
    let (mut ours, mut leave) = ([String::new(), before.scheduler.clone().unwrap_or_default()], false);
    for line in lines.map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("now", scheduler)) => {
                ours.rotate_left(1);
                scheduler.clone_into(&mut ours[1]);
            }
            _ => leave |= line == "leave",
        }
    }
    let ending = put_back(&queue, &before, &ours, leave);
    let unheard = tell(&ending.line()).is_err();
    Ok((ending, unheard))
}

fn tell(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// Puts back, unless the scheduler in force is neither of `ours` nor the one before.
fn put_back(queue: &Queue, before: &Settings, ours: &[String], leave: bool) -> Ending {
    for tries in 1.. {
        let tried = queue.scheduler().and_then(|now| {
            if leave || !(ours.contains(&now) || before.scheduler.as_ref() == Some(&now)) {
                return Ok(Ending::Left(now));
            }
            queue.set(before).map(|changed| match changed.as_slice() {
                [] => Ending::Back,
                [c, ..] => Ending::Failed(format!("{} stays at {}", c.name, c.read)),
            })
        });
        match tried {
            Ok(ending) => return ending,
            Err(QueueError { is_gone: true, .. }) => return Ending::Gone,
            Err(e) if tries == TRIES => return Ending::Failed(e.to_string()),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    unreachable!("the loop returns")
}

/// What ends the trial, as Ctrl-C does for all of a terminal, must not end this before.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_lines() {
        for ending in
            [Ending::Back, Ending::Gone, Ending::Left("bfq".to_owned()), Ending::Failed("a b c".to_owned())]
        {
            assert_eq!(Ending::parse(&ending.line()), Some(ending));
        }
        assert_eq!(Ending::parse(""), None);
    }

    #[test]
    fn somebody_elses_choice_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let write = |scheduler: &str| std::fs::write(folder.path().join("scheduler"), scheduler).unwrap();
        let queue = Queue::at("sda", folder.path()).unwrap();
        let before = Settings::parse("scheduler=none").unwrap();
        let ours = ["bfq".to_owned(), "none".to_owned()];
        write("bfq");
        assert_eq!(put_back(&queue, &before, &ours, false), Ending::Back);
        assert_eq!(queue.scheduler().unwrap(), "none");
        write("kyber");
        assert_eq!(put_back(&queue, &before, &ours, false), Ending::Left("kyber".to_owned()));
        write("bfq");
        assert_eq!(put_back(&queue, &before, &ours, true), Ending::Left("bfq".to_owned()));
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(put_back(&queue, &before, &ours, false), Ending::Gone);
    }
}
