//! A panic before or after the work of a drawn call: nothing is lost or doubled, and what waits goes out in
//! order of arrival.

use super::Fault;
use crate::calls::*;
use crate::create::{fh_create_with, fh_destroy, fh_limits_init};
use crate::instance::Instance;
use crate::observe::{fh_check, fh_is_poisoned};
use crate::types::*;
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use fairhead_core::sched::any::PRESETS;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::VecDeque;
use std::ffi::CString;

const TAGS: u16 = 24;

unsafe extern "C" fn get(_: *mut c_void, size: usize, align: usize) -> *mut c_void {
    // SAFETY: an instance is not of size 0.
    unsafe { alloc(Layout::from_size_align(size, align).expect("a layout")).cast() }
}

unsafe extern "C" fn give(_: *mut c_void, at: *mut c_void, size: usize) {
    // SAFETY: from `get`, with the alignment of an instance.
    unsafe { dealloc(at.cast(), Layout::from_size_align(size, align_of::<Instance>()).expect("a layout")) };
}

fn create(scheduler: &CStr) -> *mut Instance {
    let (mut limits, mut made) = (FhLimits::defaults(), null_mut());
    let allocator = FhAllocator { alloc: Some(get), free: Some(give), context: null_mut() };
    // SAFETY: everything pointed to is there.
    unsafe {
        assert_eq!(fh_limits_init(&raw mut limits), FH_OK);
        (limits.tags, limits.groups, limits.queue_depth) = (TAGS.into(), 3, 4);
        let status =
            fh_create_with(&allocator, &limits, scheduler.as_ptr(), null(), 0, &mut made, null_mut());
        assert_eq!(status, FH_OK);
    }
    made
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
}

/// A driver that keeps its own account of each tag.
struct Driver {
    at: *mut Instance,
    chance: Random,
    now: u64,
    /// Tags that wait, those that were handed back first, others in order of arrival.
    waiting: VecDeque<u16>,
    /// Tags at the device, each with those it carries.
    issued: Vec<(u16, Vec<u16>)>,
    free: Vec<u16>,
    /// What a tag that was handed back carries.
    keeps: Vec<Option<Vec<u16>>>,
    removed: Vec<u16>,
}

impl Driver {
    fn new(scheduler: &CStr, seed: u64, fault: Fault) -> Self {
        let at = create(scheduler);
        // SAFETY: it was made just now, and no call is in it.
        unsafe { (*at).fault = Some(fault) };
        let keeps = vec![None; TAGS.into()];
        let chance = Random(seed * 2 + 1);
        let (waiting, issued, removed) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { at, chance, now: 1, waiting, issued, free: (0..TAGS).collect(), keeps, removed }
    }

    fn is_poisoned(&self) -> bool {
        // SAFETY: an instance.
        unsafe { fh_is_poisoned(self.at, null_mut()) == 1 }
    }

    fn insert(&mut self) {
        if self.free.is_empty() {
            return;
        }
        let tag = self.free.swap_remove(self.chance.below(self.free.len() as u64) as usize);
        let request = FhRequest {
            sector: self.chance.below(40) * 8,
            sectors: 8,
            task: self.chance.below(3) as u32,
            group: self.chance.below(3) as u32,
            op: self.chance.below(2) as u8,
            prio_class: 1,
            prio_level: 4,
            flags: 0,
        };
        // SAFETY: an instance, and a request.
        let status = unsafe { fh_insert(self.at, self.now, tag, &request, null_mut()) };
        assert!(status >= 0, "insert: {status}");
        self.waiting.push_back(tag);
    }

    /// Dispatches once. Returns whether a request came.
    fn dispatch(&mut self) -> bool {
        let was_poisoned = self.is_poisoned();
        let mut tag = FH_NO_TAG;
        // SAFETY: an instance, and a tag.
        match unsafe { fh_dispatch(self.at, self.now, &mut tag, null_mut()) } {
            FH_ISSUE => {
                let (mut carried, mut count) = ([0; TAGS as usize], 0);
                // SAFETY: an instance, and room for all tags.
                let status =
                    unsafe { fh_carried(self.at, tag, carried.as_mut_ptr(), TAGS.into(), &mut count) };
                assert_eq!(status, FH_OK);
                if was_poisoned {
                    assert_eq!(self.waiting.front(), Some(&tag), "first in, first out");
                }
                self.take(tag);
                let carried = carried[..count].to_vec();
                match self.keeps[usize::from(tag)].take() {
                    Some(kept) => assert_eq!(carried, kept, "what was handed back is as it was"),
                    None => carried.iter().for_each(|&part| self.take(part)),
                }
                self.issued.push((tag, carried));
                true
            }
            FH_GONE => {
                self.take(tag);
                let at = self.removed.iter().position(|&t| t == tag).expect("it was removed");
                self.removed.swap_remove(at);
                self.keeps[usize::from(tag)] = None;
                self.free.push(tag);
                true
            }
            FH_EMPTY => {
                assert!(self.waiting.is_empty(), "empty, but these wait: {:?}", self.waiting);
                false
            }
            FH_HOLD => {
                assert!(!was_poisoned, "a poisoned instance does not idle");
                false
            }
            other => panic!("dispatch: {other}"),
        }
    }

    /// A tag waits no longer.
    fn take(&mut self, tag: u16) {
        let at = self.waiting.iter().position(|&t| t == tag);
        self.waiting.remove(at.expect("issued once, and only what waits"));
    }

    fn finish(&mut self, hand_back: bool) {
        if self.issued.is_empty() {
            return;
        }
        let which = self.chance.below(self.issued.len() as u64) as usize;
        let (tag, carried) = self.issued.swap_remove(which);
        if hand_back {
            // SAFETY: an instance.
            assert_eq!(unsafe { fh_requeue(self.at, self.now, tag) }, FH_OK);
            self.waiting.push_front(tag);
            self.keeps[usize::from(tag)] = Some(carried);
            return;
        }
        let (mut freed, mut count) = ([0; TAGS as usize], 0);
        // SAFETY: an instance, and room for all tags.
        let status =
            unsafe { fh_complete(self.at, self.now, tag, freed.as_mut_ptr(), TAGS.into(), &mut count) };
        assert_eq!(status, FH_OK);
        assert_eq!((freed[0], &freed[1..count]), (tag, &carried[..]), "what was issued is completed");
        self.removed.retain(|t| !freed[..count].contains(t));
        self.free.extend(&freed[..count]);
    }

    fn remove(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let tag = self.waiting[self.chance.below(self.waiting.len() as u64) as usize];
        // SAFETY: an instance.
        assert_eq!(unsafe { fh_remove(self.at, tag) }, FH_OK);
        if !self.removed.contains(&tag) {
            self.removed.push(tag);
        }
    }

    fn step(&mut self) {
        self.now += self.chance.below(400_000);
        match self.chance.below(20) {
            0..8 => self.insert(),
            8..13 => {
                let _ = self.dispatch();
            }
            13..17 => self.finish(false),
            17 => self.finish(true),
            18 => self.remove(),
            // SAFETY: an instance.
            _ => assert_eq!(unsafe { fh_timer(self.at, self.now) }, FH_OK),
        }
    }

    /// Serves everything.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            self.now += 50_000_000;
            // SAFETY: an instance.
            unsafe { fh_timer(self.at, self.now) };
            while self.dispatch() {}
            while !self.issued.is_empty() {
                self.finish(false);
            }
            if self.waiting.is_empty() {
                return;
            }
        }
        panic!("these wait for ever: {:?}", self.waiting);
    }
}

fn run(scheduler: &CStr, seed: u64) -> bool {
    let mut chance = Random(seed * 77 + 5);
    let fault = Fault { calls: chance.below(150) as u32, after: chance.below(2) == 1 };
    let mut driver = Driver::new(scheduler, seed, fault);
    for _ in 0..300 {
        driver.step();
    }
    driver.drain();
    assert_eq!(driver.free.len(), usize::from(TAGS), "every tag is free again");
    let poisoned = driver.is_poisoned();
    let mut said = FhError { text: [0; 112] };
    // SAFETY: an instance.
    unsafe {
        fh_is_poisoned(driver.at, &mut said);
        assert_eq!(fh_check(driver.at), if poisoned { FH_E_POISONED } else { FH_OK });
        assert_eq!(fh_destroy(driver.at), FH_OK);
    }
    if poisoned {
        let text = CStr::from_bytes_until_nul(&said.text).expect("a zero").to_str().expect("text");
        assert!(text.starts_with("drawn: "), "{text}");
    }
    poisoned
}

#[test]
fn after_a_panic_nothing_is_lost_or_doubled() {
    // The message of each drawn panic is not of interest.
    std::panic::set_hook(Box::new(|info| {
        let said = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if !said.starts_with("drawn: ") {
            eprintln!("{info}");
        }
    }));
    let mut poisoned = 0;
    for preset in PRESETS {
        let name = CString::new(preset.name).expect("a name");
        for seed in 1..=60 {
            poisoned += u32::from(run(&name, seed));
        }
    }
    // The fault is drawn among the first calls, so it nearly always comes.
    assert!(poisoned > 1000, "{poisoned} of 1380 cases panicked");
}
