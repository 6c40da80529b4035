//! `fairhead conform`: a running kernel's log, replayed into ours.

use fairhead_conform::{Report, compare_file};

use crate::args::ConformArgs;
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out::{self, Progress};
use crate::output::conformance;

/// Replays the log, writes what was found, and fails if the two sides differ too often.
pub(crate) fn conform(args: &ConformArgs) -> Result<(), CliError> {
    files::will_read(&args.log);
    Outputs::default().file("-o", args.output.file.as_deref()).check()?;
    let bar = Progress::new("replaying");
    let mut shown = 0;
    let report = compare_file(&args.log, &mut |done, total| {
        // Once in a hundred is often enough to look.
        let percent = done.saturating_mul(100).checked_div(total).unwrap_or(0);
        if percent > shown {
            shown = percent;
            bar.at(usize::try_from(percent).unwrap_or(100), 100);
        }
    });
    drop(bar);
    let report = report.map_err(|e| CliError::Misuse(e.to_string()))?;
    let file = args.output.file.as_deref();
    let text = conformance::render(&report, args.output.format, args.differences, out::coloured(file));
    out::results(file, &text)?;
    if report.agrees() { Ok(()) } else { Err(CliError::Failed(verdict(&report))) }
}

/// Which topics miss their bound.
fn verdict(report: &Report) -> String {
    let misses: Vec<String> = report
        .agreements
        .iter()
        .filter_map(|(topic, a)| {
            let percent = topic.required().filter(|p| !a.reaches(*p))?;
            Some(format!("{} {:.1} % (at least {percent} %)", topic.name(), a.percent().unwrap_or(0.0)))
        })
        .collect();
    format!("{}: does not agree: {}", report.log, misses.join(", "))
}
