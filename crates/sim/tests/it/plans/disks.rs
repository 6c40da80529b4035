//! Several disks under one host.

use super::plan::{MIB, Plan};
use fairhead_core::sched::any::PRESETS;
use fairhead_device::DeviceParams;
use fairhead_sim::Outcome;
use fairhead_sim::metrics::DiskStats;

/// What a disk did.
fn disk<'o>(o: &'o Outcome, label: &str) -> &'o DiskStats {
    &o.disks.iter().find(|d| d.label == label).unwrap_or_else(|| panic!("no disk {label}")).stats
}

#[test]
fn each_disk_has_what_its_jobs_ask_for_and_all_together_the_sum() {
    let load = "[global]\nbs=64k\ndirect=1\n[a]\nsize=16m\nfh_disk=one\n[b]\nrw=write\nsize=8m\nfh_disk=two:sata2009\n[c]\nsize=4m\nfilename=x:y\nfh_disk=one,two\n";
    let plan =
        Plan::on("nas2020").load("a reader on one disk, a writer on another, a third on both", load).run();
    plan.check("files lie where the jobs say", |o| {
        let (one, two) = (disk(o, "one"), disk(o, "two"));
        (one.read_bytes, one.written_bytes) == (18 * MIB, 0)
            && (two.read_bytes, two.written_bytes) == (2 * MIB, 8 * MIB)
    })
    .check("the disks add up", |o| {
        let sum = |of: fn(&DiskStats) -> u64| o.disks.iter().map(|d| of(&d.stats)).sum::<u64>();
        o.disk.read_bytes == 20 * MIB
            && o.disk.issued == sum(|s| s.issued)
            && o.disk.counters.bytes_read == sum(|s| s.counters.bytes_read)
    })
    .check("and so do their series", |o| {
        (0..o.disk_series.len()).all(|i| {
            let sum: u64 = o.disks.iter().map(|d| d.series[i].read_bytes).sum();
            o.disk_series[i].read_bytes == sum
        })
    });
}

#[test]
fn two_disks_serve_two_streams_as_fast_as_each_alone() {
    let one = "[global]\nrw=read\nbs=128k\ndirect=1\nsize=2g\ntime_based\nruntime=5s\n[a]\nfh_disk=x\n";
    let two = format!("{one}[b]\nfh_disk=y\n");
    let on_one = format!("{one}[b]\nfh_disk=x\n");
    for scheduler in ["noop", "mq-deadline", "bfq", "cfq"] {
        let load = |text: &str| {
            let plan = Plan::on("sata2009").scheduler(scheduler).load("readers", text).run();
            plan.outcome().bandwidth()
        };
        let (alone, both, shared) = (load(one), load(&two), load(&on_one));
        assert!(both * 100 >= alone * 197 && both * 100 <= alone * 203, "{scheduler}: {both} of {alone}");
        assert!(shared * 100 <= alone * 105, "{scheduler}: one disk {shared}, alone {alone}");
    }
}

#[test]
fn a_name_for_the_one_disk_changes_nothing() {
    let jobs = "[a]\nrw=randrw\nbs=4k\nsize=8m\nfsync=10\n[b]\nsize=8m\ndirect=1\n[c]\nfilename=/dev/sda\nrw=randread\ndirect=1\nnumber_ios=200\nnorandommap\n";
    for scheduler in ["deadline", "bfq"] {
        let load = |text: String| {
            let plan = Plan::on("sata2009").scheduler(scheduler).load("a mix", &text).run();
            plan.outcome().clone()
        };
        let (plain, named) = (load(jobs.to_owned()), load(format!("[global]\nfh_disk=sda\n{jobs}")));
        assert!(
            Outcome { disks: Vec::new(), ..plain } == Outcome { disks: Vec::new(), ..named },
            "{scheduler}"
        );
    }
}

#[test]
fn raw_disks_of_one_job_are_all_used() {
    let load = "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nfilename=/dev/nvme0n1:/dev/nvme1n1:/dev/nvme2n1:/dev/nvme3n1\nnumber_ios=4000\n";
    Plan::on("nvme")
        .scheduler("noop")
        .load("one reader of four drives", load)
        .run()
        .check("a quarter each", |o| {
            o.disks.len() == 4 && o.disks.iter().all(|d| d.stats.counters.reads == 1000)
        });
}

#[test]
fn a_disk_is_flushed_for_its_own_files_and_has_its_own_scheduler() {
    let load = "[global]\nrw=write\nbs=64k\nsize=4m\nfsync=16\n[a]\nfh_disk=x:sata2009:cfq\n[b]\nfh_disk=y:sata_ssd\nfsync=8\n";
    Plan::on("nas2020")
        .scheduler("deadline")
        .load("two writers that sync", load)
        .run()
        .check("3 flushes on one, 7 on the other: the last writes are not synced", |o| {
            (disk(o, "x").counters.flushes, disk(o, "y").counters.flushes) == (3, 7)
        })
        .check("cfq on the one, the run's on the other", |o| {
            (o.disks[0].scheduler.as_str(), o.disks[1].scheduler.as_str()) == ("cfq", "deadline")
        })
        .check("the one turns, the other does not", |o| {
            disk(o, "x").counters.seeks > 0 && disk(o, "y").counters.seeks == 0
        });
}

#[test]
fn nothing_is_lost_on_several_disks_whatever_the_scheduler() {
    let load = "[global]\nsize=16m\nio_size=2m\nfh_disk=a,b:sata_ssd,m:raid1_2009\n[a]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nnrfiles=3\n[b]\nrw=randrw\nbs=8k\nfsync=10\nnumjobs=3\n[c]\nrw=write\nbs=64k\nend_fsync=1\nnumjobs=3\n[d]\nrw=read\nbs=16k\nnumjobs=3\n[e]\nrw=randtrim\nbs=64k\ndirect=1\nnumjobs=3\n";
    for preset in PRESETS {
        for nr_requests in [128, 4] {
            Plan::on("sata2009")
                .scheduler(preset.name)
                .host("with many requests, or few", |h| h.nr_requests = Some(nr_requests))
                .load("readers, writers, syncs and trims on three disks", load)
                .run()
                .check("every client did all of its work", |o| o.clients.iter().all(|c| c.bytes() == 2 * MIB))
                .check("all disks took part", |o| o.disks.iter().all(|d| d.stats.issued > 100));
        }
    }
}

#[test]
fn files_grow_on_several_disks() {
    let load = "[w]\nrw=write\nbs=16k\nsize=4m\nnumjobs=4\nend_fsync=1\nfh_layout=ext2\nfh_disk=a,b\n";
    Plan::on("sata2009")
        .load("writers of new files in ext2, on two disks", load)
        .run()
        .check("each disk has two files", |o| o.disks.iter().all(|d| d.stats.written_bytes == 8 * MIB));
}

#[test]
fn each_disk_has_its_first_file_where_the_job_says() {
    let load = "[r]\nrw=read\nbs=64k\nsize=1m\nnumjobs=4\ndirect=1\nfh_disk=a,b\nfh_start=100000000sectors\n";
    let (_, journal) = Plan::on("sata2009").load("four readers on two disks", load).record();
    assert_eq!(journal.requests.len(), 64);
    assert!(journal.requests.iter().all(|r| r.sector.0 >= 100_000_000));
}

#[test]
fn what_cannot_be_is_said() {
    let fails = |load: &str| Plan::on("nas2020").load("", load).refused().to_string();
    assert_eq!(
        fails("[global]\nfilename=f\nsize=1m\n[a]\nfh_disk=x\n[b]\nfh_disk=y\n"),
        "job 'b': its file 'f' is on disk 'x', and would lie on 'y' here; give it another name, or the same fh_disk="
    );
    assert_eq!(fails("[a]\nsize=1m\nfh_disk=x:mine.toml\n"), "the disk model 'mine.toml' has not been read");
    let many: Vec<String> = (0..33).map(|i| format!("d{i}:raid1_2009")).collect();
    let lines = many.chunks(16).zip(0..).map(|(c, i)| format!("[j{i}]\nfh_disk={}\n", c.join(",")));
    assert_eq!(
        fails(&format!("[global]\nsize=1m\n{}", lines.collect::<String>())),
        "66 disks, counting the members of sets, are more than 64; use fewer"
    );
    assert!(
        fails("[a]\nsize=1m\nfh_disk=x:ide2004\n[b]\nsize=4t\nfh_disk=x\n").contains("do not fit the disk")
    );
}

/// A stripe of some disks of one model, in chunks of 64 KiB.
fn stripe(members: usize, model: &str, queues: &str) -> DeviceParams {
    let members = vec![format!("\"{model}\""); members].join(", ");
    let text = format!("kind = \"raid0\"\nmembers = [{members}]\nchunk = \"64KiB\"\nqueues = \"{queues}\"\n");
    DeviceParams::from_toml(&text, "a stripe").expect("a valid disk")
}

/// Chunks of 128 sectors by turns: computed by hand.
#[test]
fn a_stripe_gives_each_member_its_chunks() {
    // A file from sector 25 600 on, which is chunk 200, the first of row 50; 96 KiB are a chunk and a half.
    let load = "[r]\nfilename=/dev/md0\nbs=96k\noffset=12800k\nsize=288k\ndirect=1\n";
    for queues in ["per-member", "one"] {
        let plan = Plan::on("sata2009").disk(queues, |d| *d = stripe(4, "sata2009", queues));
        let (plan, journal) = plan.scheduler("noop").load("three calls of a chunk and a half", load).record();
        let mut got: Vec<(u8, u64, u32)> =
            journal.requests.iter().map(|r| (r.member, r.sector.0, r.sectors.0)).collect();
        let told = format!("{queues}: {got:?}");
        if queues == "one" {
            assert_eq!(got, [(0, 25_600, 192), (0, 25_792, 192), (0, 25_984, 192)], "{told}");
        } else {
            got.sort_unstable();
            // Calls: chunks 200 and half of 201; the rest of 201 and 202; 203 and half of 204.
            let wanted =
                [(0, 6400, 128), (0, 6528, 64), (1, 6400, 64), (1, 6464, 64), (2, 6400, 128), (3, 6400, 128)];
            assert_eq!(got, wanted, "{told}");
        }
        plan.check("and that is all", |o| o.disk.read_bytes == 288 * 1024);
    }
}

#[test]
fn a_stripe_of_four_reads_nearly_four_times_as_much_at_random() {
    let load = "[r]\nfilename=/dev/md0\nrw=randread\nbs=4k\ndirect=1\nnorandommap\nnumjobs=64\ntime_based\nruntime=5s\n";
    for scheduler in ["noop", "mq-deadline"] {
        let iops = |disk: &dyn Fn(&mut DeviceParams)| {
            let plan = Plan::on("nas2020").disk("alone or striped", disk).scheduler(scheduler);
            let plan = plan.load("64 random readers", load).run();
            plan.outcome().clients.iter().map(|c| c.milli_iops()).sum::<u64>() / 1000
        };
        let one = iops(&|_| {});
        for queues in ["per-member", "one"] {
            let four = iops(&|d| *d = stripe(4, "nas2020", queues));
            // One disk chooses among the 32 requests in its queue; each of four has 16.
            assert!(
                four * 10 > one * 30 && four * 10 < one * 41,
                "{scheduler}, {queues}: {four}, one disk {one}"
            );
        }
    }
    let ssd = |disk: &dyn Fn(&mut DeviceParams)| {
        let load = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4g\nnumjobs=4\nioengine=io_uring\niodepth=256\ntime_based\nruntime=100ms\n";
        let plan = Plan::on("sata_ssd").disk("alone or striped", disk).scheduler("noop");
        let plan = plan
            .host("with 32 processors", |h| h.cpus = 32)
            .load("four random readers at depth 256", load)
            .run();
        plan.outcome().clients.iter().map(|c| c.milli_iops()).sum::<u64>() / 1000
    };
    let (one, four) = (ssd(&|_| {}), ssd(&|d| *d = stripe(4, "sata_ssd", "per-member")));
    assert!(four * 10 > one * 38 && four * 10 < one * 41, "SSDs: {four}, one {one}");
}

#[test]
fn nothing_is_lost_on_a_stripe_whatever_the_scheduler() {
    let load = "[global]\nsize=16m\nio_size=2m\n[a]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\n[b]\nrw=randrw\nbs=8k\nfsync=10\n[c]\nrw=write\nbs=256k\nend_fsync=1\n[d]\nrw=read\nbs=64k\noffset=32k\n[e]\nrw=randtrim\nbs=256k\ndirect=1\n[f]\nrw=randrw\nbs=512k\noffset=20k\ndirect=1\n";
    for preset in PRESETS {
        for nr_requests in [128, 4] {
            Plan::on("sata2009")
                .disk("striped", |d| *d = stripe(3, "sata2009", "per-member"))
                .scheduler(preset.name)
                .host("with many requests, or few", |h| h.nr_requests = Some(nr_requests))
                .load("readers, writers, syncs and trims", load)
                .run()
                .check("every client did all of its work", |o| {
                    o.clients.iter().all(|c| c.bytes() == 2 * MIB)
                });
        }
    }
}
