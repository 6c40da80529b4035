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
