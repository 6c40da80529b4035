//! Flushes complete at sector 18446744073709551615, in every format that has a kernel's events: one recording
//! of a program that calls `fsync` in a loop (`cases/fsync-loop.ftrace`, a loop device with ext4), written
//! anew in each of them.

use fairhead_core::{Duration, TaskId};
use fairhead_trace::format::blktrace;
use fairhead_trace::{Action, DeviceId, Event, Flags, Format, Names, Op, Record, Target, Writer, read};
use std::io::Cursor;

const RECORDED: &str = include_str!("../cases/fsync-loop.ftrace");

/// One line of the recording, in its words.
struct Line<'a> {
    name: &'a str,
    pid: &'a str,
    seconds: &'a str,
    event: &'a str,
    flags: &'a str,
    sector: &'a str,
    sectors: &'a str,
    rest: &'a str,
}

impl Line<'_> {
    fn letter(&self) -> &'static str {
        match self.event {
            "block_bio_queue" => "Q",
            "block_rq_insert" => "I",
            "block_rq_issue" => "D",
            "block_rq_complete" => "C",
            other => panic!("{other}"),
        }
    }

    /// The words behind the flags, as blkparse and the blk tracer have them.
    fn place(&self) -> String {
        let last = self.rest.rsplit_once(' ').map_or(self.rest, |(_, last)| last);
        match (self.sectors, self.letter()) {
            ("0", "C") => format!("{} {last}", self.sector),
            ("0", _) => last.to_owned(),
            (sectors, _) => format!("{} + {sectors} {last}", self.sector),
        }
    }
}

fn lines() -> Vec<Line<'static>> {
    let of = |line: &'static str| {
        let (who, rest) = line.split_once('[')?;
        let (name, pid) = who.trim().rsplit_once('-')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let plus = words.iter().position(|w| *w == "+")?;
        let rest = line.split_once(" + ")?.1.split_once(' ')?.1;
        let (seconds, event) = (words[2].trim_end_matches(':'), words[3].trim_end_matches(':'));
        let (flags, sector, sectors) = (words[5], words[plus - 1], words[plus + 1]);
        Some(Line { name, pid, seconds, event, flags, sector, sectors, rest })
    };
    RECORDED.lines().filter(|l| !l.starts_with('#')).filter_map(of).collect()
}

fn records(bytes: Vec<u8>, format: Format) -> Vec<Record> {
    let mut trace = read("t", Cursor::new(bytes)).unwrap();
    assert_eq!(trace.format(), format);
    trace.by_ref().map(Result::unwrap).collect()
}

/// The recording by its own reader.
fn expected() -> Vec<Record> {
    records(RECORDED.as_bytes().to_vec(), Format::Ftrace)
}

fn check(got: &[Record], what: &str) {
    let times = |r: &Record| (r.at.as_us(), r.issued.map(Duration::as_us), r.completed.map(Duration::as_us));
    let key = |r: &Record| (times(r), r.op, r.sector, r.sectors);
    let (got, expected): (Vec<_>, Vec<_>) =
        (got.iter().map(key).collect(), expected().iter().map(key).collect());
    assert_eq!(got, expected, "{what}");
}

#[test]
fn each_request_of_a_loop_of_fsync_completes() {
    let all = expected();
    let flushes: Vec<&Record> = all.iter().filter(|r| r.op == Op::Flush).collect();
    assert_eq!((all.len(), flushes.len()), (159, 41));
    assert!(all.iter().all(|r| r.completed.is_some() && r.issued.is_some()), "one without an end");
    // The first: queued at 7806.237424, issued at .237430, completed at .237568; recorded from .201295 on.
    let us = |t: Option<Duration>| t.unwrap().as_us();
    assert_eq!(
        (flushes[0].at.as_us(), us(flushes[0].issued), us(flushes[0].completed)),
        (36_129, 36_135, 36_273)
    );
}

#[test]
fn a_journals_commit_ends_with_the_flush_behind_it() {
    let all = expected();
    let of = |sector| all.iter().find(|r| r.sector.0 == sector && r.flags.has(Flags::FUA)).unwrap();
    // Queued at 7806.236640, written at .237090, stable at .237363; recorded from .201295 on.
    let commit = of(2_911_224);
    assert_eq!((commit.at.as_us(), commit.completed.unwrap().as_us()), (35_345, 36_068));
    // The first shows what the device does, and keeps the time of its sectors: .234702, stable at .236326.
    assert_eq!(of(2_911_200).completed.unwrap().as_us(), 33_407);
}

#[test]
fn ftraces_blk_tracer_has_the_same_requests() {
    let line = |l: &Line| {
        let (letter, place) = (l.letter(), l.place());
        format!("{}-{} [000] d..1.  {}:   7,0  {letter}  {} {place}\n", l.name, l.pid, l.seconds, l.flags)
    };
    let text: String = lines().iter().map(line).collect();
    assert!(text.contains(" C  FF 18446744073709551615 [0]\n"));
    check(&records(text.into_bytes(), Format::Ftrace), "the blk tracer");
}

#[test]
fn perf_script_has_the_same_requests() {
    for stack in ["", "\tffffffff81442 blk_mq_start_request+0x0 ([kernel.kallsyms])\n\n"] {
        let line = |l: &Line| {
            let (plus, rest) = (format!("{} + {}", l.sector, l.sectors), l.rest);
            let (event, flags) = (l.event, l.flags);
            let time = format!("[001]  {}: block:{event}", l.seconds);
            format!("{:>16} {}/{} {time}: 7,0 {flags} () {plus} {rest}\n{stack}", l.name, l.pid, l.pid)
        };
        let text: String = lines().iter().map(line).collect();
        check(&records(text.into_bytes(), Format::Ftrace), "perf script");
    }
}

#[test]
fn blkparse_has_the_same_requests() {
    let line = |(l, n): (&Line, u64)| {
        let (letter, place) = (l.letter(), l.place());
        format!("  7,0    0 {n:>8} {} {} {letter} {} {place}\n", l.seconds, l.pid, l.flags)
    };
    let text: String = lines().iter().zip(1..).map(line).collect();
    check(&records(text.into_bytes(), Format::Blkparse), "blkparse");
}

#[test]
fn blktrace_has_the_same_requests() {
    let mut names = Names::default();
    names.add_device("7,0").unwrap();
    let mut bytes = Vec::new();
    let mut writer = blktrace::Writer::new(&mut bytes);
    for l in lines() {
        let action = match l.letter() {
            "Q" => Action::Queue,
            "I" => Action::Insert,
            "D" => Action::Issue,
            _ => Action::Complete,
        };
        let (seconds, us) = l.seconds.split_once('.').unwrap();
        let at = Duration::from_us(seconds.parse::<u64>().unwrap() * 1_000_000 + us.parse::<u64>().unwrap());
        let op = if l.flags == "FF" { Op::Flush } else { Op::Write };
        let pre = if l.flags.starts_with('F') { Flags::PREFLUSH } else { Flags::NONE };
        let (task, device) = (TaskId(l.pid.parse().unwrap()), DeviceId(0));
        let (sector, sectors) = (l.sector.parse().unwrap(), l.sectors.parse().unwrap());
        let is_fua = l.flags.trim_start_matches("FW").contains('F') && l.flags != "FF";
        let flags = if is_fua { pre | Flags::SYNC | Flags::FUA } else { pre | Flags::SYNC };
        writer.write_event(&Event { at, action, task, device, op, flags, sector, sectors }, &names).unwrap();
    }
    writer.finish().unwrap();
    check(&records(bytes, Format::Blktrace), "blktrace");
}

#[test]
fn flushes_keep_their_times_when_they_are_written() {
    let mut trace = read("t", RECORDED.as_bytes()).unwrap();
    let all: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
    for (target, format) in [(Target::Blktrace, Format::Blktrace), (Target::Blkparse, Format::Blkparse)] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(target, &mut bytes).unwrap();
        all.iter().for_each(|r| writer.write(r, trace.names()).unwrap());
        writer.finish(trace.names()).unwrap();
        check(&records(bytes, format), target.name());
    }
}

/// Times of the requests of a text, in ns.
fn times(text: &str) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let ns = |t: Option<Duration>| t.map(Duration::as_ns);
    let trace = read("t", Cursor::new(text.as_bytes().to_vec())).unwrap();
    trace.map(Result::unwrap).map(|r| (r.at.as_ns(), ns(r.issued), ns(r.completed))).collect()
}

#[test]
fn a_flush_may_complete_at_sector_zero() {
    let text = include_str!("../cases/perf-flush-answered.txt");
    assert_eq!(
        times(text),
        [
            (0, Some(0), Some(300_000)),
            (1_000_000, Some(1_000_000), Some(1_500_000)),
            (2_000_000, Some(2_000_000), Some(2_900_000)),
        ]
    );
}

#[test]
fn kernels_before_4_10_end_the_programs_flush_too() {
    // Theirs is `FWS` twice: that of the device, and that of the program behind it.
    let text = "\
8,0 0 1 0.000001 5 Q FWS [db]\n8,0 0 2 0.000002 5 D FWS [db]\n8,0 0 3 0.000003 5 Q FWS [db]
8,0 0 4 0.000009 0 C FWS 18446744073709551615 [0]\n8,0 0 5 0.000010 0 C FWS 0 [0]
8,0 0 6 0.000011 5 D FWS [db]\n8,0 0 7 0.000019 0 C FWS 18446744073709551615 [0]\n8,0 0 8 0.000020 0 C FWS 0 [0]
";
    assert_eq!(times(text), [(0, Some(1000), Some(8000)), (2000, Some(10_000), Some(18_000))]);
}

#[test]
fn a_stacked_devices_flush_completes_as_a_bio() {
    let text = "\
x-5 [0] .. 1.000001: block_bio_queue: 253,0 FWS 0 + 0 [x]
x-5 [0] .. 1.000002: block_bio_queue: 8,0 FWS 0 + 0 [x]
k-9 [0] .. 1.000003: block_rq_issue: 8,0 FF 0 () 0 + 0 [k]
s-1 [0] .. 1.000008: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]
s-1 [0] .. 1.000008: block_rq_complete: 8,0 WS () 0 + 0 [0]
s-1 [0] .. 1.000009: block_bio_complete: 253,0 FWS 0 + 0 [0]
x-5 [0] .. 1.000020: block_bio_queue: 253,0 W 2048 + 8 [x]
x-5 [0] .. 1.000021: block_bio_remap: 8,0 W 4096 + 8 <- (253,0) 2048
x-5 [0] .. 1.000022: block_bio_queue: 8,0 W 4096 + 8 [x]
x-5 [0] .. 1.000023: block_rq_issue: 8,0 W 4096 () 4096 + 8 [x]
s-1 [0] .. 1.000030: block_rq_complete: 8,0 W () 4096 + 8 [0]
s-1 [0] .. 1.000031: block_bio_complete: 253,0 W 2048 + 8 [0]
";
    assert_eq!(
        times(text),
        [
            (0, None, Some(8000)),
            (1000, Some(2000), Some(7000)),
            (19_000, None, Some(30_000)),
            (21_000, Some(22_000), Some(29_000)),
        ]
    );
}
