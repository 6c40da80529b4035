//! A small file of each format, and what it says.
//!
//! The files are written by hand (those of blktrace by a script that packs the structure of the kernel's
//! header) from the formats' public descriptions, with numbers of our own; each holds what its format makes
//! hard. `tests/golden/FILE.records` has a line for each request: times in ns, `-` where nothing is recorded.
//! `FAIRHEAD_BLESS=1` writes them anew.

use fairhead_core::Duration;
use fairhead_trace::{Flags, Format, Notes, Op, Trace, open};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

fn table(trace: &mut Trace) -> String {
    let mut text = String::from("at issued completed task name device op flags sector sectors\n");
    while let Some(record) = trace.next() {
        let r = match record {
            Ok(r) => r,
            Err(e) => panic!("{e}"),
        };
        let time = |t: Option<Duration>| t.map_or("-".to_owned(), |t| t.as_ns().to_string());
        let named = [
            (Flags::SYNC, 'S'),
            (Flags::META, 'M'),
            (Flags::AHEAD, 'A'),
            (Flags::FUA, 'F'),
            (Flags::PREFLUSH, 'P'),
        ];
        let mut flags: String = named.iter().filter(|(f, _)| r.flags.has(*f)).map(|(_, c)| *c).collect();
        if flags.is_empty() {
            flags.push('-');
        }
        let names = trace.names();
        writeln!(
            text,
            "{} {} {} {} {} {} {:?} {flags} {} {}",
            r.at.as_ns(),
            time(r.issued),
            time(r.completed),
            r.task.0,
            names.task(r.task).unwrap_or("-"),
            names.device(r.device),
            r.op,
            r.sector.0,
            r.sectors
        )
        .unwrap();
    }
    text
}

/// What to do if the records of a file are missing or differ.
const BLESS: &str =
    "if these are right, `FAIRHEAD_BLESS=1 cargo test -p fairhead-trace --test it golden::` writes them";

fn check(file: &str, format: Format, notes: Notes) {
    let mut trace = open(&golden(file)).unwrap();
    assert_eq!(trace.format(), format, "{file}");
    assert!(Format::ALL.contains(&format), "Format::ALL lacks {format}");
    let got = table(&mut trace);
    let records = golden(&format!("{file}.records"));
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        std::fs::write(&records, &got).unwrap();
    }
    let expected = std::fs::read_to_string(records).unwrap_or_default();
    assert_eq!(got, expected, "{file}: {BLESS}\n{got}");
    assert_eq!(trace.notes(), notes, "{file}");
}

#[test]
fn blktrace_of_two_processors() {
    check("set.blktrace.0", Format::Blktrace, Notes::default());
    // The set is the same by any of its names.
    let all = |file: &str| table(&mut open(&golden(file)).unwrap());
    assert_eq!(all("set.blktrace.1"), all("set.blktrace.0"));
    assert_eq!(all("set"), all("set.blktrace.0"));
}

#[test]
fn blktrace_of_the_other_byte_order() {
    check("big-endian.blktrace", Format::Blktrace, Notes::default());
}

#[test]
fn blkparse() {
    check("blkparse.txt", Format::Blkparse, Notes::default());
}

#[test]
fn ftrace() {
    check("ftrace-blk.txt", Format::Ftrace, Notes { lost: 25, ..Notes::default() });
    check("ftrace-events.txt", Format::Ftrace, Notes::default());
}

#[test]
fn iologs() {
    check("iolog-v2.txt", Format::IologV2, Notes::default());
    check("iolog-v3.txt", Format::IologV3, Notes::default());
}

#[test]
fn servers_and_clouds() {
    check("msr.csv", Format::Msr, Notes { empty: 1, ..Notes::default() });
    check("alibaba.csv", Format::Alibaba, Notes::default());
    check("tencent.csv", Format::Tencent, Notes::default());
    check("spc.csv", Format::Spc, Notes::default());
}

#[test]
fn snoops() {
    check("biosnoop.txt", Format::BioSnoop, Notes { empty: 1, lost: 25, ..Notes::default() });
    check("iosnoop.txt", Format::IoSnoop, Notes { empty: 1, ..Notes::default() });
}

#[test]
fn caches_and_simulators() {
    check("cloudphysics.csv", Format::CloudPhysics, Notes::default());
    check("libcachesim.csv", Format::LibCacheSim, Notes::default());
    check("mqsim.txt", Format::MqSim, Notes::default());
    check("one.vscsi", Format::Vscsi, Notes::default());
    check("two.vscsi", Format::Vscsi, Notes::default());
}

#[test]
fn disksim() {
    check("disksim.txt", Format::DiskSim, Notes::default());
    check("disksim-validation.txt", Format::DiskSimValidation, Notes::default());
}

#[test]
fn live() {
    check("live.log", Format::Live, Notes::default());
}

#[test]
fn start_up() {
    check("startup.txt", Format::StartUp, Notes::default());
}

/// The first error of a text.
fn error(text: &str) -> String {
    let input = std::io::Cursor::new(text.as_bytes().to_vec());
    let found = match fairhead_trace::read("t", input) {
        Ok(mut trace) => trace.find_map(Result::err),
        Err(e) => Some(e),
    };
    found.map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn damage_is_told_with_its_line_and_what_would_be_right() {
    let msr = "128166372003061629,src1,0,Read,3154152960,32768,41286\n";
    let cases = [
        (
            format!("{msr}128166372003061629,src1,0,Read,1\n"),
            "t:2: 5 fields; a request has 7: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        ),
        (format!("{msr}{}", msr.replace("Read", "Reed")), "t:2: type 'Reed': expected Read or Write"),
        (
            format!("{msr}{}", msr.replace("32768", "-1")),
            "t:2: '-1' is not a size: expected a whole number in range",
        ),
        (
            format!("{msr}{}", msr.replace("32768", "99999999999999999")),
            "t:2: 195312500000000 sectors: expected a request of less than 4294967296 sectors",
        ),
        ("0,R,0,4096,5\n0,Q,0,4096,5\n".to_owned(), "t:2: opcode 'Q': expected R or W"),
        ("1,2,3,0,5\n1,2,3,2,5\n".to_owned(), "t:2: type '2': expected 0 for a read or 1 for a write"),
        (
            "0,1,512,r,0.1\n\n0,1,512,r\n".to_owned(),
            "t:3: 4 fields; a request has 5 or more: ASU,LBA,Size,Opcode,Timestamp",
        ),
        (
            "fio version 3 iolog\n1 f wait 5\n".to_owned(),
            "t:2: wait is of version 2, with one number; here each line has a time",
        ),
        ("fio version 3 iolog\n1 f read 5\n".to_owned(), "t:2: read needs an offset and a length"),
        (
            "0.5 0 1 8 1\n0.5 0 1 8 z\n".to_owned(),
            "t:2: flags 'z': expected a hexadecimal number, 1 for a read",
        ),
        (
            "8,0 0 1 0.1 5 Q R 8 + 8 [x]\n8,0 0 1 0.1 5 Q R 8 + x [x]\n".to_owned(),
            "t:2: 'x' is not a number of sectors: expected a whole number in range",
        ),
        (
            "x-1 [0] .. 1.5: 8,0 Q R 8 + 8 [x]\nrubbish\n".to_owned(),
            "t:2: no line of ftrace: expected NAME-PID [CPU] FLAGS SECONDS: …",
        ),
        (String::new(), "t: is empty"),
    ];
    for (text, message) in cases {
        assert_eq!(error(&text), message, "{text}");
    }
    let long = format!("{msr}{}", "x".repeat(100_000));
    assert_eq!(error(&long), "t:2: a line of more than 65536 bytes; this is no trace");
}

#[test]
fn damage_in_binary_is_told_with_its_byte() {
    let mut bytes = std::fs::read(golden("big-endian.blktrace")).unwrap();
    let error = |bytes: &[u8]| {
        let mut trace = fairhead_trace::read("t", std::io::Cursor::new(bytes.to_vec())).unwrap();
        trace.find_map(Result::err).unwrap().to_string()
    };
    let whole = bytes.len();
    assert_eq!(
        error(&bytes[..whole - 1]),
        format!("t: byte {}: the file ends in an event: 47 bytes of 48", whole - 48)
    );
    assert_eq!(error(&bytes[..50]), "t: byte 0: the file ends in an event's data: 2 bytes of 3");
    bytes[51] = 0x66;
    assert_eq!(error(&bytes), "t: byte 51: no event begins here: 0x66617407 instead of 0x65617407");
    bytes[51..55].copy_from_slice(&[0x65, 0x61, 0x74, 6]);
    assert_eq!(error(&bytes), "t: byte 51: an event of version 6; only version 7 is known");
}

#[test]
fn a_name_may_look_like_sectors() {
    for line in ["8,0 0 1 0.1 5 Q FWS [a 8 + 8 b]", "a 8 + 8 b-5 [0] .. 0.1: 8,0 Q FWS [a 8 + 8 b]"] {
        let mut trace = fairhead_trace::read("t", std::io::Cursor::new(line.as_bytes().to_vec())).unwrap();
        let r = trace.next().unwrap().unwrap();
        assert_eq!((r.op, r.sectors, trace.names().task(r.task)), (Op::Flush, 0, Some("a 8 + 8 b")));
    }
}
