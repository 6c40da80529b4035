//! `perf script`: with stacks, with `pid/tid`, and with the fields that `-F` adds.

use fairhead_trace::{Format, Record, read};
use std::io::Cursor;

/// The requests of a text, and the name of each one's task.
fn requests(text: &str) -> Vec<(Record, String)> {
    let mut trace = read("t", Cursor::new(text.as_bytes().to_vec())).unwrap();
    assert_eq!(trace.format(), Format::Ftrace);
    let all: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
    let name = |r: &Record| trace.names().task(r.task).unwrap_or_default().to_owned();
    all.iter().map(|r| (*r, name(r))).collect()
}

/// Checks for one write of 8 sectors, from 0 to 300 us, by that task.
fn check(text: &str, task: u32) {
    let all = requests(text);
    let [(r, name)] = &all[..] else { panic!("{} requests in\n{text}", all.len()) };
    assert_eq!((r.sector.0, r.sectors, r.task.0, name.as_str()), (2048, 8, task, "fio"), "{text}");
    assert_eq!((r.at.as_us(), r.completed.map(|t| t.as_us())), (0, Some(300)), "{text}");
}

#[test]
fn stacks_between_events_are_passed_over() {
    check(include_str!("../cases/perf-with-stacks.txt"), 12345);
}

#[test]
fn of_pid_and_tid_the_thread_counts() {
    check(include_str!("../cases/perf-pid-tid.txt"), 12350);
}

#[test]
fn what_perf_can_add() {
    let issue = "block:block_rq_issue: 259,0 WS 4096 () 2048 + 8 be,0,4 [fio]";
    let done = "block:block_rq_complete: 259,0 WS () 2048 + 8 be,0,4 [0]";
    let header = "# ========\n# captured on    : Sat Nov 28 12:00:00 2026\n# ========\n#\n";
    // The number of samples, nanoseconds, a header, no blank before the time.
    for (issue, done) in [
        (
            format!("fio 5 [002]  1.567000:          1 {issue}"),
            format!("swapper 0 [002]  1.567300:          1 {done}"),
        ),
        (format!("fio 5 [002] 1.567000000: {issue}"), format!("swapper 0 [002] 1.567300000: {done}")),
        (format!("{header}fio 5 [002] 1.567: {issue}"), format!("swapper 0 [002] 1.5673: {done}")),
    ] {
        check(&format!("{issue}\n{done}\n"), 5);
        // Stacks of users and kernels, inlined, with lines in the source, and with addresses alone.
        let stack = "\tffffffff8 blk_mq_start_request+0x0 ([kernel.kallsyms])\n  blk-mq.c:1340\n\
            \t    7f1 [unknown] (/usr/lib/libc.so.6)\n\t    55d main+0x10 (inlined)\n\t    55e\n";
        check(&format!("{issue}\n{stack}\n{done}\n{stack}\n"), 5);
    }
}

#[test]
fn other_events_between_are_passed_over() {
    check(
        "fio 5 [002]  1.500000: sched:sched_switch: prev_comm=fio prev_pid=5 ==> next_comm=swapper/2 next_pid=0\n\
         fio 5 [002]  1.500000: block:block_plug: [fio]\n\
         fio 5 [002]  1.567000: block:block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]\n\
         fio 5 [002]  1.567100: block:block_unplug: [fio] 1\n\
         swapper 0 [002]  1.567200: irq:softirq_entry: vec=4 [action=BLOCK]\n\
         swapper 0 [002]  1.567300: block:block_rq_complete: 259,0 WS () 2048 + 8 [0]\n",
        5,
    );
}

#[test]
fn a_discard_and_a_merged_request() {
    let all = requests(
        "fio 5 [0] 1.000000: block:block_bio_queue: 8,0 WS 0 + 8 [fio]\n\
         fio 5 [0] 1.000001: block:block_bio_queue: 8,0 WS 8 + 8 [fio]\n\
         fio 5 [0] 1.000002: block:block_bio_backmerge: 8,0 WS 8 + 8 [fio]\n\
         fio 5 [0] 1.000003: block:block_rq_issue: 8,0 WS 8192 () 0 + 16 [fio]\n\
         fstrim 6 [0] 1.000004: block:block_bio_queue: 8,0 DS 65536 + 4194304 [fstrim]\n\
         fstrim 6 [0] 1.000005: block:block_split: 8,0 DS 65536 / 2162688 [fstrim]\n\
         fstrim 6 [0] 1.000006: block:block_rq_issue: 8,0 DS 0 () 65536 + 2097152 [fstrim]\n\
         fstrim 6 [0] 1.000007: block:block_rq_issue: 8,0 DS 0 () 2162688 + 2097152 [fstrim]\n\
         swapper 0 [0] 1.000010: block:block_rq_complete: 8,0 WS () 0 + 16 [0]\n\
         swapper 0 [0] 1.000020: block:block_rq_complete: 8,0 DS () 2162688 + 2097152 [0]\n\
         swapper 0 [0] 1.000030: block:block_rq_complete: 8,0 DS () 65536 + 2097152 [0]\n",
    );
    let ends: Vec<_> = all.iter().map(|(r, _)| (r.sectors, r.completed.map(|t| t.as_us()))).collect();
    assert_eq!(ends, [(8, Some(10)), (8, Some(10)), (4_194_304, Some(30))]);
}
