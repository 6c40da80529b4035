//! Starts, finishes and virtual time, as they should be after each event.

use super::chance::{Chance, narrow};
use super::load::{BE, Load, Queue, weight};
use super::seeds;
use fairhead_core::parts::wf2q::{later, vt};
use fairhead_core::units::Id;
use fairhead_core::{GroupId, Tag};

/// A group below another below the root, with leaves everywhere that come and go with and without credit.
struct Scene {
    load: Load,
    origin: u64,
    /// The selected group, its start and finish, and the root's virtual time; the times from `origin` on.
    log: Vec<(usize, [u64; 3])>,
}

const GROUPS: [GroupId; 3] = [GroupId::ROOT, GroupId(1), GroupId(2)];

impl Scene {
    fn draw(chance: &mut Chance, origin: u64) -> Self {
        let queues: Vec<Queue> = (0..chance.range(1, 6))
            .map(|_| {
                let group = *chance.pick(&GROUPS);
                Queue::draw(chance, group)
            })
            .collect();
        let mut load = Load::new(origin, 3, queues);
        load.h.set_parent(GROUPS[2], GROUPS[1]);
        load.h.set_group_weight(GROUPS[1], weight(chance));
        load.h.set_group_weight(GROUPS[2], weight(chance));
        Self { load, origin, log: Vec::new() }
    }

    //= docs/reference/bfq.md#82-time V5, V6 type=test
    fn activate(&mut self, chance: &mut Chance, i: usize, credit: bool) {
        let tag = Tag::from_index(i);
        let h = &self.load.h;
        let (vtime, finish, idle) = (h.vtime(h.group(tag), BE), h.times(tag).1, h.is_attached(tag));
        self.load.activate(chance, i, credit);
        let h = &self.load.h;
        let (start, new_finish) = h.times(tag);
        if !credit {
            assert!(!later(vtime, start), "V5: it starts in the past");
        }
        assert!(!(idle && later(finish, start)), "V5: it starts before it had finished");
        assert!(!later(vtime, new_finish), "V6: it finishes in the past");
    }

    /// One stay in service, in which others come.
    fn slot(&mut self, chance: &mut Chance, finish: u64) {
        let vtime = self.load.h.vtime(GroupId::ROOT, BE);
        let Some(i) = self.load.select() else { return };
        let tag = Tag::from_index(i);
        let (start, end) = self.load.h.times(tag);
        self.log.push((i, [start, end, vtime].map(|t| t.wrapping_sub(self.origin))));
        loop {
            self.load.serve(chance, i);
            self.arrivals(chance, 10);
            if chance.percent(finish) {
                self.load.finish(i);
                return;
            }
            if !self.load.fits(i) {
                break;
            }
        }
        let paid = vt(self.load.h.service(tag), u64::from(self.load.queues[i].weight));
        self.load.expire(chance, i);
        //= docs/reference/bfq.md#82-time V4 type=test
        assert_eq!(self.load.h.times(tag).0, start.wrapping_add(paid), "V4: it pays for its service");
    }

    fn arrivals(&mut self, chance: &mut Chance, percent: u64) {
        for i in 0..self.load.queues.len() {
            let tag = Tag::from_index(i);
            let busy = self.load.h.is_active(tag) || self.load.h.in_service() == Some(tag);
            if !busy && chance.percent(percent) {
                let credit = chance.percent(30);
                self.activate(chance, i, credit);
            }
        }
    }

    fn run(chance: &mut Chance, origin: u64) -> Self {
        let mut scene = Self::draw(chance, origin);
        let finish = *chance.pick(&[3, 30]);
        for _ in 0..chance.range(10, 50) {
            scene.arrivals(chance, 40);
            scene.slot(chance, finish);
        }
        scene.load.h.check();
        scene
    }
}

//= docs/reference/bfq.md#82-time V7 type=test
#[test]
fn nothing_depends_on_where_virtual_time_starts() {
    seeds::each_of("nothing_depends_on_where_virtual_time_starts", 400, |seed| {
        let near_the_end = 0_u64.wrapping_sub(Chance::Seed(seed).scaled(1, 1 << 36));
        let at_zero = Scene::run(&mut Chance::Seed(seed), 0);
        let wrapping = Scene::run(&mut Chance::Seed(seed), near_the_end);
        assert_eq!(at_zero.log, wrapping.log, "V7: from {near_the_end}");
        let middle = Scene::run(&mut Chance::Seed(seed), i64::MAX.cast_unsigned() - 1000);
        assert_eq!(at_zero.log, middle.log, "V7: from about 2^63");
    });
}

/// The sum of what a group pays is what it was given, though others become active in it meanwhile.
//= docs/reference/bfq.md#82-time V4 type=test
#[test]
fn a_group_pays_once() {
    seeds::each_of("a_group_pays_once", 200, |seed| {
        let mut chance = Chance::Seed(seed);
        let group = GROUPS[1];
        // 0 and 1 always have work; the others, in the group, come and go.
        let queues: Vec<Queue> =
            (0..5).map(|i| Queue::draw(&mut chance, GROUPS[usize::from(i > 0)])).collect();
        let mut load = Load::new(0, 2, queues);
        let own = weight(&mut chance);
        load.h.set_group_weight(group, own);
        load.activate(&mut chance, 0, false);
        load.activate(&mut chance, 1, false);
        let (mut served, mut steps) = (0, 0);
        for _ in 0..chance.range(5, 30) {
            let i = load.select().expect("two always have work");
            loop {
                let len = load.serve(&mut chance, i);
                served += if i > 0 { len } else { 0 };
                let j = chance.index(5);
                let busy = load.h.is_active(Tag::from_index(j)) || i == j;
                if !busy {
                    load.activate(&mut chance, j, false);
                } else if j > 1 && i != j && chance.percent(50) {
                    load.h.deactivate(load.now, Tag::from_index(j), true, false);
                }
                steps += 1;
                if !load.fits(i) {
                    break;
                }
            }
            if i > 1 && chance.percent(50) {
                load.finish(i)
            } else {
                load.expire(&mut chance, i)
            }
            let paid = load.h.group_times(group).0;
            let exact = vt(served, u64::from(own));
            assert!(paid <= exact && exact - paid <= steps, "V4: {served} sectors, paid {paid} of {exact}");
        }
        load.h.check();
    });
}

//= docs/reference/bfq.md#82-time V8 type=test
#[test]
fn only_proportions_of_weights_count() {
    seeds::each_of("only_proportions_of_weights_count", 300, |seed| {
        let mut chance = Chance::Seed(seed);
        let factor: u32 = narrow(chance.range(2, 10));
        let n = chance.range(2, 6);
        let queues: Vec<Queue> = (0..n)
            .map(|_| {
                let weight = narrow(chance.range(1, 100));
                Queue { weight, greedy: true, ..Queue::draw(&mut chance, GroupId::ROOT) }
            })
            .map(|q| Queue { budget_max: q.head * (1 + q.budget_max / q.head), ..q })
            .collect();
        let heavier = queues.iter().map(|q| Queue { weight: q.weight * factor, ..*q }).collect();
        let mut loads = [queues, heavier].map(|queues| Load::new(0, 1, queues));
        for load in &mut loads {
            for i in 0..load.queues.len() {
                load.activate(&mut chance, i, false);
            }
        }
        let mut requests = 0;
        for _ in 0..50 {
            // Each division lost less than one unit, which is `factor` units of the lighter ones.
            let slack = u64::from(factor + 1) * (requests + 4);
            let near = |a: u64, b: u64| a.abs_diff(b) <= slack;
            let [light, heavy] = loads.each_ref().map(times);
            for (a, b) in light.iter().zip(&heavy) {
                assert!(near(*a, b * u64::from(factor)), "V8: {light:?} and {heavy:?} times {factor}");
            }
            let [a, b] = loads.each_mut().map(|load| load.slot(&mut chance, |_, _| requests += 1));
            if a != b {
                // The choice was by a hair: of finishes, or of starts against virtual time after its jump.
                let start = |i: usize| light[1 + 2 * i];
                let first = (0..loads[0].queues.len()).map(start).min().unwrap_or(0);
                let (vtime, s, t) = (light[0].max(first), start(a), start(b));
                let (f, g) = (light[2 + 2 * a], light[2 + 2 * b]);
                assert!(near(f, g) || near(s, vtime) || near(t, vtime), "V8: {a} and {b} in {light:?}");
                return;
            }
        }
    });
}

/// Virtual time, and starts and finishes of the root's leaves.
fn times(load: &Load) -> Vec<u64> {
    let leaves = (0..load.queues.len()).map(|i| load.h.times(Tag::from_index(i)));
    let leaves = leaves.flat_map(|(start, finish)| [start, finish]);
    std::iter::once(load.h.vtime(GroupId::ROOT, BE)).chain(leaves).collect()
}

//= docs/reference/bfq.md#82-time V9 type=test
#[test]
fn equals_take_turns() {
    seeds::each_of("equals_take_turns", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let n = chance.range(1, 12);
        let one = Queue { greedy: true, ..Queue::draw(&mut chance, GroupId::ROOT) };
        let one = Queue { budget_max: one.head * narrow::<u32>(chance.range(1, 9)), ..one };
        let mut load = Load::new(0, 1, vec![one; narrow::<u16>(n).into()]);
        let mut order: Vec<usize> = (0..load.queues.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, chance.index(i + 1));
        }
        for &i in &order {
            load.activate(&mut chance, i, false);
        }
        for turn in 0..60 {
            let i = load.slot(&mut chance, |_, _| {});
            assert_eq!(i, order[turn % order.len()], "V9: turn {turn} of {order:?}");
        }
    });
}
