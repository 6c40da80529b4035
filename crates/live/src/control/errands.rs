//! Requests that may take long, such as to open a file on a network that does not answer: each has a thread,
//! so that the other clients are answered meanwhile.
//!
//! A client that waits for an errand is not listened to. If it goes, its errand is done all the same.

use super::report::refusal;
use crate::clock::Clock;
use fairhead_core::units::{Duration, Instant};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, mpsc};
use std::thread;

/// The most errands at a time.
const MOST: usize = 16;

/// An errand that is done, by number, its answer, and how long it took.
type Done = (u64, String, Duration);

/// See the [module](self).
pub(super) struct Errands {
    clock: Clock,
    last: u64,
    at_work: usize,
    done: mpsc::Sender<Done>,
    answers: mpsc::Receiver<Done>,
    /// Rung for each that is done.
    bell: PipeReader,
    ringer: Arc<PipeWriter>,
}

/// An errand at work. It has an answer even if it panics.
struct Errand {
    number: u64,
    clock: Clock,
    began: Instant,
    answer: Option<String>,
    done: mpsc::Sender<Done>,
    ringer: Arc<PipeWriter>,
}

impl Drop for Errand {
    fn drop(&mut self) {
        let answer = self.answer.take().unwrap_or_else(|| refusal("the server could not do it"));
        // A server that has ended has no use for it.
        let took = self.clock.now().saturating_since(self.began);
        let _ = self.done.send((self.number, answer, took));
        let _ = (&*self.ringer).write_all(&[1]);
    }
}

impl Errands {
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let (done, answers) = mpsc::channel();
        let (bell, ringer) = io::pipe()?;
        Ok(Self { clock, last: 0, at_work: 0, done, answers, bell, ringer: Arc::new(ringer) })
    }

    /// What is readable when an errand is done.
    pub(super) fn fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Has a thread do something that returns an answer. Returns its number.
    ///
    /// # Errors
    /// If there are as many as there can be.
    pub(super) fn begin(&mut self, work: impl FnOnce() -> String + Send + 'static) -> Result<u64, String> {
        if self.at_work >= MOST {
            return Err(format!("{MOST} requests about exports wait for their files; try again later"));
        }
        let number = self.last + 1;
        let (done, ringer) = (self.done.clone(), Arc::clone(&self.ringer));
        let (clock, began) = (self.clock, self.clock.now());
        let errand = Errand { number, clock, began, answer: None, done, ringer };
        let work = move || {
            let mut errand = errand;
            errand.answer = Some(work());
        };
        let thread = thread::Builder::new().name("fairhead-export".to_owned()).spawn(work);
        // The answer of one that has no thread is for no client.
        self.at_work += 1;
        self.last = number;
        thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(number)
    }

    /// Those that are done by now. Call it when the [descriptor](Self::fd) is readable.
    pub(super) fn take(&mut self) -> Vec<Done> {
        let mut rung = [0; MOST];
        // There is something to read, so it does not wait.
        let _ = self.bell.read(&mut rung);
        let done: Vec<Done> = self.answers.try_iter().collect();
        self.at_work -= done.len();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errand_has_an_answer_and_there_are_not_too_many() {
        let mut errands = Errands::new(Clock::start()).unwrap();
        let (go, wait) = mpsc::channel::<()>();
        let first = errands.begin(move || wait.recv().map(|()| "done".to_owned()).unwrap()).unwrap();
        let second = errands.begin(|| panic!("on purpose")).unwrap();
        let third: Vec<_> = (0..MOST).map(|_| errands.begin(String::new)).collect();
        assert_eq!(third.iter().filter(|r| r.is_err()).count(), 2, "two are at work");
        go.send(()).unwrap();
        let mut all = Vec::new();
        while all.len() < MOST {
            all.extend(errands.take());
        }
        let of = |number| &all.iter().find(|(n, ..)| *n == number).unwrap().1;
        assert_eq!(of(first), "done");
        assert!(of(second).contains("could not do it"), "{}", of(second));
        assert!(errands.begin(String::new).is_ok());
    }
}
