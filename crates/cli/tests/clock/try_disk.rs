//! `fairhead try` in real time: a disk that goes away, whose name another test may not have meanwhile;
//! sections of a job file, whose processes are looked at while they live; two readers, whose rates are
//! compared.

#![allow(clippy::disallowed_methods, reason = "turns are of real time")]

use crate::in_time::{in_time, timely};
use crate::loop_device::LoopDevice;
use crate::process::{fairhead, start};
use crate::trial::{disk, said, try_on, wait_for};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

#[test]
fn a_disk_that_goes_away_ends_the_trial() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = disk(folder.path()) else { return };
    let child =
        fairhead().args(["try", &disk.0, "bfq", "--turn", "2s"]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&disk, "bfq");
    Command::new("losetup").args(["-d", &format!("/dev/{}", disk.0)]).status().unwrap();
    let out = child.wait_with_output().unwrap();
    let line = format!("fairhead: {} is gone; the trial has ended\n", disk.0);
    assert_eq!((out.status.code(), said(&out)), (Some(1), line));
    // Another test may have the device by now.
    std::mem::forget(disk);
}

/// Requests are those of a section, also the last ones, whose events are read when the jobs have ended. On a
/// machine that is late, a process may have ended before its section was read.
#[test]
fn every_row_of_a_job_file_is_one_of_its_sections() {
    let folder = tempfile::tempdir().unwrap();
    if Command::new("fio").arg("--version").output().is_err() {
        return eprintln!("skipped: no fio");
    }
    let Some(disk) = disk(folder.path()) else { return };
    let job = folder.path().join("job.fio");
    let text = format!(
        "[global]\nfilename=/dev/{}\ndirect=1\ntime_based\nruntime=600\nthinktime=500\n\
         [a]\nrw=read\nbs=64k\n[b]\nrw=randread\nbs=4k\n",
        disk.0
    );
    std::fs::write(&job, text).unwrap();
    in_time(|| {
        let out =
            try_on(&disk, &["bfq", "--job", job.to_str().unwrap(), "-t", "8s", "--turn", "2s", "--json"]);
        assert!(out.status.success(), "{}", said(&out));
        let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let rows = value["rows"].as_array().unwrap().iter();
        let mut names: Vec<&str> = rows.map(|r| r["name"].as_str().unwrap_or("all")).collect();
        names.dedup();
        timely(names == ["a", "b", "all"], format_args!("{names:?} in {value:#}"));
    });
}

/// Two sequential readers on a rotating disk: under none the head goes to and fro, and bfq lets each read
/// for a while. `docs/emulate.md` has 7.3 MiB/s for each under none, and 33 under bfq.
#[test]
fn two_readers_get_more_under_bfq() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if Command::new("fio").arg("--version").output().is_err() {
        return eprintln!("skipped: no fio");
    }
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("skipped: no /dev/fuse");
    }
    std::fs::File::create(folder.path().join("image")).unwrap().set_len(8 << 30).unwrap();
    std::fs::create_dir(folder.path().join("mnt")).unwrap();
    let mut emulate = fairhead();
    emulate.args(["emulate", "nas2020", "image", "mnt"]).current_dir(&folder).stdout(Stdio::piped());
    let (mut emulate, line, mut said_by_emulate) = start(&mut emulate);
    if !line.contains("as slow as") {
        return eprintln!("skipped: {line}");
    }
    let found =
        LoopDevice::attach(&folder.path().join("mnt/disk")).and_then(|d| two_readers(&d, folder.path()));
    Command::new("kill").arg(emulate.0.id().to_string()).status().unwrap();
    let mut out = String::new();
    emulate.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    emulate.0.wait().unwrap();
    let mut words = String::new();
    said_by_emulate.read_to_string(&mut words).unwrap();
    let Some(value) = found else { return };
    if words.contains("not to be trusted") {
        return eprintln!("skipped: machine too busy: {}", words.trim());
    }
    assert_eq!(value["outcome"], "better", "{value:#}");
    assert!(value["change"]["low"].as_f64().unwrap() > 1.5, "{value:#}");
    assert_eq!((value["pairs"].as_u64(), value["lost_events"].as_u64()), (Some(4), Some(0)));
    for name in ["a", "b"] {
        let row = value["rows"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap();
        assert!(row["bytes"]["low"].as_f64().unwrap() > 1.5, "{row:#}");
        let job = value["jobs"].as_array().unwrap().iter().find(|j| j["job"] == name).unwrap();
        assert_eq!(
            (&job["kind"], &job["gains"], &job["pays"]),
            (&json!("bulk"), &json!(true), &json!(false))
        );
    }
}

fn two_readers(disk: &LoopDevice, folder: &Path) -> Option<serde_json::Value> {
    if !disk.has("bfq") {
        return None;
    }
    disk.write("rotational", "1");
    disk.write("nr_requests", "32");
    let before = disk.all();
    let job = folder.join("job.fio");
    let text = format!(
        "[global]\nfilename=/dev/{}\nrw=read\nbs=64k\nsize=1g\ndirect=1\n\
         time_based\nruntime=600\n[a]\n[b]\noffset=4g\n",
        disk.0
    );
    std::fs::write(&job, text).unwrap();
    let job = job.to_str().unwrap();
    let out = try_on(
        disk,
        &["bfq", "low_latency=0", "--against", "none", "--job", job, "-t", "24s", "--turn", "3s", "--json"],
    );
    assert!(out.status.success(), "{}", said(&out));
    assert_eq!(disk.all(), before);
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    Some(value)
}
