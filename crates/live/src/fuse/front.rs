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
use super::in_pieces::{LongRequest, Spot};
use super::incoming::Incoming;
use super::name_threads::{Job, NameThreads, own_mask};
use super::protocol::{self, HEADER, Header, Operation, Reply, Terms, WRITE_HEADER, flag, opcode};
use super::queues::Queues;
use super::range::Range;
use crate::bio::{Answer, Bio, BioId, ClientId, Errno, FileId, Op};
use crate::buffer::{Buffer, Pool};
use crate::data::Data;
use crate::engine::{Context, Front};
use crate::rights;
use crate::ring::{Outcome, Ring, Token};
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_inbox::{Inbox, Pushed};
use held_back::AllHeldBack;
use io_uring::opcode::Read;
use io_uring::types::Fd;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, IoSlice, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// The most requests that wait for the disk, and the most bytes of writes and copies that they hold: far more
/// than the kernel's own limits for one mount let come, except for direct writes and copies of very many
/// threads.
const WAITING_MAX: usize = 4096;
const HELD_MAX: u64 = 256 << 20;

/// How often requests are looked at whose callers got a signal that does not end them.
const LOOK_AFTER: Duration = Duration::from_ms(10);

/// The pause between two reads of the device, while requests come through the kernel's queues. Interrupts
/// come at the device, too, and may wait for as long.
const DEVICE_PAUSE: Duration = Duration::from_ms(1);

/// The most requests that are read in one turn of the engine.
const BATCH: usize = 64;

/// Tokens of the ring: a request read from the device, a reply of another thread, and entries of the kernel's
/// queues from this number on.
const DEVICE: usize = 0;
const BELL: usize = 1;
const ENTRIES: usize = 2;

/// The ways to the kernel, from any thread.
#[derive(Debug)]
pub(crate) struct Channel {
    /// `/dev/fuse`.
    device: File,
    /// Replies to what came in entries, which only the engine's thread may hand over, and folders to flush.
    replies: Inbox<(Header, Reply)>,
    /// Replies of the engine's threads, which take them in their next turn.
    done: Mutex<Vec<(Header, Reply)>>,
    bell: PipeWriter,
    /// Whether requests come through the kernel's queues.
    has_queues: AtomicBool,
    /// The processor time of threads for names, in nanoseconds.
    names_ns: AtomicU64,
}

impl Channel {
    /// The channel, and what is rung if the engine sleeps while there are replies.
    pub(crate) fn new(device: File) -> io::Result<(Self, PipeReader)> {
        let (bell, ringer) = io::pipe()?;
        let (replies, done, has_queues) = (Inbox::new(), Mutex::default(), AtomicBool::new(false));
        Ok((Self { device, replies, done, bell: ringer, has_queues, names_ns: AtomicU64::new(0) }, bell))
    }

    /// Whether requests come through the kernel's queues, as far as that is known yet.
    pub(crate) fn has_queues(&self) -> bool {
        self.has_queues.load(Ordering::Relaxed)
    }

    /// Replies to what was read from the device. A caller that is not there any more, or a mount, has no use
    /// for it, and that is all that can go wrong.
    fn reply(&self, unique: u64, result: Result<&[u8], Errno>) {
        let data = result.unwrap_or_default();
        let header = protocol::reply_header(unique, result.map(|_| ()), data.len());
        let _ = (&self.device).write_vectored(&[IoSlice::new(&header), IoSlice::new(data)]);
    }

    /// Replies from another thread than the engine's.
    fn reply_from_afar(&self, header: &Header, reply: Reply) {
        let is_for_engine = header.entry.is_some() || header.opcode == opcode::FSYNCDIR && reply.is_ok();
        if !is_for_engine {
            return self.reply(header.unique, reply.as_deref().map_err(|e| *e));
        }
        // An engine that has stopped has no use for it.
        if self.replies.push((*header, reply)) == Pushed::Wake {
            let _ = (&self.bell).write_all(&[1]);
        }
    }

    /// The kernel does not use what it remembers of a node's attributes any more. Call it before the reply
    /// to the request that has changed them.
    pub(crate) fn forget_attributes(&self, node: u64) {
        // The kernel may not know the node any more, which is as good.
        let _ = (&self.device).write(&protocol::stale_notice(node));
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

/// What comes of an attempt to do an operation at once.
#[derive(Debug)]
pub(crate) enum AtOnce {
    /// It is done, with the answer, if it has one.
    Done(Option<Reply>),
    /// Nothing was done: it is for another thread.
    MayBlock,
}

/// What is mounted.
pub(crate) trait Tree: Send + Sync + 'static {
    /// What it would agree upon with the kernel.
    fn terms(&self) -> Terms;
    /// Where this is; nothing is behind the end of a file for a read.
    fn place(&self, header: &Header, range: &Range) -> Result<Option<Place>, Errno>;
    /// The file that is flushed.
    fn file(&self, node: u64, handle: u64) -> Result<FileId, Errno>;
    /// The answer to a caller is that there is no space.
    fn no_space(&self) {}
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
    /// Whether operations may block, and are for other threads.
    fn may_block(&self) -> bool {
        false
    }
    /// Does this operation as [`Self::answer`] does, if it cannot block, and takes no longer than to hand it
    /// to another thread. Whether that is so may take some calls, so several threads of the engine ask this
    /// outside of their turns.
    fn answer_at_once(&self, _: &Header, _: &str, _: &Operation<'_>) -> AtOnce {
        AtOnce::MayBlock
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
    /// The entry that it came in.
    entry: Option<u32>,
}

/// See the [module](self).
pub(crate) struct FuseFront<T> {
    channel: Arc<Channel>,
    tree: Arc<T>,
    /// One for each group: what one group has too much of must not keep the others from the disk.
    clients: HashMap<GroupId, ClientId>,
    incoming: Incoming,
    /// Whether the kernel's queues are wanted, and those that there are.
    wants_queues: bool,
    /// The number of the engine's threads.
    hands: usize,
    queues: Option<Queues>,
    /// Entries with requests that there was no room for.
    deferred: VecDeque<usize>,
    /// Rung for replies of other threads; where the ring puts what comes through it; and whether it does.
    bell: PipeReader,
    rung: Buffer,
    is_listening: bool,
    heard: Vec<(Header, Reply)>,
    /// What may be quick, for the thread that has the turn, after that.
    calls: Vec<Job>,
    /// When the device is read again: what the kernel forgets comes there, one file at a time if it is read
    /// at once.
    arm_at: Option<Instant>,
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
    /// Requests of groups that have had their part of this thread.
    held_back: AllHeldBack,
    /// Closed, and something may still be asked of them.
    leaving: Vec<FileId>,
    /// Where what may block goes.
    workers: Option<Arc<NameThreads>>,
    /// Dropped when the mount is gone, which ends [`Mount::wait`](super::Mount::wait).
    ended: Option<mpsc::Sender<()>>,
}

impl<T: Tree> FuseFront<T> {
    /// A front for what is mounted, with the threads that were [hired](Self::hire) for it. With `queues`, the
    /// kernel is asked for its queues, which this number of threads of the engine serve.
    pub(crate) fn new(
        (channel, bell): (Arc<Channel>, PipeReader),
        tree: Arc<T>,
        workers: Option<NameThreads>,
        ended: mpsc::Sender<()>,
        pool: &Arc<Pool>,
        queues: Option<usize>,
    ) -> Self {
        Self {
            channel,
            wants_queues: queues.is_some(),
            hands: queues.unwrap_or(1),
            queues: None,
            deferred: VecDeque::new(),
            bell,
            rung: pool.buffer(64),
            is_listening: false,
            heard: Vec::new(),
            calls: Vec::new(),
            arm_at: None,
            tree,
            leaving: Vec::new(),
            workers: workers.map(Arc::new),
            clients: HashMap::new(),
            incoming: Incoming::new(Arc::clone(pool)),
            waiting: HashMap::new(),
            long: HashMap::new(),
            disturbed: Vec::new(),
            look_after: None,
            held: 0,
            held_back: AllHeldBack::default(),
            ended: Some(ended),
        }
    }

    /// Threads for what may block; `None` if nothing does. They end when the front does.
    pub(crate) fn hire(channel: &Arc<Channel>, tree: &Arc<T>) -> io::Result<Option<NameThreads>> {
        rights::look_up()?;
        if !tree.may_block() {
            return Ok(None);
        }
        let (channel, tree) = (Arc::clone(channel), Arc::clone(tree));
        let counted = Arc::clone(&channel);
        let names_took = move |took: Duration| {
            counted.names_ns.fetch_add(took.as_ns(), Ordering::Relaxed);
        };
        let work = move |Job { header, bytes, opens_for, .. }: Job| {
            let operation = Operation::parse(header.opcode, &bytes).expect("parsed before");
            if let Some(reply) = tree.answer(&header, &opens_for, &operation) {
                if operation.changes_unseen() {
                    channel.forget_attributes(header.node);
                }
                channel.reply_from_afar(&header, reply);
            }
        };
        NameThreads::start(work, names_took).map(Some)
    }

    /// Replies to a request.
    fn reply(&mut self, unique: u64, entry: Option<u32>, result: Result<&[u8], Errno>) {
        match (&mut self.queues, entry) {
            (Some(queues), Some(entry)) => queues.reply(entry as usize, unique, result),
            _ => self.channel.reply(unique, result),
        }
    }

    fn client(&mut self, context: &mut Context, group: GroupId) -> ClientId {
        *self.clients.entry(group).or_insert_with(|| context.queue.join())
    }

    /// Whether to read another request. The kernel has them all in one line, so one caller cannot be held
    /// back alone.
    fn has_room(&self) -> bool {
        self.waiting.len() + self.held_back.count < WAITING_MAX && self.held + self.held_back.bytes < HELD_MAX
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
        let data = len.saturating_sub(WRITE_HEADER);
        if let Some(until) = self.has_had_its_part(context, &header, &operation) {
            return self.hold_back(until, &header, bytes, data);
        }
        if let Some(result) = self.answer_or_begin(context, &header, &operation, bytes, data) {
            self.channel.reply(unique, result.as_deref().map_err(|e| *e));
            if header.opcode == opcode::INIT {
                self.open_queues(&result);
            }
        }
    }

    /// After an agreement to use the kernel's queues: until they have entries, the kernel lets no request
    /// come.
    fn open_queues(&mut self, agreement: &Reply) {
        let flags = agreement.as_ref().map_or(0, |reply| protocol::agreed_flags(reply));
        if flags & flag::OVER_IO_URING == 0 {
            return;
        }
        match Queues::new(&self.channel.device, self.hands) {
            Ok(queues) => {
                self.queues = Some(queues);
                self.channel.has_queues.store(true, Ordering::Relaxed);
            }
            // Without memory for them the mount is of no use.
            Err(_) => self.ended = None,
        }
    }

    /// An entry has come back from the kernel.
    fn entry_came(&mut self, context: &mut Context, entry: usize, result: i32) {
        if result < 0 {
            // The mount is gone, or the kernel has no queues after all. Either shows at the device, too.
            return;
        }
        if self.has_room() { self.serve_entry(context, entry) } else { self.deferred.push_back(entry) }
    }

    /// Does what is asked in an entry, or begins to.
    fn serve_entry(&mut self, context: &mut Context, entry: usize) {
        let Some(queues) = &mut self.queues else { return };
        let Some((header, mut bytes, payload)) = queues.received(entry) else { return };
        if header.opcode != opcode::WRITE {
            bytes.extend_from_slice(&queues.payload(entry)[..payload]);
        }
        let operation = Operation::parse(header.opcode, &bytes).filter(|_| header.unique >> 63 == 0);
        let Some(operation) = operation else {
            return self.reply(header.unique, header.entry, Err(Errno::IO));
        };
        if let Some(until) = self.has_had_its_part(context, &header, &operation) {
            return self.hold_back(until, &header, &bytes, payload);
        }
        if let Some(result) = self.answer_or_begin(context, &header, &operation, &bytes, payload) {
            self.reply(header.unique, header.entry, result.as_deref().map_err(|e| *e));
        }
    }

    /// The data of a write, `len` bytes.
    fn written(&mut self, header: &Header, len: usize) -> Buffer {
        if let Some(body) = self.held_back.body.take() {
            return body;
        }
        let (Some(queues), Some(entry)) = (&mut self.queues, header.entry) else {
            return self.incoming.payload(len);
        };
        let mut data = self.incoming.pool().buffer(len);
        data.copy_from_slice(&queues.payload(entry as usize)[..len]);
        data
    }

    /// Hands over the replies of other threads. Returns whether there were any.
    fn take_replies(&mut self, context: &mut Context) -> bool {
        let mut heard = std::mem::take(&mut self.heard);
        self.channel.replies.take(&mut heard);
        heard.append(&mut self.channel.done.lock().unwrap_or_else(PoisonError::into_inner));
        let any = !heard.is_empty();
        for (header, reply) in heard.drain(..) {
            match reply {
                Ok(folder) if header.opcode == opcode::FSYNCDIR => {
                    self.flush_folder(context, &header, &folder)
                }
                reply => self.reply(header.unique, header.entry, reply.as_deref().map_err(|e| *e)),
            }
        }
        self.heard = heard;
        any
    }

    /// Has the ring listen for replies of other threads.
    fn listen(&mut self, ring: &mut Ring) -> io::Result<()> {
        if std::mem::replace(&mut self.is_listening, true) {
            return Ok(());
        }
        let read = Read::new(Fd(self.bell.as_raw_fd()), self.rung.as_mut_ptr(), self.rung.len() as u32);
        // SAFETY: the buffer is the front's, which is not dropped before the ring is.
        unsafe { ring.push(read.build(), Token::Front(BELL)) }
    }

    /// Hands replies over.
    fn send_replies(&mut self, ring: &mut Ring) -> io::Result<()> {
        match &mut self.queues {
            Some(queues) => queues.send(ring, ENTRIES),
            None => Ok(()),
        }
    }

    /// Does what is asked, or begins to, if it takes time. `data`: the bytes of data that have come with it.
    fn answer_or_begin(
        &mut self,
        context: &mut Context,
        header: &Header,
        operation: &Operation<'_>,
        bytes: &[u8],
        data: usize,
    ) -> Option<Reply> {
        match *operation {
            Operation::Init { minor, readahead, flags } => {
                let mut terms = self.tree.terms();
                if self.wants_queues {
                    terms.flags |= flag::OVER_IO_URING | flag::INIT_EXT;
                }
                let agreed = protocol::agree(&terms, minor, readahead, flags);
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
                let len = size.min(data as u32);
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
                    self.flush(context, header, file);
                    None
                }
                Err(errno) => Some(Err(errno)),
            },
            _ => self.delegate(context, header, operation, bytes),
        }
    }

    /// What needs no disk is done by another thread, if it may block, or at once.
    fn delegate(
        &mut self,
        context: &mut Context,
        header: &Header,
        operation: &Operation<'_>,
        bytes: &[u8],
    ) -> Option<Reply> {
        let Some(workers) = &self.workers else {
            return self.tree.answer(header, "", operation);
        };
        // The kernel closes a program's files in the middle of its `exec`, and until then nothing can be read
        // of the process in /proc: to ask for its group would wait for the answer that it waits for.
        let group = match operation {
            Operation::Flush { .. } => GroupId::ROOT,
            _ => self.tree.who(context, header, false).group,
        };
        let opens_for = match operation {
            Operation::Open { .. }
            | Operation::Create { .. }
            | Operation::TmpFile { .. }
            | Operation::FsyncDir { .. } => context.groups.name(group).to_owned(),
            _ => String::new(),
        };
        if header.entry.is_some() {
            self.calls.push(Job { header: *header, bytes: bytes.to_vec(), group, opens_for });
            return None;
        }
        match self.tree.answer_at_once(header, &opens_for, operation) {
            AtOnce::Done(reply) => reply,
            AtOnce::MayBlock => {
                workers.send(Job { header: *header, bytes: bytes.to_vec(), group, opens_for });
                None
            }
        }
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
        let place = match self.tree.place(header, &range) {
            Err(errno) => return Some(Err(errno)),
            Ok(None) => return Some(Ok(Vec::new())),
            Ok(Some(place)) => place,
        };
        let who = self.tree.who(context, header, range.op == Op::Write);
        let data = (range.op == Op::Write).then(|| self.written(header, place.len as usize));
        let answered = place.answered;
        let what = match range.op {
            Op::Read => What::Read { answered },
            Op::Write => What::Write { answered },
            Op::Discard | Op::Zero { .. } | Op::Allocate { .. } | Op::Extents | Op::Flush => What::Change,
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
        let Header { unique, pid: thread, entry, .. } = *header;
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
        self.waiting.insert(unique, WaitingRequest { what, bio: None, thread, entry });
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
        let place = match self.tree.place(header, &range) {
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
            self.reply(unique, header.entry, reply.as_deref().map_err(|e| *e));
        }
    }
}

impl<T: Tree> Front for FuseFront<T> {
    fn sends_commands(&self) -> bool {
        self.wants_queues
    }

    fn hands(&self) -> usize {
        self.hands
    }

    fn apart(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        let workers = self.workers.clone().filter(|_| !self.calls.is_empty())?;
        let (calls, tree, channel) =
            (std::mem::take(&mut self.calls), Arc::clone(&self.tree), Arc::clone(&self.channel));
        Some(Box::new(move || {
            for job in calls {
                let operation = Operation::parse(job.header.opcode, &job.bytes).expect("parsed before");
                match tree.answer_at_once(&job.header, &job.opens_for, &operation) {
                    AtOnce::Done(None) => {}
                    AtOnce::Done(Some(reply)) => {
                        channel.done.lock().unwrap_or_else(PoisonError::into_inner).push((job.header, reply));
                    }
                    AtOnce::MayBlock => workers.send(job),
                }
            }
        }))
    }

    fn has_work_for(&self, hand: usize) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.has_work_for(hand))
    }

    fn begin(&mut self, _: &mut Context, _: &mut Ring) -> io::Result<()> {
        own_mask();
        rights::settle()
    }

    fn outcome(
        &mut self,
        context: &mut Context,
        _: &mut Ring,
        number: usize,
        outcome: Outcome,
    ) -> io::Result<()> {
        match number {
            DEVICE => {}
            BELL => {
                self.is_listening = false;
                return Ok(());
            }
            entry => {
                self.entry_came(context, entry - ENTRIES, outcome.result);
                return Ok(());
            }
        }
        if self.queues.is_some() {
            self.arm_at = Some(context.now + DEVICE_PAUSE);
        }
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
            match self.incoming.read(&self.channel.device) {
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
        if answer.result.is_err_and(Errno::is_no_space) {
            self.tree.no_space();
        }
        if let What::Piece { answered, .. } = waiting.what {
            return self.piece_answered(context, answer, answered);
        }
        let entry = waiting.entry;
        let Ok(()) = answer.result else {
            return self.reply(unique, entry, answer.result.map(|()| &[][..]));
        };
        match waiting.what {
            What::Read { answered } => {
                let data = answer.data.and_then(Data::memory);
                let end = data.as_ref().map_or(0, Buffer::end).min(answered as usize);
                self.reply(unique, entry, Ok(&data.as_deref().unwrap_or_default()[..end]));
            }
            What::Write { answered } => {
                let [a, b, c, d] = answered.to_ne_bytes();
                self.reply(unique, entry, Ok(&[a, b, c, d, 0, 0, 0, 0]));
            }
            What::Change | What::Flush | What::Piece { .. } => self.reply(unique, entry, Ok(&[])),
        }
    }

    fn begin_turn(&mut self, context: &mut Context) {
        self.continue_held_back(context);
    }

    fn next_timer(&self) -> Option<Instant> {
        let arm_at = self.arm_at.filter(|_| self.ended.is_some() && self.has_room());
        [self.look_after, arm_at, self.held_back.next_timer()].into_iter().flatten().min()
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
        // The other threads leave the bell to the first one, which may sleep.
        if ring.hand() == 0 {
            self.channel.replies.wake();
        }
        self.take_replies(context);
        while self.has_room()
            && let Some(entry) = self.deferred.pop_front()
        {
            self.serve_entry(context, entry);
        }
        self.send_replies(ring)?;
        if ring.hand() > 0 {
            return Ok(());
        }
        if self.workers.is_some() {
            self.listen(ring)?;
        }
        let is_paused = self.arm_at.is_some_and(|at| at > context.now);
        if self.ended.is_none() || !self.has_room() || is_paused {
            return Ok(());
        }
        self.arm_at = None;
        self.incoming.arm(&self.channel.device, ring)
    }

    fn poll(&mut self, _: &mut Context) -> bool {
        self.workers.is_some() && self.channel.replies.has_messages()
    }

    fn rest(&mut self, context: &mut Context, ring: &mut Ring) -> io::Result<()> {
        // A thread that replies after this rings.
        while ring.hand() == 0 && self.workers.is_some() && !self.channel.replies.sleep() {
            let before = context.queue.submitted();
            self.take_replies(context);
            self.send_replies(ring)?;
            if context.queue.submitted() != before {
                // There is more to do than to sleep.
                let _ = (&self.channel.bell).write_all(&[1]);
            }
        }
        Ok(())
    }
}

mod flushes;
mod held_back;
mod interrupts;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod tests;
