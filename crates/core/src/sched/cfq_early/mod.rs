//! CFQ before 2.6.13: the request round robin of 2.6.10, and the two time-sliced versions of December 2004.
//!
//! All three give each task a queue of its own and serve the queues in turn; they differ in what a turn is.
//!
//! ```text
//!   cfq-2.6.10   A B C A B C A B C …            a turn is a request: fair, but the head travels between tasks
//!   cfq-ts1      A A A A A … B B B B B …        a turn is 83 ms; the disk idles up to 4 ms for the task's next request
//!   cfq-ts2      A A A A A … w w w B B B …      sync turns are 100 ms, async ones 40 ms or 8 requests
//! ```
//!
//! - [`round_robin`] is `cfq-2.6.10`.
//! - [`slices`] is `cfq-ts1` and `cfq-ts2`, which share everything but the end of a slice.
//! - `queues` is what all share: the queues, the choice of a request within one, and the dispatch list.
//!
//! # What is a queue
//!
//! A queue belongs to one [`crate::TaskId`], with its sync and its async requests alike. The kernels could
//! key queues by process, thread group, user and so on (`key_type`); here the host decides, by what it passes
//! as the task. Buffered writes came from pdflush then, so a host of that era passes pdflush as their task.
//! Classes, priorities and groups do not count. Tasks beyond [`crate::Limits::tasks`] share one queue
//! while no other task has been idle for long.
//!
//! # What it does not do
//!
//! It does not limit how many requests a task may have (`queued`, `may_queue`): a driver's tags are its
//! request pool, and a host that models the pool of that time limits there. It knows no barriers.
//!
//! # Merging
//!
//! Only into requests that wait in a queue. One on the dispatch list is on its way and does not grow any
//! more.
//!
//! # Quirks
//!
//! Switches that are off by default and on in the presets of 2004: `swap_fifo_limits` and, with time slices,
//! `idle_in_flight`.

mod queues;
pub mod round_robin;
pub mod slices;
#[cfg(test)]
mod tests;

pub use round_robin::RoundRobin;
pub use slices::{CfqTs1, CfqTs2};

use crate::parts::choose::BackSeek;
use crate::units::Duration;

/// How a request is chosen within a queue.
#[derive(Clone, Copy, Debug)]
struct PickRules {
    find_best: bool,
    back: BackSeek,
    /// Which fifo to look at first and second (sync?), and how old its head may be.
    fifo_limits: [(bool, Duration); 2],
    fifo_batch_expire: Duration,
}

/// The tunables that all three share, with those of one.
macro_rules! early_tunables {
    ($(#[$meta:meta])* pub struct $config:ident { $($own:tt)* }) => {
        $crate::tunables! {
            $(#[$meta])*
            pub struct $config {
                /// How many requests are moved to the dispatch list at a time. Default 4.
                pub quantum: u32 = 4, 1, u32::MAX as u64;
                $($own)*
                /// How old the oldest sync request of a queue may get before it goes first. Default 500 ms.
                pub fifo_expire_sync: Duration = Duration::from_ms(500), 1_000_000, u64::MAX;
                /// How old the oldest async request of a queue may get before it goes first. Default 5 s.
                pub fifo_expire_async: Duration = Duration::from_secs(5), 1_000_000, u64::MAX;
                /// The least time between two requests of a queue that go first because of their age. Default
                /// 125 ms.
                pub fifo_batch_expire: Duration = Duration::from_ms(125), 0, u64::MAX;
                /// How far back the head may go for the next request. Default 16 MiB.
                pub back_seek_max: KiB = KiB(16384), 0, u32::MAX as u64;
                /// How much dearer going back is than going forward. Default 2.
                pub back_seek_penalty: u32 = 2, 1, u32::MAX as u64;
                /// Whether a queue gives the request that is cheapest to reach, or its lowest. Default on.
                pub find_best_crq: bool = true, 0, 1;
                /// Quirk of 2.6.10 to early 2.6.13: sync requests expire after `fifo_expire_async` and async
                /// ones, which are looked at first, after `fifo_expire_sync`. Default off; on in the preset.
                pub swap_fifo_limits: bool = false, 0, 1;
            }
        }

        impl $config {
            fn pick_rules(&self) -> super::PickRules {
                let fifo_limits = if self.swap_fifo_limits {
                    [(false, self.fifo_expire_sync), (true, self.fifo_expire_async)]
                } else {
                    [(true, self.fifo_expire_sync), (false, self.fifo_expire_async)]
                };
                super::PickRules {
                    find_best: self.find_best_crq,
                    back: crate::parts::choose::BackSeek {
                        // In sectors: two in a KiB.
                        max: u64::from(self.back_seek_max.0) * 2,
                        penalty: u64::from(self.back_seek_penalty),
                    },
                    fifo_limits,
                    fifo_batch_expire: self.fifo_batch_expire,
                }
            }
        }
    };
}
use early_tunables;
