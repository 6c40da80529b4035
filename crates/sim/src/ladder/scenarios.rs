//! The scenarios: for each switch the load that it was written for.
//!
//! Where a figure of the claim comes from is said with each. Claims are the descriptions', minimum sizes follow from the
//! mechanism as the comment says; none was changed after its first run.

use super::{Measure, Scenario};

/// Ten sequential readers, as the S suite has them.
macro_rules! ten_streams {
    () => {
        "[streams]\nrw=read\nbs=4k\nsize=500m\nnumjobs=10\nruntime=200s\ntime_based\n"
    };
}

/// All of them, in the order of the patches.
pub const SCENARIOS: &[Scenario] = &[
    // Two groups of equal weight: half each, whatever they hold. Without groups one process of five gets a fifth, so
    // 2.5 times; less the slack of a short run.
    Scenario {
        switch: "hierarchy",
        claim: "a group of one process gets as much as a group of four",
        jobs: "[global]\nrw=read\nbs=1m\ndirect=1\nsize=2g\nruntime=20s\ntime_based\n\
            [one]\ncgroup=a\ncgroup_weight=100\n[four]\ncgroup=b\ncgroup_weight=100\nnumjobs=4\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::SharePermille("one"),
        factor_pct: 180,
        reference: None,
    },
    // Target of the S suite's interleaved test: that of one sequential reader; acceptance: nine tenths. In queues of
    // their own each looks random: at least half as much again.
    Scenario {
        switch: "queue_merge",
        claim: "interleaved readers get nine tenths of what one sequential reader gets",
        jobs: "[readers]\nfilename=/dev/sdx\noffset=1g\nrw=read\nbs=16k\ndirect=1\nnumjobs=5\noffset_increment=16k\n\
            zonemode=strided\nzonesize=16k\nzoneskip=64k\nruntime=20s\ntime_based\n",
        disk: "nas2020",
        low_latency: true,
        measure: Measure::DiskKiBps,
        factor_pct: 150,
        reference: Some((
            "[reader]\nfilename=/dev/sdx\noffset=1g\nrw=read\nbs=16k\ndirect=1\nruntime=20s\ntime_based\n",
            90,
        )),
    },
    // Idled for, eight readers use a drive that does many things at once for one at a time.
    Scenario {
        switch: "asymmetric_idling",
        claim: "equal readers keep a queueing drive busy together",
        jobs: "[readers]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nnumjobs=8\nruntime=5s\ntime_based\n",
        disk: "sata_ssd",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 200,
        reference: None,
    },
    // Twenty processes begin at once and all are raised for seconds; an application that starts then is one of
    // twenty-one instead of thirty times as heavy as each.
    Scenario {
        switch: "bursts",
        claim: "an application starts quickly although twenty services started a second before",
        jobs: "[services]\nrw=read\nbs=64k\nsize=500m\nnumjobs=20\nruntime=100s\ntime_based\n\
            [application]\nstartdelay=1s\nfh_workload=startup:xterm\nexitall\n",
        disk: "nas2020",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 200,
        reference: None,
    },
    // A process that thinks for 6 ms between blocks is worth no idling of 8 ms: with two streams it kept the disk to
    // itself for a third of the time or more.
    Scenario {
        switch: "throughput_boost",
        claim: "who thinks for longer than half of slice_idle does not keep the disk idle",
        jobs: "[global]\nsize=2g\nruntime=20s\ntime_based\n[thinker]\nrw=read\nbs=4k\ndirect=1\nthinktime=6ms\n\
            [streams]\nrw=read\nbs=64k\nnumjobs=2\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 130,
        reference: None,
    },
    // Two processes with 32 calls in flight each: what a queue swallows in a slot is not what the disk serves. An
    // estimate within a fifth, and half as far off as before.
    Scenario {
        switch: "rate_estimator",
        claim: "a deep queue in the drive is not taken for speed",
        jobs: "[readers]\nrw=read\nbs=1m\ndirect=1\nioengine=libaio\niodepth=32\nsize=2g\nnumjobs=2\nruntime=30s\ntime_based\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::RateErrorPermille,
        factor_pct: 200,
        reference: Some(("[reader]\nrw=read\nbs=1m\ndirect=1\nsize=2g\nruntime=20s\ntime_based\n", 20)),
    },
    // Four random reads take some 40 ms, a third of a slot. Paying for a third instead of all of it, the slow process
    // comes back before the streams have had a full round.
    Scenario {
        switch: "fair_writes",
        claim: "a slow process that does little pays for its time, not for a whole budget",
        jobs: "[global]\nsize=1g\nruntime=30s\ntime_based\n[slow]\nrw=randread\nbs=4k\ndirect=1\nthinktime=30ms\n\
            thinktime_blocks=4\n[streams]\nrw=read\nbs=64k\nnumjobs=3\n",
        disk: "ide2004",
        low_latency: false,
        measure: Measure::MilliIops("slow"),
        factor_pct: 150,
        reference: None,
    },
    // Acceptance: at most 1.3 times the idle time with ten sequential readers. Published: several times faster.
    Scenario {
        switch: "interactive",
        claim: "an application starts beside ten streams nearly as on an idle disk",
        jobs: concat!(
            ten_streams!(),
            "[application]\nstartdelay=5s\nfh_workload=startup:xterm\nfh_iterations=2\nexitall\n"
        ),
        disk: "nas2020",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 300,
        reference: Some((
            "[application]\nstartdelay=5s\nfh_workload=startup:xterm\nfh_iterations=2\n",
            130,
        )),
    },
    // The film is raised as interactive when it starts, at most for some 10 s; what counts is the rest of its 30 s.
    Scenario {
        switch: "soft_realtime",
        claim: "a film beside ten streams drops no frame",
        jobs: concat!(ten_streams!(), "[film]\nstartdelay=3s\nruntime=30s\nfh_workload=player\nexitall\n"),
        disk: "nas2020",
        low_latency: true,
        measure: Measure::DroppedFrames("film"),
        factor_pct: 1000,
        reference: Some(("[film]\nstartdelay=3s\nruntime=30s\nfh_workload=player\n", 100)),
    },
    // Each read of the application would wait inside the drive behind those of ten others.
    Scenario {
        switch: "ncq_latency",
        claim: "an application starts quickly although ten random readers keep the drive's queue full",
        jobs: "[random]\nrw=randread\nbs=4k\nsize=500m\nnumjobs=10\nruntime=200s\ntime_based\n\
            [application]\nstartdelay=5s\nfh_workload=startup:xterm\nexitall\n",
        disk: "nas2020",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 200,
        reference: None,
    },
    // Four writers want four times as many requests as there are; each read of the application waits in line for one.
    Scenario {
        switch: "pool_limits",
        claim: "an application starts although writers would take every request there is",
        jobs: "[writers]\nrw=randwrite\nbs=64k\ndirect=1\nioengine=libaio\niodepth=256\nsize=1g\nnumjobs=4\nruntime=100s\ntime_based\n\
            [application]\nstartdelay=5s\nfh_workload=startup:xterm\nexitall\n",
        disk: "nas2020",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 200,
        reference: None,
    },
    // Idled for, sequential readers too use such a drive one at a time.
    Scenario {
        switch: "ncq_flash",
        claim: "sequential readers share a solid-state drive without idling",
        jobs: "[readers]\nrw=read\nbs=16k\ndirect=1\nsize=1g\nnumjobs=4\nruntime=5s\ntime_based\n",
        disk: "sata_ssd",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 130,
        reference: None,
    },
    // A drive that may choose among ten is faster than one that gets them one by one.
    Scenario {
        switch: "ncq_random",
        claim: "a drive that sorts its queue gets several random readers' requests to sort",
        jobs: "[readers]\nrw=randread\nbs=4k\ndirect=1\nsize=4g\nnumjobs=10\nruntime=20s\ntime_based\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 130,
        reference: None,
    },
    // The process of higher priority thinks for 3 ms and is idled for; a fifth more comes through the holes.
    Scenario {
        switch: "injection",
        claim: "while the disk idles for an important process others get something done",
        jobs: "[global]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nruntime=20s\ntime_based\n\
            [important]\nprio=0\nprioclass=2\nthinktime=3ms\n[others]\nprio=7\nprioclass=2\nnumjobs=4\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 120,
        reference: None,
    },
    // Two arms, two readers, one on each half: up to twice as much is reported.
    Scenario {
        switch: "actuators",
        claim: "both arms of a disk work although the turn is with a process on one of them",
        jobs: "[global]\nrw=randread\nbs=64k\ndirect=1\nsize=4g\nioengine=libaio\niodepth=4\nruntime=20s\ntime_based\n\
            [lower]\nfh_start=10%\n[upper]\nfh_start=70%\n",
        disk: "dual_actuator",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 150,
        reference: None,
    },
    // Acceptance: at most three times the idle time on a drive that starves what is far away.
    Scenario {
        switch: "ncq_protection",
        claim: "an application starts although the drive itself passes over its requests",
        jobs: "[others]\nfh_start=10%\nrw=read\nbs=64k\ndirect=1\nioengine=libaio\niodepth=16\nsize=4g\nnumjobs=4\nruntime=100s\ntime_based\n\
            [application]\nfh_start=80%\nstartdelay=5s\nfh_workload=startup:xterm\nexitall\n",
        disk: "greedy_ncq",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 200,
        reference: Some(("[application]\nfh_start=80%\nstartdelay=5s\nfh_workload=startup:xterm\n", 300)),
    },
];
