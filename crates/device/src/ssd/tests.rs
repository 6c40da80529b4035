//! Properties of the device under random commands, checked from the inside after every step, and small
//! timelines whose numbers are worked out in the test.

use super::*;
use crate::params::{DeviceParams, SlcFull};

fn preset(name: &str) -> SsdParams {
    match DeviceParams::preset(name) {
        Ok(DeviceParams::Ssd(p)) => p,
        other => panic!("{name}: {other:?}"),
    }
}

fn ssd(p: &SsdParams) -> Ssd {
    Ssd::new(p).unwrap_or_else(|e| panic!("{e}"))
}

fn command(tag: u16, op: DeviceOp, start: u64, len: u32) -> Command {
    Command { tag: Tag(tag), op, start: Sector(start), len: Sectors(len), fua: false }
}

impl Ssd {
    /// What must hold at any time.
    fn check(&self) {
        self.buffer.check();
        self.dies.check();
        self.ftl.check(self.dies.migrating());
        assert!(self.done.len() <= usize::from(self.in_flight), "no more completions than commands");
        assert!(self.slots.len() <= usize::from(self.facts.queue_depth), "no more slots than commands");
        assert!(!self.someone_waits() || self.next_event().is_some(), "no command waits without an event");
        assert_eq!(
            self.slots.len() - self.free.len() + self.done.len() + usize::from(self.held_flush.is_some()),
            usize::from(self.in_flight),
            "every command is somewhere, once"
        );
    }
}

impl Ssd {
    /// How much each list holds without allocating.
    fn room(&self) -> [usize; 6] {
        let Self { slots, free, reads, others, done, buffer, .. } = self;
        let lists = [
            slots.capacity(),
            free.capacity(),
            reads.slots.capacity(),
            others.slots.capacity(),
            done.0.capacity(),
        ];
        let [a, b, c, d, e] = lists;
        [a, b, c, d, e, buffer.room_of_lists() + self.prefetch.room_of_lists()]
    }
}

/// Xorshift: a fixed sequence for each seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A drive with some of the options, small enough that commands meet each other.
fn random_params(r: &mut Rng) -> SsdParams {
    let mut p = preset(["plextor_m5s", "sata_ssd", "nvme", "emmc51", "microsd_a1"][r.below(5) as usize]);
    p.capacity = 2048 + r.below(100_000);
    p.channels = 1 + r.below(4) as u32;
    p.dies_per_channel = 1 + r.below(4) as u32;
    p.planes = 1 + r.below(4) as u32;
    p.pages_per_block = 1 + r.below(20) as u32;
    p.write_buffer = u64::from(p.planes) * p.page.bytes() * (2 + r.below(20));
    p.queue_depth = [1, 2, 8, 32, 200][r.below(5) as usize];
    p.t_suspend = Duration::from_us(r.below(2) * r.below(100));
    p.flush_queued = r.chance(50);
    p.power_loss_protection = r.chance(10);
    p.spare_permille = r.below(300) as u32;
    if r.chance(50) {
        p.slc = (u64::from(p.planes) * p.page.bytes() * (1 + r.below(30))).min(p.capacity * 512);
    } else {
        p.slc = 0;
    }
    p.fill_permille = [0, 500, 1000][r.below(3) as usize];
    p.cell_bits = 2 + r.below(4) as u32;
    p.copy_back = r.chance(50);
    p.shared_buffer = r.chance(50);
    p.hot_parts = r.chance(50);
    p.slc_fill_permille = [0, 300, 1000][r.below(3) as usize];
    if r.chance(40) {
        p.slc_dynamic = (u64::from(p.planes) * p.page.bytes() * (1 + r.below(60))).min(p.capacity * 512);
    }
    if p.slc > 0 && r.chance(50) {
        p.slc_full = SlcFull::Fold;
    } else if r.chance(50) {
        p.slc_full = SlcFull::Drain;
    }
    p.prefetch = [0, p.page.bytes(), 100_000, 1 << 20][r.below(4) as usize];
    p.slc_idle = Duration::from_us(r.below(5000));
    if p.au.0 == 0 {
        p.cmd_servers = 1 + r.below(3) as u32;
    }
    if r.chance(10) {
        (p.t_cmd, p.t_fix) = (Duration::ZERO, Duration::ZERO);
    }
    p
}

impl Ssd {
    /// The next step or completion, where the drive says when one may be done.
    fn next_instant(&self) -> Option<Instant> {
        let done = self.done.next();
        let at = if self.someone_waits() { done.min(self.next_step().0) } else { done };
        (at != NEVER).then(|| Instant::from_ns(at.max(1)))
    }
}

/// What a drive does with given commands if it is polled when `next` says: tag and instant of each
/// completion, events, figures.
fn play(
    p: &SsdParams,
    commands: &[(Instant, Command)],
    next: impl Fn(&Ssd) -> Option<Instant>,
) -> (Vec<(u16, u64)>, i64, Counters) {
    let (mut dev, mut log, mut polls) = (ssd(p), Vec::new(), 0);
    let mut commands = commands.iter().peekable();
    loop {
        let arrival = commands.peek().map(|c| c.0).filter(|_| dev.can_accept());
        let event = next(&dev);
        let Some(now) = event.into_iter().chain(arrival).min() else { break };
        if event == Some(now) {
            polls += 1;
            while let Some(tag) = dev.poll(now) {
                log.push((tag.0, now.as_ns()));
            }
        } else if let Some(&(_, command)) = commands.next() {
            // One that had to wait comes when there is room.
            dev.submit(log.last().map_or(now, |l| now.max(Instant::from_ns(l.1))), command);
        }
        dev.check();
    }
    dev.catch_up(Instant::from_ns(NEVER - 1));
    (log, polls + dev.unseen(), dev.counters)
}

/// Polled when a command may be done it does what it does if it is polled at each of its steps.
#[test]
fn polling_at_each_step_gives_the_same() {
    for seed in 1..400 {
        let mut r = Rng(seed);
        let p = random_params(&mut r);
        let (mut now, mut at) = (Instant::EPOCH, 0);
        let (writes, sequential, gap) =
            (r.below(95), r.below(100), [10, 1000, 30_000, 400_000][r.below(4) as usize]);
        let mut command = |tag: u16| {
            let op = match r.below(100) {
                0..2 => DeviceOp::Flush,
                2..4 => DeviceOp::Discard,
                n if n < 4 + writes => DeviceOp::Write,
                _ => DeviceOp::Read,
            };
            let longest = if r.chance(10) { 2000 } else { 32 };
            let len = 1 + r.below(longest).min(p.capacity - 1);
            if !r.chance(sequential) || at + len > p.capacity {
                at = r.below(p.capacity - len + 1);
            }
            now = now + Duration::from_ns(r.below(2 * gap));
            let start = at;
            at += len;
            (now, Command { fua: r.chance(5), ..command(tag, op, start, len as u32) })
        };
        let commands: Vec<_> = (0..300).map(&mut command).collect();
        let (lazy, lazy_events, lazy_figures) = play(&p, &commands, Ssd::next_event);
        let (eager, eager_events, eager_figures) = play(&p, &commands, Ssd::next_instant);
        assert_eq!(lazy.len(), 300, "seed {seed}");
        assert_eq!(lazy, eager, "seed {seed}");
        assert_eq!(lazy_figures, eager_figures, "seed {seed}");
        assert_eq!(lazy_events, eager_events, "seed {seed}");
    }
}

/// What a run of random commands gave: tag and instant of each completion.
fn random_run(seed: u64, commands: u32) -> Vec<(u16, u64)> {
    let mut r = Rng(seed);
    let p = random_params(&mut r);
    let mut dev = ssd(&p);
    let room = dev.room();
    let (mut now, mut sent, mut log) = (Instant::EPOCH, 0, Vec::new());
    let mut free: Vec<u16> = (0..p.queue_depth).rev().collect();
    let mut at = 0;
    let (write_percent, sequential_percent, pause_percent) = (r.below(95), r.below(100), r.below(30));
    while log.len() < commands as usize {
        let before = sent;
        while sent < commands && dev.can_accept() && !r.chance(10) {
            let tag = free.pop().unwrap_or_else(|| panic!("seed {seed}: room but no tag"));
            let op = match r.below(100) {
                0..3 => DeviceOp::Flush,
                3..6 => DeviceOp::Discard,
                n if n < 6 + write_percent => DeviceOp::Write,
                _ => DeviceOp::Read,
            };
            let longest = if r.chance(10) { 2000 } else { 32 };
            let len = 1 + r.below(longest).min(p.capacity - 1);
            if !r.chance(sequential_percent) || at + len > p.capacity {
                at = r.below(p.capacity - len + 1);
            }
            dev.submit(now, Command { fua: r.chance(5), ..command(tag, op, at, len as u32) });
            dev.check();
            (at, sent) = (at + len, sent + 1);
        }
        let next = dev.next_event();
        if next.is_none() || r.chance(pause_percent) {
            // Time passes for the host, but never beyond the device's next event.
            let longest = if r.chance(5) { 20_000_000 } else { 30_000 };
            let pause = now + Duration::from_ns(r.below(longest));
            now = next.map_or(pause, |n| n.min(pause));
        } else if let Some(next) = next {
            assert!(
                next > now || (next == now && sent > before),
                "seed {seed}: {next:?} after a poll at {now:?}"
            );
            assert!(next.since(now) < Duration::from_secs(10), "seed {seed}: {next:?} is no finite time");
            now = next;
        }
        while let Some(tag) = dev.poll(now) {
            assert!(!free.contains(&tag.0), "seed {seed}: {tag:?} completes twice");
            free.push(tag.0);
            log.push((tag.0, now.as_ns()));
            dev.check();
        }
        dev.check();
    }
    assert_eq!(dev.room(), room, "seed {seed}: nothing is allocated for a command");
    assert!(dev.is_idle() && dev.next_event().is_none() && dev.poll(now + Duration::from_secs(9)).is_none());
    assert_eq!(
        dev.counters.flushes + dev.counters.discards + dev.counters.reads + dev.counters.writes,
        u64::from(commands)
    );
    log
}

#[test]
fn random_commands_each_complete_once_and_the_same_way_again() {
    for seed in 1..150 {
        let log = random_run(seed * 0x9e37_79b9, 400);
        if seed % 10 == 0 {
            assert_eq!(log, random_run(seed * 0x9e37_79b9, 400), "seed {seed}: deterministic");
        }
    }
}

/// Runs until everything is done. Microseconds after `EPOCH` of each tag's completion, in order of
/// completion.
fn drain(dev: &mut Ssd) -> Vec<(u16, u64)> {
    let mut log = Vec::new();
    while let Some(now) = dev.next_event() {
        while let Some(tag) = dev.poll(now) {
            log.push((tag.0, now.since(Instant::EPOCH).as_ns()));
        }
        dev.check();
    }
    log
}

/// A drive with round numbers, in nanoseconds: one page of 4 KiB takes 1000 on a channel and 2000 on the
/// link.
fn round() -> SsdParams {
    SsdParams {
        channels: 4,
        dies_per_channel: 2,
        planes: 1,
        page: Sectors(8),
        t_read: Duration::from_us(50),
        t_prog: Duration::from_us(500),
        t_cmd: Duration::from_us(10),
        t_fix: Duration::from_us(5),
        t_fix_write: Duration::from_us(7),
        t_flush: Duration::from_us(100),
        channel_rate: 4_096_000_000,
        link_rate: 2_048_000_000,
        write_buffer: 64 << 10,
        ..preset("plextor_m5s")
    }
}

/// The first sector of a page.
const fn page(lpn: u64) -> u64 {
    lpn * 8
}

const READ: DeviceOp = DeviceOp::Read;
const WRITE: DeviceOp = DeviceOp::Write;
const FLUSH: DeviceOp = DeviceOp::Flush;

#[test]
//= docs/reference/devices.md#22-sata-ssds, docs/reference/devices.md#7-what-is-easily-wrong no. 11 type=test
fn a_large_read_that_waits_does_not_block_small_ones_that_are_ready() {
    let mut dev = ssd(&round());
    // Five reads of die 0 and five of die 1, then a large one of both, then a small one elsewhere.
    for i in 0..10 {
        dev.submit(Instant::EPOCH, command(i, READ, page(u64::from(i % 2) + 8 * u64::from(i / 2)), 8));
    }
    dev.submit(Instant::EPOCH, command(10, READ, page(80), 16));
    dev.submit(Instant::EPOCH, command(11, READ, page(82), 8));
    let log = drain(&mut dev);
    let at = |tag| log.iter().find(|l| l.0 == tag).map(|l| l.1);
    // The small one: 12 commands, t_fix, t_read, channel, link.
    assert_eq!(at(11), Some(120_000 + 5000 + 50_000 + 1000 + 2000), "as if it were alone");
    // The large one: the sixth turn of the second die, which had its first at 25 us.
    assert_eq!(at(10), Some(25_000 + 6 * 51_000));
    assert!(log.windows(2).any(|w| w[0].0 == 11 && w[1].0 != 11), "it was not the last");
}

#[test]
fn a_channel_moves_what_is_ready_first() {
    let mut dev = ssd(&round());
    // Dies 0 and 4 share a channel. Two reads of die 0, then one of die 4, which is ready before the second.
    for (tag, lpn) in [(0, 0), (1, 8), (2, 4)] {
        dev.submit(Instant::EPOCH, command(tag, READ, page(lpn), 8));
    }
    let ready = |commands: u64| commands * 10_000 + 5000 + 50_000;
    let second_turn = ready(1) + 1000 + 50_000;
    assert_eq!(
        drain(&mut dev),
        [(0, ready(1) + 3000), (2, ready(3) + 3000), (1, second_turn + 3000)],
        "one channel, three pages"
    );
}

#[test]
fn planes_read_consecutive_pages_of_a_die_together() {
    for (planes, senses) in [(1, 2), (2, 1)] {
        let mut dev = ssd(&SsdParams { planes, channels: 1, dies_per_channel: 1, ..round() });
        dev.submit(Instant::EPOCH, command(0, READ, page(0), 16));
        // One sense after the other, and the register is free only when its page has moved.
        let last = 15_000 + senses * 50_000 + 2000;
        let link = 15_000 + 50_000 + 1000 + 4000;
        assert_eq!(drain(&mut dev), [(0, last.max(link))], "{planes} planes");
        // Pages 1 and 2 are on the same planes as 1 and 0.
        dev.submit(Instant::EPOCH + Duration::from_ms(1), command(1, READ, page(1), 16));
        assert_eq!(drain(&mut dev)[0].1, 1_000_000 + 15_000 + 2 * 50_000 + 2000, "not aligned");
    }
}

#[test]
fn a_write_is_done_in_the_buffer_and_a_flush_when_it_is_programmed() {
    let mut dev = ssd(&round());
    dev.submit(Instant::EPOCH, command(0, WRITE, 0, 4));
    dev.submit(Instant::EPOCH, command(1, FLUSH, 0, 0));
    assert!(!dev.can_accept(), "nothing passes a flush that is not queued");
    // Half a page: 10 + 7 + 1 us. The flush is taken up then, and puts it out as it is: channel, program.
    let written = 18_000;
    let flushed = written + 17_000 + 500 + 500_000 + 100_000;
    assert_eq!(drain(&mut dev), [(0, written), (1, flushed)]);
    // Nothing to wait for.
    dev.submit(Instant::EPOCH + Duration::from_ms(1), command(2, FLUSH, 0, 0));
    assert_eq!(drain(&mut dev), [(2, 1_000_000 + 17_000 + 100_000)]);
    assert_eq!((dev.counters.flushes, dev.counters.destages, dev.counters.destaged_sectors), (2, 1, 4));
}

#[test]
//= docs/reference/devices.md#23-nvme type=test
fn a_queued_flush_waits_for_earlier_writes_only() {
    let mut dev = ssd(&SsdParams { flush_queued: true, ..round() });
    for (tag, op) in [(0, WRITE), (1, FLUSH), (2, WRITE), (3, READ)] {
        assert!(dev.can_accept());
        dev.submit(Instant::EPOCH, command(tag, op, page(5), 8));
    }
    let mut durable = ssd(&SsdParams { power_loss_protection: true, flush_queued: true, ..round() });
    assert!(dev.facts.write_cache && !durable.facts.write_cache);
    let programmed = 10_000 + 7000 + 2000 + 1000 + 500_000;
    assert_eq!(
        drain(&mut dev),
        [(0, 19_000), (2, 39_000), (3, 98_000), (1, programmed + 100_000)],
        "the second write and the read pass"
    );
    durable.submit(Instant::EPOCH, command(0, WRITE, 0, 8));
    durable.submit(Instant::EPOCH, command(1, FLUSH, 0, 0));
    assert_eq!(drain(&mut durable), [(0, 19_000), (1, 27_000 + 100_000)], "nothing to wait for");
}

#[test]
fn a_forced_write_is_done_when_it_is_programmed() {
    let mut dev = ssd(&round());
    dev.submit(Instant::EPOCH, Command { fua: true, ..command(0, WRITE, 0, 8) });
    dev.submit(Instant::EPOCH, command(1, WRITE, 0, 8));
    assert_eq!(drain(&mut dev), [(1, 29_000), (0, 19_000 + 1000 + 500_000)]);
}

#[test]
fn a_full_buffer_lets_a_write_in_as_pages_are_programmed() {
    // Four pages, and eight dies that take them at once.
    let mut dev = ssd(&SsdParams { write_buffer: 16 << 10, ..round() });
    for i in 0..6 {
        dev.submit(Instant::EPOCH, command(i, WRITE, page(u64::from(i)), 8));
    }
    // Four land at 19, 29, 39 and 49 us; each is programmed 501 us later, and makes room for 2 us of the
    // next.
    let room = |i: u64| 19_000 + 10_000 * i + 501_000;
    let expected = [19_000, 29_000, 39_000, 49_000, room(0) + 2000, room(1) + 2000];
    let log: Vec<u64> = drain(&mut dev).iter().map(|l| l.1).collect();
    assert_eq!(log, expected);
    assert_eq!(dev.counters.write_waits, 2);
    // One that is larger than the buffer gets in piece by piece.
    dev.submit(Instant::EPOCH + Duration::from_ms(9), command(9, WRITE, 0, 80));
    let last = drain(&mut dev)[0].1 - 9_000_000;
    assert!(
        (1_000_000..1_100_000).contains(&last),
        "10 pages in three rounds, the last of them on the link: {last}"
    );
}

/// Four pages of buffer, six writes of a page, and a read behind them.
#[test]
fn a_read_takes_its_turn_for_a_shared_buffer() {
    let run = |shared_buffer, writes: u16| {
        let mut dev = ssd(&SsdParams { write_buffer: 16 << 10, shared_buffer, ..round() });
        for i in 0..writes {
            dev.submit(Instant::EPOCH, command(i, WRITE, page(u64::from(i)), 8));
        }
        // On a die of its own.
        dev.submit(Instant::EPOCH, command(9, READ, page(7), 8));
        let log = drain(&mut dev);
        (log.iter().find(|l| l.0 == 9).map(|l| l.1), dev.counters.read_waits)
    };
    // Command 7 of one processor is out at 70 us, and goes to the die at 75: 50 us to sense, one on the
    // channel, two on the link.
    assert_eq!(run(false, 6), (Some(75_000 + 53_000), 0));
    // The last write gets room when the program of the second ends, at 530 us, and the read's turn comes at
    // once.
    assert_eq!(run(true, 6), (Some(530_000 + 53_000), 1));
    // One write more waits for the third program; one that finds room does not matter.
    assert_eq!(run(true, 7), (Some(540_000 + 53_000), 1));
    assert_eq!(run(true, 4), (Some(55_000 + 53_000), 0));
}

#[test]
fn a_read_waits_for_a_program_or_suspends_it() {
    for (suspend, wait) in [(0, 441_000), (30, 30_000)] {
        let p = SsdParams { t_suspend: Duration::from_us(suspend), flush_queued: true, ..round() };
        let mut dev = ssd(&p);
        dev.submit(Instant::EPOCH, command(0, WRITE, 0, 8));
        dev.submit(Instant::EPOCH, command(1, FLUSH, 0, 0));
        // The program runs from 20 to 520 us; the read gets to the die at 79.
        dev.submit(Instant::EPOCH + Duration::from_us(64), command(2, READ, 0, 8));
        let log = drain(&mut dev);
        let at = |tag| log.iter().find(|l| l.0 == tag).map(|l| l.1);
        assert_eq!(at(2), Some(79_000 + wait + 50_000 + 3000), "suspend: {suspend} us");
        let longer = if suspend > 0 { wait + 51_000 } else { 0 };
        assert_eq!(at(1), Some(520_000 + longer + 100_000), "the program takes as long as before");
        assert_eq!(dev.counters.suspends, u64::from(suspend > 0));
    }
}

#[test]
//= docs/reference/devices.md#22-sata-ssds type=test
fn the_slc_cache_is_fast_until_it_is_full_and_again_after_a_rest() {
    let slc = SsdParams {
        t_prog_slc: Duration::from_us(100),
        slc: 16 * 4096,
        slc_idle: Duration::from_ms(10),
        flush_queued: true,
        ..round()
    };
    let mut dev = ssd(&slc);
    let mut now = Instant::EPOCH;
    // How long eight pages, one for each die, take to be programmed.
    let mut eight = |dev: &mut Ssd, rest: Duration| {
        now = now + rest;
        dev.submit(now, command(0, WRITE, 0, 64));
        dev.submit(now, command(1, FLUSH, 0, 0));
        let end = drain(dev).last().map_or(0, |l| l.1);
        let took = end - now.since(Instant::EPOCH).as_ns();
        now = Instant::EPOCH + Duration::from_ns(end);
        (took - 100_000) / 100_000
    };
    assert_eq!(eight(&mut dev, Duration::ZERO), 1, "100 us and what the bytes take");
    assert_eq!(eight(&mut dev, Duration::ZERO), 1);
    assert!(dev.ftl.slc_full);
    assert!(eight(&mut dev, Duration::ZERO) >= 5, "full: native, and units are on their way out");
    assert!(eight(&mut dev, Duration::from_secs(1)) == 1, "emptied meanwhile");
    assert_eq!(dev.ftl.slc_used, 8);
}

#[test]
fn readers_of_one_die_cannot_keep_a_flush_waiting() {
    let mut dev = ssd(&SsdParams { flush_queued: true, queue_depth: 32, ..round() });
    let mut now = Instant::EPOCH;
    for i in 0..30 {
        dev.submit(now, command(i, READ, 0, 8));
    }
    dev.submit(now, command(30, WRITE, 0, 8));
    dev.submit(now, command(31, FLUSH, 0, 0));
    let mut reads = 0;
    loop {
        now = dev.next_event().unwrap_or_else(|| panic!("stuck"));
        let Some(tag) = dev.poll(now) else { continue };
        match tag.0 {
            31 => break,
            30 => {}
            tag => {
                reads += 1;
                dev.submit(now, command(tag, READ, 0, 8));
                assert!(reads < 1000, "the flush starves");
            }
        }
    }
    assert!(reads >= 16, "reads go first: {reads}");
}

#[test]
//= docs/reference/devices.md#22-sata-ssds type=test
fn random_overwrites_are_amplified_and_sequential_ones_are_not() {
    let p = SsdParams { spare_permille: 70, capacity: 1 << 21, pages_per_block: 16, ..round() };
    // Pages moved for each page written, in thousandths.
    let moved = |p: &SsdParams, discard: u32, place: &dyn Fn(u64) -> u64| {
        let mut dev = ssd(p);
        if discard > 0 {
            dev.submit(Instant::EPOCH, command(0, DeviceOp::Discard, 0, discard));
        }
        let mut at = Instant::EPOCH;
        for i in 0..4000 {
            let log = drain(&mut dev);
            at = log.last().map_or(at, |l| Instant::EPOCH + Duration::from_ns(l.1));
            dev.submit(at, command(0, WRITE, page(place(i)), 8));
        }
        drain(&mut dev);
        let (moves, erases) = (dev.counters.page_moves, dev.counters.erases);
        assert!((4000 + moves).abs_diff(16 * erases) <= 8 * 16, "a block for each block's worth: {erases}");
        moves * 1000 / 4000
    };
    let scattered = |i: u64| (i * 7919 + 13) % (1 << 18);
    // (1 + 0.07) / 0.14 = 7.643, less the page itself.
    assert!(moved(&p, 0, &scattered).abs_diff(6643) < 20, "{}", moved(&p, 0, &scattered));
    assert_eq!(moved(&p, 0, &|i| i), 0, "in sequence");
    assert!(moved(&p, 0, &|i| (i % 3) * 60_000 + i / 3) <= 5, "three streams, but for their first pages");
    // Half discarded: s = (0.07 + 0.5) / 0.5 = 1.14, WA = 0.94: as a fresh drive. Writes use up a little of
    // it.
    assert_eq!(moved(&p, 1 << 20, &|i| scattered(i) % (1 << 17)), 0, "half of it discarded");
    let fixed = SsdParams { write_amplification_permille: Some(2500), ..p };
    assert!(moved(&fixed, 0, &scattered).abs_diff(1500) < 5, "as told");
}

#[test]
fn a_half_duplex_link_is_shared() {
    // The write takes the link from 17 to 81 us; the read's data are there at 76 us.
    for (half_duplex, read_done) in [(false, 78_000), (true, 83_000)] {
        let mut dev = ssd(&SsdParams { half_duplex, write_buffer: 1 << 20, ..round() });
        dev.submit(Instant::EPOCH, command(0, WRITE, page(4), 256));
        dev.submit(Instant::EPOCH, command(1, READ, page(3), 8));
        let log = drain(&mut dev);
        assert!(log.contains(&(0, 81_000)) && log.contains(&(1, read_done)), "{half_duplex}: {log:?}");
    }
}

/// Writes `pages` in sequence, eight at a time, as fast as they get in. Microseconds until each eighth of
/// them was in.
fn write_through(dev: &mut Ssd, pages: u64, mut each: impl FnMut(&Ssd)) -> Vec<u64> {
    let (mut now, mut sent, mut done, mut log) = (Instant::EPOCH, 0, 0, Vec::new());
    let mut free: Vec<u16> = (0..8).collect();
    while done < pages {
        while sent < pages
            && let Some(tag) = free.pop()
        {
            dev.submit(now, command(tag, WRITE, page(sent), 64));
            sent += 8;
        }
        now = dev.next_event().unwrap_or_else(|| panic!("stuck"));
        while let Some(tag) = dev.poll(now) {
            free.push(tag.0);
            done += 8;
            if done % (pages / 8) == 0 {
                log.push(now.since(Instant::EPOCH).as_ns() / 1000);
            }
            each(dev);
        }
        dev.check();
    }
    log
}

#[track_caller]
fn near(what: &str, ours: u64, by_hand: u64, permille: u64) {
    println!("{what}: {ours}, by hand {by_hand}");
    assert!(1000 * ours.abs_diff(by_hand) <= permille * by_hand, "{what}: {ours}, by hand {by_hand}");
}

/// Drives whose eight dies take a page in 1 us, programs in 100 us of the cache and 500 us of native cells,
/// 50 us to sense.
fn cached() -> SsdParams {
    SsdParams {
        t_prog_slc: Duration::from_us(100),
        slc_idle: Duration::from_secs(9),
        pages_per_block: 65_536,
        write_buffer: 1 << 20,
        link_rate: 4_096_000_000,
        ..round()
    }
}

#[test]
fn a_folding_cache_has_its_cliff_where_it_is_full() {
    let mut dev = ssd(&SsdParams { slc: 4000 * 4096, slc_full: SlcFull::Fold, ..cached() });
    let log = write_through(&mut dev, 8000, |_| {});
    // Eight pages in 101 us until 4000 are there; then also a sense and a native program each: 651 us. The
    // write buffer is 256 pages ahead of the dies, which moves the cliff behind.
    let fast = |pages: u64| pages * 101 / 8;
    for eighth in 1..=4 {
        near("in the cache", log[eighth as usize - 1], fast(1000 * eighth - 256), 25);
    }
    for eighth in 5..=8 {
        let slow = (1000 * eighth - 256 - 4000) * 651 / 8;
        near("behind the cliff", log[eighth as usize - 1], fast(4000) + slow, 25);
    }
    assert_eq!(dev.ftl.slc_used, 4000, "as many leave as come");
}

#[test]
fn a_cache_that_is_drained_is_fast_again() {
    let p = SsdParams { slc: 1000 * 4096, slc_full: SlcFull::Drain, ..cached() };
    let log = write_through(&mut ssd(&p), 8000, |_| {});
    // 1000 pages in 101 us for eight; with three bits, half a page leaves with each native program: 501 + 275
    // us for eight, for 2000 pages. So each 3000 pages are alike, and the third time begins at 6000. The
    // buffer's 256 pages are ahead of the dies.
    let at = |pages: u64| {
        let (rounds, rest) = (pages / 3000, pages % 3000);
        let (fast, slow) = (rest.min(1000), rest.saturating_sub(1000));
        rounds * (1000 * 101 + 2000 * 776) / 8 + (fast * 101 + slow * 776) / 8
    };
    for eighth in 1..=8 {
        near("drained", log[eighth as usize - 1], at(1000 * eighth - 256), 25);
    }
}

/// The cache of a drive that was at work until now is where it was; that of one that rests is not.
#[test]
fn a_cache_may_be_full_at_first() {
    let p = SsdParams { slc: 1000 * 4096, slc_fill_permille: 1000, ..cached() };
    let log = write_through(&mut ssd(&p), 8000, |_| {});
    near("native from the beginning", log[7], (8000 - 256) * 501 / 8, 10);
    // Of one that holds no data there are none in the cache.
    let empty = ssd(&SsdParams { fill_permille: 0, ..p.clone() });
    assert_eq!(empty.ftl.slc_used, 0);
    // Readers leave it alone; a rest empties it.
    for (pause, left) in [(Duration::from_us(100), 1000), (Duration::from_secs(20), 0)] {
        let mut dev = ssd(&p);
        let mut now = Instant::EPOCH;
        for i in 0..100 {
            now = now + if i == 50 { pause } else { Duration::from_us(100) };
            dev.submit(now, command(0, READ, page(i), 8));
            now = Instant::EPOCH + Duration::from_ns(drain(&mut dev)[0].1);
            dev.check();
        }
        assert_eq!(dev.ftl.slc_used, left, "{pause:?}");
    }
}

#[test]
fn a_cache_in_free_flash_shrinks_as_the_drive_fills_up() {
    let pages = 16_000;
    let p = SsdParams {
        capacity: page(pages),
        fill_permille: 0,
        slc: 0,
        slc_dynamic: 4000 * 4096,
        cell_bits: 3,
        ..cached()
    };
    let mut dev = ssd(&p);
    let mut most = 0;
    let log = write_through(&mut dev, pages, |dev| {
        most = most.max(dev.ftl.slc_used);
        // Cells: what is in the cache takes two pages more each than it will. Commands and buffer are ahead
        // of that, and two pages of each die may be late.
        let (extra, free) = (2 * dev.ftl.slc_used, dev.ftl.free() / 8);
        assert!(extra <= free + 2 * (64 + 256 + 16), "{extra} pages borrowed of {free}");
    });
    assert_eq!(most, 4000);
    // 4000 pages into the cache, 101 us for eight; then 501 us, until 8000 are free; then half a page is
    // folded for each that comes, which takes 275 us more. The write buffer's 256 pages are ahead of the
    // dies, and so of each stage.
    let slc = |pages: u64| pages * 101 / 8;
    near("the cache, less the buffer", log[1], slc(4000 - 256), 10);
    near("native cells", log[3] - log[1], slc(256) + (4000 - 256) * 501 / 8, 10);
    near("native cells, and folded", log[7] - log[3], 8000 * 776 / 8, 10);
    // Discarded, and left alone, it is as large as at first.
    let end = dev.next_event().unwrap_or(Instant::EPOCH + Duration::from_secs(60));
    dev.submit(end, command(0, DeviceOp::Discard, 0, page(pages) as u32));
    drain(&mut dev);
    for (ms, op) in [(60_000, WRITE), (60_001, READ)] {
        dev.submit(end + Duration::from_ms(ms), command(0, op, 0, 8));
        drain(&mut dev);
    }
    assert_eq!(dev.ftl.slc_used, 1, "emptied meanwhile");
}

#[test]
fn a_whole_drive_as_cache_ends_at_a_third_of_it() {
    let pages = 12_000;
    for (bits, stays) in [(3, 4000), (4, 3000)] {
        let p = SsdParams {
            capacity: page(pages),
            fill_permille: 0,
            slc: 0,
            slc_dynamic: page(pages) * 512,
            cell_bits: bits,
            ..cached()
        };
        let mut dev = ssd(&p);
        let mut most = 0;
        write_through(&mut dev, pages, |dev| most = most.max(dev.ftl.slc_used));
        // Data on their way count as there, so it is full up to the buffer and eight commands sooner.
        assert!(most <= stays && most > stays - 320, "{bits} bits: {most} pages");
    }
}

#[test]
fn a_read_waits_for_an_erase() {
    let mut dev = ssd(&SsdParams { pages_per_block: 1, t_erase: Duration::from_ms(4), ..round() });
    dev.submit(Instant::EPOCH, command(0, WRITE, 0, 8));
    // In the buffer at 19 us, on the die at 20, programmed at 520, erased at 4520. The read is there at 1015.
    dev.submit(Instant::EPOCH + Duration::from_ms(1), command(1, READ, 0, 8));
    assert!(drain(&mut dev).contains(&(1, 4_520_000 + 50_000 + 3000)));
}

#[test]
fn pages_that_move_take_the_channel() {
    // Programmed at 520 us; another page is sensed until 570, out and in until 572. The read of the other die
    // on that channel is sensed at 571.
    for (copy_back, ready) in [(true, 571_000), (false, 572_000)] {
        let p = SsdParams { write_amplification_permille: Some(2000), copy_back, ..round() };
        let mut dev = ssd(&p);
        dev.submit(Instant::EPOCH, command(0, WRITE, page(8), 8));
        dev.submit(Instant::EPOCH + Duration::from_us(506), command(1, READ, page(4), 8));
        assert!(drain(&mut dev).contains(&(1, ready + 3000)), "{copy_back}");
        assert_eq!(dev.counters.page_moves, 1);
    }
}

/// Pages programmed for each page written, in thousandths, of a page map whose garbage collection takes the
/// block with the fewest valid pages: the real thing, small. All `data` are written in order, then the first
/// `hot` pages of them at random.
fn greedy(blocks: usize, pages: usize, data: usize, hot: usize) -> u64 {
    const NONE: usize = usize::MAX;
    let mut r = Rng(99);
    let (mut place, mut owner) = (vec![NONE; data], vec![NONE; blocks * pages]);
    let mut valid = vec![0_usize; blocks];
    let mut free: Vec<usize> = (1..blocks).collect();
    let (mut open, mut next, mut programmed) = (0, 0, 0_u64);
    let (warm, counted) = (4 * data, 4 * data);
    let mut base = 0;
    for i in 0..warm + counted {
        if i == warm {
            base = programmed;
        }
        // In order at first, then at random.
        let mut todo = vec![if i < data { i } else { r.below(hot as u64) as usize }];
        while let Some(lpn) = todo.pop() {
            if next == pages {
                if free.len() <= 1 {
                    let closed = (0..blocks).filter(|b| *b != open && !free.contains(b));
                    let victim = closed.min_by_key(|&b| valid[b]).unwrap_or(0);
                    for cell in &mut owner[victim * pages..(victim + 1) * pages] {
                        let lpn = std::mem::replace(cell, NONE);
                        if lpn != NONE {
                            todo.push(lpn);
                            place[lpn] = NONE;
                        }
                    }
                    valid[victim] = 0;
                    free.insert(0, victim);
                }
                (open, next) = (free.pop().unwrap_or_else(|| panic!("no block")), 0);
            }
            let old = std::mem::replace(&mut place[lpn], open * pages + next);
            if old != NONE {
                (owner[old], valid[old / pages]) = (NONE, valid[old / pages] - 1);
            }
            owner[open * pages + next] = lpn;
            valid[open] += 1;
            next += 1;
            programmed += 1;
        }
    }
    (programmed - base) * 1000 / counted as u64
}

#[test]
//= docs/reference/devices.md#22-sata-ssds type=test
fn write_amplification_is_that_of_greedy_garbage_collection() {
    // As many pages in a block as make it a large one; of small ones greedy finds emptier.
    let (blocks, pages) = (128, 256);
    for spare in [100, 150, 200, 300] {
        let p = SsdParams { spare_permille: spare, ..round() };
        let formula = Ftl::new(&p).amplification();
        assert_eq!(formula, u64::from((1000 + spare) * 1000 / (2 * spare)), "(1 + s) / 2 s");
        let data = (blocks - 2) * pages * 1000 / (1000 + spare as usize);
        near(&format!("{spare} thousandths spare"), formula, greedy(blocks, pages, data, data), 100);
    }
}

/// A part that is overwritten at random has all of the spare flash for itself, in the page map too.
#[test]
//= docs/reference/devices.md#hot-parts type=test
fn what_is_never_overwritten_is_not_moved() {
    let (blocks, pages, spare) = (128, 256, 150);
    for hot in [1000, 700, 400] {
        let p = SsdParams { spare_permille: spare, hot_parts: true, capacity: 1 << 20, ..round() };
        let mut ftl = Ftl::new(&p);
        assert_eq!(ftl.amplification(), 1000, "nothing has been overwritten");
        let mut r = Rng(5);
        for _ in 0..100_000 {
            let start = r.below(p.capacity * hot / 8000) * 8;
            ftl.is_random(start, start + 8);
        }
        let formula = ftl.amplification();
        near("(hot + s) / 2 s", formula, ((hot + u64::from(spare)) * 500 / u64::from(spare)).max(1000), 15);
        let data = (blocks - 2) * pages * 1000 / (1000 + spare as usize);
        let map = greedy(blocks, pages, data, data * hot as usize / 1000);
        near(&format!("{hot} thousandths hot"), formula, map, 100);
    }
}

#[test]
fn parts_that_are_left_alone_are_forgotten() {
    let p = SsdParams { spare_permille: 100, hot_parts: true, capacity: 1 << 20, ..round() };
    let mut ftl = Ftl::new(&p);
    let mut r = Rng(5);
    let mut write = |ftl: &mut Ftl, sectors: u64, range: u64| {
        for _ in 0..sectors / 8 {
            let start = r.below(range / 8) * 8;
            ftl.is_random(start, start + 8);
        }
        ftl.amplification()
    };
    near("all of it", write(&mut ftl, p.capacity / 2, p.capacity), 5500, 15);
    // A tenth of it: the rest is forgotten when twice as much as there is spare has been written.
    assert!(write(&mut ftl, p.capacity / 20, p.capacity / 10) > 5000);
    near("a tenth", write(&mut ftl, p.capacity / 5, p.capacity / 10), 1000, 30);
}

#[test]
fn write_amplification_grows_with_the_fill() {
    let mut last = 0;
    for fill in [300, 500, 700, 800, 900, 1000] {
        let p = SsdParams { fill_permille: fill, ..round() };
        let wa = Ftl::new(&p).amplification();
        // The rest of the capacity is spare, too: (data + spare) / (2 spare), at least 1.
        let fill = u64::from(fill);
        near(&format!("{fill} full"), wa, (1_070_000 / (2 * (1070 - fill))).max(1000), 5);
        assert!(wa >= last);
        last = wa;
    }
    assert!(last > 7000);
}
