//! Threads for operations that may block: names, attributes, opening. And: which of them gets a thread next.
//!
//! ```text
//!   front ─► jobs by user and group: a a a │ b │ c c ─► the next in turn, if its folder is not held up
//!                                                       ─► a thread
//! ```
//!
//! A folder of the source may hang, as one on a network does whose server is away. Each operation in it keeps
//! a thread until the folder is back. So there are up to [`THREADS_MAX`] threads. One folder or file gets at
//! most [`NODE_MAX`] of them, and one user at most [`USER_MAX`]: other users, and other folders, continue.
//! Users take turns, and a user's groups among themselves, so that a thousand operations of one group do not
//! delay one of another by more than the operation that is being done.
//!
//! **At once** there is work for as many jobs as do good. Operations on names that are in memory wait for
//! nothing: more threads than half of the processors do them no sooner, and take the processors from the
//! engine's thread, for which all callers wait. Sixteen threads left a reader a hundredth of its reads. Where
//! jobs wait for a disk or another machine, a thread for each is right. So each job tells whether it had to
//! wait: the more do, the more are done at once. A job that has been at work for [`PATIENCE`] waits for
//! something, whatever others did, and does not count any more.
//!
//! A thread that has had nothing to do stays if there are no more than [`IDLE_MAX`] such threads.
//!
//! What it does not do: know what an operation is (the closure that it is given), or schedule the disk that
//! names are on: an operation on names is no request of the scheduled disk.

use super::protocol::Header;
use crate::clock::Clock;
use crate::rights;
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// An operation.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) header: Header,
    /// What comes behind the header.
    pub(crate) bytes: Vec<u8>,
    /// The group of its caller.
    pub(crate) group: GroupId,
    /// The name of that, if the operation opens anything: the group is charged for it.
    pub(crate) opens_for: String,
}

/// The most threads, those of one user, and those for operations on one folder or file.
const THREADS_MAX: usize = 32;
const USER_MAX: usize = 16;
const NODE_MAX: usize = 4;

/// The most threads that wait for work.
const IDLE_MAX: usize = 4;

/// A job that takes longer than this waits for something.
const PATIENCE: Duration = Duration::from_ms(1);

/// All jobs had to wait.
const ALL: usize = 256;

/// The way to the threads. They end when this is dropped.
pub(crate) struct NameThreads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Rung for each job that a thread may take.
    bell: Condvar,
    clock: Clock,
    work: Box<dyn Fn(Job) + Send + Sync>,
    /// Hears the processor time of each job.
    took: Box<dyn Fn(Duration) + Send + Sync>,
}

/// The jobs of a user that wait, by group; no group has an empty list.
#[derive(Debug)]
struct OfUser {
    groups: BTreeMap<GroupId, VecDeque<Job>>,
    /// The group that was served last.
    last: GroupId,
}

#[derive(Default)]
struct State {
    /// By user; each has a job.
    waiting: BTreeMap<u32, OfUser>,
    /// The user who was served last.
    last: u32,
    busy_users: HashMap<u32, usize>,
    busy_nodes: HashMap<u64, usize>,
    /// The jobs that are at work, by number, and when each began.
    at_work: Vec<(u64, Instant)>,
    /// The jobs that are done at once if none has to wait.
    few: usize,
    /// How many of the jobs had to wait lately, of [`ALL`].
    waits: usize,
    threads: usize,
    /// The threads that sleep and were not called, and those that were called and have not awoken.
    idle: usize,
    called: usize,
    /// Whether one of those that sleep awakes when a job that is at work may have been so for too long.
    is_watched: bool,
    is_over: bool,
}

impl NameThreads {
    /// Threads that do jobs with `work`; the first one is made at once. `took` hears the processor time of
    /// each job, and of the way to it.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn start(
        work: impl Fn(Job) + Send + Sync + 'static,
        took: impl Fn(Duration) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let few = thread::available_parallelism().map_or(1, |n| n.get() / 2).clamp(1, THREADS_MAX);
        let state = Mutex::new(State { few, ..State::default() });
        let (bell, clock) = (Condvar::new(), Clock::start());
        let (work, took) = (Box::new(work), Box::new(took));
        let threads = Self(Arc::new(Shared { state, bell, clock, work, took }));
        threads.0.grow(&mut lock(&threads.0))?;
        Ok(threads)
    }

    /// Hands a job over.
    pub(crate) fn send(&self, job: Job) {
        let mut state = lock(&self.0);
        state.push(job);
        if state.wants_another(self.0.clock.now()) {
            self.0.call(&mut state);
        }
    }

    /// Takes a job back that no thread has begun, if its caller is `gone`.
    pub(crate) fn take_back(&self, unique: u64, gone: impl Fn(&Header) -> bool) -> Option<Header> {
        lock(&self.0).take_back(unique, gone)
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
    /// Has another thread look for a job.
    fn call(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 {
            // It is no longer idle, although it sleeps: the next job is for another one.
            state.idle -= 1;
            state.called += 1;
            self.bell.notify_one();
        } else if state.threads < THREADS_MAX {
            // Without another thread, those that there are do it later.
            let _ = self.grow(state);
        }
    }

    fn grow(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let shared = Arc::clone(self);
        let name = "fairhead-files".to_owned();
        thread::Builder::new().name(name).spawn(move || shared.serve())?;
        state.threads += 1;
        Ok(())
    }

    /// Does jobs until there are enough idle threads, or the mount is gone.
    fn serve(self: Arc<Self>) {
        own_mask();
        // If it cannot settle, it cannot act for a caller, either.
        let _ = rights::settle();
        // To be called and to wait for the next job costs as much as many a job.
        let mut told = Usage::now();
        let mut state = lock(&self);
        loop {
            let now = self.clock.now();
            if let Some(job) = state.take(now) {
                if state.wants_another(now) {
                    self.call(&mut state);
                }
                let Header { uid, node, unique, .. } = job.header;
                drop(state);
                let before = Usage::now();
                (self.work)(job);
                let after = Usage::now();
                (self.took)(after.time.saturating_sub(told.time));
                told = after;
                state = lock(&self);
                state.done(uid, node, unique, after.pauses != before.pauses);
                continue;
            }
            // A job that may not begin yet needs a thread that awakes for it.
            let until = state.full_until(now).filter(|_| !state.is_watched);
            if state.is_over || state.idle >= IDLE_MAX && until.is_none() {
                state.threads -= 1;
                return;
            }
            state = self.sleep(state, until.map(|at| at.saturating_since(now)));
        }
    }

    /// Sleeps until the thread is called, or for this time.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let sleeps = |state: &mut State| state.called == 0 && !state.is_over;
        state.idle += 1;
        let Some(most) = most else {
            state = self.bell.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner);
            state.awake();
            return state;
        };
        state.is_watched = true;
        let most = std::time::Duration::from_nanos(most.as_ns());
        let waited = self.bell.wait_timeout_while(state, most, sleeps);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_watched = false;
        state.awake();
        state
    }
}

impl State {
    fn push(&mut self, job: Job) {
        let new = || OfUser { groups: BTreeMap::new(), last: GroupId::ROOT };
        let of_user = self.waiting.entry(job.header.uid).or_insert_with(new);
        of_user.groups.entry(job.group).or_default().push_back(job);
    }

    /// A thread that slept awakes: it was called, or its time is over.
    const fn awake(&mut self) {
        if self.called > 0 { self.called -= 1 } else { self.idle -= 1 }
    }

    /// The jobs that may be at work at once, besides those that are known to wait.
    const fn most(&self) -> usize {
        let waits = if 2 * self.waits < ALL { 2 * self.waits } else { ALL };
        self.few + (THREADS_MAX - self.few) * waits / ALL
    }

    /// When the first of the jobs at work will have been so for too long, if there are enough of them.
    fn full_until(&self, now: Instant) -> Option<Instant> {
        let running = self.at_work.iter().map(|&(_, began)| began + PATIENCE).filter(|&until| until > now);
        let is_full = running.clone().count() >= self.most();
        running.min().filter(|_| is_full && !self.waiting.is_empty())
    }

    /// Whether there is work for another thread: a job, or to see to it that those at work are not waited
    /// for too long.
    fn wants_another(&self, now: Instant) -> bool {
        let running = self.at_work.iter().filter(|&&(_, began)| began + PATIENCE > now).count();
        let is_watched = self.is_watched || self.called > 0;
        !self.waiting.is_empty() && (running + self.called < self.most() || !is_watched)
    }

    /// The next job that a thread may begin: of the users behind the last one first.
    fn take(&mut self, now: Instant) -> Option<Job> {
        if self.full_until(now).is_some() {
            return None;
        }
        let (uid, group, at) = behind(&self.waiting, self.last).find_map(|(&uid, of_user)| {
            if self.busy_users.get(&uid).is_some_and(|&n| n >= USER_MAX) {
                return None;
            }
            let is_free = |job: &Job| self.busy_nodes.get(&job.header.node).is_none_or(|&n| n < NODE_MAX);
            let mut groups = behind(&of_user.groups, of_user.last);
            groups.find_map(|(&group, jobs)| Some((uid, group, jobs.iter().position(is_free)?)))
        })?;
        let job = self.remove(uid, group, at)?;
        self.last = uid;
        *self.busy_users.entry(uid).or_default() += 1;
        *self.busy_nodes.entry(job.header.node).or_default() += 1;
        self.at_work.push((job.header.unique, now));
        Some(job)
    }

    fn take_back(&mut self, unique: u64, gone: impl Fn(&Header) -> bool) -> Option<Header> {
        let is_it = |job: &Job| job.header.unique == unique && gone(&job.header);
        let lines =
            self.waiting.iter().flat_map(|(uid, of_user)| of_user.groups.iter().map(move |g| (uid, g)));
        let found = lines
            .into_iter()
            .find_map(|(uid, (group, jobs))| Some((*uid, *group, jobs.iter().position(is_it)?)));
        let (uid, group, at) = found?;
        self.remove(uid, group, at).map(|job| job.header)
    }

    fn remove(&mut self, uid: u32, group: GroupId, at: usize) -> Option<Job> {
        let of_user = self.waiting.get_mut(&uid)?;
        let jobs = of_user.groups.get_mut(&group)?;
        let job = jobs.remove(at);
        of_user.last = group;
        if jobs.is_empty() {
            of_user.groups.remove(&group);
        }
        if of_user.groups.is_empty() {
            self.waiting.remove(&uid);
        }
        job
    }

    /// A job is done, and had to wait for something or not.
    fn done(&mut self, uid: u32, node: u64, unique: u64, has_waited: bool) {
        less(&mut self.busy_users, uid);
        less(&mut self.busy_nodes, node);
        self.at_work.retain(|&(number, _)| number != unique);
        // The mean of some thirty jobs.
        self.waits = (31 * self.waits + if has_waited { ALL + 31 } else { 0 }) / 32;
    }
}

/// The entries of a map in the order in which they take turns: those behind the last one first.
fn behind<K: Ord + Copy, V>(map: &BTreeMap<K, V>, last: K) -> impl Iterator<Item = (&K, &V)> {
    map.range((Excluded(last), Unbounded)).chain(map.range(..=last))
}

/// What the calling thread has used.
#[derive(Clone, Copy)]
struct Usage {
    /// Processor time.
    time: Duration,
    /// How often it waited for anything.
    pauses: libc::c_long,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: plain numbers, which the call writes.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let time = |t: libc::timeval| Duration::from_us(t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64);
        Self { time: time(usage.ru_utime) + time(usage.ru_stime), pauses: usage.ru_nvcsw }
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
        of_group(GroupId::ROOT, uid, node, unique)
    }

    fn of_group(group: GroupId, uid: u32, node: u64, unique: u64) -> Job {
        let header = Header { uid, node, unique, ..Header::default() };
        Job { header, bytes: Vec::new(), group, opens_for: String::new() }
    }

    /// Jobs that wait, of which this many may be at work.
    fn state(few: usize, jobs: impl IntoIterator<Item = Job>) -> State {
        let mut state = State { few, ..State::default() };
        jobs.into_iter().for_each(|job| state.push(job));
        state
    }

    fn ms(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_ms(ms)
    }

    /// Those that may begin now, by number.
    fn taken(state: &mut State, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| state.take(now)).map(|job| job.header.unique).collect()
    }

    #[test]
    fn users_take_turns() {
        let jobs = (0..4).map(|n| job(1, n, n)).chain([job(2, 9, 10), job(3, 9, 11)]);
        let mut state = state(THREADS_MAX, jobs);
        assert_eq!(taken(&mut state, ms(0)), [0, 10, 11, 1, 2, 3]);
        assert!(state.waiting.is_empty());
    }

    #[test]
    fn groups_of_one_user_take_turns() {
        let many = (0..200).map(|n| of_group(GroupId(1), 0, n, n));
        let mut state = state(1, many.chain([of_group(GroupId(2), 0, 300, 300)]));
        let mut order = Vec::new();
        while let Some(job) = state.take(ms(0)) {
            order.push(job.header.unique);
            state.done(0, job.header.node, job.header.unique, false);
        }
        assert_eq!(order[..3], [0, 300, 1], "one of two hundred of the other group is before it");
    }

    #[test]
    fn jobs_that_wait_for_nothing_are_for_few_threads() {
        let mut state = state(1, (0..200).map(|n| job(1, n, n)));
        state.is_watched = true;
        for n in 0..100 {
            assert!(state.wants_another(ms(0)));
            assert_eq!(taken(&mut state, ms(0)), [n], "one at a time");
            assert!(!state.wants_another(ms(0)) && state.full_until(ms(0)).is_some());
            state.done(1, n, n, false);
        }
    }

    #[test]
    fn jobs_that_wait_are_for_many_threads() {
        let mut state = state(1, (0..400).map(|n| job(1, n, n)));
        let most = (0..200).map(|_| {
            let begun = taken(&mut state, ms(0));
            let at_work: Vec<u64> = state.at_work.iter().map(|w| w.0).collect();
            at_work.iter().for_each(|&n| state.done(1, n, n, true));
            begun.len()
        });
        assert_eq!(most.max(), Some(USER_MAX));
    }

    #[test]
    fn a_job_that_takes_long_does_not_keep_others() {
        let mut state = state(1, (0..200).map(|n| job(1, n, n)));
        for n in 0..USER_MAX as u64 {
            assert_eq!(taken(&mut state, ms(n)), [n], "the one before has taken long");
            assert_eq!(state.full_until(ms(n)), Some(ms(n + 1)));
        }
        assert!(taken(&mut state, ms(100)).is_empty(), "no more for one user");
    }

    #[test]
    fn a_folder_that_hangs_holds_a_few_threads_and_delays_no_other_folder() {
        let mut state = state(THREADS_MAX, (0..100).map(|n| job(1, 7, n)).chain([job(1, 8, 200)]));
        assert_eq!(taken(&mut state, ms(0)), [0, 1, 2, 3, 200]);
        state.done(1, 7, 0, true);
        assert_eq!(taken(&mut state, ms(0)), [4]);
    }

    #[test]
    fn a_user_with_many_folders_that_hang_leaves_threads_for_others() {
        let mut state = state(THREADS_MAX, (0..100).map(|n| job(1, n, n)).chain([job(2, 500, 500)]));
        let taken = taken(&mut state, ms(0));
        assert_eq!(taken.iter().filter(|&&n| n < 100).count(), USER_MAX);
        assert!(taken.contains(&500));
    }

    #[test]
    fn what_is_taken_back_is_not_done() {
        let (told, done) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let work = move |job: Job| {
            let _ = wait.lock().unwrap().recv();
            let _ = told.send(job.header.unique);
        };
        let threads = NameThreads::start(work, |_| ()).unwrap();
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
