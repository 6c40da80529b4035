//! What a scheduler in Rust needs at least: `use fairhead_plugin::prelude::*;`.

pub use fairhead_core::config::ConfigError;
pub use fairhead_core::sched::Scheduler;
pub use fairhead_core::{
    Control, Cx, Dispatch, Duration, End, GroupId, Hold, Instant, IoPrio, Limits, Op, Reason, Request,
    Sector, Sectors, Tag, TaskId, Timer, tunables,
};
