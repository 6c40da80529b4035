//! `fairhead trace` as a user meets it, on the trace crate's golden files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/golden").join(file)
}

fn trace(file: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("trace").arg(file).args(args).output().unwrap()
}

/// What it says, without the file's name.
fn answer(file: &str, args: &[&str]) -> String {
    let out = trace(&golden(file), args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_once(": ").filter(|_| args.is_empty()).map_or(text.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn a_summary_says_what_how_much_and_whose() {
    let expected = "\
blkparse text, 6 requests in 19.9ms

op       requests  percent   MiB   MiB/s  sync  sequential
read            2    33.3%  0.00    0.39   50%         50%
write           2    33.3%  0.03    1.75  100%         50%
discard         1    16.6%  2048  102403    0%          0%
flush           1    16.6%                100%

sizes    4KiB 50%, 32KiB 16.6%, 2GiB 16.6%
tasks    jbd2/sda1-8-412 3, cat-1201 2, fstrim-601 1
devices  8,0 5 (up to 439.4MiB), 8,16 1 (up to 2GiB)
latency  mean 8.67ms, longest 9.00ms, of 3 requests
";
    assert_eq!(answer("blkparse.txt", &[]), expected);
    let lost = answer("ftrace-blk.txt", &[]);
    assert!(lost.ends_with("note: 25 were lost by the recording; record with a larger buffer\n"), "{lost}");
    // This trace does not distinguish tasks.
    assert!(!answer("tencent.csv", &[]).contains("tasks"));
}

#[test]
fn json_has_units_in_its_names() {
    let json: serde_json::Value =
        serde_json::from_str(&answer("msr.csv", &["--output-format", "json"])).unwrap();
    assert_eq!(json["format"], "MSR Cambridge CSV");
    assert_eq!((&json["requests"], &json["empty"]), (&3.into(), &1.into()));
    assert_eq!(json["ops"]["read"]["bytes"], 32768);
    assert_eq!(json["devices"][0]["device"], "src1.0");
    assert_eq!(json["latency_max_ns"], 11_200_600);
}

#[test]
fn what_is_written_has_the_same_summary() {
    let plain = answer("blkparse.txt", &[]);
    let same = |text: &str| text.split_once(", ").map(|(_, rest)| rest.to_owned()).unwrap();
    for to in ["blkparse", "blktrace"] {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let out = trace(&golden("blkparse.txt"), &["--to", to, "-o", file.to_str().unwrap()]);
        assert!(out.status.success() && out.stdout.is_empty());
        let again = String::from_utf8(trace(&file, &[]).stdout).unwrap();
        assert_eq!(same(&again), same(&plain), "{to}");
    }
    let log = answer("iolog-v3.txt", &["--to", "iolog"]);
    assert_eq!(
        log,
        "fio version 3 iolog\n0 data.0 add\n0 data.0 open\n0 data.0 read 0 4096\n2305 data.0 write 45056 1024\n4497 data.0 sync 0 0\n"
    );
}

#[test]
fn what_is_no_trace_is_refused_in_a_line() {
    for (file, message) in [
        (golden("blkparse.txt.records"), "is no trace of a known format; those are blktrace binary"),
        (PathBuf::from("/nonexistent/trace"), "cannot be opened"),
        (std::env::temp_dir(), "is a directory; a trace is a file"),
    ] {
        let out = trace(&file, &[]);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// What a program says, or `None` if there is no such program.
fn run(program: &str, args: &[&str]) -> Option<String> {
    // They write beside where they are started.
    let folder = tempfile::tempdir().unwrap();
    match Command::new(program).args(args).current_dir(&folder).output() {
        Ok(out) => Some(String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()),
        Err(_) => {
            println!("skipped: no {program}");
            None
        }
    }
}

#[test]
fn blkparse_and_btt_read_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (ours, again, dump) = (path("ours.blktrace.0"), path("again"), path("dump"));
    assert!(trace(&golden("blkparse.txt"), &["--to", "blktrace", "-o", &ours]).status.success());
    let Some(text) = run("blkparse", &["-i", &ours, "-d", &dump]) else { return };
    // Two reads, two writes, a flush, a discard; of the first three it is known when they completed, by then
    // two had been merged.
    let count = |letter: &str| text.lines().filter(|l| l.split_whitespace().nth(5) == Some(letter)).count();
    assert_eq!((count("Q"), count("D"), count("C")), (6, 3, 3), "{text}");
    assert!(text.contains("  412  Q WSM 900000 + 64 [jbd2/sda1-8]"), "{text}");
    // From its text we make the same bytes.
    std::fs::write(&again, text).unwrap();
    let binary = trace(again.as_ref(), &["--to", "blktrace"]).stdout;
    assert!(binary == std::fs::read(&ours).unwrap(), "another trace after blkparse");
    let Some(btt) = run("btt", &["-i", &dump]) else { return };
    let q2c = btt.lines().find(|l| l.starts_with("Q2C")).unwrap_or_default();
    // The mean of 8.511633, 8.507245 and 9.000000 ms.
    assert_eq!(q2c.split_whitespace().nth(2), Some("0.008672959"), "{btt}");
}

#[test]
fn fio_replays_what_we_write() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap().to_owned();
    assert!(trace(&golden("spc.csv"), &["--to", "iolog", "-o", &path]).status.success());
    let read = format!("--read_iolog={path}");
    let args = ["--name=r", &read, "--ioengine=null", "--replay_no_stall=1", "--output-format=terse"];
    let Some(said) = run("fio", &args) else { return };
    let fields: Vec<&str> =
        said.lines().find(|l| l.starts_with("3;")).unwrap_or_default().split(';').collect();
    // KiB read and written: sectors 7 + 2 and 7 + 6.
    assert_eq!((fields.get(5), fields.get(46)), (Some(&"4"), Some(&"6")), "{said}");
}
