//! The conversation with the kernel, in the engine's thread: reads and writes become bios, everything else is
//! the [`Tree`]'s business.
//!
//! The device never blocks. The ring reads a request when there is one (`incoming.rs`), unless the queue has
//! no room; a reply is one write, as soon as the disk is done.
//!
//! An interrupt names the request of a caller that got a signal. If it is to end by that, its bio is taken
//! back, which is answered at once, whether the disk is at it or not, and so is the caller. If not (it has a
//! handler, or is stopped), it waits on, as at a disk, since no program expects `EINTR` from a file; and as
//! the kernel tells but the first signal, it is asked now and then whether it is to end by now.
//!
//! A copy from file to file, and an allocation, is a row of bios (`in_pieces.rs`), each asked for when the
//! one before is answered.
//!
//! What it does not do: anything about names and attributes.

pub(crate) use super::callers::Who;
use super::callers::is_ending;
use super::in_pieces::{LongRequest, Spot};
use super::incoming::Incoming;
use super::protocol::{self, HEADER, Header, Operation, Reply, Terms, WRITE_HEADER};
use super::range::Range;
use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Op};
use crate::buffer::{Buffer, Pool};
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::ring::{Outcome, Ring};
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

/// The most requests that wait for the disk, and the most bytes of writes and copies that they hold: far more
/// than the kernel's own limits for one mount let come, except for direct writes and copies of very many
/// threads.
const WAITING_MAX: usize = 4096;
const HELD_MAX: u64 = 256 << 20;

/// A request for another thread: its header, what is behind that, and the name of the group of a caller that
/// opens something. What is open outlives the group's number.
pub(crate) type Job = (Header, Vec<u8>, String);

/// How often requests are looked at whose callers got a signal that does not end them.
const LOOK_AFTER: Duration = Duration::from_ms(10);

/// The most requests that are read in one turn of the engine.
const BATCH: usize = 64;

/// `/dev/fuse`, to reply from any thread.
#[derive(Debug)]
pub(crate) struct Channel(File);

impl Channel {
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    /// Replies. A caller that is not there any more, or a mount, has no use for it, and that is all that can
    /// go wrong.
    pub(crate) fn reply(&self, unique: u64, result: Result<&[u8], Errno>) {
        let data = result.unwrap_or_default();
        let header = protocol::reply_header(unique, result.map(|_| ()), data.len());
        let _ = (&self.0).write_vectored(&[IoSlice::new(&header), IoSlice::new(data)]);
    }

    /// The kernel does not use what it remembers of a node's attributes any more. Call it before the reply
    /// to the request that has changed them.
    pub(crate) fn forget_attributes(&self, node: u64) {
        // The kernel may not know the node any more, which is as good.
        let _ = (&self.0).write(&protocol::stale_notice(node));
    }
}

/// Where a read or write goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) file: FileId,
    pub(crate) sector: Sector,
    /// The bytes that are asked of the disk, and those of them that are in the answer.
    pub(crate) len: u32,
    pub(crate) answered: u32,
    /// Answered when it is stable.
    pub(crate) fua: bool,
    /// Whether the file's mode has changed, of which the kernel does not know.
    pub(crate) has_shed: bool,
}

/// What is mounted.
pub(crate) trait Tree: Send + Sync + 'static {
    /// What it would agree upon with the kernel.
    fn terms(&self) -> Terms;
    /// Where this is; nothing is behind the end of a file for a read.
    fn place(&self, range: &Range) -> Result<Option<Place>, Errno>;
    /// The file that is flushed.
    fn file(&self, node: u64, handle: u64) -> Result<FileId, Errno>;
    /// The next flush of this file is of times and the like, too.
    fn sync_whole(&self, _: FileId) {}
    /// The task, group and priority of a request, and whether a program waits for it; `writes`: data are
    /// written.
    fn who(&self, _: &mut Context, header: &Header, _: bool) -> Who {
        Who { task: TaskId(header.pid), group: GroupId::ROOT, prio: IoPrio::default(), sync: true }
    }
    /// A handle is closed: these of its files are no more needed, once nothing is asked of them.
    fn release(&self, _: u64) -> Vec<FileId> {
        Vec::new()
    }
    /// Such a file can go.
    fn close(&self, _: FileId) {}
    /// The number of threads for operations that may block; 0 if none does.
    fn threads(&self) -> usize {
        0
    }
    /// Anything else; `None` is not answered. The group is that of a caller which opens something, by name.
    fn answer(&self, header: &Header, group: &str, operation: &Operation<'_>) -> Option<Reply>;
}

/// What waits for the disk.
#[derive(Clone, Copy, Debug)]
enum What {
    Read {
        answered: u32,
    },
    Write {
        answered: u32,
    },
    /// Any other bio.
    Change,
    /// A piece of a long request. It holds what it reads, as the next piece writes that.
    Piece {
        answered: u32,
        holds: u32,
    },
    Flush,
}

impl What {
    /// A piece of a long request that answers this number of bytes.
    fn piece(op: Op, answered: u32) -> Self {
        let holds = if matches!(op, Op::Read | Op::Write) { answered } else { 0 };
        Self::Piece { answered, holds }
    }

    /// The bytes that it holds for a write.
    fn held(self) -> u64 {
        match self {
            Self::Write { answered: held } | Self::Piece { holds: held, .. } => held.into(),
            Self::Read { .. } | Self::Change | Self::Flush => 0,
        }
    }
}

/// A request that waits for the disk.
#[derive(Clone, Copy, Debug)]
struct WaitingRequest {
    what: What,
    bio: Option<BioId>,
    /// The thread that waits for it.
    thread: u32,
}

/// See the [module](self).
pub(crate) struct FuseFront<T> {
    channel: Arc<Channel>,
    tree: Arc<T>,
    /// One for each group: what one group has too much of must not keep the others from the disk.
    clients: HashMap<GroupId, ClientId>,
    incoming: Incoming,
    /// By the number of the request.
    waiting: HashMap<u64, WaitingRequest>,
    /// Those of them that are done in pieces, with their headers. Each piece asks anew on whose account it
    /// is: a group that is not named goes.
    long: HashMap<u64, (Header, LongRequest)>,
    /// Those of them whose callers got a signal that does not end them, and when to look after these.
    disturbed: Vec<u64>,
    look_after: Option<Instant>,
    /// The bytes that these requests hold for writes.
    held: u64,
    /// Closed, and something may still be asked of them.
    leaving: Vec<FileId>,
    /// Where what may block goes.
    workers: Option<mpsc::Sender<Job>>,
    /// Dropped when the mount is gone, which ends [`Mount::wait`](super::Mount::wait).
    ended: Option<mpsc::Sender<()>>,
}

impl<T: Tree> FuseFront<T> {
    /// A front for what is mounted, with the threads that were [hired](Self::hire) for it.
    pub(crate) fn new(
        channel: Arc<Channel>,
        tree: Arc<T>,
        workers: Option<mpsc::Sender<Job>>,
        ended: mpsc::Sender<()>,
        pool: &Arc<Pool>,
    ) -> Self {
        Self {
            channel,
            tree,
            leaving: Vec::new(),
            workers,
            clients: HashMap::new(),
            incoming: Incoming::new(Arc::clone(pool)),
            waiting: HashMap::new(),
            long: HashMap::new(),
            disturbed: Vec::new(),
            look_after: None,
            held: 0,
            ended: Some(ended),
        }
    }

    /// Threads for what may block. They end when the front does.
    pub(crate) fn hire(channel: &Arc<Channel>, tree: &Arc<T>) -> io::Result<Option<mpsc::Sender<Job>>> {
        let (workers, jobs) = mpsc::channel::<Job>();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..tree.threads() {
            let (jobs, channel, tree) = (Arc::clone(&jobs), Arc::clone(channel), Arc::clone(tree));
            thread::Builder::new().name("fairhead-files".to_owned()).spawn(move || {
                // SAFETY: from here on this thread alone has this mask, and it names no memory.
                unsafe {
                    libc::unshare(libc::CLONE_FS);
                    libc::umask(0);
                }
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((header, bytes, group)) = job else { return };
                    let operation = Operation::parse(header.opcode, &bytes).expect("parsed before");
                    if let Some(reply) = tree.answer(&header, &group, &operation) {
                        if operation.changes_unseen() {
                            channel.forget_attributes(header.node);
                        }
                        channel.reply(header.unique, reply.as_deref().map_err(|e| *e));
                    }
                }
            })?;
        }
        Ok((tree.threads() > 0).then_some(workers))
    }

    fn client(&mut self, context: &mut Context, group: GroupId) -> ClientId {
        *self.clients.entry(group).or_insert_with(|| context.queue.join())
    }

    /// Whether to read another request. The kernel has them all in one line, so one caller cannot be held
    /// back alone.
    fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX && self.held < HELD_MAX
    }

    /// What comes of an attempt to read a request that failed.
    fn not_read(&mut self, errno: i32) {
        // Interrupted; the request that was to be read is not asked any more; or there is none after all.
        if !matches!(errno, libc::EINTR | libc::ENOENT | libc::EAGAIN | libc::ECANCELED) {
            self.ended = None;
        }
    }

    /// Does what is asked, or begins to.
    fn serve(&mut self, context: &mut Context, len: usize) {
        let head = self.incoming.head();
        let header = Header::parse(&head[..len.min(HEADER)]).filter(|_| len >= HEADER);
        let Some(header) = header else { return };
        let joined;
        let mut bytes = &head[HEADER..len.min(WRITE_HEADER)];
        if len > WRITE_HEADER && header.opcode != protocol::opcode::WRITE {
            joined = [bytes, self.incoming.body(len - WRITE_HEADER)].concat();
            bytes = &joined;
        }
        let unique = header.unique;
        // Numbers count from 0; those with the highest bit are not the front's to use.
        let operation = Operation::parse(header.opcode, bytes).filter(|_| unique >> 63 == 0);
        let Some(operation) = operation else {
            return self.channel.reply(unique, Err(Errno::IO));
        };
        if let Some(result) = self.answer_or_begin(context, &header, &operation, bytes, len) {
            self.channel.reply(unique, result.as_deref().map_err(|e| *e));
        }
    }

    /// Does what is asked, or begins to, if it takes time. The request is `len` bytes long.
    fn answer_or_begin(
        &mut self,
        context: &mut Context,
        header: &Header,
        operation: &Operation<'_>,
        bytes: &[u8],
        len: usize,
    ) -> Option<Reply> {
        match *operation {
            Operation::Init { minor, readahead, flags } => {
                let agreed = protocol::agree(&self.tree.terms(), minor, readahead, flags);
                Some(agreed.map(|(reply, _)| reply))
            }
            Operation::Interrupt { unique } => {
                self.interrupt(context, unique);
                None
            }
            Operation::Read { handle, offset, size: len } => self.submit(
                context,
                header,
                Range { op: Op::Read, node: header.node, handle, offset, len, fua: false, sheds: false },
            ),
            Operation::Write { handle, offset, size, flags, open_flags } => {
                let len = size.min(len.saturating_sub(WRITE_HEADER) as u32);
                let fua = open_flags as i32 & libc::O_DSYNC != 0;
                let sheds = flags & protocol::WRITE_KILL_SUIDGID != 0;
                self.submit(
                    context,
                    header,
                    Range { op: Op::Write, node: header.node, handle, offset, len, fua, sheds },
                )
            }
            Operation::Release { handle } => {
                self.leaving.extend(self.tree.release(handle));
                Some(Ok(Vec::new()))
            }
            Operation::Fallocate { handle, offset, len, mode } if self.workers.is_none() => {
                self.zero(context, header, handle, (offset, len), mode)
            }
            Operation::Fallocate { handle, offset, len, mode } => {
                let to = Spot { node: header.node, handle, offset };
                let Ok(mode) = u8::try_from(mode) else { return Some(Err(Errno(libc::EOPNOTSUPP))) };
                let long = LongRequest::allocate(to, len, mode, header.uid != 0);
                self.go_on(context, header, long, None)
            }
            // The kernel knows no flags yet and refuses all, as this does.
            Operation::CopyFileRange { flags: 1.., .. } => Some(Err(Errno(libc::EINVAL))),
            Operation::CopyFileRange { from: (handle, offset), to, len, .. } => {
                let from = Spot { node: header.node, handle, offset };
                let to = Spot { node: to.0, handle: to.1, offset: to.2 };
                let long = LongRequest::copy(from, to, len, header.uid != 0);
                self.go_on(context, header, long, None)
            }
            Operation::Fsync { handle, data_only } => match self.tree.file(header.node, handle) {
                Ok(file) => {
                    if !data_only {
                        self.tree.sync_whole(file);
                    }
                    self.waiting.insert(
                        header.unique,
                        WaitingRequest { what: What::Flush, bio: None, thread: header.pid },
                    );
                    let client = self.client(context, GroupId::ROOT);
                    context.queue.flush(client, file, header.unique);
                    None
                }
                Err(errno) => Some(Err(errno)),
            },
            _ => self.delegate(context, header, operation, bytes),
        }
    }

    /// What needs no disk is done by another thread, if it may block, or at once.
    fn delegate(
        &self,
        context: &mut Context,
        header: &Header,
        operation: &Operation<'_>,
        bytes: &[u8],
    ) -> Option<Reply> {
        let Some(workers) = &self.workers else {
            return self.tree.answer(header, "", operation);
        };
        let group = match operation {
            Operation::Open { .. } | Operation::Create { .. } | Operation::TmpFile { .. } => {
                let group = self.tree.who(context, header, false).group;
                context.groups.name(group).to_owned()
            }
            _ => String::new(),
        };
        // Without a thread that hears it, the engine is about to stop.
        let sent = workers.send((*header, bytes.to_vec(), group));
        sent.err().map(|_| Err(Errno::SHUTDOWN))
    }

    /// Makes a part of a file read as zeros.
    fn zero(
        &mut self,
        context: &mut Context,
        header: &Header,
        handle: u64,
        (offset, len): (u64, u64),
        mode: u32,
    ) -> Option<Reply> {
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        let may_discard = match mode as i32 {
            PUNCH => true,
            ZERO => false,
            _ => return Some(Err(Errno(libc::EOPNOTSUPP))),
        };
        let Ok(len) = u32::try_from(len) else { return Some(Err(Errno(libc::EOPNOTSUPP))) };
        let op = Op::Zero { may_discard };
        let node = header.node;
        self.submit(context, header, Range { op, node, handle, offset, len, fua: false, sheds: false })
    }

    /// Asks the disk; answers what goes wrong before that, or needs no disk.
    fn submit(&mut self, context: &mut Context, header: &Header, range: Range) -> Option<Reply> {
        let place = match self.tree.place(&range) {
            Err(errno) => return Some(Err(errno)),
            Ok(None) => return Some(Ok(Vec::new())),
            Ok(Some(place)) => place,
        };
        let who = self.tree.who(context, header, range.op == Op::Write);
        let data = (range.op == Op::Write).then(|| self.incoming.payload(place.len as usize));
        let answered = place.answered;
        let what = match range.op {
            Op::Read => What::Read { answered },
            Op::Write => What::Write { answered },
            Op::Discard | Op::Zero { .. } | Op::Allocate { .. } | Op::Extents => What::Change,
        };
        self.ask(context, (header, who), &range, &place, (what, data));
        None
    }

    /// Hands a bio to the queue.
    fn ask(
        &mut self,
        context: &mut Context,
        (header, who): (&Header, Who),
        range: &Range,
        place: &Place,
        (what, data): (What, Option<Buffer>),
    ) {
        let Header { unique, pid: thread, .. } = *header;
        let Who { task, group, prio, sync } = who;
        if place.has_shed {
            self.channel.forget_attributes(range.node);
        }
        let bio = Bio {
            op: range.op,
            file: place.file,
            offset: range.offset,
            len: place.len,
            sector: place.sector,
            fua: place.fua,
            sync,
            task,
            group,
            prio,
            cookie: unique,
        };
        // It may be answered at once, and then is to be found.
        self.waiting.insert(unique, WaitingRequest { what, bio: None, thread });
        self.held += what.held();
        let client = self.client(context, group);
        let id = context.queue.submit(context.now, client, bio, data.map(Data::Memory));
        if let Some(waiting) = self.waiting.get_mut(&unique) {
            waiting.bio = Some(id);
        }
    }

    /// Asks for the next piece of a long request, or the first one; the data are those of a write. Returns
    /// the answer to the request if there is no next piece.
    fn go_on(
        &mut self,
        context: &mut Context,
        header: &Header,
        long: LongRequest,
        data: Option<Buffer>,
    ) -> Option<Reply> {
        let Some(range) = long.next() else { return Some(long.reply(Ok(()))) };
        let place = match self.tree.place(&range) {
            Err(errno) => return Some(long.reply(Err(errno))),
            // The end of the file that is copied.
            Ok(None) => return Some(long.reply(Ok(()))),
            Ok(Some(place)) => place,
        };
        let what = What::piece(range.op, place.answered);
        let who = self.tree.who(context, header, true);
        self.long.insert(header.unique, (*header, long));
        self.ask(context, (header, who), &range, &place, (what, data));
        None
    }

    /// A piece of a long request is answered.
    fn piece_answered(&mut self, context: &mut Context, answer: Answer<Data>, did: u32) {
        let unique = answer.cookie;
        let Some((header, mut long)) = self.long.remove(&unique) else { return };
        let reply = match answer.result {
            Ok(()) => {
                let data = answer.data.and_then(Data::memory);
                let did = data.as_ref().map_or(did, |data| did.min(data.end() as u32));
                long.did(did);
                if did > 0 { self.go_on(context, &header, long, data) } else { Some(long.reply(Ok(()))) }
            }
            Err(errno) => Some(long.reply(Err(errno))),
        };
        if let Some(reply) = reply {
            self.channel.reply(unique, reply.as_deref().map_err(|e| *e));
        }
    }

    /// The caller of that request got a signal. It may have its answer already.
    fn interrupt(&mut self, context: &mut Context, unique: u64) {
        let Some(waiting) = self.waiting.get(&unique).copied() else { return };
        if !is_ending(waiting.thread) {
            self.disturbed.push(unique);
            self.look_after.get_or_insert(context.now + LOOK_AFTER);
        } else if let Some(bio) = waiting.bio {
            context.queue.cancel(context.now, bio);
        } else {
            self.waiting.remove(&unique);
            self.channel.reply(unique, Err(Errno::INTR));
        }
    }

    /// Of a second signal the kernel says nothing.
    fn look_after(&mut self, context: &mut Context) {
        if self.look_after.is_some_and(|at| at <= context.now) {
            self.look_after = None;
            let disturbed = std::mem::take(&mut self.disturbed);
            disturbed.into_iter().for_each(|unique| self.interrupt(context, unique));
        }
    }
}

impl<T: Tree> Front for FuseFront<T> {
    fn begin(&mut self, _: &mut Context, _: &mut Ring) -> io::Result<()> {
        Ok(())
    }

    fn outcome(&mut self, context: &mut Context, _: &mut Ring, _: usize, outcome: Outcome) -> io::Result<()> {
        match self.incoming.armed_read(outcome.result) {
            Ok(len) => self.serve(context, len),
            Err(errno) => self.not_read(errno),
        }
        if self.ended.is_none() || !self.incoming.is_worth_a_try() {
            return Ok(());
        }
        let mut found = 0;
        for _ in 1..BATCH {
            if !self.has_room() {
                break;
            }
            match self.incoming.read(&self.channel.0) {
                Ok(len) => {
                    self.serve(context, len);
                    found += 1;
                }
                Err(e) => {
                    self.not_read(e.raw_os_error().unwrap_or(libc::EIO));
                    break;
                }
            }
        }
        self.incoming.tried(found);
        Ok(())
    }

    fn answer(&mut self, context: &mut Context, answer: Answer<Data>) {
        let unique = answer.cookie;
        let Some(waiting) = self.waiting.remove(&unique) else { return };
        self.held -= waiting.what.held();
        if let What::Piece { answered, .. } = waiting.what {
            return self.piece_answered(context, answer, answered);
        }
        let Ok(()) = answer.result else {
            return self.channel.reply(unique, answer.result.map(|()| &[][..]));
        };
        match waiting.what {
            What::Read { answered } => {
                let data = answer.data.and_then(Data::memory);
                let end = data.as_ref().map_or(0, Buffer::end).min(answered as usize);
                self.channel.reply(unique, Ok(&data.as_deref().unwrap_or_default()[..end]));
            }
            What::Write { answered } => {
                let [a, b, c, d] = answered.to_ne_bytes();
                self.channel.reply(unique, Ok(&[a, b, c, d, 0, 0, 0, 0]));
            }
            What::Change | What::Flush | What::Piece { .. } => self.channel.reply(unique, Ok(&[])),
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.look_after
    }

    fn turn(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        self.look_after(context);
        self.leaving.retain(|&file| {
            let stays = context.queue.knows(file);
            if !stays {
                context.queue.forget(file);
                self.tree.close(file);
            }
            stays
        });
        if self.ended.is_none() || !self.has_room() {
            return Ok(());
        }
        self.incoming.arm(&self.channel.0, ring)
    }
}

#[cfg(test)]
mod tests;
