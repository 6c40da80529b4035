"""What programs do to files, case by case: each prints one line of what came of it. Run in a folder and in a mount of it, the lines must
be the same, so that nobody here has to know what they ought to be.

    cases.py FOLDER          as root; the folder is empty
"""

import ctypes, errno, fcntl, mmap, os, resource, signal, socket, stat, struct, subprocess, sys, time

libc = ctypes.CDLL(None, use_errno=True)
USER, OTHER = 65534, 1
CASES = []


def case(f):
    CASES.append(f)
    return f


def raw(name, *args):
    n = getattr(libc, name)(*args)
    if n < 0:
        raise OSError(ctypes.get_errno(), name)
    return n


def err(f, *args, **kw):
    """What a call answers: its errno if it fails."""
    try:
        r = f(*args, **kw)
        return "ok" if r is None else r
    except OSError as e:
        return errno.errorcode.get(e.errno, e.errno)


def touch(name, data=b"", mode=0o644):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, mode)
    os.write(fd, data)
    os.close(fd)
    os.chmod(name, mode)
    return name


def mode(name):
    return oct(os.lstat(name).st_mode)


def own(name):
    s = os.lstat(name)
    return (s.st_uid, s.st_gid)


def as_user(f, uid=USER, gid=None, groups=()):
    """What a function answers another user."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            out = repr(f())
        except OSError as e:
            out = errno.errorcode[e.errno]
        except BaseException as e:
            out = repr(e)
        os.write(w, out.encode())
        os._exit(0)
    os.close(w)
    out = b""
    while part := os.read(r, 65536):
        out += part
    os.close(r)
    os.waitpid(pid, 0)
    return out.decode()


def in_child(f):
    """How a child ends that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            f()
            os._exit(0)
        except OSError as e:
            os._exit(100 + e.errno % 100)
        except BaseException:
            os._exit(99)
    return os.waitpid(pid, 0)[1]


def times(name):
    s = os.lstat(name)
    return s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns


def moved(name, f):
    """Which times of a file a function moves."""
    before = times(name)
    time.sleep(0.02)
    f()
    return "".join(c for c, a, b in zip("amc", before, times(name)) if a != b)


def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


U_OBJ, U, G_OBJ, G, MASK, O = 1, 2, 4, 8, 16, 32
NO = 0xFFFFFFFF


# Access control lists


@case
def acl_gives_a_user_what_the_mode_does_not():
    touch("f", b"x", 0o600)
    os.setxattr("f", "system.posix_acl_access", acl((U_OBJ, 6, NO), (U, 6, USER), (G_OBJ, 0, NO), (MASK, 6, NO), (O, 0, NO)))
    return mode("f"), as_user(lambda: open("f").read()), as_user(lambda: open("f").read(), OTHER)


@case
def acl_takes_from_a_user_what_the_mode_gives():
    touch("f", b"x", 0o644)
    os.setxattr("f", "system.posix_acl_access", acl((U_OBJ, 6, NO), (U, 0, USER), (G_OBJ, 4, NO), (MASK, 6, NO), (O, 4, NO)))
    return as_user(lambda: open("f").read()), as_user(lambda: open("f").read(), OTHER)


@case
def acl_of_a_folder_is_inherited():
    os.mkdir("d")
    os.setxattr("d", "system.posix_acl_default", acl((U_OBJ, 7, NO), (U, 7, USER), (G_OBJ, 5, NO), (MASK, 7, NO), (O, 0, NO)))
    os.umask(0o77)
    os.close(os.open("d/f", os.O_CREAT | os.O_WRONLY, 0o666))
    os.mkdir("d/e", 0o777)
    os.mkfifo("d/p", 0o666)
    names = ["d/f", "d/e", "d/p"]
    return [(mode(n), sorted(os.listxattr(n)), err(os.getxattr, n, "system.posix_acl_access")) for n in names]


@case
def acl_and_chmod():
    touch("f")
    os.setxattr("f", "system.posix_acl_access", acl((U_OBJ, 6, NO), (U, 6, USER), (G_OBJ, 4, NO), (MASK, 6, NO), (O, 4, NO)))
    os.chmod("f", 0o640)
    return mode("f"), os.getxattr("f", "system.posix_acl_access"), as_user(lambda: open("f", "w").close())


@case
def acl_that_is_a_mode_becomes_it():
    touch("f")
    os.setxattr("f", "system.posix_acl_access", acl((U_OBJ, 6, NO), (G_OBJ, 0, NO), (O, 0, NO)))
    return mode("f"), os.listxattr("f"), err(os.removexattr, "f", "system.posix_acl_access")


@case
def acl_is_the_owners():
    touch("f")
    a = acl((U_OBJ, 6, NO), (G_OBJ, 6, NO), (O, 6, NO))
    return as_user(lambda: os.setxattr("f", "system.posix_acl_access", a)), err(os.setxattr, "f", "system.posix_acl_access", b"no")


# Modes, owners, and what clears them


@case
def umask_counts():
    out = []
    for mask in (0, 0o22, 0o27, 0o777):
        os.umask(mask)
        os.close(os.open(f"f{mask}", os.O_CREAT | os.O_WRONLY, 0o6777))
        os.mkdir(f"d{mask}", 0o1777)
        os.mkfifo(f"p{mask}", 0o666)
        out.append([mode(f"{k}{mask}") for k in "fdp"])
    return out


@case
def sgid_folders_hand_their_group_down():
    os.mkdir("d")
    os.chown("d", USER, 7)
    os.chmod("d", 0o2777)

    def make():
        os.close(os.open("d/f", os.O_CREAT | os.O_WRONLY, 0o2775))
        os.mkdir("d/e")
        os.symlink("x", "d/l")
        os.mkfifo("d/p")

    return as_user(make, OTHER), [(own(f"d/{n}"), mode(f"d/{n}")) for n in "felp"]


@case
def writing_clears_suid():
    out = []
    for m in (0o4755, 0o2755, 0o6777, 0o1777):
        touch("f", b"x", m)
        os.chmod("f", m | 0o22)
        os.chown("f", OTHER, 7)
        os.chmod("f", m | 0o22)
        out.append((as_user(lambda: os.write(os.open("f", os.O_WRONLY), b"y")), mode("f")))
    return out


@case
def root_may_write_and_keep_suid():
    touch("f", b"x", 0o6755)
    os.write(os.open("f", os.O_WRONLY), b"y")
    return mode("f")


@case
def cutting_clears_suid():
    out = []
    for how in (lambda: os.truncate("f", 0), lambda: os.open("f", os.O_WRONLY | os.O_TRUNC), lambda: os.truncate("f", 1)):
        touch("f", b"x")
        os.chmod("f", 0o6777)
        out.append((as_user(how), mode("f")))
    return out


@case
def allocating_clears_suid():
    touch("f", b"x")
    os.chmod("f", 0o6777)
    return as_user(lambda: os.posix_fallocate(os.open("f", os.O_RDWR), 0, 100)), mode("f")


@case
def chown_clears_suid():
    touch("f")
    os.chmod("f", 0o6755)
    os.chown("f", OTHER, 7)
    os.mkdir("d")
    os.chmod("d", 0o6755)
    os.chown("d", OTHER, 7)
    return mode("f"), mode("d")


@case
def chown_of_the_owner():
    touch("f")
    os.chown("f", USER, USER)
    os.chmod("f", 0o6755)
    r = as_user(lambda: os.chown("f", -1, 7), groups=[7])
    return r, own("f"), mode("f"), as_user(lambda: os.chown("f", -1, 8), groups=[7]), as_user(lambda: os.chown("f", OTHER, -1))


@case
def chmod_of_who_is_not_in_the_group():
    touch("f")
    os.chown("f", USER, 7)
    return as_user(lambda: os.chmod("f", 0o2755)), mode("f"), as_user(lambda: os.chmod("f", 0o2755), groups=[7]), mode("f")


@case
def capabilities_are_cleared_by_writing():
    cap = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
    out = []
    for how in (
        lambda: os.write(os.open("f", os.O_WRONLY), b"y"),
        lambda: os.truncate("f", 0),
        lambda: os.chown("f", OTHER, 1),
        lambda: os.chmod("f", 0o700),
    ):
        touch("f", b"x")
        os.setxattr("f", "security.capability", cap)
        how()
        out.append(err(os.getxattr, "f", "security.capability"))
    return out


@case
def symbolic_links_have_no_mode():
    os.symlink("nowhere", "l")
    r = err(os.chown, "l", 5, 6, follow_symlinks=False)
    return r, own("l"), mode("l"), os.lstat("l").st_size, err(raw, "fchmodat", -100, b"l", 0o600, 0x100)


@case
def sticky_folders():
    os.mkdir("d")
    os.chmod("d", 0o1777)
    touch("d/f")
    touch("d/g")
    os.chown("d/g", USER, USER)
    os.mkdir("d/sub")
    return (
        as_user(lambda: os.unlink("d/f")),
        as_user(lambda: os.rename("d/f", "d/h")),
        as_user(lambda: os.rename("d/g", "d/f")),
        as_user(lambda: os.rmdir("d/sub")),
        as_user(lambda: os.rename("d/g", "d/h")),
    )


@case
def what_others_may_not():
    os.mkdir("d", 0o755)
    touch("d/f", b"x", 0o600)
    os.mkdir("locked", 0o700)
    touch("locked/f", b"x", 0o666)
    calls = [
        lambda: os.open("d/f", os.O_RDONLY), lambda: os.open("d/n", os.O_CREAT | os.O_WRONLY), lambda: os.mkdir("d/n"),
        lambda: os.symlink("x", "d/n"), lambda: os.mkfifo("d/n"), lambda: os.unlink("d/f"), lambda: os.rename("d/f", "d/n"),
        lambda: os.link("d/f", "d/n"), lambda: os.chmod("d/f", 0o666), lambda: os.chown("d/f", USER, -1), lambda: os.truncate("d/f", 0),
        lambda: os.utime("d/f"), lambda: os.utime("d/f", (1, 1)), lambda: os.open("locked/f", os.O_RDONLY), lambda: os.stat("locked/f"),
        lambda: os.listdir("locked"), lambda: os.stat("locked"), lambda: os.chdir("locked"), lambda: os.setxattr("d/f", "user.a", b"x"),
        lambda: os.getxattr("d/f", "user.a"), lambda: os.access("d/f", os.R_OK), lambda: os.access("d", os.W_OK), lambda: os.rmdir("d"),
        lambda: os.mknod("d/n", stat.S_IFCHR, os.makedev(1, 3)),
    ]  # fmt: skip
    return [as_user(lambda c=c: "ok" if isinstance(r := err(c), os.stat_result) else r) for c in calls]


@case
def who_may_write_may_touch():
    touch("f", b"x", 0o666)
    return as_user(lambda: os.utime("f")), as_user(lambda: os.utime("f", (1, 1)))


@case
def root_may_not_run_what_is_no_program():
    touch("f", b"#!/bin/sh\n", 0o644)
    return os.access("f", os.X_OK), os.access("f", os.W_OK), err(subprocess.run, ["./f"])


@case
def what_one_made_oneself_may_be_written_whatever_its_mode():
    os.chmod(".", 0o777)

    def make():
        fd = os.open("f", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444)
        os.write(fd, b"git does that")
        os.fsync(fd)
        g = os.open("g", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0)
        os.pwrite(g, b"y" * 4096, 0)
        return os.pread(fd, 100, 0), os.pread(g, 2, 4000), err(os.open, "f", os.O_WRONLY), err(os.open, "g", os.O_RDONLY)

    return as_user(make), mode("f"), mode("g")


# Opening


def name(fd, to):
    """Gives a name to what is open."""
    raw("linkat", -100, b"/proc/self/fd/%d" % fd, -100, to, 0x400)


@case
def opening_in_every_way():
    touch("f", b"abc")
    os.mkdir("d")
    os.symlink("f", "l")
    os.symlink("new", "dangling")
    os.symlink("loop", "loop")
    O = os
    out = []
    for name, flags in [
        ("f", O.O_RDONLY | O.O_TRUNC), ("f", O.O_CREAT | O.O_EXCL | O.O_RDWR), ("f", O.O_DIRECTORY), ("f/", 0), ("f/x", 0), ("d", O.O_WRONLY),
        ("d", O.O_CREAT), ("d", O.O_DIRECTORY), ("d", O.O_RDONLY | O.O_DIRECT), ("l", O.O_NOFOLLOW), ("l", O.O_PATH | O.O_NOFOLLOW),
        ("dangling", O.O_RDONLY), ("dangling", O.O_CREAT | O.O_EXCL | O.O_WRONLY), ("dangling", O.O_CREAT | O.O_WRONLY), ("loop", 0),
        ("x" * 255, O.O_CREAT), ("x" * 256, O.O_CREAT), ("nowhere", 0), ("nowhere/x", O.O_CREAT), ("d/../f", 0), ("", 0),
        ("new", O.O_CREAT | O.O_DIRECTORY), ("g", O.O_CREAT | O.O_RDWR | O.O_SYNC), ("h", O.O_CREAT | O.O_RDWR | O.O_DSYNC | O.O_APPEND),
    ]:  # fmt: skip
        r = err(os.open, name, flags, 0o640)
        out.append(r if isinstance(r, str) else "open")
    return out, os.path.getsize("f"), sorted(n[:3] for n in os.listdir("."))


@case
def files_without_a_name():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b"made before it has a name")
    n = os.fstat(fd).st_nlink
    name(fd, b"f")
    ex = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    return n, open("f", "rb").read(), mode("f"), os.fstat(fd).st_nlink, err(name, ex, b"g")


@case
def files_without_a_name_belong_to_who_made_them():
    os.chmod(".", 0o777)

    def make():
        os.umask(0o27)
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o666)
        os.write(fd, b"x" * 5000)
        name(fd, b"f")

    return as_user(make), own("f"), mode("f"), os.path.getsize("f")


@case
def what_is_gone_is_still_open():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.unlink("f")
    os.write(fd, b"x" * 5000)
    os.ftruncate(fd, 4096)
    os.fchmod(fd, 0o600)
    os.utime(fd, ns=(1, 2))
    os.setxattr(fd, "user.a", b"b")
    s = os.fstat(fd)
    return s.st_nlink, s.st_size, oct(s.st_mode), s.st_mtime_ns, os.getxattr(fd, "user.a"), err(name, fd, b"g")


@case
def a_folder_that_is_gone():
    os.mkdir("d")
    fd = os.open("d", os.O_RDONLY)
    here = os.open(".", os.O_RDONLY)
    os.chdir("d")
    os.rmdir("../d")
    r = err(os.mkdir, "x"), err(os.open, "x", os.O_CREAT), err(os.listdir, "."), err(os.listdir, fd), os.fstat(fd).st_nlink, err(os.getcwd)
    os.fchdir(here)
    return r


@case
def a_program_that_runs_is_not_written():
    subprocess.run(["cp", "/bin/sleep", "s"], check=True)
    p = subprocess.Popen(["./s", "5"])
    r = err(os.open, "s", os.O_WRONLY), err(os.truncate, "s", 0)
    p.kill()
    p.wait()
    fd = os.open("s", os.O_WRONLY)
    return r, err(subprocess.run, ["./s", "0"]), os.close(fd), subprocess.run(["./s", "0"]).returncode


@case
def scripts_run():
    touch("f", b"#!/bin/sh\necho $0 $1\n", 0o755)
    return subprocess.run(["./f", "a"], capture_output=True).stdout


@case
def pipes_and_sockets():
    os.mkfifo("p")
    r = [err(os.open, "p", os.O_WRONLY | os.O_NONBLOCK)]
    a = os.open("p", os.O_RDONLY | os.O_NONBLOCK)
    b = os.open("p", os.O_WRONLY | os.O_NONBLOCK)
    os.write(b, b"through")
    r.append(os.read(a, 100))
    s = socket.socket(socket.AF_UNIX)
    s.bind("s")
    s.listen()
    c = socket.socket(socket.AF_UNIX)
    c.connect("s")
    c.send(b"hello")
    r += [s.accept()[0].recv(10), mode("s"), err(os.open, "s", os.O_RDONLY), err(os.fdatasync, a)]
    return r


@case
def devices_have_their_numbers():
    os.mknod("n", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod("m", stat.S_IFBLK | 0o600, os.makedev(300, 70000))
    return [(mode(n), os.lstat(n).st_rdev) for n in "nm"]


# Reading and writing


@case
def sizes_and_offsets_at_the_edge():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    top = (1 << 63) - 1
    return (
        err(os.pwrite, fd, b"x", top), err(os.ftruncate, fd, top), err(os.ftruncate, fd, -1), err(os.pread, fd, 10, top),
        err(os.write, fd, b"x"), err(os.lseek, fd, -1, os.SEEK_SET), os.fstat(fd).st_size,
        err(os.pwrite, fd, b"", 0), err(os.pread, fd, 0, 0), err(os.posix_fallocate, fd, 0, 0), err(os.truncate, "f", -1),
        err(os.truncate, ".", 0), err(os.ftruncate, os.open("f", os.O_RDONLY), 0), err(os.write, os.open("f", os.O_RDONLY), b"x"),
        err(os.read, os.open("f", os.O_WRONLY), 1),
    )  # fmt: skip


@case
def the_limit_of_a_files_size():
    def over():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        fd = os.open("f", os.O_CREAT | os.O_RDWR)
        return [err(os.write, fd, b"x" * 8000), err(os.write, fd, b"x" * 8000), err(os.write, fd, b"x"), err(os.ftruncate, fd, 20000)]

    return as_user(over, 0), os.path.getsize("f")


@case
def holes_and_data():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"a" * 65536, 1 << 20)
    os.ftruncate(fd, 4 << 20)
    r = [err(os.lseek, fd, at, how) for at in (0, 1 << 20, (1 << 20) + 65536, (4 << 20) - 1, 4 << 20) for how in (os.SEEK_DATA, os.SEEK_HOLE)]
    return r, os.fstat(fd).st_blocks


@case
def allocation_in_every_mode():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"a" * 40960)
    alloc = lambda mode, at, n: err(raw, "fallocate64", fd, mode, ctypes.c_int64(at), ctypes.c_int64(n))
    r = [
        (alloc(m, at, n), os.fstat(fd).st_size, os.pread(fd, 2, 8192))
        for m, at, n in [(0, 40960, 4096), (1, 0, 1 << 20), (3, 8192, 4096), (2, 0, 4096), (3, 1 << 30, 4096), (0, -1, 5)]
    ]
    return r, err(os.posix_fallocate, os.open("f", os.O_RDONLY), 0, 1), err(os.posix_fallocate, fd, 0, 100000), os.fstat(fd).st_size


@case
def appending_writers_do_not_overwrite_each_other():
    pids = []
    for k in range(4):
        if not (pid := os.fork()):
            fd = os.open("f", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            for i in range(50):
                os.write(fd, b"%d" % k * 777)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    data = open("f", "rb").read()
    return len(data), all(len(set(data[i : i + 777])) == 1 for i in range(0, len(data), 777)), os.pwrite(os.open("f", os.O_APPEND | os.O_WRONLY), b"x", 0)


@case
def flags_of_single_writes():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    r = [err(os.pwritev, fd, [b"a" * 3000, b"b" * 3000], 5, f) for f in (0, os.RWF_DSYNC, os.RWF_SYNC, os.RWF_APPEND)]
    return r, os.fstat(fd).st_size, [len(open("f", "rb").read(n)) for n in (1, 9000)]


@case
def maps_and_files_are_the_same_bytes():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 10000)
    m = mmap.mmap(fd, 10000)
    m[100:104] = b"mmap"
    r = [os.pread(fd, 4, 100)]
    os.pwrite(fd, b"file", 200)
    r.append(m[200:204])
    m.flush()
    os.ftruncate(fd, 150)
    os.ftruncate(fd, 10000)
    r += [m[100:104], m[200:204], os.pread(fd, 4, 200)]
    p = mmap.mmap(fd, 10000, mmap.MAP_PRIVATE)
    p[0:4] = b"mine"
    r += [os.pread(fd, 4, 0), p[0:4]]
    return r


@case
def maps_behind_the_end_are_no_memory():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 5000)
    m = mmap.mmap(fd, 5000)

    def cut():
        os.ftruncate(fd, 0)
        return m[0]

    return os.WTERMSIG(in_child(lambda: cut())), err(mmap.mmap, os.open("f", os.O_RDONLY), 4096)


@case
def a_map_outlives_its_file():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * 8192)
    m = mmap.mmap(fd, 8192)
    os.close(fd)
    os.unlink("f")
    m[0:5] = b"still"
    m.flush()
    return m[0:6]


@case
def copies_within_the_kernel():
    touch("a", bytes(range(256)) * 400)
    a, b = os.open("a", os.O_RDONLY), os.open("b", os.O_CREAT | os.O_RDWR)
    r = [os.copy_file_range(a, b, 70000, 5, 11), os.sendfile(b, a, 100, 500), err(os.copy_file_range, a, a, 10, 0, 5)]
    s, t = os.pipe()
    r += [os.splice(a, t, 4000, 7), os.splice(s, b, 4000, None, 200000)]
    same = os.pread(b, 4000, 200000) == os.pread(a, 4000, 7) and os.pread(b, 70000, 11) == os.pread(a, 70000, 5)
    return r, same, os.fstat(b).st_size, err(os.copy_file_range, b, b, 100, 0, 1000), err(os.copy_file_range, a, os.open(".", 0), 1)


@case
def direct_io():
    fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    m = mmap.mmap(-1, 16384)
    m[:] = b"d" * 16384
    w = os.writev(fd, [m])
    back = mmap.mmap(-1, 16384)
    n = os.preadv(fd, [back], 4096)
    os.truncate("f", 10000)
    k = os.preadv(fd, [back], 8192)
    return w, n, back[:5], k, open("f", "rb").read(3), os.pread(os.open("f", 0), 10, 9995)


@case
def a_file_that_is_open_for_direct_io_is_mapped():
    fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    os.ftruncate(fd, 16384)
    m, p = mmap.mmap(fd, 16384), mmap.mmap(fd, 16384, mmap.MAP_PRIVATE)
    m[5:9] = b"mmap"
    back = mmap.mmap(-1, 8192)
    r = [os.preadv(fd, [back], 0), back[5:9], open("f", "rb").read()[5:9], p[5:9]]
    back[0:4] = b"dire"
    r += [os.pwritev(fd, [back], 0), m[0:9], open("f", "rb").read()[0:9]]
    m[1:2] = b"!"
    m.flush()
    other = os.open("f", os.O_RDWR)
    os.pwrite(other, b"cached", 100)
    return r, os.preadv(fd, [back], 0), back[0:4], back[100:106], m[100:106]


# Times


@case
def which_times_move():
    touch("f", b"x" * 5000)
    os.mkdir("d")
    fd = os.open("f", os.O_RDWR)
    os.utime("f", (1, 1))
    out = [moved("f", f) for f in (
        lambda: os.pwrite(fd, b"y", 0), lambda: os.pwrite(fd, b"", 0), lambda: os.ftruncate(fd, 100), lambda: os.ftruncate(fd, 100),
        lambda: os.truncate("f", 100), lambda: os.chmod("f", 0o600), lambda: os.chmod("f", 0o600), lambda: os.chown("f", 1, 1),
        lambda: os.chown("f", -1, -1), lambda: os.link("f", "g"), lambda: os.rename("g", "h"), lambda: os.unlink("h"),
        lambda: os.setxattr("f", "user.a", b"b"), lambda: os.removexattr("f", "user.a"), lambda: os.posix_fallocate(fd, 0, 9000),
        lambda: os.utime("f", (1, 2)), lambda: os.utime("f"), lambda: os.stat("f"), lambda: os.fsync(fd), lambda: open("f", "a").close(),
        lambda: open("f", "w").close(),
    )]  # fmt: skip
    d = [moved("d", f) for f in (
        lambda: touch("d/a"), lambda: os.rename("d/a", "d/b"), lambda: os.unlink("d/b"), lambda: os.mkdir("d/e"), lambda: os.rmdir("d/e"),
        lambda: os.symlink("x", "d/l"), lambda: os.stat("d"), lambda: os.link("f", "d/f"), lambda: os.rename("d/f", "f2"),
    )]  # fmt: skip
    return out, d


@case
def maps_move_times():
    touch("f", b"x" * 5000)
    os.utime("f", (1, 1))
    fd = os.open("f", os.O_RDWR)
    m = mmap.mmap(fd, 5000)

    def write():
        m[0:1] = b"y"
        m.flush()

    return moved("f", write).replace("a", "")


@case
def reading_moves_the_time_of_access():
    touch("f", b"x" * 5000)
    os.mkdir("d")
    touch("d/x")
    os.symlink("f", "l")
    for n in "fdl":
        os.utime(n, ns=(1, 10**18), follow_symlinks=False)
    read = moved("f", lambda: open("f", "rb").read())
    return read, moved("d", lambda: os.listdir("d")), moved("l", lambda: os.readlink("l"))


@case
def times_that_are_set():
    touch("f")
    out = []
    for ns in [(0, 0), (123456789, 987654321123456789), (-1, -5), (2**31 * 10**9, 2**32 * 10**9 + 7), (2**33 * 10**9, 2**34 * 10**9)]:
        os.utime("f", ns=ns)
        out.append(times("f")[:2])
    os.symlink("f", "l")
    os.utime("l", ns=(5, 6), follow_symlinks=False)
    return out, times("l")[1], os.stat("f").st_mtime_ns


@case
def birth_is_told():
    class Statx(ctypes.Structure):
        _fields_ = [("mask", ctypes.c_uint32), ("a", ctypes.c_uint8 * 76), ("sec", ctypes.c_int64), ("ns", ctypes.c_uint32), ("b", ctypes.c_uint8 * 200)]

    touch("f")
    os.utime("f", (1, 1))
    s = Statx()
    raw("statx", -100, b"f", 0, 0x800 | 0x7FF, ctypes.byref(s))
    return bool(s.mask & 0x800), abs(time.time() - s.sec) < 60


# Names


@case
def names_of_all_kinds():
    names = [b"a b", b"\xff\xfe", b"new\nline", b"-", b"*", "ü".encode() * 127, b"x" * 255, b"." * 3]
    for n in names:
        os.close(os.open(n, os.O_CREAT))
    return sorted(os.listdir(b".")), [err(os.mkdir, n) for n in (b"x" * 256, b".", b"..", b"/", b"a b/", b"y/" * 2040)]


@case
def renaming_in_every_way():
    def fresh():
        subprocess.run("rm -rf *; mkdir -p d/sub e full/x; echo f > f; echo g > g; ln f h; ln -s f l", shell=True, check=True)

    out = []
    for a, b in [("f", "g"), ("f", "h"), ("f", "d"), ("d", "f"), ("d", "e"), ("e", "full"), ("d", "d/sub/x"), ("d/sub", "d"), ("f", "f"),
                 ("no", "f"), ("f", "no/x"), ("l", "g"), ("f", "e/"), (".", "x"), ("d/.", "x"), ("f", "x" * 256), ("d", "n/"), ("f", "n/")]:  # fmt: skip
        for flags in (0, 1, 2):
            fresh()
            r = err(raw, "renameat2", -100, a.encode(), -100, b.encode(), flags)
            out.append((a[:9], b[:9], flags, r, sorted(os.listdir(".")), os.stat("f").st_nlink if os.path.exists("f") else 0))
    return out


@case
def a_folder_that_moves_keeps_what_is_open():
    os.makedirs("a/b")
    touch("a/b/f", b"x")
    fd = os.open("a/b/f", os.O_RDWR)
    d = os.open("a/b", os.O_RDONLY)
    os.mkdir("c")
    os.rename("a/b", "c/b")
    os.write(fd, b"y")
    os.close(os.open("new", os.O_CREAT, dir_fd=d))
    return open("c/b/f").read(), sorted(os.listdir("c/b")), err(os.stat, "a/b/f"), os.stat("a").st_nlink, os.stat("c").st_nlink


@case
def links():
    touch("f")
    os.mkdir("d")
    os.symlink("f", "l")
    return (
        err(os.link, "f", "g"), err(os.link, "f", "g"), err(os.link, "d", "e"), err(os.link, "l", "m", follow_symlinks=False), os.readlink("m"),
        os.stat("f").st_nlink, err(os.link, "no", "n"), err(os.link, "f", "d/x/y"), err(os.symlink, "t" * 4095, "long"), len(os.readlink("long"))
        if os.path.lexists("long") else 0, err(os.symlink, "", "empty"), err(os.symlink, "x", "f"), err(os.readlink, "f"), err(os.unlink, "d"),
        err(os.rmdir, "f"), err(os.unlink, "l/"), err(os.rmdir, "l"), err(os.rmdir, "."), err(os.symlink, "t" * 4096, "longer"),
    )  # fmt: skip


@case
def links_of_others_files():
    os.chmod(".", 0o777)
    touch("f", b"", 0o600)
    return as_user(lambda: os.link("f", "g"))


@case
def large_folders_and_what_changes_while_they_are_read():
    os.mkdir("d")
    for i in range(3000):
        os.close(os.open(f"d/file-number-{i}", os.O_CREAT))
    seen, gone = [], 0
    with os.scandir("d") as it:
        for e in it:
            seen.append(e.name)
            assert e.is_file(follow_symlinks=False)
            os.unlink(f"d/{e.name}")
    r = len(seen), len(set(seen)), len(os.listdir("d"))
    os.rmdir("d")
    return r


@case
def a_folder_is_read_again():
    touch("a")
    fd = os.open(".", os.O_RDONLY)
    first = sorted(os.listdir(fd))
    touch("b")
    os.lseek(fd, 0, os.SEEK_SET)
    return first, sorted(os.listdir(fd)), err(os.read, fd, 10), err(os.fsync, fd), err(os.ftruncate, fd, 0)


@case
def links_of_folders_are_counted():
    os.makedirs("d/a")
    os.mkdir("d/b")
    touch("d/f")
    n = os.stat("d").st_nlink
    os.rmdir("d/b")
    return n, os.stat("d").st_nlink


# Extended attributes


@case
def attributes_in_every_way():
    touch("f")
    os.symlink("f", "l")
    os.mkfifo("p")
    big = b"v" * 3000
    r = [
        err(os.setxattr, "f", "user.a", b"1"), err(os.setxattr, "f", "user.a", b"2", os.XATTR_CREATE), err(os.setxattr, "f", "user.b", b"2", os.XATTR_REPLACE),
        err(os.getxattr, "f", "user.a"), err(os.getxattr, "f", "user.none"), err(os.setxattr, "f", "user.", b""), err(os.setxattr, "f", "nonsense", b""),
        err(os.setxattr, "f", "user.e", b""), err(os.getxattr, "f", "user.e"), err(os.setxattr, "f", "user.big", big), err(os.getxattr, "f", "user.big") == big,
        err(os.setxattr, "f", "user." + "n" * 250, b"x"), err(os.setxattr, "f", "user." + "n" * 251, b"x"), err(os.setxattr, "f", "user.huge", b"v" * 65537),
        err(os.setxattr, "l", "user.a", b"x", follow_symlinks=False), err(os.setxattr, "p", "user.a", b"x"), err(os.setxattr, "f", "trusted.t", b"x"),
        err(os.setxattr, "l", "trusted.t", b"on the link", follow_symlinks=False), err(os.getxattr, "l", "trusted.t", follow_symlinks=False),
        err(os.getxattr, "l", "trusted.t"), err(os.setxattr, "f", "security.x", b"x"), err(os.removexattr, "f", "user.none"), err(os.removexattr, "f", "user.a"),
        sorted(n[:12] for n in os.listxattr("f")), err(os.listxattr, "l", follow_symlinks=False), err(raw, "getxattr", b"f", b"user.big", b"12345", 5),
        err(raw, "listxattr", b"f", b"12345", 5), err(raw, "getxattr", b"f", b"user.big", None, 0),
    ]  # fmt: skip
    os.chmod("f", 0o666)
    return r, as_user(lambda: os.setxattr("f", "trusted.u", b"x")), as_user(lambda: os.getxattr("f", "trusted.t")), as_user(lambda: sorted(n[:8] for n in os.listxattr("f"))), as_user(lambda: os.setxattr("f", "user.u", b"x")), as_user(lambda: os.setxattr("f", "security.u", b"x"))


# Locks, watchers, and other calls


@case
def locks_are_between_processes():
    touch("f", b"x" * 100)
    a = open("f", "r+b")
    fcntl.lockf(a, fcntl.LOCK_EX, 10, 0)
    b = open("f", "r+b")
    r = [as_user(lambda: fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5), 0), as_user(lambda: fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10), 0)]
    fcntl.flock(a, fcntl.LOCK_SH)
    r += [err(fcntl.flock, b, fcntl.LOCK_SH | fcntl.LOCK_NB), err(fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)]
    lock = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 50, 10, 0)
    r += [len(fcntl.fcntl(a, 37, lock)), err(fcntl.fcntl, b, 37, lock)]
    a.close()
    return r, err(fcntl.fcntl, b, 37, lock) != "EAGAIN", err(fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)


@case
def a_lock_ends_with_who_had_it():
    touch("f")
    fd = os.open("f", os.O_RDWR)

    def wait():
        os.alarm(5) if hasattr(os, "alarm") else signal.alarm(5)
        fcntl.lockf(fd, fcntl.LOCK_EX)

    holder = os.fork()
    if not holder:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        time.sleep(0.2)
        os._exit(0)
    time.sleep(0.05)
    got = in_child(wait)
    os.waitpid(holder, 0)
    return got


@case
def watchers_hear():
    fd = raw("inotify_init1", os.O_NONBLOCK)
    raw("inotify_add_watch", fd, b".", 0xFFF)
    touch("f", b"x")
    os.rename("f", "g")
    os.unlink("g")
    seen = set()
    data = os.read(fd, 65536)
    while data:
        _, mask, _, n = struct.unpack("iIII", data[:16])
        seen.add((hex(mask), data[16 : 16 + n].rstrip(b"\0")))
        data = data[16 + n :]
    return sorted(seen)


@case
def making_it_stable():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * 10000)
    ro = os.open("f", os.O_RDONLY)
    return err(os.fsync, fd), err(os.fdatasync, ro), err(raw, "syncfs", ro), err(raw, "sync_file_range", fd, ctypes.c_int64(0), ctypes.c_int64(5), 7), err(os.posix_fadvise, fd, 0, 0, os.POSIX_FADV_DONTNEED), err(raw, "readahead", fd, ctypes.c_int64(0), 4096)


@case
def the_file_systems_numbers():
    touch("f", b"x" * 5000)
    s, f = os.statvfs("."), os.stat("f")
    return s.f_bsize, s.f_frsize, s.f_namemax, s.f_blocks, f.st_blksize, f.st_blocks, os.pathconf("f", "PC_NAME_MAX"), os.pathconf("f", "PC_PATH_MAX")


@case
def flags_of_files():
    touch("f", b"x")
    fd = os.open("f", os.O_RDWR)
    get = lambda: struct.unpack("i", fcntl.ioctl(fd, 0x80086601, b"\0" * 4))[0] & 0x30
    r = [err(get), err(fcntl.ioctl, fd, 0x40086602, struct.pack("i", 0x20)) != "x", err(get)]
    try:
        r.append(err(os.pwrite, os.open("f", os.O_WRONLY | os.O_APPEND), b"y", 0))
        r.append(err(os.open, "f", os.O_WRONLY) if r[2] == 0x20 else "EPERM")
    finally:
        # Or it could not be removed.
        err(fcntl.ioctl, fd, 0x40086602, struct.pack("i", 0))
    return r


@case
def bytes_that_can_be_read_are_told():
    touch("f", b"x" * 100)
    return struct.unpack("i", fcntl.ioctl(os.open("f", 0), 0x541B, b"\0" * 4)), err(fcntl.ioctl, os.open("f", 0), 0x5401, b"\0" * 60)


@case
def chroot_and_mounts_see_it():
    os.mkdir("r")
    subprocess.run(["cp", "/bin/true", "r/true"], check=True)
    return in_child(lambda: (os.chroot("r"), os.stat("/true"))), os.path.ismount("r")


def main():
    os.chdir(sys.argv[1])
    only = sys.argv[2:]
    for f in CASES:
        name = f.__name__
        if only and name not in only:
            continue
        os.mkdir(name)
        sys.stdout.flush()
        if not (pid := os.fork()):
            os.umask(0o22)
            os.chdir(name)
            try:
                out = f()
            except OSError as e:
                out = f"fails with {errno.errorcode.get(e.errno, e.errno)}: {e}"
            except BaseException as e:
                out = f"fails with {e!r}"
            print(f"{name}: {out}", flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


main()
