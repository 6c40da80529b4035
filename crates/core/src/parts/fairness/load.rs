//! Leaves with work to do, and exact fractions to measure them by.

use super::chance::{Chance, narrow};
use fairhead_core::parts::hierarchy::Hierarchy;
use fairhead_core::units::Id;
use fairhead_core::{Class, Duration, GroupId, Instant, Tag};
use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

pub(crate) const BE: Class = Class::BestEffort;
pub(crate) const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

/// A fraction in lowest terms; the denominator is positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ratio {
    pub(crate) n: i128,
    pub(crate) d: i128,
}

impl Ratio {
    pub(crate) const ONE: Self = Self { n: 1, d: 1 };

    pub(crate) fn new(n: impl Into<i128>, d: impl Into<i128>) -> Self {
        let (n, d) = (n.into(), d.into());
        let (mut a, mut b) = (n.abs(), d);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self { n: n / a.max(1), d: d / a.max(1) }
    }
}

impl From<u32> for Ratio {
    fn from(n: u32) -> Self {
        Self::new(n, 1)
    }
}

impl Add for Ratio {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self::new(self.n * o.d + o.n * self.d, self.d * o.d)
    }
}

impl Sub for Ratio {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self + Self::new(-o.n, o.d)
    }
}

impl Mul for Ratio {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Self::new(self.n * o.n, self.d * o.d)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, o: &Self) -> Option<Ordering> {
        (self.n * o.d).partial_cmp(&(o.n * self.d))
    }
}

/// What `steps` divisions can have rounded away, in sectors of a tree's service. Each lost less than one unit
/// of virtual time, of which 2^22 and a weight of one make a sector. Rounded up to whole sectors: nearly
/// always one.
pub(crate) fn rounding(steps: u32, weight: u32) -> Ratio {
    Ratio::new(((i128::from(steps) * i128::from(weight)) >> 22) + 1, 1)
}

/// A leaf and its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) group: GroupId,
    pub(crate) class: Class,
    pub(crate) weight: u32,
    /// Its requests have at most this many sectors.
    pub(crate) request_max: u32,
    /// It asks for at most this many.
    pub(crate) budget_max: u32,
    /// It always asks for the most, and its requests fill a budget exactly.
    pub(crate) greedy: bool,
    /// The next request.
    pub(crate) head: u32,
}

impl Queue {
    pub(crate) fn draw(chance: &mut Chance, group: GroupId) -> Self {
        let greedy = chance.percent(40);
        let request_max = narrow(chance.scaled(1, 64));
        let budget_max = if greedy {
            request_max * narrow::<u32>(chance.scaled(1, 32))
        } else {
            request_max + narrow::<u32>(chance.scaled(0, 512))
        };
        let head = request_max;
        Self { group, class: BE, weight: weight(chance), request_max, budget_max, greedy, head }
    }

    pub(crate) fn next_request(&mut self, chance: &mut Chance) {
        if !self.greedy {
            self.head = narrow(chance.range(1, u64::from(self.request_max)));
        }
    }

    /// At least the next request.
    pub(crate) fn next_budget(&self, chance: &mut Chance) -> u32 {
        if self.greedy {
            self.budget_max
        } else {
            narrow(chance.range(u64::from(self.head), u64::from(self.budget_max)))
        }
    }
}

/// A weight that a leaf or group may have.
pub(crate) fn weight(chance: &mut Chance) -> u32 {
    match chance.below(3) {
        0 => 10 * narrow::<u32>(chance.range(1, 8)),
        1 => *chance.pick(&[1, 100, 100, 300, 1000]),
        _ => narrow(chance.scaled(1, 1000)),
    }
}

/// A hierarchy, and what its leaves have to do.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) h: Hierarchy<Tag>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) now: Instant,
    groups: u32,
    /// Virtual times when last looked at.
    vtimes: Vec<u64>,
}

impl Load {
    pub(crate) fn new(origin: u64, groups: u32, queues: Vec<Queue>) -> Self {
        let mut h = Hierarchy::starting_at(queues.len(), groups, origin);
        for (i, q) in queues.iter().enumerate() {
            h.place(Tag::from_index(i), q.group, q.class, q.weight);
        }
        let vtimes = vec![origin; groups as usize * 3];
        Self { h, queues, now: Instant::EPOCH, groups, vtimes }
    }

    pub(crate) fn activate(&mut self, chance: &mut Chance, i: usize, credit: bool) {
        let tag = Tag::from_index(i);
        self.h.set_budget(tag, self.queues[i].next_budget(chance));
        self.h.activate(self.now, tag, credit);
        self.look();
    }

    pub(crate) fn select(&mut self) -> Option<usize> {
        let tag = self.h.select(self.now)?;
        self.look();
        Some(tag.index())
    }

    /// Whether the leaf's next request fits its budget.
    pub(crate) fn fits(&self, i: usize) -> bool {
        let tag = Tag::from_index(i);
        self.h.service(tag) + self.queues[i].head <= self.h.budget(tag)
    }

    /// Serves one request; answers its length.
    pub(crate) fn serve(&mut self, chance: &mut Chance, i: usize) -> u32 {
        let len = self.queues[i].head;
        self.h.served(Tag::from_index(i), len);
        self.look();
        self.queues[i].next_request(chance);
        len
    }

    /// Ends the leaf's stay in service; it has more to do.
    pub(crate) fn expire(&mut self, chance: &mut Chance, i: usize) {
        let tag = Tag::from_index(i);
        self.h.set_budget(tag, self.queues[i].next_budget(chance));
        self.h.expire_requeue(self.now, tag);
        self.h.reset_service();
        self.h.set_service(tag, 0);
        self.look();
    }

    /// Ends the leaf's stay in service; it has nothing to do.
    pub(crate) fn finish(&mut self, i: usize) {
        let tag = Tag::from_index(i);
        self.h.deactivate(self.now, tag, true, true);
        self.h.reset_service();
        self.h.set_service(tag, 0);
        self.look();
    }

    /// A stay in service, of a leaf that always has work: as many requests as fit, sometimes fewer.
    pub(crate) fn slot(&mut self, chance: &mut Chance, mut each: impl FnMut(usize, u32)) -> usize {
        let i = self.select().expect("there is always work");
        loop {
            let len = self.serve(chance, i);
            each(i, len);
            if !self.fits(i) || !self.queues[i].greedy && chance.percent(3) {
                break;
            }
        }
        self.expire(chance, i);
        i
    }

    /// V1: virtual time never goes back.
    fn look(&mut self) {
        for (at, before) in self.vtimes.iter_mut().enumerate() {
            let group = GroupId(narrow(at as u64 / 3));
            let vtime = self.h.vtime(group, CLASSES[at % 3]);
            assert!(vtime.wrapping_sub(*before).cast_signed() >= 0, "V of {group:?} went back");
            *before = vtime;
        }
        debug_assert!(self.groups > 0);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }
}
