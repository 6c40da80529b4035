//! Control: any process that may open the socket can see what each group gets, and change it under load.
//!
//! ```text
//!   fairhead ctl, top ─unix socket─► lines of JSON ─┐
//!                                                   ├─ a thread of its own ─calls─► the engine
//!   Prometheus ───────HTTP, on request──────────────┘
//! ```
//!
//! One request is one line with one object ([`Request`]), and so is its answer: `{"ok":true,…}`, or
//! `{"error":"…"}` with a line for people. A client that has not read its last answer is not listened to; one
//! that takes ten seconds to finish a line, or to read an answer, is hung up on. There are sixteen places for
//! lines, and as many for metrics, whose port any user of the machine may open; when all of a kind are taken,
//! the client that has been silent the longest is dropped. What may take long, such as to open the file of an
//! export, has a thread of its own (`errands.rs`).
//!
//! The engine answers between two of its turns, as it answers any other thread, and copies its books in
//! microseconds; text is made of them here. A question within ten milliseconds of the last one gets the same
//! answer. All work of control has a part of the time: clients that ask without a pause wait.
//!
//! What it does not do: passwords. A unix socket is for its owner only; metrics are read-only, and refused
//! beyond this machine unless it is said that the network is trusted.

pub mod books;
mod caller;
mod change;
mod errands;
mod export_request;
mod guest;
#[cfg(test)]
mod neighbours;
mod pace;
mod report;
mod request;
#[cfg(test)]
mod request_tests;
mod value;
pub(crate) mod work;

pub use caller::Caller;
pub use change::{Change, GROUP_KEYS};
pub use export_request::ExportRequest;
pub use request::{LINE_MAX, Request, line_of_words, words};

use crate::clock::Clock;
use crate::disk::{Disk, Shared};
use crate::error::{Error, ErrorKind};
use crate::nbd::Exports;
use crate::socket::{ForWhom, SocketFile, open_unix};
use errands::Errands;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_core::units::{Duration, Instant};
use guest::{Guest, Said, Wants};
use pace::Pace;
use report::refusal;
use serde_json::{Value, json};
use std::io::{self, PipeReader, PipeWriter};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use work::Snapshot;

/// The most clients of each kind at a time.
const GUESTS_MAX: usize = 16;

/// A client that sent something within this time keeps its place when a new one comes.
const FRESH: Duration = Duration::from_secs(1);

/// The books are copied at most once in this time.
const SNAPSHOT_AGE: Duration = Duration::from_ms(10);

/// How often time-outs are looked at while there are clients, in milliseconds.
const TICK_MS: i32 = 250;

/// Where the control socket and the metrics are served.
#[derive(Clone, Debug, Default)]
pub struct ControlOptions {
    /// A unix socket, mode 0600.
    pub socket: Option<PathBuf>,
    /// Metrics for Prometheus over HTTP; port 0 is any that is free.
    pub metrics: Option<SocketAddr>,
    /// Whether that may be opened to other machines. Default false.
    pub trust_network: bool,
    /// The exports, if the disk is served over NBD.
    pub exports: Option<Exports>,
    /// The schedulers that `sched` finds by name. Default: the presets.
    pub catalogue: Catalogue,
}

/// A disk that can be controlled. When it is dropped, the socket is removed and clients are hung up on.
#[derive(Debug)]
pub struct ControlServer {
    _socket: Option<SocketFile>,
    metrics: Option<SocketAddr>,
    /// The thread ends when this is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    /// Says nothing, but ends with the thread.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// How long the thread may take to end: it may wait for an engine that the disk holds up.
const END_MAX: std::time::Duration = std::time::Duration::from_millis(500);

impl ControlServer {
    /// Listens.
    ///
    /// # Errors
    /// If a socket cannot be had.
    pub fn start(disk: &Disk, options: &ControlOptions) -> Result<Self, Error> {
        let failed = |e: io::Error| Error::new(ErrorKind::Socket, format!("control: {e}"));
        let (unix, socket) =
            options.socket.as_deref().map(|path| open_unix(path, ForWhom::Owner)).transpose()?.unzip();
        let tcp = options.metrics.map(|at| open_tcp(at, options.trust_network)).transpose()?;
        unix.as_ref().map_or(Ok(()), |l: &UnixListener| l.set_nonblocking(true)).map_err(failed)?;
        let metrics = tcp.as_ref().map(TcpListener::local_addr).transpose().map_err(failed)?;
        let (end, stop) = io::pipe().map_err(failed)?;
        let (shared, exports) = (disk.shared(), options.exports.clone());
        let clock = Clock::start();
        let errands = Errands::new(clock).map_err(failed)?;
        let (guests, catalogue, pace) = (Vec::new(), options.catalogue, Pace::default());
        let host = Host { shared, clock, books: None, exports, catalogue, unix, tcp, guests, errands, pace };
        let thread = thread::Builder::new().name("fairhead-ctl".to_owned());
        let (lives, ended) = mpsc::channel::<()>();
        let work = move || {
            let _lives = lives;
            host.work(&end);
        };
        let thread = thread.spawn(work).map_err(failed)?;
        let ended = Mutex::new(ended);
        Ok(Self { _socket: socket, metrics, stop: Some(stop), thread: Some(thread), ended })
    }

    /// Returns the address of the metrics, with the port that was chosen.
    #[must_use]
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_stuck = ended.recv_timeout(END_MAX) == Err(mpsc::RecvTimeoutError::Timeout);
        if let Some(thread) = self.thread.take().filter(|_| !is_stuck) {
            let _ = thread.join();
        }
    }
}

fn open_tcp(at: SocketAddr, trust_network: bool) -> Result<TcpListener, Error> {
    if !at.ip().is_loopback() && !trust_network {
        let why =
            format!("metrics: {at} can be reached from other machines, and clients are not authenticated");
        return Err(Error::new(ErrorKind::Socket, why));
    }
    let failed = |e: io::Error| Error::new(ErrorKind::Socket, format!("metrics: cannot listen on {at}: {e}"));
    let listener = TcpListener::bind(at).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The thread's.
struct Host {
    shared: Arc<Shared>,
    clock: Clock,
    /// What was copied last, and when.
    books: Option<(Instant, Snapshot)>,
    exports: Option<Exports>,
    catalogue: Catalogue,
    unix: Option<UnixListener>,
    tcp: Option<TcpListener>,
    guests: Vec<Guest>,
    errands: Errands,
    pace: Pace,
}

impl Host {
    fn work(mut self, end: &PipeReader) {
        while self.rest(end) {
            let mut polled =
                vec![wants(end.as_raw_fd(), libc::POLLIN), wants(self.errands.fd(), libc::POLLIN)];
            polled.extend(self.unix.iter().map(|l| wants(l.as_raw_fd(), libc::POLLIN)));
            polled.extend(self.tcp.iter().map(|l| wants(l.as_raw_fd(), libc::POLLIN)));
            polled.extend(self.guests.iter().map(|g| {
                let events = match g.wants() {
                    Wants::ToHear => libc::POLLOUT,
                    Wants::ToSpeak => libc::POLLIN,
                    Wants::Nothing => 0,
                };
                wants(g.fd(), events)
            }));
            let is_busy = self.guests.iter().any(Guest::has_said_something);
            let most = if is_busy { 0 } else { TICK_MS };
            if wait(&mut polled, if self.guests.is_empty() { -1 } else { most }).is_err() {
                return;
            }
            if polled[0].revents != 0 {
                return;
            }
            let now = self.clock.now();
            let has_news = polled[1].revents != 0;
            let ready = polled[polled.len() - self.guests.len()..].iter().map(|p| p.revents != 0);
            for (guest, is_ready) in self.guests.iter_mut().zip(ready) {
                if is_ready {
                    guest.exchange(now);
                }
            }
            // One line of each, so that none keeps the others waiting.
            let mut guests = std::mem::take(&mut self.guests);
            for guest in &mut guests {
                if let Some(said) = guest.next(now) {
                    match self.answer(&said) {
                        Ok(answer) => guest.tell(now, answer),
                        Err(errand) => guest.wait_for(errand),
                    }
                }
            }
            for (errand, answer, took) in if has_news { self.errands.take() } else { Vec::new() } {
                self.pace.worked(now, took);
                // One that has gone has no use for it.
                if let Some(guest) = guests.iter_mut().find(|guest| guest.waits_for(errand)) {
                    guest.tell(now, answer);
                }
            }
            guests.retain(|guest| !guest.is_gone(now));
            self.guests = guests;
            self.welcome(now);
            let end = self.clock.now();
            self.pace.worked(end, end.saturating_since(now));
        }
    }

    /// Waits as long as work has had more than its part. Returns whether the thread is to continue.
    fn rest(&self, end: &PipeReader) -> bool {
        loop {
            let pause = self.pace.pause(self.clock.now());
            if pause.is_zero() {
                return true;
            }
            let mut polled = [wants(end.as_raw_fd(), libc::POLLIN)];
            let ms = pause.as_ms().saturating_add(1).try_into().unwrap_or(libc::c_int::MAX);
            if wait(&mut polled, ms).is_err() || polled[0].revents != 0 {
                return false;
            }
        }
    }

    /// Lets those in who are at the door.
    fn welcome(&mut self, now: Instant) {
        for _ in 0..GUESTS_MAX {
            let unix = self.unix.as_ref().and_then(|l| comes(l.accept()));
            let found = match unix {
                Some(stream) => Some(Guest::with_lines(stream, now)),
                None => {
                    let tcp = self.tcp.as_ref().and_then(|l| comes(l.accept()));
                    tcp.map(|stream| Guest::with_http(stream, now))
                }
            };
            let Some(found) = found else { return };
            let Ok(mut guest) = found else { continue };
            let is_alike = |&i: &usize| self.guests[i].is_http() == guest.is_http();
            let alike = || (0..self.guests.len()).filter(is_alike);
            if alike().count() >= GUESTS_MAX {
                let silent = alike().min_by_key(|&i| self.guests[i].last_heard()).unwrap_or(0);
                if now.saturating_since(self.guests[silent].last_heard()) < FRESH {
                    guest.tell(now, refusal(&format!("all {GUESTS_MAX} places are taken")));
                    continue;
                }
                self.guests.swap_remove(silent);
            }
            self.guests.push(guest);
        }
    }

    /// An answer, or the number of the errand that has one later.
    fn answer(&mut self, said: &Said) -> Result<String, u64> {
        Ok(match said {
            Said::Line(line) => match Request::parse(line, &self.catalogue) {
                Ok(Request::Export(request)) if request != ExportRequest::List => {
                    return self.begin(request).map_or_else(|why| Ok(refusal(&why)), Err);
                }
                request => answered(request.and_then(|request| self.ask(request))),
            },
            Said::TooLong => refusal(&format!("a line has at most {LINE_MAX} bytes")),
            Said::Get => match self.books() {
                Ok(books) => http("200 OK", &report::prometheus(books)),
                Err(why) => http("503 Service Unavailable", &(why + "\n")),
            },
            Said::NotFound => http("404 Not Found", "there is /metrics\n"),
        })
    }

    /// Begins a change of the exports, whose files may take their time.
    fn begin(&mut self, request: ExportRequest) -> Result<u64, String> {
        let exports = self.exports.clone().ok_or(NO_EXPORTS)?;
        let work = move || answered(work::export(&exports, &request).map_err(|e| e.to_string()));
        self.errands.begin(work)
    }

    fn ask(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Stats => {
                let mut answer = report::json(self.books()?);
                if let Some(exports) = &self.exports {
                    answer["exports"] = report::exports(&exports.look());
                }
                answer["ok"] = true.into();
                Ok(answer)
            }
            Request::Export(request) => {
                let exports = self.exports.as_ref().ok_or(NO_EXPORTS)?;
                work::export(exports, &request).map_err(|e| e.to_string())
            }
            Request::Metrics => Ok(json!({ "ok": true, "metrics": report::prometheus(self.books()?) })),
            _ => {
                self.books = None;
                let done = self.shared.call(move |context| work::change(context, &request));
                done.map_err(|e| e.to_string())?.map(|()| json!({ "ok": true }))
            }
        }
    }

    fn books(&mut self) -> Result<&Snapshot, String> {
        let now = self.clock.now();
        let is_old = |at: Instant| now.saturating_since(at) > SNAPSHOT_AGE;
        if self.books.as_ref().is_none_or(|b| is_old(b.0)) {
            let books = self.shared.call(|context| Snapshot::take(context)).map_err(|e| e.to_string())?;
            self.books = Some((now, books));
        }
        Ok(&self.books.as_ref().expect("just put there").1)
    }
}

/// Returns the client that was accepted, if there is one.
fn comes<S, A>(found: io::Result<(S, A)>) -> Option<S> {
    let not_now = |e: &io::Error| e.kind() != io::ErrorKind::WouldBlock;
    if found.as_ref().is_err_and(not_now) {
        // Too few file descriptors, for example: the client waits, which is no reason to be busy.
        thread::sleep(std::time::Duration::from_millis(50));
    }
    found.ok().map(|(stream, _)| stream)
}

/// Why there is nothing about exports.
const NO_EXPORTS: &str = "a mount has no exports";

fn answered(result: Result<Value, String>) -> String {
    result.map_or_else(|why| refusal(&why), |answer| answer.to_string() + "\n")
}

fn http(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

const fn wants(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Until something can be done, or that many milliseconds.
fn wait(polled: &mut [libc::pollfd], most_ms: i32) -> io::Result<()> {
    // SAFETY: the kernel reads and writes the slice during the call only.
    let n = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, most_ms) };
    let e = io::Error::last_os_error();
    if n < 0 && e.kind() != io::ErrorKind::Interrupted { Err(e) } else { Ok(()) }
}
