//! Schedulers of the lineage, and those that keep what groups are promised, as a library, for the tests:
//! `FAIRHEAD_LINEAGE` names the one that a copy of this library has.

use fairhead_core::sched::{anticipatory, bfq, cfq, cfq_early, deadline, kyber, mq_deadline, noop};
use fairhead_outside::{iocost::IoCost, iolatency::IoLatency};
use fairhead_plugin::abi::FhSchedulerOps;
use fairhead_plugin::export::{keep_panics, table};

/// The table of the scheduler that the variable names.
#[unsafe(no_mangle)]
pub extern "C" fn fairhead_scheduler() -> *const FhSchedulerOps {
    keep_panics();
    let name = std::env::var("FAIRHEAD_LINEAGE").unwrap_or_default();
    let (name, about) = (format!("{name}-library"), "linked in elsewhere, from a library");
    let keeps = &["weight", "class"];
    let table = match name.trim_end_matches("-library") {
        "noop" => table::<noop::Noop>(&name, about, &[]),
        "deadline" => table::<deadline::Deadline>(&name, about, &[]),
        "mq-deadline" => table::<mq_deadline::MqDeadline>(&name, about, &[]),
        "kyber" => table::<kyber::Kyber>(&name, about, &[]),
        "as" => table::<anticipatory::Anticipatory>(&name, about, &[]),
        "cfq-ts2" => table::<cfq_early::CfqTs2>(&name, about, &[]),
        "cfq" => table::<cfq::Cfq>(&name, about, keeps),
        "bfq" => table::<bfq::Bfq>(&name, about, keeps),
        "iocost" => table::<IoCost>(&name, about, &["weight", "leaf_weight"]),
        "iolatency" => table::<IoLatency>(&name, about, &["latency"]),
        _ => return std::ptr::null(),
    };
    Box::leak(Box::new(table))
}
