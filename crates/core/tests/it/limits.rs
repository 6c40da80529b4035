//! Limits of groups, drawn at random: each gets what its limits allow, to 2 %, and at no time more.
//!
//! Every group without groups in it always has more requests waiting than may go. The device takes all that
//! it gets and finishes it at once, so what goes is up to the limits alone. Rates are from 10 to 100,000
//! requests a second, as such or as bytes; timers are late, or coarse, or both. What groups inside one limit
//! should get is computed by filling up from below: equal shares, and what one cannot use goes to the others.

use crate::support::chance::Chance;
use crate::support::draw::narrow;
use crate::support::seeds;
use fairhead_core::sched::any::{AnyScheduler, preset};
use fairhead_core::{
    Control, Dispatch, Duration, Elevator, GroupId, Insert, Instant, Limits, Max, Op, Request, Sector,
    Sectors, Tag, TaskId,
};
use std::num::NonZeroU64;

/// How many requests a case lets go, at least.
const REQUESTS: u64 = 1000;
const CASES: u64 = 20;
const TAGS: u16 = 4096;

struct Group {
    parent: usize,
    /// Requests a second, whatever the unit of the limit.
    rate: f64,
    burst: Duration,
    is_leaf: bool,
    /// When requests of it, or of groups in it, went.
    gone: Vec<Instant>,
}

struct World<'a> {
    chance: &'a mut Chance,
    elevator: Elevator<AnyScheduler>,
    groups: Vec<Group>,
    template: Request,
    now: Instant,
    late: Duration,
    coarse: Duration,
    free: Vec<Tag>,
    inserted: u64,
    /// Whether the calls are for several requests each.
    is_batched: bool,
}

impl<'a> World<'a> {
    fn draw(chance: &'a mut Chance, is_nested: bool) -> Self {
        let count = if is_nested { chance.range(2, 8) } else { 1 };
        let limits = Limits {
            tags: TAGS,
            groups: narrow(count + 1),
            merges: chance.percent(50),
            tick: Duration::from_ms(*chance.pick(&[0, 1, 4])),
            ..Limits::default()
        };
        let name = *chance.pick(&["noop", "deadline", "mq-deadline"]);
        let config = (preset(name).expect("a preset").config)();
        let elevator = Elevator::new(limits, config).expect("in range");
        let op = *chance.pick(&[Op::Read, Op::Write, Op::Discard]);
        let size = Sectors(*chance.pick(&[1, 8, 256]));
        let template = Request { op, ..Request::read(TaskId(1), Sector(0), size) };
        let mut this = Self {
            chance,
            elevator,
            groups: vec![],
            template,
            now: Instant::EPOCH,
            late: Duration::ZERO,
            coarse: Duration::ZERO,
            free: (0..TAGS).map(Tag).collect(),
            inserted: 0,
            is_batched: false,
        };
        this.groups.push(Group::new(0, f64::INFINITY));
        for g in 1..=count {
            this.add_group(narrow(g), is_nested);
        }
        // No more may go in one look than wait.
        let fastest = this.groups[1].rate;
        let late_max = (200e9 / fastest) as u64;
        this.late = Duration::from_ns(*this.chance.pick(&[0, late_max / 10, late_max / 2]));
        this.coarse = Duration::from_ns(*this.chance.pick(&[0, 0, late_max / 10, late_max / 2]));
        this.is_batched = this.chance.percent(50);
        this
    }

    /// The first is inside the root and limited; the others are somewhere inside it, some without limits.
    fn add_group(&mut self, g: u32, is_nested: bool) {
        let chance = &mut *self.chance;
        let parent = if g == 1 { 0 } else { chance.range(1, u64::from(g) - 1) };
        let top = if g == 1 { 100_000.0 } else { self.groups[1].rate };
        let rate = if g == 1 {
            chance.scaled(10, 100_000)
        } else {
            // Comparable to the limit around it.
            ((chance.range(5, 150) as f64 / 100.0 * top) as u64).max(10)
        };
        let bytes = self.template.len.bytes();
        let by_bytes = NonZeroU64::new(rate * bytes);
        let by_number = NonZeroU64::new(rate);
        let (bps, iops) = match chance.below(3) {
            0 => (by_bytes, None),
            1 => (None, by_number),
            _ => (by_bytes, by_number),
        };
        let is_limited = g == 1 || chance.percent(70);
        let burst = Duration::from_ns(if is_nested {
            0
        } else {
            *chance.pick(&[0, 0, 100, 1000]) * 1_000_000_000 / rate
        });
        let max = Max { rbps: bps, wbps: bps, riops: iops, wiops: iops, burst };
        let (id, parent_id) = (GroupId(g), GroupId(narrow(parent)));
        if parent > 0 {
            self.elevator.control(self.now, Control::SetParent(id, parent_id)).expect("a new parent");
        }
        if is_limited {
            self.elevator.control(self.now, Control::SetMax(id, max)).expect("a limit");
        }
        let parent = narrow::<u32>(parent) as usize;
        self.groups[parent].is_leaf = false;
        let rate = if is_limited { rate as f64 } else { f64::INFINITY };
        self.groups.push(Group { burst, ..Group::new(parent, rate) });
    }

    fn leaves(&self) -> Vec<usize> {
        (1..self.groups.len()).filter(|&g| self.groups[g].is_leaf).collect()
    }

    fn request(&mut self, group: usize) -> (Tag, Request) {
        let tag = self.free.pop().expect("as many tags as requests");
        self.inserted += 1;
        // Nothing touches anything.
        let start = Sector(self.inserted * 1024);
        (tag, Request { start, group: GroupId(narrow(group as u64)), ..self.template })
    }

    fn insert(&mut self, group: usize) {
        let (tag, rq) = self.request(group);
        let _ = self.elevator.insert(self.now, tag, rq);
    }

    fn insert_all(&mut self, groups: &[usize]) {
        if !self.is_batched {
            return groups.iter().for_each(|&group| self.insert(group));
        }
        let batch: Vec<_> = groups.iter().map(|&group| self.request(group)).collect();
        self.elevator.insert_batch(self.now, &batch, |_, _| ());
    }

    /// Sends all that may go now; each is followed by another of its group.
    fn pump(&mut self) {
        loop {
            let mut issued = Vec::new();
            if self.is_batched {
                let _ = self.elevator.dispatch_batch(self.now, usize::from(TAGS), |tag| issued.push(tag));
            } else if let Dispatch::Issue(tag) = self.elevator.dispatch(self.now) {
                issued.push(tag);
            }
            if issued.is_empty() {
                return;
            }
            let groups: Vec<_> = issued.into_iter().map(|tag| self.complete(tag)).collect();
            self.insert_all(&groups);
        }
    }

    /// Completes a request and returns its task.
    fn complete(&mut self, tag: Tag) -> usize {
        let group = self.elevator.requests()[tag].rq.group.0 as usize;
        let now = self.now;
        let freed: Vec<_> = self.elevator.complete(now, tag).collect();
        assert_eq!(freed.len(), 1);
        self.free.extend(freed);
        let mut at = group;
        while at != 0 {
            self.groups[at].gone.push(now);
            at = self.groups[at].parent;
        }
        group
    }

    fn run(&mut self, span: Duration) {
        let leaves = self.leaves();
        let each = u64::from(TAGS) / leaves.len() as u64;
        for group in leaves {
            self.insert_all(&vec![group; each.min(500) as usize]);
        }
        self.pump();
        let end = self.now + span;
        loop {
            let (when, _) = self.elevator.next_timer().expect("all wait for limits");
            let at = when + Duration::from_ns(self.chance.range(0, self.late.as_ns()));
            let coarse = self.coarse.max(Duration::from_ns(1));
            let at = (at + (coarse - Duration::from_ns(1))).floor_to(coarse);
            if at > end {
                return;
            }
            self.now = self.now.max(at);
            self.elevator.timer(self.now);
            self.pump();
        }
    }

    /// What each group gets, in requests a second, when all that is in `group` gets `most`.
    fn fill(&self, group: usize, most: f64, shares: &mut [f64]) {
        let inside: Vec<_> = (1..self.groups.len()).filter(|&g| self.groups[g].parent == group).collect();
        shares[group] = most.min(self.useful(group));
        let mut left = shares[group];
        let mut open: Vec<_> = inside.iter().map(|&g| (self.useful(g), g)).collect();
        open.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (i, &(useful, g)) in open.iter().enumerate() {
            let share = useful.min(left / (open.len() - i) as f64);
            self.fill(g, share, shares);
            left -= share;
        }
    }

    /// What a group can use at most.
    fn useful(&self, group: usize) -> f64 {
        let inside = (1..self.groups.len()).filter(|&g| self.groups[g].parent == group);
        let sum = inside.map(|g| self.useful(g)).sum::<f64>();
        let most = if self.groups[group].is_leaf { f64::INFINITY } else { sum };
        self.groups[group].rate.min(most)
    }
}

impl Group {
    fn new(parent: usize, rate: f64) -> Self {
        Self { parent, rate, burst: Duration::ZERO, is_leaf: true, gone: vec![] }
    }

    /// In no span have more gone than the rate times span and burst, and `more` requests.
    fn assert_never_above(&self, start: Instant, slack: Duration, more: f64) {
        let seconds = |d: Duration| d.as_ns() as f64 / 1e9;
        let most = self.rate * seconds(self.burst + slack) + more + 1e-3;
        let mut low = f64::INFINITY;
        for (i, at) in self.gone.iter().enumerate() {
            let ahead = i as f64 - self.rate * seconds(at.since(start));
            low = low.min(ahead);
            let above = ahead + 1.0 - low;
            assert!(above <= most, "{above} requests above {}/s, {most} allowed", self.rate);
        }
    }
}

fn case(chance: &mut Chance, is_nested: bool) {
    let mut world = World::draw(chance, is_nested);
    let start = world.now;
    let mut shares = vec![0.0; world.groups.len()];
    world.fill(0, f64::INFINITY, &mut shares);
    let least = shares[1..].iter().copied().fold(f64::INFINITY, f64::min);
    let span = Duration::from_ns((REQUESTS as f64 / least * 1e9) as u64);
    let (late, coarse) = (world.late, world.coarse);
    world.run(span);
    world.elevator.check();
    // At the last look, all have gone that were due by then.
    let looked = world.now.since(start);
    for (i, (group, share)) in world.groups.iter().zip(&shares).enumerate().skip(1) {
        // What goes at once at the start is the burst.
        let gone = group.gone.iter().filter(|&&t| t > start).count() as f64;
        let seconds = looked.as_ns() as f64 / 1e9;
        let expected = share * seconds;
        let error = (gone - expected).abs() / expected;
        assert!(
            error < 0.02,
            "group {i} got {gone} of {expected} in {looked}; {late} late, ticks of {coarse}; shares {shares:?}"
        );
        if group.rate.is_finite() {
            let more = if is_nested { 2.0 } else { 1.0 };
            group.assert_never_above(start, late + coarse, more);
        }
    }
}

#[test]
fn one_group_gets_its_limit() {
    seeds::each_of("one_group_gets_its_limit", CASES, |seed| case(&mut Chance::Seed(seed), false));
}

#[test]
fn nested_groups_get_what_their_limits_leave_them() {
    seeds::each_of("nested_groups_get_what_their_limits_leave_them", CASES, |seed| {
        case(&mut Chance::Seed(seed), true);
    });
}

#[test]
fn a_timer_is_at_the_first_tick_that_is_not_before_its_time() {
    let (tick, start) = (Duration::from_ms(4), Instant::EPOCH.floor_to(Duration::from_ms(4)));
    let at = |us| start + Duration::from_us(us);
    let timer = |tick, idle_ms: u64, completed| {
        let mut config = (preset("cfq").unwrap().config)();
        config.set("slice_idle", Duration::from_ms(idle_ms).as_ns()).unwrap();
        let mut elevator =
            Elevator::<AnyScheduler>::new(Limits { tick, ..Limits::default() }, config).unwrap();
        let read = Request::read(TaskId(1), Sector(0), Sectors(8));
        assert_eq!(elevator.insert(at(8000), Tag(0), read), Insert::Queued);
        assert_eq!(elevator.dispatch(at(8000)), Dispatch::Issue(Tag(0)));
        assert!(elevator.complete(at(completed), Tag(0)).eq([Tag(0)]));
        assert!(matches!(elevator.dispatch(at(completed)), Dispatch::Empty | Dispatch::Hold(_)));
        elevator.next_timer().map(|(when, _)| when.since(start).as_us())
    };
    // The scheduler sees the last tick, 8 ms.
    assert_eq!(timer(tick, 6, 9300), Some(16_000), "14 ms is none");
    assert_eq!(timer(tick, 8, 9300), Some(16_000), "16 ms is one");
    assert_eq!(timer(Duration::ZERO, 6, 9300), Some(15_300), "without ticks");
}
