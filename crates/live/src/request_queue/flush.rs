//! Flushes, for the clients that ask for them: what a group's limits and weight let pass, and when; and who
//! hears of one that failed. Which flush covers whose writes is in `flushes.rs`.
//!
//! ```text
//!   flush() ─┬─ group with a limit on writes ─► gate: one bio for all its clients that wait for the file,
//!            │                                  in line with the group's writes, past the limit ─┐
//!            └──────────────────────────────────────────────────────────────────────────────────┴─►
//!   ─► next flush of the file ─► begins as soon as a group that waits for it may flush: flush_shares.rs
//! ```

use super::RequestQueue;
use super::bios::{NO_CLIENT, Pending};
use crate::at_disk::Piece;
use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Flush, Op};
use crate::flush_shares::{FlushShares, Running};
use crate::flushes::Flushes;
use crate::lane_id::LaneId;
use fairhead_core::units::{GroupId, Id, Instant, Tag};
use std::collections::BTreeMap;

/// What a flush is for limits.
const LEN: u32 = 512;

/// A client that waits for this many flushes has one that the next one adds nothing to.
const ENOUGH: u32 = 4;

/// A client that waits for a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) client: ClientId,
    cookie: u64,
    pub(super) group: GroupId,
}

/// Clients of one group that wait for its limits.
#[derive(Debug)]
struct Gate {
    bio: BioId,
    whom: Vec<Waiter>,
}

/// All flushes that are asked for.
#[derive(Debug)]
pub(super) struct AllFlushes {
    pub(super) of_files: Flushes<Waiter>,
    gates: BTreeMap<(FileId, GroupId), Gate>,
    shares: FlushShares,
    running: BTreeMap<FileId, Running>,
    /// When to ask again whether one may begin that pauses.
    pub(super) pauses_until: Option<Instant>,
}

impl AllFlushes {
    pub(super) fn new(groups: u32) -> Self {
        Self {
            of_files: Flushes::new(),
            gates: BTreeMap::new(),
            shares: FlushShares::new(groups),
            running: BTreeMap::new(),
            pauses_until: None,
        }
    }

    /// Those that wait for a flush.
    pub(super) fn all(&self) -> impl Iterator<Item = &Waiter> {
        self.of_files.all().chain(self.gates.values().flat_map(|g| &g.whom))
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.of_files.next_timer().into_iter().chain(self.pauses_until).min()
    }

    pub(super) const fn shares(&mut self) -> &mut FlushShares {
        &mut self.shares
    }

    /// Settings have changed: one that pauses may begin.
    pub(super) const fn ask_again(&mut self) {
        self.pauses_until = None;
    }
}

impl<D> RequestQueue<D> {
    /// A client wants stable what was answered before.
    pub fn flush(&mut self, now: Instant, client: ClientId, flush: Flush) {
        self.serial += 1;
        let Some(c) = self.client(client) else { return };
        c.bios += 1;
        c.flushes += 1;
        let Flush { file, group, cookie, .. } = flush;
        let who = Waiter { client, cookie, group };
        self.flushes.shares.see(now);
        self.flushes.shares.asks(group);
        let is_paid = self.flushes.of_files.waiting(file).iter().any(|w| w.group == group);
        if let Some(gate) = self.flushes.gates.get_mut(&(file, group)) {
            gate.whom.push(who);
        } else if is_paid || !self.limits_writes(group) {
            self.pass_limits(file, vec![who]);
        } else {
            let bio = self.wait_for_limits(now, client, flush);
            self.flushes.gates.insert((file, group), Gate { bio, whom: vec![who] });
            self.place(now);
        }
    }

    /// Whether another flush of this client has the disk do nothing: it waits for several already, and those
    /// that have not begun are done as one. It is work for the engine's thread alone.
    pub(crate) fn flushes_enough(&self, client: ClientId) -> bool {
        let c = self.clients.get(client.slot).filter(|c| c.serial == client.serial);
        c.is_some_and(|c| c.flushes >= ENOUGH)
    }

    /// Takes a flush back that waits for limits, and is answered with [`Errno::INTR`] then. Returns whether
    /// it did.
    pub fn cancel_flush(&mut self, now: Instant, client: ClientId, cookie: u64) -> bool {
        self.leave_gates(now, Err(Errno::INTR), |w| w.client == client && w.cookie == cookie)
    }

    /// How often a flush made its group pause, since the queue was made.
    #[must_use]
    pub const fn flush_pauses(&self) -> u64 {
        self.flushes.shares.pauses()
    }

    fn limits_writes(&self, group: GroupId) -> bool {
        let groups = self.elevator().groups();
        std::iter::successors(Some(groups.home(group)), |&g| groups.parent(g)).any(|g| {
            let max = groups.max(g);
            max.wbps.is_some() || max.wiops.is_some()
        })
    }

    /// A bio goes ahead that is to the elevator what limits count a flush as.
    fn wait_for_limits(&mut self, now: Instant, client: ClientId, flush: Flush) -> BioId {
        let Flush { file, task, group, prio, .. } = flush;
        let bio = Bio {
            op: Op::Flush,
            file,
            offset: 0,
            len: LEN,
            // Where the client is: to schedulers it does not go elsewhere.
            sector: self.clients[client.slot].at,
            fua: false,
            sync: true,
            task,
            group,
            prio,
            cookie: 0,
        };
        let serial = self.serial;
        let slot = self.bios.insert(Pending::new(bio, NO_CLIENT, serial, now, None));
        let c = &mut self.clients[NO_CLIENT.slot];
        c.bios += 1;
        c.bytes += u64::from(LEN);
        c.unplaced.push(LaneId::of(&bio), slot);
        self.line_up(NO_CLIENT.slot);
        BioId { slot, serial }
    }

    /// The piece under this tag, if it is what limits count a flush as.
    pub(super) fn flush_of(&self, tag: Tag) -> Option<Piece> {
        self.tags[tag.index()].filter(|p| p.op == Op::Flush)
    }

    /// The elevator lets a flush pass: for it, that takes no time.
    pub(super) fn issued_flush(&mut self, now: Instant, tag: Tag, piece: &Piece) {
        let request = self.elevator().requests()[tag].rq;
        let Bio { file, group, .. } = self.bios[piece.bio.slot].bio;
        self.leave_disk(now, self.elevators.era(), tag);
        self.drop_pieces(std::slice::from_ref(piece));
        // One that was taken back is no gate's any more.
        if self.flushes.gates.get(&(file, group)).is_some_and(|gate| gate.bio == piece.bio)
            && let Some(gate) = self.flushes.gates.remove(&(file, group))
        {
            self.pass_limits(file, gate.whom);
        }
        self.unstall(now, Some(&request));
    }

    /// Limits are no longer in the way of these.
    fn pass_limits(&mut self, file: FileId, whom: Vec<Waiter>) {
        self.flushes.ask_again();
        for who in whom {
            if let Err(who) = self.flushes.of_files.ask(file, who) {
                self.answer_flushes(file, vec![who], Err(Errno::TIMEDOUT));
            }
        }
    }

    /// The file whose flush begins now, if there is one.
    pub(super) fn begin_flush(&mut self, now: Instant) -> Option<FileId> {
        let AllFlushes { of_files, shares, running, pauses_until, .. } = &mut self.flushes;
        if pauses_until.is_some_and(|at| now < at) {
            return None;
        }
        *pauses_until = None;
        of_files.line().next()?;
        shares.see(now);
        let groups = self.elevators.elevator().groups();
        let mut asked = BTreeMap::new();
        let mut may_begin = |group| *asked.entry(group).or_insert_with(|| shares.may_begin(groups, group));
        let mut soonest: Option<Instant> = None;
        let file = of_files.line().find(|&file| {
            of_files.waiting(file).iter().any(|who| match may_begin(who.group) {
                Ok(()) => true,
                Err(at) => {
                    soonest = soonest.into_iter().chain([at]).min();
                    false
                }
            })
        });
        let Some(file) = file else {
            *pauses_until = soonest;
            return None;
        };
        let whom = of_files.begin_with(file, self.settings.timeout.map(|t| now + t));
        let groups = whom.iter().map(|w| w.group).collect();
        running.insert(file, shares.begins(groups));
        Some(file)
    }

    /// What it took is charged; for the time after that, others flush.
    fn flush_ended(&mut self, now: Instant, file: FileId) {
        let AllFlushes { shares, running, .. } = &mut self.flushes;
        shares.see(now);
        // One that was given up has ended then.
        if let Some(flush) = running.remove(&file) {
            shares.ended(self.elevators.elevator().groups(), &flush);
        }
        self.flushes.ask_again();
    }

    /// Data of the file could not be made stable. They may be any client's, so each client that is here gets
    /// the error once, with its next flush.
    pub fn sync_failed(&mut self, file: FileId, errno: Errno) {
        self.serial += 1;
        self.flushes.of_files.failed(file, self.serial, errno);
    }

    /// The file of this number is no more; the next one has nothing to do with it.
    pub fn forget(&mut self, file: FileId) {
        self.flushes.of_files.forget(file);
    }

    /// The file's flush is done.
    pub fn flushed(&mut self, now: Instant, file: FileId, result: Result<(), Errno>) {
        self.flush_ended(now, file);
        let whom = self.flushes.of_files.done(file, result.is_ok());
        if let Err(errno) = result {
            self.sync_failed(file, errno);
        }
        self.answer_flushes(file, whom, result);
    }

    /// Flushes that take too long are given up.
    pub(super) fn give_up_flushes(&mut self, now: Instant) {
        while let Some((file, whom)) = self.flushes.of_files.give_up(now) {
            self.flush_ended(now, file);
            self.answer_flushes(file, whom, Err(Errno::TIMEDOUT));
        }
    }

    /// A client that is gone waits for no limit any more.
    pub(super) fn leave_flushes(&mut self, now: Instant, client: ClientId) {
        self.leave_gates(now, Ok(()), |w| w.client == client);
    }

    /// Those waiters of gates get this answer, and a gate that nothing waits at is gone. Returns whether
    /// there were any.
    fn leave_gates(
        &mut self,
        now: Instant,
        result: Result<(), Errno>,
        is_one: impl Fn(&Waiter) -> bool,
    ) -> bool {
        let (mut gone, mut empty) = (Vec::new(), Vec::new());
        self.flushes.gates.retain(|&(file, _), gate| {
            gone.extend(gate.whom.extract_if(.., |w| is_one(w)).map(|w| (file, w)));
            if gate.whom.is_empty() {
                empty.push(gate.bio);
            }
            !gate.whom.is_empty()
        });
        let any = !gone.is_empty();
        for (file, who) in gone {
            self.answer_flushes(file, vec![who], result);
        }
        for bio in empty {
            self.cancel(now, bio);
        }
        any
    }

    fn answer_flushes(&mut self, file: FileId, whom: Vec<Waiter>, result: Result<(), Errno>) {
        for Waiter { client, cookie, group } in whom {
            self.flushes.shares.is_answered(group);
            // Of one that is gone the slot may be another's by now.
            let Some(c) = self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial) else {
                continue;
            };
            c.bios -= 1;
            c.flushes -= 1;
            // The kernel reports a failed write-back once, to one caller. Here each client that was connected
            // then gets it, once.
            let heard = c.heard.get(&file).copied().unwrap_or(c.serial);
            let missed = self.flushes.of_files.news(file, heard);
            if let Some((at, _)) = missed {
                c.heard.insert(file, at);
            }
            let result = result.and(missed.map_or(Ok(()), |(_, errno)| Err(errno)));
            self.push_answer(Answer { client, cookie, result, origin: None, data: None });
            self.drop_if_done(client.slot);
        }
    }

    /// Panics if anything is inconsistent.
    pub(super) fn check_flushes(&self) {
        for (&(file, group), gate) in &self.flushes.gates {
            assert!(!gate.whom.is_empty(), "{file:?} of {group:?}: a gate at which nothing waits");
            let bio = self.bios.get(gate.bio.slot).filter(|p| p.serial == gate.bio.serial);
            assert!(bio.is_some_and(|p| !p.is_answered), "{file:?} of {group:?}: a gate that never opens");
        }
        let running = self.flushes.running.len();
        assert_eq!(running, self.flushes.of_files.running(), "flushes at the device");
    }
}
