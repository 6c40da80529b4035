//! Groups: who gets how much, what keeps a group's place, and what groups do not do to each other.

use super::*;
use crate::units::Weight;

fn four_ms(_: &Request) -> Duration {
    ms(4)
}

fn several(groups: u32) -> Limits {
    Limits { groups, ..Limits::default() }
}

fn weight(group: u32, weight: u16) -> Control {
    Control::SetWeight(GroupId(group), Weight::new(weight).unwrap())
}

fn leaf_weight(group: u32, weight: u16) -> Control {
    Control::SetLeafWeight(GroupId(group), Weight::new(weight).unwrap())
}

fn parent(group: u32, parent: u32) -> Control {
    Control::SetParent(GroupId(group), GroupId(parent))
}

fn within(rq: Request, group: u32) -> Request {
    Request { group: GroupId(group), ..rq }
}

impl Client {
    fn within(self, group: u32) -> Self {
        Self { template: within(self.template, group), ..self }
    }
}

fn lab(limits: Limits, config: Config, changes: &[Control]) -> Lab {
    let mut lab = Lab::new(limits, config, four_ms);
    for change in changes {
        lab.elevator.control(lab.now, *change).unwrap();
    }
    lab
}

impl Lab {
    fn disk_time(&self, group: u32) -> Duration {
        self.elevator.groups().disk_time(GroupId(group))
    }
}

/// Each client's part of the device's time, in 1000ths.
fn parts(got: &[Got]) -> Vec<u64> {
    let all: u64 = got.iter().map(|g| g.device.as_ns()).sum();
    got.iter().map(|g| g.device.as_ns() * 1000 / all).collect()
}

fn near(got: &[u64], want: &[u64], slack: u64) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(a, b)| a.abs_diff(*b) <= slack)
}

const ERAS: [Era; 4] = [Era::Linux2_6_33, Era::Linux2_6_34, Era::Linux3_10, Era::Linux4_3];

#[test]
fn two_readers_share_the_disk_as_their_groups_weigh() {
    for era in ERAS {
        for (weights, want) in [([100, 100], [500, 500]), ([200, 100], [667, 333]), ([1000, 100], [909, 91])]
        {
            let changes = [weight(1, weights[0]), weight(2, weights[1])];
            let mut lab = lab(several(3), old(era), &changes);
            let clients = [Client::reader(1, 64).within(1), Client::reader(2, 64).within(2)];
            let got = lab.run(&clients, Duration::from_secs(10));
            assert!(near(&parts(&got), &want, 20), "{era:?} {weights:?}: {:?}", parts(&got));
            let [a, b] = [1, 2].map(|g| lab.disk_time(g).as_us());
            let charged = a * 1000 / (a + b);
            assert!(charged.abs_diff(want[0]) <= 15, "{era:?} {weights:?}: charged {charged}");
            assert!(a + b > 9_000_000, "all but the first request of each slice: {a} + {b} us");
        }
    }
}

#[test]
fn how_many_readers_a_group_has_does_not_matter() {
    for era in ERAS {
        let mut clients: Vec<Client> = (1..=4).map(|t| Client::reader(t, 64).within(1)).collect();
        clients.push(Client::reader(5, 64).within(2));
        let mut lab = lab(several(3), old(era), &[]);
        let got = lab.run(&clients, Duration::from_secs(10));
        let got = parts(&got);
        // What a slice overruns is not charged, and theirs are shorter.
        assert!(near(&got, &[125, 125, 125, 125, 500], 35), "{era:?}: {got:?}");
    }
}

#[test]
fn inside_a_group_its_part_is_divided_further() {
    // Root: A 200 (A1 100, A2 300), B 100.
    let changes = [parent(3, 1), parent(4, 1), weight(1, 200), weight(2, 100), weight(4, 300)];
    let mut lab = lab(several(5), Config::default(), &changes);
    let [a1, a2, b] = [(1, 3), (2, 4), (3, 2)].map(|(task, group)| Client::reader(task, 64).within(group));
    let got = lab.run(&[a1, a2, b], Duration::from_secs(15));
    assert!(near(&parts(&got), &[167, 500, 333], 15), "{:?}", parts(&got));
    let got = lab.run(&[a1, b], Duration::from_secs(10));
    assert!(near(&parts(&got), &[667, 333], 15), "what A2 leaves is A's: {:?}", parts(&got));
    // Before 3.9 there is one level.
    let mut lab = super::groups::lab(several(5), Config::linux_2_6_34(), &changes);
    let got = lab.run(&[a1, a2, b], Duration::from_secs(15));
    assert!(near(&parts(&got), &[200, 600, 200], 15), "{:?}", parts(&got));
}

#[test]
fn the_tasks_of_the_root_and_of_a_group_weigh_their_leaf_weight() {
    let clients = [(1, 0), (2, 1), (3, 2)].map(|(task, group)| Client::reader(task, 64).within(group));
    // Root's own 300, A 100 (its own 50, the group inside 150).
    let changes = [leaf_weight(0, 300), parent(2, 1), leaf_weight(1, 50), weight(2, 150)];
    // Slices of one length, so that what is not charged is alike.
    let config = Config { low_latency: false, ..Config::default() };
    let mut lab = lab(several(3), config, &changes);
    let got = lab.run(&clients, Duration::from_secs(20));
    assert!(near(&parts(&got), &[750, 63, 187], 15), "{:?}", parts(&got));
}

/// A random reader that thinks for 2 ms, and one that always has requests, at a disk that is never idle for a
/// queue.
fn blinking(group_idle: Duration) -> (Vec<u64>, u64) {
    let config = Config { slice_idle: Duration::ZERO, group_idle, ..Config::default() };
    let mut lab = lab(several(3), config, &[weight(1, 200)]);
    let blinks = Client { think: ms(2), ..Client::random_reader(1, 64).within(1) };
    let busy = Client { depth: 4, ..Client::reader(2, 64).within(2) };
    let got = lab.run(&[blinks, busy], Duration::from_secs(10));
    (parts(&got), lab.elevator.stats(GroupId(1)).disk_dequeue)
}

#[test]
fn a_group_that_blinks_keeps_its_share_if_it_is_waited_for() {
    let (waited, dequeued) = blinking(ms(8));
    // Two of three requests are its own; 5 of 100 more are let through while it thinks.
    assert!(near(&waited, &[667, 333], 50), "{waited:?}");
    assert!(dequeued < 10, "{dequeued}");
    let (not, dequeued) = blinking(Duration::ZERO);
    assert!(not[0] < 60, "one request for each slice of the other: {not:?}");
    assert!(dequeued > 80, "lost its place each time: {dequeued}");
}

#[test]
//= docs/reference/cfq.md#63-charging type=test
fn without_slice_idle_groups_share_requests_and_not_time() {
    // 1 ms for the small ones, 4 ms for the large ones.
    let by_size: fn(&Request) -> Duration = |rq| if rq.len.0 > 64 { ms(4) } else { ms(1) };
    let clients = [
        Client { depth: 16, ..Client::reader(1, 64).within(1) },
        Client { depth: 16, ..Client::reader(2, 256).within(2) },
    ];
    for (slice_idle, want) in [(Duration::ZERO, [200, 800]), (ms(8), [500, 500])] {
        let config = Config { slice_idle, ..Config::default() };
        let mut lab = Lab::new(Limits { queue_depth: 8, ..several(3) }, config, by_size);
        let got = lab.run(&clients, Duration::from_secs(10));
        assert!(near(&parts(&got), &want, 30), "{slice_idle:?}: {:?}", parts(&got));
    }
}

#[test]
fn new_weights_count_within_a_second() {
    for era in ERAS {
        let mut lab = lab(several(3), old(era), &[]);
        let clients = [Client::reader(1, 64).within(1), Client::reader(2, 64).within(2)];
        lab.run(&clients, Duration::from_secs(3));
        lab.elevator.control(lab.now, weight(1, 400)).unwrap();
        lab.run(&clients, Duration::from_secs(1));
        let got = lab.run(&clients, Duration::from_secs(10));
        assert!(near(&parts(&got), &[800, 200], 20), "{era:?}: {:?}", parts(&got));
    }
}

#[test]
//= docs/reference/cfq.md#63-charging type=test
fn a_group_of_async_requests_alone_is_charged_its_whole_slice() {
    let charged = |era| {
        let mut rig = Bare::with(several(2), old(era));
        for i in 0..20 {
            rig.insert(within(write(1, i * 1000), 1));
        }
        rig.insert(read(2, 0));
        for _ in 0..40 {
            match rig.dispatch() {
                Dispatch::Issue(tag) => {
                    rig.pass(ms(1));
                    rig.complete(tag);
                }
                _ => break,
            }
        }
        let times = [0, 1].map(|g| rig.books.groups.disk_time(GroupId(g)));
        (times, rig.cfq.trees.shares.time_of(GroupId(1)))
    };
    // A quota of 16 requests in a slice of 40 ms, from the first completion on.
    let (times, charge) = charged(Era::Linux4_3);
    assert!(times[1] >= ms(14) && times[1] < ms(20), "what is shown is the time: {times:?}");
    assert_eq!(charge, 40_000_000, "what counts is the slice");
    let (times, _) = charged(Era::Linux3_10);
    assert!(times[1].is_zero() && times[0] >= ms(14), "they are the root's: {times:?}");
}

/// A queue of task 1 in group 1 is active, and idles if so asked.
fn active_in_group_1(config: Config, idles: bool) -> Bare {
    let mut rig = Bare::with(several(3), config);
    let first = rig.insert(within(read(1, 0), 1));
    assert_eq!(rig.issue(), (first, 1));
    if idles {
        rig.pass(ms(1));
        rig.complete(first);
        assert!(rig.cfq.next_timer().is_some());
    }
    rig
}

#[test]
//= docs/reference/cfq.md#67-isolation type=test
fn a_queue_of_another_group_preempts_only_by_kind_and_class() {
    use super::super::rules::preempt::Ground;
    let rule = |rig: &mut Bare, rq: Request| {
        let tag = rig.insert(rq);
        let active = rig.cfq.turn.active.expect("no queue has preempted");
        rig.cfq.ground(rig.now, rig.queue_of(tag), active, &rq)
    };
    for era in ERAS {
        let mut rig = active_in_group_1(old(era), true);
        // In its own group these would do: close by, or for metadata.
        assert_eq!(rule(&mut rig, within(read(2, 8), 2)), Ground::OtherGroup, "{era:?}");
        assert_eq!(rule(&mut rig, Request { meta: true, ..within(read(3, 1 << 30), 2) }), Ground::OtherGroup);
        let rt = within(with_prio(read(4, 1 << 30), Class::RealTime, 4), 2);
        assert_eq!(rule(&mut rig, rt), Ground::OtherGroup, "a real-time queue is so inside its group");
        assert!(rig.cfq.turn.active.is_some(), "no queue has preempted");
        let mut rig = Bare::with(several(3), old(era));
        rig.insert(within(write(1, 0), 1));
        rig.insert(within(write(1, 1000), 1));
        rig.issue();
        let tag = rig.insert(within(read(2, 0), 2));
        assert!(rig.cfq.turn.active.is_none(), "{era:?}: sync preempts async in any group");
        assert_eq!(rig.queue(QueueId(0)).home, GroupId::ROOT);
        assert_eq!(rig.cfq.queues[rig.queue_of(tag)].group, GroupId(2));
    }
}

#[test]
//= docs/reference/cfq.md#67-isolation type=test
fn queues_of_different_groups_do_not_cooperate() {
    for (group, cooperates) in [(1, true), (2, false)] {
        let mut rig = active_in_group_1(Config::default(), false);
        // The next request of the stream comes from another task.
        rig.insert(within(read(2, 8), group));
        let id = rig.cfq.turn.active.expect("active");
        assert_eq!(rig.cfq.close_cooperator(id).is_some(), cooperates, "from group {group}");
    }
}

#[test]
//= docs/reference/cfq.md#67-isolation type=test
fn queues_of_different_groups_do_not_cooperate_in_the_root_either() {
    for (era, group) in [Era::Linux2_6_33, Era::Linux2_6_34].into_iter().flat_map(|e| [(e, 1), (e, 2)]) {
        let mut rig = Bare::with(several(3), old(era));
        // Both read one stream, and think for too long to be waited for: without isolation they are filed in
        // the root.
        for i in 0..5 {
            for (task, of) in [(1, 1), (2, group)] {
                rig.serve(within(read(task, i * 16 + u64::from(task) * 8), of));
                rig.pass(ms(20));
                rig.timer();
            }
        }
        let tags = [(1, 1), (2, group)]
            .map(|(task, of)| rig.insert(within(read(task, 80 + u64::from(task) * 8), of)));
        let ids = tags.map(|tag| rig.queue_of(tag));
        let filed = ids.map(|id| (rig.queue(id).group, rig.queue(id).home.0));
        assert_eq!(filed, [(GroupId::ROOT, 1), (GroupId::ROOT, group)]);
        assert_eq!(rig.issue().0, tags[0]);
        assert_eq!(rig.cfq.close_cooperator(ids[0]).is_some(), group == 1, "{era:?}, from group {group}");
        rig.pass(ms(1));
        rig.complete(tags[0]);
        assert_eq!(rig.issue().0, tags[1]);
        // `check` finds a request that is in a queue of another group.
        let next = rig.insert(within(read(1, 104), 1));
        assert_eq!(rig.queue_of(next) == ids[1], group == 1, "{era:?}, from group {group}");
    }
}

#[test]
fn a_task_that_moves_leaves_its_requests_and_has_a_new_queue() {
    let mut rig = Bare::with(several(3), Config::default());
    let before = rig.insert(within(read(1, 0), 1));
    let old = rig.queue_of(before);
    assert_eq!(rig.sync_queue_of(1), Some(old));
    let after = rig.insert(within(read(1, 8), 2));
    let new = rig.queue_of(after);
    assert_ne!(old, new);
    assert_eq!((rig.queue(old).home, rig.queue(new).home), (GroupId(1), GroupId(2)));
    assert_eq!((rig.queue(old).process_refs, rig.queue(old).queued()), (0, 1));
    assert!(!rig.cfq.may_merge(&rig.requests, before, &within(read(1, 8), 1)), "its queue is another now");
    for (tag, wait) in [(before, ms(0)), (after, ms(10))] {
        rig.pass(wait);
        rig.timer();
        assert_eq!(rig.dispatch(), Dispatch::Issue(tag));
        rig.complete(tag);
    }
    assert_eq!(rig.queue(old).generation, 1, "back in the pool");
    // And back again, with nothing queued: a queue of the first group, not the one it had.
    let back = rig.insert(within(read(1, 16), 1));
    let id = rig.queue_of(back);
    assert_eq!((rig.queue(id).home, rig.queue(id).process_refs), (GroupId(1), 1));
}

#[test]
fn a_task_can_leave_a_queue_behind_with_each_request_if_there_are_groups() {
    for (groups, tags, own) in [(1, 256, 20), (2, 256, 266), (1, 4, 14), (2, 4, 14)] {
        let limits = Limits { groups, tasks: 10, tags, ..Limits::default() };
        let rig = Bare::with(limits, Config::default());
        assert_eq!(rig.cfq.queues.pooled(), own, "{groups} groups, {tags} tags");
    }
}

#[test]
fn a_group_goes_while_its_requests_are_in_flight_and_its_number_comes_back() {
    for era in ERAS {
        let mut rig = Bare::with(several(3), old(era));
        rig.control(weight(1, 1000));
        let tags = [0, 8, 1 << 20].map(|start| rig.insert(within(read(1, start), 1)));
        let other = rig.insert(within(read(2, 1 << 22), 2));
        rig.issue();
        rig.control(Control::GroupExit(GroupId(1)));
        // The task's next request is the parent's, and has another queue.
        let moved = rig.insert(within(read(1, 1 << 21), 0));
        assert_eq!(rig.cfq.queues[rig.queue_of(moved)].home, GroupId::ROOT);
        let mut left: Vec<Tag> = [other, moved].into_iter().chain(tags).collect();
        rig.pass(ms(1));
        rig.complete(tags[0]);
        left.retain(|&t| t != tags[0]);
        while !left.is_empty() {
            if let Dispatch::Issue(tag) = rig.dispatch() {
                rig.pass(ms(1));
                rig.complete(tag);
                left.retain(|&t| t != tag);
            } else {
                rig.pass(ms(10));
                rig.timer();
            }
        }
        rig.control(parent(1, 2));
        assert_eq!(rig.books.groups.weight(GroupId(1)), Weight::DEFAULT);
        let new = rig.insert(within(read(1, 0), 1));
        assert_eq!(rig.cfq.queues[rig.queue_of(new)].home, GroupId(1));
    }
}

#[test]
fn a_group_that_is_waited_for_can_be_put_elsewhere() {
    let mut rig = active_in_group_1(Config::default(), true);
    rig.insert(within(read(2, 1 << 30), 2));
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::SliceIdle));
    rig.control(parent(1, 0));
    assert_eq!((rig.cfq.turn.active, rig.cfq.next_timer()), (None, None));
    assert_eq!(rig.issue().1, 2);
}

#[test]
//= docs/reference/cfq.md#67-isolation type=test
fn without_isolation_seeky_queues_are_the_roots_in_the_first_kernels() {
    for (config, isolated) in [
        (Config::linux_2_6_34(), false),
        (Config { group_isolation: true, ..Config::linux_2_6_34() }, true),
        (Config::default(), true),
    ] {
        let era = config.era;
        let mut rig = Bare::with(several(2), config);
        let first = rig.insert(within(read(1, 0), 1));
        let id = rig.queue_of(first);
        assert_eq!(rig.queue(id).group, GroupId(1), "nothing is known against it yet");
        for i in 1..40 {
            let tag = rig.issue().0;
            rig.pass(ms(10));
            rig.complete(tag);
            rig.insert(within(read(1, i % 2 * (1 << 30) + i), 1));
        }
        let held = GroupId(u32::from(isolated));
        assert_eq!((rig.queue(id).group, rig.queue(id).home), (held, GroupId(1)), "{era:?}");
        // A stream again: in its own group when it is filed next.
        for i in 1..60 {
            let tag = rig.issue().0;
            rig.pass(ms(10));
            rig.complete(tag);
            rig.insert(within(read(1, (1 << 31) + i * 8), 1));
        }
        assert_eq!(rig.queue(id).group, GroupId(1), "{era:?}");
    }
}

#[test]
fn what_is_counted_for_users() {
    let mut lab = lab(several(3), Config::default(), &[weight(1, 300)]);
    let clients = [Client::reader(1, 64).within(1), Client::reader(2, 64).within(2)];
    lab.run(&clients, Duration::from_secs(10));
    let [a, b] = [1, 2].map(|g| lab.elevator.stats(GroupId(g)));
    let share = a.disk_time.as_ns() * 100 / (a.disk_time + b.disk_time).as_ns();
    assert!((73..=77).contains(&share), "{share} %");
    let all = a.disk_time + b.disk_time + a.unaccounted_time + b.unaccounted_time;
    assert!(all.as_ms().abs_diff(10_000) < 150, "all the time is charged: {all:?}");
    assert!(a.unaccounted_time.as_ms() > 50, "the first request of each slice: {:?}", a.unaccounted_time);
    // It thinks for 0.1 ms after each request, and is waited for.
    let (idle, thought) = (a.idle_time.as_us(), a.io_serviced.total() * 100);
    assert!(idle.abs_diff(thought) < thought / 10, "{idle} us, not {thought}");
    assert!(a.group_wait_time.as_ms().abs_diff(2_500) < 200, "while the other had the disk: {a:?}");
    assert!(b.group_wait_time.as_ms().abs_diff(7_500) < 300, "{b:?}");
    assert!(a.disk_dequeue <= 1 && b.disk_dequeue <= 1, "they were always there");
}

#[test]
fn a_group_that_comes_between_does_not_give_anybody_a_second_turn() {
    let mut clients: Vec<Client> = (1..=4).map(|t| Client::reader(t, 64).within(1)).collect();
    clients.push(Client { think: ms(100), ..Client::random_reader(5, 8).within(2) });
    let mut lab = lab(several(3), Config::default(), &[]);
    let got = lab.run(&clients, Duration::from_secs(10));
    let got: Vec<u64> = got.iter().map(|g| g.requests).collect();
    let (least, most) = (got[..4].iter().min().unwrap(), got[..4].iter().max().unwrap());
    assert!(most - least < most / 10, "{got:?}");
}

/// What a group's own tasks are due of the whole disk, in 1000ths, if the groups `busy` have tasks.
fn ideal(lab: &Lab, busy: &[GroupId], group: GroupId) -> u64 {
    let groups = lab.elevator.groups();
    let is_active = |g: GroupId| busy.iter().any(|&b| groups.is_inside(b, g));
    let children = |of: GroupId| {
        let all = (1..groups.count()).map(GroupId::from_index);
        all.filter(move |&g| groups.parent(g) == Some(of) && is_active(g))
    };
    let sum = |of: GroupId| {
        let own = if busy.contains(&of) { groups.leaf_weight(of).get() } else { 0 };
        u64::from(own + children(of).map(|g| groups.weight(g).get()).sum::<u32>())
    };
    let mut part = 1_000_000_000 * u64::from(groups.leaf_weight(group).get()) / sum(group);
    let mut at = group;
    while let Some(up) = groups.parent(at) {
        part = part * u64::from(groups.weight(at).get()) / sum(up);
        at = up;
    }
    part / 1_000_000
}

#[test]
fn random_trees_of_groups_share_as_a_fluid_would() {
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |n: u64| {
        //= G. Marsaglia, Xorshift RNGs (2003), section 4
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    for count in [4, 8, 16, 32, 64] {
        let mut lab =
            lab(several(count), Config { low_latency: false, slice_sync: ms(20), ..Config::default() }, &[]);
        let mut depth = std::vec![0_u32; count as usize];
        for g in 1..count {
            let up = u32::try_from(below(u64::from(g))).unwrap();
            if depth[up as usize] < 3 {
                depth[g as usize] = depth[up as usize] + 1;
                lab.elevator.control(lab.now, parent(g, up)).unwrap();
            }
            let mut drawn = || u16::try_from(50 + below(950)).unwrap();
            lab.elevator.control(lab.now, weight(g, drawn())).unwrap();
            lab.elevator.control(lab.now, leaf_weight(g, drawn())).unwrap();
        }
        let busy: Vec<GroupId> = (0..count).filter(|_| below(3) > 0).map(GroupId).collect();
        let clients: Vec<Client> =
            busy.iter().zip(1..).map(|(g, task)| Client::reader(task, 64).within(g.0)).collect();
        lab.run(&clients, Duration::from_secs(20));
        let charged: Vec<u64> = busy.iter().map(|g| lab.disk_time(g.0).as_us()).collect();
        let all: u64 = charged.iter().sum();
        for (&g, time) in busy.iter().zip(charged) {
            let (got, want) = (time * 1000 / all, ideal(&lab, &busy, g));
            assert!(got.abs_diff(want) <= 10, "{count} groups, {g:?}: {got} of 1000, not {want}");
        }
    }
}
