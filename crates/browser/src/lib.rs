//! The lab in a browser: WebAssembly without imports, and the functions that its page calls.
//!
//! ```text
//!   page ── a question, JSON ──► room, call(ASK) ──► fairhead-lab ──► Answer, and a Film of each run, kept
//!        ◄── scene, JSON ─────────────────────────────────────────────┘
//!        ── call(FILM), call(RESULT), call(WHY), call(REPORT) ──► more of what is kept
//! ```
//!
//! Input and output are one buffer each. [`room`] makes the input as long as the page says and tells where it
//! is; the page writes UTF-8 there. [`call`] reads it and returns 1, or 0 if the output is one line that says
//! what is wrong. [`output`] and [`output_length`] tell where the output is, until the next call.
//!
//! The module imports nothing: no clock, no random numbers, no memory of the page. What comes out of a
//! question is what `fairhead run` writes on any machine, byte by byte; `cargo xtask page --check` compares.
//!
//! It does not draw. `page/` has the script that draws, and `cargo xtask page` puts all into one file.

mod desk;
pub mod film;

use std::cell::RefCell;

pub use desk::Desk;
pub use film::Film;

/// What the page can ask for.
pub mod calls {
    /// What can be chosen: disks, loads, schedulers and their tunables, as JSON. No input.
    pub const CHOICES: u32 = 0;
    /// Answers a question, which is JSON, and keeps the answer. Output: the scene, as JSON.
    pub const ASK: u32 = 1;
    /// The film of a run of the answer: see [`crate::Film`]. Input: the run's index, as JSON.
    pub const FILM: u32 = 2;
    /// The bytes of `fairhead run --output-format json`. No input.
    pub const RESULT: u32 = 3;
    /// Where the time of a client went. Input: JSON with `run`, `name`, `from_us` and `to_us`.
    pub const WHY: u32 = 4;
    /// The page of `fairhead run --report`. No input.
    pub const REPORT: u32 = 5;
}

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static DESK: RefCell<Desk> = RefCell::default();
}

/// Makes the input `length` bytes long, and returns where it is. The page fills it before [`call`].
// SAFETY: no other symbol has this name; the module has no other exports than those of this file.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Answers one of [`calls`]: 1 if it went well, 0 if the output says what is wrong.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn call(what: u32) -> u32 {
    let input = INPUT.take();
    let answer = DESK.with_borrow_mut(|desk| desk.answer(what, &input));
    let (went_well, bytes) = match answer {
        Ok(bytes) => (1, bytes),
        Err(message) => (0, message.into_bytes()),
    };
    OUTPUT.set(bytes);
    went_well
}

/// Where the output of the last call is.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|bytes| bytes.as_ptr())
}

/// How many bytes the output of the last call has.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}
