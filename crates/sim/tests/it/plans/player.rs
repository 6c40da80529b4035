//! Media players.

use super::plan::Plan;
use fairhead_core::Duration;

const FILM: &str = "[film]\n#!fh_workload=player\n";

#[test]
fn a_film_alone_drops_nothing() {
    for disk in ["ide2004", "nas2020"] {
        Plan::on(disk)
            .load("20 s of film at 4 Mbit/s", FILM)
            .run()
            .check("all 480 frames are shown", |o| {
                o.clients[0].frames.is_some_and(|f| (f.shown, f.dropped) == (480, 0))
            })
            .check("in 20 s", |o| o.elapsed.as_ms().abs_diff(20_000) < 100)
            .check("10 MiB are read", |o| (10 << 20) - o.clients[0].read.bytes < 20 * 1024)
            .check("in windows of 128 KiB, but for the start", |o| (80..90).contains(&o.disk.issued))
            .check("and the disk rests in between", |o| o.disk.busy * 5 < o.elapsed);
    }
}

#[test]
fn the_film_is_as_long_as_the_run_or_as_its_file() {
    Plan::on("ide2004")
        .load("5 s", &format!("{FILM}runtime=5s\n"))
        .run()
        .check("are 120 frames", |o| o.clients[0].frames.is_some_and(|f| f.all().abs_diff(120) <= 1));
    Plan::on("ide2004")
        .load("1 MiB at 8 Mbit/s", "[film]\nfh_workload=player:8m\nsize=1m\n")
        .run()
        .check("is a second", |o| o.clients[0].frames.is_some_and(|f| (f.shown, f.dropped) == (24, 0)));
}

#[test]
fn a_film_that_the_disk_cannot_carry_drops_frames() {
    Plan::on("ide2004")
        .load("400 Mbit/s of a disk that gives 228, for 5 s", "[film]\nfh_workload=player:400m\nruntime=5s\n")
        .run()
        .check("every frame but the first is late, the unread ones included", |o| {
            o.clients[0].frames.is_some_and(|f| f.shown <= 3 && f.all().abs_diff(120) <= 1)
        });
}

#[test]
fn a_film_starves_where_a_batch_may_wait_for_seconds() {
    let text = format!(
        "[streams]\nrw=read\nbs=64k\nsize=1g\nnumjobs=10\ntime_based\nruntime=60s\n{FILM}startdelay=2s\nexitall\n"
    );
    Plan::on("nas2020")
        .scheduler("as")
        .load("a film beside ten streams, each of which anticipation serves for half a second", &text)
        .run()
        .check("frames are dropped", |o| o.clients[10].frames.is_some_and(|f| f.dropped > 100))
        .check("and all are accounted for", |o| o.clients[10].frames.is_some_and(|f| f.all() == 480))
        .check("the stall is that of the anticipating", |o| {
            o.clients[10].read.latency_max > Duration::from_ms(500)
        });
}
