//! A fixed set of leaves, all with work from the start: how far behind or ahead of its share each can be.

use super::chance::{Chance, narrow};
use super::load::{Load, Queue, Ratio, rounding, weight};
use super::seeds;
use fairhead_core::GroupId;
use fairhead_core::units::Id;

/// How far a leaf was from its share of the whole: its share of the total, less its own service.
#[derive(Clone, Copy, Debug)]
struct Account {
    most_behind: Ratio,
    most_ahead: Ratio,
    /// The largest changes of it from an earlier to a later instant.
    most_lost: Ratio,
    most_won: Ratio,
}

/// A bound while it is counted, in units of the share's denominator.
#[derive(Clone, Copy, Default)]
struct Count {
    served: u32,
    most_behind: i128,
    most_ahead: i128,
    most_lost: i128,
    most_won: i128,
}

/// Runs `slots` stays in service; the leaf's accounts, and how many requests that were.
fn run(chance: &mut Chance, load: &mut Load, shares: &[Ratio], slots: u64) -> (Vec<Account>, u32) {
    let mut counts = vec![Count::default(); shares.len()];
    let (mut total, mut requests) = (0, 0);
    for _ in 0..slots {
        load.slot(chance, |i, len| {
            (total, requests) = (total + len, requests + 1);
            counts[i].served += len;
            for (count, share) in counts.iter_mut().zip(shares) {
                let behind = share.n * i128::from(total) - share.d * i128::from(count.served);
                count.most_behind = count.most_behind.max(behind);
                count.most_ahead = count.most_ahead.max(-behind);
                count.most_lost = count.most_lost.max(behind + count.most_ahead);
                count.most_won = count.most_won.max(count.most_behind - behind);
            }
        });
    }
    load.h.check();
    let account = |(count, share): (Count, &Ratio)| Account {
        most_behind: Ratio::new(count.most_behind, share.d),
        most_ahead: Ratio::new(count.most_ahead, share.d),
        most_lost: Ratio::new(count.most_lost, share.d),
        most_won: Ratio::new(count.most_won, share.d),
    };
    (counts.into_iter().zip(shares).map(account).collect(), requests)
}

fn rest(share: Ratio) -> Ratio {
    Ratio::ONE - share
}

//= docs/reference/bfq.md#18-guarantees T1, T2, T3 type=test
#[test]
fn one_level_lag_and_lead() {
    seeds::each_of("one_level_lag_and_lead", 1_500, |seed| {
        let mut chance = Chance::Seed(seed);
        let queues: Vec<Queue> =
            (0..chance.range(2, 6)).map(|_| Queue::draw(&mut chance, GroupId::ROOT)).collect();
        let total: u32 = queues.iter().map(|q| q.weight).sum();
        let shares: Vec<Ratio> = queues.iter().map(|q| Ratio::new(q.weight, total)).collect();
        let mut load = Load::new(0, 1, queues.clone());
        for i in 0..queues.len() {
            load.activate(&mut chance, i, false);
        }
        let slots = chance.range(10, 40);
        let (accounts, requests) = run(&mut chance, &mut load, &shares, slots);
        let spare = rounding(2 * requests, total);
        let largest = Ratio::from(queues.iter().map(|q| q.request_max).max().expect("two or more"));
        for (i, account) in accounts.iter().enumerate() {
            let (share, budget) = (shares[i], Ratio::from(queues[i].budget_max));
            let others = queues.iter().map(|q| q.budget_max).max().expect("two or more");
            let wait = share * Ratio::from(others) + largest + spare;
            let own = rest(share) * budget;
            assert!(account.most_behind <= own + wait, "T1: {i} is behind by {account:?}, {queues:?}");
            assert!(account.most_ahead <= own + spare, "T2: {i} is ahead by {account:?}, {queues:?}");
            let any = own + own + wait;
            assert!(account.most_lost <= any, "T3: {i} lost {account:?}, {queues:?}");
            assert!(account.most_won <= any, "T3: {i} won {account:?}, {queues:?}");
        }
    });
}

//= docs/reference/bfq.md#84-scheduling-theorems S6 type=test
#[test]
fn two_readers_share_by_weight() {
    seeds::each_of("two_readers_share_by_weight", 150, |seed| {
        let mut chance = Chance::Seed(seed);
        let queues: Vec<Queue> = [1, *chance.pick(&[1, 2, 3, 10])]
            .map(|weight| Queue {
                weight,
                greedy: true,
                head: 8,
                request_max: 8,
                ..Queue::draw(&mut chance, GroupId::ROOT)
            })
            .map(|q| Queue { budget_max: 8 * narrow::<u32>(chance.range(1, 16)), ..q })
            .to_vec();
        let mut load = Load::new(0, 1, queues.clone());
        for i in 0..2 {
            load.activate(&mut chance, i, false);
        }
        let mut served = [0, 0];
        for _ in 0..chance.range(50, 200) {
            load.slot(&mut chance, |i, len| served[i] += i64::from(len));
        }
        let (a, b) = (i64::from(queues[0].weight), i64::from(queues[1].weight));
        // Each within the bound of T3 of its share; `largest` is that bound times both weights.
        let budget = i64::from(queues[0].budget_max.max(queues[1].budget_max));
        let largest = (a + b) * (2 * budget + 8 + 1);
        let off = a * served[1] - b * served[0];
        assert!(off.abs() <= largest, "S6: {served:?} for {a}:{b}, budgets up to {budget}");
    });
}

/// A tree of groups: each group's parent and weight, and the leaves.
#[derive(Debug)]
struct Forest {
    groups: Vec<(GroupId, u32)>,
    queues: Vec<Queue>,
}

impl Forest {
    /// Groups below groups, up to `depth` levels of them; every group has a leaf or more.
    fn draw(chance: &mut Chance, depth: u64) -> Self {
        let mut levels = vec![0];
        let mut groups = vec![(GroupId::ROOT, 1)];
        for _ in 0..chance.range(1, 2 * depth) {
            let parent = chance.index(groups.len());
            if levels[parent] < depth {
                groups.push((GroupId::from_index(parent), weight(chance)));
                levels.push(levels[parent] + 1);
            }
        }
        let mut queues = Vec::new();
        for g in 0..groups.len() {
            let leaves = chance.range(u64::from(g > 0), 3);
            queues.extend((0..leaves).map(|_| Queue::draw(chance, GroupId::from_index(g))));
        }
        Self { groups, queues }
    }

    fn load(&self) -> Load {
        let mut load = Load::new(0, narrow(self.groups.len() as u64), self.queues.clone());
        for (g, &(parent, weight)) in self.groups.iter().enumerate().skip(1) {
            load.h.set_parent(GroupId::from_index(g), parent);
            load.h.set_group_weight(GroupId::from_index(g), weight);
        }
        load
    }

    /// The weight of all children of a group.
    fn total(&self, group: GroupId) -> u32 {
        let groups = self.groups.iter().skip(1).filter(|g| g.0 == group).map(|g| g.1);
        self.queues.iter().filter(|q| q.group == group).map(|q| q.weight).chain(groups).sum()
    }

    /// The largest budget below a group: what it may ask for.
    fn budget(&self, group: GroupId) -> u32 {
        let below = (1..self.groups.len()).filter(|&g| self.groups[g].0 == group);
        let below = below.map(|g| self.budget(GroupId::from_index(g)));
        self.queues.iter().filter(|q| q.group == group).map(|q| q.budget_max).chain(below).max().unwrap_or(0)
    }

    /// A child's share of the whole, and its bounds of lag and lead: those of its own level, and its share
    /// within the group times the group's.
    fn bounds(&self, parent: GroupId, weight: u32, budget: u32) -> (Ratio, Ratio, Ratio) {
        let share = Ratio::new(weight, self.total(parent));
        let largest = self.queues.iter().map(|q| q.request_max).max().unwrap_or(0);
        let lead = rest(share) * Ratio::from(budget);
        let lag = lead + share * Ratio::from(self.budget(parent)) + Ratio::from(largest);
        if parent == GroupId::ROOT {
            return (share, lag, lead);
        }
        let (above, weight) = self.groups[parent.index()];
        let outer = self.bounds(above, weight, self.budget(parent));
        (share * outer.0, lag + share * outer.1, lead + share * outer.2)
    }
}

/// The bounds hold for every leaf of a tree of groups.
fn check_forest(chance: &mut Chance, depth: u64) {
    let forest = Forest::draw(chance, depth);
    if forest.queues.is_empty() {
        return;
    }
    let mut load = forest.load();
    for i in 0..forest.queues.len() {
        load.activate(chance, i, false);
    }
    let bounds: Vec<_> =
        forest.queues.iter().map(|q| forest.bounds(q.group, q.weight, q.budget_max)).collect();
    let shares: Vec<Ratio> = bounds.iter().map(|b| b.0).collect();
    let slots = chance.range(10, 40);
    let (accounts, requests) = run(chance, &mut load, &shares, slots);
    let heaviest = (0..forest.groups.len()).map(|g| forest.total(GroupId::from_index(g))).max();
    let spare = rounding(4 * requests, heaviest.unwrap_or(0));
    for (i, (account, (_, lag, lead))) in accounts.iter().zip(bounds).enumerate() {
        assert!(account.most_behind <= lag + spare, "T5, T7: {i} is behind by {account:?}, {forest:?}");
        assert!(account.most_ahead <= lead + spare, "T6, T7: {i} is ahead by {account:?}, {forest:?}");
    }
}

//= docs/reference/bfq.md#18-guarantees T5, T6 type=test
#[test]
fn two_levels_lag_and_lead() {
    seeds::each_of("two_levels_lag_and_lead", 800, |seed| check_forest(&mut Chance::Seed(seed), 1));
}

//= docs/reference/bfq.md#18-guarantees T7 type=test
#[test]
fn deeper_trees_lag_and_lead() {
    seeds::each_of("deeper_trees_lag_and_lead", 500, |seed| check_forest(&mut Chance::Seed(seed), 3));
}

/// The device needs one unit of time for a sector and is never idle, so time is total service.
//= docs/reference/bfq.md#18-guarantees T8 type=test
#[test]
fn a_request_is_done_in_bounded_time() {
    seeds::each_of("a_request_is_done_in_bounded_time", 400, |seed| {
        let mut chance = Chance::Seed(seed);
        let queues: Vec<Queue> =
            (0..chance.range(2, 6)).map(|_| Queue::draw(&mut chance, GroupId::ROOT)).collect();
        let weights: u32 = queues.iter().map(|q| q.weight).sum();
        let mut load = Load::new(0, 1, queues.clone());
        for i in 0..queues.len() {
            load.activate(&mut chance, i, false);
        }
        let largest = queues.iter().map(|q| q.request_max).max().expect("two or more");
        let budget = queues.iter().map(|q| q.budget_max).max().expect("two or more");
        let (mut time, mut requests) = (0, 0);
        let mut served = vec![0; queues.len()];
        for _ in 0..chance.range(10, 40) {
            load.slot(&mut chance, |i, len| {
                (time, requests) = (time + u64::from(len), requests + 1);
                served[i] += len;
                let Queue { weight, budget_max, .. } = queues[i];
                // The bound and the time, both times the weight and in units of 1 / total.
                let own = u64::from(weights - weight) * u64::from(budget_max);
                let needs = u64::from(weights) * u64::from(served[i] + largest + 1) + own;
                assert!(
                    u64::from(weight) * time <= needs + u64::from(weight) * u64::from(budget),
                    "T8: {i} has had {} sectors by {time}, {queues:?}",
                    served[i]
                );
            });
        }
        load.h.check();
    });
}
