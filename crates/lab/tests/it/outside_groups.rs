//! Schedulers from outside that protect groups, in the lab: a job file sets a latency target or weights, and
//! the groups get what these say.

use fairhead_lab::{Answer, Disk, Job, Question};

/// Two groups of random readers on a drive that queues; `settings` are those of each.
fn job(settings: [&str; 2]) -> String {
    let [first, second] = settings;
    format!(
        "[global]\nbs=4k\nrw=randread\nsize=2g\ndirect=1\nioengine=libaio\ntime_based\nruntime=2s\nramp_time=1s\n\
         [first]\niodepth=4\nthinktime=1ms\ncgroup=first\n{first}\n\
         [second]\niodepth=64\ncgroup=second\n{second}\n"
    )
}

fn answer(settings: [&str; 2], scheduler: &str) -> Answer {
    let question = Question {
        job: Job::Text { name: "groups.fio".to_owned(), text: job(settings) },
        disk: Disk::Named("sata_ssd".to_owned()),
        schedulers: vec![scheduler.to_owned()],
        ..Question::default()
    };
    question.answer().unwrap_or_else(|e| panic!("{scheduler}: {e}"))
}

/// The mean latency of the first group's reads, in microseconds, and the reads of both.
fn figures(answer: &Answer) -> (u64, [u64; 2]) {
    let clients = &answer.outcomes[0].clients;
    let mean = clients[0].read.latency_mean().expect("it reads");
    (mean.as_us(), [clients[0].read.calls, clients[1].read.calls])
}

#[test]
fn iolatency_keeps_a_target_of_a_job_file() {
    let (without, reads) = figures(&answer(["", ""], "iolatency"));
    let target = "#!fh_cgroup=latency=200us";
    let kept = answer([target, ""], "iolatency");
    let (with, others) = figures(&kept);
    println!("mean of the first {without} us, and {with} us with a target; reads {reads:?}, {others:?}");
    assert!(without > 300, "nothing to protect: {without} us");
    assert!(with < 240 && others[0] > reads[0], "{with} us, {others:?} reads against {reads:?}");
    assert!(others[1] > reads[1] / 20, "the others starve: {others:?}");
    assert!(kept.table().contains("first") && !kept.table().contains("not kept"), "{}", kept.table());
    // A scheduler that knows no targets says so.
    assert!(answer([target, ""], "noop").table().contains("not kept: latency"), "noop keeps no target");
}

#[test]
fn a_target_that_is_kept_anyway_changes_nothing() {
    let far = answer(["#!fh_cgroup=latency=1s", ""], "iolatency");
    let none = answer(["", ""], "iolatency");
    assert!(far.outcomes[0].clients == none.outcomes[0].clients, "a decision is another");
}

#[test]
fn iocost_shares_by_the_weights_of_a_job_file() {
    let busy = |weights: [u32; 2]| {
        let text = format!(
            "[global]\nbs=4k\nrw=randread\nsize=2g\ndirect=1\nioengine=libaio\niodepth=48\ntime_based\n\
             runtime=2s\nramp_time=3s\n[a]\ncgroup=a\ncgroup_weight={}\n[b]\ncgroup=b\ncgroup_weight={}\n",
            weights[0], weights[1]
        );
        let question = Question {
            job: Job::Text { name: "weights.fio".to_owned(), text },
            disk: Disk::Named("sata_ssd".to_owned()),
            schedulers: vec!["noop".to_owned(), "iocost".to_owned()],
            ..Question::default()
        };
        let outcomes = question.answer().expect("an answer").outcomes;
        [0, 1].map(|i| {
            let reads = |c: usize| outcomes[i].clients[c].read.calls as f64;
            reads(0) / reads(1)
        })
    };
    let [noop, iocost] = busy([300, 100]);
    println!("weights 300 and 100: {noop:.2} to 1 without, {iocost:.2} to 1 under iocost");
    assert!((0.9..1.1).contains(&noop), "{noop}");
    assert!((2.7..3.3).contains(&iocost), "{iocost}");
    let [_, equal] = busy([100, 100]);
    assert!((0.95..1.05).contains(&equal), "{equal}");
}
