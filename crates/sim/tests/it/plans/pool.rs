//! Requests that a scheduler keeps free for urgent ones.

use super::plan::Plan;

/// A greedy writer, past the page cache, and a reader of single blocks.
const TEXT: &str = "[global]\ndirect=1\nsize=1g\ntime_based\nruntime=3s\n\
    [w]\nrw=randwrite\nbs=64k\nioengine=libaio\niodepth=64\nfh_direct_write_sync=0\n[r]\nrw=randread\n";

/// How much of its slowest call the writer waits for a request, in percent, and how many calls it makes.
fn waits(async_depth: u64) -> (u64, u64) {
    let (plan, report) = Plan::on("nas2020")
        .scheduler("mq-deadline")
        .set("async_depth", async_depth)
        .host("a pool as large as the writer's appetite", |h| h.nr_requests = Some(64))
        .load("a writer and a reader", TEXT)
        .explain(&[0]);
    let a = &report.slowest[0].account;
    (a.tag.as_us() * 100 / a.total().as_us(), plan.outcome().clients[0].write.calls)
}

#[test]
fn a_driver_asks_the_scheduler_before_it_gives_a_request() {
    let (free, all) = waits(0);
    assert_eq!(free, 0, "there are as many requests as it has calls in flight");
    let (kept, some) = waits(1);
    assert!(kept > 80, "one at a time: the others wait; {kept} %");
    assert!(some > 100 && some < all, "{some} and {all} calls");
}
