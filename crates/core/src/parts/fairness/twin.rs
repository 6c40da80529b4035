//! The hierarchy written a second time, as plainly as docs/reference/bfq.md has it: entities in one vector,
//! searched from end to end; weights summed up and the next child looked for anew each time; recursion up the
//! groups. Both get the same random events and must agree on every time, weight and choice after each.

use super::chance::{Chance, narrow};
use super::load::CLASSES;
use super::seeds;
use fairhead_core::parts::hierarchy::Hierarchy;
use fairhead_core::units::Id;
use fairhead_core::{Class, Duration, GroupId, Instant, Tag};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Detached,
    InService,
    Waits,
    Idle,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    /// Its group, by number.
    group: usize,
    class: Class,
    new_class: Class,
    base: u32,
    new_base: u32,
    raise: u32,
    dirty: bool,
    weight: u32,
    budget: u32,
    service: u32,
    start: u64,
    finish: u64,
    standing: Standing,
    /// When it was last put on the active tree.
    filed: u64,
}

/// Where virtual times start: what is behind need not be negative.
const ORIGIN: u64 = 1 << 60;

#[derive(Clone, Copy, Debug)]
struct Group {
    vtime: [u64; 3],
    next: Option<usize>,
    in_service: Option<usize>,
    idle_turn: Option<Instant>,
}

/// Leaves come first in `entities`, then groups; the root's entry is not used.
#[derive(Debug)]
struct Twin {
    entities: Vec<Entity>,
    groups: Vec<Group>,
    leaves: usize,
    serving: Option<usize>,
    clock: u64,
    now: Instant,
    idle_turns: bool,
}

const fn vt(sectors: u32, weight: u64) -> u64 {
    ((sectors as u64) << 22) / weight
}

fn narrow128(n: u128) -> u64 {
    n.try_into().expect("a distance in virtual time")
}

impl Twin {
    fn new(leaves: usize, groups: usize) -> Self {
        let leaf = Entity {
            group: 0,
            class: Class::BestEffort,
            new_class: Class::BestEffort,
            base: 40,
            new_base: 40,
            raise: 1,
            dirty: false,
            weight: 40,
            budget: 0,
            service: 0,
            start: ORIGIN,
            finish: ORIGIN,
            standing: Standing::Detached,
            filed: 0,
        };
        let mut entities = vec![leaf; leaves];
        entities.resize(leaves + groups, Entity { base: 100, new_base: 100, weight: 100, ..leaf });
        let group = Group { vtime: [ORIGIN; 3], next: None, in_service: None, idle_turn: None };
        let groups = vec![group; groups];
        Self { entities, groups, leaves, serving: None, clock: 0, now: Instant::EPOCH, idle_turns: true }
    }

    /// The children of a group, of one class, that have this standing.
    fn who(&self, group: usize, class: Class, standing: Standing) -> Vec<usize> {
        let fits = |e: &Entity| e.group == group && e.class == class && e.standing == standing;
        (0..self.entities.len()).filter(|&i| i != self.leaves && fits(&self.entities[i])).collect()
    }

    fn total(&self, group: usize, class: Class) -> u64 {
        let attached = |e: &&Entity| e.group == group && e.class == class && e.standing != Standing::Detached;
        self.entities.iter().filter(attached).map(|e| u64::from(e.weight)).sum()
    }

    fn vtime(&mut self, e: usize) -> &mut u64 {
        let Entity { group, class, .. } = self.entities[e];
        &mut self.groups[group].vtime[class as usize]
    }

    fn advance(&mut self, group: usize, class: Class, vtime: u64) {
        let v = &mut self.groups[group].vtime[class as usize];
        *v = vtime.max(*v);
        let v = *v;
        for i in self.who(group, class, Standing::Idle) {
            if self.entities[i].finish <= v {
                self.entities[i].standing = Standing::Detached;
            }
        }
    }

    /// The best child of a class, and what virtual time it takes for one to be eligible.
    fn best(&self, group: usize, class: Class) -> Option<(usize, u64)> {
        let waiting = self.who(group, class, Standing::Waits);
        let first = waiting.iter().map(|&i| self.entities[i].start).min()?;
        let vtime = first.max(self.groups[group].vtime[class as usize]);
        let eligible = waiting.into_iter().filter(|&i| self.entities[i].start <= vtime);
        eligible.min_by_key(|&i| (self.entities[i].finish, self.entities[i].filed)).map(|best| (best, vtime))
    }

    fn look_up(&mut self, group: usize, on_expiry: bool) -> Option<usize> {
        let now = self.now;
        let last = *self.groups[group].idle_turn.get_or_insert(now);
        let mut classes = CLASSES.to_vec();
        if self.idle_turns && now > last + Duration::from_ms(200) {
            if self.who(group, Class::Idle, Standing::Waits).is_empty() {
                self.groups[group].idle_turn = Some(now);
            } else {
                classes.rotate_right(1);
            }
        }
        if self.groups[group].in_service.is_none() || on_expiry {
            self.jump(group, &classes);
        }
        classes.into_iter().find_map(|class| self.best(group, class)).map(|best| best.0)
    }

    /// Virtual time jumps to where the first class that waits has an eligible entity.
    fn jump(&mut self, group: usize, classes: &[Class]) {
        let first = classes.iter().find_map(|&class| Some((class, self.best(group, class)?)));
        if let Some((class, (_, vtime))) = first {
            self.advance(group, class, vtime);
        }
    }

    /// Whether the group's own place must change.
    fn update_next(&mut self, group: usize, on_expiry: bool) -> bool {
        if group == 0 {
            // The choice is made when it is asked for.
            if self.groups[0].in_service.is_none() {
                self.jump(0, &CLASSES);
            }
            return false;
        }
        let before = self.groups[group].next;
        let next = self.look_up(group, on_expiry);
        self.groups[group].next = next;
        let Some(next) = next else { return before.is_some() };
        let budget = self.entities[next].budget;
        let own = &mut self.entities[self.leaves + group].budget;
        let shrank = budget < *own;
        *own = budget;
        before.is_none() || shrank
    }

    /// `e` was activated or requeued.
    fn rise(&mut self, e: usize, credit: bool, on_expiry: bool) {
        let group = self.entities[e].group;
        if self.groups[group].in_service == Some(e) || self.entities[e].standing == Standing::Waits {
            self.refile(e);
        } else {
            self.enter(e, credit);
        }
        if (self.update_next(group, on_expiry) || on_expiry) && group > 0 {
            self.rise(self.leaves + group, credit, on_expiry);
        }
    }

    /// `e` has nothing to do.
    fn sink(&mut self, e: usize, may_idle: bool, on_expiry: bool) {
        let group = self.entities[e].group;
        self.leave(e, may_idle);
        if self.groups[group].next == Some(e) || on_expiry || group == 0 {
            self.update_next(group, on_expiry);
        }
        let Group { next, in_service, .. } = self.groups[group];
        if group == 0 {
            return;
        }
        if next.is_none() && in_service.is_none() {
            self.sink(self.leaves + group, true, on_expiry);
        } else {
            self.rise(self.leaves + group, false, on_expiry);
        }
    }

    fn enter(&mut self, e: usize, credit: bool) {
        let v = *self.vtime(e);
        let finish = self.entities[e].finish;
        let back = credit && v > finish;
        let mut start = if back { finish } else { v };
        if self.entities[e].standing == Standing::Idle {
            start = start.max(finish);
        }
        self.file(e, start, back);
    }

    fn refile(&mut self, e: usize) {
        let Entity { mut start, service, weight, group, .. } = self.entities[e];
        if self.groups[group].in_service == Some(e) {
            start += vt(service, u64::from(weight));
            if e >= self.leaves {
                self.entities[e].service = 0;
                if self.groups[e - self.leaves].next.is_none() {
                    let entity = &mut self.entities[e];
                    (entity.start, entity.finish) = (start, start);
                    entity.standing = Standing::InService;
                    return;
                }
            }
        }
        self.file(e, start, false);
    }

    fn file(&mut self, e: usize, start: u64, pull_up: bool) {
        let entity = &mut self.entities[e];
        let old = entity.class;
        if entity.dirty {
            (entity.base, entity.class, entity.dirty) = (entity.new_base, entity.new_class, false);
            entity.weight = entity.base * entity.raise;
        }
        let moved = old != entity.class;
        let Entity { budget, weight, raise, .. } = *entity;
        let v = *self.vtime(e);
        let start = if moved { v } else { start };
        let finish = start + vt(budget, u64::from(weight));
        let behind = if pull_up { v.saturating_sub(finish) / u64::from(raise) } else { 0 };
        self.clock += 1;
        let entity = &mut self.entities[e];
        (entity.start, entity.finish) = (start + behind, finish + behind);
        (entity.standing, entity.filed) = (Standing::Waits, self.clock);
    }

    fn leave(&mut self, e: usize, may_idle: bool) {
        let v = *self.vtime(e);
        let entity = &mut self.entities[e];
        entity.finish = entity.start + vt(entity.service, u64::from(entity.weight));
        let ahead = may_idle && entity.finish > v;
        entity.standing = if ahead { Standing::Idle } else { Standing::Detached };
        let in_service = &mut self.groups[entity.group].in_service;
        if *in_service == Some(e) {
            *in_service = None;
        } else {
            entity.service = 0;
        }
    }

    /// Another class and weight at once: `e` is as far ahead or behind, in sectors, as it was.
    fn reweigh(&mut self, e: usize, class: Class, weight: u32) {
        let (old, before) = (self.entities[e], *self.vtime(e));
        let (base, new_base, raise, dirty) = (weight, weight, 1, false);
        self.entities[e] = Entity { class, new_class: class, base, new_base, raise, dirty, weight, ..old };
        if (old.class, old.weight) == (class, weight) {
            return;
        }
        let v = *self.vtime(e);
        let by =
            |a: u64, b: u64| u128::from(a.saturating_sub(b)) * u128::from(old.weight) / u128::from(weight);
        let at = |t: u64| v + narrow128(by(t, before)) - narrow128(by(before, t));
        match old.standing {
            Standing::Detached => {}
            Standing::Waits => {
                self.file(e, at(old.start), false);
                if self.update_next(old.group, false) && old.group > 0 {
                    self.rise(self.leaves + old.group, false, false);
                }
            }
            Standing::Idle => self.rest(e, at(old.finish)),
            Standing::InService => {
                let entity = &mut self.entities[e];
                (entity.start, entity.finish) = (at(old.start), at(old.finish));
            }
        }
    }

    fn rest(&mut self, e: usize, finish: u64) {
        let v = *self.vtime(e);
        let entity = &mut self.entities[e];
        (entity.start, entity.finish) = (finish, finish);
        entity.standing = if finish > v { Standing::Idle } else { Standing::Detached };
    }

    /// Service out of turn.
    fn charge(&mut self, e: usize, cost: u32, at_most: u32) {
        let old = self.entities[e];
        let (group, class) = (old.group, old.class);
        let is_served = self.groups[group].in_service == Some(e);
        if is_served {
            self.entities[e].service += cost;
        } else {
            // It counts from now on, and is in no tree.
            self.entities[e].standing = Standing::InService;
        }
        let (before, weight) = (*self.vtime(e), u64::from(old.weight));
        let from = match old.standing {
            Standing::Waits => old.start,
            Standing::Idle => old.finish,
            _ => before,
        };
        let room = (before + vt(at_most, weight)).saturating_sub(from);
        let counts = if is_served {
            cost
        } else {
            cost.min(narrow128((u128::from(room) * u128::from(weight)) >> 22).try_into().unwrap_or(cost))
        };
        self.advance(group, class, before + vt(counts, self.total(group, class)));
        if !is_served {
            let to = from + vt(counts, weight);
            if old.standing == Standing::Waits {
                self.file(e, to, false)
            } else {
                self.rest(e, to)
            }
            self.update_next(group, false);
        }
        if group > 0 {
            self.charge(self.leaves + group, cost, at_most);
        }
    }

    fn select(&mut self) -> Option<usize> {
        let mut group = 0;
        let mut next = self.look_up(0, true);
        next?;
        let leaf = loop {
            let e = next.expect("a child that waits");
            self.check_choice(group, e);
            self.groups[group].in_service = Some(e);
            if self.entities[e].class == Class::Idle {
                self.groups[group].idle_turn = Some(self.now);
            }
            match e.checked_sub(self.leaves) {
                None => break e,
                Some(inner) => (group, next) = (inner, self.groups[inner].next),
            }
        };
        self.entities[leaf].standing = Standing::InService;
        self.serving = Some(leaf);
        while self.update_next(group, false) && group > 0 {
            if self.groups[group].next.is_none() {
                self.entities[self.leaves + group].standing = Standing::InService;
            }
            group = self.entities[self.leaves + group].group;
        }
        Some(leaf)
    }

    /// The selected entity is eligible, and no eligible one of its class finishes before it.
    //= docs/reference/bfq.md#82-time V3 type=test
    fn check_choice(&self, group: usize, e: usize) {
        let best = self.best(group, self.entities[e].class).map(|best| best.0);
        assert_eq!(best, Some(e), "V3: selected in group {group}");
    }

    fn reset(&mut self) {
        let Some(leaf) = self.serving.take() else { return };
        let mut group = self.entities[leaf].group;
        loop {
            self.groups[group].in_service = None;
            if group == 0 {
                return;
            }
            self.entities[self.leaves + group].service = 0;
            group = self.entities[self.leaves + group].group;
        }
    }

    fn served(&mut self, mut e: usize, cost: u32) {
        loop {
            let Entity { group, class, .. } = self.entities[e];
            self.entities[e].service += cost;
            let vtime = self.groups[group].vtime[class as usize] + vt(cost, self.total(group, class));
            self.advance(group, class, vtime);
            if group == 0 {
                return;
            }
            e = self.leaves + group;
        }
    }
}

/// Both, and the events for them.
struct Pair {
    h: Hierarchy<Tag>,
    twin: Twin,
    idle_class: bool,
}

impl Pair {
    fn draw(chance: &mut Chance) -> Self {
        let (leaves, groups) = (chance.range(1, 8), *chance.pick(&[1, 1, 2, 3, 5]));
        let mut h = Hierarchy::starting_at(narrow::<u16>(leaves).into(), groups, ORIGIN);
        let mut twin = Twin::new(narrow::<u16>(leaves).into(), groups as usize);
        twin.idle_turns = chance.percent(80);
        h.set_idle_turns(twin.idle_turns);
        for g in 1..groups {
            let parent = GroupId(narrow(chance.below(g.into())));
            h.set_parent(GroupId(g), parent);
            twin.entities[twin.leaves + g as usize].group = parent.index();
        }
        let mut pair = Self { h, twin, idle_class: chance.percent(50) };
        for i in 0..pair.twin.leaves {
            pair.place(chance, i);
        }
        pair
    }

    fn class(&self, chance: &mut Chance) -> Class {
        *chance.pick(&CLASSES[1..][..if self.idle_class { 2 } else { 1 }])
    }

    fn place(&mut self, chance: &mut Chance, i: usize) {
        let group = chance.index(self.twin.groups.len());
        let class = if chance.percent(10) { Class::RealTime } else { self.class(chance) };
        let weight = narrow(chance.range(1, 100));
        self.h.place(Tag::from_index(i), GroupId::from_index(group), class, weight);
        let fresh = Twin::new(1, 1).entities[0];
        let (new_class, base, new_base) = (class, weight, weight);
        self.twin.entities[i] = Entity { group, class, new_class, base, new_base, weight, ..fresh };
    }

    fn set_budget(&mut self, chance: &mut Chance, i: usize) {
        let budget = narrow(chance.scaled(1, 500));
        self.h.set_budget(Tag::from_index(i), budget);
        self.twin.entities[i].budget = budget;
    }

    fn set_service(&mut self, i: usize, service: u32) {
        self.h.set_service(Tag::from_index(i), service);
        self.twin.entities[i].service = service;
    }

    /// An event for a leaf that is not in service, by where it stands.
    fn event(&mut self, chance: &mut Chance, i: usize) {
        let (tag, now) = (Tag::from_index(i), self.twin.now);
        let may_idle = chance.percent(80);
        match self.twin.entities[i].standing {
            Standing::InService => {}
            Standing::Waits if chance.percent(60) => {
                self.set_budget(chance, i);
                self.h.requeue(now, tag);
                self.twin.rise(i, false, false);
            }
            Standing::Waits => {
                self.h.deactivate(now, tag, may_idle, false);
                self.twin.sink(i, may_idle, false);
            }
            Standing::Detached if chance.percent(10) => self.place(chance, i),
            Standing::Detached if chance.percent(10) => {
                let group = chance.index(self.twin.groups.len());
                self.h.move_to(tag, GroupId::from_index(group));
                self.twin.entities[i].group = group;
            }
            Standing::Idle if chance.percent(20) => {
                match chance.below(3) {
                    0 => self.h.detach(tag),
                    _ => self.h.deactivate(now, tag, may_idle, false),
                }
                if !may_idle || !self.h.is_attached(tag) {
                    self.twin.entities[i].standing = Standing::Detached;
                }
            }
            Standing::Detached | Standing::Idle => {
                self.set_service(i, 0);
                self.set_budget(chance, i);
                let credit = chance.percent(40);
                self.h.activate(now, tag, credit);
                self.twin.rise(i, credit, false);
            }
        }
    }

    fn change_weight(&mut self, chance: &mut Chance, i: usize) {
        let (tag, weight) = (Tag::from_index(i), narrow(chance.range(1, 100)));
        let class = self.class(chance);
        let group = chance.index(self.twin.groups.len());
        let (cost, at_most) = (narrow(chance.scaled(1, 100)), narrow(chance.scaled(0, 300)));
        let entity = &mut self.twin.entities[i];
        match chance.below(7) {
            4 => {
                self.h.reweigh(self.twin.now, tag, class, weight);
                self.twin.reweigh(i, class, weight);
            }
            5 if group > 0 => {
                self.h.reweigh_group(self.twin.now, GroupId::from_index(group), class, weight);
                self.twin.reweigh(self.twin.leaves + group, class, weight);
            }
            6 => {
                self.h.charge(self.twin.now, tag, cost, at_most);
                self.twin.charge(i, cost, at_most);
            }
            0 => {
                self.h.set_weight(tag, class, weight);
                (entity.new_class, entity.new_base, entity.dirty) = (class, weight, true);
            }
            1 => {
                let raise = *chance.pick(&[1, 30, 3000]);
                self.h.set_raise(tag, raise);
                (entity.raise, entity.dirty) = (raise, true);
            }
            2 => {
                self.h.apply_weight(tag);
                entity.base = entity.new_base;
                entity.weight = entity.base * entity.raise;
                entity.dirty = entity.class != entity.new_class;
            }
            _ if group > 0 => {
                self.h.set_group_weight(GroupId::from_index(group), weight);
                let entity = &mut self.twin.entities[self.twin.leaves + group];
                (entity.new_base, entity.dirty) = (weight, true);
            }
            _ => {}
        }
    }

    /// Selects an entity, serves the one in service, or ends its turn.
    fn serve(&mut self, chance: &mut Chance) {
        let Some(i) = self.twin.serving else {
            let got = self.h.select(self.twin.now).map(Id::index);
            assert_eq!(got, self.twin.select(), "who is selected");
            return;
        };
        let tag = Tag::from_index(i);
        self.twin.now = self.twin.now + Duration::from_ms(chance.scaled(0, 100));
        match chance.below(6) {
            0 => {
                self.set_budget(chance, i);
                self.h.expire_requeue(self.twin.now, tag);
                self.twin.rise(i, false, true);
            }
            1 => {
                let may_idle = chance.percent(90);
                self.h.deactivate(self.twin.now, tag, may_idle, true);
                self.twin.sink(i, may_idle, true);
            }
            which => {
                // Sometimes another of the group gets the service instead.
                let j = chance.index(self.twin.leaves);
                let other = &self.twin.entities[j];
                let sibling = other.standing == Standing::Waits && other.group == self.twin.entities[i].group;
                let who = if which == 2 && sibling { j } else { i };
                let cost = narrow(chance.scaled(1, 100));
                self.h.served(Tag::from_index(who), cost);
                self.twin.served(who, cost);
                return;
            }
        }
        self.h.reset_service();
        self.twin.reset();
        self.set_service(i, 0);
    }

    fn compare(&self) {
        let (h, twin) = (&self.h, &self.twin);
        for (i, e) in twin.entities[..twin.leaves].iter().enumerate() {
            let tag = Tag::from_index(i);
            assert_eq!(h.times(tag), (e.start, e.finish), "times of {i}: {e:?}");
            let got = (h.weight(tag), h.base_weight(tag), h.class(tag), h.service(tag), h.budget(tag));
            assert_eq!(got, (e.weight, e.base, e.class, e.service, e.budget), "{i}: {e:?}");
            assert_eq!(h.is_active(tag), e.standing == Standing::Waits, "{i}: {e:?}");
            assert_eq!(h.is_attached(tag), e.standing != Standing::Detached, "{i}: {e:?}");
        }
        for (g, group) in twin.groups.iter().enumerate() {
            let (id, e) = (GroupId::from_index(g), &twin.entities[twin.leaves + g]);
            for class in CLASSES {
                assert_eq!(h.vtime(id, class), group.vtime[class as usize], "V of {g}, {class:?}");
                assert_eq!(h.total_weight(id, class), twin.total(g, class), "W of {g}, {class:?}");
            }
            assert!(g == 0 || h.group_times(id) == (e.start, e.finish), "{:?}, {e:?}", h.group_times(id));
            assert_eq!(h.group_weight(id), e.weight);
        }
        assert_eq!(h.in_service().map(Id::index), twin.serving);
        let next = CLASSES.into_iter().find_map(|class| twin.best(0, class)).map(|best| best.0);
        assert_eq!(h.may_preempt(), next != twin.groups[0].in_service);
        h.check();
    }
}

#[test]
fn agrees_with_the_plain_rules() {
    seeds::each_of("agrees_with_the_plain_rules", 200, |seed| {
        let mut chance = Chance::Seed(seed);
        let mut pair = Pair::draw(&mut chance);
        let odds = [chance.range(1, 50), chance.range(1, 50), chance.below(10)];
        for _ in 0..chance.range(10, 120) {
            let i = chance.index(pair.twin.leaves);
            match chance.weighted(&odds) {
                0 => pair.event(&mut chance, i),
                1 => pair.serve(&mut chance),
                _ => pair.change_weight(&mut chance, i),
            }
            pair.compare();
        }
    });
}
