//! The control socket in real time: what those who misbehave there, or change much, cannot do to others.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::control_place::{Place, SIZE, done, group, say, stats};
use crate::in_time::{in_time, timely};
use fairhead_live::control::LINE_MAX;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest pause but for one in a hundred, between two answers to a client that always has eight reads
/// there.
fn p99(pauses: &mut [Duration]) -> Duration {
    pauses.sort_unstable();
    pauses[pauses.len() - 1 - pauses.len() / 100]
}

#[test]
fn a_thousand_switches_and_ten_thousand_weights_under_load_lose_nothing_and_stop_nobody() {
    in_time(|| {
        let place = Place::new();
        let disk = place.disk("bfq");
        let _control = place.control(&disk);
        let (stop, changing) = (AtomicBool::new(false), AtomicBool::new(false));
        let (reads, mut calm, mut busy) = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let client = disk.client("load").unwrap();
                let (mut reads, mut pauses) = (0, [Vec::new(), Vec::new()]);
                let mut there: VecDeque<_> = VecDeque::new();
                let mut last = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    while there.len() < 8 {
                        there.push_back(client.read(0, reads * 4096 % SIZE, 4096));
                        reads += 1;
                    }
                    drop(there.pop_front().unwrap().wait().unwrap());
                    let now = Instant::now();
                    pauses[usize::from(changing.load(Ordering::Relaxed))].push(now - last);
                    last = now;
                }
                there.into_iter().for_each(|read| drop(read.wait().unwrap()));
                let [calm, busy] = pauses;
                (reads, calm, busy)
            });
            std::thread::sleep(Duration::from_millis(500));
            changing.store(true, Ordering::Relaxed);
            let mut c = place.caller();
            for i in 0..250 {
                done(&mut c, "sched cfq slice_idle=4ms");
                done(&mut c, &format!("tune quantum={}", 1 + i % 8));
                done(&mut c, "sched deadline+groups");
                done(&mut c, "sched bfq low_latency=0");
            }
            let mut answers = BufReader::new(place.stream());
            for _ in 0..100 {
                let weight = |n| format!("{{\"do\":\"set\",\"group\":\"load\",\"weight\":{n}}}\n");
                let lines: String = (1..=100).map(weight).collect();
                answers.get_mut().write_all(lines.as_bytes()).unwrap();
                let told = answers.by_ref().lines().take(100).map(Result::unwrap);
                assert!(told.into_iter().all(|line| line == "{\"ok\":true}"));
            }
            changing.store(false, Ordering::Relaxed);
            let e = say(&mut c, "tune low_latnecy=1").unwrap_err();
            assert_eq!(e, "bfq: unknown tunable 'low_latnecy'; did you mean 'low_latency'?");
            assert!(say(&mut c, "sched cfq quantum=0").unwrap_err().contains("out of range"));
            let all = stats(&mut c);
            assert_eq!((&all["scheduler"], &all["tunables"]["low_latency"]), (&"bfq".into(), &"0".into()));
            assert_eq!(group(&all, "load")["weight"], 100);
            stop.store(true, Ordering::Relaxed);
            load.join().unwrap()
        });
        let all = stats(&mut place.caller());
        assert_eq!(group(&all, "load")["read_latency"]["count"], reads, "each read is answered, and once");
        let (was, is) = (p99(&mut calm), p99(&mut busy));
        println!(
            "{reads} reads; pauses p99 {was:?}, with changes {is:?}, at most {:?}, {:?}",
            calm.last().unwrap(),
            busy.last().unwrap()
        );
        timely(is <= was + Duration::from_millis(10), format_args!("p99 {was:?}, with changes {is:?}"));
    });
}

/// Clients that say too much, too little, nothing, or do not listen; the others have their answers meanwhile.
#[test]
fn hostile_clients_disturb_nobody() {
    in_time(|| {
        let place = Place::new();
        let disk = place.disk("noop");
        let control = place.control(&disk);
        // More than a line may be.
        let mut long = place.stream();
        let _ = long.write_all(&vec![b'x'; LINE_MAX + 10]);
        let mut answers = BufReader::new(long);
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, "{\"error\":\"a line has at most 65536 bytes\"}\n");
        assert_eq!(answers.read_line(&mut String::new()).unwrap_or(0), 0, "it is hung up on");
        // Half a line, and the other half later; several lines at once, the last without its end.
        let mut slow = place.stream();
        slow.write_all(b"{\"do\":").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        slow.write_all(
            b"\"stat\"}\n\n  \n{\"do\":\"make\",\"group\":\"a\"}\n{\"do\":\"make\",\"group\":\"b\"}",
        )
        .unwrap();
        slow.shutdown(Shutdown::Write).unwrap();
        let lines: Vec<String> = BufReader::new(slow).lines().map(Result::unwrap).collect();
        let wanted = "{\"error\":\"unknown command 'stat'; did you mean 'stats'?\"}";
        assert_eq!(lines, [wanted, "{\"ok\":true}", "{\"ok\":true}"]);
        // One that asks and asks, and does not read.
        let mut unread = place.stream();
        unread.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let asked = b"{\"do\":\"stats\"}\n".repeat(200_000);
        assert!(unread.write_all(&asked).is_err(), "the server keeps three megabytes of questions");
        // One that says nothing, in all places there are, and one more.
        std::thread::sleep(Duration::from_millis(1100));
        let silent: Vec<UnixStream> = (0..40).map(|_| place.stream()).collect();
        std::thread::sleep(Duration::from_millis(1200));
        let client = disk.client("x").unwrap();
        let mut worst = Duration::ZERO;
        for i in 0..200 {
            let start = Instant::now();
            client.read(0, i * 4096, 4096).wait().unwrap();
            worst = worst.max(start.elapsed());
        }
        timely(worst < Duration::from_secs(1), format_args!("a read took {worst:?}"));
        done(&mut place.caller(), "stats");
        let start = Instant::now();
        drop(control);
        timely(start.elapsed() < Duration::from_secs(1), "the socket is closed at once");
        drop((silent, unread));
    });
}

#[test]
fn who_does_not_finish_a_line_is_hung_up_on() {
    in_time(|| {
        let place = Place::new();
        let disk = place.disk("noop");
        let _control = place.control(&disk);
        let mut half = place.stream();
        let start = Instant::now();
        half.write_all(b"{\"do\":").unwrap();
        // A byte from time to time changes nothing.
        for _ in 0..3 {
            std::thread::sleep(Duration::from_secs(2));
            half.write_all(b" ").unwrap();
        }
        assert_eq!(half.read(&mut [0; 8]).unwrap_or(0), 0);
        let took = start.elapsed();
        assert!(took.as_secs() >= 9, "{took:?}");
        timely(took.as_secs() < 14, format_args!("hung up on after {took:?}"));
    });
}
