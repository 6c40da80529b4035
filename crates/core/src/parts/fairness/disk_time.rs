//! Virtual disk time written a second time, without trees: numbers that never end, and searches from end to
//! end.

use super::chance::{Chance, narrow};
use super::load::CLASSES;
use super::seeds;
use fairhead_core::parts::disk_time::DiskTime;
use fairhead_core::units::Id;
use fairhead_core::{Class, Duration, GroupId, Instant};

/// A child of a group: a group, or the leaf of one.
#[derive(Clone, Copy, Debug)]
struct Child {
    parent: usize,
    class: Class,
    weight: u128,
    vtime: u128,
    /// When it was filed; `None` while it is inactive.
    filed: Option<u64>,
}

/// The children of one class of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    min: u128,
    latest: u128,
    empty_since: Option<Instant>,
}

/// Group `g` is child `2 g`, its leaf `2 g + 1`; every leaf is a child, also of a group with nothing else in
/// it.
#[derive(Clone, Debug)]
struct Twin {
    children: Vec<Child>,
    lines: Vec<[Line; 3]>,
    clock: u64,
}

fn vtime(used: u32, weight: u128) -> u128 {
    (u128::from(used) << 20) * 100 / weight
}

impl Twin {
    fn new(groups: usize) -> Self {
        let child = |i: usize| Child {
            parent: if i % 2 == 1 { i / 2 } else { 0 },
            class: Class::BestEffort,
            weight: 100,
            vtime: 0,
            filed: None,
        };
        let children = (0..2 * groups).map(child).collect();
        Self { children, lines: vec![[Line::default(); 3]; groups], clock: 0 }
    }

    fn line(&mut self, i: usize) -> &mut Line {
        let Child { parent, class, .. } = self.children[i];
        &mut self.lines[parent][class as usize]
    }

    fn waiting(&self, group: usize, class: Class) -> impl Iterator<Item = usize> + '_ {
        let of = move |c: &Child| c.filed.is_some() && c.parent == group && c.class == class;
        (1..self.children.len()).filter(move |&i| of(&self.children[i]))
    }

    fn first(&self, group: usize, class: Class) -> Option<usize> {
        self.waiting(group, class).min_by_key(|&i| (self.children[i].vtime, self.children[i].filed))
    }

    /// The reference catches up with the first.
    fn look(&mut self) {
        for group in 0..self.lines.len() {
            for class in CLASSES {
                if let Some(first) = self.first(group, class) {
                    let line = &mut self.lines[group][class as usize];
                    line.min = line.min.max(self.children[first].vtime);
                }
            }
        }
    }

    fn file(&mut self, i: usize) {
        self.clock += 1;
        self.children[i].filed = Some(self.clock);
    }

    fn is_busy(&self, group: usize) -> bool {
        CLASSES.iter().any(|&class| self.waiting(group, class).next().is_some())
    }

    fn up(i: usize, parent: usize) -> Option<usize> {
        debug_assert!(i > 0);
        (parent > 0).then_some(2 * parent)
    }

    fn activate(&mut self, now: Instant, group: usize) {
        let mut next = Some(2 * group + 1);
        while let Some(i) = next.filter(|&i| self.children[i].filed.is_none()) {
            let Child { parent, class, .. } = self.children[i];
            let is_empty = self.first(parent, class).is_none();
            let line = self.line(i);
            let since = line.empty_since.unwrap_or(Instant::EPOCH);
            if is_empty && now.since(since) > Duration::from_secs(1) {
                line.min = line.min.max(line.latest);
            }
            let min = line.min;
            self.children[i].vtime = self.children[i].vtime.max(min);
            self.file(i);
            next = Self::up(i, parent);
        }
    }

    fn deactivate(&mut self, now: Instant, group: usize) {
        let mut next = Some(2 * group + 1);
        while let Some(i) = next.filter(|&i| self.children[i].filed.is_some()) {
            let Child { parent, vtime, .. } = self.children[i];
            self.children[i].filed = None;
            let is_alone = i % 2 == 1 && parent > 0 && !self.has_groups(parent);
            let line = self.line(i);
            line.latest = line.latest.max(vtime);
            // Where there is nothing but the leaf, there is no tree that could be empty.
            line.empty_since = if is_alone { line.empty_since } else { Some(now) };
            next = Self::up(i, parent).filter(|_| !self.is_busy(parent));
        }
    }

    fn select(&self) -> Option<usize> {
        let mut group = 0;
        loop {
            let i = CLASSES.into_iter().find_map(|class| self.first(group, class))?;
            group = i / 2;
            if i % 2 == 1 {
                return Some(group);
            }
        }
    }

    /// In turn, or out of it with a limit.
    fn pay(&mut self, group: usize, used: u32, at_most: Option<u32>) {
        let mut next = Some(2 * group + 1);
        while let Some(i) = next {
            let (min, mean) = (self.line(i).min, self.mean(i));
            let child = &mut self.children[i];
            let old = if child.filed.is_some() { child.vtime } else { child.vtime.max(min) };
            let most = at_most.map_or(u128::MAX, |most| mean + vtime(most, child.weight));
            child.vtime = (old + vtime(used, child.weight)).min(most).max(old);
            let Child { parent, vtime, filed, .. } = *child;
            match filed {
                Some(_) => self.file(i),
                None => self.line(i).latest = self.line(i).latest.max(vtime),
            }
            next = Self::up(i, parent);
        }
    }

    /// What all siblings who wait would have if each had its share.
    fn mean(&mut self, i: usize) -> u128 {
        let Child { parent, class, .. } = self.children[i];
        let waiting: Vec<Child> = self.waiting(parent, class).map(|i| self.children[i]).collect();
        let weight: u128 = waiting.iter().map(|c| c.weight).sum();
        match waiting.iter().map(|c| c.weight * c.vtime).sum::<u128>().checked_div(weight) {
            Some(mean) => mean,
            None => self.line(i).min,
        }
    }

    fn reweigh(&mut self, i: usize, weight: u32, class: Class) {
        let old = self.children[i];
        if i == 0 || (old.weight, old.class) == (u128::from(weight), class) {
            return;
        }
        let ahead = old.vtime.saturating_sub(self.line(i).min) * old.weight / u128::from(weight);
        let child = &mut self.children[i];
        (child.weight, child.class) = (weight.into(), class);
        let vtime = self.line(i).min + ahead;
        self.children[i].vtime = vtime;
        match old.filed {
            Some(_) => self.file(i),
            None => self.line(i).latest = self.line(i).latest.max(vtime),
        }
    }

    fn has_groups(&self, group: usize) -> bool {
        (1..self.lines.len()).any(|g| self.children[2 * g].parent == group)
    }

    /// A group starts level with its new siblings, and so does the leaf that had none.
    fn set_parent(&mut self, group: usize, parent: usize) {
        let alone = parent > 0 && !self.has_groups(parent);
        (self.children[2 * group].parent, self.children[2 * group].vtime) = (parent, 0);
        if alone {
            self.children[2 * parent + 1].vtime = self.line(2 * parent + 1).min;
        }
    }

    fn is_inside(&self, mut inner: usize, outer: usize) -> bool {
        while inner != outer && inner > 0 {
            inner = self.children[2 * inner].parent;
        }
        inner == outer
    }
}

/// Both, and the events for them.
struct Pair {
    tree: DiskTime,
    twin: Twin,
    now: Instant,
}

impl Pair {
    fn event(&mut self, chance: &mut Chance, odds: &[u64]) {
        let g = chance.index(self.twin.lines.len());
        let group = GroupId::from_index(g);
        let used = narrow(chance.scaled(0, 1_000_000));
        match chance.weighted(odds) {
            0 => {
                self.tree.activate(self.now, group);
                self.twin.activate(self.now, g);
            }
            1 => {
                self.tree.deactivate(self.now, group);
                self.twin.deactivate(self.now, g);
            }
            2 => {
                let Some(leaf) = self.tree.select() else { return };
                self.tree.spend(leaf, used);
                self.twin.pay(leaf.index(), used, None);
            }
            3 => {
                let at_most = narrow(chance.scaled(0, 1_000_000));
                self.tree.charge(group, used, at_most);
                self.twin.pay(g, used, Some(at_most));
            }
            4 => {
                let (weight, class) = (narrow(chance.scaled(1, 10_000)), *chance.pick(&CLASSES));
                if chance.percent(50) {
                    self.tree.set_group(group, weight, class);
                    self.twin.reweigh(2 * g, weight, class);
                } else {
                    self.tree.set_leaf(group, weight, class);
                    self.twin.reweigh(2 * g + 1, weight, class);
                }
            }
            5 => {
                let p = chance.index(self.twin.lines.len());
                if g > 0 && self.twin.children[2 * g].filed.is_none() && !self.twin.is_inside(p, g) {
                    self.tree.set_parent(group, GroupId::from_index(p));
                    self.twin.set_parent(g, p);
                }
            }
            _ => self.now = self.now + Duration::from_ms(chance.scaled(0, 3000)),
        }
    }

    fn compare(&mut self) {
        self.twin.look();
        self.tree.check();
        assert_eq!(self.tree.select().map(Id::index), self.twin.select(), "who is next");
        for g in 0..self.twin.lines.len() {
            let active = self.twin.children[2 * g + 1].filed.is_some();
            assert_eq!(self.tree.is_active(GroupId::from_index(g)), active, "group {g}");
        }
    }
}

/// With times from 0, and with times that are set back in the middle.
#[test]
fn disk_time_agrees_with_the_plain_rules() {
    seeds::each_of("disk_time_agrees_with_the_plain_rules", 50, |seed| {
        let mut chance = Chance::Seed(seed);
        let groups = *chance.pick(&[1, 2, 3, 8, 24]);
        let origin = *chance.pick(&[0, (1 << 62) - (1 << 44), (1 << 62) - (1 << 50)]);
        let tree = DiskTime::starting_at(groups, origin);
        let mut pair = Pair { tree, twin: Twin::new(groups as usize), now: Instant::EPOCH };
        let odds: Vec<u64> =
            (0..7).map(|i| if i < 3 { chance.range(1, 20) } else { chance.below(8) }).collect();
        for _ in 0..chance.range(50, 250) {
            pair.event(&mut chance, &odds);
            pair.compare();
        }
    });
}
