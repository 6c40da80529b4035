//! Our mq-deadline beside a running kernel's: the same arrivals and completions, and the requests that each
//! sends.
//!
//! The log is Linux 6.18's own, recorded with blktrace. Reads and writes by two programs at depth 8 arrive
//! (`I`), are dispatched (`D`) and complete (`C`). For each `D` we ask our scheduler; the kernel's choice and
//! ours must be the same request.

use fairhead_core::sched::mq_deadline::{Config, MqDeadline};
use fairhead_core::{Dispatch, Elevator, Instant, Limits, Op, Request, Sector, Sectors, Tag, TaskId};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const LOG: &str = "../conform/tests/kernel-logs/mq-deadline-rw.txt.xz";

/// The log's text, or why there is none.
fn log() -> Result<String, &'static str> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LOG);
    let unpacked = Command::new("xz").arg("-dc").arg(path).output().map_err(|_| "no xz")?;
    String::from_utf8(unpacked.stdout).map_err(|_| "the log is not text")
}

/// One line: `fio-20569 [001] d..2. 5423.202137: 7,0 I R 111168 + 32 [fio]`.
struct Event {
    at: Instant,
    action: char,
    rq: Request,
}

impl Event {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, seconds, _, action, flags, sector, "+", sectors, ..] = words[..] else { return None };
        let (s, us) = seconds.trim_end_matches(':').split_once('.')?;
        let us = s.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?;
        let (start, len) = (Sector(sector.parse().ok()?), Sectors(sectors.parse().ok()?));
        let rq = Request::read(TaskId(0), start, len);
        let rq = if flags.starts_with('W') { Request { op: Op::Write, ..rq } } else { rq };
        Some(Self { at: Instant::from_ns(us * 1000), action: action.chars().next()?, rq })
    }
}

#[test]
fn the_kernel_sends_the_same_requests_in_the_same_order() {
    let text = match log() {
        Ok(text) => text,
        Err(why) => return println!("skipped: {why}"),
    };
    let limits = Limits { tags: 256, queue_depth: 256, ..Limits::default() };
    let mut elevator = Elevator::<MqDeadline>::new(limits, Config::default()).unwrap();
    let mut free: Vec<Tag> = (0..256).map(Tag).collect();
    // Under which tag each request is known: the log names them by direction and place.
    let mut known: BTreeMap<(bool, u64), Tag> = BTreeMap::new();
    let (mut sent, mut chosen) = (0, 0);
    for event in text.lines().filter(|l| !l.starts_with('#')).filter_map(Event::parse) {
        let key = (event.rq.op == Op::Write, event.rq.start.0);
        match event.action {
            'I' => {
                let tag = free.pop().expect("the log has at most 16 requests at a time");
                let _ = elevator.insert(event.at, tag, event.rq);
                known.insert(key, tag);
            }
            'D' => {
                chosen += u32::from(elevator.requests().queued() > 1);
                let Dispatch::Issue(tag) = elevator.dispatch(event.at) else {
                    panic!("we would not have sent {:?}, sent at {:?}", event.rq, event.at)
                };
                assert_eq!(known.get(&key), Some(&tag), "the kernel sent {:?} at {:?}", event.rq, event.at);
                sent += 1;
            }
            'C' => {
                // Requests that were at the device before the log began are unknown.
                if let Some(tag) = known.remove(&key) {
                    free.extend(elevator.complete(event.at, tag).collect::<Vec<_>>());
                }
            }
            _ => {}
        }
    }
    println!("{sent} requests sent alike, {chosen} of them with a choice");
    assert!(sent > 100, "the log holds {sent} requests only: was it read right?");
}
