//! Processes: those that play a [role](crate::roles), and what the kernel counts of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to end.
const ENDS: Duration = Duration::from_secs(5);

/// This program in a role, killed when it is dropped; a server ends by itself before that, so that a mount of
/// it is taken away.
pub(crate) struct Player {
    child: Child,
    is_server: bool,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Player {
    /// Starts it.
    pub(crate) fn start(role: &[&str]) -> Self {
        let this = std::env::current_exe().expect("this program");
        Self::begin(Command::new(this).arg("role").args(role))
    }

    /// Starts a command that plays a role.
    pub(crate) fn begin(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this program starts again");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { input: child.stdin.take(), is_server: false, child, output }
    }

    /// Starts a server, which ends when its standard input does.
    pub(crate) fn server(role: &[&str]) -> Self {
        let mut server = Self::start(role);
        server.is_server = true;
        server
    }

    /// The next line that it says; empty if it has ended.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line);
        line.trim_end().to_owned()
    }

    /// The processor time that it has used, in seconds.
    pub(crate) fn processor_time(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        // Behind the name the state is first; user and system time are the twelfth and the next.
        let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok());
        ticks.sum::<f64>() / 100.0
    }

    /// A line of its status, in MiB.
    pub(crate) fn mib(&self, key: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + ENDS;
        while self.is_server && Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
