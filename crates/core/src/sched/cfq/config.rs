//! CFQ's tunables: those of sysfs, which kernel's rules hold, and the switches for historic quirks.
//!
//! What a tunable says becomes a setting of a rule, or of the engine, in `era.rs`.
//
//= linux-4.20 block/cfq-iosched.c cfq_attrs, docs/reference/cfq.md#2-tunables-and-constants

use crate::config::KiB;
use crate::units::Duration;
use crate::{choice, tunables};

choice! {
    /// When a queue counts as seeky.
    pub enum Seek {
        /// Its mean distance is above 4 MiB: 2.6.33.
        Mean = "mean";
        /// More than 4 of its last 32 requests started more than 800 sectors from where the one before ended.
        Distance = "distance";
        /// More than 4 of its last 32 requests were shorter than 64 sectors: for flash, where distance costs
        /// nothing.
        Size = "size";
        /// `distance` on disks with a head, `size` on others.
        Auto = "auto";
    }
}

choice! {
    /// Which kernel's rules hold where they differ.
    pub enum Era {
        /// Depth `quantum`, or any when alone; idling for seeky queues only if one of them asked for it.
        Linux2_6_33 = "2.6.33";
        /// Depth half of `quantum`, and all of it while the slice lasts long enough.
        Linux2_6_34 = "2.6.34";
        /// Also: think times of workloads and groups, `group_idle`, less waiting for queues that are not
        /// worth it; groups in a hierarchy.
        Linux3_10 = "3.10";
        /// Also: async queues for each group.
        Linux4_3 = "4.3";
    }
}

/// The shortest time that a slice or expiry can be set to.
const MIN_TIME: u64 = 1_000_000;
/// The longest: what the kernel's microsecond files can hold.
//= linux-4.20 block/cfq-iosched.c STORE_FUNCTION, UINT_MAX microseconds
const MAX_TIME: u64 = 4_294_967_295_000;
const MAX_COUNT: u64 = u32::MAX as u64;

tunables! {
    /// CFQ's tunables, under their sysfs names. The defaults are the latest kernels'.
    //= linux-4.20 block/cfq-iosched.c cfq_attrs
    pub struct Config {
        /// Requests that one queue may have at the device. Default 8 (2.6.33: 4).
        pub quantum: u32 = 8, 1, MAX_COUNT;
        /// A sync request that has waited for so long is the first to go in its queue's next slice; one that
        /// took so long until it completed throttles async requests. Default 125 ms.
        pub fifo_expire_sync: Duration = Duration::from_ms(125), MIN_TIME, MAX_TIME;
        /// An async request that has waited for so long is the first to go in its queue's next slice. Default
        /// 250 ms.
        pub fifo_expire_async: Duration = Duration::from_ms(250), MIN_TIME, MAX_TIME;
        /// How far back a seek may go to be considered at all. Default 16384 KiB.
        pub back_seek_max: KiB = KiB(16384), 0, MAX_COUNT;
        /// How many times dearer than forward a seek back is. Default 2.
        pub back_seek_penalty: u32 = 2, 1, MAX_COUNT;
        /// The time slice of a sync queue of level 4; each level up or down adds or takes a fifth. Default
        /// 100 ms.
        pub slice_sync: Duration = Duration::from_ms(100), MIN_TIME, MAX_TIME;
        /// The time slice of an async queue of level 4. Default 40 ms.
        pub slice_async: Duration = Duration::from_ms(40), MIN_TIME, MAX_TIME;
        /// An async queue of level p sends at most 2 x this x (8 - p) requests in a slice. Default 2.
        pub slice_async_rq: u32 = 2, 1, MAX_COUNT;
        /// How long an empty sync queue keeps the disk waiting for its next request. Longer favours streams,
        /// zero turns idling off. Default 8 ms.
        pub slice_idle: Duration = Duration::from_ms(8), 0, MAX_TIME;
        /// How long a group whose only queue is not worth idling for keeps the disk. Counts from era 3.10 on.
        /// Default 8 ms.
        pub group_idle: Duration = Duration::from_ms(8), 0, MAX_TIME;
        /// Seeky queues, too, stay in their group, where in eras 2.6.33 and 2.6.34 they are served as the
        /// root's; later ones always do. Default off.
        pub group_isolation: bool = false, 0, 1;
        /// Shrink slices when many queues are busy, so that each has its turn within target_latency, and hold
        /// async requests back after a sync one was late. Default on.
        pub low_latency: bool = true, 0, 1;
        /// The time in which every busy queue should have its turn. Default 300 ms.
        pub target_latency: Duration = Duration::from_ms(300), MIN_TIME, MAX_TIME;
        /// When a queue counts as seeky, so that idling for it alone does not pay. Default auto.
        pub seek: Seek = Seek::Auto, 0, 3;
        /// Which kernel's rules hold where they differ. Default 4.3.
        pub era: Era = Era::Linux4_3, 0, 3;
        /// Async requests, too, count for their task's think time, as in the kernel. Default on.
        pub quirk_async_think: bool = true, 0, 1;
        /// A queue may be merged with one that no task uses any more, as in 2.6.34. Default off.
        pub quirk_merge_unchecked: bool = false, 0, 1;
        /// With seek=mean, cooperation and splits trust the mean from the first request on, as in 2.6.33.
        /// Default on.
        pub quirk_seeky_early: bool = true, 0, 1;
        /// From era 3.10 on, a queue that is not worth waiting for is preempted while its only request is at
        /// the device, too, and the newcomer passes all that wait, as in the kernel. Off, random readers take
        /// turns. Default on.
        //= deviates cfq-bound
        pub quirk_preempt_empty: bool = true, 0, 1;
    }
}

impl Config {
    /// Returns the tunables of Linux 2.6.33.
    #[must_use]
    pub(crate) fn linux_2_6_33() -> Self {
        Self {
            quantum: 4,
            group_idle: Duration::ZERO,
            seek: Seek::Mean,
            era: Era::Linux2_6_33,
            ..Self::default()
        }
    }

    /// Returns the tunables of Linux 2.6.34 on disks with a head.
    #[must_use]
    pub(crate) fn linux_2_6_34() -> Self {
        Self { group_idle: Duration::ZERO, seek: Seek::Distance, era: Era::Linux2_6_34, ..Self::default() }
    }
}
