# Attributes in a mount, at once and not after a second, beside those of the folder below: what generic/003,
# 277, 355, 375 and 424 of xfstests are about. Runs as root in the mount; the argument is the folder.
import ctypes, fcntl, mmap, os, struct, sys, time

below = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
MODE, ATIME, CTIME, BTIME = 0x2, 0x20, 0x80, 0x800
O_NOATIME, O_DIRECT = os.O_NOATIME, os.O_DIRECT
NOBODY = 65534


def statx(path, mask):
    """The mode, access, birth and change times, and attributes: only what is asked for need be new."""
    room = ctypes.create_string_buffer(256)
    if libc.statx(-100, path.encode(), 0, mask, room) != 0:
        raise OSError(ctypes.get_errno(), path)
    time_at = lambda at: struct.unpack_from('qI', room, at)
    got, attributes = struct.unpack_from('I4xQ', room)
    return dict(mask=got, attributes=attributes, mode=struct.unpack_from('H', room, 28)[0] & 0o7777,
                atime=time_at(64), btime=time_at(80), ctime=time_at(96))


def as_nobody(what, *arguments):
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            what(*arguments)
            os._exit(0)
        except OSError as e:
            print(e, file=sys.stderr)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, what


def same(name, mask, key):
    ours, theirs = statx(name, mask)[key], statx(os.path.join(below, name), mask)[key]
    assert ours == theirs, (name, key, ours, theirs)
    return ours


block = mmap.mmap(-1, 4096)


def write(name):
    os.pwrite(os.open(name, os.O_WRONLY), b'x' * 100, 0)


def write_directly(name):
    os.pwritev(os.open(name, os.O_WRONLY | O_DIRECT), [block], 0)


def append(name):
    os.write(os.open(name, os.O_WRONLY | os.O_APPEND), b'x')


def copy(name):
    os.copy_file_range(os.open('from', os.O_RDONLY), os.open(name, os.O_WRONLY), 4096, 0)


def allocate(name):
    os.posix_fallocate(os.open(name, os.O_WRONLY), 0, 20000)


# 355: bits that lend rights go with the first write of a user without that right, and at once.
open('from', 'wb').write(b'y' * 4096)
for mode in (0o4777, 0o2777, 0o6777, 0o2767):
    for way in (write, write_directly, append, copy, allocate, lambda name: os.truncate(name, 10)):
        name = 'lends'
        open(name, 'wb').write(b'z' * 8192)
        os.chmod(name, mode)
        assert same(name, MODE, 'mode') == mode
        as_nobody(way, name)
        left = same(name, MODE, 'mode')
        assert left == mode & (0o3777 if mode & 0o010 == 0 else 0o1777), (oct(mode), way, oct(left))
        os.unlink(name)

# 277: the time of change, when flags of the file change.
open('flags', 'w').close()
file = os.open('flags', os.O_RDONLY)
try:
    for flags in (0x40, 0):
        before = same('flags', CTIME, 'ctime')
        time.sleep(0.02)
        fcntl.ioctl(file, 0x40086602, struct.pack('l', flags))
        assert same('flags', CTIME, 'ctime') > before, 'the time of change'
except OSError as e:
    print('no flags here:', e)

# 375: a list that is set by an owner who is not in the file's group clears set-group-ID.
open('list', 'w').close()
entries = [(1, 7, 2**32 - 1), (2, 6, 1000), (4, 5, 2**32 - 1), (0x10, 7, 2**32 - 1), (0x20, 5, 2**32 - 1)]
value = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry) for entry in entries)
set_list = lambda name: os.setxattr(name, 'system.posix_acl_access', value)
for group, is_kept in ((NOBODY, True), (12345, False)):
    os.chown('list', NOBODY, group)
    os.chmod('list', 0o2755)
    try:
        as_nobody(set_list, 'list')
        assert same('list', MODE, 'mode') == (0o2775 if is_kept else 0o775), (group, oct(statx('list', MODE)['mode']))
    except AssertionError:
        if libc.setxattr(os.path.join(below, 'list').encode(), b'system.posix_acl_access', value, len(value), 0) == 0:
            raise
        print('no access control lists here')

# 003: the time of access, and files that are read without one.
open('read', 'wb').write(b'r' * 10000)
for flags, is_new in ((O_NOATIME, False), (0, True), (O_DIRECT, True)):
    os.utime('read', (1, 1))
    os.readv(os.open('read', os.O_RDONLY | flags), [block])
    atime = same('read', ATIME, 'atime')
    assert (atime != (1, 0)) == is_new, (flags, atime)
os.mkdir('folder')
os.utime('folder', (1, 1))
os.listdir('folder')
assert same('folder', ATIME, 'atime') != (1, 0)

# 424: the time of birth. Attributes of statx are not for FUSE to tell: the kernel ignores them in the answer.
if statx(os.path.join(below, 'read'), BTIME)['mask'] & BTIME:
    assert statx('read', BTIME)['mask'] & BTIME
    same('read', BTIME, 'btime')
print('done')
