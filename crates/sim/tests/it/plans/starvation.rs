//! What no scheduler can help: a drive that reorders greedily in its own queue (`greedy_ncq`).
//!
//! A reader of single random blocks, each read begun when the one before is done (an application that
//! starts), on the far side of the disk. Against others that keep the drive's queue full it waits for as long
//! as they go on. CFQ gives deep streams slices of their own and lets the drive drain in between; many
//! shallow readers share a slice, and then it is as helpless as the rest. BFQ gives raised queues the disk
//! and idles for them, which does not help once their requests are at the device; its protection, which is
//! ours, does.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;

/// Four streams of 16 calls at a time.
const DEEP: &str = "rw=read\nbs=64k\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n";
/// Four readers all over their files, 16 calls at a time.
const DEEP_RANDOM: &str = "rw=randread\nbs=64k\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n";
/// Forty readers of one file, one block at a time.
const MANY: &str = "rw=randread\nbs=4k\nsize=100m\nfilename=hot\nnumjobs=40\n";

/// The dependent reads that got through in 10 s, and the longest.
fn starting(disk: &str, scheduler: &str, others: &str) -> (u64, Duration) {
    let plan = Plan::on(disk)
        .scheduler(scheduler)
        .load(
            "dependent reads beside others",
            &format!(
                "[global]\ntime_based\nruntime=10s\ndirect=1\n[others]\nfh_start=10%\n{others}\n[start]\nrw=randread\nbs=4k\nsize=4g\nfh_start=80%\n"
            ),
        )
        .run()
        .check("everybody's last call ends", |o| o.clients.iter().all(|c| c.elapsed < Duration::from_secs(12)));
    let start = plan.outcome().clients.last().expect("the last job").read.clone();
    (start.calls, start.latency_max)
}

#[test]
fn a_greedy_drive_starves_dependent_reads_whatever_the_scheduler() {
    for (scheduler, others) in [
        ("noop", DEEP),
        ("noop", DEEP_RANDOM),
        ("deadline", DEEP),
        ("deadline", DEEP_RANDOM),
        ("mq-deadline", DEEP),
        ("kyber", DEEP),
    ] {
        let (calls, longest) = starting("greedy_ncq", scheduler, others);
        assert!(calls <= 1 && longest > Duration::from_secs(9), "{scheduler}: {calls} reads, {longest}");
    }
    let (calls, longest) = starting("greedy_ncq", "cfq", MANY);
    assert!(calls < 20 && longest > Duration::from_secs(4), "cfq: {calls} reads, {longest}");
}

#[test]
fn a_drive_with_ageing_serves_them_slowly() {
    for (scheduler, others) in [("noop", DEEP), ("deadline", DEEP), ("cfq", MANY)] {
        let (calls, longest) = starting("nas2020", scheduler, others);
        assert!(calls >= 10 && longest < Duration::from_secs(4), "{scheduler}: {calls} reads, {longest}");
    }
}

/// The newest extent of the drive's cache grows for as long as a client writes in order; a read waits for a
/// turn of it.
#[test]
fn a_film_beside_a_copy_gets_its_rate() {
    let jobs = "[global]\ntime_based\nruntime=10s\n[copy_in]\ndirect=1\nrw=write\nbs=1m\nsize=8g\n\
        [film]\nrw=read\nbs=256k\nsize=8g\nrate=3m\n";
    for scheduler in ["noop", "deadline", "mq-deadline", "kyber", "cfq", "bfq"] {
        let plan = Plan::on("nas2020").scheduler(scheduler).load("a film beside a copy", jobs).run();
        let clients = &plan.outcome().clients;
        let (copy, film) = (&clients[0], &clients[1]);
        assert!(film.read.bytes > 29 * MIB, "{scheduler}: {} bytes of 30 MiB", film.read.bytes);
        assert!(film.read.latency_max < Duration::from_ms(100), "{scheduler}: {}", film.read.latency_max);
        assert!(copy.write.bytes > 1000 * MIB, "{scheduler}: the copy continues, {} bytes", copy.write.bytes);
    }
}

#[test]
fn exclusive_slices_protect_against_deep_streams() {
    let (calls, longest) = starting("greedy_ncq", "cfq", DEEP);
    assert!(calls > 200 && longest < Duration::from_secs(1), "{calls} reads, {longest}");
}

/// What starts are to be protected from; all but the readers' depth is as in the jobs of `examples/`.
const BACKGROUNDS: [(&str, &str); 7] = [
    ("ten sequential readers", "[bg]\nrw=read\nsize=1200m\nnumjobs=10\n"),
    ("ten random readers", "[bg]\nrw=randread\nsize=1200m\nnumjobs=10\n"),
    (
        "four deep random readers",
        "[bg]\nrw=randread\nbs=64k\ndirect=1\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n",
    ),
    ("one random reader that fills the queue", DEEPEST),
    ("four deep sequential readers", DEEP_STREAMS),
    (
        "sequential readers and writers",
        "[r]\nrw=read\nsize=1200m\nnumjobs=5\n[w]\nrw=write\nsize=1200m\nnumjobs=5\nrate=800k\n",
    ),
    ("random readers and writers", WRITERS),
];
const DEEPEST: &str = "[bg]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=31\nsize=4g\n";
const DEEP_STREAMS: &str =
    "[bg]\nrw=read\nbs=64k\ndirect=1\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\n";
const WRITERS: &str =
    "[r]\nrw=randread\nsize=1200m\nnumjobs=5\n[w]\nrw=randwrite\nsize=1200m\nnumjobs=5\nrate=13k\n";

/// How long `app` takes to start under BFQ, the mean of two: no less than 20 s each if it takes longer.
fn start_up(app: &str, others: &str, protection: u64) -> Duration {
    start_up_of(Plan::on("greedy_ncq"), app, others, &[("ncq_protection", protection)])
}

fn start_up_of(plan: Plan, app: &str, others: &str, tunables: &[(&str, u64)]) -> Duration {
    let plan = plan.scheduler("bfq").set("repairs", 1).set("streams", 1);
    let plan = tunables.iter().fold(plan, |plan, (name, value)| plan.set(name, *value)).load(
        app,
        &format!(
            "[global]\nruntime=1h\ntime_based\n{others}[start]\nstartdelay=7s\nsize=4g\nfh_start=80%\nfh_workload=startup:{app}\nfh_iterations=2\nfh_pause=4s\nfh_timeout=20s\nexitall\n"
        ),
    );
    let plan = plan.run();
    let client = plan.outcome().clients.last().expect("the last job");
    client.startup_time().expect("a start-up").took
}

#[test]
fn a_protected_start_up_takes_at_most_three_times_its_idle_time() {
    for app in ["xterm", "lowriter"] {
        let idle = start_up(app, "", 1);
        for (what, others) in BACKGROUNDS {
            let took = start_up(app, others, 1);
            assert!(took <= idle * 3, "{app} beside {what}: {took}, idle {idle}");
        }
    }
}

/// Where the queue is run at each completion. On a host of the multi-queue layer fewer requests of others get
/// ahead of it: `lowriter` then takes 3 s beside the deep streams. With `streams` the deep readers are not
/// raised, and it takes 3 s as well.
#[test]
fn without_protection_the_drive_starves_a_boosted_start_up() {
    for (app, others) in [("xterm", DEEPEST), ("lowriter", DEEP_STREAMS), ("xterm", WRITERS)] {
        let plan = Plan::on("greedy_ncq").host("of the single-queue layer", |h| h.multi_queue = None);
        let took = start_up_of(plan, app, others, &[("ncq_protection", 0), ("streams", 0)]);
        assert!(took >= Duration::from_secs(20), "{app}: {took}");
    }
}

/// MiB in 60 s of everyone, while `app` is started every few seconds, each time by another process.
fn throughput(app: &str, every: u64, others: &str, protection: u64) -> u64 {
    let mut jobs = format!("[global]\nruntime=60s\ntime_based\n{others}");
    for at in (7..55).step_by(usize::try_from(every).expect("small")) {
        jobs += &format!(
            "[start{at}]\nstartdelay={at}s\nruntime={}s\nsize=300m\nfh_start=80%\nfh_workload=startup:{app}\n",
            60 - at
        );
    }
    let plan = Plan::on("greedy_ncq").scheduler("bfq").set("repairs", 1).set("streams", 1);
    let plan = plan.set("ncq_protection", protection).load(app, &jobs);
    plan.run().outcome().clients.iter().map(|c| c.bytes()).sum::<u64>() / MIB
}

#[test]
fn protection_costs_at_most_15_percent_of_the_throughput_while_programs_start() {
    for (app, every) in [("xterm", 5), ("lowriter", 7)] {
        for (what, others) in BACKGROUNDS {
            let (without, with) = (throughput(app, every, others, 0), throughput(app, every, others, 1));
            assert!(with * 100 >= without * 85, "{app} beside {what}: {with} MiB, {without} without");
        }
    }
}

#[test]
fn protection_costs_nothing_when_nothing_is_raised() {
    for (what, others) in BACKGROUNDS {
        let all = |protection| {
            let plan = Plan::on("greedy_ncq")
                .scheduler("bfq")
                .set("low_latency", 0)
                .set("ncq_protection", protection)
                .load(what, &format!("[global]\nruntime=20s\ntime_based\n{others}"));
            plan.run().outcome().clients.iter().map(|c| c.bytes()).collect::<Vec<_>>()
        };
        assert_eq!(all(0), all(1), "{what}");
    }
}
