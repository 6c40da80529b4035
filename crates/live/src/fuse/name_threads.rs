//! Threads for operations that may block: names, attributes, opening. And: which of them gets a thread next.
//!
//! ```text
//!   front ─► jobs by user: a a a │ b │ c c ─► the next user in turn, whose folder is not held up ─► a thread
//! ```
//!
//! A folder of the source may hang, as one on a network does whose server is away. Each operation in it keeps
//! a thread until the folder is back. So threads are made when all others are busy, up to [`THREADS_MAX`].
//! One folder or file gets at most [`NODE_MAX`] of them, and one user at most [`USER_MAX`]: other users, and
//! other folders, continue. Users take turns, so that a thousand operations of one user do not delay one of
//! another by more than the operation that is being done.
//!
//! A thread that has had nothing to do stays if there are no more than [`IDLE_MAX`] such threads.
//!
//! What it does not do: know what an operation is (the closure that it is given), or schedule the disk that
//! names are on: an operation on names is no request of the scheduled disk.

use super::protocol::Header;
use crate::rights;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// An operation: its header, its bytes, and the group that is charged for what it opens.
pub(crate) type Job = (Header, Vec<u8>, String);

/// The most threads, those of one user, and those for operations on one folder or file.
const THREADS_MAX: usize = 32;
const USER_MAX: usize = 16;
const NODE_MAX: usize = 4;

/// The most threads that wait for work.
const IDLE_MAX: usize = 4;

/// The way to the threads. They end when this is dropped.
pub(crate) struct NameThreads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Rung for each job that a thread may take.
    bell: Condvar,
    work: Box<dyn Fn(Job) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The jobs that wait, by user; no user has an empty list.
    waiting: BTreeMap<u32, VecDeque<Job>>,
    /// The user who was served last.
    last: u32,
    busy_users: HashMap<u32, usize>,
    busy_nodes: HashMap<u64, usize>,
    threads: usize,
    /// The threads that sleep and were not called, and those that were called and have not awoken.
    idle: usize,
    called: usize,
    is_over: bool,
}

impl NameThreads {
    /// Threads that do jobs with `work`; the first one is made at once.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn start(work: impl Fn(Job) + Send + Sync + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), bell: Condvar::new(), work: Box::new(work) });
        let threads = Self(shared);
        threads.grow(&mut lock(&threads.0))?;
        Ok(threads)
    }

    /// Hands a job over.
    pub(crate) fn send(&self, job: Job) {
        let mut state = lock(&self.0);
        state.waiting.entry(job.0.uid).or_default().push_back(job);
        if state.idle > 0 {
            // It is no longer idle, although it sleeps: the next job is for another one.
            state.idle -= 1;
            state.called += 1;
            self.0.bell.notify_one();
        } else if state.threads < THREADS_MAX {
            // Without another thread, those that there are do it later.
            let _ = self.grow(&mut state);
        }
    }

    /// Takes a job back that no thread has begun, if its caller is `gone`.
    pub(crate) fn take_back(&self, unique: u64, gone: impl Fn(&Header) -> bool) -> Option<Header> {
        let mut state = lock(&self.0);
        let is_it = |job: &Job| job.0.unique == unique && gone(&job.0);
        let found = state.waiting.iter().find_map(|(uid, jobs)| Some((*uid, jobs.iter().position(is_it)?)));
        let (uid, at) = found?;
        state.remove(uid, at).map(|job| job.0)
    }

    fn grow(&self, state: &mut State) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        let name = "fairhead-files".to_owned();
        thread::Builder::new().name(name).spawn(move || shared.serve())?;
        state.threads += 1;
        Ok(())
    }
}

impl Drop for NameThreads {
    fn drop(&mut self) {
        lock(&self.0).is_over = true;
        self.0.bell.notify_all();
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Does jobs until there are enough idle threads, or the mount is gone.
    fn serve(&self) {
        own_mask();
        rights::settle();
        let mut state = lock(self);
        loop {
            if let Some(job) = state.take() {
                let (uid, node) = (job.0.uid, job.0.node);
                drop(state);
                (self.work)(job);
                state = lock(self);
                state.done(uid, node);
                continue;
            }
            if state.is_over || state.idle >= IDLE_MAX {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            let sleeps = |state: &mut State| state.called == 0 && !state.is_over;
            state = self.bell.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner);
            state.called = state.called.saturating_sub(1);
        }
    }
}

impl State {
    /// The next job that a thread may begin: of the users behind the last one first.
    fn take(&mut self) -> Option<Job> {
        let behind = self.waiting.range((Excluded(self.last), Unbounded));
        let all = behind.chain(self.waiting.range(..=self.last));
        let (uid, at) = all.into_iter().find_map(|(&uid, jobs)| {
            if self.busy_users.get(&uid).is_some_and(|&n| n >= USER_MAX) {
                return None;
            }
            let is_free = |job: &Job| self.busy_nodes.get(&job.0.node).is_none_or(|&n| n < NODE_MAX);
            Some((uid, jobs.iter().position(is_free)?))
        })?;
        let job = self.remove(uid, at)?;
        self.last = uid;
        *self.busy_users.entry(uid).or_default() += 1;
        *self.busy_nodes.entry(job.0.node).or_default() += 1;
        Some(job)
    }

    fn remove(&mut self, uid: u32, at: usize) -> Option<Job> {
        let jobs = self.waiting.get_mut(&uid)?;
        let job = jobs.remove(at);
        if jobs.is_empty() {
            self.waiting.remove(&uid);
        }
        job
    }

    /// A job is done.
    fn done(&mut self, uid: u32, node: u64) {
        less(&mut self.busy_users, uid);
        less(&mut self.busy_nodes, node);
    }
}

/// One less; none is no entry.
fn less<K: std::hash::Hash + Eq>(busy: &mut HashMap<K, usize>, key: K) {
    if let Some(n) = busy.get_mut(&key) {
        *n -= 1;
        if *n == 0 {
            busy.remove(&key);
        }
    }
}

/// From here on this thread has a mask of its own for files that it makes, which masks nothing.
pub(super) fn own_mask() {
    // SAFETY: it names no memory.
    unsafe {
        libc::unshare(libc::CLONE_FS);
        libc::umask(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(uid: u32, node: u64, unique: u64) -> Job {
        (Header { uid, node, unique, ..Header::default() }, Vec::new(), String::new())
    }

    fn state(jobs: impl IntoIterator<Item = Job>) -> State {
        let mut state = State::default();
        jobs.into_iter().for_each(|job| state.waiting.entry(job.0.uid).or_default().push_back(job));
        state
    }

    #[test]
    fn users_take_turns() {
        let mut state = state((0..4).map(|n| job(1, n, n)).chain([job(2, 9, 10), job(3, 9, 11)]));
        let order: Vec<u64> = std::iter::from_fn(|| state.take()).map(|job| job.0.unique).collect();
        assert_eq!(order, [0, 10, 11, 1, 2, 3]);
        assert!(state.waiting.is_empty());
    }

    #[test]
    fn a_folder_that_hangs_holds_a_few_threads_and_delays_no_other_folder() {
        let mut state = state((0..100).map(|n| job(1, 7, n)).chain([job(1, 8, 200)]));
        let taken: Vec<u64> = std::iter::from_fn(|| state.take()).map(|job| job.0.unique).collect();
        assert_eq!(taken, [0, 1, 2, 3, 200]);
        state.done(1, 7);
        assert_eq!(state.take().unwrap().0.unique, 4);
    }

    #[test]
    fn a_user_with_many_folders_that_hang_leaves_threads_for_others() {
        let mut state = state((0..100).map(|n| job(1, n, n)).chain([job(2, 500, 500)]));
        let taken: Vec<u32> = std::iter::from_fn(|| state.take()).map(|job| job.0.uid).collect();
        assert_eq!(taken.iter().filter(|&&uid| uid == 1).count(), USER_MAX);
        assert!(taken.contains(&2));
    }

    #[test]
    fn what_is_taken_back_is_not_done() {
        let (told, done) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let threads = NameThreads::start(move |job: Job| {
            let _ = wait.lock().unwrap().recv();
            let _ = told.send(job.0.unique);
        });
        let threads = threads.unwrap();
        (0..6).for_each(|n| threads.send(job(1, 7, n)));
        // Four are held up in the folder; of the two others one is taken back.
        while lock(&threads.0).busy_nodes.get(&7) != Some(&NODE_MAX) {
            thread::yield_now();
        }
        assert!(threads.take_back(5, |_| false).is_none(), "its caller lives");
        assert_eq!(threads.take_back(5, |_| true).map(|h| h.unique), Some(5));
        (0..5).for_each(|_| go.send(()).unwrap());
        let mut all: Vec<u64> = (0..5).map(|_| done.recv().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }
}
