//! Schedulers from libraries: a good one is a row beside the built-in ones, and each thing that a faulty one
//! can do is one line that names it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A short run, in which some hundred requests arrive and some are merged.
const JOB: &str = "[global]\nsize=64m\nruntime=2s\ntime_based\n[w]\nrw=write\nbs=4k\n[r]\nrw=randread\nbs=4k\nnumjobs=4\n[s]\nrw=read\nbs=64k\ndirect=1\n";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs the program in a folder.
fn fairhead(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).current_dir(folder).output().expect("it runs")
}

/// What is on standard error, and the exit code.
fn refused(out: &Output) -> (String, Option<i32>) {
    let [said, wrong] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(said, "", "no result beside an error: {wrong}");
    assert_eq!(wrong.lines().count(), 1, "one line: {wrong}");
    (wrong, out.status.code())
}

/// Builds a library; nothing if there is no compiler.
fn build(source: &Path, library: &Path, flags: &[&str]) -> Option<()> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler");
        return None;
    }
    let header = here("../plugin/include");
    let mut cc = Command::new("cc");
    cc.args([
        "-std=gnu11",
        "-O1",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-infinite-recursion",
    ]);
    let out =
        cc.args(flags).arg("-I").arg(header).arg("-o").arg(library).arg(source).output().expect("cc runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(())
}

/// A folder with the job, and the library that has a fault.
fn with_fault(fault: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("job.fio"), JOB).expect("a job");
    let library = folder.path().join("libfaulty.so");
    build(&here("tests/libraries/faulty.c"), &library, &[&format!("-DFAULT={fault}")])?;
    Some(folder)
}

const RUN: [&str; 4] = ["run", "job.fio", "--sched", "./libfaulty.so,none"];

/// Runs with a library that has a fault, and looks for each of `said` in the line.
fn faulty(fault: &str, code: i32, said: &[&str]) {
    let Some(folder) = with_fault(fault) else { return };
    let (line, ended) = refused(&fairhead(folder.path(), &RUN));
    for part in [&["fairhead: scheduler library './libfaulty.so'"], said].concat() {
        assert!(line.contains(part), "{fault}: no '{part}' in: {line}");
    }
    assert_eq!(ended, Some(code), "{fault}: {line}");
}

#[test]
fn a_crash_names_the_function_and_the_last_request() {
    faulty(
        "CRASH",
        1,
        &["', insert: crashed (SIGSEGV", "; call ", " of the run; last request: tag ", " sectors at "],
    );
    faulty("ABORT", 1, &["', insert: crashed (SIGABRT"]);
    faulty("STACK", 1, &["', insert: crashed (SIGSEGV"]);
}

/// Recordings are written under another name until they are complete; a crash leaves none of that behind.
#[test]
fn a_crash_leaves_no_part_of_a_recording_behind() {
    let Some(folder) = with_fault("CRASH") else { return };
    std::fs::write(folder.path().join("r.csv"), "before").expect("a file");
    let before = names(folder.path());
    let run = ["run", "job.fio", "--sched", "./libfaulty.so"];
    let files = ["--requests", "r.csv", "--trace-out", "t.blktrace", "--timeline", "t.json"];
    let (line, code) = refused(&fairhead(folder.path(), &[&run[..], &files].concat()));
    assert!(line.contains("insert: crashed") && code == Some(1), "{line}");
    assert_eq!(names(folder.path()), before);
    assert_eq!(std::fs::read_to_string(folder.path().join("r.csv")).expect("a file"), "before");
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    names
}

#[test]
fn a_function_that_does_not_return_is_ended() {
    faulty("LOOP", 1, &["', dispatch: has not returned for 5 s (an endless loop?)", "last request: tag "]);
}

#[test]
fn a_library_that_ends_the_process_is_found_out() {
    faulty("EXIT", 1, &["', insert: ended the process with exit code 0"]);
    faulty("FAIL", 1, &["', insert: failed: no more than a hundred, please; last request: tag "]);
}

#[test]
fn answers_that_cannot_be_are_named() {
    faulty("FOREIGN", 1, &["', dispatch: answered tag 60000, which does not wait"]);
    faulty("TWICE", 1, &["', dispatch: answered tag ", ", which does not wait"]);
    faulty("LOSE", 1, &["', dispatch: answered FH_EMPTY although ", " is lost"]);
    faulty("HOLD", 1, &["', dispatch: answered FH_HOLD although ", "no timer or completion is coming"]);
    faulty("HELD", 1, &["', timer: ", ", and after 100000 timers and answers nothing has changed"]);
    faulty("TIMER", 1, &["', next_timer: still wants the timer of "]);
    faulty("CREATE", 1, &["create returned 5: 0 or the number of a tunable was expected"]);
}

#[test]
fn a_table_that_cannot_be_is_refused() {
    faulty(
        "VERSION",
        2,
        &["'faulty' has version 2 of the scheduler interface, and this fairhead has version 1"],
    );
    faulty("SIZE", 2, &["its table has 8 bytes instead of 240"]);
    faulty("NAME", 2, &["scheduler 'bfq': a built-in scheduler has this name"]);
    faulty("FUNCTIONS", 2, &["'faulty' has no function 'dispatch' in its table"]);
    faulty("UNIT", 2, &["tunable 'depth' of 'faulty' has no unit that there is (9)"]);
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |file: &str| {
        let (line, code) = refused(&fairhead(folder.path(), &["run", "--sched", file]));
        assert_eq!(code, Some(2), "{line}");
        line
    };
    assert_eq!(said("./libmine.so"), "fairhead: scheduler library './libmine.so': no such file\n");
    std::fs::write(folder.path().join("text.so"), "this is a text, and nothing else").expect("a file");
    assert_eq!(said("text.so"), "fairhead: scheduler library 'text.so': not a shared library (ELF)\n");
    assert_eq!(said("./"), "fairhead: scheduler library './': not a file\n");
    let program = env!("CARGO_BIN_EXE_fairhead");
    let line = said(program);
    assert!(line.contains("cannot be loaded: ") || line.contains("no function"), "{line}");
    std::fs::write(folder.path().join("empty.c"), "int nothing;\n").expect("a file");
    if build(&folder.path().join("empty.c"), &folder.path().join("empty.so"), &[]).is_some() {
        assert!(said("./empty.so").contains("has no function 'fairhead_scheduler'; FH_SCHEDULER()"));
    }
    std::fs::write(
        folder.path().join("needs.c"),
        "void there_is_none(void);\nvoid f(void) { there_is_none(); }\n",
    )
    .expect("a file");
    if build(&folder.path().join("needs.c"), &folder.path().join("needs.so"), &["-Wl,-z,now"]).is_some() {
        assert!(
            said("./needs.so").contains("cannot be loaded: ") && said("./needs.so").contains("there_is_none")
        );
    }
    let (line, _) = refused(&fairhead(
        folder.path(),
        &["serve", "--sched", "./libmine.so", "--socket", "s", "--export", "a=text.so"],
    ));
    assert!(line.contains("run in the lab only"), "{line}");
}

/// The scheduler of the template in C.
fn upwards(folder: &Path) -> Option<()> {
    std::fs::write(folder.join("job.fio"), JOB).expect("a job");
    build(&here("templates/c/upwards.c"), &folder.join("libupwards.so"), &[])
}

#[test]
fn a_library_is_a_row_beside_the_built_in_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(()) = upwards(folder.path()) else { return };
    let said = |args: &[&str]| {
        let out = fairhead(folder.path(), args);
        let wrong = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{args:?}: {wrong}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let with = |sched: &str, more: &[&str]| said(&[&["run", "job.fio", "--sched", sched], more].concat());
    let csv = ["--output-format", "csv"];
    let both = with("./libupwards.so,deadline", &csv);
    let alone = with("deadline", &csv);
    // The row of the built-in one has the same bytes, whether or not a library runs beside it.
    assert!(alone.lines().skip(1).all(|row| both.contains(row)), "{both}\n{alone}");
    assert!(both.lines().filter(|row| row.contains("upwards")).count() > 0, "{both}");
    assert_eq!(both, with("./libupwards.so,deadline", &[&csv[..], &["--threads", "1"]].concat()));
    // With a load in which requests wait for long enough.
    let patience = |set: &str| {
        let run = ["run", "readers-and-writers", "--runtime", "3s", "--sched", "./libupwards.so"];
        said(&[&run[..], &csv, &["--set", set]].concat())
    };
    assert_ne!(patience("upwards.patience=50ms"), patience("upwards.patience=5s"));
    let shown = said(&["show", "./libupwards.so"]);
    assert!(shown.contains("patience = 500ms    time, 0s to 60s"), "{shown}");
    let requests = with("./libupwards.so", &["--requests", "-"]);
    assert!(
        requests.contains("Batch") || requests.contains("batch"),
        "the reason of each request: {requests}"
    );
    let grid = said(&[
        "sweep",
        "job.fio",
        "--sched",
        "libupwards.so,bfq",
        "--set",
        "upwards.patience=10ms,1s",
        "--seeds",
        "1",
    ]);
    assert_eq!(grid.lines().filter(|row| row.contains("upwards")).count(), 2, "{grid}");
    let advice = said(&["advise", "job.fio", "--sched", "./libupwards.so,bfq", "--rounds", "1", "--details"]);
    let rows = || advice.lines().skip_while(|l| !l.starts_with("candidate "));
    let place = |name: &str| rows().find(|l| l.starts_with(name)).map(|l| l.contains(" the lab "));
    assert_eq!((place("upwards "), place("bfq ")), (Some(true), Some(false)), "{advice}");
    assert!(!advice.contains("--sched upwards"), "no server takes it: {advice}");
}

#[test]
fn mistakes_beside_a_library_are_as_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(()) = upwards(folder.path()) else { return };
    let said =
        |args: &[&str]| refused(&fairhead(folder.path(), &[&["run", "job.fio", "--sched"], args].concat()));
    assert_eq!(
        said(&["libupwards.so,./libupwards.so"]),
        ("fairhead: scheduler './libupwards.so' is named twice\n".to_owned(), Some(2))
    );
    assert!(said(&["libupwards.so", "--set", "upwards.patiance=1s"]).0.contains("did you mean 'patience'?"));
    assert!(said(&["libupwards.so,bfk"]).0.contains("did you mean 'bfq'?"));
}

/// Results that are kept belong to the code that made them.
#[test]
fn kept_results_are_not_used_for_another_build_of_a_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(()) = upwards(folder.path()) else { return };
    let sweep = ["sweep", "job.fio", "--sched", "./libupwards.so", "--seeds", "1", "--resume", "kept"];
    assert!(fairhead(folder.path(), &sweep).status.success());
    assert!(fairhead(folder.path(), &sweep).status.success(), "the same library");
    let source = std::fs::read_to_string(here("templates/c/upwards.c")).expect("the template");
    let changed = source.replace("late ? oldest : ahead ? ahead : lowest", "late ? oldest : lowest");
    assert_ne!(changed, source);
    std::fs::write(folder.path().join("upwards.c"), changed).expect("a file");
    build(&folder.path().join("upwards.c"), &folder.path().join("libupwards.so"), &[]);
    let (line, code) = refused(&fairhead(folder.path(), &sweep));
    assert!(line.contains("has no results of this question") && code == Some(2), "{line}");
}
