//! A link moves no more than its rate, reads and writes together, whatever the load. SATA is half duplex: one
//! direction at a time.

use crate::host;
use crate::host::Rng;
use fairhead_core::units::{Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, DiskParams, preset_names};

/// The payload rate of the link, if all that crosses it shares that.
fn shared_rate(p: &DeviceParams) -> Option<u64> {
    match p {
        DeviceParams::Disk(d) => Some(d.bus_rate),
        DeviceParams::Ssd(s) if s.half_duplex => Some(s.link_rate),
        _ => None,
    }
}

/// The state of a client of a drawn load: its place, the length of its calls, its direction.
struct Client {
    at: u64,
    sectors: u64,
    random: bool,
    writes: u64,
    fua: bool,
}

fn draw_client(r: &mut Rng, capacity: u64) -> Client {
    Client {
        at: r.below(capacity / 2),
        sectors: [8, 64, 256, 1024, 2048][r.below(5) as usize],
        random: r.below(3) == 0,
        writes: [0, 0, 50, 100, 100][r.below(5) as usize],
        fua: r.below(8) == 0,
    }
}

/// Clients without think time, one command each, for as long as `ns`. Bytes that have crossed the link by
/// then.
fn bytes_moved(dev: &mut Device, r: &mut Rng, ns: u64) -> u64 {
    let facts = dev.facts();
    let depth = u64::from(facts.queue_depth).min(32);
    let mut clients: Vec<Client> = (0..1 + r.below(depth)).map(|_| draw_client(r, facts.capacity)).collect();
    // Half of the loads stay in a small place: all hits.
    let span = if r.below(2) == 0 { 16_384 } else { facts.capacity };
    let mut now = Instant::from_ns(1_000);
    let (end, mut moved) = (Instant::from_ns(ns), 0);
    let mut ready: Vec<usize> = (0..clients.len()).collect();
    let mut sizes = vec![0; clients.len()];
    while now < end {
        while dev.can_accept()
            && let Some(c) = ready.pop()
        {
            let client = &mut clients[c];
            client.at = if client.random { r.below(span) } else { client.at + client.sectors };
            let (len, room) = (client.sectors, span - client.sectors);
            let op = if r.below(100) < client.writes { DeviceOp::Write } else { DeviceOp::Read };
            sizes[c] = len * 512;
            let (start, len) = (Sector(client.at % room), Sectors(len as u32));
            dev.submit(now, Command { tag: Tag(c as u16), op, start, len, fua: client.fua });
        }
        now = dev.next_event().expect("a command is in flight");
        while let Some(tag) = dev.poll(now) {
            if now <= end {
                moved += sizes[usize::from(tag.0)];
            }
            ready.push(usize::from(tag.0));
        }
    }
    moved
}

#[test]
fn reads_and_writes_together_move_no_more_than_the_link() {
    const MS: u64 = 1_000_000;
    for name in preset_names() {
        let params = DeviceParams::preset(name).unwrap();
        let Some(rate) = shared_rate(&params) else { continue };
        let mut most = 0;
        for seed in 1..120 {
            let mut r = Rng(seed * 7919 + 3);
            let mut dev = Device::new(&params).unwrap();
            let ms = 50 + r.below(300);
            let moved = bytes_moved(&mut dev, &mut r, ms * MS);
            let link = u128::from(rate) * u128::from(ms) / 1000;
            most = most.max(u128::from(moved) * 1000 / link);
            // A sector's time on the link is rounded to picoseconds, and each transfer to nanoseconds.
            assert!(
                u128::from(moved) * 10_000 <= link * 10_002,
                "{name}, load {seed}: {moved} bytes in {ms} ms"
            );
        }
        println!("{name}: at most {most} thousandths of the link");
    }
}

/// Every SATA drive among the presets: none has a direction of its own for writes.
#[test]
fn sata_drives_are_half_duplex() {
    for name in ["plextor_m5s", "sata_ssd"] {
        assert!(shared_rate(&DeviceParams::preset(name).unwrap()).is_some(), "{name}");
    }
}

/// Hits at full speed beside a reader in order, whose data come from the media: together they fill the link,
/// and the reader, one of nine in order of arrival, gets a ninth of it.
#[test]
fn hits_leave_the_media_their_share() {
    let p: DiskParams = host::disk("nas2020");
    let mut dev = Device::new(&DeviceParams::Disk(p.clone())).unwrap();
    let (mut now, end) = (Instant::from_ns(1_000), Instant::from_ns(300_000_000));
    let (mut at, mut moved) = (0, [0u64; 2]);
    let read = |tag, start| Command {
        tag: Tag(tag),
        op: DeviceOp::Read,
        start: Sector(start),
        len: Sectors(512),
        fua: false,
    };
    dev.submit(now, read(0, 0));
    for tag in 1..9 {
        dev.submit(now, read(tag, 1_000_000_000));
    }
    while now < end {
        now = dev.next_event().expect("a client reads");
        while let Some(Tag(tag)) = dev.poll(now) {
            moved[usize::from(tag > 0)] += 512 * 512;
            if tag == 0 {
                at += 512;
                dev.submit(now, read(0, at));
            } else {
                dev.submit(now, read(tag, 1_000_000_000));
            }
        }
    }
    let sum = moved[0] + moved[1];
    let link = p.bus_rate * 3 / 10;
    assert!(sum <= link && sum > link * 9 / 10, "{moved:?} of {link}");
    assert!(moved[0] > link / 10, "{moved:?} of {link}");
}
