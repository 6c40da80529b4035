//! fio's own examples: those that do I/O to local files or devices run here, and the others are refused with
//! the reason.
//!
//! They come from the package `fio-examples`, which `cargo xtask setup` installs, or unpacks into
//! `target/fio-examples` where packages leave their documents out.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Engines whose calls reach the request queue of a local disk, and `null`.
const LOCAL: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "libaio", "posixaio", "io_uring", "null",
];

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fio-examples");
    let folders = [PathBuf::from("/usr/share/doc/fio/examples"), root.join("usr/share/doc/fio/examples")];
    let found =
        folders.iter().filter_map(|f| std::fs::read_dir(f).ok()).flat_map(|f| f.map(|e| e.unwrap().path()));
    let mut files: Vec<PathBuf> = found.filter(|p| p.extension().is_some_and(|e| e == "fio")).collect();
    files.sort();
    files.dedup_by(|a, b| a.file_name() == b.file_name());
    files
}

/// Whether fio reads it. `None`: there is no fio.
fn fio_reads(path: &Path) -> Option<bool> {
    let out =
        Command::new("fio").arg("--parse-only").arg(path).current_dir(std::env::temp_dir()).output().ok()?;
    Some(out.status.success())
}

/// Whether all engines that it names do I/O to local disks.
fn is_local(text: &str) -> bool {
    let engines = text.lines().filter_map(|l| l.split(['#', ';']).next()?.split_once('='));
    engines.filter(|(key, _)| key.trim() == "ioengine").all(|(_, engine)| LOCAL.contains(&engine.trim()))
}

/// Runs it for a second of simulated time. What was said if it was refused.
fn refusal(path: &Path) -> Option<String> {
    let args = ["--sched", "mq-deadline", "--disk", "nas2020", "--runtime", "1s", "--output-format", "csv"];
    // Some of them ask for logs, which appear where the program was started.
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    let out = run.current_dir(&folder).arg("run").arg(path).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(matches!(out.status.code(), Some(0..=2)), "{path:?}: {said}");
    let last = said.lines().last().unwrap_or_default();
    (!out.status.success()).then(|| last.rsplit_once(".fio:").map_or(last, |(_, why)| why).to_owned())
}

#[test]
fn most_of_fios_examples_run_and_the_others_are_refused_with_the_reason() {
    let files = examples();
    if files.is_empty() {
        return println!("skipped: no fio-examples");
    }
    if fio_reads(&files[0]).is_none() {
        return println!("skipped: no fio");
    }
    let (mut local, mut run, mut all_run) = (0, 0, 0);
    let mut list = String::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy();
        let text = std::fs::read_to_string(path).unwrap();
        let counts = fio_reads(path).unwrap() && is_local(&text);
        let refused = refusal(path);
        all_run += u32::from(refused.is_none());
        if counts {
            local += 1;
            run += u32::from(refused.is_none());
            let why = refused.as_deref().map_or("runs".to_owned(), |why| format!("refused: {why}"));
            list.push_str(&format!("{name}: {why}\n"));
        }
        if let Some(why) = refused {
            println!("{} {name:34} {why}", if counts { "*" } else { " " });
            // A hint is for a typing error, and there are none in these files.
            assert!(!why.contains("did you mean"), "{name}: {why}");
            assert!(!why.contains("unknown option"), "{name}: {why}");
            assert!(!why.contains("nknown value"), "{name}: {why}");
        }
    }
    println!(
        "{run} of {local} with local I/O run (those marked * do not); of all {} files, {all_run}",
        files.len()
    );
    assert!(local >= 35, "{local} files do local I/O");
    // Those that do not run are listed in docs/job-files.md.
    assert!(run * 10 >= local * 9, "{run} of {local} run");
    let expected = include_str!("../job_files/examples.txt");
    if local == 37 {
        assert_eq!(list, expected, "job_files/examples.txt");
    }
}
