//! What `advise` says of the jobs in examples/flash on the drive of the study: none, kyber, mq-deadline or
//! bfq.
//!
//! No row of the study with writes was used to fit anything, and its figures are not here: only what it says
//! in words. Jobs are cut short; nothing else is changed.
//= docs/reference/nvme.md#5-what-the-study-says-in-words type=test

use fairhead_core::Duration;
use fairhead_device::DeviceParams;
use fairhead_sim::Host;
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Advice, Cost, Goal, Limit, Question, WORK_PER_S, advise};
use fairhead_sim::job::parse;

const SCHEDULERS: [&str; 4] = ["noop", "mq-deadline", "kyber", "bfq"];

/// Asks with a job's run time cut.
fn asked(text: &str, runtime: Duration) -> (Question, Advice) {
    let mut jobs = parse(text, "test").unwrap();
    for job in &mut jobs.jobs {
        (job.runtime, job.ramp_time) = (Some(runtime), Duration::ZERO);
    }
    let question = Question {
        jobs,
        disk: DeviceParams::preset("980pro").unwrap(),
        host: Host::for_disk("980pro"),
        goal: Goal::Balanced,
        seed: 1,
        work: WORK_PER_S * 60,
        rounds: Some(1),
        against: None,
        foreground: None,
        only: Some(SCHEDULERS.map(|name| fairhead_core::sched::any::preset(name).unwrap().into()).to_vec()),
    };
    advise(&question, 2, &(), &|_| {}).unwrap().unwrap()
}

fn index(a: &Advice, preset: &str) -> usize {
    a.candidates.iter().position(|c| c.preset == preset).unwrap()
}

/// Latency and throughput against none; above 1 is better.
fn against_none(a: &Advice, preset: &str) -> (Ratio, Ratio) {
    let [latency, throughput, _] = a.race.against(index(a, preset), index(a, "noop")).figures;
    (latency.unwrap(), throughput.unwrap())
}

fn cost(a: &Advice, preset: &str) -> Cost {
    *a.costs.iter().find(|c| c.candidate == index(a, preset)).unwrap()
}

/// The study, in words: under interference by writes bfq and kyber have shorter tails than none and
/// mq-deadline.
#[test]
fn a_reader_beside_writers_is_told_to_use_kyber_or_bfq_and_the_price() {
    let text = include_str!("../../../../examples/flash/reader-beside-writers.fio");
    let (question, a) = asked(text, Duration::from_ms(500));
    let winner = a.candidates[a.race.winner()].preset;
    for s in &SCHEDULERS[1..] {
        println!("{s}: {:?}, {:?}", against_none(&a, s), cost(&a, s));
    }
    assert!(["kyber", "bfq"].contains(&winner), "{winner}");
    assert_eq!(a.waiting.names(&question.jobs), ["reader"]);
    let (kyber, _) = against_none(&a, "kyber");
    let (mq_deadline, _) = against_none(&a, "mq-deadline");
    assert!(kyber.low > 2.0, "kyber's tail is half of none's at most: {kyber:?}");
    assert!(mq_deadline.ratio < kyber.ratio, "mq-deadline {mq_deadline:?}, kyber {kyber:?}");
    // The price.
    let (_, throughput) = against_none(&a, winner);
    assert!(throughput.low > 0.9 && throughput.high < 1.05, "{throughput:?}");
    assert!(cost(&a, winner).per_request > cost(&a, "noop").per_request, "it takes processor time");
    let said = a.verdict(&question).join(" ");
    assert!(said.contains(winner) && said.contains("Throughput"), "{said}");
}

/// The drive holds the load back, so that reads wait in it; under bfq it may be the lock.
#[test]
fn writers_without_a_scheduler_are_limited_by_the_drive() {
    let text = include_str!("../../../../examples/flash/reader-beside-writers.fio");
    let (_, a) = asked(text, Duration::from_ms(100));
    assert_eq!(cost(&a, "noop").limit, Limit::Drive);
}

/// The study, in words: bfq's tail is longer than none's when many processes only read at large depth, and it
/// moves less than half.
#[test]
fn deep_readers_are_not_told_to_use_bfq() {
    let (_, a) = asked(include_str!("../../../../examples/flash/deep-readers.fio"), Duration::from_ms(50));
    assert_eq!(a.candidates[a.race.winner()].preset, "noop");
    let (latency, throughput) = against_none(&a, "bfq");
    assert!(latency.high < 1.0 && throughput.high < 0.5, "{latency:?}, {throughput:?}");
}

/// From depth 256, where one processor is saturated: 0.59 us more than none's for mq-deadline, 1.46 for bfq.
//= docs/reference/nvme.md#21-one-process-on-one-core type=test
#[test]
fn pure_throughput_is_told_to_use_none_and_costs_are_the_studys() {
    let (_, a) = asked(include_str!("../../../../examples/flash/throughput.fio"), Duration::from_ms(50));
    assert_eq!(a.candidates[a.race.winner()].preset, "noop");
    for (preset, published) in [("mq-deadline", 590.0), ("bfq", 1460.0)] {
        let more = cost(&a, preset).per_request.as_ns() as f64 - cost(&a, "noop").per_request.as_ns() as f64;
        assert!((more / published - 1.0).abs() < 0.15, "{preset}: {more} ns, published {published}");
    }
    for (preset, published) in [("noop", 357_900.0), ("mq-deadline", 295_300.0), ("bfq", 235_000.0)] {
        let ours = cost(&a, preset).iops as f64;
        assert!((ours / published - 1.0).abs() < 0.15, "{preset}: {ours} a second, published {published}");
    }
}
