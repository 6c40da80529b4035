//! Satisfactions that can be worked out by hand.

use super::*;
use crate::Scenario;
use crate::host::Host;
use crate::job::{JobFile, Kind, parse};
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;

fn jobs(text: &str) -> JobFile {
    parse(text, "t").unwrap()
}

fn scenario(jobs: &JobFile, disk: &str, scheduler: &str, span: Duration) -> Scenario {
    Scenario {
        jobs: jobs.clone(),
        disk: DeviceParams::preset(disk).unwrap(),
        host: Host::for_disk(disk),
        scheduler: scheduler.to_owned(),
        config: (preset(scheduler).unwrap().config)(),
        seed: 1,
        interval: None,
        time_max: Some(span),
        watch: None,
    }
}

#[test]
fn options_say_what_a_job_is_and_fh_kind_overrides_them() {
    for (options, expected) in [
        ("rw=read", Kind::Bulk),
        ("rw=randread\niodepth=1", Kind::Waiting),
        ("rw=randread\ndirect=1\nioengine=libaio\niodepth=4", Kind::Bulk),
        ("rw=randread\niodepth=1\nprioclass=3", Kind::Bulk),
        ("rw=read\nexitall", Kind::Start),
        ("rw=read\nexitall\nruntime=5s", Kind::Bulk),
        ("rw=read\nrate=2m", Kind::Paced),
        ("rw=read\nrate_iops=40\nthinktime=1ms", Kind::Paced),
        ("rw=write\nfsync=1", Kind::Waiting),
        ("rw=write\nsync=dsync", Kind::Waiting),
        ("rw=randread\nthinktime=5ms", Kind::Waiting),
        ("rw=read\nprioclass=1", Kind::Waiting),
        ("rw=read\nprioclass=3", Kind::Bulk),
        ("rw=write\nfsync=1\n#!fh_kind=bulk", Kind::Bulk),
        ("rw=read\n#!fh_kind=start", Kind::Start),
        ("#!fh_workload=startup:xterm", Kind::Start),
    ] {
        let jobs = jobs(&format!("[a]\nsize=64m\n{options}\n[stream]\nrw=read\nsize=1m\n"));
        assert_eq!(kind(&jobs, &jobs.jobs[0]), expected, "{options}");
    }
    let alike = jobs("[a]\nrw=randread\nsize=1m\n[b]\nrw=randread\nsize=1m\n");
    assert_eq!(kind(&alike, &alike.jobs[0]), Kind::Bulk, "beside its like");
    let mistake = parse("[a]\nsize=1m\n#!fh_kind=bulky\n", "t").unwrap_err().to_string();
    assert!(mistake.contains("did you mean 'bulk'"), "{mistake}");
}

#[test]
fn shares_go_by_level_clones_and_weights_of_groups() {
    let of = |text: &str| -> Vec<f64> {
        let load = Load::new(&jobs(text), Duration::from_secs(1), &Emphasis::Even);
        load.parties.iter().map(|p| (p.share * 1000.0).round() / 1000.0).collect()
    };
    let bulk = "rw=read\nsize=1m\n";
    assert_eq!(of(&format!("[a]\n{bulk}[b]\n{bulk}numjobs=3\n")), [0.25, 0.25]);
    // Levels 0 and 4 weigh 8 to 4; the idle class and jobs that wait take no share.
    let mixed = format!(
        "[a]\n{bulk}prioclass=2\nprio=0\n[b]\n{bulk}prioclass=2\nprio=4\n[c]\n{bulk}prioclass=3\n[d]\n{bulk}thinktime=1ms\n"
    );
    assert_eq!(of(&mixed), [0.667, 0.333, 1.0, 1.0]);
    let groups = format!(
        "[a]\n{bulk}cgroup=a\ncgroup_weight=300\n[b]\n{bulk}cgroup=b\ncgroup_weight=100\n[c]\n{bulk}cgroup=b\n"
    );
    assert_eq!(of(&groups), [0.75, 0.125, 0.125]);
    // However many there are, each may expect a twentieth.
    assert_eq!(of(&format!("[a]\n{bulk}numjobs=100\n")), [0.05]);
}

#[test]
fn jobs_weigh_by_class_group_and_emphasis() {
    let text =
        "[global]\nrw=read\nsize=1m\n[a]\ncgroup=a\ncgroup_weight=400\n[b]\nprioclass=3\n[c]\nrate=1m\n";
    let of = |emphasis: Emphasis| -> Vec<f64> {
        let load = Load::new(&jobs(text), Duration::from_secs(1), &emphasis);
        load.parties.iter().map(|p| p.weight).collect()
    };
    assert_eq!(of(Emphasis::Even), [4.0, 0.1, 1.0]);
    assert_eq!(of(Emphasis::Kind(Kind::Paced)), [4.0, 0.1, 4.0]);
    assert_eq!(of(Emphasis::Job("b".to_owned())), [4.0, 0.4, 1.0]);
}

#[test]
fn a_load_is_satisfied_by_the_weighted_geometric_mean() {
    let text = "[global]\nrw=read\nsize=1m\n[a]\n[b]\nprioclass=3\n";
    let load = Load::new(&jobs(text), Duration::from_secs(1), &Emphasis::Even);
    let of = |u: [f64; 2]| libm::exp(log_of_all(&load.parties, u));
    assert!((of([1.0, 1.0]) - 1.0).abs() < 1e-12);
    // exp((ln 0.5 + 0.1 ln 0.001) / 1.1)
    assert!((of([0.5, 0.0]) - 0.2841).abs() < 1e-3, "{}", of([0.5, 0.0]));
}

/// Alone, each job is satisfied. Two readers on one disk of flash have half each of what one has alone, which
/// is all that they may expect, or a little more: one by itself leaves the drive idle between its calls.
#[test]
fn who_is_alone_is_satisfied_and_equal_halves_are() {
    let span = Duration::from_ms(500);
    let bulk = "[global]\nrw=read\nbs=128k\nsize=64m\ndirect=1\nruntime=500ms\ntime_based\n";
    let of = |text: &str| -> Vec<f64> {
        let jobs = jobs(text);
        let load = Load::new(&jobs, span, &Emphasis::Even);
        let base = scenario(&load.jobs, "sata_ssd", "noop", span);
        let alone = Alone::measure(&load, &base, 1).unwrap();
        let outcome = simulate(&base).unwrap();
        (0..load.parties.len()).map(|j| load.of_job(j, &got(&load, j, &outcome), &alone)).collect()
    };
    assert!(of(&format!("{bulk}[a]\n"))[0] > 0.99);
    let two = of(&format!("{bulk}[a]\n[b]\n"));
    assert!(two.iter().all(|u| (0.95..1.2).contains(u)), "{two:?}");
}

/// A start beside a stream, cut after a tenth of a second: it says so, and that it took longer.
#[test]
fn what_is_not_done_is_cut_off_and_not_measured() {
    let text =
        "[stream]\nrw=read\nbs=1m\nsize=1g\n[start]\nsize=1g\n#!fh_workload=startup:lowriter\nexitall\n";
    let of = |span: Duration| {
        let load = Load::new(&jobs(text), span, &Emphasis::Even);
        let outcome = simulate(&scenario(&load.jobs, "nas2020", "bfq", span)).unwrap();
        got(&load, 1, &outcome)
    };
    let cut = of(Duration::from_ms(100));
    assert!(cut.is_cut && cut.amount < 0.11, "{cut:?}");
    let whole = of(Duration::from_secs(30));
    assert!(!whole.is_cut && whole.amount > 1.0, "{whole:?}");
}

/// Of a rate counts what was got of it, and what of that came in time.
#[test]
fn a_rate_that_is_kept_late_is_half_kept() {
    let text = "[film]\nrw=read\nbs=256k\nsize=64m\nrate=2m\ndirect=1\nruntime=2s\ntime_based\n";
    let span = Duration::from_secs(2);
    let load = Load::new(&jobs(text), span, &Emphasis::Even);
    let outcome = simulate(&scenario(&load.jobs, "nas2020", "noop", span)).unwrap();
    let in_time = got(&load, 0, &outcome);
    assert_eq!(in_time.figures, [1.0]);
    let mut late = outcome;
    // A call of 256 KiB is due in 125 ms.
    let calls = late.clients[0].read.calls;
    (0..calls).for_each(|_| late.clients[0].read.record(0, Duration::from_ms(126)));
    let half = got(&load, 0, &late).figures[0];
    assert!((half - 0.5).abs() < 1e-9, "{half}");
}
