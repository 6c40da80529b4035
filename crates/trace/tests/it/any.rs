//! What holds for all formats: any bytes give requests in order or one clean line; what is written is read
//! again; a cut or packed file gives what it holds.

use fairhead_core::{Duration, Sector, TaskId};
use fairhead_trace::format::{blkparse, blktrace, iolog};
use fairhead_trace::{DeviceId, Flags, Format, Names, Op, Record, Trace, read};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// A small generator of our own (xorshift64*), seeded by the test.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }
}

/// The golden traces, name and bytes.
fn goldens() -> BTreeMap<String, Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_trace = |path: &PathBuf| path.is_file() && path.extension().is_none_or(|e| e != "records");
    let all: BTreeMap<_, _> =
        files.filter(is_trace).map(|p| (p.display().to_string(), std::fs::read(&p).unwrap())).collect();
    assert!(all.len() >= Format::ALL.len(), "a golden file for each format");
    all
}

fn from_bytes(bytes: &[u8]) -> Result<Trace, String> {
    read("t", Cursor::new(bytes.to_vec())).map_err(|e| e.to_string())
}

/// All requests, and what ended them.
fn all(bytes: &[u8]) -> (Vec<Record>, Option<String>) {
    let mut trace = match from_bytes(bytes) {
        Ok(trace) => trace,
        Err(e) => return (Vec::new(), Some(e)),
    };
    let (mut records, mut last) = (Vec::new(), Duration::ZERO);
    for r in trace.by_ref() {
        let r = match r {
            Ok(r) => r,
            Err(e) => {
                let message = e.to_string();
                assert!(message.starts_with("t:") && !message.chars().any(char::is_control), "{message:?}");
                assert!(trace.next().is_none(), "something behind an error");
                return (records, Some(message));
            }
        };
        assert!(r.at >= last, "time goes backwards");
        assert!(r.completed.is_none_or(|t| t >= r.at) && r.issued.is_none_or(|t| t >= r.at));
        assert_eq!(r.sectors == 0, r.op == Op::Flush, "{r:?}");
        last = r.at;
        records.push(r);
    }
    (records, None)
}

#[test]
fn any_bytes_give_requests_or_one_line() {
    let mut rng = Rng(1);
    for (name, whole) in goldens() {
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(4) {
                let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
                match rng.below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, b"0,+ \n9-."[usize::try_from(rng.below(8)).unwrap()]),
                    2 => bytes[at] = rng.next().to_le_bytes()[0],
                    _ => bytes[at] = bytes[usize::try_from(rng.below(at as u64 + 1)).unwrap()],
                }
            }
            let result = std::panic::catch_unwind(|| all(&bytes));
            assert!(result.is_ok(), "{name}: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
    for length in 0..500 {
        let bytes: Vec<u8> = (0..length).map(|_| rng.next().to_le_bytes()[0]).collect();
        all(&bytes);
    }
}

#[test]
fn a_cut_file_gives_what_is_before_the_cut() {
    // Times are left out: where a cut shortens the last one, it moves the beginning.
    let key = |r: &Record| (r.device, r.op, r.sector, r.sectors);
    for (name, bytes) in goldens() {
        let whole: Vec<_> = all(&bytes).0.iter().map(key).collect();
        let mut longest = 0;
        for cut in 0..bytes.len() {
            let (records, error) = all(&bytes[..cut]);
            let got: Vec<_> = records.iter().map(key).collect();
            // A cut in its last number makes another request.
            let others = got.iter().filter(|k| !whole.contains(k)).count();
            assert!(got.len() <= whole.len() && others <= 1, "{name} cut at {cut}: {error:?}");
            longest = longest.max(got.len());
        }
        // The last line need not have an end; a binary event needs all its bytes.
        let is_binary = name.contains(".blktrace") || name.contains(".vscsi");
        let least = whole.len() - usize::from(is_binary);
        assert!(longest >= least, "{name}: {longest} of {}", whole.len());
    }
}

#[test]
fn packed_is_the_same() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let plain = std::fs::read(directory.join("spc.csv")).unwrap();
    let expected = all(&plain);
    assert_eq!(expected.0.len(), 4);
    for ending in ["gz", "xz", "zst", "bz2"] {
        // Two packed files behind one another, as the tools themselves made them.
        let bytes = std::fs::read(directory.join(format!("packed/spc.csv.{ending}"))).unwrap();
        assert_eq!(all(&bytes), expected, "{ending}");
        for cut in 1..bytes.len() {
            let (records, error) = all(&bytes[..cut]);
            assert!(records.len() <= 4, "{ending} cut at {cut}");
            // Between the two it is whole.
            assert!(error.is_some() || records.len() >= 2, "{ending} cut at {cut}");
        }
        let mut rng = Rng(7);
        for _ in 0..300 {
            let mut bytes = bytes.clone();
            let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
            bytes[at] = rng.next().to_le_bytes()[0];
            all(&bytes);
        }
    }
}

/// Requests with all that can be recorded, in order of time; no two overlap, so that completions are beyond
/// doubt.
fn drawn(rng: &mut Rng, count: u64) -> (Vec<Record>, Names) {
    let mut names = Names::default();
    let devices = ["8,0", "8,16", "259,3"].map(|d| names.add_device(d).unwrap());
    for (pid, name) in [(1, "init"), (77, "a b-c [d]"), (4_000_000_000, "kworker/0:1H")] {
        names.name_task(TaskId(pid), name);
    }
    let (mut at, mut records) = (Duration::ZERO, Vec::new());
    let start = Sector(rng.below(1 << 40));
    for i in 0..count {
        let op = [Op::Read, Op::Write, Op::Discard, Op::Flush][usize::try_from(rng.below(4)).unwrap()];
        let sectors = if op == Op::Flush { 0 } else { 1 + u32::try_from(rng.below(2048)).unwrap() };
        let sector = if op == Op::Flush { Sector(0) } else { Sector(start.0 + i * 4096) };
        let mut r = Record::new(at, op, sector, sectors);
        r.device = if i < 3 { devices[i as usize] } else { devices[usize::try_from(rng.below(3)).unwrap()] };
        r.task = TaskId([1, 77, 4_000_000_000][usize::try_from(rng.below(3)).unwrap()]);
        for flag in [Flags::SYNC, Flags::META, Flags::AHEAD, Flags::FUA, Flags::PREFLUSH] {
            if rng.below(3) == 0 {
                r.flags = r.flags | flag;
            }
        }
        if op == Op::Flush {
            // In binary a flush alone and a flush first are the same.
            r.flags = r.flags | Flags::PREFLUSH;
        } else if rng.below(4) > 0 {
            let issued = at + Duration::from_ns(rng.below(1_000_000));
            r.issued = (rng.below(4) > 0).then_some(issued);
            r.completed = Some(issued + Duration::from_ns(rng.below(20_000_000)));
        }
        records.push(r);
        at += Duration::from_ns(rng.below(3) * rng.below(3_000_000));
    }
    (records, names)
}

fn check_names(trace: &Trace, names: &Names, records: &[Record]) {
    for r in records {
        assert_eq!(trace.names().task(r.task), names.task(r.task));
    }
    for id in 0..3 {
        assert_eq!(trace.names().device(DeviceId(id)), names.device(DeviceId(id)));
    }
}

#[test]
fn blktrace_is_read_as_it_was_written() {
    for seed in 1..50 {
        let (records, names) = drawn(&mut Rng(seed), 200);
        let mut bytes = Vec::new();
        let mut writer = blktrace::Writer::new(&mut bytes);
        records.iter().for_each(|r| writer.write(r, &names).unwrap());
        writer.finish().unwrap();
        assert_eq!(all(&bytes), (records.clone(), None), "seed {seed}");
        let mut trace = from_bytes(&bytes).unwrap();
        trace.by_ref().for_each(drop);
        assert_eq!(trace.format(), Format::Blktrace);
        check_names(&trace, &names, &records);
    }
    let huge = Record::new(Duration::ZERO, Op::Discard, Sector(0), 1 << 23);
    assert!(blktrace::Writer::new(Vec::new()).write(&huge, &Names::default()).is_err());
}

#[test]
fn blkparse_is_read_as_it_was_written() {
    for seed in 1..50 {
        let (records, names) = drawn(&mut Rng(seed), 200);
        let mut bytes = Vec::new();
        let mut writer = blkparse::Writer::new(&mut bytes);
        records.iter().for_each(|r| writer.write(r, &names).unwrap());
        writer.finish(&names).unwrap();
        assert_eq!(all(&bytes), (records.clone(), None), "seed {seed}");
        let mut trace = from_bytes(&bytes).unwrap();
        trace.by_ref().for_each(drop);
        assert_eq!(trace.format(), Format::Blkparse);
        check_names(&trace, &names, &records);
    }
}

#[test]
fn an_iolog_is_read_as_it_was_written() {
    for seed in 1..50 {
        let (records, names) = drawn(&mut Rng(seed), 200);
        let mut bytes = Vec::new();
        let mut writer = iolog::Writer::new(&mut bytes).unwrap();
        records.iter().for_each(|r| writer.write(r, &names).unwrap());
        writer.finish().unwrap();
        // What the format has: microseconds, and who, when done and how not.
        let kept = |r: &Record| Record {
            at: Duration::from_us(r.at.as_us()),
            device: r.device,
            ..Record::new(Duration::ZERO, r.op, r.sector, r.sectors)
        };
        assert_eq!(all(&bytes), (records.iter().map(kept).collect(), None), "seed {seed}");
    }
}

#[test]
fn what_is_far_out_of_order_is_moved_and_counted() {
    let line = |us: u64| format!("0,R,{},4096,{us}\n", us * 4096);
    let mut text: String = (10..10_000).map(line).collect();
    text.push_str(&line(1));
    let mut trace = from_bytes(text.as_bytes()).unwrap();
    let records: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
    assert_eq!((records.len(), trace.notes().late), (9991, 1));
    assert!(records.is_sorted_by_key(|r| r.at));
}
