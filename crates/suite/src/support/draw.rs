//! Drawing configurations and requests, swarm-style: each case has some features off entirely, so that rare
//! ones meet.
//!
//= A. Groce et al., Swarm testing (ISSTA 2012)

use super::chance::Chance;
pub(crate) use super::chance::narrow;
use super::ledger::OPS;
use fairhead_core::config::{Tunable, Unit};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::{
    Actuators, Class, Control, Duration, GroupId, IoPrio, Limits, Max, Min, Op, Policy, Request, Sector,
    Sectors, TaskId, Weight,
};

/// Sizes and facts for an elevator.
pub(crate) fn limits(chance: &mut Chance) -> Limits {
    let groups = *chance.pick(&[1, 1, 1, 1, 2, 3, 5, 64]);
    Limits {
        tags: *chance.pick(&[1, 3, 16, 64, 64, 200]),
        pool: 0,
        tasks: *chance.pick(&[1, 2, 4, 16, 64]),
        groups,
        capacity: *chance.pick(&[0, 0, 1000]),
        max_sectors: Sectors(*chance.pick(&[1024, 1024, 255, 64, 8])),
        max_segments: *chance.pick(&[128, 128, 16, 2, 1]),
        merges: chance.percent(80),
        rotational: chance.percent(70),
        queue_depth: *chance.pick(&[1, 1, 2, 4, 31, 64]),
        tick: Duration::from_ms(chance.below(2)),
        trace: if chance.percent(50) { 1024 } else { 0 },
        actuators: Actuators::at(&[Sector(100), Sector(20_000)][..*chance.pick(&[0, 0, 0, 1, 2])]),
        idle_for_quick_only: chance.percent(40),
        one_youth: chance.percent(20),
        spares_groups: chance.percent(20),
        turns_within: Duration::from_ms(if chance.percent(20) { chance.below(400) } else { 0 }),
    }
}

/// Times beyond this make a case that only waits.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Changes some tunables of `config`, within their ranges.
pub(crate) fn tune(chance: &mut Chance, config: &mut AnyConfig) {
    if chance.percent(30) {
        return;
    }
    let share = *chance.pick(&[10, 30, 100]);
    for t in config.list() {
        if chance.percent(share) {
            let raw = tunable(chance, t, config.get(t.name).expect("listed"));
            let before = *config;
            config.set(t.name, raw).unwrap_or_else(|e| panic!("{} = {raw} is in range, but: {e}", t.name));
            if !is_accepted(*config) {
                // Some ranges depend on another tunable.
                *config = before;
            }
        }
    }
}

fn is_accepted(config: AnyConfig) -> bool {
    use fairhead_core::Elevator;
    use fairhead_core::sched::any::AnyScheduler;
    let limits = Limits { tags: 1, tasks: 1, ..Limits::default() };
    Elevator::<AnyScheduler>::new(limits, config).is_ok()
}

fn tunable(chance: &mut Chance, t: &Tunable, default: u64) -> u64 {
    let max = match t.unit {
        Unit::Time => t.max.min(TIME_MAX.as_ns()).max(t.min),
        _ => t.max,
    };
    match chance.below(5) {
        0 => t.min,
        1 => default,
        2 => default.saturating_mul(2).clamp(t.min, max),
        3 if t.unit != Unit::Time => max,
        _ => chance.scaled(t.min, max),
    }
}

/// Of limits in bytes a second, and in requests a second: so that the largest request takes some hours at
/// most.
const BPS_MIN: u64 = 1_000_000;
const IOPS_MIN: u64 = 1;

/// The largest request that is drawn, in sectors.
const SECTORS_MAX: u64 = 1 << 24;

/// How long a request may keep a limit busy.
pub(crate) const LIMIT_MAX: Duration = Duration::from_secs(SECTORS_MAX * 512 / BPS_MIN + 1);

/// A change of a group: one that can be made, mostly.
pub(crate) fn group_change(chance: &mut Chance, groups: u32) -> Control {
    let mut group = || GroupId(narrow(chance.below(u64::from(groups))));
    let (group, other) = (group(), group());
    let class = *chance.pick(&[Class::RealTime, Class::BestEffort, Class::BestEffort, Class::Idle]);
    match chance.below(10) {
        0 => Control::SetWeight(group, weight(chance)),
        1 => Control::SetLeafWeight(group, weight(chance)),
        2 => Control::SetClass(group, class),
        3 => {
            let policy = Policy { weight: weight(chance), class };
            Control::SetPolicy(group, chance.percent(50).then_some(policy))
        }
        4 | 5 => Control::SetMax(group, max(chance)),
        6 => Control::SetMin(group, Min { iops: narrow(chance.scaled(0, 500)) }),
        7 => Control::SetParent(group, other),
        8 => {
            let target = Duration::from_ns(chance.scaled(1, 1_000_000_000));
            Control::SetLatency(group, chance.percent(70).then_some(target))
        }
        // Its requests are still served, and its number may come back.
        _ => Control::GroupExit(group),
    }
}

fn weight(chance: &mut Chance) -> Weight {
    Weight::new(narrow(chance.scaled(1, 10_000))).expect("drawn from the range")
}

fn max(chance: &mut Chance) -> Max {
    let mut rate = |min: u64, max: u64| {
        chance.percent(30).then(|| chance.scaled(min, max)).and_then(std::num::NonZeroU64::new)
    };
    let (rbps, wbps) = (rate(BPS_MIN, 1 << 40), rate(BPS_MIN, 1 << 40));
    let (riops, wiops) = (rate(IOPS_MIN, 1_000_000), rate(IOPS_MIN, 1_000_000));
    Max { rbps, wbps, riops, wiops, burst: Duration::from_ms(*chance.pick(&[0, 0, 1, 100, 3_600_000])) }
}

/// How a case draws its requests.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    /// Weights of read, write and discard.
    ops: [u64; 3],
    sync_writes: u64,
    meta: u64,
    no_idle: u64,
    /// How many of a hundred must stay alone.
    pub(crate) alone: u64,
    /// Weights of the classes.
    classes: [u64; 3],
    levels: bool,
    groups: u64,
    /// Weights of: sequential, descending, near, anywhere, the same again, overlapping, the far end of the
    /// disk.
    positions: [u64; 7],
    /// Where random positions lie.
    span: u64,
    sizes: [u64; 4],
}

/// Weights, each of which may be 0.
fn weights<const N: usize>(chance: &mut Chance) -> [u64; N] {
    let mut drawn = [0; N];
    for w in &mut drawn {
        *w = *chance.pick(&[0, 0, 1, 4, 16]);
    }
    drawn
}

impl Mix {
    pub(crate) fn draw(chance: &mut Chance, limits: &Limits) -> Self {
        let mut positions = weights(chance);
        positions[chance.index(3)] += 4;
        Self {
            ops: *chance.pick(&[[8, 8, 1], [1, 0, 0], [0, 1, 0], [9, 1, 0], [1, 9, 0], [1, 1, 2]]),
            sync_writes: *chance.pick(&[0, 20, 100]),
            meta: *chance.pick(&[0, 0, 10, 100]),
            no_idle: *chance.pick(&[0, 0, 10, 100]),
            alone: *chance.pick(&[0, 0, 10, 50]),
            classes: *chance.pick(&[[0, 1, 0], [0, 1, 0], [1, 8, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]]),
            levels: chance.percent(50),
            groups: u64::from(limits.groups),
            positions,
            span: *chance.pick(&[64, 4096, 1 << 21, 1 << 32, 1 << 44]),
            sizes: *chance.pick(&[[1, 0, 0, 0], [8, 1, 0, 0], [4, 4, 1, 0], [1, 1, 1, 1]]),
        }
    }

    fn prio(&self, chance: &mut Chance) -> IoPrio {
        let class = [Class::RealTime, Class::BestEffort, Class::Idle][chance.weighted(&self.classes)];
        IoPrio::new(class, if self.levels { narrow(chance.below(8)) } else { 4 })
    }
}

/// A task that sends requests.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) prio: IoPrio,
    group: GroupId,
    last: Request,
}

impl Task {
    pub(crate) fn draw(chance: &mut Chance, mix: &Mix, id: TaskId) -> Self {
        let at = Sector(chance.below(mix.span));
        Self {
            id,
            prio: mix.prio(chance),
            group: GroupId(narrow(chance.below(mix.groups))),
            last: Request::read(id, at, Sectors(8)),
        }
    }

    /// A new priority, for the requests to come.
    pub(crate) fn reprioritise(&mut self, chance: &mut Chance, mix: &Mix) -> IoPrio {
        self.prio = mix.prio(chance);
        self.prio
    }

    /// Another group, for the requests to come.
    pub(crate) fn regroup(&mut self, chance: &mut Chance, mix: &Mix) {
        self.group = GroupId(narrow(chance.below(mix.groups)));
    }

    /// The next request.
    pub(crate) fn request(&mut self, chance: &mut Chance, mix: &Mix) -> Request {
        let op = OPS[chance.weighted(&mix.ops)];
        let len = size(chance, mix);
        let rq = Request {
            start: self.position(chance, mix, len),
            len,
            op,
            sync: op == Op::Read || op == Op::Write && chance.percent(mix.sync_writes),
            meta: chance.percent(mix.meta),
            no_idle: chance.percent(mix.no_idle),
            task: self.id,
            group: self.group,
            prio: self.prio,
        };
        self.last = rq;
        rq
    }

    fn position(&self, chance: &mut Chance, mix: &Mix, len: Sectors) -> Sector {
        let (start, end, len) = (self.last.start.0, self.last.end().0, u64::from(len.0));
        let top = u64::MAX - len;
        let at = match chance.weighted(&mix.positions) {
            0 => end,
            1 => start.saturating_sub(len),
            2 => end.saturating_add(chance.below(2048)).saturating_sub(1024),
            4 => start,
            5 => start.saturating_add(chance.below(u64::from(self.last.len.0))),
            6 => top - chance.below(64),
            // A grid, so that some requests touch or repeat.
            _ => chance.below(mix.span) / 8 * 8,
        };
        Sector(at.min(top))
    }
}

fn size(chance: &mut Chance, mix: &Mix) -> Sectors {
    Sectors(match chance.weighted(&mix.sizes) {
        0 => 8,
        1 => narrow(chance.range(1, 256)),
        2 => narrow(chance.range(256, 4096)),
        _ => narrow(chance.scaled(1, SECTORS_MAX)),
    })
}
