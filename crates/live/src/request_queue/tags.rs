//! Tags: the turns in which clients get them, what stands in the way of a piece, and who is asked again when
//! that may have gone.

use super::RequestQueue;
use crate::at_disk::Piece;
use crate::bio::{BioId, Op};
use crate::causes::{Cause, RETRIES, Waiter};
use crate::lane_id::LaneId;
use fairhead_core::request::{self, Request};
use fairhead_core::units::{Duration, Id, Instant, Sectors, Tag};

const SECTOR: u64 = 512;

/// If there are more causes than are asked about at once, the others are asked about after this time, if
/// nothing else comes: rare enough to cost nothing, and soon for a disk.
const RETRY_AFTER: Duration = Duration::from_ms(1);

/// The outcome of a retry of those that wait for a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Retry {
    Placed,
    InVain,
    /// The first one waits for something else now, and the next one has not been asked.
    Moved,
}

impl<D> RequestQueue<D> {
    /// Gives tags to those who are in line for them.
    pub(super) fn place(&mut self, now: Instant) {
        while !self.free.is_empty() {
            let Some(client) = self.line.pop_front() else { return };
            let c = &mut self.clients[client];
            c.is_in_line = false;
            let Some((lane, slot, number)) = c.unplaced.next() else {
                // Its bios were taken back while it was in line.
                self.drop_if_done(client);
                continue;
            };
            let (piece, request) = self.cut(slot);
            let limit = Cause::Limit(request.group, request.op == request::Op::Read);
            // Others of its group wait for this limit: asked now, it could take the room that they wait for.
            if self.stalled.is_behind(limit, number) {
                self.turn_away((client, lane), number, (limit, None));
            } else if let Some(why) = self.obstacle(lane, &piece, &request) {
                self.turn_away((client, lane), number, why);
            } else {
                let (p, c) = (&mut self.bios[slot], &mut self.clients[client]);
                p.placed += piece.len;
                p.open += 1;
                if p.placed == p.bio.len {
                    c.unplaced.placed(lane)
                } else {
                    c.unplaced.goes_on(lane)
                }
                self.insert(now, piece, request);
            }
            // One piece for each turn, then behind the others: a client with many bios delays no other by
            // more than that.
            self.line_up(client);
        }
    }

    /// What stands in the way of a piece; and when that is gone at the latest, if it is known.
    fn obstacle(
        &mut self,
        lane: LaneId,
        piece: &Piece,
        request: &Request,
    ) -> Option<(Cause, Option<Instant>)> {
        self.questions += 1;
        // Order goes before limits: a bio behind a write that may still come needs no room yet.
        if self.is_behind(piece) {
            return Some((Cause::Behind(piece.bio.slot), None));
        }
        if self.elevator().has_room(request) {
            return self.obstacle_to_space(piece, request);
        }
        // A limit's end is known beforehand. That the scheduler has room shows only when it is asked again.
        let opens = self.elevator().room_at(request);
        let limit = Cause::Limit(request.group, request.op == request::Op::Read);
        Some((opens.map_or(Cause::Scheduler(lane), |_| limit), opens))
    }

    /// What stands in the way of a piece for which the elevator has room, if it takes or gives back space.
    fn obstacle_to_space(&mut self, piece: &Piece, request: &Request) -> Option<(Cause, Option<Instant>)> {
        if !piece.op.is_about_space() {
            return None;
        }
        let groups = self.elevators.elevator().groups();
        let open = self.flushes.shares().may_change_space(groups, request.group);
        open.err().map(|again| (Cause::Space(request.group), Some(again)))
    }

    /// Whether the disk still has a write of the same place that was given up or taken back.
    fn is_behind(&self, piece: &Piece) -> bool {
        self.orphans > 0 && self.at_disk.has(piece, |p| self.bios[p.bio.slot].is_orphan)
    }

    fn turn_away(&mut self, waiter: Waiter, number: Option<u64>, (cause, due): (Cause, Option<Instant>)) {
        let ticket = self.stalled.wait(cause, due, waiter, number);
        self.clients[waiter.0].unplaced.turned_away(waiter.1, ticket);
    }

    /// A client takes its place behind the others, if it has anything to ask.
    pub(super) fn line_up(&mut self, client: usize) {
        let c = &mut self.clients[client];
        if c.unplaced.has_ready() && !std::mem::replace(&mut c.is_in_line, true) {
            self.line.push_back(client);
        }
    }

    /// Something has changed; `done` is what the disk is done with, if it is that. Those that were turned
    /// away are asked about, by cause.
    pub(super) fn unstall(&mut self, now: Instant, done: Option<&Request>) {
        // Clients that were not turned away come first; they need no question by cause.
        self.place(now);
        if self.stalled.is_empty() {
            self.retry_at = None;
            return;
        }
        let mut is_all = true;
        // Limits whose time has come.
        while !self.free.is_empty()
            && let Some(cause) = self.stalled.due(now)
        {
            is_all &= self.ask_again(now, cause) != Retry::Moved;
            // One that is due and has no room all the same is asked about with the others.
            if self.stalled.due(now) == Some(cause) {
                self.stalled.set_due(cause, None);
                is_all = false;
            }
        }
        // The completion may have made room for its group, so that line is asked at once.
        if let Some(rq) = done {
            is_all &= self.ask_again(now, Cause::Limit(rq.group, rq.op == request::Op::Read)) != Retry::Moved;
        }
        // Then a bounded number of the others, in turn, so that a completion costs the same however many
        // wait.
        let mut in_vain = 0;
        while in_vain < RETRIES.min(self.stalled.len())
            && !self.free.is_empty()
            && let Some(cause) = self.stalled.next()
        {
            let outcome = self.ask_again(now, cause);
            in_vain += usize::from(outcome != Retry::Placed);
            is_all &= outcome != Retry::Moved;
        }
        is_all &= self.stalled.len() <= RETRIES;
        // What was left out is asked about a moment later, or it would wait for the next completion, which
        // may never come.
        self.retry_at = (!is_all).then_some(now + RETRY_AFTER);
    }

    /// Those that wait for this are placed, the first one first, as long as there is room.
    fn ask_again(&mut self, now: Instant, cause: Cause) -> Retry {
        let mut outcome = Retry::InVain;
        while !self.free.is_empty()
            && let Some((ticket, (client, lane))) = self.stalled.first(cause)
        {
            let slot = self.clients[client].unplaced.oldest(lane).expect("it waits");
            let (piece, request) = self.cut(slot);
            match self.obstacle(lane, &piece, &request) {
                Some((still, due)) if still == cause => {
                    self.stalled.set_due(cause, due);
                    return outcome;
                }
                Some(other) => {
                    // Its bio is another by now, or something else stands in the way of it.
                    self.stalled.leave(ticket);
                    self.turn_away((client, lane), Some(ticket.number), other);
                    return Retry::Moved;
                }
                None => {
                    self.stalled.leave(ticket);
                    self.clients[client].unplaced.retry(lane);
                    self.line_up(client);
                    self.place(now);
                    // Others in line may have taken its room; then it waits again, as the first one.
                    if self.stalled.first(cause).is_some_and(|(t, _)| t == ticket) {
                        return outcome;
                    }
                    outcome = Retry::Placed;
                }
            }
        }
        outcome
    }

    /// The next piece of a bio, and the request that it is.
    fn cut(&self, slot: usize) -> (Piece, Request) {
        let p = &self.bios[slot];
        let offset = p.bio.offset + u64::from(p.placed);
        let left = p.bio.len - p.placed;
        let len = match p.bio.op {
            // A question is asked once, wherever its bytes are: they are only what it costs.
            Op::Extents | Op::Flush => left,
            // The first piece ends where the others begin: at a multiple of their size.
            _ => {
                let size = self.settings.piece_bytes_max;
                left.min(size - (offset % u64::from(size)) as u32)
            }
        };
        let piece = Piece {
            bio: BioId { slot, serial: p.serial },
            op: p.bio.op,
            file: p.bio.file,
            offset,
            at: p.placed,
            len,
            fua: p.bio.fua,
            tag: Tag(0),
        };
        (piece, self.request_of(&piece))
    }

    /// What a piece is for the elevator.
    pub(super) fn request_of(&self, piece: &Piece) -> Request {
        let bio = &self.bios[piece.bio.slot].bio;
        let first = piece.offset / SECTOR - bio.offset / SECTOR;
        let sectors = (piece.offset % SECTOR + u64::from(piece.len)).div_ceil(SECTOR);
        Request {
            start: bio.sector + Sectors(u32::try_from(first).expect("a bio has less than 4 GiB")),
            len: Sectors(u32::try_from(sectors).expect("a piece is smaller")),
            op: match bio.op {
                Op::Read | Op::Extents => request::Op::Read,
                Op::Write | Op::Flush => request::Op::Write,
                Op::Discard | Op::Zero { .. } | Op::Allocate { .. } => request::Op::Discard,
            },
            sync: bio.sync || !bio.op.changes(),
            meta: false,
            no_idle: false,
            task: bio.task,
            group: bio.group,
            prio: bio.prio,
        }
    }

    fn insert(&mut self, now: Instant, piece: Piece, request: Request) {
        let tag = self.free.pop().expect("checked before");
        self.serial += 1;
        self.came[tag.index()] = self.serial;
        if piece.op.is_about_space() {
            self.flushes.shares().changes_space(request.group);
            self.about_space[tag.index()] = Some(request.group);
        }
        self.tags[tag.index()] = Some(Piece { tag, ..piece });
        self.elevators.insert(now, tag, request, stays_alone(&piece));
    }

    pub(super) fn free(&mut self, tag: Tag) {
        debug_assert!(self.tags[tag.index()].is_some(), "freed twice");
        self.tags[tag.index()] = None;
        if let Some(group) = self.about_space[tag.index()].take() {
            self.flushes.shares().changed_space(group);
        }
        self.free.push(tag);
    }
}

/// Whether a piece must not be merged: with a question, a read would be answered only when the question is,
/// which may take many calls; and a flush is no write.
pub(super) fn stays_alone(piece: &Piece) -> bool {
    matches!(piece.op, Op::Extents | Op::Flush)
}
