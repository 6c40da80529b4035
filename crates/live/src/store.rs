//! The backing store: the files of a disk, and doing ios on them through the ring.
//!
//! ```text
//!   io ─► Transfer ─► runs ─► operations in the ring ─► outcomes ─► Transfer ─► … ─► results, piece by piece
//! ```
//!
//! Reads and writes of a run are one operation however many pieces it has; one in the arena goes by the
//! shortest way. A discard punches a hole; where the file system cannot, it does nothing, as a disk may.
//! Zeroing punches a hole if that is allowed, else asks for zeroed space, else writes zeros.
//!
//! **What must be stable when it is answered** is written so (`RWF_DSYNC`) on file systems that are known to
//! keep that promise. On all others it is written and then synced: on FUSE, and so on virtiofs, a write that
//! is asynchronous and direct returns without the sync. One `fdatasync` does for all writes of a file that
//! are done when it begins. A file has one flush or sync at a time, as the kernel reports an error to one of
//! two that run side by side. For that reason, writes through the page cache are written and then synced,
//! too.
//!
//! **What direct I/O does not take**, because its offset, length or address is no multiple of the device's
//! block, goes through the page cache. A write of that kind reads and writes whole pages there, and a read
//! leaves them there. So no other write to the same pages is at work meanwhile: the one that came later is
//! held until the earlier one is done, or the page would bring back what it held before. This holds across
//! all numbers that one file has.
//!
//! **Files in memory** take no time but that of copying. What is small is copied, or made to read as zeros,
//! by a call, here and now: a turn through the ring costs more than that, and its workers take the processors
//! from this thread. Large reads are not copied, if a socket will have them: `pipes.rs`; small ones only by
//! the message that sends them: `mapped.rs`. Data of writes may come in a pipe. Writes of 256 KiB and more
//! are for the ring's workers; if these are all busy, the engine's thread copies one of them, 128 KiB at a
//! time, so that other clients wait no longer than that. An operation that is to fail on purpose goes through
//! the ring.
//!
//! What it does not do: decide anything. Errors go back to the queue; those that only mean "not now" are
//! retried.

use crate::bio::{Errno, FileId, Op};
use crate::buffer::{Buffer, Pool};
use crate::data::Data;
use crate::extents::{Extent, Finder};
use crate::faults::{FaultOp, Faults, Harm, Injector, Meaning, shorten};
use crate::file_table::Open;
pub(crate) use crate::file_table::{Cached, FileTable, Identity, identity, is_in_memory};
use crate::flushes::Flushes;
use crate::guest_data::VECTORS_MAX;
use crate::request_queue::{IoId, Piece, RequestQueue};
use crate::ring::{LARGE, LONG, Ring, Token};
use crate::transfer::{Run, Then, Transfer};
use io_uring::opcode::{Fallocate, Fsync, Nop, ReadFixed, Readv, WriteFixed, Writev};
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags};
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How a run is done; if one way is not supported, the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Transfer,
    PunchHole,
    ZeroRange,
    WriteZeros,
    /// Its extents are looked up.
    Find,
    /// With a mode of `fallocate(2)`.
    Allocate(u8),
}

impl Way {
    /// The first way that is tried.
    fn of(op: Op) -> Self {
        match op {
            Op::Read | Op::Write => Self::Transfer,
            Op::Discard | Op::Zero { may_discard: true } => Self::PunchHole,
            Op::Zero { may_discard: false } => Self::ZeroRange,
            Op::Extents => Self::Find,
            Op::Allocate { mode } => Self::Allocate(mode),
            Op::Flush => unreachable!("a flush begins with `flush`"),
        }
    }

    /// The kind of operation, for [faults](crate::faults).
    const fn fault(self, op: Op) -> FaultOp {
        match (self, op) {
            (Self::Transfer, Op::Read) | (Self::Find, _) => FaultOp::Read,
            (Self::Transfer | Self::WriteZeros, _) => FaultOp::Write,
            (Self::PunchHole | Self::ZeroRange | Self::Allocate(_), _) => FaultOp::Allocate,
        }
    }
}

#[derive(Debug)]
struct Doing {
    io: IoId,
    run: Run,
    way: Way,
    /// Whether it goes through the page cache of a file that is otherwise read and written directly.
    is_cached: bool,
    /// Whether the engine's thread copies while others wait.
    is_copied_here: bool,
    /// What the kernel reads while it is at it.
    #[allow(dead_code, reason = "kept for the kernel")]
    vectors: Box<[libc::iovec]>,
}

// SAFETY: the addresses in `vectors` are those of buffers that belong to the same engine.
unsafe impl Send for Doing {}

#[derive(Debug)]
enum Operation {
    Do(Doing),
    Flush(FileId),
    /// Makes stable what was written and has to be before it is answered.
    Sync(FileId),
}

impl Operation {
    /// The file that it makes stable.
    const fn syncs(&self) -> Option<FileId> {
        match self {
            Self::Flush(file) | Self::Sync(file) => Some(*file),
            Self::Do(_) => None,
        }
    }
}

/// What came to its end.
#[derive(Debug)]
pub(crate) enum Finished {
    Io(IoId, Vec<Result<(), Errno>>),
    Flush(FileId, Result<(), Errno>),
}

/// The most bytes that the engine's thread copies at a time if other clients wait.
const COPY_MAX: u64 = 128 << 10;

/// The pages of the page cache.
const PAGE: u64 = 4096;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Store {
    files: Arc<FileTable>,
    pool: Arc<Pool>,
    zeros: Buffer,
    transfers: HashMap<usize, Transfer>,
    operations: Slab<Operation>,
    /// Runs that are done and are answered when they are stable.
    unstable: Flushes<(IoId, Run)>,
    /// Flushes and syncs that wait for the end of one of the same file.
    later: Vec<Operation>,
    /// Errors of other calls that may be about runs which wait for a sync.
    taken: HashMap<FileId, Errno>,
    /// How many operations go through the page cache beside direct ones; and those that wait because of one,
    /// or are to go there and wait.
    beside: usize,
    held: Vec<(IoId, Run, Way)>,
    /// Whether the engine's thread has a long copy to make; and those that wait for that, or for a worker.
    is_copying: bool,
    to_copy: VecDeque<(IoId, Run, Way)>,
    /// What has come to its end and was not [taken](Self::next_finished).
    ended: VecDeque<Finished>,
    injector: Option<Injector>,
    finder: Finder,
    results: Vec<Result<(), Errno>>,
    /// Whether the data of the io with these results stay in the file.
    is_mapped: bool,
}

impl Store {
    pub(crate) fn new(
        files: Arc<FileTable>,
        pool: Arc<Pool>,
        faults: Option<Faults>,
        finder: Finder,
    ) -> Self {
        let zeros = pool.buffer(1 << 20);
        let (transfers, operations) = (HashMap::new(), Slab::new());
        let injector = faults.map(Injector::new);
        Self {
            files,
            pool,
            zeros,
            transfers,
            operations,
            unstable: Flushes::new(),
            later: Vec::new(),
            taken: HashMap::new(),
            beside: 0,
            held: Vec::new(),
            is_copying: false,
            to_copy: VecDeque::new(),
            ended: VecDeque::new(),
            injector,
            finder,
            results: Vec::new(),
            is_mapped: false,
        }
    }

    /// Where memory comes from.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// How many operations the ring has.
    pub(crate) fn under_way(&self) -> usize {
        self.operations.len()
    }

    /// Begins an io. Returns how many bytes it was, if it has come to its end already: then its pieces have
    /// these [results](Self::results).
    pub(crate) fn start(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        io: IoId,
    ) -> io::Result<Option<u64>> {
        let done = self.do_here(queue, io);
        if done.is_some() {
            return Ok(done);
        }
        let pieces = queue.pieces(io).to_vec();
        for piece in pieces.iter().filter(|p| matches!(p.op, Op::Read | Op::Write)) {
            self.give_memory(queue, piece)?;
        }
        let (transfer, runs) = Transfer::new(&pieces);
        self.transfers.insert(io.0, transfer);
        runs.into_iter().try_for_each(|run| match Way::of(pieces[run.pieces.start].op) {
            Way::Find => self.find(ring, queue, io, run),
            way => self.push(ring, queue, io, run, way),
        })?;
        Ok(None)
    }

    /// The results of the pieces of the io that came to its end when it [began](Self::start).
    pub(crate) fn results(&self) -> &[Result<(), Errno>] {
        &self.results
    }

    /// Whether these are reads whose data stay in the file until they are sent.
    pub(crate) const fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    /// Does an io of files in memory, if no piece of it takes long: to hand it to the ring and to take its
    /// outcome costs more than to copy a few KiB. Returns how many bytes it was. If one of the pieces cannot
    /// be done so, all are for the ring. A read that fails is, too: pieces that have been read are read
    /// again, which changes nothing. A write has its result from here, as its data may be used up.
    fn do_here(&mut self, queue: &mut RequestQueue<Data>, io: IoId) -> Option<u64> {
        let is_short = queue.request(io).len.bytes() < LONG;
        self.results.clear();
        self.is_mapped = true;
        let files = self.files.files();
        let count = queue.pieces(io).len();
        let mut bytes = 0;
        for i in 0..count {
            let piece = queue.pieces(io)[i];
            if !self.is_for_here(&files, queue, &piece, is_short) {
                return None;
            }
            bytes += u64::from(piece.len);
            self.is_mapped &= matches!(queue.data(&piece), Some(Data::Mapped(_)));
        }
        for i in 0..count {
            let piece = queue.pieces(io)[i];
            let open = &files[piece.file.0 as usize];
            let result = match piece.op {
                Op::Read if !self.read_here(open, queue, &piece) => return None,
                Op::Read => Ok(()),
                // The ring says what went wrong, or finds another way: to do it again changes nothing.
                Op::Discard | Op::Zero { .. } if !zero_here(open, &self.zeros, &piece) => return None,
                Op::Discard | Op::Zero { .. } => Ok(()),
                _ => {
                    write_here(open, queue, &piece).map_err(|e| Errno(e.raw_os_error().unwrap_or(libc::EIO)))
                }
            };
            self.results.push(result);
        }
        Some(bytes)
    }

    /// Whether a piece can be done at once.
    fn is_for_here(
        &self,
        files: &Slab<Open>,
        queue: &mut RequestQueue<Data>,
        piece: &Piece,
        is_short: bool,
    ) -> bool {
        let bytes = piece.offset..piece.offset + u64::from(piece.len);
        let fault = Way::of(piece.op).fault(piece.op);
        let is_harmed = self.injector.as_ref().is_some_and(|i| i.will_hit(fault, piece.file, &bytes));
        if is_harmed || files[piece.file.0 as usize].pages.is_none() {
            return false;
        }
        let bio_len = queue.bio(piece).len;
        match (piece.op, queue.data(piece)) {
            (Op::Write, Some(Data::Guest(_))) => !piece.fua && is_short,
            (Op::Read, Some(Data::Piped(_) | Data::Mapped(_))) => true,
            (Op::Read, _) => u64::from(piece.len) < LARGE,
            // Bytes leave the pipe in order.
            (Op::Write, Some(Data::Load(_))) => !piece.fua && piece.len == bio_len,
            (Op::Write, Some(Data::Memory(_))) => !piece.fua && is_short,
            (Op::Discard | Op::Zero { .. }, _) => {
                !piece.fua && is_short && files[piece.file.0 as usize].caller.is_none()
            }
            _ => false,
        }
    }

    /// Reads a piece of a file in memory. Returns whether all of it could be read.
    fn read_here(&self, open: &Open, queue: &mut RequestQueue<Data>, piece: &Piece) -> bool {
        let Some(pages) = &open.pages else { return false };
        let (from, to) = (piece.at as usize, (piece.at + piece.len) as usize);
        let bio_len = queue.bio(piece).len as usize;
        match queue.data(piece) {
            Some(Data::Mapped(_)) => true,
            Some(Data::Piped(piped)) => piped.fill(pages.as_fd(), piece.offset, piece.at, piece.len),
            Some(Data::Guest(guest)) => {
                let read = guest.read_from(pages.as_fd(), piece.offset, piece.at, piece.at + piece.len);
                read.is_ok_and(|n| n == u64::from(piece.len))
            }
            data => {
                let data = data.get_or_insert_with(|| Data::Memory(self.pool.buffer(bio_len)));
                let read = pages.read_at(&mut data.memory_mut()[from..to], piece.offset);
                read.is_ok_and(|n| n == to - from)
            }
        }
    }

    /// Gives the piece's bio memory, if its data are elsewhere; what has been read or has arrived goes there.
    fn give_memory(&self, queue: &mut RequestQueue<Data>, piece: &Piece) -> io::Result<()> {
        let len = queue.bio(piece).len as usize;
        let data = queue.data(piece);
        if let Some(Data::Memory(_) | Data::Guest(_)) = data {
            return Ok(());
        }
        let mut memory = self.pool.buffer(len);
        if let Some(data) = data.take() {
            data.unload(&mut memory)?;
        }
        *data = Some(Data::Memory(memory));
        Ok(())
    }

    /// Makes stable what was written to a file.
    pub(crate) fn flush(&mut self, ring: &mut Ring, file: FileId) -> io::Result<()> {
        self.sync_in_turn(ring, file, Operation::Flush(file))
    }

    /// Begins a flush or sync of a file, or keeps it until the one that is running has ended.
    fn sync_in_turn(&mut self, ring: &mut Ring, file: FileId, operation: Operation) -> io::Result<()> {
        if self.operations.iter().any(|(_, other)| other.syncs() == Some(file)) {
            self.later.push(operation);
            return Ok(());
        }
        let flags = match operation {
            Operation::Flush(_) => self.files.flush_flags(file),
            _ => FsyncFlags::DATASYNC,
        };
        let harm = self.injector.as_ref().and_then(|i| i.hit(FaultOp::Flush, file, &(0..u64::MAX)));
        let entry = Fsync::new(self.fd(file)).flags(flags).build();
        // SAFETY: it names no memory.
        unsafe { self.send(ring, entry, operation, harm, false) }
    }

    /// A flush or sync of a file has ended; now comes the one that waits for that. A sync does not come any
    /// more if there was an error, which may be about the same writes.
    fn sync_next(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        file: FileId,
        result: Result<(), Errno>,
    ) -> io::Result<()> {
        let Some(next) = self.later.iter().position(|o| o.syncs() == Some(file)) else { return Ok(()) };
        match (self.later.swap_remove(next), result) {
            (Operation::Sync(_), Err(_)) => self.synced(ring, queue, file, result),
            (next, _) => self.sync_in_turn(ring, file, next),
        }
    }

    /// # Safety
    /// What `entry` names stays as it is until the operation is [completed](Self::completed).
    unsafe fn send(
        &mut self,
        ring: &mut Ring,
        entry: Entry,
        operation: Operation,
        harm: Option<Harm>,
        is_apart: bool,
    ) -> io::Result<()> {
        let number = self.operations.insert(operation);
        if let (Some(injector), Some(harm)) = (&mut self.injector, harm) {
            let entry = injector.replace(number, entry, harm);
            // SAFETY: what there may be instead keeps what it names as long.
            return unsafe { ring.push(entry, Token::Store(number)) };
        }
        // SAFETY: as the caller says.
        unsafe {
            if is_apart {
                ring.push_apart(entry, Token::Store(number))
            } else {
                ring.push(entry, Token::Store(number))
            }
        }
    }

    fn fd(&self, file: FileId) -> Fd {
        Fd(self.files.fd(file))
    }

    fn push(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        io: IoId,
        run: Run,
        way: Way,
    ) -> io::Result<()> {
        let transfer = &self.transfers[&io.0];
        let first = transfer.pieces()[run.pieces.start];
        let offset = first.offset + run.done;
        let len: u64 = transfer.rest(&run).map(|(_, bytes)| u64::from(bytes.end - bytes.start)).sum();
        let (mut vectors, is_fixed) = match way {
            Way::Transfer => Self::data_parts(ring, queue, transfer, &run),
            Way::WriteZeros => (self.zero_parts(len), false),
            _ => (Box::default(), false),
        };
        let (is_cached, has_cache) = self.files.needs_cache(first.file, offset, len, &vectors);
        let is_stable = first.fua && self.files.keeps_dsync(first.file, is_cached);
        let flags = if is_stable { libc::RWF_DSYNC } else { 0 };
        if has_cache && self.has_to_wait(&first, offset..offset + len, is_cached) {
            self.held.push((io, run, way));
            return Ok(());
        }
        let cached = self.files.cached_fd(first.file).filter(|_| is_cached);
        let fd = cached.map_or_else(|| self.fd(first.file), Fd);
        // One that is alone is done soonest here.
        let is_copy = way == Way::Transfer && len >= LARGE && !queue.is_alone();
        let is_in_memory = self.files.is_in_memory(first.file);
        let is_copied = is_in_memory || is_cached || self.files.is_copied(first.file);
        let is_apart = is_copy && is_copied && ring.has_worker(len);
        let is_copied_here = is_copy && is_in_memory && len >= LONG && !is_apart;
        if is_copied_here && self.is_copying {
            self.to_copy.push_back((io, run, way));
            return Ok(());
        }
        let harm = self
            .injector
            .as_ref()
            .and_then(|i| i.hit(way.fault(first.op), first.file, &(offset..offset + len)));
        let short = match harm {
            Some(Harm::Short(most)) => Some(most),
            _ => is_copied_here.then_some(COPY_MAX),
        };
        if vectors.len() > VECTORS_MAX {
            // The rest follows, as with any operation that does less than all.
            vectors = vectors[..VECTORS_MAX].into();
        }
        if let Some(most) = short {
            let used = shorten(&mut vectors, most);
            vectors = vectors[..used].into();
        }
        let count = vectors.len() as u32;
        let operation = match (way, vectors.as_ref(), first.op) {
            (Way::Transfer, [one], Op::Read) if is_fixed => {
                ReadFixed::new(fd, one.iov_base.cast(), one.iov_len as u32, 0).offset(offset).build()
            }
            (Way::Transfer, [one], _) if is_fixed => {
                let write = WriteFixed::new(fd, one.iov_base.cast(), one.iov_len as u32, 0);
                write.offset(offset).rw_flags(flags).build()
            }
            (Way::Transfer, v, Op::Read) => Readv::new(fd, v.as_ptr(), count).offset(offset).build(),
            (Way::Transfer | Way::WriteZeros, v, _) => {
                Writev::new(fd, v.as_ptr(), count).offset(offset).rw_flags(flags).build()
            }
            (Way::PunchHole | Way::ZeroRange, ..) => {
                let is_hole = way == Way::PunchHole;
                let mode = if is_hole { libc::FALLOC_FL_PUNCH_HOLE } else { libc::FALLOC_FL_ZERO_RANGE };
                Fallocate::new(fd, len).offset(offset).mode(mode | libc::FALLOC_FL_KEEP_SIZE).build()
            }
            // The thread that looks it up is no part of the ring.
            (Way::Find, ..) => Nop::new().build(),
            (Way::Allocate(mode), ..) => Fallocate::new(fd, len).offset(offset).mode(mode.into()).build(),
        };
        let operation = self.for_caller(ring, &first, operation);
        self.beside += usize::from(is_cached);
        self.is_copying |= is_copied_here;
        let doing = Operation::Do(Doing { io, run, way, is_cached, is_copied_here, vectors });
        // SAFETY: the vectors are kept with the operation. The data belong to bios that the queue keeps,
        // where they are, until the io is finished there, which is after this operation's outcome; the zeros
        // are kept as long as the store.
        unsafe { self.send(ring, operation, doing, harm, is_apart) }
    }

    /// What changes a file is done on the rights of the caller that it is written for.
    fn for_caller(&self, ring: &mut Ring, piece: &Piece, operation: Entry) -> Entry {
        let caller = self.files.caller(piece.file).filter(|_| piece.op.changes());
        match caller {
            Some(caller) => operation.personality(ring.personality(caller)),
            None => operation,
        }
    }

    /// The memory of a run's bytes, and whether it is in the arena.
    fn data_parts(
        ring: &Ring,
        queue: &mut RequestQueue<Data>,
        transfer: &Transfer,
        run: &Run,
    ) -> (Box<[libc::iovec]>, bool) {
        let mut is_fixed = false;
        let mut parts = Vec::new();
        for (piece, bytes) in transfer.rest(run) {
            let (from, to) = (piece.at + bytes.start, piece.at + bytes.end);
            match queue.data(piece).as_mut().expect("reads were given some, writes brought some") {
                Data::Guest(guest) => {
                    is_fixed = false;
                    parts.extend(guest.vectors(from, to));
                }
                data => {
                    let data = data.memory_mut();
                    is_fixed = ring.is_registered() && data.is_fixed();
                    let data = &mut data[from as usize..to as usize];
                    parts.push(libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() });
                }
            }
        }
        (parts.into(), is_fixed)
    }

    /// Memory of `len` zeros.
    fn zero_parts(&self, len: u64) -> Box<[libc::iovec]> {
        let start = self.zeros.address().as_ptr().cast();
        let len_of = |at: u64| (len - at).min(self.zeros.len() as u64) as usize;
        let parts = (0..len).step_by(self.zeros.len());
        parts.map(|at| libc::iovec { iov_base: start, iov_len: len_of(at) }).collect()
    }

    /// A thread looks up what a question is about. Where there can be none, the answer is that there are
    /// data, which the file system may say, too.
    fn find(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        io: IoId,
        run: Run,
    ) -> io::Result<()> {
        let piece = self.transfers[&io.0].pieces()[run.pieces.start];
        let question = match queue.data(&piece) {
            Some(Data::Question(question)) => Some(*question),
            _ => None,
        };
        let number = self.operations.insert(Operation::Do(Doing {
            io,
            run,
            way: Way::Find,
            is_cached: false,
            is_copied_here: false,
            vectors: Box::default(),
        }));
        let files = self.files.files();
        let file = (piece.file, &files[piece.file.0 as usize].file);
        if question.is_some_and(|q| self.finder.ask(file, number, piece.offset, q).is_ok()) {
            return Ok(());
        }
        drop(files);
        if let Some(question) = question {
            *queue.data(&piece) = Some(Data::Extents(vec![(question.len, false)]));
        }
        // SAFETY: it names no memory.
        unsafe { ring.push(Nop::new().build(), Token::Store(number)) }
    }

    /// A thread has looked something up.
    pub(crate) fn found(&mut self, queue: &mut RequestQueue<Data>, number: usize, extents: Vec<Extent>) {
        let Some(Operation::Do(Doing { io, run, way: Way::Find, .. })) = self.operations.get(number) else {
            return;
        };
        let (io, run) = (*io, run.clone());
        self.operations.remove(number);
        let transfer = self.transfers.get_mut(&io.0).expect("in flight");
        *queue.data(&transfer.pieces()[run.pieces.start]) = Some(Data::Extents(extents));
        transfer.settle();
        self.end_if_done(io);
    }

    /// A run is done and waits until it is stable.
    fn wait_for_sync(&mut self, ring: &mut Ring, file: FileId, run: (IoId, Run)) -> io::Result<()> {
        // It is only refused after one that was given up, and none is.
        let _ = self.unstable.ask(file, run);
        self.begin_syncs(ring)
    }

    /// Begins to sync the files that have runs to make stable and are not being synced.
    fn begin_syncs(&mut self, ring: &mut Ring) -> io::Result<()> {
        while let Some(file) = self.unstable.begin(None) {
            self.sync_in_turn(ring, file, Operation::Sync(file))?;
        }
        Ok(())
    }

    /// A file has been synced, or could not be: then the runs that are done are lost, too, whose sync has not
    /// begun, as the kernel reports an error only once.
    fn synced(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        file: FileId,
        result: Result<(), Errno>,
    ) -> io::Result<()> {
        let result = result.and(self.taken.remove(&file).map_or(Ok(()), Err));
        if let Err(errno) = result {
            queue.sync_failed(file, errno);
        }
        for (io, run) in self.unstable.done(file, result.is_ok()) {
            let transfer = self.transfers.get_mut(&io.0).expect("in flight");
            match result {
                Ok(()) => transfer.settle(),
                Err(errno) => transfer.lose(&run, errno),
            }
            self.end_if_done(io);
        }
        // A flush that waits comes before the next sync.
        self.sync_next(ring, queue, file, result)?;
        self.begin_syncs(ring)
    }

    /// An io ends if nothing of it is in flight.
    fn end_if_done(&mut self, io: IoId) {
        let Some(results) = self.transfers[&io.0].results() else { return };
        self.ended.push_back(Finished::Io(io, results.to_vec()));
        self.transfers.remove(&io.0);
    }

    /// Takes the next io or flush that has come to its end.
    pub(crate) fn next_finished(&mut self) -> Option<Finished> {
        self.ended.pop_front()
    }

    /// An operation came to an end.
    pub(crate) fn completed(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        number: usize,
        result: i32,
    ) -> io::Result<()> {
        let result = match self.injector.as_mut().map(|i| i.meaning(number, result)) {
            None => result,
            Some(Meaning::Outcome(result)) => result,
            Some(Meaning::Do(operation)) => {
                // SAFETY: it is not completed yet, so what it names is still there.
                unsafe { ring.push(operation, Token::Store(number))? };
                return Ok(());
            }
        };
        let outcome = u64::try_from(result).map_err(|_| Errno(-result));
        match self.operations.remove(number) {
            Operation::Flush(file) if outcome.is_err_and(is_temporary) => {
                self.files.sync_whole(file);
                self.flush(ring, file)
            }
            Operation::Flush(file) => {
                let result = outcome.map(|_| ());
                self.ended.push_back(Finished::Flush(file, result));
                self.sync_next(ring, queue, file, result)
            }
            Operation::Sync(file) if outcome.is_err_and(is_temporary) => {
                self.sync_in_turn(ring, file, Operation::Sync(file))
            }
            Operation::Sync(file) => self.synced(ring, queue, file, outcome.map(|_| ())),
            Operation::Do(doing) => {
                let io = doing.io;
                self.beside -= usize::from(doing.is_cached);
                self.is_copying &= !doing.is_copied_here;
                self.advance(ring, queue, doing, outcome)?;
                self.end_if_done(io);
                // Each that still has to wait is held again, behind those that came before it.
                let held = std::mem::take(&mut self.held);
                held.into_iter().try_for_each(|(io, run, way)| self.push(ring, queue, io, run, way))?;
                // While any waits, this thread has one to make, whose end comes here.
                while !self.is_copying || ring.has_worker(LONG) {
                    let Some((io, run, way)) = self.to_copy.pop_front() else { break };
                    self.push(ring, queue, io, run, way)?;
                }
                Ok(())
            }
        }
    }

    /// Whether an operation has to wait for another on the same pages, because one of the two goes through
    /// the page cache and one changes bytes. Direct reads wait for none: the kernel writes the pages first.
    fn has_to_wait(&self, first: &Piece, bytes: Range<u64>, is_cached: bool) -> bool {
        let changes = first.op.changes();
        if !(is_cached || changes && (self.beside > 0 || !self.held.is_empty())) {
            return false;
        }
        let is_in_the_way = |io: IoId, run: &Run| {
            let transfer = &self.transfers[&io.0];
            let other = transfer.pieces()[run.pieces.start];
            let from = other.offset + run.done;
            let len: u64 = transfer.rest(run).map(|(_, bytes)| u64::from(bytes.end - bytes.start)).sum();
            let is_near = from / PAGE * PAGE < bytes.end.next_multiple_of(PAGE)
                && bytes.start / PAGE * PAGE < (from + len).next_multiple_of(PAGE);
            (changes || other.op.changes()) && is_near && self.files.is_same(other.file, first.file)
        };
        // Direct reads are in the way of none.
        let is_read =
            |doing: &Doing| !self.transfers[&doing.io.0].pieces()[doing.run.pieces.start].op.changes();
        let at_work = self.operations.iter().any(|(_, operation)| match operation {
            Operation::Do(doing) if doing.is_cached => is_in_the_way(doing.io, &doing.run),
            Operation::Do(doing) => is_cached && !is_read(doing) && is_in_the_way(doing.io, &doing.run),
            _ => false,
        });
        at_work || self.held.iter().any(|(io, run, _)| is_in_the_way(*io, run))
    }

    fn advance(
        &mut self,
        ring: &mut Ring,
        queue: &mut RequestQueue<Data>,
        doing: Doing,
        outcome: Result<u64, Errno>,
    ) -> io::Result<()> {
        let Doing { io, run, way, is_cached, .. } = doing;
        if outcome.is_err_and(is_temporary) && !queue.is_given_up(io) {
            return self.push(ring, queue, io, run, way);
        }
        let transfer = self.transfers.get_mut(&io.0).expect("in flight");
        let first = transfer.pieces()[run.pieces.start];
        let all = transfer.rest(&run).map(|(_, bytes)| u64::from(bytes.end - bytes.start)).sum();
        let is_unsupported = match outcome {
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV)) => true,
            // A block device has no holes but of whole blocks.
            Err(Errno(libc::EINVAL)) => is_cached,
            _ => false,
        };
        let outcome = match way {
            Way::Transfer | Way::WriteZeros => outcome,
            Way::PunchHole if is_unsupported && first.op == Op::Discard => Ok(all),
            Way::PunchHole if is_unsupported => return self.push(ring, queue, io, run, Way::ZeroRange),
            Way::ZeroRange if is_unsupported => return self.push(ring, queue, io, run, Way::WriteZeros),
            Way::Find if !matches!(queue.data(&first), Some(Data::Extents(_))) => Err(Errno::IO),
            Way::PunchHole | Way::ZeroRange | Way::Allocate(_) | Way::Find => outcome.map(|_| all),
        };
        let is_written = matches!(way, Way::Transfer | Way::WriteZeros);
        let synced = self.files.synced_as(first.file);
        // What an earlier operation of the run wrote may have gone another way.
        let is_stable = || is_written && run.done == 0 && self.files.keeps_dsync(first.file, is_cached);
        if first.fua && outcome == Ok(all) && !is_stable() {
            return self.wait_for_sync(ring, synced, (io, run));
        }
        if let Err(errno) = outcome
            && first.fua
            && self.files.has_pages(first.file)
        {
            // It may be the error of a page which the kernel could not write before, and which it reports
            // only once.
            queue.sync_failed(synced, errno);
            if self.unstable.knows(synced) {
                self.taken.insert(synced, errno);
            }
        }
        match transfer.step(run, outcome) {
            Then::Do(runs) => runs.into_iter().try_for_each(|run| {
                if self.transfers[&io.0].rest(&run).next().is_none() {
                    return self.wait_for_sync(ring, synced, (io, run));
                }
                self.push(ring, queue, io, run, way)
            }),
            Then::ZeroFill(run) => {
                for (piece, bytes) in transfer.rest(&run) {
                    let data = queue.data(piece).as_mut().expect("read into");
                    if let Data::Guest(guest) = data {
                        guest.clear(piece.at + bytes.start, piece.at + bytes.end);
                        continue;
                    }
                    let data = data.memory_mut();
                    data.ends_at((piece.at + bytes.start) as usize);
                    data[(piece.at + bytes.start) as usize..(piece.at + bytes.end) as usize].fill(0);
                }
                Ok(())
            }
            Then::Done => Ok(()),
        }
    }
}

/// Writes a piece to a file in memory.
fn write_here(open: &Open, queue: &mut RequestQueue<Data>, piece: &Piece) -> io::Result<()> {
    let (from, to) = (piece.at as usize, (piece.at + piece.len) as usize);
    match queue.data(piece).as_mut().expect("writes brought some") {
        Data::Load(load) => load.store(open.file.as_fd(), piece.offset),
        Data::Guest(guest) => {
            let written = guest.write_to(open.file.as_fd(), piece.offset, piece.at, piece.at + piece.len)?;
            if written == u64::from(piece.len) { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        }
        data => open.file.write_all_at(&data.memory_mut()[from..to], piece.offset),
    }
}

/// Makes a piece of a file in memory read as zeros. Returns whether that could be done.
fn zero_here(open: &Open, zeros: &[u8], piece: &Piece) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match Way::of(piece.op) {
        Way::PunchHole => fallocate(&open.file, hole, piece.offset, piece.len.into()).is_ok(),
        // Such a file system has no other zeros.
        _ => open.file.write_all_at(&zeros[..piece.len as usize], piece.offset).is_ok(),
    }
}

/// Whether it may go well if it is tried again.
fn is_temporary(errno: Errno) -> bool {
    matches!(errno.0, libc::EAGAIN | libc::EINTR)
}

#[cfg(test)]
mod tests;
