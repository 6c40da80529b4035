"""Calls whose outcome depends on the rights and limits of a caller, in a folder and in a mount of it."""
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
