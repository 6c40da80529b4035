//! The ring: io_uring as far as the engine uses it.
//!
//! One thread has it. Operations are put in line and go to the kernel when the thread waits, all at once; it
//! waits for the first outcome, or until a time, in the same call, so idling costs no timer. Each operation
//! carries a [`Token`] that comes back.
//!
//! **Copies on other threads.** An operation that copies much, from or to a file in memory or a socket,
//! occupies its thread for as long: 50 to 100 us for a MiB. This thread has the scheduler and all sockets, so
//! nothing else happens meanwhile. Therefore large operations go to the kernel's workers of this ring, at
//! most [as many](Ring::set_threads) at a time; if all are busy, the thread does its share itself. An
//! operation that is alone stays with the thread, as nothing else waits for it: it costs no wake-up. The ring
//! keeps no order: a caller that needs one operation after another queues the second one when the first one's
//! outcome has come. Small operations never go elsewhere: to wake a worker costs more than to copy 4 KiB.
//!
//! What it does not do: know what operations are about. The caller that queues one answers for the memory
//! that it names.

use crate::rights::Caller;
use fairhead_core::units::Duration;
use io_uring::opcode::{AsyncCancel, MsgRingData};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, squeue};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

/// The owner of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// Another thread has put a message into the inbox.
    Wake,
    /// The store's operation of this number.
    Store(usize),
    /// The front's.
    Front(usize),
}

impl Token {
    const fn encode(self) -> u64 {
        match self {
            Self::Wake => 0,
            Self::Store(i) => (i as u64) << 2 | 1,
            Self::Front(i) => (i as u64) << 2 | 2,
        }
    }

    const fn decode(data: u64) -> Self {
        match data & 3 {
            1 => Self::Store((data >> 2) as usize),
            2 => Self::Front((data >> 2) as usize),
            _ => Self::Wake,
        }
    }
}

/// What an operation came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) token: Token,
    /// A count, or a negative errno.
    pub(crate) result: i32,
}

/// Copies of at least this many bytes are large: shorter ones cost less than to hand them over.
pub(crate) const LARGE: u64 = 32 << 10;

/// Copies of at least this many bytes are worth waking another thread, wherever they are from.
pub(crate) const LONG: u64 = 256 << 10;

/// A bit of the number that comes back: a worker does it.
const APART: u64 = 1 << 63;

/// The number of an operation whose outcome does not matter.
const QUIET: u64 = 3;

/// Operations that can be in line; outcomes that can wait.
const ENTRIES: u32 = 256;
const OUTCOMES: u32 = 8192;

/// The most callers that the kernel remembers for a ring.
const PERSONALITIES_MAX: usize = 1024;

/// The kernel's ring, with entries of 64 bytes, or of 128 where commands need them.
enum Line {
    Short(IoUring),
    Long(IoUring<squeue::Entry128>),
}

impl Line {
    fn submitter(&self) -> Submitter<'_> {
        match self {
            Self::Short(ring) => ring.submitter(),
            Self::Long(ring) => ring.submitter(),
        }
    }

    /// Sends what is in line.
    fn submit(&self) -> io::Result<usize> {
        self.submitter().submit()
    }

    /// Puts an operation in line, if there is room.
    ///
    /// # Safety
    /// As for [`Ring::push`].
    unsafe fn push(&mut self, operation: &squeue::Entry) -> Result<(), squeue::PushError> {
        match self {
            // SAFETY: as the caller says.
            Self::Short(ring) => unsafe { ring.submission().push(operation) },
            // SAFETY: as the caller says.
            Self::Long(ring) => unsafe { ring.submission().push(&operation.clone().into()) },
        }
    }

    /// Puts two linked operations in line, if there is room for both.
    ///
    /// # Safety
    /// As for [`Ring::push`].
    unsafe fn push_both(&mut self, both: [squeue::Entry; 2]) -> Result<(), squeue::PushError> {
        match self {
            // SAFETY: as the caller says.
            Self::Short(ring) => unsafe { ring.submission().push_multiple(&both) },
            // SAFETY: as the caller says.
            Self::Long(ring) => unsafe { ring.submission().push_multiple(&both.map(squeue::Entry128::from)) },
        }
    }

    /// Whether operations are in line; whether the kernel has work that makes outcomes; and whether it keeps
    /// some.
    fn state(&mut self) -> (bool, bool, bool) {
        match self {
            Self::Short(ring) => {
                let line = ring.submission();
                (!line.is_empty(), line.taskrun(), line.cq_overflow())
            }
            Self::Long(ring) => {
                let line = ring.submission();
                (!line.is_empty(), line.taskrun(), line.cq_overflow())
            }
        }
    }

    /// Whether there are outcomes.
    fn has_outcomes(&mut self) -> bool {
        match self {
            Self::Short(ring) => !ring.completion().is_empty(),
            Self::Long(ring) => !ring.completion().is_empty(),
        }
    }

    /// The next outcome that a token waits for.
    fn next(&mut self) -> Option<cqueue::Entry> {
        let matters = |entry: &cqueue::Entry| entry.user_data() != QUIET;
        match self {
            Self::Short(ring) => ring.completion().find(matters),
            Self::Long(ring) => ring.completion().find(matters),
        }
    }
}

pub(crate) struct Ring {
    ring: Line,
    /// The number of the thread that has it.
    hand: usize,
    /// Whether the kernel knows of the memory that is registered beforehand.
    is_registered: bool,
    /// How many operations workers may have at a time, and have.
    threads: u32,
    apart: u32,
    /// The numbers of the callers that operations were done for.
    personalities: BTreeMap<Caller, u16>,
}

impl Ring {
    /// A ring for the calling thread alone.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = Line::Short(Self::builder().build(ENTRIES)?);
        Ok(Self { ring, hand: 0, is_registered: false, threads: 0, apart: 0, personalities: BTreeMap::new() })
    }

    /// A ring for the calling thread alone, the engine's of this number, that also takes
    /// [commands](Self::push_command).
    pub(crate) fn with_commands(hand: usize) -> io::Result<Self> {
        let ring = Line::Long(Self::builder().build(ENTRIES)?);
        Ok(Self { ring, hand, is_registered: false, threads: 0, apart: 0, personalities: BTreeMap::new() })
    }

    /// The number of the engine's thread that has it.
    pub(crate) const fn hand(&self) -> usize {
        self.hand
    }

    pub(crate) fn fd(&self) -> RawFd {
        match &self.ring {
            Line::Short(ring) => ring.as_raw_fd(),
            Line::Long(ring) => ring.as_raw_fd(),
        }
    }

    /// Wakes the thread that waits in the ring of this descriptor. If that has gone, nothing becomes of it.
    pub(crate) fn nudge(&mut self, ring: RawFd) -> io::Result<()> {
        let message = MsgRingData::new(Fd(ring), 0, QUIET, None).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: it names no memory.
        unsafe { self.push_as(message, QUIET) }
    }

    /// Whether operations may name the memory that was [registered](Self::register).
    pub(crate) const fn is_registered(&self) -> bool {
        self.is_registered
    }

    fn builder<S: squeue::EntryMarker>() -> io_uring::Builder<S> {
        let mut builder = IoUring::<S, cqueue::Entry>::builder();
        builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Says when outcomes wait to be heard, so that a turn that does not wait hears them, too.
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(OUTCOMES)
            .dontfork();
        builder
    }

    /// Tells the kernel of memory that many operations will name, as buffer 0. Returns whether it agrees;
    /// limits on locked memory may forbid it.
    ///
    /// # Safety
    /// The memory stays as long as the ring.
    pub(crate) unsafe fn register(&mut self, start: NonNull<u8>, len: usize) -> bool {
        let memory = [libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len }];
        // SAFETY: as the caller says.
        self.is_registered = unsafe { self.ring.submitter().register_buffers(&memory) }.is_ok();
        self.is_registered
    }

    /// The number by which an operation is done [for a caller](crate::rights), with
    /// [`personality`](squeue::Entry::personality). If the kernel has no memory for another one, it is 0: the
    /// thread's own rights.
    pub(crate) fn personality(&mut self, caller: Caller) -> u16 {
        if let Some(&number) = self.personalities.get(&caller) {
            return number;
        }
        if self.personalities.len() >= PERSONALITIES_MAX && self.ring.submit().is_ok() {
            // What the kernel has by now keeps its caller.
            for number in std::mem::take(&mut self.personalities).into_values() {
                let _ = self.ring.submitter().unregister_personality(number);
            }
        }
        let made = caller.act().and_then(|_acting| self.ring.submitter().register_personality());
        let Ok(number) = made else { return 0 };
        self.personalities.insert(caller, number);
        number
    }

    /// Puts an operation in line.
    ///
    /// # Safety
    /// What it names stays as it is until its outcome comes.
    pub(crate) unsafe fn push(&mut self, operation: squeue::Entry, token: Token) -> io::Result<()> {
        // SAFETY: as the caller says.
        unsafe { self.push_as(operation, token.encode()) }
    }

    /// # Safety
    /// As for [`Self::push`].
    unsafe fn push_as(&mut self, operation: squeue::Entry, number: u64) -> io::Result<()> {
        let operation = operation.user_data(number);
        // SAFETY: as the caller says.
        while unsafe { self.ring.push(&operation) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Puts a command for a file in line, which only a ring [with commands](Self::with_commands) takes.
    ///
    /// # Safety
    /// As for [`Self::push`].
    ///
    /// # Panics
    /// If the ring takes none.
    pub(crate) unsafe fn push_command(&mut self, command: squeue::Entry128, token: Token) -> io::Result<()> {
        let command = command.user_data(token.encode());
        let Line::Long(ring) = &mut self.ring else { panic!("a ring that takes no commands") };
        // SAFETY: as the caller says.
        while unsafe { ring.submission().push(&command) }.is_err() {
            ring.submit()?;
        }
        Ok(())
    }

    /// Puts two operations in line. The second one begins when the first one has gone well, else it is
    /// cancelled. Its outcome has the token; that of the first one is not heard.
    ///
    /// # Safety
    /// As for [`Self::push`].
    pub(crate) unsafe fn push_linked(
        &mut self,
        [first, second]: [squeue::Entry; 2],
        token: Token,
    ) -> io::Result<()> {
        let first = first.flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS).user_data(QUIET);
        let both = [first, second.user_data(token.encode())];
        // SAFETY: as the caller says.
        while unsafe { self.ring.push_both(both.clone()) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Takes an operation back that was [put in line](Self::push) and waits for something. Its outcome still
    /// comes: `ECANCELED`, or its result if it was done before.
    pub(crate) fn cancel(&mut self, token: Token) -> io::Result<()> {
        // SAFETY: it names no memory.
        unsafe { self.push_as(AsyncCancel::new(token.encode()).build(), QUIET) }
    }

    /// Sets how many large operations workers may do at a time. At first 0: none.
    pub(crate) const fn set_threads(&mut self, threads: u32) {
        self.threads = threads;
    }

    /// How many large operations workers may do at a time.
    pub(crate) const fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether a worker is free for a copy of `bytes` bytes. Half of the workers are for long copies: to wake
    /// more than a few for short ones costs more than it saves.
    pub(crate) const fn has_worker(&self, bytes: u64) -> bool {
        self.apart < if bytes < LONG { self.threads.div_ceil(2) } else { self.threads }
    }

    /// Whether workers are at work.
    pub(crate) const fn has_busy_workers(&self) -> bool {
        self.apart > 0
    }

    /// Puts an operation in line that a worker does.
    ///
    /// # Safety
    /// As for [`Self::push`].
    pub(crate) unsafe fn push_apart(&mut self, operation: squeue::Entry, token: Token) -> io::Result<()> {
        self.apart += 1;
        let operation = operation.flags(squeue::Flags::ASYNC);
        // SAFETY: as the caller says.
        unsafe { self.push_as(operation, token.encode() | APART) }
    }

    /// Sends what is in line, and waits for an outcome, but not longer than `most`; `None`: as long as it
    /// takes.
    pub(crate) fn wait(&mut self, most: Option<Duration>) -> io::Result<()> {
        let outcome = match most {
            // Without work for it, there is no need to ask the kernel.
            Some(most) if most.is_zero() && !self.has_work() => return Ok(()),
            Some(most) if most.is_zero() => self.ring.submit(),
            Some(most) => {
                let (s, ns) = (most.as_ns() / 1_000_000_000, most.as_ns() % 1_000_000_000);
                let time = Timespec::new().sec(s).nsec(ns as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
            None => self.ring.submitter().submit_and_wait(1),
        };
        match outcome {
            Err(e)
                if !matches!(
                    e.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) =>
            {
                Err(e)
            }
            _ => Ok(()),
        }
    }

    /// Whether the kernel has anything to do: operations in line, outcomes that it keeps, or work that makes
    /// some.
    fn has_work(&mut self) -> bool {
        let (in_line, has_work, keeps_some) = self.ring.state();
        in_line || has_work || keeps_some
    }

    /// Whether there are outcomes, or work that makes some; found out without the kernel.
    pub(crate) fn has_news(&mut self) -> bool {
        self.ring.state().1 || self.ring.has_outcomes()
    }

    /// The next outcome that is here.
    pub(crate) fn next(&mut self) -> Option<Outcome> {
        let entry = self.ring.next()?;
        let number = entry.user_data();
        self.apart -= u32::from(number & APART != 0);
        Some(Outcome { token: Token::decode(number & !APART), result: entry.result() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::opcode::Read;
    use std::io::Write;

    #[test]
    fn who_never_waits_hears_all_the_same() {
        let mut ring = match Ring::new() {
            Ok(ring) => ring,
            Err(e) => return println!("skipped: io_uring: {e}"),
        };
        let (reader, mut writer) = io::pipe().unwrap();
        let mut byte = [0; 1];
        let read = Read::new(Fd(reader.as_raw_fd()), byte.as_mut_ptr(), 1).build();
        // SAFETY: the byte is here until the outcome is.
        unsafe { ring.push(read, Token::Wake) }.unwrap();
        ring.wait(Some(Duration::ZERO)).unwrap();
        assert!(ring.next().is_none(), "nothing to read yet");
        writer.write_all(&[7]).unwrap();
        let heard = (0..1_000_000).find_map(|_| {
            ring.wait(Some(Duration::ZERO)).unwrap();
            ring.next()
        });
        assert_eq!((heard.expect("it has come").result, byte), (1, [7]));
    }

    #[test]
    fn what_is_taken_back_has_an_outcome_and_the_rest_waits_on() {
        let mut ring = match Ring::new() {
            Ok(ring) => ring,
            Err(e) => return println!("skipped: io_uring: {e}"),
        };
        let (reader, mut writer) = io::pipe().unwrap();
        for number in 0..2 {
            let poll = io_uring::opcode::PollAdd::new(Fd(reader.as_raw_fd()), libc::POLLIN as u32).build();
            // SAFETY: it names no memory.
            unsafe { ring.push(poll, Token::Front(number)) }.unwrap();
        }
        ring.cancel(Token::Front(0)).unwrap();
        ring.cancel(Token::Store(9)).unwrap();
        let hear = |ring: &mut Ring| {
            let heard = (0..100).find_map(|_| {
                ring.wait(Some(Duration::from_ms(100))).unwrap();
                ring.next()
            });
            heard.map(|outcome| (outcome.token, outcome.result)).expect("it has come")
        };
        assert_eq!(hear(&mut ring), (Token::Front(0), -libc::ECANCELED));
        assert!(ring.next().is_none(), "what there is not cannot be taken back, and says nothing");
        writer.write_all(&[7]).unwrap();
        assert_eq!(hear(&mut ring), (Token::Front(1), i32::from(libc::POLLIN)));
    }

    #[test]
    fn workers_are_bounded_and_free_again_after_the_outcome() {
        let mut ring = match Ring::new() {
            Ok(ring) => ring,
            Err(e) => return println!("skipped: io_uring: {e}"),
        };
        assert!(!ring.has_worker(LONG), "none at first");
        ring.set_threads(2);
        for round in 0..3 {
            let mut open = 0;
            while ring.has_worker(LONG) {
                assert_eq!(ring.has_worker(LARGE), open == 0, "half are for long ones");
                // SAFETY: it names no memory.
                unsafe { ring.push_apart(io_uring::opcode::Nop::new().build(), Token::Store(open)) }.unwrap();
                open += 1;
            }
            assert_eq!(open, 2, "round {round}");
            let mut heard = [false; 2];
            while heard.contains(&false) {
                ring.wait(Some(Duration::from_ms(100))).unwrap();
                while let Some(outcome) = ring.next() {
                    let Token::Store(i) = outcome.token else { panic!("{outcome:?}") };
                    assert!(!std::mem::replace(&mut heard[i], true), "{i} twice");
                }
            }
        }
    }

    #[test]
    fn tokens_come_back_as_they_went() {
        for token in [Token::Wake, Token::Store(0), Token::Store(usize::MAX >> 3), Token::Front(3)] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }
}
