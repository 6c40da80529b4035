//! Traces and job files out of pipes: a pipe gives its bytes once, and the answer is that of a file.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/golden").join(file)
}

fn fairhead(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the program answers when these bytes come through a pipe.
fn piped(command: &mut Command, bytes: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    // It may refuse its arguments before it reads.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// stdout, and what is said beside it, of a call that must succeed.
fn answer(args: &[&str], bytes: &[u8]) -> (String, String) {
    let out = piped(&mut fairhead(args), bytes);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    (text(&out.stdout), text(&out.stderr))
}

/// The line with which it is refused.
fn refusal(args: &[&str], bytes: &[u8]) -> String {
    let out = piped(&mut fairhead(args), bytes);
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?}");
    said.trim_end().strip_prefix("fairhead: ").expect("the program names itself").to_owned()
}

/// All requests of two volumes.
fn long_trace(requests: u64) -> Vec<u8> {
    let row = |i: u64| format!("{},R,{},4096,{}\n", i % 2, i * 7_654_400 % 1_000_000_000_000, i * 900);
    (0..requests).map(row).collect::<String>().into_bytes()
}

/// The files of all formats, plain and packed: what a pipe gives is what the file gives.
#[test]
fn a_trace_of_any_format_comes_through_a_pipe() {
    let formats = [
        "alibaba.csv",
        "big-endian.blktrace",
        "biosnoop.txt",
        "blkparse.txt",
        "cloudphysics.csv",
        "disksim.txt",
        "disksim-validation.txt",
        "ftrace-blk.txt",
        "ftrace-events.txt",
        "iolog-v2.txt",
        "iolog-v3.txt",
        "iosnoop.txt",
        "libcachesim.csv",
        "live.log",
        "mqsim.txt",
        "msr.csv",
        "one.vscsi",
        "packed/spc.csv.bz2",
        "packed/spc.csv.gz",
        "packed/spc.csv.xz",
        "packed/spc.csv.zst",
        "spc.csv",
        "startup.txt",
        "tencent.csv",
        "two.vscsi",
    ];
    for file in formats {
        let path = golden(file);
        let run = ["run", "-", "--sched", "noop,bfq", "--output-format", "csv"];
        let of_file = ["run", path.to_str().unwrap(), "--sched", "noop,bfq", "--output-format", "csv"];
        let (from_pipe, said) = answer(&run, &std::fs::read(&path).unwrap());
        let (from_file, said_of_file) = answer(&of_file, b"");
        // Where a trace has no tasks and one device, its client is named after it.
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(from_pipe.replace("stdin", name), from_file, "{file}");
        assert_eq!(said, said_of_file.replace(path.to_str().unwrap(), "stdin"), "{file}");
    }
}

/// More requests than one page holds, in all ways to name a pipe, and where a trace is one job of several.
#[test]
fn pipes_have_many_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.csv");
    let trace = long_trace(30_000);
    std::fs::write(&file, &trace).unwrap();
    let how = ["--sched", "noop,mq-deadline", "--replay", "no-stall", "--output-format", "csv"];
    let run = |name: &str, bytes: &[u8]| answer(&[&["run", name], &how[..]].concat(), bytes).0;
    let whole = run(file.to_str().unwrap(), b"");
    assert_eq!(run("-", &trace), whole);
    assert_eq!(run("/dev/stdin", &trace), whole);
    // Of a trace in a job file, too; `-` there is standard input, as it is fio's.
    let job = folder.path().join("job.fio");
    let with = |name: &str| {
        std::fs::write(&job, format!("[old]\nread_iolog={name}\nreplay_no_stall=1\n")).unwrap();
        answer(&["run", job.to_str().unwrap(), "--sched", "noop", "--output-format", "csv"], &trace).0
    };
    let of_file = with(file.to_str().unwrap());
    assert_eq!((with("-"), with("/dev/stdin")), (of_file.clone(), of_file));
    // A fifo, by two who ask in turn.
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let writer = std::thread::spawn({
        let (fifo, trace) = (fifo.clone(), trace.clone());
        move || std::fs::write(fifo, trace)
    });
    assert_eq!(run(fifo.to_str().unwrap(), b""), whole);
    writer.join().unwrap().unwrap();
    let (said, _) = answer(&["advise", "-", "--disk", "nas2020", "--rounds", "1"], &long_trace(400));
    assert!(said.contains("mq-deadline"), "{said}");
}

/// A producer that stopped early is said, wherever it did; nothing is run.
#[test]
fn a_trace_that_was_cut_is_not_taken_for_a_whole_one() {
    let run = ["run", "-", "--sched", "noop"];
    let plain = std::fs::read(golden("alibaba.csv")).unwrap();
    for cut in 1..plain.len() {
        // Behind a line nothing shows that there was more.
        if plain[cut - 1] == b'\n' {
            answer(&run, &plain[..cut]);
            continue;
        }
        let said = refusal(&run, &plain[..cut]);
        assert!(said.starts_with("stdin:"), "cut at {cut}: {said}");
    }
    let last = refusal(&run, &plain[..plain.len() - 2]);
    assert!(last.contains("ends in the middle of a line: what writes into the pipe stopped early"), "{last}");
    for file in ["spc.csv.gz", "spc.csv.xz", "spc.csv.zst", "spc.csv.bz2"] {
        let packed = std::fs::read(golden("packed").join(file)).unwrap();
        for cut in [packed.len() / 2, packed.len() - 1] {
            let said = refusal(&run, &packed[..cut]);
            assert!(said.starts_with("stdin:"), "{file} cut at {cut}: {said}");
        }
    }
    for file in ["set.blktrace.0", "two.vscsi"] {
        let bytes = std::fs::read(golden(file)).unwrap();
        let said = refusal(&run, &bytes[..bytes.len() - 3]);
        assert!(said.contains("the file ends in"), "{file}: {said}");
    }
}

/// What is no trace, and what holds one that has to be taken out first.
#[test]
fn what_cannot_be_read_from_a_pipe_is_said_with_what_would_be_right() {
    let run = ["run", "-"];
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    tar.push(0xff);
    assert!(refusal(&run, &tar).contains("is a tar archive: take the trace out first"));
    assert!(refusal(&run, b"PK\x03\x04\xff\xfe.").contains("is a zip archive: take the trace out first"));
    let said = refusal(&run, b"\x17\x08\x44tracing6\0\xff\xfe");
    assert!(said.contains("is trace-cmd's own file: write `trace-cmd report"), "{said}");
    let said = refusal(&run, b"PERFILE2\xff\xfe");
    assert!(said.contains("is perf's own file: write `perf script"), "{said}");
    assert!(refusal(&run, b"\xff\xfd\0\x01").contains("is no trace of a known format"));
    assert!(refusal(&run, b"hello\nworld\n").starts_with("stdin:1: "), "a text is taken for a job file");
    assert!(refusal(&[&run[..], &["--replay", "open"]].concat(), b"[a]\nsize=1m\n").contains("need a TRACE"));
    assert_eq!(
        refusal(&run, b""),
        "stdin: there is no job in it; add a section such as [reader] with size=1g"
    );
}

/// Without room the folder is named, and what to do; small traces need no file.
#[test]
fn requests_are_kept_where_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let run = |tmpdir: &Path, requests| {
        piped(fairhead(&["run", "-", "--sched", "noop"]).env("TMPDIR", tmpdir), &long_trace(requests))
    };
    assert!(run(folder.path(), 30_000).status.success());
    let nowhere = folder.path().join("no");
    let out = run(&nowhere, 30_000);
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(&format!("cannot be kept in '{}'", nowhere.display())), "{said}");
    assert!(said.contains("name a folder with room in TMPDIR, or write the trace to a file first"), "{said}");
    assert!(run(&nowhere, 400).status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

/// Ctrl-C while the pipe is read: nothing is left, also of what was kept already.
#[test]
fn reading_a_pipe_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = fairhead(&["run", "-", "--sched", "noop"]);
    let mut child = command.env("TMPDIR", folder.path()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // The rest never comes: the program has read all this once it holds a kept file that is open.
    pipe.write_all(&long_trace(100_000)).unwrap();
    let fds = format!("/proc/{}/fd", child.id());
    let has_kept = || {
        let fds = std::fs::read_dir(&fds).unwrap().map(|fd| std::fs::read_link(fd.unwrap().path()));
        fds.filter_map(Result::ok).any(|link| link.starts_with(folder.path()))
    };
    while !has_kept() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    drop(pipe);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((status.code(), said.trim_end()), (Some(130), "fairhead: interrupted"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
