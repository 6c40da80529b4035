//! A Linux guest whose disks are exports of `fairhead serve`, in QEMU's software emulation: the kernel's own
//! block layer and file system as the client.
//!
//! The guest is a kernel and a static busybox of Debian's, unpacked where `cargo xtask test` leaves them
//! (`target/guest`) or where `FAIRHEAD_GUEST` says: a folder with `boot/vmlinuz-*`, `lib/modules` and
//! `bin/busybox`. Its root is a file system in memory that is written here.
//!
//! The guest copies a pattern about on the first disk, discards some of it, and makes a file system on the
//! second, with files in it; whatever it reads back it compares by md5. When it is off, what is in the images
//! is looked at from here.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::machine::{Guest, said, wait};
use crate::process::{Process, fairhead, start};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const SIZE: usize = 64 * MIB;
/// The pattern is written to the image before the guest begins, at its start and where it discards it.
const PATTERN: usize = 4 * MIB;
const COPY: usize = 8 * MIB;
const DISCARDED: usize = 16 * MIB;
/// What the guest does; it says what it found.
const STEPS: &str = r#"
    a=/sys/block/vda b=/sys/block/vdb
    echo "guest: sectors $(cat $a/size) $(cat $b/size)"
    echo "guest: discards $(cat $a/queue/discard_max_bytes), cache $(cat $a/queue/write_cache)"
    sum=$(dd if=/dev/vda bs=64k count=64 iflag=direct 2>/dev/null | md5sum)
    echo "guest: pattern $sum"
    # Past the page cache there, and through it back.
    dd if=/dev/vda of=/tmp/pattern bs=64k count=64 2>/dev/null
    dd if=/tmp/pattern of=/dev/vda bs=4k seek=2048 oflag=direct conv=fsync 2>/dev/null || return 2
    echo 3 >/proc/sys/vm/drop_caches
    [ "$(dd if=/dev/vda bs=64k skip=128 count=64 2>/dev/null | md5sum)" = "$sum" ] || return 3
    blkdiscard -o 16777216 -l 4194304 /dev/vda || return 4
    zero=$(dd if=/dev/zero bs=64k count=64 2>/dev/null | md5sum)
    [ "$(dd if=/dev/vda bs=64k skip=256 count=64 iflag=direct 2>/dev/null | md5sum)" = "$zero" ] || return 5
    mke2fs -F /dev/vdb >/dev/null || return 6
    mkdir /mnt
    mount -t ext4 /dev/vdb /mnt || return 7
    for i in 1 2 3 4; do cp /tmp/pattern /mnt/$i && sync /mnt/$i || return 8; done
    rm /mnt/3 && fstrim /mnt && umount /mnt || return 9
    echo 3 >/proc/sys/vm/drop_caches
    mount -t ext4 -o ro /dev/vdb /mnt || return 10
    for i in 1 2 4; do [ "$(md5sum </mnt/$i)" = "$sum" ] || return 11; done
    umount /mnt && sync || return 12
"#;

/// A folder that goes with the test.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn image(&self, name: &str) -> File {
        let file =
            File::options().create(true).truncate(true).read(true).write(true).open(self.at(name)).unwrap();
        file.set_len(SIZE as u64).unwrap();
        file
    }
}

fn serve(place: &Place, sched: &str) -> Process {
    let (server, line, _) = start(
        fairhead()
            .args(["serve", "--depth", "8", "--sched", sched, "--export", "vm1=a.img,weight=300"])
            .args(["--export", "vm2=b.img,weight=100", "--socket", "s"])
            .current_dir(&place.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped()),
    );
    assert!(line.starts_with("fairhead: listening on "), "{line}");
    server
}

fn qemu(place: &Place, guest: &Guest) -> Process {
    let drive = |name: &str| {
        format!("file=nbd+unix:///{name}?socket=s,format=raw,if=virtio,cache=none,discard=unmap")
    };
    let mut machine = guest.qemu(place.0.path(), STEPS, 256);
    machine.args(["-drive", &drive("vm1"), "-drive", &drive("vm2")]);
    Process(machine.spawn().unwrap())
}

#[test]
fn a_linux_guest_lives_on_it() {
    let Some(guest) = Guest::find() else { return };
    let place = Place::new();
    let pattern: Vec<u8> = (0..PATTERN as u32).map(|i| (i ^ i >> 9 ^ i >> 17) as u8).collect();
    let (a, b) = (place.image("a.img"), place.image("b.img"));
    a.write_all_at(&pattern, 0).unwrap();
    a.write_all_at(&pattern, DISCARDED as u64).unwrap();
    let mut server = serve(&place, "bfq");
    let mut machine = qemu(&place, &guest);
    let has_ended = wait(&mut machine);
    let text = said(&mut machine);
    assert!(has_ended && text.contains("guest: good"), "{text}");
    let sectors = SIZE / 512;
    assert!(text.contains(&format!("guest: sectors {sectors} {sectors}")), "{text}");
    assert!(text.contains("cache write back") && !text.contains("discards 0,"), "{text}");
    look(&a, &pattern);
    drop(b);
    let check = Command::new("e2fsck").args(["-fn"]).arg(place.at("b.img")).output();
    if let Ok(out) = check {
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
    assert!(Command::new("kill").arg(server.0.id().to_string()).status().unwrap().success());
    assert!(wait(&mut server));
    let table = said(&mut server);
    println!("{table}");
    let errors = |name: &str| {
        let row = table.lines().find(|l| l.starts_with(name)).expect("a row for each export");
        row.split_whitespace().last() == Some("0")
    };
    assert!(errors("vm1 ") && errors("vm2 "), "{table}");
}

/// What the guest has left on the first disk.
fn look(image: &File, pattern: &[u8]) {
    let mut bytes = vec![0; SIZE];
    image.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes[..PATTERN] == *pattern, "what was only read has changed");
    assert!(bytes[COPY..COPY + PATTERN] == *pattern, "what was written is not there");
    assert!(bytes[DISCARDED..DISCARDED + PATTERN].iter().all(|b| *b == 0), "what was discarded is there");
    let rest = [&bytes[PATTERN..COPY], &bytes[COPY + PATTERN..DISCARDED], &bytes[DISCARDED + PATTERN..]];
    assert!(rest.iter().all(|r| r.iter().all(|b| *b == 0)), "something was written elsewhere");
}
