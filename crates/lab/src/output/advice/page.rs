//! Advice as a page.

use fairhead_report::page::{Chapter, Page};
use fairhead_report::{Participants, Recorder, Recording, Run as Shot, Runs, pictures};
use fairhead_sim::advise::{Advice, Question};
use fairhead_sim::{Outcome, SimError, journal};

use super::super::page::made;
use super::{Drawn, Labels, answer, details, json, todo};

/// One of the runs that are shown beside advice.
pub struct Shown {
    /// Which candidate's.
    pub candidate: usize,
    /// What came out.
    pub outcome: Outcome,
    /// What was recorded.
    pub recording: Recording,
}

/// The page of `fairhead advise --report`; `command` is what it says made it.
#[must_use]
pub fn page(labels: &Labels, question: &Question, advice: &Advice, shown: &[Shown], command: &str) -> String {
    let names: Vec<String> = shown.iter().map(|s| advice.candidates[s.candidate].name()).collect();
    let runs: Vec<Shot<'_>> = shown
        .iter()
        .zip(&names)
        .map(|(s, name)| Shot { name, outcome: &s.outcome, recording: &s.recording })
        .collect();
    let mut made = made(command);
    made.extend([
        ("job file", advice.load.jobs.file_name.clone()),
        ("disk", labels.disk.clone()),
        ("host", format!("of {}", labels.host)),
        ("emphasis", labels.emphasis.clone()),
        ("seed", question.seed.to_string()),
        ("rounds", advice.rounds().0.to_string()),
    ]);
    let tables = details::tables(advice).into_iter().map(|(about, table)| table.for_page(&about)).collect();
    let of_runs = format!(
        "What follows shows one run of each of {}, with the seed {}, the first of those that confirmed.",
        names.join("; "),
        advice.told_seed
    );
    let drawn = Drawn { has_details: true, ..Drawn::default() };
    let sentences = answer::sentences_of(labels, advice, drawn);
    Page {
        title: format!("{} on {}: which scheduler?", advice.load.jobs.file_name, labels.disk),
        verdict: (sentences, pictures::before_and_after(advice)),
        chapters: chapters(advice),
        tables,
        runs_note: Some(of_runs),
        runs: Runs::grouped(&advice.load.jobs, &runs),
        why: Vec::new(),
        made,
        figures: json::value(labels, question.seed, advice),
    }
    .html()
}

/// What a page has beside the verdict and the figures: what to do, and why.
fn chapters(advice: &Advice) -> Vec<Chapter> {
    let lines = todo(advice).into_iter().map(|s| (s.about.to_owned(), s.lines)).collect();
    let mut all = vec![Chapter { title: "What to do".to_owned(), lines, ..Chapter::default() }];
    let mut more = |title: &str, paragraphs: Vec<String>| {
        all.push(Chapter { title: title.to_owned(), paragraphs, ..Chapter::default() });
    };
    if let Some(told) = &advice.told {
        more("Why", told.sentences.clone());
    }
    if let Some(said) = details::cut(advice) {
        more("Run times", vec![said]);
    }
    all
}

/// Runs for the page: the default, the candidate that is compared with it, and the best of Fairhead's own if
/// it is better.
///
/// # Errors
/// If a scenario is impossible.
pub fn shown_runs(question: &Question, advice: &Advice) -> Result<Vec<Shown>, SimError> {
    let mut candidates = vec![0];
    for c in std::iter::once(advice.compared()).chain(advice.better_own) {
        if !candidates.contains(&c) {
            candidates.push(c);
        }
    }
    let run = |candidate: usize| {
        let mut recorder = Recorder::new(Participants::new(&advice.load.jobs));
        let scenario = question.scenario(&advice.load, &advice.candidates[candidate], advice.told_seed);
        let outcome = journal::record(&scenario, &mut recorder)?;
        Ok(Shown { candidate, outcome, recording: recorder.finish() })
    };
    candidates.into_iter().map(run).collect()
}
