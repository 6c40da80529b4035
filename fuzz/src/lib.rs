//! What is fuzzed: the parsers, with bytes that users might hand in, the NBD protocol, with bytes that
//! clients might send, a guest's memory and its virtual machine's messages, the control socket's requests,
//! and the elevator, with operations made of bytes.
//!
//! Each target is a function here, so that a fuzzer (`cargo xtask fuzz`, or `cargo fuzz run TARGET`) and a
//! plain test (`tests/replay.rs`, over the committed corpus) run the same code.

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use fairhead_core::sched::any::PRESETS;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_device::{Device, DeviceParams};
use fairhead_live::control;
use fairhead_live::nbd::{Command, Facts, INPUT_MAX, Session, Step, TRANSFER_MAX};
use fairhead_sim::job;
use fairhead_trace::format::{blkparse, blktrace, iolog};
use fairhead_trace::ring::{Decoder, EventFormat, Layout, Page};
use fairhead_trace::{Action, Format, Op, Record, Trace, TraceError};
use std::fmt::Display;
use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::chance::Chance;
use support::storm::Storm;

/// A message must be one line that says in which file it is.
fn check_message(error: &impl Display, file: &str) {
    let message = error.to_string();
    assert!(message.starts_with(file), "does not begin with the file: {message:?}");
    let clean = !message.chars().any(char::is_control);
    assert!(clean && message.len() < 2000, "not one readable line: {message:?}");
}

/// Any bytes give a job file or a one-line error.
pub fn job_file(data: &[u8]) {
    match job::parse_bytes(data, "fuzz.fio", &job::Surroundings::NONE) {
        // What was accepted can be asked for its clients.
        Ok(file) => assert!(file.clients().take(1000).count() > 0, "a job file without a client"),
        Err(error) => check_message(&error, "fuzz.fio"),
    }
}

/// Any text gives a device or a one-line error.
pub fn disk_preset(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match DeviceParams::from_toml(text, "fuzz.toml") {
        Ok(device) => assert!(!device.name().is_empty(), "a device without a name"),
        Err(error) => check_message(&error, "fuzz.toml"),
    }
}

/// Any bytes give a drive or a one-line error; a drive can be made, and its TOML file is the same drive. The
/// input is three files: DiskSim's `.diskspecs`, and behind lines of `====` a `.model` and a `.seek`, which
/// it may name `m` and `s`.
pub fn disksim_drive(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, "====\n");
    let mut next = || parts.next().unwrap_or("");
    let (specs, model, seek) = (next(), next(), next());
    let files = &mut |name: &str| match name {
        "m" => Ok(model.to_owned()),
        "s" => Ok(seek.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    match DeviceParams::from_disksim(specs, "fuzz", files) {
        Ok((drive, notes)) => {
            assert!(notes.iter().all(|n| !n.contains('\n')), "a note of several lines");
            assert!(Device::new(&drive).is_ok(), "a drive that cannot be made");
            assert_eq!(DeviceParams::from_toml(&drive.to_toml(), "again").as_ref(), Ok(&drive));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains(':'), "{text}");
        }
    }
}

/// Any memory of a guest gives requests inside of it, or none.
pub fn vhost_chains(data: &[u8]) {
    fairhead_live::vhost::fuzzing::chains(data);
}

/// Any messages of a virtual machine are answered, or end the conversation.
pub fn vhost_messages(data: &[u8]) {
    fairhead_live::vhost::fuzzing::conversation(data);
}

/// Any bytes give a comparison or a one-line error, and counts that make sense.
pub fn kernel_log(data: &[u8]) {
    match fairhead_conform::compare(&mut || Ok(data), "fuzz.txt", &mut |_| {}) {
        Ok(report) => {
            for (topic, a) in &report.agreements {
                assert!(a.agreed <= a.compared && a.compared > 0, "{}", topic.name());
            }
        }
        Err(error) => check_message(&error, "fuzz.txt"),
    }
}

/// Any operations keep the promises of the suite.
pub fn elevator(data: &[u8]) {
    let mut chance = Chance::Bytes(data.to_vec());
    let preset = chance.pick(PRESETS);
    Storm::draw(&mut chance, preset).run();
}

/// Any line gives a request, or one line about what is wrong with it; and so do any words on a command line.
pub fn control(data: &[u8]) {
    let told = |message: String| {
        let clean = !message.chars().any(char::is_control);
        assert!(clean && !message.is_empty() && message.len() < 2000, "not one readable line: {message:?}");
    };
    let check = |line: &[u8]| match control::Request::parse(line, &Catalogue::default()) {
        Ok(control::Request::Make(group, _) | control::Request::Set(group, _)) => {
            assert!(!group.starts_with('/') && !group.ends_with('/') && !group.contains("//"), "{group:?}");
        }
        Ok(_) => {}
        Err(message) => told(message),
    };
    check(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    match control::line_of_words(&text.split(' ').collect::<Vec<_>>()) {
        Ok(line) => {
            assert!(!line.contains('\n'), "more than a line: {line:?}");
            check(line.as_bytes());
        }
        Err(message) => told(message),
    }
}

/// Any bytes are requests of a kernel on a folder, which are answered or refused; all that they make is in
/// the folder.
pub fn fuse(data: &[u8]) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let base = Path::new("/dev/shm");
    let base = if base.is_dir() { base.to_owned() } else { std::env::temp_dir() };
    let folder = base.join(format!("fairhead-fuzz-{}-{number}", std::process::id()));
    std::fs::create_dir_all(folder.join("folder")).expect("a new folder");
    std::fs::write(folder.join("file"), b"bytes").expect("a new file");
    fairhead_live::serve_bytes(&folder, data).expect("a folder");
    std::fs::remove_dir_all(&folder).expect("nothing in it that cannot be removed");
}

/// Any bytes give requests that can be done, or end the connection; and how they are cut changes nothing. The
/// first byte says how they are cut, and whether the handshake is over.
pub fn nbd(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let hello = b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x01\0\0\0\x04disk";
    let bytes = if first & 1 == 1 { [&hello[..], data].concat() } else { data.to_vec() };
    let whole = nbd_session(&bytes, bytes.len().max(1));
    let cut = nbd_session(&bytes, 1 + usize::from(first >> 1));
    assert_eq!(whole, cut, "how the bytes are cut changes what they mean");
}

/// What a session says, asks for, and takes for data.
fn nbd_session(bytes: &[u8], piece: usize) -> (Vec<u8>, Vec<String>, usize) {
    let facts = |name: &str, read_only| Facts {
        name: name.to_owned(),
        description: "a disk".to_owned(),
        size: 1 << 30,
        write_end: 1 << 30,
        block_size_min: 512,
        read_only,
        rotational: false,
        fast_zero: true,
    };
    let exports = [facts("disk", false), facts("cd", true)];
    let (mut session, mut out, mut said) = (Session::new(), Vec::new(), Vec::new());
    let (mut input, mut data): (Vec<u8>, usize) = (Vec::new(), 0);
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            let (taken, step) = session.step(&exports, &input, &mut out);
            input.drain(..taken);
            match step {
                Step::Wait => {
                    assert!(taken == 0 && input.len() < INPUT_MAX, "it asks for too much");
                    break;
                }
                Step::Next => assert!(taken > 0, "it stands still"),
                Step::Data => data += taken,
                Step::Request(r) => {
                    assert!(r.offset + r.len <= 1 << 30, "beyond the end: {r:?}");
                    assert!((r.offset | r.len) % 512 == 0, "not aligned: {r:?}");
                    assert!(r.len > 0 || r.command == Command::Flush, "nothing to do: {r:?}");
                    let moves = matches!(r.command, Command::Read | Command::Write);
                    assert!(!moves || r.len <= u64::from(TRANSFER_MAX), "too much: {r:?}");
                    said.push(format!("{r:?}"));
                }
                Step::Begin(export) => said.push(format!("export {export}")),
                Step::Leave | Step::Drop(_) | Step::StartTls => {
                    said.push(format!("{step:?}"));
                    return (out, said, data);
                }
            }
        }
    }
    (out, said, data)
}

/// Any bytes are a trace, perhaps packed, or a one-line error.
pub fn trace_any(data: &[u8]) {
    trace(fairhead_trace::read("fuzz.trace", Cursor::new(data.to_vec())));
}

/// Any bytes as fio's logs of both versions.
pub fn trace_iolog(data: &[u8]) {
    trace_as(Format::IologV2, data);
    trace_as(Format::IologV3, data);
}

/// Any bytes as that format.
pub fn trace_blktrace(data: &[u8]) {
    trace_as(Format::Blktrace, data);
}

/// Any bytes as that format.
pub fn trace_blkparse(data: &[u8]) {
    trace_as(Format::Blkparse, data);
}

/// Any bytes as that format.
pub fn trace_ftrace(data: &[u8]) {
    trace_as(Format::Ftrace, data);
}

/// Any bytes as that format.
pub fn trace_msr(data: &[u8]) {
    trace_as(Format::Msr, data);
}

/// Any bytes as that format.
pub fn trace_alibaba(data: &[u8]) {
    trace_as(Format::Alibaba, data);
}

/// Any bytes as that format.
pub fn trace_tencent(data: &[u8]) {
    trace_as(Format::Tencent, data);
}

/// Any bytes as that format.
pub fn trace_spc(data: &[u8]) {
    trace_as(Format::Spc, data);
}

/// Any bytes as that format.
pub fn trace_disksim(data: &[u8]) {
    trace_as(Format::DiskSim, data);
}

/// Any bytes as that format.
pub fn trace_disksim_validation(data: &[u8]) {
    trace_as(Format::DiskSimValidation, data);
}

/// Any bytes as that format.
pub fn trace_startup(data: &[u8]) {
    trace_as(Format::StartUp, data);
}

/// Any bytes as that format.
pub fn trace_live(data: &[u8]) {
    trace_as(Format::Live, data);
}

/// Any bytes as that format.
pub fn trace_biosnoop(data: &[u8]) {
    trace_as(Format::BioSnoop, data);
}

/// Any bytes as that format.
pub fn trace_iosnoop(data: &[u8]) {
    trace_as(Format::IoSnoop, data);
}

/// Any bytes as that format.
pub fn trace_cloudphysics(data: &[u8]) {
    trace_as(Format::CloudPhysics, data);
}

/// Any bytes as that format.
pub fn trace_vscsi(data: &[u8]) {
    trace_as(Format::Vscsi, data);
}

/// Any bytes as that format.
pub fn trace_mqsim(data: &[u8]) {
    trace_as(Format::MqSim, data);
}

/// Any bytes as that format.
pub fn trace_libcachesim(data: &[u8]) {
    trace_as(Format::LibCacheSim, data);
}

/// Any bytes are a page of the kernel's trace buffer, or a text that describes pages or events, or a one-line
/// error. The first byte says which: `p` a page, `f` formats of events, `h` the header of pages. The other
/// two are a real kernel's.
pub fn trace_ring(data: &[u8]) {
    const HEADER: &str = include_str!("../../crates/trace/tests/golden/ring/header_page.txt");
    const FORMATS: &str = include_str!("../../crates/trace/tests/golden/ring/formats.txt");
    const PAGES: &[u8] = include_bytes!("../../crates/trace/tests/golden/ring/cpu0.page");
    let Some((&first, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    match first {
        b'p' => ring_pages(HEADER, FORMATS, data),
        b'f' => ring_pages(HEADER, &text, PAGES),
        b'h' => ring_pages(&text, FORMATS, PAGES),
        _ => {}
    }
}

/// Events are in their page, and make sense.
fn ring_pages(header: &str, formats: &str, pages: &[u8]) {
    let layout = match Layout::parse(header) {
        Ok(layout) => layout,
        Err(message) => return check_message(&message, ""),
    };
    let texts = formats.split("name: ").skip(1);
    let formats: Result<Vec<_>, _> = texts.map(|t| EventFormat::parse(&format!("name: {t}"))).collect();
    let decoder = match formats.and_then(|formats| Decoder::new(&formats)) {
        Ok(decoder) => decoder,
        Err(message) => return check_message(&message, ""),
    };
    for bytes in pages.chunks(layout.page_bytes()) {
        let page = match Page::new(bytes, &layout) {
            Ok(page) => page,
            Err(message) => {
                check_message(&message, "");
                continue;
            }
        };
        let (mut sum, mut failed) = (0, false);
        for raw in page {
            assert!(!failed, "an event behind an error");
            failed = raw.is_err();
            let event = raw.and_then(|raw| {
                sum += 4 + raw.data.len();
                decoder.decode(&raw)
            });
            match event {
                Ok(Some(e)) => {
                    let is_end = e.op == Op::Write && e.action == Action::Complete && e.sectors == 0;
                    assert_eq!(e.sectors == 0, e.op == Op::Flush || is_end, "{e:?}");
                    assert!(e.sectors > 0 || e.sector == 0 || is_end, "{e:?}");
                    assert!(e.sector.checked_add(u64::from(e.sectors)).is_some(), "{e:?}");
                    assert!(e.device.1 < 1 << 20 && e.comm.text().chars().count() < 16, "{e:?}");
                }
                Ok(None) => {}
                Err(message) => check_message(&message, ""),
            }
        }
        assert!(sum <= bytes.len(), "events that overlap");
    }
}

fn trace_as(format: Format, data: &[u8]) {
    trace(fairhead_trace::read_as(format, "fuzz.trace", Cursor::new(data.to_vec())));
}

/// Requests are in order and make sense, and are the same after they were written and read again.
fn trace(opened: Result<Trace, TraceError>) {
    let mut trace = match opened {
        Ok(trace) => trace,
        Err(error) => return check_message(&error, "fuzz.trace"),
    };
    let mut records: Vec<Record> = Vec::new();
    for record in trace.by_ref().take(100_000) {
        match record {
            Ok(r) => {
                assert!(records.last().is_none_or(|last| last.at <= r.at), "time goes backwards");
                assert!(r.issued.is_none_or(|t| t >= r.at) && r.completed.is_none_or(|t| t >= r.at));
                assert_eq!(r.sectors == 0, r.op == Op::Flush, "{r:?}");
                records.push(r);
            }
            Err(error) => check_message(&error, "fuzz.trace"),
        }
    }
    let names = trace.names();
    let (mut text, mut log, mut binary) = (Vec::new(), Vec::new(), Vec::new());
    let mut writers = (
        blkparse::Writer::new(&mut text),
        iolog::Writer::new(&mut log).expect("a vector takes all"),
        blktrace::Writer::new(&mut binary),
    );
    let small = |r: &&Record| r.sectors < 1 << 23;
    for r in records.iter().filter(small) {
        let wrote = [writers.0.write(r, names), writers.1.write(r, names), writers.2.write(r, names)];
        assert!(wrote.iter().all(Result::is_ok), "{wrote:?}");
    }
    let ended = [writers.0.finish(names), writers.1.finish(), writers.2.finish()];
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    let written: Vec<Record> = records.iter().filter(small).copied().collect();
    for (format, bytes, unit) in
        [(Format::Blkparse, text, 1), (Format::IologV3, log, 1000), (Format::Blktrace, binary, 1)]
    {
        let first = written.first().map_or(0, |r| r.at.as_ns() / unit);
        let key = |r: &Record, first| (r.at.as_ns() / unit - first, r.op, r.sector, r.sectors);
        let again = fairhead_trace::read_as(format, "again", Cursor::new(bytes)).expect("our own");
        let again: Vec<_> = again.map(|r| key(&r.expect("our own"), 0)).collect();
        let expected: Vec<_> = written.iter().map(|r| key(r, first)).collect();
        assert_eq!(again, expected, "{format}");
    }
}
