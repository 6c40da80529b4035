//! The program as people meet it for the first time: mistakes get one clear line, and no result is lost.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const JOB: &str = "[streams]\nrw=read\nbs=64k\nsize=64m\nnumjobs=2\nruntime=1s\ntime_based\n\
                   [reader]\nrw=randread\nbs=4k\nsize=64m\nruntime=1s\ntime_based\n";

/// A folder of the test's own, in which the program runs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("job.fio", JOB.as_bytes());
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.at(name), bytes).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// stdout of a call that must succeed.
    fn answer(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    }

    /// The line on stderr of a call that must fail so and print nothing else.
    fn refusal(&self, args: &[&str], code: i32) -> String {
        let out = self.run(args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(out.stdout.is_empty(), "{args:?}: {}", text(&out.stdout));
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        said.trim_end().strip_prefix("fairhead: ").expect("the program names itself").to_owned()
    }

    /// What the program answers to a job file on standard input.
    fn piped(&self, args: &[&str], job: &[u8]) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may refuse its arguments before it reads.
        let _ = child.stdin.take().unwrap().write_all(job);
        child.wait_with_output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_folder_that_is_missing_is_said_before_the_work() {
    let place = Place::new();
    for command in [&["run", "job.fio"][..], &["advise", "job.fio"], &["sweep", "job.fio"]] {
        let line = place.refusal(&[command, &["--report", "no/x.html"]].concat(), 1);
        assert_eq!(line, "cannot write 'no/x.html': there is no folder 'no'; make it first: mkdir -p no");
    }
    let line = place.refusal(&["run", "job.fio", "--pictures", "job.fio/pictures"], 1);
    assert!(line.contains("'job.fio' is a file, not a folder"), "{line}");
    // A log that the job asks for.
    place.write("logs.fio", format!("[global]\nwrite_lat_log=no/log\n{JOB}").as_bytes());
    let line = place.refusal(&["run", "logs.fio", "--sched", "noop"], 1);
    assert!(line.starts_with("cannot write 'no/log") && line.contains("there is no folder 'no'"), "{line}");
}

/// What cannot be known before: a file system that is full.
#[test]
fn results_are_printed_if_a_file_cannot_be_written() {
    let place = Place::new();
    let whole = place.answer(&["run", "job.fio", "--sched", "noop"]);
    for option in ["--report", "-o", "--timeline"] {
        let out = place.run(&["run", "job.fio", "--sched", "noop", option, "/dev/full"]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{option}: {said}");
        assert!(said.contains("cannot write '/dev/full'"), "{option}: {said}");
        assert_eq!(text(&out.stdout), whole, "{option}");
    }
    let out = place.run(&["sweep", "job.fio", "--sched", "noop", "--report", "/dev/full"]);
    assert!(out.status.code() == Some(1) && text(&out.stdout).contains("none"), "{}", text(&out.stderr));
}

/// A link to an open file of the process, as `/dev/stdout` is one, is written to and stays; of any other link
/// the file that it leads to is replaced.
#[test]
fn a_link_that_results_go_to_stays_a_link() {
    let place = Place::new();
    let whole = place.answer(&["run", "job.fio", "--sched", "noop"]);
    std::os::unix::fs::symlink("/proc/self/fd/1", place.at("stdout")).unwrap();
    let file = std::fs::File::create(place.at("file")).unwrap();
    let mut command = place.command(&["run", "job.fio", "--sched", "noop", "-o", "stdout"]);
    assert!(command.stdout(file).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(place.at("file")).unwrap(), whole);
    std::os::unix::fs::symlink(place.at("real"), place.at("link")).unwrap();
    place.write("real", b"old");
    place.answer(&["run", "job.fio", "--sched", "noop", "-o", "link"]);
    assert_eq!(std::fs::read_to_string(place.at("real")).unwrap(), whole);
    assert!(place.at("stdout").is_symlink() && place.at("link").is_symlink());
}

/// Starts an advice, waits for a number of finished runs, and presses Ctrl-C.
fn interrupted(place: &Place, runs: usize, more: &[&str]) -> (Option<i32>, String, String) {
    let _ = std::fs::remove_file(place.at("runs"));
    let args = [&["advise", "job.fio", "--threads", "1", "--resume", "runs"], more].concat();
    let child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || std::fs::read_to_string(place.at("runs")).unwrap_or_default().lines().count();
    // The first line of the file is its heading.
    while lines() < runs + 1 {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn ctrl_c_in_advise_prints_what_is_known() {
    let place = Place::new();
    place.write("job.fio", format!("[global]\ndirect=1\n{JOB}").replace("=1s", "=4s").as_bytes());
    let (code, out, said) = interrupted(&place, 8, &["--budget", "600s"]);
    assert_eq!(code, Some(1), "{out}{said}");
    assert!(said.contains("interrupted before there was an answer; the same command resumes"), "{said}");
    assert!(out.contains("So far ") && out.contains("fresh seeds have not confirmed it."), "{out}");
    let rows: Vec<&str> = out.lines().skip_while(|l| !l.starts_with("candidate ")).collect();
    assert!(rows.len() > 3 && rows.iter().any(|l| l.starts_with("mq-deadline ")), "{out}");
    // As JSON, to the terminal: the file would be taken for an answer.
    let json = ["--budget", "600s", "--output-format", "json", "-o", "answer.json"];
    let (_, out, _) = interrupted(&place, 8, &json);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["interrupted"], true, "{json}");
    assert!(json["candidates"].as_array().is_some_and(|c| c.len() > 2), "{json}");
    assert!(!place.at("answer.json").exists());
}

#[test]
fn a_byte_order_mark_is_no_text() {
    let place = Place::new();
    place.write("marked.fio", format!("\u{feff}{JOB}").as_bytes());
    let plain = place.answer(&["run", "job.fio", "--sched", "noop", "--output-format", "csv"]);
    assert_eq!(place.answer(&["run", "marked.fio", "--sched", "noop", "--output-format", "csv"]), plain);
    place.write("disk.toml", "\u{feff}base = \"nas2020\"\n".as_bytes());
    place.answer(&["run", "job.fio", "--sched", "noop", "--disk", "disk.toml"]);
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(JOB.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    place.write("wide.fio", &utf16);
    let line = place.refusal(&["run", "wide.fio"], 2);
    assert!(line.ends_with("wide.fio:1: a text in UTF-16; save it as UTF-8"), "{line}");
}

#[test]
fn a_job_file_comes_from_standard_input() {
    let place = Place::new();
    let args = ["run", "-", "--sched", "noop", "--output-format", "csv"];
    let out = place.piped(&args, JOB.as_bytes());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let plain = place.answer(&["run", "job.fio", "--sched", "noop", "--output-format", "csv"]);
    assert_eq!(text(&out.stdout), plain);
    // Jobs that name disks are read twice.
    let on_disks = format!("[global]\n#!fh_disk=a:nvme\n{JOB}");
    let out = place.piped(&["run", "-", "--sched", "noop"], on_disks.as_bytes());
    assert!(text(&out.stdout).starts_with("stdin on "), "{}{}", text(&out.stdout), text(&out.stderr));
    let fifo = place.at("fifo");
    if Command::new("mkfifo").arg(&fifo).status().is_ok_and(|s| s.success()) {
        let on_disks = on_disks.clone();
        let writer = std::thread::spawn(move || std::fs::write(fifo, on_disks));
        let said = place.answer(&["run", "fifo", "--sched", "noop"]);
        assert!(writer.join().unwrap().is_ok() && said.starts_with("fifo on "), "{said}");
    }
    for (job, line) in [
        (&b"[j]\nsize=1g\niodpeth=3\n"[..], "stdin:3: unknown option 'iodpeth'; did you mean 'iodepth'?"),
        (b"", "stdin: there is no job in it; add a section such as [reader] with size=1g"),
    ] {
        let out = place.piped(&["run", "-"], job);
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(2), format!("fairhead: {line}\n")));
    }
}

/// Mistakes of people who use the program for the first time, and the line that each gets.
#[test]
fn each_mistake_of_a_newcomer_gets_a_line_that_helps() {
    let place = Place::new();
    std::fs::create_dir(place.at("dir")).unwrap();
    place.write("hello.txt", b"hello\n");
    place.write("empty", b"");
    for (args, says) in [
        (&["run", "job.fio", "--sched", "noop", "bfq"][..], "one word with commas: --sched noop,bfq"),
        (&["run", "-disk", "nvme"], "did you mean '--disk'?"),
        (&["run", "job.fio", "--json"], "did you mean '--output-format json'?"),
        (&["run", "job.fio", "--duration", "5s"], "did you mean '--runtime'?"),
        (&["run", "job.fio", "--threads", "many"], "a whole number is needed"),
        (&["run", "job.fio", "--disk", "nas"], "did you mean 'nas2020'?"),
        (&["run", "job.fio", "--disk", "NVME"], "did you mean 'nvme'?"),
        (&["run", "job.fio", "--disk", "dir"], "cannot read 'dir': Is a directory"),
        (&["run", "job.fio", "--disk", "empty"], "empty:1: kind = one of"),
        (&["run", "job.fio", "--runtime", "5"], "'--runtime=5' has no unit"),
        (&["run", "job.fio", "--runtime", "99999999999999999999s"], "is not a time"),
        (&["run", "job.fio", "--seed", "-1"], "--seed -1: a value below zero has no meaning here"),
        (&["run", "job.fio", "--interval", "0"], "is zero"),
        (&["run", "job.fio", "--host", "nvme"], "unknown host 'nvme'; write one of 2004"),
        (&["run", "job.fio", "--set", "slice_idle=4ms"], "write SCHED.TUNABLE=VALUE"),
        (&["run", "job.fio", "--why", "writer"], "no client 'writer'; there are streams"),
        (&["run", "job.fio", "-o", "dir"], "-o dir: it is a folder; name a file"),
        (&["run", "dir"], "cannot read 'dir': Is a directory"),
        (&["run", "empty"], "there is no job in it"),
        (&["run", "hello.txt"], "hello.txt:1: unknown option 'hello'"),
        (&["run", ""], "a value is required for '[JOB|TRACE]' but none was supplied"),
        (&["advise", "job.fio", "--goal", "speed"], "there are even, starts, rates, waits and bulk"),
        (&["advise", "job.fio", "--budget", "-5s"], "--budget -5s: a value below zero has no meaning here"),
        (&["sweep", "job.fio", "--seeds", "0"], "0 is not in 1..=4294967295"),
        (&["trace", "empty"], "empty: is empty"),
        (&["trace", "dir"], "is a directory; a trace is a file"),
        (&["trace", "job.fio"], "is no trace of a known format; those are blktrace binary"),
        (&["calibrate", "empty"], "0 sectors are too few to calibrate"),
        (&["doctor", "--root", "nosuch"], "--root names the folder that has sys, proc and etc"),
        (&["serve", "--export", "a"], "write NAME=FILE, such as vm1=/srv/vm1.img"),
        (&["serve", "--export", "a=hello.txt"], "no address to listen on; write --socket PATH"),
        (&["serve", "--export", "a=hello.txt", "--port", "1"], "did you mean '--listen'?"),
        (&["serve", "--export", "a=hello.txt,wieght=3", "--socket", "s"], "did you mean 'weight'?"),
        (&["list", "scheduler"], "did you mean 'schedulers'?"),
        (&["show", "bqf"], "did you mean 'bfq'?"),
        (&["completions", "sh"], "[possible values: bash, elvish, fish, powershell, zsh]"),
        (&["new-scheduler", "My Sched"], "a name is 1 to 32 small letters"),
        (&["conform", "hello.txt"], "hello.txt:1: not a line of the blk tracer"),
        (&["reproduce", "--figures", "empty"], "empty:1: no line; the first names columns"),
        (&["ladder", "--only", "nosuch"], "bfq has no switch 'nosuch'; write one of hierarchy"),
        (&["validate", "nas2020"], "required arguments were not provided: --trace <FILE>"),
        (&["apply", "sda"], "required arguments were not provided: [SCHEDULER] [NAME=VALUE]..."),
        (&["version"], "did you mean '--version'?"),
    ] {
        let line = place.refusal(args, 2);
        assert!(line.contains(says), "{args:?}: {line}");
        assert!(!line.contains("For more information"), "{args:?}: {line}");
    }
    for (args, says) in [
        (&["ctl", "nosuch", "stats"][..], "make a control socket with --control PATH"),
        (&["top", "hello.txt"], "that is no socket"),
        (&["man", "hello.txt"], "it is a file; name a folder"),
    ] {
        assert!(place.refusal(args, 1).contains(says), "{args:?}: {}", place.refusal(args, 1));
    }
}

/// A disk where a job is expected: by its path, or by its name.
#[test]
fn a_disk_is_no_job() {
    let place = Place::new();
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let Some(disk) = disks.filter_map(|e| e.file_name().into_string().ok()).find(|n| !n.contains('!')) else {
        return println!("skipped: no disk");
    };
    let says = format!("is a disk, not a job; fairhead advise --record 60s /dev/{disk} records what it does");
    for command in ["run", "advise"] {
        let line = place.refusal(&[command, &disk], 2);
        assert!(line.contains(&says), "{line}");
        if Path::new("/dev").join(&disk).exists() {
            let line = place.refusal(&[command, &format!("/dev/{disk}")], 2);
            assert!(line.contains(&says), "{line}");
        }
    }
}

#[test]
fn help_is_where_people_look_for_it() {
    let place = Place::new();
    assert_eq!(place.answer(&["help", "run"]), place.answer(&["run", "--help"]));
    assert_eq!(place.answer(&["help"]), place.answer(&["--help"]));
    assert_eq!(place.refusal(&["help", "rnu"], 2), "unrecognized subcommand 'rnu'; did you mean 'run'?");
    // Help names pages, and says where they are.
    let help = place.answer(&["advise", "--help"]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize().unwrap();
    let told = help.lines().last().unwrap();
    assert!(help.contains("docs/advise.md") && told.starts_with("The pages docs/… are in "), "{told}");
    if Path::new(env!("CARGO_BIN_EXE_fairhead")).starts_with(docs.parent().unwrap()) {
        assert_eq!(told, format!("The pages docs/… are in {}.", docs.display()));
    }
}

#[test]
fn words_that_are_no_commands_lead_to_those_that_are() {
    let place = Place::new();
    for (word, meant) in [
        ("advice", "advise"),
        ("advize", "advise"),
        ("simulate", "run"),
        ("check", "doctor"),
        ("docter", "doctor"),
        ("lst", "list"),
        ("recrod", "record"),
        ("convert", "trace"),
    ] {
        let line = place.refusal(&[word], 2);
        assert_eq!(line, format!("unrecognized subcommand '{word}'; did you mean '{meant}'?"));
    }
    assert_eq!(
        place.refusal(&["run", "job.fio", "--runtime", "-5s"], 2),
        "--runtime -5s: a value below zero has no meaning here"
    );
    assert!(place.refusal(&["run", "job.fio", "--runtime=-5s"], 2).contains("-5s"));
}
