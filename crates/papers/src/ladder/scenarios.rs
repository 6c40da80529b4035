//! The scenarios: for each switch the load that it was written for.
//!
//! Where a figure of the claim comes from is said with each. Claims are the descriptions', minimum sizes
//! follow from the mechanism as the comment says, and were written down before the first run. Where the load
//! that was thought of first does not show the claim, another was looked for that calls on the same
//! mechanism, and the comment says what the first one was.

use super::{Measure, Scenario};

/// Ten sequential readers, as the S suite has them.
macro_rules! ten_streams {
    () => {
        "[streams]\nrw=read\nbs=4k\nsize=500m\nnumjobs=10\nruntime=200s\ntime_based\n"
    };
}

/// All of them, in the order of the patches.
pub const SCENARIOS: &[Scenario] = &[
    // Two groups of equal weight: half each, whatever they hold. Without groups one process of five gets a
    // fifth, so 2.5 times; less the slack of a short run.
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
        miss: None,
    },
    // Target of the S suite's interleaved test: that of one sequential reader; acceptance: nine tenths. In
    // queues of their own each looks random: at least half as much again.
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
        miss: None,
    },
    // Idled for, eight readers use a drive that does many things at once for one at a time. (Random readers
    // do not show it: the engine of 2010 did not idle for them on queueing devices either.)
    Scenario {
        switch: "asymmetric_idling",
        claim: "equal readers keep a queueing drive busy together",
        jobs: "[readers]\nrw=read\nbs=4k\ndirect=1\nsize=1g\nnumjobs=8\nruntime=5s\ntime_based\n",
        disk: "sata_ssd",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 200,
        reference: None,
        miss: None,
    },
    // Twenty processes begin at once and all are raised for seconds; an application that starts then is one
    // of twenty-one instead of thirty times as heavy as each.
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
        miss: None,
    },
    // Eight processes that each need the device for 0.3 ms of every 6 ms could all be served; idled for while
    // they think, they are served one at a time. (On disks it does not show: those that queue always have
    // something of others in flight, which ends the idling of 2010, and on those that do not either rule
    // idles for every task.)
    Scenario {
        switch: "throughput_boost",
        claim: "who thinks for longer than half of slice_idle does not keep the disk idle",
        jobs: "[thinkers]\nrw=read\nbs=4k\ndirect=1\nsize=100m\nnumjobs=8\nthinktime=6ms\nruntime=10s\ntime_based\n",
        disk: "emmc51",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 200,
        reference: None,
        miss: None,
    },
    // A writer's bursts go into the drive's cache at the speed of the bus, three times that of the platters:
    // a slot in which that happened is the best for ever. An estimate within a fifth, and half as far off as
    // before. (Deep queues alone do not show it: two readers with 32 calls each keep the drive full, so that
    // a slot swallows no more than it serves.)
    Scenario {
        switch: "rate_estimator",
        claim: "what the drive's cache swallows is not taken for speed",
        jobs: "[global]\nbs=1m\ndirect=1\nsize=2g\nruntime=30s\ntime_based\n[stream]\nrw=read\n\
            [bursts]\nrw=write\nioengine=libaio\niodepth=8\nthinktime=1s\nthinktime_blocks=32\n",
        disk: "nas2020",
        low_latency: false,
        measure: Measure::RateErrorPermille,
        factor_pct: 200,
        reference: Some(("[stream]\nrw=read\nbs=1m\ndirect=1\nsize=2g\nruntime=20s\ntime_based\n", 20)),
        miss: None,
    },
    // Six slow processes each keep the disk for 40 ms and then pause: their budgets shrink to the smallest,
    // and paying for those they are next again at once. Paying for their time, they leave the stream its
    // turn. (What was tried first, that one such process gains beside three streams, does not show: 3 % more
    // calls.)
    Scenario {
        switch: "fair_writes",
        claim: "slow processes pay for the time that they take, and a stream beside them gets its share",
        jobs: "[global]\nsize=500m\nruntime=30s\ntime_based\n[slow]\nrw=randread\nbs=4k\ndirect=1\nthinktime=30ms\n\
            thinktime_blocks=4\nnumjobs=6\n[stream]\nrw=read\nbs=64k\n",
        disk: "ide2004",
        low_latency: false,
        measure: Measure::MilliIops("stream"),
        factor_pct: 200,
        reference: None,
        miss: None,
    },
    // Acceptance: at most 1.3 times the idle time with ten sequential readers. Published: several times
    // faster.
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
        reference: Some(("[application]\nstartdelay=5s\nfh_workload=startup:xterm\nfh_iterations=2\n", 130)),
        miss: None,
    },
    // The worst neighbour is one that is raised itself: an application that starts when the film is no longer
    // taken for one. (Beside the streams alone a film needs no help: it takes less than its share, and is
    // served within its read-ahead.)
    Scenario {
        switch: "soft_realtime",
        claim: "a film beside ten streams and an application that starts drops no frame",
        jobs: concat!(
            ten_streams!(),
            "[film]\nstartdelay=3s\nruntime=30s\nfh_workload=player\nexitall\n\
             [application]\nstartdelay=15s\nfh_workload=startup:konsole\n"
        ),
        disk: "nas2020",
        low_latency: true,
        measure: Measure::DroppedFrames("film"),
        factor_pct: 1000,
        reference: Some(("[film]\nstartdelay=3s\nruntime=30s\nfh_workload=player\n", 100)),
        miss: None,
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
        miss: None,
    },
    // Four writers want four times as many requests as there are; each read of the application waits in line
    // for one.
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
        miss: None,
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
        miss: None,
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
        miss: None,
    },
    // The process of higher priority thinks for 3 ms and is idled for, on a drive that does others' requests
    // in a tenth of a millisecond. (On a disk, where one request takes longer than the hole, the limit
    // rightly lets in next to nothing: 4 %.)
    Scenario {
        switch: "injection",
        claim: "while the disk idles for an important process others get something done",
        jobs: "[global]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nruntime=5s\ntime_based\n\
            [important]\nprio=0\nprioclass=2\nthinktime=3ms\n[others]\nprio=7\nprioclass=2\nnumjobs=4\n",
        disk: "sata_ssd",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 200,
        reference: None,
        miss: None,
    },
    // Two arms, two sequential readers, one on each half, each idled for in its turn: up to twice as much is
    // reported. (Readers with several calls in flight keep both arms busy anyway.)
    Scenario {
        switch: "actuators",
        claim: "both arms of a disk work although the turn is with a process on one of them",
        jobs: "[global]\nrw=read\nbs=64k\ndirect=1\nsize=4g\nruntime=20s\ntime_based\n\
            [lower]\nfh_start=10%\n[upper]\nfh_start=70%\n",
        disk: "dual_actuator",
        low_latency: false,
        measure: Measure::DiskKiBps,
        factor_pct: 150,
        reference: None,
        miss: None,
    },
    // Taken for programs that start, the readers are raised for as long as they have not read 60 MB each,
    // which takes them the longer as the disk is kept for none of them. The application is one of seven.
    // Target: one and a half times the idle time.
    Scenario {
        switch: "streams",
        claim: "an application starts quickly although six readers began four seconds before",
        jobs: "[readers]\nrw=read\nbs=128k\ndirect=1\nsize=4g\nnumjobs=6\nruntime=100s\ntime_based\n\
            [application]\nstartdelay=4s\nfh_workload=startup:xterm\nexitall\n",
        disk: "nas2020",
        low_latency: true,
        measure: Measure::StartUpMs("application"),
        factor_pct: 200,
        reference: Some(("[application]\nstartdelay=4s\nfh_workload=startup:xterm\n", 150)),
        miss: None,
    },
];
