//! Drawn storms of every preset, through the C ABI and in Rust at once: the decisions are the same.

use fairhead::calls::*;
use fairhead::control::*;
use fairhead::create::*;
use fairhead::observe::*;
use fairhead::tunables::*;
use fairhead::types::*;
use fairhead_core::sched::any::{AnyConfig, AnyScheduler, PRESETS, Preset};
use fairhead_core::{
    Control, Dispatch, Duration, Elevator, End, GroupId, Insert, Instant, IoPrio, Limits, Max, Op, Request,
    Rest, Sector, Sectors, Tag, TaskId, Weight,
};
use std::ffi::CString;
use std::num::NonZeroU64;
use std::ptr::{null, null_mut};

const TAGS: u16 = 48;
const GROUPS: u32 = 4;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }
}

/// Memory for an instance, which stays where it is.
struct Memory(Vec<u8>);

impl Memory {
    fn new(size: usize, align: usize) -> (Self, *mut u8) {
        let mut bytes = vec![0xA5; size + align];
        let at = bytes.as_mut_ptr();
        // SAFETY: within the bytes, which are longer by `align`.
        let at = unsafe { at.add(at.align_offset(align)) };
        (Self(bytes), at)
    }
}

struct Pair {
    c: *mut fairhead::Instance,
    rust: Elevator<AnyScheduler>,
    config: AnyConfig,
    now: u64,
    waiting: u32,
    issued: Vec<u16>,
    free: Vec<u16>,
    merges: bool,
    memory: Memory,
}

fn clock(now: u64) -> Instant {
    Instant::EPOCH + Duration::from_ns(now)
}

impl Pair {
    fn new(preset: &Preset, chance: &mut Random) -> Self {
        let mut l = FhLimits::defaults();
        (l.tags, l.groups, l.tasks) = (TAGS.into(), GROUPS, 1 + chance.below(6) as u32);
        (l.queue_depth, l.trace) = (1 + chance.below(8) as u32, 1000);
        (l.rotational, l.merges) = (chance.below(2) as u32, chance.below(4).min(1) as u32);
        l.max_sectors = 64;
        let name = CString::new(preset.name).expect("a name");
        let (mut size, mut align, mut c) = (0, 0, null_mut());
        // SAFETY: everything pointed to is there, and the memory stays with the pair.
        let memory = unsafe {
            assert_eq!(fh_size(&l, name.as_ptr(), &mut size, &mut align, null_mut()), FH_OK);
            let (memory, at) = Memory::new(size, align);
            let made = fh_create(at.cast(), size, &l, name.as_ptr(), null(), 0, &mut c, null_mut());
            assert_eq!(made, FH_OK);
            memory
        };
        let limits = Limits {
            tags: TAGS,
            groups: GROUPS,
            tasks: l.tasks,
            queue_depth: l.queue_depth as u16,
            trace: 1000,
            rotational: l.rotational == 1,
            merges: l.merges == 1,
            max_sectors: Sectors(64),
            ..Limits::default()
        };
        let config = (preset.config)();
        let rust = Elevator::new(limits, config).expect("limits that C took");
        let (issued, free) = (Vec::new(), (0..TAGS).collect());
        Self { c, rust, config, now: 0, waiting: 0, issued, free, merges: l.merges == 1, memory }
    }

    fn request(chance: &mut Random) -> (FhRequest, Request) {
        let sync = chance.below(2) == 1;
        let c = FhRequest {
            sector: chance.below(60) * 8,
            sectors: 8,
            task: chance.below(7) as u32,
            group: chance.below(GROUPS.into()) as u32,
            op: chance.below(3) as u8,
            prio_class: [0, 1, 1, 1, 2][chance.below(5) as usize],
            prio_level: chance.below(8) as u8,
            flags: u8::from(sync) | (chance.below(4) as u8) << 1,
        };
        let op = [Op::Read, Op::Write, Op::Discard][usize::from(c.op)];
        let class =
            [fairhead_core::Class::RealTime, fairhead_core::Class::BestEffort, fairhead_core::Class::Idle]
                [usize::from(c.prio_class)];
        let rust = Request {
            start: Sector(c.sector),
            len: Sectors(c.sectors),
            op,
            sync: sync || op == Op::Read,
            meta: c.flags & FH_META > 0,
            no_idle: c.flags & FH_NO_IDLE > 0,
            task: TaskId(c.task),
            group: GroupId(c.group),
            prio: IoPrio::new(class, c.prio_level),
        };
        (c, rust)
    }

    fn inserted(answer: Insert) -> (i32, u16) {
        match answer {
            Insert::Queued => (FH_QUEUED, FH_NO_TAG),
            Insert::Merged { into, end: End::Back } => (FH_MERGED_BACK, into.0),
            Insert::Merged { into, end: End::Front } => (FH_MERGED_FRONT, into.0),
        }
    }

    fn draw_tag(&mut self, chance: &mut Random) -> Option<u16> {
        let n = self.free.len() as u64;
        (n > 0).then(|| self.free.swap_remove(chance.below(n) as usize))
    }

    fn insert(&mut self, chance: &mut Random) {
        let Some(tag) = self.draw_tag(chance) else { return };
        let (mut c, rust) = Self::request(chance);
        let mut into = 7;
        let alone = chance.below(10) == 0;
        c.flags |= if alone { FH_ALONE } else { 0 };
        // SAFETY: an instance, a request, a tag.
        let answer = unsafe { fh_insert(self.c, self.now, tag, &c, &mut into) };
        let expected = if alone {
            self.rust.insert_alone(clock(self.now), Tag(tag), rust);
            (FH_QUEUED, FH_NO_TAG)
        } else {
            Self::inserted(self.rust.insert(clock(self.now), Tag(tag), rust))
        };
        assert_eq!((answer, into), expected);
        self.waiting += 1;
    }

    fn insert_batch(&mut self, chance: &mut Random) {
        let (mut c, mut rust) = (Vec::new(), Vec::new());
        for _ in 0..chance.below(20) {
            let Some(tag) = self.draw_tag(chance) else { break };
            let (request, rq) = Self::request(chance);
            c.push(FhArrival { request, tag, into: 0, answer: 0 });
            rust.push((Tag(tag), rq));
        }
        let mut done = 99;
        // SAFETY: an instance, and `c.len()` arrivals.
        let status = unsafe { fh_insert_batch(self.c, self.now, c.as_mut_ptr(), c.len(), &mut done) };
        assert_eq!((status, done), (FH_OK, c.len()));
        let mut answers = c.iter();
        self.rust.insert_batch(clock(self.now), &rust, |tag, answer| {
            let got = answers.next().expect("an answer for each");
            assert_eq!((got.tag, (got.answer, got.into)), (tag.0, Self::inserted(answer)));
        });
        self.waiting += c.len() as u32;
    }

    fn dispatch(&mut self) {
        let (mut tag, mut hold) = (0, 0);
        // SAFETY: an instance, a tag, a number.
        let answer = unsafe { fh_dispatch(self.c, self.now, &mut tag, &mut hold) };
        match self.rust.dispatch(clock(self.now)) {
            Dispatch::Issue(expected) => {
                assert_eq!((answer, tag), (FH_ISSUE, expected.0));
                self.issued.push(tag);
            }
            Dispatch::Hold(why) => assert_eq!((answer, hold), (FH_HOLD, why as u32 + 1)),
            Dispatch::Empty => assert_eq!(answer, FH_EMPTY),
        }
    }

    fn dispatch_batch(&mut self, chance: &mut Random) {
        let room = chance.below(9) as usize;
        let (mut tags, mut issued, mut hold, mut expected) = ([0; 9], 0, 0, Vec::new());
        // SAFETY: an instance, room for the tags, numbers.
        let answer =
            unsafe { fh_dispatch_batch(self.c, self.now, tags.as_mut_ptr(), room, &mut issued, &mut hold) };
        let rest = self.rust.dispatch_batch(clock(self.now), room, |tag| expected.push(tag.0));
        assert_eq!(tags[..issued], expected);
        match rest {
            Rest::Full => assert_eq!(answer, FH_FULL),
            Rest::Hold(why) => assert_eq!((answer, hold), (FH_HOLD, why as u32 + 1)),
            Rest::Empty => assert_eq!(answer, FH_EMPTY),
        }
        self.issued.extend(expected);
    }

    fn finish(&mut self, chance: &mut Random, hand_back: bool) {
        if self.issued.is_empty() {
            return;
        }
        let tag = self.issued.swap_remove(chance.below(self.issued.len() as u64) as usize);
        if hand_back {
            // SAFETY: an instance.
            assert_eq!(unsafe { fh_requeue(self.c, self.now, tag) }, FH_OK);
            self.rust.requeue(clock(self.now), Tag(tag));
            return;
        }
        if chance.below(3) == 0 && self.rust.requests().carried(Tag(tag)).next().is_none() {
            return self.complete_timer(tag);
        }
        let (mut freed, mut count) = ([0; TAGS as usize], 0);
        // SAFETY: an instance, room for all tags, a number.
        let status =
            unsafe { fh_complete(self.c, self.now, tag, freed.as_mut_ptr(), freed.len(), &mut count) };
        let expected: Vec<u16> = self.rust.complete(clock(self.now), Tag(tag)).map(|t| t.0).collect();
        assert_eq!((status, &freed[..count]), (FH_OK, &expected[..]));
        self.waiting -= count as u32;
        self.free.extend(expected);
    }

    /// A request that carries none is done, and the timer is asked for in the same call.
    fn complete_timer(&mut self, tag: u16) {
        let (mut when, mut why) = (0, 0);
        // SAFETY: an instance and numbers.
        let has = unsafe { fh_complete_timer(self.c, self.now, tag, &mut when, &mut why) };
        assert_eq!(self.rust.complete(clock(self.now), Tag(tag)).count(), 1);
        let expected = self.rust.next_timer();
        assert_eq!(has == 1, expected.is_some());
        if let Some((at, reason)) = expected {
            assert_eq!((clock(when), why), (at, reason as u32 + 1));
        }
        self.waiting -= 1;
        self.free.push(tag);
    }

    /// Merges of the driver: a request that waits grows.
    fn grow(&mut self, chance: &mut Random) {
        let tag = chance.below(TAGS.into()) as u16;
        if self.merges || self.free.contains(&tag) || self.issued.contains(&tag) {
            return;
        }
        let rq = self.rust.requests()[Tag(tag)].rq;
        let mut c = FhRequest { sector: rq.end().0, sectors: 8, ..Self::request(chance).0 };
        // SAFETY: an instance, and requests.
        unsafe {
            let mut own = c;
            assert_eq!(fh_request(self.c, tag, &mut own), FH_OK);
            (c.op, c.group, c.flags) = (own.op, own.group, own.flags);
            (c.task, c.prio_class, c.prio_level) = (own.task, own.prio_class, own.prio_level);
            let may = fh_may_merge(self.c, self.now, tag, &c);
            let piece = Request { start: rq.end(), len: Sectors(8), ..rq };
            assert_eq!(may, i32::from(self.rust.may_merge(clock(self.now), Tag(tag), &piece)));
            if may == 1 {
                assert_eq!(fh_grow(self.c, self.now, tag, FH_MERGED_BACK, 8), FH_OK);
                self.rust.grow(clock(self.now), Tag(tag), End::Back, Sectors(8));
            }
        }
    }

    fn control(&mut self, chance: &mut Random) {
        let (group, task) = (chance.below(GROUPS.into()) as u32, chance.below(7) as u32);
        let (weight, rate) = (1 + chance.below(1000) as u32, chance.below(2) * 5_000);
        let (c, now) = (self.c, self.now);
        // SAFETY: an instance, and limits.
        let (status, change) = unsafe {
            match chance.below(7) {
                0 => {
                    let w = Weight::new(weight as u16).expect("a weight");
                    (fh_set_weight(c, now, group, weight), Control::SetWeight(GroupId(group), w))
                }
                1 => (fh_task_exit(c, now, task), Control::TaskExit(TaskId(task))),
                2 => {
                    let prio = IoPrio::new(fairhead_core::Class::BestEffort, 2);
                    (fh_set_priority(c, now, task, 1, 2), Control::SetPrio(TaskId(task), prio))
                }
                3 => {
                    let max = FhMax { rbps: 0, wbps: 0, riops: rate, wiops: 0, burst_ns: 0 };
                    let own = Max { riops: NonZeroU64::new(rate), ..Max::default() };
                    (fh_set_max(c, now, group, &max), Control::SetMax(GroupId(group), own))
                }
                4 => {
                    let change = Control::SetParent(GroupId(group), GroupId(1));
                    (fh_set_parent(c, now, group, 1), change)
                }
                5 => {
                    let target = (rate > 0).then(|| Duration::from_us(rate));
                    (fh_set_latency(c, now, group, rate * 1000), Control::SetLatency(GroupId(group), target))
                }
                _ => (fh_group_exit(c, now, group), Control::GroupExit(GroupId(group))),
            }
        };
        assert_eq!(status == FH_OK, self.rust.control(clock(now), change).is_ok(), "{change:?}: {status}");
    }

    fn tune(&mut self, chance: &mut Random) {
        let list = self.config.list();
        if list.is_empty() {
            return;
        }
        let t = &list[chance.below(list.len() as u64) as usize];
        let name = CString::new(t.name).expect("a name");
        let value = t.min + chance.below((t.max - t.min).min(1 << 20) + 1);
        let mut config = self.config;
        let is_set = config.set(t.name, value);
        // SAFETY: an instance and a name.
        let status = unsafe { fh_set(self.c, self.now, name.as_ptr(), value) };
        if is_set.is_err() {
            assert!(status < 0);
            return;
        }
        match self.rust.reconfigure(clock(self.now), config) {
            Ok(true) => {
                assert_eq!(status, FH_OK);
                self.config = config;
            }
            Ok(false) => assert!(status == FH_E_REFUSED || config == self.config && status == FH_OK),
            Err(_) => assert_eq!(status, FH_E_RANGE),
        }
        let mut now = 0;
        // SAFETY: an instance, a name, a number.
        assert_eq!(unsafe { fh_get(self.c, name.as_ptr(), &mut now) }, FH_OK);
        assert_eq!(Some(now), self.config.get(t.name));
    }

    /// Everything that can be seen is the same.
    fn compare(&mut self) {
        let (mut when, mut why) = (0, 0);
        // SAFETY: an instance, numbers, and room for an event.
        unsafe {
            let has = fh_next_timer(self.c, &mut when, &mut why);
            let expected = self.rust.next_timer();
            assert_eq!(has == 1, expected.is_some());
            if let Some((at, reason)) = expected {
                assert_eq!((clock(when), why), (at, reason as u32 + 1));
            }
            let mut counts = FhCounts::default();
            assert_eq!(fh_counts(self.c, &mut counts), FH_OK);
            assert_eq!(counts.waiting + counts.issued + counts.carried, self.waiting);
            assert_eq!(counts.held, self.rust.requests().held());
            let mut events = Vec::<FhEvent>::with_capacity(1000);
            let mut count = 0;
            assert_eq!(fh_drain_trace(self.c, events.as_mut_ptr(), 1000, &mut count), FH_OK);
            events.set_len(count);
            let expected: Vec<_> = self.rust.drain_trace().collect();
            assert_eq!(count, expected.len());
            for (got, own) in events.iter().zip(&expected) {
                let (action, reason) = (own.action.letter() as u8, own.reason as u8);
                assert_eq!((clock(got.at_ns), got.action as u8, got.reason), (own.at, action, reason));
                assert_eq!((got.sector, got.sectors, got.task), (own.start.0, own.len.0, own.task.0));
                assert_eq!(got.tag, own.tag.map_or(FH_NO_TAG, |t| t.0));
            }
        }
    }

    fn step(&mut self, chance: &mut Random) {
        self.now += chance.below(3) * chance.below(3_000_000);
        match chance.below(24) {
            0..6 => self.insert(chance),
            6 => self.insert_batch(chance),
            7..11 => self.dispatch(),
            11..13 => self.dispatch_batch(chance),
            13..18 => self.finish(chance, false),
            18 => self.finish(chance, true),
            19 => self.control(chance),
            20 => self.tune(chance),
            21 => self.grow(chance),
            _ => {
                // SAFETY: an instance.
                assert_eq!(unsafe { fh_timer(self.c, self.now) }, FH_OK);
                self.rust.timer(clock(self.now));
            }
        }
        self.compare();
    }
}

#[test]
fn the_abi_decides_as_rust_does() {
    for preset in PRESETS {
        for seed in 1..=12 {
            let mut chance = Random(seed * 7919);
            let mut pair = Pair::new(preset, &mut chance);
            for _ in 0..400 {
                pair.step(&mut chance);
            }
            // SAFETY: an instance, and where statistics fit.
            unsafe {
                let mut stats = FhStats::default();
                for group in 0..GROUPS {
                    assert_eq!(fh_stats(pair.c, group, &mut stats), FH_OK);
                    let own = pair.rust.stats(GroupId(group));
                    assert_eq!(stats.bytes.read, own.io_service_bytes.read());
                    assert_eq!(stats.wait_ns.sync, own.io_wait_time.sync());
                    assert_eq!(stats.disk_ns, own.disk_time.as_ns());
                }
                assert_eq!(fh_check(pair.c), FH_OK, "{} {seed}", preset.name);
                assert_eq!(fh_is_poisoned(pair.c, null_mut()), 0);
                assert_eq!(fh_destroy(pair.c), FH_OK);
            }
            pair.rust.check();
            drop(pair.memory.0);
        }
    }
}
