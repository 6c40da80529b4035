//! What the request queue costs for each bio, all files and sockets apart: to be run under callgrind.
//!
//! `cargo build --release --example queue_cost`, then `valgrind --tool=callgrind
//! --callgrind-out-file=/dev/null --toggle-collect='*queue_cost::measured*' \
//! target/release/examples/queue_cost [PRESET [DEPTH [TASKS [BIOS]]]]`
//!
//! One client keeps 64 reads of 4 KiB (or the first argument) in the queue, of one task (or the second
//! argument, by turns), at a disk that takes 32 and needs no time. For each read the loop submits it, asks
//! for what to do and for the next timer, as an engine does once in a turn, reports it done, and takes the
//! answer. The instructions that callgrind counts, divided by the number of bios, are the cost of one. With
//! fewer tags than bios there is always one that waits for a tag.

use fairhead_core::elevator::Limits;
use fairhead_core::sched::any::preset;
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_live::{Bio, ClientId, FileId, IoId, Op, RequestQueue, Settings, Start};
use std::collections::VecDeque;

struct Loop {
    queue: RequestQueue<()>,
    client: ClientId,
    now: Instant,
    at_disk: VecDeque<IoId>,
    chance: u64,
    tasks: u64,
    asked: u64,
}

impl Loop {
    fn ask(&mut self) {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let block = self.chance % (1 << 20);
        let bio = Bio {
            op: Op::Read,
            file: FileId(0),
            offset: block * 4096,
            len: 4096,
            sector: Sector(block * 8),
            fua: false,
            sync: true,
            task: TaskId(1 + (self.asked % self.tasks) as u32),
            group: GroupId::ROOT,
            prio: IoPrio::default(),
            cookie: self.asked,
        };
        self.asked += 1;
        self.queue.submit(self.now, self.client, bio, Some(()));
    }

    fn turn(&mut self) {
        self.now = self.now + Duration::from_us(1);
        while let Some(start) = self.queue.next(self.now) {
            let Start::Io(io) = start else { panic!("no client flushes") };
            self.at_disk.push_back(io);
        }
        match self.at_disk.pop_front() {
            Some(io) => {
                let done = [Ok(()); 64];
                let pieces = self.queue.pieces(io).len();
                self.queue.finished(self.now, io, &done[..pieces]);
            }
            // The scheduler idles.
            None => {
                self.now = self.queue.next_timer().expect("something comes");
                self.queue.timer(self.now);
            }
        }
        while let Some(answer) = self.queue.answer() {
            assert_eq!(answer.result, Ok(()));
            self.ask();
        }
        std::hint::black_box(self.queue.next_timer());
    }
}

#[inline(never)]
fn measured(state: &mut Loop, bios: u64) {
    let end = state.asked + bios;
    while state.asked < end {
        state.turn();
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).map_or(usual, |a| a.parse().expect("a number"));
    let name = args.first().map_or("noop", String::as_str);
    let (depth, tasks, bios) = (number(1, 64), number(2, 1), number(3, 20_000));
    let limits = Limits { tags: 1024, queue_depth: 32, rotational: false, ..Limits::default() };
    let settings = Settings { limits, client_bios_max: 4096, ..Settings::default() };
    let config = (preset(name).expect("a preset").config)();
    let mut queue = RequestQueue::new(settings, config).expect("limits and tunables are right");
    let client = queue.join();
    let now = Instant::EPOCH;
    let mut state =
        Loop { queue, client, now, at_disk: VecDeque::new(), chance: 0x9e37_79b9_7f4a_7c15, tasks, asked: 0 };
    (0..depth).for_each(|_| state.ask());
    (0..4 * depth).for_each(|_| state.turn());
    measured(&mut state, bios);
    println!("{name}: {depth} bios of {tasks} tasks, {bios} done");
}
