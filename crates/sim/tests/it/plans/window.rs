//! Why a client was slow in a part of the run: the part and the rest are the whole, and the client that is
//! known to be the cause is named.

use super::plan::Plan;
use super::random;
use fairhead_core::Duration;
use fairhead_core::sched::any::PRESETS;
use fairhead_sim::why::{KEPT, Kind, Report, SLOWEST, Story, When, Window};

const fn ms(from: u64, to: u64) -> When {
    When::Within(Window { from: Duration::from_ms(from), to: Duration::from_ms(to) })
}

/// The steps of a story follow each other without a gap.
fn tells_all(story: &Story, what: &str) {
    let mut at = story.ended.saturating_sub(story.took);
    for step in &story.steps {
        assert!(step.from == at && step.from < step.to, "{what}: a gap or nothing at all in {story:#?}");
        assert_eq!(step.account.total(), step.to - step.from, "{what}: {step:#?}");
        at = step.to;
    }
    assert!(story.took.is_zero() || at == story.ended, "{what}: the end is missing in {story:#?}");
    assert_eq!(story.account.total(), story.took, "{what}: {story:#?}");
}

/// What holds of any part of any run.
fn divides(plan: &Plan, whole: &Report, report: &Report, what: &str) {
    let told = report.window.as_ref().expect("it was asked about");
    let Window { from, to } = told.window;
    assert_eq!(told.inside.total() + told.outside.total(), report.total.total(), "{what}: two parts");
    assert_eq!(report.total.total(), whole.total.total(), "{what}: what was asked changes no book");
    assert_eq!(report.total.served, whole.total.served, "{what}");
    assert_eq!(report.total.idled(), whole.total.idled(), "{what}");
    let took = |r: &Report| r.slowest.iter().map(|s| (s.took, s.ended)).collect::<Vec<_>>();
    assert_eq!(took(report), took(whole), "{what}: the slowest of all");
    for (c, before) in report.clients.iter().zip(&whole.clients) {
        assert_eq!(c.account.total(), before.account.total(), "{what}: {}", c.name);
    }
    assert!(told.slowest.is_sorted_by(|a, b| a.took >= b.took) && told.slowest.len() <= SLOWEST, "{what}");
    for story in &told.slowest {
        assert!(story.ended > from && story.ended.saturating_sub(story.took) < to, "{what}: {story:#?}");
        tells_all(story, what);
    }
    let of = |i: usize| {
        let o = &plan.outcome().clients[i];
        o.read.calls + o.write.calls + o.trim.calls + o.sync.calls
    };
    let all: u64 = report.clients.iter().map(|c| of(c.client)).sum();
    assert_eq!(told.calls.ended + told.calls_outside.ended, all, "{what}: calls");
    let is_inside = |at: Duration| from <= at && at < to;
    assert!(told.decisions.len() <= KEPT && told.decisions.iter().all(|d| is_inside(d.at)), "{what}");
    assert!(told.idles.iter().all(|i| from <= i.from && i.from < i.to && i.to <= to), "{what}");
    assert_eq!(told.cause.is_none(), told.inside.total() == told.inside.paused, "{what}: {:?}", told.cause);
    assert!(!report.sentences().is_empty(), "{what}");
}

#[test]
fn a_part_and_the_rest_are_the_whole_whatever_is_drawn() {
    let plans: u64 = std::env::var("FAIRHEAD_PLANS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    for (i, preset) in PRESETS.iter().enumerate().step_by(usize::try_from(480 / plans.clamp(1, 480)).unwrap())
    {
        let seed = 700_000 + i as u64;
        let plan = random::plan(seed, random::DISKS).scheduler(preset.name);
        if plan.error().is_some() {
            continue;
        }
        let all: Vec<usize> = (0..plan.clients()).collect();
        let (mut plan, whole) = plan.explain(&all);
        let end = plan.outcome().elapsed;
        let at = |percent: u64| end * percent / 100;
        let parts = [(i as u64 * 4 % 90, 97), (99, 300)].map(|(a, b)| Window { from: at(a), to: at(b) });
        for when in parts.map(When::Within).into_iter().chain([When::Worst]) {
            let report;
            (plan, report) = plan.answer(&all, when);
            if report.window.is_some() {
                divides(&plan, &whole, &report, &format!("seed {seed} under {}, {when:?}", preset.name));
            }
        }
    }
}

#[test]
fn a_part_has_as_much_of_each_client_as_it_ran() {
    let text = "[global]\ndirect=1\ntime_based\nsize=64m\n[a]\nrw=randread\nruntime=2s\nioengine=libaio\niodepth=4\n\
        [b]\nrw=read\nstartdelay=1500ms\nruntime=1s\n";
    let plan = || Plan::on("ide2004").scheduler("cfq").load("two", text);
    let (plan_run, report) = plan().answer(&[0, 1], ms(1234, 1789));
    // a all the time, b from when it began.
    let told = report.window.as_ref().unwrap();
    assert_eq!(told.inside.total(), Duration::from_ms(1789 - 1234 + 1789 - 1500));
    divides(&plan_run, &plan().explain(&[0, 1]).1, &report, "two");
}

/// A reader, and others that begin after two seconds, for one.
const GUEST: &str = "[global]\ndirect=1\ntime_based\nsize=1g\n[host]\nrw=randread\nruntime=5s\n\
    [guest]\nrw=randread\nbs=256k\nstartdelay=2s\nruntime=1s\nnumjobs=4\n";

#[test]
fn the_worst_part_is_when_the_guest_was_there_and_he_is_to_blame() {
    for (disk, kind) in [("ide2004", Kind::Queued), ("nas2020", Kind::Behind)] {
        let plan = || Plan::on(disk).scheduler("noop").load("a guest", GUEST);
        let (_, report) = plan().answer(&[0], When::Worst);
        let told = report.window.as_ref().unwrap();
        let (from, to) = (told.window.from, told.window.to);
        // A tenth of the run.
        let len = (to - from).as_ms();
        assert!(told.picked && (490..=520).contains(&len), "{disk}: {:?}", told.window);
        assert!(
            from >= Duration::from_ms(1950) && to <= Duration::from_ms(3100),
            "{disk}: {:?}",
            told.window
        );
        let cause = told.cause.as_ref().unwrap();
        assert_eq!((cause.kind, cause.job.as_deref()), (kind, Some("guest")), "{disk}: {cause:?}");
        assert_eq!(cause.tasks.len(), 4, "{disk}: each of them");
        assert!(cause.usual.is_some_and(|usual| usual * 5 < cause.time), "{disk}: {cause:?}");
        let first = &report.sentences()[0];
        assert!(first.starts_with("host was slow when it was slowest, from "), "{first}");
        assert!(first.contains("guest (4 clients)"), "{first}");
        // Before the guest came, nothing delayed it.
        let (_, report) = plan().answer(&[0], ms(500, 1500));
        let (cause, said) = (report.window.as_ref().unwrap().cause.clone().unwrap(), report.sentences());
        assert_eq!((cause.kind, cause.job), (Kind::Served, None), "{disk}");
        assert!(said[0].starts_with("host was no slower from 500 ms to 1.50 s"), "{said:?}");
    }
}

#[test]
fn idling_for_another_is_named_with_whom_it_was_for() {
    // A sequential reader that thinks comes beside one at random; anticipation waits for it.
    let text = "[global]\ndirect=1\ntime_based\nsize=64m\n[b]\nrw=randread\nbs=4k\nruntime=3s\n\
        [a]\nrw=read\nbs=16k\nfh_think=4ms\nstartdelay=1s\nruntime=1s\n";
    let (_, report) =
        Plan::on("ide2004").scheduler("as").load("one who thinks", text).answer(&[0], ms(1200, 1800));
    let (told, said) = (report.window.as_ref().unwrap(), report.sentences());
    let cause = told.cause.as_ref().unwrap();
    assert_eq!((cause.kind, cause.job.as_deref()), (Kind::Idled, Some("a")), "{said:?}");
    let idled = told.idles.iter().fold(Duration::ZERO, |sum, i| sum + (i.to - i.from));
    // b is the only one that waits whenever the disk idles; while the plug is in, the books say so instead.
    assert!(cause.time <= idled && idled < cause.time + Duration::from_ms(2), "{cause:?} of {idled:?}");
    assert!(said.iter().any(|s| s.starts_with("For a it did so ")), "{said:?}");
}

#[test]
fn who_writes_too_much_is_held_back_and_who_is_limited_hears_of_it() {
    let small = |h: &mut fairhead_sim::Host| h.memory = 16 << 20;
    let text = "[w]\nrw=write\nbs=64k\nsize=256m\n";
    let plan = Plan::on("ide2004").host("little memory", small).load("a writer", text);
    let (_, report) = plan.answer(&[0], When::Worst);
    let cause = report.window.as_ref().unwrap().cause.clone().unwrap();
    assert_eq!(cause.kind, Kind::Throttled, "{cause:?} {:?}", report.sentences());
    let text =
        "[r]\nrw=read\nbs=64k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\ncgroup=g\n#!fh_cgroup=riops=20\n";
    let (_, report) = Plan::on("ide2004").load("a limited reader", text).answer(&[0], When::Worst);
    let said = report.sentences();
    assert!(said.iter().any(|s| s.starts_with("The limit of its group was used up")), "{said:?}");
}

#[test]
fn a_call_that_the_end_of_the_run_cuts_off_is_told() {
    let text = "[s]\nrw=read\nbs=16m\ndirect=1\nsize=64m\n";
    let plan = Plan::on("ide2004").scheduler("noop").load("large reads", text);
    let (plan, report) = plan.stop_at(300).answer(&[0], When::Worst);
    let told = report.window.as_ref().unwrap();
    let story = &told.slowest[0];
    assert!(!story.over && story.ended == plan.outcome().elapsed, "{story:?}");
    tells_all(story, "cut off");
}

#[test]
fn outside_of_its_time_nobody_was_slow() {
    let text = "[a]\nrw=randread\ndirect=1\nsize=64m\nnumber_ios=10\n";
    let (_, report) = Plan::on("ide2004").load("ten reads", text).answer(&[0], ms(100_000, 101_000));
    assert_eq!(report.sentences(), ["a did nothing from 100 s to 101 s."]);
}
