//! Confinement from inside: a child process confines itself as a server does, and then tries what a server
//! that was taken over would try. Each attempt must fail with the error that the documentation names, and
//! what a server needs must go on.
//!
//! The child is this test binary, run again for the one test that the environment asks for.

use fairhead_live::confine::{Confinement, Role, refused_calls, status};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Asks the test of that name to be the child; its value is a folder.
const CHILD: &str = "FAIRHEAD_CONFINED_CHILD";

/// Runs a test of this file as a child with a folder of its own, in which there are `image` and `other`.
fn child(test: &str) -> Output {
    let out = run_child(test);
    assert!(out.status.success(), "{}: {}{}", out.status, text(&out.stdout), text(&out.stderr));
    out
}

fn run_child(test: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("image"), b"image").unwrap();
    std::fs::write(folder.path().join("other"), b"other").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("confine::{test}"), "--nocapture", "--test-threads=1"]);
    command.env(CHILD, folder.path()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The error number of a result; 0: it is none.
fn errno<T>(result: io::Result<T>) -> i32 {
    result.map_or_else(|e| e.raw_os_error().unwrap_or(-1), |_| 0)
}

type Attempt = (&'static str, fn() -> io::Result<()>);

/// A system call with numbers for arguments. What points somewhere points nowhere: the kernel would say
/// EFAULT, so EPERM is the filter's answer.
fn call(number: i64, arguments: [i64; 4]) -> io::Result<()> {
    let [a, b, c, d] = arguments;
    // SAFETY: no address is valid, so no memory is read or written; and a child, if there is one, ends at
    // once, below.
    let result = unsafe { libc::syscall(number, a, b, c, d, 0, 0) };
    if number == libc::SYS_clone && result == 0 {
        std::process::abort();
    }
    done(result)
}

/// What an intruder in a server may not do, whatever its role.
const ATTEMPTS: [Attempt; 15] = [
    ("a program", || call(libc::SYS_execve, [0; 4])),
    ("a program by descriptor", || call(libc::SYS_execveat, [-1, 0, 0, 0])),
    ("a process", || call(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0])),
    ("a thread in another name space", || {
        call(libc::SYS_clone, [i64::from(libc::CLONE_THREAD | libc::CLONE_NEWUSER), 0, 0, 0])
    }),
    ("a packet socket", || call(libc::SYS_socket, [libc::AF_PACKET.into(), libc::SOCK_RAW.into(), 0, 0])),
    ("a TCP connection", || TcpStream::connect("127.0.0.1:9").map(drop)),
    ("a port", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("ptrace", || call(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), parent(), 0, 0])),
    ("its parent's memory", || call(libc::SYS_process_vm_readv, [parent(), 0, 0, 0])),
    ("a signal to its parent", || call(libc::SYS_kill, [parent(), 0, 0, 0])),
    ("a name space", || call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0])),
    ("another user", || call(libc::SYS_setuid, [1, 0, 0, 0])),
    ("memory that is a program", || {
        let how = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        call(libc::SYS_mmap, [0, 4096, libc::PROT_EXEC.into(), how])
    }),
    ("mount", || call(libc::SYS_mount, [0; 4])),
    ("bpf", || call(libc::SYS_bpf, [0; 4])),
];

/// The process that started this one, asked before `getppid(2)` is refused: see [`child_folder`].
fn parent() -> i64 {
    static PARENT: LazyLock<i64> = LazyLock::new(|| std::os::unix::process::parent_id().into());
    *PARENT
}

/// The folder of a child; `None`: this is not one.
fn child_folder() -> Option<PathBuf> {
    parent();
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Tries all of them, and what they have cost is counted.
fn try_all(role: Role) {
    for (what, attempt) in ATTEMPTS {
        let before = refused_calls();
        assert_eq!(errno(attempt()), libc::EPERM, "{role:?}: {what}");
        assert_eq!(refused_calls(), before + 1, "{role:?}: {what}");
    }
}

fn status_line(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

fn open_by_ring(path: &Path) -> io::Result<()> {
    let mut ring = io_uring::IoUring::new(2)?;
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let open = io_uring::opcode::OpenAt::new(io_uring::types::Fd(libc::AT_FDCWD), path.as_ptr()).build();
    // SAFETY: the path lives until the operation has completed, below.
    unsafe { ring.submission().push(&open).unwrap() };
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().unwrap().result();
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

#[test]
fn a_server_reaches_its_files_and_nothing_else() {
    let Some(folder) = child_folder() else {
        let out = child("a_server_reaches_its_files_and_nothing_else");
        let (said, errors) = (text(&out.stdout), text(&out.stderr));
        said.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
        // One line for each kind of call, however often it was tried.
        let line =
            "fairhead: confinement: refused the system call ptrace (EPERM); --no-confinement allows it";
        assert_eq!(errors.lines().filter(|l| *l == line).count(), 1, "{errors}");
        return;
    };
    let (image, other) = (folder.join("image"), folder.join("other"));
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let (answer, answered) = std::sync::mpsc::channel();
    let earlier = std::thread::spawn(move || {
        while told.recv().is_ok() {
            answer.send(errno(call(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), parent(), 0, 0]))).unwrap();
        }
    });
    let begun = Confinement::new(Role::Serve).file(&image, false).begin().unwrap();
    assert_eq!(status_line("NoNewPrivs"), "1");

    let listener = if begun.status().guards_files {
        assert_eq!(errno(File::open("/etc/passwd")), libc::EACCES, "not named");
        assert_eq!(errno(File::open(&other)), libc::EACCES, "a neighbour of an image");
        assert_eq!(errno(File::create(folder.join("new"))), libc::EACCES, "a new file");
        assert_eq!(errno(open_by_ring(Path::new("/etc/passwd"))), libc::EACCES, "by the ring");
        assert_eq!(errno(open_by_ring(&image)), 0, "by the ring");
        if begun.status().landlock >= Some(4) {
            assert_eq!(errno(TcpListener::bind("127.0.0.1:0")), libc::EACCES, "no port was named");
        }
        None
    } else {
        println!("skipped: this kernel has no landlock");
        TcpListener::bind("127.0.0.1:0").ok()
    };
    drop(listener);
    let mut file = OpenOptions::new().read(true).write(true).open(&image).unwrap();

    assert_eq!(status(), None, "it has not ended its start");
    begun.finish().unwrap();
    assert!(status().is_some());
    assert_eq!(refused_calls(), 0, "the start makes no call that is refused");

    // A server's own work continues.
    file.write_all(b"more").unwrap();
    file.sync_data().unwrap();
    std::thread::spawn(move || file.read_to_end(&mut Vec::new()).unwrap()).join().unwrap();
    // More than the C library keeps for a thread, in blocks that are not mapped alone.
    let blocks = || drop(std::array::from_fn::<_, 8, _>(|_| std::hint::black_box(vec![1_u8; 64 << 10])));
    std::thread::spawn(blocks).join().unwrap();
    assert_eq!(refused_calls(), 0, "a server's own calls are allowed");

    assert_eq!(errno(File::open(&image)), libc::EPERM, "it opens nothing any more");
    try_all(Role::Serve);
    tell.send(()).unwrap();
    assert_eq!(answered.recv().unwrap(), libc::EPERM, "a thread from before the confinement");
    drop(tell);
    earlier.join().unwrap();
}

#[test]
fn a_mount_opens_files_and_nothing_else() {
    let Some(folder) = child_folder() else {
        child("a_mount_opens_files_and_nothing_else");
        return;
    };
    let image = folder.join("image");
    Confinement::new(Role::Mount).begin().unwrap().finish().unwrap();
    assert_eq!(errno(File::open(&image)), 0);
    assert_eq!(errno(File::create(folder.join("new"))), 0);
    assert_eq!(status_line("Seccomp"), "2");
    let own = call(libc::SYS_unshare, [libc::CLONE_FS.into(), 0, 0, 0]);
    assert_eq!(errno(own), 0, "a umask for each thread");
    assert_eq!(refused_calls(), 0, "a mount's own calls are allowed");
    try_all(Role::Mount);
}

#[test]
fn an_emulated_disk_looks_at_files_and_changes_none() {
    let Some(folder) = child_folder() else {
        child("an_emulated_disk_looks_at_files_and_changes_none");
        return;
    };
    let image = folder.join("image");
    Confinement::new(Role::Emulate).begin().unwrap().finish().unwrap();
    assert_eq!(errno(File::open(&image)), 0);
    assert_eq!(refused_calls(), 0, "reading is allowed");
    assert_eq!(errno(OpenOptions::new().write(true).open(&image)), libc::EPERM);
    assert_eq!(errno(File::create(folder.join("new"))), libc::EPERM);
    try_all(Role::Emulate);
}

#[test]
fn a_server_opens_files_later_only_in_a_folder_that_was_named() {
    let Some(folder) = child_folder() else {
        child("a_server_opens_files_later_only_in_a_folder_that_was_named");
        return;
    };
    let image = folder.join("image");
    let begun = Confinement::new(Role::Serve).opens_in(&folder).begin().unwrap();
    let guards_files = begun.status().guards_files;
    begun.finish().unwrap();
    assert_eq!(errno(OpenOptions::new().read(true).write(true).open(&image)), 0);
    if guards_files {
        assert_eq!(errno(File::open("/etc/passwd")), libc::EACCES);
    }
    assert_eq!(errno(File::create(folder.join("new"))), if guards_files { libc::EACCES } else { 0 });
}

/// The C library blocks signals while it starts a process, so the one that tells of a refused call ends this
/// one.
#[test]
fn a_program_that_is_started_ends_the_server() {
    const NAME: &str = "a_program_that_is_started_ends_the_server";
    if std::env::var_os(CHILD).is_some() {
        Confinement::new(Role::Serve).begin().unwrap().finish().unwrap();
        let _ = Command::new("true").status();
        return;
    }
    assert_eq!(run_child(NAME).status.signal(), Some(libc::SIGSYS));
}

#[test]
fn root_keeps_the_capabilities_of_its_role() {
    if std::env::var_os(CHILD).is_none() {
        // SAFETY: it takes nothing.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: only root has capabilities to give up");
            return;
        }
        child("root_keeps_the_capabilities_of_its_role");
        return;
    }
    let begun = Confinement::new(Role::Serve).begin().unwrap();
    let kept = begun.status().capabilities.clone();
    assert!(kept.contains(&"CAP_DAC_OVERRIDE") && !kept.contains(&"CAP_SYS_ADMIN"), "{kept:?}");
    let bits = |name: &str| u64::from_str_radix(&status_line(name), 16).unwrap();
    assert_eq!(bits("CapEff").count_ones() as usize, kept.len());
    assert_eq!((bits("CapPrm"), bits("CapInh")), (bits("CapEff"), 0));
    assert_eq!(errno(std::os::unix::fs::chroot("/")), libc::EPERM);
}
