//! Results as a page and as pictures: what the terminal's tables and JSON say, handed to `fairhead-report`.

use fairhead_report::page::Page;
use fairhead_report::verdict::{Verdict, verdict};
use fairhead_report::{Recording, Run, Runs, pictures};
use fairhead_sim::sweep::Base;

use super::{Json, Report, groups, human, missed, why};

/// A run's page; `command` is what it says made it.
#[must_use]
pub fn run(report: &Report<'_>, recordings: &[Recording], base: &Base, command: &str) -> String {
    let plan = report.plan;
    let mut tables = vec![human::jobs_table(report).for_page("Job by job")];
    tables.extend(groups::table(report).map(|t| t.for_page("Control groups")));
    tables.push(human::disk_table(report).for_page("The disk"));
    tables.extend(human::cpu_table(report).map(|t| t.for_page("The processors")));
    let runs = Runs::grouped(report.jobs(), &runs(report, recordings));
    let Verdict { sentences, pictures } = verdict(&runs, base);
    let mut made = made(command);
    made.extend([
        ("job file", report.jobs().file_name.clone()),
        ("disk", plan.disk.0.clone()),
        ("host", format!("of {}", plan.host.0)),
        ("seed", plan.seed.to_string()),
    ]);
    let mut notes: Vec<&String> = report.jobs().notes.iter().collect();
    for note in report.outcomes.iter().flat_map(|o| &o.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    made.extend(notes.into_iter().map(|n| ("note", n.clone())));
    Page {
        title: format!("{} on {}", report.jobs().file_name, plan.disk.0),
        verdict: (sentences, pictures),
        chapters: Vec::new(),
        tables,
        runs_note: Some(
            (missed::lines(report) + &groups::not_kept(report) + &groups::idled(report))
                .trim_end()
                .replace('\n', "; "),
        )
        .filter(|n| !n.is_empty()),
        runs,
        why: why::chapters(report),
        made,
        figures: Json::value(report),
    }
    .html()
}

/// A run's pictures: names of files, and what is in them.
#[must_use]
pub fn files(report: &Report<'_>, recordings: &[Recording], base: &Base) -> Vec<(String, String)> {
    let runs = Runs::each(report.jobs(), &runs(report, recordings));
    let all = verdict(&runs, base).pictures.into_iter().chain(pictures::all(&runs));
    all.map(|p| (format!("{}.svg", p.name), p.to_file())).collect()
}

fn runs<'a>(report: &'a Report<'_>, recordings: &'a [Recording]) -> Vec<Run<'a>> {
    let all = report.outcomes.iter().zip(recordings);
    all.map(|(outcome, recording)| Run { name: &outcome.scheduler, outcome, recording }).collect()
}

/// What a page says of how it was made.
#[must_use]
pub fn made(command: &str) -> Vec<(&'static str, String)> {
    vec![("command", command.to_owned()), ("Fairhead", env!("CARGO_PKG_VERSION").to_owned())]
}
