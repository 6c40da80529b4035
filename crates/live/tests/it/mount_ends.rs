//! A mount ends, whatever else the process does meanwhile.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::scratch::Scratch;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a file of a mount that has ended may take to close.
const CLOSED_MAX: Duration = Duration::from_secs(10);

/// Starts `true` in another thread. The child stops before it runs the program, and holds copies of all
/// descriptors meanwhile, until the returned pipe is written to. Returns once the child is there.
fn held_child() -> (io::PipeWriter, thread::JoinHandle<()>) {
    let (mut here, is_here) = io::pipe().unwrap();
    let (release, held) = io::pipe().unwrap();
    let (signal, wait) = (is_here.as_raw_fd(), release.as_raw_fd());
    let starter = thread::spawn(move || {
        let _kept = (is_here, release);
        let mut command = Command::new("true");
        let hold = move || {
            let mut byte = 0_u8;
            // SAFETY: both descriptors are open, and `byte` is one byte. `write` and `read` may be called
            // between `fork` and `exec`.
            unsafe {
                libc::write(signal, (&raw const byte).cast(), 1);
                libc::read(wait, (&raw mut byte).cast(), 1);
            }
            Ok(())
        };
        // SAFETY: it makes two system calls and allocates nothing.
        unsafe { command.pre_exec(hold) };
        command.status().unwrap();
    });
    here.read_exact(&mut [0]).unwrap();
    (held, starter)
}

/// A program that is being started has copies of the mount's descriptors. A file that it closes then must
/// not wait for an answer of an engine that has ended.
#[test]
fn a_mount_ends_while_another_thread_starts_a_program() {
    let Some(scratch) = Scratch::new() else { return };
    // Written below: the mount has not been asked about a close before.
    fs::write(scratch.below("file"), b"text").unwrap();
    let mount = scratch.mount("noop");
    let file = File::open(scratch.at("file")).unwrap();
    let connection = libc::minor(file.metadata().unwrap().dev());
    let (mut held, starter) = held_child();
    drop(mount);
    let (closed, is_closed) = mpsc::channel();
    let closer = thread::spawn(move || {
        drop(file);
        let _ = closed.send(());
    });
    let in_time = is_closed.recv_timeout(CLOSED_MAX);
    if in_time.is_err() {
        // Nothing else would end these threads.
        let _ = fs::write(format!("/sys/fs/fuse/connections/{connection}/abort"), "1");
    }
    held.write_all(&[0]).unwrap();
    starter.join().unwrap();
    closer.join().unwrap();
    assert!(in_time.is_ok(), "the file was not closed within {CLOSED_MAX:?}");
}
