//! Leaves that come and go: how far behind one can be while it has work, and how long it waits.

use super::chance::{Chance, narrow};
use super::load::{BE, Load, Queue};
use super::seeds;
use fairhead_core::units::Id;
use fairhead_core::{Class, Duration, GroupId, Tag};

/// A number that each of 1..=48 divides.
const EVERYONE: i128 = 3_099_044_504_245_996_706_400;

/// A leaf's time with work.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    served: u32,
    /// What its share would have been, with the weights of each moment; in units of 1 / `EVERYONE`.
    ideal: i128,
    /// How long the device has been busy since it came.
    time: u32,
}

/// Leaves below the root, whose weights are few units each, so that all shares have a small common
/// denominator.
struct Scene {
    load: Load,
    unit: u32,
    stays: Vec<Option<Stay>>,
    largest: u32,
    budgets: u32,
    weights: u32,
}

impl Scene {
    fn draw(chance: &mut Chance) -> Self {
        let unit = *chance.pick(&[1, 10, 125, 15_000]);
        let queues: Vec<Queue> = (0..chance.range(2, 6))
            .map(|_| {
                let weight = unit * narrow::<u32>(chance.range(1, 8));
                Queue { weight, ..Queue::draw(chance, GroupId::ROOT) }
            })
            .collect();
        Self {
            unit,
            stays: vec![None; queues.len()],
            largest: queues.iter().map(|q| q.request_max).max().unwrap_or(0),
            budgets: queues.iter().map(|q| q.budget_max).max().unwrap_or(0),
            weights: queues.iter().map(|q| q.weight).sum(),
            load: Load::new(0, 1, queues),
        }
    }

    /// Some come, `busy_for` into the time that the device still needs.
    fn arrivals(&mut self, chance: &mut Chance, percent: u64, busy_for: u32) {
        for i in 0..self.stays.len() {
            if self.stays[i].is_none() && chance.percent(percent) {
                self.load.activate(chance, i, false);
                let time = narrow(chance.range(0, u64::from(busy_for)));
                self.stays[i] = Some(Stay { time, ..Stay::default() });
            }
        }
    }

    fn serve(&mut self, chance: &mut Chance, i: usize) -> u32 {
        let weight = self.load.h.total_weight(GroupId::ROOT, BE) / u64::from(self.unit);
        let part = EVERYONE / i128::from(weight);
        let len = self.load.serve(chance, i);
        for (j, stay) in self.stays.iter_mut().enumerate() {
            let Some(stay) = stay else { continue };
            let own = i128::from(self.load.queues[j].weight / self.unit);
            stay.served += if i == j { len } else { 0 };
            stay.ideal += i128::from(len) * own * part;
            stay.time += len;
        }
        len
    }

    //= docs/reference/bfq.md#18-guarantees T4, T8 type=test
    fn check(&self) {
        for (i, stay) in self.stays.iter().enumerate() {
            let Some(stay) = stay else { continue };
            let Queue { weight, budget_max, .. } = self.load.queues[i];
            let slack = budget_max + self.budgets + self.largest;
            // One sector for rounding.
            let most = EVERYONE * i128::from(stay.served + slack + 1);
            assert!(stay.ideal <= most, "T4: {i}: {stay:?}, {:?}", self.load.queues);
            let (time, served) = (u64::from(stay.time), u64::from(stay.served + slack + 1));
            let done = time * u64::from(weight) <= served * u64::from(self.weights);
            assert!(done, "T8: {i}: {stay:?}, {:?}", self.load.queues);
        }
    }

    /// The leaf in service is served until its budget or its work ends; others come meanwhile, and may leave.
    fn slot(&mut self, chance: &mut Chance, [come, go, finish]: [u64; 3]) {
        let Some(i) = self.load.select() else { return };
        loop {
            let len = self.serve(chance, i);
            self.check();
            self.arrivals(chance, come, len);
            let j = chance.index(self.stays.len());
            if chance.percent(go) && self.load.h.is_active(Tag::from_index(j)) {
                self.load.h.deactivate(self.load.now, Tag::from_index(j), true, false);
                self.stays[j] = None;
            }
            if chance.percent(finish) {
                self.stays[i] = None;
                self.load.finish(i);
                return;
            }
            if !self.load.fits(i) {
                self.load.expire(chance, i);
                return;
            }
        }
    }
}

#[test]
fn lag_while_others_come_and_go() {
    seeds::each_of("lag_while_others_come_and_go", 1_100, |seed| {
        let mut chance = Chance::Seed(seed);
        let mut scene = Scene::draw(&mut chance);
        let odds = [*chance.pick(&[0, 5, 40]), *chance.pick(&[0, 0, 5]), *chance.pick(&[1, 10, 40])];
        let between = *chance.pick(&[5, 50, 100]);
        for _ in 0..chance.range(10, 50) {
            scene.arrivals(&mut chance, between, 0);
            scene.slot(&mut chance, odds);
        }
        scene.load.h.check();
    });
}

//= docs/reference/bfq.md#18-guarantees T9 type=test
#[test]
fn the_idle_class_has_its_turn() {
    seeds::each_of("the_idle_class_has_its_turn", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let classes = [Class::Idle, Class::RealTime, BE, BE, *chance.pick(&[Class::Idle, Class::RealTime])];
        let queues = classes.map(|class| Queue { class, ..Queue::draw(&mut chance, GroupId::ROOT) }).to_vec();
        let mut load = Load::new(0, 1, queues);
        let longest = chance.range(1, 125);
        load.activate(&mut chance, 0, false);
        let mut last_turn = load.now;
        for _ in 0..100 {
            let now = load.now;
            let i = load.select().expect("the idle class always has work");
            let class = classes[i];
            if class == Class::Idle {
                last_turn = now;
            }
            let waited = now.since(last_turn);
            assert!(waited <= Duration::from_ms(200 + longest), "T9: waited {waited:?}");
            // A turn is one request; other slots are as long as they like.
            let requests = if class == Class::Idle { 1 } else { chance.range(1, 3) };
            for _ in 0..requests {
                load.serve(&mut chance, i);
                load.pass(Duration::from_ms(chance.range(0, longest / requests)));
                let j = chance.index(5);
                if j != i && !load.h.is_active(Tag::from_index(j)) {
                    load.activate(&mut chance, j, false);
                }
            }
            if i > 0 && chance.percent(10) { load.finish(i) } else { load.expire(&mut chance, i) }
        }
    });
}
