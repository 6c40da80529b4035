//! Processors, locks and hardware queues of hosts of the multi-queue era.

use super::plan::Plan;
use fairhead_core::Duration;
use fairhead_sim::host::Lock;
use fairhead_sim::{Host, Outcome};

/// Random reads of 4 KiB past the page cache for a fifth of a second.
fn load(lines: &str) -> String {
    format!(
        "[r]\nfilename=/dev/nvme0n1\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nnorandommap\ntime_based\nruntime=200ms\n{lines}\n"
    )
}

fn iops(o: &Outcome) -> u64 {
    o.clients.iter().map(|c| c.milli_iops() / 1000).sum()
}

/// The 99th percentile of the slowest client.
fn p99(o: &Outcome) -> Duration {
    o.clients.iter().filter_map(|c| c.read.percentile(99.0)).max().unwrap_or_default()
}

fn plan(scheduler: &str) -> Plan {
    Plan::on("980pro").scheduler(scheduler)
}

/// All that is true of any run.
fn is_sound(o: &Outcome) -> bool {
    let all = o.elapsed * u64::from(o.cpus);
    o.cpu.total() == o.cpu_busy && o.cpu_busy <= all && !o.cpu_busy.is_zero()
}

#[test]
fn one_process_uses_one_processor_however_many_calls_it_has_in_flight() {
    for (depth, cpus) in [(128, 10), (128, 1), (512, 4)] {
        plan("noop")
            .load("one process, many calls", &load(&format!("iodepth={depth}\nfh_cpus={cpus}")))
            .run()
            // 2.79 us a call.
            .check("one processor's worth", |o| (350_000..=362_000).contains(&iops(o)))
            .check("one processor is busy, no other", |o| {
                is_sound(o) && o.cpu_busy <= o.elapsed && o.cpu_busy * 100 >= o.elapsed * 99
            });
    }
}

#[test]
fn two_processes_share_one_processor_and_have_two_if_there_are_two() {
    for (cpus, least, most) in [(1, 350_000, 362_000), (2, 700_000, 724_000)] {
        plan("noop")
            .load("two processes", &load(&format!("iodepth=64\nnumjobs=2\nfh_cpus={cpus}")))
            .run()
            .check("as much as the processors do", |o| (least..=most).contains(&iops(o)) && is_sound(o))
            .check("in equal parts", |o| o.fairness_permille().is_some_and(|f| f > 950));
    }
}

#[test]
fn processes_stay_where_cpus_allowed_has_them() {
    for (lines, processors) in [
        ("numjobs=4\ncpus_allowed=3", 1),
        ("numjobs=4\ncpus_allowed=0-1,9", 3),
        ("numjobs=4\ncpus_allowed=0-3\ncpus_allowed_policy=split", 4),
    ] {
        plan("noop")
            .host("slow at submitting", |h| {
                h.cores.as_mut().expect("a host of the multi-queue era").submit = Duration::from_us(10);
            })
            .load("four processes", &load(&format!("iodepth=32\n{lines}")))
            .run()
            .check("as many processors are busy as they may use", |o| {
                let busy = o.cpu_busy.as_ns() * 100 / o.elapsed.as_ns();
                is_sound(o) && busy.abs_diff(processors * 100) <= 1
            });
    }
}

/// A process that sleeps most of the time beside two that keep the only processor busy.
#[test]
fn who_sleeps_gets_the_processor_at_once() {
    let text = format!("{}[late]\niodepth=1\nrw=randread\n", load("iodepth=64\nnumjobs=2\nfh_cpus=1"));
    let text = text.replace("[r]\n", "[global]\n").replace("iodepth=64\nnumjobs=2\n", "");
    let text = text.replace("[late]\n", "[busy]\niodepth=64\nnumjobs=2\n[late]\n");
    plan("noop")
        .load("a reader beside two that are busy", &text)
        .run()
        .check("its calls take little longer than alone", |o| {
            p99_of(o, 2) < Duration::from_us(250) && is_sound(o)
        })
        .check("the others have the rest", |o| iops(o) > 330_000);
}

fn p99_of(o: &Outcome, client: usize) -> Duration {
    o.clients[client].read.percentile(99.0).unwrap_or_default()
}

/// A lock that is held 10 us a request lets no more than 100 000 a second through; with the hand-over of 5 us
/// for each of two acquisitions and the one that waits at most, 50 000.
#[test]
fn a_lock_bounds_the_disk_and_contention_slows_it() {
    for (hand_over, least, most) in [(0, 99_000, 101_000), (5, 49_500, 50_500)] {
        let lock = Lock {
            insert: Duration::from_us(5),
            dispatch: Duration::from_us(5),
            complete: Duration::ZERO,
            alone: Duration::ZERO,
            hand_over: Duration::from_us(hand_over),
            waiters_max: 1,
            insert_batch: 1,
            dispatch_batch: 1,
        };
        plan("mq-deadline")
            .host("with a slow lock", |h| {
                let cores = h.cores.as_mut().expect("a host of the multi-queue era");
                cores.schedulers = vec![(
                    "mq-deadline",
                    fairhead_sim::host::Elevator { work: Duration::ZERO, lock: Some(lock) },
                )];
            })
            .load("ten processes", &load("iodepth=32\nnumjobs=10"))
            .run()
            .check("the lock's rate", |o| (least..=most).contains(&iops(o)) && is_sound(o))
            .check("it is always held", |o| o.disk.lock_held * 100 >= o.elapsed * 99)
            .check("nine of ten processors wait for it", |o| o.cpu.lock_permille() > 800);
    }
}

/// Batches of insertions and dispatches make a contended lock nearly as good as none.
#[test]
fn later_kernels_take_the_lock_for_many_requests_at_a_time() {
    let run = |host: fn() -> Host| {
        let mut rate = 0;
        plan("mq-deadline")
            .host("of that year", |h| *h = host())
            .load(
                "ten processes that submit 16 calls at a time",
                &load("iodepth=64\nnumjobs=10\niodepth_batch=16\niodepth_batch_complete_max=16"),
            )
            .run()
            .check("sound", |o| {
                rate = iops(o);
                is_sound(o)
            });
        rate
    };
    let (one, many) = (
        run(|| Host::of_2020().with_processors_of_2023()),
        run(|| Host::of_2020().with_processors_of_2024()),
    );
    assert!(many * 10 > one * 13, "{one} and {many} a second");
}

#[test]
fn polling_takes_less_time_and_more_of_the_processor() {
    let run = |lines: &str| {
        let mut mean = Duration::ZERO;
        plan("noop").load("a reader", &load(lines)).run().check("sound", |o| {
            mean = o.clients[0].read.latency_mean().unwrap_or_default();
            is_sound(o)
        });
        mean
    };
    let (sleeps, polls) = (run("iodepth=1"), run("iodepth=1\nhipri=1"));
    // The wake-up and half of the completion.
    assert!(polls + Duration::from_us(2) < sleeps + Duration::from_ns(100), "{polls} and {sleeps}");
}

/// What a plan of one process says of itself: calls a second, mean latency, CPU time a call.
fn one_process(lines: &str) -> (u64, Duration, Duration) {
    let mut got = (0, Duration::ZERO, Duration::ZERO);
    plan("noop").load("a reader", &load(lines)).run().check("sound", |o| {
        let calls = o.clients[0].read.calls.max(1);
        got = (iops(o), o.clients[0].read.latency_mean().unwrap_or_default(), o.cpu_busy / calls);
        is_sound(o)
    });
    got
}

#[test]
fn a_batch_of_calls_costs_one_system_call() {
    let batch = "iodepth=64\niodepth_batch=32\niodepth_batch_complete_max=32";
    let (one, many) = (one_process("iodepth=64"), one_process(batch));
    // 0.4 us a call, of which a thirty-second is left.
    let saved = one.2.saturating_sub(many.2);
    assert!((300..=400).contains(&saved.as_ns()), "{one:?} and {many:?}");
}

#[test]
fn a_process_that_waits_for_many_completions_wakes_seldom_and_waits_for_the_slowest() {
    let each = one_process("iodepth=16");
    let all = one_process("iodepth=16\niodepth_batch_complete_min=16");
    // 16 calls begin when the last of 16 has ended: the drive is idle meanwhile. A wake-up, 1.5 us, is for
    // all.
    assert!(all.0 * 100 < each.0 * 80 && all.1 > each.1, "{each:?} and {all:?}");
    assert!(all.2 + Duration::from_ns(300) < each.2, "{each:?} and {all:?}");
    let four = one_process("iodepth=16\niodepth_batch_complete_min=4");
    assert!(all.0 < four.0 && four.0 < each.0, "{each:?}, {four:?} and {all:?}");
    // No more than are in flight are waited for.
    assert_eq!(one_process("iodepth=1\niodepth_batch_complete_min=16"), one_process("iodepth=1"));
}

/// What the study says in words: when many processes only read, bfq's tail is longer than none's, and it
/// moves less than half as much.
#[test]
//= docs/reference/nvme.md#5-what-the-study-says-in-words type=test
fn bfq_is_no_advice_for_five_deep_readers() {
    let five = |scheduler| {
        let mut got = (0, Duration::ZERO);
        plan(scheduler).load("five processes of depth 128", &load("iodepth=128\nnumjobs=5")).run().check(
            "sound",
            |o| {
                got = (iops(o), p99(o));
                is_sound(o)
            },
        );
        got
    };
    let (none, bfq) = (five("noop"), five("bfq"));
    assert!(bfq.1 > none.1, "p99 {} under bfq, {} under none", bfq.1, none.1);
    assert!(bfq.0 * 10 < none.0 * 6, "{} a second under bfq, {} under none", bfq.0, none.0);
}

/// Requests are given out by hardware queue: no pool of 256 for all, no leave to overdraw it.
#[test]
fn many_processes_have_more_than_256_requests_at_a_time() {
    for (scheduler, most) in [("noop", 1_000), ("mq-deadline", 1_000)] {
        plan(scheduler)
            .load("five processes of depth 128", &load("iodepth=128\nnumjobs=5"))
            .run()
            // 640 calls at 790 000 a second: 810 us.
            .check("none waits for long", |o| {
                o.clients.iter().all(|c| c.read.latency_max < Duration::from_us(most * 6))
            });
    }
}

#[test]
fn a_processor_that_the_host_lacks_is_refused() {
    let text = load("cpus_allowed=2\nfh_cpus=2");
    let message = plan("noop").load("on processor 2 of 2", &text).refused().to_string();
    assert!(message.contains("processor 2") && message.contains("fh_cpus"), "{message}");
    assert_eq!(Host::of_2020().with_processors_of_2023().cpus, 10);
}
