//! What a request costs under each scheduler.
//!
//! `cargo xtask bench` runs this under callgrind and writes `RESULTS.md`; by itself it runs one loop and says
//! what it did:
//!
//! ```text
//! fairhead-bench list                                 the presets, one a line
//! fairhead-bench run PRESET TASKS REQUESTS [GROUPS]   a loop of that many requests; prints heap calls in it
//! fairhead-bench run-any …                            the same through `AnyScheduler`
//! fairhead-bench run-batches PRESET TASKS REQUESTS GROUPS SIZE   run-any with up to SIZE requests at a time, in batches
//! fairhead-bench run-singly …                         the same with a call for each request
//! fairhead-bench waiting PRESET CLIENTS REQUESTS      the live request queue, with so many clients that wait for a limit
//! fairhead-bench crowd PRESET CLIENTS REQUESTS        the live request queue, with so many clients that have one read each, without limits
//! fairhead-bench simulate PRESET SECONDS              the lab for that much virtual time; prints requests and CPU nanoseconds
//! fairhead-bench drives PRESET MILLISECONDS [PROCESSES DEPTH]   the same on four fast drives
//! fairhead-bench work FOLDER                          all job files of a folder: what they cost, and are reckoned to
//! fairhead-bench confirm FILE DISK SECONDS            advice for a job file or a trace, and whether ten times the seeds confirm it
//! ```
//!
//! # The loop
//!
//! As many tasks as asked for keep one request each in the elevator, of 4 KiB, at a disk that takes one at a
//! time and needs 100 µs. Of four tasks, two read sequentially, one reads at random and one writes (async) at
//! random. So every request is inserted once, dispatched once and completed once, at a constant load, and a
//! scheduler that holds the disk back for a sequential reader sees its next request at once. What the loop
//! gets back is asserted. With GROUPS the tasks are in as many groups, one of which is the root, by turns.
//!
//! The three calls are made through functions that are never inlined, for callgrind to tell them apart; a
//! `Hold` costs its request a second `dispatch`, a timer goes to dispatch. The first requests warm the
//! elevator up through twins of those functions.
//!
//! # What it does not do
//!
//! No wall-clock times: on a shared machine they say more about the neighbours. `simulate` counts CPU time.

mod alloc;
mod closed_loop;
mod confirm;
mod simulate;
#[cfg(feature = "live")]
mod waiting;
mod work;

use fairhead_core::sched::any::{PRESETS, preset};
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["list"] => {
            for preset in PRESETS {
                println!("{}", preset.name);
            }
            ExitCode::SUCCESS
        }
        [how @ ("run" | "run-any"), name, tasks, requests, groups @ ..] if groups.len() < 2 => {
            let groups = groups.first().map_or(Ok(1), |g| g.parse());
            match (preset(name), tasks.parse(), requests.parse(), groups) {
                (Some(preset), Ok(tasks), Ok(requests), Ok(groups))
                    if groups > 0 && tasks > 0 && tasks <= closed_loop::TASKS_MAX =>
                {
                    let run = if *how == "run" { closed_loop::run } else { closed_loop::run_any };
                    println!("{}", run(preset, tasks, requests, groups));
                    ExitCode::SUCCESS
                }
                _ => misuse(&format!("{how}: no such preset, or not a number: {name} {tasks} {requests}")),
            }
        }
        [how @ ("run-batches" | "run-singly"), name, numbers @ ..] if numbers.len() == 4 => {
            batches(how, name, numbers)
        }
        [how @ ("waiting" | "crowd"), name, clients, requests] => beside_others(how, name, clients, requests),
        ["simulate", name, seconds] => match (preset(name), seconds.parse()) {
            (Some(preset), Ok(seconds)) if seconds > 0 => {
                let (requests, ns) = simulate::run(preset, seconds);
                println!("{requests} {ns}");
                ExitCode::SUCCESS
            }
            _ => misuse(&format!("simulate: no such preset, or no number above 0: {name} {seconds}")),
        },
        ["drives", name, numbers @ ..] => drives(name, numbers),
        ["work", folder] => match work::run(folder.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => misuse(&format!("work: {folder}: {e}")),
        },
        ["confirm", file, disk, seconds] => {
            match seconds
                .parse()
                .map_err(|_| "not a number".to_owned())
                .and_then(|s| confirm::run(file.as_ref(), disk, confirm::budget(s)))
            {
                Ok(line) => {
                    println!("{line}");
                    ExitCode::SUCCESS
                }
                Err(e) => misuse(&format!("confirm: {file}: {e}")),
            }
        }
        _ => misuse(
            "usage: fairhead-bench list | run PRESET TASKS REQUESTS [GROUPS] | run-any … | run-batches PRESET TASKS REQUESTS GROUPS SIZE | run-singly … | waiting PRESET CLIENTS REQUESTS | crowd … | simulate PRESET SECONDS | drives PRESET MILLISECONDS [PROCESSES DEPTH] | work FOLDER | confirm FILE DISK SECONDS",
        ),
    }
}

/// Has the live request queue answer one client beside `clients` others.
#[cfg(feature = "live")]
fn beside_others(how: &str, name: &str, clients: &str, requests: &str) -> ExitCode {
    match (preset(name), clients.parse(), requests.parse()) {
        (Some(preset), Ok(clients), Ok(requests)) if how == "waiting" || clients > 0 => {
            let run = if how == "waiting" { waiting::run } else { waiting::run_crowd };
            println!("{}", run(preset, clients, requests));
            ExitCode::SUCCESS
        }
        _ => {
            misuse(&format!("{how}: no such preset, or no number that it takes: {name} {clients} {requests}"))
        }
    }
}

#[cfg(not(feature = "live"))]
fn beside_others(how: &str, _: &str, _: &str, _: &str) -> ExitCode {
    misuse(&format!("{how}: this program was compiled without the feature live, which has it"))
}

/// Simulates four drives for this many milliseconds, with a load of its own if one is given.
fn drives(name: &str, numbers: &[&str]) -> ExitCode {
    let numbers: Option<Vec<u32>> = numbers.iter().map(|n| n.parse().ok()).collect();
    let (ms, load) = match numbers.as_deref() {
        Some([ms]) => (*ms, simulate::DRIVES_LOAD),
        Some([ms, processes, depth]) => (*ms, (*processes, *depth)),
        _ => {
            return misuse(&format!(
                "drives {name}: write how many milliseconds, processes, and calls of each"
            ));
        }
    };
    let Some(preset) = preset(name) else { return misuse(&format!("drives: no such preset: {name}")) };
    match simulate::run_drives(preset, ms, load) {
        Ok((requests, ns)) => {
            println!("{requests} {ns}");
            ExitCode::SUCCESS
        }
        Err(e) => misuse(&format!("drives {name}: {e}")),
    }
}

fn batches(how: &str, name: &str, numbers: &[&str]) -> ExitCode {
    let parsed: Vec<u16> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
    match (preset(name), &parsed[..]) {
        (Some(preset), &[tasks, requests, groups, size])
            if groups > 0 && size > 0 && size <= tasks && tasks <= closed_loop::TASKS_MAX =>
        {
            let (requests, size, batched) = (u32::from(requests), usize::from(size), how == "run-batches");
            println!("{}", closed_loop::run_batches(preset, tasks, requests, groups, size, batched));
            ExitCode::SUCCESS
        }
        _ => {
            misuse(&format!("{how}: no such preset, or not a number in range: {name} {}", numbers.join(" ")))
        }
    }
}

fn misuse(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}
