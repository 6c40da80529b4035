//! Recordings: a running kernel's, and some that are not part of the repository: real drives, a real
//! start-up. Without those this passes, and says so.

use fairhead_trace::{Format, open};
use std::path::{Path, PathBuf};

/// The files of a folder that end so.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    let Ok(entries) = std::fs::read_dir(&directory) else {
        println!("skipped: no shared data");
        return Vec::new();
    };
    ending_so(entries, ending)
}

/// The files that end so. There is at least one.
fn ending_so(entries: std::fs::ReadDir, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.display().to_string().ends_with(ending));
    files.sort();
    assert!(!files.is_empty(), "no *{ending}");
    files
}

#[test]
fn each_line_of_a_drive_is_a_request() {
    for file in files("disksim", ".trace") {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        let trace = open(&file).unwrap();
        assert_eq!(trace.format(), Format::DiskSimValidation);
        let records: Vec<_> = trace.map(Result::unwrap).collect();
        assert_eq!(records.len(), lines, "{}", file.display());
        assert!(records.iter().all(|r| r.completed.is_some()));
    }
}

#[test]
fn each_line_of_a_start_up_is_a_request() {
    for file in files("startup-traces", ".trace") {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        let mut trace = open(&file).unwrap();
        assert_eq!(trace.format(), Format::StartUp);
        assert_eq!(trace.by_ref().map(Result::unwrap).count(), lines);
        assert_eq!(trace.notes(), fairhead_trace::Notes::default());
    }
}

#[test]
fn a_kernels_requests_are_issued_and_complete() {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conform/tests/kernel-logs");
    for file in ending_so(std::fs::read_dir(logs).unwrap(), ".txt.xz") {
        let mut trace = open(&file).unwrap();
        assert_eq!(trace.format(), Format::Ftrace);
        let records: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
        let done = records.iter().filter(|r| r.completed.is_some() && r.issued.is_some()).count();
        println!("{}: {} requests, {done} done, {:?}", file.display(), records.len(), trace.notes());
        // Few requests are in flight when recording ends; one of write-back is of up to 128 pages, each of
        // which came by itself.
        let is_write_back = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wb-"));
        let open = if is_write_back { 64 * 128 } else { 64 };
        assert!(records.len() > 90 && done + open >= records.len(), "{}", file.display());
        assert!(records.iter().all(|r| r.completed.is_none_or(|c| r.issued.is_some_and(|i| i <= c))));
    }
}
