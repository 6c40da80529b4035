// SPDX-License-Identifier: MIT OR GPL-2.0
//! The disk models of `crates/device` behind a C interface, for `simdisk.c`; `rust.sh` compiles it.
//!
//! The caller's part is that of every driver of a [`Device`]: submit while it accepts, one timer at the next
//! event, poll until nothing is done. It serialises calls on one device, and names only what it created.
//! Memory is allocated at creation alone. A panic (a bug of the driver or of a model) calls `sdm_panic`,
//! which does not return.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int};
use core::fmt::Write;
use fairhead_core::units::{Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};

unsafe extern "C" {
    fn sdm_alloc(size: usize, align: usize) -> *mut u8;
    fn sdm_free(at: *mut u8);
    fn sdm_panic(message: *const c_char, length: usize) -> !;
}

struct Kernel;

#[global_allocator]
static KERNEL: Kernel = Kernel;

// SAFETY: the C side allocates what is asked for, or nothing, and frees it.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size will do.
        unsafe { sdm_alloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: it is from `alloc`.
        unsafe { sdm_free(at) }
    }
}

/// A text of a fixed length; what goes beyond is left out.
struct Text<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for (to, from) in self.bytes.iter_mut().skip(self.used).zip(text.bytes()) {
            *to = from;
            self.used += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut bytes = [0; 200];
    let mut text = Text { bytes: &mut bytes, used: 0 };
    let _ = write!(text, "{info}");
    let used = text.used;
    // SAFETY: the bytes are there, and it does not return.
    unsafe { sdm_panic(bytes.as_ptr().cast(), used) }
}

/// The quotient of 128-bit numbers, which the compiler calls and the kernel does not have.
///
/// The models divide products of times, which mostly fit the processor's division of 128 bits by 64.
#[unsafe(no_mangle)]
extern "C" fn __udivti3(x: u128, by: u128) -> u128 {
    let (high, low) = ((x >> 64) as u64, x as u64);
    if by >> 64 == 0 && high < by as u64 {
        let quotient: u64;
        // SAFETY: the quotient fits 64 bits, as the upper half is below the divisor.
        unsafe {
            core::arch::asm!(
                "div {by}",
                by = in(reg) by as u64,
                inout("rax") low => quotient,
                inout("rdx") high => _,
                options(pure, nomem, nostack)
            );
        }
        return u128::from(quotient);
    }
    let (mut quotient, mut rest) = (0, 0_u128);
    for bit in (0..128).rev() {
        let carry = rest >> 127 != 0;
        rest = rest << 1 | (x >> bit) & 1;
        if carry || rest >= by {
            rest = rest.wrapping_sub(by);
            quotient |= 1 << bit;
        }
    }
    quotient
}

/// What the driver has to know of a disk.
#[repr(C)]
pub struct Facts {
    sectors: u64,
    max_sectors: u32,
    depth: u32,
    rotational: bool,
    write_cache: bool,
    fua: bool,
    name: [u8; 32],
}

/// What a disk has done.
#[repr(C)]
pub struct Counts {
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    hits: u64,
    busy_ns: u64,
}

fn create(text: &[u8]) -> Result<(DeviceParams, Device), alloc::string::String> {
    let text = core::str::from_utf8(text).map_err(|_| "not a row of numbers")?;
    let words: Result<Vec<u64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    let words = words.map_err(|_| "not a row of numbers, as `words DISK` writes it")?;
    let params = DeviceParams::from_words(&words).map_err(|e| alloc::format!("{e}"))?;
    let device = Device::new(&params).map_err(|e| alloc::format!("{e}"))?;
    Ok((params, device))
}

/// Makes a disk of a row of numbers. Null if that cannot be; `why` then says why, and ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_create(
    text: *const u8,
    length: usize,
    facts: *mut Facts,
    why: *mut u8,
    why_length: usize,
) -> *mut Device {
    // SAFETY: the caller gives the text with its length.
    match create(unsafe { core::slice::from_raw_parts(text, length) }) {
        Ok((params, device)) => {
            let f = device.facts();
            let mut name = [0; 32];
            let _ = Text { bytes: &mut name[..31], used: 0 }.write_str(params.name());
            // SAFETY: the caller gives room for it.
            unsafe {
                *facts = Facts {
                    sectors: f.capacity,
                    max_sectors: f.max_request.0,
                    depth: u32::from(f.queue_depth),
                    rotational: f.rotational,
                    write_cache: f.write_cache,
                    fua: f.fua,
                    name,
                };
            }
            Box::into_raw(Box::new(device))
        }
        Err(said) => {
            // SAFETY: the caller gives the buffer with its length, which is not 0.
            let bytes = unsafe { core::slice::from_raw_parts_mut(why, why_length) };
            bytes.fill(0);
            let end = bytes.len() - 1;
            let _ = Text { bytes: &mut bytes[..end], used: 0 }.write_str(&said);
            core::ptr::null_mut()
        }
    }
}

/// Gives a disk's memory back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_destroy(device: *mut Device) {
    // SAFETY: `sdm_create` made it, and the caller does not use it again.
    drop(unsafe { Box::from_raw(device) });
}

/// Whether it has room for a command.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_can_accept(device: *const Device) -> bool {
    // SAFETY: `sdm_create` made it.
    unsafe { &*device }.can_accept()
}

/// Hands over a command. `op`: 0 read, 1 write, 2 flush, 3 discard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_submit(
    device: *mut Device,
    now: u64,
    tag: u16,
    op: u32,
    start: u64,
    sectors: u32,
    fua: bool,
) {
    let op = match op {
        0 => DeviceOp::Read,
        1 => DeviceOp::Write,
        2 => DeviceOp::Flush,
        _ => DeviceOp::Discard,
    };
    let cmd = Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(sectors), fua };
    // SAFETY: `sdm_create` made it, and no other call on it runs.
    unsafe { &mut *device }.submit(Instant::from_ns(now), cmd);
}

/// When to poll next; the largest number: not before another command.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_next(device: *const Device) -> u64 {
    // SAFETY: `sdm_create` made it.
    unsafe { &*device }.next_event().map_or(u64::MAX, |at| at.as_ns())
}

/// The tag of a command that is done, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_poll(device: *mut Device, now: u64) -> c_int {
    // SAFETY: `sdm_create` made it, and no other call on it runs.
    unsafe { &mut *device }.poll(Instant::from_ns(now)).map_or(-1, |tag| c_int::from(tag.0))
}

/// What it has done until `now`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdm_counts(device: *const Device, now: u64, to: *mut Counts) {
    // SAFETY: `sdm_create` made it, and no other call changes it.
    let device = unsafe { &*device };
    let c = device.counters();
    // SAFETY: the caller gives room for it.
    unsafe {
        *to = Counts {
            reads: c.reads,
            writes: c.writes,
            bytes_read: c.bytes_read,
            bytes_written: c.bytes_written,
            hits: c.hits,
            busy_ns: device.busy_time(Instant::from_ns(now)).as_ns(),
        };
    }
}
