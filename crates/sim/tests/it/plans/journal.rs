//! What a run's journal says is what its figures say, and cannot be otherwise.

use super::plan::Plan;
use super::random;
use fairhead_core::sched::any::PRESETS;
use fairhead_core::trace::Reason;
use fairhead_core::{Duration, Hold, TaskId};
use fairhead_device::DeviceOp;
use fairhead_sim::journal::{Action, CallKind, Collector, Dropped, Request};
use fairhead_sim::metrics::OpStats;

/// What holds for every run.
fn holds(plan: &Plan, journal: &Collector, what: &str) {
    assert_eq!(journal.dropped, Dropped::default(), "{what}: no plan is that long");
    let end = journal.end.unwrap_or_else(|| panic!("{what}: the journal has an end"));
    assert_eq!((end.lost, end.at), (0, plan.outcome().elapsed), "{what}: events lost, and the end");
    requests(journal, what);
    carriers(journal, what);
    events(journal, what);
    disk(plan, journal, what);
    calls(plan, journal, what);
    service(plan, journal, what);
}

/// Each request that was made is in the journal once, and its times are in order.
fn requests(journal: &Collector, what: &str) {
    let mut ids: Vec<u64> = journal.requests.iter().map(|r| r.id).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..ids.len() as u64), "{what}: a number is missing, or there twice");
    let ends = journal.requests.iter().filter_map(|r| r.completed);
    assert!(ends.is_sorted(), "{what}: they are in order of completion");
    for r in &journal.requests {
        let times = [Some(r.made), r.inserted, r.issued, r.begun, r.finished, r.completed];
        let known: Vec<Duration> = times.iter().copied().flatten().collect();
        assert!(known.is_sorted(), "{what}: {r:?}");
        assert!(times[..known.len()].iter().all(Option::is_some), "{what}: a step is missing in {r:?}");
        assert!(
            r.issued.is_none() || r.chosen != Reason::None || r.kind.op == DeviceOp::Flush,
            "{what}: {r:?}"
        );
    }
}

fn by_id(journal: &Collector) -> Vec<&Request> {
    let mut all: Vec<&Request> = journal.requests.iter().collect();
    all.sort_by_key(|r| r.id);
    all
}

/// A request that was merged shares the fate of one that was not, which had it in it.
fn carriers(journal: &Collector, what: &str) {
    let all = by_id(journal);
    let mut extent: Vec<Option<(u64, u64)>> = vec![None; all.len()];
    for e in journal.events.iter().filter(|e| e.action == Action::Issue) {
        let id = usize::try_from(e.request.unwrap_or_else(|| panic!("{what}: {e:?} of nothing"))).unwrap();
        assert!(extent[id].is_none(), "{what}: {e:?} was issued before");
        extent[id] = Some((e.sector.0, (e.sector + e.sectors).0));
    }
    let mut covered: Vec<u64> = extent.iter().map(|e| e.map_or(0, |(a, b)| b - a)).collect();
    for r in &all {
        let carrier = all[usize::try_from(r.merged_into.unwrap_or(r.id)).unwrap()];
        assert_eq!(carrier.merged_into, None, "{what}: {r:?} is in {carrier:?}");
        assert_eq!(
            (r.issued, r.begun, r.finished, r.completed, r.chosen),
            (carrier.issued, carrier.begun, carrier.finished, carrier.completed, carrier.chosen),
            "{what}: {r:?} is in {carrier:?}"
        );
        let id = usize::try_from(carrier.id).unwrap();
        assert_eq!(r.issued.is_some(), extent[id].is_some(), "{what}: {r:?}");
        if let Some((from, to)) = extent[id] {
            assert!(
                from <= r.sector.0 && (r.sector + r.sectors).0 <= to,
                "{what}: {r:?} is not in {from} to {to}"
            );
            covered[id] -= u64::from(r.sectors.0);
        }
    }
    assert!(covered.iter().all(|left| *left == 0), "{what}: sectors were issued that no call asked for");
}

/// Events are in order of time, and those of a request in order of its life, each once.
fn events(journal: &Collector, what: &str) {
    assert!(journal.events.is_sorted_by_key(|e| e.at), "{what}: the order of events");
    let mut life: Vec<Vec<Action>> = vec![Vec::new(); journal.requests.len()];
    for e in journal.events.iter().filter(|e| e.action != Action::Note) {
        life[usize::try_from(e.request.expect("only notes are of none")).unwrap()].push(e.action);
    }
    for r in &journal.requests {
        let life: String = life[usize::try_from(r.id).unwrap()].iter().map(|a| a.letter()).collect();
        let is_life = match (r.kind.op, r.merged_into, r.completed) {
            (DeviceOp::Flush, ..) => ["QDC", "QD"].contains(&life.as_str()),
            (_, None, Some(_)) => life == "QIDC",
            (_, None, None) => "QID".starts_with(&life) || ["QM", "QF", "QIJ"].contains(&life.as_str()),
            (_, Some(_), _) => ["QM", "QF", "QIJ"].contains(&life.as_str()),
        };
        assert!(is_life, "{what}: the life of {r:?} is {life}");
    }
}

/// The disk is busy while it has a command, and idle else: both together are the time of the run, also if it
/// never goes idle.
fn busy(plan: &Plan, journal: &Collector, what: &str) {
    let (o, members) = (plan.outcome(), journal.run.as_ref().expect("it began").members);
    let (mut busy, mut idle) = (Duration::ZERO, Duration::ZERO);
    for member in 0..members {
        let issued = journal.requests.iter().filter(|r| r.member == member && r.merged_into.is_none());
        let mut held: Vec<(Duration, Duration)> =
            issued.filter_map(|r| Some((r.issued?, r.finished.unwrap_or(o.elapsed)))).collect();
        held.sort_unstable();
        let mut until = Duration::ZERO;
        for (from, to) in held {
            idle += from.saturating_sub(until);
            busy += to.saturating_sub(until.max(from));
            until = until.max(to);
        }
        idle += o.elapsed - until;
    }
    let members = u64::from(members);
    assert_eq!(busy + idle, o.elapsed * members, "{what}: at any time it is one or the other");
    assert_eq!(busy / members, o.disk.busy, "{what}: busy");
    let series = o.disk_series.iter().fold(Duration::ZERO, |sum, p| sum + p.busy);
    assert!(series <= o.disk.busy, "{what}: {series:?} in intervals, {:?} in all", o.disk.busy);
    assert!(o.disk_series.iter().all(|p| p.busy <= Duration::from_secs(1)), "{what}: no second has more");
}

/// Counts, bytes and idle time are those of the outcome.
fn disk(plan: &Plan, journal: &Collector, what: &str) {
    let (d, run) = (&plan.outcome().disk, journal.run.as_ref().expect("it began"));
    let members = u64::from(run.members);
    let issued = journal
        .events
        .iter()
        .filter(|e| e.action == Action::Issue && e.kind.is_some_and(|k| k.op != DeviceOp::Flush));
    assert_eq!(issued.count() as u64, d.issued, "{what}: issued");
    let merged = journal
        .events
        .iter()
        .filter(|e| matches!(e.action, Action::BackMerge | Action::FrontMerge) && e.reason == Reason::None);
    assert_eq!(merged.count() as u64, d.merged, "{what}: merged as they came");
    let bytes =
        |op| -> u64 { journal.requests.iter().filter(|r| r.kind.op == op).map(|r| r.sectors.bytes()).sum() };
    assert_eq!(bytes(DeviceOp::Read), d.read_bytes, "{what}: bytes asked for");
    assert_eq!(bytes(DeviceOp::Write), d.written_bytes * members, "{what}: bytes sent");
    busy(plan, journal, what);
    let idled = journal.idles.iter().fold(Duration::ZERO, |sum, i| sum + (i.to - i.from));
    assert_eq!(idled / members, d.idled, "{what}: idled on purpose");
    for i in &journal.idles {
        assert!(i.from < i.to && i.to <= plan.outcome().elapsed, "{what}: {i:?}");
        assert_eq!(i.hold == Hold::IdleClass, i.reason == Reason::None, "{what}: {i:?}");
    }
}

/// The calls are those that the clients' figures count.
fn calls(plan: &Plan, journal: &Collector, what: &str) {
    for (i, c) in plan.outcome().clients.iter().enumerate() {
        for (asked, stats) in [
            (CallKind::Read, &c.read),
            (CallKind::Write, &c.write),
            (CallKind::Trim, &c.trim),
            (CallKind::Sync, &c.sync),
        ] {
            let mut mine = OpStats::default();
            let of = journal.calls.iter().filter(|k| k.client == i && k.kind == asked && k.measured);
            for k in of {
                let took = k.ended.expect("what is measured has ended") - k.began;
                mine.calls += 1;
                mine.bytes += k.bytes;
                mine.latency_sum += took;
                mine.latency_max = mine.latency_max.max(took);
            }
            assert_eq!(
                (mine.calls, mine.bytes, mine.latency_sum, mine.latency_max),
                (stats.calls, stats.bytes, stats.latency_sum, stats.latency_max),
                "{what}: {asked:?} of {}",
                c.name
            );
        }
        let lanes = journal.calls.iter().filter(|k| k.client == i).map(|k| k.lane).max().unwrap_or(0);
        for lane in 0..=lanes {
            let mine = journal.calls.iter().filter(|k| (k.client, k.lane) == (i, lane));
            let mut free = Duration::ZERO;
            for k in mine {
                assert!(k.began >= free, "{what}: {k:?} begins before the one before has ended");
                free = k.ended.unwrap_or(Duration::MAX);
            }
        }
    }
    let of_calls: u64 = journal.calls.iter().map(|c| u64::from(c.requests)).sum();
    let named = journal.requests.iter().filter(|r| r.call.is_some()).count();
    assert_eq!(of_calls, named as u64, "{what}: requests that calls made");
}

/// A device works on one thing at a time, when it has something to do; that is its busy time.
fn service(plan: &Plan, journal: &Collector, what: &str) {
    let run = journal.run.as_ref().expect("it began");
    let (mut busy, mut served, mut all_over) = (Duration::ZERO, Duration::ZERO, true);
    for member in 0..run.members {
        let mut mine: Vec<&Request> =
            journal.requests.iter().filter(|r| r.member == member && r.merged_into.is_none()).collect();
        all_over &= mine.iter().all(|r| r.finished.is_some() || r.issued.is_none());
        mine.sort_by_key(|r| (r.finished.unwrap_or(Duration::MAX), r.begun));
        let mut free = Duration::ZERO;
        for r in &mine {
            let (Some(begun), Some(finished)) = (r.begun, r.finished) else { continue };
            assert!(free <= begun, "{what}: {r:?} is worked on while another is, until {free:?}");
            assert!(run.queue_depth > 1 || r.issued >= Some(free), "{what}: a disk without queue has two");
            served += finished - begun;
            free = finished;
        }
        mine.sort_by_key(|r| r.issued);
        let mut free = Duration::ZERO;
        for r in &mine {
            let (Some(issued), Some(finished)) = (r.issued, r.finished) else { continue };
            busy += finished.saturating_sub(issued.max(free));
            free = free.max(finished);
        }
    }
    let n = u64::from(run.members);
    assert!(served <= busy, "{what}: {served:?} of service in {busy:?} of work");
    assert!(
        run.queue_depth > 1 || served == busy,
        "{what}: without a queue all work is on the request there"
    );
    // Work that has not ended in the journal is not counted as busy before it ends.
    if all_over {
        assert_eq!(busy / n, plan.outcome().disk.busy, "{what}: busy");
    }
}

/// Calls that find their data in memory can be millions a second; a plan with more than this is not kept
/// whole.
const CALLS_MAX: u64 = 1_000_000;

#[test]
fn every_journal_says_what_the_figures_say() {
    let plans = std::env::var("FAIRHEAD_PLANS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let disks = [random::DISKS, &["sata_ssd"]].concat();
    let (mut held, mut too_long) = (0, 0);
    for (i, preset) in PRESETS.iter().enumerate() {
        for seed in 0..plans / 20 {
            // Other draws for each scheduler, and others than for the books.
            let seed = 500_000 + 1000 * i as u64 + seed;
            let plan = random::plan(seed, &disks).scheduler(preset.name);
            if plan.error().is_some() {
                continue;
            }
            let plan = plan.run();
            if plan.calls() > CALLS_MAX {
                too_long += 1;
                continue;
            }
            let (plan, journal) = plan.record();
            holds(&plan, &journal, &format!("seed {seed} under {}", preset.name));
            held += 1;
        }
    }
    assert!(held > 20 * too_long, "{held} plans were looked at, {too_long} were too long to keep");
}

/// A reader in sequence that thinks, one at random, and a client that writes through the page cache and
/// syncs.
const THREE: &str = "[global]\ntime_based\nruntime=2s\nsize=64m\n[a]\nrw=read\nbs=16k\ndirect=1\nfh_think=2ms\n\
    [b]\nrw=randread\nbs=64k\ndirect=1\n[w]\nrw=write\nbs=64k\nfsync=16\n";

#[test]
fn whom_the_disk_idles_for_is_told() {
    for (preset, reason) in
        [("as", Reason::Anticipate), ("cfq", Reason::SliceIdle), ("cfq-ts2", Reason::SliceIdle)]
    {
        let (plan, journal) = Plan::on("ide2004").scheduler(preset).load("three", THREE).record();
        holds(&plan, &journal, preset);
        let for_a: Vec<_> = journal.idles.iter().filter(|i| i.task == Some(TaskId(1))).collect();
        let time = for_a.iter().fold(Duration::ZERO, |sum, i| sum + (i.to - i.from));
        assert!(time > Duration::from_ms(50), "{preset}: it waits for the sequential reader, {time:?}");
        assert!(for_a.iter().any(|i| i.reason == reason), "{preset}: {:?}", for_a.first());
        assert!(for_a.iter().all(|i| matches!(i.hold, Hold::Anticipate | Hold::SliceIdle)));
    }
}

#[test]
fn what_is_read_ahead_is_told_from_what_is_asked_for() {
    let text = "[r]\nrw=read\nbs=4k\nsize=8m\n";
    let (plan, journal) = Plan::on("nas2020").load("a stream", text).record();
    holds(&plan, &journal, "a stream");
    // 2048 pages in windows of 64, after a few smaller ones.
    let (ahead, asked): (Vec<&Request>, Vec<&Request>) = journal.requests.iter().partition(|r| r.kind.ahead);
    assert!(asked.len() < 5 && ahead.len() >= 31, "{} asked for, {} ahead", asked.len(), ahead.len());
    let bytes: u64 = journal.requests.iter().map(|r| r.sectors.bytes()).sum();
    assert_eq!(bytes, 8 << 20, "each page is read once");
}

#[test]
fn a_head_is_where_the_last_request_ended() {
    let text = "[r]\nrw=randwrite\nbs=4k\ndirect=1\nsize=1g\nnumber_ios=50\n";
    let through = |d: &mut fairhead_device::DeviceParams| {
        if let fairhead_device::DeviceParams::Disk(p) = d {
            p.cache_mode = fairhead_device::CacheMode::WriteThrough;
        }
    };
    let plan = Plan::on("ide2004").disk("without a write cache", through).load("writes", text);
    let (plan, journal) = plan.record();
    holds(&plan, &journal, "writes");
    for r in &journal.requests {
        let at = journal.heads.iter().rfind(|h| Some(h.at) <= r.finished).expect("it has moved");
        assert_eq!(at.sector, r.sector + r.sectors, "{r:?}");
    }
    let (_, none) = Plan::on("flashcard2010").load("writes", text).record();
    assert!(none.heads.is_empty(), "a card has none");
}
