//! The flash itself: dies that do one thing at a time, and channels that move the bytes of one die at a time.
//!
//! ```text
//!   read:      die  |── sense t_read ──|··wait··|              the die keeps the data until they have moved
//!              channel                          |─ bytes ─|    first ready, first moved
//!   program:   channel  |─ unit ─|
//!              die      |········|──────── t_prog ────────|
//!   move:      die      |── sense ──|··hold···············|─── t_prog ───|   in a die: without channel and wait
//!              channel              |─ unit out, unit in ─|
//! ```
//!
//! What a free die does next, in this order: reads; a program that was suspended for them; what garbage
//! collection owes; programs; moving data out of the SLC cache. A read never stops what has begun, unless the
//! drive can suspend programs. While a command waits for programs, at most [`READS_IN_A_ROW`] reads of a die
//! pass them.
//!
//! Consecutive pages of one command on one die are sensed together if they fill the planes.
//!
//! What this does not do: decide where data go (`ftl.rs`), or what follows for commands (`mod.rs`): both get
//! it as an [`Outcome`].
//= docs/reference/devices.md#22-sata-ssds

use super::Timing;
use super::timers::{NEVER, Timers, Turns};
use alloc::vec;
use alloc::vec::Vec;

/// No node.
const NIL: u32 = u32::MAX;

/// The most reads of a die that pass its programs while a command waits for those, or while one is suspended.
///
/// Reads have priority, yet no program may wait for ever. At 80 us each they take about as long as a program
/// does.
//= docs/reference/devices.md#22-sata-ssds
pub(super) const READS_IN_A_ROW: u32 = 16;

/// What the flash has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// A step that matters to this die only.
    Step,
    /// A page of a read is in the controller.
    Page { id: u32 },
    /// This many sectors of the write buffer are on the flash.
    Programmed { sectors: u32, epoch: u32 },
    /// A unit has left the SLC cache.
    Migrated,
}

/// Pages of one command on one die.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The sectors that the command wants.
    start: u64,
    end: u64,
    /// The next page of them on this die.
    lpn: u64,
    pages: u32,
    /// A command, or a fetch.
    id: u32,
    next: u32,
}

impl Run {
    /// How many sectors are wanted of the next page.
    #[allow(clippy::cast_possible_truncation, reason = "at most a page of 256 KiB")]
    fn first_page(&self, page: u64) -> u32 {
        let from = self.lpn * page;
        (self.end.min(from + page) - self.start.max(from)) as u32
    }
}

/// A unit on its way from the write buffer to a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) sectors: u32,
    pub(super) epoch: u32,
    pub(super) slc: bool,
    /// What garbage collection owes for it: units to move, blocks to erase.
    pub(super) moves: u32,
    pub(super) erases: u32,
    pub(super) next: u32,
}

/// A list of nodes, oldest first.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    head: u32,
    tail: u32,
}

/// What a die is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Nothing,
    /// Senses pages, then holds them until the last has moved.
    Read,
    /// Takes a unit in from the channel.
    Load {
        program: u32,
    },
    /// Programs it.
    Program {
        sectors: u32,
        epoch: u32,
    },
    /// Senses a unit that leaves for another place, or holds it until it has been to the controller and back.
    Fetch {
        migrates: bool,
    },
    Move,
    Erase,
    Migrate,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    doing: Doing,
    /// The pages it senses or holds.
    sensed: Run,
    /// A program, move or erase that waits for reads, and how long it still takes.
    suspended: Option<(Doing, u64)>,
    reads: Fifo,
    programs: Fifo,
    moves: u32,
    erases: u32,
    /// Reads in a row that passed a program.
    passed: u32,
    /// Its channel, and the next die in the queue for that.
    channel: u32,
    next: u32,
}

/// A bus and the dies that wait for it; the head is being served.
type Channel = Fifo;

/// All dies and channels of a drive.
#[derive(Clone, Debug)]
pub(super) struct Dies {
    t: Timing,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// When work ends: of dies that sense pages for a read, of dies that do anything else, of channels.
    senses: Turns,
    timers: Timers,
    transfers: Turns,
    /// The earliest of these times, kept by each call that changes one: it is read more often than that.
    next: u64,
    runs: Vec<Run>,
    free_runs: u32,
    programs: Vec<Program>,
    free_programs: u32,
    /// A command waits for programs.
    pub(super) pressed: bool,
    /// Units that idle dies may move out of the SLC cache, and those on their way.
    to_migrate: u64,
    migrating: u64,
    pub(super) suspends: u64,
}

const EMPTY: Fifo = Fifo { head: NIL, tail: NIL };

#[allow(
    clippy::cast_possible_truncation,
    reason = "indices are bounded by the parameters: 1024 dies, 2^20 nodes"
)]
impl Dies {
    /// Makes dies for at most `reads` reads at once, and `units` units in the write buffer.
    pub(super) fn new(t: &Timing, reads: usize, units: usize) -> Self {
        let (dies, channels) = (t.dies as usize, t.channels as usize);
        let die = |i: usize| Die {
            doing: Doing::Nothing,
            sensed: Run { start: 0, end: 0, lpn: 0, pages: 0, id: 0, next: NIL },
            suspended: None,
            reads: EMPTY,
            programs: EMPTY,
            moves: 0,
            erases: 0,
            passed: 0,
            channel: (i % channels) as u32,
            next: NIL,
        };
        let runs = reads * dies;
        let link = |i: usize, n: usize| if i + 1 < n { i as u32 + 1 } else { NIL };
        let run = |i| Run { start: 0, end: 0, lpn: 0, pages: 0, id: 0, next: link(i, runs) };
        let program =
            |i| Program { sectors: 0, epoch: 0, slc: false, moves: 0, erases: 0, next: link(i, units) };
        Self {
            t: *t,
            dies: (0..dies).map(die).collect(),
            channels: vec![EMPTY; channels],
            senses: Turns::new(dies),
            timers: Timers::new(dies),
            transfers: Turns::new(channels),
            next: NEVER,
            runs: (0..runs).map(run).collect(),
            free_runs: 0,
            programs: (0..units).map(program).collect(),
            free_programs: 0,
            pressed: false,
            to_migrate: 0,
            migrating: 0,
            suspends: 0,
        }
    }

    /// When something happens here next.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Finds the earliest time again, at the end of a call that may have changed it.
    #[inline]
    fn find_next(&mut self) {
        self.next = self.next_die().min(self.transfers.next().0);
    }

    /// When the next die ends what it does.
    #[inline]
    fn next_die(&self) -> u64 {
        self.senses.next().0.min(self.timers.next().0)
    }

    /// Not later than the next command ends for what happens here: `sensed` is the least that passes from a
    /// page's having been sensed to that, and `moved` from its having crossed the channel. Programs are
    /// looked at if a command waits for them.
    #[inline]
    pub(super) fn soonest(&self, sensed: u64, moved: u64) -> u64 {
        let program = self.t.prog.min(self.t.prog_slc);
        let (sensed, moved) = if self.pressed { (0, moved.min(program)) } else { (sensed, moved) };
        let (die, channel) = (self.next_die(), self.transfers.next().0);
        die.saturating_add(sensed).min(channel.saturating_add(moved))
    }

    /// Queues the pages of `[start, end)` on their dies. Returns how many there are.
    pub(super) fn read(&mut self, now: u64, id: u32, start: u64, end: u64) -> u32 {
        let (first, last) = (self.t.page_of(start), self.t.page_of(end - 1));
        let (pages, dies) = (last - first + 1, u64::from(self.t.dies));
        if pages == 1 {
            let run = Run { start, end, lpn: first, pages: 1, id, next: NIL };
            self.queue_run(now, self.t.die_of(first), run);
            self.find_next();
            return 1;
        }
        for i in 0..pages.min(dies) {
            let lpn = first + i;
            let on_die = (pages - i).div_ceil(dies) as u32;
            let run = Run { start, end, lpn, pages: on_die, id, next: NIL };
            self.queue_run(now, self.t.die_of(lpn), run);
        }
        self.find_next();
        pages as u32
    }

    fn queue_run(&mut self, now: u64, die: usize, run: Run) {
        let node = self.free_runs;
        self.free_runs = self.runs[node as usize].next;
        self.runs[node as usize] = run;
        let reads = &mut self.dies[die].reads;
        if reads.head == NIL {
            reads.head = node;
        } else {
            self.runs[reads.tail as usize].next = node;
        }
        reads.tail = node;
        match self.dies[die].doing {
            Doing::Nothing => self.start(now, die),
            Doing::Program { .. } | Doing::Move | Doing::Erase | Doing::Migrate => self.suspend(now, die),
            Doing::Read | Doing::Load { .. } | Doing::Fetch { .. } => {}
        }
    }

    /// Queues a unit on a die.
    pub(super) fn program(&mut self, now: u64, die: usize, program: Program) {
        let node = self.free_programs;
        self.free_programs = self.programs[node as usize].next;
        self.programs[node as usize] = Program { next: NIL, ..program };
        let programs = &mut self.dies[die].programs;
        if programs.head == NIL {
            programs.head = node;
        } else {
            self.programs[programs.tail as usize].next = node;
        }
        programs.tail = node;
        if self.dies[die].doing == Doing::Nothing {
            self.start(now, die);
        }
        self.find_next();
    }

    /// Idle dies empty the SLC cache, which has `units` units; an empty one they leave alone.
    pub(super) fn migrate(&mut self, now: u64, units: u64) {
        self.to_migrate = units.saturating_sub(self.migrating);
        if self.to_migrate == 0 {
            return;
        }
        for die in 0..self.dies.len() {
            if self.dies[die].doing == Doing::Nothing {
                self.start(now, die);
            }
        }
        self.find_next();
    }

    /// Lets a read in before what the die is at, if the drive can.
    fn suspend(&mut self, now: u64, die: usize) {
        let d = &mut self.dies[die];
        if self.t.suspend == 0 || d.passed >= READS_IN_A_ROW {
            return;
        }
        d.suspended = Some((d.doing, self.timers.get(die) - now));
        self.timers.set(die, NEVER);
        d.passed += 1;
        self.suspends += 1;
        self.start_read(now + self.t.suspend, die);
    }

    /// Starts what a free die does next. Its timer does not run.
    fn start(&mut self, now: u64, die: usize) {
        let d = &mut self.dies[die];
        let bounded = d.suspended.is_some() || (self.pressed && d.programs.head != NIL);
        if d.reads.head != NIL && !(bounded && d.passed >= READS_IN_A_ROW) {
            d.passed += u32::from(bounded);
            return self.start_read(now, die);
        }
        let (doing, time) = if let Some((doing, left)) = d.suspended.take() {
            (doing, left)
        } else if d.erases > 0 {
            d.erases -= 1;
            (Doing::Erase, self.t.erase)
        } else if d.moves > 0 {
            d.moves -= 1;
            relocation(&self.t, false)
        } else if d.programs.head != NIL {
            d.passed = 0;
            let program = d.programs.head;
            d.programs.head = self.programs[program as usize].next;
            d.doing = Doing::Load { program };
            return self.join_channel(now, die);
        } else if self.to_migrate > 0 {
            self.to_migrate -= 1;
            self.migrating += 1;
            relocation(&self.t, true)
        } else {
            d.doing = Doing::Nothing;
            d.passed = 0;
            return;
        };
        d.doing = doing;
        self.timers.set(die, now + time);
    }

    /// Units that leave the SLC cache in gaps.
    pub(super) fn migrating(&self) -> u64 {
        self.migrating
    }

    /// Stops emptying the SLC cache when `units` units are left.
    pub(super) fn hold_back(&mut self, units: u64) {
        self.to_migrate = self.to_migrate.min(units.saturating_sub(self.migrating));
    }

    /// Senses the oldest read's next pages: as many as the planes do at once.
    fn start_read(&mut self, now: u64, die: usize) {
        let node = self.dies[die].reads.head;
        let run = &mut self.runs[node as usize];
        let (planes, dies) = (u64::from(self.t.planes), u64::from(self.t.dies));
        let mut sensed = Run { pages: 0, ..*run };
        loop {
            run.lpn += dies;
            run.pages -= 1;
            sensed.pages += 1;
            if run.pages == 0 || planes == 1 || (run.lpn / dies).is_multiple_of(planes) {
                break;
            }
        }
        if run.pages == 0 {
            self.dies[die].reads.head = run.next;
            run.next = self.free_runs;
            self.free_runs = node;
        }
        (self.dies[die].doing, self.dies[die].sensed) = (Doing::Read, sensed);
        self.senses.push(now + self.t.read, die as u32);
    }

    /// The die waits for its channel, behind those whose data were ready before.
    //= docs/reference/devices.md#22-sata-ssds
    fn join_channel(&mut self, now: u64, die: usize) {
        self.dies[die].next = NIL;
        let k = self.dies[die].channel as usize;
        let channel = &mut self.channels[k];
        if channel.head == NIL {
            *channel = Fifo { head: die as u32, tail: die as u32 };
            self.start_transfer(now, k);
        } else {
            self.dies[channel.tail as usize].next = die as u32;
            channel.tail = die as u32;
        }
    }

    fn start_transfer(&mut self, now: u64, k: usize) {
        let die = &self.dies[self.channels[k].head as usize];
        let sectors = match die.doing {
            Doing::Read => die.sensed.first_page(self.t.page),
            Doing::Load { program } => self.programs[program as usize].sectors,
            // Out, checked, and in again.
            Doing::Fetch { .. } => 2 * (self.t.page as u32) * self.t.planes,
            other => unreachable!("{other:?} moves no data"),
        };
        self.transfers.push(now + self.t.channel(sectors), k as u32);
    }

    /// The next thing that happens, which must be due.
    pub(super) fn step(&mut self) -> Outcome {
        let (sense, die, channel) = (self.senses.next(), self.timers.next(), self.transfers.next());
        let outcome = if channel.0 < sense.0.min(die.0) {
            self.end_transfer(channel.0, channel.1)
        } else if sense < die {
            self.senses.pop();
            self.join_channel(sense.0, sense.1);
            Outcome::Step
        } else {
            self.end_operation(die.0, die.1)
        };
        self.find_next();
        outcome
    }

    fn end_operation(&mut self, now: u64, die: usize) -> Outcome {
        self.timers.set(die, NEVER);
        let outcome = match self.dies[die].doing {
            Doing::Fetch { .. } => {
                self.join_channel(now, die);
                return Outcome::Step;
            }
            Doing::Program { sectors, epoch } => Outcome::Programmed { sectors, epoch },
            Doing::Migrate => {
                self.migrating -= 1;
                Outcome::Migrated
            }
            Doing::Move | Doing::Erase => Outcome::Step,
            Doing::Nothing | Doing::Read | Doing::Load { .. } => unreachable!("no timer runs then"),
        };
        self.dies[die].passed = 0;
        self.dies[die].doing = Doing::Nothing;
        self.start(now, die);
        outcome
    }

    fn end_transfer(&mut self, now: u64, k: usize) -> Outcome {
        let die = self.channels[k].head as usize;
        let next = self.dies[die].next;
        self.channels[k].head = next;
        self.transfers.pop();
        if next != NIL {
            self.start_transfer(now, k);
        }
        match self.dies[die].doing {
            Doing::Read => {
                let sensed = &mut self.dies[die].sensed;
                let id = sensed.id;
                sensed.pages -= 1;
                if sensed.pages == 0 {
                    self.start(now, die);
                } else {
                    // The next plane's page; other dies come in between.
                    sensed.lpn += u64::from(self.t.dies);
                    self.join_channel(now, die);
                }
                Outcome::Page { id }
            }
            Doing::Load { program } => {
                self.begin_program(now, die, program);
                Outcome::Step
            }
            Doing::Fetch { migrates } => {
                self.dies[die].doing = if migrates { Doing::Migrate } else { Doing::Move };
                self.timers.set(die, now + self.t.prog);
                // A read that came while the unit was moved.
                if self.dies[die].reads.head != NIL {
                    self.suspend(now, die);
                }
                Outcome::Step
            }
            other => unreachable!("{other:?} moves no data"),
        }
    }

    /// The unit is in the die's registers.
    fn begin_program(&mut self, now: u64, die: usize, node: u32) {
        let p = self.programs[node as usize];
        self.programs[node as usize].next = self.free_programs;
        self.free_programs = node;
        let d = &mut self.dies[die];
        d.doing = Doing::Program { sectors: p.sectors, epoch: p.epoch };
        d.moves += p.moves;
        d.erases += p.erases;
        self.timers.set(die, now + if p.slc { self.t.prog_slc } else { self.t.prog });
        // A read that came while the unit was loaded.
        if self.dies[die].reads.head != NIL {
            self.suspend(now, die);
        }
    }
}

/// Moving a unit: all of it inside the die, or its first part.
fn relocation(t: &Timing, migrates: bool) -> (Doing, u64) {
    match (t.copy_back, migrates) {
        (false, _) => (Doing::Fetch { migrates }, t.read),
        (true, false) => (Doing::Move, t.read + t.prog),
        (true, true) => (Doing::Migrate, t.read + t.prog),
    }
}

#[cfg(test)]
impl Dies {
    /// What must hold at any time.
    pub(super) fn check(&self) {
        assert_eq!(self.next, self.next_die().min(self.transfers.next().0), "when something happens next");
        for (i, d) in self.dies.iter().enumerate() {
            let waits = d.reads.head != NIL || d.programs.head != NIL || d.suspended.is_some();
            assert!(d.doing != Doing::Nothing || !(waits || d.moves + d.erases > 0), "die {i} is lazy");
            let queued = self.queue(i % self.channels.len()).filter(|&q| q == i).count();
            let timed = self.timers.get(i) != NEVER || self.senses.has(i);
            assert_eq!(usize::from(d.doing != Doing::Nothing), queued + usize::from(timed), "die {i}: {d:?}");
            assert!(d.passed <= READS_IN_A_ROW);
        }
        for (k, channel) in self.channels.iter().enumerate() {
            let timed = self.transfers.has(k);
            assert_eq!(timed, channel.head != NIL, "channel {k} works while a die waits for it");
        }
    }

    /// The dies that wait for a channel.
    fn queue(&self, k: usize) -> impl Iterator<Item = usize> {
        let die = |d: u32| (d != NIL).then_some(d as usize);
        core::iter::successors(die(self.channels[k].head), move |&d| die(self.dies[d].next))
    }
}
