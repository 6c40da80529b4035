//! A trace out of a pipe, kept: what is read again is what was read.

use fairhead_trace::{DeviceId, Kept, Record, Trace, read};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn golden(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)).unwrap()
}

/// The requests, the devices' names, those of the tasks, and the notes.
fn all(mut trace: Trace) -> (Vec<Record>, Vec<String>, Vec<Option<String>>, fairhead_trace::Notes) {
    let records: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
    let names = trace.names();
    let devices = (0..names.devices()).map(|i| names.device(DeviceId(i as u32)).to_owned()).collect();
    let tasks = records.iter().map(|r| names.task(r.task).map(str::to_owned)).collect();
    (records, devices, tasks, trace.notes())
}

#[test]
fn each_format_is_what_it_was() {
    for file in [
        "big-endian.blktrace",
        "biosnoop.txt",
        "blkparse.txt",
        "ftrace-blk.txt",
        "ftrace-events.txt",
        "iolog-v2.txt",
        "live.log",
        "msr.csv",
        "packed/spc.csv.xz",
        "set.blktrace.0",
        "startup.txt",
        "two.vscsi",
    ] {
        let bytes = golden(file);
        let plain = read("t", Cursor::new(bytes.clone())).unwrap();
        let format = plain.format();
        let plain = all(plain);
        let kept = Kept::of("t", Cursor::new(bytes), &|_| {}).unwrap();
        assert_eq!((kept.name(), kept.requests()), ("t", plain.0.len() as u64), "{file}");
        for _ in 0..2 {
            let again = kept.open();
            assert_eq!(again.format(), format);
            assert_eq!(all(again), plain, "{file}");
        }
    }
}

/// Many pages, near and far sectors, tasks and devices that change, and numbers as large as there are; by
/// several readers at a time.
#[test]
fn what_is_long_is_what_it_was() {
    let row = |i: u64| {
        let sector = [i * 8, u64::MAX / 1024 - i, i % 7, (i * 2_654_435_761) % (1 << 40)][(i % 4) as usize];
        let time = if i > 70_000 { 1 << 56 } else { 0 } + i * 1000;
        format!("{},host{},{},Read,{},{},{}\n", time, i % 3, i / 20_000, sector * 512, 512 * (1 + i % 900), i)
    };
    let text: String = (0..80_000).map(row).collect();
    let plain = all(read("t", Cursor::new(text.clone().into_bytes())).unwrap());
    let heard = AtomicUsize::new(0);
    let hear = |bytes: u64| {
        assert!(bytes <= text.len() as u64);
        heard.fetch_add(1, Ordering::Relaxed);
    };
    let kept = Kept::of("t", Cursor::new(text.clone().into_bytes()), &hear).unwrap();
    assert_eq!(heard.into_inner(), 80_000_usize.div_ceil(1 << 14));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert!(all(kept.open()) == plain));
        }
    });
}

/// What a program writes that stops early.
#[test]
fn a_text_has_to_end_with_a_line() {
    let plain = golden("alibaba.csv");
    assert!(Kept::of("t", Cursor::new(plain.clone()), &|_| {}).is_ok());
    for cut in 1..plain.len() {
        let kept = Kept::of("t", Cursor::new(plain[..cut].to_vec()), &|_| {});
        assert_eq!(kept.is_ok(), plain[cut - 1] == b'\n', "cut at {cut}: {:?}", kept.err());
    }
}

/// The program before the pipe, or the pipe itself, fails half way.
#[test]
fn an_input_that_fails_is_an_error_with_its_place() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the line is dead"))
        }
    }
    let rows: String = (0..10_000).map(|i| format!("0,R,{},4096,{i}\n", i * 4096)).collect();
    let error = Kept::of("t", Cursor::new(rows.into_bytes()).chain(Failing), &|_| {}).unwrap_err();
    assert_eq!(error.to_string(), "t:10001: cannot be read any further: the line is dead");
}
