//! Recorded start-ups.

use super::plan::Plan;
use fairhead_core::Duration;
use std::path::Path;

/// A trace of requests given as (process, sectors, kind, flags).
fn trace(requests: &[(&str, u32, &str, &str)]) -> String {
    let line = |&(process, sectors, kind, flags): &(&str, u32, &str, &str)| {
        format!("{process} .001 {sectors} 1000 {kind} 0 0 {flags} 1.0 C\n")
    };
    requests.iter().map(line).collect()
}

const JOB: &str = "[app]\nfh_startup_trace=x.trace\n";

/// The recording of xterm, or nothing where it is not at hand.
fn xterm() -> Option<String> {
    let path = "../../../shared/data/startup-traces/xterm.trace";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok();
    if text.is_none() {
        println!("skipped: no shared data");
    }
    text
}

#[test]
fn the_recording_of_xterm_has_the_published_figures() {
    let Some(text) = xterm() else { return };
    let t = fairhead_sim::job::StartUpTrace::parse(text.as_bytes(), "xterm.trace").unwrap();
    let count = |f: fn(&fairhead_sim::job::TraceRequest) -> bool| t.requests.iter().filter(|r| f(r)).count();
    assert_eq!((t.requests.len(), t.processes.len()), (718, 2));
    assert_eq!((count(|r| r.jumps), count(|r| !r.jumps), count(|r| r.ahead)), (109, 609, 554));
    let sectors = |p: u16| t.requests.iter().filter(|r| r.process == p).map(|r| r.sectors).sum::<u32>();
    assert_eq!((sectors(0) + sectors(1), sectors(0).max(sectors(1))), (12_072, 10_528));
    // The reads that a program waits for, as docs/reference/hosts.md#application-start-up counts them by
    // size.
    let waited = || t.requests.iter().filter(|r| !r.ahead).map(|r| r.sectors / 2);
    let classes = [4..=4, 8..=16, 17..=32, 33..=64, 65..=127, 128..=128];
    let counts = classes.map(|c| waited().filter(|kib| c.contains(kib)).count());
    assert_eq!((waited().count(), counts), (164, [89, 37, 8, 7, 14, 9]));
}

#[test]
fn the_recording_of_xterm_is_replayed_to_its_end() {
    let Some(text) = xterm() else { return };
    for scheduler in ["noop", "as", "cfq"] {
        Plan::on("nas2020")
            .scheduler(scheduler)
            .traced("xterm starts", JOB, &text)
            .run()
            .check("there are two processes", |o| o.clients.len() == 2)
            .check("each reads what it read", |o| {
                [0, 1].map(|i| o.clients[i].read.bytes / 512) == [10_528, 1544]
            })
            .check("past the page cache", |o| o.cache.pages_read == 0 && o.disk.read_bytes == 12_072 * 512)
            .check("and that is one start-up", |o| {
                o.clients[0].startups.len() == 1 && o.clients[1].startups.is_empty()
            })
            .check("which took as long as the run", |o| {
                o.clients[0].startups[0].finished && o.clients[0].startups[0].took == o.elapsed
            });
    }
}

#[test]
fn one_process_waits_for_the_other() {
    let text = trace(&[
        ("a", 8, "Rand", "R"),
        ("b", 8, "Rand", "R"),
        ("a", 8, "Rand", "R"),
        ("b", 8, "Rand", "RM"),
        ("b", 8, "Rand", "R"),
    ]);
    Plan::on("ide2004")
        .traced("five reads by two processes", JOB, &text)
        .run()
        .check("never two at a time", |o| {
            let waited: Duration = o.clients.iter().fold(Duration::ZERO, |sum, c| sum + c.read.latency_sum);
            o.elapsed >= waited
        })
        .check("all five", |o| [o.clients[0].read.calls, o.clients[1].read.calls] == [2, 3]);
}

#[test]
fn read_ahead_is_not_waited_for_until_the_process_reads() {
    let ahead = |last: &'static str| {
        let mut requests = vec![("a", 8, "Rand", "RA"); 8];
        requests.push((last, 8, "Rand", "R"));
        trace(&requests)
    };
    let on_flash = |what: &str, last: &'static str| {
        Plan::on("plextor_m5s")
            .traced(what, JOB, &ahead(last))
            .run()
            .check("all is read", |o| o.disk.read_bytes == 9 * 4096)
    };
    // A read alone takes 0.13 ms there, and several at a time hardly more.
    let own = on_flash("eight blocks in advance, then its own read", "a");
    let other = on_flash("eight blocks in advance, then another's read", "b");
    let read = |plan: &Plan, client: usize| plan.outcome().clients[client].read.latency_max;
    assert!(read(&other, 1) < Duration::from_us(250), "{:?}", read(&other, 1));
    assert!(read(&own, 0) > Duration::from_us(220), "{:?}", read(&own, 0));
    assert!(read(&own, 0) > read(&other, 1));
    let each = Plan::on("plextor_m5s")
        .traced("nine reads, each waited for", JOB, &trace(&[("a", 8, "Rand", "R"); 9]))
        .run();
    let (ahead, each) = (own.outcome().elapsed, each.outcome().elapsed);
    assert!(ahead + Duration::from_us(600) < each, "{ahead:?} against {each:?}");
}

#[test]
fn sequential_requests_continue_where_their_process_was() {
    let text = trace(&[
        ("a", 8, "Rand", "R"),
        ("b", 8, "Rand", "R"),
        ("a", 8, "Seq", "R"),
        ("b", 8, "Seq", "R"),
        ("a", 8, "Seq", "R"),
    ]);
    Plan::on("ide2004")
        .traced("two processes read in sequence by turns", JOB, &text)
        .run()
        .check("each seeks once, and between the two", |o| o.disk.counters.misses <= 5 && o.disk.issued == 5);
    // A file of one block leaves one place.
    Plan::on("ide2004")
        .traced("in files of 4 KiB", &format!("{JOB}size=4k\n"), &text)
        .run()
        .check("it is read again and again", |o| o.disk.read_bytes == 5 * 4096);
}

#[test]
fn a_replay_is_repeated_after_a_pause() {
    let text = trace(&[("a", 8, "Rand", "RA"), ("b", 16, "Rand", "R"), ("a", 8, "Seq", "RA")]);
    Plan::on("nas2020")
        .traced("three times, a second apart", &format!("{JOB}fh_iterations=3\nfh_pause=1s\n"), &text)
        .run()
        .check("all of it", |o| o.disk.read_bytes == 3 * 32 * 512)
        .check("three times are reported, all finished", |o| {
            o.clients[0].startups.len() == 3 && o.clients[0].startups.iter().all(|s| s.finished)
        })
        .check("the pauses not counted", |o| {
            let sum = o.clients[0].startups.iter().fold(Duration::ZERO, |s, i| s + i.took);
            o.elapsed == sum + Duration::from_secs(2)
        });
}

#[test]
fn a_replay_that_is_cut_short_ends() {
    let long: Vec<_> = (0..4000)
        .map(|i| {
            let flags = if i % 3 == 0 { "RA" } else { "R" };
            (["a", "b", "c"][i / 7 % 3], 8, "Rand", flags)
        })
        .collect();
    let text = trace(&long);
    let cut = |what: &str, options: &str, other: &str| {
        Plan::on("ide2004")
            .traced(what, &format!("{JOB}{options}\n{other}"), &text)
            .run()
            .check("soon after", |o| o.elapsed < Duration::from_ms(1500))
            .check("and is reported to have taken longer", |o| {
                o.clients[0].startups.len() == 1 && !o.clients[0].startups[0].finished
            });
    };
    cut("a time-out", "fh_timeout=1s\nfh_iterations=5", "");
    cut("a runtime", "runtime=1s", "");
    cut(
        "another job's end",
        "",
        "[b]\nrw=read\nsize=1m\nbs=4k\ndirect=1\nthinktime=4ms\nnumber_ios=100\nexitall\n",
    );
    let streams = "[s]\nrw=read\nsize=100m\nbs=64k\nnumjobs=3\nruntime=90s\ntime_based\n";
    cut("a time-out beside others, which end, too", "fh_timeout=1s\nexitall", streams);
}

#[test]
fn a_trace_has_to_be_read_first() {
    let e = Plan::on("ide2004").load("without reading it", JOB).refused();
    assert_eq!(e.to_string(), "job 'app': its start-up trace has not been read");
    let e = Plan::on("ide2004")
        .traced(
            "a request longer than the file",
            &format!("{JOB}size=4k\n"),
            &trace(&[("a", 16, "Seq", "R")]),
        )
        .refused();
    assert_eq!(
        e.to_string(),
        "job 'app': its files of 4 KiB are shorter than the trace's longest request; use a larger size="
    );
}
