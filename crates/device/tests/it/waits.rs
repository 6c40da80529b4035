//! How long a read waits in a drive with a queue: never longer than [`DiskParams::longest_wait`], whatever
//! else there is to do.
//= docs/reference/devices.md#16-queueing type=test

use crate::host::{Rng, disk};
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams, DiskParams};

/// A client without think time, or with some: one command after the other.
#[derive(Clone, Copy)]
struct Client {
    op: DeviceOp,
    random: bool,
    sectors: u64,
    think: Duration,
    at: u64,
    fua: bool,
}

impl Client {
    fn draw(r: &mut Rng, capacity: u64) -> Self {
        Self {
            op: if r.below(2) == 0 { DeviceOp::Read } else { DeviceOp::Write },
            random: r.below(2) == 0,
            sectors: [8, 64, 256, 1024][r.below(4) as usize],
            think: Duration::from_us([0, 0, 5, 50, 500, 5_000][r.below(6) as usize]),
            at: r.below(capacity / 2),
            fua: r.below(6) == 0,
        }
    }
}

/// Runs clients for some time; the longest that a read took. Each keeps to its own part of the disk, so that
/// no read needs what is cached.
fn worst_read(p: &DiskParams, clients: &mut [Client], r: &mut Rng, time: Duration) -> Duration {
    let mut dev = Device::new(&DeviceParams::Disk(p.clone())).unwrap_or_else(|e| panic!("{e}"));
    let part = dev.facts().capacity / clients.len() as u64;
    let begin = Instant::from_ns(1_000);
    let mut sent = vec![begin; clients.len()];
    let mut thinking: Vec<(Instant, usize)> = (0..clients.len()).map(|c| (begin, c)).collect();
    let (mut now, mut worst) = (begin, Duration::ZERO);
    while now < begin + time || !dev.is_idle() {
        thinking.sort_unstable();
        let next = thinking.first().filter(|t| t.0 < begin + time && dev.can_accept());
        if let Some(&(at, c)) = next
            && dev.next_event().is_none_or(|e| at <= e)
        {
            thinking.remove(0);
            now = now.max(at);
            let client = &mut clients[c];
            client.at = if client.random { r.below(part) } else { client.at + client.sectors };
            let start = Sector(part * c as u64 + client.at % (part - client.sectors));
            let (tag, len) = (Tag(c as u16), Sectors(client.sectors as u32));
            sent[c] = now;
            dev.submit(now, Command { tag, op: client.op, start, len, fua: client.fua });
            continue;
        }
        let Some(event) = dev.next_event() else { break };
        now = event;
        while let Some(Tag(tag)) = dev.poll(now) {
            let c = usize::from(tag);
            if clients[c].op == DeviceOp::Read {
                worst = worst.max(now.since(sent[c]));
            }
            thinking.push((now + clients[c].think, c));
        }
    }
    worst
}

#[test]
fn no_read_waits_for_longer_than_the_documented_bound() {
    let mut nearest = 0;
    for seed in 1..160 {
        let mut r = Rng(seed * 104_729);
        let mut p = disk(["nas2020", "sata2009", "ide2004"][r.below(3) as usize]);
        p.queue_depth = [4, 31][r.below(2) as usize];
        p.age_max = Duration::from_ms([20, 100, 500][r.below(3) as usize]);
        p.stream_burst = Sectors([0, 256, 4096][r.below(3) as usize]);
        let n = 2 + r.below(u64::from(p.queue_depth) - 1);
        let capacity = Device::new(&DeviceParams::Disk(p.clone())).unwrap().facts().capacity;
        let mut clients: Vec<Client> = (0..n).map(|_| Client::draw(&mut r, capacity)).collect();
        let worst = worst_read(&p, &mut clients, &mut r, Duration::from_secs(4));
        let bound = p.longest_wait(n as u16 - 1);
        nearest = nearest.max(1000 * worst.as_us() / bound.as_us());
        assert!(worst <= bound, "load {seed} on {}: {worst}, at most {bound}", p.name);
    }
    println!("at most {nearest} thousandths of the bound");
    assert!(nearest > 200, "a bound that nothing comes near to says nothing: {nearest}");
}

/// A client that writes in order at the speed of the link keeps a full cache, and the newest extent grows for
/// ever. A read waits for a turn of it, not for its end.
#[test]
fn a_sequential_writer_keeps_a_read_waiting_for_one_turn() {
    let p = disk("nas2020");
    for think_us in [0, 5, 20, 50, 100, 500] {
        let client = Client {
            op: DeviceOp::Write,
            random: false,
            sectors: 1024,
            think: Duration::ZERO,
            at: 0,
            fua: false,
        };
        for (random, sectors) in [(true, 8), (false, 256)] {
            let think = Duration::from_us(think_us);
            let reader = Client { op: DeviceOp::Read, random, sectors, think, ..client };
            let worst = worst_read(&p, &mut [client, reader], &mut Rng(7), Duration::from_secs(4));
            // 2 MiB to the media take 10 ms outside, two seeks of half the disk and two revolutions 40 ms.
            assert!(worst < Duration::from_ms(55), "{worst} with {think} between reads");
        }
    }
}

/// Reads and writes in order share a drive whose cache is full, turn by turn. How long the reader thinks
/// decides nothing: at 5 us it comes back while a destage is set up, at 50 us it does not.
#[test]
fn think_time_does_not_decide_who_has_the_arm() {
    let p = disk("nas2020");
    let share = |think: u64| {
        let mut dev = Device::new(&DeviceParams::Disk(p.clone())).unwrap();
        let half = dev.facts().capacity / 2;
        let begin = Instant::from_ns(1_000);
        let (mut thinking, mut at, mut now) = (vec![(begin, 0), (begin, 1)], [0, half], begin);
        let mut done = [0u64; 2];
        while now < begin + Duration::from_secs(4) {
            thinking.sort_unstable();
            if let Some(&(t, c)) = thinking.first()
                && dev.next_event().is_none_or(|e| t <= e)
            {
                thinking.remove(0);
                now = t;
                let op = [DeviceOp::Read, DeviceOp::Write][c];
                let (tag, start, len) = (Tag(c as u16), Sector(at[c]), Sectors(256));
                dev.submit(now, Command { tag, op, start, len, fua: false });
                at[c] += 256;
                continue;
            }
            now = dev.next_event().expect("a command waits");
            while let Some(Tag(tag)) = dev.poll(now) {
                done[usize::from(tag)] += 1;
                thinking.push((now + Duration::from_us(if tag == 0 { think } else { 0 }), usize::from(tag)));
            }
        }
        100 * done[0] / (done[0] + done[1])
    };
    let shares: Vec<u64> = [0, 5, 20, 50, 100, 500].map(share).into();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(
        most - least <= 10 && *least >= 35 && *most <= 65,
        "percent of the commands are reads: {shares:?}"
    );
}

/// The figures that the documents give for the default disk.
#[test]
fn the_bound_of_the_default_disk() {
    let p = disk("nas2020");
    assert_eq!((p.longest_wait(0).as_ms(), p.longest_wait(30).as_ms()), (662, 3097));
}
