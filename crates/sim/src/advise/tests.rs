//! Advice on small loads: the winner where it is known, and that nothing but the question decides.

use super::*;
use crate::job::parse;

/// One that thinks reads at random beside four that stream.
const JOBS: &str = "[streams]\nrw=read\nbs=64k\nsize=256m\nnumjobs=4\nruntime=2s\ntime_based\n\
                    [reader]\nrw=randread\nbs=4k\nsize=64m\nthinktime=2ms\nruntime=2s\ntime_based\n";

pub(super) fn question(jobs: &str, disk: &str, goal: Goal) -> Question {
    Question {
        jobs: parse(jobs, "test").unwrap(),
        disk: DeviceParams::preset(disk).unwrap(),
        host: Host::for_disk(disk),
        goal,
        seed: 1,
        work: WORK_PER_S * 60,
        rounds: Some(1),
        against: None,
        foreground: None,
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
    let q = question(JOBS, "nas2020", Goal::Balanced);
    let (a, b) = (answered(&q, 1), answered(&q, 3));
    assert_eq!(a.race, b.race);
    assert_eq!(a.told, b.told);
}

#[test]
fn a_reader_that_thinks_beside_streams_is_told_to_leave_the_default() {
    let a = answered(&question(JOBS, "nas2020", Goal::Latency), 2);
    let winner = a.race.winner();
    assert_eq!(a.waiting.names(&parse(JOBS, "test").unwrap()), ["reader"]);
    assert_ne!(winner, 0, "{:?}", a.race.against(a.race.leader, 0));
    assert_eq!(a.race.against(winner, 0).score.unwrap().finding(EQUAL), statistics::Finding::Better);
    let told = a.told.unwrap();
    assert!(told.candidate == winner && told.sentences.len() >= 3, "{:?}", told.sentences);
    assert_eq!((told.before.lost, told.after.lost), (0, 0));
}

#[test]
fn one_who_is_alone_is_told_that_nothing_makes_a_difference() {
    let jobs = "[a]\nrw=randread\nbs=4k\nsize=256m\ndirect=1\nnumber_ios=300\n";
    let a = answered(&question(jobs, "nas2020", Goal::Throughput), 2);
    assert_eq!(a.race.winner(), 0);
    let against = a.race.against(a.race.leader, 0).score.unwrap();
    assert_eq!(against.finding(EQUAL), statistics::Finding::NoDifference, "{against:?}");
    assert!(a.race.standings[0].race[0].figures.fairness.is_none());
}

#[test]
fn a_small_budget_tries_the_schedulers_before_their_tunables() {
    let a = answered(
        &Question { work: Duration::from_ns(1), rounds: None, ..question(JOBS, "nas2020", Goal::Balanced) },
        2,
    );
    assert_eq!(a.candidates.len(), CANDIDATES_MIN);
    assert!(a.candidates.iter().all(|c| c.set.is_empty()) && a.not_tried.len() > 5);
    assert_eq!((a.race.rounds, a.race.end == End::Rounds), (1, false));
}

#[test]
fn who_waits_is_read_off_the_file() {
    let of = |text: &str, name: Option<&str>| {
        let jobs = parse(text, "t").unwrap();
        let w = figures::waiting(&jobs, name, Goal::Balanced);
        (w.what, w.names(&jobs).join(","))
    };
    let bulk = "[bulk]\nrw=read\nsize=1m\n";
    assert_eq!(
        of(&format!("{bulk}[app]\nfh_workload=startup:xterm\nsize=1g\n"), None),
        (Wait::StartUp, "app".into())
    );
    assert_eq!(
        of(&format!("{bulk}[film]\nfh_workload=player\nsize=10m\n"), None),
        (Wait::Frames, "film".into())
    );
    assert_eq!(of(&format!("{bulk}[go]\nrw=read\nsize=1m\nexitall\n"), None), (Wait::Took, "go".into()));
    assert_eq!(
        of(&format!("{bulk}[go]\nrw=read\nsize=1m\nruntime=9s\nexitall\n"), None),
        (Wait::Pace, "go".into())
    );
    assert_eq!(
        of(&format!("{bulk}[log]\nrw=write\nsize=1m\nfdatasync=1\n"), None),
        (Wait::Tail, "log".into())
    );
    assert_eq!(of(bulk, None), (Wait::Tail, String::new()));
    assert_eq!(of(bulk, Some("bulk")), (Wait::Tail, "bulk".into()));
    let random = "[random]\nrw=randread\nsize=1m\n";
    assert_eq!(of(&format!("{bulk}{random}"), None), (Wait::Tail, "random".into()));
    assert_eq!(of(random, None), (Wait::Tail, String::new()));
    let jobs = parse(bulk, "t").unwrap();
    assert_eq!(figures::waiting(&jobs, None, Goal::Latency).jobs, [0]);
    assert_eq!(
        of(&format!("{bulk}[log]\nrw=write\nsize=1m\nfdatasync=1\n"), Some("bulk")),
        (Wait::Tail, "bulk".into())
    );
}

/// A job that its run time ends takes as long whatever it gets; how far it got is what counts.
#[test]
fn who_starves_until_time_is_up_has_waited() {
    let text = "[readers]\nrw=read\nbs=64k\nsize=1g\nnumjobs=8\n\
                [build]\nrw=randread\nbs=4k\nsize=64m\nruntime=2s\ntime_based\nexitall\n";
    let q = question(text, "nas2020", Goal::Latency);
    let (facts, waiting) =
        (Device::new(&q.disk).unwrap().facts(), figures::waiting(&q.jobs, None, Goal::Latency));
    let under = |name: &str| {
        let c = candidates::choose(&q.jobs, &facts, &named(name), None).swap_remove(0);
        let o = simulate(&q.scenario(&c, 1)).unwrap();
        let build = o.clients.iter().find(|c| c.name == "build").unwrap();
        let seconds = build.elapsed.as_ns() as f64 / 1e9;
        assert!((2.0..2.3).contains(&seconds), "{name}: {seconds} s");
        (figures(&q.jobs, &waiting, &o).latency.unwrap(), build.read.calls as f64 / seconds)
    };
    let ((slow, few), (quick, many)) = (under("cfq"), under("bfq"));
    assert_eq!(waiting.what, Wait::Pace);
    assert!((few / many).max(many / few) > 1.1, "{few} and {many} calls a second");
    assert!((quick / slow / (many / few) - 1.0).abs() < 1e-6, "{quick}, {slow}: {many}, {few}");
}

/// A backup of the idle class gets what its class says under schedulers with classes, and that does not count
/// against them.
#[test]
fn who_may_wait_chooses_nothing() {
    let text =
        "[global]\nrw=read\nbs=64k\nsize=256m\ndirect=1\nruntime=2s\ntime_based\n[a]\n[b]\nprioclass=3\n";
    let q = question(text, "nas2020", Goal::Throughput);
    let facts = Device::new(&q.disk).unwrap().facts();
    let c = candidates::choose(&q.jobs, &facts, &named("noop"), None).swap_remove(0);
    let o = simulate(&q.scenario(&c, 1)).unwrap();
    let moved = figures(&q.jobs, &figures::waiting(&q.jobs, None, q.goal), &o).throughput.unwrap();
    let (of_a, of_b) = (o.clients[0].bytes(), o.clients[1].bytes());
    assert_eq!(moved, crate::metrics::rate(of_a, o.elapsed) as f64);
    assert!(of_b > of_a / 2, "noop knows no classes");
    let all_idle = parse(&text.replace("[a]", "[a]\nprioclass=3"), "t").unwrap();
    let moved = figures(&all_idle, &figures::waiting(&all_idle, None, q.goal), &o).throughput.unwrap();
    assert!(moved > 1.5 * crate::metrics::rate(of_a, o.elapsed) as f64, "all of the disk's");
}

#[test]
fn fairness_goes_by_weight() {
    let of = |weights: (u32, u32), scheduler: &str| {
        let text = format!(
            "[global]\nrw=read\nbs=1m\nsize=1g\nruntime=4s\ntime_based\ndirect=1\n[a]\ncgroup=a\ncgroup_weight={}\n[b]\ncgroup=b\ncgroup_weight={}\n",
            weights.0, weights.1
        );
        let q = question(&text, "nas2020", Goal::Fairness);
        let facts = Device::new(&q.disk).unwrap().facts();
        let c = candidates::choose(&q.jobs, &facts, &named(scheduler), None).swap_remove(0);
        let o = simulate(&q.scenario(&c, 1)).unwrap();
        figures::figures(&q.jobs, &figures::waiting(&q.jobs, None, Goal::Balanced), &o).fairness.unwrap()
    };
    // Under a scheduler with weights all get the same for their weight; equal shares are a quarter of it for
    // four times the weight.
    assert!(of((100, 400), "bfq") > 0.85, "{}", of((100, 400), "bfq"));
    let blind = of((100, 400), "mq-deadline");
    assert!((0.2..0.32).contains(&blind), "{blind}");
    assert!(of((100, 100), "mq-deadline") > 0.8);
}

#[test]
fn steps_are_what_a_kernel_takes() {
    let q = question(JOBS, "nas2020", Goal::Balanced);
    let facts = Device::new(&q.disk).unwrap().facts();
    let all = candidates::choose(&q.jobs, &facts, &named("mq-deadline"), None);
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
    assert_eq!(
        of("cfq, slice_idle=0s")[1],
        "fairhead mount SOURCE MOUNTPOINT --sched cfq --set slice_idle=0s"
    );
}

/// A service reads a page now and then beside a backup that takes all the link has: no scheduler of the
/// kernel is worth its price there, and a limit is.
#[test]
fn where_no_scheduler_is_the_answer_a_limit_is_tried() {
    let text = "[global]\nruntime=300ms\ntime_based\n[bulk]\nrw=read\nbs=256k\nsize=1g\ndirect=1\nioengine=libaio\niodepth=32\n\
                [service]\nrw=randread\nbs=16k\nsize=256m\ndirect=1\nthinktime=1ms\n";
    let q = question(text, "nvme", Goal::Balanced);
    let waiting = figures::waiting(&q.jobs, None, q.goal);
    let facts = Device::new(&q.disk).unwrap().facts();
    let noop = candidates::choose(&q.jobs, &facts, &named("noop"), None).swap_remove(0);
    let seeds = [1, 2, 3];
    let without: Vec<Run> =
        seeds.iter().map(|&s| judged(&q, &waiting, &simulate(&q.scenario(&noop, s)).unwrap())).collect();
    let found = remedy::find(&q, (0, &noop), &waiting, (&seeds, &without), 2, &());
    let Ok(Some(r)) = found else { panic!("no limit was found") };
    assert_eq!((r.names(&q.jobs), r.wbps), (vec!["bulk"], None));
    let [latency, throughput, _] = r.against.figures;
    assert!(latency.unwrap().low > 1.5, "{:?}", r.against);
    let kept = throughput.unwrap().ratio * 1000.0 / r.permille as f64;
    assert!((0.9..1.1).contains(&kept), "the limit is kept: {:?}", r.against);
    let lines: Vec<String> =
        steps(&noop, Some(&r), &facts, &q.jobs).into_iter().flat_map(|s| s.lines).collect();
    assert!(lines.contains(&format!("IOReadBandwidthMax=/dev/nvmeXn1 {}", r.rbps.unwrap())), "{lines:?}");
    // A job of one client has no wait: there is nothing to limit for.
    let alone = question("[bulk]\nrw=read\nbs=256k\nsize=1g\nruntime=100ms\n", "nvme", Goal::Balanced);
    let waiting = figures::waiting(&alone.jobs, None, alone.goal);
    assert!(matches!(remedy::find(&alone, (0, &noop), &waiting, (&seeds, &without), 1, &()), Ok(None)));
}

/// Advice on one of the jobs of examples/flash, cut to some milliseconds, under the four schedulers that a
/// kernel has.
fn on_flash(text: &str, runtime: Duration) -> Advice {
    let mut q = question(text, "980pro", Goal::Balanced);
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
    assert_eq!(a.candidates[a.race.winner()].preset, "noop");
    assert_eq!(a.waiting.jobs, [0], "no job waits: the tail of all counts");
    let bfq = a.candidates.iter().position(|c| c.preset == "bfq").unwrap();
    let [_, throughput, _] = a.race.against(bfq, 0).figures;
    assert!(throughput.unwrap().high < 0.75, "{throughput:?}");
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
    assert_eq!(a.candidates[a.race.winner()].preset, "noop");
    let ns = |preset: &str| cost_of(&a, preset).per_request.as_ns() as f64;
    for (preset, published) in [("mq-deadline", 590.0), ("kyber", 850.0), ("bfq", 1460.0)] {
        let more = ns(preset) - ns("noop");
        assert!((more / published - 1.0).abs() < 0.15, "{preset}: {more} ns, published {published}");
        assert_eq!(cost_of(&a, preset).limit, Limit::Processor, "{preset}");
    }
    assert!((ns("noop") / 2790.0 - 1.0).abs() < 0.15);
    let said = a.verdict(&question("[a]\nrw=read\nsize=1m\n", "980pro", Goal::Balanced)).join(" ");
    assert!(said.contains("the processor holds the load back under none"), "{said}");
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
