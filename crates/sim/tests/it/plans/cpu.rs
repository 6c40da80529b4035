//! Processors as the bottleneck.

use super::plan::Plan;
use fairhead_core::Duration;
use fairhead_device::DeviceParams;
use fairhead_sim::Host;

/// Random reads of 4 KiB through the page cache for five seconds: the load of `bfq-v8-2016`.
fn readers(n: u32) -> String {
    format!("[r]\nrw=randread\nbs=4k\nsize=400m\nnumjobs={n}\ntime_based\nruntime=5s\n")
}

/// A card that answers within 2 us: what limits it is the host.
fn quick(disk: &mut DeviceParams) {
    let DeviceParams::Card(card) = disk else { panic!("the plan is on a card") };
    (card.read_latency, card.read_per_kib_ps) = (Duration::from_us(1), 250_000);
}

#[test]
fn a_card_of_one_slot_is_the_bottleneck_for_one_reader_and_its_cpus_are_not() {
    Plan::on("flashcard2010")
        .host("of 2016", |h| *h = Host::of_2016())
        .load("one random reader", &readers(1))
        .run()
        // A read takes 1.276 ms of the card, 10 us and some of the interrupt, 1.7 us of the call.
        .check("bound by the card", |o| (755..=780).contains(&(o.clients[0].milli_iops() / 1000)))
        // 80.7 us of 4 x 1.29 ms.
        .check("the CPUs have 1.6 % to do", |o| (983..=985).contains(&o.cpu_idle_permille()));
}

#[test]
fn ten_random_readers_on_a_quick_disk_keep_four_cpus_busy() {
    for (scheduler, us_tenths) in [("noop", 807), ("deadline", 811)] {
        Plan::on("flashcard2010")
            .disk("that takes 2 us", quick)
            .host("of 2016, with interrupts of 1 us", |h| {
                *h = Host::of_2016();
                (h.irq, h.irq_jitter) = (Duration::from_us(1), Duration::ZERO);
            })
            .scheduler(scheduler)
            .load("ten random readers", &readers(10))
            .run()
            .check("four CPUs and nothing else limit them", |o| {
                let expected = 4 * 10_000_000 / us_tenths;
                let got: u64 = o.clients.iter().map(|c| c.milli_iops() / 1000).sum();
                got.abs_diff(expected) * 500 < expected
            })
            .check("no CPU is ever idle", |o| o.cpu_idle_permille() == 0)
            .check("the CPUs are shared equally", |o| o.fairness_permille().is_some_and(|f| f > 990));
    }
}

#[test]
fn a_scheduler_of_one_lock_lets_no_two_requests_out_within_its_time() {
    for (serial, least, most) in [(true, 99_000, 100_100), (false, 499_000, 500_100)] {
        Plan::on("flashcard2010")
            .disk("that takes 2 us", quick)
            .host("with quick CPUs and a scheduler of 10 us, under a lock or not", |h| {
                *h = Host::of_2020();
                (h.cpus, h.irq, h.irq_jitter) = (16, Duration::ZERO, Duration::ZERO);
                // A worker that runs the queue of a card of one slot would take longer than the card.
                (h.multi_queue, h.start_gap) = (None, Duration::ZERO);
                (h.sched_cost, h.sched_serial) = (vec![("noop", Duration::from_us(10))], serial);
            })
            .scheduler("noop")
            .load("sixteen direct readers", &format!("{}direct=1\nruntime=1s\n", readers(16)))
            .run()
            .check("100 000 a second, or as many as the card takes", |o| {
                let got: u64 = o.clients.iter().map(|c| c.milli_iops() / 1000).sum();
                (least..=most).contains(&got)
            });
    }
}

/// Ten raw readers of the SSD of `bfq-v8-2016`, each with a part of it.
fn ten_raw_readers(scheduler: &str, pattern: &str) -> Plan {
    let text = format!(
        "[r]\nrw={pattern}\nbs=4k\nfilename=/dev/sda\nsize=20g\noffset_increment=20g\nnumjobs=10\ntime_based\nruntime=1s\n"
    );
    Plan::on("plextor_m5s").scheduler(scheduler).load("ten raw readers", &text).run()
}

#[test]
//= docs/reference/published-results.md#51-table R004-T-seq type=test
fn ten_sequential_readers_of_the_ssd_are_bound_by_its_link() {
    for scheduler in ["noop", "deadline", "cfq"] {
        ten_raw_readers(scheduler, "read")
            .check("400 MB/s, but for the windows in flight at the end", |o| {
                (o.bandwidth() / 1_000_000).abs_diff(400) <= 5
            })
            .check(
                "two windows of 256 KiB on their way for each: with one the longest wait were 6.6 ms",
                |o| o.clients.iter().all(|c| (8..=14).contains(&c.latency_max().as_ms())),
            );
    }
}

#[test]
//= docs/reference/published-results.md#51-table R004-T-rand type=test
fn ten_random_readers_of_the_ssd_are_bound_by_four_cpus() {
    for (scheduler, published) in [("noop", 203), ("deadline", 202), ("cfq", 193)] {
        ten_raw_readers(scheduler, "randread")
            .check("as published, to which the costs were fitted", |o| {
                (o.bandwidth() / 1_000_000).abs_diff(published) <= 1
            })
            .check("no CPU is ever idle", |o| o.cpu_idle_permille() == 0);
    }
}
