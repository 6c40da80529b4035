//! Traces where jobs are expected: told apart, turned into jobs, and shown as they are replayed.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairhead_sim::job::JobFile;
use fairhead_sim::replay::{Fit, Mode, Options, Source};

use crate::args::{ReplayArgs, ReplayFit, ReplayMode};
use crate::out::Progress;
use crate::workloads;

/// How much of a file tells what it is.
pub(crate) const HEAD_BYTES: u64 = 64 << 10;

/// Whether the path is a trace's: by its content. A name that is no file may be that of a set of blktrace,
/// unless it is a workload's.
pub(crate) fn is_trace(path: &Path) -> bool {
    let is_file = path.metadata().map(|m| m.is_file());
    match is_file {
        Err(_) => workloads::find(&path.to_string_lossy()).is_none() && fairhead_trace::open(path).is_ok(),
        Ok(false) => false,
        Ok(true) => {
            let mut head = Vec::new();
            let read = File::open(path).and_then(|f| f.take(HEAD_BYTES).read_to_end(&mut head));
            read.is_ok() && begins_trace(&head, || fairhead_trace::open(path).is_ok())
        }
    }
}

/// Whether what a pipe begins with is a trace's beginning.
pub(crate) fn begins_trace_in_pipe(head: &[u8]) -> bool {
    begins_trace(head, || fairhead_trace::read("", Cursor::new(head.to_vec())).is_ok())
}

/// Whether a trace begins so, of a format that `is_known`. A job file's first line that is no comment begins
/// a section; all formats of traces begin otherwise.
fn begins_trace(head: &[u8], is_known: impl FnOnce() -> bool) -> bool {
    // What is neither is treated as a job file, unless it is not text.
    let is_binary = std::str::from_utf8(head).is_err_and(|e| e.error_len().is_some());
    !is_marked_utf16(head) && !begins_section(head) && (is_binary || is_known())
}

/// Whether it is a text of 16 bits that an editor has marked so, which the reader of job files names.
fn is_marked_utf16(head: &[u8]) -> bool {
    head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff])
}

fn begins_section(head: &[u8]) -> bool {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    let mut lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|l| !matches!(l.first(), None | Some(b'#' | b';'))).is_some_and(|l| l[0] == b'[')
}

/// Whether any of the flags was given.
pub(crate) fn is_given(args: &ReplayArgs) -> bool {
    let numbers = [args.replay_time_scale, args.replay_clients, args.replay_depth];
    let others = args.replay.is_some() || args.replay_fit.is_some() || args.replay_redirect;
    others || !args.replay_device.is_empty() || numbers.iter().any(Option::is_some)
}

/// The jobs of a trace, before it has been read.
pub(crate) fn jobs(source: Source, args: &ReplayArgs) -> JobFile {
    let path = source.name();
    let mut options = Options {
        mode: match args.replay {
            None => Mode::Auto,
            Some(ReplayMode::Open) => Mode::Open,
            Some(ReplayMode::Closed) => Mode::Closed,
            Some(ReplayMode::NoStall) => Mode::NoStall,
        },
        fit: match args.replay_fit {
            None | Some(ReplayFit::Scale) => Fit::Scale,
            Some(ReplayFit::Wrap) => Fit::Wrap,
        },
        redirect: args.replay_redirect,
        devices: args.replay_device.clone(),
        ..Options::default()
    };
    options.speed_pct = args.replay_time_scale.unwrap_or(options.speed_pct);
    options.clients_max = args.replay_clients.unwrap_or(options.clients_max);
    let mut jobs = JobFile::of_trace(&path, source, options);
    for job in &mut jobs.jobs {
        job.iodepth = args.replay_depth.unwrap_or(job.iodepth);
        if let Some(name) = Path::new(&path).file_name() {
            job.name = name.to_string_lossy().into_owned();
        }
    }
    jobs
}

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Does `work`, which runs the jobs `runs` times, and meanwhile shows how many of the traces' requests have
/// been read. Without traces it shows nothing.
pub(crate) fn with_progress<T>(
    jobs: &JobFile,
    runs: usize,
    what: &'static str,
    work: impl FnOnce() -> T,
) -> T {
    let Some((_, all)) = jobs.replay_progress() else { return work() };
    let before = jobs.replay_progress().map_or(0, |(read, _)| read);
    let total = all.saturating_mul(runs as u64);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            let progress = Progress::timed(what);
            while !ended.load(Ordering::Relaxed) {
                let read = jobs.replay_progress().map_or(0, |(read, _)| read - before);
                let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                progress.at(count(read.min(total)), count(total));
                std::thread::park_timeout(TICK);
            }
        });
        let result = work();
        ended.store(true, Ordering::Relaxed);
        ticker.thread().unpark();
        result
    })
}
