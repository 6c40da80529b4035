//! Recorded start-ups: the block traces that `fh_startup_trace` replays.
//!
//! A line is a request, its fields apart by blanks, as the I/O snooper of the S benchmark suite writes them:
//!
//! ```text
//! process      time     sectors start     kind  distance  hits  flags  stamp     event
//! xterm-31657  .015820  8       113248520 Rand  -65536    0     RA     4.682409  C
//! ```
//!
//! A replay needs five of them: who, how much, whether it continues the request before (`Seq`) or jumps
//! (`Rand`), and from the flags whether it is read-ahead, which no call waits for (`RA`), and of metadata
//! (`M`). Whatever is not read-ahead is synchronous, and all of it is replayed as reads, as the suite's own
//! replayer does: writes (`WS`), too. Times are checked to be there and not used.
//!
//! `fairhead-trace` reads these files too, for replays at the recorded times ([`crate::replay`]); it passes
//! over whether a request jumps, which here is what the file's layout is made from.
//
//= docs/reference/benchmarks.md#4-replayed-start-ups the traces' own notes

use std::sync::Arc;

use super::error::{JobError, clean};

/// The most bytes that a trace may have: a hundred times a long one.
pub const TRACE_BYTES_MAX: usize = 16 << 20;
/// The most processes of a trace.
pub const TRACE_PROCESSES_MAX: usize = 256;
/// The longest request: far beyond what a disk takes at a time.
const SECTORS_MAX: u32 = 1 << 16;
const FIELDS: usize = 10;

/// A file with a recorded start-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// Its path, as written.
    pub path: String,
    /// The line that names it.
    pub line: u32,
    /// The contents, once [`JobFile::read_traces`](super::JobFile::read_traces) has read them.
    pub trace: Option<Arc<StartUpTrace>>,
}

/// A recorded start-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartUpTrace {
    /// The processes' names, in the order in which they appear; at least one.
    pub processes: Vec<String>,
    /// The requests in the order in which they were made; at least one.
    pub requests: Vec<TraceRequest>,
}

/// A request of a recorded start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRequest {
    /// The process that made it: an index into [`StartUpTrace::processes`].
    pub process: u16,
    /// The number of sectors, at least one.
    pub sectors: u32,
    /// `Rand`: it does not continue where the process's request before ended.
    pub jumps: bool,
    /// Flag `A`: read-ahead, which no call waits for.
    pub ahead: bool,
    /// Flag `M`: metadata.
    pub meta: bool,
}

impl StartUpTrace {
    /// Reads a trace. `file_name` is for messages only.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    ///
    /// ```
    /// use fairhead_sim::job::StartUpTrace;
    /// let line = "sh-7 .000066 8 113248528 Seq 0 8 RA 4.682475 C\n";
    /// let trace = StartUpTrace::parse(line.as_bytes(), "sh.trace").unwrap();
    /// assert!(trace.requests[0].ahead && !trace.requests[0].jumps);
    /// let error = StartUpTrace::parse(b"sh-7 .000066 8\n", "sh.trace").unwrap_err();
    /// assert!(error.to_string().starts_with("sh.trace:1: 3 fields"));
    /// ```
    pub fn parse(bytes: &[u8], file_name: &str) -> Result<Self, JobError> {
        let fail = |line, message| JobError { file: file_name.to_owned(), line, message };
        if bytes.len() > TRACE_BYTES_MAX {
            return Err(fail(0, format!("{} bytes; a trace has at most {TRACE_BYTES_MAX}", bytes.len())));
        }
        let mut trace = Self { processes: Vec::new(), requests: Vec::new() };
        for (line, number) in bytes.split(|b| *b == b'\n').zip(1..) {
            trace.line(line).map_err(|message| fail(number, message))?;
        }
        if trace.requests.is_empty() {
            return Err(fail(0, "it has no requests".to_owned()));
        }
        Ok(trace)
    }

    /// The longest request, in sectors.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.requests.iter().map(|r| u64::from(r.sectors)).max().unwrap_or(0)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "not a text in UTF-8".to_owned())?;
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [process, time, sectors, start, kind, distance, hits, flags, stamp, _event] = fields[..] else {
            return match fields.len() {
                0 => Ok(()),
                n => Err(format!(
                    "{n} fields; a request has {FIELDS}: process, time, sectors, start, Seq or Rand, distance, hits, flags, stamp, event"
                )),
            };
        };
        for (what, text) in [("time", time), ("stamp", stamp)] {
            seconds(text).ok_or_else(|| format!("'{}' is not a {what} in seconds", clean(text)))?;
        }
        for (what, text) in [("start", start), ("distance", distance), ("hit count", hits)] {
            text.parse::<i64>().map_err(|_| format!("'{}' is not a {what}", clean(text)))?;
        }
        let sectors = match sectors.parse() {
            Ok(n) if (1..=SECTORS_MAX).contains(&n) => n,
            _ => {
                return Err(format!(
                    "'{}' is not a number of sectors from 1 to {SECTORS_MAX}",
                    clean(sectors)
                ));
            }
        };
        let jumps = match kind {
            "Seq" => false,
            "Rand" => true,
            _ => return Err(format!("'{}' is neither Seq nor Rand", clean(kind))),
        };
        if !flags.starts_with(['R', 'W']) || flags[1..].chars().any(|c| !"ASMF".contains(c)) {
            return Err(format!(
                "flags '{}' are not those of a read or write: R or W, with A for read-ahead, S for sync, M for metadata and F for FUA",
                clean(flags)
            ));
        }
        let ahead = flags.starts_with('R') && flags.contains('A');
        let meta = flags.contains('M');
        let process = self.process(process)?;
        self.requests.push(TraceRequest { process, sectors, jumps, ahead, meta });
        Ok(())
    }

    fn process(&mut self, name: &str) -> Result<u16, String> {
        let known = self.processes.iter().position(|p| p == name);
        let index = known.unwrap_or(self.processes.len());
        if known.is_none() {
            if index == TRACE_PROCESSES_MAX {
                return Err(format!("more than {TRACE_PROCESSES_MAX} processes"));
            }
            self.processes.push(name.to_owned());
        }
        u16::try_from(index).map_err(|e| e.to_string())
    }
}

/// Seconds as the snooper writes them: `0`, `.000066`, `4.682475`.
fn seconds(text: &str) -> Option<()> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    (digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty())).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "xterm-1 .000066 8 113248528 Rand -427336 8 RM 4.682475 START";

    fn error(text: &str) -> String {
        StartUpTrace::parse(text.as_bytes(), "x.trace").unwrap_err().to_string()
    }

    #[test]
    fn requests_keep_who_how_much_and_how() {
        let text = format!("{LINE}\n\n  Xorg-2\t0 256 9 Seq 0 0 R 1 C\r\nxterm-1 1.5 16 9 Seq 0 0 RA 1. C");
        let t = StartUpTrace::parse(text.as_bytes(), "x").unwrap();
        assert_eq!(t.processes, ["xterm-1", "Xorg-2"]);
        let r = |process, sectors, jumps, ahead, meta| TraceRequest { process, sectors, jumps, ahead, meta };
        assert_eq!(
            t.requests,
            [r(0, 8, true, false, true), r(1, 256, false, false, false), r(0, 16, false, true, false)]
        );
    }

    #[test]
    fn what_is_not_read_ahead_is_synchronous() {
        let ahead = |flags: &str| {
            let line = LINE.replacen(" RM ", &format!(" {flags} "), 1);
            StartUpTrace::parse(line.as_bytes(), "x").unwrap().requests[0].ahead
        };
        assert!(ahead("RA") && ahead("RAM"));
        assert!(!["R", "RM", "RS", "RSM", "W", "WS", "WSM", "WA", "WFS"].map(ahead).contains(&true));
    }

    #[test]
    fn damage_is_told_in_a_line_with_its_place() {
        let second = |line: &str| error(&format!("{LINE}\n{line}\n"));
        assert_eq!(error(""), "x.trace: it has no requests");
        assert!(
            second("xterm-1 .000066 8 1132").starts_with("x.trace:2: 4 fields; a request has 10: process")
        );
        let replaced = |from: &str, to: &str| second(&LINE.replacen(from, to, 1));
        assert_eq!(replaced(" 8 ", " 0 "), "x.trace:2: '0' is not a number of sectors from 1 to 65536");
        assert_eq!(
            replaced(" 8 ", " 65537 "),
            "x.trace:2: '65537' is not a number of sectors from 1 to 65536"
        );
        assert_eq!(replaced("Rand", "rand"), "x.trace:2: 'rand' is neither Seq nor Rand");
        assert_eq!(replaced("113248528", "12x"), "x.trace:2: '12x' is not a start");
        assert_eq!(replaced("-427336", "--1"), "x.trace:2: '--1' is not a distance");
        assert_eq!(replaced(".000066", "."), "x.trace:2: '.' is not a time in seconds");
        assert_eq!(replaced("4.682475", "now"), "x.trace:2: 'now' is not a stamp in seconds");
        assert_eq!(
            replaced(" RM ", " RX "),
            "x.trace:2: flags 'RX' are not those of a read or write: R or W, with A for read-ahead, S for sync, M for metadata and F for FUA"
        );
        let e = StartUpTrace::parse(&[LINE.as_bytes(), b"\n\xff\xfe\n"].concat(), "x.trace").unwrap_err();
        assert_eq!(e.to_string(), "x.trace:2: not a text in UTF-8");
    }

    #[test]
    fn a_trace_has_limits() {
        let line = |i: usize| LINE.replacen("xterm-1", &format!("p-{i}"), 1) + "\n";
        let many: String = (0..=TRACE_PROCESSES_MAX).map(line).collect();
        assert_eq!(error(&many), format!("x.trace:{}: more than 256 processes", TRACE_PROCESSES_MAX + 1));
        let long = vec![b'\n'; TRACE_BYTES_MAX + 1];
        assert!(StartUpTrace::parse(&long, "x").is_err());
    }

    #[test]
    fn whatever_the_bytes_there_is_an_answer_in_one_line() {
        let mut rng = crate::rng::Rng::new(1, "trace");
        for _ in 0..2000 {
            let mut bytes = format!("{LINE}\n{LINE}\n").into_bytes();
            for _ in 0..=rng.below(4) {
                let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
                bytes[at] = rng.next_u64().to_le_bytes()[0];
            }
            if let Err(e) = StartUpTrace::parse(&bytes, "x") {
                assert!(!e.to_string().contains('\n'), "{e:?}");
            }
        }
    }
}
