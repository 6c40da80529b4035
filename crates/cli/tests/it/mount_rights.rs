//! `fairhead mount` by root for others: what a caller may take and change is decided by the caller's rights,
//! not by the server's. The folder itself is the oracle.

use crate::mount_source::run;

/// What the scripts in Python share: `as_user(folder, f)` runs `f` in a folder as the ordinary user 4001 and
/// returns its result, or the name of the error.
const PRELUDE: &str = r#"
cat >rights.py <<'END'
import errno, fcntl, json, os, resource, signal, struct, sys
def as_user(folder, f, uid=4001):
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        if uid: os.setgroups([]); os.setgid(uid); os.setuid(uid)
        try: said = f()
        except OSError as e: said = errno.errorcode[e.errno]
        os.write(w, json.dumps(said).encode()); os._exit(0)
    os.close(w)
    said = b''.join(iter(lambda: os.read(r, 65536), b''))
    os.close(r); os.waitpid(child, 0)
    return json.loads(said or b'"died"')
END
"#;

fn run_with(script: &str) {
    run(&format!("{PRELUDE}{script}"));
}

/// Each way to take space, by a user and by root: ext4 keeps a fifth of its blocks for root.
#[test]
fn the_reserve_of_a_file_system_is_roots() {
    run_with(
        r#"
mkdir -p src mp; truncate -s 16M img
mkfs.ext4 -q -F -m 20 -N 4096 -b 4096 img || skip "no mkfs.ext4"
mount -o loop img src || skip "no loop device with ext4"
mkdir src/d; chmod 777 src/d
show src mp
cat >fill.py <<'END'
import mmap
from rights import *
BLOCK = 64 << 10
def writes(fd, data=b'x' * BLOCK):
    try:
        while True: os.write(fd, data)
    except OSError as e: return errno.errorcode[e.errno]
def buffered(): return writes(os.open('f', os.O_CREAT | os.O_WRONLY, 0o600))
def odd(): return writes(os.open('f', os.O_CREAT | os.O_WRONLY, 0o600), b'x' * 50001)
def direct():
    page = mmap.mmap(-1, BLOCK); page.write(b'x' * BLOCK)
    return writes(os.open('f', os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o600), page)
def allocated():
    fd = os.open('f', os.O_CREAT | os.O_WRONLY, 0o600)
    at = 0
    while True: os.posix_fallocate(fd, at, BLOCK); at += BLOCK
def copied():
    a, b = (os.open(n, os.O_CREAT | os.O_RDWR, 0o600) for n in 'fg')
    os.write(a, b'x' * BLOCK)
    at = 0
    while True: at += os.copy_file_range(a, b, BLOCK, 0, at)
def folders():
    n = 0
    while True: os.mkdir('n%d' % n + 'x' * 200); n += 1
def links():
    n = 0
    while True: os.symlink('y' * 3000, 's%d' % n); n += 1
def attributes():
    n = 0
    while True:
        os.close(os.open('a%d' % n, os.O_CREAT | os.O_WRONLY, 0o600))
        os.setxattr('a%d' % n, 'user.x', b'y' * 2000 + str(n).encode()); n += 1
def opened_by_root(folder):
    fd = os.open(folder + '/f', os.O_CREAT | os.O_WRONLY, 0o600)
    return lambda: writes(fd)
def clean():
    os.system('rm -rf mp/d/* src/d/*; sync')
wrong = []
stat = os.statvfs('src'); kept = stat.f_bfree - stat.f_bavail
assert kept > 500, kept
for way in buffered, odd, direct, allocated, copied, folders, links, attributes, opened_by_root:
    for uid in 4001, 0:
        left = {}
        for folder in 'src/d', 'mp/d':
            f = way(folder) if way is opened_by_root else way
            said = as_user(folder, f, uid)
            os.sync()
            left[folder] = os.statvfs('src').f_bfree
            clean()
            if said != 'ENOSPC': wrong.append((way.__name__, uid, folder, said))
        # A few blocks are for the file system's own maps; and small files may run out of inodes first.
        own = left['src/d']
        if abs(left['mp/d'] - own) > 64: wrong.append((way.__name__, uid, left, kept))
        if uid and own < kept - 64: wrong.append((way.__name__, 'the folder', left, kept))
print(kept, 'blocks are kept')
assert not wrong, wrong
END
python3 fill.py || fail "see above"
end
"#,
    );
}

/// A file that the mount has seen is removed in the folder itself: what it took is free again when it is
/// needed, unless a program has it open.
#[test]
fn space_of_files_removed_below_the_mount_comes_back() {
    run(r#"
mkdir -p src mp; mount -t tmpfs -o size=8M t src
for x in 1 2 3; do head -c 2M /dev/zero >src/f$x; done
show src mp
cat mp/f1 mp/f2 mp/f3 >/dev/null
free() { echo $(( $(stat -f -c '%a * %S' src) )); }
comes_back() {
    for i in $(seq 200); do [ "$(free)" -lt "$1" ] || return 0; sleep 0.05; done
    fail "$2: $(free) bytes are free"
}
rm src/f1; [ "$(free)" -lt 2500000 ] || fail "the case is not the one that was meant"
head -c 1800K /dev/zero >src/last
comes_back 2000000 "nothing has the removed file open"
exec 3<mp/f2; rm src/f2
head -c 2000K /dev/zero >src/more
sleep 2
[ "$(head -c 2M <&3 | wc -c)" = 2097152 ] || fail "an open file is not there any more"
[ "$(free)" -lt 400000 ] || fail "an open file has lost its space"
exec 3<&-
comes_back 2000000 "no program has it open any more"
head -c 1900K /dev/zero >mp/new || fail "what is free cannot be used"
cmp -n 2097152 mp/f3 /dev/zero || fail "another file is gone"
end
"#);
}

/// What is decided by the rights and limits of a caller has the same outcome in the folder and in the mount.
#[test]
fn a_caller_may_what_it_may_in_the_folder() {
    run_with(
        r#"
mkdir -p src mp; ext4 src; chmod 755 src
ulimit -S -f 4000; show src mp; ulimit -S -f unlimited
cat >cases.py <<'END'
from rights import *
import mmap, stat
RDWR, CREAT = os.O_RDWR, os.O_CREAT
GET_FLAGS, SET_FLAGS, IMMUTABLE, APPEND = 0x80086601, 0x40086602, 0x10, 0x20
def of(f, *args):
    try: said = f(*args)
    except OSError as e: return errno.errorcode[e.errno]
    return said if isinstance(said, (int, str, list)) else 'ok'
def opened(name, flags, f=lambda fd: 'ok', mode=0o666):
    def work():
        fd = os.open(name, flags, mode)
        try: return of(f, fd)
        finally: os.close(fd)
    return of(work)
def mode(name): return oct(os.lstat(name).st_mode)
def owner(name): s = os.lstat(name); return [s.st_uid, s.st_gid]
def flags(name, value):
    def change(fd):
        now = struct.unpack('i', fcntl.ioctl(fd, GET_FLAGS, bytes(4)))[0] & ~(IMMUTABLE | APPEND | 0x80)
        fcntl.ioctl(fd, SET_FLAGS, struct.pack('i', now | value))
    return opened(name, os.O_RDONLY, lambda fd: of(change, fd))
def limited(f):
    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        return f()
    return work
def direct(fd):
    page = mmap.mmap(-1, 65536)
    return [of(os.pwritev, fd, [page], at) for at in (0, 32768, 65536)]
def copy(fd):
    a = os.open('big', os.O_RDONLY)
    return [of(os.copy_file_range, a, fd, 65536, 0, at) for at in (0, 32768, 65536)]
CASES = {
    'chown': lambda: [of(os.chown, n, u, g) for n in ('mine', 'roots') for u, g in ((4002, -1), (-1, 4002), (4001, 4001), (-1, 4001))],
    'chmod': lambda: [of(os.chmod, n, 0o640) for n in ('mine', 'roots')],
    'set-group-ID of a group of others': lambda: [of(os.chmod, 'of4002', 0o2755), mode('of4002')],
    'a write to a set-user-ID file': lambda: [opened('suid', RDWR, lambda fd: os.write(fd, b'x')), mode('suid')],
    'cutting a set-user-ID file': lambda: [of(os.truncate, 'suid', 1), mode('suid')],
    'allocating in a set-user-ID file': lambda: [opened('suid', RDWR, lambda fd: os.posix_fallocate(fd, 0, 9000)), mode('suid')],
    'a sticky folder': lambda: [of(os.unlink, 'sticky/roots'), of(os.rename, 'sticky/roots', 'sticky/x'), of(os.unlink, 'sticky/mine'),
        opened('sticky/other', RDWR | CREAT), of(os.rename, 'mine', 'sticky/other')],
    'a set-group-ID folder': lambda: [opened('sgid/f', RDWR | CREAT), owner('sgid/f'), of(os.mkdir, 'sgid/d'), owner('sgid/d'), mode('sgid/d')],
    'who owns what is made': lambda: [opened('f', RDWR | CREAT), owner('f'), of(os.mkdir, 'd'), owner('d'), of(os.symlink, 'x', 'l'),
        owner('l'), of(os.mkfifo, 'p'), owner('p'), opened('.', os.O_TMPFILE | RDWR, lambda fd: os.fstat(fd).st_uid)],
    'O_NOATIME': lambda: [opened(n, os.O_RDONLY | os.O_NOATIME) for n in ('mine', 'roots')],
    'flags of files': lambda: [flags(n, f) for n in ('mine', 'roots') for f in (IMMUTABLE, APPEND, 0x80, 0)],
    'an immutable file': lambda: [opened('immutable', RDWR), of(os.unlink, 'immutable'), of(os.chmod, 'immutable', 0o600),
        of(os.link, 'immutable', 'l'), of(os.setxattr, 'immutable', 'user.a', b'1'), of(os.utime, 'immutable', (1, 1))],
    'a file that is appended to': lambda: [opened('append', RDWR), opened('append', os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b'x')),
        opened('append', os.O_WRONLY | os.O_APPEND | os.O_TRUNC), of(os.unlink, 'append'), of(os.truncate, 'append', 0)],
    'names of attributes': lambda: [of(os.setxattr, n, a, b'1') for n in ('mine', 'roots') for a in
        ('user.a', 'trusted.a', 'security.a', 'security.capability', 'system.a')] + [sorted(os.listxattr('tagged'))] +
        [of(lambda: os.getxattr('tagged', a).decode()) for a in ('user.t', 'trusted.t', 'security.t')] +
        [of(os.removexattr, 'tagged', a) for a in ('trusted.t', 'security.t')],
    'a write behind the limit': limited(lambda: opened('f', RDWR | CREAT, lambda fd: [of(os.pwrite, fd, b'x' * 50000, at) for at in (0, 40000, 65536)])),
    'a direct write behind the limit': limited(lambda: opened('f', RDWR | CREAT | os.O_DIRECT, direct)),
    'a size behind the limit': limited(lambda: opened('f', RDWR | CREAT, lambda fd: [of(os.ftruncate, fd, n) for n in (65536, 65537)])),
    'space behind the limit': limited(lambda: opened('f', RDWR | CREAT, lambda fd: [of(os.posix_fallocate, fd, 0, n) for n in (65536, 65537)])),
    'a copy behind the limit': limited(lambda: opened('f', RDWR | CREAT, copy)),
    'behind the limit of the server': lambda: opened('f', RDWR | CREAT, lambda fd: [of(os.pwrite, fd, b'x', 3 << 20), of(os.posix_fallocate, fd, 0, 3 << 20)]),
    'links to files of others': lambda: [of(os.link, n, 'sticky/l' + str(i)) for i, n in enumerate(('mine', 'roots', 'suid', 'readable'))],
    'devices': lambda: [of(os.mknod, 'dev', stat.S_IFCHR | 0o666, os.makedev(1, 3)), of(os.mknod, 'blk', stat.S_IFBLK | 0o666, os.makedev(7, 0))],
    'times': lambda: [of(os.utime, n, t) for n in ('mine', 'roots', 'readable') for t in (None, (1, 1))],
    'a lease': lambda: [opened(n, os.O_RDONLY, lambda fd: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)) for n in ('mine', 'roots')],
}
def clear(folder): assert os.system(f'chattr -R -f -i -a {folder}; rm -rf {folder}') == 0
def make(folder):
    os.mkdir(folder); os.chmod(folder, 0o777)
    def file(name, perms, uid, gid=None, size=10):
        path = folder + '/' + name
        with open(path, 'wb') as f: f.write(b'y' * size)
        os.chown(path, uid, uid if gid is None else gid); os.chmod(path, perms)
    for name, perms, uid in ('sticky', 0o1777, 0), ('sgid', 0o2777, 4002):
        os.mkdir(f'{folder}/{name}'); os.chown(f'{folder}/{name}', uid, uid); os.chmod(f'{folder}/{name}', perms)
    file('mine', 0o600, 4001); file('roots', 0o600, 0); file('readable', 0o666, 0); file('of4002', 0o755, 4001, 4002)
    file('suid', 0o6777, 0); file('sticky/roots', 0o666, 0); file('sticky/mine', 0o666, 4001); file('sticky/other', 0o666, 4003)
    file('big', 0o666, 0, size=200000); file('tagged', 0o666, 4001)
    for a in 'user.t', 'trusted.t', 'security.t': os.setxattr(folder + '/tagged', a, b'1')
    file('immutable', 0o666, 4001); file('append', 0o666, 4001)
    assert flags(folder + '/immutable', IMMUTABLE) == flags(folder + '/append', APPEND) == 'ok'
wrong, number = [], 0
for name, f in CASES.items():
    for uid in 4001, 0:
        said = {}
        for at in 'src', 'mp':
            # A name that the mount has not seen, so that it remembers nothing of another one.
            number += 1; folder = 'd%d' % number
            make('src/' + folder)
            said[at] = as_user(at + '/' + folder, f, uid)
            clear('src/' + folder)
        if said['src'] != said['mp']: wrong.append((name, uid, said))
        assert said['src'] != 'died', (name, uid)
print(len(CASES), 'cases')
assert not wrong, '\n'.join(map(str, wrong))
END
python3 cases.py || fail "see above"
end
"#,
    );
}
