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

/// The calls that are compared.
const CASES: &str = include_str!("../mount_rights/cases.py");

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
import mmap, time
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
    file = open(folder + '/f', 'wb', buffering=0)
    return lambda: writes(file.fileno())
def clean(before):
    os.system('rm -rf mp/d/* src/d/*; sync -f src')
    # The server closes what was removed a moment later. Some blocks stay with the folder.
    for _ in range(50):
        if os.statvfs('src').f_bfree >= before - 512: return
        time.sleep(0.05); os.system('sync -f src')
wrong = []
stat = os.statvfs('src'); kept = stat.f_bfree - stat.f_bavail
assert kept > 500, kept
for way in buffered, odd, direct, allocated, copied, folders, links, attributes, opened_by_root:
    for uid in 4001, 0:
        left = {}
        for folder in 'src/d', 'mp/d':
            before = os.statvfs('src').f_bfree
            f = way(folder) if way is opened_by_root else way
            said = as_user(folder, f, uid)
            f = None
            os.system('sync -f src')
            left[folder] = os.statvfs('src').f_bfree
            clean(before)
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
    let script = r#"
mkdir -p src mp; ext4 src; chmod 755 src
ulimit -S -f 4000; show src mp; ulimit -S -f unlimited
cat >cases.py <<'END'
CASESEND
python3 cases.py || fail "see above"
end
"#;
    run_with(&script.replace("CASES", CASES));
}

/// A quota holds for a user in the mount, and not for root that writes for the user.
#[test]
fn quotas_hold_for_callers() {
    run_with(
        r#"
mkdir -p src mp; truncate -s 32M img
mkfs.ext4 -q -F -O quota img || skip "no mkfs.ext4 with quotas"
mount -o loop,usrquota img src 2>/dev/null || skip "no quotas in this kernel"
cat >quotas.py <<'END'
import ctypes
from rights import *
Q_SETQUOTA, LIMITS = 0x800008 << 8, 5
device = [l.split()[0] for l in open('/proc/self/mounts') if l.split()[1] == os.path.realpath('src')][0]
# Blocks of 1 KiB, hard and soft; what is used; inodes, hard and soft, and used; times; what is set.
limits = struct.pack('8QI4x', 1024, 0, 0, 20, 0, 0, 0, 0, LIMITS)
if ctypes.CDLL(None, use_errno=True).quotactl(Q_SETQUOTA, device.encode(), 4001, limits) != 0:
    print('no quotas:', os.strerror(ctypes.get_errno())); sys.exit(77)
def fill(flags=0):
    fd = os.open('f', os.O_CREAT | os.O_WRONLY | flags, 0o600)
    try:
        while True: os.write(fd, b'x' * 65536)
    except OSError as e: said = errno.errorcode[e.errno]
    return [said, 900 << 10 <= os.fstat(fd).st_size <= 1100 << 10]
def files():
    n = 0
    try:
        while n < 100: os.close(os.open('n%d' % n, os.O_CREAT | os.O_WRONLY, 0o600)); n += 1
    except OSError as e: return [errno.errorcode[e.errno], n]
def for_the_user():
    fd = os.open('f', os.O_WRONLY | os.O_APPEND)
    return [os.write(fd, b'x' * 65536) for _ in range(32)]
wrong = []
for name, uid, f in ('data', 4001, fill), ('inodes', 4001, files), ('root', 0, for_the_user):
    said = {}
    for at in 'src', 'mp':
        os.mkdir(f'src/{name}-{at}'); os.chmod(f'src/{name}-{at}', 0o777)
        if uid == 0: os.close(os.open(f'src/{name}-{at}/f', os.O_CREAT)); os.chown(f'src/{name}-{at}/f', 4001, 4001)
        said[at] = as_user(f'{at}/{name}-{at}', f, uid)
        os.system(f'rm -rf {at}/{name}-{at}; sync')
    if said['src'] != said['mp']: wrong.append((name, said))
assert not wrong, wrong
END
show src mp
code=0; python3 quotas.py || code=$?
[ $code != 77 ] || exit 77
[ $code = 0 ] || fail "see above"
end
"#,
    );
}
