//! The front with a queue, and without a kernel or a disk.

use super::*;
use crate::fuse::protocol::DATA_MAX;
use crate::request_queue::Start;
use crate::stage;

/// A folder of files that have all bytes that are asked for. Each thread is in a cgroup of its own.
pub(super) struct Folder;

impl Tree for Folder {
    fn terms(&self) -> Terms {
        Terms { background_max: 0, data_max: DATA_MAX, flags: 0 }
    }
    fn place(&self, _: &Header, range: &Range) -> Result<Option<Place>, Errno> {
        let (sector, len) = (Sector(range.offset / 512), range.len);
        Ok(Some(Place { file: FileId(0), sector, len, answered: len, fua: false, has_shed: false }))
    }
    fn file(&self, _: u64, _: u64) -> Result<FileId, Errno> {
        Ok(FileId(0))
    }
    fn who(&self, context: &mut Context, header: &Header, _: bool) -> Who {
        // Threads of a program: their numbers are some thousands apart.
        let name = format!("job/{}", header.pid % 1000);
        let group = context.groups.of_caller(context.now, &mut context.queue, &name);
        Who { task: TaskId(header.pid), group, prio: IoPrio::default(), sync: true }
    }
    fn answer(&self, _: &Header, _: &str, _: &Operation<'_>) -> Option<Reply> {
        None
    }
}

pub(super) struct Stage {
    pub(super) front: FuseFront<Folder>,
    pub(super) context: Context,
}

impl Stage {
    pub(super) fn new() -> Self {
        let device = File::options().write(true).open("/dev/null").unwrap();
        let (ended, _) = mpsc::channel();
        let (channel, bell) = Channel::new(device).unwrap();
        let ways = (Arc::new(channel), bell);
        let front = FuseFront::new(ways, Arc::new(Folder), None, ended, &Pool::new(0), None);
        let context = stage::context("noop");
        Self { front, context }
    }

    /// The kernel asks for this, on behalf of a thread.
    fn ask(&mut self, unique: u64, pid: u32, operation: &Operation<'_>) {
        let header = Header { opcode: 0, unique, node: 2, uid: 0, gid: 0, pid, entry: None };
        let reply = self.front.answer_or_begin(&mut self.context, &header, operation, &[], 0);
        assert_eq!(reply, None, "it takes time");
    }

    /// The front gets the answer to a piece.
    fn answer(&mut self, unique: u64, result: Result<(), Errno>) {
        let client = self.context.queue.join();
        let answer = Answer { client, cookie: unique, result, origin: None, data: None };
        self.front.answer(&mut self.context, answer);
    }

    fn pass(&mut self, seconds: u64) {
        self.context.now = self.context.now + Duration::from_secs(seconds);
    }

    /// A group with a limit of `iops` reads and as many writes a second.
    pub(super) fn limited_group(&mut self, name: &str, iops: u64) -> GroupId {
        let Context { now, queue, groups, .. } = &mut self.context;
        let group = groups.of_caller(*now, queue, name);
        groups.keep(group);
        stage::limit(&mut self.context, group, iops);
        group
    }

    /// The disk does at once what the queue has, and the front hears of it.
    pub(super) fn serve(&mut self) {
        for answer in stage::serve(&mut self.context) {
            self.front.answer(&mut self.context, answer);
        }
    }

    /// The disk does what the queue has.
    fn work(&mut self) {
        while let Some(Start::Io(io)) = self.context.queue.next(self.context.now) {
            let results = vec![Ok(()); self.context.queue.pieces(io).len()];
            self.context.queue.finished(self.context.now, io, &results);
        }
    }
}

const COPY: Operation<'static> =
    Operation::CopyFileRange { from: (7, 0), to: (3, 8, 0), len: 1 << 30, flags: 0 };

#[test]
fn copies_hold_what_they_read_until_it_is_written() {
    let mut stage = Stage::new();
    let begun = (0..WAITING_MAX as u64).take_while(|&i| {
        let has_room = stage.front.has_room();
        if has_room {
            stage.ask(i, 1, &COPY);
        }
        has_room
    });
    let begun = begun.count() as u64;
    assert_eq!(begun * u64::from(DATA_MAX), HELD_MAX);
    (0..begun).for_each(|i| stage.answer(i, Ok(())));
    assert_eq!(stage.front.held, HELD_MAX, "what is read waits to be written");
    assert!(!stage.front.has_room());
    (0..begun).for_each(|i| stage.answer(i, Err(Errno::IO)));
    assert_eq!(stage.front.held, 0);
    assert_eq!(What::piece(Op::Allocate { mode: 0 }, DATA_MAX).held(), 0, "an allocation reads nothing");
}

#[test]
fn every_piece_of_a_copy_is_on_the_account_of_a_group_that_there_is() {
    let mut stage = Stage::new();
    stage.ask(1, 1, &COPY);
    for piece in 0..4 {
        stage.pass(100);
        stage.work();
        // The disk is done, and before the front hears of it, another caller comes.
        let read = Operation::Read { handle: 7, offset: 0, size: 4096 };
        stage.ask(100 + piece, 2, &read);
        let answer = stage.context.queue.answer().expect("the disk is done");
        assert_eq!(answer.cookie, 1);
        stage.front.answer(&mut stage.context, answer);
        let group = stage.context.groups.find("job/1").expect("the next piece is on its account");
        assert!(stage.context.queue.busy_groups().any(|busy| busy == group), "piece {piece}");
        stage.pass(1);
        stage.work();
        let answers = std::iter::from_fn(|| stage.context.queue.answer()).collect::<Vec<_>>();
        answers.into_iter().for_each(|answer| stage.front.answer(&mut stage.context, answer));
    }
}

#[test]
fn what_has_files_open_is_known_by_its_name() {
    let mut stage = Stage::new();
    let (heard, jobs) = mpsc::channel();
    let threads = NameThreads::start(move |job| drop(heard.send(job)), |_| ()).expect("a thread");
    stage.front.workers = Some(Arc::new(threads));
    // Far more cgroups than there are numbers: each is idle, and its number another one's, in the end.
    for i in 0..600_u32 {
        stage.pass(100);
        stage.ask(i.into(), i, &Operation::Open { flags: 0 });
        let job = jobs.recv().expect("another thread opens it");
        assert_eq!(job.opens_for, format!("job/{i}"));
    }
}
