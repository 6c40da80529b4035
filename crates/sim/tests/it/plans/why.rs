//! Where clients' time went: the books balance, and say what is known to be so.

use super::plan::Plan;
use super::random;
use fairhead_core::sched::any::PRESETS;
use fairhead_core::{Duration, TaskId};
use fairhead_device::DeviceParams;
use fairhead_sim::why::{Account, Report, SLOWEST};

/// The parts of every client's time are its time, those of every slow call the call, whatever ran.
fn balances(plan: &Plan, report: &Report, what: &str) {
    let outcome = plan.outcome();
    assert_eq!(report.lost, 0, "{what}: the trace lost events");
    for c in &report.clients {
        let elapsed = outcome.clients[c.client].elapsed;
        assert_eq!(c.account.total(), elapsed, "{what}: {} {:#?}", c.name, c.account);
        let raised = c.account.raised_interactive + c.account.raised_soft_real_time;
        assert!(raised <= elapsed && c.account.idled_for_it <= elapsed, "{what}: shares of the time");
    }
    let sum = report.clients.iter().fold(Duration::ZERO, |sum, c| sum + c.account.total());
    assert_eq!(report.total.total(), sum, "{what}: the total");
    assert!(report.slowest.len() <= SLOWEST && report.slowest.is_sorted_by(|a, b| a.took >= b.took));
    for story in &report.slowest {
        assert_eq!(story.account.total(), story.took, "{what}: {story:#?}");
    }
    let slowest = report.clients.iter().map(|c| {
        let o = &outcome.clients[c.client];
        o.latency_max().max(o.sync.latency_max)
    });
    assert_eq!(report.slowest.first().map(|s| s.took), slowest.max().filter(|t| !t.is_zero()), "{what}");
}

fn check(seed: u64, preset: &str) {
    let plan = random::plan(seed, random::DISKS).scheduler(preset);
    if plan.error().is_some() {
        return;
    }
    let all: Vec<usize> = (0..plan.clients()).collect();
    let (plan, report) = plan.explain(&all);
    balances(&plan, &report, &format!("seed {seed} under {preset}"));
}

#[test]
fn the_parts_add_up_under_every_scheduler_whatever_is_drawn() {
    let plans = std::env::var("FAIRHEAD_PLANS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let seeds = plans / 20;
    for (i, preset) in PRESETS.iter().enumerate() {
        // Other draws for each scheduler.
        (0..seeds).for_each(|seed| check(1000 * (i as u64 + 1) + seed, preset.name));
    }
}

const TWO: &str = "[global]\ndirect=1\ntime_based\nruntime=2s\nsize=64m\n\
    [a]\nrw=read\nbs=16k\nfh_think=2ms\n[b]\nrw=randread\nbs=64k\n";

#[test]
fn a_disk_without_queue_serves_one_and_the_other_waits_for_just_that() {
    let (plan, report) = Plan::on("flashcard2010").scheduler("noop").load("two", TWO).explain(&[0, 1]);
    balances(&plan, &report, "two");
    let (a, b) = (&report.clients[0].account, &report.clients[1].account);
    let none = |of: fn(&Account) -> Duration| of(a).is_zero() && of(b).is_zero();
    assert!(none(Account::idled) && none(Account::device), "noop never idles, the card holds one request");
    assert!(none(|x| x.tag) && none(|x| x.throttled) && none(|x| x.paused), "nothing that could be");
    for (mine, other) in [(a, TaskId(2)), (b, TaskId(1))] {
        assert!(mine.blame.iter().all(|b| b.task == other), "each waits for the other only: {mine:?}");
        assert!(!mine.served.is_zero() && !mine.queued().is_zero());
    }
    // While the device works it works for one of the two.
    let both = a.served + b.served;
    let busy = plan.outcome().disk.busy;
    let interrupts = Duration::from_us(100) * plan.outcome().disk.issued;
    assert!(busy <= both && both <= busy + interrupts, "{busy:?} of work, {both:?} on the books");
}

#[test]
fn the_time_that_the_disk_idles_is_on_the_books_of_who_waits() {
    for preset in ["as", "cfq", "cfq-ts2", "cfq-ts1"] {
        let (plan, report) = Plan::on("ide2004").scheduler(preset).load("two", TWO).explain(&[0, 1]);
        balances(&plan, &report, preset);
        let (a, b) = (&report.clients[0].account, &report.clients[1].account);
        // With two clients of one call each, whenever the disk idles, exactly one waits.
        let idled = plan.outcome().disk.idled;
        assert!(idled > Duration::from_ms(100), "{preset} idles for the sequential reader");
        assert_eq!(a.idled() + b.idled(), idled, "{preset}");
        assert!(
            b.blame.iter().all(|x| x.task == TaskId(1) || x.idled.is_zero()),
            "{preset}: never for b itself"
        );
        // What b waited is what a gained: the disk was kept for it while it thought.
        let in_vain = a.idled();
        assert!(a.idled_for_it + b.idled_for_it + in_vain >= b.idled(), "{preset}: {a:?} {b:?}");
    }
}

#[test]
fn a_queueing_disk_keeps_requests_waiting_inside() {
    let text = "[global]\ndirect=1\ntime_based\nruntime=2s\n[a]\nrw=randread\nsize=1g\nnumjobs=8\n";
    let (plan, report) = Plan::on("nas2020").scheduler("noop").load("eight", text).explain(&[0]);
    balances(&plan, &report, "eight");
    let a = &report.total;
    assert!(a.device() > a.served * 3, "seven others are in the drive's own queue: {a:?}");
    assert!(a.queued() < a.served, "there is room for all of them there");
    assert_eq!(report.name(a.blame[0].task).split('.').next(), Some("a"));
}

#[test]
fn of_several_calls_in_flight_the_oldest_counts() {
    let text = "[a]\nrw=randread\nsize=1g\ndirect=1\nioengine=libaio\niodepth=8\nruntime=2s\ntime_based\n";
    let (plan, report) = Plan::on("ide2004").scheduler("deadline").load("deep", text).explain(&[0]);
    balances(&plan, &report, "deep");
    let a = &report.clients[0].account;
    assert!(a.blame.iter().all(|b| b.task == TaskId(1)), "it is alone: it waits for itself");
    assert!(a.queued() > a.served && a.computing < Duration::from_ms(50), "{a:?}");
}

#[test]
fn an_fsync_waits_for_what_was_written_and_for_the_flush() {
    let text = "[a]\nrw=write\nbs=1m\nsize=64m\nfsync=8\n";
    let (plan, report) = Plan::on("nas2020").load("log", text).explain(&[0]);
    balances(&plan, &report, "log");
    let a = &report.total;
    assert!(a.served > plan.outcome().clients[0].elapsed / 2, "{a:?}");
    assert!(a.paused.is_zero() && a.computing < Duration::from_ms(100), "{a:?}");
}

#[test]
fn a_pool_that_is_full_shows() {
    let text = "[global]\ndirect=1\ntime_based\nruntime=2s\nsize=1g\n[r]\nrw=randread\nnumjobs=8\n";
    let small = |h: &mut fairhead_sim::Host| h.nr_requests = Some(4);
    let (plan, report) = Plan::on("ide2004")
        .host("four requests", small)
        .load("full", text)
        .explain(&[0, 1, 2, 3, 4, 5, 6, 7]);
    balances(&plan, &report, "full");
    // Four of eight have a request at any time.
    let share = report.total.tag.as_ms() * 100 / report.total.total().as_ms();
    assert!((40..60).contains(&share), "{share} % of the time: {:?}", report.total);
}

/// One disk serves a stream and random reads, the other a stream alone.
const THREE: &str = "[global]\ndirect=1\ntime_based\nruntime=2s\nsize=64m\n[a]\nrw=read\nbs=16k\nfh_disk=one\n\
    [b]\nrw=randread\nbs=64k\nfh_disk=one\n[c]\nrw=read\nbs=64k\nfh_disk=two\n[d]\nrw=randread\nbs=4k\nfilename=x:y\nfh_disk=one,two\n";

#[test]
fn of_several_disks_each_keeps_those_waiting_whom_it_serves() {
    for preset in ["noop", "deadline", "cfq", "bfq"] {
        let plan = Plan::on("sata2009").scheduler(preset).load("three disks' worth", THREE);
        let (plan, report) = plan.explain(&[0, 2]);
        balances(&plan, &report, preset);
        let (a, c) = (&report.clients[0].account, &report.clients[1].account);
        let blames = |account: &Account, task: u32| {
            account.blame.iter().any(|b| b.task == TaskId(task) && !b.total().is_zero())
        };
        assert!(blames(a, 2) && blames(a, 4) && blames(c, 4), "{preset}: of its own disk: {a:?} {c:?}");
        assert!(!blames(a, 3) && !blames(c, 1) && !blames(c, 2), "{preset}: of the other: {a:?} {c:?}");
        let [one, two] = &report.disks[..] else { panic!("{preset}: {:?}", report.disks) };
        assert_eq!((one.disk.as_str(), two.disk.as_str()), ("one", "two"));
        for (disk, client) in [(one, a), (two, c)] {
            let here = client.total() - client.computing - client.paused - client.throttled;
            assert_eq!(disk.account.total(), here, "{preset}: all that a client waits is on its disk");
            assert_eq!(
                (disk.account.served, &disk.account.blame),
                (client.served, &client.blame),
                "{preset}"
            );
        }
    }
}

/// An fsync of a file on both disks of a mirror waits for two flushes; a read of a stripe for the later of
/// its parts.
#[test]
fn the_parts_add_up_where_a_request_goes_to_several_queues() {
    let load = "[w]\nrw=randwrite\nbs=64k\nsize=16m\nfsync=4\nruntime=3s\n[r]\nrw=read\nbs=1m\nsize=64m\ndirect=1\nruntime=3s\n\
        [b]\nrw=read\nbs=256k\nsize=64m\nruntime=3s\n";
    let stripe = "kind = \"raid0\"\nmembers = [\"sata2009\", \"sata2009\", \"ide2004\"]\nchunk = \"64KiB\"\nqueues = \"per-member\"\n";
    for preset in ["noop", "mq-deadline", "cfq", "bfq"] {
        for text in [None, Some(stripe)] {
            let set = |d: &mut DeviceParams| {
                if let Some(text) = text {
                    *d = DeviceParams::from_toml(text, "a stripe").expect("a valid disk");
                }
            };
            let plan = Plan::on("raid1_2009")
                .disk("a set", set)
                .scheduler(preset)
                .load("a writer and readers", load);
            let (plan, report) = plan.explain(&[0, 1, 2]);
            balances(&plan, &report, &format!("{preset} {text:?}"));
            assert!(report.disks.is_empty(), "a set is one disk");
            let waits = |a: &Account| !a.served.is_zero() && !a.queued().is_zero();
            assert!(report.clients.iter().all(|c| waits(&c.account)), "{preset}: {:?}", report.clients);
        }
    }
}

#[test]
fn programs_have_books_too() {
    let text = "[streams]\nrw=read\nbs=64k\nnumjobs=3\nsize=1g\nruntime=60s\ntime_based\n\
        [film]\nfh_workload=player\nruntime=60s\n[application]\nstartdelay=1s\nfh_workload=startup:bash\nfh_iterations=2\nfh_pause=1s\nexitall\n";
    for preset in ["deadline", "cfq", "kyber"] {
        let (plan, report) =
            Plan::on("nas2020").scheduler(preset).load("programs", text).explain(&[0, 1, 2, 3, 4]);
        balances(&plan, &report, preset);
        let (film, application) = (&report.clients[3].account, &report.clients[4].account);
        assert!(film.paused > film.served, "{preset}: between frames it sleeps: {film:?}");
        assert!(application.paused >= Duration::from_secs(1), "{preset}: and between its starts");
    }
}

#[test]
fn bfq_tells_whom_it_boosts() {
    let text = "[streams]\nrw=read\nbs=64k\nnumjobs=10\nsize=1g\nruntime=60s\ntime_based\n\
        [application]\nstartdelay=9s\nfh_workload=startup:xterm\nexitall\n";
    let (plan, report) = Plan::on("nas2020").scheduler("bfq").load("xterm", text).explain(&[0, 10]);
    balances(&plan, &report, "xterm");
    let (stream, application) = (&report.clients[0].account, &report.clients[1].account);
    let raised = application.raised_interactive;
    assert!(
        raised * 100 > application.total() * 95,
        "all of its start, but for the first computing: {raised}"
    );
    let soon = Duration::from_secs(1);
    assert!(stream.raised_interactive < soon, "ten streams that begin at once are a burst: {stream:?}");
    assert!(
        application.idled_for_it * 4 > application.computing,
        "while it computes the disk is kept for it"
    );
    assert!(report.peak_rate.is_some(), "it has estimated the disk's rate");
}
