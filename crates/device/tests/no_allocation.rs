//! A device allocates when it is made and never after: a kernel cannot wait for memory while a request is on
//! its way. One test in its own program, whose allocator counts by thread: the harness allocates, too,
//! whenever it gets a processor.

mod host;

use fairhead_core::units::{Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, DiskParams, preset_names};
use host::{Rng, disk};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to `System` unchanged, which keeps `GlobalAlloc`'s contract; counting does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // While a thread ends its locals are gone; nothing is measured then.
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A command of a load that changes its kind now and then: in sequence or anywhere, reads and writes.
fn drawn(rng: &mut Rng, sent: u64, next: &mut u64, capacity: u64, tag: u16) -> Command {
    let kind = (sent / 500) % 4;
    let len = match rng.below(8) {
        0 => 8,
        1..4 => 64,
        4..7 => 512,
        _ => 1024,
    };
    let anywhere = kind == 1 || (kind == 3 && rng.below(3) == 0);
    let start = match anywhere {
        true => rng.below(capacity - len) / 8 * 8,
        false if *next + len <= capacity => *next,
        false => 0,
    };
    if !anywhere {
        *next = start + len;
    }
    let writes = kind == 2 || (kind == 3 && rng.below(2) == 0);
    let op = match (writes, rng.below(400)) {
        (true, 0) => DeviceOp::Flush,
        (true, 1..3) => DeviceOp::Discard,
        (true, _) => DeviceOp::Write,
        (false, _) => DeviceOp::Read,
    };
    let fua = op == DeviceOp::Write && rng.below(50) == 0;
    Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(len as u32), fua }
}

/// Sends commands, as many at a time as the device takes. Returns how often it allocated memory meanwhile.
fn allocations(params: &DeviceParams, commands: u64) -> usize {
    let mut device = Device::new(params).expect("a preset");
    let capacity = device.facts().capacity;
    let mut free: Vec<u16> = (0..256).collect();
    let (mut rng, mut now, mut sent, mut next) = (Rng(0x9e37_79b9_7f4a_7c15), Instant::EPOCH, 0, 0);
    let before = ALLOCATIONS.get();
    while sent < commands || free.len() < 256 {
        while sent < commands && device.can_accept() {
            let Some(tag) = free.pop() else { break };
            let command = drawn(&mut rng, sent, &mut next, capacity, tag);
            device.submit(now, command);
            sent += 1;
        }
        now = device.next_event().expect("commands have been sent");
        while let Some(tag) = device.poll(now) {
            free.push(tag.0);
        }
    }
    ALLOCATIONS.get() - before
}

#[test]
fn no_device_allocates_after_it_was_made() {
    let queued = DeviceParams::Disk(DiskParams { queue_depth: 31, ..disk("sata2009") });
    let presets = preset_names().iter().map(|&name| (name, DeviceParams::preset(name).expect("a preset")));
    let all = presets.chain([("sata2009 with a queue", queued)]);
    let wrong: Vec<(&str, usize)> =
        all.map(|(name, params)| (name, allocations(&params, 20_000))).filter(|(_, n)| *n > 0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
