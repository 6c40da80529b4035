//! A group's limits and books as JSON: the lab tells them under the names of the control socket of live
//! disks. That crate has functions of its own, because neither crate is built on the other; a test in `cli`
//! compares them.

use fairhead_core::Max;
use fairhead_core::groups::{GroupStats, Split};
use serde_json::{Map, Value, json};
use std::num::NonZeroU64;

/// Returns limits as in `io.max`; null if there is none.
#[must_use]
pub fn limits(max: &Max) -> Value {
    if max.is_none() {
        return Value::Null;
    }
    let or_max = |n: Option<NonZeroU64>| n.map_or_else(|| json!("max"), |n| json!(n.get()));
    json!({
        "rbps": or_max(max.rbps),
        "wbps": or_max(max.wbps),
        "riops": or_max(max.riops),
        "wiops": or_max(max.wiops),
        "burst_ns": max.burst.as_ns(),
    })
}

/// Returns the statistics of a group, under the kernel's names: those of cgroup v1 and the IO controller.
#[must_use]
pub fn books(s: &GroupStats) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("disk_time_ns", json!(s.disk_time.as_ns()));
    put("unaccounted_time_ns", json!(s.unaccounted_time.as_ns()));
    put("disk_sectors", json!(s.disk_sectors));
    put("disk_dequeue", json!(s.disk_dequeue));
    for (name, split) in [
        ("io_service_bytes", &s.io_service_bytes),
        ("io_serviced", &s.io_serviced),
        ("io_service_time_ns", &s.io_service_time),
        ("io_wait_time_ns", &s.io_wait_time),
        ("throttled_time_ns", &s.throttled_time),
        ("io_merged", &s.io_merged),
        ("io_queued", &s.io_queued),
    ] {
        put(name, by_kind(split));
    }
    put("group_wait_time_ns", json!(s.group_wait_time.as_ns()));
    put("idle_time_ns", json!(s.idle_time.as_ns()));
    put("empty_time_ns", json!(s.empty_time.as_ns()));
    map
}

fn by_kind(s: &Split) -> Value {
    json!({
        "Read": s.read(),
        "Write": s.write(),
        "Discard": s.discard(),
        "Sync": s.sync(),
        "Async": s.asyn(),
        "Total": s.total(),
    })
}
