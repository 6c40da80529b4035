//! Control groups: nested shares, books, changes under way, removal.

use crate::plan::Plan;
use fairhead_core::Duration;
use fairhead_sim::Outcome;

/// Three streaming readers: two tenants of one customer, and another customer.
const NESTED: &str = "[global]\nrw=read\nbs=256k\nsize=2g\ntime_based\nruntime=5s\n#!fh_cgroup=one weight=300\n\
    [x]\ncgroup=one/x\ncgroup_weight=200\n[y]\ncgroup=one/y\n[z]\ncgroup=two\n";

/// Schedulers that share what a group gets inside it.
const NESTING: &[&str] = &["bfq"];

/// The group's index.
fn index(o: &Outcome, path: &str) -> usize {
    o.groups.iter().position(|g| g.path == path).unwrap_or_else(|| panic!("no group {path}"))
}

/// What the group read, with all groups in it, in thousandths of everything.
fn share(o: &Outcome, path: &str) -> u64 {
    let read = |i| o.group_total(i).io_service_bytes.read();
    read(index(o, path)) * 1000 / read(0)
}

#[test]
fn what_a_group_gets_is_shared_inside_it() {
    for scheduler in NESTING {
        Plan::on("sata2009")
            .scheduler(scheduler)
            .load(
                "tenants x and y of one, weights 200 and 100, and two; one has three times the weight",
                NESTED,
            )
            .run()
            .check("three quarters for one, as two tenants", |o| share(o, "one").abs_diff(750) <= 20)
            .check("two thirds of that for x", |o| share(o, "one/x").abs_diff(500) <= 20)
            .check("the books agree with the clients", |o| {
                let of = |i: usize| o.clients[i].read.bytes;
                let got = |path| o.groups[index(o, path)].stats.io_service_bytes.read();
                // Read-ahead is in the books of the group, and not yet in the client's.
                [("one/x", 0), ("one/y", 1), ("two", 2)]
                    .into_iter()
                    .all(|(path, i)| (of(i)..=of(i) + (1 << 20)).contains(&got(path)))
            })
            .check("nothing waits at the end but read-ahead", |o| o.group_total(0).io_queued.total() <= 6);
    }
}

#[test]
fn a_mirrors_books_are_those_of_its_members_together() {
    Plan::on("raid1_2009")
        .scheduler("bfq")
        .load(
            "a reader and a writer",
            "[global]\nsize=64m\ndirect=1\nbs=64k\n[r]\nrw=read\ncgroup=r\n[w]\nrw=write\ncgroup=w\n",
        )
        .run()
        .check("each byte is read once", |o| {
            o.groups[index(o, "r")].stats.io_service_bytes.read() == 64 << 20
        })
        .check("and written twice", |o| o.groups[index(o, "w")].stats.io_service_bytes.write() == 128 << 20)
        .check("all that was inserted has completed", |o| o.group_total(0).io_queued.total() == 0);
}

#[test]
fn looking_at_disk_time_changes_nothing() {
    for scheduler in ["noop", "cfq", "bfq"] {
        let plan = || Plan::on("sata2009").scheduler(scheduler).load("three groups", NESTED);
        let blind = plan().run();
        let watched = plan().watch(850).run();
        let watched =
            watched.check("a row for each 0.85 s and the rest", |o| o.watch.len() == 6).outcome().clone();
        let sum = |g: usize| watched.watch.iter().fold(Duration::ZERO, |sum, row| sum + row[g]);
        let sums: Vec<_> = (0..watched.groups.len()).map(sum).collect();
        let charged: Vec<_> = watched.groups.iter().map(|g| g.stats.disk_time).collect();
        assert_eq!(sums, charged, "{scheduler}: all time is in one interval");
        assert_eq!(Outcome { watch: Vec::new(), ..watched }, *blind.outcome(), "{scheduler}");
    }
}
