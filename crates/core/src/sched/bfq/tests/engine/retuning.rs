//! Tunables that change in operation.

use super::*;

fn retune(rig: &mut Rig, config: Config) -> bool {
    let done = rig.cx(|bfq, cx| bfq.reconfigure(cx, config)).unwrap();
    rig.check();
    done
}

#[test]
//= docs/reference/bfq.md#713-tunables-and-shutdown type=test
//= docs/reference/bfq.md#84-scheduling-theorems S9 type=test
fn with_low_latency_off_no_queue_is_raised_any_more() {
    let mut rig = Rig::new(Config::live());
    rig.insert(read(1, 1000));
    rig.insert(read(1, 1008));
    let (tag, _) = rig.issue();
    assert_eq!((rig.factor(1), rig.weight(1)), (30, 1200));
    assert!(retune(&mut rig, Config { low_latency: false, ..Config::live() }));
    assert_eq!((rig.factor(1), rig.bfq.wr_busy), (1, 0));
    rig.issue();
    assert_eq!(rig.weight(1), 40, "with its next dispatch");
    rig.complete(tag);
    rig.drain_issued();
}

#[test]
//= docs/reference/bfq.md#43-strict-guarantees, docs/reference/bfq.md#713-tunables-and-shutdown type=test
fn strict_guarantees_bring_idling_back() {
    let off = Config { slice_idle: Duration::ZERO, ..plain() };
    let mut rig = Rig::new(off);
    rig.serve(read(1, 1000));
    assert_eq!(rig.bfq.next_timer(), None);
    assert!(retune(&mut rig, Config { strict_guarantees: true, ..off }));
    rig.serve(read(1, 1008));
    assert_eq!(rig.bfq.next_timer().map(|(at, _)| at.since(rig.now)), Some(ms(8)));
}

#[test]
fn a_new_timeout_changes_the_largest_budget() {
    let mut rig = Rig::new(plain());
    assert!(retune(&mut rig, Config { timeout_sync: ms(250), ..plain() }));
    assert_eq!(rig.bfq.bmax_now, 2 * 17_801);
    assert!(retune(&mut rig, Config { max_budget: Sectors(7), ..plain() }));
    assert_eq!(rig.bfq.bmax_now, 7);
}

#[test]
fn what_it_was_sized_for_stays() {
    let mut rig = two_readers(plain());
    for config in [
        Config { hierarchy: false, ..plain() },
        Config { actuators: false, ..plain() },
        Config { repairs: false, ..plain() },
        Config { tick: ms(4), ..plain() },
    ] {
        assert!(!retune(&mut rig, config));
        assert_eq!(rig.bfq.config, plain());
    }
    let bad = Config { wr_coeff: 0, ..plain() };
    assert!(rig.cx(|bfq, cx| bfq.reconfigure(cx, bad)).is_err());
}
