//! Two Linux guests whose disks are vhost-user-blk devices of `fairhead serve`, in QEMU's software emulation.
//!
//! Both read one slow disk, the one with twice the weight of the other. What each gets is only printed: in
//! software emulation a guest may ask for less than its share (`live/tests/clock/vhost.rs` holds the
//! weights). Then the server is killed and started again while they write, with `reconnect=1` at QEMU's end;
//! when they are off, what they have written is looked at from here. What the guests are made of: `machine`.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::machine::{Guest, wait};
use crate::process::{Process, fairhead, start};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{ChildStderr, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const SIZE: usize = 64 * MIB;
/// What a guest writes: from here on, this many MiB, of a pattern that it reads at the start.
const PATTERN: usize = MIB;
const WRITTEN: usize = 16;

const STEPS: &str = r#"
    disk=/sys/block/vda
    echo "guest: sectors $(cat $disk/size) cache $(cat $disk/queue/write_cache) discards $(cat $disk/queue/discard_max_bytes) serial $(cat $disk/serial)"
    dd if=/dev/vda of=/tmp/pattern bs=64k count=16 iflag=direct 2>/dev/null || return 2
    ionice -c1 -n3 dd if=/dev/vda of=/dev/null bs=4k skip=1000 count=4 iflag=direct 2>/dev/null || return 3
    ionice -c3 dd if=/dev/vda of=/dev/null bs=4k skip=1100 count=4 iflag=direct 2>/dev/null || return 4
    blkdiscard -o 33554432 -l 1048576 /dev/vda || return 5
    [ "$(dd if=/dev/vda bs=64k skip=512 count=16 iflag=direct 2>/dev/null | tr -d '\0' | wc -c)" = 0 ] || return 6
    (read line; : >/tmp/enough) </dev/console &
    echo "guest: reading"
    end=$(($(date +%s) + 60))
    while [ ! -e /tmp/enough ] && [ $(date +%s) -lt $end ]; do
        # Four readers far apart, which the disk cannot serve as fast as they ask.
        readers=
        for place in 2100 6000 10000 14000; do
            dd if=/dev/vda of=/dev/null bs=4k skip=$place count=50 iflag=direct 2>/dev/null &
            readers="$readers $!"
        done
        wait $readers || return 7
    done
    echo "guest: writing"
    i=1
    while [ $i -le 16 ]; do
        dd if=/tmp/pattern of=/dev/vda bs=16k seek=$((i * 64)) oflag=direct conv=fsync 2>/dev/null || return 8
        echo "guest: wrote $i"
        i=$((i + 1))
    done
    sum=$(md5sum </tmp/pattern)
    i=1
    while [ $i -le 16 ]; do
        [ "$(dd if=/dev/vda bs=64k skip=$((i * 16)) count=16 iflag=direct 2>/dev/null | md5sum)" = "$sum" ] || return 9
        i=$((i + 1))
    done
"#;

struct Place(TempDir);

impl Place {
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn image(&self, name: &str, pattern: &[u8]) -> File {
        let file = File::options().create_new(true).read(true).write(true).open(self.at(name)).unwrap();
        file.set_len(SIZE as u64).unwrap();
        file.write_all_at(pattern, 0).unwrap();
        file.write_all_at(pattern, 32 * MIB as u64).unwrap();
        file
    }

    /// Starts the server. What it says later has to be kept, or it could not say it.
    fn serve(&self, more: &[&str]) -> (Process, BufReader<ChildStderr>) {
        let (server, line, said) = start(
            fairhead()
                .args(["serve", "--sched", "bfq", "--vhost-user", "a.sock=a.img,weight=200,serial=gold"])
                .args(["--vhost-user", "b.sock=b.img,weight=100", "--control", "c"])
                .args(more)
                .current_dir(&self.0)
                .stdin(Stdio::null())
                .stdout(Stdio::null()),
        );
        assert!(line.starts_with("fairhead: listening on "), "{line}");
        (server, said)
    }

    /// Bytes that each guest has read.
    fn read(&self) -> Option<[f64; 2]> {
        let out = fairhead().args(["ctl", "c"]).current_dir(&self.0).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout).ok()?;
        let of = |name: &str| {
            answer["exports"].as_array()?.iter().find(|e| e["export"] == name)?["read_bytes"].as_f64()
        };
        Some([of("a")?, of("b")?])
    }
}

/// A guest that runs, and its lines as they come.
struct Machine(Process, Receiver<String>, String);

impl Machine {
    fn start(place: &Place, guest: &Guest, socket: &str) -> Self {
        let chardev = format!("socket,id=c0,path={socket},reconnect=1");
        let mut machine = guest.qemu(place.0.path(), STEPS, 192);
        machine
            .args(["-object", "memory-backend-memfd,id=mem,size=192M,share=on", "-numa", "node,memdev=mem"])
            .args(["-chardev", &chardev, "-device", "vhost-user-blk-pci,chardev=c0,num-queues=1"])
            .stdin(Stdio::piped());
        let mut child = machine.spawn().unwrap();
        let (out, lines) = (child.stdout.take().unwrap(), mpsc::channel());
        let (to, from) = lines;
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Self(Process(child), from, String::new())
    }

    /// Waits until the guest says this. Returns the line.
    fn hear(&mut self, what: &str) -> String {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.1.recv_timeout(left).unwrap_or_else(|_| panic!("no '{what}' in:\n{}", self.2));
            self.2 += &format!("{line}\n");
            assert!(!line.contains("guest: failed"), "{}", self.2);
            if line.contains(what) {
                return line;
            }
        }
    }

    fn go_on(&mut self) {
        use std::io::Write;
        self.0.0.stdin.as_mut().unwrap().write_all(b"enough\n").unwrap();
    }
}

#[test]
fn two_guests_share_a_slow_disk_and_outlive_their_server() {
    let Some(guest) = Guest::find() else { return };
    let place = Place(tempfile::tempdir().unwrap());
    let pattern: Vec<u8> = (0..PATTERN as u32).map(|i| (i ^ i >> 9 ^ i >> 17) as u8).collect();
    let images = [place.image("a.img", &pattern), place.image("b.img", &pattern)];
    let mut server = place.serve(&["--emulate", "nas2020", "--record", "log"]);
    let mut guests = ["a.sock", "b.sock"].map(|socket| Machine::start(&place, &guest, socket));
    let facts = guests.each_mut().map(|g| g.hear("guest: sectors"));
    assert!(facts[0].contains(&format!("sectors {} cache write back", SIZE / 512)), "{facts:?}");
    assert!(facts[0].contains("serial gold") && facts[1].contains("serial b"), "{facts:?}");
    assert!(!facts[0].contains("discards 0 "), "{facts:?}");
    guests.iter_mut().for_each(|g| _ = g.hear("guest: reading"));
    let before = place.read().expect("statistics");
    std::thread::sleep(Duration::from_secs(2));
    let after = place.read().expect("statistics");
    let [gold, tin] = [0, 1].map(|i| after[i] - before[i]);
    println!("weights 200 and 100: {:.2} and {:.2} MiB", gold / MIB as f64, tin / MIB as f64);
    guests.iter_mut().for_each(Machine::go_on);
    guests.iter_mut().for_each(|g| _ = g.hear("guest: wrote 2"));
    server.0.kill();
    for kill in 0..3 {
        let mut server = place.serve(&[]);
        guests.iter_mut().for_each(|g| _ = g.hear(&format!("guest: wrote {}", 5 + 4 * kill)));
        server.0.kill();
    }
    let _server = place.serve(&[]);
    for machine in &mut guests {
        machine.hear("guest: good");
        assert!(wait(&mut machine.0));
    }
    for image in images {
        look(&image, &pattern);
    }
    let log = fs::read_to_string(place.at("log")).unwrap();
    let has = |prio: &str| log.lines().any(|l| l.contains(" insert ") && l.ends_with(prio));
    assert!(has(" rt 3") && has(" idle 0") && has(" be 4"), "priorities do not arrive");
}

/// What a guest has left.
fn look(image: &File, pattern: &[u8]) {
    let mut bytes = vec![0; SIZE];
    image.read_exact_at(&mut bytes, 0).unwrap();
    for (i, copy) in bytes.chunks_exact(PATTERN).enumerate() {
        match i {
            0..=WRITTEN => assert!(copy == pattern, "copy {i}"),
            _ => assert!(copy.iter().all(|b| *b == 0), "something was written at {i} MiB"),
        }
    }
}
