//! What `serve --record` writes is a trace: every request of a served run is read back, and every command
//! that takes a trace takes it.

#![allow(clippy::disallowed_methods, reason = "disks and servers are of real time")]

use crate::process::fairhead;
use fairhead_core::sched::any::preset;
use fairhead_lab::schedulers::catalogue;
use fairhead_live::{Disk, DiskOptions};
use fairhead_trace::{Format, Op};
use std::fs::{self, File};
use std::path::Path;

fn disk(folder: &Path, mib: u64) -> std::path::PathBuf {
    let image = folder.join("disk.img");
    File::create(&image).unwrap().set_len(mib << 20).unwrap();
    image
}

fn said(args: &[&str], folder: &Path) -> (bool, String) {
    let out = fairhead().args(args).current_dir(folder).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// 960 reads by three clients, some of them merged, and the scheduler is another one in the middle.
#[test]
fn every_request_is_read_back_with_its_times() {
    const ROUNDS: u64 = 40;
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = place.path().join("live.log");
    let options =
        DiskOptions::new([disk(place.path(), 8)]).direct(false).rotational(true).depth(2).record(&log);
    let disk = Disk::open(options.scheduler("bfq").unwrap()).unwrap();
    let clients = ["a/b", "a", "c"].map(|group| disk.client(group).unwrap());
    let place_of = |round: u64, i: u64| (round * 31 + i * i * 7) % 1024 * 8192;
    for round in 0..ROUNDS {
        // Pairs that follow each other: the elevator merges some.
        let reads: Vec<_> = (0..24_u64)
            .map(|i| clients[(i / 2) as usize % 3].read(0, place_of(round, i / 2) + i % 2 * 4096, 4096))
            .collect();
        if round == ROUNDS / 2 {
            disk.switch((preset("cfq").unwrap().config)()).unwrap();
        }
        reads.into_iter().for_each(|r| assert_eq!(r.wait().unwrap().len(), 4096));
    }
    drop(clients);
    drop(disk);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains(" done "), "nothing was merged, and nothing in flight when the scheduler changed");
    assert_eq!(fairhead_live::recording::replay(text.as_bytes(), &catalogue()).unwrap().differs, None);

    let trace = fairhead_trace::open(&log).unwrap();
    assert_eq!(trace.format(), Format::Live);
    let records: Vec<_> = trace.map(|r| r.unwrap()).collect();
    let mut wanted: Vec<(u64, u32)> = (0..ROUNDS)
        .flat_map(|round| (0..24_u64).map(move |i| ((place_of(round, i / 2) + i % 2 * 4096) / 512, 8)))
        .collect();
    let mut got: Vec<(u64, u32)> = records.iter().map(|r| (r.sector.0, r.sectors)).collect();
    wanted.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, wanted);
    let mut tasks: Vec<u32> = records.iter().map(|r| r.task.0).collect();
    tasks.sort_unstable();
    assert!(tasks.chunks(320).all(|of_one| of_one.iter().all(|t| *t == of_one[0])), "320 of each client");
    for r in &records {
        let (issued, completed) = (r.issued.expect("issued"), r.completed.expect("completed"));
        assert!(r.op == Op::Read && r.is_sync() && r.at <= issued && issued < completed, "{r:?}");
    }
}

#[test]
fn every_command_that_takes_a_trace_takes_it() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Clients do not read what is a hole.
    fs::write(place.path().join("disk.img"), vec![7; 32 << 20]).unwrap();
    let has_client = std::process::Command::new("nbdcopy").arg("--version").output().is_ok();
    if !has_client {
        return println!("skipped: there is no nbdcopy");
    }
    let copy = "nbdcopy --requests=16 \"$uri\" copy";
    let serve = ["serve", "--export", "vm=disk.img", "--socket", "s", "--record", "live.log", "--run", copy];
    let (is_good, text) = said(&serve, place.path());
    assert!(is_good, "{text}");
    let (is_good, text) = said(&["trace", "live.log"], place.path());
    assert!(is_good && text.starts_with("live.log: fairhead live recording, "), "{text}");
    // 32 MiB, each byte once.
    let row: Vec<&str> = text.lines().find(|l| l.starts_with("read")).unwrap().split_whitespace().collect();
    assert_eq!(row[3], "32.0", "{text}");
    for args in [
        &["run", "live.log", "--sched", "bfq,mq-deadline"][..],
        &["advise", "live.log", "--disk", "nas2020", "--sched", "bfq,none", "--rounds", "1"],
        &["trace", "live.log", "--to", "blktrace", "-o", "live.blktrace"],
        &["trace", "live.blktrace"],
    ] {
        let (is_good, text) = said(args, place.path());
        assert!(is_good, "{args:?}: {text}");
    }
    let text = fs::read_to_string(place.path().join("live.log")).unwrap();
    let lines = text.lines().count();
    fs::write(place.path().join("live.log"), format!("{text}7 complete 3\n")).unwrap();
    let (is_good, text) = said(&["run", "live.log"], place.path());
    let line = format!("fairhead: live.log:{}: the time is before that of the line before\n", lines + 1);
    assert_eq!((is_good, text), (false, line));
}
