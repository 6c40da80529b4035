//! What becomes of a panic.
//!
//! **With std** a panic unwinds to [`caught`], which returns it as text; `instance.rs` then poisons the
//! instance. The default hook of the standard library has written the message to standard error before.
//!
//! **Without std**, for a kernel, nothing unwinds (`panic = "abort"`). The panic handler here writes the
//! message into a buffer on the stack and calls `fh_panic_hook`, a function that the linking side provides:
//!
//! ```c
//! _Noreturn void fh_panic_hook(const char *message, size_t length);
//! ```
//!
//! It must not return into Rust. It may end what runs (a kernel's `BUG()`), and with it the use of the
//! instance; or go back to where its own side called this library (a `longjmp`: frames of core hold nothing
//! that would have to be dropped). The call was then left in its middle: the next call on this instance finds
//! it still entered, and poisons it instead of refusing it, as it would with std. So a kernel's disk still
//! serves requests, first in first out. If the left call was `fh_create`, there is no instance in its memory,
//! and `fh_create_abandoned` must be called before the next creation. `fh_panic` panics on purpose, for
//! tests. The two are not in the header, as they are there without std only:
//!
//! ```c
//! void fh_create_abandoned(void);
//! int32_t fh_panic(fh_elevator *elevator);
//! ```

#[cfg(feature = "std")]
use crate::texts::Text;

/// Calls `f`; a panic is returned as its message.
#[cfg(feature = "std")]
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Text> {
    // Nothing that a panic may leave half done is used again: the caller poisons the instance.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|payload| {
        let message = payload.downcast_ref::<&str>().copied();
        let message = message.or_else(|| payload.downcast_ref::<std::string::String>().map(|s| s.as_str()));
        Text::of(message.unwrap_or("a panic without a message"))
    })
}

/// Calls `f`; a panic does not come back.
#[cfg(not(feature = "std"))]
#[allow(clippy::unnecessary_wraps, reason = "as with std")]
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, crate::texts::Text> {
    Ok(f())
}

#[cfg(all(not(feature = "std"), not(test)))]
#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    use core::ffi::c_char;
    use core::fmt::Write;
    unsafe extern "C" {
        fn fh_panic_hook(message: *const c_char, length: usize) -> !;
    }
    let mut text = crate::texts::Text::default();
    let _ = write!(text, "{info}");
    let said = text.as_str();
    // SAFETY: the linking side provides the function, as the header asks.
    unsafe { fh_panic_hook(said.as_ptr().cast(), said.len()) }
}
