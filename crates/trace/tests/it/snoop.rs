//! biosnoop and iosnoop: the columns of their versions and options, and what a table may have beside
//! requests.

use fairhead_core::Duration;
use fairhead_trace::{Format, Notes, Op, Record, Trace, read};
use std::io::Cursor;

fn open(text: &str) -> Trace {
    read("t", Cursor::new(text.as_bytes().to_vec())).unwrap()
}

/// The requests of a text of that format, its notes, and the task's and device's name of each.
fn all(text: &str, format: Format) -> (Vec<Record>, Notes, Vec<(String, String)>) {
    let mut trace = open(text);
    assert_eq!(trace.format(), format, "{text}");
    let records: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
    let name = |r: &Record| trace.names().task(r.task).unwrap_or_default().to_owned();
    let names = records.iter().map(|r| (name(r), trace.names().device(r.device).to_owned())).collect();
    (records, trace.notes(), names)
}

/// The one request of a text: when made, issued and completed in us; operation, sector, sectors, task.
type Row = (u64, u64, u64, Op, u64, u32, u32);

fn one(text: &str, format: Format) -> Row {
    let (records, _, names) = all(text, format);
    assert_eq!(records.len(), 1, "{text}");
    assert_eq!(names[0], ("logwriter".to_owned(), "sda1".to_owned()), "{text}");
    row(&records[0])
}

fn row(r: &Record) -> Row {
    let us = |t: Option<Duration>| t.unwrap().as_us();
    (r.at.as_us(), us(r.issued), us(r.completed), r.op, r.sector.0, r.sectors, r.task.0)
}

/// The error of a text, of its beginning or a line.
fn error(text: &str) -> String {
    match read("t", Cursor::new(text.as_bytes().to_vec())) {
        Ok(mut trace) => trace.find_map(Result::err).map(|e| e.to_string()).unwrap_or_default(),
        Err(e) => e.to_string(),
    }
}

const OLD: &str = "TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n";
const NEW: &str = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n";
const QUEUED: &str = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n";

#[test]
fn the_given_tables() {
    let (records, notes, names) = all(include_str!("../cases/biosnoop.txt"), Format::BioSnoop);
    assert_eq!(notes, Notes::default());
    // Ends 3.100121, 3.104377, 4.250902 and latencies 5.02, 6.11, 4.75 ms: the first began at 3.095101.
    let rows: Vec<Row> = records.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            (0, 0, 5020, Op::Write, 20_480_000, 16, 4101),
            (3166, 3166, 9276, Op::Write, 20_971_520, 832, 4101),
            (1_151_051, 1_151_051, 1_155_801, Op::Write, 4_194_304, 648, 277),
        ]
    );
    assert_eq!(names[2], ("jbd2/sda1-8".to_owned(), "sda".to_owned()));
    let (records, _, names) = all(include_str!("../cases/iosnoop.txt"), Format::IoSnoop);
    let rows: Vec<Row> = records.iter().map(row).collect();
    assert_eq!(
        rows,
        [(0, 0, 600, Op::Write, 10_240_000, 8, 2210), (360, 360, 780, Op::Write, 10_240_008, 8, 2210),]
    );
    assert_eq!(names[0], ("postgres".to_owned(), "8,0".to_owned()));
}

#[test]
fn biosnoops_columns_old_new_and_queued() {
    let expected = (0, 0, 740, Op::Write, 4096, 8, 2218);
    for header in [OLD, NEW, ""] {
        let text = format!("{header}9.000004    logwriter      2218   sda1   W 4096   4096       0.74\n");
        assert_eq!(one(&text, Format::BioSnoop), expected, "{header}");
    }
    let expected = (0, 120, 860, Op::Write, 4096, 8, 2218);
    for header in [QUEUED, ""] {
        let text = format!("{header}9.000004 logwriter 2218 sda1 W 4096 4096 0.12 0.74\n");
        assert_eq!(one(&text, Format::BioSnoop), expected, "{header}");
    }
    // A pattern of access, and a column that is not known yet.
    let more = NEW.replace("BYTES", "BYTES P CPU");
    let text = format!("{more}9.000004 logwriter 2218 sda1 W 4096 4096 S 3 0.74\n");
    assert_eq!(one(&text, Format::BioSnoop), (0, 0, 740, Op::Write, 4096, 8, 2218));
    // The time in the queue is not known.
    let text = format!("{QUEUED}9.000004 logwriter 2218 sda1 W 4096 4096 -1.000 0.74\n");
    assert_eq!(one(&text, Format::BioSnoop), (0, 0, 740, Op::Write, 4096, 8, 2218));
}

#[test]
fn the_first_may_begin_before_the_tools_time() {
    let text = format!("{NEW}0.000000 a 1 sda R 8 4096 30.00\n0.000100 a 1 sda R 16 4096 0.05\n");
    let (records, ..) = all(&text, Format::BioSnoop);
    assert_eq!(records.iter().map(|r| row(r).2).collect::<Vec<_>>(), [30_000, 30_100]);
    assert_eq!(records[1].at.as_us(), 30_050);
}

#[test]
fn names_may_have_blanks_and_look_like_columns() {
    for comm in ["Web Content", "a 1 sda W 8 b", "(sd-pam)", "kworker/u8:2-ev", "12 34"] {
        let text = format!("{NEW}9.000004 {comm} 2218 dm-0 W 4096 4096 0.74\n");
        let (records, _, names) = all(&text, Format::BioSnoop);
        assert_eq!((records[0].task.0, names[0].0.as_str()), (2218, comm));
        assert_eq!(names[0].1, "dm-0");
        let text = format!("COMM PID TYPE DEV BLOCK BYTES LATms\n{comm} 7 W 8,0 8 512 0.1\n");
        let text =
            format!("STARTs ENDs {}", text.replacen(&format!("\n{comm}"), &format!("\n1.5 1.6 {comm}"), 1));
        let (records, _, names) = all(&text, Format::IoSnoop);
        assert_eq!((records[0].task.0, names[0].0.as_str()), (7, comm));
    }
}

#[test]
fn types_of_the_kernel_and_requests_without_a_sector() {
    let line = |kind: &str, sector: &str, bytes: u64| {
        format!("{NEW}1.0 a 1 md0 {kind} {sector} {bytes} 0.50\n2.0 a 1 md0 R 8 512 0.1\n")
    };
    for (kind, sector, bytes, op, sectors) in [
        ("R", "8", 4096, Op::Read, 8),
        ("RA", "8", 4096, Op::Read, 8),
        ("RAM", "8", 4096, Op::Read, 8),
        ("WS", "8", 4096, Op::Write, 8),
        ("WFS", "8", 4096, Op::Write, 8),
        ("FWFS", "8", 4096, Op::Write, 8),
        ("WSM", "8", 4096, Op::Write, 8),
        ("D", "8", 1 << 31, Op::Discard, 1 << 22),
        ("DS", "8", 4096, Op::Discard, 8),
        ("FF", "-1", 0, Op::Flush, 0),
        ("F", "0", 0, Op::Flush, 0),
        ("FWS", "0", 0, Op::Flush, 0),
        // bcc knows reads and writes only; a flush is what moves nothing, nowhere.
        ("R", "18446744073709551615", 0, Op::Flush, 0),
        ("W", "18446744073709551615", 0, Op::Flush, 0),
    ] {
        let (records, notes, _) = all(&line(kind, sector, bytes), Format::BioSnoop);
        assert_eq!((records[0].op, records[0].sectors), (op, sectors), "{kind} {sector} {bytes}");
        assert_eq!((records.len(), notes.empty), (2, 0), "{kind} {sector} {bytes}");
        assert_eq!(records[0].completed.map(Duration::as_us), Some(500));
    }
    // Commands that pass through (a drive's health), and requests without bytes.
    for (kind, sector, bytes, empty) in
        [("N", "0", 36, 0), ("R", "-1", 512, 1), ("R", "18446744073709551615", 36, 1), ("W", "8", 0, 1)]
    {
        let (records, notes, _) = all(&line(kind, sector, bytes), Format::BioSnoop);
        assert_eq!((records.len(), notes.empty), (1, empty), "{kind} {sector} {bytes}");
    }
}

#[test]
fn iosnoop_needs_one_of_its_times() {
    let expected = (0, 0, 620, Op::Write, 4096, 8, 2218);
    for (header, times) in
        [("STARTs ENDs", "5.302061 5.302681"), ("STARTs", "5.302061"), ("ENDs", "5.302681")]
    {
        let text = format!(
            "Tracing block I/O for 5 seconds (buffered)...\n{header} COMM PID TYPE DEV BLOCK BYTES LATms\n\
             {times} logwriter 2218 W sda1 4096 4096 0.62\n\nEnding tracing...\n"
        );
        assert_eq!(one(&text, Format::IoSnoop), expected, "{header}");
    }
    let bare = "COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n";
    assert_eq!(
        error(&format!("{bare}logwriter    2210   W    8,0    10240000     4096       1.32\n")),
        "t:1: a table of iosnoop without a column for the time: record with `iosnoop -ts`"
    );
    let two = "59.302061 59.302681 logwriter 2218 WS 8,0 4096 4096 0.62\n";
    assert_eq!(all(two, Format::IoSnoop).0.len(), 1, "without its header");
}

#[test]
fn lost_events_are_counted() {
    let line = "9.000004 a 2218 sda W 4096 4096 0.74\n";
    for (note, lost) in [
        ("Possibly lost 25 samples", 25),
        ("lost 7 events on CPU #1", 7),
        ("WARNING: CPU:1 [LOST 25 EVENTS]", 25),
        ("Detaching...", 0),
    ] {
        let (records, notes, _) = all(&format!("{NEW}{line}{note}\n{line}"), Format::BioSnoop);
        assert_eq!((records.len(), notes.lost), (2, lost), "{note}");
    }
    // Two runs in one file.
    assert_eq!(all(&format!("{NEW}{line}{OLD}{line}"), Format::BioSnoop).0.len(), 2);
}

#[test]
fn what_completes_later_was_not_made_later() {
    // The slow read was made first, and completes last.
    let text =
        format!("{NEW}1.0 a 1 sda W 8 4096 1.00\n1.1 b 2 sda W 16 4096 1.00\n2.0 c 3 sda R 64 4096 1900.0\n");
    let (records, notes, _) = all(&text, Format::BioSnoop);
    assert_eq!(records.iter().map(|r| r.task.0).collect::<Vec<_>>(), [3, 1, 2]);
    assert_eq!(notes.late, 0);
}

#[test]
fn damage_is_told_with_its_line() {
    for (line, message) in [
        ("9.0 a 1 sda W 8 4096", "t:2: 7 words; the table has 8 columns"),
        ("9.0 a x sda W 8 4096 0.1", "t:2: 'x' is not a process's number: expected a whole number in range"),
        ("9.0 a 1 sda 7 8 4096 0.1", "t:2: type '7': expected letters such as R, W or WS"),
        ("9.0 a 1 sda W x 4096 0.1", "t:2: 'x' is not a sector: expected a whole number in range"),
        ("9.0 a 1 sda W 8 -1 0.1", "t:2: '-1' is not a number of bytes: expected a whole number in range"),
        ("9.0 a 1 sda W 8 512 x", "t:2: 'x' is not a latency: expected a decimal number in range"),
        ("x a 1 sda W 8 512 0.1", "t:2: 'x' is not a time: expected a decimal number in range"),
    ] {
        assert_eq!(error(&format!("{NEW}{line}\n")), message);
    }
    let bpftrace = "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4210   9\n";
    assert!(
        error(bpftrace).starts_with("t:1: a table of biosnoop without a column for the "),
        "{}",
        error(bpftrace)
    );
}
