//! fio's own logs of a run: `write_bw_log`, `write_lat_log` and `write_iops_log`, a file for each client and
//! figure.
//!
//! ```text
//! 125, 22944, 0, 65536, 0      ms from the client's first call, value, direction (0 read, 1 write, 2 trim), bytes, priority
//! 500, 128, 1, 0, 0            with log_avg_msec=500: of the calls that ended in these 500 ms, the mean
//! ```
//!
//! A value is a latency in ns, 1 call, or the bandwidth of the call alone; the mean of bandwidths is the
//! bytes of the interval over its length in KiB/s, and that of calls is per second. The bandwidth of a call
//! alone is in units of 1000 bytes per second: fio's manual says KiB/s, and fio does otherwise. A call has no
//! submission latency of its own here, so `_slat` is empty, as with fio's psync, and `_clat` is `_lat`.
//!
//! `write_hist_log` has a line for each `log_hist_msec` and direction in which calls ended: ms, direction,
//! bytes of the last call, and 1856 counts of latencies, or half of that for each step of
//! `log_hist_coarseness`. A latency up to 64 ns has a count of its own; above, each power of two has 64. What
//! ended after the last whole interval is in no line.
//!
//! With `log_unix_epoch` times are those of the simulated clock, in which the run begins at 1970-01-01
//! 00:00:00 UTC.
//!
//! What it does not do: keep calls before the end of `ramp_time`, or syncs. It takes 40 bytes for each call
//! until the files are written.
//
//= fio-3.33 HOWTO "Log File Formats"; the units, names and columns were seen

use super::{Call, CallKind, Run, Sink};
use crate::job::JobFile;
use fairhead_core::Duration;
use std::fmt::Write as _;

/// Which figures of a job's calls are written to files, and how: the options `write_bw_log` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// `write_bw_log`: how its file's name begins; empty for the job's name.
    pub bandwidth: Option<String>,
    /// `write_lat_log`.
    pub latency: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `log_avg_msec`: a line for each interval of that length. Zero, the default: for each call.
    pub interval: Duration,
    /// `log_offset`: another column with the offset in the file.
    pub offset: bool,
    /// `write_hist_log`: a histogram of completion latencies for each `log_hist_msec`.
    pub histogram: Option<String>,
    /// `log_hist_msec`. Zero, the default: no histograms.
    pub hist_interval: Duration,
    /// `log_hist_coarseness`, 0 to 6: of how many counts one is made, as a power of two.
    pub coarseness: u32,
    /// `log_max_value`: the largest value of an interval instead of the mean.
    pub maxima: bool,
    /// `log_unix_epoch`: times are those of the clock, not from the client's first call.
    pub of_clock: bool,
    /// `per_job_logs=0`: clients whose logs have the same name write into one file.
    pub shared: bool,
}

impl Logs {
    /// Whether nothing is written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bandwidth.is_none() && self.latency.is_none() && self.iops.is_none() && self.histogram.is_none()
    }
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
struct Done {
    at: Duration,
    latency: Duration,
    bytes: u64,
    way: u8,
    offset: u64,
}

/// Keeps what the logs of a run need.
#[derive(Debug)]
pub struct Recorder {
    /// By client: whether it has logs, when its first call began, and its calls.
    clients: Vec<(bool, Option<Duration>, Vec<Done>)>,
}

/// What a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Bandwidth,
    Latency,
    Iops,
    /// The submission latency: nothing.
    None,
    Histogram,
}

/// The files of a client: name and what is in them. `part` is put between the name and its ending; empty, or
/// a scheduler's name if there are several.
fn files(jobs: &JobFile, client: usize, part: &str) -> Vec<(String, Figure)> {
    let Some(c) = jobs.clients().nth(client) else { return Vec::new() };
    let logs = &c.job.logs;
    let all = [
        (&logs.bandwidth, "bw", Figure::Bandwidth),
        (&logs.latency, "lat", Figure::Latency),
        (&logs.latency, "clat", Figure::Latency),
        (&logs.latency, "slat", Figure::None),
        (&logs.iops, "iops", Figure::Iops),
        (&logs.histogram, "clat_hist", Figure::Histogram),
    ];
    let named = |(name, kind, figure): (&Option<String>, &str, Figure)| {
        let name = name.as_ref()?;
        let name = if name.is_empty() { &c.job.name } else { name };
        let number = if logs.shared { String::new() } else { format!(".{}", client + 1) };
        Some((format!("{name}{part}_{kind}{number}.log"), figure))
    };
    all.into_iter().filter_map(named).collect()
}

/// The names of all files that a run writes.
#[must_use]
pub fn names(jobs: &JobFile, part: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (name, _) in (0..jobs.clients().count()).flat_map(|i| files(jobs, i, part)) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

impl Recorder {
    /// For a run of these jobs.
    #[must_use]
    pub fn new(jobs: &JobFile) -> Self {
        let clients = jobs.clients().map(|c| (!c.job.logs.is_empty(), None, Vec::new())).collect();
        Self { clients }
    }

    /// The files: names, and what is in them. Clients that share a file are in it one after the other.
    #[must_use]
    pub fn finish(self, jobs: &JobFile, part: &str) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (i, (_, origin, calls)) in self.clients.iter().enumerate() {
            for (name, figure) in files(jobs, i, part) {
                let logs = jobs.clients().nth(i).map(|c| c.job.logs.clone()).unwrap_or_default();
                let origin = origin.filter(|_| !logs.of_clock).unwrap_or_default();
                let text = text(&logs, figure, origin, calls);
                match all.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, before)) => before.push_str(&text),
                    None => all.push((name, text)),
                }
            }
        }
        all
    }
}

impl Sink for Recorder {
    fn begins(&mut self, _: &Run) {}

    fn call(&mut self, call: &Call) {
        let Some((true, origin, calls)) = self.clients.get_mut(call.client) else { return };
        origin.get_or_insert(call.began);
        let way = match call.kind {
            CallKind::Read => 0,
            CallKind::Write => 1,
            CallKind::Trim => 2,
            CallKind::Sync => return,
        };
        let Some(at) = call.ended.filter(|_| call.measured) else { return };
        let (bytes, offset) = (call.bytes, call.offset);
        calls.push(Done { at, latency: at - call.began, bytes, way, offset });
    }
}

/// A file's lines.
fn text(logs: &Logs, figure: Figure, origin: Duration, calls: &[Done]) -> String {
    let mut text = String::new();
    if figure == Figure::None {
        return text;
    }
    if figure == Figure::Histogram {
        return histograms(logs, origin, calls);
    }
    if !logs.interval.is_zero() {
        return means(logs, figure, origin, calls);
    }
    for c in calls {
        let value = match figure {
            Figure::Bandwidth => c.bytes.saturating_mul(1_000_000) / c.latency.as_ns().max(1),
            Figure::Latency => c.latency.as_ns(),
            Figure::Iops | Figure::None | Figure::Histogram => 1,
        };
        let _ = write!(text, "{}, {value}, {}, {}, ", c.at.saturating_sub(origin).as_ms(), c.way, c.bytes);
        if logs.offset {
            let _ = write!(text, "{}, ", c.offset);
        }
        text.push_str("0\n");
    }
    text
}

/// A line for each interval and direction in which a call ended.
fn means(logs: &Logs, figure: Figure, origin: Duration, calls: &[Done]) -> String {
    let (mut text, interval) = (String::new(), logs.interval);
    let number = |c: &Done| c.at.saturating_sub(origin).as_ns() / interval.as_ns();
    for these in calls.chunk_by(|a, b| number(a) == number(b)) {
        let end = interval * (number(&these[0]) + 1);
        for way in 0..3 {
            let mine = || these.iter().filter(|c| c.way == way);
            let count = mine().count() as u64;
            if count == 0 {
                continue;
            }
            let per_s = |n: u64| crate::metrics::rate(n, interval);
            let value = match figure {
                Figure::Bandwidth => per_s(mine().map(|c| c.bytes).sum()) / 1024,
                Figure::Latency if logs.maxima => mine().map(|c| c.latency.as_ns()).max().unwrap_or_default(),
                Figure::Latency => mine().map(|c| c.latency.as_ns()).sum::<u64>() / count,
                Figure::Iops | Figure::None | Figure::Histogram => per_s(count),
            };
            let _ = writeln!(text, "{}, {value}, {way}, 0, 0", end.as_ms());
        }
    }
    text
}

/// fio's counts of latencies, and how many a power of two has, as a power of two.
//= fio-3.33 HOWTO "write_hist_log", "log_hist_coarseness"; lines of its logs
const COUNTS: usize = 1856;
const STEPS_LOG2: u32 = 6;

/// Which of fio's counts a latency belongs to.
fn count_of(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
    let steps = 1 << STEPS_LOG2;
    let count = if shift == 0 { ns } else { u64::from(shift) * steps + (ns >> shift) };
    usize::try_from(count).unwrap_or(COUNTS).min(COUNTS - 1)
}

/// A line for each interval and direction, with the first call that ends when it is over.
fn histograms(logs: &Logs, origin: Duration, calls: &[Done]) -> String {
    let mut text = String::new();
    if logs.hist_interval.is_zero() {
        return text;
    }
    let mut since = [Duration::ZERO; 3];
    let mut counts = [const { Vec::new() }; 3];
    for c in calls {
        let (way, at) = (usize::from(c.way), c.at.saturating_sub(origin));
        counts[way].resize(COUNTS, 0_u64);
        counts[way][count_of(c.latency.as_ns())] += 1;
        if at.saturating_sub(since[way]) < logs.hist_interval {
            continue;
        }
        since[way] = at;
        let _ = write!(text, "{}, {way}, {}", at.as_ms(), c.bytes);
        for sum in counts[way].chunks(1 << logs.coarseness) {
            let _ = write!(text, ", {}", sum.iter().sum::<u64>());
        }
        text.push('\n');
        counts[way].fill(0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(at_ms: u64, latency_us: u64, bytes: u64, way: u8) -> Done {
        Done { at: Duration::from_ms(at_ms), latency: Duration::from_us(latency_us), bytes, way, offset: 512 }
    }

    /// Lines that fio 3.33 wrote: a call of 16 KiB with 216,482 ns is 75,682 in `_bw`.
    #[test]
    fn a_call_is_a_line_as_fio_writes_it() {
        let call = Done { latency: Duration::from_ns(216_482), ..done(1000, 0, 16384, 1) };
        let line = |logs: &Logs, figure| text(logs, figure, Duration::from_ms(1000), &[call]);
        let plain = Logs::default();
        assert_eq!(line(&plain, Figure::Bandwidth), "0, 75682, 1, 16384, 0\n");
        assert_eq!(line(&plain, Figure::Latency), "0, 216482, 1, 16384, 0\n");
        assert_eq!(line(&plain, Figure::Iops), "0, 1, 1, 16384, 0\n");
        assert_eq!(line(&plain, Figure::None), "");
        let with_offset = Logs { offset: true, ..plain };
        assert_eq!(line(&with_offset, Figure::Iops), "0, 1, 1, 16384, 512, 0\n");
    }

    /// fio with `rate=128k bs=4k log_avg_msec=500`: 128 in `_bw`, 32 in `_iops`.
    #[test]
    fn an_interval_has_a_line_for_each_direction() {
        let calls: Vec<Done> = (0..32).map(|i| done(i * 125 / 4, 100 + i % 2, 4096, 0)).collect();
        let logs = Logs { interval: Duration::from_ms(500), ..Logs::default() };
        let all = |figure| text(&logs, figure, Duration::ZERO, &calls);
        assert_eq!(all(Figure::Bandwidth), "500, 128, 0, 0, 0\n1000, 128, 0, 0, 0\n");
        assert_eq!(all(Figure::Iops), "500, 32, 0, 0, 0\n1000, 32, 0, 0, 0\n");
        assert_eq!(all(Figure::Latency), "500, 100500, 0, 0, 0\n1000, 100500, 0, 0, 0\n");
        let largest = Logs { maxima: true, ..logs };
        let text = text(&largest, Figure::Latency, Duration::ZERO, &calls);
        assert_eq!(text, "500, 101000, 0, 0, 0\n1000, 101000, 0, 0, 0\n");
    }

    /// fio 3.33 with `log_hist_coarseness=6`: 29 counts, of which the ninth has latencies from 16.4 us.
    #[test]
    fn a_histogram_is_a_line_for_each_interval() {
        let calls: Vec<Done> = (0..5).map(|i| done(i * 4, 20 + i * 30, 4096, 1)).collect();
        let logs = Logs { hist_interval: Duration::from_ms(10), coarseness: 6, ..Logs::default() };
        let text = text(&logs, Figure::Histogram, Duration::ZERO, &calls);
        let fields: Vec<u64> = text.trim().split(", ").map(|f| f.parse().unwrap()).collect();
        assert_eq!((text.lines().count(), fields.len()), (1, 3 + 29));
        assert_eq!(fields[..3], [12, 1, 4096]);
        // 20 us, 50 us, 80 us and 110 us are above 2^14, 2^15, 2^16 and 2^16 ns.
        assert_eq!(fields[3 + 9..3 + 12], [1, 1, 2]);
        assert_eq!(fields[3..].iter().sum::<u64>(), 4);
    }

    #[test]
    fn clients_that_share_a_log_are_in_it_one_after_the_other() {
        let text =
            "[a]\nsize=1m\nnumjobs=2\nwrite_iops_log=o\nper_job_logs=0\n[b]\nsize=1m\nwrite_iops_log\n";
        let jobs = crate::job::parse(text, "j").unwrap();
        assert_eq!(names(&jobs, ""), ["o_iops.log", "b_iops.3.log"]);
        let recorder = Recorder { clients: (0..3).map(|i| (true, None, vec![done(i, 5, 512, 0)])).collect() };
        let files = recorder.finish(&jobs, "");
        assert_eq!(files[0], ("o_iops.log".to_owned(), "0, 1, 0, 512, 0\n1, 1, 0, 512, 0\n".to_owned()));
        assert_eq!(files[1], ("b_iops.3.log".to_owned(), "2, 1, 0, 512, 0\n".to_owned()));
    }
}
