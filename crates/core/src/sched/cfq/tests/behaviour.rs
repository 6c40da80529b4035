//! What users notice: how much each task gets, and how long it waits.

use super::*;

fn one_ms(_: &Request) -> Duration {
    ms(1)
}

#[test]
fn two_sequential_readers_alternate_in_slices_and_get_equal_time() {
    for era in [Era::Linux2_6_33, Era::Linux2_6_34, Era::Linux3_10] {
        let mut lab = Lab::new(Limits::default(), old(era), one_ms);
        let got = lab.run(&[Client::reader(1, 64), Client::reader(2, 64)], Duration::from_secs(5));
        let (a, b) = (got[0].requests, got[1].requests);
        assert!(a.abs_diff(b) * 20 < a, "{era:?}: {a} and {b} requests");
        let turns = lab.turns();
        for turn in &turns[2..turns.len() - 2] {
            assert!(turn.2 >= ms(99) && turn.2 <= ms(104), "{era:?}: a turn of {turn:?}");
        }
        // 1 ms of service and 0.1 ms of thinking: the disk does little else.
        assert!(a + b > 4400, "{era:?}: {a} + {b}");
    }
}

#[test]
fn with_low_latency_eight_readers_have_their_turn_in_about_300_ms() {
    let clients: Vec<Client> = (1..=8).map(|task| Client::reader(task, 64)).collect();
    let mut lab = Lab::new(Limits::default(), Config::default(), one_ms);
    let got = lab.run(&clients, Duration::from_secs(10));
    let worst = got.iter().map(|g| g.latency_max).max().unwrap();
    assert!(worst > ms(200) && worst < ms(320), "{worst:?}");
    let mut lab = Lab::new(Limits::default(), Config { low_latency: false, ..Config::default() }, one_ms);
    let got = lab.run(&clients, Duration::from_secs(10));
    let worst = got.iter().map(|g| g.latency_max).max().unwrap();
    assert!(worst > ms(690) && worst < ms(740), "7 slices of 100 ms: {worst:?}");
}

#[test]
fn random_readers_take_turns_unless_one_that_comes_passes_all_that_wait() {
    for era in [Era::Linux2_6_33, Era::Linux2_6_34, Era::Linux3_10, Era::Linux4_3] {
        for (quirk_preempt_empty, queue_depth) in
            [true, false].iter().flat_map(|&q| [1, 2, 3].map(|d| (q, d)))
        {
            let clients: Vec<Client> = (1..=6).map(|task| Client::random_reader(task, 8)).collect();
            let config = Config { quirk_preempt_empty, ..old(era) };
            let mut lab = Lab::new(Limits { queue_depth, ..Limits::default() }, config, |_| ms(4));
            let got = lab.run(&clients, Duration::from_secs(10));
            let got: Vec<u64> = got.iter().map(|g| g.requests).collect();
            // 2500 in all.
            let served = if era.since_3() && quirk_preempt_empty { u64::from(queue_depth) + 1 } else { 6 };
            let share = 2500 / served;
            let alike = got.iter().filter(|n| n.abs_diff(share) < 60).count() as u64;
            let starved = got.iter().filter(|&&n| n < 20).count() as u64;
            assert_eq!((alike, starved), (served, 6 - served), "{era:?}, depth {queue_depth}: {got:?}");
        }
    }
}

#[test]
fn levels_divide_the_time() {
    let mut high = Client::reader(1, 64);
    high.template = with_prio(high.template, Class::BestEffort, 0);
    let mut lab = Lab::new(Limits::default(), Config::default(), one_ms);
    let got = lab.run(&[high, Client::reader(2, 64)], Duration::from_secs(10));
    // Slices of 180 and 100 ms.
    let ratio = got[0].requests * 100 / got[1].requests;
    assert!((170..195).contains(&ratio), "{ratio} %");
}

#[test]
//= docs/reference/cfq.md#9-test-vectors vector 12 type=test
fn a_reader_beside_a_deep_writer_keeps_most_of_the_disk() {
    for era in [Era::Linux2_6_33, Era::Linux2_6_34, Era::Linux3_10] {
        let mut lab = Lab::new(Limits::default(), old(era), one_ms);
        let got = lab.run(&[Client::reader(1, 64), Client::writer(2, 32)], Duration::from_secs(10));
        let slices = lab.slices(2);
        assert!(slices.iter().all(|s| s.0 <= 16 && s.1 <= ms(41)), "{era:?}: {slices:?}");
        let turns = lab.turns();
        let of_writer = turns[..turns.len() - 2].iter().filter(|t| t.0 == 2).map(|t| t.2);
        let longest = of_writer.max().unwrap();
        if era.since_3() {
            // Each request of the reader preempts.
            assert!(longest <= ms(2) && got[0].device > got[1].device * 10, "{longest:?} {got:?}");
        } else {
            // The workload slice is 300 / 2 x 40 / 100 = 60 ms; preemption does not end it. In it, quota
            // after quota.
            assert!((ms(60)..=ms(76)).contains(&longest), "{era:?}: {longest:?}");
            assert!(got[0].device > got[1].device, "{era:?}: {got:?}");
        }
        assert!(got[1].latency_max < Duration::from_secs(5), "{era:?}: the writer starves: {got:?}");
    }
}

#[test]
fn the_idle_class_gets_what_others_leave() {
    let mut idle = Client::reader(1, 64);
    idle.template = with_prio(idle.template, Class::Idle, 0);
    let mut lab = Lab::new(Limits::default(), Config::default(), one_ms);
    let alone = lab.run(&[idle], Duration::from_secs(1));
    assert!(alone[0].requests > 850, "{alone:?}");
    let beside = lab.run(&[idle, Client::reader(2, 64)], Duration::from_secs(1));
    assert!(beside[0].requests <= 15 && beside[1].requests > 850, "{beside:?}");
}

/// The card of `cfq-seeky-ssd-2010`: 1.1034 ms and 0.04306 ms for each KiB.
fn card(rq: &Request) -> Duration {
    Duration::from_ns(1_103_400 + 43_060 * u64::from(rq.len.0) / 2)
}

/// Requests in 5 seconds of a 4 KiB random reader and of one of `kib`.
fn on_the_card(config: Config, kib: u32) -> [u64; 2] {
    let limits = Limits { rotational: false, ..Limits::default() };
    let mut lab = Lab::new(limits, config, card);
    // Many readers first, so that it is known that the card does not queue.
    let many: Vec<Client> = (10..22).map(|task| Client::random_reader(task, 8)).collect();
    lab.run(&many, Duration::from_secs(1));
    assert!(!lab.elevator.scheduler().rules.ncq.may_queue());
    // What the published runs leave of a second is 0.03 ms for each request.
    let think = Duration::from_us(30);
    let client = |task, sectors| Client { think, ..Client::random_reader(task, sectors) };
    let got = lab.run(&[client(1, 8), client(2, 2 * kib)], Duration::from_secs(5));
    [got[0].requests, got[1].requests]
}

/// `rows`: KiB, and the published requests per second, times 10, of the 4 KiB reader and the other.
fn reproduces(config: Config, rows: [(u32, [u64; 2]); 4]) {
    for (kib, published) in rows {
        let got = on_the_card(config, kib);
        for (got, published) in got.into_iter().zip(published) {
            let error = (got * 2).abs_diff(published) * 100 / published;
            assert!(
                error <= 6,
                "{:?} {:?}, {kib} KiB: {} x 0.1/s, not {published}",
                config.era,
                config.seek,
                got * 2
            );
        }
    }
}

#[test]
//= docs/reference/published-results.md#22-derived-numbers R001-U type=test
fn by_distance_two_random_readers_on_flash_get_equal_numbers_of_requests() {
    let rows = [(8, [3625, 3567]), (16, [3240, 3129]), (32, [2517, 2592]), (64, [1858, 1905])];
    reproduces(Config::linux_2_6_33(), rows);
    reproduces(Config::linux_2_6_34(), rows);
    reproduces(Config { seek: Seek::Distance, ..Config::default() }, rows);
}

#[test]
//= docs/reference/published-results.md#22-derived-numbers R001-P type=test
fn by_size_large_requests_get_equal_time_and_small_ones_equal_numbers() {
    let rows = [(8, [3689, 3538]), (16, [3118, 3219]), (32, [3848, 1983]), (64, [3691, 1304])];
    reproduces(Config { seek: Seek::Size, ..Config::linux_2_6_34() }, rows);
    reproduces(Config::default(), rows);
}
