//! The threads that write dirty pages, and how many pages at a time.
//!
//! ```text
//!   dirty pages > 10 % of memory ──► background: until below          every 5 s ──► periodic: files dirty for 30 s
//!                                          └────────────► pass ◄────────────┘
//!     pass: 1024 pages of one file, since 3.2 more, in file order, from where the last pass over it stopped;
//!     then the next file
//! ```
//!
//! Until 2.6.31 two threads of a pool did this here, and left a disk alone for up to 100 ms when its request
//! queue was congested; since then one thread per disk does, and waits for requests like anybody else. All
//! are async requests in the thread's own name: what a task dirtied is no longer its own when it is written.
//! Its control group's it is, where that is tracked: a request belongs to the group that first dirtied its
//! first page; else to the root.
//
//= docs/reference/hosts.md#dirty-pages-and-flusher

use super::Machine;
use super::owner::Owner;
use super::pools::Batch;
use crate::event::Due;
use crate::host::{Flusher as Kind, Plug, Throttle};
use fairhead_core::{Duration, GroupId, Instant, IoPrio, TaskId};

use super::cache::PAGE_SECTORS;
use super::frames::WRITEBACK;

/// How long it waits for others when it can write nothing itself.
//= linux-2.6.9 mm/page-writeback.c blk_congestion_wait(WRITE, HZ/10)
pub(super) const CONGESTION_WAIT: Duration = Duration::from_ms(100);

/// Pages of one file per pass, until Linux 3.1; later as [`Balance::chunk`](super::balance::Balance::chunk)
/// says.
//= linux-2.6.9 mm/page-writeback.c MAX_WRITEBACK_PAGES
const PASS_PAGES: u32 = 1024;

/// A thread that writes dirty pages.
#[derive(Debug)]
pub(super) struct Thread {
    task: TaskId,
    pub(super) batch: Batch,
    /// Too much is dirty.
    background: bool,
    /// It is time to look for old pages.
    periodic: bool,
    pass: Option<Pass>,
    /// Passes in a row that found nothing to write.
    fruitless: u32,
    /// It waits: for a request, or until then.
    waits_for_request: bool,
    pub(super) sleep_until: Option<Instant>,
}

/// Some pages of a file, being handed in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    file: u32,
    next: u32,
    end: u32,
    /// Where to end after starting again from the first page.
    wrap_to: Option<u32>,
    left: u32,
    /// Leaves out what became dirty after that.
    until: Option<u32>,
    pub(super) written: u32,
}

impl Pass {
    /// The pages of a range that are dirty by now, which is a stamp of the cache.
    pub(super) const fn of_range(file: u32, (first, end): (u32, u32), now: u32) -> Self {
        Self { file, next: first, end, wrap_to: None, left: u32::MAX, until: Some(now), written: 0 }
    }
}

/// A thread that writes dirty pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    pub(super) thread: u32,
    pub(super) task: TaskId,
    pub(super) group: GroupId,
    pub(super) prio: IoPrio,
    pub(super) sync: bool,
    /// Stops when the queue is congested.
    pub(super) nonblocking: bool,
    /// CPU time of a page that it writes.
    pub(super) page: Duration,
}

/// How a pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassEnd {
    /// All pages of the pass are written or on their way.
    Done,
    /// The queue is congested.
    Congested,
    /// The pool has no free request.
    Full,
    /// The pass is at a page that is still being written, and a sync has to wait for it.
    Busy(u32),
    /// A request of some pages has been made, which took until then.
    Made(Instant),
}

/// The threads that write dirty pages.
#[derive(Debug)]
pub(super) struct Flushers {
    pub(super) threads: Vec<Thread>,
    /// A look at the dirty pages is scheduled.
    is_armed: bool,
}

impl Flushers {
    pub(super) const fn new(threads: Vec<Thread>) -> Self {
        Self { threads, is_armed: false }
    }
}

impl Machine<'_> {
    /// The threads that an era has; their tasks come after the clients'.
    pub(super) fn flusher_threads(kind: Kind, first_task: u32) -> Vec<Thread> {
        let count = if kind == Kind::Pdflush { 2 } else { 1 };
        let thread = |i| Thread {
            task: TaskId(first_task + i),
            batch: Batch::NONE,
            background: false,
            periodic: false,
            pass: None,
            fruitless: 0,
            waits_for_request: false,
            sleep_until: None,
        };
        (0..count).map(thread).collect()
    }

    /// Has the flusher look around at the next full 5 s.
    pub(super) fn arm_flusher(&mut self) {
        if self.flushers.is_armed {
            return;
        }
        self.flushers.is_armed = true;
        let interval = self.host.flush_interval;
        let since_start = self.clock.now.since(Instant::EPOCH);
        let next = Instant::EPOCH + interval * (since_start.as_ns() / interval.as_ns().max(1) + 1);
        self.clock.schedule(next, Due::Flusher);
    }

    /// The periodic look.
    pub(super) fn flusher_due(&mut self) {
        self.flushers.is_armed = false;
        if self.cache.dirty > 0 {
            self.arm_flusher();
        }
        let last = self.flushers.threads.len() - 1;
        if self.cache.dirty > self.cache.dirty_background {
            self.flushers.threads[0].background = true;
        }
        self.flushers.threads[last].periodic = true;
        for i in 0..self.flushers.threads.len() {
            self.run_flusher(i);
        }
    }

    /// Too much is dirty: the background thread starts, unless it runs already.
    pub(super) fn wake_flusher(&mut self) {
        if !self.flushers.threads[0].background {
            self.flushers.threads[0].background = true;
            self.run_flusher(0);
        }
    }

    /// A flusher thread got what it waited for.
    pub(super) fn resume_flusher(&mut self, i: usize) {
        self.flushers.threads[i].waits_for_request = false;
        self.flushers.threads[i].sleep_until = None;
        self.run_flusher(i);
    }

    fn run_flusher(&mut self, i: usize) {
        let f = &self.flushers.threads[i];
        if f.waits_for_request || f.sleep_until.is_some() {
            return;
        }
        let thread = self.flusher_id(i);
        let writer = Writer {
            thread,
            task: f.task,
            group: GroupId::ROOT,
            prio: IoPrio::default(),
            sync: false,
            // pdflush serves all disks and must not block on one that is congested; later flushers have one
            // disk each.
            nonblocking: self.host.flusher == Kind::Pdflush,
            page: self.host.write_page,
        };
        while let Some(mut pass) = self.flushers.threads[i].pass.take().or_else(|| self.choose_pass(i)) {
            let end = self.write_pass(&mut pass, writer);
            let f = &mut self.flushers.threads[i];
            // Passes that find only pages on their way already must end somewhere: after one for each dirty
            // file.
            f.fruitless = if pass.written > 0 { 0 } else { f.fruitless + 1 };
            match end {
                PassEnd::Congested => {
                    f.pass = Some(pass);
                    let until = self.clock.now + CONGESTION_WAIT;
                    f.sleep_until = Some(until);
                    self.clock.schedule(until, Due::Wake(thread));
                    self.disks.wait_for_congestion(thread);
                    self.disks.unplug(self.clock.now);
                    break;
                }
                PassEnd::Full => {
                    f.pass = Some(pass);
                    f.waits_for_request = true;
                    self.disks.wait(thread, false, 0);
                    self.disks.unplug(self.clock.now);
                    break;
                }
                // What it has collected stays in its plug meanwhile.
                PassEnd::Made(until) => {
                    f.pass = Some(pass);
                    f.sleep_until = Some(until);
                    self.clock.schedule(until, Due::Wake(thread));
                    return;
                }
                PassEnd::Done | PassEnd::Busy(_) => {}
            }
        }
        self.disks.end_batch(self.clock.now);
        self.disks.run_touched(&mut self.clock);
    }

    /// The next pass of a flusher thread, if it has a reason for one.
    fn choose_pass(&mut self, i: usize) -> Option<Pass> {
        let f = &mut self.flushers.threads[i];
        f.background &= self.cache.dirty > self.cache.dirty_background;
        // All of it is on its way: the next reason will come.
        if f.fruitless > self.cache.dirty_files() {
            (f.background, f.periodic, f.fruitless) = (false, false, 0);
        }
        if f.background
            && let Some(pass) = self.next_pass(self.clock.now)
        {
            return Some(pass);
        }
        self.flushers.threads[i].background = false;
        let expire = self.host.dirty_expire;
        // In the first `dirty_expire` of a run no page can be old, and the time before would be negative.
        let is_old = self.clock.now.since(Instant::EPOCH) >= expire;
        if self.flushers.threads[i].periodic
            && is_old
            && let Some(pass) = self.next_pass(self.clock.now - expire)
        {
            return Some(pass);
        }
        self.flushers.threads[i].periodic = false;
        None
    }

    /// A pass over the file whose turn it is, among those dirty since `before`.
    pub(super) fn next_pass(&mut self, before: Instant) -> Option<Pass> {
        let file = self.cache.next_dirty_file(before)?;
        let next = self.cache.cursor(file);
        let left = match self.host.throttle {
            Throttle::WriteBack => PASS_PAGES,
            Throttle::Sleep => self.balance.chunk(),
        };
        Some(Pass { file, next, end: u32::MAX, wrap_to: Some(next), left, until: None, written: 0 })
    }

    /// Hands in writes for a pass, as far as it goes.
    pub(super) fn write_pass(&mut self, pass: &mut Pass, writer: Writer) -> PassEnd {
        while pass.left > 0 {
            let Some(first) = self.cache.next_dirty(pass.file, pass.next, pass.end, pass.until) else {
                match pass.wrap_to.take() {
                    // A pass begins where the last one of the file ended and wraps around, so that a growing
                    // file does not keep its beginning from being written.
                    Some(end) if end > 0 => (pass.next, pass.end) = (0, end),
                    _ => return PassEnd::Done,
                }
                continue;
            };
            if self.cache.flags(pass.file, first).is_some_and(|f| f & WRITEBACK != 0) {
                if writer.sync {
                    return PassEnd::Busy(first);
                }
                pass.next = first + 1;
                continue;
            }
            if writer.nonblocking && self.disks.is_congested(self.files.disk_of(pass.file), false) {
                return PassEnd::Congested;
            }
            // No request is longer; to look for more pages would be in vain.
            let longest = (self.host.max_request.0 / PAGE_SECTORS).max(1);
            let most = pass.left.min(self.pages_of_write(pass.file)).min(longest);
            let run = self.dirty_run(pass.file, first, pass.end, most);
            let ((start, len), count) = self.pages_on_disk(pass.file, first, run);
            // A request belongs to the group that dirtied its first page, as a bio does; one that a program
            // waits for belongs to the program's group.
            let dirtier = self.cache.dirtier(pass.file, first).filter(|_| !writer.sync);
            let writer = Writer { group: dirtier.unwrap_or(writer.group), ..writer };
            let rq = self.write_request(writer, start, len);
            let mut batch = *self.batch_of(writer.thread);
            let alone = count == self.pages_of_write(pass.file);
            let owner = Owner::Write { file: pass.file, first, count, alone };
            self.journal(|journal| journal.makes(writer.thread, false));
            let disk = self.files.disk_of(pass.file);
            let answer = self.disks.submit(self.clock.now, disk, &rq, owner, &mut batch);
            *self.batch_of(writer.thread) = batch;
            if answer.is_err() {
                return PassEnd::Full;
            }
            if (writer.thread as usize) < self.lanes.len() {
                self.owe_request(writer.thread);
            }
            if self.cache.writeback == 0 {
                self.balance.begin(self.clock.now, self.cache.stats.pages_written, self.cache.dirtied);
            }
            self.cache.write_begun(pass.file, first, count);
            self.cache.set_cursor(pass.file, first + count);
            pass.next = first + count;
            pass.left -= count;
            pass.written += count;
            // A long request was waiting in the task's plug till this one came: it is with the scheduler now,
            // which is asked before the task makes the next.
            if self.host.plug == Plug::Task && pass.written > count && len >= Plug::TASK_SECTORS {
                self.disks.run_touched(&mut self.clock);
            }
            if !writer.page.is_zero() && pass.left > 0 {
                return PassEnd::Made(self.clock.now + writer.page * u64::from(count));
            }
        }
        PassEnd::Done
    }

    /// The most pages that one write of the file's pages takes along. A disk's own pages are a piece of
    /// memory each, of which a request has no more than its driver takes; a file system puts many into one.
    ///
    /// Traced on Linux 6.18: 512 KiB where the limit is 1280, and 1280 through ext4.
    //= docs/reference/hosts.md#dirty-pages-and-flusher
    fn pages_of_write(&self, file: u32) -> u32 {
        if self.files.files[file as usize].is_disk { self.host.segments } else { u32::MAX }
    }

    fn batch_of(&mut self, thread: u32) -> &mut Batch {
        let lanes = self.lanes.len();
        match self.lanes.get_mut(thread as usize) {
            Some(lane) => &mut lane.batch,
            None => &mut self.flushers.threads[thread as usize - lanes].batch,
        }
    }
}
