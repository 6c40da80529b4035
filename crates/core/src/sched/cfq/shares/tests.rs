extern crate std;

use super::*;
use crate::elevator::Control;
use crate::request::Requests;
use crate::units::Id;
use std::vec::Vec;

const TICK: Duration = Duration::from_ms(1);

fn g(number: u32) -> GroupId {
    GroupId(number)
}

/// Groups with these weights and parents, by number; the first is the root, of which only the leaf weight
/// counts.
fn groups(of: &[(u16, u32)]) -> (Groups, Shares) {
    let count = u32::try_from(of.len()).unwrap();
    let mut groups = Groups::new(count, 0);
    let mut shares = Shares::new(count, false, TICK);
    for (i, &(weight, parent)) in of.iter().enumerate().skip(1) {
        let group = GroupId(u32::try_from(i).unwrap());
        groups.control(&Control::SetWeight(group, Weight::new(weight).unwrap()), &Requests::new(1)).unwrap();
        groups.control(&Control::SetParent(group, g(parent)), &Requests::new(1)).unwrap();
        shares.set_parent(group, g(parent));
    }
    (groups, shares)
}

fn in_4096ths(shares: &Shares, group: u32) -> u64 {
    shares.shares[g(group)].part >> 20
}

/// Charges the chosen group 100 ms, `count` times. Returns the groups in order.
fn turns(groups: &Groups, shares: &mut Shares, count: usize) -> Vec<u32> {
    let turn = |_| {
        let group = shares.choose().unwrap();
        shares.charge(groups, group, Duration::from_ms(100));
        shares.check(|g| shares.order.contains(g));
        group.0
    };
    (0..count).map(turn).collect()
}

/// Root, A 500, B 250, AA 500 and AB 1000 in A.
fn example() -> (Groups, Shares) {
    groups(&[(100, 0), (500, 0), (250, 0), (500, 1), (1000, 1)])
}

#[test]
//= docs/reference/cfq.md#66-hierarchy, docs/reference/cfq.md#9-test-vectors vector 10 type=test
fn the_example_of_the_hierarchy() {
    let (groups, mut shares) = example();
    let [b, aa, ab] = [2, 3, 4];
    for group in [b, aa, ab] {
        shares.activate(&groups, g(group));
    }
    // The first were alone when they became active, and get their new share with their next charge.
    assert_eq!([b, aa, ab].map(|i| in_4096ths(&shares, i)), [4096, 4096 * 500 / 750, 1820]);
    for group in [b, aa, ab] {
        shares.charge(&groups, g(group), TICK);
    }
    assert_eq!([b, aa, ab].map(|i| in_4096ths(&shares, i)), [1365, 910, 1820]);
    assert_eq!(shares.part_of(g(aa), Duration::from_ms(300)).as_ms(), 66, "0.2222 of 300 ms");
    shares.check(|i| i.0 >= b);
    let mut count = [0_u32; 5];
    for group in turns(&groups, &mut shares, 900) {
        count[group as usize] += 1;
    }
    assert!(
        count[2].abs_diff(300) <= 2 && count[3].abs_diff(200) <= 2 && count[4].abs_diff(400) <= 2,
        "{count:?}"
    );
}

#[test]
fn a_group_that_leaves_takes_its_weight_with_it_up_to_where_others_are_active() {
    let (groups, mut shares) = example();
    for group in [2, 3, 4] {
        shares.activate(&groups, g(group));
    }
    shares.deactivate(g(3));
    shares.check(|i| [2, 4].contains(&i.0));
    shares.charge(&groups, g(4), TICK);
    assert_eq!(in_4096ths(&shares, 4), 4096 * 500 / 750, "all of A");
    shares.deactivate(g(4));
    shares.check(|i| i.0 == 2);
    shares.charge(&groups, g(2), TICK);
    assert_eq!(in_4096ths(&shares, 2), 4096, "the whole disk");
    shares.deactivate(g(2));
    shares.check(|_| false);
    assert!(shares.is_empty() && shares.shares.iter().all(|(_, s)| (s.active, s.sum) == (0, 0)));
}

#[test]
fn own_queues_weigh_the_leaf_weight_among_the_groups_inside() {
    let (mut groups, mut shares) = groups(&[(100, 0), (300, 0), (100, 1)]);
    groups.control(&Control::SetLeafWeight(g(1), Weight::new(50).unwrap()), &Requests::new(1)).unwrap();
    groups.control(&Control::SetLeafWeight(g(0), Weight::new(900).unwrap()), &Requests::new(1)).unwrap();
    for group in [0, 1, 2] {
        shares.activate(&groups, g(group));
    }
    turns(&groups, &mut shares, 30);
    // The root's own queues: 900 of 1200. In the first group: 50 and 100 of 150.
    assert_eq!([0, 1, 2].map(|i| in_4096ths(&shares, i)), [3072, 4096 / 12, 4096 / 6]);
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 9 type=test
fn flat_two_to_one_is_a_a_b() {
    let (mut groups, _) = groups(&[(100, 0), (200, 0), (100, 1)]);
    let mut shares = Shares::new(3, true, TICK);
    for group in [1, 2] {
        shares.activate(&groups, g(group));
    }
    // 100 ms count for 50 with weight 200, for 100 with the default.
    let before = [1, 2].map(|i| shares.order.key(g(i)));
    for group in [1, 2] {
        shares.charge(&groups, g(group), Duration::from_ms(100));
    }
    let after = [1, 2].map(|i| shares.order.key(g(i)));
    assert_eq!([after[0] - before[0], after[1] - before[1]], [50_000_000, 100_000_000]);
    assert_eq!(turns(&groups, &mut shares, 9), [1, 1, 2, 1, 1, 2, 1, 1, 2]);
    assert_eq!(shares.part_of(g(1), Duration::from_ms(300)).as_ms(), 200, "levels do not count");
    // A new weight waits for the next charge.
    groups.control(&Control::SetWeight(g(2), Weight::new(400).unwrap()), &Requests::new(1)).unwrap();
    assert_eq!(shares.part_of(g(1), Duration::from_ms(300)).as_ms(), 200);
    let seen = turns(&groups, &mut shares, 60);
    assert!(seen.iter().filter(|&&i| i == 2).count().abs_diff(40) <= 2, "{seen:?}");
    shares.check(|i| i.0 > 0);
}

#[test]
//= docs/reference/cfq.md#62-group-tree, docs/reference/cfq.md#8-quirks Q7 type=test
fn a_group_that_becomes_active_goes_to_the_end_with_next_to_no_delay() {
    let (groups, mut shares) = groups(&[(100, 0), (100, 0), (100, 0)]);
    shares.activate(&groups, g(1));
    shares.charge(&groups, g(1), Duration::from_ms(500));
    shares.activate(&groups, g(2));
    let behind = shares.order.key(g(2)) - shares.order.key(g(1));
    assert!((40_000..50_000).contains(&behind), "200/4096 of a tick, not {behind} ns");
    // When all have gone, time continues from where the last chosen one was.
    shares.choose();
    let seen = shares.order.key(g(1));
    shares.deactivate(g(1));
    shares.deactivate(g(2));
    shares.activate(&groups, g(2));
    assert_eq!(shares.order.key(g(2)), seen);
}

#[test]
fn virtual_times_are_set_back_before_they_overflow() {
    let (groups, mut shares) = groups(&[(100, 0), (10_000, 0), (1, 0)]);
    for group in [1, 2] {
        shares.activate(&groups, g(group));
    }
    let mut chosen = [0_u32; 3];
    // Ten turns of the second are 10^19 ns, more than twice what virtual times may be.
    for _ in 0..100_000 {
        let group = shares.choose().unwrap();
        chosen[group.index()] += 1;
        shares.charge(&groups, group, Duration::from_secs(100_000));
        let far = shares.order.key(shares.order.last(&shares.tree).unwrap());
        assert!(far <= FAR + CHARGE_MAX, "{far}");
    }
    assert!(chosen[2].abs_diff(10) <= 3, "1 of 10001: {chosen:?}");
    shares.charge(&groups, g(2), Duration::from_ns(u64::MAX));
    shares.check(|i| i.0 > 0);
}
