//! The ring: io_uring as far as the engine uses it.
//!
//! One thread has it. Operations are put in line and go to the kernel when the thread waits, all at once; it waits for the first
//! outcome, or until a time, in the same call, so idling costs no timer. Each operation carries a [`Token`] that comes back.
//!
//! What it does not do: know what operations are about. Whoever puts one in line answers for the memory that it names.

use fairhead_core::units::Duration;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, squeue};
use std::io;
use std::ptr::NonNull;

/// Who an outcome is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// Another thread has something to say.
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

/// Operations that can be in line; outcomes that can wait.
const ENTRIES: u32 = 256;
const OUTCOMES: u32 = 8192;

pub(crate) struct Ring {
    ring: IoUring,
}

impl Ring {
    /// A ring for the calling thread alone.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Says when outcomes wait to be heard, so that a turn that does not wait hears them, too.
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(OUTCOMES)
            .dontfork()
            .build(ENTRIES)?;
        Ok(Self { ring })
    }

    /// Tells the kernel of memory that many operations will name, as buffer 0. Answers whether it agrees; limits on locked memory may
    /// forbid it.
    ///
    /// # Safety
    /// The memory stays as long as the ring.
    pub(crate) unsafe fn register(&self, start: NonNull<u8>, len: usize) -> bool {
        let memory = [libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len }];
        // SAFETY: as the caller says.
        unsafe { self.ring.submitter().register_buffers(&memory) }.is_ok()
    }

    /// Puts an operation in line.
    ///
    /// # Safety
    /// What it names stays as it is until its outcome comes.
    pub(crate) unsafe fn push(&mut self, operation: squeue::Entry, token: Token) -> io::Result<()> {
        let operation = operation.user_data(token.encode());
        // SAFETY: as the caller says.
        while unsafe { self.ring.submission().push(&operation) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Sends what is in line, and waits for an outcome, but not longer than `most`; `None`: as long as it takes.
    pub(crate) fn wait(&mut self, most: Option<Duration>) -> io::Result<()> {
        let outcome = match most {
            Some(most) if most.is_zero() => self.ring.submit(),
            Some(most) => {
                let (s, ns) = (most.as_ns() / 1_000_000_000, most.as_ns() % 1_000_000_000);
                let time = Timespec::new().sec(s).nsec(ns as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
            None => self.ring.submit_and_wait(1),
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

    /// Whether there are outcomes, or work that makes some; found out without the kernel.
    pub(crate) fn has_news(&mut self) -> bool {
        self.ring.submission().taskrun() || !self.ring.completion().is_empty()
    }

    /// The next outcome that is here.
    pub(crate) fn next(&mut self) -> Option<Outcome> {
        let entry = self.ring.completion().next()?;
        Some(Outcome { token: Token::decode(entry.user_data()), result: entry.result() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::opcode::Read;
    use io_uring::types::Fd;
    use std::io::Write;
    use std::os::fd::AsRawFd;

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
    fn tokens_come_back_as_they_went() {
        for token in [Token::Wake, Token::Store(0), Token::Store(usize::MAX >> 2), Token::Front(3)] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }
}
