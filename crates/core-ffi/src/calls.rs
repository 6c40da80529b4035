//! The calls that each request makes: insert, merge notices, remove, dispatch, complete, requeue, the timer.
//!
//! Each function checks its arguments against the limits and the ledger, asks the elevator, and notes the
//! answer in the ledger. Where the elevator has no answer, because the instance is poisoned, the ledger's
//! counts. Contracts are in the header.

use crate::instance::{Instance, put, take, with};
use crate::ledger::Place;
use crate::types::*;
use core::slice;
use fairhead_core::{Dispatch, Insert, Instant, Request, Rest, Sector, Sectors, Tag, Timer};

/// How many requests of a batch are handed to the elevator at a time: what fits into a small frame.
const PIECE: usize = 8;

/// The state of a tag that exists.
fn place(it: &Instance, tag: u16) -> Result<Place, Status> {
    it.ledger.place(tag).ok_or(FH_E_TAG)
}

/// A tag that exists and is in this state.
fn expect(it: &Instance, tag: u16, wanted: Place) -> Result<Tag, Status> {
    if place(it, tag)? == wanted { Ok(Tag(tag)) } else { Err(FH_E_STATE) }
}

/// The answer to an insertion, and the request that it is a part of.
fn inserted(answer: Insert) -> (Status, u16) {
    match answer {
        Insert::Merged { into, end } => (end_number(end), into.0),
        _ => (FH_QUEUED, FH_NO_TAG),
    }
}

/// A request arrives.
///
/// # Safety
/// `at` points to an instance, `request` to a request, and `into`, if it is not null, to where a tag fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_insert(
    at: *mut Instance,
    now_ns: u64,
    tag: u16,
    request: *const FhRequest,
    into: *mut u16,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let (rq, alone) = take(request)?.to_core(it.limits.groups)?;
            let tag = expect(it, tag, Place::Free)?;
            let now = it.advance(now_ns)?;
            it.ledger.insert(tag.0);
            let answer =
                if alone { insert_alone(it, now, tag, rq) } else { it.healthy(|e| e.insert(now, tag, rq)) };
            // `inserted` would do; this is nine instructions less.
            if let Some(Insert::Merged { into: merged, end }) = answer {
                put(into, merged.0);
                return Ok(end_number(end));
            }
            put(into, FH_NO_TAG);
            Ok(FH_QUEUED)
        })
    }
}

/// A request arrives that is not merged.
#[cold]
#[inline(never)]
fn insert_alone(it: &mut Instance, now: Instant, tag: Tag, rq: Request) -> Option<Insert> {
    it.healthy(|e| e.insert_alone(now, tag, rq));
    None
}

/// Requests arrive together.
///
/// # Safety
/// `at` points to an instance, `batch` to `count` arrivals, and `done`, if it is not null, to where a number
/// fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_insert_batch(
    at: *mut Instance,
    now_ns: u64,
    batch: *mut FhArrival,
    count: usize,
    done: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(done, 0);
        with(at, |it| {
            if batch.is_null() && count > 0 {
                return Err(FH_E_NULL);
            }
            let all = if count == 0 { &mut [][..] } else { slice::from_raw_parts_mut(batch, count) };
            // A processor may read its clock before it gets the lock.
            let now = now_ns.max(it.now);
            let mut ready = 0;
            while ready < count {
                let (more, outcome) = insert_piece(it, now, &mut all[ready..]);
                ready += more;
                put(done, ready);
                outcome?;
            }
            Ok(FH_OK)
        })
    }
}

/// Inserts the first of several arrivals, with those behind it that make a piece: up to the first that is bad
/// or must stay alone. Returns how many were inserted.
fn insert_piece(it: &mut Instance, now: u64, rest: &mut [FhArrival]) -> (usize, Result<(), Status>) {
    let mut requests = [(Tag(0), Request::read(fairhead_core::TaskId(0), Sector(0), Sectors(1))); PIECE];
    let (mut ready, mut outcome) = (0, Ok(()));
    for (arrival, to) in rest.iter_mut().zip(&mut requests) {
        let request = arrival.request.to_core(it.limits.groups);
        match request.and_then(|rq| expect(it, arrival.tag, Place::Free).map(|tag| (rq, tag))) {
            Ok(((_, true), _)) if ready > 0 => break,
            Ok(((rq, alone), tag)) => {
                it.ledger.insert(tag.0);
                (arrival.answer, arrival.into) = (FH_QUEUED, FH_NO_TAG);
                if alone {
                    it.now = now;
                    it.healthy(|e| e.insert_alone(instant(now), tag, rq));
                    return (1, Ok(()));
                }
                *to = (tag, rq);
                ready += 1;
            }
            Err(error) => {
                (arrival.answer, arrival.into, outcome) = (error, FH_NO_TAG, Err(error));
                break;
            }
        }
    }
    insert_checked(it, now, &mut rest[..ready], &requests[..ready]);
    (ready, outcome)
}

/// Hands requests that are in the ledger to the elevator.
fn insert_checked(it: &mut Instance, now: u64, piece: &mut [FhArrival], requests: &[(Tag, Request)]) {
    it.now = now;
    let at = instant(now);
    let mut answers = piece.iter_mut();
    it.healthy(|e| {
        e.insert_batch(at, requests, |_, answer| {
            if let Some(arrival) = answers.next() {
                (arrival.answer, arrival.into) = inserted(answer);
            }
        });
    });
}

/// Whether the driver may make a request a part of another.
///
/// # Safety
/// `at` points to an instance and `request` to a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_may_merge(
    at: *mut Instance,
    now_ns: u64,
    into: u16,
    request: *const FhRequest,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let (rq, alone) = take(request)?.to_core(it.limits.groups)?;
            driver_merges(it)?;
            let waits = place(it, into)? == Place::Waits && !it.ledger.is_removed(into);
            let now = it.advance(now_ns)?;
            if alone || !waits {
                return Ok(0);
            }
            // A poisoned instance says no: the driver can always leave two requests apart.
            Ok(it.healthy(|e| e.may_merge(now, Tag(into), &rq)).unwrap_or(false).into())
        })
    }
}

/// An error unless the driver merges.
fn driver_merges(it: &Instance) -> Result<(), Status> {
    if it.limits.merges { Err(FH_E_STATE) } else { Ok(()) }
}

/// The driver made a request that waits longer.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_grow(at: *mut Instance, now_ns: u64, tag: u16, end: i32, sectors: u32) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            driver_merges(it)?;
            let tag = expect(it, tag, Place::Waits)?;
            let end = self::end(end).ok_or(FH_E_RANGE)?;
            let now = it.advance(now_ns)?;
            if it.is_poisoned() {
                return Ok(FH_OK);
            }
            let rq = it.elevator().requests()[tag].rq;
            let is_before = end == fairhead_core::End::Front && rq.start.0 < sectors.into();
            let is_after = rq.end().0.checked_add(sectors.into()).is_none();
            if sectors == 0 || is_before || is_after || rq.len.0.checked_add(sectors).is_none() {
                return Err(FH_E_REQUEST);
            }
            if !it.elevator().grows(tag) {
                return Err(FH_E_STATE);
            }
            it.healthy(|e| e.grow(now, tag, end, Sectors(sectors)));
            Ok(FH_OK)
        })
    }
}

/// The driver made two requests that wait one.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_joined(at: *mut Instance, now_ns: u64, kept: u16, gone: u16) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            driver_merges(it)?;
            let (kept, gone) = (expect(it, kept, Place::Waits)?, expect(it, gone, Place::Waits)?);
            let now = it.advance(now_ns)?;
            if kept == gone {
                return Err(FH_E_STATE);
            }
            if !it.is_poisoned() {
                let [k, g] = [kept, gone].map(|tag| it.elevator().requests()[tag].rq);
                if k.end() != g.start || k.len.0.checked_add(g.len.0).is_none() {
                    return Err(FH_E_REQUEST);
                }
                if !it.elevator().grows(kept) || !it.elevator().grows(gone) {
                    return Err(FH_E_STATE);
                }
            }
            it.healthy(|e| e.join(now, kept, gone));
            it.ledger.join(kept.0, gone.0);
            Ok(FH_OK)
        })
    }
}

/// A request that waits is not wanted any longer.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_remove(at: *mut Instance, tag: u16) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let tag = expect(it, tag, Place::Waits)?;
            it.ledger.remove(tag.0);
            Ok(FH_OK)
        })
    }
}

/// The device has room.
///
/// # Safety
/// `at` points to an instance, `tag` to where a tag fits, and `hold`, if it is not null, to where a number
/// fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_dispatch(
    at: *mut Instance,
    now_ns: u64,
    tag: *mut u16,
    hold: *mut u32,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            if tag.is_null() {
                return Err(FH_E_NULL);
            }
            it.advance(now_ns)?;
            let (status, issued, why) = dispatch(it);
            put(tag, issued);
            put(hold, why);
            Ok(status)
        })
    }
}

/// Dispatches once. Returns the answer, the request, and the reason to hold.
#[inline(always)]
fn dispatch(it: &mut Instance) -> (Status, u16, u32) {
    let now = instant(it.now);
    let tag = match it.healthy(|e| e.dispatch(now)) {
        Some(Dispatch::Issue(tag)) if it.note_issue(tag) => tag.0,
        Some(Dispatch::Hold(why)) => return (FH_HOLD, FH_NO_TAG, hold_number(why)),
        Some(Dispatch::Empty) => return (FH_EMPTY, FH_NO_TAG, 0),
        _ => return dispatch_first(it),
    };
    if it.ledger.has_removed() && it.ledger.is_removed(tag) && it.ledger.carried(tag).next().is_none() {
        return (end_removed(it, tag), tag, 0);
    }
    (FH_ISSUE, tag, 0)
}

/// The turn of a request that was removed: for the scheduler the device has served it at once.
#[cold]
#[inline(never)]
fn end_removed(it: &mut Instance, tag: u16) -> Status {
    let now = instant(it.now);
    it.ledger.complete(tag);
    it.healthy(|e| e.complete(now, Tag(tag)).count());
    FH_GONE
}

/// The ledger's answer.
#[cold]
fn dispatch_first(it: &mut Instance) -> (Status, u16, u32) {
    let Some(tag) = it.ledger.issue_first() else { return (FH_EMPTY, FH_NO_TAG, 0) };
    if it.ledger.is_removed(tag) && it.ledger.carried(tag).next().is_none() {
        it.ledger.complete(tag);
        return (FH_GONE, tag, 0);
    }
    (FH_ISSUE, tag, 0)
}

/// Dispatches until the room is used up.
///
/// # Safety
/// `at` points to an instance, `tags` to where `room` tags fit, `issued` to where a number fits, and `hold`,
/// if it is not null, to where another fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_dispatch_batch(
    at: *mut Instance,
    now_ns: u64,
    tags: *mut u16,
    room: usize,
    issued: *mut usize,
    hold: *mut u32,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(issued, 0);
        with(at, |it| {
            if issued.is_null() || tags.is_null() && room > 0 {
                return Err(FH_E_NULL);
            }
            it.now = now_ns.max(it.now);
            let tags = if room == 0 { &mut [][..] } else { slice::from_raw_parts_mut(tags, room) };
            let (status, count, why) = dispatch_many(it, tags);
            put(issued, count);
            put(hold, why);
            Ok(status)
        })
    }
}

/// Dispatches into `tags`. Returns the last answer, how many were issued, and the reason to hold.
fn dispatch_many(it: &mut Instance, tags: &mut [u16]) -> (Status, usize, u32) {
    let mut count = 0;
    if !it.is_poisoned() && !it.ledger.has_removed() {
        let (now, room) = (instant(it.now), tags.len());
        let rest = it.healthy(|e| {
            e.dispatch_batch(now, room, |tag| {
                tags[count] = tag.0;
                count += 1;
            })
        });
        if rest.is_none() {
            // Nothing was answered yet, so all of these still wait.
            count = 0;
        }
        let known = (0..count).take_while(|&i| it.note_issue(Tag(tags[i]))).count();
        match rest {
            Some(Rest::Full) if known == count => return (FH_FULL, count, 0),
            Some(Rest::Hold(why)) if known == count => return (FH_HOLD, count, hold_number(why)),
            Some(Rest::Empty) if known == count => return (FH_EMPTY, count, 0),
            _ => count = known,
        }
    }
    while count < tags.len() {
        let (status, tag, why) = dispatch(it);
        match status {
            FH_ISSUE => {
                tags[count] = tag;
                count += 1;
            }
            FH_GONE => {
                tags[count] = tag;
                return (FH_GONE, count, 0);
            }
            status => return (status, count, why),
        }
    }
    (FH_FULL, count, 0)
}

/// The device has finished a request.
///
/// # Safety
/// `at` points to an instance, `freed`, if it is not null, to where `room` tags fit, and `count`, if it is
/// not null, to where a number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_complete(
    at: *mut Instance,
    now_ns: u64,
    tag: u16,
    freed: *mut u16,
    room: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(count, 0);
        with(at, |it| {
            expect(it, tag, Place::Issued)?;
            it.advance(now_ns)?;
            if !freed.is_null() || !count.is_null() {
                let all = core::iter::once(tag).chain(it.ledger.carried(tag));
                put(count, write_tags(freed, room, all));
            }
            complete(it, tag);
            Ok(FH_OK)
        })
    }
}

/// Writes tags, as many as there is room for. Returns how many there are.
///
/// # Safety
/// `to` is null, or `room` tags fit there.
unsafe fn write_tags(to: *mut u16, room: usize, tags: impl Iterator<Item = u16>) -> usize {
    let mut count = 0;
    for tag in tags {
        if !to.is_null() && count < room {
            // SAFETY: the caller's promise.
            unsafe { to.add(count).write(tag) };
        }
        count += 1;
    }
    count
}

/// Completes a request that is at the device.
fn complete(it: &mut Instance, tag: u16) {
    let now = instant(it.now);
    it.ledger.complete(tag);
    it.healthy(|e| e.complete(now, Tag(tag)).count());
}

/// The device has finished a request, and the caller asks for the timer at once.
///
/// # Safety
/// `at` points to an instance; `when` and `why`, if they are not null, to where numbers fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_complete_timer(
    at: *mut Instance,
    now_ns: u64,
    tag: u16,
    when_ns: *mut u64,
    why: *mut u32,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            expect(it, tag, Place::Issued)?;
            let now = it.advance(now_ns)?;
            it.ledger.complete(tag);
            let timer = it.healthy(|e| {
                e.complete(now, Tag(tag)).count();
                e.next_timer()
            });
            Ok(put_timer(timer.flatten(), when_ns, why))
        })
    }
}

/// Writes when to call `fh_timer`, and why. Returns whether there is a time.
///
/// # Safety
/// `when_ns` and `why` are null or valid for writes.
unsafe fn put_timer(timer: Option<(Instant, Timer)>, when_ns: *mut u64, why: *mut u32) -> Status {
    let Some((when, reason)) = timer else { return 0 };
    // SAFETY: the caller's promise.
    unsafe {
        put(when_ns, clock(when));
        put(why, timer_number(reason));
    }
    1
}

/// The device has finished several requests.
///
/// # Safety
/// `at` points to an instance, `tags` to `count` tags, and `done`, if it is not null, to where a number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_complete_batch(
    at: *mut Instance,
    now_ns: u64,
    tags: *const u16,
    count: usize,
    done: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe { each_issued(at, now_ns, tags, count, done, complete) }
}

/// The device could not take a request, or gave it back.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_requeue(at: *mut Instance, now_ns: u64, tag: u16) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            expect(it, tag, Place::Issued)?;
            it.advance(now_ns)?;
            requeue(it, tag);
            Ok(FH_OK)
        })
    }
}

/// Hands back a request that is at the device.
fn requeue(it: &mut Instance, tag: u16) {
    let now = instant(it.now);
    it.ledger.requeue(tag);
    it.healthy(|e| e.requeue(now, Tag(tag)));
}

/// The device gave several requests back.
///
/// # Safety
/// `at` points to an instance, `tags` to `count` tags, and `done`, if it is not null, to where a number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_requeue_batch(
    at: *mut Instance,
    now_ns: u64,
    tags: *const u16,
    count: usize,
    done: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe { each_issued(at, now_ns, tags, count, done, requeue) }
}

/// Does something with each of several requests at the device, up to the first that is not.
///
/// # Safety
/// As [`fh_complete_batch`].
unsafe fn each_issued(
    at: *mut Instance,
    now_ns: u64,
    tags: *const u16,
    count: usize,
    done: *mut usize,
    work: impl Fn(&mut Instance, u16),
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(done, 0);
        with(at, |it| {
            if tags.is_null() && count > 0 {
                return Err(FH_E_NULL);
            }
            it.now = now_ns.max(it.now);
            for i in 0..count {
                let tag = tags.add(i).read();
                expect(it, tag, Place::Issued)?;
                work(it, tag);
                put(done, i + 1);
            }
            Ok(FH_OK)
        })
    }
}

/// What a request at the device carries.
///
/// # Safety
/// `at` points to an instance, `carried`, if it is not null, to where `room` tags fit, and `count` to where a
/// number fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_carried(
    at: *mut Instance,
    tag: u16,
    carried: *mut u16,
    room: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        put(count, 0);
        with(at, |it| {
            if count.is_null() {
                return Err(FH_E_NULL);
            }
            expect(it, tag, Place::Issued)?;
            put(count, write_tags(carried, room, it.ledger.carried(tag)));
            Ok(FH_OK)
        })
    }
}

/// The next request whatever the scheduler would rather wait for.
///
/// # Safety
/// `at` points to an instance and `tag` to where a tag fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_drain(at: *mut Instance, now_ns: u64, tag: *mut u16) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            if tag.is_null() {
                return Err(FH_E_NULL);
            }
            let now = it.advance(now_ns)?;
            let (status, issued, _) = match it.healthy(|e| e.drain(now)) {
                Some(None) => (FH_EMPTY, FH_NO_TAG, 0),
                Some(Some(drained)) if it.note_issue(drained) => {
                    if it.ledger.is_removed(drained.0) && it.ledger.carried(drained.0).next().is_none() {
                        (end_removed(it, drained.0), drained.0, 0)
                    } else {
                        (FH_ISSUE, drained.0, 0)
                    }
                }
                _ => dispatch_first(it),
            };
            put(tag, issued);
            Ok(status)
        })
    }
}

/// The time that `fh_next_timer` asked for has come.
///
/// # Safety
/// `at` points to an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_timer(at: *mut Instance, now_ns: u64) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let now = it.advance(now_ns)?;
            it.healthy(|e| e.timer(now));
            Ok(FH_OK)
        })
    }
}

/// When to call `fh_timer`.
///
/// # Safety
/// `at` points to an instance; `when` and `why`, if they are not null, to where numbers fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fh_next_timer(at: *mut Instance, when_ns: *mut u64, why: *mut u32) -> Status {
    // SAFETY: the caller's promises.
    unsafe {
        with(at, |it| {
            let timer = it.healthy(|e| e.next_timer());
            Ok(put_timer(timer.flatten(), when_ns, why))
        })
    }
}
