//! Applications that start.

use super::plan::{MIB, Plan};
use fairhead_core::Duration;

const XTERM: &str = "[xterm]\nfh_workload=startup:xterm\n";

#[test]
fn a_start_up_alone_takes_its_reads_and_its_computing() {
    Plan::on("ide2004")
        .load("xterm starts on an idle disk", XTERM)
        .run()
        .check("in 164 reads", |o| o.clients[0].read.calls == 164)
        .check("all of them from the disk, with the read-ahead that no program waits for", |o| {
            o.cache.pages_read == o.clients[0].read.bytes / 4096 + 19 * 29
        })
        .check("in requests of their own size, but for bursts that are merged", |o| {
            (164..=164 + 19 * 29).contains(&(o.disk.issued + o.disk.merged))
        })
        .check("in the time of its calls and 0.175 s of computing", |o| {
            let c = &o.clients[0];
            let expected = c.read.latency_sum + Duration::from_ms(175);
            let took = c.startup_time().expect("one start-up").took;
            // Latencies of buffered calls begin with the system call, which the process is computing in, too.
            took.as_us().abs_diff(expected.as_us()) < 2000
        })
        .check("which is what the client took", |o| o.clients[0].startups[0].took == o.clients[0].elapsed);
}

#[test]
fn every_start_up_is_cold() {
    let text = "[bash]\nfh_workload=startup:bash\nfh_iterations=3\nfh_pause=1s\n";
    Plan::on("sata2009")
        .load("bash starts three times, a second apart", text)
        .run()
        .check("three times are reported", |o| o.clients[0].startups.len() == 3)
        .check("each reads everything anew, read-ahead included", |o| {
            o.disk.read_bytes == o.clients[0].read.bytes + 3 * 5 * 29 * 4096
        })
        .check("from the disk", |o| o.cache.misses == 3 * 41)
        .check("in about the same time", |o| {
            let took = || o.clients[0].startups.iter().map(|s| s.took.as_us());
            took().max() < took().min().map(|t| t * 5 / 4)
        })
        .check("and the pauses are not part of it", |o| {
            let sum: Duration = o.clients[0].startups.iter().fold(Duration::ZERO, |s, i| s + i.took);
            sum + Duration::from_secs(2) == o.clients[0].elapsed
        });
}

#[test]
fn what_is_in_memory_is_dropped_for_it() {
    Plan::on("ide2004")
        .load(
            "one reads its file again and again from memory; bash starts twice meanwhile",
            "[cached]\nrw=read\nsize=4m\nbs=64k\ntime_based\nruntime=20s\nthinktime=1ms\n\
             [bash]\nstartdelay=2s\nfh_workload=startup:bash\nfh_iterations=2\nexitall\n",
        )
        .run()
        .check("its file was read three times from the disk", |o| {
            let of_bash = o.clients[1].read.bytes / 4096 + 2 * 5 * 29;
            o.cache.pages_read - of_bash == 3 * 4 * MIB / 4096
        });
}

#[test]
fn a_start_up_is_given_up_when_its_time_is_over() {
    let text = "[streams]\nrw=read\nbs=128k\nsize=1g\nnumjobs=10\ntime_based\nruntime=100s\n\
                [xterm]\nstartdelay=1s\nfh_workload=startup:xterm\nfh_timeout=2s\nfh_iterations=3\nexitall\n";
    Plan::on("ide2004")
        .scheduler("deadline-2.6.9")
        .load("xterm starts behind ten streams, and has two seconds", text)
        .run()
        .check("it is one start-up that took more than 2 s", |o| {
            let times = &o.clients[10].startups;
            times.len() == 1 && !times[0].finished && times[0].took == Duration::from_secs(2)
        })
        .check("and with it everything ends", |o| o.elapsed < Duration::from_secs(4));
}

#[test]
fn a_start_up_that_the_run_cuts_short_is_told_so() {
    let text = "[konsole]\nfh_workload=startup:konsole\nruntime=1s\n";
    Plan::on("ide2004").load("konsole has a second to start", text).run().check("and does not", |o| {
        let times = &o.clients[0].startups;
        times.len() == 1 && !times[0].finished && times[0].took >= Duration::from_secs(1)
    });
    let text =
        "[global]\nexitall\n[other]\nrw=read\nsize=1m\nbs=4k\n[konsole]\nfh_workload=startup:konsole\n";
    Plan::on("ide2004")
        .load("another job's end ends it", text)
        .run()
        .check("it is reported as given up", |o| o.clients[1].startups.iter().all(|s| !s.finished));
}

#[test]
fn start_ups_need_room() {
    let e = Plan::on("ide2004")
        .load("xterm in a megabyte", "[xterm]\nfh_workload=startup:xterm\nsize=1m\n")
        .refused()
        .to_string();
    assert_eq!(e, "job 'xterm': it has 1 MiB, and starting needs 6; use a larger size=");
    for disk in ["ide2004", "sata2009", "flashcard2010", "nas2020"] {
        for name in ["xterm", "gnome-terminal", "lowriter", "oowriter", "konsole", "bash"] {
            let plan = Plan::on(disk).load(name, &format!("[a]\nfh_workload=startup:{name}\n"));
            assert_eq!(plan.error(), None, "{name} on {disk}");
        }
    }
}

#[test]
fn dependent_reads_wait_behind_each_other_and_streams() {
    let time = |scheduler: &str, streams: u32| {
        let background = format!(
            "[streams]\nrw=read\nbs=64k\nsize=1g\nnumjobs={streams}\ntime_based\nruntime=200s\n[xterm]\nstartdelay=2s\nfh_workload=startup:xterm\nexitall\n"
        );
        let text = if streams == 0 { XTERM } else { &background };
        let plan = Plan::on("sata2009").scheduler(scheduler).load("xterm beside streams", text).run();
        plan.outcome().clients.last().and_then(|c| c.startup_time()).expect("a start-up").took
    };
    let (idle, busy) = (time("deadline", 0), time("deadline", 10));
    // Each of the 164 reads waits for a window of up to 256 KiB of some of ten streams: a few ms each.
    assert!(busy > idle * 5, "{busy:?} beside ten streams, {idle:?} alone");
}
