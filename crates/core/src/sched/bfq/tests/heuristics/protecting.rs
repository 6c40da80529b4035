//! Disks that pass over the requests of raised queues.

use super::*;

const FAR: u64 = 1 << 30;

/// A raised reader's request is at the device, as are seven of a reader that is not raised.
fn eight_at_the_device(config: Config) -> (Rig, Tag, VecDeque<Tag>) {
    let mut rig = Rig::new(config);
    rig.pass(ms(1));
    let far = rig.insert(read(1, FAR));
    assert_eq!(rig.issue(), (far, 1));
    let near: VecDeque<Tag> = (0..7).map(|i| send_near(&mut rig, i)).collect();
    (rig, far, near)
}

/// Past the scheduler's choice: this is about what the device does with what it has.
fn send_near(rig: &mut Rig, i: u64) -> Tag {
    let tag = rig.insert(read(2, i * 1000));
    let q = rig.of(2);
    rig.raise(q, 1);
    rig.cx(|bfq, cx| bfq.issue(cx, q, tag));
    rig.requests.issue(tag, rig.now);
    tag
}

/// Near ones are done and sent, first come, first served, `n` times.
fn pass_over(rig: &mut Rig, near: &mut VecDeque<Tag>, n: u64) {
    for i in 0..n {
        rig.pass(Duration::from_us(100));
        let done = near.pop_front().unwrap();
        rig.complete(done);
        near.push_back(send_near(rig, i));
    }
}

#[test]
fn eight_rounds_without_it_stop_everything_until_it_is_done() {
    let (mut rig, far, mut near) = eight_at_the_device(Config::live());
    // All of them were sent later.
    pass_over(&mut rig, &mut near, 63);
    assert!(!rig.bfq.rules.protect.holds_all() && !rig.bfq.rules.protect.is_greedy());
    pass_over(&mut rig, &mut near, 1);
    assert!(rig.bfq.rules.protect.holds_all() && rig.bfq.rules.protect.is_greedy());
    assert!(rig.notes().contains(&Reason::Protected));
    rig.insert(read(3, 0));
    rig.insert(read(1, FAR + 8));
    for done in near {
        assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth));
        rig.complete(done);
    }
    assert_eq!(rig.dispatch(), Dispatch::Hold(Hold::Depth), "also when nothing else is left");
    rig.complete(far);
    assert!(!rig.bfq.rules.protect.holds_all() && matches!(rig.dispatch(), Dispatch::Issue(_)));
}

#[test]
fn one_round_is_enough_for_a_minute_once_the_disk_is_known() {
    let (mut rig, far, mut near) = eight_at_the_device(Config::live());
    pass_over(&mut rig, &mut near, 64);
    rig.complete(far);
    for (rounds, wait) in [(1, ms(0)), (8, ms(60_000))] {
        rig.pass(wait);
        let far = rig.insert(read(1, FAR));
        let q = rig.of(1);
        rig.raise(q, 30);
        rig.cx(|bfq, cx| bfq.issue(cx, q, far));
        rig.requests.issue(far, rig.now);
        // The first seven were sent before it.
        pass_over(&mut rig, &mut near, 7 + 8 * rounds - 1);
        assert!(!rig.bfq.rules.protect.holds_all(), "{rounds}");
        pass_over(&mut rig, &mut near, 1);
        assert!(rig.bfq.rules.protect.holds_all(), "{rounds}");
        rig.complete(far);
    }
}

#[test]
fn requests_sent_earlier_and_writes_pass_nothing_over() {
    let mut rig = Rig::new(Config::live());
    let mut near: VecDeque<Tag> = (0..100).map(|i| send_near(&mut rig, i)).collect();
    let far = rig.insert(read(1, FAR));
    let q = rig.of(1);
    rig.cx(|bfq, cx| bfq.issue(cx, q, far));
    rig.requests.issue(far, rig.now);
    near.drain(..).for_each(|tag| rig.complete(tag));
    for i in 0..200 {
        let tag = rig.insert(write(2, i * 1000));
        let q = rig.asyn(2);
        rig.cx(|bfq, cx| bfq.issue(cx, q, tag));
        rig.requests.issue(tag, rig.now);
        rig.complete(tag);
    }
    assert!(!rig.bfq.rules.protect.is_greedy());
}

#[test]
fn off_by_default_and_on_flash() {
    for config in [Config::default(), Config { ncq_protection: false, ..Config::live() }] {
        let (mut rig, _, mut near) = eight_at_the_device(config);
        pass_over(&mut rig, &mut near, 100);
        assert!(!rig.bfq.rules.protect.holds_all() && !rig.bfq.rules.protect.is_greedy());
    }
    let mut flash = Rig::flash(Config::live());
    let far = flash.insert(read(1, FAR));
    assert_eq!(flash.issue(), (far, 1));
    let mut near = (0..7).map(|i| send_near(&mut flash, i)).collect();
    pass_over(&mut flash, &mut near, 100);
    assert!(!flash.bfq.rules.protect.is_greedy());
}

#[test]
fn nothing_stops_for_a_queue_that_is_not_raised() {
    let (mut rig, far, mut near) = eight_at_the_device(Config { low_latency: false, ..Config::live() });
    pass_over(&mut rig, &mut near, 100);
    assert!(rig.bfq.rules.protect.is_greedy() && !rig.bfq.rules.protect.holds_all());
    rig.complete(far);
}

#[test]
fn a_device_that_serves_the_last_first_ends_every_hold_and_loses_nothing() {
    let mut holds = 0;
    for seed in 0..4_u64 {
        let mut rig = Rig { check_every: 32, ..Rig::new(Config::live()) };
        let (mut at_device, mut state, mut done) = (Vec::new(), seed, 0);
        while done < 1000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = state >> 33;
            while rig.requests.queued() < 20 {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15).rotate_left(7);
                let task = u32::try_from(state % 6).unwrap();
                rig.insert(if task == 0 { write(0, state % FAR) } else { read(task, state % FAR) });
            }
            while at_device.len() < 8 {
                match rig.dispatch() {
                    Dispatch::Issue(tag) => at_device.push(tag),
                    _ => break,
                }
            }
            holds += u32::from(rig.bfq.rules.protect.holds_all());
            match at_device.pop() {
                Some(tag) => rig.complete(tag),
                None => rig.pass(ms(1)),
            }
            done += 1;
            rig.pass(Duration::from_us(draw % 5000));
        }
        at_device.into_iter().rev().for_each(|tag| rig.complete(tag));
        rig.drain();
    }
    assert!(holds > 0, "the test tests nothing");
}
