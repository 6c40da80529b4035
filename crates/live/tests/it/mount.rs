//! A folder through the scheduler, compared with the folder.

#![allow(clippy::disallowed_methods, reason = "limits are in real time")]

use crate::cgroup::Cgroup;
use crate::scratch::{COPY, Scratch};
use fairhead_core::Max;
use fairhead_device::DeviceParams;
use fairhead_live::DiskOptions;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn names_links_and_attributes_are_the_folders() {
    let Some(scratch) = Scratch::new() else { return };
    let mount = scratch.mount("bfq");
    fs::create_dir(scratch.at("dir")).unwrap();
    fs::write(scratch.at("dir/a"), b"hello").unwrap();
    assert_eq!(fs::read(scratch.below("dir/a")).unwrap(), b"hello");
    fs::hard_link(scratch.at("dir/a"), scratch.at("dir/b")).unwrap();
    assert_eq!(fs::metadata(scratch.at("dir/b")).unwrap().nlink(), 2);
    assert_eq!(
        fs::metadata(scratch.at("dir/a")).unwrap().ino(),
        fs::metadata(scratch.at("dir/b")).unwrap().ino()
    );
    symlink("dir/b", scratch.at("link")).unwrap();
    assert_eq!(fs::read_link(scratch.at("link")).unwrap(), PathBuf::from("dir/b"));
    assert_eq!(fs::read(scratch.at("link")).unwrap(), b"hello");
    fs::rename(scratch.at("dir/a"), scratch.at("c")).unwrap();
    assert_eq!(fs::metadata(scratch.at("dir/a")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::remove_dir(scratch.at("dir")).unwrap_err().raw_os_error(), Some(libc::ENOTEMPTY));
    fs::set_permissions(scratch.at("c"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::chown(scratch.at("c"), Some(1234), Some(99)).unwrap();
    let meta = fs::metadata(scratch.below("c")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.gid()), (0o640, 1234, 99));
    let mut names: Vec<_> = fs::read_dir(scratch.at("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["c", "dir", "link"]);
    for i in 0..700 {
        fs::write(scratch.at(&format!("dir/file-with-a-long-name-{i}")), []).unwrap();
    }
    assert_eq!(fs::read_dir(scratch.at("dir")).unwrap().count(), 701);
    let file = File::create(scratch.at("gone")).unwrap();
    fs::remove_file(scratch.at("gone")).unwrap();
    file.write_all_at(b"still here", 0).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 10);
    drop(file);
    drop(mount);
}

/// A script in the words of a shell, for what the library has no functions for.
#[test]
fn locks_extended_attributes_and_exchanges_work() {
    let Some(scratch) = Scratch::new() else { return };
    let mount = scratch.mount("noop");
    fs::write(scratch.at("a"), b"a").unwrap();
    fs::write(scratch.at("b"), b"b").unwrap();
    let script = "
import fcntl, os, mmap, ctypes
os.setxattr('a', 'user.k', b'value'); assert os.getxattr('a', 'user.k') == b'value'
assert os.listxattr('a') == ['user.k']; os.removexattr('a', 'user.k'); assert os.listxattr('a') == []
f = open('a', 'r+b'); fcntl.flock(f, fcntl.LOCK_EX)
g = open('a', 'r+b')
try: fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB); assert False
except BlockingIOError: pass
fcntl.flock(f, fcntl.LOCK_UN); fcntl.lockf(f, fcntl.LOCK_EX, 1)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b'a', -100, b'b', 2) == 0
assert open('a').read() == 'b' and open('b').read() == 'a'
assert libc.renameat2(-100, b'a', -100, b'b', 1) == -1 and ctypes.get_errno() == 17
m = open('m', 'w+b'); m.truncate(10000); v = mmap.mmap(m.fileno(), 10000); v[5000:5004] = b'mmap'; v.flush()
assert os.pread(m.fileno(), 4, 5000) == b'mmap'
os.posix_fallocate(m.fileno(), 0, 20000); assert os.fstat(m.fileno()).st_size == 20000
below = os.open('../source/m', os.O_RDONLY)
assert os.lseek(m.fileno(), 0, os.SEEK_DATA) == os.lseek(below, 0, os.SEEK_DATA)
n = open('n', 'w+b')
assert os.copy_file_range(m.fileno(), n.fileno(), 10000, 0) == 10000
assert open('n', 'rb').read()[5000:5004] == b'mmap'
os.mkfifo('fifo'); s = os.statvfs('.'); assert s.f_blocks > 0 and s.f_namemax >= 255
os.utime('a', ns=(1, 2)); assert os.stat('a').st_mtime_ns == 2
d = os.open('m', os.O_RDWR | os.O_APPEND); os.write(d, b'end'); assert os.fstat(d).st_size == 20003
os.fsync(d); os.fdatasync(d); os.fsync(os.open('.', os.O_RDONLY))
";
    let ran = Command::new("python3").args(["-c", script]).current_dir(scratch.at("")).output();
    match ran {
        Err(e) => eprintln!("skipped: python3: {e}"),
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
    }
    drop(mount);
}

/// Writes, reads, cuts and extends at random, in part past the page cache, and a vector that has the same
/// done to it.
#[test]
fn a_file_is_what_was_done_to_it() {
    let Some(scratch) = Scratch::new() else { return };
    let mount = scratch.mount("bfq");
    for seed in [1, 2_u64] {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let name = scratch.at(&format!("file{seed}"));
        let open = |flags| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(flags)
                .open(&name)
                .unwrap()
        };
        let (file, direct) = (open(0), open(libc::O_DIRECT));
        let mut twin: Vec<u8> = Vec::new();
        let most = 600_000;
        for step in 0..600 {
            let (at, len) = (random.below(most), random.below(90_000) + 1);
            let fill = random.below(255) as u8 + 1;
            let what = format!("seed {seed}, step {step}: {len} at {at}");
            match random.below(10) {
                0 => {
                    file.set_len(at).unwrap();
                    twin.resize(at as usize, 0);
                }
                1..4 => {
                    let end = (at + len) as usize;
                    twin.resize(twin.len().max(end), 0);
                    twin[at as usize..end].fill(fill);
                    file.write_all_at(&vec![fill; len as usize], at).unwrap();
                }
                4..6 => {
                    let (at, len) = (at / 4096 * 4096, len.next_multiple_of(4096));
                    let layout = std::alloc::Layout::from_size_align(len as usize, 4096).unwrap();
                    // SAFETY: the layout is not empty, the memory is filled before it is read, and given back
                    // once.
                    let data = unsafe {
                        let memory = std::alloc::alloc_zeroed(layout);
                        std::slice::from_raw_parts_mut(memory, len as usize)
                    };
                    data.fill(fill);
                    direct.write_all_at(data, at).unwrap();
                    let end = (at + len) as usize;
                    twin.resize(twin.len().max(end), 0);
                    twin[at as usize..end].fill(fill);
                    // SAFETY: allocated above with this layout, and not used any more.
                    unsafe { std::alloc::dealloc(data.as_mut_ptr(), layout) };
                }
                _ => {
                    let mut data = vec![0; len as usize];
                    let n = file.read_at(&mut data, at).unwrap();
                    let here = twin.get(at as usize..).unwrap_or_default();
                    assert!(n > 0 || here.is_empty(), "{what}: nothing was read");
                    assert!(data[..n] == here[..n.min(here.len())], "{what}: other bytes");
                }
            }
            assert_eq!(file.metadata().unwrap().len(), twin.len() as u64, "{what}");
        }
        file.sync_all().unwrap();
        assert!(
            fs::read(scratch.below(&format!("file{seed}"))).unwrap() == twin,
            "seed {seed}: the file below"
        );
    }
    drop(mount);
}

#[test]
fn fio_finds_what_it_wrote() {
    let Some(scratch) = Scratch::new() else { return };
    let mount =
        scratch.mount_with(DiskOptions::new::<PathBuf>([]).emulate(DeviceParams::preset("nvme").unwrap()));
    for direct in ["--direct=0", "--direct=1"] {
        let ran = Command::new("fio")
            .args([
                "--name=v",
                "--rw=randrw",
                "--bs=4k-64k",
                "--size=4m",
                "--verify=crc32c",
                "--ioengine=libaio",
            ])
            .args(["--iodepth=8", "--verify_fatal=1", "--fallocate=none", direct])
            .current_dir(scratch.at(""))
            .output();
        match ran {
            Err(e) => eprintln!("skipped: fio: {e}"),
            Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout)),
        }
    }
    drop(mount);
}

/// The reader's cgroup is its group; without a controller it is at least some group, and its bytes are
/// counted there.
#[test]
fn what_a_program_reads_is_on_its_account() {
    let Some(scratch) = Scratch::new() else { return };
    fs::write(scratch.below("file"), vec![7; 1 << 20]).unwrap();
    let mount = scratch.mount("bfq");
    assert_eq!(fs::read(scratch.at("file")).unwrap().len(), 1 << 20);
    let groups = mount.disk().groups().unwrap();
    let sectors: u64 = groups.iter().map(|(_, stats)| stats.io_service_bytes.total()).sum();
    assert!(sectors >= 1 << 20, "{groups:?}");
    drop(mount);
}

/// A reader in a cgroup of its own is in the group of that name.
#[test]
fn a_cgroup_is_a_group() {
    let Some(scratch) = Scratch::new() else { return };
    let Some(cgroup) = Cgroup::new("reader") else { return };
    fs::write(scratch.below("file"), vec![7; 1 << 20]).unwrap();
    let mount = scratch.mount("bfq");
    let ran = cgroup.command(&format!("cat {}", scratch.at("file").display())).output().unwrap();
    if ran.status.success() {
        let groups = mount.disk().groups().unwrap();
        let bytes = groups
            .iter()
            .find(|(group, _)| *group == cgroup.name)
            .map(|(_, stats)| stats.io_service_bytes.total());
        assert!(bytes >= Some(1 << 20), "{groups:?}");
    } else {
        eprintln!("skipped: {}", String::from_utf8_lossy(&ran.stderr));
    }
    drop(mount);
}

/// What changes attributes behind the kernel's back is seen at once.
#[test]
fn attributes_are_never_stale() {
    let Some(scratch) = Scratch::new() else { return };
    fs::set_permissions(scratch.below(""), fs::Permissions::from_mode(0o777)).unwrap();
    let mount = scratch.mount("noop");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mount_suites/attributes.py");
    let ran = Command::new("python3").arg(script).arg(scratch.below("")).current_dir(scratch.at("")).output();
    match ran {
        Err(e) => eprintln!("skipped: python3: {e}"),
        Ok(out) => {
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            println!("{}", String::from_utf8_lossy(&out.stdout));
        }
    }
    drop(mount);
}

/// A file that is made shorter or longer below the mount ends where it ends, without a look at its size
/// before each read.
#[test]
fn reads_end_where_the_file_below_ends() {
    for folder in [env!("CARGO_TARGET_TMPDIR"), "/dev/shm"] {
        let Some(scratch) = Scratch::inside(Path::new(folder)) else { return };
        let text: Vec<u8> = (0..40_000_u32).map(|i| (i / 7) as u8).collect();
        fs::write(scratch.below("file"), &text[..30_000]).unwrap();
        let mount = scratch.mount("noop");
        let file =
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(scratch.at("file")).unwrap();
        let below = OpenOptions::new().write(true).open(scratch.below("file")).unwrap();
        for size in [30_000, 12_288, 12_287, 5_000, 1, 0] {
            below.set_len(size as u64).unwrap();
            let mut aligned = mount.disk().buffer(16_384);
            for at in [0, 4096, 12_288, 20_480] {
                let read = file.read_at(&mut aligned, at as u64).unwrap();
                let here = &text[at.min(size)..size.min(at + aligned.len())];
                assert!(read == here.len() && aligned[..read] == *here, "{folder}: {read} at {at} of {size}");
            }
        }
        below.write_all_at(&text, 0).unwrap();
        let mut aligned = mount.disk().buffer(40_960);
        let read = file.read_at(&mut aligned, 0).unwrap();
        assert!(read == text.len() && aligned[..read] == *text, "{folder}: {read} of {}", text.len());
        drop(mount);
    }
}

/// A copy, an allocation, a hole and `sendfile` are on the account of the caller's group, and its limits
/// hold.
#[test]
fn what_copies_and_allocates_is_on_its_account_and_limited() {
    const SIZE: u64 = 6 << 20;
    let Some(scratch) = Scratch::new() else { return };
    let Some(cgroup) = Cgroup::new("copier") else { return };
    fs::write(scratch.below("theirs"), vec![7; SIZE as usize]).unwrap();
    fs::write(scratch.below("script"), COPY).unwrap();
    let mount = scratch.mount("bfq");
    let limit = NonZeroU64::new(2 << 20);
    mount.disk().set_max(&cgroup.name, Max { rbps: limit, wbps: limit, ..Max::default() }).unwrap();
    let at = |name| scratch.at(name).display().to_string();
    let script = scratch.below("script").display().to_string();
    let programs = [
        (format!("python3 {script} copy {} {}", at("theirs"), at("copied")), SIZE, SIZE),
        (format!("python3 {script} send {} /dev/null", at("theirs")), SIZE, 0),
        (format!("fallocate --length {SIZE} {}", at("allocated")), 0, SIZE),
        (format!("fallocate --punch-hole --length {SIZE} {}", at("theirs")), 0, SIZE),
    ];
    let account = || {
        let groups = mount.disk().groups().unwrap();
        let stats = groups.iter().find(|(group, _)| *group == cgroup.name).map(|(_, stats)| stats);
        stats.map_or((0, 0), |s| (s.io_service_bytes.read(), s.io_service_bytes.total()))
    };
    for (program, read, written) in programs {
        let (before, begun) = (account(), Instant::now());
        let ran = cgroup.command(&program).output().unwrap();
        let (after, took) = (account(), begun.elapsed());
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
        let (all, reads) = (after.1 - before.1, after.0 - before.0);
        assert!(reads >= read && all - reads >= written, "{program}: {reads} of {all} bytes were read");
        // 3 seconds, less what a burst may have.
        assert!(took >= Duration::from_millis(2000), "{program} took {took:?}");
    }
    assert!(fs::read(scratch.below("copied")).unwrap() == vec![7; SIZE as usize]);
    assert!(fs::read(scratch.below("theirs")).unwrap() == vec![0; SIZE as usize]);
    assert_eq!(fs::metadata(scratch.below("allocated")).unwrap().len(), SIZE);
    drop(mount);
}

/// Whatever makes data stable makes those of others stable, too: the file below has no block any more that
/// waits to be allocated. What the kernel below has in its page cache is what a program writes that is not
/// aligned.
#[test]
fn what_others_wrote_is_made_stable() {
    let Some(scratch) = Scratch::new() else { return };
    let mount = scratch.mount("cfq");
    let script = "
import fcntl, mmap, os, struct, subprocess, sys
below = sys.argv[1]
UNKNOWN, DELAYED = 2, 4
def waits(name):
    # Whether blocks of the file below wait to be allocated, by FIEMAP.
    fd = os.open(os.path.join(below, name), os.O_RDONLY)
    room = bytearray(struct.pack('QQIIII', 0, 2**63, 0, 0, 50, 0) + bytes(56 * 50))
    fcntl.ioctl(fd, 0xc020660b, room)
    count = struct.unpack_from('I', room, 20)[0]
    flags = [struct.unpack_from('I', room, 32 + 56 * i + 40)[0] for i in range(count)]
    os.close(fd)
    return count == 0 or any(f & (UNKNOWN | DELAYED) for f in flags)
def other(name):
    # Another process writes, and is gone.
    subprocess.run(['python3', '-c', 'import os,sys; fd=os.open(sys.argv[1], os.O_CREAT|os.O_RDWR); os.pwrite(fd, b\"x\"*99999, 7)', name], check=True)
    return name
def mapped(name):
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 10000)
    m = mmap.mmap(fd, 10000)
    m[5:9] = b'mmap'
    m.flush()
try: delays = waits(other('probe'))
except OSError as e: sys.exit('skipped: FIEMAP: %s' % e)
if not delays: sys.exit('skipped: this file system allocates at once')
def write(fd, flags=0): os.pwritev(fd, [b'y' * 77777], 5, flags)
memory = mmap.mmap(-1, 8192)
ways = [
    ('fsync', lambda n: os.fsync(os.open(other(n), os.O_RDONLY))),
    ('fdatasync', lambda n: os.fdatasync(os.open(other(n), os.O_WRONLY))),
    ('dsync', lambda n: write(os.open(n, os.O_CREAT | os.O_WRONLY | os.O_DSYNC))),
    ('sync', lambda n: write(os.open(n, os.O_CREAT | os.O_WRONLY | os.O_SYNC))),
    ('one', lambda n: write(os.open(n, os.O_CREAT | os.O_WRONLY), os.RWF_DSYNC)),
    ('direct', lambda n: os.pwritev(os.open(n, os.O_CREAT | os.O_WRONLY | os.O_DIRECT | os.O_DSYNC), [memory], 0)),
    ('mapped', mapped),
]
for name, way in ways:
    way(name)
    if waits(name): sys.exit('%s: it is not stable' % name)
";
    let ran = Command::new("python3")
        .args(["-c", script])
        .arg(scratch.below(""))
        .current_dir(scratch.at(""))
        .output();
    match ran {
        Err(e) => eprintln!("skipped: python3: {e}"),
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() || said.starts_with("skipped"), "{said}");
            if !out.status.success() {
                eprint!("{said}");
            }
        }
    }
    drop(mount);
}
