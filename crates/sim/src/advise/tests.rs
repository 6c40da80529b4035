//! Advice on small loads: the winner where it is known, and that nothing but the question decides.

use super::*;
use crate::job::parse;

/// A program that starts beside four that stream.
const JOBS: &str = "[streams]\nrw=read\nbs=128k\nsize=2g\nnumjobs=4\nruntime=12s\ntime_based\n\
                    [program]\nstartdelay=6s\nsize=2g\n#!fh_workload=startup:xterm\n";

pub(super) fn question(jobs: &str, disk: &str) -> Question {
    Question {
        jobs: parse(jobs, "test").unwrap(),
        disk: DeviceParams::preset(disk).unwrap(),
        host: Host::for_disk(disk),
        emphasis: Emphasis::Even,
        seed: 1,
        work: WORK_PER_S * 60,
        rounds: Some(1),
        against: None,
        only: None,
    }
}

fn named(name: &str) -> Named {
    preset(name).unwrap().into()
}

fn answered(q: &Question, threads: usize) -> Advice {
    advise(q, threads, &(), &|_| {}).unwrap().unwrap().1
}

#[test]
fn threads_change_nothing() {
    let q = question(JOBS, "nas2020");
    let (a, b) = (answered(&q, 1), answered(&q, 3));
    assert_eq!((a.races, a.book, a.alone), (b.races, b.book, b.alone));
    assert_eq!(a.told, b.told);
}

#[test]
fn a_program_that_starts_beside_streams_is_told_to_use_bfq() {
    let a = answered(&question(JOBS, "nas2020"), 2);
    let verdict = a.verdict();
    assert_eq!(a.candidates[a.winner].preset, "bfq", "{verdict:?}");
    assert_eq!(
        (verdict.compared, verdict.seeds),
        (a.winner, u32::try_from(a.book.standings[0].fresh.len()).unwrap())
    );
    assert_eq!(verdict.load.finding(EQUAL), statistics::Finding::Better);
    let (streams, program) = (&verdict.rows[0], &verdict.rows[1]);
    assert!(program.then.amount < program.now.amount / 2.0, "{program:?}");
    assert!(program.alone < program.then.amount && streams.alone > 0.0, "{verdict:?}");
    let told = a.told.unwrap();
    assert!(told.candidate == a.winner && told.sentences.len() >= 3, "{:?}", told.sentences);
    assert_eq!((told.before.lost, told.after.lost), (0, 0));
}

#[test]
fn one_who_is_alone_is_told_that_nothing_makes_a_difference() {
    let jobs = "[a]\nrw=randread\nbs=4k\nsize=256m\ndirect=1\nnumber_ios=300\n";
    let a = answered(&question(jobs, "nas2020"), 2);
    assert_eq!(a.winner, 0);
    let verdict = a.verdict();
    assert_eq!(verdict.load.finding(EQUAL), statistics::Finding::NoDifference, "{verdict:?}");
    assert!(verdict.rows[0].now.satisfaction > 0.97, "{verdict:?}");
}

/// The copy ends the load in one scheduler's run sooner than in another's; all are judged over the longest.
#[test]
fn a_load_that_ends_itself_is_judged_over_one_span() {
    let jobs =
        "[reader]\nrw=read\nbs=64k\nsize=1g\n[go]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=200\nexitall\n";
    let q = question(jobs, "nas2020");
    let a = answered(&q, 2);
    assert!(a.load.jobs.jobs.iter().all(|j| !j.exitall));
    for c in a.plain.clone() {
        let run = simulate(&q.scenario(&a.load, &a.candidates[c], 1)).unwrap();
        let reader = &run.clients[0];
        assert!(reader.elapsed >= run.elapsed || reader.bytes() == 1 << 30, "{}", a.candidates[c].name());
    }
    assert_eq!(a.load.parties[1].kind, Kind::Start);
}

#[test]
fn steps_are_what_a_kernel_takes() {
    let q = question(JOBS, "nas2020");
    let facts = Device::new(&q.disk).unwrap().facts();
    let all = candidates::choose(&q.jobs, &facts, &named("mq-deadline"), None).all;
    let of = |name: &str| {
        let c = all.iter().find(|c| c.name() == name).unwrap_or_else(|| panic!("{name}"));
        steps(c, None, &facts, &q.jobs).into_iter().flat_map(|s| s.lines).collect::<Vec<_>>()
    };
    let lines = of("mq-deadline, read_expire=100ms");
    assert_eq!(lines[1], "echo 100 > /sys/block/sdX/queue/iosched/read_expire");
    assert!(
        lines[2].ends_with("ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"mq-deadline\""),
        "{}",
        lines[2]
    );
    assert!(of("none")[0].starts_with("echo none >"));
    let stay = steps_to_stay(&all[0], None, &facts, &q.jobs);
    assert_eq!((stay.len(), &*stay[0].lines[0]), (1, "cat /sys/block/sdX/queue/scheduler"));
    assert_eq!(of("cfq")[1], "fairhead mount SOURCE MOUNTPOINT --sched cfq");
}

/// A service reads a page now and then beside a backup that takes all the link has: no scheduler of the
/// kernel is worth its price there, and a limit is.
#[test]
fn where_no_scheduler_is_the_answer_a_limit_is_tried() {
    let text = "[global]\nruntime=300ms\ntime_based\n[bulk]\nrw=read\nbs=256k\nsize=1g\ndirect=1\nioengine=libaio\niodepth=32\n\
                [service]\nrw=randread\nbs=16k\nsize=256m\ndirect=1\nthinktime=1ms\n";
    let a = answered(&question(text, "nvme"), 2);
    assert_eq!(a.candidates[a.winner].preset, "noop", "{:?}", a.verdict());
    let r = a.remedy.clone().expect("a limit");
    assert_eq!((r.names(&a.load.jobs), r.wbps), (vec!["bulk"], None));
    assert!(r.against.jobs[1].low > 1.5, "{:?}", r.against);
    let lines: Vec<String> = steps(&a.candidates[a.winner], Some(&r), &a.facts, &a.load.jobs)
        .into_iter()
        .flat_map(|s| s.lines)
        .collect();
    assert!(lines.contains(&format!("IOReadBandwidthMax=/dev/nvmeXn1 {}", r.rbps.unwrap())), "{lines:?}");
    // Where all are bulk, a limit would help none of them.
    let alone = "[bulk]\nrw=read\nbs=256k\nsize=1g\nruntime=100ms\ntime_based\n";
    assert_eq!(answered(&question(alone, "nvme"), 1).remedy, None);
}

/// Advice on one of the jobs of examples/flash, cut to some milliseconds, under the four schedulers that a
/// kernel has.
fn on_flash(text: &str, runtime: Duration) -> Advice {
    let mut q = question(text, "980pro");
    q.jobs.jobs.iter_mut().for_each(|j| j.runtime = Some(runtime));
    q.only = Some(["noop", "mq-deadline", "kyber", "bfq"].map(named).to_vec());
    answered(&q, 2)
}

fn cost_of<'a>(a: &'a Advice, preset: &str) -> &'a Cost {
    a.costs.iter().find(|c| a.candidates[c.candidate].preset == preset).unwrap()
}

/// Five processes with 128 requests each have BFQ's lock held all the time: it moves half of what goes
/// without a scheduler, and its tail is no shorter.
#[test]
fn deep_readers_on_nvme_are_not_told_to_use_bfq() {
    let a = on_flash(include_str!("../../../../examples/flash/deep-readers.fio"), Duration::from_ms(20));
    assert_eq!(a.candidates[a.winner].preset, "noop");
    let bfq = a.candidates.iter().position(|c| c.preset == "bfq").unwrap();
    let against = a.book.against(bfq, 0);
    assert!(against.jobs[0].high < 0.75, "{against:?}");
    assert_eq!(cost_of(&a, "bfq").limit, Limit::Lock);
    assert_eq!(cost_of(&a, "mq-deadline").limit, Limit::Lock);
    assert_eq!(cost_of(&a, "noop").limit, Limit::Drive);
    assert!(cost_of(&a, "bfq").lock_wait > cost_of(&a, "bfq").in_scheduler);
}

/// What the study of 2024 has for one process at depth 256, where its processor is saturated: CPU time for a
/// request of 2.79 us without a scheduler.
//= docs/reference/nvme.md#21-one-process-on-one-core type=test
#[test]
fn pure_throughput_is_told_to_use_none_and_what_others_cost() {
    let a = on_flash(include_str!("../../../../examples/flash/throughput.fio"), Duration::from_ms(20));
    assert_eq!(a.candidates[a.winner].preset, "noop");
    let ns = |preset: &str| cost_of(&a, preset).per_request.as_ns() as f64;
    for (preset, published) in [("mq-deadline", 590.0), ("kyber", 850.0), ("bfq", 1460.0)] {
        let more = ns(preset) - ns("noop");
        assert!((more / published - 1.0).abs() < 0.15, "{preset}: {more} ns, published {published}");
        assert_eq!(cost_of(&a, preset).limit, Limit::Processor, "{preset}");
    }
    assert!((ns("noop") / 2790.0 - 1.0).abs() < 0.15);
}

/// A drive with room, and one without: what each request takes, and what the jobs want, is no limit.
#[test]
fn a_load_that_wants_no_more_is_limited_by_nothing() {
    let text = "[a]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\n";
    let alone = on_flash(text, Duration::from_ms(20));
    assert_eq!(cost_of(&alone, "noop").limit, Limit::Nothing);
    let paced = on_flash(&format!("{text}thinktime=200us\n"), Duration::from_ms(20));
    assert_eq!(cost_of(&paced, "bfq").limit, Limit::Nothing);
}
