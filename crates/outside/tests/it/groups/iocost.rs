//! What io.cost promises: shares by weight, no capacity lost, latency within the target.

use super::world::{Client, World};
use fairhead_core::sched::noop::Noop;
use fairhead_core::{Control, Duration, GroupId, Limits, Request, Weight};
use fairhead_outside::iocost::{Config, IoCost, Rate};

/// A device that does 8 requests at a time, each in 400 µs: 20,000 a second.
const FLASH: (usize, fn(&Request) -> Duration) = (8, |_| Duration::from_us(400));

fn limits() -> Limits {
    Limits { rotational: false, queue_depth: 32, tags: 512, ..Limits::default() }
}

/// The figures of that device, times this.
fn figures(percent: u64) -> Config {
    let iops = Rate(200 * percent);
    let period = Duration::from_ms(20);
    Config { rseqiops: iops, rrandiops: iops, wseqiops: iops, wrandiops: iops, period, ..Config::default() }
}

fn world(config: Config, weights: &[u16], clients: &[Client]) -> World<IoCost> {
    World::new(limits(), config, weights, clients, FLASH)
}

/// What all clients get without a scheduler, and what each, from the second until the fifth second.
fn without(weights: &[u16], clients: &[Client]) -> (u64, Vec<u64>) {
    let mut world = World::<Noop>::new(limits(), Default::default(), weights, clients, FLASH);
    world.run(5000);
    let each: Vec<_> = (0..clients.len()).map(|i| world.count(i, 2000, 5000)).collect();
    (each.iter().sum(), each)
}

/// `a : b`, in thousandths.
fn ratio(a: u64, b: u64) -> u64 {
    a * 1000 / b.max(1)
}

#[test]
fn weights_200_and_100_give_2_to_1_and_nothing_is_lost() {
    // The second group has more requests, and gets less.
    let clients = [Client::reader(1, 32), Client::reader(2, 64)];
    let (all, each) = without(&[200, 100], &clients);
    assert!(ratio(each[0], each[1]) < 600, "without it who sends more gets more: {each:?}");
    for percent in [100, 20, 500] {
        let mut world = world(figures(percent), &[200, 100], &clients);
        world.run(5000);
        let [a, b] = [0, 1].map(|i| world.count(i, 2000, 5000));
        println!("figures at {percent} %: {a} and {b} of {all} in 3 s; without: {each:?}");
        assert!((1960..=2040).contains(&ratio(a, b)), "{percent} %: {a} : {b}");
        assert!(
            ratio(a + b, all) >= 970,
            "{percent} %: {a} + {b} of {all}, at {} %",
            world.elevator.scheduler().vrate()
        );
    }
}

#[test]
fn a_tree_divides_shares_on_each_level() {
    // 1: 300, in it 3 of 100 and 4 of 200; 2: 100.
    let clients = [2, 3, 4].map(|g| Client::reader(g, 64));
    let mut world = world(figures(100), &[300, 100, 100, 200], &clients);
    for g in [3, 4] {
        world.elevator.control(world.now, Control::SetParent(GroupId(g), GroupId(1))).unwrap();
        let weight = Weight::new(if g == 3 { 100 } else { 200 }).unwrap();
        world.elevator.control(world.now, Control::SetWeight(GroupId(g), weight)).unwrap();
    }
    world.run(5000);
    let [two, three, four] = [0, 1, 2].map(|i| world.count(i, 2000, 5000));
    assert!((980..=1020).contains(&ratio(two, three)), "25 % : 25 %: {two} : {three}");
    assert!((1960..=2040).contains(&ratio(four, three)), "50 % : 25 %: {four} : {three}");
}

#[test]
fn what_a_group_does_not_use_goes_to_others() {
    // Entitled to nine tenths, the first one sends a request each 2 ms.
    let clients = [Client { think: Duration::from_ms(2), ..Client::reader(1, 1) }, Client::reader(2, 64)];
    let weights = [900, 100];
    let (all, each) = without(&weights, &clients);
    let mut world = world(Config { max: 100, ..figures(100) }, &weights, &clients);
    world.run(5000);
    let [a, b] = [0, 1].map(|i| world.count(i, 2000, 5000));
    let wait = world.mean_us(0, 2000, 5000);
    println!("{a} and {b} of {all} in 3 s, {wait} us for the first; without: {each:?}");
    assert!(ratio(a, each[0]) >= 1000, "it has what it asks for: {a}, without {}", each[0]);
    // At a rate of 100 % at most: by what is given away, not by a higher rate.
    assert!(ratio(a + b, all) >= 970, "{a} + {b} of {all}");
    assert!(
        world.mean_us(0, 2000, 5000) < 1700,
        "{} us; its requests wait for the device only",
        world.mean_us(0, 2000, 5000)
    );
}

#[test]
fn who_needs_its_share_again_has_it_at_once() {
    // The first one sends little for 3 s, and then all that it can.
    let little =
        Client { think: Duration::from_ms(2), until: Duration::from_secs(3), ..Client::reader(1, 1) };
    let much = Client { from: Duration::from_secs(3), ..Client::reader(1, 64) };
    let mut world =
        world(Config { max: 100, ..figures(100) }, &[200, 100], &[little, Client::reader(2, 64), much]);
    world.run(4000);
    let (b, c) = (world.count(1, 3040, 3540), world.count(2, 3040, 3540));
    assert!((1900..=2100).contains(&ratio(c, b)), "two periods later: {c} : {b}");
}

#[test]
fn the_rate_falls_when_reads_miss_their_target() {
    let clients = [Client::reader(1, 64), Client::reader(2, 64)];
    // Of 32 at the device 8 are served at a time: a request is there for 1.6 ms.
    let run = |rpct| {
        let config = Config { rpct, rlat: Duration::from_us(700), ..figures(100) };
        let mut world = world(config, &[100, 100], &clients);
        let mut rates = 0;
        for ms in (3020..=5000).step_by(20) {
            world.run(ms);
            rates += world.elevator.scheduler().vrate();
        }
        (world.at_disk_us(90, 0, 3000, 5000), rates / 100, world.count(0, 3000, 5000))
    };
    let ((slow, free, all), (quick, held, less)) = (run(0), run(90));
    println!("90 %: {slow} us at {free} %, {all} in 2 s; with the target {quick} us at {held} %, {less}");
    assert!(slow >= 1500 && free >= 97, "without a target: {slow} us at {free} %");
    assert!(quick <= 900, "with a target of 700 us, which is tried again and again: {quick} us at {held} %");
    assert!(held < free && ratio(less, all) >= 900, "{held} % < {free} %; {less} of {all}");
}

#[test]
fn the_rate_stays_within_its_limits() {
    let clients = [Client::reader(1, 64), Client::reader(2, 64)];
    let mut world = world(Config { min: 50, max: 50, ..figures(100) }, &[200, 100], &clients);
    world.run(5000);
    let [a, b] = [0, 1].map(|i| world.count(i, 2000, 5000));
    assert!((29_500..=30_500).contains(&(a + b)), "half of 20,000 a second: {}", a + b);
    assert!((1960..=2040).contains(&ratio(a, b)), "{a} : {b}");
}

#[test]
fn metadata_does_not_wait_and_is_paid_for() {
    let mut metadata = Client { think: Duration::from_ms(1), ..Client::reader(2, 8) };
    metadata.template.meta = true;
    let clients = [Client::reader(1, 64), metadata, Client::reader(2, 64)];
    let mut world = world(Config { max: 100, ..figures(100) }, &[200, 100], &clients);
    world.run(5000);
    let [a, meta, b] = [0, 1, 2].map(|i| world.count(i, 2000, 5000));
    assert!(world.mean_us(1, 2000, 5000) < 2100, "{} us", world.mean_us(1, 2000, 5000));
    assert!(meta > 1000 && (1900..=2100).contains(&ratio(a, meta + b)), "{a} : {meta} + {b}");
}
