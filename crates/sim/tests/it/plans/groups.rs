//! Control groups: nested shares, books, changes during the run, removal.

use super::plan::Plan;
use fairhead_core::Duration;
use fairhead_core::sched::any::PRESETS;
use fairhead_sim::Outcome;

/// Three streaming readers: two tenants of one customer, and another customer.
const NESTED: &str = "[global]\nrw=read\nbs=256k\nsize=2g\ntime_based\nruntime=5s\n#!fh_cgroup=one weight=300\n\
    [x]\ncgroup=one/x\ncgroup_weight=200\n[y]\ncgroup=one/y\n[z]\ncgroup=two\n";

/// Schedulers that share what a group gets inside it.
const NESTING: &[&str] = &["bfq", "cfq", "noop+groups", "deadline+groups", "as+groups", "cfq+groups"];
/// Those that keep classes and guarantees, too.
const CONTROLLED: &[&str] = &["noop+groups", "deadline+groups", "as+groups", "cfq+groups"];

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

/// A writer through the page cache, and another that dirties the same pages afterwards.
fn writers(option: &str) -> String {
    format!(
        "[global]\nrw=write\nbs=64k\nfilename=f\nsize=64m\ncgroup_nodelete=1\n{option}\n[first]\ncgroup=a\n\
         [second]\ncgroup=b\nstartdelay=2s\ntime_based\nruntime=80s\nrate=1m\n"
    )
}

#[test]
fn a_page_written_in_the_background_is_its_first_dirtiers_where_that_is_tracked() {
    let written = |o: &Outcome, path| o.groups[index(o, path)].stats.io_service_bytes.write() >> 20;
    for (disk, option, tracked) in [
        ("nas2020", "", true),
        ("nas2020", "#!fh_cgroup_writeback=0", false),
        ("sata2009", "", false),
        ("sata2009", "#!fh_cgroup_writeback=1", true),
    ] {
        Plan::on(disk)
            .load(&format!("two writers of one file, {option}"), &writers(option))
            .run()
            .check("all of it is written, some of it again", |o| {
                (65..=144).contains(&(o.group_total(0).io_service_bytes.write() >> 20))
            })
            .check("the first pass over the pages is the first's, or else the root's", |o| {
                let (a, b, root) = (written(o, "a"), written(o, "b"), written(o, "/"));
                if tracked { a == 64 && root == 0 && b > 0 } else { (a, b) == (0, 0) && root >= 64 }
            });
    }
}

#[test]
fn who_syncs_writes_in_the_name_of_his_own_group() {
    Plan::on("nas2020")
        .load(
            "a writer, and one who syncs after a write of his own",
            "[global]\nrw=write\nbs=64k\nfilename=f\nsize=16m\n[dirty]\ncgroup=a\n[sync]\ncgroup=b\nstartdelay=1s\nnumber_ios=1\nend_fsync=1\n",
        )
        .run()
        .check("all of it is b's", |o| {
            let of = |path| o.groups[index(o, path)].stats.io_service_bytes.write();
            (of("a"), of("b"), of("/")) == (0, 16 << 20, 0)
        });
}

#[test]
fn a_guarantee_beyond_the_disk_is_refused_with_the_sum() {
    let job =
        "[global]\nrw=randread\nsize=1g\ndirect=1\n[a]\ncgroup=a\n#!fh_cgroup=min_iops=50\n[b]\ncgroup=b\n";
    for (more, refused) in
        [("", false), ("#!fh_cgroup=min_iops=10", false), ("#!fh_cgroup=min_iops=60", true)]
    {
        let text = format!("{job}{more}\nruntime=100ms\n");
        let error = Plan::on("nas2020").load("two guarantees", &text).error();
        assert_eq!(error.is_some(), refused, "{error:?}");
        if let Some(error) = error {
            let start = "cgroup 'b': reservations would add up to 110 requests/s, but the disk is good for ";
            assert!(error.starts_with(start), "{error}");
        }
    }
    let none = Plan::on("ide2004")
        .load("a guarantee later", "[a]\nsize=1m\ncgroup=a\n#!fh_at=1ms set a min_iops=1k\n");
    let notes = none.run().outcome().notes.clone();
    assert!(
        notes[0].starts_with("at 1ms: 'set a min_iops=1k' was not done: reservations would add up to 1024 "),
        "{notes:?}"
    );
}

#[test]
fn what_a_scheduler_does_not_keep_is_told() {
    let job = "[a]\nsize=64k\ncgroup=a\ncgroup_weight=300\n#!fh_cgroup=class=rt min_iops=5 rbps=100m\n#!fh_at=9s set a leaf_weight=5\n";
    for (scheduler, told) in [
        ("noop", &["class", "leaf_weight", "min_iops", "weight"][..]),
        ("bfq", &["class", "leaf_weight", "min_iops"]),
        ("bfq-v0", &["class", "leaf_weight", "min_iops", "weight"]),
        ("cfq-2.6.33", &["class", "leaf_weight", "min_iops"]),
        ("cfq", &["class", "min_iops"]),
        ("cfq+groups", &[]),
    ] {
        Plan::on("nas2020")
            .scheduler(scheduler)
            .load("everything that can be given", job)
            .run()
            .check("as it is", |o| o.groups_not_kept == told);
    }
    Plan::on("nas2020")
        .load(
            "a group with nothing but limits",
            "[a]\nsize=64k\ncgroup=a\ncgroup_weight=100\n#!fh_cgroup=class=be rbps=100m\n",
        )
        .run()
        .check("all schedulers keep those", |o| o.groups_not_kept.is_empty());
}

/// Two streaming readers in groups of their own, for eight seconds, with a change after three.
fn changed(scheduler: &str, what: &str, change: &str) -> Plan {
    let text = format!(
        "[global]\nrw=read\nbs=256k\nsize=2g\ntime_based\nruntime=8s\n#!fh_cgroup=c/d weight=300\n\
         [a]\ncgroup=a\n[b]\ncgroup=b\n#!fh_at=3s {change}\n"
    );
    Plan::on("sata2009").scheduler(scheduler).load(what, &text).run()
}

/// Client `b`'s share of what both read within some seconds, in thousandths.
fn share_of_b(o: &Outcome, seconds: std::ops::Range<usize>) -> u64 {
    let read =
        |client: usize| o.series[seconds.clone()].iter().map(|row| row[client].read_bytes).sum::<u64>();
    read(1) * 1000 / (read(0) + read(1))
}

/// All that was handed in has completed, but for read-ahead in flight at the end; and it is in the books
/// once.
fn nothing_is_lost(o: &Outcome) -> bool {
    let all = o.group_total(0);
    let calls: u64 = o.clients.iter().map(|c| c.read.bytes).sum();
    let on_the_way = 4 << 20;
    (calls..=calls + on_the_way).contains(&all.io_service_bytes.read())
        && all.io_queued.total() <= 8
        && o.disk.counters.bytes_read.abs_diff(all.io_service_bytes.read()) <= on_the_way
}

#[test]
fn a_new_weight_is_felt_within_a_second_and_nothing_is_lost() {
    for scheduler in NESTING {
        changed(scheduler, "two readers, one with more weight later", "set b weight=300")
            .check("half and half before", |o| share_of_b(o, 0..3).abs_diff(500) <= 40)
            .check("three quarters from a second after the change on", |o| {
                share_of_b(o, 4..8).abs_diff(750) <= 30
            })
            .check("nothing is lost", nothing_is_lost);
    }
}

#[test]
fn a_new_class_is_felt_within_a_second_and_nothing_is_lost() {
    for scheduler in CONTROLLED {
        for (change, least, most) in [("set b class=rt", 990, 1000), ("set b class=idle", 0, 10)] {
            changed(scheduler, "two readers", change)
                .check("half and half before", |o| share_of_b(o, 0..3).abs_diff(500) <= 40)
                .check("all or nothing after", |o| (least..=most).contains(&share_of_b(o, 4..8)))
                .check("nothing is lost", nothing_is_lost);
        }
    }
}

#[test]
fn who_moves_to_another_group_has_its_share_within_a_second() {
    for scheduler in NESTING {
        changed(scheduler, "two readers, one of which goes to a group inside a group", "move b c/d")
            .check("half and half before", |o| share_of_b(o, 0..3).abs_diff(500) <= 40)
            .check("c has the weight that b had", |o| share_of_b(o, 4..8).abs_diff(500) <= 30)
            .check("it was served there", |o| o.groups[index(o, "c/d")].stats.io_serviced.total() > 100)
            .check("nothing is lost", nothing_is_lost);
        changed(scheduler, "two readers, one of which joins the other", "move b a")
            .check("the rest is in a", |o| {
                o.groups[index(o, "b")].stats.io_service_bytes.read() * 2
                    < o.group_total(0).io_service_bytes.read()
            })
            .check("nothing is lost", nothing_is_lost);
    }
}

#[test]
fn a_group_can_be_removed_under_load() {
    for scheduler in [NESTING, &["noop", "cfq", "kyber"]].concat() {
        changed(scheduler, "two readers, one of whose groups goes", "remove b")
            .check("its client continues in the root", |o| o.groups[0].stats.io_serviced.total() > 100)
            .check("it runs at all times", |o| o.series[3..8].iter().all(|row| row[1].read_bytes > 0))
            .check("there is no note", |o| o.notes.is_empty())
            .check("nothing is lost", nothing_is_lost);
    }
}

/// The group's limit is reached to 2 %, and not exceeded, over some seconds of a series.
fn runs_at(o: &Outcome, client: usize, seconds: std::ops::Range<usize>, bytes_per_s: u64) -> bool {
    let (n, rows) = (seconds.len() as u64, &o.series[seconds]);
    let got: u64 = rows.iter().map(|row| row[client].read_bytes + row[client].written_bytes).sum();
    got.abs_diff(bytes_per_s * n) * 50 <= bytes_per_s * n
}

#[test]
fn limits_hold_under_every_scheduler() {
    let job = "[global]\nbs=64k\ndirect=1\nsize=1g\ntime_based\nruntime=5s\n#!fh_cgroup=t rbps=2m\n\
        [reader]\nioengine=libaio\niodepth=16\nrw=read\ncgroup=t/a\n[writer]\nrw=write\nioengine=libaio\niodepth=16\ncgroup=w\n#!fh_cgroup=wiops=16\n\
        [free]\nrw=randread\nrate_iops=20\n#!fh_at=3s set t rbps=1m\n";
    for preset in PRESETS {
        Plan::on("nas2020")
            .scheduler(preset.name)
            .load(
                "a reader whose parent is limited, a writer of 16 calls a second, and one without limits",
                job,
            )
            .run()
            .check("2 MiB/s", |o| runs_at(o, 0, 1..3, 2 << 20))
            .check("1 MiB/s from the change on", |o| runs_at(o, 0, 3..5, 1 << 20))
            .check("16 writes of 64 KiB a second", |o| runs_at(o, 1, 1..5, 16 << 16))
            .check("who has no limit has his 20 calls a second", |o| o.clients[2].milli_iops() > 19_500)
            .check("the books tell", |o| o.groups[index(o, "t/a")].stats.throttled_time.read() > 0)
            .check("all schedulers keep limits", |o| !o.groups_not_kept.contains(&"rbps"));
    }
}

#[test]
fn many_who_wait_for_a_limit_leave_requests_for_others() {
    Plan::on("sata_ssd")
        .scheduler("bfq")
        .host("whose pool has 256", |h| h.nr_requests = Some(256))
        .load(
            "512 writes at a time, whose group has 1000 a second, beside one who has no limit",
            "[global]\nbs=4k\ndirect=1\nsize=64m\nrw=randwrite\nioengine=libaio\ntime_based\nruntime=500ms\n\
             [many]\nnumjobs=8\niodepth=64\ncgroup=m\n#!fh_cgroup=wiops=1000\n[one]\niodepth=8\n",
        )
        .run()
        .check("they get 1000 a second, to the end of all that they have handed in", |o| {
            let done = o.groups[index(o, "m")].stats.io_serviced.write() * 1000;
            done >= 512_000 && (done / o.elapsed.as_ms()).abs_diff(1000) <= 20
        })
        .check("he gets what there is", |o| o.clients[8].milli_iops() > 10_000_000);
}

#[test]
fn a_guarantee_is_kept_beside_streams_of_more_weight() {
    let job = "[global]\ndirect=1\nsize=2g\ntime_based\nruntime=6s\n\
        [queries]\nrw=randread\nbs=4k\nioengine=libaio\niodepth=4\ncgroup=q\ncgroup_weight=10\nMIN\n\
        [stream]\nrw=read\nbs=256k\nioengine=libaio\niodepth=4\ncgroup=s\ncgroup_weight=1000\n";
    // A disk of one request at a time: what a client queues for itself delays no other there.
    for scheduler in CONTROLLED {
        let run = |what: &str, min: &str| {
            Plan::on("sata2009").scheduler(scheduler).load(what, &job.replace("MIN", min)).run()
        };
        let calls = |o: &Outcome, second: usize| o.series[second][0].calls;
        run("queries of small weight", "rw=randread")
            .check("they get little", |o| (1..6).map(|s| calls(o, s)).sum::<u64>() < 100);
        run("the same with a guarantee", "#!fh_cgroup=min_iops=40")
            .check("it is kept in each second", |o| (1..6).all(|s| calls(o, s) >= 40))
            .check("the stream has the rest", |o| o.clients[1].bandwidth() > 20 << 20);
    }
}
