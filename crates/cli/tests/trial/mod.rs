//! `fairhead try` on a loop device, for the tests of it.

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "turns and kills are of real time")]

use crate::loop_device::LoopDevice;
use crate::process::fairhead;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

/// A loop device under mq-deadline with settings of its own: what a change of scheduler resets.
pub(crate) fn disk(folder: &Path) -> Option<LoopDevice> {
    let image = folder.join("image");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let disk = LoopDevice::attach(&image)?;
    if !disk.has("mq-deadline") || !disk.has("bfq") {
        return None;
    }
    if !Path::new("/sys/kernel/tracing/instances").exists() {
        eprintln!("skipped: no tracefs");
        return None;
    }
    disk.write("scheduler", "mq-deadline");
    for (file, value) in [("iosched/read_expire", "120"), ("iosched/fifo_batch", "7"), ("nr_requests", "77")]
    {
        disk.write(file, value);
    }
    if disk.all().keys().any(|f| f.ends_with("wbt_lat_usec")) {
        disk.write("wbt_lat_usec", "4321");
    }
    Some(disk)
}

pub(crate) fn try_on(disk: &LoopDevice, args: &[&str]) -> Output {
    fairhead().args(["try", &disk.0]).args(args).output().unwrap()
}

pub(crate) fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Waits until the disk has this scheduler.
pub(crate) fn wait_for(disk: &LoopDevice, scheduler: &str) {
    let start = Instant::now();
    while !disk.read("scheduler").contains(&format!("[{scheduler}]")) {
        assert!(start.elapsed() < Duration::from_secs(60), "never {scheduler}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
