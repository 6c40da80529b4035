//! What other threads have to say to the engine: a queue, and a wake-up only if it sleeps.
//!
//! Senders push under a lock that is held for the push alone; the engine takes all there is at once. It says
//! so before it goes to sleep ([`Inbox::sleep`]), and looks once more after that; a sender that finds it
//! asleep wakes it, and only the first one does. So a batch costs one wake-up, and a busy engine none. No
//! lock is held around a scheduling decision.
//!
//! ```text
//!   sender                              engine
//!   push                                asleep := true
//!   was asleep? (and now it is not)     anything here? then asleep := false, and do not wait
//!     yes: wake                         wait
//! ```
//!
//! Either the engine sees the push, or the sender sees it asleep: the lock orders the one look after the
//! other.

#[cfg(loom)]
use loom::sync::Mutex;
#[cfg(not(loom))]
use std::sync::Mutex;
use std::sync::PoisonError;

#[derive(Debug)]
struct State<T> {
    messages: Vec<T>,
    is_asleep: bool,
    is_closed: bool,
}

/// See the [crate](self).
#[derive(Debug)]
pub struct Inbox<T> {
    state: Mutex<State<T>>,
}

/// What the sender does after [`Inbox::push`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed<T> {
    /// Nothing.
    Done,
    /// Wake the engine.
    Wake,
    /// The inbox is closed. The message comes back.
    Closed(T),
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Inbox<T> {
    /// Returns an empty inbox, whose engine counts as awake.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::new(State { messages: Vec::new(), is_asleep: false, is_closed: false }) }
    }

    fn with<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a message in, and returns what is left to do.
    pub fn push(&self, message: T) -> Pushed<T> {
        self.with(|s| {
            if s.is_closed {
                return Pushed::Closed(message);
            }
            s.messages.push(message);
            if std::mem::replace(&mut s.is_asleep, false) { Pushed::Wake } else { Pushed::Done }
        })
    }

    /// Moves all messages into `into`, which must be empty.
    pub fn take(&self, into: &mut Vec<T>) {
        self.with(|s| std::mem::swap(&mut s.messages, into));
    }

    /// Whether there are messages.
    pub fn has_messages(&self) -> bool {
        self.with(|s| !s.messages.is_empty())
    }

    /// The engine is about to wait. Returns whether it may.
    pub fn sleep(&self) -> bool {
        self.with(|s| {
            s.is_asleep = s.messages.is_empty();
            s.is_asleep
        })
    }

    /// The engine is awake: senders need not wake it.
    pub fn wake(&self) {
        self.with(|s| s.is_asleep = false);
    }

    /// Closes the inbox and returns the messages that were not read. Later ones are refused.
    pub fn close(&self) -> Vec<T> {
        self.with(|s| {
            s.is_closed = true;
            std::mem::take(&mut s.messages)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_of_a_batch_wakes_a_sleeping_engine() {
        let inbox = Inbox::new();
        assert_eq!(inbox.push(1), Pushed::Done);
        assert!(!inbox.sleep(), "something is here");
        let mut heard = Vec::new();
        inbox.take(&mut heard);
        assert_eq!(heard, [1]);
        heard.clear();
        assert!(inbox.sleep());
        assert_eq!((inbox.push(2), inbox.push(3)), (Pushed::Wake, Pushed::Done));
        inbox.take(&mut heard);
        assert!(inbox.sleep());
        inbox.wake();
        assert_eq!(inbox.push(4), Pushed::Done, "an outcome woke it");
        assert_eq!(inbox.close(), [4]);
        assert_eq!(inbox.push(5), Pushed::Closed(5));
    }
}

/// Every interleaving of two senders and the engine: `RUSTFLAGS="--cfg loom" cargo test -p fairhead-inbox
/// --lib`.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::{Arc, Condvar};
    use loom::thread;

    /// As the engine's pipe: what is written stays until it is read.
    struct Bell {
        rung: Mutex<bool>,
        change: Condvar,
    }

    #[test]
    fn nothing_is_left_lying_while_the_engine_sleeps() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let bell = Arc::new(Bell { rung: Mutex::new(false), change: Condvar::new() });
            let senders = [1, 2].map(|message| {
                let (inbox, bell) = (Arc::clone(&inbox), Arc::clone(&bell));
                thread::spawn(move || {
                    if inbox.push(message) == Pushed::Wake {
                        *bell.rung.lock().unwrap() = true;
                        bell.change.notify_one();
                    }
                })
            });
            let mut sum = 0;
            let mut heard = Vec::new();
            while sum < 3 {
                inbox.take(&mut heard);
                sum += heard.drain(..).sum::<i32>();
                if sum < 3 && inbox.sleep() {
                    // A missed wake-up would be a deadlock here, which loom reports.
                    let mut rung = bell.rung.lock().unwrap();
                    while !*rung {
                        rung = bell.change.wait(rung).unwrap();
                    }
                    *rung = false;
                    drop(rung);
                    inbox.wake();
                }
            }
            senders.map(|s| s.join().unwrap());
        });
    }
}
