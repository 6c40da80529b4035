//! A mounted folder in real time: what others do beside a cgroup that waits for its limit.

#![allow(clippy::disallowed_methods, reason = "who waits does so in real time")]

use crate::cgroup::Cgroup;
use crate::in_time::{in_time, timely};
use crate::scratch::{COPY, Scratch};
use fairhead_core::Max;
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A cgroup may write 1 MiB and read ten times a second, and has far more waiting than the kernel would let
/// come by itself: writers, 400 reads at a time, dirty pages. What others do meanwhile takes no time.
#[test]
fn who_is_limited_keeps_nobody_else_waiting() {
    in_time(|| {
        let Some(scratch) = Scratch::new() else { return };
        let Some(cgroup) = Cgroup::new("limited") else { return };
        for name in ["theirs", "mapped", "ours"] {
            fs::write(scratch.below(name), vec![7; 16 << 20]).unwrap();
        }
        let mount = scratch.mount("bfq");
        let max = Max { wbps: NonZeroU64::new(1 << 20), riops: NonZeroU64::new(10), ..Max::default() };
        mount.disk().set_max(&cgroup.name, max).unwrap();
        let at = |name| scratch.at(name).display().to_string();
        let programs = [
            format!("dd if=/dev/zero of={} bs=1M count=64 oflag=direct", at("written")),
            format!("dd if=/dev/zero of={} bs=1M count=64 conv=fsync", at("written-too")),
            format!("cat {}", at("theirs")),
            format!(
                "fio --name=many --filename={} --readonly --rw=randread --bs=4k --size=16m --direct=1 --ioengine=libaio --iodepth=400 \
             --iodepth_batch=400 --time_based --runtime=60",
                at("theirs")
            ),
            format!(
                "python3 -c \"import mmap,os; m=mmap.mmap(os.open('{}',2),0); m[:]=b'x'*len(m); m.flush()\"",
                at("mapped")
            ),
        ];
        let begun = Instant::now();
        let mut children: Vec<Child> = programs
            .iter()
            .map(|p| cgroup.command(p).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let ours = Instant::now();
        assert!(fs::read(scratch.at("ours")).unwrap() == vec![7; 16 << 20]);
        for i in 0..40 {
            let file = File::create(scratch.at(&format!("small{i}"))).unwrap();
            file.write_all_at(&[1; 5000], 0).unwrap();
            file.sync_all().unwrap();
            assert_eq!(fs::read(scratch.at(&format!("small{i}"))).unwrap().len(), 5000);
        }
        let took = ours.elapsed();
        let all = begun.elapsed();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let groups = mount.disk().groups().unwrap();
        let stats = groups.iter().find(|(group, _)| *group == cgroup.name).map(|(_, stats)| stats);
        let (written, reads) =
            stats.map(|s| (s.io_service_bytes.write(), s.io_serviced.read())).expect("it has statistics");
        // Each of them had to wait for its share, or it was not limited at all.
        let seconds = all.as_secs() + 2;
        assert!((1..=(seconds + 1) << 20).contains(&written), "{written} bytes in {all:?}");
        assert!((1..=seconds * 10).contains(&reads), "{reads} reads in {all:?}");
        timely(took < Duration::from_secs(3), format_args!("others waited: {took:?}"));
        println!("others: {took:?}");
        drop(mount);
    });
}

/// Five programs of a limited group copy files. What others do to names takes no time, and a program that is
/// killed in its copy ends at once.
#[test]
fn who_copies_keeps_nobody_else_waiting() {
    in_time(|| {
        let Some(scratch) = Scratch::new() else { return };
        let Some(cgroup) = Cgroup::new("copiers") else { return };
        fs::write(scratch.below("theirs"), vec![7; 64 << 20]).unwrap();
        fs::write(scratch.below("script"), COPY).unwrap();
        let mount = scratch.mount("bfq");
        let max = Max { wbps: NonZeroU64::new(2 << 20), ..Max::default() };
        mount.disk().set_max(&cgroup.name, max).unwrap();
        let (script, theirs) = (scratch.below("script"), scratch.at("theirs"));
        let mut children: Vec<Child> = (0..5)
            .map(|i| {
                let to = scratch.at(&format!("copy{i}"));
                let program =
                    format!("python3 {} copy {} {}", script.display(), theirs.display(), to.display());
                cgroup.command(&program).stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let mut longest = Duration::ZERO;
        for i in 0..50 {
            let begun = Instant::now();
            let name = scratch.at(&format!("ours{i}"));
            drop(File::create(&name).unwrap());
            fs::remove_file(&name).unwrap();
            longest = longest.max(begun.elapsed());
        }
        assert!(children.iter_mut().all(|c| c.try_wait().unwrap().is_none()), "they copy all the time");
        let begun = Instant::now();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let ended = begun.elapsed();
        println!("others: {longest:?}; killed: {ended:?}");
        timely(longest < Duration::from_millis(100), format_args!("a file took {longest:?}"));
        timely(ended < Duration::from_secs(1), format_args!("those that were killed took {ended:?}"));
        drop(mount);
    });
}
