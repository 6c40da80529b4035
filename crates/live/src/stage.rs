//! An engine without a thread, a ring and a disk, for tests of fronts: its context, and a disk that does at
//! once all that the queue has.

use crate::bio::Answer;
use crate::data::Data;
use crate::engine::Context;
use crate::groups::GroupTable;
use crate::request_queue::{RequestQueue, Settings, Start};
use crate::turns::Turns;
use fairhead_core::Control;
use fairhead_core::groups::Max;
use fairhead_core::sched::any::preset;
use fairhead_core::units::{GroupId, Instant};
use std::num::NonZeroU64;

/// A context at the beginning of time, with a scheduler as live engines have it.
pub(crate) fn context(scheduler: &str) -> Context {
    let config = (preset(scheduler).expect("a preset").config)().live();
    Context {
        now: Instant::EPOCH,
        queue: RequestQueue::new(Settings::default(), config).expect("settings by default"),
        groups: GroupTable::new(256),
        emulation: None,
        polls: false,
        turns: Turns::default(),
        busy: None,
    }
}

/// Limits a group to this many reads and as many writes a second.
pub(crate) fn limit(context: &mut Context, group: GroupId, iops: u64) {
    let iops = NonZeroU64::new(iops);
    let max = Max { riops: iops, wiops: iops, ..Max::default() };
    context.queue.control(context.now, Control::SetMax(group, max)).expect("a group that is there");
}

/// The disk does at once what the queue has. Returns the answers.
pub(crate) fn serve(context: &mut Context) -> Vec<Answer<Data>> {
    let Context { now, queue, .. } = context;
    if queue.next_timer().is_some_and(|at| at <= *now) {
        queue.timer(*now);
    }
    while let Some(start) = queue.next(*now) {
        match start {
            Start::Io(io) => {
                let results = vec![Ok(()); queue.pieces(io).len()];
                queue.finished(*now, io, &results);
            }
            Start::Flush(file) => queue.flushed(*now, file, Ok(())),
        }
    }
    std::iter::from_fn(|| queue.answer()).collect()
}
