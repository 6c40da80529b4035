//! Our schedulers beside a running kernel's, over the logs that were recorded of it.
//!
//! The logs are in `tests/kernel-logs`, with a README that says how each was recorded.

use fairhead_conform::{Report, Scheduler, Topic, compare, compare_file};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn logs() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel-logs");
    let files = std::fs::read_dir(directory).expect("the logs are part of the repository");
    let mut logs: Vec<_> = files.map(|f| f.unwrap().path()).collect();
    logs.retain(|path| path.to_string_lossy().ends_with(".txt.xz"));
    logs.sort();
    logs
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().replace(".txt.xz", "")).unwrap_or_default()
}

/// Two at a time: the largest takes as long as the others together.
fn reports(logs: &[PathBuf]) -> Vec<Report> {
    let (large, others): (Vec<_>, Vec<_>) = logs.iter().partition(|p| name(p).contains("ssd"));
    let replay = |paths: Vec<&PathBuf>| -> Vec<Report> {
        paths.iter().map(|path| compare_file(path, &mut |_, _| {}).unwrap()).collect()
    };
    let mut all = std::thread::scope(|scope| {
        let first = scope.spawn(|| replay(large));
        let mut reports = replay(others);
        reports.extend(first.join().unwrap());
        reports
    });
    all.sort_by(|a, b| a.log.cmp(&b.log));
    all
}

/// A row for each log: per topic how many of how many agree.
fn table(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        let _ = write!(text, "{:<22}", name(Path::new(&report.log)));
        for (topic, a) in &report.agreements {
            let _ = write!(text, "  {} {}/{}", topic.name(), a.agreed, a.compared);
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_kernel_decides_as_we_do() {
    let logs = logs();
    assert!(logs.len() >= 44, "{logs:?}");
    let reports = reports(&logs);
    println!("{}", table(&reports));
    for report in &reports {
        assert_eq!(report.lost, 0, "{}", report.log);
        assert!(report.requests > 100, "{} requests in {}: was it read right?", report.requests, report.log);
        let first = report.differences.first();
        assert!(report.agrees(), "{}: {first:?}", report.log);
        let differing = Topic::ALL.into_iter().filter(|topic| topic.required().is_some()).map(|topic| {
            let a = report.agreement(topic);
            a.compared - a.agreed
        });
        let expected = match name(Path::new(&report.log)).as_str() {
            // A tick beside an arrival or completion: which was first, the log does not show.
            "mq-deadline-classes" => 11,
            // A raising period that ended at a tick.
            "bfq-streams6-2" => 1,
            // Which of two requests of one queue and length: the log does not show.
            "bfq-streams-mixed-3" => 1,
            _ => 0,
        };
        assert_eq!(differing.sum::<u64>(), expected, "{}: {first:?}", report.log);
        if report.scheduler == Scheduler::Bfq {
            assert!(report.agreement(Topic::Selections).compared > 20, "{}", report.log);
            assert!(report.agreement(Topic::Expiries).compared > 20, "{}", report.log);
        }
        // From equal inputs virtual times are equal to the last bit.
        let times = report.agreement(Topic::Times);
        assert_eq!(times.agreed, times.compared, "{}: {first:?}", report.log);
    }
}

/// A scheduler that is set otherwise than the kernel's was does not agree: the comparison can fail.
#[test]
fn other_tunables_decide_otherwise() {
    let logs = logs();
    let path = logs.iter().find(|p| name(p) == "bfq-seqrand").expect("a log of that name");
    let Some(text) = plain(path) else { return println!("skipped: no xz") };
    let with = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        compare(&mut || Ok(changed.as_bytes()), "changed", &mut |_| {}).unwrap()
    };
    assert!(with("# scenario", "# the scenario").agrees(), "unchanged");
    let agreed = |report: &Report, topic| report.agreement(topic).percent().unwrap();
    let budgets = with("max_budget=0", "max_budget=1000");
    assert!(agreed(&budgets, Topic::Budgets) < 90.0, "{}", table(&[budgets]));
    let idling = with("slice_idle_us=8000", "slice_idle_us=0");
    assert!(!idling.agrees(), "{}", table(&[idling]));
    let turns = with("timeout_sync=124", "timeout_sync=40");
    assert!(!turns.agrees(), "{}", table(&[turns]));
}

/// What `xz -dc` prints; `None` without that program.
fn plain(path: &Path) -> Option<String> {
    let out = std::process::Command::new("xz").arg("-dc").arg(path).output().ok()?;
    Some(String::from_utf8(out.stdout).unwrap())
}
