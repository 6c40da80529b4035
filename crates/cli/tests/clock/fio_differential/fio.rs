//! A job file, run by fio on small files in memory.

use super::{Call, Client, Entry, Seen};
use fairhead_sim::job::{self, JobFile};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Longer than any drawn file takes.
const TIME_MAX_S: &str = "10";

/// Why there is nothing to see.
pub(super) enum Nothing {
    /// It says that something is wrong with the file.
    Refused(String),
    /// It did not end, or ended itself while it started.
    Hung,
}

/// Runs it, with `seed` in place of the file's or fio's own.
pub(super) fn run(text: &str, seed: Option<u32>) -> Result<Seen, Nothing> {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = dir.expect("a folder");
    let dir = dir.path();
    std::fs::write(dir.join("job.fio"), with_logs(text, seed, dir)).expect("a file");
    let out = Command::new("timeout")
        .args(["-k", "1", TIME_MAX_S, "fio", "--output-format=json", "--eta=never", "job.fio"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("fio is there");
    if matches!(out.status.code(), None | Some(124 | 137)) {
        return Err(Nothing::Hung);
    }
    let said = String::from_utf8_lossy(&out.stdout);
    // With exitall, fio now and then ends a thread that is being started by a signal to itself.
    //= docs/job-files.md "Where fio and Fairhead differ"
    let ended_itself =
        [&out.stdout, &out.stderr].iter().any(|s| has_line(s, "fio: terminating on signal 15"));
    if out.status.code() == Some(128) && ended_itself && text.contains("exitall") {
        return Err(Nothing::Hung);
    }
    let json = said.find('{').and_then(|at| serde_json::from_str::<Value>(&said[at..]).ok());
    let failed = |entry: &Value| entry["error"].as_u64() != Some(0);
    let Some(json) =
        json.filter(|j| out.status.success() && !j["jobs"].as_array().is_none_or(|a| a.iter().any(failed)))
    else {
        let (errors, said) = (String::from_utf8_lossy(&out.stderr), &said[..said.len().min(600)]);
        return Err(Nothing::Refused(format!("{}: {errors}{said}", out.status)));
    };
    // Where an entry has joined the one before, fio 3.33 writes one that is empty.
    //= docs/job-files.md "Where fio and Fairhead differ"
    let all = json["jobs"].as_array().map_or(&[][..], Vec::as_slice).iter().map(entry);
    let entries = all.filter(|e| !e.name.is_empty() || e.calls != [0; 2]).collect();
    // What this parser does not read has no clients to compare.
    let clients = job::parse(text, "job.fio").map(|jobs| clients(&jobs, dir)).unwrap_or_default();
    Ok(Seen { entries, clients, idle: false })
}

fn has_line(text: &[u8], line: &str) -> bool {
    String::from_utf8_lossy(text).lines().any(|l| l == line)
}

/// The file with `seed` and with what it takes to see what fio does. Threads are gone when fio is killed,
/// processes would stay.
fn with_logs(text: &str, seed: Option<u32>, dir: &Path) -> String {
    let dir = dir.display();
    let mut lines =
        format!("[global]\nthread\ndirectory={dir}\nwrite_lat_log={dir}/l\nlog_offset=1\nlog_unix_epoch=1\n");
    if let Some(seed) = seed {
        writeln!(lines, "randseed={seed}").expect("a string");
    }
    let mut job = 0;
    for line in text.lines().filter(|l| seed.is_none() || !l.starts_with("randseed")) {
        writeln!(lines, "{line}").expect("a string");
        if line.starts_with('[') && !line.starts_with("[global") {
            writeln!(lines, "write_iolog={dir}/i.{job}").expect("a string");
            job += 1;
        }
    }
    lines
}

pub(super) fn entry(entry: &Value) -> Entry {
    let of = |key: &str| [&entry["read"][key], &entry["write"][key]].map(|v| v.as_u64().unwrap_or(0));
    Entry {
        name: entry["jobname"].as_str().unwrap_or_default().to_owned(),
        group: entry["groupid"].as_u64().unwrap_or(u64::MAX),
        calls: of("total_ios"),
        bytes: of("io_bytes"),
    }
}

fn clients(jobs: &JobFile, dir: &Path) -> Vec<Client> {
    let read = |name: String| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    let mut before = 0;
    jobs.clients()
        .map(|c| {
            // fio numbers the threads of a job from its first clone to its last, which has the clone
            // number 1.
            let behind = (c.job.numjobs - c.clone) % c.job.numjobs;
            let number = before + behind + 1;
            if c.clone + 1 == c.job.numjobs {
                before += c.job.numjobs;
            }
            let latencies = read(format!("l_lat.{number}.log"));
            let (ends_ms, calls): (Vec<f64>, Vec<Call>) = latencies.lines().filter_map(measured).unzip();
            if c.job.numjobs > 1 {
                // Clones write into one log of offsets, in turns.
                return Client { calls, ends_ms };
            }
            let names = c.job.file_names(c.clone);
            let log = read(format!("i.{}", c.job_index));
            Client { calls: log.lines().filter_map(|line| made(line, &names)).collect(), ends_ms }
        })
        .collect()
}

/// A line of a log of latencies: when in milliseconds, latency, direction, length, offset, priority.
fn measured(line: &str) -> Option<(f64, Call)> {
    let mut fields = line.split(',').map(|f| f.trim().parse::<u64>().ok());
    let (at, _, direction, len, offset) =
        (fields.next()??, fields.next()??, fields.next()??, fields.next()??, fields.next()??);
    let kind = match direction {
        0 => 'r',
        1 => 'w',
        _ => return None,
    };
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 are exact")]
    Some((at as f64, Call { kind, file: None, offset, len }))
}

/// A line of a log of offsets, version 3: when, file, what, offset, length.
fn made(line: &str, names: &[String]) -> Option<Call> {
    let mut fields = line.split_ascii_whitespace();
    let (_, path, what) = (fields.next()?, fields.next()?, fields.next()?);
    let kind = match what {
        "read" => 'r',
        "write" => 'w',
        "sync" => 's',
        "datasync" => 'd',
        _ => return None,
    };
    let mut number = || fields.next().map_or(Some(0), |f| f.parse().ok());
    let name = path.rsplit('/').next()?;
    let file = names.iter().position(|n| n == name);
    Some(Call { kind, file, offset: number()?, len: number()? })
}
