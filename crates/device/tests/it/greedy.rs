//! What ageing in a drive's queue is for: without it a far command waits for as long as near ones keep
//! coming, and no longer.
//= docs/reference/devices.md#16-queueing type=test

use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};

const FAR: Tag = Tag(99);

/// Keeps 30 reads within the first 100 MiB in the drive's queue for 10 s, beside one at its other end; then
/// lets it drain. How long the far one took.
fn far_read(preset: &str) -> Duration {
    let params = DeviceParams::preset(preset).unwrap_or_else(|e| panic!("{e}"));
    let mut disk = Device::new(&params).unwrap_or_else(|e| panic!("{e}"));
    let (begin, mut now, mut state) = (Instant::EPOCH, Instant::EPOCH, 7_u64);
    let mut near = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Sector((state >> 33) % 200_000)
    };
    let read = |tag, start| Command { tag, op: DeviceOp::Read, start, len: Sectors(8), fua: false };
    // The first comes to a drive at rest and is served at once.
    (0..30).for_each(|i| disk.submit(now, read(Tag(i), near())));
    disk.submit(now, read(FAR, Sector(disk.facts().capacity - 8)));
    while let Some(event) = disk.next_event() {
        now = event;
        while let Some(tag) = disk.poll(now) {
            if tag == FAR {
                return now.since(begin);
            }
            if now < begin + Duration::from_secs(10) {
                disk.submit(now, read(tag, near()));
            }
        }
    }
    panic!("{preset}: the far read was never done")
}

#[test]
fn a_drive_with_ageing_serves_what_is_far_in_time() {
    let took = far_read("nas2020");
    // `age_max` and a few accesses.
    assert!(took > Duration::from_ms(100) && took < Duration::from_ms(600), "{took}");
}

#[test]
fn a_greedy_drive_serves_what_is_far_only_when_nothing_else_is_left() {
    let took = far_read("greedy_ncq");
    assert!(took > Duration::from_secs(10), "starved while near ones came: {took}");
    // 30 reads of 20 ms at the very most.
    assert!(took < Duration::from_ms(10_600), "but not for ever: {took}");
}
