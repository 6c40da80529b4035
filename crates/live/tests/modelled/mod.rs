//! Tenants at the live request queue over a device model, in virtual time.
//!
//! Each tenant has a group and keeps some requests at the disk, as its [`Tenant::asks`] draws them; after
//! each answer it thinks. It may come back as another task after some requests, as a client that reconnects.

use crate::chance::Chance;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, Sector, Sectors, Tag, TaskId, Weight};
use fairhead_core::{Control, Limits, request};
use fairhead_device::{Command, Device, DeviceOp, DeviceParams};
use fairhead_live::{Bio, ClientId, FileId, Flush, IoId, Op, RequestQueue, Settings, Start};
use std::collections::{BTreeMap, VecDeque};

/// Sectors between two tenants' files.
const GAP: u64 = 2048;

/// A request that a tenant asks for. `also_writes`: it writes the block when it has read it, before it
/// has its answer. `flushes`: then it has its file flushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) also_writes: bool,
    pub(crate) flushes: bool,
}

impl Ask {
    pub(crate) fn read(offset: u64, len: u32) -> Self {
        Self { op: Op::Read, fua: false, offset, len, also_writes: false, flushes: false }
    }
}

/// What the device does commands for.
#[derive(Clone, Copy, Debug)]
enum Work {
    Io(IoId),
    Flush(FileId),
}

/// What a tenant does.
#[derive(Clone, Copy)]
pub(crate) struct Tenant {
    pub(crate) weight: u16,
    pub(crate) depth: u32,
    pub(crate) thinks: Duration,
    /// The number of requests after which it is another task; 0: it stays the same.
    pub(crate) reconnects: u64,
    /// The tasks that its requests are of, in turn.
    pub(crate) tasks: u64,
    /// The number of a request and its chance, to the request.
    pub(crate) asks: fn(u64, &mut Chance) -> Ask,
}

/// What a tenant got.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    pub(crate) done: u64,
    /// All waits, from the shortest on.
    pub(crate) waits: Vec<Duration>,
}

impl Got {
    pub(crate) fn longest(&self) -> Duration {
        self.waits.last().copied().unwrap_or_default()
    }

    pub(crate) fn p99(&self) -> Duration {
        self.waits.get(self.waits.len() * 99 / 100).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    tenant: usize,
    ask: Ask,
    asked: Instant,
}

pub(crate) struct World {
    queue: RequestQueue<()>,
    client: ClientId,
    tenants: Vec<Tenant>,
    /// The sectors of a tenant's file.
    size: u64,
    device: Device,
    /// Commands that wait for room at the device, and by tag those that it has.
    line: VecDeque<(Work, Command)>,
    works: BTreeMap<u16, Work>,
    free: Vec<Tag>,
    /// The commands of an io that are not done.
    commands: BTreeMap<usize, u32>,
    chance: Chance,
    now: Instant,
    /// When each task that is to ask does, and its number.
    due: Vec<(Instant, usize)>,
    open: BTreeMap<u64, Open>,
    serial: u64,
    asked: Vec<u64>,
    got: Vec<Got>,
}

/// A live engine's queue over this model, where tenants have files of `bytes` bytes one behind the other.
/// `set` changes its limits and the scheduler's tunables.
pub(crate) fn world(
    model: &str,
    bytes: u64,
    tenants: &[Tenant],
    set: impl Fn(&mut Limits, &mut AnyConfig),
) -> World {
    let device = Device::new(&DeviceParams::preset(model).expect("a preset")).expect("possible");
    let facts = device.facts();
    let mut limits = Limits {
        tags: 1024,
        tasks: 1024,
        groups: 32,
        queue_depth: if facts.rotational { facts.queue_depth.min(32) } else { 32 },
        rotational: facts.rotational,
        idle_for_quick_only: !facts.rotational,
        one_youth: true,
        spares_groups: facts.rotational,
        turns_within: Duration::from_ms(200),
        max_sectors: facts.max_request.min(Limits::default().max_sectors),
        ..Limits::default()
    };
    let mut config = (preset("bfq").expect("a preset").config)().live();
    set(&mut limits, &mut config);
    let mut queue = RequestQueue::new(Settings { limits, ..Settings::default() }, config).expect("in range");
    for (i, tenant) in tenants.iter().enumerate() {
        let group = GroupId(i as u32 + 1);
        queue.control(Instant::EPOCH, Control::SetParent(group, GroupId::ROOT)).expect("a new group");
        let weight = Weight::new(tenant.weight).expect("in range");
        queue.control(Instant::EPOCH, Control::SetWeight(group, weight)).expect("it exists");
    }
    let begins = |i: usize| Instant::EPOCH + Duration::from_us(700 * i as u64);
    let due = tenants.iter().enumerate().flat_map(|(i, t)| (0..t.depth).map(move |_| (begins(i), i)));
    World {
        client: queue.join(),
        queue,
        device,
        line: VecDeque::new(),
        works: BTreeMap::new(),
        free: (0..facts.queue_depth).map(Tag).collect(),
        commands: BTreeMap::new(),
        chance: Chance::Seed(7),
        now: Instant::EPOCH,
        due: due.collect(),
        open: BTreeMap::new(),
        serial: 0,
        asked: vec![0; tenants.len()],
        got: vec![Got::default(); tenants.len()],
        tenants: tenants.to_vec(),
        size: bytes >> 9,
    }
}

impl World {
    fn submit(&mut self, open: Open) {
        let Open { tenant: i, ask, .. } = open;
        let session = self.asked[i].checked_div(self.tenants[i].reconnects).unwrap_or_default();
        self.open.insert(self.serial, open);
        let bio = Bio {
            op: ask.op,
            file: FileId(i as u32),
            offset: ask.offset,
            len: ask.len,
            sector: Sector(i as u64 * (self.size + GAP) + ask.offset / 512),
            fua: ask.fua,
            sync: true,
            task: TaskId(((session * 64 + self.asked[i] % self.tenants[i].tasks) * 32 + i as u64 + 1) as u32),
            group: GroupId(i as u32 + 1),
            prio: IoPrio { class: Class::BestEffort, level: 4 },
            cookie: self.serial,
        };
        self.serial += 1;
        self.queue.submit(self.now, self.client, bio, Some(()));
    }

    fn flush(&mut self, open: Open) {
        let i = open.tenant as u32;
        self.open.insert(self.serial, open);
        let prio = IoPrio { class: Class::BestEffort, level: 4 };
        let (file, task, group) = (FileId(i), TaskId(i + 1), GroupId(i + 1));
        let flush = Flush { file, task, group, prio, cookie: self.serial };
        self.serial += 1;
        self.queue.flush(self.now, self.client, flush);
    }

    fn answered(&mut self, cookie: u64) {
        let open = self.open.remove(&cookie).expect("asked for");
        if open.ask.also_writes {
            let ask = Ask { op: Op::Write, also_writes: false, ..open.ask };
            return self.submit(Open { ask, ..open });
        }
        if open.ask.flushes {
            let ask = Ask { flushes: false, ..open.ask };
            return self.flush(Open { ask, ..open });
        }
        let got = &mut self.got[open.tenant];
        got.done += 1;
        got.waits.push(self.now.since(open.asked));
        self.due.push((self.now + self.tenants[open.tenant].thinks, open.tenant));
    }

    fn start(&mut self, io: IoId) {
        let rq = *self.queue.request(io);
        let op = match rq.op {
            request::Op::Read => DeviceOp::Read,
            request::Op::Write => DeviceOp::Write,
            request::Op::Discard => DeviceOp::Discard,
        };
        let facts = self.device.facts();
        let fua = self.queue.pieces(io).iter().any(|p| p.fua) && op == DeviceOp::Write && facts.fua;
        let (mut start, mut left) = (rq.start, rq.len);
        while left > Sectors(0) {
            let len = left.min(facts.max_request);
            self.line.push_back((Work::Io(io), Command { tag: Tag(0), op, start, len, fua }));
            *self.commands.entry(io.0).or_default() += 1;
            (start, left) = (start + len, Sectors(left.0 - len.0));
        }
    }

    fn feed(&mut self) {
        while self.device.can_accept() && !self.line.is_empty() {
            let Some(tag) = self.free.pop() else { return };
            let (work, command) = self.line.pop_front().expect("just seen");
            self.works.insert(tag.0, work);
            self.device.submit(self.now, Command { tag, ..command });
        }
    }

    fn reap(&mut self) {
        while self.device.next_event().is_some_and(|at| at <= self.now) {
            while let Some(tag) = self.device.poll(self.now) {
                self.free.push(tag);
                match self.works.remove(&tag.0).expect("the device had it") {
                    Work::Io(io) => self.did_command(io),
                    Work::Flush(file) => self.queue.flushed(self.now, file, Ok(())),
                }
            }
            self.feed();
        }
    }

    /// The device has done one of the commands of an io.
    fn did_command(&mut self, io: IoId) {
        let left = self.commands.get_mut(&io.0).expect("it began");
        *left -= 1;
        if *left == 0 {
            self.commands.remove(&io.0);
            let results = vec![Ok(()); self.queue.pieces(io).len()];
            self.queue.finished(self.now, io, &results);
        }
    }

    fn serve(&mut self) {
        self.reap();
        let due: Vec<usize> = self.due.extract_if(.., |d| d.0 <= self.now).map(|d| d.1).collect();
        for i in due {
            let ask = (self.tenants[i].asks)(self.asked[i], &mut self.chance);
            self.submit(Open { tenant: i, ask, asked: self.now });
            self.asked[i] += 1;
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        while let Some(answer) = self.queue.answer() {
            self.answered(answer.cookie);
        }
        while let Some(start) = self.queue.next(self.now) {
            match start {
                Start::Io(io) => self.start(io),
                Start::Flush(file) => {
                    let (op, start, len) = (DeviceOp::Flush, Sector(0), Sectors(0));
                    self.line
                        .push_back((Work::Flush(file), Command { tag: Tag(0), op, start, len, fua: false }));
                }
            }
        }
        self.feed();
    }

    /// Runs until then.
    pub(crate) fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.serve();
            let moments = self.due.iter().map(|d| d.0).chain(self.device.next_event());
            let next = moments.chain(self.queue.next_timer()).min().expect("something comes");
            self.now = self.now.max(next);
        }
    }

    /// What each tenant gets in these seconds, after some that do not count.
    pub(crate) fn run(mut self, before: u64, secs: u64) -> Vec<Got> {
        self.run_until(Instant::EPOCH + Duration::from_secs(before));
        self.got = vec![Got::default(); self.tenants.len()];
        self.run_until(Instant::EPOCH + Duration::from_secs(before + secs));
        self.queue.check();
        // What is open has waited until now.
        for open in self.open.values() {
            self.got[open.tenant].waits.push(self.now.since(open.asked));
        }
        self.got.iter_mut().for_each(|got| got.waits.sort_unstable());
        self.got
    }
}
