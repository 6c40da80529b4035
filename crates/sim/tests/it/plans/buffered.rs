//! Through the page cache.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;
use fairhead_core::sched::any::PRESETS;
use fairhead_sim::host::Throttle;

#[test]
fn a_file_is_read_once_from_the_disk_and_then_from_memory() {
    Plan::on("ide2004")
        .load(
            "a file of 16 MiB is read, and read again after that",
            "[global]\nfilename=f\nsize=16m\nbs=16k\n[first]\nrw=read\n[again]\nstonewall\nrw=read\ninvalidate=0\n",
        )
        .run()
        .check("both clients saw all of it", |o| o.clients.iter().all(|c| c.read.bytes == 16 * MIB))
        .check("every page was read once", |o| o.cache.pages_read == 4096)
        .check("and so it was from the disk", |o| o.disk.read_bytes == 16 * MIB)
        .check("the second reading took no I/O at all", |o| {
            // 1024 calls of 2 us and 4 pages of 4 us each.
            o.clients[1].elapsed == Duration::from_us(1024 * 18)
        });
}

#[test]
fn a_file_that_was_dropped_from_the_cache_is_read_again() {
    Plan::on("ide2004")
        .load(
            "a file is read, dropped (fio's default), and read again",
            "[global]\nfilename=f\nsize=16m\nbs=16k\n[first]\nrw=read\n[again]\nstonewall\nrw=read\n",
        )
        .run()
        .check("every page was read twice", |o| o.cache.pages_read == 2 * 4096);
}

#[test]
fn a_file_larger_than_memory_does_not_stay() {
    Plan::on("ide2004")
        .host("with 8 MiB of memory", |h| h.memory = 8 * MIB)
        .load(
            "a file of 16 MiB is read twice",
            "[global]\nfilename=f\nsize=16m\nbs=16k\n[first]\nrw=read\n[again]\nstonewall\nrw=read\ninvalidate=0\n",
        )
        .run()
        .check("all of it comes from the disk both times", |o| o.cache.pages_read == 2 * 4096)
        .check("what did not fit was dropped", |o| o.cache.evicted == 8192 - 2048);
}

#[test]
fn random_reads_read_what_they_ask_for() {
    Plan::on("ide2004")
        .load("every block of a file at random", "[r]\nrw=randread\nbs=4k\nsize=4m\n")
        .run()
        .check("a random pass is a permutation: every page missed once", |o| {
            (o.cache.misses, o.cache.pages_read, o.clients[0].read.calls) == (1024, 1024, 1024)
        });
}

#[test]
fn a_file_read_beforehand_needs_no_disk() {
    Plan::on("ide2004")
        .load("pre_read", "[r]\nrw=randread\nbs=4k\nsize=4m\npre_read=1\n")
        .run()
        .check("nothing is read", |o| o.disk.read_bytes == 0 && o.clients[0].read.bytes == 4 * MIB);
}

#[test]
fn a_sequential_reader_streams() {
    Plan::on("ide2004")
        .load("64 MiB, 4 KiB at a time", "[r]\nrw=read\nbs=4k\nsize=64m\n")
        .run()
        // 28.6 MB/s less the way to the first block.
        .check("at the disk's own speed", |o| (27_000_000..28_700_000).contains(&o.clients[0].bandwidth()))
        .check("with one miss", |o| o.cache.misses == 1)
        .check("in requests of 128 KiB", |o| o.disk.issued < 64 * 8 + 10);
}

#[test]
fn fsck_takes_as_long_as_it_did() {
    for scheduler in ["deadline-2.6.9", "as-2.6.9", "cfq-ts2"] {
        Plan::on("ide2004")
            .scheduler(scheduler)
            .load("fsck of the whole disk", "[fsck]\nfh_workload=fsck\n")
            .run()
            // Published 27.9 to 30.6 s; a prototype of the model had 22.9 s and 2.3 s for the bitmaps.
            .check("22 to 28 s", |o| (22..28).contains(&(o.elapsed.as_ms() / 1000)))
            .check("230 groups of 510 + 2 blocks", |o| o.clients[0].read.bytes == 230 * 512 * 4096);
    }
}

#[test]
fn a_table_scan_is_bound_by_the_disk() {
    Plan::on("sata2009")
        .scheduler("cfq-2.6.33")
        .load("one scan in the zone of 40 MB/s", "[scan]\nfh_workload=dbscan\nfh_start=90%\n")
        .run()
        .check("880 MB in 8 KiB reads", |o| o.clients[0].read.bytes == 880_000_000 / 512 * 512)
        .check("20 to 25 s", |o| (20..25).contains(&(o.elapsed.as_ms() / 1000)))
        .check("6714 requests of 128 KiB, and the windows of the start", |o| o.disk.issued < 6714 + 10);
}

#[test]
fn scans_that_take_turns_have_a_window_to_a_turn() {
    // Other readers have two, of twice the size if advised, which merge into one request while the other
    // reader is served.
    for (how, options, windows) in
        [("scans", "fh_workload=dbscan", 1), ("dd", "rw=read\nfadvise_hint=0", 2), ("fio", "rw=read", 4)]
    {
        Plan::on("sata2009")
            .scheduler("noop")
            .load(how, &format!("[global]\n{options}\nbs=8k\nsize=32m\n[a]\nfh_start=93%\n[b]\n"))
            .run()
            .check("both end", |o| o.clients.iter().all(|c| c.read.bytes == 32 * MIB))
            // 512 windows of 128 KiB, and those of the start.
            .check("the number of requests", |o| (510..530).contains(&(o.disk.issued * windows)))
            .check("each with a seek", |o| o.disk.counters.seeks + 20 > o.disk.issued);
    }
}

#[test]
fn a_query_is_measured_from_its_first_read_to_its_last() {
    let run = |options: &str| {
        let jobs =
            format!("[q]\nrw=randread\nbs=8k\nsize=8m\nthinktime=1ms\nthinktime_blocks=4\n{options}\n");
        let plan = Plan::on("sata2009").load("random reads, four and a pause", &jobs).run();
        (plan.outcome().clients[0].read.clone(), plan.outcome().elapsed)
    };
    let ((reads, took), (queries, took_too)) = (run(""), run("fh_query=4"));
    assert_eq!((reads.calls, queries.calls), (1024, 256));
    // The same reads at the same times; nothing but the next read follows a read, so their latencies add up.
    assert_eq!((reads.bytes, reads.latency_sum, took), (queries.bytes, queries.latency_sum, took_too));
    assert!(queries.latency_max > reads.latency_max, "{queries:?}");
}

#[test]
fn what_was_synced_is_on_the_disk() {
    Plan::on("sata2009")
        .load(
            "8 MiB written and synced at the end",
            "[w]\nrw=write\nbs=64k\nsize=8m\nend_fsync=1\n[other]\nrw=write\nbs=64k\nsize=8m\n",
        )
        .run()
        .check("the synced file is, the other is not", |o| o.disk.written_bytes == 8 * MIB)
        .check("and in its place", |o| o.cache.pages_written == 2048 && o.cache.dirty_at_end == 2048)
        .check("one fsync was measured", |o| o.clients[0].sync.calls == 1)
        .check("and emptied the disk's cache", |o| o.disk.counters.flushes == 1);
}

#[test]
fn every_write_is_stable_when_its_call_ends() {
    for (how, options) in [
        ("buffered, O_DSYNC", "sync=dsync"),
        ("direct, O_SYNC", "direct=1\nsync=sync"),
        // As in fio, no fdatasync follows the last write: its end is left to `end_fsync`.
        ("buffered, an fdatasync after each", "fdatasync=1\nend_fsync=1"),
    ] {
        Plan::on("sata2009")
            .load(how, &format!("[w]\nrw=randwrite\nbs=4k\nsize=1m\n{options}\n"))
            .run()
            .check("256 writes reached the disk", |o| o.disk.written_bytes == MIB)
            .check("each with a flush", |o| o.disk.counters.flushes == 256)
            .check("nothing is left", |o| o.cache.dirty_at_end == 0);
    }
}

#[test]
fn old_data_is_written_after_half_a_minute() {
    Plan::on("ide2004")
        .load(
            "1 MiB is written in the first second; then nothing for a minute",
            "[w]\nrw=write\nbs=1m\nsize=2m\nthinktime=60s\n",
        )
        .run()
        .check("nothing is written in the first 30 s", |o| {
            o.disk_series[..30].iter().all(|p| p.written_bytes == 0)
        })
        .check("all is by 36 s", |o| o.disk_series[..36].iter().map(|p| p.written_bytes).sum::<u64>() == MIB);
}

#[test]
fn a_writer_is_held_back_at_the_limit() {
    for throttle in [Throttle::WriteBack, Throttle::Sleep] {
        let what = format!("with 100 MiB of memory, of which 40 % may be dirty, {throttle:?}");
        let plan = Plan::on("ide2004")
            .host(&what, |h| (h.memory, h.throttle) = (100 * MIB, throttle))
            .load("400 MiB are written", "[w]\nrw=write\nbs=256k\nsize=400m\noverwrite=1\n")
            .run()
            .check("it was held back", |o| o.cache.throttled > 0)
            .check("all but 40 MiB (and the last 5) are on their way", |o| o.disk.written_bytes >= 355 * MIB);
        // At the memory's speed it would take 0.4 s, at the disk's 13 s.
        assert!(plan.outcome().elapsed > Duration::from_secs(9), "{:?}", plan.outcome().elapsed);
    }
}

#[test]
fn below_the_background_limit_nothing_is_written_at_once() {
    let load = |mib: u64| {
        let text = format!("[w]\nrw=write\nbs=256k\nsize={mib}m\noverwrite=1\nrate=20m\n");
        Plan::on("ide2004")
            .host("with 100 MiB of memory, of which 10 % may be dirty without more ado", |h| {
                h.memory = 100 * MIB
            })
            .load("a slow writer", &text)
            .run()
    };
    load(9).check("9 MiB stay in memory", |o| o.disk.written_bytes == 0);
    load(30).check("of 30 MiB some are written", |o| o.disk.written_bytes > 15 * MIB);
}

#[test]
fn a_writer_looks_at_the_limits_after_1024_pages() {
    for (kib, looks) in [(4096, true), (4092, false)] {
        let text = format!("[w]\nrw=write\nbs={kib}k\nsize={}k\nthinktime=60s\noverwrite=1\n", 2 * kib);
        Plan::on("ide2004")
            .host("with 32 MiB of memory, of which 10 % may be dirty without more ado", |h| {
                h.memory = 32 * MIB
            })
            .load("about 4 MiB are written; then nothing for a minute", &text)
            .run()
            .check("what is above the limit is written at once if the writer looks", |o| {
                o.disk_series[..4].iter().any(|p| p.written_bytes > 0) == looks
            });
    }
}

#[test]
fn nobody_starves_between_a_stream_in_and_a_stream_out() {
    for preset in PRESETS {
        Plan::on("ide2004")
            .scheduler(preset.name)
            .host("with 256 MiB of memory", |h| h.memory = 256 * MIB)
            .load(
                "a reader and a writer through the page cache, and a program that looks something up",
                "[global]\nsize=1g\nruntime=8s\ntime_based\nbs=64k\n[in]\nrw=read\n[out]\nrw=write\n[ask]\nrw=randread\nbs=4k\nthinktime=100ms\n",
            )
            .run()
            .check("all of them go on", |o| o.clients.iter().all(|c| c.read.calls + c.write.calls > 10))
            .check("no call waits for more than 10 s", |o| {
                o.clients.iter().all(|c| c.latency_max() < Duration::from_secs(10))
            })
            .check("reads come from the disk, and ahead by two windows and what was looked up at most", |o| {
                let seen: u64 = o.clients.iter().map(|c| c.read.bytes).sum();
                let read = o.cache.pages_read * 4096;
                read >= seen && read <= seen + 2 * 256 * 1024 + 64 * 1024
            })
            .check("every page that was dirtied is written, or still dirty", |o| {
                let dirtied = o.clients[1].write.bytes / 4096;
                let accounted = o.cache.pages_written + o.cache.dirty_at_end;
                // No page is dirtied twice in 8 s; the last call may be in flight.
                accounted >= dirtied && accounted <= dirtied + 16
            });
    }
}

#[test]
fn time_slices_let_a_reader_stream_beside_a_writer() {
    // The hosting provider's run of docs/reference/published-results.md#17-vmstat, in small.
    let rate = |scheduler: &str| {
        let plan = Plan::on("sata2009")
            .host("of 2004, with 256 MiB", |h| {
                *h = fairhead_sim::Host { memory: 256 * MIB, ..fairhead_sim::Host::of_2004() }
            })
            .scheduler(scheduler)
            .load(
                "a streaming read and a streaming write",
                "[global]\nsize=4g\nruntime=20s\ntime_based\nbs=64k\n[in]\nrw=read\n[out]\nrw=write\n",
            )
            .run();
        plan.outcome().clients[0].bandwidth()
    };
    let (old, new) = (rate("cfq-2.6.10"), rate("cfq-ts2"));
    assert!(new > 3 * old, "{new} B/s with slices, {old} B/s without");
}

#[test]
fn direct_and_buffered_see_the_same_file() {
    Plan::on("ide2004")
        .load(
            "a file is dirtied in memory, read past the cache, overwritten past the cache, and read",
            "[global]\nfilename=f\nsize=1m\nbs=64k\noverwrite=1\ninvalidate=0\n\
             [dirty]\nrw=write\n\
             [direct-read]\nstonewall\nrw=read\ndirect=1\n\
             [direct-write]\nstonewall\nrw=write\ndirect=1\n\
             [read]\nstonewall\nrw=read\n",
        )
        .run()
        .check("the direct read had the dirty pages written first", |o| o.cache.pages_written == 256)
        .check("the direct write dropped the cached ones, so they are read anew", |o| {
            o.cache.pages_read == 256
        })
        .check("1 MiB was written twice", |o| o.disk.written_bytes == 2 * MIB);
}

#[test]
fn a_part_of_a_page_is_overwritten_after_the_page_was_read() {
    Plan::on("ide2004")
        .load(
            "512 bytes here and there of an old file of 16 pages",
            "[w]\nrw=randwrite\nbs=512\nsize=64k\noverwrite=1\nnumber_ios=20\n",
        )
        .run()
        .check("pages were read first", |o| o.cache.pages_read > 0 && o.cache.pages_read <= 16);
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let run = |seed| {
        let plan = Plan::on("ide2004")
            .seed(seed)
            .scheduler("cfq-ts2")
            .host("with 64 MiB of memory", |h| h.memory = 64 * MIB)
            .load(
                "a bit of everything",
                "[global]\nsize=64m\nruntime=5s\ntime_based\n[a]\nrw=randrw\nbs=8k\nrandom_distribution=zipf:1.1\n[b]\nrw=write\nfh_layout=ext2\nnumjobs=2\nfsync=100\n[c]\nrw=read\nbs=32k\ndirect=1\n[d]\nrw=randwrite\nrandom_distribution=normal:10\n",
            )
            .run();
        plan.outcome().clone()
    };
    let (a, b, c) = (run(1), run(1), run(2));
    assert!(a == b, "one seed, two outcomes");
    assert!(a.clients != c.clients, "two seeds, one outcome");
}
