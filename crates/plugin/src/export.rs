//! A Rust scheduler as a library: [`export!`](crate::export!) is what an author writes.
//!
//! The memory of an instance holds an elevator that merges nothing (the program's does) and issues what the
//! scheduler says. Each function repeats one call of the program's elevator, so that the scheduler sees the
//! same requests, states and times as it would inside the program.
//!
//! A panic does not pass into C: it ends the run with its text.

use crate::abi::{
    FH_EMPTY, FH_HOLD, FH_ISSUE, FH_KEEPS_CLASS, FH_KEEPS_LATENCY, FH_KEEPS_LEAF_WEIGHT, FH_KEEPS_MIN,
    FH_KEEPS_WEIGHT, FH_NO_TAG, FhRequest, FhSchedulerAnswer, FhSchedulerControl, FhSchedulerLimits,
    FhSchedulerOps, FhSchedulerTunable, VERSION,
};
use crate::words;
use fairhead_core::config::{Tunables, Unit};
use fairhead_core::sched::Scheduler;
use fairhead_core::{Cx, Dispatch, Edges, Elevator, Reason, Request, Tag};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Exports a scheduler from a library: its type, its name, what it does in a few words, and the settings of
/// control groups that it keeps, if any (`weight`, `leaf_weight`, `class`, `min_iops`, `latency`).
///
/// The crate's type is `cdylib` (and `rlib`, if its tests use the type). One library has one scheduler.
///
/// ```
/// use fairhead_core::sched::noop::Noop as Mine;
///
/// fairhead_plugin::export!(Mine, "mine", "order of arrival");
/// ```
#[macro_export]
macro_rules! export {
    ($scheduler:ty, $name:expr, $about:expr $(, $keeps:literal)* $(,)?) => {
        /// The scheduler's table, as `fairhead-scheduler.h` describes it.
        #[unsafe(no_mangle)]
        pub extern "C" fn fairhead_scheduler() -> *const $crate::abi::FhSchedulerOps {
            static TABLE: ::std::sync::OnceLock<$crate::abi::FhSchedulerOps> = ::std::sync::OnceLock::new();
            TABLE.get_or_init(|| {
                $crate::export::keep_panics();
                $crate::export::table::<$scheduler>($name, $about, &[$($keeps),*])
            })
        }
    };
}

/// A text for C that stays for as long as the library.
fn text(text: &str) -> *const c_char {
    CString::new(text.replace('\0', "?")).expect("no zero is left").into_raw()
}

/// The table of a scheduler. What it points to stays for as long as the library: [`export!`](crate::export!)
/// calls this once.
///
/// # Panics
/// If `keeps` has a word that is no setting of control groups.
#[must_use]
pub fn table<S: Scheduler>(name: &str, about: &str, keeps: &[&str]) -> FhSchedulerOps {
    let tunables: Vec<FhSchedulerTunable> = S::Config::LIST
        .iter()
        .map(|t| {
            let words: &[&str] = if let Unit::Choice(words) = t.unit { words } else { &[] };
            let word: Vec<*const c_char> = words.iter().map(|w| text(w)).collect();
            FhSchedulerTunable {
                name: text(t.name),
                effect: text(t.effect),
                min: t.min,
                max: t.max,
                preset: S::Config::default().get(t.name).unwrap_or(t.min),
                unit: words::unit_number(t.unit),
                words: u32::try_from(word.len()).unwrap_or(0),
                word: word.leak().as_ptr(),
            }
        })
        .collect();
    let keep = |word: &&str| match *word {
        "weight" => FH_KEEPS_WEIGHT,
        "leaf_weight" => FH_KEEPS_LEAF_WEIGHT,
        "class" => FH_KEEPS_CLASS,
        "min_iops" => FH_KEEPS_MIN,
        "latency" => FH_KEEPS_LATENCY,
        other => panic!("'{other}' is no setting of control groups"),
    };
    FhSchedulerOps {
        abi: VERSION,
        size: u32::try_from(size_of::<FhSchedulerOps>()).unwrap_or(0),
        name: text(name),
        about: text(about),
        tunable_count: u32::try_from(tunables.len()).unwrap_or(0),
        tunables: tunables.leak().as_ptr(),
        keeps: keeps.iter().map(keep).fold(0, |all, one| all | one),
        memory: Some(memory::<S>),
        create: Some(create::<S>),
        destroy: Some(destroy::<S>),
        insert: Some(insert::<S>),
        grown: Some(grown::<S>),
        remove: None,
        joined: Some(joined::<S>),
        dispatch: Some(dispatch::<S>),
        drain: Some(drain::<S>),
        complete: Some(complete::<S>),
        requeue: Some(requeue::<S>),
        reissue: Some(reissue::<S>),
        control: Some(control::<S>),
        retune: Some(retune::<S>),
        timer: Some(timer::<S>),
        next_timer: Some(next_timer::<S>),
        wants_run: Some(wants_run::<S>),
        prepare_merge: Some(prepare_merge::<S>),
        may_merge: Some(may_merge::<S>),
        has_room: Some(has_room::<S>),
        prefers: Some(prefers::<S>),
        front_merges: Some(front_merges::<S>),
        ends_only: Some(ends_only::<S>),
        neighbour: Some(neighbour::<S>),
        check: Some(check::<S>),
    }
}

thread_local! {
    /// The last panic, with its place.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the text of a panic for the line that ends the run, instead of printing it. Only for libraries: it
/// changes all panics of this copy of the standard library.
pub fn keep_panics() {
    // Place and text are on lines of their own.
    let line = |text: &str| text.replacen('\n', " ", 1);
    std::panic::set_hook(Box::new(move |info| PANIC.with(|p| *p.borrow_mut() = line(&info.to_string()))));
}

/// An instance in its memory.
struct Exported<S> {
    elevator: Elevator<S>,
    fail: Option<unsafe extern "C" fn(*const c_char)>,
}

impl<S: Scheduler> Exported<S> {
    /// The request, for a group that there is: its own may have been removed while a limit held it.
    fn at_home(&self, rq: Request) -> Request {
        Request { group: self.elevator.groups().home(rq.group), ..rq }
    }
}

/// Ends the run.
fn fail(by: Option<unsafe extern "C" fn(*const c_char)>) -> ! {
    let said = PANIC.with(|p| p.replace(String::new()));
    let said = if said.is_empty() { "a panic".to_owned() } else { said };
    if let Some(by) = by {
        // SAFETY: the program gave the function for this, and the text ends with a zero.
        unsafe { by(text(&said)) }
    }
    std::process::abort()
}

/// Calls `f` with the instance.
///
/// # Safety
/// `this` is an instance that `create` has made and `destroy` has not ended, and no other call uses it.
unsafe fn with<S, R>(this: *mut c_void, f: impl FnOnce(&mut Exported<S>) -> R) -> R {
    // SAFETY: as the caller says.
    let exported = unsafe { &mut *this.cast::<Exported<S>>() };
    let by = exported.fail;
    // After a panic the instance is not used again: the run ends.
    catch_unwind(AssertUnwindSafe(|| f(exported))).unwrap_or_else(|_| fail(by))
}

/// The request behind a pointer.
///
/// # Safety
/// It points to a request.
unsafe fn request(rq: *const FhRequest) -> Request {
    // SAFETY: as the caller says.
    unsafe { *rq }.to_core().expect("a request of the program")
}

unsafe extern "C" fn memory<S>(_limits: *const FhSchedulerLimits) -> usize {
    const { assert!(align_of::<Exported<S>>() <= 64, "the header promises 64") };
    size_of::<Exported<S>>()
}

/// The tunables from values in the order of the list; an error is the number of the one that is wrong.
fn config<S: Scheduler>(values: *const u64) -> Result<S::Config, i32> {
    let mut config = S::Config::default();
    for (i, tunable) in S::Config::LIST.iter().enumerate() {
        // SAFETY: the header promises a value for each tunable.
        let value = unsafe { *values.add(i) };
        config.set(tunable.name, value).map_err(|_| number(i))?;
    }
    Ok(config)
}

/// The number from 1 on of what is at an index.
fn number(index: usize) -> i32 {
    i32::try_from(index + 1).unwrap_or(i32::MAX)
}

unsafe extern "C" fn create<S: Scheduler>(
    this: *mut c_void,
    limits: *const FhSchedulerLimits,
    values: *const u64,
) -> i32 {
    // SAFETY: the header promises limits.
    let limits = unsafe { *limits };
    let made = catch_unwind(|| {
        let config = config::<S>(values)?;
        let core = limits.to_core().ok_or(-1)?;
        Elevator::<S>::new(core, config)
            .map_err(|e| S::Config::LIST.iter().position(|t| t.name == e.field).map_or(-1, number))
    });
    match made {
        Ok(Ok(elevator)) => {
            let exported = Exported { elevator, fail: limits.fail };
            // SAFETY: the memory is as large as `memory` says, and aligned to 64.
            unsafe { this.cast::<Exported<S>>().write(exported) };
            0
        }
        Ok(Err(which)) => which,
        Err(_) => fail(limits.fail),
    }
}

unsafe extern "C" fn destroy<S>(this: *mut c_void) {
    // SAFETY: an instance, which is not used again.
    unsafe { ptr::drop_in_place(this.cast::<Exported<S>>()) }
}

unsafe extern "C" fn insert<S: Scheduler>(this: *mut c_void, now: u64, tag: u16, rq: *const FhRequest) {
    // SAFETY: the header's rules, here and in all functions below: `this` is an instance, calls come one
    // after another, and pointers are to what the header says.
    unsafe {
        with::<S, _>(this, |e| {
            let rq = e.at_home(request(rq));
            e.elevator.insert_apart(words::instant(now), Tag(tag), rq);
        });
    }
}

unsafe extern "C" fn grown<S: Scheduler>(
    this: *mut c_void,
    now: u64,
    tag: u16,
    end: i32,
    added: u16,
    part: *const FhRequest,
    _whole: *const FhRequest,
) {
    let end = words::end(end).expect("an end");
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let part = e.at_home(request(part));
            e.elevator.insert_into(words::instant(now), Tag(added), part, Tag(tag), end);
        });
    }
}

unsafe extern "C" fn joined<S: Scheduler>(
    this: *mut c_void,
    now: u64,
    kept: u16,
    gone: u16,
    _whole: *const FhRequest,
) {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.join(words::instant(now), Tag(kept), Tag(gone))) }
}

/// Lets the scheduler choose, issues what it says, and writes the answer.
///
/// # Safety
/// As in `insert`.
unsafe fn decide<S: Scheduler>(
    this: *mut c_void,
    now: u64,
    to: *mut FhSchedulerAnswer,
    choose: impl FnOnce(&mut S, &mut Cx<'_>) -> Dispatch,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        with::<S, _>(this, |e| {
            let mut why = Reason::None;
            let decision = e.elevator.issue_by(words::instant(now), |sched, cx| {
                let decision = choose(sched, cx);
                why = cx.why;
                decision
            });
            let (answer, rest) = match decision {
                Dispatch::Issue(tag) => {
                    (FH_ISSUE, FhSchedulerAnswer { tag: tag.0, why: words::reason_number(why), hold: 0 })
                }
                Dispatch::Hold(hold) => {
                    (FH_HOLD, FhSchedulerAnswer { hold: words::hold_number(hold), ..Default::default() })
                }
                Dispatch::Empty => (FH_EMPTY, FhSchedulerAnswer::default()),
            };
            *to = rest;
            answer
        })
    }
}

unsafe extern "C" fn dispatch<S: Scheduler>(this: *mut c_void, now: u64, to: *mut FhSchedulerAnswer) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { decide::<S>(this, now, to, S::dispatch) }
}

unsafe extern "C" fn drain<S: Scheduler>(this: *mut c_void, now: u64, to: *mut FhSchedulerAnswer) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { decide::<S>(this, now, to, |s, cx| s.drain(cx).map_or(Dispatch::Empty, Dispatch::Issue)) }
}

unsafe extern "C" fn complete<S: Scheduler>(this: *mut c_void, now: u64, tag: u16, _rq: *const FhRequest) {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.complete(words::instant(now), Tag(tag)).for_each(drop)) }
}

unsafe extern "C" fn requeue<S: Scheduler>(this: *mut c_void, now: u64, tag: u16) {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.requeue(words::instant(now), Tag(tag))) }
}

unsafe extern "C" fn reissue<S: Scheduler>(this: *mut c_void, now: u64, tag: u16) {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let again = e.elevator.dispatch(words::instant(now));
            assert_eq!(again, Dispatch::Issue(Tag(tag)), "another request was given back first");
        });
    }
}

unsafe extern "C" fn control<S: Scheduler>(this: *mut c_void, now: u64, change: *const FhSchedulerControl) {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let change = (*change).to_core().expect("a change of the program");
            let done = e.elevator.control(words::instant(now), change);
            assert!(done.is_ok(), "a change that the program made is refused here: {done:?}");
        });
    }
}

unsafe extern "C" fn retune<S: Scheduler>(this: *mut c_void, now: u64, values: *const u64) -> i32 {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let Ok(config) = config::<S>(values) else { return 0 };
            i32::from(e.elevator.reconfigure(words::instant(now), config).unwrap_or(false))
        })
    }
}

unsafe extern "C" fn timer<S: Scheduler>(this: *mut c_void, now: u64) {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.timer(words::instant(now))) }
}

unsafe extern "C" fn next_timer<S: Scheduler>(this: *mut c_void, when: *mut u64, why: *mut u32) -> i32 {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let Some((at, timer)) = e.elevator.scheduler().next_timer() else { return 0 };
            (*when, *why) = (words::ns(at), words::timer_number(timer));
            1
        })
    }
}

unsafe extern "C" fn wants_run<S: Scheduler>(this: *mut c_void) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.scheduler().wants_run().into()) }
}

unsafe extern "C" fn prepare_merge<S: Scheduler>(this: *mut c_void, now: u64, rq: *const FhRequest) {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            let rq = request(rq);
            e.elevator.override_state(words::instant(now), |sched, cx| sched.prepare_merge(cx, &rq));
        });
    }
}

unsafe extern "C" fn may_merge<S: Scheduler>(this: *mut c_void, into: u16, rq: *const FhRequest) -> i32 {
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| {
            e.elevator.scheduler().may_merge(e.elevator.requests(), Tag(into), &request(rq)).into()
        })
    }
}

unsafe extern "C" fn has_room<S: Scheduler>(this: *mut c_void, rq: *const FhRequest) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.scheduler().has_room(&request(rq)).into()) }
}

unsafe extern "C" fn prefers<S: Scheduler>(this: *mut c_void, done: *const FhRequest) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.scheduler().prefers(&request(done)).into()) }
}

unsafe extern "C" fn front_merges<S: Scheduler>(this: *mut c_void) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.scheduler().front_merges().into()) }
}

unsafe extern "C" fn ends_only<S: Scheduler>(this: *mut c_void) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| (e.elevator.scheduler().edges() == Edges::Ends).into()) }
}

unsafe extern "C" fn neighbour<S: Scheduler>(this: *mut c_void, tag: u16, end: i32) -> u16 {
    let end = words::end(end).expect("an end");
    // SAFETY: as in `insert`.
    unsafe {
        with::<S, _>(this, |e| e.elevator.scheduler().neighbour(Tag(tag), end).map_or(FH_NO_TAG, |t| t.0))
    }
}

unsafe extern "C" fn check<S: Scheduler>(this: *mut c_void) -> i32 {
    // SAFETY: as in `insert`.
    unsafe { with::<S, _>(this, |e| e.elevator.scheduler().check(e.elevator.requests())) }
    0
}
