//! Clients, and what they ask: from a bio that is handed in to its answer.

use super::RequestQueue;
use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Op, Origin};
use crate::client_lanes::Lanes;
use crate::lane_id::LaneId;
use fairhead_core::units::{Instant, Sector, Sectors};
use std::collections::BTreeMap;

/// The client of the bios for which limits let flushes pass: it hears nothing.
pub(super) const NO_CLIENT: ClientId = ClientId { slot: 0, serial: 0 };

#[derive(Debug)]
pub(super) struct Pending<D> {
    pub(super) bio: Bio,
    pub(super) client: ClientId,
    pub(super) serial: u64,
    pub(super) came: Instant,
    pub(super) data: Option<D>,
    /// The bytes that have been cut off and given to the elevator.
    pub(super) placed: u32,
    /// The pieces that are in the elevator or at the disk.
    pub(super) open: u32,
    pub(super) result: Result<(), Errno>,
    pub(super) is_answered: bool,
    /// Answered, while it may still change something.
    pub(super) is_orphan: bool,
}

impl<D> Pending<D> {
    pub(super) const fn new(bio: Bio, client: ClientId, serial: u64, came: Instant, data: Option<D>) -> Self {
        Self {
            bio,
            client,
            serial,
            came,
            data,
            placed: 0,
            open: 0,
            result: Ok(()),
            is_answered: false,
            is_orphan: false,
        }
    }

    pub(super) fn answer(&self, data: Option<D>) -> Answer<D> {
        let origin = Origin { group: self.bio.group, op: self.bio.op, came: self.came };
        Answer {
            client: self.client,
            cookie: self.bio.cookie,
            result: self.result,
            origin: Some(origin),
            data,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) serial: u64,
    pub(super) bios: u32,
    pub(super) bytes: u64,
    /// Flushes among its bios.
    pub(super) flushes: u32,
    /// Bios of which something has no tag yet.
    pub(super) unplaced: Lanes,
    /// Behind its last bio on the disk.
    pub(super) at: Sector,
    /// Failed flushes that it has heard of, by file.
    pub(super) heard: BTreeMap<FileId, u64>,
    /// Whether it is in line for tags.
    pub(super) is_in_line: bool,
    /// Goes when the last bio is answered; or is gone, and hears nothing any more.
    pub(super) is_leaving: bool,
    pub(super) is_gone: bool,
}

impl<D> RequestQueue<D> {
    /// Adds a client. Returns its id, for all calls about it.
    pub fn join(&mut self) -> ClientId {
        self.serial += 1;
        let slot = self.clients.insert(Client { serial: self.serial, ..Client::default() });
        ClientId { slot, serial: self.serial }
    }

    /// Removes a client: its bios are taken back, and nothing of it is answered any more. A client that has
    /// left already is ignored.
    pub fn leave(&mut self, now: Instant, client: ClientId) {
        let Some(c) = self.client(client) else { return };
        c.is_gone = true;
        let bios: Vec<BioId> = (self.bios.iter())
            .filter(|(_, p)| p.client == client)
            .map(|(slot, p)| BioId { slot, serial: p.serial })
            .collect();
        for bio in bios {
            self.cancel(now, bio);
        }
        self.leave_flushes(now, client);
        self.drop_if_done(client.slot);
    }

    /// A client asks for nothing more, and goes when it has its last answer.
    pub fn depart(&mut self, client: ClientId) {
        let Some(c) = self.client(client) else { return };
        c.is_leaving = true;
        self.drop_if_done(client.slot);
    }

    pub(super) fn client(&mut self, client: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial && !c.is_gone)
    }

    pub(super) fn drop_if_done(&mut self, slot: usize) {
        let Some(c) = self.clients.get(slot) else { return };
        if (c.is_gone || c.is_leaving) && c.bios == 0 && !c.is_in_line {
            self.clients.remove(slot);
        }
    }

    /// Whether the client may submit another bio of `len` bytes now. A bio beyond that is not refused; the
    /// front that reads from the client has to stop.
    #[must_use]
    pub fn has_room(&self, client: ClientId, len: u32) -> bool {
        self.clients.get(client.slot).is_some_and(|c| {
            let bytes = c.bytes + u64::from(len);
            c.bios == 0 || c.bios < self.settings.client_bios_max && bytes <= self.settings.client_bytes_max
        })
    }

    /// A client asks for something. Of one that is gone, nothing becomes of it.
    ///
    /// # Panics
    /// If the bio is empty, or reaches beyond the last byte that there can be, or is a flush: a front sees to
    /// that.
    pub fn submit(&mut self, now: Instant, client: ClientId, bio: Bio, data: Option<D>) -> BioId {
        assert!(bio.op != Op::Flush, "flushes have a call of their own");
        assert!(bio.len > 0 && bio.offset.checked_add(u64::from(bio.len)).is_some(), "{bio:?}");
        self.serial += 1;
        let serial = self.serial;
        let Some(c) = self.client(client) else { return BioId { slot: usize::MAX, serial } };
        c.bios += 1;
        c.bytes += u64::from(bio.len);
        c.at = bio.sector + Sectors(bio.len.div_ceil(512));
        // Before placing: this may be the bio that the disk is kept for.
        self.awaiting.asked(now, bio.task);
        if self.bios.is_empty() {
            self.crowd = self.crowd.saturating_sub(1);
        }
        self.flushes.shares().see(now);
        self.flushes.shares().came(bio.group);
        let slot = self.bios.insert(Pending::new(bio, client, serial, now, data));
        // A write that was given up may still change these bytes, so no answer would be right but an error.
        if self.at_disk.may_change(&bio) {
            self.bios[slot].placed = bio.len;
            self.bios[slot].result = Err(Errno::TIMEDOUT);
            self.finish_bio(slot);
        } else {
            self.clients[client.slot].unplaced.push(LaneId::of(&bio), slot);
            self.line_up(client.slot);
            self.place(now);
        }
        BioId { slot, serial }
    }

    /// Takes a bio back: it is answered at once with [`Errno::INTR`], unless it is done. Returns whether it
    /// was not.
    pub fn cancel(&mut self, now: Instant, bio: BioId) -> bool {
        let Some(p) = self.bios.get_mut(bio.slot).filter(|p| p.serial == bio.serial && !p.is_answered) else {
            return false;
        };
        if p.placed < p.bio.len {
            // No further piece is cut; those that are in the elevator already come back empty when it issues
            // them.
            p.placed = p.bio.len;
            let ticket = self.clients[p.client.slot].unplaced.remove(LaneId::of(&p.bio), bio.slot);
            ticket.into_iter().for_each(|t| self.stalled.leave(t));
        }
        p.result = Err(Errno::INTR);
        self.answer_early(bio.slot);
        // A write at the disk may still take effect, so later bios that overlap it wait (`is_behind`).
        self.orphan(bio.slot);
        if self.bios[bio.slot].open == 0 {
            self.finish_bio(bio.slot);
        }
        self.place(now);
        true
    }

    /// Takes the next answer, for the front to pass on to its client.
    pub fn answer(&mut self) -> Option<Answer<D>> {
        self.answers.pop_front()
    }

    pub(super) fn answer_early(&mut self, slot: usize) {
        let p = &mut self.bios[slot];
        if !std::mem::replace(&mut p.is_answered, true) {
            let answer = p.answer(None);
            self.push_answer(answer);
        }
    }

    pub(super) fn orphan(&mut self, slot: usize) {
        let p = &mut self.bios[slot];
        if p.bio.op.changes() && !std::mem::replace(&mut p.is_orphan, true) {
            self.orphans += 1;
        }
    }

    pub(super) fn push_answer(&mut self, answer: Answer<D>) {
        if answer.client != NO_CLIENT && self.client(answer.client).is_some() {
            self.answers.push_back(answer);
        }
    }

    /// All of it is done: answered, if it is not yet, and forgotten.
    pub(super) fn finish_bio(&mut self, slot: usize) {
        let mut p = self.bios.remove(slot);
        self.orphans -= u32::from(p.is_orphan);
        if p.bio.op != Op::Flush {
            self.flushes.shares().went(p.bio.group);
        }
        let c = &mut self.clients[p.client.slot];
        c.bios -= 1;
        c.bytes -= u64::from(p.bio.len);
        if !p.is_answered {
            let data = p.data.take();
            self.push_answer(p.answer(data));
        }
        self.drop_if_done(p.client.slot);
    }
}
