//! The program, started and killed again.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

/// Killed when it is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    /// Not to be waited for any more.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, to be given arguments.
pub(crate) fn fairhead() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fairhead"))
}

/// Starts it, and waits for its first line, or the one behind what it says about a disk's depth. The rest of
/// its output is lost if the receiver is dropped.
pub(crate) fn start(command: &mut Command) -> (Process, String, BufReader<ChildStderr>) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    if line.contains("; depth ") && !line.contains("; Ctrl-C") {
        line.clear();
        said.read_line(&mut line).unwrap();
    }
    (Process(child), line, said)
}
