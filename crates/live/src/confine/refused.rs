//! Calls that were refused: one line for the first of each kind, and a count.
//!
//! The filter sends the thread that made the call a SIGSYS, with the registers as they were. The handler puts
//! `-EPERM` where the kernel puts results, so that the thread continues as if the kernel had refused. It
//! calls only what a handler may: it reads and writes atomics, and calls `write(2)`.
//!
//= man7 seccomp.2 SECCOMP_RET_TRAP

use super::calls;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The numbers of calls that have been told, a bit for each; larger ones share the last.
static TOLD: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// The number of system calls that confinement has refused in this process.
#[must_use]
pub fn refused_calls() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// From now on, SIGSYS is handled.
pub(super) fn listen() -> io::Result<()> {
    // SAFETY: all zeros are a valid action: no flags, and no signal blocked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = refuse as *const () as usize;
    // On the alternative stack where there is one: the call may have come from the end of a stack.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler is a function for SA_SIGINFO that calls only what a handler may.
    match unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What is in `si_code` if a filter sent the signal, and not a process.
const SYS_SECCOMP: i32 = 1;

extern "C" fn refuse(_signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes both, and they are valid as long as the handler runs.
    let (code, context) = unsafe { ((*info).si_code, &mut *context.cast::<libc::ucontext_t>()) };
    if code != SYS_SECCOMP {
        return;
    }
    let number = take_call(context);
    COUNT.fetch_add(1, Ordering::Relaxed);
    let index = usize::try_from(number).unwrap_or(usize::MAX).min(TOLD.len() * 64 - 1);
    let bit = 1 << (index % 64);
    if TOLD[index / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        Line::new(number).write();
    }
}

/// Returns the number of the call, and has it fail with EPERM.
#[cfg(target_arch = "x86_64")]
fn take_call(context: &mut libc::ucontext_t) -> i64 {
    let result = &mut context.uc_mcontext.gregs[libc::REG_RAX as usize];
    std::mem::replace(result, -i64::from(libc::EPERM))
}

/// Returns the number of the call, and has it fail with EPERM.
#[cfg(target_arch = "aarch64")]
fn take_call(context: &mut libc::ucontext_t) -> i64 {
    context.uc_mcontext.regs[0] = -i64::from(libc::EPERM) as u64;
    context.uc_mcontext.regs[8] as i64
}

/// There is no filter for other processors, so no call is refused.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn take_call(_context: &mut libc::ucontext_t) -> i64 {
    -1
}

/// A line of text, made without memory from the heap.
struct Line {
    bytes: [u8; 160],
    len: usize,
}

impl Line {
    fn new(number: i64) -> Self {
        let mut line = Self { bytes: [0; 160], len: 0 };
        line.push(b"fairhead: confinement: refused the system call ");
        match calls::name(number) {
            Some(name) => line.push(name.as_bytes()),
            None => line.push_number(number),
        }
        line.push(b" (EPERM); --no-confinement allows it\n");
        line
    }

    fn push(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(self.bytes.len() - self.len)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    fn push_number(&mut self, number: i64) {
        let (mut digits, mut left, mut at) = ([0; 20], number.unsigned_abs(), 20);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }

    fn write(&self) {
        // A line that cannot be written is lost; the count is not.
        // SAFETY: the kernel reads these bytes during the call only.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: i64) -> String {
        let line = Line::new(number);
        String::from_utf8(line.bytes[..line.len].to_vec()).unwrap()
    }

    #[test]
    fn a_call_is_named_or_numbered() {
        let named =
            "fairhead: confinement: refused the system call execve (EPERM); --no-confinement allows it\n";
        assert_eq!(line(libc::SYS_execve), named);
        assert!(line(9876).contains(" call 9876 (EPERM)"));
        assert!(line(0x4000_003b).contains(" call 1073741883 "), "an x32 call");
    }
}
