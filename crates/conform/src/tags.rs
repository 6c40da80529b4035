//! Which of our requests is which of the kernel's: the log names them by direction and first sector.

use super::line::Io;
use fairhead_core::{End, Insert, Op, Request, Requests, Sector, Tag};
use std::collections::BTreeMap;

/// Direction and first sector.
type Key = (bool, Sector);

/// The requests that are known, by tag and by place.
pub(super) struct Tags {
    free: Vec<Tag>,
    queued: BTreeMap<Key, Tag>,
    /// At the device, or sent by ours ahead of the kernel.
    issued: BTreeMap<Key, Tag>,
    places: Vec<Request>,
}

impl Tags {
    /// Makes a set of `tags` free tags.
    pub(super) fn new(tags: u16) -> Self {
        let nothing = Request::read(fairhead_core::TaskId(0), Sector(0), fairhead_core::Sectors(1));
        Self {
            free: (0..tags).rev().map(Tag).collect(),
            queued: BTreeMap::new(),
            issued: BTreeMap::new(),
            places: vec![nothing; usize::from(tags)],
        }
    }

    /// A tag for a newcomer.
    pub(super) fn claim(&mut self) -> Option<Tag> {
        self.free.pop()
    }

    /// What became of it.
    pub(super) fn inserted(&mut self, tag: Tag, rq: Request, inserted: Insert, requests: &Requests) {
        match inserted {
            Insert::Queued => self.file(tag, rq),
            Insert::Merged { into, end } => {
                if end == End::Front {
                    let old = self.places[usize::from(into.0)];
                    self.queued.remove(&key(old.op, old.start));
                }
                // What was joined with it has left the queue.
                for gone in requests.carried(into).filter(|t| *t != tag) {
                    let old = self.places[usize::from(gone.0)];
                    self.queued.remove(&key(old.op, old.start));
                }
                self.file(into, requests[into].rq);
            }
        }
    }

    fn file(&mut self, tag: Tag, rq: Request) {
        self.places[usize::from(tag.0)] = rq;
        self.queued.insert(key(rq.op, rq.start), tag);
    }

    /// The request that waits and begins there.
    pub(super) fn queued(&self, io: &Io) -> Option<Tag> {
        self.queued.get(&key(io.op, io.start)).copied()
    }

    /// The request that waits and that `io` continues, or is continued by, and at which of its ends.
    pub(super) fn neighbour(&self, io: &Io) -> Option<(Tag, End)> {
        let is_write = io.op != Op::Read;
        let before =
            self.queued.range(..(is_write, io.start)).next_back().filter(|((w, _), _)| *w == is_write);
        let before =
            before.map(|(_, tag)| *tag).filter(|tag| self.places[usize::from(tag.0)].end() == io.start);
        let behind = || self.queued.get(&(is_write, io.end())).map(|tag| (*tag, End::Front));
        before.map(|tag| (tag, End::Back)).or_else(behind)
    }

    /// Has left for the device.
    pub(super) fn issued(&mut self, tag: Tag) {
        let rq = self.places[usize::from(tag.0)];
        let key = key(rq.op, rq.start);
        if self.queued.get(&key) == Some(&tag) {
            self.queued.remove(&key);
        }
        self.issued.insert(key, tag);
    }

    /// Which request the device has finished; `None` for those that it had before the log began.
    pub(super) fn completed(&mut self, io: &Io) -> Option<Tag> {
        self.issued.remove(&key(io.op, io.start))
    }

    /// These can be used again.
    pub(super) fn free(&mut self, tags: &[Tag]) {
        self.free.extend(tags);
    }
}

fn key(op: Op, start: Sector) -> Key {
    (op != Op::Read, start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::{Sectors, TaskId};

    fn io(start: u64, len: u32) -> Io {
        Io { op: Op::Read, sync: true, meta: false, start: Sector(start), len }
    }

    #[test]
    fn neighbours_touch() {
        let mut tags = Tags::new(16);
        let tag = tags.claim().unwrap();
        let rq = Request::read(TaskId(1), Sector(100), Sectors(8));
        tags.file(tag, rq);
        assert_eq!(tags.neighbour(&io(108, 8)), Some((tag, End::Back)));
        assert_eq!(tags.neighbour(&io(92, 8)), Some((tag, End::Front)));
        assert!(tags.neighbour(&io(109, 8)).is_none() && tags.neighbour(&io(91, 8)).is_none());
        assert_eq!(tags.neighbour(&Io { op: Op::Write, ..io(108, 8) }), None);
        assert_eq!(tags.queued(&io(100, 8)), Some(tag));
        tags.issued(tag);
        assert_eq!(tags.neighbour(&io(108, 8)), None);
        assert_eq!(tags.completed(&io(100, 8)), Some(tag));
        assert_eq!(tags.completed(&io(100, 8)), None);
    }
}
