//! vhost-user-blk in real time: weights, parts of the engine's thread, and how soon a server stops.

#![allow(clippy::disallowed_methods, reason = "a server works in real time")]

use crate::in_time;
use crate::vhost_guest::{Guest, ID, READ, Wishes};
use crate::vhost_place::{MIB, Place, bytes, noop, try_serve};
use fairhead_core::Max;
use fairhead_live::DiskOptions;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Keeps a ring full of questions for the name, or of requests that are refused, for some time. Returns how
/// many were answered.
fn flood(socket: &std::path::Path, kind: u32, lasts: Duration) -> u64 {
    let mut guest = Guest::connect(socket, Wishes::default());
    let memory = guest.memory.clone();
    let queue = &mut guest.queues[0];
    let (end, mut answered) = (Instant::now() + lasts, 0);
    while Instant::now() < end {
        while queue.submit(&memory, kind, 0, 0, 20).is_some() {}
        queue.kick(&memory);
        while queue.wait(&memory, Duration::from_millis(1)).is_some() {
            answered += 1;
        }
    }
    answered
}

#[test]
fn two_guests_of_a_slow_disk_get_their_weights() {
    in_time::in_time(|| {
        let place = Place::new();
        place.image("a.img", &vec![0; 64 * MIB]);
        place.image("b.img", &vec![0; 64 * MIB]);
        let model = fairhead_device::DeviceParams::preset("nas2020").unwrap();
        let disk = DiskOptions::new::<&str>([]).scheduler("bfq").unwrap().emulate(model);
        let Some(server) = try_serve(disk, &[place.device("a"), place.device("b")]) else { return };
        server.disk().set_weight("a", 200).unwrap();
        server.disk().set_weight("b", 100).unwrap();
        let end = Instant::now() + Duration::from_secs(4);
        let readers = ["a.sock", "b.sock"].map(|socket| {
            let socket = place.at(socket);
            std::thread::spawn(move || {
                let mut guest = Guest::connect(&socket, Wishes::default());
                let memory = guest.memory.clone();
                let queue = &mut guest.queues[0];
                for i in 0.. {
                    while queue.in_flight() < 8 {
                        queue.submit(
                            &memory,
                            READ,
                            0,
                            (i * 7919 + queue.in_flight() as u64 * 15013) % 16000 * 8,
                            4096,
                        );
                    }
                    queue.kick(&memory);
                    if queue.wait(&memory, end.saturating_duration_since(Instant::now())).is_none() {
                        return;
                    }
                }
            })
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        let stats = server.stop();
        let (gold, tin) = (stats[0].1.reads, stats[1].1.reads);
        println!("weights 200 and 100: {gold} and {tin} reads");
        let is_so = (1.6..2.5).contains(&(gold as f64 / tin as f64));
        in_time::timely(is_so, format_args!("weights 2:1 gave {gold} and {tin} reads"));
    });
}

#[test]
fn a_server_stops_soon_while_guests_are_busy() {
    let place = Place::new();
    place.image("a.img", &bytes(11));
    let Some(server) = try_serve(noop(), &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    let memory = guest.memory.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        drop(server);
        began.elapsed()
    });
    while !stopper.is_finished() {
        let queue = &mut guest.queues[0];
        while queue.submit(&memory, READ, 0, 0, 4096).is_some() {}
        queue.kick(&memory);
        while queue.wait(&memory, Duration::from_millis(5)).is_some() {}
    }
    let took = stopper.join().unwrap();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let _ = memory.file.as_raw_fd();
}

#[test]
fn what_is_no_io_has_a_part_of_the_thread_and_counts_for_limits() {
    let lasts = Duration::from_secs(1);
    for kind in [ID, 77] {
        let place = Place::new();
        place.image("a.img", &bytes(12));
        place.image("b.img", &bytes(13));
        let Some(server) = try_serve(noop(), &[place.device("a"), place.device("b")]) else { return };
        let began = Instant::now();
        let free = flood(&place.at("a.sock"), kind, lasts);
        // At most a thirty-second of the time, for steps of two microseconds, and what is done ahead.
        let most = 16 * began.elapsed().as_millis() as u64 + 1000;
        println!("kind {kind}: {free} in a second, {most} at most");
        assert!((2000..=most).contains(&free), "kind {kind}: {free}, {most} at most");
        let ten = Max { riops: NonZeroU64::new(10), ..Max::default() };
        server.disk().set_max("b", ten).unwrap();
        let limited = flood(&place.at("b.sock"), kind, lasts);
        assert!((1..=15).contains(&limited), "kind {kind}: {limited} under a limit of 10 a second");
        // The other one is served meanwhile as ever.
        let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
        assert!(guest.read(0, 4096) == bytes(12)[..4096]);
    }
}
