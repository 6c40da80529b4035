//! A client of the control socket: bytes in, lines out, and the answers that it has not read yet.

use super::request::LINE_MAX;
use fairhead_core::units::{Duration, Instant};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// The longest that a client may take for a line, or to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request of HTTP with all it says besides.
const HTTP_MAX: usize = 8 << 10;

/// The most bytes that one call reads.
const CHUNK: usize = 16 << 10;

/// The most bytes of a request that is too long which are read and thrown away: a client that is still
/// sending it does not hear the answer before it has sent all.
const WASTE_MAX: usize = 16 << 20;

trait Stream: Read + Write + AsRawFd + AsFd + Send {}
impl Stream for UnixStream {}
impl Stream for TcpStream {}

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Line(Vec<u8>),
    /// More than a line may be; the last of this client.
    TooLong,
    /// The metrics.
    Get,
    /// Something else of HTTP.
    NotFound,
}

/// What the next thing is with a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wants {
    /// It has an answer to read.
    ToHear,
    /// It may say something.
    ToSpeak,
    Nothing,
}

/// See the [module](self).
pub(super) struct Guest {
    stream: Box<dyn Stream>,
    is_http: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// The bytes of `output` that have been sent.
    sent: usize,
    /// Says nothing more; goes when what it said is answered.
    is_done: bool,
    is_broken: bool,
    /// The number of the errand that it waits for.
    awaits: Option<u64>,
    /// Of one whose request was too long: how many bytes may still be thrown away.
    waste: Option<usize>,
    /// Since when there is half a line, or an answer that is not read.
    since: Option<Instant>,
    heard: Instant,
}

impl Guest {
    /// Makes a client that sends lines.
    pub(super) fn with_lines(stream: UnixStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(Box::new(stream), false, now))
    }

    /// Makes a client that asks for metrics over HTTP.
    pub(super) fn with_http(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(Box::new(stream), true, now))
    }

    fn new(stream: Box<dyn Stream>, is_http: bool, now: Instant) -> Self {
        Self {
            stream,
            is_http,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            is_done: false,
            is_broken: false,
            awaits: None,
            waste: None,
            // A client that wants metrics sends its request at once.
            since: is_http.then_some(now),
            heard: now,
        }
    }

    /// Its descriptor; none (-1) while there is nothing to wait for, as one that has hung up is always ready.
    pub(super) fn fd(&self) -> RawFd {
        if self.awaits.is_some() { -1 } else { self.stream.as_raw_fd() }
    }

    /// Whether it came for metrics, by the socket for these.
    pub(super) const fn is_http(&self) -> bool {
        self.is_http
    }

    /// It waits for an errand.
    pub(super) const fn wait_for(&mut self, errand: u64) {
        self.awaits = Some(errand);
        self.since = None;
    }

    /// Whether it waits for this errand.
    pub(super) fn waits_for(&self, errand: u64) -> bool {
        self.awaits == Some(errand)
    }

    pub(super) const fn last_heard(&self) -> Instant {
        self.heard
    }

    /// What its stream is waited for. As long as a request of its is here, nothing more is read.
    pub(super) fn wants(&self) -> Wants {
        if self.has_to_read() {
            Wants::ToHear
        } else if self.waste.is_some() {
            Wants::ToSpeak
        } else if self.is_done || self.awaits.is_some() || self.has_said_something() {
            Wants::Nothing
        } else {
            Wants::ToSpeak
        }
    }

    /// Whether it has an answer to read first.
    fn has_to_read(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether there is a request that can be answered now.
    pub(super) fn has_said_something(&self) -> bool {
        !self.has_to_read() && !self.is_broken && self.awaits.is_none() && self.end_of_request().is_some()
    }

    /// The stream is ready for whatever is next.
    pub(super) fn exchange(&mut self, now: Instant) {
        match self.wants() {
            Wants::ToHear => self.send(),
            Wants::ToSpeak => self.receive(now),
            Wants::Nothing => {}
        }
    }

    fn send(&mut self) {
        while self.has_to_read() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(n) if n > 0 => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    self.is_broken = true;
                    return;
                }
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        if self.waste.is_none() {
            self.since = None;
        } else if shutdown(self.stream.as_fd(), Shutdown::Write).is_err() {
            // It hears that this was all, and may be sending still.
            self.is_broken = true;
        }
    }

    fn receive(&mut self, now: Instant) {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(n) if self.waste.is_some() => {
                self.waste = self.waste.and_then(|left| left.checked_sub(n)).filter(|_| n > 0);
                self.is_broken = self.waste.is_none();
            }
            Ok(0) => {
                // What it said last counts, also without an end of line.
                if !self.is_http && self.input.last().is_some_and(|&b| b != b'\n') {
                    self.input.push(b'\n');
                }
                self.is_done = true;
            }
            Ok(n) => {
                self.input.extend_from_slice(&chunk[..n]);
                self.heard = now;
                self.since = self.since.or(Some(now));
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.is_broken = true,
        }
    }

    /// How long the request is that is here in whole, or too long to be.
    fn end_of_request(&self) -> Option<usize> {
        let (end, most) = if self.is_http {
            let end = self.input.windows(4).position(|w| w == b"\r\n\r\n").map(|i| i + 4);
            (end.or_else(|| self.input.windows(2).position(|w| w == b"\n\n").map(|i| i + 2)), HTTP_MAX)
        } else {
            (self.input.iter().position(|&b| b == b'\n').map(|i| i + 1), LINE_MAX + 1)
        };
        end.filter(|&end| end <= most).or((self.input.len() >= most).then_some(usize::MAX))
    }

    /// What it wants next, if it has had the last answer.
    pub(super) fn next(&mut self, now: Instant) -> Option<Said> {
        loop {
            if !self.has_said_something() {
                return None;
            }
            let end = self.end_of_request()?;
            if end > self.input.len() {
                self.is_done = true;
                self.input = Vec::new();
                self.waste = Some(WASTE_MAX);
                return Some(if self.is_http { Said::NotFound } else { Said::TooLong });
            }
            let mut line: Vec<u8> = self.input.drain(..end).collect();
            self.since = (!self.input.is_empty()).then_some(now);
            if self.is_http {
                self.is_done = true;
                let is_metrics = [&b"GET /metrics "[..], b"GET / "];
                let is_metrics = is_metrics.iter().any(|start| line.starts_with(start));
                return Some(if is_metrics { Said::Get } else { Said::NotFound });
            }
            line.truncate(line.trim_ascii_end().len());
            // An empty line is nothing to answer.
            if !line.is_empty() {
                return Some(Said::Line(line));
            }
        }
    }

    /// An answer.
    pub(super) fn tell(&mut self, now: Instant, answer: String) {
        self.output = answer.into_bytes();
        self.awaits = None;
        self.since = Some(now);
        self.send();
        if !self.has_to_read() && !self.input.is_empty() {
            self.since = Some(now);
        }
    }

    /// Whether there is nothing more to do for it, or no hope.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        let is_late = self.since.is_some_and(|since| now.saturating_since(since) > PATIENCE);
        let has_more = self.has_to_read() || self.awaits.is_some() || self.waste.is_some();
        let has_ended = self.is_done && !has_more && self.end_of_request().is_none();
        self.is_broken || is_late || has_ended
    }
}
