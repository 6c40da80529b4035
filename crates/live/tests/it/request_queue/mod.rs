//! The request queue against a disk made of vectors: time limits, depth, room and pieces; questions, and
//! bios that are taken back. Its parts: clients that wait ([`waiting`]), flushes ([`flushes`]), and drawn
//! loads ([`drawn`]).

mod drawn;
mod flushes;
mod waiting;

use fairhead_core::Limits;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_live::{
    Bio, BioId, ClientId, Errno, FileId, Flush, IoId, Op, RequestQueue, Settings, Start, recording,
};
use std::fmt::Write;

const BLOCK: u64 = 4096;
const TIMEOUT: Duration = Duration::from_secs(2);

/// A queue under noop, one io at a time, and a way to ask it.
struct Small {
    queue: RequestQueue<()>,
    now: Instant,
}

impl Small {
    fn new(tags: u16) -> Self {
        Self::with_depth(tags, 1)
    }

    fn with_depth(tags: u16, queue_depth: u16) -> Self {
        Self::with_scheduler("noop", tags, queue_depth)
    }

    /// Under noop, one io at a time, with some settings changed.
    fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let mut s = Self::new(16);
        let mut settings = Settings { limits: *s.queue.limits(), ..Settings::default() };
        change(&mut settings);
        s.queue = RequestQueue::new(settings, *s.queue.config()).unwrap();
        s
    }

    fn with_scheduler(name: &str, tags: u16, queue_depth: u16) -> Self {
        let limits = Limits { tags, queue_depth, merges: false, groups: 8, ..Limits::default() };
        let settings = Settings { limits, timeout: Some(TIMEOUT), ..Settings::default() };
        let config = (fairhead_core::sched::any::preset(name).unwrap().config)().live();
        Self { queue: RequestQueue::new(settings, config).unwrap(), now: Instant::EPOCH }
    }

    fn ask(&mut self, client: ClientId, op: Op, block: u64, cookie: u64) -> BioId {
        self.queue.submit(self.now, client, Self::bio(op, block, cookie), None)
    }

    fn bio(op: Op, block: u64, cookie: u64) -> Bio {
        Bio {
            op,
            file: FileId(0),
            offset: block * BLOCK,
            len: BLOCK as u32,
            sector: Sector(block * 8),
            fua: false,
            sync: true,
            task: TaskId(1),
            group: GroupId::ROOT,
            prio: IoPrio::default(),
            cookie,
        }
    }

    fn flush(&mut self, client: ClientId, file: u32, cookie: u64) {
        let (task, prio) = (TaskId(1), IoPrio::default());
        let flush = Flush { file: FileId(file), task, group: GroupId::ROOT, prio, cookie };
        self.queue.flush(self.now, client, flush);
    }

    fn start(&mut self) -> Option<IoId> {
        match self.queue.next(self.now) {
            Some(Start::Io(io)) => Some(io),
            Some(Start::Flush(_)) => panic!("no io"),
            None => None,
        }
    }

    fn finish(&mut self, io: IoId) {
        let results = vec![Ok(()); self.queue.pieces(io).len()];
        self.queue.finished(self.now, io, &results);
        self.queue.check();
    }

    fn heard(&mut self) -> Vec<(u64, Result<(), Errno>)> {
        std::iter::from_fn(|| self.queue.answer()).map(|a| (a.cookie, a.result)).collect()
    }
}

#[test]
fn a_stuck_write_is_given_up_alone_and_what_it_may_still_change_is_in_doubt() {
    let mut s = Small::new(16);
    let client = s.queue.join();
    s.ask(client, Op::Write, 5, 1);
    let stuck = s.start().unwrap();
    s.ask(client, Op::Read, 9, 2);
    assert_eq!(s.start(), None, "one at a time");
    s.now = s.now + TIMEOUT;
    assert_eq!(s.queue.next_timer(), Some(s.now));
    s.queue.timer(s.now);
    assert_eq!(s.heard(), [(1, Err(Errno::TIMEDOUT))]);
    let other = s.start().expect("its place is free");
    s.finish(other);
    s.ask(client, Op::Read, 5, 3);
    s.ask(client, Op::Write, 5, 4);
    s.ask(client, Op::Read, 6, 5);
    assert_eq!(s.heard(), [(2, Ok(())), (3, Err(Errno::TIMEDOUT)), (4, Err(Errno::TIMEDOUT))]);
    let beside = s.start().unwrap();
    s.finish(beside);
    s.finish(stuck);
    s.ask(client, Op::Read, 5, 6);
    let now_certain = s.start().unwrap();
    s.finish(now_certain);
    assert_eq!(
        s.heard(),
        [(5, Ok(())), (6, Ok(()))],
        "the late write is answered no more, and harms no other"
    );
    assert_eq!(s.queue.in_flight(), (0, 0));
}

#[test]
fn without_a_time_limit_clients_wait_for_as_long_as_it_takes() {
    let limits = Limits { tags: 16, queue_depth: 1, groups: 8, ..Limits::default() };
    let config = (fairhead_core::sched::any::preset("noop").unwrap().config)();
    let queue = RequestQueue::new(Settings { limits, ..Settings::default() }, config).unwrap();
    let mut s = Small { queue, now: Instant::EPOCH };
    let client = s.queue.join();
    s.ask(client, Op::Write, 5, 1);
    let slow = s.start().unwrap();
    s.flush(client, 0, 2);
    let Some(Start::Flush(file)) = s.queue.next(s.now) else { panic!("a flush does not wait for writes") };
    s.now = s.now + Duration::from_secs(3600);
    s.queue.timer(s.now);
    assert_eq!((s.heard(), s.queue.in_flight()), (vec![], (1, 0)));
    s.flush(client, 0, 3);
    s.queue.flushed(s.now, file, Ok(()));
    s.finish(slow);
    let Some(Start::Flush(file)) = s.queue.next(s.now) else { panic!("the next flush is due") };
    s.queue.flushed(s.now, file, Ok(()));
    assert_eq!(s.heard(), [(2, Ok(())), (1, Ok(())), (3, Ok(()))]);
}

#[test]
fn the_depth_can_be_changed_while_the_disk_is_busy() {
    let mut s = Small::with_depth(64, 4);
    let client = s.queue.join();
    for i in 0..20 {
        s.ask(client, Op::Read, i * 2, i);
    }
    let all = |s: &mut Small| -> Vec<IoId> { std::iter::from_fn(|| s.start()).collect() };
    let mut at_disk = all(&mut s);
    assert_eq!((at_disk.len(), s.queue.depth()), (4, (4, false)));
    s.queue.set_depth(Some(2)).unwrap();
    assert_eq!(s.start(), None, "what it has, it keeps");
    for left in [3, 2] {
        s.finish(at_disk.pop().unwrap());
        assert_eq!((s.start(), s.queue.in_flight().0), (None, left));
    }
    s.finish(at_disk.pop().unwrap());
    at_disk.extend(all(&mut s));
    assert_eq!(at_disk.len(), 2);
    s.queue.set_depth(Some(9)).unwrap();
    at_disk.extend(all(&mut s));
    assert_eq!(at_disk.len(), 9);
    for refused in [0, 1025, u16::MAX] {
        assert!(s.queue.set_depth(Some(refused)).is_err());
        assert_eq!(s.queue.depth(), (9, false));
    }
    s.queue.set_depth(None).unwrap();
    assert_eq!(s.queue.depth(), (4, false), "as it was");
}

#[test]
fn a_slow_disk_gets_fewer_at_a_time_and_a_fast_one_all() {
    let limits = Limits { tags: 64, queue_depth: 32, merges: false, rotational: false, ..Limits::default() };
    let settings = Settings { limits, adaptive_depth: true, ..Settings::default() };
    let config = (fairhead_core::sched::any::preset("noop").unwrap().config)();
    let mut s = Small { queue: RequestQueue::new(settings, config).unwrap(), now: Instant::EPOCH };
    let client = s.queue.join();
    // One at a time, `us` microseconds each; so each takes `depth` times as long.
    let load = |s: &mut Small, us: u64| {
        let mut at_disk = std::collections::VecDeque::new();
        for i in 0..4000 {
            s.ask(client, Op::Read, i * 2, i);
            while let Some(io) = s.start() {
                at_disk.push_back(io);
            }
            if i >= 40 {
                s.now = s.now + Duration::from_us(us);
                s.finish(at_disk.pop_front().unwrap());
            }
        }
        let depth = s.queue.depth();
        while let Some(io) = at_disk.pop_front().or_else(|| s.start()) {
            s.finish(io);
        }
        depth
    };
    assert_eq!(load(&mut s, 20), (32, true), "0.64 ms each");
    assert_eq!(load(&mut s, 100), (16, true), "3.2 ms each with 32, 1.6 ms with 16");
    assert_eq!(load(&mut s, 1000), (8, true));
    assert_eq!(load(&mut s, 20), (32, true));
}

#[test]
fn a_stuck_read_leaves_nothing_in_doubt() {
    let mut s = Small::new(16);
    let client = s.queue.join();
    s.ask(client, Op::Read, 5, 1);
    let stuck = s.start().unwrap();
    s.now = s.now + TIMEOUT;
    s.queue.timer(s.now);
    s.ask(client, Op::Write, 5, 2);
    let write = s.start().unwrap();
    s.finish(write);
    s.finish(stuck);
    assert_eq!(s.heard(), [(1, Err(Errno::TIMEDOUT)), (2, Ok(()))]);
}

#[test]
fn a_client_has_room_up_to_its_limits_and_always_for_one_bio() {
    let mut s = Small::with_settings(|settings| {
        (settings.client_bios_max, settings.client_bytes_max) = (3, 4 * BLOCK);
    });
    let (client, other) = (s.queue.join(), s.queue.join());
    assert!(s.queue.has_room(client, 9 * BLOCK as u32), "it has nothing here");
    s.ask(client, Op::Read, 1, 1);
    assert!(s.queue.has_room(client, 3 * BLOCK as u32), "4 blocks in all");
    assert!(!s.queue.has_room(client, 3 * BLOCK as u32 + 1), "4 blocks and a byte");
    s.ask(client, Op::Read, 3, 2);
    assert!(s.queue.has_room(client, 1), "the third bio");
    s.ask(client, Op::Read, 5, 3);
    assert!(!s.queue.has_room(client, 1), "the fourth bio");
    assert!(s.queue.has_room(other, BLOCK as u32), "each client has limits of its own");
    let io = s.start().unwrap();
    s.finish(io);
    assert!(s.queue.has_room(client, 2 * BLOCK as u32), "an answer gives back its bio and its bytes");
    assert!(!s.queue.has_room(client, 2 * BLOCK as u32 + 1));
}

#[test]
fn pieces_end_at_multiples_of_their_size_and_are_whole_sectors() {
    // Offset and length of a bio of sector 1000; of each piece: offset, offset in the bio, length; and of its
    // request, which covers each sector that the piece touches: start and length.
    let cut = |offset, len| {
        let mut s = Small::with_settings(|settings| settings.piece_bytes_max = 8192);
        let client = s.queue.join();
        let bio = Bio { offset, len, sector: Sector(1000), ..Small::bio(Op::Write, 0, 1) };
        s.queue.submit(s.now, client, bio, None);
        let mut pieces = Vec::new();
        while let Some(io) = s.start() {
            let (piece, rq) = (s.queue.pieces(io)[0], *s.queue.request(io));
            pieces.push((piece.offset, piece.at, piece.len, rq.start.0, rq.len.0));
            s.finish(io);
        }
        pieces
    };
    assert_eq!(cut(8192, 8192), [(8192, 0, 8192, 1000, 16)]);
    assert_eq!(
        cut(4096, 20480),
        [(4096, 0, 4096, 1000, 8), (8192, 4096, 8192, 1008, 16), (16384, 12288, 8192, 1024, 16)]
    );
    // From byte 488 of a sector on.
    assert_eq!(
        cut(1000, 20000),
        [(1000, 0, 7192, 1000, 15), (8192, 7192, 8192, 1015, 16), (16384, 15384, 4616, 1031, 10)]
    );
    assert_eq!(cut(1000, 10), [(1000, 0, 10, 1000, 1)]);
    assert_eq!(cut(1000, 25), [(1000, 0, 25, 1000, 2)], "the last byte is in the next sector");
}

#[test]
fn a_read_does_not_wait_for_a_question_beside_it() {
    let mut s = Small::with_settings(|settings| settings.limits.merges = true);
    s.queue.record();
    let client = s.queue.join();
    // The disk is busy, so that the others meet in the elevator.
    s.ask(client, Op::Read, 100, 100);
    let busy = s.start().unwrap();
    for (op, block) in [(Op::Extents, 0), (Op::Read, 1), (Op::Extents, 2), (Op::Read, 3), (Op::Read, 4)] {
        s.ask(client, op, block, block);
    }
    s.finish(busy);
    let mut answered = Vec::new();
    s.heard();
    while let Some(io) = s.start() {
        s.finish(io);
        answered.push(s.heard().into_iter().map(|h| h.0).collect::<Vec<_>>());
    }
    assert_eq!(answered, [vec![0], vec![1], vec![2], vec![3, 4]], "reads are merged with reads only");

    // A replay decides alike only if it knows which requests stay alone.
    let mut text = recording::Head(s.queue.limits()).to_string();
    s.queue.take_events().iter().for_each(|event| writeln!(text, "{event}").unwrap());
    assert_eq!(text.matches(" alone\n").count(), 2);
    let replayed = recording::replay(text.as_bytes(), &Catalogue::default()).unwrap();
    assert_eq!(replayed.differs, None);
}

#[test]
fn clients_take_turns_for_tags() {
    let mut s = Small::new(2);
    let (greedy, modest) = (s.queue.join(), s.queue.join());
    for cookie in 0..10 {
        s.ask(greedy, Op::Read, cookie * 2, cookie);
    }
    s.ask(modest, Op::Read, 100, 100);
    let mut order = Vec::new();
    while let Some(io) = s.start() {
        s.finish(io);
        order.extend(s.heard().into_iter().map(|h| h.0));
    }
    assert!(order.iter().position(|c| *c == 100).unwrap() <= 3, "{order:?}");
    assert_eq!(order.len(), 11);
}

#[test]
fn a_write_that_was_taken_back_at_the_disk_overtakes_nobody() {
    let mut s = Small::with_depth(16, 4);
    let (gone, next) = (s.queue.join(), s.queue.join());
    s.ask(gone, Op::Write, 5, 1);
    let late = s.start().unwrap();
    s.queue.leave(s.now, gone);
    s.ask(next, Op::Write, 5, 2);
    assert_eq!(s.start(), None, "the first write may still come");
    let other = s.queue.join();
    s.ask(other, Op::Write, 6, 3);
    let beside = s.start().expect("which has nothing to do with it");
    s.finish(beside);
    s.finish(late);
    let write = s.start().expect("now it is certain");
    s.finish(write);
    assert_eq!(s.heard(), [(3, Ok(())), (2, Ok(()))]);
}

#[test]
fn what_waits_for_a_write_that_is_then_given_up_fails_with_it() {
    let mut s = Small::with_depth(16, 4);
    let client = s.queue.join();
    let bio = s.ask(client, Op::Write, 5, 1);
    let stuck = s.start().unwrap();
    assert!(s.queue.cancel(s.now, bio));
    s.ask(client, Op::Read, 5, 2);
    s.ask(client, Op::Read, 7, 3);
    s.now = s.now + TIMEOUT;
    s.queue.timer(s.now);
    let beside = s.start().expect("the other one");
    s.finish(beside);
    s.finish(stuck);
    assert_eq!(s.heard(), [(1, Err(Errno::INTR)), (2, Err(Errno::TIMEDOUT)), (3, Ok(()))]);
    assert_eq!((s.start(), s.queue.in_flight()), (None, (0, 0)));
}

#[test]
fn who_departs_hears_the_rest_and_who_leaves_hears_nothing() {
    let mut s = Small::new(4);
    let (departs, leaves) = (s.queue.join(), s.queue.join());
    s.ask(departs, Op::Read, 1, 1);
    s.ask(leaves, Op::Write, 2, 2);
    s.flush(leaves, 0, 3);
    s.queue.depart(departs);
    s.queue.leave(s.now, leaves);
    s.ask(leaves, Op::Write, 3, 4);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.queue.flushed(s.now, FileId(0), Ok(()));
    let io = s.start().unwrap();
    s.finish(io);
    assert_eq!((s.start(), s.heard()), (None, vec![(1, Ok(()))]), "what was taken back is not done");
    let next = s.queue.join();
    s.ask(next, Op::Read, 1, 7);
    let io = s.start().unwrap();
    s.finish(io);
    assert_eq!(s.heard(), [(7, Ok(()))]);
}
