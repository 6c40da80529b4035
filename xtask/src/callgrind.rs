//! Instructions by function, from a callgrind profile.
//!
//! With `--compress-strings=no --compress-pos=no` a profile has, for each call site, three lines in a row:
//!
//! ```text
//! cfn=fairhead_bench::closed_loop::phase::dispatch     who is called
//! calls=1999 0                                         how often
//! 0 662459                                             a line number, and what it cost with all that it called
//! ```
//!
//= valgrind manual, Callgrind format specification, "Associations of costs to calls"

use crate::shell::{capture, command, root};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all calls of functions whose name ends in `suffix` cost together.
pub(crate) fn inclusive(profile: &str, suffix: &str) -> u64 {
    let mut lines = profile.lines();
    let mut sum = 0;
    while let Some(line) = lines.next() {
        if line.strip_prefix("cfn=").is_some_and(|name| name.ends_with(suffix)) {
            let cost = lines.nth(1).and_then(|line| line.split_whitespace().nth(1));
            sum += cost.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    sum
}

/// The total of an event, by its name in the line that lists them.
pub(crate) fn total(profile: &str, event: &str) -> Option<u64> {
    let line = |key: &str| profile.lines().find_map(|line| line.strip_prefix(key));
    let column = line("events:")?.split_whitespace().position(|name| name == event)?;
    line("summary:")?.split_whitespace().nth(column)?.parse().ok()
}

/// Caches to count misses with: those of a small processor of today, the same on every machine. The first is
/// that for instructions.
pub(crate) const CACHES: &str = "--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64";

/// Runs a program under callgrind; its profile and what it printed.
pub(crate) fn run(program: &Path, args: &str) -> Result<(String, String), String> {
    run_with("", program, args)
}

/// Runs a program under callgrind with more options; its profile and what it printed.
pub(crate) fn run_with(options: &str, program: &Path, args: &str) -> Result<(String, String), String> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let out = root().join("target").join(format!("callgrind.{}.{run}.out", std::process::id()));
    let mut valgrind = command("valgrind", "--tool=callgrind --compress-strings=no --compress-pos=no");
    valgrind.args(options.split_whitespace());
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    let output = capture(valgrind.arg(program).args(args.split_whitespace()))?;
    let profile = fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    fs::remove_file(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    Ok((profile, String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_by_the_name_of_their_event() {
        let profile = "cmd: a\nevents: Ir Dr I1mr\nsummary: 1200 300 45 \n\nfn=main\n0 12\n";
        assert_eq!([total(profile, "Ir"), total(profile, "I1mr")], [Some(1200), Some(45)]);
        assert_eq!([total(profile, "Dw"), total("events: Ir\n", "Ir")], [None, None]);
    }

    #[test]
    fn sums_the_call_sites_of_one_function() {
        let profile = "fn=main\n0 12\ncfn=a::phase::insert\ncalls=2 0 \n0 314\ncfn=a::other\ncalls=1 0\n0 5\n\
                       cfn=a::phase::insert\ncalls=1 0 \n0 6\n\nfn=a::phase::insert\n0 320\n";
        assert_eq!(inclusive(profile, "phase::insert"), 320);
        assert_eq!(inclusive(profile, "phase::complete"), 0);
    }
}
