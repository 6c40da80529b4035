//! Groups in groups under either engine of the controller, against the fluid ideal: at every moment the
//! service of a group goes to those of its children that have work and are of the highest class among them,
//! by weight (hierarchical processor sharing).

use super::chance::{Chance, narrow};
use super::seeds;
use fairhead_core::parts::fair_tree::{Engine, FairTree};
use fairhead_core::units::Id;
use fairhead_core::{Class, GroupId, Instant};

const NOW: Instant = Instant::EPOCH;
const ENGINES: [Engine; 2] = [Engine::DiskTime, Engine::Wf2q];
/// What one turn may be.
const QUANTUM: u32 = 1000;

/// A group, and what it and all in it were given.
#[derive(Clone, Copy, Debug)]
struct Group {
    parent: usize,
    class: Class,
    weight: u32,
    leaf_weight: u32,
    /// Its own tasks have work.
    wants: bool,
    /// Given to its own tasks, and to those of groups in it as well.
    own: u64,
    all: u64,
}

/// A child of a group: a group, or its own tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Child {
    Group(usize),
    Leaf(usize),
}

struct Scene {
    tree: FairTree,
    groups: Vec<Group>,
    total: u64,
    /// Turns are whole quanta.
    greedy: bool,
}

fn id(g: usize) -> GroupId {
    GroupId::from_index(g)
}

impl Scene {
    /// Draws up to three levels of groups below the root, without work.
    fn draw(chance: &mut Chance, engine: Engine, count: usize, weight_max: u64) -> Self {
        let mut tree = FairTree::new(engine, narrow(count as u64));
        tree.set_quantum(QUANTUM);
        let mut groups = Vec::new();
        let mut levels = vec![0];
        let nested = *chance.pick(&[0, 50, 90]);
        for g in 0..count {
            let weight = |chance: &mut Chance| match chance.below(3) {
                0 => 100.min(narrow(weight_max)),
                _ => narrow(chance.scaled(1, weight_max)),
            };
            let mut parent = 0;
            if g > 1 && chance.percent(nested) {
                parent = Some(chance.index(g)).filter(|&p| levels[p] < 3).unwrap_or(0);
            }
            if g > 0 {
                tree.set_parent(id(g), id(parent));
                levels.push(levels[parent] + 1);
            }
            let class = Class::BestEffort;
            let (weight, leaf_weight) = (weight(chance), weight(chance));
            tree.set_shares(id(g), weight, leaf_weight, class);
            groups.push(Group { parent, class, weight, leaf_weight, wants: false, own: 0, all: 0 });
        }
        Self { tree, groups, total: 0, greedy: chance.percent(50) }
    }

    fn start(&mut self, g: usize) {
        self.tree.activate(NOW, id(g));
        self.groups[g].wants = true;
    }

    fn stop(&mut self, g: usize) {
        self.tree.deactivate(NOW, id(g));
        self.groups[g].wants = false;
    }

    /// The group that a child is in.
    fn around(&self, child: Child) -> usize {
        match child {
            Child::Leaf(g) => g,
            Child::Group(g) => self.groups[g].parent,
        }
    }

    fn children(&self, g: usize) -> Vec<Child> {
        let groups = (1..self.groups.len()).filter(|&c| self.groups[c].parent == g).map(Child::Group);
        groups.chain([Child::Leaf(g)]).collect()
    }

    fn wants(&self, child: Child) -> bool {
        match child {
            Child::Leaf(g) => self.groups[g].wants,
            Child::Group(g) => self.children(g).into_iter().any(|c| self.wants(c)),
        }
    }

    fn class(&self, child: Child) -> Class {
        match child {
            Child::Leaf(_) => Class::BestEffort,
            Child::Group(g) => self.groups[g].class,
        }
    }

    fn weight(&self, child: Child) -> u64 {
        match child {
            Child::Leaf(g) => self.groups[g].leaf_weight.into(),
            Child::Group(g) => self.groups[g].weight.into(),
        }
    }

    fn served(&self, child: Child) -> u64 {
        match child {
            Child::Leaf(g) => self.groups[g].own,
            Child::Group(g) => self.groups[g].all,
        }
    }

    /// The children of a group that share what it gets now.
    fn sharing(&self, g: usize) -> Vec<Child> {
        let waiting: Vec<_> = self.children(g).into_iter().filter(|&c| self.wants(c)).collect();
        let best = waiting.iter().map(|&c| self.class(c)).min();
        waiting.into_iter().filter(|&c| Some(self.class(c)) == best).collect()
    }

    /// A leaf's share of all, of those in `among` its own class at every level.
    fn share(&self, leaf: usize) -> f64 {
        let mut share = 1.0;
        let (mut child, mut group) = (Child::Leaf(leaf), leaf);
        loop {
            let of_class = |&c: &Child| self.class(c) == self.class(child) && (self.wants(c) || c == child);
            let sum: u64 = self.children(group).into_iter().filter(of_class).map(|c| self.weight(c)).sum();
            share *= self.weight(child) as f64 / sum as f64;
            if group == 0 {
                return share;
            }
            (child, group) = (Child::Group(group), self.groups[group].parent);
        }
    }

    fn count(&mut self, leaf: usize, used: u32) {
        let used = u64::from(used);
        self.total += used;
        self.groups[leaf].own += used;
        let mut g = leaf;
        while g > 0 {
            self.groups[g].all += used;
            g = self.groups[g].parent;
        }
    }

    fn used(&self, chance: &mut Chance) -> u32 {
        if self.greedy { QUANTUM } else { narrow(chance.range(1, QUANTUM.into())) }
    }

    /// Serves one turn of the group that is next; it still has work afterwards.
    fn turn(&mut self, chance: &mut Chance) -> usize {
        let leaf = self.tree.select(NOW, QUANTUM).expect("a group has work").index();
        let used = self.used(chance);
        self.tree.expire(NOW, id(leaf), used);
        self.count(leaf, used);
        leaf
    }

    /// Up to a quantum for `leaf`, out of turn.
    fn give(&mut self, chance: &mut Chance, leaf: usize) -> u32 {
        let used = self.used(chance);
        self.tree.charge(id(leaf), used);
        self.count(leaf, used);
        used
    }

    fn wants_any(&self) -> bool {
        self.groups.iter().any(|g| g.wants)
    }

    /// The groups around a leaf, itself first, up to the root.
    fn way_up(&self, leaf: usize) -> Vec<usize> {
        let above = |&g: &usize| (g > 0).then(|| self.groups[g].parent);
        std::iter::successors(Some(leaf), above).collect()
    }

    /// How many levels a leaf competes at.
    fn levels(&self, leaf: usize) -> f64 {
        self.way_up(leaf).into_iter().filter(|&g| self.sharing(g).len() > 1).count() as f64
    }

    /// The classes of two siblings that hold one leaf each, compared.
    fn outranks(&self, a: usize, b: usize) -> bool {
        let (up, other) = (self.way_up(a), self.way_up(b));
        let meet = up.iter().find(|g| other.contains(g)).expect("the root");
        let class = |way: &[usize]| match way.iter().position(|g| g == meet) {
            Some(i) if i > 0 => self.groups[way[i - 1]].class,
            _ => Class::BestEffort,
        };
        class(&up) < class(&other)
    }

    /// All children that share what some group gets, by group.
    fn siblings(&self) -> Vec<Vec<Child>> {
        (0..self.groups.len()).map(|g| self.sharing(g)).collect()
    }
}

/// `share * total` is at least this many quanta for every leaf, so a quantum is below 1 % of any share.
const QUANTA: f64 = 100.0;

/// Each leaf that has work all the time has its share within 2 %, once that is more than 100 quanta.
#[test]
fn shares_are_those_of_the_fluid_ideal() {
    seeds::each_of("shares_are_those_of_the_fluid_ideal", 40, |seed| {
        let mut chance = Chance::Seed(seed);
        let count = narrow(chance.range(2, 64));
        for engine in ENGINES {
            let mut chance = chance.clone();
            let mut scene = Scene::draw(&mut chance, engine, count, 10_000);
            (0..count).filter(|_| chance.percent(70)).for_each(|g| scene.start(g));
            scene.start(0);
            // The smallest shares would take too long.
            while let Some(g) = (0..count).find(|&g| scene.groups[g].wants && scene.share(g) < 1.0 / 300.0) {
                scene.stop(g);
            }
            let wanting: Vec<usize> = (0..count).filter(|&g| scene.groups[g].wants).collect();
            let least = wanting.iter().map(|&g| scene.share(g)).fold(1.0, f64::min);
            while (scene.total as f64) * least < QUANTA * f64::from(QUANTUM) {
                scene.turn(&mut chance);
            }
            for g in wanting {
                let (part, whole) = scene.tree.share(id(g));
                let share = scene.share(g);
                assert!((part as f64 / whole as f64 / share - 1.0).abs() < 1e-3, "`share` of {g}");
                let off = scene.groups[g].own as f64 / (scene.total as f64 * share) - 1.0;
                assert!(off.abs() <= 0.02, "{engine:?}: {g} is off its share by {off}: {:?}", scene.groups);
            }
            scene.tree.check();
        }
    });
}

/// Service of one sibling divided by its weight, less that of another, times both weights; its extremes so
/// far.
#[derive(Clone, Copy, Debug)]
struct Range {
    pair: [Child; 2],
    least: i128,
    most: i128,
}

impl Range {
    fn of(scene: &Scene) -> Vec<Self> {
        let mut ranges = Vec::new();
        for siblings in scene.siblings() {
            for (i, &a) in siblings.iter().enumerate() {
                ranges.extend(siblings[..i].iter().map(|&b| {
                    let at = Self::distance(scene, [a, b]);
                    Self { pair: [a, b], least: at, most: at }
                }));
            }
        }
        ranges
    }

    fn distance(scene: &Scene, [a, b]: [Child; 2]) -> i128 {
        let of = |x: Child, y: Child| i128::from(scene.served(x)) * i128::from(scene.weight(y));
        of(a, b) - of(b, a)
    }

    /// Within `of_each` of each, divided by its weight. In `turns` each of four divisions can round away
    /// 2^-22 of a unit of service and weight.
    fn follow(&mut self, scene: &Scene, turns: i128, of_each: [u64; 2]) {
        let at = Self::distance(scene, self.pair);
        (self.least, self.most) = (self.least.min(at), self.most.max(at));
        let most = self.bound(scene, turns, of_each);
        assert!(self.most - self.least <= most, "{self:?} is more than {most}: {:?}", scene.groups);
    }

    fn bound(&self, scene: &Scene, turns: i128, of_each: [u64; 2]) -> i128 {
        let weights = self.pair.map(|c| i128::from(scene.weight(c)));
        let rounding = ((4 * turns * weights[0] * weights[1]) >> 22) + 1;
        let [a, b] = of_each.map(i128::from);
        a * weights[1] + b * weights[0] + rounding
    }
}

/// Start-time fair queueing: between any two moments, two siblings that have work all the time differ by at
/// most a quantum of each, divided by its weight. So does B-WF2Q+, by twice that in a hierarchy.
//= paper: P. Goyal, H. Vin, H. Cheng 1996, "Start-time fair queuing", theorem 1 type=test
#[test]
fn siblings_differ_by_a_quantum_of_each() {
    seeds::each_of("siblings_differ_by_a_quantum_of_each", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let count = narrow(chance.range(2, 16));
        for (engine, of_each) in [(Engine::DiskTime, QUANTUM), (Engine::Wf2q, 2 * QUANTUM)] {
            let mut chance = chance.clone();
            let weight_max = *chance.pick(&[10, 10_000]);
            let mut scene = Scene::draw(&mut chance, engine, count, weight_max);
            (0..count).filter(|_| chance.percent(70)).for_each(|g| scene.start(g));
            scene.start(0);
            let mut ranges = Range::of(&scene);
            for turns in 1..300 {
                scene.turn(&mut chance);
                ranges.iter_mut().for_each(|r| r.follow(&scene, turns, [of_each.into(); 2]));
                if chance.percent(1) {
                    // Other weights: from here on it holds for them.
                    let g = chance.index(count);
                    let group = &mut scene.groups[g];
                    (group.weight, group.leaf_weight) =
                        (narrow(chance.scaled(1, 10_000)), narrow(chance.scaled(1, 10_000)));
                    scene.tree.set_shares(id(g), group.weight, group.leaf_weight, group.class);
                    ranges = Range::of(&scene);
                }
            }
        }
    });
}

/// A group that comes and goes, at whatever moments, is given no more than those that stay, between any two
/// moments: being away earns nothing, and neither does leaving as soon as it was served.
#[test]
fn nobody_gains_by_coming_and_going() {
    seeds::each_of("nobody_gains_by_coming_and_going", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let count = narrow(chance.range(3, 10));
        for (engine, of_each) in [(Engine::DiskTime, QUANTUM), (Engine::Wf2q, 2 * QUANTUM)] {
            let mut chance = chance.clone();
            let weight_max = *chance.pick(&[10, 10_000]);
            let mut scene = Scene::draw(&mut chance, engine, count, weight_max);
            (1..count).for_each(|g| scene.start(g));
            let blinker = chance.range(1, count as u64 - 1);
            let blinker: usize = narrow(blinker);
            let odds = [*chance.pick(&[2, 20, 100]), *chance.pick(&[0, 5, 50]), *chance.pick(&[5, 50, 100])];
            let group = scene.groups[blinker].parent;
            let mut ranges: Vec<Range> = Range::of(&scene);
            ranges.retain(|r| r.pair.contains(&Child::Group(blinker)));
            // Only the blinker comes and goes in there.
            assert!(
                ranges.iter().all(|r| !r.pair.contains(&Child::Leaf(group)) || scene.groups[group].wants)
            );
            let alone = scene.children(blinker).len() == 1;
            for turns in 1..300 {
                let leaf = scene.turn(&mut chance);
                let [after_turn, while_waiting, back] = odds;
                let goes = if leaf == blinker { after_turn } else { while_waiting };
                if alone && scene.groups[blinker].wants && chance.percent(goes) {
                    scene.stop(blinker);
                } else if !scene.groups[blinker].wants && chance.percent(back) {
                    scene.start(blinker);
                }
                for r in &mut ranges {
                    let at = Range::distance(&scene, r.pair);
                    let won = if r.pair[0] == Child::Group(blinker) { at - r.least } else { r.most - at };
                    (r.least, r.most) = (r.least.min(at), r.most.max(at));
                    let most = r.bound(&scene, turns, [of_each.into(); 2]);
                    assert!(won <= most, "{engine:?}: {blinker} won {won} of {most}: {:?}", scene.groups);
                }
            }
        }
    });
}

/// At every level the one served is of the highest class there that has work, whatever changes.
//= docs/reference/groups.md#12-test-vectors vector 2 type=test
#[test]
fn classes_are_strict_at_every_level() {
    seeds::each_of("classes_are_strict_at_every_level", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let engine = *chance.pick(&ENGINES);
        let count = narrow(chance.range(2, 24));
        let mut scene = Scene::draw(&mut chance, engine, count, 1000);
        for _ in 0..300 {
            let g = chance.index(count);
            match chance.below(4) {
                0 if scene.groups[g].wants => scene.stop(g),
                0 => scene.start(g),
                1 if g > 0 => {
                    let group = &mut scene.groups[g];
                    group.class = *chance.pick(&super::load::CLASSES);
                    scene.tree.set_shares(id(g), group.weight, group.leaf_weight, group.class);
                }
                _ if !scene.wants_any() => assert_eq!(scene.tree.select(NOW, QUANTUM), None),
                _ => {
                    let leaf = scene.turn(&mut chance);
                    let (mut child, mut group) = (Child::Leaf(leaf), leaf);
                    while scene.sharing(group).contains(&child) && group > 0 {
                        (child, group) = (Child::Group(group), scene.groups[group].parent);
                    }
                    assert!(scene.sharing(group).contains(&child), "{child:?} was served in {group}");
                }
            }
            scene.tree.check();
            let (a, b) = (chance.index(count), chance.index(count));
            assert_eq!(scene.tree.outranks(id(a), id(b)), scene.outranks(a, b), "{a} and {b}");
        }
    });
}

/// Under B-WF2Q+ a leaf's service is never behind its share by more than a quantum for each level, nor ahead,
/// however many others there are.
//= paper: J. Bennett, H. Zhang 1997, "Hierarchical packet fair queueing algorithms" type=test
#[test]
fn budgets_keep_everyone_within_a_quantum_for_each_level() {
    seeds::each_of("budgets_keep_everyone_within_a_quantum_for_each_level", 60, |seed| {
        let mut chance = Chance::Seed(seed);
        let count = narrow(chance.range(2, 48));
        let mut scene = Scene::draw(&mut chance, Engine::Wf2q, count, 10_000);
        (0..count).for_each(|g| scene.start(g));
        let shares: Vec<f64> = (0..count).map(|g| scene.share(g)).collect();
        let levels: Vec<f64> = (0..count).map(|g| scene.levels(g)).collect();
        for _ in 0..600 {
            scene.turn(&mut chance);
            for g in 0..count {
                let off = scene.total as f64 * shares[g] - scene.groups[g].own as f64;
                let most = levels[g] * f64::from(QUANTUM) + 1.0;
                assert!(off.abs() <= most, "{g} is off by {off}: {:?}", scene.groups);
            }
        }
    });
}

/// How far apart the ends are between which a child moves, in service, while leaf `g` may be given up to a
/// quantum at a time out of turn. Derived as [`what_is_given_out_of_turn_counts_but_is_no_endless_debt`]
/// says.
fn width(scene: &Scene, engine: Engine, g: usize, child: Child) -> u64 {
    let way = scene.way_up(g);
    let holds = |c: &Child| match *c {
        Child::Leaf(l) => l == g,
        Child::Group(group) => way.contains(&group),
    };
    let siblings = scene.sharing(scene.around(child));
    let owner = siblings.iter().find(|c| holds(c)).map(|&c| scene.weight(c));
    let (weight, sum): (u64, u64) = (scene.weight(child), siblings.iter().map(|&c| scene.weight(c)).sum());
    let (quantum, others) = (u64::from(QUANTUM), siblings.len() as u64 - 1);
    match (engine, owner) {
        (Engine::DiskTime, Some(owner)) if holds(&child) => {
            (quantum * (2 * sum + weight * others)).div_ceil(sum - owner)
        }
        (Engine::DiskTime, _) => quantum,
        (Engine::Wf2q, Some(_)) if holds(&child) => 3 * quantum,
        (Engine::Wf2q, Some(owner)) => 2 * quantum + (3 * quantum * weight).div_ceil(sum - owner),
        (Engine::Wf2q, None) => 2 * quantum,
    }
}

/// All pairs, and how far each of a pair moves.
fn widths(scene: &Scene, engine: Engine, g: usize) -> Vec<(Range, [u64; 2])> {
    Range::of(scene).into_iter().map(|r| (r, r.pair.map(|c| width(scene, engine, g, c)))).collect()
}

/// What is given out of turn counts, and however much it was, its owner has its next turn soon.
///
/// Of n + 1 siblings of weights w (W in all) and with virtual times t, each has been given w t. Their mean by
/// weight is V. One of them, the *owner* o, is or holds the leaf that is given up to a quantum q out of turn,
/// at most until w (t - V) = 2 q: what would take it further is forgotten.
///
/// In the first half it never would, among the children of the root, and everything counts. The leaf is given
/// so much that it has half of its share s of all out of turn: E, which is what it was given less that half,
/// is negative before it is given a part c <= q, and by no more than s q / 2 after a turn of q. After its own
/// last turn the owner was ahead by q at most. Since then E went up by at most s q / 2 + c (1 - s / 2), and s
/// c / 2 or more of its share has gone by beside that half: it is ahead by at most `q + s q / 2 + c (1 - s)
/// <= 2 q`. (Inside a group that waits while all around it have a turn it could be more, and no group is
/// watched there.) In the second half it is given a hundred quanta before any group is watched. Then:
///
/// - *Virtual disk time.* A turn starts at the least time of all, m. So each but o is within q / w of m. All
///   that V can be ahead of m is the mean of that: for the owner at m + d / w, `d <= 2 q + w (V - m) <= 2 q +
///   w/W (n q + d)`, so `d <= q (2 W + n w) / (W - w)`.
/// - *B-WF2Q+.* A turn starts at t <= V, so each but o is ahead by at most q; o by 2 q. How far behind can i
///   be? Let its finish be D = t + q/w. Consider the last turn before now of a group whose finish was later,
///   or the start; V was v then. A group with a finish up to D was not eligible, t > v, and is given at most
///   w (D - v) by D; i, which has not been served its last quantum, q less. The later finish is that of one
///   turn, q. The owner's last finish may have been later, too, which is another q; and it is given 2 q + w_o
///   (V - D) after D. Together these are the advance of V: `W (V - v) <= W (D - v) - q + q + q + 2 q + w_o
///   (V - D)`. So `V - D <= 3 q / (W - w_o)`, and i is behind by at most `q + 3 q w / (W - w_o)`. The owner
///   itself, and any child in a group without one, by q, for without the owner's 3 q the same is `V <= D`.
///
/// Two siblings may go from one end to the other at the same time, in opposite directions.
//= paper: J. Bennett, H. Zhang 1997, "Hierarchical packet fair queueing algorithms" type=test
#[test]
fn what_is_given_out_of_turn_counts_but_is_no_endless_debt() {
    seeds::each_of("what_is_given_out_of_turn_counts_but_is_no_endless_debt", 60, |seed| {
        let mut chance = Chance::Seed(seed);
        let count = narrow(chance.range(2, 12));
        for engine in ENGINES {
            let mut chance = chance.clone();
            let mut scene = Scene::draw(&mut chance, engine, count, 100);
            (0..count).for_each(|g| scene.start(g));
            let g = chance.index(count);
            let follow = |scene: &Scene, ranges: &mut [(Range, [u64; 2])], turns| {
                ranges.iter_mut().for_each(|(r, of_each)| r.follow(scene, turns, *of_each));
            };
            // Half of its share: it still has no more than its share.
            let (share, mut extra) = (scene.share(g), 0);
            let mut ranges = widths(&scene, engine, g);
            let inner = scene.way_up(g);
            ranges.retain(|(r, _)| {
                r.pair.iter().all(|&c| !inner.contains(&scene.around(c)) || scene.around(c) == 0)
            });
            for turns in 1..400 {
                scene.turn(&mut chance);
                while f64::from(extra) < 0.5 * share * scene.total as f64 {
                    follow(&scene, &mut ranges, turns);
                    extra += scene.give(&mut chance, g);
                }
                follow(&scene, &mut ranges, turns);
            }
            // Much more than its share, whether it has work meanwhile or not.
            if chance.percent(50) {
                scene.stop(g);
            }
            (0..100).for_each(|_| _ = scene.give(&mut chance, g));
            if !scene.groups[g].wants {
                scene.start(g);
            }
            scene.tree.check();
            let mut ranges = widths(&scene, engine, g);
            for turns in 1..400 {
                scene.turn(&mut chance);
                follow(&scene, &mut ranges, turns);
            }
        }
    });
}

/// A guarantee of half of what is due anyway changes nothing: a group of weight 220 beside 20 of weight 10
/// gets 220 parts of 420, though each of the 20 has a turn in a row, in which the guarantee is 5 quanta.
#[test]
fn a_guarantee_within_the_share_gives_no_more_than_the_share() {
    for engine in ENGINES {
        let mut tree = FairTree::new(engine, 22);
        tree.set_quantum(QUANTUM);
        for g in 1..22 {
            tree.set_shares(id(g), if g == 1 { 220 } else { 10 }, 100, Class::BestEffort);
            tree.activate(NOW, id(g));
        }
        let (mut own, mut guaranteed, mut total) = (0_u64, 0_u64, 0_u64);
        while total < 10_000 {
            let leaf = tree.select(NOW, QUANTUM).expect("all want it");
            tree.expire(NOW, leaf, QUANTUM);
            (own, total) = (own + u64::from(leaf == id(1)), total + 1);
            if guaranteed * 840 < total * 220 {
                tree.charge(id(1), QUANTUM);
                (own, total, guaranteed) = (own + 1, total + 1, guaranteed + 1);
            }
        }
        // Within its own two quanta, and one of each other in the current round.
        let due = total * 220 / 420;
        assert!(own.abs_diff(due) <= 22, "{engine:?}: {own} of {total}, {due} are due");
    }
}
