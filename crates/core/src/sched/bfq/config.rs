//! BFQ's tunables: the sysfs ones, those of the versions outside mainline, and one switch for each patch of
//! the v8 series and each later feature, so that what a heuristic buys is one comparison.
//!
//! By default it is the scheduler of Linux 6.12. With every switch of a patch or feature off what remains is
//! the engine of 2010 (*v0*): B-WF2Q+ over budgets, additive feedback, a rate taken from whole slots. Three
//! switches are our own and off by default: `ncq_protection`, `streams` and `repairs`. A live engine starts
//! with them on.
//
//= linux-6.12 block/bfq-iosched.c bfq_attrs; bfq v8 series of 2016, 22 patches
//= docs/reference/bfq.md#5-tunables

use crate::config::KiB;
use crate::tunables;
use crate::units::{Duration, Sectors};

const MAX_TIME: u64 = 4_294_967_295_000;
const MIN_TIME: u64 = 1_000_000;
const MAX_COUNT: u64 = u32::MAX as u64;

tunables! {
    /// BFQ's tunables. The first nine have their sysfs names; the others are switches and values that only
    /// versions outside mainline offered.
    pub struct Config {
        /// How long a sync request waits in its queue until it is the next, once in a slot. Default 125 ms.
        pub fifo_expire_sync: Duration = Duration::from_ms(125), MIN_TIME, MAX_TIME;
        /// How long an async request waits in its queue until it is the next, once in a slot. Default 250 ms.
        pub fifo_expire_async: Duration = Duration::from_ms(250), MIN_TIME, MAX_TIME;
        /// How far back a seek may go to be considered at all. Default 16384 KiB.
        pub back_seek_max: KiB = KiB(16384), 0, MAX_COUNT;
        /// How many times dearer than forward a seek back is. Default 2.
        pub back_seek_penalty: u32 = 2, 1, MAX_COUNT;
        /// How long an empty sync queue keeps the disk waiting for its next request. Longer keeps guarantees,
        /// zero turns idling off: more throughput on flash and arrays, no guarantees for tasks that wait for
        /// their reads. Default 8 ms.
        pub slice_idle: Duration = Duration::from_ms(8), 0, MAX_TIME;
        /// The most sectors that a queue may send in a slot; larger is throughput, smaller is latency. 0: as
        /// much as the disk does in `timeout_sync` at its measured peak rate. Default 0.
        pub max_budget: Sectors = Sectors(0), 0, 1 << 30;
        /// How long a slot may last. Default 125 ms.
        pub timeout_sync: Duration = Duration::from_ms(125), MIN_TIME, MAX_TIME;
        /// One request at the device at a time, and always idle for a queue that may go on: exact guarantees,
        /// little throughput. Default off.
        pub strict_guarantees: bool = false, 0, 1;
        /// Raise the weight of interactive and soft real-time queues. Off for pure throughput or exact
        /// shares. Default on.
        pub low_latency: bool = true, 0, 1;

        /// By how much an interactive queue's weight is raised. Default 30.
        pub wr_coeff: u32 = 30, 1, 100;
        /// For how long at most an interactive queue is raised. 0: as long as the start of a large program
        /// takes on this disk, by its measured rate, within 3 to 25 s. Default 0.
        pub wr_max_time: Duration = Duration::ZERO, 0, MAX_TIME;
        /// For how long a soft real-time queue is raised after each time it becomes busy. Default 300 ms.
        pub wr_rt_max_time: Duration = Duration::from_ms(300), MIN_TIME, MAX_TIME;
        /// An interactive queue that gets more sectors than this while it is raised copies a file, and is
        /// raised no longer. 0: there is no such limit, as before Linux 4.17. Default 120000.
        //= linux-6.12 block/bfq-iosched.c max_service_from_wr, docs/reference/bfq.md#38-interactive-queues
        pub wr_max_service: Sectors = Sectors(120_000), 0, 1 << 30;
        /// How long a queue must have been idle to count as interactive when it becomes busy. Default 2 s.
        pub wr_min_idle_time: Duration = Duration::from_ms(2000), 0, MAX_TIME;
        /// How long a busy async queue must not have been heard of to be raised. Default 500 ms.
        pub wr_min_inter_arr_async: Duration = Duration::from_ms(500), 0, MAX_TIME;
        /// The most sectors per second that a soft real-time task asks for. 0: none is taken for one. Default
        /// 7000.
        pub wr_max_softrt_rate: u32 = 7000, 0, MAX_COUNT;

        /// v8 patch 8: groups are scheduled, at any depth. Off: all tasks compete in the root. Default on.
        pub hierarchy: bool = true, 0, 1;
        /// v8 patch 9, early queue merge: tasks that read pieces of one stream share a queue, until they no
        /// longer do. Default on.
        pub queue_merge: bool = true, 0, 1;
        /// v8 patch 10: idle for the sake of guarantees only if not all are to get the same. Off: idle
        /// whenever a queue might go on. Default on.
        pub asymmetric_idling: bool = true, 0, 1;
        /// v8 patch 11: queues that become active in a large burst are not raised. Default on.
        pub bursts: bool = true, 0, 1;
        /// v8 patch 14: budgets grow by factors, start at two thirds of the largest and may take the whole
        /// `timeout_sync`; idling goes by think time. Off: they grow by steps and start at three quarters.
        /// Default on.
        pub throughput_boost: bool = true, 0, 1;
        /// v8 patch 15: the peak rate is taken from what was dispatched over long intervals. Off: the best of
        /// single slots. Default on.
        pub rate_estimator: bool = true, 0, 1;
        /// v8 patch 16: slow queues pay for time, async requests cost more than their size. Off: a queue that
        /// runs out of time pays a whole budget. Default on.
        pub fair_writes: bool = true, 0, 1;
        /// v8 patch 17: raise the weight of interactive queues, and let a queue of greater weight take the
        /// disk away from the queue in service. Default on.
        pub interactive: bool = true, 0, 1;
        /// v8 patch 18: raise the weight of soft real-time queues. Default on.
        pub soft_realtime: bool = true, 0, 1;
        /// v8 patch 19: idle for raised queues also on devices that queue requests themselves. Default on.
        pub ncq_latency: bool = true, 0, 1;
        /// v8 patch 20: keep a part of the tags free for those who wait; while a queue is raised do not idle
        /// for others' throughput. Default on.
        pub pool_limits: bool = true, 0, 1;
        /// v8 patch 21: on flash that queues requests, idle only for guarantees. Default on.
        pub ncq_flash: bool = true, 0, 1;
        /// v8 patch 22: on disks that queue requests, do not idle for random readers' throughput. Default on.
        pub ncq_random: bool = true, 0, 1;

        /// While the disk idles for a queue, serve a few requests of others if that does no harm. Default on.
        pub injection: bool = true, 0, 1;
        /// Find out which queue's completed requests wake which other, and serve one in the other's turn.
        /// Default on.
        pub wakers: bool = true, 0, 1;
        /// Queues created shortly after each other become one. Default on.
        pub stable_merge: bool = true, 0, 1;
        /// Keep every arm of a disk with several busy. Default on.
        pub actuators: bool = true, 0, 1;
        /// Our own: when a disk that reorders requests itself passes over one of a raised queue, send it no
        /// more of others until it is done. Default off.
        pub ncq_protection: bool = false, 0, 1;
        /// Our own: a queue that is raised as interactive and reads more than 1 MiB in one piece is not
        /// treated as a program that starts, until that piece ends. Default off.
        pub streams: bool = false, 0, 1;
        /// If not zero, clocks that the kernel keeps in ticks of 1/HZ advance in these steps: those of slots,
        /// raising, bursts and merging, but not those of idling and rates. Unlike `Limits::tick`, under which
        /// everything does. Default 0.
        pub tick: Duration = Duration::ZERO, 0, 10_000_000;
        /// Our own: where a rule of the kernel's does not do what it is there for, do what it was meant to.
        /// Default off.
        pub repairs: bool = false, 0, 1;
    }
}

impl Config {
    /// BFQ as live engines run it by default: the kernel's, with what is our own.
    pub(crate) fn live() -> Self {
        Self { ncq_protection: true, streams: true, repairs: true, ..Self::default() }
    }

    /// The v8 series of 2016: nothing that came later.
    #[must_use]
    pub fn v8() -> Self {
        Self {
            wr_max_service: Sectors(0),
            injection: false,
            wakers: false,
            stable_merge: false,
            actuators: false,
            repairs: true,
            ..Self::default()
        }
    }

    /// The engine of 2010: no group, no heuristic for latency.
    #[must_use]
    pub fn v0() -> Self {
        Self {
            low_latency: false,
            hierarchy: false,
            queue_merge: false,
            asymmetric_idling: false,
            bursts: false,
            throughput_boost: false,
            rate_estimator: false,
            fair_writes: false,
            interactive: false,
            soft_realtime: false,
            ncq_latency: false,
            pool_limits: false,
            ncq_flash: false,
            ncq_random: false,
            ..Self::v8()
        }
    }
}
