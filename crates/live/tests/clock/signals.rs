//! Callers that get signals while they wait for the disk: those who end go at once, the others hear nothing
//! of it.

#![allow(clippy::disallowed_methods, reason = "what is stuck is stuck in real time")]

use crate::in_time::{in_time, timely};
use crate::scratch::Scratch;
use fairhead_device::DeviceParams;
use fairhead_live::{DiskOptions, Fault, FaultOp, Faults, Harm};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
/// How long the disk takes, and how soon a killed process has to be gone.
const STUCK: Duration = Duration::from_secs(30);
const AT_ONCE: Duration = Duration::from_secs(2);

/// What a program has, whichever operation it waits with: a file of 64 KiB, memory that direct I/O takes,
/// calls that are not begun again by the language, and a signal that is caught.
const BEGINNING: &str = "
import ctypes, mmap, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
heard = 0
def hear(*_):
    global heard
    heard += 1
signal.signal(signal.SIGALRM, hear)
name = sys.argv[1]
memory = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def call(f, *args):
    n = f(*args)
    if n < 0: sys.exit('errno %d' % ctypes.get_errno())
    return n
pread, pwrite = libc.pread64, libc.pwrite64
for f in pread, pwrite: f.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
";

/// A program in Python; `None` if there is no Python.
fn program(script: &str, file: &PathBuf) -> Option<(Child, impl BufRead + use<>)> {
    let script = format!("{BEGINNING}{script}");
    let ran = Command::new("python3").args(["-c", &script]).arg(file).stdout(Stdio::piped()).spawn();
    let mut child = ran.map_err(|e| eprintln!("skipped: python3: {e}")).ok()?;
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{script}");
    Some((child, said))
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: it names no memory; the child is ours and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

fn is_waiting(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// One program for each way to wait for the disk; each hears a signal that it handles and waits on, then is
/// killed.
#[test]
fn who_is_killed_does_not_wait_for_the_disk() {
    in_time(|| {
        let Some(scratch) = Scratch::new() else { return };
        let say = "print('ready', flush=True)\n";
        let ways = [
            (
                "direct read",
                "fd = os.open(name, os.O_RDONLY | os.O_DIRECT)",
                "call(pread, fd, address, 4096, 0)",
            ),
            ("read", "fd = os.open(name, os.O_RDONLY)", "call(pread, fd, address, 4096, 0)"),
            ("map", "m = mmap.mmap(os.open(name, os.O_RDONLY), 4096, prot=mmap.PROT_READ)", "m[5]"),
            (
                "direct write",
                "fd = os.open(name, os.O_WRONLY | os.O_DIRECT)",
                "call(pwrite, fd, address, 4096, 0)",
            ),
            ("write", "fd = os.open(name, os.O_WRONLY)", "call(pwrite, fd, address, 100, 50)"),
            ("sync", "fd = os.open(name, os.O_WRONLY)", "call(libc.fsync, fd)"),
            ("data sync", "fd = os.open(name, os.O_RDONLY)", "call(libc.fdatasync, fd)"),
            ("dirty map", "m = mmap.mmap(os.open(name, os.O_RDWR), 4096)", "m[5] = 1; m.flush()"),
        ];
        let faults = Faults::default();
        for op in [FaultOp::Read, FaultOp::Write, FaultOp::Flush] {
            for file in 0..4 * ways.len() as u32 {
                faults.add(Fault { op, file, bytes: 0..4096, times: u32::MAX, harm: Harm::Stuck(STUCK) });
            }
        }
        // All of them are at the disk at the same time.
        let mount = scratch.mount_with(DiskOptions::new::<PathBuf>([]).depth(32).faults(&faults));
        let mut programs = Vec::new();
        for (i, (what, open, wait)) in ways.into_iter().enumerate() {
            let name = format!("file{i}");
            fs::write(scratch.below(&name), vec![7; 65536]).unwrap();
            let script = format!("{open}\n{say}{wait}\n");
            let Some((child, _)) = program(&script, &scratch.at(&name)) else { return };
            programs.push((what, child));
        }
        sleep(300 * MS);
        for (what, child) in &mut programs {
            assert!(is_waiting(child), "{what}: the disk is slow");
            signal(child, libc::SIGALRM);
            signal(child, libc::SIGSTOP);
            signal(child, libc::SIGCONT);
        }
        sleep(100 * MS);
        let killed = Instant::now();
        for (what, child) in &mut programs {
            assert!(is_waiting(child), "{what}: it handles that signal, and waits on");
            child.kill().unwrap();
        }
        let mut late = programs;
        while !late.is_empty() && killed.elapsed() < AT_ONCE {
            late.retain_mut(|(_, child)| is_waiting(child));
            sleep(10 * MS);
        }
        let late: Vec<_> = late.into_iter().map(|(what, mut child)| (what, child.wait())).collect();
        timely(late.is_empty(), format_args!("they waited for the disk: {late:?}"));
        drop(mount);
    });
}

/// The process is ended by another signal than SIGKILL, such as Ctrl-C.
#[test]
fn who_is_terminated_does_not_wait_for_the_disk() {
    in_time(|| {
        let Some(scratch) = Scratch::new() else { return };
        let faults = Faults::default();
        for file in 0..4 {
            faults.add(Fault {
                op: FaultOp::Read,
                file,
                bytes: 0..4096,
                times: u32::MAX,
                harm: Harm::Stuck(STUCK),
            });
        }
        let mount = scratch.mount_with(DiskOptions::new::<PathBuf>([]).faults(&faults));
        fs::write(scratch.below("file"), vec![7; 65536]).unwrap();
        let script = "
signal.signal(signal.SIGTERM, signal.SIG_DFL)
fd = os.open(name, os.O_RDONLY | os.O_DIRECT)
print('ready', flush=True)
call(pread, fd, address, 4096, 0)
";
        let Some((mut child, _)) = program(script, &scratch.at("file")) else { return };
        sleep(200 * MS);
        assert!(is_waiting(&mut child), "the disk is slow");
        let begun = Instant::now();
        signal(&child, libc::SIGTERM);
        child.wait().unwrap();
        timely(begun.elapsed() < AT_ONCE, format_args!("gone after {:?}", begun.elapsed()));
        drop(mount);
    });
}

/// A timer that fires all the time, and a process that is stopped and continued: neither cuts a call short,
/// as with a disk of the kernel's.
#[test]
fn signals_that_are_handled_interrupt_no_call() {
    let Some(scratch) = Scratch::new() else { return };
    fs::write(scratch.below("file"), vec![7; 8 << 20]).unwrap();
    let slow = DeviceParams::preset("nas2020").unwrap();
    let mount = scratch.mount_with(DiskOptions::new::<PathBuf>([]).emulate(slow));
    let script = "
fd = os.open(name, os.O_RDWR | os.O_DIRECT)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
print('ready', flush=True)
for i in range(25):
    at = i * 7919 % 2048 * 4096
    if call(pread, fd, address, 4096, at) != 4096: sys.exit('short read')
    if call(pwrite, fd, address, 4096, at) != 4096: sys.exit('short write')
    if i % 5 == 0: call(libc.fsync, fd)
signal.setitimer(signal.ITIMER_REAL, 0)
print(heard, flush=True)
";
    let Some((mut child, mut said)) = program(script, &scratch.at("file")) else { return };
    while is_waiting(&mut child) {
        signal(&child, libc::SIGSTOP);
        sleep(5 * MS);
        signal(&child, libc::SIGCONT);
        sleep(20 * MS);
    }
    assert!(child.wait().unwrap().success());
    let mut heard = String::new();
    said.read_line(&mut heard).unwrap();
    assert!(heard.trim().parse::<u32>().unwrap() >= 10, "signals came while it waited: {heard}");
    drop(mount);
}
