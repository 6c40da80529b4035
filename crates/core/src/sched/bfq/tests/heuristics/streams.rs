//! Streams: who reads on and on is not a program that starts.

use super::*;

fn streams() -> Config {
    Config { streams: true, low_latency: true, soft_realtime: false, ..plain() }
}

/// Task `task` reads `pieces` of 256 sectors in sequence.
fn read_on(rig: &mut Rig, task: u32, from: u64, pieces: u64) {
    for n in 0..pieces {
        rig.serve(Request { len: Sectors(256), ..read(task, from + 256 * n) });
    }
}

#[test]
fn raising_is_suspended_beyond_a_mib_in_one_piece() {
    let mut rig = Rig::new(streams());
    read_on(&mut rig, 1, 1_000_000, 8);
    assert_eq!(rig.factor(1), 30, "just 1 MiB");
    read_on(&mut rig, 1, 1_000_000 + 8 * 256, 1);
    assert_eq!(rig.factor(1), 1);
    let mut kernel = Rig::new(Config { low_latency: true, ..Config::default() });
    read_on(&mut kernel, 1, 1_000_000, 20);
    assert_eq!(kernel.factor(1), 30, "it is off by default");
}

/// A large file in a program's start: 1.5 MiB in one piece, of which a third lies beyond 1 MiB.
#[test]
fn raising_resumes_with_the_next_run_of_a_program() {
    let mut rig = Rig::new(streams());
    read_on(&mut rig, 1, 1_000_000, 12);
    assert_eq!(rig.factor(1), 1);
    read_on(&mut rig, 1, 9_000_000, 1);
    assert_eq!(rig.factor(1), 30);
    let start = rig.queue(1).raise.period().0;
    assert_eq!(start, Instant::EPOCH, "it is the period that was suspended");
}

/// A reader of large files, each of 8 MiB.
#[test]
fn raising_does_not_resume_if_most_was_a_stream() {
    let mut rig = Rig::new(streams());
    for file in 1..5 {
        read_on(&mut rig, 1, 10_000_000 * file, 64);
        assert_eq!(rig.factor(1), 1, "file {file}");
    }
    read_on(&mut rig, 1, 90_000_000, 1);
    assert_eq!(rig.factor(1), 1);
}

/// Eight begin at once, which is a large burst. One turns out to be a stream: of the seven that are left,
/// those that read here and there are raised.
#[test]
fn a_burst_without_its_streams_is_small() {
    let mut rig = Rig::new(Config { bursts: true, ..streams() });
    for task in 1..9 {
        rig.serve(read(task, 1_000_000 * u64::from(task)));
        rig.pass(ms(5));
    }
    rig.serve(read(2, 70_000_000));
    assert_eq!(rig.factor(8), 1, "the eighth is not raised");
    assert!(rig.bfq.rules.bursts.in_large(rig.of(8)));
    rig.serve(read(8, 80_000_000));
    read_on(&mut rig, 1, 50_000_000, 9);
    assert!(!rig.bfq.rules.bursts.is_large());
    assert_eq!((rig.factor(1), rig.factor(8)), (1, 30));
    rig.check();
}
