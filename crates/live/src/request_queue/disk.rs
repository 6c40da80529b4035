//! What goes to the disk next, and what becomes of it: it is done, or it took too long.

use super::{RequestQueue, Start};
use crate::at_disk::{Io, IoId, Piece};
use crate::bio::{Bio, Errno};
use crate::lane_id::LaneId;
use fairhead_core::elevator::Dispatch;
use fairhead_core::request::Request;
use fairhead_core::units::{Id, Instant, Tag};

impl<D> RequestQueue<D> {
    /// Returns the next work for the disk; `None`: nothing for now. The answer may differ after the next call
    /// of any other kind, at the latest at [`Self::next_timer`].
    pub fn next(&mut self, now: Instant) -> Option<Start> {
        // Flushes go past the scheduler, as in the kernel
        // (docs/reference/elevators.md#18-barriers-and-flushes), but not past limits.
        if let Some(file) = self.begin_flush(now) {
            return Some(Start::Flush(file));
        }
        if self.awaiting.is_held(now) {
            return None;
        }
        while self.at_disk.count().0 < self.depth.now() {
            // An answer is a promise to obey, so it is asked for only with room at the disk.
            let Dispatch::Issue(tag) = self.elevators.dispatch(now) else { return None };
            if let Some(piece) = self.flush_of(tag) {
                self.issued_flush(now, tag, &piece);
                match self.begin_flush(now) {
                    Some(file) => return Some(Start::Flush(file)),
                    None => continue,
                }
            }
            let io = self.start(now, tag);
            if !self.at_disk[io].pieces.is_empty() {
                self.depth.issued(self.at_disk.count().0);
                return Some(Start::Io(io));
            }
            // All of its bios were taken back: it completes without the disk, and the room goes to the next.
            let io = self.at_disk.ends(io);
            self.leave_disk(now, io.era, io.tag);
            self.unstall(now, Some(&io.request));
        }
        None
    }

    fn start(&mut self, now: Instant, tag: Tag) -> IoId {
        let requests = self.elevator().requests();
        let request = requests[tag].rq;
        let tags = [tag].into_iter().chain(requests.carried(tag));
        let mut pieces: Vec<Piece> = tags.filter_map(|t| self.tags[t.index()]).collect();
        // Merged requests are adjacent on the disk; their pieces may be of several bios, in any order of
        // arrival.
        pieces.sort_unstable_by_key(|p| (p.file, p.offset));
        // What was taken back is not done; its tag comes back with the others.
        let cancelled: Vec<Piece> = pieces.extract_if(.., |p| self.bios[p.bio.slot].is_answered).collect();
        let era = self.elevators.era();
        let io = Io { tag, era, request, pieces, began: now, is_given_up: false };
        let id = self.at_disk.begins(io);
        self.drop_pieces(&cancelled);
        id
    }

    /// The pieces of an io, in order of file and offset.
    #[must_use]
    pub fn pieces(&self, io: IoId) -> &[Piece] {
        &self.at_disk[io].pieces
    }

    /// Whether the io was given up: no client waits for it any more.
    #[must_use]
    pub fn is_given_up(&self, io: IoId) -> bool {
        self.at_disk[io].is_given_up
    }

    /// The request that an io is for the scheduler: the whole, including bios that have been taken back.
    #[must_use]
    pub fn request(&self, io: IoId) -> &Request {
        &self.at_disk[io].request
    }

    /// The bio that a piece is of.
    #[must_use]
    pub fn bio(&self, piece: &Piece) -> &Bio {
        &self.bios[piece.bio.slot].bio
    }

    /// The data of a piece's bio, with which it was handed in or that the driver puts there.
    pub fn data(&mut self, piece: &Piece) -> &mut Option<D> {
        &mut self.bios[piece.bio.slot].data
    }

    /// The disk is done with an io; `results` are those of its pieces.
    ///
    /// # Panics
    /// If there are not as many results as pieces.
    pub fn finished(&mut self, now: Instant, io: IoId, results: &[Result<(), Errno>]) {
        self.flushes.shares().see(now);
        let io = self.at_disk.ends(io);
        assert_eq!(results.len(), io.pieces.len(), "a result for each piece");
        for (piece, result) in io.pieces.iter().zip(results) {
            let p = &mut self.bios[piece.bio.slot];
            p.result = p.result.and(*result);
        }
        // For the elevator and the depth it ended when it was given up.
        if !io.is_given_up {
            self.depth.took(now.saturating_since(io.began), self.at_disk.count().0);
            self.leave_disk(now, io.era, io.tag);
        }
        self.drop_pieces(&io.pieces);
        // The scheduler that issued it may have been replaced; the new one says nothing about its tasks.
        if io.era == self.elevators.era() && self.elevator().prefers(&io.request) {
            self.awaiting.answered(now, io.request.task);
        }
        self.unstall(now, Some(&io.request));
    }

    pub(super) fn drop_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let p = &mut self.bios[piece.bio.slot];
            p.open -= 1;
            if p.open == 0 && p.placed == p.bio.len {
                self.finish_bio(piece.bio.slot);
            }
        }
    }

    /// For the scheduler that issued it, the disk is done with it, and its tags are free.
    pub(super) fn leave_disk(&mut self, now: Instant, era: u64, tag: Tag) {
        let mut tags = std::mem::take(&mut self.freed);
        self.elevators.complete(now, era, tag, &mut tags);
        tags.drain(..).for_each(|tag| self.free(tag));
        self.freed = tags;
    }

    /// Time has come to [`Self::next_timer`], or any other.
    pub fn timer(&mut self, now: Instant) {
        self.flushes.shares().see(now);
        self.elevators.timer(now);
        while let Some(io) = self.at_disk.late(now) {
            self.give_up(now, io);
        }
        self.give_up_flushes(now);
        self.unstall(now, None);
    }

    fn give_up(&mut self, now: Instant, id: IoId) {
        self.at_disk.gives_up(id);
        let io = &self.at_disk[id];
        let (tag, era, pieces) = (io.tag, io.era, io.pieces.clone());
        // Its place goes to others at once; the io itself stays known until the kernel returns it, as its
        // memory is still in use.
        self.leave_disk(now, era, tag);
        for piece in pieces {
            let p = &mut self.bios[piece.bio.slot];
            p.result = Err(Errno::TIMEDOUT);
            self.answer_early(piece.bio.slot);
            self.orphan(piece.bio.slot);
        }
        self.give_up_what_waits_for_it();
    }

    /// What has no tag yet fails as it would if it came now.
    fn give_up_what_waits_for_it(&mut self) {
        let waiting = self.clients.iter().flat_map(|(_, c)| c.unplaced.bios());
        let doubtful: Vec<usize> =
            waiting.filter(|&slot| self.at_disk.may_change(&self.bios[slot].bio)).collect();
        for slot in doubtful {
            let p = &mut self.bios[slot];
            (p.placed, p.result) = (p.bio.len, Err(Errno::TIMEDOUT));
            let ticket = self.clients[p.client.slot].unplaced.remove(LaneId::of(&p.bio), slot);
            ticket.into_iter().for_each(|t| self.stalled.leave(t));
            if p.open == 0 {
                self.finish_bio(slot);
            }
        }
    }

    /// Returns when to call [`Self::timer`] at the latest.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        // Without a free tag a retry could place nothing; the next completion asks anyway.
        let retries = [self.retry_at, self.stalled.next_due()].into_iter().filter(|_| !self.free.is_empty());
        let timers = [self.elevators.next_timer(), self.at_disk.next_timer(), self.flushes.next_timer()];
        let timers = timers.into_iter().chain(retries).chain([self.awaiting.until()]);
        timers.flatten().min()
    }
}
