//! A folder through the scheduler, compared with the folder.

mod may_mount;
mod scratch;

use fairhead_device::DeviceParams;
use fairhead_live::DiskOptions;
use scratch::Scratch;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

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
    let Some(scratch) = Scratch::new("names") else { return };
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
    let Some(scratch) = Scratch::new("shell") else { return };
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

/// Writes, reads, cuts and extends at random, in part past the page cache, and a vector that has the same done to it.
#[test]
fn a_file_is_what_was_done_to_it() {
    let Some(scratch) = Scratch::new("random") else { return };
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
                    // SAFETY: the layout is not empty, the memory is filled before it is read, and given back once.
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
    let Some(scratch) = Scratch::new("fio") else { return };
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

/// The reader's cgroup is its group; without a controller it is at least some group, and its bytes are counted there.
#[test]
fn what_a_program_reads_is_on_its_account() {
    let Some(scratch) = Scratch::new("account") else { return };
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
    let Some(scratch) = Scratch::new("cgroup") else { return };
    let name = format!("fairhead-test-{}", std::process::id());
    let made = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"]
        .map(|root| PathBuf::from(root).join(&name))
        .into_iter()
        .find(|at| fs::create_dir(at).is_ok());
    let Some(cgroup) = made else {
        eprintln!("skipped: no cgroup can be made");
        return;
    };
    fs::write(scratch.below("file"), vec![7; 1 << 20]).unwrap();
    let mount = scratch.mount("bfq");
    let script =
        format!("echo $$ > {}/cgroup.procs && exec cat {}", cgroup.display(), scratch.at("file").display());
    let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
    // Whoever was in it is gone when its parent has seen that.
    let _ = fs::remove_dir(&cgroup);
    if ran.status.success() {
        let groups = mount.disk().groups().unwrap();
        let bytes =
            groups.iter().find(|(group, _)| *group == name).map(|(_, stats)| stats.io_service_bytes.total());
        assert!(bytes >= Some(1 << 20), "{groups:?}");
    } else {
        eprintln!("skipped: {}", String::from_utf8_lossy(&ran.stderr));
    }
    drop(mount);
}
