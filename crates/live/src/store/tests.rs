//! What the engine's thread does at a time for files in memory, in counts: no clock, and no worker.

use super::*;
use crate::bio::Bio;
use crate::request_queue::{Settings, Start};
use fairhead_core::sched::any::preset;
use fairhead_core::units::{GroupId, Instant, IoPrio, Sector, TaskId};
use std::fs::File;

/// A store with one file in memory, and a queue with two clients.
struct Stage {
    store: Store,
    queue: RequestQueue<Data>,
    pool: Arc<Pool>,
    file: FileId,
    bytes: File,
}

impl Stage {
    fn new() -> Self {
        let memory = rustix::fs::memfd_create("store", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let bytes = File::from(memory);
        bytes.set_len(LEN).unwrap();
        let (files, pool) = (Arc::new(FileTable::default()), Pool::new(0));
        let file = files.add(bytes.try_clone().unwrap());
        let store = Store::new(files, Arc::clone(&pool), None, Finder::new(|_, _| false));
        let config = (preset("noop").unwrap().config)();
        let queue = RequestQueue::new(Settings::default(), config).unwrap();
        Self { store, queue, pool, file, bytes }
    }

    fn ask(&mut self, op: Op, len: u64, data: Option<Data>) {
        let client = self.queue.join();
        // What is alone is done in one go.
        self.queue.join();
        let bio = Bio {
            op,
            file: self.file,
            offset: 0,
            len: len as u32,
            sector: Sector(0),
            fua: false,
            sync: true,
            task: TaskId(1),
            group: GroupId::ROOT,
            prio: IoPrio::default(),
            cookie: 1,
        };
        self.queue.submit(Instant::EPOCH, client, bio, data);
    }

    /// Begins all that the queue has. Returns how many ios were done at once.
    fn begin(&mut self, ring: &mut Ring) -> usize {
        let mut done = 0;
        while let Some(Start::Io(io)) = self.queue.next(Instant::EPOCH) {
            if self.store.start(ring, &mut self.queue, io).unwrap().is_some() {
                self.queue.finished(Instant::EPOCH, io, self.store.results());
                done += 1;
            }
        }
        done
    }

    /// Does all that there is to do. Returns the bytes that were copied in each wait in the ring.
    fn finish(&mut self, ring: &mut Ring) -> Vec<u64> {
        let mut copied = Vec::new();
        while self.begin(ring) > 0 || self.store.under_way() > 0 {
            ring.wait(Some(fairhead_core::units::Duration::from_ms(100))).unwrap();
            let mut bytes = 0;
            while let Some(outcome) = ring.next() {
                let Token::Store(number) = outcome.token else { unreachable!("there is no other") };
                // Memory has no zeros but those that are written: it says so.
                assert!(outcome.result >= 0 || outcome.result == -libc::EOPNOTSUPP, "{outcome:?}");
                bytes += outcome.result.max(0) as u64;
                self.store.completed(ring, &mut self.queue, number, outcome.result).unwrap();
            }
            copied.push(bytes);
            while let Some(finished) = self.store.next_finished() {
                let Finished::Io(io, results) = finished else { unreachable!("no flush was asked for") };
                self.queue.finished(Instant::EPOCH, io, &results);
            }
        }
        copied
    }
}

const LEN: u64 = 8 << 20;

fn ring() -> Option<Ring> {
    Ring::new().map_err(|e| println!("skipped: io_uring: {e}")).ok()
}

/// Other clients wait no longer than for a part of a long write, whatever its length.
#[test]
fn a_long_write_is_copied_part_by_part_beside_others() {
    let Some(mut ring) = ring() else { return };
    let mut stage = Stage::new();
    let mut data = stage.pool.buffer(LEN as usize);
    data.fill(7);
    stage.ask(Op::Write, LEN, Some(Data::Memory(data)));
    assert_eq!(stage.begin(&mut ring), 0, "it is too long to be done at once");
    let copied = stage.finish(&mut ring);
    assert_eq!(copied.iter().sum::<u64>(), LEN);
    assert!(copied.iter().all(|&bytes| bytes <= COPY_MAX), "between two waits: {copied:?}");
    let mut stored = vec![0; LEN as usize];
    stage.bytes.read_exact_at(&mut stored, 0).unwrap();
    assert!(stored.iter().all(|&byte| byte == 7), "all bytes are there");
}

/// A worker of the ring for each of two hundred clients' zeros would take the processors from the thread.
#[test]
fn short_zeros_are_made_at_once_and_long_ones_are_not() {
    let Some(mut ring) = ring() else { return };
    for op in [Op::Discard, Op::Zero { may_discard: true }, Op::Zero { may_discard: false }] {
        for (len, at_once) in [(4096, 1), (LONG, 0)] {
            let mut stage = Stage::new();
            stage.bytes.write_all_at(&vec![7; LEN as usize], 0).unwrap();
            stage.ask(op, len, None);
            assert_eq!(stage.begin(&mut ring), at_once, "{op:?} of {len} bytes");
            stage.finish(&mut ring);
            let mut stored = vec![7; LEN as usize];
            stage.bytes.read_exact_at(&mut stored, 0).unwrap();
            let zeros = stored.iter().take_while(|&&byte| byte == 0).count() as u64;
            assert_eq!(zeros, len, "{op:?}");
            assert!(stored[len as usize..].iter().all(|&byte| byte == 7), "{op:?}: no more than was asked");
        }
    }
}
