//! What `advise` says of the jobs in examples/flash on the drive of the study: none, kyber, mq-deadline or
//! bfq.
//!
//! No row of the study with writes was used to fit anything, and its figures are not here: only what it says
//! in words. Jobs are cut short; nothing else is changed.
//= docs/reference/nvme.md#5-what-the-study-says-in-words type=test

use fairhead_core::Duration;
use fairhead_device::DeviceParams;
use fairhead_sim::Host;
use fairhead_sim::advise::{Advice, Comparison, Cost, Limit, Question, WORK_PER_S, advise};
use fairhead_sim::job::{Kind, parse};
use fairhead_sim::satisfaction::Emphasis;

const SCHEDULERS: [&str; 4] = ["noop", "mq-deadline", "kyber", "bfq"];

/// Asks with a job's run time cut.
fn asked(text: &str, runtime: Duration) -> Advice {
    let mut jobs = parse(text, "test").unwrap();
    for job in &mut jobs.jobs {
        (job.runtime, job.ramp_time) = (Some(runtime), Duration::ZERO);
    }
    let question = Question {
        jobs,
        disk: DeviceParams::preset("980pro").unwrap(),
        host: Host::for_disk("980pro"),
        emphasis: Emphasis::Even,
        seed: 1,
        work: WORK_PER_S * 60,
        rounds: Some(1),
        against: None,
        only: Some(SCHEDULERS.map(|name| fairhead_core::sched::any::preset(name).unwrap().into()).to_vec()),
    };
    advise(&question, 2, &(), &|_| {}).unwrap().unwrap().1
}

fn index(a: &Advice, preset: &str) -> usize {
    a.candidates.iter().position(|c| c.preset == preset).unwrap()
}

/// How satisfied the jobs are against none; above 1 is better.
fn against_none(a: &Advice, preset: &str) -> Comparison {
    a.book.against(index(a, preset), index(a, "noop"))
}

fn cost(a: &Advice, preset: &str) -> Cost {
    *a.costs.iter().find(|c| c.candidate == index(a, preset)).unwrap()
}

/// The study, in words: under interference by writes bfq and kyber have shorter tails than none and
/// mq-deadline.
#[test]
fn a_reader_beside_writers_is_told_to_use_kyber_or_bfq_and_the_price() {
    let text = include_str!("../../../../examples/flash/reader-beside-writers.fio");
    let a = asked(text, Duration::from_ms(500));
    let winner = a.candidates[a.winner].preset;
    for s in &SCHEDULERS[1..] {
        println!("{s}: {:?}, {:?}", against_none(&a, s), cost(&a, s));
    }
    assert!(["kyber", "bfq"].contains(&winner), "{winner}");
    let reader = a.load.jobs.jobs.iter().position(|j| j.name == "reader").unwrap();
    assert_eq!(a.load.parties[reader].kind, Kind::Waiting);
    let of_reader = |preset: &str| against_none(&a, preset).jobs[reader];
    let (kyber, mq_deadline) = (of_reader("kyber"), of_reader("mq-deadline"));
    assert!(kyber.low > 2.0, "kyber's tail is half of none's at most: {kyber:?}");
    assert!(mq_deadline.ratio < kyber.ratio, "mq-deadline {mq_deadline:?}, kyber {kyber:?}");
    // The price.
    let verdict = a.verdict();
    assert_eq!((verdict.winner, verdict.rows[reader].pays()), (a.winner, false));
    let writers = verdict.rows.iter().filter(|r| r.job != reader);
    assert!(writers.clone().all(|r| r.change.low > 0.9), "{:?}", verdict.rows);
    assert!(cost(&a, winner).per_request > cost(&a, "noop").per_request, "it takes processor time");
}

/// The drive holds the load back, so that reads wait in it; under bfq it may be the lock.
#[test]
fn writers_without_a_scheduler_are_limited_by_the_drive() {
    let text = include_str!("../../../../examples/flash/reader-beside-writers.fio");
    let a = asked(text, Duration::from_ms(100));
    assert_eq!(cost(&a, "noop").limit, Limit::Drive);
}

/// The study, in words: bfq's tail is longer than none's when many processes only read at large depth, and it
/// moves less than half.
#[test]
fn deep_readers_are_not_told_to_use_bfq() {
    let a = asked(include_str!("../../../../examples/flash/deep-readers.fio"), Duration::from_ms(50));
    assert_eq!(a.candidates[a.winner].preset, "noop");
    let bfq = against_none(&a, "bfq");
    assert!(bfq.jobs[0].high < 0.5, "{bfq:?}");
}

/// From depth 256, where one processor is saturated: 0.59 us more than none's for mq-deadline, 1.46 for bfq.
//= docs/reference/nvme.md#21-one-process-on-one-core type=test
#[test]
fn pure_throughput_is_told_to_use_none_and_costs_are_the_studys() {
    let a = asked(include_str!("../../../../examples/flash/throughput.fio"), Duration::from_ms(50));
    assert_eq!(a.candidates[a.winner].preset, "noop");
    for (preset, published) in [("mq-deadline", 590.0), ("bfq", 1460.0)] {
        let more = cost(&a, preset).per_request.as_ns() as f64 - cost(&a, "noop").per_request.as_ns() as f64;
        assert!((more / published - 1.0).abs() < 0.15, "{preset}: {more} ns, published {published}");
    }
    for (preset, published) in [("noop", 357_900.0), ("mq-deadline", 295_300.0), ("bfq", 235_000.0)] {
        let ours = cost(&a, preset).iops as f64;
        assert!((ours / published - 1.0).abs() < 0.15, "{preset}: {ours} a second, published {published}");
    }
}
