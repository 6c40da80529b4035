//! What a simulated client costs: memory for each of thousands. One test in its own program, as it counts all that the program allocates.

use fairhead_core::sched::any::{PRESETS, Preset};
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, Outcome, Scenario, job, simulate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is allocated, and the most that ever was.
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to `System` unchanged, which keeps `GlobalAlloc`'s contract; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn run(text: &str, preset: &Preset) -> Outcome {
    simulate(&Scenario {
        jobs: job::parse(text, "crowd.fio").unwrap(),
        disk: DeviceParams::preset("sata_ssd").unwrap(),
        host: Host::named("2020").unwrap(),
        scheduler: preset.name.to_owned(),
        config: (preset.config)(),
        seed: 1,
        interval: None,
        time_max: None,
        watch: None,
    })
    .unwrap()
}

/// The most that a run with so many clients had allocated at a time; each made so many calls.
fn peak(clients: u32, calls: u32, lines: &str, preset: &Preset) -> usize {
    let text = format!("[c]\nnumjobs={clients}\nsize=1m\nnumber_ios={calls}\n{lines}\n");
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let outcome = run(&text, preset);
    let made: u64 = outcome.clients.iter().map(|c| c.read.calls + c.write.calls).sum();
    assert_eq!(made, u64::from(clients * calls));
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn a_client_takes_at_most_20_kb() {
    // Every scheduler has a table of tasks; the host's part is the same with all of them.
    let with_all = PRESETS.iter().filter(|p| !p.has_controller() || p.name == "noop+groups");
    let mut cases: Vec<_> = with_all.map(|p| (p, "rw=randrw\ndirect=1", 10)).collect();
    let noop = &PRESETS[0];
    cases.extend([(noop, "rw=randread", 10), (noop, "rw=write", 10), (noop, "rw=randrw\ndirect=1", 100)]);
    for (preset, lines, calls) in cases {
        let (few, many) = (peak(96, calls, lines, preset), peak(4096, calls, lines, preset));
        let each = many.saturating_sub(few) / 4000;
        println!("{}, {}, {calls} calls: {each} bytes", preset.name, lines.replace('\n', " "));
        assert!(each <= 20_000, "{}, {lines}, {calls} calls: {each} bytes for each client", preset.name);
    }
}
