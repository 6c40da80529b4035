//! Properties of the disk under random commands, checked from the inside after every step, and small
//! timelines whose numbers are worked out in the test.

use super::media::Media;
use super::*;
use crate::params::{DeviceParams, Layout, MapZone, SpareUnit, Zone};
use fairhead_core::units::{Sector, Sectors};

fn preset(name: &str) -> DiskParams {
    match DeviceParams::preset(name) {
        Ok(DeviceParams::Disk(p)) => p,
        other => panic!("{name}: {other:?}"),
    }
}

fn disk(p: &DiskParams) -> Disk {
    Disk::new(p).unwrap_or_else(|e| panic!("{e}"))
}

fn command(tag: u16, op: DeviceOp, start: u64, len: u32) -> Command {
    Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(len), fua: false }
}

impl Disk {
    /// What must hold at any time.
    fn check(&self) {
        self.cache.check();
        self.writes.check();
        assert!(self.writes.list.len() <= self.writes.slots, "no more extents than slots");
        assert!(
            self.writes.held() <= self.writes.capacity + self.written_out(self.clock),
            "no more data than room"
        );
        assert_eq!(self.writes.active.is_some(), self.media.is_destage());
        assert!(!self.someone_waits() || self.next_event().is_some(), "nothing waits without an event");
        assert!(self.media_at >= self.clock, "the media are up to date");
        let media_time = self.counters.seek_time + self.counters.rotational_wait;
        let elapsed = self.media.ends_at().max(self.clock).saturating_sub(Instant::EPOCH.as_ns());
        assert!(media_time.as_ns() <= elapsed, "the arm does one thing at a time");
    }
}

/// Xorshift: a fixed sequence for each seed.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A drive with some of the options, small enough that commands meet each other.
pub(super) fn random_params(r: &mut Rng) -> DiskParams {
    let mut p = preset("ide2004");
    p.zones = vec![Zone { tracks: 30, spt: 100 }, Zone { tracks: 1 + r.below(40), spt: 60 }];
    p.heads = 1 + r.below(4) as u32;
    if r.chance(30) {
        p.layout = Layout::SurfaceSerpentine { tracks: 1 + r.below(9) as u32 };
    }
    p.queue_depth = [1, 2, 8, 32][r.below(4) as usize];
    p.nseg = 1 + r.below(6) as u32;
    p.buffer_bytes = 64 * 1024;
    p.ra_max = Sectors([0, 8, 40, 128][r.below(4) as usize]);
    p.ra_keep = 1 + r.below(4) as u32;
    p.ra_on_hit = r.chance(20);
    p.read_on_arrival = r.chance(20);
    if r.chance(20) {
        p.min_ra = Sectors(p.ra_max.0 / 2);
    }
    if r.chance(20) {
        p.ra_abort = Some(Duration::from_us(r.below(500)));
    }
    p.wc_slots = 1 + r.below(8) as u32;
    p.wc_bytes = 512 * (8 + r.below(100));
    if r.chance(20) {
        p.cache_mode = CacheMode::WriteThrough;
    }
    if r.chance(30) {
        p.wc_delay = Duration::from_us(r.below(30_000));
    }
    p.destage_idle_only = r.chance(20);
    p.age_weight_permille = [0, 20, 100][r.below(3) as usize];
    p.age_max = Duration::from_ms(1 + r.below(100));
    p.stream_burst = Sectors([0, 100, 4096][r.below(3) as usize]);
    p
}

/// Makes a drive one that was measured: with some of what only such drives have.
fn measure(p: &mut DiskParams, r: &mut Rng) {
    let us = |r: &mut Rng, most| Duration::from_us(r.below(most));
    if r.chance(70) {
        let mut pair = || [us(r, 900), us(r, 900)];
        let mut o = Overheads {
            read_hit: pair(),
            read_miss: pair(),
            read_leave: pair(),
            write_hit: pair(),
            write_miss: pair(),
            write_data: pair(),
            ..Overheads::default()
        };
        (o.read_join, o.read_end) = (us(r, 200), us(r, 200));
        (o.write_end, o.write_media_end) = (us(r, 200), us(r, 200));
        p.overheads = Some(o);
    }
    if r.chance(50) {
        p.read_watermark_permille = Some([0, 300, 1000][r.below(3) as usize]);
    }
    if r.chance(50) {
        p.segment = Sectors(16 + r.below(60) as u32);
    }
    if r.chance(30) {
        p.bus_rate = 1_000_000 + r.below(8_000_000);
    }
    p.watermark_of_segment = r.chance(30);
    p.partial_hits = r.chance(70);
    p.keeps_requested = r.chance(30);
    p.write_settle_less = us(r, 900);
    p.read_cache = r.chance(80);
    (p.read_anywhere, p.write_anywhere) = (r.chance(50), r.chance(50));
    p.wc_merge = r.chance(70);
    p.write_seek_min = us(r, 3000);
    p.ra_stop = [RaStop::Never, RaStop::Track, RaStop::Cylinder, RaStop::NextTrack][r.below(4) as usize];
    if r.chance(50) {
        p.seek_table = vec![(1, us(r, 2000)), (3, us(r, 2000)), (40, us(r, 9000))];
    }
    if r.chance(70) {
        p.layout = Layout::CylinderMajor;
        let mut first_cylinder = 0;
        for z in &mut p.zones {
            let cylinders = z.tracks.div_ceil(u64::from(p.heads));
            z.tracks = cylinders * u64::from(p.heads);
            first_cylinder += r.below(3);
            let unit = r.chance(50).then(|| SpareUnit {
                tracks: 1 + r.below(4),
                spares: r.below(9),
                at_front: r.chance(50),
                kept: r.chance(50),
            });
            p.map.push(MapZone {
                first_cylinder,
                cylinders,
                spt: z.spt,
                track_skew: r.below(20_000),
                cylinder_skew: r.below(20_000),
                offset: r.below(50_000),
                front: r.below(20),
                spares: if unit.is_some() { 0 } else { r.below(20) },
                unit,
                slips: vec![3, 4, 70, 210],
            });
            first_cylinder += cylinders;
        }
    }
}

pub(super) fn random_command(r: &mut Rng, tag: u16, capacity: u64, hot: &mut [u64; 3]) -> Command {
    let most = if r.chance(10) { 120 } else { 16 };
    let len = 1 + r.below(most);
    let i = r.below(3) as usize;
    let start = if r.chance(70) { hot[i] } else { r.below(capacity) }.min(capacity - len);
    hot[i] = (start + len) % (capacity - 1);
    let op = match r.below(100) {
        0..55 => DeviceOp::Read,
        55..95 => DeviceOp::Write,
        95..98 => DeviceOp::Flush,
        _ => DeviceOp::Discard,
    };
    Command { fua: r.chance(5), ..command(tag, op, start, len as u32) }
}

/// Runs random commands; returns every completion with its instant. `extra` polls in between must change
/// nothing.
fn random_run(seed: u64, extra: bool) -> Vec<(u64, u16)> {
    let mut r = Rng(seed * 2 + 1);
    let mut polls = Rng(seed + 77);
    let mut p = random_params(&mut r);
    if seed % 3 == 1 {
        measure(&mut p, &mut Rng(seed + 5));
    }
    let mut d = disk(&p);
    let (mut hot, mut log) = ([0; 3], Vec::new());
    let mut in_flight: Vec<Option<(u64, Command)>> = vec![None; 1000];
    let mut now = Instant::EPOCH;
    let mut sent = 0;
    while sent < 1000 || !d.is_idle() {
        let gap = if r.chance(50) { 0 } else { r.below(8_000_000) };
        let arrival = now + Duration::from_ns(gap);
        // Everything that the device does until then.
        while let Some(at) = d.next_event() {
            if at > arrival && sent < 1000 {
                break;
            }
            assert!(at >= now, "seed {seed}: an event in the past");
            if at > now {
                assert_eq!(d.poll(at - Duration::from_ns(1)), None, "seed {seed}: done before its event");
            }
            now = at;
            while let Some(tag) = d.poll(now) {
                let done = in_flight[usize::from(tag.0)].take();
                let (since, cmd) = done.unwrap_or_else(|| panic!("seed {seed}: {tag:?} was not in flight"));
                assert!(now.as_ns() >= since + least(&d, &cmd), "seed {seed}: {cmd:?} too fast");
                log.push((now.as_ns(), tag.0));
            }
            assert_ne!(d.next_event(), Some(now), "seed {seed}: the same event twice");
            d.check();
        }
        if sent == 1000 {
            continue;
        }
        now = arrival;
        if extra && polls.chance(50) {
            assert_eq!(d.poll(now), None, "seed {seed}: everything due was polled");
        }
        let cmd = random_command(&mut r, sent, d.facts.capacity, &mut hot);
        if d.can_accept() {
            in_flight[usize::from(sent)] = Some((now.as_ns(), cmd));
            d.submit(now, cmd);
            d.check();
            sent += 1;
        } else {
            // No room: this command is never sent.
            assert!(!d.is_idle(), "seed {seed}: a device without work has room");
        }
    }
    assert!(in_flight.iter().all(Option::is_none), "seed {seed}: everything completed");
    assert!(log.is_sorted_by_key(|l| l.0));
    log
}

/// No command is faster than decoding and the bus.
fn least(d: &Disk, cmd: &Command) -> u64 {
    let bus = u64::from(cmd.len.0) * d.t.bus_ps / 1000;
    match cmd.op {
        // They change with every command.
        DeviceOp::Read | DeviceOp::Write if d.overheads.is_some() => bus,
        DeviceOp::Discard if d.overheads.is_some() => 0,
        DeviceOp::Read => d.t.ov_hit + bus,
        DeviceOp::Write => d.t.ov_write + bus,
        DeviceOp::Flush => d.t.ov_flush,
        DeviceOp::Discard => d.t.ov_write,
    }
}

#[test]
fn random_commands_complete_exactly_once_and_the_same_every_time() {
    for seed in 1..300 {
        let log = random_run(seed, false);
        assert_eq!(log.len(), 1000, "seed {seed}");
        assert_eq!(log, random_run(seed, true), "seed {seed}: extra polls change nothing");
    }
}

/// Sends one command and waits for it; returns when it is done.
fn one(d: &mut Disk, now: u64, cmd: Command) -> u64 {
    d.submit(Instant::from_ns(now), cmd);
    loop {
        let at = d.next_event().unwrap_or_else(|| panic!("{cmd:?} is stuck"));
        if d.poll(at).is_some() {
            return at.as_ns();
        }
    }
}

const T0: u64 = 1 << 42;

#[test]
//= docs/reference/devices.md#13-command-timeline type=test
fn a_miss_a_streaming_hit_and_a_hit_take_what_the_notes_say() {
    let mut d = disk(&preset("ide2004"));
    // 8 sectors at 85 MB/s.
    let bus = 8 * (512 * 1_000_000_000_000 / 85_000_000) / 1000;
    let done = one(&mut d, T0, command(0, DeviceOp::Read, 0, 8));
    // The arm starts over track 0, so only rotation: sector 0 passes at multiples of a revolution.
    let over = (T0 + 300_000).next_multiple_of(8_333_333);
    let eight = 8 * 8_333_333 / 533;
    assert_eq!(done, over + eight + bus);
    // At once, the next block: the head has read on since, but not far enough.
    let next = one(&mut d, done, command(1, DeviceOp::Read, 8, 8));
    assert_eq!(next, over + 16 * 8_333_333 / 533 + bus, "waits for the head, with no more overhead");
    // A millisecond later everything is there.
    let hit = one(&mut d, next + 1_000_000, command(2, DeviceOp::Read, 16, 8));
    assert_eq!(hit, next + 1_000_000 + 30_000 + bus);
    let c = d.counters;
    assert_eq!((c.misses, c.streaming_hits, c.hits, c.lost_revolutions), (1, 1, 1, 0));
}

#[test]
//= docs/reference/devices.md#14-read-buffer-and-look-ahead rule 5 type=test
fn look_ahead_parks_when_full_and_resumes_at_low_water() {
    let mut d = disk(&preset("ide2004"));
    let mut now = one(&mut d, T0, command(0, DeviceOp::Read, 0, 8)) + 100_000_000;
    // 256 KiB ahead of sector 8, and no further.
    now = one(&mut d, now, command(1, DeviceOp::Read, 8, 8));
    assert_eq!(d.counters.look_ahead_full, 1);
    assert_eq!(d.cache.segs[0].end, 8 + 512);
    let mut at = 16;
    while d.cache.segs[0].end - at > 256 {
        assert!(matches!(d.media, Media::Rest { parked: Some(0) }), "still more than half unread at {at}");
        now = one(&mut d, now, command(2, DeviceOp::Read, at, 8));
        at += 8;
    }
    assert!(matches!(d.media, Media::Stream(_)), "half was read");
    one(&mut d, now + 100_000_000, command(3, DeviceOp::Read, at, 8));
    assert_eq!((d.counters.misses, d.counters.look_ahead_full), (1, 2));
}

#[test]
//= docs/reference/devices.md#14-read-buffer-and-look-ahead rule 8 type=test
fn cached_writes_are_read_from_the_cache() {
    let mut d = disk(&preset("ide2004"));
    let now = one(&mut d, T0, command(0, DeviceOp::Write, 1000, 16));
    assert_eq!(now, T0 + 15_000 + d.t.bus(16), "a cached write is done when it is in the buffer");
    let now = one(&mut d, now, command(1, DeviceOp::Read, 1004, 8));
    assert_eq!((d.counters.hits, d.counters.misses), (1, 0));
    // Half of it cached: that half goes to the media first.
    one(&mut d, now, command(2, DeviceOp::Read, 1008, 16));
    assert_eq!((d.counters.hits, d.counters.misses, d.counters.destages), (1, 1, 1));
    assert!(d.writes.is_empty());
}

#[test]
//= docs/reference/devices.md#15-write-buffer-and-destaging type=test
fn a_write_waits_for_a_slot_and_a_flush_for_everything() {
    let p = DiskParams { wc_slots: 2, ..preset("ide2004") };
    let mut d = disk(&p);
    let mut now = T0;
    for i in 0..2 {
        now = one(&mut d, now, command(i, DeviceOp::Write, 10_000 * u64::from(i), 8));
    }
    assert_eq!(d.counters.write_waits, 0);
    let third = one(&mut d, now, command(2, DeviceOp::Write, 90_000, 8));
    assert_eq!((d.counters.write_waits, d.counters.destages), (1, 1));
    assert!(third > now + 1_000_000, "it waited for an arm");
    let flushed = one(&mut d, third, command(3, DeviceOp::Flush, 0, 0));
    assert_eq!(d.counters.destages, 3);
    assert!(d.writes.is_empty() && flushed > third + 100_000);
    assert_eq!(one(&mut d, flushed, command(4, DeviceOp::Flush, 0, 0)), flushed + 100_000, "nothing to do");
}

/// A sequential writer that is faster than the media runs at the speed of the media, without losing
/// revolutions.
#[test]
fn a_fast_sequential_writer_streams() {
    let mut d = disk(&preset("ide2004"));
    let (mut now, mut at) = (T0, 0);
    while now < T0 + 2_000_000_000 {
        now = one(&mut d, now, command(0, DeviceOp::Write, at, 128));
        at += 128;
    }
    let rate = at * 512 / 2;
    assert!((28_000_000..29_500_000).contains(&rate), "{rate} bytes/s; the zone sustains 28.6 MB/s");
    assert!(d.counters.destages <= 2, "one long extent: {}", d.counters.destages);
}

#[test]
//= docs/reference/devices.md#16-queueing type=test
fn a_flush_is_not_queued() {
    let p = DiskParams { queue_depth: 8, ..preset("ide2004") };
    let mut d = disk(&p);
    let now = Instant::from_ns(T0);
    d.submit(now, command(0, DeviceOp::Read, 1_000_000, 8));
    d.submit(now, command(1, DeviceOp::Flush, 0, 0));
    assert!(!d.can_accept(), "nothing overtakes a flush");
    let mut order = Vec::new();
    while let Some(at) = d.next_event() {
        order.extend(std::iter::from_fn(|| d.poll(at)).map(|t| t.0));
    }
    assert_eq!(order, [0, 1]);
    assert!(d.can_accept());
}

#[test]
//= docs/reference/devices.md#16-queueing type=test
fn a_queue_serves_hits_at_once_and_the_nearest_first() {
    let p = DiskParams { queue_depth: 8, ..preset("ide2004") };
    let mut d = disk(&p);
    let now = one(&mut d, T0, command(0, DeviceOp::Read, 0, 8)) + 2_000_000;
    // Far, near, and in the buffer.
    for (tag, start) in [(1, 50_000_000), (2, 40_000), (3, 8)] {
        d.submit(Instant::from_ns(now), command(tag, DeviceOp::Read, start, 8));
    }
    let mut order = Vec::new();
    while let Some(at) = d.next_event() {
        order.extend(std::iter::from_fn(|| d.poll(at)).map(|t| t.0));
    }
    assert_eq!(order[0], 3, "a hit overtakes");
    assert_eq!(d.counters.hits, 1);
    assert_eq!(d.counters.misses, 3);
}

/// One reads in order, two here and there near it, and a full cache has its extents far away: how long the
/// write that waits for room takes.
fn a_write_beside_readers(readers: u64) -> Duration {
    let age_max = Duration::from_ms(100);
    let p =
        DiskParams { queue_depth: 8, wc_slots: 2, age_max, stream_burst: Sectors(256), ..preset("ide2004") };
    let mut d = disk(&p);
    let mut next = vec![0; readers as usize];
    let mut r = Rng(7);
    let mut read = |d: &mut Disk, now, reader: u64| {
        let at = &mut next[reader as usize];
        *at = if reader == 0 { *at + 8 } else { 100_000 + r.below(1_000) * 8 };
        d.submit(now, command(reader as u16, DeviceOp::Read, *at, 8));
    };
    let start = Instant::from_ns(T0);
    for i in 0..3 {
        d.submit(start, command(5 + i, DeviceOp::Write, 20_000_000 + u64::from(i) * 9_000_000, 8));
    }
    (0..readers).for_each(|i| read(&mut d, start, i));
    loop {
        let now = d.next_event().expect("a command waits");
        while let Some(Tag(tag)) = d.poll(now) {
            d.check();
            if tag == 7 {
                return now.since(start);
            } else if u64::from(tag) < readers {
                read(&mut d, now, tag.into());
            }
        }
        assert!(now.since(start) < Duration::from_secs(10), "it waits for ever");
    }
}

#[test]
//= docs/reference/devices.md#16-queueing type=test
fn a_write_that_waits_for_room_ages_as_a_command_does() {
    for readers in 1..=4 {
        let took = a_write_beside_readers(readers);
        assert!(took < Duration::from_ms(200), "{took} beside {readers}");
    }
}

/// A stream is not broken for a write that the arm would not go to: nothing is won by that, and a revolution
/// lost.
#[test]
fn a_write_that_waits_for_room_breaks_no_stream_until_it_is_too_old() {
    let p = DiskParams { queue_depth: 8, wc_slots: 2, stream_burst: Sectors(256), ..preset("ide2004") };
    let reads_beside = |writes: u16| {
        let mut d = disk(&DiskParams { age_max: Duration::from_secs(1), ..p.clone() });
        for i in 0..writes {
            let far = 20_000_000 + u64::from(i) * 9_000_000;
            d.submit(Instant::from_ns(T0), command(5 + i, DeviceOp::Write, far, 8));
        }
        let (mut now, mut reads) = (Instant::from_ns(T0), 0);
        while now < Instant::from_ns(T0) + Duration::from_ms(500) {
            d.submit(now, command(0, DeviceOp::Read, reads * 64, 64));
            now = loop {
                let at = d.next_event().expect("the read");
                if std::iter::from_fn(|| d.poll(at)).any(|t| t == Tag(0)) {
                    break at;
                }
            };
            reads += 1;
        }
        reads
    };
    let (alone, beside) = (reads_beside(2), reads_beside(3));
    assert!(beside * 10 > alone * 9, "{beside} reads, {alone} while no write waits");
}

#[test]
fn busy_time_is_time_with_a_command() {
    let mut d = disk(&preset("ide2004"));
    let a = one(&mut d, T0, command(0, DeviceOp::Read, 0, 8));
    let b = one(&mut d, a + 5_000_000, command(1, DeviceOp::Read, 8, 8));
    assert_eq!(d.counters.busy_time.as_ns(), (a - T0) + (b - a - 5_000_000));
}

#[test]
#[should_panic(expected = "queue is full")]
fn a_second_command_at_depth_one_is_a_bug_of_the_driver() {
    let mut d = disk(&preset("ide2004"));
    for tag in 0..2 {
        d.submit(Instant::EPOCH, command(tag, DeviceOp::Read, 0, 8));
    }
}

#[test]
#[should_panic(expected = "of a disk of")]
fn a_command_beyond_the_end_is_a_bug_of_the_driver() {
    let mut d = disk(&preset("ide2004"));
    let end = d.facts.capacity;
    d.submit(Instant::EPOCH, command(0, DeviceOp::Read, end - 7, 8));
}

/// Reads 64 KiB after 64 KiB, each `think` after the last; how many complete in 200 ms while a far extent is
/// dirty from the start, and how many extents have gone to the media by then.
fn stream_beside_a_dirty_extent(think: Duration) -> (u32, u64) {
    let mut d = disk(&preset("ide2004"));
    let start = Instant::EPOCH;
    d.submit(start, command(0, DeviceOp::Write, 20_000_000, 8));
    let mut now = d.next_event().expect("the write");
    assert_eq!(d.poll(now), Some(Tag(0)));
    let mut reads = 0;
    while now.since(start) < Duration::from_ms(200) {
        d.submit(now, command(1, DeviceOp::Read, u64::from(reads) * 128, 128));
        loop {
            now = d.next_event().expect("the read");
            if d.poll(now).is_some() {
                break;
            }
        }
        reads += 1;
        now = now + think;
    }
    (reads, d.counters().destages)
}

#[test]
fn a_reader_that_asks_again_during_the_set_up_keeps_the_arm() {
    let (reads, destages) = stream_beside_a_dirty_extent(Duration::from_us(100));
    // 200 ms at 28.6 MB/s are 87 reads, less one seek and half a revolution.
    assert!(destages == 0 && reads > 80, "{reads} reads, {destages} destages");
    let (_, destages) = stream_beside_a_dirty_extent(Duration::from_us(400));
    assert_eq!(destages, 1, "who thinks for longer than the set-up takes loses the arm");
}

/// When one command after another is done, in microseconds from its start; a second between them.
fn one_by_one(p: &DiskParams, commands: &[(DeviceOp, u64, u32)]) -> Vec<u64> {
    let mut d = disk(p);
    let mut times = Vec::new();
    for (i, &(op, start, len)) in commands.iter().enumerate() {
        let sent = Instant::EPOCH + Duration::from_secs(1 + i as u64);
        d.submit(sent, command(0, op, start, len));
        let mut done = None;
        while done.is_none() {
            let at = d.next_event().expect("it is in flight");
            done = d.poll(at).map(|_| at);
        }
        times.push(done.map_or(0, |at| at.since(sent).as_us()));
    }
    times
}

#[test]
fn overheads_follow_the_command_before() {
    let us = Duration::from_us;
    let mut p = preset("ide2004");
    p.bus_rate = 512_000_000; // 1 us a sector
    p.overheads = Some(Overheads {
        read_hit: [us(100), us(200)],
        write_hit: [us(300), us(400)],
        read_end: us(7),
        write_end: us(9),
        ..Overheads::default()
    });
    let (read, write) = (DeviceOp::Read, DeviceOp::Write);
    let times = one_by_one(
        &p,
        &[(read, 0, 8), (read, 8, 8), (write, 900_000, 8), (write, 800_000, 8), (read, 16, 8), (read, 24, 8)],
    );
    // A miss; then a hit after a read, writes after a read and after a write, hits after a write and after a
    // read.
    assert_eq!(times[1..], [100 + 8 + 7, 300 + 8 + 9, 400 + 8 + 9, 200 + 8 + 7, 100 + 8 + 7]);
}

#[test]
fn a_miss_may_begin_before_a_hit_would() {
    let us = Duration::from_us;
    let o = Overheads { read_hit: [us(500); 2], ..Overheads::default() };
    let p = DiskParams { overheads: Some(o), t_switch: us(0), ..preset("ide2004") };
    let later = DiskParams { overheads: Some(Overheads { read_miss: [us(500); 2], ..o }), ..p.clone() };
    // The sector of the first track that comes about 0.31 ms after the command: too early for the longer
    // overhead.
    let sent = (Instant::EPOCH + Duration::from_secs(1)).as_ns();
    let soon = (sent + 312_000) % 8_333_333 * 533 / 8_333_333;
    let done = |p: &DiskParams| one_by_one(p, &[(DeviceOp::Read, soon, 8)])[0];
    let (short, long) = (done(&p), done(&later));
    assert!((300..1000).contains(&short) && long == short + 8333, "{short} us, {long} us");
}

#[test]
fn the_bus_waits_for_the_watermark() {
    let slow = DiskParams { bus_rate: 5_120_000, ..preset("ide2004") }; // 0.1 ms a sector, the media 0.0156
    let at = |mark| {
        one_by_one(&DiskParams { read_watermark_permille: mark, ..slow.clone() }, &[(DeviceOp::Read, 0, 100)])
            [0]
    };
    let (now, first, half, all) = (at(None), at(Some(0)), at(Some(500)), at(Some(1000)));
    for (later, us) in [(first, 15), (half, 781), (all, 1563)] {
        assert!(
            (later - now).abs_diff(us) <= 1,
            "1, 50 and 100 sectors of 15.63 us: {us}, not {}",
            later - now
        );
    }
}

/// 100 sectors of 0.1 ms a track, the arm at rest over the first; nothing takes time but the media.
fn plain() -> DiskParams {
    let mut p = preset("ide2004");
    (p.rpm, p.heads, p.zones) = (6000, 1, vec![Zone { tracks: 100, spt: 100 }]);
    (p.ov_miss, p.ov_hit, p.ov_write, p.t_switch, p.write_settle) = Default::default();
    (p.bus_rate, p.read_watermark_permille) = (512_000_000_000, Some(0));
    p
}

/// The time of one command in us, sent when the head is at the start of a track.
fn alone(p: &DiskParams, op: DeviceOp, start: u64, len: u32) -> u64 {
    let (mut d, sent) = (disk(p), Instant::from_ns(60_000_000_000));
    d.submit(sent, command(0, op, start, len));
    loop {
        let at = d.next_event().expect("it is in flight");
        if d.poll(at).is_some() {
            return at.since(sent).as_us();
        }
    }
}

#[test]
fn a_write_that_the_bus_is_late_for_waits_a_turn() {
    let through = DiskParams { cache_mode: CacheMode::WriteThrough, ..plain() };
    let done = |p: &DiskParams| alone(p, DeviceOp::Write, 5, 40);
    assert_eq!(done(&through), 4500, "0.5 ms to the first, 4 ms for all of them");
    // 0.11 ms a sector: the last one crosses at 4.4 ms, before the head is over it.
    let as_fast = DiskParams { bus_rate: 4_654_546, ..through.clone() };
    assert_eq!(done(&as_fast), 4500);
    // 0.1128 ms: at 4.51 ms, when it has begun to pass.
    let slow = DiskParams { bus_rate: 4_538_000, ..through.clone() };
    assert_eq!(done(&slow), 14_500);
    let o = Overheads { write_data: [Duration::from_ms(11); 2], ..Overheads::default() };
    let late = DiskParams { overheads: Some(o), ..through };
    assert_eq!(done(&late), 24_500, "the first sector comes after one turn");
}

#[test]
fn a_command_of_one_track_begins_where_the_head_comes_down() {
    for op in [DeviceOp::Read, DeviceOp::Write] {
        let p = DiskParams { cache_mode: CacheMode::WriteThrough, ..plain() };
        let any = DiskParams { read_anywhere: true, write_anywhere: true, ..p.clone() };
        let done = |p: &DiskParams, start| alone(p, op, start, 40);
        // On the second track, whose start is at the same angle; nothing but the seek of 1.2 ms is between.
        let start = 100 + 2;
        assert_eq!(
            (done(&p, start), done(&any, start)),
            (10_200 + 4_000, 11_200),
            "{op:?}: a turn from there"
        );
        assert_eq!(done(&p, 120), done(&any, 120), "{op:?}: the first sector is still to come");
        assert_eq!(done(&p, 180), done(&any, 180), "{op:?}: two tracks");
    }
}

#[test]
fn the_bus_is_taken_up_again_when_it_has_been_let_go() {
    let us = Duration::from_us;
    let done = |o| alone(&DiskParams { overheads: Some(o), ..plain() }, DeviceOp::Read, 5, 10);
    let none = Overheads::default();
    assert_eq!(done(none), 1500);
    // The first sector is there after 0.6 ms, the last after 1.5.
    assert_eq!(done(Overheads { read_join: us(500), ..none }), 1500, "while the rest comes from the media");
    assert_eq!(done(Overheads { read_join: us(1000), ..none }), 1600);
    assert_eq!(done(Overheads { read_join: us(10), read_leave: [us(2000); 2], ..none }), 2010);
}

#[test]
fn without_a_read_cache_the_media_are_read_again() {
    let misses = |read_cache| {
        let mut d = disk(&DiskParams { read_cache, ..preset("ide2004") });
        for i in 0..3 {
            d.submit(Instant::EPOCH + Duration::from_ms(100 * i), command(1, DeviceOp::Read, 1000, 8));
            while !d.is_idle() {
                let at = d.next_event().expect("it is in flight");
                let _ = d.poll(at);
            }
        }
        d.counters().misses
    };
    assert_eq!((misses(true), misses(false)), (1, 3));
}

/// A segment of 64 sectors, and look-ahead of as many: it pushes out what was asked for, or ends when the
/// segment is full.
#[test]
fn look_ahead_keeps_what_was_asked_for_last_if_it_says_so() {
    for keeps_requested in [false, true] {
        let p =
            DiskParams { segment: Sectors(64), ra_max: Sectors(64), keeps_requested, ..preset("ide2004") };
        let mut d = disk(&p);
        let mut now = T0;
        let mut read = |start| {
            now = one(&mut d, now, command(0, DeviceOp::Read, start, 8)) + 100_000_000;
            d.counters.hits
        };
        let hits: Vec<_> = [1000, 1000, 1064].map(&mut read).windows(2).map(|w| w[1] - w[0]).collect();
        // The segment ends at 1064, or, if requested data may be dropped, at 1072.
        let expected = if keeps_requested { [1, 0] } else { [0, 1] };
        assert_eq!(hits, expected, "keeps_requested = {keeps_requested}");
    }
}

/// Seeks before a write are shorter, and never shorter than nothing.
#[test]
fn writes_may_settle_sooner() {
    let write = |less: u64| {
        let p = DiskParams {
            write_settle_less: Duration::from_us(less),
            cache_mode: CacheMode::WriteThrough,
            ..preset("ide2004")
        };
        let mut d = disk(&p);
        one(&mut d, T0, command(0, DeviceOp::Write, 20_000_000, 8));
        d.counters.seek_time
    };
    assert_eq!(write(0), write(600) + Duration::from_us(600));
    assert_eq!(write(900_000), Duration::ZERO);
}
