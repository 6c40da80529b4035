//! The committed corpus, through the same functions as in the fuzzer, on any toolchain.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {}", directory.display());
    for file in files {
        let data = fs::read(&file).unwrap();
        if let Err(panic) = std::panic::catch_unwind(|| run(&data)) {
            eprintln!("{target}: {} fails", file.display());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn job_files() {
    replay("job_file", fairhead_fuzz::job_file);
}

#[test]
fn disk_presets() {
    replay("disk_preset", fairhead_fuzz::disk_preset);
}

#[test]
fn elevators() {
    replay("elevator", fairhead_fuzz::elevator);
}

#[test]
fn kernel_logs() {
    replay("kernel_log", fairhead_fuzz::kernel_log);
}

#[test]
fn control() {
    replay("control", fairhead_fuzz::control);
}

#[test]
fn nbd() {
    replay("nbd", fairhead_fuzz::nbd);
}
