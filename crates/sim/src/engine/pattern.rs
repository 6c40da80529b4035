//! What a pattern of `rw` does next: the direction, when its rate allows it, the file, the place and the
//! length.
//!
//! A job is done in *passes*. A pass ends when no file has a block left; `loops`, `time_based` and `io_size`
//! begin another.
//!
//! ```text
//!   draw ─► read or write? ─► its rate allows it? ─► which file? ─► where, how long? ─► Turn::Io
//!                                    └─► Turn::Wait                  └─ no block left: the file is done, take another
//!                                                                       no file left: Turn::Exhausted, the end of a pass
//! ```
//!
//! The rules are fio's, as fio 3.33 was seen to follow them (its own logs of offsets; the differential
//! harness draws job files and compares):
//!
//! * Each direction has its own position in each file. A block that does not fit behind its position is not
//!   moved: of `size=1000k bs=64k`, 15 are.
//! * A length from `bsrange` or `bssplit` is drawn again until it fits. It is a multiple of the smallest.
//! * Of a file with a map of visited blocks (no `norandommap`), a long call ends where a visited block
//!   begins.
//! * `rate` counts bytes from the start of the job. `rate_iops` counts as that many bytes of the smallest
//!   block size. With a mix, a direction that is ahead of its rate lets the other go first; if both are
//!   ahead, the client waits for the earlier one.
//!
//! Example: `rw=rw size=16k bs=4k`, mixed half and half, may read at 0 and 4 KiB, write at 0, read at 8 KiB,
//! and is done: four calls.
//!
//! What this does not do: wait, or make calls. That is [`super::client`]'s.

use super::access::{self, Marks, Picker};
use super::action::{Action, Region};
use super::zones::Zone;
use crate::job::{BlockSize, Direction, Distribution, FileService, Job, Sequencer};
use crate::rng::Rng;
use fairhead_core::{Duration, Instant};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// This.
    Io(Io),
    /// Wait for this time, because of a rate. Then [`Pattern::draw`] answers with a call.
    Wait(Duration),
    /// No file has a block left.
    Exhausted,
}

/// A call. In bytes from where the region of each file starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) action: Action,
    /// Which of the client's files.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// How far a client is in one of its files.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The next sequential position, by direction.
    position: [u64; 3],
    /// Where the last call began, by direction.
    last: [u64; 3],
    zone: Zone,
    /// It has no block left in this pass.
    done: bool,
    /// The blocks that this pass has visited, if lengths differ.
    marks: Marks,
}

/// The random calls of a direction.
#[derive(Clone, Copy, Debug)]
struct Jumps {
    /// The number of places in a file, and their distance in bytes.
    places: u64,
    unit: u64,
    /// Percent of the calls that are random.
    percent: u8,
    /// The length in bytes, if all have the same.
    len: Option<u32>,
}

impl Jumps {
    fn new(job: &Job, action: Action, span: u64) -> Self {
        let (smallest, unit) = units_of(job, action);
        let percent = match action {
            Action::Read => job.random_pct.read,
            Action::Write => job.random_pct.write,
            Action::Trim | Action::Sync => job.random_pct.trim,
        };
        let len = match sizes_of(job, action) {
            BlockSize::Fixed(len) => Some(*len),
            BlockSize::Range { .. } | BlockSize::Split(_) => None,
        };
        Self { places: (span + unit).saturating_sub(smallest) / unit.max(1), unit, percent, len }
    }
}

/// The state of one client's pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    picker: Picker,
    places: Vec<Place>,
    /// Which file the next call goes to, when they take turns.
    turn: usize,
    /// The file of the last call, and how many more go to it before the next is chosen.
    run: (usize, u32),
    /// The files in use, if that is limited.
    open: Vec<usize>,
    /// How much was moved in a zone, of whichever file.
    zone_moved: u64,
    /// How long the region of each file is, and how far it is to the end of the file, in bytes.
    span: u64,
    room: u64,
    /// How long the region of each file is, if they differ.
    lengths: Vec<u64>,
    /// Where a random call can go, by direction.
    jumps: [Jumps; 3],
    /// The job's data: `size`, or all regions together if that is less.
    size: u64,
    /// Where in its file the region begins, and how long the file is, in bytes.
    base: u64,
    file: u64,
    /// Calls that go on from the last random place before the next one is drawn.
    run_left: u32,
    /// When the next call of a Poisson process comes, by direction.
    poisson: [Duration; 3],
    /// A direction that was drawn and had to wait for its rate.
    ready: Option<Action>,
    /// Whether any direction has a rate.
    is_paced: bool,
    /// From when rates count, and bytes since then by direction.
    paced_from: Instant,
    paced: [u64; 3],
    /// Whether the ramp is over, after which rates count anew.
    ramped: bool,
    /// Bytes and calls so far, and calls of this pass.
    issued: u64,
    calls: u64,
    calls_of_pass: u64,
    bytes_of_pass: u64,
    loops_left: u32,
}

impl Pattern {
    /// A pattern over the `region` of each of `files` files.
    pub(super) fn new(job: &Job, region: Region, files: usize, rng: &mut Rng) -> Self {
        let Region { span, size, room, .. } = region;
        // The last place of a coarser or finer alignment still has room for the smallest block.
        let jumps = [Action::Read, Action::Write, Action::Trim].map(|action| Jumps::new(job, action, span));
        Self {
            jumps,
            picker: picker(job, span, files, rng),
            places: vec![Place::default(); files],
            turn: 0,
            run: (0, 0),
            open: Vec::new(),
            zone_moved: 0,
            lengths: Vec::new(),
            span,
            room,
            size: size.min(span.saturating_mul(files as u64)),
            base: 0,
            file: span,
            run_left: 0,
            poisson: [Duration::ZERO; 3],
            ready: None,
            is_paced: [Action::Read, Action::Write, Action::Trim]
                .iter()
                .any(|a| Self::rate(job, *a).is_some()),
            paced_from: Instant::EPOCH,
            paced: [0; 3],
            ramped: job.ramp_time.is_zero(),
            issued: 0,
            calls: 0,
            calls_of_pass: 0,
            bytes_of_pass: 0,
            loops_left: job.loops - 1,
        }
    }

    /// A region in files that are longer than it and begin before it.
    pub(super) fn inside(self, base: u64, file: u64) -> Self {
        Self { base, file, ..self }
    }

    /// Files whose regions have lengths of their own.
    pub(super) fn vary(&mut self, job: &Job, lengths: Vec<u64>, rng: &mut Rng) {
        let smallest = u64::from(job.smallest_block()).max(1);
        for (file, length) in lengths.iter().enumerate() {
            self.picker.limit(file, length / smallest, rng);
        }
        self.size = self.size.min(lengths.iter().sum());
        self.lengths = lengths;
    }

    /// The next call is in this file.
    fn turn_to(&mut self, job: &Job, file: usize) {
        let Some(&length) = self.lengths.get(file) else { return };
        (self.span, self.room, self.file) = (length, length, self.base + length);
        self.jumps =
            [Action::Read, Action::Write, Action::Trim].map(|action| Jumps::new(job, action, length));
    }

    /// Calls so far.
    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether all is done that the job asks for. `again`: reads of what was written, between writes, which
    /// `number_ios` counts.
    //= fio-3.33: number_ios=14 with verify_backlog=2 makes 8 writes and 6 reads, then 2 reads
    pub(super) fn is_done(&self, job: &Job, again: u64) -> bool {
        if job.time_based {
            return false;
        }
        let loops = u64::from(job.loops);
        let calls_max = job.number_ios.map_or(u64::MAX, |n| n.saturating_mul(loops));
        let bytes_max = self.bytes(job).saturating_mul(loops);
        self.issued >= bytes_max || self.calls + again >= calls_max
    }

    /// What one of the job's `loops` moves.
    fn bytes(&self, job: &Job) -> u64 {
        job.io_size.map_or(self.size, |s| s.bytes_of(self.size))
    }

    /// Begins another pass, if one follows that which is exhausted.
    /// `again`: bytes of it that were read again, to verify them.
    pub(super) fn next_pass(&mut self, job: &Job, again: u64, rng: &mut Rng) -> bool {
        // Without this a job whose every call is too long would begin for ever.
        if std::mem::take(&mut self.calls_of_pass) == 0 {
            return false;
        }
        self.bytes_of_pass = 0;
        let goes_on = if job.time_based {
            true
        } else if self.loops_left > 0 {
            self.loops_left -= 1;
            true
        } else {
            // What is left of io_size is another pass if a block of any length fits it. To fio, what is read
            // again is part of it.
            job.io_size.is_some()
                && self.bytes(job).saturating_sub(self.issued.saturating_add(again))
                    >= u64::from(job.largest_block())
        };
        if goes_on {
            for place in &mut self.places {
                *place = Place::default();
            }
            (self.turn, self.zone_moved, self.run) = (0, 0, (0, 0));
            self.open.clear();
            self.picker.renew(rng);
        }
        goes_on
    }

    /// What comes next at `now`, for a client that started at `started`.
    #[inline]
    pub(super) fn draw(&mut self, job: &Job, now: Instant, started: Instant, rng: &mut Rng) -> Turn {
        let action = match self.ready.take() {
            Some(action) => action,
            None if !self.is_paced => draw_action(job, rng),
            None => {
                self.pace_from(job, now, started);
                let drawn = draw_action(job, rng);
                let (action, due) = self.paced_action(job, drawn, now);
                if due > now {
                    // Kept, so that waiting for a rate draws no random number twice.
                    self.ready = Some(action);
                    return Turn::Wait(due.since(now));
                }
                action
            }
        };
        if self.is_pass_full(job) {
            return Turn::Exhausted;
        }
        while let Some(file) = self.draw_file(job, rng) {
            self.turn_to(job, file);
            if let Some((offset, len)) = self.place(job, action, file, rng) {
                let i = index(action);
                self.places[file].position[i] = offset + u64::from(len);
                self.places[file].last[i] = offset;
                if job.poisson {
                    self.poisson[i] += rng.exponential(self.mean_gap(job, action));
                }
                self.paced[i] += u64::from(len);
                self.issued += u64::from(len);
                self.calls += 1;
                self.calls_of_pass += 1;
                self.bytes_of_pass += u64::from(len);
                return Turn::Io(Io { action, file, offset, len });
            }
            // The file has no place left for the call; another may.
            self.places[file].done = true;
        }
        Turn::Exhausted
    }

    /// Whether a pass of an engine that queues calls has moved what a pass does, where its files may have
    /// more. With engines that make one call at a time fio does not look.
    //= fio-3.33: positions seen in its logs, with filesize and loops
    fn is_pass_full(&self, job: &Job) -> bool {
        // Most calls of most jobs need not look further.
        if job.time_based || self.bytes_of_pass < self.size {
            return false;
        }
        let queues = matches!(job.ioengine.as_str(), "libaio" | "io_uring" | "posixaio" | "vsync");
        let repeats = job.rw.direction != Direction::Read
            && job.rw.random
            && (job.norandommap || job.distribution != crate::job::Distribution::Uniform);
        let most = if repeats { self.size.max(self.bytes(job)) } else { self.size };
        queues && self.bytes_of_pass >= most
    }

    // ---- when --------------------------------------------------------------------------------------------

    /// Rates count from the start of the job, and anew from the end of its ramp.
    fn pace_from(&mut self, job: &Job, now: Instant, started: Instant) {
        if self.calls == 0 {
            self.paced_from = started;
        }
        if !self.ramped && now >= started + job.ramp_time {
            (self.ramped, self.paced_from, self.paced) = (true, started + job.ramp_time, [0; 3]);
        }
    }

    /// The direction that goes first of what was drawn and, in a mix, the other; and when its rate lets it.
    //= fio-3.33 HOWTO "rate", "rate_iops"; the order of a mix seen in its logs
    fn paced_action(&self, job: &Job, drawn: Action, now: Instant) -> (Action, Instant) {
        let due = self.due(job, drawn);
        let other = match drawn {
            Action::Read if job.rwmix_read_pct < 100 => Action::Write,
            Action::Write if job.rwmix_read_pct > 0 => Action::Read,
            _ => return (drawn, due),
        };
        if due <= now || job.rw.direction != Direction::Mixed {
            return (drawn, due);
        }
        let other_due = self.due(job, other);
        if other_due < due { (other, other_due) } else { (drawn, due) }
    }

    /// When the rate of a direction lets its next call go.
    fn due(&self, job: &Job, action: Action) -> Instant {
        let Some(rate) = Self::rate(job, action) else { return self.paced_from };
        if job.poisson {
            return self.paced_from + self.poisson[index(action)];
        }
        let ns = u128::from(self.paced[index(action)]) * 1_000_000_000 / u128::from(rate.max(1));
        self.paced_from + Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 2))
    }

    /// The mean time between two calls of a Poisson process, in whole microseconds, as fio has it.
    //= fio-3.33 HOWTO "rate_process"
    fn mean_gap(&self, job: &Job, action: Action) -> Duration {
        let block = u64::from(sizes_of(job, action).min_bytes());
        let gap = |rate: u64| Duration::from_us(1_000_000 / (rate / block).max(1));
        Self::rate(job, action).map_or(Duration::ZERO, gap)
    }

    /// The cap of a direction in bytes a second.
    fn rate(job: &Job, action: Action) -> Option<u64> {
        let by_calls =
            |iops: Option<u32>, bs: &BlockSize| iops.map(|n| u64::from(n) * u64::from(bs.min_bytes()));
        match action {
            Action::Read => job.rate.read.or(by_calls(job.rate_iops.read, &job.bs.read)),
            Action::Write => job.rate.write.or(by_calls(job.rate_iops.write, &job.bs.write)),
            Action::Trim | Action::Sync => job.rate.trim.or(by_calls(job.rate_iops.trim, &job.bs.trim)),
        }
    }

    /// The file that is synced: it takes a turn as a call does.
    //= fio-3.33: seen in its logs
    pub(super) fn file_to_sync(&mut self, job: &Job, rng: &mut Rng) -> usize {
        self.draw_file(job, rng).unwrap_or(0)
    }

    // ---- where -------------------------------------------------------------------------------------------

    /// A file that has blocks left.
    //= fio-3.33 HOWTO "file_service_type", "openfiles"; the order of files seen in its logs
    fn draw_file(&mut self, job: &Job, rng: &mut Rng) -> Option<usize> {
        let files = self.places.len();
        if files == 1 {
            return (!self.places[0].done).then_some(0);
        }
        let (last, left) = self.run;
        // At its end a file that begins again has another one's turn first.
        let wraps = job.time_based
            && !job.rw.random
            && self.places[last].position.iter().any(|position| *position >= self.span);
        if left > 0 && !self.places[last].done && !wraps {
            self.run.1 -= 1;
            return Some(last);
        }
        let most = job.open_files as usize;
        let file = if most > 0 && most < files && job.file_service != FileService::Sequential {
            self.draw_open_file(job, most, rng)?
        } else {
            let from = self.first_choice(job, files, rng);
            (0..files).map(|i| (from + i) % files).find(|&f| !self.places[f].done)?
        };
        self.turn = match job.file_service {
            FileService::RoundRobin => (file + 1) % files,
            FileService::Sequential | FileService::Random => file,
        };
        self.run = (file, job.file_run.saturating_sub(1));
        Some(file)
    }

    fn first_choice(&self, job: &Job, files: usize, rng: &mut Rng) -> usize {
        match job.file_service {
            FileService::RoundRobin | FileService::Sequential => self.turn,
            FileService::Random => usize::try_from(rng.below(files as u64)).unwrap_or(0),
        }
    }

    /// A file of those in use, or another one, if fewer than `most` are.
    fn draw_open_file(&mut self, job: &Job, most: usize, rng: &mut Rng) -> Option<usize> {
        let (places, open) = (&self.places, &mut self.open);
        open.retain(|&f| !places[f].done);
        let files = self.places.len();
        let may_open = self.open.len() < most;
        let mut fit = (0..files).filter(|f| !self.places[*f].done && (may_open || self.open.contains(f)));
        let file = match job.file_service {
            FileService::Random => {
                let all: Vec<usize> = fit.collect();
                if all.is_empty() {
                    return None;
                }
                all[usize::try_from(rng.below(all.len() as u64)).unwrap_or(0)]
            }
            FileService::RoundRobin | FileService::Sequential => {
                let turn = self.turn;
                fit.clone().find(|f| *f >= turn).or_else(|| fit.next())?
            }
        };
        if !self.open.contains(&file) {
            self.open.push(file);
        }
        Some(file)
    }

    /// Where in the file the next call goes and how long it is; `None` if the file has no room for it.
    fn place(&mut self, job: &Job, action: Action, file: usize, rng: &mut Rng) -> Option<(u64, u32)> {
        let to = self.jumps[index(action)];
        // A sequential pattern is sequential, whatever percentage_random says.
        let draws = self.draws_place(job) && job.rw.random;
        let jumps = draws && (to.percent == 100 || (to.percent > 0 && rng.percent(to.percent)));
        if job.zones.is_some() {
            return self.place_in_zone(job, action, file, jumps, rng);
        }
        if job.bs_by_order {
            return self.place_by_order(job, action, file, jumps, rng);
        }
        if jumps
            && let Some(len) = to.len
            && !matches!(self.picker, Picker::Marked)
        {
            let block = self.picker.draw(file, to.places, job.time_based, rng)?;
            return Some((block * to.unit, len));
        }
        let bs = sizes_of(job, action);
        let ((align, unit), span) = (units_of(job, action), self.span);
        let sequential = match job.sequencer {
            _ if jumps => None,
            Sequencer::Identical if job.rw.random && !draws => Some(self.places[file].last[index(action)]),
            _ => self.sequential(job, file, index(action)),
        };
        // A block that begins in the region may end behind it, if the file is longer.
        let room = self.room;
        let fits = |at: u64| match bs {
            BlockSize::Fixed(len) => at < span && at + u64::from(*len) <= room,
            BlockSize::Range { .. } | BlockSize::Split(_) => at + align <= span,
        };
        // At the end of the file a random pattern jumps. A rest that has no room for a block, or another
        // user's data, ends it.
        if sequential.is_some_and(|at| at < room && !fits(at)) {
            return None;
        }
        let sequential = sequential.filter(|&at| fits(at));
        let place = &mut self.places[file];
        let offset = match sequential {
            Some(offset) => offset,
            None if !job.rw.random => return None,
            None => {
                let block = match &mut self.picker {
                    Picker::Marked => place.marks.draw(to.places, job.time_based, rng)?,
                    picker => picker.draw(file, to.places, job.time_based, rng)?,
                };
                block * unit
            }
        };
        let len = draw_size(bs, span.saturating_sub(offset), rng);
        if !matches!(self.picker, Picker::Marked) {
            return Some((offset, len));
        }
        let blocks = u64::from(len).div_ceil(align);
        // Only a call that jumped ends where a visited block begins.
        let free =
            if sequential == Some(offset) { blocks } else { place.marks.free_from(offset / align, blocks) };
        place.marks.visit(offset / align, free);
        let len = if free < blocks { free * align } else { u64::from(len) };
        u32::try_from(len).ok().map(|len| (offset, len))
    }

    /// With `bs_is_seq_rand`: a sequential call has a length of reads, a random one of writes. A call that is
    /// sequential, but has no room, is at a random place, and as long as a sequential one.
    //= fio-3.33 HOWTO "bs_is_seq_rand"; what ends a job seen in its logs
    fn place_by_order(
        &mut self,
        job: &Job,
        action: Action,
        file: usize,
        jumps: bool,
        rng: &mut Rng,
    ) -> Option<(u64, u32)> {
        let (unit, len) =
            (self.jumps[index(action)].unit.max(1), draw_size(sizes(job, jumps), self.span, rng));
        let at = if jumps { None } else { self.sequential(job, file, index(action)) };
        let fits = |at: u64, len: u32| at + u64::from(len) <= self.room;
        let offset = match at.filter(|&at| at < self.span && fits(at, len)) {
            Some(at) => at,
            None if !job.rw.random => return None,
            None => self.picker.draw(file, self.jumps[index(action)].places, true, rng)? * unit,
        };
        fits(offset, len).then_some((offset, len))
    }

    /// Whether the next call is the first of those that a random place is for.
    //= fio-3.33 HOWTO "rw", "rw_sequencer"; that all directions and files count together was seen in its logs
    const fn draws_place(&mut self, job: &Job) -> bool {
        let is_first = self.run_left == 0;
        self.run_left = if is_first { job.run_calls - 1 } else { self.run_left - 1 };
        is_first
    }

    /// Where the next sequential call goes, with the hop of `rw=read:8k` and the like.
    ///
    /// fio adds the hop to the position from where the region begins, and compares that with the length of
    /// the whole file: only a hop that leaves the *file* begins again, at the other end of the region. A
    /// backwards job without an offset has its first call at 0.
    //= fio-3.33: rw=read:-8k, rw=read:8k with offset, size and io_size, seen in its logs of offsets
    fn sequential(&mut self, job: &Job, file: usize, i: usize) -> Option<u64> {
        // One file after the other: the next one's turn comes first.
        let moves_on = self.places.len() > 1 && job.file_service == FileService::Sequential;
        let position = &mut self.places[file].position[i];
        if job.time_based && *position >= self.span && !moves_on {
            *position = 0;
        }
        if job.hop == 0 || job.rw.random {
            return Some(*position);
        }
        let whole = self.file.max(self.base + self.span);
        if self.base + *position >= whole {
            return None;
        }
        let mut at = i128::from(*position);
        if job.hop < 0 && *position == 0 && self.base > 0 {
            at = i128::from(self.span) - i128::from(self.base);
        }
        if at != 0 {
            at += i128::from(job.hop);
            if !(0..i128::from(whole)).contains(&at) {
                at = if job.hop > 0 { 0 } else { i128::from(self.span) + i128::from(job.hop) };
            }
        }
        u64::try_from(at).ok()
    }

    fn place_in_zone(
        &mut self,
        job: &Job,
        action: Action,
        file: usize,
        jumps: bool,
        rng: &mut Rng,
    ) -> Option<(u64, u32)> {
        let zones = job.zones?;
        let bs = sizes_of(job, action);
        let len = draw_size(bs, self.span, rng);
        let place = &mut self.places[file];
        let (start, room) = place.zone.enter(
            &zones,
            u64::from(len),
            self.room,
            &mut place.position,
            index(action),
            &mut self.zone_moved,
        );
        let position = &mut place.position[index(action)];
        // A time-based job starts over at the end of its range instead of ending.
        if job.time_based && *position >= self.span {
            *position = start;
        }
        let offset = if jumps {
            let align = u64::from(bs.min_bytes());
            start + self.picker.draw(file, room / align + 1, true, rng)? * align
        } else {
            *position
        };
        if offset + u64::from(len) > self.room {
            return None;
        }
        self.zone_moved += u64::from(len);
        Some((offset, len))
    }
}

/// The index of a direction in what is counted by direction.
pub(super) const fn index(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write => 1,
        Action::Trim | Action::Sync => 2,
    }
}

/// The block sizes of a direction.
const fn sizes_of(job: &Job, action: Action) -> &BlockSize {
    match action {
        Action::Read => &job.bs.read,
        Action::Write => &job.bs.write,
        Action::Trim | Action::Sync => &job.bs.trim,
    }
}

/// The block sizes of random or of sequential calls, where `bs_is_seq_rand` tells them apart.
const fn sizes(job: &Job, is_random: bool) -> &BlockSize {
    if is_random { &job.bs.write } else { &job.bs.read }
}

fn draw_action(job: &Job, rng: &mut Rng) -> Action {
    match job.rw.direction {
        Direction::Read => Action::Read,
        Direction::Write => Action::Write,
        Direction::Trim => Action::Trim,
        Direction::Mixed if rng.percent(job.rwmix_read_pct) => Action::Read,
        Direction::Mixed => Action::Write,
    }
}

/// Every block once per pass, unless blocks may repeat.
fn picker(job: &Job, span: u64, files: usize, rng: &mut Rng) -> Picker {
    let sizes = match job.rw.direction {
        Direction::Read => [&job.bs.read; 2],
        Direction::Write => [&job.bs.write; 2],
        Direction::Trim => [&job.bs.trim; 2],
        Direction::Mixed => [&job.bs.read, &job.bs.write],
    };
    let is_one_size = sizes[0] == sizes[1] && matches!(sizes[0], BlockSize::Fixed(_));
    let smallest = sizes.iter().map(|s| s.min_bytes()).min().unwrap_or(4096);
    // With blocks of two alignments fio's map means something else to reads and to writes: nothing that can
    // be relied on.
    let is_aligned = [job.align.read, job.align.write, job.align.trim].iter().any(Option::is_some);
    let has_map = !job.norandommap && !is_aligned && sizes[0].min_bytes() == sizes[1].min_bytes();
    if let Distribution::Zoned(zones) = &job.distribution {
        return Picker::Zoned(access::Zones::new(zones, span));
    }
    let span = job.zones.map_or(span, |z| span.min(z.range * 512));
    if has_map
        && !is_one_size
        && !job.bs_by_order
        && job.zones.is_none()
        && job.distribution == Distribution::Uniform
    {
        return Picker::Marked;
    }
    let repeats = !(has_map && is_one_size) || job.bs_by_order;
    Picker::new(&job.distribution, repeats, span / u64::from(smallest).max(1), files, rng)
        .around(job.random_center)
}

/// The smallest block of a direction, and what random places are multiples of, in bytes.
fn units_of(job: &Job, action: Action) -> (u64, u64) {
    let smallest = u64::from(sizes_of(job, action).min_bytes());
    let align = match action {
        Action::Read => job.align.read,
        Action::Write => job.align.write,
        Action::Trim | Action::Sync => job.align.trim,
    };
    (smallest, align.map_or(smallest, u64::from))
}

/// A block size from its distribution, of at most `room` bytes; there is room for the smallest. In bytes.
fn draw_size(bs: &BlockSize, room: u64, rng: &mut Rng) -> u32 {
    let min = bs.min_bytes();
    loop {
        let len = match bs {
            BlockSize::Fixed(bytes) => *bytes,
            #[allow(clippy::cast_possible_truncation, reason = "below the larger of two u32")]
            BlockSize::Range { min, max } => min * (1 + rng.below(u64::from(max / min)) as u32),
            BlockSize::Split(parts) => split_size(parts, rng) / min * min,
        };
        if u64::from(len) <= room || len == min {
            return len;
        }
    }
}

fn split_size(parts: &[(u32, u8)], rng: &mut Rng) -> u32 {
    let mut at = rng.below(100);
    for &(bytes, percent) in parts {
        if at < u64::from(percent) {
            return bytes;
        }
        at -= u64::from(percent);
    }
    parts[0].0
}
