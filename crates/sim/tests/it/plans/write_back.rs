//! Write-back beside others: who waits for which writes, and how long requests are.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;

const WRITER: &str = "[global]\nfilename=/dev/sda\n[w]\nrw=write\nbs=1m\nsize=64m\noffset=1g\n";

#[test]
fn a_job_that_invalidates_a_disk_writes_it_back_first() {
    for (invalidate, written) in [(1, 64 * MIB), (0, 0)] {
        let reader = format!(
            "[r]\nstartdelay=1s\nrw=read\nbs=4k\ndirect=1\nsize=4k\noffset=10g\ninvalidate={invalidate}\n"
        );
        let (plan, _) = Plan::on("nas2020")
            .load(
                "64 MiB are written to memory; then another job opens the disk",
                &format!("{WRITER}{reader}"),
            )
            .explain(&[1]);
        plan.check("what was dirty is on the disk", |o| o.disk.written_bytes == written)
            .check("and was waited for before the first call", |o| {
                (o.clients[1].elapsed > Duration::from_ms(100)) == (invalidate == 1)
            })
            .check("which is short", |o| o.clients[1].latency_max() < Duration::from_ms(60));
    }
}

#[test]
fn a_direct_read_waits_for_the_writes_of_its_range_only() {
    let calls = |target: [&str; 2]| {
        let [to, from] = target;
        let load = format!(
            "[global]\nruntime=5s\ntime_based\ninvalidate=0\n[w]\n{to}rw=write\nbs=1m\nsize=4g\noverwrite=1\n\
             [r]\n{from}rw=read\nbs=256k\ndirect=1\nsize=4g\n"
        );
        let plan = Plan::on("nas2020").scheduler("mq-deadline").load("a writer and a reader", &load).run();
        plan.outcome().clients[1].read.calls
    };
    let on_disk = calls(["filename=/dev/sda\noffset=1g\n", "filename=/dev/sda\noffset=20g\n"]);
    let in_files = calls(["", "offset=0\n"]);
    assert!(on_disk * 2 > in_files, "{on_disk} reads beside the writer, and {in_files} of a file");
}

#[test]
fn a_sync_ends_though_another_goes_on_writing() {
    let load = "[global]\nfilename=/dev/sda\nruntime=10s\ntime_based\ninvalidate=0\n\
        [w]\nrw=write\nbs=1m\nsize=40g\n[log]\nrw=write\nbs=4k\nfsync=1\noffset=20g\nsize=64m\n";
    for scheduler in ["mq-deadline", "bfq"] {
        let plan = Plan::on("nas2020")
            .scheduler(scheduler)
            .load("a writer, and another of the same disk that syncs", load)
            .run();
        let sync = &plan.outcome().clients[1].sync;
        println!("{scheduler}: {} syncs, the longest took {} ms", sync.calls, sync.latency_max.as_ms());
        // It was up to 11.3 s, to the end of the run, while syncs wrote what the writer dirtied meanwhile.
        assert!(sync.latency_max < Duration::from_secs(6) && sync.calls >= 2, "{scheduler}: {sync:?}");
    }
}

#[test]
fn a_request_of_a_disks_own_pages_has_128_of_them() {
    for (target, requests) in [("filename=/dev/sda\n", 128), ("", 64)] {
        Plan::on("sata_ssd")
            .load(
                "64 MiB written and synced",
                &format!("[w]\n{target}rw=write\nbs=1m\nsize=64m\nend_fsync=1\n"),
            )
            .run()
            .check("in requests of 512 KiB, and in a file of 1 MiB", |o| {
                (o.disk.written_bytes, o.disk.issued) == (64 * MIB, requests)
            });
    }
}

#[test]
fn calls_longer_than_the_read_ahead_are_read_as_they_are() {
    for (bs, least, most) in [("1m", 60, 70), ("64k", 250, 520)] {
        Plan::on("sata_ssd")
            .load("64 MiB read", &format!("[r]\nrw=read\nfadvise_hint=0\nbs={bs}\nsize=64m\n"))
            .run()
            .check("requests", |o| o.disk.read_bytes == 64 * MIB && (least..=most).contains(&o.disk.issued));
    }
}

#[test]
fn a_writer_is_held_at_the_set_point_and_writes_as_fast_as_the_disk() {
    for writers in [1, 3] {
        let load = format!(
            "[w]\nrw=write\nbs=1m\nsize=10g\noverwrite=1\ntime_based\nruntime=20s\nnumjobs={writers}\n"
        );
        Plan::on("nas2020")
            .host("100 MiB may be dirty without more ado, and 200 at most", |h| {
                (h.dirty_background_bytes, h.dirty_bytes) = (100 * MIB, 200 * MIB);
            })
            .load("writers", &load)
            .run()
            .check("pages are between the free run and the limit", |o| {
                (150 * MIB..=204 * MIB).contains(&(o.cache.dirty_at_end * 4096))
            })
            .check("no call waits for long", |o| {
                o.clients.iter().all(|c| c.latency_max() < Duration::from_ms(600))
            })
            .check("writers get the same", |o| {
                let bytes = || o.clients.iter().map(|c| c.write.bytes);
                bytes().min() > bytes().max().map(|most| most / 10 * 8)
            })
            .check("the disk is never without writes", |o| o.disk.written_bytes > 20 * 190 * MIB);
    }
}
