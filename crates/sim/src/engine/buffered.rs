//! Calls through the page cache.
//!
//! A read walks over its pages. A page that is there costs nothing but the copy; one that is missing brings a
//! window of read-ahead; one that is on its way is waited for, that page only. A write makes its pages dirty
//! and then looks at the limits. A sync writes what is dirty in its range, waits for that, and has the disk's
//! cache emptied.
//!
//! ```text
//!   read  ──► page there? ──no──► window ──► requests ──► wait for this page ──┐
//!               │ yes: next page ◄─────────────────────────────────────────────┘
//!   write ──► pages dirty ──► above 40 % of memory? ──yes──► write 1536 pages in one's own name, or wait 100 ms, and look again
//!                             since 3.2: near 20 %?   ──yes──► pause, as `balance` says
//! ```
//!
//! Metadata reads are not modelled: what a file system knows of its files is taken as cached.
//
//= docs/reference/hosts.md#submission-paths, docs/reference/hosts.md#page-cache-and-readahead
//= docs/reference/hosts.md#dirty-pages-and-flusher
//= linux-2.6.9 mm/page-writeback.c balance_dirty_pages

use super::Machine;
use super::cache::PAGE_SECTORS;
use super::client::{Action, Call};
use super::flusher::{CONGESTION_WAIT, Pass, PassEnd, Writer};
use super::frames::{DIRTY, MARKER, NEW, READING, UPTODATE, WRITEBACK};
use super::owner::Owner;
use super::phase::{After, Phase, Step};
use super::readahead::Window;
use crate::host::Throttle;
use crate::job::SyncMode;
use crate::layout::{Layout, Piece};
use crate::why::Wait;
use fairhead_core::{Duration, GroupId, Request, Sector, Sectors};

/// How many pages a client dirties between two looks at the limits, and how many once they have been
/// exceeded.
//= linux-2.6.9 mm/page-writeback.c ratelimit_pages (4 MiB), balance_dirty_pages_ratelimited
const LOOK_EVERY: u32 = 1024;
const LOOK_EVERY_WHEN_EXCEEDED: u32 = 8;
/// How many pages a client beyond the limit writes before it may go on.
//= linux-2.6.9 mm/page-writeback.c sync_writeback_pages
const DUTY: u32 = LOOK_EVERY * 3 / 2;
impl Machine<'_> {
    pub(super) fn begin_pages(&mut self, lane: u32) {
        let l = &mut self.lanes[lane as usize];
        (l.page, l.page_end) = match l.call.action {
            Action::Sync => (0, u32::MAX),
            _ => l.call.pages(),
        };
        l.fill = (0, 0);
        l.pass = None;
        l.all_handed_in = false;
        l.duty = 0;
    }

    fn wait_for_page(&mut self, file: u32, page: u32, lane: u32) {
        self.cache.wait_for_page(file, page, lane);
        self.why(|why| why.waits_for_page(lane, file, page));
    }

    // ---- reads -------------------------------------------------------------------------------------------

    pub(super) fn read_pages(&mut self, lane: u32) -> Step {
        let one_window = self.clients[self.lanes[lane as usize].client as usize].has_one_window();
        loop {
            if !self.hand_in_reads(lane) {
                return Step::Blocked;
            }
            let l = &self.lanes[lane as usize];
            let page = self.cache.touch_known(l.call.file, l.page, l.page_end);
            let (call, page_end, client) = (l.call, l.page_end, l.client);
            self.lanes[lane as usize].page = page;
            if page == page_end {
                let client = &mut self.clients[client as usize];
                // Sequentiality is judged by where the call ended.
                client.ahead[call.slot as usize].read_up_to(page - 1);
                return Step::Done;
            }
            if self.is_hole(call.file, page) {
                self.lanes[lane as usize].page += 1;
                continue;
            }
            match self.cache.touch(call.file, page) {
                None => self.on_miss(lane, page),
                Some(flags) if flags & MARKER != 0 && (flags & UPTODATE != 0 || !one_window) => {
                    self.on_marker(lane, page);
                }
                Some(flags) if flags & UPTODATE == 0 => {
                    self.cache.stats.waits += 1;
                    self.wait_for_page(call.file, page, lane);
                    return Step::Blocked;
                }
                Some(_) => self.lanes[lane as usize].page += 1,
            }
        }
    }

    fn on_miss(&mut self, lane: u32, page: u32) {
        let l = &self.lanes[lane as usize];
        let (call, wanted) = (l.call, l.page_end - page);
        let window = self.clients[l.client as usize].ahead[call.slot as usize].on_miss(page, wanted);
        self.cache.stats.misses += 1;
        self.plan_reads(lane, window);
        debug_assert!(self.cache.flags(call.file, page).is_some(), "a window holds the page that was missed");
    }

    fn on_marker(&mut self, lane: u32, page: u32) {
        let l = &self.lanes[lane as usize];
        let (call, wanted) = (l.call, l.page_end - page);
        self.cache.clear_marker(call.file, page);
        // Read-ahead is a favour, and is not done when requests are short.
        if self.disks.is_congested(self.files.disk_of(call.file), true) {
            return;
        }
        let limit =
            page.saturating_add(self.host.read_ahead.saturating_mul(4).max(self.host.read_with_call()));
        let there = self.cache.run(call.file, page + 1, limit, |flags| flags.is_some());
        let missing = (page + 1 + there).min(limit);
        let ahead = &mut self.clients[l.client as usize].ahead[call.slot as usize];
        if let Some(window) = ahead.on_marker(page, wanted, missing) {
            self.plan_reads(lane, window);
        }
    }

    /// Brings the missing pages of a window into memory, to be read.
    fn plan_reads(&mut self, lane: u32, window: Window) {
        let file = self.lanes[lane as usize].call.file;
        let end = window.start.saturating_add(window.len).min(self.pages_in(file));
        for page in window.start..end {
            if self.cache.flags(file, page).is_none() && !self.is_hole(file, page) {
                let marker = if window.marker == Some(page) { MARKER } else { 0 };
                self.cache.add(file, page, READING | NEW | marker);
            }
        }
        self.lanes[lane as usize].fill = (window.start.min(end), end);
    }

    /// Hands in the planned reads. False if the lane has to wait for a request.
    fn hand_in_reads(&mut self, lane: u32) -> bool {
        let l = &self.lanes[lane as usize];
        let (mut page, end) = l.fill;
        if page == end {
            return true;
        }
        let (file, asked_end, client) = (l.call.file, l.page_end, &self.clients[l.client as usize]);
        let (task, group) = (client.task, client.group);
        let (prio, meta) = (client.job.prio.unwrap_or_default(), l.call.meta);
        let disk = self.files.disk_of(file);
        let is_new = |flags: Option<u8>| flags.is_some_and(|f| f & NEW != 0);
        loop {
            // One request for each run of missing pages: pages that another reader has asked for already are
            // left out.
            page += self.cache.run(file, page, end, |flags| !is_new(flags));
            let run = self.cache.run(file, page, end, is_new);
            if run == 0 {
                break;
            }
            let ((start, len), count) = self.pages_on_disk(file, page, run);
            let rq = Request { prio, group, meta, ..Request::read(task, start, len) };
            let batch = &mut self.lanes[lane as usize].batch;
            let owner = Owner::Read { file, first: page, count };
            if let Some(journal) = &self.journal {
                journal.borrow_mut().makes(lane, page >= asked_end);
            }
            if self.disks.submit(self.clock.now, disk, &rq, owner, batch).is_err() {
                self.disks.wait(lane, true, self.lanes[lane as usize].batch.queue);
                break;
            }
            self.owe_request(lane);
            self.cache.handed_in(file, page, count);
            self.cache.stats.pages_read += u64::from(count);
            page += count;
        }
        self.lanes[lane as usize].fill = (page, end);
        self.wait_for_io();
        page == end
    }

    /// Sends for the pages behind a call, one request each. No program waits for them. They lie side by side,
    /// so merging makes them one or two, and the lane pays for one. Read-ahead is optional: it ends when
    /// requests are short.
    pub(super) fn hand_in_burst(&mut self, lane: u32) {
        let l = &self.lanes[lane as usize];
        let (file, first, burst) = (l.call.file, l.page_end, l.call.burst);
        let client = &self.clients[l.client as usize];
        let (task, group, prio) = (client.task, client.group, client.job.prio.unwrap_or_default());
        // Charged once: merging makes one or two requests of the burst.
        if burst > 0 {
            self.owe_request(lane);
        }
        self.journal(|journal| journal.makes(lane, true));
        let disk = self.files.disk_of(file);
        for page in first..(first + burst).min(self.pages_in(file)) {
            if self.cache.flags(file, page).is_some() {
                continue;
            }
            let ((start, len), count) = self.pages_on_disk(file, page, 1);
            let rq = Request { prio, group, ..Request::read(task, start, len) };
            let batch = &mut self.lanes[lane as usize].batch;
            let owner = Owner::Read { file, first: page, count };
            if self.disks.submit(self.clock.now, disk, &rq, owner, batch).is_err() {
                return;
            }
            self.cache.add(file, page, READING);
            self.cache.stats.pages_read += 1;
        }
    }

    fn pages_in(&self, file: u32) -> u32 {
        let sectors = self.files.files[file as usize].size;
        u32::try_from(sectors.div_ceil(u64::from(PAGE_SECTORS))).unwrap_or(u32::MAX - 1)
    }

    fn is_hole(&self, file: u32, page: u32) -> bool {
        match &self.files.files[file as usize].layout {
            Layout::Grown(grown) => {
                grown.block(u64::from(page)).is_none() && self.cache.flags(file, page).is_none()
            }
            _ => false,
        }
    }

    /// The piece of disk that holds some pages from `page` on, at most `max`; and how many.
    pub(super) fn pages_on_disk(&self, file: u32, page: u32, max: u32) -> (Piece, u32) {
        let f = &self.files.files[file as usize];
        let facts = self.disks.facts(f.disk);
        let offset = u64::from(page) * u64::from(PAGE_SECTORS);
        let most = u64::from(max.min(self.host.max_request.0.min(facts.max_request.0) / PAGE_SECTORS).max(1))
            * u64::from(PAGE_SECTORS);
        let left = f.size.saturating_sub(offset).max(1);
        #[allow(clippy::cast_possible_truncation, reason = "at most a request's length")]
        let (start, len) = f.layout.piece(offset, most.min(left) as u32);
        let whole = len.0 / PAGE_SECTORS * PAGE_SECTORS;
        if whole > 0 {
            // A piece of disk that ends within a page leaves that page to the next request.
            let len = if u64::from(len.0) == left { len.0 } else { whole };
            return ((start, Sectors(len)), len.div_ceil(PAGE_SECTORS));
        }
        // Less than a page in one place: taken as if all of it were there.
        let room = facts.capacity - start.0;
        #[allow(clippy::cast_possible_truncation, reason = "at most a page")]
        let len = left.min(u64::from(PAGE_SECTORS)).min(room) as u32;
        ((start, Sectors(len)), 1)
    }

    // ---- writes ------------------------------------------------------------------------------------------

    pub(super) fn write_pages(&mut self, lane: u32) -> Step {
        if !self.hand_in_reads(lane) {
            return Step::Blocked;
        }
        let index = self.lanes[lane as usize].client as usize;
        let client = &self.clients[index];
        let is_tracked = client.job.cgroup_writeback.unwrap_or(self.host.cgroup_writeback);
        let dirtier = is_tracked.then_some(client.group);
        loop {
            let l = &self.lanes[lane as usize];
            let (call, end) = (l.call, l.page_end);
            let page = self.cache.set_dirty_known(self.clock.now, call.file, l.page..end, dirtier);
            if page > l.page {
                self.clients[index].debt.pages += page - l.page;
                self.arm_flusher();
            }
            self.lanes[lane as usize].page = page;
            if page == end {
                return Step::Go(Phase::Balance);
            }
            match self.cache.flags(call.file, page) {
                Some(flags) if flags & UPTODATE == 0 => {
                    self.wait_for_page(call.file, page, lane);
                    return Step::Blocked;
                }
                // A part of a page is overwritten: the rest comes from the disk first.
                None if self.needs_reading(call, page) => {
                    self.plan_reads(lane, Window { start: page, len: 1, marker: None });
                    return Step::Go(Phase::Write);
                }
                _ => {}
            }
            self.set_dirty(call.file, page, dirtier);
            self.clients[index].debt.pages += 1;
            self.lanes[lane as usize].page += 1;
        }
    }

    /// Whether a page that is not in memory has to be read because only a part of it is overwritten.
    fn needs_reading(&self, call: Call, page: u32) -> bool {
        let start = u64::from(page) * u64::from(PAGE_SECTORS);
        let f = &self.files.files[call.file as usize];
        let end = (start + u64::from(PAGE_SECTORS)).min(f.size);
        let is_whole = call.offset <= start && call.offset + u64::from(call.len) >= end;
        !is_whole && f.is_old()
    }

    /// Makes a page dirty, and the flusher look after it.
    pub(super) fn set_dirty(&mut self, file: u32, page: u32, dirtier: Option<GroupId>) {
        self.cache.set_dirty(self.clock.now, file, page, dirtier);
        self.arm_flusher();
    }

    /// Looks at the limits on dirty pages, if enough have been dirtied since the last time.
    pub(super) fn balance(&mut self, lane: u32) -> Step {
        match self.host.throttle {
            Throttle::Sleep => self.pause_dirtier(lane),
            Throttle::WriteBack => self.look_at_duty(lane),
        }
    }

    /// A client pauses for what it has dirtied, so that the disk keeps up (Linux 3.2 and later).
    fn pause_dirtier(&mut self, lane: u32) -> Step {
        let (now, occupied) = (self.clock.now, self.cache.dirty + self.cache.writeback);
        let index = self.lanes[lane as usize].client as usize;
        if !self.clients[index].debt.is_due() {
            return self.after_balance(lane);
        }
        if self.cache.dirty > self.cache.dirty_background {
            self.wake_flusher();
        }
        self.balance.look(now, self.cache.stats.pages_written, self.cache.dirtied, occupied);
        let Some(until) = self.balance.pause(now, occupied, &mut self.clients[index].debt) else {
            return self.after_balance(lane);
        };
        if std::mem::replace(&mut self.lanes[lane as usize].duty, 1) == 0 {
            self.cache.stats.throttled += 1;
        }
        self.why(|why| why.waits(lane, Wait::Throttle));
        self.sleep(lane, until);
        Step::Blocked
    }

    fn look_at_duty(&mut self, lane: u32) -> Step {
        let index = self.lanes[lane as usize].client as usize;
        if !self.cache.limit_exceeded && self.cache.dirty + self.cache.writeback > self.cache.dirty_hard {
            self.cache.limit_exceeded = true;
        }
        let every = if self.cache.limit_exceeded { LOOK_EVERY_WHEN_EXCEEDED } else { LOOK_EVERY };
        if self.clients[index].debt.pages < every {
            return self.after_balance(lane);
        }
        // Pages on their way to the disk count as well: they occupy memory until they are written.
        if self.cache.dirty + self.cache.writeback <= self.cache.dirty_hard {
            self.cache.limit_exceeded = false;
            self.clients[index].debt.pages = 0;
            if self.cache.dirty > self.cache.dirty_background {
                self.wake_flusher();
            }
            return self.after_balance(lane);
        }
        self.wake_flusher();
        if self.lanes[lane as usize].duty == 0 {
            self.cache.stats.throttled += 1;
        }
        self.do_duty(lane)
    }

    /// A client beyond the limit writes pages itself.
    fn do_duty(&mut self, lane: u32) -> Step {
        loop {
            let l = &mut self.lanes[lane as usize];
            let index = l.client as usize;
            if l.duty >= DUTY {
                self.clients[index].debt.pages = 0;
                return self.after_balance(lane);
            }
            let Some(mut pass) = l.pass.take().or_else(|| self.next_pass(self.clock.now)) else {
                // Everything is on its way already.
                return self.wait_for_congestion(lane);
            };
            let client = &self.clients[index];
            let prio = client.job.prio.unwrap_or_default();
            let (task, group) = (client.task, client.group);
            let writer = Writer {
                thread: lane,
                task,
                group,
                prio,
                sync: false,
                nonblocking: false,
                page: Duration::ZERO,
            };
            let before = pass.written;
            let end = self.write_pass(&mut pass, writer);
            self.disks.end_batch(self.clock.now);
            self.disks.run_touched(&mut self.clock);
            let l = &mut self.lanes[lane as usize];
            l.duty += pass.written - before;
            match end {
                PassEnd::Full => {
                    l.pass = Some(pass);
                    self.disks.wait(lane, false, self.lanes[lane as usize].batch.queue);
                    self.wait_for_io();
                    return Step::Blocked;
                }
                _ if pass.written == 0 => return self.wait_for_congestion(lane),
                _ if self.cache.dirty + self.cache.writeback <= self.cache.dirty_hard => {
                    return Step::Go(Phase::Balance);
                }
                _ => {}
            }
        }
    }

    fn wait_for_congestion(&mut self, lane: u32) -> Step {
        self.wait_for_io();
        self.disks.wait_for_congestion(lane);
        self.sleep(lane, self.clock.now + CONGESTION_WAIT);
        Step::Blocked
    }

    fn after_balance(&mut self, lane: u32) -> Step {
        let l = &mut self.lanes[lane as usize];
        (l.duty, l.pass) = (0, None);
        let wants_sync = self.clients[l.client as usize].job.sync != SyncMode::None;
        if !wants_sync && !l.through_cache {
            return Step::Done;
        }
        let after = if wants_sync { After::Flush } else { After::Done };
        self.begin_pages(lane);
        Step::Go(Phase::Sync(after))
    }

    // ---- syncs -------------------------------------------------------------------------------------------

    /// Writes the dirty pages of the lane's range and waits until they and those already on their way are on
    /// the disk.
    pub(super) fn sync_pages(&mut self, lane: u32, after: After) -> Step {
        let l = &mut self.lanes[lane as usize];
        let (call, range) = (l.call, (l.page, l.page_end));
        if !l.all_handed_in {
            // What others make dirty meanwhile is not waited for: else a sync would not end before them.
            let now = self.cache.stamp();
            let mut pass = l.pass.take().unwrap_or_else(|| Pass::of_range(call.file, range, now));
            let client = &self.clients[l.client as usize];
            let prio = client.job.prio.unwrap_or_default();
            // A direct write that goes through the cache keeps the class of direct writes.
            let direct_sync = client.job.direct_write_sync.unwrap_or(self.host.direct_write_sync);
            let sync = !l.through_cache || direct_sync;
            let (task, group) = (client.task, client.group);
            let writer =
                Writer { thread: lane, task, group, prio, sync, nonblocking: false, page: Duration::ZERO };
            let end = self.write_pass(&mut pass, writer);
            if pass.written > 0 {
                self.wait_for_io();
            }
            match end {
                PassEnd::Busy(page) => self.wait_for_page(call.file, page, lane),
                PassEnd::Full => self.disks.wait(lane, sync, self.lanes[lane as usize].batch.queue),
                _ => {}
            }
            let l = &mut self.lanes[lane as usize];
            if matches!(end, PassEnd::Busy(_) | PassEnd::Full) {
                pass.written = 0;
                l.pass = Some(pass);
                return Step::Blocked;
            }
            l.all_handed_in = true;
            if self.cache.wait_for_writes(call.file, range, lane) {
                // What a flusher has in its plug, too.
                self.wait_for_io();
                self.why(|why| why.waits_for_writes(lane, call.file, range));
                return Step::Blocked;
            }
        }
        match after {
            After::Flush if self.flushes(lane) => Step::Go(Phase::Flush),
            After::Flush | After::Done => Step::Done,
            After::Direct => Step::Go(Phase::Direct),
            After::Open => self.opened(lane),
        }
    }

    // ---- blocks ------------------------------------------------------------------------------------------

    /// Allocates the blocks that a write needs and that its file does not have. Returns how many.
    pub(super) fn allocate(&mut self, lane: u32, call: Call) -> u64 {
        let end = call.offset + u64::from(call.len);
        let file = &mut self.files.files[call.file as usize];
        let Layout::Grown(grown) = &mut file.layout else {
            if end <= file.allocated {
                return 0;
            }
            let new = (end - file.allocated.max(call.offset)).div_ceil(8);
            file.allocated = end;
            return new;
        };
        let on = &mut self.files.disks[file.disk.index()];
        let (Some(fs), metadata) = (&mut on.ext2, on.metadata) else { return 0 };
        let (mut new, mut is_full) = (0, false);
        let mut touched = std::mem::take(&mut self.touched);
        for block in call.offset / 8..end.div_ceil(8) {
            if grown.block(block).is_some() {
                continue;
            }
            match fs.allocate(grown, block) {
                Ok(t) => touched.extend([t.bitmap, t.inode].into_iter().chain(t.indirect)),
                Err(_) => is_full = true,
            }
            new += 1;
        }
        // A direct write into a hole inside the file is made through the page cache.
        let is_inside = call.offset < file.allocated;
        file.allocated = file.allocated.max(end);
        if let Some(meta) = metadata {
            touched.iter().for_each(|&page| self.set_dirty(meta, page, None));
        }
        touched.clear();
        self.touched = touched;
        if is_full {
            self.end_at_full_disk(self.lanes[lane as usize].client);
        }
        let job = &self.clients[self.lanes[lane as usize].client as usize].job;
        self.lanes[lane as usize].through_cache = new > 0 && is_inside && job.direct;
        new
    }

    /// Prepares the page cache for a client that is about to start.
    pub(super) fn prepare_cache(&mut self, client: usize) {
        let c = &self.clients[client];
        let (invalidate, pre_read) = (c.job.invalidate, c.job.pre_read);
        for i in 0..c.files.len() {
            let file = self.clients[client].files[i];
            if invalidate && self.cache.cached(file) > 0 {
                self.cache.invalidate_file(file);
            }
            if pre_read {
                let pages = self.pages_in(file).min(self.cache.capacity());
                for page in 0..pages {
                    if self.cache.flags(file, page).is_none() && !self.is_hole(file, page) {
                        self.cache.add(file, page, UPTODATE);
                    }
                }
            }
        }
    }

    /// The pages of a range that are dirty and not being written, from `first` on, next to each other; at
    /// most `max`.
    pub(super) fn dirty_run(&self, file: u32, first: u32, end: u32, max: u32) -> u32 {
        let is_ready = |flags: Option<u8>| flags.is_some_and(|f| f & (DIRTY | WRITEBACK) == DIRTY);
        self.cache.run(file, first + 1, end.min(first.saturating_add(max)), is_ready) + 1
    }

    /// A write of the pages by a writer, at the place of the disk where they are.
    pub(super) fn write_request(&self, writer: Writer, start: Sector, len: Sectors) -> Request {
        let Writer { task, group, prio, sync, .. } = writer;
        Request { sync, group, prio, no_idle: sync, ..Request::write(task, start, len) }
    }
}
