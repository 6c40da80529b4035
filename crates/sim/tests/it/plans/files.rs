//! Files that grow.

use super::plan::{MIB, Plan};

#[test]
fn writers_side_by_side_interleave_their_files() {
    let read_back = |numjobs: u32, seed| {
        let text = format!("[r]\nrw=read\nbs=128k\ndirect=1\nsize=64m\nfh_layout=ext2\nnumjobs={numjobs}\n");
        let plan = Plan::on("ide2004").seed(seed).load("files laid out by ext2", &text).run();
        let o = plan.outcome();
        // One file's pieces lie between the other's, so that readers at one place are merged into one
        // request.
        (o.disk.issued + o.disk.merged) / u64::from(numjobs)
    };
    // 64 MiB are 512 requests of 128 KiB; a file alone is cut every 4 MiB, files that have collided every 32
    // KiB. The seed draws the processes' numbers, and so where in the group their files start and when they
    // meet.
    let one = read_back(1, 1);
    let two: Vec<u64> = (1..=4).map(|seed| read_back(2, seed)).collect();
    assert!((512..600).contains(&one) && two.iter().all(|&n| n > 650), "{one} {two:?}");
    assert!(two.iter().any(|&n| n > 1300), "{two:?}");
}

#[test]
fn a_new_file_is_allocated_as_it_is_written() {
    Plan::on("ide2004")
        .load(
            "two direct writers of new files in ext2, for a minute",
            "[w]\nrw=write\nbs=64k\ndirect=1\nsize=256m\nfh_layout=ext2\nnumjobs=2\nruntime=60s\ntime_based\n",
        )
        .run()
        .check("data goes to the disk at once, metadata after 30 s", |o| {
            let data: u64 = o.clients.iter().map(|c| c.write.bytes).sum();
            o.disk.written_bytes > data + 16 * 4096 && o.disk.written_bytes < data + 4 * MIB
        })
        .check("metadata are pages", |o| o.cache.pages_written > 16);
}

#[test]
fn a_write_into_a_hole_goes_through_the_cache_and_is_waited_for() {
    Plan::on("ide2004")
        .load(
            "random direct writes of a new file in ext2",
            "[w]\nrw=randwrite\nbs=4k\ndirect=1\nsize=16m\nfh_layout=ext2\n",
        )
        .run()
        .check("every block is on the disk", |o| o.disk.written_bytes >= 16 * MIB)
        .check("most went through the cache: only those behind the end so far are direct", |o| {
            (4000..4096).contains(&o.cache.pages_written)
        })
        // 4096 random writes of 4 KiB all over 16 MiB would be 10 ms each.
        .check("in the order of the writing, so nearly sequentially", |o| o.elapsed.as_ms() < 4096 * 3);
}

#[test]
fn reading_a_hole_needs_no_disk() {
    Plan::on("ide2004")
        .load(
            "one block at the end of a new file, then all of it",
            "[global]\nfilename=f\nsize=1m\nfh_layout=ext2\ninvalidate=0\n[w]\nrw=write\nbs=4k\noffset=1020k\n[r]\nstonewall\nrw=read\nbs=64k\ndirect=1\n",
        )
        .run()
        .check("one page is read", |o| o.disk.read_bytes == 4096 && o.clients[1].read.bytes == MIB);
}

#[test]
fn an_appended_file_grows() {
    Plan::on("ide2004")
        .load(
            "1 MiB is appended to 1 MiB",
            "[w]\nrw=write\nbs=64k\ndirect=1\nfilesize=1m\nsize=1m\nfile_append=1\nfallocate=none\nfh_layout=ext2\n",
        )
        .run()
        .check("1 MiB is written", |o| o.clients[0].write.bytes == MIB);
}

#[test]
fn a_full_disk_is_an_error_with_a_name() {
    let e = Plan::on("flashcard2010")
        .load("more than the card holds", "[big]\nrw=write\nbs=1m\ndirect=1\nsize=1t\nfh_layout=ext2\n")
        .refused();
    let message = e.to_string();
    assert!(message.contains("'big'") && message.contains("do not fit"), "{message}");
}

#[test]
fn a_block_map_that_is_not_in_memory_is_read_once() {
    let issued = |metadata: &str| {
        let text = format!("[r]\nrw=read\nbs=64k\ndirect=1\nsize=16m\nloops=2\nfh_metadata={metadata}\n");
        let plan = Plan::on("ide2004").load("two passes over 16 MiB", &text).run();
        (plan.outcome().disk.issued, plan.outcome().clients[0].read.calls)
    };
    // 4096 blocks: 12 known to the inode, then 4 indirect blocks of 1024 each.
    assert_eq!(issued("cached"), (512, 512));
    assert_eq!(issued("cold"), (516, 512));
}
