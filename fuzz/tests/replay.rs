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
fn disksim_drives() {
    replay("disksim_drive", fairhead_fuzz::disksim_drive);
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
fn vhost_chains() {
    replay("vhost_chains", fairhead_fuzz::vhost_chains);
}

#[test]
fn vhost_messages() {
    replay("vhost_messages", fairhead_fuzz::vhost_messages);
}

#[test]
fn fuse() {
    replay("fuse", fairhead_fuzz::fuse);
}

#[test]
fn nbd() {
    replay("nbd", fairhead_fuzz::nbd);
}

#[test]
fn traces() {
    replay("trace_blktrace", fairhead_fuzz::trace_blktrace);
    replay("trace_blkparse", fairhead_fuzz::trace_blkparse);
    replay("trace_ftrace", fairhead_fuzz::trace_ftrace);
    replay("trace_iolog", fairhead_fuzz::trace_iolog);
    replay("trace_msr", fairhead_fuzz::trace_msr);
    replay("trace_alibaba", fairhead_fuzz::trace_alibaba);
    replay("trace_tencent", fairhead_fuzz::trace_tencent);
    replay("trace_spc", fairhead_fuzz::trace_spc);
    replay("trace_disksim", fairhead_fuzz::trace_disksim);
    replay("trace_disksim_validation", fairhead_fuzz::trace_disksim_validation);
    replay("trace_startup", fairhead_fuzz::trace_startup);
    replay("trace_live", fairhead_fuzz::trace_live);
    replay("trace_biosnoop", fairhead_fuzz::trace_biosnoop);
    replay("trace_iosnoop", fairhead_fuzz::trace_iosnoop);
    replay("trace_cloudphysics", fairhead_fuzz::trace_cloudphysics);
    replay("trace_vscsi", fairhead_fuzz::trace_vscsi);
    replay("trace_mqsim", fairhead_fuzz::trace_mqsim);
    replay("trace_libcachesim", fairhead_fuzz::trace_libcachesim);
    replay("trace_ring", fairhead_fuzz::trace_ring);
    replay("trace_any", fairhead_fuzz::trace_any);
}
