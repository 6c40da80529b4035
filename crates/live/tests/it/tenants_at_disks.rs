//! Tenants beside each other at modelled disks, in virtual time: how long they wait, and how much each gets.

use crate::chance::Chance;
use crate::modelled::{Ask, Got, Tenant, world};
use fairhead_core::Limits;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::units::Duration;
use fairhead_live::Op;

/// Asks for a block of the first 800 KiB: to read it, to write it (half of that with FUA), or to change a
/// part of it.
fn of_all_kinds(_: u64, chance: &mut Chance) -> Ask {
    let read = Ask::read(chance.below(200) * 4096, 4096);
    match chance.below(3) {
        0 => read,
        1 => Ask { op: Op::Write, fua: chance.below(2) == 0, ..read },
        _ => Ask { also_writes: true, ..read },
    }
}

fn thinkers(weights: [u16; 6]) -> Vec<Tenant> {
    let tenant = |weight| Tenant {
        weight,
        depth: 1,
        thinks: Duration::from_ms(4),
        reconnects: 30,
        tasks: 1,
        asks: of_all_kinds,
    };
    weights.map(tenant).to_vec()
}

/// What is changed in the live engine's settings.
type Set = fn(&mut Limits, &mut AnyConfig);

fn live(_: &mut Limits, _: &mut AnyConfig) {}

fn no_idling(limits: &mut Limits, config: &mut AnyConfig) {
    (limits.idle_for_quick_only, limits.spares_groups) = (false, false);
    config.set("slice_idle", 0).expect("in range");
}

fn as_before(limits: &mut Limits, _: &mut AnyConfig) {
    (limits.spares_groups, limits.turns_within) = (false, Duration::ZERO);
}

/// The bytes of a small file, and of a large one.
const SMALL: u64 = 32 << 20;
const LARGE: u64 = 32 << 30;

const WEIGHTS: [u16; 6] = [50, 100, 190, 250, 350, 430];
const EQUAL: [u16; 6] = [100; 6];

/// Reads 4 KiB anywhere in a large file.
fn anywhere(_: u64, chance: &mut Chance) -> Ask {
    Ask::read(chance.below(LARGE >> 12) << 12, 4096)
}

/// Reads 64 KiB where the request before ended.
fn in_order(i: u64, _: &mut Chance) -> Ask {
    Ask::read((i << 16) % LARGE, 64 << 10)
}

const MS: Duration = Duration::from_ms(1);

/// A tenant that reads anywhere, one request after the other.
const ONE: Tenant =
    Tenant { weight: 100, depth: 1, thinks: Duration::ZERO, reconnects: 0, tasks: 1, asks: anywhere };

/// The think time of a program that only reads.
const AT_ONCE: Duration = Duration::from_us(50);

fn sum(got: &[Got]) -> u64 {
    got.iter().map(|g| g.done).sum()
}

fn longest(got: &[Got]) -> Duration {
    got.iter().map(Got::longest).max().unwrap_or_default()
}

fn show(name: &str, got: &[Got]) {
    let each: Vec<_> = got.iter().map(|g| (g.done, g.p99().as_ms(), g.longest().as_ms())).collect();
    println!("{name}: {} requests, the longest wait {}, each {each:?}", sum(got), longest(got));
}

/// Each tenant had slots of 125 ms and more, in which the disk was idle most of the time: waits of seconds,
/// and a third of the requests.
#[test]
fn tenants_that_think_and_reconnect_wait_for_each_other_less_than_a_quarter_of_a_second() {
    for weights in [WEIGHTS, EQUAL] {
        let run = |set| world("nas2020", SMALL, &thinkers(weights), set).run(0, 22);
        let (before, now, none) = (run(as_before as Set), run(live), run(no_idling));
        show(&format!("nas2020 {weights:?} as in the lab"), &before);
        show("live", &now);
        show("slice_idle=0", &none);
        assert!(longest(&before) > MS * 500, "there is no wait to bound");
        assert!(longest(&now) <= MS * 250);
        assert!(sum(&now) * 10 >= sum(&none) * 9);
    }
}

#[test]
fn disks_without_a_head_serve_tenants_that_think_as_before() {
    for (model, weights) in [("sata_ssd", WEIGHTS), ("microsd_a1", WEIGHTS), ("microsd_a1", EQUAL)] {
        let run = |set| world(model, SMALL, &thinkers(weights), set).run(0, 10);
        let (before, now) = (run(as_before as Set), run(live));
        show(&format!("{model} {weights:?} as before"), &before);
        show("live", &now);
        assert_eq!((sum(&now), longest(&now)), (sum(&before), longest(&before)), "{model}");
    }
}

#[test]
fn weights_are_kept_where_all_want_more() {
    for depth in [1, 2, 4, 16] {
        let tenants = WEIGHTS.map(|weight| Tenant { weight, depth, ..ONE });
        let got = world("nas2020", LARGE, &tenants, live).run(30, 60);
        show(&format!("{depth} requests at a time"), &got);
        let (all, weights) = (sum(&got), WEIGHTS.iter().map(|w| u64::from(*w)).sum::<u64>());
        for (got, weight) in got.iter().zip(WEIGHTS) {
            let right = all * u64::from(weight) / weights;
            assert!(got.done.abs_diff(right) * 10 <= right, "{depth}: {} of {right}, by {weight}", got.done);
        }
    }
}

#[test]
fn streams_of_several_tenants_lose_little_to_shorter_turns() {
    for thinks in [AT_ONCE, MS / 2, MS] {
        let tenants = [100, 300].map(|weight| Tenant { weight, thinks, asks: in_order, ..ONE });
        let run = |set| world("nas2020", LARGE, &tenants, set).run(30, 20);
        let (before, now) = (run(as_before as Set), run(live));
        show(&format!("two streams, {thinks} as in the lab"), &before);
        show("live", &now);
        assert!(sum(&now) * 100 >= sum(&before) * 97, "{thinks}");
        let ratio = |got: &[Got]| got[1].done * 100 / got[0].done;
        assert!(ratio(&now) * 10 >= ratio(&before) * 9, "{thinks}: weights");
    }
    let tenants = EQUAL.map(|weight| Tenant { weight, thinks: AT_ONCE, asks: in_order, ..ONE });
    let run = |set| world("nas2020", LARGE, &tenants, set).run(0, 20);
    let (before, now) = (run(as_before as Set), run(live));
    show("six streams as in the lab", &before);
    show("live", &now);
    // Half a second for all, and one more turn.
    assert!(longest(&before) > MS * 600 && longest(&now) <= MS * 550);
    assert!(sum(&now) * 10 >= sum(&before) * 9);
    // One that thinks has their turns end sooner.
    let mut tenants = tenants.to_vec();
    tenants.push(Tenant { thinks: MS * 4, asks: of_all_kinds, ..ONE });
    let now = world("nas2020", LARGE, &tenants, live).run(10, 20);
    show("six streams, and one that thinks", &now);
    assert!(longest(&now[6..]) <= MS * 250 && now[6].p99() <= MS * 100);
}

#[test]
fn a_tenant_that_thinks_keeps_its_share_beside_a_stream() {
    for thinks in [MS, MS * 4] {
        for asks in [anywhere as fn(u64, &mut Chance) -> Ask, of_all_kinds] {
            let tenants = [Tenant { thinks: AT_ONCE, asks: in_order, ..ONE }, Tenant { thinks, asks, ..ONE }];
            let run = |tenants: &[Tenant], set: Set| world("nas2020", LARGE, tenants, set).run(30, 20);
            show(&format!("a stream, and a pause of {thinks}, as in the lab"), &run(&tenants, as_before));
            let (both, alone) = (run(&tenants, live), run(&tenants[1..], live));
            show("live", &both);
            show("the latter alone", &alone);
            assert!(longest(&both) <= MS * 250);
            assert!(both[1].done * 100 >= alone[0].done * 45, "{thinks}");
        }
    }
}

/// The device does one command after the other, and had 31 trims before each read. Writes take as long there,
/// and are not bounded: what a reader beside them gets is what it got beside trims.
#[test]
fn a_reader_does_not_wait_behind_many_trims_of_a_neighbour() {
    let us = Duration::from_us;
    let honest = Tenant { thinks: us(300), asks: |_, c| Ask::read(c.below(8192) << 12, 4096), ..ONE };
    let run = |tenants: &[Tenant]| world("sata_ssd", SMALL, tenants, live).run(4, 1);
    let beside = |asks| run(&[honest, Tenant { depth: 240, tasks: 8, thinks: us(35), asks, ..ONE }]);
    let alone = &run(&[honest])[0];
    let writes = beside(|_, _| Ask { op: Op::Write, ..Ask::read(0, 4096) });
    let trims = beside(|_, _| Ask { op: Op::Discard, ..Ask::read(0, 4096) });
    for (name, got) in [("writes", &writes), ("trims", &trims)] {
        let (kept, p99, others) = (got[0].done * 100 / alone.done, got[0].p99(), got[1].done);
        println!("beside {others} {name}: {kept} %, p99 {p99} of {}", alone.p99());
    }
    assert!(writes[0].p99() > alone.p99() * 4, "there is nothing to bound");
    assert!(trims[0].done * 100 >= alone.done * 80 && trims[0].p99() <= alone.p99() * 2);
    assert!(trims[1].done * 100 >= writes[1].done * 90, "the bound costs its tenant little");
}

/// Writes a sector, has it flushed, and pauses, as a program does that keeps a journal.
const JOURNAL: Tenant = Tenant {
    thinks: Duration::from_ms(2),
    asks: |_, _| Ask { op: Op::Write, flushes: true, ..Ask::read(0, 512) },
    ..ONE
};

#[test]
fn a_reader_beside_a_neighbour_that_calls_fsync_waits_little_and_loses_nothing_to_idling() {
    for (model, most) in [("nas2020", 250), ("sata_ssd", 100), ("microsd_a1", 100)] {
        let reader = Tenant { thinks: AT_ONCE, asks: |_, c| Ask::read(c.below(8000) << 12, 4096), ..ONE };
        let run = |tenants: &[Tenant], set: Set| world(model, SMALL, tenants, set).run(5, 10);
        let (now, none) = (run(&[reader, JOURNAL], live), run(&[reader, JOURNAL], no_idling));
        show(model, &now);
        show("slice_idle=0", &none);
        let alone = run(&[JOURNAL], live);
        show("the neighbour alone", &alone);
        // The model of a card takes 171 ms for a flush now and then.
        assert!(longest(&now) <= (MS * most).max(longest(&alone)), "{model}");
        assert!(now[0].done * 10 >= none[0].done * 9, "{model}");
    }
}

/// The weights of twenty tenants.
fn twenty() -> Vec<u16> {
    (0..20).map(|i| WEIGHTS[i % 6]).collect()
}

/// The soak's bar is a second. The lightest of twenty has a ninetieth of the disk.
#[test]
fn a_tenant_of_little_weight_waits_less_than_a_second() {
    for thinks in [Duration::ZERO, AT_ONCE, MS * 4] {
        for weights in [WEIGHTS.to_vec(), twenty()] {
            let tenants: Vec<_> = weights.iter().map(|&weight| Tenant { weight, thinks, ..ONE }).collect();
            let run = |set| world("nas2020", LARGE, &tenants, set).run(30, 30);
            show(&format!("{} tenants, {thinks}, as in the lab", weights.len()), &run(as_before as Set));
            let got = run(live);
            show("live", &got);
            assert!(longest(&got) <= MS * 1000, "{} tenants, {thinks}", weights.len());
        }
    }
}
